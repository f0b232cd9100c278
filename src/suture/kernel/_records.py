"""The journal of a run, as records. Their names and fields are a stored format: `VERSION` says which.

Reading them in order gives back the run: messages are written once, and changes to the history are splices.
"""

from typing import Any, TypeAlias

import msgspec

from suture.errors import SchemaVersionError

__all__ = [
    "VERSION",
    "Answered",
    "AskedAgain",
    "Began",
    "Ended",
    "Entered",
    "Gathered",
    "Infos",
    "Paused",
    "Record",
    "Replied",
    "Resumed",
    "Settled",
    "Spent",
    "Spliced",
    "Started",
    "Stopped",
    "ValueDropped",
    "ValueKept",
    "Waited",
    "decode_records",
    "encode_record",
]

VERSION = 1
"""The version of journals that this release writes and reads."""


class _Record(msgspec.Struct, frozen=True, tag_field="t", omit_defaults=True):
    """One fact about a run."""


class Began(_Record, frozen=True, tag="began"):
    """A run began, under this version; a later one in the same journal goes on with a new input."""

    version: int
    run_id: str
    agent: str
    wire: str
    streaming: bool
    language: str


class Entered(_Record, frozen=True, tag="entered"):
    """All `before_agent` hooks are done: the run has its input."""


class Spliced(_Record, frozen=True, tag="spliced"):
    """`history[start:stop]` became these messages."""

    start: int
    stop: int
    messages: list[Any]


class Replied(_Record, frozen=True, tag="replied"):
    """The last message of the history is the reply of this turn."""

    turn: int
    message_id: str
    usage: dict[str, int] = {}
    is_last: bool = False


class AskedAgain(_Record, frozen=True, tag="asked_again"):
    """The answer was of the wrong form; the last message of the history says so to the model."""


class Gathered(_Record, frozen=True, tag="gathered"):
    """The hook after the calls of the turn at hand is done."""


class Settled(_Record, frozen=True, tag="settled"):
    """All after-hooks of this turn are done."""

    turn: int


class Started(_Record, frozen=True, tag="started"):
    """These tool calls of the turn at hand are about to run."""

    calls: list[int]


class Ended(_Record, frozen=True, tag="ended"):
    """A tool call of the turn at hand has its result."""

    call: int
    result: Any
    refused: bool = False


class Waited(_Record, frozen=True, tag="waited"):
    """A tool call of the turn at hand was interrupted: it runs again from the top."""

    call: int


class Spent(_Record, frozen=True, tag="spent"):
    """An agent that ran inside this run used this."""

    usage: dict[str, int]


class Stopped(_Record, frozen=True, tag="stopped"):
    """A tool call of the turn at hand started and will not end, and why."""

    call: int
    cause: str


class Answered(_Record, frozen=True, tag="answered"):
    """All calls of the turn at hand are answered: its results, in call order, are in the history."""

    directly: int | None = None
    """The call whose result ends the run."""
    ends: bool = False
    """Whether the run ends here, with that result or with the reply."""


class Infos(_Record, frozen=True, tag="infos"):
    """A hook changed what the model is told about tools."""

    tool_infos: list[Any]
    deferred: list[Any]


class ValueKept(_Record, frozen=True, tag="value"):
    """A run-local or session value was set."""

    kind: str
    key: str
    value: Any


class ValueDropped(_Record, frozen=True, tag="dropped"):
    """A run-local value was deleted."""

    key: str


class Paused(_Record, frozen=True, tag="paused"):
    """The run ended here: how, what it waits for, and what those that wait keep."""

    outcome: str
    interrupts: list[dict[str, Any]] = []
    states: dict[str, Any] = {}
    expects: dict[str, str] = {}
    partial: Any = None
    """The message of a stream that was cut."""
    output: int | None = None
    """Which message of the history holds the output."""


class Resumed(_Record, frozen=True, tag="resumed"):
    """The run goes on, with this said to its interrupts."""

    answers: dict[str, Any] = {}


Record: TypeAlias = (
    Began
    | Entered
    | Waited
    | Spent
    | AskedAgain
    | Gathered
    | Spliced
    | Replied
    | Settled
    | Started
    | Ended
    | Stopped
    | Answered
    | Infos
    | ValueKept
    | ValueDropped
    | Paused
    | Resumed
)

_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder[Record](Record)
_VERSIONS = msgspec.msgpack.Decoder(dict[str, Any])


def encode_record(record: Record) -> bytes:
    """Return a record as bytes."""
    return _ENCODER.encode(record)


def decode_records(run: str, stored: list[bytes]) -> list[Record]:
    """Return the records of a run, or say which version wrote what cannot be read."""
    records: list[Record] = []
    for number, data in enumerate(stored):
        try:
            record = _DECODER.decode(data)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise _unreadable(run, number, data, error) from None
        if isinstance(record, Began) and record.version != VERSION:
            raise _unreadable(run, number, data, None)
        records.append(record)
    return records


def _unreadable(run: str, number: int, data: bytes, error: Exception | None) -> SchemaVersionError:
    try:
        plain = _VERSIONS.decode(data)
    except (msgspec.DecodeError, msgspec.ValidationError):
        plain = {}
    if plain.get("t") == "began" and plain.get("version") != VERSION:
        reason = f"has version {plain.get('version')!r}; this release reads version {VERSION}"
    else:
        reason = f"cannot be read at record {number} ({error})"
    return SchemaVersionError(f"checkpoint {run!r} {reason}. Resume it with the release that wrote it, or start anew")
