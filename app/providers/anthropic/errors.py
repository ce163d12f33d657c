"""The one place that knows the provider's errors: SDK exceptions and wire error types become ProviderFailure."""

from app.context.overflow import classify
from app.conversation.clean import clean_text
from app.errors import ProviderFailure

MAX_DETAIL_CHARS = 2000

# Error events come inside a 200; these are the statuses that the same types have as answers.
_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_STREAM = "text/event-stream"
_UNSENDABLE = "The request could not be sent: check ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY."


class ConnectionLost(Exception):
    """The answer stopped while it was read. Holds the name of the transport's exception."""


def failure_of(error: Exception, api_key: str) -> ProviderFailure | None:
    """None for an exception that is not the provider's. The key never gets into the detail."""
    import anthropic

    match error:
        case ProviderFailure():
            detail = _message(error.detail, api_key)
            return ProviderFailure(error.code, detail, transient=error.transient, status=error.provider_status)
        case anthropic.APIStatusError():
            return _refusal(error.status_code, error.type, _message(error.api_message, api_key), error.status_code)
        case anthropic.APIConnectionError():
            return _lost(type(error.__cause__).__name__)
        case ConnectionLost():
            return _lost(str(error))
        case anthropic.AnthropicError():
            return ProviderFailure("provider_error", "The provider's answer could not be read.", transient=False)
    return None


def _lost(name: str) -> ProviderFailure:
    """`name` of the transport's exception: its text may hold an address with a password, or a header."""
    if name in ("UnsupportedProtocol", "LocalProtocolError"):
        return ProviderFailure("provider_rejected", _UNSENDABLE, transient=False)
    if name == "TooManyRedirects":
        return _elsewhere("redirects without an end")
    what = "was silent for too long" if name.endswith("Timeout") else "could not be reached, or hung up"
    return ProviderFailure("provider_error", f"The provider {what} ({name}).", transient=True)


def check_stream(content_type: str | None) -> None:
    """Raises ProviderFailure for a page where a stream was asked for: the same address would answer the same again."""
    kind = (content_type or _STREAM).partition(";")[0].strip().lower()
    if kind != _STREAM:
        raise _elsewhere(f"answered {clean_text(kind)[:80]} instead of an event stream", 200)


def _elsewhere(what: str, status: int | None = None) -> ProviderFailure:
    detail = f"The provider {what}: check ANTHROPIC_BASE_URL."
    return ProviderFailure("provider_error", detail, transient=False, status=status)


def wire_failure(kind: object, message: object) -> ProviderFailure:
    """An error event inside a stream that began as a 200."""
    name = kind if isinstance(kind, str) else ""
    return _refusal(_STATUS.get(name, 500), name, clean_text(message) if isinstance(message, str) else "", 200)


def broken_stream(what: str) -> ProviderFailure:
    return ProviderFailure(
        "provider_error", f"The provider's answer is incomplete: {what}.", transient=True, status=200
    )


def _refusal(status: int, kind: str | None, message: str, http_status: int) -> ProviderFailure:
    """In this order: an overload may speak of tokens, and an overflow is a 400 that another request can avoid."""
    detail = message or f"The provider answered {status} {kind or ''}".rstrip() + "."
    if status in (429, 529) or kind in ("rate_limit_error", "overloaded_error"):
        return ProviderFailure("provider_overloaded", detail, transient=True, status=http_status)
    if classify(status, message, None):
        return ProviderFailure("context_overflow", detail, transient=False, status=http_status)
    # 408 and 409 (a lock that timed out) are the two of the 4xx that pass by themselves.
    if status >= 500 or status in (408, 409):
        return ProviderFailure("provider_error", detail, transient=True, status=http_status)
    return ProviderFailure("provider_rejected", detail, transient=False, status=http_status)


def _message(value: object, api_key: str) -> str:
    text = clean_text(value) if isinstance(value, str) else ""
    # A shorter key is a stand-in, and would be found in the middle of words.
    hidden = text.replace(api_key, "[key]") if len(api_key) >= 8 else text
    return hidden[:MAX_DETAIL_CHARS]
