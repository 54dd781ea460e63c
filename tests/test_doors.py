"""Every way in which a text gets in: whatever has a credential in it leaves a mark behind, and the credential nowhere.

Each door of the table gets a credential of its own, in one bucket that a mount's daemon looks after (without a kernel).
Afterwards the bucket, the local state, `errors.ndjson`, the log and what the model was sent are searched for each.
"""

from __future__ import annotations

import json
import os
from collections.abc import Awaitable, Callable
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from hashlib import sha256
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch
from urllib.parse import unquote_to_bytes

import mcp
import pytest
import structlog
import trio
from house import EDIT, SPACE, House, parts_of

from livememfs import log
from livememfs.app import open_app
from livememfs.app.serving import mcp_server
from livememfs.cli.main import main
from livememfs.config import Settings
from livememfs.errors import LiveMemError
from livememfs.spaces import making as spaces
from livememfs.testing.llm import LLMRequest, ScriptedLLM, consolidation_reply, digest_reply, remembered
from livememfs.testing.observer import events_in, observation, summary, wants_summary
from livememfs.tree.node import Caller, OpenMode

PATIENCE = 10.0


def secret(door: str) -> str:
    """A token in GitHub's form, another one for each door."""
    return "gh" + "p_" + needle(door)


def needle(door: str) -> str:
    """What is looked for of it: a slug may have cut off the rest."""
    return sha256(door.encode()).hexdigest()[:36]


