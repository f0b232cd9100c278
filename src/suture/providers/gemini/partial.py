"""A call whose arguments come piece by piece: each piece says by a path where in the arguments it belongs."""

import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, cast

import msgspec

from suture.errors import InputError
from suture.providers.gemini.fields import camel, object_in, objects

__all__ = ["PartialCall"]

_STEP = re.compile(r"""\.([^.\[\]'"]+)|\[(\d{1,9})\]|\['([^']*)'\]|\["([^"]*)"\]""")
_VALUES: Mapping[str, Any] = {"stringValue": str, "numberValue": int | float, "boolValue": bool}
_DEEPEST = 100


class PartialCall:
    """A call that is still being said.

    >>> call = PartialCall({"functionCall": {}}, {"name": "tides", "willContinue": True})
    >>> call.add({"partialArgs": [{"jsonPath": "$.port", "stringValue": "Do"}], "willContinue": True})
    >>> call.add({"partialArgs": [{"jsonPath": "$.port", "stringValue": "ver"}]})
    >>> call.ended, call.whole()["functionCall"]
    (True, {'name': 'tides', 'args': {'port': 'Dover'}})
    """

    def __init__(self, part: Mapping[str, Any], call: Mapping[str, Any]) -> None:
        self._beside = {name: value for name, value in part.items() if name != "functionCall"}
        self._call: dict[str, Any] = {}
        self._arguments: dict[str, Any] = {}
        self.ended = False
        self.add(call)

    def add(self, call: Mapping[str, Any]) -> None:
        """Take the next piece; one that does not say that more will come is the last."""
        pieces = objects(call.get("partialArgs"), "functionCall.partialArgs")
        for piece in pieces:
            self._put(camel(piece))
        self._call |= {name: value for name, value in call.items() if name not in {"partialArgs", "willContinue"}}
        self.ended = not call.get("willContinue")

    def whole(self) -> dict[str, Any]:
        """Return the part that it makes; if its end never came, its arguments are a text that is no JSON yet."""
        arguments: Any = _whole(self._arguments) | dict(object_in(self._call, "args"))
        if not self.ended:
            arguments = msgspec.json.encode(arguments).decode().removesuffix("}")
        return {"functionCall": {**self._call, "args": arguments}, **self._beside}

    def _put(self, piece: Mapping[str, Any]) -> None:
        path = piece.get("jsonPath")
        steps = _steps(path if isinstance(path, str) else "")
        kind = next((kind for kind in _VALUES if piece.get(kind) is not None), "")
        value = piece.get(kind)
        if not kind and "nullValue" not in piece:
            return
        if kind and not isinstance(value, _VALUES[kind]):
            raise InputError(f"a value of the type {type(value).__name__}", path=f"partialArgs.{kind}")
        holder = _reached(self._arguments, steps)
        held = _held(holder, steps[-1])
        if isinstance(value, str) and isinstance(held, _Pieces):
            held.texts.append(value)
        else:
            _set(holder, steps[-1], _Pieces(value) if isinstance(value, str) else value)


class _Pieces:
    """A text that is still being said."""

    __slots__ = ("texts",)

    def __init__(self, text: str) -> None:
        self.texts = [text]


_Step = str | int


def _steps(path: str) -> list[_Step]:
    """Return the names and numbers that a path such as `$.ports[0].name` leads through."""
    steps: list[_Step] = []
    place = 1 if path.startswith("$") else -1
    while 0 <= place < len(path):
        found = _STEP.match(path, place)
        if found is None:
            place = -1
        else:
            name, number, single, double = found.groups()
            steps.append(int(number) if number is not None else name or single or double or "")
            place = found.end()
    if place < 0 or not steps or len(steps) > _DEEPEST or not isinstance(steps[0], str):
        raise InputError(f"a path that leads nowhere: {path[:80]!r}", path="partialArgs.jsonPath")
    return steps


def _reached(arguments: dict[str, Any], steps: Sequence[_Step]) -> Any:
    """Return what holds the last of `steps`, made on the way where it is not there yet."""
    holder: Any = arguments
    for step, following in pairwise(steps):
        if _held(holder, step) is None:
            _set(holder, step, {} if isinstance(following, str) else [])
        holder = _held(holder, step)
    return _fitting(holder, steps[-1])


def _held(holder: Any, step: _Step) -> Any:
    within = _fitting(holder, step)
    if isinstance(step, str):
        return within.get(step)
    return within[step] if step < len(within) else None


def _set(holder: Any, step: _Step, value: Any) -> None:
    within = _fitting(holder, step)
    if isinstance(step, int) and step == len(within):
        within.append(value)
    elif isinstance(step, int) and step > len(within):
        raise InputError("a path beyond the end of a list", path="partialArgs.jsonPath")
    else:
        within[step] = value


def _fitting(holder: Any, step: _Step) -> Any:
    """Return `holder`, in which `step` can be taken: names lead into objects, numbers into lists."""
    if not isinstance(holder, dict if isinstance(step, str) else list):
        raise InputError("a path through something else", path="partialArgs.jsonPath")
    return cast("Any", holder)


def _whole(held: Any) -> Any:
    """Return what was collected, every text joined."""
    if isinstance(held, _Pieces):
        return "".join(held.texts)
    if isinstance(held, dict):
        return {name: _whole(value) for name, value in cast("dict[str, Any]", held).items()}
    if isinstance(held, list):
        return [_whole(value) for value in cast("list[Any]", held)]
    return held
