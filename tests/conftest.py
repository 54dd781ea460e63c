"""What holds for every test: nothing is logged at warning or above unless the test says so, and no clock is waited for.

A warning is a promise that somebody should look. A test that provokes one claims it: `expect_log("part of the text")`.
"""

from __future__ import annotations

import fcntl
import functools
import gc
import logging
import os
import signal
import tempfile
from collections.abc import Callable, Iterator, MutableMapping
from pathlib import Path
from typing import Any

import hypothesis
import pytest
import structlog

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
# The same examples for the same test: what was green yesterday and was not touched is green today. Other examples, and
# more of them, are looked for by scripts/explore, where a find stops nobody's change.
hypothesis.settings.register_profile(
    "livememfs",
    deadline=None,
    max_examples=60 if LONG else 12,
    database=None,
    print_blob=True,
    derandomize=True,
)
hypothesis.settings.register_profile(
    "explore", hypothesis.settings.get_profile("livememfs"), derandomize=False, max_examples=600
)
hypothesis.settings.load_profile("explore" if os.environ.get("LIVEMEMFS_TEST_EXPLORE") else "livememfs")


def pytest_configure() -> None:
    """What a script starts in its background ignores interrupts, and so would every command that is tested there."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    gc.disable()  # nearly all that collecting makes stays; see pytest_collection_finish


@pytest.fixture
def figures(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Takes a line that is printed at the end of the run, also of one in several processes."""
    return functools.partial(record_property, "figure")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """What tests measured, so that a run says how good it is and not only that it is good enough."""
    reports = [report for kind in ("passed", "failed") for report in terminalreporter.stats.get(kind, ())]
    measured = [value for report in reports for name, value in report.user_properties if name == "figure"]
    if measured:
        terminalreporter.section("figures")
        for line in sorted(measured):
            terminalreporter.write_line(line)


LONGEST = (
    "test_mount_hooks_crash.py", "test_mount_command.py", "test_mount_web.py", "test_mount_scale.py",
    "test_mount_outage.py", "test_mount_watch.py", "test_mount_search_bad_days.py", "test_mount_mcp.py",
    "test_mount_crash.py", "test_mount_consolidate_crash.py", "test_mount_digest_crash.py", "test_mount_search.py",
    "test_engine_contract.py", "test_merging.py", "test_crash_points.py", "test_digest_crash.py", "test_markdown.py",
    "test_postgres.py", "test_cli_bad_days.py", "test_embed_model.py", "test_recall_corpus.py", "test_install.py",
    "test_tree_hosts_model.py", "test_likeness.py", "test_graph.py", "test_prehook.py", "test_undo.py",
    "test_hostile.py", "test_install_command.py", "test_large_banks.py", "test_sources.py", "test_paths.py",
)  # fmt: skip
"""Files that are begun first, so that none of them goes on when all others are done."""


def _turn() -> Path | None:
    """What the processes of one run take turns with. None for a process alone."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    return Path(tempfile.gettempdir(), f"livememfs-collecting-{run}") if run else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Processes of one run collect one after the other, so that only the first rewrites the assertions of new files."""
    path = _turn()
    if path is None:
        return (yield)
    with path.open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        return (yield)


def pytest_sessionfinish() -> None:
    """No process of the run collects any more."""
    path = _turn()
    if path is not None:
        path.unlink(missing_ok=True)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first, and else the order that they have."""
    ranks = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: ranks.get(item.path.name, len(ranks)))


def pytest_collection_finish() -> None:
    """Fifteen thousand tests are objects that stay: the garbage collector need not look at them again and again."""
    gc.collect()
    gc.freeze()
    gc.enable()


ALARMING = frozenset({"warning", "error", "critical", "exception"})


class Alarms:
    """Events of level warning and above, and what the test claims of them."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.claims: list[str] = []

    def processor(self, _: Any, method: str, event: MutableMapping[str, Any]) -> Any:
        """The last processor of structlog's chain: takes note, prints nothing."""
        if method in ALARMING:
            self.events.append(" ".join(f"{name}={value}" for name, value in event.items()))
        raise structlog.DropEvent

    def unclaimed(self) -> list[str]:
        """Events that contain none of the claimed texts."""
        return [event for event in self.events if not any(claim in event for claim in self.claims)]


class _AlarmHandler(logging.Handler):
    """The same for what libraries say through the standard library."""

    def __init__(self, alarms: Alarms) -> None:
        super().__init__(logging.WARNING)
        self.alarms = alarms

    def emit(self, record: logging.LogRecord) -> None:
        self.alarms.events.append(f"{record.name}: {record.getMessage()}")


@pytest.fixture(autouse=True)
def _no_unclaimed_alarms(request: pytest.FixtureRequest) -> Iterator[Alarms]:
    alarms = Alarms()
    structlog.configure(processors=[structlog.processors.format_exc_info, alarms.processor])
    handler = _AlarmHandler(alarms)
    logging.getLogger().addHandler(handler)
    yield alarms
    logging.getLogger().removeHandler(handler)
    structlog.reset_defaults()
    unclaimed = alarms.unclaimed()
    if unclaimed:
        pytest.fail("logged at warning or above, and no expect_log claims it:\n" + "\n".join(unclaimed))


@pytest.fixture
def expect_log(_no_unclaimed_alarms: Alarms) -> Callable[[str], None]:
    """`expect_log("text")`: events that contain the text are part of what this test is about."""
    return _no_unclaimed_alarms.claims.append
