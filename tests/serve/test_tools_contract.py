"""A client of a Live Memory server, over HTTP: it sends and reads what those clients do, and nothing else.

It takes the first content block of an answer, parses it as JSON, and looks at `status`; it never looks at `is_error`.
"""

from __future__ import annotations

import base64
import io
import json
import tarfile
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import mcp
import pytest
import trio
from clients import ACCEPT, HELLO, Client, Site, content_of, serving

from livememfs.app import App, open_app
from livememfs.app.serving import mcp_server
from livememfs.config import Settings
from livememfs.memories.notes import write_note
from livememfs.records import keys
from livememfs.records.token import hash_of
from livememfs.runs.history import History
from livememfs.runs.undo.run import undo
from livememfs.serve.toolbox import ToolCall
from livememfs.serve.tools import BY_NAME
from livememfs.spaces import making as spaces
from livememfs.testing.llm import Scripted, ScriptedLLM

pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(httpx2|httpcore2|mcp):ResourceWarning")
SPACE, OTHER = "alpha", "beta"
RULES = "# Rules\n\n### a.md\n"
STATUSES = {"ok", "created", "deleted", "already_exists", "not_found", "error"}
NUMBER = (int, float)


@dataclass(frozen=True)
class Row:
    """One tool of the table.

    :needs:    the permission
    :required: arguments that must be there; `{backup}` and `{token}` stand for those of the prepared bucket
    :optional: the others with their defaults, as a client writes them
    :status:   of the answer to the required arguments alone
    :fields:   of that answer, with their types
    """

    needs: str = "read"
    required: Mapping[str, Any] = field(default_factory=dict)
    optional: Mapping[str, Any] = field(default_factory=dict)
    status: str = "ok"
    fields: Mapping[str, Any] = field(default_factory=dict)


HERE = {"space_id": SPACE}
NOTES = {"notes": list, "total": int, "has_more": bool}
ARCHIVE = {"archive_base64": str, "archive_size": int, "files_count": int}
FIGURES = ("notes_processed", "bank_files_updated", "bank_files_created", "bank_files_unchanged", "synthesis_size",
           "llm_tokens_used", "llm_prompt_tokens", "llm_completion_tokens")  # fmt: skip
