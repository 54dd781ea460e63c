"""The client against a real HTTP server: what is sent, what comes back, and what each failure means."""

from __future__ import annotations

import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio

from livememfs.errors import (
    ContextOverflow,
    ModelDenied,
    ModelError,
    ModelTimedOut,
    ModelUnreachable,
    ReplyRefused,
    RequestRefused,
)
from livememfs.llm.base import ChatMessage, ChatReply
from livememfs.llm.client import OpenAIChat
from livememfs.testing.llm import LLMRequest, Scripted, ScriptedLLM

KEY = "sk-test-0123456789abcdef"
MESSAGES = [ChatMessage("system", "Answer in JSON."), ChatMessage("user", "Wie geht's? \u00e9\u4e2d")]


@asynccontextmanager
async def open_chat(url: str, *, key: str = KEY, timeout: float = 20.0) -> AsyncIterator[OpenAIChat]:
    chat = OpenAIChat(url, key, "m-1", timeout)
    try:
        yield chat
    finally:
        await chat.aclose()


async def ask(url: str, *, json_object: bool = True, key: str = KEY, timeout: float = 20.0) -> ChatReply:
    async with open_chat(url, key=key, timeout=timeout) as chat:
        return await chat.chat(MESSAGES, max_tokens=77, temperature=0.25, json_object=json_object)


async def test_a_request_carries_model_messages_limits_and_key() -> None:
    with ScriptedLLM({"ok": True}, key=KEY) as llm:
        reply = await ask(llm.url)

    assert reply == ChatReply('{"ok": true}', "stop", "scripted", 100, 20, 120)
    [request] = llm.requests
    assert request.path == "/v1/chat/completions"
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.body == {
        "model": "m-1",
        "messages": [{"role": m.role, "content": m.content} for m in MESSAGES],
        "max_tokens": 77,
        "temperature": 0.25,
        "response_format": {"type": "json_object"},
    }


async def test_a_json_object_is_only_asked_for_on_request() -> None:
    with ScriptedLLM("prose") as llm:
        assert (await ask(llm.url, json_object=False)).text == "prose"

    assert "response_format" not in llm.requests[0].body


async def test_a_server_without_a_key_is_usable() -> None:
    with ScriptedLLM("x") as llm:
        assert (await ask(llm.url, key="")).text == "x"


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [(None, (0, 0, 0)), ({"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": "many"}, (7, 3, 10))],
)
async def test_odd_usage_counts_as_nothing_and_a_missing_total_is_the_sum(
    usage: dict[str, object] | None, tokens: tuple[int, int, int]
) -> None:
    with ScriptedLLM(Scripted("x", usage=usage)) as llm:
        reply = await ask(llm.url)

    assert (reply.prompt_tokens, reply.completion_tokens, reply.total_tokens) == tokens


async def test_the_finish_reason_is_passed_on() -> None:
    with ScriptedLLM(Scripted("x", finish_reason="length"), Scripted("x", finish_reason=None)) as llm:
        assert (await ask(llm.url)).finish_reason == "length"
        assert (await ask(llm.url)).finish_reason == ""


async def test_a_rejected_response_format_is_left_out_from_then_on() -> None:
    with ScriptedLLM("one", "two", rejects=["response_format"]) as llm:
        async with open_chat(llm.url) as chat:
            replies = [await chat.chat(MESSAGES, max_tokens=1, temperature=0.0) for _ in range(2)]

    assert [reply.text for reply in replies] == ["one", "two"]
    assert ["response_format" in request.body for request in llm.requests] == [True, False, False]
    assert chat.statistics().without == ("response_format",)


async def test_a_server_that_wants_the_newer_limit_gets_it() -> None:
    refusal = Scripted(
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
        status=400,
        error_fields={"param": "max_tokens", "code": "unsupported_parameter"},
    )
    with ScriptedLLM(refusal, "x", "y") as llm:
        async with open_chat(llm.url) as chat:
            for _ in range(2):
                await chat.chat(MESSAGES, max_tokens=5, temperature=0.0)

    assert [(r.body.get("max_tokens"), r.body.get("max_completion_tokens")) for r in llm.requests] == [
        (5, None),
        (None, 5),
        (None, 5),
    ]


