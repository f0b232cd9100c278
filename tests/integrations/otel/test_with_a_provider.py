"""A model of a real provider's SDK, against a server on loopback: what its replies say is on the span."""

from typing import Any

import pytest

from suture import ChatModelAgent
from suture.errors import ModelError, ModelServerError, RateLimitError
from suture.models import OpenAIChatModel
from suture.testing import ScriptedModel
from tests.integrations.otel.recording import Recorder
from tests.integrations.otel.sse import streaming_provider


def chunk(**said: Any) -> dict[str, Any]:
    return {"id": "chatcmpl-7", "object": "chat.completion.chunk", "created": 1, "model": "gpt-5-0807", **said}


def piece(text: str, finish: str | None = None) -> dict[str, Any]:
    return chunk(choices=[{"index": 0, "delta": {"content": text}, "finish_reason": finish}])


USAGE = {
    "prompt_tokens": 12,
    "completion_tokens": 3,
    "total_tokens": 15,
    "prompt_tokens_details": {"cached_tokens": 8},
}


def test_a_streamed_reply_is_recorded_with_its_id_its_model_and_what_it_cost():
    recorder = Recorder()
    with streaming_provider([piece("At "), piece("06:12.", "stop"), chunk(choices=[], usage=USAGE)]) as provider:
        model = OpenAIChatModel("gpt-5", base_url=provider.url, api_key="none")
        agent = ChatModelAgent(name="harbour", model=model, middlewares=[recorder.telemetry])
        assert agent.run_sync("When?", options={"temperature": 0}).output == "At 06:12."
    said = recorder.attributes("chat gpt-5")
    assert said.pop("gen_ai.response.time_to_first_chunk") > 0
    assert said == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "gpt-5",
        "gen_ai.agent.name": "harbour",
        "gen_ai.request.temperature": 0,
        "gen_ai.response.id": "chatcmpl-7",
        "gen_ai.response.model": "gpt-5-0807",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 12,
        "gen_ai.usage.output_tokens": 3,
        "gen_ai.usage.cache_read.input_tokens": 8,
    }


def test_a_refusal_of_the_provider_is_named_by_its_class():
    recorder = Recorder()
    with streaming_provider() as provider:
        model = OpenAIChatModel("gpt-5", base_url=provider.url, api_key="none")
        agent = ChatModelAgent(name="harbour", model=model, middlewares=[recorder.telemetry], model_retry_config=None)
        with pytest.raises(ModelError) as caught:
            agent.run_sync("When?")
    assert recorder.attributes("chat gpt-5")["error.type"] == f"suture.errors.{type(caught.value).__name__}"


def test_each_attempt_has_a_span_with_its_error_and_the_run_has_none():
    recorder = Recorder()
    model = ScriptedModel([RateLimitError("slow", status=429), ModelServerError("down", status=503), "At 06:12."])
    agent = ChatModelAgent(name="harbour", model=model, middlewares=[recorder.telemetry])
    assert agent.run_sync("When?").output == "At 06:12."
    errors = [said.get("error.type") for said in recorder.requests()]
    assert errors == ["suture.errors.RateLimitError", "suture.errors.ModelServerError", None]
    assert recorder.tree() == {"": ["invoke_agent harbour"], "invoke_agent harbour": ["chat ScriptedModel"] * 3}
    assert "error.type" not in recorder.attributes("invoke_agent harbour")
