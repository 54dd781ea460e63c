"""The interface of a chat model: a name and one call.

Owns the protocol and its values. Refuses streaming, tools and conversations: each request is complete in itself, so a
run that is repeated asks the same thing again. The values are immutable and may be used from any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from livememfs.text.privacy.redaction import redact

Role = Literal["system", "user", "assistant"]
CONTEXT_FAULT = re.compile(
    r"context[ _](?:length|window|size)|maximum context|too many tokens"
    r"|(?:prompt|input|request)\b.{0,40}\btoo (?:long|large)",
    re.IGNORECASE,
)
"""How endpoints word that a request is too long for the model."""


@dataclass(frozen=True, slots=True)
class ChatMessage:
    """One message of a request."""

    role: Role
    content: str


@dataclass(frozen=True, slots=True)
class ChatReply:
    """What the model answered. Token counts are 0 where the endpoint does not give them.

    :text:          the reply as it came, neither trimmed nor parsed
    :finish_reason: `stop` when the model ended by itself; anything else means that `text` is not the whole answer
    :model:         the model as the endpoint names it
    """

    text: str
    finish_reason: str
    model: str
    prompt_tokens: int = 0
    completion_tokens: int = 0
    total_tokens: int = 0


@dataclass(frozen=True)
class ChatStatistics:
    """Counters since the start: requests sent (those that found out about a parameter included), failures, tokens.

    :without: optional parameters that the model does not know
    """

    requests: int
    failures: int
    prompt_tokens: int
    completion_tokens: int
    without: tuple[str, ...] = ()


class ChatModel(Protocol):
    """Anything that answers one request."""

    @property
    def name(self) -> str:
        """The model's name as it was configured."""
        ...

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float,
        json_object: bool = True,
        schema: Mapping[str, Any] | None = None,
    ) -> ChatReply:
        """One request, one reply. `json_object` asks the endpoint to constrain the reply to one JSON object, of the
        form `schema` (JSON Schema) where it knows how to.

        Raises ModelTimedOut, ModelUnreachable, ModelDenied, ReplyRefused (an answer without text) and ModelError.
        """
        ...

    def statistics(self) -> ChatStatistics:
        """Counters, cheap."""
        ...

    async def aclose(self) -> None:
        """Close connections. No call may follow."""
        ...


def public(messages: Sequence[ChatMessage]) -> list[ChatMessage]:
    """A request without what is private: other programs may have put anything into the bucket."""
    return [ChatMessage(message.role, redact(message.content).text) for message in messages]
