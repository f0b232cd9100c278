"""What there is to see of a history, and of a run in a store, as plain data for the page."""

from collections.abc import AsyncIterator, Sequence
from typing import Any

import msgspec

from suture.agent import ChatModelAgent
from suture.errors import SutureError
from suture.kernel.journal import (
    Answered,
    Began,
    Changed,
    Noted,
    Put,
    Record,
    Spliced,
    apply_record,
    decode_records,
    find_difference,
)
from suture.kernel.run_state import RunState
from suture.kernel.state import Execution
from suture.kernel.tool_call import answer_reply
from suture.messages import TokenUsage, ToolResult
from suture.repair import repair
from suture.stores import Store
from suture.tokens import CharacterCounter
from suture.wires import Wire, get_wire
from suture.wires.parts import Telling

LONGEST = 100_000
"""How many characters of one text are shown."""


class Call(msgspec.Struct):
    """A call of a turn on the time line."""

    name: str
    id: str
    start: int = 0
    end: int = 0
    outcome: str = ""


class Turn(msgspec.Struct):
    """A turn on the time line: the model's reply, then the calls it made. Times are milliseconds since 1970."""

    number: int
    start: int
    replied: int
    message: int
    calls: list[Call]
    usage: dict[str, int] = {}
    retries: list[str] = []


class Rewrite(msgspec.Struct):
    """A change of what was already there: by a repair, a reduction, a compaction, or somebody's hook."""

    by: str
    time: int
    start: int
    before: list[dict[str, Any]]
    after: list[dict[str, Any]]


class Run(msgspec.Struct):
    """All that the page shows of one history or run."""

    name: str
    wire: str
    profile: str = ""
    agent: str = ""
    outcome: str = ""
    error: str = ""
    messages: list[dict[str, Any]] = []
    findings: list[dict[str, Any]] = []
    turns: list[Turn] = []
    rewrites: list[Rewrite] = []
    interrupts: list[dict[str, Any]] = []
    usage: dict[str, int] = {}
    records: int = 0


def show_history(
    messages: Sequence[Any], *, name: str = "history", wire: str | None = None, profile: Any = None
) -> Run:
    """Return what there is to see of a history: its messages, what a provider would refuse, and the repair.

    >>> show_history([{"role": "user", "content": "hi"}]).messages[0]["text"]
    'hi'
    """
    fixed = repair(messages, wire=wire, profile=profile)
    speaker = get_wire(fixed.report.wire)
    shown = Run(name, speaker.name, fixed.report.profile, messages=_messages(speaker, messages))
    shown.findings = list(fixed.report.to_dict()["findings"])
    if fixed.changed:
        start, stop, after = find_difference(messages, fixed.messages)
        before = _messages(speaker, messages[start:stop])
        rewrite = Rewrite("suture.repair", 0, start, before, _messages(speaker, after))
        shown.rewrites.append(rewrite)
    return shown


async def show_run(store: Store, name: str) -> Run:
    """Return what there is to see of a stored run: its turns with their times, and all that was rewritten."""
    records = await store.load(name)
    if not records:
        raise SutureError(f"there is no run {name!r} in this store")
    return _Reader(name, records).read()


_COUNTER = CharacterCounter()


def _messages(wire: Wire, messages: Sequence[Any]) -> list[dict[str, Any]]:
    return [_message(wire, message) for message in messages]


def _message(wire: Wire, message: Any) -> dict[str, Any]:
    """Return a message as the page shows it."""
    view = wire.view(message)
    telling = Telling(view.role)
    wire.tell(message, telling)
    words = telling.words()
    shown: dict[str, Any] = {"role": view.role, "text": _text("\n".join(words.texts[1:]))}
    if words.media:
        shown["media"] = words.media
    if view.calls:
        shown["calls"] = [
            {"id": call.id or "", "name": call.name, "arguments": _text(_plain(call.arguments))} for call in view.calls
        ]
    if view.results:
        told = [(result, *wire.result_text(result)) for result in view.results]
        shown["results"] = [
            {"id": result.id or "", "name": result.name or "", "text": _text(text)} for result, text, _ in told
        ]
    shown["tokens"] = _COUNTER.count(message)
    return shown


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def _text(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}… ({len(text):,} characters)"


