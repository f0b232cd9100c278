"""Recorded exchanges with real providers, played back over real HTTP to the official SDKs under our models."""

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from suture.codecs import Request, get_codec
from suture.messages import AgenticMessage, AssistantGenText, Delta, FunctionToolCall, Reasoning, TokenUsage
from suture.models import AnthropicModel, BedrockModel, GeminiModel, ModelRequest, OpenAIChatModel, OpenAIResponsesModel
from suture.models.sampling import leave_out, renames_max_tokens
from tests.codecs.recordings import Exchange, recordings
from tests.models.loopback import Answer, Loopback, loopback

FOLDERS = {
    "openai-chat": "openai-chat",
    "openai-compatible-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic-messages": "anthropic",
    "gemini": "gemini",
    "bedrock-converse": "bedrock",
}
NOT_OURS = {"model", "stream", "modelId"}
"""Settings that the model itself makes."""


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "none")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "none")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")


def exchanges() -> list[Any]:
    return [
        pytest.param(wire, exchange, id=f"{folder}/{name}-{number}")
        for folder, wire in FOLDERS.items()
        for name, found in recordings(folder)
        for number, exchange in enumerate(found)
        if exchange.status == 200
    ]


def make_model(wire: str, name: str, url: str) -> Any:
    if wire == "openai-chat":
        return OpenAIChatModel[AgenticMessage](name, base_url=f"{url}/v1", wire="agentic")
    if wire == "openai-responses":
        return OpenAIResponsesModel[AgenticMessage](name, base_url=f"{url}/v1", wire="agentic")
    if wire == "anthropic":
        return AnthropicModel[AgenticMessage](name, base_url=url, wire="agentic")
    if wire == "gemini":
        return GeminiModel[AgenticMessage](name, base_url=url, wire="agentic")
    return BedrockModel[AgenticMessage](name, base_url=url, wire="agentic")


def model_name(exchange: Exchange) -> str:
    """Return the model's name: in the body, or in the address."""
    body = exchange.request
    return body.get("model") or body.get("modelId") or exchange.url.split("/models/")[-1].split(":")[0]


def asked_of(request: Request) -> ModelRequest[AgenticMessage]:
    options = {name: value for name, value in request.options.items() if name not in NOT_OURS}
    return ModelRequest(request.instruction, list(request.messages), tuple(request.tools), options)


async def ask(wire: str, exchange: Exchange, request: Request) -> tuple[list[Delta], AgenticMessage, Loopback]:
    """Ask our model over HTTP, answered by the recorded bytes in pieces; return all that came and what was asked."""
    pieces = [exchange.body[start : start + 97] for start in range(0, len(exchange.body), 97)]
    answer = Answer(pieces, exchange.status, exchange.headers)
    async with loopback([answer]) as server:
        model = make_model(wire, model_name(exchange), server.url)
        said = [item async for item in model.stream(asked_of(request))]
    assert all(isinstance(item, Delta) for item in said[:-1])
    return said[:-1], said[-1], server


# What the official SDK makes of the same bytes


async def oracle(wire: str, exchange: Exchange) -> dict[str, Any]:
    """Return text, calls and usage as the provider's own SDK reads them from the same bytes."""
    async with loopback([Answer([exchange.body], exchange.status, exchange.headers)]) as server:
        return await ORACLES[wire](server.url)


