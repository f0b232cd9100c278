"""Truncation of what tools give, for all four kinds on all wires: what the model sees, and what is kept.

The reference's small examples (70 characters of 199) are scaled up where a notice would be longer than the text it
stands for; such a text is left alone.
"""

import json
from typing import Any

import pytest

from suture import ToolResult
from suture.messages import AudioPart, FilePart, ImagePart, TextPart, ToolInfo, ToolSearchPart, VideoPart
from suture.middleware import ToolReduction
from suture.stores import MemoryBackend, MemoryStore
from tests.agent.reduction._backends import AsyncShelf, Shelf, as_bytes, paths, saved
from tests.agent.reduction._notices import notice, path_in, stream_notice
from tests.agent.reduction._tooling import (
    KINDS,
    THREADS,
    each_kind,
    each_whole,
    giving,
    made,
    on_each_wire,
    play,
    results,
    said,
    text_of,
)

LIMIT = 1_000
LONG = text_of(5_000)
PATH = "/tmp/trunc/c0"


def cut(kind: str, text: str, path: str = PATH, limit: int = LIMIT, **how: Any) -> str:
    """Return what is left of a text."""
    if "streamable" in kind:
        return text[:limit] + stream_notice(limit, path, **how)
    return notice(text, path, limit, **how)


def reducing(backend: Any, **settings: Any) -> ToolReduction:
    return ToolReduction(backend, **{"root_dir": "/tmp", "max_length_for_trunc": LIMIT, **settings})


@pytest.mark.parametrize("kind", KINDS + THREADS)
@pytest.mark.parametrize("language", ["en", "zh"])
@on_each_wire
def test_a_long_output_is_saved_whole_and_replaced_by_the_exact_text(wire: str, language: str, kind: str):
    backend = MemoryBackend()
    seen = play(reducing(backend), made(kind, LONG[:300], LONG[300:]), wire=wire, language=language)
    assert seen.text == cut(kind, LONG, language=language)
    assert saved(backend, PATH) == as_bytes(LONG)
    assert paths(backend) == [PATH]


@each_kind
def test_the_text_is_the_same_where_the_run_chooses_the_language_or_does_not_stream(kind: str):
    for choices in ({"language": "zh"}, {"language": "zh", "streaming": False}):
        seen = play(reducing(MemoryBackend()), made(kind, LONG), choices=choices)
        assert seen.text == cut(kind, LONG, language="zh")


@each_kind
@on_each_wire
def test_the_text_names_the_reading_tool(wire: str, kind: str):
    backend = MemoryBackend()
    seen = play(reducing(backend, read_file_tool_name="cat_file"), made(kind, LONG), wire=wire)
    assert seen.text == cut(kind, LONG, reader="cat_file")
    assert "cat_file to view" in seen.text


@each_kind
@pytest.mark.parametrize("length", [0, 1, LIMIT - 1, LIMIT])
@on_each_wire
def test_up_to_and_at_the_limit_nothing_changes_in_any_mode(wire: str, length: int, kind: str):
    backend, text = MemoryBackend(), text_of(length)
    seen = play(reducing(backend), made(kind, text), wire=wire)
    assert seen.text == text
    assert said(seen.finished()) == text
    assert paths(backend) == []


@each_kind
@on_each_wire
def test_over_the_limit_a_text_is_cut_as_soon_as_that_makes_it_shorter(wire: str, kind: str):
    """The notice itself has a length; a text that would grow is left alone, a stream that ends within it passes."""
    lengths = range(LIMIT + 1, LIMIT + 300)
    cuts = [
        length for length in lengths if len(cut(kind, text_of(length))) < length
    ]  # the documents' own text, not the code's
    for length in (cuts[0] - 1, cuts[0], cuts[0] + 1):
        backend, text = MemoryBackend(), text_of(length)
        seen = play(reducing(backend), made(kind, text), wire=wire)
        assert seen.text == (text if length < cuts[0] else cut(kind, text)), length
        assert paths(backend) == ([] if length < cuts[0] else [PATH])


