"""What the Responses API demands: calls of many types, each with its own output, and reasoning in pairs."""

from typing import Any

import pytest

import suture
from tests.shapes.holding import found, left_alone, mended, unmendable
from tests.shapes.texts import placeholder

WIRE = "openai-responses"
GO = {"role": "user", "content": "go"}
NEXT = {"role": "user", "content": "next"}
INTERRUPTED = "was canceled - another message came in before it could be completed."


def call(id_: Any = "c1", name: str = "search", arguments: Any = "{}", **more: Any) -> dict[str, Any]:
    return {"type": "function_call", "call_id": id_, "name": name, "arguments": arguments, **more}


def output(id_: Any = "c1", content: Any = "1", **more: Any) -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id_, "output": content, **more}


def says(text: str, id_: str = "") -> dict[str, Any]:
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "role": "assistant", "status": "completed", "content": [part]}
    return {**item, "id": id_} if id_ else item


def reasoning(id_: str = "rs_1", **more: Any) -> dict[str, Any]:
    return {"type": "reasoning", "id": id_, "summary": [], **more}


# --- each call type has its own output type ---------------------------------------------------

CUSTOM = {"type": "custom_tool_call", "call_id": "c1", "name": "shell", "input": "ls"}
LOCAL_SHELL = {
    "type": "local_shell_call",
    "id": "lsh_1",
    "call_id": "c1",
    "action": {"type": "exec", "command": ["ls"], "env": {}},
    "status": "completed",
}
PATCH = {
    "type": "apply_patch_call",
    "call_id": "c1",
    "operation": {"type": "delete_file", "path": "a.txt"},
    "status": "completed",
}
SHELL = {"type": "shell_call", "call_id": "c1", "action": {"commands": ["ls"]}, "status": "completed"}
APPROVAL = {
    "type": "mcp_approval_request",
    "id": "mcpr_1",
    "name": "send",
    "server_label": "mail",
    "arguments": "{}",
}
COMPUTER = {
    "type": "computer_call",
    "id": "cu_1",
    "call_id": "c1",
    "action": {"type": "screenshot"},
    "pending_safety_checks": [],
    "status": "completed",
}
SCREEN = {"type": "computer_screenshot", "image_url": "data:image/png;base64,AAAA"}
SHELL_OUTPUT = [{"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}]

PAIRS = {
    "custom_tool_call": (CUSTOM, {"type": "custom_tool_call_output", "call_id": "c1", "output": "a"}),
    "local_shell_call": (LOCAL_SHELL, {"type": "local_shell_call_output", "id": "c1", "output": "a"}),
    "apply_patch_call": (PATCH, {"type": "apply_patch_call_output", "call_id": "c1", "status": "completed"}),
    "shell_call": (SHELL, {"type": "shell_call_output", "call_id": "c1", "output": SHELL_OUTPUT}),
    "mcp_approval_request": (
        APPROVAL,
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True},
    ),
    "computer_call": (COMPUTER, {"type": "computer_call_output", "call_id": "c1", "output": SCREEN}),
}


@pytest.mark.parametrize("kind", PAIRS)
def test_a_call_with_an_output_of_its_own_type_is_whole(kind: str):
    """See OmniRoute#9667."""
    asked, given = PAIRS[kind]
    left_alone([GO, asked, given, says("done"), NEXT], WIRE)
    left_alone([GO, asked, NEXT, given, says("done")], WIRE)


ANSWERS = {
    "custom_tool_call": (
        CUSTOM,
        {
            "type": "custom_tool_call_output",
            "call_id": "c1",
            "output": f"Tool call shell with id c1 {INTERRUPTED}",
        },
    ),
    "local_shell_call": (
        LOCAL_SHELL,
        {
            "type": "local_shell_call_output",
            "id": "c1",
            "output": f"Tool call local_shell with id c1 {INTERRUPTED}",
        },
    ),
    "apply_patch_call": (
        PATCH,
        {
            "type": "apply_patch_call_output",
            "call_id": "c1",
            "status": "failed",
            "output": f"Tool call apply_patch with id c1 {INTERRUPTED}",
        },
    ),
    "mcp_approval_request": (
        APPROVAL,
        {
            "type": "mcp_approval_response",
            "approval_request_id": "mcpr_1",
            "approve": False,
            "reason": f"Tool call send with id mcpr_1 {INTERRUPTED}",
        },
    ),
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_a_call_without_an_output_is_answered_in_its_own_type(kind: str):
    """And an approval that nobody gave is refused."""
    asked, answer = ANSWERS[kind]
    fixed = mended([GO, asked, NEXT], WIRE)
    assert fixed.messages == [GO, asked, answer, NEXT]
    assert found(fixed) == [("dangling", 1)]


def test_a_shell_call_without_an_output_is_answered_as_failed():
    fixed = mended([GO, SHELL, NEXT], WIRE)
    answer = fixed.messages[2]
    (part,) = answer["output"]
    assert (answer["type"], answer["call_id"]) == ("shell_call_output", "c1")
    assert f"Tool call shell with id c1 {INTERRUPTED}" in {part["stdout"], part["stderr"]}
    assert part["outcome"] != {"type": "exit", "exit_code": 0}


def test_a_computer_call_cannot_be_answered_without_a_screen():
    history = [GO, COMPUTER, NEXT]
    fixed = unmendable(history, WIRE, "dangling")
    assert fixed.unresolved[0].index == 1
    assert fixed.unresolved[0].call_id == "c1"


def test_a_history_that_cannot_be_helped_comes_back_as_the_same_list():
    """A history that nothing changes in is not changed."""
    history = [GO, COMPUTER, NEXT]
    fixed = suture.repair(history, wire=WIRE)
    assert fixed.messages is history
    assert not fixed.changed


def test_what_cannot_be_answered_does_not_keep_the_rest_from_being_mended():
    fixed = suture.repair([GO, COMPUTER, call("c2"), NEXT], wire=WIRE)
    assert [item.get("type") for item in fixed.messages] == [
        None,
        "computer_call",
        "function_call",
        "function_call_output",
        None,
    ]
    assert [(each.problem, each.call_id) for each in fixed.unresolved] == [("dangling", "c1")]


@pytest.mark.parametrize(
    ("asked", "given"),
    [(CUSTOM, output("c1", "precious")), (call(), {**PAIRS["custom_tool_call"][1], "output": "precious"})],
    ids=["function output for a custom call", "custom output for a function call"],
)
def test_an_output_of_another_type_is_nobodys(asked: dict[str, Any], given: dict[str, Any]):
    """Each call type pairs with its own output type."""
    fixed = mended([GO, asked, given, NEXT], WIRE)
    assert fixed.messages[2]["type"] == asked["type"] + "_output"
    assert fixed.messages[3]["role"] == "user"
    assert "precious" in str(fixed.messages[3]["content"])
    assert found(fixed) == [("dangling", 1), ("orphan", 2)]


def test_an_output_that_names_the_item_instead_of_the_call_is_that_calls():
    """Map id aliases (rig#1588); the result is there, and must not be told to be missing."""
    fixed = mended([GO, call("call_1", id="fc_1"), output("fc_1", "42"), says("done")], WIRE)
    assert fixed.messages[2] == output("call_1", "42")
    assert found(fixed) == [("wrong-id", 2)]
    assert fixed.report.findings[0].done.endswith("'call_1'; it had 'fc_1'")


def test_a_named_output_without_a_call_id_is_an_event_from_outside():
    """Nobody may repair those (codex#39782)."""
    left_alone([GO, {"type": "function_call_output", "name": "search", "output": "42"}, NEXT], WIRE)


@pytest.mark.parametrize(
    "item",
    [
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "x"},
        },
        {"type": "file_search_call", "id": "fs_1", "status": "completed", "queries": ["x"], "results": None},
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "status": "completed",
            "code": "1",
            "container_id": "c",
            "outputs": [],
        },
        {"type": "image_generation_call", "id": "ig_1", "status": "completed", "result": "AAAA"},
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "name": "f",
            "server_label": "s",
            "arguments": "{}",
            "output": "x",
        },
        {"type": "mcp_list_tools", "id": "mcpl_1", "server_label": "s", "tools": []},
        {"type": "item_reference", "id": "msg_9"},
        {"type": "compaction", "encrypted_content": "AAAA"},
        {"type": "hologram", "beam": 7},
    ],
    ids=lambda item: item["type"],
)
def test_server_side_tools_and_unknown_items_are_left_alone(item: dict[str, Any]):
    left_alone([GO, item, says("done"), NEXT], WIRE)


