"""The registry of tokens, `_system/tokens.json` (data model 3.1), and the tokens in it.

Owns the form of the record and what a token is worth at a moment. A secret is known by its SHA-256 alone, and compared
in constant time. What cannot be understood opens nothing: an expiry that is no time has passed, an entry that is none
is kept as it is and never matches. Pure but for the system's random numbers in `new_secret`; any thread.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from livememfs.records.access import PERMISSIONS, Access
from livememfs.text.foreign import Unreadable, moment, read_object
from livememfs.text.times import iso

PREFIX = "lm_"
"""How the secret of a token begins, so that it is known for one wherever it turns up."""
SECRET_BYTES = 32
HASH = "sha256:"
LEAST_HASH = 8
"""Digits of a hash that are enough to mean a token."""
MAX_NAME = 100
MAX_SECRET = 512

State = Literal["active", "expired", "revoked"]
_FIELDS = ("hash", "name", "permissions", "space_ids", "created_at", "expires_at", "last_used_at", "revoked")


def new_secret() -> str:
    """What the holder of a new token is given, once."""
    return PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def hash_of(secret: str) -> str:
    """By what a secret is known."""
    return HASH + hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Token:
    """One token.

    :hash:         `sha256:` and 64 hexadecimal digits
    :permissions:  of read, write, admin; anything else in it gives nothing
    :spaces:       those it is for; empty: all
    :created_at:   aware, UTC; None when the record does not say
    :expires_at:   None: never
    :last_used_at: to the minute; None: never
    :extra:        fields this version does not know
    """

    hash: str
    name: str
    permissions: tuple[str, ...]
    spaces: tuple[str, ...] = ()
    created_at: datetime | None = None
    expires_at: datetime | None = None
    last_used_at: datetime | None = None
    revoked: bool = False
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, value: object) -> Token:
        """An entry of the registry. Raises ValueError for one that is none."""
        if not isinstance(value, Mapping):
            raise ValueError("a token is an object")
        digest, name = value.get("hash"), value.get("name", "")
        if not isinstance(digest, str) or not re.fullmatch(HASH + "[0-9a-f]{64}", digest):
            raise ValueError("a token has a SHA-256")
        return cls(
            digest,
            name if isinstance(name, str) else "",
            _strings(value.get("permissions")),
            _spaces(value.get("space_ids")),
            moment(value.get("created_at")),
            _end(value.get("expires_at")),
            moment(value.get("last_used_at")),
            value.get("revoked", False) is not False,
            {name: one for name, one in value.items() if name not in _FIELDS},
        )

    def to_json(self) -> dict[str, Any]:
        """The entry, its fields in the order of the data model."""
        return {
            "hash": self.hash,
            "name": self.name,
            "permissions": list(self.permissions),
            "space_ids": list(self.spaces),
            "created_at": _written(self.created_at),
            "expires_at": _written(self.expires_at),
            "last_used_at": _written(self.last_used_at),
            "revoked": self.revoked,
            **self.extra,
        }

    def state(self, now: datetime) -> State:
        """What it is worth."""
        if self.revoked:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"

    def access(self) -> Access:
        """What its holder may do while it is active."""
        return Access(self.name, frozenset(self.permissions) & frozenset(PERMISSIONS), self.spaces)

    def is_meant(self, which: str) -> bool:
        """Whether somebody who names a token means this one: by its name, secret, hash, or the beginning of that."""
        if which.startswith(PREFIX):
            return hmac.compare_digest(self.hash, hash_of(which))
        digits = which.removeprefix(HASH).lower()
        return which == self.name or (len(digits) >= LEAST_HASH and self.hash.removeprefix(HASH).startswith(digits))


@dataclass(frozen=True)
class Registry:
    """All tokens. `others` are entries that are none, kept as they were; `extra` are fields beside the tokens."""

    tokens: tuple[Token, ...] = ()
    others: tuple[Any, ...] = ()
    version: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes) -> Registry:
        """The registry in an object. Raises Unreadable for anything that is none: nobody may write over that."""
        value = read_object(data)
        if not isinstance(value.get("tokens", []), list):
            raise Unreadable("it is no registry of tokens")
        tokens, others = [], []
        for entry in value.get("tokens", []):
            try:
                tokens.append(Token.parse(entry))
            except ValueError:
                others.append(entry)
        version = value.get("version", 1)
        extra = {name: one for name, one in value.items() if name not in ("version", "tokens")}
        return cls(tuple(tokens), tuple(others), version if isinstance(version, int) else 1, extra)

    def render(self) -> bytes:
        """The object: indented JSON with a line end."""
        entries = [*(token.to_json() for token in self.tokens), *self.others]
        value = {"version": self.version, "tokens": entries, **self.extra}
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")

    def find(self, secret: str) -> Token | None:
        """The token of a secret, whatever it is worth. Every entry is compared, so time tells nothing."""
        digest = hash_of(secret[:MAX_SECRET])
        found = None
        for token in self.tokens:
            if hmac.compare_digest(token.hash, digest):
                found = token
        return found

    def meant(self, which: str) -> list[Token]:
        """The tokens that somebody means."""
        return [token for token in self.tokens if token.is_meant(which)]

    def changed(self, token: Token) -> Registry:
        """With a token in place of the one of the same hash."""
        return replace(self, tokens=tuple(token if one.hash == token.hash else one for one in self.tokens))

    def without(self, gone: Sequence[Token]) -> Registry:
        """Without some."""
        hashes = {token.hash for token in gone}
        return replace(self, tokens=tuple(one for one in self.tokens if one.hash not in hashes))


def _strings(value: object) -> tuple[str, ...]:
    return tuple(one for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _spaces(value: object) -> tuple[str, ...]:
    """The spaces of a token. Only a list that is empty, or none at all, means all: what is odd must not open more."""
    if value is None or value == []:
        return ()
    return _strings(value) or ("",)


def _end(value: object) -> datetime | None:
    """When it expires; long ago when the record says something that is no time."""
    return None if value is None else moment(value) or datetime(1970, 1, 1, tzinfo=UTC)


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment, exact=True)
