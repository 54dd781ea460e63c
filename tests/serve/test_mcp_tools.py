"""What the tools of the MCP server answer, driven by the official SDK's client."""

from __future__ import annotations

import base64
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import mcp
import pytest
import trio
from clients import SPACE, VALUES, OpenClient, content_of
from mcp import types
from trio.testing import wait_all_tasks_blocked

from livememfs.app import App
from livememfs.cache.changes import Change
from livememfs.config import Settings
from livememfs.errors import BadRequest
from livememfs.records import keys
from livememfs.records.access import PERMISSIONS, Access
from livememfs.records.observation import Observation
from livememfs.records.session import Summary
from livememfs.serve.described import tool as described
from livememfs.serve.guard import LARGEST_BODY
from livememfs.serve.mcp import McpServer
from livememfs.serve.news import QUEUED, uri_of
from livememfs.serve.note_tools import READ_AT_ONCE
from livememfs.serve.toolbox import McpTool, ToolCall
from livememfs.serve.tools import TOOLS
from livememfs.spaces import making as spaces
from livememfs.testing.clock import START

CHARACTERS_A_TOKEN = 4.0
"""Of such JSON. A tokenizer of today counts 4.4, so what is held to here is held to there."""
READER = Access("reader", frozenset({"read"}), (SPACE,))
WRITER = Access("writer", frozenset({"read", "write"}), (SPACE,))
CHIEF = Access("chief", frozenset(PERMISSIONS), (SPACE,))
OLDER = pytest.mark.filterwarnings("ignore:resources/subscribe is removed")
"""As clients of the older revisions still do."""
BY_NAME = {tool.name: tool for tool in TOOLS}
FOR_PEOPLE = {"title", "annotations"}
"""What a program shows to people and decides by; no model is told of it."""


def tokens(*, core: bool = False, space: str = "") -> float:
    """About what the list of tools costs a model with each request."""
    shown = [
        described(tool, space).model_dump(by_alias=True, exclude_none=True, exclude=FOR_PEOPLE)
        for tool in TOOLS
        if tool.core or not core
    ]
    return len(json.dumps({"tools": shown}, separators=(",", ":"))) / CHARACTERS_A_TOKEN


def test_the_whole_list_costs_less_than_4500_tokens_and_the_core_less_than_thirteen_hundred() -> None:
    """The core is what a model is told with each request; the rest of the contract is for programs."""
    figures = {"all": tokens(), "core": tokens(core=True), "of one space": tokens(space=SPACE)}
    print(figures)

    assert figures["all"] < 4_500
    assert figures["core"] < 1_300
    assert figures["of one space"] < figures["all"]


def unlimited(schema: dict[str, Any]) -> bool:
    """Whether a value that fits a schema can be of any size."""
    if "array" in schema["type"]:
        as_text = "string" in schema["type"] and "maxLength" not in schema
        return as_text or "maxItems" not in schema or unlimited(schema["items"])
    if "enum" in schema or schema["type"] == "boolean":
        return False
    return not ({"maxLength"} if schema["type"] == "string" else {"minimum", "maximum"}) <= schema.keys()


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool.name))
def test_every_parameter_says_how_much_it_takes_and_takes_no_more(tool: McpTool) -> None:
    """What one request may cost is known before anything is done: texts, lists and numbers all have a limit."""
    schema = tool.input_schema()

    assert [name for name, value in schema["properties"].items() if unlimited(value)] == []
    for parameter in tool.parameters:
        if parameter.kind in ("string", "array", "texts") and not parameter.one_of:
            text = "x" * (parameter.longest + 1)
            assert "characters, and takes" in parameter.fault(text if parameter.kind == "string" else [text])
            assert parameter.longest < LARGEST_BODY
        if parameter.kind in ("array", "texts", "integers"):
            assert "values, and takes" in parameter.fault(
                [1 if parameter.kind == "integers" else (parameter.one_of or "x")[0]] * (parameter.items + 1)
            )
        if parameter.kind in ("integer", "number"):
            assert f"{parameter.least:g} to {parameter.most:g}" in parameter.fault(
                parameter.most + 1 if parameter.kind == "number" else int(parameter.most) + 1
            )


