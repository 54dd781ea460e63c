"""A mount that is limited by a token: what it does not allow is not there, or cannot be changed."""

from __future__ import annotations

import errno
import json
import os
import sqlite3
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from cloud import Bucket
from machine import SPACE, Mount, StartMount, detach, livememfs, mounted_at, sh
from mcp_client import over_stdio

CLI = f"{sys.executable} -m livememfs"
AGAIN = 5.0
"""How often a mount asks what its token is worth."""

MakeToken = Callable[..., str]


@pytest.fixture
def whole(mounted: Mount) -> Mount:
    """A mount without a token; beside `project` there is `other`, and a backup."""
    sh("mkdir other && echo 'of other' > other/live/decision.md", cwd=mounted.path)
    sh("echo 'of project' > live/decision.md && mkdir plain && echo x > plain/file", cwd=mounted / SPACE)
    mounted.uploaded()
    livememfs(f"backup create {SPACE}", env=mounted.environment)
    return mounted


@pytest.fixture
def token(whole: Mount) -> MakeToken:
    """`token("read", "project")`: the secret of a new token for some spaces."""
    names = iter(f"token-{number}" for number in range(9))

    def make(permissions: str, *spaces: str) -> str:
        of = " ".join(f"--space {space}" for space in spaces)
        done = livememfs(f"token create {next(names)} --permissions {permissions} {of} --json", env=whole.environment)
        secret: str = json.loads(done.stdout)["token"]
        return secret

    return make


@pytest.fixture
def limited(second_mount: StartMount, token: MakeToken) -> Callable[..., Mount]:
    """`limited("read", "project")`: the same bucket, mounted with such a token."""

    def start(permissions: str, *spaces: str) -> Mount:
        return second_mount({"LIVEMEMFS_TOKEN": token(permissions, *spaces)})

    return start


def test_spaces_outside_of_a_token_are_not_there(limited: Callable[..., Mount]) -> None:
    mount = limited("write", SPACE)

    assert sorted(os.listdir(mount.path)) == [".livememfs", SPACE, "search"]
    for path in ("other", "other/live", "_backups", "_system", "_system/tokens.json", f"{SPACE}/../other"):
        with pytest.raises(FileNotFoundError):
            (mount / path).stat()
    with pytest.raises(OSError) as caught:  # noqa: PT011 - the errno is looked at
        (mount / "third").mkdir()
    assert caught.value.errno == errno.EACCES
    assert "of project" in sh("cat live/*", cwd=mount / SPACE).stdout
    sh("echo 'by the token' > live/todo.md", cwd=mount / SPACE)
    mount.uploaded()
    assert 'agent: "token-0"' in sh("cat live/*_todo_*", cwd=mount / SPACE).stdout


def test_what_a_mount_tells_of_itself_is_of_its_own_spaces(limited: Callable[..., Mount]) -> None:
    mount = limited("read", SPACE)
    sh(f"ls -R {SPACE} >/dev/null; cat 'search/of other.md'", cwd=mount.path)

    told = sh(
        "cat .livememfs/status.json .livememfs/*.ndjson 'search/of other or of project.md'", cwd=mount.path
    ).stdout
    assert "of project" in told
    assert "other/live" not in told
    assert json.loads((mount / ".livememfs/status.json").read_text())["statistics"]["tokens"]["good"] >= 1


def test_the_local_state_of_a_wider_mount_is_gone_on_with_and_not_shown(
    second_mount: StartMount, token: MakeToken, tmp_path: Path
) -> None:
    """What it had accepted is uploaded, whoever mounts next; what a crash left open is for whoever sees its space."""
    cache = {"LIVEMEMFS_CACHE": str(tmp_path / "one-cache")}
    wide = second_mount(cache, name="wide")
    drafts = [wide / f"{space}/draft-{number}" for number, space in enumerate(("other", SPACE))]
    opened = [os.open(path, os.O_WRONLY | os.O_CREAT) for path in drafts]
    for one in opened:
        os.write(one, b"half a thought")
    state = tmp_path / "one-cache"
    _wait_for(lambda: len(_drafts_below(state)) == len(drafts))
    wide.kill()
    detach(wide.path)
    for one in opened:
        with suppress(OSError):
            os.close(one)

    mount = second_mount({**cache, "LIVEMEMFS_TOKEN": token("write", SPACE)}, name="narrow")
    (found,) = os.listdir(mount / ".livememfs/recovered")
    assert found.endswith(f"_{SPACE}__draft-1")
    assert os.getxattr(mount / ".livememfs/recovered" / found, "user.livememfs.path") == f"{SPACE}/draft-1".encode()
    mount.uploaded()
    with pytest.raises(FileNotFoundError):
        (mount / ".livememfs/recovered" / found.replace(f"{SPACE}__draft-1", "other__draft-0")).unlink()
    assert len(_recovered_below(state)) == len(drafts)
    told = (mount / ".livememfs/status.json").read_text()
    assert "draft" not in told


