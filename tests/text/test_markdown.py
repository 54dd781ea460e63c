"""Edits of Markdown: every part that no edit names keeps its bytes."""

from __future__ import annotations

import os
import re
import time
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from functools import lru_cache

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_corpus import CHANGELOG, CORPUS, FENCES, HTML, ODD, OPEN_FENCE, README, SETEXT
from markdown_it import MarkdownIt

from livememfs.text import frontmatter
from livememfs.text.edits import Edit, EditRefused
from livememfs.text.headings import Section
from livememfs.text.markdown import Document, apply_edits

anything = st.text(
    st.one_of(st.characters(exclude_categories=["Cs"]), st.sampled_from("\r\n\r\n# -=`~<!>\t\x0b\x85\u2028\0"))
)
pieces = st.lists(
    st.sampled_from(
        ["# A\n", "## B\n", "### C ##\n", "# A\n", "B\n---\n", "text\n", "\n", "\r\n", "\r", "```\n", "~~~\n", "- x\n",
         "  # D\n", "    # E\n", "> # F\n", "<!--\n", "-->\n", "<div>\n", "---\n", "a: 1\n", "===\n", "## G\r\n",
         "1. y\n",         "[r]: /u\n", "<pre>\n", "</pre>\n", "tail", "\ufeff", "\u00a0\n", "  y\n", "+ z\r"]
    ),
    max_size=14,
).map("".join)  # fmt: skip
LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
CONTENTS = (
    "New text.", "- new item\n- another", "1. new\n", "\n\nTwo\r\nlines\r\n\n", "```\n# code\n```\n", "    indented\n",
    "### Lower\n\ntext\n", "###### Lowest\ntext", "# Top\n", "---\nb: 2\n---\n", "```\nopen", "<!-- open", "text\n===",
    "[a]: /b",
)  # fmt: skip
TITLES = ("New title", "Nouveau 🚀 Титул", "C#", "- x", "---", "two\nlines")


def split(text: str) -> list[str]:
    """The lines as CommonMark has them."""
    return re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+", text)