async def test_several_unknown_parameters_are_found_out_one_after_the_other() -> None:
    with ScriptedLLM("x", rejects=["response_format", "max_tokens", "temperature"]) as llm:
        assert (await ask(llm.url)).text == "x"

    assert len(llm.requests) == 4
    assert set(llm.requests[-1].body) == {"model", "messages", "max_completion_tokens"}


async def test_a_schema_goes_to_endpoints_that_take_one_and_no_second_time_to_those_that_do_not() -> None:
    def strict(request: LLMRequest) -> Scripted:
        if request.body["response_format"]["type"] == "json_schema":
            return Scripted("response_format: this model takes json_object only", status=400)
        return Scripted("{}")

    forms = []
    for responder in (lambda _: Scripted("{}"), strict):
        with ScriptedLLM(responder=responder) as llm:
            model = OpenAIChat(llm.url, "", "m", 30.0)
            for _ in range(2):
                await model.chat([ChatMessage("user", "x")], max_tokens=1, temperature=0.0, schema={"type": "object"})
            await model.aclose()
        forms.append([request.body["response_format"]["type"] for request in llm.requests])

    assert forms == [["json_schema"] * 2, ["json_schema", "json_object", "json_object"]]


async def test_a_server_that_rejects_everything_is_not_asked_for_ever() -> None:
    answer = Scripted("response_format is not supported", status=400)
    with ScriptedLLM(answer, answer) as llm, pytest.raises(ModelError, match="status 400"):
        await ask(llm.url)

    assert len(llm.requests) == 2


def reported(code: object, message: str) -> Scripted:
    """An error with status 200."""
    return Scripted(body=json.dumps({"error": {"code": code, "message": message}}).encode())


FAILURES = {
    "wrong key": (Scripted(f"Incorrect API key: {KEY}", status=401), ModelDenied, "key is wrong"),
    "forbidden": (Scripted("this model is not for you", status=403), ModelDenied, "not for you"),
    "unknown model": (Scripted("The model m-1 does not exist", status=404), ModelDenied, "m-1"),
    "bad request": (Scripted("max_tokens is over 16384", status=400), RequestRefused, "max_tokens is over 16384"),
    "filtered": (
        Scripted("it was filtered", status=400, error_fields={"code": "content_filter"}),
        RequestRefused,
        "it was filtered",
    ),
    "context by code": (
        Scripted("too much", status=400, error_fields={"code": "context_length_exceeded"}),
        ContextOverflow,
        "longer than the model",
    ),
    "context by words": (
        Scripted("This model's maximum context length is 8192 tokens. Reduce max_tokens", status=400),
        ContextOverflow,
        "longer than the model",
    ),
    "too large": (Scripted("request entity too large", status=413), ContextOverflow, "longer than the model"),
    "throttled": (Scripted("slow down", status=429), ModelUnreachable, "429"),
    "broken": (Scripted("oops", status=500), ModelUnreachable, "500"),
    "overloaded": (Scripted("busy", status=529), ModelUnreachable, "529"),
    "gateway with HTML": (
        Scripted(status=502, body=b"<html>bad gateway</html>", content_type="text/html"),
        ModelUnreachable,
        "502",
    ),
    "reset": (Scripted(reset=True), ModelUnreachable, "127.0.0.1"),
    "a page instead of an API": (Scripted(body=b"<html>hello</html>", content_type="text/html"), ModelError, "/v1"),
    "broken JSON": (Scripted(body=b'{"choices": ['), ModelError, "127.0.0.1"),
    "not an object": (Scripted(body=b"[]"), ModelError, "chat completion|no choices"),
    "an error with status 200": (Scripted(body=b'{"error": "quota"}'), ModelUnreachable, "quota"),
    "throttled with status 200": (reported(429, "slow down"), ModelUnreachable, "429: slow down"),
    "denied with status 200": (reported("401", "bad key"), ModelDenied, "key is wrong"),
    "too long with status 200": (
        reported(400, "maximum context length is 9"),
        ContextOverflow,
        "longer than the model",
    ),
    "an odd code with status 200": (reported(99999, "odd"), ModelUnreachable, "odd"),
    "JSON without an end": (Scripted(body=b'{"choices": ' + b"[" * 100_000), ModelError, "127.0.0.1"),
    "a number without an end": (Scripted(body=b'{"created": ' + b"9" * 5_000 + b"}"), ModelError, "127.0.0.1"),
    "choices of a wrong type": (Scripted(body=b'{"choices": 5}'), ReplyRefused, "no choices"),
    "no choices": (Scripted("x", choices=False), ReplyRefused, "no choices"),
    "no content": (Scripted(None, finish_reason="length"), ReplyRefused, "no text .finish_reason length"),
    "empty content": (Scripted(""), ReplyRefused, "no text"),
    "a refusal": (Scripted(None, refusal="I would rather not"), ReplyRefused, "declined: I would rather not"),
    "elsewhere": (
        Scripted("", status=307, headers={"location": "http://192.0.2.1/v1"}),
        ModelError,
        "sends us elsewhere",
    ),
}


