"""Who clears a result: exclude list, the tool's own flag, its handler, the default. And what handlers may say."""

from itertools import product
from pathlib import Path
from typing import Any

import pytest

import suture
from suture.errors import OffloadError
from suture.messages import TextPart, ToolArgument, ToolResult
from suture.middleware import ClearResult, ToolDetail, ToolReductionConfig
from tests.reduction.planning import on_each_wire, planned, saved
from tests.reduction.rounds import CLEARED, long, one_round, read, saved_at, texts, write

TWO = [("user", "go"), *one_round("a"), *one_round("z")]


def gone(text: str = "gone", **more: Any) -> ClearResult:
    return ClearResult(need_clear=True, tool_result=ToolResult((TextPart(text),)), **more)


def config(**fields: Any) -> dict[str, ToolReductionConfig]:
    return {"search": ToolReductionConfig(**fields)}


CHOICES = list(product([False, True], [False, True], [None, False, True], [False, True]))


@pytest.mark.parametrize(("skipped", "excluded", "own", "handled"), CHOICES)
@pytest.mark.parametrize("wire", ["message", "anthropic"])
def test_exclude_list_then_own_flag_then_handler_then_default(
    wire: str, skipped: bool, excluded: bool, own: bool | None, handled: bool
):
    """The reference never asks the flag where there is a handler, nor the default where the phase is skipped."""
    asked: list[str] = []

    def handler(detail: ToolDetail) -> ClearResult:
        asked.append(detail.tool_context.call_id)
        return gone()

    fields = {"skip_clear": own, **({"clear_handler": handler} if handled else {})}
    plan = planned(
        wire,
        write(wire, TWO),
        skip_clear=skipped,
        clear_exclude_tools=["search"] if excluded else [],
        tool_config=config(**fields),
    )
    if excluded or own:
        wanted = long("a")
    elif handled:
        wanted = "gone"
    elif skipped and own is None:
        wanted = long("a")
    else:
        wanted = saved_at("/r/clear/a")
    assert texts(wire, plan.messages)[0] == wanted
    assert asked == (["a"] if wanted == "gone" else [])


@on_each_wire
def test_a_handler_clears_its_own_tool_alone(wire: str):
    steps = [("user", "go"), *one_round("a"), *one_round("b", name="fetch"), *one_round("z")]
    plan = planned(wire, write(wire, steps), tool_config=config(clear_handler=lambda _detail: gone()))
    assert texts(wire, plan.messages) == ["gone", saved_at("/r/clear/b"), long("z")]


@on_each_wire
def test_where_the_phase_is_skipped_a_handler_still_clears_its_tool(wire: str):
    steps = [("user", "go"), *one_round("a"), *one_round("b", name="fetch"), *one_round("z")]
    entry = config(clear_handler=lambda _detail: gone())
    plan = planned(wire, write(wire, steps), skip_clear=True, tool_config=entry)
    assert texts(wire, plan.messages) == ["gone", long("b"), long("z")]


@on_each_wire
def test_a_handler_that_saves_nothing_leaves_no_file(wire: str):
    plan = planned(wire, write(wire, TWO), tool_config=config(clear_handler=lambda _detail: gone(CLEARED)))
    assert texts(wire, plan.messages) == [CLEARED, long("z")]
    assert plan.saves == ()


@on_each_wire
def test_a_handler_that_does_not_want_to_is_heard(wire: str):
    messages = write(wire, TWO)
    plan = planned(wire, messages, tool_config=config(clear_handler=lambda _detail: ClearResult(need_clear=False)))
    assert texts(wire, plan.messages) == [long("a"), long("z")]
    assert plan.saves == ()


@on_each_wire
def test_the_error_of_a_handler_comes_out_as_it_is(wire: str):
    failure = RuntimeError("not today")

    def failing(_detail: ToolDetail) -> ClearResult:
        raise failure

    with pytest.raises(RuntimeError) as caught:
        planned(wire, write(wire, TWO), tool_config=config(clear_handler=failing))
    assert caught.value is failure


@on_each_wire
def test_the_error_of_a_path_maker_is_the_cause_and_says_which_call_was_not_saved(wire: str):
    failure = RuntimeError("path generation error")

    def failing(_detail: ToolDetail) -> str:
        raise failure

    with pytest.raises(OffloadError, match="path generation error") as caught:
        planned(wire, write(wire, TWO), gen_clear_offload_file_path=failing)
    assert caught.value.__cause__ is failure
    assert caught.value.calls == (("search", "a"),)


WRONG = {
    "nothing at all": None,
    "no result": ClearResult(need_clear=True),
    "something else": "gone",
    "no path": gone(need_offload=True, offload_content="all"),
    "a path that is no text": gone(need_offload=True, offload_file_path=Path("/p"), offload_content="all"),
    "no content": gone(need_offload=True, offload_file_path="/p", offload_content=None),
    "arguments that are a text": gone(tool_argument="{}"),
}


