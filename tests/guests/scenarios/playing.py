"""The scenarios, step by step, in no framework's words: each ends in a message that the provider takes or refuses."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tests.guests.scenarios.talking import Setting, Talk, end
from tests.guests.strict_provider import Script
from tests.guests.strict_replies import Reply
from tests.histories import Step, flat

PAY = ("call_1", "pay", {"eur": 5})
HANG = ("call_2", "hang", {})
FAIL = ("call_2", "fail", {})


class Scene(NamedTuple):
    """Who talks, in which surroundings, with which provider."""

    talk: Talk
    setting: Setting
    script: Script


async def interrupted(scene: Scene) -> Any:
    """The run is cancelled while a tool is at work."""
    await stop(scene, asyncio.create_task(scene.talk.say("Pay.")))
    return await scene.talk.say("And?")


async def stop(scene: Scene, running: asyncio.Task[Any]) -> None:
    """Cancel what runs when its last tool hangs."""
    hanging = asyncio.create_task(scene.setting.shop.hanging.wait())
    await asyncio.wait([running, hanging], return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        hanging.cancel()
        await running
    await scene.talk.settle()
    await end(running)


async def left_in_the_call(scene: Scene) -> Any:
    """Whoever reads the stream leaves while a tool is at work."""

    async def read() -> None:
        async with aclosing(scene.talk.events("Pay.")) as events:
            async for _ in events:
                pass

    await stop(scene, asyncio.create_task(read()))
    return await scene.talk.say("And?")


async def left_before_the_call(scene: Scene) -> Any:
    """Whoever reads the stream leaves at the first words, before the provider has said that it calls a tool."""
    scene.script.goes_on.clear()
    try:
        async with aclosing(scene.talk.events("Pay.")) as events:
            async for event in events:
                if "Let m" in str(event):
                    scene.script.goes_on.set()
                    break
    finally:
        scene.script.goes_on.set()
    return await scene.talk.say("And?")


async def one_raises(scene: Scene) -> Any:
    with suppress(Exception):  # each framework raises its own
        await scene.talk.say("Pay.")
    return await scene.talk.say("And?")


async def approved(scene: Scene) -> Any:
    await scene.talk.say("Pay.")
    return await scene.talk.decide(approve=True)


async def refused(scene: Scene) -> Any:
    await scene.talk.say("Pay.")
    return await scene.talk.decide(approve=False)


async def talked(scene: Scene) -> Any:
    await scene.talk.say("Pay.")
    return await scene.talk.say("And?")


async def talked_and_approved(scene: Scene) -> Any:
    await scene.talk.say("Pay.")
    await scene.talk.say("And the tide?")
    await scene.talk.decide(approve=True)
    return await scene.talk.say("And?")


IDS = ("functions.pay:0", "call_" + "x" * 45, "call_" + "y" * 80)
FOREIGN: list[Step] = [("user", "Pay.")]
for each in IDS:
    FOREIGN += [("turn", [(each, "pay", '{"eur": 5}')]), ("result", each, "pay", "paid 5")]
FOREIGN.append(("say", "Paid."))


async def of_another_provider(scene: Scene) -> Any:
    return await scene.talk.say("And?", FOREIGN)


async def said(scene: Scene) -> Any:
    return await scene.talk.say("Pay.")


@dataclass(frozen=True)
class Scenario:
    """What is done, what the model says meanwhile, and which calls it must be told of at the end."""

    play: Callable[[Scene], Awaitable[Any]]
    replies: Sequence[Reply]
    calls: tuple[str, ...] = ("pay",)
    setting: dict[str, Any] = field(default_factory=dict)


SCENARIOS = {
    "interrupted in a call": Scenario(interrupted, [[PAY, HANG]], ("pay", "hang")),
    "approved": Scenario(approved, [[PAY]], setting={"asks": True}),
    "refused by a person": Scenario(refused, [[PAY]], setting={"asks": True}),
    "talked before it is approved": Scenario(talked, [[PAY]], setting={"asks": True}),
    "approved after talking": Scenario(talked_and_approved, [[PAY]], setting={"asks": True}),
    "one of two tools raises": Scenario(one_raises, [[PAY, FAIL]], ("pay", "fail")),
    "stream left before the call": Scenario(left_before_the_call, [["Let me see.", PAY]], ()),
    "stream left in the call": Scenario(left_in_the_call, [[PAY, HANG]], ("pay", "hang")),
    "ids of other providers": Scenario(of_another_provider, [], ("pay", "pay", "pay")),
    "something else cuts": Scenario(said, [[PAY]], (), setting={"cuts": True}),
}


def play(kind: Callable[[Setting], Talk], scenario: Scenario, script: Script, setting: Setting) -> str:
    """Play a scenario, and return what came of it, in a few words."""

    async def main() -> Any:
        talk = kind(setting)
        try:
            return await scenario.play(Scene(talk, setting, script))
        finally:
            await talk.close()

    try:
        answer = asyncio.run(main())
    except Exception as error:
        if script.refused:
            return "refused"
        if type(error).__name__ in {"UserError", "TypeError", "ValueError"}:  # so some say that they will not go on
            return f"raises {type(error).__name__}"
        raise
    assert answer == "Done."
    assert not script.refused
    return read(script, setting, scenario.calls)


def read(script: Script, setting: Setting, calls: Sequence[str]) -> str:
    """Return what the model was told in the end: all that was there, or what is missing."""
    atoms = flat(script.histories[-1])
    told = [atom[2] for atom in atoms if atom[0] == "call"]
    if any(told.count(name) < calls.count(name) for name in calls):
        return "call lost"
    if setting.shop.paid and f"paid {setting.shop.paid[0]}" not in str(script.histories[-1]):
        return "unknown" if "may or may not have run" in str(atoms) else "result lost"
    return "right"
