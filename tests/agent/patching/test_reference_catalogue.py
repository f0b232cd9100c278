"""The reference's own cases and its weak points, through an agent.

Placeholders stand in call order, and a call at the very end says *unknown*, on purpose.
"""

from typing import Any

import pytest

import suture
from suture import AgenticMessage, ChatModelAgent, Message, ToolCall
from suture.messages import (
    AssistantGenText,
    FunctionToolCall,
    MCPToolApprovalRequest,
    MCPToolCall,
    Opaque,
    ServerToolCall,
    ToolSearchResult,
    UserInputText,
)
from suture.middleware import PatchToolCalls
from suture.testing import ScriptedModel
from tests.agent.patching.wiring import assert_acceptable, assert_says, assert_sent, history, on_each_wire, sent
from tests.shapes.notation import Step, call, result, retold, says, system, turn, user
from tests.shapes.texts import answered, placeholder

ASK = user("hello")
ONE = turn(call("call_1", "tool_a"))
TWO = turn(call("call_1", "tool_a"), call("call_2", "tool_b"))
R1 = result("call_1", "one", "tool_a")
P1, P2 = answered("interrupted", "call_1", "tool_a"), answered("interrupted", "call_2", "tool_b")
GO_ON = user("continued...")

CATALOGUE: list[tuple[str, list[Step], list[Step]]] = [
    ("no calls", [ASK, says("hi")], [ASK, says("hi")]),
    ("one of two is missing at the end", [ASK, TWO, R1], [ASK, TWO, R1, answered("unknown", "call_2", "tool_b")]),
    ("the second of two is missing", [ASK, TWO, R1, GO_ON], [ASK, TWO, R1, P2, GO_ON]),
    (
        "the first of two is missing",
        [ASK, TWO, result("call_2", "two", "tool_b"), user("Thanks")],
        [ASK, TWO, P1, result("call_2", "two", "tool_b"), user("Thanks")],
    ),
    (
        "another assistant message follows",
        [ASK, ONE, says("go on")],
        [ASK, ONE, answered("unknown", "call_1", "tool_a"), says("go on")],
    ),
    ("a user message follows", [ASK, ONE, GO_ON], [ASK, ONE, P1, GO_ON]),
    ("a system message between", [ASK, ONE, system("be kind"), R1, GO_ON], [ASK, ONE, R1, system("be kind"), GO_ON]),
    ("results out of order", [ASK, TWO, result("call_2", "two", "tool_b"), R1, GO_ON], []),
    ("a result before its call", [ASK, R1, ONE, GO_ON], [ASK, ONE, R1, GO_ON]),
    ("a stray result", [ASK, R1, GO_ON], [ASK, retold("one"), GO_ON]),
    ("an id that restarts each round", [ASK, ONE, R1, GO_ON, ONE, R1, GO_ON], []),
]
each_persist = pytest.mark.parametrize("persist", [True, False])


@pytest.mark.parametrize(("given", "wanted"), [row[1:] for row in CATALOGUE], ids=[row[0] for row in CATALOGUE])
@each_persist
@on_each_wire
def test_the_catalogue_holds_in_an_agent(wire: str, persist: bool, given: list[Step], wanted: list[Step]):
    model = ScriptedModel(["ok"], wire)
    agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls(persist=persist)])
    messages = history(wire, *given)
    finished = agent.run_sync(messages)
    assert_sent(model, *(wanted or given))
    assert_says(wire, finished.messages, *((wanted or given) if persist else given), says("ok"))


@each_persist
@on_each_wire
def test_calls_in_neighbouring_messages_are_one_turn_which_chat_wants_split(wire: str, persist: bool):
    model = ScriptedModel(["ok"], wire)
    both = turn(call("call_2", "tool_b"), call("call_3", "tool_b"))
    given = [ASK, ONE, both, GO_ON]
    finished = ChatModelAgent(model=model, middlewares=[PatchToolCalls(persist=persist)]).run_sync(
        history(wire, *given)
    )
    p3 = answered("interrupted", "call_3", "tool_b")
    whole, split = [ASK, ONE, both, P1, P2, p3, GO_ON], [ASK, ONE, P1, both, P2, p3, GO_ON]
    assert_says(wire, sent(model), *(split if wire == "openai-chat" else whole))
    assert suture.check(sent(model), wire=wire).acceptable
    assert_says(wire, finished.messages, *(whole if persist else given), says("ok"))


