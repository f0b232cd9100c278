"""Schema and reading from a function's annotations, with msgspec. Both are made once; reading is what a call pays."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec
from msgspec.structs import astuple

from suture.errors import ConfigError, SutureError
from suture.messages import check_plain
from suture.tools._errors import ToolArgumentsError
from suture.tools._problems import missing, refusal, say, unknown
from suture.tools._reader import Reader
from suture.tools._signature import Parameter

_REFS = "#/$defs/"
_IMMUTABLE = (bool, int, str, bytes, type(None))


def struct_reader(tool: str, parameters: Sequence[Parameter], notes: Mapping[str, str]) -> Reader:
    """Make a reader for these parameters; `notes` describes them where they do not do it themselves.

    >>> from suture.tools._schema import struct_reader
    >>> from suture.tools._signature import NOTHING, Parameter
    >>> reader = struct_reader("search", [Parameter("query", str, NOTHING)], {"query": "What to look for."})
    >>> reader.parameters["properties"]
    {'query': {'description': 'What to look for.', 'type': 'string'}}
    >>> reader.read('{"query": "pairing"}')
    {'query': 'pairing'}
    """
    names = tuple(parameter.name for parameter in parameters)
    # Fields have names of our own, so that no parameter's name can be one that a struct has other uses for.
    fields = [(f"at{place}", *_field(each)) for place, each in enumerate(parameters)]
    rename = {field[0]: name for field, name in zip(fields, names, strict=True)}
    try:
        kind = msgspec.defstruct(tool, fields, rename=rename, kw_only=True, forbid_unknown_fields=True)
        decode = msgspec.json.Decoder(kind).decode
        (top,), definitions = msgspec.json.schema_components([kind], ref_template=_REFS + "{name}")
    except (TypeError, ValueError, RecursionError) as error:
        raise _misfit(tool, parameters, error) from error
    schema = definitions.pop(top["$ref"].removeprefix(_REFS))
    schema = finish_schema({**schema, "$defs": definitions}, parameters, notes)

    def read(text: str) -> dict[str, Any]:
        try:
            return dict(zip(names, astuple(decode(text)), strict=True))
        except Exception as error:
            if not text.strip():
                return read("{}")
            raise _refuse(text, error, parameters, schema) from error

    return Reader(schema if names else None, read)


def _field(parameter: Parameter) -> tuple[Any, ...]:
    if parameter.required:
        return (parameter.hint,)
    default = parameter.default
    if type(default) in _IMMUTABLE:
        return parameter.hint, default
    return parameter.hint, msgspec.field(default_factory=lambda: default)


def _misfit(tool: str, parameters: Sequence[Parameter], error: Exception) -> ConfigError:
    """Make the error for an annotation that has no JSON form, by the parameter it belongs to."""
    for parameter in parameters:
        try:
            msgspec.json.schema(parameter.hint)
            msgspec.json.Decoder(parameter.hint)
        except (TypeError, ValueError, RecursionError) as found:
            shown = getattr(parameter.hint, "__name__", None) or repr(parameter.hint)
            return ConfigError(
                f"tool {tool!r}, parameter {parameter.name!r}: a model cannot write {shown} as JSON "
                f"({str(found).splitlines()[0]}); for what the run passes in, annotate it Injected[{shown}]"
            )
    return ConfigError(f"tool {tool!r}: no schema can be made for its parameters ({error})")


def _refuse(
    text: str, error: Exception, parameters: Sequence[Parameter], schema: Mapping[str, Any]
) -> ToolArgumentsError:
    names = [parameter.name for parameter in parameters]

    def check(given: dict[str, msgspec.Raw]) -> list[str]:
        problems = [unknown(f"arguments.{name}", names) for name in given if name not in names]
        for parameter in parameters:
            path = f"arguments.{parameter.name}"
            if parameter.name in given:
                try:
                    msgspec.json.decode(given[parameter.name], type=parameter.hint)
                except Exception as found:  # noqa: BLE001 - a dataclass may check itself, and raise what it likes
                    below = {**schema["properties"][parameter.name], "$defs": schema.get("$defs", {})}
                    problems.append(say(found, path, below))
            elif parameter.required:
                problems.append(missing(path))
        return problems

    return refusal(text, check, say(error, "arguments", schema))


# --- schemas, from whichever library ------------------------------------------------------------


def finish_schema(
    schema: Mapping[str, Any], parameters: Sequence[Parameter], notes: Mapping[str, str]
) -> dict[str, Any]:
    """Describe the properties, give them their defaults, and put definitions that are used once where they are used.

    >>> from suture.tools._schema import finish_schema
    >>> color = {"enum": ["red", "green"]}
    >>> finish_schema({"properties": {"paint": {"$ref": "#/$defs/Color"}}, "$defs": {"Color": color}}, [], {})
    {'properties': {'paint': {'enum': ['red', 'green']}}}
    """
    finished = {key: value for key, value in schema.items() if key not in ("title", "$defs")}
    finished["$defs"] = dict(schema.get("$defs", {}))
    properties: dict[str, Any] = {}
    for parameter in parameters:
        note = notes.get(parameter.name)
        said = {"description": note} if note else {}
        properties[parameter.name] = {**said, **finished["properties"][parameter.name], **_default(parameter)}
    if parameters:
        finished["properties"] = properties
    for name in list(finished["$defs"]):
        _place(finished, name)
    if not finished["$defs"]:
        del finished["$defs"]
    return finished


def _default(parameter: Parameter) -> dict[str, Any]:
    """Return the default as JSON, if it has such a form."""
    if parameter.required:
        return {}
    try:
        plain = msgspec.to_builtins(parameter.default, str_keys=True)
        check_plain(plain)
    except (TypeError, ValueError, RecursionError, SutureError):
        return {}
    return {"default": plain}


def _place(schema: dict[str, Any], name: str) -> None:
    """Put a definition where it is used, if that is one place and not within itself."""
    ref = _REFS + name
    definition = schema["$defs"][name]
    if _uses(schema, ref) != 1 or _uses(definition, ref):
        return
    del schema["$defs"][name]
    schema.update(_replaced(schema, ref, definition))


def _uses(node: Any, ref: str) -> int:
    return node == ref if isinstance(node, str) else sum(_uses(each, ref) for each in _members(node))


def _members(node: Any) -> Iterable[Any]:
    if isinstance(node, dict):
        return cast("dict[str, Any]", node).values()
    return cast("Sequence[Any]", node) if isinstance(node, list | tuple) else ()


def _replaced(node: Any, ref: str, definition: dict[str, Any]) -> Any:
    if isinstance(node, list | tuple):
        return [_replaced(each, ref, definition) for each in cast("Sequence[Any]", node)]
    if not isinstance(node, dict):
        return node
    mapping = cast("dict[str, Any]", node)
    if mapping.get("$ref") == ref:
        return {**definition, **{key: each for key, each in mapping.items() if key != "$ref"}}
    return {key: _replaced(each, ref, definition) for key, each in mapping.items()}
