"""The reading half of a journal: from records back to a run that can go on."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import msgspec

from suture.errors import ResumeError
from suture.kernel._batch import answers, cut_short
from suture.kernel._interrupt import check_answer
from suture.kernel._machine import Phase, Position
from suture.kernel._records import (
    Answered,
    Began,
    Ended,
    Entered,
    Infos,
    Paused,
    Record,
    Replied,
    Resumed,
    Settled,
    Spent,
    Spliced,
    Started,
    Stopped,
    ValueDropped,
    ValueKept,
    Waited,
)
from suture.kernel._scope import Batch, Scope
from suture.kernel._turn import add_usage
from suture.kernel._typed import decode_value
from suture.language import resolve_language
from suture.messages import FrozenMap, History, TokenUsage, ToolInfo, ToolResult
from suture.pairing import Cause

__all__ = ["Restored", "check_answers", "close_batch", "reopen_calls", "replay"]


class Restored(NamedTuple):
    """Where a stored run stands: its position, how it ended last, and what it waits for."""

    position: Position
    outcome: str = ""
    """Empty if it never ended: the process died."""
    expects: Mapping[str, str] = FrozenMap()
    """The interrupts it waits for, by id, and the kinds of answers they take."""
    began: Began | None = None
    runs: int = 1
    """How many runs this conversation has had."""
    entered: bool = True
    """Whether it had its input: all `before_agent` hooks were done."""


class _Replay:
    """Applies records to a scope, one after another."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.messages: list[Any] = []
        self.position = Position()
        self.paused: Paused | None = None
        self.began: Began | None = None
        self.entered = False
        self.runs = 0

    def apply(self, record: Record) -> None:
        scope = self.scope
        if isinstance(record, Spliced):
            self.messages[record.start : record.stop] = [scope.wire.load(item) for item in record.messages]
        elif isinstance(record, Replied):
            self._reply(record)
        elif isinstance(record, Started):
            scope.batch.started.update(record.calls)
            scope.tool_calls += len(record.calls)
            self.position = self.position._replace(phase=Phase.TOOLS)
        elif isinstance(record, Ended):
            scope.batch.ended[record.call] = msgspec.convert(record.result, ToolResult)
        elif isinstance(record, Waited):
            scope.batch.started.discard(record.call)
            scope.tool_calls -= 1
        elif isinstance(record, Stopped):
            scope.batch.causes[record.call] = Cause(record.cause)
        elif isinstance(record, Answered):
            self._answer(record)
        elif isinstance(record, ValueKept):
            values = scope.values if record.kind == "value" else scope.session
            values[record.key] = decode_value(record.value)
        elif isinstance(record, ValueDropped):
            scope.values.pop(record.key, None)
        else:
            self._move(record)

    def _move(self, record: Began | Entered | Spent | Settled | Infos | Paused | Resumed) -> None:
        scope = self.scope
        if isinstance(record, Began):
            self._begin(record)
        elif isinstance(record, Entered):
            self.entered = True
        elif isinstance(record, Spent):
            scope.usage = add_usage(scope.usage, msgspec.convert(record.usage, TokenUsage))
        elif isinstance(record, Settled):
            calls = bool(self.messages) and bool(scope.wire.calls(self.messages[-1]))
            self.position = self.position.routed(calls=calls)
        elif isinstance(record, Infos):
            scope.tool_infos = msgspec.convert(record.tool_infos, tuple[ToolInfo, ...])
            scope.deferred_tool_infos = msgspec.convert(record.deferred, tuple[ToolInfo, ...])
            scope.edited_infos = True
        elif isinstance(record, Paused):
            self.paused = record
            scope.partial = None if record.partial is None else scope.wire.load(record.partial)
            scope.states.update({address: decode_value(state) for address, state in record.states.items()})
        else:
            self.paused, scope.partial = None, None
            scope.answers.update({address: decode_value(data) for address, data in record.answers.items()})

    def _begin(self, record: Began) -> None:
        scope = self.scope
        self.runs += 1
        scope.language = resolve_language(record.language)
        if scope.outer is None:
            scope.address = record.agent
        scope.number(self.runs)
        self.began, self.paused, self.position, self.entered = record, None, Position(), False
        scope.partial = None
        scope.batch, scope.turn, scope.usage, scope.tool_calls = Batch(), 0, TokenUsage(), 0
        scope.edited_infos = False
        scope.values.clear()
        scope.answers.clear()
        scope.states.clear()

    def _reply(self, record: Replied) -> None:
        scope = self.scope
        scope.turn = record.turn
        scope.batch = Batch()
        if record.usage:
            scope.usage = add_usage(scope.usage, msgspec.convert(record.usage, TokenUsage))
        scope.ids[id(self.messages[-1])] = (self.messages[-1], record.message_id)
        self.position = self.position.replied()

    def _answer(self, record: Answered) -> None:
        scope = self.scope
        calls = scope.wire.calls(self.messages[-1])
        self.messages.extend(answers(scope, calls, Cause.UNKNOWN))
        scope.batch = Batch()
        self.position = self.position.answered(ends=record.directly is not None)


def replay(scope: Scope, records: list[Record]) -> Restored:
    """Put what a journal says into `scope`; return where the run stands."""
    work = _Replay(scope)
    for record in records:
        work.apply(record)
    scope.history = History(work.messages)
    paused = work.paused
    return Restored(
        work.position,
        paused.outcome if paused is not None else "",
        dict(paused.expects) if paused is not None else {},
        work.began,
        work.runs,
        work.entered,
    )


def check_answers(run: str, restored: Restored, given: dict[str, Any]) -> None:
    """Raise `ResumeError` where the run cannot be resumed with these answers. Nothing has changed then."""
    if restored.outcome == "finished":
        raise ResumeError(
            f"checkpoint {run!r} has finished; to go on with the conversation, run the agent with this checkpoint_id"
        )
    for address, data in given.items():
        if address not in restored.expects:
            waits = ", ".join(restored.expects) or "nothing"
            raise ResumeError(f"checkpoint {run!r} does not wait for {address!r}; it waits for: {waits}")
        check_answer(address, restored.expects[address], data)


def reopen_calls(scope: Scope) -> None:
    """Decide about calls that started and did not end: one that may run twice runs again, of others nobody knows."""
    calls = scope.wire.calls(scope.history[-1]) if len(scope.history) else ()
    for index, call in enumerate(calls):
        tool = scope.tools.get(call.name)
        if tool is not None and tool.idempotent:
            scope.batch.causes.pop(index, None)
        elif index in scope.batch.started and index not in scope.batch.ended:
            scope.batch.causes.setdefault(index, Cause.UNKNOWN)


def close_batch(scope: Scope, position: Position, *, cancelled: bool) -> None:
    """Answer the open calls of a run that goes on with something new, each by its cause."""
    if position.phase in {Phase.AFTER, Phase.TOOLS} and len(scope.history):
        calls = scope.wire.calls(scope.history[-1])
        for index in scope.batch.started - scope.batch.ended.keys():
            scope.batch.causes.setdefault(index, Cause.UNKNOWN)
        scope.history = scope.history.extend(answers(scope, calls, Cause.INTERRUPTED))
    if scope.partial is not None:
        scope.history = scope.history.extend(cut_short(scope, scope.partial, cancelled=cancelled))
        scope.partial = None
    scope.batch = Batch()
