"""The steps of a digest, which takes memories from notes (companion-memory).

Owns only which module does each step of a run (see `runs/work`). Trio thread only, except `preview`.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import PreconditionFailed
from livememfs.llm.base import ChatMessage, ChatReply
from livememfs.llm.builtin_digest import store_notes
from livememfs.records import keys
from livememfs.records.ledger import Entry
from livememfs.runs.coverage import skips_all
from livememfs.runs.digest.entry import entry_of, leaving_notes
from livememfs.runs.digest.inputs import DigestInputs, gather_new
from livememfs.runs.digest.plan import (
    MAX_FACT_BYTES,
    MAX_SUBJECT_CHARS,
    MAX_SUBJECTS,
    DigestPlan,
    JoinedFacts,
    make_plan,
    plan_from_reply,
)
from livememfs.runs.digest.prompt import DIGEST_SCHEMA, digest_prompt
from livememfs.runs.digest.storing import store
from livememfs.runs.entry import Committer
from livememfs.runs.inputs import NoteChoice, read_meta
from livememfs.runs.options import RunSettings
from livememfs.runs.work import Work


class Digest(Work[DigestInputs, DigestPlan]):
    """Takes memories from notes; these stay in `live/`, unless only digests take notes of the space."""

    kind = "digest"
    schema = DIGEST_SCHEMA

    async def gather(self, replica: Replica, space: str, choice: NoteChoice) -> DigestInputs:
        return await gather_new(replica, space, choice)

    def prompt(self, inputs: DigestInputs) -> list[ChatMessage]:
        return digest_prompt(inputs)

    def plan(self, reply: ChatReply, inputs: DigestInputs, settings: RunSettings, *, last: bool) -> DigestPlan:
        return plan_from_reply(reply, inputs, lenient=settings.unsourced == "list")

    def without_model(self, inputs: DigestInputs) -> DigestPlan:
        reply = store_notes(
            [live.unread for live in inputs.notes],
            max_bytes=MAX_FACT_BYTES,
            max_subjects=MAX_SUBJECTS,
            max_subject_chars=MAX_SUBJECT_CHARS,
        )
        return make_plan(reply, inputs, lenient=True, verbatim=True)

    def joined(self, inputs: DigestInputs) -> JoinedFacts:
        return JoinedFacts(inputs)

    def too_much(self, inputs: DigestInputs, plan: DigestPlan, settings: RunSettings) -> tuple[str, ...]:
        return skips_all(plan.coverage, len(inputs.notes)) if leaving_notes(inputs, plan) else ()

    def takes_away(self, inputs: DigestInputs, plan: DigestPlan) -> bool:
        return bool(leaving_notes(inputs, plan))

    def preview(self, inputs: DigestInputs, plan: DigestPlan) -> dict[str, Any]:
        names = [live.name.removesuffix(".md") for live in inputs.notes]
        memories = [
            {
                "collection": fact.collection,
                "type": fact.type,
                "content": fact.content,
                "subjects": list(fact.subjects),
                "ttl": fact.ttl,
                "from": [names[number - 1] for number in fact.sources],
            }
            for fact in plan.new
        ]
        return {"memories": tuple(memories)}

    async def check(self, replica: Replica, inputs: DigestInputs, plan: DigestPlan) -> None:
        """See that this is still the same space; nothing else can be in the way, as each memory is a new object."""
        meta, _ = await read_meta(replica, inputs.space)
        if meta.created_at != inputs.meta.created_at:
            raise PreconditionFailed(key=keys.meta_key(inputs.space))

    def entry(
        self, inputs: DigestInputs, plan: DigestPlan, now: datetime, by: Committer, metrics: Mapping[str, Any]
    ) -> Entry:
        return entry_of(inputs, plan, now, by, metrics)

    async def write(self, replica: Replica, clock: Clock, entry: Entry, *, again: bool) -> None:
        await store(replica, clock, entry, again=again)

    def figures(self, plan: DigestPlan) -> dict[str, Any]:
        return {"memories_proposed" if plan.proposed else "memories_stored": len(plan.new)}

    def leaving(self, inputs: DigestInputs, plan: DigestPlan) -> int:
        return len(plan.coverage.fates)
