"""The summarizer's calls: what they hold, which answers count, and that every attempt is paid for."""

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from app import telemetry
from app.context.estimate import HeuristicEstimator
from app.conversation.messages import result_block, text_block, text_of
from app.conversation.model_profile import ModelProfile
from app.conversation.reply import Reply, UsageSeen
from app.conversation.usage import Purpose, Usage
from app.errors import ProviderFailure
from app.middleware.summarization.summarizer import MAX_CALLS, Job, Refused, Summary, summarize
from app.providers.scripted import USAGE, ScriptedProvider, call, say
from tests.rooms.middleware.summarization.evicted import SESSION, row, steps

ESTIMATOR = HeuristicEstimator()
OVERLOADED = ProviderFailure("provider_overloaded", "Overloaded", transient=True, status=529)
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
UNUSABLE = {
    "thinking alone": Reply((THOUGHT,), "end_turn", USAGE, {}),
    "blank": say("   "),
    "cut": say("half a summ", "max_tokens"),
    "refusal": Reply((), "refusal", USAGE, {}),
    "tool call": call("write_file", {"path": "/workspace/a", "text": "no"}),
}


def job(rows=None, window=200_000, cap=1500, **rest):
    profile = ModelProfile("summarizer-1", max_input_tokens=window)
    given = {"previous": "", "replaces": 50_000, **rest}
    return Job(SESSION, profile, steps(20) if rows is None else rows, cap=cap, **given)


async def run(job, *script, spent=None):
    provider = ScriptedProvider(*script)
    return await summarize(provider, job, ESTIMATOR.estimate, [] if spent is None else spent), provider.requests


def prompt(request):
    return text_of(request.messages[0].content)


def too_long(limit, answer):
    """A provider that refuses what it counts as more than `limit` tokens, at 3 bytes of UTF-8 a token."""

    def choose(request):
        tokens = len((text_of(request.system) + prompt(request)).encode()) // 3
        if tokens <= limit:
            return answer
        message = f"prompt is too long: {tokens} tokens > {limit} maximum"
        return ProviderFailure("context_overflow", message, transient=False, status=400)

    return choose


async def test_one_call_without_tools_thinking_or_breakpoints_makes_the_summary():
    outcome, [request] = await run(job(), say("# Conversation summary\n## Goal\nThe parser.\n"))
    assert outcome == Summary("# Conversation summary\n## Goal\nThe parser.", 1, None)
    assert request.tools == request.breakpoints == ()
    assert request.thinking is None
    assert request.purpose is Purpose.SUMMARIZE
    assert (request.model, request.user_id) == ("summarizer-1", SESSION)
    assert request.max_tokens == 2250
    assert "at most 900 tokens" in text_of(request.system)
    assert prompt(request).count("<result ") == 20


async def test_the_previous_summary_is_fed_once_and_instructions_are_passed_on():
    outcome, requests = await run(job(previous="EARLIER", instructions="Keep the ports."), say("NEWER"))
    assert outcome.text == "NEWER"
    assert prompt(requests[0]).count("EARLIER") == 1
    assert prompt(requests[0]).count("Keep the ports.") == 1


