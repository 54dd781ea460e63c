"""`README.md` of a space: how an agent uses it, short.

Owns that text. Deterministic: the same space gives the same bytes. Any thread.
"""

from __future__ import annotations

TEXT = """\
# Memory space `{space}`

Files are the interface. Nothing here needs a tool other than reading and writing files.

- **Before you work**, read `bank/*.md`: what is known. `_synthesis.md` says what the last consolidation took in.
- **While you work**, write what should be remembered, one thing per file, into `live/`:
  `echo "we chose S3 because ..." > live/decision-storage.md`. Any name will do. A name that begins with decision, todo,
  insight, question, progress, issue or observation sets the note's category; front matter (`category`, `agent`, `tags`)
  is honoured. The note gets its final name when you close it; the name you wrote goes on working.
- **To find something**, `cat "search/which database.md"`: the question is the file's name. `type:decision`,
  `agent:NAME`, `file:NAME`, `after:2026-02-01`, `in:bank`, "quoted words" and `-word` narrow it down.
- **What is true** goes into `memories/`, one fact per file: `echo "David is my brother" > memories/david`; `rm` forgets
  it, front matter `ttl: 7d` lets it end. What you are and what you would like goes into `self/` and `goals/`.
- **Before you answer** a message, `exec 3<>.recall; echo "MESSAGE" >&3; cat <&3` tells what is known about it.
- **When you begin**, read `context.md`: who you are, what was done last, and a timeline. `observations/ID.md` is a line
  of it in full, `search/around:ID.md` what happened before and after it.
- **Without hooks**, tell what you do by files: `mkdir sessions/NAME`, put JSON (`tool`, `input`, `output`) or text into
  `sessions/NAME/events/`, append prompts to `prompts.ndjson`, and `touch .stop` at the end; `summary.md` follows.
- **After a piece of work**, `touch .consolidate` has the notes folded into `bank/`.
  `touch .consolidate && cat .consolidate.wait` waits for it; `cat .consolidate` shows how the last one went.
  `touch .digest` takes from the notes what lasts, one fact per file, into `memories/`; `.digest.wait` waits likewise.
- `bank/` is read-only. `_rules.md` says which files it has; it can be written once, before the first consolidation.
- If a write fails, the last lines of `../.livememfs/errors.ndjson` say why and what to do.
- Any other file or folder you make here is kept as it is.
"""


def guide(space: str) -> bytes:
    """The text for one space."""
    return TEXT.format(space=space).encode()
