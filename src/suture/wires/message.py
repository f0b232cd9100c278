"""Suture's own chat messages: tool calls in assistant messages, one tool message a result."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from msgspec.structs import replace

from suture.language import Language
from suture.messages import (
    Delta,
    Message,
    Part,
    ReasoningPart,
    ResponseMeta,
    TextPart,
    TokenUsage,
    ToolCall,
    ToolResult,
    message_from_dict,
    message_to_dict,
)
from suture.wires._chat import SAID, THOUGHT, ChatWire, gather
from suture.wires._contents import same_parts
from suture.wires._fields import given
from suture.wires._item_wire import ItemWire
from suture.wires._mark import MARK, media_note
from suture.wires._parts import MEDIA, RawPart, in_words, only_texts
from suture.wires._wire import GLANCE, Call, CallEdit, Piece, Result, ResultEdit, View
from suture.wires._words import Telling

__all__ = ["MessageWire"]


class MessageWire(ItemWire, ChatWire):
    """Histories of `suture.Message`.

    >>> from suture.messages import Message
    >>> from suture.wires import get_wire
    >>> get_wire("message").view(Message.tool("42", "a")).results[0].id
    'a'
    """

    name = "message"
    text_arguments = True
    native = True
    marks = True

    def skip(self, messages: Sequence[Any], start: int) -> int:
        """Return how far, from `start` on, everything is in order at a glance."""
        place = start
        rest = iter(messages[start : start + GLANCE])
        for message in rest:
            if message.__class__ is not Message:
                break
            role = message.role
            if role == "assistant":
                calls = message.tool_calls
                if calls:
                    if not _are_answered(calls, rest):
                        break
                    place += len(calls)
            elif role == "tool":
                break
            place += 1
        return place

    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is one: its type says so."""
        return isinstance(message, Message)

    def view(self, message: Any, index: int | None = None) -> View:
        """Return what the engines need to know of `message`."""
        if not isinstance(message, Message):
            raise self.fault(index, "", f"expected a Message, found {type(message).__name__}")
        role = message.role
        if role == "tool":
            extra = message.extra
            content = (message.content, message.user_input_multi_content)
            result = Result(
                message.tool_call_id, message.tool_name, content, "", MARK in extra, message.is_error, extra
            )
            return View(role, (), (result,))
        if role != "assistant":
            return View(role)
        parts = message.assistant_gen_multi_content
        signed = any(isinstance(part, ReasoningPart) and part.signature for part in parts)
        calls = tuple([Call(call.id, call.name, call.arguments) for call in message.tool_calls])
        empty = not (calls or parts or message.content or message.reasoning_content)
        return View(role, calls, signed=signed, empty=empty)

    def result_text(self, result: Result) -> tuple[str, bool]:
        """Return the text of a result, and whether that is all of it."""
        content, parts = result.content
        texts = [part.text for part in parts if isinstance(part, TextPart)]
        rest = [part for part in parts if not isinstance(part, (TextPart, *MEDIA))]
        told = [content] if content else []
        text = "\n".join([*told, *texts, *(in_words(part) for part in rest)])
        return text, len(texts) + len(rest) == len(parts)

    def result_parts(self, result: Result) -> tuple[Part, ...]:
        """Return the text of a result, if it has one, and its parts as they are."""
        content, parts = result.content
        return (TextPart(content), *parts) if content else parts

    def tell(self, message: Any, telling: Telling) -> None:
        """Tell what `message` says beside its calls, and beside the result that it is."""
        telling.say(message.reasoning_content)
        if message.role != "tool":
            telling.say(message.content)
            for part in message.user_input_multi_content:
                telling.tell(part)
        for part in message.assistant_gen_multi_content:
            telling.tell(part)

    def raw_content(self, result: Result) -> Any:
        """Return the text of a result and its parts."""
        content, parts = result.content
        return (content, *parts) if content else parts

    def is_empty_error(self, result: Result) -> bool:
        """Tell whether a result reports an error and says nothing of it."""
        content, parts = result.content
        return result.failed and not content and not parts

    def edit(self, message: Any, calls: Mapping[int, CallEdit], results: Mapping[int, ResultEdit]) -> Any:
        """Return `message` with these calls and results changed."""
        if calls:
            changed = [
                _write_call(call, calls[position]) if position in calls else call
                for position, call in enumerate(message.tool_calls)
            ]
            message = replace(message, tool_calls=tuple(changed))
        if results:
            edit = results[0]
            fields = given(tool_call_id=edit.id, tool_name=edit.name, content=edit.text)
            if edit.parts is not None:
                fields |= _written(message, edit.parts)
            message = self.with_extra(replace(message, **fields), edit.extra or {})
        return message

    def placeholder(self, piece: Piece) -> Any:
        """Return a new result for the call of `piece`, saying its text."""
        call = piece.call or Call("", "")
        extra = {MARK: piece.cause}
        return Message("tool", piece.text, tool_call_id=call.id, tool_name=call.name, is_error=True, extra=extra)

    def speak(self, role: str, text: str) -> Any:
        """Return a new message that says `text`."""
        return Message("assistant" if role == "assistant" else "user", text)

    def lift_media(self, message: Any, language: Language) -> tuple[Any, Sequence[Any]]:
        """Return a tool message with its media replaced by a note, and those media."""
        parts = message.user_input_multi_content if message.role == "tool" else ()
        media = [part for part in parts if isinstance(part, MEDIA)]
        if not media:
            return message, ()
        kept = [part for part in parts if not isinstance(part, MEDIA)]
        note = TextPart(text=media_note(len(media), language))
        return replace(message, user_input_multi_content=(*kept, note)), media

    def show_media(self, media: Sequence[Any]) -> Any:
        """Return a user message that shows `media`."""
        return Message("user", user_input_multi_content=tuple(media))

    # What an agent needs

    def user(self, content: str | Sequence[Any]) -> Message:
        """Return a user message of a text, or of parts."""
        return Message.user(content)

    def result(self, call: Call, result: ToolResult) -> Message:
        """Return the tool message that answers `call`: one text if its parts are nothing else."""
        parts = result.parts
        plain = only_texts(parts)
        return Message(
            "tool",
            "\n".join([cast("TextPart", part).text for part in parts]) if plain else "",
            user_input_multi_content=() if plain else parts,
            tool_call_id=call.id,
            tool_name=call.name,
            is_error=result.is_error,
            extra=result.extra,
        )

    def join(self, deltas: Sequence[Delta]) -> Message | None:
        """Return the assistant message that these pieces make."""
        reply = gather(deltas)
        if not reply.runs:
            return None
        return Message(
            "assistant",
            reply.words(SAID),
            reasoning_content=reply.words(THOUGHT),
            tool_calls=tuple([ToolCall(call.id, call.name, call.arguments) for call in reply.calls()]),
            response_meta=ResponseMeta(usage=reply.usage) if reply.usage else None,
        )

    def deltas(self, message: Any) -> list[Delta]:
        """Return the pieces of an assistant message."""
        self.wants_assistant(self.view(message).role)
        thoughts = [part.text for part in message.assistant_gen_multi_content if isinstance(part, ReasoningPart)]
        pieces = [Delta(reasoning=words) for words in (message.reasoning_content, *thoughts) if words]
        pieces += [Delta(words) for words in _texts(message) if words]
        pieces += [
            Delta(call_index=place, call_id=call.id, name=call.name, arguments=call.arguments)
            for place, call in enumerate(message.tool_calls)
        ]
        usage = self.usage(message)
        return [*pieces, Delta(usage=usage)] if usage else pieces

    def is_reply(self, message: Any) -> bool:
        """Tell whether `message` is one that a model gave."""
        return message.__class__ is Message and message.role == "assistant"

    def is_cut(self, message: Any) -> bool:
        """Tell whether `message` is a reply that ends where it reached the limit of its length."""
        return message.response_meta is not None and message.response_meta.finish_reason == "length"

    def text(self, message: Any) -> str:
        """Return what `message` says as text."""
        results = self.view(message).results
        return self.result_text(results[0])[0] if results else "\n".join(_texts(message))

    def usage(self, message: Any) -> TokenUsage | None:
        """Return what `message` cost."""
        return message.response_meta.usage if message.response_meta else None

    def dump(self, message: Any) -> Any:
        """Return `message` as plain dicts and lists."""
        self.view(message)
        return message_to_dict(message)

    def load(self, value: Any) -> Message:
        """Return the message that `dump` made `value` of."""
        message = message_from_dict(value)
        self.view(message)
        return cast("Message", message)

    def calls(self, message: Any) -> tuple[Call, ...]:
        """Return the calls of `message`."""
        if message.__class__ is not Message or message.role != "assistant":
            return self.view(message).calls
        return tuple([Call(call.id, call.name, call.arguments) for call in message.tool_calls])


