"""Wires of frameworks whose messages are objects with lists of blocks; class attributes name their fields."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from operator import is_
from typing import Any, ClassVar, cast

from suture.wires import BlockWire, Call, CallEdit, Demands, SurrogateError, sendable, values
from suture.wires.fields import NO_OBJECT, decode_object, given, is_list, is_map, is_object_text, text_of
from suture.wires.values import CALL, OTHER, RESULT, TEXT, THINKING, is_plain_object, is_sendable


class ObjectWire(BlockWire):
    """A wire of a framework's own objects. Changed messages are copies, which are not validated again."""

    marks = True
    glances_at_rules = True
    types: tuple[type, ...]
    """The classes of messages."""
    speaker = "role"
    """The field with the role of a message; below, its values for the model, the user, and the bringer of results."""
    model, user, tools = "assistant", "user", "tool"
    kind_field = "type"
    """The field with the kind of a block."""
    kinds: ClassVar[Mapping[str, str]]
    """Suture's kinds, by the values of that field."""
    system = ""
    """The kind of a system block in a user message."""
    text_field, id_field, name_field, arguments_field = "text", "call_id", "name", "arguments"
    takes_objects, takes_none = True, False
    """Whether arguments may be an object, or missing, and not only the text of an object."""
    service_field = ""
    """The field that marks a call that the service runs."""
    status_field: str
    """The field with the status of a result; `success` is its value if the result is not an error."""
    success: Any = None
    sent: tuple[str, ...]
    """The fields of messages and blocks that are sent; the last one has the text of a result."""
    extra_field: str
    """The field for data attached to a message or a result."""

    def contents(self, message: Any) -> Sequence[Any]:
        return self.blocks(message)

    def is_system(self, block: Any) -> bool:
        return bool(self.system) and getattr(block, self.kind_field, "") == self.system

    def __init__(self) -> None:
        # The attributes that a glance needs for each message, in tuples, because reading them from the class is slow.
        ids, kinds = (self.id_field, self.name_field), (self.kind_field, self.kinds)
        self._of_calls = (*kinds, self.text_field, *ids, self.arguments_field, self.service_field, self.takes_objects)
        self._of_results = (*kinds, *ids, self.speaker, self.tools, self.field, self.status_field, self.success)
        self._said = self.sent[-1]
        self._of_texts = (*kinds, self.text_field, self.system)
        readers = (self._plain_calls, self._are_answered, self._are_texts)
        self._turns = values.Turns(self.model, self.user, self.speaker, self.field, *readers)

    def claims(self, message: Any) -> bool | None:
        return isinstance(message, self.types)

    def role(self, message: Any, index: int | None) -> str:
        if not isinstance(message, self.types):
            wanted = " or a ".join([kind.__name__ for kind in self.types])
            raise self.fault(index, "", f"expected a {wanted}, found {type(message).__name__}")
        return "assistant" if getattr(message, self.speaker) == self.model else "user"

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        blocks = getattr(message, self.field)
        if not is_list(blocks):
            raise self.fault(index, self.field, f"expected a list of {self.field}, found {type(blocks).__name__}")
        with suppress(RecursionError):  # a value that contains itself stays
            if index is not None and self.sendable(blocks) is not blocks:
                raise SurrogateError("a text holds half of a surrogate pair", index=index)
        return blocks

    def sendable(self, message: Any) -> Any:
        """Return a message, or a value in it, with U+FFFD for each lone surrogate that would be sent."""
        if isinstance(message, str | dict):
            return sendable(message)
        if is_list(message):
            items = [self.sendable(each) for each in message]
            return message if all(map(is_, items, message)) else items
        held: dict[str, Any] = getattr(message, "__dict__", {})
        new = {name: self.sendable(held[name]) for name in self.sent if name in held}
        changed = {name: item for name, item in new.items() if item is not held[name]}
        return with_fields(message, **changed) if changed else message

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        return with_fields(message, **{self.field: list(blocks)})

    def kind(self, block: Any) -> str:
        return self.kinds.get(getattr(block, self.kind_field, ""), OTHER)

    def block_text(self, block: Any) -> str:
        return self.block_words(block) or ""

    def block_words(self, block: Any) -> Any:
        return getattr(block, self.text_field)

    def read_call(self, block: Any, index: int | None = None) -> Call:
        call_id, name = text_of(block, self.id_field, index), text_of(block, self.name_field, index)
        return Call(call_id, name, getattr(block, self.arguments_field))

    def write_call(self, block: Any, edit: CallEdit) -> Any:
        edits = {self.id_field: edit.id, self.name_field: edit.name, self.arguments_field: edit.arguments}
        return with_fields(block, **given(**edits))

    def arguments_ok(self, call: Call) -> bool:
        arguments = call.arguments
        if self.takes_none and not arguments:
            return True
        return is_object_text(arguments) if isinstance(arguments, str) else self.takes_objects and is_map(arguments)

    def extra_of(self, message: Any) -> Mapping[str, Any]:
        extra = getattr(message, self.extra_field, None)
        return extra if is_map(extra) else values.NO_EXTRA

    def with_extra(self, message: Any, extra: Mapping[str, Any] | None) -> Any:
        held = getattr(message, self.extra_field, "")
        if not extra or not (held is None or is_map(held)):
            return message
        return with_fields(message, **{self.extra_field: {**(held or {}), **extra}})

    # The glance

    def glance(self, messages: Sequence[Any], start: int, demands: Demands) -> int:
        return values.glance_at_turns(messages, start, demands, self._turns)

    def _plain_calls(self, blocks: Sequence[Any], demands: Demands) -> list[Any] | None:
        """Return the fields of the calls in a plain message of the model; `None` if it needs a closer look."""
        kind_field, kinds, text, call_id, name, arguments, service, takes_objects = self._of_calls
        calls: list[Any] = []
        said = False
        for block in blocks:
            fields = block.__dict__
            kind = kinds.get(fields[kind_field])
            if kind == CALL:
                held = fields[arguments]
                if not demands.accepts(fields[call_id], fields[name]) or (service and fields.get(service)):
                    return None
                if held.__class__ is dict and takes_objects:
                    if not is_plain_object(held):
                        return None
                elif (held or not self.takes_none) and not _is_plain_json(held):
                    return None
                calls.append(fields)
            elif kind == TEXT and not calls:
                words, said = fields[text], True
                if words.__class__ is not str or not words.strip() or not (words.isascii() or is_sendable(words)):
                    return None
            elif kind != THINKING or calls:
                return None
        return calls if calls or said else None

    def _are_answered(self, calls: Sequence[Any], message: Any, demands: Demands) -> bool:
        """Return whether `message` answers `calls` one by one; user text may follow if that is allowed."""
        kind, kinds, call_id, name, speaker, tools, field, status, success = self._of_results
        content = self._said
        fields, ids = message.__dict__, [call[call_id] for call in calls]
        blocks, count = fields[field], len(ids)
        if fields[speaker] != tools or len(blocks) < count or (count > 1 and len(set(ids)) < count):
            return False
        for call, block in zip(calls, blocks):  # noqa: B905 - a keyword takes time
            fields = block.__dict__
            if fields[call_id] != call[call_id] or kinds.get(fields[kind]) != RESULT:
                return False
            if fields[name] != call[name] and (fields[name] or "result-name" in demands.problems):
                return False
            if fields.get(status, "") != success and not self._says_why(block):
                return False
            said = fields[content]
            if said.__class__ is str and not (said.isascii() or is_sendable(said)):
                return False
        if len(blocks) != count:
            may_speak = self.tools == self.user and "trailing-text" not in demands.problems
            if not may_speak or not self._are_texts(blocks[count:]):
                return False
        if demands.used is not None:
            demands.use(ids)
        return True

    def _says_why(self, block: Any) -> bool:
        return self.kind(block) == RESULT and not self.is_empty_error(self.read_result(block))

    def _are_texts(self, blocks: Sequence[Any]) -> bool:
        """Return whether `blocks` are user texts, and perhaps system texts, that can be sent."""
        kind_field, kinds, text, system = self._of_texts
        said = False
        for block in blocks:
            fields = block.__dict__
            kind, words = fields[kind_field], fields[text]
            if words.__class__ is not str or not words.strip() or not (words.isascii() or is_sendable(words)):
                return False
            if kinds.get(kind) == TEXT:
                said = True
            elif kind != system:
                return False
        return said


def _is_plain_json(text: Any) -> bool:
    """Return whether `text` is the JSON of an object in which nothing has to be replaced."""
    try:
        return text.__class__ is str and decode_object(text) is not None
    except NO_OBJECT:
        return False


def with_fields(thing: Any, **fields: Any) -> Any:
    """Return a shallow copy of `thing` with `fields` set, without running its constructor, which may check or warn.

    >>> from argparse import Namespace
    >>> with_fields(Namespace(role="user", content="hi"), role="tool")
    Namespace(role='tool', content='hi')
    """
    twin: Any = object.__new__(cast("type[Any]", type(thing)))
    twin.__dict__.update(thing.__dict__, **fields)
    return twin
