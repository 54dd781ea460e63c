"""`.stale/` of memories and of observations: those whose code has changed or is gone, each in a file that says what.

Owns which records are looked at, and what is said of each. It is computed at each look, in the directory where an agent
of the space worked last on this machine; without one it is empty. Refuses every change (EROFS): edit or remove the
record. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from heapq import nlargest
from typing import TYPE_CHECKING, Protocol

import trio

from livememfs.code.anchor import Anchor, Claim, CodePlace
from livememfs.code.checking import CodeStatus, CodeVerdict
from livememfs.code.workplaces import ON_REQUEST
from livememfs.errors import NotFound, NotText
from livememfs.memories.audit import Contradicted, Row
from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.tree.computed import ComputedFile, ReadOnlyDirectory
from livememfs.tree.node import Directory, Node, check_name
from livememfs.tree.space.shelf import Shelf

if TYPE_CHECKING:
    from livememfs.recall.index.engine import Engine
    from livememfs.tree.context import Context

NAME = ".stale"
WHY = "livememfs computes it; edit or remove the record, or its code"
MOST = 2_000
"""Records that are looked at, the newest."""
READ_AT_ONCE = 256
NOWHERE = "nothing was looked up in code, of which {} memories speak: this directory is in no repository"
STALE = (CodeStatus.CHANGED, CodeStatus.GONE)
_TOLD = {
    CodeStatus.CHANGED: "changed: it is told with that word.",
    CodeStatus.GONE: "gone: it is not told, and it can be found by a search.",
}


class Claims(Protocol):
    """What the records of one folder say of code, by the names of their objects."""

    async def newest(self, most: int) -> Mapping[str, Claim]:
        """Those of the newest records that speak of code."""

    async def one(self, name: str) -> Claim | None:
        """That of one record; None without one."""


class OfMemories:
    """The claims of a folder of memories."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    async def newest(self, most: int) -> Mapping[str, Claim]:
        """See `Claims`."""
        names = (await self._shelf.contents()).names[-most:]
        claims = {name: self._of(name) for name in names}
        return {name: claim for name, claim in claims.items() if claim is not None}

    async def one(self, name: str) -> Claim | None:
        """See `Claims`."""
        await self._shelf.one(name)
        return self._of(name)

    def _of(self, name: str) -> Claim | None:
        memory = self._shelf.known(name)
        return Claim.of_fields(memory.extra) if memory is not None else None


class OfObservations:
    """The claims of the observations of a space; each is read once."""

    def __init__(self, context: Context, space: str) -> None:
        self._context, self._prefix = context, keys.observations_prefix(space)
        self._known: dict[str, tuple[str, Claim | None]] = {}

    async def newest(self, most: int) -> Mapping[str, Claim]:
        """See `Claims`."""
        listing = await self._context.replica.names.listing(self._prefix)
        names = sorted(name for name in listing.objects if keys.MemoryName.parse(name) is not None)[-most:]
        etags = {name: listing.objects[name].etag for name in names}
        new = [name for name in names if self._known.get(name, ("",))[0] != etags[name]]
        self._known = {name: known for name, known in self._known.items() if name in etags}
        for start in range(0, len(new), READ_AT_ONCE):
            wanted = [self._prefix + name for name in new[start : start + READ_AT_ONCE]]
            for key, stored in (await self._context.replica.read_many(wanted)).items():
                name = key.removeprefix(self._prefix)
                self._known[name] = etags[name], None
                with suppress(NotText):
                    observation = Observation.parse(stored.data, path=key, name=name)
                    self._known[name] = etags[name], Claim.of_fields(observation.extra)
        return {name: known[1] for name in names if (known := self._known.get(name)) and known[1] is not None}

    async def one(self, name: str) -> Claim | None:
        """See `Claims`."""
        return (await self.newest(MOST)).get(name)


class StaleRecords(ReadOnlyDirectory):
    """The directory, in the one of the records themselves."""

    __slots__ = ("_claims", "_context", "_space")

    def __init__(self, parent: Directory, context: Context, space: str, claims: Claims) -> None:
        super().__init__(parent, NAME, WHY)
        self._context, self._space, self._claims = context, space, claims

    async def children(self) -> Sequence[tuple[str, Node]]:
        claims = await self._claims.newest(MOST)
        found = await self._verdicts(list(claims.values()))
        return [(name, self._file(name)) for name, verdict in zip(claims, found, strict=True) if _is_stale(verdict)]

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if not await self._text(name):
            raise NotFound(path=self.path_of(name))
        return self._file(name)

    def _file(self, name: str) -> Node:
        async def content() -> bytes:
            return await self._text(name)

        return self.held(name, lambda name: ComputedFile(self, name, self._context, content))

    async def _verdicts(self, claims: Sequence[Claim]) -> Sequence[CodeVerdict]:
        return await self._context.code.verdicts(self._context.code.folders(self._space), claims, ON_REQUEST)

    async def _text(self, name: str) -> bytes:
        """What the file of a record says; nothing when it is not stale."""
        claim = await self._claims.one(name)
        if claim is None:
            return b""
        (verdict,) = await self._verdicts([claim])
        if not _is_stale(verdict):
            return b""
        folders = self._context.code.folders(self._space)
        here = await self._context.code.place(folders)
        lines = [f"- {_said(claim, *each)}" for each in verdict.of if each[1] is not CodeStatus.FRESH]
        where = f"Looked for in {folders[0]} ({', '.join(filter(None, (here.branch, here.commit[:12])))})."
        parts = [_TOLD[verdict.status], "", *lines, "", where, "", f"- ../{name}", ""]
        return "\n".join(parts).encode("utf-8", "replace")


class StaleMemories:
    """What is stale in any space, for the audit: in the code of `folder`, if that is in a repository, else as above."""

    def __init__(self, context: Context, folder: str = "") -> None:
        self._context, self._folder = context, folder

    async def found(self, index: Engine, space: str, memories: Sequence[str]) -> Contradicted:
        """The stale ones of the newest of some memories, which are given by the keys of their objects."""
        code, newest = self._context.code, nlargest(MOST, memories, key=lambda key: key.rpartition("/")[2])
        hits = await trio.to_thread.run_sync(index.called, newest)
        every = {key: Claim.of_labels(hits[key].record.labels) for key in newest if key in hits}
        claims = {key: claim for key, claim in every.items() if claim is not None}
        folders = code.folders(space, first=self._folder)
        here = await code.place(folders) if claims else CodePlace()
        if not here.repository:
            return Contradicted(note=NOWHERE.format(len(claims)) if claims else "")
        verdicts = await code.verdicts(folders, list(claims.values()), ON_REQUEST)
        rows = [
            Row(key, why="; ".join(_said(claim, *each) for each in verdict.of if each[1] is not CodeStatus.FRESH))
            for (key, claim), verdict in zip(claims.items(), verdicts, strict=True)
            if _is_stale(verdict)
        ]
        return Contradicted(tuple(rows), " on ".join(filter(None, (here.repository, here.branch))))


def _is_stale(verdict: CodeVerdict) -> bool:
    return verdict.status in STALE and not verdict.branch


def _said(claim: Claim, anchor: Anchor, status: CodeStatus, path: str) -> str:
    what = f"{anchor.symbol} in {anchor.path}" if anchor.symbol else anchor.path
    moved = f", which is {path} now" if path != anchor.path else ""
    commit = f" since commit {claim.place.commit[:12]}" if claim.place.commit else ""
    return f"{what}{moved}: {status.value}{commit}"
