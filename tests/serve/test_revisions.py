"""Clients of every revision of the protocol: what real ones sent, replayed; prompts, completions and news for both.

Whatever is logged at warning or above fails a test: a client's whole life leaves no such line.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import mcp
import pytest
import trio
import trio.testing
from clients import (
    ACCEPT,
    PATIENCE,
    REVISIONS,
    SPACE,
    Line,
    OpenClient,
    Site,
    ask,
    opened_session,
    serving,
    until,
)
from mcp.shared.exceptions import MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from livememfs.app import App
from livememfs.app.serving import mcp_server
from livememfs.records import keys
from livememfs.records.access import Access
from livememfs.serve import local, sessions
from livememfs.serve.news import uri_of
from livememfs.serve.prompts import PROMPTS
from livememfs.serve.toolbox import chosen
from livememfs.serve.tools import TOOLS
from livememfs.spaces import making as spaces
from livememfs.text.own import END, HEAD

pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(httpx2|httpcore2|mcp):ResourceWarning")

RECORDED = Path(__file__).parent / "recorded"
BANK = f"{SPACE}/bank/x.md"
READER = Access("reader", frozenset({"read"}), (SPACE,))
STATE = {"access": READER, "holder": "reader"}
NEWEST = {
    "io.modelcontextprotocol/protocolVersion": REVISIONS[1],
    "io.modelcontextprotocol/clientInfo": {"name": "claude-code", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def connected(app: App) -> AsyncIterator[Line]:
    """A connection as a mount's socket has it."""
    ours, theirs = trio.testing.memory_stream_pair()
    server = mcp_server(app)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(local.over_stream, server, cast(trio.SocketStream, theirs))
        yield Line(ours)
        await ours.aclose()
        nursery.cancel_scope.cancel()


def recorded(client: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (RECORDED / f"{client}.jsonl").read_text().splitlines()]


async def test_a_client_of_the_sdks_first_version_is_served_all_its_life(app: App) -> None:
    answers: dict[str, Any] = {}
    async with connected(app) as line:
        for message in recorded("sdk-1.30"):
            await line.say(message)
            if "id" in message:
                answer = await line.hear()
                assert answer["id"] == message["id"]
                answers[message["method"]] = answer["result"]
        assert answers["initialize"]["protocolVersion"] == "2025-11-25"
        assert answers["initialize"]["capabilities"]["resources"] == {"subscribe": True, "listChanged": True}
        assert "from v1" in answers["prompts/get"]["messages"][0]["content"]["text"]
        assert answers["completion/complete"]["completion"]["values"] == [SPACE]
        assert await authors(app) == ["codex"]
        await app.replica.put(BANK, b"# new\n")
        heard = [await line.hear() for _ in range(2)]
    changes = [f"notifications/resources/{change}" for change in ("updated", "list_changed")]
    assert [message["method"] for message in heard] == changes
    assert heard[0]["params"]["uri"] == uri_of(BANK)


async def authors(app: App) -> list[str]:
    """By whom the notes are."""
    infos = await app.replica.names.walk(f"{SPACE}/live/")
    return [info.key.rpartition("/")[2].split("_")[1] for info in infos if keys.parse(info.key).kind == "note"]


async def test_a_real_client_of_the_newest_revision_is_served_and_hears_what_it_asked_for(app: App) -> None:
    """Copilot CLI as it was recorded: it finds out, listens, lists tools, and stops listening when it ends."""
    discover, listen, tools, cancelled = recorded("copilot-cli-1.0.102")
    async with connected(app) as line:
        await line.say(discover)
        assert (await line.hear())["result"]["supportedVersions"] == [REVISIONS[1]]
        await line.say(listen)
        assert (await line.hear())["params"]["notifications"] == {"resourcesListChanged": True}  # it changes no more
        await line.say(tools)
        listed = (await line.hear())["result"]
        assert listed["ttlMs"] > 0
        assert len(listed["tools"]) == len(chosen(TOOLS, "core"))
        await app.replica.put(BANK, b"# new\n")
        news = await line.hear()
        assert news["method"] == "notifications/resources/list_changed"
        assert news["params"]["_meta"] == {"io.modelcontextprotocol/subscriptionId": listen["id"]}
        await line.say(cancelled)
        await app.replica.put(f"{SPACE}/bank/y.md", b"# new\n")
        await line.say(tools | {"id": 99})
        assert (await line.hear())["id"] == 99  # and not that y.md is there


