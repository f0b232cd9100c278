"""Hooks called by hand or overridden, decisions that stand, names that do not run out, work that is bounded."""

import asyncio
import subprocess
import sys
import tracemalloc
from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path
from typing import Any, cast

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, Message, ToolArgument, ToolCall, ToolResult, replace, tool
from suture.events import Custom
from suture.kernel import ChatModelAgentState, ModelContext, ToolCallRequest
from suture.messages import ImagePart, TextPart
from suture.middleware import ClearResult, ToolDetail, ToolReduction, ToolReductionConfig
from suture.reduction import Saved, plan
from suture.reduction.draft import PROCESSED, SAVED
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel
from tests.agent.reduction._backends import as_bytes, paths, saved
from tests.agent.reduction._notices import path_in
from tests.agent.reduction._tooling import drive, each_kind, made, on_each_wire, play, said, text_of

LONG = text_of(3_000)
LIMIT = 100


def rounds(*texts: str, name: str = "weather") -> list[Any]:
    """Return a history: one round for each of these outputs."""
    history: list[Any] = [Message.user("q")]
    for number, text in enumerate(texts):
        call = ToolCall(f"c{number}", name, '{"city": "Rome"}')
        history += [Message.assistant(tool_calls=[call]), Message.tool(text, call.id, name)]
    return history


# Decisions


def longer(detail: ToolDetail) -> ClearResult:
    """Decide on something that is longer than what there was."""
    return ClearResult(
        need_clear=True,
        tool_argument=ToolArgument('{"city": "(saved, see below)"}'),
        tool_result=ToolResult([TextPart("saved to /w/" + detail.tool_context.call_id + ", all of it")]),
        need_offload=True,
        offload_file_path=f"/w/{detail.tool_context.call_id}",
        offload_content="Sunny",
    )


def test_what_a_clear_handler_decides_stands_also_if_the_history_gets_longer():
    config = {"weather": ToolReductionConfig(clear_handler=longer)}
    made_plan = plan(rounds("Sunny", "Wet"), max_tokens_for_clear=5, tool_config=config)
    assert [change.call_id for change in made_plan.changes] == ["c0"]
    assert made_plan.tokens_freed < 0
    backend = MemoryBackend()
    reduction = ToolReduction(backend, max_tokens_for_clear=5, tool_config=config)
    agent = ChatModelAgent(model=ScriptedModel(["ok"]), middlewares=[reduction])
    result = agent.run_sync(rounds("Sunny", "Wet"))
    assert result.messages[1].tool_calls[0].arguments == '{"city": "(saved, see below)"}'
    assert saved(backend, "/w/c0") == b"Sunny"


def test_a_minimum_still_holds_for_what_a_handler_decides():
    config = {"weather": ToolReductionConfig(clear_handler=longer)}
    history = rounds("Sunny", "Wet")
    kept = plan(history, max_tokens_for_clear=5, clear_at_least_tokens=1, tool_config=config)
    assert kept.messages is history


def test_a_round_of_which_a_handler_wants_nothing_cleared_is_not_asked_about_again():
    asked: list[str] = []

    def no(detail: ToolDetail) -> ClearResult:
        asked.append(detail.tool_context.call_id)
        return ClearResult(need_clear=False)

    def agent() -> Any:
        config = {"weather": ToolReductionConfig(clear_handler=no)}
        reduction = ToolReduction(MemoryBackend(), max_tokens_for_clear=5, tool_config=config)
        return ChatModelAgent(model=ScriptedModel(["ok"]), middlewares=[reduction])

    first = agent().run_sync(rounds("Sunny", "Wet", "Windy"))
    assert asked == ["c0", "c1"]
    assert [bool(message.extra.get(PROCESSED)) for message in first.messages[1:6:2]] == [True, True, False]
    agent().run_sync([*first.messages, Message.user("again")])
    assert asked == ["c0", "c1"]


def test_a_round_that_nobody_was_asked_about_is_not_marked_for_nothing():
    history = rounds("Sunny", "Wet", "Windy")
    assert plan(history, max_tokens_for_clear=5).messages is history


