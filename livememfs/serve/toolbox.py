"""The form of an MCP tool, and the one way to call it.

Owns the order of checks: the arguments, then the space, then the caller's permission. So no tool checks access itself,
and none can forget it. Refuses to know a protocol or a certain tool. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from livememfs.errors import AlreadyExists, BadRequest, InvalidName, LiveMemError, NotFound
from livememfs.memories.parameters import Parameter, checked, schema
from livememfs.records.access import EVERYTHING, Access, Permission

if TYPE_CHECKING:
    from livememfs.cache.replica import Replica
    from livememfs.clock import Clock
    from livememfs.spaces.tokens import Tokens
    from livememfs.tree.context import Context
    from livememfs.tree.root import Root

Answered = dict[str, Any]
Progress = Callable[[str], Awaitable[None]]
"""Called with a word on the progress of a long call."""
Effect = Literal["reads", "adds", "changes", "destroys"]
JsonKind = Literal["string", "integer", "number", "boolean", "array", "object"]
SPACE = Parameter("space_id", required=True)
MAX_SPACE = 255
DESCRIPTION = Parameter("description", longest=2_000)
LONGEST_PATH = 1_000
LONGEST_TEXT = 1 << 20
"""Most characters of a stored text: a note, a file."""
MOST_TOKENS = 20_000
"""Estimated, of one answer: clients refuse much larger ones, and a model pays for every token. An answer names the
parts that it leaves out, so that they can be requested.
"""


async def unheard(_: str) -> None:
    """For callers that want no progress."""


@dataclass(frozen=True)
class ToolCall:
    """One call: the bucket and the caller.

    :agent:    the writer's name, if the arguments have none
    :space:    the default space; empty: the arguments must name one
    :warnings: sentences for the caller, besides the answer
    """

    root: Root
    tokens: Tokens
    access: Access = EVERYTHING
    agent: str = ""
    space: str = ""
    timeout: float = 30.0
    progress: Progress = unheard
    warnings: list[str] = field(default_factory=list)

    @property
    def context(self) -> Context:
        """The context of the tree."""
        return self.root.context

    @property
    def replica(self) -> Replica:
        """The bucket."""
        return self.root.context.replica

    @property
    def clock(self) -> Clock:
        """The time."""
        return self.root.context.clock

    def warn(self, error: LiveMemError) -> None:
        """Add a warning for the caller, for example that private text was replaced."""
        self.warnings.append(str(error))


Work = Callable[..., Awaitable[Answered]]
WorkT = TypeVar("WorkT", bound=Work)


@dataclass(frozen=True)
class McpTool:
    """One tool.

    :purpose: one sentence for a model
    :returns: the fields of the answer with their JSON types
    :needs:   the permission that it needs in its space
    :about:   the parameter that names the space; empty if it concerns the bucket or finds its spaces itself
    :effect:  its effect on stored data; a repeated call that destroys has no further effect, one that changes may
    :core:    whether it belongs to the small set of tools
    :done:    the status of an answer that gives none itself
    :makes:   whether its space may be one that the caller does not see yet; the tool decides then
    """

    name: str
    purpose: str
    parameters: tuple[Parameter, ...]
    returns: Mapping[str, JsonKind]
    work: Work
    needs: Permission = "read"
    about: str = "space_id"
    effect: Effect = "reads"
    core: bool = False
    done: str = "ok"
    makes: bool = False

    def taken(self, space: str) -> tuple[Parameter, ...]:
        """Its parameters, without that for the space if there is a default `space`."""
        return tuple(parameter for parameter in self.parameters if not (space and parameter.name == self.about))

    def input_schema(self, space: str = "") -> dict[str, Any]:
        """The JSON schema of its arguments."""
        whole = schema(self.taken(space))
        return whole if whole["required"] else {name: value for name, value in whole.items() if name != "required"}

    def output_schema(self) -> dict[str, Any]:
        """The JSON schema of its answer."""
        return {"type": "object", "properties": {name: {"type": kind} for name, kind in self.returns.items()}}

    async def call(self, call: ToolCall, arguments: Mapping[str, Any]) -> Answered:
        """Check and run it. BadRequest, NotFound for a space that the caller does not see, Forbidden, and the errors of
        the work.
        """
        given = dict(arguments)
        if self.about and call.space and not given.get(self.about):
            given = {**given, self.about: call.space}
        given = checked(self.name, self.parameters, given, path="", hidden=self.about if call.space else "")
        if self.about and self.about in given:
            space = check_space(given[self.about])
            if not (self.makes and call.access.may(self.needs)):
                call.access.require(space, self.needs)
        elif self.needs == "admin":
            call.access.require_admin()
        answer = {"status": self.done, **await self.work(call, **given)}
        return {**answer, "warnings": call.warnings} if call.warnings else answer


class Toolset(list[McpTool]):
    """Tools, in the order in which their functions stand."""

    def add(
        self,
        purpose: str,
        *parameters: Parameter,
        returns: Mapping[str, JsonKind],
        needs: Permission = "read",
        about: str = "space_id",
        effect: Effect = "reads",
        core: bool = False,
        done: str = "ok",
        makes: bool = False,
    ) -> Callable[[WorkT], WorkT]:
        """Make a tool of a function, under its name; the arguments are those of `McpTool`."""

        def added(work: WorkT) -> WorkT:
            made = McpTool(work.__name__, purpose, parameters, returns, work, needs, about, effect, core, done, makes)
            self.append(made)
            return work

        return added


def refusal(error: LiveMemError, tool: McpTool | None) -> Answered:
    """The answer for an error: `status`, and as `message` the error with its advice. Clients of Live Memory read no
    other sign that a call failed. `tool`: None if there is no such tool.
    """
    taken = isinstance(error, AlreadyExists) and tool is not None and tool.effect == "adds"
    status = "not_found" if isinstance(error, NotFound) else "already_exists" if taken else "error"
    return {"status": status, "message": sentence(error)}


def sentence(error: LiveMemError) -> str:
    """An error with its advice, in a form that can be sent: without lone surrogates."""
    advice = error.advice()
    return f"{error}{f' ({advice})' if advice else ''}".encode("utf-8", "replace").decode()


def check_space(name: str) -> str:
    """`name` itself if it can be a space, also one made by another program; InvalidName. Excludes all paths."""
    odd = not name or len(name) > MAX_SPACE or name[0] in "._" or not name.isprintable()
    if odd or any(character in '/\\"' for character in name):
        raise InvalidName(path=f"space {name[:40]!a}", detail="names of spaces have a-z 0-9 . _ -")
    return name


def check_path(text: str, what: str) -> str:
    """A relative path that stays below its start. BadRequest."""
    parts = text.split("/")
    bad = any(part in ("", ".", "..") for part in parts) or "\\" in text or "\0" in text
    if bad or len(text.encode("utf-8", "replace")) > LONGEST_PATH:
        raise BadRequest(path=what, detail=f"{text[:80]!a} is no path in it")
    return text


def callable_in(tools: Sequence[McpTool], wanted: str) -> tuple[McpTool, ...]:
    """The tools that may be called where a set is offered. `core` only shortens the list, which costs a model tokens;
    programs call the others by name. Only a set of names shuts the others out. BadRequest.
    """
    return tuple(tools) if wanted in ("core", "all", "") else chosen(tools, wanted)


def chosen(tools: Sequence[McpTool], wanted: str) -> tuple[McpTool, ...]:
    """The tools of a set: `core` (the default), `all`, or names separated by commas. BadRequest for an unknown name."""
    if wanted == "all":
        return tuple(tools)
    if wanted in ("core", ""):
        return tuple(tool for tool in tools if tool.core)
    known = {tool.name: tool for tool in tools}
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadRequest(path="tools", detail=f"there is no {', '.join(unknown)}", advice="use core, all, or names")
    return tuple(known[name] for name in names)
