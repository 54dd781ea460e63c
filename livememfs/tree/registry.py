"""Every path of a mount in one table: its kind, its permission bits, what writing does, what it means.

Owns the description of each path, and the access that makes a path visible. `docs/tree.md` contains this table. A test
walks a real tree and compares: it fails for a name that no row describes. Outside of the spaces, a path without a row
is visible to administrators only. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from livememfs.records import keys

if TYPE_CHECKING:
    from livememfs.records.access import Access
    from livememfs.tree.node import Kind

Need = Literal["nothing", "space", "bucket", "admin"]
"""The access that makes a path visible: none beyond the mount, because the content differs by caller; access to the
space that the path begins with; all spaces; all spaces, as their administrator."""

SPACE = "<space>"
PLACE = "<.name>"
ANY = "<path>"
_PLACEHOLDERS = {
    "<note>": r"(?!\.history(?:/|$))[^/]+",
    "<file>": r"[^/]+",
    "<.name>": r"\.(?!(?:livememfs|by|recent|history)$)[^/]+",
    "<run>": r"[0-9]+",
    "<view>": r"(?:type|subject|importance)",
    "<group>": r"[^/]+",
    "<age>": r"[0-9]+[smhdw]",
    "<relation>": r"(?:related_to|updates|contradicts|caused_by|result_of|part_of)",
    "<link>": r"[^/]+\.md",
    "<question>": r"(?!around:)[^/.][^/]*",
    "<id>": r"#?[0-9A-Za-z_-]+",
    "<event>": r"(?:[a-z]+\.)?[A-Za-z_]+",
    "<session>": r"[^/]+",
    "<result>": r"[0-9]{2,}-[^/]+\.md",
    "<bank path>": r".+",
    "<backup path>": r".+",
}


@dataclass(frozen=True)
class PathEntry:
    """One kind of path.

    :pattern: relative to the mount point; empty for the mount point itself. `<space>` is a directory that has a
              `_meta.json`, `<path>` every path that no other entry describes
    :mode:    permission bits, those of a new one where `kept`
    :kept:    whether the bits given at creation and by `chmod` are remembered
    :writing: what writing to it does, or the errno a writer gets
    :meaning: one line for people
    :need:    the access that makes the path visible; every entry outside of the spaces names it
    :asks:    whether a write is only a question: it changes nothing that is stored, so read permission is enough
    """

    pattern: str
    kind: Kind
    mode: int
    writing: str
    meaning: str
    need: Need = "space"
    kept: bool = False
    asks: bool = False

    def matches(self, path: str, spaces: Collection[str]) -> bool:
        """Whether this entry names `path`. False for `<path>`, which stands for all other paths."""
        if self.pattern == ANY:
            return False
        first, slash, rest = self.pattern.partition("/")
        if first == SPACE:
            space, path_slash, path_rest = path.partition("/")
            return space in spaces and path_slash == slash and _fits(rest, path_rest)
        return _fits(self.pattern, path)


def _fits(pattern: str, path: str) -> bool:
    return _compiled(pattern).fullmatch(path) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"(<[^>]+>)", pattern)
    return re.compile("".join(_PLACEHOLDERS.get(part) or re.escape(part) for part in parts))


REGISTRY = (
    PathEntry(
        "",
        "directory",
        0o755,
        "`mkdir` makes a space; other names, except `<.name>`: EPERM",
        "the mount point",
        "nothing",
    ),
    PathEntry(".livememfs", "directory", 0o555, "EROFS", "the state of the mount", "nothing"),
    PathEntry(".livememfs/status.json", "file", 0o444, "EROFS", "the mount's figures, one JSON object", "nothing"),
    PathEntry(".livememfs/metrics", "file", 0o444, "EROFS", "the same figures for Prometheus", "nothing"),
    PathEntry(
        ".livememfs/errors.ndjson",
        "file",
        0o444,
        "EROFS",
        "the last 1,000 errors, each with what to do",
        "nothing",
    ),
    PathEntry(
        ".livememfs/conflicts.ndjson",
        "file",
        0o444,
        "EROFS",
        "the last 1,000 conflicts in which both versions were kept",
        "nothing",
    ),
    PathEntry(
        ".livememfs/changes.ndjson",
        "file",
        0o444,
        "EROFS",
        "the last 1,000 changes of objects that this mount knows",
        "nothing",
    ),
    PathEntry(
        ".livememfs/journal.wait",
        "file",
        0o444,
        "EROFS",
        "a JSON line per second until every closed file is uploaded",
        "nothing",
    ),
    PathEntry(".livememfs/hooks", "directory", 0o555, "EROFS", "the hooks of agents in any project", "nothing"),
    PathEntry(
        ".livememfs/hooks/<event>",
        "file",
        0o644,
        "an event; what is read next is the answer",
        "one event of an agent, for the space of its project",
        "nothing",
    ),
    PathEntry(
        ".livememfs/recovered",
        "directory",
        0o700,
        "`rm` drops a file; else EROFS",
        "files that were open at a crash",
        "nothing",
    ),
    PathEntry(
        ".livememfs/recovered/<file>", "file", 0o400, "EROFS", "the bytes of one file, up to a second old", "nothing"
    ),
    PathEntry(".livememfs/rejected", "directory", 0o500, "EROFS", "refused replies of a model, for a day", "bucket"),
    PathEntry(
        ".livememfs/rejected/<file>",
        "file",
        0o400,
        "EROFS",
        "one refused reply, after time, space and reason",
        "bucket",
    ),
    PathEntry(
        "search", "directory", 0o555, "EROFS", "the search in all spaces, used like the search of a space", "nothing"
    ),
    PathEntry("search/<question>", "directory", 0o555, "EROFS", "the results from all spaces, best first", "nothing"),
    PathEntry("search/<question>/<result>", "symlink", 0o777, "EROFS", "one result", "nothing"),
    PathEntry("search/<question>.md", "file", 0o444, "EROFS", "the results on one page", "nothing"),
    PathEntry("search/.explain", "directory", 0o555, "EROFS", "like `.explain` of a space", "nothing"),
    PathEntry("search/.explain/<question>.md", "file", 0o444, "EROFS", "why the answer is in this order", "nothing"),
    PathEntry("_backups", "directory", 0o755, "EROFS", "the backups; absent without a backup", "admin"),
    PathEntry(
        "_backups/<backup path>",
        "directory",
        0o755,
        "EROFS",
        "a space, a backup, or a folder in a backup",
        "admin",
    ),
    PathEntry("_backups/<backup path>", "file", 0o644, "EROFS", "a file of a backup", "admin"),
    PathEntry(PLACE, "directory", 0o755, "EROFS", "a sandbox makes it to mount on; exists, is not listed", "nothing"),
    PathEntry("<space>", "directory", 0o755, "ordinary files and directories, except the names below", "a space"),
    PathEntry("<space>/README.md", "file", 0o444, "EROFS", "how an agent uses this space"),
    PathEntry("<space>/context.md", "file", 0o444, "EROFS", "context for a model; CLAUDE.md and rule files import it"),
    PathEntry(
        "<space>/_meta.json", "file", 0o644, "EROFS", "who made the space, when, and how many notes were consolidated"
    ),
    PathEntry("<space>/_rules.md", "file", 0o644, "seals them once; then EROFS", "which files the bank has"),
    PathEntry("<space>/_synthesis.md", "file", 0o644, "EROFS", "a page that the last consolidation wrote for the next"),
    PathEntry(
        "<space>/live", "directory", 0o755, "files only; links, and directories except `<.name>`: EPERM", "the notes"
    ),
    PathEntry(
        f"<space>/live/{PLACE}", "directory", 0o755, "EROFS", "a sandbox makes it to mount on; exists, is not listed"
    ),
    PathEntry(
        "<space>/live/<note>", "file", 0o644, "a note, sealed at close", "a note, a draft, or a file of an editor"
    ),
    PathEntry("<space>/bank", "directory", 0o755, "EROFS", "what is known"),
    PathEntry("<space>/bank/<bank path>", "file", 0o644, "EROFS", "a bank file, written by consolidation"),
    PathEntry("<space>/bank/<bank path>", "directory", 0o755, "EROFS", "a folder of the bank"),
    *(
        entry
        for folder, meaning in (
            ("memories", "what is true"),
            ("self", "who the agent is"),
            ("goals", "what the agent wants"),
        )
        for entry in (
            PathEntry(
                f"<space>/{folder}",
                "directory",
                0o755,
                "files only; links, and directories except `<.name>`: EPERM",
                meaning,
            ),
            PathEntry(f"<space>/{folder}/{PLACE}", "directory", 0o755, "EROFS", "a sandbox makes it, as in `live/`"),
            PathEntry(
                f"<space>/{folder}/<note>", "file", 0o644, "a memory, sealed at close; `rm` forgets it", "a memory"
            ),
            PathEntry(
                f"<space>/{folder}/<note>.links", "directory", 0o755, "EPERM", "its links; exists, is not listed"
            ),
            PathEntry(
                f"<space>/{folder}/<note>.links/<relation>",
                "directory",
                0o755,
                "`ln -s` makes a link; else EPERM",
                "the memories of this relation",
            ),
            PathEntry(
                f"<space>/{folder}/<note>.links/<relation>/<link>",
                "symlink",
                0o777,
                "`rm` removes the link",
                "a memory",
            ),
            PathEntry(f"<space>/{folder}/.by", "directory", 0o555, "EROFS", "the same memories, sorted"),
            PathEntry(f"<space>/{folder}/.by/<view>", "directory", 0o555, "EROFS", "by type, subject or importance"),
            PathEntry(
                f"<space>/{folder}/.by/<view>/<group>",
                "directory",
                0o555,
                "EROFS",
                "the memories of one type, subject or importance",
            ),
            PathEntry(f"<space>/{folder}/.by/<view>/<group>/<link>", "symlink", 0o777, "EROFS", "a memory"),
            PathEntry(f"<space>/{folder}/.recent", "directory", 0o555, "EROFS", "the same memories, by age"),
            PathEntry(
                f"<space>/{folder}/.recent/<age>",
                "directory",
                0o555,
                "EROFS",
                "memories of at most this age; `6h` is listed",
            ),
            PathEntry(f"<space>/{folder}/.recent/<age>/<link>", "symlink", 0o777, "EROFS", "a memory"),
            PathEntry(f"<space>/{folder}/.history", "directory", 0o755, "EROFS", "forgotten and replaced memories"),
            PathEntry(
                f"<space>/{folder}/.history/<bank path>",
                "directory",
                0o755,
                "EROFS",
                "the old versions of one memory, by its id",
            ),
            PathEntry(
                f"<space>/{folder}/.history/<bank path>",
                "file",
                0o644,
                "EROFS",
                "an old version, named by the time of its end",
            ),
        )
    ),
    PathEntry("<space>/.consolidate", "file", 0o644, "asks for a run", "the state of consolidation, one JSON object"),
    PathEntry(
        "<space>/.consolidate.wait", "file", 0o444, "EROFS", "a JSON line about once a second until the run ends"
    ),
    PathEntry(
        "<space>/.consolidate.diff", "file", 0o444, "EROFS", "the changes of the last dry run; absent without one"
    ),
    PathEntry("<space>/.digest", "file", 0o644, "asks for a digest", "the state of digests, one JSON object"),
    PathEntry("<space>/.digest.wait", "file", 0o444, "EROFS", "a JSON line about once a second until the digest ends"),
    PathEntry(
        "<space>/.recall",
        "file",
        0o644,
        "a message; what is read next is the answer",
        "what to know before answering",
        asks=True,
    ),
    PathEntry("<space>/.hooks", "directory", 0o555, "EROFS", "the hooks of coding agents"),
    PathEntry(
        "<space>/.hooks/<event>", "file", 0o644, "an event; what is read next is the answer", "one event of an agent"
    ),
    PathEntry("<space>/observations", "directory", 0o755, "EROFS", "the observations of agents at work"),
    PathEntry(
        "<space>/observations/<note>",
        "file",
        0o644,
        "`rm` forgets it; else EROFS",
        "an observation; `<id>.md` is another name of it",
    ),
    PathEntry("<space>/sessions", "directory", 0o755, "`mkdir` begins a session; else EPERM", "the sessions of agents"),
    PathEntry("<space>/sessions/<session>", "directory", 0o755, "EROFS", "a session"),
    PathEntry("<space>/sessions/<session>/session.json", "file", 0o644, "EROFS", "its agent, progress and cost"),
    PathEntry("<space>/sessions/<session>/prompts.ndjson", "file", 0o644, "each line is a prompt", "its prompts"),
    PathEntry("<space>/sessions/<session>/summary.md", "file", 0o644, "`rm` forgets it; else EROFS", "its summary"),
    PathEntry(
        "<space>/sessions/<session>/told.json",
        "file",
        0o644,
        "EROFS",
        "ids of what the session was told, each with its turn",
    ),
    PathEntry(
        "<space>/sessions/<session>/events",
        "directory",
        0o755,
        "files only, no folders: else EPERM",
        "events are written here",
    ),
    PathEntry(
        "<space>/sessions/<session>/events/<file>",
        "file",
        0o644,
        "an event, taken at close",
        "events written last, for a while",
    ),
    PathEntry(
        "<space>/sessions/<session>/.stop", "file", 0o644, "asks for a summary", "how many events are in each state"
    ),
    PathEntry("<space>/.history", "directory", 0o555, "EROFS", "the runs, by number"),
    PathEntry("<space>/.history/<run>", "directory", 0o555, "EROFS", "the bank as it was after one run"),
    PathEntry("<space>/.history/<run>/<bank path>", "file", 0o444, "EROFS", "a bank file as it was after that run"),
    PathEntry("<space>/.history/<run>/<bank path>", "directory", 0o555, "EROFS", "a folder of the bank as it was"),
    PathEntry("<space>/.why", "directory", 0o555, "EROFS", "the sources of the bank"),
    PathEntry("<space>/.why/<bank path>", "file", 0o444, "EROFS", "the source notes of each part of this bank file"),
    PathEntry("<space>/.why/<bank path>", "directory", 0o555, "EROFS", "a folder of the bank"),
    PathEntry("<space>/search", "directory", 0o555, "EROFS", "the search: open a question as a name; listed empty"),
    PathEntry("<space>/search/<question>", "directory", 0o555, "EROFS", "the results, best first"),
    PathEntry("<space>/search/<question>/<result>", "symlink", 0o777, "EROFS", "one result"),
    PathEntry(
        "<space>/search/<question>.md", "file", 0o444, "EROFS", "the results on one page of at most 2,000 tokens"
    ),
    PathEntry("<space>/search/around:<id>.md", "file", 0o444, "EROFS", "the observations before and after this one"),
    PathEntry("<space>/search/.explain", "directory", 0o555, "EROFS", "open a question as a name; listed empty"),
    PathEntry("<space>/search/.explain/<question>.md", "file", 0o444, "EROFS", "why the answer is in this order"),
    PathEntry(ANY, "file", 0o644, "stored at close", "an ordinary file, one object", kept=True),
    PathEntry(
        ANY, "directory", 0o755, "ordinary files and directories", "an ordinary directory, one prefix", kept=True
    ),
    PathEntry(ANY, "symlink", 0o777, "", "a symbolic link, one small object"),
)
"""The entries, in the order in which they are documented."""

_ORDINARY = [entry for entry in REGISTRY if entry.pattern == ANY]
_QUESTIONS = [entry for entry in REGISTRY if entry.asks]
_APART: dict[str, list[PathEntry]] = {keys.SYSTEM: []}
"""The entries outside of the spaces, by the first part of the path."""
for _entry in REGISTRY:
    if not _entry.pattern.startswith("<"):
        _APART.setdefault(_entry.pattern.partition("/")[0], []).append(_entry)


def is_there(path: str, access: Access) -> bool:
    """Whether a path that exists is visible with this access."""
    top = path.partition("/")[0]
    if _fits(PLACE, path):
        return access.may("read")
    if top not in _APART:
        return access.sees(top)
    needs = {entry.need for entry in _APART[top] if entry.matches(path, ())}
    if needs == {"nothing"}:
        return access.may("read")
    return access.everywhere if needs == {"bucket"} else access.admin


def asks(path: str, spaces: Collection[str]) -> bool:
    """Whether a write to a path is only a question. `spaces`: as for `find`."""
    return any(entry.matches(path, spaces) for entry in _QUESTIONS)


def find(path: str, kind: Kind, spaces: Collection[str]) -> list[PathEntry]:
    """The entries for a path of this kind: exactly one, unless the registry has a gap or a duplicate.

    :spaces: the names of all spaces
    """
    named = [entry for entry in REGISTRY if entry.matches(path, spaces)]
    return [entry for entry in named or _ORDINARY if entry.kind == kind]


def table() -> str:
    """The registry as a Markdown table."""
    lines = ["| path | kind | mode | writing | what it is |", "|---|---|---|---|---|"]
    for entry in REGISTRY:
        mode = f"{entry.mode:04o}{', kept' if entry.kept else ''}"
        path = entry.pattern or "/"
        lines.append(f"| `{path}` | {entry.kind} | {mode} | {entry.writing} | {entry.meaning} |")
    return "\n".join(lines) + "\n"
