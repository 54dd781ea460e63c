"""What holds for many questions to come: a standing instruction ("always ...") or a preference ("I prefer ...").

Owns how they are recognised when a record is taken into the index, in English and French, by words alone. Such a text
seldom shares a word with the questions that it is to be thought of for. Refuses to say which these are: `ranking` does.
Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

LABEL = "standing"
INSTRUCTION, PREFERENCE = "instruction", "preference"
VALUES = (f"{LABEL}:{INSTRUCTION}", f"{LABEL}:{PREFERENCE}")
"""As a restriction of the index names them."""
LONGEST = 600
"""Characters of a text that is looked at. What somebody asks for once and for all is short; a long text that says
"I prefer" somewhere is about something else.
"""
# At the beginning alone: a rule in the middle of a text belongs to what the text is about, and is found with it.
_INSTRUCTION = re.compile(
    r"^\W*(?:please |remember to |you (?:should|must) )?(?:always|never)\s+[a-z]"
    r"|^\W*(?:from now on|going forward|(?:please )?(?:do not|don['’]?t) ever)\b"
    r"|\b(?:whenever|(?:every|each|any) ?time|when|if) i ask\b"
    r"|^\W*(?:(?:ne )?jamais|toujours|désormais|dorénavant|à l['’]avenir)\b"
    r"|\b(?:chaque fois que|quand|lorsque) je (?:te |vous )?demande\b",
    re.IGNORECASE,
)
_PREFERENCE = re.compile(
    r"\b(?:i|we)(?:['’]d| would)?(?: (?:always|really|usually|generally|much|still|also|definitely|do))? "
    r"(?:prefer|rather)\b"
    r"|\b(?:i|we) (?:don['’]?t|do not) (?:like|want) (?:to|it|you|any)\b"
    r"|\b(?:my|our) preference\b"
    r"|\b(?:je|on|nous) (?:préf[éè]r(?:e|ons|erais|erions))\b|\bj['’]aime(?:rais)? mieux\b|\b(?:ma|notre) préférence\b",
    re.IGNORECASE,
)


def standing_labels(text: str) -> Iterator[tuple[str, str]]:
    """The label of a text that is an instruction or a preference; none of any other."""
    if len(text) > LONGEST:
        return
    if _INSTRUCTION.search(text):
        yield LABEL, INSTRUCTION
    elif _PREFERENCE.search(text):
        yield LABEL, PREFERENCE
