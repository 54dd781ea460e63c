"""`/s/<space>/proposals`: what waits for a person, with its diff, and the buttons that accept and refuse.

Owns who may decide here: a token with the permission to administer, which agents are not given. Trio thread only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from livememfs import errors
from livememfs.memories import proposals
from livememfs.memories.proposalpage import diff_of
from livememfs.serve.web.acts import Done, author, fields
from livememfs.serve.web.asked import access_of
from livememfs.serve.web.diff import DiffLine, diff_lines
from livememfs.serve.web.render import part

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from livememfs.records.proposal import Proposal
    from livememfs.serve.web.site import Site

SHOWN, SHOWN_DECISIONS = 50, 20
SAID = {"accept": "Accepted.", "refuse": "Refused."}
ACTIONS = {"accept": proposals.accept, "refuse": proposals.refuse}


@dataclass(frozen=True)
class ShownProposal:
    """A proposal on the page: what it is, its diff, and whether that is cut."""

    proposal: Proposal
    diff: list[DiffLine]
    cut: bool


async def show(site: Site, request: Request) -> Response:
    """The page."""
    space, access = (await site.space(request)).space, access_of(request)
    replica = site.context.replica
    found = await proposals.waiting(replica, space)
    waiting = [
        ShownProposal(proposal, *diff_lines(await diff_of(replica, space, proposal))) for _, proposal in found[:SHOWN]
    ]
    return await site.page(
        request,
        "proposals.html",
        space=space,
        waiting=waiting,
        more=len(found) - len(waiting),
        decided=(await proposals.decisions(replica, space))[:SHOWN_DECISIONS],
        asks=await proposals.wanted(replica, space),
        may_decide=access.may("admin"),
    )


async def decide(site: Site, request: Request) -> Response:
    """A button was pressed: `action` is one of ACTIONS, `name` that of a proposal. Forbidden without `admin`."""
    space = (await site.space(request, "admin")).space
    given = await fields(request)
    act = ACTIONS.get(given.get("action", ""))
    if act is None:
        raise errors.BadRequest(f"an action is one of {', '.join(ACTIONS)}", path="proposals")
    by = author(site, request)
    await act(site.context.replica, site.context.clock, space, given.get("name", ""), by=by)
    return site.acts.done(f"/s/{part(space)}/proposals", Done(space, SAID[given["action"]]))
