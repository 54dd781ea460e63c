"""`sessions/`: one folder for each session of an agent, with or without hooks.

Owns what any agent can do by files alone: `mkdir` begins a session, a file written into `events/` is an event, a line
of `prompts.ndjson` is a prompt, `touch .stop` asks for a summary. Everything else is read-only: the observer writes it.
Refuses names of sessions that cannot be keys. Trio thread only.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from secrets import token_hex
from typing import Any
from weakref import WeakValueDictionary

from livememfs import errors
from livememfs.observing.capture import Said
from livememfs.records import keys, names
from livememfs.records.session import Session
from livememfs.spaces.objects import public_as_it_is, public_name
from livememfs.tree.computed import BytesHandle, LastChange, ReadOnlyDirectory
from livememfs.tree.context import Context
from livememfs.tree.node import AttrChange, Attrs, Caller, Directory, File, Handle, Node, OpenMode, check_name
from livememfs.tree.objectfile import node_of
from livememfs.tree.space.bank import StoredFile

WHY = "the observer writes it; drop events into events/, or touch .stop"
EVENTS, STOP = "events", ".stop"
MAX_DROP = 64 << 20
SHOWN_DROPS = 256
"""How many of the last files in `events/` stay visible: tools look at what they have just written."""


class SessionsDirectory(Directory):
    """The sessions of one space."""

    __slots__ = ("_known", "context", "prefix", "space")
    rule = "it holds sessions only; `mkdir` begins one"

    def __init__(self, parent: Directory, context: Context, space: str) -> None:
        super().__init__(parent, keys.SESSIONS)
        self.context, self.space, self.prefix = context, space, f"{space}/{keys.SESSIONS}/"
        self._known: WeakValueDictionary[str, SessionDirectory] = WeakValueDictionary()

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Mode, owner and times of the folder are accepted and not kept."""

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        listing = await self.context.replica.names.listing(self.prefix)
        if name not in listing.folders:
            raise errors.NotFound(path=self.path_of(name))
        return self._session(name)

    def _session(self, name: str) -> SessionDirectory:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = SessionDirectory(self, name, self.context, self.space)
        return known

    def met(self, name: str) -> Node | None:
        return self._known.get(name)

    async def children(self) -> Sequence[tuple[str, Node]]:
        listing = await self.context.replica.names.listing(self.prefix)
        return [(name, self._session(name)) for name in sorted(listing.folders)]

    async def mkdir(self, name: str, mode: int, caller: Caller) -> Directory:
        check_name(name, self.path_of(name))
        if keys.session_slug(name) != name:
            detail = "a session is called by up to 64 of A-Z a-z 0-9 . _ -, and by no dot first"
            raise errors.InvalidName(path=self.path_of(name), detail=detail)
        public_as_it_is(name, self.path)
        listing = await self.context.replica.names.listing(self.prefix)
        if name in listing.folders:
            raise errors.AlreadyExists(path=self.path_of(name))
        now = self.context.clock.now()
        agent = public_name(self.context.agent_of(caller.pid), self.path)
        session = Session(name, self.space, now, now, agent=agent)
        self.context.replica.save(keys.session_key(self.space, name), session.render(), meta={}, base=None)
        return self._session(name)


class SessionDirectory(ReadOnlyDirectory):
    """`sessions/<id>/`."""

    __slots__ = ("_files", "context", "prefix", "space")

    def __init__(self, parent: Directory, name: str, context: Context, space: str) -> None:
        super().__init__(parent, name, WHY, mode=0o755)
        self.context, self.space, self.prefix = context, space, keys.session_prefix(space, name)
        self._files: dict[str, StoredFile] = {}
        prompts = PromptsFile(self, self, keys.PROMPTS)
        self.nodes = {EVENTS: DropDirectory(self), keys.PROMPTS: prompts, STOP: StopFile(self)}

    def met(self, name: str) -> Node | None:
        return self.nodes.get(name) or self._files.get(name)

    async def child(self, name: str) -> Node:
        check_name(name, self.path_of(name))
        if name in self.nodes:
            return self.nodes[name]
        listing = await self.context.replica.names.listing(self.prefix)
        info = listing.objects.get(name)
        if info is None or not name:
            raise errors.NotFound(path=self.path_of(name))
        file = node_of(self._files.get(name), info, lambda: StoredFile(self, name, self.context, info, WHY))
        self._files[name] = file
        return file

    async def children(self) -> Sequence[tuple[str, Node]]:
        listing = await self.context.replica.names.listing(self.prefix)
        shown = sorted({*self.nodes, *filter(None, listing.objects)})
        return [(name, await self.child(name)) for name in shown]

    async def unlink(self, name: str) -> None:
        """Forget a summary, or the prompts. The observer needs the other files."""
        listing = await self.context.replica.names.listing(self.prefix)
        info = listing.objects.get(name)
        if name not in (keys.SUMMARY, keys.PROMPTS) or info is None:
            raise self.refuse("removing it")
        self.context.replica.remove(info.key, base=info)

    async def identity(self) -> str:
        """The agent's id of this session, which may not be the name of its folder."""
        try:
            data = (await self.context.replica.read(self.prefix + keys.SESSION)).data
        except errors.ObjectMissing:
            return self.name
        return Session.parse(data, space=self.space, session=self.name, now=self.context.clock.now()).id

    async def take(self, caller: Caller, *events: dict[str, Any]) -> None:
        """Accept events of this session."""
        agent, session = self.context.agent_of(caller.pid), await self.identity()
        for fields in events:
            await self.context.capture.take(self.space, Said(session=session, agent=agent, **fields))


