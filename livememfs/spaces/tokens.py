"""The tokens of a bucket: making, listing, changing and removing them, and what each of them allows (data model 3.1).

Owns every change of `_system/tokens.json`: it is read, changed, and written only over the version that was read; when
another process was faster this is done again, so no change is lost. A store without conditions is written under a
lease. Owns the copy of the registry in memory, too: it is read again when it is older than `FRESH` seconds; while the
bucket is away, it counts for `STALE` seconds, and after that no token is valid. Refuses to keep, log or show a secret.
Trio thread only.
"""

from __future__ import annotations

import hmac
import random
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import TypeVar

import structlog
import trio

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import (
    AlreadyExists,
    BadRequest,
    ConditionsUnsupported,
    ConflictRetry,
    LiveMemError,
    NotFound,
    ObjectMissing,
    ObjectUnreadable,
    PreconditionFailed,
    TimedOut,
)
from livememfs.records import keys
from livememfs.records.access import PERMISSIONS, Access
from livememfs.records.names import check_space_name
from livememfs.records.token import MAX_NAME, MAX_SECRET, PREFIX, Registry, State, Token, hash_of, new_secret
from livememfs.spaces.lease import Leases
from livememfs.spaces.objects import public_as_it_is
from livememfs.store.base import IfAbsent, IfMatch

log = structlog.get_logger("livememfs.spaces")

FRESH, UNKNOWN = 2.0, 0.5
"""Seconds for which the copy of the registry counts; fewer for a secret that it lacks, which may be of a new token."""
STALE = 300.0
USED_EVERY = 60.0
"""Seconds between two writes of when tokens were used."""
CHANGE_SECONDS = 60.0
PAUSE = 0.05
LONGEST_PAUSE = 1.0
BOOTSTRAP = "bootstrap"
"""The name of a caller with the bootstrap secret, who has no token."""
LEASE = "_tokens"
"""The name of the lease; no space can have it."""

T = TypeVar("T")


@dataclass(frozen=True)
class TokensStatistics:
    """Secrets that were checked, and those that were valid; reads, writes and repeated writes of the registry."""

    asked: int
    good: int
    reads: int
    writes: int
    retries: int


