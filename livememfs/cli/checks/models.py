"""Whether the models answer: the one that consolidates, the one that observes, the one for meanings; and the index.

Owns one tiny request to each. Trio thread only.
"""

from __future__ import annotations

from pathlib import Path

import trio

from livememfs.app.models import BUILTIN, NONE, open_chat
from livememfs.app.recall import open_embedder, open_engine
from livememfs.cli.checks import Check, attempt
from livememfs.config import Settings
from livememfs.errors import CommandFailed, LiveMemError, ModelDenied, ModelUnreachable, ReplyRefused
from livememfs.llm.base import ChatMessage
from livememfs.shown import without_login

MODEL_TIMEOUT = 60.0


async def checks(settings: Settings) -> list[Check]:
    """All of it."""
    return [
        *await _chats(settings),
        await _meanings(settings),
        *([await _index(settings)] if settings.index_url else []),
    ]


# --- what writes -------------------------------------------------------------------------------------------------


async def _chats(settings: Settings) -> list[Check]:
    """The model, and the one that observes where that is another."""
    if not settings.llmaas_api_url and not settings.llmaas_command:
        return [Check("model", "ok", "none configured: consolidation files notes verbatim (built-in)")]
    found = [await _chat("model", settings, settings.llmaas_model, "LLMAAS_MODEL")]
    other = settings.observe_model
    if other not in ("", BUILTIN, NONE, settings.llmaas_model) and found[0].verdict != "fail":
        found.append(await _chat("model, observing", settings, other, "LIVEMEMFS_OBSERVE_MODEL"))
    return found


async def _chat(name: str, settings: Settings, model: str, variable: str) -> Check:
    """Whether a model answers a tiny request, which takes endpoint, key and model name to be right."""
    chat = open_chat(settings, model, min(settings.consolidation_timeout, MODEL_TIMEOUT))
    assert chat is not None  # the caller looked
    refused: list[str] = []

    async def work() -> None:
        question = ChatMessage("user", 'Answer with the JSON object {"ok": true} and nothing else.')
        try:
            await chat.chat([question], max_tokens=64, temperature=settings.llmaas_temperature)
        except ReplyRefused as error:  # the endpoint, the key and the model name are right all the same
            refused.append(str(error.values["detail"]))

    try:
        failed = await attempt(name, work, lambda error: _advice(error, settings, variable))
    finally:
        await chat.aclose()
    if refused:
        return Check(name, "warn", f"it answers, but {refused[0]}", "a consolidation may fail as well")
    where = f" at {without_login(settings.llmaas_api_url)}" if settings.llmaas_api_url else ""
    return failed or Check(name, "ok", f"{chat.name}{where}")


def _advice(error: LiveMemError, settings: Settings, variable: str) -> str:
    """Which setting to correct, by what the endpoint said."""
    if isinstance(error, CommandFailed):
        return error.what_to_do.partition(";")[0]
    if isinstance(error, ModelUnreachable):
        url = without_login(settings.llmaas_api_url)
        return f"check that {url} (LLMAAS_API_URL) is right and can be reached from here"
    if isinstance(error, ModelDenied):
        if error.values.get("status") == 401:
            return "correct LLMAAS_API_KEY"
        if error.values.get("status") == 404:
            return f"correct {variable}, or LLMAAS_API_URL, which ends in /v1 for most servers"
        return f"see that LLMAAS_API_KEY may use {variable}"
    return f"check LLMAAS_API_URL, LLMAAS_API_KEY and {variable}"


# --- what finds --------------------------------------------------------------------------------------------------


async def _meanings(settings: Settings) -> Check:
    try:
        with trio.fail_after(MODEL_TIMEOUT):
            embedder = await open_embedder(settings)
            if embedder is None:
                return Check("embeddings", "ok", "none: searching by words alone")
            try:
                await embedder.question("which database")
            finally:
                await embedder.aclose()
    except (LiveMemError, trio.TooSlowError) as error:
        advice = "check LIVEMEMFS_EMBED_MODEL, LIVEMEMFS_EMBED_URL and LIVEMEMFS_EMBED_KEY; until then words have to do"
        return Check("embeddings", "warn", str(error) or "no answer", advice)
    return Check("embeddings", "ok", embedder.name)


async def _index(settings: Settings) -> Check:
    def look() -> str:
        engine = open_engine(settings, Path())
        from livememfs.recall.postgres.connection import place_of  # there is its driver, or it could not be opened

        try:
            return f"{engine.statistics().records:,} records at {place_of(settings.index_url)}"
        finally:
            engine.close()

    try:
        return Check("index", "ok", await trio.to_thread.run_sync(look))
    except LiveMemError as error:
        return Check("index", "fail", str(error), error.advice() or "check LIVEMEMFS_INDEX_URL and the database")