async def chat_oracle(url: str) -> dict[str, Any]:
    import openai

    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        chunks: Any = await client.chat.completions.create(model="m", messages=[], stream=True)
        text, calls, usage = "", dict[int, list[str]](), TokenUsage()
        async for chunk in chunks:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for call in choice.delta.tool_calls or ():
                    held = calls.setdefault(call.index, ["", "", ""])
                    held[0] = held[0] or call.id or ""
                    held[1] = held[1] or (call.function.name if call.function else "") or ""
                    held[2] += (call.function.arguments if call.function else "") or ""
            if chunk.usage is not None:
                details, out = chunk.usage.prompt_tokens_details, chunk.usage.completion_tokens_details
                usage = TokenUsage(
                    prompt_tokens=chunk.usage.prompt_tokens,
                    completion_tokens=chunk.usage.completion_tokens,
                    total_tokens=chunk.usage.total_tokens,
                    cached_tokens=(details.cached_tokens if details else 0) or 0,
                    reasoning_tokens=(out.reasoning_tokens if out else 0) or 0,
                )
    return {"text": text, "calls": [tuple(call) for _, call in sorted(calls.items())], "usage": usage}


async def responses_oracle(url: str) -> dict[str, Any]:
    import openai

    async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none") as client:
        response: Any = None
        events: Any = await client.responses.create(model="m", input="", stream=True)
        async for event in events:
            if event.type in {"response.completed", "response.incomplete"}:
                response = event.response
    calls = [(item.call_id, item.name, item.arguments) for item in response.output if item.type == "function_call"]
    usage = response.usage
    return {
        "text": response.output_text,
        "calls": calls,
        "usage": TokenUsage(
            prompt_tokens=usage.input_tokens,
            completion_tokens=usage.output_tokens,
            total_tokens=usage.total_tokens,
            cached_tokens=usage.input_tokens_details.cached_tokens,
            reasoning_tokens=usage.output_tokens_details.reasoning_tokens,
        ),
    }


async def anthropic_oracle(url: str) -> dict[str, Any]:
    import anthropic

    async with (
        anthropic.AsyncAnthropic(base_url=url, api_key="none") as client,
        client.messages.stream(model="m", max_tokens=1, messages=[]) as stream,
    ):
        message = await stream.get_final_message()
    text = "".join(block.text for block in message.content if block.type == "text")
    calls = [(block.id, block.name, json.dumps(block.input)) for block in message.content if block.type == "tool_use"]
    usage = message.usage
    read, made = usage.cache_read_input_tokens or 0, usage.cache_creation_input_tokens or 0
    prompt = usage.input_tokens + read + made
    return {
        "text": text,
        "calls": calls,
        "usage": TokenUsage(
            prompt_tokens=prompt,
            completion_tokens=usage.output_tokens,
            total_tokens=prompt + usage.output_tokens,
            cached_tokens=read,
            cache_write_tokens=made,
        ),
    }


async def gemini_oracle(url: str) -> dict[str, Any]:
    import google.genai as genai  # noqa: PLR0402 - stubs of another package hide it from `from google import`

    client = genai.Client(api_key="none", http_options={"base_url": url})
    text, calls, usage = "", list[Any](), TokenUsage()
    async with client.aio as entered:
        chunks: Any = await entered.models.generate_content_stream(model="m", contents="x")
        async for chunk in chunks:
            for part in (chunk.candidates[0].content.parts or []) if chunk.candidates else ():
                if part.text and not part.thought:
                    text += part.text
                if part.function_call:
                    calls.append((part.function_call.name, json.dumps(part.function_call.args)))
            meta = chunk.usage_metadata
            thoughts = meta.thoughts_token_count or 0
            usage = TokenUsage(
                prompt_tokens=meta.prompt_token_count or 0,
                completion_tokens=(meta.candidates_token_count or 0) + thoughts,
                total_tokens=meta.total_token_count or 0,
                cached_tokens=meta.cached_content_token_count or 0,
                reasoning_tokens=thoughts,
            )
    client.close()
    return {"text": text, "calls": calls, "usage": usage}


