"""How much a text tells: its words and its names, whatever is asked.

Owns what counts as either. "Thanks, same to you!" fits many questions by its few words and answers none. Refuses to
know the question. Pure; any thread.
"""

from __future__ import annotations

import re

from livememfs.recall.index.words import content_words, fold

LOOKED_AT = 2_000
"""Characters of a text: enough for both."""
MOST_WORDS = 32
MOST_NAMES = 2

# A word with a capital that no sentence starts with. One of capitals alone is shouted, or short for something. It
# begins with the blank before the word: a pattern that begins with what may stand before that takes thrice as long.
_NAME = re.compile(r" (?<=[^\W_] |[,;:)] ) *[\"'«“‘`(]? ?(?!I['’])([A-ZÀ-Þ][\w'’-]*[a-zß-ÿ]\w*)")


def share_of_words(text: str) -> float:
    """How many different words a text has, small ones apart, as a share of what is enough; never 0."""
    return min(1 + len(set(content_words(text[:LOOKED_AT]))), MOST_WORDS) / MOST_WORDS


def share_of_names(text: str) -> float:
    """How many different names a text has, as a share of what is enough."""
    names = {fold(name.replace("’", "'")).partition("'")[0] for name in _NAME.findall(text[:LOOKED_AT])}
    return min(len(names), MOST_NAMES) / MOST_NAMES
