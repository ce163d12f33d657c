from dataclasses import replace

import pytest

from app.conversation.model_profile import TABLE, ModelProfile
from app.conversation.session import SessionSettings
from app.errors import InvalidPayload
from app.sessions.opening import Opening
from app.sessions.profiles import effective_profile, read_context

HAIKU = TABLE["claude-haiku-4-5"]
SONNET = TABLE["claude-sonnet-4-6"]
RULE = "0 < keep_frac < micro_frac <= trigger_frac < 1 must hold"


@pytest.mark.parametrize(
    ("context", "field", "rule"),
    [
        ({"tiers": 1}, "context.tiers", "no such field; known are compaction, context_window_tokens"),
        ({"max_input_tokens": "many"}, "context.max_input_tokens", "must be a whole number"),
        ({"max_input_tokens": True}, "context.max_input_tokens", "must be a whole number"),
        ({"max_input_tokens": 4095}, "context.max_input_tokens", "must be at least 4096"),
        ({"context_window_tokens": 200_001}, "context.context_window_tokens", "at most max_input_tokens"),
        ({"context_window_tokens": 10.5}, "context.context_window_tokens", "must be a whole number"),
        ({"max_view_messages": -1}, "context.max_view_messages", "0 or more"),
        ({"trigger_frac": "high"}, "context.trigger_frac", "must be a number"),
        ({"trigger_frac": 1}, "context.trigger_frac", RULE),
        ({"trigger_frac": float("nan")}, "context.trigger_frac", RULE),
        ({"keep_frac": 0.9}, "context.keep_frac", RULE),
        ({"micro_frac": 0.9}, "context.micro_frac", RULE),
        ({"compaction": "perhaps"}, "context.compaction", "true or false"),
        ({"preset": "mine"}, "context.preset", "must be one of early-micro, hango, pairs"),
        ({"preset": []}, "context.preset", "must be one of"),
        ({"summarizer_model": ""}, "context.summarizer_model", "must be a model's name"),
    ],
)
def test_a_bad_override_is_refused_by_its_field(context, field, rule):
    with pytest.raises(InvalidPayload) as refused:
        read_context(HAIKU, context)
    (error,) = refused.value.extra["errors"]
    assert (error["field"], rule in error["rule"]) == (field, True), error


def test_overrides_of_later_tiers_are_kept_and_unset_ones_left_out():
    context = {"preset": "pairs", "max_view_messages": 50, "tool_pair_summaries": True, "compaction": False}
    assert read_context(HAIKU, {**context, "micro_frac": None}) == context


async def test_a_sessions_own_context_goes_before_the_table(sessions):
    context = {"trigger_frac": 0.5, "context_window_tokens": 50_000, "preset": "hango", "summarizer_model": "tiny"}
    session, _, _ = await sessions.open(Opening("acme", "claude-haiku-4-5", context=context))
    profile = effective_profile(sessions.profiles, session)
    assert profile == replace(HAIKU, trigger_frac=0.5, context_window_tokens=50_000, summarizer_model="tiny")
    assert profile.trigger_tokens == 25_000


async def test_a_turns_model_goes_before_the_sessions_and_its_window_is_the_limit(sessions):
    opening = Opening("acme", SONNET.model, context={"context_window_tokens": 500_000})
    session, _, _ = await sessions.open(opening)
    assert effective_profile(sessions.profiles, session).working_window == 500_000
    other = effective_profile(sessions.profiles, session, "claude-haiku-4-5")
    assert (other.model, other.working_window) == ("claude-haiku-4-5", 200_000)


async def test_a_smaller_input_limit_bounds_the_window_of_the_table(sessions):
    session, _, _ = await sessions.open(Opening("acme", SONNET.model, context={"max_input_tokens": 30_000}))
    table = replace(SONNET, context_window_tokens=100_000)
    assert effective_profile(lambda model: table, session).working_window == 30_000


async def test_fractions_that_contradict_another_models_table_are_left_out(sessions):
    session, _, _ = await sessions.open(Opening("acme", SONNET.model, context={"trigger_frac": 0.5}))
    early = ModelProfile("early", micro_frac=0.6)
    assert effective_profile(lambda model: early, session, "early") == early


async def test_a_session_without_overrides_has_the_profile_of_the_table(sessions):
    session, _, _ = await sessions.open(Opening("acme", SONNET.model))
    assert session.settings == SessionSettings()
    assert effective_profile(sessions.profiles, session) == SONNET
