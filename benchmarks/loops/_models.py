"""Items 17 and 18: an agent's step through each provider's SDK, with a server of our own behind it."""

import sys
from contextlib import ExitStack
from pathlib import Path

from _measure import Goal, Row, Section, Settings, Timings, say
from _program import Failed, Program, peer_python

from loops._contest import WINDOW
from loops._contestants import OURS, Contestant, Sample

__all__ = ["measure_models"]

_HERE = Path(__file__).parent
_SHARE = "own share"
_PROGRAMS = {
    OURS: ("sdks", "models_ours.py"),
    "SDK by hand": ("sdks", "models_hand_written.py"),
    "pydantic-ai": ("pydantic-ai", "models_pydantic_ai.py"),
}
"""Each one's environment and program."""
_WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
_FLAT = Goal(1.5)
_NO_GOAL = ("gemini", "bedrock")
"""Their SDKs take no ready body, and do work of their own on every message."""
_NOTES = (
    "CPU of the client's process for one step: a request with the whole history, a streamed reply with one call, the",
    "tool's run. The server is another process. `ours`: ChatModelAgent as it comes. `SDK by hand`: a plain loop on the",
    "SDK's usual method, with dicts. It and pydantic-ai fill in the steps between the first and the last unasked.",
)
_SHARE_NOTES = (
    "From the tool's return to the call of the SDK: the loop, repair, and the request as the SDK takes it.",
)


def measure_models(settings: Settings) -> list[Section]:
    """Measure each provider's model, in turn with the others' on the same SDK."""
    with ExitStack() as stack:
        url = Program("server", sys.executable, _HERE / "server.py", stack).ask()["url"]
        running: dict[str, Contestant] = {}
        notes: list[str] = [*_NOTES]
        for name, (environment, program) in _PROGRAMS.items():
            say(f"starting {name}")
            python = peer_python(environment)
            if python is None:
                notes.append(f"{name}: not installed")
                continue
            try:
                running[name] = Contestant(name, python, _HERE / program, stack, url)
            except Failed:  # what is installed is the newest release, which may not be what was written for
                notes.append(f"{name}: fails; its own words are on standard error")
        notes.append(", ".join(f"{name} {one.version}" for name, one in running.items()) + ".")
        rows = [_contest(wire, running, settings) for wire in _WIRES]
    title = (
        f"17. An agent's step through a provider's SDK: its last {WINDOW} of {settings.real:,} over its first {WINDOW}"
    )
    share_title = f"18. Our own share of that step, before the SDK is called: the last {WINDOW} over the first {WINDOW}"
    return [
        Section(title, [row for steps, _ in rows for row in steps], tuple(notes)),
        Section(share_title, [row for _, shares in rows for row in shares], _SHARE_NOTES),
    ]


def _contest(wire: str, running: dict[str, Contestant], settings: Settings) -> tuple[list[Row], list[Row]]:
    """Return the rows of a provider: of whole steps, and of our share in them."""
    entries = [(name, wire) for name in running]
    if OURS in running:
        entries.append((OURS, f"{wire}, {_SHARE}"))
    samples: dict[tuple[str, str], list[Sample]] = {entry: [] for entry in entries}
    for count in range(min(settings.runs, 3)):
        for place in range(len(entries)):
            name, variant = entry = entries[(count + place) % len(entries)]
            say(f"models: {settings.real:,} steps, {name}, {variant}")
            samples[entry].append(running[name].run(variant, settings.real))
    steps: list[Row] = []
    shares: list[Row] = []
    for (name, variant), taken in samples.items():
        ends = Timings({"last": [sample.last for sample in taken], "first": [sample.first for sample in taken]})
        shared = variant != wire
        goal = _FLAT if name == OURS and not shared and wire not in _NO_GOAL else None
        row = ends.row(
            wire if shared else f"{wire}, {name}", "last", "first", messages=2 * settings.real + 2, goal=goal
        )
        (shares if shared else steps).append(row)
    return steps, shares
