"""What a request says of itself: its caller, as the guard found it, and the names in its address, to the byte.

A server decodes a path as UTF-8 and loses what is none, but an object may have any name: names are read from the path
as it was sent. Refuses to check a token: the `SignIn` does. Pure; any thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol
from urllib.parse import unquote

from starlette.convertors import Convertor, register_url_convertor

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


class Anything(Convertor[str]):
    """The rest of an address. Starlette's own `path` ends at a line end, which a file name may have."""

    regex = r"[\s\S]*"

    def convert(self, value: str) -> str:
        """As it is."""
        return value

    def to_string(self, value: str) -> str:
        """As it is."""
        return value


def register() -> None:
    """Have routes know `{name:any}`."""
    register_url_convertor("any", Anything())


def name_in(request: Request, after: int) -> str:
    """The part of an address behind its first `after` parts, decoded; `/s/SPACE/note/NAME` has NAME behind 3.

    Bytes that are no text are kept as surrogates, as in names of objects.
    """
    raw = request.scope.get("raw_path") or request.scope["path"].encode("utf-8", "surrogateescape")
    parts = raw.partition(b"?")[0].decode("latin-1").split("/")[1 + after :]
    return "/".join(unquote(part, errors="surrogateescape") for part in parts)
