"""Reading by a JSON Schema that was given: only as much of it as can be told from the outermost object."""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from typing import Any, Literal, TypedDict

import msgspec

from suture.errors import ConfigError, InputError
from suture.messages import check_plain
from suture.tools._problems import json_name, missing, refusal, unknown
from suture.tools._reader import Reader
from suture.tools._signature import Signature

_TYPES: dict[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: type(value) is int or (isinstance(value, float) and value.is_integer()),
    "null": lambda value: value is None,
    "number": lambda value: type(value) in (int, float),
    "object": lambda value: isinstance(value, dict),
    "string": lambda value: isinstance(value, str),
}
_decode = msgspec.json.Decoder(dict[str, Any]).decode


class _Property(TypedDict, total=False):
    type: str | list[str]


class _Outermost(TypedDict, total=False):
    """As much of a schema as is looked at here."""

    type: Literal["object"]
    properties: dict[str, _Property | bool]
    required: list[str]


def given_reader(tool: str, schema: Mapping[str, Any], signature: Signature | None) -> Reader:
    """Make a reader for a checked schema. What its function cannot take, or cannot do without, counts too.

    >>> from suture.tools._given import given_reader
    >>> reader = given_reader("search", {"properties": {"query": {"type": "string"}}, "required": ["query"]}, None)
    >>> reader.read('{"query": "pairing"}')
    {'query': 'pairing'}
    >>> reader.problem('{"query": 3}')
    'arguments.query: expected string, got integer'
    """
    properties: dict[str, dict[str, Any] | bool] = schema.get("properties", {})
    required = list(schema.get("required", ()))
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    known = list(properties) if closed else None
    if signature and not signature.takes_options:
        known = [parameter.name for parameter in signature.visible]
        lost = [name for name in properties if name not in known]
        if lost:
            raise ConfigError(f"tool {tool!r} does not take {lost[0]!r}, which its schema asks for; it takes {known}")
    visible = signature.visible if signature else ()
    required += [each.name for each in visible if each.required and each.name not in required]
    defaults = {each.name: each.default for each in visible if not each.required}
    checks = [(name, *_check(each)) for name, each in properties.items() if isinstance(each, dict) and "type" in each]

    def problems(given: Mapping[str, Any]) -> list[str]:
        found = [] if known is None else [unknown(f"arguments.{name}", known) for name in given if name not in known]
        found += [missing(f"arguments.{name}") for name in required if name not in given]
        for name, expected, kinds in checks:
            if name in given and not any(fits(given[name]) for fits in kinds):
                found.append(f"arguments.{name}: expected {expected}, got {json_name(given[name])}")
        return found

    def read(text: str) -> dict[str, Any]:
        try:
            given = _decode(text)
        except (ValueError, RecursionError) as error:
            if not text.strip():
                return read("{}")
            raise refusal(text, lambda _: (), str(error)) from error
        if problems(given):
            raise refusal(text, lambda _: problems(given), "")
        return {**defaults, **given}

    return Reader(schema, read)


def check_schema(tool: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a schema that is one of an object, and refuse any other.

    >>> from suture.tools._given import check_schema
    >>> check_schema("search", {"properties": {"query": {}}})
    {'type': 'object', 'properties': {'query': {}}}
    """
    where = f"tool {tool!r}: its schema"
    if not isinstance(schema, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's code
        raise ConfigError(f"{where} must be a mapping, a JSON Schema; got {type(schema).__name__}")
    copy = deepcopy(dict(schema))
    try:
        check_plain(copy)
    except InputError as error:
        raise ConfigError(f"{where} is not JSON ({error})") from error
    try:
        msgspec.convert(copy, _Outermost)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where} is no JSON Schema of an object ({error})") from error
    return {"type": "object", **copy}


def _check(schema: Mapping[str, Any]) -> tuple[str, Sequence[Callable[[Any], bool]]]:
    kinds = schema["type"]
    kinds = [kinds] if isinstance(kinds, str) else kinds
    return " or ".join(kinds), [_TYPES.get(kind, lambda _: True) for kind in kinds]
