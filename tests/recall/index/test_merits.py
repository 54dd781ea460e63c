"""The memories that come with any message: the same ones as if all were weighed each time, whatever changed before."""

from __future__ import annotations

import random

import numpy as np
import pytest

from livememfs.recall.index.merits import IMPORTANCES, Foremost, Merit, Merits, UnaskedMemories, Use, weigh

DAY = 86_400


def some(chance: random.Random, count: int, importances: int) -> list[Merit]:
    """Memories, many of which share their importance or their times."""
    return [
        Merit(
            number,
            number + 1_000,
            chance.choice("ab"),
            chance.choice(("identity", "fact", "fact", "fact")),
            float(np.float32(chance.randrange(importances + 1) / importances)),
            created := chance.randrange(40) * DAY,
            created + chance.choice((0, 0, DAY, chance.randrange(90 * DAY))),
            chance.choice(("", "lobby")),
        )
        for number in range(1, count + 1)
    ]


def expected(memories: list[Merit], uses: dict[int, Use], spaces: str, wanted: UnaskedMemories) -> Foremost:
    """What weighing all of them finds."""
    here = [memory for memory in memories if memory.space in spaces]
    used = {memory.number: uses.get(memory.number, Use(0, 0)) for memory in here}
    columns = ([memory.importance for memory in here], [memory.updated for memory in here])
    counts = ([used[memory.number].times for memory in here], [used[memory.number].last for memory in here])
    importance, updated, times, last = (np.array(values) for values in (*columns, *counts))
    weights = dict(
        zip((memory.number for memory in here), weigh(importance, updated, times, last, wanted.now), strict=True)
    )

    def best(among: list[Merit], *names: str) -> tuple[int, ...]:
        order = sorted(among, key=lambda memory: [-getattr(memory, name) for name in names] + [-memory.number])
        return tuple(memory.record for memory in order[: wanted.most])

    important = [memory for memory in here if memory.type != "identity" and memory.importance >= wanted.least]
    important.sort(key=lambda memory: (-weights[memory.number], -memory.updated, -memory.number))
    recent = [memory for memory in here if memory.created >= wanted.since and wanted.channel in ("", memory.channel)]
    return Foremost(
        best([memory for memory in here if memory.type == "identity"], "importance", "updated"),
        tuple(memory.record for memory in important[: wanted.most]),
        best(recent, "created"),
    )


@pytest.mark.parametrize("importances", [4, IMPORTANCES * 10])
@pytest.mark.parametrize("seed", range(4))
def test_the_foremost_are_the_same_as_if_all_were_weighed_at_that_time(importances: int, seed: int) -> None:
    chance = random.Random(seed)
    memories, uses, merits = some(chance, 300, importances), dict[int, Use](), Merits()
    merits.put(memories[:250])
    there = memories[:250]
    for step in range(4):
        for spaces in ("a", "ab", "c"):
            for now in (40 * DAY, 400 * DAY):
                for channel in ("", "lobby", "nowhere"):
                    since = now - chance.choice((DAY, 30 * DAY, 1_000 * DAY))
                    wanted = UnaskedMemories(now, since, chance.choice((0.0, 0.5)), channel, chance.choice((0, 1, 9)))
                    assert merits.foremost(list(spaces), wanted) == expected(there, uses, spaces, wanted)
        if step == 0:
            merits.put(memories[250:])
            there = memories
        elif step == 1:
            gone = set(chance.sample(range(1, 301), 40))
            merits.remove(gone)
            there = [memory for memory in memories if memory.number not in gone]
        else:
            uses |= {
                number: Use(chance.randrange(30), chance.randrange(60 * DAY))
                for number in chance.sample(range(1, 301), 50)
            }
            merits.use(uses)
