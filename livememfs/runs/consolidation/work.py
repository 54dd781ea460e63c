"""The steps of a consolidation, which folds notes into the bank and the synthesis (consolidation 2 to 7).

Owns only which module does each step of a run (see `runs/work`). Trio thread only, except `preview`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from livememfs.cache.replica import Replica
from livememfs.concurrency import aside
from livememfs.llm import builtin
from livememfs.llm.base import ChatMessage, ChatReply
from livememfs.records.ledger import Entry
from livememfs.runs.consolidation.diff import render_diff
from livememfs.runs.consolidation.entry import entry_of
from livememfs.runs.consolidation.hold import too_much
from livememfs.runs.consolidation.inputs import BankInputs, check_unchanged, gather
from livememfs.runs.consolidation.joined import JoinedBank, word_for_word
from livememfs.runs.consolidation.plan import MAX_FILE_BYTES, BankPlan, make_plan, plan_from_reply
from livememfs.runs.consolidation.prompt import REPLY_SCHEMA, consolidation_prompt
from livememfs.runs.coverage import skips_all
from livememfs.runs.entry import Committer
from livememfs.runs.held import stood_on
from livememfs.runs.inputs import NoteChoice
from livememfs.runs.options import RunSettings
from livememfs.runs.work import Work
from livememfs.text.outgoing import outgoing


class Consolidation(Work[BankInputs, BankPlan]):
    """Folds notes into the bank; they leave `live/`."""

    kind = "consolidation"
    schema = REPLY_SCHEMA

    async def gather(self, replica: Replica, space: str, choice: NoteChoice) -> BankInputs:
        return await gather(replica, space, choice)

    def prompt(self, inputs: BankInputs) -> list[ChatMessage]:
        return consolidation_prompt(inputs)

    def plan(self, reply: ChatReply, inputs: BankInputs, settings: RunSettings, *, last: bool) -> BankPlan:
        return plan_from_reply(reply, inputs, overlap=last, lenient=settings.unsourced == "list")

    def without_model(self, inputs: BankInputs) -> BankPlan:
        notes = [live.unread for live in inputs.notes]
        reply = builtin.file_notes(inputs.rules, inputs.bank_texts(), notes, max_bytes=MAX_FILE_BYTES)
        plan = make_plan(reply, inputs, lenient=True)  # word for word, so every fact is in the notes
        return word_for_word(plan, inputs)

    def joined(self, inputs: BankInputs) -> JoinedBank:
        return JoinedBank(inputs)

    async def accounted(self, inputs: BankInputs, plan: BankPlan) -> BankPlan:
        bank = inputs.bank_texts()
        lines = partial(outgoing, bank, plan.bank_after(bank), plan.reasons)
        return replace(plan, outgoing=await aside(inputs.size, lines))

    def too_much(self, inputs: BankInputs, plan: BankPlan, settings: RunSettings) -> tuple[str, ...]:
        bank = inputs.bank_texts()
        dropping = too_much(bank, plan.bank_after(bank), plan.outgoing, settings.drop_limit)
        return (*dropping, *skips_all(plan.coverage, len(inputs.notes)))

    def takes_away(self, inputs: BankInputs, plan: BankPlan) -> bool:
        return bool(plan.coverage.fates or plan.changes)

    def preview(self, inputs: BankInputs, plan: BankPlan) -> dict[str, Any]:
        return {"diff": render_diff(inputs, plan)}

    async def check(self, replica: Replica, inputs: BankInputs, plan: BankPlan) -> None:
        await check_unchanged(replica, inputs, {change.name: change.etag for change in plan.changes})

    def entry(
        self, inputs: BankInputs, plan: BankPlan, now: datetime, by: Committer, metrics: Mapping[str, Any]
    ) -> Entry:
        return entry_of(inputs, plan, now, by, metrics)

    def stood_on(self, inputs: BankInputs) -> str:
        return stood_on({name: file.etag for name, file in inputs.bank.items()}) if inputs.bank else ""

    def figures(self, plan: BankPlan) -> dict[str, Any]:
        actions = [change.action for change in plan.changes]
        fates = Counter(line.fate for line in plan.outgoing)
        return {
            "bank_files_updated": actions.count("updated"),
            "bank_files_created": actions.count("created"),
            "bank_files_unchanged": plan.unchanged,
            "synthesis_size": len(plan.synthesis.encode()),
            "lines_moved": fates["moved"],
            "lines_reworded": fates["reworded"],
            "lines_dropped": fates["dropped"],
        }

    def leaving(self, inputs: BankInputs, plan: BankPlan) -> int:
        return len(plan.coverage.fates)