def _drafts_below(cache: Path) -> list[Any]:
    return _rows(cache, "SELECT path FROM draft")


def _recovered_below(cache: Path) -> list[Any]:
    return _rows(cache, "SELECT path FROM recovered")


def _rows(cache: Path, query: str) -> list[Any]:
    """What the state of the only bucket in a cache has."""
    (path,) = cache.glob("*/state.db")
    with closing(sqlite3.connect(path)) as db:
        return db.execute(query).fetchall()


def _wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_link_leads_out_of_no_space(limited: Callable[..., Mount]) -> None:
    """Others follow it. `mv` of a folder to higher up makes its links anew, which asks for each."""
    mount = limited("write", SPACE)
    sh(
        "mkdir -p plain/deeper && ln -s ../file plain/deeper/fine && ln -s ../../plain plain/deeper/up",
        cwd=mount / SPACE,
    )

    for target in ("/etc/passwd", "../other/live", "plain/../../other"):
        assert "Operation not permitted" in sh(f"ln -s {target} out", cwd=mount / SPACE, status=1).stderr
    assert "Operation not permitted" in sh("mv plain/deeper/up plain/up", cwd=mount / SPACE, status=1).stderr
    sh("rm plain/deeper/up; mv plain/deeper .; cat deeper/fine || true; test -L deeper/fine", cwd=mount / SPACE)
    lines = [json.loads(line) for line in (mount / ".livememfs/errors.ndjson").read_text().splitlines()]
    assert next((line["errno"], line["path"]) for line in lines if "leads out" in line["what"]) == (
        "EPERM",
        f"{SPACE}/out",
    )
    assert all("relative" in line["what_to_do"] for line in lines if "leads out" in line["what"])


CHANGES = {
    "note": "echo x > live/todo.md",
    "memory": "echo x > memories/david",
    "edit": "echo more >> live/$(ls live | head -1)",
    "remove": "rm live/*",
    "plain": "echo y > plain/other",
    "append": "echo y >> plain/file",
    "truncate": ": > plain/file",
    "mkdir": "mkdir plain/deeper",
    "rmdir": "mkdir -p nothing; rmdir plain",
    "rename": "mv plain/file plain/moved",
    "link": "ln -s file plain/link",
    "chmod": "chmod 600 plain/file",
    "touch": "touch plain/file",
    "xattr": f'{sys.executable} -c \'import os; os.setxattr("plain/file", "user.x", b"y")\'',
    "consolidate": "touch .consolidate",
    "digest": "touch .digest",
    "rules": "echo r > _rules.md",
    "hook": "echo '{}' > .hooks/PostToolUse",
    "session": "mkdir sessions/s",
    "space": "mkdir ../third",
}


def test_who_may_only_read_changes_nothing_by_any_way(
    whole: Mount, limited: Callable[..., Mount], bucket: Bucket
) -> None:
    """Each with EROFS, which every program knows how to say."""
    mount = limited("read")
    before = {item["Key"]: item["ETag"] for item in bucket.client.list_objects_v2(Bucket=bucket.name)["Contents"]}

    for name, command in CHANGES.items():
        done = sh(f"{{ {command}; }} 2>&1", cwd=mount / SPACE, status=None)
        assert done.returncode != 0, name
        assert "Read-only file system" in done.stdout, (name, done.stdout)
    after = {item["Key"]: item["ETag"] for item in bucket.client.list_objects_v2(Bucket=bucket.name)["Contents"]}
    changed = {key for key in {*before, *after} if before.get(key) != after.get(key)}
    assert {key for key in changed if not key.startswith("_system/")} == set()
    told = sh("exec 3<>.recall; echo 'what of project?' >&3; cat <&3", cwd=mount / SPACE)
    assert told.returncode == 0  # it asks, and changes nothing


def test_an_administrator_sees_the_backups(limited: Callable[..., Mount]) -> None:
    assert "_backups" in os.listdir(limited("admin").path)


def test_a_token_that_is_taken_away_closes_the_mount(whole: Mount, limited: Callable[..., Mount]) -> None:
    mount = limited("write")
    mount.expect_log("the token is good no more")
    opened = os.open(mount / SPACE / "plain/file", os.O_WRONLY | os.O_APPEND)
    try:
        livememfs("token revoke token-0", env=whole.environment)
        deadline = time.monotonic() + AGAIN * 2 + 5
        while time.monotonic() < deadline and _is_open(mount.path):
            time.sleep(0.1)
        for path in ("", SPACE, f"{SPACE}/plain/file", ".livememfs/status.json"):
            assert not _is_open(mount.path / path)
        with pytest.raises(PermissionError):
            os.write(opened, b"x")
    finally:
        os.close(opened)


