"""Which numbers are in force: session over profile over settings over preset over the shipped table."""

from dataclasses import fields
from typing import Any

import pytest

from app.config import load
from app.context.budget import make_budget
from app.context.keeping import choose_tail
from app.conversation.messages import Message, text_block
from app.conversation.model_profile import MIN_VIEW_CAP, ModelProfile, check, merge
from app.conversation.presets import HANGO, PRESETS
from app.errors import InvalidPayload, StartupError
from app.sessions.profiles import overridden, read_context
from tests.pure.context.histories import rows_of

MODEL = "claude-haiku-4-5"
NAMES = "hango, early-micro, pipeline, pairs, profile, seventy-thirty"


def settings(**variables: str):
    return load({"HANGO_DATA_DIR": "/data", **{f"HANGO_{name}": value for name, value in variables.items()}})


def profile(**variables: str) -> ModelProfile:
    return settings(**variables).profile(MODEL)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_keeps_the_order_of_the_marks(name: str):
    found = profile(CONTEXT_PRESET=name)
    check(found)
    assert found.preset is PRESETS[name]
    assert (found.trigger_frac, found.keep_frac, found.micro_frac) == (
        PRESETS[name].trigger_frac,
        PRESETS[name].keep_frac,
        PRESETS[name].micro_frac,
    )
    assert found.view_cap == 0 or found.view_cap >= MIN_VIEW_CAP


def test_the_default_is_hango_and_each_other_one_differs_from_it():
    assert profile().preset is HANGO
    numbers = [tuple(getattr(preset, field.name) for field in fields(preset)[1:]) for preset in PRESETS.values()]
    assert len({*numbers}) == len(PRESETS)
    assert ", ".join(PRESETS) == NAMES


def test_a_setting_goes_before_the_preset_and_a_profile_before_both():
    own = '{"claude-haiku-4-5": {"trigger_frac": 0.7}}'
    found = profile(CONTEXT_PRESET="early-micro", CONTEXT_TRIGGER_FRAC="0.75", CONTEXT_KEEP_FRAC="0.2")
    assert (found.trigger_frac, found.keep_frac, found.micro_frac) == (0.75, 0.2, 0.60)
    found = profile(CONTEXT_PRESET="early-micro", CONTEXT_TRIGGER_FRAC="0.75", MODEL_PROFILES=own)
    assert found.trigger_frac == 0.7


def test_a_session_goes_before_all_and_its_preset_only_before_the_servers_preset():
    server = profile(CONTEXT_PRESET="pairs", CONTEXT_TRIGGER_FRAC="0.75")
    found = overridden(server, {"preset": "early-micro"})
    assert (found.preset.name, found.trigger_frac, found.micro_frac) == ("early-micro", 0.75, 0.60)
    assert not found.summarizes_pairs
    found = overridden(server, {"preset": "early-micro", "trigger_frac": 0.7, "tool_pair_summaries": True})
    assert (found.trigger_frac, found.summarizes_pairs) == (0.7, True)
    assert overridden(server, {"max_view_messages": 20}).view_cap == 20
    assert overridden(server, {"tool_pair_summaries": False}).summarizes_pairs is False


def test_tiers_of_the_settings_go_before_the_presets():
    assert profile(CONTEXT_PRESET="pipeline").view_cap == 50
    assert profile(CONTEXT_PRESET="pipeline", MAX_VIEW_MESSAGES="0").view_cap == 0
    assert profile(TOOL_PAIR_SUMMARIES="on").summarizes_pairs
    assert not profile(CONTEXT_PRESET="pairs", TOOL_PAIR_SUMMARIES="off").summarizes_pairs


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"CONTEXT_PRESET": "goose"}, f"HANGO_CONTEXT_PRESET: must be one of {NAMES}"),
        ({"CONTEXT_PRESET": "early-micro", "CONTEXT_TRIGGER_FRAC": "0.5"}, "HANGO_CONTEXT_PRESET, "),
        ({"CONTEXT_MICRO_FRAC": "0.05"}, "micro_frac (0.05)"),
        ({"CONTEXT_MICRO_FRAC": "0.9"}, "micro_frac (0.9)"),
        ({"MAX_VIEW_MESSAGES": "9"}, "HANGO_MAX_VIEW_MESSAGES"),
        ({"MAX_VIEW_MESSAGES": "-1"}, "HANGO_MAX_VIEW_MESSAGES"),
        ({"TOOL_PAIR_SUMMARIES": "perhaps"}, "HANGO_TOOL_PAIR_SUMMARIES"),
    ],
)
def test_a_bad_choice_is_a_start_up_error_that_names_the_variable(variables: dict[str, str], named: str):
    with pytest.raises(StartupError) as refused:
        settings(**variables)
    assert named in refused.value.detail


@pytest.mark.parametrize(
    ("context", "field", "rule"),
    [
        ({"preset": "goose"}, "context.preset", "must be one of early-micro, hango"),
        ({"preset": "early-micro"}, "context.preset", "must hold"),
        ({"preset": "early-micro", "trigger_frac": 0.5}, "context.trigger_frac", "must hold"),
        ({"max_view_messages": 9}, "context.max_view_messages", "0 (no cap) or at least 10"),
    ],
)
def test_a_sessions_bad_choice_names_its_field(context: dict[str, Any], field: str, rule: str):
    with pytest.raises(InvalidPayload) as refused:
        read_context(profile(CONTEXT_TRIGGER_FRAC="0.55"), context)
    [error] = refused.value.extra["errors"]
    assert (error["field"], rule in error["rule"]) == (field, True)


def talk(count: int):
    return rows_of([Message("assistant" if n % 2 else "user", (text_block(f"line {n}"),)) for n in range(count)])


def tail(name: str, sizes: list[int], **chosen: Any) -> int | None:
    rows = talk(len(sizes))
    found = merge(ModelProfile("m", 100_000), chosen, PRESETS[name])
    keep = make_budget(found, None, None).keep
    return choose_tail(rows, dict(enumerate(sizes, 1)), found, keep, 1)


def test_each_preset_has_its_own_kept_tail():
    even = [1_000] * 40
    assert tail("hango", even) == 31
    assert tail("pipeline", even) == 36
    assert tail("pairs", [*even, 1_000]) == 41
    assert tail("seventy-thirty", even) == 29
    assert tail("seventy-thirty", even[:10]) == 7
    assert tail("early-micro", even) == 21


def test_a_tail_that_would_begin_with_an_answer_begins_with_its_request_where_that_is_near():
    assert tail("early-micro", [1_000] * 20 + [30_000, 19_000, 500, 500]) == 22
    assert tail("early-micro", [1_000] * 20 + [10_000, 19_000, 500, 500]) == 21


def test_a_chosen_fraction_goes_before_a_presets_messages():
    assert tail("pairs", [1_000] * 40, keep_frac=0.2) == 21
    assert tail("early-micro", [1_000] * 60, keep_frac=0.4) == 21


def test_a_model_of_unknown_size_keeps_six_messages_unless_its_preset_counts_messages():
    rows, sizes = talk(40), dict.fromkeys(range(1, 41), 1_000)
    for name, cut in (("hango", 35), ("early-micro", 35), ("pipeline", 36), ("pairs", 40)):
        unknown = merge(ModelProfile("m", 100_000, known=False), {}, PRESETS[name])
        assert choose_tail(rows, sizes, unknown, 10_000, 1) == cut
