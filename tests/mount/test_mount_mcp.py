"""MCP as agents use it: the program they start, a server they call, and the daemon of a mount they share."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from cloud import Bucket, Cloud
from machine import SPACE, Mount, StartMount, clean_environment, livememfs, sh
from mcp_client import FACT, NOTES, RULES, everything, over_http, over_stdio, write

# Under trio, the SDK's client leaves generators of its HTTP library to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:Async generator '(httpx2|httpcore2|mcp):ResourceWarning")


def environment(home: Path, bucket: Bucket) -> dict[str, str]:
    """That of a program which uses a bucket."""
    home.mkdir(exist_ok=True)
    return clean_environment(home, **bucket.environment())


def other_bucket(s3: Cloud, name: str) -> Bucket:
    """One more."""
    client = s3.client()
    client.create_bucket(Bucket=name)
    return Bucket(s3, name, client)


@asynccontextmanager
async def listening(env: dict[str, str]) -> AsyncIterator[str]:
    """`livememfs mcp --http`, and where it is."""
    limited = ["timeout", "-k", "5", "300", "setpriv", "--pdeathsig", "KILL", "--", sys.executable, "-m", "livememfs"]
    process = await trio.lowlevel.open_process(
        [*limited, "mcp", "--http", "127.0.0.1:0", "--tools", "all"],
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    try:
        with trio.fail_after(30):
            line = await process.stdout.receive_some(4_096)
        yield line.decode().strip().removesuffix("/mcp")
        process.terminate()
        with trio.fail_after(30):
            assert await process.wait() == 0
    finally:
        process.kill()
        await process.aclose() if hasattr(process, "aclose") else None
        await process.stdout.aclose()


async def test_every_tool_over_standard_input_in_the_order_of_a_spaces_life(bucket: Bucket, tmp_path: Path) -> None:
    async with over_stdio(environment(tmp_path / "home", bucket)) as client:
        await everything(client)


@pytest.mark.skipif(not os.environ.get("LIVEMEMFS_TEST_LONG"), reason="test_tools_contract asks every tool over HTTP")
async def test_every_tool_over_http_in_the_order_of_a_spaces_life(bucket: Bucket, tmp_path: Path) -> None:
    env = environment(tmp_path / "home", bucket)
    made = livememfs("token create me --permissions admin --json", env=env)

    async with listening(env) as url, over_http(url, json.loads(made.stdout)["token"]) as client:
        await everything(client)


async def test_every_tool_through_the_daemon_of_a_mount(mounted: Mount) -> None:
    """As `install --mcp` has agents start it: by the path of a space; what it writes is in the mount at once. Neither
    the process nor the daemon logs anything, whichever revision a client speaks.
    """
    async with over_stdio(mounted.environment, "--space", str(mounted / SPACE)) as client:
        assert client.session.protocol_version == "2026-07-28"
        listed = (await client.session.list_tools()).tools
        assert not [one.name for one in listed if "space_id" in one.input_schema["properties"]]
        await client.call("live_note", content="from the agent", category="decision")
        assert "from the agent" in sh("cat live/*decision*", cwd=mounted / SPACE).stdout
        sh("echo 'from the shell' > live/todo-x.md", cwd=mounted / SPACE)
        contents = [one["content"] for one in (await client.call("live_read"))["notes"]]
        assert sorted(contents) == ["from the agent", "from the shell"]
        await everything(client, "second")
    async with over_stdio(mounted.environment, "--space", str(mounted / SPACE), revision="legacy") as again:
        assert again.session.protocol_version == "2025-11-25"
        assert len((await again.call("live_read"))["notes"]) == 2


async def test_a_token_limits_an_agent_that_shares_a_mount(mounted: Mount) -> None:
    make = f"token create reader --permissions read --space {SPACE} --json"
    secret = json.loads(livememfs(make, env=mounted.environment).stdout)["token"]
    sh("mkdir other", cwd=mounted.path)
    path = str(mounted / SPACE)

    async with over_stdio(mounted.environment, "--space", path, "--token", secret) as client:
        assert [one["space_id"] for one in (await client.call("space_list"))["spaces"]] == [SPACE]
        assert "no permission to write" in await client.refused("live_note", content="x")
        assert "there is no other" in await client.refused("live_read", space_id="other")
    async with over_stdio({**mounted.environment, "LIVEMEMFS_TOKEN": secret}, "--space", path) as client:
        assert "no permission to write" in await client.refused("live_note", content="x")
    done = sh(f"{sys.executable} -m livememfs mcp --space {path} --token lm_bad", env=mounted.environment, status=1)
    assert "a valid token is needed" in done.stderr
    assert "lm_bad" not in done.stderr


def test_an_agent_whose_mount_is_not_there_is_told_so(tmp_path: Path, mounted: Mount) -> None:
    done = livememfs(f"mcp --space {tmp_path}/nowhere/project", env=mounted.environment, status=1)
    assert "nothing is mounted on" in done.stderr
    done = livememfs(f"mcp --space {mounted.path}/nothing", env=mounted.environment, status=1)
    assert "there is no nothing" in done.stderr
    assert done.stdout == ""  # it belongs to the protocol


# --- the same bucket -------------------------------------------------------------------------------------------------

_WHEN = re.compile(r"\d{4}-\d\d-\d\dT\d\d[:-]\d\d[:-]\d\d(?:\.\d+)?Z?|\d{8}T\d{6}")
_UID = re.compile(r"_[0-9a-f]{8}(?=\.md)")
_HOST = re.compile(r"/(_changes|_uses)/[^/]+\.json$")
_FIGURE = re.compile(r'"(duration_seconds|store_requests|holder|fence|at|host|sha256|digest|id|key_id)": [^,\n}]+')


def seen(bucket: Bucket) -> dict[str, str]:
    """What is in a bucket, without what differs from one second and one host to the next."""
    client = bucket.client
    found: dict[str, str] = {}
    for item in client.list_objects_v2(Bucket=bucket.name).get("Contents", []):
        key = item["Key"]
        data = client.get_object(Bucket=bucket.name, Key=key)["Body"].read().decode("utf-8", "replace")
        name = _HOST.sub(r"/\1/HOST.json", _UID.sub("_UID", _WHEN.sub("WHEN", key)))
        found[name] = _FIGURE.sub(r'"\1": FIGURE', _UID.sub("_UID", _WHEN.sub("WHEN", data)))
    return found


COMPARED = ("_rules.md", "_synthesis.md", "_meta.json", "/live/", "/bank/", "/memories/", "/plain/")
"""Of these the content too: the rest tells of hosts and times."""


async def test_a_bucket_written_by_the_tools_is_like_one_written_through_a_mount(
    s3: Cloud, start_mount: StartMount, tmp_path: Path
) -> None:
    """Key for key; what a person or an agent reads of it is the same to the byte. Without vectors, which searching
    leaves behind sooner or later, whoever searches.
    """
    words = {"LIVEMEMFS_EMBED_MODEL": "none"}
    by_tools, by_mount = other_bucket(s3, "by-tools"), other_bucket(s3, "by-mount")
    async with over_stdio({**environment(tmp_path / "home", by_tools), **words}, "--agent", "tester") as client:
        await write(client)

    mount = start_mount({**by_mount.environment(), **words}, "--agent", "tester")
    sh(f"mkdir {SPACE}", cwd=mount.path)
    (mount / SPACE / "_rules.md").write_text(RULES)
    for category, text in NOTES:
        sh(
            f"echo '{text}' > live/{category}.md",
            cwd=mount / SPACE,
            env={**mount.environment, "LIVEMEMFS_AGENT": "tester"},
        )
    sh(f"printf '%s' '{FACT}' > memories/fact-david", cwd=mount / SPACE)
    sh("mkdir plain && echo one > plain/list.txt", cwd=mount / SPACE)
    assert "Toulouse" in sh("cat 'search/Where does David live?.md'", cwd=mount / SPACE).stdout
    sh("touch .consolidate && cat .consolidate.wait", cwd=mount / SPACE)
    mount.uploaded()
    livememfs(f"backup create {SPACE}", env=mount.environment)
    mount.stop()

    tools, mounted = seen(by_tools), seen(by_mount)
    assert sorted(tools) == sorted(mounted)
    compared = [key for key in tools if any(one in key for one in COMPARED)]
    assert len(compared) > 10
    for key in compared:
        assert tools[key] == mounted[key], key
