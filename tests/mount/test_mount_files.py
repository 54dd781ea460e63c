"""Ordinary files of a space under the tools that people point at a directory."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from cloud import Bucket
from machine import SPACE, Mount, StartMount, clean_environment, sh

from livememfs.tree.plain import COMPLETED

MANY = COMPLETED + 50
"""Files of others in one folder: so many that a listing asks for none of them."""
SEVERAL_REQUESTS = 3_000
"""Files in one folder: too many for one answer to the kernel."""


def of_strangers(store: Path, number: int) -> Path:
    """A folder of files, where the store keeps it."""
    stored = store / "project/many"
    stored.mkdir(parents=True)
    (store / "project/_meta.json").write_text("{}")
    for one in range(number):
        (stored / f"f{one}").write_text(f"old {one}\n")
    return stored


@pytest.fixture
def sources(tmp_path: Path) -> Path:
    """A directory with folders, an empty folder, an executable, a symbolic link and binary content."""
    top = tmp_path / "sources"
    (top / "a/b").mkdir(parents=True)
    (top / "empty").mkdir()
    (top / "a/one.txt").write_text("one\n")
    (top / "a/b/two words.txt").write_text("two\n" * 1000)
    (top / "a/ünïcode").write_bytes(bytes(range(256)) * 300)
    (top / "run.sh").write_text("#!/bin/sh\necho ran\n")
    (top / "run.sh").chmod(0o755)
    (top / "nothing").touch()
    (top / "link").symlink_to("a/one.txt")
    return top


def test_cp_r_and_back_gives_the_same_tree(mounted: Mount, bucket: Bucket, sources: Path) -> None:
    sh(f"cp -r {sources} project/copy && diff -r --no-dereference {sources} project/copy", cwd=mounted.path)

    assert bucket.get("project/copy/a/ünïcode") == bytes(range(256)) * 300
    assert sh("project/copy/run.sh; cat project/copy/link", cwd=mounted.path).stdout == "ran\none\n"


def test_another_machine_sees_the_same_tree_with_modes_and_times(
    mounted: Mount, sources: Path, second_mount: StartMount
) -> None:
    sh(f"cp -a {sources} project/copy", cwd=mounted.path)
    mounted.uploaded()

    other = second_mount()

    listing = "find . -not -type l -printf '%p %y %m %T@\\n' | sort; find . -type f -size +0 -exec cksum {} + | sort"
    assert sh(listing, cwd=other.path / "project/copy").stdout == sh(listing, cwd=sources).stdout
    assert (other / "project/copy/link").readlink() == Path("a/one.txt")


def test_tar_unpacks_into_it(mounted: Mount, sources: Path) -> None:
    sh(f"mkdir project/t && tar -C {sources} -cf - . | tar -C project/t -xf -", cwd=mounted.path)

    sh(f"diff -r --no-dereference {sources} project/t", cwd=mounted.path)


def test_a_second_rsync_transfers_nothing(mounted: Mount, sources: Path) -> None:
    rsync = f"rsync -a --delete --stats {sources}/ project/r/"
    sh(rsync, cwd=mounted.path)

    second = sh(rsync, cwd=mounted.path).stdout

    assert "Number of regular files transferred: 0" in second
    sh(f"diff -r --no-dereference {sources} project/r", cwd=mounted.path)
    (sources / "a/one.txt").unlink()
    sh(rsync, cwd=mounted.path)
    sh(f"diff -r --no-dereference {sources} project/r", cwd=mounted.path)


def test_git_commits_and_its_repository_is_whole(mounted: Mount, tmp_path: Path, second_mount: StartMount) -> None:
    env = clean_environment(tmp_path, GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_SYSTEM="/dev/null")
    who = "-c user.name=A -c user.email=a@example.org"
    work = mounted.path / "project/repo"
    sh("git init -q project/repo", cwd=mounted.path, env=env)
    sh("echo one > a; mkdir d; echo two > d/b; git add -A", cwd=work, env=env)
    sh(f"git {who} commit -qm first; echo more >> a; git {who} commit -qam second", cwd=work, env=env)

    assert sh("git fsck --strict && git log --format=%s && git status --short", cwd=work, env=env).stdout.split() == [
        "second",
        "first",
    ]
    mounted.uploaded()
    other = second_mount()
    clone = f"git clone -q {other.path}/project/repo {tmp_path}/clone && cat {tmp_path}/clone/a"
    assert sh(clone, cwd=tmp_path, env=env).stdout == "one\nmore\n"


def test_the_calls_of_posix_do_what_they_say(mounted: Mount, bucket: Bucket) -> None:
    script = """
