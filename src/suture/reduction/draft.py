"""The draft of a plan: the rounds of a history, what was saved of them, and the history with messages replaced."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, NamedTuple

import msgspec

from suture.language import Language
from suture.messages import Part, TextPart, ToolArgument, ToolContext, ToolResult
from suture.reduction.settings import ClearResult, Settings, ToolDetail, TruncResult
from suture.reduction.texts import digest_of, folded, is_cleared_text, named_path
from suture.repair import assign
from suture.repair.texts import is_builtin_text
from suture.wires import Call, CallEdit, Result, ResultEdit, Wire, argument_json

PROCESSED = "_reduction_mw_processed"
"""The key in `extra` of a turn whose round has been processed."""
SAVED = "_reduction_mw_saved"
"""The key in `extra` of a result that was saved; the value says where, and how much."""


# What was saved, and what is to be saved


class Saved(msgspec.Struct, frozen=True):
    """Saved output: its path, call, phase, and number of characters.

    >>> Saved("/run/trunc/call_1", "call_1", "search", "trunc", 80_000).path
    '/run/trunc/call_1'
    """

    path: str
    call_id: str = ""
    name: str = ""
    phase: str = "clear"
    length: int = 0
    digest: str = ""
    """The digest of its content, if that was known as a whole."""


class Ledger(msgspec.Struct, frozen=True):
    """What was saved of a history and which rounds are done, for messages that cannot be marked.

    Native messages have this in `extra`; for all others it is kept separately.

    >>> Ledger.of(Ledger((Saved("/run/clear/a"),)).to_dict()).saved[0].path
    '/run/clear/a'
    """

    saved: tuple[Saved, ...] = ()
    rounds: frozenset[str] = frozenset()

    def to_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"saved": [list(msgspec.structs.astuple(item)) for item in self.saved], "rounds": sorted(self.rounds)}

    @staticmethod
    def of(data: Mapping[str, Any] | None) -> "Ledger":
        """Return the ledger that `to_dict` turned into `data`; an empty one for `None`."""
        if not data:
            return Ledger()
        return Ledger(tuple([Saved(*item) for item in data["saved"]]), frozenset(data["rounds"]))


class Register:
    """The entries of ledgers in a growing index, so that each is found without a search."""

    def __init__(self, ledger: Ledger = Ledger()) -> None:  # noqa: B008 - frozen
        self.by_call: dict[str, list[Saved]] = {}
        self.by_path: dict[str, Saved] = {}
        """By folded path."""
        self.rounds: set[str] = set()
        self.add(ledger)

    def add(self, ledger: Ledger) -> None:
        """Add the saved output and the done rounds of a ledger."""
        for saved in ledger.saved:
            self.by_call.setdefault(saved.call_id, []).append(saved)
            self.by_path[folded(saved.path)] = saved
        self.rounds |= ledger.rounds

    def find(self, call_id: str, content: str) -> Saved | None:
        """Return this very content of a call if it was saved, as it may have been by a turn that failed later."""
        mine = [saved for saved in self.by_call.get(call_id, ()) if saved.length == len(content)]
        digest = digest_of(content) if mine else ""
        return next((saved for saved in mine if saved.digest == digest), None)


def mark_saved(saved: Saved) -> dict[str, Any]:
    """Return the `extra` of a result that was saved."""
    return {SAVED: {"path": saved.path, "phase": saved.phase, "length": saved.length, "name": saved.name}}


def read_saved(extra: Mapping[str, Any], call: Call | Result) -> Saved | None:
    """Return the saved output that a mark of `mark_saved` describes; `None` without a mark of ours."""
    found = extra.get(SAVED)
    if not isinstance(found, Mapping):
        return None
    try:
        return msgspec.convert({"call_id": call.id, "name": call.name, **found}, Saved)
    except (msgspec.ValidationError, TypeError):
        return None


class Save(msgspec.Struct, frozen=True):
    """Output to be saved before the plan is applied.

    >>> Save("/run/clear/call_1", "3 pages", "call_1", "search")
    Save(path='/run/clear/call_1', call_id='call_1', name='search', length=7)
    """

    path: str
    content: str
    call_id: str = ""
    name: str = ""

    def note(self, phase: str) -> Saved:
        """Return the entry for it once it is saved."""
        return Saved(self.path, self.call_id, self.name, phase, len(self.content), digest_of(self.content))

    def __repr__(self) -> str:
        """Show path and length, but no content."""
        return f"Save(path={self.path!r}, call_id={self.call_id!r}, name={self.name!r}, length={len(self.content)})"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """A change to one result (`truncate`, `clear`) or to a whole round (`rewrite`).

    >>> Change(action="clear", index=2, call_id="call_1", name="search", path="/run/clear/call_1").action
    'clear'
    """

    action: str
    index: int
    """The index of the message with the call, in the original history."""
    call_id: str
    name: str
    path: str = ""
    """The path of the whole output; empty if it was not saved."""
    tokens_before: int = 0
    tokens_after: int = 0


# Rounds


class Answer(NamedTuple):
    """A call, number `number` of message `turn`, and its result, number `position` of message `message`."""

    call: Call
    turn: int
    number: int
    message: int
    position: int
    result: Result
    synthetic: bool
    """Whether the result is only a placeholder."""

    @property
    def place(self) -> tuple[int, int]:
        """The place of the result."""
        return self.message, self.position


class Round(NamedTuple):
    """The calls that a model made at once, from message `first` to message `last`, and their results."""

    first: int
    last: int
    calls: tuple[Call, ...]
    answers: tuple[Answer, ...]

    @property
    def touched(self) -> list[int]:
        """The indexes of its messages, in order."""
        return [*range(self.first, self.last + 1), *sorted({answer.message for answer in self.answers})]

    @property
    def shares_ids(self) -> bool:
        """Whether several of its calls have the same id, so that their results can be told apart by content alone."""
        return len({call.id for call in self.calls}) < len(self.calls)

    def digest(self, wire: Wire) -> str:
        """Return a digest of its whole content."""
        calls = [[call.id, call.name, str(call.arguments)] for call in self.calls]
        return digest_of(repr([calls, [wire.result_text(answer.result)[0] for answer in self.answers]]))


def rounds_of(
    wire: Wire, messages: Sequence[Any], start: int = 0, is_placeholder: Callable[[str], bool] | None = None
) -> list[Round]:
    """Return the rounds of `messages[start:]`, in order.

    >>> from suture.messages import Message, ToolCall
    >>> from suture.wires import get_wire
    >>> history = [Message.assistant(tool_calls=[ToolCall("a", "f")]), Message.tool("42", "a")]
    >>> [(found.first, found.touched) for found in rounds_of(get_wire("message"), history)]
    [(0, [0, 1])]
    """
    found = assign(wire, messages, is_placeholder, start=start)
    rounds: list[Round] = []
    for turn in found.turns:
        answers: list[Answer] = []
        shared = len({slot.call.id for slot in turn.slots}) < len(turn.slots)
        for slot in turn.slots:
            if (answer := slot.answer) is None:
                continue
            synthetic = answer.synthetic
            if shared and not synthetic:  # a placeholder may have been paired with another call of the same id
                text, complete = wire.result_text(answer.result)
                synthetic = complete and is_builtin_text(text, None, slot.call.id) is not None
            at, result_at = found.records[slot.place].index, found.records[answer.place].index
            answers.append(Answer(slot.call, at, slot.position, result_at, answer.position, answer.result, synthetic))
        first, last = found.records[turn.first].index, found.records[turn.last].index
        rounds.append(Round(first, last, tuple([slot.call for slot in turn.slots]), tuple(answers)))
    return rounds


def texts_of(wire: Wire, result: Result) -> list[str]:
    """Return the texts of a result that can be replaced, without the parts between them."""
    return [part.text for part in wire.result_parts(result) or () if isinstance(part, TextPart)]


def _named_paths(wire: Wire, result: Result) -> set[str]:
    """Return the paths that the notices in a result name."""
    return {path for path in map(named_path, texts_of(wire, result)) if path}


# The draft


class Terms(NamedTuple):
    """What the reduction of a result depends on besides the result."""

    settings: Settings
    root: str
    language: Language
    offloads: Callable[[str], bool]
    """Returns whether output of a tool can be saved."""
    is_taken: Callable[[str], bool]
    """Returns whether a folded path is taken."""
    ask: Callable[..., Any]
    """Calls a function of the user's and awaits its result, or refuses it if it is async."""
    known: Register
    """The work of earlier plans, on a wire without marks."""
    owner: str = ""
    """The owner of the files: if a name is taken, two owners never choose the same other name."""


