"""Words of a text as the index knows them, and which language it is in.

Owns the two analysers (English, French), whose stop words and stems differ, and the few lines that choose one. Refuses
to guess beyond those two: what is neither is taken for English, whose stemmer harms the least. Accents are folded
before anything else, so that a word is the same whether they were typed or not. Pure; any thread.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import tantivy

Language = Literal["en", "fr"]
LANGUAGES: tuple[Language, ...] = ("en", "fr")
LONGEST_WORD = 64
"""Characters; a longer one is no word but a hash or a picture in base64."""
LANGUAGE_SAMPLE = 4_000
"""Characters of a text that are looked at to tell its language."""

_ENGLISH = """
    a about above after again against all am an and any are aren as at be because been before being below between both
    but by can cannot could couldn d did didn do does doesn doing don down during each few for from further had hadn has
    hasn have haven having he her here hers herself him himself his how i if in into is isn it its itself just ll m me
    more most mustn my myself no nor not now of off on once only or other ought our ours ourselves out over own re s
    same shan she should shouldn so some such t than that the their theirs them themselves then there these they this
    those through to too under until up ve very was wasn we were weren what when where which while who whom why will
    with won would wouldn you your yours yourself yourselves kind type many much"""
_FRENCH = """
    a ai aie aient ait as au aura aurait aux avaient avais avait avec avoir avons ayant c car ce ceci cela celle celles
    celui ces cet cette ceux chez ci comme comment d dans de des donc dont du elle elles en encore entre es est et
    etaient etais etait etant etc ete etes etre eu eux fait faut furent fut hors ici il ils j je jusqu l la laquelle le
    lequel les lesquels leur leurs lors lui ma mais me meme memes mes mi moi mon n ne ni nos notre nous on ont ou par
    parce pas pendant peu peut plus pour pourquoi pouvait qu quand que quel quelle quelles quels qui quoi sa sans se
    sera serait seront ses si soit sommes son sont sous suis sur ta te tel telle tes toi ton tous tout toute toutes tres
    tu un une vers voici voila vos votre vous y"""
STOP_WORDS: dict[Language, frozenset[str]] = {"en": frozenset(_ENGLISH.split()), "fr": frozenset(_FRENCH.split())}
_NOT_ASCII = re.compile(r"[^\x00-\x7f]+")
_WORD = re.compile(r"[^\W_]+")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|(?<=[A-Za-z])(?=[0-9])|(?<=[0-9])(?=[A-Za-z])")
_ONLY_ONE = {language: words - STOP_WORDS["fr" if language == "en" else "en"] for language, words in STOP_WORDS.items()}


def fold(text: str) -> str:
    """Lower case without accents. What cannot be encoded goes."""
    if text.isascii():
        return text.lower()
    plain = unicodedata.normalize("NFKD", text.lower())
    return _NOT_ASCII.sub(_without_marks, plain).encode(errors="ignore").decode()


def _without_marks(found: re.Match[str]) -> str:
    return "".join(c for c in found[0] if not unicodedata.combining(c))


def language_of(text: str) -> Language:
    """French if more of its words are French stop words than English ones."""
    words = _WORD.findall(fold(text[:LANGUAGE_SAMPLE]))
    french, english = (sum(map(_ONLY_ONE[language].__contains__, words)) for language in ("fr", "en"))
    return "fr" if french > english else "en"


def spelt_out(text: str) -> str:
    """The parts of names like `UserRepository` and `utf8`, so that they are found by a part as well as whole."""
    words = _WORD.findall(text)
    odd = (word for word in words if not (word.isalpha() and (word.islower() or word.istitle())))  # most are not
    names = (word for word in odd if len(word) <= LONGEST_WORD and _CAMEL.search(word))
    return " ".join(part for name in names for part in _CAMEL.split(name) if len(part) > 1)


@cache
def analyser(language: Language, *, stops: bool = True, stems: bool = True) -> tantivy.TextAnalyzer:
    """The analyser of one language. The text index registers the one that leaves out stop words and takes stems."""
    import tantivy  # here: a mount on which nobody searches need not load it

    builder = (
        tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.simple())
        .filter(tantivy.Filter.remove_long(LONGEST_WORD))
        .filter(tantivy.Filter.lowercase())
        .filter(tantivy.Filter.ascii_fold())
    )
    if stops:
        builder = builder.filter(tantivy.Filter.custom_stopword(sorted(STOP_WORDS[language])))
    if stems:
        builder = builder.filter(tantivy.Filter.stemmer("English" if language == "en" else "French"))
    return builder.build()


def terms(text: str, language: Language) -> list[str]:
    """The terms of a text in their order, as they stand in the index. Without stop words; repeated ones stay."""
    return list(analyser(language).analyze(text.encode(errors="ignore").decode()))


def placed(text: str, language: Language) -> list[tuple[int, str]]:
    """The terms of a text with their places: stop words are in no index, and leave a gap where they stood."""
    text = text.encode(errors="ignore").decode()
    plain, stemmed = (analyser(language, stops=False, stems=stems).analyze(text) for stems in (False, True))
    stop = STOP_WORDS[language]
    return [(place, term) for place, (word, term) in enumerate(zip(plain, stemmed, strict=True)) if word not in stop]


def content_words(text: str) -> Iterator[str]:
    """Folded words that are stop words of neither language."""
    for word in _WORD.findall(fold(text)):
        if word not in STOP_WORDS["en"] and word not in STOP_WORDS["fr"]:
            yield word
