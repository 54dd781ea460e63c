"""`livememfs token`: make and manage the tokens for HTTP and for limited mounts.

Owns what is printed: a token's secret only once, when the token is made. Main thread only.
"""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from livememfs.cli import listing, output
from livememfs.cli.common import Choice, JsonFlag, argument, command, on_store
from livememfs.errors import UsageError
from livememfs.records.access import PERMISSIONS
from livememfs.text.times import iso

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.records.token import Token

app = listing.group("Tokens for MCP and the live page, and for limited mounts.")

SHOWN_DIGITS = 12
SPARE = ("HASH", "LAST USED")
_LASTS = re.compile(r"([0-9]{1,6})([mhdwy])")
_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
DAYS_A_YEAR = 365

Which = Annotated[str, argument(metavar="TOKEN", help="Its name, or the beginning of its hash.")]


@app.command()
@command
def create(
    choice: Choice,
    name: Annotated[str, argument(metavar="NAME", help="Its purpose or its owner.")],
    permissions: Annotated[
        str, typer.Option("--permissions", metavar="LIST", help="read, write, admin; each includes those before it.")
    ] = "read",
    space: Annotated[
        list[str] | None, typer.Option("--space", metavar="SPACE", help="Only this space; repeat.  [default: all]")
    ] = None,
    expires: Annotated[
        str | None,
        typer.Option("--expires", metavar="TIME", help="How long it is valid: 12h, 30d, 1y.  [default: forever]"),
    ] = None,
    as_json: JsonFlag = False,
) -> None:
    """Make a token and show it once.

    livememfs token create ci --permissions read,write --space project --expires 30d
    """
    wanted = _listed(permissions)
    secret, token = on_store(
        choice.on_store(), lambda app: app.tokens.create(name, wanted, space or (), _lasts(expires))
    )
    if as_json:
        output.print_json({"token": secret, **token.to_json()})
        return
    output.say(secret)
    output.note(f"token {name}: {_rights(token)}; it is shown only now, and cannot be shown again")


@app.command("list")
@command
def list_tokens(choice: Choice, as_json: JsonFlag = False) -> None:
    """List all tokens, without their secrets.

    livememfs token list
    """

    async def work(app: App) -> tuple[list[Token], datetime]:
        return list(await app.tokens.list()), app.clock.now()

    tokens, now = on_store(choice.on_store(), work)
    values = [{**token.to_json(), "state": token.state(now)} for token in tokens]
    columns = ["NAME", "STATE", "PERMISSIONS", "SPACES", "EXPIRES", "LAST USED", "HASH"]
    none = "there is no token yet; `livememfs token create NAME` makes one"
    output.listing(values, columns, [_row(token, now) for token in tokens], none, as_json=as_json, spare=SPARE)


def _row(token: Token, now: datetime) -> list[str]:
    from livememfs.records.token import HASH

    return [
        token.name,
        token.state(now),
        ",".join(token.permissions),
        ",".join(token.spaces) or "all",
        iso(token.expires_at) if token.expires_at else "never",
        iso(token.last_used_at) if token.last_used_at else "never",
        token.hash.removeprefix(HASH)[:SHOWN_DIGITS],
    ]


def _rights(token: Token) -> str:
    spaces = ", ".join(token.spaces) or "all spaces"
    until = f", until {iso(token.expires_at)}" if token.expires_at else ""
    return f"{', '.join(token.permissions)} in {spaces}{until}"


@app.command()
@command
def revoke(choice: Choice, token: Which, as_json: JsonFlag = False) -> None:
    """Revoke a token; it stays in the list.

    livememfs token revoke ci
    """
    _tell("revoked", on_store(choice.on_store(), lambda app: app.tokens.revoke(token)), as_json)


@app.command()
@command
def delete(choice: Choice, token: Which, as_json: JsonFlag = False) -> None:
    """Remove a token from the list.

    livememfs token delete ci
    """
    _tell("deleted", on_store(choice.on_store(), lambda app: app.tokens.delete(token)), as_json)


@app.command()
@command
def update(
    choice: Choice,
    token: Which,
    permissions: Annotated[str | None, typer.Option("--permissions", metavar="LIST", help="What it may do.")] = None,
    space: Annotated[
        list[str] | None, typer.Option("--space", metavar="SPACE", help="Only this space; repeat.")
    ] = None,
    all_spaces: Annotated[bool, typer.Option("--all-spaces", help="Allow all spaces.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Change what a token may do.

    livememfs token update ci --permissions read
    """
    if space and all_spaces:
        raise UsageError("--space and --all-spaces exclude each other")
    wanted = _listed(permissions) if permissions is not None else None
    spaces = [] if all_spaces else space
    if wanted is None and spaces is None:
        raise UsageError(f"say what changes: --permissions {','.join(PERMISSIONS)}, --space, or --all-spaces")
    changed = on_store(choice.on_store(), lambda app: app.tokens.update(token, permissions=wanted, spaces=spaces))
    _tell("changed", changed, as_json)


@app.command()
@command
def purge(
    choice: Choice,
    revoked: Annotated[bool, typer.Option("--revoked", help="Remove revoked tokens too.")] = False,
    as_json: JsonFlag = False,
) -> None:
    """Remove expired tokens from the list.

    livememfs token purge --revoked
    """
    gone = on_store(choice.on_store(), lambda app: app.tokens.purge(revoked=revoked))
    output.answer(
        [token.to_json() for token in gone],
        f"{output.plural(len(gone), 'token')} removed{''.join(f', {token.name}' for token in gone)}",
        as_json=as_json,
    )


def _tell(done: str, token: Token, as_json: bool) -> None:
    output.answer(token.to_json(), f"token {token.name} is {done}: {_rights(token)}", as_json=as_json)


def _listed(text: str) -> list[str]:
    return [word.strip() for word in text.split(",") if word.strip()]


def _lasts(text: str | None) -> timedelta | None:
    """A duration as people write it, such as `30d`. UsageError."""
    if text is None:
        return None
    match = _LASTS.fullmatch(text.strip().lower())
    if match is None:
        raise UsageError(f"--expires is a number and a unit, like 12h, 30d or 1y, not {text!r}")
    count = int(match[1])
    return timedelta(days=count * DAYS_A_YEAR) if match[2] == "y" else timedelta(**{_UNITS[match[2]]: count})
