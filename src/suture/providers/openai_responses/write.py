"""Messages into items of Responses."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from suture.codecs._contents import Called
from suture.codecs._kept import origin_of, unwrap
from suture.codecs._values import Losses, Lost
from suture.messages import (
    AgenticMessage,
    AssistantGenImage,
    FunctionToolCall,
    FunctionToolResult,
    MCPListToolsResult,
    MCPToolApprovalRequest,
    MCPToolApprovalResponse,
    MCPToolCall,
    MCPToolResult,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    ToolSearchResult,
)
from suture.providers.openai_responses.calls import Kind, kind_of, write_call, write_result
from suture.providers.openai_responses.fields import ITEM, NEEDS, PART, WIRE, own_fields, returned, tag_of
from suture.providers.openai_responses.ids import Written
from suture.providers.openai_responses.mcp import (
    write_approval,
    write_approval_request,
    write_mcp_call,
    write_mcp_result,
    write_mcp_tools,
)
from suture.providers.openai_responses.parts import is_plain_text, write_part
from suture.providers.openai_responses.services import (
    is_own,
    write_image,
    write_reasoning,
    write_service,
    write_service_output,
    write_service_result,
)

__all__ = ["cited", "write_items"]


def write_items(messages: Iterable[AgenticMessage], losses: Losses) -> list[Written]:
    """Return the items that say `messages`.

    >>> [each.item for each in write_items([AgenticMessage.user("hi")], Losses())]
    [{'role': 'user', 'content': 'hi'}]
    """
    writer = _Writer(losses)
    for index, message in enumerate(messages):
        losses.index = index
        writer.add(message)
    losses.index = None
    return writer.items


def cited(parts: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return parts as the service gives them: a text says what it cites, if nothing.

    >>> cited([{"type": "output_text", "text": "hi"}])
    [{'annotations': [], 'type': 'output_text', 'text': 'hi'}]
    """
    return [{"annotations": [], **part} if part.get("type") == "output_text" else part for part in parts]


