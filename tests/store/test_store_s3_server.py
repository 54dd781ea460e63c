"""The S3 server that tests use decides conditional writes as S3 does: one after the other."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import boto3
import moto_s3
import pytest
from werkzeug.test import Client

WITHIN, SHORTLY = 20.0, 0.2


def respond(*_: Any) -> None:
    """Of a response nobody looks at."""


@pytest.mark.parametrize(("method", "meet"), [("PUT", False), ("POST", False), ("DELETE", False), ("GET", True)])
def test_of_two_writes_at_once_the_second_begins_when_the_first_has_ended(method: str, meet: bool) -> None:
    """Also where what is answered is worked out while it is read; and whoever reads waits for nobody."""
    together = threading.Barrier(2)
    met: list[bool] = []

    def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        try:
            together.wait(WITHIN if meet else SHORTLY)
            met.append(True)
        except threading.BrokenBarrierError:
            met.append(False)
        yield environ["wsgi.input"].read()

    served = moto_s3.OneByOne(application)

    def ask(body: bytes) -> bytes:
        environ = {"REQUEST_METHOD": method, "CONTENT_LENGTH": str(len(body)), "wsgi.input": io.BytesIO(body + b"next")}
        return b"".join(served(environ, respond))[: len(body)]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(ask, (b"one", b"two"))) == [b"one", b"two"]
    assert met == [meet, meet]


def test_it_is_an_s3_that_knows_conditions() -> None:
    server = moto_s3.server(moto_s3.application())
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    session = boto3.session.Session(aws_access_key_id="x", aws_secret_access_key="x", region_name="us-east-1")
    client = session.client("s3", endpoint_url=f"http://127.0.0.1:{server.server_port}")
    try:
        client.create_bucket(Bucket="conditions")
        old = client.put_object(Bucket="conditions", Key="lease", Body=b"one", IfNoneMatch="*")["ETag"]
        new = client.put_object(Bucket="conditions", Key="lease", Body=b"two", IfMatch=old)["ETag"]
        for condition in ({"IfNoneMatch": "*"}, {"IfMatch": old}):
            with pytest.raises(client.exceptions.ClientError, match="PreconditionFailed"):
                client.put_object(Bucket="conditions", Key="lease", Body=b"three", **condition)
        found = client.get_object(Bucket="conditions", Key="lease", IfMatch=new)
        assert found["Body"].read() == b"two"
    finally:
        client.close()
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_signature_of_version_2_with_slashes_is_still_that_of_a_request_to_s3() -> None:
    """With four, moto would take it for a scope of version 4 and look for a service of that name."""
    headers = {"Authorization": "AWS test:a/b/c/d/e="}
    answer = Client(moto_s3.application()).get("/", headers=headers)
    assert b"ListAllMyBucketsResult" in answer.data
