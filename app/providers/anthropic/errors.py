"""The one place that knows this API's errors: SDK exceptions and wire error types become ProviderFailure."""

from app.conversation.clean import clean_text
from app.errors import ProviderFailure
from app.providers.wire.failures import Account, ConnectionLost, refusal

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


def failure_of(error: Exception, account: Account) -> ProviderFailure | None:
    """None for an exception that is not the provider's. The key never gets into the detail."""
    import anthropic

    match error:
        case ProviderFailure():
            return account.without_key(error)
        case anthropic.APIStatusError():
            return refusal(error.status_code, error.type, account.hidden(error.api_message), error.status_code)
        case anthropic.APIConnectionError():
            return account.lost(type(error.__cause__).__name__)
        case ConnectionLost():
            return account.lost(str(error))
        case anthropic.AnthropicError():
            return ProviderFailure("provider_error", "The provider's answer could not be read.", transient=False)
    return None


def wire_failure(kind: object, message: object) -> ProviderFailure:
    """An error event inside a stream that began as a 200."""
    name = kind if isinstance(kind, str) else ""
    return refusal(_STATUS.get(name, 500), name, clean_text(message) if isinstance(message, str) else "", 200)
