"""`search/`: a name is a question. What answers, what never does, and that an answer leads to what was found."""

from __future__ import annotations

import pytest
import trio
from hosts import Host, World, refused, unreachable

from livememfs import errors
from livememfs.recall.service import Recall
from livememfs.spaces import making as spaces
from livememfs.testing.store import Fault
from livememfs.text.own import HEAD
from livememfs.tree.node import NOBODY, Symlink

ANSWERED_WITHIN = 10.0


class Searching:
    """A mount that searches, and its search."""

    def __init__(self, host: Host, recall: Recall) -> None:
        self.host, self.recall = host, recall

    async def links(self, path: str) -> dict[str, str]:
        """The links of an answer and where they lead, in their order."""
        with trio.fail_after(ANSWERED_WITHIN):
            links = await (await self.host.folder(path)).children()
        return {name: await node.target() for name, node in links if isinstance(node, Symlink)}

    async def page(self, path: str) -> str:
        with trio.fail_after(ANSWERED_WITHIN):
            return (await self.host.read(path)).decode()


@pytest.fixture
async def searching(here: Host, recall: Recall) -> Searching:
    return Searching(here, recall)


async def test_a_question_is_answered_by_links_to_what_was_found(searching: Searching) -> None:
    await searching.host.write("alpha/live/decision-db.md", "we chose PostgreSQL as the database")
    await searching.host.write("alpha/live/other.md", "lunch is at noon")

    links = await searching.links("alpha/search/which database")

    name, target = next(iter(links.items()))
    assert name == "01-we-chose-postgresql-as-the-database.md"
    assert target.startswith("../../live/")
    note = await searching.host.read("alpha/" + target.removeprefix("../../"))
    assert note.endswith(b"we chose PostgreSQL as the database")


async def test_the_page_says_the_same_in_the_same_order(searching: Searching) -> None:
    await searching.host.write("alpha/live/one.md", "the token expires after an hour")
    await searching.host.write("alpha/live/two.md", "the token is renewed in the background, unless it expires first")

    page = await searching.page("alpha/search/token expires.md")
    links = await searching.links("alpha/search/token expires")
    targets = [target.removeprefix("../../") for target in links.values()]

    places = [page.index(f"(<../{target}>)") for target in targets]
    assert places == sorted(page.index(target) - 5 for target in targets)
    assert "tokens)" in page
    assert "Read as: words: token, expires." in page


async def test_the_explanation_names_the_lists(searching: Searching) -> None:
    await searching.host.write("alpha/live/one.md", "the token expires")

    page = await searching.page("alpha/search/.explain/token.md")

    assert "| rank | score | words | meaning | record |" in page
    assert "(<../../live/" in page


async def test_the_root_asks_all_spaces(world: World, searching: Searching) -> None:
    await spaces.create(searching.host.replica, world.clock, "beta")
    await searching.host.write("alpha/live/one.md", "apples are red")
    await searching.host.write("beta/live/one.md", "apples are green")

    targets = list((await searching.links("search/apples")).values())

    assert sorted(target.split("/")[2] for target in targets) == ["alpha", "beta"]
    assert len(await searching.links("search/apples space:beta")) == 1


async def test_what_is_written_is_found_by_the_next_question_and_what_is_removed_is_not(searching: Searching) -> None:
    assert await searching.links("alpha/search/unicorn") == {}

    await searching.host.write("alpha/live/one.md", "a unicorn was seen")
    assert len(await searching.links("alpha/search/unicorn seen")) == 1

    await searching.host.unlink("alpha/live/one.md")
    assert await searching.links("alpha/search/unicorn was") == {}


async def test_walking_the_tree_starts_no_search(searching: Searching) -> None:
    """`grep -r`, `find` and an editor's indexer go everywhere; so do programs that look for their own files."""
    await searching.host.write("alpha/live/one.md", "a note")

    assert await searching.host.names("search") == []
    assert await searching.host.names("alpha/search") == []
    assert await searching.host.names("alpha/search/.explain") == []
    for name in (".git", ".vscode", ".DS_Store", ".explain/.git", ".explain/no-page"):
        assert not await searching.host.exists(f"alpha/search/{name}")

    assert searching.recall.statistics().questions == 0
    assert searching.recall.statistics().index is None


