"""How signals end a process that serves.

Owns which signals end it, and what several mean: signals at nearly the same time count as one, and a later signal ends
the process at once, without waiting for uploads. Leaves signals ignored that were ignored at the start, for `nohup`.
One use at a time per process; main thread, trio.
"""

from __future__ import annotations

import signal

import structlog
import trio

log = structlog.get_logger("livememfs.cli")

STOPPED_BY = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
TOGETHER_SECONDS = 0.1
"""Signals within this time count as one: a service manager sends SIGHUP right after SIGTERM, and a wrapper passes on a
Ctrl-C that all processes of the terminal got. No person presses Ctrl-C twice as fast."""


async def asked_to_end(*, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Return after the first signal. Later signals have their usual effect, except SIGHUP: a closing terminal sends
    several of them, and the second would end the process while it still saves.
    """
    heard = [sign for sign in STOPPED_BY if sign is signal.SIGTERM or signal.getsignal(sign) is not signal.SIG_IGN]
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the receiver restores this handler at its end
    with trio.open_signal_receiver(*heard) as received:
        task_status.started()
        number = await anext(received)
        log.info("stopping", signal=signal.Signals(number).name)
        with trio.move_on_after(TOGETHER_SECONDS):
            async for _ in received:
                pass
