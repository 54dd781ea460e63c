"""One word as a fact, and the other ways of writing the same one.

Owns the keys that facts are compared by: equal facts have a key in common, whatever their form. Refuses nothing: a word
without a fact gives none. Pure; any thread may call it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

_EXTENSIONS = (
    "bash bat bin c cc cfg cjs conf cpp cs css csv db diff dll doc docx env exe gif go gradle gz h hpp htm html ico "
    "ini ipynb java jpeg jpg js json jsonl jsx kt lock log lua md mjs ndjson parquet patch pdf php pl png ppt pptx "
    "proto ps1 py pyi pyx rb rs rst scss sh sql sqlite sqlite3 svg swift tar tf toml ts tsv tsx txt vue wasm whl xls "
    "xlsx xml yaml yml zip zsh"
)

_PIECE = re.compile(r"(?P<url>[A-Za-z][A-Za-z0-9+.-]*://[^\s<>()\[\]\"'`|*]+)|#?(?:[\w./@+~:-]|(?<=[0-9]),(?=[0-9]))+")
MAYBE = re.compile(r"[0-9/]|\.[A-Za-z]")
_YMD = re.compile(r"([0-9]{4})([-/.])([0-9]{1,2})\2([0-9]{1,2})")
_DMY = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2([0-9]{4})")
_YM = re.compile(r"((?:19|20)[0-9]{2})-(0[1-9]|1[0-2])")
_STAMP = re.compile(
    r"([0-9]{4})-?([0-9]{2})-?([0-9]{2})[Tt]([0-9]{2}):?([0-9]{2})(?::?([0-9]{2})(?:[.,][0-9]+)?)?(?:[Zz]|[+-][0-9:]{2,5})?"
)
_STAMP_INSIDE = re.compile(
    r"(?<![0-9])([0-9]{4})(-?)([0-9]{2})\2([0-9]{2})(?:T([0-9]{2}):?([0-9]{2}):?([0-9]{2})?)?(?![0-9])"
)
_TIME = re.compile(r"([0-9]{1,2})[:h]([0-9]{2})(?::([0-9]{2})(?:\.[0-9]+)?)?[Zz]?")
_UNITS = (
    "%|ns|us|µs|μs|ms|s|sec|secs|min|mins|h|hr|hrs|d|j|o|ko|mo|go|to|b|kb|mb|gb|tb|kib|mib|gib|tib|hz|khz|mhz|ghz|px|pt|em|rem"
    "|x|km|m|cm|mm|kg|g|mg|w|kw|v|st|nd|rd|th|er|re|e|è|ème|eme|nde?|rpm|rps|qps|fps|loc"
)
_NUMBER = re.compile(rf"([0-9]+(?:,[0-9]{{3}})+(?:\.[0-9]+)?|[0-9]+(?:[.,][0-9]+)?)(?:{_UNITS})?", re.I)
_MANY = re.compile(r"([0-9]+(?:[.,][0-9]+)?)([kKM])")
_VERSION = re.compile(r"[vV]?([0-9]+(?:\.[0-9]+)+)((?:[-+.]?[A-Za-z][\w.+-]*)?)")
_RELEASE = re.compile(r"[vV]([0-9]+)")
_REFERENCE = re.compile(r"#([0-9]+)")
_FILE = re.compile(rf"[\w.+@~-]*[\w+~-]\.(?:{'|'.join(_EXTENSIONS.split())})", re.I)
_PATH = re.compile(r"[~.]{0,2}/?[\w.@+~-]+(?:/+[\w.@+~-]+)*/?")
_ISSUE_URL = re.compile(r"/(?:issues|pull|pulls|merge_requests|-/issues)/([0-9]+)")
_TAIL = ".,:;-+@~"
"""What may follow a fact and is no part of it."""
_MANY_SEGMENTS = 8
"""Up to here any run of segments is a path within the path; beyond, only its beginnings and ends are."""
_TOO_MANY_SEGMENTS = 64
"""From here on a path is only found as a whole: its parts would be quadratic."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A fact as it stands in a text.

    :text:     how it is written there
    :readings: what has to be known for it to be known: all keys of any one of them
    :says:     every key that is known once this is: what it says, and the shorter things within it
    """

    text: str
    readings: tuple[tuple[str, ...], ...]
    says: tuple[str, ...]


# --- one word ---------------------------------------------------------------------------------------------------------


def in_word(word: str) -> Iterator[Fact]:
    """The facts in a word, which holds no blank."""
    for match in _PIECE.finditer(word):
        if match["url"]:
            yield _url(match[0].rstrip("/.,;:!?_~"))
        else:
            in_code = word[match.start() - 1 : match.start()] == "`" == word[match.end() : match.end() + 1]
            yield from _in_piece(match[0].rstrip(_TAIL).lstrip(":,-+@"), in_code)


def _without_emphasis(piece: str) -> str:
    """`_60_` is 60 in italics, and so is `_60` in `_60 s_`; the name of a file may begin with an underscore."""
    piece = piece.rstrip(f"_{_TAIL}")
    return piece if _FILE.fullmatch(piece) else piece.lstrip("_")


def _in_piece(piece: str, in_code: bool) -> Iterator[Fact]:
    """A piece is one fact, or it is taken apart at its colons, slashes and hyphens."""
    if not MAYBE.search(piece):
        return
    if "_" in piece:
        piece = _without_emphasis(piece)
    for read in _ONE_WORD:
        fact = read(piece)
        if fact is not None:
            yield fact
            return
    path = _path(piece, in_code)
    if path is not None:
        yield path
        if path.readings:
            return
    separator = next((mark for mark in ":/,@#" if mark in piece), None)
    if separator is None:
        yield from _identifier(piece)
        return
    for part in piece.split(separator):
        yield from _in_piece(part.strip(_TAIL), in_code)


def _identifier(piece: str) -> Iterator[Fact]:
    """Letters and digits in one: `qwen3-2507`. With digits apart from letters it is several: `3-day`, `2024-2026`."""
    if not any(character in "0123456789" for character in piece):
        return
    parts = [part for part in piece.split("-") if part]
    if len(parts) > 1 and parts[0].isdigit() and all(part.isdigit() or part.isalpha() for part in parts):
        for part in parts:
            yield from _in_piece(part, False)
        return
    inside = [key for match in _STAMP_INSIDE.finditer(piece) for key in _stamp_keys(match)]
    yield one(piece, f"i:{piece.casefold()}", *inside)


def _read_stamp(piece: str) -> Fact | None:
    match = _STAMP.fullmatch(piece)
    if match is None:
        return None
    year, month, day, hour, minute, second = match.groups()
    if not _is_date(int(month), int(day)):
        return None
    date, times = date_keys(int(year), int(month), int(day)), _time_keys(hour, minute, second)
    return Fact(piece, ((date[0], times[0]),), (*date, *times))


def _read_date(piece: str) -> Fact | None:
    if match := _YMD.fullmatch(piece):
        month, day = int(match[3]), int(match[4])
        return one(piece, *date_keys(int(match[1]), month, day)) if _is_date(month, day) else None
    if match := _DMY.fullmatch(piece):
        year, first, second = int(match[4]), int(match[1]), int(match[3])
        dates = [
            date_keys(year, month, day) for month, day in ((second, first), (first, second)) if _is_date(month, day)
        ]
        return (
            Fact(piece, tuple((date[0],) for date in dates), tuple(k for date in dates for k in date))
            if dates
            else None
        )
    if match := _YM.fullmatch(piece):
        return one(piece, f"ym:{match[1]}-{match[2]}", f"n:{match[1]}")
    return None


def _read_time(piece: str) -> Fact | None:
    match = _TIME.fullmatch(piece)
    if match is None or int(match[1]) > 24 or int(match[2]) > 59:
        return None
    return one(piece, *_time_keys(match[1], match[2], match[3]))


def _read_number(piece: str) -> Fact | None:
    if match := _MANY.fullmatch(piece):
        digits, by = match[1].replace(",", "."), 1_000 if match[2] in "kK" else 1_000_000
        whole, _, fraction = digits.partition(".")
        zeros = len(str(by)) - 1
        if len(fraction) <= zeros:
            return one(piece, number_key(whole + fraction.ljust(zeros, "0")))
    match = _NUMBER.fullmatch(piece)
    if match is None:
        return None
    digits = match[1]
    readings = (
        [number_key(digits.replace(",", ""))] if re.fullmatch(r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?", digits) else []
    )
    if digits.count(",") == 1 and "." not in digits:
        readings.append(number_key(digits.replace(",", ".")))
    if "," not in digits:
        readings.append(number_key(digits))
    if not readings:
        return None
    compact = re.fullmatch(r"((?:19|20)[0-9]{2})([0-9]{2})([0-9]{2})", digits)
    if compact and _is_date(int(compact[2]), int(compact[3])):
        date = date_keys(*map(int, compact.groups()))
        return Fact(piece, ((readings[0],), (date[0],)), (readings[0], *date))
    return Fact(piece, tuple((key,) for key in readings), tuple(readings))


def _read_version(piece: str) -> Fact | None:
    if match := _RELEASE.fullmatch(piece):
        return Fact(piece, ((f"v:{match[1]}",),), (f"v:{match[1]}", number_key(match[1])))
    match = _VERSION.fullmatch(piece)
    if match is None:
        return None
    if not match[2]:
        return one(piece, f"n:{match[1]}")
    return one(piece, f"n:{match[1]}{match[2].casefold()}", f"n:{match[1]}")


def _read_reference(piece: str) -> Fact | None:
    match = _REFERENCE.fullmatch(piece)
    return one(piece, f"r:{match[1]}", number_key(match[1])) if match else None


_ONE_WORD: tuple[Callable[[str], Fact | None], ...] = (
    _read_reference,
    _read_stamp,
    _read_date,
    _read_time,
    _read_number,
    _read_version,
)


# --- paths and addresses ----------------------------------------------------------------------------------------------


def _path(piece: str, in_code: bool) -> Fact | None:
    """A path; without readings where slashes may just as well mean `or`, which then only makes it known."""
    if not _PATH.fullmatch(piece):
        return None
    segments = [segment for segment in piece.split("/") if segment.strip(".~")]
    if not segments or all(segment.isdigit() for segment in segments):
        return None
    if "/" not in piece:
        return one(piece, *_path_keys(segments)) if _FILE.fullmatch(piece) else None
    certain = (
        in_code
        or piece.startswith(("/", "./", "../", "~/"))
        or _FILE.fullmatch(segments[-1]) is not None
        or (len(segments) > 2 and any(mark in piece for mark in "._-"))
    )
    says = _path_keys(segments)
    return Fact(piece, ((says[0],),) if certain else (), says)


def _path_keys(segments: list[str]) -> tuple[str, ...]:
    """The path, the paths within it, and a date in its name."""
    count = len(segments)
    if count <= _MANY_SEGMENTS:
        spans = [(start, stop) for start in range(count) for stop in range(count, start, -1)]
    elif count > _TOO_MANY_SEGMENTS:
        spans = [(0, count)]
    else:
        spans = [(0, count), *((start, count) for start in range(1, count)), *((0, stop) for stop in range(1, count))]
    stamps = [key for segment in segments for match in _STAMP_INSIDE.finditer(segment) for key in _stamp_keys(match)]
    return (*("p:" + "/".join(segments[start:stop]) for start, stop in spans), *stamps)


def _url(address: str) -> Fact:
    """An address; what makes it known also makes known the path and the issue in it."""
    bare = re.split(r"[?#]", address, maxsplit=1)[0].rstrip("/")
    segments = [segment for segment in bare.partition("://")[2].split("/") if segment]
    issues = [key for number in _ISSUE_URL.findall(bare) for key in (f"r:{number}", number_key(number))]
    return one(address, f"u:{address}", f"u:{bare}", *(_path_keys(segments) if segments else ()), *issues)


# --- keys -------------------------------------------------------------------------------------------------------------


def one(text: str, key: str, *within: str) -> Fact:
    """A fact with one reading."""
    return Fact(text, ((key,),), (key, *within))


def number_key(digits: str) -> str:
    """Zeros before a number say nothing, those behind its point do: `3.0` is a version as often as a number."""
    whole, point, fraction = digits.partition(".")
    return f"n:{whole.lstrip('0') or '0'}{point}{fraction}"


def _is_date(month: int, day: int) -> bool:
    return 1 <= month <= 12 and 1 <= day <= 31


def date_keys(year: int, month: int, day: int) -> tuple[str, ...]:
    return (
        f"d:{year:04}-{month:02}-{day:02}",
        f"ym:{year:04}-{month:02}",
        f"md:{month:02}-{day:02}",
        f"n:{year}",
    )


def _time_keys(hour: str, minute: str, second: str | None) -> tuple[str, ...]:
    short = f"t:{int(hour):02}:{minute}"
    return (short,) if second in (None, "00") else (f"{short}:{second}", short)


def _stamp_keys(match: re.Match[str]) -> tuple[str, ...]:
    year, _, month, day, hour, minute, second = match.groups()
    if not _is_date(int(month), int(day)):
        return ()
    times = _time_keys(hour, minute, second) if hour else ()
    return (*date_keys(int(year), int(month), int(day)), *times)
