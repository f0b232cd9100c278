"""`PatchToolCalls`: every tool call in the history gets its result before the model sees it."""

from collections import Counter
from collections.abc import Awaitable, Callable, Mapping
from functools import cache
from hashlib import sha256
from inspect import isawaitable
from typing import Any, Literal

from suture import kernel
from suture.errors import ConfigError, NotInRunError
from suture.language import resolve_language
from suture.messages import History
from suture.repair import (
    Asks,
    AsksCause,
    Cause,
    Paired,
    PairOptions,
    Report,
    is_in_order,
    is_whole,
    make_options,
    pair,
    take_as_in_order,
    takes_cause,
)
from suture.tools import RunContext
from suture.wires import Wire, get_wire

__all__ = ["PatchToolCalls", "is_recorded_placeholder"]

_DIGESTS = "suture.patch_tool_calls"
_find_wire = cache(get_wire)


class PatchToolCalls(kernel.ChatModelAgentMiddleware[Any]):
    """Repairs the history before each model turn: missing, misplaced, duplicate and orphaned results.

    Usually it is first in the list. Any place works, because what a later middleware breaks is repaired again before
    the model is called.

    Args:
        generator: `(name, call_id)` or `(name, call_id, cause=…)` to the text of a placeholder, sync or async, asked
            once per call and run; an empty text means the built-in one. If it raises, the run ends and nothing has
            changed.
        cause: why results are missing, if the history does not show it.
        tail: `cancel` answers calls at the end; `keep` leaves them open (the model still gets a placeholder).
        persist: whether the repaired history replaces the run's, or is only sent to the model.
        orphans: `text` keeps a result without a call as user text; `drop` removes it.
        is_placeholder: returns whether a result's text is only a placeholder.

    >>> PatchToolCalls(generator=lambda name, call_id: f"{name} was skipped").persist
    True
    """

    def __init__(
        self,
        generator: Asks[str | Awaitable[str]] | AsksCause[str | Awaitable[str]] | None = None,
        cause: Cause | str | None = None,
        tail: Literal["cancel", "keep"] = "cancel",
        persist: bool = True,  # noqa: FBT001, FBT002 - a setting, given by name
        orphans: Literal["text", "drop"] = "text",
        is_placeholder: Callable[[str], bool] | None = None,
    ) -> None:
        if tail not in {"cancel", "keep"}:
            raise ConfigError(f"unknown tail {tail!r}; known: cancel, keep")
        if orphans not in {"text", "drop"}:
            raise ConfigError(f"unknown orphans {orphans!r}; known: text, drop")
        for name, function in (("generator", generator), ("is_placeholder", is_placeholder)):
            if function is not None and not callable(function):
                raise ConfigError(f"{name} must be a function, found {type(function).__name__}")
        self.generator, self.tail, self.persist = generator, tail, persist
        self.orphans: Literal["text", "drop"] = orphans
        self.is_placeholder = is_placeholder
        self.cause = make_options(cause=cause).cause
        self._asks_cause = generator is not None and takes_cause(generator)

    @property
    def unused_hooks(self) -> frozenset[str]:
        """The hook that has nothing to do with these settings, and is left out."""
        name = "wrap_model_call" if self.persist else "before_model_rewrite_state"
        return frozenset((name,)) if getattr(type(self), name) is getattr(PatchToolCalls, name) else frozenset()

    @property
    def repairs_history(self) -> bool:
        """Whether the history in the run's result is paired, too."""
        return self.persist and self.tail == "cancel"

    @property
    def fit_options(self) -> Mapping[str, Any]:
        """The options for pairing a request again."""
        return {"orphans": self.orphans, "is_placeholder": self.is_synthetic}

    def before_model_rewrite_state(
        self, state: kernel.ChatModelAgentState[Any], model_context: kernel.ModelContext
    ) -> Awaitable[kernel.ChatModelAgentState[Any] | None] | None:
        """Repair the history permanently; for one that is in order, only new messages are looked at."""
        if not self.persist or is_in_order(_find_wire(model_context.wire), History.of(state.messages)):
            return None
        return self._rewrite(state, model_context.wire)

    async def _rewrite(
        self, state: kernel.ChatModelAgentState[Any], wire: str
    ) -> kernel.ChatModelAgentState[Any] | None:
        fixed = await self._repair(state.messages, wire)
        return None if fixed is None else kernel.replace(state, messages=fixed[0], report=fixed[1].to_dict())

    async def wrap_model_call(self, request: kernel.ModelRequest[Any], proceed: kernel.AskModel) -> Any:
        """Repair the request, for this call only."""
        if not self.persist:
            fixed = await self._repair(request.messages, kernel.current_run().wire)
            if fixed is not None:
                request = kernel.replace(request, messages=fixed[0])
        return await proceed(request)

    async def _repair(self, messages: Any, wire_name: str) -> tuple[History[Any], Report] | None:
        """Return the repaired history and what was done to it; `None` if it is in order."""
        history: History[Any] = History.of(messages)
        run, wire = _current(), get_wire(wire_name)
        notes = _Notes() if run is None else run.cache.setdefault(self, _Notes())
        sent = notes.go_on(wire, history)
        if sent is not None or is_in_order(wire, history):
            return sent
        paired = await self._pair(wire, history, notes)
        if not paired.changed:
            if not paired.pending:
                take_as_in_order(history)
            return None
        fixed = History(paired.messages)
        if not paired.pending:
            take_as_in_order(fixed)
        findings, displaced = tuple(paired.findings), tuple(paired.displaced)
        report = Report(wire=wire.name, profile="pairing", findings=findings, displaced=displaced)
        if not self.persist:
            notes.fixed = history, fixed, report
        return fixed, report

    async def _pair(self, wire: Wire, history: History[Any], notes: "_Notes") -> Paired:
        """Pair twice if there is a generator: once to see what to ask it, once with its answers."""
        generator: Callable[..., str | Awaitable[str]] | None = self.generator
        if generator is None:
            return pair(wire, history, self._options(None))
        asked: list[tuple[str, str, Cause, tuple[int, int]]] = []
        texts: dict[tuple[int, int], str] = {}

        def say(name: str, call_id: str, cause: Cause, place: tuple[int, int]) -> str:
            asked.append((name, call_id, cause, place))
            return texts.get(place, "")

        options = self._options(say)
        paired = pair(wire, history, options)
        if not asked:
            return paired
        numbers = _number_calls(wire, history)
        for name, call_id, cause, place in tuple(asked):
            which = (name, call_id, numbers[place])
            if which not in notes.texts:
                text = generator(name, call_id, cause=cause) if self._asks_cause else generator(name, call_id)
                notes.texts[which] = await text if isawaitable(text) else text
            texts[place] = notes.texts[which]
        paired = pair(wire, history, options)
        if not wire.marks:
            _record(text for text in texts.values() if text)
        return paired

    def _options(self, generator: Callable[..., str] | None) -> PairOptions:
        run: Any = _current()
        return PairOptions(
            tail=self.tail,
            orphans=self.orphans,
            language=resolve_language(None) if run is None else run.language,
            generator=generator,
            cause=self.cause,
            is_placeholder=self.is_synthetic,
        )

    def is_synthetic(self, text: str) -> bool:
        """Return, inside a run, whether a result's text is only a placeholder."""
        if is_recorded_placeholder(text):
            return True
        return self.is_placeholder is not None and self.is_placeholder(text)


