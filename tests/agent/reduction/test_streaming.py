"""Tools that stream: what passes as it comes, what is held back, what goes to the backend, and what an error leaves.

The reference compares with `>=`, waits in some modes, keeps everything in memory, gives everything again after an
error, and saves a JSON of all chunks. Here the first characters pass as they come, one notice's length is held back,
and the file is the text. So its examples are longer here.
"""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from suture import ChatModelAgentMiddleware, ToolInfo, ToolResult, replace, tool
from suture.messages import AudioPart, ImagePart, TextPart
from suture.middleware import ToolReduction, ToolReductionConfig, TruncResult
from suture.stores import MemoryBackend
from tests.agent.reduction._backends import as_bytes, fetch, paths, saved
from tests.agent.reduction._notices import failed_notice, path_in, stream_notice
from tests.agent.reduction._tooling import drive, each_stream, made, on_each_wire, play, said, streaming, text_of

LIMIT = 100
PATH = "/tmp/trunc/c0"
NOTICE = stream_notice(LIMIT, PATH)
LONG = text_of(3_000)


def reducing(backend: Any, **settings: Any) -> ToolReduction:
    return ToolReduction(backend, **{"root_dir": "/tmp", "max_length_for_trunc": LIMIT, **settings})


def pieces_of(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


class Watching(ChatModelAgentMiddleware[Any]):
    """Stands outside of ToolReduction and notes what comes through, beside what the tool notes."""

    def __init__(self, log: list[tuple[str, str]]) -> None:
        self.log = log

    async def wrap_tool_call(self, call: Any, proceed: Any) -> ToolResult:
        result = await proceed(replace(call, sink=Watched(call.sink, self.log)))
        self.log.append(("got", "the end"))
        return result


class Watched:
    """Notes what is written to a sink."""

    def __init__(self, outer: Any, log: list[tuple[str, str]]) -> None:
        self.outer, self.log = outer, log

    async def open(self) -> None:
        await self.outer.open()

    async def write(self, piece: ToolResult) -> None:
        self.log.append(("got", said(piece)))
        await self.outer.write(piece)

    async def close(self) -> ToolResult:
        return await self.outer.close()


@each_stream
@on_each_wire
def test_the_beginning_passes_at_once_then_nothing_until_the_end_then_the_notice(wire: str, kind: str):
    log: list[tuple[str, str]] = []
    chunks = ["first chunk", "x" * 800, "tail"]

    async def streamable() -> AsyncIterator[str]:
        for chunk in chunks:
            log.append(("gave", chunk))
            yield chunk
        log.append(("gave", "the end"))

    async def enhanced() -> AsyncIterator[ToolResult]:
        async for chunk in streamable():
            yield ToolResult([TextPart(chunk)])

    function = streamable if kind == "streamable" else enhanced
    backend = MemoryBackend()
    seen = play([Watching(log), reducing(backend)], tool(name="dump", description="Dump.")(function), wire=wire)
    whole = "".join(chunks)
    assert seen.text == whole[:LIMIT] + NOTICE
    assert [each for each in log if each[1]] == [
        ("gave", "first chunk"),
        ("got", "first chunk"),
        ("gave", "x" * 800),
        ("got", "x" * (LIMIT - 11)),
        ("gave", "tail"),
        ("gave", "the end"),
        ("got", NOTICE),
        ("got", "the end"),
    ]
    assert "Preview" not in seen.text
    assert saved(backend, PATH) == whole.encode()
    assert [piece for piece in seen.deltas() if piece] == ["first chunk", "x" * (LIMIT - 11), NOTICE]


@each_stream
@pytest.mark.parametrize("size", [1, 7, 50, LIMIT - 1, LIMIT, LIMIT + 1, 299, 3_000])
def test_however_a_stream_is_cut_into_pieces_the_result_and_the_file_are_the_same(kind: str, size: int):
    backend = MemoryBackend()
    seen = play(reducing(backend), made(kind, *pieces_of(LONG, size)))
    assert seen.text == LONG[:LIMIT] + NOTICE == "".join(seen.deltas())
    assert saved(backend, PATH) == as_bytes(LONG)


@each_stream
@pytest.mark.parametrize("size", [1, 50, 10_000])
@on_each_wire
def test_a_stream_that_ends_within_one_notice_of_the_limit_passes_whole(wire: str, size: int, kind: str):
    for length in (LIMIT, LIMIT + 1, LIMIT + len(NOTICE) - 1, LIMIT + len(NOTICE)):
        backend, text = MemoryBackend(), text_of(length)
        seen = play(reducing(backend), made(kind, *pieces_of(text, size)), wire=wire)
        assert seen.text == text == "".join(seen.deltas()), length
        assert paths(backend) == []
    backend, text = MemoryBackend(), text_of(LIMIT + len(NOTICE) + 1)
    assert play(reducing(backend), made(kind, *pieces_of(text, size)), wire=wire).text == text[:LIMIT] + NOTICE
    assert saved(backend, PATH) == as_bytes(text)


@each_stream
def test_empty_pieces_and_empty_streams_are_nothing(kind: str):
    backend = MemoryBackend()
    assert play(reducing(backend), made(kind)).text == ""
    assert play(reducing(backend), made(kind, "", "", "")).text == ""
    seen = play(reducing(backend), made(kind, "", LONG[:50], "", LONG[50:], ""))
    assert seen.text == LONG[:LIMIT] + NOTICE
    assert saved(backend, PATH) == as_bytes(LONG)


@each_stream
@on_each_wire
def test_a_path_maker_that_fails_is_told_in_the_notice(wire: str, kind: str):
    def no_path(_: Any) -> str:
        raise ValueError("path generation error")

    async def no_path_later(_: Any) -> str:
        raise ValueError("path generation error")

    for maker in (no_path, no_path_later):
        backend = MemoryBackend()
        reduction = reducing(backend, gen_trunc_offload_file_path=maker, on_backend_error="continue")
        seen = play(reduction, made(kind, *pieces_of(LONG, 64)), wire=wire)
        assert seen.text == LONG[:LIMIT] + failed_notice(LIMIT, "path generation error")
        assert paths(backend) == []


@each_stream
@on_each_wire
def test_the_pieces_of_short_streams_are_told_as_they_are(wire: str, kind: str):
    seen = play(reducing(MemoryBackend()), made(kind, "ab", "c", "def"), wire=wire)
    assert seen.text == "abcdef"
    assert seen.deltas() == ["ab", "c", "def"]


# Errors of the source


class SourceError(Exception):
    pass


BOOM = SourceError("the line went dead")


@each_stream
@on_each_wire
def test_an_error_before_the_limit_comes_out_as_it_is(wire: str, kind: str):
    backend = MemoryBackend()
    failing = made(kind, "ok", error=BOOM)
    assert play(reducing(backend), failing, wire=wire).text == play([], failing, wire=wire).text
    assert play(reducing(backend), failing, wire=wire, tool_errors="raise").error is BOOM
    assert paths(backend) == []


@each_stream
@on_each_wire
def test_an_error_after_the_limit_saves_what_came_and_is_told(wire: str, kind: str):
    """The reference gives everything again, without a limit, and saves nothing."""
    backend = MemoryBackend()
    failing = made(kind, "abc", LONG, "tail", error=BOOM)
    came = f"abc{LONG}tail"
    seen = play(reducing(backend), failing, wire=wire)
    told = "The tool failed before its output was complete: SourceError: the line went dead."
    assert seen.text.startswith(came[:LIMIT])
    assert told in seen.text
    assert path_in(seen.text) == PATH
    assert len(seen.text) < LIMIT + 2 * len(NOTICE) + 2 * len(told)
    assert saved(backend, PATH) == as_bytes(came)
    assert seen.finished().is_error
    raised = play(reducing(MemoryBackend()), failing, wire=wire, tool_errors="raise").error
    assert raised is BOOM


@each_stream
def test_an_error_that_comes_while_text_is_held_back_loses_nothing(kind: str):
    backend = MemoryBackend()
    came = text_of(LIMIT + 20)
    seen = play(reducing(backend), made(kind, came, error=BOOM))
    assert seen.text.startswith(came[:LIMIT])
    assert "SourceError: the line went dead" in seen.text
    kept = saved(backend, PATH) if paths(backend) else seen.text.encode()
    assert came.encode() in kept


@each_stream
@on_each_wire
def test_an_error_of_a_megabyte_after_the_limit_does_not_bring_a_megabyte(wire: str, kind: str):
    backend = MemoryBackend()
    seen = play(reducing(backend), made(kind, LONG, error=SourceError("y" * 1_000_000)), wire=wire)
    assert len(seen.text) < 20_000
    assert b"SourceError: yyy" in saved(backend, path_in(seen.text))
    assert saved(backend, PATH) == as_bytes(LONG)


@each_stream
def test_the_chinese_notice_tells_of_the_error_too(kind: str):
    backend = MemoryBackend()
    seen = play(reducing(backend), made(kind, LONG, error=BOOM), language="zh")
    assert seen.text.startswith(LONG[:LIMIT] + "<persisted-output>\n输出结果在流式传输 100 字节后被截断。")
    assert f"完整输出保存到: {PATH}。使用 read_file 进行查看。" in seen.text
    assert "SourceError: the line went dead" in seen.text
    assert "The tool failed" not in seen.text


class SameForEver:
    """A tool whose stream, once it has failed, raises the same error each time it is asked again."""

    info = ToolInfo("dump", "Dump.", {"type": "object"})

    def __init__(self, *chunks: str) -> None:
        self.chunks = list(chunks)
        self.raised = 0

    def stream(self, arguments: str, **_: Any) -> AsyncIterator[str]:
        return self

    def __aiter__(self) -> AsyncIterator[str]:
        return self

    async def __anext__(self) -> str:
        if self.chunks:
            return self.chunks.pop(0)
        self.raised += 1
        assert self.raised < 50, "asked again and again"
        raise BOOM


@pytest.mark.parametrize("chunks", [("ok",), (LONG,), (LONG, LONG)])
def test_a_source_that_raises_the_same_error_for_ever_ends_the_call(chunks: tuple[str, ...]):
    async def use() -> None:
        source = SameForEver(*chunks)
        async with asyncio.timeout(60):
            seen = await drive(reducing(MemoryBackend()), [source], [("c0", "dump")])
        assert "SourceError: the line went dead" in seen.text
        assert source.raised == 1

    asyncio.run(use())


# Media in streams

SOUND, OTHER = AudioPart(base64_data="QQ==", mime_type="audio/wav"), AudioPart(url="https://example.com/b.wav")
IMAGE = ImagePart(url="https://example.com/cat.png", detail="high")


@on_each_wire
def test_media_always_pass_and_do_not_count(wire: str):
    backend = MemoryBackend()
    dump = streaming([TextPart("ok"), SOUND], [TextPart(LONG), OTHER], [IMAGE], [TextPart("tail"), SOUND])
    seen = play(reducing(backend), dump, wire=wire)
    seen.unharmed()
    parts = seen.finished().parts
    assert [part for part in parts if not isinstance(part, TextPart)] == [SOUND, OTHER, IMAGE, SOUND]
    whole = f"ok{LONG}tail"
    assert said(seen.finished()) == whole[:LIMIT] + NOTICE
    assert seen.sent()[0].count(NOTICE) == 1
    assert saved(backend, PATH) == as_bytes(whole)


@on_each_wire
def test_media_before_the_cut_stay_before_it(wire: str):
    seen = play(reducing(MemoryBackend()), streaming([IMAGE, TextPart(LONG[:40])], [TextPart(LONG[40:])]), wire=wire)
    seen.unharmed()
    first, *rest = seen.finished().parts
    assert first == IMAGE
    assert all(isinstance(part, TextPart) for part in rest)
    assert said(seen.finished()) == LONG[:LIMIT] + NOTICE


@on_each_wire
def test_a_stream_of_media_alone_passes(wire: str):
    backend = MemoryBackend()
    seen = play(reducing(backend, max_length_for_trunc=0), streaming([SOUND], [IMAGE], [OTHER]), wire=wire)
    seen.unharmed()
    assert seen.finished().parts == (SOUND, IMAGE, OTHER)
    assert paths(backend) == []


def test_text_and_media_keep_their_order_in_a_stream_that_ends_while_text_is_held_back():
    backend = MemoryBackend()
    dump = streaming([TextPart("a" * LIMIT), TextPart("b")], [IMAGE], [TextPart("c"), SOUND])
    seen = play(reducing(backend), dump)
    seen.unharmed()
    assert seen.finished().parts == (TextPart("a" * LIMIT + "b"), IMAGE, TextPart("c"), SOUND)
    assert paths(backend) == []


def test_media_that_were_held_back_with_text_pass_when_the_text_becomes_too_long():
    backend = MemoryBackend()
    dump = streaming([TextPart("a" * LIMIT), TextPart("b")], [IMAGE], [TextPart("c" * LIMIT * 2), SOUND], [OTHER])
    seen = play(reducing(backend), dump)
    seen.unharmed()
    assert [part for part in seen.finished().parts if not isinstance(part, TextPart)] == [IMAGE, SOUND, OTHER]
    assert said(seen.finished()) == "a" * LIMIT + NOTICE
    assert saved(backend, PATH) == as_bytes("a" * LIMIT + "b" + "c" * LIMIT * 2)


@pytest.mark.parametrize("pieces", [("first", "a" * LIMIT, "held", LONG, "", "last"), ("a" * LIMIT, "he", "ld")])
@on_each_wire
def test_what_a_piece_says_beside_its_text_holds_for_the_result_wherever_it_came(wire: str, pieces: tuple[str, ...]):
    for where in range(len(pieces)):

        @tool(name="dump")
        async def dump(where: int = where) -> AsyncIterator[ToolResult]:
            """Dump."""
            for number, text in enumerate(pieces):
                if number == where:
                    yield ToolResult([TextPart(text)], is_error=True, extra={"page": number})
                else:
                    yield ToolResult([TextPart(text)])

        seen = play(reducing(MemoryBackend()), dump, wire=wire)
        seen.unharmed()
        whole = "".join(pieces)
        assert said(seen.finished()) == (whole if len(whole) < 200 else whole[:LIMIT] + NOTICE)
        assert seen.finished().is_error
        assert seen.finished().extra["page"] == where


# Handlers


@each_stream
@on_each_wire
def test_a_handler_of_ones_own_that_declines_gives_the_pieces_and_the_error(wire: str, kind: str):
    async def handler(_: Any) -> TruncResult:
        return TruncResult(need_trunc=False)

    chunks = [f"chunk {number}" for number in range(10)]
    failing = made(kind, *chunks, error=SourceError("mock error"))
    entry = ToolReductionConfig(trunc_handler=handler)
    seen = play(ToolReduction(MemoryBackend(), tool_config={"dump": entry}), failing, wire=wire)
    assert seen.text == play([], failing, wire=wire).text
    assert seen.deltas()[:10] == chunks
    assert "SourceError: mock error" in seen.text


@each_stream
def test_a_handlers_stream_comes_as_it_goes(kind: str):
    async def slowly(source: Any) -> AsyncIterator[ToolResult]:
        async for result in source:
            yield ToolResult([TextPart(said(result).upper())])

    def handler(detail: Any) -> TruncResult:
        return TruncResult(need_trunc=True, stream_tool_result=slowly(detail.stream_tool_result))

    entry = ToolReductionConfig(trunc_handler=handler)
    seen = play(ToolReduction(MemoryBackend(), tool_config={"dump": entry}), made(kind, "ab", "c", "de"))
    assert seen.text == "ABCDE"
    assert seen.deltas() == ["AB", "C", "DE"]


def test_streams_side_by_side_do_not_mix():
    async def use() -> None:
        backend = MemoryBackend()
        texts = {f"t{number}": text_of(3_000)[number:] for number in range(8)}
        tools = [made("streamable", *pieces_of(text, 50), name=name) for name, text in texts.items()]
        seen = await drive(reducing(backend), tools, [(f"id_{name}", name) for name in texts])
        seen.unharmed()
        for kept, (name, text) in zip(seen.kept, texts.items(), strict=True):
            assert kept == text[:LIMIT] + stream_notice(LIMIT, f"/tmp/trunc/id_{name}")
            assert await fetch(backend, f"/tmp/trunc/id_{name}") == as_bytes(text)

    asyncio.run(use())
