"""Search, and what is told at a turn, from settings: the index, the embedding model, and their limits.

Owns the choice of index and embedding model; a command imports only what it needs. Any thread, except where a function
says otherwise.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

import trio

from livememfs.app.basics import Basics, local_state
from livememfs.app.models import BUILTIN, NONE
from livememfs.app.store import open_store
from livememfs.cache.replica import Replica
from livememfs.config import Settings
from livememfs.errors import LiveMemError, SettingsError
from livememfs.recall.service import Recall
from livememfs.recall.turn.choosing import PrehookSettings
from livememfs.recall.turn.inject import Limits
from livememfs.shown import without_login

if TYPE_CHECKING:
    from livememfs.code.workplaces import Workplaces
    from livememfs.recall.embed.base import Embedder
    from livememfs.recall.index.engine import Engine

INDEX = "index"
"""The folder of the search index in the local state of a bucket."""
_NOT_INSTALLED = "{}, and what it needs is not installed: pip install livememfs[{}]{}"


def open_recall(basics: Basics, *, replica: Replica, index: Path, code: Workplaces) -> Recall:
    """Search over a bucket. The index and the model are opened at the first question."""
    settings = basics.settings
    if basics.serving or basics.mountpoint is not None:
        check_embed_folder(settings)
    return Recall(
        replica,
        basics.clock,
        lambda: open_engine(settings, index),
        lambda: open_embedder(settings),
        open_former=partial(open_former, settings) if settings.embed_model != NONE else None,
        share=settings.share_vectors,
        recent_days=settings.search_recent_days,
        background=basics.background,
        code=code,
    )


async def open_embedder(settings: Settings) -> Embedder | None:
    """The configured embedding model, loaded; None for search by words alone. Raises ModelError, SettingsError."""
    if settings.embed_model == NONE:
        return None
    if settings.embed_model == BUILTIN:
        from livememfs.recall.embed.builtin import Builtin

        with _search_extra():
            return await trio.to_thread.run_sync(Builtin.load)
    if settings.embed_folder is not None:
        with _extra("LIVEMEMFS_EMBED_MODEL is a folder", "search,tokenizers"):
            from livememfs.recall.embed.folder import FolderEmbedder

            return await trio.to_thread.run_sync(FolderEmbedder.load, settings.embed_folder)
    return _at_endpoint(settings, settings.embed_model)


async def open_former(settings: Settings, name: str, place: str) -> Embedder | None:
    """The model that made vectors of this name, where it can still be had: the built-in one, one that is in its folder
    as it was, or one at the endpoint that is set. Raises ModelError, SettingsError.
    """
    from livememfs.recall.embed.builtin import NAME, Builtin
    from livememfs.recall.embed.folder import FolderEmbedder, ModelFolder

    if name == NAME:
        return await trio.to_thread.run_sync(Builtin.load)
    if place:
        folder = Path(place)
        is_same = await trio.to_thread.run_sync(lambda: ModelFolder.read(folder).name) == name
        return await trio.to_thread.run_sync(FolderEmbedder.load, folder) if is_same else None
    model, _, url = name.rpartition(" at ")
    return _at_endpoint(settings, model) if model and url == without_login(settings.embed_url) else None


def _at_endpoint(settings: Settings, model: str) -> Embedder:
    from livememfs.recall.embed.endpoint import EndpointEmbedder

    return EndpointEmbedder(settings.embed_url, settings.embed_key, model, settings.op_timeout)


def check_embed_folder(settings: Settings) -> None:
    """Raise SettingsError for a folder that lacks something now, while somebody looks, and not at the first search."""
    if settings.embed_folder is not None:
        from livememfs.recall.embed.folder import ModelFolder

        ModelFolder.read(settings.embed_folder)
        if find_spec("tokenizers") is None:
            raise SettingsError(_NOT_INSTALLED.format("LIVEMEMFS_EMBED_MODEL is a folder", "search,tokenizers", ""))


def open_engine(settings: Settings, folder: Path) -> Engine:
    """The configured index, open: in `folder`, or a team's PostgreSQL. Blocking. CacheInUse, LiveMemError."""
    if settings.index_url:
        with _extra("LIVEMEMFS_INDEX_URL is set", "search,postgres"):
            from livememfs.recall.postgres.engine import Postgres

        return Postgres(settings.index_url, vectors_name(settings), open_store(settings).label)
    with _search_extra():
        from livememfs.recall.index.local import Index

    return Index(folder, vectors_name(settings), str(settings.embed_folder or ""))


def drop_engine(settings: Settings) -> None:
    """Delete the configured index; the next one that is opened is empty. Blocking. CacheInUse, LiveMemError."""
    if settings.index_url:
        with _extra("LIVEMEMFS_INDEX_URL is set", "search,postgres"):
            from livememfs.recall.postgres.schema import drop

        drop(settings.index_url, open_store(settings).label)
        return
    folder = index_folder(settings)
    open_engine(settings, folder).close()  # CacheInUse while another process uses it
    shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _extra(because: str, extra: str) -> Iterator[None]:
    """An import that only works where an optional package is installed."""
    try:
        yield
    except ImportError as error:
        raise SettingsError(_NOT_INSTALLED.format(because, extra, f" ({error})")) from None


@contextmanager
def _search_extra() -> Iterator[None]:
    """An import that only works where search was not left out."""
    try:
        yield
    except ImportError as error:
        # No brackets in it: pages of Markdown show this sentence too.
        detail = f"search is not installed here ({error}); install livememfs with its extra `search`"
        raise LiveMemError(detail, advice="pip install 'livememfs[search]'") from None


def check_search(settings: Settings) -> None:
    """LiveMemError where search was left out of this installation. Loads what a search needs, if it can."""
    if not settings.index_url:
        with _search_extra():
            import_module("livememfs.recall.index.local")


def index_folder(settings: Settings) -> Path:
    """The folder of the search index. Raises CacheInUse while a mount uses it, and the errors of the store."""
    return local_state(settings, open_store(settings).label) / INDEX


def vectors_name(settings: Settings) -> str:
    """The name under which vectors are kept: vectors of two models must never be mixed."""
    if settings.embed_model == BUILTIN:
        from livememfs.recall.embed.builtin import NAME

        return NAME
    if settings.embed_folder is not None:
        from livememfs.recall.embed.folder import ModelFolder

        try:
            return ModelFolder.read(settings.embed_folder).name
        except SettingsError:  # words are searched all the same, and whoever loads the model says why
            return NONE
    return f"{settings.embed_model} at {without_login(settings.embed_url)}"  # public in the bucket


def prehook_settings(settings: Settings) -> PrehookSettings:
    """What may be told at one turn."""
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
