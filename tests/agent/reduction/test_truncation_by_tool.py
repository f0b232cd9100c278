"""What holds for one tool: the list of exceptions, its own flag, its handler, its backend. And what is refused."""

from itertools import product
from typing import Any

import pytest

import suture
import suture.middleware
from suture import ConfigError, ToolResult
from suture.messages import TextPart
from suture.middleware import ToolReduction, ToolReductionConfig, TruncResult
from suture.stores import MemoryBackend
from tests.agent.reduction._backends import as_bytes, paths, saved
from tests.agent.reduction._notices import notice, stream_notice
from tests.agent.reduction._tooling import each_kind, each_whole, made, on_each_wire, play, text_of

LIMIT = 1_000
LONG = text_of(5_000)
HANDLED = "handled"


async def whole(detail: Any) -> str:
    """Return the text of what a handler was given, streamed or not."""
    if detail.tool_result is not None:
        assert detail.stream_tool_result is None
        return "".join(part.text for part in detail.tool_result.parts)
    return "".join([part.text async for result in detail.stream_tool_result for part in result.parts])


async def one(*texts: str):
    for text in texts:
        yield ToolResult([TextPart(text)])


async def offloads(detail: Any) -> TruncResult:
    """Handle a call: save its text under a path of one's own, show another one."""
    text = await whole(detail)
    streams = detail.stream_tool_result is not None
    return TruncResult(
        need_trunc=True,
        tool_result=None if streams else ToolResult([TextPart(HANDLED)]),
        stream_tool_result=one(HANDLED) if streams else None,
        need_offload=True,
        offload_file_path=f"/mine/{detail.tool_context.call_id}",
        offload_content=text,
    )


# Exhaustively: (excluded, the tool's skip flag, a handler, a backend of its own, skipped globally, a global backend)
TABLE = list(product((False, True), (None, False, True), (False, True), (False, True), (False, True), (False, True)))


def expected(
    excluded: bool, skip: bool | None, handler: bool, own: bool, skipped: bool, shared: bool
) -> tuple[str, str]:
    """Say what becomes of the output, and in which backend it then is."""
    where = "own" if own else "shared" if shared else ""
    if (not skipped and not shared) or (skip is False and not handler and not where):
        return "refused", ""
    if excluded or skip is True:
        return "whole", ""
    if handler:
        return ("handled", where) if where else ("no backend", "")
    if skipped and skip is None:
        return "whole", ""
    return "cut", where


@each_kind
@pytest.mark.parametrize(("excluded", "skip", "handler", "own", "skipped", "shared"), TABLE)
def test_the_list_then_the_flag_then_the_handler_then_the_default(
    kind: str, excluded: bool, skip: bool | None, handler: bool, own: bool, skipped: bool, shared: bool
):
    backends = {"own": MemoryBackend(), "shared": MemoryBackend()}
    wanted, where = expected(excluded, skip, handler, own, skipped, shared)
    settings: dict[str, Any] = {
        "backend": backends["shared"] if shared else None,
        "skip_truncation": skipped,
        "root_dir": "/r",
        "max_length_for_trunc": LIMIT,
        "trunc_exclude_tools": ["dump"] if excluded else [],
        "tool_config": {
            "dump": ToolReductionConfig(
                backend=backends["own"] if own else None,
                skip_truncation=skip,
                trunc_handler=offloads if handler else None,
            )
        },
    }
    if wanted == "refused":
        with pytest.raises(ConfigError, match="backend must be set when not skipping truncation"):
            ToolReduction(**settings)
        return
    seen = play(ToolReduction(**settings), made(kind, LONG), tool_errors="raise")
    if wanted == "no backend":
        assert isinstance(seen.error, ConfigError)
        assert "truncation: no backend for offload" in str(seen.error)
        return
    by_default = LONG[:LIMIT] + stream_notice(LIMIT, "/r/trunc/c0") if "stream" in kind else ""
    by_default = by_default or notice(LONG, "/r/trunc/c0", LIMIT)
    assert seen.text == {"whole": LONG, "handled": HANDLED, "cut": by_default}[wanted]
    held = {name: paths(backend) for name, backend in backends.items()}
    path = "/mine/c0" if wanted == "handled" else "/r/trunc/c0"
    assert held == {name: [path] if name == where else [] for name in held}
    if where:
        assert saved(backends[where], path) == as_bytes(LONG)


def test_an_entry_for_one_tool_says_nothing_about_another():
    mine, shared = MemoryBackend(), MemoryBackend()
    reduction = ToolReduction(
        shared, root_dir="/r", max_length_for_trunc=LIMIT, tool_config={"grep": ToolReductionConfig(backend=mine)}
    )
    tools = [made("invokable", LONG, name="grep"), made("streamable", LONG)]
    seen = play(reduction, tools, [("a", "grep"), ("b", "dump")])
    seen.unharmed()
    assert (paths(mine), paths(shared)) == (["/r/trunc/a"], ["/r/trunc/b"])


