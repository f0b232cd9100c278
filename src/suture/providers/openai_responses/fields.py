"""Fields of the objects of Responses, read with an error that says which one is wrong; what beside them is kept."""

from collections.abc import Collection, Mapping
from typing import Any, cast

from suture.codecs._fields import checked, tag_of, text_in
from suture.codecs._kept import keep, put_back
from suture.codecs._values import Losses

__all__ = [
    "ITEM",
    "NEEDS",
    "PART",
    "WIRE",
    "beside",
    "list_in",
    "map_of",
    "number_of",
    "own_fields",
    "own_type",
    "returned",
    "tag_of",
    "text_in",
]

WIRE = "openai-responses"

ITEM = "item"
"""What an item of the model's that is a message has beside its content.

It is kept in the `extra` of the native message, so that a reply that is one text is nothing else; of a second such
item, in that of its first block.
"""
NEEDS = "reasoning"
"""Kept with what the model made: the id of the reasoning that it was made after."""
PART = "part"
"""Kept with an unknown block: that it is part of a message, not an item."""
_MARKS = (ITEM, NEEDS, PART)
_PREFIXES = {"message": "msg", "reasoning": "rs", "function_call": "fc", "custom_tool_call": "ctc"}
_PARSED = ("parsed", "parsed_arguments")
"""What the SDK puts beside a text or a call for its user; the API does not take it."""


def map_of(value: Any, path: str) -> Mapping[str, Any]:
    """Return `value`, which is an object.

    >>> map_of([], "item")
    Traceback (most recent call last):
        ...
    suture.errors.InputError: item: expected an object, found list
    """
    return checked(value, dict, "an object", path)


def list_in(thing: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the list of objects in the field `name`, empty where it is absent or null.

    >>> list_in({"content": [1]}, "content")
    Traceback (most recent call last):
        ...
    suture.errors.InputError: content[0]: expected an object, found int
    """
    value = thing.get(name)
    held: list[Any] = [] if value is None else list(checked(value, list | tuple, "a list", name))
    return [map_of(item, f"{name}[{place}]") for place, item in enumerate(held)]


def beside(thing: Mapping[str, Any], known: Collection[str], **marks: str) -> dict[str, Any]:
    """Return the `extra` of what was read: its fields that are neither `known` nor null, and `marks` of ours.

    >>> beside({"type": "function_call", "id": "fc_1", "status": None}, ("type",))
    {'openai-responses': {'id': 'fc_1'}}
    """
    fields = {name: value for name, value in thing.items() if value is not None and name not in _PARSED}
    return keep(WIRE, {**fields, **{name: mark for name, mark in marks.items() if mark}}, known)


def own_fields(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an `extra` keeps for this wire.

    >>> own_fields({"openai-responses": {"id": "fc_1"}})["id"]
    'fc_1'
    """
    held = extra.get(WIRE)
    return cast("Mapping[str, Any]", held) if isinstance(held, Mapping) else {}


def own_type(extra: Mapping[str, Any]) -> str:
    """Return the type of item, part or tool that an `extra` keeps; the empty string where it keeps none.

    >>> own_type({"openai-responses": {"type": "web_search_call"}})
    'web_search_call'
    """
    kind = own_fields(extra).get("type")
    return kind if isinstance(kind, str) else ""


def number_of(item: Mapping[str, Any], place: int) -> str:
    """Return the id that an item without one has in a reply, where it stands at `place`.

    >>> number_of({"type": "function_call"}, 1)
    'fc_1'
    """
    kind = item.get("type", "message")
    prefix = _PREFIXES.get(kind) if isinstance(kind, str) else None
    return f"{prefix}_{place}" if prefix else ""


def returned(made: dict[str, Any], extra: Mapping[str, Any], losses: Losses, path: str) -> dict[str, Any]:
    """Return what was made of a block, with the fields that were kept of it, without our marks.

    >>> returned({"type": "function_call"}, {"openai-responses": {"id": "fc_1", "reasoning": "rs_1"}}, Losses(), "")
    {'type': 'function_call', 'id': 'fc_1'}
    """
    if not isinstance(extra.get(WIRE), Mapping):
        return put_back(WIRE, made, extra, losses, path)
    kept = {name: value for name, value in own_fields(extra).items() if name not in _MARKS}
    return put_back(WIRE, made, {**extra, WIRE: kept}, losses, path)
