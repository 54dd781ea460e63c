"""The parts of livememfs in the files of a project: how each is added, recognised and removed.

Owns `InstalledPart`, and `SettingsPart`: a JSON file with our hooks, our MCP server, or both. A part takes and returns
text; `plan` knows whether the file exists, and its record. An unwanted part can only remove. Raises ValueError, with a
sentence, for a text that cannot be edited. Pure.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePath
from typing import Any

from livememfs.agents.install import command
from livememfs.agents.install.command import HookCommand
from livememfs.agents.install.jsonedit import element_added, members_added, no_new_trailing_comma, without
from livememfs.agents.install.jsontext import Item, JsonNode, is_strict, scan
from livememfs.agents.install.segments import Segment

SERVER = "livememfs"
"""The name of our MCP server."""
Place = tuple[list[JsonNode], Item]
"""An item of ours, with the nodes from the root to the node that contains it."""
Wish = tuple[tuple[str, ...], Any, bool]
"""A value to add: the names that lead to it, the value, and whether it is an element of an array."""


class InstalledPart(ABC):
    """Our part of one file of a project. `path`: below the project."""

    is_whole = False
    """Whether the whole file is ours."""
    runs = False
    """Whether the file is a program."""

    def __init__(self, path: str, *, wanted: bool) -> None:
        self.path, self.wanted = path, wanted

    def skeleton(self, blank: str) -> str:
        """The text to start from if a file is empty or has only white space."""
        return blank

    def is_hollow(self, text: str) -> bool:
        """Whether a text is no more than a skeleton."""
        return not text

    def may_cut(self, before: str, after: str) -> bool:
        """Whether a cut may change `before` to `after`."""
        return True

    def hooks(self, text: str) -> list[HookCommand]:
        """Our unchanged hooks in a text."""
        return []

    def server(self, text: str) -> list[str]:
        """The command of our unchanged MCP server; empty without one."""
        return []

    @abstractmethod
    def stands(self, text: str) -> bool:
        """Whether the text has everything wanted exactly once, and nothing else of ours."""

    @abstractmethod
    def added(self, text: str) -> list[Segment]:
        """The insertions that add everything wanted to a text without our parts."""

    @abstractmethod
    def removed(self, text: str) -> str:
        """The text without our unchanged parts."""

    @abstractmethod
    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        """A few words on the parts of ours that somebody changed; empty without any.

        `segments`: the insertions of the record; empty without one.
        """


class SettingsPart(InstalledPart):
    """A JSON file with an object at its top.

    :sides:  our entries in it: the hooks, the server, or both
    :strict: the agent's name, if it ignores a whole file with comments or trailing commas; else empty
    """

    def __init__(self, path: str, *sides: HooksPart | Servers, strict: str) -> None:
        super().__init__(path, wanted=any(side.wanted for side in sides))
        self.sides, self.strict = sides, strict

    def skeleton(self, blank: str) -> str:
        return blank + "{}\n"

    def is_hollow(self, text: str) -> bool:
        return re.sub(r"[\s\ufeff]", "", text) in ("", "{}", '{"version":1}', '{"$version":4}')

    def may_cut(self, before: str, after: str) -> bool:
        return no_new_trailing_comma(before, after)

    def root(self, text: str) -> JsonNode:
        """The top-level object. ValueError."""
        root = scan(text)
        if root.kind != "object":
            raise ValueError("it is JSON, but not an object")
        if self.wanted and (why := self.unread(text)):
            raise ValueError(why)
        return root

    def unread(self, text: str) -> str:
        """Why the agent ignores a text; empty if it reads it."""
        if not self.strict or is_strict(text):
            return ""
        return f"{self.strict} ignores a file with comments or trailing commas; remove them first"

    def stands(self, text: str) -> bool:
        if self.is_hollow(text):
            return not self.wanted
        root = self.root(text)
        return all(side.stands(root) for side in self.sides)

    def added(self, text: str) -> list[Segment]:
        root = self.root(text)
        segments: list[Segment] = []
        missing: dict[int, tuple[JsonNode, dict[str, Any]]] = {}
        for names, value, is_element in chain.from_iterable(side.wishes(root) for side in self.sides):
            node, rest = _way(root, names, is_element=is_element)
            if not rest:
                segments.append(element_added(text, node, value))
                continue
            *outer, last = rest
            holder = missing.setdefault(node.start, (node, {}))[1]
            for name in outer:
                holder = holder.setdefault(name, {})
            if is_element:
                holder.setdefault(last, []).append(value)
            else:
                holder[last] = value
        return [*segments, *(members_added(text, node, members) for node, members in missing.values())]

    def removed(self, text: str) -> str:
        while True:
            root = self.root(text)
            place = next(chain.from_iterable(side.ours(root) for side in self.sides), None)
            if place is None:
                return text
            text = without(text, *place)

    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        root = self.root(text)
        return ", ".join(filter(None, (side.remains(root, segments) for side in self.sides)))

    def hooks(self, text: str) -> list[HookCommand]:
        if self.is_hollow(text):
            return []
        root = self.root(text)
        return [hook for side in self.sides if isinstance(side, HooksPart) for hook in side.led(root)]

    def server(self, text: str) -> list[str]:
        if self.is_hollow(text):
            return []
        root = self.root(text)
        places = [place for side in self.sides if isinstance(side, Servers) for place in side.ours(root)]
        values = [item.value.value for _, item in places]
        return [word for value in values for word in (value["command"], *value["args"])]


def _way(root: JsonNode, names: Sequence[str], *, is_element: bool) -> tuple[JsonNode, Sequence[str]]:
    """The innermost existing node on a way, and the missing names below it. ValueError."""
    node, walked = root, 0
    for name in names:
        if (item := node.member(name)) is None:
            break
        node, walked = item.value, walked + 1
        kind = "array" if is_element and walked == len(names) else "object"
        if node.kind != kind:
            of = f'its "{names[0]}" have a "{name}" that' if walked > 1 else f'its "{name}"'
            raise ValueError(f"{of} is not an {kind}")
    if walked == len(names) and not is_element:
        raise ValueError(f'its "{names[0]}" have a "{names[-1]}" that was not written by this command')
    return node, names[walked:]


# --- hooks -------------------------------------------------------------------------------------------------------


class HooksPart:
    """Hooks of one agent: an array of entries below `hooks`, for each event.

    :hooks:   the wanted hooks, by the agent's name for the event
    :shape:   makes the entry for an event and our hook; an entry that differs was changed by somebody
    :former:  the same for entries of earlier versions
    :version: a member that a new file gets, with the version of its format; None: no such member
    """

    def __init__(
        self,
        hooks: Mapping[str, HookCommand],
        shape: Callable[[str, HookCommand], Any],
        former: Callable[[str, HookCommand], Any],
        version: tuple[str, int] | None,
    ) -> None:
        self.wanted = bool(hooks)
        self._entries = {event: shape(event, hook) for event, hook in hooks.items()}
        self._shape, self._former, self._version = shape, former, version

    def stands(self, root: JsonNode) -> bool:
        """As that of a part."""
        present = [(event, entry.value.value) for event, _, entry in self._exact(root)]
        return sorted(present, key=str) == sorted(self._entries.items(), key=str)

    def wishes(self, root: JsonNode) -> list[Wish]:
        """The values to add to a file without our entries."""
        version: list[Wish] = []
        if self.wanted and self._version is not None and root.member("hooks") is None:
            name, number = self._version
            # An agent whose version member begins with $ knows the format of a file with content by itself.
            if root.member(name) is None and not (name.startswith("$") and root.items):
                version = [((name,), number, False)]
        return [*version, *((("hooks", event), entry, True) for event, entry in self._entries.items())]

    def ours(self, root: JsonNode) -> Iterator[Place]:
        """The places of entries that this or an earlier version wrote, unchanged."""
        yield from ((way, item) for _, way, item in self._exact(root))
        yield from self._beside_others(root)

    def remains(self, root: JsonNode, segments: Sequence[Segment]) -> str:
        """As that of a part."""
        events = sorted({event for event, _, _ in _marked(root)})
        return f"a hook of livememfs that was changed since ({', '.join(events)})" if events else ""

    def led(self, root: JsonNode) -> Iterator[HookCommand]:
        """Our hooks, by the targets of their commands."""
        yield from (hook for _, _, item in _marked(root) if (hook := command.read(_commands(item))) is not None)

    def _as_written(self, event: str, hook: HookCommand) -> Any:
        return (self._former if hook.former else self._shape)(event, hook)

    def _exact(self, root: JsonNode) -> Iterator[tuple[str, list[JsonNode], Item]]:
        """Our unchanged entries: event, the way to the entry, the entry."""
        for event, way, item in _marked(root):
            hook = command.read(_commands(item))
            if (
                hook is not None
                and hook.event.rpartition(".")[2] == event
                and item.value.value == self._as_written(event, hook)
            ):
                yield event, way, item

    def _beside_others(self, root: JsonNode) -> Iterator[Place]:
        """Our hooks in entries to which somebody added other hooks."""
        for event, way, entry in _marked(root):
            array = entry.value.member("hooks") if entry.value.kind == "object" else None
            if array is None or len(array.value.items) < 2:
                continue
            for item in array.value.items:
                hook = command.read(_command(item.value))
                if hook is not None and self._as_written(event, hook).get("hooks") == [item.value.value]:
                    yield [*way, entry.value, array.value], item


def _marked(root: JsonNode) -> Iterator[tuple[str, list[JsonNode], Item]]:
    """Entries whose command has our mark: event, the way to the entry, the entry."""
    hooks = root.member("hooks")
    if hooks is None or hooks.value.kind != "object":
        return
    for event in hooks.value.items:
        for item in event.value.items if event.value.kind == "array" else ():
            if command.is_marked(_commands(item)):
                yield event.key or "", [root, hooks.value, event.value], item


def _commands(entry: Item) -> object:
    """The command of an entry, flat or with inner hooks; of several the one with our mark."""
    if (flat := _command(entry.value)) is not None:
        return flat
    array = entry.value.member("hooks") if entry.value.kind == "object" else None
    inner = [_command(item.value) for item in array.value.items] if array is not None else []
    return next((text for text in inner if command.is_marked(text)), None)


def _command(node: JsonNode) -> object:
    item = (node.member("command") or node.member("bash")) if node.kind == "object" else None
    return item.value.scalar if item is not None else None


# --- MCP servers -------------------------------------------------------------------------------------------------


class Servers:
    """Our server among the MCP servers of one file. Its methods are those of `HooksPart`.

    :argv:  its command; None when it is not wanted
    :named: the name of the member with all servers
    :more:  further members of our entry
    """

    def __init__(self, argv: Sequence[str] | None, named: str, more: Mapping[str, Any]) -> None:
        self.wanted = argv is not None
        self._argv, self._named, self._more = argv, named, dict(more)

    def stands(self, root: JsonNode) -> bool:
        place = self._there(root)
        if self._argv is None:
            return place is None or not self._is_ours(place[1])
        return place is not None and place[1].value.value == server(self._argv) | self._more

    def wishes(self, root: JsonNode) -> list[Wish]:
        return [] if self._argv is None else [((self._named, SERVER), server(self._argv) | self._more, False)]

    def ours(self, root: JsonNode) -> Iterator[Place]:
        if (place := self._there(root)) is not None and self._is_ours(place[1]):
            yield place

    def remains(self, root: JsonNode, segments: Sequence[Segment]) -> str:
        inserted = any(f'"{SERVER}": {{' in segment.text for segment in segments)
        return f'the MCP server "{SERVER}", which was changed since' if inserted and self._there(root) else ""

    def _is_ours(self, item: Item) -> bool:
        value = item.value.value
        if not isinstance(value, dict) or any(value.get(name) != more for name, more in self._more.items()):
            return False
        return is_server({name: inner for name, inner in value.items() if name not in self._more})

    def _there(self, root: JsonNode) -> Place | None:
        """The way to our server, and its member; None without one."""
        servers = root.member(self._named)
        item = servers.value.member(SERVER) if servers is not None and servers.value.kind == "object" else None
        return ([root, servers.value], item) if servers is not None and item is not None else None


def server(argv: Sequence[str]) -> dict[str, Any]:
    """The entry of our MCP server in the form of most agents."""
    return {"command": argv[0], "args": list(argv[1:])}


def is_server(value: Any) -> bool:
    """Whether an entry is our unchanged server, for any space and installation."""
    arguments = value.get("args") if isinstance(value, dict) else None
    if not isinstance(arguments, list) or not all(isinstance(word, str) for word in [value.get("command"), *arguments]):
        return False
    argv = [value["command"], *arguments]
    start = argv[:-3]
    is_program = len(start) == 1 and PurePath(start[0]).name == SERVER
    is_known = (is_program or start[1:] == ["-m", SERVER]) and argv[-3:-1] in (["mcp", "--space"], ["mcp", "--mount"])
    return is_known and value == server(argv)