# Hooks are ordinary methods


class Noting(ToolReduction):
    """Overrides hooks and calls those of ToolReduction."""

    seen: list[str]

    async def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
        self.seen.append("before")
        return await super().before_model_rewrite_state(state, model_context)

    async def wrap_tool_call(self, call: Any, proceed: Any) -> ToolResult:
        self.seen.append(call.name)
        return await super().wrap_tool_call(call, proceed)


@each_kind
def test_a_subclass_that_overrides_a_hook_is_called_and_can_call_the_one_it_overrides(kind: str):
    noting = Noting(MemoryBackend(), max_length_for_trunc=LIMIT)
    object.__setattr__(noting, "seen", [])
    seen = play(noting, made(kind, LONG))
    assert noting.seen == ["before", "dump", "before"]
    assert "persisted-output" in seen.text


async def give(_: ToolCallRequest) -> ToolResult:
    """Do what a plain tool does."""
    return ToolResult([TextPart(LONG)])


def test_hooks_can_be_called_by_hand_outside_of_any_run():
    async def use() -> None:
        backend = MemoryBackend()
        reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT, max_tokens_for_clear=20)
        call = ToolCallRequest(name="dump", call_id="c9", arguments="{}")
        shorter = await reduction.wrap_tool_call(call, give)
        assert path_in(said(shorter)) == "/r/trunc/c9"
        state = ChatModelAgentState(messages=rounds("Sunny" * 50, "Wet"))
        after = await reduction.before_model_rewrite_state(state, ModelContext(wire="message"))
        assert after is not None
        assert "/r/clear/c0" in after.messages[2].content
        assert await backend.paths() == ["/r/clear/c0", "/r/trunc/c9"]

    asyncio.run(use())


# What a wrapper in between does


class Answers(ChatModelAgentMiddleware[Any]):
    """Answers a call by itself, with more than may be."""

    async def wrap_tool_call(self, call: Any, proceed: Any) -> ToolResult:
        del call, proceed
        return ToolResult([TextPart(LONG)])


@each_kind
def test_what_an_inner_wrapper_answers_itself_is_truncated(kind: str):
    backend = MemoryBackend()
    reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT)
    seen = play([reduction, Answers()], made(kind, "not asked"))
    assert saved(backend, path_in(seen.text)) == as_bytes(LONG)


class Joined:
    """The outermost sink: joins texts."""

    def __init__(self) -> None:
        self.pieces: list[ToolResult] = []

    async def open(self) -> None:
        self.pieces.clear()

    async def write(self, piece: ToolResult) -> None:
        self.pieces.append(piece)

    async def close(self) -> ToolResult:
        extra = {key: value for piece in self.pieces for key, value in piece.extra.items()}
        return ToolResult([TextPart("".join(map(said, self.pieces)))], extra=extra)


def stream_of(*attempts: str, changed: bool = False) -> Any:
    """Return what runs a streaming tool, once for each of these outputs, and may change what comes back a little."""

    async def proceed(call: ToolCallRequest) -> ToolResult:
        result, sink = ToolResult(), cast("Any", call.sink)
        for text in attempts:
            await sink.open()
            for at in range(0, len(text), 50):
                await sink.write(ToolResult([TextPart(text[at : at + 50])]))
            result = await sink.close()
        return replace(result, return_directly=True) if changed else result

    return proceed


@pytest.mark.parametrize("changed", [False, True])
def test_a_stream_is_truncated_once_also_if_an_inner_wrapper_changes_or_repeats_it(changed: bool):
    backend = MemoryBackend()
    reduction = ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT)
    call = ToolCallRequest(name="dump", call_id="c0", arguments="{}", kind="streamable", sink=Joined())
    again = "the second attempt " + LONG
    result = asyncio.run(reduction.wrap_tool_call(call, stream_of(LONG, again, changed=changed)))
    assert said(result).startswith(again[:LIMIT])
    assert result.return_directly == changed
    assert saved(backend, path_in(said(result))) == as_bytes(again)


