"""Where the log goes, and that nobody who logs pays for a line that cannot be written."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
import structlog

from livememfs import log

SAYS_A_LINE = """
import logging, sys, structlog
from livememfs import log
log.configure()
structlog.get_logger().info("a line")
logging.getLogger("a library").warning("a line")
sys.stdout.write("went on")
"""


class Broken(io.StringIO):
    """A stream that fails with an error number while it has one."""

    failing = 0

    def write(self, text: str) -> int:
        """Write, or fail."""
        if self.failing:
            raise OSError(self.failing, "cannot be written")
        return super().write(text)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EPIPE, errno.EIO], ids=errno.errorcode.get)
def test_a_line_that_cannot_be_written_is_lost_and_the_next_one_that_can_be_is_there(number: int) -> None:
    stream = Broken()
    log.configure(json=True, stream=stream)

    stream.failing = number
    structlog.get_logger().info("lost")
    stream.failing = 0
    structlog.get_logger().info("kept")

    assert '"event": "kept"' in stream.getvalue()
    assert "lost" not in stream.getvalue()


def test_a_line_has_nothing_private_in_it_whoever_logs_it() -> None:
    """Ours are cleaned by field, so that JSON stays JSON, and those of libraries as text."""
    token = "gh" + "p_" + "aB3" * 12
    script = SAYS_A_LINE.replace("a line", f"a line {token}")
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30)

    assert ended.stderr.count("a line [redacted: github-token]") == 2
    assert token not in ended.stderr


def test_a_closed_stream_loses_what_is_logged() -> None:
    stream = io.StringIO()
    log.configure(stream=stream)
    stream.close()

    structlog.get_logger().info("lost")


@pytest.mark.parametrize("redirected", ["2>/dev/full", "2>&-"])
def test_without_a_usable_standard_error_a_process_goes_on_and_keeps_standard_output_to_itself(redirected: str) -> None:
    done = subprocess.run(
        ["/bin/sh", "-c", f'exec "$0" -c "$1" {redirected}', sys.executable, SAYS_A_LINE],
        cwd=Path(__file__).resolve().parents[1],
        env={name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdout=subprocess.PIPE,
        text=True,
        timeout=60,
        check=False,
    )

    assert (done.returncode, done.stdout) == (0, "went on")
