"""Broken set-ups, each with the one thing that `livememfs doctor` says to do next. What can be broken is broken."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import boto3
import broken
import pytest
from commandline import Asks, Cli, Ended

from livememfs.agents.install import plan
from livememfs.agents.install.table import AGENTS
from livememfs.agents.install.tools import AgentName, WantedFile
from livememfs.cli.checks import Check, around, machine, next_step
from livememfs.cli.mounting import mounts
from livememfs.cli.mounting.mounts import MountRecord
from livememfs.testing.llm import Scripted, ScriptedLLM
from livememfs.tree.exchange import PROBE

HOOKS = AGENTS[AgentName.CLAUDE_CODE].hooks
EVENTS = tuple(HOOKS.events if HOOKS is not None else ())

pytestmark = pytest.mark.usefixtures("nothing_mounted", "can_mount")


@pytest.fixture(autouse=True)
def words_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No model for meanings, which takes a second to load, and a current directory that is no project."""
    monkeypatch.setenv("LIVEMEMFS_EMBED_MODEL", "none")
    monkeypatch.chdir(tmp_path)


def advice(ended: Ended, verdict: str, name: str) -> str:
    """What is to be done next, which has to be what the check `name` says with that verdict."""
    checks = {check["name"]: check for check in ended.json["checks"]}
    assert checks[name]["verdict"] == verdict, checks[name]
    assert ended.code == (1 if verdict == "fail" else 0)
    assert ended.json["next"].startswith(f"{name}: ")
    return str(ended.json["next"]).removeprefix(f"{name}: ")


# --- what comes first --------------------------------------------------------------------------------------------


def test_the_next_thing_is_the_first_failure_else_the_first_warning_else_to_mount(cli: Cli) -> None:
    fine, odd, bad = Check("a", "ok", ""), Check("b", "warn", "odd", "mind it"), Check("c", "fail", "bad", "mend it")

    assert next_step([fine, odd, bad, Check("d", "fail", "worse", "later")]) == "c: mend it"
    assert next_step([fine, odd]) == "b: mind it"
    assert next_step([fine]) == ""
    ended = cli("doctor")
    assert ended.out.splitlines()[-1] == "next: livememfs mount DIRECTORY"


# --- settings ----------------------------------------------------------------------------------------------------


