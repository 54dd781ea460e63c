"""Turns the request of a hook into an event and an answer.

Owns that a hook never fails and never waits long: after any error the answer is the plain one, and a line in
`errors.ndjson` has the reason. Refuses to decide anything for an agent. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.agents import claude, cline, codex, copilot, cursor, gemini, opencode, qwen, windsurf
from livememfs.agents.contract import Contract, Payload, payload, text
from livememfs.agents.transcript import at_end, last_words
from livememfs.concurrency import aside
from livememfs.errors import HookRefused, LiveMemError
from livememfs.records.turn import Turn
from livememfs.text.own import HEAD, basic, without_marks

if TYPE_CHECKING:
    from livememfs.code.workplaces import Workplaces
    from livememfs.observing.capture import Capture, Said
    from livememfs.recall.turn.prehook import Prehook

log = structlog.get_logger("livememfs.agents")

AGENTS = (claude, codex, cursor, gemini, qwen, opencode, copilot, cline, windsurf)
CONTRACTS: dict[str, Contract] = {contract.file: contract for agent in AGENTS for contract in agent.CONTRACTS}
"""The contracts by the names of their files."""
PATIENCE, PAGE_PATIENCE = 2.0, 1.5
"""Most seconds for an answer, since a starting agent waits for it; and for the page in it: after that an older or
shorter page is used.
"""
KEEPING = (claude.CLAUDE, claude.CODEX)
"""Agents that keep, in a resumed session, what they were told at its beginning."""
PLACED = ("start", "prompt", "tool", "said")
"""Events from which something is made that speaks of code."""
REMEMBERED = 256
"""Sessions whose first page is remembered; any other session is told its page again."""


class Hooks:
    """The hooks of one mount.

    `context(space, patience)` gives the context for a model within so many seconds. `trouble()` gives one line on why
    events are not observed; empty while they are. `failed(space, path, error)` is called after an error. `code` hears
    where agents work.
    """

    events = tuple(sorted(CONTRACTS))
    """The names of the files."""

    def __init__(
        self,
        capture: Capture,
        prehook: Prehook,
        context: Callable[[str, float], Awaitable[str]],
        trouble: Callable[[], str],
        failed: Callable[[str, str, LiveMemError], None],
        code: Workplaces | None = None,
    ) -> None:
        self._code = code
        self._capture, self._prehook, self._context = capture, prehook, context
        self._trouble, self._failed = trouble, failed
        self._begun: dict[tuple[str, str], int] = {}
        self._counts = {"requests": 0, "failed": 0, "late": 0}

    async def answer(self, space: str, event: str, request: bytes) -> bytes:
        """The answer to one request of an event. The event is captured when this returns."""
        contract, path = CONTRACTS[event], f"{space}/.hooks/{event}"
        self._counts["requests"] += 1
        try:
            given = await aside(len(request), lambda: payload(request, path=path))
            said = await self._placed(space, await self._whole(given, contract.said(given)))
            said = await self._capture.take(space, said)
            self._capture.heard(space, said)
            with trio.move_on_after(PATIENCE) as waiting:
                if contract.forgets(given):
                    await self._prehook.forget(space, said.session)
                return contract.answer(await self._told(space, contract, given, said)).encode()
            self._counts["late"] += waiting.cancelled_caught
        except LiveMemError as error:
            self._went_wrong(space, path, error)
        except Exception as error:  # a bug here must not stop an agent
            log.exception("a hook failed", hook=event)
            self._went_wrong(space, path, HookRefused(path=path, detail=f"{type(error).__name__}: {error}"))
        return contract.plain.encode()

    async def _placed(self, space: str, said: Said) -> Said:
        """The event, with the repository, branch and commit that its agent works on now."""
        if self._code is None or not said.project:
            return said
        self._code.heard(space, said.session, said.project)
        if said.skipped or said.kind not in PLACED:
            return said
        place = await self._code.place((said.project,))
        return replace(said, repository=place.repository, branch=place.branch, commit=place.commit)

    async def _whole(self, given: Payload, said: Said) -> Said:
        """The event, completed from the transcript where only that has the last words or an exit code."""
        path, mounted = text(given, "transcript_path", "transcriptPath"), self._capture.settings.mounted
        if codex.leaves_open(said):
            return replace(said, failed=await at_end(path, partial(codex.ended_badly, said.id), False, mounted))
        if said.kind != "stop" or said.skipped or said.text:
            return said
        return replace(said, text=await last_words(path, mounted))

    async def _told(self, space: str, contract: Contract, given: Payload, said: Said) -> str:
        """The context for the answer; empty for none."""
        if contract.wants == "context":
            return await self._page(space, said)
        if contract.wants == "recall" and not said.skipped:
            begins = contract.begins and (space, said.session) not in self._begun
            page = await self._page(space, said) if begins else ""
            turn = Turn(said.text, session=said.session, folder=said.project)
            return page + (await self._prehook.turn(space, turn)).block
        if contract.wants == "file" and (path := contract.path(given)):
            return await self._prehook.file(space, said.session, path, said.project)
        return ""

    async def _page(self, space: str, said: Said) -> str:
        """The page for the beginning of a session."""
        trouble, page = self._trouble(), await self._context(space, PAGE_PATIENCE)
        warning = f"Warning from livememfs: {basic(without_marks(trouble))}\n\n" if trouble else ""
        return self._once(space, said, page.replace(f"{HEAD}\n", f"{HEAD}\n{warning}", 1))

    def _once(self, space: str, said: Said, page: str) -> str:
        """The page, or nothing if the resumed session already has exactly this page."""
        place, number = (space, said.session), hash(page)
        known = self._begun.pop(place, None) == number and said.text == "resume" and said.agent in KEEPING
        self._begun[place] = number
        while len(self._begun) > REMEMBERED:
            del self._begun[next(iter(self._begun))]
        return "" if known else page

    def _went_wrong(self, space: str, path: str, error: LiveMemError) -> None:
        self._counts["failed"] += 1
        self._failed(space, path, error)

    def statistics(self) -> dict[str, int]:
        """Counts of requests, of failed ones, and of those answered without a part that was too late."""
        return dict(self._counts)
