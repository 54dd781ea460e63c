"""What a user asked, without what the agent's own program wrote around it: reminders, commands of its prompt, what the
editor shows, news of tasks.

Owns the names of such tags. Fails closed: what a tag opens and nobody closes goes to the end of the prompt, as what
stands there may be anything. Pure; any thread.
"""

from __future__ import annotations

import re

_NAMES = (
    r"system[-_]reminder",
    r"command-(?:name|message|args|contents)",
    r"(?:local-command|bash)-(?:stdout|stderr|caveat|input|notification)",
    r"ide_(?:opened_file|selection|diagnostics)",
    r"(?:task|system)[-_]notification",
    r"environment_(?:context|details)|user_instructions|user-prompt-submit-hook|turn_aborted",
    r"hook_context",  # Gemini CLI puts there what hooks told
)
_TAG = re.compile(rf"<(/?)\s*({'|'.join(_NAMES)})\b[^>]*(/?)>?", re.IGNORECASE)
_AGENTS_FILE = re.compile(r"^# AGENTS\.md instructions for [^\n]*\n+<INSTRUCTIONS>.*?(?:</INSTRUCTIONS>|\Z)", re.DOTALL)
_WRAPPED = re.compile(r"</?user_query>")
_COMMAND = re.compile(r"/[\w:.-]+")
_OWN_COMMANDS = (
    "add-dir agents chat clear compact compress config context cost doctor effort exit export fast fork help hooks ide"
    " init login logout mcp memory model new permissions plugin quit resume rewind settings stats status usage"
)
"""Commands of an agent's prompt that ask the program for something, and not the model."""


def asked(text: str) -> str:
    """What the user asked; empty for a prompt in which nobody asked anything."""
    kept, depth, at = [], 0, 0
    text = _WRAPPED.sub("", _AGENTS_FILE.sub("", text))
    for tag in _TAG.finditer(text):
        if not depth:
            kept.append(text[at : tag.start()])
        at = tag.end()
        if tag[1]:
            depth = max(depth - 1, 0)
        elif not tag[3]:
            depth += 1
    if not depth:
        kept.append(text[at:])
    found = "".join(kept).strip()
    return "" if _is_command(found) else found


def _is_command(text: str) -> bool:
    """Whether it is a command of the program's own: one without anything beside it, or one of those that are known."""
    command = _COMMAND.match(text)
    return command is not None and (
        command.end() == len(text) or text[1:].split(maxsplit=1)[0] in _OWN_COMMANDS.split()
    )