# --- set-like ---------------------------------------------------------------------------------


def test_outputs_may_stand_anywhere_after_their_calls():
    left_alone([GO, call("a"), NEXT, call("b"), NEXT, output("b"), says("hm"), output("a")], WIRE)


def test_outputs_stand_right_behind_their_turn_for_deepseek():
    """On a strict clone of the wire."""
    fixed = mended([GO, call("a"), NEXT, output("a"), says("done")], WIRE, profile="deepseek")
    assert fixed.messages == [GO, call("a"), output("a"), NEXT, says("done")]


def test_calls_of_one_turn_stand_together_for_deepseek():
    """Recorded: `assistant msg, call a, assistant msg, call b, output a, output b` is refused."""
    history = [GO, says("one", "msg_1"), call("a"), says("two", "msg_2"), call("b"), output("a"), output("b")]
    fixed = mended(history, WIRE, profile="deepseek")
    assert fixed.messages == [
        GO,
        says("one", "msg_1"),
        says("two", "msg_2"),
        call("a"),
        call("b"),
        output("a"),
        output("b"),
    ]
    left_alone(history, WIRE)


# --- reasoning --------------------------------------------------------------------------------


@pytest.mark.parametrize("follower", [call("c1", id="fc_1"), says("done", "msg_1"), CUSTOM])
def test_reasoning_with_its_follower_is_whole(follower: dict[str, Any]):
    answers = {"function_call": [output()], "custom_tool_call": [PAIRS["custom_tool_call"][1]]}
    left_alone([GO, reasoning(), follower, *answers.get(follower["type"], [])], WIRE)


