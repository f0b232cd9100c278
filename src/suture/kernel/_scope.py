"""A run's own things while it runs, and how code inside it finds them.

`Scope` is the only mutable record of a run. It is found through one context variable, which holds a `Frame`:
where in the run the code at hand stands. The loop sets it once and moves it along; every tool call has a copy
of the context, and a frame of its own.
"""

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from suture.errors import InputError, NotInRunError
from suture.events import Event, HistoryRewritten
from suture.kernel._buffer import Emitter
from suture.kernel._journal import Journal
from suture.kernel._model import Model
from suture.kernel._spec import Fit, Spec
from suture.kernel._typed import encode_value
from suture.language import Language
from suture.messages import History, TokenUsage, ToolInfo, ToolResult
from suture.repair import Cause
from suture.tools import Tool
from suture.wires import Call, ChatWire

__all__ = [
    "FRAME",
    "Batch",
    "Frame",
    "SafePoint",
    "Scope",
    "current_frame",
    "delete_run_local_value",
    "get_run_local_value",
    "get_session_value",
    "note_on_result",
    "run_language",
    "run_scratch",
    "send_event",
    "set_run_local_value",
    "set_session_value",
    "tell_rewrite",
    "told_error",
]

T = TypeVar("T")


class SafePoint(BaseException):
    """The run was asked to stop at a point that it has reached."""


class Batch:
    """The tool calls of one turn, by their numbers."""

    __slots__ = ("causes", "ended", "held", "refused", "started")

    def __init__(self) -> None:
        self.started: set[int] = set()
        self.ended: dict[int, ToolResult] = {}
        self.causes: dict[int, Cause] = {}
        """Why calls that started will not end."""
        self.refused: dict[int | str, str] = {}
        """Calls that are not to be run, and what is said of them."""
        self.held: dict[int, Any] = {}
        """The senders of calls that end the run: their end is told last."""


