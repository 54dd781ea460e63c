"""A turn of a conversation as a hook writes it: JSON, or plain text.

Owns reading it. Several JSON objects, or several lines of text, are one turn, so that messages in quick succession are
answered together (spacebot-memory-v2 3.3). Refuses bytes that are not UTF-8 (NotText) and JSON of another form
(BadRequest). Pure; any thread.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from livememfs.errors import BadRequest, NotText

ADVICE = 'write {"message": "..."}, or plain text'
FIELDS = ("session", "message", "source", "channel_id", "format")
_HALF = re.compile("[\ud800-\udfff]")
"""A lone surrogate, as JSON can have one: a text with it can be neither stored nor searched."""


@dataclass(frozen=True)
class Turn:
    """One turn.

    :session: the conversation; empty when the writer did not say
    :source:  `system` for a message that is not a user's
    :channel: where the message was written
    :folder:  the directory that its writer works in; empty where that is not known
    :json:    whether the answer is to be JSON
    """

    message: str
    session: str = ""
    source: str = ""
    channel: str = ""
    folder: str = ""
    json: bool = False

    def of(self, session: str) -> Turn:
        """The turn, with this session if it has none."""
        return self if self.session else replace(self, session=session)

    @classmethod
    def parse(cls, data: bytes, *, path: str) -> Turn:
        """The turn in a request. Raises NotText, BadRequest."""
        try:
            text = data.decode()
        except UnicodeDecodeError as error:
            raise NotText(path=path, detail="a request is UTF-8") from error
        if text.lstrip().startswith("{"):
            return _from_json(text, path)
        return cls(_joined([text]))


def _from_json(text: str, path: str) -> Turn:
    objects = _objects(text, path)
    for each in objects:
        unknown = [name for name in each if name not in FIELDS]
        wrong = [name for name in FIELDS if not isinstance(each.get(name, ""), str | None)]
        if unknown or wrong or "message" not in each:
            what = f"unknown: {', '.join(unknown)}" if unknown else f"no text: {', '.join(wrong) or 'message'}"
            raise BadRequest(path=path, detail=f"a request has the texts {', '.join(FIELDS)}; {what}", advice=ADVICE)
    messages = [each for each in objects if each.get("source") != "system"] or objects
    last = {name: next((each[name] for each in reversed(messages) if each.get(name)), "") for name in FIELDS}
    if last["format"] not in ("", "json", "text"):
        raise BadRequest(path=path, detail="format is json or text")
    session, source, channel = (_whole(last[name]) for name in ("session", "source", "channel_id"))
    is_json = last["format"] == "json"
    return Turn(_joined(each["message"] for each in messages), session, source, channel, json=is_json)


def _objects(text: str, path: str) -> list[dict[str, Any]]:
    """The JSON objects of a text, one after the other."""
    decoder, objects, at = json.JSONDecoder(), list[dict[str, Any]](), 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        try:
            value, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise BadRequest(path=path, detail=f"the request begins like JSON but is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise BadRequest(path=path, detail="a request is a JSON object, or text")
        objects.append(value)
    return objects


def _joined(messages: Iterable[str | None]) -> str:
    """All messages as one text on one line."""
    return _whole(" ".join(" ".join(message.split("\n")) for message in messages if message).strip())


def _whole(text: str) -> str:
    return _HALF.sub("\ufffd", text)
