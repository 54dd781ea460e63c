"""What a caller may do in a bucket: the permissions and the spaces of a token, or everything.

Owns the decision. A space outside of the caller's spaces does not exist for them, and the error says so too. Only an
administrator of all spaces may do what concerns the whole bucket. Pure; any thread.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from livememfs.errors import Forbidden, NotFound

Permission = Literal["read", "write", "admin"]
PERMISSIONS: tuple[Permission, ...] = ("read", "write", "admin")
"""Each permission includes those before it."""


@dataclass(frozen=True)
class Access:
    """A caller, and what they may do.

    :name:        of the token; empty for a caller who has the bucket itself
    :permissions: of the token
    :spaces:      of the token; empty: all spaces
    :token:       the hash of the token; empty without one, and where two limit the caller
    """

    name: str
    permissions: frozenset[str]
    spaces: tuple[str, ...] = ()
    token: str = field(default="", compare=False)

    def may(self, permission: Permission) -> bool:
        """Whether the caller has a permission, or a higher one that includes it."""
        return not self.permissions.isdisjoint(PERMISSIONS[PERMISSIONS.index(permission) :])

    def sees(self, space: str) -> bool:
        """Whether a space exists for them."""
        return self.may("read") and (not self.spaces or space in self.spaces)

    @property
    def everywhere(self) -> bool:
        """Whether they see the bucket as a whole."""
        return self.may("read") and not self.spaces

    @property
    def admin(self) -> bool:
        """Whether they administer all spaces: with only some spaces, they could give themselves the others."""
        return self.may("admin") and not self.spaces

    def require(self, space: str, permission: Permission = "read") -> None:
        """Raises NotFound for a space that does not exist for them, Forbidden without the permission."""
        if not self.sees(space):
            raise NotFound(path=space)
        if not self.may(permission):
            raise self._lacks(permission, space)

    def require_admin(self) -> None:
        """Raises Forbidden for a caller who does not administer the whole bucket."""
        if not self.admin:
            raise self._lacks("admin", "the bucket")

    def _lacks(self, permission: Permission, path: str) -> Forbidden:
        return Forbidden(path=path, name=self.name or "this access", permission=permission)


EVERYTHING = Access("", frozenset(PERMISSIONS))
"""The access of a caller who has the keys of the bucket, or its folder."""
NOTHING = Access("", frozenset())
"""The access of a caller whose token has expired or was revoked."""
