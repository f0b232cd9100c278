"""The journal of a run: facts are noted as they become true, and written before the next step relies on them.

A stored record is a list of changes: fields of the `RunState`, entries of its mappings, a splice of the messages, or
that the results of a turn were put into the history. Reading the records in order gives back the run. Messages are
compared with what was written last, so hooks need not say what they did. The form is stored: `VERSION` says which.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from os import urandom
from threading import Lock
from time import time_ns
from typing import Any, NamedTuple, TypeAlias, get_type_hints
from weakref import WeakKeyDictionary

import msgspec

from suture._aio import LOG
from suture.errors import ResumeError, SchemaVersionError
from suture.kernel.run_state import (
    DELETED,
    MAPPINGS,
    OF_THE_TURN,
    VERSION,
    Kept,
    RunState,
    add_usage,
    copy_state,
    take_values,
)
from suture.kernel.state import Execution
from suture.kernel.values import decode_value, encode_value
from suture.language import resolve_language
from suture.messages import History, TokenUsage, ToolInfo, ToolResult
from suture.repair import Cause

MIGRATIONS: dict[int, Callable[[list[Any]], list[Any]]] = {}
"""What makes the next version of a stored record, from each version that is still read.

A record is a list of changes there, `[tag, …]` each, as they are stored.
"""


Answer: TypeAlias = "Callable[[Execution, Any], list[Any]]"
"""Gives the messages that answer the calls of a reply, from what is stored of them."""


class _Record(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """One change of a run; `apply` makes it when a stored run is read."""

    def apply(self, run: Execution, messages: list[Any], answer: Answer) -> None:
        """Make the change in `run.state` and `messages`."""


class Began(_Record, frozen=True, tag="began"):
    """A run began; a later one in the same journal goes on with a new input."""

    version: int
    fields: dict[str, Any]

    def apply(self, run: Execution, messages: list[Any], answer: Answer) -> None:
        """Begin with the session that an earlier run has left."""
        if self.fields["wire"] != run.wire.name:
            raise ResumeError(
                f"checkpoint {run.checkpoint_id!r} holds {self.fields['wire']} messages, and this agent's model speaks "
                f"{run.wire.name}"
            )
        old = run.state
        runs = old.runs + 1 if old.agent else 1
        fields = {name: msgspec.convert(value, _TYPES[name]) for name, value in self.fields.items()}
        run.state = RunState(**fields, version=self.version, runs=runs, session=old.session)
        run.language = resolve_language(run.state.language)
        run.ids = {}


class Changed(_Record, frozen=True, tag="set"):
    """These fields of the state changed."""

    fields: dict[str, Any]

    def apply(self, run: Execution, messages: list[Any], answer: Answer) -> None:
        """Set the fields; the id of a reply belongs to the last message."""
        for name, value in self.fields.items():
            form = _FORMS.get(name)
            setattr(run.state, name, form.decode(run, value) if form else msgspec.convert(value, _TYPES[name]))
        if "message_id" in self.fields:
            run.ids[id(messages[-1])] = (messages[-1], run.state.message_id)


class Put(_Record, frozen=True, tag="put"):
    """Entries of a mapping of the state were set."""

    field: str
    entries: dict[str | int, Any]

    def apply(self, run: Execution, messages: list[Any], answer: Answer) -> None:
        """Set the entries."""
        form, entries, mapping = _FORMS.get(self.field), self.entries, _mapping(run, self.field)
        if form is None:
            entries = msgspec.convert(entries, _TYPES[self.field])
        elif any(type(key) is not (int if self.field in OF_THE_TURN else str) for key in entries):
            raise TypeError(f"{self.field} has a key of another type")
        else:
            entries = {key: form.decode(run, value) for key, value in entries.items()}
        mapping.update(entries)


class Dropped(_Record, frozen=True, tag="drop"):
    """Entries of a mapping of the state were removed."""

    field: str
    keys: list[str | int]

    def apply(self, run: Execution, messages: list[Any], answer: Answer) -> None:
        """Remove the entries."""
        for key in self.keys:
            _mapping(run, self.field).pop(key, None)


class Spliced(_Record, frozen=True, tag="splice"):
    """`history[start:stop]` became these messages."""

    start: int
    stop: int
    messages: list[Any]

    def apply(self, run: Execution, messages: list[Any], answer: Answer) -> None:
        """Put the messages in their place."""
        if not 0 <= self.start <= self.stop <= len(messages):
            raise ValueError(f"there are no messages {self.start} to {self.stop}")
        messages[self.start : self.stop] = [run.wire.load(item) for item in self.messages]


class Answered(_Record, frozen=True, tag="answered"):
    """The results of the turn's calls, in call order, are in the history; one of them may be the output."""

    output: int | None = None

    def apply(self, run: Execution, messages: list[Any], answer: Answer) -> None:
        """Add the results, and forget the calls of the turn."""
        results = answer(run, messages[-1])
        if self.output is not None:
            results[self.output]
            run.state.output = len(messages) + self.output
        messages += results
        take_values(run.state)
        run.state.tool_calls += len(run.state.started)
        run.forget_turn()


