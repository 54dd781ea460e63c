"""What a new record keeps of the code that it speaks of.

Owns which files and symbols a text means, in a repository, and their digests as of now. A file that was changed after
the moment that the record speaks of gets no digest: what stood there then is not known any more. Refuses files that
may hold credentials. Blocking, bounded by `room`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from livememfs.code.anchor import MOST, Anchor, is_inside
from livememfs.code.naming import symbols_in, words_beside
from livememfs.code.reading import Allowance, CodeFiles, FileMissing, FileUnread
from livememfs.code.repository import Repository
from livememfs.text.filenames import files_in

MOST_FILES, MOST_LOOKED_AT = 12, 48
"""Files that one record may speak of, and in which its symbols are looked for if it names none."""
MOST_HOMES = 3
"""Files that may define one symbol."""
_SECRET = re.compile(r"(?i)(?:^|/)(?:\.env|\.netrc|\.npmrc|id_\w+|.*\.(?:pem|key|p12|pfx|keystore|env))(?:\.[^/]*)?$")
"""Even a digest says something of a short secret."""


@dataclass(frozen=True)
class Subject:
    """What a record says.

    :text:   its text, without what is private
    :files:  files that it is known to be about, relative to `folder` or absolute
    :beside: other files that were seen, one of which a name in the text may mean
    :folder: where it was made
    :until:  the moment that it speaks of, in nanoseconds since 1970; 0 for now
    """

    text: str
    folder: str
    files: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    until: int = 0


@dataclass
class Stamping:
    """The anchors of one record. What git said: `paths` are the files by the names that a text gave them, `having` are
    those in which a symbol of it stands.
    """

    repository: Repository
    sources: CodeFiles
    room: Allowance
    paths: Mapping[str, Sequence[str]] = field(default_factory=dict)
    having: Sequence[str] = ()

    def anchors(self, subject: Subject) -> tuple[Anchor, ...]:
        """The anchors: for each file the symbols that the text names and the file has, or the file itself. Where the
        text names no file, the files that the record is known to be about; where none is known, those that define a
        symbol of it.
        """
        named = list(files_in(subject.text))[:MOST_FILES]
        known = self._paths(subject, subject.files)
        around = [*known, *self._paths(subject, subject.beside)]
        beside: dict[str, list[str]] = {}
        for name in named:
            for path in self._meant(name, subject.folder, around):
                beside.setdefault(path, []).extend(words_beside(subject.text, name))
        meant = list(beside)
        symbols, found = symbols_in(subject.text), list[Anchor]()
        for path in (meant or known)[:MOST_FILES]:
            found += self._of_file(path, symbols, subject.until, whole=bool(meant), perhaps=beside.get(path, ()))
        for path in known[:MOST_FILES] if not found and not meant else ():
            found += self._of_file(path, (), subject.until, whole=True)
        if not meant and not known:
            found += self._defining(symbols, subject.until)
        return tuple(found[:MOST])

    def homeless(self, subject: Subject) -> list[str]:
        """The symbols of a text of which only git may know in which files they are."""
        return [] if subject.files or any(files_in(subject.text)) else symbols_in(subject.text)[:MOST]

    def _defining(self, symbols: Sequence[str], until: int) -> list[Anchor]:
        """The anchors of symbols in the files that define them; none of one that has many: it may be any."""
        by_symbol: dict[str, list[Anchor]] = {}
        for path in self.having[:MOST_LOOKED_AT]:
            for anchor in self._of_file(path, symbols, until, whole=False, sure=True):
                by_symbol.setdefault(anchor.symbol, []).append(anchor)
        return [anchor for anchors in by_symbol.values() if len(anchors) <= MOST_HOMES for anchor in anchors]

    def _paths(self, subject: Subject, names: Iterable[str]) -> list[str]:
        return list(dict.fromkeys(filter(None, (self._inside(name, subject.folder) for name in names))))

    def unknown(self, subject: Subject) -> list[str]:
        """The names of files in a text of which only git may know where they are."""
        named = list(files_in(subject.text))[:MOST_FILES]
        around = self._paths(subject, (*subject.files, *subject.beside))
        return [name for name in named if is_inside(name) and not any(self._meant(name, subject.folder, around))]

    def _of_file(
        self,
        path: str,
        symbols: Iterable[str],
        until: int,
        *,
        whole: bool,
        sure: bool = False,
        perhaps: Sequence[str] = (),
    ) -> Iterator[Anchor]:
        """The anchors in one file: of symbols that it has, best of those that it defines, with `sure` only of these;
        `perhaps`: words that are symbols if it defines them; `whole`: else the file.
        """
        if _SECRET.search(path):
            return
        try:
            source, changed = self.sources.source(self.repository.top, path, self.room)
        except (FileMissing, FileUnread):
            return
        moved_on = until and changed > until
        there = [symbol for symbol in symbols if source.names(symbol)]
        defined = [symbol for symbol in dict.fromkeys((*there, *perhaps)) if source.defines(symbol)]
        for symbol in defined or ([] if sure else there) or ([""] if whole else []):
            yield Anchor(path, symbol, "" if moved_on else source.digest(symbol))

    def _meant(self, name: str, folder: str, known: Sequence[str]) -> Iterator[str]:
        """The files that a name in a text means."""
        direct = [self._inside(name, folder), self._inside(name, str(self.repository.top))]
        there = next((path for path in direct if path and self._is_there(path)), "")
        if there:
            yield there
        elif ending := [path for path in known if path == name or path.endswith(f"/{name}")]:
            yield from ending
        elif len(called := self.paths.get(name, ())) == 1:
            yield called[0]

    def _is_there(self, path: str) -> bool:
        file = self.repository.top / path
        return file.is_file() and not file.is_symlink()

    def _inside(self, name: str, folder: str) -> str:
        """A path from the top of the repository; empty for one outside."""
        path = PurePosixPath(folder or "/") / name.strip().removeprefix("./")
        top = PurePosixPath(self.repository.top)
        inside = str(path.relative_to(top)) if path.is_relative_to(top) else ""
        return inside if inside and is_inside(inside) else ""
