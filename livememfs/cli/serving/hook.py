"""`livememfs hook`: an event of an agent, answered by the mirror that runs in a directory.

Owns the command as the help shows it; `livememfs/__main__.py` comes first, since a hook has no time to load this. Main
thread only.
"""

from __future__ import annotations

from typing import Annotated

from livememfs.cli.common import Choice, argument, command
from livememfs.mirror import client


@command
def hook(
    _: Choice,
    file: Annotated[str, argument(metavar="FILE", help="Such as ~/memory/project/.hooks/claude.Stop.")],
) -> None:
    """Have a mirror answer the event of an agent that is on standard input.

    FILE is in a directory of `livememfs sync`; on a mount the file itself answers. Always ends with status 0, within
    seconds.

        cat event.json | livememfs hook ~/memory/project/.hooks/claude.UserPromptSubmit
    """
    client.hook(file)
