"""A model for real programs: on loopback, in the four protocols they speak, saying what a script tells it to.

Owns the protocols, and every request as it came. Side calls (titles, topics, summaries of a conversation) are answered
with a line of text and use up nothing of the script. Any thread.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

Json = dict[str, Any]


@dataclass(frozen=True)
class Turn:
    """What the model does once: it says `text`, or calls a tool; `used` tokens are reported for the request.

    :tool:  what kind of tool; each program has its own name and arguments for it
    :found: a program that hides tools was asked for this one
    """

    text: str = ""
    tool: str = ""
    arguments: Json = field(default_factory=dict)
    used: int = 1000
    found: bool = False


@dataclass
class Asked:
    """One request: when it came, what kind it was (`turn`, `side`, `compact`) and all that it says to the model."""

    at: float
    kind: str
    body: Json

    @property
    def text(self) -> str:
        """Every text of the request but the tools' descriptions."""
        return "\n".join(_texts({key: value for key, value in self.body.items() if key != "tools"}))

    @property
    def tools(self) -> list[str]:
        """The names of the tools the model may call."""
        return list(_tool_names(self.body.get("tools") or []))


COMPACT = re.compile(
    r"create a detailed summary of the conversation|CONTEXT CHECKPOINT COMPACTION|<state_snapshot>"
    r"|anchored summary|summary of (?:our|the) conversation|handoff summary",
    re.IGNORECASE,
)
SEARCHES = frozenset({"tool_search", "ToolSearch"})
"""Tools that look for tools which a program does not name at once."""
SUMMARY = "The work goes on. What was said before is left out here."


class Endpoint:
    """The model of one program: `with Endpoint(call) as model`, then `model.script = [Turn(...), ...]`.

    `call(turn, tools)` names a tool of this program and its arguments.
    """

    def __init__(self, call: Callable[[Turn, Sequence[str]], tuple[str, Json]]) -> None:
        self.script: list[Turn] = []
        self.asked: list[Asked] = []
        self._call, self._lock, self._number = call, threading.Lock(), 0
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.model = self

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def take(self, path: str, body: Json) -> tuple[Turn, str, Json | None, int]:
        """What a request is answered: the turn, the tool's name and arguments, and a number nobody else has."""
        with self._lock:
            self._number += 1
            asked = Asked(time.time(), "", body)
            said = _last_texts(body)
            if COMPACT.search(said) or path.endswith("/responses/compact"):
                asked.kind, turn = "compact", Turn(SUMMARY, used=30_000)
            elif not asked.tools:
                asked.kind, turn = "side", Turn('{"title": "A day", "isNewTopic": false}', used=50)
            else:
                asked.kind, turn = "turn", self.script.pop(0) if self.script else Turn("There is nothing more to do.")
            self.asked.append(asked)
            name, arguments = self._call(turn, asked.tools) if turn.tool else ("", None)
            if name in SEARCHES:
                self.script.insert(0, replace(turn, found=True))
            return turn, name, arguments, self._number


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for one in value.values():
            yield from _texts(one)
    elif isinstance(value, list):
        for one in value:
            yield from _texts(one)


def _last_texts(body: Json) -> str:
    """The last two messages, as hooks' context may follow what is asked, and the system's, in any of the protocols."""
    messages = body.get("messages") or body.get("input") or body.get("contents") or []
    last = messages[-2:] if isinstance(messages, list) else messages
    system = [one for one in messages[:1] if isinstance(one, dict) and one.get("role") == "system"]
    return "\n".join(_texts([last, system, body.get("systemInstruction") or ""]))


def _tool_names(tools: list[Json]) -> Iterator[str]:
    for one in tools:
        if "functionDeclarations" in one:
            yield from (str(inner["name"]) for inner in one["functionDeclarations"])
        elif one.get("type") == "namespace":
            yield from (f"{one['name']}__{inner['name']}" for inner in one.get("tools", []))
        else:
            yield str(one.get("name") or one.get("function", {}).get("name") or one.get("type"))


# --- the protocols -----------------------------------------------------------------------------------------------


def anthropic(turn: Turn, name: str, arguments: Json | None, number: int) -> Iterator[tuple[str, Json]]:
    """Anthropic Messages, as server-sent events."""
    usage = {"input_tokens": turn.used, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0}
    start = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": []}
    nothing = {"stop_reason": None, "stop_sequence": None}
    yield "message_start", {"message": {**start, **nothing, "usage": {**usage, "output_tokens": 1}}}
    if name:
        block: Json = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(arguments)}
    else:
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": turn.text}
    yield "content_block_start", {"index": 0, "content_block": block}
    yield "content_block_delta", {"index": 0, "delta": delta}
    yield "content_block_stop", {"index": 0}
    stop = {"stop_reason": "tool_use" if name else "end_turn", "stop_sequence": None}
    yield "message_delta", {"delta": stop, "usage": {**usage, "output_tokens": 20}}
    yield "message_stop", {}


def anthropic_whole(turn: Turn, name: str, arguments: Json | None, number: int) -> Json:
    """The same in one piece."""
    usage = {"input_tokens": turn.used, "output_tokens": 20}
    block: Json = {"type": "text", "text": turn.text}
    if name:
        block = {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": arguments}
    start = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "scripted", "content": [block]}
    return {**start, "stop_reason": "tool_use" if name else "end_turn", "stop_sequence": None, "usage": usage}


