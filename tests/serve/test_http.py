"""MCP over HTTP on a real socket, by the official SDK's client: tokens, sessions, news of the bank, crowds."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

import httpx2 as httpx
import pytest
import structlog
import trio
from clients import ACCEPT, HELLO, SPACE, Site, ask, opened_session, serving, until
from mcp import types
from mcp.shared.exceptions import MCPError

from livememfs.app import App
from livememfs.app.serving import http_server
from livememfs.errors import UsageError
from livememfs.serve.http import ListenAddress
from livememfs.spaces import making as spaces
from livememfs.text.own import HEAD

# Under trio, the SDK's client leaves generators of its HTTP library to the garbage collector.
# Sessions of the older revisions subscribe in a way that the newest has no more.
pytestmark = [
    pytest.mark.filterwarnings("ignore:Async generator '(httpx2|httpcore2|mcp):ResourceWarning"),
    pytest.mark.filterwarnings("ignore:resources/subscribe is removed"),
]

CROWD = 200


@pytest.fixture
async def site(app: App, nursery: trio.Nursery) -> AsyncIterator[Site]:
    """Serving `app`."""
    async with serving(app, nursery, tools="all", pages=False) as site:
        yield site


# --- tools -----------------------------------------------------------------------------------------------------------


async def test_the_whole_way_over_http(site: Site) -> None:
    async with site.client(await site.token()) as client:
        await client.call("space_create", space_id="beta")
        await client.call("live_note", space_id="beta", content="we chose S3", category="decision")
        assert (await client.call("live_read", space_id="beta"))["notes"][0]["agent"] == "me"
        assert (await client.call("bank_consolidate", space_id="beta"))["state"] == "ok"
        assert (await client.call("search_memory", query="S3", project="beta"))["results"]
        backup = (await client.call("backup_create", space_id="beta"))["backup_id"]
        await client.call("space_delete", space_id="beta", confirm=True)
        await client.call("backup_restore", backup_id=backup, confirm=True)
        assert len((await client.call("bank_read_all", space_id="beta"))["files"]) == 6


async def test_a_long_call_says_how_far_it_is(site: Site) -> None:
    phases: list[str | None] = []

    async def hear(_: float, __: float | None, message: str | None) -> None:
        phases.append(message)

    async with site.client(await site.token()) as client:
        await client.call("live_note", space_id=SPACE, content="x")
        answer = await client.session.call_tool("bank_consolidate", {"space_id": SPACE}, progress_callback=hear)
    assert answer.structured_content is not None
    assert phases[-1] == "ok"


async def test_files_of_the_bank_are_resources_and_their_changes_are_told(site: Site) -> None:
    heard: list[Any] = []
    uri = f"livememfs://bucket/{SPACE}/bank/activeContext.md"

    async with site.client(await site.token(), heard) as client:
        assert (await client.session.list_resources()).resources == []
        await client.call("live_note", space_id=SPACE, content="first")
        await client.call("bank_consolidate", space_id=SPACE)
        listed = (await client.session.list_resources()).resources
        assert uri in [str(listed_resource.uri) for listed_resource in listed]
        resource = await client.session.read_resource(uri)
        assert resource.contents[0].text.startswith(f"{HEAD}\n# activeContext")  # type: ignore[union-attr]  # it is a text
        await client.session.subscribe_resource(uri)
        heard.clear()
        await site.app.replica.put(f"{SPACE}/bank/activeContext.md", b"# activeContext\n\nother\n")
        await site.app.replica.put(f"{SPACE}/bank/new.md", b"# new\n")
        kinds = {types.ResourceUpdatedNotification, types.ResourceListChangedNotification}
        await until(lambda: {type(news) for news in heard} >= kinds)
        updated = [str(news.params.uri) for news in heard if isinstance(news, types.ResourceUpdatedNotification)]
        assert set(updated) == {uri}


async def test_resources_outside_are_neither_listed_nor_read_nor_told_of(site: Site) -> None:
    await spaces.create(site.app.replica, site.app.clock, "beta")
    await site.app.replica.put("beta/bank/secret.md", b"canary")
    heard: list[Any] = []

    async with site.client(await site.token("reader", "read", SPACE), heard) as client:
        assert (await client.session.list_resources()).resources == []
        for path in ("beta/bank/secret.md", f"{SPACE}/bank/../../beta/bank/secret.md", "beta/_meta.json", "_system/x"):
            uri = f"livememfs://bucket/{path}"
            with pytest.raises(MCPError) as caught:
                await client.session.read_resource(uri)
            assert "canary" not in str(caught.value)
        with pytest.raises(MCPError):
            await client.session.subscribe_resource("livememfs://bucket/beta/bank/secret.md")
        await site.app.replica.put("beta/bank/secret.md", b"changed")
        await site.app.replica.put(f"{SPACE}/bank/own.md", b"own")
        await until(lambda: heard)
        assert len(heard) == 1  # of its own space's


# --- tokens ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["none", "unknown", "expired", "revoked", "deleted"])
async def test_without_a_token_that_is_good_nothing_is_done(site: Site, how: str) -> None:
    secret = {"none": "", "unknown": "lm_" + "x" * 43}.get(how)
    if secret is None:
        secret = await site.token(lasts=timedelta(microseconds=1) if how == "expired" else None)
        if how in ("revoked", "deleted"):
            await (site.app.tokens.revoke("me") if how == "revoked" else site.app.tokens.delete("me"))
        await trio.sleep(0.001)
    async with site.browser(secret) as browser:
        for method, path in (("POST", "/mcp"), ("GET", "/mcp"), ("DELETE", "/mcp"), ("GET", "/metrics"), ("GET", "/x")):
            answer = await browser.request(method, path, json=HELLO, headers=ACCEPT)
            assert answer.status_code == 401
            assert secret not in answer.text or not secret


async def test_a_token_that_is_taken_away_ends_a_session_at_once(site: Site) -> None:
    async with site.browser(await site.token("going", "write")) as browser:
        session = await opened_session(browser)
        assert (await browser.post("/mcp", json=ask("tools/list"), headers=session)).status_code == 200
        await site.app.tokens.revoke("going")
        assert (await browser.post("/mcp", json=ask("tools/list"), headers=session)).status_code == 401
        assert (await browser.get("/mcp", headers=session)).status_code == 401


async def test_a_token_whose_rights_shrink_loses_them_in_the_middle_of_a_session(site: Site) -> None:
    async with site.client(await site.token("shrinking", "write")) as client:
        await client.call("live_note", space_id=SPACE, content="x")
        await site.app.tokens.update("shrinking", permissions=["read"])
        assert "no permission to write" in await client.refused("live_note", space_id=SPACE, content="y")


async def test_a_session_belongs_to_the_token_that_opened_it(site: Site, expect_log: Callable[[str], None]) -> None:
    expect_log("credential does not match")
    mine, other = await site.token("mine", "admin"), await site.token("other", "read")
    async with site.browser(mine) as browser:
        session = await opened_session(browser)
        assert (await browser.post("/mcp", json=ask("tools/list"), headers=session)).status_code == 200
    async with site.browser(other) as browser:
        assert (await browser.post("/mcp", json=ask("tools/list"), headers=session)).status_code == 404
        assert (await browser.get("/mcp", headers=session)).status_code == 404
        assert (await browser.delete("/mcp", headers=session)).status_code == 404


async def test_what_is_for_the_whole_bucket_is_not_for_a_part_of_it(site: Site) -> None:
    async with site.browser(await site.token("part", "admin", SPACE)) as browser:
        assert (await browser.get("/metrics")).status_code == 403
    async with site.browser(await site.token("whole", "read")) as browser:
        answer = await browser.get("/metrics")
        assert answer.status_code == 200
        assert "livememfs_" in answer.text
    async with site.browser() as browser:
        assert (await browser.get("/healthz")).json()["status"] == "ok"


async def test_a_page_of_another_site_can_neither_post_nor_listen_nor_be_rebound(
    app: App, nursery: trio.Nursery
) -> None:
    """With the cookie of somebody who is signed in, as their browser would send it along."""
    async with serving(app, nursery) as site, site.browser() as browser:
        cookie = {"cookie": f"livememfs_token={await site.token()}"}
        evil = {**cookie, "origin": "https://evil.example"}
        assert (await browser.get("/", headers=cookie)).status_code == 200
        assert (await browser.get("/events", headers=evil)).status_code == 403
        assert (await browser.post("/mcp", json=HELLO, headers={**ACCEPT, **evil})).status_code == 403
        run = {"action": "run"}
        assert (await browser.post(f"/s/{SPACE}/consolidation", data=run, headers=evil)).status_code == 403
        assert (await browser.post("/logout", headers=evil)).status_code == 403
        for path in ("/", "/events", "/healthz", "/login"):
            rebound = {**cookie, "host": f"evil.example:{site.port}"}
            assert (await browser.get(path, headers=rebound)).status_code == 421
    assert app.consolidations.latest(SPACE) == 0


async def test_a_secret_is_in_no_log_no_error_no_figure_and_not_in_the_bucket(site: Site) -> None:
    """Everything that anybody says while tokens are made, used well and used badly."""
    logged = io.StringIO()
    structlog.configure(
        processors=[structlog.processors.format_exc_info, structlog.processors.JSONRenderer()],
        logger_factory=structlog.PrintLoggerFactory(logged),
        wrapper_class=structlog.make_filtering_bound_logger(0),
        cache_logger_on_first_use=False,
    )
    handler = logging.StreamHandler(logged)
    root = logging.getLogger()
    level = root.level
    root.addHandler(handler)
    secret = await site.token()
    other = "lm_" + "y" * 43
    try:
        # The client's own library logs what it sends: what is looked at here is what our side says.
        root.setLevel(logging.INFO)
        async with site.client(secret) as client:
            made = (await client.call("admin_create_token", name="made", permissions=["read"]))["token"]
            texts = [await client.refused("admin_revoke_token", token=other)]
            texts.append(json.dumps(await client.call("admin_list_tokens")))
            await client.call("live_note", space_id=SPACE, content=f"the token is {secret}")
            texts.append(json.dumps(await client.call("live_read", space_id=SPACE)))
        async with site.browser(secret) as browser:
            texts += [(await browser.get(path)).text for path in ("/metrics", "/healthz", "/nothing")]
        async with site.browser(other) as browser:
            texts.append((await browser.get("/metrics")).text)
        await site.app.tokens.write_uses()
    finally:
        root.removeHandler(handler)
        root.setLevel(level)
    texts += [logged.getvalue(), json.dumps(site.app.tree.context.status(), default=str)]
    texts += [site.app.errors.errors().decode()]
    for info in await site.app.replica.names.walk(""):
        texts.append((await site.app.replica.read(info.key)).data.decode("utf-8", "replace"))

    assert "token_created" in logged.getvalue()  # the log is listened to
    for text in texts:
        for token in (secret, made, other):
            assert token not in text


# --- crowds ----------------------------------------------------------------------------------------------------------


async def test_two_hundred_connections_are_answered_and_leave_nothing_behind(site: Site) -> None:
    secret = await site.token()
    request = (
        f"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1:{site.port}\r\nauthorization: Bearer {secret}\r\n"
        "accept: application/json, text/event-stream\r\ncontent-type: application/json\r\n"
        f"content-length: {len(json.dumps(HELLO))}\r\n\r\n{json.dumps(HELLO)}"
    ).encode()
    answers: list[bytes] = []
    everybody = trio.Event()

    async def one(number: int) -> None:
        async with await trio.open_tcp_stream("127.0.0.1", site.port) as stream:
            if number % 2:
                await stream.send_all(request[:40])  # half of them say only this much for now
            await everybody.wait()
            await stream.send_all(request[40:] if number % 2 else request)
            received = b""
            while b"\r\n\r\n" not in received:
                part = await stream.receive_some(4_096)
                if not part:
                    break
                received += part
            answers.append(received[:12])

    with trio.fail_after(60):
        async with trio.open_nursery() as nursery:
            for number in range(CROWD):
                nursery.start_soon(one, number)
            await until(lambda: len(site.server._connections) == CROWD, 60)
            async with site.browser(secret) as browser:  # one more, while all of them are there
                assert (await browser.get("/metrics")).status_code == 200
            everybody.set()
    assert answers == [b"HTTP/1.1 200"] * CROWD
    await until(lambda: not site.server.statistics().under_way)
    async with site.browser() as browser:
        assert (await browser.get("/healthz")).status_code == 200


async def test_ten_megabytes_are_refused_on_the_wire_too(site: Site) -> None:
    secret = await site.token()
    for token, status in ((secret, 413), ("", 401)):
        async with site.browser(token) as browser:
            try:
                answer = await browser.post("/mcp", content=b"x" * (10 << 20), headers=ACCEPT)
            except (httpx.WriteError, httpx.ReadError):
                continue  # refused before it was sent
            assert answer.status_code == status
    async with site.browser(secret) as browser:
        assert (await browser.get("/metrics")).status_code == 200


async def test_a_port_that_is_taken_is_said(site: Site) -> None:
    again = http_server(site.app, ListenAddress("127.0.0.1", site.port), pages=False)
    with pytest.raises(UsageError, match=r"cannot listen at 127\.0\.0\.1"):
        await again.run()