@dataclass(slots=True, eq=False)
class Scope:
    """All that one run has and knows."""

    spec: Spec
    run_id: str
    address: str
    """Its place among all runs: its agent's name; inside another run, behind that call's address."""
    path: tuple[str, ...]
    language: Language
    streaming: bool = True
    checkpoint_id: str | None = None
    emitter: Emitter | None = None
    journal: Journal | None = None
    outer: "Scope | None" = None
    """The run that this one is a tool call of."""

    # What lasts from turn to turn, and is stored.
    history: History[Any] = field(default_factory=History[Any])
    tool_infos: tuple[ToolInfo, ...] = ()
    deferred_tool_infos: tuple[ToolInfo, ...] = ()
    edited_infos: bool = False
    turn: int = 0
    usage: TokenUsage = field(default_factory=TokenUsage)
    last_usage: TokenUsage | None = None
    """What the last reply cost, where it said so."""
    usage_before: TokenUsage = field(default_factory=TokenUsage)
    """What an earlier process had used."""
    tool_calls: int = 0
    refused_calls: int = 0
    """How many calls the budget did not pay for."""
    corrections: int = 0
    """How often an answer was sent back."""
    resumes: int = 0
    values: dict[str, Any] = field(default_factory=dict[str, Any])
    session: dict[str, Any] = field(default_factory=dict[str, Any])
    answers: dict[str, Any] = field(default_factory=dict[str, Any])
    """What was said to interrupts, by their ids."""
    states: dict[str, Any] = field(default_factory=dict[str, Any])
    """What interrupts keep for when they are answered."""
    batch: Batch = field(default_factory=Batch)

    # What this process alone knows.
    instruction: str = ""
    tools: dict[str, Tool[..., Any]] = field(default_factory=dict[str, "Tool[..., Any]"])
    return_directly: frozenset[str] = frozenset()
    sticky_model: Model[Any] | None = None
    """The model that a failover has come to."""
    fits: dict[int, Fit] = field(default_factory=dict[int, Fit])
    scratch: dict[Any, Any] = field(default_factory=dict[Any, Any])
    ids: dict[int, tuple[Any, str]] = field(default_factory=dict[int, tuple[Any, str]])
    """Messages by identity, and the ids that events gave them."""
    calls: Sequence[Call] | None = None
    """The calls of the last reply, once somebody has looked."""
    partial: Any = None
    """The message of a stream that was cut."""
    dependencies: tuple[object, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tool_options: Mapping[str, Any] = field(default_factory=dict[str, Any])
    after_tool_calls: Callable[[Any], Any] | None = None
    stop_at: set[str] = field(default_factory=set[str])
    """The points at which the run is to be cancelled."""
    inner_stop_at: set[str] = field(default_factory=set[str])
    """Those of them that hold for the runs inside it, too."""
    children: set[Any] = field(default_factory=set[Any])
    """Runs of agents that are tools of this one, while they run."""
    reached: int = 0
    """How many middlewares have had their `before_agent`."""
    waiting: tuple[Any, ...] = ()
    """What the run waits for, once it is interrupted."""
    output: Any = None
    output_message: Any = None

    wire: ChatWire = field(init=False)
    """The wire of all messages."""

    def __post_init__(self) -> None:
        self.wire = self.spec.wire

    @property
    def model(self) -> Model[Any]:
        """The model to ask."""
        return self.sticky_model or self.spec.model

    @property
    def root(self) -> "Scope":
        """The outermost run, whose session is everybody's."""
        return self if self.outer is None else self.outer.root

    def check_stop(self) -> None:
        """Raise where the run is to stop at once: somebody may have swallowed the cancellation."""
        if "now" in self.stop_at:
            raise SafePoint

    def forget_run(self) -> None:
        """Forget what belongs to one run of the conversation: another begins."""
        self.batch, self.turn, self.usage, self.tool_calls = Batch(), 0, TokenUsage(), 0
        self.refused_calls = self.corrections = self.resumes = 0
        self.edited_infos, self.partial, self.output_message = False, None, None
        self.values, self.answers, self.states = {}, {}, {}

    def number(self, run: int) -> None:
        """Take the address of the conversation's run number `run`: no two of its runs share one."""
        head, _, name = self.address.rpartition("/")
        name = name.partition("#")[0]
        self.address = f"{head}/{name}" if head else name
        if run > 1:
            self.address += f"#{run}"

    def last_calls(self) -> Sequence[Call]:
        """Return the calls of the last message."""
        if self.calls is None:
            self.calls = self.wire.calls(self.history[-1]) if len(self.history) else ()
        return self.calls


class Frame:
    """Where in a run code stands: the turn, the spot in it (a call's number, or a hook), and whose code it is.

    The loop's own frame is moved along from hook to hook. A tool call's frame is told of each wrapper's work as it is
    begun; whose code is at hand is then asked for when somebody wants to know, so it costs a call next to nothing.
    """

    __slots__ = ("call_id", "counts", "extra", "layers", "name", "scope", "sender", "spot", "tool", "turn")

    def __init__(self, scope: Scope, turn: int, spot: int | str, name: str, call_id: str = "", tool: str = "") -> None:
        self.scope, self.turn, self.spot, self.name = scope, turn, spot, name
        self.call_id, self.tool = call_id, tool
        self.counts: dict[str, int] = {}
        self.layers: list[tuple[str, Any]] = []
        self.sender: Any = None
        """Who tells of the tool call, if anybody listens."""
        self.extra: dict[str, Any] = {}
        """What wrappers noted on the call's result."""

    @property
    def place(self) -> str:
        """The turn and the spot, as they stand in addresses."""
        return f"{self.turn}/{self.spot}"

    @property
    def owner(self) -> str:
        """Whose code is at hand: the innermost work that is being executed right now."""
        for name, work in reversed(self.layers):
            if getattr(work, "ag_running", False) or getattr(work, "cr_running", False):
                return name
        return self.name

    def move(self, turn: int, spot: str, name: str = "") -> None:
        """Stand elsewhere from now on; interrupts are counted anew there."""
        self.turn, self.spot, self.name = turn, spot, name
        if self.counts:
            self.counts.clear()

    def next_address(self, owner: str) -> str:
        """Return the address of the owner's next interrupt; the same one each time the place is run again."""
        count = self.counts.get(owner, 0)
        self.counts[owner] = count + 1
        return f"{self.scope.address}/{self.place}/{owner}/{count}"


FRAME: ContextVar[Frame] = ContextVar("suture_frame")
"""Where the code at hand stands."""


def current_frame(what: str = "this") -> Frame:
    """Return the frame of the code that asks; raise `NotInRunError` outside of a run."""
    try:
        return FRAME.get()
    except LookupError:
        raise NotInRunError(
            f"{what} works inside a run only: in a hook, a wrapper or a tool of a running agent"
        ) from None


def set_run_local_value(key: str, value: Any) -> None:
    """Keep a value for the rest of this run; it survives interrupt and resume.

    It is stored as it is now. A value that cannot be stored is refused; `register_type` makes a class storable.

    >>> set_run_local_value("visits", 3)
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: set_run_local_value works inside a run only: in a hook, a wrapper or a tool of a \
running agent
    """
    scope = current_frame("set_run_local_value").scope
    _keep(scope, scope.values, "value", key, value)


def get_run_local_value(key: str) -> tuple[Any, bool]:
    """Return a value of this run, and whether there is one.

    >>> get_run_local_value("visits")
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: get_run_local_value works inside a run only: in a hook, a wrapper or a tool of a \
running agent
    """
    values = current_frame("get_run_local_value").scope.values
    return values.get(key), key in values


def delete_run_local_value(key: str) -> None:
    """Forget a value of this run; one that is not there is no error.

    >>> delete_run_local_value("visits")
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: delete_run_local_value works inside a run only: in a hook, a wrapper or a tool of a \
running agent
    """
    scope = current_frame("delete_run_local_value").scope
    if key in scope.values:
        del scope.values[key]
        if scope.journal is not None:
            scope.journal.drop_value(key)


def set_session_value(key: str, value: Any) -> None:
    """Keep a value for this run and all agents that run inside it as tools; it survives interrupt and resume.

    >>> set_session_value("user", "ada")
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: set_session_value works inside a run only: in a hook, a wrapper or a tool of a \
running agent
    """
    root = current_frame("set_session_value").scope.root
    _keep(root, root.session, "session", key, value)


def get_session_value(key: str) -> tuple[Any, bool]:
    """Return a value of the session, and whether there is one.

    >>> get_session_value("user")
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: get_session_value works inside a run only: in a hook, a wrapper or a tool of a \
running agent
    """
    values = current_frame("get_session_value").scope.root.session
    return values.get(key), key in values


def note_on_result(**extra: Any) -> None:
    """Note something in the `extra` of the result of the tool call at hand, whatever the kind of the tool.

    >>> note_on_result(origin="cache")
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: note_on_result works inside a run only: in a hook, a wrapper or a tool of a \
running agent
    """
    current_frame("note_on_result").extra.update(extra)


def run_language() -> Language:
    """Return the language that this run is pinned to.

    >>> run_language()
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: run_language works inside a run only: in a hook, a wrapper or a tool of a running agent
    """
    return current_frame("run_language").scope.language


def run_scratch(factory: Callable[[], T]) -> T:
    """Return what `factory` made for this run, making it on first use. Never stored: caches live here.

    >>> run_scratch(list)
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: run_scratch works inside a run only: in a hook, a wrapper or a tool of a running agent
    """
    scratch = current_frame("run_scratch").scope.scratch
    try:
        return cast("T", scratch[factory])
    except KeyError:
        made = scratch[factory] = factory()
        return made


def send_event(event: Event) -> None:
    """Send an event of your own (`Custom`, or any other) to whoever reads the run's events.

    >>> from suture.events import Custom
    >>> send_event(Custom("progress", {"done": 3}))
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: send_event works inside a run only: in a hook, a wrapper or a tool of a running agent
    """
    emitter = current_frame("send_event").scope.emitter
    if not isinstance(event, Event):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"send_event takes an event, such as Custom(name, data), not {type(event).__name__}")
    if emitter is not None:
        emitter.forward(event)


def told_error(scope: Scope, error: BaseException | None) -> str:
    """Return an error as an event may show it."""
    return str(scope.spec.shown(f"{type(error).__name__}: {error}")) if error is not None else ""


def tell_rewrite(
    scope: Scope, turn: int, by: str, after: int, report: Mapping[str, Any] | None = None, before: int | None = None
) -> None:
    """Tell that somebody changed the history."""
    if scope.emitter is not None:
        was = len(scope.history) if before is None else before
        scope.emitter.send(HistoryRewritten, turn=turn, middleware=by, before=was, after=after, report=report)


def _keep(scope: Scope, values: dict[str, Any], kind: str, key: str, value: Any) -> None:
    if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(f"a key is a string, not {type(key).__name__}")
    encoded = encode_value(value)
    values[key] = value
    if scope.journal is not None:
        scope.journal.keep_value(kind, key, encoded)
