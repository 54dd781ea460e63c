"""The embeddings endpoint: what is sent, which replies are believed, and what each failure means."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import numpy as np
import pytest
import trio
import trio.testing

from livememfs import errors
from livememfs.recall.embed.base import Embedder
from livememfs.recall.embed.endpoint import BATCH, MAX_CHARS, MAX_TOKENS, EndpointEmbedder, slug
from livememfs.testing.embed import hashed, hashed_reply, vectors_reply
from livememfs.testing.llm import Scripted, ScriptedLLM
from livememfs.text.size import tokens

KEY = "sk-test-0123456789abcdef"


@asynccontextmanager
async def embedding(
    *replies: Scripted, timeout: float = 20.0, **options: Any
) -> AsyncIterator[tuple[EndpointEmbedder, ScriptedLLM]]:
    """An embedder, and the endpoint that it asks."""
    with ScriptedLLM(*replies, **options) as server:
        embedder = EndpointEmbedder(server.url, KEY, "Org/Model-1", timeout)
        try:
            yield embedder, server
        finally:
            await embedder.aclose()


# --- what is sent ------------------------------------------------------------------------------------------------


async def test_a_request_carries_model_texts_and_key_and_nothing_else() -> None:
    async with embedding(responder=hashed_reply, key=KEY) as (embedder, server):
        await embedder.passages(["un chat", "a dog"])

    [request] = server.requests
    assert request.path == "/v1/embeddings"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {"model": "Org/Model-1", "input": ["un chat", "a dog"]}


async def test_many_texts_go_in_several_requests_and_keep_their_order() -> None:
    texts = [f"text number {number}" for number in range(2 * BATCH + 5)]
    async with embedding(responder=hashed_reply) as (embedder, server):
        rows = await embedder.passages(texts)

    assert [len(request.body["input"]) for request in server.requests] == [BATCH, BATCH, 5]
    assert rows.dtype == np.float32
    assert np.allclose(rows, [hashed(text, 64) for text in texts], atol=1e-6)


async def test_no_texts_are_no_request() -> None:
    async with embedding() as (embedder, server):
        with trio.testing.assert_checkpoints():
            assert (await embedder.passages([])).shape == (0, 0)

    assert server.requests == []


async def test_what_is_sent_of_a_text_is_unicode_not_empty_and_not_endless() -> None:
    async with embedding(responder=hashed_reply) as (embedder, server):
        await embedder.passages(["", "\ud800", "a\x00b", "x" * 2**20])

    assert server.requests[0].body["input"] == [" ", "?", "a\x00b", "x" * MAX_CHARS]


async def test_of_a_script_of_which_a_character_is_a_token_less_is_sent() -> None:
    async with embedding(responder=hashed_reply) as (embedder, server):
        await embedder.passages(["\u8bb0" * MAX_CHARS])

    [sent] = server.requests[0].body["input"]
    assert set(sent) == {"\u8bb0"}
    assert MAX_TOKENS * 0.9 < tokens(sent) <= MAX_TOKENS < tokens("\u8bb0" * MAX_CHARS)


async def test_a_question_is_a_text_like_any_other() -> None:
    async with embedding(responder=hashed_reply) as (embedder, server):
        question = await embedder.question("which dog?")

    assert server.requests[0].body["input"] == ["which dog?"]
    assert np.allclose(question, hashed("which dog?", 64), atol=1e-6)


# --- name and length ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model", "name"),
    [
        ("text-embedding-3-small", "text-embedding-3-small"),
        ("BAAI/bge-m3", "baai-bge-m3"),
        ("nomic-embed-text:v1.5", "nomic-embed-text-v1.5"),
        ("../..", "0cfd1c96"),
        ("模型", "c98e118e"),
        ("", "e3b0c442"),
    ],
)
def test_a_models_name_can_stand_in_a_key(model: str, name: str) -> None:
    assert slug(model) == name
    assert re.fullmatch(r"[a-z0-9][a-z0-9.-]*", slug(model))


def test_long_names_that_begin_alike_stay_apart() -> None:
    names = {slug("m" * 100 + str(number)) for number in range(20)}

    assert len(names) == 20
    assert {len(name) for name in names} == {64}


async def test_the_length_is_learned_from_the_first_reply() -> None:
    async with embedding(vectors_reply([[3, 4]]), vectors_reply([[0, -2.5]])) as (embedder, _):
        checked: Embedder = embedder
        assert (checked.name, checked.dim) == ("org-model-1", 0)

        assert (await embedder.passages(["a"])).tolist() == [[pytest.approx(0.6), pytest.approx(0.8)]]
        assert embedder.dim == 2
        assert (await embedder.question("b")).tolist() == [0, -1]


async def test_another_length_later_is_refused() -> None:
    """Somebody changed the model behind the name; vectors of both must not meet."""
    async with embedding(vectors_reply([[1, 0]]), vectors_reply([[1, 0, 0]])) as (embedder, _):
        await embedder.question("a")

        with pytest.raises(errors.ModelError, match="length of 3 now, and had 2 before"):
            await embedder.question("b")

        assert embedder.dim == 2


# --- replies that are not believed -------------------------------------------------------------------------------


async def test_vectors_are_put_in_the_order_of_their_index() -> None:
    data = [{"index": 1, "embedding": [0, 1]}, {"index": 0, "embedding": [1, 0]}]
    async with embedding(Scripted(body=json.dumps({"data": data}).encode())) as (embedder, _):
        assert (await embedder.passages(["a", "b"])).tolist() == [[1, 0], [0, 1]]


def numbered(*indices: object) -> bytes:
    return json.dumps({"data": [{"index": index, "embedding": [1.0]} for index in indices]}).encode()


BAD = {
    "too few": numbered(0),
    "too many": numbered(0, 1, 2),
    "the same twice": numbered(0, 0),
    "numbered from one": numbered(1, 2),
    "numbered by truth": numbered(False, True),
    "numbered by text": numbered("0", "1"),
    "not numbered": b'{"data": [{"embedding": [1]}, {"embedding": [1]}]}',
    "of different lengths": vectors_reply([[1, 2], [1, 2, 3]]).body,
    "without numbers": vectors_reply([[], []]).body,
    "of texts": vectors_reply([["1"], ["2"]]).body,
    "of truths": vectors_reply([[True], [True]]).body,
    "in base64": vectors_reply(["AAAAAA==", "AAAAAA=="]).body,
    "nothing": vectors_reply([None, None]).body,
    "of lists": vectors_reply([[[1]], [[1]]]).body,
    "of NaN": vectors_reply([[1, float("nan")], [1, 0]]).body,
    "infinite": vectors_reply([[1, float("inf")], [1, 0]]).body,
    "too large to measure": vectors_reply([[1e300, 1e300], [1, 0]]).body,
    "too large for a float": vectors_reply([[10**400, 1], [1, 0]]).body,
    "zero": vectors_reply([[0, 0], [1, 0]]).body,
    "an empty object": b"{}",
    "no object": b"[1, 2]",
    "null": b"null",
    "a list of null": b'{"data": [null, null]}',
    "no list": b'{"data": {"0": [1]}}',
    "no JSON": b"<html>",
    "half of it": b'{"data": [{"index": 0, "embedding": [1.0',
    "not UTF-8": b'{"data": "\xff"}',
}


@pytest.mark.parametrize("body", BAD.values(), ids=BAD)
async def test_an_odd_reply_is_a_failure_of_the_model_and_never_a_vector(body: bytes) -> None:
    async with embedding(Scripted(body=body), vectors_reply([[2, 0], [0, 2]])) as (embedder, _):
        with pytest.raises(errors.ModelError):
            await embedder.passages(["a", "b"])

        assert (embedder.dim, embedder.statistics().failures) == (0, 1)
        assert (await embedder.passages(["a", "b"])).tolist() == [[1, 0], [0, 1]]


async def test_a_page_in_the_place_of_an_api_is_told_apart() -> None:
    async with embedding(Scripted(body=b"<html>hello</html>", content_type="text/html")) as (embedder, _):
        with pytest.raises(errors.ModelError, match="does the URL end in /v1"):
            await embedder.question("a")


# --- failures ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (307, errors.ModelError),
        (400, errors.RequestRefused),
        (401, errors.ModelDenied),
        (403, errors.ModelDenied),
        (404, errors.ModelDenied),
        (413, errors.ContextOverflow),
        (429, errors.ModelUnreachable),
        (500, errors.ModelUnreachable),
        (503, errors.ModelUnreachable),
    ],
)
async def test_each_status_has_its_error_and_is_asked_once(status: int, kind: type[errors.ModelError]) -> None:
    async with embedding(Scripted("it is like that", status=status)) as (embedder, server):
        with pytest.raises(errors.ModelError) as caught:
            await embedder.question("a")

    assert type(caught.value) is kind
    assert len(server.requests) == 1


async def test_a_broken_connection_is_an_unreachable_model() -> None:
    async with embedding(Scripted(reset=True)) as (embedder, _):
        with pytest.raises(errors.ModelUnreachable):
            await embedder.question("a")


async def test_a_reply_that_takes_too_long_is_not_waited_for() -> None:
    async with embedding(Scripted(hold=True), timeout=0.2) as (embedder, _):
        with pytest.raises(errors.ModelTimedOut, match=r"0\.2 seconds"):
            await embedder.question("a")


async def test_the_key_is_never_in_an_error() -> None:
    async with embedding(Scripted(f"the key {KEY} may not do that", status=400)) as (embedder, _):
        with pytest.raises(errors.ModelError) as caught:
            await embedder.question("a")

    assert KEY not in str(caught.value)


async def test_a_failure_between_batches_is_raised() -> None:
    good = vectors_reply([[1]] * BATCH)
    async with embedding(good, Scripted("busy", status=503)) as (embedder, _):
        with pytest.raises(errors.ModelUnreachable):
            await embedder.passages(["a"] * (BATCH + 1))

        statistics = embedder.statistics()
    assert (statistics.texts, statistics.questions, statistics.failures) == (BATCH, 0, 1)
    assert statistics.seconds > 0


async def test_after_closing_nothing_is_sent() -> None:
    async with embedding(responder=hashed_reply) as (embedder, server):
        await embedder.aclose()

        with pytest.raises(trio.ClosedResourceError):
            await embedder.question("a")

    assert server.requests == []
