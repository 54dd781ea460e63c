"""Orders for a proxy that runs in a process of its own, over HTTP.

Owns the control port. Refuses what it does not know with 404 or 400. Runs in the proxy's loop. Each answer is JSON:

    GET  /counts                                      {"get": 3, ...}
    GET  /log                                         [["get", "/bucket/key"], ...], with --log
    GET  /traffic                                     {"sent": 5310, "received": 20844}, bytes since the start
    POST /reset                                       forget counts and log; answers with the counts as they were
    POST /latency?seconds=0.03
    POST /blackhole?on=1                              on=0 ends it
    POST /refuse?on=1
    POST /lose?writes=3
    POST /slowdown?fraction=0.2&when=after&seed=7     when and seed may be left out

Any other POST answers with `{}` once it is done.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

if TYPE_CHECKING:
    from proxy import DelayProxy


async def serve_control(proxy: DelayProxy, port: int) -> asyncio.Server:
    """Listen for orders on `port` of this machine; 0: on any."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            method, target, _ = (await reader.readuntil(b"\r\n\r\n")).decode().split(" ", 2)
            writer.write(await _answered(proxy, method, target))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError, ValueError):
            pass  # whoever it was has gone, or did not speak HTTP
        finally:
            writer.close()

    return await asyncio.start_server(serve, "127.0.0.1", port)


async def _answered(proxy: DelayProxy, method: str, target: str) -> bytes:
    path, _, query = target.partition("?")
    try:
        status, answer = "200 OK", await _done(proxy, f"{method} {path}", dict(parse_qsl(query)))
    except LookupError as error:
        status, answer = "404 Not Found", {"error": f"unknown: {error}"}
    except ValueError as error:
        status, answer = "400 Bad Request", {"error": str(error)}
    body = json.dumps(answer).encode()
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return f"{head}Connection: close\r\n\r\n".encode() + body


async def _done(proxy: DelayProxy, order: str, given: Mapping[str, str]) -> Any:
    """Carry an order out. Raises LookupError for an unknown one or a missing argument, ValueError for a wrong one."""
    match order:
        case "GET /counts":
            return proxy.counts()
        case "GET /log":
            return proxy.log()
        case "GET /traffic":
            return proxy.traffic()
        case "POST /reset":
            return proxy.reset()
        case "POST /latency":
            proxy.latency = float(given["seconds"])
        case "POST /blackhole":
            await proxy.set_blackhole(_switch(given["on"]))
        case "POST /refuse":
            await proxy.set_refusing(_switch(given["on"]))
        case "POST /lose":
            proxy.lose_replies(int(given["writes"]))
        case "POST /slowdown":
            when = given.get("when", "before")
            if when not in ("before", "after"):
                raise ValueError(f"when: {when!r} is neither before nor after")
            proxy.slow_down(
                float(given["fraction"]), when="after" if when == "after" else "before", seed=int(given.get("seed", 0))
            )
        case _:
            raise LookupError(order)
    return {}


def _switch(text: str) -> bool:
    if text not in ("0", "1"):
        raise ValueError(f"on: {text!r} is neither 0 nor 1")
    return text == "1"
