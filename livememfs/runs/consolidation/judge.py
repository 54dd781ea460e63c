"""Faults that are no reason to refuse a plan: lines without a source, double headings, large files.

Owns what the ledger and the metrics say about a valid plan. Refuses nothing; `plan` does. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from livememfs.records import keys
from livememfs.records.ledger import Unsourced
from livememfs.runs.consolidation.inputs import BankInputs
from livememfs.runs.reply import sources_of
from livememfs.text.facts.sources import Sources, unsourced
from livememfs.text.headings import shown_path
from livememfs.text.markdown import Document

TARGET_BYTES = 65_536
"""The size that the model is told to keep a file under. A larger file costs more to read; it is no less true."""
_LISTED = 200


def judge(
    changes: Mapping[str, tuple[str, str]], synthesis: str, inputs: BankInputs
) -> tuple[tuple[Unsourced, ...], tuple[str, ...]]:
    """The lines of the new texts (old and new by name) with facts that no source has; and warnings."""
    sources = _sources(inputs, changes)
    listed = [
        Unsourced(name, line.number, line.line, line.facts)
        for name, (old, new) in {**changes, "_synthesis.md": ("", synthesis)}.items()
        for line in unsourced(old, new, sources)
    ]
    warnings: list[str] = []
    for name, (old, new) in changes.items():
        size = len(new.encode())
        if size > TARGET_BYTES:
            warnings.append(f"{name} has {size} bytes, over the {TARGET_BYTES} that a file should have")
        known = set(Document(old).duplicates())
        twice = [shown_path(path) for path in Document(new).duplicates() if path not in known]
        warnings += [f"{name} has the heading {path} more than once" for path in twice]
    return tuple(listed[:_LISTED]), tuple(warnings)


def _sources(inputs: BankInputs, names: Iterable[str]) -> Sources:
    """Everything that a fact may come from: what every run knows, the rules, the synthesis and the bank.

    :names: of files that the reply writes
    """
    texts = [inputs.rules, *inputs.bank_texts().values(), *map(_name_forms, (*inputs.bank, *names))]
    numbers: set[int] = set()
    if inputs.synthesis is not None:
        texts.append(inputs.synthesis.body)
        numbers = {inputs.synthesis.number, inputs.synthesis.number + 1}
    return sources_of(inputs, texts, numbers)


def _name_forms(name: str) -> str:
    """The forms in which texts name a file of the bank: with and without its folder and its extension."""
    stem = name.removesuffix(".md")
    return f"`{keys.BANK}/{name}` `{keys.BANK}/{stem}` {stem} {re.sub('[-_/.]', ' ', stem)}"
