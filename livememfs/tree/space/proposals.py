"""`.proposals/`: what waits in a space for a person; `mv` accepts, `rm` refuses, `.decided/` has what was decided.

Owns where a proposal may be moved: into the folder it is for, under its own name. A move to anywhere else is refused,
since `mv` would copy the page and refuse the proposal. Out of the mount the kernel asks for no move: `mv` reads the
page and removes it. So no process that has opened a page removes it; `rm` opens none. Refuses processes of agents, and
callers that are no process of this machine: a tool call is an agent's. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.memories import proposals
from livememfs.memories.proposalpage import page_of
from livememfs.records.proposal import DECIDED_SUFFIX, Proposal
from livememfs.tree.computed import ComputedFile, ReadOnlyDirectory
from livememfs.tree.node import ACTING, Attrs, Caller, Directory, File, Handle, Node, OpenMode, check_name
from livememfs.tree.writer import process_of

if TYPE_CHECKING:
    from livememfs.store.base import StoredObject
    from livememfs.tree.context import Context

NAME = ".proposals"
DECIDED = ".decided"
WHY = "livememfs computes it; `mv` accepts a proposal, `rm` refuses it"
COPIED = (
    "the process that removes it has read it, as `mv` does to take it out of the mount: `rm` refuses a proposal, and"
    " `cp` copies its page"
)
READERS = 1_000
"""Pages that were opened, each with its process, that one space remembers; the oldest are forgotten."""


class ProposalFile(ComputedFile):
    """The page of one proposal, or of one decision.

    `accepted` is the file that it became: for a moment the kernel believes that the one it moved is there.
    """

    __slots__ = ("accepted",)

    def __init__(self, parent: Directory, name: str, context: Context, space: str, proposal: Proposal) -> None:
        super().__init__(parent, name, context, partial(page_of, context.replica, space, proposal))
        self.accepted: File | None = None

    async def attrs(self) -> Attrs:
        return (
            replace(await self.accepted.attrs(), volatile=True) if self.accepted is not None else await super().attrs()
        )

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if isinstance(self.parent, Proposals):
            self.parent.read_by(caller.pid, self.name)
        return await (self.accepted.open(mode, caller) if self.accepted is not None else super().open(mode, caller))


class Proposals(ReadOnlyDirectory):
    """The directory of one space."""

    __slots__ = ("_readers", "context", "decided", "space")

    def __init__(self, parent: Directory, context: Context, space: str) -> None:
        super().__init__(parent, NAME, WHY, mode=0o755)
        self.context, self.space = context, space
        self._readers: dict[tuple[str, int, bytes], None] = {}
        self.decided = Decided(self, context, space)

    async def children(self) -> Sequence[tuple[str, Node]]:
        found = await proposals.waiting(self.context.replica, self.space)
        return [(DECIDED, self.decided), *((f"{each.name}.md", self._file(stored, each)) for stored, each in found)]

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if name == DECIDED:
            return self.decided
        if not name.endswith(".md"):
            raise errors.NotFound(path=self.path_of(name))
        return self._file(*await proposals.the_one(self.context.replica, self.space, name))

    def _file(self, stored: StoredObject, proposal: Proposal) -> Node:
        """A node for each version: one that was replaced by a newer proposal must not be shown any more."""
        make = partial(ProposalFile, self, f"{proposal.name}.md", self.context, self.space, proposal)
        return self.held(f"{proposal.name}.md {stored.info.etag}", lambda _: make())

    async def unlink(self, name: str) -> None:
        if name == DECIDED:
            raise self.refuse("removing it")
        by = self._who(name)
        caller = ACTING.get()
        if caller is not None and caller.pid and (name, *process_of(caller.pid)) in self._readers:
            raise errors.NotPermitted(COPIED, path=self.path_of(name))
        await proposals.refuse(self.context.replica, self.context.clock, self.space, name, by=by)

    def read_by(self, pid: int, name: str) -> None:
        """A process has opened a page."""
        if pid:
            reader = (name, *process_of(pid))
            self._readers.pop(reader, None)
            self._readers[reader] = None
            if len(self._readers) > READERS:
                del self._readers[next(iter(self._readers))]

    async def rename(self, name: str, target: Directory, new_name: str, *, replace: bool = True) -> None:
        _, proposal = await proposals.the_one(self.context.replica, self.space, name)
        if target.path_of(new_name) != self._meant(proposal):
            what = f"accepting it is moving it to {self._meant(proposal)}, under its own name"
            raise errors.NotPermitted(what, path=self.path_of(name))
        file = await self.child(name)
        await proposals.accept(self.context.replica, self.context.clock, self.space, name, by=self._who(name))
        with suppress(errors.NotFound):
            made = await target.child(proposal.target.rpartition("/")[2])
            if isinstance(file, ProposalFile) and isinstance(made, File):
                file.accepted = made

    def _meant(self, proposal: Proposal) -> str:
        """The path to which a proposal is moved."""
        folder = proposal.target.rpartition("/")[0]
        return f"{self.space}/{folder}/{proposal.name}.md"

    def _who(self, name: str) -> str:
        """Who asks; NotPermitted when it is no process of this machine."""
        caller = ACTING.get()
        if caller is None:
            raise errors.NotPermitted("only a person decides on a proposal", path=self.path_of(name))
        return self.context.agent_of(caller.pid) if caller.pid else self.context.owner


class Decided(ReadOnlyDirectory):
    """What was decided, the newest decisions."""

    __slots__ = ("context", "space")

    def __init__(self, parent: Directory, context: Context, space: str) -> None:
        super().__init__(parent, DECIDED)
        self.context, self.space = context, space

    async def children(self) -> Sequence[tuple[str, Node]]:
        made: dict[str, Node] = {}
        for each in reversed(await proposals.decisions(self.context.replica, self.space)):
            name = each.decided_key(self.space).rpartition("/")[2].removesuffix(DECIDED_SUFFIX) + ".md"
            make = partial(ProposalFile, self, name, self.context, self.space, each)
            made[name] = self.held(name, lambda _, make=make: make())  # type: ignore[misc]  # of a default
        return sorted(made.items())
