"""The spans of a run: which there are, how they hang together, what they say, and that they always end."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF
from opentelemetry.trace import SpanKind, StatusCode

from suture import (
    ChatModelAgent,
    ChatModelAgentMiddleware,
    Message,
    ModelRetryConfig,
    TokenUsage,
    interrupt,
    tool,
)
from suture.integrations.otel import Telemetry
from suture.messages import ResponseMeta
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.integrations.otel.recording import Recorder, calls, current_name, said


@tool
async def tides(port: str) -> str:
    """Look up today's high tide."""
    return f"06:12 in {port}"


@tool
def depths() -> str:
    """Measure, in a thread."""
    return current_name()


@tool
async def count() -> AsyncIterator[str]:
    """Count."""
    for number in "123":
        yield number + current_name()[0]


TIDES = ("tides", '{"port": "Dover"}')
WIRES = ("message", "agentic", "openai-chat")


def harbour(recorder: Recorder, *replies: Any, **choices: Any) -> ChatModelAgent[Any]:
    tools = choices.pop("tools", [tides, depths, count])
    model = choices.pop("model", None) or ScriptedModel(list(replies), chunk_size=choices.pop("chunk_size", None))
    return ChatModelAgent(name="harbour", model=model, tools=tools, middlewares=[recorder.telemetry], **choices)


# --- how they hang together -------------------------------------------------------------------


def test_model_and_tool_spans_are_below_the_span_of_the_run_and_calls_of_a_turn_beside_each_other():
    recorder = Recorder()
    harbour(recorder, calls(TIDES, TIDES), "At 06:12.").run_sync("When?")
    assert recorder.tree() == {
        "": ["invoke_agent harbour"],
        "invoke_agent harbour": [
            "chat ScriptedModel",
            "execute_tool tides",
            "execute_tool tides",
            "chat ScriptedModel",
        ],
    }


def test_the_span_of_a_run_is_below_the_span_that_it_was_started_in():
    recorder = Recorder()
    with recorder.tracer.start_as_current_span("request"):
        harbour(recorder, "hello").run_sync("hi")
        assert current_name() == "request"
    assert recorder.tree() == {
        "": ["request"],
        "request": ["invoke_agent harbour"],
        "invoke_agent harbour": ["chat ScriptedModel"],
    }


def test_an_agent_inside_another_is_below_the_call_that_it_is():
    recorder = Recorder()
    pilot = ChatModelAgent(
        name="pilot",
        description="Finds the way.",
        model=ScriptedModel([calls(TIDES), "Left."]),
        tools=[tides],
        middlewares=[recorder.telemetry],
    )
    asks = calls(("pilot", '{"request": "Which way?"}'))
    harbour(recorder, asks, "Left.", tools=[pilot.as_tool()]).run_sync("Which way?")
    assert recorder.tree() == {
        "": ["invoke_agent harbour"],
        "invoke_agent harbour": ["chat ScriptedModel", "execute_tool pilot", "chat ScriptedModel"],
        "execute_tool pilot": ["invoke_agent pilot"],
        "invoke_agent pilot": ["chat ScriptedModel", "execute_tool tides", "chat ScriptedModel"],
    }


@pytest.mark.parametrize(("name", "said"), [("depths", "execute_tool depths"), ("count", "1e2e3e")])
def test_in_a_tool_the_current_span_is_the_tools_also_in_a_thread_and_in_a_stream(name: str, said: str):
    recorder = Recorder()
    result = harbour(recorder, calls((name, "{}")), "ok").run_sync("hi")
    assert result.messages[2].content == said


def test_while_a_model_works_the_current_span_is_that_of_its_request():
    recorder = Recorder()
    seen: list[str] = []

    def reply(_: Any) -> str:
        seen.append(current_name())
        return "hello"

    class Outside(ChatModelAgentMiddleware):
        def after_model_rewrite_state(self, state: Any, model_context: Any) -> None:
            seen.append(current_name())

    model = ScriptedModel(reply)
    ChatModelAgent(name="harbour", model=model, middlewares=[recorder.telemetry, Outside()]).run_sync("hi")
    assert seen == ["chat ScriptedModel", "invoke_agent harbour"]


