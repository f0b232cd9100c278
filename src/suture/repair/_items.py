"""Rules of a flat list of items: an item id is used once, and reasoning is followed by what it produced."""

from collections import ChainMap
from collections.abc import MutableMapping
from typing import Any

from suture.wires import Wire

__all__ = ["ItemRules"]


class ItemRules:
    """Watches the items of a Responses input go by.

    >>> from suture.wires import get_wire
    >>> rules = ItemRules(get_wire("openai-responses"))
    >>> rules.is_lone({"type": "reasoning", "id": "rs_1", "summary": []}, 0)
    False
    >>> rules.is_lone({"role": "user", "content": "hi"}, 1)
    True
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire
        self._seen: MutableMapping[str, None] = {}
        self._wants_follower = False
        self.last_origin = 0
        """Where the item before stood."""

    def fork(self) -> "ItemRules":
        """Return a copy whose changes stay its own."""
        twin = ItemRules(self._wire)
        twin._seen, twin._wants_follower = ChainMap({}, self._seen), self._wants_follower
        twin.last_origin = self.last_origin
        return twin

    def is_lone(self, item: Any, origin: int) -> bool:
        """Tell whether the item before wanted one that this is not."""
        self.last_origin = origin
        wanted, self._wants_follower = self._wants_follower, self._wire.wants_follower(item)
        return wanted and not self._wire.can_follow(item)

    def ends_lone(self) -> bool:
        """Tell whether the last item wants one to follow."""
        return self._wants_follower

    def is_repeated(self, item: Any) -> bool:
        """Tell whether the id of `item` was there before."""
        item_id = self._wire.item_id(item)
        if not item_id:
            return False
        repeated = item_id in self._seen
        self._seen[item_id] = None
        return repeated
