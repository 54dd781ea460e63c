"""An index that the tests of searching fill themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from livememfs.recall.index.local import Index


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    """An index with nothing in it."""
    made = Index(tmp_path / "index", "hashed")
    yield made
    made.close()
