"""`livememfs note`: write one note without a mount.

Owns where the text comes from: the argument, or standard input. Main thread only.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import output
from livememfs.cli.common import Choice, JsonFlag, command, on_store, option
from livememfs.cli.space import SpaceName
from livememfs.environment import user_name
from livememfs.errors import NotText, UsageError

if TYPE_CHECKING:
    from livememfs.app import App


@command
def note(
    choice: Choice,
    space: SpaceName,
    text: Annotated[
        str, typer.Argument(metavar="[TEXT]", help="The note; without it, or with -, standard input.")
    ] = "-",
    category: Annotated[str | None, option(metavar="NAME", help="observation, decision, todo, issue, ...")] = None,
    agent: Annotated[str | None, option(metavar="NAME", help="Name of the writer.  [default: you]")] = None,
    tag: Annotated[list[str] | None, option(metavar="TAG", help="A tag; may be repeated.")] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write a note into SPACE.

    livememfs note project 'we chose S3' --category decision
    git log -1 | livememfs note project --tag release
    """
    from livememfs.memories.notes import write_note
    from livememfs.records.note import CATEGORIES
    from livememfs.tree.writer import agent_of

    settings = choice.on_store()
    if category is not None and category not in CATEGORIES:
        raise UsageError(f"there is no category {category}; use one of {', '.join(CATEGORIES)}")
    content = _standard_input() if text == "-" else text

    async def work(app: App) -> str:
        author = agent or agent_of(os.getpid(), settings.agent or user_name())
        return await write_note(
            app.replica,
            app.clock,
            space,
            content,
            agent=author,
            category=category,
            tags=tag or (),
            on_private=output.complain,
            code=app.code,
        )

    key = on_store(settings, work, space)
    output.answer({"space": space, "key": key}, key, as_json=as_json)


def _standard_input() -> str:
    if sys.stdin.isatty():
        raise UsageError("there is no text; give it as an argument or on standard input")
    try:
        return sys.stdin.buffer.read().decode("utf-8")
    except UnicodeDecodeError as error:
        raise NotText(f"byte {error.start}", path="standard input") from None
