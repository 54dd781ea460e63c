"""Credentials by what they look like: all kinds, and where in a text each of them stands.

Owns the kinds that need more than a pattern; all others are lines of `vendors.txt`. Refuses to guess: what has no form
of its own is known by its name only (`named`). Pure; any thread.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

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
    """Whether 40 characters are no number in hexadecimal, and of more than one kind."""
    return any(map(str.islower, text)) and any(map(str.isupper, text)) and any(map(str.isdigit, text))


def _is_jwt(text: str) -> bool:
    """Whether the first part is a header of a token: JSON that names its algorithm."""
    head = text.partition(".")[0]
    try:
        value = json.loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return False
    return isinstance(value, dict) and "alg" in value


def _is_bot(text: str) -> bool:
    """Whether the first part of a Discord token is a number."""
    head = text.partition(".")[0]
    try:
        return urlsafe_b64decode(head + "=" * (-len(head) % 4)).isdigit()
    except (ValueError, binascii.Error):
        return False


def _private_keys(text: Text) -> Iterator[Span]:
    """Blocks from BEGIN to END. Without an END, as far as what follows looks like a key."""
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


def _passwords(text: Text) -> Iterator[Span]:
    return named.values(_present(named.PASSWORDS, text), text.whole, text.lowered)


def _present(words: Iterable[str], text: Text) -> list[str]:
    """The words whose beginning stands in a text. Several begin alike, and each look costs a scan."""
    ascii_only = text.each.isascii()
    firsts = {first for word in words if (first := word.partition(" ")[0]).isascii() or not ascii_only}
    there = {first for first in firsts if first in text.each}
    return [word for word in words if word.partition(" ")[0] in there]


def _secrets(text: Text) -> Iterator[Span]:
    return named.values(_present(named.SECRETS, text), text.whole, text.lowered)


# --- the table ---------------------------------------------------------------------------------------------------

_AWS_ID = r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
_AWS_SECRET = r"(?:(?<![A-Za-z0-9/+])|(?<=\\[bfnrt]))([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
_NEAR = r"[\s\S]{0,160}?"
_GIVEN = r"""(?:\\*["'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\*["'])?"""
"""Between the name of a header or a field and its value."""
_AWS_IDS = ("AKIA", "ASIA", "ABIA", "ACCA")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of credential.

    :name:     as the mark shows it
    :what:     what it is, for the documents
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
            *(starting(one, f"[A-Z0-9]{{16}}{_END}(?={_NEAR}{_AWS_SECRET})", _is_aws_secret) for one in _AWS_IDS),
            having("akia", f"{_AWS_SECRET}(?={_NEAR}{_AWS_ID})", _is_aws_secret),
            having("asia", f"{_AWS_SECRET}(?={_NEAR}{_AWS_ID})", _is_aws_secret),
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
        (Search(_passwords),),
    ),
    Kind(
        "named-secret",
        "what is called `secret`, `token`, `api_key`, `jeton`, `API-Schlüssel`, `clave de API`, ...",
        (Search(_secrets),),
    ),
)


def _of_vendors() -> Iterator[Kind]:
    """A kind for each that the table of forms has, in its order."""
    for name in dict.fromkeys(form.kind for form in vendors.FORMS):
        forms = [form for form in vendors.FORMS if form.kind == name]
        begins: dict[str, list[str]] = {}
        for form in forms:
            begins.setdefault(form.vendor, []).extend([f"`{form.literal}`"] if form.way in ("word", "random") else [])
        what = "; ".join(f"{vendor}: {', '.join(all_)}" if all_ else vendor for vendor, all_ in begins.items())
        yield Kind(name, what, tuple(found for form in forms if (found := vendors.search(form)) is not None))


KINDS = (*_FIRST, *(kind for kind in _of_vendors() if kind.searches), *_LAST)
"""What is known first counts where two of them meet."""
_RANKED = [(rank, search) for rank, kind in enumerate(KINDS) for search in kind.searches]
_BY_HEAD: dict[bytes, list[tuple[int, Search]]] = {}
for _rank, _search in _RANKED:
    if _search.head is not None:
        _BY_HEAD.setdefault(_search.head, []).append((_rank, _search))
_HEADS = frozenset(_BY_HEAD)
_OTHERS = [(rank, search) for rank, search in _RANKED if search.head is None]


def spans(text: str) -> list[tuple[int, int, str]]:
    """Beginning, end and kind of each credential in a text, in its order; none touches another's inside.

    They are looked for in the text as it stands, in what is left without disguises, and in base64.
    """
    found = list(_all(Text(text)))
    without = disguises.plain(text)
    if without is not None and (hidden := [one for one in _all(Text(without.text)) if one[0] < one[1]]):
        origins = without.origins((start, end) for start, end, _ in hidden)
        found += [(*origin, rank) for origin, (_, _, rank) in zip(origins, hidden, strict=True)]
    merged: list[tuple[int, int, int]] = []
    for start, end, rank in sorted(found):
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
    """The runs of base64 that say a credential, with the kind of the first of them."""
    # Most texts have none: all that is said is looked at together, and each by itself only if there is one.
    said = disguises.said(text.words)
    if not said or next(_found(Text(said)), None) is None:
        return
    for (start, end), says in disguises.coded(text.whole):
        first = min(_found(Text(says)), default=None)
        if first is not None:
            yield start, end, first[2]
