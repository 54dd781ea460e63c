"""Settings: read once when a command starts, frozen, and passed down.

Owns the name and default of every setting, and the precedence: command line, environment, config file, default. Callers
pass the environment in as a mapping (`livememfs/environment.py` reads it), so that tests bring their own. Refuses
unknown `LIVEMEMFS_*` variables and unknown keys of the file, with a suggestion. May be called from any thread.
"""

from __future__ import annotations

import difflib
import shlex
import socket
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

import platformdirs
from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, field_validator, model_validator

from livememfs.environment import PREFIX, SPECIFIED, default_store, file_of
from livememfs.errors import SettingsError
from livememfs.records.schedule import DigestSchedule, Schedule
from livememfs.text.own import ASKING

EXAMPLE_KEY = "change_me_in_production"
LONGEST_KEY = 512

STANDARD = {
    "AWS_ACCESS_KEY_ID": "s3_access_key_id",
    "AWS_SECRET_ACCESS_KEY": "s3_secret_access_key",
    "AWS_SESSION_TOKEN": "s3_session_token",
    "AWS_REGION": "s3_region_name",
    "AWS_DEFAULT_REGION": "s3_region_name",
    "AWS_ENDPOINT_URL_S3": "s3_endpoint_url",
    "AWS_ENDPOINT_URL": "s3_endpoint_url",
    "OPENAI_API_KEY": "llmaas_api_key",
    "OPENAI_BASE_URL": "llmaas_api_url",
    "LLMAAS_CONTEXT_WINDOW": "context_window",
}
"""Variables that other tools use too (the last one: Live Memory). They count only where no variable of ours and no file
sets the value.
"""


def _digests(value: object) -> DigestSchedule:
    """The schedule of digests. ValueError; an unknown time zone is one too, if a space is digested."""
    schedule = DigestSchedule.parse(value)
    if schedule.spaces:
        _zone(schedule.zone)
    return schedule


def _zone(name: str) -> ZoneInfo:
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        raise ValueError(f"this machine knows no time zone {name!a}") from None


def _url(value: str) -> str:
    """A URL or nothing. ValueError now: at the first request, no person would read the error."""
    try:
        parts = urlsplit(value)
        is_whole = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number, a bracket that is not closed
        is_whole = False
    if value and (not is_whole or not value.isprintable() or " " in value):
        # A password may be in it, and a bad URL cannot be cut safely.
        shown = repr(value) if "@" not in value else "this"
        raise ValueError(f"{shown} is not an http:// or https:// URL")
    return value


def is_absolute(path: str) -> bool:
    """Whether a path means the same from every directory."""
    return path.startswith(("/", "~/"))