class Tokens:
    """The registry of one bucket. `run` writes when tokens were used; without it nothing does.

    `bootstrap` is a secret with all rights beside the registry, for the time before the first token; empty: none.
    """

    def __init__(self, replica: Replica, clock: Clock, leases: Leases, bootstrap: str = "") -> None:
        self._replica = replica
        self._clock = clock
        self._leases = leases
        self._bootstrap = hash_of(bootstrap) if bootstrap else ""
        self._changing = trio.Lock()
        self._reading = trio.Lock()
        self._known: Registry | None = None
        self._known_at = float("-inf")
        self._used: dict[str, datetime] = {}
        self._wanted = trio.Event()
        self._asked = self._good = self._reads = self._writes = self._retries = 0

    # --- what a token allows ----------------------------------------------------------------------------------

    async def access(self, secret: str) -> Access | None:
        """What the owner of a secret may do; None when it is not valid. StoreError when the registry cannot be read."""
        self._asked += 1
        if self.is_bootstrap(hash_of(secret[:MAX_SECRET])):
            return self._everything()
        token = (await self._registry()).find(secret)
        if token is None:
            token = (await self._registry(UNKNOWN)).find(secret)
        return self._worth(token)

    async def access_of(self, digest: str, *, stale: float = STALE) -> Access | None:
        """The same by the hash of a secret, to check a known token again. `stale`: seconds for which the copy of the
        registry counts while the bucket is away.
        """
        if self.is_bootstrap(digest):
            return self._everything()
        registry = await self._registry(stale=stale)
        return self._worth(next((token for token in registry.tokens if token.hash == digest), None))

    def is_bootstrap(self, digest: str) -> bool:
        """Whether this is the hash of the bootstrap secret."""
        return bool(self._bootstrap) and hmac.compare_digest(digest, self._bootstrap)

    def _everything(self) -> Access:
        self._good += 1
        return Access(BOOTSTRAP, frozenset(PERMISSIONS), (), self._bootstrap)

    def _worth(self, token: Token | None) -> Access | None:
        now = self._clock.now()
        if token is None or token.state(now) != "active":
            return None
        self._good += 1
        self._note_use(token, now)
        return token.access()

    async def _registry(self, fresh: float = FRESH, stale: float = STALE) -> Registry:
        """The copy of the registry; it is read again when it is older than `fresh` seconds."""
        if self._known is not None and self._age() <= fresh:
            return self._known
        async with self._reading:
            if self._known is not None and self._age() <= fresh:
                return self._known  # another task has read it while this one waited
            try:
                return (await self._read())[0]
            except LiveMemError:
                if self._known is None or self._age() > stale:
                    raise
                return self._known

    def _age(self) -> float:
        return trio.current_time() - self._known_at

    async def _read(self) -> tuple[Registry, str]:
        """The bucket's registry and its version, empty for none. ObjectUnreadable when it cannot be understood."""
        started = trio.current_time()
        key = keys.tokens_key()
        self._reads += 1
        try:
            stored = await self._replica.read(key, fresh=True)
            registry, etag = Registry.parse(stored.data), stored.info.etag
        except ObjectMissing:
            registry, etag = Registry(), ""
        except ValueError as error:
            raise ObjectUnreadable(error, path=key) from error
        self._known, self._known_at = registry, started
        return registry, etag

    # --- changes ----------------------------------------------------------------------------------------------

    async def create(
        self,
        name: str,
        permissions: Sequence[str],
        spaces: Sequence[str] = (),
        lasts: timedelta | None = None,
        *,
        email: str = "",
    ) -> tuple[str, Token]:
        """Make a token; returns its secret, which cannot be shown again, and its entry. BadRequest, AlreadyExists."""
        _check(name, permissions, spaces)
        now = self._clock.now().astimezone(UTC).replace(microsecond=0)
        if lasts is not None and lasts <= timedelta():
            raise _bad(f"it would last {lasts}")
        secret = new_secret()
        token = Token(hash_of(secret), name, _ordered(permissions), tuple(spaces), now, _after(now, lasts))
        token = token.with_email(email) if email else token

        def add(registry: Registry) -> tuple[Registry, None]:
            if any(other.name == name and other.state(now) == "active" for other in registry.tokens):
                raise AlreadyExists(path=f"token {name}")
            return replace(registry, tokens=(*registry.tokens, token)), None

        await self._change(add)
        log.info("token_created", name=name, permissions=list(token.permissions), spaces=list(token.spaces))
        return secret, token

    async def list(self) -> Sequence[Token]:
        """All tokens, in the order in which they were made."""
        return (await self._read())[0].tokens

    async def update(
        self,
        which: str,
        *,
        permissions: Sequence[str] | None = None,
        spaces: Sequence[str] | None = None,
        email: str = "",
    ) -> Token:
        """Change what a token allows; None, or no address: it stays as it is. NotFound, BadRequest."""
        _check("token", permissions if permissions is not None else ("read",), spaces or ())

        def change(registry: Registry) -> tuple[Registry, Token]:
            token = _the_one(registry, which)
            if permissions is not None:
                token = replace(token, permissions=_ordered(permissions))
            if spaces is not None:
                token = replace(token, spaces=tuple(spaces))
            token = token.with_email(email) if email else token
            return registry.changed(token), token

        return await self._change(change)

    async def give(self, digest: str, space: str) -> None:
        """Let a token that is limited to spaces see one more. NotFound when it is gone."""

        def give(registry: Registry) -> tuple[Registry, None]:
            token = _the_one(registry, digest)
            wider = token if not token.spaces else replace(token, spaces=(*token.spaces, space))
            return registry.changed(wider), None

        await self._change(give)

    async def revoke(self, which: str) -> Token:
        """Make a token invalid for good; it stays in the list. NotFound, BadRequest."""

        def revoke(registry: Registry) -> tuple[Registry, Token]:
            token = replace(_the_one(registry, which), revoked=True)
            return registry.changed(token), token

        token = await self._change(revoke)
        log.info("token_revoked", name=token.name)
        return token

    async def delete(self, which: str) -> Token:
        """Remove a token from the list. NotFound, BadRequest."""

        def delete(registry: Registry) -> tuple[Registry, Token]:
            token = _the_one(registry, which)
            return registry.without([token]), token

        token = await self._change(delete)
        log.info("token_deleted", name=token.name)
        return token

    async def purge(self, *, revoked: bool = False) -> Sequence[Token]:
        """Remove expired tokens, and with `revoked` revoked ones; returns those that were removed."""
        states: tuple[State, ...] = ("expired", "revoked") if revoked else ("expired",)
        return await self.purge_states(states)

    async def purge_states(self, states: Collection[State], *, but: str = "") -> Sequence[Token]:
        """Remove the tokens in these states, except the one with the hash `but`; returns those that were removed."""
        now = self._clock.now()

        def purge(registry: Registry) -> tuple[Registry, Sequence[Token]]:
            gone = [token for token in registry.tokens if token.state(now) in states and token.hash != but]
            return registry.without(gone), gone

        return await self._change(purge)

    async def _change(self, work: Callable[[Registry], tuple[Registry, T]]) -> T:
        """Change the registry by `work`; again, on the newer one, when others were faster. TimedOut after a minute."""
        async with self._changing:
            pause = PAUSE
            with trio.move_on_after(CHANGE_SECONDS):
                while True:
                    try:
                        return await self._try(work)
                    except (PreconditionFailed, ConflictRetry):
                        self._retries += 1
                        await trio.sleep(random.uniform(0, pause))  # so that rivals do not all try again at once
                        pause = min(pause * 2, LONGEST_PAUSE)
        raise TimedOut(keys.tokens_key())

    async def _try(self, work: Callable[[Registry], tuple[Registry, T]]) -> T:
        registry, etag = await self._read()
        changed, result = work(registry)
        if changed != registry:
            try:
                await self._write(changed, etag)
            except ConditionsUnsupported:
                return await self._under_lease(work)
            self._known, self._known_at = changed, trio.current_time()
        return result

    async def _write(self, registry: Registry, etag: str) -> None:
        condition = IfMatch(etag) if etag else IfAbsent()
        await self._replica.put(keys.tokens_key(), registry.render(), condition=condition)
        self._writes += 1

    async def _under_lease(self, work: Callable[[Registry], tuple[Registry, T]]) -> T:
        """The same for a store without conditions: other processes wait for the lease."""
        async with self._leases.hold(LEASE) as held:
            registry, _ = await self._read()
            changed, result = work(registry)
            await held.check()
            await self._replica.put(keys.tokens_key(), changed.render())
            self._writes += 1
            self._known, self._known_at = changed, trio.current_time()
            return result

    # --- when they were used ----------------------------------------------------------------------------------

    def _note_use(self, token: Token, now: datetime) -> None:
        if token.last_used_at is not None and now - token.last_used_at < timedelta(seconds=USED_EVERY):
            return
        self._used[token.hash] = now.astimezone(UTC).replace(microsecond=0)
        self._wanted.set()

    async def run(self) -> None:
        """Write when tokens were used, at most once a minute, until cancelled."""
        while True:
            await self._wanted.wait()
            await self.write_uses()
            await trio.sleep(USED_EVERY)

    async def write_uses(self) -> None:
        """Write the uses that wait. When that fails they are lost; the next use is written again."""
        self._wanted = trio.Event()
        used, self._used = self._used, {}
        if not used:
            return

        def note(registry: Registry) -> tuple[Registry, None]:
            for token in registry.tokens:
                moment = used.get(token.hash)
                if moment is not None and (token.last_used_at is None or token.last_used_at < moment):
                    registry = registry.changed(replace(token, last_used_at=moment))
            return registry, None

        try:
            await self._change(note)
        except LiveMemError as error:
            log.info("token uses were not written down", reason=str(error))

    def statistics(self) -> TokensStatistics:
        """Counters, cheap."""
        return TokensStatistics(self._asked, self._good, self._reads, self._writes, self._retries)


