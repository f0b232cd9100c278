"""What the wire sees in the framework's messages, and what it makes of them."""

from typing import Any

import pytest
from agent_framework import Content, Message

import suture
from suture.errors import InputError
from suture.messages import TextPart
from suture.wires import MARK, RawPart, ResultEdit, get_wire
from tests.guests.agent_framework.talking import call, flat, result

WIRE: Any = get_wire("agent-framework")
PIXEL = Content.from_uri("data:image/png;base64,iVBORw0KGgo=", media_type="image/png")


def repaired(*messages: Message, **settings: Any) -> list[Message]:
    return list(suture.repair(list(messages), **settings).messages)


# What is a call, and what is not


def test_a_role_that_a_program_makes_up_counts_as_a_users():
    history = [Message("critic", ["Hm."]), Message("assistant", [call("a")]), Message("critic", ["Stop."])]
    mended = repaired(*history, profile="gemini")
    assert [mended[0], mended[1], mended[3]] == history
    assert [content.call_id for content in mended[2].contents] == ["a"]


def test_a_call_and_its_result_are_seen():
    turn = Message("assistant", ["Let me see.", call("a", "tides", {"port": "Dover"})])
    view = WIRE.view(turn)
    assert [(each.id, each.name, each.arguments) for each in view.calls] == [("a", "tides", {"port": "Dover"})]
    answer = WIRE.view(Message("tool", [result("a"), result("b", exception="ValueError")]))
    assert [(each.id, each.failed, WIRE.result_text(each)) for each in answer.results] == [
        ("a", False, ("06:12", True)),
        ("b", True, ("06:12", True)),
    ]


def test_a_call_in_a_users_message_is_none():
    assert WIRE.view(Message("user", [call("a")])).calls == ()
    mended = repaired(Message("user", [call("a")]), Message("tool", [result("a")]))
    assert [atom[0] for atom in flat(mended)] == ["call", "text"]


def test_a_result_beside_a_call_in_a_tool_message_is_one():
    history = [Message("assistant", [call("a")]), Message("tool", [call("a"), result("a")])]
    assert [each.id for each in WIRE.view(history[1]).results] == ["a"]
    assert suture.repair(history).messages is history


def test_a_lone_result_with_another_id_belongs_to_the_lone_call_before_it():
    mended = repaired(Message("assistant", [call("a")]), Message("tool", [result("b")]), Message("user", ["Hm."]))
    assert [(message.role, message.contents[0].call_id) for message in mended] == [
        ("assistant", "a"),
        ("tool", "a"),
        ("user", None),
    ]
    assert mended[1].contents[0].result == "06:12"


def test_a_result_with_another_id_is_none_of_two_calls():
    both = Message("assistant", [call("a"), call("b")])
    mended = repaired(both, Message("tool", [result("c")]), Message("user", ["Hm."]))
    assert [(message.role, message.contents[0].call_id) for message in mended] == [
        ("assistant", "a"),
        ("tool", "a"),
        ("user", None),
        ("user", None),
    ]


@pytest.mark.parametrize("absent", ["", None])
def test_a_result_without_an_id_gets_that_of_its_call(absent: Any):
    turn, answer = Message("assistant", [call("a")]), Message("tool", [result(absent)])
    assert [atom[:2] for atom in flat(repaired(turn, answer, profile="anthropic"))] == [("call", "a"), ("result", "a")]


HOSTED: dict[str, list[Content]] = {
    "MCP": [Content.from_mcp_server_tool_call("h", "search"), Content.from_mcp_server_tool_result("h", output="42")],
    "search": [Content("search_tool_call", call_id="h"), Content("search_tool_result", call_id="h")],
    "a shell": [Content.from_shell_tool_call(call_id="h", commands=["ls"])],
    "code": [Content.from_code_interpreter_tool_call(call_id="h")],
    "an approval of a service's own": [
        Content.from_function_approval_request("r", call("h", "search", hosted=True)),
    ],
    "a call that the service runs": [call("h", "search", hosted=True)],
    "with its result": [
        call("h", "search", hosted=True, informational_only=True),
        result("h"),
        Content.from_text("So."),
    ],
    "a result beside its call": [Content.from_text("Well."), call("h"), result("h"), Content.from_text("So.")],
}


@pytest.mark.parametrize("contents", HOSTED.values(), ids=HOSTED)
def test_what_the_service_runs_is_left_as_it_is(contents: list[Content]):
    history = [Message("user", ["Hi."]), Message("assistant", contents), Message("user", ["Go on."])]
    for profile in ("anthropic", "openai-responses", "gemini"):
        assert suture.repair(history, profile=profile).messages is history


