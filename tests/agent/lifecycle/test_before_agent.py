"""What `before_agent` gets, what it may change for the whole run, and what the older form adds to it."""

import asyncio
from typing import Any

import pytest

from suture import (
    AgentMiddleware,
    ChatModelAgent,
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    Tool,
    replace,
    tool,
)
from suture.events import ToolFinished
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)


class Beginning(ChatModelAgentMiddleware[Any]):
    """A middleware that changes the context of a run, and keeps what it was given."""

    def __init__(self, **changes: Any) -> None:
        self._changes = changes
        self.given: list[ChatModelAgentContext[Any]] = []

    def before_agent(self, context: Any) -> Any:
        self.given.append(context)
        return replace(context, **self._changes) if self._changes else None


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def listen() -> str:
    """Listen."""
    return "heard"


def names(tools: Any) -> list[str]:
    return [each.name for each in tools]


def run(agent: ChatModelAgent[Any]) -> tuple[list[Any], Any]:
    return asyncio.run(collect(agent.stream("go")))


@every_wire
def test_it_gets_what_the_run_works_with(speech: Speech):
    watching = Beginning()
    agent = ChatModelAgent(
        model=ScriptedModel(["done"], speech.wire),
        instruction="be brief",
        tools=[look, listen],
        return_directly=["listen"],
        middlewares=[watching],
    )
    run(agent)
    (context,) = watching.given
    assert context.instruction == "be brief"
    assert names(context.tools) == ["look", "listen"]
    assert all(isinstance(each, Tool) for each in context.tools)
    assert context.return_directly == {"listen"}
    assert context.messages == [speech.user("go")]
    assert context.resumed is False


@every_wire
def test_what_one_changed_the_next_one_gets(speech: Speech):
    first, second = Beginning(instruction="first", tools=(listen,)), Beginning()
    model = ScriptedModel(["done"], speech.wire)
    run(ChatModelAgent(model=model, instruction="be brief", tools=[look], middlewares=[first, second]))
    assert second.given[0].instruction == "first"
    assert names(second.given[0].tools) == ["listen"]
    assert model.requests[0].instruction == "first"
    assert names(model.requests[0].tool_infos) == ["listen"]


def test_additions_of_the_older_form_are_in_what_it_gets():
    watching = Beginning()
    model = ScriptedModel(["done"])
    agent = ChatModelAgent(
        model=model,
        instruction="be brief",
        tools=[look],
        middlewares=[
            watching,
            AgentMiddleware(additional_instruction="cite sources", additional_tools=[listen]),
            AgentMiddleware(additional_instruction="in English"),
        ],
    )
    run(agent)
    assert watching.given[0].instruction == "be brief\n\ncite sources\n\nin English"
    assert names(watching.given[0].tools) == ["look", "listen"]
    assert model.requests[0].instruction == watching.given[0].instruction
    assert names(model.requests[0].tool_infos) == ["look", "listen"]


def test_the_older_form_may_be_all_the_instruction_there_is():
    model = ScriptedModel(["done"])
    run(ChatModelAgent(model=model, middlewares=[AgentMiddleware(additional_instruction="cite sources")]))
    assert model.requests[0].instruction == "cite sources"


@every_wire
def test_its_changes_hold_for_every_turn_of_the_run_and_for_no_other_run(speech: Speech):
    class Once(Beginning):
        def before_agent(self, context: Any) -> Any:
            self.given.append(context)
            return replace(context, instruction="changed", tools=(look,)) if len(self.given) == 1 else None

    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done", "done"], speech.wire)
    agent = ChatModelAgent(model=model, instruction="be brief", middlewares=[Once()])
    run(agent)
    run(agent)
    assert [request.instruction for request in model.requests] == ["changed", "changed", "be brief"]
    assert [names(request.tool_infos) for request in model.requests] == [["look"], ["look"], []]


@every_wire
def test_a_tool_that_it_adds_can_be_called(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "listen", "{}")), "done"], speech.wire)
    _, result = run(ChatModelAgent(model=model, middlewares=[Beginning(tools=(listen,))]))
    assert result.messages[2] == speech.result("c1", "listen", "heard")


@every_wire
def test_it_can_remove_all_tools_from_what_the_model_is_told_and_from_what_can_be_called(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    ran: list[str] = []

    @tool(name="look")
    async def looking() -> str:
        """Look."""
        ran.append("look")
        return "seen"

    events, result = run(ChatModelAgent(model=model, tools=[looking], middlewares=[Beginning(tools=())]))
    assert {request.tool_infos for request in model.requests} == {()}
    assert ran == []
    assert [event.result.is_error for event in events if isinstance(event, ToolFinished)] == [True]
    assert result.outcome == "finished"


@every_wire
def test_without_tools_there_is_one_model_turn_and_a_call_in_it_is_answered_like_one_of_an_unknown_tool(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    events, result = run(ChatModelAgent(model=model, tools=[look], middlewares=[Beginning(tools=())]))
    (answer,) = [event for event in events if isinstance(event, ToolFinished)]
    told = speech.result("c1", "look", answer.text, is_error=True)
    assert result.messages == [speech.user("go"), speech.calls(("c1", "look", "{}")), told]
    assert len(model.requests) == 1


@every_wire
def test_it_can_clear_return_directly(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    clearing = Beginning(return_directly=frozenset())
    agent = ChatModelAgent(model=model, tools=[look], return_directly=["look"], middlewares=[clearing])
    events, result = run(agent)
    assert [event.return_directly for event in events if isinstance(event, ToolFinished)] == [False]
    assert result.output == "done"


@every_wire
def test_it_can_make_a_tool_return_directly(speech: Speech):
    model = ScriptedModel([speech.calls(("c1", "look", "{}"))], speech.wire)
    adding = Beginning(return_directly=frozenset({"look"}))
    _, result = run(ChatModelAgent(model=model, tools=[look], middlewares=[adding]))
    assert result.messages[-1] == speech.result("c1", "look", "seen")
    assert result.output == "seen"


def test_messages_that_it_adds_are_the_beginning_of_the_history():
    class Adding(Beginning):
        def before_agent(self, context: Any) -> Any:
            return replace(context, messages=[MESSAGE.user("earlier"), *context.messages])

    model = ScriptedModel(["done"])
    _, result = run(ChatModelAgent(model=model, middlewares=[Adding()]))
    assert model.requests[0].messages == [MESSAGE.user("earlier"), MESSAGE.user("go")]
    assert result.messages == [MESSAGE.user("earlier"), MESSAGE.user("go"), MESSAGE.says("done")]
