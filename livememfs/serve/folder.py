"""A space's folder as the six commands of a file-based memory tool: view, create, str_replace, insert, delete, rename.

Owns the commands and their answers. The tree decides what a path means: a new file in `live/` is a note, one in
`memories/` a memory, `bank/` is read-only, and any other name is an ordinary file. Paths begin with `/memories`, which
is the space. Refuses paths that lead out of it, and files that are no text. Trio thread only.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from livememfs.concurrency import aside
from livememfs.errors import (
    AlreadyExists,
    BadRequest,
    IsADirectory,
    LiveMemError,
    NotADirectory,
    NotFound,
    NotText,
    ReadOnly,
)
from livememfs.memories.parameters import Parameter
from livememfs.records import keys
from livememfs.serve.toolbox import LONGEST_PATH, MOST_TOKENS, SPACE, Answered, McpTool, ToolCall, check_path
from livememfs.text import frontmatter
from livememfs.text.size import Budget, first_lines, lines_of
from livememfs.tree.node import Caller, Directory, File, Node, OpenMode
from livememfs.tree.plain import PlainDirectory

if TYPE_CHECKING:
    from livememfs.tree.root import Root

ROOT = "/memories"
COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
LARGEST = 1 << 20
"""Most bytes of a file that a model may read or write."""
MOST_ENTRIES = 200
DEPTH = 2
SNIPPET = 4
"""Lines shown on each side of a change."""
CHUNK = 1 << 17
_NEW, _READ, _REPLACE = OpenMode(read=False, write=True), OpenMode(), OpenMode(read=False, write=True, truncate=True)


class Folder:
    """One space of a tree, for one caller. `may_write` False: only view. `agent`: the writer of notes, if known."""

    def __init__(self, root: Root, space: str, *, may_write: bool = True, agent: str = "") -> None:
        self._root = root
        self._space = space
        self._may_write = may_write
        self._agent = agent
        self._caller = Caller(os.getuid(), os.getgid(), os.getpid())

    # --- the commands -----------------------------------------------------------------------------------------

    async def view(self, path: str, view_range: Sequence[int] | None = None) -> str:
        """A directory two levels deep, or a file with the numbers of its lines."""
        parts = _parts(path)
        node = await self._node(parts)
        if isinstance(node, Directory):
            lines = await self._listing(node, _shown(parts), DEPTH)
            return "\n".join([f"{_shown(parts)}, {DEPTH} levels deep, without hidden names:", *lines])
        text = await self._text(node)
        return await aside(len(text), partial(_viewed, parts, text, view_range))

    async def create(self, path: str, file_text: str) -> str:
        """A new file. AlreadyExists when there is one."""
        parts = _parts(path)
        if not parts:
            raise BadRequest(path=ROOT, detail="a file needs a name")
        directory = await self._parent(parts, make=True)
        try:
            await directory.child(parts[-1])
        except NotFound:
            pass
        else:
            raise AlreadyExists(path=_shown(parts))
        text = _signed(file_text, self._agent) if parts[0] == keys.LIVE and self._agent else file_text
        self._writing()
        file = await directory.create(parts[-1], 0o644, self._caller)
        await self._write(file, text, _NEW)
        return f"{_shown(parts)} is made"

    async def str_replace(self, path: str, old_str: str, new_str: str = "") -> str:
        """Replace a text that occurs exactly once in a file."""
        parts = _parts(path)
        node = await self._node(parts)
        text = await self._text(node)
        count = text.count(old_str) if old_str else 0
        if count != 1:
            lines = [str(number) for number, line in enumerate(text.split("\n"), 1) if old_str.split("\n")[0] in line]
            where = f" (lines {', '.join(lines[:10])})" if count and lines else ""
            detail = f"old_str occurs {count} times in it{where}; it must occur exactly once"
            raise BadRequest(path=_shown(parts), detail=detail)
        at = text.index(old_str)
        changed = text.replace(old_str, new_str, 1)
        await self._write(node, changed, _REPLACE)
        return _edited(parts, changed, text.count("\n", 0, at), new_str.count("\n"))

    async def insert(self, path: str, insert_line: int, insert_text: str) -> str:
        """Put a text after a line; 0 is before the first."""
        parts = _parts(path)
        node = await self._node(parts)
        lines = lines_of(await self._text(node))
        if not 0 <= insert_line <= len(lines):
            raise BadRequest(path=_shown(parts), detail=f"insert_line is 0 to {len(lines)}, not {insert_line}")
        if insert_line and not lines[insert_line - 1].endswith("\n"):
            lines[insert_line - 1] += "\n"
        inserted = insert_text if insert_text.endswith("\n") else f"{insert_text}\n"
        changed = "".join([*lines[:insert_line], inserted, *lines[insert_line:]])
        await self._write(node, changed, _REPLACE)
        return _edited(parts, changed, insert_line, inserted.count("\n") - 1)

    async def delete(self, path: str) -> str:
        """Remove a file, or a directory with its content. ReadOnly for the directories of the space itself."""
        parts = _parts(path)
        self._writing()
        if not parts:
            raise BadRequest(path=ROOT, detail="this command cannot remove the space itself; `space_delete` can")
        directory = await self._parent(parts)
        going = await _going(directory, parts[-1], await directory.child(parts[-1]))
        try:
            await _remove(going, _shown(parts))
        finally:
            await self._uploaded()
        return f"{_shown(parts)} is removed"

    async def rename(self, old_path: str, new_path: str) -> str:
        """Give a file or a directory another name. AlreadyExists when that is taken."""
        old, new = _parts(old_path), _parts(new_path)
        self._writing()
        if not old or not new:
            raise BadRequest(path=ROOT, detail="the space itself cannot be renamed")
        source = await self._parent(old)
        await source.child(old[-1])
        await source.rename(old[-1], await self._parent(new, make=True), new[-1], replace=False)
        await self._uploaded()
        return f"{_shown(old)} is {_shown(new)} now"

    # --- the tree ---------------------------------------------------------------------------------------------

    async def _node(self, parts: Sequence[str]) -> Node:
        node: Node = await self._root.child(self._space)
        for part in parts:
            node = await _directory(node).child(part)
        return node

    async def _parent(self, parts: Sequence[str], *, make: bool = False) -> Directory:
        """The directory of a path's last name; `make`: with its parents, if they are missing."""
        node = await self._node(())
        for part in parts[:-1]:
            directory = _directory(node)
            try:
                node = await directory.child(part)
            except NotFound:
                if not make:
                    raise
                self._writing()
                node = await directory.mkdir(part, 0o755, self._caller)
        return _directory(node)

    def _writing(self) -> None:
        if not self._may_write:
            raise BadRequest(path=ROOT, detail="this access may only view")

    async def _text(self, node: Node) -> str:
        if not isinstance(node, File):
            raise IsADirectory(path=node.path)
        data = bytearray()
        handle = await node.open(_READ, self._caller)
        try:
            while chunk := await handle.read(len(data), CHUNK):
                data += chunk
                if len(data) > LARGEST:
                    raise BadRequest(path=node.path, detail=f"it has over {LARGEST >> 20} MB")
        finally:
            await handle.release()
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            raise NotText(path=node.path, detail=f"byte {error.start}") from None

    async def _write(self, node: Node, text: str, mode: OpenMode) -> None:
        self._writing()
        if not isinstance(node, File):
            raise IsADirectory(path=node.path)
        data = text.encode("utf-8", "replace")
        if len(data) > LARGEST:
            raise BadRequest(path=node.path, detail=f"it would have over {LARGEST >> 20} MB")
        handle = await node.open(mode, self._caller)
        try:
            for at in range(0, len(data), CHUNK):
                await handle.write(at, data[at : at + CHUNK])
            await handle.flush()
        finally:
            await handle.release()
        await self._uploaded()

    async def _uploaded(self) -> None:
        """Wait for the upload: after the answer, another host must find the change in the bucket."""
        await self._root.context.replica.uploaded(f"{self._space}/")

    async def _listing(self, directory: Directory, path: str, depth: int) -> list[str]:
        lines: list[str] = []
        children = [(name, node) for name, node in await directory.children() if not name.startswith((".", "_"))]
        for count, (name, node) in enumerate(children):
            if count == MOST_ENTRIES:
                lines.append(f"\t{path}/... and {len(children) - count} more")
                break
            below = isinstance(node, Directory)
            try:
                size = (await node.attrs()).size
            except LiveMemError:
                continue  # removed meanwhile
            lines.append(f"{size}\t{path}/{name}{'/' if below else ''}")
            if isinstance(node, Directory) and depth > 1:
                lines += await self._listing(node, f"{path}/{name}", depth - 1)
        return lines


