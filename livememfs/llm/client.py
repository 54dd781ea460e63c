"""Models behind an OpenAI-compatible endpoint: chat (consolidation 6) and embeddings.

Owns the HTTP client, the deadline of a call, and the error for each kind of failure. Remembers which optional
parameters the endpoint rejected, so that only the first call fails for them. Refuses retries, which only the caller can
judge; redirects, because notes go to the configured host and no other; and to let the key, or what an endpoint repeats
of it, into an error. The only module that imports openai. Trio thread only.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn
from urllib.parse import urlsplit

import openai
import structlog
import trio
from openai.types.chat import ChatCompletion

from livememfs import errors
from livememfs.llm.base import CONTEXT_FAULT, ChatMessage, ChatReply, ChatStatistics, public

log = structlog.get_logger("livememfs.llm")

CONNECT_TIMEOUT = 20.0
"""Longest wait for a connection, in seconds. A host that is down must not use up the long timeout of a model."""

_SHOWN_CHARS = 300
# Optional parameters, and how an endpoint that cannot take one says so when it leaves the `param` field empty.
_REJECTIONS = {
    "response_format": re.compile(r"response_format|json_object|json mode", re.IGNORECASE),
    "max_tokens": re.compile(
        r"max_completion_tokens|(?:unsupported|unknown|unrecognized).{0,40}\bmax_tokens", re.IGNORECASE
    ),
    "temperature": re.compile(
        r"(?:unsupported|unknown).{0,40}\btemperature|temperature.{0,40}not support", re.IGNORECASE
    ),
}
_JSON_OBJECT = {"type": "json_object"}
_SCHEMA = "json_schema"
_FAILURES = (openai.OpenAIError, ValueError, RecursionError)
_ABOUT_SCHEMA = re.compile(r"response_?format|json_?schema|\bschema\b", re.IGNORECASE)


class _Endpoint:
    """One model at one endpoint.

    :base_url: the endpoint up to and including `/v1`
    :api_key:  may be empty for servers that ask for none
    :timeout:  seconds one call may take in all, from connecting to the last byte
    """

    def __init__(self, base_url: str, api_key: str, model: str, timeout: float) -> None:
        self.name = model
        self._key = api_key = api_key.strip()  # a line end from a file would make an error that shows the header
        self._timeout = timeout
        self._host = urlsplit(base_url).hostname or "?"
        here = _is_loopback(self._host)
        limits = openai.Timeout(timeout, connect=min(timeout, CONNECT_TIMEOUT))
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key=api_key or "none",  # the library requires one
            timeout=limits,
            max_retries=0,
            # A proxy from the environment is for the world outside, never for a server on this machine.
            # Where nothing is encrypted, the certificates of the whole world need not be read either.
            http_client=openai.DefaultAsyncHttpxClient(
                timeout=limits,
                follow_redirects=False,
                trust_env=not here,
                verify=not here or urlsplit(base_url).scheme != "http",
            ),
        )

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    def _raise(self, error: Exception) -> NoReturn:
        if isinstance(error, openai.APIStatusError):
            self._raise_status(error)
        if isinstance(error, openai.APITimeoutError):
            if type(error.__cause__).__name__ == "ConnectTimeout":
                raise errors.ModelUnreachable(f"no connection to {self._host}") from None
            raise errors.ModelTimedOut(f"{self._timeout:g}") from None
        if isinstance(error, openai.APIConnectionError):
            cause = error.__cause__ or error
            raise errors.ModelUnreachable(f"{self._host}: {self._clean(str(cause)) or type(cause).__name__}") from None
        raise errors.ModelError(f"{self._host}: {self._clean(str(error))}") from None

    def _raise_status(self, error: openai.APIStatusError) -> NoReturn:
        raise self._fault(error.status_code, self._clean(error.message), is_length=_is_context_fault(error)) from None

    def _raise_reported(self, reported: object) -> NoReturn:
        """Raise our error for one in a reply with status 200: gateways send errors of the model behind them so."""
        fields = reported if isinstance(reported, dict) else {"message": reported}
        message, code = self._clean(str(fields.get("message") or reported)), str(fields.get("code"))
        status = int(code) if code.isascii() and code.isdecimal() and 400 <= int(code[:4]) < 600 else 503
        is_length = status == 413 or code == "context_length_exceeded" or CONTEXT_FAULT.search(message) is not None
        raise self._fault(status, message, is_length=is_length)

    def _fault(self, status: int, message: str, *, is_length: bool) -> errors.ModelError:
        if status == 401:
            # Its text may repeat the key.
            return errors.ModelDenied("status 401, the key is wrong or missing", status=status)
        if status in (403, 404):
            return errors.ModelDenied(f"status {status} for model {self.name}: {message}", status=status)
        if is_length:
            return errors.ContextOverflow(message)
        if status in (408, 429) or status >= 500:
            return errors.ModelUnreachable(f"status {status}: {message}")
        if status < 400:
            return errors.ModelError(f"status {status}, {self._host} sends us elsewhere; set the final URL")
        if status in (400, 422):
            return errors.RequestRefused(f"status {status}: {message}")
        return errors.ModelError(f"status {status}: {message}")

    def _clean(self, text: str) -> str:
        """A server's message, short, in one line and without our key."""
        if self._key:
            text = text.replace(self._key, "[key]")
        text = re.sub(r"\bsk-[A-Za-z0-9*_-]{4,}", "[key]", text)
        return " ".join(text.split())[:_SHOWN_CHARS]


