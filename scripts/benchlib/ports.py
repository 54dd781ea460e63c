"""Ports for servers that must be told theirs.

Owns where they are looked for: below those that the kernel gives to whoever asks for any. One of these would be given
to somebody else between the look and the server, or while the server is down and is to come back. Any thread.
"""

from __future__ import annotations

import random
import socket
from pathlib import Path

RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
LOWEST = 10_000


def free_ports(count: int, *, addresses: Path = RANGE) -> list[int]:
    """Ports of 127.0.0.1 that nobody listens on now, each another one. OSError when there are not so many."""
    first = int(addresses.read_text().split()[0])
    found: list[int] = []
    for port in random.sample(range(LOWEST, max(first, LOWEST + 1_000)), k=1_000):
        if len(found) == count:
            return found
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        found.append(port)
    raise OSError(f"of 1,000 ports below {first} fewer than {count} are free")
