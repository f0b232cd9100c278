"""The stored state of a run, its result, and its interrupts. A new stored fact is a new field of `RunState`."""

from collections.abc import Mapping
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

    from suture.messages import Message

    Out = TypeVar("Out", default=str)
    Msg = TypeVar("Msg", default=Message)
else:
    from typing import TypeVar, TypeVarTuple, Unpack

    Out = TypeVar("Out")
    Msg = Unpack[TypeVarTuple("Msg")]  # may be left out: a plain one has no default before Python 3.13

VERSION = 2
"""The version of journals that this release writes."""
DELETED: Any = object()
"""Stands for a value that a tool call has deleted."""


class Kept(msgspec.Struct, frozen=True):
    """A value of a run, and the form in which it was stored when it was set, from which a resume restores it."""

    value: Any
    form: Any


class RunState(msgspec.Struct, kw_only=True, omit_defaults=True):
    """All that is stored of a run besides its messages. A new stored fact is a new field here; see `journal.py`."""

    version: int = VERSION
    """The version of its last record."""
    run_id: str = ""
    agent: str = ""
    wire: str = ""
    language: Language = "en"
    streaming: bool = True
    driver: str = ""
    """The name of the workflow engine that drives the run; empty if the process itself does."""
    live: bool = False
    """Whether its events are stored for a reader in another process."""
    key: str = ""
    """The key of its input, so that the same input is not run twice."""
    runs: int = 1
    """How many runs this conversation has had, including this one."""
    entered: bool = False
    """Whether the run has its input, which is so once all `before_agent` hooks are done."""
    phase: Literal["model", "after", "tools", "gathered", "end"] = "model"
    turn: int = 0
    is_last: bool = False
    ends: bool = False
    message_id: str = ""
    """The id of the last reply in events."""
    usage: TokenUsage = TokenUsage()
    last_usage: TokenUsage | None = None
    """The usage of the last reply, if it reported one."""
    tool_calls: int = 0
    """How many calls have begun before this turn; the turn's own are added when they are answered."""
    refused_calls: int = 0
    """How many calls the budget did not pay for."""
    corrections: int = 0
    """How often an answer of the wrong form was sent back."""
    resumes: int = 0
    tool_infos: tuple[ToolInfo, ...] | None = None
    """The tools as the model sees them, if a hook changed that."""
    deferred_tool_infos: tuple[ToolInfo, ...] = ()
    outcome: str = ""
    """How the run ended last; empty while it runs, and after a crash."""
    error: str = ""
    """The text of the error that the run failed with."""
    ending: str = ""
    """A random value that makes the record of each ending unique."""
    partial: Any = None
    """The message of a stream that was cut."""
    output: int | None = None
    """The index of the message that holds the output."""
    waiting: dict[str, str] = {}
    """The interrupts that the run waits for, by id, and the ids of their calls."""
    values: dict[str, Kept] = {}
    session: dict[str, Any] = {}
    answers: dict[str, Any] = {}
    """The answers to interrupts, by their ids."""
    states: dict[str, Any] = {}
    """The state that interrupts keep until they are answered."""
    infos: dict[str, Any] = {}
    """What interrupts show to whoever answers: info, name of the tool, path of the run."""
    asked: dict[str, str] = {}
    """All interrupts that the run ever waited for, and the kind of answer that they take."""
    started: dict[int, bool] = {}
    """The calls of the turn that have begun."""
    ended: dict[int, ToolResult] = {}
    call_values: dict[int, dict[str, Any]] = {}
    """The values that calls of the turn have set; they become the run's when all calls are answered."""
    causes: dict[int, Cause] = {}
    """Why calls of the turn that started will never end."""


OF_THE_TURN = ("started", "ended", "call_values", "causes")
MAPPINGS = frozenset(("values", "session", "answers", "states", "infos", "asked", "waiting", *OF_THE_TURN))
"""The fields of a `RunState` that change entry by entry."""


def copy_state(state: RunState) -> RunState:
    """Return a copy that shares nothing mutable; values are as they would be after storing and reading them."""
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
    """A run at one point, in memory; a run without a store is resumed from it."""

    state: RunState
    history: History[Any]
    ids: Mapping[int, tuple[Any, str]]
    """Messages by `id()`, and their ids in events."""
    nested: Mapping[str, "Snapshot"] = FrozenMap()
    """The runs inside it, by their addresses."""


