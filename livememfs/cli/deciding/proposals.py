"""`livememfs proposals ...`: what waits in a space for a person, and the decision about it.

Owns what is printed. Main thread only.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import completion, listing, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, on_store
from livememfs.cli.space import SpaceName
from livememfs.environment import user_name
from livememfs.text.times import iso

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.records.proposal import Proposal

app = listing.group("Accept or refuse what is proposed to a space.", alone="list")
COLUMNS = ["SPACE", "NAME", "FOR", "TRUST", "BY", "TEXT"]
DECIDED_COLUMNS = ["SPACE", "NAME", "FOR", "DECISION", "BY", "TEXT"]
SHOWN_CHARACTERS = 80

Name = Annotated[str, argument(metavar="NAME", help="The name that `list` shows.")]


@app.command("list")
@command
def list_proposals(
    choice: Choice,
    space: Annotated[str, argument(metavar="[SPACE]", help="Only this space.", autocompletion=completion.spaces)] = "",
    decided: Annotated[bool, typer.Option("--decided", help="List decisions instead, the last one first.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """List what waits, by name; `livememfs proposals` alone does, too.

    livememfs proposals list
    livememfs proposals list project
    """

    from livememfs.memories import proposals
    from livememfs.spaces.describe import list_spaces, require_space

    async def of(app: App, space: str) -> list[Proposal]:
        if decided:
            return await proposals.decisions(app.replica, space)
        return [proposal for _, proposal in await proposals.waiting(app.replica, space)]

    async def work(app: App) -> list[tuple[str, Proposal]]:
        if space:
            await require_space(app.replica, space)
        names = [space] if space else [entry.name for entry in await list_spaces(app.replica)]
        return [(name, proposal) for name in names for proposal in await of(app, name)]

    found = on_store(choice.on_store(), work, space)
    none = f"nothing {'was decided' if decided else 'waits'} in {space or 'any space'}"
    columns = DECIDED_COLUMNS if decided else COLUMNS
    output.listing([_as_json(*one) for one in found], columns, [_row(*one) for one in found], none, as_json=as_json)
    if found and not decided and not as_json:
        output.note("livememfs proposals show SPACE NAME, then accept or refuse SPACE NAME")


@app.command()
@command
def show(choice: Choice, space: SpaceName, name: Name) -> None:
    """Print a proposal with its diff.

    livememfs proposals show project NAME
    """

    from livememfs.memories import proposals
    from livememfs.memories.proposalpage import page_of
    from livememfs.spaces.describe import require_space

    async def work(app: App) -> bytes:
        await require_space(app.replica, space)
        _, proposal = await proposals.the_one(app.replica, space, name)
        return await page_of(app.replica, space, proposal)

    output.say(on_store(choice.on_store(), work, space).decode("utf-8", "replace").rstrip("\n"))


@app.command()
@command
def accept(choice: Choice, space: SpaceName, name: Name, as_json: JsonFlag = False) -> None:
    """Store what is proposed; only a person does.

    livememfs proposals accept project NAME
    """

    from livememfs.memories import proposals
    from livememfs.spaces.describe import require_space

    async def work(app: App) -> str:
        await require_space(app.replica, space)
        return await proposals.accept(app.replica, app.clock, space, name, by=_who())

    key = on_store(choice.on_store(), work, space)
    output.answer({"space": space, "key": key}, key, as_json=as_json)


@app.command()
@command
def refuse(choice: Choice, space: SpaceName, name: Name, as_json: JsonFlag = False) -> None:
    """Refuse what is proposed; only a person does.

    livememfs proposals refuse project NAME
    """

    from livememfs.memories import proposals
    from livememfs.spaces.describe import require_space

    async def work(app: App) -> None:
        await require_space(app.replica, space)
        await proposals.refuse(app.replica, app.clock, space, name, by=_who())

    on_store(choice.on_store(), work, space)
    said = f"refused; `livememfs proposals list {space} --decided` shows it"
    output.answer({"space": space, "refused": name.removesuffix(".md")}, said, as_json=as_json)


def _who() -> str:
    """The agent behind this process, else the user."""
    from livememfs.tree.writer import agent_of

    return agent_of(os.getpid(), user_name())


def _row(space: str, proposal: Proposal) -> list[str]:
    from livememfs.text.fields import split

    line = " ".join(split(proposal.content)[1].split())
    shown = line if len(line) <= SHOWN_CHARACTERS else line[: SHOWN_CHARACTERS - 1] + "\u2026"
    state = [proposal.decision, proposal.decided_by] if proposal.decision else [proposal.trust.word, proposal.by]
    return [space, proposal.name, proposal.folder, *state, shown]


def _as_json(space: str, proposal: Proposal) -> dict[str, object]:
    return {
        "space": space,
        "name": proposal.name,
        "target": proposal.target,
        "content": proposal.content,
        "trust": proposal.trust.word,
        "by": proposal.by,
        "why": proposal.why,
        "at": iso(proposal.at),
        "decision": proposal.decision or None,
        "decided_by": proposal.decided_by or None,
        "decided_at": iso(proposal.decided_at) if proposal.decided_at is not None else None,
    }
