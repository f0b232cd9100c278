"""`read_file` shows windows of a file: bounded, numbered, and whoever follows its hints reads all of it exactly."""

import asyncio
import tracemalloc
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.stores import MemoryBackend
from tests.agent.reduction._desk import (
    EMPTY,
    FILE,
    Desk,
    InChunks,
    backend,
    body_of,
    desk_of,
    only_text,
    rows,
    text_in,
)

__all__ = ["backend"]

NASTY = [
    b"\n", b"\n", b"\n\n\n", b"\r\n", b"\r", b"\0", b"a", b"word ", b"x" * 90, b"\t", b"     1\tfalse",
    b"[end of file, 1 line]", b"[line 1 of 2; go on with offset=9]", "\u2028".encode(), b"\x0b", b"\xef\xbb\xbf",
    "é".encode(), "漢字".encode(), "😀".encode() * 70, b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xf0\x80",
    b"\xed\xa0\x80", b"\xed\xbf\xbf", b"\xed\xa0", b"\xed", b"\x80", b"\xf5\x80\x80", b"\xc0\xaf",
]  # fmt: skip
contents = st.lists(st.sampled_from(NASTY), max_size=60).map(b"".join)
chunkings = st.lists(st.integers(1, 40), min_size=1, max_size=5)
sizes = st.sampled_from([160, 161, 175, 256, 400, 3_000])


@given(content=contents, chunks=chunkings, most=sizes, limit=st.integers(1, 12))
def test_following_the_hints_reads_any_file_exactly(content: bytes, chunks: list[int], most: int, limit: int):
    desk = desk_of(content, InChunks(chunks), most)
    assert desk.read_all(limit=limit) == text_in(content)


@given(content=contents, chunks=chunkings, most=sizes, limit=st.integers(1, 60))
def test_following_the_hints_by_characters_reads_any_file_exactly(
    content: bytes, chunks: list[int], most: int, limit: int
):
    desk = desk_of(content, InChunks(chunks), most)
    assert desk.read_all(char_offset=0, char_limit=limit) == text_in(content)


@given(content=contents, chunks=chunkings, most=sizes, count=st.integers(1, 80))
def test_a_tail_is_the_last_lines_that_fit(content: bytes, chunks: list[int], most: int, count: int):
    desk = desk_of(content, InChunks(chunks), most)
    text = desk.read(tail=count)
    assert len(text) <= most
    if not content:
        assert text == EMPTY
        return
    said = text_in(content)
    lines = said.removesuffix("\n").split("\n")
    *shown, foot = text.split("\n")
    assert f"[end of file, {len(lines)} line" in foot
    assert ("no final newline" in foot) == (not said.endswith("\n"))
    first = max(1, len(lines) - count + 1)
    if "is cut" in foot:
        (row,) = shown
        number, _, end = row.partition("\t")
        assert (int(number), lines[-1].endswith(end), len(end) > 0) == (len(lines), True, True)
        assert len(rows(lines[-1])) > most - 128
        assert f"char_offset={len(said.removesuffix(chr(10))) - len(lines[-1])}]" in foot
    elif "for more" in foot:
        assert f"begin with offset={first}]" in foot
        assert "\n".join(shown) + "\n" == rows(*lines[-len(shown) :], first=len(lines) - len(shown) + 1)
        assert len(rows(*lines[-len(shown) - 1 :], first=len(lines) - len(shown))) > most - 128
    else:
        assert "\n".join(shown) + "\n" == rows(*lines[first - 1 :], first=first)


