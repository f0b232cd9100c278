"""What a wire is: how one message type is seen, changed and made.

The engines touch messages through this interface only, so each of them is written once. Two methods
are hot: `skip`, where a wire has it, and `view`. Everything else runs only where something is wrong.

A wire never mutates what it is given, never recurses into what it does not know, and keeps unknown
fields and blocks as they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from suture.errors import InputError
from suture.language import Language
from suture.messages import Part
from suture.wires._arguments import is_object_text, sound_arguments
from suture.wires._contents import Form, apart, together
from suture.wires._fields import get, is_list
from suture.wires._kinds import MEDIA, OTHER, TEXT, THINKING
from suture.wires._parts import RawPart
from suture.wires._values import (
    GLANCE,
    NO_EXTRA,
    Call,
    CallEdit,
    Key,
    Piece,
    Record,
    Result,
    ResultEdit,
    View,
    key_of,
)
from suture.wires._words import Telling, Words

__all__ = ["GLANCE", "Call", "CallEdit", "Key", "Piece", "Record", "Result", "ResultEdit", "View", "Wire", "key_of"]


class Wire(ABC):
    """One message shape. Subclasses are stateless; there is one instance of each.

    `native`: its messages are Suture's own type. `marks`: something can be attached to its messages.
    `set_like`: a result may stand anywhere after its call.
    `bundled`: all results of a turn travel in one message. `text_arguments`: arguments are the text of a JSON
    object, not the object.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").name
    'openai-chat'
    """

    name: str
    native = False
    marks = False
    set_like = False
    bundled = False
    text_arguments = False
    form: Form
    """How the content of a result is written; of wires that are not native."""

    def scan(self, messages: Sequence[Any], start: int, stop: int) -> list[Record]:
        """Return a record for each of `messages[start:stop]` that carries calls or results."""
        records: list[Record] = []
        for index in range(start, stop):
            record = self.record(messages[index], index)
            if record is not None:
                records.append(record)
        return records

    def skip(self, messages: Sequence[Any], start: int) -> int:
        """Return how far, from `start` on, everything is in order at a glance (at most `GLANCE` messages further).

        In order at a glance: a message without calls and results; a turn followed by just its results, in call
        order. Whatever needs a second look ends the glance at its turn. The hot path of the wires that have it.
        """
        del messages
        return start

    def record(self, message: Any, index: int) -> Record | None:
        """Return the record of one message, or `None` where it carries neither calls nor results."""
        view = self.view(message, index)
        if not view.calls and not view.results:
            return None
        return (
            index,
            tuple([self.key(call) for call in view.calls]),
            tuple([self.key(result) for result in view.results]),
        )

    def key(self, thing: Call | Result) -> Key:
        """Return what a call and its result have in common on this wire."""
        return key_of(thing.id, thing.name)

    def first_reference(self, messages: Sequence[Any]) -> int:
        """Return where the list first refers to what the service keeps; a result behind it need be no orphan."""
        return len(messages)

    def made_by_model(self, message: Any, index: int | None = None) -> bool:
        """Tell whether the model wrote `message`: on most wires, whether it is an assistant's."""
        return self.view(message, index).role == "assistant"

    def arguments_ok(self, call: Call) -> bool:
        """Tell whether the arguments of `call` are an object, as every strict provider demands."""
        if self.text_arguments:
            return isinstance(call.arguments, str) and is_object_text(call.arguments)
        return isinstance(call.arguments, Mapping)

    def sound_arguments(self, call: Call) -> Any:
        """Return arguments that are an object: the call's own in the right form if they are one, else empty."""
        return sound_arguments(call.arguments, as_text=self.text_arguments)

    def can_answer(self, call: Call) -> bool:
        """Tell whether a placeholder can be made for `call` (a screenshot, say, cannot be)."""
        return True

    def is_loose(self, message: Any, results: int) -> bool:
        """Tell whether `message` holds anything beside its `results` results."""
        return False

    def answers(self, result: Result, call: Call) -> bool:
        """Tell whether a result of this form can answer a call of that form."""
        del result, call
        return True

    def raw_content(self, result: Result) -> Any:
        """Return what a result holds, as it stands in its message."""
        return result.content

    def has_id(self, call: Call) -> bool:
        """Tell whether a call of this form carries an id at all."""
        return True

    @abstractmethod
    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is of this wire: yes for certain, possibly (`None`), or no."""

    @abstractmethod
    def view(self, message: Any, index: int | None = None) -> View:
        """Return what the engines need to know of `message`; raise `InputError` where it is malformed."""

    @abstractmethod
    def result_text(self, result: Result) -> tuple[str, bool]:
        """Return the text of a result, and whether that is all of it."""

    @abstractmethod
    def edit(self, message: Any, calls: Mapping[int, CallEdit], results: Mapping[int, ResultEdit]) -> Any:
        """Return `message` with the calls and results at these positions changed."""

    @abstractmethod
    def carry(self, pieces: Sequence[Piece]) -> list[Any]:
        """Return the messages that carry these results, in this order."""

    @abstractmethod
    def rest(self, message: Any, texts: Mapping[int, str]) -> Any | None:
        """Return `message` without its results, those in `texts` kept as user text; `None` if nothing is left."""

    @abstractmethod
    def speak(self, role: str, text: str) -> Any:
        """Return a new message of `role` (user or assistant) that says `text`."""

    # What a message says, and what a result holds

    def words(self, message: Any) -> Words:
        """Return all that a model reads of `message`: role, reasoning, text, calls and results; and count its media."""
        view = self.view(message)
        telling = Telling(view.role)
        self.tell(message, telling)
        for call in view.calls:
            telling.say(call.name)
            telling.write(call.arguments)
        for result in view.results:
            parts = self.result_parts(result)
            if parts is None:
                self.tell_content(result.content, telling)
                continue
            for part in parts:
                if isinstance(part, RawPart):
                    self.tell_block(part.raw, telling)
                else:
                    telling.tell(part)
        return telling.words()

    @abstractmethod
    def tell(self, message: Any, telling: Telling) -> None:
        """Tell what `message` says beside its calls and results."""

    def tell_content(self, content: Any, telling: Telling) -> None:
        """Tell a text, or a list of blocks."""
        if is_list(content):
            for block in content:
                self.tell_block(block, telling)
        elif content is None or isinstance(content, str):
            telling.say(content)
        else:
            self.tell_block(content, telling)

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one block: its words, that it is a medium, or what it looks like."""
        kind = self.kind(block)
        if kind in {TEXT, THINKING}:
            telling.say(self.block_words(block))
        elif kind == MEDIA:
            telling.media += 1
        else:
            telling.show(block)

    def kind(self, block: Any) -> str:
        """Return what `block` is: call, result, text, thinking, media or other."""
        return OTHER

    def block_words(self, block: Any) -> Any:
        """Return the words of a block of text or thinking, whatever stands there."""
        return get(block, "text")

    def result_parts(self, result: Result) -> tuple[Part, ...] | None:
        """Return the content of a result as native parts in order; `None` where it could not be put together again.

        What is no text and not native is a `RawPart` with the user's own object in it.
        """
        return apart(self.form, result.content)

    def content_after(self, edit: ResultEdit, content: Any) -> Any:
        """Return what `edit` makes of the `content` of a result; `None` where it stays."""
        if edit.parts is not None:
            return together(self.form, edit.parts, content)
        return None if edit.text is None else self.form.alone(edit.text)

    def extra_of(self, message: Any) -> Mapping[str, Any]:
        """Return what is attached to `message`; nothing on a wire without marks."""
        return message.extra if self.native else NO_EXTRA

    def with_extra(self, message: Any, extra: Mapping[str, Any]) -> Any:
        """Return `message` with `extra` attached as well; itself on a wire without marks."""
        return replace(message, extra={**message.extra, **extra}) if self.native and extra else message

    # What only some wires have; profiles ask for it only on those.

    def lift_media(self, message: Any, language: Language) -> tuple[Any, Sequence[Any]]:
        """Return `message` with the media in its results replaced by a note, and those media."""
        del language
        return message, ()

    def show_media(self, media: Sequence[Any]) -> Any:
        """Return a user message that shows `media`."""
        raise NotImplementedError

    def fill(self, message: Any, field: str) -> Any:
        """Return `message` with the missing text `field` present and empty; the same if it has it."""
        del field
        return message

    def tidy(self, message: Any) -> Any:
        """Return `message` without fields that are present but empty where they may not be."""
        return message

    def lacks_content(self, result: Result) -> bool:
        """Tell whether a result has no content where one is required."""
        del result
        return False

    def is_empty_error(self, result: Result) -> bool:
        """Tell whether a result reports an error and says nothing of it."""
        if not result.failed:
            return False
        text, complete = self.result_text(result)
        return complete and not text.strip()

    def item_id(self, message: Any) -> str:
        """Return the id that the service gave the item itself, not the call in it."""
        del message
        return ""

    def without_item_id(self, message: Any) -> Any:
        """Return the item as one that the service has not stored."""
        return message

    def wants_follower(self, message: Any) -> bool:
        """Tell whether the item must be followed by the one it produced."""
        del message
        return False

    def can_follow(self, message: Any) -> bool:
        """Tell whether an item that wants a follower can have this one."""
        del message
        return True

    def fault(self, index: int | None, path: str, reason: str) -> InputError:
        """Return the error for `message` number `index`."""
        return InputError(f"{reason} ({self.name})", index=index, path=path)
