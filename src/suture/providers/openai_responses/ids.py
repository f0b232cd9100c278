"""Item ids in a request: reasoning and what it produced keep theirs together, or lose them together.

The service refuses reasoning that it knows by its id without what followed, and what followed without the
reasoning. What has no id is taken as it stands.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import Any, NamedTuple

from suture.codecs._values import Losses, Lost
from suture.providers.openai_responses.fields import WIRE
from suture.wires import get_wire

__all__ = ["Written", "settle"]

_FREE = frozenset(("message", "reasoning", "function_call", "custom_tool_call", "shell_call", "apply_patch_call"))
"""The items that the service takes without an id."""
_KEYED = frozenset(
    (
        "web_search_call",
        "file_search_call",
        "code_interpreter_call",
        "image_generation_call",
        "mcp_call",
        "mcp_list_tools",
    )
)
"""The items that are nothing without their id."""


class Written(NamedTuple):
    """An item that is to be sent, the id of the reasoning it was made after, and where it stood.

    >>> Written({"type": "reasoning", "summary": []}).needs
    ''
    """

    item: dict[str, Any]
    needs: str = ""
    at: int | None = None
    path: str = ""


def settle(written: Iterable[Written], losses: Losses, *, stored: bool = True) -> list[dict[str, Any]]:
    """Return the items that may be sent, with the ids that may be; fewer where nothing is `stored` at the service.

    >>> lone = Written({"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"})
    >>> settle([lone], Losses())
    [{'type': 'reasoning', 'summary': [], 'encrypted_content': 'gAAA'}]
    """
    items = [_sendable(each) for each in written if not _says_nothing(each)]
    if not stored:
        free = {place for place, each in enumerate(items) if _kind(each) in _FREE}
        items = [each._replace(needs="") for each in _without_ids(items, free, losses)]
    items = _without_ids(items, _repeated(items), losses)
    while True:
        items = _without_ids(items, _lacking(items), losses)
        lone = _lone(items)
        if not lone:
            return [each.item for each in items]
        items = _without_ids(items, lone, losses)


def _kind(each: Written) -> str:
    return each.item.get("type") or "message"


def _says_nothing(each: Written) -> bool:
    return _kind(each) == "message" and get_wire(WIRE).view(each.item).empty


def _sendable(each: Written) -> Written:
    """Return an item without the status of reasoning, which is for replies alone."""
    if _kind(each) != "reasoning" or "status" not in each.item:
        return each
    return each._replace(item={name: value for name, value in each.item.items() if name != "status"})


def _repeated(items: Sequence[Written]) -> set[int]:
    """Return the places of items whose id was there before."""
    seen: set[str] = {""}
    again: set[int] = set()
    for place, each in enumerate(items):
        item_id = get_wire(WIRE).item_id(each.item)
        if item_id and item_id in seen:
            again.add(place)
        seen.add(item_id)
    return again


def _lacking(items: Sequence[Written]) -> set[int]:
    """Return the places of items that were made after reasoning which does not go along."""
    known = {each.item.get("id") for each in items if _kind(each) == "reasoning"}
    return {place for place, each in enumerate(items) if each.needs and "id" in each.item and each.needs not in known}


def _lone(items: Sequence[Written]) -> set[int]:
    """Return the places of reasoning that is not followed by what it produced."""
    wire = get_wire(WIRE)
    return {
        place
        for place, each in enumerate(items)
        if wire.wants_follower(each.item) and not (place + 1 < len(items) and wire.can_follow(items[place + 1].item))
    }


def _without_ids(items: Sequence[Written], places: Collection[int], losses: Losses) -> list[Written]:
    """Return the items, those at `places` without their id; what is nothing without it is left out, and reported."""
    kept: list[Written] = []
    for place, each in enumerate(items):
        if place not in places:
            kept.append(each)
        elif _kind(each) in _KEYED:
            _lose(each, Lost.BLOCK, f"{_kind(each)} {each.item.get('id', '')}", losses)
        elif _kind(each) == "reasoning" and not (each.item.get("encrypted_content") or each.item.get("content")):
            _lose(each, Lost.REASONING, f"thought {each.item.get('id', '')}", losses)
        else:
            kept.append(_without_id(each))
    return kept


def _without_id(each: Written) -> Written:
    """Return an item that the service does not know; a message then has no status, either."""
    names = ("id", "status") if _kind(each) == "message" else ("id",)
    return each._replace(item={name: value for name, value in each.item.items() if name not in names})


def _lose(each: Written, name: Lost, what: str, losses: Losses) -> None:
    losses.index = each.at
    losses.add(name, what, each.path)
    losses.index = None