def take_values(state: RunState) -> None:
    """Apply the values that the calls of a turn have set or deleted to the run, in call order."""
    for index in sorted(state.call_values):
        for key, value in state.call_values[index].items():
            if value is DELETED:
                state.values.pop(key, None)
            else:
                state.values[key] = value


def subtract_usage(new: TokenUsage, old: TokenUsage) -> TokenUsage:
    """Return the difference of two usages."""
    return TokenUsage(
        **{name: max(0, getattr(new, name) - getattr(old, name)) for name in TokenUsage.__struct_fields__}
    )


class RunResult(msgspec.Struct, Generic[Out, Msg], frozen=True, kw_only=True):
    """The result of a run.

    >>> RunResult(output="done", messages=[], outcome=Outcome.FINISHED).output
    'done'
    """

    output: Out
    """The final text, or the value of `output_type`; `None` if there is none."""
    messages: list[Msg]
    """The whole history: the input, the replies and every result. The list is yours: what you change in it counts."""
    outcome: Outcome
    usage: TokenUsage = TokenUsage()
    interrupts: tuple[Interrupt, ...] = ()
    """The interrupts that the run waits for, if it was interrupted."""
    run_id: str = ""
    checkpoint_id: str | None = None
    session: Mapping[str, Any] = FrozenMap()
    """The session values at the end."""
    message_ids: tuple[str, ...] = ()
    """For each message, its id in events; empty for input."""
    error: BaseException | None = None
    """The error that the run failed with."""
    escalated: bool = False
    """Whether a cancellation that waited for a safe point reached its timeout."""
    cleanup_errors: tuple[Exception, ...] = ()
    """The errors of `after_agent` hooks; they never replace the outcome."""
    snapshot: Any = None
    """The state of a run without a store, for `agent.resume(result)`."""

    def __repr__(self) -> str:
        """Show how it ended and how much there is, but no content of messages."""
        waits = f", waits for {', '.join(item.id for item in self.interrupts)}" if self.interrupts else ""
        return f"<RunResult: {self.outcome.value}, {plural(len(self.messages), 'message')}{waits}>"


# --- interrupts: code inside a run asks somebody outside, and the run stops until the answer comes -------------------
#
# The id of an interrupt is its address (run path, turn, call, frame, occurrence), so it stays the same when that code
# runs again. On resume the code runs again from the top, and `interrupt` returns the answer.

_EXPECTED: dict[str, tuple[type, ...]] = {
    "bool": (bool,),
    "int": (int,),
    "float": (float, int),
    "str": (str,),
    "list": (list, tuple),
    "dict": (dict,),
}


class Waiting(msgspec.Struct, frozen=True):
    """An interrupt without an answer yet, with the state that it keeps and the kind of answer that it takes."""

    interrupt: Interrupt
    state: Any
    terms: str
    """The kind of answer that it takes, and a digest of the question."""


class InterruptSignal(BaseException):
    """Carries interrupts out to the loop. It is not an `Exception`, so that no `except Exception` swallows it."""

    def __init__(self, waiting: tuple[Waiting, ...]) -> None:
        self.waiting = waiting
        super().__init__(", ".join(item.interrupt.id for item in waiting))


def ask(frame: Any, owner: str, info: Any, state: Any, expects: str | type, about: str = "") -> Any:
    """Return the answer to the next interrupt of `owner`, or raise the signal that stops the run for it.

    An answer only counts for the same question: if `about` has changed since it was given, it is asked for again.
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
    """A call was not approved. The text is for the model."""


class Approval(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An answer to a tool that asks for approval: yes or no, and why.

    >>> Approval.of({"approved": False, "reason": "too dear"})
    Approval(approved=False, reason='too dear')
    """

    approved: bool
    reason: str = ""

    @classmethod
    def of(cls, data: Any) -> "Approval | None":
        """Return `data` as an approval: a bool, or a mapping with `approved` and perhaps `reason`."""
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
