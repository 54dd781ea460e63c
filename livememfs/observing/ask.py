"""One request to the model that observes: its budget, its cost, and the kind of its answer.

Owns when the day's tokens are spent, and which failures are the model's. Refuses to know what happens to the events.
Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.cache.inbox import Inbox, Spent
from livememfs.observing.prompt import FIELD_CHARACTERS, LEAST_CHARACTERS, Known, request
from livememfs.observing.reply import ObserverReply, Verdict, read
from livememfs.records.session import Meter
from livememfs.text.size import tokens

if TYPE_CHECKING:
    from livememfs.clock import Clock
    from livememfs.llm.base import ChatMessage, ChatModel, ChatReply
    from livememfs.records.event import Event

WRONG: Mapping[Verdict, str] = {
    "empty": "it was empty",
    "prose": "it was prose instead of XML",
    "refusal": "it refused instead of observing",
    "overflow": "the request was too long",
    "truncated": "it broke off in the middle",
    "unaccounted": "no observation and no skip named an event by its number",
}
"""The reason for each kind of answer that cannot be used."""


@dataclass(frozen=True)
class ObserveSettings:
    """When and how the observer works.

    :batch:      most events in one call
    :characters: most characters of events in one call, as they are shown
    :idle:       seconds without an event after which a half full batch is due; a smaller one waits longer
    :stop_idle:  the same after the agent has stopped, however small the batch; longer for each that was not full
    :budget:     most tokens in and out of a UTC day
    :tries:      calls that an event is part of before it is given up
    :outages:    attempts without a model, before an event is given up until a model answers
    """

    batch: int = 16
    characters: int = 110_000
    idle: float = 30.0
    stop_idle: float = 10.0
    budget: int = 300_000
    tries: int = 5
    outages: int = 20
    max_tokens: int = 4_000
    temperature: float = 0.2


class ObserverRequest:
    """Requests to one model. `model` None: there is none."""

    def __init__(self, inbox: Inbox, clock: Clock, model: ChatModel | None, settings: ObserveSettings) -> None:
        self._inbox, self._clock, self.model, self._settings = inbox, clock, model, settings
        self.calls = 0

    async def ask(
        self, events: Sequence[Event], known: Known, *, with_summary: bool, tries: int, wrong: str
    ) -> tuple[ObserverReply, Meter]:
        """What a model says of some events, and what that cost. After failed `tries` fields are shorter.

        Raises BudgetSpent before anything is sent, ModelError when no model answered.
        """
        assert self.model is not None  # the caller has checked
        field = max(LEAST_CHARACTERS, FIELD_CHARACTERS >> tries)
        messages = request(events, known, with_summary=with_summary, field_characters=field, wrong=wrong)
        if len(events) > 1 and self._settings.budget > 0 and _size(messages) > self._settings.budget:
            return ObserverReply("overflow"), Meter()  # no day has a budget for it, so it is asked for in smaller parts
        self._expect_budget(messages)
        self.calls += 1
        try:
            answer = await self.model.chat(
                messages,
                max_tokens=self._settings.max_tokens,
                temperature=self._settings.temperature,
                json_object=False,
            )
        except errors.ContextOverflow:
            return ObserverReply("overflow"), self._spend(messages, None)
        except errors.ReplyRefused:  # an answer without a text
            return ObserverReply("refusal"), self._spend(messages, None)
        return read(answer.text, answer.finish_reason, len(events)), self._spend(messages, answer)

    def _expect_budget(self, messages: Sequence[ChatMessage]) -> None:
        """BudgetSpent when the day has no room for a request."""
        spent = self.spent_today().tokens
        if spent + _size(messages) > self._settings.budget:
            raise errors.BudgetSpent(spent=spent, budget=self._settings.budget)

    def _spend(self, messages: Sequence[ChatMessage], answer: ChatReply | None) -> Meter:
        """Take note of what a call cost; estimated when the endpoint gives no figures."""
        prompt = (answer.prompt_tokens if answer is not None else 0) or _size(messages)
        completion = (answer.completion_tokens or tokens(answer.text)) if answer is not None else 0
        self._inbox.spend(self._day(), prompt, completion)
        return Meter(1, prompt, completion)

    def spent_today(self) -> Spent:
        """What was spent since midnight, UTC."""
        return self._inbox.spent(self._day())

    def _day(self) -> str:
        return self._clock.now().astimezone(UTC).date().isoformat()


def _size(messages: Sequence[ChatMessage]) -> int:
    """The tokens of a request, estimated."""
    return sum(tokens(message.content) for message in messages)
