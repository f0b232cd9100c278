"""Runs that break while they go on, in real agents: what the model receives next, and what the thread keeps.

E1 to E12 are the end-to-end failures of the research; E11 is described nowhere.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import aiosqlite
import deepagents.middleware.patch_tool_calls as theirs
import pytest
from deepagents.backends import StateBackend
from deepagents.middleware.summarization import SummarizationMiddleware as DeepSummarization
from langchain.agents.middleware import (
    AgentMiddleware,
    ClearToolUsesEdit,
    ContextEditingMiddleware,
    ModelRequest,
    SummarizationMiddleware,
    hook_config,
)
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.types import Command, interrupt

from suture.integrations.langchain import PatchToolCallsMiddleware
from tests.guests.langchain.broken_histories import human, result, said
from tests.guests.langchain.judges import calls_of, groups, kinds, message_faults
from tests.guests.langchain.recording import RecordingModel, asks, call
from tests.guests.langchain.talks import (
    LONG,
    Shop,
    Talk,
    WatchedAsyncSqlite,
    WatchedMemory,
    WatchedSqlite,
    each_builder,
    each_builder_and_manner,
    each_manner,
)

each_place = pytest.mark.parametrize("place", ["first", "last"])

Middleware = AgentMiddleware[Any, Any, Any]


def _placeholder(name: str, identity: str) -> str:
    return (
        f"Tool call {name} with id {identity} has no recorded result - it may or may not have run. "
        "Check before running it again."
    )


def _cancelled_by(name: str, identity: str) -> str:
    """Return the placeholder of a call behind which a message came in, where nothing says that its tool failed."""
    return f"Tool call {name} with id {identity} was cancelled - another message came in before it could be completed."


def _answers(messages: list[BaseMessage]) -> dict[str, str]:
    """Return what stands behind each call, by the call's name."""
    found: dict[str, str] = {}
    for turn, results in groups(messages)[0]:
        by_id = {message.tool_call_id: message.text for message in results}
        found |= {name: by_id[identity] for identity, name in calls_of(turn)}
    return found


def _faults(messages: list[BaseMessage]) -> list[str]:
    return message_faults(messages, strict_ids=True)


def _placed(place: str, patch: Middleware, *others: Middleware) -> list[Middleware]:
    return [patch, *others] if place == "first" else [*others, patch]


# E1: a call is left dangling inside of the run


class AskAgain(AgentMiddleware[Any, Any, Any]):
    """Sends the model back to work when it has asked for a tool, once, with or without a word."""

    def __init__(self, word: str = "") -> None:
        super().__init__()
        self.word = word

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        turns = [each for each in state["messages"] if isinstance(each, AIMessage)]
        if len(turns) > 1:
            return None
        return {"jump_to": "model", "messages": [HumanMessage(self.word)] if self.word else []}


def _asked_again(builder: str, patch: Middleware, manner: str = "sync", place: str = "first", word: str = "") -> Talk:
    middleware = _placed(place, patch, AskAgain(word))
    talk = Talk(builder, [asks("a"), said("Well.")], middleware=middleware, manner=manner)
    talk.say("Pay.")
    return talk


@pytest.mark.parametrize("word", ["", "Think again."])
@each_place
@each_builder_and_manner
def test_e1_a_call_that_dangles_inside_of_the_run_is_answered(builder: str, manner: str, place: str, word: str):
    talk = _asked_again(builder, PatchToolCallsMiddleware(), manner, place, word)
    assert len(talk.model.sent) == 2
    assert _faults(talk.received) == []
    assert _answers(talk.received) == {"pay": (_cancelled_by if word else _placeholder)("pay", "a")}
    first, second = talk.model.sent
    assert [each.text for each in second[: len(first)]] == [each.text for each in first]
    talk.say("And now?")
    assert _faults(talk.received) == []
    assert kinds(message_faults(talk.kept)) <= {"ids"}


# E2: another middleware trims the messages


