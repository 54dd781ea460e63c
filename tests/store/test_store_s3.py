"""The S3 store where servers differ, fail or lie: errors in our terms, headers, signatures."""

from __future__ import annotations

import socket
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING

import pytest
import trio
from http_double import ETAG, Reply, S3Double, error

from livememfs.errors import (
    BucketMissing,
    ConditionsUnsupported,
    ConflictRetry,
    Denied,
    LiveMemError,
    NoSpace,
    ObjectMissing,
    PreconditionFailed,
    SettingsError,
    StoreError,
    Throttled,
    TooLarge,
    Unreachable,
)
from livememfs.store.base import IfAbsent, IfMatch, ObjectInfo
from livememfs.store.s3 import S3Options, S3Store

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

Call = Callable[[S3Store], Awaitable[object]]
CALLS: dict[str, Call] = {
    "get": lambda store: store.get("k"),
    "head": lambda store: store.head("k"),
    "put": lambda store: store.put("k", b"1"),
    "delete": lambda store: store.delete("k"),
    "copy": lambda store: store.copy("k", "l"),
    "list": lambda store: store.list_page("k"),
}


@pytest.mark.parametrize(
    ("reply", "expected"),
    [
        (error(403, "InvalidAccessKeyId"), Denied),
        (error(403, "SignatureDoesNotMatch"), Denied),
        (error(400, "ExpiredToken"), Denied),
        (error(404, "NoSuchKey"), ObjectMissing),
        (error(404, "NoSuchBucket"), BucketMissing),
        (error(412, "PreconditionFailed"), PreconditionFailed),
        (error(409, "ConditionalRequestConflict"), ConflictRetry),
        (error(409, "SomethingElse"), ConflictRetry),
        (error(503, "SlowDown"), Throttled),
        (error(429, "TooManyRequests"), Throttled),
        (error(400, "RequestTimeout"), Unreachable),
        (error(500, "InternalError"), Unreachable),
        (error(503, "ServiceUnavailable"), Unreachable),
        (Reply(502, b"<html>bad gateway</html>"), Unreachable),
        (Reply(504), Unreachable),
        (error(507, "InsufficientStorage"), NoSpace),
        (error(400, "EntityTooLarge"), TooLarge),
        (error(501, "NotImplemented"), StoreError),
        (error(400, "KeyTooLongError"), StoreError),
        (Reply(200, b"not at all", promised=20, headers={"ETag": '"e"'}), Unreachable),
    ],
)
async def test_each_refusal_has_its_error(s3_double: S3Double, reply: Reply, expected: type[LiveMemError]) -> None:
    s3_double.replies.append(reply)
    with pytest.raises(expected) as caught:
        await S3Store(s3_double.options()).get("k")

    assert type(caught.value) is expected
    assert len(s3_double.sent) == 1, "only RetryingStore repeats"


@pytest.mark.parametrize("verb", CALLS)
async def test_every_request_translates_its_errors(s3_double: S3Double, verb: str) -> None:
    s3_double.replies.append(Reply(403))
    store = S3Store(s3_double.options())
    with pytest.raises(Denied):
        await CALLS[verb](store)

    assert store.statistics().errors == 1


@pytest.mark.parametrize("verb", ["get", "put", "delete", "list"])
async def test_a_bucket_that_is_not_there_is_told(s3_options: Callable[..., S3Options], verb: str) -> None:
    store = S3Store(s3_options(bucket="no-such-bucket"))
    with pytest.raises(BucketMissing, match="no-such-bucket at http://127"):
        await CALLS[verb](store)


@pytest.mark.parametrize("verb", CALLS)
async def test_a_port_that_nobody_listens_on_is_unreachable(verb: str) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))  # bound but not listening: connections are refused, and nobody else gets the port
        url = f"http://127.0.0.1:{held.getsockname()[1]}"
        store = S3Store(S3Options(bucket="b-b", endpoint_url=url, access_key_id="a", secret_access_key="b"))
        with pytest.raises(Unreachable, match=url):
            await CALLS[verb](store)


async def test_a_server_that_never_answers_is_unreachable_after_the_timeout(s3_double: S3Double) -> None:
    s3_double.replies.append(Reply(silent=True))
    with pytest.raises(Unreachable):
        await S3Store(s3_double.options(read_timeout=0.05)).put("k", b"1")


async def test_a_read_is_abandoned_when_cancelled(s3_double: S3Double) -> None:
    """The caller goes on at once, although the request would hang for five seconds more."""
    s3_double.replies.append(Reply(silent=True))
    store = S3Store(s3_double.options())
    with trio.move_on_after(0.1) as scope:
        await store.get("k")

    assert scope.cancelled_caught


