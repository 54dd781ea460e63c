"""Secrets that are recognised by their names: `password=...`, `"api_key": "..."`, `le mot de passe est ...`.

Owns the names of secrets in English, French, German and Spanish, how a value may follow a name, and which values are
clearly no secrets: variables, calls, types, placeholders. A word is no password where the sentence continues behind it.
Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_OWN_WORDS = ("pass", "pwd", "mdp", "clave")
"""Names of passwords only where no letter stands before them."""
PASSWORDS = (
    *("password", "passwd", "passphrase", "passcode", *_OWN_WORDS, "mot de passe", "mot_de_passe", "phrase secrète"),
    *("passwort", "kennwort", "contraseña", "contrasena"),
)
_FOREIGN = (
    *("clé api", "cle api", "clé_api", "cle_api", "clé d'api", "clé d’api", "clé secrète", "clé privée"),
    *("clé d'accès", "clé d’accès"),
    *("jeton", "jeton d'accès", "jeton d’accès", "schlüssel", "schluessel", "geheimnis", "clave de api", "clave api"),
    *("clave_api", "clave secreta", "clave privada", "clave de acceso", "token de acceso"),
)
SECRETS = ("secret", "token", "key", "credential", "credentials", *_FOREIGN)
LEAST = 6
"""The fewest characters of a secret in a text."""

_KEY_OF = re.compile(
    r"(?:access|account|api|auth|client|deploy|encryption|license|master|private|secret|session|shared|sign(?:ing)?)"
    r"[_. -]?\Z"
)
"""The word before `key`, when the key is secret."""
_SCHLUESSEL_OF = re.compile(r"(?:api|zugangs|zugriffs|geheim|geheimer|privater|master)[ _-]?\Z")
_PAGE = re.compile(r"(?:page|next|continuation|sync|cursor|stop|pad|eos|bos|public[_-]?key)[_-]?\Z")
"""The word before `token`, when the token gives no access."""
_LOOKED_BACK = 14

_VALUE = re.compile(
    r"""
    (?:\\*["'`]|&(?:quot|apos|\#34|\#39);)? [*_]{0,2} [ \t\u00a0\u202f]{0,8}
    (?: => | := | ={1,3} | : ) [*_]{0,2} [ \t]{0,8}
    (?:
        \\+ " ( (?: [^"\\\r\n] | \\+[^"\\\r\n] )++ )
      | [bfru]{0,2} "(?:"")? (?!") ( (?: [^"\\\r\n] | \\. )++ )
      | [bfru]{0,2} '(?:'')? (?!') ( (?: [^'\\\r\n] | \\. )++ )
      | ` ( [^`\r\n]++ )
      | &(?:quot|apos|\#34|\#39); ( [^&\r\n]++ ) &
      | (?P<bare> (?: [^\s"'`,;&<\\] | \\+ (?! [nrt"'`\\] ) | [,;&] (?! [\w.-]{1,64} [ \t]{0,3} [=:] ) )++ )
    )
    """,
    re.VERBOSE | re.IGNORECASE | re.ASCII,
)
"""An assignment behind its name, to a quoted value or to one word."""
_FLAG = re.compile(r"""[ \t]{1,4}(?:"([^"\r\n]{6,})"|'([^'\r\n]{6,})'|(?P<bare>[^\s"'`;&|<]{6,}))""")
"""The value of `--password` on a command line."""
_ELEMENT = re.compile(r">([^<>\r\n]{6,200})</")
_BLOCK = re.compile(
    r"""["']?[ \t]{0,4}:[ \t]{0,4}[|>][0-9+-]{0,2}[ \t]{0,4}\r?\n([ \t]{1,80})"""
    r"(?P<block>\S[^\r\n]*+(?:\r?\n\1[^\r\n]++)*+)"
)
"""A block of text behind a name in YAML."""
_CELL = re.compile(r"[ \t*_`]{0,4}\|[ \t]{0,40}[*_`]{0,3}(?P<told>[^\s|`*]{6,200})[*_`]{0,3}[ \t]{0,40}\|")
"""The next cell of a table."""
_TOLD = re.compile(
    r"""
    (?: [ \t]+ (?: for|of|to|on|pour|de|du|des|für|von|zum|zur|para|del ) (?: [ \t]+ [^\s:=|]{1,40} ){1,4}? )?
    (?: [ \t]+ (?: is|was|ist|war|lautet|est|était|es|era ) (?: [ \t]+ (?: now|jetzt|nun|maintenant|ahora ) )? [ \t]*:?
      | [ \t\u00a0\u202f]? [:=] )
    [ \t]+ ["'`*“”„«»‚‘]{0,2} [\u00a0\u202f]? (?P<told> [^\s"'`*“”„«»‘’<>]{6,200} )
    """,
    re.VERBOSE,
)
"""The secret in a sentence such as `the password is ...`."""
_GAPS = (" ", "\t", ":", "=", "\u00a0", "\u202f")
_NOT_TOLD = re.compile(
    r"(?:utf|sha|md|aes|rsa|ed|base|rfc|oauth|http|https|s|ipv|v|bcrypt|pbkdf|argon|scrypt|x|p|h|hs|rs|es)[_-]?[0-9].{0,24}"
    r"|[0-9]+(?:[.,][0-9]+)*[-_]?(?:[A-Za-z]+|[%+-])?|[0-9]{4}-[0-9-]+(?:T.*)?|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+|.*://.*|\W.*"
    r"|(?:[A-Za-z]+[-_./])+[0-9]{1,2}",
    re.IGNORECASE,
)
"""Values with digits that are no secrets: algorithms, quantities, days, names of variables, places."""

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
"""Values that stand for a missing secret."""
_NAME = re.compile(r"[A-Za-z_][\w-]*\Z", re.ASCII)
_CODE = re.compile(
    r"""
    [&*@]?[A-Za-z_]\w*(?:(?:\.|::|->|\?\.)\w+)*[(\[{]                  # a call, an element
      (?: [^)\]}]* | .*[)\]}](?:\.\w+)*[(\[{]?[;,.:]* )
    | [A-Za-z_]++(?:[0-9][A-Za-z_]*+)?                                    # settings.api_key
      (?: (?:\.|::|->|\?\.) [A-Za-z_]++ (?:[0-9][A-Za-z_]*+)? )+
    | (?:https?|arn|vault|op|env|file|ref|ssm)://?\S* | arn:\S*           # the place of a secret
    | (?:~|\.{1,2})?(?:/[A-Za-z_.-]{1,40})+                               # a path
    """,
    re.VERBOSE | re.ASCII | re.DOTALL,
)
_LETTERS = re.compile(r"[A-Za-z][A-Za-z'-]*\Z")
_GOES_ON = re.compile(r"[ \t]+[A-Za-z(]")
_TRAILING = ".,;:)]}>"
_CAMEL = re.compile(r"[\W_]+")


def is_secret_name(name: str) -> bool:
    """Whether a field of this name holds a credential: `apiKey`, `X-Auth-Token`, and not `max_tokens`."""
    folded = _CAMEL.sub("_", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()).strip("_")
    if folded in ("authorization", "proxy_authorization"):
        return True
    return any(
        folded.endswith(end) and _says_so(folded, len(folded) - len(end), word) for end, word in _ENDINGS.items()
    )


_ENDINGS = {_CAMEL.sub("_", word): word for word in (*PASSWORDS, *SECRETS)}
"""How the name of a secret field may end, and the name of the secret in it."""


def is_given(value: str) -> bool:
    """Whether a value is no placeholder and no variable."""
    return _NONE.fullmatch(value) is None and value.lower().strip("_-") not in (*PASSWORDS, *SECRETS)


def is_key(value: str) -> bool:
    """Whether a value can be a key: it has a digit, and is no placeholder, no variable and no call."""
    return has_digit(value) and is_given(value) and _CODE.fullmatch(value) is None


def has_digit(value: str) -> bool:
    """Whether a value has a digit."""
    return any(map(str.isdigit, value))


def values(words: Iterable[str], text: str, lowered: str) -> Iterator[tuple[int, int]]:
    """Where the values of fields stand whose names end in one of these words; `lowered` is the text in lower case."""
    for word in words:
        at = lowered.find(word)
        while at >= 0:
            end = at + len(word)
            if not lowered[end : end + 1].isalnum() and _says_so(lowered, at, word):
                span, end = _value_after(text, lowered, at, end)
                if span is not None:
                    yield span
            at = lowered.find(word, end)


def _says_so(lowered: str, at: int, word: str) -> bool:
    """Whether the word at a place, with the text before it, is the name of a secret."""
    before = lowered[max(0, at - _LOOKED_BACK) : at]
    if word == "key":
        return _KEY_OF.search(before) is not None
    if word in ("schlüssel", "schluessel"):
        return _SCHLUESSEL_OF.search(before) is not None
    if word == "secret":
        return not before.endswith(":")  # `...:secret` is a kind of resource
    if word == "token":
        return _PAGE.search(before) is None
    return word not in _OWN_WORDS or not before[-1:].isalpha() or before.endswith(("db", "pg"))


def _value_after(text: str, lowered: str, at: int, end: int) -> tuple[tuple[int, int] | None, int]:
    """The secret behind the name in `[at, end)`, or None; and the place from which to search on."""
    password = lowered[at:end] in PASSWORDS
    near = text[end : end + 6]
    if ":" in near and (match := _BLOCK.match(text, end)):
        return _block(match), match.end()
    if match := _VALUE.match(text, end):
        return _judged(text, match, password), match.end()
    is_option = lowered[max(0, at - 24) : at].rpartition(" ")[2].startswith("--")
    if is_option and (match := _FLAG.match(text, end)):
        return _judged(text, match, False), match.end()
    if lowered[at - 1 : at] == "<" and (match := _ELEMENT.match(text, end)):
        return _judged(text, match, password), match.end()
    match = _CELL.match(text, end) if "|" in near else _TOLD.match(text, end) if near[:1] in _GAPS else None
    # The search goes on before this value: a value that is no secret may hold another name.
    return (_told(match, password), match.start("told")) if match is not None else (None, end)


def _block(match: re.Match[str]) -> tuple[int, int] | None:
    value = match["block"].rstrip()
    prose = "\n" in value and any(" " in line.strip() for line in value.splitlines())
    if prose or not is_given(value) or len(value) < LEAST:
        return None
    return match.start("block"), match.start("block") + len(value)


def _told(match: re.Match[str], password: bool) -> tuple[int, int] | None:
    """The secret in a cell or a sentence: it has digits and letters, or is a password with signs, or of digits only."""
    value = match["told"].rstrip(_TRAILING + "!?")
    if len(value) < LEAST or not is_given(value) or _CODE.fullmatch(value) is not None or _is_name(value):
        return None
    mixed = has_digit(value) and any(map(str.isalpha, value)) and _NOT_TOLD.fullmatch(value) is None
    signed = password and any(map(str.isalpha, value)) and any(sign in value[1:] for sign in "!@#$%^&*+?")
    number = password and value.isdecimal()
    return (match.start("told"), match.start("told") + len(value)) if mixed or signed or number else None


def _judged(text: str, match: re.Match[str], password: bool) -> tuple[int, int] | None:
    """The secret in an assignment. A password may have digits only, or none; any other secret has some, not only."""
    group = match.lastindex or 0
    start, end = match.span(group)
    bare = match.lastgroup == "bare"
    value = match[group].rstrip(_TRAILING) if bare else match[group]
    if len(value) < LEAST or not is_given(value) or not (password or has_digit(value)) or _is_name(value):
        return None
    if not bare:
        return start, end
    if any(map(_CODE.fullmatch, (match[group], value))) or (value.isdigit() and not password):
        return None
    spaced = match[0][-len(match[group]) - 1] in " \t*"
    if spaced and _LETTERS.match(value) is not None and _GOES_ON.match(text, match.end()) is not None:
        return None
    return start, start + len(value)


def _is_name(value: str) -> bool:
    """Whether a value is itself the name of a secret, such as a variable."""
    return _NAME.match(value) is not None and is_secret_name(value) and sum(map(str.isdigit, value)) <= 1
