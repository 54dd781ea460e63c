"""The guard around every handler: nothing but FUSEError leaves it, and what a user must know is written down."""

from __future__ import annotations

import errno
import json
from typing import Any

import pyfuse3
import pytest
import trio

from livememfs import errors
from livememfs.fuse.guard import REPORTED, handler
from livememfs.testing.clock import ManualClock
from livememfs.tree.errorlog import ErrorLog

TIMEOUT = 30.0


class Mount:
    """What the guard needs of `Operations`, with one handler that does what it is told."""

    def __init__(self) -> None:
        self.errors = ErrorLog(ManualClock())
        self.op_timeout = TIMEOUT
        self.requests = self.bugs = 0
        self.limited = False
        self.refusal: errors.LiveMemError | None = None

    def permit(self, operation: str, args: tuple[Any, ...]) -> None:
        if self.refusal is not None:
            raise self.refusal

    def path_of(self, operation: str, args: tuple[Any, ...]) -> str:
        return f"alpha/{args[0]}" if args else ""

    @handler  # type: ignore[arg-type]  # it is no pyfuse3.Operations
    async def write(self, name: str, outcome: object = None) -> object:
        """The docstring of the handler."""
        if isinstance(outcome, BaseException):
            raise outcome
        if isinstance(outcome, float):
            await trio.sleep(outcome)
        return outcome

    @handler  # type: ignore[arg-type]  # as above
    async def statfs(self) -> None:
        await trio.sleep_forever()

    def lines(self) -> list[dict[str, str]]:
        """`errors.ndjson`."""
        return [json.loads(line) for line in self.errors.errors().splitlines()]


@pytest.fixture
def mount() -> Mount:
    return Mount()


async def failing(mount: Mount, outcome: object) -> int:
    """The errno that the kernel is told."""
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await mount.write("x.md", outcome)
    return caught.value.errno


async def test_an_answer_passes_and_is_counted(mount: Mount) -> None:
    assert await mount.write("x.md", "answer") == "answer"
    assert (mount.requests, mount.bugs, mount.lines()) == (1, 0, [])
    assert Mount.write.__doc__ == "The docstring of the handler."


async def test_a_fuse_error_passes_as_it_is(mount: Mount) -> None:
    error = pyfuse3.FUSEError(errno.ENODATA)
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await mount.write("x.md", error)

    assert caught.value is error
    assert mount.lines() == []


