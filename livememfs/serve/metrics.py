"""Figures for Prometheus, from `status.json`.

Owns their names, and the values of labels: all are listed here, and any other value is `other`. A published name is
never changed. Pure; any thread. The library takes a fifth of a second to load, so import this module only where figures
are requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from prometheus_client import generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from livememfs import __version__

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
PREFIX = "livememfs_"
OTHER = "other"

Kind = Literal["counter", "gauge"]


@dataclass(frozen=True)
class Figure:
    """One figure, or one for each value of a label.

    :name:   without prefix, and without the `_total` of counters
    :path:   its place in the status, with dots
    :label:  the label, if there are several values: then `path` leads to a mapping from these to numbers
    :values: the values shown by name; with `rest`, all others are summed as `other`
    """

    name: str
    kind: Kind
    help: str
    path: str
    label: str = ""
    values: tuple[str, ...] = ()
    rest: bool = False

    def family(self, status: Mapping[str, Any]) -> Metric | None:
        """The metric; None if the status does not have it."""
        value = _at(status, self.path)
        if value is None:
            return None
        family = _family(self.kind, self.name, self.help, [self.label] if self.label else [])
        for labels, number in self._samples(value) if self.label else [((), value)]:
            family.add_metric(labels, float(number))
        return family

    def _samples(self, counts: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], float]]:
        for name in self.values:
            yield (name,), float(counts.get(name, 0))
        if self.rest:
            yield (OTHER,), float(sum(value for name, value in counts.items() if name not in self.values))


FIGURES = (
    Figure("unsaved_files", "gauge", "Files that were closed and could not be saved.", "unsaved"),
    Figure("spaces", "gauge", "Spaces in use.", "statistics.tree.spaces"),
    # The way to the bucket.
    Figure("journal_pending", "gauge", "Changes that wait for the bucket.", "pending"),
    Figure("journal_pending_bytes", "gauge", "Bytes that wait for the bucket.", "pending_bytes"),
    Figure("journal_in_flight", "gauge", "Changes on their way to the bucket.", "statistics.replica.journal.in_flight"),
    Figure("journal_stuck", "gauge", "Changes that the bucket refuses.", "statistics.replica.journal.stuck"),
    Figure("journal_oldest_seconds", "gauge", "Age of the oldest change that waits.",
           "statistics.replica.journal.oldest_s"),
    Figure("journal_accepted", "counter", "Changes accepted.", "statistics.replica.journal.accepted"),
    Figure("journal_finished", "counter", "Changes that are in the bucket.", "statistics.replica.journal.finished"),
    Figure("journal_dropped", "counter", "Changes that a later one made needless.",
           "statistics.replica.journal.dropped"),
    Figure("upload_attempts", "counter", "Attempts to upload.", "statistics.replica.uploader.attempts"),
    Figure("upload_failures", "counter", "Attempts that failed and are repeated.",
           "statistics.replica.uploader.failures"),
    Figure("upload_conflicts", "counter", "Conflicts with other hosts, settled.",
           "statistics.replica.uploader.conflicts"),
    # The store.
    Figure("store_requests", "counter", "Requests to the store.", "statistics.store.requests", "verb",
           ("get", "head", "put", "delete", "copy", "list"), rest=True),
    Figure("store_errors", "counter", "Requests that the store failed.", "statistics.store.errors"),
    Figure("store_retries", "counter", "Requests repeated after a wait.", "statistics.store.retries"),
    Figure("store_settled", "counter", "Writes whose lost answer was found out.", "statistics.store.settled"),
    Figure("store_given_up", "counter", "Requests that failed until their time was over.", "statistics.store.given_up"),
    Figure("store_received_bytes", "counter", "Bytes of contents read from the store.", "statistics.store.bytes_in"),
    Figure("store_sent_bytes", "counter", "Bytes of contents written to the store.", "statistics.store.bytes_out"),
    # What could not be done.
    Figure("unread_objects", "counter", "Objects that could not be read.", "statistics.unread.versions"),
    Figure("tasks_failing", "gauge", "Background tasks that do not go well.", "statistics.background.failing"),
    Figure("task_failures", "counter", "Failures of background tasks.", "statistics.background.failures", "task",
           ("upload", "watch", "beacon", "observer", "runs", "index", "vectors", "expiry", "merging", "schedule",
            "token"), rest=True),
    # What is kept here.
    Figure("cache_memory_bytes", "gauge", "Contents kept in memory.", "statistics.replica.contents.memory_bytes"),
    Figure("cache_disk_bytes", "gauge", "Contents kept on the local disk.", "statistics.replica.contents.disk_bytes"),
    Figure("cache_hits", "counter", "Contents that were here when asked for.", "statistics.replica.contents.hits"),
    Figure("cache_misses", "counter", "Contents that were fetched when asked for.",
           "statistics.replica.contents.misses"),
    Figure("listings", "counter", "Listings asked of the store.", "statistics.replica.listings"),
    Figure("listing_hits", "counter", "Directories whose names were known.", "statistics.replica.listing_hits"),
    Figure("watcher_looks", "counter", "Looks for changes of others.", "statistics.replica.watcher.looks"),
    Figure("watcher_failures", "counter", "Looks for changes that failed.", "statistics.replica.watcher.failures"),
    Figure("changes", "counter", "Changes of objects, by any hand.", "statistics.changes.published"),
    # What models do.
    Figure("runs", "counter", "Consolidations and digests that ended.", "statistics.consolidations", "state",
           ("ok", "partial", "held", "error")),
    Figure("runs_now", "gauge", "Consolidations and digests that wait or are at work.", "statistics.consolidations",
           "state", ("queued", "running")),
    Figure("scheduled_runs", "counter", "Runs that the schedule began.", "statistics.schedule", "state",
           ("ok", "partial", "held", "error")),
    Figure("schedule_tokens_today", "gauge", "Tokens that scheduled runs used today.", "schedule.tokens_today"),
    Figure("schedule_tokens_daily", "gauge", "Tokens that scheduled runs may use in a day.", "schedule.daily_tokens"),
    Figure("model_requests", "counter", "Requests to the model that consolidates.", "statistics.model.requests"),
    Figure("model_failures", "counter", "Calls of it that failed.", "statistics.model.failures"),
    Figure("model_prompt_tokens", "counter", "Tokens it was sent.", "statistics.model.prompt_tokens"),
    Figure("model_completion_tokens", "counter", "Tokens it answered.", "statistics.model.completion_tokens"),
    Figure("replies_refused", "counter", "Replies of models that were refused.", "statistics.rejected.refused"),
    # Agents.
    Figure("hook_requests", "counter", "Events that hooks told.", "statistics.hooks.requests"),
    Figure("hook_failures", "counter", "Events of hooks that went wrong.", "statistics.hooks.failed"),
    Figure("hook_late", "counter", "Hooks answered without what took too long.", "statistics.hooks.late"),
    Figure("events_captured", "counter", "Events captured.", "statistics.capture.captured"),
    Figure("events_repeated", "counter", "Events that were known already.", "statistics.capture.repeated"),
    Figure("events_redacted", "counter", "Events with something private in them.", "statistics.capture.redacted"),
    Figure("events_waiting", "gauge", "Events that wait for the observer.", "sessions.events.waiting"),
    Figure("events_given_up", "gauge", "Events given up until somebody asks.", "sessions.events.failed"),
    Figure("observer_calls", "counter", "Calls of the observer.", "sessions.calls"),
    Figure("observer_refused", "counter", "Answers of no use to the observer.", "sessions.refused"),
    Figure("observer_outages", "counter", "Attempts of the observer that reached nobody.", "sessions.outages"),
    Figure("observer_tokens_today", "gauge", "Tokens that observing used today.", "sessions.today", "kind",
           ("prompt_tokens", "completion_tokens")),
    Figure("observer_tokens_daily", "gauge", "Tokens that observing may use in a day.", "sessions.budget"),
    Figure("context_pages", "counter", "Times that context.md was asked for.", "statistics.context.asked"),
    Figure("recall_turns", "counter", "Messages that .recall answered.", "statistics.prehook.turns"),
    Figure("recall_told", "counter", "Memories and notes it told.", "statistics.prehook.told"),
    Figure("recall_failures", "counter", "Messages it could not answer.", "statistics.prehook.failed"),
    # Searching.
    Figure("search_questions", "counter", "Questions.", "statistics.recall.questions"),
    Figure("search_waiting", "gauge", "Objects not indexed yet.", "statistics.recall.waiting"),
    Figure("index_records", "gauge", "Records in the index.", "statistics.recall.index.records"),
    Figure("index_vectors", "gauge", "Vectors in the index.", "statistics.recall.index.vectors"),
    Figure("embedded_texts", "counter", "Texts embedded.", "statistics.recall.model.texts"),
    Figure("embedding_seconds", "counter", "Seconds spent on embedding.", "statistics.recall.model.seconds"),
    Figure("embedding_failures", "counter", "Embeddings that failed.", "statistics.recall.model.failures"),
    # Memories.
    Figure("memories_expired", "counter", "Memories removed at their end.", "statistics.expiry.removed"),
    Figure("memories_merged", "counter", "Memories that took another's place.", "statistics.merging.merged"),
    Figure("memories_used", "counter", "Times that a memory was of use.", "statistics.uses.uses"),
    # What went wrong.
    Figure("errors", "counter", "Lines written to errors.ndjson.", "statistics.errors.errors"),
    Figure("conflicts", "counter", "Times that both sides of a conflict were kept.", "statistics.errors.conflicts"),
    Figure("token_checks", "counter", "Tokens shown by callers.", "statistics.tokens.asked"),
    # What is served over HTTP, where something is.
    Figure("http_requests", "counter", "Requests over HTTP, by what became of them.", "statistics.http", "result",
           ("served", "unknown", "foreign", "too_much")),
    Figure("http_requests_under_way", "gauge", "Requests over HTTP that are being answered.",
           "statistics.http.under_way"),
    Figure("mcp_calls", "counter", "Calls of tools over HTTP.", "statistics.mcp.calls"),
    Figure("mcp_failures", "counter", "Calls of tools that failed.", "statistics.mcp.failed"),
    Figure("web_streams", "gauge", "Live pages that listen.", "statistics.web.events.streams"),
    Figure("token_checks_good", "counter", "Tokens shown by callers that were good.", "statistics.tokens.good"),
)  # fmt: skip
"""Every figure with its own path in the status."""


def render(status: Mapping[str, Any]) -> bytes:
    """The figures of `status.json` in Prometheus' text format."""
    return generate_latest(_Collected(list(_families(status))))


