"""Interrupts are answered one by one or together; a wrong answer is refused and changes nothing."""

from typing import Any

import msgspec
import pytest

import suture
from suture import ChatModelAgent, Outcome, ResumeError, SchemaVersionError, tool
from suture.events import Interrupted, ToolFinished
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.durability.scenes import WIRES, AnyStore, acceptable, journals, make, names, play, results, seen, turn


class Desk:
    """A tool that asks, and remembers what it did."""

    def __init__(self, expects: Any = "") -> None:
        self.effects: list[Any] = []
        desk = self

        @tool
        async def ask(n: int) -> str:
            """Ask."""
            answer = await suture.interrupt(n, expects=expects)
            desk.effects.append((n, answer))
            return f"{n}: {answer}"

        self.ask = ask


def three(wire: str = "message") -> Any:
    return turn(*[(f"c{n}", "ask", {"n": n}) for n in range(3)], wire=wire)


@pytest.mark.parametrize("wire", WIRES)
def test_targets_are_answered_one_by_one_and_the_others_wait_under_the_same_id(store: AnyStore, wire: str):
    desk = Desk()
    agent, model = make([three(wire), "done"], desk.ask, wire=wire, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        ids = {waiting.info: waiting.id for waiting in paused.interrupts}
        assert list(ids) == [0, 1, 2]
        finished: list[tuple[str, str]] = []
        left = [0, 1, 2]
        for n in (1, 2, 0):
            left.remove(n)
            events, result = await seen(agent.stream(resume="k", answers={ids[n]: f"answer {n}"}))
            finished += names(events, ToolFinished)
            assert [waiting.id for waiting in result.interrupts] == [ids[other] for other in left]
            assert desk.effects[-1] == (n, f"answer {n}")
            told = [event.interrupts for event in events if isinstance(event, Interrupted)]
            assert told == ([result.interrupts] if left else [])
        assert desk.effects == [(1, "answer 1"), (2, "answer 2"), (0, "answer 0")]
        assert finished == [("ToolFinished", "c1"), ("ToolFinished", "c2"), ("ToolFinished", "c0")]
        assert results(result.messages) == [(f"c{n}", f"{n}: answer {n}") for n in range(3)]
        assert len(model.requests) == 2
        assert acceptable(result.messages, wire)

    play(scene())


def test_a_resume_without_answers_asks_the_same_again(store: AnyStore):
    desk = Desk()
    agent, _ = make([three(), "done"], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        again = await agent.resume("k")
        assert again.interrupts == paused.interrupts
        assert desk.effects == []
        done = await agent.resume("k", answers={waiting.id: 1 for waiting in again.interrupts})
        assert done.outcome is Outcome.FINISHED

    play(scene())


def test_another_agent_object_in_its_place_resumes(store: AnyStore):
    first, second = Desk(), Desk()
    agent, _ = make([three()], first.ask, checkpoint_store=store)
    other, model = make(["done"], second.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        done = await other.resume("k", answers={waiting.id: "x" for waiting in paused.interrupts})
        assert (done.output, first.effects, len(second.effects)) == ("done", [], 3)
        assert [call for call, _ in results(model.requests[0].messages)] == ["c0", "c1", "c2"]

    play(scene())


def test_none_is_an_answer(store: AnyStore):
    desk = Desk()
    agent, _ = make([turn(("c1", "ask", {"n": 1})), "done"], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        await agent.resume("k", answers={paused.interrupts[0].id: None})
        assert desk.effects == [(1, None)]

    play(scene())


GOOD: dict[Any, Any] = {bool: True, str: "x", int: 3, float: 2.5, list: [1], dict: {"a": 1}, "approval": False}
WRONG: dict[Any, list[Any]] = {
    bool: ["yes", 1, None, {"approved": True}],
    str: [1, None, ["x"], b"x"],
    int: ["1", 1.5, None, [1]],
    float: ["1.5", None, {}],
    list: ["x", {"a": 1}, None],
    dict: ["x", [1], None],
    "approval": ["yes", 1, None, {}, {"approved": "no"}, {"reason": "x"}],
}


@pytest.mark.parametrize(
    ("expects", "wrong"), [(kind, wrong) for kind, wrongs in WRONG.items() for wrong in wrongs], ids=str
)
def test_an_answer_of_the_wrong_type_is_refused_and_nothing_changes(store: AnyStore, expects: Any, wrong: Any):
    desk = Desk(expects)
    agent, model = make([turn(("c1", "ask", {"n": 1})), "done"], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        (waiting,) = paused.interrupts
        before = await journals(store)
        with pytest.raises(ResumeError, match=waiting.id):
            await agent.resume("k", answers={waiting.id: wrong})
        assert await journals(store) == before
        assert (desk.effects, len(model.requests)) == ([], 1)
        done = await agent.resume("k", answers={waiting.id: GOOD[expects]})
        assert done.output == "done"

    play(scene())


@pytest.mark.parametrize("wrong", ["yes", 1, None, {}, {"approved": "no"}, [True]], ids=str)
def test_what_is_no_approval_is_refused_and_the_call_still_waits(store: AnyStore, wrong: Any):
    ran: list[str] = []

    @tool(requires_approval=True)
    async def delete() -> str:
        """Delete."""
        ran.append("delete")
        return "deleted"

    agent, _ = make([turn(("c1", "delete")), "done"], delete, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        before = await journals(store)
        with pytest.raises(ResumeError):
            await agent.resume("k", answers={paused.interrupts[0].id: wrong})
        assert (await journals(store), ran) == (before, [])
        assert (await agent.resume("k", answers={paused.interrupts[0].id: True})).output == "done"

    play(scene())


def test_one_wrong_answer_among_right_ones_refuses_them_all(store: AnyStore):
    desk = Desk(int)
    agent, _ = make([three(), "done"], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        before = await journals(store)
        a, b, c = (waiting.id for waiting in paused.interrupts)
        for answers in ({a: 1, b: 2, c: "three"}, {a: 1, "a/9/9/tool/0": 2}, {a: 1, b: object()}):
            with pytest.raises(ResumeError):
                await agent.resume("k", answers=answers)
            assert await journals(store) == before
        assert desk.effects == []

    play(scene())


def test_an_answer_to_an_unknown_id_is_refused_and_says_what_is_waited_for(store: AnyStore):
    desk = Desk()
    agent, _ = make([turn(("c1", "ask", {"n": 1})), "done"], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        before = await journals(store)
        with pytest.raises(ResumeError, match="a/7/7/tool/0") as caught:
            await agent.resume("k", answers={"a/7/7/tool/0": True})
        assert paused.interrupts[0].id in str(caught.value)
        assert await journals(store) == before

    play(scene())


def test_an_answer_given_twice_is_refused(store: AnyStore):
    desk = Desk()
    agent, _ = make([three(), "done"], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        first = paused.interrupts[0].id
        await agent.resume("k", answers={first: "once"})
        before = await journals(store)
        with pytest.raises(ResumeError):
            await agent.resume("k", answers={first: "twice"})
        assert await journals(store) == before
        assert desk.effects == [(0, "once")]

    play(scene())


def test_an_answer_that_cannot_be_stored_is_refused(store: AnyStore):
    class Odd:
        pass

    desk = Desk()
    agent, _ = make([turn(("c1", "ask", {"n": 1})), "done"], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        before = await journals(store)
        for wrong in (Odd(), {"deep": [Odd()]}, print):
            with pytest.raises((ResumeError, suture.UnregisteredTypeError)):
                await agent.resume("k", answers={paused.interrupts[0].id: wrong})
            assert await journals(store) == before
        assert desk.effects == []

    play(scene())


def test_an_unknown_checkpoint_is_refused_by_name(store: AnyStore):
    agent, model = make(["done"], checkpoint_store=store)

    async def scene():
        with pytest.raises(ResumeError, match="'nowhere'"):
            await agent.resume("nowhere", answers={"a/1/0/tool/0": True})
        with pytest.raises(ResumeError, match="'nowhere'"):
            await agent.resume("nowhere")
        assert (await journals(store), model.requests) == ({}, [])

    play(scene())


def test_a_finished_checkpoint_is_refused(store: AnyStore):
    desk = Desk()
    agent, model = make([turn(("c1", "ask", {"n": 1})), "done"], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        await agent.resume("k", answers={paused.interrupts[0].id: 1})
        before = await journals(store)
        given: tuple[dict[str, Any], ...] = ({}, {"answers": {paused.interrupts[0].id: 1}}, {"answer": 1})
        for answer in given:
            with pytest.raises(ResumeError, match="checkpoint 'k' has finished"):
                await agent.stream(resume="k", **answer).result()
        assert await journals(store) == before
        assert (desk.effects, len(model.requests)) == ([(1, 1)], 2)

    play(scene())


def test_resuming_without_a_store_is_an_error_that_says_so():
    agent, _ = make(["done"])

    async def scene():
        with pytest.raises((ResumeError, suture.ConfigError), match="checkpoint_store"):
            await agent.resume("k", answers={})

    play(scene())


@pytest.mark.parametrize(("wire", "other"), [(one, two) for one in WIRES for two in WIRES if one != two])
def test_a_checkpoint_of_another_wire_is_refused(wire: str, other: str):
    store = MemoryStore()
    desk = Desk()
    agent, _ = make([turn(("c1", "ask", {"n": 1}), wire=wire)], desk.ask, wire=wire, checkpoint_store=store)
    stranger, _ = make(["done"], desk.ask, wire=other, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        before = await journals(store)
        with pytest.raises(ResumeError, match=f"(?s){wire}.*{other}|{other}.*{wire}"):
            await stranger.resume("k", answers={paused.interrupts[0].id: 1})
        with pytest.raises(ResumeError, match=f"(?s){wire}.*{other}|{other}.*{wire}"):
            await stranger.run("more", checkpoint_id="k")
        assert await journals(store) == before

    play(scene())


def test_a_checkpoint_of_an_agent_with_another_name_is_refused_or_resumed_but_never_half(store: AnyStore):
    desk = Desk()
    agent, _ = make([turn(("c1", "ask", {"n": 1}))], desk.ask, checkpoint_store=store)
    stranger = ChatModelAgent(name="b", model=ScriptedModel(["done"]), tools=[desk.ask], checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        before = await journals(store)
        try:
            done = await stranger.resume("k", answers={paused.interrupts[0].id: 1})
        except ResumeError as error:
            assert "'a'" in str(error) or " a" in str(error)  # noqa: PT017 - both ways are right
            assert (await journals(store), desk.effects) == (before, [])
        else:
            assert (done.output, desk.effects) == ("done", [(1, 1)])

    play(scene())


async def moved(store: MemoryStore, at: int, record: bytes) -> MemoryStore:
    """Return the journal with another record in one place, as a process finds it that did not write it."""
    found = [*await store.load("k")]
    found[at] = record
    other = MemoryStore()
    await other.append("k", 0, found)
    return other


@pytest.mark.parametrize("version", [0, 1, 99, "2", None])
def test_a_checkpoint_of_an_unknown_version_is_refused(version: Any):
    store = MemoryStore()
    desk = Desk()
    agent, model = make([turn(("c1", "ask", {"n": 1}))], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        (tag, current, fields), *rest = msgspec.msgpack.decode((await store.load("k"))[0])
        assert (tag, current) == ("began", 2)
        other = await moved(store, 0, msgspec.msgpack.encode([[tag, version, fields], *rest]))
        before = await journals(other)
        there, _ = make([], desk.ask, checkpoint_store=other)
        with pytest.raises(SchemaVersionError, match="version"):
            await there.resume("k", answers={paused.interrupts[0].id: 1})
        with pytest.raises(SchemaVersionError, match="version"):
            await there.run("more", checkpoint_id="k")
        assert await journals(other) == before
        assert (desk.effects, len(model.requests)) == ([], 1)

    play(scene())


FORGED: list[list[Any]] = [
    ["set", {"phase": "elsewhere"}],
    ["set", {"turn": "one"}],
    ["set", {"no_such_field": 1}],
    ["set", {"usage": [1]}],
    ["set", {"partial": {"kind": "message"}}],
    ["put", "history", {"a": 1}],
    ["put", "started", {7: True}],
    ["put", "causes", {7: "unknown"}],
    ["put", "causes", {0: "bored"}],
    ["put", "ended", {"c1": {"parts": []}}],
    ["put", "ended", {0: {"parts": 3}}],
    ["put", "values", {"key": {"$type": "shop.Basket", "value": 1}}],
    ["put", "asked", {"a": 1}],
    ["drop", "history", [0]],
    ["splice", 9, 9, []],
    ["splice", 0, 0, [{"kind": "message", "role": "king"}]],
    ["answered", 5],
    ["unheard of"],
]


@pytest.mark.parametrize("at", [0, 1, -1])
@pytest.mark.parametrize(
    "damage",
    [b"", b"\xc1", b"not a record", b"\x80", *(msgspec.msgpack.encode([each]) for each in FORGED)],
    ids=lambda data: data[:60],
)
def test_a_damaged_or_forged_record_is_one_error_that_says_where(at: int, damage: bytes):
    store = MemoryStore()
    desk = Desk()
    agent, model = make([turn(("c1", "ask", {"n": 1}))], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        other = await moved(store, at, damage)
        before = await journals(other)
        there, _ = make([], desk.ask, checkpoint_store=other)
        with pytest.raises(SchemaVersionError, match="checkpoint 'k' cannot be read at record"):
            await there.resume("k", answers={paused.interrupts[0].id: 1})
        with pytest.raises(SchemaVersionError, match="checkpoint 'k' cannot be read at record"):
            await there.run("more", checkpoint_id="k")
        assert await journals(other) == before
        assert (desk.effects, len(model.requests)) == ([], 1)

    play(scene())


@pytest.mark.parametrize("at", range(-1, 12))
def test_a_record_that_is_missing_is_an_error_of_ours_or_does_no_harm(at: int):
    store = MemoryStore()
    desk = Desk()
    agent, _ = make([turn(("c1", "ask", {"n": 1}))], desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        found = await store.load("k")
        other = MemoryStore()
        await other.append("k", 0, [record for number, record in enumerate(found) if number != at % len(found)])
        there, _ = make(lambda _: "done", desk.ask, checkpoint_store=other)
        try:
            await there.resume("k", answers={paused.interrupts[0].id: 1})
        except suture.SutureError as error:
            assert "checkpoint 'k'" in str(error)  # noqa: PT017 - both ways are right
        assert desk.effects in ([], [(1, 1)])

    play(scene())


def test_two_resumes_at_once_cannot_both_have_the_effect(store: AnyStore):
    import asyncio

    desk = Desk()
    agent, _ = make(lambda messages: three() if len(messages) == 1 else "done", desk.ask, checkpoint_store=store)

    async def scene():
        paused = await agent.run("go", checkpoint_id="k")
        answers = {waiting.id: "x" for waiting in paused.interrupts}
        both = await asyncio.gather(
            agent.resume("k", answers=answers), agent.resume("k", answers=answers), return_exceptions=True
        )
        done = [result for result in both if isinstance(result, suture.RunResult)]
        refused = [error for error in both if isinstance(error, Exception)]
        assert (len(done), len(refused)) == (1, 1)
        assert isinstance(refused[0], suture.SutureError)
        assert desk.effects == [(0, "x"), (1, "x"), (2, "x")]

    play(scene())
