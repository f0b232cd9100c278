"""JSON Schemas: the definitions of named types, and whole schemas, with what is used once written where it is used."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

__all__ = ["Definitions", "without_root_reference"]

_REFS = "#/$defs/"


class Definitions:
    """The schemas of named types, to which others refer."""

    def __init__(self) -> None:
        self.schemas: dict[str, dict[str, Any]] = {}
        self._names: dict[Any, str] = {}

    def refer(self, kind: Any, title: str, make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
        """Return a reference to the schema of a type, which is made the first time."""
        if kind not in self._names:
            self._names[kind] = name = self._free(re.sub(r"\W", "_", title))
            self.schemas[name] = {}  # within itself the type is referred to
            self.schemas[name] = make()
        return {"$ref": _REFS + self._names[kind]}

    def adopt(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Take over the definitions of a whole schema; return the rest of it."""
        rest = dict(schema)
        for name, definition in rest.pop("$defs", {}).items():
            if self.schemas.get(name, definition) != definition:
                free = self._free(name)
                return self.adopt(_rename(schema, name, free))
            self.schemas[name] = definition
        return rest

    def share(self, name: str, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a reference to a schema, which may be defined already."""
        if self.schemas.get(name) != schema:
            name = self._free(name)
            self.schemas[name] = schema
        return {"$ref": _REFS + name}

    def complete(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """Return a schema with its definitions, except those that are used once, which are put in their place."""
        whole: dict[str, Any] = {**schema, "$defs": dict(self.schemas)}
        for name in list(whole["$defs"]):
            ref, definition = _REFS + name, whole["$defs"][name]
            if _uses(whole, ref) == 1 and not _uses(definition, ref):
                del whole["$defs"][name]
                whole = _inline(whole, ref, definition)
        if not whole["$defs"]:
            del whole["$defs"]
        return whole

    def _free(self, name: str) -> str:
        number, free = 1, name
        while free in self.schemas:
            number += 1
            free = f"{name}_{number}"
        return free


def without_root_reference(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a whole schema with a definition in place of a reference at its root, where providers take none."""
    name = schema.get("$ref", "").removeprefix(_REFS)
    return {**schema["$defs"][name], "$defs": schema["$defs"]} if name else dict(schema)


def _rename(schema: Mapping[str, Any], name: str, other: str) -> dict[str, Any]:
    """Return a schema in which one definition has another name."""

    def changed(node: Any) -> Any:
        if isinstance(node, Mapping):
            return {key: changed(each) for key, each in cast("Mapping[str, Any]", node).items()}
        if isinstance(node, list):
            return [changed(each) for each in cast("list[Any]", node)]
        return _REFS + other if node == _REFS + name else node

    whole: dict[str, Any] = changed(schema)
    return {**whole, "$defs": {other if key == name else key: each for key, each in whole["$defs"].items()}}


def _nodes(node: Any) -> Iterable[dict[str, Any]]:
    if isinstance(node, dict):
        yield cast("dict[str, Any]", node)
        node = list(cast("dict[str, Any]", node).values())
    if isinstance(node, list | tuple):
        for each in cast("Sequence[Any]", node):
            yield from _nodes(each)


def _uses(schema: Any, ref: str) -> int:
    # Look at the values of every key: a tagged union names its branches in a mapping, too.
    return sum(value == ref for node in _nodes(schema) for value in node.values())


def _inline(node: Any, ref: str, definition: dict[str, Any]) -> Any:
    if isinstance(node, list | tuple):
        return [_inline(each, ref, definition) for each in cast("Sequence[Any]", node)]
    if not isinstance(node, dict):
        return node
    mapping = cast("dict[str, Any]", node)
    if mapping.get("$ref") == ref:
        return {**definition, **{key: each for key, each in mapping.items() if key != "$ref"}}
    return {key: _inline(each, ref, definition) for key, each in mapping.items()}
