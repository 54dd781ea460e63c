"""All kinds of credentials, and where in a text they stand.

Owns the kinds that need more than a pattern; the others are lines of `vendors.txt`. Refuses to guess: a secret without
a form of its own is recognised by its name only (`named`). Pure; any thread.
"""

from __future__ import annotations

import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial

from livememfs.text.privacy import disguises, named, vendors
from livememfs.text.privacy.searches import Search, Span, Text, following, having, is_random, starting

_END = "(?![A-Za-z0-9])"


# --- what a pattern alone cannot tell ----------------------------------------------------------------------------

_MARKS = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_TORN = re.compile(
    r"(?:(?:\\[rn]|\s){1,4}[A-Za-z][A-Za-z-]{1,30}: [^\r\n\\]{1,200})*"  # the fields of an encrypted key
    r"(?:[^A-Za-z0-9+/=]{1,16}(?:[0-9]{1,6}[^A-Za-z0-9+/=]{1,4})?[A-Za-z0-9+/=]{16,}+)+"
    r"(?:[^A-Za-z0-9+/=]{1,16}[A-Za-z0-9+/]{1,64}={1,2})?"
)


def _is_aws_secret(text: str) -> bool:
    """Whether 40 characters have letters of both cases and digits, unlike a hexadecimal number."""
    return any(map(str.islower, text)) and any(map(str.isupper, text)) and any(map(str.isdigit, text))


def _is_jwt(text: str) -> bool:
    """Whether the first part is the header of a token: JSON that names an algorithm."""
    try:
        value = json.loads(_first_part(text))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and "alg" in value


def _is_bot(text: str) -> bool:
    """Whether the first part of a Discord token is a number."""
    try:
        return _first_part(text).isdigit()
    except ValueError:
        return False


def _first_part(token: str) -> bytes:
    """The text before the first dot, decoded from base64. Raises ValueError."""
    head = token.partition(".")[0]
    return urlsafe_b64decode(head + "=" * (-len(head) % 4))


def _private_keys(text: Text) -> Iterator[Span]:
    """Blocks from BEGIN to END. A block without an END ends where the text no longer looks like a key."""
    begun: re.Match[str] | None = None
    for mark in _MARKS.finditer(text.whole):
        if mark[1] == "BEGIN":
            if begun is not None:
                yield from _torn(text.whole, begun, mark.start())
            begun = mark
        elif begun is not None:
            yield begun.start(), mark.end()
            begun = None
    if begun is not None:
        yield from _torn(text.whole, begun, len(text.whole))


def _torn(text: str, begun: re.Match[str], end: int) -> Iterator[Span]:
    body = _TORN.match(text, begun.end(), end)
    if body is not None:
        yield begun.start(), body.end()


def _called(names: Sequence[str], text: Text) -> Iterator[Span]:
    """The values of fields with one of these names. First words are searched once each: a search scans the text."""
    ascii_only = text.each.isascii()
    firsts = {first for name in names if (first := name.partition(" ")[0]).isascii() or not ascii_only}
    there = {first for first in firsts if first in text.each}
    return named.values([name for name in names if name.partition(" ")[0] in there], text.whole, text.lowered)


# --- the table ---------------------------------------------------------------------------------------------------

_AWS_IDS = ("AKIA", "ASIA", "ABIA", "ACCA")
_AWS_ID = rf"(?:{'|'.join(_AWS_IDS)})[A-Z0-9]{{16}}{_END}"
_AWS_SECRET = r"(?:(?<![A-Za-z0-9/+])|(?<=\\[bfnrt]))([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
_NEAR = r"[\s\S]{0,160}?"
_GIVEN = r"""(?:\\*["'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\*["'])?"""
"""What stands between the name of a header or a field and its value."""


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of credential.

    :name:     the name in the mark
    :what:     a description, for the documentation
    :searches: how it is found
    """

    name: str
    what: str
    searches: tuple[Search, ...]


_FIRST = (
    Kind("private-key", "PEM, SSH and PGP private keys, whole or cut off", (Search(_private_keys, word="private"),)),
    Kind(
        "aws-secret-key",
        "AWS secret access key, by its name or beside an access key id",
        (
            following("secret", r"[_-]?(?:access)?[_-]?key" + _GIVEN + r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"),
            *(starting(head, f"[A-Z0-9]{{16}}{_END}(?={_NEAR}{_AWS_SECRET})", _is_aws_secret) for head in _AWS_IDS),
            *(having(head, f"{_AWS_SECRET}(?={_NEAR}{_AWS_ID})", _is_aws_secret) for head in ("akia", "asia")),
        ),
    ),
)
_LAST = (
    Kind(
        "discord-token",
        "token of a Discord bot",
        (
            having(
                ".",
                r"[MNO](?:(?<![A-Za-z0-9_-].)|(?<=\\[bfnrt].))[A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,64}",
                _is_bot,
            ),
        ),
    ),
    Kind(
        "jwt",
        "JSON web token, signed or not",
        tuple(
            starting(head, r"[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){2,4}", _is_jwt, own=True)
            for head in ("eyJ", "eyA", "ewo")
        ),
    ),
    Kind(
        "url-password",
        "password in a URL; the user and the host stay",
        (following("://", r"""[^\s/?#:@"'<>]{0,200}:([^\s/?"'<>]{1,400})@(?=[\w\[.%$-])""", named.is_given),),
    ),
    Kind(
        "authorization-header",
        "what an `Authorization` header says, and what follows `Bearer`",
        (
            following(
                "authorization",
                _GIVEN + r"""(?:bearer|basic|token|digest)[ \t]{1,4}([^\s"'`,;\\]{6,})""",
                named.is_given,
            ),
            following("authorization", _GIVEN + r"""(?:[A-Za-z-]{2,20}[ \t]{1,4})?([^\s"'`,;\\]{16,})""", is_random),
            following("bearer", r"[ \t]{1,4}([A-Za-z0-9._~+/=-]{20,})", named.has_digit),
        ),
    ),
    Kind(
        "api-key-header",
        "headers such as `X-Api-Key` and `X-Auth-Token`",
        tuple(following(header, _GIVEN + r"""([^\s"'`,;\\]{6,})""", named.is_key) for header in ("api-key", "-token")),
    ),
    Kind(
        "connection-string",
        "password in a connection string such as `Server=...;Password=...;`",
        tuple(
            following(name, r"""[ \t]{0,2}=[ \t]{0,2}([^;"'\r\n]{3,})""", named.is_given)
            for name in (";password", "; password", ";pwd", "; pwd")
        ),
    ),
    Kind(
        "password",
        "what is called `password`, `PGPASSWORD`, `passphrase`, `mot de passe`, `Kennwort`, `contraseña`, ...",
        (Search(partial(_called, named.PASSWORDS)),),
    ),
    Kind(
        "named-secret",
        "what is called `secret`, `token`, `api_key`, `jeton`, `API-Schlüssel`, `clave de API`, ...",
        (Search(partial(_called, named.SECRETS)),),
    ),
)