def test_the_default_text_is_the_references():
    model = ScriptedModel(["ok"])
    ChatModelAgent(model=model, middlewares=[PatchToolCalls()]).run_sync(history("message", ASK, ONE, GO_ON))
    assert sent(model)[2].content == (
        "Tool call tool_a with id call_1 was canceled - another message came in before it could be completed."
    )


def sent_by_an_agent(*messages: Any) -> list[Any]:
    model = ScriptedModel(["ok"], "agentic")
    ChatModelAgent(model=model, middlewares=[PatchToolCalls()]).run_sync(messages)
    assert_acceptable("agentic", sent(model))
    return sent(model)


HELLO = AgenticMessage.user("hello")
CALL = FunctionToolCall("call_1", "tool_a", "{}")


def test_a_tool_search_result_answers_its_call():
    asks = AgenticMessage.assistant([FunctionToolCall("call_1", "tool_search", "{}")])
    found = AgenticMessage("user", (ToolSearchResult("call_1", "tool_search"),))
    model = ScriptedModel(["ok"], "agentic")
    ChatModelAgent(model=model, middlewares=[PatchToolCalls()]).run_sync([HELLO, asks, found])
    assert sent(model) == [HELLO, asks, found]


def test_a_block_without_payload_is_passed_over_and_the_real_call_is_patched():
    empty = Opaque({"type": "function_tool_call"})
    asks = AgenticMessage("assistant", (empty, CALL))
    messages = sent_by_an_agent(HELLO, asks)
    assert messages[:2] == [HELLO, asks]
    (block,) = messages[2].content_blocks
    assert (block.call_id, block.name, block.is_error) == ("call_1", "tool_a", True)
    assert block.content == (UserInputText(placeholder("unknown", "call_1", "tool_a")),)
    assert len(messages) == 3


def test_a_message_that_holds_nothing_known_ends_the_group():
    odd = AgenticMessage("user", (Opaque({"type": "hologram"}),))
    messages = sent_by_an_agent(HELLO, AgenticMessage.assistant([CALL]), odd)
    assert [message.role for message in messages] == ["user", "assistant", "user", "user"]
    assert messages[3] is odd
    assert messages[2].content_blocks[0].content == (UserInputText(placeholder("interrupted", "call_1", "tool_a")),)


def test_calls_that_a_server_runs_are_nobodys_to_answer():
    busy = AgenticMessage(
        "assistant",
        (
            ServerToolCall("srv_1", "web_search", arguments={"q": "x"}),
            MCPToolCall("mcp_1", "lookup", arguments="{}", server_label="docs"),
            MCPToolApprovalRequest(id="ok_1", name="delete", arguments="{}", server_label="docs"),
            AssistantGenText("One moment."),
        ),
    )
    model = ScriptedModel(["ok"], "agentic")
    ChatModelAgent(model=model, middlewares=[PatchToolCalls()]).run_sync([HELLO, busy, HELLO])
    assert sent(model) == [HELLO, busy, HELLO]


def test_a_name_that_the_model_made_up_cannot_break_the_text():
    odd = ToolCall("{name}\x1b[31m", "%s {id}" + "x" * 100, "{}")
    model = ScriptedModel(["ok"])
    agent = ChatModelAgent(model=model, middlewares=[PatchToolCalls()])
    agent.run_sync([Message.user("hi"), Message.assistant("", [odd]), Message.user("stop")])
    assert sent(model)[2].content == (
        f"Tool call {('%s {id}' + 'x' * 100)[:64]} with id {{name}}[31m was canceled - "
        "another message came in before it could be completed."
    )
