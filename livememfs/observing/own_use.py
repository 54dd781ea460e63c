"""Whether an agent's use of a tool was only a use of this memory: by our MCP tools, in every agent's spelling, by files
in the mount, or by shell commands that look at it.

What an agent reads here is known, and what it writes here is stored already: observing it would remember our own words.
Owns how shell commands are understood. A command that cannot be understood counts as `part` if it names the mount, else
as `none`. Pure; any thread.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from posixpath import basename, join, normpath
from typing import Any, Literal

from livememfs.records.event import SHELLS, paths_of

Use = Literal["none", "part", "all"]
"""How much of a tool's use was use of this memory. After `part`, the output may have our own words."""

LONGEST = 8_000
"""Most characters of a command that is taken apart; in a longer one the mount is only searched for."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NAME = re.compile(r"(?:\A|[^a-z0-9])livememfs(?:[^a-z0-9]|\Z)", re.IGNORECASE)
_PATHS = _words(
    "filepath notebookpath absolutepath path paths filename targetfile targetdirectory dirpath directory dir folder uri"
    " files include searchdirectory searchpath directorypath"
)
_SEARCHES = _words("grep glob ls list list_directory search_file_content codebase_search search find")
"""Tools that look at the working directory when no path is named."""
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1([^\n]*)\n.*?(?:^\s*\2\s*$|\Z)", re.DOTALL | re.MULTILINE)
_BEFORE = _words("then do else if while until ! time sudo command nohup env xargs { timeout")
_SAYS = _words("echo printf true false : test [ [[ pwd date sleep read done fi esac } exit set export wait")
_MATCHES = _words("grep egrep fgrep rg ag sed awk jq")
"""Programs whose first argument is a pattern or a script, not a file."""
_READS = _MATCHES | _words(
    "cat bat less more head tail ls find fd wc tree stat file sort uniq cut tr diff cmp nl tac column basename dirname"
    " realpath readlink du md5sum sha256sum for in"
)
_WRITES = _words("touch mkdir rmdir cp mv rm tee ln")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_BREAKS, _REDIRECTS = frozenset(";|&()\n"), frozenset("<>")


@dataclass
class _Seen:
    """What a command touched: whether it read or wrote files of ours, and whether it touched anything else."""

    cwd: str
    read: bool = False
    wrote: bool = False
    other: bool = False


@dataclass(frozen=True)
class OwnUse:
    """Decides which use of a tool is use of this memory.

    :mounted: the absolute path of the mount; empty without one
    :home:    what `~` stands for
    :tools:   names of our MCP tools, for agents that do not give the name of the server
    """

    mounted: str = ""
    home: str = ""
    tools: frozenset[str] = field(default_factory=frozenset)

    def of(self, tool: str, given: Any, project: str) -> Use:
        """How much of a tool's use is use of this memory; `project` is where the agent works."""
        if _NAME.search(tool) or (tool.startswith("MCP:") and tool[4:] in self.tools):
            return "all"
        if not self.mounted or tool == "":
            return "none"
        if tool.lower() in SHELLS and isinstance(given, Mapping):
            return self._of_command(_script(given), project)
        paths = list(dict.fromkeys([*paths_of(tool, given), *_named(given)]))
        if not paths and tool.lower() in _SEARCHES:
            paths = [project]
        ours = [self._is_in(path, project) for path in paths]
        return "all" if ours and all(ours) else "part" if any(ours) else "none"

    def _is_in(self, path: str, cwd: str) -> bool:
        return f"{self._whole(path, cwd)}/".startswith(f"{self.mounted}/")

    def _whole(self, path: str, cwd: str) -> str:
        path = path.removeprefix("file://")
        for short in ("~", "$HOME", "${HOME}"):
            if self.home and (path == short or path.startswith(short + "/")):
                path = self.home + path[len(short) :]
        return normpath(join(cwd or "/", path))

    # --- commands -------------------------------------------------------------------------------------------------

    def _of_command(self, script: str, cwd: str) -> Use:
        if len(script) > LONGEST:
            return "part" if self.mounted in script else "none"
        if not (self._mentions(script) or self._is_in(".", cwd)):
            return "none"
        seen = _Seen(cwd or "/")
        try:
            self._run(script, seen)
        except (ValueError, RecursionError):  # a quotation without an end: no shell runs that
            return "part" if self._mentions(script) else "none"
        if (seen.read or seen.wrote) and not seen.other:
            return "all"
        return "part" if seen.read else "none"

    def _mentions(self, text: str) -> bool:
        return self.mounted in text or _NAME.search(text) is not None or basename(self.mounted) in text

    def _has(self, word: str) -> bool:
        """Whether the path of the mount, or of something in it, stands in a word."""
        return re.search(rf"{re.escape(self.mounted)}(?![\w.-])", word) is not None

    def _run(self, script: str, seen: _Seen) -> None:
        for words, targets in _commands(_HEREDOC.sub(r"\3\n", script)):
            for target, writes in targets:
                self._file(target, seen, writes=writes, named=True)
            while words and (words[0] in _BEFORE or _ASSIGNMENT.match(words[0])):
                first, *words = words
                words = words[1:] if first == "timeout" else words
                while words and first in ("xargs", "timeout", "env", "sudo") and words[0].startswith("-"):
                    words = words[1:]
            if words and not words[0].startswith("#"):
                self._program(basename(words[0]), words[1:], seen)

    def _program(self, program: str, words: Sequence[str], seen: _Seen) -> None:
        if program in ("bash", "sh", "zsh", "dash") and len(words) > 1 and words[0] in ("-c", "-lc"):
            self._run(words[1], seen)
        elif program == "cd":
            seen.cwd = self._whole(words[0] if words else "~", seen.cwd)
        elif program == "livememfs":
            seen.read = True
        elif program in _SAYS:
            seen.read |= any(map(self._has, words))
        elif program in _READS or program in _WRITES:
            self._files(program, words, seen)
        else:
            seen.other = True
            seen.read |= any(map(self._has, words))

    def _files(self, program: str, words: Sequence[str], seen: _Seen) -> None:
        named = [word for word in words if not word.startswith("-") and not word.isdigit()]
        if program in _MATCHES:
            named = named[1:]
        if not named and self._is_in(".", seen.cwd):
            seen.read = True
        for word in named:
            loose = program in _MATCHES or program in ("find", "fd", "for", "tr", "cut")
            self._file(word, seen, writes=program in _WRITES, named=not loose)

    def _file(self, word: str, seen: _Seen, *, writes: bool, named: bool) -> None:
        """Note a word that may be a file. `named`: it is a file even without a slash."""
        if self._is_in(word, seen.cwd) or self._has(word):
            if writes:
                seen.wrote = True
            else:
                seen.read = True
        elif word != "/dev/null" and not word.isdigit() and not word.startswith("$") and (named or "/" in word):
            seen.other = True


