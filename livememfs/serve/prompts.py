"""Prompts: a person picks one by its name (`/recall`), and the model gets its text.

Owns the three texts; recorded data in them is between its marks. A prompt is a tool whose answer is a text, so
arguments and permissions are checked like those of a tool. Refuses to write anything: the model writes, with the tools.
Trio thread only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from livememfs.concurrency import in_thread
from livememfs.memories.parameters import QUESTION, Parameter
from livememfs.serve import recall_tools
from livememfs.serve.toolbox import Answered, JsonKind, ToolCall, Toolset

LONGEST = 8_000
"""Most characters to remember; a longer text should be a file."""
_SPACE = Parameter("space_id", "the space")
_TEXT: Mapping[str, JsonKind] = {"text": "string"}
PROMPTS = Toolset()


@PROMPTS.add(
    "Answer a question from what is remembered.",
    Parameter("question", "in any words", required=True, longest=QUESTION),
    _SPACE,
    returns=_TEXT,
)
async def recall(call: ToolCall, question: str, space_id: str = "") -> Answered:
    """Search results for a question, and the question."""
    from livememfs.recall.search.page import page  # with the index, which needs numpy

    answer = await recall_tools.ask(call, question, space_id)
    paths = [hit.record.key for hit in answer.found.hits]
    results = await in_thread(partial(page, answer.query, answer.found, paths, notes=answer.notes))
    rules = (
        "Answer the question from the recorded data above, and name the paths that you rely on. Where it does not say,"
        " search with other words before you guess, and say what is not known."
    )
    return {"text": f"{results}\n{rules}\n\nQuestion: {question}\n"}


@PROMPTS.add(
    "Keep something for later sessions and other agents.",
    Parameter("what", "in any words", required=True, longest=LONGEST),
    _SPACE,
    returns=_TEXT,
)
async def remember(call: ToolCall, what: str, space_id: str = "") -> Answered:
    """Instructions to store something."""
    rules = (
        f"Keep what follows in the shared memory{_of(call, space_id)}. One lasting fact about people, projects or"
        " preferences: store_memory. Anything else: live_note, with the category that fits. One call for each thing,"
        " in words that are understood without this conversation, with names and dates, and without credentials."
        " Then say in one line what is kept."
    )
    return {"text": f"{rules}\n\n{what}\n"}


@PROMPTS.add(
    "Leave the next agent what was done, what is open and what comes next.",
    Parameter("space_id", "the space", required=True),
    returns=_TEXT,
)
async def handover(call: ToolCall, space_id: str) -> Answered:
    """The context that the next agent gets, and instructions to complete it."""
    context = (await recall_tools.get_project_context(call, space_id))["context"]
    rules = (
        "Hand the work over to the next agent, who sees what is recorded above and nothing of this conversation. Write"
        f" one note with live_note{_of(call, space_id)}, category progress, with three parts: what was done (files,"
        " commands, results), what is open (failures, questions), what comes next. Leave out what is recorded already."
        " Write each decision that is not recorded as a note of its own, category decision, with its reason."
    )
    return {"text": f"{context}\n{rules}\n"}


def _of(call: ToolCall, space: str) -> str:
    return f" (space {space})" if space and not call.space else ""
