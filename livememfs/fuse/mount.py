"""The mount itself: its session with the kernel, from start to end.

Owns the session of pyfuse3, of which a process has only one. `mountpoint` checks the directory. Trio thread only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pyfuse3
import trio

from livememfs.errors import MountError
from livememfs.fuse.adapter import FuseOperations
from livememfs.fuse.mounted import kernel_ids
from livememfs.tree.root import Root

_mounted = False
"""Whether pyfuse3 has a session. To end one that does not exist would crash the process."""


async def serve(
    root: Root,
    mountpoint: Path,
    *,
    allow_other: bool,
    op_timeout: float,
    on_ready: Callable[[], None],
    limited: bool = False,
    source: str = "",
    noexec: bool = False,
) -> None:
    """Mount `root` and answer the kernel until it is unmounted or `stop` is called. Raises MountError.

    `limited`: the tree checks the token with each request. `source` is the device in the table of mounts, by which
    `mount` knows that an entry of `/etc/fstab` is mounted already.
    """
    global _mounted
    options = {*pyfuse3.default_options, f"fsname={_in_options(source or 'livememfs')}", "subtype=livememfs"}
    if noexec:
        options.add("noexec")
    if allow_other:
        options.add("allow_other")
    operations = FuseOperations(root, root.context.errors, op_timeout, limited=limited)
    notifier = operations.notify_with(mountpoint)
    try:
        pyfuse3.init(operations, str(mountpoint), options)
    except RuntimeError as error:
        raise MountError(_why_not(mountpoint, error)) from None
    root.context.replica.changes.subscribe(notifier.changed)
    _mounted, ids = True, kernel_ids(str(mountpoint))
    try:
        notifier.start()
        on_ready()
        async with trio.open_nursery() as nursery:
            if ids is not None:
                nursery.start_soon(operations.attention.run, ids[1])
            await pyfuse3.main()
            nursery.cancel_scope.cancel()
    finally:
        _mounted = False
        notifier.stop()
        # libfuse would ask for the path alone, and so take away what somebody has mounted there since.
        pyfuse3.close(unmount=ids is None or kernel_ids(str(mountpoint)) == ids)
        notifier.join()


def stop() -> bool:
    """Let `serve` return, after the running requests are answered. False: nothing is mounted."""
    if _mounted:
        pyfuse3.terminate()
    return _mounted


def _in_options(text: str) -> str:
    """A value as an option; commas separate options."""
    return text.replace("\\", "\\\\").replace(",", "\\,")


def _why_not(mountpoint: Path, error: RuntimeError) -> str:
    """Why libfuse cannot mount, as far as it can be found out: libfuse itself writes its reason to stderr."""
    device = Path("/dev/fuse")
    if not device.exists():
        return "there is no /dev/fuse; load the kernel module (modprobe fuse), or give the container the device"
    if not os.access(device, os.R_OK | os.W_OK):
        return "/dev/fuse may not be opened; it needs mode 0666, or run as root"
    return f"{mountpoint} cannot be mounted: {error}"
