"""The checks of a model's reply in every kind of run, and the form of messages about it.

Owns which texts may be stored, and the sources that a fact may come from. Refuses only a reply that has no JSON object
or is not complete. All other checks return faults, and the kind's `plan` refuses the reply for them. Pure; any thread.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from livememfs.errors import ReplyRefused
from livememfs.llm.base import ChatReply
from livememfs.llm.reply import extract_json
from livememfs.runs.inputs import Inputs
from livememfs.text import frontmatter
from livememfs.text.facts.finding import notes_keys, run_keys
from livememfs.text.facts.sources import DatedText, Sources, is_hard
from livememfs.text.times import iso

_LISTED_FAULTS = 40
_SHOWN_CHARS = 120
_OF_THE_SPACE = "`bank/` `live/` `_rules.md` `_synthesis.md` `_meta.json`"


def decoded(reply: ChatReply) -> dict[str, Any]:
    """The JSON object in a reply. ReplyRefused for a reply that is not complete or has none."""
    if reply.finish_reason != "stop":
        raise ReplyRefused(
            f"it is not complete: finish_reason is {shown(reply.finish_reason) if reply.finish_reason else 'missing'}"
        )
    return extract_json(reply.text)


def text_faults(content: object, max_bytes: int) -> list[str]:
    """Why a value cannot be stored as a text; empty: it can."""
    if not isinstance(content, str):
        return [f"the content is a {type(content).__name__}, not a string"]
    if not content.strip():
        return ["the content is empty"]
    if "\0" in content:
        return ["the content holds U+0000 NULL"]
    try:
        size = len(content.encode("utf-8"))
    except UnicodeEncodeError as error:
        return [f"the content holds U+{ord(content[error.start]):04X}, half of a surrogate pair"]
    return [f"the content has {size} bytes, over {max_bytes}"] if size > max_bytes else []


def front_matter_faults(content: str, old: str = "") -> list[str]:
    """A fault for front matter, which belongs to notes. A block that the `old` file had may stay unchanged."""
    try:
        metadata, body = frontmatter.split(content)
    except frontmatter.FrontMatterError:
        metadata, body = {"": None}, content
    block = content[: len(content) - len(body)]
    if not metadata or (block and old.startswith(block)):
        return []
    return ["it starts with front matter"]


# --- facts --------------------------------------------------------------------------------------------------------


def sources_of(inputs: Inputs, also: Iterable[str], runs: Iterable[int] = ()) -> Sources:
    """Everything that a fact of a reply may come from: the notes, the space, today, and the numbers of the runs.

    :also: further texts that the model was shown
    :runs: further numbers of runs
    """
    texts: list[str | DatedText] = [inputs.space, _OF_THE_SPACE, *also]
    if inputs.now is not None:
        texts.append(iso(inputs.now))
    numbers = {*runs, *(count - less for count in (inputs.consolidation, inputs.number) for less in (0, 1))}
    for live in inputs.notes:
        note = live.note
        stated = [note.body, iso(note.timestamp), note.agent, " ".join(note.tags), live.name]
        texts.append(DatedText("\n".join([*stated, *map(str, note.extra.values())]), note.timestamp))
    return Sources(texts, [*notes_keys(len(inputs.notes)), *(key for number in numbers for key in run_keys(number))])


# --- messages -----------------------------------------------------------------------------------------------------


def hard_facts(facts: Iterable[str]) -> str:
    """The facts, of those without a source, for which a reply is refused, for a message; empty: none."""
    return ", ".join(shown(fact) for fact in facts if is_hard(fact))


def shown(value: object) -> str:
    """A value of the reply for a message: short, in one line, every odd character escaped."""
    if isinstance(value, str):
        return json.dumps(value[:_SHOWN_CHARS])
    return json.dumps(value, default=str)[:_SHOWN_CHARS]


def printable(text: str) -> str:
    """A message that is safe for terminals and JSON readers: what cannot be printed is escaped."""
    return "".join(character if character.isprintable() else ascii(character)[1:-1] for character in text)


def listed(faults: list[str]) -> str:
    """The first faults in one message, and how many more there are."""
    message = "; ".join(faults[:_LISTED_FAULTS])
    more = len(faults) - _LISTED_FAULTS
    return f"{message}; and {more} more" if more > 0 else message