Door = Callable[[House, str], Awaitable[Any]]
DOORS: dict[str, Door] = {
    # notes
    "note: body": lambda house, text: house.write("live/n1", f"the key is {text} here"),
    "note: agent": lambda house, text: house.write("live/n2", f"---\nagent: {text}\n---\nx"),
    "note: category": lambda house, text: house.write("live/n3", f"---\ncategory: {text}\n---\nx"),
    "note: tags": lambda house, text: house.write("live/n4", f"---\ntags: [a, {text}]\n---\nx"),
    "note: unknown field": lambda house, text: house.write("live/n5", f"---\nticket: {text}\n---\nx"),
    "note: name of a field": lambda house, text: house.write("live/n6", f"---\n{text}: x\n---\nx"),
    "note: timestamp": lambda house, text: house.write("live/n7", f"---\ntimestamp: {text}\n---\nx"),
    "note: space_id": lambda house, text: house.write("live/n8", f"---\nspace_id: {text}\n---\nx"),
    "note: name": lambda house, text: house.write(f"live/decision-{text}.md", "x"),
    "note: canonical name": lambda house, text: house.write(
        f"live/20260101T000000_sk-{text.removeprefix('ghp_')}_todo_00000001.md", "x"
    ),
    "note: not text": lambda house, text: house.write(f"live/{text}", "x"),
    "note: renamed": lambda house, text: _renamed(house, "live", text),
    "note: moved into place": lambda house, text: _moved(house, "live", text),
    "note: draft": lambda house, text: _draft(house, f"live/open-{text}", text),
    "note: xattr": lambda house, text: _xattr(house, "live/n1", f"user.{text}", text),
    # memories
    "memory: body": lambda house, text: house.write("memories/m1", f"the key is {text} here"),
    "memory: subjects": lambda house, text: house.write("memories/m2", f"---\nsubjects: [{text}]\n---\nx"),
    "memory: type": lambda house, text: house.write("memories/m3", f"---\ntype: {text}\n---\nx"),
    "memory: source": lambda house, text: house.write("self/m4", f"---\nsource: {text}\n---\nx"),
    "memory: unknown field": lambda house, text: house.write("goals/m5", f"---\nticket: {text}\n---\nx"),
    "memory: name": lambda house, text: house.write(f"memories/{text}", "x"),
    "memory: renamed": lambda house, text: _renamed(house, "memories", text),
    "memory: xattr subjects": lambda house, text: _xattr(house, "memories/m1", "user.livememfs.subjects", text),
    "memory: xattr expires_at": lambda house, text: _xattr(house, "memories/m1", "user.livememfs.expires_at", text),
    "memory: xattr updates": lambda house, text: _xattr(house, "memories/m1", "user.livememfs.updates", text),
    # spaces
    "rules: written": lambda house, text: house.write("_rules.md", f"# Rules\n\nUse {text}\n"),
    "space: mkdir": lambda house, text: house.app.tree.mkdir(f"s-{text}", 0o755, Caller()),
    "space: rules": lambda house, text: _space(house, "s1", rules=f"# Rules\n\nUse {text}\n"),
    "space: description": lambda house, text: _space(house, "s2", description=f"for {text}"),
    "space: owner": lambda house, text: _space(house, "s3", owner=text),
    # tools of MCP
    "tool: space_create": lambda house, text: house.call(
        "space_create", space_id="s4", description=text, owner=text, rules=f"# {text}"
    ),
    "tool: space_create, its name": lambda house, text: house.call("space_create", space_id=f"t-{text}"),
    "tool: live_note": lambda house, text: house.call("live_note", space_id=SPACE, content=text),
    "tool: live_note, agent": lambda house, text: house.call("live_note", space_id=SPACE, content="x", agent=text),
    "tool: live_note, tags": lambda house, text: house.call("live_note", space_id=SPACE, content="x", tags=[text]),
    "tool: live_search": lambda house, text: house.call("live_search", space_id=SPACE, query=text),
    "tool: store_memory": lambda house, text: house.call("store_memory", space_id=SPACE, content=text, subjects=[text]),
    "tool: store_self": lambda house, text: house.call("store_self", space_id=SPACE, content=text, category="context"),
    "tool: search_memory": lambda house, text: house.call("search_memory", query=text),
    "tool: memory, a note": lambda house, text: house.call(
        "memory", space_id=SPACE, command="create", path=f"/memories/live/{text}.md", file_text=f"about {text}"
    ),
    "tool: memory, an error": lambda house, text: house.call(
        "memory", space_id=SPACE, command="view", path=f"/memories/bank/{text}"
    ),
    "tool: admin_create_token": lambda house, text: house.call("admin_create_token", name=text, permissions=["read"]),
    "tool: admin_revoke_token": lambda house, text: house.call("admin_revoke_token", token=text),
    "tool: backup_restore": lambda house, text: house.call("backup_restore", backup_id=f"{SPACE}/{text}", confirm=True),
    # agents
    "hook: prompt": lambda house, text: house.hook("UserPromptSubmit", prompt=f"use {text}"),
    "hook: session": lambda house, text: house.tool(session_id=text),
    "hook: session of a prompt": lambda house, text: house.hook(
        "UserPromptSubmit", session_id=text, prompt="hello you"
    ),
    "hook: session that begins": lambda house, text: house.hook("SessionStart", session_id=f"s {text}", source=text),
    "hook: folder": lambda house, text: house.tool(cwd=f"/home/me/{text}"),
    "hook: tool": lambda house, text: house.tool(tool_name=text),
    "hook: input": lambda house, text: house.tool(tool_input={"command": f"curl -H {text}"}),
    "hook: name of an input": lambda house, text: house.tool(tool_input={text: "x"}),
    "hook: output": lambda house, text: house.tool(tool_response={"stdout": [text]}),
    "hook: id of the tool's use": lambda house, text: house.tool(tool_use_id=text),
    "hook: subagent": lambda house, text: house.tool(agent_id=text),
    "hook: end of a subagent": lambda house, text: house.hook("SubagentStop", agent_id=text),
    "hook: unknown field": lambda house, text: house.tool(transcript_path=f"/{text}", note=text),
    "hook: no event": lambda house, text: house.ask(".hooks/Stop", f'{{"x": {text}'),
    "session: mkdir": lambda house, text: _mkdir(house, "sessions", text),
    "session: prompt": lambda house, text: _in_session(house, "prompts.ndjson", f"use {text}\n"),
    "session: id of a prompt": lambda house, text: _in_session(
        house, "prompts.ndjson", json.dumps({"prompt": "x", "id": text})
    ),
    "session: event": lambda house, text: _in_session(house, "events/1.json", json.dumps({"tool": "B", "input": text})),
    "session: event as text": lambda house, text: _in_session(house, f"events/{text}.txt", f"it printed {text}"),
    # asking
    "recall: message": lambda house, text: house.ask(".recall", f"what about {text}?"),
    "recall: session": lambda house, text: house.ask(".recall", json.dumps({"message": "what now?", "session": text})),
    "recall: channel": lambda house, text: house.ask(".recall", json.dumps({"message": "and?", "channel_id": text})),
    "recall: unknown field": lambda house, text: house.ask(".recall", json.dumps({"message": "x", text: "x"})),
    "search": lambda house, text: house.node(f"search/{text}.md"),
    "search: links": lambda house, text: house.node(f"search/{text} type:{text}/01-x.md"),
    "control: agent": lambda house, text: _wait(house, ".consolidate", {"agent": text}),
    "control: no option": lambda house, text: house.write(".consolidate", json.dumps({text: 1})),
    # what is refused
    "error: a name in bank/": lambda house, text: house.write(f"bank/{text}.md", "x"),
    "error: a folder in live/": lambda house, text: _mkdir(house, "live", text),
    "log": lambda house, text: _log(text),
    "log: exception": lambda house, text: _log(text, failed=True),
    "errors.ndjson: a conflict": lambda house, text: _conflict(house, text),
}
"""What gets in, by door."""
REFUSED = {
    "note: xattr", "memory: xattr expires_at", "memory: xattr updates", "space: mkdir", "session: mkdir",
    "recall: unknown field", "search: links", "control: no option", "error: a name in bank/",
    "error: a folder in live/",
}  # fmt: skip
"""Those that say why not, which must not tell it either."""
OF_MODELS = (
    "model: file", "model: synthesis", "model: why it drops", "model: refused", "model: memory", "model: subject",
    "model: why it skips", "model: observation", "model: title", "model: summary",
)  # fmt: skip
OF_COMMANDS = {
    "command: note, text": lambda text: ("note", SPACE, f"x {text}"),
    "command: note, agent": lambda text: ("note", SPACE, "x", "--agent", text),
    "command: note, tag": lambda text: ("note", SPACE, "x", "--tag", text),
    "command: note, category": lambda text: ("note", SPACE, "x", "--category", text),
    "command: memories add": lambda text: ("memories", "add", SPACE, f"x {text}", "--subject", text),
    "command: space create": lambda text: ("space", "create", "cli", "--description", text, "--owner", text),
    "command: space create, name": lambda text: ("space", "create", text),
    "command: token create": lambda text: ("token", "create", text, "--permissions", "read"),
    "command: recall": lambda text: ("recall", SPACE, f"what of {text}", "--session", text),
    "command: an error": lambda text: ("note", f"no-{text}", "x"),
}
OF_ENVIRONMENT = ("environment: LIVEMEMFS_HOST", "environment: LIVEMEMFS_AGENT")
FOREIGN = "another program's note"
"""It is in the bucket, and so on this disk; it must not get farther."""
ORDINARY = "ordinary file"


