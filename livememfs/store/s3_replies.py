"""How S3 answers, in our terms: errors, etags, times, user metadata.

Owns the one table from what S3 and botocore say to the classes of `livememfs.errors`. Refuses to talk to a server.
Pure; any thread may call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote, unquote

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    IncompleteReadError,
    NoCredentialsError,
    PartialCredentialsError,
)
from botocore.parsers import ResponseParserError

from livememfs.errors import (
    BucketMissing,
    ConditionsUnsupported,
    ConflictRetry,
    Denied,
    LiveMemError,
    NoSpace,
    ObjectMissing,
    PreconditionFailed,
    StoreError,
    Throttled,
    TooLarge,
    Unreachable,
)
from livememfs.store.base import ObjectInfo, nanoseconds

# What stays readable in a header: printable ASCII without the escape sign and without spaces, which servers trim.
_PLAIN_IN_HEADER = "!\"#$&'()*+,-./:;<=>?@[\\]^_`{|}~"

_BY_CODE: dict[str, type[LiveMemError]] = {
    "NoSuchKey": ObjectMissing,
    "NoSuchBucket": BucketMissing,
    "InvalidBucketName": BucketMissing,
    "PreconditionFailed": PreconditionFailed,
    "ConditionalRequestConflict": ConflictRetry,
    "OperationAborted": ConflictRetry,
    "SlowDown": Throttled,
    "Throttling": Throttled,
    "ThrottlingException": Throttled,
    "TooManyRequests": Throttled,
    "TooManyRequestsException": Throttled,
    "RequestLimitExceeded": Throttled,
    "RequestTimeout": Unreachable,
    "InternalError": Unreachable,
    "ServiceUnavailable": Unreachable,
    "AccessDenied": Denied,
    "InvalidAccessKeyId": Denied,
    "SignatureDoesNotMatch": Denied,
    "ExpiredToken": Denied,
    "InvalidToken": Denied,
    "RequestTimeTooSkewed": Denied,
    "AuthorizationHeaderMalformed": Denied,
    "EntityTooLarge": TooLarge,
    "QuotaExceeded": NoSpace,
    "XMinioStorageFull": NoSpace,
    "NotImplemented": ConditionsUnsupported,
}
_BY_STATUS: dict[int, type[LiveMemError]] = {
    401: Denied,
    403: Denied,
    404: ObjectMissing,
    409: ConflictRetry,
    412: PreconditionFailed,
    413: TooLarge,
    429: Throttled,
    501: ConditionsUnsupported,
    507: NoSpace,
}
_NO_CREDENTIALS = (NoCredentialsError, PartialCredentialsError, CredentialRetrievalError)
# ResponseParserError: something answered, but not S3: a proxy's page, a port of another service.
_NO_ANSWER = (HTTPClientError, ConnectionError, IncompleteReadError, ResponseParserError, OSError)

TRANSLATED = (ClientError, BotoCoreError, ResponseParserError, OSError)
"""The exceptions `translate` is for; any other is a bug of ours and passes."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What was asked, as far as an error needs it."""

    verb: str
    key: str
    bucket: str
    endpoint: str
    conditional: bool = False


def translate(error: Exception, asked: Asked) -> LiveMemError:
    """Any exception of TRANSLATED as the error that livememfs knows."""
    if isinstance(error, ClientError):
        return _refusal(error, asked)
    if isinstance(error, _NO_CREDENTIALS):
        return _make(Denied, str(error), asked)
    return _make(Unreachable if isinstance(error, _NO_ANSWER) else StoreError, str(error), asked)


def _refusal(error: ClientError, asked: Asked) -> LiveMemError:
    reply: Mapping[str, Any] = error.response
    code = str(reply.get("Error", {}).get("Code", ""))
    said = f"{code} {reply.get('Error', {}).get('Message', '')}".strip()
    http = reply.get("ResponseMetadata", {})
    status = int(http.get("HTTPStatusCode", 0))
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or (Unreachable if status >= 500 else StoreError)
    return _make(_in_context(kind, asked), said, asked, _retry_after(http.get("HTTPHeaders", {})))


def _in_context(kind: type[LiveMemError], asked: Asked) -> type[LiveMemError]:
    """The same reply means different things to different requests."""
    if kind is ObjectMissing and asked.verb == "put":
        return PreconditionFailed if asked.conditional else BucketMissing
    if kind is ObjectMissing and asked.verb == "list":
        return BucketMissing
    if kind is ConditionsUnsupported and not asked.conditional:
        return StoreError
    return kind


def _make(kind: type[LiveMemError], said: str, asked: Asked, retry_after: float | None = None) -> LiveMemError:
    return kind(
        said,
        key=asked.key,
        path=asked.key,
        bucket=asked.bucket,
        endpoint=asked.endpoint,
        retry_after=retry_after,
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds the server asks to wait, where it says so as a number."""
    with suppress(KeyError, ValueError):
        return max(0.0, float(headers["retry-after"]))
    return None


def etag_of(value: str) -> str:
    """An etag as the server sent it, without quotes and weakness mark."""
    return value.removeprefix("W/").strip('"')


def encode_meta(meta: Mapping[str, str]) -> dict[str, str]:
    """Any text as header values: UTF-8, percent-encoded. Bytes smuggled in by `os.fsdecode` survive as well."""
    return {name: quote(value, safe=_PLAIN_IN_HEADER, errors="surrogateescape") for name, value in meta.items()}


def decode_meta(meta: Mapping[str, str]) -> dict[str, str]:
    """The reverse of `encode_meta`; values that others wrote without encoding come out as they are."""
    return {name.lower(): unquote(value, errors="surrogateescape") for name, value in meta.items()}


def described(key: str, reply: Mapping[str, Any]) -> ObjectInfo:
    """A GET or HEAD reply."""
    return ObjectInfo(
        key,
        etag_of(reply["ETag"]),
        int(reply["ContentLength"]),
        moment_of(reply.get("LastModified")),
        decode_meta(reply.get("Metadata", {})),
    )


def listed(entry: Mapping[str, Any]) -> ObjectInfo:
    """One entry of a LIST reply, which knows nothing of metadata."""
    return ObjectInfo(
        entry["Key"], etag_of(entry.get("ETag", "")), int(entry["Size"]), moment_of(entry.get("LastModified"))
    )


def moment_of(moment: datetime | None) -> int:
    """Nanoseconds since the epoch, 0 when the server does not say."""
    return nanoseconds(moment) if moment is not None else 0


def answered_at(reply: Mapping[str, Any]) -> int:
    """When the server answered, by its own clock, as a PUT reply tells nothing closer about the object's date."""
    with suppress(KeyError, ValueError, TypeError):
        return nanoseconds(parsedate_to_datetime(reply["ResponseMetadata"]["HTTPHeaders"]["date"]))
    return 0
