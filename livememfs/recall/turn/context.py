"""`context.md`: what to put before a model that knows nothing yet, and what was observed around an observation.

Owns the choice of what is told, its order and its budget; a page does not change while its space does not. What is
captured and not observed yet comes from `pending`. Refuses to wait long for the bucket where an older page is here: an
agent that begins waits for this. Trio thread only.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import structlog
import trio

from livememfs.code.anchor import Claim
from livememfs.code.checking import CodeVerdict
from livememfs.code.workplaces import FOR_A_PAGE, Workplaces
from livememfs.concurrency import A_NAME, aside, in_thread
from livememfs.errors import LiveMemError, NotText, ObjectMissing
from livememfs.recall.turn.allowed import WebAllowed
from livememfs.recall.turn.bycode import marked
from livememfs.recall.turn.inject import in_a_line
from livememfs.recall.turn.pending import Pending
from livememfs.recall.turn.superseded import standing
from livememfs.recall.turn.timeline import fitting, legend, timeline
from livememfs.records import keys
from livememfs.records.memory import Memory
from livememfs.records.observation import Observation
from livememfs.records.session import Summary
from livememfs.records.trust import Trust, trust_of
from livememfs.text.own import END, HEAD, basic, fenced
from livememfs.text.size import cut_to, tokens

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock

log = structlog.get_logger("livememfs.recall")

BUDGET = 2_000
"""Estimated tokens of a page."""
OBSERVATIONS_READ, READ_AT_ONCE = 80, 16
AROUND = 8
"""Observations shown on each side of one."""
PINNED = 10
"""Most lines of who somebody is, and of what they want."""
SHARE = 0.2
"""Of the budget, for each of who somebody is, what they want, and the last session."""
PENDING_SHARE = 0.3
"""Of the budget, for what is not observed yet."""
SHOWN_CHARACTERS = 400
SUMMARIES_TRIED = 4
PATIENCE, AGAIN_SECONDS = 5.0, 10.0
"""Seconds that the bucket may take; seconds without asking it again when it took longer, or failed."""
_SUMMED_UP = (("request", "Asked"), ("learned", "Learned"), ("completed", "Done"), ("next_steps", "Next"))


@dataclass(frozen=True)
class _Known:
    """What a page tells of the bucket, what that was read from, and the page.

    :sessions: those that were observed last, of which one's summary is told
    :pinned:   keys of the memories it tells, of which some may end
    :claims:   what those of `identity`, `wishes` and `observations` say of code, in this order
    :checked:  what came of it
    :waits:    what was not observed
    """

    stamp: object = None
    sessions: tuple[str, ...] = ()
    pinned: tuple[str, ...] = ()
    identity: Sequence[str] = ()
    wishes: Sequence[str] = ()
    summary: str = ""
    observations: Sequence[Observation] = ()
    claims: Sequence[Claim | None] = ()
    checked: Sequence[CodeVerdict] = ()
    waits: object = None
    text: str = ""


class ContextPages:
    """The pages of one bucket. `mounted` is where its spaces are seen by agents, or the one space `alone`; empty
    without a mount. `code` knows in which code they work.
    """

    def __init__(
        self,
        replica: Replica,
        clock: Clock,
        *,
        mounted: str = "",
        alone: str = "",
        budget: int = BUDGET,
        code: Workplaces | None = None,
    ) -> None:
        self._alone = alone
        self._code = code or Workplaces()
        self._replica, self._clock, self._mounted, self.budget = replica, clock, mounted, budget
        self._pending, self._web = Pending(replica, clock), WebAllowed(replica)
        self._pages: dict[str, _Known] = {}
        self._parsed: dict[str, tuple[str, Observation]] = {}
        self._kinds: dict[str, tuple[object, list[str]]] = {}
        self._making: dict[str, trio.Lock] = {}
        self._failed: dict[str, float] = {}
        self._counts = {"asked": 0, "made": 0, "failed": 0}

    async def page(self, space: str, patience: float = PATIENCE) -> str:
        """`context.md` of a space. Where the bucket cannot be asked, or takes longer than `patience` seconds, the page
        says of the bucket what the last page said. Raises nothing of the store's.
        """
        self._counts["asked"] += 1
        async with self._making.setdefault(space, trio.Lock()):
            if self._failed.get(space, -math.inf) + AGAIN_SECONDS <= trio.current_time():
                try:
                    with trio.fail_after(patience):
                        return await self._page(space)
                except (LiveMemError, trio.TooSlowError) as error:
                    self._counts["failed"] += 1
                    self._failed[space] = trio.current_time()
                    log.info("context cannot be brought up to date", space=space, reason=str(error))
            return await self._told(space, self._pages.get(space) or _Known())

    def last(self, space: str) -> str:
        """The page as it was made last; empty when none was. Asks nobody."""
        known = self._pages.get(space)
        return known.text if known is not None else ""

    async def _page(self, space: str) -> str:
        known, now = self._pages.get(space), self._clock.now()
        lasts = known is not None and not any(keys.has_ended(key, now) for key in known.pinned)
        if known is not None and lasts and known.stamp == await self._stamp(space, known.sessions):
            return await self._told(space, known)
        self._counts["made"] += 1
        observations = [each for each in await self._newest(space) if await self._may_tell(space, each.trust)]
        observations = standing(observations)
        sessions = tuple(dict.fromkeys(each.session for each in observations if each.session))[:SUMMARIES_TRIED]
        stamp = await self._stamp(space, sessions)  # before it is read: what changes meanwhile is seen the next time
        who, wishes = await self._chosen(space, "identity"), await self._chosen(space, "")
        (identity, who_claims), (wanted, claims) = await self._texts(space, who), await self._texts(space, wishes)
        summary = await self._last_summary(space, sessions)
        claims = [*who_claims, *claims, *(Claim.of_fields(each.extra) for each in observations)]
        self._pages[space] = _Known(stamp, sessions, (*who, *wishes), identity, wanted, summary, observations, claims)
        return await self._told(space, self._pages[space])

    async def _told(self, space: str, known: _Known) -> str:
        """The page of what is known of the bucket, with what is not observed by now."""
        waits = self._pending.stamp(space)
        checked = await self._code.verdicts(self._code.folders(space), known.claims, FOR_A_PAGE)
        if known.text and known.waits == waits and known.checked == checked:
            return known.text
        pending = await self._pending.lines(space, int(self.budget * PENDING_SHARE)) if waits else []
        text = fenced(self._whole(space, _by_code(known, checked), pending))
        if space in self._pages:
            self._pages[space] = replace(known, waits=waits, checked=checked, text=text)
        return text

    async def _stamp(self, space: str, sessions: Sequence[str]) -> object:
        """Something that is equal only while nothing that a page is made from has changed."""
        top = await self._replica.names.listing(f"{space}/")
        parts: list[object] = [await self._web.of(space)]
        for folder in (keys.OBSERVATIONS, *keys.COLLECTIONS):
            if folder in top.folders:
                parts.append((folder, (await self._replica.names.listing(f"{space}/{folder}/")).serial))
        for session in sessions:
            level = await self._replica.names.listing(keys.session_prefix(space, keys.session_slug(session)))
            info = level.objects.get(keys.SUMMARY)
            parts.append((session, info.etag if info is not None else ""))
        return tuple(parts)

    # --- what there is ------------------------------------------------------------------------------------------

    async def _newest(self, space: str, most: int = OBSERVATIONS_READ) -> list[Observation]:
        """The newest observations, newest first."""
        names = await self._names(space)

        def newest() -> list[str]:
            good = (name for name in sorted(names, reverse=True) if keys.MemoryName.parse(name) is not None)
            return list(islice(good, most))  # of ten thousand, few are looked at

        return await self._read(space, await aside(len(names) * A_NAME, newest))

    async def _names(self, space: str) -> list[str]:
        """Names in the folder of observations."""
        top = await self._replica.names.listing(f"{space}/")
        if keys.OBSERVATIONS not in top.folders:
            return []
        return list((await self._replica.names.listing(keys.observations_prefix(space))).objects)

    async def _read(self, space: str, names: Sequence[str]) -> list[Observation]:
        prefix = keys.observations_prefix(space)
        level = await self._replica.names.listing(prefix)
        etags = {name: level.objects[name].etag for name in names if name in level.objects}
        missing = [name for name, etag in etags.items() if self._parsed.get(prefix + name, ("",))[0] != etag]
        for start in range(0, len(missing), READ_AT_ONCE):
            # Kept by portions: after a timeout of a slow store, the next call goes on from there.
            portion = [prefix + name for name in missing[start : start + READ_AT_ONCE]]
            for key, stored in (await self._replica.read_many(portion)).items():
                with suppress(NotText):
                    parsed = Observation.parse(stored.data, path=key, name=key.removeprefix(prefix))
                    self._parsed[key] = etags[key.removeprefix(prefix)], parsed
        while len(self._parsed) > 4 * OBSERVATIONS_READ:
            self._parsed.pop(next(iter(self._parsed)))
        return [self._parsed[prefix + name][1] for name in etags if prefix + name in self._parsed]

    async def _last_summary(self, space: str, sessions: Sequence[str]) -> str:
        """What the last of these sessions that has a summary came to, as lines; empty when none has."""
        for session in sessions:
            key = keys.session_key(space, keys.session_slug(session), keys.SUMMARY)
            with suppress(ObjectMissing, NotText):
                last = Summary.parse((await self._replica.read(key)).data, path=key)
                lines = [f"- {word}: {_sentence(text)}" for name, word in _SUMMED_UP if (text := getattr(last, name))]
                if lines and await self._may_tell(space, last.whose):
                    about = ", ".join(filter(None, (f"{last.created_at:%Y-%m-%d}", last.whose.mark)))
                    return "\n".join([f"## Last session ({about})", *lines])
        return ""

    async def _chosen(self, space: str, kind: str) -> list[str]:
        """Keys of memories: of who somebody is, or of what they want."""
        folders = (keys.MEMORIES, keys.SELF) if kind else (keys.GOALS,)
        top, now = await self._replica.names.listing(f"{space}/"), self._clock.now()
        named = [key for folder in folders if folder in top.folders for key in await self._named(space, folder, kind)]
        lasting = (key for key in named if not keys.has_ended(key, now))
        return sorted(lasting, key=lambda key: key.rpartition("/")[2])[-PINNED:]

    async def _named(self, space: str, folder: str, kind: str) -> list[str]:
        """Keys of a folder's memories, of one kind where it has several. Kept: few of a hundred thousand are of it."""
        prefix = f"{space}/{folder}/"
        level = await self._replica.names.listing(prefix)
        serial, named = self._kinds.get(prefix, (None, []))
        if serial != level.serial:
            marker = f"_{kind}_" if folder == keys.MEMORIES else ""
            parsed = ((name, keys.MemoryName.parse(name)) for name in level.objects if marker in name)
            named = [
                prefix + name for name, memory in parsed if memory is not None and (not marker or memory.type == kind)
            ]
            self._kinds[prefix] = level.serial, named
        return named

    async def _may_tell(self, space: str, trust: Trust) -> bool:
        return trust > Trust.WEB or await self._web.of(space)

    async def _texts(self, space: str, named: Sequence[str]) -> tuple[list[str], list[Claim | None]]:
        """What memories say, and what that says of code."""
        objects = await self._replica.read_many(named)
        texts, claims = list[str](), list[Claim | None]()
        for key in named:
            if key in objects:
                collection, _, name = keys.parse(key).name.partition("/")
                with suppress(NotText):
                    memory = Memory.parse(objects[key].data, path=key, collection=collection, name=name)
                    trust = trust_of(objects[key].info.meta, memory.said_of_trust)
                    if not memory.forgotten and memory.content.strip() and await self._may_tell(space, trust):
                        mark = f"({trust.mark}) " if trust.mark else ""
                        texts.append(mark + in_a_line(memory.content, SHOWN_CHARACTERS))
                        claims.append(Claim.of_fields(memory.extra))
        return texts, claims

    # --- the page -----------------------------------------------------------------------------------------------

    def _whole(self, space: str, known: _Known, pending: Sequence[str]) -> str:
        inside = "" if space == self._alone else f"{space}/"
        where = f"{self._mounted}/{inside}" if self._mounted else ""
        parts, share = [f"# Memory of {space}"], int(self.budget * SHARE)
        for title, texts in (("## Who you are", known.identity), ("## Goals", known.wishes)):
            if texts:
                parts.append("\n".join([title, *_within([f"- {text}" for text in texts], share)]))
        if pending:
            parts.append("\n".join(pending))
        if known.summary:
            each = share // len(_SUMMED_UP)
            parts.append("\n".join(cut_to(line, each, end="\u2026") for line in known.summary.split("\n")))
        more = _more(where, bool(known.observations))
        spent = sum(map(tokens, (HEAD, *parts, more, END))) + 60
        shown = fitting(known.observations, max(self.budget - spent, 0))
        if shown:
            head = f"## Timeline (id, time UTC, kind, title, ~tokens to read it)\n{legend(shown)}"
            parts.append(f"{head}\n{timeline(shown)}")
        return basic("\n\n".join([*parts, more]) + "\n")

    async def around(self, space: str, observation: str) -> str | None:
        """What was observed before and after an observation, by its id or its name; None when it is not there."""
        names = await self._names(space)
        names = await aside(
            len(names) * A_NAME, lambda: sorted(name for name in names if keys.MemoryName.parse(name) is not None)
        )
        wanted = observation.lower()
        called = (name.removesuffix(".md") == observation or keys.ending(name) == wanted for name in names)
        at = next((place for place, is_called in enumerate(called) if is_called), None)
        if at is None:
            return None
        near = await self._read(space, names[max(at - AROUND, 0) : at + AROUND + 1])
        uid = keys.ending(names[at])
        middle = next((each for each in near if each.id == uid), None)
        lines = [f"# Around #{uid}", "", legend(near), timeline(near, mark=uid, newest_first=False), ""]
        if middle is not None and middle.subtitle:
            lines += [f"#{uid}: {in_a_line(middle.subtitle, SHOWN_CHARACTERS)}", ""]
        lines.append(f"Read one: `observations/ID.md` of this space; #{uid} is `observations/{names[at]}`.")
        return basic("\n".join(lines) + "\n")

    async def latest(self, space: str, budget: int) -> str:
        """The timeline of what was observed last, of about `budget` tokens; empty when nothing was."""
        newest = await self._newest(space)

        def page() -> str:
            shown = fitting(newest, budget)
            return basic(f"{legend(shown)}\n{timeline(shown)}\n") if shown else ""

        return await in_thread(page)

    def statistics(self) -> dict[str, int]:
        """Pages asked for, made, and given as they were because the bucket could not be asked."""
        return dict(self._counts)


