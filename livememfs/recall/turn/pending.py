"""What was captured of the last sessions of a space and is not observed yet: told as it is, so that a session that
begins a second after another knows what that was about. No model is asked.

Owns the choice and the words. What is not here in a moment is left out: an agent that begins waits for this. Of this
machine alone; what other hosts have captured is told when it is in the bucket. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from livememfs.errors import LiveMemError
from livememfs.records import keys
from livememfs.records.event import EDITS, Event
from livememfs.records.session import last_prompts
from livememfs.text.foreign import Unreadable
from livememfs.text.size import tokens

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock

TITLE = "## Last sessions, not yet summarised (as recorded)"
SESSIONS, EVENTS = 3, 200
"""Sessions that are told, and the last events of each that are looked at."""
KEPT_SECONDS = 7 * 86_400
"""What is older waits for a model that nobody has asked for long; it is no news."""
PROMPTS, COMMANDS, FILES = 3, 6, 12
WORDS, PROMPT, SHORT = 600, 300, 120
"""Characters of the agent's last words; of a prompt; of a command, of why it failed, and of a name."""
PATIENCE = 0.2


class Pending:
    """What waits in the inbox of one replica."""

    def __init__(self, replica: Replica, clock: Clock) -> None:
        self._replica, self._clock = replica, clock

    def stamp(self, space: str) -> tuple[tuple[str, int, int], ...]:
        """Something that is equal only while nothing has come or gone: sessions, the last one first."""
        since = int(self._clock.now().timestamp()) - KEPT_SECONDS
        return tuple(self._replica.inbox.pending(space, since)[:SESSIONS])

    async def lines(self, space: str, budget: int) -> list[str]:
        """The lines of a page, of about `budget` tokens; none when nothing waits."""
        found: list[str] = []
        for session, _, _ in self.stamp(space):
            about = await self._about(space, session)
            for line in about:
                budget -= tokens(line + "\n")
                if found and budget < 0:
                    return [TITLE, *found]
                found.append(line)
        return [TITLE, *found] if found else []

    async def _about(self, space: str, session: str) -> list[str]:
        events = list(_events(self._replica.inbox.lines(space, session, EVENTS)))
        prompts = await self._recorded(space, session)
        prompts += [one.text for one in events if one.kind == "prompt"]
        words = [one for one in events if one.kind == "said"]
        words = [one for one in words if not one.subagent] or words
        # What a session is about is said at its beginning; what comes after may be three times "go on".
        asked = prompts if len(prompts) <= PROMPTS else [prompts[0], *prompts[1 - PROMPTS :]]
        told = [f'- Asked: "{_short(one, PROMPT)}"' for one in asked]
        told += [f'- Last words: "{_short(one.text, WORDS)}"' for one in words[-1:]]
        told += _done(events)
        if not told:
            return []
        first = events[0] if events else None
        about = f", {first.agent or 'an agent'}, {first.at:%Y-%m-%d %H:%M} UTC" if first is not None else ""
        return [f"Session {_short(session, 64)}{about}:", *told]

    async def _recorded(self, space: str, session: str) -> list[str]:
        """What was asked, as far as it is recorded."""
        key = keys.session_key(space, keys.session_slug(session), keys.PROMPTS)
        with trio.move_on_after(PATIENCE), suppress(LiveMemError):
            return last_prompts((await self._replica.read(key)).data, EVENTS)
        return []


def _events(lines: Sequence[str]) -> Iterator[Event]:
    for line in lines:
        with suppress(Unreadable):
            yield Event.from_json(line)


def _done(events: Sequence[Event]) -> list[str]:
    """The files that were changed, and the commands that ran, with what failed."""
    changed: list[str] = []
    ran: list[str] = []
    for one in events:
        files = one.files()[1]
        what = one.command() or (f"{one.tool} {', '.join(files)}" if one.failed and one.tool.lower() in EDITS else "")
        if what:
            failed = f" (failed: {_short(one.error(), SHORT)})" if one.failed else ""
            ran.append(f"`{_short(what, SHORT)}`{failed}")
        elif not one.failed:
            changed += files
    names = list(dict.fromkeys(changed))
    more = f" and {len(names) - FILES} more" if len(names) > FILES else ""
    told = [f"- Changed: {', '.join(_short(name, SHORT) for name in names[-FILES:])}{more}"] if names else []
    ran = list(dict.fromkeys(ran))
    return told + ([f"- Ran: {'; '.join(ran[-COMMANDS:])}"] if ran else [])


def _short(text: str, most: int) -> str:
    text = " ".join(text.split())
    return text if len(text) <= most else text[: most - 1].rstrip() + "\u2026"
