"""A run while it is executed: its settings, its events, what only this process knows, and how its code finds it.

A context variable holds a `Frame`, which says where in the run the current code is. Every tool call has its own.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterator, Mapping, MutableMapping, Sequence
from contextvars import ContextVar
from operator import attrgetter
from os import urandom
from threading import Lock, get_ident
from time import time
from typing import Any, TypeVar, overload

import msgspec

from suture._text import replace_surrogates
from suture.errors import InputError, NotInRunError
from suture.events import Event, HistoryRewritten
from suture.kernel.answers import OutputRule
from suture.kernel.config import Budget, Callbacks, Instruction, ModelFailoverConfig, ModelRetryConfig
from suture.kernel.middleware import Stack
from suture.kernel.requests import Model
from suture.kernel.run_state import DELETED, Kept, RunState, SafePoint, Snapshot, ask, copy_state
from suture.kernel.values import encode_value
from suture.language import Language
from suture.messages import FrozenMap, History, TokenUsage, ToolInfo
from suture.tools import RunContext, Tool
from suture.wires import Call, ChatWire

T = TypeVar("T")
LIMIT = 256
"""How many unread events there may be before a model's stream waits for the reader."""
_SPENDING = Lock()
"""Held while usage is added to that of a run, since tools in threads may do so at once."""


class Spec(msgspec.Struct, frozen=True, eq=False):
    """An agent as the kernel sees it: settings that never change, shared by all of its runs."""

    name: str
    instruction: Instruction
    model: Model[Any]
    wire: ChatWire
    tools: tuple[Tool[..., Any], ...]
    return_directly: frozenset[str]
    stack: Stack
    rings: Any
    """The compiled rings around the model and the tools."""
    fit_options: Mapping[str, Any]
    """The options for repairing the pairing of a request."""
    repairs: bool = True
    """Whether the history is paired again when a run ends."""
    max_iterations: int = 20
    answers_at_limit: bool = False
    budget: Budget | None = None
    retry: ModelRetryConfig | None = None
    failover: ModelFailoverConfig | None = None
    sequential: bool = False
    raises_tool_errors: bool = False
    format_tool_error: Callable[[Exception], str] | None = None
    callbacks: tuple[Callbacks, ...] = ()
    output_key: str | None = None
    output: OutputRule | None = None
    input_builder: Callable[[str, Sequence[Any]], Any] | None = None
    store: Any = None
    """The `suture.stores.Store` that journals are kept in."""
    redact: Callable[[Any], Any] | None = None
    shorten: Callable[..., Any] | None = None  # `Compaction.shorten`, for a refused state

    def shown(self, value: Any) -> Any:
        """Return `value` as it may leave the run, in an event or to a store."""
        return value if self.redact is None else self.redact(value)


# --- events on their way to the one reader of a run -----------------------------------------------
#
# Nothing is lost: events wait until they are read. Beyond `LIMIT` unread ones a model's stream waits for the reader; a
# tool never does.


class Buffer:
    """A queue with one reader."""

    __slots__ = ("_loop", "_reader", "_thread", "_waiting", "closed", "dropped", "items", "lifted", "sequence")

    def __init__(self) -> None:
        self.items: deque[Event] = deque()
        self.closed = False
        self.lifted = False
        """Whether writers no longer wait for the reader, because the run is awaited instead of read."""
        self.dropped = False
        """Whether nobody will read the events."""
        self.sequence = 0
        self._loop = asyncio.get_running_loop()
        self._thread = get_ident()
        self._reader: asyncio.Future[None] | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    def put(self, event: Event) -> None:
        """Add an event and number it. After the last one nothing is added."""
        if self.closed or self.dropped:
            return
        if get_ident() != self._thread:
            self._loop.call_soon_threadsafe(self.put, event)
            return
        msgspec.structs.force_setattr(event, "sequence", self.sequence)
        self.sequence += 1
        self.items.append(event)
        self._wake(self._reader)

    def close(self) -> None:
        """Mark the end: no more events will come."""
        self.closed = True
        self._wake(self._reader)

    def lift(self, *, keep: bool = True) -> None:
        """Stop waiting for the reader; without one (`keep=False`) keep no events either."""
        self.lifted = True
        if not keep:
            self.dropped = True
            self.items.clear()
        self._wake_all()

    async def next(self) -> Event | None:
        """Return the next event; `None` after the last."""
        while not self.items:
            if self.closed:
                return None
            self._reader = self._loop.create_future()
            try:
                await self._reader
            finally:
                self._reader = None
        event = self.items.popleft()
        if self._waiting and len(self.items) <= LIMIT:
            self._wake_all()
        return event

    async def wait_for_room(self) -> None:
        """Wait until the reader has caught up."""
        while len(self.items) > LIMIT and not self.lifted:
            room: asyncio.Future[None] = self._loop.create_future()
            self._waiting.add(room)
            try:
                await room
            finally:
                self._waiting.discard(room)

    def _wake_all(self) -> None:
        for room in self._waiting:
            self._wake(room)

    @staticmethod
    def _wake(future: "asyncio.Future[None] | None") -> None:
        if future is not None and not future.done():
            future.set_result(None)


