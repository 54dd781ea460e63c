"""The guard around every handler: nothing but FUSEError leaves it, and what a user must know is written down."""

from __future__ import annotations

import errno
import inspect
import json
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pyfuse3
import pytest
import trio

from livememfs import errors
from livememfs.fuse.adapter import FuseOperations
from livememfs.fuse.guard import REPORTED, Needs, Request, handler
from livememfs.testing.clock import ManualClock
from livememfs.tree.errorlog import ErrorLog

TIMEOUT = 30.0


class Mount:
    """What the guard needs of `FuseOperations`, with one handler that does what it is told."""

    def __init__(self) -> None:
        self.errors = ErrorLog(ManualClock())
        self.op_timeout = TIMEOUT
        self.requests = self.bugs = 0
        self.limited = False
        self.announcer = None
        self.refusal: errors.LiveMemError | None = None

    def permit(self, request: Request) -> None:
        if self.refusal is not None:
            raise self.refusal

    def path_of(self, request: Request) -> str:
        return f"alpha/{request.opened}" if request.opened else ""

    @handler(Needs.WRITING)  # type: ignore[arg-type]  # it is no pyfuse3.Operations
    async def write(self, fh: str, data: object = None) -> object:
        """The docstring of the handler."""
        if isinstance(data, BaseException):
            raise data
        if isinstance(data, float):
            await trio.sleep(data)
        return data

    @handler(Needs.NOTHING)  # type: ignore[arg-type]  # as above
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
async def test_a_failure_is_an_errno_and_is_explained_in_one_line(mount: Mount, error: errors.LiveMemError) -> None:
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
async def test_a_request_that_is_not_allowed_reaches_no_handler(
    mount: Mount, refusal: errors.LiveMemError, code: int
) -> None:
    mount.limited, mount.refusal = True, refusal

    assert await failing(mount, AssertionError("the handler was called")) == code
    assert mount.bugs == 0


async def test_a_mount_without_a_token_asks_nobody(mount: Mount) -> None:
    mount.refusal = errors.NotFound(path="x")

    assert await mount.write("x.md", "answer") == "answer"


# --- what the token's check goes by --------------------------------------------------------------------------------

OURS = {
    "parent_inode": "parent",
    "parent_inode_old": "parent",
    "name_old": "name",
    "parent_inode_new": "new_parent",
    "name_new": "new_name",
    "new_parent_inode": "parent",
    "new_name": "name",
    "inode": "ino",
    "off": "offset",
    "buf": "data",
    "start_id": "start",
}
"""Our names of parameters, by those of pyfuse3, where they differ: it calls by position."""
ASKED = {
    name: function
    for name, function in vars(pyfuse3.Operations).items()
    if inspect.iscoroutinefunction(function) and vars(FuseOperations).get(name) is not None
}
HANDLERS = {
    name: vars(FuseOperations)[name] for name in ASKED if name != "forget"
}  # which has no answer, hence no failure


def test_every_request_that_is_answered_is_guarded() -> None:
    assert {"lookup", "rename", "write", "readdir"} < {*HANDLERS}
    assert [name for name, function in HANDLERS.items() if not hasattr(function, "__wrapped__")] == []
    public = {
        name for name, value in vars(FuseOperations).items() if inspect.iscoroutinefunction(value) and name[0] != "_"
    }
    assert public - {*HANDLERS, "forget"} == set(), "it is none that pyfuse3 calls"


@pytest.mark.parametrize("name", HANDLERS)
def test_each_parameter_stands_where_pyfuse3_gives_it(name: str) -> None:
    theirs = [*inspect.signature(ASKED[name]).parameters][1:]

    assert [*inspect.signature(HANDLERS[name]).parameters][1:] == [OURS.get(one, one) for one in theirs]


async def asked(needs: Needs, function: Callable[..., Any], *args: Any) -> Request:
    """The request that the check of a limited mount is given."""
    seen: list[Request] = []
    mount: Any = SimpleNamespace(op_timeout=TIMEOUT, requests=0, limited=True, announcer=None, permit=seen.append)
    await handler(needs)(function)(mount, *args)
    return seen[0]


CTX = SimpleNamespace(pid=7)


async def test_the_check_goes_by_names_of_parameters_wherever_they_stand() -> None:
    async def rename(
        self: Any, parent: int, name: bytes, new_parent: int, new_name: bytes, flags: int, ctx: Any
    ) -> None:
        """As pyfuse3 gives them."""

    async def reordered(
        self: Any, ctx: Any, new_name: bytes, flags: int, new_parent: int, name: bytes, parent: int
    ) -> None:
        """As nobody would."""

    reordered.__name__ = "rename"
    expected = Request("rename", Needs.MAKING, ((2, b"a"), (3, b"b")), None, 1)
    assert await asked(Needs.MAKING, rename, 2, b"a", 3, b"b", 1, CTX) == expected
    assert await asked(Needs.MAKING, reordered, CTX, b"b", 1, 3, b"a", 2) == expected


async def test_what_comes_by_an_open_file_goes_by_that_unless_an_inode_is_named() -> None:
    async def read(self: Any, fh: int, offset: int, size: int) -> None:
        """One."""

    async def setattr(self: Any, ino: int, attr: object, fields: object, fh: int | None, ctx: Any) -> None:
        """The other."""

    assert await asked(Needs.READING, read, 5, 0, 1) == Request("read", Needs.READING, (), 5)
    assert await asked(Needs.WRITING, setattr, 2, None, None, 5, CTX) == Request("setattr", Needs.WRITING, ((2, b""),))


async def _unknown(self: Any, inode: int, ctx: Any) -> None:
    """Another name for an inode."""


async def _nameless(self: Any, parent: int, ctx: Any) -> None:
    """A directory, and no name in it."""


async def _flagless(self: Any, ino: int, ctx: Any) -> None:
    """An open that does not say what for."""


async def _nowhere(self: Any, ctx: Any) -> None:
    """It names nothing."""


@pytest.mark.parametrize(
    ("function", "needs"),
    [
        (_unknown, Needs.READING),
        (_unknown, Needs.NOTHING),
        (_nameless, Needs.MAKING),
        (_flagless, Needs.BY_FLAGS),
        (_nowhere, Needs.READING),
    ],
)
def test_a_handler_that_the_check_cannot_read_is_none(function: Callable[..., Any], needs: Needs) -> None:
    with pytest.raises(TypeError, match=function.__name__):
        handler(needs)(function)
