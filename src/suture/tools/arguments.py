"""Arguments: the schema that a model sees, the reader of its JSON text, and the errors in its words.

msgspec reads them, or pydantic if an annotation is a pydantic type; pydantic is never imported before the user does.
Schema and reader are made once per tool; a call only reads.
"""

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from inspect import Parameter
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, TypedDict, cast, get_args, get_origin, get_type_hints

import msgspec
from msgspec.structs import asdict, astuple

from suture._text import shorten
from suture.errors import ConfigError, InputError, NotInRunError, SutureError
from suture.messages import ToolArgument, ToolContext, check_plain
from suture.tools.execution import Bind, Call, RunContext, ToolArgumentsError
from suture.tools.signature import NOTHING, Signature

Explain: TypeAlias = Callable[[str, Exception], Sequence[str]]
"""Explains why the text of a JSON object could not be read."""

_REFS = "#/$defs/"
_LONGEST = 300
_MOST = 20
_JSON_NAMES: dict[type, str] = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    NoneType: "null",
}


class Reader(NamedTuple):
    """A schema (`None` for a tool without arguments), and a function that reads arguments into values by name.

    `read` raises `ToolArgumentsError`; `problem` returns the same text, or an empty one if all is well.
    """

    schema: Mapping[str, Any] | None
    read: Callable[[str], dict[str, Any]]

    def problem(self, arguments: str) -> str:
        """Return what is wrong with these arguments, or an empty text."""
        try:
            self.read(arguments)
        except ToolArgumentsError as error:
            return error.reason
        return ""


def make_reader(
    tool: str, signature: Signature, notes: Mapping[str, str], schema: Mapping[str, Any] | None = None
) -> Reader:
    """Make a reader for a function; `notes` describes the parameters that have no description of their own."""
    if signature.raw:
        inner = None if schema is None else _schema_reader(tool, schema, None)

        def read(text: str) -> dict[str, Any]:
            if inner:
                inner.read(text)
            return {signature.raw: ToolArgument(text)}

        return Reader(schema, read)
    if schema is not None:
        return _schema_reader(tool, schema, signature)
    hints = signature.visible if "pydantic" in sys.modules else ()
    needs_pydantic = any(_is_its(each.annotation) or _is_its_value(each.default) for each in hints)
    make = _pydantic_reader if needs_pydantic else _msgspec_reader
    return make(tool, signature.visible, notes)


def bind_function(
    function: Callable[..., Any], signature: Signature, read: Callable[[str], dict[str, Any]], tool: str
) -> Bind:
    """Make the function that binds arguments, contexts and options to `function`."""
    hidden, positional = signature.hidden, signature.positional

    def bind(argument: str | ToolArgument, options: dict[str, Any]) -> Call:
        named = read(argument if isinstance(argument, str) else argument.text)
        for each in hidden:
            named[each.name] = _fill(each, options.get("context"), tool)
        if signature.takes_options:
            # The model's arguments win: an option of the same name is meant for something else.
            named = {**{name: each for name, each in options.items() if name != "context"}, **named}
        if positional:
            return partial(function, *[named.pop(name) for name in positional], **named)
        return partial(function, **named)

    return bind


def _fill(hidden: Parameter, context: RunContext[Any] | None, tool: str) -> Any:
    if context is not None:
        return context if hidden.annotation is RunContext else ToolContext(context.tool, context.call_id)
    if hidden.default is not NOTHING:
        return hidden.default
    raise NotInRunError(
        f"tool {tool!r} needs a {hidden.annotation.__name__} as {hidden.name!r}; "
        "an agent's run passes it in, and by hand it is the endpoint's option context=, a RunContext"
    )


def _reader(
    schema: Mapping[str, Any] | None,
    decode: Callable[[str], Any],
    name: Callable[[Any], dict[str, Any]],
    explain: Explain,
) -> Reader:
    """Make a reader from a function that decodes text, and one that returns the decoded values by name."""

    def read(text: str) -> dict[str, Any]:
        try:
            return name(decode(text))
        except Exception as error:
            if not text.strip():  # some models write an empty text when there are no arguments
                return read("{}")
            raise _refusal(text, error, explain) from error

    return Reader(schema, read)


