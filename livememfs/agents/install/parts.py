"""What livememfs is to a file of a project: how it is added, found again and removed.

Owns `Part` and the two kinds that are JSON: hooks, and MCP servers. A part is given text and gives text; whether a file
is there, and what a record says of it, is for `plan`. A part that is not wanted knows how to remove, and adds nothing.
Raises ValueError with a sentence when a text is not what it would have to be. Pure.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from livememfs.agents.install import command
from livememfs.agents.install.command import Hook
from livememfs.agents.install.jsonedit import element_added, members_added, no_new_trailing_comma, without
from livememfs.agents.install.jsontext import Item, Node, scan
from livememfs.agents.install.segments import Segment

SERVER = "livememfs"
"""What our MCP server is called."""


class Part(ABC):
    """One file of a project, given by its path there, and what we have in it."""

    is_whole = False
    """Whether all of the file is ours."""

    def __init__(self, path: str, *, wanted: bool) -> None:
        self.path, self.wanted = path, wanted

    def skeleton(self, blank: str) -> str:
        """What a file that holds nothing, or nothing but white space, is made into before anything is added."""
        return blank

    def is_hollow(self, text: str) -> bool:
        """Whether a text holds no more than a skeleton."""
        return not text

    def may_cut(self, before: str, after: str) -> bool:
        """Whether a text may be left like this by a cut."""
        return True

    @abstractmethod
    def stands(self, text: str) -> bool:
        """Whether all that is wanted is there, once, and nothing else of ours."""

    @abstractmethod
    def added(self, text: str) -> list[Segment]:
        """The insertions that add what is wanted to a text without us."""

    @abstractmethod
    def removed(self, text: str) -> str:
        """The text without what can be told to be exactly as we wrote it."""

    @abstractmethod
    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        """What is there still and was ours before somebody changed it, in a few words; empty when nothing is.

        `segments` is what a record says was inserted; empty without one.
        """


class JsonPart(Part):
    """A part that is JSON with an object at its top."""

    def skeleton(self, blank: str) -> str:
        return blank + "{}\n"

    def is_hollow(self, text: str) -> bool:
        return re.sub(r"[\s\ufeff]", "", text) in ("", "{}", '{"version":1}')

    def may_cut(self, before: str, after: str) -> bool:
        return no_new_trailing_comma(before, after)

    def root(self, text: str) -> Node:
        """The object at the top."""
        root = scan(text)
        if root.kind != "object":
            raise ValueError("it is JSON, and not an object")
        return root


# --- hooks -------------------------------------------------------------------------------------------------------


class Hooks(JsonPart):
    """Hooks of one agent in one file: an array of entries below `hooks`, for each event.

    :entries: what is to stand there, by event
    :shape:   the entry for a hook of ours, by which ours are told from what somebody changed
    """

    def __init__(self, path: str, entries: Mapping[str, Any], shape: Callable[[Hook], Any], *, version: bool) -> None:
        super().__init__(path, wanted=bool(entries))
        self.entries, self.shape, self.version = entries, shape, version

    def stands(self, text: str) -> bool:
        if self.is_hollow(text):
            return not self.entries
        found = [(event, entry.value.value) for event, _, entry in self._ours(self.root(text))]
        return sorted(found, key=str) == sorted(self.entries.items(), key=str)

    def added(self, text: str) -> list[Segment]:
        root = self.root(text)
        hooks = root.member("hooks")
        if hooks is None:
            version = {"version": 1} if self.version and root.member("version") is None else {}
            everything = {event: [entry] for event, entry in self.entries.items()}
            return [members_added(text, root, {**version, "hooks": everything})]
        if hooks.value.kind != "object":
            raise ValueError('its "hooks" is not an object')
        present = {event: item.value for event in self.entries if (item := hooks.value.member(event)) is not None}
        for event, array in present.items():
            if array.kind != "array":
                raise ValueError(f'its "hooks" have a "{event}" that is not an array')
        segments = [element_added(text, array, self.entries[event]) for event, array in present.items()]
        missing = {event: [entry] for event, entry in self.entries.items() if event not in present}
        return [*segments, members_added(text, hooks.value, missing)] if missing else segments

    def removed(self, text: str) -> str:
        while True:
            root = self.root(text)
            entry = next(self._ours(root), None)
            if entry is not None:
                _, path, item = entry
            elif (beside := next(self._ours_beside_others(root), None)) is not None:
                path, item = beside
            else:
                return text
            text = without(text, path, item)

    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        events = sorted({event for event, _, _ in self._marked(self.root(text))})
        return f"a hook of livememfs that was changed since ({', '.join(events)})" if events else ""

    def spaces(self, text: str) -> set[str]:
        """The paths of the spaces that hooks of ours lead to."""
        if self.is_hollow(text):
            return set()
        hooks = (command.read(_commands(item)) for _, _, item in self._marked(self.root(text)))
        return {hook.space for hook in hooks if hook is not None}

    def _ours(self, root: Node) -> Iterator[tuple[str, list[Node], Item]]:
        """Entries exactly as we write them: event, the way to them, the entry."""
        for event, path, item in self._marked(root):
            hook = command.read(_commands(item))
            if hook is not None and hook.event == event and item.value.value == self.shape(hook):
                yield event, path, item

    def _ours_beside_others(self, root: Node) -> Iterator[tuple[list[Node], Item]]:
        """Hooks of ours in an entry to which somebody added others."""
        for _, path, entry in self._marked(root):
            array = entry.value.member("hooks") if entry.value.kind == "object" else None
            if array is None or len(array.value.items) < 2:
                continue
            for item in array.value.items:
                hook = command.read(_command(item.value))
                if hook is not None and self.shape(hook).get("hooks") == [item.value.value]:
                    yield [*path, entry.value, array.value], item

    def _marked(self, root: Node) -> Iterator[tuple[str, list[Node], Item]]:
        """Entries with a command that says it is of livememfs: event, the way to them, the entry."""
        hooks = root.member("hooks")
        if hooks is None or hooks.value.kind != "object":
            return
        for event in hooks.value.items:
            for item in event.value.items if event.value.kind == "array" else ():
                if command.is_marked(_commands(item)):
                    yield event.key or "", [root, hooks.value, event.value], item


def _commands(entry: Item) -> object:
    """The command of an entry, flat or with hooks of its own; a marked one before others."""
    if (flat := _command(entry.value)) is not None:
        return flat
    array = entry.value.member("hooks") if entry.value.kind == "object" else None
    inner = [_command(item.value) for item in array.value.items] if array is not None else []
    return next((one for one in inner if command.is_marked(one)), None)


def _command(node: Node) -> object:
    item = node.member("command") if node.kind == "object" else None
    return item.value.scalar if item is not None else None


# --- MCP servers -------------------------------------------------------------------------------------------------


class Servers(JsonPart):
    """Our server among the MCP servers of one file; `space` is None when it is not wanted."""

    def __init__(self, path: str, space: str | None) -> None:
        super().__init__(path, wanted=space is not None)
        self.space = space

    def stands(self, text: str) -> bool:
        if self.is_hollow(text):
            return self.space is None
        entry = self._entry(self.root(text))
        return entry is not None and self.space is not None and entry[1].value.value == server(self.space)

    def added(self, text: str) -> list[Segment]:
        if self.space is None:
            return []
        root = self.root(text)
        servers = root.member("mcpServers")
        if servers is None:
            return [members_added(text, root, {"mcpServers": {SERVER: server(self.space)}})]
        if servers.value.kind != "object":
            raise ValueError('its "mcpServers" is not an object')
        if servers.value.member(SERVER) is not None:
            raise ValueError(f'its "mcpServers" have a "{SERVER}" that was not written by this command')
        return [members_added(text, servers.value, {SERVER: server(self.space)})]

    def removed(self, text: str) -> str:
        entry = self._entry(self.root(text))
        return without(text, *entry) if entry is not None and is_server(entry[1].value.value) else text

    def remains(self, text: str, segments: Sequence[Segment]) -> str:
        there = segments and self._entry(self.root(text)) is not None
        return f'the MCP server "{SERVER}", which was changed since' if there else ""

    def _entry(self, root: Node) -> tuple[list[Node], Item] | None:
        """The way to our server and its member."""
        servers = root.member("mcpServers")
        item = servers.value.member(SERVER) if servers is not None and servers.value.kind == "object" else None
        return ([root, servers.value], item) if servers is not None and item is not None else None


def server(space: str) -> dict[str, Any]:
    """How our MCP server is started."""
    return {"command": "livememfs", "args": ["mcp", "--space", space]}


def is_server(value: Any) -> bool:
    """Whether a server is started exactly as we write it, for whichever space."""
    arguments = value.get("args") if isinstance(value, dict) else None
    return isinstance(arguments, list) and len(arguments) == 3 and value == server(arguments[2])