@lru_cache
def ranges(text: str) -> dict[tuple[str, ...], tuple[int, int, int, int]]:
    """`start, body, own_end, end` of each heading whose path is unique, by path; found without the code under test."""
    try:
        body = frontmatter.split(text.lstrip("\ufeff"))[1]
    except frontmatter.FrontMatterError:
        body = text.lstrip("\ufeff")
    count, above = len(split(text)), len(split(text)) - len(split(body))
    parser = MarkdownIt("commonmark", {"maxNesting": 1000})
    tokens = parser.parse(body)
    heads = [
        (
            int(token.tag[1:]),
            " ".join(unicodedata.normalize("NFC", tokens[number + 1].content).split()),
            token.map[0] + above,
            token.map[1] + above,
        )
        for number, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    places = [((), (0, above, heads[0][2] if heads else count, count))]
    stack: list[tuple[int, str]] = []
    for number, (level, title, start, below) in enumerate(heads):
        stack = [entry for entry in stack if entry[0] < level] + [(level, title)]
        own_end = heads[number + 1][2] if number + 1 < len(heads) else count
        end = next((later[2] for later in heads[number + 1 :] if later[0] <= level), count)
        places.append((tuple(entry[1] for entry in stack), (start, below, own_end, end)))
    paths = [path for path, _ in places]
    return {path: place for path, place in places if paths.count(path) == 1}


def named(edit: Edit, places: dict[tuple[str, ...], tuple[int, int, int, int]]) -> tuple[int, int]:
    """The lines that an edit may change."""
    if edit.op == "add" and edit.heading not in places:
        _, body, _, end = places[edit.heading[:-1]]
        return body, end
    start, body, own_end, end = places[edit.heading]
    return {
        "rename": (start, body),
        "delete": (start, end),
        "replace": (body, end if edit.deep else own_end),
    }.get(edit.op, (body, own_end))


def every_edit(paths: list[tuple[str, ...]], contents: Sequence[str] = CONTENTS) -> Iterator[Edit]:
    for path in paths:
        for content in contents:
            yield from (Edit(op, path, content) for op in ("append", "prepend", "replace"))
            yield Edit("replace", path, content, deep=True)
            yield Edit("add", (*path, "Brand new"), content)
        yield Edit("add", (*path, "Brand new"))
        yield from (Edit("rename", path, title) for title in TITLES)
        yield from (Edit("delete", path), Edit("delete", path, deep=True))


def check_edit(text: str, document: Document, edit: Edit) -> Document | None:
    """Make an edit and check everything that is true of any edit. None: it was refused."""
    try:
        made = document.edited(edit)
    except EditRefused:
        return None
    assert made.text.startswith("\ufeff") == text.startswith("\ufeff"), edit
    start, stop = named(edit, ranges(text))
    lines, outcome = split(text.lstrip("\ufeff")), made.text.lstrip("\ufeff")
    before, after = "".join(lines[:start]), "".join(lines[stop:])
    assert outcome.startswith(before), edit
    assert outcome.endswith(after), edit
    assert len(outcome) >= len(before) + len(after)
    if edit.op in ("append", "prepend", "add"):
        assert is_within(lines[start:stop], outcome[len(before) : len(outcome) - len(after)]), edit
    if "\n" in text and not re.search(r"(?<!\r)\n|\r(?!\n)", text):
        assert not re.search(r"(?<!\r)\n|\r(?!\n)", made.text), edit
    assert shape(made) == shape(Document(made.text)), edit
    return made


def is_within(lines: list[str], text: str) -> bool:
    """Whether a text has all these lines in order; the last one may have got a line end."""
    rest = iter(split(text))
    return all(
        any(line == other or (line == lines[-1] and line == other.rstrip("\r\n")) for other in rest) for line in lines
    )


def shape(document: Document) -> object:
    sections = [(section.level, section.path, section.start, section.body, section.own_end, section.end)
                for section in document.root.walk()]  # fmt: skip
    return document.lines, document.open_end, sections


def titles(text: str) -> list[str]:
    return [section.title for section in Document(text).sections()]


# --- looking ---------------------------------------------------------------------------------------------------------


@given(text=st.one_of(anything, pieces))
def test_lines_are_the_text(text: str) -> None:
    document = Document(text)

    assert "".join(document.lines) == text
    assert document.text == text
    assert apply_edits(text, []) == text


@given(text=st.one_of(anything, pieces))
def test_sections_cover_every_line_once(text: str) -> None:
    """Headings and own texts follow each other without a gap, whatever the levels."""
    document = Document(text)
    place = document.root.start
    for section in document.root.walk():
        assert section.start == place
        assert section.start <= section.body <= section.own_end <= section.end <= len(document.lines)
        place = section.own_end
    assert place == len(document.lines)


@pytest.mark.parametrize("name", CORPUS)
def test_headings_are_those_of_commonmark(name: str) -> None:
    text = CORPUS[name]
    document = Document(text)
    expected = dict(ranges(text))
    twice = set(document.duplicates())

    sections = {s.path: (s.start, s.body, s.own_end, s.end) for s in document.sections() if s.path not in twice}
    expected.pop(())
    assert sections == expected


def test_what_only_looks_like_a_heading_is_none() -> None:
    assert titles(README) == ["Tool *with* `code` and [a link](https://example.org)", "Install", "Usage", "Licence"]
    assert titles(FENCES) == ["Fences", "Between", "After", "Last"]
    assert titles(SETEXT) == ["Title", "Two lines of a title", "Another", "Deep", "Next", "Under a definition"]
    assert titles(HTML) == ["Page", "Inside details", "After", "End"]
    assert titles(CORPUS["nested"]) == ["A", "B", "C"]
    assert titles(CORPUS["front matter"]) == ["First", "text", "Under an accidental one"]
    assert titles(f"\ufeff{README}") == titles(README)


def test_the_same_title_under_several_parents_is_told_apart() -> None:
    document = Document(CHANGELOG)

    assert document.duplicates() == []
    assert document.find(["Changelog", "[1.1.0] - 2026-02-20", "Added"]).start == 14
    assert Document(ODD).duplicates() == [("Same",), ("Same", "Child")]


def test_a_title_is_found_in_any_form_of_its_characters() -> None:
    assert Document("# Été  là\n").find(["E\u0301te\u0301 la\u0300"]).level == 1


# --- every edit of every section of every file -----------------------------------------------------------------------


@pytest.mark.parametrize("name", CORPUS)
def test_what_an_edit_does_not_name_keeps_its_bytes(name: str) -> None:
    """A variant with other line ends is tried with a third of the contents, each variant with another third."""
    text = CORPUS[name]
    document = Document(text)
    contents = CONTENTS if LONG or ", " not in name else CONTENTS[list(CORPUS).index(name) % 3 :: 3]
    made = [check_edit(text, document, edit) for edit in every_edit(list(ranges(text)), contents)]

    assert any(made)


@given(text=pieces, content=st.one_of(pieces, st.sampled_from(CONTENTS)), data=st.data())
def test_no_text_and_no_content_breaks_that(text: str, content: str, data: st.DataObject) -> None:
    paths = list(ranges(text))
    if not paths:
        return
    path = data.draw(st.sampled_from(paths))
    for edit in (*(Edit(op, path, content) for op in ("append", "prepend", "replace")), Edit("rename", path, content),
                 Edit("replace", path, content, deep=True), Edit("add", (*path, "New"), content),
                 Edit("delete", path, deep=True)):  # fmt: skip
        if made := check_edit(text, Document(text), edit):
            check_edit(made.text, made, Edit("append", path, "more")) if path in ranges(made.text) else None


# --- each kind of edit -----------------------------------------------------------------------------------------------

PAGE = "# A\n\nintro\n\n## B\n- one\n\n### C\nc\n\n## D\n\nd\n"


@pytest.mark.parametrize(
    ("edit", "before", "after"),
    [
        (Edit("append", ("A",), "x"), "intro\n", "intro\n\nx\n"),
        (Edit("append", ("A", "B"), "- two\n"), "- one\n", "- one\n- two\n"),
        (Edit("append", ("A", "B"), "x\n"), "- one\n", "- one\n\nx\n"),
        (Edit("append", ("A", "D"), "x"), "d\n", "d\n\nx\n"),
        (Edit("append", (), "top"), "# A\n", "top\n\n# A\n"),
        (Edit("append", ("A", "B", "C"), "#### E\n\ne"), "c\n", "c\n\n#### E\n\ne\n"),
        (Edit("prepend", ("A",), "x"), "\nintro", "\nx\n\nintro"),
        (Edit("prepend", ("A", "B"), "- zero"), "- one\n", "\n- zero\n- one\n"),
        (Edit("replace", ("A", "B"), "x"), "- one\n\n###", "\nx\n\n###"),
        (Edit("replace", ("A", "B"), "x", deep=True), "- one\n\n### C\nc\n\n##", "\nx\n\n##"),
        (Edit("add", ("A", "E"), "e"), "d\n", "d\n\n## E\n\ne\n"),
        (Edit("add", ("A", "E")), "d\n", "d\n\n## E\n"),
        (Edit("add", ("A", "B", "F"), "f"), "c\n", "c\n\n### F\n\nf\n"),
        (Edit("add", ("A", "D"), "more"), "d\n", "d\n\nmore\n"),
        (Edit("add", ("Z",), "z"), "d\n", "d\n\n# Z\n\nz\n"),
        (Edit("rename", ("A", "B"), "Bee"), "## B\n", "## Bee\n"),
        (Edit("delete", ("A", "D")), "## D\n\nd\n", ""),
        (Edit("delete", ("A", "B"), deep=True), "## B\n- one\n\n### C\nc\n\n", ""),
    ],
    ids=str,
)
def test_an_edit_does_what_it_says(edit: Edit, before: str, after: str) -> None:
    assert PAGE.count(before) == 1
    assert apply_edits(PAGE, [edit]) == PAGE.replace(before, after)


@pytest.mark.parametrize(
    ("text", "edit", "made"),
    [
        ("", Edit("add", ("A",), "a"), "# A\n\na\n"),
        ("", Edit("append", (), "a"), "a\n"),
        ("# A", Edit("append", ("A",), "a"), "# A\n\na\n"),
        ("# A\r\n", Edit("append", ("A",), "a\nb"), "# A\r\n\r\na\r\nb\r\n"),
        ("# A ##  \n", Edit("rename", ("A",), "B"), "# B ##  \n"),
        ("# A # B\n", Edit("rename", ("A # B",), "C"), "# C\n"),
        ("#\n", Edit("rename", ("",), "A"), "# A\n"),
        ("A\nB\n--\ntext", Edit("rename", ("A B",), "C"), "C\n--\ntext"),
        ("\ufeff# A\n", Edit("rename", ("A",), "B"), "\ufeff# B\n"),
        ("\ufeff# A\n", Edit("delete", ("A",)), "\ufeff"),
        ("\ufeff\ufeff", Edit("add", ("A",)), "\ufeff\ufeff# A\n"),
        ("---\na: 1\n---", Edit("add", ("A",), "a"), "---\na: 1\n---\n\n# A\n\na\n"),
        ("---\na: 1\n---\n\n# A\n", Edit("prepend", (), "x"), "---\na: 1\n---\n\nx\n\n# A\n"),
        ("# A\nx\r\r\n# B\n", Edit("append", ("A",), "y"), "# A\nx\r\r\n\ny\n\r\n# B\n"),
        ("text\n# A\nB\n===\n", Edit("delete", ("A",)), "text\n\nB\n===\n"),
    ],
)  # fmt: skip
def test_an_edit_at_the_edge_of_a_text(text: str, edit: Edit, made: str) -> None:
    assert apply_edits(text, [edit]) == made


def test_each_edit_is_made_on_the_outcome_of_the_one_before() -> None:
    edits = [Edit("rename", ("A", "B"), "X"), Edit("add", ("A", "X", "Y"), "y"), Edit("append", ("A", "X", "Y"), "z")]

    assert "## X\n- one\n\n### C\nc\n\n### Y\n\ny\n\nz\n\n## D" in apply_edits(PAGE, edits)


# --- what is refused -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "edit", "reason"),
    [
        (PAGE, Edit("append", ("A", "X"), "x"), r"there is no heading A > X; there are A, A > B, A > B > C, A > D$"),
        (PAGE, Edit("append", ("B",), "x"), "there is no heading B"),
        (PAGE, Edit("add", ("X", "Y"), "x"), "there is no heading X"),
        ("", Edit("delete", ("X",)), "there is no heading X; there are none"),
        (ODD, Edit("append", ("Same",), "x"), "the heading Same is there 2 times"),
        (ODD, Edit("add", ("Same", "Child"), "x"), "the heading Same > Child is there 2 times"),
        (ODD, Edit("delete", ("Same", "Child")), "the heading Same > Child is there 2 times"),
        (FENCES, Edit("append", ("Fences", "six"), "x"), "there is no heading Fences > six"),
        (FENCES, Edit("delete", ("one",)), "there is no heading one"),
        (HTML, Edit("rename", ("commented out",), "x"), "there is no heading commented out"),
        (PAGE, Edit("append", ("A", "B"), "# x"), "heading of level 2 or above"),
        (PAGE, Edit("replace", ("A", "B"), "text\n\n## x"), "heading of level 2 or above"),
        (PAGE, Edit("add", ("A", "E"), "## E\n\ntext"), "heading of level 2 or above"),
        (PAGE, Edit("append", ("A", "B"), "```\nx"), "leaves a fence or comment open"),
        (PAGE, Edit("prepend", ("A", "B"), "~~~\nx\n```"), "leaves a fence or comment open"),
        (PAGE, Edit("replace", ("A", "D"), "<!-- x"), "leaves a fence or comment open"),
        (PAGE, Edit("add", ("A", "E"), "<pre>\nx"), "leaves a fence or comment open"),
        (OPEN_FENCE, Edit("append", ("A", "B"), "x"), "ends in a fence or comment that is not closed"),
        (OPEN_FENCE, Edit("add", ("A", "C"), "x"), "ends in a fence or comment that is not closed"),
        (OPEN_FENCE, Edit("prepend", ("A", "B"), "```\nx"), "leaves a fence or comment open"),
        (PAGE, Edit("prepend", ("A",), "## x"), "take over the text that is there"),
        ("# A\n\n### B\n", Edit("prepend", ("A",), "## x"), "take over those below A"),
        ("# A\n#### B\n", Edit("append", ("A",), "## x"), "would take over those below A"),
        ("# A\n#### B\n", Edit("replace", ("A",), "## x"), "would take over those below A"),
        ("# A\n    code\n", Edit("prepend", ("A",), "- x"), "would join the lines after it to its own"),
        ("# A\nx\n  # B\n", Edit("append", ("A",), "- x"), "lines after it would be read as something else"),
        (PAGE, Edit("append", ("A",), "### x\n\n## B\n"), "the heading A > B is there already"),
        (PAGE, Edit("rename", ("A", "B"), "D"), "the heading A > D is there already"),
        (PAGE, Edit("delete", ("A", "B")), 'with "deep" they are deleted too'),
        (PAGE, Edit("delete", (), deep=True), "a delete names a heading"),
        (PAGE, Edit("rename", (), "x"), "a rename names a heading"),
        (PAGE, Edit("add", (), "x"), "an add names the new heading"),
        (PAGE, Edit("add", ("A", "B")), "there already, and the content is empty"),
        (PAGE, Edit("add", ("A", "B"), "\n"), "there already, and the content is empty"),
        (PAGE, Edit("add", ("A", " "), "x"), "is no title"),
        (PAGE, Edit("add", ("A", "x #"), "x"), "is no title"),
        (PAGE, Edit("rename", ("A", "B"), "#"), "is no title"),
        (PAGE, Edit("append", ("A",), "\n \n"), "its content is empty"),
        ("###### A\n", Edit("add", ("A", "B"), "x"), "which has level 6"),
        ("", Edit("append", (), "---\na: 1\n---\n"), "front matter"),
        ("", Edit("append", (), "\n\ufeff"), "byte order mark"),
        ("x\n\n# A\n", Edit("prepend", (), "---\n\na: 1\n\n---"), "front matter"),
    ],
)  # fmt: skip
def test_an_edit_that_cannot_be_made_is_refused_with_its_reason(text: str, edit: Edit, reason: str) -> None:
    with pytest.raises(EditRefused, match=reason) as refusal:
        apply_edits(text, [Edit("append", (), "first")] * 0 + [edit])

    assert str(refusal.value).startswith(f"edit 1 ({edit.op}): ")


