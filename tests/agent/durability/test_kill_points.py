"""Whatever append a process dies behind, its run goes on: every prefix of the journal is a checkpoint."""

from typing import Any

import pytest

import suture
from suture import Outcome
from tests.agent.durability.scenes import CANCELED, UNKNOWN, WIRES, acceptable, play, results, roles
from tests.agent.durability.victim import SCRIPTS, Cast, Counted, Snapshots

Snapshot = tuple[dict[str, list[bytes]], list[str]]

EFFECTS = {
    "long": ["post 1", "post 2", "post 3", "post 4"],
    "deep": ["post 1", "post 2", "post 3", "post 4"],
    "paused": ["ask 2 yes", "post 1"],
}


async def recorded(scene: str, wire: str) -> Snapshots:
    """Run a scene to its end, and return what a kill behind each append would have left."""
    effects = Counted()
    store = Snapshots(effects)
    cast = Cast(scene, wire, store, effects)
    result = await cast.agent.run("go", checkpoint_id="k")
    if result.outcome is Outcome.INTERRUPTED:
        result = await cast.agent.resume("k", answers={result.interrupts[0].id: "yes"})
    assert (result.output, effects.all()) == ("done", EFFECTS[scene])
    return store


async def answered(cast: Cast, result: suture.RunResult[Any]) -> suture.RunResult[Any]:
    while result.outcome is Outcome.INTERRUPTED:
        result = await cast.agent.resume("k", answers={waiting.id: "yes" for waiting in result.interrupts})
    return result


def check_truth(told: list[tuple[str, str]], before: list[str], after: list[str]) -> None:
    """Check that nothing ran twice, that what is told as done was done, and that only the unknown may be missing."""
    assert len(after) == len(set(after)), "something ran twice"
    assert set(before) <= set(after)
    for _, text in told:
        if text.startswith("posted"):
            assert f"post {text.split()[1]}" in after


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("scene", EFFECTS)
def test_every_prefix_of_the_journal_can_be_resumed(scene: str, wire: str):
    async def at(store: Snapshots, snapshot: Snapshot, last: bool) -> str:
        journals, before = snapshot
        effects = Counted(before)
        cast = Cast(scene, wire, await store.restore(journals), effects)
        if last:
            with pytest.raises(suture.ResumeError):
                await cast.agent.resume("k")
            return "ended"
        done = await answered(cast, await cast.agent.resume("k"))
        assert (done.outcome, done.output) == (Outcome.FINISHED, "done")
        told = results(done.messages)
        calls = [call[0] for calls in SCRIPTS[scene] for call in calls]
        assert [call for call, _ in told] == calls
        check_truth(told, before, effects.all())
        unknown = [text for text in (text for _, text in told) if "has no recorded result" in text]
        inner_unknown = [
            text
            for _, text in (results(cast.inner_model.requests[-1].messages) if cast.inner_model.requests else [])
            if "has no recorded result" in text
        ]
        # What is not known to have run is not made up: everything else has happened.
        assert len(effects.all()) >= len(EFFECTS[scene]) - len(unknown) - len(inner_unknown)
        assert acceptable(done.messages, wire)
        for request in [*cast.model.requests, *cast.inner_model.requests]:
            assert acceptable(request.messages, wire)
        return "unknown" if unknown or inner_unknown else "known"

    async def sweep():
        store = await recorded(scene, wire)
        number = len(store.taken)
        seen = [await at(store, snapshot, place == number - 1) for place, snapshot in enumerate(store.taken)]
        assert number > 5
        # The sweep has met both: calls whose end is on record, and calls whose end is not.
        assert {"unknown", "known", "ended"} <= set(seen)

    play(sweep())


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("scene", EFFECTS)
def test_every_prefix_of_the_journal_takes_the_next_question(scene: str, wire: str):
    async def at(store: Snapshots, snapshot: Snapshot) -> None:
        journals, before = snapshot
        effects = Counted(before)
        cast = Cast(scene, wire, await store.restore(journals), effects)
        done = await cast.agent.run("next", checkpoint_id="k")
        assert (done.outcome, done.output) == (Outcome.FINISHED, "answered")
        # A new question runs nothing of the old one.
        assert effects.all() == before
        told = results(done.messages)
        check_truth(told, before, effects.all())
        for call, text in told:
            names = {name for calls in SCRIPTS[scene] for id, name, _ in calls if id == call}  # noqa: A001
            causes = {cause.format(name, call) for name in names for cause in (UNKNOWN, CANCELED)}
            assert text.startswith(("posted", "asked", "done")) or text in causes
        (request,) = cast.model.requests
        assert acceptable(request.messages, wire)
        assert roles(request.messages)[-1] == "user"
        assert acceptable(done.messages, wire)

    async def sweep():
        store = await recorded(scene, wire)
        for snapshot in store.taken:
            await at(store, snapshot)

    play(sweep())


def test_a_crash_within_a_crash_is_survived_at_every_point():
    """Behind every append of a resumed run, too."""

    async def sweep():
        store = await recorded("long", "message")
        points = 0
        for journals, before in store.taken[:-1]:
            effects = Counted(before)
            second = Snapshots(effects)
            for run, journal in journals.items():
                await second.append(run, 0, journal)
            second.taken.clear()
            first = Cast("long", "message", second, effects)
            await first.agent.resume("k")
            for again, effects_then in second.taken[:-1]:
                left = Counted(effects_then)
                cast = Cast("long", "message", await second.restore(again), left)
                done = await cast.agent.resume("k")
                assert done.output == "done"
                check_truth(results(done.messages), effects_then, left.all())
                assert acceptable(done.messages)
                points += 1
        assert points > 20

    play(sweep())


def test_the_check_for_truth_bites():
    check_truth([("c1", "posted 1")], ["post 1"], ["post 1"])
    for told, before, after in [
        ([("c1", "posted 1")], [], []),
        ([], ["post 1"], ["post 1", "post 1"]),
        ([], ["post 1"], []),
    ]:
        with pytest.raises(AssertionError):
            check_truth(told, before, after)
