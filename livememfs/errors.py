"""Every failure livememfs knows, each with its errno, its exit code and what to do about it.

Owns the verdict: the class decides what the kernel is told and what the shell sees, never the place that catches it.
Refuses I/O and imports of other layers. May be used from any thread.

An error is raised with keyword values that its `message` names: `RecordMissing(path="a/b")`. `what_to_do` is one
sentence for the person who reads `errors.ndjson` or the terminal; it may be empty when the message says it all.
"""

from __future__ import annotations

import errno as _errno
from collections import defaultdict
from functools import partial


class LiveMemError(Exception):
    """The base of all of them: the input or the world is at fault, and we can say how."""

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
        """What to do about it, one sentence, possibly empty."""
        return _filled(self.what_to_do, self.values)


def _filled(text: str, values: dict[str, object]) -> str:
    """A text with its values: a name that was not given is left empty instead of raising inside an error path."""
    return text.format_map(defaultdict(str, values))


# --- the caller's fault, at the command line or in the settings ------------------------------------------------


class UsageError(LiveMemError):
    """A command or option was used in a way it cannot be."""

    exit_code = 2
    errno = _errno.EINVAL


class SettingsError(UsageError):
    """A setting is unknown, malformed or contradicts another."""


class MountError(LiveMemError):
    """The mount point or the kernel's side of a mount is not usable."""


class CacheInUse(MountError):
    """Another process keeps its local state in this folder."""

    message = "another livememfs uses {path}"
    what_to_do = "unmount that one, or set LIVEMEMFS_CACHE to another folder"
    errno = _errno.EBUSY


class CacheUnusable(LiveMemError):
    """The folder for local state cannot be made or used."""

    message = "the local state cannot be kept in {path}: {detail}"
    what_to_do = "let this user write there, or set LIVEMEMFS_CACHE to another folder"


class NotPrivate(LiveMemError):
    """Another user owns the place where memory is to be kept, or a symbolic link stands there; it is left alone."""

    message = "memory is not kept in {path}: {detail}"
    what_to_do = "move it away, or name another folder with LIVEMEMFS_CACHE, LIVEMEMFS_STORE or XDG_STATE_HOME"
    errno = _errno.EPERM


class CannotInstall(LiveMemError):
    """A file of a project cannot be changed as installing or uninstalling would have to; no file was changed."""

    message = "{path} cannot be changed, and nothing was: {detail}"
    what_to_do = "{advice}"
    errno = _errno.EPERM


# --- the caller's fault, in the tree ---------------------------------------------------------------------------


class NotFound(LiveMemError):
    """No such name."""

    message = "there is no {path}"
    errno = _errno.ENOENT


class Stale(LiveMemError):
    """What a caller holds on to is no longer what the name stands for; looking the name up again helps."""

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
    """A file was meant and a directory stands there."""

    message = "{path} is a directory"
    errno = _errno.EISDIR


class NotEmpty(LiveMemError):
    """A directory that is to go still holds something."""

    message = "{path} is not empty: {detail}"
    errno = _errno.ENOTEMPTY


class InvalidName(LiveMemError):
    """A name that cannot stand where it was to stand."""

    message = "{path} cannot be used as a name here: {detail}"
    errno = _errno.EINVAL


class NameTooLong(LiveMemError):
    """A name of over 255 bytes, or a key of over 1,024."""

    message = "{path} is too long: {detail}"
    errno = _errno.ENAMETOOLONG


class NotText(LiveMemError):
    """Bytes that must be UTF-8 text and are not."""

    message = "{path} is not UTF-8 text: {detail}"
    what_to_do = "save it as UTF-8, or put it outside live/ as an ordinary file"
    errno = _errno.EILSEQ


class TooLarge(LiveMemError):
    """More bytes than the place takes."""

    message = "{path} is too large: {detail}"
    what_to_do = "split it, or put it outside live/ as an ordinary file"
    errno = _errno.EFBIG


class ReadOnly(LiveMemError):
    """A place that nobody may change by hand."""

    message = "{path} is read-only: {detail}"
    errno = _errno.EROFS


class NotPermitted(LiveMemError):
    """An operation that this place never offers."""

    message = "{path}: {detail}"
    errno = _errno.EPERM


class LinkLeaves(NotPermitted):
    """A mount that a token limits makes no link that leads out of the space it stands in."""

    message = "{path}: a link to {target} leads out of its space"
    what_to_do = "make it relative, with every .. at the beginning; a mount limited by a token makes no other link"