def healthy(status: Mapping[str, Any]) -> tuple[bool, dict[str, Any]]:
    """Whether the mount works, and the answer for callers without a token: one word."""
    well = status.get("state") == "ok" and not status.get("stuck")
    return well, {"status": "ok" if well else "degraded"}


class _Collected(Collector):
    """The source of metrics for the library."""

    def __init__(self, families: Iterable[Metric]) -> None:
        self._families = families

    def collect(self) -> Iterable[Metric]:
        return self._families


def _families(status: Mapping[str, Any]) -> Iterator[Metric]:
    info = _family("gauge", "info", "The version, as a label.", ["version"])
    info.add_metric([__version__], 1.0)
    yield info
    yield _single("healthy", "1 while all is well.", float(healthy(status)[0]))
    if since := status.get("since"):
        moment = datetime.fromisoformat(str(since)).timestamp()
        yield _single("start_time_seconds", "When it was started, since the epoch.", moment)
    failing = _at(status, "statistics.replica.failing_s")
    yield _single("store_failing_seconds", "For how long the store has been failing.", float(failing or 0))
    for figure in FIGURES:
        family = figure.family(status)
        if family is not None:
            yield family


def _family(kind: Kind, name: str, help: str, labels: list[str]) -> CounterMetricFamily | GaugeMetricFamily:
    if kind == "counter":
        return CounterMetricFamily(PREFIX + name, help, labels=labels)
    return GaugeMetricFamily(PREFIX + name, help, labels=labels)


def _single(name: str, help: str, value: float) -> Metric:
    family = _family("gauge", name, help, [])
    family.add_metric([], value)
    return family


def _at(status: Mapping[str, Any], path: str) -> Any:
    """The value at a path of the status; None without one."""
    value: Any = status
    for name in path.split("."):
        value = value.get(name) if isinstance(value, Mapping) else None
    return value
