"""The walk along links: from what fits, both ways, two steps, each memory once and by its best way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest
import test_search
from index_world import ALL, note, read
from test_search import NOW, titles

from livememfs.recall.index.local import Index
from livememfs.recall.index.record import Brief
from livememfs.recall.search.graph import LINKS, NEAR, SEEDS, seeds_of, walk
from livememfs.recall.search.page import explanation
from livememfs.recall.search.query import parse
from livememfs.recall.search.ranking import Ranking, fitting_best

Links = Mapping[str, Sequence[tuple[str, str]]]
ask = partial(test_search.ask, meaning=False, spaces=["s"])


def remember(index: Index, links: Links, texts: Mapping[str, str] | None = None) -> dict[str, int]:
    """Memories with links, by name; the numbers of their records. Where nothing is said, the text is the name."""
    names = dict.fromkeys([*links, *(name for of in links.values() for _, name in of), *(texts or {})])
    made = datetime(2026, 2, 1, tzinfo=UTC)
    reads = []
    for at, name in enumerate(names):
        key, text = f"s/memories/{name}.md", (texts or {}).get(name, f"says {name}")
        given = {"ref": key, "key": key, "kind": "memories", "space": "s", "type": "fact"}
        reads.append(read(note(name, text, made + timedelta(days=at), links=tuple(links.get(name, ())), **given)))
    index.apply((), reads)
    return {stored.record.title: stored.id for stored in index.strict(ALL, 9_999)}


def walked(index: Index, seeds: Mapping[str, float], numbers: Mapping[str, int]) -> list[tuple[str, float]]:
    names = {number: name for name, number in numbers.items()}
    found = walk(index, {numbers[name]: score for name, score in seeds.items()}, ALL, lambda piece: True)
    return [(names[record], round(score, 3)) for record, _, score in found]


def test_a_walk_goes_both_ways_and_two_steps(index: Index) -> None:
    numbers = remember(index, {"a": [("part_of", "b")], "b": [("caused_by", "c")], "c": [("caused_by", "d")]})

    assert walked(index, {"a": 1.0}, numbers) == [("b", 0.7), ("c", 0.315)]
    assert walked(index, {"c": 1.0}, numbers) == [("d", 0.9), ("b", 0.9), ("a", 0.315)]


def test_what_holds_now_comes_before_what_it_replaced(index: Index) -> None:
    numbers = remember(index, {"new": [("updates", "seed")], "seed": [("updates", "old")]})

    assert walked(index, {"seed": 1.0}, numbers) == [("new", 1.0), ("old", 0.6)]


def test_each_memory_is_visited_once_by_its_best_way(index: Index) -> None:
    hub = [("related_to", "hub")]
    numbers = remember(index, {f"s{n}": hub for n in range(6)} | {"s0": [*hub, ("caused_by", "hub")]})

    assert walked(index, {f"s{n}": 1 - n / 10 for n in range(6)}, numbers) == [("hub", 0.9)]


def test_circles_and_links_to_oneself_end(index: Index) -> None:
    numbers = remember(index, {"a": [("updates", "b"), ("updates", "a")], "b": [("updates", "a")]})

    assert walked(index, {"a": 1.0}, numbers) == [("b", 1.0)]


def test_what_may_not_be_shown_is_not_gone_through(index: Index) -> None:
    numbers = remember(index, {"a": [("part_of", "b")], "b": [("part_of", "c")]})
    hidden = index.table.linked([numbers["a"]], ALL, 9)[0].piece

    assert walk(index, {numbers["a"]: 1.0}, ALL, lambda piece: piece != hidden) == []


def test_of_a_hub_no_more_than_so_many_links_are_looked_at(index: Index) -> None:
    numbers = remember(index, {f"m{n:03}": [("part_of", "hub")] for n in range(LINKS + 50)})

    assert len(walked(index, {"hub": 1.0}, numbers)) == LINKS


def brief(number: int, kind: str = "memories") -> Brief:
    return Brief(number, kind, "s", "fact", "ann", 0, False)


def test_a_walk_begins_at_what_comes_near_the_best_hit_if_a_memory_is_among_it() -> None:
    hits = [(brief(1, "live"), 10.0), (brief(2), 8.0), (brief(3), 9.0), (brief(2), 5.1), (brief(4), 10 * NEAR - 0.1)]

    assert seeds_of(hits) == {1: 1.0, 3: 0.9, 2: 0.8}
    assert seeds_of([*hits[:1], *hits[-1:]]) == {}
    assert len(seeds_of((brief(n), 1.0) for n in range(99))) == SEEDS
    assert seeds_of([]) == seeds_of([(brief(1), 0.0)]) == {}


def test_small_words_are_no_reason_to_follow_links(index: Index) -> None:
    texts = {"one": "which is the one that we have", "far": "lunch", "two": "queue kafka"}
    remember(index, {"one": [("part_of", "far")]}, texts)

    assert titles(ask(index, "which is the queue that we have")) == ["two"]
    assert titles(ask(index, "which is it that we have")) == []


def test_the_list_is_in_order_before_it_is_fused_and_says_so(index: Index) -> None:
    links = {"seed": [("part_of", "third"), ("caused_by", "second")], "first": [("updates", "seed")]}
    assert Ranking().reached == 3
    remember(index, links, {"seed": "queue kafka broker"})

    found = ask(index, "queue kafka", ranking=Ranking(newest=False))
    assert titles(found) == ["seed", "first", "second", "third"]
    assert [hit.reasons.get("graph") for hit in found.hits] == [1, 2, 3, 4]
    assert "| graph |" in explanation(parse("queue kafka", now=NOW), found, ["x"] * 4)


def test_what_is_linked_does_not_fill_the_answer(index: Index) -> None:
    links = {"seed": [("related_to", f"linked{n}") for n in range(20)]}
    remember(index, links, {"seed": "queue kafka"} | {f"other{n}": f"queue rabbit {n}" for n in range(9)})

    found = titles(ask(index, "queue kafka", limit=30))
    assert found[0] == "seed"
    assert sum(name.startswith("linked") for name in found) == Ranking().reached
    assert all(name.startswith("other") for name in found[1:8]), "what fits comes first"
    assert found[8].startswith("linked"), "but the best of what is linked is among the first ten"


@pytest.mark.parametrize("meaning", [True, False])
def test_where_nothing_is_linked_scores_are_what_they_were(index: Index, meaning: bool) -> None:
    remember(index, {}, {f"m{n}": f"queue kafka {n} broker" for n in range(9)})

    without = ask(index, "queue broker", meaning=meaning, ranking=Ranking(graph=0.0))
    assert ask(index, "queue broker", meaning=meaning) == without


def test_scores_that_are_compared_stay_scores(index: Index) -> None:
    remember(index, {"seed": [("part_of", "linked")]}, {"seed": "queue kafka"})

    found = fitting_best(index, "queue kafka", None, ["s"], {"memories": 9})
    assert [record.title for _, record, _ in found] == ["seed"]
    assert found[0][2] > 0.1


def test_a_filter_holds_for_what_is_linked(index: Index) -> None:
    remember(index, {"seed": [("part_of", "linked")]}, {"seed": "queue kafka", "linked": "lunch"})

    assert titles(ask(index, "queue kafka")) == ["seed", "linked"]
    assert titles(ask(index, "queue kafka before:2026-02-02")) == ["seed"]
    assert titles(ask(index, "queue kafka -lunch")) == ["seed"]
    assert titles(ask(index, '"queue kafka"')) == ["seed"]
