"""The registry against a real tree and against the documentation."""

from __future__ import annotations

import gc
from pathlib import Path

import docs_tables
import pytest
from furnished import CHOSEN_MODE, SPACE, ask, furnish, tree, walk

from livememfs.tree.node import Attrs
from livememfs.tree.registry import ANY, REGISTRY, find
from livememfs.tree.space.root import RESERVED

TREE = docs_tables.TREE.read_text()
Shown = dict[str, Attrs]


@pytest.fixture
async def shown(tmp_path: Path) -> Shown:
    async with tree(tmp_path) as made:
        held = await furnish(made)
        gc.collect()  # or it is chance whether what nobody holds is still there
        met = {"": made.root, **await walk(made.root), **await ask(made.root)}
        assert held.name == "one"  # held until here
        return {path: await node.attrs() for path, node in met.items()}


async def test_every_path_shown_is_described_once_with_its_mode(shown: Shown) -> None:
    for path, attrs in shown.items():
        entries = find(path, attrs.kind, {SPACE})

        assert len(entries) == 1, f"{path} ({attrs.kind}): {entries}"
        assert attrs.mode in ({entries[0].mode, CHOSEN_MODE} if entries[0].kept else {entries[0].mode}), path


async def test_every_entry_is_shown_by_a_tree(shown: Shown) -> None:
    """Nothing is documented that a mount does not have."""
    met = [entry for path, attrs in shown.items() for entry in find(path, attrs.kind, {SPACE})]

    assert [entry for entry in REGISTRY if entry not in met] == []


async def test_bits_are_kept_where_the_registry_says_so(shown: Shown) -> None:
    assert shown[f"{SPACE}/folder"].mode == shown[f"{SPACE}/folder/file.txt"].mode == CHOSEN_MODE
    assert {entry.pattern for entry in REGISTRY if entry.kept} == {ANY}


def test_names_that_have_a_meaning_in_a_space_have_none_elsewhere() -> None:
    assert [entry.pattern for entry in find("beside/live", "directory", {SPACE})] == [ANY]
    assert [entry.pattern for entry in find(f"{SPACE}/folder/README.md", "file", {SPACE})] == [ANY]


def test_the_table_of_tree_md_is_the_registry() -> None:
    assert docs_tables.render(TREE) == TREE, "run: python tests/docs_tables.py"
    assert "<!-- generated: tree -->" in TREE


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_every_reserved_name_is_documented(name: str) -> None:
    assert f"`{name}`" in TREE
