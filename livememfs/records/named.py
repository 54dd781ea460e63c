"""Secrets that are known by their names alone: `password=...`, `"api_key": "..."`, `--token ...`.

Owns which names say that what follows is secret, and which values plainly are none: variables, calls, types,
placeholders. Refuses to take words of a sentence for a password where the sentence goes on. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

PASSWORDS = ("password", "passwd", "passphrase", "pwd", "pass")
SECRETS = ("secret", "token", "key", "credential", "credentials")
LEAST = 6
"""So many characters a value has that is taken for a secret in a text."""

_KEY_OF = re.compile(
    r"(?:access|account|api|auth|client|deploy|encryption|license|master|private|secret|session|shared|sign(?:ing)?)"
    r"[_. -]?\Z"
)
"""What a key is of, to be a secret one."""
_PAGE = re.compile(r"(?:page|next|continuation|sync|cursor|stop|pad|eos|bos)[_-]?\Z")
"""Tokens that open nothing."""
_LOOKED_BACK = 14

_VALUE = re.compile(
    r"""
    (?:\\*["'`])? [*_]{0,2} [ \t]{0,8} (?: => | := | ={1,3} | : ) [*_]{0,2} [ \t]{0,8}
    (?:
        \\+ " ( (?: [^"\\\r\n] | \\+[^"\\\r\n] )++ )
      | [bfru]{0,2} "{1,3} ( (?: [^"\\\r\n] | \\. )++ )
      | [bfru]{0,2} '{1,3} ( (?: [^'\\\r\n] | \\. )++ )
      | ` ( [^`\r\n]++ )
      | (?P<bare> (?: [^\s"'`,;&<\\] | \\+ (?! [nrt"'`\\] ) | [,;&] (?! [\w.-]{1,64} [ \t]{0,3} [=:] ) )++ )
    )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
"""An assignment behind its name, of what is quoted or is one word."""
_FLAG = re.compile(r"""[ \t]{1,4}(?:"([^"\r\n]{6,})"|'([^'\r\n]{6,})'|(?P<bare>[^\s"'`;&|<]{6,}))""")
"""What follows `--password` on a command line."""
_ELEMENT = re.compile(r">([^<>\r\n]{6,200})</")

_NONE = re.compile(
    r"""
    [$%{<(] .* | [*x.\u2022\u2026_-]{3,} | [\W_]+
    | (?: chang(?:e[_ -]?me|eit) | (?:your|my|the|some|example|sample|dummy|fake|placeholder|redacted)\b.*
        | (?:your|my|example)[_-].* | placeholder | redacted | required | optional | hidden | masked
        | none | null | true | false | undefined | nil | empty | unset | n/a | todo | tbd
        | str(?:ing)? | bytes | bool(?:ean)? | integer | number | object | any | unknown | SecretStr | Optional\b.* )
    """,
    re.VERBOSE | re.IGNORECASE | re.DOTALL,
)
"""Values that say that there is none here."""
_NAME = re.compile(r"[A-Za-z_][\w-]*\Z", re.ASCII)
_CODE = re.compile(
    r"""
    [&*@]?[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)\w+)*[(\[{]                  # a call, an element
      (?: [^)\]}]* | .*[)\]}](?:\.\w+)*[;,.:]* )
    | [A-Za-z_]++(?:[0-9][A-Za-z_]*+)?                                    # settings.api_key
      (?: (?:\.|::|->|\?\.) [A-Za-z_]++ (?:[0-9][A-Za-z_]*+)? )+
    | (?:https?|arn|vault|op|env|file|ref|ssm)://?\S* | arn:\S*           # where it is kept
    | (?:~|\.{1,2})?(?:/[A-Za-z_.-]{1,40})+                               # a path
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_LETTERS = re.compile(r"[A-Za-z][A-Za-z'-]*\Z")
_GOES_ON = re.compile(r"[ \t]+[A-Za-z(]")
_TRAILING = ".,;:)]}>"
_CAMEL = re.compile(r"[^a-z0-9]+")


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a credential: `apiKey`, `X-Auth-Token`, and not `max_tokens`."""
    folded = _CAMEL.sub("_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")
    if folded in ("authorization", "proxy_authorization"):
        return True
    return any(
        folded.endswith(word) and _says_so(folded, len(folded) - len(word), word) for word in (*PASSWORDS, *SECRETS)
    )


def is_given(value: str) -> bool:
    """Whether a value is one, and no placeholder or variable."""
    return _NONE.fullmatch(value) is None and value.lower().strip("_-") not in (*PASSWORDS, *SECRETS)


def has_digit(value: str) -> bool:
    """Whether there is any digit in it."""
    return any(map(str.isdigit, value))


def values(words: Iterable[str], text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where the values of fields stand whose names end in one of some words; `lowered` is the text in lower case."""
    for word in words:
        yield from _values(word, text, lowered)


def _values(word: str, text: str, lowered: str) -> Iterator[tuple[int, int]]:
    at = lowered.find(word)
    while at >= 0:
        end = at + len(word)
        if _says_so(lowered, at, word):
            found = _value_after(text, lowered, at, end)
            if found is not None:
                span, end = found
                if span is not None:
                    yield span
        at = lowered.find(word, end)


def _says_so(lowered: str, at: int, word: str) -> bool:
    """Whether the word at a place is, with what stands before it, the name of a secret."""
    before = lowered[max(0, at - _LOOKED_BACK) : at]
    if word == "key":
        return _KEY_OF.search(before) is not None
    if word == "token":
        return _PAGE.search(before) is None
    return word not in ("pass", "pwd") or not before[-1:].isalpha() or before.endswith(("db", "pg"))


def _value_after(text: str, lowered: str, at: int, end: int) -> tuple[tuple[int, int] | None, int] | None:
    """The secret behind a name, None when it is none, and where to go on; None when nothing is assigned."""
    match = _VALUE.match(text, end)
    if match is not None:
        return _judged(text, match, lowered[at:end] in PASSWORDS), match.end()
    if lowered[max(0, at - 24) : at].rpartition(" ")[2].startswith("--"):
        match = _FLAG.match(text, end)
        if match is not None:
            return _judged(text, match, False), match.end()
    if lowered[at - 1 : at] == "<":
        match = _ELEMENT.match(text, end)
        if match is not None:
            return (match.span(1) if is_given(match[1]) else None), match.end()
    return None


def _judged(text: str, match: re.Match[str], numbers: bool) -> tuple[int, int] | None:
    """What of an assignment is a secret. `numbers`: as a password may have digits only, or none."""
    group = match.lastindex or 0
    start, end = match.span(group)
    if match.lastgroup != "bare":
        return (start, end) if end - start >= LEAST and is_given(match[group]) else None
    value = match[group].rstrip(_TRAILING)
    end = start + len(value)
    if len(value) < LEAST or not is_given(value) or _CODE.fullmatch(match[group]) is not None:
        return None
    if value.isdigit():
        return (start, end) if numbers else None
    if _NAME.match(value) is not None and is_secret_name(value) and sum(map(str.isdigit, value)) <= 1:
        return None
    spaced = match[0][-len(match[group]) - 1] in " \t*"
    if spaced and not numbers and _NAME.match(value) is not None and not has_digit(value):
        return None  # a token has digits; this is what it is compared with, or called
    if spaced and _LETTERS.match(value) is not None and _GOES_ON.match(text, match.end()) is not None:
        return None
    return start, end
