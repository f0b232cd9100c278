"""A model that answers from a list, and keeps what it is sent."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel


class Recorder(FunctionModel):
    """Gives `replies` one by one, then says "done"; `requests` are the messages of each request."""

    def __init__(self, *replies: ModelResponse, system: str = "function") -> None:
        super().__init__(self._answer, stream_function=self._stream)
        self._system = system
        self._replies = list(replies)
        self.requests: list[list[ModelMessage]] = []

    @property
    def sent(self) -> list[ModelMessage]:
        """The only request."""
        (messages,) = self.requests
        return messages

    def _next(self, messages: Sequence[ModelMessage]) -> ModelResponse:
        self.requests.append(list(messages))
        return self._replies.pop(0) if self._replies else ModelResponse([TextPart("done")])

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        del info
        return self._next(messages)

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        del info
        for place, part in enumerate(self._next(messages).parts):
            if isinstance(part, ToolCallPart):
                yield {place: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}
            elif isinstance(part, TextPart):
                yield part.content
