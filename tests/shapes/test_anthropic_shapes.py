"""What Anthropic's Messages API demands beyond pairing, and what it must not cost: signed thinking."""

import re
from typing import Any

import pytest

import suture
from tests.shapes.holding import found, left_alone, mended, unmendable
from tests.shapes.texts import placeholder

GO = {"role": "user", "content": "go"}
THINKING = {"type": "thinking", "thinking": "Let me see.", "signature": "c2lnbmVk"}
REDACTED = {"type": "redacted_thinking", "data": "b3BhcXVl"}
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(id_: str, name: str = "search", arguments: Any = None) -> dict[str, Any]:
    return {
        "type": "tool_use",
        "id": id_,
        "name": name,
        "input": {"q": "x"} if arguments is None else arguments,
    }


def res(id_: str, content: Any = "1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


def model(*blocks: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": list(blocks)}


def user(*blocks: Any) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def test_an_image_between_sibling_results_stands_after_them():
    fixed = mended([GO, model(use("x"), use("y")), user(res("x")), user(IMAGE), user(res("y", [IMAGE]))], "anthropic")
    assert fixed.messages == [GO, model(use("x"), use("y")), user(res("x"), res("y", [IMAGE])), user(IMAGE)]


def test_text_before_a_result_in_one_message_stands_behind_it():
    """The pair is there, and must not be taken for missing."""
    fixed = mended([GO, model(use("x")), user(text("by the way"), res("x"))], "anthropic")
    assert fixed.messages == [GO, model(use("x")), user(res("x"), text("by the way"))]
    assert found(fixed) == [("results-not-first", 2)]


def test_text_among_several_results_stands_behind_them_all_and_both_orders_hold():
    fixed = mended([GO, model(use("x"), use("y")), user(res("y"), text("a"), res("x"), text("b"))], "anthropic")
    assert fixed.messages[2] == user(res("y"), res("x"), text("a"), text("b"))


def test_text_behind_the_results_is_fine():
    """Only MiniMax minds."""
    left_alone([GO, model(use("x")), user(res("x"), text("and now?"))], "anthropic")


def test_text_behind_the_results_goes_into_the_next_message_for_minimax():
    history = [GO, model(use("x")), user(res("x"), text("and now?")), model(text("ok"))]
    fixed = mended(history, "anthropic", profile="minimax")
    assert fixed.messages == [GO, model(use("x")), user(res("x")), user(text("and now?")), model(text("ok"))]
    assert found(fixed) == [("trailing-text", 2)]
    assert fixed.messages[1] is history[1]


def test_text_before_and_behind_the_results_goes_into_the_next_message_for_minimax():
    fixed = mended([GO, model(use("x")), user(text("a"), res("x"), text("b"))], "anthropic", profile="minimax")
    assert fixed.messages == [GO, model(use("x")), user(res("x")), user(text("a"), text("b"))]


@pytest.mark.parametrize("profile", ["anthropic", "minimax"])
def test_text_after_a_call_stands_before_it(profile: str):
    fixed = mended(
        [GO, model(text("a"), use("x"), text("b"), use("y"), text("c")), user(res("x"), res("y"))],
        "anthropic",
        profile=profile,
    )
    assert fixed.messages[1] == model(text("a"), text("b"), text("c"), use("x"), use("y"))
    assert found(fixed) == [("text-after-calls", 1)]


def test_results_in_separate_messages_are_merged_into_the_next_one():
    fixed = mended([GO, model(use("x"), use("y")), user(res("x")), user(res("y")), user(text("next"))], "anthropic")
    assert fixed.messages == [GO, model(use("x"), use("y")), user(res("x"), res("y")), user(text("next"))]
    assert found(fixed) == [("split-results", 3)]


def test_neighbours_of_one_role_are_fine_where_no_results_are_split():
    left_alone([GO, GO, model(text("a")), model(text("b"), use("x")), user(res("x")), user(text("c"))], "anthropic")


def test_calls_of_one_id_are_renamed_with_their_results_and_the_first_keeps_its_id():
    """`tool_use` ids must be unique."""
    fixed = mended([GO, model(use("x"), use("x", "fetch")), user(res("x", "1"), res("x", "2"))], "anthropic")
    first, second = fixed.messages[1]["content"]
    assert (first["id"], first["name"], second["name"]) == ("x", "search", "fetch")
    assert second["id"] != "x"
    assert [(b["tool_use_id"], b["content"]) for b in fixed.messages[2]["content"]] == [
        ("x", "1"),
        (second["id"], "2"),
    ]


@pytest.mark.parametrize("id_", ["functions.read_file:0", "call_x|fc_y", "a b", "über", "a\n", "x" * 450 + "|"])
def test_an_id_that_anthropic_cannot_read_is_renamed_on_both_sides(id_: str):
    fixed = mended([GO, model(use(id_)), user(res(id_))], "anthropic")
    new = fixed.messages[1]["content"][0]["id"]
    assert re.fullmatch("[a-zA-Z0-9_-]+", new)
    assert fixed.messages[2]["content"][0]["tool_use_id"] == new
    assert found(fixed) == [("illegal-id", 1)]


@pytest.mark.parametrize("arguments", ['{"q": "par', "", [1], 7, True])
def test_input_that_is_no_object_becomes_an_empty_one(arguments: Any):
    """And a real result stays."""
    fixed = mended([GO, model(use("x", arguments=arguments)), user(res("x", "bad input", is_error=True))], "anthropic")
    assert fixed.messages[1] == model(use("x", arguments={}))
    assert fixed.messages[2]["content"] == [res("x", "bad input", is_error=True)]
    assert found(fixed) == [("bad-arguments", 1)]


@pytest.mark.parametrize(
    "block",
    [
        {"type": "tool_use", "id": "x", "name": "f", "input": None},
        {"type": "tool_use", "id": "x", "name": "f"},
    ],
)
def test_input_that_is_not_there_becomes_an_empty_object(block: dict[str, Any]):
    fixed = mended([GO, model(block), user(res("x"))], "anthropic")
    assert fixed.messages[1]["content"][0]["input"] == {}


def test_a_call_without_a_name_is_named_and_keeps_its_result():
    fixed = mended([GO, model(use("x", "")), user(res("x"))], "anthropic")
    assert fixed.messages[1] == model(use("x", "unknown_tool"))
    assert fixed.messages[2] == user(res("x"))


@pytest.mark.parametrize("content", ["", [], None, [text("")]], ids=["blank", "no block", "null", "blank block"])
def test_an_empty_error_result_is_given_a_text(content: Any):
    """Content cannot be empty if `is_error` is true."""
    fixed = mended([GO, model(use("x")), user(res("x", content, is_error=True))], "anthropic")
    (block,) = fixed.messages[2]["content"]
    told = block["content"] if isinstance(block["content"], str) else block["content"][0]["text"]
    assert told.strip()
    assert block["is_error"] is True
    assert found(fixed) == [("empty-error", 2)]


@pytest.mark.parametrize("content", ["", [], [IMAGE]])
def test_an_empty_result_that_is_no_error_is_fine(content: Any):
    left_alone([GO, model(use("x")), user(res("x", content))], "anthropic")


def test_blank_text_blocks_are_left_out_and_messages_of_nothing_else_dropped():
    history = [
        GO,
        model(text(""), use("x")),
        user(res("x"), text("  ")),
        model(text("\n")),
        user(text("next")),
    ]
    fixed = mended(history, "anthropic")
    assert fixed.messages == [GO, model(use("x")), user(res("x")), user(text("next"))]
    assert found(fixed) == [("blank-text", 1), ("blank-text", 2), ("blank-text", 3), ("empty-message", 3)]


def test_a_blank_text_between_signed_thoughts_is_left_out_and_they_stay_as_they_are():
    fixed = mended([GO, model(THINKING, text(""), THINKING, use("x")), user(res("x"))], "anthropic")
    assert fixed.messages == [GO, model(THINKING, THINKING, use("x")), user(res("x"))]
    assert found(fixed) == [("blank-text", 1)]


@pytest.mark.parametrize("after", [[], [user(text("next"))], [model(text("next"))]], ids=["nothing", "user", "model"])
def test_text_behind_a_signed_step_follows_its_results(after: list[Any]):
    fixed = mended([GO, model(THINKING, use("x")), model(text("so")), user(res("x")), *after], "anthropic")
    assert fixed.messages == [GO, model(THINKING, use("x")), user(res("x")), model(text("so")), *after]
    assert found(fixed) == [("turn-order", 2)]


@pytest.mark.parametrize(
    ("blocks", "problem"),
    [
        ((THINKING, use("x"), text("b")), "text-after-calls"),
        ((REDACTED, use("x"), text("b")), "text-after-calls"),
        ((THINKING, use("x", arguments='{"q')), "bad-arguments"),
        ((THINKING, use("x", "")), "missing-name"),
    ],
    ids=["text after the call", "text after the call, redacted", "arguments", "name"],
)
def test_a_signed_turn_is_not_touched_and_what_is_wrong_with_it_is_told(blocks: tuple[Any, ...], problem: str):
    history = [GO, model(*blocks), user(res("x"))]
    fixed = unmendable(history, "anthropic", problem)
    assert fixed.messages is history
    assert not fixed.changed


def test_a_signed_turn_is_answered_like_any_other_and_comes_back_as_the_same_object():
    """Answering is safer than deleting."""
    signed = model(THINKING, text("a"), use("x"), use("y"))
    fixed = mended([GO, signed, user(res("x")), user(text("stop"))], "anthropic")
    assert fixed.messages[1] is signed
    assert fixed.messages[2] == user(res("x"), res("y", placeholder("interrupted", "y"), is_error=True))


def test_in_a_signed_turn_only_the_id_changes_on_both_sides():
    """What is signed outranks acceptance; ids are no part of it."""
    fixed = mended([GO, model(THINKING, use("a.b"), use("a.b")), user(res("a.b", "1"), res("a.b", "2"))], "anthropic")
    thought, first, second = fixed.messages[1]["content"]
    assert thought == THINKING
    assert [{**first, "id": 0}, {**second, "id": 0}] == [{**use("x"), "id": 0}] * 2
    assert len({first["id"], second["id"], "a.b"}) == 3
    assert [b["tool_use_id"] for b in fixed.messages[2]["content"]] == [first["id"], second["id"]]


@pytest.mark.parametrize(
    "thought",
    [
        {"type": "thinking", "thinking": "", "signature": "c2lnbmVk"},
        REDACTED,
    ],
    ids=["cleared", "redacted"],
)
def test_signed_thinking_is_kept_byte_for_byte_whatever_it_looks_like(thought: dict[str, Any]):
    """Nobody but its model knows what it needs."""
    left_alone([GO, model(thought, use("x")), user(res("x")), model(text("done"))], "anthropic")


def test_calls_without_their_thinking_are_no_fault_of_the_history():
    """Whether thinking is on is a matter of the request."""
    left_alone([GO, model(THINKING, use("x")), user(res("x")), model(use("y")), user(res("y"))], "anthropic")


SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
SERVED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
MCP = {"type": "mcp_tool_use", "id": "mcptoolu_1", "name": "echo", "server_name": "s", "input": {}}
MCP_RESULT = {"type": "mcp_tool_result", "tool_use_id": "mcptoolu_1", "is_error": False, "content": []}


@pytest.mark.parametrize("blocks", [(SERVER, SERVED, text("a")), (MCP, MCP_RESULT), (text("a"), SERVER, SERVED)])
def test_server_side_tools_are_left_alone(blocks: tuple[Any, ...]):
    left_alone([GO, model(*blocks), user(text("next"))], "anthropic")


def test_a_server_side_tool_that_may_still_run_is_left_alone():
    """A paused turn goes back as it is; beside calls, the service runs its own tool when they are answered."""
    left_alone([GO, model(text("a"), SERVER)], "anthropic")
    left_alone([GO, model(SERVER), model(SERVED, text("a")), user(text("next"))], "anthropic")
    left_alone([GO, model(SERVER, use("x")), user(res("x"))], "anthropic")
    left_alone([GO, model(use("x"), SERVER), user(res("x")), model(SERVED, use("y")), user(res("y"))], "anthropic")


def test_a_server_side_tool_that_never_ran_is_left_out():
    """It is refused for good (lisette#108, langchainjs#11407)."""
    said = model(text("a"), SERVER, SERVED, {**SERVER, "id": "srvtoolu_2"})
    fixed = mended([GO, said, user(text("next"))], "anthropic")
    assert fixed.messages == [GO, model(text("a"), SERVER, SERVED), user(text("next"))]
    for use_of in (SERVER, MCP):
        assert mended([GO, model(use_of), user(text("next"))], "anthropic").messages == [GO, user(text("next"))]


def test_a_client_call_beside_a_server_side_one_is_answered_alone():
    turn = model(SERVER, SERVED, text("a"), use("x"))
    fixed = mended([GO, turn, user(text("stop"))], "anthropic")
    assert fixed.messages[1] is turn
    assert fixed.messages[2] == user(res("x", placeholder("interrupted", "x"), is_error=True))


def test_a_result_keeps_blocks_that_nobody_knows():
    """Nested and unknown content is the tool's."""
    nested = [
        {"type": "search_result", "source": "s", "title": "t", "content": [text("deep")]},
        {"type": "hologram"},
    ]
    fixed = mended([GO, model(use("x")), user(text("hm")), user(res("x", nested))], "anthropic")
    assert fixed.messages[2] == user(res("x", nested))


def test_fields_that_nobody_knows_are_kept_on_a_changed_message():
    cached = {**use("a.b"), "cache_control": {"type": "ephemeral"}, "caller": {"type": "direct"}}
    history = [
        GO,
        {**model(text("hi"), cached), "id": "msg_1", "stop_reason": "tool_use"},
        user(res("a.b", cache_control={})),
    ]
    fixed = mended(history, "anthropic")
    changed = fixed.messages[1]
    assert {**changed, "content": 0} == {
        "role": "assistant",
        "content": 0,
        "id": "msg_1",
        "stop_reason": "tool_use",
    }
    assert {**changed["content"][1], "id": 0} == {**cached, "id": 0}
    assert fixed.messages[2]["content"][0]["cache_control"] == {}


def test_an_orphan_among_results_is_told_behind_them_and_is_the_only_finding():
    history = [GO, model(use("x")), user(res("x"), res("q", "surplus")), model(text("done"))]
    fixed = mended(history, "anthropic")
    assert fixed.messages[2]["content"][0] == res("x")
    assert "surplus" in str(fixed.messages[2:4])
    assert found(fixed) == [("orphan", 2)]


def test_a_string_and_a_list_of_blocks_may_stand_together():
    fixed = suture.repair([GO, model(use("x")), {"role": "user", "content": "stop"}], wire="anthropic")
    assert fixed.messages[3] == {"role": "user", "content": "stop"}
