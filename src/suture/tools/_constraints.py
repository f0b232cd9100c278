"""Constraints: what an annotation demands of a value beside its type, whoever wrote it."""

import operator
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from suture.tools._forms import Definitions, Form, Reading

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

CONSTRAINTS = tuple(_BOUNDS)


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
