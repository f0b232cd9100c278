"""The record of one run's output: how many tokens it has, what was saved where, what went wrong.

It also reduces the history before a model turn: if there are too many tokens, it plans, saves and applies.
"""

import asyncio
from collections import ChainMap
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar, cast

from msgspec.structs import replace

from suture._aio import LOG, run_to_the_end, settle
from suture._text import replace_surrogates
from suture.errors import ConfigError, NotInRunError, OffloadError
from suture.kernel import current_run
from suture.language import current_language
from suture.messages import History, TokenUsage, ToolInfo, ToolResult
from suture.middleware.patch_tool_calls import is_recorded_placeholder
from suture.reduction import Ledger, Plan, Save, Saved, Settings, ToolDetail, Writer
from suture.reduction.draft import Draft, Register, Terms, mark_saved, read_saved, rounds_of
from suture.reduction.phases import Meter, decide_truncation
from suture.reduction.plan import reduce
from suture.reduction.texts import folded, safe_name
from suture.stores import FileBackend, PathNotFoundError, PathTakenError, encode_text
from suture.tokens import CharacterCounter, Tally, is_incremental
from suture.tools import RunContext
from suture.wires import Wire, get_wire, recognise

T = TypeVar("T")
BackendOf = Callable[[str], Writer | None]
"""Returns the backend for the output of the tool with this name."""
RECORDS = "suture.records"
"""The key in a run's cache of all its records and their backends, so that any reader can read them."""
ATTEMPTS = 8
"""How many paths are tried if all are taken."""


# Saving


def check_saving(by: Any, wanted: str = "") -> None:
    """Refuse wrong settings of a middleware that saves output; `wanted` describes its backend in the error."""
    if by.on_backend_error not in {"raise", "continue"}:
        raise ConfigError(f"unknown on_backend_error {by.on_backend_error!r}; known: raise, continue")
    if type(by.max_length_for_read) is not int or by.max_length_for_read <= 0:
        raise ConfigError(f"max_length_for_read must be more than 0, found {by.max_length_for_read!r}")
    missing = "backend must be set when not skipping truncation"
    if not by.skip_truncation and by.backend is None:
        raise ConfigError(f"{missing}{wanted}; or pass skip_truncation=True")
    for name, config in by.tool_config.items():
        without = by.backend is None and config.backend is None
        if config.skip_truncation is False and config.trunc_handler is None and without:
            raise ConfigError(f"tool_config[{name!r}]: {missing}")


async def save_all(saves: Sequence[Save], backend_of: BackendOf) -> None:
    """Write all of `saves`, or none: what this call has created is deleted again if a later one fails.

    Raises `PathTakenError` if a path has other content already, `OffloadError` if one cannot be written.
    """
    created: list[Save] = []
    try:
        for save in saves:
            try:
                if await _write(backend_of(save.name), save, exclusive=len(saves) > 1):
                    created.append(save)
            except PathTakenError:
                raise
            except Exception as error:
                raise unsaved(save.name, save.call_id, error) from error
    except BaseException:
        for save in created:  # it is not needed any more; a backend that can only write cannot delete it
            delete: Any = getattr(backend_of(save.name), "delete", None)
            try:
                if delete is not None:
                    await run_to_the_end(until_done(delete(save.path)))
            except Exception as error:  # noqa: BLE001 - what it is deleted for matters more
                LOG.warning("%r was written for nothing and could not be deleted: %s", save.path, error)
        raise


async def _write(backend: Any, save: Save, *, exclusive: bool) -> bool:
    """Write a file; return whether this call created it, so that it may delete it again.

    `write` accepts an existing file with the same content, which may be another run's. `write_stream` never does.
    """
    if backend is None:
        raise OffloadError([(save.name, save.call_id)], "there is no backend for it")
    is_readable = isinstance(backend, FileBackend)
    if exclusive and is_readable:

        async def content() -> AsyncIterator[bytes]:
            yield encode_text(save.content)

        with suppress(PathTakenError):
            await until_done(backend.write_stream(save.path, content()))
            return True
    await until_done(backend.write(save.path, save.content))
    return not is_readable


async def until_done(work: T | Awaitable[T]) -> T:
    """Await a backend. If it was cancelled, but not this task, that is an error of the backend."""
    try:
        return await settle(work)
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise
        raise RuntimeError("the backend's own work was cancelled") from error


