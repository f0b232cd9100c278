"""Messages in commands and in the state are found and replaced, and nothing else is touched."""

from copy import deepcopy
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, ToolMessage
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from langgraph.types import Command

from suture import ConfigError
from suture.integrations.langchain.reduction import result_messages, state_update, with_messages
from tests.guests.langchain.recording import asks

LONG = ToolMessage("long", tool_call_id="a", id="t")
SHORT = ToolMessage("short", tool_call_id="a", id="t")
OTHER = HumanMessage("hi", id="h")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (LONG, SHORT),
        ([LONG, OTHER], [SHORT, OTHER]),
        (Command(update={"messages": [OTHER, LONG], "n": 1}), Command(update={"messages": [OTHER, SHORT], "n": 1})),
        (Command(update={"messages": LONG}), Command(update={"messages": SHORT})),
        (
            Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), LONG]}, goto="model"),
            Command(update={"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), SHORT]}, goto="model"),
        ),
        ([Command(update={"n": 1}), LONG], [Command(update={"n": 1}), SHORT]),
    ],
)
def test_messages_are_found_and_replaced_wherever_they_stand(given: Any, expected: Any):
    assert result_messages(given) == [LONG]
    assert with_messages(given, {id(LONG): SHORT}) == expected


@pytest.mark.parametrize(
    "given", [Command(update=None), Command(update={"n": 1}), Command(update=[("n", 1)]), "no message"]
)
def test_what_holds_no_message_is_the_very_object(given: Any):
    assert result_messages(given) == []
    assert with_messages(given, {id(LONG): SHORT}) is given


def rounds(*numbers: int, text: str = "long") -> list[Any]:
    found: list[Any] = [HumanMessage("go", id="h")]
    for number in numbers:
        turn = asks(f"c{number}").model_copy(update={"id": f"a{number}"})
        found += [turn, ToolMessage(f"{text} {number}", tool_call_id=f"c{number}", id=f"t{number}")]
    return found


def changed(messages: list[Any]) -> list[Any]:
    """Return messages as they are when all but the first were reduced."""
    return [messages[0], *[message.model_copy(update={"response_metadata": {"x": 1}}) for message in messages[1:]]]


def cells(before: list[Any], after: list[Any]) -> dict[int, list[Any]]:
    """Return what takes the places of messages, where message stands for message."""
    return {place: [new] for place, (old, new) in enumerate(zip(before, after, strict=True)) if new is not old}


def test_the_state_ends_as_what_was_sent():
    before = rounds(1, 2, 3)
    after = [*before[:1], *changed(before)[1:5], *before[5:]]
    reply = AIMessage("done", id="r")
    update: Any = state_update(before, cells(before, after), before)
    state: Any = add_messages([*before, reply], update)
    assert state == [*after, reply]


def test_a_round_that_the_state_holds_otherwise_stays_whole_and_the_others_are_replaced():
    before = rounds(1, 2)
    held = [*before[:2], before[2].model_copy(update={"content": "another's"}), *before[3:]]
    assert [message.id for message in state_update(before, cells(before, changed(before)), held)] == ["a2", "t2"]


class Array:
    """As arrays and tables do it: comparing two of them gives what is neither true nor false."""

    def __eq__(self, other: object) -> Any:
        return self

    def __bool__(self) -> bool:
        raise ValueError("the truth value of an array is ambiguous")

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def with_arrays() -> list[Any]:
    before = rounds(1, 2)
    return [*before[:2], before[2].model_copy(update={"artifact": Array()}), *before[3:]]


def test_a_round_that_cannot_be_compared_with_what_the_state_holds_stays_whole():
    before = with_arrays()
    assert [message.id for message in state_update(before, cells(before, changed(before)), deepcopy(before))] == [
        "a2",
        "t2",
    ]
    assert state_update(before, cells(before, changed(before)), before) == changed(before)[1:]


def test_messages_that_the_state_does_not_hold_are_not_added_to_it():
    before = rounds(1, 2)
    assert state_update(before, cells(before, changed(before)), before[:3]) == changed(before)[1:3]
    loose = [message.model_copy(update={"id": None}) for message in before]
    assert state_update(loose, cells(loose, changed(loose)), loose) == []
    assert state_update([{"role": "user"}], {0: [{"role": "user"}]}, before) == []


def test_fewer_messages_take_the_first_places_and_the_others_are_removed():
    before = rounds(1, 2)
    note = HumanMessage("the first round")
    update: Any = state_update(before, {1: [note], 2: []}, before)
    state: Any = add_messages([*before, AIMessage("done", id="r")], update)
    assert [message.content for message in state] == ["go", "the first round", "", "long 2", "done"]
    assert note.id is None


def test_more_messages_are_refused():
    before = rounds(1)
    with pytest.raises(ConfigError, match="gave 3 messages in the place of 2"):
        state_update(before, {1: [OTHER, OTHER, LONG], 2: []}, before)
