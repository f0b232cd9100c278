"""The reference's own cases (1c, items 1 to 10) and the ones it lacks (P1 to P15), for both native messages.

Placeholders stand in call order and a call at the very end says *unknown*, on purpose.
"""

import time
from copy import deepcopy
from typing import Any

import pytest

import suture
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    MCPToolApprovalRequest,
    MCPToolCall,
    MCPToolResult,
    Message,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    ToolCall,
    ToolInfo,
    ToolSearchResult,
    UserInputImage,
    UserInputText,
)
from tests.shapes.notation import Step, call, flat, result, retold, says, system, turn, user
from tests.shapes.texts import Placeheld, answered, placeholder
from tests.shapes.wires import expect, read, render

BOTH = pytest.mark.parametrize("wire", ["message", "agentic"])
ASK = user("hello")
TWO = turn(call("call_1", "tool_a"), call("call_2", "tool_b"))
ONE = turn(call("call_1", "tool_a"))


def becomes(wire: str, given: list[Step], wanted: list[Step], **options: Any) -> suture.Repaired[Any]:
    fixed = suture.repair(render(wire, given).messages, wire=wire, **options)
    assert read(wire, fixed.messages) == expect(wire, wanted)
    assert suture.check(fixed.messages, wire=wire).acceptable
    return fixed


def stays(wire: str, given: list[Step], **options: Any) -> None:
    messages = render(wire, given).messages
    assert suture.repair(messages, wire=wire, **options).messages is messages


# --- 1c ---------------------------------------------------------------------------------------


@BOTH
def test_1_no_configuration_is_needed(wire: str):
    """1c.1: and the wire of native messages is recognised."""
    fixed = suture.repair(render(wire, [ASK, ONE, user("continued...")]).messages)
    assert fixed.report.wire == wire
    assert fixed.report.profile == "pairing"
    assert len(fixed.messages) == 4


def test_2_no_messages_are_no_messages():
    """1c.2: and the very same list."""
    for wire in ("message", "agentic", None):
        messages: list[Any] = []
        assert suture.repair(messages, wire=wire).messages is messages
        assert messages == []
        assert suture.check(messages, wire=wire).acceptable


@BOTH
def test_3_a_history_without_calls_is_unchanged(wire: str):
    """1c.3."""
    stays(wire, [ASK, says("hi")])


@BOTH
def test_4_a_missing_second_result_is_put_behind_the_first(wire: str):
    """1c.4, adapted: in call order, as the published example prints it."""
    becomes(
        wire,
        [ASK, TWO, result("call_1", "sunny")],
        [ASK, TWO, result("call_1", "sunny"), answered("unknown", "call_2", "tool_b")],
    )


@BOTH
def test_5_a_generator_writes_the_text(wire: str):
    """1c.5."""
    becomes(
        wire,
        [ASK, TWO, result("call_1", "sunny")],
        [ASK, TWO, result("call_1", "sunny"), result("call_2", "123 tool_b call_2", error=True)],
        generator=lambda name, id_: f"123 {name} {id_}",
    )


@BOTH
@pytest.mark.parametrize("following", [says("continued..."), user("continued...")], ids=["assistant", "user"])
def test_6_and_7_a_call_with_a_message_behind_it_is_answered_at_once(wire: str, following: Step):
    """1c.6, 1c.7."""
    fixed = becomes(wire, [ASK, ONE, following], [ASK, ONE, answered("interrupted", "call_1", "tool_a"), following])
    assert len(fixed.messages) == 4


def test_8_the_result_of_a_tool_search_is_a_result():
    """1c.8: nothing is added and the block keeps its type."""
    messages = [
        AgenticMessage.user("hello"),
        AgenticMessage.assistant([FunctionToolCall("call_1", "tool_search", "{}")]),
        AgenticMessage("user", (ToolSearchResult("call_1", "tool_search", (ToolInfo("found"),)),)),
    ]
    fixed = suture.repair(messages)
    assert fixed.messages is messages
    assert isinstance(fixed.messages[2].content_blocks[0], ToolSearchResult)


def test_8_a_late_result_of_a_tool_search_keeps_its_type_as_it_moves():
    """1c.8."""
    found = AgenticMessage("user", (ToolSearchResult("call_1", "tool_search", (ToolInfo("found"),)),))
    asked = AgenticMessage.assistant([FunctionToolCall("call_1", "tool_search", "{}")])
    fixed = suture.repair([asked, AgenticMessage.user("and?"), found])
    assert fixed.messages[1] == found


def test_9_a_block_that_nobody_knows_is_passed_over():
    """1c.9, adapted: a call block without a payload cannot be built here."""
    turn_ = AgenticMessage.assistant(
        [Opaque({"type": "hologram", "beam": 7}), FunctionToolCall("call_1", "tool_a", "{}")]
    )
    fixed = suture.repair([AgenticMessage.user("hello"), turn_])
    assert len(fixed.messages) == 3
    assert fixed.messages[1] is turn_
    block = fixed.messages[2].content_blocks[0]
    assert isinstance(block, FunctionToolResult)
    assert (block.call_id, block.name, block.is_error) == ("call_1", "tool_a", True)