def _texts(message: Message) -> list[str]:
    """Return the texts of `message`: its content, and those among its parts."""
    parts = (*message.user_input_multi_content, *message.assistant_gen_multi_content)
    texts = [part.text for part in parts if isinstance(part, TextPart)]
    return [message.content, *texts] if message.content else texts


def _are_answered(calls: Sequence[Any], rest: Iterator[Any]) -> bool:
    """Tell whether the next messages of `rest` are the results of `calls`, one by one."""
    for call in calls:
        answer: Any = next(rest, None)
        if answer.__class__ is not Message or answer.role != "tool":
            return False
        key = call.id
        if answer.tool_call_id != key or not key:
            return False
    return True


def _write_call(call: Any, edit: CallEdit) -> Any:
    return replace(call, **given(id=edit.id, name=edit.name, arguments=edit.arguments))


def _written(message: Message, parts: Sequence[Part]) -> dict[str, Any]:
    """Return the fields of a tool message that says `parts`: texts are its content where they can be."""
    content, old = message.content, message.user_input_multi_content
    if same_parts(parts, (TextPart(content), *old) if content else old):
        return {}
    new = [part.raw if isinstance(part, RawPart) else part for part in parts]
    texts = 0
    if only_texts(new) and (len(new) < 2 or not old):
        texts = len(new)
    elif content and only_texts(new[:1]):
        texts = 1
    text = "\n".join([in_words(part) for part in new[:texts]])
    return {"content": text, "user_input_multi_content": tuple(new[texts:])}
