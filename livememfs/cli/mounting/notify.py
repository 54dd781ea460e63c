"""What the service manager is told: that the mount serves, that it is ending, how much is left to upload.

Owns systemd's notification protocol, a datagram of `NAME=value` lines to the socket that `NOTIFY_SOCKET` names. Without
that variable nobody is told. Nothing that goes wrong here keeps a mount from its work. Any thread.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

log = structlog.get_logger("livememfs.cli")

VARIABLE = "NOTIFY_SOCKET"
MORE_SECONDS = 10.0
"""How much more time is asked for with each word on the end, and there are several in a second."""


@dataclass(frozen=True)
class ServiceManager:
    """The service manager behind a socket; `address` is empty where there is none."""

    address: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> ServiceManager:
        """The one that started this process."""
        return cls(environ.get(VARIABLE, ""))

    def ready(self, status: str) -> None:
        """The mount serves."""
        self._tell(READY=1, STATUS=status)

    def stopping(self) -> None:
        """The kernel has let go, and what was accepted is saved now."""
        self._tell(STOPPING=1, STATUS="saving what was accepted", EXTEND_TIMEOUT_USEC=int(MORE_SECONDS * 1e6))

    def draining(self, left: int) -> None:
        """So many files are still to be uploaded."""
        status = f"uploading, {left} left" if left else "saving what was accepted"
        self._tell(STATUS=status, EXTEND_TIMEOUT_USEC=int(MORE_SECONDS * 1e6))

    def _tell(self, **values: object) -> None:
        if not self.address:
            return
        # An address that begins with @ is in the abstract name space, which begins with a zero byte.
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        message = "\n".join(f"{name}={value}" for name, value in values.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)  # a service manager that does not read must not hold up the mount
                sender.sendto(message.encode(), address)
        except OSError as error:
            log.info("the service manager was not told", what=next(iter(values)), reason=str(error))
