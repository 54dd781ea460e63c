"""The tools for backups and tokens.

Owns their answers; only the answer of `admin_create_token` has a token's secret. Refuses to decide who may call a tool:
the toolbox does, and for a space inside of a backup's id `_space_of`. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from livememfs.errors import BadRequest
from livememfs.memories.parameters import Parameter
from livememfs.records.access import PERMISSIONS, Permission
from livememfs.records.token import State, Token
from livememfs.runs.undo.restore import restore_backup
from livememfs.serve.space_tools import CONFIRM, archive
from livememfs.serve.toolbox import (
    DESCRIPTION,
    LONGEST_PATH,
    SPACE,
    Answered,
    ToolCall,
    Toolset,
    check_path,
    check_space,
)
from livememfs.spaces import backups
from livememfs.spaces.objects import public_name
from livememfs.text.times import iso

MOST_DAYS = 36_500
_BACKUP = Parameter("backup_id", "SPACE/STAMP", required=True, longest=LONGEST_PATH)
_SPACES = Parameter("space_ids", "none: all", "texts")
_WHICH = Parameter("token_hash", "name or hash", required=True, also="token")
_EMAIL = Parameter("email")
_SPACE = Parameter("space_id")
_RIGHTS = Parameter("permissions", kind="texts", one_of=PERMISSIONS)
TOOLS = Toolset()


# --- backups -------------------------------------------------------------------------------------------------------


@TOOLS.add(
    "Back a space up.",
    SPACE,
    DESCRIPTION,
    returns={"backup_id": "string"},
    needs="write",
    effect="adds",
    done="created",
)
async def backup_create(call: ToolCall, space_id: str, description: str = "") -> Answered:
    """Copy a space into a backup."""
    about = public_name(description, f"a backup of {space_id}", call.warn)
    made = await backups.create(call.replica, call.clock, space_id, automatic=False, about=about)
    return {
        "backup_id": f"{space_id}/{made.stamp}",
        "timestamp": made.stamp,
        "files_backed_up": made.objects,
        "total_size": made.bytes,
        "objects": made.objects,
        "bytes": made.bytes,
    }


@TOOLS.add("List backups.", _SPACE, returns={"backups": "array"})
async def backup_list(call: ToolCall, space_id: str = "") -> Answered:
    """The backups of one space or of all spaces that the caller sees, the oldest first."""
    listed = await backups.list_backups(call.replica, space_id or None)
    seen = [_shown(backup) for backup in listed if call.access.sees(backup.space)]
    return {"backups": seen, "total": len(seen)}


def _shown(backup: backups.Backup) -> dict[str, Any]:
    about = {name: getattr(backup, name) for name in ("objects", "bytes", "automatic", "complete")}
    about |= {"description": backup.about} if backup.about else {}
    return {
        "backup_id": f"{backup.space}/{backup.stamp}",
        "space_id": backup.space,
        "timestamp": backup.stamp,
        **about,
    }


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
    returns={"space_id": "string", "files_restored": "integer"},
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
    return {"space_id": done.target, "files_restored": done.objects, "objects": done.objects, **saved}


@TOOLS.add("Get a backup as .tar.gz.", _BACKUP, returns={"archive_base64": "string"}, about="")
async def backup_download(call: ToolCall, backup_id: str) -> Answered:
    """A backup as an archive in base64."""
    space, stamp = _space_of(call, backup_id, "read")
    backup = await backups.find(call.replica, space, stamp, whole=True)
    return await archive(call, backup.prefix, "_backups/", f"livememfs backup download {space} {stamp}")


@TOOLS.add(
    "Remove a backup.",
    _BACKUP,
    CONFIRM,
    returns={"files_deleted": "integer"},
    about="",
    effect="destroys",
    done="deleted",
)
async def backup_delete(call: ToolCall, backup_id: str, confirm: bool = False) -> Answered:
    """Remove a backup."""
    space, stamp = _space_of(call, backup_id, "admin")
    _confirmed(confirm, backup_id)
    removed = await backups.delete(call.replica, space, stamp)
    return {"files_deleted": removed, "objects": removed}


def _confirmed(confirm: bool, path: str) -> None:
    if not confirm:
        raise BadRequest(path=path, detail="nothing was done: confirm is not true")


# --- tokens --------------------------------------------------------------------------------------------------------


@TOOLS.add(
    "Make a token; it is shown only once.",
    Parameter("name", required=True),
    _RIGHTS,
    _SPACES,
    Parameter("expires_in_days", kind="number", most=MOST_DAYS),
    _EMAIL,
    returns={"token": "string", "hash": "string"},
    needs="admin",
    about="",
    effect="adds",
    done="created",
)
async def admin_create_token(
    call: ToolCall,
    name: str,
    permissions: Sequence[str] = ("read", "write"),
    space_ids: Sequence[str] = (),
    expires_in_days: float = 0,
    email: str = "",
) -> Answered:
    """Make a token."""
    lasts = timedelta(days=expires_in_days) if expires_in_days else None
    secret, token = await call.tokens.create(name, permissions, space_ids, lasts, email=email)
    return {"token": secret, **token_shown(token, call.clock.now())}


@TOOLS.add("List tokens.", returns={"tokens": "array"}, needs="admin", about="")
async def admin_list_tokens(call: ToolCall) -> Answered:
    """All tokens, without their secrets."""
    now = call.clock.now()
    tokens = [token_shown(token, now) for token in await call.tokens.list()]
    return {"tokens": tokens, "total": len(tokens)}


@TOOLS.add(
    "Change a token's rights.", _WHICH, _RIGHTS, _SPACES, _EMAIL, returns={}, needs="admin", about="", effect="changes"
)
async def admin_update_token(
    call: ToolCall,
    token_hash: str,
    permissions: Sequence[str] | None = None,
    space_ids: Sequence[str] | None = None,
    email: str = "",
) -> Answered:
    """Change what a token may do."""
    changed = await call.tokens.update(token_hash, permissions=permissions, spaces=space_ids, email=email)
    return _about("changed", changed, call)


@TOOLS.add("Revoke a token for good.", _WHICH, returns={}, needs="admin", about="", effect="destroys")
async def admin_revoke_token(call: ToolCall, token_hash: str) -> Answered:
    """Revoke a token."""
    return _about("revoked", await call.tokens.revoke(token_hash), call)


@TOOLS.add("Remove a token.", _WHICH, returns={}, needs="admin", about="", effect="destroys")
async def admin_delete_token(call: ToolCall, token_hash: str) -> Answered:
    """Remove a token from the list."""
    return _about("removed", await call.tokens.delete(token_hash), call)


@TOOLS.add(
    "Remove revoked tokens.",
    Parameter("revoked_only", "false: all but your own", "boolean"),
    Parameter("revoked", "expired ones, and with true revoked ones too", "boolean"),
    returns={"removed": "array"},
    needs="admin",
    about="",
    effect="destroys",
)
async def admin_purge_tokens(call: ToolCall, revoked_only: bool = True, revoked: bool | None = None) -> Answered:
    """Remove revoked tokens, or all. The caller's own stays: without it nobody might be let in any more."""
    states: tuple[State, ...] = ("revoked",)
    if revoked is not None:
        states = ("expired", "revoked") if revoked else ("expired",)
    elif not revoked_only:
        states = ("expired", "revoked", "active")
    gone = await call.tokens.purge_states(states, but=call.access.token)
    remaining = len(await call.tokens.list())
    return {
        "deleted": len(gone),
        "remaining": remaining,
        "mode": "all" if "active" in states else " and ".join(states),
        "message": f"{len(gone)} tokens are removed, and {remaining} remain",
        "removed": [token.name for token in gone],
    }


def _about(done: str, token: Token, call: ToolCall) -> Answered:
    return {"message": f"token {token.name} is {done}", **token_shown(token, call.clock.now())}


def token_shown(token: Token, now: datetime) -> dict[str, Any]:
    """A token without its secret."""
    return {
        "name": token.name,
        "hash": token.hash,
        "email": token.email,
        "revoked": token.revoked,
        "state": token.state(now),
        "permissions": list(token.permissions),
        "space_ids": list(token.spaces),
        "created_at": iso(token.created_at) if token.created_at else None,
        "expires_at": iso(token.expires_at) if token.expires_at else None,
        "last_used_at": iso(token.last_used_at) if token.last_used_at else None,
    }
