"""What is stored of a text, and which texts are empty."""

from __future__ import annotations

import pytest

from livememfs.records.keys import MemoryName, NoteName
from livememfs.records.metadata import META_NAME
from livememfs.records.note import uid_ending
from livememfs.records.sealing import Form, MemoryForm, NoteForm, says_nothing
from livememfs.testing.clock import START

TOKEN = "gh" + "p_" + "aB3" * 12
FORMS = [NoteForm(), *map(MemoryForm, ("memories", "self", "goals"))]


@pytest.mark.parametrize("raw", [b"", b" \n", b"\xef\xbb\xbf \n", b"---\nagent: me\n---\n\n", b"---\nagent: me\n---"])
def test_of_a_text_without_a_word_nothing_is_made(raw: bytes) -> None:
    assert says_nothing(raw)


@pytest.mark.parametrize(
    "raw",
    [
        b"x", b"---\n", b"---\nagent: me\n---\nx", b"---\nno mapping\n---\n", b"x\n---\n", b"\xff",
        b"<private>x</private>",
    ],
)  # fmt: skip
def test_what_has_a_word_says_something_be_it_odd(raw: bytes) -> None:
    assert not says_nothing(raw)


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.folder)
def test_a_text_and_all_that_comes_with_it_is_sealed_without_what_is_private(form: Form) -> None:
    text, name = b"<private>the moon is hollow</private>\n", f"todo {TOKEN}"
    sealed = form.seal(text, path="x", written_name=name, space="alpha", agent=TOKEN, now=START)

    assert sealed.replaced == ("github-token", "private")
    assert b"moon" not in sealed.data
    assert TOKEN not in sealed.data.decode() + sealed.named("00000000")
    assert form.name_meta(name) == {}


@pytest.mark.parametrize(
    ("form", "names", "kind"),
    [(NoteForm(), NoteName, "category"), (MemoryForm("memories"), MemoryName, "type")],
    ids=["note", "memory"],
)
def test_the_written_name_is_kept_and_gives_the_kind(
    form: Form, names: type[NoteName] | type[MemoryName], kind: str
) -> None:
    written = "todo-läuft.md"
    sealed = form.seal(b"x", path="x", written_name=written, space="alpha", agent="a", now=START)
    name = names.parse(sealed.named(next(form.uids("alpha", written))))

    assert name is not None
    assert getattr(name, kind) == "todo"
    assert name.uid.endswith(tuple(form.endings("alpha", written)))
    assert form.name_meta(written) == {META_NAME: written}
    assert form.name_meta(str(name)) == form.name_meta("") == {}, "a canonical name needs no other"


def test_the_digits_of_a_note_are_those_of_its_order_and_its_name() -> None:
    assert next(NoteForm().uids("alpha", "plan", 0xABC)) == "abc" + uid_ending("alpha", "plan")
