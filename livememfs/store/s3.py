"""A bucket behind the S3 protocol, Amazon's or anybody's.

Owns the requests: one per method, made by boto3 in worker threads of its own limiter. What replies and errors mean is
`s3_replies`, how clients are set up is `s3_client`. Refuses to retry and to cache. Called from the trio thread; a read
is abandoned when cancelled (its thread ends by the timeouts), a write is always waited for.

Two things S3 servers do not give are made up for. Few honour a condition on a COPY, so the target is looked at first:
that leaves a gap of one round trip, no more. And a COPY's reply has no size, so the source is looked at as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any, TypeVar

import trio

from livememfs.errors import ObjectMissing
from livememfs.store.base import (
    MAX_PAGE,
    Condition,
    IfMatch,
    ObjectInfo,
    Page,
    StoredObject,
    StoreStatistics,
    Tally,
    check_condition,
    check_key,
    check_meta,
)
from livememfs.store.s3_client import Clients, S3Options, condition_headers
from livememfs.store.s3_replies import (
    TRANSLATED,
    Asked,
    answered_at,
    described,
    encode_meta,
    etag_of,
    listed,
    moment_of,
    translate,
)

__all__ = ["S3Options", "S3Store"]

T = TypeVar("T")


class S3Store:
    """A Store in an S3 bucket. Opening makes no request; a missing bucket is told by the first one."""

    def __init__(self, options: S3Options) -> None:
        self.options = options
        self.label = f"s3://{options.bucket} at {options.endpoint}"
        self._clients = Clients(options)
        self._limiter = trio.CapacityLimiter(options.threads)
        self._tally = Tally()

    async def get(self, key: str, *, if_match: str | None = None) -> StoredObject:
        """See Store.get."""

        def work() -> StoredObject:
            wanted: dict[str, Any] = {} if if_match is None else {"IfMatch": self._etag_argument(if_match)}
            reply = self._clients.data.get_object(Bucket=self.options.bucket, Key=key, **wanted)
            with closing(reply["Body"]) as body:  # entering the body itself would hand out its raw stream
                return StoredObject(described(key, reply), body.read())

        found = await self._ask("get", check_key(key), work)
        self._tally.bytes_in += len(found.data)
        return found

    async def head(self, key: str) -> ObjectInfo:
        """See Store.head."""
        return await self._ask("head", check_key(key), lambda: self._head(key))

    async def put(
        self, key: str, data: bytes, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """See Store.put."""
        kept = check_meta(meta)

        def work() -> ObjectInfo:
            reply = self._clients.data.put_object(
                Bucket=self.options.bucket, Key=key, Body=data, Metadata=encode_meta(kept), **self._when(condition)
            )
            return ObjectInfo(key, etag_of(reply["ETag"]), len(data), answered_at(reply), kept)

        info = await self._ask("put", check_key(key), work, conditional=condition is not None)
        self._tally.bytes_out += len(data)
        return info

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """See Store.delete."""

        def work() -> None:
            try:
                self._clients.data.delete_object(Bucket=self.options.bucket, Key=key, **self._when(condition))
            except TRANSLATED as error:
                # Some servers answer 404 for a key that is not there; without a condition that is what was wanted.
                meant = translate(error, self._asked("delete", key, conditional=condition is not None))
                if condition is not None or not isinstance(meant, ObjectMissing):
                    raise

        await self._ask("delete", check_key(key), work, conditional=condition is not None)

    async def copy(
        self,
        source: str,
        target: str,
        *,
        meta: Mapping[str, str] | None = None,
        condition: Condition | None = None,
    ) -> ObjectInfo:
        """See Store.copy."""
        replaced = None if meta is None else check_meta(meta)
        for key in (source, target):
            check_key(key)
        origin = await self._ask("head", source, lambda: self._head(source))
        if condition is not None:
            current = await self._ask("head", target, lambda: self._etag_now(target))
            check_condition(condition, key=target, current=current)
        if source == target and replaced is None:
            return origin  # S3 refuses a copy that changes nothing
        return await self._ask(
            "copy",
            target,
            lambda: self._copy(origin, target, replaced, condition),
            conditional=condition is not None,
        )

    async def list_page(
        self,
        prefix: str = "",
        *,
        delimiter: str = "",
        start_after: str = "",
        token: str | None = None,
        limit: int = MAX_PAGE,
    ) -> Page:
        """See Store.list_page."""
        optional = {"Delimiter": delimiter, "StartAfter": start_after, "ContinuationToken": token}
        given: dict[str, Any] = {name: value for name, value in optional.items() if value}

        def work() -> Page:
            reply = self._clients.query.list_objects_v2(
                Bucket=self.options.bucket, Prefix=prefix, MaxKeys=min(max(limit, 1), MAX_PAGE), **given
            )
            return Page(
                tuple(map(listed, reply.get("Contents", ()))),
                tuple(entry["Prefix"] for entry in reply.get("CommonPrefixes", ())),
                reply.get("NextContinuationToken") if reply.get("IsTruncated") else None,
            )

        return await self._ask("list", prefix, work)

    async def aclose(self) -> None:
        """See Store.aclose."""
        self._clients.close()
        await trio.lowlevel.checkpoint()

    def statistics(self) -> StoreStatistics:
        """See Store.statistics."""
        return self._tally.snapshot()

    def _head(self, key: str) -> ObjectInfo:
        return described(key, self._clients.query.head_object(Bucket=self.options.bucket, Key=key))

    def _etag_now(self, key: str) -> str | None:
        try:
            return self._head(key).etag
        except TRANSLATED as error:
            if isinstance(translate(error, self._asked("head", key)), ObjectMissing):
                return None
            raise

    def _copy(
        self, origin: ObjectInfo, target: str, meta: dict[str, str] | None, condition: Condition | None
    ) -> ObjectInfo:
        given: dict[str, Any] = {} if meta is None else {"MetadataDirective": "REPLACE", "Metadata": encode_meta(meta)}
        reply = self._clients.data.copy_object(
            Bucket=self.options.bucket,
            Key=target,
            CopySource={"Bucket": self.options.bucket, "Key": origin.key},
            **given,
            **self._when(condition),
        )
        result = reply["CopyObjectResult"]
        etag = etag_of(result["ETag"])
        if etag != origin.etag:
            return self._head(target)  # the source changed meanwhile, or the server gives a copy an etag of its own
        kept = origin.meta if meta is None else meta
        return ObjectInfo(target, etag, origin.size, moment_of(result.get("LastModified")), kept)

    def _etag_argument(self, etag: str) -> str:
        return f'"{etag}"' if self.options.quoted_etags else etag

    def _when(self, condition: Condition | None) -> dict[str, Any]:
        return condition_headers(condition, quoted=self.options.quoted_etags)

    def _asked(self, verb: str, key: str, *, conditional: bool = False) -> Asked:
        return Asked(verb, key, self.options.bucket, self.options.endpoint, conditional)

    async def _ask(self, verb: str, key: str, work: Callable[[], T], *, conditional: bool = False) -> T:
        """Run one request in a thread, counted, its errors in our terms."""
        asked = self._asked(verb, key, conditional=conditional)

        def translated() -> T:
            try:
                return work()
            except TRANSLATED as error:
                raise translate(error, asked) from error

        with self._tally.request(verb):
            return await trio.to_thread.run_sync(
                translated, limiter=self._limiter, abandon_on_cancel=verb in ("get", "head", "list")
            )
