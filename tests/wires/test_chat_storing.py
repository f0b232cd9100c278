"""Messages come back from a journal as they were, or are refused."""

from types import MappingProxyType, SimpleNamespace
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.errors import InputError
from suture.messages import AgenticMessage, Message
from suture.wires import ChatWire
from tests.messages.test_round_trips import values_of
from tests.wires.chat import AGENTIC, CHAT, MESSAGE, json_values, on_each_wire


def stored(wire: ChatWire, message: Any) -> Any:
    return wire.load(msgspec.msgpack.decode(msgspec.msgpack.encode(wire.dump(message))))


@given(values_of(Message))
def test_any_message_comes_back_from_a_journal_as_it_was(message: Message):
    assert stored(MESSAGE, message) == message


@given(values_of(AgenticMessage))
def test_any_agentic_message_comes_back_from_a_journal_as_it_was(message: AgenticMessage):
    assert stored(AGENTIC, message) == message


@given(st.dictionaries(st.text(max_size=5), json_values, max_size=4))
def test_any_plain_dict_comes_back_from_a_journal_as_it_was(message: dict[str, Any]):
    assert CHAT.dump(message) is message
    assert stored(CHAT, message) == message


class Talker:
    """A class is no message, whatever its attributes."""

    role = "user"


def cyclic() -> dict[str, Any]:
    message: dict[str, Any] = {"role": "user"}
    message["content"] = [message]
    return message


def cyclic_object() -> Any:
    message = SimpleNamespace(role="user")
    message.content = [message, message]
    return message


def deep_object() -> Any:
    message = SimpleNamespace(role="user")
    for _ in range(10**4):
        message = SimpleNamespace(role="user", content=message)
    return message


@pytest.mark.parametrize(
    ("message", "reason"),
    [
        ({"role": "user", "content": b"a"}, "content: bytes is not a JSON value"),
        ({"role": "user", "content": float("nan")}, "content: nan is not a JSON number"),
        ({"role": "user", "content": "\ud800"}, "content: text with a lone surrogate"),
        ({"role": "user", 7: "a"}, "a key must be a string, not int"),
        ({"role": "user", "content": object()}, "content: object is not a JSON value"),
        ({"role": "user", "content": Talker}, "content: type is not a JSON value"),
        ({"role": "user", "content": {"a"}}, "content: set is not a JSON value"),
        (cyclic(), "content[0]: a value that contains itself"),
        (cyclic_object(), "content[0]: SimpleNamespace is not a JSON value"),
        (deep_object(), "nested too deeply"),
        (Message.user("a"), "a native message is among messages of another type (openai-chat)"),
    ],
)
def test_what_would_not_come_back_as_it_was_is_refused(message: Any, reason: str):
    with pytest.raises(InputError) as error:
        CHAT.dump(message)
    assert str(error.value) == reason


class Word(str):
    """A text of another class, as members of an enum are."""

    __slots__ = ()


def test_texts_of_other_classes_and_other_mappings_are_stored_as_plain_ones():
    dumped = CHAT.dump(MappingProxyType({"role": Word("user"), "content": ("a",)}))
    assert dumped == {"role": "user", "content": ["a"]}
    assert type(dumped["role"]) is str


@on_each_wire
@pytest.mark.parametrize("value", [None, 7, "a", ["a"]])
def test_what_is_no_stored_message_is_refused(wire: ChatWire, value: Any):
    with pytest.raises(InputError):
        wire.load(value)


def test_a_stored_message_of_the_other_native_type_is_refused():
    with pytest.raises(InputError, match="expected a Message, found AgenticMessage"):
        MESSAGE.load(AGENTIC.dump(AgenticMessage.user("a")))
    with pytest.raises(InputError, match="expected an AgenticMessage, found Message"):
        AGENTIC.load(MESSAGE.dump(Message.user("a")))
