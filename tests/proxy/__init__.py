"""A proxy before an S3 server that is slow, lossy or dead on demand, and counts what passes.

Owns the bytes between a client and a server on this machine, both of which stay as they are. Refuses to understand HTTP
beyond where a request begins and ends and what kind it is; of a client that sends a request before the last one was
answered, only the counts are right. In a test it runs in a thread: `with DelayProxy(target_port) as proxy`, where its
methods may be called from any other thread. As a process of its own, so that it costs the measured one nothing:

    python tests/proxy --target 127.0.0.1:8333 --latency 0.03 --control

prints `{"port": ..., "control": ...}` and serves until SIGTERM; what the control port takes is in `control`.
"""

import sys
from pathlib import Path

from proxy.delay import DelayProxy

__all__ = ["PROGRAM", "DelayProxy"]

PROGRAM = [sys.executable, str(Path(__file__).parent)]
"""The command of a process of its own, without its arguments."""