def test_9_a_block_that_is_none_is_refused_with_its_place():
    """1c.9: never a crash."""
    with pytest.raises(suture.InputError):
        AgenticMessage("assistant", (None, FunctionToolCall("call_1", "tool_a")))  # pyright: ignore[reportArgumentType]


@BOTH
def test_10_an_empty_user_message_is_no_result(wire: str):
    """1c.10."""
    empty: Any = AgenticMessage("user", ()) if wire == "agentic" else Message.user("")
    messages = [*render(wire, [ASK, ONE]).messages, empty]
    fixed = suture.repair(messages, wire=wire)
    assert len(fixed.messages) == 4
    assert read(wire, fixed.messages[2:3]) == expect(wire, [answered("interrupted", "call_1", "tool_a")])
    assert fixed.messages[3] is empty


# --- P1 to P15 --------------------------------------------------------------------------------


@BOTH
def test_p1_an_error_of_the_generator_is_raised_and_the_input_untouched(wire: str):
    def fail(_name: str, _id: str) -> str:
        raise OSError("disk full")

    messages = render(wire, [ASK, TWO]).messages
    before = deepcopy(messages)
    with pytest.raises(OSError, match="disk full"):
        suture.repair(messages, wire=wire, generator=fail)
    assert messages == before


@BOTH
def test_p2_p3_a_second_pass_returns_the_same_list_and_no_message_is_copied(wire: str):
    messages = render(wire, [ASK, TWO, result("call_1", "1"), user("next")]).messages
    given = list(messages)
    fixed = suture.repair(messages, wire=wire)
    assert messages == given
    assert [fixed.messages[n] for n in (0, 1, 2, 4)] == given
    assert all(fixed.messages[n] is given[m] for n, m in ((0, 0), (1, 1), (2, 2), (4, 3)))
    assert suture.repair(fixed.messages, wire=wire).messages is fixed.messages


@BOTH
def test_p4_an_id_of_an_earlier_turn_answers_nothing_later(wire: str):
    becomes(
        wire,
        [ASK, ONE, result("call_1", "1"), ONE, user("next")],
        [ASK, ONE, result("call_1", "1"), ONE, answered("interrupted", "call_1", "tool_a"), user("next")],
    )


@BOTH
def test_p5_one_result_does_not_answer_two_calls_of_one_id(wire: str):
    double = turn(call("call_1", "tool_a"), call("call_1", "tool_a"))
    becomes(
        wire,
        [ASK, double, result("call_1", "1"), user("next")],
        [ASK, double, result("call_1", "1"), answered("interrupted", "call_1", "tool_a"), user("next")],
    )
    stays(wire, [ASK, double, result("call_1", "1"), result("call_1", "2"), user("next")])


@BOTH
@pytest.mark.parametrize("between", [user("and?"), says("hm"), system("note")], ids=["user", "assistant", "system"])
def test_p6_a_late_result_moves_home_and_is_not_answered_twice(wire: str, between: Step):
    becomes(wire, [ASK, ONE, between, result("call_1", "1")], [ASK, ONE, result("call_1", "1"), between])


@BOTH
def test_p7_an_orphan_is_kept_as_text_or_dropped(wire: str):
    given: list[Step] = [ASK, result("call_9", "data", "tool_z"), says("done")]
    becomes(wire, given, [ASK, retold("data"), says("done")])
    fixed = becomes(wire, given, [ASK, says("done")], orphans="drop")
    (lost,) = fixed.report.displaced
    assert (lost.index, lost.call_id, lost.name, lost.content, lost.length) == (
        1,
        "call_9",
        "tool_z",
        "data",
        4,
    )


@BOTH
def test_p8_p9_results_in_another_order_stay_unless_the_group_must_change(wire: str):
    stays(wire, [ASK, TWO, result("call_2", "2"), result("call_1", "1"), user("next")])
    becomes(
        wire,
        [ASK, TWO, result("call_2", "2"), user("and?"), result("call_1", "1")],
        [ASK, TWO, result("call_1", "1"), result("call_2", "2"), user("and?")],
    )


@BOTH
def test_p10_the_text_in_chinese(wire: str):
    becomes(
        wire,
        [ASK, ONE, user("next")],
        [ASK, ONE, answered("interrupted", "call_1", "tool_a", language="zh"), user("next")],
        language="zh",
    )


@BOTH
def test_p11_calls_without_ids_are_answered_by_name_then_by_place(wire: str):
    blank = turn(call("", "tool_a"), call("", "tool_b"))
    stays(wire, [ASK, blank, result("", "2", "tool_b"), result("", "1", "tool_a")])
    becomes(
        wire,
        [ASK, blank, result("", "2", "tool_b"), user("next")],
        [
            ASK,
            blank,
            result("", Placeheld("interrupted", "tool_a"), error=True),
            result("", "2"),
            user("next"),
        ],
    )


