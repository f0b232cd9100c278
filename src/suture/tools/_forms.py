"""Forms: how a JSON value becomes a value of one type, and the schema of such JSON.

A form is made from an annotation once; a reading only walks it. It finds all problems, each with its place.
"""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast, get_args, get_origin

import msgspec

from suture._text import shorten
from suture.messages.values import JSON_TYPES
from suture.tools._scalars import FORMS, LABELS, read_leniently, read_text
from suture.tools._schemas import Definitions

_JSON_LABELS = {**JSON_TYPES, **{kind: LABELS[kind] for kind in (str, bool, int, float)}}
"""The names of JSON's types in problems."""
_SCALAR_TYPES = {LABELS[kind]: JSON_TYPES[kind] for kind in (str, bool, int, float)}
"""The JSON types of scalars by their names in problems."""


class UnreadableError(TypeError):
    """No JSON becomes a value of this annotation."""

    def __init__(self, hint: Any, why: str = "") -> None:
        name = hint.__name__ if isinstance(hint, type) and get_origin(hint) is None else _written(hint)
        super().__init__(name, " ".join(why.split()))

    @property
    def name(self) -> str:
        """The annotation, as it is written."""
        return self.args[0]

    def __str__(self) -> str:
        name, why = self.args
        return f"a model cannot write {name} as JSON" + (f" ({why})" if why else "")


def _written(hint: Any) -> str:
    return repr(hint).replace("typing.", "")


class Reading:
    """One reading of a JSON value: how lenient it is, what is wrong, and how many fields of objects it has used."""

    __slots__ = ("fields", "lax", "problems", "trials")

    def __init__(self, *, lax: bool) -> None:
        self.lax = lax
        self.problems: list[str] = []
        self.fields = 0
        self.trials: dict[tuple[int, int, str, bool], tuple[Any, Reading]] = {}
        """What has been tried for a union at some place, so that unions inside unions are not tried again."""

    def refuse(self, place: str, problem: str) -> None:
        self.problems.append(f"{place}: {problem}")

    def expect(self, place: str, label: str, value: Any) -> None:
        """Refuse a value of the wrong type."""
        self.refuse(place, _expected(label, value))

    def try_form(self, form: "Form", value: Any, place: str, *, lax: bool) -> "tuple[Any, Reading]":
        """Return what a form makes of a value, and the reading of it."""
        key = (id(form), id(value), place, lax)  # neither is enough: 1 may stand in two places, and a key hold a dot
        if key not in self.trials:
            trial = Reading(lax=lax)
            trial.trials = self.trials
            self.trials[key] = (form.read(value, place, trial), trial)
        return self.trials[key]


def _expected(label: str, value: Any) -> str:
    return f"expected {label}, got {_JSON_LABELS[type(value)]}"


def message_of(error: object) -> str:
    """Return a library's message about a value, in the form that follows a colon."""
    text = "nested too deeply" if isinstance(error, RecursionError) else str(error)
    text = text.removeprefix("JSON is malformed: ").replace("`", "")
    return text[:1].lower() + text[1:]


class Form(Protocol):
    """How values of one type are read from decoded JSON, and described to a model."""

    @property
    def label(self) -> str:
        """The name of the type in problems."""
        ...

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        """Return the value; if it does not fit, tell `reading` why."""
        ...

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        """Return the JSON Schema; named types go into `definitions`."""
        ...


class Anything:
    """Any JSON value, as it is."""

    label = "any"

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        return value

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return {}