async def _renamed(house: House, folder: str, text: str) -> None:
    await house.write(f"{folder}/before", "x")
    await house.rename(f"{folder}/before", text)


async def _moved(house: House, folder: str, text: str) -> None:
    """As an editor saves: a file beside, and then its name."""
    await house.write(f"{folder}/.x.swp", "x")
    await house.rename(f"{folder}/.x.swp", f"moved-{text}")


async def _draft(house: House, path: str, text: str) -> None:
    folder, name = await house.above(path)
    handle = await (await folder.create(name, 0o644, Caller())).open(EDIT, Caller())
    await handle.write(0, f"about {text}".encode())
    await house.app.tree.keep_drafts()


async def _xattr(house: House, path: str, name: str, text: str) -> None:
    await (await house.node(path)).set_xattr(name, text.encode())


async def _space(house: House, name: str, **given: str) -> None:
    await spaces.create(house.app.replica, house.app.clock, name, **given)  # type: ignore[arg-type]  # texts all


async def _mkdir(house: House, path: str, name: str) -> None:
    await (await house.node(path)).mkdir(name, 0o755, Caller())


async def _in_session(house: House, path: str, text: str) -> None:
    folder = await house.node("sessions")
    with suppress(LiveMemError):
        await folder.mkdir("mine", 0o755, Caller())
    await house.write(f"sessions/mine/{path}", text)


