"""Anthropic's Messages API: `tool_use` blocks in assistant messages, `tool_result` blocks in the next user message."""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar

from suture.wires import values
from suture.wires.blocks import BlockWire, Fields
from suture.wires.fields import check_value, get, is_list, is_map, listed, put, text_of, typed, word
from suture.wires.parts import Form, Telling, text_block, typed_text

_KINDS = {
    "tool_use": values.CALL,
    "tool_result": values.RESULT,
    "text": values.TEXT,
    "thinking": values.THINKING,
    "redacted_thinking": values.THINKING,
    **dict.fromkeys(("image", "document"), values.MEDIA),
}
_OWN_TYPES = frozenset(
    ("tool_use", "tool_result", "thinking", "redacted_thinking", "image", "document", "server_tool_use")
)
_SERVER_USES = frozenset(("server_tool_use", "mcp_tool_use"))
_FOREIGN_FIELDS = ("tool_calls", "tool_call_id", "function_call", "parts")


def _are_texts(content: Any, start: int = 0) -> bool:
    """Return whether `content` is a list with only texts that say something from `start` on; `False` if it is empty."""
    if content.__class__ is not list or not content:
        return False
    for block in content[start:] if start else content:
        if block.__class__ is not dict or block["type"] != "text" or not values.says_something(block["text"]):
            return False
    return True


def _read_calls(content: Any, demands: values.Demands) -> list[str] | None:
    """Return the ids of the calls in a plain assistant message; `None` if it needs a second look."""
    calls: list[str] = []
    kind = "thinking"
    for block in content:
        if block.__class__ is not dict:
            return None
        kind = block["type"]
        if kind == "tool_use":
            call_id = block["id"]
            if not demands.accepts(call_id, block["name"]) or not values.is_plain_object(block["input"]):
                return None
            calls.append(call_id)
        elif kind == "text":
            text = block["text"]
            if (
                calls
                or text.__class__ is not str
                or not text.strip()
                or not (text.isascii() or values.is_sendable(text))
            ):
                return None
        elif (
            kind != "thinking"
            or calls
            or not values.says_something(block["thinking"])
            or not values.says_something(block["signature"])
        ):
            return None
    if kind == "thinking" or (len(calls) > 1 and len(set(calls)) != len(calls)):
        return None
    return calls


def _are_answered(calls: list[str], message: Any, demands: values.Demands) -> bool:
    """Return whether `message` holds the results of `calls`, in order, and then nothing but texts."""
    if message.__class__ is not dict or message["role"] != "user":
        return False
    content, count = message["content"], len(calls)
    if content.__class__ is not list or len(content) < count:
        return False
    blocks = iter(content)
    for call_id in calls:
        block = next(blocks)
        if block.__class__ is not dict or block["tool_use_id"] != call_id or block["type"] != "tool_result":
            return False
        text = block["content"]
        if text.__class__ is not str:
            if not _are_texts(text):
                return False
        elif not (text.isascii() or values.is_sendable(text)) or ("is_error" in block and not text.strip()):
            return False
    if len(content) != count and ("trailing-text" in demands.problems or not _are_texts(content, count)):
        return False
    demands.use(calls)
    return True


_TURNS = values.Turns(
    *("assistant", "user", "role", "content"),
    *(_read_calls, _are_answered, _are_texts),
    lone=True,
    foreign=frozenset(_FOREIGN_FIELDS),
)