TABLE: Mapping[str, Row] = {
    "system_health": Row(
        status="healthy",
        fields={
            "service_name": str, "version": str, "uptime_seconds": NUMBER, "services": dict, "spaces_count": int,
        },
    ),
    "system_about": Row(
        fields={"name": str, "version": str, "description": str, "tools_count": int, "tools": list},
    ),
    "system_whoami": Row(
        fields={"client_name": str, "auth_type": str, "permissions": list, "allowed_spaces": list},
    ),
    "space_create": Row(
        "write",
        {"space_id": "gamma", "description": "d"},
        {"rules": "", "owner": ""},
        "created",
        {"space_id": str, "description": str, "rules_size": int, "created_at": str},
    ),
    "space_list": Row(fields={"spaces": list, "total": int}),
    "space_info": Row(
        "read",
        HERE,
        fields={
            "description": str, "owner": str, "created_at": str, "live": dict, "bank": dict,
            "last_consolidation": str, "consolidation_count": int, "synthesis_exists": bool,
        },
    ),
    "space_rules": Row("read", HERE, fields={"rules": str}),
    "space_summary": Row(
        "read",
        HERE,
        fields={"description": str, "rules": str, "bank_files": list, "bank_file_count": int, "synthesis": str},
    ),
    "space_export": Row("read", HERE, fields=ARCHIVE),
    "space_delete": Row("admin", HERE, {"confirm": False}, "error", {"message": str}),
    "live_note": Row(
        "write",
        {**HERE, "category": "decision", "content": "we chose S3"},
        {"tags": ""},
        "created",
        {"filename": str, "category": str, "agent": str, "size": int, "timestamp": str},
    ),
    "live_read": Row("read", HERE, {"limit": 50, "category": "", "agent": "", "since": ""}, fields=NOTES),
    "live_search": Row("read", {**HERE, "query": "note"}, {"limit": 20}, fields={"query": str, **NOTES}),
    "bank_list": Row("read", HERE, fields={"files": list, "file_count": int}),
    "bank_read": Row(
        "read", {**HERE, "filename": "a.md"}, fields={"filename": str, "content": str, "size": int}
    ),
    "bank_read_all": Row("read", HERE, fields={"files": list, "total_size": int, "file_count": int}),
    "bank_consolidate": Row(
        "write", HERE, {"agent": ""}, fields={**dict.fromkeys(FIGURES, int), "duration_seconds": NUMBER}
    ),
    "backup_create": Row(
        "write",
        HERE,
        {"description": ""},
        "created",
        {"backup_id": str, "timestamp": str, "files_backed_up": int, "total_size": int},
    ),
    "backup_list": Row("read", {}, {"space_id": ""}, fields={"backups": list, "total": int}),
    "backup_restore": Row("admin", {"backup_id": "{backup}"}, {"confirm": False}, "error", {"message": str}),
    "backup_download": Row("read", {"backup_id": "{backup}"}, fields=ARCHIVE),
    "backup_delete": Row("admin", {"backup_id": "{backup}"}, {"confirm": False}, "error", {"message": str}),
    "admin_create_token": Row(
        "admin",
        {"name": "new"},
        {"permissions": "read,write", "space_ids": "", "expires_in_days": 0, "email": ""},
        "created",
        {"name": str, "token": str, "permissions": list, "space_ids": list, "expires_at": (str, type(None))},
    ),
    "admin_list_tokens": Row("admin", fields={"tokens": list, "total": int}),
    "admin_update_token": Row(
        "admin",
        {"token_hash": "{token}"},
        {"space_ids": "", "permissions": "", "email": ""},
        fields={"message": str},
    ),
    "admin_revoke_token": Row("admin", {"token_hash": "{token}"}, fields={"message": str}),
    "admin_delete_token": Row("admin", {"token_hash": "{token}"}, fields={"message": str}),
    "bank_write": Row(
        "admin",
        {**HERE, "filename": "b.md", "content": "# B\n"},
        fields={"filename": str, "action": str, "size": int},
    ),
    "bank_delete": Row(
        "admin", {**HERE, "filename": "b.md"}, status="deleted", fields={"files_deleted": int, "keys_deleted": list}
    ),
    "bank_repair": Row(
        "admin",
        HERE,
        {"dry_run": True},
        fields={
            **dict.fromkeys(("files_scanned", "files_ok", "files_to_repair", "duplicates_found"), int),
            **{"mode": str, "repairs": list, "duplicates": list, "message": str},
        },
    ),
    "space_update_rules": Row(
        "admin", {**HERE, "rules": "# New rules\n"}, fields={"rules_size": int, "message": str}
    ),
    "space_update": Row(
        "write",
        HERE,
        {"description": "", "owner": ""},
        fields={"updated_fields": list, "description": str, "owner": str},
    ),
    "admin_gc_notes": Row(
        "admin",
        {},
        {"space_id": "", "max_age_days": 7, "confirm": False, "delete_only": False},
        fields={
            "max_age_days": NUMBER,
            "cutoff_date": str,
            "spaces": dict,
            "total_old_notes": int,
            "total_old_size": int,
            "mode": str,
            "message": str,
        },
    ),
    "admin_purge_tokens": Row(
        "admin", {}, {"revoked_only": True}, fields={"deleted": int, "remaining": int, "mode": str, "message": str}
    ),
}  # fmt: skip


