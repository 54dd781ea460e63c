"""What of the documents comes from the code: settings, errors, the command line, private text, the paths of a mount,
metrics.

`tests/test_docs.py` fails while a table differs from the code; running this file as a program writes them anew.
"""

from __future__ import annotations

import errno
import inspect
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import typer.main

from livememfs import config, errors
from livememfs.cli.main import app
from livememfs.config import Settings
from livememfs.errors import LiveMemError
from livememfs.serve import metrics
from livememfs.serve.tools import TOOLS
from livememfs.text.privacy.credentials import KINDS
from livememfs.tree import registry

DOCS = Path(__file__).resolve().parents[1] / "docs"
OPERATIONS = DOCS / "operations.md"
TREE = DOCS / "tree.md"
MCP = DOCS / "mcp.md"
CLI = DOCS / "cli.md"
METRICS = DOCS / "metrics.md"
PAGES = (OPERATIONS, TREE, MCP, CLI, METRICS)
BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def table(heading: str, lines: Iterable[str]) -> str:
    """A table of Markdown, by its first line and those below the rule."""
    return "\n".join([heading, re.sub(r"[^|]+", "---", heading), *lines]) + "\n"


def settings_table() -> str:
    """Every setting: variable, key of the file, default, meaning."""
    lines = []
    for name, variable in config.setting_names().items():
        field = Settings.model_fields[name]
        default = f"`{field.default}`" if field.default != "" else ""
        lines.append(f"| `{variable}` | `{name}` | {default} | {field.description} |")
    return table("| variable | key in the file | default | meaning |", lines)


def errors_table() -> str:
    """Every error, in the order of the source: errno, exit code, meaning, what to do."""
    lines = []
    for kind in vars(errors).values():
        if not (inspect.isclass(kind) and issubclass(kind, LiveMemError)):
            continue
        meaning = inspect.cleandoc(kind.__doc__ or "").splitlines()[0]
        code = errno.errorcode[kind.errno]
        lines.append(f"| `{kind.__name__}` | {code} | {kind.exit_code} | {meaning} | {kind.what_to_do} |")
    return table("| error | errno | exit code | meaning | what to do |", lines)


def every_command() -> Iterator[tuple[str, Any]]:
    """Every command by its full name, in order."""
    for name, command in sorted(typer.main.get_command(app).commands.items()):  # type: ignore[attr-defined]  # a group, typer does not say
        below = getattr(command, "commands", None)
        for part, inner in sorted(below.items()) if below else [("", command)]:
            yield f"{name} {part}".strip(), inner


def commands() -> dict[str, str]:
    """Every command by its full name, with the first line of its help."""
    return {name: (command.help or "").strip().splitlines()[0] for name, command in every_command()}


def reference() -> str:
    """Every command: how it is called, what it does, its arguments and options. Those that all have come once."""
    each = dict(every_command())
    usual = set.intersection(*({names(option) for option in command.params} for command in each.values()))
    shared = [param for param in next(iter(each.values())).params if names(param) in usual]
    parts = [f"## Every command\n\n{_options(shared)}"] if shared else []
    for name, command in each.items():
        own = [param for param in command.params if names(param) not in usual]
        text = "\n\n".join(f"```sh\n{text}\n```" if typed else text for typed, text in paragraphs(command.help))
        parts.append(f"## livememfs {name}\n\n{text}\n" + (f"\n{_options(own)}" if own else ""))
    return "\n" + "\n".join(parts) + "\n"


def paragraphs(text: str | None) -> Iterator[tuple[bool, str]]:
    """The paragraphs of a help text, and whether each is an example as it is typed."""
    for part in inspect.cleandoc(text or "").split("\n\n"):
        typed = part.startswith("\b")
        yield typed, inspect.cleandoc(part.removeprefix("\b\n")) if typed else part


def names(param: Any) -> str:
    """An argument as it is called in a synopsis, or an option with its value."""
    if param.param_type_name == "argument":
        return str(param.metavar or param.name.upper())
    value = "" if getattr(param, "is_flag", False) or not param.metavar else f" {param.metavar}"
    return ", ".join([*param.opts, *param.secondary_opts]) + value


def _options(params: Iterable[Any]) -> str:
    lines = []
    for param in params:
        if getattr(param, "hidden", False):
            continue
        text = (getattr(param, "help", None) or "").replace("|", "\\|").replace("\n", " ")
        lines.append(f"| `{names(param)}` | {text} |")
    return table("| argument or option | meaning |", lines)


def metrics_table() -> str:
    """Every metric: name, kind, labels, meaning."""
    lines = []
    for figure in metrics.FIGURES:
        name = metrics.PREFIX + figure.name + ("_total" if figure.kind == "counter" else "")
        values = [*figure.values, *([metrics.OTHER] if figure.rest else [])]
        label = f"`{figure.label}`: {', '.join(values)}" if figure.label else ""
        lines.append(f"| `{name}` | {figure.kind} | {label} | {figure.help} |")
    return table("| metric | kind | labels | meaning |", lines)


def commands_table() -> str:
    """Every command in one line."""
    lines = (f"| `livememfs {name}` | {text} |" for name, text in commands().items())
    return table("| command | what it does |", lines)


def kinds_table() -> str:
    """Every kind of private text, with the mark that takes its place."""
    lines = (f"| `[redacted: {kind.name}]` | {kind.what} |" for kind in KINDS)
    return table("| mark | what it stands for |", ["| `[private]` | a `<private>` block |", *lines])


def tools_table() -> str:
    """Every tool of the MCP server: what it takes, whom it is for."""
    lines = []
    for tool in TOOLS:
        takes = ", ".join(f"`{field.name}`" if field.required else f"[`{field.name}`]" for field in tool.parameters)
        core = "yes" if tool.core else ""
        lines.append(f"| `{tool.name}` | {tool.purpose} | {takes} | {NEEDS.get(tool.name, tool.needs)} | {core} |")
    return table("| tool | what it does | takes | needs | core |", lines)


NEEDS = {"backup_restore": "admin", "backup_delete": "admin", "memory": "read; to change: write"}
"""Where it is not for the tool as a whole to say."""


TABLES = {
    "tools": tools_table,
    "settings": settings_table,
    "errors": errors_table,
    "commands": commands_table,
    "kinds": kinds_table,
    "tree": registry.table,
    "cli": reference,
    "metrics": metrics_table,
}


def render(text: str) -> str:
    """The page with every generated block written anew."""
    return BLOCK.sub(lambda match: f"{match[1]}{TABLES[match[2]]()}{match[4]}", text)


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(render(page.read_text()))
