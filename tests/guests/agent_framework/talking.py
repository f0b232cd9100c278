"""A chat client as the framework's own are made, with a script in place of a service; and how histories are written."""

from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import Any, ClassVar

from agent_framework import (
    Agent,
    AgentResponse,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)
from agent_framework.observability import ChatTelemetryLayer

from tests.histories import Step


class FakeClient(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], ChatTelemetryLayer[Any], BaseChatClient[Any]):
    """Says what its script has next, and keeps what it was sent."""

    OTEL_PROVIDER_NAME: ClassVar[str] = "anthropic"

    def __init__(self, *script: Any, conversation_id: str | None = None, **settings: Any) -> None:
        super().__init__(**settings)
        self.script = list(script)
        self.conversation_id = conversation_id
        self.sent: list[list[Message]] = []
        self.asked: list[dict[str, Any]] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        self.sent.append(list(messages))
        self.asked.append({**options, **kwargs})
        said = self.script.pop(0) if self.script else "Done."
        contents = [Content.from_text(said)] if isinstance(said, str) else said

        async def whole() -> ChatResponse:
            return ChatResponse(
                messages=[Message("assistant", list(contents))], conversation_id=self.conversation_id, response_id="r"
            )

        async def pieces() -> AsyncIterator[ChatResponseUpdate]:
            for content in contents:
                yield ChatResponseUpdate(contents=[content], role="assistant", conversation_id=self.conversation_id)

        return self._build_response_stream(pieces()) if stream else whole()


async def run(agent: Agent[Any], messages: Any, *, stream: bool = False, **named: Any) -> AgentResponse:
    """Run an agent to its end."""
    if not stream:
        return await agent.run(messages, **named)
    return await agent.run(messages, stream=True, **named).get_final_response()


def call(
    call_id: str,
    name: str = "tides",
    arguments: Any = "{}",
    *,
    hosted: bool = False,
    informational_only: bool = False,
    **more: Any,
) -> Content:
    """Return a call; `hosted`, the service runs it (older releases have no such arguments, and no such calls)."""
    content = Content.from_function_call(call_id, name, arguments=arguments, **more)
    content.hosted, content.informational_only = hosted, informational_only
    return content


def result(call_id: str, text: Any = "06:12", **more: Any) -> Content:
    return Content.from_function_result(call_id, result=text, **more)


@tool
def tides(port: str = "Dover") -> str:
    """Look up the high tide."""
    return f"06:12 in {port}"


def _message(step: Step) -> list[Message]:
    match step:
        case ("user" | "system" as role, text):
            return [Message(role, [text])]
        case ("say", text):
            return [Message("assistant", [text] if text else [])]
        case ("think", text):
            return [Message("assistant", [Content.from_text_reasoning(text="hm", protected_data="s"), text])]
        case ("turn", calls):
            return [Message("assistant", [call(*each) for each in calls])]
        case ("result", call_id, _, text):
            return [Message("tool", [result(call_id, text)])]
        case ("mixed", results, text):
            return [Message("tool", [result(call_id, said) for call_id, _, said in results]), Message("user", [text])]
    raise AssertionError(step)


def write(steps: Sequence[Step]) -> list[Message]:
    """Return the history `steps` in the framework's messages."""
    return [message for step in steps for message in _message(step)]


def flat(messages: Sequence[Message]) -> list[tuple[Any, ...]]:
    """Return what a history says, content by content."""
    return [_atom(message, content) for message in messages for content in message.contents]


def _atom(message: Message, content: Content) -> tuple[Any, ...]:
    match content.type:
        case "function_call":
            return ("call", content.call_id, content.name)
        case "function_result":
            return ("result", content.call_id, content.result)
    return ("text", message.role, content.text)
