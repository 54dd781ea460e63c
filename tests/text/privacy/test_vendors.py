"""The table of forms: each is found however it is split or disguised; near misses and code stay as they are."""

from __future__ import annotations

import os
import random
import re
from base64 import b64encode, encodebytes, urlsafe_b64encode
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from secrets_corpus import example, made, seconds, some

from livememfs.text.privacy import credentials
from livememfs.text.privacy.redaction import MARK, Redacted, redact
from livememfs.text.privacy.vendors import FORMS, TABLE, CredentialForm

ROOT = Path(__file__).resolve().parents[3]
KNOWN_FORMS = Path(__file__).with_name("secrets_known.txt")
SPLIT_BY = {
    "a zero-width blank": "\u200b",
    "a soft hyphen": "\u00ad",
    "a colour": "\x1b[31m",
    "a colour that is escaped": "\\u001b[1;31m",
    "a backslash and a new line": "\\\n  ",
}
BROKEN_BY = ("\n", "\r\n", "\n    ", "\n> ", "=\n", "\\n")


def left(text: str, *secret: str) -> str | None:
    """The redacted text, if a part of the secret is left in it; None if all of it is gone."""
    redacted = redact(text)
    return redacted.text if not redacted.found or any(part in redacted.text for part in secret) else None


def halves(form: CredentialForm) -> tuple[str, str, str, str]:
    """A text with an example, and the example's secret, both cut in the middle of the secret."""
    text, secret, _ = example(form)
    middle = len(secret) // 2
    at = text.index(secret) + middle
    return text[:at], text[at:], secret[:middle], secret[middle:]


def test_the_table_has_enough_forms_of_enough_vendors() -> None:
    assert len(FORMS) >= 300
    assert len({form.vendor for form in FORMS}) >= 150
    assert len({(form.kind, form.literal, form.pattern, form.example) for form in FORMS}) == len(FORMS)


def test_each_kind_of_the_table_is_a_kind_that_a_mark_can_name() -> None:
    kinds = {kind.name for kind in credentials.KINDS}

    assert {form.kind for form in FORMS} <= kinds
    assert all(MARK.fullmatch(f"[redacted: {kind}]") for kind in kinds)


def test_no_example_stands_in_the_table_in_one_piece() -> None:
    """A scan of the source for credentials of a known form finds none."""
    words = {form.kind for form in FORMS if form.way in ("word", "random", "inside", "after")}

    assert set(redact(TABLE.read_text("utf-8")).found) & words == set()


@pytest.mark.parametrize("kind", sorted({form.kind for form in FORMS}))
def test_each_form_is_found_and_what_looks_alike_is_not(kind: str) -> None:
    for form in (form for form in FORMS if form.kind == kind):
        text, secret, miss = example(form)

        assert left(text, secret) is None, form
        assert kind in redact(text).found, form
        assert redact(miss) == Redacted(miss, ()), form


KNOWN = [line.split("  ", 1) for line in KNOWN_FORMS.read_text("utf-8").splitlines() if not line.startswith("#")]
"""Kind and template of credentials that must be found, whatever the table says."""


@pytest.mark.parametrize("kind", sorted({kind for kind, _ in KNOWN}))
def test_no_alternative_of_a_form_gets_lost(kind: str) -> None:
    for template in (template for other, template in KNOWN if other == kind):
        before, marked, rest = made(template.replace("␣", " ").replace("⏎", "\n")).partition("«")
        secret, _, after = rest.partition("»") if marked else (before, "", "")

        redacted = redact(f"{before}{secret}{after}" if marked else secret)
        assert kind in redacted.found, template
        assert secret not in redacted.text, template
        assert marked or redacted.text == f"[redacted: {kind}]", template


def test_each_form_of_the_table_is_written_down_a_second_time() -> None:
    """A new line of the table needs one in `secrets_known.txt` too."""
    known = {(kind, template.replace("␣", " ").replace("⏎", "\n")) for kind, template in KNOWN}

    assert {(form.kind, form.example) for form in FORMS} <= known


@pytest.mark.parametrize("command", ["mysql", "mariadb"])
@pytest.mark.parametrize("option", ["-port=3306", "-protocol=tcp", "-passwordless"])
def test_a_long_option_of_a_database_client_is_no_password(command: str, option: str) -> None:
    text = f"{command} -u root {option} db"

    assert redact(text) == Redacted(text, ())


