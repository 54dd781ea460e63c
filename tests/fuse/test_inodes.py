"""Inode numbers: the same path has the same number, two nodes never share one, and `forget` never hurts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from livememfs import errors
from livememfs.fuse import inodes as module
from livememfs.fuse.inodes import ROOT, Inodes
from livememfs.store.base import ObjectInfo
from livememfs.tree.node import Directory, Node


class Tree:
    """A root with inodes."""

    def __init__(self) -> None:
        self.root = Directory(None, "")
        self.inodes = Inodes(self.root)

    def node(self, name: str) -> Node:
        return Node(self.root, name)


@pytest.fixture
def tree() -> Tree:
    return Tree()


def test_the_root_is_number_one_and_stays(tree: Tree) -> None:
    tree.inodes.forget(ROOT, 1_000)

    assert tree.inodes.node(ROOT) is tree.root
    assert tree.inodes.number(tree.root) == ROOT


def test_a_number_follows_from_the_path_so_a_remount_changes_nothing(tree: Tree) -> None:
    number = tree.inodes.number(tree.node("alpha"))

    assert Tree().inodes.number(Node(Directory(None, ""), "alpha")) == number
    assert tree.inodes.number(tree.node("beta")) != number
    assert number > ROOT


def test_a_node_keeps_its_number_when_it_is_renamed(tree: Tree) -> None:
    node = tree.node("alpha")
    number = tree.inodes.number(node)
    node.name = "beta"

    assert tree.inodes.number(node) == number
    assert tree.inodes.node(number) is node


def test_two_nodes_of_one_path_have_two_numbers(tree: Tree) -> None:
    """A file that was replaced while it is open lives on beside the one that has its name."""
    old, new = tree.node("alpha"), tree.node("alpha")
    numbers = tree.inodes.number(old), tree.inodes.number(new)

    assert numbers[0] != numbers[1]
    assert [tree.inodes.node(number) for number in numbers] == [old, new]


def test_paths_whose_hashes_collide_are_told_apart(tree: Tree, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_BITS", 0)
    nodes = [tree.node(str(number)) for number in range(10)]

    numbers = {tree.inodes.number(node) for node in nodes}

    assert len(numbers) == 10
    assert min(numbers) > ROOT
    assert all(tree.inodes.node(node.ino) is node for node in nodes)


def test_a_name_that_is_no_text_has_a_number_too(tree: Tree) -> None:
    assert tree.inodes.number(tree.node("caf\udce9")) > ROOT


def test_a_node_is_held_until_the_kernel_gave_back_every_lookup(tree: Tree) -> None:
    node = tree.node("alpha")
    for _ in range(3):
        tree.inodes.count(node)

    tree.inodes.forget(node.ino, 2)
    assert tree.inodes.node(node.ino) is node
    tree.inodes.forget(node.ino, 1)
    with pytest.raises(errors.Stale):
        tree.inodes.node(node.ino)
    assert tree.inodes.statistics().held == 1


def test_a_forgotten_node_is_found_under_the_same_number_again(tree: Tree) -> None:
    node = tree.node("alpha")
    tree.inodes.count(node)
    number = node.ino
    tree.inodes.forget(number, 1)

    tree.inodes.count(node)

    assert node.ino == number


def test_a_node_whose_old_number_is_taken_meanwhile_gets_another(tree: Tree) -> None:
    old, new = tree.node("alpha"), tree.node("alpha")
    tree.inodes.count(old)
    tree.inodes.forget(old.ino, 1)
    tree.inodes.count(new)

    tree.inodes.count(old)

    assert tree.inodes.node(new.ino) is new
    assert tree.inodes.node(old.ino) is old


def test_a_node_the_kernel_was_not_told_of_is_let_go(tree: Tree) -> None:
    node, told = tree.node("alpha"), tree.node("beta")
    tree.inodes.number(node)
    tree.inodes.count(told)

    tree.inodes.drop_uncounted(node)
    tree.inodes.drop_uncounted(told)
    tree.inodes.drop_uncounted(tree.node("gamma"))

    with pytest.raises(errors.Stale):
        tree.inodes.node(node.ino)
    assert tree.inodes.node(told.ino) is told


def test_versions_that_the_kernel_knows_belong_to_the_held_node(tree: Tree) -> None:
    node = tree.node("alpha")
    tree.inodes.count(node)
    assert tree.inodes.told(node.ino) is None
    assert not tree.inodes.keeps_pages(node.ino, 1)
    assert tree.inodes.keeps_pages(node.ino, 1)
    assert not tree.inodes.keeps_pages(node.ino, 2)

    tree.inodes.tell(node.ino, 7)
    assert tree.inodes.told(node.ino) == 7

    tree.inodes.forget(node.ino, 1)
    tree.inodes.tell(node.ino, 8)
    assert tree.inodes.told(node.ino) is None
    assert not tree.inodes.keeps_pages(node.ino, 2)
    tree.inodes.count(node)
    assert tree.inodes.told(node.ino) is None


def test_a_name_of_a_listing_is_not_a_second_inode_once_the_kernel_has_given_it_back_and_looked_it_up(
    tree: Tree,
) -> None:
    """Watches on the first one would hear nothing more."""
    info = ObjectInfo("alpha", "etag", 1, 1)
    [listed] = tree.inodes.promise(tree.root, [("alpha", info)])
    listed.lookups += 1
    tree.inodes.forget(listed.ino, 1)
    node = tree.node("alpha")
    tree.inodes.count(node)

    assert tree.inodes.revive(listed).node is node
    assert tree.inodes.revive(listed).ino == node.ino
    other = tree.node("beta")
    assert tree.inodes.number(other) != node.ino


STEPS = st.lists(
    st.tuples(st.sampled_from(["count", "number", "drop", "forget"]), st.integers(0, 5), st.integers(1, 4)),
    max_size=40,
)


@given(steps=STEPS, strangers=st.lists(st.tuples(st.integers(0, 1 << 64), st.integers(0, 1 << 64)), max_size=5))
def test_whatever_the_kernel_says_numbers_stay_unique_and_counts_right(
    steps: list[tuple[str, int, int]], strangers: list[tuple[int, int]]
) -> None:
    """A model of lookup counts; `forget` of numbers nobody has is answered with silence."""
    tree = Tree()
    nodes = [tree.node(str(index % 3)) for index in range(6)]  # pairs of nodes claim the same path
    counts = [0] * 6
    for what, index, lookups in steps:
        node = nodes[index]
        if what == "count":
            tree.inodes.count(node)
            counts[index] += 1
        elif what == "number":
            tree.inodes.number(node)
        elif what == "drop":
            tree.inodes.drop_uncounted(node)
        elif counts[index]:
            tree.inodes.forget(node.ino, lookups)
            counts[index] = max(0, counts[index] - lookups)
        held = [nodes[index] for index in range(6) if counts[index]]
        assert all(tree.inodes.node(node.ino) is node for node in held)
        assert len({node.ino for node in held}) == len(held)
    for number, lookups in strangers:
        if number not in {node.ino for node in nodes}:
            tree.inodes.forget(number, lookups)
    assert tree.inodes.node(ROOT) is tree.root