@each_kind
def test_a_result_never_grows_by_being_truncated(kind: str):
    for limit in (0, 1, 7, 100):
        for length in (1, 2, limit + 1, limit + 50, limit + 150, limit + 300):
            backend, text = MemoryBackend(), text_of(length)
            shown = play(reducing(backend, max_length_for_trunc=limit), made(kind, text)).text
            assert len(shown) <= len(text), (limit, length)
            if shown != text:
                assert saved(backend, path_in(shown)) == as_bytes(text)


@each_kind
def test_the_limit_counts_characters_and_previews_are_never_half_a_character_catalogue_73(kind: str):
    backend = MemoryBackend()
    at = "你好世界" * (LIMIT // 4)
    assert play(reducing(backend), made(kind, at)).text == at
    assert paths(backend) == []
    for text in ("你好世界" * 500, "hello你好world" * 200, "\U0001f600é" * 700):
        backend = MemoryBackend()
        assert play(reducing(backend), made(kind, text)).text == cut(kind, text)
        assert saved(backend, PATH) == text.encode()


@each_kind
def test_zero_means_zero(kind: str):
    backend = MemoryBackend()
    seen = play(reducing(backend, max_length_for_trunc=0), made(kind, LONG))
    assert seen.text == cut(kind, LONG, limit=0)
    assert saved(backend, PATH) == as_bytes(LONG)
    assert play(reducing(backend, max_length_for_trunc=0), made(kind, "")).text == ""


@each_kind
def test_none_means_the_default_which_is_50_000(kind: str):
    given: list[dict[str, Any]] = [{}, {"max_length_for_trunc": None}]
    for settings in given:
        backend, at, over = MemoryBackend(), text_of(50_000), text_of(60_000)
        reduction = ToolReduction(backend, **settings)
        assert play(reduction, made(kind, at)).text == at
        assert paths(backend) == []
        seen = play(reduction, made(kind, over))
        path = f"/{seen.result.run_id}/trunc/c0"
        assert seen.text == cut(kind, over, path, limit=50_000)
        assert saved(backend, path) == as_bytes(over)


@each_kind
def test_a_run_with_a_checkpoint_keeps_its_output_under_that_name(kind: str):
    backend = MemoryBackend()
    reduction = ToolReduction(backend, max_length_for_trunc=LIMIT)
    seen = play(reduction, made(kind, LONG), choices={"checkpoint_id": "talk-1"}, checkpoint_store=MemoryStore())
    assert seen.text == cut(kind, LONG, "/talk-1/trunc/c0")
    assert saved(backend, "/talk-1/trunc/c0") == as_bytes(LONG)


@each_kind
@pytest.mark.parametrize("shelf", [Shelf, AsyncShelf])
@on_each_wire
def test_a_backend_that_can_only_write_gets_the_whole_text(wire: str, shelf: type[Shelf], kind: str):
    backend = shelf()
    seen = play(reducing(backend), made(kind, *(LONG[at : at + 100] for at in range(0, 5_000, 100))), wire=wire)
    assert seen.text == cut(kind, LONG)
    assert backend.files == {PATH: LONG}


# Which tools


@each_kind
@on_each_wire
def test_a_tool_on_the_list_is_left_alone_and_the_others_are_not(wire: str, kind: str):
    backend = MemoryBackend()
    tools = [made(kind, LONG, name="important_tool"), made(kind, LONG)]
    reduction = reducing(backend, trunc_exclude_tools=["important_tool"])
    seen = play(reduction, tools, [("a", "important_tool"), ("b", "dump")], wire=wire)
    seen.unharmed()
    assert seen.kept == seen.sent() == [LONG, cut(kind, LONG, "/tmp/trunc/b")]
    assert paths(backend) == ["/tmp/trunc/b"]


@each_kind
@pytest.mark.parametrize("name", ["read_file", "cat_file"])
@on_each_wire
def test_what_the_reading_tool_gives_is_never_truncated(wire: str, name: str, kind: str):
    backend, longer = MemoryBackend(), text_of(300_000)
    reduction = reducing(backend, read_file_tool_name=name, max_length_per_turn=2_000)
    seen = play(reduction, made(kind, longer, name=name), [("c0", name)], wire=wire)
    assert seen.text == longer
    assert paths(backend) == []


@each_kind
@on_each_wire
def test_skipped_the_tool_is_called_once_as_if_nothing_were_there(wire: str, kind: str):
    backend = MemoryBackend()
    reduction = ToolReduction(backend, skip_truncation=True, max_length_for_trunc=10, max_length_per_turn=10)
    seen = play(reduction, made(kind, LONG[:300], LONG[300:]), wire=wire)
    assert seen.text == LONG
    assert seen.deltas() == ([LONG[:300], LONG[300:]] if "streamable" in kind else [])
    assert paths(backend) == []


# Where


@each_kind
@on_each_wire
def test_a_path_of_ones_own_is_used_and_its_maker_is_told_which_call(wire: str, kind: str):
    for asynchronous in (False, True):
        asked: list[tuple[str, str, str]] = []

        def maker(detail: Any, asked: list[tuple[str, str, str]] = asked) -> str:
            asked.append((detail.tool_context.name, detail.tool_context.call_id, detail.tool_argument.text))
            return f"/custom/{detail.tool_context.call_id}.txt"

        async def later(detail: Any, maker: Any = maker) -> str:
            return maker(detail)

        backend = MemoryBackend()
        reduction = reducing(backend, gen_trunc_offload_file_path=later if asynchronous else maker)
        seen = play(reduction, made(kind, LONG), wire=wire)
        assert seen.text == cut(kind, LONG, "/custom/c0.txt")
        assert paths(backend) == ["/custom/c0.txt"]
        assert saved(backend, "/custom/c0.txt") == as_bytes(LONG)
        assert set(asked) == {("dump", "c0", "{}")}


# Several parts

IMAGE = ImagePart(base64_data="aW1hZ2U=", mime_type="image/png", detail="high", extra={"id": 7})
MEDIA = (
    IMAGE,
    AudioPart(base64_data="YXVkaW8=", mime_type="audio/wav"),
    VideoPart(url="https://example.com/v.mp4"),
    FilePart(url="https://example.com/f.pdf", name="f.pdf"),
)


@on_each_wire
def test_media_and_found_tools_stay_as_they_are_beside_a_text_that_is_cut(wire: str):
    backend = MemoryBackend()
    found = ToolSearchPart(tools=(ToolInfo("weather", "Tell the weather.", {"type": "object"}),))
    given = (IMAGE, TextPart(LONG), *MEDIA[1:], found)
    seen = play(reducing(backend), giving(*given), wire=wire)
    seen.unharmed()
    shown = seen.finished().parts
    assert shown == (IMAGE, TextPart(notice(LONG, PATH, LIMIT)), *MEDIA[1:], found)
    assert notice(LONG, PATH, LIMIT) in seen.sent()[0]


def test_one_text_is_saved_as_it_is_and_several_parts_as_json():
    backend = MemoryBackend()
    words = "你好 <b>&</b> " * 300
    play(reducing(backend), giving(TextPart(LONG), TextPart(words), IMAGE))
    file = saved(backend, PATH).decode()
    held = json.loads(file)
    assert [part["type"] for part in held] == ["text", "text", "image"]
    assert [part.get("text") for part in held] == [LONG, words, None]
    assert held[2]["base64_data"] == IMAGE.base64_data
    assert "\n\t" in file
    assert words in file  # neither ASCII-escaped nor HTML-escaped: tools that look at lines can read it


@each_whole
def test_one_text_is_no_json(kind: str):
    backend = MemoryBackend()
    play(reducing(backend), made(kind, LONG))
    assert saved(backend, PATH) == as_bytes(LONG)


def test_each_text_part_gets_its_share_and_those_within_it_stay():
    backend = MemoryBackend()
    small, exact, over = "small", text_of(LIMIT // 4), text_of(3_000)
    seen = play(reducing(backend), giving(TextPart(small), TextPart(exact), TextPart(over), TextPart(LONG)))
    seen.unharmed()
    assert [part.text for part in seen.finished().parts if isinstance(part, TextPart)] == [
        small,
        exact,
        notice(over, PATH, LIMIT // 4),
        notice(LONG, PATH, LIMIT // 4),
    ]
    assert paths(backend) == [PATH]


def test_the_sum_of_the_texts_decides_and_at_the_limit_it_stays():
    backend = MemoryBackend()
    halves = TextPart(text_of(LIMIT // 2)), TextPart(text_of(LIMIT // 2))
    assert play(reducing(backend), giving(*halves)).finished().parts == halves
    assert paths(backend) == []


@on_each_wire
def test_more_texts_than_the_limit_has_characters_show_nothing_of_any(wire: str):
    backend = MemoryBackend()
    texts = [text_of(2_000 + number) for number in range(20)]
    seen = play(reducing(backend, max_length_for_trunc=10), giving(*map(TextPart, texts)), wire=wire)
    seen.unharmed()
    assert seen.finished().parts == tuple(TextPart(notice(text, PATH, 0)) for text in texts)
    assert [part["text"] for part in json.loads(saved(backend, PATH))] == texts


@on_each_wire
def test_many_small_texts_do_not_become_as_many_notices(wire: str):
    backend = MemoryBackend()
    seen = play(reducing(backend, max_length_for_trunc=50), giving(*[TextPart("abc")] * 100), wire=wire)
    seen.unharmed()
    assert len(said(seen.finished())) <= 300


@on_each_wire
@pytest.mark.parametrize("parts", [(), MEDIA, (TextPart(""),), (TextPart(""), IMAGE)])
def test_without_text_there_is_nothing_to_truncate(wire: str, parts: Any):
    backend = MemoryBackend()
    seen = play(reducing(backend, max_length_for_trunc=0), giving(*parts), wire=wire)
    seen.unharmed()
    assert seen.finished().parts == parts
    assert paths(backend) == []


def test_the_tools_own_result_is_not_touched():
    from suture import tool

    mine = ToolResult([TextPart(LONG), IMAGE], extra={"page": 1})
    before = list(mine.parts)

    @tool
    async def dump() -> ToolResult:
        """Dump."""
        return mine

    seen = play(reducing(MemoryBackend()), dump)
    seen.unharmed()
    assert mine == ToolResult([TextPart(LONG), IMAGE], extra={"page": 1})
    assert all(old is new for old, new in zip(before, mine.parts, strict=True))
    assert seen.finished().parts[0] != mine.parts[0]
    assert seen.finished().extra["page"] == 1


@on_each_wire
def test_a_history_that_somebody_holds_does_not_change_afterwards(wire: str):
    """Old requests are held while the run goes on; what they say is noted when they are sent."""
    backend = MemoryBackend()
    rounds = [[(f"r{number}", "dump")] for number in range(4)]
    seen = play(reducing(backend), made("invokable", LONG), *rounds, wire=wire)
    seen.unharmed()
    assert [seen.sent(number) for number in range(5)] == [
        [cut("invokable", LONG, f"/tmp/trunc/r{k}") for k in range(number)] for number in range(5)
    ]


@on_each_wire
def test_a_result_that_tells_of_a_failure_still_does_when_it_is_truncated(wire: str):
    from suture import tool

    @tool
    async def dump() -> ToolResult:
        """Dump."""
        return ToolResult([TextPart(LONG)], is_error=True)

    seen = play(reducing(MemoryBackend()), dump, wire=wire)
    assert seen.text == cut("invokable", LONG)
    assert seen.finished().is_error
    assert results(wire, seen.result.messages)[0][2] == (wire != "openai-chat")  # that wire does not tell
