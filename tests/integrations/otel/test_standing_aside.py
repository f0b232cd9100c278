"""Where nobody takes what is recorded, telemetry does next to nothing; where somebody comes later, it is there."""

import asyncio
import gc
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF

from suture import ChatModelAgent, ChatModelAgentMiddleware, tool
from suture.integrations.otel import Telemetry
from suture.testing import ScriptedModel
from tests.integrations.otel.recording import calls


@tool
async def look() -> str:
    """Look."""
    return "nothing"


def agent(middlewares: Sequence[ChatModelAgentMiddleware[Any]], pieces: int) -> ChatModelAgent[Any]:
    replies = [calls(("look", "{}")), "x" * pieces]
    model = ScriptedModel(replies, chunk_size=1)
    return ChatModelAgent(name="harbour", model=model, tools=[look], middlewares=middlewares)


def function_calls(middlewares: Sequence[ChatModelAgentMiddleware[Any]], pieces: int) -> int:
    """Return how many functions a run calls, which is the same each time unless the garbage collector calls some."""
    agent(middlewares, pieces).run_sync("hi")  # whatever is made on first use has been made now
    again, counted = agent(middlewares, pieces), 0

    def count(_: Any, event: str, __: Any) -> None:
        nonlocal counted
        counted += event == "call"

    async def main() -> None:
        gc.collect()
        gc.disable()
        sys.setprofile(count)
        try:
            await again.run("hi")
        finally:
            sys.setprofile(None)
            gc.enable()

    asyncio.run(main())
    return counted


def fewest_calls(middlewares: list[Any], pieces: int) -> int:
    """Return the same without what the event loop does now and then."""
    return min(function_calls(middlewares, pieces) for _ in range(3))


def test_without_anybody_who_takes_it_a_piece_of_a_reply_costs_nothing_more():
    telemetry = Telemetry()
    costs = [fewest_calls([telemetry], pieces) - fewest_calls([], pieces) for pieces in (10, 100)]
    assert costs[0] == costs[1]


@pytest.mark.parametrize("provider", [None, TracerProvider(sampler=ALWAYS_OFF)], ids=["no sdk", "not sampled"])
def test_without_anybody_who_takes_it_model_and_tool_are_left_as_they_are(provider: TracerProvider | None):
    sinks: list[Any] = []

    class Around(ChatModelAgentMiddleware):
        """What telemetry is given, and what it passes on."""

        async def wrap_model_call(self, request: Any, proceed: Any) -> Any:
            sinks.append(request.sink)
            return await proceed(request)

        async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
            sinks.append(call.sink)
            return await proceed(call)

    agent([Around(), Telemetry(tracer_provider=provider), Around()], 3).run_sync("hi")
    given, passed = sinks[::2], sinks[1::2]
    assert len(given) == 3
    assert all(old is new for old, new in zip(given, passed, strict=True))
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_an_sdk_that_is_set_up_after_the_agent_was_made_gets_its_runs():
    program = """
from opentelemetry import metrics, trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from suture import ChatModelAgent
from suture.integrations.otel import Telemetry
from suture.testing import ScriptedModel

agent = ChatModelAgent(name="harbour", model=ScriptedModel(["one", "two"]), middlewares=[Telemetry()])
agent.run_sync("hi")
kept, reader, provider = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(kept))
trace.set_tracer_provider(provider)
metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
agent.run_sync("hi")
print([span.name for span in kept.get_finished_spans()])
(resource,) = reader.get_metrics_data().resource_metrics
print(sorted(metric.name for scope in resource.scope_metrics for metric in scope.metrics))
"""
    ended = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, check=False)
    assert ended.stderr == ""
    assert ended.stdout.splitlines() == [
        "['chat ScriptedModel', 'invoke_agent harbour']",
        "['gen_ai.client.operation.duration', 'gen_ai.invoke_agent.duration']",
    ]


def test_a_missing_api_is_named_with_the_command_that_installs_it():
    program = "import sys; sys.modules['opentelemetry'] = None; import suture.integrations.otel"
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    told = ended.stderr.splitlines()[-1]
    assert told.startswith("suture.errors.ConfigError: this needs opentelemetry-api>=")
    assert "(extra otel), and opentelemetry is not installed: " in told
