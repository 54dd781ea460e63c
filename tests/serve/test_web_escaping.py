"""What is stored is untrusted: whatever it says, a page has no element and no attribute that it brought along."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pygments.token import STANDARD_TYPES
from web_site import MOMENT, Page

from livememfs.memories.audit import Audit, AuditPart, Row
from livememfs.memories.storing import Old
from livememfs.records.access import EVERYTHING
from livememfs.records.ledger import Entry, NoteEntry, Unsourced
from livememfs.records.memory import Memory
from livememfs.records.note import Note
from livememfs.records.observation import ICONS, Observation
from livememfs.records.proposal import Proposal
from livememfs.records.session import Session
from livememfs.records.trust import Trust
from livememfs.serve.web.audit import shown_parts
from livememfs.serve.web.cards import Card, FeedItem
from livememfs.serve.web.diff import diff_lines
from livememfs.serve.web.feed import Wanted
from livememfs.serve.web.markdown import EXCERPT_LINES, MAX_HIGHLIGHTED, MAX_RENDERED, MAX_SHOWN, excerpt, rendered
from livememfs.serve.web.memories import FormerVersion, Link
from livememfs.serve.web.proposals import ShownProposal
from livememfs.serve.web.render import page, part, path, place
from livememfs.serve.web.search import Facet, Shown, _facets, _marked
from livememfs.serve.web.sessions import Day
from livememfs.text.outgoing import Outgoing

ATTACKS = (
    "<script>alert(1)</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' onmouseover='alert(1)",
    "[x](javascript:alert(1))",
    "[x](JaVaScRiPt&#58;alert(1))",
    "[x](  java\tscript:alert(1))",
    "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)",
    "<javascript:alert(1)>",
    '[x](http://a "onclick=alert(1)")',
    "![x](https://evil.example/beacon.png)",
    "![x](x 'a' onerror=alert(1))",
    '<a href="javascript:alert(1)" style="position:fixed">x</a>',
    "```\n</code></pre><script>alert(1)</script>\n```",
    '```"><script>alert(1)</script>\nx\n```',
    "| a |\n|:-:|\n| <script>alert(1)</script> |",
    "<!-- --><svg onload=alert(1)>",
    "<style>*{display:none}</style><base href=//evil.example>",
    "[a]: javascript:alert(1)\n\n[a]",
    "&lt;script&gt;alert(1)&lt;/script&gt;",
    "\u202ereversed <bdo dir=rtl>",
    "{{ 7 * 7 }}{% include 'base.html' %}",
    "\0<script\0>alert(1)</script\0>",
    "\udcff<script>",
)
PIECES = st.sampled_from([*ATTACKS, "<", ">", '"', "'", "&", "`", "[", "](", ")", "!", "\n", "|", "#", "script", "="])
texts = st.lists(st.one_of(PIECES, st.text(max_size=8)), max_size=8).map("".join)
names = texts.filter(bool)


def markdown(text: str) -> Page:
    """What a browser makes of stored Markdown."""
    return Page(str(rendered(text)))


@pytest.mark.parametrize("text", ATTACKS, ids=repr)
def test_known_attacks_do_nothing(text: str) -> None:
    parsed = markdown(text)

    assert parsed.dangers() == []
    assert not parsed.all("script")


@given(texts)
@example("[x](//evil.example/y)")
def test_markdown_brings_no_element_that_does_anything(text: str) -> None:
    parsed = markdown(text)

    assert parsed.dangers() == []
    for link in parsed.all("a"):
        assert set(link) <= {"href", "title", "rel"}
        assert link["rel"] == "noopener noreferrer"
    assert all(not attributes for tag, attributes in parsed.elements if tag not in ("a", "ol", "span"))
    for word in parsed.all("span"):
        assert set(word) == {"class"}
        assert set((word["class"] or "").split()) <= set(STANDARD_TYPES.values())


@given(text=texts, name=names)
def test_notes_names_and_tags_are_text_wherever_they_stand(text: str, name: str) -> None:
    item = FeedItem(name, "<script>'\"", "note", f"live/{name}")
    more = {"written": name, "subtitle": text, "icon": text}
    card = Card(
        item,
        MOMENT,
        text,
        text,
        text,
        rendered(text),
        True,
        (text, name),
        text,
        text,
        place(f"s/live/{name}"),
        text,
        more,
    )
    wanted = Wanted(space=text, agent=name, tag=text)
    values = {"card": card, "cards": [card], "html": rendered(text), "text": text, "category": name, "tags": text}
    values |= {"problem": text, "categories": (text,), "wanted": wanted, "choices": (text,), "seen": [text]}
    values |= {"older": name, "newest": True, "after": text, "held": None}
    for template in ("_card.html", "note.html", "noteedit.html", "feed.html"):
        parsed = shown(template, **values)
        assert parsed.dangers() == []


@given(text=texts, name=names)
def test_memories_runs_and_rules_are_text(text: str, name: str) -> None:
    made = Memory(
        "memories", "fact", text, 0.5, MOMENT, MOMENT, category=text, subjects=(text,), source=text,
        links=(("updates", name),), extra={"agent": text},
    )  # fmt: skip
    item = FeedItem(name, text, "memory", f"memories/{name}")
    more = {"memory": made, "trust": Trust.WEB}
    card = Card(item, MOMENT, text, text, "", rendered(text), True, (name,), text, text, place("s/x"), text, more)
    old = Old(name, name, MOMENT, made)
    taken = NoteEntry(name, text, text, text, text, text, (name,), text, 1)
    run = Entry(
        number=1, space=text, by=text, removes=(taken,), warnings=(text,), held=(text,), kind="edit",
        outgoing=(Outgoing(name, text, "dropped", reason=text),), unsourced=(Unsourced(name, 1, text, (text,)),),
        committed_at=MOMENT, metrics={"model": text},
    )  # fmt: skip
    given = dict.fromkeys(("text", "type", "category", "importance", "subjects", "until", "links"), text)
    links = [Link(text, place("s/x"), text), Link(text, "", text, incoming=True)]
    values: dict[str, Any] = {
        "memory": made, "card": card, "html": rendered(text), "links": links, "uses": 1, "last_use": MOMENT,
        "told": 2, "offered": {"user": text}, "vouched": name,
        "former": [FormerVersion(MOMENT, made, rendered(text))], "weight": 0.5, "id": name, "after": text,
        "given": given, "types": (text,), "categories": (text,), "collection": "memories", "problem": text,
        "collections": {"memories": text}, "total": 1, "cards": [card], "older": name, "newest": True,
        "wanted": Wanted(tag=text), "choices": (text,), "run": run, "later": [2], "figures": {}, "cut": False,
        "undone": {}, "diff": diff_lines(text)[0], "taken": taken, "meta": None, "rules": text, "etag": text,
        "text": text, "memories": [f"memories/{name}"], "settings": [(text, text, text)],
        "note": Note(MOMENT, text, text, (text,), "", text),
    }  # fmt: skip
    for template in ("memory.html", "memoryedit.html", "run.html", "runnote.html", "settings.html"):
        assert shown(template, **values).dangers() == [], template
    for forgotten in (None, [(old, rendered(text))]):
        assert shown("memories.html", **values, forgotten=forgotten).dangers() == []
    for edit in (True, False):
        assert shown("about.html", **values, edit=edit).dangers() == []


@given(text=texts, name=names)
def test_paths_and_changes_of_the_bank_are_text(text: str, name: str) -> None:
    lines, cut = diff_lines(text)
    values = {"path": name, "views": (), "after": name, "source": text, "lines": lines, "cut": cut, "runs": []}
    values |= {"last": None, "etag": text, "trust": Trust.WEB, "offered": {"user": text}, "vouched": name}
    for view in ("page", "source", "changes", "edit"):
        parsed = shown("bankfile.html", view=view, html=rendered(text), older=text, newer=text, **values)
        assert parsed.dangers() == []


@given(text=texts, name=names)
def test_what_is_proposed_is_text(text: str, name: str) -> None:
    given = {"by": text, "why": text, "at": MOMENT, "decision": "refused", "decided_by": text}
    proposal = Proposal(target=f"memories/{name}", content=text, **given)  # type: ignore[arg-type]  # each is a text
    values = {"waiting": [ShownProposal(proposal, *diff_lines(text))], "decided": [proposal], "more": 1, "asks": False}
    assert shown("proposals.html", may_decide=True, **values).dangers() == []


@given(text=texts, name=names)
def test_what_an_audit_finds_is_text(text: str, name: str) -> None:
    """Also in paths with odd names, in headings, and in the paths of records of kinds that are unknown."""
    paths = [f"{name}/memories/{name}.md", f"s/bank/{name}.md#{text}", f"s/live/{name}", name, text]
    rows = tuple(Row(one, text, beside=other, why=text) for one in paths for other in ("", name, paths[1]))
    found = Audit(name, 1, 1, 1, 1, (AuditPart("stale", text, text, rows, 30),), (text,))
    values = {"audit": found, "parts": shown_parts(found), "clear": [text]}

    assert shown("audit.html", **values).dangers() == []


@given(text=texts, name=names)
def test_hits_and_questions_are_text(text: str, name: str) -> None:
    marked, reasons = tuple(_marked(text, [name])), ((text, 1, name),)
    hit = Shown(1, text, (text, name), 0, 0.5, place(f"s/live/{name}"), marked, reasons)
    facets = _facets(text, [])
    facets += (Facet(text, ((text, 1, name, True), (name, 2, text, False))),)
    values = {"question": text, "remarks": [text], "read_as": text, "strategy": text, "found": 1, "hits": [hit]}
    values |= {"facets": facets}

    assert shown("search.html", **values).dangers() == []


@given(text=texts, name=names)
def test_observations_and_prompts_are_text(text: str, name: str) -> None:
    observation = Observation(
        name, text, datetime(2026, 1, 1, tzinfo=UTC), "bugfix", text, text, text, (text,), (text,), (text,), (name,),
        text, text, 1, text,
    )  # fmt: skip
    days = [Day(observation.created_at.date(), ((name, (observation,)),))]

    values = {"name": name, "summary": [(text, rendered(text))], "prompts": [(MOMENT, text)], "days": days}
    session = Session(text, text, MOMENT, MOMENT, text, text, text)
    values |= {"title": text, "after": name}
    assert shown("session.html", session=session, icons=ICONS, **values).dangers() == []
    titled = {"sessions": [(name, session)], "titles": {name: text}, "left_out": 0}
    assert shown("sessions.html", **titled).dangers() == []


def shown(template: str, **values: object) -> Page:
    """A page of a space with an evil name."""
    return Page(page(template, access=EVERYTHING, space="<script>'\"", **values).body.decode())  # type: ignore[arg-type]  # any value is what is tried here


@given(names)
def test_a_name_stays_one_part_of_an_address(name: str) -> None:
    """Also one that has slashes, dots, question marks or bytes that are no text."""
    text = part(name)

    assert text.isascii()
    assert not set(text) & set("/?#<>\"'& \n")
    assert path(name).count("/") == name.count("/")


def test_a_link_leads_to_the_web_to_a_mailbox_or_into_the_space() -> None:
    text = "[a](https://x.example) [b](mailto:a@b.example) [c](other.md) [d](ftp://x.example) [e](file:///etc/passwd)"

    assert [link.get("href") for link in markdown(text).all("a")] == [
        "https://x.example", "mailto:a@b.example",  "other.md", None,
    ]  # fmt: skip


def test_a_picture_is_its_words_and_asks_nobody() -> None:
    parsed = markdown("![a *map* of the house](https://evil.example/x.png)")

    assert parsed.text == "[picture: a map of the house]"
    assert "evil" not in str(rendered("![a](https://evil.example/x.png)"))


def test_code_is_coloured_by_classes_alone_in_languages_that_are_known() -> None:
    coloured = markdown('```python\ndef f() -> str:\n    return "</code><script>"\n```\n')

    assert {"class": "k"} in coloured.all("span")
    assert '"</code><script>"' in coloured.text
    assert not coloured.all("script")
    assert not markdown("```brainfuck\n+++\n```\n").all("span")
    assert not markdown(f"```python\n{'x = 1' * MAX_HIGHLIGHTED}\n```\n").all("span")


def test_an_excerpt_is_the_beginning_and_says_that_there_is_more() -> None:
    assert excerpt("**one**") == ("<p><strong>one</strong></p>\n", False)
    html, cut = excerpt("\n".join(map(str, range(EXCERPT_LINES + 5))))
    assert cut
    assert str(EXCERPT_LINES) not in html


def test_headings_stand_below_the_title_of_the_page() -> None:
    parsed = markdown("# one\n\n## two\n\n###### six\n")

    assert [tag for tag, _ in parsed.elements if tag.startswith("h")] == ["h2", "h3", "h6"]


@pytest.mark.parametrize("text", ["> " * 5_000 + "x", "[" * 50_000, "*a " * 20_000, "- " * 3_000 + "x"], ids=len)
def test_a_text_that_is_made_to_be_slow_is_shown_or_left_plain(text: str) -> None:
    assert markdown(text).dangers() == []


def test_a_large_text_is_shown_as_it_is_written_up_to_a_limit() -> None:
    large = "# <b>\n" * (MAX_SHOWN // 6 + 10)
    text = str(rendered(large))

    assert len(large) > MAX_RENDERED
    assert text.startswith("<pre># &lt;b&gt;")
    assert text.endswith("…</pre>")
    assert markdown(large).elements == [("pre", {})]
