"""The floor: a plain loop on each provider's SDK, streamed, with a list of dictionaries that grows.

What grows with the history here is the SDK's own work. boto3 has no async client: it is called as it is. Between the
first steps and the last ones the list is filled without asking, for an SDK may take minutes for that.
"""

import json
import platform
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from _contest import Script, sdk_client, serve

_PARAMETERS = {"type": "object", "properties": {"n": {"type": "integer"}, "path": {"type": "string"}}}
_ABOUT = {"name": "step", "description": "Make one step."}


class _Reply(NamedTuple):
    """What the model said: a call with its id and arguments, or a text."""

    call: str
    said: str

    @property
    def input(self) -> dict[str, Any]:
        return json.loads(self.said)


_Ask = Callable[[Any, str, list[Any]], Awaitable[_Reply]]


async def _ask_chat(client: Any, model: str, messages: list[Any]) -> _Reply:
    tools = [{"type": "function", "function": {**_ABOUT, "parameters": _PARAMETERS}}]
    call = said = ""
    async for chunk in await client.chat.completions.create(model=model, messages=messages, tools=tools, stream=True):
        for choice in chunk.choices:
            said += choice.delta.content or ""
            for part in choice.delta.tool_calls or ():
                call = part.id or call
                said += part.function.arguments
    return _Reply(call, said)


def _add_chat(reply: _Reply, result: str) -> list[Any]:
    function = {"name": "step", "arguments": reply.said}
    calls = [{"id": reply.call, "type": "function", "function": function}]
    answer = {"role": "tool", "tool_call_id": reply.call, "content": result}
    return [{"role": "assistant", "content": None, "tool_calls": calls}, answer]


async def _ask_responses(client: Any, model: str, items: list[Any]) -> _Reply:
    tools = [{"type": "function", **_ABOUT, "parameters": _PARAMETERS, "strict": False}]
    reply = _Reply("", "")
    async for event in await client.responses.create(model=model, input=items, tools=tools, stream=True):
        if event.type == "response.output_item.done":
            item = event.item
            is_call = item.type == "function_call"
            reply = _Reply(item.call_id, item.arguments) if is_call else _Reply("", item.content[0].text)
    return reply


def _add_responses(reply: _Reply, result: str) -> list[Any]:
    call = {"type": "function_call", "call_id": reply.call, "name": "step", "arguments": reply.said}
    return [call, {"type": "function_call_output", "call_id": reply.call, "output": result}]


async def _ask_anthropic(client: Any, model: str, messages: list[Any]) -> _Reply:
    tools = [{**_ABOUT, "input_schema": _PARAMETERS}]
    call = said = ""
    stream = await client.messages.create(model=model, messages=messages, tools=tools, max_tokens=1000, stream=True)
    async for event in stream:
        if event.type == "content_block_start" and event.content_block.type == "tool_use":
            call = event.content_block.id
        elif event.type == "content_block_delta":
            said += event.delta.partial_json if call else event.delta.text
    return _Reply(call, said)


def _add_anthropic(reply: _Reply, result: str) -> list[Any]:
    call = {"type": "tool_use", "id": reply.call, "name": "step", "input": reply.input}
    answer = {"type": "tool_result", "tool_use_id": reply.call, "content": result}
    return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [answer]}]


async def _ask_gemini(client: Any, model: str, contents: list[Any]) -> _Reply:
    declared = [{**_ABOUT, "parameters_json_schema": _PARAMETERS}]
    config = {"tools": [{"function_declarations": declared}], "automatic_function_calling": {"disable": True}}
    call = said = ""
    async for chunk in await client.aio.models.generate_content_stream(model=model, contents=contents, config=config):
        for part in chunk.candidates[0].content.parts:
            said += part.text or ""
            if part.function_call:
                call, said = part.function_call.id, json.dumps(part.function_call.args)
    return _Reply(call, said)


def _add_gemini(reply: _Reply, result: str) -> list[Any]:
    call = {"id": reply.call, "name": "step", "args": reply.input}
    answer = {"id": reply.call, "name": "step", "response": {"result": result}}
    return [
        {"role": "model", "parts": [{"function_call": call}]},
        {"role": "user", "parts": [{"function_response": answer}]},
    ]


async def _ask_bedrock(client: Any, model: str, messages: list[Any]) -> _Reply:
    tools = {"tools": [{"toolSpec": {**_ABOUT, "inputSchema": {"json": _PARAMETERS}}}]}
    call = said = ""
    for event in client.converse_stream(modelId=model, messages=messages, toolConfig=tools)["stream"]:
        if "contentBlockStart" in event:
            call = event["contentBlockStart"]["start"]["toolUse"]["toolUseId"]
        elif "contentBlockDelta" in event:
            delta = event["contentBlockDelta"]["delta"]
            said += delta["toolUse"]["input"] if call else delta["text"]
    return _Reply(call, said)


def _add_bedrock(reply: _Reply, result: str) -> list[Any]:
    call = {"toolUseId": reply.call, "name": "step", "input": reply.input}
    answer = {"toolUseId": reply.call, "content": [{"text": result}]}
    return [
        {"role": "assistant", "content": [{"toolUse": call}]},
        {"role": "user", "content": [{"toolResult": answer}]},
    ]


_WIRES: dict[str, tuple[_Ask, Callable[[_Reply, str], list[Any]], Any]] = {
    "openai-chat": (_ask_chat, _add_chat, {"role": "user", "content": "go"}),
    "openai-responses": (_ask_responses, _add_responses, {"role": "user", "content": "go"}),
    "anthropic": (_ask_anthropic, _add_anthropic, {"role": "user", "content": "go"}),
    "gemini": (_ask_gemini, _add_gemini, {"role": "user", "parts": [{"text": "go"}]}),
    "bedrock": (_ask_bedrock, _add_bedrock, {"role": "user", "content": [{"text": "go"}]}),
}


def _prepare(wire: str, client: Any, script: Script) -> Any:
    ask, add, question = _WIRES[wire]

    async def run() -> str:
        messages: list[Any] = [question]
        while True:
            reply = await ask(client, f"steps-{script.steps}", messages)
            if not reply.call:
                script.stamp(script.steps)
                return reply.said
            messages += add(reply, script.work(reply.input["n"]))
            if script.ran == script.window + 1:
                for call_id, arguments, result in script.skip():
                    messages += add(_Reply(call_id, json.dumps(arguments)), result)

    return run


if __name__ == "__main__":
    variants = {wire: partial(_prepare, wire, sdk_client(wire, sys.argv[1])) for wire in _WIRES}
    serve("hand-written", platform.python_version(), variants)
