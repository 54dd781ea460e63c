"""Finding the one JSON object in a model's reply.

Owns the tolerance that models need and no more: reasoning before the answer, a code fence or a sentence around the
object. Refuses to guess: several objects, a truncated one, duplicate keys, an object inside something larger. Nothing
is repaired: where a bracket seems to be missing, mostly half of the reply is. Pure; may be called from any thread.
"""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from livememfs.errors import ReplyRefused

_REASONING = re.compile(r"<(think|thinking|thought|reasoning)\b[^>]*>", re.IGNORECASE)
_REASONING_END = re.compile(r"</(?:think|thinking|thought|reasoning)>", re.IGNORECASE)
_LOOKS_LIKE_JSON = re.compile(r'\{\s*(?:"|\}|$)')


def extract_json(text: str) -> dict[str, Any]:
    """The one JSON object in `text`. ReplyRefused without one, or if the text can be read in more than one way."""
    answer = _without_reasoning(text.strip().lstrip("\ufeff"))
    objects: list[dict[str, Any]] = []
    position = 0
    while (start := answer.find("{", position)) >= 0:
        if not _LOOKS_LIKE_JSON.match(answer, start):
            position = start + 1  # a brace in a sentence, such as {name}
            continue
        value, position = _decode(answer, start)
        _check_alone(answer, start, position)
        objects.append(value)
    if not objects:
        raise ReplyRefused("it holds no JSON object")
    if len(objects) > 1:
        raise ReplyRefused(f"it holds {len(objects)} JSON objects where one was asked for")
    return objects[0]


def _without_reasoning(text: str) -> str:
    """The text after any reasoning in front of it. A block without an end hides where the answer starts."""
    while opening := _REASONING.match(text):
        closing = _REASONING_END.search(text, opening.end())
        if closing is None:
            raise ReplyRefused("its reasoning block is never closed")
        text = text[closing.end() :].strip()
    closing = _REASONING_END.search(text)
    if (
        closing is not None
        and not text.startswith(("{", "```"))
        and _REASONING.search(text, 0, closing.start()) is None
    ):
        return _without_reasoning(text[closing.end() :].strip())  # the chat template had the opening tag
    return text


def _decode(text: str, start: int) -> tuple[dict[str, Any], int]:
    """The object that starts at `start` and where it ends."""
    try:
        value, end = _DECODER.raw_decode(text, start)
    except json.JSONDecodeError as error:
        end_of_text = len(text.rstrip().removesuffix("```").rstrip())
        if error.pos >= end_of_text or error.msg.startswith("Unterminated string"):
            raise ReplyRefused("its JSON ends in the middle: the reply is truncated") from None
        raise ReplyRefused(f"its JSON is invalid: {error.msg} at character {error.pos}") from None
    except (RecursionError, ValueError) as error:
        reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ReplyRefused(f"its JSON is invalid: {reason}") from None
    return value, end


def _check_alone(text: str, start: int, end: int) -> None:
    """An object inside an array, or before a stray bracket, is a part of something that could not be read."""
    if text[:start].rstrip().endswith("[") or text[end:].lstrip().startswith(("]", "}", ",")):
        raise ReplyRefused("its JSON object stands inside something larger")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in pairs:
        if name in result:
            raise ValueError(f"the key {json.dumps(name[:80])} is there twice")
        result[name] = value
    return result


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_no_constant)
