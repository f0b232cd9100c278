"""The judges of these tests: they take what is good, and see each thing that is bad."""

from collections.abc import Sequence
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage

from tests.guests.langchain.broken_histories import HISTORIES, TABLE, VALID, human, result, said
from tests.guests.langchain.judges import kinds, message_faults
from tests.guests.langchain.recording import asks
from tests.guests.strict_rules import (
    anthropic_faults,
    bedrock_faults,
    gemini_faults,
    openai_chat_faults,
    responses_faults,
)
from tests.histories import Step, write

GOOD: list[Sequence[BaseMessage]] = [
    [human(), said()],
    [SystemMessage("Be brief."), human(), asks("a", "b"), result("b", "2"), result("a", "1"), human()],
    [human(), asks("a"), result("a", "1"), asks("b"), result("b", "2")],
]
BAD: list[tuple[str, Sequence[BaseMessage]]] = [
    ("pairing", [human(), asks("a")]),
    ("pairing", [human(), asks("a"), human(), result("a", "1")]),
    ("pairing", [human(), asks("a", "b"), result("a", "1"), human()]),
    ("pairing", [human(), asks("a"), result("a", "1"), result("a", "1")]),
    ("pairing", [human(), asks("a"), result("a", "1"), result("b", "1")]),
    ("pairing", [human(), result("a", "1")]),
    ("pairing", [human(), AIMessage([{"type": "tool_use", "id": "a", "name": "pay", "input": {}}]), human()]),
    ("ids", [human(), asks(""), result("", "1")]),
    ("ids", [human(), asks("a"), result("a", "1"), asks("a"), result("a", "2")]),
    ("ids", [human(), asks("a", "a"), result("a", "1"), result("a", "2")]),
]


@pytest.mark.parametrize("messages", GOOD)
def test_a_good_history_has_no_faults(messages: Sequence[BaseMessage]):
    assert message_faults(messages, strict_ids=True) == []


@pytest.mark.parametrize(("kind", "messages"), BAD)
def test_a_bad_history_has_its_fault(kind: str, messages: Sequence[BaseMessage]):
    assert kinds(message_faults(messages)) == {kind}


@pytest.mark.parametrize("identity", ["a.b", "a|b", "i" * 41])
def test_an_id_that_one_provider_refuses_is_illegal(identity: str):
    messages = [human(), asks(identity), result(identity, "1")]
    assert message_faults(messages) == []
    assert message_faults(messages, strict_ids=True) == [f"ids: {identity!r} is illegal"]


def _assistant(*ids: Any, name: str = "pay", arguments: str = "{}") -> dict[str, Any]:
    calls = [{"id": each, "type": "function", "function": {"name": name, "arguments": arguments}} for each in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _tool(identity: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": identity, "content": "1"}


USER = {"role": "user", "content": "Pay."}


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        (set(), [USER, _assistant("a", "b"), _tool("b"), _tool("a"), USER]),
        (set(), [USER, _assistant("a"), _tool("a"), _assistant("a"), _tool("a")]),  # ids may repeat over turns there
        ({"pairing"}, [USER, _assistant("a"), USER, _tool("a")]),
        ({"pairing"}, [USER, _assistant("a")]),
        ({"pairing"}, [USER, _tool("a")]),
        ({"pairing"}, [USER, _assistant("a"), _tool("a"), _tool("a")]),
        ({"ids"}, [USER, _assistant(""), _tool("")]),
        ({"ids"}, [USER, _assistant("i" * 41), _tool("i" * 41)]),
        ({"ids"}, [USER, _assistant("a", "a"), _tool("a"), _tool("a")]),
        ({"form"}, [USER, _assistant("a", name=""), _tool("a")]),
        ({"form"}, [USER, _assistant("a", arguments="{"), _tool("a")]),
        ({"form"}, [USER, {"role": "assistant", "content": "", "tool_calls": []}]),
        ({"form"}, [USER, {"role": "assistant", "content": None}]),
    ],
)
def test_the_judge_of_chat_completions(kind: set[str], messages: list[dict[str, Any]]):
    assert kinds(openai_chat_faults(messages)) == kind


def _use(*ids: str, given: Any = None, name: str = "pay") -> dict[str, Any]:
    given = {} if given is None else given
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": each, "name": name, "input": given} for each in ids],
    }


def _answer(*ids: str, first: str = "", behind: str = "", **fields: Any) -> dict[str, Any]:
    blocks: list[dict[str, Any]] = [
        {"type": "tool_result", "tool_use_id": each, "content": "1", **fields} for each in ids
    ]
    before = [{"type": "text", "text": first}] if first else []
    return {"role": "user", "content": [*before, *blocks, *([{"type": "text", "text": behind}] if behind else [])]}