class Emitter:
    """Puts the events of one run into a buffer, with that run's name and path on them."""

    __slots__ = ("agent", "buffer", "path", "run_id")

    def __init__(self, buffer: Buffer, agent: str, path: tuple[str, ...], run_id: str) -> None:
        self.buffer, self.agent, self.path, self.run_id = buffer, agent, path, run_id

    def send(self, kind: type[Event], **fields: Any) -> None:
        """Make an event and put it into the buffer."""
        self.buffer.put(kind(agent=self.agent, run_path=self.path, run_id=self.run_id, time=time(), **fields))

    def forward(self, event: Event) -> None:
        """Put an event that was made elsewhere into the buffer."""
        self.buffer.put(
            msgspec.structs.replace(event, agent=self.agent, run_path=self.path, run_id=self.run_id, time=time())
        )


def new_run_id() -> str:
    """Return an id that no other run has."""
    return urandom(8).hex()


class Execution:
    """A run in this process; what is stored of it is in `state` and `history`."""

    language: Any = property(attrgetter("state.language"))
    checkpoint_id: str | None = None
    opened: Any = None
    """The journal, for which this process holds the lease."""
    lease: Any = None
    """The lease that a session holds during its run."""
    instruction: str = ""
    return_directly: frozenset[str] = frozenset()
    tool_infos: tuple[ToolInfo, ...] = ()
    has_joined: bool = False
    """Whether `before_agent` has run in this process already; for a run that an engine drives."""
    sent_infos: tuple[ToolInfo, ...] = ()
    """The tools as the model sees them in this attempt."""
    deps: Any = None
    options: Mapping[str, Any] = FrozenMap()
    tool_options: Mapping[str, Any] = FrozenMap()
    after_tool_calls: Callable[[Any], Any] | None = None
    depth: int = 0
    """How deep this run is nested, while it runs: a cancellation passes through all levels."""
    reached: int = 0
    """How many middlewares have run their `before_agent`."""
    usage_before: TokenUsage = TokenUsage()
    """The usage at the time this process loaded the run."""
    output: Any = None
    output_message: Any = None

    def __init__(self, spec: Spec, state: RunState, outer: "Execution | None" = None) -> None:
        self.spec, self.state, self.outer = spec, state, outer
        self.emitter: Emitter | None = None
        self.journal: Any = None  # not a class attribute like the others: each step reads these two often
        self.fresh_state = state
        """The input of a new run."""
        self.wire = spec.wire
        self.history: History[Any] = History()
        self.address = spec.name
        """Its address: its agent's name, and inside another run the address of the call in front of it."""
        self.path: tuple[str, ...] = (spec.name,)
        self.model: Model[Any] = spec.model
        """The model to ask: the one that the last failover chose."""
        self.asking: Model[Any] = spec.model
        """The model that is being asked in this attempt."""
        self.replies: list[Any] = []
        """The replies of models in this attempt; wrappers may pass on something else."""
        self.tools: dict[str, Tool[..., Any]] = {}
        self.fits: dict[int, Any] = {}
        self.cache: dict[Any, Any] = {}
        self.ids: dict[int, tuple[Any, str]] = {}
        """Messages by identity, and the ids that events gave them."""
        self.refused: dict[int, str] = {}
        """Calls of the turn that must not run, and the texts of their results."""
        self.held: dict[int, Any] = {}
        """The events of calls that end the run, which are sent last."""
        self.stop_at: set[str] = set()
        """The points at which the run is to be cancelled."""
        self.inner_stop_at: set[str] = set()
        """Those of them that also apply to the runs inside it."""
        self.children: set[Any] = set()
        """The runs inside this one, while they run."""
        self._last: tuple[Any, Sequence[Call]] = (None, ())
        self.snapshots: dict[str, Snapshot] = {}
        """If there is no store, the runs inside this one whose calls have not ended."""

    @classmethod
    def new(cls, spec: Spec, language: Language, *, outer: "Execution | None" = None, **fields: Any) -> "Execution":
        """Return a run that has not begun, with an id that no other run has; `fields` are those of its state."""
        state = RunState(run_id=new_run_id(), agent=spec.name, wire=spec.wire.name, language=language, **fields)
        return cls(spec, state, outer)

    def restore(self, snapshot: Snapshot) -> None:
        """Restore the run from a snapshot."""
        self.state, self.history = copy_state(snapshot.state), snapshot.history
        if not self.wire.native:  # its messages may have changed in place since they were checked
            self.history = History(snapshot.history)
        self.snapshots, self.ids = dict(snapshot.nested), dict(snapshot.ids)

    @property
    def root(self) -> "Execution":
        """The outermost run, whose session all nested runs share."""
        return self if self.outer is None else self.outer.root

    def update(self, **changes: Any) -> None:
        """Change fields of the stored state."""
        for name, value in changes.items():
            setattr(self.state, name, value)
        if self.journal is not None:
            self.journal.note_state()

    def spend(self, usage: TokenUsage) -> None:
        """Count usage that was not in a reply of this run: a rejected attempt, a summary, an agent inside it."""
        if self.journal is not None:
            self.journal.spend(usage)
            return
        with _SPENDING:
            self.state.usage = self.state.usage + usage

    def put(self, field: str, entries: Mapping[Any, Any]) -> None:
        """Set entries of a stored mapping."""
        getattr(self.state, field).update(entries)
        if self.journal is not None:
            self.journal.note_entries(field, entries)

    def drop(self, field: str, keys: Sequence[Any]) -> None:
        """Remove entries of a stored mapping."""
        mapping = getattr(self.state, field)
        for key in keys:
            mapping.pop(key, None)
        if self.journal is not None:
            self.journal.note_dropped(field, keys)

    def forget_turn(self) -> None:
        """Forget the calls of the turn after they were answered. It needs no record: replaying does the same."""
        state = self.state
        self.refused, self.held = {}, {}
        state.started, state.ended, state.call_values, state.causes = {}, {}, {}, {}
        root = self if self.outer is None else self.root
        if root.snapshots:
            inside = f"{self.address}/{state.turn}/"
            root.snapshots = {key: value for key, value in root.snapshots.items() if not key.startswith(inside)}

    def last_calls(self) -> Sequence[Call]:
        """Return the calls of the last message, which is read only once."""
        history = self.history
        if history is not self._last[0]:
            self._last = (history, self.wire.calls(history.log[history.length - 1]) if history.length else ())
        return self._last[1]

    def check_stop(self) -> None:
        """Raise if the run must stop at once, in case some code swallowed the cancellation."""
        if "now" in self.stop_at:
            raise SafePoint

    def place_address(self) -> None:
        """Number the address, so that no two runs of a conversation share one."""
        head, _, name = self.address.rpartition("/")
        name = name.partition("#")[0]
        self.address = f"{head}/{name}" if head else name
        if self.state.runs > 1:
            self.address += f"#{self.state.runs}"

    def tell_rewrite(
        self, turn: int, by: str, before: int, after: int, report: Mapping[str, Any] | None = None
    ) -> None:
        """Send and note the event that the history was rewritten."""
        if self.journal is not None:
            self.journal.note_event("rewrite", by)
        if self.emitter is not None:
            self.emitter.send(HistoryRewritten, turn=turn, by=by, before=before, after=after, report=report)

    def error_text(self, error: BaseException | None) -> str:
        """Return the text of an error, as an event may show it."""
        return "" if error is None else replace_surrogates(str(self.spec.shown(describe_error(error))))


