"""The caller of a page, as the guard found it.

Refuses to check a token: the `SignIn` does. Pure; any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from livememfs.errors import NotSignedIn

if TYPE_CHECKING:
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
