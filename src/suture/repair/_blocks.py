"""Operations on the blocks of one message: their order, and what is left out. Pure, and the same on all block wires."""

from collections.abc import Sequence
from typing import Any

from suture.wires import BlockWire

__all__ = ["calls_last", "merge", "results_first", "split_results", "without_blank_text"]


def results_first(wire: BlockWire, blocks: Sequence[Any]) -> list[Any]:
    """Return the results, then the rest, each in its old order."""
    return sorted(blocks, key=lambda block: wire.kind(block) != "result")


def calls_last(wire: BlockWire, blocks: Sequence[Any]) -> list[Any]:
    """Return the blocks with what the model said or showed behind its first call put before it."""
    kinds = [wire.kind(block) for block in blocks]
    first = kinds.index("call")
    moves = [place > first and kind in {"text", "thinking", "media"} for place, kind in enumerate(kinds)]
    moved = [block for block, moving in zip(blocks, moves, strict=True) if moving]
    rest = [block for block, moving in zip(blocks, moves, strict=True) if not moving]
    return [*rest[:first], *moved, *rest[first:]]


def without_blank_text(wire: BlockWire, blocks: Sequence[Any]) -> list[Any]:
    """Return the blocks without text blocks that say nothing."""
    return [block for block in blocks if wire.kind(block) != "text" or wire.block_text(block).strip()]


def split_results(wire: BlockWire, message: Any) -> list[Any]:
    """Return the results of `message` and the rest of it as two messages."""
    blocks = wire.blocks(message)
    results = [block for block in blocks if wire.kind(block) == "result"]
    rest = [block for block in blocks if wire.kind(block) != "result"]
    return [wire.with_blocks(message, part) for part in (results, rest) if part]


def merge(wire: BlockWire, messages: Sequence[Any], *, first_results: bool) -> Any:
    """Return one message with the blocks of all, where it is asked for the results before the rest."""
    blocks = [block for message in messages for block in wire.blocks(message)]
    return wire.with_blocks(messages[0], results_first(wire, blocks) if first_results else blocks)
