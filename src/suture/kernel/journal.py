"""The journal of a run: changes are noted as they happen, and written before the next step relies on them.

A stored record is a list of changes: fields of the `RunState`, entries of its mappings, a splice of the messages, or
the fact that the results of a turn were put into the history. Replaying the records in order restores the run.
Messages are compared with what was written last, so hooks need not say what they did. `VERSION` is the stored form's.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from os import urandom
from threading import Lock
from time import time_ns
from typing import Any, TypeAlias, get_args, get_type_hints
from weakref import WeakKeyDictionary

import msgspec
from msgspec.structs import astuple

from suture._aio import LOG
from suture.errors import ResumeError, SchemaVersionError
from suture.kernel import run_state
from suture.kernel.run_state import DELETED, MAPPINGS, VERSION, Kept, RunState, Snapshot
from suture.kernel.state import Execution
from suture.kernel.tool_call import answer_calls
from suture.kernel.values import decode_value, encode_value
from suture.messages import History, TokenUsage
from suture.repair import Cause

MIGRATIONS: dict[int, Callable[[list[Any]], list[Any]]] = {}
"""For each older version that is still read, the function that turns a record into the next version.

It gets a record as stored: a list of changes, each `[tag, …]`.
"""


class _Record(msgspec.Struct, frozen=True, array_like=True):
    """One change of a run; `apply_record` applies it when a stored run is read."""


class Began(_Record, frozen=True, tag="began"):
    """A run began; a later one in the same journal has a new input and continues the session."""

    version: int
    fields: dict[str, Any]


class Changed(_Record, frozen=True, tag="set"):
    """These fields of the state changed."""

    fields: dict[str, Any]


class Put(_Record, frozen=True, tag="put"):
    """Entries of a mapping of the state were set."""

    field: str
    entries: dict[str | int, Any]


class Dropped(_Record, frozen=True, tag="drop"):
    """Entries of a mapping of the state were removed."""

    field: str
    keys: list[str | int]


class Spliced(_Record, frozen=True, tag="splice"):
    """`history[start:stop]` became these messages."""

    start: int
    stop: int
    messages: list[Any]


class Answered(_Record, frozen=True, tag="answered"):
    """The results of the turn's calls were put into the history, in call order; one of them may be the output."""

    output: int | None = None


class Spent(_Record, frozen=True, tag="spent"):
    """The run used this much more; it is added up, because calls may run in parallel in several processes."""

    usage: list[Any]


class Signed(_Record, frozen=True, tag="by"):
    """Who wrote the record; this distinguishes attempts at the same call."""

    writer: str


class Moved(_Record, frozen=True, tag="version"):
    """From here on records have this version, because a newer release continues the run."""

    version: int


class Noted(_Record, frozen=True, tag="at"):
    """When the changes before it were written, in milliseconds, and what else happened; only for people to read."""

    time: int
    what: str = ""
    """`retry` or `rewrite`, if one happened."""
    text: str = ""
    """The error that the retry is for, or who rewrote the history."""


Record: TypeAlias = Moved | Began | Changed | Put | Dropped | Spliced | Answered | Spent | Signed | Noted

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder[list[Record]](list[Record])
_PLAIN_DECODER = msgspec.msgpack.Decoder()
_USAGE = TokenUsage.__struct_fields__
_SINGLE = tuple(set(RunState.__struct_fields__) - (MAPPINGS - {"waiting"}) - {"version"})
"""The fields that are replaced as a whole."""
_BEGUN = ("run_id", "agent", "wire", "streaming", "language", "key")
"""The fields that a run begins with."""
_TYPES = get_type_hints(RunState)
_TYPED = frozenset(("session", "answers", "states", "infos"))
"""The mappings that hold values of registered types."""
_AS_IT_IS = {*_SINGLE, "started", "asked"} - {"usage", "last_usage", "tool_infos", "deferred_tool_infos", "partial"}
"""The fields that are stored without conversion."""


def _store(run: Execution, name: str, value: Any) -> Any:
    """Return a field of the state, or an entry of a mapping, in its stored form."""
    if name == "ended":
        value = run.spec.shown(value)
        try:
            plain = msgspec.to_builtins(value)
            _ENCODER.encode(plain)
        except (TypeError, ValueError, OverflowError) as error:  # `extra` holds what a wrapper put there
            LOG.warning("what is noted in `extra` of a result cannot be stored, and is left out: %s", error)
            return msgspec.to_builtins(msgspec.structs.replace(value, extra={}))
        return plain
    if name == "values":
        return value.form
    if name == "call_values":
        return {key: [] if kept is DELETED else [kept.form] for key, kept in value.items()}
    if name in _TYPED:
        return encode_value(value)
    if name == "partial" and value is not None:
        return run.wire.dump(run.spec.shown(value))
    return list(astuple(value)) if isinstance(value, TokenUsage) else msgspec.to_builtins(value)


