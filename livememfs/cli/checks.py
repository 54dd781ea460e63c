"""What `livememfs doctor` looks at, one function per subject.

Owns the verdicts: `ok`, `warn` for what works with less, `fail` for what has to change. Each check that is not ok says
what to do. Refuses to print, to change anything but its own probe objects in the store, and to show a secret. Trio
thread only.
"""

from __future__ import annotations

import os
import platform
import shutil
import sys
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import trio

from livememfs.app.parts import open_embedder, open_engine, open_store
from livememfs.cli import mounts
from livememfs.cli.daemon import check_store
from livememfs.clock import SystemClock
from livememfs.config import Settings
from livememfs.errors import LiveMemError, ReplyRefused, TimedOut
from livememfs.llm.base import ChatMessage
from livememfs.store.base import Store
from livememfs.store.capabilities import Capabilities, probe

OLDEST_PYTHON = (3, 11)
MODEL_TIMEOUT = 60.0
PROBE_TIMEOUT = 60.0

Verdict = Literal["ok", "warn", "fail"]


@dataclass(frozen=True)
class Check:
    """One line of the report."""

    name: str
    verdict: Verdict
    found: str
    advice: str = ""


# --- this machine ------------------------------------------------------------------------------------------------


def machine(settings: Settings | None) -> list[Check]:
    """Python, FUSE, and what earlier mounts left behind."""
    return [_python(), _fusermount(), _device(), _allow_other(settings), _mounts()]


def _python() -> Check:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        wanted = ".".join(map(str, OLDEST_PYTHON))
        return Check("python", "fail", version, f"install Python {wanted} or newer")
    return Check("python", "ok", version)


def _fusermount() -> Check:
    path = shutil.which("fusermount3")
    if path is None:
        return Check("fusermount3", "fail", "not found", "install the package fuse3 (apt-get install fuse3)")
    return Check("fusermount3", "ok", path)


def _device() -> Check:
    path = Path("/dev/fuse")
    if not path.exists():
        advice = "load the kernel module (modprobe fuse); in a container add --device /dev/fuse --cap-add SYS_ADMIN"
        return Check("/dev/fuse", "fail", "not there", advice)
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
    except OSError as error:
        return Check("/dev/fuse", "fail", error.strerror or str(error), "let this user read and write /dev/fuse")
    return Check("/dev/fuse", "ok", "usable")


def _allow_other(settings: Settings | None, path: Path = Path("/etc/fuse.conf")) -> Check:
    try:
        lines = path.read_text().splitlines()
    except OSError:
        lines = []
    if "user_allow_other" in (line.strip() for line in lines):
        return Check("user_allow_other", "ok", f"set in {path}")
    if os.geteuid() == 0:
        return Check("user_allow_other", "ok", "not set, and root needs no leave")
    if settings is not None and settings.allow_other:
        return Check(
            "user_allow_other", "fail", "not set, and --allow-other needs it", f"add user_allow_other to {path}"
        )
    return Check("user_allow_other", "ok", "not set; only --allow-other would need it")


def _mounts() -> Check:
    in_kernel = set(mounts.kernel_mounts())
    known = mounts.records()
    dead = [record.mountpoint for record in known if not record.is_alive]
    if dead:
        return Check("mounts", "warn", f"ended badly: {', '.join(dead)}", "livememfs umount each of them")
    return Check("mounts", "ok", ", ".join(sorted(in_kernel)) or "none")


# --- the store ---------------------------------------------------------------------------------------------------


async def store(settings: Settings) -> list[Check]:
    """Whether the store answers, may be written, and which of its promises it keeps."""
    try:
        opened = open_store(settings, SystemClock())
    except LiveMemError as error:
        return [Check("store", "fail", str(error), error.advice())]
    try:
        reached = await _attempt("store", lambda: check_store(opened, settings.op_timeout))
        if reached is not None:
            return [reached]
        return [Check("store", "ok", opened.label), *await _writing(opened)]
    finally:
        await opened.aclose()


