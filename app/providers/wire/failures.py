"""Failures that every provider's API has, as ProviderFailure. Each adapter reads the errors of its own API."""

from dataclasses import dataclass, field

from app.context.overflow import classify
from app.conversation.clean import clean_text
from app.errors import ProviderFailure

MAX_DETAIL_CHARS = 2000
EVENT_STREAM = "text/event-stream"


class ConnectionLost(Exception):
    """The answer stopped while it was read. Holds the name of the transport's exception."""


@dataclass(frozen=True, slots=True)
class Account:
    """Where requests go and as whom. `prefix`: of the two settings that say so, as in ANTHROPIC_API_KEY."""

    prefix: str
    api_key: str = field(repr=False)
    base_url: str | None

    def hidden(self, value: object) -> str:
        """A text of the provider, cleaned and without the key."""
        text = clean_text(value) if isinstance(value, str) else ""
        # A shorter key is a stand-in, and would be found in the middle of words.
        shown = text.replace(self.api_key, "[key]") if len(self.api_key) >= 8 else text
        return shown[:MAX_DETAIL_CHARS]

    def without_key(self, failure: ProviderFailure) -> ProviderFailure:
        detail = self.hidden(failure.detail)
        return ProviderFailure(failure.code, detail, transient=failure.transient, status=failure.provider_status)

    def lost(self, name: str) -> ProviderFailure:
        """`name` of the transport's exception: its text may hold an address with a password, or a header."""
        if name in ("UnsupportedProtocol", "LocalProtocolError"):
            detail = f"The request could not be sent: check {self.prefix}_BASE_URL and {self.prefix}_API_KEY."
            return ProviderFailure("provider_rejected", detail, transient=False)
        if name == "TooManyRedirects":
            return self.elsewhere("redirects without an end")
        what = "was silent for too long" if name.endswith("Timeout") else "could not be reached, or hung up"
        return ProviderFailure("provider_error", f"The provider {what} ({name}).", transient=True)

    def elsewhere(self, what: str, status: int | None = None) -> ProviderFailure:
        """For an address that is no such API: it would answer the same again."""
        detail = f"The provider {what}: check {self.prefix}_BASE_URL."
        return ProviderFailure("provider_error", detail, transient=False, status=status)

    def check_stream(self, content_type: str | None) -> None:
        """Raises ProviderFailure for a page where a stream was asked for."""
        if (kind := media_type(content_type)) != EVENT_STREAM:
            raise self.elsewhere(f"answered {clean_text(kind)[:80]} instead of an event stream", 200)


def media_type(content_type: str | None) -> str:
    return (content_type or EVENT_STREAM).partition(";")[0].strip().lower()


def broken_stream(what: str) -> ProviderFailure:
    return ProviderFailure(
        "provider_error", f"The provider's answer is incomplete: {what}.", transient=True, status=200
    )


def refusal(status: int, kind: str | None, message: str, http_status: int) -> ProviderFailure:
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
