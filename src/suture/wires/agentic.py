"""Suture's own content-block messages: tool results are blocks in user messages, one message a result."""

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from suture.language import Language
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Reasoning,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.wires._block_wire import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING, BlockWire
from suture.wires._fields import given
from suture.wires._mark import MARK, media_note
from suture.wires._text import json_text
from suture.wires._wire import GLANCE, Call, CallEdit, Piece, Result, ResultEdit

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
_CARRIERS = frozenset((FunctionToolCall, FunctionToolResult, ToolSearchResult))


class AgenticWire(BlockWire):
    """Histories of `suture.AgenticMessage`.

    >>> from suture.messages import AgenticMessage
    >>> from suture.wires import get_wire
    >>> get_wire("agentic").view(AgenticMessage.user("hi")).role
    'user'
    """

    name = "agentic"
    text_arguments = True
    native = True
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
        return Result(block.call_id, block.name, content, "", MARK in block.extra, failed)

    def result_text(self, result: Result) -> tuple[str, bool]:
        """Return the text of a result, and whether that is all of it."""
        if isinstance(result.content, ToolSearchResult):
            return json_text(result.content.tools), True
        content = result.content
        texts = [block.text for block in content if isinstance(block, UserInputText)]
        return "\n".join(texts), len(texts) == len(content)

    def write_call(self, block: Any, edit: CallEdit) -> Any:
        """Return a call block with `edit` done to it."""
        return replace(block, **given(call_id=edit.id, name=edit.name, arguments=edit.arguments))

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        """Return a result block with `edit` done to it."""
        content = None if edit.text is None else (UserInputText(text=edit.text),)
        return replace(block, **given(call_id=edit.id, name=edit.name, content=content))

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
