"""The style sheet, the script and the icon: small files, read once.

Owns their addresses, which change with their content, so that a browser may keep them. Pure but for the first read;
trio thread only.
"""

from __future__ import annotations

from functools import cache
from hashlib import blake2b
from importlib.resources import files
from typing import TYPE_CHECKING

from starlette.responses import Response

from livememfs import errors

if TYPE_CHECKING:
    from starlette.requests import Request

    from livememfs.serve.web.site import Site

_TYPES = {"app.css": "text/css", "app.js": "text/javascript", "icon.svg": "image/svg+xml"}
KEEP = "public, max-age=31536000, immutable"


@cache
def _content(name: str) -> bytes:
    return (files("livememfs.serve.web") / "static" / name).read_bytes()


@cache
def address(name: str) -> str:
    """The address of a file in its present version."""
    return f"/static/{name}?v={blake2b(_content(name), digest_size=6).hexdigest()}"


async def file(_site: Site, request: Request) -> Response:
    """One of the files. NotFound for any other name."""
    name = request.path_params["name"]
    if name not in _TYPES:
        raise errors.NotFound(path=f"file {name}")
    return Response(_content(name), media_type=_TYPES[name], headers={"Cache-Control": KEEP})
