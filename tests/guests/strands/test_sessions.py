"""Sessions that an agent is loaded from, and people who are asked."""

import asyncio
import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from strands import ToolContext, tool
from strands.agent.conversation_manager import SummarizingConversationManager
from strands.hooks import AfterToolCallEvent
from strands.session.snapshot_session_manager import SnapshotSessionManager
from strands.storage import LocalFileStorage

from suture.integrations.strands import PatchToolCalls
from tests.guests.strands.recording import (
    Recorder,
    interrupted,
    load,
    plain,
    result,
    said,
    store,
    teller,
    unknown,
    use,
    user,
)

ASK, CALL, AND, SEEN, GO = user("Pay Bo."), said(use("a")), user("And?"), said("I see."), user("Go on.")
PAID = user(result("a", "paid"))
LATE = [ASK, CALL, AND, PAID, SEEN]
IN_ORDER = [ASK, CALL, PAID, AND, SEEN]


def files(folder: Path) -> dict[str, Any]:
    """Return the messages that are stored, by their files."""
    return {path.name: json.loads(path.read_text())["message"] for path in sorted(folder.rglob("message_*.json"))}


def test_a_loaded_agent_has_its_messages_in_order_with_the_results_that_are_stored(tmp_path: Path):
    store(tmp_path, LATE)
    before = files(tmp_path)
    agent = teller(Recorder(), PatchToolCalls(), session_manager=load(tmp_path))
    assert plain(agent.messages) == IN_ORDER
    assert files(tmp_path) == before


def test_what_comes_after_is_stored_behind_it(tmp_path: Path):
    store(tmp_path, LATE)
    before = files(tmp_path)
    teller(Recorder(), PatchToolCalls(), session_manager=load(tmp_path))("Go on.")
    added = {name: message for name, message in files(tmp_path).items() if name not in before}
    assert plain(added.values()) == [GO, said("Done.")]
    model = Recorder()
    teller(model, PatchToolCalls(), session_manager=load(tmp_path))("And now?")
    assert model.requests == [[ASK, CALL, user(result("a", "paid"), "And?"), SEEN, GO, said("Done."), user("And now?")]]


def paying_once(hanging: asyncio.Event) -> Any:
    """Return a tool that pays the first time, and says when it hangs the next."""
    paid = asyncio.Event()

    @tool
    async def pay(to: str) -> str:
        """Pay somebody."""
        if not paid.is_set():
            paid.set()
            return f"paid {to}"
        hanging.set()
        await asyncio.Event().wait()
        return "never"

    return pay


def test_what_a_tool_gave_before_the_run_was_cancelled_is_found_again_and_stored(tmp_path: Path):
    """Its neighbour, which was at work, may have done it or not."""
    hanging = asyncio.Event()

    async def talk() -> None:
        running = asyncio.create_task(agent.invoke_async("Pay Bo."))
        await asyncio.wait_for(hanging.wait(), 30)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await agent.invoke_async("And?")

    store(tmp_path, [])
    model = Recorder(said(use("a"), use("b")))
    agent = teller(model, PatchToolCalls(), session_manager=load(tmp_path), tools=[paying_once(hanging)])
    asyncio.run(talk())
    turn, found = said(use("a"), use("b")), result("a", "paid Bo")
    assert model.requests[-1] == [ASK, turn, user(found, unknown("b"), "And?")]
    stored = plain(files(tmp_path).values())
    assert stored == [ASK, turn, user(found, interrupted("b")), AND, said("Done.")]


def rewrite(event: AfterToolCallEvent) -> None:
    event.result = {**event.result, "content": [{"text": "paid somebody"}]}


def repeat(event: AfterToolCallEvent) -> None:
    event.retry = True


@pytest.mark.parametrize(
    ("hook", "ids", "expected"),
    [(rewrite, ("a", "b"), (result("a", "paid somebody"), unknown("b"))), (repeat, ("a",), (unknown("a"),))],
)
def test_what_is_found_again_is_what_other_hooks_left_of_it(hook: Any, ids: Any, expected: Any):
    """A result may have been made shorter; that of a call that is made once more is no result."""
    hanging = asyncio.Event()

    async def talk() -> None:
        running = asyncio.create_task(agent.invoke_async("Pay Bo."))
        await asyncio.wait_for(hanging.wait(), 30)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        await agent.invoke_async("And?")

    model = Recorder(said(*map(use, ids)))
    agent = teller(model, tools=[paying_once(hanging)])
    agent.add_hook(hook, AfterToolCallEvent)
    PatchToolCalls().init_agent(agent)
    asyncio.run(talk())
    assert model.requests[-1] == [ASK, said(*map(use, ids)), user(*expected, "And?")]


def test_what_a_tool_gave_in_a_conversation_that_was_cleared_is_not_credited_to_another_call_of_its_id():
    hanging = asyncio.Event()

    async def break_off(prompt: str) -> None:
        hanging.clear()
        running = asyncio.create_task(agent.invoke_async(prompt))
        await asyncio.wait_for(hanging.wait(), 30)
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running

    async def talk() -> None:
        await break_off("Pay Bo.")
        agent.messages.clear()
        await agent.invoke_async("And?")
        await break_off("Pay Bo.")
        await agent.invoke_async("And?")

    model = Recorder(said(use("a"), use("b")), said("I see."), CALL)
    agent = teller(model, PatchToolCalls(), tools=[paying_once(hanging)])
    asyncio.run(talk())
    assert model.requests[-1] == [AND, SEEN, ASK, CALL, user(unknown("a"), "And?")]