@pytest.mark.parametrize("name", FAILURES)
async def test_each_failure_has_its_class_and_is_not_tried_again(name: str) -> None:
    answer, kind, text = FAILURES[name]
    with ScriptedLLM(answer) as llm, pytest.raises(ModelError, match=text) as caught:
        await ask(llm.url)

    assert type(caught.value) is kind
    assert len(llm.requests) == 1
    assert KEY not in str(caught.value)


async def test_the_key_never_leaves_in_an_error_even_when_the_server_echoes_it() -> None:
    answer = Scripted(f"bad token {KEY} and sk-other-12345", status=403)
    with ScriptedLLM(answer) as llm, pytest.raises(ModelDenied) as caught:
        await ask(llm.url)

    assert "sk-" not in repr(caught.value) + str(caught.value)


@pytest.mark.parametrize("key", ["a-plain-key\n", "a-plain-key\r\n", " a-plain-key "])
async def test_a_key_from_a_file_is_sent_without_what_stands_around_it(key: str) -> None:
    """A header with a line end in it is refused by the library, in words that tell the key."""
    with ScriptedLLM("pong") as llm:
        chat = OpenAIChat(llm.url, key, "m-1", 5)
        await chat.chat([ChatMessage("user", "ping")], max_tokens=5, temperature=0)
        await chat.aclose()

    assert llm.requests[0].headers["authorization"] == "Bearer a-plain-key"


async def test_a_refused_reply_tells_what_it_cost() -> None:
    with ScriptedLLM(Scripted(None, finish_reason="length")) as llm, pytest.raises(ReplyRefused) as caught:
        await ask(llm.url)

    assert caught.value.values["total_tokens"] == 120


async def test_a_server_that_hangs_times_out() -> None:
    with ScriptedLLM(Scripted("late", hold=True)) as llm, pytest.raises(ModelTimedOut, match=r"0\.3 seconds"):
        await ask(llm.url, timeout=0.3)


async def test_the_deadline_covers_the_whole_call_whatever_the_clock(mock_clock: trio.testing.MockClock) -> None:
    with ScriptedLLM(Scripted("late", hold=True)) as llm:
        async with trio.open_nursery() as nursery:

            @nursery.start_soon
            async def _() -> None:
                with pytest.raises(ModelTimedOut, match="600"):
                    await ask(llm.url, timeout=600)

            await trio.to_thread.run_sync(llm.wait_for_requests, 1)
            mock_clock.jump(601)


async def test_a_closed_port_is_unreachable() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}/v1"
        with pytest.raises(ModelUnreachable, match=r"127\.0\.0\.1"):
            await ask(url)


async def test_a_proxy_of_the_environment_is_not_used_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    with ScriptedLLM("x") as llm:
        assert (await ask(llm.url)).text == "x"


async def test_cancelling_a_call_ends_it_at_once() -> None:
    with ScriptedLLM(Scripted("late", hold=True)) as llm:
        async with open_chat(llm.url) as chat, trio.open_nursery() as nursery:
            nursery.start_soon(lambda: chat.chat(MESSAGES, max_tokens=1, temperature=0.0))
            await trio.to_thread.run_sync(llm.wait_for_requests, 1)
            nursery.cancel_scope.cancel()


async def test_statistics_count_requests_failures_and_tokens() -> None:
    with ScriptedLLM("x", Scripted("no", status=500)) as llm:
        async with open_chat(llm.url) as chat:
            await chat.chat(MESSAGES, max_tokens=1, temperature=0.0)
            with pytest.raises(ModelUnreachable):
                await chat.chat(MESSAGES, max_tokens=1, temperature=0.0)

    figures = chat.statistics()
    assert (figures.requests, figures.failures, figures.prompt_tokens, figures.completion_tokens) == (2, 1, 100, 20)