class Settings(BaseModel):
    """Everything that can be set, validated and frozen. Sizes are bytes, times are seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    s3_endpoint_url: str = Field("", description="S3 endpoint; empty means Amazon's")
    s3_access_key_id: str = Field("", description="access key; empty: the AWS SDK looks for credentials")
    s3_secret_access_key: str = Field("", repr=False, description="secret key")
    s3_session_token: str = Field("", repr=False, description="session token of temporary credentials")
    s3_bucket_name: str = Field("", description="bucket; empty means the folder of LIVEMEMFS_STORE")
    s3_region_name: str = Field("us-east-1", description="region used in signatures")
    s3_signature_mode: Literal["sigv4", "dual"] = Field("sigv4", description="dual: SigV2 for data calls (Dell ECS)")
    s3_path_style: bool = Field(True, description="bucket in the path instead of the host name")

    llmaas_api_url: str = Field("", description="base URL of a chat completions endpoint; empty means built-in filing")
    llmaas_api_key: str = Field("", repr=False, description="key of that endpoint")
    llmaas_command: str = Field(
        "", description="program asked instead of an endpoint; see [below](#a-model-by-a-program-you-are-signed-in-to)"
    )
    llmaas_model: str = Field("", description="model name sent to that endpoint or program")
    llmaas_max_tokens: int = Field(100_000, gt=0, description="most tokens of a reply")
    llmaas_temperature: float = Field(0.3, ge=0, le=2, description="sampling temperature")
    context_window: int = Field(100_000, gt=0, description="tokens of the model's context window, the reply included")
    unsourced: Literal["list", "refuse"] = Field(
        "list",
        description="refuse: refuse replies with a date, version, reference or path without a source; list: list them",
    )
    drop_limit: float = Field(
        0.3, ge=0, le=1, description="part of a bank's lines that a run may drop; a plan that drops more is held"
    )
    consolidation_timeout: float = Field(600.0, gt=0, description="seconds one model call may take")
    consolidation_max_notes: int = Field(
        500, gt=0, description="most notes of one consolidation; the oldest come first"
    )

    embed_model: str = Field(
        "builtin",
        description="model for search by meaning; none: search by words only; an absolute path: a folder with a model,"
        " see [recall.md](recall.md#a-model-of-your-own); another name: a model at embed_url",
    )
    embed_url: str = Field("", description="base URL of an embeddings endpoint, for a model that is not built in")
    embed_key: str = Field("", repr=False, description="key of that endpoint")
    share_vectors: bool = Field(
        True, description="store vectors in the bucket, so that other machines need not compute them"
    )
    memory_alike: float = Field(
        0.85,
        ge=0,
        le=1,
        description="least likelihood of the same fact for a new memory to replace an older one; 1: never",
    )
    recall_recent_hours: float = Field(
        6.0, ge=0, le=1e6, description="hours for which a new memory is told for any message"
    )
    recall_important: float = Field(
        0.8, ge=0, le=1, description="importance from which a memory is told for any message"
    )
    recall_channel_scope: bool = Field(False, description="tell new memories only in the channel that they come from")
    recall_pinned: int = Field(10, ge=0, description="most memories of each kind told for any message")
    recall_relevant: int = Field(20, ge=0, description="most memories considered for a message")
    recall_live: int = Field(10, ge=0, description="most notes considered for a message")
    recall_alike: float = Field(
        0.85, ge=0, le=1, description="likeness above which two memories count as the same, and only one is told"
    )
    recall_buffer: int = Field(100, ge=0, description="memories told last that a new one is compared with")
    recall_most: int = Field(20, ge=0, description="most memories and notes told in one turn")
    recall_window: int = Field(20, ge=1, description="turns after which a session may be told the same again")
    recall_budget: int = Field(1_000, ge=0, description="most tokens told in one turn, estimated")
    file_memory: bool = Field(
        True, description="before an agent reads or edits a file, tell it the observations of that file"
    )
    index_url: str = Field(
        "", repr=False, description="PostgreSQL database of a team's search index; empty means one on this machine"
    )

    schedule: Annotated[Schedule, PlainValidator(Schedule.parse)] = Field(
        Schedule(), description="which spaces a mount consolidates by itself; see [below](#by-itself)"
    )

    digest_schedule: Annotated[DigestSchedule, PlainValidator(_digests)] = Field(
        DigestSchedule(), description="which spaces a mount digests by itself; see [below](#digests)"
    )

    observe_model: str = Field(
        "", description="model that observes agents; empty: LLMAAS_MODEL; builtin: without a model; none: no observing"
    )
    observe_budget: int = Field(300_000, ge=0, description="most model tokens for observing in one UTC day")
    observe_batch: int = Field(16, ge=1, le=64, description="most events of an agent in one call of the model")
    observe_idle: float = Field(
        30.0, ge=0, description="seconds without an event after which a half-full batch is observed"
    )
    observe_timeout: float = Field(60.0, gt=0, description="seconds one call of the observer may take")
    observe_skip_tools: str = Field(
        "TodoWrite,TodoRead,TaskCreate,TaskUpdate,TaskGet,TaskList,Skill,SlashCommand,AskUserQuestion,ToolSearch,"
        "ListMcpResourcesTool,ExitPlanMode,EnterPlanMode,update_plan",
        description="tools that are not observed, separated by commas",
    )
    context_budget: int = Field(2_000, ge=200, description="most tokens of context.md, estimated")
    search_recent_days: int = Field(
        0, ge=0, le=36_500, description="days back that a search without dates covers; 0: no limit"
    )

    store: str = Field("", description="folder used as the bucket when no S3 bucket is set")
    token: str = Field("", repr=False, description="token that limits a mount or an MCP server")
    admin_bootstrap_key: str = Field(
        "", repr=False, description="a token with all rights for clients over HTTP, to make the first token with"
    )
    agent: str = Field("", description="agent name for notes whose writer is unknown")
    host: str = Field("", description="this machine's name in conflict copies")
    op_timeout: float = Field(30.0, gt=0, description="longest time one file operation may take")
    listing_ttl: float = Field(1.0, ge=0, description="seconds for which a directory listing is taken as current")
    cache: str = Field("", description="folder for the local state of mounts; empty means the user's cache folder")
    cache_size: int = Field(10 << 30, ge=1 << 20, description="bytes of contents kept on the local disk")
    cache_memory: int = Field(1 << 25, ge=0, description="bytes of contents kept in memory")
    fsync: Literal["local", "remote"] = Field("local", description="remote: fsync waits until the bucket has the file")
    poll_interval: float = Field(
        2.0, gt=0, description="seconds between checks for changes of other hosts that are at work in a space in use"
    )
    max_file_size: int = Field(5 << 30, gt=0, le=5 << 30, description="largest ordinary file; S3 copies no larger one")
    drain_timeout: float = Field(60.0, ge=0, description="longest time unmounting waits for uploads")
    allow_other: bool = Field(False, description="let other users of the machine use the mount")
    uid: int | None = Field(None, ge=0, description="number of the user to whom everything in the mount belongs")
    gid: int | None = Field(None, ge=0, description="number of the group to which everything in the mount belongs")
    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="least severe event logged")
    log_json: bool = Field(False, description="log JSON lines instead of text")

    @field_validator("store", "cache")
    @classmethod
    def _is_a_folder_that_can_be(cls, value: str) -> str:
        try:
            Path(value).expanduser()
        except RuntimeError:
            raise ValueError(f"{value!a} begins with the home directory of an unknown user") from None
        return value

    @field_validator("s3_endpoint_url", "llmaas_api_url")
    @classmethod
    def _is_a_url(cls, value: str) -> str:
        return _url(value).rstrip("/")

    @field_validator("llmaas_command")
    @classmethod
    def _is_a_command(cls, value: str) -> str:
        try:
            words = shlex.split(value)
        except ValueError as error:
            raise ValueError(f"{value!a} cannot be split into words as a shell does: {error}") from None
        if words and "/" in words[0] and not is_absolute(words[0]):
            raise ValueError(f"{words[0]!a} is neither on PATH nor an absolute path")
        return value.strip()

    @field_validator("admin_bootstrap_key")
    @classmethod
    def _is_a_secret(cls, value: str) -> str:
        # Whoever reads the documentation of Live Memory knows this one.
        if value == EXAMPLE_KEY:
            raise ValueError("this is the example of the documentation: set a long random text")
        if len(value) > LONGEST_KEY or not value.isascii() or not value.isprintable() or " " in value:
            raise ValueError(f"a key has up to {LONGEST_KEY} ASCII characters and no blanks")
        return value

    @field_validator("embed_url")
    @classmethod
    def _is_a_url_as_it_stands(cls, value: str) -> str:
        # Vectors are stored under this text: with another spelling all of them would be computed again.
        return _url(value)

    @field_validator("index_url")
    @classmethod
    def _is_a_database(cls, value: str) -> str:
        # The message leaves the value out: it may contain a password.
        if value and urlsplit(value).scheme not in ("postgresql", "postgres"):
            raise ValueError("the index is a PostgreSQL database: postgresql://user:password@host/database")
        return value

    @model_validator(mode="after")
    def _endpoint_has_a_model(self) -> Self:
        if self.llmaas_api_url and self.llmaas_command:
            raise ValueError("LLMAAS_API_URL and LLMAAS_COMMAND are both set: set only one of them")
        if self.llmaas_api_url and not self.llmaas_model:
            raise ValueError("LLMAAS_API_URL is set and LLMAAS_MODEL is not: name the model to use")
        return self

    @model_validator(mode="after")
    def _model_of_an_endpoint_has_one(self) -> Self:
        if self.embed_model not in ("builtin", "none") and not self.embed_url and self.embed_folder is None:
            raise ValueError(
                f"LIVEMEMFS_EMBED_MODEL is {self.embed_model!a}, which is neither built in nor an absolute path,"
                " and LIVEMEMFS_EMBED_URL is not set: name its endpoint, or its folder from / on"
            )
        return self

    @property
    def embed_folder(self) -> Path | None:
        """The folder of the embedding model, where it is one in a folder."""
        return Path(self.embed_model).expanduser() if is_absolute(self.embed_model) else None

    @property
    def model_name(self) -> str:
        """The model that consolidates, as people are shown it."""
        program = f"command:{Path(shlex.split(self.llmaas_command)[0]).name}" if self.llmaas_command else ""
        return self.llmaas_model or program or "built-in filing"

    @property
    def store_path(self) -> Path:
        """The folder used as the bucket when no S3 bucket is set."""
        return Path(self.store).expanduser() if self.store else default_store()

    @property
    def cache_path(self) -> Path:
        """The folder in which each bucket has a folder for its local state."""
        return Path(self.cache).expanduser() if self.cache else platformdirs.user_cache_path("livememfs") / "buckets"

    @property
    def host_name(self) -> str:
        """This machine's name, usable in a file name."""
        return self.host or socket.gethostname().split(".")[0] or "localhost"

    @property
    def digest_zone(self) -> ZoneInfo:
        """The time zone for the hours of digests. ValueError when this machine does not know it."""
        return _zone(self.digest_schedule.zone)

    @classmethod
    def load(
        cls,
        environ: Mapping[str, str],
        *,
        overrides: Mapping[str, Any] | None = None,
        config_file: Path | None = None,
    ) -> Settings:
        """Settings from all sources. `overrides` come from the command line; None in them means: not given.

        Raises SettingsError with one sentence: the mistake, and often what was meant.
        """
        path, is_named = file_of(environ, config_file)
        values = {
            **_from_file(path, must_exist=is_named),
            **_from_environment(environ),
            **{name: value for name, value in (overrides or {}).items() if value is not None},
        }
        standard = _from_standard(environ)
        if values.get("llmaas_command"):  # a variable of another tool must not contradict our own
            standard.pop("llmaas_api_url", None)
        values = {**standard, **values}
        try:
            return cls(**values)
        except ValidationError as error:
            raise SettingsError(_first_fault(error)) from None