def test_a_reason_stays_short() -> None:
    many = "".join(f"# {number}{'x' * 500}\n" for number in range(1000))
    with pytest.raises(EditRefused) as refusal:
        Document(many).find(["y" * 10_000])

    assert "and 980 more" in str(refusal.value)
    assert len(str(refusal.value)) < 3000


# --- an edit of a reply ----------------------------------------------------------------------------------------------

RIGHT = {"op": "append", "heading": ["A"], "content": "x"}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (None, "not an object"),
        ([], "not an object"),
        ("append", "not an object"),
        ({}, "the op None is none of"),
        ({**RIGHT, "file": "a.md"}, "the key 'file' is unknown"),
        ({**RIGHT, 7: 1}, "the key '7' is unknown"),
        ({**RIGHT, "x" * 5000: 1}, "^the key 'x{59} is unknown$"),
        ({**RIGHT, "op": "insert"}, "the op 'insert' is none of append, prepend"),
        ({**RIGHT, "op": ["append"]}, "the op"),
        ({**RIGHT, "op": "x" * 5000}, r"^the op 'x{59} is none"),
        ({**RIGHT, "heading": 7}, '"heading" is not a list'),
        ({**RIGHT, "heading": None}, '"heading" is not a list'),
        ({**RIGHT, "heading": ["A", 1]}, '"heading" is not a list'),
        ({**RIGHT, "heading": ["\ud800"]}, '"heading" is not a list'),
        ({"op": "append", "content": "x"}, '"heading" is not a list'),
        ({**RIGHT, "deep": 1}, '"deep" is neither'),
        ({**RIGHT, "deep": None}, '"deep" is neither'),
        ({**RIGHT, "deep": True}, '"deep" has no meaning for the op append'),
        ({"op": "append", "heading": []}, '"content" is not a text'),
        ({**RIGHT, "content": ""}, "is an empty text"),
        ({**RIGHT, "content": " \n\t"}, "is an empty text"),
        ({**RIGHT, "content": ["x"]}, '"content" is not a text'),
        ({**RIGHT, "content": "\udc00"}, '"content" is not a text'),
        ({**RIGHT, "op": "add", "content": 0}, '"content" is not a text'),
        ({**RIGHT, "op": "add", "content": " "}, "is an empty text"),
        ({**RIGHT, "op": "rename", "content": None}, '"content" is not a text'),
        ({**RIGHT, "op": "delete"}, 'a delete takes no "content"'),
        ({**RIGHT, "op": "delete", "content": []}, '"content" is not a text'),
    ],
)
def test_an_edit_of_another_shape_is_refused(value: object, reason: str) -> None:
    with pytest.raises(EditRefused, match=reason):
        Edit.parse(value)


