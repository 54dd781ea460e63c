"""Credentials by what they look like: a table of kinds, and where in a text each of them stands.

Owns the table. Refuses to guess: what has no form of its own is known by its name only (`named`). Pure; any thread.
"""

from __future__ import annotations

import binascii
import json
import re
from base64 import urlsafe_b64decode
from collections.abc import Iterator
from dataclasses import dataclass

from livememfs.records import named
from livememfs.records.searches import EDGE, OWN_EDGE, Search, Span, Text, following, having, starting, tokens

_END = "(?![A-Za-z0-9])"


# --- what a pattern alone cannot tell ----------------------------------------------------------------------------

_RUN = re.compile("[A-Za-z0-9]{16}")
_MARKS = re.compile(r"-----(BEGIN|END) (?:[A-Z0-9]+ ){0,4}PRIVATE KEY(?: BLOCK)?-----")
_TORN = re.compile(
    r"(?:(?:\\[rn]|\s){1,4}[A-Za-z][A-Za-z-]{1,30}: [^\r\n\\]{1,200})*"  # the fields of an encrypted key
    r"(?:[^A-Za-z0-9+/=]{1,16}(?:[0-9]{1,6}[^A-Za-z0-9+/=]{1,4})?[A-Za-z0-9+/=]{16,}+)+"
    r"(?:[^A-Za-z0-9+/=]{1,16}[A-Za-z0-9+/]{1,64}={1,2})?"
)


def _is_random(text: str) -> bool:
    """Whether there is a part that no word is as long as, with a digit."""
    return _RUN.search(text) is not None and any(map(str.isdigit, text))


def _is_aws_secret(text: str) -> bool:
    """Whether 40 characters are no number in hexadecimal, and of more than one kind."""
    return any(map(str.islower, text)) and any(map(str.isupper, text)) and any(map(str.isdigit, text))


