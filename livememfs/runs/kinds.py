"""The kinds of run there are: the one place that names them all.

Whoever adds a kind writes a folder with its `Work`, and names it here. An undo is no kind of work: nobody asks a model,
and its entry is carried out as it is written. Any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from livememfs.records.ledger import Kind
from livememfs.runs.consolidation.work import Consolidation
from livememfs.runs.digest.work import Digest
from livememfs.runs.work import Work

WORKS: Mapping[Kind, Work[Any, Any]] = {work.kind: work for work in (Consolidation(), Digest())}