async def test_nothing_can_be_changed_below_a_search(searching: Searching) -> None:
    await searching.host.write("alpha/live/one.md", "a note about apples")
    (link,) = await searching.links("alpha/search/apples")
    search = await searching.host.folder("alpha/search")
    answer = await searching.host.folder("alpha/search/apples")

    await refused(
        (errors.ReadOnly, errors.CrossesKinds),
        search.mkdir("x", 0o755, NOBODY),
        search.create("x", 0o644, NOBODY),
        search.rmdir("apples"),
        answer.unlink(link),
        answer.create("x.md", 0o644, NOBODY),
        answer.rename(link, search, "y"),
        searching.host.unlink("alpha/search/apples.md"),
        searching.host.rmdir("alpha/search"),
        searching.host.rename("alpha/live/one.md", "alpha/search/one.md"),
    )


async def test_an_answer_stays_the_same_for_a_moment_so_that_its_files_can_be_opened(searching: Searching) -> None:
    await searching.host.write("alpha/live/one.md", "apples in the garden")
    (name,) = await searching.links("alpha/search/apples")
    folder = await searching.host.folder("alpha/search/apples")

    await searching.host.write("alpha/live/two.md", "apples apples apples")

    assert list(await searching.links("alpha/search/apples")) == [name]
    assert isinstance(await folder.child(name), Symlink)
    assert searching.recall.statistics().repeated >= 1


async def test_the_same_name_is_the_same_node_while_it_is_held(searching: Searching) -> None:
    """Else a shell that stands in an answer would find its own directory gone."""
    search = await searching.host.folder("alpha/search")

    for name in ("apples", "apples.md", ".explain"):
        node = await search.child(name)
        assert await search.child(name) is node


QUESTIONS = (
    "a" * 255, "the of and", "?!…", "🍎🍏", '"', '""', "type:", "-", "after:yesterdayish", "\u202eabc\u202c",
    "(a+)+$" * 20, "type:nonsense apples", "limit:0 apples", "space:other apples", 'a "lone quote',
)  # fmt: skip


@pytest.mark.parametrize("question", QUESTIONS)
async def test_no_question_fails(searching: Searching, question: str) -> None:
    await searching.host.write("alpha/live/one.md", "apples in the garden")

    await searching.links(f"alpha/search/{question}")
    if len(question) < 250:
        page = await searching.page(f"alpha/search/{question}.md")
        assert page.startswith(f"{HEAD}\n# ")
        await searching.page(f"alpha/search/.explain/{question}.md")


async def test_a_store_that_fails_costs_the_answer_and_says_so(searching: Searching) -> None:
    await searching.host.folder("alpha/search")
    down = Fault(unreachable())
    searching.host.store.script("list", *[down] * 20)

    page = await searching.page("alpha/search/apples.md")

    assert "Nothing found" in page
    assert "may have more than was found" in page


async def test_a_bank_file_is_found_by_its_section(world: World, searching: Searching) -> None:
    await world.memory.put("alpha/bank/infra.md", b"# Infra\n\n## Database\n\nPostgreSQL 16\n\n## Cache\n\nRedis\n")

    page = await searching.page("alpha/search/Redis cache.md")

    assert "1. [Infra / Cache](<../bank/infra.md>)" in page


async def test_memories_are_found_beside_notes_and_by_what_they_are(world: World, searching: Searching) -> None:
    host = searching.host
    await host.write("alpha/live/talk.md", "David talked about Toulouse")
    await host.write("alpha/memories/david", "---\nsubjects: [david]\n---\nDavid lives in Toulouse")
    await host.write("alpha/self/limitation-web", "I cannot look at Toulouse on the web")

    everything = list((await searching.links("alpha/search/toulouse")).values())
    assert sorted(target.split("/")[2] for target in everything) == ["live", "memories", "self"]
    for filters, folder in (("in:memories", "memories"), ("type:fact", "memories"), ("concept:limitation", "self")):
        (target,) = (await searching.links(f"alpha/search/toulouse {filters}")).values()
        assert target.startswith(f"../../{folder}/")

    await host.unlink("alpha/memories/david")
    assert await searching.links("alpha/search/lives toulouse in:memories") == {}  # another question: answers last 3 s