def test_a_tool_cannot_claim_that_its_output_was_saved():
    @tool
    async def dump() -> ToolResult:
        """Dump."""
        return ToolResult([TextPart("short")], extra={SAVED: {"path": "/other/trunc/secret"}, "page": 3})

    seen = play(ToolReduction(MemoryBackend()), dump)
    assert seen.finished().extra == {"page": 3}


# Names


@on_each_wire
@pytest.mark.parametrize("clears", [False, True])
def test_conversations_with_one_root_and_the_same_call_ids_all_find_names(wire: str, clears: bool):
    backend = MemoryBackend()
    limits: dict[str, Any] = {"max_tokens_for_clear": 10} if clears else {"max_length_for_trunc": LIMIT}
    for number in range(20):
        reduction = ToolReduction(backend, root_dir="/shared", **limits)
        dump = made("invokable", f"{number} {LONG}")
        calls = [("call_1", "dump"), ("call_2", "dump"), ("call_3", "dump")]
        seen = play(reduction, dump, *[[each] for each in calls], wire=wire)
        seen.unharmed()
    texts = [saved(backend, path).decode() for path in paths(backend)]
    assert sorted(texts) == sorted([f"{number} {LONG}" for number in range(20)] * (2 if clears else 3))


class Shared(MemoryBackend):
    """Another run writes the same file with the same content while this one is at it; then the disk is full."""

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        if path.endswith("c1"):
            raise OSError("no space left on device")
        if path.endswith("c0"):
            await super().write(path, "Sunny" * 50)
        return await super().write_stream(path, chunks)


def test_what_is_deleted_after_a_failed_write_is_never_another_runs():
    backend = Shared()
    reduction = ToolReduction(backend, root_dir="/r", max_tokens_for_clear=5, on_backend_error="continue")
    agent = ChatModelAgent(model=ScriptedModel(["ok"]), middlewares=[reduction])
    result = agent.run_sync(rounds("Sunny" * 50, "Wet" * 90, "Windy"))
    assert result.messages[2].content == "Sunny" * 50
    assert saved(backend, "/r/clear/c0") == b"Sunny" * 50


# Faults


class GivesUp(MemoryBackend):
    """Something of its own is cancelled, and not the run."""

    async def write(self, path: str, content: str | bytes) -> None:
        raise asyncio.CancelledError

    async def write_stream(self, path: str, chunks: AsyncIterable[bytes]) -> int:
        async for _ in chunks:
            raise asyncio.CancelledError
        return 0


@each_kind
def test_a_backend_whose_own_work_is_cancelled_loses_no_output_of_a_tool(kind: str):
    reduction = ToolReduction(GivesUp(), max_length_for_trunc=LIMIT, on_backend_error="continue")
    seen = play(reduction, made(kind, LONG))
    seen.unharmed()
    assert seen.kept[0].startswith(LONG[:LIMIT])
    assert "CancelledError" not in seen.kept[0]
    assert len(seen.custom()) == 1


# Placeholders


def test_what_stands_for_a_missing_result_is_never_cleared_or_saved_where_two_calls_share_an_id():
    unknown = (
        "Tool call b with id x has no recorded result - it may or may not have run. Check before running it again."
    )
    asked = [{"id": "x", "type": "function", "function": {"name": name, "arguments": "{}"}} for name in "ab"]
    history = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": asked},
        {"role": "tool", "tool_call_id": "x", "content": unknown},
        {"role": "tool", "tool_call_id": "x", "content": "y" * 400},
        {"role": "assistant", "content": None, "tool_calls": [{**asked[0], "id": "z"}]},
        {"role": "tool", "tool_call_id": "z", "content": "last"},
    ]
    made_plan = plan(history, wire="openai-chat", max_tokens_for_clear=5, offload=True)
    assert unknown in [message["content"] for message in made_plan.messages]
    assert [save.content for save in made_plan.saves] == ["y" * 400]


# More than may be


