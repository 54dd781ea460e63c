"""What a user asked, without the text that the agent's own program put around it: reminders, commands of its prompt,
what the editor shows, news of tasks.

Owns the names of the tags of such text. Fails closed: a tag that is never closed hides all of the prompt behind it.
Pure; any thread.
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
    r"hook_context",  # where Gemini CLI puts the output of hooks
)
_TAG = re.compile(rf"<(/?)\s*({'|'.join(_NAMES)})\b[^>]*(/?)>?", re.IGNORECASE)
_AGENTS_FILE = re.compile(r"^# AGENTS\.md instructions for [^\n]*\n+<INSTRUCTIONS>.*?(?:</INSTRUCTIONS>|\Z)", re.DOTALL)
_WRAPPED = re.compile(r"</?user_query>")
_COMMAND = re.compile(r"/[\w:.-]+")
_OWN_COMMANDS = (
    "add-dir agents chat clear compact compress config context cost doctor effort exit export fast fork help hooks ide"
    " init login logout mcp memory model new permissions plugin quit resume rewind settings stats status usage"
)
"""Commands of an agent's prompt that the program answers, and not the model."""


def asked(text: str) -> str:
    """What the user asked; empty for a prompt in which the user asked nothing."""
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
    question = "".join(kept).strip()
    return "" if _is_command(question) else question


def _is_command(text: str) -> bool:
    """Whether this is a command to the program: any command without arguments, or one of `_OWN_COMMANDS`."""
    command = _COMMAND.match(text)
    return command is not None and (
        command.end() == len(text) or text[1:].split(maxsplit=1)[0] in _OWN_COMMANDS.split()
    )
