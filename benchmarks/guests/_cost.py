"""Asking the guests in turn, and the two items of the table that come of it."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from textwrap import wrap

from _measure import Row, Section, Settings, Timings, say
from _program import Failed, guests_python
from loops._contestants import Contestant, Sample

__all__ = ["measure_guests"]

_PROGRAM = Path(__file__).parent / "steps.py"
_MEASURED = {
    "guest_langchain": ("langchain", "deepagents"),
    "guest_pydantic_ai": ("pydantic-ai",),
    "guest_openai_agents": ("openai-agents", "openai-agents, session"),
    "guest_google_adk": ("google-adk",),
    "guest_strands": ("strands",),
    "guest_agent_framework": ("agent-framework",),
    "guest_clients": ("openai, chat", "openai, responses", "anthropic"),
}
"""The programs, and the guests that each of them runs."""
_WITHOUT, _WITH = "without", "with"
_SLOW = frozenset(("openai, chat", "openai, responses"))
"""What costs so much by itself, more with each step, that the shortest run must do."""
_ON_TOP = {
    _WITH: "our patch",
    "both of ours": "our patch and reduction",
    "ContextEditingMiddleware": "context editing",
    "deepagents' patch": "deepagents' patch",
    "noop": "does nothing",
}
_LONG = "langchain"
_GOALS = {("begin", 50): 550, ("last", 50): 100, ("begin", 1_000): 3_200, ("last", 1_000): 500}
"""Microseconds that our patch may add, by the part of a run and the messages."""
_TITLE = "13. A guest's step, with Suture and without it"
_NOTES = (
    "CPU of one step: a model turn with one call, and the tool's run. After the colon: what Suture adds to each.",
    "deepagents: ours in the place of its own patch. openai, anthropic: a loop written by hand, no network.",
)
_LONG_TITLE = "14. A step of LangChain's create_agent on a long history, against the bare agent"
_LONG_NOTES = (
    "An agent that is new goes on with so many messages. None is broken, and there are never too many tokens.",
    "`first`: until the model is asked for the first time. `loop`: the cheapest step in the second half of a run.",
    "After the colon: what is added; goals are for that. Ours are PatchToolCallsMiddleware and",
    "ToolReductionMiddleware. Context editing is LangChain's ContextEditingMiddleware, which reads everything before",
    "each turn. deepagents' patch looks at everything once, when the run begins. The one that does nothing has the",
    "hooks of our patch.",
)


def measure_guests(settings: Settings) -> list[Section]:
    """Measure all guests that are installed."""
    python = guests_python()
    if python is None:
        absent = [Row(what="guests: not installed")]
        return [Section(_TITLE, absent, _NOTES), Section(_LONG_TITLE, absent, _LONG_NOTES)]
    rows: list[Row] = []
    long: list[Row] = []
    releases: list[str] = []
    for module, titles in _MEASURED.items():
        say(f"starting {module}")
        with ExitStack() as stack:
            try:
                program = Contestant(module, python, _PROGRAM, stack, module)
                rows += [row for title in titles for row in _short(program, title, settings)]
                if _LONG in titles:
                    long += [row for size in settings.visited for row in _long(program, size, settings)]
            except Failed:  # what is installed is the newest release, which may not be what was written for
                rows.append(Row(what=f"{', '.join(titles)}: fails"))
            else:
                releases.append(program.version)
    notes = (*_NOTES, *wrap(f"{', '.join(releases)}.", 110))
    return [Section(_TITLE, rows, notes), Section(_LONG_TITLE, long, _LONG_NOTES)]


def _short(program: Contestant, title: str, settings: Settings) -> list[Row]:
    rows: list[Row] = []
    for steps in settings.visits[: 1 if title in _SLOW else None]:
        samples = _contest(program, title, (_WITHOUT, _WITH), 0, steps, settings.runs)
        rows.append(_row(samples, "step", f"{title}, {steps} steps", _WITH, 2 * steps + 2))
    return rows


def _long(program: Contestant, size: int, settings: Settings) -> list[Row]:
    samples = _contest(program, _LONG, (_WITHOUT, *_ON_TOP), size, settings.stays, settings.returns, least=True)
    first = [_row(samples, "begin", f"{name}, first", kind, size) for kind, name in _ON_TOP.items()]
    later = [_row(samples, "last", f"{name}, loop", kind, size) for kind, name in _ON_TOP.items()]
    return [*first, *later]


def _contest(
    program: Contestant,
    title: str,
    kinds: Sequence[str],
    messages: int,
    steps: int,
    rounds: int,
    *,
    least: bool = False,
) -> dict[str, list[Sample]]:
    """Let an agent's kinds run in turn, and return what a step of each costs."""
    say(f"guests: {title}, {steps} steps on {messages} messages, {'; '.join(kinds)}")
    samples: dict[str, list[Sample]] = {kind: [] for kind in kinds}
    for count in range(rounds):
        for place in range(len(kinds)):
            kind = kinds[(count + place) % len(kinds)]
            samples[kind].append(program.run(f"{title}|{kind}|{messages}", steps, least=least))
    return samples


def _row(samples: dict[str, list[Sample]], part: str, what: str, kind: str, messages: int) -> Row:
    timings = Timings({each: [getattr(sample, part) for sample in taken] for each, taken in samples.items()})
    added = 1e6 * (timings.best(kind) - timings.best(_WITHOUT))
    row = timings.row(f"{what}: {added:+,.0f} µs", kind, _WITHOUT, messages=messages)
    most = _GOALS.get((part, messages)) if kind == _WITH else None
    return row if most is None else replace(row, goal=f"<= {most:,} µs", met=added <= most)
