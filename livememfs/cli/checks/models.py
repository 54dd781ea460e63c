"""Whether the models for consolidation, observing and search by meaning answer, and a shared index.

Owns one tiny request to each. Trio thread only.
"""

from __future__ import annotations

from pathlib import Path

import trio

from livememfs.app.models import BUILTIN, NONE, open_chat
from livememfs.app.recall import check_search, open_embedder, open_engine
from livememfs.cli.checks import Check, attempt
from livememfs.config import Settings
from livememfs.errors import CommandFailed, LiveMemError, ModelDenied, ModelUnreachable, ReplyRefused, SettingsError
from livememfs.llm.base import ChatMessage
from livememfs.shown import without_login

MODEL_TIMEOUT = 60.0


async def checks(settings: Settings) -> list[Check]:
    """All checks of models, and of a shared index."""
    return [
        *await chats(settings),
        await _meanings(settings),
        *([await _index(settings)] if settings.index_url else []),
    ]


# --- what writes -------------------------------------------------------------------------------------------------


async def chats(settings: Settings) -> list[Check]:
    """The model, and the observing model if that is another one."""
    if not settings.llmaas_api_url and not settings.llmaas_command:
        return [Check("model", "ok", "none configured: consolidation files notes verbatim (built-in)")]
    results = [await _chat("model", settings, settings.llmaas_model, "LLMAAS_MODEL")]
    other = settings.observe_model
    if other not in ("", BUILTIN, NONE, settings.llmaas_model) and results[0].verdict != "fail":
        results.append(await _chat("model, observing", settings, other, "LIVEMEMFS_OBSERVE_MODEL"))
    return results


async def _chat(name: str, settings: Settings, model: str, variable: str) -> Check:
    """Whether a model answers a tiny request: so endpoint, key and model name are right."""
    chat = open_chat(settings, model, min(settings.consolidation_timeout, MODEL_TIMEOUT))
    assert chat is not None  # the caller made sure that a model is configured
    refused: list[str] = []

    async def work() -> None:
        question = ChatMessage("user", 'Answer with the JSON object {"ok": true} and nothing else.')
        try:
            await chat.chat([question], max_tokens=64, temperature=settings.llmaas_temperature)
        except ReplyRefused as error:  # it did answer, so endpoint, key and model name are right
            refused.append(str(error.values["detail"]))

    try:
        failed = await attempt(name, work, lambda error: _advice(error, settings, variable))
    finally:
        await chat.aclose()
    if refused:
        return Check(name, "warn", f"it answers, but {refused[0]}", "a consolidation may fail too")
    where = f" at {without_login(settings.llmaas_api_url)}" if settings.llmaas_api_url else ""
    return failed or Check(name, "ok", f"{chat.name}{where}")


def _advice(error: LiveMemError, settings: Settings, variable: str) -> str:
    """The setting to correct, according to the endpoint's error."""
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
        return f"check that LLMAAS_API_KEY may use {variable}"
    return f"check LLMAAS_API_URL, LLMAAS_API_KEY and {variable}"


# --- what finds --------------------------------------------------------------------------------------------------


async def _meanings(settings: Settings) -> Check:
    try:
        check_search(settings)
    except LiveMemError as error:
        return Check("search", "warn", str(error), error.advice())
    try:
        with trio.fail_after(MODEL_TIMEOUT):
            embedder = await open_embedder(settings)
            if embedder is None:
                return Check("embeddings", "ok", "none: search by words only")
            try:
                await embedder.question("which database")
            finally:
                await embedder.aclose()
    except (LiveMemError, trio.TooSlowError) as error:
        advice = "check LIVEMEMFS_EMBED_MODEL, LIVEMEMFS_EMBED_URL and LIVEMEMFS_EMBED_KEY; now search is by words only"
        if isinstance(error, SettingsError):
            advice = error.advice() or advice
        return Check("embeddings", "warn", str(error) or "no answer", advice)
    return Check("embeddings", "ok", embedder.name)


async def _index(settings: Settings) -> Check:
    def look() -> str:
        engine = open_engine(settings, Path())
        # Its driver is installed, or the engine would not have opened.
        from livememfs.recall.postgres.connection import place_of

        try:
            return f"{engine.statistics().records:,} records at {place_of(settings.index_url)}"
        finally:
            engine.close()

    try:
        return Check("index", "ok", await trio.to_thread.run_sync(look))
    except LiveMemError as error:
        return Check("index", "fail", str(error), error.advice() or "check LIVEMEMFS_INDEX_URL and the database")
