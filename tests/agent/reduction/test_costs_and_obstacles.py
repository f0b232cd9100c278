"""What reducing costs, and what becomes of it when something stands in the way."""

import asyncio
import gc
import pickle
from collections.abc import AsyncIterable, AsyncIterator, Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, ConfigError, OffloadError, tool
from suture.messages import Message, TextPart, ToolCall, ToolResult
from suture.middleware import ToolReduction, ToolReductionConfig, TruncResult
from suture.reduction import plan
from suture.stores import LocalBackend, MemoryBackend, MemoryStore, PathTakenError
from suture.testing import ScriptedModel
from suture.wires import get_wire
from tests.agent.durability.scenes import play, start
from tests.agent.durability.scenes import turn as asking
from tests.agent.reduction._backends import as_bytes, fetch
from tests.agent.reduction._tooling import Seen, drive, each_kind, made, on_each_wire, text_of

# Errors


def boom(_: Any) -> Any:
    raise KeyError("x")


def test_an_offload_error_can_be_pickled():
    error = OffloadError([("look", "c1"), ("peek", "c2")], "the disk is full")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is OffloadError
    assert (again.calls, again.reason, str(again)) == (error.calls, error.reason, str(error))


class Listening(ChatModelAgentMiddleware[Any]):
    """Keeps the errors that pass it."""

    def __init__(self) -> None:
        self.heard: list[Exception] = []

    async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        try:
            return await proceed(call)
        except Exception as error:
            self.heard.append(error)
            raise


@on_each_wire
def test_the_error_of_a_trunc_handler_says_whose_it_is(wire: str):
    async def scene() -> None:
        listening = Listening()
        config = {"dump": ToolReductionConfig(trunc_handler=boom)}
        reduction = ToolReduction(MemoryBackend(), tool_config=config)
        await drive([listening, reduction], [made("invokable", "good")], [("c0", "dump")], wire=wire)
        (error,) = listening.heard
        assert isinstance(error, KeyError)
        assert error.__notes__ == ["raised by the trunc_handler of dump"]

    play(scene())


@pytest.mark.parametrize(
    ("handler", "own"),
    [
        ("trunc_handler", ToolReductionConfig(trunc_handler=boom)),
        ("clear_handler", ToolReductionConfig(clear_handler=boom)),
    ],
)
def test_the_error_of_a_handler_says_so_outside_of_agents_too(handler: str, own: ToolReductionConfig):
    past: list[Any] = []
    for number in range(2):
        call_id = f"c{number}"
        past += [Message.assistant(tool_calls=[ToolCall(call_id, "f")]), Message.tool("x" * 60_000, call_id)]
    with pytest.raises(KeyError) as caught:
        plan(past, max_tokens_for_clear=10, tool_config={"f": own})
    assert caught.value.__notes__ == [f"raised by the {handler} of f"]


# A handler of streams


class Source:
    """A tool that streams, and knows whether its stream was closed."""

    def __init__(self) -> None:
        self.closed = asyncio.Event()

    def tool(self) -> Any:
        async def give() -> AsyncIterator[str]:
            try:
                for _ in range(100):
                    yield "x" * 1_000
            finally:
                self.closed.set()

        return tool(name="dump", description="Dump.")(give)


async def taking_half(detail: Any) -> TruncResult:
    """Leave a stream in the middle; save to one and the same path, always."""
    if detail.stream_tool_result is None:
        return TruncResult()
    count = 0
    async for _ in detail.stream_tool_result:
        count += 1
        if count > 50:
            break

    async def short() -> AsyncIterator[ToolResult]:
        yield ToolResult((TextPart("short"),))

    return TruncResult(
        need_trunc=True,
        stream_tool_result=short(),
        need_offload=True,
        offload_file_path="/mine",
        offload_content="all",
    )


HALVING = {"dump": ToolReductionConfig(trunc_handler=taking_half)}


@on_each_wire
def test_a_handler_of_streams_that_names_a_taken_path_is_told_so(wire: str):
    async def scene() -> None:
        backend, source = MemoryBackend(), Source()
        await backend.write("/mine", "other")
        reduction = ToolReduction(backend, tool_config=HALVING)
        seen = await drive(reduction, [source.tool()], [("c1", "dump")], wire=wire)
        assert isinstance(seen.error, ConfigError)
        assert "trunc_handler of dump" in str(seen.error)
        assert "/mine" in str(seen.error)
        assert source.closed.is_set()
        assert await fetch(backend, "/mine") == b"other"

    play(scene())