@pytest.mark.parametrize("between", SPLIT_BY.values(), ids=SPLIT_BY)
def test_each_form_is_found_with_something_hidden_in_its_middle(between: str) -> None:
    for form in FORMS:
        before, after, *secret = halves(form)

        assert left(f"{before}{between}{after}", *secret) is None, form


@pytest.mark.parametrize("between", BROKEN_BY)
def test_what_has_a_beginning_of_its_own_is_found_over_the_end_of_a_line(between: str) -> None:
    for form in (form for form in FORMS if form.way in ("word", "random")):
        before, after, *secret = halves(form)

        assert left(f"{before}{between}{after}", *secret) is None, form
        assert left(f"is:\n{before}{between}{after}\nand so on", *secret) is None, form


@pytest.mark.parametrize(
    "code",
    [
        lambda text: b64encode(text.encode()).decode(),
        lambda text: "data:text/plain;base64," + b64encode(f"it is {text}".encode()).decode(),
        lambda text: urlsafe_b64encode(f"it is {text}".encode()).decode().rstrip("="),
        lambda text: b64encode(text.encode("utf-16-le")).decode(),
        lambda text: "\n  ".join(re.findall(".{1,76}", b64encode(f"{'-' * 50} {text}".encode()).decode())),
    ],
    ids=["plain", "of a URL", "for URLs", "of UTF-16", "in lines"],
)
def test_each_form_is_found_in_base64(code: Callable[[str], str]) -> None:
    for form in FORMS:
        coded = code(example(form)[0])

        assert left(coded, coded.rpartition(",")[2].strip()[-24:]) is None, form


@pytest.mark.parametrize(
    "text",
    [
        "ghp%5F{}", "ghp\\u005f{}", "ghp&#95;{}", "ghp&#x5f;{}", "\uff47\uff48\uff50_{}", "g\u200bh\u200bp_{}",
        "\\033[1mghp_{}", "\x1b]8;;https://x\x1b\\ghp_{}", "\x1b[32mghp_{}\x1b[0m",
    ],
)  # fmt: skip
def test_letters_in_another_dress_are_read_as_what_they_stand_for(text: str) -> None:
    assert redact(f"x {text.format(some(36))} y").found == ("github-token",)


def test_of_a_text_with_something_hidden_only_the_secret_goes() -> None:
    hidden = "\u00ad a\u200b \x1b[1mb\x1b[0m %2D ghp_" + some(18) + "\u200b" + some(18) + " c\u00ad \\\n d"

    assert redact(hidden).text == "\u00ad a\u200b \x1b[1mb\x1b[0m %2D [redacted: github-token] c\u00ad \\\n d"


@pytest.mark.parametrize(
    "rest",
    [
        "and so on", "The next line", "2026-11-24 was the day", "3b5aa17 Fix the thing",
        "3b5aa17f00112233445566778899aabbccddeeff Fix the thing", "aB3xY9kLmN is the name of the branch",
        "user_id_12345", "# 2. Next", "10.0.0.1",
    ],
)  # fmt: skip
def test_what_follows_a_whole_token_in_the_next_line_stays(rest: str) -> None:
    text = f"ghp_{some(36)}\n{rest}"

    assert redact(text).text == f"[redacted: github-token]\n{rest}"


def test_a_long_key_whose_first_line_hides_goes_as_a_whole() -> None:
    lines = ["-----BEGIN RSA " + "PRIV\x1b[1mATE KEY-----", *[some(64)] * 50, "-----END RSA " + "PRIVATE KEY-----"]

    assert redact("\n".join(lines)).text == "[redacted: private-key]"


def test_a_token_in_several_lines_leaves_the_lines() -> None:
    lines = re.findall(".{1,40}", "sk-ant-" + some(180))

    assert redact("\n  ".join(["key:", *lines, "and"])).text.split("\n") == [
        "key:", *["  [redacted: anthropic-key]"] * len(lines), "  and",
    ]  # fmt: skip


# --- what a sentence says ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "the password is {}.", "The password for the staging database is {} now", "password was: `{}`",
        "| password | {} |", "le mot de passe est {}", "le mot de passe\u00a0: {}", "Mot de passe de la base : {}",
        "la clé API est {}", "clé d'API : {}", "jeton : {}", "Das Passwort lautet {}", "Das Kennwort ist {}!",
        "Kennwort für den Server: {}", "der API-Schlüssel ist {}", "API-Schlüssel: {}", "Zugriffstoken: {}",
        "la contraseña es {}", "contraseña: {}", "la clave de API es {}", "clave secreta: {}",
        "el token de acceso es {}", "the token is {}", "| **API key** | `{}` |", "password: >-\n  {}\nuser: me",
        "api_key: |\n    {}\n", "&quot;password&quot;: &quot;{}&quot;", "PWD='{}'", "export DB_PASSWORD={}",
        '{{\\"token\\": \\"{}\\"}}', "<secret>{}</secret>", "jdbc:x://h/db?user=a&password={}",
    ],
)  # fmt: skip
def test_a_name_with_a_value_in_four_languages(text: str) -> None:
    value = "hunt" + "er" + "2x9"

    assert left(text.format(value), value) is None
    assert MARK.sub(value, redact(text.format(value)).text) == text.format(value)


