"""The guard around every handler: a deadline, the check of the token, and the translation of failures.

Owns the rule that only FUSEError leaves a handler: any other exception would end the session, and leave the request
unanswered and the mount dead. Owns also which arguments the check reads. They are found once, when the class is made,
by the names of the handler's parameters; an unknown name makes the import fail, so that no new handler goes unchecked.
Refuses to hide a bug: it is logged once with its traceback, and the call gets EIO. Trio thread only.
"""

from __future__ import annotations

import errno
import functools
import inspect
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar, cast

import pyfuse3
import structlog
import trio

from livememfs import errors
from livememfs.concurrency import the_one
from livememfs.records.names import is_lock

P = ParamSpec("P")
T = TypeVar("T")

if TYPE_CHECKING:
    from livememfs.fuse.adapter import FuseOperations

    Handler = Callable[Concatenate[FuseOperations, P], Coroutine[Any, Any, T]]

log = structlog.get_logger("livememfs.fuse")

REPORTED = frozenset((
    errno.EIO, errno.EINVAL, errno.EROFS, errno.ENOSPC, errno.EILSEQ, errno.EFBIG, errno.ETIMEDOUT, errno.EACCES,
    errno.EPERM,
))  # fmt: skip
"""What a user looks up in `errors.ndjson`. The others are answers, not failures: no such file, exists already."""
_PLACES = (("ino", ""), ("parent", "name"), ("new_parent", "new_name"))
"""Parameters that name a node, in the order of requests: an inode, and the name of an entry of that directory."""
_OTHERS = frozenset((
    "mode", "rdev", "target", "attr", "fields", "name", "value", "offset", "size", "data", "datasync", "start", "token",
))  # fmt: skip
"""Parameters that the check does not read. Before you add one, make sure that it names no node."""


class Needs(Enum):
    """What a token must allow for a request."""

    NOTHING = auto()
    """Allowed with any token: the request ends something, or its answer is no secret."""
    READING = auto()
    WRITING = auto()
    MAKING = auto()
    """Writing; the last place that the request names is a new one."""
    BY_FLAGS = auto()
    """Reading or writing, by the flags of an open."""


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of a handler that the check needs.

    :places: inode numbers, each with a name in that directory or with none
    :opened: the number of an open file or directory, when the request names no place
    :flags:  of an open; 0 for other requests
    """

    operation: str
    needs: Needs
    places: tuple[tuple[int, bytes], ...] = ()
    opened: int | None = None
    flags: int = 0


class _Reader:
    """Makes a `Request` from the arguments of one handler. TypeError for a parameter that is not known."""

    def __init__(self, function: Callable[..., Any], needs: Needs) -> None:
        self.operation, self.needs = function.__name__, needs
        self._names = tuple(inspect.signature(function).parameters)[1:]
        self._places = [place for place in _PLACES if place[0] in self._names]
        known = {*_OTHERS, "fh", "flags", "ctx", *(name for place in _PLACES for name in place)}
        if unknown := {*self._names} - known:
            raise TypeError(f"{self.operation}: does the token's check go by {', '.join(sorted(unknown))}?")
        lacking = {name for place in self._places for name in place if name} - {*self._names}
        if needs is Needs.BY_FLAGS and "flags" not in self._names:
            lacking.add("flags")
        if needs is not Needs.NOTHING and not self._places and "fh" not in self._names:
            lacking.add("anything that names a node")
        self._caller = self._names.index("ctx") if "ctx" in self._names else None
        if lacking:
            raise TypeError(f"{self.operation} has no {', '.join(sorted(lacking))}, which the token's check goes by")

    def is_from(self, pid: int, args: tuple[Any, ...]) -> bool:
        """Whether a process makes the call. Of some calls the kernel does not say."""
        at = self._caller
        return at is not None and len(args) > at and args[at].pid == pid

    def read(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Request:
        """The request of one call. It never fails: an inode that was not given is 0, which no node has."""
        given = {**dict(zip(self._names, args, strict=False)), **kwargs}
        return Request(
            self.operation,
            self.needs,
            tuple((given.get(node, 0), given.get(name, b"")) for node, name in self._places),
            None if self._places else given.get("fh"),
            given.get("flags", 0),
        )


def handler(needs: Needs) -> Callable[[Handler[P, T]], Handler[P, T]]:
    """Make a method a handler of the kernel's requests; `needs` says what the mount's token must allow."""

    def decorate(function: Handler[P, T]) -> Handler[P, T]:
        reader = _Reader(function, needs)

        @functools.wraps(function)
        async def guarded(self: FuseOperations, /, *args: P.args, **kwargs: P.kwargs) -> T:
            self.requests += 1
            try:
                # As `fail_after`, but without its two generators, whose cost every request would pay.
                with trio.CancelScope(deadline=trio.current_time() + self.op_timeout) as deadline:
                    if self.announcer is not None and reader.is_from(self.announcer.pid, args):
                        return cast("T", await self.pretence.answer(reader.operation, args))
                    if self.limited:
                        self.permit(reader.read(args, kwargs))
                    return await function(self, *args, **kwargs)
                if deadline.cancelled_caught:
                    raise trio.TooSlowError
            except pyfuse3.FUSEError:
                raise
            except Exception as raised:
                code = _verdict(self, reader.read(args, kwargs), raised)
            raise pyfuse3.FUSEError(code)

        return guarded

    return decorate


def _verdict(operations: FuseOperations, request: Request, raised: Exception) -> int:
    """The errno of a failure, which is also reported."""
    error: BaseException = the_one(raised) if isinstance(raised, ExceptionGroup) else raised
    name, path = request.operation, operations.path_of(request)
    if isinstance(error, trio.TooSlowError):
        error = errors.TimedOut(f"{name} on {path or 'the mount'}")
    if isinstance(error, errors.LiveMemError):
        if error.errno in REPORTED and not is_lock(path.rpartition("/")[2]):
            operations.errors.record(name, path or str(error.values.get("path", "")), error)
        return error.errno
    operations.bugs += 1
    log.error("a handler failed; the call gets EIO", operation=name, path=path, exc_info=raised)
    operations.errors.record(name, path, errors.LiveMemError(f"internal error: {type(error).__name__}; see the log"))
    return errno.EIO
