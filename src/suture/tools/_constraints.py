"""Constraints: what an annotation demands of a value beside its type, read from anybody's metadata."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Annotated, Any, get_origin

import msgspec

from suture.tools._forms import Form, Reading
from suture.tools._schemas import Definitions

_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], Callable[[Any], str]]] = {
    "ge": (operator.ge, ">= {}".format),
    "gt": (operator.gt, "> {}".format),
    "le": (operator.le, "<= {}".format),
    "lt": (operator.lt, "< {}".format),
    "multiple_of": (lambda value, of: value % of == 0, "that's a multiple of {}".format),
    "min_length": (lambda value, length: len(value) >= length, "of length >= {}".format),
    "max_length": (lambda value, length: len(value) <= length, "of length <= {}".format),
    "pattern": (lambda value, pattern: re.search(pattern, value) is not None, "matching regex {!r}".format),
    "tz": (
        lambda value, aware: (value.tzinfo is not None) == aware,
        lambda aware: "with a timezone" if aware else "without a timezone",
    ),
}
"""The constraints, by the attribute that holds the bound: whether a value meets it, and how it is said."""

_WORDS = {
    "number": {
        "ge": "minimum",
        "gt": "exclusiveMinimum",
        "le": "maximum",
        "lt": "exclusiveMaximum",
        "multiple_of": "multipleOf",
    },
    "string": {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"},
    "array": {"min_length": "minItems", "max_length": "maxItems"},
    "object": {"min_length": "minProperties", "max_length": "maxProperties"},
}
"""The constraints in a schema, by JSON type."""
_WORDS["integer"] = _WORDS["number"]


class Checked:
    """A form with constraints, and what its annotation adds to the schema."""

    def __init__(self, inner: Form, constraints: Sequence[tuple[str, Any]], notes: Mapping[str, Any]) -> None:
        self.inner, self.constraints, self.notes = inner, constraints, notes
        self.label = inner.label

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        before = len(reading.problems)
        found = self.inner.read(value, place, reading)
        if len(reading.problems) > before:
            return None
        for name, bound in self.constraints:
            meets, words = _BOUNDS[name]
            try:
                fits = found is None or meets(found, bound)
            except (TypeError, AttributeError):  # another member of a union is meant
                continue
            if not fits:
                reading.refuse(place, f"expected {self.label} {words(bound)}")
        return found

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return {**self._constrain(self.inner.schema(definitions)), **self.notes}

    def _constrain(self, schema: dict[str, Any]) -> dict[str, Any]:
        if "anyOf" in schema:
            return {**schema, "anyOf": [self._constrain(each) for each in schema["anyOf"]]}
        words = _WORDS.get(schema.get("type", ""), {})
        bounds = {words[name]: bound for name, bound in self.constraints if name in words}
        return {**schema, **bounds}


# --- metadata -------------------------------------------------------------------------------------


def annotate(base: Any, metadata: list[Any]) -> Any:
    """Return a base with metadata, or the base alone if there is none."""
    return Annotated[(base, *metadata)] if metadata else base


def with_msgspec_meta(hint: Any) -> Any:
    """Return an annotation with its outermost constraints as `msgspec.Meta`, if that has them all."""
    if get_origin(hint) is not Annotated:
        return hint
    metadata: list[Any] = []
    names: set[str] = set()
    for meta in hint.__metadata__:
        known = read_metadata(meta)
        if known is None or names & known[0].keys():
            return hint
        names.update(known[0])
        own = isinstance(meta, str | msgspec.Meta)
        try:
            metadata.append(meta if own else msgspec.Meta(**known[0], **known[1]))
        except (TypeError, ValueError):  # such as a bound that is a date
            return hint
    return annotate(hint.__origin__, metadata)


def read_metadata(meta: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the constraints of one piece of metadata, and its notes for the schema; `None` if only pydantic knows."""
    if isinstance(meta, str):
        return {}, {"description": meta}
    if isinstance(meta, msgspec.Meta):
        words = {name: getattr(meta, name) for name in ("title", "description", "examples")}
        notes = {name: word for name, word in words.items() if word is not None}
        return _bounds(meta), {**notes, **(meta.extra_json_schema or {})}
    module = type(meta).__module__.partition(".")[0]
    if module == "annotated_types":
        bounds = {name: bound for name, bound in _bounds(meta).items() if name != "tz"}
        return (bounds, {}) if bounds or not hasattr(meta, "func") else None
    if type(meta).__name__ == "FieldInfo" and module == "pydantic":
        return _read_field(meta)
    if isinstance(text := getattr(meta, "documentation", None), str):
        return {}, {"description": text}
    return None if is_of_pydantic(meta) or hasattr(meta, "__get_pydantic_core_schema__") else ({}, {})


def _read_field(field: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    constraints: dict[str, Any] = {}
    for each in field.metadata:
        bounds = _bounds(each)
        said = {name for name, value in getattr(each, "__dict__", {}).items() if value is not None}
        if not bounds or not said <= bounds.keys():
            return None
        constraints.update(bounds)
    beyond = ("discriminator", "json_schema_extra", "alias", "validation_alias", "exclude")
    if any(getattr(field, name, None) is not None for name in beyond):
        return None
    words = {name: getattr(field, name) for name in ("title", "description", "examples")}
    return constraints, {name: word for name, word in words.items() if word is not None}


def _bounds(meta: Any) -> dict[str, Any]:
    bounds = {name: getattr(meta, name, None) for name in _BOUNDS}
    return {name: bound for name, bound in bounds.items() if bound is not None and (name, bound) != ("min_length", 0)}


def is_of_pydantic(value: Any) -> bool:
    """Return whether a value, such as a default or metadata, belongs to pydantic."""
    return type(value).__module__.partition(".")[0] in ("pydantic", "pydantic_core")
