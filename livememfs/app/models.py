"""The chat models, from settings: the one that consolidates, and the one that observes.

Owns the choice of endpoint or program; its client is imported only when it is used. Any thread, but not for closing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from livememfs.config import Settings
from livememfs.environment import environment_of_others

if TYPE_CHECKING:
    from livememfs.llm.base import ChatModel

BUILTIN, NONE = "builtin", "none"
"""Names of models without an endpoint: the one that is installed with livememfs, and no model at all."""


@dataclass(frozen=True, kw_only=True)
class Models:
    """The models. Without `consolidating`, notes are filed as they are; without `observing`, nothing is observed."""

    consolidating: ChatModel | None
    observing: ChatModel | None

    async def aclose(self) -> None:
        """Close their connections."""
        for model in (self.consolidating, self.observing):
            if model is not None:
                await model.aclose()


def open_models(settings: Settings) -> Models:
    """The configured models. Makes no request."""
    observing = None
    if settings.observe_model not in (BUILTIN, NONE):
        observing = open_chat(settings, settings.observe_model or settings.llmaas_model, settings.observe_timeout)
    return Models(
        consolidating=open_chat(settings, settings.llmaas_model, settings.consolidation_timeout), observing=observing
    )


def open_chat(settings: Settings, model: str, timeout: float) -> ChatModel | None:
    """A model of the configured endpoint or program; None when neither is configured."""
    if settings.llmaas_command:
        from livememfs.llm.command import CommandChat

        return CommandChat(settings.llmaas_command, model, environment_of_others(), timeout)
    if not settings.llmaas_api_url:
        return None
    from livememfs.llm.client import OpenAIChat

    return OpenAIChat(settings.llmaas_api_url, settings.llmaas_api_key, model, timeout)
