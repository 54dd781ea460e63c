"""Records checked in real worktrees: what is fresh, changed, gone, renamed, and on another branch."""

from __future__ import annotations

import os
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
import trio
from code_repositories import GitTree

from livememfs.code.anchor import Anchor, Claim, CodePlace
from livememfs.code.checking import CodeStatus, CodeVerdict
from livememfs.code.stamping import Subject
from livememfs.code.workplaces import ON_REQUEST, CheckPatience, Workplaces

WITHOUT_GIT = CheckPatience(20.0, 4 << 20, 20.0)
"""As before an answer, on a machine that others use as well."""

PARSER = "LIMIT = 5\n\n\ndef parse(text):\n    return text.split()\n\n\ndef other():\n    return 1\n"


@asynccontextmanager
async def opened(environment: dict[str, str] | None = None, **options: str) -> AsyncIterator[Workplaces]:
    """With git asked in the background."""
    code = Workplaces("laptop", environment or dict(os.environ), **options)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(code.run)
        yield code
        nursery.cancel_scope.cancel()


@pytest.fixture
def tree(tmp_path: Path) -> GitTree:
    made = GitTree.made(tmp_path / "tool")
    made.write("src/parser.py", PARSER)
    made.write("src/client.py", "def fetch():\n    return parse('x')\n")
    made.commit("parser")
    return made


async def claimed(code: Workplaces, tree: GitTree, text: str, **given: tuple[str, ...]) -> Claim:
    claim = await code.claim(Subject(text, str(tree.top), **given))
    assert claim is not None
    return claim


async def verdict(code: Workplaces, tree: GitTree, claim: Claim) -> CodeVerdict:
    """As a later turn sees it: what git knows was asked."""
    (found,) = await code.verdicts((str(tree.top),), [claim], ON_REQUEST)
    return found


async def status(code: Workplaces, tree: GitTree, claim: Claim) -> CodeStatus:
    return (await verdict(code, tree, claim)).status


def places(claim: Claim) -> list[tuple[str, str]]:
    return [(anchor.path, anchor.symbol) for anchor in claim.anchors]


async def test_a_record_keeps_the_symbols_of_the_files_that_it_names(tree: GitTree) -> None:
    async with opened() as code:
        by_symbol = await claimed(code, tree, "`parse` in src/parser.py splits at blanks")
        by_bare_name = await claimed(code, tree, "parser.py has a LIMIT_ of 5")
        by_symbol_alone = await claimed(code, tree, "`parse` splits at blanks")
        by_known = await claimed(code, tree, "Retries were made faster", files=("src/client.py",))
        by_nothing = await claimed(code, tree, "We meet on Mondays")

    assert places(by_symbol) == [("src/parser.py", "parse")]
    assert places(by_bare_name) == [("src/parser.py", "")]
    assert places(by_symbol_alone) == [("src/parser.py", "parse")]
    assert places(by_known) == [("src/client.py", "")]
    assert places(by_nothing) == []
    assert by_nothing.place == CodePlace("example.org/acme/tool", "main", tree.git("rev-parse", "HEAD"))


async def test_a_new_file_is_found_by_its_name_before_git_tracks_it(tree: GitTree) -> None:
    tree.write("src/deep/fresh.py", "def sprout():\n    pass\n")
    tree.write("ignored/fresh2.py", "def sprout_two():\n    pass\n")
    tree.write(".gitignore", "ignored\n")
    async with opened() as code:
        by_name, by_symbol = [await claimed(code, tree, text) for text in ("see fresh.py", "`sprout` grows")]
        ignored = await claimed(code, tree, "`sprout_two` in fresh2.py")

    assert places(by_name) == [("src/deep/fresh.py", "")]
    assert places(by_symbol) == [("src/deep/fresh.py", "sprout")]
    assert places(ignored) == []


async def test_a_symbol_that_many_files_define_is_none_of_them(tree: GitTree) -> None:
    for number in range(4):
        tree.write(f"src/m{number}.py", "def setup_all():\n    pass\n")
    async with opened() as code:
        assert places(await claimed(code, tree, "`setup_all` is called first")) == []


async def test_what_was_not_touched_is_fresh_and_what_was_is_changed(tree: GitTree) -> None:
    async with opened() as code:
        parse = await claimed(code, tree, "`parse` in src/parser.py")
        whole = await claimed(code, tree, "see src/parser.py")
        tree.write("src/parser.py", PARSER.replace("return 1", "return 2"))

        assert await status(code, tree, parse) is CodeStatus.FRESH
        assert await status(code, tree, whole) is CodeStatus.CHANGED

        tree.write("src/parser.py", PARSER.replace("text.split()", "[text]"))

        assert await status(code, tree, parse) is CodeStatus.CHANGED


