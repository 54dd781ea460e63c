"""The examples that the specifications work through, with the built-in model and their own words, in French.

spacebot-memory-v2 3.1 to 3.3; of companion-memory "who are you?", the lobby, and what the tools find. The illness that
ends is in tests/tree/test_tree_exchange.py, where files are written and listed.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from recall_world import DONE_WITHIN, SPACE, Bucket

from livememfs.memories import tools
from livememfs.memories.tools import Desk
from livememfs.recall.embed.base import Embedder
from livememfs.recall.embed.builtin import Builtin
from livememfs.recall.embed.model import OnnxModel
from livememfs.recall.turn.choosing import PrehookSettings
from livememfs.recall.turn.prehook import Prehook, TurnAnswer
from livememfs.recall.turn.told import ToldSessions
from livememfs.records.turn import Turn
from livememfs.text.own import HEAD

USE_POSTGRES = "Decision: Use PostgreSQL for persistence layer"
PREFERS = "User prefers PostgreSQL over MySQL for JSON support"
REPLICATION = "Discussed PostgreSQL replication strategies yesterday"
USE_MYSQL = "Decision: Use MySQL for persistence layer, in place of PostgreSQL"
REMEMBER = "Salut, tu te souviens de ce qu'on a dit hier sur PostgreSQL?"
CHANGED_MIND = "".join(
    json.dumps({"message": one}) for one in ("En fait", "j'ai changé d'avis", "on va utiliser MySQL à la place")
)


@pytest.fixture(scope="module")
def model() -> OnnxModel:
    return OnnxModel()


@dataclass
class Conversation:
    """One bucket, its prehook, and whoever talks."""

    bucket: Bucket
    prehook: Prehook
    desk: Desk

    async def says(self, message: str, *, session: str = "ours") -> TurnAnswer:
        """One turn, as text or as a request."""
        return await self.prehook.turn(SPACE, Turn.parse(message.encode(), path=".recall").of(session))


@asynccontextmanager
async def talking(
    bucket: Bucket, model: OnnxModel, settings: PrehookSettings | None = None
) -> AsyncIterator[Conversation]:
    """A mount with everything in it indexed by meaning."""

    async def own() -> Embedder:
        return Builtin(model)

    async with bucket.mount(own) as mount:
        await mount.indexed()
        desk = Desk(mount.replica, bucket.clock, mount.recall, SPACE, "pet")
        yield Conversation(bucket, Prehook(mount.recall, bucket.clock, ToldSessions(mount.replica), settings), desk)


@pytest.fixture
async def bucket(bucket: Bucket) -> Bucket:
    """What a project knows of its user since yesterday, and of much else."""
    for text in ("The user is called Mickael", "The user writes Rust and TypeScript", "The user speaks French"):
        await bucket.remember(text, type="identity")
    await bucket.remember(USE_POSTGRES, type="decision")
    await bucket.remember("Goal: build the public API of the shop", type="goal")
    await bucket.remember(PREFERS, type="preference")
    await bucket.remember(REPLICATION, type="event")
    for text in ("Lunch is at noon", "The cat of Anna is called Felix", "The office moves to Pau in May"):
        await bucket.remember(text)
    bucket.clock.advance(days=1)
    return bucket


def told(answer: TurnAnswer) -> list[str]:
    return [one.text for one in answer.told.emitted] if answer.told is not None else []


async def test_the_four_turn_conversation_about_postgresql_and_mysql(bucket: Bucket, model: OnnxModel) -> None:
    async with talking(bucket, model) as talk:
        first = await talk.says(REMEMBER)
        assert {USE_POSTGRES, PREFERS, REPLICATION, "The user is called Mickael"} <= set(told(first))
        assert not {"Lunch is at noon", "The cat of Anna is called Felix"} & set(told(first))
        relevant = [one.text for one in first.told.emitted if one.section == "relevant"] if first.told else []
        assert {PREFERS, REPLICATION} <= set(relevant[:3])
        assert first.notes == ()

        second = await talk.says(json.dumps({"source": "system", "message": "Worker #42 completed"}))
        assert (second.block, second.turn) == ("", 0)

        third = await talk.says(CHANGED_MIND)
        assert third.turn == 2, "three messages are one turn, and the system's was none"
        assert set(told(third)).isdisjoint(told(first)), "what is in view is not told again"

        await talk.bucket.remember(USE_MYSQL, type="decision")  # as the model would, after this turn

    async with talking(bucket, model) as talk:  # another day, another conversation
        fourth = await talk.says("on utilise quelle base de données ?", session="the next one")
        assert USE_MYSQL in told(fourth)


async def test_a_change_of_mind_in_three_messages_finds_the_decision_it_changes(
    bucket: Bucket, model: OnnxModel
) -> None:
    async with talking(bucket, model) as talk:
        answer = await talk.says(CHANGED_MIND)

    assert answer.turn == 1
    assert USE_POSTGRES in told(answer)
    assert HEAD in answer.block


@pytest.mark.parametrize("question", ["Tu es qui ?", "who are you?"])
async def test_who_are_you_is_answered_from_self(bucket: Bucket, model: OnnxModel, question: str) -> None:
    mine = ["Je suis une créature qui vit dans l'app Organizer", "Mickael et David m'ont créé"]
    for text in mine:
        await bucket.remember(text, "self", category="context")
    bucket.clock.advance(days=1)

    async with talking(bucket, model) as talk:
        answer = await talk.says(question)
        assert set(mine) <= set(told(answer))

    async with talking(bucket, model, PrehookSettings(pinned=0)) as talk:
        answer = await talk.says(question)
        assert told(answer)[0] in mine, "by meaning as well, where nothing comes unasked"


async def test_what_somebody_would_like_is_answered_from_goals(bucket: Bucket, model: OnnxModel) -> None:
    await bucket.remember("J'aimerais pouvoir chercher sur le web", "goals", category="capability_request")
    bucket.clock.advance(days=1)

    async with talking(bucket, model) as talk:
        assert "J'aimerais pouvoir chercher sur le web" in told(await talk.says("Tu aimerais faire quoi ?"))


async def test_what_was_said_in_the_lobby_a_minute_ago_is_known_as_an_excerpt(bucket: Bucket, model: OnnxModel) -> None:
    await bucket.write("m1", "je pars en Grèce demain, une semaine")
    await bucket.write("m2", "ok")
    await bucket.write("m3", "lol")

    async with talking(bucket, model) as talk:
        answer = await talk.says("David part où en vacances ?")

    assert answer.told is not None
    live = [one.text for one in answer.told.emitted if one.section == "live"]
    assert live[:1] == ["je pars en Grèce demain, une semaine"]
    assert "not a conversation" in answer.block


# --- what an agent looks for by itself ---------------------------------------------------------------------------


def texts(answer: dict[str, Any]) -> list[str]:
    return [one["text"] for one in answer["memories"]]


async def test_hello_from_dev_finds_who_dev_is_however_low_the_score(bucket: Bucket, model: OnnxModel) -> None:
    await bucket.remember("dev = Mickael", subjects=["dev", "mickael"])

    async with talking(bucket, model) as talk:
        assert "dev = Mickael" in texts(await tools.search_memories(talk.desk, "dev"))
        assert texts(await tools.search_memories(talk.desk, "", "mickael")) == ["dev = Mickael"]


async def test_what_did_we_talk_about_goes_from_what_is_recent_to_what_was_said_of_it(
    bucket: Bucket, model: OnnxModel
) -> None:
    await bucket.remember("Mickael part en Grèce en février", subjects=["mickael", "vacances"])
    bucket.clock.advance(days=1)
    await bucket.remember("vacances Grèce")

    async with talking(bucket, model) as talk:
        assert texts(await tools.get_recent_memories(talk.desk, 10))[0] == "vacances Grèce"
        dug = texts(await tools.search_memories(talk.desk, "Mickael vacances"))
        assert "Mickael part en Grèce en février" in dug[:3]


async def test_what_the_agent_learns_of_itself_it_knows_when_it_is_asked(bucket: Bucket, model: OnnxModel) -> None:
    async with talking(bucket, model) as talk:
        await tools.store_self(talk.desk, "Je suis dans Organizer, Mickael m'a créé", "context")
        await tools.store_self(talk.desk, "Je peux observer les messages du Lobby", "capability")
        await tools.store_goal(talk.desk, "J'aimerais lire les notes", "capability_request")
        await talk.desk.recall.prepare((SPACE,), DONE_WITHIN)

        assert len(texts(await tools.search_self(talk.desk, "qui je suis"))) == 2
        assert texts(await tools.search_self(talk.desk, "voir le Lobby"))[0] == "Je peux observer les messages du Lobby"
        assert texts(await tools.search_goals(talk.desk, "aspirations")) == ["J'aimerais lire les notes"]
        assert {"Je suis dans Organizer, Mickael m'a créé"} <= set(told(await talk.says("tu es qui ?")))