@pytest.mark.parametrize(
    "error",
    [
        errors.NotText(path="live/x.md", detail="byte 0xff"),
        errors.TooLarge(path="live/x.md", detail="2 MB"),
        errors.ReadOnly("consolidation writes it", path="bank/x.md"),
        errors.BadRequest("no JSON", path=".consolidate"),
        errors.NotPermitted(path="live", detail="no directories"),
        errors.Denied(key="alpha/x", detail="403"),
        errors.Unreachable("reset", endpoint="the bucket"),
        errors.NoSpace("disk"),
        errors.LiveMemError("something else"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_a_failure_is_told_by_its_errno_and_explained_in_one_line(
    mount: Mount, error: errors.LiveMemError
) -> None:
    assert await failing(mount, error) == error.errno

    [line] = mount.lines()
    assert line == {
        "time": "2026-02-20T14:00:00Z",
        "path": "alpha/x.md",
        "operation": "write",
        "errno": errno.errorcode[error.errno],
        "what": str(error),
        "what_to_do": error.advice(),
    }
    assert mount.bugs == 0


@pytest.mark.parametrize(
    "error",
    [
        errors.NotFound(path="x"),
        errors.AlreadyExists(path="x"),
        errors.CrossesKinds(path="x"),
        errors.NotEmpty(path="x"),
        errors.NoAttribute(path="x"),
        errors.Stale(path="x"),
    ],
    ids=lambda error: type(error).__name__,
)
async def test_an_answer_that_says_no_is_no_failure(mount: Mount, error: errors.LiveMemError) -> None:
    assert error.errno not in REPORTED
    assert await failing(mount, error) == error.errno
    assert mount.lines() == []


async def test_whoever_takes_too_long_is_ended_with_etimedout(mount: Mount, autojump_clock: trio.abc.Clock) -> None:
    assert await mount.write("x.md", TIMEOUT - 1) == TIMEOUT - 1
    started = trio.current_time()

    assert await failing(mount, TIMEOUT + 1) == errno.ETIMEDOUT

    assert trio.current_time() - started == pytest.approx(TIMEOUT)
    assert mount.lines()[0]["errno"] == "ETIMEDOUT"
    assert "alpha/x.md" in mount.lines()[0]["what"]


async def test_a_timeout_without_a_path_still_says_what_was_asked(mount: Mount, autojump_clock: trio.abc.Clock) -> None:
    with pytest.raises(pyfuse3.FUSEError):
        await mount.statfs()

    assert mount.lines()[0]["what"] == "statfs on the mount did not answer in time"


async def test_a_cancellation_from_outside_is_no_failure(mount: Mount, autojump_clock: trio.abc.Clock) -> None:
    with trio.move_on_after(1) as scope:
        await mount.statfs()

    assert scope.cancelled_caught
    assert mount.lines() == []


@pytest.mark.parametrize(
    "bug",
    [
        ValueError("secret text"),
        KeyError(3),
        AssertionError(),
        OSError(errno.ENOENT, "x"),
        ExceptionGroup("a nursery", [ValueError("secret text")]),
        ExceptionGroup("a nursery", [errors.NotFound(path="x"), ValueError("secret text")]),
    ],
    ids=["ValueError", "KeyError", "AssertionError", "OSError", "group", "mixed group"],
)
async def test_a_bug_is_told_as_eio_and_logged_once(mount: Mount, bug: Exception, expect_log, request) -> None:
    expect_log("a handler failed; the call gets EIO")
    alarms = request.getfixturevalue("_no_unclaimed_alarms")

    assert await failing(mount, bug) == errno.EIO

    assert mount.bugs == 1
    assert len(alarms.events) == 1
    assert "Traceback" in alarms.events[0]
    [line] = mount.lines()
    assert line["errno"] == "EIO"
    assert "secret text" not in line["what"]


@pytest.mark.parametrize("depth", [1, 3])
async def test_a_failure_inside_a_group_is_told_as_itself(mount: Mount, depth: int) -> None:
    error: Exception = errors.NotText(path="x", detail="byte 0xff")
    for _ in range(depth):
        error = ExceptionGroup("a nursery", [error])

    assert await failing(mount, error) == errno.EILSEQ
    assert mount.lines()[0]["errno"] == "EILSEQ"
    assert mount.bugs == 0


async def test_a_failed_call_says_nothing_of_its_cause_to_the_next_one(mount: Mount) -> None:
    """The FUSEError carries no chain: it would keep every frame of the failed call alive."""
    with pytest.raises(pyfuse3.FUSEError) as caught:
        await mount.write("x.md", errors.NotFound(path="x"))

    assert caught.value.__context__ is None
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (errors.ReadOnly("it may only read", path="x"), errno.EROFS),
        (errors.NotFound(path="x"), errno.ENOENT),
        (errors.Forbidden(path="x", name="me", permission="read"), errno.EACCES),
    ],
)
async def test_what_a_token_does_not_allow_never_reaches_the_handler(
    mount: Mount, refusal: errors.LiveMemError, code: int
) -> None:
    mount.limited, mount.refusal = True, refusal

    assert await failing(mount, AssertionError("the handler was called")) == code
    assert mount.bugs == 0


async def test_a_mount_without_a_token_asks_nobody(mount: Mount) -> None:
    mount.refusal = errors.NotFound(path="x")

    assert await mount.write("x.md", "answer") == "answer"