async def test_a_page_that_is_no_s3_reply_cannot_be_trusted(s3_double: S3Double) -> None:
    s3_double.replies.append(Reply(200, b"<html><p>log in to the hotel network"))
    with pytest.raises(Unreachable):
        await S3Store(s3_double.options()).list_page()


async def test_an_error_inside_a_successful_copy_reply_is_an_error(s3_double: S3Double) -> None:
    s3_double.replies.extend([Reply(200, b"abc", {"ETag": '"e"'}), error(200, "InternalError")])
    with pytest.raises(Unreachable):
        await S3Store(s3_double.options()).copy("a", "b")


async def test_a_throttled_request_says_how_long_to_wait(s3_double: S3Double) -> None:
    s3_double.replies.append(error(503, "SlowDown", Retry_After="7"))
    with pytest.raises(Throttled) as caught:
        await S3Store(s3_double.options()).get("k")

    assert caught.value.values["retry_after"] == 7.0


async def test_a_server_that_rejects_conditions_is_told_from_one_that_fails(s3_double: S3Double) -> None:
    s3_double.replies.extend([error(501, "NotImplemented"), error(501, "NotImplemented")])
    store = S3Store(s3_double.options())
    with pytest.raises(ConditionsUnsupported):
        await store.put("k", b"1", condition=IfAbsent())
    with pytest.raises(ConditionsUnsupported):
        await store.delete("k", condition=IfMatch("e"))


async def test_a_missing_object_does_not_fail_a_delete_on_servers_that_say_404(s3_double: S3Double) -> None:
    s3_double.replies.extend([error(404, "NoSuchKey"), error(404, "NoSuchKey")])
    store = S3Store(s3_double.options())
    await store.delete("k")
    with pytest.raises(ObjectMissing):
        await store.delete("k", condition=IfMatch("e"))


async def test_errors_never_show_the_secret(s3_double: S3Double) -> None:
    options = s3_double.options()
    s3_double.replies.append(error(403, "SignatureDoesNotMatch"))
    with pytest.raises(Denied) as caught:
        await S3Store(options).get("k")

    assert "not-a-real-secret" not in str(caught.value) + repr(caught.value.values) + repr(options)


@pytest.mark.parametrize(
    "changes", [{"endpoint_url": "not a url"}, {"secret_access_key": None}], ids=["endpoint", "half a key pair"]
)
def test_options_that_cannot_work_are_settings_errors(s3_double: S3Double, changes: dict[str, object]) -> None:
    with pytest.raises(SettingsError):
        S3Store(s3_double.options(**changes))


async def test_dual_mode_signs_data_with_version_2_and_queries_with_version_4(s3_double: S3Double) -> None:
    store = S3Store(s3_double.options(signature_mode="dual"))
    for call in CALLS.values():
        await call(store)
    signed = {(sent.verb, "list-type" in sent.path): sent.headers["authorization"] for sent in s3_double.sent}

    version_2 = {key for key, value in signed.items() if value.startswith("AWS test:")}
    version_4 = {key for key, value in signed.items() if value.startswith("AWS4-HMAC-SHA256 ")}

    assert version_2 == {("GET", False), ("PUT", False), ("DELETE", False)}
    assert version_4 == {("HEAD", False), ("GET", True)}


async def test_the_usual_mode_signs_all_with_version_4(s3_double: S3Double) -> None:
    store = S3Store(s3_double.options())
    for call in CALLS.values():
        await call(store)

    assert {sent.headers["authorization"].split()[0] for sent in s3_double.sent} == {"AWS4-HMAC-SHA256"}


async def test_dual_mode_works_against_a_real_protocol(s3_options: Callable[..., S3Options]) -> None:
    store = S3Store(s3_options(signature_mode="dual"))
    await store.put("a é", b"1", meta={"m": "é"}, condition=IfAbsent())
    await store.copy("a é", "b", meta={"m": "2"})

    assert (await store.get("a é")).info.meta == {"m": "é"}
    assert [info.key for info in (await store.list_page()).objects] == ["a é", "b"]


async def test_characters_that_xml_cannot_carry_survive_in_listed_keys(s3_options: Callable[..., S3Options]) -> None:
    keys = ["a\x01b/c", "a\x01b/d", "b\x1f", "c\x08"]
    store = S3Store(s3_options())
    for key in keys:
        await store.put(key, b"1")

    assert [info.key for info in (await store.list_page()).objects] == keys
    assert (await store.list_page("a", delimiter="/")).prefixes == ("a\x01b/",)


