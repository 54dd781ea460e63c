"""What is odd in a plan and yet no reason to refuse it: lines without a source, headings there twice, large files.

Owns what the ledger and the metrics say of a plan that passed. Refuses nothing; `plan` does. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from livememfs.pipelines.gather import Inputs
from livememfs.records.ledger import Unsourced
from livememfs.records.markdown import Document, shown_path
from livememfs.records.sources import Sources, unsourced
from livememfs.records.times import iso

TARGET_BYTES = 65_536
"""What the model is told to keep a file under. Above it a bank gets dear to read; it is no less true."""
_LISTED = 200
_HARD = re.compile(
    r"""[0-9]{4}-[0-9]{2}-[0-9]{2} | [0-9]{1,2}[./][0-9]{1,2}[./][0-9]{2,4} | [0-9]\S*\s+[^\W\d]{3,}\.?(?:\s+[0-9]{4})?$
    | ^[^\W\d]{3,}\.?\s+[0-9] | \bv[0-9] | [0-9]+\.[0-9]+\.[0-9]+ | ^\#[0-9] | / | \.[a-z][a-z0-9]{0,5}$""",
    re.VERBOSE | re.IGNORECASE,
)


def judge(
    changes: Mapping[str, tuple[str, str]], synthesis: str, inputs: Inputs
) -> tuple[tuple[Unsourced, ...], tuple[str, ...]]:
    """Lines of the new texts (old and new by name) that state what no source has; and warnings."""
    sources = Sources(said(inputs))
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


def is_hard(fact: str) -> bool:
    """Whether a fact is of a kind that is made up or not: dates, versions, references, paths; a bare number may be a
    count, and a name with a digit in it a common one.
    """
    return _HARD.search(fact) is not None


def said(inputs: Inputs) -> list[str]:
    """Every text of the inputs that a fact may come from."""
    texts = [inputs.rules, inputs.synthesis.body if inputs.synthesis else "", *inputs.bank_texts().values()]
    for live in inputs.notes:
        note = live.note
        texts += [note.body, iso(note.timestamp), note.agent, " ".join(note.tags), live.name]
        texts += [str(value) for value in note.extra.values()]
    return texts
