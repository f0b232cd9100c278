"""What a wire is: how one message type is seen, changed and made.

The engines touch messages through this interface only, so each of them is written once. Two methods
are hot: `skip`, where a wire has it, and `view`. Everything else runs only where something is wrong.

A wire never mutates what it is given, never recurses into what it does not know, and keeps unknown
fields and blocks as they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import is_
from typing import Any

from suture.errors import InputError
from suture.messages import Part
from suture.wires.fields import get, is_list, is_object_text, put, sound_arguments, text_of
from suture.wires.parts import Form, RawPart, Telling, Words
from suture.wires.values import (
    CALL,
    MEDIA,
    NO_EXTRA,
    OTHER,
    RESULT,
    TEXT,
    THINKING,
    Call,
    CallEdit,
    Demands,
    Key,
    Piece,
    Result,
    ResultEdit,
    View,
)

_GENERIC = frozenset(
    (
        *("dangling", "orphan", "duplicate", "late", "early", "out-of-order", "result-in-model-message"),
        *("illegal-id", "missing-id", "wrong-id", "repeated-id", "missing-name", "illegal-name", "bad-arguments"),
        *("empty-error", "empty-message", "model-first", "tool-then-user"),
        *("late-system", "lone-surrogate"),
    )
)
"""The problems that can be mended on every wire."""


class Wire(ABC):
    """One message shape. Subclasses are stateless; there is one instance of each.

    `native`: its messages are Suture's own type. `marks`: something can be attached to its messages.
    `set_like`: a result may stand anywhere after its call.
    `named_results`: a result carries the name of its tool.
    `bundled`: all results of a turn travel in one message. `text_arguments`: arguments are the text of a JSON
    object, not the object. `glances_at_rules`: a glance knows every rule of a profile, not only structure.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").name
    'openai-chat'
    """

    name: str
    native = False
    marks = False
    set_like = False
    bundled = False
    glances_at_rules = False
    text_arguments = False
    named_results = True
    form: Form
    """How the content of a result is written; of wires that are not native."""

    arranges: frozenset[str] = frozenset()
    """The problems of a group or of neighbours that can be mended on this wire, beside those of every wire."""

    @property
    def operations(self) -> frozenset[str]:
        """The problems that can be mended on this wire."""
        named = {"result-name", "illegal-result-name"} if self.named_results else set[str]()
        return _GENERIC | self.arranges | self.mends.keys() | named

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, View], Any]]:
        """What mends a message by itself, by problem: a function of message and view.

        It returns the message as it should be, the very same where nothing is wrong with it, `None` where something
        is wrong that cannot be mended.
        """
        return {}

    def glances(self, *, fits: bool) -> bool:
        """Tell whether `glance` can be asked: where a profile `fits` too, only if it knows every rule."""
        return self.glances_at_rules or not fits

    def glance(self, messages: Sequence[Any], start: int, demands: Demands) -> int:
        """Return how far, from `start` on, everything is acceptable at a glance.

        Acceptable at a glance: what needs no second look under any rule that this wire can break, and a turn followed
        by just its results. Whatever is unusual ends the glance at its turn.
        """
        return self.skip(messages, start)

    def skip(self, messages: Sequence[Any], start: int) -> int:
        """Return how far, from `start` on, calls and results are in order at a glance."""
        return start

    def key(self, thing: Call | Result) -> Key:
        """Return what a call and its result have in common on this wire: the id; the name where there is none."""
        return thing.id or ("", thing.name)

    def first_reference(self, messages: Sequence[Any]) -> int:
        """Return where the list first refers to what the service keeps; a result behind it need be no orphan."""
        return len(messages)

    def made_by_model(self, message: Any, index: int | None = None) -> bool:
        """Tell whether the model wrote `message`: on most wires, whether it is an assistant's."""
        return self.view(message, index).role == "assistant"

    def arguments_ok(self, call: Call) -> bool:
        """Tell whether the arguments of `call` are an object, as every strict provider demands."""
        if self.text_arguments:
            return isinstance(call.arguments, str) and is_object_text(call.arguments)
        return isinstance(call.arguments, Mapping)

    def sound_arguments(self, call: Call) -> Any:
        """Return arguments that are an object: the call's own in the right form if they are one, else empty."""
        return sound_arguments(call.arguments, as_text=self.text_arguments)

    def can_answer(self, call: Call) -> bool:
        """Tell whether a placeholder can be made for `call` (a screenshot, say, cannot be)."""
        return True

    def family(self, thing: Call | Result) -> str:
        """Return the form of a call or result; a result answers calls of its own form only."""
        return ""

    def is_malformed(self, call: Call) -> bool:
        """Tell whether the arguments of `call` are cut off or no object; none at all are fine."""
        arguments = call.arguments
        if self.arguments_ok(call) or arguments is None or (isinstance(arguments, str) and not arguments.strip()):
            return False
        return self.sound_arguments(call) in ({}, "{}")

    def steps(self, message: Any) -> list[Any]:
        """Return a message that holds calls and results one after another as one message for each step."""
        return [message]

    def has_id(self, call: Call) -> bool:
        """Tell whether a call of this form carries an id at all."""
        return True

    @abstractmethod
    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is of this wire: yes for certain, possibly (`None`), or no."""

    @abstractmethod
    def view(self, message: Any, index: int | None = None) -> View:
        """Return what the engines need to know of `message`; raise `InputError` where it is malformed."""

    def result_text(self, result: Result) -> tuple[str, bool]:
        """Return the text of a result, and whether that is all of it."""
        content = result.content
        if content is None or isinstance(content, str):
            return content or "", True
        texts = [text for block in content if (text := self.form.find(block)) is not None]
        return "\n".join(texts), len(texts) == len(content)

    @abstractmethod
    def edit(self, message: Any, calls: Mapping[int, CallEdit], results: Mapping[int, ResultEdit]) -> Any:
        """Return `message` with the calls and results at these positions changed."""

    @abstractmethod
    def carry(self, pieces: Sequence[Piece]) -> list[Any]:
        """Return the messages that carry these results, in this order."""

    @abstractmethod
    def rest(self, message: Any, texts: Mapping[int, str]) -> Any | None:
        """Return `message` without its results, those in `texts` kept as user text; `None` if nothing is left."""

    @abstractmethod
    def speak(self, role: str, text: str) -> Any:
        """Return a new message of `role` (user or assistant) that says `text`."""

    # What a message says, and what a result holds

    def words(self, message: Any) -> Words:
        """Return all that a model reads of `message`: role, reasoning, text, calls and results; and count its media."""
        view = self.view(message)
        telling = Telling(view.role)
        self.tell(message, telling)
        for call in view.calls:
            telling.say(call.name)
            telling.write(call.arguments)
        for result in view.results:
            parts = self.result_parts(result)
            if parts is None:
                self.tell_content(result.content, telling)
                continue
            for part in parts:
                if isinstance(part, RawPart):
                    self.tell_block(part.raw, telling)
                else:
                    telling.tell(part)
        return telling.words()

    @abstractmethod
    def tell(self, message: Any, telling: Telling) -> None:
        """Tell what `message` says beside its calls and results."""

    def tell_content(self, content: Any, telling: Telling) -> None:
        """Tell a text, or a list of blocks."""
        if is_list(content):
            for block in content:
                self.tell_block(block, telling)
        elif content is None or isinstance(content, str):
            telling.say(content)
        else:
            self.tell_block(content, telling)

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell one block: its words, that it is a medium, or what it looks like."""
        kind = self.kind(block)
        if kind in {TEXT, THINKING}:
            telling.say(self.block_words(block))
        elif kind == MEDIA:
            telling.media += 1
        else:
            telling.show(block)

    def kind(self, block: Any) -> str:
        """Return what `block` is: call, result, text, thinking, media or other."""
        return OTHER

    def block_words(self, block: Any) -> Any:
        """Return the words of a block of text or thinking, whatever stands there."""
        return get(block, "text")

    def result_parts(self, result: Result) -> tuple[Part, ...] | None:
        """Return the content of a result as native parts in order; `None` where it could not be put together again.

        What is no text and not native is a `RawPart` with the user's own object in it.
        """
        return self.form.split(result.content)

    def content_after(self, edit: ResultEdit, content: Any) -> Any:
        """Return what `edit` makes of the `content` of a result; `None` where it stays."""
        if edit.parts is not None:
            return self.form.join(edit.parts, content)
        return None if edit.text is None else self.form.write_text(edit.text)

    def extra_of(self, message: Any) -> Mapping[str, Any]:
        """Return what is attached to `message`; nothing on a wire without marks."""
        return NO_EXTRA

    def with_extra(self, message: Any, extra: Mapping[str, Any]) -> Any:
        """Return `message` with `extra` attached as well; itself on a wire without marks."""
        return message

    # What only some wires have; profiles ask for it only on those.

    def as_role(self, message: Any, role: str) -> Any:
        """Return a message of `role` that says what `message` says."""
        return self.speak(role, "\n".join(self.words(message).texts[1:]))

    def show_media(self, media: Sequence[tuple[str, Sequence[Any]]]) -> Any:
        """Return a user message that shows media, each with a text that says where they come from."""
        raise NotImplementedError

    def fill(self, message: Any, field: str) -> Any:
        """Return `message` with the missing text `field` present and empty; the same if it has it."""
        return message

    def begins_step(self, message: Any) -> bool:
        """Tell whether a message of the model's cannot stand in one step with calls before it."""
        return False

    def without_trailing_thinking(self, message: Any) -> Any | None:
        """Return `message` without the thoughts at its end; `None` if nothing is left."""
        return message

    def name_documents(self, message: Any, names: MutableMapping[str, None]) -> Any:
        """Return `message` with documents named as none of `names` is; the names are added to them."""
        return message

    def is_empty_error(self, result: Result) -> bool:
        """Tell whether a result reports an error and says nothing of it."""
        if not result.failed:
            return False
        text, complete = self.result_text(result)
        return complete and not text.strip()

    def item_id(self, message: Any) -> str:
        """Return the id that the service gave the item itself, not the call in it."""
        return ""

    def without_item_id(self, message: Any) -> Any:
        """Return the item as one that the service has not stored."""
        return message

    def wants_follower(self, message: Any) -> bool:
        """Tell whether the item must be followed by the one it produced."""
        return False

    def can_follow(self, message: Any) -> bool:
        """Tell whether an item that wants a follower can have this one."""
        return True

    def fault(self, index: int | None, path: str, reason: str) -> InputError:
        """Return the error for `message` number `index`."""
        return InputError(f"{reason} ({self.name})", index=index, path=path)


