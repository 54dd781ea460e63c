"""From settings to the parts that reach out of the process: the bucket, the model, the embedding model, the index.

Owns which of several implementations is meant by which settings; what a command does not need is not even imported.
Refuses to read the environment. Any thread, but for what says otherwise.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from livememfs import private
from livememfs.cache.folder import cache_folder
from livememfs.clock import Clock, SystemClock
from livememfs.config import Settings, default_store, environment_of_others
from livememfs.errors import SettingsError
from livememfs.recall.turn.choosing import PrehookSettings
from livememfs.recall.turn.inject import Limits
from livememfs.runs.options import ConsolidationSettings
from livememfs.shown import without_login
from livememfs.store.base import Store
from livememfs.store.retry import RetryingStore, RetryPolicy

if TYPE_CHECKING:
    from livememfs.llm.base import ChatModel
    from livememfs.recall.embed.base import Embedder
    from livememfs.recall.index.engine import Engine

INDEX = "index"
"""The folder of the search index in the local state of a bucket."""
BUILTIN, NONE = "builtin", "none"
PATIENCE = 2 / 3
"""The store's share of an operation's time: its last word must come before the deadline cuts it off."""


def open_store(settings: Settings, clock: Clock) -> Store:
    """The configured bucket, or the folder in its place. Makes no request. Raises what the folder fails with."""
    policy = RetryPolicy(deadline=settings.op_timeout * PATIENCE)
    return RetryingStore(_bucket(settings) if settings.s3_bucket_name else _folder(settings, clock), policy)


def _bucket(settings: Settings) -> Store:
    # Imported here: commands on a folder need not load what signs and sends requests.
    from livememfs.store.s3 import S3Options, S3Store

    return S3Store(
        S3Options(
            bucket=settings.s3_bucket_name,
            endpoint_url=settings.s3_endpoint_url or None,
            access_key_id=settings.s3_access_key_id or None,
            secret_access_key=settings.s3_secret_access_key or None,
            session_token=settings.s3_session_token or None,
            region=settings.s3_region_name,
            signature_mode=settings.s3_signature_mode,
            path_style=settings.s3_path_style if settings.s3_endpoint_url else None,
            connect_timeout=min(5.0, settings.op_timeout * PATIENCE),
            read_timeout=min(20.0, settings.op_timeout * PATIENCE),
        )
    )


def _folder(settings: Settings, clock: Clock) -> Store:
    from livememfs.store.directory import DirectoryStore

    if settings.store_path == default_store():  # any other may be shared on purpose
        with suppress(OSError):  # opening it says why
            private.folder(settings.store_path, top=settings.store_path.parent)
    return DirectoryStore(settings.store_path, clock)


def local_state(settings: Settings, label: str) -> Path:
    """The folder for the local state of the bucket that `label` names. CacheInUse, CacheUnusable, NotPrivate."""
    if not settings.cache:
        with suppress(OSError):  # choosing one in it says why
            private.folder(settings.cache_path, top=settings.cache_path.parent)
    return cache_folder(settings.cache_path, label)


def open_model(settings: Settings) -> ChatModel | None:
    """The configured model; None when there is none, and notes are filed without one."""
    return open_chat(settings, settings.llmaas_model, settings.consolidation_timeout)


def open_observing_model(settings: Settings) -> ChatModel | None:
    """The model that observes; None when none is asked."""
    if settings.observe_model in (BUILTIN, NONE):
        return None
    return open_chat(settings, settings.observe_model or settings.llmaas_model, settings.observe_timeout)


def open_chat(settings: Settings, model: str, timeout: float) -> ChatModel | None:
    """A model of the configured endpoint or program; None without either."""
    if settings.llmaas_command:
        from livememfs.llm.command import CommandChat

        return CommandChat(settings.llmaas_command, model, environment_of_others(), timeout)
    if not settings.llmaas_api_url:
        return None
    from livememfs.llm.client import OpenAIChat

    return OpenAIChat(settings.llmaas_api_url, settings.llmaas_api_key, model, timeout)


async def open_embedder(settings: Settings) -> Embedder | None:
    """The configured model for meanings, loaded; None where words have to do. Raises ModelError."""
    if settings.embed_model == NONE:
        return None
    if settings.embed_model == BUILTIN:
        from livememfs.recall.embed.builtin import Builtin

        return await trio.to_thread.run_sync(Builtin.load)
    from livememfs.recall.embed.endpoint import EndpointEmbedder

    return EndpointEmbedder(settings.embed_url, settings.embed_key, settings.embed_model, settings.op_timeout)


def open_engine(settings: Settings, folder: Path) -> Engine:
    """The configured index, open: the one in `folder`, or that of a team. Blocking. CacheInUse, LiveMemError."""
    if settings.index_url:
        with _postgres_extra():
            from livememfs.recall.postgres.engine import Postgres

        return Postgres(settings.index_url, vectors_name(settings), open_store(settings, SystemClock()).label)
    from livememfs.recall.index.local import Index

    return Index(folder, vectors_name(settings))


def drop_engine(settings: Settings) -> None:
    """Take the configured index away; the next one that is opened is empty. Blocking. CacheInUse, LiveMemError."""
    if settings.index_url:
        with _postgres_extra():
            from livememfs.recall.postgres.schema import drop

        drop(settings.index_url, open_store(settings, SystemClock()).label)
        return
    folder = index_folder(settings)
    open_engine(settings, folder).close()  # nobody else uses it
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgres_extra() -> Iterator[None]:
    """An import that only works where the optional driver is installed."""
    try:
        yield
    except ImportError as error:
        raise SettingsError(
            f"LIVEMEMFS_INDEX_URL is set, and what it needs is not installed: pip install livememfs[postgres] ({error})"
        ) from None


def index_folder(settings: Settings) -> Path:
    """The folder of the search index that no mount uses now. Raises CacheInUse, and what the store fails with."""
    return local_state(settings, open_store(settings, SystemClock()).label) / INDEX


def vectors_name(settings: Settings) -> str:
    """The name under which vectors are kept: those of two models must never meet."""
    if settings.embed_model == BUILTIN:
        from livememfs.recall.embed.builtin import NAME

        return NAME
    return f"{settings.embed_model} at {without_login(settings.embed_url)}"  # others read it in the bucket


def usable_host(host: str) -> str:
    """A host's name as a part of a key."""
    return re.sub(r"[^A-Za-z0-9.-]", "-", host).strip(".-") or "host"


def consolidation_settings(settings: Settings) -> ConsolidationSettings:
    """How notes become a bank."""
    return ConsolidationSettings(
        max_notes=settings.consolidation_max_notes,
        max_tokens=settings.llmaas_max_tokens,
        temperature=settings.llmaas_temperature,
        context_window=settings.context_window,
        unsourced=settings.unsourced,
        drop_limit=settings.drop_limit,
    )


def prehook_settings(settings: Settings) -> PrehookSettings:
    """What a turn may bring."""
    return PrehookSettings(
        recent_hours=settings.recall_recent_hours,
        important=settings.recall_important,
        channel_only=settings.recall_channel_scope,
        pinned=settings.recall_pinned,
        relevant=settings.recall_relevant,
        live=settings.recall_live,
        files=settings.file_memory,
        limits=Limits(
            most=settings.recall_most,
            alike=settings.recall_alike,
            buffer=settings.recall_buffer,
            window=settings.recall_window,
            budget=settings.recall_budget,
        ),
    )
