"""Paths, file names and addresses as facts, and the words that names are made of.

Owns what is a path in a text, and the shorter ones within it. Refuses to take `and/or` for one, unless it is marked as
code. Pure, linear in the text; any thread may call it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from livememfs.text.facts.dates import stamps_in
from livememfs.text.facts.fact import WORD, Fact, number_key, one

_EXTENSIONS = (
    "bash bat bin c cc cfg cjs conf cpp cs css csv db diff dll doc docx env exe gif go gradle gz h hpp htm html ico "
    "ini ipynb java jpeg jpg js json jsonl jsx kt lock log lua md mjs ndjson parquet patch pdf php pl png ppt pptx "
    "proto ps1 py pyi pyx rb rs rst scss sh sql sqlite sqlite3 svg swift tar tf toml ts tsv tsx txt vue wasm whl xls "
    "xlsx xml yaml yml zip zsh"
)
_EXTENSION = "|".join(_EXTENSIONS.split())
_EXTENSION = f"(?:{_EXTENSION}|{_EXTENSION.upper()})"
FILE = re.compile(rf"[\w.+@~-]*[\w+~-]\.{_EXTENSION}")
"""The name of a file. `asyncio.Lock` is none: no extension is written so."""
_PATH = re.compile(r"[~.]{0,2}/?[\w.@+~-]+(?:/+[\w.@+~-]+)*/?")
_SUFFIX = re.compile(rf"\.{_EXTENSION}$")
_ISSUE_URL = re.compile(r"/(?:issues|pull|pulls|merge_requests|-/issues)/([0-9]+)")
_PRODUCT = re.compile(r"(?:[A-Z]\w*|node|next|nuxt|vue|react|express)\.js")
"""What is called after its language, and no file: `Node.js` is node."""
_MANY_SEGMENTS = 8
"""Up to here any run of segments is a path within the path; beyond, only its beginnings and ends are."""
_TOO_MANY_SEGMENTS = 64
"""From here on a path is only found as a whole: its parts would be quadratic."""

_RUN = re.compile(rf"([^\W_]+)(?:\.{_EXTENSION}\b)?")
_HUMP = re.compile(r"[A-ZÀ-Þ]?[a-zß-ÿ]+[0-9]*|[A-ZÀ-Þ]+[0-9]*(?![a-zß-ÿ])")
_LOOKS_LIKE_A_PATH = re.compile(rf"://|\.{_EXTENSION}\b")
_FIGURES = re.compile(r"[vV]?[0-9]+")
_MOST_WORDS = 12


def path(piece: str, in_code: bool) -> Fact | None:
    """A path; without readings where slashes may just as well mean `or`, which then only makes it known."""
    if not _PATH.fullmatch(piece):
        return None
    segments = [segment for segment in piece.split("/") if segment.strip(".~")]
    if not segments or all(segment.isdigit() for segment in segments):
        return None
    if "/" not in piece and not FILE.fullmatch(piece):
        return None
    certain = (
        in_code
        or "/" not in piece
        or piece.startswith(("/", "./", "../", "~/"))
        or FILE.fullmatch(segments[-1]) is not None
        or (len(segments) > 2 and any(mark in piece for mark in "._-"))
    )
    says = _path_keys(segments) if "/" in piece else (*_path_keys(segments), f"f:{piece.casefold()}")
    return Fact(piece, (says[:1], *_by_parts(segments)) if certain else (), says)


def _by_parts(segments: list[str]) -> list[tuple[str, ...]]:
    """What else makes a path known: all its words in one text, or its file, said without a folder, and theirs."""
    *folders, last = segments
    readings = []
    if words := word_keys(" ".join(segments)):
        readings.append(words)
    if folders and (words := word_keys(" ".join(folders))):
        readings.append((f"f:{last.casefold()}", *words))
    if not folders and _PRODUCT.fullmatch(last):
        readings += [word_keys(last[:-3])]
    return readings


def _path_keys(segments: list[str]) -> tuple[str, ...]:
    """The path, the paths within it, with and without an extension, and a date in its name."""
    count = len(segments)
    if count <= _MANY_SEGMENTS:
        spans = [(start, stop) for start in range(count) for stop in range(count, start, -1)]
    elif count > _TOO_MANY_SEGMENTS:
        spans = [(0, count)]
    else:
        spans = [(0, count), *((start, count) for start in range(1, count)), *((0, stop) for stop in range(1, count))]
    folded = [segment.casefold() for segment in segments]
    found = [f"p:{'/'.join(folded[start:stop])}" for start, stop in spans]
    if _SUFFIX.search(segments[-1]):
        found += [_SUFFIX.sub("", key) for key, (_, stop) in zip(found, spans, strict=True) if stop == count]
    return (*found, *(key for segment in segments for key in stamps_in(segment)))


def url(address: str) -> Fact:
    """An address; what makes it known also makes known the path and the issue in it."""
    bare = re.split(r"[?#]", address, maxsplit=1)[0].rstrip("/")
    segments = [segment for segment in bare.partition("://")[2].split("/") if segment]
    issues = [key for number in _ISSUE_URL.findall(bare) for key in (f"r:{number}", number_key(number))]
    if not segments:
        return one(address, f"u:{address}")
    within = _path_keys(segments)
    if "?" in address or "#" in address:
        return one(address, f"u:{address}", f"u:{bare}", *within, *issues)
    return Fact(address, ((f"u:{address}",), within[:1]), (f"u:{address}", f"u:{bare}", *within, *issues))


# --- words ------------------------------------------------------------------------------------------------------------


def word_keys(name: str) -> tuple[str, ...]:
    """The words of a name as keys of one reading; empty when it has none, or none but figures, or very many."""
    found = [part for run in re.findall(r"[^\W_]+", name) for part in _humps(run) or (run,)]
    if not found or len(found) > _MOST_WORDS or any(map(_FIGURES.fullmatch, found)):
        return ()
    return tuple(dict.fromkeys(f"{WORD}{_singular(part)}" for part in found))


@lru_cache(maxsize=65_536)
def words_in(token: str) -> tuple[str, ...]:
    """The words of a token, which holds no blank, as they are in keys. The folders of a path are none: they could
    be exchanged for each other.
    """
    if "/" in token and _LOOKS_LIKE_A_PATH.search(token):
        return ()
    runs = [run for run in _RUN.findall(token) if not _FIGURES.fullmatch(run)]
    hyphened = token.casefold().strip(".,;:!?()*_")
    return tuple({_singular(word) for run in runs for word in (run, *_humps(run))} | {hyphened})


def _humps(run: str) -> tuple[str, ...]:
    """`activeContext` is two words; `9fceb02` is one."""
    if run[0].isdigit() or run.islower() or run.isupper():
        return ()
    humps = _HUMP.findall(run)
    return tuple(humps) if sum(map(len, humps)) == len(run) else ()


def _singular(word: str) -> str:
    folded = word.casefold()
    return folded[:-1] if len(folded) > 3 and folded.endswith("s") else folded
