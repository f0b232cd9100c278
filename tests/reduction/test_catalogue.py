"""The reference's catalogue of the clear phase (lines 36 to 46), on every wire. The numbers are the catalogue's.

Where the design differs on purpose it is the design that is tested: results are long, since small ones are left
alone; the threshold must be exceeded; zero rounds kept are zero.
"""

import json
from typing import Any

import pytest

import suture.reduction
from suture.messages import TextPart, ToolArgument, ToolResult
from suture.middleware import ClearResult, ToolDetail, ToolReductionConfig
from tests.histories import Step
from tests.reduction.planning import cleared, on_each_wire, on_native_wires, planned, saved
from tests.reduction.rounds import (
    CLEARED,
    arguments_on,
    long,
    marked,
    one_round,
    read,
    saved_at,
    texts,
    write,
)
from tests.shapes.wires import arguments_of

TWO: list[Step] = [("user", "go"), *one_round("a"), *one_round("b")]
THREE: list[Step] = [*TWO, *one_round("c")]


@on_each_wire
def test_an_old_result_becomes_the_path_of_its_file_and_the_last_round_stays(wire: str):
    messages = write(wire, TWO)
    plan = planned(wire, messages)
    assert texts(wire, plan.messages) == [saved_at("/r/clear/a"), long("b")]
    assert [(save.path, save.content, save.call_id, save.name) for save in plan.saves] == [
        ("/r/clear/a", long("a"), "a", "search")
    ]
    assert arguments_of(wire, plan.messages) == arguments_of(wire, messages)
    assert plan.messages[-2:] == messages[-2:]
    assert (plan.changed, cleared(plan)) == (True, ["a"])


@on_each_wire
def test_no_round_kept_is_none_kept(wire: str):
    """The reference cannot express it: there zero means one."""
    plan = planned(wire, write(wire, TWO), clear_retention_suffix_limit=0)
    assert texts(wire, plan.messages) == [saved_at("/r/clear/a"), saved_at("/r/clear/b")]
    assert saved(plan) == {"/r/clear/a": long("a"), "/r/clear/b": long("b")}


@on_each_wire
def test_what_reads_the_file_has_the_name_that_was_given(wire: str):
    plan = planned(wire, write(wire, TWO), read_file_tool_name="cat_file")
    assert texts(wire, plan.messages)[0] == saved_at("/r/clear/a", "cat_file")


@on_each_wire
def test_in_chinese(wire: str):
    plan = planned(wire, write(wire, TWO), language="zh")
    assert texts(wire, plan.messages)[0] == (
        "<persisted-output>工具结果已保存至: /r/clear/a\n使用 read_file 进行查看</persisted-output>"
    )


@on_each_wire
def test_a_path_maker_decides_where_and_the_root_does_not_count(wire: str):
    details: list[ToolDetail] = []

    def path(detail: ToolDetail) -> str:
        details.append(detail)
        return f"/custom/clear/{detail.tool_context.call_id}"

    plan = planned(wire, write(wire, TWO), gen_clear_offload_file_path=path)
    assert texts(wire, plan.messages)[0] == saved_at("/custom/clear/a")
    assert saved(plan) == {"/custom/clear/a": long("a")}
    (detail,) = details
    assert (detail.tool_context.name, detail.tool_context.call_id) == ("search", "a")
    assert detail.tool_result == ToolResult((TextPart(long("a")),))
    assert detail.tool_argument is not None
    assert json.loads(detail.tool_argument.text) == {"q": 1}


@pytest.mark.parametrize(("language", "text"), [("en", CLEARED), ("zh", "[工具输出结果已清理]")])
@on_each_wire
def test_without_a_backend_the_result_is_just_gone(wire: str, language: str, text: str):
    plan = planned(wire, write(wire, TWO), offload=False, language=language)
    assert texts(wire, plan.messages) == [text, long("b")]
    assert plan.saves == ()


@on_each_wire
def test_without_a_backend_nothing_is_truncated(wire: str):
    """There would be no place for the rest."""
    messages = write(wire, TWO)
    plan = planned(wire, messages, offload=False, max_length_for_trunc=200, max_tokens_for_clear=100_000)
    assert plan.messages is messages
    assert plan.saves == ()


@on_each_wire
def test_results_in_another_order_go_to_their_own_files(wire: str):
    calls = [("a", "search", "{}"), ("b", "fetch", "{}")]
    swapped: list[Step] = [("turn", calls), ("bundle", [("b", "fetch", long("b")), ("a", "search", long("a"))])]
    plan = planned(wire, write(wire, [("user", "go"), *swapped, *one_round("z")]))
    said = {result.id: result.text for result in read(wire, plan.messages)}
    assert said == {"a": saved_at("/r/clear/a"), "b": saved_at("/r/clear/b"), "z": long("z")}
    assert saved(plan) == {"/r/clear/a": long("a"), "/r/clear/b": long("b")}
    assert {save.call_id: save.name for save in plan.saves} == {"a": "search", "b": "fetch"}


def offloading(detail: ToolDetail) -> ClearResult:
    """Move arguments and result into one file of JSON."""
    assert detail.tool_argument is not None
    assert detail.tool_result is not None
    (part,) = detail.tool_result.parts
    assert isinstance(part, TextPart)
    kept = {"arguments": json.loads(detail.tool_argument.text), "result": part.text}
    return ClearResult(
        need_clear=True,
        tool_argument=ToolArgument('{"note": "argument offloaded"}'),
        tool_result=ToolResult((TextPart("result offloaded"),)),
        need_offload=True,
        offload_file_path=f"/own/{detail.tool_context.call_id}",
        offload_content=json.dumps(kept),
    )