@pytest.mark.parametrize("how", ["the run", "who waits for it"])
@on_each_wire
def test_a_run_that_is_cancelled_while_a_handlers_output_is_saved_closes_the_tools_stream(wire: str, how: str):
    class Slow(MemoryBackend):
        def __init__(self) -> None:
            super().__init__()
            self.reached = asyncio.Event()

        async def write(self, path: str, content: str | bytes) -> None:
            self.reached.set()
            await asyncio.Event().wait()

    async def scene() -> None:
        backend, source = Slow(), Source()
        model: ScriptedModel[Any] = ScriptedModel([asking(("c1", "dump"), wire=wire), "done"], wire)
        reduction = ToolReduction(backend, tool_config=HALVING)
        run = ChatModelAgent(model=model, tools=[source.tool()], middlewares=[reduction]).stream("go")
        waiting = start(run)
        await backend.reached.wait()
        if how == "the run":
            assert (await run.cancel()).outcome == "cancelled"
            await waiting
        else:
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert source.closed.is_set()

    gc.disable()  # which would close it as well, some time
    try:
        play(scene())
    finally:
        gc.enable()


# What it costs


class Weighing(MemoryStore):
    """Knows how many bytes it was given."""

    weight = 0

    async def append(self, run: str, first: int, records: Sequence[bytes], *, owner: str | None = None) -> None:
        self.weight += sum(map(len, records))
        await super().append(run, first, records, owner=owner)


async def long_run(wire: str, steps: int, *, store: MemoryStore | None = None, **settings: Any) -> ScriptedModel[Any]:
    """Run an agent that calls a tool so often, each result too long."""
    script: list[Any] = [asking((f"call_{1_000 + number}", "dump"), wire=wire) for number in range(steps)]
    model: ScriptedModel[Any] = ScriptedModel([*script, "done"], wire)
    agent = ChatModelAgent(
        model=model,
        tools=[made("invokable", "x" * 2_000)],
        max_iterations=steps + 5,
        checkpoint_store=store,
        middlewares=[ToolReduction(MemoryBackend(), root_dir="/r", max_length_for_trunc=1_000, **settings)],
    )
    await agent.run("go", checkpoint_id=None if store is None else "c")
    return model


@on_each_wire
def test_what_a_step_adds_to_the_journal_does_not_grow_with_the_steps_before_it(wire: str):
    async def scene() -> None:
        weights: list[int] = []
        for steps in (20, 60, 100, 140):
            store = Weighing()
            await long_run(wire, steps, store=store, max_tokens_for_clear=200)
            weights.append(store.weight)
        _, early, _, late = (after - before for before, after in zip([0, *weights], weights, strict=False))
        assert late <= early * 1.02

    play(scene(), patience=60)


@on_each_wire
def test_old_messages_are_not_looked_at_again_at_each_step(wire: str, monkeypatch: pytest.MonkeyPatch):
    """What is done for 160 steps is twice what is done for 80; it would be four times as much."""
    looks = 0

    def counted(look: Callable[..., Any]) -> Callable[..., Any]:
        def looking(*arguments: Any, **options: Any) -> Any:
            nonlocal looks
            looks += 1
            return look(*arguments, **options)

        return looking

    kind = type(get_wire(wire))
    for name in ("view", "words"):
        monkeypatch.setattr(kind, name, counted(getattr(kind, name)))

    async def scene() -> None:
        nonlocal looks
        spent: list[int] = []
        for steps in (80, 160):
            looks = 0
            await long_run(wire, steps)
            spent.append(looks)
        assert spent[0] >= 80
        assert spent[1] <= spent[0] * 2.1

    play(scene(), patience=60)


@on_each_wire
def test_each_message_is_counted_once(wire: str):
    class Recording:
        def __init__(self) -> None:
            self.counted: list[Any] = []

        def count(self, message: Any) -> int:
            self.counted.append(message)
            return 10

    async def scene() -> None:
        counter = Recording()
        model = await long_run(wire, 50, token_counter=counter)
        assert len(counter.counted) == len(model.requests[-1].messages) == 101

    play(scene(), patience=60)


# Something stands in the way

ATTEMPTS = 8


class Blocked(LocalBackend):
    """A directory in which a file stands where a directory is needed; it knows what was tried."""

    def __init__(self, root: Path) -> None:
        (root / "r").mkdir(parents=True)
        for phase in ("trunc", "clear"):
            (root / "r" / phase).write_text("x")
        super().__init__(root)
        self.tried: list[str] = []

    async def write(self, path: str, content: str | bytes) -> None:
        self.tried.append(path)
        await super().write(path, content)

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        self.tried.append(path)
        return await super().write_stream(path, chunks)


