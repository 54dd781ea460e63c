"""The observer's reply, as untrusted input: observations, events that were skipped with a reason, and a summary.

Owns the lenient reading of tags (claude-mem 3.5), and what kind of answer a reply is. An event counts as observed only
if the reply names its number. Refuses prose, refusals, and replies that break off in the middle: none of these means
that there was nothing to say. Pure; any thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from livememfs.records.observation import MAX_ITEM, MAX_ITEMS, MAX_LINKS, MAX_TEXT, MAX_TITLE, ObservationType, type_of
from livememfs.records.session import SUMMARY_FIELDS
from livememfs.text.own import basic, without_own
from livememfs.text.privacy.redaction import redact

Verdict = Literal["ok", "empty", "prose", "refusal", "overflow", "truncated", "unaccounted"]

_THINKING = re.compile(r"\A\s*<(think|thinking|thought|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_END_OF_THINKING = re.compile(
    r"</(?:think|thinking|thought|reasoning)\s*>(?=\s*(?:```\w*\s*)?<(?:observation|skip|(?:session_|no_)?summary)\b)",
    re.IGNORECASE,
)
_OPEN_THINKING = re.compile(r"\A\s*<(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_OBSERVATION = re.compile(r"<observation\b([^>]*)>(.*?)</observation\s*>", re.DOTALL | re.IGNORECASE)
_SKIP = re.compile(r"<skip\b([^>]*?)(?:/>|>(.*?)</skip\s*>)", re.DOTALL | re.IGNORECASE)
_SUMMARY = re.compile(r"<(?:session_)?summary\b[^>]*>(.*?)</(?:session_)?summary\s*>", re.DOTALL | re.IGNORECASE)
_NO_SUMMARY = re.compile(r"<no_summary\b[^>]*/?>", re.IGNORECASE)
_OPENINGS = re.compile(r"<(observation|skip|summary)\b(?![^>]*/>)", re.IGNORECASE)
_CLOSINGS = re.compile(r"</(observation|skip|summary)\s*>", re.IGNORECASE)
_EVENTS = re.compile(r"""events?\s*=\s*["']?([0-9][0-9 ,;]*)""", re.IGNORECASE)
_REFUSAL = re.compile(
    r"\b(?:i (?:can(?:no|['’])t|am unable|won['’]t|will not)|i['’]m (?:unable|sorry)|i am sorry"
    r"|je ne peux pas|désolée?)\b",
    re.IGNORECASE,
)
_OVERFLOW = re.compile(
    r"context (?:length|window|limit)|too (?:long|many tokens|large)|maximum (?:context|length|tokens)|prompt is too"
    r"|trop (?:longu?e?|de (?:tokens|jetons))\b|(?:contexte|longueur) (?:dépasse|maximale?)|limite de contexte",
    re.IGNORECASE,
)
_ITEM = re.compile(
    r"<(?:item|fact|concept|file)\b[^>]*>(.*?)</(?:item|fact|concept|file)\s*>", re.DOTALL | re.IGNORECASE
)
_INNER = "|".join(
    (
        "events",
        "type",
        "title",
        "subtitle",
        "narrative",
        "facts",
        "concepts",
        "supersedes",
        "contradicts",
        *SUMMARY_FIELDS,
    )
)
_ID = re.compile(r"(?<![0-9a-z])[0-9a-f]{8}(?![0-9a-z])")
_ENTITIES = {"&lt;": "<", "&gt;": ">", "&quot;": '"', "&apos;": "'", "&#39;": "'", "&amp;": "&"}


@dataclass(frozen=True)
class Draft:
    """One observation of a reply. `events` are numbers of events in the batch, from 1; `supersedes` and `contradicts`
    ids of earlier observations, of which a reply may make up any.
    """

    events: tuple[int, ...]
    type: ObservationType
    title: str
    subtitle: str = ""
    narrative: str = ""
    facts: tuple[str, ...] = ()
    concepts: tuple[str, ...] = ()
    supersedes: tuple[str, ...] = ()
    contradicts: tuple[str, ...] = ()


@dataclass(frozen=True)
class ObserverReply:
    """A reply that was read.

    :verdict:    `ok` when something in it can be used; else what the reply is instead
    :skipped:    reasons by event number
    :summary:    texts by SUMMARY_FIELDS; None when the reply has no summary
    :no_summary: the reply says that there is nothing to sum up
    """

    verdict: Verdict
    observations: tuple[Draft, ...] = ()
    skipped: Mapping[int, str] = field(default_factory=dict)
    summary: Mapping[str, str] | None = None
    no_summary: bool = False

    @property
    def accounted(self) -> frozenset[int]:
        """The numbers of events that are observed or skipped."""
        return frozenset({*self.skipped, *(number for draft in self.observations for number in draft.events)})


def read(text: str, finish_reason: str, events: int) -> ObserverReply:
    """Read a reply to a batch of so many events. Never raises."""
    text = _without_thinking(text)
    if not text:
        return ObserverReply("empty")
    if _OPEN_THINKING.match(text) or finish_reason == "length":
        return ObserverReply("truncated")
    drafts = tuple(_drafts(text, events))
    beside = _OBSERVATION.sub("", text)  # tags that an observation quotes are not tags of the reply
    skipped = _skips(beside, events, alone=beside == text)
    summary, no_summary = _summary(beside), bool(_NO_SUMMARY.search(beside))
    if not (drafts or skipped or summary or no_summary):
        return ObserverReply(_instead(text))
    if _is_half(text, beside):
        return ObserverReply("truncated")
    observed = {number for draft in drafts for number in draft.events}
    skipped = {number: reason for number, reason in skipped.items() if number not in observed}
    drafts = tuple(draft for draft in drafts if draft.events)
    if events and not (drafts or skipped):
        return ObserverReply("unaccounted", summary=summary, no_summary=no_summary)
    return ObserverReply("ok", drafts, skipped, summary, no_summary)