class LiveMemoryClient:
    """The client, and what the prepared bucket has for it."""

    def __init__(self, client: Client, known: Mapping[str, str]) -> None:
        self._client, self.known = client, known

    async def __call__(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        filled = {
            key: value.format(**self.known) if isinstance(value, str) and value[:1] == "{" else value
            for key, value in arguments.items()
        }
        result = await self._client.raw(name, **filled)
        answer = json.loads(result.content[0].text)  # type: ignore[union-attr]  # every answer is a text
        assert isinstance(answer, dict)
        assert result.structured_content == answer
        assert answer["status"] in STATUSES | {"healthy", "degraded"}
        assert answer["status"] != "error" or answer["message"]
        return answer


class Bucket:
    """A server with two spaces, notes, a bank, a backup and a token; and its callers."""

    def __init__(self, site: Site, known: Mapping[str, str]) -> None:
        self.site, self.known = site, known

    @asynccontextmanager
    async def caller(self, name: str, permissions: str, *names: str) -> AsyncIterator[LiveMemoryClient]:
        """A client with a token of its own."""
        async with self.site.client(await self.site.token(name, permissions, *names)) as client:
            yield LiveMemoryClient(client, self.known)


@pytest.fixture
async def bucket(app: App, nursery: trio.Nursery, expect_log: Any) -> AsyncIterator[Bucket]:
    """The prepared bucket."""
    expect_log("not listed by server")  # the SDK's client complains of tools that the core leaves out
    async with serving(app, nursery, pages=False) as site:
        await app.replica.put(keys.rules_key(SPACE), RULES.encode())
        token = (await app.tokens.create("some", ["read"]))[1].hash
        start = Bucket(site, {})
        async with start.caller("first", "admin") as call:
            await call("space_create", space_id=OTHER, description="secret", rules=RULES)
            for space in (SPACE, OTHER):
                await call("live_note", space_id=space, category="todo", content=f"a note of {space}")
                assert (await call("bank_consolidate", space_id=space))["notes_processed"] == 1
                await call("live_note", space_id=space, category="todo", content=f"another note of {space}")
            backup = (await call("backup_create", space_id=SPACE))["backup_id"]
            await call("backup_create", space_id=OTHER)
        yield Bucket(site, {"backup": backup, "token": token})


FORMS: Mapping[str, Any] = {
    "left out": lambda _: {},
    "spelled out": dict,
    "as texts": lambda given: {name: str(value).lower() for name, value in given.items()},
    "null": dict.fromkeys,
}


@pytest.mark.parametrize(("name", "row"), TABLE.items(), ids=list(TABLE))
def test_the_schema_of_a_tool_takes_what_clients_of_either_kind_send(name: str, row: Row) -> None:
    schema = BY_NAME[name].input_schema()

    assert {*row.required, *row.optional} <= schema["properties"].keys()
    assert set(schema.get("required", ())) <= row.required.keys()
    for given in ("tags", "permissions", "space_ids"):
        if given in schema["properties"]:
            assert schema["properties"][given]["type"] == ["array", "string"]


def wrong(answer: Mapping[str, Any], row: Row) -> dict[str, Any]:
    """The fields of an answer that are not as in the table."""
    odd = {name: answer.get(name) for name, kind in row.fields.items() if not isinstance(answer.get(name), kind)}
    return odd if answer["status"] == row.status else {"answer": answer}


@pytest.mark.parametrize("form", FORMS)
async def test_every_tool_answers_as_in_the_table_however_its_defaults_are_sent(bucket: Bucket, form: str) -> None:
    """One after the other, in an order in which none needs what an earlier one has taken away."""
    faults: dict[str, Any] = {}
    async with bucket.caller("chief", "admin") as call:
        for name, row in TABLE.items():
            answer = await call(name, **row.required, **FORMS[form](row.optional))
            faults |= {name: fault} if (fault := wrong(answer, row)) else {}
    assert faults == {}


async def test_the_same_is_answered_over_standard_input_and_a_mounts_socket(app: App, expect_log: Any) -> None:
    """Both are served by this server, with the core in its list as `livememfs mcp` has it."""
    expect_log("not listed by server")
    await app.replica.put(keys.rules_key(SPACE), RULES.encode())
    async with mcp.Client(mcp_server(app, agent="first").sdk) as session:
        call = LiveMemoryClient(Client(session), {})
        await call("live_note", space_id=SPACE, category="todo", content="a note")
        await call("bank_consolidate", space_id=SPACE)
        backup = (await call("backup_create", space_id=SPACE))["backup_id"]
        token = (await app.tokens.create("some", ["read"]))[1].hash
        call.known = {"backup": backup, "token": token}
        faults: dict[str, Any] = {}
        for name, row in TABLE.items():
            answer = await call(name, **row.required, **row.optional)
            faults |= {name: fault} if (fault := wrong(answer, row)) else {}
        assert faults == {}
        assert (await call("system_whoami"))["auth_type"] == "local"


LEVELS = ("read", "write", "admin")


@pytest.mark.parametrize("caller", ["read", "write"])
async def test_a_refusal_names_the_permission_and_nothing_changes(bucket: Bucket, app: App, caller: str) -> None:
    async def kept() -> dict[str, str]:
        return {key: etag for key, etag in (await content_of(app)).items() if not key.startswith("_system/")}

    refused: dict[str, bool] = {}
    async with bucket.caller("low", caller) as call:
        before, tokens = await kept(), [token.hash for token in await app.tokens.list()]
        for name, row in TABLE.items():
            if LEVELS.index(row.needs) > LEVELS.index(caller):
                answer = await call(name, **row.required)
                refused[name] = answer["status"] == "error" and row.needs in answer["message"]
        assert await kept() == before
    assert [token.hash for token in await app.tokens.list()] == tokens
    assert len(refused) > 5
    assert [name for name, right in refused.items() if not right] == []


async def test_a_token_limited_to_a_space_hears_nothing_of_the_other(bucket: Bucket) -> None:
    elsewhere = {"space_id": OTHER, "backup_id": f"{OTHER}/latest"}
    async with bucket.caller("limited", "admin", SPACE) as call:
        for name, row in TABLE.items():
            answer = await call(name, **{key: elsewhere.get(key, value) for key, value in row.required.items()})
            shown = json.dumps({key: value for key, value in answer.items() if key != "message"})
            assert OTHER not in shown, name
            assert "secret" not in shown, name
            if row.required.keys() & elsewhere:
                assert answer["status"] in ("not_found", "already_exists"), (name, answer)
        assert (await call("system_health"))["spaces_count"] == 1
        me = await call("system_whoami")
        assert (me["client_name"], me["auth_type"], me["allowed_spaces"]) == ("limited", "token", [SPACE])


async def test_the_bootstrap_key_makes_the_first_token_and_no_other_text_lets_anybody_in(
    settings: Settings, nursery: trio.Nursery, expect_log: Any
) -> None:
    expect_log("not listed by server")
    key = "a-key-of-32-characters-or-more-000"
    with_key = settings.model_copy(update={"admin_bootstrap_key": key})
    async with open_app(with_key, serving=True) as app, serving(app, nursery, pages=False) as site:
        async with site.client(key) as client:
            call = LiveMemoryClient(client, {})
            me = await call("system_whoami")
            assert (me["client_name"], me["auth_type"]) == ("bootstrap", "bootstrap")
            assert (me["permissions"], me["allowed_spaces"]) == (["read", "write", "admin"], [])
            made = await call("admin_create_token", name="first", permissions="read,write,admin")
            assert (await call("admin_list_tokens"))["total"] == 1
            assert key not in json.dumps(await call("admin_list_tokens"))
        async with site.client(made["token"]) as client:
            assert (await LiveMemoryClient(client, {})("system_whoami"))["auth_type"] == "token"
        for other in (key[:-1], key + "0", hash_of(key), "bootstrap"):
            async with site.browser(other) as browser:
                assert (await browser.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 401
    async with open_app(settings, serving=True) as app, serving(app, nursery, pages=False) as site:
        for other in (key, hash_of("")):
            async with site.browser(other) as browser:
                assert (await browser.post("/mcp", json=HELLO, headers=ACCEPT)).status_code == 401


# --- what the fields mean --------------------------------------------------------------------------------------------


async def test_lists_and_figures_say_what_there_is(bucket: Bucket) -> None:
    async with bucket.caller("chief", "admin") as call:
        listed = {space["space_id"]: space for space in (await call("space_list"))["spaces"]}
        assert (listed[SPACE]["live_notes_count"], listed[SPACE]["bank_files_count"]) == (1, 1)
        info = await call("space_info", space_id=SPACE)
        assert (info["live"]["notes_count"], info["bank"]["files_count"], info["bank"]["files"]) == (1, 1, ["a.md"])
        assert info["bank"]["total_size"] > 0
        read = await call("bank_read", space_id=SPACE, filename="a.md")
        assert read["size"] == len(read["content"].encode())
        everything = await call("bank_read_all", space_id=SPACE)
        assert everything["files"] == [{name: read[name] for name in ("filename", "content", "size")}]
        assert (everything["total_size"], everything["file_count"]) == (read["size"], 1)
        summary = await call("space_summary", space_id=SPACE)
        assert (summary["bank_files"], summary["bank_file_count"]) == (everything["files"], 1)
        assert (summary["rules"], bool(summary["synthesis"])) == (RULES, True)
        exported = await call("space_export", space_id=SPACE)
        packed = base64.b64decode(exported["archive_base64"])
        with tarfile.open(fileobj=io.BytesIO(packed)) as tar:
            assert (exported["archive_size"], exported["files_count"]) == (len(packed), len(tar.getnames()))
        about = await call("system_about")
        assert about["tools_count"] == len(about["tools"])
        assert TABLE.keys() <= {tool["name"] for tool in about["tools"]}
        services = (await call("system_health"))["services"]
        assert (services["s3"]["status"], services["llmaas"]["status"]) == ("ok", "ok")


async def test_notes_are_counted_and_cut(bucket: Bucket) -> None:
    async with bucket.caller("chief", "admin") as call:
        for number in range(3):
            made = await call("live_note", space_id=SPACE, category="todo", content=f"n{number}", tags="one, two")
        assert (made["agent"], made["category"]) == ("chief", "todo")
        found = await call("live_read", space_id=SPACE, limit="2")
        assert (len(found["notes"]), found["total"], found["has_more"]) == (2, 4, True)
        written = {note["filename"]: note for note in (await call("live_read", space_id=SPACE))["notes"]}
        assert written[made["filename"]]["tags"] == ["one", "two"]
        searched = await call("live_search", space_id=SPACE, query="n1")
        assert ([note["content"] for note in searched["notes"]], searched["has_more"]) == (["n1"], False)
        odd = await call("live_note", space_id=SPACE, category="joke", content="x")
        assert (odd["status"], "category" in odd["message"]) == ("error", True)
        assert (await call("live_note", space_id="none", category="todo", content="x"))["status"] == "not_found"
        assert (await call("bank_read", space_id=SPACE, filename="none.md"))["status"] == "not_found"
        assert (await call("space_create", space_id=SPACE, description=""))["status"] == "already_exists"


async def test_a_writer_consolidates_its_own_notes_and_only_an_admin_those_of_others(bucket: Bucket) -> None:
    async with bucket.caller("chief", "admin") as chief, bucket.caller("ann", "write") as ann:
        refused = await ann("bank_consolidate", space_id=SPACE, agent="first")
        assert (refused["status"], "admin" in refused["message"]) == ("error", True)
        idle = await ann("bank_consolidate", space_id=SPACE)
        assert (idle["status"], idle["notes_processed"], bool(idle["message"])) == ("ok", 0, True)
        await ann("live_note", space_id=SPACE, category="todo", content="by ann")
        assert (await ann("bank_consolidate", space_id=SPACE, agent=""))["notes_processed"] == 1
        assert (await chief("bank_consolidate", space_id=SPACE))["notes_processed"] == 1


async def test_a_space_goes_and_comes_back(bucket: Bucket) -> None:
    async with bucket.caller("chief", "admin") as call:
        there = await call("backup_restore", backup_id="{backup}", confirm=True)
        assert (there["status"], "exists" in there["message"]) == ("error", True)
        gone = await call("space_delete", space_id=SPACE, confirm=True)
        assert (gone["status"], gone["files_deleted"] > 0) == ("deleted", True)
        back = await call("backup_restore", backup_id="{backup}", confirm="true")
        assert (back["status"], back["files_restored"] > 0) == ("ok", True)
        assert (await call("space_rules", space_id=SPACE))["rules"] == RULES
        described = await call("backup_create", space_id=SPACE, description="before the move")
        listed = {made["backup_id"]: made for made in (await call("backup_list", space_id=SPACE))["backups"]}
        assert listed[described["backup_id"]]["description"] == "before the move"
        assert listed[described["backup_id"]]["space_id"] == SPACE
        removed = await call("backup_delete", backup_id=described["backup_id"], confirm=True)
        assert (removed["status"], removed["files_deleted"] > 0) == ("deleted", True)


async def test_a_limited_token_gains_the_space_it_makes_and_nothing_that_others_left(bucket: Bucket, app: App) -> None:
    await app.replica.put("plain/secret.txt", b"x")
    async with bucket.caller("chief", "admin") as chief:
        await chief("space_delete", space_id=OTHER, confirm=True)
    async with bucket.caller("limited", "write", SPACE) as call:
        made = await call("space_create", space_id="gamma", description="mine", rules=RULES)
        assert (made["status"], made["token_auto_updated"], bool(made["token_message"])) == ("created", True, True)
        assert made["rules_size"] == len(RULES)
        assert (await call("live_note", space_id="gamma", category="todo", content="x"))["status"] == "created"
        assert {space["space_id"] for space in (await call("space_list"))["spaces"]} == {SPACE, "gamma"}
        # A plain directory, and the backups of a removed space: whoever made a space there could read them.
        for taken in ("plain", OTHER):
            assert (await call("space_create", space_id=taken, description=""))["status"] == "already_exists"
        assert (await call("system_whoami"))["allowed_spaces"] == [SPACE, "gamma"]
        assert "token_auto_updated" not in await call("space_create", space_id=SPACE, description="")


async def test_tokens_are_made_changed_and_purged(bucket: Bucket) -> None:
    async with bucket.caller("chief", "admin") as call:
        made = await call("admin_create_token", name="t1", permissions="read", space_ids=f"{SPACE}, {OTHER}",
                          email="a@b.org")  # fmt: skip
        assert (made["permissions"], made["space_ids"], made["expires_at"]) == (["read"], [SPACE, OTHER], None)
        assert (await call("admin_create_token", name="t1"))["status"] == "already_exists"
        assert (await call("admin_create_token", name="t2"))["permissions"] == ["read", "write"]
        listed = {token["name"]: token for token in (await call("admin_list_tokens"))["tokens"]}
        assert (listed["t1"]["email"], listed["t1"]["revoked"]) == ("a@b.org", False)
        short = listed["t1"]["hash"][:15]  # as clients show it, and people copy it
        await call("admin_update_token", token_hash=short, permissions="read,write", space_ids="")
        listed = {token["name"]: token for token in (await call("admin_list_tokens"))["tokens"]}
        assert (listed["t1"]["permissions"], listed["t1"]["space_ids"]) == (["read", "write"], [SPACE, OTHER])
        await call("admin_revoke_token", token_hash=short)
        purged = await call("admin_purge_tokens")
        assert (purged["deleted"], purged["remaining"]) == (1, 4)
        assert (await call("admin_revoke_token", token_hash=short))["status"] == "not_found"
        everything = await call("admin_purge_tokens", revoked_only="false")
        assert (everything["deleted"], everything["remaining"]) == (3, 1)
        assert (await call("system_whoami"))["client_name"] == "chief"


async def test_a_space_is_described_anew_and_what_is_not_said_stays(bucket: Bucket) -> None:
    async with bucket.caller("chief", "admin") as call:
        first = await call("space_update", space_id=SPACE, description="new", owner="ann")
        assert (first["updated_fields"], first["description"], first["owner"]) == (
            ["description", "owner"],
            "new",
            "ann",
        )
        second = await call("space_update", space_id=SPACE, description="", owner="bob")
        assert (second["updated_fields"], second["description"], second["owner"]) == (["owner"], "new", "bob")
        info = await call("space_info", space_id=SPACE)
        assert (info["description"], info["owner"], info["consolidation_count"]) == ("new", "bob", 1)
        assert (await call("space_update", space_id="none", owner="x"))["status"] == "not_found"


async def test_old_notes_are_shown_consolidated_or_removed_after_a_backup(bucket: Bucket) -> None:
    old = '---\ntimestamp: "2026-01-01T00:00:00Z"\nagent: gone\n---\nold'
    async with bucket.caller("chief", "admin") as call, bucket.caller("limited", "admin", SPACE) as limited:
        for space in (SPACE, OTHER):
            await call("live_note", space_id=space, category="todo", content=old)
        shown = await call("admin_gc_notes")
        assert (shown["mode"], shown["total_old_notes"], sorted(shown["spaces"])) == ("dry-run", 2, [SPACE, OTHER])
        assert shown["spaces"][SPACE]["agents"] == {"gone": 1}
        refused = await limited("admin_gc_notes", confirm=True)
        assert (refused["status"], "admin" in refused["message"]) == ("error", True)
        own = await limited("admin_gc_notes", space_id=SPACE, confirm=True, delete_only=True)
        assert (own["mode"], own["deleted"]) == ("delete", 1)
        kept = own["message"].rpartition(" ")[2]
        assert kept in [made["backup_id"] for made in (await call("backup_list", space_id=SPACE))["backups"]]
        assert (await call("live_search", space_id=SPACE, query="old"))["notes"] == []
        done = await call("admin_gc_notes", confirm="true")
        assert (done["mode"], done["notes_processed"], list(done["spaces"])) == ("consolidate", 1, [OTHER])
        assert (await call("admin_gc_notes"))["total_old_notes"] == 0
        assert len((await call("live_read", space_id=OTHER))["notes"]) == 1


async def test_a_model_that_never_answered_makes_the_service_degraded(settings: Settings) -> None:
    with ScriptedLLM(*[Scripted("no such key", status=401)] * 4) as endpoint:  # the observer's, too
        asking = {"llmaas_api_url": endpoint.url, "llmaas_model": "m"}
        async with open_app(settings.model_copy(update=asking), serving=True) as app:
            call = ToolCall(app.tree, app.tokens)
            await spaces.create(app.replica, app.clock, SPACE)
            await write_note(app.replica, app.clock, SPACE, "x", agent="a")
            assert (await BY_NAME["system_health"].call(call, {}))["status"] == "healthy"
            failed = await BY_NAME["bank_consolidate"].call(call, HERE)
            assert (failed["status"], bool(failed["message"])) == ("error", True)
            health = await BY_NAME["system_health"].call(call, {})
    assert (health["status"], health["services"]["llmaas"]["status"]) == ("degraded", "error")


# --- mending by hand -------------------------------------------------------------------------------------------------


async def test_a_person_mends_the_bank_and_undo_takes_it_back(bucket: Bucket, app: App) -> None:
    async with bucket.caller("chief", "admin") as call:
        before = (await call("bank_read", space_id=SPACE, filename="a.md"))["content"]
        text = f"{before}\n## By hand\n\nWe use Postgres.\n"
        done = await call("bank_write", space_id=SPACE, filename="bank/a.md", content=text)
        assert (done["filename"], done["action"], done["size"]) == ("a.md", "replaced", len(text.encode()))
        made = await call("bank_write", space_id=SPACE, filename="b.md", content="# B\n")
        assert made["action"] == "created"
        again = await call("bank_write", space_id=SPACE, filename="b.md", content="# B\n")
        assert (again["action"], "run" in again) == ("replaced", False)
        history = History(app.replica, SPACE, fresh=True)
        why = await history.why("a.md")
        assert f"- run {done['run']}" in why.partition("By hand")[2]
        assert why.partition("By hand")[2].partition("\n## ")[0].count("written by chief") == 1
        gone = await call("bank_delete", space_id=SPACE, filename="a.md")
        assert (gone["status"], gone["files_deleted"], gone["keys_deleted"]) == ("deleted", 1, [f"{SPACE}/bank/a.md"])
        dropped = (await history.entry(gone["run"])).outgoing
        assert "We use Postgres." in [line.text for line in dropped if line.fate == "dropped"]
        assert (await call("bank_delete", space_id=SPACE, filename="a.md"))["status"] == "not_found"
        assert (await call("space_info", space_id=SPACE))["consolidation_count"] == 1

        async def back(number: int | None = None) -> None:
            await undo(app.replica, app.clock, app.consolidations.leases, "here", SPACE, number)

        await back()
        assert (await call("bank_read", space_id=SPACE, filename="a.md"))["content"] == text
        await back(done["run"])
        assert (await call("bank_read", space_id=SPACE, filename="a.md"))["content"] == before
        assert (await call("bank_read", space_id=SPACE, filename="b.md"))["status"] == "not_found"
        assert (await call("space_info", space_id=SPACE))["consolidation_count"] == 1
        assert len((await call("live_read", space_id=SPACE))["notes"]) == 1


async def test_new_rules_are_sealed_after_a_backup_and_undo_takes_them_back(bucket: Bucket, app: App) -> None:
    async with bucket.caller("chief", "admin") as call, bucket.caller("ann", "write") as ann:
        refused = await ann("space_update_rules", space_id=SPACE, rules="# New\n")
        assert (refused["status"], "admin" in refused["message"]) == ("error", True)
        done = await call("space_update_rules", space_id=SPACE, rules="# New\n\n### z.md\n")
        assert done["rules_size"] == len("# New\n\n### z.md\n")
        backups = [made["backup_id"] for made in (await call("backup_list", space_id=SPACE))["backups"]]
        assert done["message"].rpartition(" ")[2] in backups
        assert "z.md" in (await call("space_rules", space_id=SPACE))["rules"]
        assert (await call("space_update_rules", space_id=SPACE, rules=" "))["status"] == "error"
        await undo(app.replica, app.clock, app.consolidations.leases, "here", SPACE)
        assert (await call("space_rules", space_id=SPACE))["rules"] == RULES


async def test_a_credential_written_by_hand_is_replaced_and_the_writer_is_told(bucket: Bucket) -> None:
    async with bucket.caller("chief", "admin") as call:
        answer = await call("bank_write", space_id=SPACE, filename="b.md", content=f"key ghp_{'a1B2' * 9}\n")
        assert "github-token" in answer["warnings"][0]
        assert "ghp_" not in (await call("bank_read", space_id=SPACE, filename="b.md"))["content"]
        odd = await call("bank_write", space_id=SPACE, filename="../_rules.md", content="x")
        assert odd["status"] == "error"


async def test_names_that_nobody_can_see_are_shown_and_mended_without_losing_a_text(bucket: Bucket, app: App) -> None:
    hidden, other, alone = "a\u200b.md", "a\u00ad.md", "plan\u200b.md"
    async with bucket.caller("chief", "admin") as call:
        same = (await call("bank_read", space_id=SPACE, filename="a.md"))["content"]
        for name, text in ((hidden, same), (other, "# Another\n"), (alone, "# Plan\n")):
            await app.replica.put(f"{SPACE}/bank/{name}", text.encode())
        shown = await call("bank_repair", space_id=SPACE)
        assert (shown["mode"], shown["files_scanned"], shown["files_ok"]) == ("dry-run", 4, 1)
        assert (shown["files_to_repair"], shown["duplicates_found"]) == (2, 1)
        assert {hidden, other, alone} <= {
            file["filename"] for file in (await call("bank_list", space_id=SPACE))["files"]
        }
        done = await call("bank_repair", space_id=SPACE, dry_run=False)
        assert {item["original_relpath"]: item["sanitized"] for item in done["repairs"]} == {
            other: "a-2.md",
            alone: "plan.md",
        }
        assert [(item["relpath"], item["canonical"]) for item in done["duplicates"]] == [(hidden, "a.md")]
        everything = (await call("bank_read_all", space_id=SPACE))["files"]
        assert {file["filename"]: file["content"] for file in everything} == {
            "a.md": same,
            "a-2.md": "# Another\n",
            "plan.md": "# Plan\n",
        }
        assert (await call("bank_repair", space_id=SPACE, dry_run="false"))["files_ok"] == 3
        await app.replica.put(f"{SPACE}/bank/{hidden}", b"# Twin\n")
        twins = await call("bank_delete", space_id=SPACE, filename="a.md")
        assert sorted(twins["keys_deleted"]) == sorted([f"{SPACE}/bank/a.md", f"{SPACE}/bank/{hidden}"])
