"""The common part of all pages: the tree, the events, and how a request is answered.

Owns the deadline of an answer, and the page for an error: its sentence, its advice and the right status, never a
traceback. Trio thread only.
"""

from __future__ import annotations

import errno
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import TYPE_CHECKING, Any

import structlog
import trio

from livememfs import errors
from livememfs.concurrency import in_thread
from livememfs.serve.web.acts import Acts
from livememfs.serve.web.asked import access_of
from livememfs.serve.web.events import Events
from livememfs.serve.web.order import SpaceOrder
from livememfs.serve.web.render import error_page, page
from livememfs.tree.space.root import Space

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.records.access import Access, Permission
    from livememfs.serve.web.asked import SignIn
    from livememfs.tree.root import Root

log = structlog.get_logger("livememfs.serve")

Setting = tuple[str, str, str]
"""The name of a setting, its value, and what it means."""
Handler = Callable[["Site", "Request"], Awaitable["Response"]]
STORE_FAILED = "The store does not answer as it should."
_STATUS = {
    errno.ENOENT: 404,
    errno.ENODATA: 404,
    errno.EACCES: 403,
    errno.EPERM: 403,
    errno.EROFS: 403,
    errno.EINVAL: 400,
    errno.EILSEQ: 422,
    errno.EEXIST: 409,
    errno.ESTALE: 409,
    errno.ENOTEMPTY: 409,
    errno.EBUSY: 409,
    errno.EFBIG: 413,
    errno.ETIMEDOUT: 503,
    errno.ENOSPC: 503,
}


class Site:
    """The page of one tree. `timeout`: most seconds for an answer, except the stream of events. `settings` are shown to
    those who administer the bucket.
    """

    def __init__(self, root: Root, sign_in: SignIn, timeout: float = 30.0, *, settings: Sequence[Setting] = ()) -> None:
        self.root, self.context = root, root.context
        self.sign_in, self.timeout, self.settings = sign_in, timeout, settings
        self.order, self.acts = SpaceOrder(self), Acts(self)
        self.events = Events(root)
        self.events.told = self.order.heard
        self._counts = {"requests": 0, "failed": 0}

    async def public(self, handler: Handler, request: Request) -> Response:
        """The answer to any client."""
        return await self._serve(handler, request, None)

    async def signed_in(self, handler: Handler, request: Request) -> Response:
        """The answer to a client with a valid token."""
        try:
            access = access_of(request)
        except errors.NotSignedIn as error:
            return error_page(401, _sentence(error, None), error.advice(), access=None)
        return await self._serve(handler, request, access)

    async def _serve(self, handler: Handler, request: Request, access: Access | None) -> Response:
        self._counts["requests"] += 1
        error: errors.LiveMemError
        try:
            with trio.fail_after(self.timeout):
                return await handler(self, request)
        except trio.TooSlowError:
            error = errors.TimedOut("the store")
        except errors.LiveMemError as caught:
            error = caught
        except Exception:
            self._counts["failed"] += 1
            log.exception("a page failed", page=handler.__name__)
            return error_page(500, "livememfs itself failed.", "Its log has the error", access=access)
        status = status_of(error)
        self._counts["failed"] += status >= 500
        return error_page(status, _sentence(error, access), error.advice(), access=access)

    async def space(self, request: Request, permission: Permission = "read") -> Space:
        """The space that a request is about. NotFound, Forbidden."""
        name = request.path_params["space"]
        access_of(request).require(name, permission)
        try:
            node = await self.root.child(name)
        except errors.NotFound:
            # The same error as without access, so that names are not revealed.
            raise errors.NotFound(path=name) from None
        if not isinstance(node, Space):
            raise errors.NotFound(path=name)
        return node

    async def page(self, request: Request, template: str, /, **values: Any) -> Response:
        """A page for the caller, with what was just done; made in a thread, for it may be long."""
        access, now = access_of(request), self.context.clock.now()
        notice = self.acts.notice(request)
        return await in_thread(partial(page, template, access=access, now=now, notice=notice, **values))

    def close(self) -> None:
        """End the streams of events."""
        self.events.close()

    def statistics(self) -> dict[str, Any]:
        """Answers since the start, failures of ours among them, and the events."""
        return {**self._counts, "events": asdict(self.events.statistics())}


async def not_found(_site: Site, _request: Request) -> Response:
    """The answer to an unknown address."""
    raise errors.NotFound(path="such page")


def status_of(error: errors.LiveMemError) -> int:
    """The HTTP status of an error."""
    if isinstance(error, errors.StoreError) and not isinstance(error, errors.ObjectMissing):
        return 409 if isinstance(error, errors.PreconditionFailed) else 503
    return _STATUS.get(error.errno, 500)


def _sentence(error: errors.LiveMemError, access: Access | None) -> str:
    """The sentence for an error. The store's own text names keys and addresses, which limited tokens must not see."""
    limited = access is None or not access.everywhere
    if limited and isinstance(error, errors.StoreError) and not isinstance(error, errors.ObjectMissing):
        return STORE_FAILED
    text = str(error)
    return text[:1].upper() + text[1:]
