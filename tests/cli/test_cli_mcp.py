"""`livememfs mcp` as a process: how it ends, whatever its standard input is."""

from __future__ import annotations

import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

ENDS_WITHIN = 20.0
"""Seconds on a busy machine; what it must not be is for ever."""

HELLO = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}

Start = Callable[..., subprocess.Popen[bytes]]


def request(number: int, method: str, **params: Any) -> bytes:
    """A request as a line."""
    return json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}).encode() + b"\n"


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the command on a folder; it does not outlive the test."""
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "LIVEMEMFS_STORE": str(tmp_path / "bucket"),
        "LIVEMEMFS_CACHE": str(tmp_path / "cache"),
        "LIVEMEMFS_EMBED_MODEL": "none",
    }
    started: list[subprocess.Popen[bytes]] = []

    def run(stdin: Any = subprocess.PIPE, stdout: Any = subprocess.PIPE) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "livememfs", "mcp"]
        process = subprocess.Popen(
            command, env=environment, stdin=stdin, stdout=stdout, stderr=subprocess.PIPE, start_new_session=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            if pipe is not None:
                with suppress(BrokenPipeError):
                    pipe.close()


def greeted(process: subprocess.Popen[bytes], *further: bytes) -> None:
    """Write its first request and further ones to its standard input."""
    assert process.stdin is not None
    for line in (request(1, "initialize", **HELLO), *further):
        process.stdin.write(line)
    process.stdin.flush()


def interrupted(process: subprocess.Popen[bytes]) -> None:
    """Interrupt it and hold it to ending as an interrupted command does."""
    process.send_signal(signal.SIGINT)

    assert process.wait(ENDS_WITHIN) == 130
    assert process.stderr is not None
    assert b"Traceback" not in process.stderr.read()  # the SDK may say in a line what it was at


def test_an_interrupt_ends_it_while_the_client_holds_the_pipe_open(start: Start) -> None:
    process = start()
    greeted(process)
    assert process.stdout is not None
    assert b'"result"' in process.stdout.readline()

    interrupted(process)


def test_an_interrupt_ends_it_on_a_terminal(start: Start) -> None:
    terminal, end = pty.openpty()
    try:
        process = start(stdin=end)
        assert process.stdout is not None
        os.write(terminal, request(1, "initialize", **HELLO))
        assert b'"result"' in process.stdout.readline()

        interrupted(process)
    finally:
        os.close(terminal)
        os.close(end)


def test_an_interrupt_ends_it_while_the_client_does_not_read(start: Start) -> None:
    process = start()
    lists = [request(number, "tools/list") for number in range(2, 30)]  # far more than a pipe holds
    greeted(process, b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n', *lists)
    assert process.stdout is not None
    assert process.stdout.read(100)

    interrupted(process)


@pytest.mark.parametrize("ending", [b"\n", b""], ids=["whole lines", "a last line without an end"])
def test_what_a_file_asks_is_answered_and_then_it_ends(start: Start, tmp_path: Path, ending: bytes) -> None:
    requests = tmp_path / "asked"
    requests.write_bytes((request(1, "initialize", **HELLO) + request(2, "ping")).rstrip(b"\n") + ending)

    with requests.open("rb") as file:
        out, err = start(stdin=file).communicate(timeout=60)

    assert [json.loads(line)["id"] for line in out.splitlines()] == [1, 2]
    assert err == b""


def test_nothing_to_read_ends_it_at_once_and_well(start: Start) -> None:
    process = start(stdin=subprocess.DEVNULL)

    assert process.wait(60) == 0
    assert process.stderr is not None
    assert process.stderr.read() == b""
