"""A model behind a program that the user is signed in to: a prompt on its standard input, the reply on its output.

Owns how the program runs: without a shell, with limited output, in a folder and a process group of its own, which end
with the call in every case. An agent of `AGENTS` runs without tools, hooks, MCP servers and instructions of others.
Refuses to put a word of a prompt on a command line, which every user of the machine can read; and to retry, as `client`
does. Trio thread only.
"""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import trio

from livememfs import errors
from livememfs.llm.base import CONTEXT_FAULT, ChatMessage, ChatReply, ChatStatistics, public
from livememfs.text.own import ASKING
from livememfs.text.privacy.redaction import redact

MOST_OUTPUT = 8 << 20
"""Most bytes of an output: a reply, and what an agent writes around it."""
MOST_ERRORS = 1 << 16
LINGER_SECONDS = 2.0
"""Seconds for the last output of a program after its end, and for its end after it was killed."""
_SHOWN_CHARS = 300
_CHUNK = 1 << 16


@dataclass
class _Answer:
    """What was read from a program's output."""

    text: str
    finish_reason: str = "stop"
    prompt_tokens: int = 0
    completion_tokens: int = 0
    fault: str = ""


@dataclass(frozen=True)
class _Agent:
    """How an agent is called as a model.

    :options: ours, in the words of a shell; `{system}` is the file with the system message
    :verb:    the command of the program that takes a prompt; we add it, unless the user wrote it
    :system:  the variable that names that file, where no option does
    """

    options: str
    read: Callable[[str], _Answer]
    verb: str = ""
    system: str = ""


@dataclass(frozen=True)
class _Ended:
    """How a process ended. `status` is negative if a signal ended it."""

    status: int
    output: bytes
    errors: bytes