def test_the_names_are_those_of_the_specifications() -> None:
    assert {
        "space_create", "space_list", "space_info", "space_rules", "space_summary", "space_export", "space_delete",
        "live_note", "live_read", "live_search", "bank_read", "bank_read_all", "bank_list", "bank_consolidate",
        "backup_create", "backup_list", "backup_restore", "backup_download", "backup_delete",
        "system_health", "system_about",
        "search_memory", "timeline", "get_observations", "get_session_summary", "get_project_context",
        "search_memories", "get_recent_memories", "store_memory", "search_self", "store_self", "search_goals",
        "store_goal",
    } <= BY_NAME.keys()  # fmt: skip


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool.name))
def test_each_says_in_a_sentence_what_it_is_for_and_what_it_does_to_what_is_kept(tool: Any) -> None:
    shown = described(tool)

    assert 10 < len(tool.purpose) < 100
    assert tool.purpose.endswith(".")
    assert shown.input_schema["type"] == shown.output_schema["type"] == "object"  # type: ignore[index]  # it has one
    assert shown.title
    hints = shown.annotations
    assert hints is not None
    assert hints.open_world_hint is False
    assert hints.read_only_hint is (tool.effect == "reads")
    assert hints.destructive_hint is (tool.effect in ("changes", "destroys"))
    assert hints.idempotent_hint is (tool.effect in ("reads", "destroys"))
    assert tool.needs != "read" or tool.effect == "reads" or tool.name in ("backup_restore", "backup_delete", "memory")
    assert tool.name != "memory" or tool.effect == "changes"  # it can insert a line twice


# --- in order --------------------------------------------------------------------------------------------------------


async def test_a_space_from_its_making_to_its_end(open_client: OpenClient) -> None:
    async with open_client() as client:
        made = await client.call("space_create", space_id="beta", description="d", rules="# Rules\n\n### a.md\n")
        assert made["space_id"] == "beta"
        note = await client.call("live_note", space_id="beta", content="we chose S3", category="decision", tags=["db"])
        notes = await client.call("live_read", space_id="beta")
        assert (len(notes["notes"]), notes["more"]) == (1, False)
        assert notes["notes"][0]["filename"] == note["filename"]
        about = {"category": "decision", "tags": ["db"], "content": "we chose S3", "agent": "mcp"}
        assert {name: notes["notes"][0][name] for name in about} == about
        rehearsed = await client.call("bank_consolidate", space_id="beta", dry_run=True)
        assert (rehearsed["state"], "we chose S3" in rehearsed["diff"]) == ("ok", True)
        assert (await client.call("bank_list", space_id="beta"))["files"] == []
        done = await client.call("bank_consolidate", space_id="beta")
        assert (done["state"], done["notes_processed"]) == ("ok", 1)
        assert (await client.call("live_read", space_id="beta"))["notes"] == []
        files = (await client.call("bank_list", space_id="beta"))["files"]
        assert [file["filename"] for file in files] == ["a.md"]
        assert "we chose S3" in (await client.call("bank_read", space_id="beta", filename="a.md"))["content"]
        everything = (await client.call("bank_read_all", space_id="beta"))["files"]
        assert [file["filename"] for file in everything] == ["a.md"]
        results = await client.call("search_memory", query="which store was chosen: S3", project="beta")
        assert any("S3" in hit["text"] for hit in results["results"])
        backup = (await client.call("backup_create", space_id="beta"))["backup_id"]
        assert backup in [made["backup_id"] for made in (await client.call("backup_list", space_id="beta"))["backups"]]
        assert "confirm" in await client.refused("space_delete", space_id="beta", confirm=False)
        await client.call("space_delete", space_id="beta", confirm=True)
        assert "there is no beta" in await client.refused("bank_list", space_id="beta")
        await client.call("backup_restore", backup_id=backup, confirm=True)
        assert "we chose S3" in (await client.call("bank_read", space_id="beta", filename="a.md"))["content"]
        await client.call("backup_delete", backup_id=backup, confirm=True)
        await client.call("space_delete", space_id="beta", confirm=True)
        assert [space["space_id"] for space in (await client.call("space_list"))["spaces"]] == [SPACE]