class _Written(Handle):
    """An open for writing. Each close takes in what was written since the close before."""

    direct = True
    seekable = False

    def __init__(self, file: _Taken, caller: Caller) -> None:
        self.file, self.caller = file, caller
        self.data = bytearray()

    async def read(self, offset: int, size: int) -> bytes:
        return (await self.file.content())[offset : offset + size]

    async def write(self, offset: int, data: bytes) -> int:
        if len(self.data) + len(data) > MAX_DROP:
            raise errors.TooLarge(path=self.file.path, detail=f"more than {MAX_DROP:,} bytes")
        self.data += data
        return len(data)

    async def flush(self) -> None:
        if self.data:
            data = bytes(self.data)
            self.data.clear()
            await self.file.written(data, self.caller)

    async def fsync(self) -> None:
        """It is durable after the close."""

    async def release(self) -> None:
        await self.file.released()


class _Taken(File):
    """A file whose bytes are taken in as events, and not kept under its name."""

    __slots__ = ("_changed", "session")

    def __init__(self, session: SessionDirectory, parent: Directory, name: str) -> None:
        super().__init__(parent, name)
        self.session = session
        self._changed = LastChange()

    async def attrs(self) -> Attrs:
        data = await self.content()
        when = self._changed.of(data, self.session.context)
        return Attrs(kind="file", mode=0o644, size=len(data), mtime_ns=when, volatile=True)

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """An open with O_TRUNC sets the length; neither that nor times and modes are kept."""

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        return _Written(self, caller) if mode.write else BytesHandle(await self.content())

    async def content(self) -> bytes:
        """What a reader sees."""
        return b""

    async def written(self, data: bytes, caller: Caller) -> None:
        """Take in what was written."""
        raise NotImplementedError  # every concrete class has its own

    async def released(self) -> None:
        """A writer has closed the file for the last time."""


class PromptsFile(_Taken):
    """`prompts.ndjson`: each line that is written is a prompt; a line may be JSON with `prompt`, or text."""

    __slots__ = ()

    async def content(self) -> bytes:
        try:
            return (await self.session.context.replica.read(self.session.prefix + keys.PROMPTS)).data
        except errors.ObjectMissing:
            return b""

    async def written(self, data: bytes, caller: Caller) -> None:
        prompts = []
        for line in _text(data, self.path).split("\n"):  # not splitlines(): that also splits at other characters
            line = line.removesuffix("\r")
            if line.strip():
                fields = _object(line)
                text = fields.get("prompt", fields.get("text")) if fields is not None else line
                event_id = fields.get("id") if fields is not None else None
                prompts.append({"kind": "prompt", "text": _string(text), "id": _string(event_id)})
        await self.session.take(caller, *prompts)