async def test_conditions_travel_as_signed_headers(s3_double: S3Double) -> None:
    store = S3Store(s3_double.options())
    await store.put("k", b"1", condition=IfAbsent())
    await store.put("k", b"1", condition=IfMatch("e1"))
    await store.delete("k", condition=IfMatch("e2"))
    await store.copy("k", "l", condition=IfMatch(ETAG))
    await store.put("k", b"1")
    headers = [sent.headers for sent in s3_double.sent if sent.verb != "HEAD"]

    assert [sent.get("if-none-match") for sent in headers] == ["*", None, None, None, None]
    assert [sent.get("if-match") for sent in headers] == [None, "e1", "e2", ETAG, None]
    assert all("if-match" in sent["authorization"] for sent in headers[1:4])


async def test_etags_can_be_sent_in_quotes(s3_double: S3Double) -> None:
    store = S3Store(s3_double.options(quoted_etags=True))
    await store.put("k", b"1", condition=IfMatch("e1"))
    await store.get("k", if_match="e2")

    assert [sent.headers["if-match"] for sent in s3_double.sent] == ['"e1"', '"e2"']


async def test_a_put_is_plain_enough_for_servers_other_than_amazons(s3_double: S3Double) -> None:
    """No trailing checksums, no chunked signatures, no extra round trip before a small body."""
    await S3Store(s3_double.options()).put("k", b"some bytes", meta={"m": "é %"})
    (sent,) = s3_double.sent

    assert sent.body == b"some bytes"
    assert not {name for name in sent.headers if "checksum" in name or name in ("content-encoding", "expect")}
    assert sent.headers["x-amz-meta-m"] == "%C3%A9%20%25"
    assert sent.path == "/some-bucket/k"


async def test_metadata_that_others_wrote_plainly_is_taken_as_it_is(
    s3_options: Callable[..., S3Options], s3_admin: S3Client
) -> None:
    options = s3_options()
    s3_admin.put_object(Bucket=options.bucket, Key="k", Body=b"1", Metadata={"Mixed-Case": "100% plain text"})

    assert (await S3Store(options).head("k")).meta == {"mixed-case": "100% plain text"}


async def test_a_copy_of_what_is_known_is_one_request(s3_double: S3Double) -> None:
    await S3Store(s3_double.options()).copy("a", "b", known=ObjectInfo("a", ETAG, 3, 0))

    assert [sent.verb for sent in s3_double.sent] == ["PUT"]


async def test_a_copy_whose_etag_differs_is_looked_at_again(s3_double: S3Double) -> None:
    """Encrypting servers give a copy an etag of its own: its size cannot be taken from the source any more."""
    found = {"ETag": '"other"', "Last-Modified": "Fri, 20 Feb 2026 14:00:00 GMT"}
    s3_double.replies.append(Reply(200, b"source!", found))
    info = await S3Store(s3_double.options()).copy("a", "b")

    assert (info.etag, info.size) == (ETAG, 3)
    assert [sent.verb for sent in s3_double.sent] == ["HEAD", "PUT", "HEAD"]


@pytest.mark.parametrize("mode", ["sigv4", "dual"])
@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("a/live/20260220T140000_me_todo_00000000.md", "text/markdown; charset=utf-8"),
        ("a/_meta.json", "application/json"),
        ("a/sessions/s/prompts.ndjson", "application/x-ndjson"),
        ("a/files/photo.JPG", "image/jpeg"),
        ("a/files/data.tar.gz", "application/octet-stream"),
        ("a/files/no-suffix", "application/octet-stream"),
        ("a/files/folder.md/", "application/octet-stream"),
    ],
)
async def test_every_object_says_what_it_is(
    s3_options: Callable[..., S3Options], s3_admin: S3Client, mode: str, key: str, kind: str
) -> None:
    """Also where a copy gets other metadata, or another name."""
    options = s3_options(signature_mode=mode)
    store = S3Store(options)

    def kind_of(name: str) -> str:
        return s3_admin.head_object(Bucket=options.bucket, Key=name)["ContentType"]

    await store.put(key, b"1", meta={"colour": "blue"})
    assert kind_of(key) == kind
    await store.copy(key, key, meta={"colour": "red"})
    assert kind_of(key) == kind
    await store.copy(key, "copied.json", meta={})
    assert kind_of("copied.json") == "application/json"
    await store.copy(key, "as it was")
    assert kind_of("as it was") == kind
    assert (await store.head(key)).meta == {"colour": "red"}
    await store.aclose()