def is_cancelled(run: Execution) -> bool:
    """Return whether a `CancelledError` means the run itself, rather than the work of a component."""
    task = asyncio.current_task()
    return bool(run.stop_at) or task is None or bool(task.cancelling())


def describe_error(error: BaseException) -> str:
    """Return the class and text of an error; only the class if the text is empty or `str` fails."""
    name = type(error).__name__
    try:
        return f"{name}: {error}".removesuffix(": ")
    except Exception:  # noqa: BLE001 - its own `__str__` failed
        return name


class _Stored(MutableMapping[str, Any]):
    """The values of a run or its session, stored when they are set; a tool call also sees what it has set itself."""

    __slots__ = ("_field", "_own", "_run")

    def __init__(self, run: Execution, field: str, own: dict[str, Any] | None = None) -> None:
        self._run, self._field, self._own = run, field, own

    def __getitem__(self, key: str) -> Any:
        own = self._own
        entry = own[key] if own is not None and key in own else getattr(self._run.state, self._field)[key]
        if entry is DELETED:
            raise KeyError(key)
        return entry.value if isinstance(entry, Kept) else entry

    def __setitem__(self, key: str, value: Any) -> None:
        if not isinstance(key, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"a key is a string, not {type(key).__name__}")
        form = encode_value(value)  # refuses the value now, rather than when it must be stored
        entry = Kept(value, form) if self._field == "values" else value
        if self._own is None:
            self._run.put(self._field, {key: entry})
        else:
            self._own[key] = entry

    def __delitem__(self, key: str) -> None:
        self[key]
        if self._own is None:
            self._run.drop(self._field, [key])
        else:
            self._own[key] = DELETED

    def __iter__(self) -> Iterator[str]:
        base, own = getattr(self._run.state, self._field), self._own or {}
        return iter([key for key in {**base, **own} if own.get(key) is not DELETED])

    def __len__(self) -> int:
        return sum(1 for _ in self)


