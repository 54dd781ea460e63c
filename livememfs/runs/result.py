"""How a run ended, as a value and as the JSON that `.consolidate` and `.digest` show (consolidation 7).

Owns the names of the figures and the sentences of a result. Refuses the state `ok` to a run that left a part of its
work undone. Pure; may be called from any thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from datetime import datetime
from typing import Any, Literal, Protocol

from livememfs.errors import LiveMemError, NotesTooLong
from livememfs.records.ledger import Entry, Unsourced
from livememfs.runs.coverage import Coverage
from livememfs.runs.inputs import Inputs
from livememfs.runs.ledger import Applied
from livememfs.runs.options import CONTROLS, KINDS, RunKind, RunOptions
from livememfs.text.outgoing import Outgoing
from livememfs.text.times import iso

_LISTED_NAMES = 20
_LISTED_LINES = 20

State = Literal["ok", "partial", "held", "error"]
STATES: tuple[State, ...] = ("ok", "partial", "held", "error")


class Planned(Protocol):
    """What every plan of a run has.

    :coverage:  what became of each note
    :unsourced: lines with facts that no source has
    :warnings:  faults that are no reason to refuse the plan, one sentence each
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

    :notes_remaining: notes of this run's choice that are still in `live/`; for a digest, those that no digest has read
    :lines_moved:     lines that left their place in the bank and stand elsewhere in it, word for word
    :lines_reworded:  lines of which most words stand together in another line
    :lines_dropped:   lines that are nowhere in the bank any more
    :memories_stored: by a digest
    :memories_proposed: by a digest, in a space that asks: they wait in `.proposals/` until a person accepts them
    :model:           the model that did the work, as its endpoint names it, or `builtin`
    :llm_calls:       requests to the model, with those whose replies were refused
    :store_requests:  requests to the bucket during the run, by this whole process
    :unsourced:       lines that were written with facts that no source has; the ledger lists them
    :warnings:        faults that were no reason to refuse the plan
    :ledger:          the number of its entry in the ledger, 0 when nothing was committed
    """

    notes_processed: int = 0
    notes_remaining: int = 0
    bank_files_updated: int = 0
    bank_files_created: int = 0
    bank_files_unchanged: int = 0
    synthesis_size: int = 0
    lines_moved: int = 0
    lines_reworded: int = 0
    lines_dropped: int = 0
    memories_stored: int = 0
    memories_proposed: int = 0
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

    @classmethod
    def read(cls, figures: Mapping[str, Any]) -> Metrics:
        """The figures as an entry of the ledger has them, as far as this version knows them."""
        known = {field.name for field in fields(cls)} & figures.keys()
        return cls(**{name: figures[name] for name in known if name != "warnings"})

    def of(self, kind: RunKind) -> dict[str, Any]:
        """The figures that a run of this kind has."""
        foreign = {name for other, described in KINDS.items() if other != kind for name in described.figures}
        return {name: value for name, value in asdict(self).items() if name not in foreign}


@dataclass(frozen=True)
class RunResult:
    """The end of a run.

    :state:   `ok`; `partial` when notes stay that should be gone; `held` when nothing is changed before a person
              accepts the plan; `error` when no note was taken
    :message: what is worth knowing of a run that went well
    :reason:  why it is not `ok`, and `what_to_do` about it
    :error:   what ended the run, for callers that need its exit code
    :diff:    of a consolidation that was a dry run or is held
    :accept:  the number by which a held plan is accepted, else 0
    :dropped: the first lines that the run takes out of the bank, or would
    :memories: that a dry run of a digest would store
    """

    state: State
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
    accept: int = 0
    dropped: tuple[Outgoing, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """One flat JSON object: the state, as `status` too (consolidation 5.4), the sentences, the figures."""
        dropped = [{"file": line.file, "text": line.text, "reason": line.reason} for line in self.dropped]
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
            **({"accept": self.accept} if self.accept else {}),
            **({"dropped": dropped} if self.kind == "consolidation" else {}),
            **({"memories": list(self.memories)} if self.kind == "digest" and self.dry_run else {}),
        }


def nothing_to_do(inputs: Inputs, metrics: Metrics, now: datetime, options: RunOptions) -> RunResult:
    """The result of a run without notes: no model was asked and nothing was written."""
    message = _sentences(f"No new notes to {KINDS[options.kind].verb}", _about_unreadable(inputs), _about_late(inputs))
    return RunResult("ok", metrics, now, message, dry_run=options.dry_run, kind=options.kind)


def failed(error: LiveMemError, metrics: Metrics, now: datetime, options: RunOptions) -> RunResult:
    """The result of a run that failed before its commit; all notes are kept."""
    reason = str(error).encode("utf-8", "backslashreplace").decode()
    return RunResult("error", metrics, now, "", reason, error.advice(), options.dry_run, error, kind=options.kind)


def rehearsed(
    inputs: Inputs, plan: Planned, metrics: Metrics, now: datetime, options: RunOptions, shown: Mapping[str, Any]
) -> RunResult:
    """The result of a dry run, with the figures of a run with this plan. `shown`: the fields that show the plan."""
    missing = plan.coverage.missing(len(inputs.notes))
    notes = _sentences(_about_missing(inputs, missing), _about_too_long(inputs, plan.coverage))
    message = _sentences("dry run, nothing was written", notes, _about_unreadable(inputs), _about_late(inputs))
    return RunResult("ok", metrics, now, message, dry_run=True, kind=options.kind, **shown)


def held_back(
    inputs: Inputs, number: int, why: Sequence[str], metrics: Metrics, now: datetime, options: RunOptions
) -> RunResult:
    """The result of a run that is held: nothing is changed before a person accepts the plan."""
    kind = options.kind
    reason = f"the run is held, because {'; '.join(why)}; nothing was changed"
    by_file = f"""echo '{{"accept": {number}}}' > {CONTROLS[kind]}"""
    by_command = f"livememfs {KINDS[kind].verb} {inputs.space} --accept {number}"
    advice = f"{by_file}, or {by_command}, carries out just this plan; another run replaces it"
    return RunResult("held", metrics, now, _about_unreadable(inputs), reason, advice, kind=kind, accept=number)


def accepted(entry: Entry, applied: Applied, metrics: Metrics, now: datetime, kind: RunKind) -> RunResult:
    """The result of a held plan that was accepted and carried out."""
    message = _sentences(f"the plan of run {entry.number} was accepted", _about_edited(applied))
    if applied.failure is None:
        return RunResult("ok", metrics, now, message, kind=kind, dropped=dropped_lines(entry.outgoing))
    reason = f"{KINDS[kind].written}, and notes could not be removed: {applied.failure}"
    return RunResult(
        "partial", metrics, now, message, reason, applied.failure.advice(), error=applied.failure, kind=kind
    )


def dropped_lines(lines: Sequence[Outgoing]) -> tuple[Outgoing, ...]:
    """The first lines that are dropped, among lines that leave the bank."""
    return tuple(line for line in lines if line.fate == "dropped")[:_LISTED_LINES]


def committed(error: LiveMemError, metrics: Metrics, now: datetime, options: RunOptions) -> RunResult:
    """The result of a committed run that could not be carried out yet; the notes are kept until it is."""
    reason = f"the run is committed, and not all of it could be written yet: {error}"
    advice = "it is carried out as soon as the store answers"
    return RunResult("partial", metrics, now, "", reason, advice, error=error, kind=options.kind)


def finished(
    inputs: Inputs, plan: Planned, applied: Applied, metrics: Metrics, now: datetime, options: RunOptions
) -> RunResult:
    """The result of a run that wrote everything: `partial` when notes stay that should be gone."""
    kind, failure = options.kind, applied.failure
    missing, too_long = plan.coverage.missing(len(inputs.notes)), plan.coverage.too_long
    message = _sentences(_about_edited(applied), _about_unreadable(inputs), _about_late(inputs))
    if not missing and not too_long and failure is None:
        return RunResult("ok", metrics, now, message, kind=kind)
    stuck = f"{KINDS[kind].written}, and notes could not be removed: {failure}" if failure else ""
    again = f"touch {CONTROLS[kind]} to take these notes up again"
    advice = failure.advice() if failure else again if missing else NotesTooLong.what_to_do
    reason = _sentences(_about_missing(inputs, missing), _about_too_long(inputs, plan.coverage), stuck)
    return RunResult("partial", metrics, now, message, reason, advice, error=failure, kind=kind)


def _about_edited(applied: Applied) -> str:
    return f"edited meanwhile, so they stay: {_names(applied.edited)}" if applied.edited else ""


def _about_missing(inputs: Inputs, missing: Sequence[int]) -> str:
    if not missing:
        return ""
    names = _names([inputs.notes[number - 1].name for number in missing])
    return f"{len(missing)} of {len(inputs.notes)} notes are not accounted for in the reply and stay: {names}"


def _about_too_long(inputs: Inputs, coverage: Coverage) -> str:
    if not coverage.too_long:
        return ""
    names = _names([f"{inputs.notes[number - 1].name} ({size} tokens)" for number, size in coverage.too_long.items()])
    return (
        f"{len(coverage.too_long)} of {len(inputs.notes)} notes have a line that is too long for a request, which has "
        f"room for {coverage.limit} tokens of notes, and stay: {names}"
    )


def _about_unreadable(inputs: Inputs) -> str:
    return f"not UTF-8 text, so left alone: {_names(inputs.unreadable)}" if inputs.unreadable else ""


def _about_late(inputs: Inputs) -> str:
    return (
        f"taken before and stored again by a late upload, so not taken twice: {_names(inputs.late)}"
        if inputs.late
        else ""
    )


def _names(names: Sequence[str]) -> str:
    more = len(names) - _LISTED_NAMES
    return ", ".join(names[:_LISTED_NAMES]) + (f" and {more} more" if more > 0 else "")


def _sentences(*parts: str) -> str:
    return "; ".join(part for part in parts if part)
