"""Wires whose messages are lists of blocks: calls, results, text and the rest stand side by side.

A concrete wire says how one block is read and written; how blocks are taken out of messages, moved and
put together again is written here once.
"""

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suture.wires._fields import get, is_list
from suture.wires._kinds import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING
from suture.wires._wire import Call, CallEdit, Piece, Result, ResultEdit, View, Wire
from suture.wires._words import Telling

__all__ = ["CALL", "MEDIA", "OTHER", "RESULT", "TEXT", "THINKING", "BlockWire"]


class BlockWire(Wire):
    """A wire whose messages hold blocks.

    >>> from suture.wires import get_wire
    >>> get_wire("anthropic").bundled
    True
    """

    bundled = True

    @abstractmethod
    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`: user, assistant or system."""

    @abstractmethod
    def blocks(self, message: Any, index: int | None = None) -> Sequence[Any]:
        """Return the blocks of `message`; plain text is one text block."""

    @abstractmethod
    def kind(self, block: Any) -> str:
        """Return what `block` is: call, result, text, thinking, media or other."""

    @abstractmethod
    def block_text(self, block: Any) -> str:
        """Return the text of a text block."""

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

    @abstractmethod
    def make_text(self, role: str, text: str) -> Any:
        """Return a new text block."""

    @abstractmethod
    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        """Return a new message."""

    @abstractmethod
    def with_blocks(self, message: Any, blocks: Sequence[Any]) -> Any:
        """Return `message` with other blocks, all else kept."""

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

    def is_loose(self, message: Any, results: int) -> bool:
        """Tell whether `message` holds anything beside its `results` results."""
        return len(self.blocks(message)) > results

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
        whole = self._whole_carriers(pieces)
        if self.bundled:
            message = whole[0][0] if len(whole) == 1 else None
            return [self._carrier(pieces) if message is None else message]
        carriers: list[Any] = []
        start = 0
        for message, count in whole:
            if message is not None:
                carriers.append(message)
            else:
                carriers.extend(self._carrier([piece]) for piece in pieces[start : start + count])
            start += count
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

    def _whole_carriers(self, pieces: Sequence[Piece]) -> list[tuple[Any, int]]:
        """Split `pieces` into runs: (message, length) where a message can serve as it is, else (`None`, 1)."""
        runs: list[tuple[Any, int]] = []
        start = 0
        while start < len(pieces):
            message = pieces[start].message
            length = 1
            serves = message is not None and pieces[start].position == 0 and self._serves(message, pieces, start)
            if serves:
                length = len(self.blocks(message))
            runs.append((message if serves else None, length))
            start += length
        return runs

    def _serves(self, message: Any, pieces: Sequence[Piece], start: int) -> bool:
        """Tell whether `message` holds exactly the results of `pieces` from `start` on, and nothing else."""
        blocks = self.blocks(message)
        run = pieces[start : start + len(blocks)]
        return (
            len(run) == len(blocks)
            and self.role(message, None) == "user"
            and all(self.kind(block) == RESULT for block in blocks)
            and all(piece.message is message and piece.position == at for at, piece in enumerate(run))
        )

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
