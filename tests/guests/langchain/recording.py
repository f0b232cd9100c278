"""Chat models without a provider: they say what they are told to say, and remember what they were sent."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import Field

Reply = AIMessage | Callable[[Sequence[BaseMessage]], AIMessage]


class RecordingModel(BaseChatModel):
    """Gives its replies in order, then "done" for ever; a function as a reply is asked with what was sent."""

    replies: list[Any] = Field(default_factory=list)
    sent: list[list[BaseMessage]] = Field(default_factory=list)
    """What came in, newest last."""
    tools: list[Any] = Field(default_factory=list)
    """The tools of the latest request."""

    @property
    def _llm_type(self) -> str:
        return "recording"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> "RecordingModel":
        self.tools[:] = tools
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.sent.append(list(messages))
        reply = self.replies.pop(0) if self.replies else AIMessage("done")
        made: Any = reply(messages) if callable(reply) else reply
        return ChatResult(generations=[ChatGeneration(message=made)])

    async def _agenerate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        await asyncio.sleep(0)
        return self._generate(messages)

    @property
    def tool_names(self) -> list[str]:
        return [tool["name"] if isinstance(tool, dict) else tool.name for tool in self.tools]


def call(identity: Any, name: str = "pay", **args: Any) -> dict[str, Any]:
    return {"name": name, "args": args, "id": identity, "type": "tool_call"}


def asks(*calls: Any, text: str = "") -> AIMessage:
    """Return a turn with these calls; a string is the id of a call of `pay`."""
    return AIMessage(text, tool_calls=[call(each) if isinstance(each, str | None) else each for each in calls])
