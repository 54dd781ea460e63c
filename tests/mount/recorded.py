"""A session of Claude Code as its hooks tell it: what they are called with, and what is to become of each call.

Owns the payloads, the fate of each, and the list of what in them is private. All of it is made up; credentials are put
together from parts, so that nobody who looks for some takes them for real. Pure.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from livememfs.observing.capture import NOISY, NOT_OBSERVED, NOTIFICATION, ONLY_OURS, SUBAGENT

SESSION = "0b6f5a52-7c1e-4f0e-9a55-3f7f6f1f2d11"
PROJECT = "/home/anna/shop"
TRANSCRIPT = f"/home/anna/.claude/projects/-home-anna-shop/{SESSION}.jsonl"
SUBAGENT_ID = "a4f0c2d1"
MODULES = ("login", "basket", "orders", "prices", "stock", "mails", "search", "export", "admin", "coupons")
HUGE = 2 << 20
HALF = "\ud83d"
"""The first half of an emoji, as JSON can spell it."""
KEPT, REPEATED, FAILED = "kept", "repeated", "failed"


def _jwt() -> str:
    parts = [json.dumps(one).encode() for one in ({"alg": "HS256", "typ": "JWT"}, {"sub": "anna", "role": "owner"})]
    return ".".join([*(base64.urlsafe_b64encode(one).decode().rstrip("=") for one in parts), "q7Rz" * 10])


KEY_LINE = "MIIEvQIBADANBgkqhkiG9w0" + "BAQEFAASCBKcwggSjAgEAAoIBAQ"
CREDENTIALS = {
    "github": "gh" + "p_" + "aB3" * 12,
    "anthropic": "sk-" + "ant-" + "api03-Qx7" * 5,
    "aws": "AK" + "IA" + "Z7QWERTYUIOP2345",
    "slack": "xo" + "xb-" + "4821-9931-" + "kQ2w" * 6,
    "stripe": "sk" + "_live_" + "51Hq" * 6,
    "google": "AI" + "za" + "Sy8Kd3" * 6,
    "npm": "np" + "m_" + "Zt5" * 12,
    "sendgrid": "SG" + "." + "h4Jk" * 5 + "." + "pL0s" * 8,
    "jwt": _jwt(),
    "url": "correct-horse-77",
    "bearer": "f00dfeed" * 5,
    "named": "violet-otter-19",
    "key": KEY_LINE,
}
"""What is recognised as a credential, by where it comes from."""
SECRETS = {
    "a block in a prompt": "the launch is on the ninth of May",
    "a block with emoji": "la marge à Évreux est de 41 pour cent",
    "an unclosed block": "the landlord wants the house back",
    "a block in a field": "the merger is called Nightjar",
}
"""What stands in `<private>` blocks."""
PRIVATE = (*CREDENTIALS.values(), *SECRETS.values())
PUBLIC = "every basket keeps its currency"
"""Said in a prompt and in outputs, and nothing private: it is to be found wherever private things are looked for."""


@dataclass(frozen=True)
class Call:
    """One call of a hook.

    :fate: `kept`, `repeated` or `failed`; for what is only counted, why
    """

    event: str
    request: bytes
    fate: str = KEPT

    @property
    def tool(self) -> str:
        """The name of the tool, of an event that has one."""
        try:
            return str(json.loads(self.request).get("tool_name", ""))
        except ValueError:
            return ""


def recorded(space: Path, context: str) -> list[Call]:
    """The session's calls. `space` is where its memory is mounted, `context` what its `context.md` says."""
    return list(_Session(space, context).calls())


def fates(calls: list[Call]) -> Counter[str]:
    """How many calls have which fate."""
    return Counter(call.fate for call in calls)