class ItemWire(Wire):
    """A wire on which a result is a message of its own: it moves as a whole, or not at all."""

    @abstractmethod
    def placeholder(self, piece: Piece) -> Any:
        """Return a new message with a result for the call of `piece`, saying its text."""

    def carry(self, pieces: Sequence[Piece]) -> list[Any]:
        """Return the messages of these results."""
        return [self.placeholder(piece) if piece.message is None else piece.message for piece in pieces]

    def rest(self, message: Any, texts: Mapping[int, str]) -> Any | None:
        """Return a result kept as user text, or nothing."""
        return self.speak("user", texts[0]) if 0 in texts else None


class BlockWire(Wire):
    """A wire whose messages are lists of blocks: calls, results, text and the rest stand side by side.

    A concrete wire says how one block is read and written; how blocks are taken out of messages, moved and put together
    again is written here once.
    """

    bundled = True

    field = "content"
    """Where a message has its blocks."""

    @abstractmethod
    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`: user, assistant or system."""

    @abstractmethod
    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        """Return the blocks of `message`; plain text is one text block."""

    def block_text(self, block: Any) -> str:
        """Return the text of a text block."""
        return text_of(block, "text")

    @abstractmethod
    def is_signed(self, block: Any) -> bool:
        """Tell whether `block` carries a signature or encrypted content."""

    @abstractmethod
    def read_call(self, block: Any, index: int | None = None) -> Call:
        """Return the call that `block` holds."""

    @abstractmethod
    def read_result(self, block: Any, index: int | None = None) -> Result:
        """Return the result that `block` holds."""

    @abstractmethod
    def write_call(self, block: Any, edit: CallEdit) -> Any:
        """Return a call block with `edit` done to it."""

    @abstractmethod
    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        """Return a result block with `edit` done to it."""

    @abstractmethod
    def make_result(self, piece: Piece) -> Any:
        """Return a new result block for the call of `piece`, saying its text."""

    def make_text(self, role: str, text: str) -> Any:
        """Return a new text block."""
        return self.form.make(text)

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        """Return a new message."""
        return {"role": role, self.field: list(blocks)}

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        """Return `message` with other blocks, all else kept."""
        return put(message, **{self.field: list(blocks)})

    # What follows from these

    def view(self, message: Any, index: int | None = None) -> View:
        """Return what the engines need to know of `message`."""
        role = self.role(message, index)
        calls: list[Call] = []
        results: list[Result] = []
        signed, empty, loose = False, True, False
        for block in self.blocks(message, index):
            kind = self.kind(block)
            if kind == RESULT:
                results.append(self.read_result(block, index))
                empty = False
                continue
            loose = True
            if kind == CALL and role == "assistant":
                calls.append(self.read_call(block, index))
            is_signed = self.is_signed(block)
            signed = signed or is_signed
            empty = empty and kind == TEXT and not is_signed and not self.block_text(block).strip()
        return View(role, tuple(calls), tuple(results), signed, empty, loose)

    def tell(self, message: Any, telling: Telling) -> None:
        """Tell the blocks of `message` that are neither calls nor results."""
        beside = {CALL, RESULT} if self.role(message, None) == "assistant" else {RESULT}
        for block in self.blocks(message):
            if self.kind(block) not in beside:
                self.tell_block(block, telling)

    def tell_document(self, content: Any, telling: Telling) -> None:
        """Tell a document that is text, or blocks of text and images."""
        for block in content if is_list(content) else [content]:
            text = block if isinstance(block, str) else get(block, "text")
            if isinstance(text, str):
                telling.say(text)
            else:
                telling.media += 1

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, View], Any]]:
        """What mends the blocks of a message: their order, and what is left out."""
        return {
            "blank-text": self._without_blank_text,
            "results-not-first": self._results_first,
            "text-after-calls": self._calls_last,
        }

    def _without_blank_text(self, message: Any, view: View) -> Any:
        """Leave out text blocks that say nothing."""
        if not view.loose:
            return message
        return self._with_some(
            message,
            lambda block: self.kind(block) != TEXT or self.is_signed(block) or bool(self.block_text(block).strip()),
        )

    def _with_some(self, message: Any, wanted: Callable[[Any], bool]) -> Any:
        """Return `message` with the blocks that are `wanted`; itself where all are."""
        blocks = self.blocks(message)
        kept = [block for block in blocks if wanted(block)]
        return message if len(kept) == len(blocks) else self.with_blocks(message, kept)

    def _results_first(self, message: Any, view: View) -> Any:
        """Put the results before the rest, each in its old order."""
        if not view.results or not view.loose:
            return message
        return self._in_order(message, sorted(self.blocks(message), key=lambda block: self.kind(block) != RESULT))

    def _calls_last(self, message: Any, view: View) -> Any:
        """Put what the model said or showed behind its first call before it."""
        if not view.calls:
            return message
        blocks = self.blocks(message)
        kinds = [self.kind(block) for block in blocks]
        first = kinds.index(CALL)
        said = {TEXT, THINKING, MEDIA}
        order = sorted(range(len(blocks)), key=lambda place: place >= first and kinds[place] not in said)
        return self._in_order(message, [blocks[place] for place in order])

    def _in_order(self, message: Any, blocks: Sequence[Any]) -> Any:
        same = all(map(is_, blocks, self.blocks(message)))
        return message if same else self.with_blocks(message, blocks)

    def steps(self, message: Any) -> list[Any]:
        """Return a model's message that holds results as one message for each step: calls, results, calls."""
        steps: list[Any] = []
        for is_result, run in groupby(self.blocks(message), key=lambda block: self.kind(block) == RESULT):
            blocks = list(run)
            steps.append(self.make_message("user", blocks) if is_result else self.with_blocks(message, blocks))
        return steps

    def show_media(self, media: Sequence[tuple[str, Sequence[Any]]]) -> Any:
        """Return a user message that shows media, each behind a text that says where they come from."""
        blocks = [block for text, shown in media for block in (self.make_text("user", text), *shown)]
        return self.make_message("user", blocks)

    def begins_step(self, message: Any) -> bool:
        """Tell whether a message holds text or thought: behind a call these begin another step."""
        for block in self.blocks(message):
            kind = self.kind(block)
            if kind == THINKING or (kind == TEXT and self.block_text(block).strip()):
                return True
        return False

    def without_trailing_thinking(self, message: Any) -> Any | None:
        """Return `message` without the thoughts at its end; `None` if nothing is left."""
        blocks = list(self.blocks(message))
        count = len(blocks)
        while blocks and self.kind(blocks[-1]) == THINKING:
            blocks.pop()
        if len(blocks) == count:
            return message
        return self.with_blocks(message, blocks) if blocks else None

    def edit(self, message: Any, calls: Mapping[int, CallEdit], results: Mapping[int, ResultEdit]) -> Any:
        """Return `message` with these calls and results changed."""

        def change(block: Any, kind: str, position: int) -> Any:
            if kind == CALL and position in calls:
                return self.write_call(block, calls[position])
            if kind == RESULT and position in results:
                return self.write_result(block, results[position])
            return block

        return self._map(message, change)

    def rest(self, message: Any, texts: Mapping[int, str]) -> Any | None:
        """Return `message` without its results, those in `texts` as user text."""
        role = self.role(message, None)

        def change(block: Any, kind: str, position: int) -> Any:
            if kind != RESULT:
                return block
            return self.make_text(role, texts[position]) if position in texts else None

        remainder = self._map(message, change)
        return remainder if self.blocks(remainder) else None

    def speak(self, role: str, text: str) -> Any:
        """Return a new message that says `text`."""
        return self.make_message(role, [self.make_text(role, text)])

    def carry(self, pieces: Sequence[Piece]) -> list[Any]:
        """Return the message or messages that carry these results."""
        carriers: list[Any] = []
        start = 0
        while start < len(pieces):
            count = self._count_carried(pieces, start)
            if self.bundled and count < len(pieces):
                return [self._carrier(pieces)]
            carriers.append(pieces[start].message if count else self._carrier(pieces[start : start + 1]))
            start += count or 1
        return carriers

    def _carrier(self, pieces: Sequence[Piece]) -> Any:
        """Return one message with these results; it keeps what else the first real one's message says."""
        found: dict[int, list[Any]] = {}
        blocks = [self._block(piece, found) for piece in pieces]
        for piece in pieces:
            if piece.message is not None and self.role(piece.message, None) == "user":
                return self.with_blocks(piece.message, blocks)
        return self.make_message("user", blocks)

    def _block(self, piece: Piece, found: dict[int, list[Any]]) -> Any:
        """Return the block of `piece`; `found` keeps the results of each message that was looked into."""
        message = piece.message
        if message is None:
            return self.make_result(piece)
        if id(message) not in found:
            found[id(message)] = [block for block in self.blocks(message) if self.kind(block) == RESULT]
        return found[id(message)][piece.position]

    def _count_carried(self, pieces: Sequence[Piece], start: int) -> int:
        """Return how many results from `start` on their message holds as they are to stand, and nothing else."""
        message = pieces[start].message
        blocks = () if message is None else self.blocks(message)
        run = pieces[start : start + len(blocks)]
        as_it_is = (
            len(run) == len(blocks)
            and all(piece.message is message and piece.position == at for at, piece in enumerate(run))
            and all(self.kind(block) == RESULT for block in blocks)
            and (not blocks or self.role(message, None) == "user")
        )
        return len(blocks) if as_it_is else 0

    def _map(self, message: Any, change: Callable[[Any, str, int], Any]) -> Any:
        """Return `message` with each block replaced by `change(block, kind, position)`, `None` removing it."""
        counts = {CALL: 0, RESULT: 0}
        blocks: list[Any] = []
        for block in self.blocks(message):
            kind = self.kind(block)
            changed = change(block, kind, counts.get(kind, 0))
            if kind in counts:
                counts[kind] += 1
            if changed is not None:
                blocks.append(changed)
        return self.with_blocks(message, blocks)