SHAPES = {
    "no newline at the end": (b"one\ntwo", rows("one", "two") + "[end of file, 2 lines, no final newline]"),
    "a newline at the end": (b"one\ntwo\n", rows("one", "two") + "[end of file, 2 lines]"),
    "one line": (b"one", rows("one") + "[end of file, 1 line, no final newline]"),
    "an empty line at the end": (b"one\n\n", rows("one", "") + "[end of file, 2 lines]"),
    "CRLF": (b"one\r\ntwo\r\n", rows("one\r", "two\r") + "[end of file, 2 lines]"),
    "only newlines": (b"\n\n\n", rows("", "", "") + "[end of file, 3 lines]"),
    "NUL": (b"a\0b\n\0", rows("a\0b", "\0") + "[end of file, 2 lines, no final newline]"),
    "no UTF-8": (b"a\xffb\n", rows("a\ufffdb") + "[end of file, 1 line]"),
    "a lone surrogate": (b"a\xed\xa0\x80b\n", rows("a\ufffdb") + "[end of file, 1 line]"),
    "other line ends": ("a\u2028b\x0bc\x85d\re\n".encode(), rows("a\u2028b\x0bc\x85d\re") + "[end of file, 1 line]"),
    "nothing": (b"", EMPTY),
}


@pytest.mark.parametrize(("content", "text"), SHAPES.values(), ids=SHAPES)
def test_a_short_file_is_shown_whole(content: bytes, text: str, backend: Any):
    assert desk_of(content, backend).read() == text


LINES = b"".join(b"line %d\n" % number for number in range(1, 501))


def numbered(first: int, last: int) -> str:
    return rows(*[f"line {number}" for number in range(first, last + 1)], first=first)


WINDOWS = {
    "200 lines if nothing is asked for": ({}, numbered(1, 200) + "[line 200 of 500; go on with offset=201]"),
    "from a line on": ({"offset": 499}, numbered(499, 500) + "[end of file, 500 lines]"),
    "so many lines": ({"offset": 7, "limit": 2}, numbered(7, 8) + "[line 8 of 500; go on with offset=9]"),
    "the last line": ({"offset": 500}, numbered(500, 500) + "[end of file, 500 lines]"),
    "behind the end": ({"offset": 501}, "[offset 501 is behind the end; the file has 500 lines]"),
    "offset 0 is 1": ({"offset": 0, "limit": 1}, numbered(1, 1) + "[line 1 of 500; go on with offset=2]"),
    "a negative offset is 1": ({"offset": -5, "limit": 1}, numbered(1, 1) + "[line 1 of 500; go on with offset=2]"),
    "limit 0 is 200": ({"limit": 0}, numbered(1, 200) + "[line 200 of 500; go on with offset=201]"),
    "a negative limit is 200": ({"limit": -1}, numbered(1, 200) + "[line 200 of 500; go on with offset=201]"),
    "a huge limit": ({"offset": 400, "limit": 10**40}, numbered(400, 500) + "[end of file, 500 lines]"),
    "a huge offset": ({"offset": 10**400}, f"[offset {10**12} is behind the end; the file has 500 lines]"),
    "the last lines": ({"tail": 2}, numbered(499, 500) + "[end of file, 500 lines]"),
    "a huge tail": ({"tail": 10**40}, numbered(1, 500) + "[end of file, 500 lines]"),
    "a negative tail is none": ({"tail": -3, "limit": 1}, numbered(1, 1) + "[line 1 of 500; go on with offset=2]"),
    "characters": (
        {"char_offset": 7, "char_limit": 6},
        "[characters 7 to 13]\nline 2\n[13 of 4392 characters; go on with char_offset=13]",
    ),
    "the last characters": (
        {"char_offset": 4385},
        "[characters 4385 to 4392]\nne 500\n\n[end of file, 4392 characters]",
    ),
    "characters behind the end": (
        {"char_offset": 4392},
        "[char_offset 4392 is behind the end; the file has 4392 characters]",
    ),
    "a negative char_offset is 0": (
        {"char_offset": -9, "char_limit": 4},
        "[characters 0 to 4]\nline\n[4 of 4392 characters; go on with char_offset=4]",
    ),
    "a char_limit alone": (
        {"char_limit": 4},
        "[characters 0 to 4]\nline\n[4 of 4392 characters; go on with char_offset=4]",
    ),
    "char_offset goes before the rest": (
        {"offset": 3, "tail": 2, "search": "line 9", "char_offset": 4391},
        "[characters 4391 to 4392]\n\n\n[end of file, 4392 characters]",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), WINDOWS.values(), ids=WINDOWS)