class TrimRequest(AgentMiddleware[Any, Any, Any]):
    """Sends the model only the latest messages."""

    def _trimmed(self, request: ModelRequest[Any]) -> ModelRequest[Any]:
        return request.override(messages=request.messages[-4:])

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(self._trimmed(request))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(self._trimmed(request))


class TrimState(AgentMiddleware[Any, Any, Any]):
    """Keeps only the latest messages in the thread."""

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"messages": [RemoveMessage(id=REMOVE_ALL_MESSAGES), *state["messages"][-4:]]}


def _trimmed(
    builder: str, patch: Middleware, manner: str = "sync", place: str = "first", trim: type[Middleware] = TrimRequest
) -> Talk:
    talk = Talk(builder, [said()], middleware=_placed(place, patch, trim()), manner=manner)
    talk.say("Hello.")
    talk.put(human(), asks("a", "b"), result("a", "real 1"), result("b", "real 2"), said())
    talk.say("And now?")
    return talk


@pytest.mark.parametrize("trim", [TrimRequest, TrimState])
@each_place
@each_builder_and_manner
def test_e2_results_whose_call_was_trimmed_away_are_told_as_text(
    builder: str, manner: str, place: str, trim: type[Middleware]
):
    talk = _trimmed(builder, PatchToolCallsMiddleware(), manner, place, trim)
    assert _faults(talk.received) == []
    assert not [each for each in talk.received if isinstance(each, ToolMessage)]
    told = "\n".join(each.text for each in talk.received if isinstance(each, HumanMessage))
    assert (told.count("real 1"), told.count("real 2"), told.count("And now?")) == (1, 1, 1)


# E3: a sibling raises. E4: the run is cancelled. E5: nobody was there when it happened

SHOPPING = asks(call("a", "pay"), call("b", "ship"))
PAID = "paid 1 euro, receipt 4711"


def _check_shop(talk: Talk, shop: Shop) -> None:
    """Check that the model knows what was paid, and that nothing was paid twice."""
    assert shop.paid == ["1 euro"]
    assert _faults(talk.received) == []
    assert _answers(talk.received) == {"pay": PAID, "ship": _placeholder("ship", "b")}
    statuses = {each.name: each.status for each in talk.received if isinstance(each, ToolMessage)}
    assert statuses == {"pay": "success", "ship": "error"}


def _crashed(builder: str, patch: list[Middleware], manner: str = "sync", saver: Any = None) -> tuple[Talk, Shop]:
    saver = WatchedMemory() if saver is None else saver
    shop = Shop(saver, RuntimeError("no ship"))
    tools = shop.async_tools() if manner == "async" else shop.sync_tools()
    talk = Talk(builder, [SHOPPING], middleware=patch, tools=tools, saver=saver, manner=manner)
    with pytest.raises(RuntimeError, match="no ship"):
        talk.say("Pay and ship.")
    return talk, shop


@each_builder_and_manner
def test_e3_what_finished_before_a_sibling_raised_is_not_reported_as_undone(builder: str, manner: str):
    talk, shop = _crashed(builder, [PatchToolCallsMiddleware()], manner)
    talk.say("And now?")
    _check_shop(talk, shop)
    assert _answers(list(talk.kept)) == _answers(talk.received)
    talk.say("Anything else?")
    _check_shop(talk, shop)


