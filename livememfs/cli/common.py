"""What every command shares: the options that choose a store and settings, and the way into trio.

Owns `Choice`, the command line's part of the settings; `command`, the decorator that gives a command its common
options; and that a missing space is named as one. Refuses to know any command. Main thread only.
"""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_args

import typer

from livememfs.cli import listing, output
from livememfs.environment import environment
from livememfs.errors import NotFound, UsageError

if TYPE_CHECKING:
    from livememfs.app import App
    from livememfs.cli.mounting.found import FoundStore
    from livememfs.config import Settings

T = TypeVar("T")

option = functools.partial(typer.Option, show_default=False)
argument = functools.partial(typer.Argument, show_default=False)
"""An option and an argument whose default the help does not show, or whose text says it."""
JsonFlag = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option("--allow-host", metavar="NAME", help="A host name that clients use; repeat for more."),
]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The options for store and settings; None for an option that was not given."""

    bucket: Annotated[str | None, option(metavar="NAME", help="S3 bucket to use.")] = None
    endpoint_url: Annotated[str | None, option(metavar="URL", help="S3 endpoint of that bucket.")] = None
    store: Annotated[Path | None, option(metavar="DIR", help="Folder to use instead of a bucket.")] = None
    config: Annotated[Path | None, option(metavar="FILE", help="Configuration file to read.")] = None
    log_level: Annotated[str | None, option(metavar="LEVEL", help="debug, info, warning or error.")] = None

    def over(self, before: Choice) -> Choice:
        """These options, and those of `before` where none was given here."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        if self.store is not None or self.bucket is not None:  # the nearer store replaces the other, of either kind
            before = replace(before, store=None, bucket=None)
        return replace(before, **{name: value for name, value in given.items() if value is not None})

    def overrides(self) -> dict[str, Any]:
        """The settings these options set. UsageError for two stores."""
        if self.store is not None and self.bucket is not None:
            raise UsageError("--store and --bucket exclude each other: name one store")
        values: dict[str, Any] = {
            "s3_bucket_name": self.bucket,
            "s3_endpoint_url": self.endpoint_url,
            "log_level": self.log_level,
        }
        if self.store is not None:
            values |= {"store": str(expanded(self.store).absolute()), "s3_bucket_name": ""}
        return {name: value for name, value in values.items() if value is not None}

    def load(self, **more: Any) -> Settings:
        """The settings in force; `more` are further settings from the command line. Raises SettingsError."""
        from livememfs.config import Settings  # loads slowly, and a command that is only asked for help needs none

        return Settings.load(environment(), overrides=self.overrides() | more, config_file=self.config)

    def found(self, **more: Any) -> FoundStore:
        """The settings for a command on the store, which is that of a running mount if nothing names one."""
        from livememfs.cli.mounting.found import found

        return found(self.load(**more), environment(), self.overrides() | more, self.config)

    def at_store(self, **more: Any) -> Settings:
        """The same settings alone. Says so if they are those of a store that nothing named."""
        store = self.found(**more)
        if store.said:
            output.note(f"livememfs: {store.said}")
        return store.settings

    def on_store(self) -> Settings:
        """The same for a command that ends by itself."""
        settings = self.at_store()
        quiet_log(settings)
        return settings

    def quiet(self, **more: Any) -> Settings:
        """The same for a command that ends by itself: it logs warnings and errors, unless a level was set."""
        settings = self.load(**more)
        quiet_log(settings)
        return settings

    def arguments(self, settings: Settings) -> list[str]:
        """The same choice as options for another process, with absolute paths: its working directory may differ."""
        words: list[str] = []
        if self.config is not None:
            words += ["--config", str(self.config.absolute())]
        if settings.s3_bucket_name:
            words += ["--bucket", settings.s3_bucket_name]
        else:
            words += ["--store", str(settings.store_path.absolute())]
        if self.endpoint_url is not None:
            words += ["--endpoint-url", self.endpoint_url]
        return [*words, "--log-level", settings.log_level]


