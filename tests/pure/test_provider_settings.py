"""Which provider the settings choose, and what it needs."""

import pytest

from app.config import load
from app.errors import StartupError

URL, MODEL = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, {"HANGO_MODEL": "local:8b"}
OPENAI, KEY = {"HANGO_PROVIDER": "openai"}, {"OPENAI_API_KEY": "sk-1"}


@pytest.mark.parametrize("given", [URL, KEY, {**URL, **KEY}])
def test_a_server_needs_an_address_or_a_key_and_the_name_of_a_model(given):
    settings = load({**OPENAI, **MODEL, **given})
    assert (settings.provider_name, settings.model_name) == ("openai", "local:8b")


@pytest.mark.parametrize(
    ("given", "told"), [(MODEL, "HANGO_PROVIDER: openai needs"), (KEY, "HANGO_MODEL: openai needs")]
)
def test_what_is_missing_is_told_by_name(given, told):
    with pytest.raises(StartupError, match=told):
        load({**OPENAI, **given})


def test_a_key_alone_does_not_choose_it():
    assert load(KEY).provider_name == "offline"


def test_a_key_is_in_no_text_of_the_settings():
    assert "sk-1" not in repr(load({**OPENAI, **MODEL, **KEY}))
