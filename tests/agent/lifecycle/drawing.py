"""Draws a run from its events alone: its messages, their ids, and when each call began and ended."""

from collections import defaultdict
from dataclasses import dataclass, field
from typing import Any

from suture.events import (
    Event,
    MessageDelta,
    MessageFinished,
    ModelStarted,
    RetryScheduled,
    RunFinished,
    RunStarted,
    ToolDelta,
    ToolFinished,
    ToolStarted,
)
from suture.messages import TextPart
from tests.agent.lifecycle.speech import Speech


@dataclass
class Drawing:
    """What a reader of events knows of one run."""

    messages: list[Any] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=lambda: defaultdict(str))
    """What was streamed of each message that was not discarded."""
    calls: dict[tuple[int, int], list[str]] = field(default_factory=lambda: defaultdict(list))
    """What happened to each call, by turn and index."""
    pieces: dict[str, str] = field(default_factory=lambda: defaultdict(str))
    """What was streamed of each call's result, by its id."""
    output: str = ""
    outcome: str = ""
    _results: dict[int, ToolFinished] = field(default_factory=dict)

    def see(self, event: Event, speech: Speech) -> None:
        """Take one event in."""
        if isinstance(event, ModelStarted):
            self._settle(speech)
            self.texts[event.message_id] = ""
        elif isinstance(event, MessageDelta):
            self.texts[event.message_id] += event.text
        elif isinstance(event, MessageFinished):
            self.messages.append(event.message)
            self.ids.append(event.message_id)
        elif isinstance(event, RetryScheduled):
            self._discard(event.message_id)
        elif isinstance(event, ToolStarted):
            self.calls[event.turn, event.index].append("started")
        elif isinstance(event, ToolDelta):
            self.pieces[event.call_id] += "".join(p.text for p in event.result.parts if isinstance(p, TextPart))
        elif isinstance(event, ToolFinished):
            self.calls[event.turn, event.index].append("finished")
            self._results[event.index] = event
        elif isinstance(event, RunFinished):
            self._settle(speech)
            self.output, self.outcome = event.text, event.outcome

    def _settle(self, speech: Speech) -> None:
        for _, event in sorted(self._results.items()):
            is_error = event.result.is_error
            self.messages.append(speech.result(event.call_id, event.name, event.text, is_error=is_error))
            self.ids.append(event.message_id)
        self._results.clear()

    def _discard(self, message_id: str) -> None:
        self.texts.pop(message_id)
        if message_id in self.ids:
            at = self.ids.index(message_id)
            del self.ids[at], self.messages[at]


def draw(events: list[Any], speech: Speech) -> dict[tuple[str, ...], Drawing]:
    """Return a drawing of each run that has events, by its path; check that nothing is missing between them."""
    assert [event.sequence for event in events] == list(range(len(events)))
    assert isinstance(events[0], RunStarted)
    assert isinstance(events[-1], RunFinished)
    assert all(event.agent == event.run_path[-1] for event in events)
    times = [event.time for event in events]
    assert times == sorted(times)
    assert times[0] > 0
    drawings: dict[tuple[str, ...], Drawing] = defaultdict(Drawing)
    for event in events:
        drawings[event.run_path].see(event, speech)
    return drawings