class Forbidden(LiveMemError):
    """A token does not allow it."""

    message = "{name} has no permission to {permission} in {path}"
    what_to_do = "ask whoever administers the bucket for a token that has it; `livememfs token list` shows them"
    errno = _errno.EACCES


class NotSignedIn(LiveMemError):
    """There is no token, or it is not good: unknown, expired or revoked."""

    message = "a valid token is needed"
    what_to_do = "`livememfs token create` makes one; programs send it as `Authorization: Bearer ...`"
    errno = _errno.EACCES


class CrossesKinds(LiveMemError):
    """A rename between places of different kinds; tools fall back to copy and remove."""

    message = "{path} cannot be moved to a place of another kind"
    errno = _errno.EXDEV


class NoAttribute(LiveMemError):
    """An extended attribute that is not there."""

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

    message = "{path}: replaced by marks, and stored nowhere: {detail}"
    what_to_do = "change a credential that others may have seen; what has to stay as it is belongs in an ordinary file"
    errno = _errno.EPERM


class BadRequest(LiveMemError):
    """What was written to a control or exchange file cannot be read as a request."""

    message = "{path}: {detail}"
    what_to_do = "{advice}"
    errno = _errno.EINVAL


class Unusable(LiveMemError):
    """An attribute or a link of a memory that cannot be what it was set to."""

    message = "{path}: {detail}"
    errno = _errno.EINVAL


class ObjectUnreadable(LiveMemError):
    """A record in the bucket that is not what its key says."""

    message = "{path} cannot be read: {detail}"
    what_to_do = "look at that object in the bucket: put back a version that can be read, or remove it"


class TaskFailed(LiveMemError):
    """Something that livememfs does by itself, and that is started again."""

    message = "{task}: {detail}"
    what_to_do = "it is started again by itself; where it goes on failing, unmount, mount again and report it"


class BeingWritten(LiveMemError):
    """A file that somebody has open for writing, or that was never closed with content."""

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
    """The object store refused or failed.

    Without a `key` it is the bucket as a whole that is meant. A store that is no bucket gives an `advice` of its own.
    """

    message = "the store failed on {key}: {detail}"
    what_to_do = "run `livememfs doctor`"

    def __str__(self) -> str:
        return _filled(self.message, self.values | {"key": self.values.get("key") or "the bucket"})

    def advice(self) -> str:
        """What to do about it: what the store says, else what helps with a bucket."""
        return str(self.values.get("advice") or super().advice())


class ObjectMissing(StoreError):
    """There is no object under this key."""

    message = "there is no object {key}"
    errno = _errno.ENOENT


class PreconditionFailed(StoreError):
    """If-None-Match or If-Match did not hold: somebody else was first."""

    message = "{key} changed in the store meanwhile"
    errno = _errno.ESTALE


class ConflictRetry(StoreError):
    """The store saw two writers at once and asks to try again; the outcome of this one is settled by reading back."""

    message = "{key}: two writers at once, try again: {detail}"


class Denied(StoreError):
    """The credentials are wrong or do not allow this."""

    message = "the store denies access to {key}: {detail}"
    what_to_do = "check S3_ACCESS_KEY_ID, S3_SECRET_ACCESS_KEY and what the key may do on the bucket"
    errno = _errno.EACCES


class BucketMissing(StoreError):
    """The endpoint answers, the bucket is not there."""

    message = "there is no bucket {bucket} at {endpoint}"
    what_to_do = "create it, or correct S3_BUCKET_NAME"


class Throttled(StoreError):
    """The store asks for fewer requests."""

    message = "the store asks to slow down on {key}"
    errno = _errno.ETIMEDOUT


class Unreachable(StoreError):
    """No answer, or none that can be trusted. A write that ends so may or may not have happened."""

    message = "the store at {endpoint} does not answer: {detail}"
    what_to_do = "check S3_ENDPOINT_URL and the network"
    errno = _errno.ETIMEDOUT


class ConditionsUnsupported(StoreError):
    """The store ignores or rejects conditional requests where one was asked for."""

    message = "the store does not honour conditions on {key}"
    errno = _errno.EOPNOTSUPP


# --- the model -------------------------------------------------------------------------------------------------


class ModelError(LiveMemError):
    """A chat call or its reply is of no use. Notes are kept."""

    message = "the model call failed: {detail}"
    what_to_do = "check LLMAAS_API_URL, LLMAAS_API_KEY and LLMAAS_MODEL; the notes were kept"


