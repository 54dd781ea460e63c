"""`livememfs memories ...`: the memories of a space, with or without a mount.

Owns what is printed. Refuses to ask for confirmation: a forgotten memory can be restored, and `--purge` says what it
does. Main thread only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import listing, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, on_store
from livememfs.cli.space import SpaceName
from livememfs.environment import user_name
from livememfs.errors import UsageError
from livememfs.text.times import iso

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.memories.uses import Shown
    from livememfs.records.memory import Memory

app = listing.group("List, store, forget and restore memories.")
COLUMNS = ["ID", "TYPE", "WEIGHT", "UNTIL", "CONTENT"]
SHOWN_CHARACTERS = 80


class CollectionName(StrEnum):
    """The folders of memories."""

    MEMORIES = "memories"
    SELF = "self"
    GOALS = "goals"


class TrustName(StrEnum):
    """The classes of trust, the highest first."""

    USER = "user"
    AGENT = "agent"
    IMPORTED = "imported"
    TOOL = "tool"
    WEB = "web"


WHOSE: Mapping[TrustName, str] = {
    TrustName.USER: "the user's words",
    TrustName.AGENT: "an agent's words",
    TrustName.IMPORTED: "imported",
    TrustName.TOOL: "tool output",
    TrustName.WEB: "words from the web",
}
TrustArgument = Annotated[TrustName, argument(metavar="CLASS", help="Whose words it has.")]
In = Annotated[CollectionName, typer.Option("--in", help="The folder of the space.")]
Id = Annotated[str, argument(metavar="ID", help="The ID that `list` shows.")]


@app.command("list")
@command
def list_memories(
    choice: Choice,
    space: SpaceName,
    collection: In = CollectionName.MEMORIES,
    forgotten: Annotated[bool, typer.Option("--forgotten", help="List forgotten memories instead.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List memories, the oldest first.

    livememfs memories list project
    livememfs memories list project --in goals
    """
    from livememfs.memories import storing as memories
    from livememfs.memories.uses import shown

    async def work(app: App) -> list[tuple[str, Memory, Shown]]:
        if forgotten:
            listed = [(old.id, old.memory) for old in await memories.forgotten(app.replica, space, collection)]
        else:
            listed = await memories.current(app.replica, app.clock, space, collection)
        if as_json:
            await app.uses.known(space)
        return [(memory_id, memory, shown(app.uses.of(space, memory_id))) for memory_id, memory in listed]

    listed = on_store(choice.on_store(), work, space)
    values = [{**_as_json(memory_id, memory), **worth} for memory_id, memory, worth in listed]
    rows = [_row(memory_id, memory) for memory_id, memory, _ in listed]
    none = f"nothing {'was forgotten' if forgotten else 'is remembered'} in {space}/{collection.value}"
    output.listing(values, COLUMNS, rows, none, as_json=as_json)


