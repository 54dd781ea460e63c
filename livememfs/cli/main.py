"""The command `livememfs`: its sections, and how a failure ends.

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
from typing import Annotated, Any, NamedTuple

import typer
import typer.core
import typer.main

from livememfs import __version__
from livememfs.cli import common, listing, output
from livememfs.cli.common import Choice
from livememfs.environment import environment
from livememfs.errors import LiveMemError


class Listed(NamedTuple):
    """One command.

    :module: has a function of the command's name (`import_`: Python keeps the word), or the `app` of a group
    :about:  the first line of the help, repeated here so that the list of all commands need not load them
    """

    module: str
    about: str
    is_group: bool = False


SECTIONS: dict[str, dict[str, Listed]] = {
    "Begin, and look after it": {
        "init": Listed("first.init", "Set it up: store, model, configuration, mount, a first space, agents."),
        "mount": Listed("mounting.mount", "Mount the memory on MOUNTPOINT."),
        "sync": Listed("serving.sync", "Keep the plain directory DIR equal to the bucket, both ways, without FUSE."),
        "umount": Listed("mounting.umount", "Unmount, and wait until everything is saved."),
        "status": Listed("mounting.status", "Show the mounts and mirrors and their states."),
        "top": Listed("mounting.top", "Show what the mounts are doing, again and again."),
        "doctor": Listed("doctor", "Check machine, store, models, agents and settings, and name the next thing to do."),
        "demo": Listed("demo", "Show notes, consolidation, observing and the bucket, in a temporary directory."),
        "selftest": Listed("selftest", "Try a mount: notes, search, a dry run, files, the upload to the bucket."),
        "service": Listed("mounting.service", "Mount by a systemd user unit, or by /etc/fstab.", is_group=True),
        "completion": Listed(
            "completion", "Print the script with which SHELL completes commands, options, spaces and mount points."
        ),
    },
    "Remember and find": {
        "note": Listed("note", "Write a note into SPACE."),
        "search": Listed("search", "Search notes and banks by words and by meaning."),
        "recall": Listed("recall", "Print what to know before answering a message, each item once a session."),
        "memories": Listed("memories", "List, store, forget and restore memories.", is_group=True),
    },
    "Spaces and their banks": {
        "space": Listed("space", "Make, show, export and remove spaces.", is_group=True),
        "consolidate": Listed("runs", "Fold the notes of SPACE into its bank."),
        "digest": Listed("runs", "Store the lasting facts of SPACE's new notes as memories."),
        "history": Listed("history", "List the runs of SPACE, the newest first."),
        "undo": Listed("history", "Take back run N of SPACE and all runs after it."),
        "bank": Listed("bank", "Mend bank files.", is_group=True),
        "audit": Listed("checks.audit", "Show what a space tells in vain, says twice, or never tells, and its cost."),
        "proposals": Listed("deciding.proposals", "Accept or refuse what is proposed to a space.", is_group=True),
        "backup": Listed("backup", "Make, list, restore and remove backups of spaces.", is_group=True),
    },
    "Agents and clients": {
        "install": Listed("connecting.install", "Connect TOOL to a space: hooks, context file and MCP server."),
        "uninstall": Listed("connecting.install", "Remove what `install` wrote in a project, or with --user for all."),
        "adopt": Listed("connecting.adopt", "Make TOOL's own memory a folder of SPACE, for all machines."),
        "mcp": Listed("serving.mcp", "Serve MCP on standard input and output, or over HTTP."),
        "web": Listed("serving.web", "Serve the live page, MCP (/mcp) and figures (/metrics) over HTTP."),
        "dav": Listed("serving.dav", "Serve the tree over WebDAV, for file managers and where nothing can be mounted."),
        "hook": Listed("serving.hook", "Have a mirror answer the event of an agent that is on standard input."),
        "token": Listed("serving.token", "Tokens for MCP and the live page, and for limited mounts.", is_group=True),
    },
    "In, out, and upkeep": {
        "import": Listed("moving", "Bring what another program remembers into SPACE."),
        "export": Listed("moving", "Write the notes, memories and bank of SPACE as files that other programs read."),
        "index": Listed("index", "Show, check or rebuild the search index.", is_group=True),
        "gc": Listed("gc", "List unused objects; --delete removes them."),
    },
}  # fmt: skip
"""Every command, in the order of the help."""
COMMANDS = {name: entry for section in SECTIONS.values() for name, entry in section.items()}
LIMITED = (["mount"], ["mcp"])
"""Commands that run for long and take a token."""


class _Commands(MutableMapping[str, Any]):
    """Every command by its name, loaded at its first use."""

    def __init__(self) -> None:
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = listing.finish(self._load(name, COMMANDS[name]))
        return self._loaded[name]

    def _load(self, name: str, entry: Listed) -> Any:
        holding = listing.group()
        module = import_module(f"livememfs.cli.{entry.module}")
        if entry.is_group:
            holding.add_typer(module.app, name=name)
        else:
            holding.command(name)(getattr(module, f"{name}_" if iskeyword(name) else name))
        return typer.main.get_group(holding).commands[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._loaded[name] = command

    def __delitem__(self, name: str) -> None:
        raise TypeError("commands stay")

    def __contains__(self, name: object) -> bool:
        return name in COMMANDS

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _All(listing.CommandGroup):
    """The group of all commands, as the parser needs it. Help and completion of names load none of them."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = _Commands()
        listing.hasten(self)

    def list_commands(self, ctx: Any) -> list[str]:
        """All names, in the order of the help."""
        return list(self.commands)

    def about(self, name: str) -> str:
        """The first line of a command's help."""
        return COMMANDS[name].about

    def sections(self) -> dict[str, list[str]]:
        """The names of the commands below each heading."""
        return {heading: list(section) for heading, section in SECTIONS.items()}

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """The names, or the options, that begin so."""
        if incomplete and not incomplete[0].isalnum():
            return super(typer.core.TyperGroup, self).shell_complete(ctx, incomplete)
        from typer._click.shell_completion import CompletionItem

        return [CompletionItem(name, help=self.about(name)) for name in COMMANDS if name.startswith(incomplete)]


app = listing.group()


def _version(wanted: bool) -> None:
    if wanted:
        output.say(f"{listing.PROGRAM} {__version__}")
        raise typer.Exit


@app.callback(cls=_All)
@common.before_commands
def livememfs(
    choice: Choice,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Agent memory as a file system: a bucket of notes and banks, mounted.

    The options stand before or after the command's name.

        livememfs demo                              look at it, without any set-up
        livememfs mount ~/memory                    mount the memory of this user
        livememfs note project 'we chose S3'        write a note
        livememfs search 'which database'           find it
    """


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 failed, 2 used wrongly, 130 interrupted."""
    if arguments is None and sys.argv[1:2] in LIMITED:
        _hide_the_token()
    if environment().get(listing.COMPLETING):
        from typer._completion_classes import completion_init

        completion_init()  # the parser skips it because our app hides the options of completion
    output.take_any_text()
    try:
        app(args=arguments, prog_name=listing.PROGRAM)
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

        os.execve(sys.executable, [sys.executable, *words], environment() | {config.setting_names()["token"]: secret})
