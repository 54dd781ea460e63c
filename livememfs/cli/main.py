"""The command `livememfs`: its groups, and how a failure ends.

Owns the assembly of the commands. A process loads only the command it runs: loading all takes longer than most commands
need. A known error ends in one sentence on standard error and the error's own exit code; any other exception is a bug
and shows its traceback. Main thread only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, MutableMapping, Sequence
from importlib import import_module
from keyword import iskeyword
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from livememfs import __version__
from livememfs.cli import completion, output
from livememfs.errors import LiveMemError

COMMANDS = {
    "mount": "mounting.mount", "umount": "mounting.umount", "status": "mounting.status", "doctor": "doctor",
    "selftest": "selftest", "demo": "demo", "completion": "completion", "note": "note", "search": "search",
    "recall": "recall",
    "consolidate": "runs", "digest": "runs", "history": "history", "undo": "history", "gc": "gc",
    "import": "moving", "export": "moving", "mcp": "mcp", "web": "web", "install": "install", "uninstall": "install",
    "adopt": "adopt", "audit": "checks.audit",
}  # fmt: skip
"""The module of each command, which has a function of the command's name (`import_`: Python keeps the word)."""
GROUPS = {
    "space": "space", "bank": "bank", "backup": "backup", "memories": "memories", "index": "index", "token": "token",
    "service": "mounting.service", "proposals": "deciding.proposals",
}  # fmt: skip
"""Groups of commands, each the `app` of its module."""
LIMITED = (["mount"], ["mcp"])
"""Commands that run for long and take a token."""
SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "add_completion": False,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"]},
}


class _Commands(MutableMapping[str, Any]):
    """Every command by its name, loaded at its first use."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def _load(self, name: str) -> Any:
        holding = typer.Typer(**SETTINGS)
        if name in COMMANDS:
            module = import_module(f"livememfs.cli.{COMMANDS[name]}")
            holding.command(name)(getattr(module, f"{name}_" if iskeyword(name) else name))
        elif name in GROUPS:
            holding.add_typer(import_module(f"livememfs.cli.{GROUPS[name]}").app, name=name)
        else:
            raise KeyError(name)
        return typer.main.get_group(holding).commands[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands stay")

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS or name in GROUPS

    def __iter__(self) -> Iterator[str]:
        return iter((*COMMANDS, *GROUPS))

    def __len__(self) -> int:
        return len(COMMANDS) + len(GROUPS)


class _Group(typer.core.TyperGroup):
    """The group of all commands, as the parser needs it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the help."""
        return list(self.commands)


ABOUT = "Agent memory as a file system: a bucket of notes and banks, mounted."

app = typer.Typer(name="livememfs", help=ABOUT, cls=_Group, **SETTINGS)


def _version(wanted: bool) -> None:
    if wanted:
        output.say(f"livememfs {__version__}")
        raise typer.Exit


@app.callback()
def livememfs(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Agent memory as a file system: a bucket of notes and banks, mounted."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 failed, 2 used wrongly, 130 interrupted."""
    if arguments is None and sys.argv[1:2] in LIMITED:
        _hide_the_token()
    completion.prepare()
    output.take_any_text()
    try:
        app(args=arguments, prog_name=completion.PROGRAM)
    except LiveMemError as error:
        output.complain(error)
        sys.exit(error.exit_code)
    except OSError as error:
        if not output.is_lost():
            raise
        output.note(f"livememfs: the output cannot be written: {error.strerror} (the command itself is done)")
        sys.exit(1)


def _hide_the_token() -> None:
    """Start this process again with the token in the environment instead of an argument.

    Everybody on the machine can read the arguments of a process, but only its user can read its environment.
    """
    secret, words = "", list[str]()
    rest = iter(sys.orig_argv[1:])
    for word in rest:
        if word == "--token":
            secret = next(rest, "")
        elif word.startswith("--token="):
            secret = word.removeprefix("--token=")
        else:
            words.append(word)
    if secret:
        from livememfs import config  # imported here because it loads slowly, and most commands do not need it yet

        environment = config.environment() | {config.setting_names()["token"]: secret}
        os.execve(sys.executable, [sys.executable, *words], environment)