def test_a_window_shows_what_was_asked_for(arguments: dict[str, Any], text: str):
    assert desk_of(LINES, most=20_000).read(**arguments) == text


@pytest.mark.parametrize("number", [0, -1, 10**30])
def test_a_char_limit_that_is_none_shows_as_much_as_fits(number: int):
    desk = desk_of(b"x" * 5_000)
    assert desk.read(char_offset=0, char_limit=number) == desk.read(char_offset=0)
    assert len(body_of(desk.read(char_offset=0))) == 2_000 - 128


def test_a_window_is_never_longer_than_it_may_be():
    desk = desk_of(LINES, most=300)
    assert desk.read() == numbered(1, 12) + "[line 12 of 500; go on with offset=13]"
    assert desk.read(tail=500).endswith("[end of file, 500 lines; for more begin with offset=1]")


def test_a_limit_too_short_to_say_anything_is_taken_for_the_least_that_is_not():
    desk = desk_of(b"x" * 400, most=1)
    desk.most = 160
    assert desk.read_all() == "x" * 400


def test_a_line_that_does_not_fit_is_cut_and_can_be_read_on_or_skipped():
    desk = desk_of(b"short\n" + "é".encode() * 3_000 + b"\nlast\n", most=500)
    assert desk.read() == rows("short") + "[line 1 of 3; go on with offset=2]"
    shown = 500 - 128 - 8
    foot = f"[line 2 goes on; read it with char_offset={6 + shown}, skip it with offset=3]"
    assert desk.read(offset=2) == rows("é" * shown, first=2) + foot
    assert desk.read(offset=3) == rows("last", first=3) + "[end of file, 3 lines]"


def test_characters_before_a_line_that_is_cut_are_counted_however_many_there_are():
    desk = desk_of("é\n".encode() * 50_000 + b"x" * 900, InChunks([70_000]), most=160)
    foot = f"[line 50001 goes on; read it with char_offset={100_000 + 24}]"
    assert desk.read(offset=50_001) == rows("x" * 24, first=50_001) + foot
    assert desk.read(char_offset=100_024).startswith("[characters 100024 to 100056]\n" + "x" * 32)


def test_the_last_line_cannot_be_skipped():
    assert desk_of(b"x" * 3_000).read().endswith("[line 1 goes on; read it with char_offset=1864]")


@pytest.mark.parametrize("chunks", [[6, 10_000], [5, 1, 50], [7], [10_000]])
def test_a_tail_that_is_one_endless_line_shows_its_end(chunks: list[int]):
    desk = desk_of(b"first\n" + b"x" * 3_000 + b"end", InChunks(chunks), most=200)
    shown = "x" * (200 - 128 - 8 - 3) + "end"
    foot = "[end of file, 2 lines, no final newline; line 2 is cut, read it with char_offset=6]"
    assert desk.read(tail=1) == rows(shown, first=2) + foot


@pytest.mark.parametrize("chunks", [[64], [3], [10**6]])
def test_characters_of_four_bytes_fill_a_window_as_well_as_others(chunks: list[int]):
    desk = desk_of("😀".encode() * 3_000, InChunks(chunks), most=200)
    foot = "[line 1 goes on; read it with char_offset=64]"
    assert desk.read() == rows("😀" * 64) + foot
    assert desk.read(tail=1).startswith(rows("😀" * 64))
    assert desk.read(char_offset=0).startswith("[characters 0 to 72]\n" + "😀" * 72 + "\n")


@pytest.mark.parametrize(("length", "fits"), [(63, 2), (64, 2), (65, 1)])
def test_a_line_is_shown_if_there_is_room_for_all_of_it(length: int, fits: int):
    text = desk_of(b"x" * 56 + b"\n" + b"y" * length + b"\n", most=128 + 64 + 8 + 64).read()
    assert text.count("\t") == fits


def test_one_line_of_5_megabytes_is_read_exactly(backend: Any):
    content = "".join(f"{number:06d}é" for number in range(630_000)).encode()
    assert len(content) > 5_000_000
    assert desk_of(content, backend, most=400_000).read_all() == content.decode()


