"""What tests of imports have in common."""

from __future__ import annotations

from pathlib import Path

import pytest
from import_house import House


@pytest.fixture
async def house(tmp_path: Path) -> House:
    (tmp_path / "source").mkdir()
    return await House.made(tmp_path / "source")