class Frame(RunContext[Any]):
    """A place in a run (the turn, the spot in it, and whose code runs there), and the context of the code there."""

    __slots__ = (
        "agents_inside",
        "call_id",
        "counts",
        "own_values",
        "owner",
        "request",
        "run",
        "sender",
        "spot",
        "tool",
        "turn",
        "unstoppable",
    )

    deps: Any = property(attrgetter("run.deps"))
    values: Any = property(lambda self: _Stored(self.run, "values", self.own_values))
    session: Any = property(lambda self: _Stored(self.run.root, "session"))
    cache: Any = property(attrgetter("run.cache"))
    agent: Any = property(attrgetter("run.spec.name"))
    model: Any = property(attrgetter("run.asking"))
    usage: Any = property(attrgetter("run.state.usage"))
    run_id: Any = property(attrgetter("run.state.run_id"))
    language: Any = property(attrgetter("run.language"))
    wire: Any = property(attrgetter("run.wire.name"))

    def __init__(
        self,
        run: Execution,
        turn: int = 0,
        spot: int | str = "run",
        owner: str = "run",
        call_id: str = "",
        tool: str = "",
    ) -> None:
        self.run, self.turn = run, turn
        self.spot = spot
        """The number of a call, or the name of a hook."""
        self.owner = owner
        """The middleware or tool whose code runs."""
        self.call_id, self.tool = call_id, tool
        self.counts: dict[str, int] = {}
        """How many interrupts and nested agents each owner has had at each place."""
        self.request: Any = None
        """The tool call, as the model made it."""
        self.unstoppable = False
        """Whether it is too late to cancel the tool: it has ended, or part of it runs in a thread."""
        self.agents_inside = 0
        """How many agents inside the tool have not ended; a tool can end before those that it runs side by side."""
        self.sender: Any = None
        """The sender of the events of the model or tool call, if anybody listens."""
        self.own_values: dict[str, Any] | None = {} if spot.__class__ is int else None
        """The values that a tool call has set; they become the run's when all calls of the turn are answered."""

    @property
    def place(self) -> str:
        """The turn and the spot, as written in addresses."""
        return f"{self.turn}/{self.spot}"

    @property
    def address(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The agent's name; inside another run, after the address of the call."""
        return self.agent if self.run.outer is None else self.run.address

    @property
    def conversation_id(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The checkpoint's id, if there is one, else the run's."""
        return self.run.checkpoint_id or self.run_id

    @property
    def idempotency_key(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The same for each attempt at a call; empty outside of one."""
        return f"{self.run.state.run_id}-{self.turn}-{self.spot}" if self.call_id or self.tool else ""

    def count(self, what: str) -> int:
        """Return how often `what` was counted here before, and count it."""
        which = f"{self.place}/{what}"
        before = self.counts.get(which, 0)
        self.counts[which] = before + 1
        return before

    def redact(self, value: Any) -> Any:
        """Return `value` as it may leave the run."""
        return self.run.spec.shown(value)

    def spend(self, usage: TokenUsage) -> None:
        """Count tokens."""
        self.run.spend(usage)

    def send(self, event: Any) -> None:
        """Send an event."""
        if not isinstance(event, Event):
            raise InputError(f"send takes an event, such as Custom(name, data), not {type(event).__name__}")
        if self.run.emitter is not None:
            self.run.emitter.forward(event)

    async def interrupt(self, info: Any, *, state: Any = None, expects: str | type = "") -> Any:
        """Ask, and stop the run until somebody answers."""
        return ask(self, self.owner, info, state, expects)

    def __repr__(self) -> str:
        return f"<RunContext of run {self.run_id}, turn {self.turn}>"


_FRAME: ContextVar[Frame] = ContextVar("suture_frame")
get_frame, set_frame = _FRAME.get, _FRAME.set
"""The getter of the current frame. Bound once, because a step of a run calls it often."""


def current_frame(what: str = "this") -> Frame:
    """Return the frame of the calling code; raise `NotInRunError` outside of a run."""
    try:
        return get_frame()
    except LookupError:
        raise NotInRunError(
            f"{what} works inside a run only: in a hook, a wrapper or a tool of a running agent"
        ) from None


def current_run() -> RunContext[Any]:
    """Return the context of the run that the calling hook, wrapper or tool belongs to.

    >>> current_run()
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: current_run works inside a run only: in a hook, a wrapper or a tool of a running agent
    """
    return current_frame("current_run")


def set_run_local_value(key: str, value: Any) -> None:
    """Keep a value for the rest of this run; it survives interrupts and resumes. It is stored as it is now."""
    current_frame("set_run_local_value").values[key] = value


def get_run_local_value(key: str) -> tuple[Any, bool]:
    """Return a value of this run, and whether there is one."""
    values = current_frame("get_run_local_value").values
    return values.get(key), key in values


def delete_run_local_value(key: str) -> None:
    """Forget a value of this run; a missing one is not an error."""
    current_frame("delete_run_local_value").values.pop(key, None)


def send_event(event: Event) -> None:
    """Send a custom event (`Custom`, or any other) to the reader of the run."""
    current_frame("send_event").send(event)


@overload
async def interrupt(info: Any, *, state: Any = None, expects: type[T]) -> T: ...
@overload
async def interrupt(info: Any, *, state: Any = None, expects: str = "") -> Any: ...
async def interrupt(info: Any, *, state: Any = None, expects: str | type = "") -> Any:
    """Stop the run here until it is resumed with an answer; then return the answer.

    On resume the code around it runs again from the top, so put effects after it. `info` is for whoever answers;
    `state` is kept and can be read with `interrupt_state`. With `expects` (`bool`, `str`, `int`, `float`, `list`,
    `dict`, or `"approval"`), resuming with anything else is an error.

    >>> import asyncio
    >>> asyncio.run(interrupt("Send it?"))
    Traceback (most recent call last):
        ...
    suture.errors.NotInRunError: interrupt works inside a run only: in a hook, a wrapper or a tool of a running agent
    """
    return await current_frame("interrupt").interrupt(info, state=state, expects=expects)


def interrupt_state() -> tuple[Any, bool]:
    """Return the state that the interrupt of this code kept, and whether there is one, while it is being resumed."""
    frame = current_frame("interrupt_state")
    prefix = f"{frame.run.address}/{frame.place}/{frame.owner}/"
    states = frame.run.state.states
    found = [address for address in states if address.startswith(prefix)]
    if not found:
        return None, False
    return states[max(found, key=lambda address: int(address.rpartition("/")[2]))], True