@BOTH
def test_a_result_under_another_name_is_still_that_of_its_id(wire: str):
    """F38: the name decides between calls of one id, not whether there is a call."""
    stays(wire, [ASK, ONE, result("call_1", "1", "tool_z"), user("next")])
    becomes(
        wire,
        [ASK, ONE, user("and?"), result("call_1", "1", "tool_z")],
        [ASK, ONE, result("call_1", "1"), user("and?")],
    )


@BOTH
def test_p12_a_message_that_is_none_is_refused_with_its_index(wire: str):
    messages = [*render(wire, [ASK, ONE]).messages, None]
    for named in (wire, None):
        with pytest.raises(suture.InputError) as refused:
            suture.repair(messages, wire=named)
        assert refused.value.index == 2


def test_p13_a_message_of_text_and_a_result_is_a_result():
    """What is foreign in it stands behind the group, unless it already does."""
    asked = render("agentic", [ASK, TWO]).messages
    words, first = UserInputText("by the way"), FunctionToolResult("call_1", "tool_a", (UserInputText("1"),))
    other = AgenticMessage.tool_result("call_2", "tool_b", "2")
    whole = [*asked, other, AgenticMessage("user", (first, words))]
    assert suture.repair(whole, wire="agentic").messages is whole

    for following in ([other], []):
        fixed = suture.repair(
            [*asked, AgenticMessage("user", (words, first)), *following, AgenticMessage.user("next")],
            wire="agentic",
        )
        second = (
            ("result", "call_2", "2")
            if following
            else ("failed", "call_2", placeholder("interrupted", "call_2", "tool_b"))
        )
        assert flat(read("agentic", fixed.messages))[3:] == [
            ("result", "call_1", "1"),
            second,
            ("text", "by the way"),
            ("text", "next"),
        ]
        assert suture.check(fixed.messages, wire="agentic").acceptable


@pytest.mark.parametrize(
    "blocks",
    [
        (ServerToolCall("srv_1", "web_search", arguments={"q": "x"}),),
        (ServerToolCall("srv_1", "web_search"), ServerToolResult("srv_1", "web_search", content=["a"])),
        (MCPToolCall("mcp_1", "echo", arguments="{}", server_label="s"),),
        (MCPToolCall("mcp_1", "echo"), MCPToolResult("mcp_1", "echo", content="a")),
        (MCPToolApprovalRequest(id="apr_1", name="echo", arguments="{}", server_label="s"),),
        (Reasoning("hm", "c2ln"), AssistantGenText("hi")),
    ],
    ids=["server call", "server pair", "mcp call", "mcp pair", "approval", "reasoning"],
)
def test_p14_blocks_of_the_providers_side_are_no_client_calls(blocks: tuple[Any, ...]):
    messages = [
        AgenticMessage.user("hello"),
        AgenticMessage("assistant", blocks),
        AgenticMessage.user("next"),
    ]
    assert suture.repair(messages).messages is messages

    turn_ = AgenticMessage("assistant", (*blocks, FunctionToolCall("call_1", "tool_a", "{}")))
    fixed = suture.repair([messages[0], turn_, messages[2]])
    assert fixed.messages[1] is turn_
    assert [each.call_id for each in fixed.report.findings] == ["call_1"]
    assert len(fixed.messages) == 4


@BOTH
def test_p15_a_thousand_parallel_calls_cost_a_thousand_times_one(wire: str):
    def seconds(count: int) -> float:
        calls = [call(f"call_{n}", "tool_a") for n in range(count)]
        answers = [result(f"call_{n}", str(n), "tool_a") for n in range(0, count, 2)]
        messages = render(wire, [ASK, turn(*calls), *reversed(answers), user("next")]).messages
        assert len(suture.repair(messages, wire=wire).messages) == count + 3
        best = float("inf")
        for _ in range(3):
            begun = time.process_time()
            suture.repair(messages, wire=wire)
            best = min(best, time.process_time() - begun)
        return best

    assert seconds(2000) < 40 * seconds(250)  # a square would be 64 times


@BOTH
def test_a_call_of_another_role_is_no_call(wire: str):
    """1b: tool calls on non-assistant roles are ignored or refused, never answered."""
    if wire == "message":
        make = lambda: Message("user", "hi", tool_calls=(ToolCall("call_1", "tool_a", "{}"),))  # noqa: E731
    else:
        make = lambda: AgenticMessage("user", (FunctionToolCall("call_1", "tool_a", "{}"),))  # noqa: E731
    try:
        messages = [make(), *render(wire, [says("done")]).messages]
        fixed = suture.repair(messages, wire=wire)
    except suture.InputError:
        return
    assert fixed.messages is messages


@BOTH
def test_a_results_parts_survive_the_move(wire: str):
    """A multimodal result is moved whole."""
    asked, between = render(wire, [ONE, user("and?")]).messages
    if wire == "message":
        from suture.messages import ImagePart, TextPart

        late: Any = Message.tool([TextPart("see"), ImagePart(url="https://example.com/a.png")], "call_1", "tool_a")
    else:
        late = AgenticMessage.tool_result(
            "call_1", "tool_a", [UserInputText("see"), UserInputImage(url="https://example.com/a.png")]
        )
    fixed = suture.repair([asked, between, late], wire=wire)
    assert fixed.messages[1] == late
