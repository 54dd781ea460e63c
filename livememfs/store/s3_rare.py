"""What is asked of a bucket seldom, by boto3's client: who else may look into it, and uploads in parts.

Refuses whatever a mount asks in its daily work, which costs less in `s3_client`. Blocking; any thread, each call with a
client of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING, Any

import trio
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from livememfs.store.base import ObjectInfo
from livememfs.store.content import FileContent
from livememfs.store.s3_address import AwsSurroundings
from livememfs.store.s3_client import S3Options
from livememfs.store.s3_replies import S3Request, answered, encode_meta, etag_of
from livememfs.text.mediatypes import content_type

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_GROUPS = "http://acs.amazonaws.com/groups/global/"
_ATTEMPTS = 5
_STRANGERS = {f"{_GROUPS}AllUsers": "everybody", f"{_GROUPS}AuthenticatedUsers": "everybody with an AWS account"}

# Many servers know neither question and refuse, or answer something else; and a key need not be allowed to ask.
_NOT_TOLD = (ClientError, ResponseParserError)


def strangers(options: S3Options) -> list[str]:
    """Which strangers the bucket lets in, by its policy or its access list; none where the server does not tell.

    Raises BotoCoreError when it does not answer or there are no keys.
    """
    with closing(_client(options)) as client:
        return sorted(set(_strangers(client, options.bucket)))


def _strangers(client: S3Client, bucket: str) -> Iterator[str]:
    with suppress(*_NOT_TOLD):
        if client.get_bucket_policy_status(Bucket=bucket).get("PolicyStatus", {}).get("IsPublic"):
            yield "everybody"
    with suppress(*_NOT_TOLD):
        for grant in client.get_bucket_acl(Bucket=bucket).get("Grants", []):
            if group := _STRANGERS.get(grant.get("Grantee", {}).get("URI", "")):
                yield group


def put_parts(
    options: S3Options,
    asked: S3Request,
    content: FileContent,
    described: ObjectInfo,
    condition: Mapping[str, str],
    go_on: Callable[[], None],
) -> str:
    """Upload a file in parts; its etag. `go_on` is called before the last step, and may raise to have none of it.

    `described` has the metadata, `condition` the headers of the last step. A part that fails is sent again a few times,
    and what cannot be finished is given up, since the bucket's owner pays for parts that are left. Raises what the
    answer means, OSError for the file, and BotoCoreError when the server does not answer.
    """
    place: Any = {"Bucket": options.bucket, "Key": asked.key}
    with closing(_client(options, of_objects=True)) as client, _answers(asked):
        upload: Any = place | {
            "UploadId": client.create_multipart_upload(
                **place, ContentType=content_type(asked.key), Metadata=encode_meta(described.meta or {})
            )["UploadId"]
        }
        try:
            parts: Any = []
            for number, part in enumerate(content.parts(), 1):
                trio.from_thread.check_cancelled()
                answer = client.upload_part(**upload, PartNumber=number, Body=part)
                parts.append({"PartNumber": number, "ETag": answer["ETag"]})
            go_on()
            when = {name.replace("-", ""): value for name, value in condition.items()}  # as boto3 calls them
            done = client.complete_multipart_upload(**upload | when, MultipartUpload={"Parts": parts})
        except BaseException:
            with suppress(BotoCoreError, ClientError):
                client.abort_multipart_upload(**upload)
            raise
        return etag_of(done["ETag"])


@contextmanager
def _answers(asked: S3Request) -> Iterator[None]:
    """What the bucket refuses, as the error that livememfs knows."""
    try:
        yield
    except ClientError as error:
        raise answered(error, asked) from error


def _client(options: S3Options, *, of_objects: bool = False) -> S3Client:
    """A client to ask about the bucket; or to write `of_objects`, which tries again by itself."""
    around = AwsSurroundings()
    how: dict[str, Any] = {
        "endpoint_url": options.endpoint_url,
        "aws_access_key_id": options.access_key_id,
        "aws_secret_access_key": options.secret_access_key,
        "aws_session_token": options.session_token,
        "verify": around.certificates(),
        "config": Config(
            connect_timeout=options.connect_timeout,
            read_timeout=options.read_timeout,
            retries={"total_max_attempts": _ATTEMPTS if of_objects else 1, "mode": "standard"},
            # Amazon alone knows the checksums that boto3 adds by itself.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
            signature_version="s3" if options.signature_mode == "dual" and of_objects else "s3v4",
            s3={"addressing_style": "path" if options.is_in_path else "auto"},
        ),
    }
    return around.client(options.region, **how)
