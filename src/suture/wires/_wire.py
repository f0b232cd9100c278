"""What a wire is: how one message type is seen, changed and made.

The engines touch messages through this interface only, so each of them is written once. Two methods
are hot: `skip`, where a wire has it, and `view`. Everything else runs only where something is wrong.

A wire never mutates what it is given, never recurses into what it does not know, and keeps unknown
fields and blocks as they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from suture.errors import InputError
from suture.language import Language
from suture.wires._arguments import is_object_text, sound_arguments

__all__ = ["GLANCE", "Call", "CallEdit", "Key", "Piece", "Record", "Result", "ResultEdit", "View", "Wire", "key_of"]

Key = Any
"""What a call and its result have in common: the id; a pair where the id alone would not do."""

GLANCE = 4096
"""How many messages a wire looks at in one `skip`."""

Record = tuple[int, tuple[Key, ...], tuple[Key, ...]]
"""(index, keys of the calls, keys of the results) of a message that carries any."""


class Call(NamedTuple):
    """One tool call as a message carries it; an absent id or name is the empty string.

    >>> Call("call_1", "search", '{"q": "x"}').name
    'search'
    """

    id: str
    name: str
    arguments: Any = None
    kind: str = ""
    alias: str = ""
    """Another id that a result may mean it by."""


class Result(NamedTuple):
    """One tool result as a message carries it.

    >>> Result("call_1", "", "42").content
    '42'
    """

    id: str
    name: str
    content: Any = None
    kind: str = ""
    marked: bool = False
    failed: bool = False


class View(NamedTuple):
    """What the engines need to know of one message.

    `role` is one of system, user, assistant, tool. `signed`: it holds signed or encrypted content, so
    only ids may change. `empty`: it carries nothing a provider could use. `loose`: it carries something
    beside its results, so it cannot be taken apart without remainder.

    >>> View("user").calls
    ()
    """

    role: str
    calls: tuple[Call, ...] = ()
    results: tuple[Result, ...] = ()
    signed: bool = False
    empty: bool = False
    loose: bool = False


class CallEdit(NamedTuple):
    """What is to change in one call; `None` leaves a field as it is.

    >>> CallEdit(id="a").name is None
    True
    """

    id: str | None = None
    name: str | None = None
    arguments: Any = None


class ResultEdit(NamedTuple):
    """What is to change in one result; `None` leaves a field as it is.

    >>> ResultEdit(text="(no output)").id is None
    True
    """

    id: str | None = None
    name: str | None = None
    text: str | None = None


class Piece(NamedTuple):
    """One result on its way to its call: real (`message`, `position`) or to be made (`call`, `text`).

    >>> Piece(call=Call("a", "f"), text="…").message is None
    True
    """

    message: Any = None
    position: int = 0
    call: Call | None = None
    text: str = ""
    cause: str = ""


def key_of(id: str, name: str) -> Key:  # noqa: A002 - the domain's word
    """Return what pairs a call with its result; without an id that is the name.

    >>> key_of("a", "f"), key_of("", "f")
    ('a', ('', 'f'))
    """
    return id or ("", name)


class Wire(ABC):
    """One message shape. Subclasses are stateless; there is one instance of each.

    `native`: its messages are Suture's own type. `set_like`: a result may stand anywhere after its call.
    `bundled`: all results of a turn travel in one message. `text_arguments`: arguments are the text of a JSON
    object, not the object.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").name
    'openai-chat'
    """

    name: str
    native = False
    set_like = False
    bundled = False
    text_arguments = False

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