async def is_taken(backend: Writer | None, path: str) -> bool:
    """Return whether there is a file at a path, if the backend can say so."""
    try:
        if isinstance(backend, FileBackend):
            await until_done(backend.size(path))
            return True
    except PathNotFoundError:
        pass
    except Exception:  # noqa: BLE001 - writing will tell
        LOG.debug("a backend cannot say whether %r is taken", path, exc_info=True)
    return False


def unsaved(name: str, call_id: str, error: Exception) -> OffloadError:
    """Return the error that says whose output was not saved, and why."""
    if isinstance(error, OffloadError):
        return error
    made = OffloadError([(name, call_id)], str(error)[:1_000] or type(error).__name__)
    made.__cause__ = error
    return made


# The run


class Outside(RunContext[Any]):
    """Stands for the run if a hook is called by hand, outside of a run."""

    def __init__(self) -> None:
        self.values, self.session, self.cache = {}, {}, {}
        self.run_id = self.conversation_id = self.address = f"outside-{id(self)}"
        self.turn, self.wire, self.call_id, self.tool = 0, "", "", ""

    @property
    def language(self) -> str:  # pyright: ignore[reportIncompatibleVariableOverride]
        """The current language."""
        return current_language()

    def send(self, event: Any) -> None:
        """Do nothing: there is no reader."""

    def spend(self, usage: TokenUsage) -> None:
        """Do nothing: there is no budget."""


class InRun:
    """A middleware whose hooks may also be called by hand or by a guest; then `outside` stands for the run."""

    outside: Outside

    def _run(self) -> RunContext[Any]:
        """Return the current run."""
        try:
            return current_run()
        except NotInRunError:
            return self.outside

    def _record_of(self, settings: Settings, backend_of: BackendOf, name: str = "reduction") -> "Record":
        """Return that run's record."""
        cache = self._run().cache
        record = cache.get(self)
        if record is None:
            record = cache[self] = Record(settings, self._run, name)
            cache.setdefault(RECORDS, []).append((record, backend_of))
        return record


@dataclass(slots=True)
class Question:
    """A history, and whether it must be reduced."""

    wire: Wire
    history: History[Any]
    tool_infos: Sequence[ToolInfo]
    force: bool = False
    """Whether to clear although there are not too many tokens."""
    tokens: int = 0
    whole: Callable[..., Any] | None = None
    """A function that counts the whole history, in place of `tokens`."""
    shorten: int | None = None
    """The index of the last turn, if its results are too long."""
    clears: bool = False
    """Whether there may be something to clear."""


class Reduced(NamedTuple):
    """A reduced history, and the plan that was applied."""

    history: History[Any]
    plan: Plan[Any]
    cells: Mapping[int, Sequence[Any]]
    """The new messages, by the index of the one that each replaces."""

    @property
    def cleared(self) -> bool:
        """Whether anything was cleared, and not only truncated."""
        return any(change.action != "truncate" for change in self.plan.changes)