async def _writing(opened: Store) -> list[Check]:
    found: list[Capabilities] = []

    async def work() -> None:
        with trio.fail_after(PROBE_TIMEOUT):
            found.append(await probe(opened))

    failed = await _attempt("store, writing", work)
    return [failed] if failed else [Check("store, writing", "ok", "allowed"), _promises(found[0])]


def _promises(found: Capabilities) -> Check:
    promises = {
        "put if absent": found.put_if_absent,
        "put if unchanged": found.put_if_match,
        "delete if unchanged": found.delete_if_match,
        "list from a key on": found.start_after,
        "user metadata": found.metadata,
        "copy with metadata": found.copy_metadata,
    }
    missing = [name for name, kept in promises.items() if not kept]
    if not missing:
        return Check("store, promises", "ok", ", ".join(promises))
    advice = "; ".join(found.notes) or "two hosts that write the same object at once may overwrite each other"
    return Check("store, promises", "warn", f"missing: {', '.join(missing)}", advice)


# --- the model ---------------------------------------------------------------------------------------------------


async def model(settings: Settings) -> list[Check]:
    """Whether the model answers a tiny request, which takes endpoint, key and model name to be right."""
    if not settings.llmaas_api_url:
        return [Check("model", "ok", "none configured: consolidation files notes verbatim (built-in)")]
    from livememfs.llm.client import OpenAIChat  # half a second to import, which other commands need not wait for

    timeout = min(settings.consolidation_timeout, MODEL_TIMEOUT)
    chat = OpenAIChat(settings.llmaas_api_url, settings.llmaas_api_key, settings.llmaas_model, timeout)

    async def work() -> None:
        question = ChatMessage("user", 'Answer with the JSON object {"ok": true} and nothing else.')
        await chat.chat([question], max_tokens=64, temperature=settings.llmaas_temperature)

    try:
        found = await _attempt("model", work)
    finally:
        await chat.aclose()
    return [found or Check("model", "ok", f"{settings.llmaas_model} at {settings.llmaas_api_url}")]


# --- searching ---------------------------------------------------------------------------------------------------


async def search(settings: Settings) -> list[Check]:
    """Whether the model for meanings reads a question, and where the index is, if that is not this machine."""
    return [await _meanings(settings), *([await _index(settings)] if settings.index_url else [])]


async def _meanings(settings: Settings) -> Check:
    try:
        with trio.fail_after(MODEL_TIMEOUT):
            embedder = await open_embedder(settings)
            if embedder is None:
                return Check("embeddings", "ok", "none: searching by words alone")
            try:
                await embedder.question("which database")
            finally:
                await embedder.aclose()
    except (LiveMemError, trio.TooSlowError) as error:
        advice = "check LIVEMEMFS_EMBED_MODEL, LIVEMEMFS_EMBED_URL and LIVEMEMFS_EMBED_KEY; until then words have to do"
        return Check("embeddings", "warn", str(error) or "no answer", advice)
    return Check("embeddings", "ok", embedder.name)


async def _index(settings: Settings) -> Check:
    def look() -> str:
        engine = open_engine(settings, Path())
        from livememfs.recall.postgres.connection import place_of  # there is its driver, or it could not be opened

        try:
            return f"{engine.statistics().records:,} records at {place_of(settings.index_url)}"
        finally:
            engine.close()

    try:
        return Check("index", "ok", await trio.to_thread.run_sync(look))
    except LiveMemError as error:
        return Check("index", "fail", str(error), error.advice() or "check LIVEMEMFS_INDEX_URL and the database")


async def _attempt(name: str, work: Callable[[], Awaitable[None]]) -> Check | None:
    """The failed check that `work` amounts to; None when it went well."""
    try:
        await work()
    except trio.TooSlowError:
        slow = TimedOut(f"the {name}")
        return Check(name, "fail", str(slow), slow.advice())
    except ReplyRefused as error:  # the endpoint, the key and the model name are right all the same
        return Check(name, "warn", f"it answers, but {error.values['detail']}", "a consolidation may fail as well")
    except LiveMemError as error:
        return Check(name, "fail", str(error), error.advice())
    return None
