"""What POSIX knows of a file beside its bytes, and how an object's user metadata tells it.

Owns the form of these values. Refuses to believe numbers that no kernel takes: anybody may have written them. Pure; any
thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from livememfs.records.metadata import META_ATIME, META_CTIME, META_MODE, META_MTIME, META_OWNER

PERMISSIONS = 0o7777
OWN_NAMES = frozenset({META_ATIME, META_CTIME, META_MODE, META_MTIME, META_OWNER})
"""The names of metadata under which `Stat.render` tells it."""
_HIGHEST_ID = (1 << 32) - 2


@dataclass(frozen=True, slots=True)
class Stat:
    """None is what nobody has set.

    :mode:     permission bits, with those for set-uid, set-gid and sticky
    :uid, gid: the owner, by number
    :mtime_ns, atime_ns, ctime_ns: nanoseconds since 1970
    """

    mode: int | None = None
    uid: int | None = None
    gid: int | None = None
    mtime_ns: int | None = None
    atime_ns: int | None = None
    ctime_ns: int | None = None

    def under(self, newer: Stat) -> Stat:
        """The same, with what `newer` has in place of it."""
        if newer is NOTHING or self is NOTHING:
            return self if newer is NOTHING else newer
        pairs = ((getattr(self, field.name), getattr(newer, field.name)) for field in fields(self))
        return Stat(*(old if new is None else new for old, new in pairs))

    def render(self) -> dict[str, str]:
        """User metadata. The time of the last change of status is left out where it is that of the content."""
        rendered = {
            META_MTIME: _text(self.mtime_ns),
            META_MODE: _text(self.mode, "o"),
            META_OWNER: f"{self.uid}:{self.gid}" if self.uid is not None and self.gid is not None else "",
            META_ATIME: _text(self.atime_ns),
            META_CTIME: _text(self.ctime_ns if self.ctime_ns != self.mtime_ns else None),
        }
        return {name: value for name, value in rendered.items() if value}

    @classmethod
    def of(cls, meta: Mapping[str, str] | None) -> Stat:
        """The reverse. What cannot be read is not set."""
        if not meta:
            return NOTHING
        mode = _number(meta.get(META_MODE), 8)
        uid, _, gid = meta.get(META_OWNER, "").partition(":")
        return cls(
            None if mode is None else mode & PERMISSIONS,
            _id(uid),
            _id(gid),
            _number(meta.get(META_MTIME)),
            _number(meta.get(META_ATIME)),
            _number(meta.get(META_CTIME)),
        )


NOTHING = Stat()
"""Nothing is set. One object for all: a hundred thousand of them would waste memory."""


def _text(value: int | None, form: str = "d") -> str:
    return "" if value is None else format(value, form)


def _number(text: str | None, base: int = 10) -> int | None:
    try:
        value = int(text, base) if text else None
    except ValueError:
        return None
    return value if value is not None and abs(value) < 1 << 63 else None  # the kernel takes no more


def _id(text: str) -> int | None:
    number = _number(text)
    return number if number is not None and 0 <= number <= _HIGHEST_ID else None
