"""Two memories that contradict one another are told in one line with dates, whichever of them fits the message."""

from __future__ import annotations

import pytest
from recall_world import SPACE, Bucket, prehook

from livememfs.records.turn import Turn

TABS, SPACES = "The platform team indents with tabs.", "The platform team indents with spaces."


async def told(bucket: Bucket, *messages: str) -> list[list[str]]:
    """The texts that each message of one session is told."""
    async with prehook(bucket) as hook:
        answers = [await hook.turn(SPACE, Turn(message, "s")) for message in messages]
    return [[one.text for one in answer.told.emitted] if answer.told is not None else [] for answer in answers]


async def stored(bucket: Bucket, newer: str = SPACES, *, linked: bool = True) -> str:
    """Tabs, and thirty days later what contradicts them; the line of both."""
    older = await bucket.remember(TABS)
    said = bucket.clock.now()
    bucket.clock.advance(days=30)
    links = {"links": {"contradicts": [older.rpartition("/")[2]]}} if linked else {}
    await bucket.remember(newer, **links)
    now = bucket.clock.now()
    bucket.clock.advance(days=1)
    return f"{said:%Y-%m-%d}: {TABS[:-1]}; {now:%Y-%m-%d}: {SPACES[:-1]}"


@pytest.mark.parametrize("message", ["does the platform team indent with tabs?", "does it indent with spaces?"])
async def test_a_pair_is_one_line_with_the_date_of_each(bucket: Bucket, message: str) -> None:
    line = await stored(bucket)
    assert await told(bucket, message) == [[line]]


async def test_a_pair_is_told_once_in_a_session(bucket: Bucket) -> None:
    line = await stored(bucket)
    assert await told(bucket, "does the platform team indent with tabs?", "or does it indent with spaces?") == [
        [line],
        [],
    ]


async def test_without_the_link_both_are_told_as_they_are(bucket: Bucket) -> None:
    await stored(bucket, linked=False)
    (texts,) = await told(bucket, "does the platform team indent with tabs or spaces?")
    assert sorted(texts) == sorted((TABS, SPACES))


async def test_a_link_that_the_words_no_longer_bear_out_makes_no_pair(bucket: Bucket) -> None:
    await stored(bucket, "The platform team likes tabs and spaces.")
    (texts,) = await told(bucket, "does the platform team like tabs or spaces?")
    assert not [text for text in texts if "; " in text]
    assert TABS in texts