async def test_what_is_no_message_ends_nothing(app: App) -> None:
    async with connected(app) as line:
        await line.stream.send_all(b"no json\n" + b'{"jsonrpc": "2.0", "id": 5}\n' + b"[" * 100 + b"\n")
        await line.say(ask("tools/call", _meta=NEWEST, name="live_note", arguments="{}"))
        refused = (await line.hear())["error"]["message"]
        assert refused == "tools/call: arguments: Input should be a valid dictionary"
        await line.say(ask("server/discover", _meta=NEWEST))
        assert "result" in await line.hear()


# --- news ------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def site(app: App, nursery: trio.Nursery) -> AsyncIterator[Site]:
    """Serving `app` as the command does."""
    async with serving(app, nursery, pages=False) as site:
        yield site


async def test_a_stream_tells_what_may_be_seen_and_nothing_when_the_token_is_good_no_more(site: Site) -> None:
    await spaces.create(site.app.replica, site.app.clock, "beta")
    other, own = uri_of("beta/bank/secret.md"), uri_of(BANK)
    events: list[Any] = []
    async with (
        site.client(await site.token("reader", "read", SPACE), revision="auto") as client,
        client.session.listen(resources_list_changed=True, resource_subscriptions=[other, own, "file:///x"]) as stream,
    ):
        assert client.session.protocol_version == REVISIONS[1]
        assert stream.honored.resource_subscriptions == [own]
        await site.app.replica.put("beta/bank/secret.md", b"changed")
        await site.app.replica.put(BANK, b"# own\n")
        with trio.fail_after(PATIENCE):
            events += [await anext(stream), await anext(stream)]
        assert [getattr(event, "uri", "") for event in events] == [own, ""]
        notified = site.server._mcp.statistics().notified
        await site.app.tokens.revoke("reader")
        await site.app.replica.put(BANK, b"# again\n")
        await trio.testing.wait_all_tasks_blocked(0.05)
        assert site.server._mcp.statistics().notified == notified
    await until(lambda: not site.server._mcp.statistics().sessions)


async def test_the_newest_revision_opens_no_session_and_ends_nobodys(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sessions, "MOST_OF_A_TOKEN", 1)
    secret = await site.token()
    async with site.browser(secret) as browser, site.client(secret, revision="auto") as client:
        session = await opened_session(browser)
        large = "x" * (sessions.LARGE + 1)
        async with trio.open_nursery() as nursery:
            for number in range(3):
                content = f"{number} {large}"
                nursery.start_soon(partial(client.call, "live_note", space_id=SPACE, content=content))
        listed = await browser.post("/mcp", json=ask("ping"), headers=session)
        assert listed.status_code == 200


@pytest.mark.parametrize("revision", REVISIONS)
async def test_a_client_that_leaves_in_the_middle_of_an_answer_is_no_error(site: Site, revision: str) -> None:
    secret = await site.token()
    newest = {"mcp-protocol-version": revision, "mcp-method": "tools/call", "mcp-name": "bank_consolidate"}
    meta = {**NEWEST, "progressToken": 1} if revision == REVISIONS[1] else {"progressToken": 1}
    call = ask("tools/call", name="bank_consolidate", arguments={"space_id": SPACE}, _meta=meta)
    async with site.client(secret, revision=revision) as client, site.browser(secret) as browser:
        await client.call("live_note", space_id=SPACE, content="x")
        opened = await opened_session(browser)
        session = opened if revision == "legacy" else newest
        last = session if revision == "legacy" else {"mcp-protocol-version": revision, "mcp-method": "tools/list"}
        for number, delay in enumerate((0.0, 0.01, 0.02, 0.05, 0.1), 2):
            with trio.move_on_after(delay):
                async with browser.stream(
                    "POST", "/mcp", json=call | {"id": number}, headers={**ACCEPT, **session}
                ) as answer:
                    assert answer.status_code == 200
                    await answer.aread()
            if revision == "legacy":
                with trio.move_on_after(delay):
                    async with browser.stream("GET", "/mcp", headers={**ACCEPT, **session}) as answer:
                        assert answer.status_code == 200
                        await site.app.replica.put(BANK, str(delay).encode())
        answer = await browser.post("/mcp", json=ask("tools/list", _meta=meta), headers={**ACCEPT, **last})
        assert answer.status_code == 200


