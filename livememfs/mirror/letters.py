"""Requests that are files: `.recall`, `.hooks/<event>`, `.consolidate`, `.digest`, and empty pages in `search/`.

A plain directory has no file that answers on the same descriptor. So a request is put there as a file, its answer comes
as a file beside it (`.recall.answer`), and then the request goes: who waits until it is gone has the answer. An empty
page in `search/` gets its answer itself. A request that a crash interrupted is still there, and asked again. Owns which
path is a request; the tree answers. Refuses to mirror any of these files. Trio thread only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from contextlib import suppress

import structlog
import trio

from livememfs import errors
from livememfs.mirror import agenda
from livememfs.mirror.branch import Branch
from livememfs.mirror.place import CHUNK, ChangedMeanwhile, MirrorPlace, prepared
from livememfs.mirror.rows import Sig
from livememfs.mirror.settling import aside_from_disk
from livememfs.runs.options import CONTROLS
from livememfs.tree.node import NOBODY, Caller, Directory, File, Node, OpenMode
from livememfs.tree.space.root import HOOKS, Space, wait_name

ANSWER = ".answer"
IN_MEMORY = 64 << 20
"""Bytes of the largest request: the output of a tool may be long."""
_REQUEST = re.compile(r"(?:[^/]+/)?(?:\.recall|\.consolidate|\.digest|\.hooks/[^/]+|search/[^./][^/]*\.md)")

log = structlog.get_logger("livememfs.mirror")


class Letters:
    """The requests in one mirror. `start` starts a task: a run takes minutes, and others need not wait for it."""

    def __init__(self, branch: Branch, place: MirrorPlace, start: Callable[..., None]) -> None:
        self.branch, self.place, self._start = branch, place, start
        self._asked: set[str] = set()

    def touched(self, paths: Iterable[str]) -> None:
        """Something has happened to local paths."""
        for path in paths:
            if _REQUEST.fullmatch(path) and not path.endswith(ANSWER) and path not in self._asked:
                self._asked.add(path)
                self._start(self._answer, path)

    async def _answer(self, path: str) -> None:
        """Answer one request, as soon as its writer has left it alone."""
        try:
            sig = await self._whole(path)
            if sig is not None and not (_is_page(path) and sig.size):
                await self._exchange(path, sig)
        except ChangedMeanwhile:
            self._start(self._again, path)
        except (errors.LiveMemError, OSError) as error:
            log.warning("a request was not answered", path=path, reason=str(error))
        finally:
            self._asked.discard(path)

    async def _again(self, path: str) -> None:
        self.touched([path])

    async def _whole(self, path: str) -> Sig | None:
        """The file when two looks a moment apart find the same."""
        before: Sig | None = None
        while True:
            found = await aside_from_disk(self.place.look, path)
            if found is None or found.kind != "f":
                return None
            if found == before:
                return found
            before = found
            await trio.sleep(agenda.QUIET_SECONDS)

    async def _exchange(self, path: str, sig: Sig) -> None:
        request, _ = await aside_from_disk(self.place.read, path, sig, IN_MEMORY)
        if not isinstance(request, bytes):
            request.unlink()
            raise errors.BadRequest(path=path, detail=f"a request has at most {IN_MEMORY:,} bytes")
        if _is_page(path):
            await self._put(path, await self.ask(path, b""), sig)
            return
        answer = f"{path}{ANSWER}"
        before = await aside_from_disk(self.place.look, answer)
        if before is not None:
            await aside_from_disk(self.place.remove, answer, before)
        await self._put(answer, await self.ask(path, request), None)
        await aside_from_disk(self.place.remove, path, sig)

    async def _put(self, path: str, answer: bytes, before: Sig | None) -> None:
        made = self.place.new()
        await aside_from_disk(prepared, made, answer, 0o644, 0)
        await aside_from_disk(self.place.install, made, path, before)

    async def ask(self, path: str, request: bytes, caller: Caller = NOBODY) -> bytes:
        """The tree's answer to a request; for what the tree refuses, the reason. No hook is refused: its agent must
        go on.
        """
        try:
            if not _REQUEST.fullmatch(path):
                raise errors.NotFound(path=path)
            return await self._asked_of_the_tree(path, request, caller)
        except errors.LiveMemError as error:
            if HOOKS in path.split("/"):
                log.warning("a hook was not answered", path=path, reason=str(error))
                return b"{}"
            advice = error.advice()
            return f"livememfs: {error}{f' ({advice})' if advice else ''}\n".encode()

    async def _asked_of_the_tree(self, path: str, request: bytes, caller: Caller) -> bytes:
        above: Node = await self.branch.top()
        node, is_page = above, _is_page(path)
        for part in path.split("/"):
            if not isinstance(node, Directory):
                raise errors.NotADirectory(path=path)
            above, node = node, await node.child(part)
        if not isinstance(node, File):
            raise errors.IsADirectory(path=path)
        self.branch.root.permit(node, writing=not is_page)
        kind = next((kind for kind, name in CONTROLS.items() if name == node.name), None)
        if kind is not None and isinstance(above, Space):
            return await _run(node, await above.child(wait_name(kind)), request)
        return await _exchange(node, request, caller, asks=not is_page)


def _is_page(path: str) -> bool:
    return "search" in path.split("/")[:-1]


async def _exchange(node: File, request: bytes, caller: Caller, *, asks: bool) -> bytes:
    """Write a request and read its answer through one handle."""
    handle = await node.open(OpenMode(write=asks), caller)
    try:
        if asks:
            await handle.write(0, request)
        answer = b""
        while part := await handle.read(len(answer), CHUNK):
            answer += part
        return answer
    finally:
        await handle.release()


async def _run(control: File, wait: Node, options: bytes) -> bytes:
    """Ask for a run, and wait for its end: the last line that is told of it."""
    handle = await control.open(OpenMode(read=False, write=True), NOBODY)
    try:
        if options.strip():
            await handle.write(0, options)
        await handle.flush()
    finally:
        await handle.release()
    assert isinstance(wait, File)  # it stands beside the control file
    lines, last = await wait.open(OpenMode(), NOBODY), b""
    try:
        with suppress(errors.LiveMemError):  # a failed run: the reason is in its last line
            while line := await lines.read(0, CHUNK):
                last = line
    finally:
        await lines.release()
    return last
