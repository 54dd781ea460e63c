"""The registry of tokens, `_system/tokens.json` (data model 3.1), and the tokens in it.

Owns the form of the record, and whether a token is valid at a moment. Only the SHA-256 of a secret is stored, and it is
compared in constant time. Odd values give no access: an expiry that is no time counts as past, and an entry that is no
token is kept and never matches. Pure, except for the system's random numbers in `new_secret`; any thread.
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
"""How the secret of a token begins, so that it is recognised wherever it stands."""
SECRET_BYTES = 32
HASH = "sha256:"
LEAST_HASH = 8
"""The fewest digits of a hash that can name a token."""
EMAIL = "email"
MAX_NAME = 100
MAX_SECRET = 512

State = Literal["active", "expired", "revoked"]
_FIELDS = ("hash", "name", "permissions", "space_ids", "created_at", "expires_at", "last_used_at", "revoked")


def new_secret() -> str:
    """The secret of a new token, which its holder sees once."""
    return PREFIX + secrets.token_urlsafe(SECRET_BYTES)


def hash_of(secret: str) -> str:
    """The hash that is stored for a secret."""
    return HASH + hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class Token:
    """One token.

    :hash:         `sha256:` and 64 hexadecimal digits
    :permissions:  of read, write, admin; any other gives nothing
    :spaces:       the spaces it is for; empty: all
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
        """The token in an entry of the registry. Raises ValueError for any other entry."""
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
            {name: each for name, each in value.items() if name not in _FIELDS},
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
        """Whether it is valid, and why not."""
        if self.revoked:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "active"

    def access(self) -> Access:
        """What its holder may do while it is active."""
        return Access(self.name, frozenset(self.permissions) & frozenset(PERMISSIONS), self.spaces, self.hash)

    @property
    def email(self) -> str:
        """The address of its holder; empty when the record does not say."""
        given = self.extra.get(EMAIL)
        return given if isinstance(given, str) else ""

    def with_email(self, email: str) -> Token:
        """The token with an address, as Live Memory keeps it in the registry."""
        return replace(self, extra={**self.extra, EMAIL: email})

    def is_meant(self, which: str) -> bool:
        """Whether `which` names this token: it is its name, its secret, its hash, or the beginning of its hash."""
        if which.startswith(PREFIX):
            return hmac.compare_digest(self.hash, hash_of(which))
        digits = which.removeprefix(HASH).lower()
        return which == self.name or (len(digits) >= LEAST_HASH and self.hash.removeprefix(HASH).startswith(digits))


@dataclass(frozen=True)
class Registry:
    """All tokens. `others` are entries that are no tokens, unchanged; `extra` are the fields beside the tokens."""

    tokens: tuple[Token, ...] = ()
    others: tuple[Any, ...] = ()
    version: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def parse(cls, data: bytes) -> Registry:
        """The registry in an object. Raises Unreadable for any other object, which must not be overwritten."""
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
        extra = {name: each for name, each in value.items() if name not in ("version", "tokens")}
        return cls(tuple(tokens), tuple(others), version if isinstance(version, int) else 1, extra)

    def render(self) -> bytes:
        """The object: indented JSON with a line end."""
        entries = [*(token.to_json() for token in self.tokens), *self.others]
        value = {"version": self.version, "tokens": entries, **self.extra}
        return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode("utf-8", "backslashreplace")

    def find(self, secret: str) -> Token | None:
        """The token of a secret, valid or not. Every entry is compared, so that the time taken reveals nothing."""
        digest = hash_of(secret[:MAX_SECRET])
        matching = [token for token in self.tokens if hmac.compare_digest(token.hash, digest)]
        return matching[-1] if matching else None

    def meant(self, which: str) -> list[Token]:
        """The tokens that `which` names (see `Token.is_meant`)."""
        return [token for token in self.tokens if token.is_meant(which)]

    def changed(self, token: Token) -> Registry:
        """The registry with a token in place of the one with the same hash."""
        return replace(self, tokens=tuple(token if each.hash == token.hash else each for each in self.tokens))

    def without(self, gone: Sequence[Token]) -> Registry:
        """The registry without these tokens."""
        hashes = {token.hash for token in gone}
        return replace(self, tokens=tuple(each for each in self.tokens if each.hash not in hashes))


def _strings(value: object) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


def _spaces(value: object) -> tuple[str, ...]:
    """The spaces of a token. Only an empty list or null means all; an odd value must not give access to more."""
    if value is None or value == []:
        return ()
    return _strings(value) or ("",)


def _end(value: object) -> datetime | None:
    """When it expires; 1970 when the record has a value that is no time."""
    return None if value is None else moment(value) or datetime(1970, 1, 1, tzinfo=UTC)


def _written(moment: datetime | None) -> str | None:
    return None if moment is None else iso(moment, exact=True)
