"""The questions of `livememfs init`: where the memory is kept, and which model works on it.

Owns what is asked. Whoever cannot be asked has answered what the settings say. Refuses to show a secret. Main thread
only.
"""

from __future__ import annotations

import getpass
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from livememfs.cli import output
from livememfs.cli.common import expanded
from livememfs.config import Settings, in_words
from livememfs.errors import InvalidName, SettingsError, UsageError

STORE = (
    "store", "s3_bucket_name", "s3_endpoint_url", "s3_region_name", "s3_access_key_id", "s3_secret_access_key",
)  # fmt: skip
MODEL = ("llmaas_api_url", "llmaas_model", "llmaas_api_key", "llmaas_command")


@dataclass(frozen=True)
class Asker:
    """Who answers: the person at the terminal, or nobody."""

    asks: bool

    def ask(
        self, question: str, default: str = "", *, choices: Sequence[str] = (), check: Callable[[str], str] = str
    ) -> str:
        """A line, or the default for an empty one. Asks again until it is one of `choices`, if there are some, and
        `check` takes it, which raises InvalidName or SettingsError otherwise.

        UsageError when the input ends.
        """
        while self.asks:
            output.note(f"{question} [{default}]" if default else question)
            line = sys.stdin.readline()
            if not line:
                raise UsageError("the answers ended before the questions; nothing was changed")
            answer = line.strip() or default
            if choices and answer not in choices:
                output.note(f"{answer} is none of {', '.join(choices)}")
                continue
            try:
                return check(answer)
            except (InvalidName, SettingsError) as error:
                output.note(str(error))
        return default

    def secret(self, question: str, default: str) -> str:
        """The same without an echo; the default is not shown."""
        if not self.asks:
            return default
        return getpass.getpass(f"{question}{' [as it is]' if default else ''} ").strip() or default


def setting(name: str, *, needed: bool = True, **others: str) -> Callable[[str], str]:
    """A check of an answer: the setting takes it, beside these others, and it is not empty if it is `needed`."""

    def check(answer: str) -> str:
        if needed and not answer:
            raise SettingsError("it cannot be empty")
        try:
            Settings.model_validate({name: answer, **others})
        except ValidationError as error:
            raise SettingsError(in_words(error.errors()[0])) from None
        return answer

    return check


def store(settings: Settings, asker: Asker, *, named: bool) -> dict[str, str]:
    """The settings of the store; an empty text where one is not to be set. `named`: options say which store."""
    bucket = settings.s3_bucket_name
    if not named:
        where = "Keep the memory in a folder of this machine, or in an S3 bucket? (folder, bucket)"
        kind = asker.ask(where, "bucket" if bucket else "folder", choices=("folder", "bucket"))
        bucket = asker.ask("Name of the bucket?", bucket, check=setting("s3_bucket_name")) if kind == "bucket" else ""
    if not bucket:
        folder = str(settings.store_path) if named else asker.ask("Which folder?", str(settings.store_path))
        return dict.fromkeys(STORE, "") | {"store": str(expanded(Path(folder)).absolute())}
    values = {"s3_bucket_name": bucket, "store": ""}
    is_url = setting("s3_endpoint_url", needed=False)
    values["s3_endpoint_url"] = asker.ask(
        "Its endpoint, a URL? (empty: Amazon)", settings.s3_endpoint_url, check=is_url
    )
    values["s3_region_name"] = asker.ask("Its region?", settings.s3_region_name)
    is_passing = bool(settings.s3_session_token)  # such keys are void in some hours
    key = asker.ask("Access key? (empty: as the AWS tools find it)", "" if is_passing else settings.s3_access_key_id)
    values["s3_access_key_id"] = key
    secret = settings.s3_secret_access_key if key else ""
    values["s3_secret_access_key"] = asker.secret("Secret key?", secret) if key else ""
    return values


def model(settings: Settings, asker: Asker) -> dict[str, str]:
    """The settings of the model; an empty text where one is not to be set."""
    known = "endpoint" if settings.llmaas_api_url else "program" if settings.llmaas_command else "none"
    kinds = "(endpoint: OpenAI-compatible; program: such as `claude -p`; none: notes are filed as they are)"
    kind = asker.ask(f"Which model consolidates? {kinds}", known, choices=("endpoint", "program", "none"))
    values = dict.fromkeys(MODEL, "")
    if kind == "program":
        before = settings.llmaas_command or "claude -p"
        values["llmaas_command"] = asker.ask("Its command?", before, check=setting("llmaas_command"))
        values["llmaas_model"] = settings.llmaas_model if known == "program" else ""
    elif kind == "endpoint":
        is_url = setting("llmaas_api_url", llmaas_model="any")
        values["llmaas_api_url"] = asker.ask("URL of the endpoint?", settings.llmaas_api_url, check=is_url)
        values["llmaas_model"] = asker.ask("Name of the model?", settings.llmaas_model, check=setting("llmaas_model"))
        values["llmaas_api_key"] = asker.secret("Key of the endpoint?", settings.llmaas_api_key)
    return values
