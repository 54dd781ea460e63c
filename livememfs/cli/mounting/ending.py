"""How a process that serves is asked to end.

Owns which signals ask for it and what several of them mean: together they are one wish, a later one does not wait for
what is being saved. Refuses to hear what the process was started to ignore, which is what `nohup` is for. One at a time
per process; main thread, trio.
"""

from __future__ import annotations

import signal

import structlog
import trio

log = structlog.get_logger("livememfs.cli")

STOPPED_BY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TOGETHER_SECONDS = 0.1
"""Signals this close are one wish: a service manager sends SIGHUP behind SIGTERM, a wrapper passes on the Ctrl-C that
came to all. Nobody's second thought is as quick."""


async def asked_to_end(*, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Return when the first signal has come. From then on the next one has its usual effect, but for SIGHUP: a terminal
    that closes sends several, and any of them would cut off the saving that the first one began.
    """
    heard = [one for one in STOPPED_BY if one is signal.SIGTERM or signal.getsignal(one) is not signal.SIG_IGN]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # what the receiver puts back at its end
    with trio.open_signal_receiver(*heard) as received:
        task_status.started()
        number = await anext(received)
        log.info("stopping", signal=signal.Signals(number).name)
        with trio.move_on_after(TOGETHER_SECONDS):
            async for _ in received:
                pass