class OpenAIChat(_Endpoint):
    """See `ChatModel`."""

    def __init__(self, base_url: str, api_key: str, model: str, timeout: float) -> None:
        super().__init__(base_url, api_key, model, timeout)
        self._without: set[str] = set()
        self._counts = {"requests": 0, "failures": 0, "prompt": 0, "completion": 0}

    async def chat(
        self,
        messages: Sequence[ChatMessage],
        *,
        max_tokens: int,
        temperature: float,
        json_object: bool = True,
        schema: Mapping[str, Any] | None = None,
    ) -> ChatReply:
        """See `ChatModel.chat`. Sends again, at most once per parameter, without what the endpoint does not know."""
        wanted: dict[str, Any] = {"max_tokens": max_tokens, "temperature": temperature}
        if json_object:
            wanted["response_format"] = _JSON_OBJECT
            if schema is not None and _SCHEMA not in self._without:
                wanted["response_format"] = {"type": _SCHEMA, _SCHEMA: {"name": "reply", "schema": schema}}
        sent = await trio.to_thread.run_sync(public, messages)
        payload = [{"role": message.role, "content": message.content} for message in sent]
        try:
            with trio.fail_after(self._timeout):
                completion = await self._ask(payload, wanted)
            return self._read(completion)
        except trio.TooSlowError:
            self._counts["failures"] += 1
            raise errors.ModelTimedOut(f"{self._timeout:g}") from None
        except errors.ModelError:
            self._counts["failures"] += 1
            raise

    def statistics(self) -> ChatStatistics:
        """Counters, cheap."""
        counts = self._counts
        return ChatStatistics(
            counts["requests"], counts["failures"], counts["prompt"], counts["completion"], tuple(sorted(self._without))
        )

    # --- asking ---------------------------------------------------------------------------------------------

    async def _ask(self, messages: list[dict[str, str]], wanted: dict[str, Any]) -> object:
        while True:
            self._counts["requests"] += 1
            try:
                create: Any = self._client.chat.completions.create
                return await create(model=self.name, messages=messages, **self._accepted(wanted))
            except openai.APIStatusError as error:
                if not self._learns_from(error, wanted):
                    self._raise_status(error)
            except _FAILURES as error:
                self._raise(error)

    def _accepted(self, wanted: dict[str, Any]) -> dict[str, Any]:
        """The parameters without those that the endpoint has rejected before."""
        accepted = {name: value for name, value in wanted.items() if name not in self._without}
        if "max_tokens" in self._without:
            accepted["max_completion_tokens"] = wanted["max_tokens"]
        return accepted

    def _learns_from(self, error: openai.APIStatusError, wanted: dict[str, Any]) -> bool:
        """Whether the failure names an optional parameter that can be left out from now on."""
        if error.status_code not in (400, 422) or _is_context_fault(error):
            return False
        asked_for = wanted.get("response_format", _JSON_OBJECT)
        if asked_for["type"] == _SCHEMA and (error.param == "response_format" or _ABOUT_SCHEMA.search(error.message)):
            self._without.add(_SCHEMA)
            wanted["response_format"] = _JSON_OBJECT
            log.info("the model endpoint takes no JSON schema", model=self.name)
            return True
        for name, pattern in _REJECTIONS.items():
            unsupported = error.param == name and "unsupported" in f"{error.code} {error.message}".lower()
            if name in wanted and name not in self._without and (unsupported or pattern.search(error.message)):
                self._without.add(name)
                log.info("the model endpoint does not take a parameter", parameter=name, model=self.name)
                return True
        return False

    # --- reading --------------------------------------------------------------------------------------------

    def _read(self, completion: object) -> ChatReply:
        """The reply as a `ChatReply`. The library checks no types, so all of them are checked here."""
        if not isinstance(completion, ChatCompletion):
            raise errors.ModelError(f"{self._host} did not answer with a chat completion; does the URL end in /v1?")
        names = ("prompt_tokens", "completion_tokens", "total_tokens")
        tokens = {name: _count(completion.usage, name) for name in names}
        tokens["total_tokens"] = tokens["total_tokens"] or tokens["prompt_tokens"] + tokens["completion_tokens"]
        self._counts["prompt"] += tokens["prompt_tokens"]
        self._counts["completion"] += tokens["completion_tokens"]
        choices: object = completion.choices
        if not choices and (reported := getattr(completion, "error", None)):
            self._raise_reported(reported)
        choice = choices[0] if isinstance(choices, list) and choices else None
        message = getattr(choice, "message", None)
        text = getattr(message, "content", None)
        finish = str(getattr(choice, "finish_reason", None) or "")
        if not isinstance(text, str) or not text:
            refusal = getattr(message, "refusal", None)
            why = "it has no choices" if choice is None else f"it has no text (finish_reason {finish or 'missing'})"
            raise errors.ReplyRefused(f"the model declined: {self._clean(str(refusal))}" if refusal else why, **tokens)
        return ChatReply(text, finish, str(completion.model or self.name), **tokens)


class OpenAIEmbeddings(_Endpoint):
    """The vectors of texts. Sends the model and the texts without optional parameters: no server knows all of those."""

    async def embed(self, texts: Sequence[str]) -> object:
        """The reply as it came, unread: any JSON, or text where the endpoint did not say that it is JSON.

        Raises ModelTimedOut, ModelUnreachable, ModelDenied, ContextOverflow and ModelError.
        """
        body = {"model": self.name, "input": list(texts)}
        try:
            with trio.fail_after(self._timeout):
                return await self._client.post("/embeddings", cast_to=object, body=body)
        except trio.TooSlowError:
            raise errors.ModelTimedOut(f"{self._timeout:g}") from None
        except _FAILURES as error:
            self._raise(error)


def _count(usage: object, name: str) -> int:
    value = getattr(usage, name, None)
    return value if isinstance(value, int) and value > 0 else 0


def _is_context_fault(error: openai.APIStatusError) -> bool:
    if error.status_code == 413 or error.code == "context_length_exceeded":
        return True
    return error.status_code in (400, 422) and CONTEXT_FAULT.search(error.message) is not None


def _is_loopback(host: str) -> bool:
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