@on_each_wire
def test_a_handler_may_take_the_arguments_along(wire: str):
    messages = write(wire, TWO)
    plan = planned(wire, messages, tool_config={"search": ToolReductionConfig(clear_handler=offloading)})
    assert texts(wire, plan.messages) == ["result offloaded", long("b")]
    wanted = [arguments_on(wire, '{"note": "argument offloaded"}'), arguments_on(wire, '{"q": 1}')]
    assert arguments_of(wire, plan.messages) == wanted
    assert {path: json.loads(content) for path, content in saved(plan).items()} == {
        "/own/a": {"arguments": {"q": 1}, "result": long("a")}
    }


@on_each_wire
def test_a_round_that_was_cleared_is_left_alone_and_the_next_one_is_cleared(wire: str):
    messages = write(wire, TWO)
    first = planned(wire, messages)
    new = write(wire, one_round("c"))
    second = planned(wire, [*first.messages, *new], ledger=first.ledger)
    assert texts(wire, second.messages) == [saved_at("/r/clear/a"), saved_at("/r/clear/b"), long("c")]
    assert saved(second) == {"/r/clear/b": long("b")}
    assert cleared(second) == ["b"]
    assert all(mine is theirs for mine, theirs in zip(second.messages[:3], first.messages[:3], strict=True))


@on_native_wires
def test_both_turns_carry_the_mark_afterwards(wire: str):
    first = planned(wire, write(wire, TWO))
    assert marked(first.messages) == [False, True, False, False, False]
    second = planned(wire, [*first.messages, *write(wire, one_round("c"))])
    assert marked(second.messages) == [False, True, False, True, False, False, False]


@on_each_wire
def test_an_excluded_tool_keeps_its_result_and_has_no_file(wire: str):
    steps: list[Step] = [("user", "go"), *one_round("a"), *one_round("b", name="plan"), *one_round("c")]
    plan = planned(wire, write(wire, steps), clear_exclude_tools=["plan"])
    assert texts(wire, plan.messages) == [saved_at("/r/clear/a"), long("b"), long("c")]
    assert saved(plan) == {"/r/clear/a": long("a")}


@on_each_wire
def test_if_too_little_would_be_freed_nothing_happens(wire: str):
    messages = write(wire, THREE)
    plan = planned(wire, messages, clear_at_least_tokens=10_000)
    assert plan.messages is messages
    assert (plan.changed, plan.changes, plan.saves, plan.tokens_freed) == (False, (), (), 0)


@on_each_wire
def test_if_enough_would_be_freed_everything_happens(wire: str):
    plan = planned(wire, write(wire, THREE), clear_at_least_tokens=10)
    assert texts(wire, plan.messages) == [saved_at("/r/clear/a"), saved_at("/r/clear/b"), long("c")]
    assert saved(plan) == {"/r/clear/a": long("a"), "/r/clear/b": long("b")}


@on_each_wire
def test_exactly_as_much_as_demanded_is_enough_and_one_more_is_not(wire: str):
    messages = write(wire, THREE)
    freed = planned(wire, messages).tokens_freed
    assert freed > 0
    assert planned(wire, messages, clear_at_least_tokens=freed).tokens_freed == freed
    assert planned(wire, messages, clear_at_least_tokens=freed + 1).messages is messages


@on_each_wire
def test_what_stands_around_the_cleared_result_stays_as_it_is(wire: str):
    """A call that waits for its result at the end is a round, too: the one that is kept."""
    steps: list[Step] = [
        ("system", "Be brief."),
        ("user", "go"),
        *one_round("old"),
        ("user", "and?"),
        ("turn", [("new", "search", "{}")]),
    ]
    messages = write(wire, steps)
    plan = planned(wire, messages)
    assert len(plan.messages) == len(messages) == 6
    assert texts(wire, plan.messages) == [saved_at("/r/clear/old")]
    assert arguments_of(wire, plan.messages) == arguments_of(wire, messages)
    for place in (0, 1, 4, 5):
        assert plan.messages[place] is messages[place]


@on_native_wires
def test_the_mark_is_on_the_turn_of_the_cleared_round_alone(wire: str):
    messages = write(wire, [("system", "Be brief."), ("user", "go"), *one_round("old"), *one_round("new")])
    assert marked(planned(wire, messages).messages) == [False, False, True, False, False, False]


@on_each_wire
def test_with_both_phases_skipped_nothing_happens(wire: str):
    for steps in ([("user", "go"), ("say", "well"), ("user", "so"), ("say", "yes"), ("user", "ok")], THREE):
        messages = write(wire, steps)
        plan = planned(wire, messages, skip_truncation=True, skip_clear=True)
        assert plan.messages is messages
        assert not plan.changed


@on_each_wire
def test_defaults_69_clear_nothing_below_160_000_tokens_and_keep_one_round(wire: str):
    messages = write(wire, [("user", "go"), *one_round("a", "x" * 40_000), *one_round("b", "y" * 40_000)])
    assert suture.reduction.plan(messages, wire=wire).messages is messages
    huge = write(wire, [("user", "go"), *one_round("a", "x" * 700_000), *one_round("b", long("b"))])
    plan = suture.reduction.plan(huge, wire=wire, skip_truncation=True)
    assert texts(wire, plan.messages) == [saved_at("/clear/a"), long("b")]


def test_the_wire_is_recognised_as_everywhere():
    for wire in ("message", "agentic", "openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"):
        messages: list[Any] = write(wire, TWO)
        plan = suture.reduction.plan(messages, root_dir="/r", max_tokens_for_clear=0)
        assert (plan.wire, texts(wire, plan.messages)[0]) == (wire, saved_at("/r/clear/a"))
