"""The reading half of a journal: from records back to a run that can go on."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import msgspec

from suture.errors import ResumeError
from suture.kernel._batch import answers, cut_short
from suture.kernel._interrupt import check_answer
from suture.kernel._machine import Phase, Position
from suture.kernel._records import (
    Answered,
    AskedAgain,
    Began,
    Ended,
    Entered,
    Gathered,
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
from suture.kernel._typed import decode_value
from suture.kernel._usage import add_usage
from suture.language import resolve_language
from suture.messages import FrozenMap, History, TokenUsage, ToolInfo, ToolResult
from suture.repair import Cause

__all__ = ["Restored", "check_answers", "close_batch", "reopen_calls", "replay"]


class Restored(NamedTuple):
    """Where a stored run stands: its position, how it ended last, and what it waits for."""

    position: Position
    outcome: str = ""
    """Empty if it never ended: the process died."""
    expects: Mapping[str, str] = FrozenMap()
    """The interrupts it waits for, by id, and the kinds of answers they take."""
    asked: Mapping[str, str] = FrozenMap()
    """The same for all interrupts that it ever waited for."""
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
        self.asked: dict[str, str] = {}

    def apply(self, record: Record) -> None:
        """Take one record over."""
        handle: Callable[[_Replay, Any], None] = _HANDLERS[type(record)]
        handle(self, record)

    def began_again(self, record: Began) -> None:
        scope = self.scope
        self.runs += 1
        scope.language = resolve_language(record.language)
        if scope.outer is None:
            scope.address = record.agent
        scope.number(self.runs)
        self.began, self.paused, self.position, self.entered = record, None, Position(), False
        self.asked = {}
        scope.forget_run()

    def was_entered(self, _: Entered) -> None:
        self.entered = True

    def spliced(self, record: Spliced) -> None:
        self.messages[record.start : record.stop] = [self.scope.wire.load(item) for item in record.messages]

    def replied(self, record: Replied) -> None:
        scope = self.scope
        scope.turn = record.turn
        scope.batch = Batch()
        scope.last_usage = None
        if record.usage:
            scope.last_usage = msgspec.convert(record.usage, TokenUsage)
            scope.usage = add_usage(scope.usage, scope.last_usage)
        scope.ids[id(self.messages[-1])] = (self.messages[-1], record.message_id)
        self.position = self.position.replied(is_last=record.is_last)

    def settled(self, _: Settled) -> None:
        self.position = self.position.settled()

    def asked_again(self, _: AskedAgain) -> None:
        self.scope.corrections += 1
        self.position = self.position.asked_again()

    def started(self, record: Started) -> None:
        self.scope.batch.started.update(record.calls)
        self.scope.tool_calls += len(record.calls)
        self.position = self.position.routed(calls=True)

    def ended(self, record: Ended) -> None:
        self.scope.batch.ended[record.call] = msgspec.convert(record.result, ToolResult)
        self.scope.refused_calls += record.refused
        self.position = self.position.routed(calls=True)

    def waited(self, record: Waited) -> None:
        if record.call in self.scope.batch.started:
            self.scope.batch.started.discard(record.call)
            self.scope.tool_calls -= 1

    def stopped(self, record: Stopped) -> None:
        self.scope.batch.causes[record.call] = Cause(record.cause)

    def answered(self, record: Answered) -> None:
        scope, reply = self.scope, self.messages[-1]
        results = answers(scope, scope.wire.calls(reply), Cause.UNKNOWN)
        if record.ends:
            scope.output_message = reply if record.directly is None else results[record.directly]
        self.messages.extend(results)
        scope.batch = Batch()
        self.position = self.position.answered(ends=record.ends)

    def gathered(self, _: Gathered) -> None:
        self.position = self.position.gathered()

    def infos(self, record: Infos) -> None:
        scope = self.scope
        scope.tool_infos = msgspec.convert(record.tool_infos, tuple[ToolInfo, ...])
        scope.deferred_tool_infos = msgspec.convert(record.deferred, tuple[ToolInfo, ...])
        scope.edited_infos = True

    def spent(self, record: Spent) -> None:
        self.scope.usage = add_usage(self.scope.usage, msgspec.convert(record.usage, TokenUsage))

    def value_kept(self, record: ValueKept) -> None:
        values = self.scope.values if record.kind == "value" else self.scope.session
        values[record.key] = decode_value(record.value)

    def value_dropped(self, record: ValueDropped) -> None:
        self.scope.values.pop(record.key, None)

    def was_paused(self, record: Paused) -> None:
        scope = self.scope
        self.paused = record
        self.asked.update(record.expects)
        scope.partial = None if record.partial is None else scope.wire.load(record.partial)
        scope.states.update({address: decode_value(state) for address, state in record.states.items()})
        if record.output is not None:
            scope.output_message = self.messages[record.output]

    def resumed(self, record: Resumed) -> None:
        scope = self.scope
        self.paused, scope.partial = None, None
        scope.resumes += 1
        scope.answers.update({address: decode_value(data) for address, data in record.answers.items()})


_HANDLERS: dict[type, Callable[[_Replay, Any], None]] = {
    Began: _Replay.began_again,
    Entered: _Replay.was_entered,
    Spliced: _Replay.spliced,
    Replied: _Replay.replied,
    Settled: _Replay.settled,
    AskedAgain: _Replay.asked_again,
    Started: _Replay.started,
    Ended: _Replay.ended,
    Waited: _Replay.waited,
    Stopped: _Replay.stopped,
    Answered: _Replay.answered,
    Gathered: _Replay.gathered,
    Infos: _Replay.infos,
    Spent: _Replay.spent,
    ValueKept: _Replay.value_kept,
    ValueDropped: _Replay.value_dropped,
    Paused: _Replay.was_paused,
    Resumed: _Replay.resumed,
}


def replay(scope: Scope, records: list[Record]) -> Restored:
    """Put what a journal says into `scope`; return where the run stands."""
    work = _Replay(scope)
    for record in records:
        work.apply(record)
    scope.history, scope.calls = History(work.messages), None
    paused = work.paused
    outcome, expects = (paused.outcome, dict(paused.expects)) if paused is not None else ("", {})
    return Restored(work.position, outcome, expects, work.asked, work.began, work.runs, work.entered)


def check_answers(run: str, restored: Restored, known: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raise `ResumeError` where the run cannot be resumed with these answers. Nothing has changed then.

    An answer that was given before may be given again: whoever gave it may not have learned what came of it.
    """
    if restored.outcome == "finished":
        raise ResumeError(
            f"checkpoint {run!r} has finished; to go on with the conversation, run the agent with this checkpoint_id"
        )
    for address, data in given.items():
        if address not in restored.asked:
            waits = ", ".join(restored.expects) or "nothing"
            raise ResumeError(f"checkpoint {run!r} does not wait for {address!r}; it waits for: {waits}")
        check_answer(address, restored.asked[address], data)
        if address not in restored.expects and address in known and known[address] != data:
            raise ResumeError(f"{address!r} was answered before, and otherwise; the first answer holds")


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
    if position.phase in {Phase.AFTER, Phase.ROUTE, Phase.TOOLS} and len(scope.history):
        calls = scope.wire.calls(scope.history[-1])
        for index in scope.batch.started - scope.batch.ended.keys():
            scope.batch.causes.setdefault(index, Cause.UNKNOWN)
        scope.history = scope.history.extend(answers(scope, calls, Cause.INTERRUPTED))
    if scope.partial is not None:
        scope.history = scope.history.extend(cut_short(scope, scope.partial, cancelled=cancelled))
        scope.partial = None
    scope.batch = Batch()