class _Writer:
    """Puts items down one after another. Parts are collected until something else comes."""

    def __init__(self, losses: Losses) -> None:
        self.items: list[Written] = []
        self._losses = losses
        self._kinds = Called[Kind]()
        """The type of each call so far: its output must be of the same."""
        self._role = ""
        self._head: dict[str, Any] = {}
        self._parts: list[dict[str, Any]] = []
        self._start: tuple[dict[str, Any], str] | None = None
        """What the message that is being collected has beside its parts, and where it began."""

    def add(self, message: AgenticMessage) -> None:
        self._role = message.role
        self._kinds.enter(message.role)
        self._head = returned({"role": message.role}, message.extra, self._losses, "extra")
        if message.role == "assistant":
            self._head |= _head(message.extra)
        if not message.content_blocks and message.role != "assistant":
            self._start = self._head, ""
        for place, block in enumerate(message.content_blocks):
            path = f"content_blocks[{place}]"
            writer = _writer(block)
            if writer is None:
                self._say(block, path)
            else:
                self._flush()
                writer(self, block, path)
        self._flush()

    def _put(self, item: dict[str, Any], block: Any, path: str) -> None:
        needs = own_fields(block.extra).get(NEEDS, "")
        self.items.append(Written(item, needs, self._losses.index, path))

    # Messages

    def _say(self, block: Any, path: str) -> None:
        """Add a part to the message at hand, or begin another."""
        made = self._role == "assistant"
        part = write_part(block, self._losses, path, made=made)
        if part is None:
            return
        marked = made and ITEM in own_fields(block.extra)
        if marked:
            self._flush()
        if self._start is None:
            self._start = ({"role": self._role, **_head(block.extra)} if marked else self._head), path
            self._head = {"role": self._role}
        self._parts.append(part)

    def _flush(self) -> None:
        """Put down the message at hand: its content as a string if that says the same."""
        if self._start is None:
            return
        (head, path), parts = self._start, self._parts
        self._start, self._parts = None, []
        item = {name: value for name, value in head.items() if name != NEEDS}
        made = self._role == "assistant"
        is_string = not made and len(parts) == 1 and is_plain_text(parts[0])
        item["content"] = parts[0]["text"] if is_string else parts
        if made:
            item["type"] = "message"
        if "id" in item:
            item["content"] = cited(parts)
        self.items.append(Written(item, head.get(NEEDS, ""), self._losses.index, path))

    # Items

    def think(self, block: Reasoning, path: str) -> None:
        """Put down reasoning, if it came from here."""
        if origin_of(block) == WIRE:
            self._put(write_reasoning(block, self._losses, path), block, path)
        else:
            self._losses.add(Lost.REASONING, f"thought {block.text[:40]!r}", path)

    def call(self, block: FunctionToolCall, path: str) -> None:
        """Put down a call."""
        self._kinds.note(block.call_id, kind_of(block))
        self._put(write_call(block, self._losses, path), block, path)

    def result(self, block: FunctionToolResult | ToolSearchResult, path: str) -> None:
        """Put down a result, in the form that its call's type has."""
        self._put(write_result(block, self._kinds.answered(block.call_id), self._losses, path), block, path)

    def own(self, write: Callable[[Any, Losses, str], dict[str, Any]], block: Any, path: str) -> None:
        """Put down what this service did; what another did has no form here."""
        if is_own(block):
            self._put(write(block, self._losses, path), block, path)
        else:
            self._lose(block, path)

    def within(self, write: Callable[[dict[str, Any], Any], bool], block: Any, path: str) -> None:
        """Put a result into the item of its call, which is the last; or else down, if it had an item of its own."""
        if self.items and write(self.items[-1].item, block):
            returned({}, block.extra, self._losses, path)
            return
        item = write_service_output(block, self._losses, path) if isinstance(block, ServerToolResult) else None
        if item is None:
            self._lose(block, path)
        else:
            self._put(item, block, path)

    def as_it_is(self, block: Opaque, path: str) -> None:
        """Put down an item that nobody here knows."""
        item = unwrap(WIRE, block, self._losses, path)
        if item is not None:
            self._put(item, block, path)

    def approve(self, write: Callable[[Any, Losses, str], dict[str, Any]], block: Any, path: str) -> None:
        """Put down a question of an MCP server's, or the answer."""
        self._put(write(block, self._losses, path), block, path)

    def _lose(self, block: Any, path: str) -> None:
        self._losses.add(Lost.BLOCK, f"a block of type {tag_of(block)}", path)


def _head(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what a message of the model's has beside its content, as an `extra` keeps it."""
    held = own_fields(extra).get(ITEM)
    return cast("Mapping[str, Any]", held) if isinstance(held, Mapping) else {}


def _writer(block: Any) -> Callable[[_Writer, Any, str], None] | None:
    """Return what puts `block` down as an item; `None` for what is part of a message."""
    if isinstance(block, Opaque):
        return None if PART in own_fields(block.extra) else _Writer.as_it_is
    if isinstance(block, AssistantGenImage) and not is_own(block):
        return None
    return _WRITERS.get(type(block))


_WRITERS: Mapping[Any, Callable[[_Writer, Any, str], None]] = {
    Reasoning: _Writer.think,
    FunctionToolCall: _Writer.call,
    FunctionToolResult: _Writer.result,
    ToolSearchResult: _Writer.result,
    AssistantGenImage: lambda writer, block, path: writer.own(write_image, block, path),
    ServerToolCall: lambda writer, block, path: writer.own(write_service, block, path),
    ServerToolResult: lambda writer, block, path: writer.within(write_service_result, block, path),
    MCPToolCall: lambda writer, block, path: writer.own(write_mcp_call, block, path),
    MCPToolResult: lambda writer, block, path: writer.within(write_mcp_result, block, path),
    MCPListToolsResult: lambda writer, block, path: writer.own(write_mcp_tools, block, path),
    MCPToolApprovalRequest: lambda writer, block, path: writer.approve(write_approval_request, block, path),
    MCPToolApprovalResponse: lambda writer, block, path: writer.approve(write_approval, block, path),
}
