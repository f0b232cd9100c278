"""JSON Schemas: whole ones from forms, with definitions that are used once written where they are used."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from suture.tools._forms import REFS, Definitions, Form

__all__ = ["complete", "make_schema"]


def make_schema(form: Form) -> dict[str, Any]:
    """Return the whole schema of a form."""
    definitions = Definitions()
    schema = complete(form.schema(definitions), definitions)
    name = schema.get("$ref", "").removeprefix(REFS)
    return {**schema["$defs"][name], "$defs": schema["$defs"]} if name else schema  # providers want none at the root


def complete(schema: Mapping[str, Any], definitions: Definitions) -> dict[str, Any]:
    """Return a schema with its definitions, except those that are used once, which are put in their place."""
    whole: dict[str, Any] = {**schema, "$defs": dict(definitions.schemas)}
    for name in list(whole["$defs"]):
        ref, definition = REFS + name, whole["$defs"][name]
        if _uses(whole, ref) == 1 and not _uses(definition, ref):
            del whole["$defs"][name]
            whole = _inline(whole, ref, definition)
    if not whole["$defs"]:
        del whole["$defs"]
    return whole


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
