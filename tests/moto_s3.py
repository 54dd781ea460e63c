"""An S3 server for tests: moto, with conditional writes that are decided one after the other, as those of S3 are.

Owns that order. moto by itself looks at the condition and writes afterwards, and of two who replace the same version at
the same time both succeed; whoever tests a lease on that has two holders. Refuses nothing else: what requests ask for
and what they get is moto's. As a program it says in a line of JSON on which port of 127.0.0.1 it listens, and serves
until it is ended. Any thread.
"""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Callable, Iterable
from typing import Any

Application = Callable[[dict[str, Any], Callable[..., Any]], Iterable[bytes]]
"""A WSGI application."""

READING = frozenset({"GET", "HEAD", "OPTIONS"})


class OneByOne:
    """A WSGI application, asked one write at a time. A request's body is there before its turn begins."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._turn = threading.Lock()

    def __call__(self, environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        """See PEP 3333."""
        if environ["REQUEST_METHOD"] in READING:
            return self._application(environ, start_response)
        length = environ.get("CONTENT_LENGTH")
        if length:
            environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(length)))
        with self._turn:
            return list(self._application(environ, start_response))


def application() -> Application:
    """moto's S3 in this process: all servers of one process share their buckets."""
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

    moto = DomainDispatcherApplication(create_backend_app)

    def served(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
        # A signature of version 2 with four slashes, one in 1,400, moto takes for the scope of one of version 4, and
        # then knows no such service.
        signed = environ.get("HTTP_AUTHORIZATION", "")
        if signed.startswith("AWS "):
            environ["HTTP_AUTHORIZATION"] = signed.replace("/", "+")
        return moto(environ, start_response)

    return OneByOne(served)


def server(served: Application) -> Any:
    """A `werkzeug` server for an application, on a free port of 127.0.0.1 and silent; the caller has it serve."""
    from werkzeug.serving import WSGIRequestHandler, make_server

    class Quiet(WSGIRequestHandler):
        protocol_version = "HTTP/1.1"

        def log(self, *_: Any) -> None:
            """Neither requests nor clients that hang up."""

    return make_server("127.0.0.1", 0, served, threaded=True, request_handler=Quiet)


def main() -> None:
    """Serve until ended."""
    made = server(application())
    print(json.dumps({"port": made.server_port}), flush=True)
    made.serve_forever()


if __name__ == "__main__":
    main()
