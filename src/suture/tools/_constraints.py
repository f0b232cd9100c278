"""Constraints: what an annotation demands of a value beside its type, whoever wrote it."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from suture.tools._forms import Definitions, Form, Reading

_BOUNDS: dict[str, tuple[Callable[[Any, Any], bool], str]] = {
    "ge": (operator.ge, ">= {}"),
    "gt": (operator.gt, "> {}"),
    "le": (operator.le, "<= {}"),
    "lt": (operator.lt, "< {}"),
    "multiple_of": (lambda value, of: value % of == 0, "that's a multiple of {}"),
    "min_length": (lambda value, length: len(value) >= length, "of length >= {}"),
    "max_length": (lambda value, length: len(value) <= length, "of length <= {}"),
    "pattern": (lambda value, pattern: re.search(pattern, value) is not None, "matching regex {!r}"),
    "tz": (
        lambda value, aware: (value.tzinfo is not None) == aware,
        "with a timezone component: {}",
    ),
}
"""The constraints, by the attribute that holds the bound; whether a value meets it; and how it is said."""

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

CONSTRAINTS = tuple(_BOUNDS)


class Checked:
    """A form with constraints, and what its annotation adds to the schema."""

    def __init__(self, inner: Form, constraints: Mapping[str, Any], notes: Mapping[str, Any]) -> None:
        self.inner, self.constraints, self.notes = inner, constraints, notes
        self.label = inner.label

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        before = len(reading.problems)
        found = self.inner.read(value, place, reading)
        if len(reading.problems) > before:
            return None
        for name, bound in self.constraints.items():
            meets, words = _BOUNDS[name]
            try:
                fits = found is None or meets(found, bound)
            except (TypeError, AttributeError):  # another member of a union is meant
                continue
            if not fits:
                reading.refuse(place, f"expected {self.label} {words.format(bound)}")
        return found

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return {**self._constrain(self.inner.schema(definitions)), **self.notes}

    def _constrain(self, schema: dict[str, Any]) -> dict[str, Any]:
        if "anyOf" in schema:
            return {**schema, "anyOf": [self._constrain(each) for each in schema["anyOf"]]}
        words = _WORDS.get(schema.get("type", ""), {})
        bounds = {words[name]: bound for name, bound in self.constraints.items() if name in words}
        return {**schema, **bounds}
