"""A model that observes, for `ScriptedLLM`: it names every event it is shown, in an observation or in a skip.

Owns well-formed replies, and how the events of a request are found in it. Any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from livememfs.testing.llm import LLMRequest

_EVENT = re.compile(r'<event number="([0-9]+)"[^>]*>\n<what_happened>(.*?)</what_happened>\n(.*?)</event>', re.DOTALL)
LOOKED = frozenset({"Grep", "Glob", "LS"})
"""Tools that teach this model nothing."""


def events_in(request: LLMRequest) -> list[tuple[int, str, str]]:
    """Number, tool, and quoted data of each event of a request."""
    return [(int(number), tool, data) for number, tool, data in _EVENT.findall(request.text)]


def wants_summary(request: LLMRequest) -> bool:
    """Whether a request asks for a summary."""
    return "<next_steps>" in request.messages[-1]["content"]


def observation(*events: int, title: str = "Something was learnt", **fields: str | Sequence[str]) -> str:
    """One observation of a reply."""
    known: Mapping[str, str | Sequence[str]] = {
        "type": "discovery",
        "title": title,
        "subtitle": f"About {title}",
        "narrative": f"{title}. It was seen in the events.",
        "facts": [f"{title} is a fact"],
        "concepts": ["how-it-works"],
        **fields,
    }
    lines = [f"<events>{' '.join(map(str, events))}</events>"]
    for name, value in known.items():
        text = value if isinstance(value, str) else "[" + ", ".join(f'"{item}"' for item in value) + "]"
        lines.append(f"<{name}>{text}</{name}>")
    return "<observation>\n" + "\n".join(lines) + "\n</observation>"


def skip(*events: int, reason: str = "only looked around") -> str:
    """Events that teach nothing."""
    return f'<skip events="{" ".join(map(str, events))}">{reason}</skip>'


def summary(**fields: str) -> str:
    """A summary."""
    known = {"request": "Mend the login", "completed": "The login was mended", **fields}
    return "<summary>" + "".join(f"<{name}>{text}</{name}>" for name, text in known.items()) + "</summary>"


def observing(request: LLMRequest) -> str:
    """A responder: an observation for each two events that did something, a skip for those that looked around."""
    events = events_in(request)
    looked = [number for number, tool, _ in events if tool in LOOKED]
    did = [number for number, tool, _ in events if tool not in LOOKED]
    pairs = [did[start : start + 2] for start in range(0, len(did), 2)]
    tools = {number: tool for number, tool, _ in events}
    parts = [observation(*pair, title=f"{tools[pair[0]]} was used in a batch of {len(events)}") for pair in pairs]
    parts += [skip(*looked)] if looked else []
    parts += [summary()] if wants_summary(request) else []
    return "\n".join(parts)
