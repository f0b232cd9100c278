"""What a tool returned reaches the model as a result, whatever it is and whoever stands around the tool."""

import pickle
from collections.abc import AsyncIterator
from typing import Any

import pydantic
import pytest

from suture import Callbacks, ChatModelAgent, ChatModelAgentMiddleware, ToolInfo, ToolResult, tool
from suture.messages import ImagePart, TextPart
from suture.testing import ScriptedModel
from suture.tools import Tool
from tests.agent.tools.calling import model_that, on_each_wire, run, texts

IMAGE = ImagePart(url="https://example.com/cat.png")


class Receipt:
    def __str__(self) -> str:
        return "paid"


@on_each_wire
def test_a_payment_whose_receipt_is_no_json_is_not_made_again(wire: str):
    payments: list[int] = []

    def pay(euros: int):
        payments.append(euros)
        return Receipt()

    model = model_that(("pay", {"euros": 3}), wire=wire)
    run(model, pay)
    assert texts(model) == ["paid"]
    assert payments == [3]


VALUES = [
    ({"a": Receipt()}, ToolResult((TextPart('{"a":"paid"}'),))),
    (None, ToolResult((TextPart(""),))),
    (IMAGE, ToolResult((IMAGE,))),
    (["seen:", IMAGE], ToolResult((TextPart("seen:"), IMAGE))),
    (ToolResult([TextPart("no")], is_error=True), ToolResult([TextPart("no")], is_error=True)),
]


def hand_made(kind: Any, value: Any) -> Tool[..., Any]:
    async def at_once(*_: Any, **__: Any) -> Any:
        return value

    async def in_pieces(*_: Any, **__: Any) -> AsyncIterator[Any]:
        yield value

    return Tool(ToolInfo("look"), kind, in_pieces if kind.endswith("streamable") else at_once)


def made(kind: Any, value: Any) -> Tool[..., Any]:
    return tool(lambda: value, name="look", kind=kind)


class Shout(ChatModelAgentMiddleware[Any]):
    """Wraps tools in the forms of each kind, and changes texts."""

    async def wrap_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        async def call(arguments: str, **options: Any) -> str:
            return (await endpoint(arguments, **options)).upper()

        return call

    async def wrap_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
        async def call(arguments: str, **options: Any) -> AsyncIterator[str]:
            async for piece in endpoint(arguments, **options):
                yield piece.upper()

        return call

    async def wrap_enhanced_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
        async def call(argument: Any, **options: Any) -> ToolResult:
            return shouted(await endpoint(argument, **options))

        return call

    async def wrap_enhanced_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
        async def call(argument: Any, **options: Any) -> AsyncIterator[ToolResult]:
            async for piece in endpoint(argument, **options):
                yield shouted(piece)

        return call


class Around(ChatModelAgentMiddleware[Any]):
    async def wrap_tool_call(self, call: Any, proceed: Any) -> ToolResult:
        result = await proceed(call)
        assert isinstance(result, ToolResult)
        return result


def shouted(result: ToolResult) -> ToolResult:
    parts = [TextPart(part.text.upper()) if isinstance(part, TextPart) else part for part in result.parts]
    return ToolResult(parts, is_error=result.is_error)


def said(result: ToolResult) -> tuple[str, list[Any], bool]:
    media = [part for part in result.parts if not isinstance(part, TextPart)]
    return result.text, media, result.is_error


@pytest.mark.parametrize("kind", ["invokable", "streamable", "enhanced_invokable", "enhanced_streamable"])
@pytest.mark.parametrize("make", [made, hand_made])
@pytest.mark.parametrize(("value", "result"), VALUES)
@pytest.mark.parametrize("around", [[], [Around()], [Shout()], [Around(), Shout()], [Shout(), Around()]])
@pytest.mark.parametrize("observed", [False, True])
def test_any_value_of_any_kind_of_tool_passes_the_ring(
    kind: str, make: Any, value: Any, result: ToolResult, around: list[Any], observed: bool
):
    ends: list[Any] = []
    callbacks = Callbacks(on_end=lambda _, ended: ends.append(ended), kinds=frozenset(("tool",)))
    shouts = any(isinstance(each, Shout) for each in around)
    finished: list[ToolResult] = []

    class Watch(ChatModelAgentMiddleware[Any]):
        async def wrap_tool_call(self, call: Any, proceed: Any) -> ToolResult:
            finished.append(await proceed(call))
            return finished[-1]

    options: dict[str, Any] = {"callbacks": callbacks} if observed else {}
    done = run(model_that(("look", {})), make(kind, value), middlewares=[Watch(), *around], **options)
    expected = shouted(result) if shouts else result
    assert said(finished[0]) == said(expected)
    assert pickle.loads(pickle.dumps(done.messages[2])) == done.messages[2]
    if observed:
        assert said(ends[0]) == said(result)


class Answer(pydantic.BaseModel):
    port: str


@pytest.mark.parametrize(
    ("output_type", "reply", "text"),
    [(str, "Dover", "Dover"), (Answer, '{"port": "Dover"}', '{"port":"Dover"}'), (list[int], "[1, 2]", "[1,2]")],
)
def test_the_answer_of_an_agent_inside_is_a_result(output_type: Any, reply: str, text: str):
    inner = ChatModelAgent(name="ask", description="Asks.", model=ScriptedModel([reply]), output_type=output_type)
    model = model_that(("ask", {"request": "which port?"}))
    run(model, inner.as_tool())
    assert texts(model) == [text]
