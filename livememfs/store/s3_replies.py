"""How S3 answers, in our terms: errors, etags, times, user metadata, listings.

Owns the one table from what S3 says and what keeps it from saying anything to the classes of `livememfs.errors`.
Refuses to talk to a server. Pure; any thread may call it.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from http.client import HTTPException
from urllib.parse import quote, unquote, unquote_plus

from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectionError,
    CredentialRetrievalError,
    HTTPClientError,
    NoCredentialsError,
    PartialCredentialsError,
)
from urllib3.exceptions import HTTPError

from livememfs.errors import (
    BucketMissing,
    ClockDiffers,
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
from livememfs.store.base import ObjectInfo, Page, StoredObject, nanoseconds
from livememfs.store.s3_http import HttpReply
from livememfs.store.s3_xml import Malformed, XmlDocument, parse

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
    "RequestTimeTooSkewed": ClockDiffers,
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
# The last two: the service that renews the keys does not answer.
_NO_ANSWER = (HTTPException, HTTPError, Malformed, OSError, HTTPClientError, ConnectionError)

TRANSLATED = (HTTPException, HTTPError, Malformed, OSError, BotoCoreError, ClientError)
"""The exceptions `translate` is for; any other is a bug of ours and passes."""

TOLERATED = timedelta(minutes=15)
_META = "x-amz-meta-"
# A reply that calls itself a success and holds an error was begun before the server failed.
_FAILED_LATER = 500


@dataclass(frozen=True, slots=True)
class S3Request:
    """What was asked, as far as an error needs it."""

    verb: str
    key: str
    bucket: str
    endpoint: str
    conditional: bool = False


def translate(error: Exception, asked: S3Request) -> LiveMemError:
    """Any exception of TRANSLATED as the error that livememfs knows."""
    said = str(error) or type(error).__name__
    if isinstance(error, ClientError):
        # Not the bucket's answer: the service that gives out keys for a role refused.
        return _make(_BY_CODE.get(str(error.response.get("Error", {}).get("Code")), Denied), said, asked)
    if isinstance(error, _NO_CREDENTIALS):
        return _make(Denied, said, asked)
    return _make(Unreachable if isinstance(error, _NO_ANSWER) else StoreError, said, asked)


def refusal(reply: HttpReply, asked: S3Request) -> LiveMemError | None:
    """What a reply that is no success means, None for a success."""
    if 200 <= reply.status < 300:
        return None
    try:
        values = parse(reply.body).values
    except Malformed:  # no body (HEAD), or a page that something on the way put in place of S3's answer
        values = {}
    return _refused(reply.status, values, reply, asked)


def document(reply: HttpReply, root: str, asked: S3Request) -> XmlDocument:
    """The XML of a success. Raises Malformed when it is something else, and what an error within it means."""
    found = parse(reply.body)
    if found.root == "Error":
        raise _refused(_FAILED_LATER, found.values, reply, asked)
    if found.root != root:
        raise Malformed(f"the reply is a {found.root} where a {root} was expected")
    return found


def answered(error: ClientError, asked: S3Request) -> LiveMemError:
    """What a refusal of the bucket means that boto3's client raised."""
    about = error.response.get("ResponseMetadata", {})
    values = {name: str(value) for name, value in error.response.get("Error", {}).items()}
    status = int(about.get("HTTPStatusCode", _FAILED_LATER))
    return _refused(status, values, HttpReply(status, "", about.get("HTTPHeaders", {})), asked)


def _refused(status: int, values: Mapping[str, str], reply: HttpReply, asked: S3Request) -> LiveMemError:
    code = values.get("Code", "")
    said = f"{code} {values.get('Message', '')}".strip() or f"{reply.status} {reply.reason}"
    if 300 <= status < 400:
        region = reply.headers.get("x-amz-bucket-region")
        said += f" (the bucket is in the region {region})" if region else " (the bucket is somewhere else)"
    kind = _BY_CODE.get(code) or _BY_STATUS.get(status) or (Unreachable if status >= 500 else StoreError)
    if kind is Denied and not code and _is_of_another_time(reply.headers):  # a reply to HEAD gives no reason
        kind = ClockDiffers
    return _make(_in_context(kind, asked), said, asked, _retry_after(reply.headers))


