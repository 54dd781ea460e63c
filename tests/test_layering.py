"""The house rules that a machine can check: who imports whom, who may use what, how large things get.

The layers are those of the design; everything is read from the source with `ast`, nothing is imported.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

PACKAGE = Path(__file__).resolve().parents[1] / "livememfs"
LAYERS = (
    "text", "records", "code", "store", "cache", "llm", "recall", "spaces", "memories", "observing", "importing",
    "runs", "tree", "mirror", "fuse", "agents", "serve", "app", "cli",
)  # fmt: skip
FOR_ALL = {"errors", "clock", "concurrency", "environment", "private", "shown"}
MAX_MODULE_LINES = 500
MAX_FUNCTION_LINES = 60
MAX_FILES = 25
MAX_METHODS = 30
ONLY_IN = {
    "pyfuse3": ("livememfs/fuse/",),
    "watchfiles": ("livememfs/mirror/watching.py",),
    "boto3": ("livememfs/store/s3_address.py",),
    "botocore": ("livememfs/store/s3",),
    "frontmatter": ("livememfs/text/frontmatter.py",),
    "yaml": ("livememfs/text/frontmatter.py", "livememfs/agents/install/textparts.py"),
    "openai": ("livememfs/llm/client.py",),
    "psycopg": ("livememfs/recall/postgres/",),
    "onnxruntime": ("livememfs/recall/embed/model.py",),
    "tokenizers": ("livememfs/recall/embed/foldermodel.py",),
    "tantivy": ("livememfs/recall/index/lexical.py", "livememfs/recall/index/words.py"),
    "cheroot": ("livememfs/serve/dav/server.py",),
    "wsgidav": ("livememfs/serve/dav/",),
    "hypercorn": ("livememfs/serve/connections.py",),
    "mcp": ("livememfs/serve/",),
    "starlette": ("livememfs/serve/", "livememfs/app/serving.py"),
    "prometheus_client": ("livememfs/serve/metrics.py",),
    "markdown_it": ("livememfs/text/headings.py", "livememfs/serve/web/markdown.py"),
    "nh3": ("livememfs/serve/web/markdown.py",),
    "jinja2": ("livememfs/serve/web/render.py",),
    "pygments": ("livememfs/serve/web/markdown.py",),
}

READS_JSON = {
    "livememfs/text/foreign.py",  # the one reader of what anybody may have written
    "livememfs/text/frontmatter.py",  # texts of a form that was matched
    "livememfs/text/privacy/credentials.py",  # the head of what may be a token, in a text
    # what this machine keeps for itself
    "livememfs/cache/catalog.py", "livememfs/cache/journal/operation.py", "livememfs/mirror/place.py",
    "livememfs/recall/index/table.py",
    "livememfs/recall/index/snapshot.py", "livememfs/recall/postgres/records.py", "livememfs/cli/mounting/mounts.py",
    "livememfs/agents/install/jsontext.py", "livememfs/agents/install/record.py",
    # what somebody asks, and what a model or a daemon answers
    "livememfs/agents/contract.py", "livememfs/tree/space/sessions.py",
    "livememfs/tree/exchange.py", "livememfs/runs/options.py", "livememfs/observing/reply.py",
    "livememfs/serve/sock.py", "livememfs/serve/web/overview.py", "livememfs/serve/web/order.py",
    "livememfs/serve/web/events.py", "livememfs/cli/mounting/mount.py",
    "livememfs/cli/runs.py", "livememfs/cli/selftest.py", "livememfs/cli/mounting/status.py",
    "livememfs/testing/llm.py",
    "livememfs/llm/reply.py", "livememfs/llm/command.py", "livememfs/records/turn.py", "livememfs/records/schedule.py",
    "livememfs/cli/checks/agents.py", "livememfs/cli/checks/audit.py",
}  # fmt: skip
"""Who may read JSON without the limits of `text/foreign`: none of it comes from the bucket."""

MODULES = sorted(PACKAGE.rglob("*.py"))
FUNCTIONS: Any = (ast.FunctionDef, ast.AsyncFunctionDef)


def name_of(path: Path) -> str:
    """`livememfs/store/s3.py`."""
    return path.relative_to(PACKAGE.parent).as_posix()


@cache
def parsed(path: Path) -> ast.Module:
    """The module's syntax tree."""
    return ast.parse(path.read_text(), str(path))


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Every node of it."""
    return tuple(ast.walk(parsed(path)))


def every(kind: Any) -> Iterator[tuple[Path, Any]]:
    """Each node of a kind in the whole package, with its module."""
    for path in MODULES:
        yield from ((path, node) for node in nodes(path) if isinstance(node, kind))


@cache
def imported(path: Path) -> list[str]:
    """The full names that a module imports; `from a import b` gives `a` and `a.b`, since either may be the module."""
    names = []
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{name_of(path)}:{node.lineno} imports relatively"
            names += [str(node.module), *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names


def part_of(name: str) -> str | None:
    """The top part of our own package in a dotted name: `livememfs.store.s3` is in `store`."""
    first, *rest = name.split(".")
    return rest[0] if first == "livememfs" and rest and not rest[0].startswith("__") else None


def own_part(path: Path) -> str:
    """The part a module belongs to."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def own_imports() -> Iterator[tuple[Path, str]]:
    """Each import of one part of the package by a module of another."""
    for path in MODULES:
        for part in sorted({part for name in imported(path) if (part := part_of(name))} - {own_part(path)}):
            yield path, part


