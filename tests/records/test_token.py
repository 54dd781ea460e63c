"""Tokens are written as the data model says, and odd values give no access."""

from __future__ import annotations

import json
from datetime import timedelta
from itertools import product
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from livememfs.errors import Forbidden, NotFound
from livememfs.records.access import EVERYTHING, NOTHING, PERMISSIONS, Access
from livememfs.records.token import PREFIX, Registry, Token, hash_of, new_secret
from livememfs.testing.clock import START

SECRET = "lm_" + "a" * 43
ENTRY = {
    "hash": hash_of(SECRET),
    "name": "agent-cline",
    "permissions": ["read", "write"],
    "space_ids": ["projet-alpha", "projet-beta"],
    "created_at": "2026-02-20T14:05:00Z",
    "expires_at": "2027-02-20T14:05:00Z",
    "last_used_at": "2026-02-20T18:00:00Z",
    "revoked": False,
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


def registry(*entries: Any, **more: Any) -> Registry:
    """The registry in an object with these entries."""
    return Registry.parse(json.dumps({"version": 1, "tokens": list(entries), **more}).encode())


def test_the_data_models_entry_survives_to_the_letter() -> None:
    assert json.loads(registry(ENTRY).render()) == {"version": 1, "tokens": [ENTRY]}
    assert list(json.loads(registry(ENTRY).render())["tokens"][0]) == list(ENTRY)


def test_what_this_version_does_not_know_is_kept() -> None:
    value = {"version": 3, "tokens": [{**ENTRY, "email": "x@y"}, "odd", {"hash": "md5:1"}], "owner": [1]}

    assert json.loads(Registry.parse(json.dumps(value).encode()).render()) == value


@pytest.mark.parametrize("data", [b"", b"[]", b'{"tokens": 3}', b"\xff", b'{"tokens": {}}', b"[" * 100_000])
def test_what_is_no_registry_is_refused_rather_than_overwritten(data: bytes) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - any of its kinds will do
        Registry.parse(data)


@given(st.dictionaries(st.sampled_from([*ENTRY, "x"]), JSON))
@example({"permissions": [[]]})
@example({"permissions": ["read", {}, "admin "], "space_ids": "", "expires_at": "", "revoked": 0})
def test_whatever_stands_in_an_entry_it_opens_no_more_than_it_says(fields: dict[str, Any]) -> None:
    """A damaged entry never gains a permission, all spaces, or time without end."""
    token = registry({**ENTRY, **fields}).find(SECRET)
    if token is None:
        return
    permissions = fields.get("permissions", ENTRY["permissions"])
    assert all(isinstance(permissions, list) and right in permissions for right in token.access().permissions)
    if fields.get("space_ids", ["some"]) not in ([], None):
        assert not token.access().everywhere
    if fields.get("expires_at", "some") is not None:
        assert token.expires_at is not None
    if fields.get("revoked", False) is not False:
        assert token.state(START) == "revoked"


def test_a_secret_is_long_and_never_the_same() -> None:
    made = {new_secret() for _ in range(50)}

    assert len(made) == 50
    assert all(secret.startswith(PREFIX) and len(secret) >= 46 for secret in made)


def test_a_token_is_found_by_its_secret_alone() -> None:
    tokens = registry(ENTRY)

    assert tokens.find(SECRET) is not None
    assert [tokens.find(other) for other in ("", SECRET[:-1], SECRET + "a", ENTRY["hash"], "agent-cline")] == [None] * 5
    assert SECRET not in tokens.render().decode()


@pytest.mark.parametrize(
    ("changed", "after", "state"),
    [
        ({}, {"days": 1}, "active"),
        ({}, {"days": 366}, "expired"),
        ({"expires_at": None}, {"days": 99_999}, "active"),
        ({"expires_at": "2026-02-20T14:00:00Z"}, {}, "expired"),
        ({"expires_at": "tomorrow"}, {}, "expired"),
        ({"revoked": True}, {}, "revoked"),
    ],
)
def test_a_token_is_worth_what_it_says_at_the_second(changed: Any, after: dict[str, int], state: str) -> None:
    assert Token.parse({**ENTRY, **changed}).state(START + timedelta(**after)) == state


def test_a_token_is_named_by_its_name_its_hash_or_the_beginning_of_that() -> None:
    token = Token.parse(ENTRY)
    digits = token.hash.removeprefix("sha256:")

    assert all(
        token.is_meant(which) for which in ("agent-cline", token.hash, digits, digits[:8], digits[:8].upper(), SECRET)
    )
    assert not any(token.is_meant(which) for which in ("agent", digits[:7], "", SECRET + "x", "sha256:"))


# --- what may be done ----------------------------------------------------------------------------------------------


def test_each_permission_includes_those_before_it() -> None:
    allowed = {own: [p for p in PERMISSIONS if Access("a", frozenset({own})).may(p)] for own in PERMISSIONS}

    assert allowed == {"read": ["read"], "write": ["read", "write"], "admin": ["read", "write", "admin"]}


@pytest.mark.parametrize(("permissions", "spaces"), list(product([(), ("read",), ("read", "write")], [(), ("alpha",)])))
def test_a_space_outside_is_not_there_and_a_change_too_many_is_forbidden(
    permissions: tuple[str, ...], spaces: tuple[str, ...]
) -> None:
    access = Access("a", frozenset(permissions), spaces)
    there = bool(permissions) and (not spaces or "alpha" in spaces)

    assert access.sees("alpha") is there
    assert access.sees("beta") is (bool(permissions) and not spaces)
    for permission in PERMISSIONS:
        if not there:
            with pytest.raises(NotFound):
                access.require("alpha", permission)
        elif permission not in permissions:
            with pytest.raises(Forbidden):
                access.require("alpha", permission)
        else:
            access.require("alpha", permission)


def test_an_administrator_of_some_spaces_does_not_administer_the_bucket() -> None:
    """An administrator who can make tokens could make one for all spaces."""
    assert not Access("a", frozenset(PERMISSIONS), ("alpha",)).admin
    with pytest.raises(Forbidden):
        Access("a", frozenset(PERMISSIONS), ("alpha",)).require_admin()
    assert EVERYTHING.admin
    assert EVERYTHING.everywhere
    assert not NOTHING.everywhere
    assert not Access("a", frozenset(PERMISSIONS), ("alpha",)).everywhere
    assert not NOTHING.sees("alpha")
