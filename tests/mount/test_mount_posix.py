"""Owners, modes and kinds of files: a mount answers as the local disk does, for root and for two other users."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from benchlib.servers import s3_server
from cloud import Bucket
from machine import LIMIT, LONG, SPACE, Mount, sh
from posix_matrix import ANNA, BERT, SHARED, cases, users

EACH = {"folder": 31, "moto": 97} | ({"seaweedfs": 97} if LONG else {})
"""Of each store one of so many cases is tried, with LIVEMEMFS_TEST_LONG=1 all of them. None of these has a factor in
common with the turns of `cases`, so that each call, user and kind comes."""


@pytest.fixture
def room() -> Iterator[Path]:
    """A folder that everybody can walk through."""
    made = Path(tempfile.mkdtemp(prefix="livememfs-posix-", dir="/tmp"))
    made.chmod(0o755)
    yield made
    shutil.rmtree(made)


@pytest.fixture
def shared(room: Path) -> Iterator[Mount]:
    """A mount that lets others in, of a folder, with one space."""
    store = {"LIVEMEMFS_STORE": str(room / "store")}
    mount = Mount(room / "mnt", room / "home", store, "--allow-other", limit=2_400 if LONG else LIMIT)
    yield from _with_space(mount)


@pytest.fixture
def shared_s3(room: Path, bucket: Bucket) -> Iterator[Mount]:
    """The same of a bucket."""
    yield from _with_space(Mount(room / "mnt", room / "home", bucket.environment(), "--allow-other"))


def _with_space(mount: Mount) -> Iterator[Mount]:
    with mount:
        sh(f"mkdir {SPACE}", cwd=mount.path)
        yield mount


@pytest.fixture(params=list(EACH))
def store(request: pytest.FixtureRequest, room: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """A store by its name, and the settings that lead to it."""
    if request.param == "folder":
        yield request.param, {"LIVEMEMFS_STORE": str(room / "store")}
    elif request.param == "moto":
        yield request.param, request.getfixturevalue("bucket").environment()
    else:
        with s3_server("seaweedfs", room) as server:
            yield request.param, server.environment()


@pytest.fixture
def mounted(store: tuple[str, dict[str, str]], room: Path) -> Iterator[Mount]:
    yield from _with_space(Mount(room / "mnt", room / "home", store[1], "--allow-other"))


def test_each_call_is_answered_as_on_a_local_disk(
    store: tuple[str, dict[str, str]], mounted: Mount, room: Path
) -> None:
    there, reference = mounted / SPACE / "rooms", room / "reference"
    there.mkdir()
    reference.mkdir()
    different = []
    with users() as who:
        for number, case in enumerate(cases()):
            if not LONG and number % EACH[store[0]]:
                continue
            expected = case.outcome(who, reference / str(number))
            answered = case.outcome(who, there / str(number))
            if answered != expected:
                differs = {name: (value, answered[name]) for name, value in expected.items() if value != answered[name]}
                different.append((case, differs))

    assert different == []


def test_owners_modes_and_kinds_are_there_again_from_the_bucket_alone(
    shared_s3: Mount, bucket: Bucket, room: Path
) -> None:
    rooms = shared_s3 / SPACE / "rooms"
    rooms.mkdir()
    names = []
    for number, case in enumerate(cases()):
        if number % 97 == 0:
            case.prepared(rooms / str(number))
            names.append(str(number))
    sh("touch -hd 2001-02-03T04:05:06.789 */thing; touch -had 2002-02-02 */thing", cwd=rooms)
    seen = sh("stat -c '%n %A %u %g %t %T %s %X %Y' */thing */other*", cwd=rooms).stdout
    shared_s3.uploaded()

    assert len(names) > 30
    with Mount(room / "other", room / "another home", bucket.environment(), "--allow-other") as other:
        look = "stat -c '%n %A %u %g %t %T %s %X %Y' */thing */other*"
        assert sh(look, cwd=other / SPACE / "rooms").stdout == seen


def test_the_agent_of_another_user_keeps_its_notes_and_reads_what_the_group_may(shared: Mount) -> None:
    """Bert's agent is let into one space by `chgrp` and `chmod`, and into no other."""
    closed = shared / "private"
    closed.mkdir(mode=0o700)
    (closed / "live" / "secret").write_text("nobody's business")
    space = shared / SPACE
    os.chown(space, -1, SHARED)
    space.chmod(0o3770)
    (space / "live" / "root").write_text("by root, for the group")
    with users() as who:
        anna, bert = who[ANNA], who[BERT]
        assert anna.writes(space / "live" / "anna", "by Anna") == "ok"
        assert bert.writes(space / "live" / "bert", "by Bert") == "ok"
        assert bert.writes(space / "live" / "bert", "\nand more") == "ok"
        assert bert.text_of(space / "live" / "bert").endswith("by Bert\nand more")
        assert "by root" in bert.text_of(space / "live" / "root")
        assert bert.writes(space / "live" / "root", "taken over") == "EACCES"
        assert bert.does("unlink", space / "live" / "anna") == "EPERM"
        assert bert.does("unlink", space / "live" / "bert") == "ok"
        assert bert.does("read and write", space / ".recall") == "ok"
        assert bert.does("list", closed) == "EACCES"
        assert bert.does("read", closed / "live" / "secret") == "EACCES"
        assert bert.writes(closed / "live" / "bert", "let me in") == "EACCES"

    assert 'agent: "nobody"' in (space / "live" / "anna").read_text()
    assert (space / "live" / "anna").stat().st_gid == SHARED


