"""A first agent: a model, two tools, and what is told while they work.

The model is scripted, so this runs anywhere: no key, no network. A real one is any object with `wire`, `profile`
and `stream`, see docs/models.md.
"""

import asyncio
from collections.abc import Sequence

from suture import ChatModelAgent, Message, ToolCall, tool
from suture.events import MessageFinished, ToolFinished, ToolStarted
from suture.testing import ScriptedModel

HIGH_TIDE = {"Dover": "06:12", "Hull": "01:47"}


@tool
async def tides(port: str) -> str:
    """Look up today's high tide.

    Args:
        port: The name of the harbour.
    """
    return f"{HIGH_TIDE[port]} in {port}"


@tool
def boats(port: str, limit: int = 3) -> list[str]:
    """List the boats in a harbour."""
    return [f"{port} {number}" for number in range(1, limit + 1)]


def script(messages: Sequence[Message]) -> Message:
    """Play a model: ask for both tools at once, then tell what they said."""
    results = [message.content for message in messages if message.role == "tool"]
    if not results:
        calls = [
            ToolCall("call_1", "tides", '{"port": "Dover"}'),
            ToolCall("call_2", "boats", '{"port": "Dover", "limit": 2}'),
        ]
        return Message.assistant("Let me look.", tool_calls=calls)
    return Message.assistant(f"High tide is at {results[0]}. Boats: {results[1]}.")


agent = ChatModelAgent(
    name="harbour",
    instruction="You know the harbours. Answer briefly.",
    model=ScriptedModel(script),
    tools=[tides, boats],
)


async def main() -> None:
    async with agent.run("When is high tide in Dover, and who is there?") as run:
        async for event in run:
            match event:
                case MessageFinished():
                    print(f"model: {event.text}")
                case ToolStarted():
                    print(f"  {event.name} {event.arguments} …")
                case ToolFinished():
                    print(f"  {event.name} gave {event.text}")
                case _:
                    pass
        result = await run
    print(f"{result.outcome}: {len(result.messages)} messages")


if __name__ == "__main__":
    asyncio.run(main())
