"""The user metadata that objects of ours carry: every `livememfs-*` name, and what stands under it.

Owns the names, which no other module may spell (a test looks). What a value looks like is decided by whoever writes it.
Pure; any thread.
"""

from __future__ import annotations

META_OP = "livememfs-op"
"""The id of the write, so that a writer knows its own work again."""
META_NAME = "livememfs-name"
"""The name a note was written under, by which any mount finds it again."""
META_SHA256 = "livememfs-sha256"
"""SHA-256 of the content, of what a mount uploaded."""
META_MADE = "livememfs-made"
"""Of a note that was edited: the ids of the writes that may have made its first version."""
META_CONFLICT = "livememfs-conflict"
"""Of a conflict copy: the key it could not have, of a very long one the end."""
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
"""Of a backup's `_meta.json`: who wanted the backup. Absent when a person did."""