def test_many_newlines_are_read_exactly(backend: Any):
    desk = desk_of(b"\n" * 200_000, backend, most=400_000)
    assert desk.read_all(limit=10**9) == "\n" * 200_000
    foot = "[line 199996 of 200000; go on with offset=199997]"
    assert desk.read(offset=199_995, limit=2) == rows("", "", first=199_995) + foot


def test_how_much_more_there_is_is_not_looked_up_at_any_price():
    desk = desk_of(b"x\n" * 10_000_000)
    assert desk.read(limit=1) == rows("x") + "[line 1, there is more; go on with offset=2]"
    assert desk.read(char_offset=0, char_limit=1) == (
        "[characters 0 to 1]\nx\n[1 characters, there is more; go on with char_offset=1]"
    )


class Endless(MemoryBackend):
    """Has a file of 40 MB that is nowhere."""

    def __init__(self, piece: bytes) -> None:
        super().__init__()
        self.piece = piece
        self.closed = False

    async def read(self, path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        try:
            for _ in range(40):
                yield self.piece * (1_000_000 // len(self.piece))
        finally:
            self.closed = True


ASKED = {
    "lines": ("read_file", {"path": FILE, "offset": 400_000}),
    "one line": ("read_file", {"path": FILE, "offset": 1}),
    "tail": ("read_file", {"path": FILE, "tail": 50}),
    "characters": ("read_file", {"path": FILE, "char_offset": 30_000_000}),
    "search": ("read_file", {"path": FILE, "search": "nowhere"}),
    "grep": ("grep", {"pattern": "nowhere"}),
    "grep in any case": ("grep", {"pattern": "NoWhere", "ignore_case": True}),
}


@pytest.mark.parametrize(("name", "arguments"), ASKED.values(), ids=ASKED)
@pytest.mark.parametrize("piece", [b"0123456789" * 9 + b"\n", b"endless "], ids=["lines", "one line"])
def test_memory_is_bounded_and_others_run_meanwhile(name: str, arguments: dict[str, Any], piece: bytes):
    endless = Endless(piece)
    desk = desk_of(b"", endless)
    turns = 0

    async def others() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def ask() -> str:
        beside = asyncio.create_task(others())
        try:
            return only_text(await desk.result(name, **arguments))
        finally:
            beside.cancel()

    tracemalloc.start()
    try:
        text = asyncio.run(ask())
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 0 < len(text) <= 2_000
    assert peak < 6_000_000
    assert turns > 300
    assert endless.closed


def test_a_window_reads_no_more_of_a_file_than_it_needs():
    endless = Endless(b"x\n")
    read: list[int] = []
    source = endless.read

    async def counted(path: str, start: int = 0, stop: int | None = None) -> AsyncGenerator[bytes, None]:
        async for piece in source(path, start, stop):
            read.append(len(piece))
            yield piece

    endless.read = counted
    assert desk_of(b"", endless).read(limit=1).startswith(rows("x"))
    assert sum(read) < 20_000_000


def test_two_windows_of_one_file_do_not_disturb_each_other():
    desk = desk_of(LINES)

    async def both() -> list[str]:
        asked = [desk.result("read_file", path=FILE, offset=number, limit=1) for number in range(1, 41)]
        return [only_text(result) for result in await asyncio.gather(*asked)]

    found = asyncio.run(both())
    assert [body_of(text) for text in found] == [f"line {number}\n" for number in range(1, 41)]


@given(chunks=chunkings)
def test_how_a_backend_cuts_its_chunks_makes_no_difference(chunks: list[int]):
    content = b"".join(NASTY) * 3
    whole, cut = Desk({FILE: content}), desk_of(content, InChunks(chunks))
    asked: list[dict[str, Any]] = [{}, {"tail": 9}, {"char_offset": 30, "char_limit": 40}, {"search": "\ufffd"}]
    for arguments in asked:
        assert cut.read(**arguments) == whole.read(**arguments)
