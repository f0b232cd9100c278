"""Compaction: brings any history under a limit, in steps that stop as soon as there is room.

It clears tool results, drops old thinking, folds the oldest rounds into a summary (or, without a model, a digest), and
cuts the largest blocks in the middle. It never splits a call from its result, folds a pending call or loses a user's
words.
"""

import dataclasses
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from inspect import iscoroutinefunction
from itertools import pairwise
from typing import Any, NamedTuple

from suture.errors import ConfigError, ContextLengthError, ContextOverflowError
from suture.language import resolve_language
from suture.messages import M, TextPart, ToolInfo
from suture.profiles import get_profile
from suture.reduction import texts
from suture.reduction.draft import Change, Draft, Ledger, Save, Terms, rounds_of
from suture.reduction.phases import Meter, clear, name_by_content
from suture.reduction.plan import Plan, ask_plainly, complete, make_terms
from suture.reduction.settings import Settings
from suture.reduction.texts import Entry, Summary
from suture.repair import assign
from suture.repair.pairing import cuts_between
from suture.tokens import CharacterCounter, Counter, Tally
from suture.wires import ResultEdit, Wire, get_wire, recognise

_MOST_SUMMARY, _LEAST_SUMMARY = 4_000, 64
"""The greatest and the smallest number of tokens of a summary."""
_NOTICE = 160
"""An upper bound for the characters of a notice without its path."""
_MOST_CHUNKS = 64


class Limits(NamedTuple):
    """The limit and the target of a request in tokens, and what is sent besides the messages."""

    limit: int
    target: int
    instruction: int = 0
    tools: int = 0

    @property
    def fixed(self) -> int:
        """The tokens that are sent besides the messages."""
        return self.instruction + self.tools


class Folding(NamedTuple):
    """The settings for folding old messages."""

    keep_recent_rounds: int = 2
    keep_user_tokens: int = 20_000
    offload: bool = True
    """Whether user messages can be saved; if not, all of them stay."""
    instruction: str | None = None
    """The instruction for the summariser, instead of ours."""
    window: int | None = None
    """How many tokens the summariser accepts; by default the limit."""


Summarize = Callable[[str], Awaitable[str]]
"""Asks a summariser; if it raises, only the summary is lost."""


class _Survey(NamedTuple):
    """The places where a history may be cut, and the messages that must stay."""

    segments: Sequence[tuple[int, int]]
    pending: frozenset[int]
    """Messages with a call that has no result."""
    recent: int
    """The index at which the recent rounds begin."""
    last: int
    """The index of the last message that must stay in place: a pending turn, or the user's last message."""


class _Fold(NamedTuple):
    """The beginning of a history, sorted into messages that stay and messages that are folded."""

    kept: list[tuple[int, Any, bool]]
    """The index and the message, and whether it is a user's."""
    gone: list[Any]
    previous: Summary


