"""Wrappers are coroutines with a sink: pieces go into it while a call runs, `proceed` returns the whole."""

import asyncio
import gc
import tracemalloc
from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Any, cast

import pytest

from suture import (
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ConfigError,
    Delta,
    Message,
    ModelRequest,
    ModelWrapper,
    ToolCallRequest,
    ToolResult,
    ToolsConfig,
    replace,
    tool,
)
from suture.events import (
    MessageDelta,
    MessageFinished,
    RetryScheduled,
    ToolDelta,
    ToolFinished,
    ToolRetried,
    ToolStarted,
)
from suture.messages import TextPart
from suture.middleware import AskModel, CallTool, EventSenderModelWrapper
from suture.testing import ScriptedModel
from tests.agent.lifecycle.drawing import draw
from tests.agent.lifecycle.recording import collect
from tests.agent.lifecycle.speech import MESSAGE


def text(*parts: str) -> ToolResult:
    return ToolResult(tuple(TextPart(part) for part in parts))


class Passing:
    """A sink that forwards all three, each piece changed by a function."""

    def __init__(self, outer: Any, change: Any = lambda piece: piece, said: list[str] | None = None) -> None:
        self.outer, self.change, self.said = outer, change, said if said is not None else []
        self.whole: Any = None

    async def open(self) -> None:
        self.said.append("open")
        await self.outer.open()

    async def write(self, piece: Any, /) -> None:
        self.said.append("write")
        await self.outer.write(self.change(piece))

    async def close(self) -> Any:
        self.said.append("close")
        self.whole = await self.outer.close()
        return self.whole


