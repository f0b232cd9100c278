"""Finding lines in what was saved: `read_file` with `search`, `grep`, and the list that `ls` gives."""

import asyncio
import re
from collections.abc import Iterator
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from suture.reduction import Saved
from suture.stores import MemoryBackend
from tests.agent.reduction._desk import FILE, Desk, InChunks, backend, desk_of, only_text, rows, text_in

__all__ = ["backend"]

OTHER = "/run/clear/c1"
NOTHING = "[nothing was saved in this conversation so far]"

WORDS = [
    *[b"\n"] * 12, b"-\n-\n-\n-\n", b"\r\n", b"ab", b"AB", b"a", b"b", b"aab", b"\0", b".", b"x" * 30,
    "éß".encode(), b"\xff", b"\xed\xa0\x80", b"[cut]", "…".encode(),
]  # fmt: skip
contents = st.lists(st.sampled_from(WORDS), max_size=80).map(b"".join)
chunkings = st.lists(st.integers(1, 60), min_size=1, max_size=4)
patterns = st.sampled_from(["ab", "a", "B", ".", "aab", "xxx", "é", "\ufffd", "\0", "a.", "nowhere", "\r"])


def lines_of(content: bytes) -> list[str]:
    text = text_in(content)
    return text.removesuffix("\n").split("\n") if text else []


# --- read_file with search ------------------------------------------------------------------------


async def search_all(desk: Desk, **arguments: Any) -> Iterator[tuple[int, str]]:
    """Return all lines that are found, by following what each window says."""
    found: list[tuple[int, str]] = []
    offset = 1
    while True:
        text = only_text(await desk.result("read_file", path=FILE, offset=offset, **arguments))
        assert len(text) <= desk.most
        *lines, foot = text.split("\n")
        found += [(int(line[:6]), line[7:]) for line in lines]
        more = re.fullmatch(r"\[more lines contain it; go on with offset=(\d+)\]", foot)
        if more is None:
            assert re.match(r"\[(end of file, |no line from |the file is empty)", foot)
            return iter(found)
        assert lines
        offset = int(more[1])


@given(content=contents, chunks=chunkings, pattern=patterns, limit=st.integers(1, 9))
def test_a_search_finds_exactly_the_lines_that_contain_the_text(
    content: bytes, chunks: list[int], pattern: str, limit: int
):
    desk = desk_of(content, InChunks(chunks))
    found = list(asyncio.run(search_all(desk, search=pattern, limit=limit)))
    expected = [(number, line) for number, line in enumerate(lines_of(content), 1) if pattern in line]
    assert [number for number, _ in found] == [number for number, _ in expected]
    for (_, shown), (_, line) in zip(found, expected, strict=True):
        assert shown == line if len(line) <= 400 else pattern in shown


FRUIT = b"apple\nbanana\ncherry\napple pie\n"
SEARCHES = {
    "lines with their numbers": (
        {"search": "apple"},
        "     1\tapple\n     4\tapple pie\n[end of file, 4 lines; no more of them contain it]",
    ),
    "from a line on": (
        {"search": "apple", "offset": 2},
        "     4\tapple pie\n[end of file, 4 lines; no more of them contain it]",
    ),
    "from its last line on": (
        {"search": "apple", "offset": 4},
        "     4\tapple pie\n[end of file, 4 lines; no more of them contain it]",
    ),
    "so many": ({"search": "apple", "limit": 1}, "     1\tapple\n[more lines contain it; go on with offset=4]"),
    "plain text": ({"search": "a.p"}, "[no line from 1 on contains 'a.p'; the file has 4 lines]"),
    "case matters": ({"search": "APPLE"}, "[no line from 1 on contains 'APPLE'; the file has 4 lines]"),
    "behind the end": ({"search": "apple", "offset": 9}, "[no line from 9 on contains 'apple'; the file has 4 lines]"),
    "no text is no search": ({"search": "", "limit": 1}, rows("apple") + "[line 1 of 4; go on with offset=2]"),
}  # fmt: skip


@pytest.mark.parametrize(("arguments", "text"), SEARCHES.values(), ids=SEARCHES)
def test_a_search_shows(arguments: dict[str, Any], text: str, backend: Any):
    assert desk_of(FRUIT, backend).read(**arguments) == text


def test_an_empty_file_holds_no_text():
    assert desk_of(b"").read(search="x") == "[no line from 1 on contains 'x'; the file has 0 lines]"


def test_tail_and_search_do_not_go_together():
    assert "give one of them" in desk_of(FRUIT).refused("read_file", path=FILE, search="a", tail=2)


