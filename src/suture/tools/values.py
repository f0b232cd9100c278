"""One reader for what models write, made from any annotation: for the arguments of tools and for final answers.

JSON that is exactly of the type costs one decoding. Other JSON is read by forms, which are lenient where nothing is
lost, and say what is wrong.
"""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from suture._text import shorten
from suture.errors import ConfigError
from suture.tools._annotations import Builder
from suture.tools._constraints import with_msgspec_meta
from suture.tools._forms import Form, Reading, UnreadableError, message_of
from suture.tools._schemas import Definitions, without_root_reference

if TYPE_CHECKING:
    from suture.tools._pydantic_forms import PydanticForm

__all__ = [
    "READABLE",
    "FormReader",
    "NotJSONError",
    "ValueProblemsError",
    "ValueReader",
    "decode_json",
    "make_form_reader",
    "make_value_reader",
    "shorten_problems",
]

READABLE = "str, int, a list or dict of them, a dataclass, a TypedDict or a pydantic model"
"""What to annotate with instead of a type that cannot be read."""

_LONGEST = 300
_MOST = 20


class ValueProblemsError(ValueError):
    """What a model wrote does not fit; `problems` says why, each with its place.

    >>> str(ValueProblemsError("answer.limit: expected int, got str", "answer.query: missing"))
    'answer.limit: expected int, got str; answer.query: missing'
    """

    def __init__(self, *problems: str) -> None:
        self.problems = problems
        super().__init__("; ".join(problems))


class NotJSONError(ValueProblemsError):
    """What a model wrote is not JSON."""


class ValueReader(NamedTuple):
    """The JSON Schema of a type, and the function that reads JSON text into its values.

    `read` raises `ValueProblemsError`.

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


class FormReader(NamedTuple):
    """The form of a type and its reader; `native` is the type if msgspec alone reads what is exactly of it."""

    form: Form
    read: Callable[[str | bytes], Any]
    native: Any | None


def make_value_reader(annotation: Any, name: str, *, where: str, strict: bool = False) -> ValueReader:
    """Make a reader for an annotation, or raise `ConfigError`.

    Problems begin with the `name` of the value, and the error for an annotation that cannot be read with `where` it
    stands. A `strict` reader takes no number in quotes.
    """
    try:
        form, read, _ = make_form_reader(annotation, name, strict=strict)
        definitions = Definitions()
        schema = definitions.complete(form.schema(definitions))
        return ValueReader(without_root_reference(schema), read)
    except UnreadableError as error:
        raise ConfigError(f"{where}: {error}; annotate it with {READABLE}") from error


def make_form_reader(annotation: Any, name: str, *, strict: bool) -> FormReader:
    """Make the form and the reader for an annotation, or raise `UnreadableError`."""
    builder = Builder()
    try:
        annotation = with_msgspec_meta(annotation)
        form = builder.build(annotation)
    except UnreadableError:
        raise
    except RecursionError as error:
        raise UnreadableError(annotation, "it is nested without end") from error
    except Exception as error:  # what stands in an annotation is a user's own
        raise UnreadableError(annotation, f"{type(error).__name__}: {error}") from error
    decode = _exact_decoder(annotation) if builder.native else None
    native = annotation if decode is not None else None
    if hasattr(form, "decoder"):  # one of pydantic's, which reads text at once
        decode = cast("PydanticForm", form).decoder(strict=strict)

    def read(text: str | bytes) -> Any:
        if decode is not None:
            try:
                return decode(text)
            except Exception:  # noqa: BLE001, S110 - the form says what is wrong, if it is
                pass
        reading = Reading(lax=not strict)
        try:
            found = form.read(decode_json(text, name), name, reading)
        except RecursionError as error:
            raise ValueProblemsError(f"{name}: {message_of(error)}") from error
        if reading.problems:
            raise ValueProblemsError(*shorten_problems(reading.problems))
        return found

    return FormReader(form, read, native)


def shorten_problems(problems: Sequence[str]) -> list[str]:
    """Return problems as they may go back to a model: not too many, and none too long."""
    more = [f"and {len(problems) - _MOST} more"] if len(problems) > _MOST else []
    return [*(shorten(problem, _LONGEST) for problem in problems[:_MOST]), *more]


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
        raise NotJSONError(f"{name} is not valid JSON: {message_of(error)}") from error
