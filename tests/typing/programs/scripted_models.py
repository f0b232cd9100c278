"""`ScriptedModel` on each wire, with each kind of reply."""

import asyncio
from collections.abc import Sequence
from typing import Any, assert_type

from suture import AgenticMessage, ChatModelAgent, Message, ModelRequest, RunResult, ToolCall, tool
from suture.messages import AssistantGenText
from suture.testing import ScriptedModel


@tool
def tides(port: str) -> str:
    """Look up the tides."""
    return f"06:12 in {port}"


def script(messages: Sequence[Message]) -> Message:
    if messages[-1].role == "tool":
        return Message.assistant(messages[-1].content)
    return Message.assistant(tool_calls=[ToolCall("call_1", "tides", '{"port": "Dover"}')])


async def later(messages: Sequence[Message]) -> str:
    return f"{len(messages)} messages"


def agentic_script(messages: Sequence[AgenticMessage]) -> AgenticMessage:
    return AgenticMessage.assistant([AssistantGenText(f"{len(messages)}")])


def dict_script(messages: Sequence[dict[str, Any]]) -> dict[str, Any]:
    return {"role": "assistant", "content": messages[-1]["content"]}


async def main() -> None:
    model = ScriptedModel([script, Message.assistant("one"), "two", later, TimeoutError("late")])
    agent = ChatModelAgent(name="harbour", model=model, tools=[tides])
    assert_type(agent, ChatModelAgent[str])
    result = await agent.run("hi")
    assert_type(result, RunResult[str])
    assert_type(model.requests, list[ModelRequest[Message]])
    assert model.requests[0].messages[0].content == "hi"
    assert [info.name for info in model.requests[0].tool_infos] == ["tides"]

    always = ChatModelAgent(name="harbour", model=ScriptedModel(script, chunk_size=4), tools=[tides])
    assert_type(always, ChatModelAgent[str])
    assert (await always.run("when?")).output == "06:12 in Dover"

    agentic = ChatModelAgent(name="agentic", model=ScriptedModel(agentic_script, wire="agentic"))
    last: AgenticMessage = (await agentic.run("hi")).messages[-1]
    assert last.content_blocks

    dicts = ChatModelAgent(name="dicts", model=ScriptedModel([dict_script, "two"], "openai-chat", profile="mistral"))
    assert (await dicts.run("hi")).messages[-1]["content"] == "hi"

    cut = ScriptedModel(["a long answer"], chunk_size=2, cut_after=2, error=ConnectionError("gone"))
    try:
        await ChatModelAgent(name="cut", model=cut).run("hi")
    except ConnectionError as error:
        print(error)


def named(wire: str) -> ChatModelAgent[Any]:
    """Make a model whose wire is only known when it runs."""
    return ChatModelAgent(name="any", model=ScriptedModel(["hello"], wire=wire))


if __name__ == "__main__":
    asyncio.run(main())
    assert named("agentic").run_sync("hi").output == "hello"
