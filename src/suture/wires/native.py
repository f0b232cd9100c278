"""Suture's own messages: `Message`, which has the shape of a chat message, and `AgenticMessage`, a list of blocks."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, TypeGuard, cast

from msgspec.structs import replace

from suture import messages as own
from suture.wires import values
from suture.wires.blocks import BlockWire
from suture.wires.fields import given, json_text
from suture.wires.parts import MEDIA_PARTS, RawPart, Telling, as_block, as_part, in_words, part_list, same_parts
from suture.wires.wire import CALLED, SAID, THOUGHT, ChatWire, ItemWire, gather

_CUT = frozenset(("length", "content_filter"))
"""The finish reasons of a reply that was cut off."""


class NativeWire(ChatWire):
    """What the wires of Suture's two message types share."""

    text_arguments = True
    native = True
    marks = True
    message_type: ClassVar[type[Any]]
    article = "a"

    def check(self, message: Any, index: int | None = None) -> None:
        """Raise `InputError` if `message` is not of this wire."""
        if not isinstance(message, self.message_type):
            expected = f"{self.article} {self.message_type.__name__}"
            raise self.fault(index, "", f"expected {expected}, found {message.__class__.__name__}")

    def claims(self, message: Any) -> bool | None:
        """Return whether `message` is of this wire, according to its type."""
        return isinstance(message, self.message_type)

    def extra_of(self, message: Any) -> Mapping[str, Any]:
        return message.extra

    def with_extra(self, message: Any, extra: Mapping[str, Any]) -> Any:
        """Return `message` with `extra` added to its extra data."""
        return replace(message, extra={**message.extra, **extra}) if extra else message

    def compacted_by(self, message: Any) -> str:
        """Return the wire of a provider's compaction that a codec kept whole: `anthropic` for an `anthropic.block`."""
        is_chat = isinstance(message, own.Message)
        for part in message.assistant_gen_multi_content if is_chat else message.content_blocks:
            if isinstance(part, own.Opaque):
                value = cast("Mapping[str, Any]", part.data.get("value") or {})
                if value.get("type") in {"compaction", "compaction_summary"}:
                    return part.type.partition(".")[0] if any(map(value.get, ("content", "encrypted_content"))) else ""
        return ""

    def deltas(self, message: Any) -> list[own.Delta]:
        self.check(message)
        self.wants_assistant(message.role)
        usage = self.usage(message)
        return [*self.pieces(message), *([own.Delta(usage=usage)] if usage else [])]

    @abstractmethod
    def pieces(self, message: Any) -> list[own.Delta]:
        """Return the thoughts, texts and calls of an assistant message as pieces."""

    def made_by_model(self, message: Any, index: int | None = None) -> bool:
        return message.__class__ is self.message_type and message.role == "assistant"

    def is_cut(self, message: Any) -> bool:
        return message.response_meta is not None and message.response_meta.finish_reason in _CUT

    def early_end(self, message: Any) -> tuple[str, str]:
        meta = message.response_meta
        reason = "" if meta is None else meta.finish_reason
        word = reason if meta is None else meta.extension.get("finish_reason", reason)
        if self.refuses(message) or word == "refusal":
            return "refusal", "refusal"
        return (reason, str(word)) if reason in _CUT else ("", "")

    def refuses(self, message: Any) -> bool:
        """Return whether the provider marked the text of a message as a refusal."""
        return False

    def is_paused(self, message: Any) -> bool:
        return message.response_meta is not None and message.response_meta.finish_reason == "pause"

    def usage(self, message: Any) -> own.TokenUsage | None:
        return message.response_meta.usage if message.response_meta else None

    def dump(self, message: Any) -> Any:
        self.check(message)
        return own.message_to_dict(message)

    def load(self, value: Any) -> Any:
        message = own.message_from_dict(value)
        self.check(message)
        return message


def _with_kind(extra: Mapping[str, Any], call: values.Call) -> Mapping[str, Any]:
    """Return `extra` with the kind of a call that is not of a function, so that its result gets the same form."""
    return {**extra, values.KIND: call.kind} if call.kind else extra