def _commands(script: str) -> Iterator[tuple[list[str], list[tuple[str, bool]]]]:
    """The simple commands of a script: the words of each, and its redirections as (file, whether it is written).
    Raises ValueError.
    """
    lexer = shlex.shlex(script, posix=True, punctuation_chars="();<>|&\n")
    lexer.whitespace, lexer.whitespace_split, lexer.commenters = " \t\r", True, ""
    words: list[str] = []
    targets: list[tuple[str, bool]] = []
    redirect = ""
    for token in lexer:
        signs = set(token)
        if token and signs <= _BREAKS | _REDIRECTS:
            redirect = token if signs & _REDIRECTS and not signs & {"(", ")"} else ""
            if not redirect:
                yield words, targets
                words, targets = [], []
        elif redirect:
            targets.append((token, ">" in redirect))
            redirect = ""
        else:
            words.append(token)
    yield words, targets


def _script(given: Mapping[str, Any]) -> str:
    """The script that a shell was given, as a line, as a list of lines, or as the words of one command."""
    script = next((given[name] for name in ("command", "commands", "cmd") if name in given), "")
    if not isinstance(script, list):
        return script if isinstance(script, str) else ""
    if len(script) == 3 and script[1] in ("-c", "-lc"):
        return str(script[2])
    if "commands" in given:
        return "\n".join(str(line.get("command", "") if isinstance(line, Mapping) else line) for line in script)
    return shlex.join(map(str, script))


def _named(value: Any, depth: int = 0) -> Iterator[str]:
    """The values of fields whose names mean paths, and patterns that are absolute paths."""
    if depth > 3 or not isinstance(value, Mapping):
        return
    for name, inner in value.items():
        spelt = str(name).lower().replace("_", "")
        for item in inner if isinstance(inner, list) else [inner]:
            if isinstance(item, str) and item and (spelt in _PATHS or (item.startswith("/") and spelt == "pattern")):
                yield item
            elif isinstance(item, Mapping):
                yield from _named(item, depth + 1)