def test_what_another_program_has_put_belongs_to_the_owner_of_the_space_in_a_listing_too(
    shared: Mount, room: Path
) -> None:
    """Both before anybody has looked at a file and after; and the kernel may keep what a listing says."""
    os.chown(shared / SPACE, ANNA, SHARED)
    shared.uploaded()
    store = room / "store"
    (store / SPACE / "folder").mkdir()
    for number in range(300):  # of so many no metadata are asked for
        (store / SPACE / "folder" / f"{number}").write_bytes(b"x")
    with Mount(room / "other", room / "another home", {"LIVEMEMFS_STORE": str(store)}, "--allow-other") as other:
        listed = sh("ls -ln | awk 'NR > 1 {print $3, $4}' | sort -u", cwd=other / SPACE / "folder").stdout
        assert listed == f"{ANNA} {SHARED}\n"
        assert sh("stat -c '%u %g' 7", cwd=other / SPACE / "folder").stdout == listed


def test_a_stranger_to_the_group_gets_nothing_of_a_space_that_is_closed(shared: Mount) -> None:
    space = shared / SPACE
    space.chmod(0o770)
    with users() as who:
        for path in (space, space / "live", space / ".hooks", space / "bank"):
            assert who[ANNA].does("list", path) == "EACCES"
        for name in (".consolidate", ".recall", "README.md", "context.md"):
            assert who[ANNA].does("read", space / name) == "EACCES"


def test_a_mount_with_uid_and_gid_shows_and_keeps_one_user(room: Path) -> None:
    env = {"LIVEMEMFS_STORE": str(room / "store")}
    with Mount(room / "mnt", room / "home", env, "--allow-other") as by_number:
        sh(f"mkdir {SPACE}; echo one > {SPACE}/file; chown {ANNA}:{SHARED} {SPACE}/file", cwd=by_number.path)
        by_number.uploaded()
    with Mount(room / "mnt", room / "home", env, "--uid", "1234", "--gid", "99") as mapped:
        assert sh(f"stat -c %u:%g . {SPACE} {SPACE}/file {SPACE}/live", cwd=mapped.path).stdout == "1234:99\n" * 4
        sh(f"echo two >> {SPACE}/file; chown {BERT} {SPACE}/file; echo > {SPACE}/new", cwd=mapped.path)
        mapped.uploaded()
    with Mount(room / "mnt", room / "home", env, "--allow-other") as by_number:
        assert sh(f"stat -c %u:%g {SPACE}/file {SPACE}/new", cwd=by_number.path).stdout == f"{ANNA}:{SHARED}\n0:0\n"


def test_times_are_those_of_a_local_disk(shared: Mount, room: Path) -> None:
    """Set times stay, also of links; a change of mode, owner or times moves `ctime` alone; reading moves nothing."""
    path, link = shared / SPACE / "file", shared / SPACE / "link"
    path.write_text("text")
    link.symlink_to("nowhere")
    for each in (path, link):
        before = each.lstat().st_ctime_ns
        os.utime(each, ns=(1_000, 2_000), follow_symlinks=False)
        assert (each.lstat().st_atime_ns, each.lstat().st_mtime_ns) == (1_000, 2_000)
        assert each.lstat().st_ctime_ns > before
    was = path.stat().st_ctime_ns
    path.chmod(0o600)
    os.chown(path, ANNA, SHARED)
    assert path.read_text() == "text"
    assert (path.stat().st_atime_ns, path.stat().st_mtime_ns) == (1_000, 2_000)
    assert path.stat().st_ctime_ns > was
    path.write_text("other")
    assert (path.stat().st_atime_ns, path.stat().st_mtime_ns) == (1_000, path.stat().st_ctime_ns)


@pytest.mark.timeout(2_400 if LONG else 300)
def test_rsync_carries_everything_in_and_out(shared: Mount, room: Path) -> None:
    """Owners, modes, times, attributes and kinds; LIVEMEMFS_TEST_LONG=1 with 5,000 files more."""
    source, there, back = room / "source", shared / SPACE / "tree", room / "back"
    source.mkdir()
    for number in range(5_000 if LONG else 0):
        path = source / f"plain/{number % 50}/{number}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{number}\n" * (number % 97))
    for number, case in enumerate(cases()):
        if number % (12 if LONG else 60) == 0 and case.kind != "socket":
            path = case.prepared(source / str(number))
            os.utime(path, ns=(number * 10**15, number * 10**14 + 123_456_789), follow_symlinks=False)
            if case.kind == "file":
                os.setxattr(path, "user.colour", b"blue")
    sh(f"rsync -aHAX {source}/ {there}/ && rsync -aHAX {there}/ {back}/", cwd=room, timeout=2_300 if LONG else 300)

    for copy in (there, back):
        compared = sh(f"rsync -aHAXni --delete {source}/ {copy}/", cwd=room, timeout=600 if LONG else 60)
        assert compared.stdout == ""


def test_tar_finds_nothing_that_changes_while_it_reads_a_space(shared: Mount, room: Path) -> None:
    (shared / SPACE / "live" / "note").write_text("We chose S3.")
    (shared / SPACE / "memories" / "one").write_text("David is my brother.")
    shared.uploaded()
    for _ in range(2):
        done = sh(f"tar czf {room}/x.tgz {SPACE}", cwd=shared.path)
        assert (done.stdout, done.stderr) == ("", "")
