"""What differs between the kinds of run: the steps that `run` leaves to a kind, in their order.

Owns the contract between the course of a run and a kind of run. Refuses to do anything itself. Trio thread only, except
`preview`.
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
from livememfs.runs.options import RunKind, RunSettings


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
    def plan(self, reply: ChatReply, inputs: InputsT, settings: RunSettings, *, last: bool) -> PlanT:
        """The plan in a reply; `last`: the model is not asked again. Raises ReplyRefused."""

    @abstractmethod
    def without_model(self, inputs: InputsT) -> PlanT:
        """The plan for all notes where there is no model."""

    @abstractmethod
    def joined(self, inputs: InputsT) -> Joined[InputsT, PlanT]:
        """What joins the plans of several requests into one."""

    async def accounted(self, inputs: InputsT, plan: PlanT) -> PlanT:
        """The whole plan with the lines that it takes out of the bank."""
        return plan

    @abstractmethod
    def too_much(self, inputs: InputsT, plan: PlanT, settings: RunSettings) -> tuple[str, ...]:
        """Why a person has to accept the plan first, one sentence each; empty: nobody has to."""

    @abstractmethod
    def takes_away(self, inputs: InputsT, plan: PlanT) -> bool:
        """Whether notes will be removed or files changed, so that a backup is needed."""

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
        """What the plan depends on besides the objects that its entry names (see `Entry.stood_on`)."""
        return ""

    async def write(self, replica: Replica, clock: Clock, entry: Entry, *, again: bool) -> None:
        """Write what a committed entry of this kind says. `again`: a part of it may have been written before."""
        await write_objects(replica, entry)

    @abstractmethod
    def figures(self, plan: PlanT) -> dict[str, Any]:
        """The figures that only this kind of run has, as fields of Metrics."""

    @abstractmethod
    def leaving(self, inputs: InputsT, plan: PlanT) -> int:
        """How many notes are finished for this kind of run when the plan is carried out."""
