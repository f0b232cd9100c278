"""A first agent: a model, two tools, and the events while they work.

python examples/first_agent.py                                       # a small model on this machine, no key
python examples/first_agent.py --model anthropic:claude-sonnet-4-5   # any other, see docs/models.md
"""

import argparse
import asyncio
from collections.abc import Mapping
from typing import Any, Literal

from suture import ChatModelAgent, Message, Model, tool
from suture.events import MessageFinished, ToolFinished, ToolStarted

Port = Literal["Dover", "Hull"]
HIGH_TIDE: Mapping[Port, str] = {"Dover": "06:12", "Hull": "01:47"}
BOATS: Mapping[Port, list[str]] = {"Dover": ["Alma", "Perle"], "Hull": []}
PUSH = {"tool_choice": "required", "max_tokens": 60}
"""For the local model, which may otherwise guess instead of looking."""


@tool
async def tides(port: Port) -> str:
    """Look up today's high tide.

    Args:
        port: The name of the harbour.
    """
    return f"{HIGH_TIDE[port]} in {port}"


@tool
def boats(port: Port) -> list[str]:
    """List the boats in a harbour."""
    return BOATS[port]


async def main(model: Model[Message] | str, options: Mapping[str, Any] | None = None) -> None:
    agent = ChatModelAgent(
        name="harbour",
        instruction="You know the harbours. Answer briefly.",
        model=model,
        tools=[tides, boats],
    )
    async with agent.stream("When is high tide in Dover, and who is there?", options=options) as run:
        async for event in run:
            match event:
                case MessageFinished() if event.text:
                    print(f"model: {event.text}")
                case ToolStarted():
                    print(f"  {event.name} {' '.join(event.arguments.split())} …")
                case ToolFinished():
                    print(f"  {event.name} gave {event.text}")
                case _:
                    pass
        result = await run.result()
    print(f"{result.outcome}: {len(result.messages)} messages")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="A first agent, with two tools.")
    parser.add_argument("--model", default="local", help="such as openai:gpt-5-mini (default: local, without a key)")
    name = parser.parse_args().model
    asyncio.run(main(name, PUSH if name == "local" else None))