async def bedrock_oracle(url: str) -> dict[str, Any]:
    import boto3

    def read() -> dict[str, Any]:
        client = boto3.client("bedrock-runtime", endpoint_url=url)
        text, calls, usage = "", list[list[str]](), TokenUsage()
        for event in client.converse_stream(modelId="m", messages=[])["stream"]:
            started = event.get("contentBlockStart", {}).get("start", {}).get("toolUse")
            delta = event.get("contentBlockDelta", {}).get("delta", {})
            text += delta.get("text", "")
            if started:
                calls.append([started["toolUseId"], started["name"], ""])
            if "toolUse" in delta:
                calls[-1][2] += delta["toolUse"]["input"]
            if "metadata" in event:
                told = event["metadata"]["usage"]
                usage = TokenUsage(
                    prompt_tokens=told["inputTokens"],
                    completion_tokens=told["outputTokens"],
                    total_tokens=told["totalTokens"],
                )
        client.close()
        return {"text": text, "calls": [tuple(call) for call in calls], "usage": usage}

    return await asyncio.to_thread(read)


ORACLES: dict[str, Any] = {
    "openai-chat": chat_oracle,
    "openai-responses": responses_oracle,
    "anthropic": anthropic_oracle,
    "gemini": gemini_oracle,
    "bedrock": bedrock_oracle,
}


def said_in(wire: str, message: AgenticMessage) -> dict[str, Any]:
    """Return text, calls and usage of our message in the form of the oracle."""
    blocks = message.content_blocks
    calls = [(block.call_id, block.name, block.arguments) for block in blocks if isinstance(block, FunctionToolCall)]
    assert message.response_meta is not None
    return {
        "text": "".join(block.text for block in blocks if isinstance(block, AssistantGenText)),
        "calls": [call[1:] for call in calls] if wire == "gemini" else calls,
        "usage": message.response_meta.usage,
    }


def parsed(said: dict[str, Any]) -> dict[str, Any]:
    """Return it with arguments as values: spaces in JSON text are nobody's business."""
    return {**said, "calls": [(*call[:-1], json.loads(call[-1] or "{}")) for call in said["calls"]]}


@pytest.mark.parametrize(("wire", "exchange"), exchanges())
def test_a_recorded_stream_gives_what_the_providers_own_sdk_reads(wire: str, exchange: Exchange):
    async def both() -> tuple[list[Delta], AgenticMessage, dict[str, Any]]:
        deltas, message, _ = await ask(wire, exchange, get_codec(wire).decode_request(exchange.request))
        return deltas, message, await oracle(wire, exchange)

    deltas, message, expected = asyncio.run(both())
    assert parsed(said_in(wire, message)) == parsed(expected)
    # The stream says the same piece by piece.
    assert "".join(delta.text for delta in deltas) == expected["text"]
    pieces: dict[int, str] = {}
    for delta in deltas:
        if delta.call_index is not None:
            pieces[delta.call_index] = pieces.get(delta.call_index, "") + delta.arguments
    told = [json.loads(pieces[index] or "{}") for index in sorted(pieces)]
    assert told == [call[-1] for call in parsed(expected)["calls"]]
    assert [delta.usage for delta in deltas if delta.usage is not None][-1] == expected["usage"]


def fitted(request: dict[str, Any]) -> dict[str, Any]:
    """Return a request without what its model refuses; OpenRouter, where these were recorded, ignores that."""
    model = request.get("model", "")
    names = {"max_tokens": "max_completion_tokens"} if renames_max_tokens(model) else {}
    return {names.get(name, name): value for name, value in request.items() if name not in leave_out(model, request)}


@pytest.mark.parametrize(("wire", "exchange"), exchanges())
def test_the_request_that_is_built_again_is_the_recorded_one(wire: str, exchange: Exchange):
    _, _, server = asyncio.run(ask(wire, exchange, get_codec(wire).decode_request(exchange.request)))
    [asked] = server.requests
    assert declared(wire, asked.payload) == declared(wire, fitted(exchange.request))


def conversations() -> list[Any]:
    return [
        pytest.param(wire, found, id=f"{folder}/{name}")
        for folder, wire in FOLDERS.items()
        for name, found in recordings(folder)
        if len(found) == 2
    ]


