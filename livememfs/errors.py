"""Every error of livememfs, each with its errno for the kernel, its exit code for the shell, and what to do about it.

Owns all three: the class decides, never the place that catches the error. Refuses I/O and other layers. Any thread.

An error is raised with keyword values that its `message` names: `RecordMissing(path="a/b")`. `what_to_do` is one
sentence for the person who reads `errors.ndjson` or the terminal; it may be empty when the message says it all.
"""

from __future__ import annotations

import errno as _errno
from collections import defaultdict
from functools import partial


class LiveMemError(Exception):
    """The base class of all errors with a known cause in the input or the environment."""

    message = "{detail}"
    what_to_do = ""
    errno = _errno.EIO
    exit_code = 1

    def __init__(self, detail: object = "", **values: object) -> None:
        self.values = {"detail": detail, **values}
        super().__init__(detail, values)

    def __reduce__(self) -> tuple[object, ...]:
        # Keyword values do not survive the way exceptions are copied by default.
        return partial(type(self), **self.values), ()

    def __str__(self) -> str:
        return _filled(self.message, self.values)

    def advice(self) -> str:
        """What to do about it, one sentence, possibly empty. Whoever raises an error may know better than its class."""
        return str(self.values.get("advice") or _filled(self.what_to_do, self.values))


def _filled(text: str, values: dict[str, object]) -> str:
    """A text with its values. A missing value is left empty: an exception here would hide the error itself."""
    return text.format_map(defaultdict(str, values))


# --- the caller's fault, at the command line or in the settings ------------------------------------------------


class UsageError(LiveMemError):
    """A command or an option is used wrongly."""

    exit_code = 2
    errno = _errno.EINVAL


class SettingsError(UsageError):
    """A setting is unknown, malformed or contradicts another."""


class MountError(LiveMemError):
    """The mount point, or FUSE in the kernel, cannot be used."""


class CacheInUse(MountError):
    """Another process keeps its local state in this folder."""

    message = "another livememfs uses {path}"
    what_to_do = "unmount it, or set LIVEMEMFS_CACHE to another folder"
    errno = _errno.EBUSY


class CacheUnusable(LiveMemError):
    """The folder for local state cannot be made or used."""

    message = "the local state cannot be kept in {path}: {detail}"
    what_to_do = "let this user write there, or set LIVEMEMFS_CACHE to another folder"


class NotPrivate(LiveMemError):
    """A local folder belongs to another user, or is a symbolic link; nothing in it is touched."""

    message = "memory is not kept in {path}: {detail}"
    what_to_do = "move it away, or name another folder with LIVEMEMFS_CACHE, LIVEMEMFS_STORE or XDG_STATE_HOME"
    errno = _errno.EPERM


class CannotInstall(LiveMemError):
    """Installing or uninstalling cannot change a file of the project; no file was changed."""

    message = "{path} cannot be changed, and nothing was: {detail}"
    what_to_do = "{advice}"
    errno = _errno.EPERM


# --- the caller's fault, in the tree ---------------------------------------------------------------------------


class NotFound(LiveMemError):
    """No such name."""

    message = "there is no {path}"
    errno = _errno.ENOENT


class Stale(LiveMemError):
    """The name now refers to another file; looking it up again helps."""

    message = "{path} is no longer what it was"
    errno = _errno.ESTALE


class AlreadyExists(LiveMemError):
    """The name is taken."""

    message = "{path} exists already"
    errno = _errno.EEXIST


class NotADirectory(LiveMemError):
    """A path goes through something that is not a directory."""

    message = "{path} is not a directory"
    errno = _errno.ENOTDIR


class IsADirectory(LiveMemError):
    """A file was expected, and the path is a directory."""

    message = "{path} is a directory"
    errno = _errno.EISDIR


class NotEmpty(LiveMemError):
    """A directory that should be removed is not empty."""

    message = "{path} is not empty: {detail}"
    errno = _errno.ENOTEMPTY


class InvalidName(LiveMemError):
    """The name is not allowed at this place."""

    message = "{path} cannot be used as a name here: {detail}"
    errno = _errno.EINVAL


class NameTooLong(LiveMemError):
    """A name of over 255 bytes, or a key of over 1,024."""

    message = "{path} is too long: {detail}"
    errno = _errno.ENAMETOOLONG


class NotText(LiveMemError):
    """The content must be UTF-8 text and is not."""

    message = "{path} is not UTF-8 text: {detail}"
    what_to_do = "save it as UTF-8, or put it outside live/ as an ordinary file"
    errno = _errno.EILSEQ


class TooLarge(LiveMemError):
    """The content has more bytes than are allowed at this place."""

    message = "{path} is too large: {detail}"
    what_to_do = "split it, or put it outside live/ as an ordinary file"
    errno = _errno.EFBIG


class ReadOnly(LiveMemError):
    """Nobody may change this place by hand."""

    message = "{path} is read-only: {detail}"
    what_to_do = "{advice}"
    errno = _errno.EROFS


