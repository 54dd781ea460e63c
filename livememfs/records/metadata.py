"""The user metadata of objects that livememfs wrote: every `livememfs-*` name, and its meaning.

Owns the names, which no other module may spell out (a test checks that). The code that writes a value decides its form.
Pure; any thread.
"""

from __future__ import annotations

META_OP = "livememfs-op"
"""The id of the write, by which a writer recognises its own object."""
META_NAME = "livememfs-name"
"""The name a note was written under, by which any mount finds it again."""
META_SHA256 = "livememfs-sha256"
"""The SHA-256 of the content, on objects that a mount uploaded."""
META_MADE = "livememfs-made"
"""On a note that was edited: the ids of the writes that may have made its first version."""
META_CONFLICT = "livememfs-conflict"
"""On a conflict copy: the key that it was written for; of a very long key only the end."""
META_MTIME = "livememfs-mtime"
META_MODE = "livememfs-mode"
META_OWNER = "livememfs-owner"
META_ATIME = "livememfs-atime"
META_CTIME = "livememfs-ctime"
META_XATTRS = "livememfs-xattrs"
"""What POSIX knows of a file: times in nanoseconds since 1970, permissions, `uid:gid`, extended attributes."""
META_TYPE = "livememfs-type"
"""What a file is that is no regular one: `symlink`, `fifo`, `socket`, `char:<major>:<minor>`, `block:...`."""
META_BACKUP = "livememfs-backup"
"""On the `_meta.json` of a backup: who made it. Absent when a person did."""
META_ABOUT = "livememfs-about"
"""On the `_meta.json` of a backup: what the person who asked for it wrote about it."""
META_TRUST = "livememfs-trust"
"""Whose words the object has: `web`, `tool`, `imported`, `agent` or `user`. Absent: see `trust`."""