class MessageWire(ItemWire, NativeWire):
    """Histories of `suture.Message`.

    >>> from suture.messages import Message
    >>> from suture.wires import get_wire
    >>> get_wire("message").view(Message.tool("42", "a")).results[0].id
    'a'
    """

    name = "message"
    message_type = own.Message

    def refuses(self, message: Any) -> bool:
        parts = message.assistant_gen_multi_content
        return any(part.extra.get("extension", {}).get("refusal") for part in parts)

    def glance(self, messages: Sequence[Any], start: int, demands: values.Demands) -> int:
        place = start
        rest = values.iterate(messages, start)
        for message in rest:
            if message.__class__ is not own.Message:
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

    def call_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        # Each call has its result right after it, and results are faster to read.
        return [message.tool_call_id for message in values.iterate(messages, start, stop) if message.role == "tool"]

    def view(self, message: Any, index: int | None = None) -> values.View:
        self.check(message, index)
        role = message.role
        if role == "tool":
            extra, content = message.extra, _content_of(message)
            result = values.Result(
                message.tool_call_id, message.tool_name, content, "", values.MARK in extra, message.is_error, extra
            )
            return values.View(role, (), (result,))
        if role != "assistant":
            return values.View(role)
        parts = message.assistant_gen_multi_content
        signed = any(isinstance(part, own.ReasoningPart) and part.signature for part in parts)
        calls = tuple([_call(call) for call in message.tool_calls])
        empty = not (calls or parts or message.content.strip() or message.reasoning_content)
        return values.View(role, calls, signed=signed, empty=empty)

    def result_text(self, result: values.Result) -> tuple[str, bool]:
        if isinstance(result.content, str):
            return result.content, True
        texts = [in_words(part) for part in _as_parts(result.content) if not isinstance(part, MEDIA_PARTS)]
        return "\n".join(texts), len(texts) == len(result.content)

    def result_parts(self, result: values.Result) -> tuple[own.Part, ...]:
        """Return the text of a result, if it has one, then its parts as they are."""
        return _as_parts(result.content)

    def tell(self, message: Any, telling: Telling) -> None:
        """Tell the words of `message`, without its calls, or the result that it is."""
        telling.say(message.reasoning_content)
        if message.role != "tool":
            telling.say(message.content)
            for part in message.user_input_multi_content:
                telling.tell(part)
        for part in message.assistant_gen_multi_content:
            if not isinstance(part, own.TextPart) or is_said(part, message):
                telling.tell(part)

    def is_empty_error(self, result: values.Result) -> bool:
        return result.failed and not result.content

    def edit(self, message: Any, calls: Mapping[int, values.CallEdit], results: Mapping[int, values.ResultEdit]) -> Any:
        if calls:
            changed = list(message.tool_calls)
            for position, edit in calls.items():
                new = given(id=edit.id, name=edit.name, arguments=edit.arguments)
                changed[position] = replace(changed[position], **new)
            message = replace(message, tool_calls=tuple(changed))
        if results:
            edit = results[0]
            fields = given(tool_call_id=edit.id, tool_name=edit.name, content=edit.text)
            if edit.parts is not None:
                fields |= _write_content(message, edit.parts)
            message = self.with_extra(replace(message, **fields), edit.extra or {})
        return message

    def without_thinking(self, message: Any) -> Any | None:
        """Return `message` without its reasoning; `None` if nothing is left."""
        parts = message.assistant_gen_multi_content
        kept = tuple([part for part in parts if not isinstance(part, own.ReasoningPart)])
        if not message.reasoning_content and len(kept) == len(parts):
            return message
        changed = replace(message, reasoning_content="", assistant_gen_multi_content=kept)
        return changed if kept or message.content or message.tool_calls else None

    def with_text(self, message: Any, text: str) -> Any:
        """Return `message` with `text` as its content, and with its media."""
        fields = {
            name: tuple([part for part in getattr(message, name) if not isinstance(part, own.TextPart)])
            for name in ("user_input_multi_content", "assistant_gen_multi_content")
        }
        return replace(message, content=text, **fields)

    def placeholder(self, piece: values.Piece) -> Any:
        call = piece.call or values.Call("", "")
        extra = _with_kind({values.MARK: piece.cause}, call)
        return own.Message("tool", piece.text, tool_call_id=call.id, tool_name=call.name, is_error=True, extra=extra)

    def speak(self, role: str, text: str) -> Any:
        return own.Message("assistant" if role == "assistant" else "user", text)

    # What an agent needs

    def user(self, content: str | Sequence[Any]) -> own.Message:
        return own.Message.user(content)

    def result(self, call: values.Call, result: own.ToolResult) -> own.Message:
        """Return the tool message that answers `call`; its content is one text if all parts are plain texts."""
        parts = result.parts
        plain = _only_texts(parts)
        return own.Message(
            "tool",
            "\n".join([part.text for part in parts]) if plain else "",  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType, reportAttributeAccessIssue]
            user_input_multi_content=() if plain else parts,
            tool_call_id=call.id,
            tool_name=call.name,
            is_error=result.is_error,
            extra=_with_kind(result.extra, call) if call.kind else result.extra,
        )

    def join(self, deltas: Sequence[own.Delta]) -> own.Message | None:
        reply = gather(deltas)
        if not reply.runs:
            return None
        return own.Message(
            "assistant",
            reply.words(SAID),
            reasoning_content=reply.words(THOUGHT),
            tool_calls=tuple([own.ToolCall(call.id, call.name, call.arguments) for call in reply.calls()]),
            response_meta=own.ResponseMeta(usage=reply.usage) if reply.usage else None,
        )

    def pieces(self, message: Any) -> list[own.Delta]:
        """Return the reasoning, the texts and the calls of an assistant message."""
        thoughts = [part.text for part in message.assistant_gen_multi_content if isinstance(part, own.ReasoningPart)]
        texts = [part.text for part in message.assistant_gen_multi_content if is_said(part, message)]
        pieces = [own.Delta(reasoning=words) for words in (message.reasoning_content, *thoughts) if words]
        pieces += [own.Delta(words) for words in (message.content, *texts) if words]
        calls = [
            own.Delta(call_index=place, call_id=call.id, name=call.name, arguments=call.arguments)
            for place, call in enumerate(message.tool_calls)
        ]
        return pieces + calls

    def text(self, message: Any) -> str:
        results = self.view(message).results
        return self.result_text(results[0])[0] if results else _text(message)

    def calls(self, message: Any) -> tuple[values.Call, ...]:
        self.check(message)
        return tuple([_call(call) for call in message.tool_calls]) if message.role == "assistant" else ()


