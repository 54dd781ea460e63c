"""What is odd in a plan and yet no reason to refuse it: lines without a source, headings there twice, large files.

Owns what the ledger and the metrics say of a plan that passed. Refuses nothing; `plan` does. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from livememfs.records import keys
from livememfs.records.ledger import Unsourced
from livememfs.runs.consolidation.gather import Inputs
from livememfs.text.facts.finding import notes_keys, run_keys
from livememfs.text.facts.sources import Said, Sources, unsourced
from livememfs.text.markdown import Document, shown_path
from livememfs.text.times import iso

TARGET_BYTES = 65_536
"""What the model is told to keep a file under. Above it a bank gets dear to read; it is no less true."""
_LISTED = 200
_OF_THE_SPACE = "`bank/` `live/` `_rules.md` `_synthesis.md` `_meta.json`"


def judge(
    changes: Mapping[str, tuple[str, str]], synthesis: str, inputs: Inputs
) -> tuple[tuple[Unsourced, ...], tuple[str, ...]]:
    """Lines of the new texts (old and new by name) that state what no source has; and warnings."""
    sources = sources_of(inputs, map(_name_forms, changes))
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


def sources_of(inputs: Inputs, also: Iterable[str] = ()) -> Sources:
    """Everything that a fact of a reply may come from: what the model was shown, today, and the numbers of the runs.

    :also: further texts
    """
    texts: list[str | Said] = [inputs.rules, inputs.space, _OF_THE_SPACE, *inputs.bank_texts().values(), *also]
    texts += map(_name_forms, inputs.bank)
    if inputs.now is not None:
        texts.append(iso(inputs.now))
    numbers = {count - less for count in (inputs.consolidation, inputs.number) for less in (0, 1)}
    if inputs.synthesis is not None:
        texts.append(inputs.synthesis.body)
        numbers |= {inputs.synthesis.number, inputs.synthesis.number + 1}
    for live in inputs.notes:
        note = live.note
        told = [note.body, iso(note.timestamp), note.agent, " ".join(note.tags), live.name]
        texts.append(Said("\n".join([*told, *map(str, note.extra.values())]), note.timestamp))
    return Sources(texts, [*notes_keys(len(inputs.notes)), *(key for number in numbers for key in run_keys(number))])


def _name_forms(name: str) -> str:
    """A file of the bank as texts speak of it: with the folder and without, with the extension and without."""
    stem = name.removesuffix(".md")
    return f"`{keys.BANK}/{name}` `{keys.BANK}/{stem}` {stem} {re.sub('[-_/.]', ' ', stem)}"
