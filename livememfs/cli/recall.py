"""`livememfs recall`: what to know before answering a message, without a mount.

Owns what is printed. Does the same as `.recall` in a mount, with the same sessions; a message without a session belongs
to that of its terminal. Main thread only.
"""

from __future__ import annotations

import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import completion, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, on_store
from livememfs.cli.search import INDEXED_WITHIN

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.recall.turn.prehook import TurnAnswer


@command
def recall(
    choice: Choice,
    space: Annotated[
        str, argument(metavar="SPACE", help="The space to recall from.", autocompletion=completion.spaces)
    ],
    message: Annotated[
        str | None, typer.Argument(metavar="MESSAGE", help="The message; without it, standard input.")
    ] = None,
    session: Annotated[
        str, typer.Option("--session", metavar="NAME", help="The session; without it, that of the terminal.")
    ] = "",
    channel: Annotated[str, typer.Option("--channel", metavar="NAME", help="The channel of the message.")] = "",
    as_json: JsonFlag = False,
) -> None:
    """Print what to know before answering a message, each item once a session.

    livememfs recall project 'which database do we use?'
    livememfs recall project 'and the second?' --session review
    """
    from livememfs.records.turn import Turn
    from livememfs.spaces import making as spaces
    from livememfs.text.privacy import redaction as privacy
    from livememfs.tree.writer import session_of

    settings = choice.on_store()
    data = message.encode("utf-8", "surrogateescape") if message is not None else sys.stdin.buffer.read()
    turn = Turn.parse(data, path="the message")
    name = turn.session or session or session_of(os.getpid())
    turn = replace(turn, session=name, channel=turn.channel or channel)

    async def work(app: App) -> TurnAnswer:
        await spaces.require_space(app.replica, space)
        await app.recall.prepare([space], INDEXED_WITHIN)
        return await app.prehook.turn(space, turn)

    answer = on_store(settings, work, space)
    if answer.private:
        output.complain(privacy.told("the message", answer.private))
    if as_json or turn.json:
        output.print_json(answer.to_json())
        return
    if answer.block:
        output.say(answer.block.rstrip("\n"))
    elif answer.told is not None:
        again = f"`livememfs recall {space} MESSAGE --session NEW` asks as another session"
        is_old = answer.told.left_out["told"] > 0
        output.note(f"nothing new: what matches was told in this session; {again}" if is_old else "nothing matches")
    for note in answer.notes:
        output.note(note)