class Spent(_Record, frozen=True, tag="spent"):
    """The run used this much more: calls that run beside each other, in several processes, add it up."""

    usage: list[Any]

    def apply(self, run: Execution, messages: list[Any], answer: Answer) -> None:
        """Add it up."""
        run.state.usage = add_usage(run.state.usage, _read_usage(run, self.usage))


class Signed(_Record, frozen=True, tag="by"):
    """Who wrote the record: tells an attempt at a call from another one."""

    writer: str


class Moved(_Record, frozen=True, tag="version"):
    """From here on records have this version: a newer release goes on with the run."""

    version: int

    def apply(self, run: Execution, messages: list[Any], answer: Answer) -> None:
        """Note the version."""
        run.state.version = self.version


class Noted(_Record, frozen=True, tag="at"):
    """When the changes before it were written, in milliseconds; for people, and so is what else happened."""

    time: int
    what: str = ""
    """`retry` or `rewrite`, where that is what happened."""
    text: str = ""
    """The error that the retry is for, or who rewrote the history."""


def _mapping(run: Execution, field: str) -> dict[Any, Any]:
    """Return a mapping of the state by its stored name."""
    if field not in MAPPINGS:
        raise KeyError(field)
    return getattr(run.state, field)


Record: TypeAlias = Moved | Began | Changed | Put | Dropped | Spliced | Answered | Spent | Signed | Noted

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder[list[Record]](list[Record])
_PLAIN_DECODER = msgspec.msgpack.Decoder()


