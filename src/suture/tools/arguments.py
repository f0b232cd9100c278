"""Arguments: the schema that a model sees, the reader of its JSON text, and the errors in its words.

Schema and reader are made once per tool; a call only reads.
"""

from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from functools import partial
from inspect import Parameter
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict, get_origin

import msgspec
from msgspec.structs import asdict, astuple

from suture._text import shorten
from suture.errors import ConfigError, InputError, NotInRunError
from suture.messages import ToolArgument, ToolContext, check_plain
from suture.messages.values import JSON_TYPES
from suture.tools._annotations import shown_default
from suture.tools._constraints import is_of_pydantic
from suture.tools._forms import UnreadableError
from suture.tools._scalars import read_leniently
from suture.tools._schemas import Definitions
from suture.tools.execution import Bind, Call, RunContext, ToolArgumentsError
from suture.tools.signature import NOTHING, Signature
from suture.tools.values import (
    READABLE,
    FormReader,
    NotJSONError,
    ValueProblemsError,
    decode_json,
    make_form_reader,
    shorten_problems,
)

_LENIENT = {"integer": int, "number": float, "boolean": bool}


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
    tool: str,
    signature: Signature,
    notes: Mapping[str, str],
    schema: Mapping[str, Any] | None = None,
    *,
    strict: bool = False,
) -> Reader:
    """Make a reader for a function; `notes` describes the parameters that have no description of their own."""
    if signature.raw:
        inner = None if schema is None else _schema_reader(tool, schema, None, strict=True)  # it reads the text itself

        def read(text: str) -> dict[str, Any]:
            if inner:
                inner.read(text)
            return {signature.raw: ToolArgument(text)}

        return Reader(schema, read)
    if schema is not None:
        return _schema_reader(tool, schema, signature, strict=strict)
    slots = [_make_slot(tool, parameter, strict=strict) for parameter in signature.visible]
    return Reader(_make_schema(slots, notes) if slots else None, _slots_reader(tool, slots))


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


# --- a function's parameters --------------------------------------------------------------------


class _Slot(NamedTuple):
    """A parameter that the model fills in; without a default it must."""

    name: str
    reader: FormReader
    default: Callable[[], Any] | None
    shown: Mapping[str, Any]
    """The default as the schema has it."""


def _make_slot(tool: str, parameter: Parameter, *, strict: bool) -> _Slot:
    annotation, default = parameter.annotation, parameter.default
    make_default: Callable[[], Any] | None = partial(getattr, parameter, "default")
    shown = {} if default is NOTHING else shown_default(default)
    if default is NOTHING:
        make_default = None
    elif default is None:
        annotation = _or_none(annotation)
    elif is_of_pydantic(default) and type(default).__name__ == "FieldInfo":
        annotation = Annotated[annotation, default]
        make_default = None if default.is_required() else partial(default.get_default, call_default_factory=True)
        shown = {} if default.is_required() or default.default_factory else shown_default(default.default)
    try:
        reader = make_form_reader(annotation, f"arguments.{parameter.name}", strict=strict)
    except UnreadableError as error:
        raise ConfigError(
            f"tool {tool!r}, parameter {parameter.name!r}: {error}; annotate it with {READABLE}; "
            f"what only your program has is passed with run(..., deps=...): take a RunContext[{error.name}]"
        ) from error
    return _Slot(parameter.name, reader, make_default, shown)


def _or_none(annotation: Any) -> Any:
    """Return an annotation that takes null, which a model writes if the schema shows it as the default."""
    if annotation is Any:
        return Any
    if get_origin(annotation) is Annotated:
        return Annotated[(_or_none(annotation.__origin__), *annotation.__metadata__)]
    return Optional[annotation]  # noqa: UP045 - not all that may stand here knows "|"


def _make_schema(slots: Sequence[_Slot], notes: Mapping[str, str]) -> dict[str, Any]:
    definitions = Definitions()
    properties: dict[str, Any] = {}
    for slot in slots:
        note = {"description": notes[slot.name]} if notes.get(slot.name) else {}
        properties[slot.name] = {**note, **slot.reader.form.schema(definitions), **slot.shown}
    required = [slot.name for slot in slots if slot.default is None]
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    return definitions.complete(schema)


def _slots_reader(tool: str, slots: Sequence[_Slot]) -> Callable[[str], dict[str, Any]]:
    """Make the function that reads arguments: exactly and all at once, else one by one."""
    decode, by_name = _exact_reader(tool, slots)
    known = [slot.name for slot in slots]

    def read(text: str) -> dict[str, Any]:
        try:
            return by_name(decode(text))
        except Exception:  # noqa: BLE001, S110 - they are told one by one
            pass
        written = _decode_object(text, _decode_raw)
        problems = [_unknown(name, known) for name in written if name not in known]
        values: dict[str, Any] = {}
        for name, reader, default, _ in slots:
            if name in written:
                try:
                    values[name] = reader.read(bytes(written[name]))
                except NotJSONError:
                    _decode_object(text, _decode_plain)
                    raise
                except ValueProblemsError as error:
                    problems += error.problems
            elif default is None:
                problems.append(f"arguments.{name}: missing")
            else:
                values[name] = default()
        if problems:
            raise ToolArgumentsError(*shorten_problems(problems))
        return values

    return read


