"""What an agent finds and stores by itself: seven tools, what they answer, and what they refuse in words."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from livememfs.cache.replica import Replica
from livememfs.errors import BadRequest, LiveMemError, NotFound, TooLarge
from livememfs.memories import storing as memories
from livememfs.memories import tools
from livememfs.memories.tools import MOST_FOUND, SHOWN_CHARACTERS, TOOLS, Desk
from livememfs.recall.embed.base import Embedder
from livememfs.recall.index.local import Index
from livememfs.recall.service import Recall
from livememfs.records.memory import CATEGORIES, MAX_MEMORY_BYTES, TYPES, Memory
from livememfs.spaces import making as spaces
from livememfs.store.memory import MemoryStore
from livememfs.testing.clock import ManualClock
from livememfs.testing.embed import PATIENT, FakeEmbedder
from livememfs.testing.store import FaultyStore

DONE_WITHIN = 20.0
BY_NAME = {tool.name: tool for tool in TOOLS}


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    """A space of a bucket; threads search it, so these tests live in real time."""
    clock, model = ManualClock(), FakeEmbedder()
    replica = Replica(FaultyStore(MemoryStore(clock)))
    await spaces.create(replica, clock, "alpha")

    async def open_model() -> Embedder:
        return model

    recall = Recall(replica, clock, lambda: Index(tmp_path / "index", model.name), open_model, patience=PATIENT)
    replica.changes.subscribe(recall.heard)
    with trio.fail_after(DONE_WITHIN):
        async with trio.open_nursery() as nursery:
            await nursery.start(replica.run)
            await nursery.start(recall.run)
            yield Desk(replica, clock, recall, "alpha", "claude")
            nursery.cancel_scope.cancel()
    replica.close()


async def call(desk: Desk, name: str, **arguments: Any) -> Any:
    """What a tool answers to a model: JSON there and back. A search waits for the index first."""
    if not name.startswith("store"):
        await desk.recall.prepare((desk.space,), DONE_WITHIN)
    return json.loads(json.dumps(await BY_NAME[name].call(desk, arguments)))


def texts(answer: Any) -> list[str]:
    return [one["text"] for one in answer["memories"]]


async def stored(desk: Desk, collection: str = "memories") -> list[Memory]:
    return [memory for _, memory in await memories.current(desk.replica, desk.clock, "alpha", collection)]


# --- storing ---------------------------------------------------------------------------------------------------


async def test_a_memory_is_stored_with_what_is_said_of_it(desk: Desk) -> None:
    answer = await call(
        desk,
        "store_memory",
        content="Mickael est malade",
        subjects=["mickael", "santé"],
        ttl="7d",
        type="event",
        importance=0.5,
    )

    (memory,) = await stored(desk)
    assert (memory.content.strip(), memory.type, memory.importance) == ("Mickael est malade", "event", 0.5)
    assert (memory.subjects, memory.extra["agent"]) == (("mickael", "santé"), "claude")
    assert answer["expires_at"] == "2026-02-27T14:00:00Z"
    assert answer["path"].startswith(f"alpha/memories/{answer['id']}_until_")


async def test_what_is_not_said_is_as_usual(desk: Desk) -> None:
    answer = await call(desk, "store_memory", content="David is my brother", ttl=None, subjects=None)

    (memory,) = await stored(desk)
    assert (memory.type, memory.importance, memory.subjects, memory.expires_at) == ("fact", 0.6, (), None)
    assert answer == {"id": answer["id"], "path": f"alpha/memories/{answer['id']}.md", "expires_at": None}


@pytest.mark.parametrize("content", ["---\ntype: identity\n---\nnot front matter", "---", "type: x", "ab \U0001f600"])
async def test_content_is_content_whatever_it_looks_like(desk: Desk, content: str) -> None:
    await call(desk, "store_memory", content=content)

    (memory,) = await stored(desk)
    assert (memory.type, memory.content.strip()) == ("fact", content)


@pytest.mark.parametrize(
    ("tool", "collection", "category"),
    [
        (f"store_{one}", folder, category)
        for one, folder in (("self", "self"), ("goal", "goals"))
        for category in CATEGORIES[folder]
    ],
)
async def test_each_category_of_self_and_goals_is_kept(desk: Desk, tool: str, collection: str, category: str) -> None:
    await call(desk, tool, content="J'aimerais chercher sur le web", category=category)

    (memory,) = await stored(desk, collection)
    assert memory.category == category
    assert memory.type == {"self": "identity", "goals": "goal"}[collection]


@pytest.mark.parametrize(
    ("tool", "arguments", "named"),
    [
        ("store_self", {"content": "x", "category": "mood"}, "category is one of context, capability, limitation, "),
        ("store_goal", {"content": "x", "category": "context"}, "one of capability_request, understanding, connection"),
        ("store_self", {"content": "x"}, "category is missing"),
        ("store_memory", {"content": "x", "type": "rumour"}, "type is one of identity, goal, decision"),
        ("store_memory", {"content": "x", "ttl": "soon"}, "ttl is a number and a unit, like 90m"),
        ("store_memory", {"content": "x", "importance": 7}, "importance is 0 to 1, not 7"),
        ("store_memory", {"content": "x", "importance": float("nan")}, "importance is 0 to 1"),
        ("store_memory", {"content": "x", "importance": True}, "importance is no number"),
        ("store_memory", {"content": "x", "subjects": "david"}, "subjects is no list of strings"),
        (
            "store_memory",
            {"content": "x", "subjects": ["a" * 100_000]},
            "subjects has 100,000 characters, and takes 255",
        ),
        ("store_memory", {"content": "x", "subjects": ["a"] * 65}, "subjects has 65 values, and takes 64"),
        ("get_recent_memories", {"limit": 1 << 40_000}, "limit is 1 to 20, not one that long"),
        ("get_recent_memories", {"x" * 1_000: 1}, f"{'x' * 80} is none of its parameters"),
        ("store_memory", {"content": "  \n"}, "there is nothing in the memory"),
        ("store_memory", {"content": "a\0b"}, "content has the control character U+0000"),
        ("store_memory", {"text": "x"}, "text is none of its parameters; content is missing"),
        ("search_memories", {"query": 3}, "query is no string"),
        ("get_recent_memories", {"limit": 21}, "limit is 1 to 20, not 21"),
        ("get_recent_memories", {"limit": 0}, "limit is 1 to 20, not 0"),
        ("get_recent_memories", {"limit": 2.5}, "limit is no integer"),
    ],
)
async def test_what_no_memory_can_have_is_refused_in_words(
    desk: Desk, tool: str, arguments: dict[str, Any], named: str
) -> None:
    with pytest.raises(BadRequest, match="alpha") as refused:
        await BY_NAME[tool].call(desk, arguments)

    assert named in str(refused.value)
    assert await stored(desk) == await stored(desk, "self") == await stored(desk, "goals") == []


async def test_a_memory_that_is_too_long_is_refused(desk: Desk) -> None:
    with pytest.raises(BadRequest, match="content has 65,537 characters, and takes 65,536"):
        await call(desk, "store_memory", content="x" * (MAX_MEMORY_BYTES + 1))
    with pytest.raises(TooLarge):
        await call(desk, "store_memory", content="é" * MAX_MEMORY_BYTES)


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
async def test_a_space_that_is_not_there_is_said(desk: Desk, tool: tools.MemoryTool) -> None:
    nowhere = Desk(desk.replica, desk.clock, desk.recall, "nowhere", "claude")
    usual = {
        "query": "x",
        "content": "x",
        "category": next(iter(CATEGORIES["self" if "self" in tool.name else "goals"])),
    }
    arguments = {one.name: usual[one.name] for one in tool.parameters if one.required}

    with pytest.raises(NotFound):
        await tool.call(nowhere, arguments)


# --- finding ---------------------------------------------------------------------------------------------------


async def test_what_was_stored_is_found_by_the_next_call_with_its_score(desk: Desk) -> None:
    assert texts(await call(desk, "search_memories", query="Mickael")) == []
    answer = await call(desk, "store_memory", content="dev = Mickael", subjects=["mickael"])

    (found,) = (await call(desk, "search_memories", query="Mickael"))["memories"]

    assert found.pop("score") > 0
    assert found == {
        "id": answer["id"],
        "path": answer["path"],
        "type": "fact",
        "trust": "agent",
        "category": "",
        "subjects": ["mickael"],
        "created_at": "2026-02-20T14:00:00Z",
        "text": "dev = Mickael",
    }


async def test_ten_come_at_most_best_first_and_no_score_is_too_low(desk: Desk) -> None:
    for number in range(14):
        await call(desk, "store_memory", content=f"apples {'and pears ' * number} number{number}")

    found = (await call(desk, "search_memories", query="apples limit:50"))["memories"]

    assert len(found) == MOST_FOUND
    scores = [one["score"] for one in found]
    assert scores == sorted(scores, reverse=True)
    assert len(texts(await call(desk, "search_memories", query="apples limit:3"))) == 3


async def test_each_search_stays_in_its_collection_whatever_is_asked(desk: Desk) -> None:
    await call(desk, "store_memory", content="zebra facts")
    await call(desk, "store_self", content="zebra self", category="capability")
    await call(desk, "store_goal", content="zebra goals", category="connection")

    for collection, text in (("memories", "zebra facts"), ("self", "zebra self"), ("goals", "zebra goals")):
        for question in ("zebra", "zebra in:all", "zebra in:live,memories", "zebra -in:self,goals,memories"):
            assert texts(await call(desk, f"search_{collection}", query=question)) == [text]
    (found,) = (await call(desk, "search_self", query="zebra"))["memories"]
    assert (found["category"], found["type"]) == ("capability", "identity")


async def test_a_subject_narrows_a_search_and_so_do_filters_in_the_question(desk: Desk) -> None:
    await call(desk, "store_memory", content="David lives in Toulouse", subjects=["David"])
    await call(desk, "store_memory", content="Anna lives in Pau", subjects=["Anna", "Léa"], type="event")

    assert texts(await call(desk, "search_memories", query="who lives where", subject="david")) == [
        "David lives in Toulouse"
    ]
    assert texts(await call(desk, "search_memories", query="", subject="léa")) == ["Anna lives in Pau"]
    assert texts(await call(desk, "search_memories", query="lives subject:anna")) == ["Anna lives in Pau"]
    assert texts(await call(desk, "search_memories", query="lives type:event")) == ["Anna lives in Pau"]
    assert texts(await call(desk, "search_memories", query="lives", subject="nobody")) == []


async def test_the_last_memories_come_newest_first_and_only_memories(desk: Desk) -> None:
    for number in range(12):
        await call(desk, "store_memory", content=f"number {number}")
        desk.clock.advance(minutes=1)  # type: ignore[attr-defined]  # a ManualClock
    await call(desk, "store_self", content="I am new", category="context")

    newest = [f"number {number}" for number in reversed(range(12))]
    assert texts(await call(desk, "get_recent_memories")) == newest[:10]
    assert texts(await call(desk, "get_recent_memories", limit=20)) == newest
    assert texts(await call(desk, "get_recent_memories", limit=1)) == newest[:1]


async def test_what_has_ended_or_was_forgotten_is_not_found(desk: Desk) -> None:
    await call(desk, "store_memory", content="Mickael is ill", ttl="1h")
    gone = await call(desk, "store_memory", content="Mickael has a cat")
    assert len(texts(await call(desk, "search_memories", query="Mickael"))) == 2

    desk.clock.advance(hours=1)  # type: ignore[attr-defined]  # a ManualClock
    await memories.forget(desk.replica, desk.clock, await desk.replica.names.stat(gone["path"]))

    assert texts(await call(desk, "search_memories", query="Mickael")) == []
    assert texts(await call(desk, "get_recent_memories")) == []


async def test_a_long_memory_is_shown_by_its_beginning(desk: Desk) -> None:
    await call(desk, "store_memory", content="apples " * 2_000)

    (text,) = texts(await call(desk, "search_memories", query="apples"))

    assert len(text) == SHOWN_CHARACTERS
    assert text.endswith("\u2026")


async def test_a_search_that_fails_says_so_and_finds_nothing(desk: Desk, tmp_path: Path) -> None:
    held = Index(tmp_path / "index", "fake-1")

    answer = await call(desk, "search_memories", query="apples")

    assert answer["memories"] == []
    assert any(note.startswith("the search failed") for note in answer["notes"])
    held.close()


# --- as a model is told of them --------------------------------------------------------------------------------


def test_there_are_the_seven() -> None:
    found = {f"search_{name}" for name in ("memories", "self", "goals")}
    stored = {f"store_{name}" for name in ("memory", "self", "goal")}
    assert set(BY_NAME) == found | stored | {"get_recent_memories"}
    assert len(TOOLS) == 7


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.name)
def test_each_says_in_one_sentence_what_it_is_for_and_what_it_takes(tool: tools.MemoryTool) -> None:
    assert tool.work.__name__ == tool.name  # type: ignore[attr-defined]  # a function
    assert tool.purpose.endswith(".")
    assert tool.purpose.count(". ") == 0
    schema = json.loads(json.dumps(tool.schema()))
    assert set(schema["properties"]) == {one.name for one in tool.parameters}
    assert schema["additionalProperties"] is False
    assert all(one["description"] for one in schema["properties"].values())


def test_a_schema_says_which_values_there_are() -> None:
    assert BY_NAME["store_self"].schema()["properties"]["category"]["enum"] == list(CATEGORIES["self"])
    assert BY_NAME["store_self"].schema()["required"] == ["content", "category"]
    assert BY_NAME["store_memory"].schema()["properties"]["type"]["enum"] == list(TYPES)
    assert BY_NAME["store_memory"].schema()["properties"]["subjects"] == {
        "type": "array",
        "description": "whom and what it is about, as single words",
        "maxItems": 64,
        "items": {"type": "string", "maxLength": 255},
    }
    limit = BY_NAME["get_recent_memories"].schema()["properties"]["limit"]
    assert (limit["minimum"], limit["maximum"]) == (1, 20)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(alphabet=st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=5,
)
arguments = st.dictionaries(
    st.sampled_from(sorted({one.name for tool in TOOLS for one in tool.parameters} | {"other"})), json_values
)


@given(st.sampled_from(TOOLS), arguments)
def test_whatever_a_model_gives_is_answered_or_refused_and_nothing_else(
    tool: tools.MemoryTool, given_: dict[str, Any]
) -> None:
    async def work() -> None:
        clock = ManualClock()
        replica = Replica(MemoryStore(clock))

        async def none() -> None:
            return None

        def unused() -> Index:
            raise LiveMemError("there is no index here")

        await spaces.create(replica, clock, "alpha")
        desk = Desk(replica, clock, Recall(replica, clock, unused, none), "alpha", "claude")
        try:
            json.dumps(await tool.call(desk, given_))
        except LiveMemError:
            return

    trio.run(work)
