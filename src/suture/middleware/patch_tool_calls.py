"""`PatchToolCalls`: every tool call in the history gets its result before the model sees it."""

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from hashlib import sha256
from inspect import isawaitable
from typing import Any, Literal

from msgspec.structs import replace

from suture.errors import ConfigError, NotInRunError
from suture.kernel import (
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    Model,
    ModelContext,
    ModelRequest,
    ModelWrapper,
    closing,
    get_run_local_value,
    run_language,
    run_scratch,
    set_run_local_value,
)
from suture.messages import Delta, History
from suture.repair import Asks, AsksCause, Cause, Paired, PairOptions, Report, is_whole, make_options, pair, takes_cause
from suture.wires import Wire, get_wire

__all__ = ["PatchToolCalls", "is_recorded_placeholder"]

_DIGESTS = "suture.patch_tool_calls"


class PatchToolCalls(ChatModelAgentMiddleware[Any]):
    """Makes every history whole before a model turn: placeholders, moves, duplicates, orphans.

    First in the list is the usual place; any place is right, because what a later middleware breaks is mended once
    more before the model is called.

    Args:
        generator: `(name, call_id)` or `(name, call_id, cause=…)` to the text of a placeholder, sync or async, asked
            once per call and run; an empty text means the built-in one. Its error ends the run, and nothing has
            changed then.
        cause: why results are missing, where nothing in the history tells.
        tail: `cancel` answers calls at the very end; `keep` leaves them (the model is still sent an answer).
        persist: whether the repaired history is the run's from then on, or only sent to the model.
        orphans: `text` keeps a result without a call as user text; `drop` removes it.
        is_placeholder: tells from a result's text whether it only stands for a real one.

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
        if persist:
            self.before_model_rewrite_state = self._rewrite_state
        else:
            self.wrap_model = self._wrap_model

    def _rewrite_state(
        self, state: ChatModelAgentState[Any], model_context: ModelContext, /
    ) -> Awaitable[ChatModelAgentState[Any] | None] | None:
        """Repair the history for good; one that is in order costs no more than a look at what is new."""
        if _is_in_order(get_wire(model_context.wire), History.of(state.messages)):
            return None
        return self._mend(state, model_context)

    async def _mend(
        self, state: ChatModelAgentState[Any], model_context: ModelContext
    ) -> ChatModelAgentState[Any] | None:
        fixed = await self._repair(state.messages, model_context)
        if fixed is None:
            return None
        history, report = fixed
        return replace(state, messages=history, report=report.to_dict())

    def _wrap_model(self, model: Model[Any], model_context: ModelContext, /) -> Model[Any]:
        """Repair what is sent, for this call only."""
        return _Patching(model, self, model_context)

    async def _repair(self, messages: Any, context: ModelContext) -> tuple[History[Any], Report] | None:
        """Return the repaired history and what was done to it; `None` if it is in order."""
        history: History[Any] = History.of(messages)
        notes, wire = run_scratch(self._start), get_wire(context.wire)
        sent = notes.go_on(wire, history)
        if sent is not None or _is_in_order(wire, history):
            return sent
        paired = await self._pair(wire, history, notes)
        if not paired.changed:
            if not paired.pending:
                _take_as_in_order(history)
            return None
        fixed = History(paired.messages)
        if not paired.pending:
            _take_as_in_order(fixed)
        findings, displaced = tuple(paired.findings), tuple(paired.displaced)
        report = Report(wire=wire.name, profile="pairing", findings=findings, displaced=displaced)
        if not self.persist:
            notes.fixed = history, fixed, report
        return fixed, report

    async def _pair(self, wire: Wire, history: History[Any], notes: "_Notes") -> Paired:
        """Pair twice where there is a generator: once to see what it is to be asked, once with its answers."""
        if self.generator is None:
            return pair(wire, history, self._options(None))
        asked: list[tuple[str, str, Cause, tuple[int, int]]] = []

        def ask(name: str, call_id: str, cause: Cause, place: tuple[int, int]) -> str:
            asked.append((name, call_id, cause, place))
            return ""

        paired = pair(wire, history, self._options(ask))
        if not asked:
            return paired
        texts: dict[tuple[int, int], str] = {}
        numbers = _number_calls(wire, history)
        for name, call_id, cause, place in asked:
            which = (name, call_id, numbers[place])
            if which not in notes.texts:
                notes.texts[which] = await self._text(name, call_id, cause)
            texts[place] = notes.texts[which]

        def say(_: str, __: str, ___: Cause, place: tuple[int, int]) -> str:
            return texts[place]

        paired = pair(wire, history, self._options(say))
        if not wire.marks:
            _record(text for text in texts.values() if text)
        return paired

    async def _text(self, name: str, call_id: str, cause: Cause) -> str:
        generator: Callable[..., str | Awaitable[str]] | None = self.generator
        if generator is None:
            return ""
        text = generator(name, call_id, cause=cause) if self._asks_cause else generator(name, call_id)
        return await text if isawaitable(text) else text

    def _options(self, generator: Callable[..., str] | None) -> PairOptions:
        return PairOptions(
            tail=self.tail,
            orphans=self.orphans,
            language=run_language(),
            generator=generator,
            cause=self.cause,
            is_placeholder=self.is_synthetic,
        )

    def is_synthetic(self, text: str) -> bool:
        """Tell, inside a run, whether a result's text only stands for a real one."""
        if is_recorded_placeholder(text):
            return True
        return self.is_placeholder is not None and self.is_placeholder(text)

    def _start(self) -> "_Notes":
        return _Notes()


