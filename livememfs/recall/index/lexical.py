"""The text index: which pieces hold the words of a question, and how well (BM25).

Owns the tantivy index in its folder. A piece's text counts three times and its context once, in one field: that is how
a turn of a conversation is found by what was said around it. Each piece is in the field of its language. Refuses to
know what a record is: it has numbers and what one may filter by. A folder that cannot be read raises Damaged, and its
owner makes a new one. One writer, behind a lock; searching from any thread.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import tantivy

from livememfs import private
from livememfs.errors import NoSpace
from livememfs.recall.index.exchanged import MAX_TERMS, TEXT_WEIGHT, Damaged, Piece, Restriction, TextQuery
from livememfs.recall.index.words import LANGUAGES, STOP_WORDS, Language, analyser, placed, spelt_out, terms

WRITER_BYTES = 64_000_000
FEW_VALUES = 16
"""Of so many values of a field, each is looked up by itself: a set of them is made whole for every search, which takes
longer than the rest of it.
"""
_K1_PLUS_1: Final = 2.2
_EVERY_STOP_WORD: Final = STOP_WORDS["en"] | STOP_WORDS["fr"]


class Lexical:
    """The text index in one folder."""

    def __init__(self, folder: Path) -> None:
        self._schema = _schema()
        self._lock = threading.Lock()
        try:
            private.make(folder)
            self._index = tantivy.Index(self._schema, str(folder))
            for language in LANGUAGES:
                self._index.register_tokenizer(language, analyser(language))
            self._highest = self._last_number()
            self._writer: Any = self._index.writer(WRITER_BYTES, 1)
        except (ValueError, OSError) as error:
            raise Damaged(f"the text index cannot be opened: {error}") from error

    def apply(self, gone: Iterable[int], pieces: Iterable[Piece]) -> None:
        """Take out and put in; when this returns it is on the disk and found. Raises NoSpace, Damaged."""
        with self._lock:
            try:
                for number in gone:
                    self._writer.delete_documents_by_query(self._is(number))
                for piece in pieces:
                    if piece.number <= self._highest:  # to look for a new number would take as long as to add it
                        self._writer.delete_documents_by_query(self._is(piece.number))
                    self._highest = max(piece.number, self._highest)
                    self._writer.add_document(_document(piece))
                self._writer.commit()
                self._index.reload()
            except (ValueError, OSError) as error:
                with suppress(ValueError, OSError):
                    self._writer.rollback()
                if "No space left" in str(error):
                    raise NoSpace(str(error)) from error
                raise Damaged(f"the text index cannot be written: {error}") from error

    def _is(self, number: int) -> Any:
        """One piece. As a query: a term by itself is taken for a signed number, and deletes nothing."""
        return tantivy.Query.term_query(self._schema, "number", number)

    def _last_number(self) -> int:
        """The highest number of a piece that is there, 0 where none is."""
        searcher = self._index.searcher()
        hits = searcher.search(tantivy.Query.all_query(), 1, count=False, order_by_field="number").hits
        return max(self._numbers_of(searcher, hits), default=0)

    def __len__(self) -> int:
        return int(self._index.searcher().num_docs)

    def numbers(self) -> set[int]:
        """Every piece that is there, for `verify`."""
        searcher = self._index.searcher()
        hits = searcher.search(tantivy.Query.all_query(), max(searcher.num_docs, 1)).hits
        return set(self._numbers_of(searcher, hits))

    def close(self) -> None:
        """Give the folder to the next process."""
        with self._lock, suppress(ValueError, OSError):  # a writer whose files are damaged has nothing to wait for
            self._writer.wait_merging_threads()

    # --- asking ---------------------------------------------------------------------------------------------------

    def search(self, asked: TextQuery, where: Restriction, limit: int) -> list[tuple[int, float]]:
        """Numbers of pieces and their scores, best first. A score is 0 to about `ceiling`. Damaged."""
        query = self._query(asked)
        if query is None:
            return []
        try:
            searcher = self._index.searcher()
            hits = searcher.search(self._restricted(query, where), limit, count=False).hits
            numbers = self._numbers_of(searcher, hits)
        except (ValueError, OSError) as error:
            raise Damaged(f"the text index cannot be read: {error}") from error
        return [(number, float(score)) for (score, _), number in zip(hits, numbers, strict=True)]

    @staticmethod
    def _numbers_of(searcher: Any, hits: Sequence[tuple[Any, Any]]) -> list[int]:
        numbers: list[int] = searcher.fast_field_values("number", [address for _, address in hits])
        return numbers

    def ceiling(self, asked: TextQuery) -> float:
        """What a piece would score that had all the words, often: the measure of how good a score is."""
        searcher = self._index.searcher()
        count = max(searcher.num_docs, 1)
        highest = 0.0
        for language in LANGUAGES:
            weights = (
                _K1_PLUS_1 * math.log(1 + (count - (n := searcher.doc_freq(language, term)) + 0.5) / (n + 0.5))
                for term in _wanted(asked.words, language)
            )
            highest = max(highest, sum(weights))
        return highest

    def _query(self, asked: TextQuery) -> Any:
        query, occur = tantivy.Query, tantivy.Occur
        should = [
            query.term_query(self._schema, language, term)
            for language in LANGUAGES
            for term in _wanted(asked.words, language)
        ]
        parts: list[tuple[Any, Any]] = []
        if should:
            parts.append((occur.Must, query.boolean_query([(occur.Should, clause) for clause in should])))
        parts += [(occur.Must, clause) for phrase in asked.phrases if (clause := self._phrase(phrase)) is not None]
        if not parts:
            return None
        parts += [(occur.MustNot, clause) for phrase in asked.without if (clause := self._phrase(phrase)) is not None]
        return query.boolean_query(parts) if len(parts) > 1 else parts[0][1]  # a single query skips what scores too low

    def _phrase(self, text: str) -> Any:
        """The words of a text one after the other, in either language."""
        query, occur = tantivy.Query, tantivy.Occur
        either = []
        for language in LANGUAGES:
            words = placed(text, language)[:MAX_TERMS]
            if len(words) == 1:
                either.append((occur.Should, query.term_query(self._schema, language, words[0][1])))
            elif words:
                first = words[0][0]
                moved: list[Any] = [(place - first, word) for place, word in words]
                either.append((occur.Should, query.phrase_query(self._schema, language, moved)))
        return query.boolean_query(either) if either else None

    def _restricted(self, query: Any, where: Restriction) -> Any:
        parts = [(tantivy.Occur.Must, query)]
        for name, values in where.fields:
            parts.append((tantivy.Occur.Must, self._one_of(name, values)))
        for name, values in where.without:
            parts.append((tantivy.Occur.MustNot, self._one_of(name, values)))
        if where.after is not None or where.before is not None:
            low = where.after if where.after is not None else -(1 << 62)
            high = where.before if where.before is not None else 1 << 62
            span = tantivy.Query.range_query(
                self._schema, "created", tantivy.FieldType.Integer, low, high, include_upper=False
            )
            parts.append((tantivy.Occur.Must, tantivy.Query.const_score_query(span, 0.0)))
        if where.numbers is not None:
            parts.append((tantivy.Occur.Must, self._one_of("number", where.numbers)))
        return tantivy.Query.boolean_query(parts) if len(parts) > 1 else query

    def _one_of(self, name: str, values: Sequence[Any]) -> Any:
        query, occur = tantivy.Query, tantivy.Occur
        if not 0 < len(values) <= FEW_VALUES:
            return query.const_score_query(query.term_set_query(self._schema, name, list(values)), 0.0)
        any_of = [query.const_score_query(query.term_query(self._schema, name, value), 0.0) for value in values]
        return any_of[0] if len(any_of) == 1 else query.boolean_query([(occur.Should, each) for each in any_of])


def _wanted(words: str, language: Language) -> list[str]:
    """The terms to look for in one language, each once."""
    unique = dict.fromkeys(term for term in terms(words, language) if term not in _EVERY_STOP_WORD)
    return list(unique)[:MAX_TERMS]


def _schema() -> Any:
    builder = tantivy.SchemaBuilder()
    builder.add_unsigned_field("number", indexed=True, fast=True)
    builder.add_integer_field("created", indexed=True, fast=True)
    for language in LANGUAGES:
        builder.add_text_field(language, tokenizer_name=language)
    for name in ("space", "kind", "type", "agent", "label"):
        builder.add_text_field(name, tokenizer_name="raw", index_option="basic")
    return builder.build()


def _document(piece: Piece) -> Any:
    document = tantivy.Document()
    document.add_unsigned("number", piece.number)
    document.add_integer("created", piece.created)
    text = piece.text.encode(errors="ignore").decode()
    whole = "\n".join([text] * TEXT_WEIGHT + [spelt_out(text), piece.context.encode(errors="ignore").decode()])
    document.add_text(piece.language, whole)
    for name in ("space", "kind", "type", "agent"):
        document.add_text(name, getattr(piece, name))
    for label in piece.labels:
        document.add_text("label", label)
    return document
