"""The kinds of run: the one place that names them all.

A new kind is a folder with its `Work`, and is named here. An undo is no such kind: no model is asked, and its entry is
carried out as it is. Any thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from livememfs.records.ledger import Kind
from livememfs.runs.consolidation.work import Consolidation
from livememfs.runs.digest.work import Digest
from livememfs.runs.work import Work

WORKS: Mapping[Kind, Work[Any, Any]] = {work.kind: work for work in (Consolidation(), Digest())}