# --- errors, in the words of the library that reads ---------------------------------------------


def _refusal(text: str, error: Exception, explain: Explain) -> ToolArgumentsError:
    """Return the error for arguments: not JSON, not an object, or what `explain` says."""
    problems: Sequence[str]
    try:
        value: Any = msgspec.json.decode(text)
    except (ValueError, RecursionError) as fault:
        problems = [f"the arguments are not valid JSON: {_words(fault)}"]
    else:
        is_object = type(value) is dict
        name = _JSON_NAMES[type(value)]
        problems = explain(text, error) if is_object else [f"the arguments must be one JSON object, got {name}"]
    more = [f"and {len(problems) - _MOST} more"] if len(problems) > _MOST else []
    return ToolArgumentsError(*(shorten(problem, _LONGEST) for problem in problems[:_MOST]), *more)


def _words(said: object) -> str:
    """Return a library's message about a value, in the form that follows a colon."""
    text = "nested too deeply" if isinstance(said, RecursionError) else str(said)
    text = text.removeprefix("JSON is malformed: ").replace("`", "")
    return text[:1].lower() + text[1:]


def _unknown(name: str, known: Sequence[str]) -> str:
    return f"arguments.{shorten(name, 64)}: unknown; known: {', '.join(known) or 'none, it takes no arguments'}"


def _explain_value(error: Exception, path: str, hint: Any = Any) -> str:
    if not isinstance(error, msgspec.MsgspecError | RecursionError):
        return f"{path}: {type(error).__name__}: {error}"  # a dataclass may check itself, and raise anything
    what, place, below = str(error).rpartition(" - at `$")
    said = f"{path}{below.rstrip('`')}: {_words(what)}" if place else f"{path}: {_words(error)}"
    if "invalid enum value" in said:
        nodes = _nodes(msgspec.json.schema(hint))
        choices = {tuple(each["enum"]) for each in nodes if isinstance(each.get("enum"), list)}
        if len(choices) == 1:
            said += f"; choices: {', '.join(map(repr, choices.pop()))}"
    return said


# --- msgspec ------------------------------------------------------------------------------------


def _msgspec_reader(tool: str, parameters: Sequence[Parameter], notes: Mapping[str, str]) -> Reader:
    names = tuple(parameter.name for parameter in parameters)
    # A name that structs may use themselves is not used as a field.
    rename = {f"at{place}" if name.startswith("_") else name: name for place, name in enumerate(names)}
    fields = [
        (field, each.annotation)
        if each.default is NOTHING  # msgspec would copy a mutable default
        else (field, each.annotation, msgspec.field(default_factory=partial(getattr, each, "default")))
        for field, each in zip(rename, parameters, strict=True)
    ]
    try:
        kind = msgspec.defstruct(tool, fields, rename=rename, kw_only=True, forbid_unknown_fields=True)
        decode = msgspec.json.Decoder(kind).decode
        (top,), definitions = msgspec.json.schema_components([kind], ref_template=_REFS + "{name}")
    except (TypeError, ValueError, RecursionError) as error:
        raise _misfit(tool, parameters, error) from error
    schema = definitions.pop(top["$ref"].removeprefix(_REFS))
    schema = _finish({**schema, "$defs": definitions}, parameters, notes)

    def explain(text: str, error: Exception) -> list[str]:
        values = msgspec.json.decode(text, type=dict[str, msgspec.Raw])
        problems = [_unknown(name, names) for name in values if name not in names]
        for parameter in parameters:
            path = f"arguments.{parameter.name}"
            if parameter.name in values:
                try:
                    msgspec.json.decode(values[parameter.name], type=parameter.annotation)
                except Exception as fault:  # noqa: BLE001 - all of them are told
                    problems.append(_explain_value(fault, path, parameter.annotation))
            elif parameter.default is NOTHING:
                problems.append(f"{path}: missing")
        return problems or [_explain_value(error, "arguments")]

    def by_name(values: Any) -> dict[str, Any]:
        return dict(zip(names, astuple(values), strict=True))

    own = all(field == name for field, name in rename.items())
    return _reader(schema if names else None, decode, asdict if own else by_name, explain)


