# pyright: standard, reportUnnecessaryTypeIgnoreComment=true
# mypy: disable-error-code="no-untyped-def"
"""Hooks written without annotations: an editor knows what they get."""

from typing import TYPE_CHECKING, Any

from suture import ChatModelAgent, ChatModelAgentMiddleware, Message, ToolCall, tool
from suture.testing import ScriptedModel

seen: list[str] = []


class Log(ChatModelAgentMiddleware[Message]):
    async def wrap_tool_call(self, call, proceed):
        if TYPE_CHECKING:
            print(call.no_such_field)  # pyright: ignore[reportAttributeAccessIssue]
        result = await proceed(call)
        seen.append(f"{call.name}: {result.text}")
        return result

    def before_model_rewrite_state(self, state, model_context):
        if TYPE_CHECKING:
            print(state.no_such_field)  # pyright: ignore[reportAttributeAccessIssue]
        seen.append(f"{len(state.messages)} messages, turn {model_context.turn}")


@tool
def tides(port: str) -> str:
    """Look up today's high tide."""
    return f"06:12 in {port}"


call = Message.assistant(tool_calls=[ToolCall("call_1", "tides", '{"port": "Dover"}')])
agent: Any = ChatModelAgent(model=ScriptedModel([call, "06:12"]), tools=[tides], middlewares=[Log()])
agent.run_sync("When is high tide?")
assert seen == ["1 messages, turn 1", "tides: 06:12 in Dover", "3 messages, turn 2"]
