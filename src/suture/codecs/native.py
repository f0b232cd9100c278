"""Translates `Message` into `AgenticMessage` and back without loss; a text beside parts comes back as the first part.

A reply of a thought, then one text, then calls has a plain form as a `Message`. Any other is kept in parts and calls
with an `index`; its content then repeats its texts, so that there is one place to read them. Who changes that content
changes the texts. A block that no part can hold becomes an `Opaque` part with the block's type.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, cast

import msgspec
from msgspec.structs import asdict, replace

from suture import messages as native
from suture.wires.native import is_aside, is_said
from suture.wires.parts import MODEL_BLOCKS, USER_BLOCKS
from suture.wires.values import KIND

REST = "suture.message"
"""The key in `extra` for the fields of a `Message` that its role does not use."""
_CHAT = "openai-chat"
_REPLY_BLOCKS: Mapping[Any, Any] = {native.ReasoningPart: native.Reasoning, **MODEL_BLOCKS}
_PARTS: Mapping[Any, Any] = {block: part for table in (USER_BLOCKS, _REPLY_BLOCKS) for part, block in table.items()}
_ROLE_FIELDS = {
    "system": ("content", "user_input_multi_content"),
    "user": ("content", "user_input_multi_content"),
    "assistant": ("content", "assistant_gen_multi_content", "tool_calls", "reasoning_content"),
    "tool": ("content", "user_input_multi_content", "tool_call_id", "tool_name", "is_error"),
}
_COMMON_FIELDS = ("role", "response_meta", "extra")
_PLACE = "suture.place"
"""The key for the place of an unknown part, in its data; other parts and calls have an `index` for that."""
_EMPTY = native.Message("user")


def to_agentic(message: native.Message) -> native.AgenticMessage:
    """Return `message` as blocks.

    >>> from suture.messages import Message
    >>> to_agentic(Message.tool("42", "call_1", "add")).content_blocks[0].content
    (UserInputText(text='42'),)
    """
    extra = {**message.extra, **_unused_fields(message)}
    role = message.role
    if role == "tool":
        return native.AgenticMessage("user", (_result(message, extra),), response_meta=message.response_meta)
    blocks = _reply_blocks(message) if role == "assistant" else _input_blocks(message)
    return native.AgenticMessage(role, tuple(blocks), response_meta=message.response_meta, extra=extra)


def from_agentic(message: native.AgenticMessage) -> list[native.Message]:
    """Return `message` as chat messages: one for each result, one for each stretch of other blocks.

    >>> from suture.messages import AgenticMessage
    >>> [made.role for made in from_agentic(AgenticMessage.tool_result("call_1", "add", "42"))]
    ['tool']
    """
    is_reply, made = message.role == "assistant", list[native.Message]()
    results = native.FunctionToolResult if is_reply else native.FunctionToolResult | native.ToolSearchResult
    for are_results, blocks in groupby(message.content_blocks, lambda block: isinstance(block, results)):
        stretch: tuple[Any, ...] = tuple(blocks)
        if are_results:
            made += map(_tool_message, stretch)
        else:
            made.append(_reply_message(stretch) if is_reply else _input_message(message.role, stretch))
    *before, last = made or [native.Message(message.role)]
    extra = {**message.extra, **last.extra}
    return [*before, _restore(replace(last, response_meta=message.response_meta), extra)]


def _unused_fields(message: native.Message) -> dict[str, Any]:
    """Return the fields that are set though the role does not use them."""
    rest = {
        name: value
        for name, value in asdict(message).items()
        if _is_unused(name, message.role) and value != getattr(_EMPTY, name)
    }
    return {REST: msgspec.to_builtins(rest)} if rest else {}


def _is_unused(name: Any, role: str) -> bool:
    """Return whether `name` is a field that a message of this role does not use."""
    return name in _EMPTY.__struct_fields__ and name not in _COMMON_FIELDS and name not in _ROLE_FIELDS[role]


def _input_blocks(message: native.Message) -> list[native.ContentBlock]:
    text: list[native.ContentBlock] = [native.UserInputText(message.content)] if message.content else []
    return [*text, *(_block(part, USER_BLOCKS) for part in message.user_input_multi_content)]


def _result(message: native.Message, extra: Mapping[str, Any]) -> native.FunctionToolResult | native.ToolSearchResult:
    parts = message.user_input_multi_content
    if len(parts) == 1 and isinstance(parts[0], native.ToolSearchPart) and not message.content and not message.is_error:
        return native.ToolSearchResult(message.tool_call_id, message.tool_name, parts[0].tools, extra=extra)
    content = tuple(cast("list[Any]", _input_blocks(message)))
    return native.FunctionToolResult(message.tool_call_id, message.tool_name, content, message.is_error, extra=extra)


def _reply_blocks(message: native.Message) -> list[native.ContentBlock]:
    """Return the blocks of a reply in the order of their indexes; without any, thought, text, other parts, calls."""
    content, found = _content_and_parts(message)
    places = [part.data.get(_PLACE) if isinstance(part, native.Opaque) else part.index for part in found]
    parts = [(place, _block(part, _REPLY_BLOCKS)) for place, part in zip(places, found, strict=True)]
    placed: list[tuple[int | None, native.ContentBlock]] = []
    if message.reasoning_content:
        placed.append((None, _thought_block(message.reasoning_content)))
    placed += [(index, block) for index, block in parts if isinstance(block, native.Reasoning)]
    if content:
        placed.append((None, native.AssistantGenText(content)))
    placed += [(index, block) for index, block in parts if not isinstance(block, native.Reasoning)]
    for call in message.tool_calls:
        extra = {**call.extra, **({KIND: call.type} if call.type != "function" else {})}
        placed.append((call.index, native.FunctionToolCall(call.id, call.name, call.arguments, extra=extra)))
    if any(index is not None for index, _ in placed):
        placed.sort(key=lambda item: -1 if item[0] is None else item[0])
    return [block for _, block in placed]


def _content_and_parts(message: native.Message) -> tuple[str, Sequence[native.Part]]:
    """Return the content and the parts of a reply, of which only one has its text; a changed content counts."""
    content, parts = message.content, message.assistant_gen_multi_content
    texts = [part for part in parts if isinstance(part, native.TextPart) and not is_said(part, message)]
    if not texts:
        return content, parts
    if content == "".join([part.text for part in texts]):
        return "", parts
    changed = native.TextPart(content, index=texts[0].index)
    return "", [changed if part is texts[0] else part for part in parts if part is texts[0] or part not in texts]


def _thought_block(text: str) -> native.Reasoning:
    """Return the text of `reasoning_content` as a block."""
    return native.Reasoning(text, extension={"wire": _CHAT})


def _block(part: native.Part, kinds: Mapping[Any, Any]) -> Any:
    kind = kinds.get(part.__class__)
    if kind is None:
        data: Any = part.data if isinstance(part, native.Opaque) else msgspec.to_builtins(part)
        data = {name: value for name, value in data.items() if name != _PLACE}
        try:
            return msgspec.convert(data, native.ContentBlock)
        except msgspec.ValidationError:
            return native.Opaque(data)
    fields = {name: value for name, value in asdict(part).items() if name != "index"}
    if kind is native.AssistantGenImage:
        fields.pop("detail")
    extension = fields["extra"].get("extension")
    if extension is not None and kind in {native.Reasoning, native.AssistantGenText}:
        fields["extra"] = {name: value for name, value in fields["extra"].items() if name != "extension"}
        fields["extension"] = extension
    return kind(**fields)


def _reply_message(blocks: Sequence[native.ContentBlock]) -> native.Message:
    """Return a reply as one message: in the plain form if that says the same, else with an index for everything."""
    plain = _plain_reply(blocks)
    beside = plain.assistant_gen_multi_content
    has_texts = bool(beside) and any(isinstance(part, native.TextPart) for part in beside)
    if not has_texts and to_agentic(plain).content_blocks == blocks:
        return plain
    parts: list[native.Part] = []
    calls: list[native.ToolCall] = []
    for index, block in enumerate(blocks):
        if isinstance(block, native.FunctionToolCall):
            calls.append(replace(_tool_call(block), index=index))
        else:
            part = _part(block)
            is_whole = isinstance(part, native.Opaque)
            parts.append(native.Opaque({**part.data, _PLACE: index}) if is_whole else replace(part, index=index))
    content = "".join([part.text for part in parts if isinstance(part, native.TextPart) and not is_aside(part)])
    return native.Message("assistant", content, assistant_gen_multi_content=tuple(parts), tool_calls=tuple(calls))


def _plain_reply(blocks: Sequence[native.ContentBlock]) -> native.Message:
    thought, text, calls = "", "", list[native.ToolCall]()
    parts: list[native.Part] = []
    for block in blocks:
        if isinstance(block, native.FunctionToolCall):
            calls.append(_tool_call(block))
        elif isinstance(block, native.AssistantGenText) and not text and not block.extension and not block.extra:
            text = block.text
        elif isinstance(block, native.Reasoning) and not thought and block == _thought_block(block.text):
            thought = block.text
        else:
            parts.append(_part(block))
    said: dict[str, Any] = {"assistant_gen_multi_content": tuple(parts), "tool_calls": tuple(calls)}
    return native.Message("assistant", text, reasoning_content=thought, **said)


def _tool_call(block: native.FunctionToolCall) -> native.ToolCall:
    kind = block.extra.get(KIND)
    if not isinstance(kind, str) or kind == "function":
        return native.ToolCall(block.call_id, block.name, block.arguments, extra=block.extra)
    extra = {name: value for name, value in block.extra.items() if name != KIND}
    return native.ToolCall(block.call_id, block.name, block.arguments, kind, extra=extra)


def _part(block: Any) -> Any:
    """Return the part for `block`; an `Opaque` one that holds it if there is none."""
    kind = _PARTS.get(block.__class__)
    if kind is None:
        return block if isinstance(block, native.Opaque) else native.Opaque(msgspec.to_builtins(block))
    fields = {name: value for name, value in asdict(block).items() if name not in {"index", "extension"}}
    extension = getattr(block, "extension", None)
    if extension:
        fields["extra"] = {**fields["extra"], "extension": extension}
    return kind(**fields)


def _tool_message(block: native.FunctionToolResult | native.ToolSearchResult) -> native.Message:
    if isinstance(block, native.ToolSearchResult):
        parts: Sequence[native.Part] = (native.ToolSearchPart(block.tools),)
        return _restore(native.Message.tool(parts, block.call_id, block.name), block.extra)
    content = [_part(held) for held in block.content]
    plain = len(content) == 1 and type(content[0]) is native.TextPart and not content[0].extra
    said = content[0].text if plain else tuple(content)
    return _restore(native.Message.tool(said, block.call_id, block.name, is_error=block.is_error), block.extra)


def _restore(message: native.Message, extra: Mapping[str, Any]) -> native.Message:
    """Return `message` with its `extra` and the fields kept in that, which stay there if they cannot be restored."""
    rest: Any = extra.get(REST)
    if not isinstance(rest, Mapping) or not all(_is_unused(name, message.role) for name in cast("Any", rest)):
        return replace(message, extra=extra)
    try:
        found = msgspec.convert({"role": message.role, **rest}, native.Message)
    except msgspec.ValidationError:
        return replace(message, extra=extra)
    fields = {name: getattr(found, name) for name in cast("Mapping[str, Any]", rest)}
    return replace(message, extra={name: value for name, value in extra.items() if name != REST}, **fields)


def _input_message(role: Any, blocks: Iterable[native.ContentBlock]) -> native.Message:
    """Return `blocks` as one message of the user or the system."""
    parts = [_part(block) for block in blocks]
    if len(parts) == 1 and type(parts[0]) is native.TextPart and parts[0].text and not parts[0].extra:
        return native.Message(role, parts[0].text)
    return native.Message(role, user_input_multi_content=tuple(parts))