def test_beside_it_a_call_of_the_programs_is_answered():
    turn = Message("assistant", [call("h", hosted=True), result("h"), call("a"), call("x", hosted=True)])
    mended = repaired(turn, Message("user", ["Stop."]))
    assert mended[0] is turn
    assert [atom[:2] for atom in flat(mended)[4:]] == [("result", "a"), ("text", "user")]


def test_beside_it_a_call_of_the_programs_that_is_answered_is_left_as_it_is():
    turn = Message("assistant", [call("h"), result("h"), call("a")])
    history = [Message("user", ["Hi."]), turn, Message("tool", [result("a")])]
    assert suture.repair(history, profile="anthropic").messages is history


def test_what_the_service_ran_stays_in_a_message_that_must_change():
    turn = Message("assistant", [call("h", hosted=True), result("h"), call("a.b")])
    mended = repaired(turn, Message("tool", [result("a.b")]), profile="anthropic")
    assert mended[0].contents[:2] == turn.contents[:2]
    assert [content.type for content in mended[0].contents] == ["function_call", "function_result", "function_call"]
    assert mended[0].contents[2].call_id == mended[1].contents[0].call_id != "a.b"


def test_a_result_beside_two_calls_of_its_id_is_the_first_ones():
    turn = Message("assistant", [call("h", "first"), call("h", "second"), result("h")])
    assert [each.name for each in WIRE.view(turn).calls] == ["second"]


def test_a_result_of_the_services_in_a_message_of_its_own_is_no_orphan():
    history = [
        Message("assistant", [call("h", hosted=True)]),
        Message("tool", [result("h")]),
        Message("user", ["Go on."]),
    ]
    assert suture.repair(history).messages is history


def test_a_call_that_is_only_told_of_is_answered_where_nobody_did():
    """Clients send it like any other."""
    mended = repaired(Message("assistant", [call("a", informational_only=True)]), Message("user", ["Go on."]))
    assert [atom[0] for atom in flat(mended)] == ["call", "result", "text"]


def test_approvals_stay_in_their_messages():
    request = Content.from_function_approval_request("r", call("a"))
    response = Content.from_function_approval_response(approved=True, id="r", function_call=call("a"))
    history = [Message("assistant", [call("b"), request]), Message("user", [response, "Go on."])]
    mended = repaired(*history)
    assert mended[0] is history[0]
    assert [content.call_id for content in mended[1].contents] == ["b"]
    assert mended[2] is history[1]


# Messages that are made


def test_the_results_of_a_turn_come_in_one_tool_message():
    """It keeps what else the first of theirs holds, in the order of the calls."""
    first, second = Message("tool", [result("b")]), Message("tool", [result("a")], message_id="m1")
    turn = Message("assistant", [call("a"), call("b"), call("c")])
    mended = repaired(turn, first, Message("user", ["Hm."]), second)
    assert [message.role for message in mended] == ["assistant", "tool", "user"]
    assert [content.call_id for content in mended[1].contents] == ["a", "b", "c"]
    assert mended[1].contents[1] is first.contents[0]
    assert mended[1].message_id == "m1"


def test_a_whole_tool_message_that_moves_stays_the_same_object():
    turn, late = Message("assistant", [call("a")]), Message("tool", [result("a")], additional_properties={"mine": 1})
    mended = repaired(turn, Message("user", ["Hm."]), late)
    assert mended[1] is late


def test_an_orphan_is_told_by_the_user():
    mixed = Message("tool", [result("ghost"), Content.from_text("beside it")], message_id="m1")
    (mended,) = repaired(mixed)
    assert (mended.role, mended.message_id) == ("user", "m1")
    assert [content.type for content in mended.contents] == ["text", "text"]
    assert "06:12" in mended.text
    assert mixed.role == "tool"


def test_a_placeholder_is_marked_and_known_again():
    turn = Message("assistant", [call("a")])
    (_, placeholder) = repaired(turn)
    (content,) = placeholder.contents
    assert content.additional_properties == {MARK: "unknown"}
    assert (content.exception, placeholder.role) == ("unknown", "tool")
    assert WIRE.view(placeholder).results[0].marked
    real = Message("tool", [result("a")])
    assert repaired(turn, placeholder, Message("user", ["Hm."]), real)[1] is real


def test_arguments_are_an_object_in_the_end():
    turns = [call("a", arguments=given) for given in ({"x": 1}, '{"x": 1}', '{"x": ', None, "", "[]")]
    messages = [Message(role, [c]) for each in turns for role, c in (("assistant", each), ("tool", result("a")))]
    mended = repaired(*messages, profile="openai-chat")
    arguments = [each.contents[0].arguments for each in mended if each.role == "assistant"]
    assert arguments == [{"x": 1}, '{"x": 1}', "{}", "{}", "{}", "{}"]
    assert [mended[0], mended[2]] == [messages[0], messages[2]]


