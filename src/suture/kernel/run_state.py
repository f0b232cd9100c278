"""What is stored of a run, its result, and what it asks. A new stored fact is a new field; `journal.py` writes it."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, cast

import msgspec

from suture._text import plural
from suture.errors import ResumeError
from suture.events import Interrupt
from suture.kernel.middleware import Outcome
from suture.kernel.values import decode_value, encode_value
from suture.language import Language
from suture.messages import FrozenMap, History, TokenUsage, ToolInfo, ToolResult
from suture.repair import Cause

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Out = TypeVar("Out", default=str)
else:
    from typing import TypeVar

    Out = TypeVar("Out")

VERSION = 2
"""The version of journals that this release writes."""
DELETED: Any = object()
"""Stands for a value that a tool call has deleted."""


class Kept(msgspec.Struct, frozen=True):
    """A value of a run, and what it was stored as when it was set: that is what it is after a resume."""

    value: Any
    form: Any


class RunState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All that is stored of a run, beside its messages. A new stored fact is a new field here; see `journal.py`."""

    version: int = VERSION
    """The version that its last record has."""
    run_id: str = ""
    agent: str = ""
    wire: str = ""
    language: Language = "en"
    streaming: bool = True
    driver: str = ""
    """Who keeps the run going: an engine outside, by its name; nobody but the process that runs it, if empty."""
    live: bool = False
    """Whether its events are kept for a reader in another process."""
    key: str = ""
    """What its input was given under, so that the same input is not run twice."""
    runs: int = 1
    """How many runs this conversation has had, this one included."""
    entered: bool = False
    """Whether the run has its input: all `before_agent` hooks were done."""
    phase: Literal["model", "after", "tools", "gathered", "end"] = "model"
    turn: int = 0
    is_last: bool = False
    ends: bool = False
    message_id: str = ""
    """The id that events gave the last reply."""
    usage: TokenUsage = TokenUsage()
    last_usage: TokenUsage | None = None
    """What the last reply cost, where it said so."""
    tool_calls: int = 0
    """How many calls have begun, without those of the turn: they count when they are answered."""
    refused_calls: int = 0
    """How many calls the budget did not pay for."""
    corrections: int = 0
    """How often an answer was sent back."""
    resumes: int = 0
    tool_infos: tuple[ToolInfo, ...] | None = None
    """What the model is told of tools, where a hook changed it."""
    deferred_tool_infos: tuple[ToolInfo, ...] = ()
    outcome: str = ""
    """How the run ended last; empty while it runs, and after a crash."""
    error: str = ""
    """What the run failed with, in words."""
    ending: str = ""
    """Tells how it ended last from any other ending: no two journals end with the same record."""
    partial: Any = None
    """The message of a stream that was cut."""
    output: int | None = None
    """Which message of the history holds the output."""
    waiting: dict[str, str] = {}
    """The interrupts that the run waits for, by id, and the ids of their calls."""
    values: dict[str, Kept] = {}
    session: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    """What was said to interrupts, by their ids."""
    states: dict[str, Any] = {}
    """What interrupts keep for when they are answered."""
    infos: dict[str, Any] = {}
    """What interrupts say to whoever answers: info, name of the tool, path of the run."""
    asked: dict[str, str] = {}
    """All interrupts that the run ever waited for, and what answer they take."""
    started: dict[int, bool] = {}
    """The calls of the turn that have begun."""
    ended: dict[int, ToolResult] = {}
    call_values: dict[int, dict[str, Any]] = {}
    """The values that calls of the turn have set; they count when all calls are answered."""
    causes: dict[int, Cause] = {}
    """Why calls of the turn that started will not end."""


OF_THE_TURN = ("started", "ended", "call_values", "causes")
MAPPINGS = frozenset(("values", "session", "answers", "states", "infos", "asked", "waiting", *OF_THE_TURN))
"""The fields of a `RunState` that change entry by entry."""


def copy_state(state: RunState) -> RunState:
    """Return a copy that shares nothing changeable: values are what they would be after storing and reading them."""
    typed: dict[str, Any] = {
        name: {key: decode_value(encode_value(value)) for key, value in getattr(state, name).items()}
        for name in ("session", "answers", "states", "infos")
    }
    typed["values"] = _copy_values(state.values)
    typed["call_values"] = {index: _copy_values(values) for index, values in state.call_values.items()}
    plain = {name: dict(getattr(state, name)) for name in MAPPINGS - typed.keys()}
    return msgspec.structs.replace(state, **typed, **plain)


def _copy_values(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: kept if kept is DELETED else Kept(decode_value(kept.form), kept.form) for key, kept in values.items()}


class SafePoint(BaseException):
    """The run was asked to stop at a point that it has reached."""


class Snapshot(msgspec.Struct, frozen=True):
    """A run as it stood, in memory: what a run without a store is resumed from."""

    state: RunState
    history: History[Any]
    ids: Mapping[int, tuple[Any, str]]
    """Messages by identity, and the ids that events gave them."""
    nested: Mapping[str, "Snapshot"] = FrozenMap()
    """The runs inside it, by their addresses."""


def take_values(state: RunState) -> None:
    """Let the values that the calls of a turn have set or deleted be the run's, in call order."""
    for index in sorted(state.call_values):
        for key, value in state.call_values[index].items():
            if value is DELETED:
                state.values.pop(key, None)
            else:
                state.values[key] = value


