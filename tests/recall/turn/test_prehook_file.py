"""What is told about a file before it is read or edited: what names just that file, little, once, and never late."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from recall_world import SPACE, Bucket, no_model, prehook

from livememfs.cache.replica import Replica
from livememfs.recall.index.local import Index
from livememfs.recall.service import Recall
from livememfs.recall.turn.aboutfile import MOST_PARTS, _names, inside
from livememfs.recall.turn.choosing import PrehookSettings
from livememfs.recall.turn.inject import TITLES
from livememfs.recall.turn.prehook import Prehook
from livememfs.recall.turn.told import ToldSessions
from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.records.turn import Turn
from livememfs.text.own import END, HEAD
from livememfs.text.size import tokens

ROOT = "/home/ada/shop"
FILE = f"{ROOT}/src/auth/login.py"
_numbers = count(1)


async def observe(
    bucket: Bucket, title: str, *files: str, kind: Any = "change", read: bool = False, **more: Any
) -> str:
    """An observation of some files; its key."""
    where = {"files_read" if read else "files_modified": files}
    one = Observation(f"{next(_numbers):08x}", "earlier", bucket.clock.now(), kind, title, **where, **more)
    await bucket.memory.put(keys.observations_prefix(SPACE) + one.name, one.render())
    bucket.clock.advance(minutes=1)
    return keys.observations_prefix(SPACE) + one.name


async def test_what_was_observed_about_just_this_file_is_told_once_a_session(bucket: Bucket) -> None:
    await observe(bucket, "The login counts attempts now", "src/auth/login.py", narrative="Five, and then it waits.")
    await observe(bucket, "Somebody read the login", "src/auth/login.py", read=True, kind="discovery")
    await observe(bucket, "The mail has a footer", "src/mail.py")
    await observe(bucket, "Another login", "docs/auth/login.py")
    async with prehook(bucket) as here:
        block = await here.file(SPACE, "s", FILE, ROOT)

        assert block == (
            f"{HEAD}\n"
            f"{TITLES['file']}\n"
            "- discovery, 2026-02-20 14:01 (from tool output): Somebody read the login\n"
            "- change, 2026-02-20 14:00 (from tool output): The login counts attempts now Five, and then it waits.\n"
            f"{END}\n"
        )
        assert await here.file(SPACE, "s", FILE, ROOT) == await here.file(SPACE, "s", "src/auth/login.py") == ""
        assert await here.file(SPACE, "another", FILE, ROOT) == block
        assert await here.file(SPACE, "s", f"{ROOT}/src/none.py", ROOT) == ""


@pytest.mark.parametrize("path", ["src/auth/login.py", "auth/login.py", "login.py"])
async def test_notes_memories_and_the_bank_are_told_where_they_name_the_file(bucket: Bucket, path: str) -> None:
    await bucket.write("n", f"Never import {path} from the worker.")
    await bucket.remember(f"We keep {path} free of the database", type="decision")
    await bucket.memory.put(keys.bank_key(SPACE, "map.md"), f"# Map\n\nlong ago\n\n- {path} holds the form\n".encode())
    await bucket.remember("The cat of Anna is called Felix")
    async with prehook(bucket) as here:
        block = await here.file(SPACE, "s", FILE, ROOT)

    for said in (
        f"Never import {path}",
        f"- decision, 2026-02-20 14:00: We keep {path}",
        f"- map.md, Map: long ago {path} holds the form",
    ):
        assert said in block
    assert "Felix" not in block


@pytest.mark.parametrize(
    ("named", "path", "project"),
    [
        ("src/auth/login.py", FILE, ROOT), ("src/auth/login.py", FILE, f"{ROOT}/"), ("src/auth/login.py", FILE, ""),
        ("src/auth/login.py", "src/auth/login.py", ""), ("src/auth/login.py", "./src/auth/login.py", ROOT),
        ("README.md", f"{ROOT}/README.md", ROOT), (FILE, FILE, ROOT), ("/etc/hosts.conf", "/etc/hosts.conf", ROOT),
        ("src/auth/login.py", FILE, f"{ROOT}/src"),
    ],
)  # fmt: skip
async def test_a_file_is_known_by_its_path_in_the_project_or_its_end(
    bucket: Bucket, named: str, path: str, project: str
) -> None:
    await observe(bucket, "It was mended", named)
    async with prehook(bucket) as here:
        assert "It was mended" in await here.file(SPACE, "s", path, project)


@pytest.mark.parametrize(
    ("named", "path"),
    [
        ("README.md", f"{ROOT}/docs/README.md"), ("login.py", FILE), ("auth/login.py.orig", FILE), ("h/login.py", FILE),
        ("src/auth", FILE), ("other/src/auth/login.py", FILE), ("SRC/AUTH/LOGIN.PY", FILE),
    ],
)  # fmt: skip
async def test_another_file_is_not_taken_for_it(bucket: Bucket, named: str, path: str) -> None:
    await observe(bucket, "It was mended", named)
    async with prehook(bucket) as here:
        assert await here.file(SPACE, "s", path, ROOT) == ""


async def test_a_name_that_every_folder_has_names_no_file_alone(bucket: Bucket) -> None:
    await bucket.remember("The README.md is written in French")
    async with prehook(bucket) as here:
        assert await here.file(SPACE, "s", f"{ROOT}/docs/README.md", ROOT) == ""
        assert "French" in await here.file(SPACE, "s", f"{ROOT}/README.md", ROOT)


async def test_at_most_three_hundred_tokens_with_traps_and_changes_in_turns(bucket: Bucket) -> None:
    for number in range(30):
        kind, concepts = ("discovery", ("gotcha",)) if number % 2 else ("change", ())
        words = " ".join(f"word{number}x{at}" for at in range(20))
        await observe(bucket, f"Number {number}", "src/auth/login.py", kind=kind, narrative=words, concepts=concepts)
    async with prehook(bucket) as here:
        block = await here.file(SPACE, "s", FILE, ROOT)

    assert 150 < tokens(block) <= 300 + 4  # line ends
    assert block.index("Number 29") < block.index("Number 28")
    assert "Number 1\n" not in block


async def test_what_was_told_to_a_message_is_not_told_again_about_a_file_and_the_other_way_round(
    bucket: Bucket,
) -> None:
    text = "We keep src/auth/login.py free of the database"
    await bucket.remember(text)
    bucket.clock.advance(hours=7)
    async with prehook(bucket) as here:
        assert text in (await here.turn(SPACE, Turn("the database of login.py", "one"))).block
        assert await here.file(SPACE, "one", FILE, ROOT) == ""
        assert text in await here.file(SPACE, "two", FILE, ROOT)
        answer = await here.turn(SPACE, Turn("the database of login.py", "two"))
        assert (answer.block, answer.turn) == ("", 1), "a file is no turn"


async def test_it_is_told_again_after_it_was_forgotten_and_by_no_second_mount_before(bucket: Bucket) -> None:
    await observe(bucket, "It was mended", "src/auth/login.py")
    async with prehook(bucket) as here:
        assert await here.file(SPACE, "s", FILE, ROOT)
    async with prehook(bucket) as there:
        assert (await there.turn(SPACE, Turn("hello", "s"))).block == ""  # and knows by now what the bucket says
        assert await there.file(SPACE, "s", FILE, ROOT) == ""
        await there.forget(SPACE, "s")
        assert await there.file(SPACE, "s", FILE, ROOT)
    assert b"login" not in (await bucket.memory.get(keys.session_key(SPACE, "s", keys.TOLD))).data


async def test_a_file_is_told_about_once_however_long_a_session_is(bucket: Bucket) -> None:
    await observe(bucket, "It was mended", "src/auth/login.py")
    async with prehook(bucket) as here:
        assert await here.file(SPACE, "s", FILE, ROOT)
        for _ in range(30):
            await here.turn(SPACE, Turn("hello", "s"))
        assert await here.file(SPACE, "s", FILE, ROOT) == ""


async def test_what_is_gone_is_not_told(bucket: Bucket) -> None:
    key = await observe(bucket, "It was mended", "src/auth/login.py")
    await bucket.remember("src/auth/login.py moves", ttl="1h")
    async with bucket.mount() as mount, mount.prehook() as here:
        await mount.indexed()
        await mount.replica.delete(key)
        bucket.clock.advance(hours=2)
        assert await here.file(SPACE, "s", FILE, ROOT) == ""


async def test_it_can_be_switched_off(bucket: Bucket) -> None:
    await observe(bucket, "It was mended", "src/auth/login.py")
    async with prehook(bucket, PrehookSettings(files=False)) as here:
        assert await here.file(SPACE, "s", FILE, ROOT) == ""


async def test_an_index_that_is_not_open_is_neither_opened_nor_waited_for(bucket: Bucket) -> None:
    opened: list[int] = []
    replica = Replica(bucket.store)

    def opening() -> Index:
        opened.append(1)
        return Index(bucket.folder, "x")

    here = Prehook(Recall(replica, bucket.clock, opening, no_model), bucket.clock, ToldSessions(replica))
    assert await here.file(SPACE, "s", FILE, ROOT) == ""
    assert opened == []


@pytest.mark.parametrize("path", ["", "/", ".", "..", "\0", "\ud800", "a" * 10_000, "/".join("ab" * 3_000), "%_'\""])
async def test_no_path_fails(bucket: Bucket, path: str) -> None:
    await observe(bucket, "It was mended", "src/auth/login.py")
    async with prehook(bucket) as here:
        assert await here.file(SPACE, "any\0session", path, path) == ""
        assert here.statistics()["failed"] == 0


@pytest.mark.parametrize(
    ("path", "project", "relative"),
    [
        ("/home/me/p/src/a.py", "/home/me/p", "src/a.py"),
        ("/home/me/p/src/a.py", "/home/me/p/", "src/a.py"),
        ("/home/me/py/a.py", "/home/me/p", ""),
        ("/etc/hosts", "/home/me/p", ""),
        ("/etc/hosts", "", ""),
        ("./src/a.py", "/home/me/p", "src/a.py"),
        ("src/a.py", "", "src/a.py"),
    ],
)
def test_a_path_is_relative_to_its_project_or_elsewhere(path: str, project: str, relative: str) -> None:
    assert inside(path, project) == relative


@pytest.mark.parametrize(
    ("path", "exact", "loose", "bare"),
    [
        ("/p/src/app.py", {"/p/src/app.py", "src/app.py"}, ["p/src/app.py", "src/app.py"], ["app.py"]),
        ("/p/src/Config.py", {"/p/src/Config.py", "src/Config.py"}, ["p/src/Config.py", "src/Config.py"], []),
        ("app.py", {"app.py"}, [], []),
        ("/etc/hosts", {"/etc/hosts"}, ["etc/hosts"], ["hosts"]),
        ("./a/b.py", {"./a/b.py", "a/b.py"}, ["a/b.py"], ["b.py"]),
        ("", set(), [], []),
    ],
)
def test_a_file_is_named_by_its_path_its_last_parts_and_its_bare_name_if_that_tells_which_it_is(
    path: str, exact: set[str], loose: list[str], bare: list[str]
) -> None:
    assert _names(path, "/p") == (exact, loose, bare)


def test_of_a_very_long_path_the_last_parts_count() -> None:
    _, loose, _ = _names("/" + "/".join(f"d{number}" for number in range(40)) + "/a.py", "")

    assert len(loose) == MOST_PARTS - 1
    assert loose[-1] == "d39/a.py"
