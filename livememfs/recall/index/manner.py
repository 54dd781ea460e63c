"""How a text speaks: whether it asks, tells of its writer, talks to its reader, or says what holds from now on.

Owns the words by which this is told when a record is taken into the index, in English and French, by words alone. Who
asks "what did I want" asks for what was told in the first person, and not for what was answered to it, which repeats
most of its words. A standing instruction ("always ...") or a preference ("I prefer ...") holds for many questions to
come, with which it seldom shares a word. Refuses to say for which questions any of it counts: `ranking` does. Pure; any
thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import IntFlag

LOOKED_AT = 400
"""Characters of a text whose words are counted: how somebody speaks is plain by then."""
STANDING = "standing"
INSTRUCTION, PREFERENCE = "instruction", "preference"
STANDING_LABELS = (f"{STANDING}:{INSTRUCTION}", f"{STANDING}:{PREFERENCE}")
"""As a restriction of the index names them; instructions first."""
LONGEST_STANDING = 600
"""Characters of a text that is looked at. What somebody asks for once and for all is short; a long text that says
"I prefer" somewhere is about something else.
"""

_WRITER = re.compile(r"\b(?:I|[Mm]y|[Mm]e|[Mm]ine|myself|[Jj]e|[Jj]['’](?=\w)|[Mm]on|[Mm]a|[Mm]es|[Mm]oi)\b")
_READER = re.compile(r"\b(?:you|your|yours|yourself|vous|votre|vos|tu|ton|ta|tes|toi)\b", re.IGNORECASE)
# "Remind me of the port" asks for no more about its writer than "what is the port".
_OF_WRITER = re.compile(r"\b(?:I|[Mm]y|[Mm]ine|myself|[Jj]e|[Jj]['’](?=\w)|[Mm]on|[Mm]a|[Mm]es)\b")
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


class Manner(IntFlag):
    """What is kept of it."""

    ASKS = 1
    OF_WRITER = 2
    TO_READER = 4


def manner_of(text: str) -> Manner:
    """How a text speaks; of its writer and to its reader are never both: one of them is the more frequent."""
    manner = Manner.ASKS if text.endswith("?") else Manner(0)
    start = text[:LOOKED_AT]
    writer, reader = len(_WRITER.findall(start)), len(_READER.findall(start))
    if writer and writer >= reader:
        return manner | Manner.OF_WRITER
    return manner | Manner.TO_READER if reader else manner


def is_of_writer(question: str) -> bool:
    """Whether a question is about whoever asks it."""
    return _OF_WRITER.search(question) is not None


def standing_labels(text: str) -> Iterator[tuple[str, str]]:
    """The label of a text that is an instruction or a preference; none of any other."""
    if len(text) > LONGEST_STANDING:
        return
    if _INSTRUCTION.search(text):
        yield STANDING, INSTRUCTION
    elif _PREFERENCE.search(text):
        yield STANDING, PREFERENCE
