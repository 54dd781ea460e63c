"""From the threads of the WebDAV server to the trio thread that owns the tree, and errors on their way back.

Owns the deadline of each act, the status for each error, and that its sentence is in the answer. Refuses to hide a bug:
it is logged with its traceback, and the client gets 500. Any thread but the trio thread; blocking.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar

import structlog
import trio
from wsgidav.dav_error import DAVError

from livememfs.concurrency import the_one
from livememfs.errors import LiveMemError, TimedOut
from livememfs.records.names import is_lock

if TYPE_CHECKING:
    from livememfs.tree.errorlog import ErrorLog

log = structlog.get_logger("livememfs.serve")

T = TypeVar("T")

STATUS = {
    errno.EACCES: 403, errno.EPERM: 403, errno.EROFS: 403,
    errno.ENOENT: 404,
    errno.EEXIST: 405, errno.EISDIR: 405, errno.EOPNOTSUPP: 405,
    errno.ENOTEMPTY: 409, errno.ENOTDIR: 409, errno.EBUSY: 409, errno.ESTALE: 409, errno.EXDEV: 409,
    errno.EFBIG: 413,
    errno.ENAMETOOLONG: 414,
    errno.EINVAL: 422, errno.EILSEQ: 422,
    errno.EAGAIN: 503, errno.ETIMEDOUT: 503,
    errno.ENOSPC: 507,
}  # fmt: skip
"""The answer for an errno; 500 for any other."""
ANSWERS = frozenset({404, 405, 409})
"""Statuses that are answers, not failures: the others are in `errors.ndjson` as well."""


class Bridge:
    """Runs acts on the trio thread that `token` names, each within `timeout` seconds."""

    def __init__(self, token: trio.lowlevel.TrioToken, errors: ErrorLog, timeout: float) -> None:
        self._token, self._errors, self._timeout = token, errors, timeout

    def run(self, act: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """`await act(*arguments)`. DAVError."""
        try:
            return self.ask(act, *arguments)
        except Exception as raised:
            raise self._answer(act.__name__, raised) from None

    def ask(self, act: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        """The same, with the error as it is."""
        try:
            return trio.from_thread.run(self._bounded, act, *arguments, trio_token=self._token)
        except (trio.RunFinishedError, trio.Cancelled):
            raise DAVError(503, "the server ends") from None

    async def _bounded(self, act: Callable[..., Awaitable[T]], *arguments: Any) -> T:
        try:
            with trio.fail_after(self._timeout):
                return await act(*arguments)
        except trio.TooSlowError:
            raise TimedOut("the act") from None
        except ExceptionGroup as group:
            raise the_one(group) from None

    def _answer(self, name: str, raised: Exception) -> Any:  # a DAVError; the library has no types
        if isinstance(raised, DAVError):
            return raised
        if not isinstance(raised, LiveMemError):
            log.error("an act of WebDAV failed; the client gets 500", act=name, exc_info=raised)
            return DAVError(500, f"internal error: {type(raised).__name__}; see the log")
        status, advice = STATUS.get(raised.errno, 500), raised.advice()
        path = str(raised.values.get("path", ""))
        if status not in ANSWERS and not is_lock(path.rpartition("/")[2]):
            self._errors.record(f"dav {name}", path, raised)
        return DAVError(status, f"{raised}; {advice}" if advice else str(raised))