@each_builder
def test_e3_what_finished_is_taken_back_from_a_file(builder: str, tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        talk, shop = _crashed(builder, [PatchToolCallsMiddleware()], saver=WatchedSqlite(connection))
        talk.say("And now?")
        _check_shop(talk, shop)


@each_builder
def test_e3_what_finished_is_taken_back_from_a_file_in_a_loop(builder: str, tmp_path: Path):
    async def main() -> None:
        async with aiosqlite.connect(tmp_path / "threads.db") as connection:
            saver = WatchedAsyncSqlite(connection)
            shop = Shop(saver, RuntimeError("no ship"))
            patch = PatchToolCallsMiddleware()
            talk = Talk(builder, [SHOPPING], middleware=[patch], tools=shop.async_tools(), saver=saver)
            with pytest.raises(RuntimeError, match="no ship"):
                await talk.asay("Pay and ship.")
            await talk.asay("And now?")
            _check_shop(talk, shop)

    asyncio.run(main())


@each_builder
def test_e3_an_agent_that_was_made_anew_takes_back_what_finished(builder: str, tmp_path: Path):
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        _, shop = _crashed(builder, [PatchToolCallsMiddleware()], saver=WatchedSqlite(connection))
    with closing(sqlite3.connect(tmp_path / "threads.db", check_same_thread=False)) as connection:
        middleware = [PatchToolCallsMiddleware()]
        other = Talk(builder, middleware=middleware, tools=shop.sync_tools(), saver=WatchedSqlite(connection))
        other.say("And now?")
        _check_shop(other, shop)


@each_builder_and_manner
def test_e3_what_finished_with_an_id_of_an_earlier_turn_goes_to_the_later_one(builder: str, manner: str):
    saver = WatchedMemory()
    shop = Shop(saver, RuntimeError("no ship"))
    tools = shop.async_tools() if manner == "async" else shop.sync_tools()
    talk = Talk(builder, [said()], middleware=[PatchToolCallsMiddleware()], tools=tools, saver=saver, manner=manner)
    talk.say("Hello.")
    talk.put(human(), SHOPPING, result("a", "paid long ago"), result("b", "shipped long ago", "ship"), said())
    saver.written.clear()
    talk.model.replies[:] = [asks(call("a", "pay"), call("b", "ship"))]
    with pytest.raises(RuntimeError, match="no ship"):
        talk.say("Pay and ship.")
    talk.say("And now?")
    assert _faults(talk.received) == []
    texts = [each.text for each in talk.received if isinstance(each, ToolMessage)]
    assert texts[:3] == ["paid long ago", "shipped long ago", PAID]
    assert texts[3].startswith("Tool call ship")


@each_builder
def test_e3_what_finished_by_a_command_is_not_reported_as_undone(builder: str):
    @tool
    def pay(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Pay."""
        shop.paid.append("1 euro")
        return Command(update={"messages": [ToolMessage(PAID, tool_call_id=tool_call_id, name="pay")]})

    saver = WatchedMemory()
    shop = Shop(saver, RuntimeError("no ship"))
    tools = [pay, shop.sync_tools()[1]]
    talk = Talk(builder, [SHOPPING], middleware=[PatchToolCallsMiddleware()], tools=tools, saver=saver)
    with pytest.raises(RuntimeError, match="no ship"):
        talk.say("Pay and ship.")
    talk.say("And now?")
    _check_shop(talk, shop)


@each_builder
def test_e3_what_finished_is_taken_back_behind_a_note_that_the_host_wrote(builder: str):
    talk, shop = _crashed(builder, [PatchToolCallsMiddleware()])
    talk.put(HumanMessage("The run has failed."))
    talk.say("And now?")
    _check_shop(talk, shop)


@each_builder
def test_e3_a_run_that_is_resumed_runs_only_what_did_not_finish(builder: str):
    talk, shop = _crashed(builder, [PatchToolCallsMiddleware()])
    talk.agent.nodes["tools"].bound.tools_by_name["ship"].func = lambda: "shipped"
    talk.agent.invoke(None, talk.config)
    assert shop.paid == ["1 euro"]
    assert _answers(talk.received) == {"pay": PAID, "ship": "shipped"}


async def _cancelled(builder: str, patch: Middleware, saver: Any) -> tuple[Talk, Shop]:
    shop = Shop(saver)
    talk = Talk(builder, [SHOPPING], middleware=[patch], tools=shop.async_tools(), saver=saver)
    run = asyncio.create_task(talk.asay("Pay and ship."))
    assert await asyncio.to_thread(shop.shipping.wait, LONG)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    await talk.asay("And now?")
    return talk, shop


@each_builder
def test_e4_what_finished_before_the_run_was_cancelled_is_not_reported_as_undone(builder: str):
    _check_shop(*asyncio.run(_cancelled(builder, PatchToolCallsMiddleware(), WatchedMemory())))


@each_builder
def test_e4_what_finished_before_a_cancel_is_taken_back_from_a_file(builder: str, tmp_path: Path):
    async def main() -> tuple[Talk, Shop]:
        async with aiosqlite.connect(tmp_path / "threads.db") as connection:
            return await _cancelled(builder, PatchToolCallsMiddleware(), WatchedAsyncSqlite(connection))

    _check_shop(*asyncio.run(main()))


@each_builder
def test_e4_what_finished_before_a_keyboard_interrupt_is_not_reported_as_undone(builder: str):
    saver = WatchedMemory()
    shop = Shop(saver, KeyboardInterrupt())
    talk = Talk(builder, [SHOPPING], middleware=[PatchToolCallsMiddleware()], tools=shop.sync_tools(), saver=saver)
    with pytest.raises(KeyboardInterrupt):
        talk.say("Pay and ship.")
    talk.say("And now?")
    _check_shop(talk, shop)


def _asking(builder: str) -> tuple[Talk, Shop]:
    """Run an agent that has paid, and asks before it ships."""

    @tool
    def ship() -> str:
        """Ship."""
        return f"shipped {interrupt('Are you sure?')}"

    saver = WatchedMemory()
    shop = Shop(saver)
    tools = [shop.sync_tools()[0], ship]
    talk = Talk(builder, [SHOPPING], middleware=[PatchToolCallsMiddleware()], tools=tools, saver=saver)
    talk.say("Pay and ship.")
    return talk, shop


@each_builder
def test_e4_what_finished_before_a_question_that_nobody_answered_is_not_reported_as_undone(builder: str):
    talk, shop = _asking(builder)
    talk.say("Never mind.")
    _check_shop(talk, shop)


@each_builder
def test_e4_a_question_that_is_answered_goes_on_as_ever(builder: str):
    talk, shop = _asking(builder)
    talk.agent.invoke(Command(resume="tomorrow"), talk.config)
    assert shop.paid == ["1 euro"]
    assert _answers(talk.received) == {"pay": PAID, "ship": "shipped tomorrow"}


@each_builder_and_manner
def test_e5_a_thread_that_crashed_without_it_goes_on_with_it(builder: str, manner: str):
    talk, shop = _crashed(builder, [], manner)
    other = Talk(builder, middleware=[PatchToolCallsMiddleware()], saver=talk.saver, manner=manner)
    other.say("And now?")
    _check_shop(other, shop)


@each_manner
def test_e5_a_thread_that_the_provider_already_refused_goes_on_with_it(manner: str):
    def refuse(messages: Any) -> AIMessage:
        assert not message_faults(messages), "400"
        return said()

    talk, shop = _crashed("create_agent", [], manner)
    talk.model.replies[:] = [refuse, refuse]
    for text in ("And now?", "Hello?"):
        with pytest.raises(AssertionError, match="400"):
            talk.say(text)
    other = Talk("create_agent", middleware=[PatchToolCallsMiddleware()], saver=talk.saver, manner=manner)
    other.say("Is anybody there?")
    _check_shop(other, shop)
    texts = [each.text for each in other.received if isinstance(each, HumanMessage)]
    assert texts == ["Pay and ship.", "And now?", "Hello?", "Is anybody there?"]


# E6: a result comes late. E7: it comes behind its placeholder


def _late(builder: str, patch: Middleware, manner: str = "sync") -> Talk:
    talk = Talk(builder, [said()], middleware=[patch], manner=manner)
    talk.say("Hello.")
    talk.put(human("Pay."), asks("a"), human("Well?"), result("a", "real 1"))
    talk.say("And now?")
    return talk


@each_builder_and_manner
def test_e6_a_late_result_moves_behind_its_call(builder: str, manner: str):
    talk = _late(builder, PatchToolCallsMiddleware(), manner)
    assert _faults(talk.received) == []
    assert _answers(talk.received) == {"pay": "real 1"}
    texts = [each.text for each in talk.received if isinstance(each, HumanMessage)]
    assert texts == ["Hello.", "Pay.", "Well?", "And now?"]


def _arriving(builder: str, patch: Middleware, manner: str = "sync", way: str = "state") -> Talk:
    talk = Talk(builder, [said()], middleware=[patch], manner=manner)
    talk.say("Hello.")
    talk.put(human("Pay."), asks("a"))
    talk.say("And now?")
    if way == "state":
        talk.put(result("a", "real 1"))
        talk.say("It came.")
    else:
        talk.say(result("a", "real 1"), "It came.")
    return talk


@pytest.mark.parametrize("way", ["state", "input"])
@each_builder_and_manner
def test_e7_a_real_result_takes_the_place_of_its_placeholder(builder: str, manner: str, way: str):
    talk = _arriving(builder, PatchToolCallsMiddleware(), manner, way)
    assert _answers(talk.model.sent[1]) == {"pay": _cancelled_by("pay", "a")}
    assert _faults(talk.received) == []
    assert _answers(talk.received) == {"pay": "real 1"}
    assert [each.status for each in talk.received if isinstance(each, ToolMessage)] == ["success"]
    assert "pairing" not in kinds(message_faults(talk.kept))
    assert _answers(list(talk.kept)) == {"pay": "real 1"}


# E8: a summary's place is an index, and something is inserted before it


def _summed(builder: str, patch: Middleware, manner: str = "sync", place: str = "last") -> Talk:
    others = [DeepSummarization(RecordingModel(), backend=StateBackend())] if builder == "create_agent" else []
    talk = Talk(builder, [said()], middleware=_placed(place, patch, *others), manner=manner)
    talk.say("Hello.")
    history = [
        human("Pay."),
        asks("a"),
        human(),
        asks(call("b", "ship")),
        result("b", "real 2", "ship"),
        human("Mail."),
    ]
    event = {"cutoff_index": 2 + 5, "summary_message": HumanMessage("It was summed up."), "file_path": None}
    talk.put(*history, _summarization_event=event)
    talk.say("And now?")
    return talk


@each_place
@each_builder_and_manner
def test_e8_a_summary_whose_place_has_moved_leaves_no_orphan(builder: str, manner: str, place: str):
    talk = _summed(builder, PatchToolCallsMiddleware(), manner, place)
    assert _faults(talk.received) == []
    texts = [each.text for each in talk.received if isinstance(each, HumanMessage)]
    assert texts[0] == "It was summed up."
    assert [text for text in texts if text in {"Mail.", "And now?"}] == ["Mail.", "And now?"]


# E9: the clearing of LangChain does not find a late result

BIG = "real " * 4_000


def _cleared(builder: str, patch: Middleware, manner: str = "sync", place: str = "first") -> Talk:
    edit = ClearToolUsesEdit(trigger=1_000, keep=1)
    talk = Talk(
        builder, [said()], middleware=_placed(place, patch, ContextEditingMiddleware(edits=[edit])), manner=manner
    )
    talk.say("Hello.")
    late = [human("Pay."), asks("a"), human("Well?"), said(), result("a", BIG)]
    talk.put(*late, human(), asks(call("b", "ship")), result("b", "real 2", "ship"), said())
    talk.say("And now?")
    return talk


@each_place
@each_builder_and_manner
def test_e9_a_late_result_is_cleared_like_any_other(builder: str, manner: str, place: str):
    talk = _cleared(builder, PatchToolCallsMiddleware(), manner, place)
    assert _faults(talk.received) == []
    assert _answers(talk.received) == {"pay": "[cleared]", "ship": "real 2"}


# E10: the summary of LangChain keeps a result without its call


def _summarised(builder: str, patch: Middleware, manner: str = "sync", place: str = "first") -> Talk:
    summary = SummarizationMiddleware(
        model=RecordingModel(replies=[said("Much was said.")]), trigger=("messages", 6), keep=("messages", 2)
    )
    talk = Talk(builder, [said()], middleware=_placed(place, patch, summary), manner=manner)
    talk.say("Hello.")
    talk.put(human("Pay."), asks("a"), human("Well?"), said(), result("a", "real 1"))
    talk.say("And now?")
    return talk


@each_place
@each_builder_and_manner
def test_e10_a_summary_keeps_no_result_without_its_call(builder: str, manner: str, place: str):
    talk = _summarised(builder, PatchToolCallsMiddleware(), manner, place)
    assert _faults(talk.received) == []
    assert "Much was said." in talk.received[-3].text or "Much was said." in talk.received[-2].text
    assert talk.received[-1].text == "And now?"
    assert not [each for each in talk.received if isinstance(each, ToolMessage)]


# E12: the run ends with calls that nobody answered


class EndNow(AgentMiddleware[Any, Any, Any]):
    """Ends the run when the model asks for a tool."""

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return {"jump_to": "end"} if state["messages"][-1].tool_calls else None


def _ended(builder: str, patch: Middleware, manner: str = "sync", place: str = "first") -> tuple[Talk, list[Any]]:
    talk = Talk(builder, [asks("a", "b")], middleware=_placed(place, patch, EndNow()), manner=manner)
    return talk, list(talk.say("Pay."))


@each_place
@each_builder_and_manner
def test_e12_after_a_run_that_jumped_to_its_end_the_next_has_a_valid_history(builder: str, manner: str, place: str):
    talk, given = _ended(builder, PatchToolCallsMiddleware(), manner, place)
    assert not [each for each in given if isinstance(each, ToolMessage)]
    talk.say("And now?")
    assert _faults(talk.received) == []
    texts = [each.text for each in talk.received if isinstance(each, ToolMessage)]
    made = (_placeholder, _cancelled_by)
    assert texts in [[say("pay", "a"), say("pay", "b")] for say in made]
    assert message_faults(talk.kept) == []


# Without it


BROKEN: dict[str, Callable[[str, Middleware], list[Any]]] = {
    "E1": lambda builder, patch: _asked_again(builder, patch).received,
    "E2": lambda builder, patch: _trimmed(builder, patch).received,
    "E6": lambda builder, patch: _late(builder, patch).received,
    "E7": lambda builder, patch: _arriving(builder, patch).received,
    "E8": lambda builder, patch: _summed(builder, patch).received,
    "E10": lambda builder, patch: _summarised(builder, patch).received,
    "E12": lambda builder, patch: _ended(builder, patch)[1],
}


@pytest.mark.soak
@each_builder
@pytest.mark.parametrize("failure", BROKEN)
def test_with_deepagents_own_middleware_the_failure_is_there(failure: str, builder: str):
    assert "pairing" in kinds(message_faults(BROKEN[failure](builder, theirs.PatchToolCallsMiddleware())))


@pytest.mark.soak
@each_builder_and_manner
def test_e3_with_deepagents_own_middleware_what_was_paid_is_reported_as_undone(builder: str, manner: str):
    talk, shop = _crashed(builder, [theirs.PatchToolCallsMiddleware()], manner)
    talk.say("And now?")
    assert shop.paid == ["1 euro"]
    assert "did not complete" in _answers(talk.received)["pay"]


@pytest.mark.soak
@each_builder
def test_e4_with_deepagents_own_middleware_what_was_paid_is_reported_as_undone(builder: str):
    talk, shop = asyncio.run(_cancelled(builder, theirs.PatchToolCallsMiddleware(), WatchedMemory()))
    assert shop.paid == ["1 euro"]
    assert "did not complete" in _answers(talk.received)["pay"]


@pytest.mark.soak
@each_builder
def test_e9_with_deepagents_own_middleware_a_late_result_is_never_cleared(builder: str):
    talk = _cleared(builder, theirs.PatchToolCallsMiddleware())
    assert BIG in [each.text for each in talk.received]
