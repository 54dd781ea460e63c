"""`livememfs space ...`: spaces on the store, with or without a mount.

Owns what is printed, and the question before a space is removed. Main thread only.
"""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import completion, listing, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, expanded, on_store, option
from livememfs.environment import user_name
from livememfs.errors import UsageError
from livememfs.records import keys
from livememfs.runs.options import BY_DIGEST

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.records.ledger import Entry
    from livememfs.records.space import Meta
    from livememfs.spaces import making as spaces

app = listing.group("Make, show, export and remove spaces.")

SpaceName = Annotated[str, argument(metavar="SPACE", help="Name of the space.", autocompletion=completion.spaces)]


class Distil(StrEnum):
    """The kind of run that removes notes from `live/`."""

    DIGEST = BY_DIGEST


# --- making ------------------------------------------------------------------------------------------------------


@app.command()
@command
def create(
    choice: Choice,
    name: SpaceName,
    rules: Annotated[
        str | None,
        option(
            metavar="standard|journal|minimal|FILE",
            help="Which files the bank has. Sealed; without it the first consolidation uses the standard.",
        ),
    ] = None,
    description: Annotated[str, option(metavar="TEXT", help="Its purpose.")] = "",
    owner: Annotated[str | None, option(metavar="NAME", help="Its owner.  [default: you]")] = None,
    distil: Annotated[
        Distil | None, option(help="A digest removes notes from live/; without it a consolidation does.")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a space.

    livememfs space create project
    livememfs space create diary --rules journal --description 'what I did'
    """
    from livememfs.spaces import making as spaces

    text = None if rules is None else _rules_text(rules)

    async def work(app: App) -> Meta:
        return await spaces.create(
            app.replica,
            app.clock,
            name,
            description=description,
            owner=user_name() if owner is None else owner,
            rules=text,
            distil=[distil.value] if distil is not None else [],
            on_private=output.complain,
        )

    meta = on_store(choice.on_store(), work)
    output.answer(
        meta,
        f"space {name} is made; write notes into {name}/live/ of a mount, or `livememfs note {name} TEXT`",
        as_json=as_json,
    )


def _rules_text(rules: str) -> str:
    """A template's text, or a file's."""
    from livememfs.records.rules import templates

    known = templates()
    if rules in known:
        return known[rules]
    try:
        return expanded(Path(rules)).read_text("utf-8")
    except UnicodeDecodeError:
        raise UsageError(f"the rules in {rules} are not UTF-8 text") from None
    except OSError as error:
        named = ", ".join(known)
        raise UsageError(f"--rules is {named} or a file, and {rules} cannot be read: {error.strerror}") from None


# --- looking -----------------------------------------------------------------------------------------------------


@app.command("list")
@command
def list_spaces(choice: Choice, as_json: JsonFlag = False) -> None:
    """List all spaces.

    livememfs space list
    """
    from livememfs.spaces import making as spaces

    async def work(app: App) -> tuple[list[spaces.SpaceEntry], str]:
        return await spaces.list_spaces(app.replica), app.store.label

    listed, place = on_store(choice.on_store(), work)
    columns = ["SPACE", "CREATED", "CONSOLIDATED", "RUNS", "NOTES TAKEN IN", "DESCRIPTION"]
    # Name the place: a mistyped folder is created, and then looks like lost memory.
    none = f"there is no space in {place} yet; `livememfs space create NAME` makes one"
    output.listing(listed, columns, _rows(listed), none, as_json=as_json, spare=["CREATED", "RUNS"])


def _rows(listed: list[spaces.SpaceEntry]) -> list[list[str]]:
    rows = []
    for entry in listed:
        cells = ["-", "-", "-", "-", entry.problem]
        if (meta := entry.meta) is not None:
            dates = [output.when(meta.created_at), output.when(meta.last_consolidation)]
            cells = [*dates, str(meta.consolidation_count), str(meta.total_notes_processed), meta.description]
        rows.append([entry.name, *cells])
    return rows


@app.command()
@command
def info(choice: Choice, name: SpaceName, as_json: JsonFlag = False) -> None:
    """Show a space: its notes, bank, rules, owner and dates.

    livememfs space info project
    """
    from livememfs.spaces import making as spaces

    space = on_store(choice.on_store(), lambda app: spaces.info(app.replica, name), name)
    if as_json:
        output.print_json(space)
        return
    lines = {
        "notes waiting": f"{space.notes} ({output.size(space.note_bytes)})",
        "bank": f"{output.plural(space.bank_files, 'file')} ({output.size(space.bank_bytes)})",
        "rules": "sealed" if space.rules else "not chosen yet",
        "synthesis": "yes" if space.synthesis else "no",
    }
    if space.meta is not None:
        lines |= {
            "description": space.meta.description or "-",
            "owner": space.meta.owner or "-",
            "created": output.when(space.meta.created_at),
            "consolidated": output.when(space.meta.last_consolidation),
            "consolidations": str(space.meta.consolidation_count),
            "notes taken in": str(space.meta.total_notes_processed),
        }
    if space.problem:
        lines["problem"] = space.problem
    output.say(f"space {name}", *(f"  {label + ':':16}{value}" for label, value in lines.items()))


@app.command()
@command
def rules(
    choice: Choice,
    name: SpaceName,
    replace: Annotated[
        str | None,
        option(metavar="standard|journal|minimal|FILE", help="Seal these rules instead; undo takes it back."),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Print a space's rules, or replace them.

    livememfs space rules project
    livememfs space rules project --replace rules.md
    """
    from livememfs.spaces import making as spaces

    if replace is not None:
        _replace_rules(choice, name, _rules_text(replace), as_json)
        return
    text = on_store(choice.on_store(), lambda app: spaces.rules(app.replica, name), name)
    output.answer({"space": name, "rules": text}, text.rstrip("\n"), as_json=as_json)


def _replace_rules(choice: Choice, name: str, text: str, as_json: bool) -> None:
    from livememfs.runs.edit import Replacement, edit
    from livememfs.spaces import making as spaces
    from livememfs.spaces.objects import public

    async def work(app: App) -> Entry | None:
        data = await public(text, keys.rules_key(name), output.complain)
        spaces.check_rules(name, data)
        leases, host = app.consolidations.leases, app.settings.host_name
        sealed = [Replacement(keys.RULES, data.decode())]
        return await edit(app.replica, app.clock, leases, host, name, sealed, user_name())

    entry = on_store(choice.on_store(), work, name)
    run = entry.number if entry is not None else None
    said = f"the rules of {name} are sealed: run {run}; `livememfs undo {name} {run}` takes it back"
    output.answer({"space": name, "run": run}, said if run else "the rules are these already", as_json=as_json)


@app.command("allow-web")
@command
def allow_web(
    choice: Choice,
    name: SpaceName,
    off: Annotated[bool, typer.Option("--off", help="Do not tell them, as in a new space.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Have agents told what pages and mails said, marked, without asking for it.

    livememfs space allow-web project
    """
    from livememfs.spaces import changing

    meta = on_store(choice.on_store(), lambda app: changing.allow_web(app.replica, name, not off), name)
    told = "is told unasked, and marked" if meta.allow_web else "is not told unasked"
    output.answer({"space": name, "allow_web": meta.allow_web}, f"what the web said {told} in {name}", as_json=as_json)


@app.command("proposals")
@command
def want_proposals(
    choice: Choice,
    name: SpaceName,
    off: Annotated[bool, typer.Option("--off", help="Store it at once, as in a new space.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Have what digests and the observer would add wait until a person accepts it.

    livememfs space proposals project
    """
    from livememfs.spaces import changing

    meta = on_store(choice.on_store(), lambda app: changing.want_proposals(app.replica, name, not off), name)
    done = "waits for a person" if meta.proposals else "is stored at once"
    said = f"what digests and the observer add to {name} {done}"
    output.answer({"space": name, "proposals": meta.proposals}, said, as_json=as_json)


@app.command()
@command
def summary(choice: Choice, name: SpaceName, as_json: JsonFlag = False) -> None:
    """Print a space's rules and whole bank as one page.

    livememfs space summary project | less
    """
    from livememfs.spaces import making as spaces

    text = on_store(choice.on_store(), lambda app: spaces.summary(app.replica, name), name)
    output.answer(text, text.render().rstrip("\n"), as_json=as_json)


# --- taking out --------------------------------------------------------------------------------------------------


@app.command()
@command
def export(
    choice: Choice,
    name: SpaceName,
    target: Annotated[
        Path | None, argument(metavar="[FILE]", help="A .tar.gz or .zip file.  [default: SPACE.tar.gz here]")
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Write all objects of a space into one archive.

    livememfs space export project
    livememfs space export project backup.zip
    """
    from livememfs.spaces import making as spaces

    path = expanded(target or Path(f"{name}.tar.gz")).absolute()

    settings = choice.on_store()
    with output.bar(f"exporting {name}") as progress:
        archive = on_store(settings, lambda app: spaces.export(app.replica, name, path, progress=progress), name)
    output.exported(archive, as_json)


@app.command()
@command
def delete(
    choice: Choice,
    name: SpaceName,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove a space with everything in it.

    livememfs space delete project
    """
    from livememfs.spaces import making as spaces

    async def work(app: App) -> int:
        with output.bar(f"removing {name}") as progress:
            async with app.consolidations.leases.hold(name):
                return await spaces.delete(app.replica, name, progress=progress)

    settings = choice.on_store()
    if not yes:
        info = on_store(settings, lambda app: spaces.info(app.replica, name), name)
        holds = f"{output.plural(info.notes, 'note')} and {output.plural(info.bank_files, 'bank file')}"
        output.confirm(  # outside of trio, so that Ctrl-C ends the question
            f"space {name} holds {holds}. Remove it for good?",
            unasked=f"space {name} holds {holds}; pass --yes to remove it without a question",
            refused=f"space {name} was not removed",
        )
    removed = on_store(settings, work, name)
    output.answer(
        {"space": name, "removed_objects": removed},
        f"space {name} is removed ({output.plural(removed, 'object')})",
        as_json=as_json,
    )
