"""One reader for what models write, made from any annotation: for the arguments of tools and for final answers.

JSON that is exactly of the type costs one decoding. Other JSON is read by forms, which are lenient where nothing is
lost, and say what is wrong.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

from suture._text import shorten
from suture.errors import ConfigError
from suture.tools._annotations import Builder
from suture.tools._forms import Form, Reading, Textual, UnreadableError, said
from suture.tools._schemas import make_schema

__all__ = ["NotJSONError", "ValueProblemsError", "ValueReader", "make_value_reader"]

_LONGEST = 300
_MOST = 20
_READABLE = "str, int, a list or dict of them, a dataclass, a TypedDict or a pydantic model"


class ValueProblemsError(ValueError):
    """What a model wrote does not fit; `problems` says why, each with its place.

    >>> str(ValueProblemsError("answer.limit: expected int, got str", "answer.query: missing"))
    'answer.limit: expected int, got str; answer.query: missing'
    """

    def __init__(self, *problems: str) -> None:
        more = [f"and {len(problems) - _MOST} more"] if len(problems) > _MOST else []
        self.problems = (*(shorten(problem, _LONGEST) for problem in problems[:_MOST]), *more)
        super().__init__("; ".join(self.problems))


class NotJSONError(ValueProblemsError):
    """What a model wrote is not JSON."""


class ValueReader(NamedTuple):
    """The JSON Schema of a type, and the function that reads JSON text into its values.

    `read` raises `ValueProblemsError`. `native` says that msgspec alone reads what is exactly of the type.

    >>> reader = make_value_reader(list[int], "answer", where="output_type")
    >>> reader.schema
    {'type': 'array', 'items': {'type': 'integer'}}
    >>> reader.read('[1, "2"]')
    [1, 2]
    >>> reader.read('[1, "two"]')
    Traceback (most recent call last):
        ...
    suture.tools.values.ValueProblemsError: answer[1]: expected int, got str
    """

    schema: dict[str, Any]
    read: Callable[[str | bytes], Any]
    form: Form
    native: bool


def make_value_reader(annotation: Any, name: str, *, where: str, strict: bool = False) -> ValueReader:
    """Make a reader for an annotation, or raise `ConfigError`.

    Problems begin with the `name` of the value, and the error for an annotation that cannot be read with `where` it
    stands. A `strict` reader takes no number in quotes.
    """
    builder = Builder()
    try:
        form = builder.build(annotation)
        schema = make_schema(form)
    except (UnreadableError, RecursionError) as error:
        why = error if isinstance(error, UnreadableError) else "its annotation is nested without end"
        raise ConfigError(f"{where}: {why}; annotate it with {_READABLE}") from error
    decode = _exact_decoder(annotation) if builder.native else None

    def read(text: str | bytes) -> Any:
        if decode is not None:
            try:
                return decode(text)
            except Exception:  # noqa: BLE001, S110 - the form says what is wrong, if it is
                pass
        reading = Reading(lax=not strict)
        if isinstance(form, Textual):
            found = form.read_text(text, name, reading)
        else:
            found = form.read(decode_json(text, name), name, reading)
        if not reading.problems:
            return found
        decode_json(text, name)
        raise ValueProblemsError(*reading.problems)

    return ValueReader(schema, read, form, decode is not None)


def _exact_decoder(annotation: Any) -> Callable[[str | bytes], Any] | None:
    try:
        return msgspec.json.Decoder(annotation).decode
    except (TypeError, ValueError, RecursionError):  # such as a union that msgspec does not tell apart
        return None


def decode_json(text: str | bytes, name: str) -> Any:
    """Return the plain value of a JSON text, or raise `NotJSONError`."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError) as error:
        raise NotJSONError(f"{name} is not valid JSON: {said(error)}") from error
