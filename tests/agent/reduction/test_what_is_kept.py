"""What becomes of a history: nothing real is lost, nothing is credited to the wrong file."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from suture import ChatModelAgent, ChatModelAgentMiddleware, ConfigError, Message, OffloadError, ToolCall, tool
from suture.kernel import ChatModelAgentState, ModelContext, replace
from suture.messages import TextPart, ToolResult
from suture.middleware import ToolReduction, ToolReductionConfig
from suture.reduction import ClearResult, Ledger, Saved, plan
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import play
from tests.agent.durability.scenes import turn as asking
from tests.agent.reduction import _clear_scenes as clear_scenes
from tests.agent.reduction._backends import as_bytes, fetch, paths, saved
from tests.agent.reduction._clear_scenes import filed, files, history, placed, reducing, said, sent, whole
from tests.agent.reduction._notices import END, TAG, path_in
from tests.agent.reduction._tooling import drive, made, on_each_wire, results, text_of
from tests.agent.reduction._tooling import play as run_of
from tests.agent.reduction._tooling import said as said_by
from tests.reduction.rounds import saved_at


def rounds_of(*texts: str) -> list[Any]:
    """Return a history of the `message` wire: one round for each of these outputs of `f`."""
    pairs = [
        (Message.assistant(tool_calls=[ToolCall(f"c{n}", "f")]), Message.tool(text, f"c{n}"))
        for n, text in enumerate(texts)
    ]
    return [message for pair in pairs for message in pair]


# How much is kept


@pytest.mark.parametrize("kept", [0, 1, 3, 4, 5, 6, 7, 8, 9, 100])
def test_of_four_rounds_the_last_are_kept_also_if_more_are_to_be_kept_than_there_are(kept: int):
    planned = plan(rounds_of(*["x" * 4_000] * 4), max_tokens_for_clear=10, clear_retention_suffix_limit=kept)
    assert [change.call_id for change in planned.changes] == ["c0", "c1", "c2", "c3"][: max(0, 4 - kept)]


@pytest.mark.parametrize("kept", [3, 4, 5, 50])
@on_each_wire
def test_an_agent_that_is_to_keep_more_rounds_than_it_has_clears_none(wire: str, kept: int):
    async def scene() -> None:
        backend = MemoryBackend()
        agent, model = clear_scenes.make(wire, ["done"], reducing(backend, clear_retention_suffix_limit=kept))
        await agent.run(history(wire, "a", "b", "c"))
        assert said(wire, sent(model)) == whole("a", "b", "c")
        assert await files(backend) == {}

    play(scene())


@pytest.mark.parametrize("excluded", [(), ("t0", "t1", "t2", "t3", "t4")])
@on_each_wire
def test_parallel_results_over_the_budget_of_their_turn_keep_a_preview_and_their_path(
    wire: str, excluded: tuple[str, ...]
):
    texts = [f"{number}{text_of(60_000)}" for number in range(5)]
    tools = [made("invokable", text, name=f"t{number}") for number, text in enumerate(texts)]
    backend = MemoryBackend()
    reduction = ToolReduction(backend, root_dir="/r", clear_exclude_tools=excluded)
    seen = run_of(reduction, tools, [(f"c{number}", f"t{number}") for number in range(5)], wire=wire)
    seen.unharmed()
    assert seen.kept == seen.sent()
    assert sum(map(len, seen.kept)) <= 200_000
    assert paths(backend) == [f"/r/trunc/c{number}" for number in range(5)]
    for number, (shown, text) in enumerate(zip(seen.kept, texts, strict=True)):
        assert path_in(shown) == f"/r/trunc/c{number}"
        assert saved(backend, f"/r/trunc/c{number}") == as_bytes(text)
        assert text[:15_000] in shown
        assert text[-15_000:] in shown


@pytest.mark.parametrize("length", [5, 60_000])
def test_a_long_message_of_the_user_does_not_truncate_an_old_round(length: int):
    past = [Message.user("x"), *rounds_of("t" * 60_000), Message.assistant("fine"), Message.user("u" * length)]
    model: ScriptedModel[Any] = ScriptedModel(["done"])
    backend = MemoryBackend()
    result = ChatModelAgent(model=model, middlewares=[ToolReduction(backend)]).run_sync(past)
    assert list(model.requests[0].messages) == list(result.messages)[:-1] == past
    assert paths(backend) == []


# What is real


class Again(ChatModelAgentMiddleware[Any]):
    """Calls a tool once more if it failed."""

    async def wrap_tool_call(self, call: Any, proceed: Any) -> ToolResult:
        result = await proceed(call)
        return await proceed(call) if "ERROR" in said_by(result) else result


@on_each_wire
def test_what_an_outer_retry_threw_away_never_stands_for_what_the_second_attempt_gave(wire: str):
    first, real = "ERROR " + "e" * 60_000, "THE REAL ANSWER " + "r" * 3_000

    def flaky(answers: Iterator[str]) -> Any:
        async def give() -> str:
            return next(answers)

        return tool(name="flaky", description="Fails once.")(give)

    async def scene() -> None:
        backend = MemoryBackend()
        reduction = ToolReduction(backend, root_dir="/r", max_tokens_for_clear=100)
        tools = [flaky(iter([first, real])), made("invokable", "s", name="small")]
        seen = await drive([Again(), reduction], tools, [("c1", "flaky")], [("c2", "small")], wire=wire)
        seen.unharmed()
        assert seen.sent(1) == [real]
        cleared, small = seen.sent()
        assert small == "s"
        path = cleared.partition("saved to: ")[2].partition("\n")[0]
        assert cleared == saved_at(path)
        assert await fetch(backend, path) == as_bytes(real)

    play(scene())


def test_a_search_that_names_a_file_is_not_taken_for_that_file_though_their_ids_are_the_same():
    wire, rows = "openai-chat", "\n".join(f"row {number} needle" for number in range(6_000))

    async def scene() -> None:
        backend = MemoryBackend()
        script: list[Any] = [
            asking(("call_0", "big"), wire=wire),
            asking(("call_0", "grep", {"pattern": "needle"}), wire=wire),
            asking(("call_0", "small"), wire=wire),
            "done",
        ]
        model: ScriptedModel[Any] = ScriptedModel(script, wire)
        reduction = ToolReduction(backend, root_dir="/r", max_tokens_for_clear=5_000, max_length_for_trunc=20_000)
        tools = [made("invokable", rows, name="big"), made("invokable", "s", name="small")]
        await ChatModelAgent(model=model, tools=tools, middlewares=[reduction]).run("go")
        found = results(wire, model.requests[2].messages)[1][1]
        assert "/r/trunc/call_0" in found
        assert [text for _, text, _ in results(wire, model.requests[-1].messages)] == [
            saved_at("/r/trunc/call_0"),
            saved_at("/r/clear/call_0"),
            "s",
        ]
        assert await files(backend) == {"/r/trunc/call_0": rows, "/r/clear/call_0": found}

    play(scene())


def test_where_calls_have_no_ids_a_result_that_names_a_file_is_saved_for_itself():
    def one_round(name: str, output: str) -> list[Any]:
        answer = {"functionResponse": {"name": name, "response": {"output": output}}}
        return [
            {"role": "model", "parts": [{"functionCall": {"name": name, "args": {}}}]},
            {"role": "user", "parts": [answer]},
        ]

    hits = "/r/trunc/call-x:1: hit\n" * 500
    past = [{"role": "user", "parts": [{"text": "go"}]}, *one_round("grep", hits), *one_round("z", "z")]
    ledger = Ledger((Saved("/r/trunc/call-x", "", "big", "trunc", 99_999),))
    planned = plan(past, ledger=ledger, max_tokens_for_clear=10)
    (save,) = planned.saves
    assert (save.name, save.content) == ("grep", hits)
    assert save.path != "/r/trunc/call-x"
    assert save.path in str(planned.messages)


def test_a_pass_that_fails_leaves_what_an_earlier_run_of_the_same_history_wrote():
    class Down(MemoryBackend):
        down = False

        async def write(self, path: str, content: str | bytes) -> None:
            if self.down and path.endswith("b"):
                raise OSError("disk full")
            await super().write(path, content)

    async def scene() -> None:
        backend = Down()
        agent, _ = clear_scenes.make("message", ["done"] * 2, reducing(backend))
        first = await agent.run(history("message", "a", "b", "z"))
        assert said("message", first.messages) == placed("a", "b") | whole("z")
        backend.down = True
        with pytest.raises(OffloadError, match="disk full"):
            await agent.run(history("message", "a", "b", "z"))
        assert await files(backend) == filed("a", "b")

    play(scene())


# What is planned


def gone(_: Any) -> ClearResult:
    return ClearResult(need_clear=True, tool_result=ToolResult((TextPart("gone"),)))


@pytest.mark.parametrize(
    "settings",
    [
        {"clear_message_rewriter": lambda _turn, _results: [Message.user("gone")]},
        {"tool_config": {"f": ToolReductionConfig(clear_handler=gone)}},
    ],
    ids=["rewriter", "handler"],
)
def test_what_is_rewritten_in_the_same_plan_is_not_truncated_to_a_file_that_nobody_names(settings: dict[str, Any]):
    planned = plan(rounds_of("x" * 60_000, "y" * 60_000), max_tokens_for_clear=10, **settings)
    assert [save.path for save in planned.saves] == ["/trunc/c1"]
    assert "/trunc/c0" not in str(planned.messages)
    assert next(message.content for message in planned.messages if message.content) == "gone"
    assert path_in(planned.messages[-1].content) == "/trunc/c1"


@pytest.mark.parametrize("spoof", ["", f"{TAG}\nOutput too large (1). y</persisted-output>"])
def test_output_that_only_looks_like_a_notice_is_truncated_like_any_other(spoof: str):
    text = "x" * 200_000 + spoof
    planned = plan(rounds_of(text))
    assert [(change.action, change.call_id) for change in planned.changes] == [("truncate", "c0")]
    assert [(save.path, save.content) for save in planned.saves] == [("/trunc/c0", text)]
    shown = planned.messages[1].content
    assert path_in(shown) == "/trunc/c0"
    assert shown.startswith(TAG)
    assert shown.count(TAG) == shown.count(END) == 1
    assert len(shown) < 51_000


# What is remembered


class Swap(ChatModelAgentMiddleware[Any]):
    """Puts a summary in the place of what the user pasted."""

    def before_model_rewrite_state(self, state: Any, model_context: ModelContext) -> Any:
        if model_context.turn != 5:
            return None
        summary = [Message.user("summary") if each.role == "user" else each for each in state.messages]
        return replace(state, messages=summary)


def test_that_clearing_was_not_worth_it_is_forgotten_when_another_middleware_replaces_the_history():
    def cleared(pasted: str, *others: Any) -> list[int]:
        reduction = ToolReduction(MemoryBackend(), max_tokens_for_clear=1_500, clear_at_least_tokens=5_000)
        rounds = [[(f"c{number}", "dump")] for number in range(16)]
        script: list[Any] = [asking(*each) for each in rounds]
        model: ScriptedModel[Any] = ScriptedModel([*script, "done"])
        tools = [made("invokable", "x" * 4_000)]
        asyncio.run(_finish(ChatModelAgent(model=model, tools=tools, middlewares=[*others, reduction]), pasted))
        return [sum(TAG in each.content for each in request.messages) for request in model.requests]

    assert cleared("u" * 40_000, Swap()) == cleared("summary") == [*[0] * 7, *[6] * 6, *[12] * 4]


async def _finish(agent: ChatModelAgent[Any], text: str) -> None:
    await agent.run(text)


@pytest.mark.parametrize("others", [(), ("b",), ("b", "c")])
@on_each_wire
def test_that_another_agent_of_the_session_was_asked_makes_no_cache_warm(
    wire: str, others: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
):
    now = 1_000_000.0
    monkeypatch.setattr("suture.middleware.tool_reduction.time.time", lambda: now)
    settings = {"max_tokens_for_clear": 1_000_000, "clear_after_idle": 300}

    async def scene() -> None:
        nonlocal now
        agent, model = clear_scenes.make(wire, ["done", "again"], reducing(MemoryBackend(), **settings))
        first = await agent.run(history(wire, "a", "b"))
        now += 400
        session = first.session
        for name in others:
            other, _ = clear_scenes.make(wire, ["hello"], reducing(MemoryBackend(), **settings), name=name)
            session = (await other.run("hello", session=session)).session
        await agent.run(list(first.messages), session=session)
        assert said(wire, sent(model)) == placed("a") | whole("b")

    play(scene())


def test_outside_of_a_run_one_reduction_serves_histories_of_several_wires():
    async def scene() -> None:
        reduction: Any = ToolReduction(MemoryBackend(), root_dir="/r", max_tokens_for_clear=10)
        for wire in ("message", "openai-chat", "agentic", "message"):
            state: ChatModelAgentState[Any] = ChatModelAgentState(messages=history(wire, f"a-{wire}", f"b-{wire}"))
            reduced = await reduction.before_model_rewrite_state(state, ModelContext(wire=wire))
            assert said(wire, reduced.messages) == placed(f"a-{wire}") | whole(f"b-{wire}")

    play(scene())


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"tool_config": [1]}, "tool_config"),
        ({"tool_config": {"f": None}}, r"tool_config\['f'\]"),
        ({"root_dir": 5}, "root_dir"),
        ({"clear_after_idle": float("nan")}, "clear_after_idle"),
        ({"read_file_tool_name": 7}, "read_file_tool_name"),
        ({"max_length_for_read": True}, "max_length_for_read"),
    ],
)
def test_a_setting_that_can_mean_nothing_is_refused_by_its_name(settings: dict[str, Any], named: str):
    with pytest.raises(ConfigError, match=named):
        ToolReduction(MemoryBackend(), **settings)
