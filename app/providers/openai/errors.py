"""The one place that knows the errors of compatible servers, in the forms they have, as ProviderFailure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.context.overflow import classify
from app.errors import ProviderFailure
from app.providers.wire.failures import Account, ConnectionLost, refusal
from app.providers.wire.wire_json import dump, load

# The status that an error inside a 200 would have had. Those that are not here: what their words say, else 500.
_STATUS = {
    "invalid_request_error": 400,
    "context_length_exceeded": 400,
    "exceed_context_size_error": 400,
    "validation": 422,
    "invalid_api_key": 401,
    "authentication_error": 401,
    "permission_error": 403,
    "not_found_error": 404,
    "insufficient_quota": 429,
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
_OVERFLOWS = frozenset({"context_length_exceeded", "exceed_context_size_error"})
_SPENT = "insufficient_quota"


@dataclass(frozen=True, slots=True)
class Refusal:
    """`kind`: the code where it is a word, else the type."""

    status: int
    kind: str
    message: str
    http_status: int


def failure_of(error: Exception, account: Account) -> ProviderFailure | None:
    """None for an exception that is not the provider's. The key never gets into the detail."""
    import openai

    match error:
        case ProviderFailure():
            return account.without_key(error)
        case openai.APIStatusError():
            return account.without_key(_failure(refusal_of(error)))
        case openai.APIConnectionError():
            return account.lost(type(error.__cause__).__name__)
        case ConnectionLost():
            return account.lost(str(error))
        case openai.OpenAIError():
            return ProviderFailure("provider_error", "The provider's answer could not be read.", transient=False)
    return None


def refusal_of(error: Any) -> Refusal:
    """Of the SDK's APIStatusError."""
    try:
        body = load(error.response.content)
    except ValueError:
        body = None
    kind, message = _words(body)
    status: int = error.status_code
    return Refusal(_true_status(status, kind, message), kind, message, status)


def stream_failure(event: str, data: Any) -> ProviderFailure | None:
    """For an error that came as data of a stream, None for a chunk."""
    if not (event == "error" or data.get("error") or data.get("object") == "error"):
        return None
    kind, message = _words(data)
    code = str((data.get("error") if isinstance(data.get("error"), dict) else data).get("code") or "")
    status = int(code) if code.isdecimal() and 400 <= int(code) < 600 else _STATUS.get(kind, 500)
    return _failure(Refusal(_true_status(status, kind, message), kind, message, 200))


def _failure(refused: Refusal) -> ProviderFailure:
    """An overflow that only its code tells is told by it."""
    message = refused.message
    if refused.kind in _OVERFLOWS and not classify(400, message, None):
        message = f"{message} ({refused.kind})".strip()
    if refused.kind == _SPENT:
        return ProviderFailure("provider_rejected", message, transient=False, status=refused.http_status)
    return refusal(refused.status, refused.kind, message, refused.http_status)


def _true_status(status: int, kind: str, message: str) -> int:
    """Some servers call an overflow their own error."""
    return 400 if status == 500 and (kind in _OVERFLOWS or classify(400, message, None)) else status


def _words(body: Any) -> tuple[str, str]:
    """Kind and message of `{"error": {...}}`, `{"error": "..."}`, `{"message": ...}` or `{"detail": ...}`."""
    if not isinstance(body, dict):
        return "", ""
    inner = body.get("error") or body
    if not isinstance(inner, dict):
        return str(body.get("error_type") or ""), _text(inner)
    code = inner.get("code")
    kind = code if isinstance(code, str) and not code.isdecimal() else inner.get("type")
    message = _text(inner.get("message") or inner.get("detail")) + _more(inner)
    return kind if isinstance(kind, str) else "", message


def _more(inner: Mapping[str, Any]) -> str:
    """What a router quotes of the server behind it, and the numbers that one server gives beside its words."""
    metadata = inner.get("metadata")
    raw = _text(metadata.get("raw")) if isinstance(metadata, dict) else ""
    numbers = inner.get("n_prompt_tokens"), inner.get("n_ctx")
    sizes = f": {numbers[0]} tokens > {numbers[1]} maximum" if all(numbers) else ""
    return (f" {raw}" if raw else "") + sizes


def _text(value: Any) -> str:
    if value is None:
        return ""
    try:
        return value if isinstance(value, str) else dump(value).decode()
    except RecursionError:
        return ""