class _Viewed:
    """Stands for the model of a run that is only looked at."""

    def __init__(self, wire: str) -> None:
        self.wire, self.profile = wire, "pairing"

    def stream(self, request: Any) -> AsyncIterator[Any]:
        raise NotImplementedError(request)


class _Reader:
    """Reads the records of a run in order, and notes what each of them did."""

    def __init__(self, name: str, records: Sequence[bytes]) -> None:
        self.records = records
        began = decode_records(records[0], RunState().version)[0]
        wire = began.fields["wire"] if isinstance(began, Began) else ""
        agent: ChatModelAgent[Any] = ChatModelAgent(model=_Viewed(wire))
        self.run = Execution(agent.spec, RunState())
        self.run.checkpoint_id = name
        self.wire = get_wire(wire)
        self.shown = Run(name, wire, records=len(records))
        self.messages: list[Any] = []
        self.turn: Turn | None = None
        self.time = 0
        self.retries: list[str] = []
        self.by = ""

    def read(self) -> Run:
        for data in self.records:
            changes = decode_records(data, self.run.state.version)
            written = next((change.time for change in reversed(changes) if isinstance(change, Noted)), self.time)
            for change in changes:
                self._note(change, written)
                apply_record(self.run, change, self.messages, answer_reply)
                self._follow(change, written)
            self.time = written
        state, shown = self.run.state, self.shown
        shown.agent, shown.outcome, shown.error = state.agent, state.outcome, state.error
        shown.messages, shown.usage = _messages(self.wire, self.messages), _usage(state.usage)
        known = repair(self.messages, wire=self.wire.name, profile="pairing", tail="keep").report
        shown.profile, shown.findings = known.profile, list(known.to_dict()["findings"])
        shown.interrupts = [
            {"id": key, "call_id": call_id, "info": _plain(state.infos[key][0])}
            for key, call_id in state.waiting.items()
        ]
        return shown

    def _note(self, change: Record, time: int) -> None:
        """Note what a change does that cannot be seen afterwards."""
        if isinstance(change, Noted) and change.what == "retry":
            self.retries.append(change.text)
        elif isinstance(change, Noted) and change.what:
            self.by = change.text
        elif isinstance(change, Spliced) and change.start < len(self.messages):
            old = self.messages[change.start : change.stop]
            new = [self.run.wire.load(item) for item in change.messages]
            before, after = _messages(self.wire, old), _messages(self.wire, new)
            if before and before[-1] in after:  # what follows came later, in the same record
                after = after[: len(after) - after[::-1].index(before[-1])]
            self.shown.rewrites.append(Rewrite(self.by, time, change.start, before, after))
        elif isinstance(change, Answered) and self.turn is not None:
            for index, result in self.run.state.ended.items():
                self._end(index, "error" if result.is_error else "finished", time)

    def _follow(self, change: Record, time: int) -> None:
        """Note what a change has brought."""
        if isinstance(change, Changed) and change.fields.get("turn"):
            self._begin_turn(time)
        elif isinstance(change, Put) and change.field == "started" and self.turn is not None:
            for index in change.entries:
                self.turn.calls[int(index)].start = time
        elif isinstance(change, Put) and change.field == "ended":
            for index in change.entries:
                result: ToolResult = self.run.state.ended[int(index)]
                self._end(int(index), "error" if result.is_error else "finished", time)
        elif isinstance(change, Put) and change.field == "causes":
            for index, cause in change.entries.items():
                self._end(int(index), str(cause), time)

    def _begin_turn(self, time: int) -> None:
        calls = self.run.wire.calls(self.messages[-1]) if self.messages else ()
        shown = [Call(call.name, call.id or "") for call in calls]
        number = len(self.shown.turns) + 1
        self.turn = Turn(number, self.time or time, time, len(self.messages) - 1, shown, retries=self.retries)
        self.turn.usage = _usage(self.run.state.last_usage)
        self.retries = []
        self.shown.turns.append(self.turn)

    def _end(self, index: int, outcome: str, time: int) -> None:
        if self.turn is not None and index < len(self.turn.calls) and not self.turn.calls[index].end:
            call = self.turn.calls[index]
            call.end, call.outcome = time, outcome


def _usage(usage: TokenUsage | None) -> dict[str, int]:
    if usage is None:
        return {}
    return {key: value for key, value in msgspec.to_builtins(usage).items() if isinstance(value, int) and value}
