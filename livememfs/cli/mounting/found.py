"""Which store a command uses where nothing names one: that of a running mount or mirror, else the user's own folder.

Owns the choice, and the sentence about it: else a new shell, without the variables of the one that mounted, would be
shown another memory, and "all is well". Refuses to take a secret from anywhere but the settings. Main thread only.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from livememfs.cli.mounting import mirrors, mounts
from livememfs.config import Settings

NAMES_ONE = ("s3_bucket_name", "store")


@dataclass(frozen=True)
class FoundStore:
    """The settings in force, and what is to be said.

    :said:  a sentence; empty where the settings name the store, or nothing else is mounted or mirrored
    :other: whether another store is mounted or mirrored than the one that is used
    :taken: the settings that a running mount or mirror gave
    """

    settings: Settings
    said: str = ""
    other: bool = False
    taken: frozenset[str] = frozenset()


def found(
    settings: Settings, environ: Mapping[str, str], overrides: Mapping[str, Any], file: Path | None
) -> FoundStore:
    """The store for a command. The last three are what `settings` were made of. Raises SettingsError."""
    if any(getattr(settings, name) for name in NAMES_ONE):
        return FoundStore(settings)
    own = f"folder {settings.store_path}"
    running = [record for record in (*mounts.records(), *mirrors.records()) if record.is_alive]
    others = {record.store: record for record in running if record.store != own}
    if not others:
        return FoundStore(settings)
    mounted = " and ".join(f"{store} is {record.HOW} {record.mountpoint}" for store, record in others.items())
    known = next(iter(others.values()))
    if len(others) > 1 or (len(running) > 1 and any(record.store == own for record in running)):
        return _not_used(settings, own, mounted, "--bucket or --store names another store")
    if not known.place:
        return _not_used(settings, own, mounted, "a token limits that mount; work in its files")
    place = {name: value for name, value in known.place.items() if name in Settings.model_fields}
    taken = Settings.load(environ, overrides=place | dict(overrides), config_file=file)
    if known.place.get("keys") and not taken.s3_access_key_id:
        return _not_used(settings, own, mounted, "S3_ACCESS_KEY_ID and S3_SECRET_ACCESS_KEY are not set here")
    return FoundStore(
        taken, f"using {known.store}, which is {known.HOW} {known.mountpoint}", taken=frozenset(place) - set(overrides)
    )


def _not_used(settings: Settings, own: str, mounted: str, why: str) -> FoundStore:
    return FoundStore(settings, f"using {own}, while {mounted}: {why}", other=True)