def _is_open(path: Path) -> bool:
    """Whether a program that opens a path anew gets anything; what the kernel remembers it need not ask for."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except (PermissionError, FileNotFoundError):
        return False
    try:
        os.listdir(descriptor) if stat.S_ISDIR(os.fstat(descriptor).st_mode) else os.pread(descriptor, 1, 0)
    except PermissionError:
        return False
    finally:
        os.close(descriptor)
    return True


def test_a_token_that_is_not_good_mounts_nothing(whole: Mount, tmp_path: Path) -> None:
    (tmp_path / "third").mkdir()

    done = sh(
        f"timeout 60 {CLI} mount {tmp_path}/third --token lm_{'x' * 43}", env=whole.environment, status=1, timeout=70
    )
    assert "a valid token is needed" in done.stderr
    assert "lm_xxx" not in done.stderr
    assert not Path(tmp_path / "third/.livememfs").exists()


def test_the_secret_is_in_no_argument_of_the_daemon(whole: Mount, token: MakeToken, tmp_path: Path) -> None:
    """Everybody on a machine can read the arguments of everybody's processes."""
    secret = token("read")
    place = tmp_path / "third"
    place.mkdir()
    env = {**whole.environment, "LIVEMEMFS_CACHE": str(tmp_path / "third-cache")}
    try:
        sh(f"timeout 60 {CLI} mount {place} --token {secret}", env=env, timeout=70)
        pid = json.loads(livememfs(f"status {place} --json", env=env).stdout)
        seen = [
            path.read_bytes()
            for path in Path("/proc").glob("[0-9]*/cmdline")
            if path.exists() and "self" not in str(path)
        ]
        assert pid
        assert any(str(place).encode() in one for one in seen)
        assert not [one for one in seen if secret.encode() in one]
        with pytest.raises(OSError):  # noqa: PT011 - it is limited all the same
            (place / SPACE / "live/x.md").write_text("x")
    finally:
        livememfs(f"umount {place}", env=env, status=None)


def test_the_secret_does_not_stay_in_the_arguments_of_a_server(whole: Mount, token: MakeToken) -> None:
    """The token is good all the same, and standard input is as it was."""
    with _in_the_foreground(whole, "mcp", "--space", SPACE, "--token", token("read", SPACE)) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(HELLO)
        process.stdin.flush()
        assert b"serverInfo" in process.stdout.readline()


def test_the_secret_does_not_stay_in_the_arguments_of_a_mount(whole: Mount, token: MakeToken, tmp_path: Path) -> None:
    place = tmp_path / "third"
    place.mkdir()
    cache = f"--cache={tmp_path}/third-cache"
    with _in_the_foreground(whole, "mount", "-f", str(place), f"--token={token('read', SPACE)}", cache) as process:
        try:
            _wait_for(lambda: mounted_at(place))
            assert sorted(os.listdir(place)) == [".livememfs", SPACE, "search"]
        finally:
            process.terminate()
            process.wait(30)
            detach(place)


@contextmanager
def _in_the_foreground(mount: Mount, *words: str) -> Iterator[subprocess.Popen[bytes]]:
    """A command whose arguments are what they were without the token, soon, for whoever looks."""
    pipe = subprocess.PIPE
    arguments = [sys.executable, "-m", "livememfs", *words]
    process = subprocess.Popen(arguments, env=mount.environment, cwd="/", stdin=pipe, stdout=pipe, stderr=pipe)
    try:
        # A process that is being replaced has no arguments for a moment.
        _wait_for(lambda: b"lm_" not in (_as_anybody(f"/proc/{process.pid}/cmdline") or b"lm_"))
        left = [word.encode() for word in arguments[1:] if "--token" not in word and not word.startswith("lm_")]
        assert _as_anybody(f"/proc/{process.pid}/cmdline").split(b"\0")[1:-1] == left
        assert _as_anybody(f"/proc/{process.pid}/environ") == b""
        yield process
    finally:
        process.kill()
        process.communicate()


HELLO = (
    b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": "2025-06-18",'
    b' "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}}}\n'
)


def _as_anybody(path: str) -> bytes:
    """What another user of the machine reads; nothing where that is not allowed."""
    return subprocess.run(["cat", path], user=65534, group=65534, extra_groups=[], capture_output=True).stdout


def test_the_socket_of_a_mount_is_its_users_alone_and_as_limited(limited: Callable[..., Mount]) -> None:
    mount = limited("read", SPACE)
    sockets = list(Path(mount.environment["XDG_STATE_HOME"]).rglob("*.sock"))
    assert [stat.S_IMODE(one.stat().st_mode) for one in sockets] == [0o600]

    async def ask() -> None:
        async with over_stdio(mount.environment, "--space", str(mount / SPACE)) as client:
            assert [one["space_id"] for one in (await client.call("space_list"))["spaces"]] == [SPACE]
            assert "no permission to write" in await client.refused("live_note", content="x")
            assert "there is no other" in await client.refused("live_read", space_id="other")
            assert "no permission to admin" in await client.refused("admin_list_tokens")

    trio.run(ask)