def test_half_a_surrogate_pair_in_the_text_of_arguments_is_replaced():
    turn = Message("assistant", [call("a", arguments='{"q": "caf\\ud83d"}')])
    mended = repaired(Message("user", ["hi"]), turn, Message("tool", [result("a")]), profile="openai-chat")
    assert mended[1].contents[0].arguments == '{"q": "caf\\ufffd"}'


def test_signed_reasoning_keeps_its_message_but_for_ids():
    thought = Content.from_text_reasoning(text="hm", protected_data="sealed")
    turn = Message("assistant", [thought, call("a.b", arguments='{"x": ')])
    mended = repaired(turn, profile="anthropic")
    assert mended[0].contents[0] is thought
    assert str(mended[0].contents[1].call_id).startswith("toolu_")
    assert mended[0].contents[1].arguments == '{"x": '


# What a result holds


def test_the_parts_of_a_result_are_its_items():
    answer = Message("tool", [result("a", [Content.from_text("see"), PIXEL])])
    (seen,) = WIRE.view(answer).results
    text, picture = WIRE.result_parts(seen)
    assert (text, picture.raw) == (TextPart("see"), PIXEL)
    assert WIRE.result_text(seen) == ("see", False)


def test_a_result_can_be_rewritten():
    answer = Message("tool", [result("a", [Content.from_text("see"), PIXEL])])
    edit = ResultEdit(parts=[TextPart("gone"), RawPart(PIXEL)], extra={"ours": 1})
    (content,) = WIRE.edit(answer, {}, {0: edit}).contents
    assert [each.type for each in content.items] == ["text", "data"]
    assert (content.items[0].text, content.result) == ("gone", "gone")
    assert content.items[1] is PIXEL
    assert content.additional_properties == {"ours": 1}
    (short,) = WIRE.edit(answer, {}, {0: ResultEdit(text="gone")}).contents
    assert ([each.text for each in short.items], short.result) == (["gone"], "gone")
    assert answer.contents[0].result == "see"


def test_a_result_without_items_is_read_too():
    bare = [Content("function_result", call_id="a", result=held) for held in ("06:12", {"high": "06:12"}, None)]
    texts = [WIRE.result_text(WIRE.read_result(each)) for each in bare]
    assert texts == [("06:12", True), ('{"high":"06:12"}', True), ("", True)]
    parts = [WIRE.result_parts(WIRE.read_result(each)) for each in bare]
    assert parts == [(TextPart("06:12"),), (TextPart('{"high":"06:12"}'),), ()]


def test_something_can_be_attached_to_a_message():
    message = Message("user", ["Hi."], additional_properties={"mine": 1})
    marked = WIRE.with_extra(message, {"ours": 2})
    assert WIRE.extra_of(marked) == {"mine": 1, "ours": 2}
    assert WIRE.extra_of(message) == {"mine": 1}
    assert WIRE.with_extra(message, {}) is message


# What a model reads


def test_the_words_of_a_message_are_all_that_a_model_reads():
    turn = Message("assistant", [Content.from_text_reasoning(text="hm"), "Let me see.", call("a", "tides", {"x": 1})])
    assert WIRE.words(turn).texts == ("assistant", "hm", "Let me see.", "tides", '{"x":1}')
    assert WIRE.words(Message("user", ["Look.", PIXEL])) == (("user", "Look."), 1)
    told = WIRE.words(Message("assistant", [call("h", "search", hosted=True), result("h", "42")])).texts
    assert "search" in str(told)
    assert "42" in str(told)
    assert "null" not in str(told)


# What it does not take


def test_what_is_no_message_is_refused():
    with pytest.raises(InputError, match="message 1: expected a Message, found dict"):
        suture.repair([Message("user", ["Hi."]), {"role": "user", "content": "hi"}])
    turn = Message("assistant", [call("a")])
    for contents in (["Hi."], None, "Hi.", {"type": "text"}):
        odd: Any = Message("tool", [])
        odd.contents = contents
        for history in ([odd], [odd, turn], [turn, odd]):
            with pytest.raises(InputError, match=r"message \d, contents: expected a list of contents"):
                suture.repair(history)
    with pytest.raises(InputError, match="message 0, call_id: expected a string, found int"):
        suture.repair([Message("assistant", [call(7)])])  # pyright: ignore[reportArgumentType] - what is tested
