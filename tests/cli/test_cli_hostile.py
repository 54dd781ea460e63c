"""A bucket in which every name and text would steer the terminal of whoever lists it."""

from __future__ import annotations

import json
import tarfile
from pathlib import Path

import pytest
from commandline import Cli

from livememfs.cli.common import Choice
from livememfs.cli.doctor import setting_sources

ESCAPE = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e"
STEERING = {"\x1b", "\x07", "\x9b", "\u202e"}
LISTINGS = [
    "space list",
    "space info project",
    "space rules project",
    "space summary project",
    "backup list",
    "memories list project",
    "memories list project --in goals",
    "token list",
    "history project",
    "gc",
    "search hostile",
    "recall project hostile",
    "index status",
]


@pytest.fixture
def hostile(cli: Cli, project: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The space, filled by somebody who has the bucket."""
    monkeypatch.setenv("LIVEMEMFS_EMBED_MODEL", "none")
    store = tmp_path / "store"
    assert cli("token", "create", "me", "--space", project).code == 0
    assert cli("memories", "add", project, "David is hostile", "--subject", "david").code == 0
    assert cli("backup", "create", project).code == 0
    _within(store / "_system/tokens.json", '"me"', json.dumps(f"me{ESCAPE}"))
    meta = json.loads((store / project / "_meta.json").read_text())
    (store / project / "_meta.json").write_text(json.dumps(meta | {"description": ESCAPE, "owner": ESCAPE}))
    (store / project / "_rules.md").write_text(f"# rules {ESCAPE}\n")
    (store / project / "bank").mkdir(exist_ok=True)
    (store / project / "bank/known.md").write_text(f"# known {ESCAPE}\n")
    (store / project / "live").mkdir(exist_ok=True)
    note = f'---\nagent: "a{json.dumps(ESCAPE)[1:-1]}"\ncategory: decision\ntags: ["{json.dumps(ESCAPE)[1:-1]}"]\n---\n'
    (store / project / f"live/20261124T000000_{ESCAPE}_decision_aaaaaaaa.md").write_text(f"{note}hostile {ESCAPE}\n")
    for path in (store / project / "memories").glob("*.md"):
        path.write_text(path.read_text().replace("David", f"David {ESCAPE}").replace("david", json.dumps(ESCAPE)))
    goals = store / project / "goals"
    goals.mkdir(exist_ok=True)
    (goals / f"20261124T000000Z_goal_{ESCAPE}_1a2b3c4d.md").write_text(f"---\nsubjects: [x]\n---\nhostile {ESCAPE}\n")
    for folder in ("_backups", f"_backups/{project}", project, "."):
        (store / folder / f"x{ESCAPE}").mkdir(exist_ok=True)
        (store / folder / f"x{ESCAPE}/file{ESCAPE}").write_text("x")
    return project


def _within(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))


def test_no_listing_steers_the_terminal(cli: Cli, hostile: str) -> None:
    """What would is shown as its escape, also in JSON, which stays JSON."""
    shown = ""
    for command in LISTINGS:
        for form in ("--json", "") if "rules" not in command else ("",):
            done = cli(*command.split(), *filter(None, [form]))
            assert done.code in (0, 1), command
            assert not STEERING & {*done.out, *done.err}, command
            if form and done.out.strip():
                json.loads(done.out)
        assert done.out.count("\n") < 60, command
        shown += f"{command}: {r'u001b' in done.out}\n"

    assert shown.count("True") >= 8, shown


def test_an_error_that_names_something_steers_nothing(cli: Cli, hostile: str) -> None:
    done = cli("space", "info", f"x{ESCAPE}")

    assert done.code == 1
    assert not STEERING & {*done.out, *done.err}


def test_what_is_exported_says_what_it_leaves_out(cli: Cli, project: str, tmp_path: Path) -> None:
    """A folder has no such names; tests/spaces has the test with a bucket."""
    done = cli("space", "export", project, str(tmp_path / "a.tar.gz"))

    assert done.err == ""
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        assert len(archive.getnames()) == int(done.out.split()[0])


@pytest.mark.parametrize(
    "variable", ["S3_ENDPOINT_URL", "LLMAAS_API_URL", "LIVEMEMFS_EMBED_URL", "LIVEMEMFS_INDEX_URL"]
)
def test_no_login_of_a_url_is_printed_with_the_settings(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    scheme = "postgresql" if "INDEX" in variable else "https"
    monkeypatch.setenv(variable, f"{scheme}://me:sesame@localhost:1/v1")
    monkeypatch.setenv("LLMAAS_MODEL", "m")
    choice = Choice()
    values = {setting.variable: setting.value for setting in setting_sources(choice, choice.load())}

    assert values[variable] in (f"{scheme}://***@localhost:1/v1", "(set)")
    assert "sesame" not in str(values)


@pytest.mark.parametrize("url", ["htp://me:sesame@host", "https://me:ses/ame@host", "https://me:sesame@host:port"])
def test_a_url_that_is_none_is_refused_without_its_login(cli: Cli, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMAAS_API_URL", url)
    done = cli("space", "list")

    done.fails("LLMAAS_API_URL", code=2)
    assert "ame" not in done.err.replace("name", "")


def test_doctor_tells_no_login_of_an_endpoint_that_does_not_answer(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, nothing_mounted: None
) -> None:
    monkeypatch.setenv("LIVEMEMFS_EMBED_MODEL", "none")
    monkeypatch.setenv("LLMAAS_API_URL", "http://me:sesame@127.0.0.1:9/v1")
    monkeypatch.setenv("LLMAAS_MODEL", "m")
    done = cli("doctor")

    assert "127.0.0.1:9" in done.out
    assert "sesame" not in done.out + done.err
