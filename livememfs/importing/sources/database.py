"""The SQLite databases of other programs: read as a copy, since opening one that is in use writes files beside it.

Any thread.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

HEAD = b"SQLite format 3\0"
Row = dict[str, Any]


@contextmanager
def copied(file: Path) -> Iterator[sqlite3.Connection]:
    """A copy of a database, with what is not in its file yet. OSError; sqlite3.Error for what is no database."""
    with TemporaryDirectory() as folder:
        for ending in ("", "-wal"):
            if (beside := Path(f"{file}{ending}")).exists():
                shutil.copyfile(beside, Path(folder, f"copy{ending}"))
        with closing(sqlite3.connect(Path(folder, "copy"))) as database:
            yield database


def rows(database: sqlite3.Connection, table: str, order: str) -> list[Row]:
    """The rows of a table; its name and the order stand in the code of a source. sqlite3.Error without the table."""
    found = database.execute(f"SELECT * FROM {table} ORDER BY {order}")
    columns = [column[0] for column in found.description]
    return [dict(zip(columns, row, strict=True)) for row in found]
