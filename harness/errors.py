"""Everything this library raises on purpose.

    HarnessError
    ├── ConfigError            the builder, a call or a command was given something that cannot work
    │   ├── MissingExtra       a feature needs a package that is not installed
    │   ├── MissingSetting     a model needs a key, an address or the like that is not in the environment
    │   └── TranscriptRefused  what was given is no transcript that can be read; `.code` says why
    ├── InvalidId              a user, session or agent id that cannot be stored
    ├── NoCurrentCall          identity was asked for outside a call
    ├── BlockInsideLoop        .block() was used where an event loop is running
    ├── CallError
    │   ├── SessionBusy        another call holds this session
    │   ├── AgentClosed        the agent takes no new calls
    │   ├── CallCancelled      the call was stopped
    │   └── CallTimeout        the call took longer than its caller allowed
    ├── HookError              a hook raised, or changed what it may not change
    ├── SessionError
    │   ├── SessionNotFound    no such session for this tenant and agent
    │   ├── SessionExists      a session of that id is there already
    │   ├── NewerFormat        written by a newer version of this library; nothing was changed
    │   ├── SessionDamaged     the files are not what they claim to be; nothing was changed
    │   ├── NotATurnEnd        a branch or fork must leave whole turns behind; `.nearest` is where it could be
    │   ├── ListMoved          a stored list is not as long as its writer believed
    │   ├── RemovalUnfinished  the user is being removed and nobody is at it any more; remove the user again
    │   └── PersistenceError   the disk refused; `.reply` holds an answer that was already given
    ├── FilesystemError
    │   ├── PathRefused        a path that leads outside its root
    │   ├── FileMissing
    │   └── FileExists
    ├── ModelError
    │   ├── ModelUnavailable   overloaded, rate limited, unreachable: worth another try
    │   ├── ModelTimeout       no answer in time: worth another try
    │   ├── ModelMalformed     an answer nobody can use: worth another try
    │   ├── ModelAuthError     the provider refused the credentials
    │   ├── ModelRejected      the provider refused the request
    │   └── ContextOverflow    the request is larger than the model's window
    ├── ToolError              raise it in a tool to give the model an error result
    │   └── ToolTimeout
    └── ScriptError            a scripted or replayed model was used differently than scripted

Messages name the thing and the place, and end with what to do.
"""

from __future__ import annotations

from typing import Any


class HarnessError(Exception):
    """Base of every error this library raises on purpose."""


class ConfigError(HarnessError):
    """The builder, a call or a command was given something that cannot work."""


class MissingExtra(ConfigError):
    """A feature needs a package that is not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(f"{feature} needs packages that are not installed: pip install 'dualtrack-harness[{extra}]'")
        self.extra = extra


class MissingSetting(ConfigError):
    """A model needs a key, an address or another setting that the environment does not have.

    `variable` is the environment variable that would hold it.
    """

    def __init__(self, feature: str, variable: str) -> None:
        super().__init__(f"{feature} is not set up; set the environment variable {variable}")
        self.variable = variable


class TranscriptRefused(ConfigError):
    """A file, folder or database that cannot be read as a transcript.

    `code` is one of `unknown_format`, `no_transcript`, `unreadable`, `not_utf8`, `several_sessions` and
    `no_such_session`; `candidates` are the sessions to choose from, where there are several.
    """

    def __init__(self, code: str, message: str, candidates: tuple[Any, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.candidates = candidates

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.code, str(self), self.candidates)


class InvalidId(HarnessError):
    """A user, session, agent or task id that cannot be stored."""


class NoCurrentCall(HarnessError):
    """Identity was asked for outside a call; there is no default tenant."""


class BlockInsideLoop(HarnessError):
    """`.block()` was used inside a running event loop; use `await` there."""


class CallError(HarnessError):
    """A call could not start or was ended from outside."""


class SessionBusy(CallError):
    """Another call holds this session; try again when it has ended."""


class AgentClosed(CallError):
    """The agent has been closed and takes no new calls."""


class CallCancelled(CallError):
    """The call was stopped before it had an answer; what it had done is kept in the session."""


class CallTimeout(CallError):
    """The call took longer than its caller allowed; what it had done is kept in the session."""


class HookError(HarnessError):
    """A hook raised in an event that may change the call, or changed what it may not."""


class SessionError(HarnessError):
    """A session could not be read or written."""


class SessionNotFound(SessionError):
    """No session of that id exists for this tenant and agent."""


class SessionExists(SessionError):
    """A session of that id is there already; what was to become one was not stored."""


class NewerFormat(SessionError):
    """The files were written by a newer version of this library, which this one must not touch."""


class SessionDamaged(SessionError):
    """The files are not what they claim to be; nothing was changed."""


class NotATurnEnd(SessionError):
    """A branch or fork was asked for in the middle of a turn. `nearest` is an entry id it could be at."""

    def __init__(self, message: str, nearest: str) -> None:
        super().__init__(message)
        self.nearest = nearest

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.nearest)


class ListMoved(SessionError):
    """A stored list does not have the length its writer expected; read it again, then `replace` it."""

    def __init__(self, message: str, count: int) -> None:
        super().__init__(message)
        self.count = count


class RemovalUnfinished(SessionError):
    """The removal of a user was begun and cut off; removing the user again finishes it. No call is served before."""


class PersistenceError(SessionError):
    """The disk refused. `reply` is the answer that had been given when it did, if there was one."""

    def __init__(self, message: str, reply: Any = None) -> None:
        super().__init__(message)
        self.reply = reply


class FilesystemError(HarnessError):
    """A file operation failed."""


class PathRefused(FilesystemError):
    """A path leads outside its root, or names something that is off limits."""


class FileMissing(FilesystemError):
    """No such file."""


class FileExists(FilesystemError):
    """The file is there already and this operation does not overwrite."""


class ModelError(HarnessError):
    """A model request failed. `retryable` says whether the same request may succeed later."""

    retryable = False
    usage: Any = None
    """The `Usage` that the provider counts all the same, where it said so; a model sets it on the error it raises."""

    def __init__(self, message: str, *, provider: str = "", model: str = "", retry_after: float | None = None) -> None:
        super().__init__(message)
        self.provider = provider
        self.model = model
        self.retry_after = retry_after
        """Seconds the provider asked to wait, where it said so."""


class ModelUnavailable(ModelError):
    """The provider is overloaded, rate limiting or unreachable."""

    retryable = True


class ModelTimeout(ModelError):
    """The model did not answer in time."""

    retryable = True


class ModelMalformed(ModelError):
    """The model answered with something nobody can use."""

    retryable = True


class ModelAuthError(ModelError):
    """The provider refused the credentials; set the provider's key and try again."""


class ModelRejected(ModelError):
    """The provider refused the request itself; sending it again will not help."""


class ContextOverflow(ModelError):
    """The request is larger than the model's context window, which has `window` tokens where the provider says so."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        model: str = "",
        retry_after: float | None = None,
        window: int | None = None,
    ) -> None:
        super().__init__(message, provider=provider, model=model, retry_after=retry_after)
        self.window = window


class ToolError(HarnessError):
    """Raise this in a tool to give the model an error result with this text."""


class ToolTimeout(ToolError):
    """A tool took longer than it was allowed."""


class ScriptError(HarnessError):
    """A scripted or replayed model was used differently than its script says."""