def _without_thinking(text: str) -> str:
    """The text after any reasoning. The opening tag may be missing: it is often a part of the chat template."""
    while (rest := _THINKING.sub("", text)) != text:
        text = rest
    if not _OPEN_THINKING.match(text) and (end := _END_OF_THINKING.search(text)) is not None:
        text = text[end.end() :]
    return text.strip()


def _instead(text: str) -> Verdict:
    """What kind of answer a text without any of our elements is."""
    if _OPENINGS.search(text):
        return "truncated"
    if len(text) < 600 and _OVERFLOW.search(text):
        return "overflow"
    return "refusal" if len(text) < 2_000 and _REFUSAL.search(text) else "prose"


def _is_half(text: str, beside: str) -> bool:
    """Whether an element was begun and not ended: nobody knows what it was to say."""
    for name, where in (("observation", text), ("summary", beside)):
        opened = [tag.lower() for tag in _OPENINGS.findall(where)]
        closed = [tag.lower() for tag in _CLOSINGS.findall(where)]
        if opened.count(name) > closed.count(name):
            return True
    return False


def _drafts(text: str, events: int) -> Iterator[Draft]:
    for attributes, body in _OBSERVATION.findall(text):
        title, narrative = _one(body, "title", MAX_TITLE), _one(body, "narrative", MAX_TEXT, lines=True)
        facts = _list(body, "facts")
        if not (title or narrative or facts):
            continue
        listed = _element(body, "events") or _attribute(attributes)
        numbers = _numbers(listed, events) if listed else ((1,) if events == 1 else ())
        yield Draft(
            events=numbers,
            type=type_of(_one(body, "type", 40)),
            title=title or (narrative or facts[0]).partition("\n")[0][:MAX_TITLE],
            subtitle=_one(body, "subtitle", MAX_ITEM),
            narrative=narrative,
            facts=facts,
            concepts=tuple(concept.lower().replace(" ", "-")[:64] for concept in _list(body, "concepts")),
            supersedes=_ids(body, "supersedes"),
            contradicts=_ids(body, "contradicts"),
        )


def _skips(text: str, events: int, *, alone: bool) -> dict[int, str]:
    """Reasons by number. A skip without numbers means all events, if the reply has no observation (`alone`)."""
    reasons: dict[int, str] = {}
    for attributes, body in _SKIP.findall(text):
        reason = _clean(body or _named(attributes, "reason"), MAX_TITLE) or "nothing worth knowing"
        listed = _attribute(attributes)
        for number in range(1, events + 1) if alone and not listed else _numbers(listed, events):
            reasons.setdefault(number, reason)
    return reasons


def _summary(text: str) -> Mapping[str, str] | None:
    match = _SUMMARY.search(text)
    if match is None:
        return None
    texts = {name: _one(match[1], name, MAX_TEXT, lines=True) for name in SUMMARY_FIELDS}
    return texts if any(texts.values()) else None


def _numbers(text: str, events: int) -> tuple[int, ...]:
    """The event numbers in a text, without those that no event has."""
    numbers = map(int, re.findall(r"[0-9]{1,6}", text))
    return tuple(dict.fromkeys(number for number in numbers if 1 <= number <= events))


def _ids(body: str, name: str) -> tuple[str, ...]:
    """The ids of observations in an element, however they are listed."""
    return tuple(dict.fromkeys(_ID.findall(_element(body, name).lower())))[:MAX_LINKS]


def _attribute(attributes: str) -> str:
    match = _EVENTS.search(attributes)
    return match[1] if match else ""


def _named(attributes: str, name: str) -> str:
    match = re.search(rf"""{name}\s*=\s*(?:"([^"]*)"|'([^']*)')""", attributes, re.IGNORECASE)
    return (match[1] or match[2] or "") if match else ""


def _element(body: str, name: str) -> str:
    """The text of the first element of a name. An element without an end tag ends where the next one begins."""
    flags = re.DOTALL | re.IGNORECASE
    match = re.search(rf"<{name}\b[^>]*>(.*?)</{name}\s*>", body, flags)
    match = match or re.search(rf"<{name}\b[^>]*>(.*?)(?=</?(?:{_INNER})\b|\Z)", body, flags)
    return match[1] if match else ""


def _one(body: str, name: str, limit: int, *, lines: bool = False) -> str:
    return _clean(_element(body, name), limit, lines=lines)


def _list(body: str, name: str) -> tuple[str, ...]:
    """The items of a list: a JSON array or elements. Text that is neither counts as empty (claude-mem 3.5)."""
    text = _element(body, name).strip()
    items: Sequence[object] = _ITEM.findall(text)
    if not items:
        try:
            value = json.loads(_decoded(text))
        except (ValueError, RecursionError):
            value = []
        items = value if isinstance(value, list) else []
    texts = [_clean(item, MAX_ITEM) for item in items if isinstance(item, str)]
    return tuple(dict.fromkeys(filter(None, texts)))[:MAX_ITEMS]


def _clean(text: str, limit: int, *, lines: bool = False) -> str:
    """A text without entities, our own marks, private parts, and characters that some programs cannot show."""
    text = basic(redact(without_own(_decoded(text))).text).replace("\0", "").strip()
    text = text if lines else " ".join(text.split())
    return text if len(text) <= limit else text[: limit - 1].rstrip() + "\u2026"


def _decoded(text: str) -> str:
    for entity, character in _ENTITIES.items():
        text = text.replace(entity, character)
    return text
