"""Fields of Gemini's objects, read with an error that says which one is wrong, under the names of the API."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from suture.codecs._fields import count_in, text_in
from suture.errors import InputError

__all__ = ["GEMINI", "camel", "count_in", "deep_camel", "object_in", "objects", "own_fields", "text_in"]

GEMINI = "gemini"


def camel(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return `fields` under the names that the API gives them; the SDK's own are in snake case.

    >>> camel({"thought_signature": "c2ln", "text": "hi"})
    {'thoughtSignature': 'c2ln', 'text': 'hi'}
    """
    return {_camel(name): value for name, value in fields.items()}


def deep_camel(value: Any) -> Any:
    """Return `value` with the names in it, however deep, as the API gives them.

    >>> deep_camel([{"start_offset": "2s"}])
    [{'startOffset': '2s'}]
    """
    if isinstance(value, Mapping):
        return {name: deep_camel(held) for name, held in camel(cast("Mapping[str, Any]", value)).items()}
    return [deep_camel(held) for held in cast("list[Any]", value)] if isinstance(value, list) else value


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join([word.capitalize() for word in rest]) if first and all(rest) else name


def objects(value: Any, path: str) -> Sequence[Mapping[str, Any]]:
    """Return a list of objects, empty where there is none; raise `InputError` for anything else.

    >>> objects(None, "parts"), objects([{"text": "hi"}], "parts")
    ((), [{'text': 'hi'}])
    """
    if value is None:
        return ()
    if not isinstance(value, list | tuple):
        raise InputError(f"expected a list, found {type(value).__name__}", path=path)
    listed = cast("Sequence[Any]", value)
    for place, item in enumerate(listed):
        if not isinstance(item, Mapping):
            raise InputError(f"expected an object, found {type(item).__name__}", path=f"{path}[{place}]")
    return listed


def object_in(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object in the field `name`, an empty one where there is none.

    >>> object_in({}, "content")
    {}
    """
    value = holder.get(name)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise InputError(f"expected an object, found {type(value).__name__}", path=name)
    return cast("Mapping[str, Any]", value)


def own_fields(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an `extra` keeps for this wire.

    >>> own_fields({"gemini": {"thoughtSignature": "c2ln"}})["thoughtSignature"]
    'c2ln'
    """
    held = extra.get(GEMINI)
    return cast("Mapping[str, Any]", held) if isinstance(held, Mapping) else {}
