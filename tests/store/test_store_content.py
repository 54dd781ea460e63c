"""Contents of files: the same bytes and etags as those in memory, and never fewer of them."""

from __future__ import annotations

from hashlib import md5, sha256
from pathlib import Path
from unittest.mock import patch

import pytest

from livememfs.store import content as module
from livememfs.store.content import FileContent, content_etag, digests, parts_of, whole
from livememfs.store.listing import ListingRequest, SortedKeys, after_prefix, page_of

DATA = b"0123456789"


@pytest.mark.parametrize(("part", "parts"), [(4, [b"0123", b"4567", b"89"]), (5, [b"01234", b"56789"]), (10, [DATA])])
def test_a_file_comes_in_parts_and_has_the_digests_of_its_bytes(tmp_path: Path, part: int, parts: list[bytes]) -> None:
    path = tmp_path / "x"
    path.write_bytes(DATA)
    content = FileContent(path, len(DATA))
    with patch.object(module, "PART", part):
        assert list(parts_of(content)) == parts
        assert whole(content) == DATA
        assert content_etag(content) == content_etag(DATA) == md5(DATA).hexdigest()
        assert digests(content) == digests(DATA) == (md5(DATA).hexdigest(), sha256(DATA).hexdigest())
        assert whole(FileContent(path, 7)) == DATA[:7]


def test_a_file_that_ends_early_is_damaged(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(DATA)
    with pytest.raises(OSError, match="ends 1 bytes early"):
        whole(FileContent(path, 11))


@pytest.mark.parametrize("prefix", ["a", "a/", "a" + chr(0x10FFFF)])
def test_what_comes_after_a_prefix_is_above_all_that_start_with_it(prefix: str) -> None:
    after = after_prefix(prefix)
    assert prefix + chr(0x10FFFF) * 3 < after
    assert not after.startswith(prefix)


@pytest.mark.parametrize("limit", [0, 1, 2, 3, 5, 9])
def test_pages_of_any_length_show_everything_once_and_the_last_one_says_so(limit: int) -> None:
    shown: list[str] = []
    token: str | None = None
    pages = 0
    while pages == 0 or token is not None:
        keys = SortedKeys(["a", "p/a", "p/b/1", "p/b/2", "p/c", "p/d/1", "q"])
        page = page_of(keys, ListingRequest("p/", "/", "", token, limit))
        shown += sorted([*page.keys, *page.prefixes])
        token = page.next_token
        pages += 1
    assert shown == ["p/a", "p/b/", "p/c", "p/d/"]
    assert pages == -(-4 // max(limit, 1))
