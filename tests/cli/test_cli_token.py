"""`livememfs token`: a secret is shown once, and everything else as often as one likes."""

from __future__ import annotations

from pathlib import Path

import pytest
from commandline import Cli


@pytest.fixture
def secret(cli: Cli) -> str:
    """Of a token that may write in `alpha` for a month."""
    done = cli("token", "create", "cline", "--permissions", "write", "--space", "alpha", "--expires", "30d")
    assert done.code == 0
    return done.out.strip()


def test_a_new_token_is_alone_on_standard_output_so_that_it_can_be_piped(cli: Cli, tmp_path: Path) -> None:
    done = cli("token", "create", "cline", "--permissions", "read,write")

    assert done.out.count("\n") == 1
    assert done.out.startswith("lm_")
    assert "read, write in all spaces" in done.err
    assert "shown only now" in done.err
    assert done.out.strip() not in done.err
    assert done.out.strip() not in (tmp_path / "store/_system/tokens.json").read_text()


def test_tokens_are_listed_without_what_they_are(cli: Cli, secret: str) -> None:
    table, values = cli("token", "list"), cli("token", "list", "--json")

    assert all(word in table.out for word in ("cline", "active", "read,write", "alpha", "never"))
    assert values.json[0]["space_ids"] == ["alpha"]
    assert values.json[0]["state"] == "active"
    assert secret not in table.out + values.out


def test_json_has_the_secret_beside_the_entry(cli: Cli) -> None:
    made = cli("token", "create", "cline", "--json").json

    assert made["token"].startswith("lm_")
    assert made["permissions"] == ["read"]
    assert made["hash"].startswith("sha256:")


def test_a_token_is_changed_revoked_and_removed(cli: Cli, secret: str) -> None:
    assert "read in all spaces" in cli("token", "update", "cline", "--permissions", "read", "--all-spaces").out
    assert "is revoked" in cli("token", "revoke", secret).out
    assert cli("token", "list", "--json").json[0]["state"] == "revoked"
    assert cli("token", "purge").out == "0 tokens removed\n"
    assert cli("token", "purge", "--revoked").out == "1 token removed, cline\n"
    assert "no token yet" in cli("token", "list").out
    cli("token", "create", "other")
    assert "is deleted" in cli("token", "delete", "other").out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("create", "x", "--expires", "soon"), 2, "30d"),
        (("create", "x", "--permissions", "root"), 1, "read, write, admin"),
        (("create", "x", "--space", "../x"), 1, "a space is called"),
        (("create", "cline"), 1, "exists already"),
        (("revoke", "nobody"), 1, "there is no token nobody"),
        (("update", "cline"), 2, "say what changes"),
        (("update", "cline", "--space", "a", "--all-spaces"), 2, "exclude each other"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    cli: Cli, secret: str, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    done = cli("token", *arguments)

    assert done.code == code
    assert sentence in done.err
    assert done.out == ""