@app.command()
@command
def add(
    choice: Choice,
    space: SpaceName,
    text: Annotated[str, argument(metavar="TEXT", help="The fact to remember.")],
    collection: In = CollectionName.MEMORIES,
    kind: Annotated[str | None, typer.Option("--type", metavar="NAME", help="fact, decision, ...")] = None,
    subject: Annotated[list[str] | None, typer.Option(metavar="NAME", help="A subject; may be repeated.")] = None,
    ttl: Annotated[str | None, typer.Option(metavar="TIME", help="How long it is true: 1h, 7d, 30d.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Store a memory.

    livememfs memories add project 'the API is frozen' --ttl 7d
    """
    from livememfs.memories import storing as memories
    from livememfs.text import frontmatter
    from livememfs.tree.writer import agent_of

    _check(collection, kind, ttl)
    given = {"type": kind, "subjects": subject, "ttl": ttl}
    content = frontmatter.join({name: value for name, value in given.items() if value}, text)

    async def work(app: App) -> str:
        agent = agent_of(os.getpid(), app.settings.agent or user_name())
        return await memories.remember(
            app.replica, app.clock, space, collection, content, agent=agent, on_private=output.complain
        )

    key = on_store(choice.on_store(), work, space)
    output.answer({"space": space, "key": key, "id": memories.id_of(key.rpartition("/")[2])}, key, as_json=as_json)


@app.command()
@command
def forget(
    choice: Choice,
    space: SpaceName,
    memory_id: Id,
    collection: In = CollectionName.MEMORIES,
    purge: Annotated[bool, typer.Option("--purge", help="Remove it and its old versions for good.")] = False,
) -> None:
    """Forget a memory; `restore` brings it back.

    livememfs memories forget project 3f2a91bc
    """
    from livememfs.memories import storing as memories

    async def work(app: App) -> str:
        if purge:
            count = await memories.purge(app.replica, space, collection, memory_id)
            return f"removed {output.plural(count, 'object')}"
        info = await memories.the_one(app.replica, app.clock, space, collection, memory_id)
        await memories.forget(app.replica, app.clock, info)
        forgotten_id = memories.id_of(info.key.rpartition("/")[2])
        return f"forgotten; `livememfs memories restore {space} {forgotten_id}` undoes it"

    output.say(on_store(choice.on_store(), work, space))


@app.command()
@command
def restore(choice: Choice, space: SpaceName, memory_id: Id, collection: In = CollectionName.MEMORIES) -> None:
    """Bring back a forgotten memory.

    livememfs memories restore project 3f2a91bc
    """
    from livememfs.memories import storing as memories

    async def work(app: App) -> str:
        return await memories.restore(app.replica, app.clock, space, collection, memory_id)

    output.say(on_store(choice.on_store(), work, space))


@app.command()
@command
def trust(
    choice: Choice,
    space: SpaceName,
    memory_id: Id,
    given: TrustArgument,
    collection: In = CollectionName.MEMORIES,
    as_json: JsonFlag = False,
) -> None:
    """Say whose words a memory has; only a person raises it.

    livememfs memories trust project 3f2a91bc user
    """
    from livememfs.memories import storing as memories
    from livememfs.records.trust import Trust
    from livememfs.tree.writer import agent_of

    async def work(app: App) -> str:
        info = await memories.the_one(app.replica, app.clock, space, collection, memory_id)
        by = agent_of(os.getpid(), "")
        await memories.vouch(app.replica, app.clock, info, Trust[given.value.upper()], by=by)
        return info.key

    key = on_store(choice.on_store(), work, space)
    output.answer({"key": key, "trust": given.value}, f"{key} is told as {WHOSE[given]}", as_json=as_json)


def _check(collection: CollectionName, kind: str | None, ttl: str | None) -> None:
    """Refuse a type or a ttl that cannot be read. Storing would drop the value silently, and a memory meant for an hour
    would stay for ever. UsageError.
    """

    from livememfs.clock import SystemClock
    from livememfs.records.memory import KNOWN_TYPES, read_field

    wanted = {
        "type": (kind, f"one of {', '.join(KNOWN_TYPES)}"),
        "ttl": (ttl, "a number and a unit, like 90m, 1h, 7d or 2w"),
    }
    for name, (given, what) in wanted.items():
        try:
            if given:
                read_field(name, given, collection, SystemClock().now())
        except (ValueError, OverflowError):
            raise UsageError(f"--{name} is {what}, not {given!r}") from None


def _row(memory_id: str, memory: Memory) -> list[str]:
    line = " ".join(memory.content.split())
    until = iso(memory.expires_at) if memory.expires_at is not None else "-"
    beginning = line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1] + "\u2026"
    return [memory_id, memory.category or memory.type, f"{memory.importance:g}", until, beginning]


def _as_json(memory_id: str, memory: Memory) -> dict[str, object]:
    return {
        "id": memory_id,
        "type": memory.type,
        "category": memory.category,
        "content": memory.content,
        "importance": memory.importance,
        "subjects": list(memory.subjects),
        "created_at": iso(memory.created_at),
        "updated_at": iso(memory.updated_at),
        "expires_at": iso(memory.expires_at) if memory.expires_at is not None else None,
        "links": [list(link) for link in memory.links],
    }
