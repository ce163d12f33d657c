"""The error tree. Each error carries a status, a stable code and a sentence that may be shown to anybody.

HangoError
|- StartupError                       settings, PostgreSQL or schema make a start impossible
|- Unauthorized, Forbidden, NotFound  401, 403, 404
|- InvalidRequest, InvalidPayload     400, 422
|  '- TranscriptInvalid, ExportInvalid 422, names message or line, and rule
|- Conflict                           409
|  |- SessionBusy                     names the live run
|  |- SessionClosed
|  |- SubagentSession
|  |- CallNotWaiting, CallAnswered    name the call
|  '- IdempotencyMismatch
|- BodyTooLarge, InputTooLarge        413, with the numbers
|- HeadTooLarge                       431, with the limit
|- RequestTimeout                     408, with the limit
|- TooManyRequests                    429, with the limit and when to ask again
|  '- TooManyLiveRuns, TooManySessions
|- CursorTooOld                       410, names the oldest event that is left
|- PathRefused, FileMissing           400, 404
|- StoreUnavailable, Draining         503
|  '- SchemaBehind                    503, `hango migrate` is due
|- ToolServerFailed                   502, only ever seen in the result of a tool call
|- LeaseLost                          another owner has taken the run over
'- RunFailed                          ends a run; its code is the run's failure code
   |- ViewInvalid                     view_invalid, names seq and rule
   '- ProviderFailure                 provider_error, provider_overloaded, provider_rejected, context_overflow
"""

from typing import ClassVar


class HangoError(Exception):
    """Root of the tree. `detail` is public; `extra` holds JSON values for the problem document."""

    status: ClassVar[int] = 500
    code: str = "internal"
    title: ClassVar[str] = "Internal error"
    retry_after_s: int | None = None

    def __init__(self, detail: str = "", **extra: object) -> None:
        super().__init__(detail)
        self.detail = detail
        self.extra = extra


class StartupError(HangoError):
    code = "startup_error"
    title = "The server cannot start"


class Unauthorized(HangoError):
    status, code, title = 401, "unauthorized", "A valid API key is required"


class Forbidden(HangoError):
    status, code, title = 403, "forbidden", "Not allowed"


class NotFound(HangoError):
    status, code, title = 404, "not_found", "No such resource"


class InvalidRequest(HangoError):
    status, code, title = 400, "invalid_request", "The request is malformed"


class InvalidPayload(HangoError):
    """`extra["errors"]`: list of `{field, rule}`; never the value itself."""

    status, code, title = 422, "invalid_payload", "The payload does not fit its schema"


def invalid(field: str, rule: str) -> InvalidPayload:
    return InvalidPayload(f"{field}: {rule}", errors=[{"field": field, "rule": rule}])


class TranscriptInvalid(InvalidPayload):
    """An imported transcript breaks a rule of the provider; `message` (index) and `rule` are in extra."""

    code, title = "transcript_invalid", "The transcript breaks a rule"

    def __init__(self, message: int, rule: str) -> None:
        super().__init__(f"messages.{message}: {rule}", message=message, rule=rule)


class ExportInvalid(InvalidPayload):
    """A line of an export that comes back breaks a rule; `line` (from 1) and `rule` are in extra."""

    code, title = "export_invalid", "The export breaks a rule"

    def __init__(self, line: int, rule: str) -> None:
        super().__init__(f"line {line}: {rule}", line=line, rule=rule)


class Conflict(HangoError):
    status, code, title = 409, "conflict", "Conflict"


class SessionBusy(Conflict):
    code, title = "session_busy", "The session has a live run"

    def __init__(self, run_id: str) -> None:
        super().__init__(
            "A run of this session is still live; wait, cancel it, or post with queue=true.", run_id=run_id
        )


class SessionClosed(Conflict):
    code, title = "session_closed", "The session was closed"

    def __init__(self) -> None:
        super().__init__("The session was closed; it takes no turns any more.")


class SubagentSession(Conflict):
    code, title = "subagent_session", "The session belongs to a subagent"

    def __init__(self) -> None:
        super().__init__("This session belongs to a subagent and can only be read; act on the session above it.")


