"""Agent Framework's messages: contents of many types in a `Message`; results stand in messages of the role `tool`.

A tool that the provider ran itself has its call and its result in one assistant message: neither is ours to touch. What
Suture attaches to a result stands in `additional_properties`, which no client sends.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple, cast

from agent_framework import Content, Message

from suture.messages import Part
from suture.wires import MARK, BlockWire, Call, CallEdit, Form, Piece, Result, ResultEdit, View
from suture.wires.fields import given, is_list, is_map, is_object_text, json_text, put, text_of
from suture.wires.parts import Telling
from suture.wires.values import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING

HELD = Message("system", [])
"""Stands at the head of a list for what the service keeps of the conversation. It is not sent."""

_HOSTED = "hosted"
_ROLES = {"system": "system", "developer": "system", "assistant": "assistant"}
_KINDS = {
    "function_call": CALL,
    "function_result": RESULT,
    "text": TEXT,
    "text_reasoning": THINKING,
    "data": MEDIA,
    "uri": MEDIA,
    "hosted_file": MEDIA,
}


class _Settled(NamedTuple):
    """A call or a result whose counterpart stands in the same message."""

    content: Any


def _find_text(content: Any) -> str | None:
    return content.text if _type(content) == "text" else None


class AgentFrameworkWire(BlockWire):
    """Histories of Agent Framework's message objects.

    >>> from agent_framework import Content, Message
    >>> WIRE.view(Message("tool", [Content.from_function_result("a", result="42")])).results[0].id
    'a'
    """

    name = "agent-framework"
    marks = True
    text_arguments = True
    form = Form(_find_text, cast("Any", Content.from_text))

    arranges = frozenset(("split-results", "split-turn"))

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, View], Any]]:
        """What mends a message by itself: a result stands in a message of its own."""
        return {problem: mend for problem, mend in super().mends.items() if problem != "results-not-first"}

    def refers(self, message: Any) -> bool:
        """Tell whether `message` stands for what the service keeps."""
        return message is HELD

    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is one: its type says so."""
        return isinstance(message, Message)

    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`; who brings results is a user, and so is whoever a program makes up."""
        if not isinstance(message, Message):
            raise self.fault(index, "", f"expected a Message, found {type(message).__name__}")
        return _ROLES.get(message.role, "user")

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        """Return the contents of `message`, with those marked that have their counterpart beside them."""
        contents = message.contents
        if not is_list(contents):
            raise self.fault(index, "contents", "expected a list of contents")
        has_results = False
        for content in contents:
            if not isinstance(content, Content):
                raise self.fault(index, "contents", "expected a list of contents")
            has_results = has_results or content.type == "function_result"
        return _with_settled(contents) if has_results and message.role == "assistant" else contents

    def kind(self, block: Any) -> str:
        """Return what `block` is."""
        return _KINDS.get(_type(block), OTHER)

    def block_text(self, block: Any) -> str:
        """Return the text of a text block."""
        return block.text or ""

    def is_signed(self, block: Any) -> bool:
        """Tell whether `block` is reasoning that the provider signed or encrypted."""
        return _type(block) == "text_reasoning" and bool(block.protected_data)

    def read_call(self, block: Any, index: int | None = None) -> Call:
        """Return the call that `block` holds."""
        kind = _HOSTED if _is_hosted(block) else ""
        return Call(text_of(block, "call_id", index), text_of(block, "name", index), block.arguments, kind)

    def read_result(self, block: Any, index: int | None = None) -> Result:
        """Return the result that `block` holds: its items, or what older ones have in their place."""
        extra = block.additional_properties
        content = block.items or block.result
        call_id, name = text_of(block, "call_id", index), text_of(block, "name", index)
        return Result(call_id, name, content, "", MARK in extra, block.exception is not None, extra)

    def can_answer(self, call: Call) -> bool:
        """Tell whether a placeholder can be made: what the service runs, the service answers."""
        return call.kind != _HOSTED

    def arguments_ok(self, call: Call) -> bool:
        """Tell whether the arguments are an object or the text of one; clients take both."""
        arguments = call.arguments
        return is_map(arguments) or (isinstance(arguments, str) and is_object_text(arguments))

    def result_text(self, result: Result) -> tuple[str, bool]:
        """Return the text of a result, and whether that is all of it."""
        content = result.content
        if content is None or isinstance(content, str) or is_list(content):
            return super().result_text(result)
        return json_text(content), True

    def result_parts(self, result: Result) -> tuple[Part, ...] | None:
        """Return the content of a result as parts; what is no list of contents is its text."""
        content = result.content
        whole = content is None or isinstance(content, str) or is_list(content)
        return self.form.split(content if whole else json_text(content))

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one content: its words, that it is a medium, or its fields."""
        content = block.content if isinstance(block, _Settled) else block
        if content is block and self.kind(block) != OTHER:
            super().tell_block(block, telling)
        else:
            telling.show(content.to_dict())

    def write_call(self, block: Any, edit: CallEdit) -> Any:
        """Return a call with `edit` done to it."""
        return put(block, **given(call_id=edit.id, name=edit.name, arguments=edit.arguments))

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        """Return a result with `edit` done to it."""
        fields: dict[str, Any] = {}
        content = self.content_after(edit, self.read_result(block).content)
        if content is not None:
            items = [Content.from_text(content)] if isinstance(content, str) else content
            texts = [text for text in map(_find_text, items) if text]
            fields = {"items": items, "result": "\n".join(texts)}
        extra = {**block.additional_properties, **edit.extra} if edit.extra else None
        return put(block, **given(call_id=edit.id, name=edit.name, additional_properties=extra), **fields)

    def make_result(self, piece: Piece) -> Any:
        """Return a marked error result for the call of `piece`."""
        return Content.from_function_result(
            piece.call.id if piece.call else "",
            result=piece.text,
            exception=piece.cause or "unanswered",
            additional_properties={MARK: piece.cause},
        )

    def make_text(self, role: str, text: str) -> Any:
        """Return a text."""
        del role
        return Content.from_text(text)

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        """Return a new message."""
        return self.with_blocks(Message(role, []), blocks)

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        """Return `message` with other contents; nothing but results makes it a tool's, and no result a user's."""
        contents = [block.content if isinstance(block, _Settled) else block for block in blocks]
        results = sum(content.type == "function_result" for content in contents)
        role = message.role
        if results and results == len(contents):
            role = "tool"
        elif role == "tool" and not results:
            role = "user"
        return put(message, role=role, contents=contents)

    def extra_of(self, message: Any) -> Mapping[str, Any]:
        """Return what is attached to `message`."""
        return message.additional_properties

    def with_extra(self, message: Any, extra: Mapping[str, Any]) -> Any:
        """Return `message` with `extra` attached as well."""
        return put(message, additional_properties={**message.additional_properties, **extra}) if extra else message


def _type(block: Any) -> str:
    return getattr(block, "type", "")


def _is_hosted(content: Any) -> bool:
    """Tell whether the service runs the tool itself."""
    return bool(getattr(content, "hosted", False))


def _with_settled(contents: Sequence[Any]) -> list[Any]:
    """Return `contents` with each result, and the call before it that it answers, marked as settled."""
    blocks = list(contents)
    open_calls: dict[Any, list[int]] = {}
    for place, content in enumerate(contents):
        if content.type == "function_call":
            open_calls.setdefault(content.call_id, []).append(place)
        elif content.type == "function_result" and open_calls.get(content.call_id):
            for settled in (place, open_calls[content.call_id].pop(0)):
                blocks[settled] = _Settled(contents[settled])
    return blocks


class _TextWire(AgentFrameworkWire):
    """The same for a client that sends arguments as they are, to a provider that takes text."""

    def arguments_ok(self, call: Call) -> bool:
        """Tell whether the arguments are the text of an object."""
        return isinstance(call.arguments, str) and is_object_text(call.arguments)


WIRE, TEXT_WIRE = AgentFrameworkWire(), _TextWire()
