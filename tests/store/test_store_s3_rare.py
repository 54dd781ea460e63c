"""What boto3's client is asked: who else may look into a bucket, of servers that know it and of servers that do not."""

from __future__ import annotations

import pytest
from http_double import LISTING, Reply, S3Double, error

from livememfs.errors import Unreachable
from livememfs.store.s3 import S3Options, S3Store

PUBLIC = Reply(body=b"<PolicyStatus><IsPublic>true</IsPublic></PolicyStatus>")
NOBODY = Reply(body=b"<AccessControlPolicy><AccessControlList/></AccessControlPolicy>")
EVERYBODY = Reply(
    body=b"""<AccessControlPolicy><AccessControlList><Grant>
<Grantee xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance" xsi:type="Group">
<URI>http://acs.amazonaws.com/groups/global/AllUsers</URI></Grantee><Permission>READ</Permission>
</Grant></AccessControlList></AccessControlPolicy>"""
)


@pytest.mark.parametrize(
    ("policy", "access_list", "expected"),
    [
        (PUBLIC, NOBODY, ["everybody"]),
        (error(404, "NoSuchBucketPolicy"), EVERYBODY, ["everybody"]),
        (PUBLIC, EVERYBODY, ["everybody"]),
        (error(404, "NoSuchBucketPolicy"), NOBODY, []),
        (error(403, "AccessDenied"), error(403, "AccessDenied"), []),
        (error(501, "NotImplemented"), error(501, "NotImplemented"), []),
        (Reply(body=b"<html>busy"), Reply(body=b"<html>busy"), []),
        (Reply(body=LISTING), Reply(body=LISTING), []),  # a server that does not look at what is asked of the bucket
    ],
)
async def test_strangers_are_those_that_the_bucket_lets_in(
    s3_double: S3Double, policy: Reply, access_list: Reply, expected: list[str]
) -> None:
    s3_double.replies += [policy, access_list]

    assert await S3Store(s3_double.options()).strangers() == expected
    assert [sent.path for sent in s3_double.sent] == ["/some-bucket?policyStatus", "/some-bucket?acl"]
    assert all("Credential=test/" in sent.headers["authorization"] for sent in s3_double.sent)


async def test_a_server_that_is_away_is_asked_once() -> None:
    options = S3Options(bucket="b-b", endpoint_url="http://127.0.0.1:1", access_key_id="a", secret_access_key="b")

    with pytest.raises(Unreachable):
        await S3Store(options).strangers()