def test_a_call_with_its_reasoning_is_answered_and_the_pair_is_the_same_objects():
    thought, asked = reasoning(encrypted_content="AAAA"), call("c1", id="fc_1")
    fixed = mended([GO, thought, asked, NEXT], WIRE)
    assert fixed.messages[1] is thought
    assert fixed.messages[2] is asked
    assert fixed.messages[3] == output("c1", placeholder("interrupted", "c1"))


def test_a_result_between_reasoning_and_its_call_moves_behind_the_pair():
    """Reasoning and its follower are one unit."""
    fixed = mended([GO, reasoning(), output(), call("c1", id="fc_1")], WIRE)
    assert fixed.messages == [GO, reasoning(), call("c1", id="fc_1"), output()]


def test_a_placeholder_never_stands_between_reasoning_and_its_follower():
    history = [GO, call("a", id="fc_1"), reasoning("rs_2"), call("b", id="fc_2"), output("b"), says("done")]
    fixed = mended(history, WIRE)
    assert fixed.messages[1:4] == history[1:4]
    assert fixed.messages[4:6] == [output("a", placeholder("unknown", "a")), output("b")]


def test_a_call_id_beside_encrypted_reasoning_is_renamed_on_both_sides_and_nothing_else():
    """Duplicate function_call_output for call_id."""
    second = reasoning("rs_2", encrypted_content="BBBB")
    history = [
        GO,
        reasoning(encrypted_content="AAAA"),
        call(id="fc_1"),
        output(),
        NEXT,
        second,
        call(id="fc_2"),
        output("c1", "2"),
    ]
    fixed = mended(history, WIRE)
    assert fixed.messages[:6] == history[:6]
    assert fixed.messages[5] is second
    new = fixed.messages[6]["call_id"]
    assert new != "c1"
    assert fixed.messages[6] == call(new, id="fc_2")
    assert fixed.messages[7] == output(new, "2")


# --- ids --------------------------------------------------------------------------------------


def test_an_item_id_that_stands_twice_is_left_out_the_second_time():
    """Duplicate item found with id fc_1."""
    history = [
        GO,
        call("a", id="fc_1"),
        output("a"),
        NEXT,
        call("b", id="fc_1"),
        output("b"),
        says("x", "msg_1"),
        says("y", "msg_1"),
    ]
    fixed = mended(history, WIRE)
    assert fixed.messages == [*history[:4], call("b"), output("b"), says("x", "msg_1"), says("y")]
    assert found(fixed) == [("repeated-item", 4), ("repeated-item", 7)]


def test_a_call_id_of_more_than_64_characters_is_renamed_on_both_sides():
    """String too long. Expected a string with maximum length 64."""
    long = "c" * 65
    fixed = mended([GO, call(long), output(long)], WIRE)
    new = fixed.messages[1]["call_id"]
    assert len(new) <= 64
    assert fixed.messages == [GO, call(new), output(new)]
    left_alone([GO, call("c" * 64), output("c" * 64)], WIRE)


def test_ids_without_and_with_reuse_never_meet():
    """A renamed id is not one that stands elsewhere."""
    history = [
        GO,
        call(""),
        output(""),
        call("a"),
        output("a"),
        call("a"),
        output("a", "2"),
        call(None),
        output(None, "3"),
    ]
    fixed = mended(history, WIRE)
    calls = [item["call_id"] for item in fixed.messages if item.get("type") == "function_call"]
    outputs = [item["call_id"] for item in fixed.messages if item.get("type") == "function_call_output"]
    assert calls == outputs
    assert len(set(calls)) == 4
    assert calls[1] == "a"


@pytest.mark.parametrize("arguments", ["", "null", '{"q": "par', None])
def test_arguments_that_are_no_object_become_an_empty_one(arguments: Any):
    fixed = mended([GO, call(arguments=arguments), output()], WIRE)
    assert fixed.messages == [GO, call(), output()]


def test_a_call_without_a_name_is_named():
    fixed = mended([GO, call(name=""), output()], WIRE)
    assert fixed.messages == [GO, call(name="unknown_tool"), output()]