def test_a_misspelt_setting(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMEMFS_AGNET", "x")

    assert "did you mean LIVEMEMFS_AGENT?" in advice(cli("doctor", "--json"), "fail", "settings")


def test_a_configuration_file_with_secrets_that_others_can_read(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "c.toml"
    file.write_text('llmaas_api_key = "sk-shown-to-all"\n')
    file.chmod(0o644)

    ended = cli("doctor", "--json", "--config", str(file))

    assert advice(ended, "warn", "secrets") == f"chmod 600 {file}"
    assert "sk-shown-to-all" not in ended.out
    file.chmod(0o600)
    assert cli("doctor", "--json", "--config", str(file)).json["next"] == "livememfs mount DIRECTORY"


def test_a_services_secrets_that_others_can_read(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "config" / "livememfs" / "env"
    file.parent.mkdir(parents=True)
    file.write_text("S3_SECRET_ACCESS_KEY=sesame\n")
    file.chmod(0o640)

    assert advice(cli("doctor", "--json"), "warn", "secrets") == f"chmod 600 {file}"


# --- the machine -------------------------------------------------------------------------------------------------


def test_no_device(tmp_path: Path) -> None:
    ended = broken.doctor_where("rm /dev/fuse", tmp_path)

    assert "modprobe fuse" in advice(ended, "fail", "/dev/fuse")
    assert "--device /dev/fuse" in ended.json["next"]


def test_a_device_that_may_not_be_opened(tmp_path: Path) -> None:
    ended = broken.doctor_where("chmod 600 /dev/fuse; chown 1 /dev/fuse", tmp_path)

    assert "let this user read and write /dev/fuse" in advice(ended, "fail", "/dev/fuse")


def test_no_fusermount(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "apt-get install fuse3" in advice(cli("doctor", "--json"), "fail", "fusermount3")


def test_a_kernel_without_fuse_or_too_old(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "filesystems").write_text("nodev\tproc\n\text4\n")
    monkeypatch.setattr("livememfs.cli.checks.machine.DEVICE", tmp_path / "no-device")

    assert machine._kernel(tmp_path / "filesystems").advice == "load the kernel module: modprobe fuse"
    monkeypatch.setattr("platform.release", lambda: "4.19.0-amd64")
    assert machine._kernel().advice == "use Linux 5.3 or newer"


def test_others_are_to_be_let_in_and_the_system_does_not_allow_it(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("livememfs.cli.checks.machine.FUSE_CONF", tmp_path / "fuse.conf")
    monkeypatch.setattr("os.geteuid", lambda: 1000)  # root needs no leave
    monkeypatch.setenv("LIVEMEMFS_ALLOW_OTHER", "true")

    what_to_do = advice(cli("doctor", "--json"), "fail", "user_allow_other")
    assert what_to_do == f"add user_allow_other to {tmp_path}/fuse.conf"


def test_a_cache_that_cannot_be_written_to(tmp_path: Path) -> None:
    cache = tmp_path / "no-entry"
    cache.mkdir(mode=0o500)

    ended = broken.doctor_where("", tmp_path, LIVEMEMFS_CACHE=str(cache / "buckets"))

    assert advice(ended, "fail", "permissions") == (
        f"let this user write to {cache}, or set LIVEMEMFS_CACHE to another folder"
    )


def test_a_link_where_the_cache_belongs(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that the user named may be a link of theirs."""
    (tmp_path / "cache/livememfs").mkdir(parents=True)
    (tmp_path / "cache/livememfs/buckets").symlink_to(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("LIVEMEMFS_CACHE", raising=False)

    ended = cli("doctor", "--json")

    assert advice(ended, "fail", "permissions").startswith("move it away, or name another folder with LIVEMEMFS_CACHE")
    assert "buckets: it is a symbolic link" in ended.out
    assert cli("space", "list").code == 1

    monkeypatch.setenv("LIVEMEMFS_CACHE", str(tmp_path / "cache/livememfs/buckets"))
    assert cli("doctor", "--json").code == cli("space", "list").code == 0


@pytest.mark.parametrize(("size", "verdict"), [("8m", "fail"), ("64m", "warn")])
def test_a_disk_that_is_full_or_nearly(tmp_path: Path, size: str, verdict: str) -> None:
    (tmp_path / "small").mkdir()

    ended = broken.doctor_where(
        f"mount -t tmpfs -o size={size} none {tmp_path}/small", tmp_path, LIVEMEMFS_CACHE=f"{tmp_path}/small/buckets"
    )

    assert f"free disk space at {tmp_path}/small" in advice(ended, verdict, "disk")


# --- mounts and agents -------------------------------------------------------------------------------------------


def test_a_mount_that_ended_badly(cli: Cli, tmp_path: Path) -> None:
    place = tmp_path / "mnt"
    MountRecord(mountpoint=str(place), pid=1, started=0, since="", store="", problem="the store went away").write()

    ended = cli("doctor", "--json")

    assert f"`livememfs umount {place}`" in advice(ended, "warn", "mounts")
    assert "the store went away" in ended.out


@pytest.fixture
def hooked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Path], None]:
    """`hooked(mount)`: have the current directory's agent use the space `project` of a mount."""

    def install(mount: Path) -> None:
        here = tmp_path / "my work"
        here.mkdir()
        plan.installation(AgentName.CLAUDE_CODE, here, mount, WantedFile(space=f"{mount}/project")).carry_out()
        monkeypatch.chdir(here)

    return install


def test_hooks_of_a_mount_that_is_gone(cli: Cli, hooked: Callable[[Path], None], tmp_path: Path) -> None:
    hooked(tmp_path / "mnt")

    what_to_do = advice(cli("doctor", "--json"), "warn", "hooks")

    assert f"livememfs mount {tmp_path}/mnt" in what_to_do
    assert f"livememfs uninstall claude-code --project '{tmp_path}/my work'" in what_to_do


async def test_hooks_of_a_space_that_is_gone(
    hooked: Callable[[Path], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "mnt"
    (place / ".livememfs").mkdir(parents=True)
    (place / ".livememfs" / "status.json").write_text("{}")
    monkeypatch.setattr(mounts, "kernel_mounts", lambda: [str(place)])
    hooked(place)

    gone = (await around.checks(tmp_path / "my work"))[1]
    (place / "project").mkdir()
    (place / "project" / "_meta.json").write_text("{}")
    (place / "project" / ".hooks").mkdir()
    for event in EVENTS:  # an ordinary file has one place for what is written and what is read
        (place / "project" / ".hooks" / f"claude.{event}").write_bytes(PROBE * 2)
    there = (await around.checks(tmp_path / "my work"))[1]
    (place / "project" / ".hooks" / "claude.Stop").unlink()
    broken_hook = (await around.checks(tmp_path / "my work"))[1]

    assert (gone.verdict, there.verdict, broken_hook.verdict) == ("warn", "ok", "fail")
    assert f"mkdir {place}/project" in gone.advice
    assert f"{len(EVENTS)} answer" in there.found
    assert "nothing answers claude.Stop" in broken_hook.found


@pytest.mark.parametrize(("program", "reason"), [("true", "it prints nothing"), ("echo no >&2; exit 3", "no")])
async def test_a_server_that_does_not_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, reason: str
) -> None:
    command = tmp_path / "livememfs"
    command.write_text(f"#!/bin/sh\n{program}\n")
    command.chmod(0o700)
    monkeypatch.setattr(mounts, "kernel_mounts", list)
    (tmp_path / "work").mkdir()
    wanted = WantedFile(space=f"{tmp_path}/mnt/project", server=(str(command),))
    plan.installation(AgentName.CLAUDE_CODE, tmp_path / "work", tmp_path / "mnt", wanted).carry_out()

    server = (await around.checks(tmp_path / "work"))[2]
    settings = tmp_path / "work/.claude/settings.local.json"
    settings.write_text(f"// mine\n{settings.read_text()}")
    unread = (await around.checks(tmp_path / "work"))[1]

    assert (server.name, server.verdict) == ("MCP server", "fail")
    assert server.found == f"claude-code in {tmp_path}/work: {reason}"
    assert (unread.verdict, "with comments" in unread.found) == ("fail", True)


# --- the store ---------------------------------------------------------------------------------------------------


def test_a_folder_that_cannot_be_written_to(tmp_path: Path) -> None:
    folder = tmp_path / "no-entry"
    folder.mkdir(mode=0o500)

    what_to_do = advice(broken.doctor_where("", tmp_path, LIVEMEMFS_STORE=str(folder)), "fail", "store")

    assert f"let this user write to {folder}" in what_to_do
    assert "S3_" not in what_to_do


@pytest.mark.parametrize(
    ("mode", "home", "warns"), [(0o755, 0o755, True), (0o770, 0o755, False), (0o755, 0o750, False)]
)
def test_a_folder_that_every_user_can_look_into(cli: Cli, mode: int, home: int, warns: bool) -> None:
    """One that the user named is left as it is; a team may share it, and a home may keep everybody out of it."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name, "team")
        folder.mkdir()
        folder.chmod(mode)
        Path(name).chmod(home)

        ended = cli("doctor", "--json", "--store", str(folder))

        assert folder.stat().st_mode & 0o777 == mode
        if warns:
            what_to_do = f"chmod 700 {folder}, or 770 to share it with a group alone"
            assert advice(ended, "warn", "store, others") == what_to_do
        else:
            assert "store, others" not in ended.out


def test_a_default_store_that_is_another_users(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "share/livememfs").mkdir(parents=True)
    (tmp_path / "share/livememfs/store").symlink_to(tmp_path)
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "share"))
    monkeypatch.delenv("LIVEMEMFS_STORE")

    assert "LIVEMEMFS_STORE" in advice(cli("doctor", "--json"), "fail", "store")


S3 = Callable[..., None]


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> S3:
    """`bucket(endpoint)`: the settings for the bucket there, which is made; `made=False` leaves that out."""

    def use(endpoint: str, *, made: bool = True, key: str = broken.KEY, acl: Any = "private") -> None:
        settings = {"ENDPOINT_URL": endpoint, "BUCKET_NAME": broken.BUCKET}
        settings |= {"ACCESS_KEY_ID": key, "SECRET_ACCESS_KEY": broken.SECRET}
        for name, value in settings.items():
            monkeypatch.setenv(f"S3_{name}", value)
        client = boto3.client(
            "s3",
            endpoint_url=endpoint,
            aws_access_key_id=broken.KEY,
            aws_secret_access_key=broken.SECRET,
            region_name="us-east-1",
        )
        if made:
            client.create_bucket(Bucket=broken.BUCKET, ACL=acl)
        client.close()

    return use


def test_a_bucket_that_is_fine(cli: Cli, bucket: S3) -> None:
    with broken.s3() as endpoint:
        bucket(endpoint)
        ended = cli("doctor", "--json")

    assert {check["verdict"] for check in ended.json["checks"]} == {"ok"}, ended.out


@pytest.mark.parametrize(
    ("rights", "who"), [("public-read", "everybody"), ("authenticated-read", "everybody with an AWS account")]
)
def test_a_bucket_that_lets_strangers_in(cli: Cli, bucket: S3, rights: Any, who: str) -> None:
    with broken.s3() as endpoint:
        bucket(endpoint, acl=rights)
        ended = cli("doctor", "--json")

    (others,) = [check for check in ended.json["checks"] if check["name"] == "store, others"]
    assert (others["verdict"], others["found"]) == ("warn", f"{who} can look into the bucket")
    assert advice(ended, "warn", "store, others").endswith(f"the policy of {broken.BUCKET}")


def test_a_bucket_that_is_not_there(cli: Cli, bucket: S3) -> None:
    with broken.s3() as endpoint:
        bucket(endpoint, made=False)
        what_to_do = advice(cli("doctor", "--json", "--bucket", "misspelt"), "fail", "store")

    assert what_to_do == "create the bucket misspelt, or correct S3_BUCKET_NAME"


def test_a_key_that_is_wrong(cli: Cli, bucket: S3) -> None:
    with broken.s3() as endpoint:
        bucket(endpoint, key="a-wrong-key")
        ended = cli("doctor", "--json")

    assert "S3_ACCESS_KEY_ID" in advice(ended, "fail", "store")
    assert broken.SECRET not in ended.out


def test_an_endpoint_that_is_not_there(cli: Cli, bucket: S3, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMEMFS_OP_TIMEOUT", "1")
    bucket("http://127.0.0.1:9", made=False)

    assert "S3_ENDPOINT_URL" in advice(cli("doctor", "--json"), "fail", "store")


def test_a_store_without_conditions(cli: Cli, bucket: S3) -> None:
    with broken.s3(conditions=False) as endpoint:
        bucket(endpoint)
        what_to_do = advice(cli("doctor", "--json"), "warn", "store, promises")

    assert "If-None-Match on PUT is not honoured" in what_to_do


@pytest.mark.parametrize(
    ("minutes", "verdict", "text"),
    [(-20, "fail", "20 minutes ahead"), (20, "fail", "20 minutes behind"), (3, "warn", "3 minutes behind")],
)
def test_a_clock_that_is_wrong(cli: Cli, bucket: S3, minutes: int, verdict: str, text: str) -> None:
    with broken.s3(ahead=timedelta(minutes=minutes)) as endpoint:
        bucket(endpoint)
        ended = cli("doctor", "--json")

    assert "timedatectl" in advice(ended, verdict, "clock")
    assert text in ended.out


def test_a_clock_for_which_every_request_is_refused(cli: Cli, bucket: S3) -> None:
    with broken.s3(ahead=timedelta(minutes=20), strict=True) as endpoint:
        bucket(endpoint, made=False)
        ended = cli("doctor", "--json")

    assert "timedatectl" in advice(ended, "fail", "clock")
    assert "S3_ACCESS_KEY_ID" not in ended.json["next"]


# --- the models --------------------------------------------------------------------------------------------------


def test_a_model_key_that_is_wrong(cli: Cli, asks: Asks) -> None:
    with ScriptedLLM('{"ok": true}', key="sk-right") as llm:
        asks(llm.url, key="sk-wrong-one")
        ended = cli("doctor", "--json")

    assert advice(ended, "fail", "model") == "correct LLMAAS_API_KEY"
    assert "401" in ended.out
    assert "sk-wrong-one" not in ended.out


def test_a_model_that_nobody_knows(cli: Cli, asks: Asks) -> None:
    with ScriptedLLM(Scripted("no such model", status=404)) as llm:
        asks(llm.url, model="misspelt")
        what_to_do = advice(cli("doctor", "--json"), "fail", "model")

    assert what_to_do.startswith("correct LLMAAS_MODEL")


def test_a_model_that_cannot_be_reached(cli: Cli, asks: Asks) -> None:
    asks("http://127.0.0.1:9/v1")

    assert "http://127.0.0.1:9/v1 (LLMAAS_API_URL)" in advice(cli("doctor", "--json"), "fail", "model")


def test_a_program_that_is_not_signed_in(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMAAS_COMMAND", "sh -c 'echo Please run /login >&2; exit 1'")

    ended = cli("doctor", "--json")

    what_to_do = "run the program of LLMAAS_COMMAND in a terminal: it must be there and signed in"
    assert advice(ended, "fail", "model") == what_to_do
    assert "Please run /login" in ended.out


def test_a_program_that_answers(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMAAS_COMMAND", "echo '{}'")

    fine = {"name": "model", "verdict": "ok", "found": "command:echo", "advice": ""}
    assert fine in cli("doctor", "--json").json["checks"]


def test_an_observing_model_that_nobody_knows(cli: Cli, asks: Asks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMEMFS_OBSERVE_MODEL", "misspelt")
    with ScriptedLLM('{"ok": true}', Scripted("no such model", status=404)) as llm:
        asks(llm.url)
        what_to_do = advice(cli("doctor", "--json"), "fail", "model, observing")

    assert what_to_do.startswith("correct LIVEMEMFS_OBSERVE_MODEL")


def test_an_endpoint_for_meanings_that_is_down(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIVEMEMFS_EMBED_MODEL", "some-model")
    monkeypatch.setenv("LIVEMEMFS_EMBED_URL", "http://127.0.0.1:9/v1")

    assert "LIVEMEMFS_EMBED_URL" in advice(cli("doctor", "--json"), "warn", "embeddings")