class CommandChat:
    """See `ChatModel`. One call at a time: an agent takes much memory, and a subscription little at once.

    :command:     the program with its options, in the words of a shell; an agent of `AGENTS` gets ours after them
    :model:       empty: the program's own choice
    :environment: what the program gets; LLMAAS_MODEL and the mark of our own question are added
    :timeout:     seconds that one call may take, from the program's start
    """

    def __init__(self, command: str, model: str, environment: Mapping[str, str], timeout: float) -> None:
        program, *words = shlex.split(command)
        self._words = [str(Path(program).expanduser()), *words]
        self._program = Path(program).name
        self._agent = AGENTS.get(self._program)
        self._model, self._timeout = model, timeout
        self._environment = {**environment, ASKING: "1", "NO_COLOR": "1", "LLMAAS_MODEL": model}
        self._turn = trio.CapacityLimiter(1)
        self._requests = self._failures = self._prompt = self._completion = 0

    @property
    def name(self) -> str:
        """The model's name where it was given, else that of the program."""
        return self._model or f"command:{self._program}"

    async def aclose(self) -> None:
        """See `ChatModel.aclose`. A program ends with its call."""

    def statistics(self) -> ChatStatistics:
        """Counters, cheap."""
        return ChatStatistics(self._requests, self._failures, self._prompt, self._completion)

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float,
        json_object: bool = True,
        schema: Mapping[str, Any] | None = None,
    ) -> ChatReply:
        """See `ChatModel.chat`. No program takes the limits and the form on its command line: the prompt asks for both.

        Raises CommandFailed, ContextOverflow, ReplyRefused and ModelTimedOut.
        """
        sent = await trio.to_thread.run_sync(public, messages)
        async with self._turn:
            self._requests += 1
            try:
                with trio.fail_after(self._timeout):
                    answer = await self._ask(sent)
            except trio.TooSlowError:
                self._failures += 1
                raise errors.ModelTimedOut(f"{self._timeout:g}") from None
            except errors.ModelError:
                self._failures += 1
                raise
        prompt, completion = answer.prompt_tokens, answer.completion_tokens
        self._prompt, self._completion = self._prompt + prompt, self._completion + completion
        tokens = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}
        if not answer.text.strip():
            raise errors.ReplyRefused("it has no text", **tokens)
        return ChatReply(answer.text, answer.finish_reason, self.name, **tokens)

    async def _ask(self, messages: Sequence[ChatMessage]) -> _Answer:
        try:
            with tempfile.TemporaryDirectory(prefix="livememfs-asking-", ignore_cleanup_errors=True) as folder:
                system = Path(folder) / "instructions.md"
                command, prompt = self._command(messages, system)
                more = {self._agent.system: str(system)} if self._agent is not None and self._agent.system else {}
                ended = await _run(command, prompt.encode(), folder, {**self._environment, **more})
        except OSError as error:
            raise errors.CommandFailed(f"{self._program} cannot be started: {error.strerror}") from None
        if len(ended.output) > MOST_OUTPUT:
            raise errors.ReplyRefused(f"it is longer than {MOST_OUTPUT:,} bytes")
        try:
            output = ended.output.decode()
        except UnicodeDecodeError:
            if not ended.status:
                raise errors.ReplyRefused("it is not UTF-8") from None
            output = ""
        answer = self._agent.read(output) if self._agent is not None else _Answer(output)
        if ended.status or answer.fault:
            raise self._failure(ended, answer)
        return answer

    def _command(self, messages: Sequence[ChatMessage], system: Path) -> tuple[list[str], str]:
        """The command line and its input. The system message of an agent goes into the file `system`."""
        agent = self._agent
        if agent is None:
            return self._words, "\n\n".join(message.content for message in messages)
        system.write_text("\n\n".join(message.content for message in messages if message.role == "system"))
        program, *words = self._words
        verb = [agent.verb] if agent.verb and agent.verb not in words else []
        model = ["--model", self._model] if self._model else []
        options = [word.format(system=system) for word in shlex.split(agent.options)]
        prompt = "\n\n".join(message.content for message in messages if message.role != "system")
        return [program, *verb, *words, *options, *model], prompt

    def _failure(self, ended: _Ended, answer: _Answer) -> errors.ModelError:
        """The error for a program that ended without a reply: its last words, without what is private."""
        message = answer.fault or ended.errors.decode("utf-8", "replace") or answer.text
        message = " ".join(redact(message).text.split())[-_SHOWN_CHARS:]
        if CONTEXT_FAULT.search(message):
            return errors.ContextOverflow(message)
        how = f"ended by signal {-ended.status}" if ended.status < 0 else f"status {ended.status}"
        return errors.CommandFailed(f"{self._program}, {how}: {message or 'it said nothing'}")


# --- the process ------------------------------------------------------------------------------------------------


async def _run(command: Sequence[str], prompt: bytes, folder: str, environment: Mapping[str, str]) -> _Ended:
    """Run a program to its end. No process of its group is left, even after an error. Raises OSError."""
    process = await trio.lowlevel.open_process(
        list(command),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )
    assert process.stdin is not None  # each of the three is a pipe, as `PIPE` says
    assert process.stdout is not None
    assert process.stderr is not None
    output, error_output = bytearray(), bytearray()
    try:
        async with process.stdin, process.stdout, process.stderr, trio.open_nursery() as nursery:
            nursery.start_soon(_feed, process.stdin, prompt)
            nursery.start_soon(_collect, process.stdout, output, partial(_kill, process))
            nursery.start_soon(_collect, process.stderr, error_output, None)
            status = await process.wait()
            _kill(process)  # processes that it left behind would keep the pipes open
            nursery.cancel_scope.deadline = trio.current_time() + LINGER_SECONDS
    finally:
        _kill(process)
        with trio.move_on_after(LINGER_SECONDS, shield=True):
            await process.wait()
    return _Ended(status, bytes(output), bytes(error_output))


async def _feed(pipe: trio.abc.SendStream, data: bytes) -> None:
    with suppress(trio.BrokenResourceError):  # a program need not read to its end
        async with pipe:
            await pipe.send_all(data)


