"""What the strict provider answers, in the form of each interface: a whole reply, the pieces of a stream, a refusal."""

import json
from typing import Any

from tests.codecs.anthropic import server as anthropic
from tests.codecs.bedrock import server as bedrock
from tests.codecs.gemini import server as gemini
from tests.codecs.openai_chat import server as openai_chat
from tests.codecs.openai_responses import server as openai_responses

Call = tuple[str, str, Any]
"""Id, name and arguments; arguments of Chat Completions that are a text are sent as they are. In Responses `commands`
are for a shell of the program's."""
Reply = str | list[str | Call]
"""What the model says: a text, or texts and calls."""
CHAT, RESPONSES, MESSAGES, GEMINI, BEDROCK = "chat", "responses", "messages", "gemini", "bedrock"


def read_api(path: str) -> tuple[str, bool | None]:
    """Return which interface a path is of, and whether it asks for a stream, where the path says so."""
    for end, api, stream in (
        ("chat/completions", CHAT, None),
        ("responses", RESPONSES, None),
        ("messages", MESSAGES, None),
        (":generateContent", GEMINI, False),
        (":streamGenerateContent", GEMINI, True),
        ("/converse", BEDROCK, False),
        ("/converse-stream", BEDROCK, True),
    ):
        if path.endswith(end):
            return api, stream
    raise AssertionError(path)


def refuse(api: str, message: str) -> tuple[dict[str, Any], dict[str, str]]:
    """Return the body and the headers of a refusal."""
    if api == BEDROCK:
        return {"message": message}, {"x-amzn-errortype": "ValidationException"}
    if api == GEMINI:
        return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}, {}
    error = {"type": "invalid_request_error", "message": message}
    if api == MESSAGES:
        return {"type": "error", "error": error, "request_id": "req_1"}, {}
    return {"error": {**error, "param": None, "code": None}}, {}


def write(api: str, reply: Reply, number: int) -> dict[str, Any]:
    """Return the body of a reply."""
    said = [reply] if isinstance(reply, str) else reply
    calls = any(not isinstance(each, str) for each in said)
    return _WHOLE[api](said, calls, number)


def stream(api: str, reply: Reply, number: int) -> list[bytes]:
    """Return the pieces of a streamed reply."""
    writer = _WRITERS[api]
    return [writer.frame(event) for event in writer.write_stream(write(api, reply, number))]


Said = list[str | Call]


def _chat(said: Said, calls: bool, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": _text(said) or None}
    if calls:
        message["tool_calls"] = [
            {
                "id": call_id,
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": arguments if isinstance(arguments, str) else json.dumps(arguments),
                },
            }
            for call_id, name, arguments in (each for each in said if not isinstance(each, str))
        ]
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    named = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": "gpt-strict"}
    return {**named, "choices": [choice], "usage": usage}


def _text(said: Said) -> str:
    return "".join(each for each in said if isinstance(each, str))


def _response(said: Said, _calls: bool, number: int) -> dict[str, Any]:
    output = [_item(each, f"{number}_{place}") for place, each in enumerate(said)]
    named = {"id": f"resp_{number}", "object": "response", "created_at": 1, "status": "completed"}
    usage = {
        "input_tokens": 1,
        "output_tokens": 1,
        "total_tokens": 2,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    rest = {"model": "gpt-strict", "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**named, "output": output, "usage": usage, **rest}


def _item(said: str | Call, number: str) -> dict[str, Any]:
    if isinstance(said, str):
        content = [{"type": "output_text", "text": said, "annotations": []}]
        done = {"status": "completed", "role": "assistant", "content": content}
        return {"type": "message", "id": f"msg_{number}", **done}
    call_id, name, arguments = said
    if "commands" in arguments:
        asked = {"call_id": call_id, "action": arguments, "environment": {"type": "local"}}
        return {"type": "shell_call", "id": f"sh_{number}", "status": "completed", **asked}
    called = {"call_id": call_id, "name": name, "arguments": json.dumps(arguments), "status": "completed"}
    return {"type": "function_call", "id": f"fc_{number}", **called}


def _message(said: Said, calls: bool, number: int) -> dict[str, Any]:
    content = [
        {"type": "text", "text": each}
        if isinstance(each, str)
        else {"type": "tool_use", "id": each[0], "name": each[1], "input": each[2]}
        for each in said
    ]
    named = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-strict"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    ended = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    return {**named, "content": content, **ended, "usage": usage}


def _contents(said: Said, _calls: bool, _number: int) -> dict[str, Any]:
    parts = [
        {"text": each} if isinstance(each, str) else {"functionCall": {"id": each[0], "name": each[1], "args": each[2]}}
        for each in said
    ]
    candidate = {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    return {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "gemini-strict"}


def _converse(said: Said, calls: bool, _number: int) -> dict[str, Any]:
    content = [
        {"text": each}
        if isinstance(each, str)
        else {"toolUse": {"toolUseId": each[0], "name": each[1], "input": each[2]}}
        for each in said
    ]
    return {
        "output": {"message": {"role": "assistant", "content": content}},
        "stopReason": "tool_use" if calls else "end_turn",
        "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
        "metrics": {"latencyMs": 1},
    }


_WHOLE = {CHAT: _chat, RESPONSES: _response, MESSAGES: _message, GEMINI: _contents, BEDROCK: _converse}
_WRITERS: dict[str, Any] = {
    CHAT: openai_chat,
    RESPONSES: openai_responses,
    MESSAGES: anthropic,
    GEMINI: gemini,
    BEDROCK: bedrock,
}
"""What writes streams as each provider does."""
