"""Amazon Bedrock's Converse: each block is an object with one key; `toolUse` pairs with `toolResult`."""

from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import cached_property
from operator import is_
from typing import Any

from suture.wires import values
from suture.wires.blocks import BlockWire, Fields
from suture.wires.fields import get, has, inner, is_list, is_map, json_text, listed, put, text_of, word
from suture.wires.parts import Form, Telling

_MEDIA = dict.fromkeys(("image", "document", "video", "audio"), values.MEDIA)
_KINDS = {
    "toolUse": values.CALL,
    "toolResult": values.RESULT,
    "text": values.TEXT,
    "reasoningContent": values.THINKING,
    **_MEDIA,
}
_LONGEST_NAME = 200


def _text(block: Any) -> str | None:
    """Return the text of a block in a result, or its JSON as text."""
    value, text = get(block, "json"), get(block, "text")
    if value is not None:
        return json_text(value)
    return text if isinstance(text, str) else None


def _read_calls(content: list[Any], demands: values.Demands) -> list[str] | None:
    """Return the ids of the calls in a plain assistant message; `None` if it needs a second look."""
    calls: list[str] = []
    for block in content:
        if block.__class__ is not dict or len(block) != 1:
            return None
        if "toolUse" in block:
            use = block["toolUse"]
            call_id = use["toolUseId"]
            if "type" in use or not demands.accepts(call_id, use["name"]) or not values.is_plain_object(use["input"]):
                return None
            calls.append(call_id)
        else:
            text = block["text"]
            if (
                calls
                or text.__class__ is not str
                or not text.strip()
                or not (text.isascii() or values.is_sendable(text))
            ):
                return None
    return None if not content or (len(calls) > 1 and len(set(calls)) != len(calls)) else calls


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
        result = block["toolResult"]
        if result.__class__ is not dict or result["toolUseId"] != call_id or "type" in result or len(block) != 1:
            return False
        parts = result["content"]
        if parts.__class__ is not list or not values.are_texts(parts):
            return False
    if len(content) != count and not values.are_texts(content[count:]):
        return False
    demands.use(calls)
    return True


_TURNS = values.Turns("assistant", "user", "role", "content", _read_calls, _are_answered)


class BedrockWire(BlockWire):
    """Messages as Converse takes and returns them.

    >>> from suture.wires import get_wire
    >>> get_wire("bedrock").view({"role": "user", "content": [{"text": "hi"}]}).role
    'user'
    """

    name = "bedrock"
    glances_at_rules = True
    call_fields = Fields("toolUse", "toolUseId", "name", "input")
    result_fields = Fields("toolResult", "toolUseId", "", "content")
    form = Form(_text, lambda text: {"text": text}, lone=False)

    named_results = False
    arranges = frozenset(("same-role", "repeated-document", "trailing-thinking"))

    def glance(self, messages: Sequence[Any], start: int, demands: values.Demands) -> int:
        return values.glance_at_turns(messages, start, demands, _TURNS)

    def call_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        made = values.iterate(messages, start, stop)
        said = [message["content"] for message in made if message["role"] == "assistant"]
        return [block["toolUse"]["toolUseId"] for content in said for block in content if "toolUse" in block]

    def claims(self, message: Any) -> bool | None:
        """Return whether `message` is Bedrock's, whose blocks have no type; `None` if it has no blocks."""
        content = get(message, "content")
        if not is_map(message) or word(message, "role") not in self.roles or not is_list(content):
            return False
        if not content:
            return None
        return all(is_map(block) and "type" not in block and any(key in _KINDS for key in block) for block in content)

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        blocks = super().blocks(message, index)
        typed = [place for place, block in enumerate(blocks) if has(block, "type")] if index is not None else []
        if typed:
            raise self.fault(index, f"content[{typed[0]}].type", "a block with a type belongs to another wire")
        return blocks

    def kind(self, block: Any) -> str:
        """Return the kind of `block`; calls and results of tools that the service itself runs are `OTHER`."""
        for key, kind in _KINDS.items():
            value = get(block, key)
            if value is not None:
                return (
                    values.OTHER
                    if kind in {values.CALL, values.RESULT} and word(value, "type") == "server_tool_use"
                    else kind
                )
        return values.OTHER

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, values.View], Any]]:
        return {"no-content": self._with_content, **super().mends}

    def _with_content(self, message: Any, view: values.View) -> Any:
        """Give a result without content an empty list."""

        def fill(block: Any) -> Any:
            is_missing = get(get(block, "toolResult"), "content") is None
            return self.rewrite(block, self.result_fields, {"content": []}) if is_missing else block

        return self.with_results(message, view, fill)

    def begins_step(self, message: Any) -> bool:
        """Return whether a message holds reasoning, which means that it begins another step."""
        return any(self.kind(block) == values.THINKING for block in self.blocks(message))

    def name_documents(self, message: Any, names: MutableMapping[str, None]) -> Any:
        blocks = [self._with_names(block, names) for block in self.blocks(message)]
        return self._in_order(message, blocks)

    def _with_names(self, block: Any, names: MutableMapping[str, None]) -> Any:
        result = get(block, "toolResult")
        if result is not None:
            parts: Sequence[Any] = get(result, "content") or ()
            named = [self._with_names(part, names) for part in parts]
            same = all(map(is_, named, parts))
            return block if same else put(block, toolResult=put(result, content=named))
        document = get(block, "document")
        if document is None:
            return block
        name = text_of(document, "name")
        free, number = name[:_LONGEST_NAME], 1
        while free.casefold() in names:
            number += 1
            free = f"{name[: _LONGEST_NAME - 1 - len(str(number))]} {number}"
        names[free.casefold()] = None
        return block if free == name else put(block, document=put(document, name=free))

    def block_words(self, block: Any) -> Any:
        """Return the text of a text or reasoning block; redacted reasoning has none."""
        text = get(block, "text")
        return get(get(get(block, "reasoningContent"), "reasoningText"), "text") if text is None else text

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one block; a document may be text."""
        source = get(get(block, "document"), "source")
        content = get(source, "text")
        content = get(source, "content") if content is None else content
        if content is None or self.kind(block) != values.MEDIA:
            super().tell_block(block, telling)
        else:
            self.tell_document(content, telling)

    def without_trailing_thinking(self, message: Any) -> Any | None:
        """Return `message` without the reasoning at its end; but reasoning without a signature may follow other blocks.

        Such reasoning is not Claude's: DeepSeek's comes after its text.
        """
        rest = super().without_trailing_thinking(message)
        return rest if rest is None or rest is message or self.is_signed(self.blocks(message)[-1]) else message

    def is_signed(self, block: Any) -> bool:
        reasoning = get(block, "reasoningContent")
        return get(reasoning, "redactedContent") is not None or bool(get(get(reasoning, "reasoningText"), "signature"))

    def read_result(self, block: Any, index: int | None = None) -> values.Result:
        result = inner(block, "toolResult", index, "content")
        content: Sequence[Any] = listed(get(result, "content") or [], index, "content.toolResult.content")
        for part in content:
            text_of(part, "text", index, "content.toolResult.content")
        return values.Result(text_of(result, "toolUseId", index), "", content, failed=get(result, "status") == "error")

    def make_result(self, piece: values.Piece) -> Any:
        tool_use_id = piece.call.id if piece.call else ""
        return {"toolResult": {"toolUseId": tool_use_id, "content": [{"text": piece.text}], "status": "error"}}


WIRE = BedrockWire()
