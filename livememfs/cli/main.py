"""The command `livememfs`: its groups, and what the shell learns of a failure.

Owns the assembly. A failure we know ends in one sentence on standard error and the error's own exit code; anything else
is a bug and shows its traceback. Main thread only.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from livememfs import __version__
from livememfs.cli import (
    backup,
    completion,
    consolidate,
    demo,
    digest,
    doctor,
    gc,
    history,
    index,
    install,
    mcp,
    memories,
    mount,
    note,
    output,
    recall,
    search,
    selftest,
    service,
    space,
    status,
    token,
    umount,
    web,
)
from livememfs.errors import LiveMemError

app = typer.Typer(
    name="livememfs",
    help="Agent memory as a file system: a bucket of notes and banks, mounted.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("mount")(mount.mount)
app.command("umount")(umount.umount)
app.command("status")(status.status)
app.command("doctor")(doctor.doctor)
app.command("selftest")(selftest.selftest)
app.command("demo")(demo.demo)
app.command("completion")(completion.completion)
app.add_typer(space.app, name="space")
app.add_typer(backup.app, name="backup")
app.command("note")(note.note)
app.add_typer(memories.app, name="memories")
app.command("search")(search.search)
app.command("recall")(recall.recall)
app.add_typer(index.app, name="index")
app.command("consolidate")(consolidate.consolidate)
app.command("digest")(digest.digest)
app.command("history")(history.history)
app.command("undo")(history.undo)
app.command("gc")(gc.gc)
app.command("mcp")(mcp.mcp)
app.command("web")(web.web)
app.add_typer(token.app, name="token")
app.command("install")(install.install)
app.command("uninstall")(install.uninstall)
app.add_typer(service.app, name="service")


def _version(wanted: bool) -> None:
    if wanted:
        output.say(f"livememfs {__version__}")
        raise typer.Exit


@app.callback()
def livememfs(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it.")] = False,
) -> None:
    """Agent memory as a file system: a bucket of notes and banks, mounted."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit: 0 done, 1 failed, 2 used wrongly, 130 interrupted."""
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
        output.note(f"livememfs: what is to be shown cannot be written: {error.strerror} (the command itself is done)")
        sys.exit(1)
