"""Histories with tool output worth clearing, on every wire; how they are written, and how they are read back.

Written from the providers' formats, not from the code under test. Beside the steps of `tests/histories.py`:

    ("signed", [(id, name, arguments), ...])        a turn with calls and thinking that the provider signed
    ("bundle", [(id, name, content), ...])          results alone, in one message where the wire allows it
    ("failed", id, name, text)                      a result that says the call failed

A content is a text, or a list of parts: ("text", text), ("image", base64), ("unknown", number).
"""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from suture.messages import (
    AgenticMessage,
    FunctionToolCall,
    FunctionToolResult,
    ImagePart,
    Message,
    Opaque,
    Reasoning,
    ReasoningPart,
    TextPart,
    ToolCall,
    UserInputImage,
    UserInputText,
)
from tests.histories import WRITERS, Step, arguments_value

NATIVE = ("message", "agentic")
WIRES = ("message", "agentic", "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
FOREIGN = tuple(wire for wire in WIRES if wire not in NATIVE)
BUNDLED = ("agentic", "anthropic", "gemini", "bedrock")
OBJECT_ARGUMENTS = ("anthropic", "gemini", "bedrock")
TELLS_ERRORS = ("message", "agentic", "anthropic", "gemini", "bedrock")
SIGNED = ("message", "agentic", "openai-responses", "anthropic", "gemini", "bedrock")
MARK = "_reduction_mw_processed"
CLEARED = "[Old tool result content cleared]"

Content = str | list[tuple[str, Any]]


def long(label: str, size: int = 800) -> str:
    """Return a text of exactly `size` characters that is nobody else's."""
    line = f"{label}: what the tool of {label} found, line by line\n"
    return (line * (size // len(line) + 1))[:size]


def saved_at(path: str, tool: str = "read_file") -> str:
    """Return what stands in place of a result that was saved."""
    return f"<persisted-output>Tool result saved to: {path}\nUse {tool} to view</persisted-output>"


def one_round(call_id: str, content: Content | None = None, name: str = "search") -> list[Step]:
    """Return a turn with one call, and its result."""
    said = long(call_id) if content is None else content
    return [("turn", [(call_id, name, '{"q": 1}')]), ("bundle", [(call_id, name, said)])]


# --- writing ----------------------------------------------------------------------------------


def _parts(wire: str, content: Content) -> Any:
    """Return a content as the wire writes it; of Gemini, (response, parts)."""
    write = _PART[wire]
    if wire == "gemini":
        if isinstance(content, str):
            return {"result": content}, []
        texts = [value for kind, value in content if kind == "text"]
        response = {"result": texts[0]} if len(texts) == 1 else {f"part{n}": text for n, text in enumerate(texts)}
        return response, [write(*part) for part in content if part[0] != "text"]
    if isinstance(content, str) and wire not in {"agentic", "bedrock"}:
        return content
    listed = [("text", content)] if isinstance(content, str) else content
    return [write(*part) for part in listed]


def _message_part(kind: str, value: Any) -> Any:
    if kind == "text":
        return TextPart(value)
    if kind == "image":
        return ImagePart(base64_data=value, mime_type="image/png", detail="high", extra={"seen": True})
    return Opaque({"type": "hologram", "beam": value})


def _agentic_part(kind: str, value: Any) -> Any:
    if kind == "text":
        return UserInputText(value)
    if kind == "image":
        return UserInputImage(base64_data=value, mime_type="image/png", detail="high", extra={"seen": True})
    return Opaque({"type": "hologram", "beam": value})


def _chat_part(kind: str, value: Any) -> Any:
    if kind == "text":
        return {"type": "text", "text": value}
    if kind == "image":
        return {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{value}", "detail": "high"}}
    return {"type": "hologram", "beam": value}


def _responses_part(kind: str, value: Any) -> Any:
    if kind == "text":
        return {"type": "input_text", "text": value}
    if kind == "image":
        return {"type": "input_image", "image_url": f"data:image/png;base64,{value}", "detail": "high"}
    return {"type": "hologram", "beam": value}


def _anthropic_part(kind: str, value: Any) -> Any:
    if kind == "text":
        return {"type": "text", "text": value}
    if kind == "image":
        return {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": value}}
    return {"type": "hologram", "beam": value}


def _gemini_part(kind: str, value: Any) -> Any:
    if kind == "image":
        return {"inlineData": {"mimeType": "image/png", "data": value}}
    return {"hologram": {"beam": value}}


def _bedrock_part(kind: str, value: Any) -> Any:
    if kind == "text":
        return {"text": value}
    if kind == "image":
        return {"image": {"format": "png", "source": {"bytes": value.encode()}}}
    return {"hologram": {"beam": value}}


_PART: dict[str, Callable[[str, Any], Any]] = {
    "message": _message_part,
    "agentic": _agentic_part,
    "openai-chat": _chat_part,
    "openai-responses": _responses_part,
    "anthropic": _anthropic_part,
    "gemini": _gemini_part,
    "bedrock": _bedrock_part,
}


def result_of(wire: str, call_id: str, name: str, content: Content, *, failed: bool = False) -> Any:
    """Return one result as the wire writes it: a message, or a block of one."""
    said = _parts(wire, content)
    match wire:
        case "message":
            return Message.tool(said, call_id, name, is_error=failed)
        case "agentic":
            return FunctionToolResult(call_id, name, said, failed)
        case "openai-chat":
            return {"role": "tool", "tool_call_id": call_id, "content": said}
        case "openai-responses":
            return {"type": "function_call_output", "call_id": call_id, "output": said}
        case "anthropic":
            block = {"type": "tool_result", "tool_use_id": call_id, "content": said}
            return {**block, "is_error": True} if failed else block
        case "gemini":
            response, others = said
            answer = {"name": name, "response": {"error": content} if failed else response}
            own = {"id": call_id} if call_id else {}
            return {"functionResponse": {**own, **answer, **({"parts": others} if others else {})}}
    status = "error" if failed else "success"
    return {"toolResult": {"toolUseId": call_id, "content": said, "status": status}}


def carrying(wire: str, results: Sequence[Any]) -> list[Any]:
    """Return the messages that carry these results and nothing else."""
    match wire:
        case "agentic":
            return [AgenticMessage("user", tuple(results))]
        case "gemini":
            return [{"role": "user", "parts": list(results)}]
        case "anthropic" | "bedrock":
            return [{"role": "user", "content": list(results)}]
    return list(results)


def _signed(wire: str, calls: Sequence[tuple[str, str, str]]) -> list[Any]:
    match wire:
        case "message":
            made = tuple(ToolCall(*call) for call in calls)
            thought = (ReasoningPart(text="hm", signature="s"),)
            return [Message("assistant", tool_calls=made, assistant_gen_multi_content=thought)]
        case "agentic":
            made = [FunctionToolCall(*call) for call in calls]
            return [AgenticMessage.assistant([Reasoning(text="hm", signature="s"), *made])]
        case "openai-responses":
            return [{"type": "reasoning", "summary": [], "encrypted_content": "e"}, *_plain(wire, calls)]
        case "anthropic":
            (turn,) = _plain(wire, calls)
            thinking = {"type": "thinking", "thinking": "hm", "signature": "s"}
            return [{**turn, "content": [thinking, *turn["content"]]}]
        case "gemini":
            (turn,) = _plain(wire, calls)
            first, *rest = turn["parts"]
            return [{**turn, "parts": [{**first, "thoughtSignature": "s"}, *rest]}]
        case "bedrock":
            (turn,) = _plain(wire, calls)
            thinking = {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "s"}}}
            return [{**turn, "content": [thinking, *turn["content"]]}]
    return [{**_plain(wire, calls)[0], "reasoning_content": "hm"}]


def _plain(wire: str, calls: Sequence[tuple[str, str, str]]) -> list[Any]:
    return WRITERS[wire](("turn", list(calls)))


def write(wire: str, steps: Sequence[Step]) -> list[Any]:
    """Return the history `steps` as messages of `wire`."""
    messages: list[Any] = []
    for step in steps:
        match step:
            case ("signed", calls):
                messages += _signed(wire, calls)
            case ("bundle", results):
                messages += carrying(wire, [result_of(wire, *result) for result in results])
            case ("failed", call_id, name, text):
                messages += carrying(wire, [result_of(wire, call_id, name, text, failed=True)])
            case _:
                messages += WRITERS[wire](step)
    return messages


# --- reading ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Read:
    """A result as it stands in a history: its texts, and what else it holds."""

    id: str
    texts: tuple[str, ...]
    others: tuple[Any, ...] = ()
    failed: bool = False

    @property
    def text(self) -> str:
        """Its only text."""
        (text,) = self.texts
        return text


def _split(content: Any, text_key: Callable[[Any], str | None]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    if content is None:
        return (), ()
    if isinstance(content, str):
        return (content,), ()
    texts = [(part, text_key(part)) for part in content]
    return tuple(t for _, t in texts if t is not None), tuple(part for part, t in texts if t is None)


def _native_text(part: Any) -> str | None:
    return part.text if isinstance(part, TextPart | UserInputText) else None


def _text_block(part: Any) -> str | None:
    return part["text"] if part.get("type") in {"text", "input_text", "output_text"} else None


def _bare_text(part: Any) -> str | None:
    return part.get("text")


def _gemini_result(answer: dict[str, Any]) -> Read:
    response = answer["response"]
    values = list(response.values())
    text = values[0] if len(values) == 1 and isinstance(values[0], str) else json.dumps(response)
    texts = (text,) if response else ()
    return Read(answer.get("id", ""), texts, tuple(answer.get("parts", ())), "error" in response)


def read(wire: str, messages: Sequence[Any]) -> list[Read]:
    """Return all results of a history in order."""
    found: list[Read] = []
    for message in messages:
        match wire:
            case "message":
                if message.role == "tool":
                    texts, others = _split(message.user_input_multi_content, _native_text)
                    own = (message.content,) if message.content else ()
                    found.append(Read(message.tool_call_id, own + texts, others, message.is_error))
            case "agentic":
                blocks = [block for block in message.content_blocks if isinstance(block, FunctionToolResult)]
                found += [Read(b.call_id, *_split(b.content, _native_text), b.is_error) for b in blocks]
            case "openai-chat":
                if message["role"] == "tool":
                    found.append(Read(message["tool_call_id"], *_split(message["content"], _text_block)))
            case "openai-responses":
                if message.get("type") == "function_call_output":
                    found.append(Read(message["call_id"], *_split(message["output"], _text_block)))
            case "anthropic":
                blocks = message["content"] if isinstance(message["content"], list) else []
                found += [
                    Read(b["tool_use_id"], *_split(b.get("content"), _text_block), b.get("is_error", False))
                    for b in blocks
                    if b["type"] == "tool_result"
                ]
            case "gemini":
                answers = [p["functionResponse"] for p in message["parts"] if "functionResponse" in p]
                found += [_gemini_result(answer) for answer in answers]
            case _:
                answers = [block["toolResult"] for block in message["content"] if "toolResult" in block]
                found += [
                    Read(a["toolUseId"], *_split(a["content"], _bare_text), a.get("status") == "error") for a in answers
                ]
    return found


def texts(wire: str, messages: Sequence[Any]) -> list[str]:
    """Return the text of each result that is one text; fail where one is not."""
    return [result.text for result in read(wire, messages)]


def marked(messages: Sequence[Any]) -> list[bool]:
    """Tell of each native message whether it carries the mark."""
    return [message.extra.get(MARK) is True for message in messages]


def arguments_on(wire: str, text: str) -> Any:
    """Return the text of a JSON object as the wire holds arguments."""
    return arguments_value(text) if wire in OBJECT_ARGUMENTS else text
