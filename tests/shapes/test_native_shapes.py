"""What only Suture's own messages have, and that no provider's demands are made of them."""

from typing import Any

import pytest

import suture
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    ImagePart,
    MCPToolApprovalRequest,
    MCPToolCall,
    MCPToolResult,
    Message,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    TextPart,
    ToolCall,
    ToolInfo,
    ToolSearchResult,
    UserInputImage,
    UserInputText,
)
from tests.shapes.holding import mended
from tests.shapes.notation import call, flat, result, says, system, turn, user
from tests.shapes.texts import answered, placeholder
from tests.shapes.wires import expect, read, render

BOTH = pytest.mark.parametrize("wire", ["message", "agentic"])
ASK = user("hello")
TWO = turn(call("call_1", "tool_a"), call("call_2", "tool_b"))
ONE = turn(call("call_1", "tool_a"))


@BOTH
def test_native_messages_are_held_to_structure_alone_and_the_wire_is_recognised(wire: str):
    messages = render(wire, [turn(call("a.b" * 30, "", "[]")), result("a.b" * 30, "", error=True), says("")]).messages
    assert suture.repair(messages).messages is messages
    report = suture.check(messages)
    assert (report.wire, report.profile) == (wire, "pairing")
    with pytest.raises(suture.ConfigError, match="mistral"):
        suture.repair(messages, profile="mistral")


@BOTH
def test_a_check_for_a_provider_judges_what_it_would_be_sent(wire: str):
    history = [ASK, turn(call("functions.search:0")), result("functions.search:0", "1"), user("next")]
    messages = render(wire, history).messages
    told = {
        profile: [(each.problem, each.index) for each in suture.check(messages, profile=profile).findings]
        for profile in ("pairing", "openai-chat", "anthropic", "mistral", "deepseek")
    }
    assert told == {
        "pairing": [],
        "openai-chat": [],
        "anthropic": [("illegal-id", 1)],
        "mistral": [("illegal-id", 1), ("tool-then-user", 3)],
        "deepseek": [("missing-field", 1)],
    }


@BOTH
@pytest.mark.parametrize("profile", ["gemini", "bedrock", "mistral", "openai-chat", "anthropic"])
def test_behind_a_system_message_the_model_is_first_where_that_is_kept_outside(wire: str, profile: str):
    messages = render(wire, [system("Be brief."), says("Hello!"), user("Hi.")]).messages
    found = [(each.problem, each.index) for each in suture.check(messages, profile=profile).findings]
    assert found == ([("model-first", 1)] if profile in {"gemini", "bedrock"} else [])


@BOTH
def test_a_check_for_a_provider_leads_back_to_the_native_message(wire: str):
    """One native message may be several of the provider's."""
    messages = render(wire, [ASK, turn(call("x"), call("y"), text="I will look."), user("stop")]).messages
    found = suture.check(messages, profile="openai-responses").findings
    assert [(each.problem, each.index, each.call_id) for each in found] == [("dangling", 1, "x"), ("dangling", 1, "y")]


@BOTH
def test_what_a_message_carries_beside_is_kept_when_it_changes(wire: str):
    """Unknown data, metadata and `extra` belong to the user."""
    if wire == "message":
        answer: Any = Message("tool", "1", tool_call_id="other", name="tool_a", extra={"k": 1})
    else:
        block = FunctionToolResult("other", "tool_a", (UserInputText("1"),), extra={"k": 1})
        answer = AgenticMessage("user", (block,))
    fixed = mended([*render(wire, [ASK, ONE]).messages, answer, *render(wire, [user("next")]).messages], wire)
    adopted = fixed.messages[2]
    assert read(wire, [adopted])[0][1] == (("result", "call_1", "1"),)
    holder = adopted if wire == "message" else adopted.content_blocks[0]
    assert dict(holder.extra) == {"k": 1}


def test_no_messages_are_no_messages():
    """And the very same list."""
    for wire in ("message", "agentic", None):
        messages: list[Any] = []
        assert suture.repair(messages, wire=wire).messages is messages
        assert messages == []
        assert suture.check(messages, wire=wire).acceptable


def test_the_result_of_a_tool_search_is_a_result():
    """Nothing is added and the block keeps its type."""
    messages = [
        AgenticMessage.user("hello"),
        AgenticMessage.assistant([FunctionToolCall("call_1", "tool_search", "{}")]),
        AgenticMessage("user", (ToolSearchResult("call_1", "tool_search", (ToolInfo("found"),)),)),
    ]
    fixed = suture.repair(messages)
    assert fixed.messages is messages
    assert isinstance(fixed.messages[2].content_blocks[0], ToolSearchResult)


def test_a_late_result_of_a_tool_search_keeps_its_type_as_it_moves():
    found = AgenticMessage("user", (ToolSearchResult("call_1", "tool_search", (ToolInfo("found"),)),))
    asked = AgenticMessage.assistant([FunctionToolCall("call_1", "tool_search", "{}")])
    fixed = suture.repair([asked, AgenticMessage.user("and?"), found])
    assert fixed.messages[1] == found


def test_a_block_that_nobody_knows_is_passed_over():
    """A call block without a payload cannot be built here."""
    turn_ = AgenticMessage.assistant(
        [Opaque({"type": "hologram", "beam": 7}), FunctionToolCall("call_1", "tool_a", "{}")]
    )
    fixed = suture.repair([AgenticMessage.user("hello"), turn_])
    assert len(fixed.messages) == 3
    assert fixed.messages[1] is turn_
    block = fixed.messages[2].content_blocks[0]
    assert isinstance(block, FunctionToolResult)
    assert (block.call_id, block.name, block.is_error) == ("call_1", "tool_a", True)


def test_a_block_that_is_none_is_refused_with_its_place():
    """Never a crash."""
    with pytest.raises(suture.InputError):
        AgenticMessage("assistant", (None, FunctionToolCall("call_1", "tool_a")))  # pyright: ignore[reportArgumentType]


@BOTH
def test_an_empty_user_message_is_no_result(wire: str):
    empty: Any = AgenticMessage("user", ()) if wire == "agentic" else Message.user("")
    messages = [*render(wire, [ASK, ONE]).messages, empty]
    fixed = suture.repair(messages, wire=wire)
    assert len(fixed.messages) == 4
    assert read(wire, fixed.messages[2:3]) == expect(wire, [answered("interrupted", "call_1", "tool_a")])
    assert fixed.messages[3] is empty


def test_a_message_of_text_and_a_result_is_a_result():
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
def test_blocks_of_the_providers_side_are_no_client_calls(blocks: tuple[Any, ...]):
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
def test_a_call_of_another_role_is_no_call(wire: str):
    """Tool calls on non-assistant roles are ignored or refused, never answered."""
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
        late: Any = Message.tool([TextPart("see"), ImagePart(url="https://example.com/a.png")], "call_1", "tool_a")
    else:
        late = AgenticMessage.tool_result(
            "call_1", "tool_a", [UserInputText("see"), UserInputImage(url="https://example.com/a.png")]
        )
    fixed = suture.repair([asked, between, late], wire=wire)
    assert fixed.messages[1] == late
