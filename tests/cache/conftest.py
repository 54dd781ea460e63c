"""Fixtures of the tests of the cache."""

from __future__ import annotations

from pathlib import Path

import pytest
from journal_world import Machine


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path / "cache")