def _exact_reader(tool: str, slots: Sequence[_Slot]) -> tuple[Callable[[str], Any], Callable[[Any], dict[str, Any]]]:
    """Make one decoder for all arguments, and the function that gives them by name and reads what only forms read."""
    names = tuple(slot.name for slot in slots)
    # A name that structs may use themselves is no field. Then none is, or one might be that of the next parameter.
    is_reserved = any(name.startswith("_") for name in names)
    rename = {f"at{place}" if is_reserved else name: name for place, name in enumerate(names)}
    kinds = [msgspec.Raw if slot.reader.native is None else slot.reader.native for slot in slots]
    fields = [
        (field, kind)
        if slot.default is None  # msgspec would copy a mutable default
        else (field, kind, msgspec.field(default_factory=slot.default))
        for field, kind, slot in zip(rename, kinds, slots, strict=True)
    ]
    kind = msgspec.defstruct(tool, fields, rename=rename, kw_only=True, forbid_unknown_fields=True)
    decode = msgspec.json.Decoder(kind).decode
    by_forms = [(slot.name, slot.reader.read) for slot in slots if slot.reader.native is None]
    if not by_forms and not is_reserved:
        return decode, asdict

    def by_name(decoded: Any) -> dict[str, Any]:
        values = dict(zip(names, astuple(decoded), strict=True))
        for name, read_value in by_forms:
            if type(values[name]) is msgspec.Raw:  # else it is the default
                values[name] = read_value(bytes(values[name]))
        return values

    return decode, by_name


_decode_raw = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_decode_plain = msgspec.json.Decoder(dict[str, Any]).decode


def _decode_object(text: str, decode: Callable[[str], dict[str, Any]]) -> dict[str, Any]:
    """Return the members of the JSON object that arguments must be."""
    try:
        return decode(text)
    except (ValueError, RecursionError) as error:
        if text.strip() in ("", "null"):  # what some models write when there are no arguments
            return {}
        try:
            value = decode_json(text, "the arguments")
        except NotJSONError as fault:
            problem = str(fault).replace("the arguments is", "the arguments are", 1)
            raise ToolArgumentsError(*shorten_problems([problem])) from error
        name = JSON_TYPES[type(value)]
        raise ToolArgumentsError(f"the arguments must be one JSON object, got {name}") from error


def _unknown(name: str, known: Sequence[str]) -> str:
    return f"arguments.{shorten(name, 64)}: unknown; known: {', '.join(known) or 'none, it takes no arguments'}"


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
        way = "; of a pydantic model it is Model.model_json_schema()" if hasattr(schema, "model_json_schema") else ""
        raise ConfigError(f"{where} must be a mapping, a JSON Schema; got {type(schema).__name__}{way}")
    copy = deepcopy(dict(schema))
    try:
        check_plain(copy)
        msgspec.convert(copy, _Outermost)
    except InputError as error:
        raise ConfigError(f"{where} is not JSON ({error})") from error
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where} is not a JSON Schema of an object ({error})") from error
    return {"type": "object", **copy}


def _schema_reader(tool: str, schema: Mapping[str, Any], signature: Signature | None, *, strict: bool) -> Reader:
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

    def read(text: str) -> dict[str, Any]:
        values = _decode_object(text, _decode_plain)
        if not strict:
            values = {name: _leniently(each, kinds.get(name, ())) for name, each in values.items()}
        problems = [] if known is None else [_unknown(name, known) for name in values if name not in known]
        problems += [f"arguments.{name}: missing" for name in required if name not in values]
        problems += [
            f"arguments.{name}: expected {' or '.join(allowed)}, got {JSON_TYPES[type(values[name])]}"
            for name, allowed in kinds.items()
            if name in values and allowed and not any(_fits(values[name], kind) for kind in allowed)
        ]
        if problems:
            raise ToolArgumentsError(*shorten_problems(problems))
        return {**defaults, **values}

    return Reader(schema, read)


def _leniently(value: Any, allowed: Sequence[str]) -> Any:
    """Return a value of one of the allowed JSON types, if another one is written for it."""
    if not allowed or any(_fits(value, kind) for kind in allowed):
        return value
    for kind in filter(_LENIENT.get, allowed):
        try:
            return read_leniently(_LENIENT[kind], value)
        except ValueError:
            continue
    return value


def _kinds(schema: Any) -> list[str]:
    kinds: str | list[str] = [] if isinstance(schema, bool) else schema.get("type", [])
    return [kinds] if isinstance(kinds, str) else kinds


def _fits(value: Any, kind: str) -> bool:
    name = JSON_TYPES[type(value)]
    if kind == "integer" and name == "number":
        return value.is_integer()
    return name == kind or (name, kind) == ("integer", "number") or kind not in JSON_TYPES.values()
