"""How S3's answers are read, without a server."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    ConnectTimeoutError,
    EndpointConnectionError,
    IncompleteReadError,
    NoCredentialsError,
    ReadTimeoutError,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from livememfs.errors import BucketMissing, Denied, LiveMemError, PreconditionFailed, StoreError, Unreachable
from livememfs.store.s3_replies import Asked, answered_at, decode_meta, encode_meta, etag_of, moment_of, translate

ASKED = Asked("get", "k", "b", "http://host")


def refusal(code: str, status: int) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "Op")


@settings(max_examples=60, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_metadata_comes_back_and_travels_as_visible_ascii(value: str) -> None:
    (encoded,) = encode_meta({"m": value}).values()

    assert decode_meta({"M": encoded}) == {"m": value}
    assert all("!" <= character <= "~" for character in encoded)


@settings(max_examples=60, deadline=None)
@given(st.binary())
def test_file_names_that_are_no_utf8_come_back(name: bytes) -> None:
    value = name.decode(errors="surrogateescape")

    assert decode_meta(encode_meta({"m": value})) == {"m": value}


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (EndpointConnectionError(endpoint_url="u"), Unreachable),
        (ConnectTimeoutError(endpoint_url="u"), Unreachable),
        (ReadTimeoutError(endpoint_url="u"), Unreachable),
        (IncompleteReadError(actual_bytes=1, expected_bytes=2), Unreachable),
        (ConnectionResetError("reset"), Unreachable),
        (NoCredentialsError(), Denied),
        (BotoCoreError(), StoreError),
        (refusal("", 599), Unreachable),
        (refusal("", 418), StoreError),
    ],
    ids=repr,
)
def test_what_botocore_raises_becomes_ours(error: Exception, expected: type[LiveMemError]) -> None:
    assert type(translate(error, ASKED)) is expected


@pytest.mark.parametrize(
    ("verb", "conditional", "expected"),
    [("put", True, PreconditionFailed), ("put", False, BucketMissing), ("list", False, BucketMissing)],
)
def test_not_found_means_another_thing_where_no_object_was_asked_for(
    verb: str, conditional: bool, expected: type[LiveMemError]
) -> None:
    assert type(translate(refusal("404", 404), Asked(verb, "k", "b", "http://host", conditional))) is expected


@pytest.mark.parametrize(("sent", "etag"), [('"abc"', "abc"), ("abc", "abc"), ('W/"abc"', "abc"), ('"a-2"', "a-2")])
def test_etags_lose_their_quotes(sent: str, etag: str) -> None:
    assert etag_of(sent) == etag


def test_times_are_nanoseconds_and_zero_when_unknown() -> None:
    reply = {"ResponseMetadata": {"HTTPHeaders": {"date": "Fri, 20 Feb 2026 14:00:00 GMT"}}}

    assert answered_at(reply) == moment_of(datetime(2026, 2, 20, 14, tzinfo=UTC)) == 1771596000 * 10**9
    assert answered_at({"ResponseMetadata": {"HTTPHeaders": {"date": "yesterday"}}}) == 0
    assert answered_at({}) == moment_of(None) == 0