_before = Choice()
"""The options before the command's name."""


def before_commands(function: Callable[..., None]) -> Callable[..., None]:
    """Give the group of all commands the options of `Choice`. They count where a command gets none of its own."""

    def take(choice: Choice, **given: Any) -> None:
        global _before
        _before = choice
        function(choice, **given)

    return _with_options(functools.wraps(function)(take), hidden=False)


def command(function: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of `Choice`, which it receives as its first argument.

    Its help does not repeat them. Every other parameter that is a dataclass becomes one option per field, too.
    """

    def take(choice: Choice, **given: Any) -> None:
        try:
            function(choice.over(_before), **given)
        except KeyboardInterrupt:
            raise typer.Exit(130) from None

    return _with_options(functools.wraps(function)(take), hidden=True)


def _with_options(function: Callable[..., None], *, hidden: bool) -> Callable[..., None]:
    """A function for typer, which builds options from the signature: so they are added to the signature. The
    alternative is the same five parameters in every command.
    """
    first, *others = inspect.signature(function, eval_str=True).parameters.values()
    annotated = {own.name: own.annotation for own in (first, *others)}
    groups = {name: kind for name, kind in annotated.items() if isinstance(kind, type) and is_dataclass(kind)}
    parameters = [
        parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
        for own in (*others, first)
        for parameter in (_options(groups[own.name], hidden and own is first) if own.name in groups else [own])
    ]

    @functools.wraps(function)
    def run_command(**given: Any) -> None:
        for name, kind in groups.items():
            given[name] = kind(**{field.name: given.pop(field.name) for field in fields(kind)})
        function(given.pop(first.name), **given)

    run_command.__doc__ = listing.laid_out(function.__doc__)
    run_command.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]  # `inspect` looks for it
    run_command.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return run_command


def _options(kind: type[Any], hidden: bool) -> list[inspect.Parameter]:
    """The options of a dataclass, one for each of its fields."""
    options = list(inspect.signature(kind, eval_str=True).parameters.values())
    return [option.replace(annotation=_hidden(option.annotation)) for option in options] if hidden else options


def _hidden(annotation: Any) -> Any:
    """The same option, left out of the help."""
    plain, given = get_args(annotation)
    hidden = copy.copy(given)
    hidden.hidden = True
    return Annotated[plain, hidden]


def expanded(path: Path) -> Path:
    """A path with its `~` replaced. UsageError for the home of an unknown user."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise UsageError(f"{path} begins with the home directory of an unknown user") from None


def quiet_log(settings: Settings) -> None:
    """Logging of a command that ends by itself: warnings and errors, unless a level was set."""
    from livememfs import log  # loads slowly

    level = settings.log_level if "log_level" in settings.model_fields_set else "warning"
    log.configure(level, json=settings.log_json)


def run(function: Callable[..., Awaitable[T]], *arguments: Any) -> T:
    """Run one async function to its end. A failure is raised as itself, not inside the group of a nursery."""
    import trio  # loads slowly, and commands on mounts do not need it

    from livememfs.concurrency import the_one

    try:
        return trio.run(function, *arguments)
    except BaseExceptionGroup as group:
        raise the_one(group) from None


def on_store(settings: Settings, work: Callable[[App], Awaitable[T]], space: str = "") -> T:
    """Run `work` on the store; `space` is the one that it needs, if it needs one."""
    from livememfs.app import open_app  # loads slowly, and commands on mounts do not need it

    async def opened() -> T:
        async with open_app(settings) as app:
            return await work(app)

    with naming_the_space(space), output.patience(f"at work on {f'space {space}' if space else 'the store'}"):
        return run(opened)


@contextmanager
def naming_the_space(space: str) -> Iterator[None]:
    """Say in NotFound that a space is missing: a bare name could also be a file or a bucket."""
    try:
        yield
    except NotFound as error:
        if error.values.get("path") != space:
            raise
        raise NotFound(path=f"space {space}; `livememfs space list` lists the spaces") from None