class CallNotWaiting(Conflict):
    code, title = "call_not_waiting", "The call does not wait for this"


class CallAnswered(Conflict):
    code, title = "call_answered", "The call was answered otherwise"


class IdempotencyMismatch(Conflict):
    code, title = "idempotency_mismatch", "The idempotency key was used with another body"


class BodyTooLarge(HangoError):
    status, code, title = 413, "body_too_large", "The body is too large"


class HeadTooLarge(HangoError):
    status, code, title = 431, "head_too_large", "The request's head is too large"


class RequestTimeout(HangoError):
    status, code, title = 408, "request_timeout", "The request did not come in time"


class InputTooLarge(HangoError):
    status, code, title = 413, "input_too_large", "The input can never fit the window"


class TooManyRequests(HangoError):
    """A tenant's share is used up. `retry_after_s`: whole seconds after which it may be less."""

    status, code, title = 429, "rate_limited", "Too many requests"

    def __init__(self, detail: str, limit: int, retry_after_s: int) -> None:
        super().__init__(detail, limit=limit, retry_after_s=retry_after_s)
        self.retry_after_s = retry_after_s


class TooManyLiveRuns(TooManyRequests):
    code, title = "too_many_live_runs", "Too many runs are live"


class TooManySessions(TooManyRequests):
    code, title = "too_many_sessions", "Too many sessions"


class TooMuchAtOnce(TooManyRequests):
    code, title = "too_much_at_once", "Too much is under way at once"


class CursorTooOld(HangoError):
    """Events after the cursor were pruned."""

    status, code, title = 410, "cursor_too_old", "The events after this cursor were removed"

    def __init__(self, oldest_seq: int) -> None:
        super().__init__(
            f"The oldest event that is left is {oldest_seq}. Read the session's messages, then follow its events"
            f" after {oldest_seq - 1}.",
            oldest_seq=oldest_seq,
        )


class PathRefused(HangoError):
    status, code, title = 400, "path_refused", "The path is not allowed"


class FileMissing(HangoError):
    status, code, title = 404, "file_not_found", "No such file"


class StoreUnavailable(HangoError):
    status, code, title = 503, "store_unavailable", "The store cannot be reached"


class SchemaBehind(StoreUnavailable):
    code, title = "schema_behind", "The database schema is behind this release"

    def __init__(
        self, detail: str = "The database schema is behind this release: run `hango migrate`.", **extra: object
    ):
        super().__init__(detail, **extra)


class Draining(HangoError):
    """No new run is taken in; the next server, or another one, will."""

    status, code, title = 503, "draining", "The server is stopping"
    retry_after_s = 2


class ToolServerFailed(HangoError):
    """A tool server did not do what it was asked; the words go to the model."""

    status, code, title = 502, "tool_server_failed", "A tool server failed"


class LeaseLost(HangoError):
    """A write came under a generation that is no longer the session's: stop at once, write nothing."""

    code, title = "lease_lost", "Another owner has taken the run over"


class RunFailed(HangoError):
    """Ends a run as failed; `code` is one of the failure codes of the HTTP contract."""

    title = "The run failed"

    def __init__(self, code: str, detail: str, **extra: object) -> None:
        super().__init__(detail, **extra)
        self.code = code


class ViewInvalid(RunFailed):
    """The outgoing request breaks a rule of the provider, so it is never sent."""

    title = "The request would be refused"

    def __init__(self, message: int, seq: int | None, rule: str) -> None:
        """`seq`: of the first row that the message shows; None for the head."""
        row = "the record of the past" if seq is None else f"row {seq}"
        super().__init__("view_invalid", f"messages.{message} ({row}): {rule}", message=message, seq=seq, rule=rule)


class ProviderFailure(RunFailed):
    """A provider call that ended without a reply.

    `transient`: another attempt may succeed. `status`: HTTP status, None when no response came.
    """

    title = "The model provider failed"

    def __init__(self, code: str, detail: str, *, transient: bool, status: int | None = None) -> None:
        super().__init__(code, detail)
        self.transient = transient
        self.provider_status = status
