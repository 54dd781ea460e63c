"""What is written for each agent, word for word: in an empty project, and for all projects of a user."""

from __future__ import annotations

from pathlib import Path

import pytest
from projects import MOUNT, Project

from livememfs.agents.hooks import CONTRACTS
from livememfs.agents.install.tools import AGENTS, AgentName, WantedFile, parts

GOLDEN = Path(__file__).parent / "golden"


@pytest.mark.parametrize("tool", AgentName)
@pytest.mark.parametrize("home", [False, True])
def test_what_is_written_is_what_was_looked_at(made: Project, tool: AgentName, home: bool) -> None:
    """To accept a change: remove the file, run this twice, read the file."""
    in_all = home and (AGENTS[tool].hooks is None and AGENTS[tool].plugin is None)
    mcp = in_all or bool(AGENTS[tool].servers.home if home else AGENTS[tool].servers.path) or tool is AgentName.OPENCODE

    plan = made.planned(tool, ".livememfs" if home else "project", context="# Memory\n", mcp=mcp)

    golden = GOLDEN / f"{tool}{'-user' if home else ''}.diff"
    if not golden.exists():
        golden.write_text(plan.diff())
        pytest.fail(f"{golden} was missing and is to be read by you")
    assert golden.read_text() == plan.diff()
    plan.carry_out()
    made.uninstall(tool, home=home)
    assert made.everything() == {}


@pytest.mark.parametrize("tool", AgentName)
@pytest.mark.parametrize("name", [".livememfs", "project"])
def test_each_hook_leads_to_a_file_that_is_there(tool: AgentName, name: str) -> None:
    if name == ".livememfs" and AGENTS[tool].hooks is None and AGENTS[tool].plugin is None:
        return
    for part in parts(tool, WantedFile(space=f"{MOUNT}/{name}"), home=name == ".livememfs"):
        text = part.skeleton("")
        for segment in part.added(text):
            text = text[: segment.at] + segment.text + text[segment.at :]
        for hook in part.hooks(text) if part.wanted else ():
            assert hook.event in CONTRACTS
            assert hook.file == f"{MOUNT}/{name}/{'hooks' if name == '.livememfs' else '.hooks'}/{hook.event}"