@pytest.mark.parametrize(
    ("kind", "messages"),
    [
        (set(), [USER, _use("a", "b"), _answer("b", "a", behind="Well?")]),
        (set(), [USER, _use("a", "b"), _answer("b"), _answer("a"), USER]),
        (set(), [USER, USER, {"role": "assistant", "content": "Yes."}]),
        (set(), [_use("a"), _answer("a")]),  # an assistant may be first there since 2024
        ({"pairing"}, [USER, _use("a"), USER, _answer("a")]),
        ({"pairing"}, [USER, _use("a"), _answer("a", first="Well?")]),
        ({"pairing"}, [USER, _use("a"), _answer("a", "a")]),
        ({"pairing"}, [USER, _use("a"), _answer("a", "b")]),
        ({"pairing"}, [USER, _use("a")]),
        ({"pairing"}, [_answer("a")]),
        ({"ids"}, [USER, _use("a"), _answer("a"), _use("a"), _answer("a")]),
        ({"ids"}, [USER, _use("a.b"), _answer("a.b")]),
        ({"form"}, [USER, _use("a", given="{"), _answer("a")]),
        ({"form"}, [USER, _use("a", name=""), _answer("a")]),
        ({"form"}, [USER, _use("a"), _answer("a", is_error=True, content="")]),
        ({"form"}, [{"role": "user", "content": ""}]),
        ({"form"}, [USER, {"role": "assistant", "content": []}]),
    ],
)
def test_the_judge_of_anthropic_messages(kind: set[str], messages: list[dict[str, Any]]):
    assert kinds(anthropic_faults(messages)) == kind


def test_text_behind_a_use_is_seen():
    turn = _use("a")
    turn["content"].append({"type": "text", "text": "I pay."})
    assert kinds(anthropic_faults([USER, turn, _answer("a")])) == {"form"}


def _item(kind: str, identity: Any) -> dict[str, Any]:
    return {"type": kind, "call_id": identity, "name": "pay", "arguments": "{}", "output": "1"}


@pytest.mark.parametrize(
    ("kind", "items"),
    [
        (set(), [USER, _item("function_call", "a"), USER, _item("function_call_output", "a")]),
        ({"pairing"}, [USER, _item("function_call", "a")]),
        ({"pairing"}, [_item("function_call_output", "a"), _item("function_call", "a")]),
        ({"ids"}, [*[_item("function_call", "a"), _item("function_call_output", "a")] * 2]),
        ({"ids"}, [_item("function_call", ""), _item("function_call_output", "")]),
    ],
)
def test_the_judge_of_responses_input(kind: set[str], items: list[dict[str, Any]]):
    assert kinds(responses_faults(items)) == kind


ASK: Step = ("user", "Pay.")


def _calls(*ids: str) -> Step:
    return ("turn", [(each, "pay", "{}") for each in ids])


def _gives(*ids: str) -> Step:
    return ("mixed", [(each, "pay", "1") for each in ids], "Well?")


@pytest.mark.parametrize(
    ("gemini", "bedrock", "steps"),
    [
        (set(), set(), [ASK, _calls("a", "b"), _gives("a", "b")]),
        (set(), {"form"}, [ASK, ASK, ("say", "Yes."), ASK]),
        (set(), {"ids"}, [ASK, _calls("a.b"), _gives("a.b")]),
        (set(), {"ids"}, [ASK, _calls("a"), _gives("a"), _calls("a"), _gives("a")]),
        ({"pairing"}, {"pairing"}, [ASK, _calls("a", "b"), _gives("a")]),
        ({"pairing"}, {"pairing"}, [ASK, _calls("a"), ASK, ("say", "Yes."), _gives("a")]),
        ({"pairing"}, {"pairing"}, [ASK, _calls("a"), _gives("a", "a")]),
        ({"pairing"}, {"pairing"}, [_gives("a")]),
        ({"pairing", "form"}, {"pairing"}, [ASK, _calls("a")]),
        ({"form"}, {"form"}, [_calls("a"), _gives("a")]),
        ({"form"}, {"form"}, [ASK, ("say", ""), ASK]),
    ],
)
def test_the_judges_of_gemini_and_bedrock(gemini: set[str], bedrock: set[str], steps: list[Step]):
    assert kinds(gemini_faults(write("gemini", steps))) == gemini
    assert kinds(bedrock_faults(write("bedrock", steps))) == bedrock


def test_the_histories_are_the_tables_39_of_which_34_are_broken_and_21_stay_so():
    counted = [each.table for each in TABLE]
    assert (len(TABLE), counted.count("valid"), counted.count("invalid")) == (39, 5, 21)
    assert len({each.id for each in HISTORIES}) == len(HISTORIES)


def test_only_the_valid_ones_are_valid_as_they_are():
    fine = [each.id for each in TABLE if not message_faults([*each.messages, HumanMessage("And now?")])]
    assert fine == [each.id for each in VALID]
