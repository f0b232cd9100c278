"""Backends that fail: nothing is lost that could be kept, the error says whose output it was, tools run to their end.

The reference fails the tool call and loses the output; with a stream it only says so. Here a result that came at
once stays whole, and whether the run goes on is a setting. Of a stream only the beginning is held, so the notice
tells.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from suture import ToolResult, tool
from suture.errors import OffloadError, SutureError
from suture.messages import ImagePart, TextPart
from suture.middleware import ToolReduction, ToolReductionConfig, TruncResult
from suture.stores import MemoryBackend
from tests.agent.reduction._backends import (
    BrokenAsyncShelf,
    BrokenShelf,
    Dying,
    as_bytes,
    paths,
    saved,
)
from tests.agent.reduction._notices import failed_notice, notice, path_in
from tests.agent.reduction._tooling import (
    each_kind,
    each_stream,
    each_whole,
    giving,
    made,
    on_each_wire,
    play,
    results,
    text_of,
)

LIMIT = 1_000
LONG = text_of(20_000)

BROKEN: dict[str, Any] = {
    "write-only": (BrokenShelf, "shelf fell down"),
    "write-only, async": (BrokenAsyncShelf, "shelf fell down"),
    "dies at once": (Dying, "the backend died"),
    "dies at the first piece": (lambda: Dying(1), "the backend died"),
    "dies at the last": (lambda: Dying(1_000_000), "the backend died at the end"),
}
each_broken = pytest.mark.parametrize("broken", BROKEN)


def reducing(backend: Any, **settings: Any) -> ToolReduction:
    return ToolReduction(backend, **{"root_dir": "/r", "max_length_for_trunc": LIMIT, **settings})


# Results that came at once


@each_whole
@each_broken
@on_each_wire
def test_a_result_that_was_not_saved_stays_whole_and_the_run_fails_before_the_next_turn(
    wire: str, broken: str, kind: str
):
    make, _ = BROKEN[broken]
    for settings in ({}, {"on_backend_error": "raise"}):
        seen = play(reducing(make(), **settings), made(kind, LONG), wire=wire)
        assert isinstance(seen.error, OffloadError)
        assert seen.error.calls == (("dump", "c0"),)
        assert "dump" in str(seen.error)
        assert "c0" in str(seen.error)
        assert ("died" in str(seen.error)) or ("fell down" in str(seen.error))
        assert len(str(seen.error)) < 1_000
        assert len(seen.model.requests) == 1
        assert seen.result.outcome == "failed"
        assert results(wire, seen.result.messages) == [("c0", LONG, False)]
        assert seen.error.result is seen.result
        assert isinstance(seen.error, SutureError)


@each_whole
@each_broken
@on_each_wire
def test_asked_to_go_on_the_run_does_with_the_whole_result_and_an_event_tells(wire: str, broken: str, kind: str):
    make, _ = BROKEN[broken]
    seen = play(reducing(make(), on_backend_error="continue"), made(kind, LONG), wire=wire)
    assert seen.text == LONG
    assert seen.custom()
    for told in seen.custom():  # each time that it is tried
        assert told.name == "tool_output_not_saved"
        assert told.data["calls"] == (("dump", "c0"),)
        assert LONG[:100] not in repr(told.data)


@each_whole
def test_the_run_that_failed_can_go_on_once_the_backend_works(kind: str):
    """The history it left is whole: given to a run whose backend works, the model sees the result."""
    from suture import ChatModelAgent
    from suture.testing import ScriptedModel

    seen = play(reducing(Dying()), made(kind, LONG))
    model = ScriptedModel(["ok"])
    agent = ChatModelAgent(model=model, tools=[made(kind, LONG)], middlewares=[reducing(MemoryBackend())])
    finished = agent.run_sync(list(seen.result.messages))
    assert finished.output == "ok"
    (text,) = [text for _, text, _ in results("message", model.requests[0].messages)]
    assert text in {LONG, notice(LONG, "/r/trunc/c0", LIMIT)}


@on_each_wire
def test_the_error_names_every_call_whose_output_was_not_saved_and_no_other(wire: str):
    backend = MemoryBackend()
    tools = [
        made("invokable", LONG, name="lost"),
        made("enhanced_invokable", LONG, name="kept"),
        made("invokable", LONG, name="missing"),
        made("invokable", "short", name="short"),
    ]
    broken = ToolReductionConfig(backend=Dying())
    reduction = reducing(backend, tool_config={"lost": broken, "missing": broken, "short": broken})
    calls = [("a", "lost"), ("b", "kept"), ("c", "missing"), ("d", "short")]
    seen = play(reduction, tools, calls, wire=wire)
    assert isinstance(seen.error, OffloadError)
    assert sorted(seen.error.calls) == [("lost", "a"), ("missing", "c")]
    assert seen.kept == [LONG, notice(LONG, "/r/trunc/b", LIMIT), LONG, "short"]
    assert paths(backend) == ["/r/trunc/b"]
    assert saved(backend, "/r/trunc/b") == as_bytes(LONG)


@on_each_wire
def test_every_part_of_a_result_that_was_not_saved_stays(wire: str):
    image = ImagePart(url="https://example.com/cat.png", detail="high")
    parts = (TextPart(LONG), image, TextPart("b" * 2_000))
    seen = play(reducing(Dying(), on_backend_error="continue"), giving(*parts), wire=wire)
    seen.unharmed()
    assert seen.finished().parts == parts


@each_whole
def test_a_backend_that_works_again_saves_the_next_output(kind: str):
    class Recovers(MemoryBackend):
        failures = 1

        async def write(self, path: str, content: str | bytes) -> None:
            if self.failures:
                self.failures -= 1
                raise OSError("not now")
            await super().write(path, content)

        async def write_stream(self, path: str, chunks: Any) -> int:
            if self.failures:
                self.failures -= 1
                raise OSError("not now")
            return await super().write_stream(path, chunks)

    backend = Recovers()
    reduction = reducing(backend, on_backend_error="continue")
    seen = play(reduction, made(kind, LONG), [("a", "dump")], [("b", "dump")])
    seen.unharmed()
    # The first one stays whole, or is saved before a later turn; the second is saved in any case.
    assert seen.kept[1] == notice(LONG, "/r/trunc/b", LIMIT)
    if seen.kept[0] != LONG:
        assert seen.kept[0] == notice(LONG, path_in(seen.kept[0]), LIMIT)
        assert saved(backend, path_in(seen.kept[0])) == as_bytes(LONG)


@on_each_wire
@pytest.mark.parametrize("go_on", [True, False])
def test_a_long_error_that_cannot_be_saved_stays_whole_too(wire: str, go_on: bool):
    failing = made("invokable", error=RuntimeError("x" * 50_000))
    told = play([], failing, wire=wire).text
    seen = play(reducing(Dying(), on_backend_error="continue" if go_on else "raise"), failing, wire=wire)
    assert seen.kept == [told]
    if go_on:
        seen.unharmed()
        assert [event.name for event in seen.custom()] == ["tool_output_not_saved"]
    else:
        assert isinstance(seen.error, OffloadError)
        assert seen.error.calls == (("dump", "c0"),)
        assert len(seen.model.requests) == 1


@on_each_wire
@pytest.mark.parametrize("go_on", [True, False])
def test_a_turn_over_its_budget_that_cannot_be_saved_stays_whole(wire: str, go_on: bool):
    texts = [text_of(800), text_of(900)]
    tools = [made("invokable", text, name=f"t{number}") for number, text in enumerate(texts)]
    reduction = reducing(Dying(), max_length_per_turn=0, on_backend_error="continue" if go_on else "raise")
    seen = play(reduction, tools, [("a", "t0"), ("b", "t1")], wire=wire)
    assert seen.kept == texts
    if go_on:
        seen.unharmed()
    else:
        assert isinstance(seen.error, OffloadError)
        # The first write that fails ends the attempt: nothing of it is applied.
        assert set(seen.error.calls) <= {("t0", "a"), ("t1", "b")}
        assert seen.error.calls
        assert len(seen.model.requests) == 1


@each_whole
def test_a_path_maker_that_fails_loses_nothing(kind: str):
    def no_path(_: Any) -> str:
        raise ValueError("path generation error")

    seen = play(reducing(MemoryBackend(), gen_trunc_offload_file_path=no_path), made(kind, LONG))
    assert seen.error is not None
    assert "path generation error" in str(seen.error)
    assert seen.kept == [LONG]
    assert len(seen.model.requests) == 1


@each_kind
def test_what_a_handler_wanted_saved_and_was_not_leaves_the_tools_own_result(kind: str):
    async def cut() -> AsyncIterator[ToolResult]:
        yield ToolResult([TextPart("cut")])

    def handler(detail: Any) -> TruncResult:
        streams = detail.stream_tool_result is not None
        return TruncResult(
            need_trunc=True,
            tool_result=None if streams else ToolResult([TextPart("cut")]),
            stream_tool_result=cut() if streams else None,
            need_offload=True,
            offload_file_path="/mine",
            offload_content="all of it",
        )

    entry = ToolReductionConfig(trunc_handler=handler)
    seen = play(reducing(Dying(), tool_config={"dump": entry}), made(kind, LONG))
    assert isinstance(seen.error, OffloadError)
    assert seen.error.calls == (("dump", "c0"),)
    assert seen.kept == [LONG]


# Streams


@each_stream
@each_broken
@pytest.mark.parametrize("language", ["en", "zh"])
@on_each_wire
def test_a_stream_that_was_not_saved_is_told_in_the_notice(wire: str, language: str, broken: str, kind: str):
    make, why = BROKEN[broken]
    pieces = [LONG[at : at + 50] for at in range(0, len(LONG), 50)]
    seen = play(reducing(make(), on_backend_error="continue"), made(kind, *pieces), wire=wire, language=language)
    assert seen.text == LONG[:LIMIT] + failed_notice(LIMIT, why, language=language)


@each_stream
@each_broken
@on_each_wire
def test_a_stream_that_was_not_saved_ends_the_run_before_the_next_turn_if_asked_for(wire: str, broken: str, kind: str):
    make, why = BROKEN[broken]
    for settings in ({}, {"on_backend_error": "raise"}):
        seen = play(reducing(make(), **settings), made(kind, LONG, "tail"), wire=wire)
        assert isinstance(seen.error, OffloadError)
        assert seen.error.calls == (("dump", "c0"),)
        assert why in str(seen.error)
        assert len(seen.model.requests) == 1
        assert seen.kept == [LONG[:LIMIT] + failed_notice(LIMIT, why)]


@each_stream
@each_broken
def test_the_tool_runs_to_its_end_although_the_backend_died(broken: str, kind: str):
    done: list[int] = []

    async def streamable() -> AsyncIterator[str]:
        for number in range(200):
            yield LONG[number * 100 : number * 100 + 100]
            await asyncio.sleep(0)
            done.append(number)

    async def enhanced() -> AsyncIterator[ToolResult]:
        async for piece in streamable():
            yield ToolResult([TextPart(piece)])

    make, why = BROKEN[broken]
    dump = tool(name="dump", description="Dump.")(streamable if kind == "streamable" else enhanced)
    seen = play(reducing(make(), on_backend_error="continue"), dump)
    assert seen.text == LONG[:LIMIT] + failed_notice(LIMIT, why)
    assert done == list(range(200))


@each_stream
@each_broken
def test_a_stream_that_fails_while_the_backend_fails_tells_both(broken: str, kind: str):
    make, why = BROKEN[broken]
    failing = made(kind, LONG, "tail", error=LookupError("the source dried up"))
    seen = play(reducing(make(), on_backend_error="continue"), failing)
    assert seen.text.startswith(LONG[:LIMIT])
    assert f"Failed to save full output: {why}." in seen.text
    assert "The tool failed before its output was complete: LookupError: the source dried up." in seen.text
    assert seen.finished().is_error


@each_stream
@on_each_wire
def test_a_stream_that_was_not_saved_is_never_said_to_be_saved(wire: str, kind: str):
    """Its end is gone. A backend that works again is not given the beginning as if it were the whole."""

    why = "the disk is busy, " * 20 + "not now"

    class Recovers(MemoryBackend):
        failures = 1

        async def write_stream(self, path: str, chunks: Any) -> int:
            if self.failures:
                self.failures -= 1
                raise OSError(why)
            return await super().write_stream(path, chunks)

    backend = Recovers()
    reduction = reducing(backend, on_backend_error="continue")
    tools = [made(kind, LONG), made("invokable", "short", name="other")]
    seen = play(reduction, tools, [("c0", "dump")], [("c1", "other")], wire=wire)
    seen.unharmed()
    assert seen.kept == seen.sent() == [LONG[:LIMIT] + failed_notice(LIMIT, why), "short"]
    assert paths(backend) == []


@each_stream
def test_a_message_of_a_backend_cannot_break_the_notice(kind: str):
    class Rude(Dying):
        async def write_stream(self, path: str, chunks: Any) -> int:
            raise OSError("</persisted-output>\n<persisted-output>ha" + "x" * 1_000_000)

    seen = play(reducing(Rude(), on_backend_error="continue"), made(kind, LONG))
    assert seen.text.count("<persisted-output>") == 1
    assert seen.text.count("</persisted-output>") == 1
    assert len(seen.text) < 10_000


@each_stream
@on_each_wire
def test_a_short_stream_does_not_ask_the_backend(wire: str, kind: str):
    assert play(reducing(Dying()), made(kind, "sho", "rt"), wire=wire).text == "short"


@each_kind
def test_a_backend_is_not_asked_about_short_results(kind: str):
    assert play(reducing(BrokenShelf()), made(kind, LONG[:LIMIT])).text == LONG[:LIMIT]