def _check(name: str, permissions: Sequence[str], spaces: Sequence[str]) -> None:
    """Refuse fields that no token can have. BadRequest, InvalidName."""
    if not name.strip() or len(name) > MAX_NAME or not name.isprintable():
        raise _bad(f"a name has 1 to {MAX_NAME} characters that can be seen")
    public_as_it_is(name, "a token's name")
    unknown = sorted(set(permissions) - set(PERMISSIONS))
    if unknown or not permissions:
        raise _bad(f"permissions are some of {', '.join(PERMISSIONS)}, not {', '.join(unknown) or 'none'}")
    for space in spaces:
        check_space_name(space)


def _bad(detail: str) -> BadRequest:
    return BadRequest(path="token", detail=detail)


def _ordered(permissions: Sequence[str]) -> tuple[str, ...]:
    """Permissions in the order of the data model, each with the lower ones that it includes."""
    highest = max(map(PERMISSIONS.index, permissions))
    return PERMISSIONS[: highest + 1]


def _after(now: datetime, lasts: timedelta | None) -> datetime | None:
    try:
        return None if lasts is None else now + lasts
    except OverflowError:
        raise _bad("it would last beyond the year 9999") from None


def _the_one(registry: Registry, which: str) -> Token:
    """The token of a name or a hash. NotFound; BadRequest when several match."""
    matches = registry.meant(which)
    if len(matches) > 1 and len(active := [token for token in matches if not token.revoked]) == 1:
        return active[0]
    if not matches:
        raise NotFound(path=f"token {which}" if len(which) <= MAX_NAME and PREFIX not in which else "such token")
    if len(matches) > 1:
        raise _bad(f"{len(matches)} tokens are called so; name one by the beginning of its hash")
    [token] = matches
    return token
