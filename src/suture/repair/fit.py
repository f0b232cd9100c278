"""Fit: makes a paired history meet the demands of one profile.

It is a left fold: its output depends on earlier messages, never on later ones, so it can stop at any closed place and
continue from there. It first arranges each group, then repairs each message, then each together with the one before.

Signed or encrypted content is more important than acceptance: there only ids change and whole messages are joined or
split; any other problem stays unresolved.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from suture.language import Language
from suture.messages import TextPart
from suture.profiles import STRUCTURAL, Operation, Profile
from suture.repair.ids import Ids, ServerUses
from suture.repair.pairing import Record
from suture.repair.rebuild import Group, Pair
from suture.repair.report import Finding
from suture.repair.texts import UNKNOWN_TOOL, note_text, origin_text, reword
from suture.wires import BlockWire, Call, CallEdit, Piece, RawPart, ResultEdit, Wire, without_lone_escapes

_DONE = {
    "blank-text": "blank text left out",
    "results-not-first": "results put first",
    "text-after-calls": "calls put last",
    "unsigned-thinking": "dropped: a stream was cut before its signature",
    "no-content": "given empty content",
    "empty-calls": "empty list of calls left out",
    "developer-role": "told as the system's",
    "thought-field": "thoughts in fields left out",
    "illegal-item-id": "its item id left out",
    "bad-response": "put in the right form",
}
"""By problem of a single message, the text of the repair."""

_NOT_IN_SIGNED = frozenset(("results-not-first", "text-after-calls", "bad-response"))
"""Problems that are not repaired in a message with signed content, because its blocks would change or move."""


class _Held(Struct, frozen=True, eq=False):
    """The last output message; the next ones may still be joined to it."""

    message: Any
    role: str
    index: int
    has_results: bool
    joined: tuple[Any, Record] | None = None
    """The messages that were joined to it: all but the last one, and the last one."""
    before: "_Held | None" = None
    """The message before it, which is held too if this one is only thinking and may be dropped."""


class Fit:
    """Fits a paired history to one profile.

    >>> from suture.profiles import get_profile
    >>> from suture.wires import get_wire
    >>> wire = get_wire("openai-chat")
    >>> fit = Fit(wire, get_profile("openai-chat"), "en")
    >>> empty = {"role": "assistant", "content": None}
    >>> fit.feed([Record(0, empty, wire.view(empty))], [])
    >>> fit.finish(), fit.findings[0].problem
    ([], 'empty-message')
    """

    def __init__(
        self, wire: Wire, profile: Profile, language: Language, starts_with_user: Callable[[], bool] = bool
    ) -> None:
        self.wire, self.profile, self.starts_with_user = wire, profile, starts_with_user
        self.language: Language = language
        self.rules = profile.rules_for(wire)
        self.ids = Ids(profile.ids) if profile.ids is not None else None
        self._uses = ServerUses(wire)
        self.items: dict[str, None] = {}
        """The ids of the items so far."""
        self.documents: dict[str, None] = {}
        """The names of the documents so far."""
        self.demands_nothing = profile.ids is None and self.rules.keys() <= STRUCTURAL
        """Whether fit changes nothing that pairing leaves, whatever comes before it."""
        self._set_like = wire.set_like and not profile.adjacent
        self._passes = [problem for problem in wire.mends if problem in self.rules]
        self._parts_steps = next((name for name in ("split-turn", "turn-order", "same-role") if name in self.rules), "")
        """The problem of a turn in several messages, if the provider has one with that."""
        self.begun = False
        """Whether the output has a message in which somebody speaks."""
        self._held: _Held | None = None
        self._reasoning: list[Record] = []
        """Reasoning items that must be followed by an item that they produced."""
        self._repaired_ids: set[int] = set()
        """The `id()` of the messages of the current group that were repaired one by one already."""
        self.findings: list[Finding] = []
        self.out: list[Any] = []
        self.changed = False

    # The fold

    def pass_by(self, messages: list[Any], start: int, stop: int) -> None:
        """Output `messages[start:stop]`, which are acceptable as they are."""
        self._drop_reasoning()
        self._release()
        if self.out:
            self.out += messages[start : stop - 1]
        else:
            self.out = messages[start : stop - 1]
        self._hold_last(messages, start, stop)

    def _hold_last(self, messages: Sequence[Any], start: int, stop: int) -> None:
        """Hold the last of `messages[start:stop]`, which are acceptable as they are."""
        view = self.wire.view(messages[stop - 1])
        self._held = _Held(messages[stop - 1], view.role, stop - 1, bool(view.results))
        if not self.begun:
            roles = (self.wire.view(messages[index]).role for index in range(start, stop))
            self.begun = not self.profile.system_outside or any(role != "system" for role in roles)

    def pass_back(self, messages: Sequence[Any], since: int, start: int, stop: int, plain: Sequence[Any]) -> None:
        """Take back `messages[start:stop]`, the end of `messages[since:stop]` that passed by; a glance saw `plain`."""
        del self.out[len(self.out) - (stop - start) :]
        self._uses.take_back(len(self.out))
        self.begun = since > 0
        self._hold_last(messages, since, start)
        used = self.ids.used if self.ids else {}
        for passed, read in ((self.items, self.wire.item_ids), (used, self.wire.call_ids)):
            taken = set(read(plain, start, stop)) if passed else ()
            while passed and next(reversed(passed)) in taken:
                passed.popitem()

    @property
    def last(self) -> str:
        """The role of the last output message; `results` if it holds some."""
        held = self._held
        return "" if held is None else "results" if held.has_results else held.role

    def mark(self) -> tuple[Any, ...]:
        """Return a point that `take_back` can return to."""
        counts = len(self.out), len(self.findings), len(self.documents), len(self.items)
        ids = self.ids.mark() if self.ids is not None else None
        return self._held, tuple(self._reasoning), counts, ids, self.begun, self.changed

    def take_back(self, point: tuple[Any, ...]) -> None:
        """Undo everything since `mark` returned `point`."""
        self._held, reasoning, (out, findings, documents, items), ids, self.begun, self.changed = point
        self._reasoning = list(reasoning)
        del self.out[out:], self.findings[findings:]
        self._uses.take_back(out)
        for passed, count in ((self.documents, documents), (self.items, items)):
            while len(passed) > count:
                passed.popitem()
        if self.ids is not None:
            self.ids.take_back(ids)

    def feed(self, items: Sequence[Record], groups: Sequence[Group]) -> None:
        """Fit the next messages of a paired history, given the groups that they belong to."""
        if self.demands_nothing:
            for item in items:
                self._put(item)
            return
        begins = {id(group.turn[0]): group for group in groups}
        place = 0
        while place < len(items):
            group, fitted = begins.get(id(items[place])), [items[place]]
            place += 1
            if group is not None:
                place += len(group.turn) + (0 if self._set_like else len(group.results)) - 1
                self._end_turn(group)
                self._edit_group(group)
                if self._set_like:
                    group = replace(group, results=[])  # results may be anywhere, and are fitted where they are
                fitted = self._arrange(group)
            for item in fitted:
                self._fit_message(item)
            self._repaired_ids.clear()

    def finish(self) -> list[Any]:
        """Return the whole output."""
        self._drop_reasoning()
        self.end_reply(goes_on=True)
        self._release()
        return self.out

    # Calls and results

    def _end_turn(self, group: Group) -> None:
        """Drop the thinking after a turn's calls first, because it decides whether the calls count as signed."""
        turn, drop = group.turn, self.wire.without_trailing_thinking
        while "trailing-thinking" in self.rules and (rest := drop(turn[-1].message)) is not turn[-1].message:
            if not self._find("trailing-thinking", turn[-1], "dropped"):
                return
            if rest is None:
                turn.pop()
            else:
                self._replace(turn[-1], rest)

    def _edit_group(self, group: Group) -> None:
        """Change ids, names, arguments and texts of calls and results as the profile demands."""
        if self.ids is not None:
            self.ids.begin_turn()
        calls: dict[int, dict[int, CallEdit]] = defaultdict(dict)
        results: dict[int, dict[int, ResultEdit]] = defaultdict(dict)
        for pair in group.pairs:
            call = pair.call.view.calls[pair.position]
            edit = self._edit_call(pair, call)
            if edit is not None:
                calls[id(pair.call)][pair.position] = edit
            if pair.answer is not None:
                change = self._edit_result(pair, pair.answer, call, edit or CallEdit())
                if change is not None:
                    results[id(pair.answer)][pair.answer_position] = change
        for item in (*group.turn, *group.results):
            if id(item) in calls or id(item) in results:
                self._replace(item, self.wire.edit(item.message, calls[id(item)], results[id(item)]))
        if "missing-field" in self.rules:
            for item in group.turn:
                filled = self.wire.fill(item.message, self.profile.field)
                done = f"{self.profile.field} added, empty"
                if filled is not item.message and self._find("missing-field", item, done):
                    self._replace(item, filled)

    def _edit_call(self, pair: Pair, call: Call) -> CallEdit | None:
        item, signed, ids = pair.call, pair.call.view.signed, self.ids
        new_id = name = arguments = None
        if ids is not None and self.wire.has_id(call):  # the older form has none
            made = ids.give(call.id)
            problem = "missing-id" if not call.id else "repeated-id" if ids.form.accepts(call.id) else "illegal-id"
            if made != call.id and problem in self.rules and self._find(problem, item, f"renamed to {made}", call):
                new_id = made
        if not call.name and "missing-name" in self.rules:
            if self._find("missing-name", item, "" if signed else f"named {UNKNOWN_TOOL}", call):
                name = UNKNOWN_TOOL
        elif call.name and "illegal-name" in self.rules and not self.profile.accepts_name(call.name):
            self._find("illegal-name", item, "", call)
        if "bad-arguments" in self.rules and not self.wire.arguments_ok(call):
            sound = self.wire.sound_arguments(call)
            done = "replaced by {}" if sound in ({}, "{}") else "put in the right form"
            if self._find("bad-arguments", item, "" if signed else done, call):
                arguments = sound
        elif "lone-surrogate" in self.rules and self.wire.text_arguments and isinstance(call.arguments, str):
            whole = without_lone_escapes(call.arguments) if "\\u" in call.arguments else call.arguments
            if whole != call.arguments and self._find("lone-surrogate", item, "replaced by U+FFFD", call):
                arguments = whole
        return None if new_id is None and name is None and arguments is None else CallEdit(new_id, name, arguments)

    def _edit_result(self, pair: Pair, item: Record, call: Call, edit: CallEdit) -> ResultEdit | None:
        result = item.view.results[pair.answer_position]
        new_id = edit.id
        if new_id is None and result.id != call.id and self.wire.has_id(call) and self.ids is not None:
            new_id = call.id
            self._find("wrong-id", item, f"given its call's id {new_id}", call)
        text = None
        if "empty-error" in self.rules and self.wire.is_empty_error(result):
            found = self._find("empty-error", item, "given a text", Call(result.id, result.name))
            text = note_text("silent-error", self.language) if found else None
        if text is None and edit.id is not None:
            old, complete = self.wire.result_text(result)
            text = reword(old, call.name, call.id, edit.id) if complete else None
        name = edit.name or call.name
        wrong = {
            "result-name": name and result.name != name,
            "missing-result-name": not result.name and not self.wire.has_id(Call(result.id, name, kind=result.kind)),
            "illegal-result-name": result.name not in {"", name} and not self.profile.accepts_name(result.name),
        }
        problem = next((problem for problem, is_so in wrong.items() if is_so and problem in self.rules), "")
        named = bool(problem) and self._find(problem, item, f"named {name}", Call(result.id, name, kind=result.kind))
        change = ResultEdit(new_id, name if named else None, text)
        return None if change == ResultEdit() else change

    # The form of a group

    def _arrange(self, group: Group) -> list[Record]:
        """Return the messages of a group in the order that the provider wants, followed by the media of its results."""
        media = self._lift_media(group)
        if len(group.turn) > 1:  # each message must be in order to see where a step begins
            for item in group.turn:
                self._repair_alone(item)
        turn = group.turn
        first = next((place for place, item in enumerate(turn) if item.view.calls), len(turn))
        between = [item for item in turn[first:] if not item.view.calls]
        if between and "text-between-calls" in self.rules:
            done = "" if any(item.view.signed for item in between) else "moved before the calls"
            if self._find("text-between-calls", between[0], done):
                turn = sorted(turn, key=lambda item: bool(item.view.calls))
        segments = [turn] if group.pending else self._segments(turn)
        if len(segments) > 1:
            arranged = self._split(group, segments)
        else:
            arranged = [*self._join(segments[0]), *self._ordered(group)]
        if media:
            shown = self.wire.show_media(media)
            arranged.append(self._make(shown, arranged[-1].index))
        return arranged

    def _segments(self, turn: list[Record]) -> list[list[Record]]:
        """Split the messages of a turn into the steps that the provider sees in them: usually one."""
        if len(turn) == 1 or not self._parts_steps:
            return [turn]
        segments: list[list[Record]] = [[]]
        called = False
        for item in turn:
            if called and ("split-turn" in self.rules or self.wire.begins_step(item.message)):
                segments.append([])
                called = False
            segments[-1].append(item)
            called = called or bool(item.view.calls)
        if len(segments) > 1 and not called:
            self._move_text_forward(segments)
        return segments

    def _move_text_forward(self, segments: list[list[Record]]) -> None:
        """Move what the model said after its last call in front of the calls, since it had not seen their results."""
        *_, before, said = segments
        first = next(place for place, item in enumerate(before) if item.view.calls)
        if any(item.view.signed for item in (*before[first:], *said)):
            return  # it stays a separate step, after the results
        if self._find(self._parts_steps, said[0], "put before the calls"):
            segments[-2:] = [[*before[:first], *said, *before[first:]]]
        else:
            segments[-2:] = [[*before, *said]]

    def _split(self, group: Group, segments: list[list[Record]]) -> list[Record]:
        """Return each segment followed by the results of its calls."""
        if not self._find(self._parts_steps, segments[1][0], "the results of each step put behind it"):
            return [*group.turn, *group.results]
        arranged: list[Record] = []
        answers: dict[int, list[Piece]] = defaultdict(list)
        for pair in group.pairs:
            if pair.answer is not None:
                answers[id(pair.call)].append(Piece(pair.answer.message, pair.answer_position))
        wire = self.wire
        sources = {self._block_ids(each): each for each in group.sources if wire.view(each).role == "user"}
        for segment in segments:
            arranged += self._join(segment)
            pieces = [piece for item in segment for piece in answers[id(item)]]
            for made in wire.carry(pieces) if pieces else ():
                message = sources.get(self._block_ids(made), made)  # perhaps as it was before pairing
                arranged.append(self._make(message, segment[-1].index))
        for item in group.results:
            rest = self.wire.rest(item.message, {}) if item.view.loose else None
            if rest is not None:
                arranged.append(self._make(rest, item.index))
        return arranged

    def _block_ids(self, message: Any) -> tuple[int, ...]:
        """Return the `id()` of each block of a message, or of the message itself if it has no blocks."""
        return tuple(map(id, self.wire.blocks(message) if isinstance(self.wire, BlockWire) else (message,)))

    def _join(self, segment: list[Record]) -> list[Record]:
        """Return the messages of one step, joined into one if the provider wants that."""
        said = [item for item in segment if not item.view.empty]
        wire = self.wire
        if len(said) < 2 or "same-role" not in self.rules or not isinstance(wire, BlockWire):
            return segment
        found = [self._find("same-role", item, "merged with the message before") for item in said[1:]]
        if not all(found):
            return segment
        for item in segment:
            if item.view.empty and "empty-message" in self.rules:
                self._find("empty-message", item, "dropped")
        blocks = [block for item in said for block in wire.blocks(item.message)]
        message = wire.with_blocks(said[0].message, blocks)
        return [self._make(message, said[0].index)]

    def _ordered(self, group: Group) -> list[Record]:
        """Return the results of a group, in call order if the provider demands that."""
        wire = self.wire
        if "results-order" not in self.rules or len(group.pairs) < 2 or not isinstance(wire, BlockWire):
            return group.results
        order = {id(item): number for number, item in enumerate(group.results)}
        wanted = [(order[id(pair.answer)], pair.answer_position) for pair in group.pairs if pair.answer is not None]
        if wanted == sorted(wanted) or not self._find("results-order", group.results[0], "put in call order"):
            return group.results
        blocks = [list(wire.blocks(item.message)) for item in group.results]
        held = [[block for block in each if wire.kind(block) == "result"] for each in blocks]
        rest = [block for each in blocks for block in each if wire.kind(block) != "result"]
        message = wire.with_blocks(group.results[0].message, [*[held[at][number] for at, number in wanted], *rest])
        return [self._make(message, group.results[0].index)]

    def _lift_media(self, group: Group) -> list[tuple[str, list[Any]]]:
        """Take media out of results that may not hold them; return them with the call that each came from."""
        lifted: list[tuple[str, list[Any]]] = []
        everywhere = "media-in-result" in self.rules
        if group.pending or not (everywhere or "media-in-error" in self.rules):
            return lifted
        problem = "media-in-result" if everywhere else "media-in-error"
        names = {
            (id(pair.answer), pair.answer_position): pair.call.view.calls[pair.position].name for pair in group.pairs
        }
        for item in group.results:
            edits: dict[int, ResultEdit] = {}
            for position, result in enumerate(item.view.results):
                if not (everywhere or result.failed):
                    continue
                parts = self.wire.result_parts(result) or ()
                media = [part for part in parts if not isinstance(part, TextPart)]
                if not media or not self._find(problem, item, "shown after the results", Call(result.id, result.name)):
                    continue
                kind = "medium-moved" if len(media) == 1 else "media-moved"
                note = TextPart(note_text(kind, self.language, count=len(media)))
                edits[position] = ResultEdit(parts=[*[part for part in parts if isinstance(part, TextPart)], note])
                name = names.get((id(item), position), result.name)
                raws = [part.raw if isinstance(part, RawPart) else part for part in media]
                lifted.append((note_text("media", self.language, origin=origin_text(name, result.id)), raws))
            if edits:
                self._replace(item, self.wire.edit(item.message, {}, edits))
        return lifted

    # One message

    def _repair_alone(self, item: Record) -> None:
        """Repair the problems of a single message."""
        if id(item) in self._repaired_ids:
            return
        self._repaired_ids.add(id(item))
        for problem in self._passes:
            better = self.wire.mends[problem](item.message, item.view)
            may = better is not None and (not item.view.signed or problem not in _NOT_IN_SIGNED)
            if better is not item.message and self._find(problem, item, _DONE[problem] if may else ""):
                self._replace(item, better)

    def _fit_message(self, item: Record) -> None:
        self._repair_alone(item)
        self._watch_items(item)
        self._watch_uses(item)
        if "repeated-document" in self.rules:
            better = self.wire.name_documents(item.message, self.documents)
            if better is not item.message and self._find("repeated-document", item, "renamed"):
                self._replace(item, better)
        view = item.view
        if self._is_nothing(item) and self._find("empty-message", item, "dropped"):
            return
        apart = "trailing-text" in self.rules and bool(view.results) and view.loose
        wire, done = self.wire, "split off into the next message"
        if apart and isinstance(wire, BlockWire) and self._find("trailing-text", item, done):
            for wanted in (True, False):  # the results, then the rest
                part = [block for block in wire.blocks(item.message) if (wire.kind(block) == "result") is wanted]
                message = wire.with_blocks(item.message, part)
                if part and not wire.view(message).empty:
                    self._put(self._make(message, item.index))
            return
        if self.wire.wants_follower(item.message) and "lone-reasoning" in self.rules:
            self._reasoning.append(item)
            return
        self._put(item)

    def _is_nothing(self, item: Record) -> bool:
        return item.view.empty and not item.view.signed and "empty-message" in self.rules

    def _watch_items(self, item: Record) -> None:
        """Remove repeated item ids, and drop reasoning that is not followed by the item that it produced."""
        item_id = self.wire.item_id(item.message) if "repeated-item" in self.rules else ""
        if item_id and item_id in self.items:
            if self._find("repeated-item", item, "" if item.view.signed else "its item id left out"):
                self._replace(item, self.wire.without_item_id(item.message))
        elif item_id:
            self.items[item_id] = None
        if self._reasoning and not self.wire.wants_follower(item.message):
            if self.wire.can_follow(item.message) and not self._is_nothing(item):
                reasoning, self._reasoning = self._reasoning, []
                for thought in reasoning:
                    self._put(thought)
            else:
                self._drop_reasoning()

    def _watch_uses(self, item: Record) -> None:
        """Report results of server tools whose uses are not in this reply, which may have paused for our calls."""
        wire, held = self.wire, self._held
        if "split-server-tool" not in self.rules or item.view.role != "assistant":
            return
        _, lacking = wire.server_tools(item.message)
        while lacking and held is not None and (held.role == "assistant" or held.has_results):
            lacking -= wire.server_tools(self._merge(held))[0]
            held = held.before
        if lacking and (held is not None or not lacking <= self._uses.find(self.out)):
            self._find("split-server-tool", item, "")

    def _drop_reasoning(self) -> None:
        reasoning, self._reasoning = self._reasoning, []
        for item in reasoning:
            if not self._find("lone-reasoning", item, "dropped"):
                self._put(item)

    def _may_go(self, message: Any) -> bool:
        """Return whether a message may vanish completely if it ends a reply."""
        rest = self.wire.without_open_uses(message)
        return rest is None or self.wire.without_trailing_thinking(rest) is None

    def end_reply(self, *, goes_on: bool) -> None:
        """Drop what must not end a reply: thoughts, and open uses of server tools unless the reply may go on."""
        held = self._held
        drops: list[tuple[str, Callable[[Any], Any]]] = [("trailing-thinking", self.wire.without_trailing_thinking)]
        if not goes_on:
            drops.append(("open-server-tool", self.wire.without_open_uses))
        while held is not None and held.role == "assistant":
            before, last = held.joined or (None, held)
            for problem, drop in drops:
                rest = drop(last.message) if problem in self.rules else last.message
                if rest is not last.message and self._find(problem, last, "dropped"):
                    break
            else:
                return
            if isinstance(last, Record):
                held = replace(held, joined=before if rest is None else (before, self._make(rest, last.index)))
            elif rest is not None:
                held = replace(held, message=rest)
            else:
                held = held.before  # it may end in thinking, too
            self._held = held

    # A message together with the one before it

    def _put(self, item: Record) -> None:
        message, view, role = item.message, item.view, item.view.role
        held = self._held
        if held is not None and held.role == "assistant" and role != "assistant":
            self.end_reply(goes_on=bool(view.results))
            held = self._held
        late = role == "system" and held is not None and (held.has_results or held.role == "assistant")
        if late and "late-system" in self.rules and self._find("late-system", item, "sent as the user's"):
            message, role = self.wire.as_role(message, "user"), "user"
        has_results, rules = bool(view.results), self.rules
        if held is not None and held.role == role != "system":
            both = held.has_results and has_results
            problem = "same-role" if "same-role" in rules else "split-results" if both else ""
            if problem in rules and self._find(problem, item, "merged with the message before"):
                both = held.has_results or has_results
                self._held = replace(held, joined=(held.joined, Record(item.index, message, view)), has_results=both)
                return
        if not self.begun and role == "assistant":
            # Even if no rule demands it, the user's side must begin: its first message was dropped, which was reported.
            demanded = "model-first" in rules and self._find("model-first", item, "a user message put before it")
            if demanded or ("model-first" not in rules and self.starts_with_user()):
                self._insert("user", item.index)
        elif (
            held is not None
            and (held.has_results and role == "user" and not has_results and "tool-then-user" in rules)
            and self._find("tool-then-user", item, "an assistant message put between")
        ):
            self._insert("assistant", item.index)
        self._hold(_Held(message, role, item.index, has_results))

    def _insert(self, role: str, index: int) -> None:
        self.changed = True
        message = self.wire.speak(role, note_text(role, self.language))
        self._hold(_Held(message, role, index, has_results=False))

    def _hold(self, held: _Held) -> None:
        if held.role == "assistant" and self._may_go(held.message):
            held = replace(held, before=self._held)
        else:
            self._release()
        self._held = held
        self.begun = self.begun or held.role != "system" or not self.profile.system_outside

    def _release(self) -> None:
        """Output the held message, and those held before it."""
        made: list[Any] = []
        held, self._held = self._held, None
        while held is not None:
            made.append(self._merge(held))
            held = held.before
        self.out += reversed(made)

    def _merge(self, held: _Held) -> Any:
        """Return a held message merged with all that was joined to it."""
        message, joined, wire = held.message, held.joined, self.wire
        if joined is not None and isinstance(wire, BlockWire):
            parts: list[Any] = []
            while joined is not None:
                joined, part = joined
                parts.append(part.message)
            blocks = [block for part in (message, *reversed(parts)) for block in wire.blocks(part)]
            if "results-not-first" in self.rules:
                blocks.sort(key=lambda block: wire.kind(block) != "result")
            message = wire.with_blocks(message, blocks)
        return message

    # Reporting

    def _make(self, message: Any, index: int) -> Record:
        return Record(index, message, self.wire.view(message))

    def _replace(self, item: Record, message: Any) -> None:
        item.message, item.view = message, self.wire.view(message)

    def _find(self, problem: str, item: Record | _Held, done: str, call: Call | None = None) -> bool:
        """Report a problem; return whether to repair it, as `done` says."""
        rule = self.rules.get(problem)
        if rule is not None and rule.operation is Operation.UNREPAIRABLE:
            done = ""
        self.changed = self.changed or bool(done)
        call_id, name = (call.id, call.name) if call else ("", "")
        found = Finding(index=item.index, problem=problem, call_id=call_id, name=name, done=done)
        self.findings.append(found.cite(rule))
        return bool(done)