def _of_vendors() -> Iterator[Kind]:
    """The kinds of the table of forms, in its order."""
    for name in dict.fromkeys(form.kind for form in vendors.FORMS):
        forms = [form for form in vendors.FORMS if form.kind == name]
        begins: dict[str, list[str]] = {}
        for form in forms:
            begins.setdefault(form.vendor, []).extend([f"`{form.literal}`"] if form.way in ("word", "random") else [])
        what = "; ".join(f"{vendor}: {', '.join(all_)}" if all_ else vendor for vendor, all_ in begins.items())
        yield Kind(name, what, tuple(search for form in forms if (search := vendors.search(form)) is not None))


KINDS = (*_FIRST, *(kind for kind in _of_vendors() if kind.searches), *_LAST)
"""Where two kinds overlap in a text, the one that comes first here gives the mark."""
_RANKED = [(rank, search) for rank, kind in enumerate(KINDS) for search in kind.searches]
_BY_HEAD: dict[bytes, list[tuple[int, Search]]] = {}
for _rank, _search in _RANKED:
    if _search.head is not None:
        _BY_HEAD.setdefault(_search.head, []).append((_rank, _search))
_HEADS = frozenset(_BY_HEAD)
_OTHERS = [(rank, search) for rank, search in _RANKED if search.head is None]


def spans(text: str) -> list[tuple[int, int, str]]:
    """Beginning, end and kind of each credential in a text, in order and without overlaps.

    They are searched in the text as it stands, in the text without disguises, and in base64.
    """
    ranked = list(_all(Text(text)))
    without = disguises.plain(text)
    if without is not None and (hidden := [each for each in _all(Text(without.text)) if each[0] < each[1]]):
        origins = without.origins((start, end) for start, end, _ in hidden)
        ranked += [(*origin, rank) for origin, (_, _, rank) in zip(origins, hidden, strict=True)]
    merged: list[tuple[int, int, int]] = []
    for start, end, rank in sorted(ranked):
        if merged and start < merged[-1][1]:
            before = merged[-1]
            merged[-1] = before[0], max(before[1], end), min(before[2], rank)
        else:
            merged.append((start, end, rank))
    return [(start, end, KINDS[rank].name) for start, end, rank in merged]


def _all(text: Text) -> Iterator[tuple[int, int, int]]:
    yield from _found(text)
    yield from _in_base64(text)


def _found(text: Text) -> Iterator[tuple[int, int, int]]:
    """Each credential of a text, with the rank of its kind."""
    worth = [
        search for head in _HEADS.intersection(text.heads) for search in _BY_HEAD[head] if search[1].may_find(text)
    ]
    worth += [search for search in _OTHERS if search[1].may_find(text)]
    return ((*span, rank) for rank, search in worth for span in search.run(text))


def _in_base64(text: Text) -> Iterator[tuple[int, int, int]]:
    """The runs of base64 that hold a credential, with the rank of the first one in each."""
    # Most texts have none: all decoded text is searched at once, and each run by itself only where there is a hit.
    together = disguises.said(text.words)
    if not together or next(_found(Text(together)), None) is None:
        return
    for (start, end), decoded in disguises.coded(text.whole):
        first = min(_found(Text(decoded)), default=None)
        if first is not None:
            yield start, end, first[2]