async def test_a_large_message_that_was_read_keeps_no_other_waiting() -> None:
    """However long it takes to answer: the newest revision answers only when all is done."""
    at_work: list[int] = []

    class Manager:
        async def handle_request(self, scope: Any, receive: Any, send: Any) -> None:
            await receive()
            at_work.append(1)
            await receive()

    async def one(door: sessions.McpEndpoint) -> None:
        scope = {"type": "http", "headers": [(b"mcp-protocol-version", REVISIONS[1].encode())], "state": STATE}
        body = [{"type": "http.request", "body": b'"' + b"x" * sessions.LARGE + b'"'}]

        async def receive() -> Any:
            return body.pop() if body else await trio.sleep_forever()

        await door(scope, receive, receive)

    door = sessions.McpEndpoint(cast(Any, Manager()))
    async with trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(one, door)
        await until(lambda: len(at_work) == 2)
        nursery.cancel_scope.cancel()


# --- what is offered -------------------------------------------------------------------------------------------------


async def test_what_is_offered_without_being_asked_for_is_the_core_which_administers_nothing(app: App) -> None:
    async with mcp.Client(mcp_server(app).sdk) as session:
        listed = {tool.name for tool in (await session.list_tools()).tools}
    assert listed == {tool.name for tool in TOOLS if tool.core}
    assert not [tool.name for tool in TOOLS if tool.core and tool.needs == "admin"]


@pytest.mark.parametrize(
    ("wanted", "offered", "shut_out"),
    [
        ("", "core", ()),
        ("?tools=all", "all", ()),
        ("?tools=timeline,live_note", "live_note,timeline", ("space_info",)),
    ],
)
async def test_over_http_a_client_chooses_its_tools_by_the_address(
    site: Site, wanted: str, offered: str, shut_out: tuple[str, ...], expect_log: Any
) -> None:
    """The core only shortens the list: programs of Live Memory call tools by name. A set of names shuts others out."""
    expect_log("not listed by server")  # the SDK's client complains
    site.path = f"/mcp{wanted}"
    async with site.client(await site.token(), revision="auto") as client:
        listed = {tool.name for tool in (await client.session.list_tools()).tools}
        await client.call("timeline", project=SPACE)
        if not shut_out:
            await client.call("space_info", space_id=SPACE)
        for name in shut_out:
            assert f"there is no tool '{name}'" in await client.refused(name, space_id=SPACE)
    assert listed == {tool.name for tool in chosen(TOOLS, offered)}


async def test_a_set_of_tools_that_is_none_is_refused_in_words(site: Site) -> None:
    site.path = "/mcp?tools=all,live_note"
    async with site.client(await site.token(), revision="auto") as client:
        with pytest.raises(MCPError, match="there is no all"):
            await client.session.list_tools()
        assert "there is no all" in await client.refused("live_read", space_id=SPACE)


async def test_prompts_tell_what_is_known_between_our_marks_and_what_to_do(open_client: OpenClient) -> None:
    async with open_client(tools="core") as client:
        await client.call("live_note", space_id=SPACE, content="we chose Postgres", category="decision")

        async def text(name: str, **given: str) -> str:
            return (await client.session.get_prompt(name, given)).messages[0].content.text  # type: ignore[union-attr]

        recalled = await text("recall", question="which database: Postgres?")
        assert "we chose Postgres" in recalled[recalled.index(HEAD) : recalled.index(END)]
        assert recalled.endswith("Question: which database: Postgres?\n")
        remembered = await text("remember", what="the port is 8080", space_id=SPACE)
        assert "live_note" in remembered
        assert f"space {SPACE}" in remembered
        assert remembered.endswith("the port is 8080\n")
        handed = await text("handover", space_id=SPACE)
        assert f"Memory of {SPACE}" in handed[handed.index(HEAD) : handed.index(END)]
        assert "category progress" in handed[handed.index(END) :]