def _misfit(tool: str, parameters: Sequence[Parameter], error: Exception) -> ConfigError:
    """Return the error for an annotation that has no JSON form, with the parameter that it belongs to."""
    for parameter in parameters:
        try:
            msgspec.json.schema(parameter.annotation)
            msgspec.json.Decoder(parameter.annotation)
        except (TypeError, ValueError, RecursionError) as fault:
            shown = getattr(parameter.annotation, "__name__", None) or repr(parameter.annotation)
            return ConfigError(
                f"tool {tool!r}, parameter {parameter.name!r}: a model cannot write {shown} as JSON "
                f"({str(fault).splitlines()[0]}); pass it with run(..., deps=...) and take a RunContext[{shown}]"
            )
    return ConfigError(f"tool {tool!r}: no schema can be made for its parameters ({error})")


# --- pydantic -----------------------------------------------------------------------------------


def _is_its_value(value: Any) -> bool:
    return type(value).__module__.partition(".")[0] in ("pydantic", "pydantic_core", "annotated_types")


def _is_its(hint: Any, seen: frozenset[Any] = frozenset()) -> bool:
    if get_origin(hint) is Annotated and any(map(_is_its_value, hint.__metadata__)):
        return True
    if not isinstance(hint, type) or get_origin(hint) is not None:
        return any(_is_its(each, seen) for each in get_args(hint))
    if hasattr(hint, "__pydantic_core_schema__") or hasattr(hint, "__get_pydantic_core_schema__"):
        return True
    if hint in seen or not any(hasattr(hint, mark) for mark in ("__dataclass_fields__", "__total__", "_fields")):
        return False
    try:
        below = get_type_hints(hint, include_extras=True)
    except Exception:  # noqa: BLE001 - whoever makes the schema says what is wrong with it
        return False
    return any(_is_its(each, seen | {hint}) for each in below.values())


def _pydantic_reader(tool: str, parameters: Sequence[Parameter], notes: Mapping[str, str]) -> Reader:
    """Make a reader with pydantic. Parameters are read strictly; a model among them keeps its own settings."""
    from pydantic import ConfigDict, Field, ValidationError, create_model  # noqa: PLC0415 - see above
    from pydantic.json_schema import GenerateJsonSchema  # noqa: PLC0415

    class Untitled(GenerateJsonSchema):
        def field_title_should_be_set(self, schema: object) -> bool:
            return False

    names = {f"at{place}": parameter.name for place, parameter in enumerate(parameters)}
    fields: dict[str, Any] = {
        field: (Annotated[each.annotation, Field(alias=each.name)], ... if each.default is NOTHING else each.default)
        for field, each in zip(names, parameters, strict=True)
    }
    try:
        model = create_model(tool, __config__=ConfigDict(extra="forbid", strict=True), **fields)
        schema = _finish(model.model_json_schema(schema_generator=Untitled), parameters, notes)
    except Exception as error:
        why = str(error).splitlines()[0]
        raise ConfigError(f"tool {tool!r}: pydantic makes no schema of its parameters ({why})") from error

    def by_name(values: Any) -> dict[str, Any]:
        return {name: getattr(values, field) for field, name in names.items()}

    def explain(text: str, error: Exception) -> list[str]:  # noqa: ARG001 - the error says it all
        if not isinstance(error, ValidationError):
            return [f"arguments: {type(error).__name__}: {error}"]
        return [f"{_path(each['loc'])}: {_words(each['msg'])}" for each in error.errors(include_url=False)]

    return _reader(schema, model.model_validate_json, by_name, explain)


def _path(steps: Iterable[str | int]) -> str:
    return "arguments" + "".join(f"[{each}]" if isinstance(each, int) else f".{shorten(each, 64)}" for each in steps)


# --- schemas, of either library -----------------------------------------------------------------


