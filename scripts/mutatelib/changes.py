"""Which changes can be made: each by an operator of cosmic-ray, at one place of one module.

Left out is what no test can notice, and what every test does: annotations, decorators, and what Python cannot read.
"""

from __future__ import annotations

import ast
import random
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path

from cosmic_ray import plugins
from cosmic_ray.ast import get_ast
from cosmic_ray.mutating import MutationVisitor

LEFT_OUT = ("BitOr", "RemoveDecorator", "Variable")
"""Parts of operators' names: `|` stands in annotations, without some decorators no module loads, and the last two need
arguments.
"""
IDENTITY = re.compile(r".*Operator_(?!Is)[^_]*_Is(Not)?")
"""`is` in place of `==` and the like: whether equal numbers are one object is an accident of Python."""
LARGE = re.compile(r"(?<![\w.])[\d_]{2,}")
NO_BEHAVIOUR = re.compile(r"\bTYPE_CHECKING\b|\bstrict=True\b")
"""Of a line that a type checker reads, or that holds a programmer to his word."""


@dataclass(frozen=True)
class Change:
    """One change: what an operator makes of the `occurrence`-th node that it fits."""

    path: str
    line: int
    operator: str
    occurrence: int

    def made(self, source: str) -> str | None:
        """The module with this change; None where it cannot be made: cosmic-ray replaces no `errors.NotFound`."""
        try:
            return MutationVisitor.mutate_code(source, plugins.get_operator(self.operator)(), self.occurrence)
        except AttributeError:
            return None


def operators() -> list[str]:
    """The operators that are used."""
    names = [name for name in plugins.operator_names() if not any(part in name for part in LEFT_OUT)]
    return [name for name in names if not IDENTITY.fullmatch(name)]


def changes_of(path: Path, root: Path) -> Iterator[Change]:
    """Every change of a module."""
    tree = get_ast(path.read_text())
    for name in operators():
        operator = plugins.get_operator(name)()
        occurrence = 0
        for node in _nodes(tree):
            for start, _ in operator.mutation_positions(node):
                yield Change(path.relative_to(root).as_posix(), start[0], name, occurrence)
                occurrence += 1


def _nodes(node: object) -> Iterator[object]:
    """The nodes in the order in which cosmic-ray visits them."""
    yield node
    for child in getattr(node, "children", ()):
        yield from _nodes(child)


def sample(modules: list[Path], root: Path, count: int, seed: int) -> list[Change]:
    """So many changes, each of another line, drawn evenly from the lines that can be changed; the same for a seed."""
    chance = random.Random(seed)
    by_line: dict[tuple[str, int], list[Change]] = defaultdict(list)
    for module in modules:
        for change in changes_of(module, root):
            by_line[change.path, change.line].append(change)
    lines = sorted(by_line)
    chance.shuffle(lines)
    drawn = (chance.choice(by_line[line]) for line in lines)
    return list(islice(filter(partial(_changes_something, root), drawn), count))


def _changes_something(root: Path, change: Change) -> bool:
    """Whether it leaves a module that Python reads, and reads otherwise.

    Left out too are `frozen` of a record, which mypy checks, and 4096 that becomes 4097: nobody would lose anything.
    """
    source = (root / change.path).read_text()
    if source.splitlines()[change.line - 1].lstrip().startswith("@"):
        return False
    of_words = change.operator in ("core/AddNot", "core/ReplaceTrueWithFalse")
    if of_words and NO_BEHAVIOUR.search(source.splitlines()[change.line - 1]):
        return False
    changed = change.made(source) or ""
    if "Number" in change.operator and LARGE.search(source.splitlines()[change.line - 1]):
        return False
    try:
        return ast.dump(ast.parse(changed)) != ast.dump(ast.parse(source))
    except SyntaxError:  # such as the `*` before parameters that are given by name
        return False
