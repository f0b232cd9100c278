"""One agent for each message type: its messages are of the type that the model speaks, its output is a text."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Any, assert_type

from suture import AgenticMessage, ChatModelAgent, Delta, Message, ModelRequest, Run, RunResult
from suture.messages import AssistantGenText, FilePart, ImagePart, Part, TextPart, UserInputText


class ChatEcho:
    """Speaks `Message`."""

    wire = "message"
    profile = "pairing"

    async def stream(self, request: ModelRequest[Message]) -> AsyncIterator[Delta | Message]:
        said = request.messages[-1].content
        yield Delta(text=said)
        yield Message.assistant(said)


class AgenticEcho:
    """Speaks `AgenticMessage`, and yields whole messages only."""

    wire = "agentic"
    profile = "pairing"

    async def stream(self, request: ModelRequest[AgenticMessage]) -> AsyncIterator[AgenticMessage]:
        texts = [block.text for block in request.messages[-1].content_blocks if isinstance(block, UserInputText)]
        yield AgenticMessage.assistant([AssistantGenText(text) for text in texts])


class DictEcho:
    """Speaks the dicts of Chat Completions."""

    wire = "openai-chat"
    profile = "openai-chat"

    async def stream(self, request: ModelRequest[dict[str, Any]]) -> AsyncIterator[Delta | dict[str, Any]]:
        yield {"role": "assistant", "content": request.messages[-1]["content"]}


async def chat() -> None:
    agent = ChatModelAgent(name="chat", model=ChatEcho())
    assert_type(agent, ChatModelAgent[str])
    run = agent.stream("hello")
    assert_type(run, Run[str])
    result = await run.result()
    assert_type(result, RunResult[str])
    messages: Sequence[Message] = result.messages
    assert [message.content for message in messages] == ["hello", "hello"]

    history = [Message.user("one"), Message.assistant("two")]
    await agent.run([*history, Message.user("three")])
    await agent.run(result.messages)
    await agent.run(Message.user("a message by itself"))
    await agent.run([TextPart("What is this?"), ImagePart(url="https://example.com/cat.png")])
    parts: list[Part] = [TextPart("And this?"), FilePart(url="https://example.com/cat.pdf", name="cat.pdf")]
    await agent.run(parts)


async def agentic() -> None:
    agent = ChatModelAgent(name="agentic", model=AgenticEcho())
    assert_type(agent, ChatModelAgent[str, AgenticMessage])
    result = await agent.run([AgenticMessage.user("hello")])
    assert_type(result, RunResult[str, AgenticMessage])
    for block in result.messages[-1].content_blocks:
        if isinstance(block, AssistantGenText):
            assert_type(block.text, str)
    await agent.run(AgenticMessage.user("a message by itself"))
    await agent.run([UserInputText("a block")])


async def dicts() -> None:
    agent = ChatModelAgent(name="dicts", model=DictEcho())
    assert_type(agent, ChatModelAgent[str, dict[str, Any]])
    result = await agent.run([{"role": "user", "content": "hello"}])
    assert_type(result, RunResult[str, dict[str, Any]])
    assert result.messages[-1]["content"] == "hello"
    await agent.run({"role": "user", "content": "a message by itself"})
    await agent.run([{"type": "text", "text": "a part"}])


async def main() -> None:
    await chat()
    await agentic()
    await dicts()


if __name__ == "__main__":
    asyncio.run(main())
