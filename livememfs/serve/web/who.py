"""The caller of a page, as the guard found it.

Refuses to check a token: the `SignIn` does. Pure; any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from livememfs.errors import NotSignedIn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from livememfs.records.access import Access


class SignIn(Protocol):
    """Checks tokens."""

    async def access(self, secret: str) -> Access | None:
        """The access of a token; None if it is not valid."""
        ...


def access_of(request: Request) -> Access:
    """The access of the caller. NotSignedIn without one."""
    access: Access | None = getattr(request.state, "access", None)
    if access is None:
        raise NotSignedIn
    return access


def still_of(request: Request) -> Callable[[], Awaitable[Access | None]]:
    """A function by which a long answer asks again for the access."""
    asking: Callable[[], Awaitable[Access | None]] | None = getattr(request.state, "still", None)
    if asking is not None:
        return asking
    access = access_of(request)

    async def as_before() -> Access | None:
        return access

    return as_before
