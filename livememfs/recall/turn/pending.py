"""What was captured of the last sessions of a space and is not observed yet: told as it is, so that a session that
begins a second after another knows what that was about. No model is asked.

Owns the choice and the words. What cannot be read in a moment is left out, since an agent that begins waits for this.
Only captures of this machine; those of other hosts are told when they are in the bucket. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

import trio

from livememfs.errors import LiveMemError
from livememfs.recall.turn.inject import in_a_line
from livememfs.records import keys
from livememfs.records.event import EDITS, Event
from livememfs.records.origin import trust_of_event
from livememfs.records.session import last_prompts
from livememfs.records.trust import Trust
from livememfs.text.foreign import Unreadable
from livememfs.text.size import tokens

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock

TITLE = "## Last sessions, not yet summarised (as recorded)"
SESSIONS, EVENTS = 3, 200
"""Sessions that are told, and the last events of each that are looked at."""
KEPT_SECONDS = 7 * 86_400
"""What is older is no news: no model could be asked for long."""
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
        shown: list[str] = []
        for session, _, _ in self.stamp(space):
            about = await self._about(space, session)
            for line in about:
                budget -= tokens(line + "\n")
                if shown and budget < 0:
                    return [TITLE, *shown]
                shown.append(line)
        return [TITLE, *shown] if shown else []

    async def _about(self, space: str, session: str) -> list[str]:
        events = list(_events(self._replica.inbox.lines(space, session, EVENTS)))
        prompts = await self._recorded(space, session)
        prompts += [event.text for event in events if event.kind == "prompt"]
        words = [event for event in events if event.kind == "said"]
        words = [event for event in words if not event.subagent] or words
        # The first prompt says what a session is about; the last ones may all be "go on".
        prompts = prompts if len(prompts) <= PROMPTS else [prompts[0], *prompts[1 - PROMPTS :]]
        lines = [f'- Asked: "{in_a_line(prompt, PROMPT)}"' for prompt in prompts]
        lines += [f'- Last words: "{in_a_line(event.text, WORDS)}"' for event in words[-1:]]
        lines += _done(events)
        if not lines:
            return []
        first = events[0] if events else None
        about = f", {first.agent or 'an agent'}, {first.at:%Y-%m-%d %H:%M} UTC" if first is not None else ""
        return [f"Session {in_a_line(session, 64)}{about}:", *lines]

    async def _recorded(self, space: str, session: str) -> list[str]:
        """The prompts of a session that are in the bucket."""
        key = keys.session_key(space, keys.session_slug(session), keys.PROMPTS)
        with trio.move_on_after(PATIENCE), suppress(LiveMemError):
            return last_prompts((await self._replica.read(key)).data, EVENTS)
        return []


def _events(lines: Sequence[str]) -> Iterator[Event]:
    for line in lines:
        with suppress(Unreadable):
            yield Event.from_json(line)


def _failed(event: Event) -> str:
    """That a use failed, and the tool's word on why; not that of a page, which nobody asked for."""
    if not event.failed:
        return ""
    if trust_of_event(event) is Trust.WEB:
        return " (failed)"
    return f" (failed; tool output: {in_a_line(event.error(), SHORT)})"


def _done(events: Sequence[Event]) -> list[str]:
    """The files that were changed, and the commands that ran, with what failed."""
    changed: list[str] = []
    ran: list[str] = []
    for event in events:
        files = event.files()[1]
        what = event.command() or (
            f"{event.tool} {', '.join(files)}" if event.failed and event.tool.lower() in EDITS else ""
        )
        if what:
            ran.append(f"`{in_a_line(what, SHORT)}`{_failed(event)}")
        elif not event.failed:
            changed += files
    names = list(dict.fromkeys(changed))
    more = f" and {len(names) - FILES} more" if len(names) > FILES else ""
    lines = [f"- Changed: {', '.join(in_a_line(name, SHORT) for name in names[-FILES:])}{more}"] if names else []
    ran = list(dict.fromkeys(ran))
    return lines + ([f"- Ran: {'; '.join(ran[-COMMANDS:])}"] if ran else [])