class Fate(NamedTuple):
    """The decision about one result: its replacement, and what is to be saved."""

    answer: Answer
    action: str
    parts: Sequence[Part]
    save: Save | None = None
    saved: Saved | None = None
    """The path of the whole output, once it is saved."""
    argument: str | None = None


def _is_taken(names: set[str], outside: Callable[[str], bool], path: str) -> bool:
    return path in names or outside(path)


class Draft:
    """The history after the plan, message by message. The original is never changed."""

    def __init__(self, wire: Wire, messages: Sequence[Any], terms: Terms, count: Callable[[Any], int]) -> None:
        self.wire, self.messages, self.count, self.settings = wire, messages, count, terms.settings
        self.names: set[str] = set()
        """Folded paths that this plan uses or must not use."""
        self.terms = terms._replace(is_taken=partial(_is_taken, self.names, terms.is_taken))
        self.cells: dict[int, list[Any]] = {}
        """The replacements of messages."""
        self.log: list[tuple[Change, Fate | None]] = []
        """The changes, and the decisions behind them."""
        self.digests: list[str] = []
        """Rounds that are done, on a wire without marks."""
        self.fates: dict[tuple[int, int], Fate] = {}
        """Truncations by the place of the result; clearing the result instead takes the truncation back."""
        self.freed = 0

    def fork(self) -> "Draft":
        """Return a copy of this draft that can be changed independently."""
        other = copy(self)
        for name in ("cells", "log", "digests", "fates"):
            setattr(other, name, copy(getattr(self, name)))
        return other

    @property
    def saves(self) -> dict[Save, Saved]:
        """The output to save, and the entry for each once it is saved."""
        return {fate.save: fate.saved for _, fate in self.log if fate and fate.save and fate.saved}

    def current(self) -> list[Any]:
        """Return the history after the plan."""
        cells = self.cells
        return [item for at, message in enumerate(self.messages) for item in cells.get(at, (message,))]

    def place(self, index: int) -> int:
        """Return the index in the new history of message `index` of the original."""
        return index + sum(len(cell) - 1 for at, cell in self.cells.items() if at < index)

    def detail(self, answer: Answer, parts: Sequence[Part]) -> ToolDetail:
        """Return a call and its result in the form for handlers."""
        return ToolDetail(
            tool_context=ToolContext(answer.call.name, answer.call.id),
            tool_argument=ToolArgument(argument_json(answer.call.arguments)),
            tool_result=ToolResult(tuple(parts), is_error=answer.result.failed, extra=answer.result.extra),
        )

    def weight(self, parts: Sequence[Part]) -> int:
        """Return how many tokens the texts among `parts` have."""
        measure = self.settings.measure
        return sum([measure(part.text) for part in parts if isinstance(part, TextPart)])

    # What is known

    def is_done(self, found: Round) -> bool:
        """Return whether a round was processed before: its turn is marked, or the register has it.

        On a wire without marks, if there is no register either, our own texts in its results show it.
        """
        wire, rounds = self.wire, self.terms.known.rounds
        if wire.marks:
            return wire.extra_of(self.messages[found.first]).get(PROCESSED) is True
        if rounds and found.digest(wire) in rounds:
            return True
        # Calls of one id may have other results than before, now that some of these are cleared: the texts show it.
        if rounds and not found.shares_ids:
            return False
        return any(is_cleared_text(text) for answer in found.answers for text in texts_of(wire, answer.result))

    def is_cleared(self, answer: Answer) -> bool:
        """Return whether all texts of a result are placeholders of ours."""
        texts = texts_of(self.wire, answer.result)
        return bool(texts) and all(map(is_cleared_text, texts))

    def saved_of(self, answer: Answer) -> Saved | None:
        """Return the saved output of a result, if the text that replaced it names the path."""
        if self.wire.marks:
            marked = read_saved(answer.result.extra, answer.call)
            mine = [] if marked is None else [marked]
        else:
            mine = self.terms.known.by_call.get(answer.call.id, [])
        named = _named_paths(self.wire, answer.result) if mine else set[str]()
        return next((saved for saved in reversed(mine) if saved.path in named), None)

    def keep_names(self, rounds: Iterable[Round]) -> None:
        """Mark the paths that notices in these rounds name as taken."""
        for found in rounds:
            for answer in found.answers:
                self.names.update(map(folded, _named_paths(self.wire, answer.result)))

    # Decisions

    def fate(self, answer: Answer, action: str, decided: TruncResult | ClearResult, saved: Saved | None) -> Fate:
        """Return the decision of a handler, and reserve its path; a result that it clears is not truncated as well."""
        save, call = (self.take_back(answer, saved) if action == "clear" else None), answer.call
        if decided.need_offload:
            save = Save(decided.offload_file_path, decided.offload_content, call.id, call.name)
            saved = save.note("trunc" if action == "truncate" else action)
            self.names.add(folded(save.path))
        argument = decided.tool_argument if isinstance(decided, ClearResult) else None
        parts = decided.tool_result.parts if decided.tool_result is not None else ()
        return Fate(answer, action, parts, save, saved, None if argument is None else argument.text)

    def write(self, found: Round, fates: Sequence[Fate], *, done: bool = False) -> None:
        """Apply the decisions about the results of one round; `done`: never process it again."""
        wire, before = self.wire, self._tokens(found)
        calls: dict[int, dict[int, CallEdit]] = {}
        results: dict[int, dict[int, ResultEdit]] = {}
        is_signed = any(wire.view(item).signed for item in self.messages[found.first : found.last + 1])
        for fate in fates:
            answer, saved = fate.answer, fate.saved
            edit = ResultEdit(parts=tuple(fate.parts), extra=mark_saved(saved) if saved is not None else None)
            results.setdefault(answer.message, {})[answer.position] = edit
            argument: Any = fate.argument  # signed calls must not change
            if argument is not None and argument != argument_json(answer.call.arguments) and not is_signed:
                if not wire.text_arguments:
                    argument = wire.sound_arguments(answer.call._replace(arguments=argument))
                calls.setdefault(answer.turn, {})[answer.number] = CallEdit(arguments=argument)
            weights = [self.weight(parts) for parts in (wire.result_parts(answer.result) or (), fate.parts)]
            path = saved.path if saved is not None else ""
            self._note(fate.action, answer.turn, [answer.call], weights, path, fate)
        for index in {*calls, *results}:
            self.cells[index] = [wire.edit(self._now(index), calls.get(index, {}), results.get(index, {}))]
        if done and wire.marks:
            self.cells[found.first] = [wire.with_extra(self._now(found.first), {PROCESSED: True})]
        elif done:
            now = rounds_of(wire, [self._now(index) for index in found.touched])
            self.digests += [each.digest(wire) for each in now[:1]]
        self.freed += before - self._tokens(found)

    def rewrite(self, found: Round, inner: "Draft") -> None:
        """Replace a round by what a rewriter returned; other content of its messages stays after it."""
        before = self._tokens(found)
        for index in found.touched:
            rest = self.wire.rest(self._now(index), {}) if index > found.last else None
            self.cells[index] = [] if rest is None else [rest]
        self.cells[found.first] = inner.current()
        after = self._tokens(found)
        self.freed += before - after
        self._note("rewrite", found.first, found.calls, (before, after))
        self.log += [(msgspec.structs.replace(change, index=found.first), fate) for change, fate in inner.log]
        self.digests += inner.digests
        self.names |= inner.names

    def _note(
        self, action: str, index: int, calls: Sequence[Call], tokens: Sequence[int], path: str = "", by: Any = None
    ) -> None:
        ids, names = [call.id for call in calls], dict.fromkeys(call.name for call in calls)
        change = Change(action=action, index=index, call_id=", ".join(ids), name=", ".join(names), path=path)
        self.log.append((msgspec.structs.replace(change, tokens_before=tokens[0], tokens_after=tokens[1]), by))

    def take_back(self, answer: Answer, saved: Saved | None) -> Save | None:
        """Take back the truncation of a result; return its save if that is still needed because it is `saved`."""
        fate = self.fates.pop(answer.place, None)
        if fate is None:
            return None
        self.log = [entry for entry in self.log if entry[1] is not fate]
        if fate.saved is saved:
            return fate.save
        if fate.saved is not None:
            self.names.discard(folded(fate.saved.path))
        undone = ResultEdit(parts=self.wire.result_parts(answer.result), extra={SAVED: None})
        before = self._now(answer.message)
        now = self.wire.edit(before, {}, {answer.position: undone})
        self.cells[answer.message] = [now]
        self.freed += self.count(before) - self.count(now)
        return None

    def _now(self, index: int) -> Any:
        return self.cells.get(index, (self.messages[index],))[0]

    def _tokens(self, found: Round) -> int:
        """Return how many tokens the current messages of a round have."""
        cells = [self.cells.get(index, (self.messages[index],)) for index in found.touched]
        return sum([self.count(message) for cell in cells for message in cell])