def test_every_part_of_the_package_has_a_place() -> None:
    """A new directory or module at the top must be given its layer here first."""
    known = {*LAYERS, *FOR_ALL, "config", "log", "testing", "__init__", "__main__"}

    assert {own_part(path) for path in MODULES} <= known


def test_no_module_imports_a_higher_layer() -> None:
    rank = {layer: number for number, layer in enumerate(LAYERS)}

    bad = [
        f"{name_of(path)} imports {part}"
        for path, part in own_imports()
        if own_part(path) in rank and part in rank and rank[part] > rank[own_part(path)]
    ]

    assert bad == []


def test_what_runs_share_knows_no_kind_of_run_and_no_kind_another() -> None:
    """So a new kind is a folder of its own, and a line in the one module that names them all."""
    runs, composition = PACKAGE / "runs", PACKAGE / "runs/kinds.py"
    kinds = {path.parent.name for path in runs.glob("*/__init__.py")}

    bad = [
        f"{name_of(path)} imports {name}"
        for path in sorted(runs.rglob("*.py"))
        for name in imported(path)
        if (parts := name.split("."))[:2] == ["livememfs", "runs"]
        and set(parts[2:3]) & (kinds - {path.relative_to(runs).parts[0]})
        and path != composition
    ]
    of_all = {path for path in MODULES if "livememfs.runs.kinds" in imported(path)}

    assert bad == []
    assert {path.parent for path in of_all} == {runs}, "a kind gets at the others by what names them all"


ALLOWED = {
    "text": {"errors"},
    "records": {"errors", "text"},
    "log": {"shown", "text"},  # a line of the log has nothing private in it
    **dict.fromkeys(FOR_ALL, FOR_ALL),  # those stand below everything: they import nothing of ours but each other
}
"""The parts of the package that one part may import, where the order of layers does not say enough."""
USERS = {
    "log": {"cli"},  # commands alone say where the log goes
    "config": {"app", "cli", "testing"},
    "environment": {"app", "cli", "config"},
    "testing": set(),  # nothing that we ship needs the doubles
}
"""The parts of the package that may import one part."""


def test_some_parts_import_few_others_and_some_are_imported_by_few() -> None:
    bad = [
        f"{name_of(path)} imports {part}"
        for path, part in own_imports()
        if part not in ALLOWED.get(own_part(path), {part}) or own_part(path) not in USERS.get(part, {own_part(path)})
    ]

    assert bad == []
    assert {part for path, part in own_imports() if own_part(path) == "log"} == ALLOWED["log"]
    assert {own_part(path) for path, part in own_imports() if part == "log"} == USERS["log"]


def test_names_of_metadata_stand_in_one_module_and_in_the_docs() -> None:
    own = PACKAGE / "records/metadata.py"
    texts = [(path, node) for path, node in every(ast.Constant) if isinstance(node.value, str)]
    names = {node.value for path, node in texts if path == own and re.fullmatch("livememfs-[a-z0-9]+", node.value)}
    elsewhere = [
        f"{name_of(path)}:{node.lineno} has {node.value}" for path, node in texts if path != own and node.value in names
    ]
    documented = set(
        re.findall(r"^\| `(livememfs-[a-z0-9]+)` \|", (PACKAGE.parent / "docs/bucket.md").read_text(), re.M)
    )

    assert elsewhere == []
    assert documented == names