@pytest.mark.parametrize(
    "text",
    [
        "parse in src/parser.py splits at blanks",
        "The splitting is done by parse, in `src/parser.py`.",
        "parse (src/parser.py) splits at blanks",
        "Blanks are left to parse and to in src/parser.py",
        "Only fetch and parse in ./src/parser.py split",
        "src/parser.py's parse splits at blanks",
        "`src/parser.py`::parse splits at blanks",
        "parse() splits at blanks, see src/parser.py",
        "the parse function of src/parser.py splits at blanks",
        "the function parse of the file src/parser.py splits at blanks",
        "parse dans src/parser.py coupe aux blancs",
        "la fonction parse du fichier src/parser.py coupe aux blancs",
    ],
)
async def test_a_plain_word_beside_a_file_that_defines_it_is_its_symbol(tree: GitTree, text: str) -> None:
    async with opened() as code:
        claim = await claimed(code, tree, text)
        assert places(claim) == [("src/parser.py", "parse")]
        tree.write("src/parser.py", PARSER.replace("return 1", "return 2"))
        assert await status(code, tree, claim) is CodeStatus.FRESH
        tree.write("src/parser.py", PARSER.replace("def parse(text):\n    return text.split()\n", ""))
        assert await status(code, tree, claim) is CodeStatus.GONE


@pytest.mark.parametrize(
    "text",
    [
        "blanks in src/parser.py split, as text",  # a word that the file does not define
        "text in src/parser.py",  # one that it only uses
        "other files parse; src/parser.py splits",  # defined, but not said of the file
        "see parse in lib/src/parser.py, and src/parser.py",
    ],
)
async def test_a_plain_word_that_is_not_said_to_be_in_a_file_is_none_of_its_symbols(tree: GitTree, text: str) -> None:
    async with opened() as code:
        assert ("src/parser.py", "") in places(await claimed(code, tree, text))


async def test_what_was_removed_is_gone_and_comes_back_with_its_code(tree: GitTree) -> None:
    async with opened() as code:
        parse = await claimed(code, tree, "`parse` in src/parser.py")
        tree.write("src/parser.py", PARSER.replace("parse", "read"))
        assert await status(code, tree, parse) is CodeStatus.GONE

        (tree.top / "src/parser.py").unlink()
        assert await status(code, tree, parse) is CodeStatus.GONE
        assert not (await verdict(code, tree, parse)).is_told

        tree.write("src/parser.py", PARSER)
        assert await status(code, tree, parse) is CodeStatus.FRESH


@pytest.mark.parametrize("committed", [True, False])
async def test_a_renamed_file_is_checked_where_it_is_now(tree: GitTree, committed: bool) -> None:
    async with opened() as code:
        parse = await claimed(code, tree, "`parse` in src/parser.py")
        tree.git("mv", "src/parser.py", "src/reading.py")
        if committed:
            tree.commit("rename")

        assert await status(code, tree, parse) is CodeStatus.FRESH
        assert (await verdict(code, tree, parse)).of[0][2] == "src/reading.py"

        tree.write("src/reading.py", PARSER.replace("split", "rsplit"))
        assert await status(code, tree, parse) is CodeStatus.CHANGED


async def test_a_turn_asks_git_for_the_next_one_and_waits_for_nothing(tree: GitTree) -> None:
    async with opened() as code:
        parse = await claimed(code, tree, "`parse` in src/parser.py")
        tree.git("mv", "src/parser.py", "src/reading.py")
        where = (str(tree.top),)

        assert [each.is_told for each in await code.verdicts(where, [parse], WITHOUT_GIT)] == [False]
        with trio.fail_after(20):
            while not code.statistics()["asked"]:
                await trio.sleep(0.01)
        assert [each.mark for each in await code.verdicts(where, [parse], WITHOUT_GIT)] == [""]