@pytest.mark.parametrize("given", WRONG.values(), ids=WRONG)
@on_each_wire
def test_a_handler_that_says_something_senseless_is_named_with_its_tool(wire: str, given: Any):
    with pytest.raises(suture.ConfigError, match="search") as caught:
        planned(wire, write(wire, TWO), tool_config=config(clear_handler=lambda _detail: given))
    assert "clear_handler" in str(caught.value)


def test_an_entry_that_is_none_is_refused():
    entry: Any = {"search": None}
    with pytest.raises(suture.ConfigError, match="search"):
        planned("message", write("message", TWO), tool_config=entry)


def test_an_async_handler_is_refused_here():
    async def later(_detail: ToolDetail) -> ClearResult:
        return gone()

    async def path(_detail: ToolDetail) -> str:
        return "/p"

    async def rewriter(_turn: Any, _results: Any) -> list[Any]:
        return []

    async def counter(_messages: Any, _tools: Any) -> int:
        return 7

    for choices in (
        {"tool_config": config(clear_handler=later)},
        {"gen_clear_offload_file_path": path},
        {"clear_message_rewriter": rewriter},
        {"token_counter": counter},
    ):
        with pytest.raises(suture.ConfigError, match=r"async|await"):
            planned("message", write("message", TWO), **choices)


@on_each_wire
def test_a_handler_cannot_save_where_there_is_no_backend(wire: str):
    entry = config(clear_handler=lambda _detail: gone(need_offload=True, offload_file_path="/p", offload_content="all"))
    with pytest.raises(suture.ConfigError, match="clear: no backend for offload"):
        planned(wire, write(wire, TWO), offload=False, tool_config=entry)


@on_each_wire
def test_the_path_of_a_handler_is_never_used_twice(wire: str):
    entry = config(
        clear_handler=lambda detail: gone(
            need_offload=True, offload_file_path="/same", offload_content=detail.tool_context.call_id
        )
    )
    steps = [("user", "go"), *one_round("a"), *one_round("b"), *one_round("z")]
    with pytest.raises(suture.ConfigError, match="/same"):
        planned(wire, write(wire, steps), tool_config=entry)


@on_each_wire
def test_what_a_handler_saves_is_what_it_says(wire: str):
    entry = config(
        clear_handler=lambda _detail: gone(need_offload=True, offload_file_path="/own/x", offload_content="all of it")
    )
    plan = planned(wire, write(wire, TWO), tool_config=entry)
    assert saved(plan) == {"/own/x": "all of it"}
    assert plan.changes[0].path == "/own/x"


@on_each_wire
def test_arguments_that_a_handler_does_not_give_stay(wire: str):
    given: list[ToolArgument | None] = []

    def handler(detail: ToolDetail) -> ClearResult:
        given.append(detail.tool_argument)
        return gone()

    messages = write(wire, TWO)
    plan = planned(wire, messages, tool_config=config(clear_handler=handler))
    assert plan.messages[1:2] != messages[1:2] or plan.messages[1] is messages[1]
    assert [type(argument) for argument in given] == [ToolArgument]


@on_each_wire
def test_a_handler_is_asked_once_for_each_answered_call_and_not_for_others(wire: str):
    asked: list[str] = []

    def handler(detail: ToolDetail) -> ClearResult:
        asked.append(detail.tool_context.call_id)
        return gone()

    pair = [("x", "search", "{}"), ("y", "search", "{}")]
    steps = [
        ("user", "go"),
        ("turn", pair),
        ("bundle", [("y", "search", long("y"))]),
        ("user", "stop"),
        *one_round("b"),
        *one_round("z"),
    ]
    plan = planned(wire, write(wire, steps), tool_config=config(clear_handler=handler))
    assert asked == ["y", "b"]
    assert [result.text for result in read(wire, plan.messages)] == ["gone", "gone", long("z")]


@on_each_wire
def test_a_result_with_nothing_in_it_is_left_alone(wire: str):
    messages = write(wire, [("user", "go"), *one_round("a", ""), *one_round("z")])
    plan = planned(wire, messages)
    assert plan.saves == ()
    assert plan.messages[2] is messages[2]


@on_each_wire
def test_a_result_that_is_an_image_alone_is_left_alone(wire: str):
    messages = write(wire, [("user", "go"), *one_round("a", [("image", "iVBORw0KGgo=" * 200)]), *one_round("z")])
    plan = planned(wire, messages)
    assert plan.saves == ()
    assert plan.messages[2] is messages[2]


@on_each_wire
def test_a_call_without_an_id_gets_a_file_with_a_name_made_for_it(wire: str):
    steps = [("user", "go"), *one_round("", long("1")), *one_round("", long("2")), *one_round("z")]
    plan = planned(wire, write(wire, steps))
    files = saved(plan)
    assert list(files.values()) == [long("1"), long("2")]
    assert all(path.startswith("/r/clear/call-") and len(path) > len("/r/clear/call-") for path in files)
    assert texts(wire, plan.messages) == [*map(saved_at, files), long("z")]
