"""Writing one note from text: what `livememfs note` and the tools of an agent do (data model 4.4 and 5).

Owns choosing a key that is free. Refuses an empty note and a space that is not there. Trio thread only.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from typing import Any

from livememfs.cache.replica import Replica
from livememfs.clock import Clock
from livememfs.errors import AlreadyExists, BadRequest, PreconditionFailed, TooLarge
from livememfs.records import keys
from livememfs.records.metadata import META_NAME
from livememfs.records.note import Note, canonical_name, complete, uid_ending, uid_of
from livememfs.spaces.describe import require_space
from livememfs.spaces.objects import OnPrivate, public, public_name, put_new, unheard
from livememfs.text import frontmatter

MAX_ATTEMPTS = 8

ChooseUid = Callable[[int], str]
"""Gives the uid to try at an attempt (0, 1, ...): eight hexadecimal digits."""


async def write_note(
    replica: Replica,
    clock: Clock,
    space: str,
    text: str,
    *,
    agent: str,
    category: str | None = None,
    tags: Sequence[str] = (),
    written_name: str = "",
    choose_uid: ChooseUid | None = None,
    on_private: OnPrivate = unheard,
) -> str:
    """Write a note and return its key; when this returns, the bucket has it. `on_private` hears what was replaced.

    Front matter in `text` goes before the arguments, and a `written_name` before the default category. Raises NotFound
    without the space, BadRequest for a note without a word, NotText, TooLarge, AlreadyExists when no free name was
    found.
    """
    await require_space(replica, space)
    path, now = keys.live_key(space, written_name or "(new note)"), clock.now()
    data = await public(_with_arguments(text, category, tags), path, on_private)
    agent = public_name(agent, path, on_private)
    if public_name(written_name, path, on_private) != written_name:
        written_name = ""
    note, sealed = complete(data, path=path, written_name=written_name, space=space, agent=agent, now=now)
    if not note.body.strip():
        raise BadRequest(path=path, detail="there is nothing in the note")
    order = replica.order.next(space, note.timestamp, now)
    ending = uid_ending(space, written_name) if written_name else secrets.token_hex(4)[-keys.ENDING_DIGITS :]
    choose_uid = choose_uid or (lambda attempt: uid_of(order + attempt, ending))
    return await _put_note(replica, space, note, sealed, written_name, choose_uid)


async def _put_note(
    replica: Replica, space: str, note: Note, data: bytes, written_name: str, choose_uid: ChooseUid
) -> str:
    """Put a completed note under the first free canonical name and return its key. Raises AlreadyExists."""
    meta = {META_NAME: written_name} if written_name else None
    key = ""
    for attempt in range(MAX_ATTEMPTS):
        key = keys.live_key(space, canonical_name(note, choose_uid(attempt)))
        try:
            await put_new(replica, key, data, meta=meta)
        except PreconditionFailed:
            continue
        return key
    raise AlreadyExists(path=key)


def _with_arguments(text: str, category: str | None, tags: Sequence[str]) -> str:
    """The text with the fields that were given beside it, where its own front matter does not have them."""
    given: dict[str, Any] = {}
    if category and category.strip():
        given["category"] = category.strip()
    if tags:
        given["tags"] = list(tags)
    if not given:
        return text
    try:
        metadata, body = frontmatter.split(text)
    except frontmatter.FrontMatterError:
        metadata, body = {}, text
    try:
        return frontmatter.join({**given, **metadata}, body)
    except frontmatter.FrontMatterError as error:
        raise TooLarge(path="the front matter", detail=str(error)) from error
