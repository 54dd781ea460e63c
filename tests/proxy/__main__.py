"""The proxy as a program: `python tests/proxy --target HOST:PORT`.

Owns the command line and the signals. Refuses to start without a target. Main thread only.
"""

from __future__ import annotations

import argparse
import asyncio
import signal
import sys
from contextlib import suppress
from pathlib import Path

# A folder that is executed is itself on the path, not the one it is in; and `requests` in it would hide the library.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from proxy.delay import DelayProxy  # noqa: E402


def main(arguments: list[str] | None = None) -> int:
    """Be the proxy until SIGTERM or SIGINT."""
    parser = argparse.ArgumentParser(prog="python tests/proxy", description="A slow way to an S3 server.")
    parser.add_argument("--target", required=True, metavar="HOST:PORT", help="the server")
    parser.add_argument("--port", type=int, default=0, help="where to listen; 0: anywhere")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds added to each request")
    parser.add_argument("--log", action="store_true", help="remember each request")
    parser.add_argument(
        "--control", type=int, nargs="?", const=0, metavar="PORT", help="listen for orders; 0: anywhere"
    )
    given = parser.parse_args(arguments)
    host, _, port = given.target.rpartition(":")
    proxy = DelayProxy(
        int(port), target_host=host or "127.0.0.1", port=given.port, latency=given.latency, keep_log=given.log
    )

    async def serve() -> None:
        work = asyncio.current_task()
        assert work is not None
        for number in (signal.SIGTERM, signal.SIGINT):
            asyncio.get_running_loop().add_signal_handler(number, work.cancel)
        with suppress(asyncio.CancelledError):
            await proxy.run(control_port=given.control)

    asyncio.run(serve())
    return 0


if __name__ == "__main__":
    sys.exit(main())
