"""The tools for backups, tokens and the service itself.

Owns their answers; only the answer of `admin_create_token` has a token's secret. Refuses to decide who may call a tool:
the toolbox does, and for a space inside of a backup's id `_space_of`. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import trio

from livememfs import __version__
from livememfs.errors import BadRequest, LiveMemError, Unreachable
from livememfs.memories.parameters import Parameter
from livememfs.records.access import PERMISSIONS, Permission
from livememfs.records.token import Token
from livememfs.runs.undo.restore import restore_backup
from livememfs.serve.space_tools import CONFIRM, archive
from livememfs.serve.toolbox import LONGEST_PATH, SPACE, Answered, McpTool, ToolCall, Toolset, check_path, check_space
from livememfs.spaces import backups
from livememfs.text.times import iso

HEALTH_SECONDS = 10.0
MOST_DAYS = 36_500
_BACKUP = Parameter("backup_id", "SPACE/STAMP", required=True, longest=LONGEST_PATH)
_SPACES = Parameter("space_ids", "none: all", "array")
_WHICH = Parameter("token", "name or hash", required=True)
_SPACE = Parameter("space_id")
_RIGHTS = Parameter("permissions", kind="array", one_of=PERMISSIONS, required=True)
_NEW_RIGHTS = Parameter("permissions", kind="array", one_of=PERMISSIONS)
TOOLS = Toolset()


# --- backups -------------------------------------------------------------------------------------------------------


@TOOLS.add("Back a space up.", SPACE, returns={"backup_id": "string"}, needs="write", effect="adds")
async def backup_create(call: ToolCall, space_id: str) -> Answered:
    """Copy a space into a backup."""
    made = await backups.create(call.replica, call.clock, space_id, automatic=False)
    return {"backup_id": f"{space_id}/{made.stamp}", "objects": made.objects, "bytes": made.bytes}


@TOOLS.add("List backups.", _SPACE, returns={"backups": "array"})
async def backup_list(call: ToolCall, space_id: str = "") -> Answered:
    """The backups of one space or of all spaces that the caller sees, the oldest first."""
    listed = await backups.list_backups(call.replica, space_id or None)
    return {"backups": [_shown(backup) for backup in listed if call.access.sees(backup.space)]}


def _shown(backup: backups.Backup) -> dict[str, Any]:
    about = {name: getattr(backup, name) for name in ("objects", "bytes", "automatic", "complete")}
    return {"backup_id": f"{backup.space}/{backup.stamp}", **about}


def _space_of(call: ToolCall, backup_id: str, needs: Permission) -> tuple[str, str]:
    """The space and the stamp of a backup's id, where the caller has this permission. BadRequest, NotFound."""
    space, slash, stamp = backup_id.partition("/")
    if not slash or "/" in stamp:
        raise BadRequest(path="backup_id", detail=f"{backup_id[:80]!a} is no SPACE/STAMP")
    call.access.require(check_space(space), needs)
    return space, check_path(stamp, "backup_id")


@TOOLS.add(
    "Restore a space from a backup; can replace a space.",
    _BACKUP,
    CONFIRM,
    Parameter("to", "another space"),
    Parameter("replace", kind="boolean"),
    returns={"space_id": "string", "objects": "integer"},
    about="",
    effect="destroys",
)
async def backup_restore(
    call: ToolCall, backup_id: str, confirm: bool = False, to: str = "", replace: bool = False
) -> Answered:
    """Restore a space from a backup."""
    space, stamp = _space_of(call, backup_id, "admin")
    _confirmed(confirm, backup_id)
    if to:
        call.access.require(check_space(to), "admin")
    leases = call.context.consolidations.leases
    done = await restore_backup(call.replica, call.clock, leases, space, stamp, to=to or None, replace=replace)
    saved = {"saved_as": f"{done.target}/{done.saved}"} if done.saved else {}
    return {"space_id": done.target, "objects": done.objects, **saved}


@TOOLS.add("Get a backup as .tar.gz.", _BACKUP, returns={"archive_base64": "string"}, about="")
async def backup_download(call: ToolCall, backup_id: str) -> Answered:
    """A backup as an archive in base64."""
    space, stamp = _space_of(call, backup_id, "read")
    backup = await backups.find(call.replica, space, stamp, whole=True)
    return await archive(call, backup.prefix, "_backups/", f"livememfs backup download {space} {stamp}")


@TOOLS.add("Remove a backup.", _BACKUP, CONFIRM, returns={"objects": "integer"}, about="", effect="destroys")
async def backup_delete(call: ToolCall, backup_id: str, confirm: bool = False) -> Answered:
    """Remove a backup."""
    space, stamp = _space_of(call, backup_id, "admin")
    _confirmed(confirm, backup_id)
    return {"objects": await backups.delete(call.replica, space, stamp)}


