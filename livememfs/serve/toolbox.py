"""What a tool of the MCP server is, and how one is called whoever calls it.

Owns the order: which arguments there are, then whether they name a space, then whether the caller may. So no tool has a
guard of its own, and none can forget it. Refuses to know a protocol and any tool. Trio thread only.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from livememfs.errors import BadRequest, InvalidName, LiveMemError
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
"""Hears in a word how far a long call is."""
Effect = Literal["reads", "adds", "changes", "destroys"]
JsonKind = Literal["string", "integer", "number", "boolean", "array", "object"]
SPACE = Parameter("space_id", required=True)
MAX_SPACE = 255
LONGEST_PATH = 1_000
LONGEST_TEXT = 1 << 20
"""Characters of what is kept as it is given: a note, a file."""
MOST_TOKENS = 20_000
"""Of one answer, as estimated: clients refuse much larger ones, and a model pays for all of it. What is left out is
named, and can be asked for.
"""


async def unheard(_: str) -> None:
    """Where nobody waits for progress."""


@dataclass(frozen=True)
class ToolCall:
    """One call: of what bucket, by whom.

    :agent:    the name it writes under, where it gives none
    :space:    the space meant where none is named; empty: one has to be
    :warnings: what the caller should hear beside the answer
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
        """What the tree of the bucket stands on."""
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
        """Tell the caller, for example, of what was replaced in a text."""
        self.warnings.append(str(error))


Work = Callable[..., Awaitable[Answered]]


@dataclass(frozen=True)
class McpTool:
    """One tool.

    :purpose: one sentence for a model
    :returns: the fields of the answer with JSON's words for them
    :needs:   the permission for it, in the space it is about
    :about:   the parameter that names the space; empty for what concerns the bucket or finds its spaces by itself
    :effect:  what it does to what is kept: who destroys twice destroys no more, who changes twice may
    :core:    whether it belongs to the small set
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

    def taken(self, space: str) -> tuple[Parameter, ...]:
        """Its parameters where a space is meant anyhow, or (empty) where none is."""
        return tuple(one for one in self.parameters if not (space and one.name == self.about))

    def input_schema(self, space: str = "") -> dict[str, Any]:
        """The JSON schema of its arguments."""
        found = schema(self.taken(space))
        return found if found["required"] else {name: one for name, one in found.items() if name != "required"}

    def output_schema(self) -> dict[str, Any]:
        """The JSON schema of its answer."""
        return {"type": "object", "properties": {name: {"type": kind} for name, kind in self.returns.items()}}

    async def call(self, call: ToolCall, arguments: Mapping[str, Any]) -> Answered:
        """Do it. BadRequest, NotFound for a space that is not there for the caller, Forbidden, and what the work
        raises.
        """
        given = dict(arguments)
        if self.about and call.space and given.get(self.about) is None:
            given = {**given, self.about: call.space}
        given = checked(self.name, self.parameters, given, path="", hidden=self.about if call.space else "")
        if self.about and self.about in given:
            call.access.require(check_space(given[self.about]), self.needs)
        elif self.needs == "admin":
            call.access.require_admin()
        answer = await self.work(call, **given)
        return {**answer, "warnings": call.warnings} if call.warnings else answer


def check_space(name: str) -> str:
    """`name` itself when it could be a space, also another program's; InvalidName. Nothing that reaches elsewhere."""
    odd = not name or len(name) > MAX_SPACE or name[0] in "._" or not name.isprintable()
    if odd or any(character in '/\\"' for character in name):
        raise InvalidName(path=f"space {name[:40]!a}", detail="spaces are called by a-z 0-9 . _ -")
    return name


def check_path(text: str, what: str) -> str:
    """A path of several parts that stays below where it begins. BadRequest."""
    parts = text.split("/")
    bad = any(part in ("", ".", "..") for part in parts) or "\\" in text or "\0" in text
    if bad or len(text.encode("utf-8", "replace")) > LONGEST_PATH:
        raise BadRequest(path=what, detail=f"{text[:80]!a} is no path in it")
    return text


def chosen(tools: Sequence[McpTool], wanted: str) -> tuple[McpTool, ...]:
    """The tools of a set: `core` (also where none is said), `all`, or names with commas. BadRequest for a name that is
    none.
    """
    if wanted == "all":
        return tuple(tools)
    if wanted in ("core", ""):
        return tuple(one for one in tools if one.core)
    known = {one.name: one for one in tools}
    names = [name.strip() for name in wanted.split(",") if name.strip()]
    unknown = [name for name in names if name not in known]
    if unknown:
        raise BadRequest(path="tools", detail=f"there is no {', '.join(unknown)}", advice="use core, all, or names")
    return tuple(known[name] for name in names)