@pytest.mark.parametrize(
    "text",
    [
        "the password is required", "The token is sha256-hashed", "the password is 8 characters long",
        "password is in 1Password", "the token is 32-byte", "le mot de passe est obligatoire",
        "le mot de passe est dans le coffre 2", "la clave es larga", "das Passwort ist falsch",
        "| password | required |", "| token | MY_TOKEN_2 |", "the secret is kept at https://vault2.example.org",
        "password is utf8-encoded", "the API key is on page 12 of 2024", "la contraseña es obligatoria",
        "the key is 2024-11-03", "description: |\n  text 1\n", "the keyboard: qwerty123456",
        "token: |\n  how many of the 12 words\n  are left\n", "password = \"\" if x1 else y2",
        "autoclave: maschine12",
    ],
)  # fmt: skip
def test_a_sentence_that_tells_no_secret_stays(text: str) -> None:
    assert redact(text) == Redacted(text, ())


# --- false alarms, and what it costs -------------------------------------------------------------------------------

OF_ITSELF = ("vendors.txt",)
"""The table itself is not searched: its example commands have passwords."""


def texts_of_this_repository() -> Iterator[str]:
    """Its sources and documents, without the tests, which are full of passwords on purpose."""
    for path in (*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), *(ROOT / "livememfs").rglob("*")):
        if path.suffix in (".py", ".md", ".html", ".js", ".css", ".txt", ".toml") and path.name not in OF_ITSELF:
            yield path.read_text("utf-8")


def texts_of(package: str) -> Iterator[str]:
    """The sources of an installed package."""
    spec = find_spec(package)
    assert spec is not None
    assert spec.origin is not None
    return (path.read_text("utf-8", "replace") for path in sorted(Path(spec.origin).parent.rglob("*.py")))


@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("this repository", texts_of_this_repository),
        *((package, lambda package=package: texts_of(package)) for package in ("botocore", "starlette", "psycopg")),
    ],
)
def test_at_most_one_line_of_ten_thousand_raises_a_false_alarm(name: str, texts: Callable[[], Iterator[str]]) -> None:
    lines = 0
    alarms: list[str] = []
    for text in texts():
        lines += text.count("\n") + 1
        alarms += [text[max(0, start - 40) : end] for start, end, _ in credentials.spans(text)]

    print(f"{name}: {len(alarms)} of {lines} lines")
    assert len(alarms) * 10_000 <= lines, alarms


@pytest.mark.skipif(not os.environ.get("LIVEMEMFS_TEST_LONG"), reason="measures")
def test_a_megabyte_takes_less_than_80_ms_on_a_machine_of_its_own() -> None:
    """Prints the time of each text. Twice the time is accepted, because the machine may be busy."""
    texts = {
        "documents": "\n".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md"))),
        "source": "\n".join(texts_of("starlette")),
        "log": "".join(
            f"2026-11-24 03:{n % 60:02} INFO worker-{n % 7} GET /api/{n} 200 {n}ms\n" for n in range(20_000)
        ),
        "French": " ".join(["après l'été, la générale développait très tôt ses mémoires"] * 20_000),
        "base64": encodebytes(random.Random(1).randbytes(800_000)).decode(),
        "base64 of text": encodebytes(b"".join(b"item %d of the list\n" % n for n in range(45_000))).decode(),
        "dashes": "-" * (1 << 20),
        "eyJ": "eyJ" * 350_000,
    }
    took = {}
    for name, text in texts.items():
        megabyte = (text * ((1 << 20) // len(text) + 1))[: 1 << 20]
        took[name] = 1_000 * seconds(megabyte)
    print({name: round(ms) for name, ms in took.items()})

    assert max(took.values()) < 160


def test_an_example_is_made_of_what_its_template_says() -> None:
    assert re.fullmatch("x[0-9a-f]{8}-[0-9]{3}", made("x<h:8>-<d:3>"))
