"""Models of your own, in several forms, and one around another."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass, field
from typing import assert_type

from suture import ChatModelAgent, Delta, Message, Model, ModelRequest, ModelWrapper, TokenUsage, ToolCall, tool
from suture.messages import ResponseMeta
from suture.middleware import closing


@dataclass
class Remote:
    """Has `wire` and `profile` as fields."""

    url: str
    wire: str = "message"
    profile: str = "openai-chat"
    calls: int = field(default=0, init=False)

    async def stream(self, request: ModelRequest[Message]) -> AsyncGenerator[Delta | Message, None]:
        self.calls += 1
        yield Delta(reasoning="hm")
        if request.tool_infos and len(request.messages) == 1:
            name = request.tool_infos[0].name
            yield Delta(call_index=0, call_id="call_1", name=name, arguments="{}")
            yield Message.assistant(tool_calls=[ToolCall("call_1", name, "{}")])
            return
        yield Delta(usage=TokenUsage(total_tokens=3))
        yield Message("assistant", "at noon", response_meta=ResponseMeta(finish_reason="stop"))


class Fixed:
    """Has them as properties, and returns an iterator rather than being one."""

    @property
    def wire(self) -> str:
        return "message"

    @property
    def profile(self) -> str:
        return "pairing"

    def stream(self, request: ModelRequest[Message], /) -> AsyncIterator[Delta | Message]:
        return self._reply(request.options.get("answer", "yes"))

    async def _reply(self, answer: str) -> AsyncIterator[Delta | Message]:
        yield Message.assistant(answer)


class Explicit(Model[Message]):
    """Says that it is one."""

    @property
    def wire(self) -> str:
        return "message"

    @property
    def profile(self) -> str:
        return "pairing"

    async def stream(self, request: ModelRequest[Message], /) -> AsyncIterator[Delta | Message]:
        yield Message.assistant("explicit")


class Shouting(ModelWrapper[Message]):
    """Changes what comes out of another model."""

    async def stream(self, request: ModelRequest[Message], /) -> AsyncIterator[Delta | Message]:
        async with closing(self.inner.stream(request)) as stream:
            async for item in stream:
                if isinstance(item, Delta):
                    assert_type(item, Delta)
                    yield Delta(text=item.text.upper())
                else:
                    assert_type(item, Message)
                    yield Message.assistant(item.content.upper(), item.tool_calls)


@tool
def now() -> str:
    """Tell the time."""
    return "noon"


async def ask(model: Model[Message], question: str) -> str:
    result = await ChatModelAgent(name="asker", model=model, tools=[now]).run(question, options={"answer": "no"})
    return str(result.output)


async def main() -> None:
    remote = Remote("https://example.com")
    assert await ask(remote, "when?") == "at noon"
    assert remote.calls == 2
    assert await ask(Fixed(), "really?") == "no"
    assert await ask(Explicit(), "really?") == "explicit"
    assert await ask(Shouting(Fixed()), "really?") == "NO"
    models: list[Model[Message]] = [Remote("https://example.com"), Fixed(), Shouting(Explicit())]
    assert [model.wire for model in models] == ["message"] * 3


if __name__ == "__main__":
    asyncio.run(main())
