"""Which names are allowed: for spaces, for bank files; and the names of temporary files of editors.

Owns the rules for names that people, models and editors give. Never repairs a name silently: a bad name raises an error
that spells out the character at fault, because the worst ones are invisible. Pure; may be called from any thread.
"""

from __future__ import annotations

import re
import unicodedata

from livememfs.errors import InvalidName
from livememfs.records import keys

STATE = ".livememfs"
"""The directory of a mount that tells how it is doing."""

_SPACE_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
_SPACE_RESERVED = frozenset({"search"})

_MAX_FOLDERS = 3
_MAX_PART_BYTES = 255
_MAX_BANK_BYTES = 900  # with `bank/`; leaves room for the space's name in a key of 1,024 bytes
_OUTSIDE_BANK = frozenset(
    {
        keys.LIVE,
        keys.SYSTEM,
        keys.BACKUPS,
        keys.META,
        keys.RULES,
        keys.SYNTHESIS,
        keys.LEDGER,
        keys.CHANGES,
        keys.INDEX,
        keys.PROPOSALS,
    }
)
# Letters in Unicode that are invisible.
_BLANK_LETTERS = frozenset("\u115f\u1160\u3164\uffa0")

_LOCK = re.compile(r"\.#.+|\.~lock\..*#|\..+\.sw[a-px]", re.DOTALL)  # Emacs, LibreOffice, vim
_LITTER = re.compile(
    "|".join(
        (
            r"4913",  # vim tests with this name whether it can write to the directory
            r"\..*\.sw.",  # vim and nano: swap
            r"\.sw[a-z]",  # vim: swap of a buffer without a name
            r"\..*\.swpx",
            r".*~",  # backups
            r"\.#.*",  # emacs: lock
            r"#.*#",  # emacs: auto-save
            r"\.goutputstream-.*",  # glib
            r"\.~lock\..*#",  # LibreOffice
            r"sed[A-Za-z0-9]{6}",  # sed -i
            r"\..+\.[A-Za-z0-9]{6}",  # rsync
            r".*\.tmp",
            r".*\.tmp\..*",  # atomic writers: note.md.tmp.1234
            r".*___jb_(?:tmp|old)___",  # JetBrains: safe write
            r"\.DS_Store",
            r"\._.*",  # macOS: resource fork
            r"\.fuse_hidden.*",
            r"\.nfs.*",
        )
    ),
    re.DOTALL,
)


def check_space_name(name: str) -> str:
    """`name` itself if a space may have it: `[a-z0-9][a-z0-9._-]{0,62}` and not `search`. Raises InvalidName."""
    if name in _SPACE_RESERVED:
        raise InvalidName(path=_shown(name), detail="the name is reserved")
    if not _SPACE_NAME.fullmatch(name):
        detail = "a space is called by 1 to 63 of a-z 0-9 . _ - and starts with a letter or digit"
        raise InvalidName(path=_shown(name), detail=detail)
    return name


def check_bank_name(name: str) -> str:
    """The name of a bank file, as a model gives it, relative to `bank/` and in NFC. Raises InvalidName.

    Allowed are printable ASCII and letters, `.md` at the end, at most three folders. A leading `bank/` is dropped.
    Checking the result again does not change it.
    """
    given = unicodedata.normalize("NFC", name)
    fault = _character_fault(given)
    relative = given.removeprefix(f"{keys.BANK}/")
    fault = fault or _shape_fault(relative) or _length_fault(relative)
    if fault:
        raise InvalidName(path=_shown(name), detail=fault)
    return relative


def is_lock(name: str) -> bool:
    """Whether an editor only says by such a file that it has another one open. Nothing is lost where it is refused."""
    return _LOCK.fullmatch(name) is not None


def is_litter(name: str) -> bool:
    """Whether editors and tools use such a name for temporary files, which stay on this machine."""
    return _LITTER.fullmatch(name) is not None


def _character_fault(name: str) -> str:
    """What is wrong with the first bad character, or an empty string."""
    for character in name:
        if " " <= character <= "~" and character != "\\":
            continue
        if unicodedata.category(character).startswith("L") and character not in _BLANK_LETTERS:
            continue
        label = unicodedata.name(character, "a control or unassigned character")
        return f"U+{ord(character):04X} {label} may not be part of it"
    return ""


def _shape_fault(relative: str) -> str:
    """What is wrong with the path's parts, or an empty string."""
    parts = relative.split("/")
    if relative.startswith("/"):
        return "it must be relative to the bank"
    if "" in parts:
        return "a part of it is empty"
    if parts[0] in _OUTSIDE_BANK:
        return f"{parts[0]} is outside the bank"
    if parts[0] == keys.BANK:
        return "it repeats bank/"
    for part in parts:
        if part.startswith("."):
            return "no part of it may start with a dot"
        if part != part.strip():
            return "no part of it may start or end with a space"
    if not relative.endswith(".md"):
        return "it must end in .md"
    if len(parts) > _MAX_FOLDERS + 1:
        return f"it is more than {_MAX_FOLDERS} folders deep"
    return ""


def _length_fault(relative: str) -> str:
    """What is too long, or an empty string."""
    if any(len(part.encode()) > _MAX_PART_BYTES for part in relative.split("/")):
        return f"a part of it is over {_MAX_PART_BYTES} bytes long"
    if len(f"{keys.BANK}/{relative}".encode()) > _MAX_BANK_BYTES:
        return f"it is over {_MAX_BANK_BYTES} bytes long"
    return ""


def _shown(name: str) -> str:
    """The name for a message: invisible characters are escaped, and an empty name becomes `""`."""
    shown = "".join(
        character if character.isprintable() and character not in _BLANK_LETTERS else ascii(character)[1:-1]
        for character in name
    )
    return shown or '""'