@pytest.mark.parametrize(("wire", "exchanges"), conversations())
def test_the_next_request_of_a_conversation_is_built_from_the_reply_that_was_read(
    wire: str, exchanges: Sequence[Exchange]
):
    codec = get_codec(wire)
    first, second = exchanges

    async def converse() -> Any:
        _, reply, _ = await ask(wire, first, codec.decode_request(first.request))
        request = codec.decode_request(second.request)
        place = next(place for place, message in enumerate(request.messages) if message.role == "assistant")
        history = [*request.messages[:place], reply, *request.messages[place + 1 :]]
        _, _, server = await ask(wire, second, replace(request, messages=history))
        return server.requests[0].payload

    payload = asyncio.run(converse())
    assert declared(wire, payload, replied=True) == declared(wire, fitted(second.request), replied=True)


DEFAULTS: dict[str, dict[str, Any]] = {
    "openai-responses": {"store": False, "include": ["reasoning.encrypted_content"]},
    "gemini": {},
}
"""What our models ask for where the recorded program left it open."""

REPLAYED = {
    "anthropic": {"tool_use": ("caller",)},
    "openai-responses": {
        "function_call": ("id", "status"),
        "reasoning": ("id", "content", "status"),
        "message": ("id", "status", "phase", "type"),
    },
    "openai-chat": {},
    "gemini": {},
    "bedrock": {},
}
"""What a provider says in a reply and is told again with it, where the recorded program had dropped it."""


def declared(wire: str, payload: dict[str, Any], *, replied: bool = False) -> dict[str, Any]:
    """Return a request without the differences that are declared."""
    body = json.loads(json.dumps(payload))
    for name in ("model", "modelId", "stream"):
        body.pop(name, None)
    for name, value in DEFAULTS.get(wire, {}).items():
        if body.get(name, value) == value:
            body.pop(name, None)
    if replied:
        _strip(body, REPLAYED[wire])
    return _plain(body)


def _plain(value: Any) -> Any:
    """Return a request with one text for a list that holds just that, arguments as values, messages without a type."""
    if isinstance(value, dict):
        held = {name: _plain(item) for name, item in value.items() if (name, item) != ("type", "message")}
        if isinstance(held.get("arguments"), str):
            held["arguments"] = json.loads(held["arguments"])
        return held
    if not isinstance(value, list):
        return value
    if len(value) == 1 and isinstance(value[0], dict) and set(value[0]) == {"type", "text"}:
        return value[0]["text"]
    return [_plain(item) for item in value]


def _strip(value: Any, kinds: dict[str, tuple[str, ...]]) -> None:
    if isinstance(value, list):
        for item in value:
            _strip(item, kinds)
    if isinstance(value, dict):
        kind = value.get("type") or ("message" if value.get("role") == "assistant" else "")
        for name in kinds.get(kind, ()):
            value.pop(name, None)
        if "encrypted_content" in value:  # the provider encrypts it anew in each event
            value["encrypted_content"] = "…"
        if value.get("type") == "output_text":
            for name in ("annotations", "logprobs"):
                value.pop(name, None)
        for item in value.values():
            _strip(item, kinds)


def test_reasoning_is_sent_back_encrypted_as_it_came():
    found = dict(recordings("openai-responses")).get("openai-responses-gpt-5-5-reasoning-continuation")
    if found is None:
        pytest.skip("no recordings")
    first, _ = found
    codec = get_codec("openai-responses")
    _, reply, _ = asyncio.run(ask(codec.name, first, codec.decode_request(first.request)))
    [thought] = [block for block in reply.content_blocks if isinstance(block, Reasoning)]
    assert len(thought.signature) > 100
    assert thought.signature.encode() in first.body
    sent = codec.encode_messages([reply]).payload
    assert [item["encrypted_content"] for item in sent if item.get("type") == "reasoning"] == [thought.signature]