class _Session:
    """The making of the calls."""

    def __init__(self, space: Path, context: str) -> None:
        self.space, self.context = space, context
        self.used = 0

    def calls(self) -> Iterator[Call]:
        yield self._call("SessionStart", source="startup")
        for number, module in enumerate(MODULES):
            yield from self._turn(number, module)
            if module == "orders":
                yield self._call("SessionStart", source="resume")
            if module == "stock":
                yield self._call("PreCompact", NOT_OBSERVED, trigger="auto")
                yield self._call("SessionStart", source="compact")
        yield from self._private_turn()
        yield from self._turn_with_subagent()
        yield from self._turn_about_ourselves()
        yield self._call("Stop", stop_hook_active=False)
        yield self._call("Stop", REPEATED, stop_hook_active=True)
        yield self._call("SessionEnd", reason="prompt_input_exit")

    # --- turns ------------------------------------------------------------------------------------------------------

    def _turn(self, number: int, module: str) -> Iterator[Call]:
        """Somebody asks for something; it is read, mended and tried."""
        file = f"{PROJECT}/src/{module}.py"
        yield self._prompt(f"Mend the rounding in {module}: {PUBLIC} 🧺")
        yield self._before("Read", file_path=file)
        yield self._used("Read", {"file_path": file}, {"type": "text", "file": {"content": f"# {module}\n" * 40}})
        yield self._used("Grep", {"pattern": f"round_{module}", "path": PROJECT}, {"numFiles": number + 1})
        yield self._used(
            "Edit", {"file_path": file, "old_string": "round(x)", "new_string": f"cents({number})"}, {"filePath": file}
        )
        if number % 2:
            edits = [{"old_string": "a", "new_string": "b"}, {"old_string": "c", "new_string": "d"}]
            yield self._used("MultiEdit", {"file_path": file, "edits": edits}, {"filePath": file})
        else:
            test = f"{PROJECT}/tests/test_{module}.py"
            yield self._used("Write", {"file_path": test, "content": f"def test_{module}(): ..."}, {"type": "create"})
            yield self._used("Glob", {"pattern": f"**/*{module}*"}, {"filenames": [file, test], "truncated": False})
        yield self._used("TodoWrite", {"todos": [{"content": module, "status": "done"}]}, {"newTodos": []}, NOISY)
        command = f"pytest -q tests/test_{module}.py"
        yield self._used("Bash", {"command": command}, _ran(f"{number + 1} passed; {PUBLIC} {HALF}\n"))
        yield self._call("Stop", stop_hook_active=False)

    def _private_turn(self) -> Iterator[Call]:
        """All that must be nowhere."""
        secret, known = SECRETS, CREDENTIALS
        yield self._prompt(
            f"Deploy it. <private>{secret['a block in a prompt']}</private> Use {known['github']} for the release,"
            f" <PRIVATE >🤫 {secret['a block with emoji']} 🤫</ private> please."
        )
        url = f"postgres://shop:{known['url']}@db.example:5432/shop"
        yield self._before("Bash", command=f"psql {url}")
        yield self._used("Bash", {"command": f"psql {url} -c 'select 1'"}, _ran(f"connected to {url}\n"))
        header = f"curl -H 'Authorization: Bearer {known['bearer']}' https://api.example/v1"
        yield self._used("Bash", {"command": header}, _ran(json.dumps({"session": known["jwt"]})))
        pem = f"-----BEGIN PRIVATE KEY-----\n{KEY_LINE}\n{KEY_LINE}\n-----END PRIVATE KEY-----\n"
        env = f"AWS_ACCESS_KEY_ID={known['aws']}\nSTRIPE={known['stripe']}\nANTHROPIC_API_KEY={known['anthropic']}\n"
        yield self._used("Write", {"file_path": f"{PROJECT}/.env", "content": env + pem}, {"type": "create"})
        yield self._used("Read", {"file_path": f"{PROJECT}/.env"}, {"file": {"content": env + pem, "numLines": 7}})
        noise = f"{PUBLIC}\n" * (HUGE // 2 // len(PUBLIC))
        huge = "\n".join((known["npm"], noise, known["google"], noise, known["sendgrid"]))
        yield self._used("Bash", {"command": "cat build.log"}, _ran(huge))
        opened = f"before <private>{secret['an unclosed block']}\nand nobody closes it"
        yield self._used("Bash", {"command": "cat notes.txt"}, _ran(opened))
        page = {"url": f"https://hooks.example/?key={known['google']}", "prompt": "Is it up?"}
        yield self._used("WebFetch", page, {"code": 200, "result": "It is up.", "bytes": 9})
        failed = {"tool_name": "Bash", "tool_input": {"command": "npm publish"}, "tool_use_id": self._next_id()}
        error = f"Exit code 1\nbad token {known['npm']}"
        yield self._call("PostToolUseFailure", **failed, error=error, is_interrupt=False)
        message = {"channel": "C1", "token": known["slack"], "auth": {"password": known["named"]}}
        yield self._used("mcp__slack__post_message", message, [{"type": "text", "text": f"sent with {known['slack']}"}])
        note = {"file_path": f"{PROJECT}/n.md", "content": f"<private>{secret['a block in a field']}</private>"}
        again = self._used("Write", note, {"type": "create"})
        yield again
        yield Call(again.event, again.request, REPEATED)
        broken = again.request[:-9]
        yield Call("PostToolUse", broken, FAILED)
        yield self._call("Stop", stop_hook_active=False)

    def _turn_with_subagent(self) -> Iterator[Call]:
        """A subagent looks around, stops, and says so in a prompt."""
        yield self._prompt("Have somebody look for slow queries")
        yield self._before("Task", description="slow queries")
        by = {"agent_id": SUBAGENT_ID, "agent_type": "Explore"}
        yield self._used("Grep", {"pattern": "SELECT"}, {"numFiles": 3}, **by)
        yield self._used("Bash", {"command": "grep -rn N+1"}, _ran("orders.py:41\n"), **by)
        yield self._call("SubagentStop", SUBAGENT, stop_hook_active=False, **by)
        yield self._call("Stop", SUBAGENT, stop_hook_active=False, **by)
        yield self._used("Task", {"prompt": "find slow queries"}, {"content": [{"type": "text", "text": "orders:41"}]})
        yield self._prompt(f"<task-notification>{SUBAGENT_ID} is done</task-notification>", NOTIFICATION)
        yield self._call("Notification", NOT_OBSERVED, message=f"<private>{SECRETS['a block in a field']}</private>")
        yield self._call("Stop", stop_hook_active=False)

    def _turn_about_ourselves(self) -> Iterator[Call]:
        """Our own context is pasted, read and printed."""
        yield self._prompt(f"This is what you were told:\n{self.context}\nIs it true?")
        page = str(self.space / "context.md")
        yield self._before("Read", file_path=page)
        yield self._used("Read", {"file_path": page}, {"file": {"content": self.context}}, ONLY_OURS)
        yield self._used("Bash", {"command": "cat context.md"}, _ran(f"so it says: {self.context}\n"))

    # --- calls ------------------------------------------------------------------------------------------------------

    def _call(self, event: str, fate: str = KEPT, **fields: Any) -> Call:
        common = {"session_id": SESSION, "transcript_path": TRANSCRIPT, "cwd": PROJECT, "hook_event_name": event}
        return Call(event, json.dumps({**common, **fields}).encode(), fate)

    def _prompt(self, text: str, fate: str = KEPT) -> Call:
        return self._call("UserPromptSubmit", fate, prompt=text)

    def _before(self, tool: str, **given: str) -> Call:
        return self._call("PreToolUse", NOT_OBSERVED, tool_name=tool, tool_input=given, tool_use_id=self._next_id())

    def _used(self, tool: str, given: Mapping[str, Any], gave: Any, fate: str = KEPT, **more: str) -> Call:
        fields = {"tool_name": tool, "tool_input": given, "tool_response": gave, "tool_use_id": self._next_id()}
        return self._call("PostToolUse", fate, **fields, **more)

    def _next_id(self) -> str:
        self.used += 1
        return f"toolu_{self.used:04d}"


def _ran(said: str) -> dict[str, Any]:
    """What Bash gives."""
    return {"stdout": said, "stderr": "", "interrupted": False, "isImage": False}
