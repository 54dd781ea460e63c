"""What a request to S3 costs the processor here: by `livememfs.store.s3_client`, and by boto3's client.

    PYTHONPATH=scripts .venv/bin/python -m benchlib.clients

Owns moto in a process of its own, and a bucket with one small object. Prints milliseconds of this process for each GET,
the least of several rounds. Refuses to measure how long a server takes. Main thread.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import boto3

from benchlib.servers import BUCKET, KEY_ID, SECRET, s3_server
from livememfs.store.s3_client import Client, S3Options

REQUESTS, ROUNDS = 200, 5


def cost(work: Callable[[], object]) -> float:
    """Milliseconds of the processor for one of it."""
    rounds = []
    for _ in range(ROUNDS):
        before = time.process_time()
        for _ in range(REQUESTS):
            work()
        rounds.append((time.process_time() - before) * 1e3 / REQUESTS)
    return min(rounds)


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as home, s3_server("moto", Path(home)) as server:
        endpoint = f"http://127.0.0.1:{server.port}"
        theirs = boto3.client(
            "s3", "us-east-1", endpoint_url=endpoint, aws_access_key_id=KEY_ID, aws_secret_access_key=SECRET
        )
        ours = Client(S3Options(bucket=BUCKET, endpoint_url=endpoint, access_key_id=KEY_ID, secret_access_key=SECRET))
        theirs.put_object(Bucket=BUCKET, Key="note", Body=b"x" * 500)
        print(f"livememfs  {cost(lambda: ours.send('GET', 'note')):.2f} ms")
        print(f"boto3      {cost(lambda: theirs.get_object(Bucket=BUCKET, Key='note')['Body'].read()):.2f} ms")


if __name__ == "__main__":
    main()