def add_usage(old: TokenUsage, new: TokenUsage) -> TokenUsage:
    """Return the sum of two usages."""
    total = new.total_tokens or new.prompt_tokens + new.completion_tokens
    sums = {name: getattr(old, name) + getattr(new, name) for name in TokenUsage.__struct_fields__}
    return TokenUsage(**{**sums, "total_tokens": old.total_tokens + total})


def subtract_usage(new: TokenUsage, old: TokenUsage) -> TokenUsage:
    """Return what `new` has more than `old`."""
    return TokenUsage(
        **{name: max(0, getattr(new, name) - getattr(old, name)) for name in TokenUsage.__struct_fields__}
    )


class RunResult(msgspec.Struct, Generic[Out], frozen=True, kw_only=True):
    """What came of a run.

    >>> RunResult(output="done", messages=[], outcome=Outcome.FINISHED).output
    'done'
    """

    output: Out
    """The final text, or the value that `output_type` asked for; `None` if there is none."""
    messages: Sequence[Any]
    """The whole history: what went in, what was said, and every result."""
    outcome: Outcome
    usage: TokenUsage = TokenUsage()
    interrupts: tuple[Interrupt, ...] = ()
    """What the run waits for, if it was interrupted."""
    run_id: str = ""
    checkpoint_id: str | None = None
    session: Mapping[str, Any] = FrozenMap()
    """The session values at the end."""
    message_ids: tuple[str, ...] = ()
    """For each message the id that events gave it; empty for what went in."""
    error: BaseException | None = None
    """What the run failed with."""
    escalated: bool = False
    """Whether a cancellation that waited for a safe point ran out of patience."""
    cleanup_errors: tuple[Exception, ...] = ()
    """What `after_agent` hooks failed with; it never replaces the outcome."""
    snapshot: Any = None
    """Where a run without a store stands, for `agent.resume(result)`."""

    def __repr__(self) -> str:
        """Show how it ended and how much there is; never what the messages say."""
        waits = f", waits for {', '.join(item.id for item in self.interrupts)}" if self.interrupts else ""
        return f"<RunResult: {self.outcome.value}, {plural(len(self.messages), 'message')}{waits}>"


# --- interrupts: code inside a run asks somebody outside, and the run stops until the answer comes -------------------
#
# The id of an interrupt is its address (run path, turn, call, frame, occurrence), so it is the same each time the place
# is run again. On resume the place runs again from the top, and `interrupt` returns the answer.

_EXPECTED: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "list": (list, tuple),
    "dict": (dict,),
}


class Waiting(msgspec.Struct, frozen=True):
    """An interrupt that was not answered yet, with what it keeps and what kind of answer it takes."""

    interrupt: Interrupt
    state: Any
    terms: str
    """The kind of answer that it takes, and a digest of what the answer is about."""


class InterruptSignal(BaseException):
    """Carries interrupts out to the loop. It is not an `Exception`, so that no `except Exception` swallows it."""

    def __init__(self, waiting: tuple[Waiting, ...]) -> None:
        self.waiting = waiting
        super().__init__(", ".join(item.interrupt.id for item in waiting))


def ask(frame: Any, owner: str, info: Any, state: Any, expects: str | type, about: str = "") -> Any:
    """Return the answer to the next interrupt of `owner`, or raise the signal that asks for it.

    An answer holds for what was asked: with another `about` than it was given for, it is asked for again.
    """
    run = frame.run
    address = f"{run.address}/{frame.place}/{owner}/{frame.count(owner)}"
    wanted = expects if isinstance(expects, str) else expects.__name__
    if wanted not in ("", "approval", *_EXPECTED):
        raise ResumeError(f"interrupt cannot expect {wanted!r}; known: {', '.join((*_EXPECTED, 'approval'))}")
    terms = f"{wanted} {about}".rstrip()
    if address in run.state.answers and run.state.asked.get(address, terms) == terms:
        return run.state.answers[address]
    for value in (info, state):
        encode_value(value)  # refused now rather than when it must be stored
    asked = Interrupt(id=address, info=info, run_path=run.path, call_id=frame.call_id, name=frame.tool)
    raise InterruptSignal((Waiting(asked, state, terms),))


class Rejected(Exception):
    """A call was not approved; the text is for the model."""


class Approval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer to a tool that asks for approval: yes or no, and why.

    >>> Approval.of({"approved": False, "reason": "too dear"})
    Approval(approved=False, reason='too dear')
    """

    approved: bool
    reason: str = ""

    @classmethod
    def of(cls, data: Any) -> "Approval | None":
        """Return what `data` says: a bool, or a mapping with `approved` and perhaps `reason`."""
        if isinstance(data, bool | cls):
            return cls(data) if isinstance(data, bool) else data
        try:
            return msgspec.convert(data, cls)
        except msgspec.ValidationError:
            return None


def check_answer(address: str, terms: str, data: Any) -> None:
    """Raise `ResumeError` if `data` is not the kind of answer that the interrupt takes."""
    expects = terms.partition(" ")[0]
    if expects == "approval":
        if Approval.of(data) is None:
            kind = f"a mapping of {list(cast('Any', data))}" if isinstance(data, dict) else type(data).__name__
            raise ResumeError(
                f"{address} asks for approval: answer True, False or {{'approved': …, 'reason': …}}, and nothing else; "
                f"this is {kind}"
            )
        return
    kinds = _EXPECTED.get(expects)
    if kinds is not None and (not isinstance(data, kinds) or (isinstance(data, bool) and bool not in kinds)):
        raise ResumeError(f"{address} expects {expects}, not {type(data).__name__}")
