"""Fit: what one profile demands beyond pairing, done message by message from left to right.

`Fitter` is a fold: `feed` takes the next message of a paired history, and what comes out depends on what
went before, never on what follows. So the work can stop at any boundary and go on from there (`fork`).

Signed or encrypted content outranks acceptance: in such a message only ids change, and what else is wrong
with it stays unresolved.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

from suture.language import Language
from suture.pairing import UNKNOWN_TOOL, Finding, is_builtin_text, match_call, placeholder_text
from suture.profiles import Profile
from suture.repair._blocks import calls_last, results_first, split_results, without_blank_text
from suture.repair._ids import Ids
from suture.repair._items import ItemRules
from suture.repair._outlet import Outlet
from suture.wires import BlockWire, Call, CallEdit, Key, Result, ResultEdit, View, Wire

__all__ = ["Fitter"]

_FILLERS: dict[Language, str] = {
    "en": "(the tool failed without a message)",
    "zh": "(工具执行失败,没有返回信息)",
}


class _Open(NamedTuple):
    """A call whose result is still to come, with the id it goes by now."""

    call: Call
    key: Key
    id: str
    name: str
    turn: int


class Fitter:
    """Fit a paired history to one profile.

    >>> from suture.profiles import get_profile
    >>> from suture.wires import get_wire
    >>> fitter = Fitter(get_wire("openai-chat"), get_profile("openai-chat"), "en")
    >>> fitter.feed({"role": "assistant", "content": None}, 0)
    >>> fitter.finish(), fitter.findings[0].problem
    ([], 'empty-message')
    """

    def __init__(self, wire: Wire, profile: Profile, language: Language) -> None:
        self.wire, self.profile = wire, profile
        self.language: Language = language
        self.rules = profile.rules_for(wire.name)
        self.findings: list[Finding] = []
        self._edited = False
        self._ids = Ids(profile.ids) if profile.ids is not None else None
        self._items = ItemRules(wire) if {"lone-reasoning", "repeated-item"} & self.rules.keys() else None
        self._outlet = Outlet(wire, self.rules, language, system_outside=profile.system_outside)
        self._open: list[_Open] = []
        self._media: list[Any] = []
        self.pending: frozenset[int] = frozenset()
        """Turns that wait for more results: nothing may be shown behind those they have."""
        self._turn_is_pending = False
        self._origin = 0
        self._turn = 0
        self._calling_turn = 0
        """The latest turn that has calls."""
        self._last_role = ""

    def fork(self) -> "Fitter":
        """Return a fitter that goes on from here and leaves this one as it is."""
        twin = Fitter(self.wire, self.profile, self.language)
        twin._ids = self._ids.fork() if self._ids is not None else None
        twin._items = self._items.fork() if self._items is not None else None
        twin._outlet = self._outlet.fork()
        twin._open, twin._media = list(self._open), list(self._media)
        twin._origin, twin._last_role = self._origin, self._last_role
        twin._turn, twin._calling_turn = self._turn, self._calling_turn
        return twin

    @property
    def changed(self) -> bool:
        """Whether anything that came out differs from what was fed."""
        return self._edited or self._outlet.changed

    @property
    def holds_nothing_back(self) -> bool:
        """Whether `finish` would only put out the last message, as it is."""
        lone = self._items is not None and self._items.ends_lone()
        return not self._media and not lone and self._outlet.holds_only_last

    def take(self) -> tuple[list[Any], list[Finding]]:
        """Return what is out for good and what was found, and forget both; the last message may be held back."""
        out, self._outlet.out = self._outlet.out, []
        findings, self.findings = self.findings, []
        return out, findings

    def feed(self, message: Any, origin: int) -> None:
        """Take the next message; `origin` is its place in what was handed in."""
        self._origin = origin
        view = self.wire.view(message, origin)
        if not view.results:
            self._show_media()
        self._begin_turn(view)
        fitted = message if self._items is None else self._fit_item(self._items, message, view)
        if view.calls or view.results:
            fitted = self._fit_calls_and_results(fitted, view)
            fitted = self._lift_media(fitted, view)
        if view.role == "assistant":
            fitted = self._fit_fields(fitted, view)
        parts = self._fit_blocks(fitted, view)
        self._edited = self._edited or len(parts) != 1 or parts[0] is not message
        for part in parts:
            self._put(part, view if len(parts) == 1 else self.wire.view(part))

    def open_calls(self) -> list[tuple[str, str]]:
        """Return the (id, name) that the calls of the last turn go by that have no result."""
        return [(call.id, call.name) for call in self._open if call.turn == self._calling_turn]

    def finish(self) -> list[Any]:
        """Return all that came out since the start, or since the fork."""
        self._show_media()
        if self._items is not None and self._items.ends_lone():
            self._tell_at(self._items.last_origin, "lone-reasoning", None, "")
        out = self._outlet.finish()
        self._tell_noted()
        return out

    def _put(self, message: Any, view: View) -> None:
        self._outlet.put(message, view)
        if self._outlet.noted:
            self._tell_noted()

    def _tell_noted(self) -> None:
        for problem, done in self._outlet.noted:
            self._note(problem, done)
        self._outlet.noted.clear()

    # Calls and results

    def _begin_turn(self, view: View) -> None:
        """Notice a new turn: a message with calls; among items, the first of a run of the model's."""
        first_of_run = view.role == "assistant" and self._last_role != "assistant"
        begins = first_of_run if self.wire.set_like else bool(view.calls)
        self._last_role = view.role
        if begins:
            self._turn += 1
            self._turn_is_pending = self._origin in self.pending
            if not self.wire.set_like:
                self._open = []
            if self._ids is not None:
                self._ids.begin_turn()

    def _fit_calls_and_results(self, message: Any, view: View) -> Any:
        calls = self._call_edits(view) if view.calls else {}
        results = self._result_edits(view) if view.results else {}
        return self.wire.edit(message, calls, results) if calls or results else message

    def _call_edits(self, view: View) -> dict[int, CallEdit]:
        self._calling_turn = self._turn
        edits: dict[int, CallEdit] = {}
        for position, call in enumerate(view.calls):
            given = self._give_id(call)
            name, arguments = self._name(call, signed=view.signed), self._arguments(call, signed=view.signed)
            self._open.append(_Open(call, self.wire.key(call), given or call.id, name or call.name, self._turn))
            if given is not None or name is not None or arguments is not None:
                edits[position] = CallEdit(given, name, arguments)
        return edits

    def _give_id(self, call: Call) -> str | None:
        """Return the new id of `call`, `None` where it keeps its own (or, in the older form, has none)."""
        if self._ids is None or not self.wire.has_id(call):
            return None
        given = self._ids.give(call.id)
        if given == call.id:
            return None
        problem = "missing-id" if not call.id else "repeated-id" if self._ids.form.accepts(call.id) else "illegal-id"
        self._tell(problem, call, f"renamed to {given}")
        return given

    def _name(self, call: Call, *, signed: bool) -> str | None:
        if not call.name and "missing-name" in self.rules:
            self._tell("missing-name", call, "" if signed else f"named {UNKNOWN_TOOL}")
            return None if signed else UNKNOWN_TOOL
        if "illegal-name" in self.rules and call.name and not self.profile.accepts_name(call.name):
            self._tell("illegal-name", call, "")
        return None

    def _arguments(self, call: Call, *, signed: bool) -> Any:
        """Return the arguments that `call` must have instead of its own; `None` where it keeps them."""
        if "bad-arguments" not in self.rules or self.wire.arguments_ok(call):
            return None
        sound = None if signed else self.wire.sound_arguments(call)
        done = "replaced by {}" if sound in ({}, "{}") else "put in the right form"
        self._tell("bad-arguments", call, "" if signed else done)
        return sound

    def _result_edits(self, view: View) -> dict[int, ResultEdit]:
        edits: dict[int, ResultEdit] = {}
        for position, result in enumerate(view.results):
            answered = self._answered(result)
            if answered is None:
                continue
            given = self._result_id(result, answered)
            text = self._result_text(result)
            if given is not None and text is None:
                text = self._reword(result, answered, given)
            name = self._result_name(result, answered)
            if given is not None or name is not None or text is not None:
                edits[position] = ResultEdit(given, name, text)
        return edits

    def _answered(self, result: Result) -> _Open | None:
        """Return the call that `result` answers: after pairing, the first that waits for such a result."""
        if self._open and self._open[0].key == self.wire.key(result) and not result.name:
            return self._open.pop(0)  # by far the usual case
        calls = self._open if result.id else [call for call in self._open if call.turn == self._calling_turn]
        place = match_call(self.wire, result, [(call.key, call.call) for call in calls])
        if place < 0:
            return None
        answered = calls[place]
        self._open.remove(answered)
        return answered

    def _result_id(self, result: Result, answered: _Open) -> str | None:
        if self._ids is None or result.id == answered.id or not self.wire.has_id(answered.call):
            return None
        if result.id != answered.call.id:
            self._tell("wrong-id", answered.call, f"given its call's id {answered.id}")
        return answered.id

    def _result_name(self, result: Result, answered: _Open) -> str | None:
        if "result-name" not in self.rules or not answered.name or result.name == answered.name:
            return None
        self._tell("result-name", answered.call, f"named {answered.name}")
        return answered.name

    def _result_text(self, result: Result) -> str | None:
        if "empty-error" in self.rules and self.wire.is_empty_error(result):
            self._tell("empty-error", Call(result.id, result.name), "given a text")
            return _FILLERS[self.language]
        if "no-content" in self.rules and self.wire.lacks_content(result):
            self._tell("no-content", Call(result.id, result.name), "given empty content")
            return ""
        return None

    def _reword(self, result: Result, answered: _Open, given: str) -> str | None:
        """A placeholder of ours tells the id of its call, so it follows a rename."""
        text, complete = self.wire.result_text(result)
        call = answered.call
        cause = is_builtin_text(text, call.name, call.id) if complete else None
        if cause is None or given == call.id:
            return None
        told = placeholder_text(cause, call.name, given, "zh" if text.startswith("工具") else "en")
        return told.replace("was canceled", "was cancelled") if "was cancelled" in text else told

    # Items, fields and blocks

    def _fit_item(self, items: ItemRules, message: Any, view: View) -> Any:
        before = items.last_origin
        if items.is_lone(message, self._origin):
            self._tell_at(before, "lone-reasoning", None, "")
        if items.is_repeated(message):
            self._note("repeated-item", "" if view.signed else "its item id left out")
            return message if view.signed else self.wire.without_item_id(message)
        return message

    def _lift_media(self, message: Any, view: View) -> Any:
        if "media-in-result" not in self.rules or not view.results or self._turn_is_pending:
            return message
        message, media = self.wire.lift_media(message, self.language)
        if media:
            self._media += media
            self._tell("media-in-result", Call(view.results[0].id, view.results[0].name), "shown after the results")
        return message

    def _show_media(self) -> None:
        if self._media:
            media, self._media = self._media, []
            self._put(self.wire.show_media(media), View("user"))

    def _fit_fields(self, message: Any, view: View) -> Any:
        if "missing-field" in self.rules and view.calls:
            filled = self.wire.fill(message, self.profile.field)
            if filled is not message:
                self._note("missing-field", f"{self.profile.field} added, empty")
            message = filled
        if "empty-calls" in self.rules:
            tidy = self.wire.tidy(message)
            if tidy is not message:
                self._note("empty-calls", "empty list of calls left out")
            message = tidy
        return message

    def _fit_blocks(self, message: Any, view: View) -> list[Any]:
        """Return `message` with its blocks in order; nothing where it is empty; the parts it is split into."""
        if view.empty and not view.signed and "empty-message" in self.rules:
            self._note("empty-message", "dropped")
            return []
        wire = self.wire
        if not isinstance(wire, BlockWire):
            return [message]
        blocks: Sequence[Any] = wire.blocks(message)
        fitted = self._reorder(wire, blocks, view)
        if fitted is not blocks:
            message = wire.with_blocks(message, fitted)
        if "trailing-text" in self.rules and view.results and view.loose:
            self._note("trailing-text", "split off into the next message")
            return [part for part in split_results(wire, message) if not wire.view(part).empty]
        return [message]

    def _reorder(self, wire: BlockWire, blocks: Sequence[Any], view: View) -> Sequence[Any]:
        for problem, operation, applies, done in (
            ("blank-text", without_blank_text, view.loose, "blank text left out"),
            ("results-not-first", results_first, bool(view.results) and view.loose, "results put first"),
            ("text-after-calls", calls_last, bool(view.calls), "calls put last"),
        ):
            if not applies or problem not in self.rules:
                continue
            better = operation(wire, blocks)
            if _same_blocks(better, blocks):
                continue
            self._note(problem, "" if view.signed else done)
            blocks = blocks if view.signed else better
        return blocks

    def _note(self, problem: str, done: str) -> None:
        self._tell(problem, None, done)

    def _tell(self, problem: str, call: Call | None, done: str) -> None:
        self._tell_at(self._origin, problem, call, done)

    def _tell_at(self, index: int, problem: str, call: Call | None, done: str) -> None:
        rule = self.rules.get(problem)
        self.findings.append(
            Finding(
                index=index,
                problem=problem,
                call_id=call.id if call else "",
                name=call.name if call else "",
                done=done,
                rule=rule.id if rule else "",
                says=rule.says if rule else "",
                source=rule.source if rule else "",
            )
        )


def _same_blocks(one: Sequence[Any], other: Sequence[Any]) -> bool:
    return len(one) == len(other) and all(left is right for left, right in zip(one, other, strict=True))
