"""The facts in one word.

Owns numbers, versions, references and identifiers, and the order in which all forms are tried. Refuses nothing: a word
may have no fact. Pure; any thread may call it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from decimal import Decimal

from livememfs.text.facts.dates import read_compact, read_date, read_stamp, read_time, stamps_in
from livememfs.text.facts.fact import WORD, Fact, bare_key, number_key, one
from livememfs.text.facts.paths import FILE, path, url, word_keys

_PIECE = re.compile(r"(?P<url>[A-Za-z][A-Za-z0-9+.-]*://[^\s<>()\[\]\"'`|*]+)|#?(?:[\w./@+~:-]|(?<=[0-9]),(?=[0-9]))+")
MAYBE = re.compile(r"[0-9/]|\.[A-Za-z]")
_UNITS = "x|m|pt|em|rem|v|st|nd|rd|th|er|re|e|è|ème|eme|nde?|rpm|rps|qps|fps|loc"
"""What may stand behind a number without making it a quantity."""
_NUMBER = re.compile(rf"([0-9]+(?:,[0-9]{{3}})+(?:\.[0-9]+)?|[0-9]+(?:[.,][0-9]+)?)(?:{_UNITS})?", re.I)
_GROUPED = re.compile(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?")
_MANY = re.compile(r"([0-9]+(?:[.,][0-9]+)?)([kKM])")
_POWER = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,9})?[eE]-?[0-9]{1,2}")
_VERSION = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)+)((?:[-+.]?[A-Za-z][\w.+-]*)?)")
_RELEASE = re.compile(r"[vV]([0-9]+)")
_ANY_RELEASE = re.compile(r"([vV]?)([0-9]+(?:\.[0-9]+)*)\.[xX]")
_REFERENCE = re.compile(r"#([0-9]+)")
_HASH = re.compile(r"(?=[a-f]*[0-9])(?=[0-9]*[a-f])[0-9a-f]{8,64}")
_SHORT_HASHES = (7, 8, 10, 12)
_TOLD_BY_NUMBER = 3
"""A reference with so many digits has a source if its number has one; `12` may be any number."""
_DIGITS = re.compile(r"0*([0-9]+)")
_TAIL = ".,:;-+@~"
"""Characters that may follow a fact and are no part of it."""


def in_word(word: str) -> Iterator[Fact]:
    """The facts in a word, which holds no blank."""
    for match in _PIECE.finditer(word):
        if match["url"]:
            yield url(match[0].rstrip("/.,;:!?_~"))
        else:
            in_code = word[match.start() - 1 : match.start()] == "`" == word[match.end() : match.end() + 1]
            yield from _in_piece(match[0].rstrip(_TAIL).lstrip(":,-+@"), in_code)


def _without_emphasis(piece: str) -> str:
    """`_60_` is 60 in italics, and so is `_60` in `_60 s_`; but a file name may begin with an underscore."""
    piece = piece.rstrip(f"_{_TAIL}")
    return piece if FILE.fullmatch(piece) else piece.lstrip("_")


def _in_piece(piece: str, in_code: bool) -> Iterator[Fact]:
    """The facts in a piece: it is one fact, or it is split at its colons, slashes and hyphens."""
    if not MAYBE.search(piece):
        return
    if "_" in piece:
        piece = _without_emphasis(piece)
    if piece[:1] in ("~", ".") and piece[1:2].isdigit():
        piece = piece[1:] if piece[0] == "~" else f"0{piece}"
    for read in _ONE_WORD:
        fact = read(piece)
        if fact is not None:
            yield fact
            return
    named = path(piece, in_code)
    if named is not None:
        yield named
        if named.readings:
            return
    separator = next((mark for mark in ":/,@#" if mark in piece), None)
    if separator is None:
        yield from _identifier(piece)
        return
    for part in piece.split(separator):
        yield from _in_piece(part.strip(_TAIL), in_code)


def _identifier(piece: str) -> Iterator[Fact]:
    """An identifier of letters and digits: `qwen3-2507`. `3-day` and `2024-2026` are split at the hyphen."""
    if not any(character in "0123456789" for character in piece):
        return
    parts = [part for part in piece.split("-") if part]
    if len(parts) > 1 and (
        all(any(read(part) for read in _ONE_WORD) for part in parts)
        or (parts[0].isdigit() and all(part.isdigit() or part.isalpha() for part in parts))
    ):
        for part in parts:
            yield from _in_piece(part, False)
        return
    folded = piece.casefold()
    key, bare = f"i:{folded}", identifier_key(piece)
    short = [f"i:{folded[:length]}" for length in _SHORT_HASHES] if _HASH.fullmatch(folded) else []
    readings: list[tuple[str, ...]] = [(key,), (bare,)]
    if words := word_keys(piece):
        readings.append(words)
    mixed = tuple(f"i:{part.casefold()}" for part in parts if not part.isalpha())
    if 0 < len(mixed) < len(parts):
        readings.append(mixed)  # `S3-only` needs a source for S3
    yield Fact(piece, tuple(readings), (key, bare, *short, *stamps_in(piece)))


def identifier_key(name: str) -> str:
    """A name without case, punctuation and the zeros before its numbers: `ADR-012` is `adr 12`."""
    letters = "".join(character for character in name.casefold() if character.isalnum() or character == ".")
    return f"x:{_DIGITS.sub(lambda match: match[1], letters)}"


def _read_number(piece: str) -> Fact | None:
    if match := _MANY.fullmatch(piece):
        digits, by = match[1].replace(",", "."), 1_000 if match[2] in "kK" else 1_000_000
        whole, _, fraction = digits.partition(".")
        zeros = len(str(by)) - 1
        if len(fraction) <= zeros:
            digits = whole + fraction.ljust(zeros, "0")
            return one(piece, number_key(digits), bare_key(digits))
    if _POWER.fullmatch(piece):
        digits = f"{Decimal(piece):f}"
        return one(piece, number_key(digits), bare_key(digits))
    match = _NUMBER.fullmatch(piece)
    if match is None:
        return None
    digits = match[1]
    readings = [digits.replace(",", "")] if _GROUPED.fullmatch(digits) else []
    if digits.count(",") == 1 and "." not in digits:
        readings.append(digits.replace(",", "."))
    if "," not in digits:
        readings.append(digits)
    if not readings:
        return None
    says = [key(reading) for reading in readings for key in (number_key, bare_key)]
    if "." in digits:
        says.append(f"v:{digits.partition('.')[0]}")
    day = read_compact(digits)
    return Fact(piece, (*((number_key(reading),) for reading in readings), *((day[:1],) if day else ())), (*says, *day))


def _read_version(piece: str) -> Fact | None:
    """A version, which also states the shorter versions it begins with."""
    if match := _RELEASE.fullmatch(piece):
        return Fact(piece, ((f"v:{match[1]}",),), (f"v:{match[1]}", number_key(match[1])))
    if match := _ANY_RELEASE.fullmatch(piece):
        key = number_key(match[2]) if "." in match[2] else f"v:{match[2]}"
        return one(piece, key, f"v:{match[2].partition('.')[0]}")
    match = _VERSION.fullmatch(piece)
    if match is None:
        return None
    whole = f"n:{match[1]}{match[2].casefold()}"
    says = (whole, *(f"n:{shorter}" for shorter in prefixes(match[1])), f"v:{match[1].partition('.')[0]}")
    if not match[2]:
        return Fact(piece, ((whole,),), says)
    suffix = match[2].strip("-.+").casefold()  # `0.8.0rc2`: a source may state 0.8.0 and rc2
    apart = f"i:{suffix}" if any(map(str.isdigit, suffix)) else f"{WORD}{suffix}"
    return Fact(piece, ((whole,), (f"n:{match[1]}", apart)), says)


def prefixes(version: str) -> list[str]:
    """The version and the shorter ones it begins with, of at least two numbers each."""
    numbers = version.split(".")
    return [".".join(numbers[:length]) for length in range(len(numbers), 1, -1)]


def _read_reference(piece: str) -> Fact | None:
    match = _REFERENCE.fullmatch(piece)
    if match is None:
        return None
    by_number = ((bare_key(match[1]),),) if len(match[1]) >= _TOLD_BY_NUMBER else ()
    return Fact(piece, ((f"r:{match[1]}",), *by_number), (f"r:{match[1]}", number_key(match[1])))


_ONE_WORD: tuple[Callable[[str], Fact | None], ...] = (
    _read_reference,
    read_stamp,
    read_date,
    read_time,
    _read_number,
    _read_version,
)
