"""How a run ended, as a value and as the JSON that `.consolidate` and `.digest` show (consolidation 7).

Owns the names of the figures and the sentences of a result. Refuses the state `ok` to a run that left something of its
work undone. Pure; may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any, Literal, Protocol

from livememfs.errors import LiveMemError
from livememfs.pipelines.coverage import Coverage
from livememfs.pipelines.gather import Inputs
from livememfs.pipelines.ledger import Applied
from livememfs.pipelines.options import CONTROLS, RunKind, RunOptions
from livememfs.records.ledger import Unsourced
from livememfs.records.times import iso

_LISTED_NAMES = 20

NOTHING_TO_DO: Mapping[RunKind, str] = {
    "consolidation": "No new notes to consolidate",
    "digest": "No new notes to digest",
}
_WRITTEN: Mapping[RunKind, str] = {"consolidation": "the bank is written", "digest": "the memories are stored"}
_NOT_OF: Mapping[RunKind, tuple[str, ...]] = {
    "consolidation": ("memories_stored",),
    "digest": ("bank_files_updated", "bank_files_created", "bank_files_unchanged", "synthesis_size"),
}
"""Figures that mean nothing for a kind of run."""


class Planned(Protocol):
    """What every plan of a run has.

    :coverage:  what became of each note
    :unsourced: lines that state what no source has
    :warnings:  what is odd and no reason to refuse, one sentence each
    """

    @property
    def coverage(self) -> Coverage: ...

    @property
    def unsourced(self) -> tuple[Unsourced, ...]: ...

    @property
    def warnings(self) -> tuple[str, ...]: ...


@dataclass(frozen=True, kw_only=True)
class Metrics:
    """The figures of a run, by the specification's names. Sizes are bytes, times are seconds.

    :notes_remaining: notes that this run could have been about and that are still in `live/`; for a digest, those that
                      no digest has read
    :memories_stored: by a digest
    :model:           who did the work, as the endpoint names itself, or `builtin`
    :llm_calls:       requests to the model, refused replies included
    :store_requests:  to the bucket during the run, those of others of this process included
    :unsourced:       lines that were written and state what no source has; the ledger lists them
    :warnings:        what was odd and no reason to refuse
    :ledger:          the number of its entry in the ledger, 0 when nothing was committed
    """

    notes_processed: int = 0
    notes_remaining: int = 0
    bank_files_updated: int = 0
    bank_files_created: int = 0
    bank_files_unchanged: int = 0
    synthesis_size: int = 0
    memories_stored: int = 0
    llm_tokens_used: int = 0
    llm_prompt_tokens: int = 0
    llm_completion_tokens: int = 0
    duration_seconds: float = 0.0
    model: str = ""
    llm_calls: int = 0
    store_requests: int = 0
    unsourced: int = 0
    warnings: tuple[str, ...] = ()
    ledger: int = 0

    def of(self, kind: RunKind) -> dict[str, Any]:
        """The figures that a run of this kind has."""
        return {name: value for name, value in asdict(self).items() if name not in _NOT_OF[kind]}


@dataclass(frozen=True)
class RunResult:
    """The end of a run.

    :state:   `ok`; `partial` when notes stay that should not, `error` when nothing was taken in
    :message: what is worth knowing of a run that went well
    :reason:  why it is not `ok`, and `what_to_do` about it
    :error:   what ended the run, for callers that want its exit code
    :diff:    of a dry run of a consolidation
    :memories: that a dry run of a digest would store
    """

    state: Literal["ok", "partial", "error"]
    metrics: Metrics
    finished_at: datetime
    message: str = ""
    reason: str = ""
    what_to_do: str = ""
    dry_run: bool = False
    error: LiveMemError | None = field(default=None, compare=False)
    diff: str | None = field(default=None, compare=False)
    kind: RunKind = "consolidation"
    memories: tuple[Mapping[str, Any], ...] = ()

    def to_json(self) -> dict[str, Any]:
        """One flat JSON object: the state, as `status` too (consolidation 5.4), the sentences, the figures."""
        return {
            "status": self.state,
            "state": self.state,
            "message": self.message,
            "reason": self.reason,
            "what_to_do": self.what_to_do,
            "dry_run": self.dry_run,
            "finished_at": iso(self.finished_at),
            **self.metrics.of(self.kind),
            "warnings": list(self.metrics.warnings),
            **({"memories": list(self.memories)} if self.kind == "digest" and self.dry_run else {}),
        }


def nothing_to_do(inputs: Inputs, metrics: Metrics, now: datetime, options: RunOptions) -> RunResult:
    """There are no notes: no model was asked and nothing was written."""
    message = _sentences(NOTHING_TO_DO[options.kind], _about_unreadable(inputs))
    return RunResult("ok", metrics, now, message, dry_run=options.dry_run, kind=options.kind)


def failed(error: LiveMemError, metrics: Metrics, now: datetime, options: RunOptions) -> RunResult:
    """The run ended before it had done its work; all notes are kept."""
    reason = str(error).encode("utf-8", "backslashreplace").decode()
    return RunResult("error", metrics, now, "", reason, error.advice(), options.dry_run, error, kind=options.kind)


def rehearsed(
    inputs: Inputs, plan: Planned, metrics: Metrics, now: datetime, options: RunOptions, shown: Mapping[str, Any]
) -> RunResult:
    """A dry run: the figures are those that a run with this plan would have. `shown`: the fields that show it."""
    missing = plan.coverage.missing(len(inputs.notes))
    message = _sentences("dry run, nothing was written", _about_missing(inputs, missing), _about_unreadable(inputs))
    return RunResult("ok", metrics, now, message, dry_run=True, kind=options.kind, **shown)


def committed(error: LiveMemError, metrics: Metrics, now: datetime, options: RunOptions) -> RunResult:
    """The run counts, and the store failed before all of it was carried out; the notes are kept until it is."""
    reason = f"the run is committed, and not all of it could be written yet: {error}"
    advice = "it is carried out as soon as the store answers"
    return RunResult("partial", metrics, now, "", reason, advice, error=error, kind=options.kind)


def finished(
    inputs: Inputs, plan: Planned, applied: Applied, metrics: Metrics, now: datetime, options: RunOptions
) -> RunResult:
    """Everything was written; what is left to tell is about notes that are still there."""
    kind, failure = options.kind, applied.failure
    missing = plan.coverage.missing(len(inputs.notes))
    edited = f"edited meanwhile, so they stay: {_names(applied.edited)}" if applied.edited else ""
    message = _sentences(edited, _about_unreadable(inputs))
    if not missing and failure is None:
        return RunResult("ok", metrics, now, message, kind=kind)
    stuck = f"{_WRITTEN[kind]}, and notes could not be removed: {failure}" if failure else ""
    advice = failure.advice() if failure else f"touch {CONTROLS[kind]} to take these notes up again"
    reason = _sentences(_about_missing(inputs, missing), stuck)
    return RunResult("partial", metrics, now, message, reason, advice, error=failure, kind=kind)


def _about_missing(inputs: Inputs, missing: Sequence[int]) -> str:
    if not missing:
        return ""
    names = _names([inputs.notes[number - 1].name for number in missing])
    return f"{len(missing)} of {len(inputs.notes)} notes are not accounted for in the reply and stay: {names}"


def _about_unreadable(inputs: Inputs) -> str:
    return f"not UTF-8 text, so left alone: {_names(inputs.unreadable)}" if inputs.unreadable else ""


def _names(names: Sequence[str]) -> str:
    more = len(names) - _LISTED_NAMES
    return ", ".join(names[:_LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")


def _sentences(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