async def test_another_branch_is_marked_until_it_is_merged(tree: GitTree, tmp_path: Path) -> None:
    async with opened() as code:
        side = tree.worktree(tmp_path / "side", "feature/x")
        side.write("src/new.py", "def invent():\n    return 1\n")
        side.commit("new")
        of_code = await claimed(code, side, "`invent` in src/new.py")
        of_nothing = await claimed(code, side, "We chose Kafka")
        assert of_code.place.repository == (await code.place((str(tree.top),))).repository

        for claim in (of_code, of_nothing):
            here = await verdict(code, tree, claim)
            assert (here.mark, here.is_told) == ("on branch feature/x, not merged", True)
            assert (await verdict(code, side, claim)).mark == ""

        tree.git("merge", "-q", "feature/x")
        for claim in (of_code, of_nothing):
            assert (await verdict(code, tree, claim)).mark == ""


async def test_a_squashed_branch_counts_as_merged_where_its_code_is(tree: GitTree, tmp_path: Path) -> None:
    async with opened() as code:
        side = tree.worktree(tmp_path / "side", "feature/x")
        side.write("src/new.py", "def invent():\n    return 1\n")
        side.commit("new")
        claim = await claimed(code, side, "`invent` in src/new.py")
        tree.git("merge", "-q", "--squash", "feature/x")
        tree.commit("squashed")

        assert (await verdict(code, tree, claim)).mark == ""


@pytest.mark.parametrize("then", ["deleted", "kept"])
async def test_what_is_said_of_no_code_counts_here_once_its_branch_was_squashed(
    tree: GitTree, tmp_path: Path, then: str
) -> None:
    """Also when main goes on, and when the branch went on after the fact, as long as it is there."""
    async with opened() as code:
        side = tree.worktree(tmp_path / "side", "feature/x")
        side.write("src/new file.py", "def invent():\n    return 1\n")
        (side.top / "src/client.py").unlink()
        side.commit("new")
        early = await claimed(code, side, "We chose Kafka")
        side.write("src/new file.py", "def invent():\n    return 2\n")
        side.commit("newer")
        late = await claimed(code, side, "We meet on Mondays")
        for claim in (early, late):
            assert (await verdict(code, tree, claim)).mark == "on branch feature/x, not merged"

        tree.git("merge", "-q", "--squash", "feature/x")
        tree.commit("squashed")
        tree.write("src/new file.py", "def invent():\n    return 3\n")
        tree.commit("main goes on")
        if then == "deleted":
            tree.git("worktree", "remove", "--force", str(side.top))
            tree.git("branch", "-q", "-D", "feature/x")

        assert (await verdict(code, tree, late)).mark == ""
        assert bool((await verdict(code, tree, early)).mark) == (then == "deleted")


async def test_a_branch_of_which_a_part_is_here_is_not_merged(tree: GitTree, tmp_path: Path) -> None:
    async with opened() as code:
        side = tree.worktree(tmp_path / "side", "feature/x")
        side.write("src/new.py", "def invent():\n    return 1\n")
        side.write("src/parser.py", "")
        side.commit("new")
        claim = await claimed(code, side, "We chose Kafka")
        tree.write("src/new.py", "def invent():\n    return 1\n")
        tree.commit("a part of it")
        tree.git("branch", "-q", "other")
        reused = replace(claim, place=replace(claim.place, branch="other"))

        for each in (claim, reused):  # the tip of `other` is here, but it has nothing of the commit
            assert "not merged" in (await verdict(code, tree, each)).mark


async def test_what_was_not_committed_on_another_branch_is_not_said_to_have_changed(
    tree: GitTree, tmp_path: Path
) -> None:
    """Its commit is that of main, and yet main lacks it."""
    async with opened() as code:
        side = tree.worktree(tmp_path / "side", "feature/x")
        side.write("src/new.py", "def invent():\n    return 1\n")
        claim = await claimed(code, side, "`invent` in src/new.py")
        side.commit("later")

        assert (await verdict(code, tree, claim)).mark == "on branch feature/x, not merged"


async def test_what_main_has_is_not_marked_on_a_branch_that_lacks_it(tree: GitTree, tmp_path: Path) -> None:
    async with opened() as code:
        side = tree.worktree(tmp_path / "side", "feature/x")
        tree.write("src/new.py", "def invent():\n    return 1\n")
        tree.commit("on main")
        plain = await claimed(code, tree, "We chose Kafka")
        of_code = await claimed(code, tree, "`invent` in src/new.py")

        assert (await verdict(code, side, plain)).mark == ""
        assert not (await verdict(code, side, of_code)).is_told


async def test_a_detached_head_has_a_commit_and_no_branch(tree: GitTree) -> None:
    async with opened() as code:
        commit = tree.git("rev-parse", "HEAD")
        tree.git("checkout", "-q", "--detach")

        assert await code.place((str(tree.top / "src"),)) == CodePlace("example.org/acme/tool", "", commit)