def _in_context(kind: type[LiveMemError], asked: S3Request) -> type[LiveMemError]:
    """The same reply means different things to different requests."""
    if kind is ObjectMissing and asked.verb == "put":
        return PreconditionFailed if asked.conditional else BucketMissing
    if kind is ObjectMissing and asked.verb == "list":
        return BucketMissing
    if kind is ConditionsUnsupported and not asked.conditional:
        return StoreError
    return kind


def _make(kind: type[LiveMemError], said: str, asked: S3Request, retry_after: float | None = None) -> LiveMemError:
    return kind(
        said,
        key=asked.key,
        path=asked.key,
        bucket=asked.bucket,
        endpoint=asked.endpoint,
        retry_after=retry_after,
    )


def _is_of_another_time(headers: Mapping[str, str]) -> bool:
    """Whether the server's date is so far from ours that it refuses what we sign."""
    try:
        return abs(datetime.now(UTC) - parsedate_to_datetime(headers["date"])) > TOLERATED
    except (KeyError, ValueError, TypeError):
        return False


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


def meta_headers(meta: Mapping[str, str]) -> dict[str, str]:
    """The headers that carry user metadata."""
    return {_META + name: value for name, value in encode_meta(meta).items()}


def decode_meta(meta: Mapping[str, str]) -> dict[str, str]:
    """The reverse of `encode_meta`; values that others wrote without encoding come out as they are."""
    return {name.lower(): unquote(value, errors="surrogateescape") for name, value in meta.items()}


def described(key: str, reply: HttpReply) -> ObjectInfo:
    """A GET or HEAD reply. Raises Malformed where it does not tell etag and size."""
    headers = reply.headers
    meta = {name.removeprefix(_META): value for name, value in headers.items() if name.startswith(_META)}
    try:
        size = int(headers["content-length"])
    except (KeyError, ValueError) as error:
        raise Malformed("the reply does not tell the object's size") from error
    return ObjectInfo(key, etag_in(headers), size, moment_of(headers.get("last-modified")), decode_meta(meta))


def stored(key: str, reply: HttpReply) -> StoredObject:
    """A GET reply. Raises Malformed when the body is not as long as was said, so that short data passes for nothing."""
    info = described(key, reply)
    if info.size != len(reply.body):
        raise Malformed(f"{len(reply.body)} bytes came where {info.size} were announced")
    return StoredObject(info, reply.body)


def page_of(found: XmlDocument) -> Page:
    """A ListBucketResult. Raises Malformed for an entry without a key or size, StoreError for a page without a next.

    Keys are escaped only where the reply says so: servers are free to ignore that it was asked for.
    """
    plain = unquote_plus if found.values.get("EncodingType") == "url" else str
    try:
        objects = tuple(_listed(plain(row["Key"]), row) for name, row in found.rows if name == "Contents")
        prefixes = tuple(plain(row["Prefix"]) for name, row in found.rows if name == "CommonPrefixes")
    except (KeyError, ValueError) as error:
        raise Malformed(f"an entry of the listing is not whole: {error}") from error
    if found.values.get("IsTruncated", "").strip() != "true":
        return Page(objects, prefixes)
    token = found.values.get("NextContinuationToken")
    if not token:
        raise StoreError("the listing has more pages and does not say how to get them", key=found.values.get("Prefix"))
    return Page(objects, prefixes, token)


def _listed(key: str, row: Mapping[str, str]) -> ObjectInfo:
    return ObjectInfo(key, etag_of(row.get("ETag", "")), int(row["Size"]), moment_of(row.get("LastModified")))


def etag_in(values: Mapping[str, str], name: str = "etag") -> str:
    """The etag among headers or the values of a document. Raises Malformed when there is none, or a part of one."""
    sent = values.get(name, "").removeprefix("W/")
    if not sent or sent.startswith('"') != sent.endswith('"') or sent == '"':
        raise Malformed("the reply does not tell the object's etag")
    return etag_of(sent)


def moment_of(moment: str | None) -> int:
    """Nanoseconds since the epoch for a date as headers or XML write it, 0 when the server does not say."""
    if not moment:
        return 0
    try:  # not `suppress`, which would be a third of the time this takes, and a listing has very many
        read = datetime.fromisoformat(moment) if moment[0].isdigit() else parsedate_to_datetime(moment)
    except ValueError:
        return 0
    return nanoseconds(read if read.tzinfo else read.replace(tzinfo=UTC))