def _read(run: Execution, name: str, kind: Any, stored: Any) -> Any:
    """Return the value that `_store` stored, which must be of type `kind`."""
    if name == "values":
        return Kept(decode_value(stored), stored)
    if name == "call_values":
        return {key: Kept(decode_value(form[0]), form[0]) if form else DELETED for key, form in stored.items()}
    if name in _TYPED:
        return decode_value(stored)
    if name == "partial" and stored is not None:
        return run.wire.load(stored)
    if name in ("usage", "last_usage") and stored is not None:
        stored = dict(zip(_USAGE, stored, strict=True))
    return msgspec.convert(stored, kind)


def apply_record(run: Execution, record: Record, messages: list[Any]) -> None:  # noqa: C901, PLR0912 - one case each
    """Apply one change to `run.state` and `messages`."""
    state = run.state
    if type(record) is not Began and not state.agent:
        raise ValueError("no run has begun")
    match record:
        case Began(version, fields):
            _begin(run, version, fields)
        case Changed(fields):
            for name, value in fields.items():
                setattr(state, name, _read(run, name, _TYPES[name], value))
            if "message_id" in fields:  # it belongs to the last message
                run.ids[id(messages[-1])] = (messages[-1], state.message_id)
        case Put(field, entries):
            mapping = _mapping(state, field)
            of_keys, of_values = get_args(_TYPES[field])
            if any(type(key) is not of_keys for key in entries):
                raise TypeError(f"{field} has a key of another type")
            mapping.update({key: _read(run, field, of_values, value) for key, value in entries.items()})
        case Dropped(field, keys):
            for key in keys:
                _mapping(state, field).pop(key, None)
        case Spliced(start, stop, new):
            if not 0 <= start <= stop <= len(messages):
                raise ValueError(f"there are no messages {start} to {stop}")
            messages[start:stop] = [run.wire.load(item) for item in new]
        case Answered(output):
            results = answer_calls(run, run.wire.calls(messages[-1]), Cause.UNKNOWN)
            if output is not None:
                results[output]
                state.output = len(messages) + output
            messages += results
            run_state.take_values(state)
            state.tool_calls += len(state.started)
            run.forget_turn()
        case Spent(usage):
            state.usage = state.usage + _read(run, "usage", TokenUsage, usage)
        case Moved(version):
            if version > VERSION:
                raise ValueError("a newer release went on with the run")
            state.version = version
        case _:  # `Signed` and `Noted` change nothing
            pass


def _begin(run: Execution, version: int, fields: Mapping[str, Any]) -> None:
    if fields["wire"] != run.wire.name:
        raise ResumeError(
            f"checkpoint {run.checkpoint_id!r} holds {fields['wire']} messages, and this agent's model speaks "
            f"{run.wire.name}"
        )
    old = run.state
    converted = {name: msgspec.convert(value, _TYPES[name]) for name, value in fields.items()}
    runs = old.runs + 1 if old.agent else 1
    run.state = RunState(**converted, version=version, runs=runs, session=old.session)
    run.ids = {}


def _mapping(state: RunState, field: str) -> dict[Any, Any]:
    """Return a mapping of the state by its stored name."""
    if field not in MAPPINGS:
        raise KeyError(field)
    return getattr(state, field)


