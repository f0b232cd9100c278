"""Item 11: what the look at a history costs before each model turn, where there is nothing to do."""

import asyncio
import gc
import json
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

from _histories import history
from _measure import Goal, Row, Section, Settings, Timings, say
from _program import Failed, Program

from reduction._langchain import langchain
from suture import ChatModelAgent, Compaction, Message, ToolCall, tool
from suture.middleware import ToolReduction
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel

__all__ = ["measure_check"]

_STEPS = 40
_NEVER = 10**12
_FLAT = Goal(1.5)
_FASTER = Goal(50, at_least=True)
_QUICK = Goal(0.05, unit=" ms")
_WIRES = ("message", "openai-chat")
_WHO: dict[str, Callable[[], Any]] = {
    "ToolReduction": lambda: ToolReduction(MemoryBackend(), max_tokens_for_clear=_NEVER),
    "Compaction": lambda: Compaction(_NEVER),
}


class _Look(NamedTuple):
    """CPU seconds of a look: of the first, which counts all messages, and of one after a round was added."""

    first: float
    later: float


def measure_check(settings: Settings) -> Section:
    """Measure it at three lengths, in turn, beside LangChain's."""
    with langchain() as peer:
        looks, theirs, said = _measure(settings, peer)
    short, middle, long = settings.looked
    rows: list[Row] = []
    for wire in _WIRES:
        for who in _WHO:
            times = Timings({f"{size:,}": [look.later for look in looks[who, wire, size]] for size in settings.looked})
            for size in (middle, long):
                goal = _FLAT if size == long else None
                what = f"{who}, {wire}, after a round"
                rows.append(times.row(what, f"{size:,}", f"{short:,}", messages=size, goal=goal))
        both = Timings({who: [look.later for look in looks[who, wire, long]] for who in _WHO})
        row = both.row(f"Compaction, {wire}, after a round", "Compaction", "ToolReduction", messages=long)
        rows.append(replace(row, goal=str(_QUICK), met=_QUICK.is_met(row.ours or 0)))
    if theirs:
        for wire in _WIRES:
            for size in settings.looked:
                mine = [look.later for look in looks["ToolReduction", wire, size]]
                times = Timings({"ours": mine, "langchain": theirs[size]})
                goal = _FASTER if size == middle else None
                what = f"{wire}, after a round"
                rows.append(times.row(what, "ours", "langchain", messages=size, goal=goal, speed=True))
        for wire in _WIRES:
            mine = [look.first for look in looks["ToolReduction", wire, long]]
            times = Timings({"ours": mine, "langchain": theirs[long]})
            rows.append(times.row(f"{wire}, the first look", "ours", "langchain", messages=long, speed=True))
    notes = (
        *said,
        f"The hook before a turn in a run of {_STEPS} steps; a round is a call and its result. The first look of a",
        "run counts all that it was given, later ones what is new. Against its own time at fewer messages: a ratio of",
        "costs; against langchain: its time over ours. langchain copies and counts all messages each time.",
    )
    return Section("11. ToolReduction and Compaction before a model turn, with nothing to do", rows, notes)


def _measure(
    settings: Settings, peer: Program | str
) -> tuple[dict[tuple[str, str, int], list[_Look]], dict[int, list[float]], list[str]]:
    looks: dict[tuple[str, str, int], list[_Look]] = {each: [] for each in product(_WHO, _WIRES, settings.looked)}
    theirs: dict[int, list[float]] = {size: [] for size in settings.looked}
    said = [peer] if isinstance(peer, str) else [f"langchain {peer.version}."]
    beginnings = {(wire, size): history(wire, size) for wire in _WIRES for size in settings.looked}
    for count in range(settings.looks):
        say(f"the check before a turn: round {count + 1} of {settings.looks}")
        sizes = [settings.looked[(count + place) % len(settings.looked)] for place in range(len(settings.looked))]
        for size in sizes:
            for who, wire in product(_WHO, _WIRES):
                looks[who, wire, size].append(asyncio.run(_look(_WHO[who](), wire, beginnings[wire, size])))
            if not isinstance(peer, str):
                try:
                    answer = peer.ask(do="check", messages=beginnings["openai-chat", size])
                except Failed as failure:
                    said, peer, theirs = [str(failure)], str(failure), {}
                else:
                    theirs[size].append(answer["seconds"])
    return looks, theirs if not isinstance(peer, str) else {}, said


@tool
async def step(n: int) -> str:
    """Make one step."""
    return f"step {n} is done"


def _replies(wire: str) -> list[Any]:
    if wire == "message":
        calls = [ToolCall(id=f"step_{n}", name="step", arguments=json.dumps({"n": n})) for n in range(_STEPS)]
        return [*(Message(role="assistant", tool_calls=(call,)) for call in calls), "done"]
    functions = [{"name": "step", "arguments": json.dumps({"n": n})} for n in range(_STEPS)]
    made = [[{"id": f"step_{n}", "type": "function", "function": one}] for n, one in enumerate(functions)]
    return [*({"role": "assistant", "content": None, "tool_calls": calls} for calls in made), "done"]


async def _look(middleware: Any, wire: str, beginning: list[Any]) -> _Look:
    """Run an agent, and time the hook before each of its turns."""
    spent = _watch(middleware)
    model = ScriptedModel(_replies(wire), wire=wire)
    agent: Any = ChatModelAgent(
        name="bench", model=model, tools=[step], middlewares=[middleware], max_iterations=_STEPS + 1
    )
    question = Message.user("go") if wire == "message" else {"role": "user", "content": "go"}
    given = [*beginning, question]
    gc.collect()
    gc.freeze()
    gc.disable()
    try:
        result = await agent.run(given)
    finally:
        gc.enable()
        gc.unfreeze()
    if result.output != "done" or len(spent) != _STEPS + 1:
        raise SystemExit(f"asked for {_STEPS} steps, {len(spent) - 1} were made; the answer is {result.output!r}")
    return _Look(spent[0], sum(spent[1:]) / _STEPS)


def _watch(middleware: Any) -> list[float]:
    """Return where the CPU seconds of each call of its hook are written to."""
    spent: list[float] = []
    hook: Any = middleware.before_model_rewrite_state
    clock = time.process_time

    def timed(state: Any, model_context: Any) -> None:
        start = clock()
        made = hook(state, model_context)
        if asyncio.iscoroutine(made):
            try:
                made.send(None)  # with nothing to do, it waits for nothing
            except StopIteration as end:
                made = end.value
        spent.append(clock() - start)
        if made is not None:
            raise SystemExit(f"{type(middleware).__name__} found something to do")

    object.__setattr__(middleware, "before_model_rewrite_state", timed)
    return spent
