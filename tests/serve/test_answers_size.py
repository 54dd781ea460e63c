"""An answer costs a model no more than a client takes; what is left out is named, and can be asked for."""

from __future__ import annotations

import json
from typing import Any

import pytest
from clients import SPACE, OpenClient

from livememfs.app import App
from livememfs.records import keys
from livememfs.records.observation import Observation
from livememfs.serve.toolbox import MOST_TOKENS
from livememfs.testing.clock import START
from livememfs.text.size import tokens

FRAME = 1.15
"""What JSON adds to texts of some length."""
LINE = "It is settled that this line has its twenty-four tokens, or as good as that, and an end.\n"


def cost(answer: dict[str, Any]) -> int:
    return tokens(json.dumps(answer, ensure_ascii=False))


async def put(app: App, path: str, text: str) -> None:
    await app.replica.put(f"{SPACE}/{path}", text.encode())


@pytest.fixture
async def large_bank(app: App) -> dict[str, str]:
    """Files of which not all fit into one answer, and one that does not by itself."""
    sizes = {"a.md": 400, "b.md": 1_200, "c.md": 300, "sub/d.md": 300}
    texts = {name: "".join(f"{number} {LINE}" for number in range(count)) for name, count in sizes.items()}
    for name, text in texts.items():
        await put(app, f"bank/{name}", text)
    return texts


async def test_files_that_there_is_no_room_for_are_named(open_client: OpenClient, large_bank: dict[str, str]) -> None:
    async with open_client() as client:
        whole = await client.call("bank_read_all", space_id=SPACE)
        summary = await client.call("space_summary", space_id=SPACE)

    for answer, shown in ((whole, whole["files"]), (summary, summary["bank_files"])):
        assert cost(answer) < MOST_TOKENS * FRAME
        assert shown
        assert {file["filename"]: file["content"] for file in shown}.items() <= large_bank.items()
        assert answer["left_out"]
        assert sorted([*answer["left_out"], *(file["filename"] for file in shown)]) == sorted(large_bank)


async def test_a_large_file_is_read_in_parts_that_are_the_whole(
    open_client: OpenClient, large_bank: dict[str, str]
) -> None:
    parts, line = [], 1
    async with open_client() as client:
        while line:
            answer = await client.call("bank_read", space_id=SPACE, filename="b.md", from_line=line)
            assert cost(answer) < MOST_TOKENS * FRAME
            parts.append(answer["content"])
            line = answer.get("next_line", 0)
        assert "it has 1200 lines" in await client.refused(
            "bank_read", space_id=SPACE, filename="b.md", from_line=1_201
        )
        small = await client.call("bank_read", space_id=SPACE, filename="c.md")

    assert len(parts) > 1
    assert "".join(parts) == large_bank["b.md"]
    assert small["content"] == large_bank["c.md"]
    assert "next_line" not in small


async def test_one_line_that_is_too_long_is_read_all_the_same(open_client: OpenClient, app: App) -> None:
    await put(app, "bank/long.md", "x" * (MOST_TOKENS * 5))
    await put(app, "bank/empty.md", "")
    async with open_client() as client:
        long = await client.call("bank_read", space_id=SPACE, filename="long.md")
        empty = await client.call("bank_read", space_id=SPACE, filename="empty.md")

    assert (len(long["content"]), "next_line" in long) == (MOST_TOKENS * 5, False)
    assert (empty["content"], "next_line" in empty) == ("", False)


async def test_notes_are_read_on_from_where_an_answer_ends(open_client: OpenClient, app: App) -> None:
    names = [f"20260220T14{number:02}00_a_todo_{number:08x}.md" for number in range(30)]
    for name in names:
        await put(app, f"live/{name}", f"---\nagent: a\n---\n\n{LINE * 50}")
    names_read: list[str] = []
    async with open_client() as client:
        for _ in names:
            answer = await client.call(
                "live_read", space_id=SPACE, limit=500, **({"before": names_read[-1]} if names_read else {})
            )
            assert cost(answer) < MOST_TOKENS * FRAME
            names_read += [note["filename"] for note in answer["notes"]]
            if not answer["more"]:
                break
        first = await client.call("live_search", space_id=SPACE, query="settled", limit=500)

    assert names_read == names[::-1]
    assert 1 < len(first["notes"]) < len(names)
    assert first["more"]


async def test_observations_that_there_is_no_room_for_are_named(open_client: OpenClient, app: App) -> None:
    ids = [f"{number:08x}" for number in range(12)]
    for uid in ids:
        seen = Observation(uid, "s-1", START, "bugfix", "A race is fixed", narrative=LINE * 150)
        await app.replica.put(keys.observations_prefix(SPACE) + seen.name, seen.render())
    async with open_client() as client:
        ids_read, wanted = [], [*ids, "ffffffff"]
        answers = []
        while wanted:
            answers.append(await client.call("get_observations", project=SPACE, ids=wanted))
            ids_read += [record["id"] for record in answers[-1]["observations"]]
            wanted = answers[-1].get("more", [])

    assert len(answers) == 3
    assert all(cost(answer) < MOST_TOKENS * FRAME for answer in answers)
    assert [answer["missing"] for answer in answers] == [["ffffffff"], [], []]
    assert ids_read == ids


async def test_a_file_of_a_folder_is_viewed_in_parts(open_client: OpenClient, app: App) -> None:
    await put(app, "plan.md", LINE * 1_500)
    async with open_client() as client:

        async def view(**given: Any) -> str:
            answer = await client.call("memory", space_id=SPACE, command="view", path="/memories/plan.md", **given)
            return str(answer["text"])

        first = (await view()).split("\n")
        assert tokens("\n".join(first)) < MOST_TOKENS * 1.3  # each line comes with its number
        last = int(first[-2].split("\t")[0])
        assert first[-1] == f"(more: view_range [{last + 1}, 1500])"
        assert (await view(view_range=[last + 1, -1])).split("\n")[1].startswith(f"{last + 1:6}\t")
        assert "(more" not in await view(view_range=[1_499, -1])
