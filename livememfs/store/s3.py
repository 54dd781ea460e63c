"""A bucket behind the S3 protocol, Amazon's or anybody's.

Owns the requests: one per method, made in worker threads of its own limiter. What replies and errors mean is
`s3_replies`, how a request is signed and sent is `s3_client`. Refuses to retry and to cache. Called from the trio
thread; a read is abandoned when cancelled (its thread ends by the timeouts), a write is always waited for.

Two things S3 servers do not give are made up for. Few honour a condition on a COPY, so the target is looked at first:
that leaves a gap of one round trip, no more. And a COPY's reply has no size, so the source is looked at as well.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

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
from livememfs.store.content import Content, FileContent
from livememfs.store.s3_client import Client, S3Options, condition_headers, copy_headers
from livememfs.store.s3_http import HttpReply
from livememfs.store.s3_rare import put_parts, strangers
from livememfs.store.s3_reader import WORTH, Reader, Reading, getter
from livememfs.store.s3_replies import (
    TRANSLATED,
    S3Request,
    described,
    document,
    etag_in,
    meta_headers,
    moment_of,
    page_of,
    refusal,
    stored,
    translate,
)
from livememfs.store.s3_xml import Malformed
from livememfs.text.mediatypes import content_type

__all__ = ["S3Options", "S3Store"]

T = TypeVar("T")


class S3Store:
    """A Store in an S3 bucket. Opening makes no request; a missing bucket is told by the first one."""

    def __init__(self, options: S3Options) -> None:
        self.options = options
        self.label = f"s3://{options.bucket} at {options.endpoint}"
        self._client = Client(options)
        self._reader = Reader(options)
        self._limiter = trio.CapacityLimiter(options.threads)
        self._tally = Tally()

    async def get(self, key: str, *, if_match: str | None = None) -> StoredObject:
        """See Store.get."""
        asked = self._asked("get", check_key(key))
        headers = self._when(None if if_match is None else IfMatch(if_match))
        found = await self._ask(asked, lambda: stored(key, self._exchange(asked, "GET", headers)))
        self._tally.bytes_in += len(found.data)
        return found

    async def get_part(self, key: str, start: int, size: int, *, if_match: str) -> bytes:
        """See Store.get_part."""
        asked = self._asked("get", check_key(key))
        headers = self._when(IfMatch(if_match)) | {"Range": f"bytes={start}-{start + size - 1}"}

        def work() -> bytes:
            part = self._exchange(asked, "GET", headers).body
            if len(part) != size:
                raise Malformed(f"{len(part)} bytes came where {size} were asked for")
            return part

        part = await self._ask(asked, work)
        self._tally.bytes_in += len(part)
        return part

    async def get_many(self, keys: Sequence[str], *, at_once: int = 4) -> list[StoredObject]:
        """See Store.get_many."""
        found: list[StoredObject] | None = None
        if len(keys) >= WORTH:
            try:
                found = await trio.to_thread.run_sync(
                    self._reader.read, keys, at_once, limiter=self._limiter, abandon_on_cancel=True
                )
            except trio.Cancelled:
                self._reader.stop()
                raise
        if found is None:
            found = await self._read_here(keys, at_once)
        self._tally.requests("get", len(found))
        self._tally.bytes_in += sum(len(one.data) for one in found)
        return found

    async def _read_here(self, keys: Sequence[str], at_once: int) -> list[StoredObject]:
        reading = Reading(getter(self._client, self.options), keys)
        try:
            async with trio.open_nursery() as nursery:
                for _ in range(at_once):
                    nursery.start_soon(
                        partial(trio.to_thread.run_sync, reading.work, limiter=self._limiter, abandon_on_cancel=True)
                    )
        finally:
            reading.stop()  # for threads that nobody waits for any more
        return reading.found

    async def head(self, key: str) -> ObjectInfo:
        """See Store.head."""
        asked = self._asked("head", check_key(key))
        return await self._ask(asked, lambda: self._head(asked))

    async def put(
        self, key: str, data: Content, *, meta: Mapping[str, str] | None = None, condition: Condition | None = None
    ) -> ObjectInfo:
        """See Store.put."""
        kept = check_meta(meta)
        asked = self._asked("put", check_key(key), condition)

        def work() -> ObjectInfo:
            if isinstance(data, FileContent):
                return self._put_parts(asked, data, kept, condition)
            reply = self._exchange(asked, "PUT", _described_by(key, kept) | self._when(condition), data)
            # When the server answered, by its own clock: a PUT reply tells nothing closer about the object's date.
            return ObjectInfo(key, etag_in(reply.headers), len(data), moment_of(reply.headers.get("date")), kept)

        info = await self._ask(asked, work)
        self._tally.bytes_out += len(data)
        return info

    async def delete(self, key: str, *, condition: IfMatch | None = None) -> None:
        """See Store.delete."""
        asked = self._asked("delete", check_key(key), condition)

        def work() -> None:
            try:
                self._exchange(asked, "DELETE", self._when(condition))
            except ObjectMissing:
                # Some servers answer 404 for a key that is not there; without a condition that is what was wanted.
                if condition is not None:
                    raise

        await self._ask(asked, work)

    async def copy(
        self,
        source: str,
        target: str,
        *,
        meta: Mapping[str, str] | None = None,
        condition: Condition | None = None,
        known: ObjectInfo | None = None,
    ) -> ObjectInfo:
        """See Store.copy."""
        replaced = None if meta is None else check_meta(meta)
        for key in (source, target):
            check_key(key)
        origin = known if known is not None else await self.head(source)
        if condition is not None:
            looked = self._asked("head", target)
            current = await self._ask(looked, lambda: self._etag_now(looked))
            check_condition(condition, key=target, current=current)
        if source == target and replaced is None:
            return origin  # S3 refuses a copy that changes nothing
        asked = self._asked("copy", target, condition)
        return await self._ask(asked, lambda: self._copy(asked, origin, replaced, condition))

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
        # Escaped, because XML cannot carry every character that a key may have.
        query = {"list-type": "2", "encoding-type": "url", "max-keys": str(min(max(limit, 1), MAX_PAGE))}
        optional = {"delimiter": delimiter, "start-after": start_after, "continuation-token": token}
        query |= {"prefix": prefix} | {name: value for name, value in optional.items() if value}
        asked = self._asked("list", prefix)

        def work() -> Page:
            return page_of(document(self._exchange(asked, "GET", query=query), "ListBucketResult", asked))

        return await self._ask(asked, work)

    async def strangers(self) -> list[str]:
        """Which strangers the bucket lets in, as far as the server tells. Raises Denied, Unreachable or StoreError."""
        asked = self._asked("list", "")
        return await self._ask(asked, lambda: strangers(self.options))

    async def aclose(self) -> None:
        """See Store.aclose."""
        self._reader.close()
        self._client.close()
        await trio.lowlevel.checkpoint()

    def statistics(self) -> StoreStatistics:
        """See Store.statistics."""
        return self._tally.snapshot()

    def _head(self, asked: S3Request) -> ObjectInfo:
        return described(asked.key, self._exchange(asked, "HEAD"))

    def _etag_now(self, asked: S3Request) -> str | None:
        try:
            return self._head(asked).etag
        except ObjectMissing:
            return None

    def _copy(
        self, asked: S3Request, origin: ObjectInfo, meta: dict[str, str] | None, condition: Condition | None
    ) -> ObjectInfo:
        headers = copy_headers(self.options.bucket, origin.key) | self._when(condition)
        if meta is not None:
            headers |= {"x-amz-metadata-directive": "REPLACE"} | _described_by(asked.key, meta)
        result = document(self._exchange(asked, "PUT", headers), "CopyObjectResult", asked).values
        etag = etag_in(result, "ETag")
        if etag != origin.etag:
            # The source changed meanwhile, or the server gives a copy an etag of its own.
            return self._head(self._asked("head", asked.key))
        kept = origin.meta if meta is None else meta
        return ObjectInfo(asked.key, etag, origin.size, moment_of(result.get("LastModified")), kept)

    def _put_parts(
        self, asked: S3Request, content: FileContent, meta: dict[str, str], condition: Condition | None
    ) -> ObjectInfo:
        """A large put. Not every server heeds a condition on its last step, so we look before that, and at once."""

        looked = self._asked("head", asked.key)

        def look() -> None:
            trio.from_thread.check_cancelled()
            if condition is not None:
                check_condition(condition, key=asked.key, current=self._etag_now(looked))

        look()
        how = ObjectInfo(asked.key, "", content.size, 0, meta)
        etag = put_parts(self.options, asked, content, how, self._when(condition), look)
        found = self._head(looked)
        return found if found.etag == etag else replace(how, etag=etag)

    def _when(self, condition: Condition | None) -> dict[str, str]:
        return condition_headers(condition, quoted=self.options.quoted_etags)

    def _asked(self, verb: str, key: str, condition: Condition | None = None) -> S3Request:
        return S3Request(verb, key, self.options.bucket, self.options.endpoint, condition is not None)

    def _exchange(
        self,
        asked: S3Request,
        method: str,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        *,
        query: Mapping[str, str] | None = None,
    ) -> HttpReply:
        """The reply to one request, on the object unless there is a query. Raises what a refusal means."""
        key = asked.key if query is None else None
        reply = self._client.send(method, key, query=query, headers=headers, body=body)
        refused = refusal(reply, asked)
        if refused is not None:
            raise refused
        return reply

    async def _ask(self, asked: S3Request, work: Callable[[], T]) -> T:
        """Run one request in a thread, counted, its errors in our terms."""

        def translated() -> T:
            try:
                return work()
            except TRANSLATED as error:
                raise translate(error, asked) from error

        with self._tally.request(asked.verb):
            return await trio.to_thread.run_sync(
                translated, limiter=self._limiter, abandon_on_cancel=asked.verb in ("get", "head", "list")
            )


def _described_by(key: str, meta: Mapping[str, str]) -> dict[str, str]:
    """The headers that say what an object is: its content type, and user metadata."""
    return {"Content-Type": content_type(key)} | meta_headers(meta)
