"""Requests to one bucket: their headers and signatures, and sending them.

Owns connection options, signatures and the condition headers. The signatures are botocore's; the way to them is ours,
since boto3's client takes three times the CPU (docs/dependencies.md) and does what is rare (`s3_rare`). Refuses to
retry (`retry` does), to add checksums that servers other than Amazon's reject, and to interpret replies (`s3_replies`
does). A client may be used from any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import quote

from botocore.auth import HmacV1Auth, S3SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.credentials import Credentials
from botocore.exceptions import BotoCoreError, NoCredentialsError

from livememfs.errors import SettingsError
from livememfs.shown import without_login
from livememfs.store.base import Condition, IfAbsent
from livememfs.store.s3_address import AwsSurroundings, locate
from livememfs.store.s3_http import HttpConnections, HttpReply


@dataclass(frozen=True, kw_only=True)
class S3Options:
    """How to reach a bucket.

    `endpoint_url` None means Amazon's own. Keys None means what boto3 finds by itself (profile, instance role).
    `signature_mode` "dual" signs PUT, GET and DELETE of objects with version 2 and HEAD and LIST with version 4, as
    Dell ECS wants it. `path_style` None means: with an endpoint, yes; at Amazon, no. `quoted_etags` puts If-Match
    values in quotes: the standard asks for them, Ceph rejects them, most servers take both. `threads` are the requests
    at once, more than are read ahead: nobody waits behind those. Timeouts are seconds.
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
    threads: int = 48
    connect_timeout: float = 5.0
    read_timeout: float = 20.0

    @property
    def endpoint(self) -> str:
        """Where the bucket is, for people."""
        return without_login(self.endpoint_url or f"Amazon S3, {self.region}")

    @property
    def is_in_path(self) -> bool:
        """Whether the bucket is in the path of a URL, not in its host."""
        return self.endpoint_url is not None if self.path_style is None else self.path_style


class Client:
    """One bucket's signed requests.

    Opening makes no request to the bucket. Raises SettingsError for an endpoint that is no URL, half a pair of keys, or
    an AWS configuration that cannot be used.
    """

    def __init__(self, options: S3Options) -> None:
        self._options = options
        around = AwsSurroundings()
        try:
            endpoint = options.endpoint_url or around.amazon(options.region)
            self._address = locate(options.bucket, endpoint, path_style=options.is_in_path)
            self._credentials = _credentials(options, around)
            self._connections = HttpConnections(
                self._address.origin,
                connect_timeout=options.connect_timeout,
                read_timeout=options.read_timeout,
                certificates=around.certificates,
            )
        except (ValueError, OSError, BotoCoreError) as error:
            raise SettingsError(f"there is no S3 client for {options.endpoint}: {error}") from error

    def send(
        self,
        verb: str,
        key: str | None = None,
        *,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
    ) -> HttpReply:
        """One request for an object, or for the bucket without a key; the reply, whatever it says.

        Raises what `Connections.exchange` raises, and BotoCoreError or ClientError when the keys cannot be had.
        """
        target = self._address.target(key, query or {})
        request = AWSRequest(
            method=verb,
            url=self._address.origin + target,
            headers={"Host": self._address.host, "User-Agent": "livememfs", **(headers or {})},
            data=body,
            auth_path=self._address.signed_path(key),
        )
        self._sign(request, is_query=key is None or verb == "HEAD")
        return self._connections.exchange(verb, target, dict(request.headers.items()), body)

    def close(self) -> None:
        """Drop the idle connections."""
        self._connections.close()

    def _sign(self, request: AWSRequest, *, is_query: bool) -> None:
        if self._credentials is None:
            raise NoCredentialsError
        keys = self._credentials.get_frozen_credentials()  # asked each time: keys of a role are renewed when due
        if self._options.signature_mode == "dual" and not is_query:
            HmacV1Auth(keys).add_auth(request)
        else:
            S3SigV4Auth(keys, "s3", self._options.region).add_auth(request)


def condition_headers(condition: Condition | None, *, quoted: bool) -> dict[str, str]:
    """The headers that carry the condition, none without one."""
    if condition is None:
        return {}
    if isinstance(condition, IfAbsent):
        return {"If-None-Match": "*"}
    return {"If-Match": f'"{condition.etag}"' if quoted else condition.etag}


def copy_headers(bucket: str, source: str) -> dict[str, str]:
    """The header that makes a PUT a COPY."""
    return {"x-amz-copy-source": quote(f"{bucket}/{source}", safe="/~")}


def _credentials(options: S3Options, around: AwsSurroundings) -> Credentials | None:
    if options.access_key_id is None and options.secret_access_key is None:
        return around.credentials()
    if not options.access_key_id or not options.secret_access_key:
        raise ValueError("an access key and a secret key go together")
    return Credentials(options.access_key_id, options.secret_access_key, options.session_token)