import os, errno
os.chdir("project")
fd = os.open("f", os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o640)
assert os.write(fd, b"hello world") == 11
assert os.pread(fd, 5, 6) == b"world"
os.pwrite(fd, b"W", 6); os.ftruncate(fd, 8); assert os.fstat(fd).st_size == 8
os.pwrite(fd, b"!", 20); os.fsync(fd); os.close(fd)
assert open("f", "rb").read() == b"hello Wo" + bytes(12) + b"!"
assert os.stat("f").st_mode & 0o777 == 0o640
os.truncate("f", 5); assert open("f").read() == "hello"
with open("f", "a") as a: a.write(" again")
assert open("f").read() == "hello again"
os.utime("f", ns=(1, 1_500_000_000_123_456_789)); assert os.stat("f").st_mtime_ns == 1_500_000_000_123_456_789
os.chmod("f", 0o600); assert os.stat("f").st_mode & 0o777 == 0o600
held = open("f"); os.unlink("f"); assert held.read() == "hello again"; held.close()
open("a", "w").write("a"); open("b", "w").write("b")
held = open("b"); os.rename("a", "b"); assert held.read() == "b" and open("b").read() == "a"; held.close()
os.makedirs("x/y"); open("x/y/z", "w").write("z"); os.rename("x", "w"); assert open("w/y/z").read() == "z"
for call, code in ((lambda: os.rmdir("w"), errno.ENOTEMPTY), (lambda: os.link("b", "c"), errno.EPERM),
                   (lambda: os.mkdir("w"), errno.EEXIST), (lambda: os.rmdir("b"), errno.ENOTDIR),
                   (lambda: open("n" * 256, "w"), errno.ENAMETOOLONG), (lambda: open("none"), errno.ENOENT),
                   (lambda: os.open("b", os.O_CREAT | os.O_EXCL), errno.EEXIST),
                   (lambda: os.mknod("live/p", 0o010644), errno.EPERM)):
    try: call()
    except OSError as error: assert error.errno == code, (error, code)
    else: raise AssertionError(code)
