"""Prompts without the text that an agent's program puts around them; a tag that is not closed hides the rest."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs.text.harness import asked

REMINDER = "<system-reminder>\nThe date is\n</system-reminder>"
CASES = {
    "a plain prompt": ("Mend the login", "Mend the login"),
    "a reminder before it": (f"{REMINDER}\nMend it", "Mend it"),
    "a reminder behind it": (f"Mend it\n{REMINDER}", "Mend it"),
    "a reminder in it": (f"Mend {REMINDER}it", "Mend it"),
    "a command with its parts": (
        "<command-message>review</command-message>\n<command-name>/review</command-name>"
        "\n<command-args>a.py</command-args>",
        "",
    ),
    "what a command printed": ("<local-command-stdout>ok</local-command-stdout>", ""),
    "a caveat": ("<local-command-caveat>Do not answer</local-command-caveat>Go on", "Go on"),
    "a file that is open": ("<ide_opened_file>The user opened x.py</ide_opened_file>Why?", "Why?"),
    "what is selected": ("<ide_selection>lines 1 to 3</ide_selection>\nWhy?", "Why?"),
    "news of a task": ('<task-notification id="3">done</task-notification>', ""),
    "codex: where it works": ("<environment_context>\n<cwd>/p</cwd>\n</environment_context>", ""),
    "codex: what users want": ("<user_instructions>Be brief</user_instructions>\nMend it", "Mend it"),
    "codex: AGENTS.md": ("# AGENTS.md instructions for /p\n\n<INSTRUCTIONS>\nx\n</INSTRUCTIONS>\n\nMend it", "Mend it"),
    "gemini: what hooks told": ("<hook_context>[left out]\n</hook_context>\n\nMend it", "Mend it"),
    "cursor: a query": ("<user_query>\nMend it\n</user_query>", "Mend it"),
    "never closed": ("Mend it <system-reminder>and so on", "Mend it"),
    "closed by half": ("Mend it <system-reminder>and so on</system-remin", "Mend it"),
    "not even opened to its end": ("Mend it <system-reminder and so on", "Mend it"),
    "nested": ("a <system-reminder>b<system-reminder>c</system-reminder>d</system-reminder> e", "a  e"),
    "nested, one never closed": ("a <system-reminder>b<system-reminder>c</system-reminder>d", "a"),
    "one in another": ("a <system-reminder><ide_selection>b</ide_selection></system-reminder>", "a"),
    "closed and never opened": ("a</system-reminder> b", "a b"),
    "other letters and blanks": ("<System-Reminder >x</ SYSTEM-REMINDER> a", "a"),
    "a tag of the user's own": ("What does <task> mean in <system>?", "What does <task> mean in <system>?"),
    "/clear": ("/clear", ""),
    "/compact with a wish": ("/compact keep the plan", ""),
    "a command of the user's": ("/review", ""),
    "a command of the user's with a wish": ("/review the login", "/review the login"),
    "a path": ("/home/me/a.py is broken", "/home/me/a.py is broken"),
    "nothing": (" \n", ""),
}


@pytest.mark.parametrize("name", CASES)
def test_a_prompt_is_what_the_user_asked(name: str) -> None:
    text, expected = CASES[name]

    assert asked(text) == expected


PIECES = st.lists(
    st.sampled_from(["<system-reminder>", "</system-reminder>", "<ide_selection>", "hidden", "<", ">", "\n"])
)


@given(PIECES)
def test_nothing_behind_a_tag_that_is_open_is_kept(pieces: list[str]) -> None:
    assert "hidden" not in asked("<system-reminder>hidden" + "".join(one for one in pieces if not one.startswith("</")))


def test_a_prompt_of_tags_alone_takes_no_longer_than_its_length() -> None:
    def seconds(number: int) -> float:
        began = time.thread_time()
        asked("<system-reminder" * number)
        return time.thread_time() - began

    assert seconds(40_000) < 40 * seconds(4_000) + 0.2
