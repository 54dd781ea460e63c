"""Paths, file names and addresses as facts, and the words in names.

Owns what counts as a path in a text, and the shorter paths within one. Refuses `and/or` as a path, unless it is marked
as code. Pure, linear in the text; any thread may call it.
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
"""The name of a file. `asyncio.Lock` is none: extensions are all small or all capital letters."""
_PATH = re.compile(r"[~.]{0,2}/?[\w.@+~-]+(?:/+[\w.@+~-]+)*/?")
_SUFFIX = re.compile(rf"\.{_EXTENSION}$")
_ISSUE_URL = re.compile(r"/(?:issues|pull|pulls|merge_requests|-/issues)/([0-9]+)")
_PRODUCT = re.compile(r"(?:[A-Z]\w*|node|next|nuxt|vue|react|express)\.js")
"""Names of products that end like a file: `Node.js` is node."""
_MANY_SEGMENTS = 8
"""In a path of so many segments every run of segments is a path too; in a longer one only its beginnings and ends."""
_TOO_MANY_SEGMENTS = 64
"""A path with more segments is only known as a whole: the text of its parts would be quadratic."""

_RUN = re.compile(rf"([^\W_]+)(?:\.{_EXTENSION}\b)?")
_HUMP = re.compile(r"[A-ZÀ-Þ]?[a-zß-ÿ]+[0-9]*|[A-ZÀ-Þ]+[0-9]*(?![a-zß-ÿ])")
_LOOKS_LIKE_A_PATH = re.compile(rf"://|\.{_EXTENSION}\b")
_FIGURES = re.compile(r"[vV]?[0-9]+")
_MOST_WORDS = 12


def path(piece: str, in_code: bool) -> Fact | None:
    """A path. It has no readings where its slashes may mean `or`: it then needs no source, but it can be one."""
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
    """Further sources of a path: all its words in one text, or its file name and the words of its folders."""
    *folders, last = segments
    readings = []
    if words := word_keys(" ".join(segments)):
        readings.append(words)
    if folders and (words := word_keys(" ".join(folders))):
        readings.append((f"f:{last.casefold()}", *words))
    if not folders and _PRODUCT.fullmatch(last):
        readings.append(word_keys(last[:-3]))
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
    keys = [f"p:{'/'.join(folded[start:stop])}" for start, stop in spans]
    if _SUFFIX.search(segments[-1]):
        keys += [_SUFFIX.sub("", key) for key, (_, stop) in zip(keys, spans, strict=True) if stop == count]
    return (*keys, *(key for segment in segments for key in stamps_in(segment)))


def url(address: str) -> Fact:
    """An address, which also states the path and the issue number in it."""
    bare = re.split(r"[?#]", address, maxsplit=1)[0].rstrip("/")
    segments = [segment for segment in bare.partition("://")[2].split("/") if segment]
    issues = [key for number in _ISSUE_URL.findall(bare) for key in (f"r:{number}", number_key(number))]
    if not segments:
        return one(address, f"u:{address}")
    within = _path_keys(segments)
    by_path = () if "?" in address or "#" in address else (within[:1],)
    return Fact(address, ((f"u:{address}",), *by_path), (f"u:{address}", f"u:{bare}", *within, *issues))


# --- words ------------------------------------------------------------------------------------------------------------


def word_keys(name: str) -> tuple[str, ...]:
    """The words of a name as keys of one reading; empty when it has no words, very many, or one that is a number."""
    words = [part for run in re.findall(r"[^\W_]+", name) for part in _humps(run) or (run,)]
    if not words or len(words) > _MOST_WORDS or any(map(_FIGURES.fullmatch, words)):
        return ()
    return tuple(dict.fromkeys(f"{WORD}{_singular(word)}" for word in words))


@lru_cache(maxsize=65_536)
def words_in(token: str) -> tuple[str, ...]:
    """The words of a text without blanks, as keys have them. A path has none, or any mix of folders had a source."""
    if "/" in token and _LOOKS_LIKE_A_PATH.search(token):
        return ()
    runs = [run for run in _RUN.findall(token) if not _FIGURES.fullmatch(run)]
    hyphened = token.casefold().strip(".,;:!?()*_")
    return tuple({_singular(word) for run in runs for word in (run, *_humps(run))} | {hyphened})


def _humps(run: str) -> tuple[str, ...]:
    """The words of `activeContext`; empty for a single word, such as `9fceb02`."""
    if run[0].isdigit() or run.islower() or run.isupper():
        return ()
    humps = _HUMP.findall(run)
    return tuple(humps) if sum(map(len, humps)) == len(run) else ()


def _singular(word: str) -> str:
    folded = word.casefold()
    return folded[:-1] if len(folded) > 3 and folded.endswith("s") else folded