def _call(call: own.ToolCall) -> values.Call:
    return values.Call(call.id, call.name, call.arguments, "" if call.type == "function" else call.type)


def _content_of(message: own.Message) -> str | tuple[Any, ...]:
    """Return the content of a tool message: its text, or a tuple of its text, if any, and its parts."""
    content, parts = message.content, message.user_input_multi_content
    if not parts:
        return content
    return (content, *parts) if content else tuple(parts)


def _as_parts(content: str | tuple[Any, ...]) -> tuple[own.Part, ...]:
    """Return the content of a tool message as parts."""
    held = content if isinstance(content, tuple) else (content,) if content else ()
    return tuple([own.TextPart(part) if isinstance(part, str) else part for part in held])


def _only_texts(parts: Sequence[own.Part]) -> bool:
    """Return whether `parts` are texts with nothing attached to them, so that one text says the same."""
    if len(parts) == 1:
        return type(parts[0]) is own.TextPart and not parts[0].extra
    return all(type(part) is own.TextPart and not part.extra for part in parts)


def _text(message: own.Message) -> str:
    """Return the text of `message`: the texts of a reply one after another, those of other messages as lines."""
    said, parts = message.content, message.assistant_gen_multi_content
    if parts:
        said += "".join([part.text for part in parts if is_said(part, message) and not is_aside(part)])
    given = [part.text for part in message.user_input_multi_content if isinstance(part, own.TextPart)]
    return "\n".join([said, *given] if said else given)


def is_aside(text: Any) -> bool:
    """Return whether a text of a reply, a part or a block, was said beside the answer."""
    return values.ASIDE in (text.extra.get("extension", ()) if isinstance(text, own.TextPart) else text.extension)


def is_said(part: own.Part, message: own.Message) -> TypeGuard[own.TextPart]:
    """Return whether a part of `message` is a text that its `content` does not repeat.

    The content of a reply is its whole answer; the parts with an index say of which texts that consists.
    """
    return isinstance(part, own.TextPart) and (part.index is None or not message.content or is_aside(part))


def _are_answered(calls: Sequence[Any], rest: Iterator[Any]) -> bool:
    """Return whether the next messages of `rest` are the results of `calls`, one by one."""
    for call in calls:
        answer: Any = next(rest, None)
        if answer.__class__ is not own.Message or answer.role != "tool":
            return False
        key, name = call.id, answer.tool_name
        if answer.tool_call_id != key or not key or (name and name != call.name):
            return False
    return True


def _write_content(message: own.Message, parts: Sequence[own.Part]) -> dict[str, Any]:
    """Return the fields of a tool message for `parts`; texts become its content if possible."""
    content, old = message.content, message.user_input_multi_content
    if same_parts(parts, _as_parts(_content_of(message))):
        return {}
    new = [part.raw if isinstance(part, RawPart) else part for part in parts]
    texts = 0
    if _only_texts(new) and (len(new) < 2 or not old):
        texts = len(new)
    elif content and _only_texts(new[:1]):
        texts = 1
    text = "\n".join([in_words(part) for part in new[:texts]])
    return {"content": text, "user_input_multi_content": tuple(new[texts:])}