class Taken(MemoryBackend):
    """A backend of which every path is taken."""

    def __init__(self) -> None:
        super().__init__()
        self.tried: list[str] = []

    async def write(self, path: str, content: str | bytes) -> None:
        self.tried.append(path)
        raise PathTakenError(path, "taken")


CLEARING = {"skip_truncation": True, "max_tokens_for_clear": 1_000}


async def patiently(backend: Any, kind: str, rounds: int, **settings: Any) -> Seen:
    """Run an agent whose output has nowhere to go."""
    reduction = ToolReduction(backend, root_dir="/r", **settings)
    calls = [[(f"c{number}", "dump")] for number in range(rounds)]
    async with asyncio.timeout(60):
        return await drive(reduction, [made(kind, *[text_of(6_000)] * 15)], *calls)


@each_kind
def test_a_file_in_the_way_of_a_directory_ends_the_run_after_a_few_attempts(kind: str, tmp_path: Path):
    async def scene() -> None:
        backend = Blocked(tmp_path / "bd")
        seen = await patiently(backend, kind, 1)
        assert isinstance(seen.error, OffloadError)
        assert seen.error.calls == (("dump", "c0"),)
        assert "a file stands where it needs a directory" in str(seen.error)
        assert 1 <= len(backend.tried) == len(set(backend.tried)) <= ATTEMPTS
        assert len(seen.model.requests) == 1

    play(scene(), patience=30)


@each_kind
def test_a_file_in_the_way_of_clearing_ends_the_run_after_a_few_attempts(kind: str, tmp_path: Path):
    async def scene() -> None:
        backend = Blocked(tmp_path / "bd")
        seen = await patiently(backend, kind, 3, **CLEARING)
        assert isinstance(seen.error, OffloadError)
        assert seen.error.calls == (("dump", "c0"),)
        assert len(backend.tried) == len(set(backend.tried)) == ATTEMPTS
        assert seen.kept == [text_of(6_000) * 15] * 2

    play(scene(), patience=30)


@pytest.mark.parametrize("settings", [{}, CLEARING], ids=["truncating", "clearing"])
@each_kind
def test_with_a_file_in_the_way_a_run_that_is_to_continue_does_and_says_so_once_for_each_call(
    kind: str, settings: dict[str, Any], tmp_path: Path
):
    async def scene() -> None:
        backend = Blocked(tmp_path / "bd")
        seen = await patiently(backend, kind, 3, on_backend_error="continue", **settings)
        seen.unharmed()
        told = [event.data["calls"] for event in seen.custom()]
        assert {event.name for event in seen.custom()} == {"tool_output_not_saved"}
        calls = [("dump", f"c{number}") for number in range(1 if settings else 3)]
        assert [tuple(map(tuple, each)) for each in told] == [(call,) for call in calls]
        assert len(backend.tried) <= 2 * 3 * ATTEMPTS
        if settings:
            assert seen.kept == seen.sent() == [text_of(6_000) * 15] * 3

    play(scene(), patience=30)


@pytest.mark.parametrize(("rounds", "settings"), [(1, {}), (3, CLEARING)], ids=["truncating", "clearing"])
def test_a_backend_that_has_every_path_already_is_asked_a_few_times_and_no_more(rounds: int, settings: dict[str, Any]):
    async def scene() -> None:
        backend = Taken()
        seen = await patiently(backend, "invokable", rounds, **settings)
        assert isinstance(seen.error, OffloadError)
        assert len(backend.tried) == len(set(backend.tried)) == ATTEMPTS

    play(scene(), patience=30)


@pytest.mark.parametrize("count", range(1, ATTEMPTS))
def test_as_long_as_one_of_the_attempts_finds_a_free_path_nothing_is_wrong(count: int):
    class Crowded(Taken):
        async def write(self, path: str, content: str | bytes) -> None:
            if len(self.tried) == count:
                await MemoryBackend.write(self, path, content)
            else:
                await super().write(path, content)

    async def scene() -> None:
        backend = Crowded()
        seen = await patiently(backend, "invokable", 1)
        seen.unharmed()
        (path,) = await backend.paths()
        assert path in seen.text
        assert await fetch(backend, path) == as_bytes(text_of(6_000) * 15)

    play(scene(), patience=30)