def test_many_runs_at_once_have_each_a_trace_of_its_own():
    recorder = Recorder()

    async def main() -> None:
        model = ScriptedModel(lambda messages: "ok" if len(messages) > 1 else calls(TIDES, TIDES))
        await asyncio.gather(*[harbour(recorder, model=model).run("hi") for _ in range(20)])

    asyncio.run(main())
    traces: dict[int, list[str]] = {}
    for span in recorder.spans:
        assert span.context is not None
        traces.setdefault(span.context.trace_id, []).append(span.name)
    assert len(traces) == 20
    assert {tuple(sorted(names)) for names in traces.values()} == {
        (
            "chat ScriptedModel",
            "chat ScriptedModel",
            "execute_tool tides",
            "execute_tool tides",
            "invoke_agent harbour",
        )
    }


# --- what they say ----------------------------------------------------------------------------


def replied(text: str) -> Message:
    usage = TokenUsage(prompt_tokens=900, completion_tokens=40, total_tokens=940, cached_tokens=800, reasoning_tokens=9)
    meta = ResponseMeta(finish_reason="stop", usage=usage, extension={"id": "resp_1", "model": "tide-2"})
    return Message("assistant", text, response_meta=meta)


def test_a_request_says_whom_it_asked_for_what_and_what_came_of_it():
    recorder = Recorder()
    agent = harbour(recorder, replied("At 06:12."), checkpoint_store=MemoryStore())
    agent.run_sync("When?", checkpoint_id="talk-7", options={"temperature": 0.5, "max_tokens": 100, "user": "ada"})
    span = recorder.one("chat ScriptedModel")
    assert span.kind is SpanKind.CLIENT
    assert span.status.status_code is StatusCode.UNSET
    assert recorder.attributes("chat ScriptedModel") == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "suture",
        "gen_ai.request.model": "ScriptedModel",
        "gen_ai.agent.name": "harbour",
        "gen_ai.conversation.id": "talk-7",
        "gen_ai.request.temperature": 0.5,
        "gen_ai.request.max_tokens": 100,
        "gen_ai.response.id": "resp_1",
        "gen_ai.response.model": "tide-2",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 900,
        "gen_ai.usage.output_tokens": 40,
        "gen_ai.usage.cache_read.input_tokens": 800,
        "gen_ai.usage.reasoning.output_tokens": 9,
    }


def test_a_run_says_whose_it_is_and_what_it_cost_in_all():
    recorder = Recorder()
    first = calls(TIDES)
    cost = TokenUsage(prompt_tokens=10, completion_tokens=2, total_tokens=12)
    asks = Message("assistant", tool_calls=first.tool_calls, response_meta=ResponseMeta(usage=cost))
    harbour(recorder, asks, replied("At 06:12."), checkpoint_store=MemoryStore()).run_sync("When?", checkpoint_id="c")
    span = recorder.one("invoke_agent harbour")
    assert span.kind is SpanKind.INTERNAL
    assert recorder.attributes("invoke_agent harbour") == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "suture",
        "gen_ai.request.model": "ScriptedModel",
        "gen_ai.agent.name": "harbour",
        "gen_ai.conversation.id": "c",
        "gen_ai.usage.input_tokens": 910,
        "gen_ai.usage.output_tokens": 42,
        "gen_ai.usage.cache_read.input_tokens": 800,
        "gen_ai.usage.reasoning.output_tokens": 9,
    }