_KINDS: dict[Any, str] = {
    own.FunctionToolCall: values.CALL,
    own.FunctionToolResult: values.RESULT,
    own.ToolSearchResult: values.RESULT,
    own.UserInputText: values.TEXT,
    own.AssistantGenText: values.TEXT,
    own.Reasoning: values.THINKING,
    **dict.fromkeys((own.UserInputImage, own.UserInputAudio, own.UserInputVideo, own.UserInputFile), values.MEDIA),
}
_MODEL_MEDIA = frozenset((own.AssistantGenImage, own.AssistantGenAudio, own.AssistantGenVideo))
_CARRIERS = frozenset((own.FunctionToolCall, own.FunctionToolResult, own.ToolSearchResult))


class AgenticWire(BlockWire, NativeWire):
    """Histories of `suture.AgenticMessage`.

    >>> from suture.messages import AgenticMessage
    >>> from suture.wires import get_wire
    >>> get_wire("agentic").view(AgenticMessage.user("hi")).role
    'user'
    """

    name = "agentic"
    message_type = own.AgenticMessage
    article = "an"
    bundled = False

    def refuses(self, message: Any) -> bool:
        return any(getattr(block, "extension", {}).get("refusal") for block in message.content_blocks)

    def glance(self, messages: Sequence[Any], start: int, demands: values.Demands) -> int:
        place = start
        rest = values.iterate(messages, start)
        for message in rest:
            if message.__class__ is not own.AgenticMessage:
                break
            calls = 0
            for block in message.content_blocks:
                kind = block.__class__
                if kind in _CARRIERS:
                    if kind is not own.FunctionToolCall or message.role != "assistant" or not _is_answered(block, rest):
                        return place
                    calls += 1
            place += calls + 1
        return place

    def call_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        # Each call has its result right after it, alone in a message, and results are faster to read.
        return [
            blocks[0].call_id
            for message in values.iterate(messages, start, stop)
            if message.role == "user"
            and (blocks := message.content_blocks)
            and type(blocks[0]) is own.FunctionToolResult
        ]

    def role(self, message: Any, index: int | None) -> str:
        self.check(message, index)
        return message.role

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        return message.content_blocks

    def kind(self, block: Any) -> str:
        return _KINDS.get(type(block), values.OTHER)

    def block_text(self, block: Any) -> str:
        return block.text

    def is_signed(self, block: Any) -> bool:
        """Return whether `block` is reasoning with a signature."""
        return isinstance(block, own.Reasoning) and bool(block.signature)

    def read_call(self, block: Any, index: int | None = None) -> values.Call:
        kind: Any = block.extra.get(values.KIND, "") if block.extra else ""
        return values.Call(block.call_id, block.name, block.arguments, kind if isinstance(kind, str) else "")

    def read_result(self, block: Any, index: int | None = None) -> values.Result:
        searched = isinstance(block, own.ToolSearchResult)
        content, failed = (block, False) if searched else (block.content, block.is_error)
        extra = block.extra
        return values.Result(block.call_id, block.name, content, "", values.MARK in extra, failed, extra)

    def result_text(self, result: values.Result) -> tuple[str, bool]:
        content = result.content
        if isinstance(content, own.ToolSearchResult):
            return json_text(content.tools), True
        texts = [block.text for block in content if isinstance(block, own.UserInputText)]
        return "\n".join(texts), len(texts) == len(content)

    def result_parts(self, result: values.Result) -> tuple[own.Part, ...] | None:
        """Return the content of a result as parts; `None` for the result of a tool search."""
        content = result.content
        return None if isinstance(content, own.ToolSearchResult) else tuple([as_part(block) for block in content])

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one block; media that the model made are counted, too."""
        if block.__class__ in _MODEL_MEDIA:
            telling.media += 1
        else:
            super().tell_block(block, telling)

    def write_call(self, block: Any, edit: values.CallEdit) -> Any:
        return replace(block, **given(call_id=edit.id, name=edit.name, arguments=edit.arguments))

    def write_result(self, block: Any, edit: values.ResultEdit) -> Any:
        content = None if edit.text is None else (own.UserInputText(text=edit.text),)
        if edit.parts is not None:
            content = tuple([part.raw if isinstance(part, RawPart) else as_block(part) for part in edit.parts])
            if isinstance(block, own.ToolSearchResult) or same_parts(
                edit.parts, [as_part(held) for held in block.content]
            ):
                content = None
        extra = {**block.extra, **edit.extra} if edit.extra else None
        return replace(block, **given(call_id=edit.id, name=edit.name, content=content, extra=extra))

    def make_result(self, piece: values.Piece) -> Any:
        call = piece.call or values.Call("", "")
        extra = _with_kind({values.MARK: piece.cause}, call)
        return own.FunctionToolResult(call.id, call.name, (own.UserInputText(piece.text),), is_error=True, extra=extra)

    def make_text(self, role: str, text: str) -> Any:
        return own.AssistantGenText(text=text) if role == "assistant" else own.UserInputText(text=text)

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        return own.AgenticMessage("assistant" if role == "assistant" else "user", tuple(blocks))

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        return replace(message, content_blocks=tuple(blocks))

    # What an agent needs

    def user(self, content: str | Sequence[Any]) -> own.AgenticMessage:
        """Return a user message with a text, or with parts and blocks."""
        if isinstance(content, str):
            return own.AgenticMessage.user(content)
        return own.AgenticMessage("user", tuple([as_block(part) for part in part_list(content)]))

    def result(self, call: values.Call, result: own.ToolResult) -> own.AgenticMessage:
        """Return the user message with the result of `call`; a sole `ToolSearchPart` becomes a `ToolSearchResult`."""
        parts, extra = result.parts, _with_kind(result.extra, call)
        if len(parts) == 1 and isinstance(parts[0], own.ToolSearchPart) and not result.is_error:
            found = own.ToolSearchResult(call.id, call.name, parts[0].tools, extra={**parts[0].extra, **extra})
            return own.AgenticMessage("user", (found,))
        content = tuple([as_block(part) for part in parts])
        made = own.FunctionToolResult(call.id, call.name, content, result.is_error, extra=extra)
        return own.AgenticMessage("user", (made,))

    def join(self, deltas: Sequence[own.Delta]) -> own.AgenticMessage | None:
        """Return the assistant message that these pieces make, with its blocks in the order in which they began."""
        reply = gather(deltas)
        if not reply.runs:
            return None
        meta = own.ResponseMeta(usage=reply.usage) if reply.usage else None
        blocks = [
            own.FunctionToolCall(said.id, said.name, said.arguments)
            if kind == CALLED
            else own.AssistantGenText(said)
            if kind == SAID
            else own.Reasoning(said)
            for kind, said in reply.runs
        ]
        return own.AgenticMessage("assistant", tuple(blocks), response_meta=meta)

    def pieces(self, message: Any) -> list[own.Delta]:
        """Return the thoughts, texts and calls of an assistant message, in the order of its blocks."""
        pieces: list[own.Delta] = []
        calls = 0
        for block in message.content_blocks:
            kind = self.kind(block)
            if kind == values.CALL:
                pieces.append(
                    own.Delta(call_index=calls, call_id=block.call_id, name=block.name, arguments=block.arguments)
                )
                calls += 1
            elif kind in {values.TEXT, values.THINKING} and block.text:
                pieces.append(own.Delta(block.text) if kind == values.TEXT else own.Delta(reasoning=block.text))
        return pieces

    def text(self, message: Any) -> str:
        """Return the text of `message`: the texts of a reply one after another, else texts and results as lines."""
        self.check(message)
        blocks = message.content_blocks
        if message.role == "assistant":
            texts = [block for block in blocks if isinstance(block, own.AssistantGenText)]
            return "".join([text.text for text in texts if not text.extension or not is_aside(text)])
        texts = [
            block.text if kind == values.TEXT else self.result_text(self.read_result(block))[0]
            for block in blocks
            if (kind := self.kind(block)) in {values.TEXT, values.RESULT}
        ]
        return "\n".join([text for text in texts if text])

    def calls(self, message: Any) -> tuple[values.Call, ...]:
        if self.role(message, None) != "assistant":
            return ()
        calls = [block for block in message.content_blocks if block.__class__ is own.FunctionToolCall]
        return tuple([self.read_call(block) for block in calls])


def _is_answered(call: Any, rest: Iterator[Any]) -> bool:
    """Return whether the next message of `rest` holds just the result of `call`."""
    answer: Any = next(rest, None)
    if answer.__class__ is not own.AgenticMessage or answer.role != "user":
        return False
    blocks = answer.content_blocks
    if len(blocks) != 1:
        return False
    result = blocks[0]
    if result.__class__ is not own.FunctionToolResult or (result.name and result.name != call.name):
        return False
    return result.call_id == call.call_id and bool(call.call_id)
