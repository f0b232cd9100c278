"""Item 16: the bytes of a workflow's history on a real Temporal server, ours and pydantic-ai's."""

from contextlib import ExitStack
from pathlib import Path

from _measure import Goal, Row, Section, Settings, say
from _program import Failed, Program, peer_python

__all__ = ["measure_temporal"]

_PROGRAM = Path(__file__).parent / "temporal_runs.py"
_TITLE = "16. A workflow's history on Temporal: does it grow with what is said?"
_TURN, _EXECUTION = Goal(1_500, unit=" B"), Goal(1_000_000, unit=" B")


def measure_temporal(settings: Settings) -> list[Section]:
    """Run our agent and the peer's on one server, where both are installed."""
    python = peer_python("temporal")
    if python is None:
        return [Section(_TITLE, [Row(what="pydantic-ai: not installed")])]
    (calls, size), (peer_calls, peer_size) = settings.flows
    with ExitStack() as stack:
        try:
            program = Program("temporal", python, _PROGRAM, stack)
            say(f"Temporal: {calls} calls of {size:,} bytes")
            ours = program.ask(who="ours", calls=calls, size=size)
            say(f"Temporal: pydantic-ai, {peer_calls} calls of {peer_size:,} bytes")
            peer = program.ask(who="peer", calls=peer_calls, size=peer_size)
        except Failed:
            return [Section(_TITLE, [Row(what="Temporal: fails")])]
    a_turn, largest = sum(ours["executions"]) / calls, max(ours["executions"])
    rows = [
        Row(what=f"ours, a turn: {a_turn:,.0f} B", messages=2 * calls, goal=str(_TURN), met=_TURN.is_met(a_turn)),
        Row(
            what=f"ours, an execution: {largest / 1e3:,.0f} kB",
            messages=2 * calls,
            goal=str(_EXECUTION),
            met=_EXECUTION.is_met(largest),
        ),
        Row(what=f"pydantic-ai: {peer['executions'][0] / 1e6:,.1f} MB", messages=2 * peer_calls),
    ]
    told = f"{ours['outcome']}; {len(ours['executions'])} executions, {ours['deltas']:,} deltas read live"
    theirs = f"{peer['events']:,} events; {peer['outcome'][:60]}"
    notes = (
        f"Ours: {calls:,} calls of {size:,} bytes, {told}.",
        f"{program.version}: {peer_calls} calls of {peer_size:,} bytes, {theirs}.",
    )
    return [Section(_TITLE, rows, notes)]
