"""A chat endpoint that answers what it was told to: the double for everything that asks a model.

Owns a real HTTP server on the loopback interface, so the real client, its time-outs and its error mapping take part.
Refuses to improvise: when the script has run out it answers 500 and says so. The server runs in threads of its own;
`ScriptedLLM` may be used from any thread, and its waits block, so call them through `trio.to_thread` from trio.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

MODEL = "scripted"
USAGE = {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120}
EVERY_NOTE = "<every note of the request>"
"""As the value of `coverage`: the endpoint replaces it with the coverage of a model that used every note."""


@dataclass(frozen=True)
class Scripted:
    """One answer of the endpoint.

    :text:          the message's content; None sends null
    :status:        HTTP status; over 299 sends `text` as the error's message
    :delay:         seconds before the answer
    :hold:          answer only after `ScriptedLLM.release()`
    :reset:         break the connection instead of answering
    :usage:         token counts; None leaves the field out
    :body:          raw bytes to send instead of a chat completion
    :error_fields:  `code`, `param` and so on of an error
    """

    text: str | None = ""
    finish_reason: str | None = "stop"
    status: int = 200
    delay: float = 0.0
    hold: bool = False
    reset: bool = False
    usage: Mapping[str, object] | None = field(default_factory=lambda: dict(USAGE))
    body: bytes | None = None
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    choices: bool = True
    refusal: str | None = None
    error_fields: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class LLMRequest:
    """One request as it arrived."""

    path: str
    headers: Mapping[str, str]
    body: Mapping[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        """The messages, each with `role` and `content`."""
        return list(self.body.get("messages", []))

    @property
    def text(self) -> str:
        """The contents of all messages, one after the other."""
        return "\n\n".join(message["content"] for message in self.messages)

    def section(self, name: str) -> Any:
        """The JSON value below the heading `## {name}` of a prompt made by a pipeline."""
        _, heading, rest = self.text.partition(f"## {name}\n")
        if not heading:
            raise LookupError(f"the prompt has no section {name}")
        return json.JSONDecoder().raw_decode(rest[rest.index("\n\n") :].lstrip())[0]


Answer = Scripted | str | Mapping[str, Any]
Responder = Callable[[LLMRequest], Answer]


class ScriptedLLM:
    """A chat endpoint with scripted answers: `with ScriptedLLM(reply, ...) as llm: OpenAIChat(llm.url, ...)`.

    Answers are used in order: a mapping is sent as JSON, a string as it is, a `Scripted` in every detail. `responder`
    computes the answer to each request instead. `rejects` names request parameters that are answered with a 400, the
    way servers do that do not know them; such requests use up no answer. `key` demands that bearer token.
    """

    def __init__(
        self, *answers: Answer, responder: Responder | None = None, rejects: Sequence[str] = (), key: str | None = None
    ) -> None:
        self.requests: list[LLMRequest] = []
        self._answers = list(answers)
        self._responder = responder
        self._rejects = tuple(rejects)
        self._key = key
        self._released = threading.Event()
        self._held = self._asking = self._given_up = self._sent = 0
        self._changed = threading.Condition()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.llm = self
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    @property
    def url(self) -> str:
        """The base URL, with `/v1`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/v1"

    def release(self) -> None:
        """Let every held answer go, now and later."""
        self._released.set()

    @contextmanager
    def asking(self) -> Iterator[None]:
        """Within this, somebody waits for an answer."""
        self._asking += 1
        sent = self._sent
        try:
            yield
        except BaseException:
            if self._sent == sent and self._held > self._given_up:
                self._given_up += 1  # its answer is held for nobody
            raise
        finally:
            self._asking -= 1

    @property
    def is_at_work(self) -> bool:
        """Whether an answer is waited for that is neither held nor late."""
        return self._asking > (0 if self._released.is_set() else self._held - self._given_up)

    def wait_for_requests(self, count: int, timeout: float = 10.0) -> None:
        """Block until `count` requests have arrived."""
        with self._changed:
            if not self._changed.wait_for(lambda: len(self.requests) >= count, timeout):
                raise TimeoutError(f"{len(self.requests)} of {count} requests within {timeout} seconds")

    def add(self, *answers: Answer) -> None:
        """More answers at the end of the script."""
        self._answers.extend(answers)

    # --- the server's side ----------------------------------------------------------------------------------

    def answer(self, request: LLMRequest) -> Scripted:
        """What to send for one request. Called by the server's threads."""
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            if self._key is not None and request.headers.get("authorization") != f"Bearer {self._key}":
                return Scripted("Incorrect API key provided", status=401)
            for name in self._rejects:
                if name in request.body:
                    return Scripted(f"Unsupported parameter: '{name}'", status=400, error_fields={"param": name})
            if self._responder is None:
                if not self._answers:
                    return Scripted("the script has no answer left", status=500)
                return _scripted(self._answers.pop(0))
        return _scripted(self._responder(request))

    def note_sent(self) -> None:
        """An answer leaves. Called by the server's threads."""
        with self._changed:
            self._sent += 1

    def wait_until_released(self, timeout: float | None = None) -> None:
        """Block a held answer, or one that is `timeout` seconds late, no longer than until the end of the test. Called
        by the server's threads.
        """
        with self._changed:
            self._held += 1
        self._released.wait(timeout)
        with self._changed:
            self._held -= 1