def _signed(text: str, agent: str) -> str:
    """A note with its writer, if it names none: the tree would only know this process."""
    try:
        metadata, body = frontmatter.split(text)
        return text if "agent" in metadata else frontmatter.join({**metadata, "agent": agent}, body)
    except frontmatter.FrontMatterError:
        return text


async def _going(directory: Directory, name: str, node: Node) -> list[tuple[Directory, str, bool]]:
    """Everything to remove with a name, content first: the parent, the name, whether it is a directory.

    ReadOnly for a directory of livememfs anywhere in it. Checked before anything is removed: the notes in `live/` would
    be gone before the directory itself refuses.
    """
    if not isinstance(node, Directory):
        return [(directory, name, False)]
    if type(node) is not PlainDirectory:
        raise ReadOnly("livememfs needs it", path=node.path, advice="remove its files one by one")
    inside = [step for inner, child in await node.children() for step in await _going(node, inner, child)]
    return [*inside, (directory, name, True)]


async def _remove(going: Sequence[tuple[Directory, str, bool]], shown: str) -> None:
    """Remove all of it; an error says how far it came."""
    for done, (directory, name, below) in enumerate(going):
        try:
            await (directory.rmdir(name) if below else directory.unlink(name))
        except NotFound:
            continue  # another host removed it meanwhile
        except LiveMemError as error:
            if not done:
                raise
            detail = f"{done} of the {len(going)} names in it are removed, and the rest stays: {error}"
            raise BadRequest(path=shown, detail=detail, advice=error.advice()) from None