def test_a_session_need_not_be_read_again(tmp_path: Path):
    store(tmp_path, LATE)
    agent = teller(Recorder(), PatchToolCalls(reload=False), session_manager=load(tmp_path))
    assert plain(agent.messages) == [ASK, CALL, user(interrupted("a")), AND, SEEN]


def test_a_session_that_is_in_order_is_left_as_strands_loaded_it(tmp_path: Path):
    store(tmp_path, [ASK, CALL, PAID, SEEN])
    sessions = load(tmp_path)
    agent = teller(Recorder(), PatchToolCalls(), session_manager=sessions)
    assert agent.messages == list(files(tmp_path).values())


def test_a_session_that_is_new_takes_the_messages_as_they_are_given(tmp_path: Path):
    agent = teller(Recorder(), PatchToolCalls(), messages=LATE, session_manager=load(tmp_path))
    assert plain(agent.messages) == LATE
    assert plain(files(tmp_path).values()) == LATE


def test_a_message_that_was_redacted_stays_so(tmp_path: Path):
    store(tmp_path, LATE)
    [path] = tmp_path.rglob("message_0.json")
    kept = json.loads(path.read_text())
    path.write_text(json.dumps(kept | {"redact_message": user("(redacted)")}))
    agent = teller(Recorder(), PatchToolCalls(), session_manager=load(tmp_path))
    assert plain(agent.messages) == [user("(redacted)"), *IN_ORDER[1:]]


def test_messages_that_a_window_left_behind_stay_behind(tmp_path: Path):
    store(tmp_path, [user("Hello."), said("Hello."), *LATE], removed=2)
    agent = teller(Recorder(), PatchToolCalls(), session_manager=load(tmp_path))
    assert plain(agent.messages) == IN_ORDER
    assert agent.conversation_manager.removed_message_count == 2


def test_a_summary_stays_in_front(tmp_path: Path):
    summary, manager = user("They said hello."), SummarizingConversationManager()
    hello = [user("Hello."), said("Hello.")]
    store(tmp_path, [*hello, *LATE], "SummarizingConversationManager", removed=2, summary_message=summary)
    agent = teller(Recorder(), PatchToolCalls(), session_manager=load(tmp_path), conversation_manager=manager)
    assert plain(agent.messages) == [summary, *IN_ORDER]
    assert manager.get_state()["summary_message"] == summary


def test_a_session_that_cannot_be_read_is_left_as_strands_loaded_it(tmp_path: Path):
    odd = {"role": "system", "content": [{"text": "Be brief."}]}
    store(tmp_path, [odd, *LATE])
    agent = teller(Recorder(), PatchToolCalls(), session_manager=load(tmp_path))
    assert plain(agent.messages) == [odd, ASK, CALL, user(interrupted("a")), AND, SEEN]


def test_an_agent_whose_service_keeps_its_messages_has_none(tmp_path: Path):
    store(tmp_path, LATE, "NullConversationManager")
    agent = teller(Recorder(stateful=True), PatchToolCalls(), session_manager=load(tmp_path))
    assert agent.messages == []


def test_a_session_of_snapshots_is_mended_for_the_request(tmp_path: Path):
    """Strands does not mend those when it loads them."""

    def sessions() -> SnapshotSessionManager:
        return SnapshotSessionManager(session_id="talk", storage=LocalFileStorage(str(tmp_path)))

    teller(Recorder(), messages=LATE, session_manager=sessions())("Go on.")
    model = Recorder()
    agent = teller(model, PatchToolCalls(), session_manager=sessions())
    assert plain(agent.messages) == [*LATE, GO, said("Done.")]
    agent("And now?")
    assert model.requests[0][:4] == [ASK, CALL, user(result("a", "paid"), "And?"), SEEN]


@tool(context=True)
def approve(to: str, tool_context: ToolContext) -> str:
    """Have a payment approved."""
    return f"{tool_context.interrupt('approval', reason=to)}: {to}"


@pytest.mark.parametrize("stored", [False, True])
def test_a_person_who_was_asked_is_waited_for(stored: bool, tmp_path: Path):
    asked = [user("Pay Bo."), said(use("a", "approve"))]

    def settings() -> dict[str, Any]:
        return {"tools": [approve], **({"session_manager": load(tmp_path)} if stored else {})}

    first = Recorder(asked[1])
    agent = teller(first, PatchToolCalls(), **settings())
    stopped = agent("Pay Bo.")
    assert (stopped.stop_reason, plain(agent.messages)) == ("interrupt", asked)
    model = Recorder() if stored else first
    agent = teller(model, PatchToolCalls(), **settings()) if stored else agent
    assert plain(agent.messages) == asked
    [interrupt] = list(stopped.interrupts or ())
    agent([{"interruptResponse": {"interruptId": interrupt.id, "response": "approved"}}])
    assert model.requests[-1] == [*asked, user(result("a", "approved: Bo"))]


def test_a_person_who_was_asked_is_waited_for_after_a_call_that_was_lost(tmp_path: Path):
    lost = [ASK, CALL, AND, said(use("b", "approve"))]
    store(tmp_path, lost)
    agent = teller(Recorder(), PatchToolCalls(), session_manager=load(tmp_path), tools=[approve])
    assert plain(agent.messages) == [ASK, CALL, user(unknown("a")), *lost[2:]]
    assert agent().stop_reason == "interrupt"
