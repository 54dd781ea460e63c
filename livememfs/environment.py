"""The process's environment, which nothing else reads, the user's name, and the user's own places.

Owns which variables are ours. Refuses to know what they mean: that is `livememfs/config.py`, which loads slowly, and a
command that needs no setting need not wait for it. Any thread.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import platformdirs

PREFIX = "LIVEMEMFS_"

SPECIFIED = frozenset({
    "S3_ENDPOINT_URL", "S3_ACCESS_KEY_ID", "S3_SECRET_ACCESS_KEY", "S3_BUCKET_NAME", "S3_REGION_NAME",
    "S3_SIGNATURE_MODE", "S3_PATH_STYLE", "LLMAAS_API_URL", "LLMAAS_API_KEY", "LLMAAS_COMMAND", "LLMAAS_MODEL",
    "LLMAAS_MAX_TOKENS", "LLMAAS_TEMPERATURE", "CONSOLIDATION_TIMEOUT", "CONSOLIDATION_MAX_NOTES",
    "ADMIN_BOOTSTRAP_KEY",
})  # fmt: skip
"""Variables whose names the specifications give. The setting of each has the same name in small letters."""


def environment() -> dict[str, str]:
    """The process's environment, copied once."""
    return dict(os.environ)


def environment_of_others() -> dict[str, str]:
    """The process's environment without our variables: a program that we start must not get the keys of the bucket."""
    return {name: value for name, value in os.environ.items() if name not in SPECIFIED and not name.startswith(PREFIX)}


def user_name() -> str:
    """The user's login name; "unknown" where the system has none for the process's id, as containers do."""
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "unknown"


def default_store() -> Path:
    """The folder used as the bucket when none is named."""
    return platformdirs.user_data_path("livememfs") / "store"


def file_of(environ: Mapping[str, str], explicit: Path | None = None) -> tuple[Path, bool]:
    """The configuration file, and whether the user named it: then it must exist."""
    named = explicit or (Path(environ["LIVEMEMFS_CONFIG"]) if environ.get("LIVEMEMFS_CONFIG") else None)
    return named or platformdirs.user_config_path("livememfs") / "config.toml", named is not None