def _directory(node: Node) -> Directory:
    if not isinstance(node, Directory):
        raise NotADirectory(path=node.path)
    return node


def _parts(path: str) -> list[str]:
    """The parts of a path below the space. BadRequest for a path out of it."""
    inside = path.strip().rstrip("/")
    if inside != ROOT and not inside.startswith(f"{ROOT}/"):
        raise BadRequest(path=path[:80], detail=f"paths begin with {ROOT}")
    rest = inside.removeprefix(ROOT).lstrip("/")
    return check_path(rest, ROOT).split("/") if rest else []


def _shown(parts: Sequence[str]) -> str:
    return "/".join([ROOT, *parts])


def _range(given: Sequence[int] | None, text: str) -> tuple[int, int]:
    """First and last line to show, from 1. BadRequest."""
    total = text.count("\n") + (not text.endswith("\n"))
    if given is None:
        return 1, total
    if len(given) != 2 or given[0] < 1 or (given[1] != -1 and given[1] < given[0]):
        raise BadRequest(path="view_range", detail="it is [first, last], from 1; last -1 is the end")
    return given[0], total if given[1] == -1 else min(given[1], total)


def _viewed(parts: Sequence[str], text: str, view_range: Sequence[int] | None) -> str:
    """The requested lines, as many as fit."""
    first, last = _range(view_range, text)
    shown = first - 1 + first_lines(text.split("\n")[first - 1 : last], Budget(MOST_TOKENS))
    rest = f"\n(more: view_range [{shown + 1}, {last}])" if shown < last else ""
    return f"{_shown(parts)} with line numbers:\n{_numbered(text, first, shown)}{rest}"


def _numbered(text: str, first: int, last: int) -> str:
    lines = text.split("\n")
    return "\n".join(f"{number:6}\t{lines[number - 1]}" for number in range(first, min(last, len(lines)) + 1))


def _edited(parts: Sequence[str], text: str, line: int, more: int) -> str:
    """The lines around a change."""
    first = max(line + 1 - SNIPPET, 1)
    return f"{_shown(parts)} is changed:\n{_numbered(text, first, line + 1 + more + SNIPPET)}"


# --- as a tool -----------------------------------------------------------------------------------------------------

_NEEDED = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
_OPTIONAL = {"view": ("view_range",), "str_replace": ("new_str",)}


async def memory(call: ToolCall, space_id: str, command: str, **given: Any) -> Answered:
    """One of the six commands."""
    wanted = (*_NEEDED[command], *_OPTIONAL.get(command, ()))
    missing = [name for name in _NEEDED[command] if name not in given]
    odd = [name for name in given if name not in wanted]
    if missing or odd:
        raise BadRequest(path=command, detail=f"it takes {', '.join(wanted)}")
    folder = Folder(call.root, space_id, may_write=call.access.may("write"), agent=call.agent)
    answer = getattr(folder, command)
    return {"text": await answer(**given)}


TOOL = McpTool(
    "memory",
    f"Use a space as a folder {ROOT}; notes go to live/.",
    (
        SPACE,
        Parameter("command", one_of=COMMANDS, required=True),
        *(Parameter(name, longest=LONGEST_PATH, blank=True) for name in ("path", "old_path", "new_path")),
        *(Parameter(name, longest=LARGEST, blank=True) for name in ("file_text", "old_str", "new_str", "insert_text")),
        Parameter("insert_line", kind="integer"),
        Parameter("view_range", kind="integers", least=-1, items=2),
    ),
    {"text": "string"},
    memory,
    effect="changes",
)
