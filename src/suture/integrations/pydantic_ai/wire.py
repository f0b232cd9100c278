"""pydantic-ai's messages: results are parts of the request that follows a response, beside prompts and instructions."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import cache
from typing import Any, cast

from pydantic_ai.messages import (
    ERROR_OUTCOMES,
    SYNTHESIZED_TOOL_RETURN_METADATA_KEY,
    BaseToolCallPart,
    BaseToolReturnPart,
    FilePart,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    RetryPromptPart,  # pyright: ignore[reportDeprecated] - older histories hold it
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from suture.wires import MARK, BlockWire, Call, CallEdit, Form, Piece, Result, ResultEdit, View
from suture.wires.fields import given, is_list, is_map, is_object_text, json_text, text_of
from suture.wires.parts import Telling
from suture.wires.values import (
    CALL,
    MEDIA,
    NO_EXTRA,
    OTHER,
    RESULT,
    TEXT,
    THINKING,
    Demands,
    Turns,
    glance_at_turns,
    is_plain_object,
    says_something,
)

__all__ = ["WIRE", "PydanticAIWire"]

_NO_TIME = datetime.fromtimestamp(0, UTC)
"""When something was said that nobody said: the clock would give another history each time."""

_PARTS: tuple[tuple[Any, str], ...] = (
    (ToolCallPart, CALL),
    (ToolReturnPart, RESULT),
    (RetryPromptPart, RESULT),  # pyright: ignore[reportDeprecated]
    (UserPromptPart, TEXT),
    (TextPart, TEXT),
    (RetryFeedbackPart, TEXT),
    (ThinkingPart, THINKING),
    (FilePart, MEDIA),
)
_SEALS = ("signature", "encrypted")
_SILENT = ("instruction-baseline", "model-settings-delta", "capability-load-delta")
"""The parts that no model is sent."""


class _OwnCall(Call):
    """A call that knows when it was made, and what kind of tool it is for."""

    made: datetime
    tool_kind: Any


@cache
def _kind_of_class(kind: type) -> str:
    return next((name for known, name in _PARTS if issubclass(kind, known)), OTHER)


def _text(item: Any) -> str | None:
    """Return what an item of a content says, `None` of one that is no text."""
    if isinstance(item, TextContent):
        return item.content
    return item if isinstance(item, str) else None


class PydanticAIWire(BlockWire):
    """Histories of `ModelRequest` and `ModelResponse`.

    >>> from pydantic_ai.messages import ModelResponse, ToolCallPart
    >>> WIRE.view(ModelResponse([ToolCallPart("search", {"q": "x"}, "call_1")])).calls
    (_OwnCall(id='call_1', name='search', arguments={'q': 'x'}, kind='', alias=''),)
    """

    name = "pydantic-ai"
    marks = True
    glances_at_rules = True
    form = Form(_text, cast("Any", str))
    arranges = frozenset(("trailing-text", "split-turn"))

    def glance(self, messages: Sequence[Any], start: int, demands: Demands) -> int:
        return glance_at_turns(messages, start, demands, _TURNS)

    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is one: its type says so."""
        return isinstance(message, ModelRequest | ModelResponse)

    def made_by_model(self, message: Any, index: int | None = None) -> bool:
        del index
        return isinstance(message, ModelResponse)

    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`: a request is the system's where it holds nothing else."""
        if isinstance(message, ModelResponse):
            return "assistant"
        if not isinstance(message, ModelRequest):
            raise self.fault(index, "", f"expected a ModelRequest or a ModelResponse, found {type(message).__name__}")
        parts = self.blocks(message, index)
        return "system" if parts and all(isinstance(part, SystemPromptPart) for part in parts) else "user"

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        parts = message.parts
        if not is_list(parts):
            raise self.fault(index, "parts", f"expected a list of parts, found {type(parts).__name__}")
        return parts

    def view(self, message: Any, index: int | None = None) -> View:
        """Return what the engines need to know of `message`; a request is never empty, as instructions go with it."""
        view = super().view(message, index)
        if view.role != "assistant":
            return view._replace(empty=False) if view.empty else view
        for call in view.calls:
            cast("_OwnCall", call).made = message.timestamp
        return view

    def kind(self, block: Any) -> str:
        """Return what `block` is; what the provider's own tools did is neither a call nor a result."""
        kind = _kind_of_class(block.__class__)
        if kind == RESULT:
            return RESULT if _is_result(block) else TEXT
        if kind == TEXT and isinstance(block, UserPromptPart) and not isinstance(block.content, str):
            return TEXT if all(_text(item) is not None for item in block.content) else MEDIA
        return kind

    def block_text(self, block: Any) -> str:
        return self.block_words(block)

    def block_words(self, block: Any) -> Any:
        if isinstance(block, UserPromptPart) and not isinstance(block.content, str):
            return "\n".join([text for item in block.content if (text := _text(item)) is not None])
        told = getattr(block, "model_response", None)
        return block.content if told is None else told()

    def is_signed(self, block: Any) -> bool:
        if getattr(block, "signature", None):
            return True
        details = getattr(block, "provider_details", None)
        return is_map(details) and any(seal in name for name in details for seal in _SEALS)

    def read_call(self, block: Any, index: int | None = None) -> Call:
        call = _OwnCall(text_of(block, "tool_call_id", index), text_of(block, "tool_name", index), block.args)
        call.made, call.tool_kind = _NO_TIME, block.tool_kind
        return call

    def read_result(self, block: Any, index: int | None = None) -> Result:
        """Return the result of a part: what a tool returned, or what was wrong with a call."""
        extra: Mapping[str, Any] = _metadata(block) or NO_EXTRA
        return Result(
            text_of(block, "tool_call_id", index),
            text_of(block, "tool_name", index),
            block.content,
            "",
            MARK in extra or SYNTHESIZED_TOOL_RETURN_METADATA_KEY in extra,
            getattr(block, "outcome", "retried") in ERROR_OUTCOMES,
            extra,
        )

    def arguments_ok(self, call: Call) -> bool:
        """Tell whether the arguments of `call` are an object, as such or as text; none at all are an empty one."""
        arguments = call.arguments
        return not arguments or is_map(arguments) or (isinstance(arguments, str) and is_object_text(arguments))

    def result_text(self, result: Result) -> tuple[str, bool]:
        if isinstance(result.content, str):
            return result.content, True
        part = ToolReturnPart(result.name, result.content, result.id, timestamp=_NO_TIME)
        try:
            return part.model_response_str(), not part.files
        except ValueError:  # an object of the program's, a cycle: what pydantic cannot write
            return json_text(result.content), False

    def write_call(self, block: Any, edit: CallEdit) -> Any:
        return _with(block, **given(tool_call_id=edit.id, tool_name=edit.name, args=edit.arguments))

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        content = self.content_after(edit, block.content)
        metadata = _metadata(block)
        marked = {**metadata, **edit.extra} if edit.extra and metadata is not None else None
        return _with(block, **given(tool_call_id=edit.id, tool_name=edit.name, content=content, metadata=marked))

    def make_result(self, piece: Piece) -> Any:
        call = piece.call or Call("", "")
        return ToolReturnPart(
            call.name,
            piece.text,
            call.id,
            tool_kind=getattr(call, "tool_kind", None),
            metadata={SYNTHESIZED_TOOL_RETURN_METADATA_KEY: True, MARK: piece.cause},
            timestamp=getattr(call, "made", _NO_TIME),
            outcome="denied" if piece.cause == "rejected" else "interrupted",
        )

    def make_text(self, role: str, text: str) -> Any:
        return TextPart(text) if role == "assistant" else UserPromptPart(text, timestamp=_NO_TIME)

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        return ModelResponse(list(blocks), timestamp=_NO_TIME) if role == "assistant" else ModelRequest(list(blocks))

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        return _with(message, parts=list(blocks))

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell a part, or an item of a content, as a model reads it; what no model is sent is not told."""
        if not hasattr(block, "part_kind"):
            _tell_item(block, telling)
        elif isinstance(block, UserPromptPart):
            self.tell_content(block.content, telling)
        elif isinstance(block, BaseToolCallPart | BaseToolReturnPart):
            telling.say(block.tool_name)
            if isinstance(block, BaseToolCallPart):
                telling.write(block.args)
            else:
                self.tell_content(block.content, telling)
        elif self.kind(block) != OTHER:
            super().tell_block(block, telling)
        elif isinstance(text := getattr(block, "content", None), str):
            telling.say(text)
        elif block.part_kind not in _SILENT:
            telling.show(block)

    def extra_of(self, message: Any) -> Mapping[str, Any]:
        return message.metadata or NO_EXTRA

    def with_extra(self, message: Any, extra: Mapping[str, Any]) -> Any:
        return _with(message, metadata={**(message.metadata or {}), **extra}) if extra else message


def _is_result(part: Any) -> bool:
    """Tell whether `part` answers a call: a request to try again may speak of no call at all."""
    return isinstance(part, ToolReturnPart) or (isinstance(part, RetryPromptPart) and part.tool_name is not None)  # pyright: ignore[reportDeprecated]


def _tell_item(item: Any, telling: Telling) -> None:
    text = _text(item)
    if text is not None:
        telling.say(text)
    elif getattr(item, "media_type", None) is not None:
        telling.media += 1
    elif item is not None and getattr(item, "kind", "") != "cache-point":
        telling.show(item)


def _with(thing: Any, **fields: Any) -> Any:
    """Return a shallow copy of `thing` with `fields` set; what is made of it is not checked, nor warned of, anew."""
    twin: Any = object.__new__(cast("type[Any]", type(thing)))
    twin.__dict__.update(thing.__dict__, **fields)
    return twin


def _metadata(part: Any) -> Mapping[str, Any] | None:
    """Return what is attached to a result; `None` where nothing of ours can be."""
    metadata = getattr(part, "metadata", None)
    if metadata is None:
        return {} if isinstance(part, ToolReturnPart) else None
    return metadata if is_map(metadata) else None


# What a glance accepts


def _are_prompts(parts: Sequence[Any]) -> bool:
    """Tell whether `parts` are texts of the user's, and maybe of the system's."""
    said = False
    for part in parts:
        if part.__class__ is UserPromptPart:
            said = True
        elif part.__class__ is not SystemPromptPart:
            return False
        if not says_something(part.content):
            return False
    return said


def _read_calls(parts: Sequence[Any], demands: Demands) -> list[Any] | None:
    """Return the calls among the parts of a plain response; `None` where it needs a second look."""
    calls: list[Any] = []
    said = False
    for part in parts:
        kind = part.__class__
        if kind is ToolCallPart:
            arguments = part.args
            if arguments.__class__ is str:
                if arguments and not is_object_text(arguments):
                    return None
            elif arguments is not None and not is_plain_object(arguments):
                return None
            if not demands.accepts(part.tool_call_id, part.tool_name):
                return None
            calls.append(part)
        elif calls or (kind is not TextPart and kind is not ThinkingPart):
            return None
        elif kind is TextPart:
            said = True
            if not says_something(part.content):
                return None
    return calls if calls or said else None


def _are_answered(calls: Sequence[Any], message: Any, demands: Demands) -> bool:
    """Tell whether `message` answers `calls` one by one; prompts may follow where they may."""
    if message.__class__ is not ModelRequest:
        return False
    parts, count, ids = message.parts, len(calls), [call.tool_call_id for call in calls]
    if len(parts) < count or (count > 1 and len(set(ids)) < count):
        return False
    for call, part in zip(calls, parts, strict=False):
        if not _is_result(part) or part.tool_call_id != call.tool_call_id or part.tool_name != call.tool_name:
            return False
        plain = part.__class__ is ToolReturnPart and part.outcome == "success"
        if not plain and WIRE.is_empty_error(WIRE.read_result(part)):
            return False
    if len(parts) != count and ("trailing-text" in demands.problems or not _are_prompts(parts[count:])):
        return False
    demands.use(ids)
    return True


_TURNS = Turns("response", "request", "kind", "parts", _read_calls, _are_answered, _are_prompts)
WIRE = PydanticAIWire()
"""The wire of pydantic-ai's messages."""
