"""A plan in the making: the history with some messages replaced, and what is to be saved for it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from suture.messages import Part, TextPart, ToolArgument, ToolContext, ToolResult
from suture.reduction._handlers import Terms
from suture.reduction._paths import folded
from suture.reduction._plan import Change, Plan, Save
from suture.reduction._rounds import (
    PROCESSED,
    SAVED,
    Answer,
    Round,
    mark_saved,
    named_paths,
    round_digest,
    rounds_of,
    saved_of,
)
from suture.reduction._texts import is_cleared_text
from suture.reduction._values import ClearResult, Ledger, Saved, ToolDetail, TruncResult, digest_of
from suture.wires import Call, CallEdit, ResultEdit, Wire, argument_json

__all__ = ["Draft", "Fate", "is_cleared"]


class Fate(NamedTuple):
    """What was decided about one result: what takes its place, and what is to be saved."""

    answer: Answer
    action: str
    parts: Sequence[Part]
    save: Save | None = None
    saved: Saved | None = None
    """Where the whole output is, or will be."""
    argument: str | None = None


class Draft:
    """The history as it will be, cell by cell. What was handed in is never touched."""

    def __init__(self, wire: Wire, messages: Sequence[Any], terms: Terms, count: Callable[[Any], int]) -> None:
        self.wire, self.messages, self.terms, self.count = wire, messages, terms, count
        self.ledger = terms.ledger
        self.cells: dict[int, list[Any]] = {}
        """What takes the place of a message."""
        self.changes: list[Change] = []
        self.saves: list[Save] = []
        self.saved: list[Saved] = []
        self.digests: list[str] = []
        """Rounds that are done, on a wire whose messages cannot be marked."""
        self.fates: dict[tuple[int, int], Fate] = {}
        """What is to be truncated, by the place of the result: clearing it instead takes this back."""
        self.freed = 0

    def fork(self) -> "Draft":
        """Return a draft that goes on from this one, and leaves it as it is."""
        other = Draft(self.wire, self.messages, self.terms._replace(taken=set(self.terms.taken)), self.count)
        other.cells, other.fates, other.freed = dict(self.cells), dict(self.fates), self.freed
        other.changes, other.saves = list(self.changes), list(self.saves)
        other.saved, other.digests = list(self.saved), list(self.digests)
        return other

    def current(self) -> list[Any]:
        """Return the history as it will be."""
        cells = self.cells
        return [item for at, message in enumerate(self.messages) for item in cells.get(at, (message,))]

    def place(self, index: int) -> int:
        """Return where message `index` of what was handed in stands in the history as it will be."""
        return index + sum(len(cell) - 1 for at, cell in self.cells.items() if at < index)

    def detail(self, answer: Answer, parts: Sequence[Part]) -> ToolDetail:
        """Return a call and its result as handlers are given them."""
        return ToolDetail(
            tool_context=ToolContext(answer.call.name, answer.call.id),
            tool_argument=ToolArgument(argument_json(answer.call.arguments)),
            tool_result=ToolResult(tuple(parts), is_error=answer.result.failed, extra=answer.result.extra),
        )

    def saved_of(self, answer: Answer) -> Saved | None:
        """Return where a result is that an earlier plan saved."""
        return saved_of(self.wire, answer, self.ledger)

    def paths_named_in(self, answer: Answer) -> set[str]:
        """Return the paths that notices in a result name; none of them is to be given out again."""
        return named_paths(self.wire, answer.result)

    def fate(self, answer: Answer, action: str, decided: TruncResult | ClearResult, saved: Saved | None) -> Fate:
        """Return what a handler decided, and keep its path."""
        call = answer.call
        save = None
        if decided.need_offload:
            save = Save(decided.offload_file_path, decided.offload_content, call.id, call.name)
            phase = "trunc" if action == "truncate" else "clear"
            saved = Saved(save.path, call.id, call.name, phase, len(save.content), digest_of(save.content))
            self.terms.taken.add(folded(save.path))
        argument = decided.tool_argument if isinstance(decided, ClearResult) else None
        parts = decided.tool_result.parts if decided.tool_result is not None else ()
        return Fate(answer, action, parts, save, saved, None if argument is None else argument.text)

    def write(self, found: Round, fates: Sequence[Fate], *, done: bool = False) -> None:
        """Do to one round what was decided about its results; `done`: it is never to be cleared again."""
        before = sum(map(self.count, self._messages_of(found)))
        replaced = self._edited(found, fates)
        if done and self.wire.marks:
            turn = replaced.get(found.first, self._now(found.first))
            replaced[found.first] = self.wire.with_extra(turn, {PROCESSED: True})
        for index, message in replaced.items():
            self.cells[index] = [message]
        after = sum(map(self.count, self._messages_of(found)))
        self.freed += before - after
        for fate in fates:
            self._note(found, fate)
        if done and not self.wire.marks:
            self._keep_in_mind(found)

    def rewrite(self, found: Round, instead: list[Any]) -> None:
        """Put what a rewriter gave in the place of a round; what else its messages say stays behind it."""
        touched = [*range(found.first, found.last + 1), *found.results]
        before = sum(self.count(item) for index in touched for item in self.cells.get(index, (self.messages[index],)))
        for index in touched:
            rest = None
            if index > found.last:
                rest = self.wire.rest(self._now(index), {})
            self.cells[index] = [] if rest is None else [rest]
        self.cells[found.first] = instead
        after = sum(self.count(item) for index in touched for item in self.cells[index])
        self.freed += before - after
        names = ", ".join(dict.fromkeys(call.name for call in found.calls))
        ids = ", ".join(call.id for call in found.calls)
        self.changes.append(
            Change(
                action="rewrite",
                index=found.first,
                call_id=ids,
                name=names,
                tokens_before=before,
                tokens_after=after,
            )
        )

    def to_be_saved(self, answer: Answer) -> Saved | None:
        """Return where this very plan saves a result, because it is too long."""
        fate = self.fates.get((answer.message, answer.position))
        return fate.saved if fate is not None else None

    def take_back(self, answer: Answer, saved: Saved | None) -> None:
        """Forget that a result was to be truncated, and saved for that unless `saved` is it: it is cleared instead."""
        fate = self.fates.pop((answer.message, answer.position), None)
        if fate is None or fate.saved is None:
            return
        path = fate.saved.path
        self.changes = [change for change in self.changes if (change.action, change.path) != ("truncate", path)]
        if fate.saved is saved:
            return
        self.saves = [save for save in self.saves if save is not fate.save]
        self.saved = [other for other in self.saved if other is not fate.saved]
        self.terms.taken.discard(folded(path))
        undone = ResultEdit(parts=self.wire.result_parts(answer.result), extra={SAVED: None})
        before = self._now(answer.message)
        now = self.wire.edit(before, {}, {answer.position: undone})
        self.cells[answer.message] = [now]
        self.freed += self.count(before) - self.count(now)

    def plan(self, tokens_before: int, tokens_after: int) -> Plan[Any]:
        """Return the plan; one without changes hands back the very list."""
        changed = bool(self.changes)
        ledger = self.ledger
        if changed and not self.wire.marks:
            ledger = Ledger((*ledger.saved, *self.saved), ledger.rounds.union(self.digests))
        return Plan(
            messages=self.current() if changed else self.messages,
            wire=self.wire.name,
            changes=tuple(sorted(self.changes, key=lambda change: change.index)),
            saves=tuple(self.saves) if changed else (),
            tokens_before=tokens_before,
            tokens_after=tokens_after if changed else tokens_before,
            ledger=ledger,
        )

    def _now(self, index: int) -> Any:
        return self.cells.get(index, (self.messages[index],))[0]

    def _messages_of(self, found: Round) -> list[Any]:
        return [self._now(index) for index in (*range(found.first, found.last + 1), *found.results)]

    def _edited(self, found: Round, fates: Sequence[Fate]) -> dict[int, Any]:
        """Return the messages of a round that change, each edited once."""
        calls: dict[int, dict[int, CallEdit]] = {}
        results: dict[int, dict[int, ResultEdit]] = {}
        for fate in fates:
            answer = fate.answer
            extra = mark_saved(fate.saved) if fate.saved is not None else None
            edit = ResultEdit(parts=tuple(fate.parts), extra=extra)
            results.setdefault(answer.message, {})[answer.position] = edit
            if fate.argument is not None and fate.argument != argument_json(answer.call.arguments):
                if any(self.wire.view(item).signed for item in self.messages[found.first : found.last + 1]):
                    continue  # what a provider signed stays as it is
                arguments = self._arguments(answer.call, fate.argument)
                calls.setdefault(answer.turn, {})[answer.number] = CallEdit(arguments=arguments)
        return {
            index: self.wire.edit(self._now(index), calls.get(index, {}), results.get(index, {}))
            for index in {*calls, *results}
        }

    def _arguments(self, call: Call, text: str) -> Any:
        """Return arguments in the wire's own form: text as it is, where it takes text."""
        return text if self.wire.text_arguments else self.wire.sound_arguments(call._replace(arguments=text))

    def _note(self, found: Round, fate: Fate) -> None:
        answer, saved = fate.answer, fate.saved
        if fate.save is not None:
            self.saves.append(fate.save)
        if saved is not None and fate.save is not None:
            self.saved.append(saved)
        self.changes.append(
            Change(
                action=fate.action,
                index=answer.turn,
                call_id=answer.call.id,
                name=answer.call.name,
                path=saved.path if saved is not None else "",
                tokens_before=self.weight(self.wire.result_parts(answer.result) or ()),
                tokens_after=self.weight(fate.parts),
            )
        )

    def weight(self, parts: Sequence[Part]) -> int:
        """Return how many tokens the texts among `parts` take up."""
        return sum([self.terms.measure(part.text) for part in parts if isinstance(part, TextPart)])

    def _keep_in_mind(self, found: Round) -> None:
        """Remember what a round says now, on a wire whose messages cannot carry a mark."""
        now = self._messages_of(found)
        self.digests += [round_digest(self.wire, each) for each in rounds_of(self.wire, now)[:1]]


def is_cleared(draft: Draft, answer: Answer) -> bool:
    """Tell whether what stands there is a placeholder of ours."""
    text, complete = draft.wire.result_text(answer.result)
    return complete and is_cleared_text(text)