def test_a_tool_call_says_which_it_is():
    recorder = Recorder()
    harbour(recorder, calls(TIDES), "ok").run_sync("hi")
    assert recorder.one("execute_tool tides").kind is SpanKind.INTERNAL
    assert recorder.attributes("execute_tool tides") == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "tides",
        "gen_ai.tool.type": "function",
        "gen_ai.tool.call.id": "c0",
        "gen_ai.tool.description": "Look up today's high tide.",
        "gen_ai.agent.name": "harbour",
    }


def test_a_model_that_says_its_name_and_its_provider_is_called_by_them():
    class Named(ScriptedModel[Message]):
        model, provider = "tide-2-large", "example.ai"

    recorder = Recorder()
    harbour(recorder, model=Named(["hello"])).run_sync("hi")
    said = recorder.attributes("chat tide-2-large")
    assert (said["gen_ai.request.model"], said["gen_ai.provider.name"]) == ("tide-2-large", "example.ai")


@pytest.mark.parametrize(
    ("profile", "provider"), [("anthropic", "anthropic"), ("gemini", "gcp.gemini"), ("kimi", "moonshot_ai")]
)
def test_a_model_that_says_nothing_is_its_profiles_providers(profile: str, provider: str):
    recorder = Recorder()
    harbour(recorder, model=ScriptedModel(["hello"], "agentic", profile=profile)).run_sync("hi")
    assert recorder.attributes("chat ScriptedModel")["gen_ai.provider.name"] == provider


def test_a_streamed_reply_says_when_its_first_piece_came():
    recorder = Recorder()
    harbour(recorder, "At 06:12.", chunk_size=2).run_sync("When?")
    first = recorder.attributes("chat ScriptedModel")["gen_ai.response.time_to_first_chunk"]
    span = recorder.one("chat ScriptedModel")
    assert span.end_time is not None
    assert span.start_time is not None
    assert 0 < first <= (span.end_time - span.start_time) / 1e9 + 0.001


# --- how they end -----------------------------------------------------------------------------


def test_a_failed_model_is_an_error_of_its_request_and_of_the_run():
    recorder = Recorder()
    with pytest.raises(ConnectionError):
        harbour(recorder, ConnectionError("the line is dead")).run_sync("hi")
    for name in ("chat ScriptedModel", "invoke_agent harbour"):
        assert recorder.attributes(name)["error.type"] == "ConnectionError"
        assert recorder.attributes(name)["suture.outcome"] == "failed"
        assert recorder.one(name).status.status_code is StatusCode.ERROR
        assert recorder.one(name).status.description is None


def test_a_stream_that_is_cut_ends_its_span_as_an_error():
    recorder = Recorder()
    model = ScriptedModel(["a long answer"], chunk_size=2, cut_after=3)
    with pytest.raises(ConnectionError):
        harbour(recorder, model=model).run_sync("hi")
    assert recorder.attributes("chat ScriptedModel")["error.type"] == "ConnectionError"


def test_each_attempt_has_a_span_and_one_that_helped_leaves_the_run_without_error():
    recorder = Recorder()
    retry = ModelRetryConfig(max_retries=2, backoff=lambda _: 0)
    harbour(recorder, TimeoutError(), "hello", model_retry_config=retry).run_sync("hi")
    failed, done = recorder.requests()
    assert failed["error.type"] == "TimeoutError"
    assert "error.type" not in done
    assert "error.type" not in recorder.attributes("invoke_agent harbour")


def test_a_run_that_fails_by_itself_has_an_error_without_a_name():
    recorder = Recorder()
    model = ScriptedModel(lambda _: calls(TIDES))
    with pytest.raises(Exception, match="model turns"):
        harbour(recorder, model=model, max_iterations=2).run_sync("hi")
    assert recorder.attributes("invoke_agent harbour")["error.type"] == "_OTHER"


