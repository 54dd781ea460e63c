"""The bucket, or the folder in its place, from settings.

Owns the choice of the store, and its share of an operation's time. Makes no request. Any thread.
"""

from __future__ import annotations

from contextlib import suppress

from livememfs import private
from livememfs.clock import SystemClock
from livememfs.config import Settings
from livememfs.environment import default_store
from livememfs.store.base import Store
from livememfs.store.retry import RetryingStore, RetryPolicy

PATIENCE = 2 / 3
"""The store's share of an operation's time: its own error must come before the deadline of the operation."""


def open_store(settings: Settings) -> RetryingStore:
    """The configured bucket, or the folder in its place. Makes no request. Raises the errors of the folder."""
    policy = RetryPolicy(deadline=settings.op_timeout * PATIENCE)
    return RetryingStore(_bucket(settings) if settings.s3_bucket_name else _folder(settings), policy)


def _bucket(settings: Settings) -> Store:
    # Imported here: commands on a folder need not load what signs and sends requests.
    from livememfs.store.markers import MarkerStore
    from livememfs.store.s3 import S3Options, S3Store

    bucket = S3Store(
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
    return MarkerStore(bucket)


def _folder(settings: Settings) -> Store:
    from livememfs.store.directory import DirectoryStore

    if settings.store_path == default_store():  # another folder may be shared on purpose
        with suppress(OSError):  # the error comes from opening it, with the reason
            private.folder(settings.store_path, top=settings.store_path.parent)
    return DirectoryStore(settings.store_path, SystemClock())