def encode_records(records: Sequence[Record]) -> bytes:
    """Return changes as they are stored, with the time."""
    return _ENCODER.encode([*records, Noted(time_ns() // 1_000_000)])


class _Form(msgspec.Struct, frozen=True):
    """How a value of one field is stored and read."""

    encode: Callable[[Execution, Any], Any]
    decode: Callable[[Execution, Any], Any]


def _usage(_: Execution, usage: TokenUsage | None) -> Any:
    return None if usage is None else list(msgspec.structs.astuple(usage))


def _read_usage(_: Execution, stored: Any) -> Any:
    return None if stored is None else msgspec.convert(dict(zip(_USAGE, stored, strict=True)), TokenUsage)


def _result(run: Execution, result: ToolResult) -> Any:
    shown = run.spec.shown(result)
    try:
        plain = msgspec.to_builtins(shown)
        _ENCODER.encode(plain)
    except (TypeError, ValueError, OverflowError) as error:  # what a wrapper put into `extra` cannot be stored
        LOG.warning("what is noted in `extra` of a result cannot be stored, and is left out: %s", error)
        return msgspec.to_builtins(msgspec.structs.replace(shown, extra={}))
    return plain


_USAGE = TokenUsage.__struct_fields__
_SINGLE = tuple(set(RunState.__struct_fields__) - (MAPPINGS - {"waiting"}) - {"version"})
"""The fields that change as a whole."""
_BEGUN = ("run_id", "agent", "wire", "streaming", "language", "key")
"""The fields that a run begins with."""
_TYPES = get_type_hints(RunState)
_PLAIN = _Form(lambda _, value: value, lambda _, value: value)
_TYPED = _Form(lambda _, value: encode_value(value), lambda _, value: decode_value(value))
_FORMS: dict[str, _Form] = {
    "usage": _Form(_usage, _read_usage),
    "last_usage": _Form(_usage, _read_usage),
    "tool_infos": _Form(
        lambda _, infos: msgspec.to_builtins(infos),
        lambda _, stored: msgspec.convert(stored, tuple[ToolInfo, ...]),
    ),
    "partial": _Form(
        lambda run, message: None if message is None else run.wire.dump(run.spec.shown(message)),
        lambda run, stored: None if stored is None else run.wire.load(stored),
    ),
    "values": _Form(lambda _, kept: kept.form, lambda _, stored: Kept(decode_value(stored), stored)),
    "session": _TYPED,
    "answers": _TYPED,
    "states": _TYPED,
    "infos": _TYPED,
    "ended": _Form(_result, lambda _, stored: msgspec.convert(stored, ToolResult)),
    "call_values": _Form(
        lambda _, values: {key: [] if kept is DELETED else [kept.form] for key, kept in values.items()},
        lambda _, stored: {key: Kept(decode_value(i[0]), i[0]) if i else DELETED for key, i in stored.items()},
    ),
    "causes": _Form(lambda _, cause: cause.value, lambda _, stored: Cause(stored)),
}
_FORMS["deferred_tool_infos"] = _FORMS["tool_infos"]


def _fields_of(state: RunState) -> dict[str, Any]:
    return {name: getattr(state, name) for name in _SINGLE}


class Recent(NamedTuple):
    """What this process knows of a journal that it has written: only what came later must be read."""

    length: int
    last: bytes
    """The last record: whoever finds another in its place reads the whole journal."""
    state: RunState
    history: History[Any]
    ids: dict[int, tuple[Any, str]]


_MOST_RECENT = 64
"""How many runs of a store are remembered."""
_RECENT: "WeakKeyDictionary[Any, dict[str, Recent]]" = WeakKeyDictionary()


class Journal:
    """Writes one run."""

    def __init__(self, run: Execution, store: Any, name: str, count: int = 0) -> None:
        self.run, self.store, self.name = run, store, name
        self.count = count
        """How many records are written."""
        self.last: bytes | None = None
        """The last record that this process has written."""
        self._noted: list[Record] = []
        self._written: History[Any] = History()
        self._known = _fields_of(run.state)
        """The fields of the state as they were noted."""
        self._lock = asyncio.Lock()
        self._guard = Lock()
        self._unsure: list[bytes] = []
        """What is being written; after a cancellation, what may or may not have been."""
        self.lease: Any = None
        """The lease that it writes under, where the store knows leases."""
        self.broken: Exception | None = None
        """The error that kept something from being written; nothing more is written then."""

    def note(self, record: Record) -> None:
        """Remember a change until the next `flush`. Tools that run in threads may do so, too."""
        with self._guard:
            self._noted.append(record)

    def note_state(self) -> None:
        """Note how the history, and which fields of the state, differ from what was noted last."""
        state, known, run = self.run.state, self._known, self.run
        if run.history is not self._written:
            self.note_history(run.history)
        fields: dict[str, Any] = {}
        for name, old in known.items():
            value = getattr(state, name)
            if value is not old and value != old:
                known[name] = value
                fields[name] = _FORMS[name].encode(run, value) if name in _FORMS else value
        if fields:
            with self._guard:
                last = self._noted[-1] if self._noted else None
                if type(last) is Changed:
                    last.fields.update(fields)
                else:
                    self._noted.append(Changed(fields))

    def note_entries(self, field: str, entries: Mapping[Any, Any]) -> None:
        """Note entries of a mapping that were set."""
        form = _FORMS.get(field, _PLAIN)
        self.note(Put(field, {key: form.encode(self.run, value) for key, value in entries.items()}))

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

    def note_whole(self) -> None:
        """Note all that is stored of the run."""
        state = self.run.state
        self.note_beginning(state)
        self._known = _fields_of(RunState()) | {name: getattr(state, name) for name in (*_BEGUN, "driver", "live")}
        self.note_history(self.run.history)
        self.note_spending(state.usage)
        for name in MAPPINGS - {"session", "waiting"}:
            if entries := getattr(state, name):
                self.note_entries(name, entries)
        self.note_state()

    def note_spending(self, usage: TokenUsage) -> None:
        """Note that the run used more."""
        self.note(Spent(_usage(self.run, usage)))
        self._known["usage"] = self.run.state.usage

    def note_history(self, history: History[Any]) -> None:
        """Note how the history differs from what was noted last."""
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
        """Note that the results of the turn, which are written already, are in the history."""
        self.note(Answered(output))
        self._written = history
        self._known |= {"tool_calls": self.run.state.tool_calls, "output": self.run.state.output}

    def note_event(self, what: str, text: str) -> None:
        """Note a retry or a rewrite, for people who look at the run later."""
        self.note(Noted(time_ns() // 1_000_000, what, text))

    def take_over(self, history: History[Any]) -> None:
        """Regard `history`, and the state as it is, as written."""
        self._written, self._known = history, _fields_of(self.run.state)

    async def flush(self, step: str = "") -> None:
        """Write what was noted. When this returns it is safe, unless the journal is broken.

        `step` says what of a call is written: that it starts, waits or ends.
        """
        del step
        async with self._lock:
            if self.broken is not None:
                return
            try:
                if self._unsure:  # that write was cancelled: a store writes all of it or nothing
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
        """Let what was noted differ from any other record, so that this place can be told from others."""
        with self._guard:
            if self._noted:
                self._noted.append(Signed(urandom(6).hex()))

    def take_noted(self) -> list[Record]:
        """Return what was noted since the last time."""
        with self._guard:
            noted, self._noted = self._noted, []
        return noted

    def remember(self) -> None:
        """Keep where the run stands, so that resuming it in this process costs what is new, not the whole journal."""
        run = self.run
        if run.spec.redact is not None or self.last is None:
            return  # what is stored is not what is in memory
        try:
            runs = _RECENT.setdefault(self.store, {})
        except TypeError:  # a store that cannot be referred to weakly
            return
        runs.pop(self.name, None)
        runs[self.name] = Recent(self.count, self.last, copy_state(run.state), run.history, run.ids)
        if len(runs) > _MOST_RECENT:
            del runs[next(iter(runs))]

    async def close(self) -> None:
        """Let others write."""
        lease, self.lease = self.lease, None
        if lease is not None and lease is not self.run.lease:
            await lease.give_back()


def find_difference(old: Sequence[Any], new: Sequence[Any]) -> tuple[int, int, Sequence[Any]]:
    """Return which slice of `old` became which messages: what both begin and end with stays."""
    shorter = min(len(old), len(new))
    start = 0
    while start < shorter and old[start] is new[start]:
        start += 1
    end = 0
    while end < shorter - start and old[-1 - end] is new[-1 - end]:
        end += 1
    return start, len(old) - end, new[start : len(new) - end]


def write_whole(run: Execution, store: Any) -> bytes:
    """Return one record with all that is stored of a run: replaying it gives the same state and history."""
    journal = Journal(run, store, "")
    journal.note_whole()
    return encode_records(journal.take_noted())


def recall(run: Execution, store: Any, name: str) -> Recent | None:
    """Return what this process knows of a journal, if it knows it."""
    if run.spec.redact is not None:
        return None
    try:
        recent = _RECENT.get(store, {}).get(name)
    except TypeError:
        return None
    return recent if recent is not None and recent.state.wire == run.wire.name else None


def replay(run: Execution, stored: Sequence[bytes], messages: list[Any], answer: Answer) -> None:
    """Apply stored records to `run.state` and `messages`; `answer` makes the messages of a turn's results."""
    for number, data in enumerate(stored):
        try:
            for record in decode_records(data, run.state.version):
                apply_record(run, record, messages, answer)
            known = len(run.wire.calls(messages[-1])) if messages and number == len(stored) - 1 else 0
            for name in OF_THE_TURN if number == len(stored) - 1 else ():
                if any(not 0 <= index < known for index in getattr(run.state, name)):
                    raise ValueError(f"{name}: there is no such call")  # noqa: TRY301 - as any other fault
        except (ResumeError, SchemaVersionError):
            raise
        except Exception as error:  # noqa: BLE001 - whatever is wrong with it, it cannot be read
            raise _unreadable(run.checkpoint_id, number, data, error) from None


def apply_record(run: Execution, record: Record, messages: list[Any], answer: Answer) -> None:
    """Apply one change to `run.state` and `messages`."""
    if type(record) is not Began and not run.state.agent:
        raise ValueError("no run has begun")
    record.apply(run, messages, answer)


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


def _unreadable(run: str | None, number: int, data: bytes, error: Exception) -> SchemaVersionError:
    version = _read_version(data)
    if version != VERSION:
        reason = f"has version {version!r}; this release reads version {VERSION}"
    else:
        reason = f"cannot be read at record {number} ({type(error).__name__}: {error})"
    return SchemaVersionError(f"checkpoint {run!r} {reason}. Resume it with the release that wrote it, or start anew")


def _read_version(data: bytes) -> Any:
    """Return the version that a record names; ours, if it names none."""
    try:
        plain: Any = _PLAIN_DECODER.decode(data)
        return plain[0][1] if plain[0][0] == "began" else VERSION
    except Exception:  # noqa: BLE001 - it is not a record at all
        return VERSION