async def _wait(house: House, control: str, options: dict[str, Any]) -> None:
    """Ask for a run, and wait for its end."""
    await house.write(control, json.dumps(options))
    handle = await (await house.node(f"{control}.wait")).open(OpenMode(), Caller())
    with suppress(LiveMemError), trio.fail_after(PATIENCE):
        async for _ in parts_of(handle):
            pass


async def _log(text: str, *, failed: bool = False) -> None:
    logger = structlog.get_logger("livememfs.test")
    if not failed:
        logger.info("a file could not be saved", path=f"alpha/{text}", more=[{"name": text}])
        return
    try:
        raise ValueError(text)
    except ValueError:
        logger.exception("it failed")


async def _conflict(house: House, text: str) -> None:
    house.app.errors.conflict(f"alpha/{text}", f"alpha/{text}.conflict", "changed by another host meanwhile")


# --- the model -------------------------------------------------------------------------------------------------------


class Model:
    """A model that has credentials to tell. `said`: what it has told."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def __call__(self, request: LLMRequest) -> Any:
        """A responder."""
        kind = "observed" if events_in(request) else "filed" if "bank_files" in request.text else "remembered"
        if kind == "filed" and "refused" not in self.said:
            kind = "refused"
        self.said += [kind, "summed up"] if kind == "observed" and wants_summary(request) else [kind]
        return getattr(self, kind)(request)

    def observed(self, request: LLMRequest) -> str:
        numbers = [number for number, _, _ in events_in(request)]
        fields = {"narrative": secret("model: observation"), "title": secret("model: title")}
        reply = observation(*numbers, **fields)
        return reply + summary(completed=secret("model: summary")) if wants_summary(request) else reply

    def filed(self, _: LLMRequest) -> dict[str, Any]:
        """Each time one line of the file goes, for a reason."""
        lines = ["apples", "zebras in town", "rain", "the moon", "letters", "a boat", "iron", "cake", "nine", "ten"]
        gone = self.said.count("filed")
        text = "\n".join(["# Active", "", f"The key is {secret('model: file')}", *(f"- {one}" for one in lines[gone:])])
        dropped = [{"filename": "a.md", "text": f"- {lines[gone - 1]}", "reason": secret("model: why it drops")}]
        return consolidation_reply(
            {"a.md": f"{text}\n"},
            synthesis=secret("model: synthesis"),
            action="created" if gone == 1 else "updated",
            dropped=dropped if gone > 1 else [],
        )

    def refused(self, _: LLMRequest) -> str:
        return f"I cannot do that with {secret('model: refused')}: {{"

    def remembered(self, _: LLMRequest) -> dict[str, Any]:
        memory = remembered(f"The key is {secret('model: memory')}", 1, subjects=[secret("model: subject")])
        return digest_reply(memory, skipped={2: secret("model: why it skips")})


async def _ask_models(house: House, model: Model) -> None:
    """Runs of each kind, of which one is refused; agents are observed meanwhile."""
    await house.hook("Stop")
    for control in (".digest", ".consolidate", ".consolidate", ".consolidate"):
        await house.write("live/one more", f"We chose {control} {len(model.said)}.")
        await _wait(house, control, {})
    with trio.fail_after(PATIENCE):
        while "summed up" not in model.said:
            await trio.sleep(0.02)


# --- all of it -------------------------------------------------------------------------------------------------------


@dataclass
class Found:
    """Where a credential might be: by place, all bytes there are."""

    places: dict[str, bytes]
    refused: dict[str, str]
    model: list[str]


def _bytes_below(folder: Path) -> bytes:
    """Names and contents of all files, and both with what is percent-encoded in them read."""
    files = [path for path in folder.rglob("*") if path.is_file()]
    whole = b"\n".join([*(str(path).encode() for path in files), *(path.read_bytes() for path in files)])
    return whole + b"\n" + unquote_to_bytes(whole)


async def _all_doors(settings: Settings, mountpoint: Path, model: Model) -> tuple[bytes, dict[str, str]]:
    async with open_app(settings, mountpoint=mountpoint) as app, trio.open_nursery() as nursery:
        server = mcp_server(app, tools="all")
        nursery.start_soon(server.run)
        await spaces.create(app.replica, app.clock, SPACE)
        async with mcp.Client(server.sdk) as session:
            house = House(app, lambda tool, **given: session.call_tool(tool, given))
            await app.replica.put(f"{SPACE}/live/20260101T000000_x_todo_00000002.md", secret(FOREIGN).encode())
            await house.write("ordinary.txt", secret(ORDINARY))
            for door, comes_in in DOORS.items():
                try:
                    await comes_in(house, secret(door))
                except LiveMemError as error:
                    house.refused[door] = str(error)
                    app.errors.record(door, f"{SPACE}/{secret(door)}", error)
            await _ask_models(house, model)
            shown = app.errors.errors() + app.errors.conflicts() + json.dumps(app.tree.context.status()).encode()
        nursery.cancel_scope.cancel()
    return shown, house.refused


def _command(*words: str) -> str:
    """What a command prints."""
    out = StringIO()
    with redirect_stdout(out), redirect_stderr(out), pytest.raises(SystemExit):
        main(words)
    return out.getvalue()


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> Found:
    """What is left behind when all doors have been used."""
    home, logged = tmp_path_factory.mktemp("doors"), StringIO()
    mountpoint = home / "mnt"
    mountpoint.mkdir()
    host, agent = (secret(door) for door in OF_ENVIRONMENT)
    given = {"LIVEMEMFS_STORE": str(home / "store"), "LIVEMEMFS_CACHE": str(home / "cache"), "LIVEMEMFS_HOST": host}
    given |= {"LIVEMEMFS_AGENT": agent, "LIVEMEMFS_EMBED_MODEL": "none", "LLMAAS_MODEL": "scripted"}
    kept = {name: value for name, value in os.environ.items() if name in ("PATH", "HOME", "LANG")}
    model = Model()
    with ScriptedLLM(responder=model) as llm, patch.dict(os.environ, {**kept, **given}, clear=True):
        os.environ["LLMAAS_API_URL"], os.environ["LIVEMEMFS_OBSERVE_IDLE"] = llm.url, "0"
        os.environ["LIVEMEMFS_OBSERVE_BATCH"] = "1"
        log.configure("debug", json=True, stream=logged)
        shown, refused = trio.run(_all_doors, Settings.load(os.environ), mountpoint, model)
        printed = "".join(_command(*words(secret(door))) for door, words in OF_COMMANDS.items())
        sent = "\n".join(json.dumps(request.body) for request in llm.requests).encode()
    structlog.reset_defaults()
    places = {
        "bucket": _bytes_below(home / "store"),
        "local state": _bytes_below(home / "cache"),
        "errors.ndjson": shown,
        "log": logged.getvalue().encode(),
        "requests": sent,
        "printed": printed.encode(),
    }
    return Found(places, refused, model.said)


EVERY_DOOR = (*DOORS, *OF_MODELS, *OF_COMMANDS, *OF_ENVIRONMENT)


@pytest.mark.parametrize("door", EVERY_DOOR)
def test_a_credential_is_nowhere_whatever_door_it_came_by(found: Found, door: str) -> None:
    assert [place for place, data in found.places.items() if needle(door).encode() in data] == []


def test_there_are_forty_doors_and_more() -> None:
    assert len(EVERY_DOOR) >= 40


def test_each_door_was_open(found: Found) -> None:
    """What is refused is what the table means to be."""
    assert set(found.refused) == REFUSED
    assert set(found.model) == {"observed", "summed up", "filed", "refused", "remembered"}


def test_another_programs_note_gets_no_farther_than_the_bucket(found: Found) -> None:
    """It is in the bucket already, and so on this disk; a model is asked without it."""
    assert needle(FOREIGN).encode() in found.places["bucket"]
    assert b"[redacted: github-token]" in found.places["requests"]
    assert needle(FOREIGN).encode() not in found.places["requests"]


def test_an_ordinary_file_stays_what_it_is(found: Found) -> None:
    assert needle(ORDINARY).encode() in found.places["bucket"]