def test_the_settings_are_read_when_it_is_made():
    backend = MemoryBackend()
    entries = {"dump": ToolReductionConfig(skip_truncation=True)}
    excluded = ["dump"]
    reduction = ToolReduction(backend, max_length_for_trunc=10, tool_config=entries, trunc_exclude_tools=excluded)
    entries.clear()
    excluded.clear()
    assert play(reduction, made("invokable", LONG)).text == LONG


# Handlers


def plain(detail: Any) -> TruncResult:
    """The same as `offloads`, not async; a stream is not looked at."""
    streams = detail.stream_tool_result is not None
    return TruncResult(
        need_trunc=True,
        tool_result=None if streams else ToolResult([TextPart(HANDLED)]),
        stream_tool_result=one(HANDLED[:4], HANDLED[4:]) if streams else None,
        need_offload=True,
        offload_file_path="/mine/c0",
        offload_content="full content",
    )


def handling(handler: Any, backend: Any = None) -> ToolReduction:
    entry = ToolReductionConfig(trunc_handler=handler)
    return ToolReduction(backend or MemoryBackend(), max_length_for_trunc=LIMIT, tool_config={"dump": entry})


@each_kind
@on_each_wire
def test_what_a_plain_handler_says_is_shown_and_saved(wire: str, kind: str):
    backend = MemoryBackend()
    seen = play(handling(plain, backend), made(kind, LONG), wire=wire)
    assert seen.text == HANDLED
    assert saved(backend, "/mine/c0") == b"full content"
    if "stream" in kind:
        assert "".join(seen.deltas()) == HANDLED


@each_kind
@on_each_wire
def test_what_an_async_handler_says_is_shown_and_saved(wire: str, kind: str):
    backend = MemoryBackend()
    seen = play(handling(offloads, backend), made(kind, LONG[:99], LONG[99:]), wire=wire)
    assert seen.text == HANDLED
    assert saved(backend, "/mine/c0") == as_bytes(LONG)


@each_kind
def test_a_handler_is_told_the_call_and_its_arguments_and_is_asked_about_short_outputs_too(kind: str):
    told: list[Any] = []

    async def handler(detail: Any) -> TruncResult:
        told.append((detail.tool_context.name, detail.tool_context.call_id, detail.tool_argument.text))
        told.append(await whole(detail))
        return TruncResult(need_trunc=False)

    assert play(handling(handler), made(kind, "short")).text == "short"
    assert told == [("dump", "c0", "{}"), "short"]


@each_kind
@on_each_wire
def test_a_handler_that_declines_leaves_the_whole_output_although_it_drained_its_copy(wire: str, kind: str):
    async def handler(detail: Any) -> TruncResult:
        assert await whole(detail) == LONG
        return TruncResult(need_trunc=False)

    backend = MemoryBackend()
    seen = play(handling(handler, backend), made(kind, LONG[:5], LONG[5:2_000], LONG[2_000:]), wire=wire)
    assert seen.text == LONG
    assert paths(backend) == []


@each_kind
def test_a_handler_that_declines_without_looking_leaves_the_whole_output(kind: str):
    seen = play(handling(lambda _: TruncResult(need_trunc=False)), made(kind, LONG[:5], LONG[5:]))
    assert seen.text == LONG


@each_kind
def test_a_handler_may_truncate_and_save_nothing(kind: str):
    async def handler(detail: Any) -> TruncResult:
        if detail.tool_result is not None:
            return TruncResult(need_trunc=True, tool_result=ToolResult([TextPart("cut")]))
        return TruncResult(need_trunc=True, stream_tool_result=one("cut"))

    backend = MemoryBackend()
    assert play(handling(handler, backend), made(kind, LONG)).text == "cut"
    assert paths(backend) == []


class HandlerError(Exception):
    pass


@each_kind
@pytest.mark.parametrize("asynchronous", [False, True])
@on_each_wire
def test_a_handlers_error_comes_out_as_it_is(wire: str, asynchronous: bool, kind: str):
    def fails(_: Any) -> TruncResult:
        raise HandlerError("no idea")

    async def fails_later(detail: Any) -> TruncResult:
        return fails(detail)

    handler = fails_later if asynchronous else fails
    seen = play(handling(handler), made(kind, LONG), wire=wire, tool_errors="raise")
    assert isinstance(seen.error, HandlerError)
    seen = play(handling(handler), made(kind, LONG), wire=wire)
    assert "HandlerError: no idea" in seen.text  # an error in a wrapper is the tool's


@each_kind
@on_each_wire
def test_a_tool_that_fails_at_once_is_told_as_ever_and_the_handler_is_not_asked(wire: str, kind: str):
    asked: list[Any] = []

    async def handler(detail: Any) -> TruncResult:
        asked.append(await whole(detail))
        return TruncResult(need_trunc=False)

    failing = made(kind, error=LookupError("nothing there"))
    seen = play(handling(handler), failing, wire=wire)
    bare = play([], failing, wire=wire)
    assert seen.text == bare.text
    assert "LookupError: nothing there" in seen.text
    if "stream" not in kind:
        assert asked == []
    raised = play(handling(handler), failing, wire=wire, tool_errors="raise").error
    assert isinstance(raised, LookupError)