async def test_packed_refs_are_read(tree: GitTree) -> None:
    async with opened() as code:
        before = await code.place((str(tree.top),))
        tree.git("pack-refs", "--all")

        assert not (tree.top / ".git/refs/heads/main").exists()
        assert await code.place((str(tree.top),)) == before


async def test_without_git_renames_and_merges_are_unknown_and_nothing_fails(tree: GitTree, tmp_path: Path) -> None:
    async with opened({"PATH": str(tmp_path)}) as code:
        side = tree.worktree(tmp_path / "side", "feature/x")
        side.write("new.py", "pass\n")
        side.commit("new")
        parse = await claimed(code, tree, "`parse` in src/parser.py")
        other = await claimed(code, side, "We chose Kafka")
        tree.git("mv", "src/parser.py", "src/reading.py")

        assert await status(code, tree, parse) is CodeStatus.GONE
        assert (await verdict(code, tree, other)).mark == "on branch feature/x, not merged"


async def test_of_another_repository_nothing_is_judged(tree: GitTree, tmp_path: Path) -> None:
    async with opened() as code:
        other = GitTree.made(tmp_path / "else", "https://example.org/acme/else.git")
        parse = await claimed(code, tree, "`parse` in src/parser.py")

        assert await verdict(code, other, parse) == CodeVerdict()
        (outside,) = await code.verdicts((str(tmp_path),), [parse])
        assert outside == CodeVerdict()


async def test_a_file_that_moved_on_before_it_was_observed_has_no_digest(tree: GitTree) -> None:
    async with opened() as code:
        claim = await code.claim(Subject("`parse` in src/parser.py", str(tree.top), until=1))
        assert claim is not None
        assert [str(anchor) for anchor in claim.anchors] == ["src/parser.py#parse@"]

        assert (await verdict(code, tree, claim)).mark == "not checked against the code"
        (tree.top / "src/parser.py").unlink()
        assert not (await verdict(code, tree, claim)).is_told


@pytest.mark.parametrize(
    "path",
    ["../secret", "/etc/passwd", "a/../../secret", ".git/config", "a/.GIT/config", "a//b", "", ".", "a\0b", "a\\b"],
)
def test_a_path_out_of_the_repository_is_no_anchor(path: str) -> None:
    assert Anchor.parse(f"{path}#x@0123456789abcdef") is None


@pytest.mark.parametrize("kind", ["link to a file", "link in the path", "fifo", "folder", "large"])
async def test_only_plain_files_of_the_worktree_are_read(tree: GitTree, tmp_path: Path, kind: str) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/file").write_text("secret")
    if kind == "link to a file":
        (tree.top / "odd").symlink_to(tmp_path / "secret/file")
    elif kind == "link in the path":
        (tree.top / "way").symlink_to(tmp_path / "secret")
    elif kind == "fifo":
        os.mkfifo(tree.top / "odd")
    elif kind == "folder":
        (tree.top / "odd").mkdir()
    else:
        (tree.top / "odd").write_bytes(b"x" * ((1 << 20) + 1))
    path = "way/file" if kind == "link in the path" else "odd"
    place = CodePlace("example.org/acme/tool", "main", tree.git("rev-parse", "HEAD"))
    async with opened() as code:
        with trio.fail_after(20):
            found = await verdict(code, tree, Claim(place, (Anchor(path, "", "0123456789abcdef"),)))

    assert found.status is (CodeStatus.CHANGED if kind == "large" else CodeStatus.GONE)


async def test_what_there_is_no_time_for_is_told_as_not_checked_and_known_the_next_time(
    tree: GitTree,
) -> None:
    async with opened() as code:
        parse = await claimed(code, tree, "`parse` in src/parser.py")
        (first,) = await code.verdicts((str(tree.top),), [parse], CheckPatience(-1.0, 1, 10.0))

        assert first.mark == "not checked against the code"
        assert [each.mark for each in await code.verdicts((str(tree.top),), [parse], WITHOUT_GIT)] == [""]


async def test_a_disk_that_hangs_costs_a_moment(tree: GitTree, monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()
    async with opened() as code:
        parse = await claimed(code, tree, "`parse` in src/parser.py")
        monkeypatch.setattr("livememfs.code.workplaces.repository_at", lambda _: release.wait(20) and None)
        code._found.clear()
        with trio.fail_after(10):
            (found,) = await code.verdicts((str(tree.top),), [parse])
        release.set()

    assert found.mark == "not checked against the code"
