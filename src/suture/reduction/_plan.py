"""A plan: what becomes of a history, what is to be saved first, and what that frees. Printable, and plain data."""

from collections.abc import Sequence
from typing import Any, Generic

import msgspec

from suture.messages import M
from suture.reduction._values import NOTHING, Ledger
from suture.repair import label, visible

__all__ = ["Change", "Plan", "Save"]


class Save(msgspec.Struct, frozen=True):
    """Output to be saved before the plan is applied.

    >>> Save("/run/clear/call_1", "3 pages", "call_1", "search")
    Save(path='/run/clear/call_1', call_id='call_1', name='search', length=7)
    """

    path: str
    content: str
    call_id: str = ""
    name: str = ""

    def __repr__(self) -> str:
        """Show where and how much; never the content."""
        return f"Save(path={self.path!r}, call_id={self.call_id!r}, name={self.name!r}, length={len(self.content)})"


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What is done to one result (`truncate`, `clear`) or to a whole round (`rewrite`).

    >>> Change(action="clear", index=2, call_id="call_1", name="search", path="/run/clear/call_1").action
    'clear'
    """

    action: str
    index: int
    """The message with the call, in what was handed in."""
    call_id: str
    name: str
    path: str = ""
    """Where the whole output is; empty where it is nowhere."""
    tokens_before: int = 0
    tokens_after: int = 0


class Plan(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """What is to become of a history. Save `saves` first, then use `messages`: nothing is lost on the way.

    >>> from suture.reduction import plan
    >>> made = plan([{"role": "user", "content": "hi"}])
    >>> made.changed, made.apply()
    (False, [{'role': 'user', 'content': 'hi'}])
    """

    messages: Sequence[M]
    """The history with the plan applied: the very list that was handed in, if nothing changes."""
    wire: str = ""
    changes: tuple[Change, ...] = ()
    saves: tuple[Save, ...] = ()
    tokens_before: int = 0
    tokens_after: int = 0
    ledger: Ledger = NOTHING
    """What to hand in next time, on a wire whose messages cannot be marked."""

    @property
    def changed(self) -> bool:
        """Whether anything is to be done."""
        return bool(self.changes)

    @property
    def tokens_freed(self) -> int:
        """How many tokens fewer the history has afterwards."""
        return self.tokens_before - self.tokens_after

    def apply(self) -> Sequence[M]:
        """Return the history with the plan applied; what was handed in is as it was."""
        return self.messages

    def to_dict(self, *, content: bool = False) -> dict[str, Any]:
        """Return the plan as plain data; what is to be saved shows its content only if asked."""
        saves = [
            {"path": save.path, "call_id": save.call_id, "name": save.name, "length": len(save.content)}
            | ({"content": save.content} if content else {})
            for save in self.saves
        ]
        return {
            "wire": self.wire,
            "changed": self.changed,
            "tokens_before": self.tokens_before,
            "tokens_after": self.tokens_after,
            "changes": msgspec.to_builtins(self.changes),
            "saves": saves,
        }

    def to_json(self, *, content: bool = False) -> str:
        """Return the plan as JSON text."""
        return msgspec.json.encode(self.to_dict(content=content)).decode()

    def __str__(self) -> str:
        """Return a table that a person can read."""
        head = f"{self.wire}: {self.tokens_before} tokens"
        if not self.changes:
            return f"{head}, nothing to do"
        lines = [f"{head} -> {self.tokens_after}, {_counted(self.changes, 'change')}, {_counted(self.saves, 'file')}"]
        rows = [("#", "action", "tool", "call", "tokens", "saved to")]
        rows += [
            (
                str(item.index),
                item.action,
                label(item.name),
                label(item.call_id),
                f"{item.tokens_before} -> {item.tokens_after}",
                visible(item.path) or "-",
            )
            for item in self.changes
        ]
        widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True)]
            lines.append("  ".join(["", *cells]).rstrip())
        return "\n".join(lines)

    def __repr__(self) -> str:
        """Show how much is to be done; never what the messages say."""
        return f"<Plan: {len(self.changes)} changes, {self.tokens_before} -> {self.tokens_after} tokens>"


def _counted(things: Sequence[Any], name: str) -> str:
    return f"{len(things)} {name}{'' if len(things) == 1 else 's'}"