class _Notes:
    """The memory of one run: the generator's texts, and what was sent instead of a broken history."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str, int], str] = {}
        """By name, id, and number among the calls with that name and id."""
        self.fixed: tuple[History[Any], History[Any], Report] | None = None
        """A history that is only repaired for sending, what was sent instead, and the report."""

    def go_on(self, wire: Wire, history: History[Any]) -> tuple[History[Any], Report] | None:
        """Return what to send for a history that has only grown, in order, since it was repaired."""
        if self.fixed is None or not history.follows(self.fixed[0]):
            return None
        raw, sent, report = self.fixed
        if not is_whole(wire, history, len(raw)):
            return None
        sent = sent.continue_with(history[len(raw) :])
        self.fixed = history, sent, report
        return sent, report


def _number_calls(wire: Wire, history: History[Any]) -> dict[tuple[int, int], int]:
    """Return the number of each call, by its place, among the calls with its name and id."""
    met: Counter[tuple[str, str]] = Counter()
    numbers: dict[tuple[int, int], int] = {}
    for turn, message in enumerate(history):
        for number, call in enumerate(wire.view(message).calls):
            numbers[turn, number] = met[call.name, call.id]
            met[call.name, call.id] += 1
    return numbers


def _current() -> RunContext[Any] | None:
    """Return the current run; `None` if a hook is called by hand."""
    try:
        return kernel.current_run()
    except NotInRunError:
        return None


def is_recorded_placeholder(text: str) -> bool:
    """Return whether this run made `text` as a placeholder, on a wire without marks."""
    run = _current()
    recorded = run.values.get(_DIGESTS) if run is not None else None
    return bool(recorded) and _digest(text) in recorded


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _record(texts: Any) -> None:
    """Remember in the run which texts are placeholders, on a foreign wire, where they cannot be marked."""
    run = _current()
    if run is not None:
        recorded: Any = run.values.get(_DIGESTS, ())
        new = {_digest(text) for text in texts} - set(recorded)
        if new:
            run.values[_DIGESTS] = sorted({*recorded, *new})
