"""The form of help: commands with whole sentences in sections, examples as they are typed, no option twice.

Owns `group`, which makes every group of commands, and which paragraphs of a docstring are examples. Main thread only.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

import typer
import typer.core

PROGRAM = "livememfs"
COMPLETING = "_LIVEMEMFS_COMPLETE"
"""The variable that a script of `livememfs completion` sets; the parser expects this form of name."""
HELP = {"help_option_names": ["-h", "--help"]}
EPILOG = "Options for the store and the settings: livememfs --help"
RAW = "\b"
"""The line before a paragraph that tells the formatter to leave its lines as they are."""


class CommandGroup(typer.core.TyperGroup):
    """A group whose help never cuts a sentence off."""

    def about(self, name: str) -> str:
        """The first line of a command's help."""
        return (self.commands[name].help or "").strip().partition("\n")[0]

    def sections(self) -> dict[str, list[str]]:
        """The names of the commands below each heading."""
        return {"Commands": list(self.commands)}

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the sections."""
        width = max(map(len, self.commands))
        for heading, names in self.sections().items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), self.about(name)) for name in names])


def group(about: str | None = None) -> typer.Typer:
    """A group of commands. `about`: one sentence; None: what the docstring of its callback says."""
    made = typer.Typer(
        cls=CommandGroup,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=HELP,
    )
    if about is not None:
        made.info.help = about
    return made


def laid_out(text: str | None) -> str:
    """A docstring in which the lines of examples stay lines: the paragraphs that begin with the program's name."""
    return "\n\n".join(map(_paragraph, re.split(r"\n\s*\n", inspect.cleandoc(text or ""))))


def _paragraph(text: str) -> str:
    lines = [line.strip() for line in text.splitlines()]
    return "\n".join([RAW, *(f"  {line}" for line in lines)]) if text.lstrip().startswith(f"{PROGRAM} ") else text


def finish(command: Any) -> Any:
    """The same command, whose help says where the options are that every command has."""
    for inner in getattr(command, "commands", {}).values():
        finish(inner)
    command.epilog = EPILOG
    return command
