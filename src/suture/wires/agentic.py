"""Suture's own content-block messages: tool results are blocks in user messages, one message a result."""

from collections.abc import Iterator, Sequence
from typing import Any, cast

from msgspec.structs import replace

from suture.language import Language
from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    Delta,
    FunctionToolCall,
    FunctionToolResult,
    Part,
    Reasoning,
    ResponseMeta,
    TokenUsage,
    ToolResult,
    ToolSearchPart,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
    message_from_dict,
    message_to_dict,
)
from suture.wires._block_wire import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING, BlockWire
from suture.wires._chat import CALLED, SAID, ChatWire, gather
from suture.wires._contents import same_parts
from suture.wires._fields import given
from suture.wires._mark import MARK, media_note
from suture.wires._parts import RawPart, as_block, as_part, part_list
from suture.wires._text import json_text
from suture.wires._wire import GLANCE, Call, CallEdit, Piece, Result, ResultEdit
from suture.wires._words import Telling

__all__ = ["AgenticWire"]

_KINDS: dict[Any, str] = {
    FunctionToolCall: CALL,
    FunctionToolResult: RESULT,
    ToolSearchResult: RESULT,
    UserInputText: TEXT,
    AssistantGenText: TEXT,
    Reasoning: THINKING,
    UserInputImage: MEDIA,
    UserInputAudio: MEDIA,
    UserInputVideo: MEDIA,
    UserInputFile: MEDIA,
}
_MADE = frozenset((AssistantGenImage, AssistantGenAudio, AssistantGenVideo))
_CARRIERS = frozenset((FunctionToolCall, FunctionToolResult, ToolSearchResult))


