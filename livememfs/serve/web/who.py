"""Who is asking, as the layer around the page has found out.

Refuses to judge a token: that is for whoever gives the `SignIn`. Pure; any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from livememfs.errors import NotSignedIn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.requests import Request

    from livememfs.records.access import Access


class SignIn(Protocol):
    """Whoever knows the tokens."""

    async def access(self, secret: str) -> Access | None:
        """What a token opens; None when it is good for nothing."""
        ...


def access_of(request: Request) -> Access:
    """Who is asking. NotSignedIn where nobody is known to."""
    access: Access | None = getattr(request.state, "access", None)
    if access is None:
        raise NotSignedIn
    return access


def still_of(request: Request) -> Callable[[], Awaitable[Access | None]]:
    """How something that goes on for long asks whether they still may."""
    asking: Callable[[], Awaitable[Access | None]] | None = getattr(request.state, "still", None)
    if asking is not None:
        return asking
    access = access_of(request)

    async def as_before() -> Access | None:
        return access

    return as_before
