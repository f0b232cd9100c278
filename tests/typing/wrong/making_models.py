"""Wrong models, and wrong settings for their attempts."""

from collections.abc import AsyncIterator, Sequence

from suture import (
    Budget,
    Callbacks,
    ChatModelAgent,
    Component,
    Delta,
    Message,
    ModelFailoverConfig,
    ModelRequest,
    ModelRetryConfig,
    ModelWrapper,
    RetryContext,
    RetryDecision,
)
from suture.testing import ScriptedModel


class NoProfile:
    wire = "message"

    async def stream(self, request: ModelRequest[Message]) -> AsyncIterator[Delta | Message]:
        yield request.messages[-1]


class NoIterator:
    wire = "message"
    profile = "pairing"

    async def stream(self, request: ModelRequest[Message]) -> Message:
        return request.messages[-1]


class NoRequest:
    wire = "message"
    profile = "pairing"

    async def stream(self, messages: Sequence[Message]) -> AsyncIterator[Delta | Message]:
        yield messages[-1]


class Wrapped(ModelWrapper[Message]):
    async def stream(self, request: ModelRequest[Message]) -> AsyncIterator[Delta | Message]:
        async for item in self.inner.stream(request.messages):  # wrong: it is given the whole request
            yield item
        yield "done"  # wrong: a text is no message


ChatModelAgent(model=NoProfile())  # wrong: no profile
ChatModelAgent(model=NoIterator())  # wrong: it gives one message, not an iterator
ChatModelAgent(model=NoRequest())  # wrong: it does not take a request
ModelWrapper("gpt")  # wrong: a name is no model
Delta(txt="hi")  # wrong: it is called text

ScriptedModel([42])  # wrong: a number is no reply
speaks: ScriptedModel[Message] = ScriptedModel(["hi"], wire="agentic")  # wrong: another wire
ScriptedModel(["hi"], chunk=3)  # wrong: it is called chunk_size


def two(context: RetryContext[Message], attempt: int) -> bool:
    return context.attempt > attempt


def text(context: RetryContext[Message]) -> str:
    return f"{context.attempt}"


def judge(context: RetryContext[Message]) -> RetryDecision[Message]:
    if context.output.content:  # wrong: there may be no output
        return RetryDecision(again=True)  # wrong: it is called retry
    return RetryDecision(retry=True, modified_input_messages=["hi"])  # wrong: texts are no messages


def failed(component: Component, error: Exception, attempt: int) -> None:
    print(component.kind, error, attempt)


ModelRetryConfig(max_retries="3")  # wrong: a text is no number
ModelRetryConfig(should_retry=two)  # wrong: it is given one thing
ModelRetryConfig(should_retry=text)  # wrong: a text is no decision
ModelRetryConfig(backoff=str)  # wrong: it gives a text
ModelFailoverConfig(models=["gpt"])  # wrong: a name is no model
ModelFailoverConfig(models=[ScriptedModel([])], should_failover=text)  # wrong: a text is no decision
Budget(tokens=100)  # wrong: it is called total_tokens
Budget(cost=1, cost_of=str)  # wrong: it gives a text
Callbacks(on_error=failed)  # wrong: it is given two things
