"""Native blocks into blocks of Anthropic's Messages API."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from suture.codecs._contents import arguments_object
from suture.codecs._kept import origin_of, put_back, report_extension, unwrap
from suture.codecs._values import Losses, Lost
from suture.messages import (
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    FunctionToolCall,
    FunctionToolResult,
    MCPListToolsResult,
    MCPToolCall,
    MCPToolResult,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.providers.anthropic.fields import WIRE, own_fields, tag_of
from suture.providers.anthropic.media import write_in_words, write_media

__all__ = ["write_content", "write_system"]

_UNSAID = "(the tool failed without a message)"


def write_content(
    blocks: Sequence[Any], losses: Losses, path: str = "content_blocks", *, blank: bool = False
) -> list[dict[str, Any]]:
    """Return `blocks` as the API takes them; text that says nothing is left out unless `blank` is set.

    >>> write_content([UserInputText("hi"), UserInputText(" ")], Losses())
    [{'type': 'text', 'text': 'hi'}]
    """
    made: list[dict[str, Any]] = []
    for place, block in enumerate(blocks):
        where = f"{path}[{place}]"
        written = _write(block, losses, where)
        if written is None:
            continue
        if blank or written.get("type") != "text" or str(written.get("text")).strip():
            made.append(written)
            continue
        for name in sorted(written.keys() - {"type", "text"}):
            losses.add(Lost.FIELD, f"{WIRE} {name}", where)
    return made


def write_system(blocks: Sequence[Any], losses: Losses) -> list[dict[str, Any]]:
    """Return the blocks of a system message, which are texts; media are told in words.

    >>> write_system([UserInputText("Be brief.")], Losses())
    [{'type': 'text', 'text': 'Be brief.'}]
    """
    made: list[dict[str, Any]] = []
    for place, block in enumerate(blocks):
        where = f"content_blocks[{place}]"
        if _WRITERS.get(type(block)) in {write_media, write_in_words}:
            made.append(write_in_words(block, losses, where))
        elif isinstance(block, UserInputText | AssistantGenText | Opaque):
            made += [text for text in [_write(block, losses, where)] if text is not None]
        else:
            _lose(block, losses, where)
    return [text for text in made if text.get("type") != "text" or str(text.get("text")).strip()]


def _write(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    if isinstance(block, Opaque):
        return unwrap(WIRE, block, losses, path)
    writer = _WRITERS.get(type(block))
    return _lose(block, losses, path) if writer is None else writer(block, losses, path)


def _lose(block: Any, losses: Losses, path: str) -> None:
    losses.add(Lost.BLOCK, f"a block of type {tag_of(block)}", path)


def _text(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    for name in getattr(block, "extension", ()):
        losses.add(Lost.FIELD, f"{name} of a text", path)
    return put_back(WIRE, {"type": "text", "text": block.text}, block.extra, losses, path)


def _thought(block: Reasoning, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return thought as it came; `None` where it came from elsewhere."""
    if origin_of(block) != WIRE:
        losses.add(Lost.REASONING, f"thought {block.text[:40]!r}", path)
        return None
    report_extension(block, ("data",), losses, path)
    made: dict[str, Any] = {"type": "thinking", "thinking": block.text, "signature": block.signature}
    if "data" in block.extension:
        made = {"type": "redacted_thinking", "data": block.extension["data"]}
    return put_back(WIRE, made, block.extra, losses, path)


def _call(block: FunctionToolCall, losses: Losses, path: str) -> dict[str, Any]:
    whole = arguments_object(block.arguments, losses, f"{path}.arguments")
    made = {"type": "tool_use", "id": block.call_id, "name": block.name, "input": whole}
    return put_back(WIRE, made, block.extra, losses, path)


def _result(block: FunctionToolResult, losses: Losses, path: str) -> dict[str, Any]:
    content = _given(block.content, losses, f"{path}.content")
    made: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.call_id}
    if block.is_error:
        unsaid = not content.strip() if isinstance(content, str) else not content
        made = {**made, "content": _UNSAID if unsaid else content, "is_error": True}
    elif content:
        made["content"] = content
    return put_back(WIRE, made, block.extra, losses, path)


def _given(blocks: Sequence[Any], losses: Losses, path: str) -> str | list[dict[str, Any]]:
    """Return what a tool gave: as a string if that says it all."""
    if len(blocks) == 1 and type(blocks[0]) is UserInputText and not blocks[0].extra:
        return blocks[0].text
    content = write_content(blocks, losses, path)
    lone = len(content) == 1 and content[0].get("type") == "text" and content[0].keys() == {"type", "text"}
    return content[0]["text"] if lone else content


def _found(block: ToolSearchResult, losses: Losses, path: str) -> dict[str, Any]:
    """Return the tools that a search found, as text: a reference is good only for tools that the request declares."""
    losses.add(Lost.BLOCK, "the form of tools that were found; they are told as text", path)
    told = msgspec.json.encode(msgspec.to_builtins(block.tools)).decode()
    made = {"type": "tool_result", "tool_use_id": block.call_id, "content": told}
    return put_back(WIRE, made, block.extra, losses, path)


# What the provider ran on its side goes back to it alone.


def _provided(write: Callable[[Any, Losses, str], dict[str, Any]]) -> Callable[[Any, Losses, str], Any]:
    """Return a writer for blocks that a provider gave: this one's are written, any other's are reported."""

    def write_own(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
        if "type" not in own_fields(block.extra):
            return _lose(block, losses, path)
        return put_back(WIRE, write(block, losses, path), block.extra, losses, path)

    return write_own


def _server_call(block: ServerToolCall, losses: Losses, path: str) -> dict[str, Any]:
    given = block.arguments
    whole = arguments_object(given, losses, f"{path}.arguments") if isinstance(given, str) else given
    return {"id": block.call_id, "name": block.name, "input": whole}


def _server_result(block: ServerToolResult, _losses: Losses, _path: str) -> dict[str, Any]:
    return {"tool_use_id": block.call_id, "content": block.content}


def _mcp_call(block: MCPToolCall, losses: Losses, path: str) -> dict[str, Any]:
    whole = arguments_object(block.arguments, losses, f"{path}.arguments")
    return {"id": block.call_id, "name": block.name, "server_name": block.server_label, "input": whole}


def _mcp_result(block: MCPToolResult, _losses: Losses, _path: str) -> dict[str, Any]:
    content = block.content if block.error is None else block.error.message
    return {"tool_use_id": block.call_id, "content": content, "is_error": block.error is not None}


def _mcp_tools(block: MCPListToolsResult, _losses: Losses, _path: str) -> dict[str, Any]:
    return {"mcp_server_name": block.server_label}


_WRITERS: Mapping[Any, Callable[[Any, Losses, str], dict[str, Any] | None]] = {
    UserInputText: _text,
    AssistantGenText: _text,
    Reasoning: _thought,
    UserInputImage: write_media,
    UserInputFile: write_media,
    UserInputAudio: write_in_words,
    UserInputVideo: write_in_words,
    AssistantGenImage: write_in_words,
    AssistantGenAudio: write_in_words,
    AssistantGenVideo: write_in_words,
    FunctionToolCall: _call,
    FunctionToolResult: _result,
    ToolSearchResult: _found,
    ServerToolCall: _provided(_server_call),
    ServerToolResult: _provided(_server_result),
    MCPToolCall: _provided(_mcp_call),
    MCPToolResult: _provided(_mcp_result),
    MCPListToolsResult: _provided(_mcp_tools),
}