class StopFile(_Taken):
    """`.stop`: a touch asks for a summary, and for another try of events that were given up; `cat` shows the state."""

    __slots__ = ("_writers",)

    def __init__(self, session: SessionDirectory) -> None:
        super().__init__(session, session, STOP)
        self._writers = 0

    async def content(self) -> bytes:
        context, space = self.session.context, self.session.space
        identity = await self.session.identity()
        state = context.replica.inbox.of_session(space, identity)
        return (json.dumps(state) + "\n").encode()

    async def open(self, mode: OpenMode, caller: Caller) -> Handle:
        if mode.write:
            await self._stop(caller)
            self._writers += 1
        return await super().open(mode, caller)

    async def released(self) -> None:
        self._writers -= 1

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Setting times is a touch, unless a writer has the file open: that open was the touch already."""
        if change.mtime_ns is not None and not self._writers:
            await self._stop(caller)

    async def written(self, data: bytes, caller: Caller) -> None:
        """What is written means nothing: the open was the touch."""

    async def _stop(self, caller: Caller) -> None:
        event_id = f"touch {token_hex(8)}"  # a new id, or a second touch would count as a repeat of the first
        await self.session.take(caller, {"kind": "stop", "id": event_id})
        self.session.context.observer.again(self.session.space, await self.session.identity())


class DropDirectory(Directory):
    """`events/`: a file that is written here becomes an event when it is closed."""

    __slots__ = ("_drops", "session")
    rule = "it takes files, directly"

    def __init__(self, session: SessionDirectory) -> None:
        super().__init__(session, EVENTS)
        self.session = session
        self._drops: dict[str, DropFile] = {}

    async def change(self, change: AttrChange, caller: Caller) -> None:
        """Mode, owner and times of the folder are accepted and not kept."""

    def met(self, name: str) -> Node | None:
        return self._drops.get(name)

    async def child(self, name: str) -> Node:
        file = self._drops.get(name)
        if file is None:
            raise errors.NotFound(path=self.path_of(name))
        return file

    async def children(self) -> Sequence[tuple[str, Node]]:
        return sorted(self._drops.items())

    async def create(self, name: str, mode: int, caller: Caller) -> File:
        check_name(name, self.path_of(name))
        self._drops.pop(name, None)
        made = self._drops[name] = DropFile(self.session, self, name)
        while len(self._drops) > SHOWN_DROPS:
            del self._drops[next(iter(self._drops))]
        return made

    async def unlink(self, name: str) -> None:
        await self.child(name)
        del self._drops[name]

    async def rename(self, name: str, target: Directory, new_name: str, *, replace: bool = True) -> None:
        if target is not self:
            raise errors.CrossesKinds(path=self.path_of(name))
        file = await self.child(name)
        assert isinstance(file, DropFile)  # nothing else is here
        check_name(new_name, self.path_of(new_name))
        if names.is_litter(name) and not names.is_litter(new_name):
            await file.event(Caller())
        del self._drops[name]
        file.name = new_name
        self._drops[new_name] = file


class DropFile(_Taken):
    """A file in `events/`: JSON with `tool`, `input`, `output`, or the fields of a hook, or text."""

    __slots__ = ("data", "taken")

    def __init__(self, session: SessionDirectory, parent: Directory, name: str) -> None:
        super().__init__(session, parent, name)
        self.data = b""
        self.taken = 0

    async def content(self) -> bytes:
        return self.data

    async def written(self, data: bytes, caller: Caller) -> None:
        self.data += data
        if not names.is_litter(self.name) and (not self.data.lstrip().startswith(b"{") or _is_whole(self.data)):
            await self.event(caller)

    async def released(self) -> None:
        if self.taken < len(self.data) and not names.is_litter(self.name):
            await self.event(Caller())

    async def event(self, caller: Caller) -> None:
        """Take in the content as an event. NotText."""
        self.taken = len(self.data)  # before a failure too: the error is reported once, at this close
        text = _text(self.data, self.path)
        if text.strip():
            await self.session.take(caller, _event(text))


def _is_whole(data: bytes) -> bool:
    try:
        json.loads(data)
    except UnicodeDecodeError:
        return True  # more bytes cannot repair it
    except (ValueError, RecursionError):
        return False
    return True


def _event(text: str) -> dict[str, Any]:
    fields = _object(text)
    if fields is None:
        return {"kind": "tool", "tool": "note", "output": text}
    names = {
        "tool": ("tool", "tool_name"),
        "id": ("id", "tool_use_id"),
        "project": ("project", "cwd"),
        "subagent": ("agent_id",),
    }
    event = {
        field: _string(next((fields[key] for key in spellings if key in fields), ""))
        for field, spellings in names.items()
    }
    event["tool"] = event["tool"] or "note"
    tool_input = fields.get("input", fields.get("tool_input"))
    tool_output = fields.get("output", fields.get("tool_response"))
    if tool_input is None and tool_output is None:
        tool_output = {name: value for name, value in fields.items() if name not in ("id", "tool", "project")}
    return {"kind": "tool", **event, "input": tool_input, "output": tool_output}


def _object(text: str) -> dict[str, Any] | None:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _string(value: object) -> str:
    return value if isinstance(value, str) else ""


def _text(data: bytes, path: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise errors.NotText(path=path, detail="an event is UTF-8") from error