def _is_jwt(text: str) -> bool:
    """Whether the first part is a header of a token: JSON that names its algorithm."""
    head = text.partition(".")[0]
    try:
        value = json.loads(urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    except (ValueError, binascii.Error, RecursionError):
        return False
    return isinstance(value, dict) and "alg" in value


def _is_bot(text: str) -> bool:
    """Whether the first part of a Discord token is a number."""
    head = text.partition(".")[0]
    try:
        return urlsafe_b64decode(head + "=" * (-len(head) % 4)).isdigit()
    except (ValueError, binascii.Error):
        return False


def _private_keys(text: Text) -> Iterator[Span]:
    """Blocks from BEGIN to END. Without an END, as far as what follows looks like a key."""
    if "private key" not in text.lowered:
        return
    begun: re.Match[str] | None = None
    for mark in _MARKS.finditer(text.whole):
        if mark[1] == "BEGIN":
            if begun is not None:
                yield from _torn(text.whole, begun, mark.start())
            begun = mark
        elif begun is not None:
            yield begun.start(), mark.end()
            begun = None
    if begun is not None:
        yield from _torn(text.whole, begun, len(text.whole))


def _torn(text: str, begun: re.Match[str], end: int) -> Iterator[Span]:
    body = _TORN.match(text, begun.end(), end)
    if body is not None:
        yield begun.start(), body.end()


def _passwords(text: Text) -> Iterator[Span]:
    return named.values(named.PASSWORDS, text.whole, text.lowered)


def _secrets(text: Text) -> Iterator[Span]:
    return named.values(named.SECRETS, text.whole, text.lowered)


# --- the table ---------------------------------------------------------------------------------------------------

_WORD = "[A-Za-z0-9_-]"
_AWS_ID = r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z0-9]{16}(?![A-Za-z0-9])"
_AWS_SECRET = r"(?:(?<![A-Za-z0-9/+])|(?<=\\[bfnrt]))([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"
_NEAR = r"[\s\S]{0,160}?"
_GIVEN = r"""(?:\\*["'])?[ \t]{0,4}[:=][ \t]{0,4}(?:\\*["'])?"""
"""Between the name of a header or a field and its value."""
_AWS_IDS = ("AKIA", "ASIA", "ABIA", "ACCA")


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of credential.

    :name:     as the mark shows it
    :what:     what it is, for the documents
    :searches: how it is found
    """

    name: str
    what: str
    searches: tuple[Search, ...]

    def spans(self, text: Text) -> Iterator[Span]:
        """Where it stands."""
        for search in self.searches:
            yield from search(text)


KINDS: tuple[Kind, ...] = (
    Kind("private-key", "PEM, SSH and PGP private keys, whole or cut off", (_private_keys,)),
    Kind("aws-access-key", "AWS access key id", tokens(*_AWS_IDS, tail="[A-Z0-9]{16}" + _END)),
    Kind(
        "aws-secret-key",
        "AWS secret access key, by its name or beside an access key id",
        (
            following("secret", r"[_-]?(?:access)?[_-]?key" + _GIVEN + r"([A-Za-z0-9/+]{40})(?![A-Za-z0-9/+=])"),
            *(starting(one, f"[A-Z0-9]{{16}}{_END}(?={_NEAR}{_AWS_SECRET})", _is_aws_secret) for one in _AWS_IDS),
            having("akia", f"{_AWS_SECRET}(?={_NEAR}{_AWS_ID})", _is_aws_secret),
            having("asia", f"{_AWS_SECRET}(?={_NEAR}{_AWS_ID})", _is_aws_secret),
        ),
    ),
    Kind(
        "aws-signature",
        "signature or session token in a presigned URL of AWS",
        (
            following("x-amz-signature=", "([0-9a-f]{64})", one_word=True),
            following("x-amz-security-token=", "([A-Za-z0-9%/+=_-]{40,})", one_word=True),
        ),
    ),
    Kind(
        "github-token",
        "GitHub tokens: `ghp_`, `gho_`, `ghu_`, `ghs_`, `ghr_`, `github_pat_`",
        (
            *tokens("ghp_", "gho_", "ghu_", "ghs_", "ghr_", tail="[A-Za-z0-9]{30,}"),
            starting("github_pat_", "[A-Za-z0-9_]{30,}"),
        ),
    ),
    Kind(
        "gitlab-token",
        "GitLab tokens: `glpat-` and its like",
        tokens("glpat-", "gldt-", "glptt-", "glrt-", "glcbt-", "glft-", "gloas-", "glsoat-", tail=_WORD + "{20,}"),
    ),
    Kind("anthropic-key", "Anthropic API key", tokens("sk-ant-", tail=_WORD + "{20,}")),
    Kind(
        "openai-key",
        "OpenAI API key, and those of others that begin with `sk-`",
        (starting("sk-", f"(?!ant-){_WORD}{{20,}}", _is_random),),
    ),
    Kind("groq-key", "Groq API key", tokens("gsk_", tail="[A-Za-z0-9]{40,}")),
    Kind("xai-key", "xAI API key", tokens("xai-", tail="[A-Za-z0-9]{60,}")),
    Kind("perplexity-key", "Perplexity API key", tokens("pplx-", tail="[A-Za-z0-9]{40,}")),
    Kind("livememfs-token", "token of livememfs or Live Memory", tokens("lm_", tail=_WORD + "{32,}")),
    Kind("replicate-token", "Replicate API token", tokens("r8_", tail="[A-Za-z0-9]{30,}")),
    Kind("google-api-key", "Google API key, Firebase's included", tokens("AIza", tail=_WORD + "{35,}")),
    Kind(
        "google-oauth",
        "Google OAuth access token, refresh token or client secret",
        (*tokens("ya29.", "GOCSPX-", tail=_WORD + "{20,}"), starting("1//0", _WORD + "{30,}")),
    ),
    Kind("firebase-key", "Firebase messaging server key", tokens("AAAA", tail=_WORD + "{7}:" + _WORD + "{100,}")),
    Kind(
        "slack-token",
        "Slack tokens: `xoxb-` and its like, `xapp-`",
        (
            *tokens(
                "xoxa-",
                "xoxb-",
                "xoxe-",
                "xoxo-",
                "xoxp-",
                "xoxr-",
                "xoxs-",
                "xoxc-",
                "xoxd-",
                tail="[A-Za-z0-9%/+-]{10,}",
            ),
            starting("xoxe.xox", "[bp]-[A-Za-z0-9-]{10,}"),
            starting("xapp-", "[0-9]-[A-Z0-9]{6,}-[0-9]{6,}-[a-z0-9]{16,}"),
        ),
    ),
    Kind(
        "slack-webhook",
        "Slack webhook URL, behind the host",
        (following("hooks.slack.com/", r"(?:services|workflows|triggers)/([A-Za-z0-9_/+-]{20,})", one_word=True),),
    ),
    Kind(
        "stripe-key",
        "Stripe secret, restricted and webhook keys",
        (
            *tokens("sk_live_", "sk_test_", "rk_live_", "rk_test_", tail="[A-Za-z0-9]{10,}"),
            starting("whsec_", "[A-Za-z0-9+/=]{16,}"),
        ),
    ),
    Kind("square-token", "Square access token or secret", tokens("sq0atp-", "sq0csp-", tail=_WORD + "{20,}")),
    Kind(
        "shopify-token",
        "Shopify access token or secret",
        tokens("shpat_", "shpca_", "shppa_", "shpss_", tail="[0-9A-Fa-f]{32,}"),
    ),
    Kind("twilio-key", "Twilio API key", tokens("SK", tail="[0-9a-f]{32}" + _END)),
    Kind("sendgrid-key", "SendGrid API key", tokens("SG.", tail=_WORD + r"{16,64}\." + _WORD + "{16,}")),
    Kind("mailgun-key", "Mailgun API key", tokens("key-", tail="[0-9a-f]{32}" + _END)),
    Kind("mailchimp-key", "Mailchimp API key", (having("-us", EDGE + r"[0-9a-f]{32}-us[0-9]{1,2}"),)),
    Kind("npm-token", "npm access token", tokens("npm_", tail="[A-Za-z0-9]{30,}")),
    Kind("pypi-token", "PyPI upload token", tokens("pypi-Ag", tail=_WORD + "{40,}")),
    Kind("rubygems-key", "RubyGems API key", tokens("rubygems_", tail="[0-9a-f]{40,}")),
    Kind("huggingface-token", "Hugging Face token", tokens("hf_", "api_org_", tail="[A-Za-z0-9]{30,}")),
    Kind("digitalocean-token", "DigitalOcean token", tokens("dop_v1_", "doo_v1_", "dor_v1_", tail="[0-9a-f]{32,}")),
    Kind(
        "azure-storage-key",
        "key of an Azure storage account, service bus or the like",
        tuple(
            following(f"{one}accesskey=" if one else "accountkey=", "([A-Za-z0-9+/]{40,}={0,2})", one_word=True)
            for one in ("", "shared")
        ),
    ),
    Kind(
        "azure-sas",
        "signature in a shared access URL of Azure",
        (following("sig=", "([A-Za-z0-9%+/]{40,}={0,2})", one_word=True),),
    ),
    Kind("databricks-token", "Databricks token", tokens("dapi", tail="[0-9a-f]{32}(?:-[0-9])?" + _END)),
    Kind("vault-token", "HashiCorp Vault token", tokens("hvs.", "hvb.", "hvr.", tail=_WORD + "{20,}")),
    Kind(
        "terraform-token",
        "Terraform Cloud token",
        (having("atlasv1", EDGE + r"[A-Za-z0-9]{14}\.atlasv1\.[A-Za-z0-9_-]{40,}"),),
    ),
    Kind("pulumi-token", "Pulumi access token", tokens("pul-", tail="[0-9a-f]{40}" + _END)),
    Kind("docker-token", "Docker access token", tokens("dckr_pat_", "dckr_oat_", tail=_WORD + "{20,}")),
    Kind("tailscale-key", "Tailscale key", tokens("tskey-", tail="[a-z]{3,12}-[A-Za-z0-9]{8,}-[A-Za-z0-9]{16,}")),
    Kind("linear-key", "Linear API key", tokens("lin_api_", "lin_oauth_", tail="[A-Za-z0-9]{30,}")),
    Kind(
        "notion-token",
        "Notion token",
        (starting("ntn_", "[A-Za-z0-9]{40,}"), starting("secret_", "[A-Za-z0-9]{43}" + _END)),
    ),
    Kind("figma-token", "Figma token", tokens("figd_", tail=_WORD + "{30,}")),
    Kind("postman-key", "Postman API key", tokens("PMAK-", tail="[0-9a-f]{24}-[0-9a-f]{34}")),
    Kind("grafana-token", "Grafana service account token", tokens("glsa_", tail="[A-Za-z0-9]{32}_[0-9a-f]{8}")),
    Kind("newrelic-key", "New Relic user key", tokens("NRAK-", tail="[A-Z0-9]{27}" + _END)),
    Kind("atlassian-token", "Atlassian API token", tokens("ATATT3", tail="[A-Za-z0-9_=-]{60,}")),
    Kind(
        "supabase-key",
        "Supabase secret key or access token",
        (starting("sbp_", "[0-9a-f]{40}"), starting("sb_secret_", _WORD + "{20,}")),
    ),
    Kind(
        "sentry-key",
        "Sentry token, and the key in a DSN",
        (
            *tokens("sntrys_", "sntryu_", tail="[A-Za-z0-9_+/=-]{40,}"),
            having("sentry", r"(?<=://)([0-9a-f]{32}(?::[0-9a-f]{32})?)@[A-Za-z0-9.-]{0,100}sentry\."),
        ),
    ),
    Kind(
        "telegram-token",
        "token of a Telegram bot",
        (having(":aa", EDGE + r"[0-9]{8,10}:AA[A-Za-z0-9_-]{32,33}(?![A-Za-z0-9_-])"),),
    ),
    Kind(
        "discord-token",
        "token of a Discord bot",
        (
            having(
                ".",
                r"[MNO](?:(?<![A-Za-z0-9_-].)|(?<=\\[bfnrt].))[A-Za-z0-9_-]{22,27}\.[A-Za-z0-9_-]{6}\.[A-Za-z0-9_-]{27,64}",
                _is_bot,
            ),
        ),
    ),
    Kind(
        "discord-webhook",
        "Discord webhook URL, behind the host",
        (following("/api/webhooks/", rf"([0-9]{{10,24}}/{_WORD}{{20,}})", one_word=True),),
    ),
    Kind("age-key", "age secret key", tokens("AGE-SECRET-KEY-1", tail="[A-Z0-9]{40,}")),
    Kind(
        "jwt",
        "JSON web token, signed or not",
        tuple(
            starting(head, r"[A-Za-z0-9_-]{8,}+(?:\.[A-Za-z0-9_-]*+){2,4}", _is_jwt, edge=OWN_EDGE)
            for head in ("eyJ", "eyA", "ewo")
        ),
    ),
    Kind(
        "url-password",
        "password in a URL; the user and the host stay",
        (following("://", r"""[^\s/?#:@"'<>]{0,200}:([^\s/?"'<>]{1,400})@(?=[\w\[.%$-])""", named.is_given),),
    ),
    Kind(
        "authorization-header",
        "what an `Authorization` header says, and what follows `Bearer`",
        (
            following(
                "authorization",
                _GIVEN + r"""(?:bearer|basic|token|digest)[ \t]{1,4}([^\s"'`,;\\]{6,})""",
                named.is_given,
            ),
            following("authorization", _GIVEN + r"""(?:[A-Za-z-]{2,20}[ \t]{1,4})?([^\s"'`,;\\]{16,})""", _is_random),
            following("bearer", r"[ \t]{1,4}([A-Za-z0-9._~+/=-]{20,})", named.has_digit),
        ),
    ),
    Kind(
        "api-key-header",
        "headers such as `X-Api-Key` and `X-Auth-Token`",
        tuple(
            following(header, _GIVEN + r"""([^\s"'`,;\\]{6,})""", named.is_given) for header in ("api-key", "-token")
        ),
    ),
    Kind(
        "connection-string",
        "password in a connection string such as `Server=...;Password=...;`",
        (following(";", r"""[ \t]{0,2}(?:password|pwd)[ \t]{0,2}=[ \t]{0,2}([^;"'\r\n]{3,})""", named.is_given),),
    ),
    Kind("password", "the value of a field called `password`, `PGPASSWORD`, `passphrase`, ...", (_passwords,)),
    Kind("named-secret", "the value of a field called `secret`, `token`, `api_key`, ...", (_secrets,)),
)
"""What is known first counts where two of them meet."""


def spans(text: str) -> list[tuple[int, int, str]]:
    """Beginning, end and kind of each credential in a text, in its order; none touches another's inside."""
    looked_at = Text(text)
    found = [(*span, rank) for rank, kind in enumerate(KINDS) for span in kind.spans(looked_at)]
    merged: list[tuple[int, int, int]] = []
    for start, end, rank in sorted(found):
        if merged and start < merged[-1][1]:
            before = merged[-1]
            merged[-1] = before[0], max(before[1], end), min(before[2], rank)
        else:
            merged.append((start, end, rank))
    return [(start, end, KINDS[rank].name) for start, end, rank in merged]
