"""The observer without a model: one observation for each edit, for each command that changed something, for each
failure, and for each text that the agent said.

Owns which commands change something, and the words of such observations: facts from the tool's own parameters, and the
agent's own words. Tools that only look are skipped. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from livememfs.observing.reply import Draft, ObserverReply
from livememfs.records.event import EDITS, Event, as_text
from livememfs.records.observation import MAX_ITEM, MAX_ITEMS, MAX_TITLE
from livememfs.text.own import basic

NAME = "builtin"
_SAID = "The agent said: "
CHANGED_NOTHING = "changed nothing"
_CHANGING = (
    "rm mv cp mkdir rmdir ln touch chmod chown install truncate patch rsync unzip dd crontab alembic flyway prisma"
)
"""Programs that always change something."""
_CHANGING_WITH = {
    "git": "commit merge rebase push pull cherry-pick revert reset checkout switch mv rm tag stash apply am clone init"
    " add restore",
    "gh": "pr issue release repo",
    "npm pnpm yarn bun": "i install add remove uninstall update upgrade publish link ci",
    "pip pip3 uv poetry pipx conda cargo gem bundle composer brew apt apt-get dnf apk": "pip install add remove"
    " uninstall update upgrade publish sync new init",
    "go": "get install mod",
    "docker": "build run rm compose push pull",
    "kubectl": "apply delete create scale rollout patch",
    "terraform": "apply destroy import",
    "make": "install deploy migrate",
    "systemctl": "start stop restart enable disable",
}
"""Programs that change something with one of these subcommands."""


def _any(words: str) -> str:
    return "|".join(map(re.escape, words.split()))


# Only blanks within one line: if line ends matched too, the time for many empty lines would grow with their square.
_BEFORE = r"(?:^|[;&|({]|\bthen\s|\bdo\s|\bsudo\s|\bxargs\s)[^\S\n]*(?:[A-Z_][A-Z0-9_]*=\S*\s+)*"
_CHANGES = re.compile(
    _BEFORE
    + "(?:"
    + "|".join(
        [
            rf"(?:{_any(_CHANGING)})(?![\w-])",
            r"(?:sed|perl)\s+(?:\S+\s+)?-\w*i",
            r"tar\s+-?\w*x",
            *(
                rf"(?:{_any(programs)})\s+(?:-[A-Za-z]\s+\S+\s+|-\S+\s+){{0,3}}(?:{_any(subcommands)})(?![\w-])"
                for programs, subcommands in _CHANGING_WITH.items()
            ),
        ]
    )
    + ")",
    re.MULTILINE,
)
_INTO_A_FILE = re.compile(r"(?:^|[^0-9&<>=-])>{1,2}\s*(?![&>]|/dev/null)[\w./~$\"'{]|\btee\s+(?!/dev/null)\S")
_STATUS = re.compile(r"(?i)(?:process |command )?(?:exited|failed|exit)? ?(?:with )?(?:exit )?(?:code|status):? \d+\.?")
_MESSAGE = re.compile(r"""\s-[a-z]*m\s*(?:"([^"]+)"|'([^']+)')""")


def observed(events: Sequence[Event]) -> ObserverReply:
    """The observations of a batch, in the form of a model's reply."""
    drafts: list[Draft] = []
    skipped: dict[int, str] = {}
    for number, event in enumerate(events, 1):
        draft = _words(number, event) or _failure(number, event) or _edit(number, event) or _command(number, event)
        if draft is None:
            skipped[number] = CHANGED_NOTHING
        else:
            by = ("A subagent did it",) if event.subagent and event.kind == "tool" else ()
            drafts.append(replace(draft, facts=(*draft.facts, *by)))
    return ObserverReply("ok", tuple(drafts), skipped)


def summary(prompts: Sequence[str], titles: Sequence[str], words: str = "") -> dict[str, str]:
    """What a session came to, as far as that is known without a model: its first prompt, what was done, and the last
    words of the agent.
    """
    completed = "\n".join(f"- {title}" for title in titles if _SAID not in title)
    request = basic(" ".join(prompts[0].split()))[:MAX_ITEM] if prompts else ""
    return {"request": request, "learned": _cut(words, MAX_ITEM), "completed": completed}


def _words(number: int, event: Event) -> Draft | None:
    """What the agent said, one fact for each line."""
    lines = [_cut(line, MAX_ITEM) for line in event.text.splitlines() if line.strip()]
    if event.kind != "said" or not lines:
        return None
    title = f"{'A subagent said: ' if event.subagent else _SAID}{lines[0]}"
    return Draft((number,), "discovery", _cut(title, MAX_TITLE), facts=tuple(lines[:MAX_ITEMS]))


def _failure(number: int, event: Event) -> Draft | None:
    """A command or an edit that failed, with its error. A status alone is none: it may have found nothing."""
    what = event.command() or (", ".join(event.files()[1]) if event.tool.lower() in EDITS else "")
    error = [line.strip() for line in event.error().splitlines() if line.strip()]
    if not event.failed or not what or not [line for line in error if not _STATUS.fullmatch(line)]:
        return None
    return Draft(
        (number,),
        "discovery",
        _cut(f"Failed: {what}", MAX_TITLE),
        facts=(_cut(f"{event.tool}: {what}", MAX_ITEM), _cut(f"Error: {' '.join(error)}", MAX_ITEM)),
    )


def _edit(number: int, event: Event) -> Draft | None:
    if event.tool.lower() not in EDITS or event.failed:
        return None
    _, changed = event.files()
    given = event.input if isinstance(event.input, Mapping) else {}
    names = ", ".join(changed) or "a file"
    verb = "Wrote" if event.tool.lower() in ("write", "write_file", "create", "write_to_file") else "Edited"
    facts = [f"{event.tool} changed {name}" for name in changed]
    for before, after in _replaced(given):
        facts.append(f"{_lines(before)} of {names} became {_lines(after)}")
    return Draft(
        (number,),
        "change",
        _cut(f"{verb} {names}", MAX_TITLE),
        facts=tuple(dict.fromkeys(_cut(fact, MAX_ITEM) for fact in facts))[:8],
    )


def _replaced(given: Mapping[str, object]) -> list[tuple[str, str]]:
    edits = given.get("edits")
    edits = edits if isinstance(edits, list) else [given]
    pairs = [(edit.get("old_string"), edit.get("new_string")) for edit in edits if isinstance(edit, Mapping)]
    return [(before, after) for before, after in pairs if isinstance(before, str) and isinstance(after, str)]


def _lines(text: str) -> str:
    count = len(text.splitlines())
    return f"{count} line{'s' * (count != 1)}"


def _command(number: int, event: Event) -> Draft | None:
    command = event.command()
    if event.failed or not (_CHANGES.search(command) or _INTO_A_FILE.search(command)):
        return None
    message = _MESSAGE.search(command) if re.search(r"\bgit\b.*\bcommit\b", command) else None
    line = " ".join(command.split())
    title = f"Committed: {message[1] or message[2]}" if message else f"Ran {line}"
    facts = (f"Command: {_cut(line, MAX_ITEM - 12)}",)
    purpose = as_text(event.input.get("description")) if isinstance(event.input, Mapping) else ""
    return Draft((number,), "change", _cut(title, MAX_TITLE), _cut(purpose, MAX_ITEM), facts=facts)


def _cut(text: str, limit: int) -> str:
    text = basic(" ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "\u2026"