class Compactor:
    """One compaction. The original messages are not changed."""

    def __init__(
        self,
        wire: Wire,
        messages: Sequence[Any],
        terms: Terms,
        limits: Limits,
        folding: Folding,
        count: Callable[[Any], int],
        summarize: Summarize | None = None,
    ) -> None:
        self.wire, self.terms, self.limits, self.folding, self.summarize = wire, terms, limits, folding, summarize
        self.count, self.measure = count, terms.settings.measure
        self.given = self.messages = messages
        self.before = self.now = self.tokens(messages)
        self.changes: list[Change] = []
        self.saves: dict[str, Save] = {}
        self.origins: dict[int, int] = {id(message): place for place, message in enumerate(messages)}
        self._held: list[Any] = []
        """References to changed messages, so that no `id()` is reused."""

    def tokens(self, messages: Sequence[Any]) -> int:
        """Return how many tokens a request with these messages has."""
        return self.limits.fixed + sum(map(self.count, messages))

    async def run(self) -> Plan[Any]:
        """Take the steps until there is room; raise `ContextOverflowError` if they are not enough."""
        limits = self.limits
        if self.now > limits.limit:
            for rung in (self._drop_compacted, self._clear, self._drop_thinking, self._fold_old):
                await rung()
                if self.now <= limits.target:
                    break
            # Text of the model and its tools is cut first. Less is cut of a user's: only half way to the target.
            cut_words = partial(self._cut, (limits.limit + limits.target) // 2, words=True)
            fold_rounds = partial(self._fold_rest, limits.limit // 10, limits.limit // 8)
            fold_words = partial(self._fold_rest, _LEAST_SUMMARY // 2, 0)
            cut_rest = partial(self._cut, limits.target, words=False)
            for rung in (cut_rest, cut_words, fold_rounds, cut_words, fold_words, cut_words):
                if self.now > limits.limit:
                    rung()
            if self.now > limits.limit:
                found = [(limits.instruction, "instruction", None), (limits.tools, "tool descriptions", None)]
                found += [(self.count(message), "message", self.origins.get(id(message))) for message in self.messages]
                tokens, what, index = max(found, key=lambda each: each[0])
                raise ContextOverflowError(what, tokens, limits.limit, index=index)
        return Plan(
            messages=self.messages,
            wire=self.wire.name,
            changes=tuple(self.changes),
            saves=tuple(self.saves.values()),
            tokens_before=self.before,
            tokens_after=self.now,
        )

    def _take(self, action: str, messages: Sequence[Any], saves: Sequence[Save] = (), *, index: int = 0) -> bool:
        """Continue with these messages if they have fewer tokens; return whether they have."""
        tokens = self.tokens(messages)
        if tokens >= self.now:
            return False
        self._held += messages
        change = Change(action=action, index=index, call_id="", name="", tokens_before=self.now, tokens_after=tokens)
        self.changes.append(change)
        self.saves.update({save.path: save for save in saves})
        self.messages, self.now = messages, tokens
        return True

    # What can go without a loss: messages before a provider's compaction, results that were saved, thinking

    async def _drop_compacted(self) -> None:
        """Drop messages before the provider's own compaction, except user messages that the provider still reads."""
        wire, messages = self.wire, self.messages
        last = next((at for at in range(len(messages) - 1, 0, -1) if wire.compacted_by(messages[at])), 0)
        survey = self._survey() if last else None
        if survey is None or last not in dict(survey.segments):
            return
        reads, fold = get_profile(wire.compacted_by(messages[last])).reads_compacted, self._split(survey, last)
        kept = [
            message for _, message, is_words in fold.kept if (reads or not is_words) and not wire.compacted_by(message)
        ]
        if reads and fold.previous.path:  # it is the path of older user messages
            kept.append(self._stand_for(Summary("", fold.previous.path)))
        self._take("drop", [*kept, *messages[last:]], index=last)

    async def _clear(self) -> None:
        settings = dataclasses.replace(
            self.terms.settings,
            clear_down_to_tokens=self.limits.target,
            clear_retention_suffix_limit=self.folding.keep_recent_rounds,
        )
        draft = Draft(self.wire, self.messages, self.terms._replace(settings=settings), self.count)
        rounds = rounds_of(self.wire, self.messages)
        draft.keep_names(rounds)
        done = await clear(draft, Meter(self.now), self.now, rounds, force=True)
        messages = done.draft.current()
        self._follow(dict(enumerate(messages)))
        self._take("clear", messages, [*done.draft.saves])

    async def _drop_thinking(self) -> None:
        wire, recent = self.wire, self._survey().recent
        old = [(at, wire.without_thinking(message)) for at, message in enumerate(self.messages[:recent])]
        self._follow(dict(old))
        self._take("think", [*[message for _, message in old if message is not None], *self.messages[recent:]])

    def _follow(self, made: Mapping[int, Any]) -> None:
        """Remember which original message each of these was made from."""
        for place, message in made.items():
            self.origins[id(message)] = self.origins.get(id(self.messages[place]), place)
        self._held += made.values()

    # Folding

    def _survey(self) -> _Survey:
        wire, messages = self.wire, self.messages
        found = assign(wire, messages)
        end = next((place for place, message in enumerate(messages) if wire.refers(message)), len(messages))
        places = [place for place in cuts_between(wire, messages, found) if place <= end]
        segments = list(pairwise(places))
        pending = {
            place
            for turn in found.turns
            if any(slot.answer is None for slot in turn.slots)
            for place in range(found.records[turn.first].index, found.records[turn.last].index + 1)
        }
        last = recent = places[-1]
        if segments and last == len(messages):
            first, end = segments[-1]
            alone = messages[first] if end - first == 1 else None  # the user's own, or a summary?
            is_words = alone is not None and wire.view(alone).role == "user" and self._summary(alone) is None
            if is_words or pending.intersection(range(first, end)):
                last = recent = first
        wanted = self.folding.keep_recent_rounds
        for first, end in reversed(segments):
            if not wanted:
                break
            if any(wire.made_by_model(message) for message in messages[first:end]):
                wanted, recent = wanted - 1, min(first, recent)
        return _Survey(segments, frozenset(pending), 0 if wanted else recent, last)

    def _summary(self, message: Any) -> Summary | None:
        return texts.read_summary("\n".join(self.wire.words(message).texts[1:]))

    def _split(self, survey: _Survey, stop: int) -> _Fold:
        """Sort the messages before `stop`."""
        wire, messages = self.wire, self.messages
        fold = _Fold([], [], Summary(""))
        for first, end in survey.segments:
            if first >= stop:
                break
            whole = bool(survey.pending.intersection(range(first, end)))
            for place in range(first, end):
                message = messages[place]
                view = wire.view(message)
                summary = self._summary(message) if view.role == "user" else None
                if whole or view.role == "system":
                    fold.kept.append((place, message, False))
                elif wire.compacted_by(message):  # it includes everything that was said before it
                    fold.kept.append((place, message, False))
                    fold = fold._replace(previous=Summary("", fold.previous.path), gone=[])
                elif summary is not None:  # it includes what users said before it
                    gone = [each for each in fold.gone if wire.view(each).role != "user"]
                    fold = fold._replace(previous=summary, gone=gone)
                else:
                    fold.gone.append(message)
                    words = wire.rest(message, {}) if view.results else message
                    if view.role == "user" and words is not None:
                        self.origins[id(words)] = self.origins.get(id(message), place)
                        fold.kept.append((place, words, True))
        return fold

    async def _fold_old(self) -> None:
        """Fold the oldest rounds into a summary; without one, into a digest."""
        survey, limits = self._survey(), self.limits
        budget = min(_MOST_SUMMARY, max(_LEAST_SUMMARY, limits.target // 5))
        room = min(self.folding.keep_user_tokens, limits.target // 3)
        frame = self.measure(texts.summary_text(Summary(""), "", self.terms.language))
        stop = self._choose_stop(survey, budget + frame, room)
        if not stop:
            return
        fold = self._split(survey, stop)
        budget = min(budget, self.now - self.tokens(self._folded(fold, stop, "", room)[0]) - 1)
        if budget <= 0:  # everything that could be folded must stay
            return
        entries = texts.entries_of(self.wire, fold.gone)
        if self.summarize is not None and entries:
            body = await self._ask(self.summarize, entries, fold.previous.body, budget)
            if body and self._take("summarize", *self._folded(fold, stop, body, room), index=stop):
                return
        body = self._digest(entries, fold.previous.body, budget)
        self._take("digest", *self._folded(fold, stop, body, room), index=stop)

    def _choose_stop(self, survey: _Survey, budget: int, room: int) -> int:
        """Return the first place after any summary such that folding up to it is enough, or the last possible one."""
        left, words, place = self.now + budget, 0, 0
        roles = [self.wire.view(message).role for message in self.messages]
        summaries = [at for at, role in enumerate(roles) if role == "user" and self._summary(self.messages[at])]
        for first, end in survey.segments:
            if end > survey.recent:
                break
            place = end
            for message, role in zip(self.messages[first:end], roles[first:end], strict=True):
                cost = self.count(message)
                words += cost if role == "user" else 0
                left -= cost if role != "system" else 0
            enough = left + (words if not self.folding.offload else min(words, room)) <= self.limits.target
            if enough and end > max(summaries, default=0):  # there must not be two summaries
                break
        return place

    def _digest(self, entries: Sequence[Entry], previous: str, budget: int) -> str:
        """Return a digest of the entries, appended to the previous summary."""
        if previous:
            previous = self._shorten(previous, budget // 2) + "\n\n"
        return previous + texts.digest_text(entries, budget - self.measure(previous), self.measure, self.terms.language)

    def _shorten(self, text: str, budget: int) -> str:
        cost = self.measure(text)
        if cost <= budget:
            return text
        keep = max(0, len(text) * budget // cost - _NOTICE // 4)
        return texts.cut_middle(text, keep, "", "", self.terms.language)

    def _folded(self, fold: _Fold, stop: int, body: str, room: int) -> tuple[list[Any], list[Save]]:
        """Return the messages that replace those before `stop`: the ones that stay, and the summary of the rest."""
        kept, path, saves = self._keep_words(fold, room)
        return [*kept, self._stand_for(Summary(body, path)), *self.messages[stop:]], saves

    def _stand_for(self, summary: Summary, message: Any = None) -> Any:
        """Return a message with a summary: a new one, or `message` with the summary as its text."""
        text = texts.summary_text(summary, self.terms.settings.read_file_tool_name, self.terms.language)
        return self.wire.speak("user", text) if message is None else self.wire.with_text(message, text)

    def _keep_words(self, fold: _Fold, room: int) -> tuple[list[Any], str, list[Save]]:
        """Return what stays: of the user's messages, the first and the latest ones that fit; the others are saved."""
        words = [place for place, (_, _, is_words) in enumerate(fold.kept) if is_words]
        path, saves, shown = fold.previous.path, list[Save](), dict[int, Any]()
        if not self.folding.offload:
            return [message for _, message, _ in fold.kept], path, saves
        gone: list[int] = []
        for number, place in enumerate([*words[:1], *reversed(words[1:])]):  # the first is the task
            message = fold.kept[place][1]
            most = room // 2 if number == 0 and len(words) > 1 else room
            if self.count(message) > most:
                message = self._cut_message(message, most, saves) if number < 2 else None
            if message is None:
                gone.append(place)
            else:
                shown[place] = message
                room -= self.count(message)
        said = [text for place in sorted(gone) if (text := texts.said_in(self.wire, fold.kept[place][1]))]
        if said:  # an image has no text
            path = self._save("user", "\n\n".join([path, *said] if path else said), saves)
        kept = [shown.get(at, message) for at, (_, message, _) in enumerate(fold.kept) if at not in gone]
        return kept, path, saves

    def _save(self, kind: str, content: str, saves: list[Save]) -> str:
        """Add a text to `saves`, under a path made from its content; return the path."""
        name = f"{kind}-{texts.digest_of(content)}"
        path = f"{self.terms.root.rstrip('/')}/compact/{name}"
        saves.append(Save(path, content, name))
        return path

    # A summary

    async def _ask(self, summarize: Summarize, entries: Sequence[Entry], previous: str, budget: int) -> str:
        """Return a summary, made chunk by chunk; if the summariser fails, add a digest; empty if it fails at once."""
        language, instruction, measure = self.terms.language, self.folding.instruction, self.measure
        said = [f"{entry.who}: {entry.text}" for entry in entries]
        summary, window = previous, self.folding.window or self.limits.limit
        for _ in range(_MOST_CHUNKS):
            budget = min(budget, window // 4)
            words = budget * 2 // 3
            room = window - measure(texts.prompt_text(summary, "", words, language, instruction)) - budget - 8
            if room < _LEAST_SUMMARY:
                break
            chunk, rest = texts.take_chunk(said, room, measure)
            prompt = texts.prompt_text(summary, chunk, words, language, instruction)
            try:
                answer = str.strip(await summarize(prompt))
            except ContextLengthError as error:
                window = min(window // 2, error.limit or window)
                continue
            except Exception:  # noqa: BLE001 - whoever asks for us logs it; a digest takes its place
                break
            if not answer or measure(answer) > min(budget, measure(summary) + measure(chunk)):
                break
            summary, said = answer, rest
            if not rest:
                return summary
        if summary == previous:
            return ""
        return self._digest(entries[len(entries) - len(said) :], summary, budget + measure(summary))

    # Cutting

    def _fold_rest(self, budget: int, room: int) -> None:
        """Fold the recent rounds, too, into a digest of `budget` tokens; `room` tokens of user messages stay."""
        survey = self._survey()
        if survey.last:
            fold = self._split(survey, survey.last)
            body = self._digest(texts.entries_of(self.wire, fold.gone), fold.previous.body, budget)
            self._take("digest", *self._folded(fold, survey.last, body, room), index=survey.last)

    def _cut(self, goal: int, *, words: bool) -> None:
        """Cut all blocks to the greatest length at which there is room."""

        def cut_to(level: int) -> tuple[list[Any], list[Save]]:
            saves: list[Save] = []
            return [self._cut_one(message, level, saves, words=words) for message in self.messages], saves

        low, high = 0, max(map(self.count, self.messages), default=0)
        best = cut_to(low)
        if self.tokens(best[0]) <= goal:
            while high - low > 1 + high // 32:
                middle = (low + high) // 2
                made = cut_to(middle)
                if self.tokens(made[0]) <= goal:
                    low, best = middle, made
                else:
                    high = middle
        self._follow(dict(enumerate(best[0])))
        self._take("cut", *best)

    def _cut_one(self, message: Any, level: int, saves: list[Save], *, words: bool) -> Any:
        """Return a message whose results and texts are no longer than `level`."""
        if self.count(message) <= level:
            return message
        wire = self.wire
        view = wire.view(message)
        edits: dict[int, ResultEdit] = {}
        for position, result in enumerate(view.results):
            parts = wire.result_parts(result) or ()
            text = "\n".join([part.text for part in parts if isinstance(part, TextPart)])
            short = self._cut_text(text, level, saves)
            if short is not None:
                others = [part for part in parts if not isinstance(part, TextPart)]
                edits[position] = ResultEdit(parts=(TextPart(short), *others))
        message = wire.edit(message, {}, edits) if edits else message
        if view.role == "user":
            summary = self._summary(message)
            if summary is not None:
                least = 0 if words else self.limits.limit // 10  # it cost a model call, and replaces much
                body = self._shorten(summary.body, max(level, least))
                return self._stand_for(Summary(body, summary.path), message)
            may_cut = words and self.folding.offload
        else:
            may_cut = view.role == "assistant" and not view.signed and not wire.compacted_by(message)
        return (self._cut_message(message, level, saves) if may_cut else None) or message

    def _cut_message(self, message: Any, level: int, saves: list[Save]) -> Any | None:
        """Return a message whose own text is cut, if that makes it shorter."""
        made: list[Save] = []
        short = self._cut_text(texts.said_in(self.wire, message), level, made)
        if short is None:
            return None
        cut = self.wire.with_text(message, short)
        if self.count(cut) >= self.count(message):
            return None
        saves += made
        return cut

    def _cut_text(self, text: str, level: int, saves: list[Save]) -> str | None:
        """Return a text cut in the middle, and save the whole if possible; `None` if it would not be shorter."""
        cost = self.measure(text)
        if cost <= level:
            return None
        keep, made = len(text) * level // cost, list[Save]()
        if texts.is_truncated_text(text):
            short = texts.shorter_notice(text, max(0, keep - texts.LONGEST_NOTICE // 8))
        else:
            path = self._save("cut", text, made) if self.folding.offload else ""
            tool = self.terms.settings.read_file_tool_name
            short = texts.cut_middle(text, max(0, keep - _NOTICE - len(path)), path, tool, self.terms.language)
        if self.measure(short) >= cost:
            return None
        saves += made
        return short


# The public function


def compact(  # noqa: PLR0913 - each a setting of its own
    messages: Sequence[M],
    *,
    max_tokens: int,
    target_tokens: int | None = None,
    summarizer: Callable[[str], str] | None = None,
    keep_recent_rounds: int = 2,
    keep_user_tokens: int = 20_000,
    token_counter: Counter | None = None,
    offload: bool = True,
    instruction: str | None = None,
    window: int | None = None,
    system: str = "",
    tool_infos: Sequence[ToolInfo] = (),
    wire: str | None = None,
    language: str | None = None,
    **clearing: Any,
) -> Plan[M]:
    """Plan how to bring a history under a limit. Nothing is written: save `plan.saves`, then use `plan.messages`.

    Args:
        messages: the history, in the form of any wire; plain texts that fit several wires count as Chat Completions.
        max_tokens: how many tokens a request may have. target_tokens: how many it should have after; by default 60 %.
        summarizer: returns the summary for a prompt; without one, or if it fails, a digest is made.
        keep_recent_rounds: how many of the model's latest turns stay unchanged, if possible.
        keep_user_tokens: how many tokens of user messages stay verbatim, at most a third of the target.
        offload: whether `plan.saves` will be saved; if not, all user messages stay.
        instruction: the prompt for the summariser, instead of ours. window: how many tokens the summariser accepts.
        system: the system prompt that is sent along; it counts, as do `tool_infos`.
        clearing: settings for clearing results and for the path of saved content (`root_dir`), as in `plan`.

    >>> asked = {"role": "user", "content": "Go on counting."}
    >>> history = [each for n in range(9) for each in (asked, {"role": "assistant", "content": f"{n} " * 400})]
    >>> made = compact([*history, asked], max_tokens=1000, keep_user_tokens=50)
    >>> made.tokens_before, made.tokens_after <= 1000, [change.action for change in made.changes]
    (1868, True, ['digest'])
    """
    check_sizes(max_tokens, target_tokens, keep_recent_rounds, keep_user_tokens)
    ask = _ask_plainly(summarizer)
    names = recognise(messages) if wire is None else (get_wire(wire).name,)
    # Named by content, because the next compaction does not know what this one saved.
    clearing.setdefault("gen_clear_offload_file_path", partial(name_by_content, clearing.get("root_dir") or ""))
    settings = Settings(skip_truncation=True, token_counter=token_counter, **clearing)
    terms = make_terms(settings, Ledger(), resolve_language(language), offload=offload)
    folding = Folding(keep_recent_rounds, keep_user_tokens, offload, instruction, window)
    tally = Tally(get_wire("openai-chat" if "openai-chat" in names else names[0]), token_counter or CharacterCounter())
    target = target_of(max_tokens, target_tokens)
    limits = Limits(max_tokens, target, tally.of_rest((), system), tally.of_rest(tool_infos))
    return complete(Compactor(tally.wire, messages, terms, limits, folding, tally.of, ask).run())


def _ask_plainly(summarizer: Callable[[str], str] | None) -> Summarize | None:
    """Return a `Summarize` for a plain function; refuse an async one, which could not be awaited."""
    if iscoroutinefunction(summarizer):
        raise ConfigError("the summarizer is async; only Compaction, inside an agent, can await it")
    return None if summarizer is None else partial(ask_plainly, summarizer)


def target_of(limit: int, target: int | None) -> int:
    """Return how many tokens there should be afterwards: by default 60 % of the limit."""
    return limit * 3 // 5 if target is None else min(limit, target)


def check_sizes(limit: int | None, target: int | None, rounds: int, words: int) -> None:
    """Raise `ConfigError` if one of these numbers is not valid."""
    sizes = {"max_tokens": limit, "target_tokens": target, "keep_recent_rounds": rounds, "keep_user_tokens": words}
    for name, value in sizes.items():
        if value is not None and (type(value) is not int or value < 0):
            raise ConfigError(f"{name} must be an integer, 0 or more, found {value!r}")
