"""boto3 clients as livememfs wants them, and the headers boto3 has no parameter for.

Owns connection options, signatures and the condition headers. Refuses to retry (`retry` does), to add checksums that
servers other than Amazon's reject, and to interpret replies (`s3_replies` does). Clients may be used from any thread.
"""

from __future__ import annotations

from collections.abc import MutableMapping
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Literal

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError

from livememfs.errors import SettingsError
from livememfs.store.base import Condition, IfAbsent

if TYPE_CHECKING:
    from botocore.awsrequest import AWSRequest
    from mypy_boto3_s3 import S3Client

_HEADERS = "LivememfsHeaders"
_SMALL_BODY = 1 << 20
_WRITES = ("PutObject", "DeleteObject", "CopyObject")


@dataclass(frozen=True, kw_only=True)
class S3Options:
    """How to reach a bucket.

    `endpoint_url` None means Amazon's own. Keys None means what boto3 finds by itself (profile, instance role).
    `signature_mode` "dual" signs PUT, GET and DELETE of objects with version 2 and HEAD and LIST with version 4, as
    Dell ECS wants it. `path_style` None means: with an endpoint, yes; at Amazon, no. `quoted_etags` puts If-Match
    values in quotes: the standard asks for them, Ceph rejects them, most servers take both. Timeouts are seconds.
    """

    bucket: str
    endpoint_url: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    region: str = "us-east-1"
    signature_mode: Literal["sigv4", "dual"] = "sigv4"
    path_style: bool | None = None
    quoted_etags: bool = False
    threads: int = 32
    connect_timeout: float = 5.0
    read_timeout: float = 20.0

    @property
    def endpoint(self) -> str:
        """Where the bucket is, for people."""
        return self.endpoint_url or f"Amazon S3, {self.region}"


class Clients:
    """Two ends of one configuration: `data` for PUT, GET and DELETE of objects, `query` for HEAD and LIST.

    They are the same client unless the signatures differ. Opened from one thread at a time; raises SettingsError for an
    endpoint that is no URL or half a pair of keys.
    """

    def __init__(self, options: S3Options) -> None:
        self.query = _client(options, "s3v4")
        self.data = _client(options, "s3") if options.signature_mode == "dual" else self.query

    def close(self) -> None:
        """Drop all connections."""
        self.query.close()
        self.data.close()


def condition_headers(condition: Condition | None, *, quoted: bool) -> dict[str, Any]:
    """Keyword arguments for a writing call that carry the condition, {} without one."""
    if condition is None:
        return {}
    if isinstance(condition, IfAbsent):
        return {_HEADERS: {"If-None-Match": "*"}}
    return {_HEADERS: {"If-Match": f'"{condition.etag}"' if quoted else condition.etag}}


def _client(options: S3Options, signature: str) -> S3Client:
    path_style = options.endpoint_url is not None if options.path_style is None else options.path_style
    config = Config(
        signature_version=signature,
        s3={"addressing_style": "path" if path_style else "auto"},
        connect_timeout=options.connect_timeout,
        read_timeout=options.read_timeout,
        retries={"total_max_attempts": 1, "mode": "standard"},
        max_pool_connections=options.threads,
        request_checksum_calculation="when_required",
        response_checksum_validation="when_required",
        user_agent_extra="livememfs",
    )
    try:
        client = _session().client(
            "s3",
            endpoint_url=options.endpoint_url,
            region_name=options.region,
            aws_access_key_id=options.access_key_id,
            aws_secret_access_key=options.secret_access_key,
            aws_session_token=options.session_token,
            config=config,
        )
    except (ValueError, BotoCoreError) as error:
        raise SettingsError(f"there is no S3 client for {options.endpoint}: {error}") from error
    _register(client)
    return client


@cache
def _session() -> boto3.session.Session:
    """One for the process, and ours alone: reading boto3's model of S3 takes a tenth of a second each time."""
    return boto3.session.Session()


def _register(client: S3Client) -> None:
    for operation in _WRITES:
        client.meta.events.register(f"before-parameter-build.s3.{operation}", _take_headers)
        client.meta.events.register(f"before-call.s3.{operation}", _add_headers)
    client.meta.events.register("before-sign.s3.PutObject", _spare_the_round_trip)


def _take_headers(params: MutableMapping[str, Any], context: MutableMapping[str, Any], **_: Any) -> None:
    """Move our own argument out of the parameters, before boto3 looks for it in its model of the operation."""
    if _HEADERS in params:
        context[_HEADERS] = params.pop(_HEADERS)


def _add_headers(params: MutableMapping[str, Any], context: MutableMapping[str, Any], **_: Any) -> None:
    """Put the headers on the request while it is still unsigned."""
    params["headers"].update(context.pop(_HEADERS, {}))


def _spare_the_round_trip(request: AWSRequest, **_: Any) -> None:
    """Small bodies are sent at once: asking the server first costs more than sending them in vain."""
    if int(request.headers.get("Content-Length") or _body_size(request.data)) < _SMALL_BODY:
        del request.headers["Expect"]


def _body_size(body: object) -> int:
    getbuffer = getattr(body, "getbuffer", None)
    if getbuffer is not None:
        return int(getbuffer().nbytes)
    return len(body) if isinstance(body, bytes | bytearray) else _SMALL_BODY