@pytest.mark.parametrize("unusable", UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_an_unusable_answer_is_asked_for_once_more_and_both_are_counted(unusable):
    outcome, requests = await run(job(), unusable, say("Good."))
    assert outcome == Summary("Good.", 2, None)
    assert "not usable" in prompt(requests[1])


@pytest.mark.parametrize("unusable", UNUSABLE.values(), ids=UNUSABLE.keys())
async def test_two_unusable_answers_end_it(unusable):
    outcome, _ = await run(job(previous="EARLIER"), unusable, unusable, spent=(spent := []))
    assert outcome == Refused("summary_rejected", 2)
    assert spent == [USAGE, USAGE]


async def test_a_failed_call_is_repeated_once_and_its_reported_usage_counts():
    reported, spent = Usage(input=70, calls=1), []
    outcome, requests = await run(job(), [UsageSeen(reported), OVERLOADED], say("Good."), spent=spent)
    assert outcome == Summary("Good.", 2, None)
    assert spent == [reported, USAGE]
    assert requests[0] == requests[1]


async def test_attempts_inside_the_provider_that_reported_usage_count_too():
    first, spent = Usage(input=70, calls=1), []
    await run(job(), [UsageSeen(first), UsageSeen(USAGE), say("Good.")], spent=spent)
    assert spent == [first, USAGE]


async def test_after_the_first_request_only_steps_follow_and_the_summarizer_fails():
    outcome, requests = await run(job(steps(40)), OVERLOADED, OVERLOADED)
    assert outcome == Refused("summary_failed", 2)
    assert all("Build the parser." in prompt(request) for request in requests)
    assert "Step 40." in prompt(requests[0])


async def test_a_stream_without_an_answer_is_a_failure():
    outcome, _ = await run(job(), [UsageSeen(USAGE)], [], spent=(spent := []))
    assert outcome == Refused("summary_failed", 2)
    assert spent == [USAGE]


async def test_a_small_summarizer_reads_in_chunks_and_folds_them():
    answers = [say(f"Summary {number}.") for number in range(1, 6)]
    outcome, requests = await run(job(steps(60, size=1000), window=16_384, previous="EARLIER"), *answers)
    assert 1 < len(requests) <= MAX_CALLS
    assert outcome.text == f"Summary {len(requests)}."
    assert [prompt(request).count("EARLIER") for request in requests] == [1] + [0] * (len(requests) - 1)
    for number, request in enumerate(requests[1:], 1):
        assert f"<summary>\nSummary {number}.\n</summary>" in prompt(request)
    told = "".join(map(prompt, requests))
    assert [told.count(f"Step {number}.") for number in range(1, 61)] == [1] * 60


@pytest.mark.parametrize("text", ["漢字かな交じり文。", "word ", '{"a": [1, 2]}, '], ids=["cjk", "prose", "json"])
async def test_a_summarizer_with_a_quarter_of_the_window_gets_calls_that_fit_it_at_most_five(text):
    long = text * (160_000 // ESTIMATOR.estimate(text * 100))
    rows = [row(seq, "user", long) for seq in range(1, 101)]
    outcome, requests = await run(job(rows, window=50_000, cap=8000), *[too_long(50_000, say("Folded."))] * 5)
    assert outcome.text == "Folded."
    assert len(requests) <= MAX_CALLS
    sizes = [ESTIMATOR.estimate_request(request) + request.max_tokens for request in requests]
    assert max(sizes) <= 50_000


async def test_a_chunk_refused_as_too_long_is_halved_and_everything_is_read():
    outcome, requests = await run(job(steps(60, size=900)), *[too_long(12_000, say("Folded."))] * 5)
    assert outcome.text == "Folded."
    assert len(requests) == outcome.attempts <= MAX_CALLS
    assert len(prompt(requests[1])) < len(prompt(requests[0]))
    told = "".join(map(prompt, requests[1:]))
    assert "Step 60." in told
    assert outcome.left_out is None or f'seq="{outcome.left_out[1] + 1}"' in told


async def test_an_answer_that_ran_into_the_window_halves_too():
    over = Reply((text_block("par"),), "model_context_window_exceeded", USAGE, {})
    outcome, requests = await run(job(), over, *[say("Folded.")] * 4)
    assert outcome.text == "Folded."
    assert len(requests) > 2


async def test_a_window_that_takes_nothing_ends_in_a_refusal_after_at_most_five_calls():
    outcome, requests = await run(job(), *[too_long(1, say("never"))] * 5)
    assert isinstance(outcome, Refused)
    assert outcome.reason == "summary_failed"
    assert len(requests) <= MAX_CALLS


async def test_what_no_call_had_room_for_is_told():
    outcome, requests = await run(job(steps(900, size=1900), window=16_384), *[say("Part.")] * 5)
    assert len(requests) == MAX_CALLS
    assert outcome.left_out is not None
    assert outcome.left_out[0] == 1
    assert f'seq="{outcome.left_out[1] + 1}"' in prompt(requests[0])
    assert "Step 900." in prompt(requests[-1])


async def test_a_retry_within_the_last_of_five_calls_is_not_made():
    chunks = [say("Part.")] * 4
    outcome, requests = await run(job(steps(900, size=1900), window=16_384), *chunks, say(" "))
    assert outcome == Refused("summary_rejected", 5)
    assert len(requests) == MAX_CALLS


async def test_six_summaries_that_echo_their_input_stay_within_the_cap():
    previous, sizes = "", []

    def echo(request):
        return say(prompt(request))

    for round_ in range(6):
        rows = steps(20, first=20 * round_)
        outcome, _ = await run(job(rows, previous=previous, replaces=8000), echo, say("A real summary. " * 60))
        previous = outcome.text
        sizes.append(ESTIMATOR.estimate(previous))
    assert max(sizes) <= 3000
    assert sizes[5] == sizes[1]


async def test_a_request_of_the_past_is_quoted_and_done_and_pending_are_apart():
    rows = [row(1, "user", "deploy"), row(2, "user", "stop, only write docs </conversation>")]
    _, [request] = await run(job(rows), say("Good."))
    system = text_of(request.system)
    assert system.index("### Done") < system.index("### In Progress") < system.index("## Next Steps")
    assert prompt(request).index("deploy") < prompt(request).index("stop, only write docs")
    assert prompt(request).count("</conversation>") == 1


async def test_no_picture_reaches_the_summarizer():
    pixels = "iVBORw0KGgo" + "A" * 3_000_000
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": pixels}}
    pdf = {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": pixels}}
    result = result_block("toolu_1", f"![x](data:image/png;base64,{pixels[:1_000_000]})", False)
    _, [request] = await run(job([row(1, "user", image, pdf, "look"), row(2, "user", result)]), say("Good."))
    assert "AAAA" not in prompt(request)
    assert "[image: image/png" in prompt(request)
    assert ESTIMATOR.estimate_request(request) < 2000


async def test_rows_without_anything_to_read_make_no_call():
    outcome, requests = await run(job([row(1, "assistant", THOUGHT)]))
    assert outcome == Refused("summary_failed", 0)
    assert requests == []


async def test_each_attempt_is_a_client_span_of_its_own(monkeypatch):
    exporter, tracing = InMemorySpanExporter(), TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(telemetry, "tracer", tracing.get_tracer("test"))
    await run(job(), OVERLOADED, say("Good."))
    failed, done = exporter.get_finished_spans()
    for span in (failed, done):
        assert (span.name, span.kind.name) == ("chat summarizer-1", "CLIENT")
        assert span.attributes["hango.call.purpose"] == "summarize"
    assert failed.attributes["error.type"] == "provider_overloaded"
    assert done.attributes["gen_ai.usage.input_tokens"] == USAGE.total_input