def consolidation_reply(
    files: Mapping[str, str],
    *,
    synthesis: str = "Filed.",
    used: Mapping[int, Sequence[str]] | None = None,
    skipped: Mapping[int, str] | None = None,
    action: str = "updated",
    **extra: object,
) -> dict[str, Any]:
    """A well-formed reply of the consolidation. `used` and `skipped` by note number become its coverage.

    Without either, the endpoint says of every note of the request that it was used in the reply's files.
    """
    reply: dict[str, Any] = {
        "bank_files": [{"filename": name, "action": action, "content": text} for name, text in files.items()],
        "synthesis": synthesis,
        **extra,
    }
    if used is not None or skipped is not None:
        coverage: list[dict[str, Any]] = [{"note": n, "files": list(names)} for n, names in (used or {}).items()]
        reply["coverage"] = coverage + [{"note": n, "skipped": reason} for n, reason in (skipped or {}).items()]
    return {"coverage": EVERY_NOTE, **reply}


def remembered(content: str, *sources: int, **fields: object) -> dict[str, Any]:
    """A memory in the reply of a digest."""
    return {"content": content, "subjects": ["david"], "type": "fact", "ttl": None, "sources": list(sources), **fields}


def digest_reply(
    *memories: Mapping[str, Any], skipped: Mapping[int, str] | None = None, **extra: object
) -> dict[str, Any]:
    """A well-formed reply of the digest. `skipped`: reasons by note number."""
    left = [{"note": number, "reason": reason} for number, reason in (skipped or {}).items()]
    return {"memories": [dict(memory) for memory in memories], "skipped": left, **extra}


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    llm: ScriptedLLM

    def handle_error(self, request: object, client_address: object) -> None:
        """Many tests let a client hang up: nothing is printed."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        """Any path has the same answers."""
        length = int(self.headers.get("content-length", 0))
        body = json.loads(self.rfile.read(length) or b"{}")
        headers = {name.lower(): value for name, value in self.headers.items()}
        request = LLMRequest(self.path, headers, body)
        answer = _accounted(self.server.llm.answer(request), request)
        if answer.hold:
            self.server.llm.wait_until_released()
        if answer.delay:
            self.server.llm.wait_until_released(answer.delay)
        self.server.llm.note_sent()
        if answer.reset:
            self._reset()
        else:
            self._send(answer)

    def log_message(self, format: str, *args: object) -> None:
        """Silent: only the test prints."""

    def _reset(self) -> None:
        """End the connection with RST instead of FIN, as a crashed server does."""
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.rfile.close()
        self.wfile.close()
        self.connection.close()

    def _send(self, answer: Scripted) -> None:
        data = answer.body if answer.body is not None else _encode(answer)
        self.send_response(answer.status)
        self.send_header("content-type", answer.content_type)
        self.send_header("content-length", str(len(data)))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(data)


def _scripted(answer: Answer) -> Scripted:
    if isinstance(answer, Scripted):
        return answer
    return Scripted(answer if isinstance(answer, str) else json.dumps(answer))


def _accounted(answer: Scripted, request: LLMRequest) -> Scripted:
    """The answer with its account of the notes filled in."""
    marker = json.dumps(EVERY_NOTE)
    if answer.text is None or marker not in answer.text:
        return answer
    names = [file["filename"] for file in json.loads(answer.text)["bank_files"]]
    fate = {"files": names} if names else {"skipped": "nothing new"}
    account = [{"note": note["note"], **fate} for note in request.section("Notes")]
    return replace(answer, text=answer.text.replace(marker, json.dumps(account)))


def _encode(answer: Scripted) -> bytes:
    """The body of a chat completion, or of an error, as OpenAI's API has it."""
    if answer.status >= 300:
        error = {"message": answer.text, "type": "scripted", "param": None, "code": None, **answer.error_fields}
        return json.dumps({"error": error}).encode()
    message = {"role": "assistant", "content": answer.text, "refusal": answer.refusal}
    choice = {"index": 0, "message": message, "finish_reason": answer.finish_reason, "logprobs": None}
    body: dict[str, object] = {
        "id": "chatcmpl-scripted",
        "object": "chat.completion",
        "created": 0,
        "model": MODEL,
        "choices": [choice] if answer.choices else [],
    }
    if answer.usage is not None:
        body["usage"] = dict(answer.usage)
    return json.dumps(body).encode()