def _finish(schema: Mapping[str, Any], parameters: Sequence[Parameter], notes: Mapping[str, str]) -> dict[str, Any]:
    """Add descriptions and defaults to the properties, and inline definitions that are used once."""
    whole = {key: value for key, value in schema.items() if key != "title"}
    whole["$defs"] = dict(schema.get("$defs", {}))
    whole["properties"] = {
        each.name: {
            **({"description": note} if (note := _note(each.annotation) or notes.get(each.name)) else {}),
            **schema["properties"][each.name],
            **_default(each),
        }
        for each in parameters
    }
    for name in list(whole["$defs"]):
        ref, definition = _REFS + name, whole["$defs"][name]
        if _uses(whole, ref) == 1 and not _uses(definition, ref):
            del whole["$defs"][name]
            whole = _inline(whole, ref, definition)
    if not whole["$defs"]:
        del whole["$defs"]
    return whole


def _note(hint: Any) -> str:
    """Return the text next to a type, as in `Annotated[str, "What to look for."]`."""
    return next((each for each in getattr(hint, "__metadata__", ()) if isinstance(each, str)), "")


def _default(parameter: Parameter) -> dict[str, Any]:
    if parameter.default is NOTHING:
        return {}
    try:
        plain = msgspec.to_builtins(parameter.default, str_keys=True)
        check_plain(plain)
    except (TypeError, ValueError, RecursionError, SutureError):
        return {}
    return {"default": plain}


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


# --- a JSON Schema from the user: only its outermost object is checked --------------------------


class _Property(TypedDict, total=False):
    type: str | list[str]


class _Outermost(TypedDict, total=False):
    """The part of a schema that is checked here."""

    type: Literal["object"]
    properties: dict[str, _Property | bool]
    required: list[str]


def check_schema(tool: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of a schema, which must be that of an object."""
    where = f"tool {tool!r}: its schema"
    if not isinstance(schema, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's code
        raise ConfigError(f"{where} must be a mapping, a JSON Schema; got {type(schema).__name__}")
    copy = deepcopy(dict(schema))
    try:
        check_plain(copy)
        msgspec.convert(copy, _Outermost)
    except InputError as error:
        raise ConfigError(f"{where} is not JSON ({error})") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where} is not a JSON Schema of an object ({error})") from error
    return {"type": "object", **copy}


def _schema_reader(tool: str, schema: Mapping[str, Any], signature: Signature | None) -> Reader:
    """Make a reader for a checked schema; it also refuses arguments that the function does not take or lacks."""
    properties: dict[str, Any] = schema.get("properties", {})
    visible = signature.visible if signature else ()
    required = dict.fromkeys((*schema.get("required", ()), *(each.name for each in visible if each.default is NOTHING)))
    defaults = {each.name: each.default for each in visible if each.default is not NOTHING}
    closed = schema.get("additionalProperties") is False and "patternProperties" not in schema
    known = list(properties) if closed else None
    if signature and not signature.takes_options:
        known = [parameter.name for parameter in visible]
        lost = [name for name in properties if name not in known]
        if lost:
            raise ConfigError(f"tool {tool!r} does not take {lost[0]!r}, which its schema asks for; it takes {known}")
    kinds = {name: _kinds(each) for name, each in properties.items()}

    def check(values: dict[str, Any]) -> dict[str, Any]:
        problems = [] if known is None else [_unknown(name, known) for name in values if name not in known]
        problems += [f"arguments.{name}: missing" for name in required if name not in values]
        problems += [
            f"arguments.{name}: expected {' or '.join(allowed)}, got {_JSON_NAMES[type(values[name])]}"
            for name, allowed in kinds.items()
            if name in values and allowed and not any(_fits(values[name], kind) for kind in allowed)
        ]

        if problems:
            raise ToolArgumentsError(*problems)
        return {**defaults, **values}

    decode = msgspec.json.Decoder(dict[str, Any]).decode
    return _reader(schema, decode, check, lambda _, error: getattr(error, "problems", [str(error)]))


def _kinds(schema: Any) -> list[str]:
    kinds: str | list[str] = [] if isinstance(schema, bool) else schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def _fits(value: Any, kind: str) -> bool:
    name = _JSON_NAMES[type(value)]
    if kind == "integer" and name == "number":
        return value.is_integer()
    return name == kind or (name, kind) == ("integer", "number") or kind not in _JSON_NAMES.values()
