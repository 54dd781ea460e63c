"""What is private is replaced by a mark, however it is disguised; all else keeps its bytes."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from secrets_corpus import AWS_ID, EXAMPLES, HEX, JWT, KEY, seconds, some

from livememfs.text.privacy.credentials import KINDS
from livememfs.text.privacy.redaction import MARK, PRIVATE, Redacted, redact, redact_file, redact_value

LONG = bool(os.environ.get("LIVEMEMFS_TEST_LONG"))
NAMES = [kind.name for kind in KINDS]
TOKEN = "gh" + "p_" + some(36)
HIDDEN = "[redacted: github-token]"


PIECES = st.sampled_from(
    [
        *(part for text, secret, miss in EXAMPLES.values() for part in (text, secret, miss)),
        *("<private>", "</private>", "&lt;private&gt;", "< / private >", "[private]", HIDDEN, "password=", "token: "),
        *('"', "'", " ", "\n", "://a:", "@", ".", "-", "_", "\\n", ";", "&", "=", "a", "0"),
        *("\u0130", "\u212a", "\ud800"),
        *("-----BEGIN " + "PRIVATE KEY-----", "-----END " + "PRIVATE KEY-----", "ghp_", "AKIA", "eyJ", "sk-"),
    ]
)
TEXTS = st.lists(PIECES | st.text(max_size=8), max_size=10).map("".join)


# --- kinds -------------------------------------------------------------------------------------------------------


def test_every_kind_has_its_examples_and_its_own_name() -> None:
    assert sorted(EXAMPLES) == sorted(NAMES)
    assert [name for name, count in Counter(NAMES).items() if count > 1] == []
    assert all(MARK.fullmatch(f"[redacted: {name}]") for name in NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_a_credential_of_each_kind_is_replaced_and_named(name: str) -> None:
    text, secret, _ = EXAMPLES[name]

    redacted = redact(text)

    assert secret in text
    assert secret not in redacted.text
    assert f"[redacted: {name}]" in redacted.text
    assert redacted.found == (name,)


@pytest.mark.parametrize("name", NAMES)
def test_what_only_looks_like_one_stays(name: str) -> None:
    near_miss = EXAMPLES[name][2]

    assert redact(near_miss) == Redacted(near_miss, ())


@pytest.mark.parametrize("name", NAMES)
def test_a_credential_is_found_wherever_it_stands_and_its_surroundings_stay(name: str) -> None:
    text, secret, _ = EXAMPLES[name]

    for before, after in [("", ""), ('{"a": "', '"}'), ("x\\n", "\\ny"), ("é ", " é"), ("\n", "\n")]:
        redacted = redact(before + text + after)

        assert secret not in redacted.text
        assert redacted.text.startswith(before)
        assert redacted.text.endswith(after)


@pytest.mark.parametrize(
    "text",
    [
        "password=hun" + "ter2",
        "password = 'hun" + "ter2'",
        "passphrase: correcthorsebattery",
        "DB_PASS=hun" + "ter2x",
        '{"password": "correct horse"}',
        '{\\"client_secret\\": \\"abc123def\\"}',
        "clientSecret: 'abc123def'",
        "- **Password:** `hun" + "ter2`",
        "mysql --password hun" + "ter22 -u me",
        "connect(host, password=hun" + "ter22, timeout=3)",
        "<password>hun" + "ter22</password>",
        "https://x/y?access_token=abc123def&page=2",
        "password=12345678",
        "password=pa(ss)word123",
        "redis://:hun" + "ter2@cache",
        "authorization: Bearer abcdef123456",
        '"Authorization": "token abcdef123456"',
        f"sent it with bearer {some(32)}",
    ],
)
def test_what_is_called_a_secret_is_one(text: str) -> None:
    redacted = redact(text)

    assert redacted.found
    assert re.search(r"hunter|correct|horse|abc|123|aB3", redacted.text) is None


@pytest.mark.parametrize(
    "text",
    [
        "password=${PASS}", "password=$PASS", "password: str", "password: str = None", "<password>", "token: AuthToken",
        "password=****", "password=changeme", "password: <your password>", "password={{ vault_password }}",
        "password=db_password", "token = self.token", "api_key=settings.api_key", "secret: arn:aws:secretsmanager:eu",
        "max_tokens: 128000", "tokens=1234567", "token_count=1234567", "password_hint: the name of my cat",
        "next_page_token=abc123def456", "the token: expires after an hour", "secretary: Margaret", "bypass=abcdefgh",
        "if token == expected_value:",
        "the next token: identifier",
        "const token = await getToken();",
        "token = cache.get(key).value;",
        "http://localhost:8080/a@b", "user@example.org", "git@github.com:a/b.git", "the keyboard: mechanical",
        "a bearer of bad news", "password: ''", "token=12345678", "Authorization: required for everything",
        some(40, HEX), "task-force-one-and-a-half-hour-meeting", "sha256:" + some(64, HEX),
    ],
)  # fmt: skip
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text) == Redacted(text, ())


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("password={}", "abc123"),
        ("api_key={}", "abc123"),
        ("password: |\n  {}\nuser: me\n", "abc123"),
        ("the password is {}", "abc123"),
        ("| password | {} |", "abc123"),
        ("mysql --password {}", "abc123"),
        ("<password>{}</password>", "abc123"),
        ("API-Schlüssel: {}", "abc123"),
        ("dbpass={}", "abc123"),
        ("my-secret={}", "abc123"),
        ("access_token={}", "abc123"),
        ("private key: {}", "abc123"),
    ],
)
def test_a_secret_has_six_characters_at_least(text: str, secret: str) -> None:
    assert secret not in redact(text.format(secret)).text
    shorter = text.format(secret[:-1])
    assert redact(shorter) == Redacted(shorter, ())


@pytest.mark.parametrize(
    "text",
    [
        "Schlüssel: abc123def",
        "compass=abc123def",
        "arn:aws:secret=abc123def",
        "page_token=abc123def",
        "pad_token=abc123def",
        "turkey: abc123def",
        "primary key: abc123def",
        "passwords: |\n  one day 1\n  and another 2\nuser: me\n",
        "password: |\n  $PASSWORD\n",
    ],
)
def test_a_word_that_names_a_secret_elsewhere_may_name_none(text: str) -> None:
    assert redact(text) == Redacted(text, ())


def test_a_key_that_is_cut_off_goes_as_far_as_it_is_one() -> None:
    cut = KEY.rpartition("\n")[0]

    assert redact(f"a\n{cut}\nand so on").text == "a\n[redacted: private-key]\nand so on"
    numbered = "".join(f"\n{number:6}\t{line}" for number, line in enumerate(cut.split("\n")))
    assert some(64) not in redact(numbered).text
    assert some(64) not in redact(json.dumps({"out": cut})).text


def test_two_keys_do_not_take_what_stands_between_them() -> None:
    assert redact(f"{KEY}\nbetween\n{KEY}").text == "[redacted: private-key]\nbetween\n[redacted: private-key]"


def test_a_secret_beside_an_access_key_goes_with_it() -> None:
    for text in (f"{AWS_ID}\n{some(40)}\n", f"{some(40)} {AWS_ID}"):
        redacted = redact(text)

        assert redacted.found == ("aws-access-key", "aws-secret-key")
        assert some(40) not in redacted.text


def test_the_more_exact_kind_names_what_two_kinds_find() -> None:
    assert redact(f"token={TOKEN}").text == f"token={HIDDEN}"
    assert redact(f"Authorization: Bearer {JWT}").text == "Authorization: Bearer [redacted: jwt]"


# --- blocks ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("a <private>x</private> b", "a [private] b"),
        ("a <private>x</private> b <private>y</private> c", "a [private] b [private] c"),
        ('< Private  x="1" >x</ PRIVATE  > b', "[private] b"),
        ("a <private>x\n\nx", "a [private]"),
        ("a <private", "a [private]"),
        ("a <private/> x", "a [private]"),
        ("<private>x<private>x</private>x</private>b", "[private]b"),
        ("a <private>x<private>x</private>x", "a [private]"),
        ("x </private> b", "[private] b"),
        ("x <private>x</private> x </private> b", "[private] b"),
        ("x </private", "[private]"),
        ("a <private>x</private x", "a [private]"),
        ("a &lt;private&gt;x&lt;/private&gt; b", "a [private] b"),
        ("a &amp;lt;private&amp;gt;x&amp;lt;/private&amp;gt; b", "a [private] b"),
        ("a &#60;private&#62;x&#x3c;/private&#x3E; b", "a [private] b"),
        ('{"a": "\\u003cprivate\\u003ex\\u003c/private\\u003e"}', '{"a": "[private]"}'),
        ('{"a": "<private>x<\\/private>"}', '{"a": "[private]"}'),
        ("a <pri\u200bvate>x</p\u2060rivate\ufeff> b", "a [private] b"),
        ("a <\u200bprivate\u200b>x<\u200b/private> b", "a [private] b"),
        ("a \uff1cprivate\uff1ex\uff1c\uff0fprivate\uff1e b", "a [private] b"),
        ("a <\uff50\uff52\uff49\uff56\uff41\uff54\uff45>x</private> b", "a [private] b"),
    ],
)
def test_a_block_goes_however_it_is_written_and_what_is_not_closed_goes_to_the_end(text: str, left: str) -> None:
    assert redact(text) == Redacted(left, (PRIVATE,))


@pytest.mark.parametrize(
    "text",
    ["<privateKey>", "<private-thing> x", "private", "</privateKey>", "a private < b", "<private.x>", "<privat>"],
)
def test_a_word_that_begins_alike_is_no_block(text: str) -> None:
    assert redact(text) == Redacted(text, ())


def test_what_stands_behind_a_block_is_looked_at_too() -> None:
    assert redact(f"<private>x</private>{TOKEN}").text == f"[private]{HIDDEN}"


# --- values, files -----------------------------------------------------------------------------------------------


def test_every_text_of_a_value_is_redacted_and_the_rest_stays() -> None:
    value = {"a": [1, None, True, 1.5, f"x {TOKEN}"], "b": {TOKEN: "<private>x"}, "max_tokens": "many"}

    redacted, kinds = redact_value(value)

    assert redacted == {
        "a": [1, None, True, 1.5, f"x {HIDDEN}"], "b": {HIDDEN: "[private]"}, "max_tokens": "many",
    }  # fmt: skip
    assert kinds == ("github-token", PRIVATE)


@pytest.mark.parametrize(
    "name",
    [
        "password", "api_key", "apiKey", "X-Api-Key", "secret", "token", "accessToken", "authorization", "DB_PASS",
        "mot_de_passe", "Mot de passe", "contraseña", "Passwort", "apiSchlüssel", "clé_API", "clave de API",
    ],
)  # fmt: skip
def test_a_text_under_the_name_of_a_secret_is_one(name: str) -> None:
    assert redact_value({name: "abc"}) == ({name: "[redacted: named-secret]"}, ("named-secret",))
    assert redact_value({name: ["abc"]})[0] == {name: ["[redacted: named-secret]"]}
    assert redact_value({name: TOKEN}) == ({name: HIDDEN}, ("github-token",))


@pytest.mark.parametrize(
    "value",
    [
        {"tokens": "12 of them"}, {"token_count": "many"}, {"max_tokens": "many"}, {"password": None}, {"token": 12},
        {"password": ""}, {"password_hint": "the cat"}, {"next_page_token": "abc"}, {"key": "Enter"},
        {"token": {"type": "string"}}, {"secretary": "Margaret"}, {"compass": "north"},
    ],
)  # fmt: skip
def test_a_name_that_only_looks_like_one_of_a_secret_hides_nothing(value: dict[str, Any]) -> None:
    assert redact_value(value) == (value, ())


def test_fields_whose_names_become_the_same_are_all_kept() -> None:
    other = "gh" + "o_" + some(37)

    redacted, _ = redact_value({TOKEN: 1, other: 2, f"{HIDDEN} 2": 3})

    assert sorted(redacted.values()) == [1, 2, 3]
    assert redact_value(redacted) == (redacted, ())


@given(st.recursive(TEXTS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3)))
@example({f"AWS_SECRET_ACCESS_KEY={some(40)}": "abc"})
def test_redacting_a_value_twice_changes_nothing_more(value: Any) -> None:
    once, _ = redact_value(value)

    assert redact_value(once) == (once, ())


def test_a_value_that_is_nested_too_deep_is_replaced_not_refused() -> None:
    value: Any = TOKEN
    for _ in range(5_000):
        value = [value]

    redacted, kinds = redact_value(value)

    assert kinds == ("too-deep",)
    assert TOKEN not in repr(redacted)


def test_front_matter_stays_front_matter() -> None:
    data, kinds = redact_file(f"---\nurl: postgres://me:hun{'ter2'}@db/x\nmood: calm\n---\n\n{TOKEN} é\n".encode())

    text = data.decode()
    assert text == f'---\nurl: "postgres://me:[redacted: url-password]@db/x"\nmood: "calm"\n---\n\n{HIDDEN} é\n'
    assert kinds == ("github-token", "url-password")
    assert redact_file(data) == (data, ())


def test_front_matter_without_a_secret_keeps_its_bytes() -> None:
    front = "---\nmood:   calm # very\n---\n"

    assert redact_file(f"{front}{TOKEN}".encode())[0] == f"{front}{HIDDEN}".encode()


def test_a_block_that_begins_in_the_front_matter_takes_the_body_with_it() -> None:
    data, _ = redact_file(b"---\nmood: <private>\n---\n\nof the body\n")

    assert b"of the body" not in data


def test_bytes_that_are_no_text_stay_and_what_is_private_among_them_goes() -> None:
    assert redact_file(b"\xff\xfe a") == (b"\xff\xfe a", ())
    data, kinds = redact_file(b"\xff " + TOKEN.encode() + b" \xfe")

    assert (data, kinds) == (b"\xff " + HIDDEN.encode() + b" \xfe", ("github-token",))


# --- twice, beside, how long ---------------------------------------------------------------------------------------


@given(TEXTS)
@example("password=[private]x123456")
@example(f"{AWS_ID}{AWS_ID}-----BEGIN " + "PRIVATE KEY-----")
def test_redacting_twice_changes_nothing_more(text: str) -> None:
    once = redact(text)

    assert redact(once.text) == Redacted(once.text, ())
    assert (once.text == text) == (not once.found)


@given(TEXTS)
def test_between_the_marks_stands_what_stood_there_in_that_order(text: str) -> None:
    at = 0
    for part in MARK.split(redact(text).text):
        assert text.find(part, at) >= 0
        at = text.find(part, at) + len(part)


@given(TEXTS)
def test_no_tag_is_left(text: str) -> None:
    left = redact(text).text

    assert "<private>" not in left
    assert "</private>" not in left


@given(st.text(st.characters(exclude_characters="<\uff1c\ufe64&\\%:=-_.>"), max_size=15))
def test_a_text_without_any_of_the_signs_keeps_its_bytes(text: str) -> None:
    assert redact(text) == Redacted(text, ())


HOSTILE = [
    *("a.", "a1", "a_", ").a", "))", "/a", "a::", "?.", "x-", "\\\\n", "-----BEGIN " + "PRIVATE KEY-----\nA: b"),
    *("<private>", "</private>", "<private", "< ", "\\u003c", "p\u200b", "password=$", "password='", "token:", "key"),
    *("-----BEGIN " + "PRIVATE KEY-----", "://a:", "eyJ", "-eyJ", ".eyJ", "sk-", "AKIA", "[private]", "a"),
    *("A" * 39, "curl ", "mysql -u ", "echo a:b ", "machine x login y ", "cookie: a=b; ", "| password "),
    *("password is ", "\u200b", "password for a ", "token: |\n  ab1\n", "\\\n", "%2D", "\x1b[1m", "\x1b]", "&#45;"),
    *("\uff41", "sk-abcd12\nef12ab34\n", "QUFB" * 20 + "\n", "QUFBQUFBQUFBQUFB ", "glpat-abc1\n", "$6$", ":5432:"),
    *("1/1", '"auth": "', "private-lines: 1\n"),
    *("authorization:", ";password=", "\\", "\n", "&a=", "MO.", f"{AWS_ID} ", TOKEN + " ", some(40) + " "),
]


HEADS = ["", "password=", "secret: f(", "token='", "Authorization: Bearer "]


@pytest.mark.parametrize(
    ("head", "unit"),
    # Each unit comes after two of the heads, and each head before two fifths of the units.
    [
        (head, unit)
        for number, unit in enumerate(HOSTILE)
        for turn, head in enumerate(HEADS)
        if LONG or (number + turn) % 5 < 2
    ],
)
def test_the_work_grows_with_the_text_and_no_faster(head: str, unit: str) -> None:
    """Eight times the text takes about eight times as long; if parts were read again and again, it would take 64."""
    anchors = "ghp_ sk- eyJ atlasv1.org-sentry :aa-us asia akia " + "x" * 20 + " " + head

    small, large = (anchors + unit * (size // len(unit)) for size in (4_000, 32_000))
    least = seconds(small)

    assert any(seconds(large, repeat=1) < 24 * least for _ in range(3))