async def test_what_a_space_is_told_as(open_client: OpenClient) -> None:
    async with open_client() as client:
        await client.call("live_note", space_id=SPACE, content="one")
        info = await client.call("space_info", space_id=SPACE)
        assert (info["live"]["notes_count"], info["bank"]["files"], info["rules"]) == (1, [], False)
        assert "there is no alpha/_rules.md" in await client.refused("space_rules", space_id=SPACE)
        await client.call("bank_consolidate", space_id=SPACE)
        assert "activeContext.md" in (await client.call("space_rules", space_id=SPACE))["rules"]
        summary = await client.call("space_summary", space_id=SPACE)
        assert len(summary["bank_files"]) == 6
        assert summary["notes"] == []
        archive = await client.call("space_export", space_id=SPACE)
        with tarfile.open(fileobj=io.BytesIO(base64.b64decode(archive["archive_base64"]))) as tar:
            names = tar.getnames()
        assert f"{SPACE}/_meta.json" in names
        assert archive["objects"] == len(names)


async def test_notes_are_read_newest_first_and_filtered(open_client: OpenClient, app: App) -> None:
    async with open_client() as client:
        for number, (agent, category) in enumerate([("a", "todo"), ("b", "todo"), ("a", "issue")]):
            text = f'---\ntimestamp: "2026-02-20T14:0{number}:00Z"\n---\nnote Nr{number}'
            await client.call("live_note", space_id=SPACE, content=text, agent=agent, category=category)

        async def read(**given: Any) -> list[str]:
            return [note["content"] for note in (await client.call("live_read", space_id=SPACE, **given))["notes"]]

        assert await read() == ["note Nr2", "note Nr1", "note Nr0"]
        assert await read(limit=1) == ["note Nr2"]
        assert await read(agent="a") == ["note Nr2", "note Nr0"]
        assert await read(category="todo") == ["note Nr1", "note Nr0"]
        assert await read(since="2026-02-20T14:01:00Z") == ["note Nr2", "note Nr1"]
        assert len(await read(since="0001-01-01T00:00:00Z")) == 3
        assert await read(since="9999-12-31T23:59:59Z") == []
        assert "no time" in await client.refused("live_read", space_id=SPACE, since="yesterday")
        matching = await client.call("live_search", space_id=SPACE, query="NOTE nr1")
        assert [note["content"] for note in matching["notes"]] == ["note Nr1"]
        assert not matching["more"]
        assert (await client.call("live_read", space_id=SPACE, limit=2))["more"]
        assert not (await client.call("live_read", space_id=SPACE, limit=3))["more"]


