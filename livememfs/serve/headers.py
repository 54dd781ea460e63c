"""The headers of every answer of the page.

Owns what a browser may do with a page: run our one script, use our one style sheet, send requests to us, nothing else.
Pure; any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from livememfs.serve.guard import with_headers

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = (
    (b"content-security-policy", CONTENT_SECURITY_POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with `no-referrer` a browser sends our own forms with the origin `null`
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
)


class SecureHeaders:
    """Puts HEADERS on each answer of `app`; an answer may set its own."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """One request."""
        await self.app(scope, receive, with_headers(send, HEADERS))