class Record:
    """The output of one run. What must outlive the run is in its messages or its session."""

    def __init__(self, settings: Settings, run: Callable[[], RunContext[Any]], name: str = "reduction") -> None:
        self.settings, self.run, self.name = settings, run, name
        self.failure: OffloadError | None = None
        """Errors for output that was not saved, which end the run."""
        self.reported: set[tuple[str, str]] = set()
        """Calls whose output was not saved, and for which an event was sent."""
        self._quiet_until = 0
        self._settled: tuple[History[Any], int] = (History(), 0)
        self._reserved: set[str] = set()
        self._wire: Wire | None = None
        self._tally: Tally | None = None
        self._register: Register | None = None
        self._pages = 0
        self._marked: dict[str, Saved] = {}
        self._history: History[Any] = History()
        self._read: History[Any] = History()

    @property
    def root(self) -> str:
        """The root of output paths: that of the settings, else one for this conversation."""
        root = self.settings.root_dir
        return root if root is not None else "/" + safe_name(self.run().conversation_id)

    @property
    def key(self) -> str:
        """The key in the session; a nested run has its own, because it has its own history."""
        return f"suture.{self.name}/{self.run().address}"

    @property
    def wire(self) -> Wire | None:
        """The wire of the messages, once it is known."""
        if self._wire is None and self.run().wire:
            self._wire = get_wire(self.run().wire)
        return self._wire

    def see(self, messages: Sequence[Any], wire: str = "") -> tuple[Wire, History[Any]]:
        """Take the current history; outside of a run, recognise its wire."""
        self._history = History.of(messages)
        if self.wire is None or (wire and wire != self.wire.name):
            self._wire, self._tally = get_wire(wire or recognise(messages)[0]), None
        return cast("Wire", self._wire), self._history

    def tally(self, wire: Wire) -> Tally:
        """Return the tally of this run, which counts each message once."""
        if self._tally is None:
            counter = self.settings.token_counter
            incremental = counter if counter is not None and is_incremental(counter) else CharacterCounter()
            self._tally = Tally(wire, cast("Any", incremental))
        return self._tally

    def terms(self, backend_of: BackendOf) -> Terms:
        """Return the terms for reducing results of this run."""
        recorded, reserved, run = self.recorded(), self._reserved, self.run()

        def offloads(name: str) -> bool:
            return backend_of(name) is not None

        def is_taken(path: str) -> bool:
            return path in recorded or path in reserved

        async def ask(function: Callable[..., Any], *arguments: Any) -> Any:
            return await settle(function(*arguments))

        language: Any = run.language
        owner = run.conversation_id
        return Terms(self.settings, self.root, language, offloads, is_taken, ask, self.register, owner)

    # What was saved

    def reserve(self, path: str) -> None:
        """Reserve a path, so that nothing else gets it."""
        self._reserved.add(folded(path))

    @property
    def register(self) -> Register:
        """What was saved and done, for messages without marks; it is stored in the session, page by page."""
        if self._register is None:
            self._register = Register()
            while (page := self.run().session.get(f"{self.key}/{self._pages}")) is not None:
                self._register.add(Ledger.of(page))
                self._pages += 1
        return self._register

    def keep(self, saved: Sequence[Saved], rounds: Sequence[str] = ()) -> None:
        """Note what was saved and which rounds are done, because messages may have no marks, or be folded."""
        register = self.register
        if saved or rounds:
            storable = [replace(each, call_id=replace_surrogates(each.call_id)) for each in saved]
            new = Ledger(tuple(storable), frozenset(rounds) - register.rounds)
            register.add(new)
            self.run().session[f"{self.key}/{self._pages}"] = new.to_dict()
            self._pages += 1

    @property
    def _is_carried(self) -> bool:
        """Return whether only messages say what was saved: outside of a run, all conversations share one session."""
        return self.wire is not None and self.wire.marks and isinstance(self.run(), Outside)

    def note_saved(self, saved: Saved) -> dict[str, Any]:
        """Note what a tool call has saved; return the mark for its result."""
        self._marked[folded(saved.path)] = saved
        if not self._is_carried:
            self.keep([saved])
        return mark_saved(saved) if self.wire is not None and self.wire.marks else {}

    def recorded(self) -> Mapping[str, Saved]:
        """Return all saved output of this history, by folded path."""
        wire, history = self.wire, self._history
        if wire is not None and wire.marks:
            start = len(self._read)
            if not history.follows(self._read):
                start, self._marked = 0, {}
            for message in history[start:]:
                for result in wire.view(message).results:
                    if result.extra and (saved := read_saved(result.extra, result)) is not None:
                        self._marked[folded(saved.path)] = saved
            self._read = history
        return ChainMap(self._marked, self.register.by_path)

    # One result

    async def truncate(self, detail: ToolDetail, backend_of: BackendOf) -> ToolResult | None:
        """Return what replaces new output; `None` if it may stay.

        Raises `OffloadError` if it cannot be saved.
        """
        context = detail.tool_context
        taken: Exception = PathTakenError("")
        for _ in range(ATTEMPTS):
            decided = await decide_truncation(detail, self.terms(backend_of))
            if not decided.need_trunc or decided.tool_result is None:
                return None
            if not decided.need_offload:
                return decided.tool_result
            save = Save(decided.offload_file_path, decided.offload_content, context.call_id, context.name)
            try:
                extra = await self.save(save, backend_of)
            except PathTakenError as error:
                taken = error
                continue
            return replace(decided.tool_result, extra={**decided.tool_result.extra, **extra})
        raise unsaved(context.name, context.call_id, taken)

    async def save(self, save: Save, backend_of: BackendOf) -> dict[str, Any]:
        """Save the output of a tool call; return the mark for its result."""
        self.reserve(save.path)
        try:
            await save_all([save], backend_of)
        except OffloadError:
            self._reserved.discard(folded(save.path))  # it was not saved
            raise
        return self.note_saved(Saved(save.path, save.call_id, save.name, "trunc", len(save.content)))

    # A history

    def judge(self, question: Question, usage: TokenUsage | None) -> Question:
        """Decide whether a history must be reduced; `usage` is what the provider last reported."""
        settings, history = self.settings, question.history
        question.shorten = _too_long_turn(settings, question.wire, history)
        counter = settings.token_counter
        if settings.clears_any and counter is not None and not is_incremental(counter):
            question.whole = cast("Callable[..., Any]", counter)
        elif settings.clears_any:
            question.tokens = self.tally(question.wire).total(history, question.tool_infos, usage)
        is_quiet = question.tokens < self._quiet_until and history.follows(self._settled[0])
        too_many = question.tokens > settings.max_tokens_for_clear and not is_quiet
        question.clears = too_many or question.whole is not None or question.force
        return question

    async def reduce(self, question: Question, backend_of: BackendOf) -> Reduced:
        """Reduce a history and save what that removes. If saving fails, nothing changes."""
        for attempt in range(ATTEMPTS):
            draft, plan, left = await self._plan(question, backend_of)
            try:
                await save_all(plan.saves, backend_of)
            except PathTakenError as taken:
                path = folded(taken.path)
                if attempt == ATTEMPTS - 1:
                    calls = [(save.name, save.call_id) for save in plan.saves if folded(save.path) == path]
                    raise OffloadError(calls, str(taken)) from taken
                self.reserve(path)
                for save in plan.saves:  # other paths may be taken, too, by another conversation with the same root
                    if await is_taken(backend_of(save.name), save.path):
                        self.reserve(save.path)
                continue
            history = History(plan.messages) if draft.cells else question.history
            if left is not None:
                self._settled = history, draft.place(left)
            if not self._is_carried:
                self.keep([*draft.saves.values()], () if question.wire.marks else draft.digests)
            return Reduced(history, plan, draft.cells)
        raise AssertionError("the last attempt raises")

    async def _plan(self, question: Question, backend_of: BackendOf) -> tuple[Draft, Plan[Any], int | None]:
        """Plan both phases; also return the index of the first message that may still have something to clear.

        If nothing is to be cleared, only the last turn is looked at.
        """
        wire, history, settings = question.wire, question.history, self.settings

        def rounds(start: int | None) -> list[Any]:
            return [] if start is None else rounds_of(wire, history, start, is_recorded_placeholder)

        count: Callable[[Any], int] = self.tally(wire).of if question.whole is None else lambda _: 0
        draft = Draft(wire, history, self.terms(backend_of), count)
        meter = Meter(question.tokens, question.whole, question.tool_infos)
        known, start = self._settled
        start = None if not question.clears else start if history.follows(known) else 0
        plan, done = await reduce(
            draft, meter, rounds(question.shorten), rounds(start), again=True, force=question.force
        )
        if not question.clears:
            return draft, plan, None
        left = done.waiting[0].first if done.waiting else len(history)
        self._quiet_until = 0
        if done.missed and question.whole is None:
            # Look again only after as many tokens have been added as are missing.
            rest = sum(map(self.tally(wire).of, history[left:]))
            self._quiet_until = done.tokens + settings.clear_at_least_tokens - done.missed - rest
        return done.draft, plan, left


def _too_long_turn(settings: Settings, wire: Wire, history: History[Any]) -> int | None:
    """Return the index of the last turn if one of its results is too long, or all together are."""
    if not settings.truncates_any:
        return None
    total, longest, count = 0, 0, 0
    for place in range(len(history) - 1, -1, -1):
        message = history[place]
        if wire.made_by_model(message):
            too_long = longest > settings.max_length_for_trunc
            return place if too_long or (count > 1 and total > settings.max_length_per_turn) else None
        length = sum(map(len, wire.words(message).texts))
        total, longest, count = total + length, max(longest, length), count + 1
    return None
