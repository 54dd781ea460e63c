"""What the kinds of run differ in: the parts of a run that `run` has done for it, in the order in which they come.

Owns the contract between the course of a run and a kind of run. Refuses to do anything itself. Trio thread only, but
for `preview`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Generic

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.llm.base import ChatMessage, ChatReply
from livememfs.records.ledger import Entry
from livememfs.runs.batches import InputsT, Joined, PlanT
from livememfs.runs.entry import Committer
from livememfs.runs.inputs import NoteChoice
from livememfs.runs.ledger import write_objects
from livememfs.runs.options import ConsolidationSettings, RunKind


class Work(ABC, Generic[InputsT, PlanT]):
    """What one kind of run does with the notes. Has no state of its own.

    :schema: of the reply, as JSON Schema
    """

    kind: ClassVar[RunKind]
    schema: ClassVar[Mapping[str, Any]]

    @abstractmethod
    async def gather(self, replica: Replica, space: str, choice: NoteChoice) -> InputsT:
        """Everything that the run works from."""

    @abstractmethod
    def prompt(self, inputs: InputsT) -> list[ChatMessage]:
        """The request."""

    @abstractmethod
    def plan(self, reply: ChatReply, inputs: InputsT, settings: ConsolidationSettings, *, last: bool) -> PlanT:
        """The plan in a reply; `last`: the model is not asked again. Raises ReplyRefused."""

    @abstractmethod
    def without_model(self, inputs: InputsT) -> PlanT:
        """The plan for all notes where there is no model."""

    @abstractmethod
    def joined(self, inputs: InputsT) -> Joined[InputsT, PlanT]:
        """What several requests come to."""

    async def accounted(self, inputs: InputsT, plan: PlanT) -> PlanT:
        """The whole plan with what it takes out of the bank."""
        return plan

    @abstractmethod
    def too_much(self, inputs: InputsT, plan: PlanT, settings: ConsolidationSettings) -> tuple[str, ...]:
        """Why the plan must not be carried out before a person accepts it, one sentence each; none: it may."""

    @abstractmethod
    def takes_away(self, inputs: InputsT, plan: PlanT) -> bool:
        """Whether notes are going to be removed or files changed, so that there must be a backup."""

    @abstractmethod
    def preview(self, inputs: InputsT, plan: PlanT) -> dict[str, Any]:
        """What a dry run shows, as fields of RunResult. May be slow; called in a worker thread."""

    @abstractmethod
    async def check(self, replica: Replica, inputs: InputsT, plan: PlanT) -> None:
        """A last look before the commit. Raises PreconditionFailed."""

    @abstractmethod
    def entry(self, inputs: InputsT, plan: PlanT, now: datetime, by: Committer, metrics: Mapping[str, Any]) -> Entry:
        """The run as an entry of the ledger that has not been committed yet."""

    def stood_on(self, inputs: InputsT) -> str:
        """What an entry says its plan was made from, besides what it names (see `Entry.stood_on`)."""
        return ""

    async def write(self, replica: Replica, clock: Clock, entry: Entry, *, again: bool) -> None:
        """Make what a committed entry of this kind writes. `again`: somebody may have made a part of it."""
        await write_objects(replica, entry)

    @abstractmethod
    def figures(self, plan: PlanT) -> dict[str, Any]:
        """The figures that only this kind of run has, as fields of Metrics."""

    @abstractmethod
    def leaving(self, inputs: InputsT, plan: PlanT) -> int:
        """How many notes the run has no more to do with, or would have, once it is carried out."""
