"""A credential of each kind and of each form of the table, and for each a text that looks like one but is none.

No example is a real credential, and none stands here in one piece: they are put together when the tests run.
"""

from __future__ import annotations

import json
import random
import re
import time
import timeit
from base64 import urlsafe_b64encode

from livememfs.text.privacy.redaction import redact
from livememfs.text.privacy.vendors import FORMS, CredentialForm

DIGITS = "0123456789"
HEX = DIGITS + "abcdef"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ALNUM = UPPER + UPPER.lower() + DIGITS


def some(count: int, alphabet: str = ALNUM) -> str:
    """So many random characters, the same each time; with letters of both cases and digits in the full alphabet."""
    characters = "".join(random.Random(f"{count} {alphabet}").choices(alphabet, k=count))
    return "aB3" + characters[3:] if alphabet is ALNUM else characters


def coded(value: object) -> str:
    """A part of a JSON web token."""
    return urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


ALPHABETS = {
    "a": ALNUM,
    "h": HEX,
    "d": DIGITS,
    "u": UPPER + DIGITS,
    "l": UPPER.lower() + DIGITS,
    "c": UPPER + UPPER.lower(),
}
"""The alphabets in the templates of the table of forms."""


def made(template: str) -> str:
    """The example that a template of the table describes."""
    return re.sub("<([a-z]):([0-9]+)>", lambda part: some(int(part[2]), ALPHABETS[part[1]]), template)


def seconds(text: str, repeat: int = 3) -> float:
    """The processor time of this thread for redacting a text, the least of so many."""
    return min(timeit.repeat(lambda: redact(text), timer=time.thread_time, number=1, repeat=repeat))


def example(form: CredentialForm) -> tuple[str, str, str]:
    """A text with a credential of this form, the credential, and a near miss."""
    text = made(form.example)
    secret = re.search("«(.*)»", text, re.DOTALL)
    return text.replace("«", "").replace("»", ""), secret[1] if secret else text, made(form.miss)


KEY = "\n".join(
    ["-----BEGIN RSA " + "PRIVATE KEY-----", some(64), some(63) + "=", "-----END RSA " + "PRIVATE KEY-----"]
)
JWT = f"{coded({'alg': 'HS256', 'typ': 'JWT'})}.{coded({'sub': 'me'})}.{some(43)}"
AWS_ID = "AK" + "IA" + some(16, UPPER)
BOT = urlsafe_b64encode(some(18, DIGITS).encode()).decode()
BOT = "M" + BOT[1:] if not BOT.startswith(("M", "N", "O")) else BOT

EXAMPLES: dict[str, tuple[str, str, str]] = {
    # kind: a text, the part of it that must go, a near miss
    "private-key": (f"here:\n{KEY}\nthere", KEY, "grep -r '-----BEGIN RSA " + "PRIVATE KEY-----' finds them"),
    "aws-access-key": (f"id {AWS_ID}.", AWS_ID, "AK" + "IA" + some(16, UPPER) + "AND MORE"),
    "aws-secret-key": (f"AWS_SECRET_ACCESS_KEY={some(40)}", some(40), f"the commit {some(40, HEX)} has it"),
    "github-token": ("gh" + "p_" + some(36), "gh" + "p_" + some(36), "gh" + "p_short and ghp_"),
    "gitlab-token": ("gl" + "pat-" + some(20), "gl" + "pat-" + some(20), "gl" + "pat-is a prefix"),
    "anthropic-key": ("sk-" + "ant-api03-" + some(40), "sk-" + "ant-api03-" + some(40), "sk-ant- is a prefix"),
    "digitalocean-token": ("do" + "p_v1_" + some(64, HEX), "do" + "p_v1_" + some(64, HEX), "dop_v1_ is a prefix"),
    "docker-token": ("dckr" + "_pat_" + some(27), "dckr" + "_pat_" + some(27), "dckr_pat_ is a prefix"),
    "figma-token": ("fi" + "gd_" + some(40), "fi" + "gd_" + some(40), "figd_ is a prefix"),
    "grafana-token": ("gl" + "sa_" + some(32) + "_" + some(8, HEX), some(32), "glsa_ is a prefix"),
    "newrelic-key": ("NR" + "AK-" + some(27, UPPER), "NR" + "AK-" + some(27, UPPER), "NRAK-EXAMPLE"),
    "atlassian-token": ("ATA" + "TT3" + some(180), "ATA" + "TT3" + some(180), "ATATT3 is a prefix"),
    "discord-token": (f"{BOT}.{some(6)}.{some(38)}", some(38), f"M{'odules' * 4}.{some(6)}.{some(38)}"),
    "age-key": ("AGE-SECRET" + "-KEY-1" + some(58, UPPER), some(58, UPPER), "AGE-SECRET-KEY-1 is a prefix"),
    "jwt": (f"it is {JWT}.", JWT, f"{coded({'typ': 'no token'})}.{coded({'sub': 'me'})}.{some(43)}"),
    "url-password": ("postgres://me:hun" + "ter2@db:5432/x", "hun" + "ter2", "postgres://me:${PASSWORD}@db:5432/x"),
    "authorization-header": ("Authorization: Basic dXNlcj" + "pwYXNz", "dXNlcj" + "pwYXNz", "Authorization: Bearer $T"),
    "api-key-header": ("curl -H 'X-Api-Key: a1b2" + "c3d4'", "a1b2" + "c3d4", "X-Api-Key: <your key>"),
    "connection-string": ("Server=x;Password=P@ss,w" + "ord;Database=y", "P@ss,w" + "ord", "Server=x;Password=***;"),
    "password": ("PGPASS" + "WORD=correcthorse psql", "correcthorse", 'password = os.environ["X"]'),
    "named-secret": ("api_" + 'key: "abcdef123"', "abcdef123", "token = get_token()"),
}  # fmt: skip
for form in FORMS:  # a kind without an example here has that of its first form; `test_vendors` tries every form
    EXAMPLES.setdefault(form.kind, example(form))