def test_a_tool_that_raises_or_is_not_there_or_says_that_it_failed_is_an_error_of_its_call_alone():
    @tool
    async def sink() -> str:
        """Fail."""
        raise PermissionError("not today")

    recorder = Recorder()
    asks = calls(("sink", "{}"), ("tides", "{}"), ("tidse", "{}"))
    harbour(recorder, asks, "ok", tools=[tides, sink]).run_sync("hi")
    assert recorder.attributes("execute_tool sink")["error.type"] == "PermissionError"
    assert recorder.attributes("execute_tool tides")["error.type"] == "tool_error"
    assert recorder.attributes("execute_tool tidse")["error.type"] == "tool_error"
    assert "error.type" not in recorder.attributes("invoke_agent harbour")


def test_an_interrupted_run_ends_its_spans_and_a_resumed_one_has_its_own():
    @tool
    async def ask() -> str:
        """Ask somebody."""
        return f"they said {await interrupt('May I?')}"

    recorder = Recorder()
    agent = harbour(recorder, calls(("ask", "{}")), "ok", tools=[ask], checkpoint_store=MemoryStore())

    async def main() -> None:
        waiting = await agent.run("hi", checkpoint_id="talk")
        await agent.resume("talk", answers={waiting.interrupts[0].id: "yes"})

    asyncio.run(main())
    assert recorder.names() == [
        "chat ScriptedModel",
        "execute_tool ask",
        "invoke_agent harbour",
        "execute_tool ask",
        "chat ScriptedModel",
        "invoke_agent harbour",
    ]
    outcomes = [said(span).get("suture.outcome") for span in recorder.spans]
    assert outcomes == [None, "interrupted", "interrupted", None, None, None]
    assert {span.status.status_code for span in recorder.spans} == {StatusCode.UNSET}
    assert {said(span)["gen_ai.conversation.id"] for span in recorder.spans} == {"talk"}


@pytest.mark.parametrize("where", ["model", "tool"])
def test_a_cancelled_run_ends_its_spans_without_an_error(where: str):
    recorder = Recorder()
    begun = asyncio.Event()

    async def forever(_: Any = None) -> str:
        begun.set()
        await asyncio.Event().wait()
        return "never"

    @tool
    async def wait() -> str:
        """Wait."""
        return await forever()

    agent = harbour(recorder, *([forever] if where == "model" else [calls(("wait", "{}"))]), tools=[wait])

    async def main() -> None:
        run = agent.stream("hi")
        async with run:
            await begun.wait()
            await run.cancel()

    asyncio.run(main())
    ended = {"model": "chat ScriptedModel", "tool": "execute_tool wait"}[where]
    for name in (ended, "invoke_agent harbour"):
        assert recorder.attributes(name)["suture.outcome"] == "cancelled"
        assert "error.type" not in recorder.attributes(name)
        assert recorder.one(name).status.status_code is StatusCode.UNSET


def test_a_hook_that_fails_before_the_first_turn_ends_the_span_of_the_run():
    class Failing(ChatModelAgentMiddleware):
        def before_agent(self, context: Any) -> None:
            raise LookupError("no harbour")

    recorder = Recorder()
    agent = ChatModelAgent(name="harbour", model=ScriptedModel([]), middlewares=[recorder.telemetry, Failing()])
    with pytest.raises(LookupError):
        agent.run_sync("hi")
    assert recorder.names() == ["invoke_agent harbour"]


def test_a_run_that_is_not_sampled_has_no_spans_and_none_below_it():
    recorder = Recorder()
    provider = TracerProvider(sampler=ALWAYS_OFF)
    seen: list[bool] = []

    @tool
    async def look() -> str:
        """Look."""
        seen.append(trace.get_current_span().get_span_context().trace_flags.sampled)
        return "nothing"

    telemetry = Telemetry(tracer_provider=provider, meter_provider=recorder.meters)
    model = ScriptedModel([calls(("look", "{}")), "ok"])
    ChatModelAgent(name="harbour", model=model, tools=[look], middlewares=[telemetry]).run_sync("hi")
    assert seen == [False]
    assert recorder.names() == []
    assert [count for _, count in recorder.measured("gen_ai.client.operation.duration")] == [2]
