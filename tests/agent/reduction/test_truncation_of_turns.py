"""What is truncated before the next model turn: results that passed no wrapper, and turns that are too long."""

import asyncio
import re
from typing import Any

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, ToolResult, replace
from suture.messages import TextPart
from suture.middleware import ToolReduction, ToolReductionConfig
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel
from tests.agent.reduction._backends import as_bytes, fetch, paths, saved
from tests.agent.reduction._notices import TAG, notice, path_in, paths_in, stream_notice
from tests.agent.reduction._tooling import WHOLE, asks, each_kind, made, on_each_wire, play, results, said, text_of
from tests.shapes.notation import call, turn
from tests.shapes.wires import render

LIMIT = 10_000
OVERHEAD = 400  # more than a notice has beside its previews


def reducing(backend: Any, **settings: Any) -> ToolReduction:
    return ToolReduction(backend, **{"root_dir": "/r", "max_length_for_trunc": LIMIT, **settings})


def tools_of(*lengths: int, kind: str = "invokable") -> tuple[list[Any], list[tuple[str, str]], list[str]]:
    """Return tools that give texts of these lengths, calls of them, and the texts."""
    texts = [text_of(length) for length in lengths]
    tools = [made(kind, text, name=f"t{number}") for number, text in enumerate(texts)]
    return tools, [(f"c{number}", f"t{number}") for number in range(len(texts))], texts


# Results that passed no wrapper


@each_kind
@on_each_wire
def test_a_tools_exception_of_a_megabyte_is_truncated_before_the_next_model_turn(wire: str, kind: str):
    backend = MemoryBackend()
    failing = made(kind, error=RuntimeError("x" * 1_000_000 + "end"))
    told = play([], failing, wire=wire).text
    assert len(told) > 1_000_000
    seen = play(reducing(backend), failing, wire=wire)
    assert seen.text == notice(told, "/r/trunc/c0", LIMIT)
    assert saved(backend, "/r/trunc/c0") == as_bytes(told)
    assert results(wire, seen.result.messages)[0][2] == (wire != "openai-chat")


class Inflates(ChatModelAgentMiddleware[Any]):
    """Stands outside of ToolReduction and says much."""

    async def wrap_tool_call(self, call: Any, proceed: Any) -> ToolResult:
        result = await proceed(call)
        return replace(result, parts=[TextPart(text_of(30_000) + said(result))])


@on_each_wire
def test_what_another_middleware_puts_around_a_result_is_truncated_before_the_next_model_turn(wire: str):
    backend = MemoryBackend()
    seen = play([Inflates(), reducing(backend)], made("invokable", "short"), wire=wire)
    shown = seen.text
    assert len(shown) < LIMIT + OVERHEAD
    assert as_bytes(text_of(30_000)) in saved(backend, path_in(shown))


@on_each_wire
def test_a_failing_tool_on_the_list_keeps_its_long_error(wire: str):
    backend = MemoryBackend()
    failing = made("invokable", error=RuntimeError("x" * 50_000))
    seen = play(reducing(backend, trunc_exclude_tools=["dump"]), failing, wire=wire)
    assert seen.text == play([], failing, wire=wire).text
    assert paths(backend) == []


# The budget of a turn


@each_kind
@on_each_wire
def test_results_that_fill_the_budget_exactly_stay_and_one_character_more_is_too_much(wire: str, kind: str):
    tools, calls, texts = tools_of(1_000, 3_000, 6_000, kind=kind)
    backend = MemoryBackend()
    seen = play(reducing(backend, max_length_per_turn=10_000), tools, calls, wire=wire)
    seen.unharmed()
    assert seen.kept == seen.sent() == texts
    assert paths(backend) == []
    seen = play(reducing(backend, max_length_per_turn=9_999), tools, calls, wire=wire)
    seen.unharmed()
    assert seen.kept[:2] == texts[:2]  # the largest first
    if paths(backend):  # to cut one character by a notice that is longer than it is to make it longer
        assert len(seen.kept[2]) <= 6_000
        assert saved(backend, "/r/trunc/c2") == as_bytes(texts[2])
    else:
        assert seen.kept[2] == texts[2]


@each_kind
@on_each_wire
def test_the_largest_results_of_a_turn_are_cut_to_a_common_level(wire: str, kind: str):
    tools, calls, texts = tools_of(500, 9_000, 4_000, 8_000, kind=kind)
    backend = MemoryBackend()
    seen = play(reducing(backend, max_length_per_turn=12_000), tools, calls, wire=wire)
    seen.unharmed()
    assert seen.kept == seen.sent()
    small, first, middle, second = seen.kept
    assert small == texts[0]
    level = (12_000 - 500) // 3  # so three of them are over the level: 9,000 and 8,000 and 4,000
    for shown, text, path in ((first, texts[1], "c1"), (middle, texts[2], "c2"), (second, texts[3], "c3")):
        if shown == text:
            assert len(text) <= level + OVERHEAD  # a notice would not be shorter
            continue
        assert path_in(shown) == f"/r/trunc/{path}"
        assert saved(backend, f"/r/trunc/{path}") == as_bytes(text)
    assert sum(map(len, seen.kept)) <= 12_000 + 3 * OVERHEAD
    previews = {size for shown in (first, second) for size in re.findall(r"Preview \((?:first|last) (\d+)\)", shown)}
    assert len(previews) == 1
    assert level - OVERHEAD <= 2 * int(previews.pop()) <= level


