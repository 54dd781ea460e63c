"""How S3's answers are read, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from http.client import IncompleteRead, RemoteDisconnected

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    CredentialRetrievalError,
    NoCredentialsError,
)
from hypothesis import given
from hypothesis import strategies as st
from urllib3.exceptions import ConnectTimeoutError as PoolTimeoutError

from livememfs.errors import (
    BucketMissing,
    ClockDiffers,
    Denied,
    LiveMemError,
    PreconditionFailed,
    StoreError,
    Throttled,
    Unreachable,
)
from livememfs.store.s3_http import HttpReply
from livememfs.store.s3_replies import (
    S3Request,
    decode_meta,
    described,
    document,
    encode_meta,
    etag_of,
    moment_of,
    page_of,
    refusal,
    stored,
    translate,
)
from livememfs.store.s3_xml import Malformed, parse

ASKED = S3Request("get", "k", "b", "http://host")
FOUND = {"etag": '"e"', "content-length": "3", "last-modified": "Fri, 20 Feb 2026 14:00:00 GMT"}
ENTRY = "<Contents><Key>{key}</Key><ETag>&quot;e&quot;</ETag><Size>3</Size></Contents>"


def refused(
    status: int, code: str = "", asked: S3Request = ASKED, headers: Mapping[str, str] | None = None
) -> LiveMemError:
    body = f"<Error><Code>{code}</Code><RequestId>R-E-Q</RequestId></Error>" if code else ""
    meant = refusal(HttpReply(status, "Reason", headers or {}, body.encode()), asked)
    assert meant is not None
    return meant


def listing(inner: str) -> bytes:
    return f"<ListBucketResult>{inner}</ListBucketResult>".encode()


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_metadata_comes_back_and_travels_as_visible_ascii(value: str) -> None:
    (encoded,) = encode_meta({"m": value}).values()

    assert decode_meta({"M": encoded}) == {"m": value}
    assert all("!" <= character <= "~" for character in encoded)


@given(st.binary())
def test_file_names_that_are_no_utf8_come_back(name: bytes) -> None:
    value = name.decode(errors="surrogateescape")

    assert decode_meta(encode_meta({"m": value})) == {"m": value}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (PoolTimeoutError("late"), Unreachable),
        (IncompleteRead(b"1", 2), Unreachable),
        (RemoteDisconnected(), Unreachable),
        (ConnectionResetError("reset"), Unreachable),
        (TimeoutError(), Unreachable),
        (Malformed("a page of a hotel"), Unreachable),
        (NoCredentialsError(), Denied),
        (CredentialRetrievalError(provider="role", error_msg="no"), Denied),
        (ClientError({"Error": {"Code": "AccessDenied"}}, "AssumeRole"), Denied),
        (ClientError({"Error": {"Code": "ValidationError"}}, "AssumeRole"), Denied),
        (ClientError({"Error": {"Code": "Throttling"}}, "AssumeRole"), Throttled),
        (ConnectTimeoutError(endpoint_url="http://the.keys"), Unreachable),
        (BotoCoreError(), StoreError),
    ],
    ids=repr,
)
def test_what_keeps_a_request_from_an_answer_becomes_ours(error: Exception, expected: type[LiveMemError]) -> None:
    meant = translate(error, ASKED)

    assert type(meant) is expected
    assert meant.values["detail"], "an error that says nothing is told by its name"


@pytest.mark.parametrize(("status", "expected"), [(599, Unreachable), (418, StoreError), (304, StoreError)])
def test_a_status_that_nobody_expects_is_still_an_error(status: int, expected: type[LiveMemError]) -> None:
    assert type(refused(status)) is expected
    assert refused(status).values["detail"]


@pytest.mark.parametrize(("minutes", "expected"), [(0, Denied), (14, Denied), (16, ClockDiffers), (-16, ClockDiffers)])
def test_a_refusal_without_a_reason_by_a_server_of_another_time_is_about_the_clock(
    minutes: int, expected: type[LiveMemError]
) -> None:
    """A reply to HEAD has no body that could give the reason; wrong keys would be looked for in vain."""
    date = format_datetime(datetime.now(UTC) + timedelta(minutes=minutes), usegmt=True)

    assert type(refused(403, headers={"date": date})) is expected
    assert type(refused(403, "SignatureDoesNotMatch", headers={"date": date})) is Denied, "the server says what it is"


def test_a_clock_that_differs_is_said_to_differ() -> None:
    meant = refused(403, "RequestTimeTooSkewed")

    assert type(meant) is ClockDiffers
    assert "timedatectl" in meant.advice()
    assert "S3_SECRET_ACCESS_KEY" not in meant.advice()


@pytest.mark.parametrize(
    ("verb", "conditional", "expected"),
    [("put", True, PreconditionFailed), ("put", False, BucketMissing), ("list", False, BucketMissing)],
)
def test_not_found_means_another_thing_where_no_object_was_asked_for(
    verb: str, conditional: bool, expected: type[LiveMemError]
) -> None:
    assert type(refused(404, asked=S3Request(verb, "k", "b", "http://host", conditional))) is expected


def test_success_is_no_refusal() -> None:
    assert refusal(HttpReply(200, "OK", {}), ASKED) is None
    assert refusal(HttpReply(204, "No Content", {}), ASKED) is None


@pytest.mark.parametrize("code", ["PermanentRedirect", "TemporaryRedirect", ""])
def test_a_bucket_of_another_region_is_told_with_its_region(code: str) -> None:
    meant = refused(301, code, headers={"x-amz-bucket-region": "eu-west-1"})

    assert type(meant) is StoreError
    assert "eu-west-1" in str(meant)


def test_a_refusal_keeps_the_request_id_to_itself() -> None:
    meant = refused(403, "AccessDenied", headers={"x-amz-request-id": "R-E-Q"})

    assert "R-E-Q" not in str(meant) + repr(meant.values)


@pytest.mark.parametrize("root", ["Error", "html"])
def test_a_success_with_another_document_in_it_is_none(root: str) -> None:
    with pytest.raises((Unreachable, Malformed)):
        document(HttpReply(200, "OK", {}, f"<{root}><Code>Unheard</Code></{root}>".encode()), "ListBucketResult", ASKED)


def test_an_error_within_a_success_is_read_by_its_code() -> None:
    with pytest.raises(Throttled):
        document(HttpReply(200, "OK", {}, b"<Error><Code>SlowDown</Code></Error>"), "CopyObjectResult", ASKED)


def test_a_page_has_its_keys_prefixes_and_token() -> None:
    page = page_of(
        parse(
            listing(
                "<EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>"
                "<NextContinuationToken>a%2Bb</NextContinuationToken>"
                + ENTRY.format(key="a+b%2Bc%0A%C3%A9")
                + "<CommonPrefixes><Prefix>p+q%2F</Prefix></CommonPrefixes>"
            )
        )
    )

    assert [(info.key, info.etag, info.size, info.meta) for info in page.objects] == [("a b+c\n\u00e9", "e", 3, None)]
    assert page.prefixes == ("p q/",)
    assert page.next_token == "a%2Bb", "tokens are opaque and never escaped"


def test_keys_are_taken_literally_from_servers_that_do_not_escape() -> None:
    page = page_of(parse(listing(ENTRY.format(key="a+b%2Bc &amp; d"))))

    assert [info.key for info in page.objects] == ["a+b%2Bc & d"]


def test_a_page_of_nothing_is_empty() -> None:
    page = page_of(parse(listing("<IsTruncated>false</IsTruncated><NextContinuationToken>t</NextContinuationToken>")))

    assert (page.objects, page.prefixes, page.next_token) == ((), (), None)


@pytest.mark.parametrize(
    "entry",
    [
        "<Contents><Size>1</Size></Contents>",
        "<Contents><Key>k</Key></Contents>",
        "<Contents><Key>k</Key><Size>many</Size></Contents>",
        "<CommonPrefixes><Other>p</Other></CommonPrefixes>",
    ],
)
def test_an_entry_that_is_not_whole_spoils_the_page(entry: str) -> None:
    with pytest.raises(Malformed):
        page_of(parse(listing(entry)))


def test_a_page_that_goes_on_nobody_knows_where_is_an_error() -> None:
    with pytest.raises(StoreError, match="more pages"):
        page_of(parse(listing("<IsTruncated>true</IsTruncated>" + ENTRY.format(key="k"))))


def test_an_object_is_described_by_its_headers() -> None:
    found = stored("k", HttpReply(200, "OK", FOUND | {"x-amz-meta-m": "%C3%A9", "x-amz-request-id": "r"}, b"abc"))

    assert (found.data, found.info.etag, found.info.size, found.info.meta) == (b"abc", "e", 3, {"m": "é"})
    assert found.info.modified_ns == 1771596000 * 10**9


@pytest.mark.parametrize("missing", ["etag", "content-length"])
def test_an_object_without_etag_or_size_is_not_believed(missing: str) -> None:
    with pytest.raises(Malformed):
        described("k", HttpReply(200, "OK", {name: value for name, value in FOUND.items() if name != missing}))


def test_data_of_another_length_than_announced_is_not_believed() -> None:
    with pytest.raises(Malformed, match="2 bytes came where 3"):
        stored("k", HttpReply(200, "OK", FOUND, b"ab"))


@pytest.mark.parametrize(("sent", "etag"), [('"abc"', "abc"), ("abc", "abc"), ('W/"abc"', "abc"), ('"a-2"', "a-2")])
def test_etags_lose_their_quotes(sent: str, etag: str) -> None:
    assert etag_of(sent) == etag


@pytest.mark.parametrize(
    "written",
    [
        "Fri, 20 Feb 2026 14:00:00 GMT",
        "Fri, 20 Feb 2026 14:00:00 -0000",
        "2026-02-20T14:00:00.000Z",
        "2026-02-20T14:00:00Z",
        "2026-02-20T14:00:00",
        "2026-02-20T15:00:00+01:00",
    ],
)
def test_times_are_nanoseconds(written: str) -> None:
    assert moment_of(written) == 1771596000 * 10**9


@pytest.mark.parametrize("written", [None, "", "yesterday", "20 of February", "2026-02-31T00:00:00Z"])
def test_times_are_zero_when_unknown(written: str | None) -> None:
    assert moment_of(written) == 0
