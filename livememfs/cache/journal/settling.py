"""Two operations of one name, or one operation and another host's version: what the later one stands for then.

Owns the rules, as functions of operations and bytes: take over, swallow, follow, rejoin. Refuses to touch the disk or
the order of anything (`journal` does), and to ask the bucket (`conflicts` does). Pure; any thread.

A name is in one of these states. The long form, with what the bucket has and readers see, and with the test of each
cell, is in docs/concurrency.md ("The states of a name").

| state | another one here | the bucket has it | no answer, or a crash | another host was first |
|---|---|---|---|---|
| clean: no operation | queued | - | - | clean, with theirs |
| queued: one waits, never sent | queued, or clean | - | queued | queued |
| in flight: one is being sent | followed | clean | retrying | joined, in flight again, or clean |
| joined: the same, with another host's version in it | followed | clean | retrying | joined once more, or clean |
| followed: one in flight, one waits | followed | queued, or clean | retrying | followed, joined, queued, or clean |
| retrying: one waits, and may have arrived | retrying | - | retrying | retrying |

`base` says what an operation replaces; it is the condition of its request. These rules are about getting it right: with
a base that is too new another host's version is overwritten unread, with one that is too old our own earlier version is
taken for a stranger's, and there is a conflict copy of a file that one person has edited.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from livememfs.cache.journal.operation import BEFORE, FREE, Operation
from livememfs.records import keys
from livememfs.text.merge import merge
from livememfs.text.mergelines import merge_lines

if TYPE_CHECKING:
    from livememfs.store.base import ObjectInfo

JOINED_BYTES = 64 << 20
"""Content of up to this size is joined with another host's. Of larger versions, both are kept."""
Values = dict[str, Any]
"""What changes of an operation, by the name of the field."""


def join(key: str, base: bytes | None, ours: bytes, theirs: bytes, *, repeated: bool = False) -> bytes | None:
    """One content of two versions of an object, by the rule of its kind; None where both are to be kept.

    An index of an agent's memory is joined line by line, also where its base is not known. `repeated`: see `merge`.
    """
    if keys.is_agent_index(key):
        return merge_lines(base, ours, theirs)
    return merge(base, ours, theirs, repeated=repeated) if base is not None else None


def unheard(op: Operation) -> bool:
    """Whether the bucket cannot have anything under this operation's key that is ours.

    What is in flight, or was, may be there whatever was heard. What waits behind it is based on that, never on a free
    key, and what took the place of an attempt has its `tries`.
    """
    return op.base is FREE and not op.tries


def move_back(op: Operation) -> None:
    """A copy to where it comes from: renamed there and back. Only its metadata may be news."""
    if op.kind == "copy" and op.source == op.key:
        op.kind, op.source = "meta", ""


def take_over(op: Operation, waiting: Operation) -> None:
    """A new operation takes the place of the one that waits, which is sent no more.

    :base:      what the bucket was expected to have, it still has. Based on the one it replaces, which the bucket never
                gets, every second save of a file would be a conflict.
    :base_blob: the bytes of that, without which two appends could not be merged any more
    :sent:      attempts of the other may have arrived: their ids are known as ours
    :tries:     so may this one have, then; and whoever waits at a barrier compares with those it had
    :moved:     what is made from content that was moved here is no change of what was here before, either
    :after:     a renamed file's old name must not go, nor be written over, before the bucket has the new one
    :seq:       its row, and with it the place of whoever waits for it: a removal that comes after it, a barrier
    """
    op.base, op.base_blob = waiting.base, waiting.base_blob
    if waiting.tries:
        op.sent = waiting.sent_by()
        op.tries += waiting.tries
    op.after = waiting.after if op.after is None else op.after
    op.seq, op.accepted, op.moved = waiting.seq, waiting.accepted, op.moved or waiting.moved


def swallow(op: Operation, later: Operation) -> Values:
    """The operation in flight got no answer, and `later` waits behind it: that one is sent in its place.

    As when a new one takes over one that waits. `later` was never sent itself, and what `op` had to wait for has ended.
    One that could not be joined with what `op` became keeps its base NEVER, and the ids of `op` are not its own: `op`
    may have arrived, with another host's part in it, and nothing may take its place unread.
    """
    values: Values = {"tries": op.tries}
    if later.base == BEFORE:
        values |= {"sent": op.sent_by(), "base": op.base, "base_blob": None if later.moved else op.base_blob}
    if later.kind == "meta" and op.kind != "meta":  # attributes of a content that has to be sent: one request for both
        values |= {"kind": op.kind, "blob": op.blob, "source": op.source}
    return values


def follow(later: Operation, op: Operation, base: str) -> Values | None:
    """`op` has ended, and `later` waited behind it: it replaces the version that it was made from.

    `base` is the ETag of that: the bucket's, where the bucket has `op` as it was sent, else that of `op` alone (""
    where it leaves nothing). So what follows a version that gave way to another host's is settled with that one, and
    does not overwrite it unread. None: nothing is left to do. What a removal was to remove never was in the bucket
    then, and what is there now is another host's.
    """
    if later.kind == "delete" and not base:
        return None
    values: Values = {"base": base or FREE, "base_blob": None if later.moved else op.blob}
    if later.kind == "meta":  # whose content is that of `op`: readers see it until the attributes are there, too
        values |= {"etag": base, "size": op.size}
    return values


def has_seen(before: Operation | None, base: ObjectInfo | None) -> bool:
    """Whether a write made from `base` was made from what the operation before it has, another host's part included."""
    return before is not None and base is not None and base.etag == before.etag


def held(before: Operation | None, *, seen: bool) -> str:
    """`holds` of a write: the ETag of the content in flight of which it has everything.

    When that content is joined once more, the write is joined with the same from what it has (`whole`); otherwise from
    what its writer had accepted, who has not seen the first join and would seem to have taken another host's lines out.
    """
    if before is None or not (seen or before.origin is not None):
        return ""
    return before.etag if before.in_flight else before.holds


@dataclass(frozen=True, slots=True)
class Rejoined:
    """A content joined with what has become of its base. `accepted` is what its writer knows of it."""

    data: bytes
    accepted: bytes


def rejoin(
    op: Operation, content: bytes | None, base: bytes | None, joined: bytes | None, *, whole: bool
) -> Rejoined | None:
    """Join what was made from `base` with what has become of that, `joined`. None: the bucket has to settle it.

    `content` is the operation's. `whole`: it was made from `base`, and may itself be joined already; else what its
    writer accepted was.
    """
    accepted = op.origin if op.origin is not None else content
    own = content if whole else accepted
    if op.moved or base is None or own is None or accepted is None or joined is None:
        return None
    data = join(op.key, base, own, joined)
    return Rejoined(data, accepted) if data is not None else None
