"""The media type of an object follows from its name alone."""

from __future__ import annotations

import pytest

from livememfs.text.mediatypes import UNKNOWN, content_type


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        ("s/bank/a.md", "text/markdown; charset=utf-8"),
        ("s/_ledger/00000001.json", "application/json"),
        ("s/_ledger/00000001.digest", UNKNOWN),
        ("s/x.ndjson", "application/x-ndjson"),
        ("s/PAGE.HTML", "text/html"),
        ("s/a.md/b", UNKNOWN),
        ("s/.md", UNKNOWN),
        ("s/x.tar.gz", UNKNOWN),
        ("data:text/html,x", UNKNOWN),
        ("", UNKNOWN),
    ],
)
def test_the_suffix_tells(key: str, kind: str) -> None:
    assert content_type(key) == kind
