"""What somebody may do in a bucket: the permissions and the spaces of a token, or everything.

Owns the judgement. A space outside of somebody's spaces is not there for them, which is also what they are told; what
concerns the whole bucket is for an administrator of all spaces alone. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from livememfs.errors import Forbidden, NotFound

Permission = Literal["read", "write", "admin"]
PERMISSIONS: tuple[Permission, ...] = ("read", "write", "admin")
"""Each includes those before it."""


@dataclass(frozen=True)
class Access:
    """Who somebody is and what they may do.

    :name:        of the token; empty for whoever has the bucket itself
    :permissions: as the token says
    :spaces:      those it is for; empty: all
    """

    name: str
    permissions: frozenset[str]
    spaces: tuple[str, ...] = ()

    def may(self, permission: Permission) -> bool:
        """Whether a permission is given, by itself or with a higher one."""
        return any(one in self.permissions for one in PERMISSIONS[PERMISSIONS.index(permission) :])

    def sees(self, space: str) -> bool:
        """Whether a space is there for them."""
        return self.may("read") and (not self.spaces or space in self.spaces)

    @property
    def everywhere(self) -> bool:
        """Whether they see the bucket as a whole."""
        return self.may("read") and not self.spaces

    @property
    def admin(self) -> bool:
        """Whether they administer the bucket as a whole. An administrator of some spaces could otherwise give
        themselves the rest.
        """
        return self.may("admin") and not self.spaces

    def require(self, space: str, permission: Permission = "read") -> None:
        """NotFound for a space that is not there for them, Forbidden without the permission."""
        if not self.sees(space):
            raise NotFound(path=space)
        if not self.may(permission):
            raise self._lacks(permission, space)

    def require_admin(self) -> None:
        """Forbidden for whoever does not administer the whole bucket."""
        if not self.admin:
            raise self._lacks("admin", "the bucket")

    def _lacks(self, permission: Permission, path: str) -> Forbidden:
        return Forbidden(path=path, name=self.name or "this access", permission=permission)


EVERYTHING = Access("", frozenset(PERMISSIONS))
"""Whoever has the keys of the bucket, or its folder."""
NOTHING = Access("", frozenset())
"""Whoever had a token that is good no more."""
