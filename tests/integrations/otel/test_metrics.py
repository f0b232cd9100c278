"""What is measured: how long runs, requests and calls take, and how many tokens are used."""

from typing import Any

import pytest

from suture import ChatModelAgent, Message, ModelRetryConfig, TokenUsage, tool
from suture.messages import ResponseMeta
from suture.testing import ScriptedModel
from tests.integrations.otel.recording import Recorder, calls

CHAT = {
    "gen_ai.operation.name": "chat",
    "gen_ai.provider.name": "suture",
    "gen_ai.request.model": "ScriptedModel",
}


@tool
async def tides(port: str) -> str:
    """Look up today's high tide."""
    return f"06:12 in {port}"


def run(recorder: Recorder, *replies: Any, **choices: Any) -> None:
    model = ScriptedModel(list(replies))
    agent = ChatModelAgent(name="harbour", model=model, tools=[tides], middlewares=[recorder.telemetry], **choices)
    agent.run_sync("When?")


def replied(text: str, **extension: str) -> Message:
    usage = TokenUsage(prompt_tokens=900, completion_tokens=40, total_tokens=940)
    return Message("assistant", text, response_meta=ResponseMeta(usage=usage, extension=extension))


def test_tokens_are_counted_by_request_apart_for_input_and_output():
    recorder = Recorder()
    run(recorder, replied("At 06:12.", model="tide-2"))
    points = recorder.points("gen_ai.client.token.usage")
    about = {**CHAT, "gen_ai.response.model": "tide-2"}
    assert [(dict(point.attributes or {}), point.sum) for point in points] == [
        ({**about, "gen_ai.token.type": "input"}, 900),
        ({**about, "gen_ai.token.type": "output"}, 40),
    ]
    assert tuple(points[0].explicit_bounds) == (
        1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864,
    )  # fmt: skip


def test_a_reply_that_does_not_say_what_it_cost_is_not_counted():
    recorder = Recorder()
    run(recorder, "At 06:12.")
    assert recorder.points("gen_ai.client.token.usage") == []


def test_each_request_is_timed_and_a_failed_one_says_so():
    recorder = Recorder()
    retry = ModelRetryConfig(max_retries=1, backoff=lambda _: 0)
    run(recorder, TimeoutError(), "At 06:12.", model_retry_config=retry)
    name = "gen_ai.client.operation.duration"
    assert sorted(recorder.measured(name), key=lambda found: len(found[0])) == [
        (CHAT, 1),
        ({**CHAT, "error.type": "TimeoutError"}, 1),
    ]
    assert tuple(recorder.points(name)[0].explicit_bounds) == (
        0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92,
    )  # fmt: skip


def test_runs_and_calls_are_timed_and_a_tool_that_a_model_made_up_has_no_series_of_its_own():
    recorder = Recorder()
    run(recorder, calls(("tides", '{"port": "Dover"}'), ("tidse", "{}")), "At 06:12.")
    assert recorder.measured("gen_ai.invoke_agent.duration") == [({"gen_ai.agent.name": "harbour"}, 1)]
    about = {"gen_ai.tool.type": "function", "gen_ai.agent.name": "harbour"}
    found = sorted(recorder.measured("gen_ai.execute_tool.duration"), key=lambda found: len(found[0]))
    assert found == [
        ({**about, "gen_ai.tool.name": "tides"}, 1),
        ({**about, "gen_ai.tool.name": "_OTHER", "error.type": "tool_error"}, 1),
    ]


def test_the_time_of_a_run_is_that_of_its_span():
    recorder = Recorder()
    run(recorder, "At 06:12.")
    (point,) = recorder.points("gen_ai.invoke_agent.duration")
    span = recorder.one("invoke_agent harbour")
    assert span.end_time is not None
    assert span.start_time is not None
    assert point.sum == pytest.approx((span.end_time - span.start_time) / 1e9, abs=1e-6)
