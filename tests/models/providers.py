"""The five models over HTTP, each with its official SDK, and what their providers say in their own manner."""

import json
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    Message,
    Reasoning,
    ResponseMeta,
    TokenUsage,
)
from suture.models import AnthropicModel, BedrockModel, GeminiModel, ModelRequest, OpenAIChatModel, OpenAIResponsesModel
from tests.codecs.anthropic import server as anthropic
from tests.codecs.bedrock import server as bedrock
from tests.codecs.gemini import server as gemini
from tests.codecs.openai_chat import server as openai_chat
from tests.codecs.openai_responses import server as openai_responses
from tests.models.loopback import Answer

WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
KINDS: dict[str, Any] = {
    "openai-chat": OpenAIChatModel,
    "openai-responses": OpenAIResponsesModel,
    "anthropic": AnthropicModel,
    "gemini": GeminiModel,
    "bedrock": BedrockModel,
}
WRITERS: dict[str, Any] = {
    "openai-chat": openai_chat,
    "openai-responses": openai_responses,
    "anthropic": anthropic,
    "gemini": gemini,
    "bedrock": bedrock,
}
"""What writes replies and streams as each provider does."""
CONTENT_TYPES = {"bedrock": "application/vnd.amazon.eventstream"}
REQUEST_IDS = {"anthropic": "request-id", "bedrock": "x-amzn-requestid"}
HISTORIES = {"openai-responses": "input", "gemini": "contents"}
HELLO = ModelRequest("Be brief.", [Message.user("hi")])
AGENTIC_HELLO = ModelRequest("Be brief.", [AgenticMessage.user("hi")])


def address(wire: str, url: str) -> str:
    return f"{url}/v1" if wire.startswith("openai") else url


def make_model(wire: str, url: str, /, **settings: Any) -> Any:
    return KINDS[wire]("m", base_url=address(wire, url), **settings)


def http_of(wire: str) -> Any:
    """Return the library under the HTTP clients of the SDK: `httpx` or `httpx2`."""
    return import_module(make_model(wire, "http://127.0.0.1").http_library())


def reply(*blocks: ContentBlock, finish: str = "stop", usage: TokenUsage | None = None) -> AgenticMessage:
    cost = usage or TokenUsage(prompt_tokens=7, completion_tokens=5, total_tokens=12)
    return AgenticMessage("assistant", blocks, response_meta=ResponseMeta(usage=cost, finish_reason=finish))


def text_reply(text: str = "The sea is calm.") -> AgenticMessage:
    return reply(AssistantGenText(text))


def call_reply(*calls: tuple[str, str, str], text: str = "", thought: str = "", signature: str = "") -> AgenticMessage:
    said: list[ContentBlock] = []
    if thought:
        said.append(Reasoning(thought, signature=signature))
    if text:
        said.append(AssistantGenText(text))
    asked = [FunctionToolCall(call_id, name, arguments) for call_id, name, arguments in calls]
    return reply(*said, *asked, finish="tool_calls")


def frames(wire: str, message: AgenticMessage) -> list[bytes]:
    """Return the events of a stream that says `message`, each as its bytes."""
    writer = WRITERS[wire]
    return [writer.frame(event) for event in writer.write_stream(writer.write_reply(message))]


def frame(wire: str, event: Mapping[str, Any]) -> bytes:
    """Return one event of a stream as its bytes."""
    return WRITERS[wire].frame(event)


def stream_headers(wire: str) -> dict[str, str]:
    return {"content-type": CONTENT_TYPES.get(wire, "text/event-stream")}


def streamed(wire: str, message: AgenticMessage, **how: Any) -> Answer:
    return Answer(frames(wire, message), headers=stream_headers(wire), **how)


def whole(wire: str, message: AgenticMessage) -> Answer:
    body = WRITERS[wire].write_reply(message)
    return Answer([json.dumps(body).encode()], headers={"content-type": "application/json"})


def error_body(wire: str, message: str, code: str = "some_code") -> dict[str, Any]:
    """Return an error in the form that the provider gives it."""
    if wire == "bedrock":
        return {"message": message}
    if wire == "anthropic":
        return {"type": "error", "error": {"type": code, "message": message}, "request_id": "req_body"}
    if wire == "gemini":
        return {"error": {"code": 400, "message": message, "status": code}}
    return {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": code}}


def refusal(wire: str, status: int, message: str = "No.", code: str = "some_code", **headers: str) -> Answer:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    said = {"content-type": "application/json", REQUEST_IDS.get(wire, "x-request-id"): "req_1", **named}
    if wire == "bedrock":
        said["x-amzn-errortype"] = code
    return Answer([json.dumps(error_body(wire, message, code)).encode()], status, said)


def history_in(wire: str, payload: dict[str, Any]) -> Sequence[Any]:
    """Return the messages of a request's body."""
    return payload[HISTORIES.get(wire, "messages")]