async def test_of_many_notes_only_as_many_are_read_as_are_shown(
    open_client: OpenClient, app: App, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted: list[str] = []
    read_many = app.replica.read_many

    async def counted(keys: list[str]) -> Any:
        wanted.extend(keys)
        return await read_many(keys)

    monkeypatch.setattr(app.replica, "read_many", counted)
    for number in range(READ_AT_ONCE * 2 + 30):
        name = f"20260220T14{number // 60:02}{number % 60:02}_a_todo_{number:08x}.md"
        await app.replica.put(keys.live_key(SPACE, name), b"---\nagent: a\n---\n\nnote %d\n" % number)
    async with open_client() as client:
        shown = await client.call("live_read", space_id=SPACE, limit=3)
        read_for_three = len(wanted)
        oldest = await client.call("live_search", space_id=SPACE, query="note 0", limit=1)

    assert [note["content"] for note in shown["notes"]] == ["note 229", "note 228", "note 227"]
    assert shown["more"]
    assert read_for_three == READ_AT_ONCE
    assert [note["content"] for note in oldest["notes"]] == ["note 220"]


async def test_memories_are_stored_and_found(open_client: OpenClient, app: App) -> None:
    async with open_client() as client:
        await client.call("store_memory", space_id=SPACE, content="David lives in Toulouse", subjects=["david"])
        await client.call("store_self", space_id=SPACE, content="I can read the lobby", category="capability")
        await client.call("store_goal", space_id=SPACE, content="I would like to search", category="understanding")

        for name, query, text in (
            ("search_memories", "where does David live", "David lives in Toulouse"),
            ("search_self", "lobby", "I can read the lobby"),
            ("search_goals", "search", "I would like to search"),
        ):
            answer = await client.call(name, space_id=SPACE, query=query)
            assert [memory["text"] for memory in answer["memories"]] == [text]
            (found,) = answer["memories"]
            assert (found["uses"], found["told"]) == (0, 0)
            app.uses.told(SPACE, [(found["path"], 9)])
            app.uses.count(SPACE, [found["path"]] * 2)
            (found,) = (await client.call(name, space_id=SPACE, query=query))["memories"]
            assert (found["uses"], found["told"]) == (2, 1)
        recent = await client.call("get_recent_memories", space_id=SPACE, limit=1)
        assert len(recent["memories"]) == 1


async def test_what_was_observed_is_read_back(open_client: OpenClient, app: App) -> None:
    seen = Observation(
        "0a1b2c3d", "s-1", START, "bugfix", "A race is fixed", "", "why\n", ("lock added",), discovery_tokens=900
    )
    other = Observation("0a1b2c3e", "s-1", START, "decision", "Use a lock")
    for observation in (seen, other):
        await app.replica.put(keys.observations_prefix(SPACE) + observation.name, observation.render())
    summary = Summary("s-1", START, request="fix it", completed="fixed")
    await app.replica.put(keys.session_key(SPACE, "s-1", keys.SUMMARY), summary.render())

    async with open_client() as client:
        observed = await client.call("get_observations", project=SPACE, ids=["#0a1b2c3d", "ffffffff"])
        assert [(record["title"], record["facts"]) for record in observed["observations"]] == [
            ("A race is fixed", ["lock added"])
        ]
        assert observed["missing"] == ["ffffffff"]
        assert observed["observations"][0]["discovery_tokens"] == 900
        prefix = keys.observations_prefix(SPACE)
        assert [app.uses.of(SPACE, prefix + each.name).uses for each in (seen, other)] == [1, 0]
        around = (await client.call("timeline", project=SPACE, anchor="0a1b2c3d"))["timeline"]
        assert "A race is fixed" in around
        assert "Use a lock" in around
        assert "Use a lock" in (await client.call("timeline", project=SPACE))["timeline"]
        shown = await client.call("get_session_summary", project=SPACE, session_id="s-1")
        assert (shown["request"], shown["completed"]) == ("fix it", "fixed")
        assert "no summary" in await client.refused("get_session_summary", project=SPACE, session_id="s-2")
        assert "A race is fixed" in (await client.call("get_project_context", project=SPACE))["context"]
        narrowed = await client.call("search_memory", query="race", project=SPACE, type="bugfix", limit=5)
        assert [hit["id"] for hit in narrowed["results"]] == ["0a1b2c3d"]


async def test_tokens_are_made_shown_once_and_taken_away(open_client: OpenClient, app: App) -> None:
    async with open_client() as client:
        made = await client.call("admin_create_token", name="me", permissions=["write"], expires_in_days=1.5)
        assert await app.tokens.access(made["token"]) == Access("me", frozenset({"read", "write"}))
        listed = await client.call("admin_list_tokens")
        assert made["token"] not in json.dumps(listed)
        assert [(token["name"], token["state"]) for token in listed["tokens"]] == [("me", "active")]
        changed = await client.call("admin_update_token", token="me", permissions=["read"], space_ids=[SPACE])
        assert (changed["permissions"], changed["space_ids"]) == (["read"], [SPACE])
        assert (await client.call("admin_revoke_token", token=made["hash"]))["state"] == "revoked"
        assert await app.tokens.access(made["token"]) is None
        assert (await client.call("admin_purge_tokens", revoked=True))["removed"] == ["me"]
        again = await client.call("admin_create_token", name="me", permissions=["read"])
        assert (await client.call("admin_delete_token", token=again["hash"]))["name"] == "me"


async def test_how_the_service_is(open_client: OpenClient) -> None:
    async with open_client(WRITER) as client:
        assert (await client.call("system_health"))["status"] == "healthy"
        about = await client.call("system_about")
        assert about["permissions"] == ["read", "write"]
        assert about["agent"] == "writer"
        assert {tool["name"]: tool["description"] for tool in about["tools"]} == {
            name: tool.purpose for name, tool in BY_NAME.items()
        }


# --- who may ---------------------------------------------------------------------------------------------------------


def needed(tool: Any) -> dict[str, Any]:
    """Arguments that are right in form."""
    known = {"space_id": SPACE, "project": SPACE, "backup_id": f"{SPACE}/2026-01-01T00-00-00", "path": "/memories/x"}
    return {
        parameter.name: known.get(parameter.name)
        or (parameter.one_of[0] if parameter.one_of else VALUES[parameter.kind])
        for parameter in tool.parameters
        if parameter.required
    }


WRITING = {tool.name for tool in TOOLS if tool.needs == "write"}
ADMIN = {tool.name for tool in TOOLS if tool.needs == "admin"} | {"backup_delete", "backup_restore"}


@pytest.mark.parametrize(
    ("access", "name", "sentence"),
    [
        *((READER, name, "has no permission to") for name in sorted(WRITING | ADMIN)),
        *((WRITER, name, "has no permission to admin") for name in sorted(ADMIN)),
        *((CHIEF, name, "has no permission to admin in the bucket") for name in BY_NAME if name.startswith("admin_")),
    ],
)
async def test_what_a_caller_may_not_do_is_refused_and_changes_nothing(
    open_client: OpenClient, app: App, access: Access, name: str, sentence: str
) -> None:
    before = await content_of(app)

    async with open_client(access) as client:
        assert sentence in await client.refused(name, **needed(BY_NAME[name]))
    assert await content_of(app) == before


async def test_a_space_outside_is_not_there(open_client: OpenClient, app: App) -> None:
    """For every tool that is about a space, and in every list."""
    await spaces.create(app.replica, app.clock, "beta")
    async with open_client(CHIEF) as client:
        for tool in TOOLS:
            given = needed(tool)
            if tool.about and tool.about in given:
                assert "there is no beta" in await client.refused(tool.name, **{**given, tool.about: "beta"}), tool.name
        await client.call("backup_create", space_id=SPACE)
        assert [space["space_id"] for space in (await client.call("space_list"))["spaces"]] == [SPACE]
        assert "there is no beta" in await client.refused("backup_restore", backup_id="beta/x", confirm=True)
        own = (await client.call("backup_list"))["backups"][0]["backup_id"]
        assert "there is no beta" in await client.refused("backup_restore", backup_id=own, confirm=True, to="beta")
        assert "there is no gamma" in await client.refused("space_create", space_id="gamma")


async def test_searching_everywhere_finds_only_what_one_sees(open_client: OpenClient, app: App) -> None:
    async with open_client() as client:
        await client.call("space_create", space_id="beta")
        for space in (SPACE, "beta"):
            await client.call("live_note", space_id=space, content=f"the zebra of {space}")
        both = await client.call("search_memory", query="zebra")
        assert sorted(hit["text"] for hit in both["results"]) == ["the zebra of alpha", "the zebra of beta"]
    async with open_client(READER) as client:
        visible = await client.call("search_memory", query="zebra")
        assert [hit["text"] for hit in visible["results"]] == ["the zebra of alpha"]


# --- how -------------------------------------------------------------------------------------------------------------


async def test_what_is_wrong_with_arguments_is_said_in_words(open_client: OpenClient) -> None:
    async with open_client() as client:
        assert "content is missing" in await client.refused("live_note", space_id=SPACE)
        assert "limit is 1 to 500, not 0" in await client.refused("live_read", space_id=SPACE, limit=0)
        assert "query is no string" in await client.refused("live_search", space_id=SPACE, query=3)
        assert "wrong is none of its parameters" in await client.refused("space_list", wrong=1)
        assert "category is one of observation" in await client.refused(
            "live_note", space_id=SPACE, content="x", category="joke"
        )
        assert "there is no tool 'rm'" in await client.refused("rm")


async def test_a_credential_in_a_note_is_replaced_and_the_writer_is_told(open_client: OpenClient, app: App) -> None:
    secret = "ghp_" + "a1B2" * 9

    async with open_client() as client:
        answer = await client.call("live_note", space_id=SPACE, content=f"the key is {secret}")
        assert "github-token" in answer["warnings"][0]
        assert "[redacted: github-token]" in (await client.call("live_read", space_id=SPACE))["notes"][0]["content"]
    for info in await app.replica.names.walk(""):
        assert secret.encode() not in (await app.replica.read(info.key)).data


async def test_where_a_space_is_meant_it_need_not_be_named(open_client: OpenClient) -> None:
    async with open_client(space=SPACE, tools="core") as client:
        listed = {tool.name: tool.input_schema for tool in (await client.session.list_tools()).tools}
        assert "space_id" not in json.dumps(listed)
        await client.call("live_note", content="short")
        assert len((await client.call("live_read"))["notes"]) == 1
        assert (await client.call("search_memory", query="short"))["results"]
    async with open_client(space=SPACE, tools="live_note,live_read") as client:
        assert "there is no tool 'space_delete'" in await client.refused("space_delete", confirm=True)


async def test_a_failure_of_ours_shows_nothing_of_the_inside(
    open_client: OpenClient, monkeypatch: pytest.MonkeyPatch, expect_log: Any
) -> None:
    expect_log("a tool failed")

    async def broken(*_: object) -> None:
        raise RuntimeError("/etc/secret-path")

    monkeypatch.setattr(spaces, "list_spaces", broken)
    async with open_client() as client:
        assert await client.refused("space_list") == "livememfs failed; its log has the error"


@OLDER
async def test_of_more_changes_than_wait_a_session_hears_that_all_it_asked_for_may_have_changed(app: App) -> None:
    server = McpServer(app.tree, app.tokens)
    uri = uri_of(f"{SPACE}/bank/last.md")
    heard: list[str] = []

    async def hear(message: object) -> None:
        if isinstance(message, types.ResourceUpdatedNotification):
            heard.append(message.params.uri)

    async with (
        trio.open_nursery() as nursery,
        mcp.Client(server.sdk, mode="legacy", message_handler=hear) as session,
    ):
        await session.subscribe_resource(uri)
        nursery.start_soon(server.run)
        await wait_all_tasks_blocked()
        for number in range(QUEUED):
            app.replica.changes.publish(Change(f"{SPACE}/bank/{number}.md", "put", "e", "remote"))
        app.replica.changes.publish(Change(f"{SPACE}/bank/last.md", "put", "e", "remote"))
        with trio.fail_after(30):
            while server.statistics().notified <= QUEUED - 2:
                await wait_all_tasks_blocked()
        assert heard == [uri]
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("get_session_summary", {"project": SPACE, "session_id": "a\ud800"}),
        ("memory", {"space_id": SPACE, "command": "create", "path": "/memories/\ud800.md", "file_text": "x"}),
        ("memory", {"space_id": SPACE, "command": "create", "path": "/memories/a.md", "file_text": "\udfff"}),
        ("live_note", {"space_id": SPACE, "content": "x", "tags": ["good", "\ud800"]}),
    ],
)
async def test_half_a_character_is_refused_in_words(app: App, tool: str, given: dict[str, Any]) -> None:
    before = await content_of(app)
    with pytest.raises(BadRequest, match="half of a character"):
        await BY_NAME[tool].call(ToolCall(app.tree, app.tokens), given)
    assert await content_of(app) == before


async def test_a_link_in_the_folder_leads_no_tool_out_of_it(
    app: App, open_client: OpenClient, settings: Settings, tmp_path: Path
) -> None:
    """`alpha/bank/e` leads to what looks like /etc, as a writer of the folder may put it there."""
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/passwd").write_text("root:x:0:0")
    (tmp_path / "etc/passwd.md").write_text("root:x:0:0")
    bank = settings.store_path / SPACE / "bank"
    bank.mkdir(exist_ok=True)
    (bank / "e").symlink_to(tmp_path / "etc")
    (bank / "f.md").symlink_to(tmp_path / "etc/passwd.md")
    async with open_client() as client:
        for name in ("e/passwd", "e/passwd.md", "f.md"):
            assert "there is no" in await client.refused("bank_read", space_id=SPACE, filename=name)
        assert (await client.call("bank_read_all", space_id=SPACE))["files"] == []
        assert "root:x" not in str(await client.raw("space_export", space_id=SPACE))