@each_kind
@on_each_wire
def test_a_handler_is_not_asked_about_a_tool_on_the_list(wire: str, kind: str):
    def never(_: Any) -> TruncResult:
        raise AssertionError("asked")

    reduction = ToolReduction(
        MemoryBackend(),
        max_length_for_trunc=LIMIT,
        trunc_exclude_tools=("dump",),
        tool_config={"dump": ToolReductionConfig(trunc_handler=never)},
    )
    assert play(reduction, made(kind, LONG), wire=wire, tool_errors="raise").text == LONG


@each_kind
@on_each_wire
def test_a_handler_that_saves_without_a_backend_is_told_so(wire: str, kind: str):
    reduction = ToolReduction(skip_truncation=True, tool_config={"dump": ToolReductionConfig(trunc_handler=plain)})
    error = play(reduction, made(kind, LONG), wire=wire, tool_errors="raise").error
    assert isinstance(error, ConfigError)
    assert "truncation: no backend for offload" in str(error)


@each_kind
def test_the_path_of_a_handler_is_never_overwritten(kind: str):
    for calls in ([[("a", "dump")], [("b", "dump")]], [[("a", "dump"), ("b", "dump")]]):
        backend, texts = MemoryBackend(), iter(["first content", "second content"])

        def handler(detail: Any, texts: Any = texts) -> TruncResult:
            streams = detail.stream_tool_result is not None
            return TruncResult(
                need_trunc=True,
                tool_result=None if streams else ToolResult([TextPart(HANDLED)]),
                stream_tool_result=one(HANDLED) if streams else None,
                need_offload=True,
                offload_file_path="/mine/same",
                offload_content=next(texts),
            )

        seen = play(handling(handler, backend), made(kind, LONG), *calls, tool_errors="raise")
        assert isinstance(seen.error, ConfigError), calls
        assert "/mine/same" in str(seen.error)
        assert saved(backend, "/mine/same") == b"first content"


SHOWN = ToolResult([TextPart("x")])
WRONG: dict[str, Any] = {
    "nothing": None,
    "a text": "cut",
    "no result": TruncResult(need_trunc=True),
    "no path": TruncResult(need_trunc=True, tool_result=SHOWN, need_offload=True, offload_content="x"),
    "a result that is a text": TruncResult(need_trunc=True, tool_result="x"),  # pyright: ignore[reportArgumentType]
}


@each_kind
@pytest.mark.parametrize("wrong", WRONG)
def test_a_handler_that_gives_what_it_must_not_is_a_config_error_naming_it(kind: str, wrong: str):
    seen = play(handling(lambda _: WRONG[wrong]), made(kind, LONG), tool_errors="raise")
    assert isinstance(seen.error, ConfigError)
    assert "trunc_handler" in str(seen.error)
    assert "dump" in str(seen.error)


@each_whole
def test_a_stream_for_a_tool_that_does_not_stream_is_a_config_error(kind: str):
    seen = play(
        handling(lambda _: TruncResult(need_trunc=True, stream_tool_result=one("x"))),
        made(kind, LONG),
        tool_errors="raise",
    )
    assert isinstance(seen.error, ConfigError)


# What is refused at once

NUMBERS = (
    "max_length_for_trunc",
    "max_length_per_turn",
    "max_tokens_for_clear",
    "clear_down_to_tokens",
    "clear_retention_suffix_limit",
    "clear_at_least_tokens",
    "max_length_for_read",
)


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("wrong", [-1, True, 1.5, "10"])
def test_a_number_that_is_none_is_refused_by_its_name(name: str, wrong: Any):
    with pytest.raises(ConfigError, match=name):
        ToolReduction(MemoryBackend(), **{name: wrong})


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("right", [None, 0, 1])
def test_none_zero_and_one_are_numbers(name: str, right: Any):
    if (name, right) == ("max_length_for_read", 0):  # a reader that may show nothing would never come to an end
        with pytest.raises(ConfigError, match=name):
            ToolReduction(MemoryBackend(), max_length_for_read=0)
        return
    ToolReduction(MemoryBackend(), **{name: right})


def test_without_a_backend_only_clearing_is_possible():
    with pytest.raises(ConfigError, match=r"^backend must be set when not skipping truncation"):
        ToolReduction()
    with pytest.raises(ConfigError, match=r"^backend must be set when not skipping truncation"):
        ToolReduction(skip_clear=True)
    ToolReduction(skip_truncation=True)
    ToolReduction(skip_truncation=True, skip_clear=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tool_config": {"dump": None}},
        {"tool_config": {"dump": {"skip_truncation": True}}},
        {"on_backend_error": "ignore"},
        {"backend": object()},
    ],
)
def test_what_cannot_work_is_refused_when_it_is_made(wrong: dict[str, Any]):
    with pytest.raises(ConfigError):
        ToolReduction(**{"backend": MemoryBackend(), **wrong})


def test_the_names_are_in_the_room_of_middlewares():
    for name in ("ToolReduction", "ToolReductionConfig", "ToolDetail", "TruncResult", "ClearResult"):
        assert name in suture.middleware.__all__
