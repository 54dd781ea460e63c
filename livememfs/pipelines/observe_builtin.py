"""The observer without a model: one observation for each edit, and for each command that changed something.

Owns which commands change something, and the words of such observations: facts alone, which the tool's own parameters
state. What only looks is skipped with that reason. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from livememfs.pipelines.observe_reply import Draft, Reply
from livememfs.records.event import EDITS, Event, as_text
from livememfs.records.observation import MAX_ITEM, MAX_TITLE
from livememfs.records.own import basic

NAME = "builtin"
CHANGED_NOTHING = "changed nothing"
SHELLS = frozenset(
    {"bash", "shell", "local_shell", "exec_command", "aftershellexecution", "run_terminal_cmd", "unified_exec"}
)
_CHANGING = (
    "rm mv cp mkdir rmdir ln touch chmod chown install truncate patch rsync unzip dd crontab alembic flyway prisma"
)
"""Programs that change something whatever they are asked for."""
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
"""Programs that change something when they are asked for one of these."""


def _any(words: str) -> str:
    return "|".join(map(re.escape, words.split()))


# Blanks of one line alone: over the ends of lines, each of many empty lines would look through all the others.
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
                rf"(?:{_any(one)})\s+(?:-[A-Za-z]\s+\S+\s+|-\S+\s+){{0,3}}(?:{_any(with_)})(?![\w-])"
                for one, with_ in _CHANGING_WITH.items()
            ),
        ]
    )
    + ")",
    re.MULTILINE,
)
_INTO_A_FILE = re.compile(r"(?:^|[^0-9&<>=-])>{1,2}\s*(?![&>]|/dev/null)[\w./~$\"'{]|\btee\s+(?!/dev/null)\S")
_MESSAGE = re.compile(r"""\s-[a-z]*m\s*(?:"([^"]+)"|'([^']+)')""")


def observed(events: Sequence[Event]) -> Reply:
    """What is to be said of a batch."""
    drafts: list[Draft] = []
    skipped: dict[int, str] = {}
    for number, event in enumerate(events, 1):
        draft = _edit(number, event) or _command(number, event)
        if draft is None:
            skipped[number] = CHANGED_NOTHING
        else:
            drafts.append(draft)
    return Reply("ok", tuple(drafts), skipped)


def summary(prompts: Sequence[str], titles: Sequence[str]) -> dict[str, str]:
    """What a session came to, as far as it is known without a model: what was asked, and what was done."""
    done = "\n".join(f"- {one}" for one in titles)
    return {"request": basic(" ".join(prompts[0].split()))[:MAX_ITEM] if prompts else "", "completed": done}


def _edit(number: int, event: Event) -> Draft | None:
    if event.tool not in EDITS:
        return None
    _, changed = event.files()
    given = event.input if isinstance(event.input, Mapping) else {}
    names = ", ".join(changed) or "a file"
    verb = "Wrote" if event.tool in ("Write", "write_file") else "Edited"
    facts = [f"{event.tool} changed {name}" for name in changed]
    for before, after in _replaced(given):
        facts.append(f"{_lines(before)} of {names} became {_lines(after)}")
    return Draft(
        (number,),
        "change",
        _cut(f"{verb} {names}", MAX_TITLE),
        facts=tuple(dict.fromkeys(_cut(one, MAX_ITEM) for one in facts))[:8],
    )


def _replaced(given: Mapping[str, object]) -> list[tuple[str, str]]:
    edits = given.get("edits")
    found = edits if isinstance(edits, list) else [given]
    pairs = [(one.get("old_string"), one.get("new_string")) for one in found if isinstance(one, Mapping)]
    return [(before, after) for before, after in pairs if isinstance(before, str) and isinstance(after, str)]


def _lines(text: str) -> str:
    count = len(text.splitlines())
    return f"{count} line{'s' * (count != 1)}"


def _command(number: int, event: Event) -> Draft | None:
    if event.tool.lower() not in SHELLS or not isinstance(event.input, Mapping):
        return None
    given = event.input.get("command")
    command = " ".join(map(str, given)) if isinstance(given, list) else given
    if not isinstance(command, str) or not (_CHANGES.search(command) or _INTO_A_FILE.search(command)):
        return None
    message = _MESSAGE.search(command) if re.search(r"\bgit\b.*\bcommit\b", command) else None
    line = " ".join(command.split())
    title = f"Committed: {message[1] or message[2]}" if message else f"Ran {line}"
    facts = [f"Command: {_cut(line, MAX_ITEM - 12)}"]
    said = as_text(event.input.get("description"))
    return Draft((number,), "change", _cut(title, MAX_TITLE), _cut(said, MAX_ITEM), facts=tuple(facts))


def _cut(text: str, limit: int) -> str:
    text = basic(" ".join(text.split()))
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "\u2026"