def test_an_event_tells_that_a_history_cannot_be_brought_under_its_limit():
    async def events(limit: int) -> list[Custom]:
        reduction = ToolReduction(MemoryBackend(), max_tokens_for_clear=limit)
        seen = await drive(reduction, [made("invokable", LONG)], [("c0", "dump")], [("c1", "dump")])
        return [event for event in seen.events if isinstance(event, Custom) and event.name == "suture.over_limit"]

    assert asyncio.run(events(100_000)) == []
    over = asyncio.run(events(200))
    assert [event.data["limit"] for event in over] == [200] * len(over)
    assert all(event.data["tokens"] > 200 for event in over)
    assert len(over) >= 2


def test_the_file_of_a_stream_with_media_is_its_text_and_the_media_stay():
    image = ImagePart(url="https://example.com/cat.png")

    @tool
    async def dump() -> AsyncIterator[ToolResult]:
        """Dump."""
        yield ToolResult([TextPart(LONG), image])

    backend = MemoryBackend()
    seen = play(ToolReduction(backend, root_dir="/r", max_length_for_trunc=LIMIT), dump)
    assert saved(backend, "/r/trunc/c0") == as_bytes(LONG)
    assert image in seen.finished().parts


@pytest.mark.parametrize("wire", ["message", "openai-chat"])
def test_what_one_more_file_costs_does_not_depend_on_how_many_there_are(wire: str):
    reduction = ToolReduction(MemoryBackend(), root_dir="/r", max_length_for_trunc=LIMIT)
    record = reduction._record()
    record.see([{"role": "user", "content": "q"}] if wire == "openai-chat" else [Message.user("q")])
    record.keep([Saved(f"/r/trunc/{number}", f"{number}") for number in range(50_000)])
    call = ToolCallRequest(name="dump", call_id="new", arguments="{}")

    async def one_more() -> int:
        await reduction.wrap_tool_call(call, give)  # whatever is read once is read
        tracemalloc.start()
        try:
            await reduction.wrap_tool_call(replace(call, call_id="newer"), give)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    assert asyncio.run(one_more()) < 200_000


BOUNDED = """
import asyncio, json, resource, sys
from suture import tool
from suture.messages import TextPart, ToolArgument, ToolResult
from suture.middleware import ToolReduction, ToolReductionConfig, TruncResult
from suture.stores import MemoryBackend
from tests.agent.reduction._desk import desk_of
from tests.agent.reduction._tooling import play

resource.setrlimit(resource.RLIMIT_CPU, (20, 20))
what = sys.argv[1]
if what == "grep":
    desk = desk_of(b"a" * 30_000_000 + b"AAb\\n")
    print(desk.told("grep", pattern="a" * 999 + "B", ignore_case=True).count("cut; the match"))
else:
    async def dump():
        for _ in range(150_000):
            yield "y"

    async def look(detail):
        async for _ in detail.stream_tool_result:
            pass
        return TruncResult()

    made = tool(name="dump", description="Dump.", kind="streamable")(dump)
    config = {"dump": ToolReductionConfig(trunc_handler=look)}
    reduction = ToolReduction(MemoryBackend(), tool_config=config)

    class Sink:
        count = 0
        async def open(self): pass
        async def write(self, piece): self.count += 1
        async def close(self): return ToolResult([TextPart("whole")])

    async def proceed(call):
        await call.sink.open()
        async for piece in dump():
            await call.sink.write(ToolResult([TextPart(piece)]))
        return await call.sink.close()

    from suture.kernel import ToolCallRequest
    sink = Sink()
    call = ToolCallRequest(name="dump", call_id="c", arguments="{}", kind="streamable", sink=sink)
    asyncio.run(reduction.wrap_tool_call(call, proceed))
    print(sink.count)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="limits of a process are POSIX's")
@pytest.mark.parametrize(("what", "found"), [("grep", "1"), ("handler", "150000")])
def test_work_grows_no_faster_than_what_is_read(what: str, found: str):
    """A search in any case took 150 s here, a stream that a handler declines 6; the process may use 20."""
    root = Path(__file__).parents[3]
    done = subprocess.run([sys.executable, "-c", BOUNDED, what], capture_output=True, text=True, cwd=root, check=False)
    assert (done.stdout.strip(), done.returncode) == (found, 0), done.stderr[-2_000:]
