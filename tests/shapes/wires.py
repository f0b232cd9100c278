"""One renderer and one reader per wire, written from the providers' formats, not from the code under test."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Message,
    ToolCall,
    UserInputText,
)
from tests.shapes.notation import Call, Entry, Event, Outline, Result, Step, System, Turn, User, name_for

WIRES = ("message", "agentic", "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
BLOCK_WIRES = ("agentic", "anthropic", "gemini", "bedrock")
WITH_SYSTEM = ("message", "agentic", "openai-chat", "openai-responses")
TELLS_ERRORS = ("message", "agentic", "anthropic", "gemini", "bedrock")


@dataclass(frozen=True)
class Form:
    """A wire, and whether results that stand together share a message."""

    wire: str
    bundle: bool = False

    def __str__(self) -> str:
        return f"{self.wire}, bundled" if self.bundle else self.wire


FORMS = tuple(Form(wire) for wire in WIRES) + tuple(Form(wire, bundle=True) for wire in BLOCK_WIRES)


@dataclass(frozen=True)
class Rendered:
    """A history on a wire; `at[step]` is where a step stands in it, `at[step, n]` where its call n does."""

    messages: list[Any]
    at: dict[Any, int]


def as_text(arguments: Any) -> str:
    return arguments if isinstance(arguments, str) else json.dumps(arguments)


# --- rendering --------------------------------------------------------------------------------


def _message(step: Step, name: str) -> list[Any]:
    match step:
        case User(text):
            return [Message.user(text)]
        case System(text):
            return [Message.system(text)]
        case Turn(calls, text):
            return [Message.assistant(text, [ToolCall(c.id, c.name, as_text(c.arguments)) for c in calls])]
        case Result(id=id_, text=text, error=error):
            return [Message.tool(text, id_, name, is_error=error)]


def _agentic(step: Step, name: str) -> list[Any]:
    match step:
        case User(text):
            return [AgenticMessage.user(text)]
        case System(text):
            return [AgenticMessage.system(text)]
        case Turn(calls, text):
            spoken = [AssistantGenText(text)] if text or not calls else []
            made = [FunctionToolCall(c.id, c.name, as_text(c.arguments)) for c in calls]
            return [AgenticMessage.assistant([*spoken, *made])]
        case Result(id=id_, text=text, error=error):
            return [AgenticMessage("user", (FunctionToolResult(id_, name, (UserInputText(text),), error),))]


def _chat(step: Step, _name: str) -> list[Any]:
    match step:
        case User(text):
            return [{"role": "user", "content": text}]
        case System(text):
            return [{"role": "system", "content": text}]
        case Turn((), text):
            return [{"role": "assistant", "content": text}]
        case Turn(calls, text):
            made = [
                {
                    "id": c.id,
                    "type": "function",
                    "function": {"name": c.name, "arguments": as_text(c.arguments)},
                }
                for c in calls
            ]
            return [{"role": "assistant", "content": text or None, "tool_calls": made}]
        case Result(id=id_, text=text):
            return [{"role": "tool", "tool_call_id": id_, "content": text}]


def _responses(step: Step, _name: str) -> list[Any]:
    match step:
        case User(text):
            return [{"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}]
        case System(text):
            return [{"role": "system", "content": text}]
        case Turn(calls, text):
            part = {"type": "output_text", "text": text, "annotations": []}
            spoken = [{"type": "message", "role": "assistant", "content": [part]}]
            return [
                *(spoken if text or not calls else []),
                *(
                    {
                        "type": "function_call",
                        "call_id": c.id,
                        "name": c.name,
                        "arguments": as_text(c.arguments),
                    }
                    for c in calls
                ),
            ]
        case Result(id=id_, text=text):
            return [{"type": "function_call_output", "call_id": id_, "output": text}]


def _anthropic(step: Step, _name: str) -> list[Any]:
    match step:
        case User(text):
            return [{"role": "user", "content": text}]
        case System(text):
            return [{"role": "system", "content": text}]
        case Turn((), text):
            return [{"role": "assistant", "content": text}]
        case Turn(calls, text):
            spoken = [{"type": "text", "text": text}] if text else []
            made = [{"type": "tool_use", "id": c.id, "name": c.name, "input": c.arguments} for c in calls]
            return [{"role": "assistant", "content": [*spoken, *made]}]
        case Result(id=id_, text=text, error=error):
            block = {"type": "tool_result", "tool_use_id": id_, "content": text}
            return [{"role": "user", "content": [{**block, "is_error": True} if error else block]}]


def _gemini(step: Step, name: str) -> list[Any]:
    match step:
        case User(text) | System(text):
            return [{"role": "user", "parts": [{"text": text}]}]
        case Turn(calls, text):
            spoken = [{"text": text}] if text or not calls else []
            made = [{"functionCall": {"id": c.id, "name": c.name, "args": c.arguments}} for c in calls]
            return [{"role": "model", "parts": [*spoken, *made]}]
        case Result(id=id_, text=text, error=error):
            answer = {"id": id_, "name": name, "response": {"error" if error else "output": text}}
            return [{"role": "user", "parts": [{"functionResponse": answer}]}]


def _bedrock(step: Step, _name: str) -> list[Any]:
    match step:
        case User(text) | System(text):
            return [{"role": "user", "content": [{"text": text}]}]
        case Turn(calls, text):
            spoken = [{"text": text}] if text or not calls else []
            made = [{"toolUse": {"toolUseId": c.id, "name": c.name, "input": c.arguments}} for c in calls]
            return [{"role": "assistant", "content": [*spoken, *made]}]
        case Result(id=id_, text=text, error=error):
            answer = {
                "toolUseId": id_,
                "content": [{"text": text}],
                "status": "error" if error else "success",
            }
            return [{"role": "user", "content": [{"toolResult": answer}]}]


_RENDER: dict[str, Callable[[Step, str], list[Any]]] = {
    "message": _message,
    "agentic": _agentic,
    "openai-chat": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}


def _joined(wire: str, one: Any, other: Any) -> Any:
    if wire == "agentic":
        return AgenticMessage("user", (*one.content_blocks, *other.content_blocks))
    key = "parts" if wire == "gemini" else "content"
    return {**one, key: [*one[key], *other[key]]}


def render(form: Form | str, steps: Sequence[Step]) -> Rendered:
    """Return the steps as a history of a wire."""
    form = Form(form) if isinstance(form, str) else form
    messages: list[Any] = []
    at: dict[Any, int] = {}
    for number, step in enumerate(steps):
        name = name_for(steps, number) if isinstance(step, Result) else ""
        made = _RENDER[form.wire](step, name)
        if form.bundle and number and isinstance(step, Result) and isinstance(steps[number - 1], Result):
            messages[-1] = _joined(form.wire, messages[-1], made[0])
            at[number] = len(messages) - 1
            continue
        at[number] = len(messages)
        if isinstance(step, Turn):
            separate = form.wire == "openai-responses"
            first = len(made) - len(step.calls)
            for n in range(len(step.calls)):
                at[number, n] = len(messages) + (first + n if separate else 0)
        messages += made
    return Rendered(messages, at)


# --- what is expected -------------------------------------------------------------------------


def _events(wire: str, step: Step) -> tuple[Event, ...]:
    match step:
        case User(text) | System(text):
            return (("text", text),)
        case Result(id=id_, text=text, error=error):
            return (("failed" if error and wire in TELLS_ERRORS else "result", id_, text),)
        case Turn(calls, text):
            spoken: tuple[Event, ...] = (("text", text),) if text or not calls else ()
            return spoken + tuple(("call", each.id, each.name) for each in calls)


def expect(form: Form | str, steps: Sequence[Step]) -> Outline:
    """Return the outline that these steps have on a wire, with the neighbours merged that it wants merged."""
    wire = form.wire if isinstance(form, Form) else form
    outline: Outline = []
    previous: Step | None = None
    for step in steps:
        events = _events(wire, step)
        role = {User: "user", System: "system", Turn: "assistant", Result: "tool"}[type(step)]
        if (wire in BLOCK_WIRES and role == "tool") or (wire in {"gemini", "bedrock"} and role == "system"):
            role = "user"
        one_message = wire == "anthropic" and isinstance(step, Result) and isinstance(previous, Result)
        if outline and (one_message or (wire in {"gemini", "bedrock"} and outline[-1][0] == role)):
            outline[-1] = (role, outline[-1][1] + events)
        elif wire == "openai-responses":
            outline += [(role, (event,)) for event in events]
        else:
            outline.append((role, events))
        previous = step
    return outline


# --- reading ----------------------------------------------------------------------------------


def _joined_text(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def _read_message(message: Message) -> Entry:
    events: list[Event] = []
    if message.role == "tool":
        kind = "failed" if message.is_error else "result"
        events.append((kind, message.tool_call_id, message.content))
    elif message.content or not message.tool_calls:
        events.append(("text", message.content))
    events += [("call", each.id, each.name) for each in message.tool_calls]
    return message.role, tuple(events)


def _read_agentic(message: AgenticMessage) -> Entry:
    events: list[Event] = []
    for block in message.content_blocks:
        match block:
            case UserInputText(text=text) | AssistantGenText(text=text):
                events.append(("text", text))
            case FunctionToolCall(call_id=id_, name=name):
                events.append(("call", id_, name))
            case FunctionToolResult(call_id=id_, content=content, is_error=error):
                told = "".join(part.text for part in content if isinstance(part, UserInputText))
                events.append(("failed" if error else "result", id_, told))
            case _:
                events.append(("other", type(block).__name__))
    return message.role, tuple(events)


def _read_chat(message: dict[str, Any]) -> Entry:
    if message["role"] == "tool":
        return "tool", (("result", message["tool_call_id"], _joined_text(message["content"])),)
    text = _joined_text(message.get("content"))
    calls = message.get("tool_calls") or []
    events: list[Event] = [("text", text)] if text or not calls else []
    events += [("call", each["id"], each["function"]["name"]) for each in calls]
    return message["role"], tuple(events)


def _read_responses(item: dict[str, Any]) -> Entry:
    match item.get("type", "message"):
        case "message":
            return item["role"], (("text", _joined_text(item["content"])),)
        case "function_call":
            return "assistant", (("call", item["call_id"], item["name"]),)
        case "function_call_output":
            return "tool", (("result", item["call_id"], _joined_text(item["output"])),)
        case other:
            return "other", (("other", other),)


def _read_anthropic(message: dict[str, Any]) -> Entry:
    content = message["content"]
    if isinstance(content, str):
        return message["role"], (("text", content),)
    events: list[Event] = []
    for block in content:
        match block["type"]:
            case "text":
                events.append(("text", block["text"]))
            case "tool_use":
                events.append(("call", block["id"], block["name"]))
            case "tool_result":
                kind = "failed" if block.get("is_error") else "result"
                events.append((kind, block["tool_use_id"], _joined_text(block.get("content"))))
            case other:
                events.append(("other", other))
    return message["role"], tuple(events)


def _read_gemini(message: dict[str, Any]) -> Entry:
    events: list[Event] = []
    for part in message["parts"]:
        if "functionCall" in part:
            events.append(("call", part["functionCall"].get("id", ""), part["functionCall"]["name"]))
        elif "functionResponse" in part:
            answer = part["functionResponse"]
            kind = "failed" if "error" in answer["response"] else "result"
            events.append((kind, answer.get("id", ""), "".join(answer["response"].values())))
        else:
            events.append(("text", part["text"]) if "text" in part else ("other", *part))
    return "assistant" if message["role"] == "model" else "user", tuple(events)


def _read_bedrock(message: dict[str, Any]) -> Entry:
    events: list[Event] = []
    for block in message["content"]:
        if "toolUse" in block:
            events.append(("call", block["toolUse"]["toolUseId"], block["toolUse"]["name"]))
        elif "toolResult" in block:
            answer = block["toolResult"]
            kind = "failed" if answer.get("status") == "error" else "result"
            events.append((kind, answer["toolUseId"], _joined_text(answer["content"])))
        else:
            events.append(("text", block["text"]) if "text" in block else ("other", *block))
    return message["role"], tuple(events)


_READ: dict[str, Callable[[Any], Entry]] = {
    "message": _read_message,
    "agentic": _read_agentic,
    "openai-chat": _read_chat,
    "openai-responses": _read_responses,
    "anthropic": _read_anthropic,
    "gemini": _read_gemini,
    "bedrock": _read_bedrock,
}


def read(form: Form | str, messages: Sequence[Any]) -> Outline:
    """Return the outline of a history of a wire."""
    wire = form.wire if isinstance(form, Form) else form
    return [_READ[wire](message) for message in messages]


def arguments_of(wire: str, messages: Sequence[Any]) -> list[Any]:
    """Return the arguments of all calls, in order, as they stand there."""
    found: list[Any] = []
    for message in messages:
        match wire:
            case "message":
                found += [each.arguments for each in message.tool_calls]
            case "agentic":
                found += [b.arguments for b in message.content_blocks if isinstance(b, FunctionToolCall)]
            case "openai-chat":
                found += [each["function"]["arguments"] for each in message.get("tool_calls") or []]
            case "openai-responses":
                found += [message["arguments"]] if message.get("type") == "function_call" else []
            case "anthropic":
                blocks = message["content"] if isinstance(message["content"], list) else []
                found += [block["input"] for block in blocks if block["type"] == "tool_use"]
            case "gemini":
                found += [p["functionCall"]["args"] for p in message["parts"] if "functionCall" in p]
            case _:
                found += [b["toolUse"]["input"] for b in message["content"] if "toolUse" in b]
    return found


def all_calls(steps: Sequence[Step]) -> list[Call]:
    return [each for step in steps if isinstance(step, Turn) for each in step.calls]