def encode_records(records: Sequence[Record]) -> bytes:
    """Return changes as they are stored, with the time."""
    return _ENCODER.encode([*records, Noted(time_ns() // 1_000_000)])


def _fields_of(state: RunState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in _SINGLE}


_MOST_RECENT = 64
"""How many runs of a store this process remembers."""
_RECENT: "WeakKeyDictionary[Any, dict[str, tuple[int, bytes, Snapshot]]]" = WeakKeyDictionary()
"""By journal, the records that this process wrote, the last one, and the run; then only later records are read."""


def _recent_runs(store: Any) -> dict[str, tuple[int, bytes, Snapshot]]:
    try:
        return _RECENT.setdefault(store, {})
    except TypeError:  # a store without weak references
        return {}


class Journal:
    """Writes the journal of one run."""

    def __init__(self, run: Execution, store: Any, name: str, count: int = 0) -> None:
        self.run, self.store, self.name = run, store, name
        self.count = count
        """The number of written records."""
        self.last: bytes | None = None
        """The last record that this process wrote."""
        self._noted: list[Record] = []
        self._written: History[Any] = History()
        self._known = _fields_of(run.state)
        """The fields of the state as last noted."""
        self._lock = asyncio.Lock()
        self._guard = Lock()
        self._unsure: list[bytes] = []
        """The record that is being written; after a cancellation it may or may not have been written."""
        self.lease: Any = None
        """The lease that it writes under, if the store supports leases."""
        self.broken: Exception | None = None
        """The error of a write that failed; nothing more is written after it."""

    def note(self, record: Record) -> None:
        """Remember a change until the next `flush`. Tools in threads may call this, too."""
        with self._guard:
            self._noted.append(record)

    def note_state(self) -> None:
        """Note what has changed in the history and in the fields of the state since they were last noted."""
        state, known, run = self.run.state, self._known, self.run
        if run.history is not self._written:
            self.note_history(run.history)
        fields: dict[str, Any] = {}
        with self._guard:
            for name, old in known.items():
                value = getattr(state, name)
                if value is not old and value != old:
                    known[name] = value
                    fields[name] = value if name in _AS_IT_IS else _store(run, name, value)
            if fields:
                last = self._noted[-1] if self._noted else None
                if type(last) is Changed:
                    last.fields.update(fields)
                else:
                    self._noted.append(Changed(fields))

    def note_entries(self, field: str, entries: Mapping[Any, Any]) -> None:
        """Note entries of a mapping that were set."""
        if field not in _AS_IT_IS:
            entries = {key: _store(self.run, field, value) for key, value in entries.items()}
        self.note(Put(field, dict(entries)))

    def note_dropped(self, field: str, keys: Sequence[Any]) -> None:
        """Note entries of a mapping that were removed."""
        self.note(Dropped(field, list(keys)))

    def note_beginning(self, state: RunState) -> None:
        """Note that a run begins."""
        fields = {name: getattr(state, name) for name in _BEGUN}
        if state.driver:
            fields |= {"driver": state.driver, "live": state.live}
        self.note(Began(VERSION, fields))
        self._known = _fields_of(state)
        if state.session:
            self.note_entries("session", state.session)

    def write_whole(self) -> bytes:
        """Return one record with everything that is stored of the run; replaying it restores the same run."""
        state = self.run.state
        self.note_beginning(state)
        self._known = _fields_of(RunState()) | {name: getattr(state, name) for name in (*_BEGUN, "driver", "live")}
        self.note_history(self.run.history)
        self.note(Spent(list(astuple(state.usage))))
        self._known["usage"] = state.usage
        for name in MAPPINGS - {"session", "waiting"}:
            if entries := getattr(state, name):
                self.note_entries(name, entries)
        self.note_state()
        return encode_records(self.take_noted())

    def spend(self, usage: TokenUsage) -> None:
        """Count tokens that the run used, and note them. Tools in threads may call this, too."""
        state = self.run.state
        with self._guard:
            state.usage = self._known["usage"] = state.usage + usage
            self._noted.append(Spent(list(astuple(usage))))

    def note_history(self, history: History[Any]) -> None:
        """Note what has changed in the history since it was last noted."""
        old = self._written
        if history.follows(old):
            start, stop, new = len(old), len(old), history[len(old) :]
        else:
            start, stop, new = find_difference(old, history)
        if new or stop > start:
            run = self.run
            self.note(Spliced(start, stop, [run.wire.dump(run.spec.shown(message)) for message in new]))
        self._written = history

    def note_answers(self, history: History[Any], output: int | None) -> None:
        """Note that the results of the turn, which were written before, are now in the history."""
        self.note(Answered(output))
        self._written = history
        self._known["tool_calls"] = self.run.state.tool_calls
        if output is not None:
            self._known["output"] = self.run.state.output

    def note_event(self, what: str, text: str) -> None:
        """Note a retry or a rewrite, for people who read the journal later."""
        self.note(Noted(time_ns() // 1_000_000, what, text))

    def take_over(self, history: History[Any]) -> None:
        """Take `history` and the current state as already written."""
        self._written, self._known = history, _fields_of(self.run.state)

    async def flush(self, step: str = "") -> None:
        """Write what was noted. When this returns, it is stored, unless the journal is broken.

        `step` says whether this writes that a call starts, waits or ends. If the journal is broken, no call starts.
        """
        async with self._lock:
            if self.broken is not None:
                if step == "start":
                    raise self.broken
                return
            try:
                if self._unsure:  # the write was cancelled: the store wrote all of it or nothing
                    stored = await self.store.load(self.name, self.count)
                    if stored[: len(self._unsure)] == self._unsure:
                        self.count, self.last = self.count + len(self._unsure), self._unsure[-1]
                        self._unsure = []
                noted = self.take_noted()
                if noted:
                    self._unsure.append(encode_records(noted))
                if self._unsure:
                    if self.lease is None:
                        await self.store.append(self.name, self.count, self._unsure)
                    else:
                        await self.store.append(self.name, self.count, self._unsure, owner=self.lease.owner)
            except Exception as error:
                self.broken = error
                raise
            if self._unsure:
                self.count, self.last = self.count + len(self._unsure), self._unsure[-1]
            self._unsure = []

    def sign(self) -> None:
        """Make the next record unique, so that this place in the journal can be told from others."""
        with self._guard:
            if self._noted:
                self._noted.append(Signed(urandom(6).hex()))

    def take_noted(self) -> list[Record]:
        """Return what was noted since the last time."""
        with self._guard:
            noted, self._noted = self._noted, []
        return noted

    def remember(self) -> None:
        """Remember where the run stands, so that resuming it in this process only reads new records."""
        run = self.run
        if run.spec.redact is not None or self.last is None or not run.wire.native:
            return  # the store and the memory differ, or will if somebody changes a message of another wire in place
        runs, state = _recent_runs(self.store), run_state.copy_state(run.state)
        runs.pop(self.name, None)
        runs[self.name] = self.count, self.last, Snapshot(state, run.history, run.ids)
        if len(runs) > _MOST_RECENT:
            del runs[next(iter(runs))]

    async def close(self) -> None:
        """Give the lease back, so that others can write."""
        lease, self.lease = self.lease, None
        if lease is not None and lease is not self.run.lease:
            await lease.give_back()


def find_difference(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int, Sequence[Any]]:
    """Return which slice of `old` was replaced by which messages; a common beginning and end stay."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] is new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] is new[-1 - end]:
        end += 1
    return start, len(old) - end, new[start : len(new) - end]


def recall(run: Execution, store: Any, name: str) -> tuple[int, bytes, Snapshot] | None:
    """Return what this process remembers of a journal, if anything."""
    recent = None if run.spec.redact is not None else _recent_runs(store).get(name)
    return recent if recent is not None and recent[2].state.wire == run.wire.name else None


def replay(run: Execution, stored: Sequence[bytes], messages: list[Any], first: int = 0) -> None:
    """Apply stored records, starting with number `first`, to `run.state` and `messages`."""
    last = first + len(stored) - 1
    for number, data in enumerate(stored, first):
        try:
            for record in decode_records(data, run.state.version):
                apply_record(run, record, messages)
            known = len(run.wire.calls(messages[-1])) if messages and number == last else 0
            for name in run_state.OF_THE_TURN if number == last else ():
                if any(not 0 <= index < known for index in getattr(run.state, name)):
                    raise ValueError(f"{name}: there is no such call")  # noqa: TRY301 - as any other fault
        except (ResumeError, SchemaVersionError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, it cannot be read
            version = _read_version(data)
            why = f"cannot be read at record {number} ({type(error).__name__}: {error})"
            if version != VERSION:
                why = f"has version {version!r}; this release reads version {VERSION}"
            advice = "Resume it with the release that wrote it, or start anew"
            raise SchemaVersionError(f"checkpoint {run.checkpoint_id!r} {why}. {advice}") from None


def decode_records(data: bytes, version: int) -> list[Record]:
    """Return the changes of a stored record, in the form of this release."""
    if version == VERSION:
        try:
            records = _DECODER.decode(data)
        except msgspec.MsgspecError:
            if _read_version(data) == VERSION:
                raise
        else:
            first = records[0]
            if type(first) is not Began or first.version == VERSION:
                return records
    plain: list[Any] = _PLAIN_DECODER.decode(data)
    if plain[0][0] in ("began", "version"):
        version = plain[0][1]
    while version != VERSION:
        plain, version = MIGRATIONS[version](plain), version + 1
    return msgspec.convert(plain, list[Record])


def _read_version(data: bytes) -> Any:
    """Return the version that a record names, or the current one if it names none."""
    try:
        plain: Any = _PLAIN_DECODER.decode(data)
        return next((change[1] for change in plain if change[0] in ("began", "version")), VERSION)
    except Exception:  # noqa: BLE001 - it is not a record at all
        return VERSION