def _by_code(known: _Known, checked: Sequence[CodeVerdict]) -> _Known:
    """With what may be told of it, marked where the code has moved on."""
    verdicts = iter(checked)

    def told(texts: Sequence[str]) -> list[str]:
        return [marked(text, found.mark) for text, found in zip(texts, verdicts, strict=False) if found.is_told]

    identity, wishes = told(known.identity), told(known.wishes)
    observations = [
        replace(each, title=marked(each.title, found.mark))
        for each, found in zip(known.observations, verdicts, strict=False)
        if found.is_told
    ]
    return replace(known, identity=identity, wishes=wishes, observations=observations)


def _more(where: str, observed: bool) -> str:
    """Where to look for more."""
    lines = [f"## More (in {where})" if where else "## More"]
    lines.append('- `cat "search/QUESTION.md"` searches; `bank/*.md` is what is settled.')
    if observed:
        lines.append(
            "- `observations/ID.md`: a line of the timeline in full; `search/around:ID.md`: what was around it."
        )
    lines.append("- `README.md` says how to write something down.")
    return "\n".join(lines)


def _sentence(text: str) -> str:
    """A list as one sentence."""
    items = [line.strip().removeprefix("- ").strip() for line in text.splitlines()]
    return in_a_line("; ".join(filter(None, items)), SHOWN_CHARACTERS)


def _within(lines: Sequence[str], budget: int) -> list[str]:
    """As many of the last lines as about so many tokens hold, in their order; of the very last at least a part."""
    kept: list[str] = []
    for line in reversed(lines):
        line = line if kept else cut_to(line, budget, end="\u2026")
        budget -= tokens(line + "\n")
        if kept and budget < 0:
            break
        kept.append(line)
    return kept[::-1]