@pytest.mark.parametrize(
    ("name", "given", "says"),
    [
        ("recall", {}, "question is missing"),
        ("recall", {"question": "x", "space_id": "beta"}, "there is no beta"),
        ("handover", {"space_id": "../x"}, "space"),
        ("nothing", {}, "there is no prompt 'nothing'"),
    ],
)
async def test_a_prompt_refuses_as_a_tool_does(
    open_client: OpenClient, app: App, name: str, given: dict[str, str], says: str
) -> None:
    await spaces.create(app.replica, app.clock, "beta")
    async with open_client(READER) as client:
        with pytest.raises(MCPError, match=says):
            await client.session.get_prompt(name, given)


async def test_where_a_space_is_meant_no_prompt_asks_for_it(open_client: OpenClient) -> None:
    async with open_client(space=SPACE) as client:
        parameters = {prompt.name: prompt.arguments for prompt in (await client.session.list_prompts()).prompts}
        assert {name: [parameter.name for parameter in of or ()] for name, of in parameters.items()} == {
            "recall": ["question"],
            "remember": ["what"],
            "handover": [],
        }
        assert len(parameters) == len(PROMPTS)
        await client.session.get_prompt("handover")


async def test_names_are_completed_of_what_may_be_seen(open_client: OpenClient, app: App) -> None:
    await spaces.create(app.replica, app.clock, "alsobeta")
    for key in (BANK, f"{SPACE}/bank/sub/xy.md", f"{SPACE}/bank/other.md", "alsobeta/bank/x.md"):
        await app.replica.put(key, b"# x\n")
    template = ResourceTemplateReference(uri="livememfs://bucket/{space}/bank/{+filename}")

    async def complete(access: Access, ref: Any, name: str, value: str, **known: str) -> list[str]:
        async with open_client(access) as client:
            result = await client.session.complete(ref, {"name": name, "value": value}, context_arguments=known)
            return result.completion.values

    everybody = Access("all", frozenset({"read"}), ())
    assert await complete(everybody, PromptReference(name="recall"), "space_id", "al") == [SPACE, "alsobeta"]
    assert await complete(READER, PromptReference(name="recall"), "space_id", "al") == [SPACE]
    assert await complete(READER, template, "space", "") == [SPACE]
    assert await complete(READER, template, "filename", "x", space=SPACE) == ["x.md"]
    assert await complete(READER, template, "filename", "", space=SPACE) == ["other.md", "sub/xy.md", "x.md"]
    assert await complete(READER, template, "filename", "", space="alsobeta") == []
    assert await complete(READER, PromptReference(name="recall"), "question", "w") == []


# --- what is taken ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "named"), [("a\0b", "U+0000"), ("\x1b[31mred", "U+001B"), ("bell\a", "U+0007")])
async def test_a_control_character_is_refused_by_its_name(
    open_client: OpenClient, app: App, text: str, named: str
) -> None:
    async with open_client() as client:
        for given in ({"content": text}, {"content": "x", "tags": [text]}, {"content": "x", "agent": text}):
            assert f"the control character {named}" in await client.refused("live_note", space_id=SPACE, **given)
        await client.call("live_note", space_id=SPACE, content="tab\tline\r\npage\f")
    assert len(await authors(app)) == 1


async def test_a_parameter_that_a_model_was_not_told_of_is_not_named(open_client: OpenClient) -> None:
    async with open_client(space=SPACE) as client:
        refusal = await client.refused("live_note", text="x")
    assert "live_note takes content, category, agent, tags" in refusal
    assert "space_id" not in refusal


async def test_whoever_says_all_and_hangs_up_is_answered_all(app: App) -> None:
    """`livememfs mcp < requests`: the last answer comes, and what it says is done. A listener is not waited for."""
    messages = [message for message in recorded("sdk-1.30") if message["method"] != "resources/subscribe"]
    note = {"name": "live_note", "arguments": {"space_id": SPACE, "content": "said last", "agent": "last"}}
    messages.append({"jsonrpc": "2.0", "id": 99, "method": "tools/call", "params": note})
    ours, theirs = trio.testing.memory_stream_pair()
    await ours.send_all("\n".join(map(json.dumps, messages)).encode())
    await ours.send_eof()
    with trio.fail_after(PATIENCE):
        await local.over_stream(mcp_server(app), cast(trio.SocketStream, theirs))
    await theirs.send_eof()
    line, wanted = Line(ours), {message["id"] for message in messages if "id" in message}

    assert {(await line.hear())["id"] for _ in wanted} == wanted
    assert "last" in await authors(app)