class AgenticWire(BlockWire, ChatWire):
    """Histories of `suture.AgenticMessage`.

    >>> from suture.messages import AgenticMessage
    >>> from suture.wires import get_wire
    >>> get_wire("agentic").view(AgenticMessage.user("hi")).role
    'user'
    """

    name = "agentic"
    text_arguments = True
    native = True
    marks = True
    bundled = False

    def skip(self, messages: Sequence[Any], start: int) -> int:
        """Return how far, from `start` on, everything is in order at a glance."""
        place = start
        rest = iter(messages[start : start + GLANCE])
        for message in rest:
            if message.__class__ is not AgenticMessage:
                break
            calls = 0
            for block in message.content_blocks:
                kind = block.__class__
                if kind in _CARRIERS:
                    if kind is not FunctionToolCall or message.role != "assistant" or not _is_answered(block, rest):
                        return place
                    calls += 1
            place += calls + 1
        return place

    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is one: its type says so."""
        return isinstance(message, AgenticMessage)

    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`."""
        if not isinstance(message, AgenticMessage):
            raise self.fault(index, "", f"expected an AgenticMessage, found {type(message).__name__}")
        return message.role

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        """Return the blocks of `message`."""
        del index
        return message.content_blocks

    def kind(self, block: Any) -> str:
        """Return what `block` is."""
        return _KINDS.get(type(block), OTHER)

    def block_text(self, block: Any) -> str:
        """Return the text of a text block."""
        return block.text

    def is_signed(self, block: Any) -> bool:
        """Tell whether `block` is reasoning with a signature."""
        return isinstance(block, Reasoning) and bool(block.signature)

    def read_call(self, block: Any, index: int | None = None) -> Call:
        """Return the call that `block` holds."""
        del index
        return Call(block.call_id, block.name, block.arguments)

    def read_result(self, block: Any, index: int | None = None) -> Result:
        """Return the result that `block` holds."""
        del index
        searched = isinstance(block, ToolSearchResult)
        content, failed = (block, False) if searched else (block.content, block.is_error)
        extra = block.extra
        return Result(block.call_id, block.name, content, "", MARK in extra, failed, extra)

    def result_text(self, result: Result) -> tuple[str, bool]:
        """Return the text of a result, and whether that is all of it."""
        if isinstance(result.content, ToolSearchResult):
            return json_text(result.content.tools), True
        content = result.content
        texts = [block.text for block in content if isinstance(block, UserInputText)]
        return "\n".join(texts), len(texts) == len(content)

    def result_parts(self, result: Result) -> tuple[Part, ...] | None:
        """Return the content of a result as parts; tools that were found are no content."""
        content = result.content
        return None if isinstance(content, ToolSearchResult) else tuple([as_part(block) for block in content])

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one block; what the model made is media, too."""
        if block.__class__ in _MADE:
            telling.media += 1
        else:
            super().tell_block(block, telling)

    def write_call(self, block: Any, edit: CallEdit) -> Any:
        """Return a call block with `edit` done to it."""
        return replace(block, **given(call_id=edit.id, name=edit.name, arguments=edit.arguments))

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        """Return a result block with `edit` done to it."""
        content = None if edit.text is None else (UserInputText(text=edit.text),)
        if edit.parts is not None:
            content = _content(block, edit.parts)
        extra = {**block.extra, **edit.extra} if edit.extra else None
        return replace(block, **given(call_id=edit.id, name=edit.name, content=content, extra=extra))

    def make_result(self, piece: Piece) -> Any:
        """Return a marked error result for the call of `piece`."""
        call = piece.call or Call("", "")
        return FunctionToolResult(
            call_id=call.id,
            name=call.name,
            content=(UserInputText(text=piece.text),),
            is_error=True,
            extra={MARK: piece.cause},
        )

    def make_text(self, role: str, text: str) -> Any:
        """Return a text block."""
        return AssistantGenText(text=text) if role == "assistant" else UserInputText(text=text)

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        """Return a new message."""
        return AgenticMessage("assistant" if role == "assistant" else "user", tuple(blocks))

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        """Return `message` with other blocks."""
        return replace(message, content_blocks=tuple(blocks))

    def lift_media(self, message: Any, language: Language) -> tuple[Any, Sequence[Any]]:
        """Return `message` with the media in its results replaced by a note, and those media."""
        media: list[Any] = []
        blocks: list[Any] = []
        for block in message.content_blocks:
            lifted = [part for part in getattr(block, "content", ()) if _KINDS.get(type(part)) == MEDIA]
            if type(block) is FunctionToolResult and lifted:
                kept = tuple(part for part in block.content if _KINDS.get(type(part)) != MEDIA)
                note = UserInputText(text=media_note(len(lifted), language))
                blocks.append(replace(block, content=(*kept, note)))
                media.extend(lifted)
            else:
                blocks.append(block)
        return (self.with_blocks(message, blocks), media) if media else (message, ())

    def show_media(self, media: Sequence[Any]) -> Any:
        """Return a user message that shows `media`."""
        return AgenticMessage("user", tuple(media))

    # What an agent needs

    def user(self, content: str | Sequence[Any]) -> AgenticMessage:
        """Return a user message of a text, or of parts and blocks."""
        if isinstance(content, str):
            return AgenticMessage.user(content)
        return AgenticMessage("user", tuple([as_block(part) for part in part_list(content)]))

    def result(self, call: Call, result: ToolResult) -> AgenticMessage:
        """Return the user message that holds the result of `call`."""
        return AgenticMessage("user", (_result_block(call, result),))

    def join(self, deltas: Sequence[Delta]) -> AgenticMessage | None:
        """Return the assistant message that these pieces make; its blocks stand as they were begun."""
        reply = gather(deltas)
        if not reply.runs:
            return None
        meta = ResponseMeta(usage=reply.usage) if reply.usage else None
        return AgenticMessage("assistant", tuple([_block(*run) for run in reply.runs]), response_meta=meta)

    def deltas(self, message: Any) -> list[Delta]:
        """Return the pieces of an assistant message, in the order of its blocks."""
        self.wants_assistant(self.role(message, None))
        pieces: list[Delta] = []
        calls = 0
        for block in message.content_blocks:
            kind = self.kind(block)
            if kind == CALL:
                pieces.append(
                    Delta(call_index=calls, call_id=block.call_id, name=block.name, arguments=block.arguments)
                )
                calls += 1
            elif kind in {TEXT, THINKING} and block.text:
                pieces.append(Delta(block.text) if kind == TEXT else Delta(reasoning=block.text))
        usage = self.usage(message)
        return [*pieces, Delta(usage=usage)] if usage else pieces

    def is_reply(self, message: Any) -> bool:
        """Tell whether `message` is one that a model gave."""
        return message.__class__ is AgenticMessage and message.role == "assistant"

    def is_cut(self, message: Any) -> bool:
        """Tell whether `message` is a reply that ends where it reached the limit of its length."""
        return message.response_meta is not None and message.response_meta.finish_reason == "length"

    def text(self, message: Any) -> str:
        """Return what `message` says as text: its texts, and those in its results."""
        self.role(message, None)
        texts: list[str] = []
        for block in message.content_blocks:
            kind = self.kind(block)
            if kind == RESULT:
                texts.append(self.result_text(self.read_result(block))[0])
            elif kind == TEXT:
                texts.append(block.text)
        return "\n".join([text for text in texts if text])

    def usage(self, message: Any) -> TokenUsage | None:
        """Return what `message` cost."""
        return message.response_meta.usage if message.response_meta else None

    def dump(self, message: Any) -> Any:
        """Return `message` as plain dicts and lists."""
        self.role(message, None)
        return message_to_dict(message)

    def load(self, value: Any) -> AgenticMessage:
        """Return the message that `dump` made `value` of."""
        message = message_from_dict(value)
        self.role(message, None)
        return cast("AgenticMessage", message)

    def calls(self, message: Any) -> tuple[Call, ...]:
        """Return the calls of `message`."""
        if self.role(message, None) != "assistant":
            return ()
        return tuple(
            [
                Call(block.call_id, block.name, block.arguments)
                for block in message.content_blocks
                if block.__class__ is FunctionToolCall
            ]
        )


def _result_block(call: Call, result: ToolResult) -> FunctionToolResult | ToolSearchResult:
    """Return the block that answers `call`: tools found, if that is all, or content."""
    parts = result.parts
    if len(parts) == 1 and isinstance(parts[0], ToolSearchPart) and not result.is_error:
        return ToolSearchResult(call.id, call.name, parts[0].tools, extra={**parts[0].extra, **result.extra})
    content = tuple([as_block(part) for part in parts])
    return FunctionToolResult(call.id, call.name, content, result.is_error, extra=result.extra)


def _content(block: FunctionToolResult | ToolSearchResult, parts: Sequence[Part]) -> tuple[Any, ...] | None:
    """Return the content of a block that is to say `parts`; `None` where it stays."""
    if isinstance(block, ToolSearchResult) or same_parts(parts, [as_part(held) for held in block.content]):
        return None
    return tuple([part.raw if isinstance(part, RawPart) else as_block(part) for part in parts])


def _block(kind: str, said: Any) -> FunctionToolCall | AssistantGenText | Reasoning:
    """Return the block of one run of a reply."""
    if kind == CALLED:
        return FunctionToolCall(said.id, said.name, said.arguments)
    return AssistantGenText(said) if kind == SAID else Reasoning(said)


def _is_answered(call: Any, rest: Iterator[Any]) -> bool:
    """Tell whether the next message of `rest` holds the result of `call`, and nothing else."""
    answer: Any = next(rest, None)
    if answer.__class__ is not AgenticMessage or answer.role != "user":
        return False
    blocks = answer.content_blocks
    if len(blocks) != 1:
        return False
    result = blocks[0]
    return result.__class__ is FunctionToolResult and result.call_id == call.call_id and bool(call.call_id)
