"""WebDAV: what a file manager does with the tree, what it is refused, and who is let in."""

from __future__ import annotations

import base64
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import trio
from clients import SPACE

from livememfs.app import App
from livememfs.app.serving import dav_server
from livememfs.cli.main import main
from livememfs.errors import Unreachable
from livememfs.spaces import making as spaces
from livememfs.tree.node import NOBODY

pytest.importorskip("wsgidav")
pytest.importorskip("cheroot")


@dataclass
class FileManager:
    """A client with a token. An answer is its status and its body."""

    address: str
    secret: str
    headers: dict[str, str]

    def now(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, str]:
        given = base64.b64encode(f"anybody:{self.secret}".encode()).decode()
        sent = {"Authorization": f"Basic {given}"} | {name.replace("_", "-"): value for name, value in headers.items()}
        connection = HTTPConnection(self.address, timeout=20)
        try:
            connection.request(method, path, body, sent)
            answer = connection.getresponse()
            self.headers = {name.lower(): value for name, value in answer.getheaders()}
            return answer.status, answer.read().decode()
        finally:
            connection.close()

    async def ask(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> tuple[int, str]:
        """In a thread: the trio thread answers."""
        data = body.encode() if isinstance(body, str) else body
        return await trio.to_thread.run_sync(partial(self.now, method, path, data, **headers))

    async def names(self, path: str) -> list[str]:
        """What a folder shows."""
        status, listing = await self.ask("PROPFIND", path, Depth="1")
        assert status == 207, listing
        return [name for name in re.findall(rf"href>{re.escape(path)}([^<]+)</", listing) if name]


@pytest.fixture
async def address(app: App, nursery: trio.Nursery) -> AsyncIterator[str]:
    server = await dav_server(app, 0)
    url = await nursery.start(server.run)
    yield url.removeprefix("http://").strip("/")
    server.stop()


async def client(app: App, address: str, permission: str = "write", *only: str) -> FileManager:
    secret, _ = await app.tokens.create(f"{permission} {only}", [permission], only)
    return FileManager(address, secret, {})


@pytest.fixture
async def files(app: App, address: str) -> FileManager:
    return await client(app, address)


async def test_files_and_folders_are_read_written_moved_copied_and_removed(app: App, files: FileManager) -> None:
    top = f"/{SPACE}"
    assert (await files.ask("MKCOL", f"{top}/folder"))[0] == 201
    assert (await files.ask("PUT", f"{top}/folder/a%20b.txt", "one"))[0] == 201
    etag = files.headers["etag"]
    assert (await files.ask("GET", f"{top}/folder/a%20b.txt"))[1] == "one"
    assert files.headers["etag"] == etag
    assert await files.ask("GET", f"{top}/folder/a%20b.txt", Range="bytes=1-") == (206, "ne")
    assert (await files.ask("PUT", f"{top}/folder/a%20b.txt", "two", If_Match=etag))[0] == 204
    assert (await files.ask("PUT", f"{top}/folder/a%20b.txt", "three", If_Match=etag))[0] == 412
    assert (await files.ask("COPY", f"{top}/folder", Destination=f"http://{files.address}{top}/copy"))[0] == 201
    assert (await files.ask("MOVE", f"{top}/folder/a%20b.txt", Destination=f"{top}/moved"))[0] == 201
    assert await files.names(f"{top}/folder/") == []
    assert (await files.ask("GET", f"{top}/moved"))[1] == "two"
    assert (await files.ask("GET", f"{top}/copy/a%20b.txt"))[1] == "two"
    assert (await files.ask("DELETE", f"{top}/copy"))[0] == 204
    assert (await files.ask("GET", f"{top}/copy/a%20b.txt"))[0] == 404
    await app.replica.uploaded()
    assert (await app.store.get(f"{SPACE}/moved")).data == b"two"


async def test_what_is_put_into_live_is_a_note_that_its_written_name_leads_to(app: App, files: FileManager) -> None:
    live = f"/{SPACE}/live/"
    assert (await files.ask("PUT", f"{live}choice.md", "we chose S3"))[0] == 201
    assert "etag" not in files.headers  # more is stored than was sent
    [name] = await files.names(live)
    assert re.fullmatch(r"\d{8}T\d{6}_.*\.md", name)
    assert (await files.ask("GET", live + name)) == (await files.ask("GET", f"{live}choice.md"))
    assert (await files.ask("PUT", f"{live}choice.md", "we chose a folder"))[0] == 204
    assert await files.names(live) == [name]
    # As editors save: a temporary file takes the place of the note, which stays the same note.
    await files.ask("PUT", f"{live}.choice.md.swp", "we chose both")
    assert (await files.ask("MOVE", f"{live}.choice.md.swp", Destination=f"{live}choice.md"))[0] == 204
    assert await files.names(live) == [name]
    assert "we chose both" in (await files.ask("GET", live + name))[1]


async def test_what_leaves_a_place_for_one_of_another_kind_is_copied_and_removed(app: App, files: FileManager) -> None:
    await files.ask("PUT", f"/{SPACE}/idea.md", "a good idea")
    assert (await files.ask("MOVE", f"/{SPACE}/idea.md", Destination=f"/{SPACE}/live/idea.md"))[0] == 201
    assert "a good idea" in (await files.ask("GET", f"/{SPACE}/live/idea.md"))[1]
    assert (await files.ask("GET", f"/{SPACE}/idea.md"))[0] == 404


REFUSED = (
    ("PUT", f"/{SPACE}/bank/new.md", b"x", 403, "consolidation writes it"),
    ("PUT", f"/{SPACE}/README.md", b"x", 403, "read-only"),
    ("PUT", "/file", b"x", 403, "the root holds spaces only"),
    ("PUT", f"/{SPACE}/live/bytes", b"\xff\xfe", 422, "UTF-8"),
    ("PUT", f"/{SPACE}/live/note", b"\xff\xfe", 422, "UTF-8"),
    ("MKCOL", f"/{SPACE}/live/folder", None, 403, "holds files only"),
    ("MKCOL", f"/{SPACE}", None, 405, ""),
    ("DELETE", f"/{SPACE}", None, 409, "is not empty"),
    ("DELETE", f"/{SPACE}/bank", None, 403, ""),
    ("DELETE", f"/{SPACE}/README.md", None, 403, ""),
    ("DELETE", "/", None, 403, "the top stays"),
    ("PUT", f"/{SPACE}/no/such/folder", b"x", 409, ""),
    ("GET", f"/{SPACE}/nothing", None, 404, ""),
    ("PROPFIND", "/", None, 403, ""),  # of everything that there is
)


async def test_the_tree_refuses_with_its_own_sentence_and_nothing_is_left(app: App, files: FileManager) -> None:
    await files.ask("PUT", f"/{SPACE}/kept", "kept")
    await files.ask("PUT", f"/{SPACE}/live/note", "kept")
    before, notes = await files.names(f"/{SPACE}/"), await files.names(f"/{SPACE}/live/")
    for method, path, body, status, said in REFUSED:
        answer = await files.ask(method, path, body)
        assert (answer[0], said in answer[1]) == (status, True), (method, path, answer)
    assert await files.names(f"/{SPACE}/") == before
    assert await files.names(f"/{SPACE}/live/") == notes
    assert "kept" in (await files.ask("GET", f"/{SPACE}/live/note"))[1]
    assert app.tree.unsaved_files() == []


async def test_a_body_that_does_not_arrive_whole_replaces_nothing(app: App, files: FileManager) -> None:
    await files.ask("PUT", f"/{SPACE}/file", "whole")

    def cut(header: str, value: str, body: bytes) -> None:
        connection = HTTPConnection(files.address, timeout=20)
        connection.putrequest("PUT", f"/{SPACE}/file")
        given = base64.b64encode(f"x:{files.secret}".encode()).decode()
        connection.putheader("Authorization", f"Basic {given}")
        connection.putheader(header, value)
        connection.endheaders(body)
        connection.sock.shutdown(1)
        connection.sock.recv(1000)
        connection.close()

    for form in (("Content-Length", "1000", b"half"), ("Transfer-Encoding", "chunked", b"4\r\nhalf\r\n")):
        await trio.to_thread.run_sync(cut, *form)
    assert (await files.ask("GET", f"/{SPACE}/file")) == (200, "whole")


async def test_a_bucket_that_does_not_answer_is_a_503(
    app: App, files: FileManager, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: Any, **__: Any) -> Any:
        raise Unreachable("reset", endpoint="the bucket")

    monkeypatch.setattr(type(app.replica.names), "listing", away)
    status, said = await files.ask("GET", f"/{SPACE}/file")
    assert (status, "does not answer" in said) == (503, True)


async def test_only_a_valid_token_gets_in_and_no_page_of_a_site(app: App, address: str, files: FileManager) -> None:
    stranger = FileManager(address, "lm_wrong", {})
    assert (await stranger.ask("GET", f"/{SPACE}/README.md"))[0] == 401
    assert stranger.headers["www-authenticate"].startswith("Basic ")
    assert (await files.ask("OPTIONS", "/", Authorization="Basic !"))[0] == 401
    assert (await files.ask("OPTIONS", "/", Authorization=f"Bearer {files.secret}"))[0] == 401
    assert (await files.ask("OPTIONS", "/", Host="evil.example"))[0] == 421
    assert (await files.ask("OPTIONS", "/", Origin="https://evil.example"))[0] == 403
    assert (await files.ask("OPTIONS", "/"))[0] == 200


async def test_a_token_may_what_it_says_and_sees_its_spaces_alone(app: App, address: str, files: FileManager) -> None:
    await spaces.create(app.replica, app.clock, "beta")
    await files.ask("PUT", f"/{SPACE}/file", "x")
    reader = await client(app, address, "read", SPACE)
    assert await reader.names("/") == [f"{SPACE}/"]
    assert (await reader.ask("GET", f"/{SPACE}/file"))[0] == 200
    for hidden in ("/beta/README.md", "/search/x.md", "/.livememfs/status.json"):
        assert (await reader.ask("GET", hidden))[0] == 404
    for method in ("PUT", "DELETE", "LOCK", "PROPPATCH"):
        assert (await reader.ask(method, f"/{SPACE}/file", b"y" if method == "PUT" else None))[0] == 403
    writer = await client(app, address, "write", SPACE)
    assert (await writer.ask("MOVE", f"/{SPACE}/file", Destination="/beta/file"))[0] in (403, 404, 409)
    assert (await writer.ask("MKCOL", "/gamma"))[0] == 403
    assert (await files.ask("GET", f"/{SPACE}/file")) == (200, "x")


async def test_no_path_leads_out_of_the_tree_or_has_two_meanings(app: App, files: FileManager) -> None:
    await files.ask("PUT", f"/{SPACE}/file", "x")
    assert (await files.ask("GET", "/../../etc/passwd"))[0] == 400
    assert (await files.ask("GET", f"/{SPACE}/%2e%2e/%2e%2e/etc/passwd"))[0] == 400
    assert (await files.ask("MOVE", f"/{SPACE}/file", Destination="/../file"))[0] == 400
    for path in (f"/{SPACE}%2ffile", f"/{SPACE}/a%00b", f"/{SPACE}/..%2F..%2Fx"):
        assert (await files.ask("PUT", path, "y"))[0] == 400
        assert (await files.ask("MOVE", f"/{SPACE}/file", Destination=path))[0] == 400
    for path in (f"/{SPACE}/why%3F", f"/{SPACE}/a;b"):  # the library would make another name of them
        assert (await files.ask("MOVE", f"/{SPACE}/file", Destination=path))[0] == 422
    assert (await files.ask("MOVE", f"/{SPACE}/file", Destination="http://evil.example/file"))[0] == 502
    assert (await files.ask("GET", f"/{SPACE}/file"))[0] == 200


async def test_a_link_to_a_file_is_that_file_and_one_to_a_folder_is_not_there(app: App, files: FileManager) -> None:
    await files.ask("PUT", f"/{SPACE}/file", "x")
    await files.ask("MKCOL", f"/{SPACE}/folder")
    space: Any = await app.tree.child(SPACE)
    links = {"good": "../file", "circle": "..", "out": f"../../../{SPACE}/file", "absolute": f"/{SPACE}/file"}
    for name, target in links.items():
        await (await space.child("folder")).symlink(name, target, NOBODY)
    assert await files.names(f"/{SPACE}/folder/") == ["good"]
    assert (await files.ask("GET", f"/{SPACE}/folder/good")) == (200, "x")
    assert (await files.ask("GET", f"/{SPACE}/folder/absolute"))[0] == 404


@pytest.mark.skipif(shutil.which("litmus") is None, reason="litmus is not installed")
async def test_litmus_passes(app: App, files: FileManager, tmp_path: Path) -> None:
    line = ["litmus", "-k", f"http://{files.address}/{SPACE}/", "anybody", files.secret]
    done = await trio.run_process(line, capture_stdout=True, stderr=subprocess.STDOUT, check=False, cwd=tmp_path)
    told = done.stdout.decode()
    figures = re.findall(r"summary for `(\w+)': of (\d+) tests run: (\d+) passed", told)
    print(*(f"{name}: {passed} of {run}" for name, run, passed in figures), sep="; ")
    assert {name for name, _, _ in figures} == {"basic", "copymove", "props", "locks", "http"}
    assert all(run == passed for _, run, passed in figures), told


def test_without_the_library_the_command_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in [name for name in sys.modules if name.startswith(("wsgidav", "livememfs.serve.dav"))]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "wsgidav", None)
    monkeypatch.setenv("LIVEMEMFS_CACHE", str(tmp_path / "cache"))
    with pytest.raises(SystemExit) as ended:
        main(["dav", "--store", str(tmp_path / "store"), "--port", "0"])
    assert ended.value.code == 1
    assert "pip install 'livememfs[dav]'" in capsys.readouterr().err


def test_the_command_makes_a_token_and_saves_at_its_end_without_pyfuse3(tmp_path: Path) -> None:
    absent = Path(__file__).resolve().parents[1] / "absent"
    there = os.pathsep.join([str(absent), os.environ.get("PYTHONPATH", "")])
    own = {
        "HOME": str(tmp_path),
        "PYTHONPATH": there,
        "LIVEMEMFS_CACHE": str(tmp_path / "cache"),
        "LIVEMEMFS_EMBED_MODEL": "none",
    }
    line = [sys.executable, "-m", "livememfs", "dav", "--store", str(tmp_path / "store"), "--port", "0"]
    with subprocess.Popen(line, env=os.environ | own, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            url, secret = (process.stdout.readline().strip() for _ in range(2))
            files = FileManager(url.removeprefix("http://").strip("/"), secret, {})
            assert files.now("MKCOL", f"/{SPACE}")[0] == 201
            assert files.now("PUT", f"/{SPACE}/file", b"kept")[0] == 201
        finally:
            process.terminate()
    assert process.returncode == 0
    assert (tmp_path / "store" / SPACE / "file").read_bytes() == b"kept"
    assert list((tmp_path / "cache" / "dav").iterdir())  # what was accepted would outlive a crash