def secret_settings() -> frozenset[str]:
    """The settings whose values are never shown."""
    return frozenset(name for name, field in Settings.model_fields.items() if field.repr is False)


def setting_names() -> dict[str, str]:
    """Every setting with the environment variable that sets it."""
    upper = {name: name.upper() for name in Settings.model_fields}
    return {name: variable if variable in SPECIFIED else PREFIX + variable for name, variable in upper.items()}


def _from_standard(environ: Mapping[str, str]) -> dict[str, str]:
    """Names of other tools. An OpenAI key alone names no model, so it sets an endpoint only beside LLMAAS_MODEL."""
    values: dict[str, str] = {}
    for variable, setting in STANDARD.items():
        if environ.get(variable):
            values.setdefault(setting, environ[variable])
    if not environ.get("LLMAAS_MODEL"):
        values.pop("llmaas_api_url", None)
    elif values.get("llmaas_api_key") and "llmaas_api_url" not in values:
        values["llmaas_api_url"] = "https://api.openai.com/v1"
    return values


def _from_environment(environ: Mapping[str, str]) -> dict[str, str]:
    values = {name.lower(): value for name, value in environ.items() if name in SPECIFIED and value != ""}
    known = {name for name in Settings.model_fields if name.upper() not in SPECIFIED}
    for variable, value in environ.items():
        if not variable.startswith(PREFIX) or variable in ("LIVEMEMFS_CONFIG", ASKING):
            continue
        if variable.startswith("LIVEMEMFS_TEST_"):  # those are for the tests
            continue
        name = variable.removeprefix(PREFIX).lower()
        if name not in known:
            raise SettingsError(f"there is no setting {variable}{_suggestion(variable, setting_names().values())}")
        if value != "":
            values[name] = value
    return values


