"""Forms that pydantic makes; importing this file imports pydantic."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, cast

import msgspec
from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic.errors import PydanticInvalidForJsonSchema, PydanticSchemaGenerationError
from pydantic.json_schema import GenerateJsonSchema

from suture._text import shorten
from suture.tools._forms import Form, Reading, UnreadableError, message_of
from suture.tools._schemas import Definitions

_NO_FORM = (PydanticSchemaGenerationError, PydanticInvalidForJsonSchema)
_WRONG_TYPES = frozenset(("model_type", "model_attributes_type", "dataclass_type", "typed_dict_type"))


class _Untitled(GenerateJsonSchema):
    def field_title_should_be_set(self, schema: object) -> bool:
        return False


class PydanticForm:
    """A type that pydantic reads, with its own validators and settings."""

    def __init__(self, hint: Any) -> None:
        try:
            self._adapter: TypeAdapter[Any] = TypeAdapter(hint)
            self._schema = self._adapter.json_schema(schema_generator=_Untitled)
        except Exception as error:  # pydantic and a user's own code raise many kinds
            why = "" if isinstance(error, _NO_FORM) else str(error).partition("\n")[0]
            raise UnreadableError(hint, why) from error
        self.label = "object" if "properties" in self._schema else getattr(hint, "__name__", None) or repr(hint)

    def decoder(self, *, strict: bool) -> Callable[[str | bytes], Any]:
        return partial(self._adapter.validate_json, strict=True) if strict else self._adapter.validate_json

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        return self._read(lambda: self.decoder(strict=not reading.lax)(msgspec.json.encode(value)), place, reading)

    def check(self, value: Any, place: str, reading: Reading) -> Any:
        """Check a value that has been read."""
        return self._read(lambda: self._adapter.validate_python(value), place, reading)

    def _read(self, validate: Callable[[], Any], place: str, reading: Reading) -> Any:
        try:
            found = validate()
        except ValidationError as error:
            faults = error.errors(include_url=False)
            if [(fault["loc"], fault["type"] in _WRONG_TYPES) for fault in faults] == [((), True)]:
                return reading.expect(place, "object", faults[0]["input"])
            for fault in faults:
                reading.refuse(place + _path(fault["loc"]), message_of(fault["msg"]))
            return None
        except Exception as error:  # noqa: BLE001 - a validator may raise anything
            return reading.refuse(place, f"{type(error).__name__}: {error}")
        reading.fields += _count(found)
        return found

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        schema = definitions.adopt(self._schema)
        name = re.sub(r"\W", "_", schema.get("title", ""))
        return definitions.share(name, schema) if name and "properties" in schema else schema


class PydanticCheck:
    """A form whose values pydantic checks, or changes, afterwards."""

    def __init__(self, inner: Form, check: PydanticForm) -> None:
        self.inner, self.check, self.label = inner, check, inner.label

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        before = len(reading.problems)
        found = self.inner.read(value, place, reading)
        return found if len(reading.problems) > before else self.check.check(found, place, reading)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return {**self.inner.schema(definitions), **self.check.schema(definitions)}


def _path(steps: tuple[str | int, ...]) -> str:
    return "".join(f"[{each}]" if isinstance(each, int) else f".{shorten(each, 64)}" for each in steps)


def _count(value: Any) -> int:
    """Return how many fields were given to a model and the models in it."""
    if isinstance(value, BaseModel):
        return sum(1 + _count(getattr(value, name, None)) for name in value.model_fields_set)
    if isinstance(value, Mapping):
        return sum(map(_count, cast("Mapping[Any, Any]", value).values()))
    return sum(map(_count, cast("list[Any]", value))) if isinstance(value, list | tuple) else 0