@pytest.mark.parametrize(
    ("place", "size"), [*product([0, 3, 32_765, 65_534, 1_000_000], [5_000, 40_000, 2**20]), (1_234, 1), (4_321, 7)]
)
def test_a_match_in_an_endless_line_is_shown_with_what_surrounds_it(place: int, size: int):
    content = b"-" * place + b"needle" + b"+" * 5_000
    desk = desk_of(b"first\n" + content + b"\n", InChunks([size]))
    before, after = "-" * min(place, 200), "+" * 200
    left = "…" if place > 200 else ""
    shown = f"{left}{before}needle{after}… [cut; the match is at char_offset={6 + place}]"
    assert desk.read(search="needle") == rows(shown, first=2) + "[end of file, 2 lines; no more of them contain it]"
    assert desk.told("grep", pattern="needle") == f"{FILE}:2:{shown}\n[1 matching line in 1 file]"
    assert desk.read(char_offset=6 + place, char_limit=6).split("\n")[1] == "needle"


def test_a_match_at_the_end_of_a_long_line_is_not_said_to_go_on():
    shown = f"…{'-' * 200}needle [cut; the match is at char_offset=1000]"
    assert desk_of(b"-" * 1_000 + b"needle").told("grep", pattern="needle").startswith(f"{FILE}:1:{shown}\n")


# --- grep -----------------------------------------------------------------------------------------


def grep_of(content: bytes, pattern: str, *, ignore_case: bool) -> list[str]:
    """Return what grep shows, written the plain way."""
    flags = re.IGNORECASE if ignore_case else re.NOFLAG
    found = [(at, line) for at, line in enumerate(lines_of(content), 1) if re.search(re.escape(pattern), line, flags)]
    return [f"{FILE}:{at}:{line}" for at, line in found]


@given(content=contents, chunks=chunkings, pattern=patterns, ignores=st.booleans())
def test_grep_finds_what_a_plain_loop_finds(content: bytes, chunks: list[int], pattern: str, ignores: bool):
    desk = desk_of(content, InChunks(chunks), most=50_000)
    text = desk.told("grep", pattern=pattern, ignore_case=ignores)
    expected = grep_of(content, pattern, ignore_case=ignores)
    *shown, foot = text.split("\n")
    if any(len(line) > 400 for line in lines_of(content)):
        shown, expected = ([line[:20] for line in each] for each in (shown, expected))
    assert shown == expected
    assert foot.startswith(f"[{len(expected)} matching line" if expected else "[no line contains ")


def test_grep_looks_in_all_files_in_the_order_of_their_paths(backend: Any):
    desk = Desk({FILE: FRUIT, OTHER: b"pear\nPineapple\n"}, backend)
    assert desk.told("grep", pattern="apple") == (
        f"{OTHER}:2:Pineapple\n{FILE}:1:apple\n{FILE}:4:apple pie\n[3 matching lines in 2 files]"
    )
    assert desk.told("grep", pattern="PEAR", ignore_case=True) == f"{OTHER}:1:pear\n[1 matching line in 2 files]"


def test_grep_looks_in_one_file(backend: Any):
    desk = Desk({FILE: FRUIT, OTHER: b"pear\nPineapple\n"}, backend)
    assert desk.told("grep", pattern="apple", path=OTHER) == f"{OTHER}:2:Pineapple\n[1 matching line in 1 file]"


def test_grep_tells_no_match_from_no_such_file():
    desk = Desk({FILE: FRUIT, OTHER: b""})
    assert desk.told("grep", pattern="fig") == "[no line contains 'fig' in 2 files]"
    assert desk.told("grep", pattern="fig", path=FILE) == "[no line contains 'fig' in 1 file]"
    assert desk.refused("grep", pattern="fig", path="/run/trunc/c9") == (
        "no output of this conversation was saved at '/run/trunc/c9'; ls lists what was"
    )


@pytest.mark.parametrize("pattern", ["interface{}", "map[..]", "func()", "$variable", "*pointer", "^a", "a|b", "\\d+"])
def test_grep_takes_no_regular_expressions(pattern: str):
    desk = desk_of(f"no\n{pattern}\n5 ab\n".encode())
    assert desk.told("grep", pattern=pattern) == f"{FILE}:2:{pattern}\n[1 matching line in 1 file]"


WRONG = {
    "nothing": ("", "the text to look for is empty"),
    "two lines": ("a\nb", "a text is looked for within lines; this one has a line break, so no line contains it"),
    "too much": ("x" * 1_001, "the text to look for has 1001 characters; 1000 are the most"),
}