class NotPermitted(LiveMemError):
    """This place never allows the operation."""

    message = "{path}: {detail}"
    errno = _errno.EPERM


class LinkLeaves(NotPermitted):
    """A mount with a token makes no link that leads out of its space."""

    message = "{path}: a link to {target} leads out of its space"
    what_to_do = "make it relative, with every .. at the beginning; a mount limited by a token makes no other link"


class Forbidden(LiveMemError):
    """The token does not allow it."""

    message = "{name} has no permission to {permission} in {path}"
    what_to_do = "ask the bucket's administrator for a token with this permission; `livememfs token list` shows them"
    errno = _errno.EACCES


class NotSignedIn(LiveMemError):
    """The token is missing or invalid: unknown, expired or revoked."""

    message = "a valid token is needed"
    what_to_do = "`livememfs token create` makes one; programs send it as `Authorization: Bearer ...`"
    errno = _errno.EACCES


class CrossesKinds(LiveMemError):
    """A rename between places of different kinds; tools fall back to copy and remove."""

    message = "{path} cannot be moved to a place of another kind"
    errno = _errno.EXDEV


class NoAttribute(LiveMemError):
    """The file does not have this extended attribute."""

    message = "{path} has no attribute {detail}"
    errno = _errno.ENODATA


class NotSupported(LiveMemError):
    """An operation this file system does not offer at all."""

    message = "{path}: {detail} is not supported"
    errno = _errno.EOPNOTSUPP


class NoSpace(LiveMemError):
    """The local disk or the quota is full."""

    message = "no space left: {detail}"
    errno = _errno.ENOSPC


class PrivateText(LiveMemError):
    """Something private was replaced before anything was stored; nothing failed. `detail` names the kinds."""

    message = "{path}: a mark stands in place of private text, which is stored nowhere: {detail}"
    what_to_do = "change a credential that others may have seen; write text that must not change into an ordinary file"
    errno = _errno.EPERM


class BadRequest(LiveMemError):
    """The text written to a control or exchange file is no valid request."""

    message = "{path}: {detail}"
    what_to_do = "{advice}"
    errno = _errno.EINVAL


class Unusable(LiveMemError):
    """An attribute or link of a memory was given an unusable value."""

    message = "{path}: {detail}"
    errno = _errno.EINVAL


class ObjectUnreadable(LiveMemError):
    """The content of an object in the bucket is not what its key says."""

    message = "{path} cannot be read: {detail}"
    what_to_do = "look at that object in the bucket: restore a readable version, or remove it"


class TaskFailed(LiveMemError):
    """A background task failed and is started again."""

    message = "{task}: {detail}"
    what_to_do = "livememfs starts it again; if it keeps failing, unmount, mount again and report it"


class BeingWritten(LiveMemError):
    """A file is open for writing, or was never closed with content."""

    message = "{path} is being written: {detail}"
    what_to_do = "close it first"
    errno = _errno.EBUSY


class TimedOut(LiveMemError):
    """A call did not end within its deadline."""

    message = "{detail} did not answer in time"
    what_to_do = "look at .livememfs/status.json and at the store's own state"
    errno = _errno.ETIMEDOUT


# --- the object store ------------------------------------------------------------------------------------------


class StoreError(LiveMemError):
    """The object store refused or failed. Without a `key` it concerns the bucket as a whole."""

    message = "the store failed on {key}: {detail}"
    what_to_do = "run `livememfs doctor`"

    def __str__(self) -> str:
        return _filled(self.message, self.values | {"key": self.values.get("key") or "the bucket"})


class ObjectMissing(StoreError):
    """There is no object under this key."""

    message = "there is no object {key}"
    errno = _errno.ENOENT


class PreconditionFailed(StoreError):
    """If-None-Match or If-Match failed: another writer was first."""

    message = "{key} changed in the store meanwhile"
    errno = _errno.ESTALE


class ConflictRetry(StoreError):
    """The store saw two writers at once; reading the object back shows whether this write happened."""

    message = "{key}: two writers at once, try again: {detail}"


class Denied(StoreError):
    """The credentials are wrong or do not allow this."""

    message = "the store denies access to {key}: {detail}"
    what_to_do = "check S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY and what the key may do on the bucket"
    errno = _errno.EACCES


class ClockDiffers(Denied):
    """The store refuses requests whose date differs much from its own; the keys are not at fault."""

    message = "the store at {endpoint} refuses requests because its clock and this machine's differ: {detail}"
    what_to_do = "set the clock of this machine (timedatectl set-ntp true), or the store's"


class BucketMissing(StoreError):
    """The endpoint answers, the bucket is not there."""

    message = "there is no bucket {bucket} at {endpoint}"
    what_to_do = "create it, or correct S3_BUCKET_NAME"


class Throttled(StoreError):
    """The store asks for fewer requests."""

    message = "the store asks to slow down on {key}"
    errno = _errno.ETIMEDOUT


