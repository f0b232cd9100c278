"""Histories in a neutral notation, and how each wire writes them. Shared by the properties and the sweeps.

A history is a list of steps:

    ("user", text) · ("system", text) · ("say", text) · ("think", text)   one message each
    ("turn", [(id, name, arguments), ...])                                 an assistant message with calls
    ("result", id, name, text)                                             one result
    ("mixed", [(id, name, text), ...], text)                               results and text in one message
    ("inner", [calls], [results], text)                                    all in one message of the model's
"""

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Message,
    Reasoning,
    ReasoningPart,
    ToolCall,
    UserInputText,
)

Step = tuple[Any, ...]


def arguments_value(text: str) -> Any:
    """Return the arguments as block wires hold them: decoded if that works, raw otherwise."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def _message(step: Step) -> list[Message]:
    match step:
        case ("user" | "system" as role, text):
            return [Message(role, text)]
        case ("say", text):
            return [Message("assistant", text)]
        case ("think", text):
            return [Message("assistant", text, assistant_gen_multi_content=(ReasoningPart(text="hm", signature="s"),))]
        case ("turn", calls):
            return [Message("assistant", tool_calls=tuple(ToolCall(id=i, name=n, arguments=a) for i, n, a in calls))]
        case ("result", call_id, name, text):
            return [Message.tool(text, call_id, name)]
        case ("mixed", results, text):
            return [*(Message.tool(t, i, n) for i, n, t in results), Message("user", text)]
    raise AssertionError(step)


def _agentic(step: Step) -> list[AgenticMessage]:
    match step:
        case ("user" | "system" as role, text):
            return [AgenticMessage(role, (UserInputText(text=text),))]
        case ("say", text):
            return [AgenticMessage("assistant", (AssistantGenText(text=text),) if text else ())]
        case ("think", text):
            blocks = (Reasoning(text="hm", signature="s"), AssistantGenText(text=text))
            return [AgenticMessage("assistant", blocks)]
        case ("turn", calls):
            return [AgenticMessage.assistant([FunctionToolCall(call_id=i, name=n, arguments=a) for i, n, a in calls])]
        case ("result", call_id, name, text):
            return [AgenticMessage.tool_result(call_id, name, text)]
        case ("mixed", results, text):
            carried = [FunctionToolResult(call_id=i, name=n, content=(UserInputText(text=t),)) for i, n, t in results]
            return [AgenticMessage("user", (*carried, UserInputText(text=text)))]
    raise AssertionError(step)


def _chat(step: Step) -> list[dict[str, Any]]:
    match step:
        case ("user" | "system" as role, text):
            return [{"role": role, "content": text}]
        case ("say", text):
            return [{"role": "assistant", "content": text or None}]
        case ("think", text):
            return [{"role": "assistant", "content": text, "reasoning_content": "hm"}]
        case ("turn", calls):
            made = [{"id": i, "type": "function", "function": {"name": n, "arguments": a}} for i, n, a in calls]
            return [{"role": "assistant", "content": None, "tool_calls": made}]
        case ("result", call_id, _, text):
            return [{"role": "tool", "tool_call_id": call_id, "content": text}]
        case ("mixed", results, text):
            tools = [{"role": "tool", "tool_call_id": i, "content": t} for i, _, t in results]
            return [*tools, {"role": "user", "content": text}]
    raise AssertionError(step)


def _responses(step: Step) -> list[dict[str, Any]]:
    match step:
        case ("user" | "system" as role, text):
            return [{"role": role, "content": text}]
        case ("say", text):
            return [{"role": "assistant", "content": text}]
        case ("think", text):
            return [
                {"type": "reasoning", "summary": [], "encrypted_content": "e"},
                {"role": "assistant", "content": text},
            ]
        case ("turn", calls):
            return [{"type": "function_call", "call_id": i, "name": n, "arguments": a} for i, n, a in calls]
        case ("result", call_id, _, text):
            return [{"type": "function_call_output", "call_id": call_id, "output": text}]
        case ("mixed", results, text):
            outputs = [{"type": "function_call_output", "call_id": i, "output": t} for i, _, t in results]
            return [*outputs, {"role": "user", "content": text}]
    raise AssertionError(step)


def _anthropic(step: Step) -> list[dict[str, Any]]:
    match step:
        case ("user" | "system", text):
            return [{"role": "user", "content": text}]
        case ("say", text):
            return [{"role": "assistant", "content": [{"type": "text", "text": text}] if text else []}]
        case ("think", text):
            thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
            return [{"role": "assistant", "content": [thinking, {"type": "text", "text": text}]}]
        case ("turn", calls):
            uses = [{"type": "tool_use", "id": i, "name": n, "input": arguments_value(a)} for i, n, a in calls]
            return [{"role": "assistant", "content": uses}]
        case ("result", call_id, _, text):
            return [
                {
                    "role": "user",
                    "content": [{"type": "tool_result", "tool_use_id": call_id, "content": text}],
                }
            ]
        case ("mixed", results, text):
            blocks = [{"type": "tool_result", "tool_use_id": i, "content": t} for i, _, t in results]
            return [{"role": "user", "content": [*blocks, {"type": "text", "text": text}]}]
    raise AssertionError(step)


def _gemini(step: Step) -> list[dict[str, Any]]:
    match step:
        case ("user" | "system", text):
            return [{"role": "user", "parts": [{"text": text}]}]
        case ("say", text):
            return [{"role": "model", "parts": [{"text": text}] if text else []}]
        case ("think", text):
            return [{"role": "model", "parts": [{"text": text, "thoughtSignature": "s"}]}]
        case ("turn", calls):
            return [{"role": "model", "parts": [_function_call(*call) for call in calls]}]
        case ("result", call_id, name, text):
            return [{"role": "user", "parts": [_function_response(call_id, name, text)]}]
        case ("mixed", results, text):
            parts = [_function_response(*result) for result in results]
            return [{"role": "user", "parts": [*parts, {"text": text}]}]
    raise AssertionError(step)


def _function_call(call_id: str, name: str, arguments: str) -> dict[str, Any]:
    own = {"id": call_id} if call_id else {}
    return {"functionCall": {**own, "name": name, "args": arguments_value(arguments)}}


def _function_response(call_id: str, name: str, text: str) -> dict[str, Any]:
    own = {"id": call_id} if call_id else {}
    return {"functionResponse": {**own, "name": name, "response": {"result": text}}}


def _bedrock(step: Step) -> list[dict[str, Any]]:
    match step:
        case ("user" | "system", text):
            return [{"role": "user", "content": [{"text": text}]}]
        case ("say", text):
            return [{"role": "assistant", "content": [{"text": text}] if text else []}]
        case ("think", text):
            reasoning = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
            return [{"role": "assistant", "content": [reasoning, {"text": text}]}]
        case ("turn", calls):
            uses = [{"toolUse": {"toolUseId": i, "name": n, "input": arguments_value(a)}} for i, n, a in calls]
            return [{"role": "assistant", "content": uses}]
        case ("result", call_id, _, text):
            return [
                {
                    "role": "user",
                    "content": [{"toolResult": {"toolUseId": call_id, "content": [{"text": text}]}}],
                }
            ]
        case ("mixed", results, text):
            blocks = [{"toolResult": {"toolUseId": i, "content": [{"text": t}]}} for i, _, t in results]
            return [{"role": "user", "content": [*blocks, {"text": text}]}]
    raise AssertionError(step)


WRITERS: dict[str, Callable[[Step], list[Any]]] = {
    "message": _message,
    "agentic": _agentic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}


def write(wire: str, steps: Sequence[Step]) -> list[Any]:
    """Return the history `steps` as messages of `wire`."""
    return [message for step in steps for message in _written(wire, step)]


def _written(wire: str, step: Step) -> list[Any]:
    if step[0] != "inner":
        return WRITERS[wire](step)
    _, calls, results, text = step
    parts: list[Step] = [("turn", calls), *[("result", *result) for result in results], ("say", text)]
    messages = [message for part in parts for message in WRITERS[wire](part)]
    if wire == "agentic":
        return [AgenticMessage("assistant", tuple(block for m in messages for block in m.content_blocks))]
    if wire not in {"anthropic", "gemini", "bedrock"}:
        return messages  # one message holds one of them
    key = "parts" if wire == "gemini" else "content"
    return [{**messages[0], key: [block for message in messages for block in message[key]]}]


def atoms(message: Any) -> list[tuple[Any, ...]]:
    """Return what a message of any wire says, block by block.

    ("call", id, name) · ("result", id, text) · ("text", role, text)
    """
    if isinstance(message, Message):
        return list(_message_atoms(message))
    if isinstance(message, AgenticMessage):
        return [_agentic_atom(message.role, block) for block in message.content_blocks]
    if "type" in message or "parts" in message:
        return list(_item_atoms(message))
    content = message.get("content")
    if message["role"] == "tool":
        return [("result", message["tool_call_id"], content)]
    if isinstance(content, list):
        return [_block_atom(message["role"], block) for block in content]
    said = [("text", message["role"], content)] if content else []
    calls = [("call", call["id"], call["function"]["name"]) for call in message.get("tool_calls", ())]
    return [*said, *calls]


def _message_atoms(message: Message) -> Iterator[tuple[Any, ...]]:
    if message.role == "tool":
        yield ("result", message.tool_call_id, message.content)
        return
    if message.content:
        yield ("text", message.role, message.content)
    for call in message.tool_calls:
        yield ("call", call.id, call.name)


def _agentic_atom(role: str, block: Any) -> tuple[Any, ...]:
    if isinstance(block, FunctionToolCall):
        return ("call", block.call_id, block.name)
    if isinstance(block, FunctionToolResult):
        return ("result", block.call_id, "".join(getattr(part, "text", "") for part in block.content))
    return ("text", role, block.text)


def _item_atoms(item: dict[str, Any]) -> Iterator[tuple[Any, ...]]:
    for part in item.get("parts", ()):
        if "functionCall" in part:
            yield ("call", part["functionCall"].get("id", ""), part["functionCall"]["name"])
        elif "functionResponse" in part:
            response = part["functionResponse"]
            yield ("result", response.get("id", ""), next(iter(response["response"].values())))
        else:
            yield ("text", item["role"], part["text"])
    match item.get("type"):
        case "function_call":
            yield ("call", item["call_id"], item["name"])
        case "function_call_output":
            yield ("result", item["call_id"], item["output"])
        case "reasoning":
            yield ("text", "assistant", "reasoning")


def _block_atom(role: str, block: dict[str, Any]) -> tuple[Any, ...]:
    match block:
        case {"type": "tool_use"}:
            return ("call", block["id"], block["name"])
        case {"type": "tool_result"}:
            return ("result", block["tool_use_id"], block["content"])
        case {"type": "thinking"}:
            return ("text", role, "thinking")
        case {"toolUse": use}:
            return ("call", use["toolUseId"], use["name"])
        case {"toolResult": result}:
            return ("result", result["toolUseId"], "".join(part["text"] for part in result["content"]))
        case {"reasoningContent": _}:
            return ("text", role, "thinking")
    return ("text", role, block["text"])


def flat(messages: Sequence[Any]) -> list[tuple[Any, ...]]:
    """Return the atoms of a whole history."""
    return [atom for message in messages for atom in atoms(message)]