class ModelUnreachable(ModelError):
    """The endpoint did not answer, or answered with a server error."""

    message = "the model endpoint does not answer: {detail}"


class RequestRefused(ModelError):
    """The endpoint turned down this one request: its content filter, or something in it that it cannot take."""


class ModelTimedOut(ModelError):
    """No reply within CONSOLIDATION_TIMEOUT."""

    message = "the model did not reply within {detail} seconds"
    what_to_do = "raise CONSOLIDATION_TIMEOUT or lower CONSOLIDATION_MAX_NOTES; the notes were kept"
    errno = _errno.ETIMEDOUT


class ModelDenied(ModelError):
    """The endpoint refuses the key or the model's name."""

    message = "the model endpoint refuses the request: {detail}"


class CommandFailed(ModelError):
    """The program of LLMAAS_COMMAND cannot be started, or it failed."""

    message = "the program that is asked as a model failed: {detail}"
    what_to_do = "run the program of LLMAAS_COMMAND in a terminal: it must be there and signed in; the notes were kept"


class ContextTooSmall(ModelError):
    """What every request must hold leaves no room in the model's context window."""

    message = (
        "the context window of {window} tokens is too small: rules, synthesis and bank take about {fixed}, "
        "and {reply} are set aside for the reply"
    )
    what_to_do = "set LIVEMEMFS_CONTEXT_WINDOW to what the model takes, or lower LLMAAS_MAX_TOKENS; the notes were kept"


class NotesTooLong(ModelError):
    """Every note of a run has a line that fits no request."""

    message = "each of the {count} notes has a line that is too long for a request, which has room for {limit} tokens"
    what_to_do = "set LIVEMEMFS_CONTEXT_WINDOW to what the model takes, or divide the long lines; the notes were kept"


class ContextOverflow(ModelError):
    """The endpoint says that the request is longer than the model's context."""

    message = "the request is longer than the model's context: {detail}"
    what_to_do = "set LIVEMEMFS_CONTEXT_WINDOW to what the model takes; the notes were kept"


class ReplyRefused(ModelError):
    """The reply was read and must not be applied. `detail` lists every fault found."""

    message = "the model's reply was refused: {detail}"
    what_to_do = "the notes were kept; ask for the run again"


class EmbeddingUnavailable(ModelError):
    """The built-in embedding model cannot be loaded."""

    message = "the built-in embedding model cannot be used: {detail}"
    what_to_do = "install livememfs and its dependencies again"


class LeaseLost(LiveMemError):
    """The right to change a space went to another host while a run was at work; nothing was changed."""

    message = "the run on {path} was stopped before it changed anything: {detail}"
    what_to_do = "try again; nothing was changed"


class ObserverFailed(LiveMemError):
    """What an agent did could not be observed now. The events are kept."""

    message = "observing failed: {detail}"
    what_to_do = "the events are kept and tried again; status.json counts them under sessions"


class BudgetSpent(LiveMemError):
    """The tokens that observing may cost in one day are spent."""

    message = "{spent:,} of {budget:,} tokens are spent today, and observing waits for tomorrow"
    what_to_do = "nothing is lost; LIVEMEMFS_OBSERVE_BUDGET sets how much a day may cost"


class HookRefused(LiveMemError):
    """What a hook wrote is no event. The agent hears nothing of it and goes on."""

    errno = _errno.EINVAL
    message = "{path} cannot be used: {detail}"
    what_to_do = "hooks write the agent's JSON to .hooks/EVENT; `livememfs install` sets them up"


class ProjectFileOdd(LiveMemError):
    """A `.livememfs.toml` says something else than the space of its project."""

    errno = _errno.EINVAL
    message = "{path}: {detail}"
    what_to_do = 'write this line into it and no other: space = "NAME"'


class RunFailed(LiveMemError):
    """A run failed; whoever asked for it may not be waiting to hear it."""

    what_to_do = "{advice}"


class HeldPlanStale(LiveMemError):
    """A plan that was held cannot be accepted any more: something that it stood on has changed."""

    message = "the plan of run {number} of {path} cannot be accepted any more: {detail}"
    what_to_do = "touch .consolidate, or livememfs consolidate {path}, makes a new plan"


class RunCancelled(LiveMemError):
    """A run was told to stop before it wrote anything."""

    message = "the run was cancelled"
    errno = _errno.ECANCELED