class AnthropicWire(BlockWire):
    """Messages as the `anthropic` package takes and returns them.

    >>> from suture.wires import get_wire
    >>> wire = get_wire("anthropic")
    >>> wire.view({"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "f", "input": {}}]}).calls
    (Call(id='a', name='f', arguments={}, kind='', alias=''),)
    """

    name = "anthropic"
    glances_at_rules = True
    overlooks = frozenset(("tool-then-user",))
    has_fields = True
    roles: ClassVar = {"user": "user", "assistant": "assistant", "system": "system"}
    call_fields = Fields("", "id", "name", "input")
    result_fields = Fields("", "tool_use_id", "", "content")
    kinds = _KINDS
    form = Form(typed_text("text"), text_block("text"))

    named_results = False
    arranges = frozenset(
        (
            *("split-results", "trailing-text", "turn-order", "trailing-thinking", "media-in-error"),
            *("open-server-tool", "split-server-tool"),
        )
    )

    def glance(self, messages: Sequence[Any], start: int, demands: values.Demands) -> int:
        return values.glance_at_turns(messages, start, demands, _TURNS)

    def call_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        made = values.iterate(messages, start, stop)
        said = [get(message, "content") for message in made if get(message, "role") == "assistant"]
        lists = [content for content in said if content.__class__ is list]
        return [block["id"] for content in lists for block in content if block["type"] == "tool_use"]

    def claims(self, message: Any) -> bool | None:
        """Return whether `message` is Anthropic's; `None` if nothing in it tells."""
        role = word(message, "role")
        if role not in self.roles or any(get(message, field) is not None for field in _FOREIGN_FIELDS):
            return False
        if not is_map(message):
            return True if type(message).__module__.startswith("anthropic.") else None
        content = message.get("content")
        if not is_list(content):
            return None if isinstance(content, str) else False
        kinds = {word(block, "type") for block in content}
        if kinds & _OWN_TYPES or any(str(kind).endswith("_tool_result") for kind in kinds):
            return True
        return None if kinds <= {"text"} else False

    def role(self, message: Any, index: int | None) -> str:
        foreign = next((field for field in _FOREIGN_FIELDS if get(message, field) is not None), "")
        if foreign:
            raise self.fault(index, foreign, "this field belongs to another wire")
        return super().role(message, index)

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        content = get(message, "content")
        if isinstance(content, str):
            return [{"type": "text", "text": text_of(message, "content", index)}] if content else []
        if index is None:
            return listed(content, index, "content")
        blocks = typed(content, index, "content")
        check_value(blocks, index, "content")
        return blocks

    def block_words(self, block: Any) -> Any:
        """Return the text of a text or thinking block; redacted thinking has none."""
        return get(block, "thinking" if word(block, "type") == "thinking" else "text")

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one block; a document may be text."""
        source = get(block, "source") if word(block, "type") == "document" else None
        held = {"text": "data", "content": "content"}.get(word(source, "type") or "")
        if held is None:
            super().tell_block(block, telling)
        else:
            self.tell_document(get(source, held), telling)

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, values.View], Any]]:
        return {"unsigned-thinking": self._without_unsigned_thinking, **super().mends}

    def _without_blank_text(self, message: Any, view: values.View) -> Any:
        """Leave out blank text blocks, in results too."""

        def say(block: Any) -> Any:
            content = get(block, "content")
            if not is_list(content):
                return block
            said = [part for part in content if self.kind(part) != values.TEXT or self.block_text(part).strip()]
            return block if len(said) == len(content) else put(block, content=said or "")

        return self.with_results(super()._without_blank_text(message, view), view, say)

    def _without_unsigned_thinking(self, message: Any, view: values.View) -> Any:
        """Leave out thinking without a signature, which a stream leaves if it is cut before the signature."""
        if view.role != "assistant":
            return message
        return self._with_some(
            message, lambda block: word(block, "type") != "thinking" or bool(get(block, "signature"))
        )

    def server_tools(self, message: Any) -> tuple[set[Any], set[Any]]:
        used, lacking = set[Any](), set[Any]()
        for block in self.blocks(message):
            kind = word(block, "type") or ""
            if kind in _SERVER_USES:
                used.add(get(block, "id"))
            elif kind.endswith("_tool_result") and get(block, "tool_use_id") not in used:
                lacking.add(get(block, "tool_use_id"))
        return used, lacking

    def without_open_uses(self, message: Any) -> Any | None:
        blocks = self.blocks(message)
        answered = {get(block, "tool_use_id") for block in blocks}
        changed = self._with_some(
            message, lambda block: word(block, "type") not in _SERVER_USES or get(block, "id") in answered
        )
        return changed if changed is message or self.blocks(changed) else None

    def compacted_by(self, message: Any) -> str:
        """Return the wire's name if `message` has a compaction of the service with content; one without has failed."""
        found = [block for block in self.blocks(message) if word(block, "type") == "compaction"]
        return self.name if any(get(block, "content") or get(block, "encrypted_content") for block in found) else ""

    def is_signed(self, block: Any) -> bool:
        return word(block, "type") == "redacted_thinking" or bool(get(block, "signature"))

    def read_result(self, block: Any, index: int | None = None) -> values.Result:
        content = get(block, "content")
        if content is not None and not isinstance(content, str):
            typed(content, index, "content.tool_result.content")
        return values.Result(text_of(block, "tool_use_id", index), "", content, failed=bool(get(block, "is_error")))

    def make_result(self, piece: values.Piece) -> Any:
        tool_use_id = piece.call.id if piece.call else ""
        return {"type": "tool_result", "tool_use_id": tool_use_id, "content": piece.text, "is_error": True}


WIRE = AnthropicWire()
