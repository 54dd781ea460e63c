"""Reports to the service manager: the mount serves, it is ending, how much is left to upload.

Owns systemd's notification protocol, a datagram of `NAME=value` lines to the socket that `NOTIFY_SOCKET` names. Without
that variable nothing is sent. An error here never stops a mount. Any thread.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

log = structlog.get_logger("livememfs.cli")

VARIABLE = "NOTIFY_SOCKET"
MORE_SECONDS = 10.0
"""Each report at the end asks for this much more time; there are several per second."""


@dataclass(frozen=True)
class ServiceManager:
    """The service manager behind a socket; `address` is empty without one."""

    address: str = ""

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> ServiceManager:
        """The service manager that started this process."""
        return cls(environ.get(VARIABLE, ""))

    def ready(self, status: str) -> None:
        """The mount serves."""
        self._tell(READY=1, STATUS=status)

    def stopping(self) -> None:
        """The kernel has unmounted, and the daemon uploads now."""
        self._tell(STOPPING=1, STATUS="saving what was accepted", EXTEND_TIMEOUT_USEC=int(MORE_SECONDS * 1e6))

    def draining(self, left: int) -> None:
        """`left` files still wait for upload."""
        status = f"uploading, {left} left" if left else "saving what was accepted"
        self._tell(STATUS=status, EXTEND_TIMEOUT_USEC=int(MORE_SECONDS * 1e6))

    def _tell(self, **values: object) -> None:
        if not self.address:
            return
        # @ stands for the abstract name space, whose addresses begin with a zero byte.
        address = f"\0{self.address[1:]}" if self.address.startswith("@") else self.address
        message = "\n".join(f"{name}={value}" for name, value in values.items())
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as sender:
                sender.setblocking(False)  # a service manager that does not read must not delay the mount
                sender.sendto(message.encode(), address)
        except OSError as error:
            log.info("the service manager was not told", what=next(iter(values)), reason=str(error))
