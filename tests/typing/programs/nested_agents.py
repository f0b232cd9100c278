"""Agents as tools of agents."""

import asyncio
from typing import Any, assert_type

from suture import ChatModelAgent, Message, Tool, ToolCall
from suture.events import RunStarted
from suture.testing import ScriptedModel


async def main() -> None:
    writer = ChatModelAgent(name="writer", description="Writes poems.", model=ScriptedModel(["a poem", "another"]))
    as_tool = writer.as_tool(forward_events=True)
    assert_type(as_tool, Tool[..., Any])
    with_schema = writer.as_tool(
        name="write_about",
        description="Writes about something.",
        input_schema={"type": "object", "properties": {"about": {"type": "string"}}},
    )
    editor = ChatModelAgent(
        name="editor",
        model=ScriptedModel(
            [
                Message.assistant(
                    tool_calls=[
                        ToolCall("1", "writer", '{"request": "a poem"}'),
                        ToolCall("2", "write_about", '{"about": "tides"}'),
                    ]
                ),
                "done",
            ]
        ),
        tools=[as_tool, with_schema],
        sequential=True,
    )
    run = editor.stream("write")
    paths = [event.run_path async for event in run if isinstance(event, RunStarted)]
    assert_type(paths, list[tuple[str, ...]])
    result = await run.result()
    assert paths == [("editor",), ("editor", "writer"), ("editor", "writer")]
    assert [message.content for message in result.messages if message.role == "tool"] == ["a poem", "another"]


if __name__ == "__main__":
    asyncio.run(main())
