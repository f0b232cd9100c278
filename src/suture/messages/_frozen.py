"""A mapping that cannot be changed, for the free-form fields of values.

It is a real dict, so encoders, `==` and `{**map}` treat it as one. Only the map itself is sealed: what it
holds is the caller's, and stays as it is.
"""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any, NoReturn, Self

__all__ = ["EMPTY", "FrozenMap"]


class FrozenMap(dict[str, Any]):
    """A read-only dict; copy it into a plain one to change it.

    >>> extra = FrozenMap({"origin": "cache"})
    >>> extra == {"origin": "cache"}
    True
    >>> {**extra, "seen": 2}
    {'origin': 'cache', 'seen': 2}
    >>> extra["seen"] = 2
    Traceback (most recent call last):
        ...
    TypeError: a FrozenMap cannot be changed; copy it into a dict first
    """

    __slots__ = ()

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("a FrozenMap cannot be changed; copy it into a dict first")

    __setitem__ = _refuse
    __delitem__ = _refuse
    __ior__ = _refuse
    clear = _refuse
    pop = _refuse
    popitem = _refuse
    setdefault: Any = _refuse
    update: Any = _refuse

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> "FrozenMap":
        return FrozenMap(deepcopy(dict(self), memo))

    def __reduce__(self) -> tuple[type["FrozenMap"], tuple[dict[str, Any]]]:
        return FrozenMap, (dict(self),)


EMPTY: Mapping[str, Any] = FrozenMap()
"""The one empty map: every value without `extra` shares it, and encoders leave it out by identity."""
