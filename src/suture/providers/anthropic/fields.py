"""Fields of Anthropic's objects, read with an error that says which one is wrong; what beside them is kept."""

from collections.abc import Collection, Mapping
from typing import Any, cast

from suture.codecs._fields import checked, count_in, tag_of, text_in
from suture.codecs._kept import keep

__all__ = ["WIRE", "count_in", "kept_beside", "list_in", "map_in", "own_fields", "tag_of", "text_in"]

WIRE = "anthropic"


def map_in(thing: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """Return the object in the field `name`.

    >>> map_in({"source": {"type": "url"}}, "source")
    {'type': 'url'}
    """
    return checked(thing.get(name), dict, "an object", name)


def list_in(thing: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """Return the list of objects in the field `name`.

    >>> list_in({"content": [1]}, "content")
    Traceback (most recent call last):
        ...
    suture.errors.InputError: content[0]: expected an object, found int
    """
    held: list[Any] = list(checked(thing.get(name), list | tuple, "a list", name))
    return [checked(item, dict, "an object", f"{name}[{place}]") for place, item in enumerate(held)]


def kept_beside(block: Mapping[str, Any], known: Collection[str]) -> dict[str, Any]:
    """Return the `extra` of what was read: its fields that are neither `known` nor null.

    >>> kept_beside({"type": "text", "text": "hi", "citations": None, "cache_control": {}}, ("type", "text"))
    {'anthropic': {'cache_control': {}}}
    """
    return keep(WIRE, {name: value for name, value in block.items() if value is not None}, known)


def own_fields(extra: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return what an `extra` keeps for this wire.

    >>> own_fields({"anthropic": {"type": "server_tool_use"}})["type"]
    'server_tool_use'
    """
    held = extra.get(WIRE)
    return cast("Mapping[str, Any]", held) if isinstance(held, Mapping) else {}