class Wrapping(ChatModelAgentMiddleware[Any]):
    """A middleware with a given `wrap_tool_call`."""

    def __init__(self, wrap: Any) -> None:
        self._wrap = wrap

    async def wrap_tool_call(self, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return await self._wrap(call, proceed)


class Streamable(ChatModelAgentMiddleware[Any]):
    """A middleware with the reference's hook for streaming tools; it puts two signs around the pieces."""

    def __init__(self, before: str = "", after: str = "") -> None:
        self._signs = before, after
        self.closed = 0

    def wrap_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
        async def around(arguments: str, **options: Any) -> AsyncIterator[str]:
            before, after = self._signs
            try:
                if before:
                    yield before
                async with aclosing(endpoint(arguments, **options)) as pieces:
                    async for piece in pieces:
                        yield piece
                if after:
                    yield after
            finally:
                self.closed += 1

        return around


@tool(name="work")
async def streaming() -> AsyncIterator[str]:
    """Say a, b, c."""
    for letter in "abc":
        yield letter


@tool(name="work")
async def plain() -> str:
    """Say abc."""
    return "abc"


def call(*middlewares: Any, work: Any = streaming, **choices: Any) -> tuple[list[Any], Any]:
    model = ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"])
    tools = ToolsConfig(tools=[work], tool_call_middlewares=choices.pop("outside", []))
    agent = ChatModelAgent(model=model, tools=tools, middlewares=middlewares, **choices)
    return asyncio.run(collect(agent.stream("go")))


def pieces(events: list[Any]) -> list[str]:
    return [event.result.text for event in events if isinstance(event, ToolDelta)]


def finished(events: list[Any]) -> str:
    (event,) = [event for event in events if isinstance(event, ToolFinished)]
    return event.text


def upper(piece: ToolResult) -> ToolResult:
    return text(piece.text.upper())


def test_the_innermost_opens_writes_and_closes_and_a_plain_tool_does_none_of_it():
    said: list[str] = []
    watching = Wrapping(lambda call, proceed: proceed(replace(call, sink=Passing(call.sink, said=said))))
    call(watching)
    assert said == ["open", "write", "write", "write", "close"]
    said.clear()
    events, _ = call(watching, work=plain)
    assert said == []
    assert pieces(events) == []
    assert finished(events) == "abc"


def test_every_wrapper_gets_the_same_whole_as_the_outer_sinks_made_it():
    wholes: list[ToolResult] = []

    def around(change: Any) -> Wrapping:
        async def wrap(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
            sink = Passing(call.sink, change)
            result = await proceed(replace(call, sink=sink))
            assert result is sink.whole
            wholes.append(result)
            return result

        return Wrapping(wrap)

    events, result = call(around(upper), around(lambda piece: text(f"<{piece.text}>")))
    assert [whole.text for whole in wholes] == ["<A><B><C>"] * 2
    assert wholes[0] is wholes[1]
    assert pieces(events) == ["<A>", "<B>", "<C>"]
    assert result.messages[2].content == finished(events) == "<A><B><C>"


def test_a_changed_result_goes_outward_and_the_pieces_stay_as_they_were_sent():
    seen: list[str] = []

    async def note(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        result = await proceed(call)
        seen.append(result.text)
        return result

    async def add(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return text((await proceed(call)).text + "!")

    events, result = call(Wrapping(note), Wrapping(add), Wrapping(note))
    assert seen == ["abc", "abc!"]
    assert pieces(events) == ["a", "b", "c"]
    assert result.messages[2].content == finished(events) == "abc!"


@pytest.mark.parametrize("work", [plain, streaming], ids=["plain", "streaming"])
def test_a_call_that_is_repeated_begins_anew_and_what_was_sent_is_taken_back(work: Any):
    async def again(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        await proceed(call)
        return await proceed(call)

    events, result = call(Wrapping(again), work=work)
    kinds = [type(event).__name__ for event in events if isinstance(event, ToolDelta | ToolRetried | ToolFinished)]
    streams = ["ToolDelta"] * 3
    assert kinds == (["ToolFinished"] if work is plain else [*streams, "ToolRetried", *streams, "ToolFinished"])
    assert len([event for event in events if isinstance(event, ToolStarted)]) == 1
    assert result.messages[2].content == "abc"


@pytest.mark.parametrize("outside", [True, False], ids=["retry outside of the sink", "retry inside of the sink"])
def test_a_stream_that_failed_midway_is_retried_without_its_first_pieces(outside: bool):
    tries: list[int] = []

    @tool(name="work")
    async def flaky() -> AsyncIterator[str]:
        """Fail the first time."""
        tries.append(1)
        yield f"try {len(tries)} "
        if len(tries) == 1:
            raise TimeoutError("slow")
        yield "done"

    async def retry(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        try:
            return await proceed(call)
        except TimeoutError:
            return await proceed(call)

    loud = Wrapping(lambda call, proceed: proceed(replace(call, sink=Passing(call.sink, upper))))
    ring = [Wrapping(retry), loud] if outside else [loud, Wrapping(retry)]
    events, result = call(*ring, work=flaky)
    told = [getattr(e, "result", None) for e in events if isinstance(e, ToolDelta | ToolRetried)]
    assert [each.text if each else None for each in told] == ["TRY 1 ", None, "TRY 2 ", "DONE"]
    assert result.messages[2].content == "TRY 2 DONE"


def test_a_sink_that_bounds_its_pieces_bounds_the_memory():
    @tool(name="work")
    async def flood() -> AsyncIterator[str]:
        """Give 100 MB."""
        for _ in range(1000):
            yield "x" * 100_000

    class Bounded(Passing):
        left = 50_000

        async def write(self, piece: ToolResult, /) -> None:
            if self.left:
                shown, self.left = piece.text[: self.left], max(0, self.left - len(piece.text))
                await self.outer.write(text(shown))

    async def bound(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return await proceed(replace(call, sink=Bounded(call.sink)))

    async def look(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        result = await proceed(call)
        assert len(result.text) == 50_000
        return result

    for ring in ([Wrapping(bound)], [Wrapping(look), Wrapping(bound), Wrapping(look)], [Wrapping(bound), Streamable()]):
        tracemalloc.start()
        _, result = call(*ring, work=suture_flags(flood))
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert len(result.messages[2].content) == 50_000
        assert peak < 10_000_000


def suture_flags(work: Any) -> Any:
    """Return the tool with a timeout and a retry: these stand between the ring and the tool."""
    return replace(work, timeout=600.0, retry=1)


def test_wrappers_see_the_exception_of_the_tool_and_the_result_keeps_what_came_before_it():
    @tool(name="work")
    async def broken() -> AsyncIterator[str]:
        """Fail midway."""
        yield "so far"
        raise OSError("disk full")

    caught: list[BaseException] = []

    async def note(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        try:
            return await proceed(call)
        except OSError as error:
            caught.append(error)
            raise

    events, result = call(Wrapping(note), Wrapping(note), work=broken, outside=[note])
    assert [str(error) for error in caught] == ["disk full"] * 3
    assert result.messages[2] == MESSAGE.result("c1", "work", "so far\nOSError: disk full", is_error=True)
    assert finished(events) == "so far\nOSError: disk full"


@pytest.mark.parametrize("change", [{"name": "other"}, {"call_id": "c2"}], ids=["name", "call_id"])
@pytest.mark.parametrize("inside", [True, False], ids=["a wrapper inside", "the tool inside"])
def test_the_name_and_the_id_of_a_call_cannot_be_changed(change: Any, inside: bool):
    changing = Wrapping(lambda call, proceed: proceed(replace(call, **change)))
    passing = Wrapping(lambda call, proceed: proceed(call))
    with pytest.raises(ConfigError, match="name or the id"):
        call(changing, *([passing] if inside else []), work=plain)


def test_hooks_of_both_forms_are_one_ring_in_the_order_of_the_list():
    async def add(sign: str, call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return text((await proceed(call)).text + sign)

    events, result = call(
        Wrapping(lambda call, proceed: add("5", call, proceed)),
        Streamable("1", "4"),
        Wrapping(lambda call, proceed: proceed(replace(call, sink=Passing(call.sink, upper)))),
        Streamable("2", "3"),
    )
    assert pieces(events) == ["1", "2", "A", "B", "C", "3", "4"]
    assert result.messages[2].content == finished(events) == "12ABC345"


@pytest.mark.parametrize("changes", [True, False], ids=["a hook that changes pieces", "a hook that passes them on"])
def test_what_a_wrapper_returns_inside_a_streaming_hook_of_the_reference_is_not_lost(changes: bool):
    hook = Streamable("(", ")") if changes else Streamable()

    async def redact(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        result = await proceed(call)
        return text(result.text.replace("b", "*"))

    events, result = call(hook, Wrapping(redact))
    assert result.messages[2].content == finished(events) == ("(a*c)" if changes else "a*c")


def test_a_wrapper_that_answers_by_itself_inside_a_streaming_hook_gives_one_piece():
    async def answer(_call: ToolCallRequest, _proceed: CallTool) -> ToolResult:
        return text("cached")

    _, result = call(Streamable("(", ")"), Wrapping(answer))
    assert result.messages[2].content == "(cached)"


@pytest.mark.parametrize("changes", [True, False], ids=["a hook that changes pieces", "a hook that passes them on"])
@pytest.mark.parametrize("then", ["runs it again", "answers by itself"])
def test_a_stream_that_fails_inside_a_streaming_hook_of_the_reference_leaves_nothing(changes: bool, then: str):
    tries: list[int] = []

    @tool(name="work")
    async def flaky() -> AsyncIterator[str]:
        """Fail the first time."""
        tries.append(1)
        yield f"try {len(tries)} "
        if len(tries) == 1:
            raise TimeoutError("slow")
        yield "done"

    async def save(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        try:
            return await proceed(call)
        except TimeoutError:
            return await proceed(call) if then == "runs it again" else text("saved")

    events, result = call(Streamable("(", ")") if changes else Streamable(), Wrapping(save), work=flaky)
    holds = "try 2 done" if then == "runs it again" else "saved"
    assert result.messages[2].content == finished(events) == (f"({holds})" if changes else holds)
    assert any(isinstance(event, ToolRetried) for event in events)


@pytest.mark.parametrize("end", ["error", "timeout", "break"])
def test_a_bridged_stream_is_closed_however_it_ends(end: str):
    closed: list[str] = []

    @tool(name="work")
    async def endless() -> AsyncIterator[str]:
        """Never end by itself."""
        try:
            yield "first"
            if end == "error":
                raise OSError("disk full")
            await asyncio.Event().wait()
        finally:
            closed.append("tool")

    class Breaking(ChatModelAgentMiddleware[Any]):
        def wrap_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
            async def around(arguments: str, **options: Any) -> AsyncIterator[str]:
                async for piece in endpoint(arguments, **options):
                    yield piece
                    if end == "break":
                        return

            return around

    async def in_time(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        async with asyncio.timeout(0.01 if end == "timeout" else None):
            return await proceed(call)

    _, result = call(Breaking(), Wrapping(in_time), work=endless)
    assert closed == ["tool"]
    said = {"error": "first\nOSError: disk full", "timeout": "first\nTimeoutError", "break": "first"}
    assert result.messages[2].content == said[end]


def test_a_hook_of_the_reference_may_leave_a_stream_of_which_much_waits_to_be_read():
    async def main() -> Any:
        many = asyncio.Event()

        @tool(name="work")
        async def endless() -> AsyncIterator[str]:
            """Say more than anybody reads."""
            number = 0
            while number := number + 1:
                if number == 34:  # as many wait as may
                    many.set()
                yield str(number)

        class Leaving(ChatModelAgentMiddleware[Any]):
            def wrap_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
                async def around(arguments: str, **options: Any) -> AsyncIterator[str]:
                    async with aclosing(endpoint(arguments, **options)) as pieces:
                        yield await anext(pieces)
                        await many.wait()

                return around

        async def pass_on(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
            return await proceed(call)

        model = ScriptedModel([MESSAGE.calls(("c1", "work", "{}")), "done"])
        return await ChatModelAgent(model=model, tools=[endless], middlewares=[Leaving(), Wrapping(pass_on)]).run("go")

    assert asyncio.run(main()).messages[2].content == "1"


def test_an_error_of_a_stream_that_a_hook_of_the_reference_has_left_is_nobodys(caplog: pytest.LogCaptureFixture):
    failed = asyncio.Event()

    @tool(name="work")
    async def failing() -> AsyncIterator[str]:
        """Fail behind the first piece."""
        try:
            yield "first"
            raise OSError("disk full")
        finally:
            failed.set()

    class Leaving(ChatModelAgentMiddleware[Any]):
        def wrap_streamable_tool_call(self, endpoint: Any, context: Any) -> Any:
            async def around(arguments: str, **options: Any) -> AsyncIterator[str]:
                async with aclosing(endpoint(arguments, **options)) as pieces:
                    yield await anext(pieces)
                    await failed.wait()
                    await asyncio.sleep(0)  # the task that ran it ends, too

            return around

    async def pass_on(call: ToolCallRequest, proceed: CallTool) -> ToolResult:
        return await proceed(call)

    _, result = call(Leaving(), Wrapping(pass_on), work=failing)
    gc.collect()
    assert result.messages[2].content == "first"
    assert caplog.messages == []


def test_two_texts_of_one_piece_stay_two_and_a_text_that_goes_on_in_the_next_piece_is_one():
    @tool(name="work")
    async def pages() -> AsyncIterator[ToolResult]:
        """Read two pages."""
        yield text("page ")
        yield text("one", "page two")

    events, _ = call(work=pages)
    (event,) = [event for event in events if isinstance(event, ToolFinished)]
    assert event.result == text("page one", "page two")


# Models


class Asking(ChatModelAgentMiddleware[Any]):
    """A middleware with a given `wrap_model_call`."""

    def __init__(self, wrap: Any) -> None:
        self._wrap = wrap

    async def wrap_model_call(self, request: ModelRequest[Any], proceed: AskModel) -> Any:
        return await self._wrap(request, proceed)


class Signed(ModelWrapper[Any]):
    """A model of the reference's form that signs the request and the reply."""

    sign = ""

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        request = replace(request, instruction=request.instruction + self.sign)
        async with aclosing(cast("Any", self.inner).stream(request)) as parts:
            async for part in parts:
                yield part if isinstance(part, Delta) else Message.assistant(part.content + self.sign)


class Signing(ChatModelAgentMiddleware[Any]):
    def __init__(self, sign: str) -> None:
        self._sign = sign

    def wrap_model(self, model: Any, model_context: Any) -> Any:
        signed = Signed(model)
        signed.sign = self._sign
        return signed


def ask(*middlewares: Any, **choices: Any) -> tuple[list[Any], Any, ScriptedModel]:
    model = ScriptedModel(["hello"], chunk_size=2)
    agent = ChatModelAgent(model=model, middlewares=middlewares, **choices)
    return *asyncio.run(collect(agent.stream("go"))), model


def deltas(events: list[Any]) -> list[str]:
    return [event.text for event in events if isinstance(event, MessageDelta)]


def test_wrappers_of_a_model_of_both_forms_are_one_ring_in_the_order_of_the_list():
    def sign(letter: str) -> Asking:
        async def wrap(request: ModelRequest[Any], proceed: AskModel) -> Any:
            reply = await proceed(replace(request, instruction=request.instruction + letter))
            return Message.assistant(reply.content + letter)

        return Asking(wrap)

    events, result, model = ask(sign("1"), Signing("2"), sign("3"), Signing("4"))
    assert model.requests[0].instruction == "1234"
    assert result.output == "hello4321"
    assert deltas(events) == ["he", "ll", "o"]
    assert [event.text for event in events if isinstance(event, MessageFinished)] == ["hello4321"]


@pytest.mark.parametrize("bridged", [True, False], ids=["inside wrap_model", "alone"])
def test_a_sink_that_changes_deltas_does_not_change_the_message_of_a_model(bridged: bool):
    def loud(delta: Delta) -> Delta:
        return replace(delta, text=delta.text.upper())

    wrapper = Asking(lambda request, proceed: proceed(replace(request, sink=Passing(request.sink, loud))))
    events, result, _ = ask(*([Signing("")] if bridged else []), wrapper)
    assert deltas(events) == ["HE", "LL", "O"]
    assert result.output == "hello"


def test_a_wrapper_of_a_model_may_answer_by_itself_and_the_model_is_not_asked():
    async def answer(_request: ModelRequest[Any], _proceed: AskModel) -> Any:
        return Message.assistant("cached")

    events, result, model = ask(Signing("!"), Asking(answer))
    assert model.requests == []
    assert result.output == "cached!"
    assert deltas(events) == []


async def twice(request: ModelRequest[Any], proceed: AskModel) -> Any:
    await proceed(request)
    return await proceed(request)


around_twice = pytest.mark.parametrize(
    "stack",
    [
        [Asking(twice)],
        [Signing(""), Asking(twice)],
        [Asking(twice), Signing("")],
        [Asking(twice), EventSenderModelWrapper()],
        [EventSenderModelWrapper(), Asking(twice)],
    ],
    ids=["alone", "inside wrap_model", "around wrap_model", "around a sender", "inside a sender"],
)


@around_twice
def test_what_was_sent_of_a_reply_is_taken_back_when_a_wrapper_asks_again(stack: list[Any]):
    agent = ChatModelAgent(model=ScriptedModel(["first", "second"], chunk_size=3), middlewares=stack)
    events, result = asyncio.run(collect(agent.stream("go")))
    (drawing,) = draw(events, MESSAGE).values()
    assert deltas(events) == ["fir", "st", "sec", "ond"]
    assert len([event for event in events if isinstance(event, RetryScheduled)]) == 1
    assert list(drawing.texts.values()) == ["second"]
    assert drawing.messages == list(result.messages[1:]) == [Message.assistant("second")]


@around_twice
def test_the_part_of_a_cut_reply_in_the_history_holds_nothing_of_the_reply_before_it(stack: list[Any]):
    whole = ScriptedModel(["first"], chunk_size=3)
    cut = ScriptedModel(["second"], chunk_size=3, cut_after=1)

    class SecondIsCut(ModelWrapper[Any]):
        def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
            return (cut if whole.requests else whole).stream(request)

    async def main() -> Any:
        async with ChatModelAgent(model=SecondIsCut(whole), middlewares=stack).stream("go") as run:
            with pytest.raises(ConnectionError):
                await run.result()
            return run.final_result

    assert [message.content for message in asyncio.run(main()).messages] == ["go", "sec"]
