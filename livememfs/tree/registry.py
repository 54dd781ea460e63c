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
from typing import Literal

from livememfs.records import keys
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
    "<.name>": r"\.(?!(?:livememfs|by|recent|history|contradictions|stale)$)[^/]+",
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


def _read_only(pattern: str, kind: Kind, meaning: str, need: Need = "space") -> PathEntry:
    """An entry without the permission to write: a computed file or directory, or a link."""
    return PathEntry(pattern, kind, {"file": 0o444, "directory": 0o555, "symlink": 0o777}[kind], "EROFS", meaning, need)


def _usual(pattern: str, kind: Kind, writing: str, meaning: str, need: Need = "space") -> PathEntry:
    """An entry with the usual permission bits of a file or directory."""
    return PathEntry(pattern, kind, 0o644 if kind == "file" else 0o755, writing, meaning, need)


REGISTRY = (
    _usual(
        "", "directory", "`mkdir` makes a space; other names, except `<.name>`: EPERM", "the mount point", "nothing"
    ),
    _read_only(".livememfs", "directory", "the state of the mount", "nothing"),
    _read_only(".livememfs/status.json", "file", "the mount's figures, one JSON object", "nothing"),
    _read_only(".livememfs/metrics", "file", "the same figures for Prometheus", "nothing"),
    _read_only(
        ".livememfs/audit.md", "file", "what is told in vain, said twice, or never told, and what to do", "nothing"
    ),
    _read_only(".livememfs/audit.json", "file", "the same for programs, by space", "nothing"),
    _read_only(".livememfs/errors.ndjson", "file", "the last 1,000 errors, each with what to do", "nothing"),
    _read_only(
        ".livememfs/conflicts.ndjson", "file", "the last 1,000 conflicts in which both versions were kept", "nothing"
    ),
    _read_only(
        ".livememfs/changes.ndjson", "file", "the last 1,000 changes of objects that this mount knows", "nothing"
    ),
    _read_only(
        ".livememfs/journal.wait", "file", "a JSON line per second until every closed file is uploaded", "nothing"
    ),
    _read_only(".livememfs/hooks", "directory", "the hooks of agents in any project", "nothing"),
    _usual(
        ".livememfs/hooks/<event>",
        "file",
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
    _read_only("search", "directory", "the search in all spaces, used like the search of a space", "nothing"),
    _read_only("search/<question>", "directory", "the results from all spaces, best first", "nothing"),
    _read_only("search/<question>/<result>", "symlink", "one result", "nothing"),
    _read_only("search/<question>.md", "file", "the results on one page", "nothing"),
    _read_only("search/.explain", "directory", "like `.explain` of a space", "nothing"),
    _read_only("search/.explain/<question>.md", "file", "why the answer is in this order", "nothing"),
    _usual("_backups", "directory", "EROFS", "the backups; absent without a backup", "admin"),
    _usual("_backups/<backup path>", "directory", "EROFS", "a space, a backup, or a folder in a backup", "admin"),
    _usual("_backups/<backup path>", "file", "EROFS", "a file of a backup", "admin"),
    _usual(PLACE, "directory", "EROFS", "a sandbox makes it to mount on; exists, is not listed", "nothing"),
    _usual("<space>", "directory", "ordinary files and directories, except the names below", "a space"),
    _read_only("<space>/README.md", "file", "how an agent uses this space"),
    _read_only("<space>/context.md", "file", "context for a model; CLAUDE.md and rule files import it"),
    _usual("<space>/_meta.json", "file", "EROFS", "who made the space, when, and how many notes were consolidated"),
    _usual("<space>/_rules.md", "file", "seals them once; then EROFS", "which files the bank has"),
    _usual("<space>/_synthesis.md", "file", "EROFS", "a page that the last consolidation wrote for the next"),
    _usual("<space>/live", "directory", "files only; links, and directories except `<.name>`: EPERM", "the notes"),
    _usual(f"<space>/live/{PLACE}", "directory", "EROFS", "a sandbox makes it to mount on; exists, is not listed"),
    _usual("<space>/live/<note>", "file", "a note, sealed at close", "a note, a draft, or a file of an editor"),
    _usual("<space>/bank", "directory", "EROFS", "what is known"),
    _usual("<space>/bank/<bank path>", "file", "EROFS", "a bank file, written by consolidation"),
    _usual("<space>/bank/<bank path>", "directory", "EROFS", "a folder of the bank"),
    *(
        entry
        for folder, meaning in (
            ("memories", "what is true"),
            ("self", "who the agent is"),
            ("goals", "what the agent wants"),
        )
        for entry in (
            _usual(
                f"<space>/{folder}", "directory", "files only; links, and directories except `<.name>`: EPERM", meaning
            ),
            _usual(f"<space>/{folder}/{PLACE}", "directory", "EROFS", "a sandbox makes it, as in `live/`"),
            _usual(f"<space>/{folder}/<note>", "file", "a memory, sealed at close; `rm` forgets it", "a memory"),
            _usual(f"<space>/{folder}/<note>.links", "directory", "EPERM", "its links; exists, is not listed"),
            _usual(
                f"<space>/{folder}/<note>.links/<relation>",
                "directory",
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
            _read_only(f"<space>/{folder}/.by", "directory", "the same memories, sorted"),
            _read_only(f"<space>/{folder}/.by/<view>", "directory", "by type, subject or importance"),
            _read_only(
                f"<space>/{folder}/.by/<view>/<group>", "directory", "the memories of one type, subject or importance"
            ),
            _read_only(f"<space>/{folder}/.by/<view>/<group>/<link>", "symlink", "a memory"),
            _read_only(f"<space>/{folder}/.contradictions", "directory", "pairs of memories that cannot both hold"),
            _read_only(f"<space>/{folder}/.contradictions/<link>", "file", "such a pair, with dates"),
            _read_only(f"<space>/{folder}/.stale", "directory", "memories whose code has changed or is gone"),
            _read_only(f"<space>/{folder}/.stale/<link>", "file", "what became of the code of one"),
            _read_only(f"<space>/{folder}/.recent", "directory", "the same memories, by age"),
            _read_only(f"<space>/{folder}/.recent/<age>", "directory", "memories of at most this age; `6h` is listed"),
            _read_only(f"<space>/{folder}/.recent/<age>/<link>", "symlink", "a memory"),
            _usual(f"<space>/{folder}/.history", "directory", "EROFS", "forgotten and replaced memories"),
            _usual(
                f"<space>/{folder}/.history/<bank path>",
                "directory",
                "EROFS",
                "the old versions of one memory, by its id",
            ),
            _usual(
                f"<space>/{folder}/.history/<bank path>",
                "file",
                "EROFS",
                "an old version, named by the time of its end",
            ),
        )
    ),
    _usual("<space>/.consolidate", "file", "asks for a run", "the state of consolidation, one JSON object"),
    _read_only("<space>/.consolidate.wait", "file", "a JSON line about once a second until the run ends"),
    _read_only("<space>/.consolidate.diff", "file", "the changes of the last dry run; absent without one"),
    _usual("<space>/.digest", "file", "asks for a digest", "the state of digests, one JSON object"),
    _read_only("<space>/.digest.wait", "file", "a JSON line about once a second until the digest ends"),
    PathEntry(
        "<space>/.recall",
        "file",
        0o644,
        "a message; what is read next is the answer",
        "what to know before answering",
        asks=True,
    ),
    _read_only("<space>/.hooks", "directory", "the hooks of coding agents"),
    _usual("<space>/.hooks/<event>", "file", "an event; what is read next is the answer", "one event of an agent"),
    _usual("<space>/observations", "directory", "EROFS", "the observations of agents at work"),
    _read_only("<space>/observations/.stale", "directory", "those whose code has changed or is gone; is not listed"),
    _read_only("<space>/observations/.stale/<link>", "file", "what became of the code of one"),
    _usual(
        "<space>/observations/<note>",
        "file",
        "`rm` forgets it; else EROFS",
        "an observation; `<id>.md` is another name of it",
    ),
    _usual("<space>/.proposals", "directory", "EROFS", "what waits until a person accepts or refuses it"),
    _read_only("<space>/.proposals/.decided", "directory", "what was accepted and refused"),
    _read_only("<space>/.proposals/.decided/<link>", "file", "such a proposal, and who decided when"),
    PathEntry(
        "<space>/.proposals/<note>",
        "file",
        0o444,
        "`mv` into the folder it is for accepts it, `rm` refuses it; else EROFS",
        "one proposal, with a diff",
    ),
    _usual("<space>/sessions", "directory", "`mkdir` begins a session; else EPERM", "the sessions of agents"),
    _usual("<space>/sessions/<session>", "directory", "EROFS", "a session"),
    _usual("<space>/sessions/<session>/session.json", "file", "EROFS", "its agent, progress and cost"),
    _usual("<space>/sessions/<session>/prompts.ndjson", "file", "each line is a prompt", "its prompts"),
    _usual("<space>/sessions/<session>/summary.md", "file", "`rm` forgets it; else EROFS", "its summary"),
    _usual(
        "<space>/sessions/<session>/told.json", "file", "EROFS", "ids of what the session was told, each with its turn"
    ),
    _usual(
        "<space>/sessions/<session>/events",
        "directory",
        "files only, no folders: else EPERM",
        "events are written here",
    ),
    _usual(
        "<space>/sessions/<session>/events/<file>",
        "file",
        "an event, taken at close",
        "events written last, for a while",
    ),
    _usual("<space>/sessions/<session>/.stop", "file", "asks for a summary", "how many events are in each state"),
    _read_only("<space>/.history", "directory", "the runs, by number"),
    _read_only("<space>/.history/<run>", "directory", "the bank as it was after one run"),
    _read_only("<space>/.history/<run>/<bank path>", "file", "a bank file as it was after that run"),
    _read_only("<space>/.history/<run>/<bank path>", "directory", "a folder of the bank as it was"),
    _read_only("<space>/.why", "directory", "the sources of the bank"),
    _read_only("<space>/.why/<bank path>", "file", "the source notes of each part of this bank file"),
    _read_only("<space>/.why/<bank path>", "directory", "a folder of the bank"),
    _read_only("<space>/search", "directory", "the search: open a question as a name; listed empty"),
    _read_only("<space>/search/<question>", "directory", "the results, best first"),
    _read_only("<space>/search/<question>/<result>", "symlink", "one result"),
    _read_only("<space>/search/<question>.md", "file", "the results on one page of at most 2,000 tokens"),
    _read_only("<space>/search/around:<id>.md", "file", "the observations before and after this one"),
    _read_only("<space>/search/.explain", "directory", "open a question as a name; listed empty"),
    _read_only("<space>/search/.explain/<question>.md", "file", "why the answer is in this order"),
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
