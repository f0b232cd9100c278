"""Schema and reading with pydantic, for functions whose annotations are pydantic's.

Nothing here imports pydantic before an annotation of its kind was seen, and then somebody else has imported it.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from suture.errors import ConfigError
from suture.tools._problems import missing, refusal, say, unknown
from suture.tools._reader import Reader
from suture.tools._schema import finish_schema
from suture.tools._signature import Parameter

_MARKS_OF_FIELDS = ("__dataclass_fields__", "__total__", "_fields")
_PACKAGES = frozenset(("pydantic", "pydantic_core", "annotated_types"))


def needs_pydantic(parameters: Sequence[Parameter]) -> bool:
    """Tell whether only pydantic knows what these annotations mean.

    >>> from suture.tools._pydantic import needs_pydantic
    >>> from suture.tools._signature import NOTHING, Parameter
    >>> needs_pydantic([Parameter("query", str, NOTHING)])
    False
    """
    return "pydantic" in sys.modules and any(_is_its(each.hint) or _of_it(each.default) for each in parameters)


def _of_it(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in _PACKAGES


def _is_its(hint: Any, seen: frozenset[Any] = frozenset()) -> bool:
    if get_origin(hint) is Annotated and any(map(_of_it, hint.__metadata__)):
        return True
    if not isinstance(hint, type) or get_origin(hint) is not None:
        return any(_is_its(each, seen) for each in get_args(hint))
    if hasattr(hint, "__pydantic_core_schema__") or hasattr(hint, "__get_pydantic_core_schema__"):
        return True
    if hint in seen or not any(hasattr(hint, mark) for mark in _MARKS_OF_FIELDS):
        return False
    try:
        below = get_type_hints(hint, include_extras=True)
    except Exception:  # noqa: BLE001 - whoever makes the schema says what is wrong with it
        return False
    return any(_is_its(each, seen | {hint}) for each in below.values())


def model_reader(tool: str, parameters: Sequence[Parameter], notes: Mapping[str, str]) -> Reader:
    """Make a reader for these parameters with pydantic.

    Parameters are read strictly, as without pydantic; a model among them is read as it says itself.

    >>> from pydantic import BaseModel
    >>> from suture.tools._pydantic import model_reader
    >>> from suture.tools._signature import NOTHING, Parameter
    >>> class Range(BaseModel):
    ...     first: int
    >>> model_reader("search", [Parameter("range", Range, NOTHING)], {}).read('{"range": {"first": 3}}')
    {'range': Range(first=3)}
    """
    from pydantic import ConfigDict, Field, ValidationError, create_model  # noqa: PLC0415 - see above
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: object) -> bool:
            return False

    names = {f"at{place}": parameter.name for place, parameter in enumerate(parameters)}
    fields: dict[str, Any] = {}
    for field, parameter in zip(names, parameters, strict=True):
        alias = Field(alias=parameter.name)
        fields[field] = (Annotated[parameter.hint, alias], ... if parameter.required else parameter.default)
    try:
        model = create_model(tool, __config__=ConfigDict(extra="forbid", strict=True), **fields)
        schema = finish_schema(model.model_json_schema(schema_generator=Untitled), parameters, notes)
    except Exception as error:
        raise ConfigError(
            f"tool {tool!r}: pydantic makes no schema of its parameters ({str(error).splitlines()[0]})"
        ) from error

    def read(text: str) -> dict[str, Any]:
        text = text if text.strip() else "{}"
        try:
            given = model.model_validate_json(text)
        except ValidationError as error:
            problems = [_say(each, tuple(names.values())) for each in error.errors(include_url=False)]
            raise refusal(text, lambda _: problems, "") from error
        except Exception as error:
            raise refusal(text, lambda _: (), say(error, "arguments", {})) from error
        return {name: getattr(given, field) for field, name in names.items()}

    return Reader(schema, read)


def _say(error: Mapping[str, Any], names: Sequence[str]) -> str:
    path = "arguments" + "".join(f"[{each}]" if isinstance(each, int) else f".{each}" for each in error["loc"])
    if error["type"] == "missing":
        return missing(path)
    if error["type"] == "extra_forbidden":
        return unknown(path, names) if len(error["loc"]) == 1 else f"{path}: unknown"
    what: str = error["msg"]
    if what.startswith("Input should be "):
        what = f"expected {what.removeprefix('Input should be ')}, got {_found(error)}"
    return f"{path}: {what[:1].lower()}{what[1:]}"


def _found(error: Mapping[str, Any]) -> str:
    value = error["input"]
    by_kind = error["type"].endswith("_type") or not isinstance(value, str | int | float)
    return type(value).__name__ if by_kind else repr(value)
