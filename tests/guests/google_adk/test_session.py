"""What a run sees of its session with the plugin, while what is stored stays as it is."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig
from google.adk.apps import ResumabilityConfig
from google.adk.events import Event
from google.adk.events.event_actions import EventActions, EventCompaction
from google.adk.sessions import BaseSessionService, InMemorySessionService
from google.adk.sessions.base_session_service import GetSessionConfig
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from google.genai import types

from suture.integrations.google_adk import PatchToolCallsPlugin
from suture.repair import Report
from tests.guests.google_adk.recording import (
    AGENT,
    Recorder,
    answers,
    asks,
    drops_open_calls,
    event,
    keep,
    run,
    runner,
    said,
    sent,
    stored,
    told,
    unknown,
)
from tests.guests.releases import since

# Releases before 2.13 say so of the way in which they describe a function to a model.
pytestmark = pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. feature:UserWarning")

ASK, AND, GO = said("Pay Bo.", "user"), said("And?", "user"), said("Go on.", "user")
Services = Callable[[], BaseSessionService]


@pytest.fixture(params=["memory", "sqlite"])
def services(request: pytest.FixtureRequest, tmp_path: Path) -> Services:
    """Return what makes a session service; on a file, each is like one of another process."""
    if request.param == "sqlite":
        return lambda: SqliteSessionService(str(tmp_path / "sessions.db"))
    memory = InMemorySessionService()
    return lambda: memory


def teller(model: Recorder, **settings: Any) -> LlmAgent:
    return LlmAgent(name=AGENT, model=model, **settings)


def test_nothing_is_written_into_the_session(services: Services):
    before = [event(ASK), event(answers(z="paid")), event(asks("a", "b")), event(answers(b="paid"))]

    async def main():
        await keep(services(), before)
        model = Recorder()
        await run(runner(teller(model), services(), [PatchToolCallsPlugin()]))
        return model.requests[0], await stored(services())

    request, after = asyncio.run(main())
    assert request[2][1][0] == ("answer", "pay", "a", unknown("a"))
    assert [each.content for each in after] == [*(each.content for each in before), GO, said("Done.")]


def test_each_run_sees_the_same_even_after_a_restart(services: Services):
    async def main():
        await keep(services(), [event(ASK), event(answers(z="paid")), event(asks("a"))])
        models = [Recorder() for _ in range(3)]
        for model in models:
            await run(runner(teller(model), services(), [PatchToolCallsPlugin()]))
        return [model.requests[0] for model in models]

    first, second, third = asyncio.run(main())
    assert first[2] == ("user", [("answer", "pay", "a", unknown("a")), ("text", "Go on.")])
    assert second[:3] == third[:3] == first
    assert third[:5] == second


def test_a_run_sees_the_same_at_each_of_its_steps():
    def pay(to: str) -> str:
        """Pay somebody."""
        return f"paid {to}"

    async def main():
        model, service = Recorder(replies=[asks("b")]), InMemorySessionService()
        await keep(service, [event(ASK), event(asks("a"))])
        await run(runner(teller(model, tools=[pay]), service, [PatchToolCallsPlugin()]))
        return model.requests

    first, second = asyncio.run(main())
    assert second == [
        *first,
        ("model", [("call", "pay", "b")]),
        ("user", [("answer", "pay", "b", {"result": "paid Bo"})]),
    ]


@pytest.mark.parametrize("late", [answers(a="paid"), answers(a="paid", b="paid, too")])
def test_a_real_answer_that_comes_later_is_taken(services: Services, late: types.Content):
    async def main():
        await keep(services(), [event(ASK), event(asks("a", "b"))])
        await run(runner(teller(Recorder()), services(), [PatchToolCallsPlugin()]))
        session = await services().get_session(app_name="bank", user_id="ann", session_id="talk")
        assert session is not None
        await services().append_event(session, event(late))
        model = Recorder()
        await run(runner(teller(model), services(), [PatchToolCallsPlugin()]))
        return model.requests[0]

    second = {"result": "paid, too"} if len(late.parts or ()) == 2 else unknown("b")
    assert asyncio.run(main())[2] == (
        "user",
        [("answer", "pay", "a", {"result": "paid"}), ("answer", "pay", "b", second), ("text", "Go on.")],
    )


def test_a_call_that_was_only_slow_gets_its_real_answer():
    """A second message comes in while the first run is at a tool; ADK runs both."""

    async def main():
        service, begun, released = InMemorySessionService(), asyncio.Event(), asyncio.Event()
        await keep(service, [])

        async def pay(to: str) -> str:
            """Pay somebody."""
            begun.set()
            await released.wait()
            return f"paid {to}"

        model = Recorder(replies=[asks("a"), said("Not yet."), said("It is.")])
        both = runner(teller(model, tools=[pay]), service, [PatchToolCallsPlugin()])
        first = asyncio.create_task(run(both, "Pay Bo."))
        await begun.wait()
        await run(both, "Is it paid?")
        released.set()
        await first
        await run(both, "And now?")
        return model.requests

    _, meanwhile, _, afterwards = asyncio.run(main())
    assert meanwhile[2] == ("user", [("answer", "pay", "a", unknown("a")), ("text", "Is it paid?")])
    assert afterwards[2] == ("user", [("answer", "pay", "a", {"result": "paid Bo"}), ("text", "Is it paid?")])


def test_a_tool_that_failed_its_run_is_told_of_when_the_next_message_comes(services: Services):
    async def main():
        def pay(to: str) -> str:
            """Pay somebody."""
            raise OSError(f"the bank of {to} is closed")

        await keep(services(), [])
        model = Recorder(replies=[asks("a")])
        bank = runner(teller(model, tools=[pay]), services(), [PatchToolCallsPlugin()])
        with pytest.raises(OSError, match="the bank of Bo is closed"):
            await run(bank, "Pay Bo.")
        await run(bank)
        return model.requests[-1]

    assert asyncio.run(main()) == [
        ("user", [("text", "Pay Bo.")]),
        ("model", [("call", "pay", "a")]),
        ("user", [("answer", "pay", "a", unknown("a")), ("text", "Go on.")]),
    ]


@since("google-adk", "2.11", "runs that are aborted by a signal")
def test_of_a_run_that_was_aborted_nobody_knows_what_its_tools_did():
    """ADK answers all their calls itself, also of a tool that has paid."""
    paid: list[str] = []

    async def main():
        service, stop = InMemorySessionService(), asyncio.Event()
        await keep(service, [])

        async def pay(to: str) -> str:
            """Pay somebody."""
            paid.append(to)
            if len(paid) == 1:
                return f"paid {to}"
            stop.set()
            await asyncio.Event().wait()
            return "never"

        model = Recorder(replies=[asks("a", "b")])
        bank = runner(teller(model, tools=[pay]), service, [PatchToolCallsPlugin()])
        await run(bank, "Pay Bo.", abort_signal=stop)
        await run(bank)
        return model.requests[-1]

    told = [("answer", "pay", each, unknown(each)) for each in "ab"]
    assert asyncio.run(main())[2] == ("user", [*told, ("text", "Go on.")])
    assert paid == ["Bo", "Bo"]


@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. ResumabilityConfig")  # how ADK takes up a run after a crash
@pytest.mark.parametrize("since", [[], [event(AND, invocation="later"), event(said("I see."), invocation="later")]])
def test_a_run_that_is_taken_up_again_makes_its_calls(since: list[Event]):
    """Whatever was said to other runs since."""
    paid: list[str] = []

    def pay(to: str) -> str:
        """Pay somebody."""
        paid.append(to)
        return f"paid {to}"

    async def main():
        model, service = Recorder(), InMemorySessionService()
        await keep(service, [event(ASK), event(asks("a")), *since])
        resumable = ResumabilityConfig(is_resumable=True)
        bank = runner(teller(model, tools=[pay]), service, [PatchToolCallsPlugin()], resumability_config=resumable)
        await run(bank, None, invocation_id="before")
        return model.requests[-1]

    assert asyncio.run(main())[-1] == ("user", [("answer", "pay", "a", {"result": "paid Bo"})])
    assert paid == ["Bo"]


@drops_open_calls
@pytest.mark.parametrize(
    "given",
    [
        [event(ASK), event(asks("a", "b"))],
        [event(ASK), event(asks("b")), event(asks("a"), long_running_tool_ids={"a"})],
        [event(ASK), event(asks("a", "b")), event(AND)],
    ],
)
def test_a_message_that_is_an_answer_breaks_nothing_off(given: list[Event]):
    """ADK shows the model what was there when the call was made."""

    async def main(*plugins: Any):
        model, service = Recorder(), InMemorySessionService()
        await keep(service, given)
        await run(runner(teller(model), service, plugins), answers(a="paid"))
        return model.requests[0]

    assert asyncio.run(main(PatchToolCallsPlugin())) == asyncio.run(main())


@drops_open_calls
@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. ResumabilityConfig")  # as above
def test_a_run_that_is_taken_up_again_is_told_what_was_broken_off_in_others_and_not_in_itself():
    async def main():
        model, service = Recorder(), InMemorySessionService()
        own = [event(ASK), event(asks("a")), event(said("One moment."))]
        await keep(
            service,
            [*own, event(AND, invocation="later"), event(asks("b"), invocation="later"), event(GO, invocation="last")],
        )
        resumable = ResumabilityConfig(is_resumable=True)
        await run(
            runner(teller(model), service, [PatchToolCallsPlugin()], resumability_config=resumable),
            None,
            invocation_id="before",
        )
        return model.requests[-1]

    told_of = [atom for _, atoms in asyncio.run(main()) for atom in atoms if atom[0] == "answer"]
    assert told_of == [("answer", "pay", "b", unknown("b"))]


@drops_open_calls
@pytest.mark.filterwarnings("ignore:.EXPERIMENTAL. ResumabilityConfig")  # as above
def test_what_only_sets_the_state_breaks_nothing_off():
    async def main(*plugins: Any):
        model, service = Recorder(), InMemorySessionService()
        await keep(service, [event(ASK), event(asks("a"))])
        resumable = ResumabilityConfig(is_resumable=True)
        bank = runner(teller(model), service, plugins, resumability_config=resumable)
        await run(bank, None, invocation_id="before", state_delta={"noted": True})
        return model.requests, [each.author for each in await stored(service)]

    assert asyncio.run(main(PatchToolCallsPlugin())) == asyncio.run(main())


def test_what_a_rewind_took_back_is_not_told(services: Services):
    async def main():
        await keep(services(), [event(ASK, invocation="kept"), event(said("Whom?"), invocation="kept")])
        session = await services().get_session(app_name="bank", user_id="ann", session_id="talk")
        assert session is not None
        for each in (event(said("Bo.", "user"), invocation="undone"), event(asks("a"), invocation="undone")):
            await services().append_event(session, each)
        model = Recorder()
        bank = runner(teller(model), services(), [PatchToolCallsPlugin(on_repair=heard.append)])
        await bank.rewind_async(user_id="ann", session_id="talk", rewind_before_invocation_id="undone")
        await run(bank)
        return model.requests[0]

    heard: list[Report] = []
    kept = [("user", [("text", "Pay Bo.")]), ("model", [("text", "Whom?")]), ("user", [("text", "Go on.")])]
    assert asyncio.run(main()) == kept
    assert heard == []


def test_a_call_whose_answer_a_rewind_took_back_is_answered(services: Services):
    async def main():
        turn = [event(ASK), event(asks("a"))]
        undone = [event(AND, invocation="undone"), event(answers(a="paid"), invocation="undone")]
        await keep(services(), [*turn, *undone])
        model = Recorder()
        bank = runner(teller(model), services(), [PatchToolCallsPlugin()])
        await bank.rewind_async(user_id="ann", session_id="talk", rewind_before_invocation_id="undone")
        await run(bank)
        return model.requests[0]

    assert asyncio.run(main())[2] == ("user", [("answer", "pay", "a", unknown("a")), ("text", "Go on.")])


def test_a_call_that_a_summary_tells_of_does_not_come_back():
    call = event(asks("a"))
    summary = EventCompaction(
        start_timestamp=call.timestamp, end_timestamp=call.timestamp, compacted_content=said("Something was tried.")
    )
    events = [event(ASK, timestamp=call.timestamp - 1), call, event(None, actions=EventActions(compaction=summary))]
    assert sent(events, [PatchToolCallsPlugin()])[1:] == [
        ("model", [("text", "Something was tried.")]),
        ("user", [("text", "Go on.")]),
    ]


def test_an_answer_whose_call_is_outside_of_the_window_is_told_as_text():
    async def main():
        model, service = Recorder(), InMemorySessionService()
        await keep(service, [event(each) for each in (ASK, asks("a"), answers(a="paid"), said("Done."))])
        window = RunConfig(get_session_config=GetSessionConfig(num_recent_events=2))
        await run(runner(teller(model), service, [PatchToolCallsPlugin()]), run_config=window)
        return model.requests[0]

    [(role, [(kind, text)]), *_] = asyncio.run(main())
    assert (role, kind) == ("user", "text")
    assert "paid" in text


def test_a_session_that_is_in_order_is_seen_as_it_is(services: Services):
    async def main(*plugins: Any):
        model = Recorder()
        await run(runner(teller(model), services(), plugins))
        return model.requests[0]

    async def both():
        await keep(services(), [event(each) for each in (ASK, asks("a"), answers(a="paid"), said("Done."))])
        alone = await main()
        return alone, await main(PatchToolCallsPlugin())

    alone, with_it = asyncio.run(both())
    assert with_it[: len(alone)] == alone


def seen_in_run(events: list[Event], plugin: PatchToolCallsPlugin) -> list[Event]:
    """Return the events that a run sees."""
    run: Any = SimpleNamespace(session=SimpleNamespace(events=events), agent=None, invocation_id="now")
    asyncio.run(plugin.before_run_callback(invocation_context=run))
    return run.session.events


def test_of_a_session_that_is_in_order_nothing_is_made():
    said_nothing = types.Content(role="model", parts=None)
    whole = (ASK, asks("a", "b"), answers(a="paid", b="paid"), said_nothing, said("Done."), GO)
    events = [event(each) for each in whole]
    assert seen_in_run(events, PatchToolCallsPlugin()) is events


@pytest.mark.parametrize(("orphans", "length"), [("text", 10_001), ("drop", 4)])
def test_an_answer_without_a_call_is_whole_in_the_report_where_the_run_does_not_see_it_so(orphans: Any, length: int):
    heard: list[Report] = []
    paid = "paid".ljust(length, "!")
    seen_in_run(
        [event(each) for each in (ASK, answers(a=paid), GO)],
        PatchToolCallsPlugin(orphans=orphans, on_repair=heard.append),
    )
    [report] = heard
    assert [(each.index, each.call_id, each.length) for each in report.displaced] == [(1, "a", length)]


def test_what_is_added_is_seen_where_its_call_is():
    asked = event(asks("a"), branch="bank.teller", isolation_scope="task")
    seen: list[Event] = []

    class Looking(PatchToolCallsPlugin):
        async def before_run_callback(self, *, invocation_context: Any) -> None:
            await super().before_run_callback(invocation_context=invocation_context)
            seen.extend(invocation_context.session.events)

    sent([event(ASK), asked, event(AND, isolation_scope="task")], [Looking()])
    added = seen[2]
    assert added.content is not None
    assert told(added.content) == ("user", [("answer", "pay", "a", unknown("a"))])
    assert (added.author, added.invocation_id, added.branch, added.isolation_scope, added.timestamp) == (
        AGENT, "before", "bank.teller", "task", asked.timestamp,
    )  # fmt: skip