class _Notes:
    """What one run remembers: what the generator said of which call, and what was sent in place of a broken history."""

    def __init__(self) -> None:
        self.texts: dict[tuple[str, str, int], str] = {}
        """By name, id, and which of the calls of that name and id."""
        self.fixed: tuple[History[Any], History[Any], Report] | None = None
        """A history that is not changed for good, what was sent in its place, and why."""

    def go_on(self, wire: Wire, history: History[Any]) -> tuple[History[Any], Report] | None:
        """Return what to send for a history that only grew, in good order, since it was mended."""
        if self.fixed is None or not history.follows(self.fixed[0]):
            return None
        raw, sent, report = self.fixed
        if not is_whole(wire, history, len(raw)):
            return None
        sent = sent.extend(history[len(raw) :])
        self.fixed = history, sent, report
        return sent, report


class _Patching(ModelWrapper[Any]):
    """A model that is sent a repaired history."""

    def __init__(self, inner: Model[Any], patch: PatchToolCalls, context: ModelContext) -> None:
        super().__init__(inner)
        self._patch, self._context = patch, context

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Delta | Any]:
        """Repair what is sent, and pass on what comes back."""
        fixed = await self._patch._repair(request.messages, self._context)  # pyright: ignore[reportPrivateUsage]  # noqa: SLF001 - its other half
        if fixed is not None:
            request = replace(request, messages=fixed[0])
        async with closing(self.inner.stream(request)) as stream:
            async for item in stream:
                yield item


def _is_in_order(wire: Wire, history: History[Any]) -> bool:
    """Tell whether each turn has just its results, right behind it; what was found in order before is not looked at."""
    log, length = history.log, history.length
    start = log.whole if log.whole <= length else 0
    if start < length and not is_whole(wire, log if len(log) == length else history, start):
        return False
    _take_as_in_order(history)
    return True


def _take_as_in_order(history: History[Any]) -> None:
    """Keep in mind, with the log, that nothing is amiss with `history`."""
    history.log.whole = max(history.log.whole, history.length)


def _number_calls(wire: Wire, history: History[Any]) -> dict[tuple[int, int], int]:
    """Return, for each call by its place, which of the calls of its name and id it is."""
    met: Counter[tuple[str, str]] = Counter()
    numbers: dict[tuple[int, int], int] = {}
    for turn, message in enumerate(history):
        for number, call in enumerate(wire.view(message).calls):
            numbers[turn, number] = met[call.name, call.id]
            met[call.name, call.id] += 1
    return numbers


def is_recorded_placeholder(text: str) -> bool:
    """Tell whether this run made `text` to stand for a missing result, on a wire where that cannot be marked."""
    try:
        recorded, _ = get_run_local_value(_DIGESTS)
    except NotInRunError:
        return False
    return bool(recorded) and _digest(text) in recorded


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _record(texts: Any) -> None:
    """Remember, with the run, which texts on a foreign wire only stand for results: none can be marked there."""
    recorded, _ = get_run_local_value(_DIGESTS)
    new = {_digest(text) for text in texts} - set(recorded or ())
    if new:
        set_run_local_value(_DIGESTS, sorted({*(recorded or ()), *new}))
