"""A model that gives outputs one after the other. The SDK has one, but not in its releases before 0.21."""

import json
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

from agents import Model, ModelResponse, Usage
from openai.types.responses import (
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
)


def assistant_message(text: str) -> ResponseOutputMessage:
    said = ResponseOutputText(text=text, type="output_text", annotations=[], logprobs=[])
    return ResponseOutputMessage(id="msg_1", type="message", role="assistant", status="completed", content=[said])


def function_call(name: str, arguments: str | Mapping[str, Any], *, call_id: str) -> ResponseFunctionToolCall:
    written = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return ResponseFunctionToolCall(
        id=call_id, call_id=call_id, type="function_call", name=name, arguments=written, status="completed"
    )


class ScriptedModel(Model):
    """Gives the outputs `steps`, one at each call, and keeps the inputs."""

    def __init__(self, steps: Iterable[Sequence[Any]], usage: Usage | None = None) -> None:
        self._steps, self.usage = iter(steps), usage or Usage()
        self.inputs: list[Any] = []

    async def get_response(self, system_instructions: Any, input: Any, *args: Any, **named: Any) -> ModelResponse:  # noqa: A002 - the SDK's name
        self.inputs.append(input)
        return ModelResponse(output=list(next(self._steps)), usage=self.usage, response_id="resp_1")

    async def stream_response(
        self,
        system_instructions: Any,
        input: Any,  # noqa: A002 - as above
        *args: Any,
        **named: Any,
    ) -> AsyncIterator[Any]:
        self.inputs.append(input)
        fixed: Any = {"created_at": 0, "model": "scripted", "object": "response", "parallel_tool_calls": True}
        response = Response(
            id="resp_1", output=list(next(self._steps)), tool_choice="auto", tools=[], usage=None, **fixed
        )
        yield ResponseCompletedEvent(type="response.completed", response=response, sequence_number=0)