def _from_file(path: Path, *, must_exist: bool) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            values = tomllib.load(file)
    except OSError as error:
        if must_exist or not isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError):
            raise SettingsError(f"cannot read {path}: {error.strerror}") from None
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None
    for name in values:
        if name not in Settings.model_fields:
            raise SettingsError(f"{path} has an unknown key {name}{_suggestion(name, Settings.model_fields)}")
    return values


def _suggestion(name: str, known: Any) -> str:
    # Without the common prefix: with it, any two names would look alike.
    bare = {str(setting).removeprefix(PREFIX): str(setting) for setting in known}
    close = difflib.get_close_matches(name.removeprefix(PREFIX), list(bare), n=1, cutoff=0.6)
    return f"; did you mean {bare[close[0]]}?" if close else "; docs/operations.md lists the settings"


def _first_fault(error: ValidationError) -> str:
    """The first fault of pydantic's report in one sentence, with the setting's name as the user writes it."""
    fault = error.errors()[0]
    name = str(fault["loc"][0]) if fault["loc"] else ""
    reason = in_words(fault, secret=name in secret_settings())
    return f"{setting_names().get(name, name)}: {reason}" if name else reason


_WORDS = {
    "literal_error": "is none of {expected}",
    "greater_than": "is not more than {gt}",
    "greater_than_equal": "is less than {ge}",
    "less_than": "is not less than {lt}",
    "less_than_equal": "is more than {le}",
    **dict.fromkeys(("int_parsing", "int_type", "int_from_float"), "is no whole number"),
    **dict.fromkeys(("float_parsing", "float_type", "finite_number"), "is no number"),
    **dict.fromkeys(("bool_parsing", "bool_type"), "is neither true nor false"),
    "string_type": "is no text in quotes",
}
"""What is wrong with a value, by the name that pydantic has for it."""


def in_words(fault: Mapping[str, Any], *, secret: bool = False) -> str:
    """One fault of pydantic's report as a person would say it. `secret`: without the value."""
    kind = str(fault["type"])
    if kind not in _WORDS:
        return str(fault["msg"]).removeprefix("Value error, ")
    bounds = dict(fault.get("ctx") or {})
    whole = {name: int(bound) for name, bound in bounds.items() if isinstance(bound, float) and bound.is_integer()}
    said = _WORDS[kind].format_map(bounds | whole)
    return f"{'this' if secret else ascii(fault['input'])} {said}"
