"""Middlewares and model wrappers for agents of any message type."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar, assert_type

from suture import (
    AgenticMessage,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    Delta,
    Message,
    Model,
    ModelContext,
    ModelRequest,
    ModelWrapper,
    replace,
)
from suture.middleware import EventSenderModelWrapper, EventSenderToolWrapper, PatchToolCalls
from suture.testing import ScriptedModel

M = TypeVar("M")


class Counted(ModelWrapper[M]):
    """Counts what a model says."""

    def __init__(self, inner: Model[M], count: Callable[[int], None]) -> None:
        super().__init__(inner)
        self.count = count

    async def stream(self, request: ModelRequest[M]) -> AsyncIterator[Delta | M]:
        pieces = 0
        async for item in super().stream(request):
            pieces += 1
            yield item
        self.count(pieces)


class KeepLast(ChatModelAgentMiddleware[M]):
    """Keeps the last messages only, and counts."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.pieces = 0

    def before_model_rewrite_state(
        self, state: ChatModelAgentState[M], model_context: ModelContext
    ) -> ChatModelAgentState[M] | None:
        if len(state.messages) <= self.keep:
            return None
        kept: ChatModelAgentState[M] = replace(state, messages=state.messages[-self.keep :])
        return kept

    def wrap_model(self, model: Model[M], model_context: ModelContext) -> Model[M]:
        return Counted(model, self._count)

    def _count(self, pieces: int) -> None:
        self.pieces += pieces


class Logged(ChatModelAgentMiddleware[Any]):
    """For any wire: it does not look into messages."""

    def before_model_rewrite_state(self, state: ChatModelAgentState[Any], model_context: ModelContext) -> None:
        print(model_context.wire, len(state.messages))


async def main() -> None:
    keep = KeepLast[Message](2)
    chat = ChatModelAgent(
        name="chat",
        model=ScriptedModel(["hello"]),
        middlewares=[PatchToolCalls(), EventSenderModelWrapper(), EventSenderToolWrapper(), Logged(), keep],
    )
    assert_type(chat, ChatModelAgent[str])
    result = await chat.run([Message.user("a"), Message.assistant("b"), Message.user("c")])
    assert [message.content for message in result.messages] == ["b", "c", "hello"]
    assert keep.pieces == 1

    agentic = ChatModelAgent(
        name="agentic", model=ScriptedModel(["hello"], wire="agentic"), middlewares=[KeepLast(2), Logged()]
    )
    assert_type(agentic, ChatModelAgent[str, AgenticMessage])
    await agentic.run("hi")


if __name__ == "__main__":
    asyncio.run(main())