def responses(turn: Turn, name: str, arguments: Json | None, number: int) -> Iterator[tuple[str, Json]]:
    """OpenAI Responses, as server-sent events."""
    said = [{"type": "output_text", "text": turn.text, "annotations": []}]
    item: Json = {"type": "message", "id": f"msg_{number}", "role": "assistant", "content": said}
    if name and arguments is not None:
        item = {"id": f"fc_{number}", "call_id": f"call_{number}", "name": name}
        if name == "tool_search":
            item |= {"type": "tool_search_call", "execution": "client", "status": "completed", "arguments": arguments}
        elif "*" in arguments:  # a tool that takes text as it is
            item |= {"type": "custom_tool_call", "input": arguments["*"]}
        else:
            item |= {"type": "function_call", "arguments": json.dumps(arguments)}
            space, mark, rest = name.rpartition("__")
            if mark and space.startswith("mcp__"):
                item |= {"name": rest, "namespace": space}
    usage = {"input_tokens": turn.used, "output_tokens": 20, "total_tokens": turn.used + 20}
    whole = {"id": f"resp_{number}", "object": "response", "status": "completed", "output": [item], "usage": usage}
    yield "response.created", {"response": {"id": f"resp_{number}", "status": "in_progress", "output": []}}
    yield "response.output_item.done", {"output_index": 0, "item": item}
    yield "response.completed", {"response": whole}


def completion(turn: Turn, name: str, arguments: Json | None, number: int, *, whole: bool) -> Iterator[Json]:
    """An OpenAI chat completion, in chunks or in one piece."""
    message: Json = {"role": "assistant", "content": None if name else turn.text}
    if name:
        function = {"name": name, "arguments": json.dumps(arguments)}
        message["tool_calls"] = [{"index": 0, "id": f"call_{number}", "type": "function", "function": function}]
    usage = {"prompt_tokens": turn.used, "completion_tokens": 20, "total_tokens": turn.used + 20}
    head = {"id": f"chatcmpl-{number}", "created": 1, "model": "scripted"}
    reason = "tool_calls" if name else "stop"
    if whole:
        choice = {"index": 0, "message": message, "finish_reason": reason}
        yield {**head, "object": "chat.completion", "choices": [choice], "usage": usage}
        return
    head["object"] = "chat.completion.chunk"
    yield {**head, "choices": [{"index": 0, "delta": message, "finish_reason": None}]}
    yield {**head, "choices": [{"index": 0, "delta": {}, "finish_reason": reason}]}
    yield {**head, "choices": [], "usage": usage}


def gemini(turn: Turn, name: str, arguments: Json | None, number: int) -> Json:
    """Gemini's generateContent; its stream is this one piece."""
    part: Json = {"functionCall": {"name": name, "args": arguments}} if name else {"text": turn.text}
    usage = {"promptTokenCount": turn.used, "candidatesTokenCount": 20, "totalTokenCount": turn.used + 20}
    candidate = {"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "scripted", "responseId": f"r{number}"}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    model: Endpoint

    def handle_error(self, request: object, client_address: object) -> None:
        """A program that went away is none of our business."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_HEAD(self) -> None:
        """Programs look whether anybody is there."""
        self._send("application/json", b"")

    def do_GET(self) -> None:
        """Lists of models, which are all short."""
        model = {"id": "scripted", "object": "model", "created": 1, "owned_by": "nobody"}
        self._send("application/json", json.dumps({"object": "list", "data": [model], "models": []}).encode())

    def do_POST(self) -> None:
        """A question to the model; anything else gets an empty object."""
        body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith("/count_tokens") or path.endswith(":countTokens"):
            self._json({"input_tokens": 1000, "totalTokens": 1000})
        elif path.endswith("/messages"):
            given = self.server.model.take(path, body)
            if body.get("stream"):
                self._events([(kind, {"type": kind, **data}) for kind, data in anthropic(*given)])
            else:
                self._json(anthropic_whole(*given))
        elif "/responses" in path:
            given = self.server.model.take(path, body)
            self._events([(kind, {"type": kind, **data}) for kind, data in responses(*given)])
        elif path.endswith("/chat/completions"):
            pieces = list(completion(*self.server.model.take(path, body), whole=not body.get("stream")))
            if body.get("stream"):
                self._events([("", piece) for piece in pieces], end="data: [DONE]\n\n")
            else:
                self._json(pieces[0])
        elif ":generateContent" in path or ":streamGenerateContent" in path:
            piece = gemini(*self.server.model.take(path, body))
            if ":stream" in path:
                self._events([("", piece)])
            else:
                self._json(piece)
        else:
            self._json({})

    def log_message(self, format: str, *args: object) -> None:
        """Silent: the table is the output."""

    def _json(self, value: Json) -> None:
        self._send("application/json", json.dumps(value).encode())

    def _events(self, events: list[tuple[str, Json]], end: str = "") -> None:
        text = "".join((f"event: {kind}\n" if kind else "") + f"data: {json.dumps(data)}\n\n" for kind, data in events)
        self._send("text/event-stream", (text + end).encode())

    def _send(self, kind: str, data: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