@on_each_wire
def test_only_those_above_the_level_are_cut(wire: str):
    tools, calls, texts = tools_of(500, 2_000, 9_500, 1_000)
    backend = MemoryBackend()
    seen = play(reducing(backend, max_length_per_turn=8_000), tools, calls, wire=wire)
    seen.unharmed()
    assert [seen.kept[n] for n in (0, 1, 3)] == [texts[n] for n in (0, 1, 3)]
    assert seen.kept[2].startswith(TAG)
    assert paths(backend) == ["/r/trunc/c2"]
    assert saved(backend, "/r/trunc/c2") == as_bytes(texts[2])
    assert sum(map(len, seen.kept)) <= 8_000 + OVERHEAD


@each_kind
@on_each_wire
def test_a_result_that_is_alone_in_its_turn_has_the_limit_of_one_result(wire: str, kind: str):
    backend, text = MemoryBackend(), text_of(9_000)
    rounds = [[(f"c{number}", "dump")] for number in range(3)]
    seen = play(reducing(backend, max_length_per_turn=5_000), made(kind, text), *rounds, wire=wire)
    seen.unharmed()
    assert seen.kept == seen.sent() == [text] * 3
    assert paths(backend) == []


@on_each_wire
def test_each_turn_has_a_budget_of_its_own(wire: str):
    tools, calls, texts = tools_of(2_000, 2_000)
    backend = MemoryBackend()
    rounds = [[(f"{id_}_{number}", name) for id_, name in calls] for number in range(4)]
    seen = play(reducing(backend, max_length_per_turn=4_000), tools, *rounds, wire=wire)
    seen.unharmed()
    assert seen.kept == seen.sent() == texts * 4
    assert paths(backend) == []


@on_each_wire
def test_what_was_cut_stays_as_it_is_in_every_later_turn(wire: str):
    tools, calls, _ = tools_of(9_000, 9_000)
    backend = MemoryBackend()
    rounds = [[(f"{id_}_{number}", name) for id_, name in calls] for number in range(3)]
    seen = play(reducing(backend, max_length_per_turn=6_000), tools, *rounds, wire=wire)
    seen.unharmed()
    assert all(text.startswith(TAG) for text in seen.kept)
    for number in range(4):
        assert seen.sent(number) == seen.kept[: 2 * number]
    assert len(paths(backend)) == 6


@pytest.mark.parametrize("how", ["list", "flag", "reader"])
@on_each_wire
def test_tools_that_are_not_truncated_are_not_cut_by_the_budget_either(wire: str, how: str):
    backend = MemoryBackend()
    name = "read_file" if how == "reader" else "dump"
    settings = {
        "list": {"trunc_exclude_tools": [name]},
        "flag": {"tool_config": {name: ToolReductionConfig(skip_truncation=True)}},
        "reader": {},
    }[how]
    tools = [made("invokable", text_of(9_000), name=name), made("invokable", text_of(8_000), name="other")]
    seen = play(
        reducing(backend, max_length_per_turn=3_000, **settings), tools, [("a", name), ("b", "other")], wire=wire
    )
    seen.unharmed()
    assert seen.kept[0] == text_of(9_000)
    assert set(paths(backend)) <= {"/r/trunc/b"}


@each_kind
@on_each_wire
def test_results_that_were_truncated_are_not_saved_again(wire: str, kind: str):
    """One file each, and no notice in it that points to another one. What is shown may be less."""
    tools, calls, texts = tools_of(50_000, 50_000, kind=kind)
    backend = MemoryBackend()
    cut = notice if kind in WHOLE else lambda text, path, limit: text[:limit] + stream_notice(limit, path)
    cuts = [cut(text, f"/r/trunc/c{n}", LIMIT) for n, text in enumerate(texts)]
    within = sum(map(len, cuts))
    seen = play(reducing(backend, max_length_per_turn=within), tools, calls, wire=wire)
    seen.unharmed()
    assert seen.kept == seen.sent() == cuts
    backend = MemoryBackend()
    seen = play(reducing(backend, max_length_per_turn=1_000), tools, calls, wire=wire)
    seen.unharmed()
    assert seen.kept == seen.sent()
    for number, (shown, text) in enumerate(zip(seen.kept, texts, strict=True)):
        assert shown.count(f"saved to: /r/trunc/c{number}") == 1
        assert saved(backend, f"/r/trunc/c{number}") == as_bytes(text)
    assert sum(map(len, seen.kept)) <= 1_000 + 2 * OVERHEAD
    assert paths(backend) == ["/r/trunc/c0", "/r/trunc/c1"]


