"""Wires whose messages are lists of blocks."""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from operator import is_
from typing import Any, ClassVar, NamedTuple

from suture.wires.fields import check_value, get, inner, is_list, listed, put, text_of, word
from suture.wires.parts import Telling
from suture.wires.values import CALL, MEDIA, RESULT, TEXT, THINKING, Call, CallEdit, Piece, Result, ResultEdit, View
from suture.wires.wire import Wire


class Fields(NamedTuple):
    """The fields of a block for a call or a result; `holder` is the field with the object that has them, if any."""

    holder: str
    id: str
    name: str
    content: str
    """The field of a result's content, or of a call's arguments."""


class BlockWire(Wire):
    """A wire whose messages are lists of blocks: calls, results, texts and others side by side.

    A concrete wire reads and writes one block. Taking blocks out of messages, moving and joining them is written here
    once.
    """

    bundled = True

    field = "content"
    """The field of a message that holds its blocks."""

    roles: ClassVar[Mapping[Any, str]] = {"user": "user", "assistant": "assistant"}
    model = "assistant"
    """The name of the model's role."""

    call_fields: Fields
    result_fields: Fields

    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`: user, assistant or system."""
        role = word(message, "role")
        if role not in self.roles:
            raise self.fault(index, "role", f"unknown role {role!r}; expected user or {self.model}")
        return self.roles[role]

    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        """Return the blocks of `message`."""
        blocks = listed(get(message, self.field), index, self.field)
        if index is not None:
            check_value(blocks, index, self.field)
            for place, block in enumerate(blocks):
                text_of(block, "text", index, f"{self.field}[{place}]")
        return blocks

    def own_name(self, block: Any, field: str) -> str:
        """Return the name of `field` in the style of this block."""
        return field

    def _open(self, block: Any, fields: Fields, index: int | None = None) -> Any:
        """Return the object with the fields of a call or a result: the block itself, or the one in `holder`."""
        return inner(block, self.own_name(block, fields.holder), index, self.field) if fields.holder else block

    def rewrite(self, block: Any, fields: Fields, new: Mapping[str, Any]) -> Any:
        """Return a call or result block with those `new` fields that are not `None`."""
        changes = {name: value for name, value in new.items() if value is not None}
        if not fields.holder:
            return put(block, **changes)
        own = self.own_name(block, fields.holder)
        return put(block, **{own: put(get(block, own), **changes)})

    def block_text(self, block: Any) -> str:
        """Return the text of a text block."""
        return text_of(block, "text")

    @abstractmethod
    def is_signed(self, block: Any) -> bool:
        """Return whether `block` carries a signature or encrypted content."""

    def read_call(self, block: Any, index: int | None = None) -> Call:
        """Return the call that `block` holds."""
        use, (_, call_id, name, arguments) = self._open(block, self.call_fields, index), self.call_fields
        return Call(text_of(use, call_id, index), text_of(use, name, index), get(use, arguments))

    @abstractmethod
    def read_result(self, block: Any, index: int | None = None) -> Result:
        """Return the result that `block` holds."""

    def write_call(self, block: Any, edit: CallEdit) -> Any:
        """Return a call block with `edit` applied."""
        _, call_id, name, arguments = self.call_fields
        return self.rewrite(block, self.call_fields, {call_id: edit.id, name: edit.name, arguments: edit.arguments})

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        """Return a result block with `edit` applied."""
        _, call_id, _, content = self.result_fields
        said = self.content_after(edit, get(self._open(block, self.result_fields), content))
        return self.rewrite(block, self.result_fields, {call_id: edit.id, content: said})

    @abstractmethod
    def make_result(self, piece: Piece) -> Any:
        """Return a new result block for the call of `piece`, with its text."""

    def make_text(self, role: str, text: str) -> Any:
        """Return a new text block."""
        return self.form.make(text)

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        """Return a new message."""
        return {"role": self.model if role == "assistant" else role, self.field: list(blocks)}

    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        """Return `message` with these blocks, and its other fields."""
        return put(message, **{self.field: list(blocks)})

    # The same for all wires of blocks

    def view(self, message: Any, index: int | None = None) -> View:
        """Return what pairing and fit need to know about `message`."""
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
        """Tell a document that is a text, or has blocks of text and images."""
        for block in content if is_list(content) else [content]:
            text = block if isinstance(block, str) else get(block, "text")
            if isinstance(text, str):
                telling.say(text)
            else:
                telling.media += 1

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, View], Any]]:
        """The repairs of blocks within a message: their order, and blank ones left out."""
        return {
            "blank-text": self._without_blank_text,
            "results-not-first": self._results_first,
            "text-after-calls": self._calls_last,
        }

    def _without_blank_text(self, message: Any, view: View) -> Any:
        """Leave out blank text blocks."""
        if not view.loose:
            return message
        return self._with_some(
            message,
            lambda block: self.kind(block) != TEXT or self.is_signed(block) or bool(self.block_text(block).strip()),
        )

    def _with_some(self, message: Any, wanted: Callable[[Any], bool]) -> Any:
        """Return `message` with only the blocks that are `wanted`; the same object if all are."""
        blocks = self.blocks(message)
        kept = [block for block in blocks if wanted(block)]
        return message if len(kept) == len(blocks) else self.with_blocks(message, kept)

    def _results_first(self, message: Any, view: View) -> Any:
        """Put the results before the other blocks; both keep their order."""
        if not view.results or not view.loose:
            return message
        return self._in_order(message, sorted(self.blocks(message), key=lambda block: self.kind(block) != RESULT))

    def _calls_last(self, message: Any, view: View) -> Any:
        """Move texts, thoughts and media that come after the first call to before it."""
        if not view.calls:
            return message
        blocks = self.blocks(message)
        kinds = [self.kind(block) for block in blocks]
        first = kinds.index(CALL)
        said = {TEXT, THINKING, MEDIA}
        order = sorted(range(len(blocks)), key=lambda place: place >= first and kinds[place] not in said)
        return self._in_order(message, [blocks[place] for place in order])

    def with_results(self, message: Any, view: View, change: Callable[[Any], Any]) -> Any:
        """Return `message` with `change` applied to each result; the same object if that changes none."""
        if not view.results:
            return message
        blocks = [change(block) if self.kind(block) == RESULT else block for block in self.blocks(message)]
        return self._in_order(message, blocks)

    def _in_order(self, message: Any, blocks: Sequence[Any]) -> Any:
        same = all(map(is_, blocks, self.blocks(message)))
        return message if same else self.with_blocks(message, blocks)

    def steps(self, message: Any) -> list[Any]:
        """Split a message of the model that holds results into one message for each step: calls, results, calls."""
        steps: list[Any] = []
        for is_result, run in groupby(self.blocks(message), key=lambda block: self.kind(block) == RESULT):
            blocks = list(run)
            steps.append(self.make_message("user", blocks) if is_result else self.with_blocks(message, blocks))
        return steps

    def show_media(self, media: Sequence[tuple[str, Sequence[Any]]]) -> Any:
        """Return a user message that shows media, each after a text that says where they come from."""
        blocks = [block for text, shown in media for block in (self.make_text("user", text), *shown)]
        return self.make_message("user", blocks)

    def begins_step(self, message: Any) -> bool:
        """Return whether a message holds a text or a thought, either of which begins another step after a call."""
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

    def without_thinking(self, message: Any) -> Any | None:
        """Return `message` without its thoughts; `None` if nothing is left."""
        changed = self._with_some(message, lambda block: self.kind(block) != THINKING)
        return changed if changed is message or self.blocks(changed) else None

    def with_text(self, message: Any, text: str) -> Any:
        """Return `message` with one text block in place of all its text blocks."""
        blocks, role = list(self.blocks(message)), self.role(message, None)
        places = [place for place, block in enumerate(blocks) if self.kind(block) == TEXT]
        first = places[0] if places else len(blocks)
        kept = [block for place, block in enumerate(blocks) if place not in places]
        return self.with_blocks(message, [*kept[:first], self.make_text(role, text), *kept[first:]])

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
        """Return `message` without its results, but with `texts` in place of some; `None` if nothing is left."""
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
            # Do the next results fill their message, in this order? Then it is used as it is.
            message = pieces[start].message
            blocks = () if message is None else self.blocks(message)
            run = pieces[start : start + len(blocks)]
            as_it_is = (
                len(run) == len(blocks) > 0
                and all(piece.message is message and piece.position == at for at, piece in enumerate(run))
                and all(self.kind(block) == RESULT for block in blocks)
                and self.role(message, None) == "user"
            )
            if self.bundled and not (as_it_is and len(run) == len(pieces)):
                return [self._carrier(pieces)]
            carriers.append(message if as_it_is else self._carrier(pieces[start : start + 1]))
            start += len(run) if as_it_is else 1
        return carriers

    def _carrier(self, pieces: Sequence[Piece]) -> Any:
        """Return one message with these results, and the other fields of the first user message that held one."""
        messages = {id(piece.message): piece.message for piece in pieces if piece.message is not None}
        found = {
            key: [block for block in self.blocks(message) if self.kind(block) == RESULT]
            for key, message in messages.items()
        }
        blocks = [
            self.make_result(piece) if piece.message is None else found[id(piece.message)][piece.position]
            for piece in pieces
        ]
        first = next((message for message in messages.values() if self.role(message, None) == "user"), None)
        return self.make_message("user", blocks) if first is None else self.with_blocks(first, blocks)

    def _map(self, message: Any, change: Callable[[Any, str, int], Any]) -> Any:
        """Return `message` with each block replaced by `change(block, kind, position)`, where `None` removes it."""
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
