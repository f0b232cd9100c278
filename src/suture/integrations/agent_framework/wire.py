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
from suture.wires.values import (
    CALL,
    MEDIA,
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
    glances_at_rules = True
    text_arguments = True
    form = Form(_find_text, cast("Any", Content.from_text))

    arranges = frozenset(("split-results", "split-turn"))

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, View], Any]]:
        """What mends a message by itself: a result stands in a message of its own."""
        return {problem: mend for problem, mend in super().mends.items() if problem != "results-not-first"}

    def glance(self, messages: Sequence[Any], start: int, demands: Demands) -> int:
        return glance_at_turns(messages, start, demands, self._turns)

    @cached_property
    def _turns(self) -> Turns:
        return Turns("assistant", "user", "role", "contents", self._read_calls, self._are_answered, _are_texts)

    def _read_calls(self, contents: Sequence[Any], demands: Demands) -> list[Any] | None:
        """Return the calls among the contents of a plain message; `None` where it needs a second look."""
        calls: list[Any] = []
        for content in contents:
            if content.type == "function_call":
                arguments = content.arguments
                if content.hosted or not self.takes_arguments(arguments):
                    return None
                if not (arguments.__class__ is str or is_plain_object(arguments)):
                    return None
                if not demands.accepts(content.call_id, content.name):
                    return None
                calls.append(content)
            elif calls or content.type != "text" or not says_something(content.text):
                return None
        return calls if contents else None

    def _are_answered(self, calls: Sequence[Any], message: Any, demands: Demands) -> bool:
        """Tell whether `message` answers `calls` one by one, and says nothing else."""
        if message.__class__ is not Message or message.role != "tool" or len(message.contents) != len(calls):
            return False
        for call, content in zip(calls, message.contents, strict=True):
            if content.type != "function_result" or content.call_id != call.call_id:
                return False
            if "result-name" in demands.problems and content.name != call.name:
                return False
            if content.exception is not None and self.is_empty_error(self.read_result(content)):
                return False
        ids = [call.call_id for call in calls]
        if len(set(ids)) < len(ids):
            return False
        demands.use(ids)
        return True

    def refers(self, message: Any) -> bool:
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
        return _KINDS.get(_type(block), OTHER)

    def block_text(self, block: Any) -> str:
        return block.text or ""

    def is_signed(self, block: Any) -> bool:
        return _type(block) == "text_reasoning" and bool(block.protected_data)

    def read_call(self, block: Any, index: int | None = None) -> Call:
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
        return self.takes_arguments(call.arguments)

    def takes_arguments(self, arguments: Any) -> bool:
        """Tell whether a client sends these arguments as an object."""
        return is_object_text(arguments) if isinstance(arguments, str) else is_map(arguments)

    def result_text(self, result: Result) -> tuple[str, bool]:
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
        return put(block, **given(call_id=edit.id, name=edit.name, arguments=edit.arguments))

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        fields: dict[str, Any] = {}
        content = self.content_after(edit, self.read_result(block).content)
        if content is not None:
            items = [Content.from_text(content)] if isinstance(content, str) else content
            texts = [text for text in map(_find_text, items) if text]
            fields = {"items": items, "result": "\n".join(texts)}
        extra = {**block.additional_properties, **edit.extra} if edit.extra else None
        return put(block, **given(call_id=edit.id, name=edit.name, additional_properties=extra), **fields)

    def make_result(self, piece: Piece) -> Any:
        return Content.from_function_result(
            piece.call.id if piece.call else "",
            result=piece.text,
            exception=piece.cause or "unanswered",
            additional_properties={MARK: piece.cause},
        )

    def make_text(self, role: str, text: str) -> Any:
        del role
        return Content.from_text(text)

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
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
        return message.additional_properties

    def with_extra(self, message: Any, extra: Mapping[str, Any]) -> Any:
        return put(message, additional_properties={**message.additional_properties, **extra}) if extra else message


def _are_texts(contents: Sequence[Any]) -> bool:
    """Tell whether `contents` are texts that say something and can be sent."""
    return bool(contents) and all(content.type == "text" and says_something(content.text) for content in contents)


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

    def takes_arguments(self, arguments: Any) -> bool:
        """Tell whether the arguments are the text of an object."""
        return isinstance(arguments, str) and is_object_text(arguments)


WIRE, TEXT_WIRE = AgentFrameworkWire(), _TextWire()
