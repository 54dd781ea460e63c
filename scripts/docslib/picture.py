"""Draw a terminal in which commands are typed and answered, from a real run, as an SVG whose lines appear one by one.

The run is `STEPS`, in a home of its own on a folder. Needs the project's .venv: rich draws the terminal.
"""

from __future__ import annotations

import re
import sys
import tempfile
from io import StringIO
from pathlib import Path

from play import Shell, environment_of, unmount_below
from rich.console import Console
from rich.text import Text

WIDTH = 92
PAUSE, LINE = 1.3, 0.12
"""Seconds before a command is answered, and between two lines of an answer."""
LAST = 6.0
"""Seconds for which the whole stays before it begins anew."""
BEFORE = (
    "mkdir -p ~/memory ~/laptop && LIVEMEMFS_AGENT=claude livememfs mount ~/memory && mkdir ~/memory/shop",
    "LIVEMEMFS_HOST=laptop livememfs mount --cache ~/laptop-cache ~/laptop; cd ~/memory",
)
STEPS = (
    ("# Monday, at your desk: an agent decides something, and writes a file.", ""),
    ("", 'echo "Our database is Postgres: one server less to run." > shop/live/decision-database.md'),
    ("", "cat shop/live/decision-database.md"),
    ("# Tuesday, on your laptop: another agent is asked. Its hook asks the memory.", "cd ~/laptop; sleep 3"),
    ("", 'exec 3<>shop/.recall; echo "Which database do we use?" >&3; cat <&3; exec 3>&-'),
)
"""A remark, and a command; with a remark the command is not shown."""


def typed(home: Path) -> list[tuple[float, Text]]:
    """Each line of the picture, and the second at which it appears."""
    shell = Shell(home, environment_of(home, str(Path(sys.executable).parent) + ":/usr/bin:/bin", []), home)
    for command in BEFORE:
        shell.type(command)
    lines: list[tuple[float, Text]] = []
    now = 0.3
    for remark, command in STEPS:
        printed = shell.type(command)[0] if command else ""
        if remark:
            lines += [(now, Text("")), (now, Text(remark, "dim"))] if lines else [(now, Text(remark, "dim"))]
            now += PAUSE
            continue
        shell.type("until grep -q Postgres shop/search/database.md; do sleep 0.1; done")  # the index is made meanwhile
        lines.append((now, Text.assemble(("$ ", "green"), (command, "bold"))))
        now += PAUSE
        for line in printed.strip("\n").splitlines():
            lines.append((now, Text(line, "cyan" if "Postgres" in line else "")))
            now += LINE
        now += PAUSE
    shell.type("cd; livememfs umount ~/laptop; livememfs umount ~/memory")
    shell.end()
    return lines


def drawn(lines: list[tuple[float, Text]]) -> str:
    """The lines as an SVG. Where nothing moves (a reader wants it so, or a program cannot), all of them are there."""
    console = Console(record=True, width=WIDTH, file=StringIO(), force_terminal=True)
    rows: list[float] = []
    for at, text in lines:
        rows += [at] * len(text.wrap(console, WIDTH)) or [at]
        console.print(text, soft_wrap=False)
    svg = console.export_svg(title="livememfs", unique_id="cast")
    whole = max(rows) + LAST
    rules = "".join(
        f".cast-row-{row}{{animation:cast-{row} {whole:.1f}s step-end infinite}}"
        f"@keyframes cast-{row}{{0%{{opacity:0}}{100 * at / whole:.2f}%{{opacity:1}}}}"
        for row, at in enumerate(rows)
    )
    svg = re.sub(r'(<text )(class="([^"]*)"([^>]*)clip-path="url\(#cast-line-(\d+)\)")', _classed, svg)
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)  # no picture of ours fetches anything
    return svg.replace("</style>", f"@media (prefers-reduced-motion:no-preference){{{rules}}}</style>", 1)


def _classed(match: re.Match[str]) -> str:
    return f'{match[1]}class="{match[3]} cast-row-{match[5]}"{match[4]}clip-path="url(#cast-line-{match[5]})"'


def main() -> None:
    """Write the picture to the file that is named."""
    to = Path(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="livememfs-home.", ignore_cleanup_errors=True) as room:
        try:
            svg = drawn(typed(Path(room)))
        finally:
            unmount_below(Path(room))
    to.parent.mkdir(parents=True, exist_ok=True)
    to.write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")


if __name__ == "__main__":
    main()
