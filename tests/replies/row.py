"""The rows: replies as servers send them, what a true reading gives, and how a reading differs from that."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

import msgspec
import yaml

from tests.models.loopback import Answer, Asked
from tests.models.providers import CONTENT_TYPES, frame, streamed, text_reply, whole

FOLDER = Path(__file__).with_name("rows")
DONE = "done"
"""What a server says after its first reply, so that a program that ran a tool comes to an end."""

Wire = Literal["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"]
Finish = Literal["stop", "tool_calls", "length", "content_filter", "refusal", "pause"]
ErrorKind = Literal[
    "rate_limit",
    "overloaded",
    "server",
    "auth",
    "request",
    "context_length",
    "content_filter",
    "cut",
    "slip",
]


_EARLY = ("length", "content_filter", "refusal")


class Call(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A call as the server meant it."""

    name: str
    arguments: dict[str, Any]
    id: str = ""


class Usage(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What the server counted, as far as it says so."""

    prompt: int | None = None
    completion: int | None = None
    cached: int | None = None
    reasoning: int | None = None


class Failure(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What a reply that is no answer must be told as."""

    kind: ErrorKind | None = None
    retryable: bool | None = None
    says: list[str] = []


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One reply, and what a true reading of it gives. What is `None` is not judged."""

    id: str
    make: str
    wire: Wire
    source: str
    status: int
    headers: dict[str, str]
    streamed: bool
    body: str
    completed: bool = False
    told: bool = False
    text: str | None = None
    calls: list[Call] | None = None
    finish: Finish | None = None
    usage: Usage | None = None
    error: Failure | None = None

    @property
    def name(self) -> str:
        return f"{self.make}/{self.id}"

    @property
    def tools(self) -> list[str]:
        """The tools that the program has: those that the server calls."""
        return list(dict.fromkeys(call.name for call in self.calls or ()))

    def answer(self) -> Answer:
        """Return the reply as its server sends it."""
        if self.wire == "bedrock" and self.streamed and self.status == 200:
            pieces = [frame("bedrock", json.loads(line)) for line in self.body.splitlines() if line]
            return Answer(pieces, self.status, {**self.headers, "content-type": CONTENT_TYPES["bedrock"]})
        headers = {name: value for name, value in self.headers.items() if name.lower() != "content-length"}
        return Answer([self.body.encode()], self.status, headers)


@cache
def read_rows() -> Sequence[Row]:
    """Return all rows, in the order of the files."""
    return [row for path in sorted(FOLDER.glob("*.yaml")) for row in read_file(path)]


def read_file(path: Path) -> list[Row]:
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return msgspec.convert(yaml.load(path.read_text(encoding="utf-8"), loader), list[Row])


class Servers:
    """Answers for all rows from one address: below `/who/number` stands the server of the row with that number."""

    def __init__(self, rows: Sequence[Row]) -> None:
        self.rows = rows
        self.asked: Counter[tuple[str, int]] = Counter()
        """How often each was asked, and by whom."""

    def __call__(self, asked: Asked) -> Answer:
        _, who, place, _ = asked.path.split("/", 3)
        row, number = self.rows[int(place)], int(place)
        self.asked[who, number] += 1
        if self.asked[who, number] == 1:
            return row.answer()
        return (streamed if row.streamed else whole)(row.wire, text_reply(DONE))


class Reading(NamedTuple):
    """What a program got out of a reply."""

    text: str
    calls: Sequence[Call] = ()
    ran: Sequence[tuple[str, Any]] = ()
    """The tools that ran, with their arguments."""
    finish: str = ""
    usage: Usage = Usage()
    error: str = ""
    """What the error says; empty if there was none."""
    kinds: Sequence[str] = ()
    """The kinds of errors that the error may be taken for."""
    retryable: bool | None = None


def differences(row: Row, reading: Reading) -> list[str]:
    """Return how a reading differs from what the row says, each as a sentence."""
    return [*_about_errors(row, reading), *_about_the_answer(row, reading)]


def shown_differences(row: Row, reading: Reading, asked: int) -> list[str]:
    """Return the differences that the user of any program sees: the text, what ran, and what an error says.

    `asked` counts the requests. A program may ask again after a model's slip, go on with a turn that was paused, and
    tell an answer that ended early as an error.
    """
    wanted, text = row.error, row.text
    if wanted is not None and wanted.kind == "slip":
        return [] if reading.error or asked > 1 else [f"no error, but the text {reading.text!r}"]
    if wanted is not None:
        if not reading.error:
            return [f"no error, but the text {reading.text!r}"]
        missing = [words for words in wanted.says if words not in reading.error]
        return [f"the error {reading.error!r} does not say {words!r}" for words in missing]
    if reading.error:
        return [] if row.finish in _EARLY and not row.calls else [f"raised {reading.error!r}"]
    found = reading.text[: len(text)] if text and row.finish == "pause" else reading.text
    texts = [] if text in (None, found) else [f"text {found!r}, not {text!r}"]
    return [*texts, *_about_runs(row, reading)]


def _about_errors(row: Row, reading: Reading) -> Iterator[str]:
    wanted = row.error
    if wanted is None:
        if reading.error:
            yield f"raised {reading.error!r}"
        return
    if not reading.error:
        yield f"no error, but the text {reading.text!r}"
        return
    if wanted.kind not in (None, *reading.kinds):
        yield f"{wanted.kind} is told as {' or '.join(reading.kinds)}: {reading.error!r}"
    retryable = True if wanted.kind == "slip" else wanted.retryable
    if retryable not in (None, reading.retryable):
        yield f"retryable is {reading.retryable}: {reading.error!r}"
    for words in wanted.says:
        if words not in reading.error:
            yield f"{reading.error!r} does not say {words!r}"


def _about_the_answer(row: Row, reading: Reading) -> Iterator[str]:
    if row.error is None and reading.error:
        return
    if row.text not in (None, reading.text):
        yield f"text {reading.text!r}, not {row.text!r}"
    yield from _about_runs(row, reading)
    if row.error is not None:
        return
    if row.calls is not None:
        for wanted, call in zip(row.calls, reading.calls, strict=False):
            if (wanted.name, wanted.arguments) != (call.name, call.arguments):
                yield f"called {call.name} {call.arguments}, not {wanted.name} {wanted.arguments}"
            if wanted.id not in ("", call.id):
                yield f"the call has the id {call.id!r}, not {wanted.id!r}"
    if row.finish not in (None, reading.finish):
        yield f"finished as {reading.finish!r}, not {row.finish!r}"
    for name, count in msgspec.to_builtins(row.usage or Usage()).items():
        found = getattr(reading.usage, name)
        if count not in (None, found):
            yield f"{name} tokens {found}, not {count}"


def _about_runs(row: Row, reading: Reading) -> Iterator[str]:
    if row.calls is None:
        return
    wanted = sorted((call.name, json.dumps(call.arguments, sort_keys=True)) for call in row.calls)
    ran = sorted((name, json.dumps(arguments, sort_keys=True)) for name, arguments in reading.ran)
    if ran != wanted:
        yield f"ran {ran}, not {wanted}"


def as_call(name: str, arguments: str, call_id: str) -> Call:
    """Return a call as it was read; arguments that are no object are kept under a name that no row uses."""
    try:
        read: Any = json.loads(arguments or "{}")
    except ValueError:
        read = None
    return Call(name, read if isinstance(read, dict) else {"?": arguments}, call_id)