@on_each_wire
def test_a_budget_of_zero_shows_nothing_of_parallel_results(wire: str):
    tools, calls, texts = tools_of(5_000, 3)
    backend = MemoryBackend()
    seen = play(reducing(backend, max_length_per_turn=0), tools, calls, wire=wire)
    seen.unharmed()
    assert seen.kept == [notice(texts[0], "/r/trunc/c0", 0), texts[1]]  # the second would only grow
    assert paths(backend) == ["/r/trunc/c0"]


@on_each_wire
def test_without_a_number_the_budget_is_200_000(wire: str):
    tools, calls, texts = tools_of(*[40_000] * 5)
    for settings in ({}, {"max_length_per_turn": None}):
        backend = MemoryBackend()
        seen = play(reducing(backend, max_length_for_trunc=50_000, **settings), tools, calls, wire=wire)
        assert seen.kept == texts
        more, more_calls, _ = tools_of(*[40_000] * 6)
        seen = play(reducing(backend, max_length_for_trunc=50_000, **settings), more, more_calls, wire=wire)
        seen.unharmed()
        assert sum(map(len, seen.kept)) <= 200_000 + 6 * OVERHEAD
        assert len(paths(backend)) == 6


# Agents in agents


def asking(wire: str, id_: str, name: str, **arguments: str) -> Any:
    (message,) = render(wire, [turn(call(id_, name, arguments))]).messages
    return message


def reads(wire: str, id_: str, path: str) -> Any:
    return asking(wire, id_, "read_file", path=path)


@pytest.mark.parametrize("shared", [True, False])
@on_each_wire
def test_an_agent_inside_has_files_of_its_own_also_for_the_same_call_ids(wire: str, shared: bool):
    async def use() -> None:
        backend = MemoryBackend()
        once = ToolReduction(backend, max_length_for_trunc=LIMIT)
        reductions = [once, once] if shared else [once, ToolReduction(backend, max_length_for_trunc=LIMIT)]
        inside, outside, answer = text_of(20_000), text_of(30_000)[1:], text_of(40_000)[2:]
        inner: ScriptedModel[Any] = ScriptedModel([asks(wire, ("c0", "dump")), answer], wire)
        clerk = ChatModelAgent(
            name="clerk",
            description="Dumps.",
            model=inner,
            tools=[made("streamable", inside)],
            middlewares=[reductions[0]],
        )
        outer: ScriptedModel[Any] = ScriptedModel(
            [asks(wire, ("c0", "dump")), asking(wire, "c0", "clerk", request="?"), asks(wire, ("c0", "dump")), "ok"],
            wire,
        )
        boss = ChatModelAgent(
            name="boss",
            model=outer,
            tools=[clerk.as_tool(), made("invokable", outside)],
            middlewares=[reductions[1]],
        )
        result = await boss.run("go")
        shown = [text for _, text, _ in results(wire, result.messages)]
        kept = [text for _, text, _ in results(wire, inner.requests[1].messages)]
        named = [paths_in(text)[0] for text in shown + kept]
        assert len({path.lower() for path in named}) == 4
        assert [await fetch(backend, path) for path in named] == [
            as_bytes(text) for text in (outside, answer, outside, inside)
        ]

    asyncio.run(use())


@on_each_wire
def test_agents_inside_and_outside_cannot_read_each_others_files(wire: str):
    async def use() -> None:
        backend = MemoryBackend()
        secret_out, secret_in = "outer secret " * 2_000, "inner secret " * 2_000
        inner: ScriptedModel[Any] = ScriptedModel(
            [asks(wire, ("i1", "dump")), reads(wire, "i2", "/in/trunc/i1"), reads(wire, "i3", "/out/trunc/o1"), "ok"],
            wire,
        )
        clerk = ChatModelAgent(
            name="clerk",
            description="Dumps.",
            model=inner,
            tools=[made("invokable", secret_in)],
            middlewares=[ToolReduction(backend, root_dir="/in", max_length_for_trunc=100)],
        )
        outer: ScriptedModel[Any] = ScriptedModel(
            [
                asks(wire, ("o1", "dump")),
                asking(wire, "o2", "clerk", request="?"),
                reads(wire, "o3", "/out/trunc/o1"),
                reads(wire, "o4", "/in/trunc/i1"),
                "ok",
            ],
            wire,
        )
        boss = ChatModelAgent(
            name="boss",
            model=outer,
            tools=[clerk.as_tool(), made("invokable", secret_out)],
            middlewares=[ToolReduction(backend, root_dir="/out", max_length_for_trunc=100)],
        )
        result = await boss.run("go")
        told = {id_: text for id_, text, _ in results(wire, [*inner.requests[-1].messages, *result.messages])}
        assert "inner secret" in told["i2"]
        assert "outer secret" not in told["i3"]
        assert "outer secret" in told["o3"]
        assert "inner secret" not in told["o4"]

    asyncio.run(use())
