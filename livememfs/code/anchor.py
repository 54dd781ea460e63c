"""What a record says of the code that it speaks of: anchors, and the repository, branch and commit of that time.

Owns their form in front matter and in the labels of the index, and which of them can be used: they come from the
bucket, where anybody may have written them. Refuses to read a repository. Pure; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

FIELD, REPOSITORY, BRANCH, COMMIT = "code", "repository", "branch", "commit"
FIELDS = (REPOSITORY, BRANCH, COMMIT, FIELD)
"""The fields of front matter, and the names of the labels."""
MOST = 8
"""Anchors of one record."""
_ANCHOR = re.compile(r"([^\0-\x1f\x7f#\\]{1,400})(?:#([^\W\d][\w$]{0,120}))?@([0-9a-f]{16})?")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_BRANCH = re.compile(r"[\w][\w./+@=,-]{0,119}")
_REPOSITORY = re.compile(r"[^\0-\x1f\x7f]{1,400}")


@dataclass(frozen=True, slots=True)
class Anchor:
    """One place in the code.

    :path:   from the top of the repository, with `/`
    :symbol: the name of what stands there; empty for the whole file
    :digest: of the span, 16 hexadecimal digits; empty if it was not known what stood there when the record was made
    """

    path: str
    symbol: str = ""
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.path}{'#' if self.symbol else ''}{self.symbol}@{self.digest}"

    @classmethod
    def parse(cls, text: object) -> Anchor | None:
        """The anchor in a text; None for anything else, and for a path that leads out of a repository."""
        match = _ANCHOR.fullmatch(text) if isinstance(text, str) else None
        return cls(match[1], match[2] or "", match[3] or "") if match is not None and is_inside(match[1]) else None


@dataclass(frozen=True, slots=True)
class CodePlace:
    """Where somebody works.

    :repository: host and path of its origin, the same for all clones and worktrees; without an origin, host and folder
    :branch:     empty where no branch is checked out
    :commit:     its full hash; empty where it is not known
    """

    repository: str = ""
    branch: str = ""
    commit: str = ""

    def fields(self) -> dict[str, str]:
        """What of it is known, by the names of the fields."""
        known = {REPOSITORY: self.repository, BRANCH: self.branch, COMMIT: self.commit}
        return {name: value for name, value in known.items() if value}

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> CodePlace:
        """What fields say; odd values count as missing."""
        return cls(
            _fitting(_REPOSITORY, fields.get(REPOSITORY)),
            _fitting(_BRANCH, fields.get(BRANCH)),
            _fitting(_COMMIT, fields.get(COMMIT)),
        )


@dataclass(frozen=True, slots=True)
class Claim:
    """What a record says of its code: the place where it was made, and the anchors."""

    place: CodePlace
    anchors: tuple[Anchor, ...] = ()

    def fields(self, *, whole: bool = False) -> dict[str, Any]:
        """The fields of front matter; `whole`: with empty ones for what is not known."""
        fields: dict[str, Any] = {**self.place.fields(), FIELD: [str(anchor) for anchor in self.anchors]}
        if whole:
            return dict.fromkeys(FIELDS) | fields
        return {name: value for name, value in fields.items() if value}

    @classmethod
    def of_fields(cls, fields: Mapping[str, Any]) -> Claim | None:
        """The claim in front matter; None where no repository is named, since nothing can be checked then."""
        given = fields.get(FIELD)
        return _claim(CodePlace.of(fields), given if isinstance(given, list | tuple) else [given])

    @classmethod
    def of_labels(cls, labels: Iterable[tuple[str, str]]) -> Claim | None:
        """The claim in the labels of a record of the index; None as above."""
        named = [label for label in labels if label[0] in FIELDS]
        if not named:
            return None
        return _claim(CodePlace.of(dict(named)), [value for name, value in named if name == FIELD])

    def labels(self) -> list[tuple[str, str]]:
        """The labels for the index."""
        return [*self.place.fields().items(), *((FIELD, str(anchor)) for anchor in self.anchors)]


def _claim(place: CodePlace, given: Iterable[object]) -> Claim | None:
    if not place.repository:
        return None
    anchors = (Anchor.parse(text) for text, _ in zip(given, range(MOST), strict=False))
    return Claim(place, tuple(dict.fromkeys(anchor for anchor in anchors if anchor is not None)))


def is_inside(path: str) -> bool:
    """Whether a path is a plain one from the top of a repository to one of its files."""
    parts = path.split("/")
    return not any(part in ("", ".", "..") or part.lower() == ".git" for part in parts)


def _fitting(form: re.Pattern[str], value: object) -> str:
    return value if isinstance(value, str) and form.fullmatch(value) else ""