os.setxattr("b", "user.colour", b"blue"); assert os.getxattr("b", "user.colour") == b"blue"
assert os.statvfs(".").f_bavail > 0 and os.statvfs(".").f_namemax == 255
d = os.open(".", os.O_RDONLY); os.fsync(d); os.close(d)
"""
    sh(f"{sys.executable} -c '{script}'", cwd=mounted.path)

    assert bucket.get("project/b") == b"a"
    assert bucket.get("project/w/y/z") == b"z"
    assert not bucket.keys("project/x/")


def test_attributes_of_ours_are_read_by_name_and_no_copier_carries_them(mounted: Mount) -> None:
    file = mounted / SPACE / "file"
    file.write_text("text")
    os.setxattr(file, "user.colour", b"blue")

    assert os.listxattr(file) == ["user.colour"]
    assert os.getxattr(file, "user.livememfs.key") == f"{SPACE}/file".encode()
    for path in (file, mounted / SPACE):
        os.setxattr(path, "user.livememfs.key", b"another")
        os.removexattr(path, "user.livememfs.etag")
    assert os.getxattr(file, "user.livememfs.key") == f"{SPACE}/file".encode()


def test_a_file_held_open_shows_what_it_has_become_elsewhere(mounted: Mount, bucket: Bucket) -> None:
    path = mounted / "project/f"
    path.write_text("short\n")
    with path.open() as held:
        bucket.put("project/f", "a good deal longer than before\n")
        shown = "for i in $(seq 120); do [ $(stat -c %s project/f) = 31 ] && exit 0; sleep 0.1; done; exit 1"
        sh(shown, cwd=mounted.path)

        assert sh("cat project/f", cwd=mounted.path).stdout == "a good deal longer than before\n"
        assert held.read() == "a good deal longer than before\n"


def test_a_file_moved_away_after_a_listing_is_not_the_next_one_of_its_name(
    start_mount: StartMount, folder: Path
) -> None:
    """`ls; mv a b; echo new > a`, while the kernel has the name from the listing and nobody has asked for the file."""
    stored = of_strangers(folder, MANY)
    mount = start_mount({"LIVEMEMFS_STORE": str(folder)})
    files = mount / "project/many"

    for one in range(5):
        assert len(os.listdir(files)) == MANY + one
        (files / f"f{one}").rename(files / f"moved{one}")
        (files / f"f{one}").write_text("new\n")
        assert (files / f"moved{one}").read_text() == f"old {one}\n"
        assert (files / f"f{one}").stat().st_ino != (files / f"moved{one}").stat().st_ino
        with (files / f"moved{one}").open("a") as file:
            file.write("and more\n")
    mount.uploaded()

    assert [(stored / f"f{one}").read_text() for one in range(5)] == ["new\n"] * 5
    assert [(stored / f"moved{one}").read_text() for one in range(5)] == [f"old {one}\nand more\n" for one in range(5)]


def test_a_listing_brings_back_nothing_that_changed_while_it_was_on_its_way(
    start_mount: StartMount, folder: Path
) -> None:
    """Neither an old size, at which an open file would be cut for half a minute, nor a name that has gone."""
    of_strangers(folder, SEVERAL_REQUESTS)
    files = start_mount({"LIVEMEMFS_STORE": str(folder)}) / "project/many"
    for name in ("zz-grows", "zz-moves", "zz-goes"):
        (files / name).write_text("short\n")
    os.mkdir(files / "zz-directory")
    os.listdir(files)

    with (files / "zz-grows").open() as held, os.scandir(files) as listing:
        assert held.read() == "short\n"
        next(listing)
        with (files / "zz-grows").open("a") as file:
            file.write("longer\n" * 100)
        (files / "zz-moves").rename(files / "aa-moved")
        (files / "zz-goes").unlink()
        (files / "zz-directory").rmdir()
        later = [entry.name for entry in listing]

        assert len(later) >= SEVERAL_REQUESTS - 1
        assert os.fstat(held.fileno()).st_size == (files / "zz-grows").stat().st_size == 706
        assert held.read() == "longer\n" * 100
    assert not [name for name in ("zz-moves", "zz-goes", "zz-directory") if (files / name).exists()]
    assert (files / "aa-moved").read_text() == "short\n"


def test_what_another_machine_wrote_meanwhile_is_not_overwritten(
    mounted: Mount, bucket: Bucket, second_mount: StartMount
) -> None:
    other = second_mount()
    mine = (mounted / "project/f").open("w")
    mine.write("mine\n")
    (other / "project/f").write_text("theirs\n")
    other.uploaded()

    mine.close()

    both = {bucket.text(key) for key in bucket.keys("project/") if key.startswith("project/f")}
    assert both == {"mine\n", "theirs\n"}
    assert "conflict" in (mounted / ".livememfs/conflicts.ndjson").read_text()


def test_a_large_file_comes_back_whole_and_a_larger_one_is_refused(start_mount: StartMount, bucket: Bucket) -> None:
    mount = start_mount({**bucket.environment(), "LIVEMEMFS_MAX_FILE_SIZE": "20000000"})
    sh(
        "mkdir project && head -c 15000000 /dev/urandom > /tmp/$$ && cp /tmp/$$ project/big && "
        "cmp /tmp/$$ project/big; s=$?; rm /tmp/$$; exit $s",
        cwd=mount.path,
    )

    told = sh("head -c 21000000 /dev/zero > project/bigger", cwd=mount.path, status=1).stderr

    assert "File too large" in told


def test_names_with_every_odd_character_work(mounted: Mount, bucket: Bucket) -> None:
    names = [
        "a b",
        "a+b",
        "a%20b",
        "a&b=c?d#e",
        "'quoted'",
        '"double"',
        "back\\slash",
        "tab\there",
        "日本語",
        "é",
        "é",
        "-n",
    ]
    for name in names:
        (mounted / "project" / name).write_text(name)

    assert {(mounted / "project" / name).read_text() for name in names} == set(names)
    assert set(names) <= set(os.listdir(mounted / "project"))
    assert {f"project/{name}" for name in names} <= set(bucket.keys("project/"))
