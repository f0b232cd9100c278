"""The instruction of an agent: a text, or a function that makes one when a run begins."""

import asyncio
from typing import Any

import pytest

from suture import AgentMiddleware, ChatModelAgent, ConfigError, Message, RunContext, ToolCall, interrupt, tool
from suture.stores import MemoryStore
from suture.testing import ScriptedModel


def plain() -> str:
    return "Be brief."


async def later() -> str:
    await asyncio.sleep(0)
    return "Be brief."


def of_the_run(context: RunContext[str]) -> str:
    return f"Be brief with {context.deps}."


def asks(name: str) -> Message:
    return Message.assistant(tool_calls=[ToolCall("c1", name, "{}")])


class Speaker:
    def speak(self, context: RunContext[str]) -> str:
        return f"Be kind to {context.deps}."


@pytest.mark.parametrize(
    ("instruction", "sent"),
    [
        ("Be brief.", "Be brief."),
        (plain, "Be brief."),
        (later, "Be brief."),
        (of_the_run, "Be brief with Ann."),
        (Speaker().speak, "Be kind to Ann."),
        (lambda: "", ""),
    ],
)
def test_a_text_or_a_function_is_what_the_model_is_told(instruction: Any, sent: str):
    model = ScriptedModel(["hello"])
    ChatModelAgent(model=model, instruction=instruction).run_sync("hi", deps="Ann")
    assert model.requests[0].instruction == sent


def test_what_is_added_to_an_instruction_stands_behind_what_a_function_returns():
    model = ScriptedModel(["hello"])
    added = AgentMiddleware(additional_instruction="Cite sources.")
    ChatModelAgent(model=model, instruction=plain, middlewares=[added]).run_sync("hi")
    assert model.requests[0].instruction == "Be brief.\n\nCite sources."


def test_each_run_asks_once():
    asked: list[int] = []

    def count() -> str:
        asked.append(1)
        return f"Run {len(asked)}."

    @tool
    def look() -> str:
        """Look."""
        return "seen"

    model = ScriptedModel([asks("look"), "done", "well"])
    agent = ChatModelAgent(model=model, instruction=count, tools=[look])
    agent.run_sync("hi")
    agent.run_sync("hi")
    assert [request.instruction for request in model.requests] == ["Run 1.", "Run 1.", "Run 2."]


def test_the_errors_of_the_function_end_the_run_before_a_model_is_asked():
    model = ScriptedModel(["hello"])

    def fail() -> str:
        raise LookupError("no such user")

    with pytest.raises(LookupError, match="no such user"):
        ChatModelAgent(model=model, instruction=fail).run_sync("hi")
    with pytest.raises(ConfigError, match="the function given as instruction returns a text, not NoneType"):
        ChatModelAgent(model=model, instruction=lambda: None).run_sync("hi")  # pyright: ignore[reportArgumentType]
    assert model.requests == []


def test_what_is_neither_is_refused_when_the_agent_is_made():
    with pytest.raises(ConfigError, match="instruction takes a str or a Callable, not int"):
        ChatModelAgent(model=ScriptedModel([]), instruction=7)  # pyright: ignore[reportArgumentType]
    wrong: list[Any] = [lambda run, user: f"{run} {user}", lambda *, user: f"Speak to {user}.", str]
    for function in wrong:
        with pytest.raises(ConfigError, match="the function given as instruction takes the RunContext or nothing"):
            ChatModelAgent(model=ScriptedModel([]), instruction=function)


def test_parameters_that_the_context_cannot_be_are_left_alone():
    def speak(*, tone: str = "kindly", **_: Any) -> str:
        return f"Speak {tone}."

    model = ScriptedModel(["hello"])
    ChatModelAgent(model=model, instruction=speak).run_sync("hi")
    assert model.requests[0].instruction == "Speak kindly."


def test_a_resumed_run_asks_again_with_the_deps_of_its_new_process():
    @tool
    async def ask() -> str:
        """Ask."""
        return str(await interrupt("which?"))

    model = ScriptedModel([asks("ask"), "done"])
    agent = ChatModelAgent(model=model, instruction=of_the_run, tools=[ask], checkpoint_store=MemoryStore())

    async def scene() -> None:
        await agent.run("hi", deps="Ann", checkpoint_id="job")
        await agent.resume("job", "this one", deps="Bob")

    asyncio.run(scene())
    assert [request.instruction for request in model.requests] == ["Be brief with Ann.", "Be brief with Bob."]