@pytest.mark.parametrize(
    "edit",
    [
        Edit("append", (), "x"),
        Edit("replace", ("A", "B"), "x\n", deep=True),
        Edit("add", ("A",)),
        Edit("delete", ("A",), deep=True),
        Edit("rename", ("A",), "B"),
    ],
    ids=lambda edit: edit.op,
)
def test_an_edit_comes_back_from_its_json(edit: Edit) -> None:
    assert Edit.parse({**asdict(edit), "heading": list(edit.heading)}) == edit


def test_content_may_be_left_out_where_it_says_nothing() -> None:
    assert Edit.parse({"op": "add", "heading": ["A"], "content": None}) == Edit("add", ("A",))
    assert Edit.parse({"op": "delete", "heading": ["A"], "content": ""}) == Edit("delete", ("A",))


# --- how long it takes -----------------------------------------------------------------------------------------------


def test_many_edits_of_a_large_file_take_seconds() -> None:
    """Fifty edits of a megabyte: to parse all of it again for each would take a minute."""
    part = "- an item with some words in it, and `code`\n" * 20
    text = "# Large\n\n" + "".join(f"## Section {number}\n\n{part}\n" for number in range(1100))
    assert len(text) > 1_000_000 * 0.95
    edits = [Edit("append", ("Large", f"Section {number * 20}"), "- new\n") for number in range(50)]

    started = time.thread_time()
    made = apply_edits(text, edits)

    assert time.thread_time() - started < 20
    assert made.replace("- new\n", "") == text


def test_one_line_of_blanks_is_not_gone_through_again_and_again() -> None:
    title = "a" + " " * 200_000 + "b"
    started = time.thread_time()

    assert apply_edits(f"# {title}\n", [Edit("rename", ("a b",), "c")]) == "# c\n"
    assert time.thread_time() - started < 5


def test_a_section_knows_its_place() -> None:
    section = Document(PAGE).find(["A", "B", "C"])

    assert isinstance(section, Section)
    assert (section.level, section.path) == (3, ("A", "B", "C"))
