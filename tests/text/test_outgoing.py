"""Lines that leave a bank were moved, reworded or dropped; formatting makes no difference."""

from __future__ import annotations

import pytest

from livememfs.text.outgoing import Reason, lines_that_say, outgoing

BANK = {
    "progress.md": "# Progress\n\n## Done\n\n- The parser reads all of Markdown\n- Uploads are retried five times\n",
    "decisions.md": "# Decisions\n\nWe keep everything in one bucket, without a database.\n",
}


def after(**changed: str) -> dict[str, str]:
    return {**BANK, **{f"{name}.md": text for name, text in changed.items()}}


def fates(new: dict[str, str], *reasons: Reason) -> list[tuple[str, str]]:
    return [(line.text, line.fate) for line in outgoing(BANK, new, reasons)]


def test_what_stays_what_is_added_and_what_only_looks_otherwise_does_not_leave() -> None:
    looks = "# Done so far\n\n* **The parser** reads *all* of Markdown\n  1. uploads are retried five times\n\nmore\n"

    assert fates(BANK) == []
    assert fates(after(progress=BANK["progress.md"] + "- more\n", new="# New\n\ntext\n")) == []
    assert fates(after(progress=looks)) == []


def test_a_line_that_stands_in_another_file_was_moved() -> None:
    progress, archive = "# Progress\n\n- Uploads are retried five times\n", "- the parser reads all of Markdown\n"
    [line] = outgoing(BANK, after(progress=progress, archive=archive))

    assert (line.file, line.fate, line.where) == ("progress.md", "moved", "archive.md")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("- one fact\n- one fact\n", "- one fact\n", ["moved"]),
        ("- 60 s\n- 3.11\n", "- 90 s\n- 3.12\n", ["dropped", "dropped"]),
    ],
    ids=["twice, then once", "a figure that changed"],
)
def test_a_second_copy_was_moved_and_another_figure_is_another_line(old: str, new: str, expected: list[str]) -> None:
    assert [line.fate for line in outgoing({"a.md": old}, {"a.md": new})] == expected


@pytest.mark.parametrize(
    "said",
    [
        "Everything is kept in a single bucket and no database is used.",
        "- One bucket keeps everything;\n  there is no database",
        "We keep everything in one bucket (S3), without a database or a server of our own.",
    ],
)
def test_a_line_whose_words_mostly_stand_together_elsewhere_was_reworded(said: str) -> None:
    [line] = outgoing(BANK, after(decisions=f"# Decisions\n\n{said}\n"))

    assert (line.fate, line.where) == ("reworded", "decisions.md")


def test_a_line_that_is_said_nowhere_was_dropped_for_the_reason_that_is_given_for_it() -> None:
    new = after(progress="# Progress\n\n## Done\n\n- Uploads are retried five times\n", decisions="# Decisions\n\n-\n")
    reasons = (
        Reason("progress.md", "the parser reads", "note 2: it was removed"),
        Reason("progress.md", "uploads", "of another line"),
        Reason("decisions.md", "", "the file is obsolete"),
    )

    assert [(line.file, line.fate, line.reason) for line in outgoing(BANK, new, reasons)] == [
        ("decisions.md", "dropped", "the file is obsolete"),
        ("progress.md", "dropped", "note 2: it was removed"),
    ]


def test_headings_fences_rules_and_blank_lines_say_nothing() -> None:
    assert lines_that_say("# A\n\n---\n```sh\nls -l\n```\n| - | - |\n- \n<!-- x -->\ntext\n") == ["ls -l", "text"]


def test_a_bank_of_a_megabyte_is_compared_in_linear_time() -> None:
    lines = [f"- fact {n} concerns module{n % 977} and owner{n % 89}\n" for n in range(35_000)]

    gone = outgoing({"a.md": "".join(lines[:20_000])}, {"a.md": "".join(lines[15_000:])})

    assert len(gone) == 15_000


def test_one_line_does_not_stand_for_a_whole_list() -> None:
    old = {"a.md": "".join(f"- Feature {name} shipped; ticket OPS-{n}\n" for n, name in enumerate("abcdefgh"))}
    names = "".join(f"- The {name} feature was shipped by somebody\n" for name in ("red", "blue", "tall", "new"))

    figures = outgoing(old, {"a.md": "- Each feature shipped; see its OPS ticket\n"})
    words = outgoing({"a.md": names}, {"a.md": "- Each feature was shipped by somebody\n"})

    assert {line.fate for line in figures} == {"dropped"}
    assert [line.fate for line in words].count("reworded") <= 3


def test_many_reasons_are_looked_up_in_no_time() -> None:
    old = {"a.md": "".join(f"- fact {n}\n" for n in range(4_000))}
    gone = outgoing(old, {"a.md": "-\n"}, [Reason("a.md", f"fact {n}", "why") for n in range(4_000)])

    assert gone[7].reason == "why"
