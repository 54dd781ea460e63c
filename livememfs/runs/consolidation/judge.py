"""What is odd in a plan and yet no reason to refuse it: lines without a source, headings there twice, large files.

Owns what the ledger and the metrics say of a plan that passed. Refuses nothing; `plan` does. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from livememfs.records import keys
from livememfs.records.ledger import Unsourced
from livememfs.runs.consolidation.inputs import BankInputs
from livememfs.runs.reply import sources_of
from livememfs.text.facts.sources import Sources, unsourced
from livememfs.text.markdown import Document, shown_path

TARGET_BYTES = 65_536
"""What the model is told to keep a file under. Above it a bank gets dear to read; it is no less true."""
_LISTED = 200


def judge(
    changes: Mapping[str, tuple[str, str]], synthesis: str, inputs: BankInputs
) -> tuple[tuple[Unsourced, ...], tuple[str, ...]]:
    """Lines of the new texts (old and new by name) that state what no source has; and warnings."""
    sources = _sources(inputs, changes)
    found = [
        Unsourced(name, one.number, one.line, one.facts)
        for name, (old, new) in {**changes, "_synthesis.md": ("", synthesis)}.items()
        for one in unsourced(old, new, sources)
    ]
    warnings: list[str] = []
    for name, (old, new) in changes.items():
        size = len(new.encode())
        if size > TARGET_BYTES:
            warnings.append(f"{name} has {size} bytes, over the {TARGET_BYTES} that a file should have")
        known = set(Document(old).duplicates())
        twice = [shown_path(path) for path in Document(new).duplicates() if path not in known]
        warnings += [f"{name} has the heading {path} more than once" for path in twice]
    return tuple(found[:_LISTED]), tuple(warnings)


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
    """A file of the bank as texts speak of it: with the folder and without, with the extension and without."""
    stem = name.removesuffix(".md")
    return f"`{keys.BANK}/{name}` `{keys.BANK}/{stem}` {stem} {re.sub('[-_/.]', ' ', stem)}"