async def _collect(pipe: trio.abc.ReceiveStream, into: bytearray, too_much: Callable[[], None] | None) -> None:
    """Read a pipe to its end. Call `too_much` when it exceeds the limit; if None, keep only its last part."""
    while chunk := await pipe.receive_some(_CHUNK):
        into += chunk
        if too_much is None:
            del into[:-MOST_ERRORS]
        elif len(into) > MOST_OUTPUT:
            too_much()
            return


def _kill(process: trio.Process) -> None:
    """Kill a process with all that it started. Its group has its number, which is not reused while a member lives."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)


# --- agents known by name ---------------------------------------------------------------------------------------


def _claude(output: str) -> _Answer:
    """The result of `claude --output-format json`, and of Qwen Code, which writes events before it."""
    event = next((value for value in _objects(output) if value.get("type") == "result"), {})
    usage = event.get("usage")
    text, reason = str(event.get("result") or ""), event.get("stop_reason")
    failed = event.get("is_error") or text.startswith("[API Error:")  # which Qwen Code takes for an answer
    return _Answer(
        text,
        "stop" if reason in (None, "end_turn", "stop_sequence") else str(reason),
        _count(usage, "input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        _count(usage, "output_tokens"),
        (text or str(event.get("error") or event.get("subtype"))) if failed else "",
    )


def _codex(output: str) -> _Answer:
    """The lines of `codex exec --json`."""
    answer = _Answer("")
    for event in _objects(output):
        item, error = event.get("item"), event.get("error")
        if isinstance(item, dict) and item.get("type") == "agent_message":
            answer.text = str(item.get("text") or "")
        elif event.get("type") == "turn.completed":
            answer.prompt_tokens = _count(event.get("usage"), "input_tokens")
            answer.completion_tokens = _count(event.get("usage"), "output_tokens")
            answer.fault = ""  # it has tried again
        elif event.get("type") in ("error", "turn.failed"):
            answer.fault = str(
                (error.get("message") if isinstance(error, dict) else event.get("message")) or "it failed"
            )
    return answer


def _objects(output: str) -> Iterator[dict[str, Any]]:
    """The JSON objects of an output: one, or a list of them, on each line; other lines are left out."""
    for line in output.splitlines():
        with suppress(ValueError, RecursionError):
            parsed = json.loads(line)
            values = parsed if isinstance(parsed, list) else [parsed]
            yield from (value for value in values if isinstance(value, dict))


def _count(usage: object, *names: str) -> int:
    values = [usage.get(name) for name in names] if isinstance(usage, dict) else []
    return sum(value for value in values if isinstance(value, int) and value > 0)


_CLAUDE = """
-p --output-format json --tools "" --safe-mode --strict-mcp-config --disable-slash-commands --no-session-persistence
--system-prompt-file {system}
"""
_CODEX = """
--json --sandbox read-only --skip-git-repo-check --ephemeral --ignore-user-config -c project_doc_max_bytes=0
-c features.hooks=false -c features.shell_tool=false -c features.unified_exec=false -c features.multi_agent=false
-c features.goals=false -c features.apps=false -c features.plugins=false -c features.image_generation=false
-c features.view_image=false -c features.browser_use=false -c features.computer_use=false
-c 'web_search="disabled"' -c include_environment_context=false -c include_permissions_instructions=false
-c skills.include_instructions=false -c 'model_instructions_file="{system}"'
"""
_QWEN = """
--output-format json --bare --chat-recording false
--exclude-tools read_file --exclude-tools edit --exclude-tools run_shell_command
"""
AGENTS: Mapping[str, _Agent] = {
    "claude": _Agent(_CLAUDE, _claude),
    "codex": _Agent(_CODEX, _codex, verb="exec"),
    "qwen": _Agent(_QWEN, _claude, system="QWEN_SYSTEM_MD"),
}
"""The agents with options that are built in, by the name of the program."""
