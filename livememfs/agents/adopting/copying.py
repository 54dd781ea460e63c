"""Brings the files of one folder into another, to the byte, with their modes and times; nothing of either is lost.

Owns the three cases: a file that is not there is copied, an index is joined line by line, and of another that differs
both are kept. Looks at ordinary files and links alone, never through a link. Blocking; any thread.
"""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from livememfs.errors import CannotInstall
from livememfs.records import keys
from livememfs.text.mergelines import merge_lines

Deed = Literal["copy", "join", "keep beside", "replace", "remove"]


@dataclass(frozen=True)
class Step:
    """One file: its path below both folders, what happens to it, and the name of the file that it gets (`keep beside`:
    that of the copy).
    """

    name: str
    deed: Deed
    target: str


def names_in(folder: Path) -> list[str]:
    """The files and links below a folder, by their paths in it, sorted; none where there is no folder."""
    found = []
    for above, folders, files in os.walk(folder):
        for name in (*files, *(name for name in folders if Path(above, name).is_symlink())):
            path = Path(above, name)
            if path.is_symlink() or path.is_file():
                found.append(path.relative_to(folder).as_posix())
    return sorted(found)


def digests_of(folder: Path) -> dict[str, str]:
    """SHA-256 of the content of each file below a folder, by its path in it."""
    return {name: hashlib.sha256(_content(folder / name) or b"").hexdigest() for name in names_in(folder)}


def to_bring(source: Path, target: Path, known: Mapping[str, str], mark: str) -> list[Step]:
    """The steps that bring the files of `source` into `target`, which keeps all that it has; `mark` is part of the name
    of a file that is kept beside another. `known` are the digests of what was brought before: it is not brought again,
    or what was removed in `target` since would come back.
    """
    steps: list[Step] = []
    for name in [name for name, digest in digests_of(source).items() if known.get(name) != digest]:
        ours, theirs = _content(source / name), _content(target / name)
        if theirs is None:
            steps.append(Step(name, "copy", name))
        elif ours != theirs and PurePosixPath(name).name == keys.AGENT_INDEX:
            steps.append(Step(name, "join", name))
        elif ours != theirs:
            beside = _beside(target, name, mark, ours)
            steps += [Step(name, "keep beside", beside)] if beside else []
    return steps


def to_give_back(source: Path, target: Path, known: Mapping[str, str], mark: str) -> list[Step]:
    """The steps that make `target` what `source` is now. `known` are the digests that it had when it was adopted: what
    somebody has changed there since is kept beside, and what is not in `source` any more is removed if nobody has.
    """
    steps: list[Step] = []
    now, here = names_in(source), digests_of(target)
    for name in now:
        theirs = _content(target / name)
        if theirs is None:
            steps.append(Step(name, "copy", name))
        elif theirs != _content(source / name):
            beside = "" if here.get(name) == known.get(name) else _beside(target, name, mark, theirs)
            steps += [Step(name, "keep beside", beside)] if beside else []
            steps.append(Step(name, "replace", name))
    gone = sorted(name for name, digest in here.items() if name not in now and known.get(name) == digest)
    return [*steps, *(Step(name, "remove", name) for name in gone)]


def carry_out(steps: list[Step], source: Path, target: Path, *, back: bool = False) -> None:
    """Take the steps. `back`: what is kept beside is the target's own. CannotInstall; a second time goes on."""
    for step in steps:
        path = target / step.target
        make(path.parent)
        try:
            if step.deed == "remove":
                path.unlink(missing_ok=True)
            elif step.deed == "join":
                joined = merge_lines(None, (source / step.name).read_bytes(), path.read_bytes())
                _put(source / step.name, path, joined)
            else:
                own = target if back and step.deed == "keep beside" else source
                _put(own / step.name, path)
        except OSError as error:
            raise CannotInstall(path=path, detail=f"it cannot be written: {error.strerror}") from None


def make(folder: Path) -> None:
    """Make a folder, if it is not there. CannotInstall."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise CannotInstall(path=folder, detail=f"it cannot be made: {error.strerror}") from None


def _put(source: Path, path: Path, data: bytes | None = None) -> None:
    """Put a copy of a file in its place in one step; with `data` instead of its content."""
    draft = path.with_name(f".{path.name[:200]}.{secrets.token_hex(4)}.tmp")
    try:
        if data is None:
            shutil.copy2(source, draft, follow_symlinks=False)
        else:
            draft.write_bytes(data)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)


def _content(path: Path) -> bytes | None:
    """What a file holds, or where a link leads; None where there is neither."""
    try:
        return os.fsencode(path.readlink()) if path.is_symlink() else path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except IsADirectoryError:
        return b""
    except OSError as error:
        raise CannotInstall(path=path, detail=f"it cannot be read: {error.strerror}") from None


def _beside(folder: Path, name: str, mark: str, content: bytes | None) -> str:
    """A free name beside a file; empty where one of them has this content already."""
    path, number = PurePosixPath(name), 0
    while True:
        more = f".{number}" if number else ""
        beside = path.with_name(f"{path.stem}.{mark}{more}{path.suffix}").as_posix()
        there = _content(folder / beside)
        if there is None or there == content:
            return beside if there is None else ""
        number += 1