class Unreachable(StoreError):
    """No answer, or one that cannot be trusted. A write that ends so may or may not have happened."""

    message = "the store at {endpoint} does not answer: {detail}"
    what_to_do = "check S3_ENDPOINT_URL and the network"
    errno = _errno.ETIMEDOUT


class ConditionsUnsupported(StoreError):
    """The store ignores or rejects a conditional request."""

    message = "the store does not honour conditions on {key}"
    errno = _errno.EOPNOTSUPP


# --- the model -------------------------------------------------------------------------------------------------


class ModelError(LiveMemError):
    """A call of the model failed, or its reply is unusable. Notes are kept."""

    message = "the model call failed: {detail}"
    what_to_do = "check LLMAAS_API_URL, LLMAAS_API_KEY and LLMAAS_MODEL; the notes were kept"


class ModelUnreachable(ModelError):
    """The endpoint did not answer, or answered with a server error."""

    message = "the model endpoint does not answer: {detail}"


class RequestRefused(ModelError):
    """The endpoint refused this one request: by its content filter, or for a part that it does not support."""


class ModelTimedOut(ModelError):
    """No reply within CONSOLIDATION_TIMEOUT."""

    message = "the model did not reply within {detail} seconds"
    what_to_do = "raise CONSOLIDATION_TIMEOUT or lower CONSOLIDATION_MAX_NOTES; the notes were kept"
    errno = _errno.ETIMEDOUT


class ModelDenied(ModelError):
    """The endpoint rejects the key or the model's name."""

    message = "the model endpoint refuses the request: {detail}"


class CommandFailed(ModelError):
    """The program of LLMAAS_COMMAND cannot be started, or it failed."""

    message = "the program used as the model failed: {detail}"
    what_to_do = "run the program of LLMAAS_COMMAND in a terminal: it must be there and signed in; the notes were kept"


class ContextTooSmall(ModelError):
    """The fixed parts of a request fill the model's context window."""

    message = (
        "the context window of {window} tokens is too small: rules, synthesis and bank take about {fixed}, "
        "and {reply} are set aside for the reply"
    )
    what_to_do = "set LIVEMEMFS_CONTEXT_WINDOW to what the model takes, or lower LLMAAS_MAX_TOKENS; the notes were kept"


class NotesTooLong(ModelError):
    """Every note of a run has a line too long for any request."""

    message = "each of the {count} notes has a line that is too long for a request, which has room for {limit} tokens"
    what_to_do = "set LIVEMEMFS_CONTEXT_WINDOW to what the model takes, or divide the long lines; the notes were kept"


class ContextOverflow(ModelError):
    """The endpoint says that the request is longer than the model's context."""

    message = "the request is longer than the model's context: {detail}"
    what_to_do = "set LIVEMEMFS_CONTEXT_WINDOW to what the model takes; the notes were kept"


class ReplyRefused(ModelError):
    """The reply has faults and is not applied. `detail` lists them all."""

    message = "the model's reply was refused: {detail}"
    what_to_do = "the notes were kept; ask for the run again"


class EmbeddingUnavailable(ModelError):
    """The built-in embedding model cannot be loaded."""

    message = "the built-in embedding model cannot be used: {detail}"
    what_to_do = "install livememfs and its dependencies again"


class LeaseLost(LiveMemError):
    """Another host took the lease of the space during a run; nothing was changed."""

    message = "the run on {path} was stopped before it changed anything: {detail}"
    what_to_do = "try again; nothing was changed"


class ObserverFailed(LiveMemError):
    """The events of an agent cannot be observed now. They are kept."""

    message = "observing failed: {detail}"
    what_to_do = "the events are kept and tried again; status.json counts them under sessions"


class BudgetSpent(LiveMemError):
    """Observing has used its model tokens of this day."""

    message = "{spent:,} of {budget:,} tokens are spent today, and observing waits for tomorrow"
    what_to_do = "nothing is lost; LIVEMEMFS_OBSERVE_BUDGET sets how much a day may cost"


class HookRefused(LiveMemError):
    """A hook wrote something that is no event. The agent is not told, and goes on."""

    errno = _errno.EINVAL
    message = "{path} cannot be used: {detail}"
    what_to_do = "hooks write the agent's JSON to .hooks/EVENT; `livememfs install` sets them up"


class ProjectFileOdd(LiveMemError):
    """A `.livememfs.toml` names no usable space, or has other keys, which are ignored."""

    errno = _errno.EINVAL
    message = "{path}: {detail}"
    what_to_do = 'write this line into it and no other: space = "NAME"'


class RunFailed(LiveMemError):
    """A run failed; its requester may no longer be waiting."""

    what_to_do = "{advice}"


class HeldPlanStale(LiveMemError):
    """A held plan can no longer be accepted: its input has changed."""

    message = "the plan of run {number} of {path} cannot be accepted any more: {detail}"
    what_to_do = "touch .consolidate, or livememfs consolidate {path}, makes a new plan"


class RunCancelled(LiveMemError):
    """A run was told to stop before it wrote anything."""

    message = "the run was cancelled"
    errno = _errno.ECANCELED
