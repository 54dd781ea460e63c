"""What is asked of a bucket seldom, by boto3's client: who else may look into it.

Refuses to change the bucket, and whatever a mount asks in its daily work, which costs less in `s3_client`. Blocking;
any thread, each call with a client of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any

from botocore.config import Config
from botocore.exceptions import ClientError
from botocore.parsers import ResponseParserError

from livememfs.store.s3_address import AwsSurroundings
from livememfs.store.s3_client import S3Options

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

_GROUPS = "http://acs.amazonaws.com/groups/global/"
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


def _client(options: S3Options) -> S3Client:
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
            retries={"total_max_attempts": 1},
            s3={"addressing_style": "path" if options.is_in_path else "auto"},
        ),
    }
    return around.client(options.region, **how)
