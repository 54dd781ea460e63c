"""What stands around every handler: a deadline, and the translation of failures.

Owns the rule that nothing but FUSEError leaves a handler: anything else would end the session, leave the request
unanswered and the mount dead. Refuses to hide a bug: it is logged once with its traceback, and the call gets EIO. Trio
thread only.
"""

from __future__ import annotations

import errno
import functools
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

import pyfuse3
import structlog
import trio

from livememfs import errors
from livememfs.concurrency import the_one

if TYPE_CHECKING:
    from livememfs.fuse.adapter import Operations

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger("livememfs.fuse")

REPORTED = frozenset(
    {
        errno.EIO,
        errno.EINVAL,
        errno.EROFS,
        errno.ENOSPC,
        errno.EILSEQ,
        errno.EFBIG,
        errno.ETIMEDOUT,
        errno.EACCES,
        errno.EPERM,
    }
)
"""What a user looks up in `errors.ndjson`. The others are answers, not failures: no such file, exists already."""


def handler(
    function: Callable[Concatenate[Operations, P], Coroutine[Any, Any, T]],
) -> Callable[Concatenate[Operations, P], Coroutine[Any, Any, T]]:
    """Make a method a handler of the kernel's requests."""
    name = function.__name__

    @functools.wraps(function)
    async def guarded(self: Operations, /, *args: P.args, **kwargs: P.kwargs) -> T:
        self.requests += 1
        try:
            # What `fail_after` does, without the two generators it is made of: this is the way of every request.
            with trio.CancelScope(deadline=trio.current_time() + self.op_timeout) as deadline:
                if self.limited:
                    self.permit(name, args)
                return await function(self, *args, **kwargs)
            if deadline.cancelled_caught:
                raise trio.TooSlowError
        except pyfuse3.FUSEError:
            raise
        except Exception as raised:
            code = _verdict(self, name, raised, args)
        raise pyfuse3.FUSEError(code)

    return guarded


def _verdict(operations: Operations, name: str, raised: Exception, args: tuple[Any, ...]) -> int:
    """The errno of a failure; it is reported on the way."""
    error: BaseException = the_one(raised) if isinstance(raised, ExceptionGroup) else raised
    path = operations.path_of(name, args)
    if isinstance(error, trio.TooSlowError):
        error = errors.TimedOut(f"{name} on {path or 'the mount'}")
    if isinstance(error, errors.LiveMemError):
        if error.errno in REPORTED:
            operations.errors.record(name, path or str(error.values.get("path", "")), error)
        return error.errno
    operations.bugs += 1
    log.error("a handler failed; the call gets EIO", operation=name, path=path, exc_info=raised)
    operations.errors.record(name, path, errors.LiveMemError(f"internal error: {type(error).__name__}; see the log"))
    return errno.EIO
