"""The form of help: commands with whole sentences in sections, examples as they are typed, no option twice.

Owns `group`, which makes every group of commands, and which paragraphs of a docstring are examples. Main thread only.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from pathlib import Path
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
    """A group whose help never cuts a sentence off.

    :alone: the command that the name of the group without one stands for; empty: it shows the help
    """

    alone = ""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Without words, those of the command that it stands for."""
        return super().parse_args(ctx, args or [self.alone] * bool(self.alone))

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


def group(about: str | None = None, *, alone: str = "") -> typer.Typer:
    """A group of commands. `about`: one sentence; None: what the docstring of its callback says. `alone`: the command
    that the name of the group stands for.
    """
    made = typer.Typer(
        cls=type("CommandGroup", (CommandGroup,), {"alone": alone}),
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
    """The same command, ready quickly, and with a help that says where the options are that every command has."""
    for inner in getattr(command, "commands", {}).values():
        finish(inner)
    command.epilog = EPILOG
    hasten(command)
    return command


def hasten(command: Any) -> None:
    """Take parameters that need no reading as they are: to read any, typer loads pydantic and builds a schema."""
    for parameter in command.params:
        _hasten(parameter)
    make_help = command.get_help_option
    command.get_help_option = lambda context: _hasten(make_help(context))


def _hasten(parameter: Any) -> Any:
    if "process_value" not in vars(parameter):
        parameter.process_value = functools.partial(_read, parameter, parameter.process_value)
    return parameter


def _read(parameter: Any, read: Callable[[Any, Any], Any], context: Any, value: Any) -> Any:
    kind = getattr(parameter, "type_descriptor", None)
    is_path = isinstance(value, str) and getattr(getattr(kind, "parameter_info", None), "parser", None) is Path
    is_nothing = value is None and (not parameter.required or context.resilient_parsing)
    if not is_path and not is_nothing and not (isinstance(value, str) and getattr(kind, "annotation", None) is str):
        try:
            return read(context, value)
        except Exception as error:
            _say_it_plainly(error)
            raise
    value = Path(value) if is_path else value
    return value if parameter.callback is None else parameter.callback(context, parameter, value)


def _say_it_plainly(error: Any) -> None:
    """Put our words in the place of pydantic's."""
    reports = getattr(error.__cause__, "errors", None)
    if reports is not None and hasattr(error, "message"):
        from livememfs.config import in_words

        error.message = in_words(reports()[0])
