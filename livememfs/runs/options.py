"""The settings of all runs of a mount, and the options of one request.

Owns the kinds of run that a user can ask for, and reading the JSON that is written to `.consolidate` or `.digest`.
Refuses unknown keys and wrong types, with one sentence. Pure; may be called from any thread.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, Self

from livememfs.errors import BadRequest

BY_DIGEST = "digest"
"""As the only value of `distil` in a space's record: digests take its notes out of `live/`."""

RunKind = Literal["consolidation", "digest"]


@dataclass(frozen=True)
class KindOfRun:
    """What users see of one kind of run.

    :verb:    of the command, and of the control file after its dot; `doing` and `done` are forms of it
    :written: what is done when the notes are to be removed
    :figures: figures that mean nothing for other kinds
    """

    verb: str
    doing: str
    done: str
    written: str
    figures: tuple[str, ...]


KINDS: Mapping[RunKind, KindOfRun] = {
    "consolidation": KindOfRun(
        "consolidate",
        "consolidating",
        "consolidated",
        "the bank is written",
        (
            "bank_files_updated",
            "bank_files_created",
            "bank_files_unchanged",
            "synthesis_size",
            "lines_moved",
            "lines_reworded",
            "lines_dropped",
        ),
    ),
    "digest": KindOfRun(
        "digest", "digesting", "digested", "the memories are stored", ("memories_stored", "memories_proposed")
    ),
}
CONTROLS: Mapping[RunKind, str] = {name: f".{kind.verb}" for name, kind in KINDS.items()}
"""The control file of each kind of run."""

REPLY_SHARE = 4
"""A reply may take at least one part in so many of the context window."""
KNOWN_SHARE = 8
KNOWN_TOKENS = 3_000
"""Known memories take no more than this of a request, nor more than one part in `KNOWN_SHARE` of the window."""


@dataclass(frozen=True)
class RunSettings:
    """Settings of every run, digests included (consolidation 6).

    :max_tokens:      largest reply asked for
    :context_window:  most tokens of one call, request and reply together
    :unsourced:       what happens to lines with facts that no source has. `list`: the ledger lists them; `refuse`: a
                      reply is refused if a date, version, reference or path is among these facts
    :drop_limit:      the part of a bank's lines that a run may drop; a run that would drop more is held
    """

    max_notes: int = 500
    max_tokens: int = 100_000
    temperature: float = 0.3
    context_window: int = 100_000
    unsourced: Literal["list", "refuse"] = "list"
    drop_limit: float = 0.3

    @property
    def known_tokens(self) -> int:
        """Tokens of a request for known memories."""
        return min(KNOWN_TOKENS, self.context_window // KNOWN_SHARE)

    @property
    def reply_tokens(self) -> int:
        """Tokens that are kept free for the reply; it may use more if the request leaves more."""
        return min(self.max_tokens, self.context_window // REPLY_SHARE)


@dataclass(frozen=True)
class RunOptions:
    """The options of one request.

    :dry_run:   change nothing; show a diff
    :agent:     only notes of exactly this agent
    :max_notes: fewer notes than the settings allow
    :cancel:    stop the runs that wait or have not begun to write; no run is made
    :accept:    commit the held plan of this number as it is
    :kind:      given by the control file, so the request has no such key
    """

    dry_run: bool = False
    agent: str | None = None
    max_notes: int | None = None
    cancel: bool = False
    accept: int | None = None
    kind: RunKind = "consolidation"

    @classmethod
    def parse(cls, data: bytes, *, path: str = ".consolidate", kind: RunKind = "consolidation") -> Self:
        """The options in the content of a control file. Raises BadRequest.

        An empty file, as `touch`, `echo` or `: >` leave it, means no options.
        """
        try:
            text = data.decode("utf-8").strip("\ufeff\0 \t\r\n")
            value = json.loads(text) if text else {}
        except (ValueError, RecursionError):
            raise BadRequest('this is not JSON; write for example {"dry_run": true}', path=path) from None
        return cls.from_json(value, path=path, kind=kind)

    @classmethod
    def from_json(cls, value: object, *, path: str = ".consolidate", kind: RunKind = "consolidation") -> Self:
        """The options in a decoded JSON object. Raises BadRequest."""
        if not isinstance(value, dict):
            raise BadRequest("the options are not a JSON object", path=path)
        for name, given in value.items():
            fault = _fault(name, given)
            if fault:
                raise BadRequest(fault, path=path)
        if value.get("accept") is not None and len(value) > 1:
            raise BadRequest("accept stands alone: a plan that was held is carried out as it is", path=path)
        return cls(**value, kind=kind)


def _fault(name: str, value: Any) -> str:
    if name in ("dry_run", "cancel"):
        return "" if isinstance(value, bool) else f"{name} is true or false"
    if name == "agent":
        return "" if value is None or (isinstance(value, str) and value) else "agent is the name of an agent"
    if name in ("max_notes", "accept"):
        valid = value is None or (isinstance(value, int) and not isinstance(value, bool) and value > 0)
        return "" if valid else f"{name} is a number from 1"
    return f"there is no option {ascii(name)[:80]}; there are dry_run, agent, max_notes, cancel and accept"