@pytest.mark.parametrize("library", sorted(ONLY_IN))
def test_a_library_stays_behind_its_one_module(library: str) -> None:
    users = {name_of(path) for path in MODULES for name in imported(path) if name.split(".")[0] == library}
    strangers = {user for user in users if not user.startswith(ONLY_IN[library])}

    assert strangers == set()


def test_only_one_module_reads_the_environment() -> None:
    reading = {("os", "environ"), ("os", "getenv"), ("os", "environb")}

    assert [place for place in _uses_of_os(reading) if not place.startswith("livememfs/environment.py")] == []


def test_the_environment_is_written_for_one_library_alone() -> None:
    """onnxruntime looks for its switch while it is imported; no layer above it can be relied on to come first."""
    writing = {("os", "putenv"), ("os", "unsetenv")}

    assert _uses_of_os(writing) == ["livememfs/recall/embed/model.py"]


def _uses_of_os(wanted: set[tuple[str, str]]) -> list[str]:
    """The modules that use one of these, once for each use."""
    used = [
        name_of(path)
        for path, node in every(ast.Attribute)
        if isinstance(node.value, ast.Name) and (node.value.id, node.attr) in wanted
    ]
    return used + [
        name_of(path)
        for path, node in every(ast.ImportFrom)
        for alias in node.names
        if (node.module, alias.name) in wanted
    ]


def test_the_kernels_names_are_never_compared_with_text() -> None:
    """pyfuse3 gives names as bytes; `name == "."` is then false for ever, and nothing fails."""
    bad = []
    for path, node in every(ast.Compare):
        sides = [node.left, *node.comparators] if own_part(path) == "fuse" else []
        values = [inner for side in sides for inner in getattr(side, "elts", [side])]
        if any(isinstance(value, ast.Constant) and value.value in (".", "..") for value in values):
            bad.append(f"{name_of(path)}:{node.lineno}")

    assert bad == []


def test_every_module_says_what_it_is() -> None:
    bad = [name_of(path) for path in MODULES if not (ast.get_docstring(parsed(path)) or "").strip()]

    assert bad == []


def test_no_module_and_no_function_grows_without_limit() -> None:
    bad = [name_of(path) for path in MODULES if len(path.read_text().splitlines()) > MAX_MODULE_LINES]
    bad += [
        f"{name_of(path)}: {node.name}"
        for path, node in every(FUNCTIONS)
        if node.end_lineno - node.lineno >= MAX_FUNCTION_LINES
    ]

    assert bad == []


def test_every_function_is_annotated() -> None:
    """mypy checks that annotations are right; this one that test doubles and scripts we ship have them at all."""
    assert [f"{name_of(path)}:{node.lineno}" for path, node in every(FUNCTIONS) if node.returns is None] == []


def test_json_of_the_bucket_has_one_reader() -> None:
    """Who reads JSON by itself is listed above, and nobody is listed who does not."""
    reading = ("load", "loads", "JSONDecoder")
    readers = {
        name_of(path)
        for path, node in every(ast.Attribute)
        if node.attr in reading and isinstance(node.value, ast.Name) and node.value.id == "json"
    }
    assert readers == READS_JSON


def test_a_class_name_stands_for_one_thing_in_the_whole_package() -> None:
    """Whoever reads `Reply` must not have to look which of three it is."""
    named: dict[str, list[str]] = {}
    for path in MODULES:
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                named.setdefault(node.name, []).append(name_of(path))

    assert {name: places for name, places in named.items() if len(places) > 1} == {}


def test_no_folder_holds_more_than_can_be_looked_over() -> None:
    counted = Counter(path.parent for path in MODULES if path.name != "__init__.py")

    assert {name_of(folder): number for folder, number in counted.items() if number > MAX_FILES} == {}


def test_no_class_does_too_many_things() -> None:
    """Those of `FuseOperations` are the kernel's requests: pyfuse3 asks for one class that has them all."""
    methods = {
        f"{name_of(path)}: {node.name}": sum(isinstance(inner, FUNCTIONS) for inner in node.body)
        for path, node in every(ast.ClassDef)
        if node.name != "FuseOperations"
    }

    assert {name: number for name, number in methods.items() if number > MAX_METHODS} == {}
