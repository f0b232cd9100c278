"""The older form of a middleware, and wrappers given with the tools: records of functions."""

import asyncio

from suture import (
    AgentMiddleware,
    ChatModelAgent,
    ChatModelAgentState,
    Message,
    ToolCall,
    ToolCallRequest,
    ToolResult,
    ToolsConfig,
    replace,
    tool,
)
from suture.messages import TextPart
from suture.middleware import CallTool
from suture.testing import ScriptedModel


@tool
def tides(port: str) -> str:
    """Look up the tides."""
    return f"06:12 in {port}"


def remind(state: ChatModelAgentState[Message]) -> ChatModelAgentState[Message]:
    return replace(state, messages=[*state.messages, Message.user("Be brief.")])


async def note(state: ChatModelAgentState[Message]) -> None:
    print(state.messages[-1].content)


async def loud(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
    result = await proceed(call)
    return replace(result, parts=(*result.parts, TextPart(f"({call.name})")))


async def main() -> None:
    model = ScriptedModel([Message.assistant(tool_calls=[ToolCall("1", "tides", '{"port": "Dover"}')]), "done"])
    agent = ChatModelAgent(
        name="harbour",
        model=model,
        tools=ToolsConfig(tools=[tides], tool_call_middlewares=[loud]),
        middlewares=[
            AgentMiddleware(
                additional_instruction="Cite sources.",
                additional_tools=[tool(str.upper, name="upper", schema={"type": "object", "properties": {}})],
                before_chat_model=remind,
                after_chat_model=note,
                wrap_tool_call=loud,
            )
        ],
    )
    result = await agent.run("When?")
    assert result.output == "done"
    assert [message.content for message in model.requests[0].messages] == ["When?", "Be brief."]


if __name__ == "__main__":
    asyncio.run(main())