@pytest.mark.parametrize(("pattern", "said"), WRONG.values(), ids=WRONG)
def test_grep_refuses_what_no_line_can_contain(pattern: str, said: str):
    desk = desk_of(FRUIT)
    assert desk.refused("grep", pattern=pattern) == said
    if pattern:
        assert desk.refused("read_file", path=FILE, search=pattern) == said


def test_a_lone_surrogate_is_looked_for_as_it_is_shown():
    desk = desk_of("a\ud800b\n".encode("utf-8", "surrogatepass"))
    assert desk.told("grep", pattern="a\ufffdb") == f"{FILE}:1:a\ufffdb\n[1 matching line in 1 file]"
    result = asyncio.run(desk.tools["grep"](pattern="a\ud800b"))
    assert only_text(result) == f"{FILE}:1:a\ufffdb\n[1 matching line in 1 file]"


def test_grep_says_that_there_are_more_and_how_to_see_them():
    desk = desk_of(b"match\n" * 5_000, most=600)
    text = desk.told("grep", pattern="match")
    *shown, foot = text.split("\n")
    assert shown == [f"{FILE}:{number}:match" for number in range(1, len(shown) + 1)]
    assert foot == f"[{len(shown)} matching lines, and more; read_file with search and offset shows them]"
    assert 400 < len(text) <= 600


def test_grep_does_not_read_on_when_it_has_enough():
    class Counting(MemoryBackend):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[str] = []

        async def read(self, path: str, start: int = 0, stop: int | None = None):
            for _ in range(1_000):
                self.asked.append(path)
                yield b"match\n" * 10_000

    backend = Counting()
    text = Desk({FILE: b"", OTHER: b""}, backend, most=600).told("grep", pattern="match")
    assert "matching lines, and more; " in text
    assert set(backend.asked) == {OTHER}
    assert len(backend.asked) < 5


def test_a_row_that_does_not_fit_is_cut():
    desk = desk_of(b"-" * 500 + b"needle" + b"+" * 500, most=160)
    text = desk.told("grep", pattern="needle")
    assert len(text) <= 160
    assert "needle" in text


def test_a_match_far_down_is_where_it_says():
    desk = desk_of("é\n".encode() * 50_000 + b"-" * 900 + b"needle", InChunks([30_000]))
    text = desk.told("grep", pattern="needle")
    assert f"{FILE}:50001:" in text
    assert "[cut; the match is at char_offset=100900]" in text


# --- ls -------------------------------------------------------------------------------------------


def test_ls_lists_what_was_saved_in_the_order_of_the_paths(backend: Any):
    desk = Desk({}, backend)
    desk.record(Saved(FILE, "c0", "dump", "trunc", 80_000), Saved(OTHER, "c1", "search", "clear", 1))
    assert desk.told("ls") == (
        f"{OTHER}  search  1 character  cleared\n{FILE}  dump  80000 characters  truncated\n[2 outputs saved]"
    )


def test_ls_and_grep_say_that_nothing_was_saved():
    desk = Desk({})
    assert desk.told("ls") == NOTHING
    assert desk.told("grep", pattern="x") == NOTHING


def test_a_long_list_can_be_followed_to_its_end():
    paths = [f"/run/clear/c{number:03d}" for number in range(100)]
    desk = Desk({}, most=400)
    desk.record(*[Saved(path, "c", "dump", "clear", 5) for path in reversed(paths)])
    found: list[str] = []
    offset: int | None = 1
    while offset is not None:
        text = desk.told("ls", offset=offset)
        assert len(text) <= 400
        *lines, foot = text.split("\n")
        found += [line.split("  ")[0] for line in lines]
        more = re.fullmatch(rf"\[{len(found)} of 100; go on with offset=(\d+)\]", foot)
        assert more or foot == "[100 outputs saved]"
        offset = int(more[1]) if more else None
    assert found == paths
    assert desk.told("ls", offset=101) == "[offset 101 is behind the end; 100 outputs saved]"
    assert desk.told("ls", offset=-3) == desk.told("ls")


def test_names_that_anybody_chose_cannot_write_lines_of_the_list():
    desk = Desk({}, most=400)
    desk.record(Saved("/a\nb", "c", "x\n/etc/passwd", "clear\u2028", 2))
    assert desk.told("ls") == "/a\\nb  x\\n/etc/passwd  2 characters  clear\\u2028\n[1 output saved]"
    desk = Desk({}, most=400)
    desk.record(Saved("/" + "a" * 900, "c", "dump"), Saved("/b", "c", "dump"))
    assert len(desk.told("ls")) <= 400
    assert desk.told("ls", offset=2) == "/b  dump  0 characters  cleared\n[2 outputs saved]"
