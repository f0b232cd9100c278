"""A stream that is cut at any place leaves a history that can be sent, and says that nothing of it was run."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, Delta, ModelRequest, RunResult, StreamCutError, tool
from suture.events import MessageDelta
from suture.middleware import PatchToolCalls
from suture.stores import MemoryStore
from suture.testing import ScriptedModel
from tests.agent.patching.wiring import assert_acceptable, assert_sent, history, on_each_wire, one, sent
from tests.shapes.notation import call, turn, user
from tests.shapes.texts import placeholder
from tests.shapes.wires import read

ASK, MORE = user("When is high tide?"), user("And now?")
TWO = turn(call("a", "tides", {"at": "Brest"}), call("b", "moon", {"at": "Brest"}), text="I look at both.")
PROFILE = "openai-chat"  # on every wire, so that arguments have to be objects
PIECES = 15  # more than there are of 5 characters


@tool
async def tides(at: str) -> str:
    """Tell the tides."""
    raise AssertionError(f"a call of a cut stream is not run: {at}")


moon = suture.tool(tides.function, name="moon")


def check_what_is_left(wire: str, left: RunResult[Any], messages: list[Any]) -> set[str]:
    """Return the ids of the calls that came; every one of them is told not to have been run."""
    assert suture.check(list(left.messages), wire=wire, profile="pairing").findings == ()
    outline = read(wire, messages)
    assert outline[0] == read(wire, history(wire, ASK))[0]
    events = [event for _, events in outline[1:-1] for event in events]
    calls = {event[1]: event[2] for event in events if event[0] == "call"}
    texts = {event[1]: event[2] for event in events if event[0] in {"result", "failed"}}
    assert texts == {id_: placeholder("malformed", id_, name) for id_, name in calls.items()}
    said = "".join(event[1] for event in events if event[0] == "text")
    assert TWO.text.startswith(said)
    assert not calls or said == TWO.text
    assert_acceptable(wire, messages)
    return set(calls)


@pytest.mark.parametrize("patch", [[PatchToolCalls()], []], ids=["patched", "fit alone"])
@on_each_wire
def test_at_every_place_the_next_run_just_works(wire: str, patch: list[Any]):
    came: list[set[str]] = []

    async def use(cut_after: int) -> None:
        model = ScriptedModel([one(wire, TWO), "ok"], wire, profile=PROFILE, chunk_size=5, cut_after=cut_after)
        agent = ChatModelAgent(model=model, tools=[tides, moon], middlewares=patch)
        run = agent.stream("When is high tide?")
        with pytest.raises(ConnectionError, match="the stream was cut"):
            await run.result()
        assert run.final_result is not None
        assert run.final_result.outcome == "failed"
        model.cut_after = None
        await agent.run([*run.final_result.messages, one(wire, MORE)])
        came.append(check_what_is_left(wire, run.final_result, sent(model)))

    for cut_after in range(PIECES):
        asyncio.run(use(cut_after))
    assert came[0] == set()
    assert came[-1] == {"a", "b"}
    assert {"a"} in came
    assert [len(each) for each in came] == sorted(len(each) for each in came)


@on_each_wire
def test_at_every_place_what_is_left_is_acceptable_as_it_is(wire: str):
    """A program that takes it to the provider by itself needs no repair."""

    async def use(cut_after: int) -> None:
        model = ScriptedModel([one(wire, TWO)], wire, chunk_size=5, cut_after=cut_after)
        run = ChatModelAgent(model=model, tools=[tides, moon]).stream("When is high tide?")
        with pytest.raises(ConnectionError):
            await run.result()
        assert run.final_result is not None
        assert suture.check(list(run.final_result.messages), wire=wire).findings == (), f"cut after {cut_after}"

    for cut_after in range(PIECES):
        asyncio.run(use(cut_after))


@on_each_wire
def test_at_every_place_the_checkpoint_goes_on(wire: str):
    async def use(cut_after: int) -> None:
        model = ScriptedModel([one(wire, TWO), "ok"], wire, profile=PROFILE, chunk_size=5, cut_after=cut_after)
        agent = ChatModelAgent(model=model, tools=[tides, moon], checkpoint_store=MemoryStore())
        run = agent.stream("When is high tide?", checkpoint_id="c")
        with pytest.raises(ConnectionError):
            await run.result()
        assert run.final_result is not None
        model.cut_after = None
        await agent.run("And now?", checkpoint_id="c")
        check_what_is_left(wire, run.final_result, sent(model))

    for cut_after in range(PIECES):
        asyncio.run(use(cut_after))


class Ends:
    """A model whose stream just ends, without a whole message."""

    def __init__(self, inner: ScriptedModel, pieces: int) -> None:
        self.inner, self.pieces = inner, pieces
        self.wire, self.profile = inner.wire, inner.profile

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        pieces = [item async for item in self.inner.stream(request)]
        for item in pieces[: self.pieces]:
            if isinstance(item, Delta):
                yield item


@on_each_wire
def test_a_stream_that_just_ends_is_a_cut_one(wire: str):
    async def use(pieces: int) -> None:
        inner = ScriptedModel([one(wire, TWO), "ok"], wire, profile=PROFILE, chunk_size=5)
        agent = ChatModelAgent(model=Ends(inner, pieces), tools=[tides, moon], model_retry_config=None)
        run = agent.stream("When is high tide?")
        with pytest.raises(StreamCutError):
            await run.result()
        assert run.final_result is not None
        other = ChatModelAgent(model=inner, tools=[tides, moon])
        await other.run([*run.final_result.messages, one(wire, MORE)])
        check_what_is_left(wire, run.final_result, sent(inner))

    for pieces in range(PIECES):
        asyncio.run(use(pieces))


@on_each_wire
def test_a_cancel_in_the_middle_of_a_stream_is_as_harmless(wire: str):
    """Cancelled at each piece, by whoever reads the events."""

    async def use(pieces: int) -> None:
        model = ScriptedModel([one(wire, TWO), "ok"], wire, profile=PROFILE, chunk_size=5)
        agent = ChatModelAgent(model=model, tools=[tides, moon])
        run = agent.stream("When is high tide?")
        seen = 0
        async for event in run:
            if isinstance(event, MessageDelta):
                seen += 1
                if seen == pieces:
                    break
        stopped = await run.cancel()
        assert suture.check(list(stopped.messages), wire=wire).acceptable
        await agent.run([*stopped.messages, one(wire, MORE)])
        assert_acceptable(wire, sent(model))

    for pieces in range(1, 9):
        asyncio.run(use(pieces))


@on_each_wire
def test_what_was_cut_before_anything_came_leaves_the_input_alone(wire: str):
    model = ScriptedModel([one(wire, TWO), "ok"], wire, profile=PROFILE, chunk_size=5, cut_after=0)
    agent = ChatModelAgent(model=model, tools=[tides, moon])

    async def use() -> None:
        run = agent.stream("When is high tide?")
        with pytest.raises(ConnectionError):
            await run.result()
        assert run.final_result is not None
        assert list(run.final_result.messages) == history(wire, ASK)
        model.cut_after = None
        await agent.run([*run.final_result.messages, one(wire, MORE)])
        assert_sent(model, ASK, MORE)

    asyncio.run(use())


def test_a_scripted_stream_without_pieces_cannot_be_cut_after_some():
    with pytest.raises(suture.ConfigError, match="without chunk_size"):
        ScriptedModel(["At 06:12."], cut_after=1)
