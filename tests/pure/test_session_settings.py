"""What is stored of a session's settings, read by releases that know less of them, or more."""

from dataclasses import asdict

from app.conversation.session import SessionSettings


def test_settings_of_a_later_release_are_read_as_far_as_they_are_known():
    later = {**asdict(SessionSettings(max_tokens=100, metadata={"agent": "x"})), "colour": "green"}
    assert SessionSettings.from_json(later) == SessionSettings(max_tokens=100, metadata={"agent": "x"})


def test_settings_of_an_earlier_release_have_the_defaults_of_what_it_did_not_know():
    assert SessionSettings.from_json({"max_tokens": None, "thinking": None, "metadata": {}, "context": {}}) == (
        SessionSettings()
    )