class Scalar:
    """A value that msgspec reads from one JSON scalar: exactly, then in its other written forms."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.label = LABELS[kind]

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        try:
            return msgspec.convert(value, self.kind)
        except msgspec.ValidationError as error:
            fault = message_of(error)
        try:
            if self.kind in FORMS and isinstance(value, str):
                return read_text(self.kind, value)
        except ValueError:
            noun, example = FORMS[self.kind]
            fault = f"expected {noun}, such as {example}, got {shorten(value, 40)!r}"
        if reading.lax:
            try:
                return read_leniently(self.kind, value)
            except ValueError:
                pass
        return reading.refuse(place, fault)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        schema = msgspec.json.schema(self.kind)
        if self.kind in FORMS:
            schema["format"] = {"datetime": "date-time"}.get(self.label, self.label)
        return schema


class FromText:
    """A value that its type makes from a text, such as a path or an address."""

    label = "str"

    def __init__(self, make: Callable[[Any], Any], format: str = "", *, numeric: bool = False) -> None:  # noqa: A002 - the schema's word
        self.make, self.format, self.numeric = make, format, numeric

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        number = self.numeric and reading.lax and type(value) in (int, float)
        if not (number or isinstance(value, str)):
            return reading.expect(place, self.label, value)
        try:
            return self.make(value if type(value) is int else str(value))
        except Exception as error:  # noqa: BLE001 - each type has its own
            return reading.refuse(place, message_of(error))

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return {"type": "string", **({"format": self.format} if self.format else {})}


class Choices:
    """One of several values: of a `Literal`, or the members of an enum, by what is written for them."""

    def __init__(self, members: Sequence[tuple[Any, Any]], kind: Any = None) -> None:
        self.members = members
        self.kind = kind
        labels = dict.fromkeys(_JSON_LABELS[type(written)] for written, _ in members)
        self.label = " | ".join(labels)

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        for written, member in self.members:
            if type(written) is type(value) and written == value:
                return member
        labels = self.label.split(" | ")
        if self.kind is not None and _JSON_LABELS[type(value)] in labels:
            try:
                return self.kind(value)  # an enum may know more values than it lists
            except Exception:  # noqa: BLE001, S110 - it does not
                pass
        if reading.lax:
            for written, member in self.members:
                try:
                    if read_leniently(type(written), value) == written:
                        return member
                except ValueError:
                    continue
        if _JSON_LABELS[type(value)] not in labels:
            return reading.expect(place, self.label, value)
        choices = ", ".join(map(repr, self._written()))
        return reading.refuse(place, f"invalid enum value {_shown(value)}; choices: {choices}")

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        written = self._written()
        kind = _SCALAR_TYPES.get(self.label)
        enum: dict[str, Any] = {**({"type": kind} if kind else {}), "enum": written}  # some providers ask for the type
        if self.kind is None:
            return enum
        title = self.kind.__name__
        return definitions.refer(self.kind, title, lambda: {"title": title, **_described(self.kind), **enum})

    def _written(self) -> list[Any]:
        written = [each for each, _ in self.members]
        try:
            return sorted(written)
        except TypeError:
            return written


def _described(kind: Any) -> dict[str, Any]:
    """Return the docstring that a class has of its own, for its schema."""
    origin: Any = get_origin(kind) or kind
    own: Any = origin.__dict__
    text = inspect.cleandoc(own.get("__doc__") or "")
    made_up = text.startswith(f"{origin.__name__}(") and text.endswith(")")  # by dataclasses and named tuples
    return {"description": text} if text and not made_up else {}


def _shown(value: Any) -> str:
    return repr(shorten(value, 64) if isinstance(value, str) else value)


class Alias:
    """A type alias, which may be used within itself."""

    def __init__(self, kind: Any, title: str) -> None:
        self.kind, self.title = kind, title
        self.inner: Form = Anything()
        self.label = title

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        return self.inner.read(value, place, reading)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        return definitions.refer(self.kind, self.title, lambda: self.inner.schema(definitions))


class Array:
    """An array of items of one type, read into a list or another collection."""

    label = "array"

    def __init__(self, make: Callable[[list[Any]], Any], item: Form, *, unique: bool = False) -> None:
        self.make, self.item, self.unique = make, item, unique

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        if type(value) is not list:
            return reading.expect(place, self.label, value)
        items = [
            self.item.read(each, f"{place}[{number}]", reading) for number, each in enumerate(cast("list[Any]", value))
        ]
        if reading.problems:
            return None
        try:
            return self.make(items)
        except TypeError as error:  # an item of a set that cannot be hashed
            return reading.refuse(place, message_of(error))

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        # OpenAI refuses an array without `items`: 400, "array schema missing items" (aichat#1049, mcphost#35)
        items = {"items": self.item.schema(definitions)}
        return {"type": "array", **items, **({"uniqueItems": True} if self.unique else {})}


class Row:
    """An array with a type for each place: a tuple."""

    label = "array"

    def __init__(self, items: Sequence[Form]) -> None:
        self.items = items

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        if type(value) is not list:
            return reading.expect(place, self.label, value)
        row = cast("list[Any]", value)
        if len(row) != len(self.items):
            return reading.refuse(place, f"expected array of length {len(self.items)}, got {len(row)}")
        return tuple(
            form.read(each, f"{place}[{number}]", reading)
            for number, (form, each) in enumerate(zip(self.items, row, strict=True))
        )

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        count = len(self.items)
        items = [form.schema(definitions) for form in self.items]
        schema: dict[str, Any] = {"type": "array", "minItems": count, "maxItems": count, "items": False}
        return {**schema, "prefixItems": items} if items else schema


class Table:
    """An object with any keys: a dict, or another mapping."""

    label = "object"

    def __init__(self, make: Callable[[dict[Any, Any]], Any], key: Form, value: Form) -> None:
        self.make, self.key, self.value = make, key, value

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        if type(value) is not dict:
            return reading.expect(place, self.label, value)
        strictly, reading.lax = not reading.lax, True  # JSON has no keys but texts
        mapping = cast("dict[str, Any]", value)
        keys = [self.key.read(key, f"{place}.{shorten(key, 64)}", reading) for key in mapping]
        reading.lax = not strictly
        values = [self.value.read(each, f"{place}.{shorten(key, 64)}", reading) for key, each in mapping.items()]
        if reading.problems:
            return None
        found = dict(zip(keys, values, strict=True))
        if len(found) < len(keys):
            return reading.refuse(place, "two of its keys are the same value")
        return self.make(found)

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        values = self.value.schema(definitions)
        return {"type": "object", **({"additionalProperties": values} if values else {})}


class Entry(NamedTuple):
    """A field of a record: its name for the class and in JSON, its form, and the default that the schema shows."""

    name: str
    written: str
    form: Form
    required: bool
    default: Mapping[str, Any] = {}


class Record:
    """An object with named fields: a dataclass, a `TypedDict`, a `Struct`, a `NamedTuple`, an attrs class."""

    def __init__(self, kind: Any, make: Callable[..., Any]) -> None:
        self.kind, self.make = kind, make
        self.entries: Sequence[Entry] = ()
        self.tag: tuple[str, Any] | None = None
        self.closed = False
        self.row = False
        """Whether it is written as an array."""

    @property
    def label(self) -> str:
        return "array" if self.row else "object"

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        named = self._name(value, place)
        if named is None:
            return reading.expect(place, self.label, value)
        tag_field, tag = self.tag or ("", None)
        if tag_field in named:
            written, below = named.pop(tag_field)
            if written != tag:
                return reading.refuse(below, f"invalid value {_shown(written)}; choices: {tag!r}")
            reading.fields += 1
        values: dict[str, Any] = {}
        for name, written, form, required, _ in self.entries:
            if written in named:
                reading.fields += 1
                values[name] = form.read(*named.pop(written), reading)
            elif required:
                reading.refuse(place, f"object missing required field {written}")
        if self.closed:
            for unknown in named:
                reading.refuse(place, f"object contains unknown field {shorten(unknown, 64)}")
        if reading.problems:
            return None
        try:
            return self.make(**values)
        except (ValueError, TypeError) as error:
            return reading.refuse(place, message_of(error))
        except Exception as error:  # noqa: BLE001 - a class may check itself, and raise anything
            return reading.refuse(place, f"{type(error).__name__}: {error}")

    def _name(self, value: Any, place: str) -> dict[str, tuple[Any, str]] | None:
        """Return what is written for each field, and where."""
        if type(value) is dict:
            return {key: (each, f"{place}.{key}") for key, each in cast("dict[str, Any]", value).items()}
        if type(value) is not list or not self.row:
            return None
        items = cast("list[Any]", value)
        names = [*([self.tag[0]] if self.tag else ()), *(entry.written for entry in self.entries)]
        names += [f"[{number}]" for number in range(len(names), len(items))]
        return {
            name: (each, f"{place}[{number}]") for number, (name, each) in enumerate(zip(names, items, strict=False))
        }

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        title = _title(self.kind)
        return definitions.refer(self.kind, title, lambda: self._definition(title, definitions))

    def _definition(self, title: str, definitions: Definitions) -> dict[str, Any]:
        schema: dict[str, Any] = {"title": title, **_described(self.kind)}
        fields: dict[str, Any] = {self.tag[0]: {"enum": [self.tag[1]]}} if self.tag else {}
        required = list(fields)
        for entry in self.entries:
            fields[entry.written] = {**entry.form.schema(definitions), **entry.default}
            if entry.required:
                required.append(entry.written)
        if self.row:
            sizes = {"minItems": len(required), **({"maxItems": len(fields), "items": False} if self.closed else {})}
            return {**schema, "type": "array", "items": {}, "prefixItems": list(fields.values()), **sizes}
        closed = {"additionalProperties": False} if self.closed else {}
        return {**schema, "type": "object", "properties": fields, "required": required, **closed}


def _title(kind: Any) -> str:
    arguments = ", ".join(_title(each) for each in get_args(kind))
    name: str = getattr(get_origin(kind) or kind, "__name__", "") or repr(kind)
    return f"{name}[{arguments}]" if arguments else name


class Union:
    """One of several types: the first that a value fits exactly, else the first that it fits leniently.

    Among objects, the type that knows most of the fields is meant.
    """

    def __init__(self, members: Sequence[Form]) -> None:
        self.members = members

    @property
    def label(self) -> str:
        return " | ".join(dict.fromkeys(member.label for member in self.members))

    def read(self, value: Any, place: str, reading: Reading) -> Any:
        trials = [reading.try_form(member, value, place, lax=False) for member in self.members]
        fits = [trial for trial in trials if not trial[1].problems]
        # An object may fit a type exactly only because that ignores all its fields.
        if reading.lax and (not fits or (len(fits) < len(trials) and type(value) in (dict, list))):
            trials = [reading.try_form(member, value, place, lax=True) for member in self.members]
            fits += [trial for trial in trials if not trial[1].problems]
        if fits:
            found, best = max(fits, key=lambda trial: trial[1].fields)
            reading.fields += best.fields
            return found
        # The member that is probably meant says what is wrong; a value of no member's JSON type is told as that.
        meant = [
            trial
            for member, (_, trial) in zip(self.members, trials, strict=True)
            if trial.problems != [f"{place}: {_expected(member.label, value)}"]
        ]
        if not meant:
            return reading.expect(place, self.label, value)
        best = max(meant, key=lambda trial: (trial.fields, -len(trial.problems)))
        reading.fields += best.fields
        reading.problems += best.problems
        return None

    def schema(self, definitions: Definitions) -> dict[str, Any]:
        tagged = [each for each in self.members if isinstance(each, Record) and each.tag]
        if len(tagged) < 2:
            return {"anyOf": [each.schema(definitions) for each in self.members]}
        schemas = [each.schema(definitions) for each in self.members if each not in tagged]
        refs = {cast("tuple[str, Any]", each.tag)[1]: each.schema(definitions) for each in tagged}
        mapping = {tag: ref["$ref"] for tag, ref in refs.items()}
        field = cast("tuple[str, Any]", tagged[0].tag)[0]
        either = {"anyOf": list(refs.values()), "discriminator": {"propertyName": field, "mapping": mapping}}
        return {"anyOf": [either, *schemas]} if schemas else either
