"""What a user dictates in a prompt: `remember that we deploy on Thursdays`.

Owns which prompts are nothing but a dictation: one line that begins by asking to remember, in English or French, and
has no quotation, link or markup. Refuses all else, since whatever a user pastes into a prompt is somebody else's words:
a page that says `remember that ...` has other lines or words around it. Pure; any thread.
"""

from __future__ import annotations

import re
import unicodedata

LONGEST = 400
"""Characters of a prompt; a longer one has been pasted more likely than typed."""
LEAST_WORDS = 3
_ASKS = re.compile(
    r"(?:(?:please|ok|okay|hey|also|and|merci de|s'il te plait|s'il te plaît|stp|et|aussi),? )*"
    r"(?:(?:remember|memori[sz]e|note|don't forget|do not forget|keep in mind|bear in mind)(?: that |: ?|, )"
    r"|(?:retiens|souviens-toi|rappelle-toi|mémorise|note|n'oublie pas|garde en tête)(?: bien)?"
    r"(?: que | qu'|: ?| : ?))",
    re.IGNORECASE,
)
_THANKS = re.compile(r"[,.! ]*(?:please|thanks|thank you|s'il te plaît|s'il te plait|stp|merci)[.! ]*\Z", re.IGNORECASE)
_FOREIGN = re.compile(r"[\"“”„«»‹›`<>|{}\[\]\\*]|https?:|www\.|\bsaid\b|\bsays\b|\ba dit\b|\bdit que\b", re.IGNORECASE)
"""Signs of other people's words, and of what was copied from a page, a file or a terminal."""


def dictated(prompt: str) -> str:
    """The statement that a prompt dictates; empty for a prompt that is anything else."""
    line = _plain(prompt)
    asks = _ASKS.match(line) if len(prompt) <= LONGEST and len(prompt.splitlines()) == 1 else None
    if asks is None or _FOREIGN.search(line):
        return ""
    statement = _THANKS.sub("", line[asks.end() :]).strip()
    return statement if len(statement.split()) >= LEAST_WORDS else ""


def same_words(statement: str, text: str) -> bool:
    """Whether a text says just that, but for case, blanks and a full stop at its end. One word more or less may turn it
    into its opposite.
    """
    return _compared(statement) == _compared(text) != ""


def _compared(text: str) -> str:
    return _plain(text).casefold().rstrip(".! ")


def _plain(text: str) -> str:
    return " ".join(unicodedata.normalize("NFC", text).replace("\u2019", "'").replace("\u00a0", " ").split())
