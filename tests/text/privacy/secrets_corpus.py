"""A credential of each kind and of each form of the table, and one thing beside each that looks like it and is none.

No example is a credential of anybody, and none stands here in one piece: they are put together when the tests run.
"""

from __future__ import annotations

import json
import random
import re
from base64 import urlsafe_b64encode

from livememfs.text.privacy.vendors import FORMS, CredentialForm

DIGITS = "0123456789"
HEX = DIGITS + "abcdef"
UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
ALNUM = UPPER + UPPER.lower() + DIGITS


def some(count: int, alphabet: str = ALNUM) -> str:
    """So many characters by chance, the same each time; of letters and digits, some of each."""
    found = "".join(random.Random(f"{count} {alphabet}").choices(alphabet, k=count))
    return "aB3" + found[3:] if alphabet is ALNUM else found


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
"""What the table of forms makes its examples of."""


def made(template: str) -> str:
    """What a template of the table stands for."""
    return re.sub("<([a-z]):([0-9]+)>", lambda part: some(int(part[2]), ALPHABETS[part[1]]), template)


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
    # kind: a text, what of it must go, a near miss
    "private-key": (f"here:\n{KEY}\nthere", KEY, "grep -r '-----BEGIN RSA " + "PRIVATE KEY-----' finds them"),
    "aws-access-key": (f"id {AWS_ID}.", AWS_ID, "AK" + "IA" + some(16, UPPER) + "AND MORE"),
    "aws-secret-key": (f"AWS_SECRET_ACCESS_KEY={some(40)}", some(40), f"the commit {some(40, HEX)} has it"),
    "aws-signature": (f"https://b/k?X-Amz-Signature={some(64, HEX)}", some(64, HEX), "X-Amz-Signature=none yet"),
    "github-token": ("gh" + "p_" + some(36), "gh" + "p_" + some(36), "gh" + "p_short and ghp_"),
    "gitlab-token": ("gl" + "pat-" + some(20), "gl" + "pat-" + some(20), "gl" + "pat-is a prefix"),
    "anthropic-key": ("sk-" + "ant-api03-" + some(40), "sk-" + "ant-api03-" + some(40), "sk-ant- is a prefix"),
    "openai-key": ("sk-" + "proj-" + some(48), "sk-" + "proj-" + some(48), "sk-learn-like-estimators-are-fine"),
    "groq-key": ("gs" + "k_" + some(52), "gs" + "k_" + some(52), "gsk_build_root"),
    "xai-key": ("xa" + "i-" + some(80), "xa" + "i-" + some(80), "xai-methods-for-everyone"),
    "perplexity-key": ("pp" + "lx-" + some(48), "pp" + "lx-" + some(48), "pplx-online"),
    "livememfs-token": ("l" + "m_" + some(43), "l" + "m_" + some(43), "lm_head_dim"),
    "replicate-token": ("r" + "8_" + some(37), "r" + "8_" + some(37), "r8_unorm"),
    "google-api-key": ("AI" + "za" + some(35), "AI" + "za" + some(35), "AIzawa is a name"),
    "google-oauth": ("GOC" + "SPX-" + some(28), "GOC" + "SPX-" + some(28), "ya29. is a prefix"),
    "firebase-key": ("AA" + "AA" + some(7) + ":" + some(140), some(140), "AAAA: an address record"),
    "slack-token": ("xo" + "xb-" + some(12, DIGITS) + "-" + some(24), some(24), "xoxb- is a prefix"),
    "slack-webhook": ("https://hooks.sl" + "ack.com/services/T01/B02/" + some(24), some(24), "hooks.slack.com/help"),
    "stripe-key": ("sk_" + "live_" + some(24), "sk_" + "live_" + some(24), "pk_" + "live_" + some(24)),
    "square-token": ("sq0" + "atp-" + some(22), "sq0" + "atp-" + some(22), "sq0atp- is a prefix"),
    "shopify-token": ("shp" + "at_" + some(32, HEX), "shp" + "at_" + some(32, HEX), "shpat_example"),
    "twilio-key": ("S" + "K" + some(32, HEX), "S" + "K" + some(32, HEX), "S" + "K" + some(33, HEX)),
    "sendgrid-key": ("S" + "G." + some(22) + "." + some(43), "S" + "G." + some(22) + "." + some(43), "SG.example.com"),
    "mailgun-key": ("ke" + "y-" + some(32, HEX), "ke" + "y-" + some(32, HEX), "key-value-store"),
    "mailchimp-key": (some(32, HEX) + "-u" + "s12", some(32, HEX), f"{some(32, HEX)}-used"),
    "npm-token": ("np" + "m_" + some(36), "np" + "m_" + some(36), "npm_config_registry_and_other_variables"),
    "pypi-token": ("py" + "pi-AgEIcHlwaS5vcmc" + some(60), some(60), "pypi-publish"),
    "rubygems-key": ("ruby" + "gems_" + some(48, HEX), "ruby" + "gems_" + some(48, HEX), "rubygems_version"),
    "huggingface-token": ("h" + "f_" + some(34), "h" + "f_" + some(34), "hf_hub_download"),
    "digitalocean-token": ("do" + "p_v1_" + some(64, HEX), "do" + "p_v1_" + some(64, HEX), "dop_v1_ is a prefix"),
    "azure-storage-key": (f"AccountName=x;AccountKey={some(86)}==;", some(86) + "==", "AccountKey=<key>"),
    "azure-sas": (f"https://x.blob/c?sv=1&sig={some(43)}%3D&se=2", some(43), "sig=short"),
    "databricks-token": ("da" + "pi" + some(32, HEX), "da" + "pi" + some(32, HEX), "dapi2 is a version"),
    "vault-token": ("hv" + "s." + some(24), "hv" + "s." + some(24), "hvs.example.org"),
    "terraform-token": (some(14) + ".atlas" + "v1." + some(60), some(60), "the atlasv1 format"),
    "pulumi-token": ("pu" + "l-" + some(40, HEX), "pu" + "l-" + some(40, HEX), "pul-stack"),
    "docker-token": ("dckr" + "_pat_" + some(27), "dckr" + "_pat_" + some(27), "dckr_pat_ is a prefix"),
    "tailscale-key": ("ts" + "key-auth-" + some(12) + "-" + some(32), some(32), "tskey-auth- is a prefix"),
    "linear-key": ("lin" + "_api_" + some(40), "lin" + "_api_" + some(40), "lin_api_key_of_the_team"),
    "notion-token": ("nt" + "n_" + some(46), "nt" + "n_" + some(46), "secret_" + some(20)),
    "figma-token": ("fi" + "gd_" + some(40), "fi" + "gd_" + some(40), "figd_ is a prefix"),
    "postman-key": ("PM" + "AK-" + some(24, HEX) + "-" + some(34, HEX), some(34, HEX), "PMAK-example"),
    "grafana-token": ("gl" + "sa_" + some(32) + "_" + some(8, HEX), some(32), "glsa_ is a prefix"),
    "newrelic-key": ("NR" + "AK-" + some(27, UPPER), "NR" + "AK-" + some(27, UPPER), "NRAK-EXAMPLE"),
    "atlassian-token": ("ATA" + "TT3" + some(180), "ATA" + "TT3" + some(180), "ATATT3 is a prefix"),
    "supabase-key": ("sb" + "p_" + some(40, HEX), "sb" + "p_" + some(40, HEX), "sbp_example"),
    "sentry-key": (f"https://{some(32, HEX)}@o1.ingest.sen" + "try.io/4", some(32, HEX), "https://docs.sentry.io/x"),
    "telegram-token": (some(9, DIGITS) + ":A" + "A" + some(33), some(33), "12345678:AA and so on"),
    "discord-token": (f"{BOT}.{some(6)}.{some(38)}", some(38), f"M{'odules' * 4}.{some(6)}.{some(38)}"),
    "discord-webhook": (f"https://discord.com/api/webhooks/{some(18, DIGITS)}/{some(68)}", some(68),
                        "https://discord.com/api/webhooks/help"),
    "age-key": ("AGE-SECRET" + "-KEY-1" + some(58, UPPER), some(58, UPPER), "AGE-SECRET-KEY-1 is a prefix"),
    "jwt": (f"it is {JWT}.", JWT, f"{coded({'typ': 'no token'})}.{coded({'sub': 'me'})}.{some(43)}"),
    "url-password": ("postgres://me:hun" + "ter2@db:5432/x", "hun" + "ter2", "postgres://me:${PASSWORD}@db:5432/x"),
    "authorization-header": ("Authorization: Basic dXNlcj" + "pwYXNz", "dXNlcj" + "pwYXNz", "Authorization: Bearer $T"),
    "api-key-header": ("curl -H 'X-Api-Key: a1b2" + "c3d4'", "a1b2" + "c3d4", "X-Api-Key: <your key>"),
    "connection-string": ("Server=x;Password=P@ss,w" + "ord;Database=y", "P@ss,w" + "ord", "Server=x;Password=***;"),
    "password": ("PGPASS" + "WORD=correcthorse psql", "correcthorse", 'password = os.environ["X"]'),
    "named-secret": ("api_" + 'key: "abcdef123"', "abcdef123", "token = get_token()"),
}  # fmt: skip
for one in FORMS:
    EXAMPLES.setdefault(one.kind, example(one))