def _confirmed(confirm: bool, path: str) -> None:
    if not confirm:
        raise BadRequest(path=path, detail="nothing was done: confirm is not true")


# --- the service ---------------------------------------------------------------------------------------------------


@TOOLS.add("Tell whether the store answers.", returns={"status": "string"}, about="")
async def system_health(call: ToolCall) -> Answered:
    """Whether the bucket answers, and how much waits for upload."""
    begun = trio.current_time()
    reason = ""
    try:
        with trio.fail_after(min(HEALTH_SECONDS, call.timeout)):
            await call.replica.names.listing("", fresh=True)
    except trio.TooSlowError:
        reason = "the bucket does not answer"
    except LiveMemError as error:
        reason = str(error) if call.access.everywhere else str(Unreachable("the bucket does not answer"))
    pending = call.replica.statistics().journal.pending
    store = {"ok": not reason, "latency_ms": round((trio.current_time() - begun) * 1_000), "reason": reason}
    return {"status": "degraded" if reason else "ok", "store": store, "pending": pending}


def about_of(names: Callable[[], Sequence[str]]) -> McpTool:
    """`system_about`, which lists the other tools."""

    async def system_about(call: ToolCall) -> Answered:
        return {
            "name": "livememfs",
            "version": __version__,
            "model": str(call.context.status().get("model", "")),
            "agent": call.agent,
            "permissions": [permission for permission in PERMISSIONS if call.access.may(permission)],
            "tools": list(names()),
        }

    returns: dict[str, Any] = {"version": "string", "permissions": "array", "tools": "array"}
    return McpTool("system_about", "Tell version, permissions, tools.", (), returns, system_about, about="")


# --- tokens --------------------------------------------------------------------------------------------------------


@TOOLS.add(
    "Make a token; it is shown only once.",
    Parameter("name", required=True),
    _RIGHTS,
    _SPACES,
    Parameter("expires_in_days", kind="number", most=MOST_DAYS),
    returns={"token": "string", "hash": "string"},
    needs="admin",
    about="",
    effect="adds",
)
async def admin_create_token(
    call: ToolCall, name: str, permissions: Sequence[str], space_ids: Sequence[str] = (), expires_in_days: float = 0
) -> Answered:
    """Make a token."""
    lasts = timedelta(days=expires_in_days) if expires_in_days else None
    secret, token = await call.tokens.create(name, permissions, space_ids, lasts)
    return {"token": secret, **token_shown(token, call.clock.now())}


@TOOLS.add("List tokens.", returns={"tokens": "array"}, needs="admin", about="")
async def admin_list_tokens(call: ToolCall) -> Answered:
    """All tokens, without their secrets."""
    now = call.clock.now()
    return {"tokens": [token_shown(token, now) for token in await call.tokens.list()]}


@TOOLS.add(
    "Change a token's rights.", _WHICH, _NEW_RIGHTS, _SPACES, returns={}, needs="admin", about="", effect="changes"
)
async def admin_update_token(
    call: ToolCall, token: str, permissions: Sequence[str] | None = None, space_ids: Sequence[str] | None = None
) -> Answered:
    """Change what a token may do."""
    changed = await call.tokens.update(token, permissions=permissions, spaces=space_ids)
    return token_shown(changed, call.clock.now())


@TOOLS.add("Revoke a token for good.", _WHICH, returns={}, needs="admin", about="", effect="destroys")
async def admin_revoke_token(call: ToolCall, token: str) -> Answered:
    """Revoke a token."""
    return token_shown(await call.tokens.revoke(token), call.clock.now())


@TOOLS.add("Remove a token.", _WHICH, returns={}, needs="admin", about="", effect="destroys")
async def admin_delete_token(call: ToolCall, token: str) -> Answered:
    """Remove a token from the list."""
    return token_shown(await call.tokens.delete(token), call.clock.now())


@TOOLS.add(
    "Remove expired tokens.",
    Parameter("revoked", "revoked ones too", "boolean"),
    returns={"removed": "array"},
    needs="admin",
    about="",
    effect="destroys",
)
async def admin_purge_tokens(call: ToolCall, revoked: bool = False) -> Answered:
    """Remove expired tokens."""
    return {"removed": [token.name for token in await call.tokens.purge(revoked=revoked)]}


def token_shown(token: Token, now: datetime) -> dict[str, Any]:
    """A token without its secret."""
    return {
        "name": token.name,
        "hash": token.hash,
        "state": token.state(now),
        "permissions": list(token.permissions),
        "space_ids": list(token.spaces),
        "created_at": iso(token.created_at) if token.created_at else None,
        "expires_at": iso(token.expires_at) if token.expires_at else None,
        "last_used_at": iso(token.last_used_at) if token.last_used_at else None,
    }
