"""From an annotation to the form that reads its values; what has none is named."""

import collections
import dataclasses
import enum
import inspect
import os
import re
from collections import abc
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Literal,
    NewType,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec
from msgspec.structs import fields as struct_fields

from suture.messages import check_plain
from suture.tools import _forms as forms
from suture.tools._constraints import Checked, annotate, is_of_pydantic, read_metadata
from suture.tools._forms import Entry, Form, UnreadableError
from suture.tools._scalars import LABELS

__all__ = ["Builder", "shown_default"]

_ARRAYS: dict[Any, Callable[[list[Any]], Any]] = {
    list: list,
    set: set,
    frozenset: frozenset,
    collections.deque: collections.deque,
    abc.Collection: list,
    abc.Container: list,
    abc.Iterable: list,
    abc.Iterator: iter,
    abc.Reversible: list,
    abc.MutableSequence: list,
    abc.Sequence: list,
    abc.MutableSet: set,
    abc.Set: set,
}
_TABLES: dict[Any, Callable[[dict[Any, Any]], Any]] = {
    dict: dict,
    abc.Mapping: dict,
    abc.MutableMapping: dict,
    collections.OrderedDict: collections.OrderedDict,
    collections.Counter: collections.Counter,
}
_BEYOND_MSGSPEC = frozenset(
    (
        collections.deque,
        abc.Container,
        abc.Iterable,
        abc.Iterator,
        abc.Reversible,
        collections.OrderedDict,
        collections.Counter,
    )
)
_TEXTS: dict[str, str] = {
    "ipaddress.IPv4Address": "ipv4",
    "ipaddress.IPv6Address": "ipv6",
    "ipaddress.IPv4Network": "",
    "ipaddress.IPv6Network": "",
    "ipaddress.IPv4Interface": "",
    "ipaddress.IPv6Interface": "",
    "fractions.Fraction": "",
    "builtins.complex": "",
    "zoneinfo.ZoneInfo": "",
}
"""Types that make their values from a text, by name, and the format of that text."""

_NUMERIC = ("ipaddress.IPv4Address", "ipaddress.IPv6Address", "fractions.Fraction", "builtins.complex")
_NO_VALUES: tuple[Any, ...] = (type, get_origin(Callable[[], Any]))
_QUALIFIERS = ("Required", "NotRequired", "ReadOnly", "Final")


class Builder:
    """Makes forms from annotations.

    `native` is false once there is something that msgspec does not read, or not in the same way; `owns` is true once
    there is something that only msgspec and this module know.
    """

    def __init__(self) -> None:
        self.native = True
        self.owns = False
        self._named: dict[Any, Form] = {}

    def build(self, hint: Any) -> Form:
        """Return the form of an annotation; raise `UnreadableError` if it has none."""
        hint = NoneType if hint is None else hint
        if hint is Any or hint is object:
            return forms.Anything()
        origin: Any = get_origin(hint)
        if origin is Annotated:
            return self._annotated(hint)
        if origin in (Union, UnionType):
            return forms.Union([self.build(each) for each in get_args(hint)])
        if origin is Literal:
            return forms.Choices([(_json(each, hint), each) for each in get_args(hint)])
        if hasattr(origin or hint, "__value__"):  # a type alias
            return self._alias(hint, origin or hint)
        if isinstance(hint, TypeVar):
            return self._variable(hint)
        if isinstance(hint, NewType):
            return self.build(hint.__supertype__)
        kind: Any = origin or hint
        if not isinstance(kind, type) or kind in _NO_VALUES:
            raise UnreadableError(hint)
        return self._scalar(kind) or self._container(kind, get_args(hint)) or self._class(hint, kind)

    def _variable(self, hint: TypeVar) -> Form:
        choices = hint.__constraints__ or ((hint.__bound__,) if hint.__bound__ is not None else ())
        return self.build(Union[choices]) if choices else forms.Anything()  # noqa: UP007 - from a tuple

    def _alias(self, hint: Any, alias: Any) -> Form:
        if hint not in self._named:
            self.native = False  # a form of its own, so that an alias may be used within itself
            self._named[hint] = named = forms.Alias(hint, alias.__name__)
            arguments = dict(zip(alias.__type_params__, get_args(hint), strict=False))
            named.inner = self.build(_substitute(alias.__value__, arguments))
        return self._named[hint]

    def _scalar(self, kind: Any) -> Form | None:
        if kind in LABELS:
            return forms.Scalar(kind)
        if issubclass(kind, enum.Enum):
            return forms.Choices([(_json(each.value, kind), each) for each in kind], kind)
        module = kind.__module__.partition(".")[0]
        name = f"{module}.{kind.__qualname__}"
        make: Any = kind
        if name == "os.PathLike":
            from pathlib import Path  # noqa: PLC0415 - only who uses it pays for it

            make = Path
        elif name == "re.Pattern":
            make = re.compile
        elif name not in _TEXTS and not any(each.__name__ == "PurePath" for each in kind.__mro__):
            return None
        self.native = False
        return forms.FromText(make, _TEXTS.get(name, ""), numeric=name in _NUMERIC)

    def _container(self, kind: Any, arguments: tuple[Any, ...]) -> Form | None:
        self.native = self.native and kind not in _BEYOND_MSGSPEC
        if kind is tuple and arguments[-1:] != (...,) and arguments:
            return forms.Row([self.build(each) for each in arguments])
        if kind is tuple or kind in _ARRAYS:
            item = self.build(arguments[0] if arguments else Any)
            make = _ARRAYS.get(kind, tuple)
            return forms.Array(make, item, unique=make in (set, frozenset))
        if kind is collections.defaultdict:
            self.native = False
            factory = get_origin(arguments[-1]) or arguments[-1] if arguments else None
            known = factory if factory in (list, dict, set, int, float, str, bool) else None
            make_default: Any = partial(collections.defaultdict[Any, Any], known)
            return forms.Table(make_default, *self._pair(arguments))
        if kind in _TABLES:
            both = (*arguments, int) if kind is collections.Counter else arguments
            return forms.Table(_TABLES[kind], *self._pair(both))
        return None

    def _pair(self, arguments: tuple[Any, ...]) -> tuple[Form, Form]:
        key, value = arguments if len(arguments) == 2 else (Any, Any)
        return self.build(key), self.build(value)

    # --- classes with fields --------------------------------------------------------------------

    def _class(self, hint: Any, kind: Any) -> Form:
        if hint in self._named:
            return self._named[hint]
        defaults = getattr(kind, "__dataclass_fields__", {}).values()
        if _is_model(kind) or any(is_of_pydantic(each.default) for each in defaults):
            return self._pydantic(hint)
        try:
            return self._record(hint, kind)
        except (NameError, AttributeError) as error:
            raise UnreadableError(hint, f"its annotations cannot be resolved: {error}") from error

    def _record(self, hint: Any, kind: Any) -> Form:
        record = self._named[hint] = forms.Record(hint, kind)
        if issubclass(kind, msgspec.Struct):
            self.owns = True
            config = kind.__struct_config__
            record.row, record.closed = config.array_like, config.forbid_unknown_fields
            record.tag = None if config.tag is None else (cast("str", config.tag_field), config.tag)
            fields = self._struct_entries(hint)
        elif _is_typed_dict(kind):
            record.make = dict
            fields = self._typed_dict_entries(kind, _class_hints(hint, kind))
        elif hasattr(kind, "__dataclass_fields__"):
            fields = self._dataclass_entries(kind, _class_hints(hint, kind))
        elif hasattr(kind, "_fields") and hasattr(kind, "_field_defaults"):
            record.row = record.closed = True
            fields = self._named_tuple_entries(kind, _class_hints(hint, kind))
        elif hasattr(kind, "__attrs_attrs__"):
            fields = self._attrs_entries(kind, _class_hints(hint, kind))
        else:
            del self._named[hint]
            return self._pydantic(hint)
        record.entries = tuple(fields)
        return record

    def _struct_entries(self, hint: Any) -> Iterator[Entry]:
        for each in struct_fields(hint):
            default: Any = each.default
            if each.default_factory in (list, dict, set, bytearray):
                default = cast("Any", each.default_factory)()
            shown = {} if default is msgspec.NODEFAULT else shown_default(default)
            yield Entry(each.name, each.encode_name, self.build(each.type), each.required, shown)

    def _typed_dict_entries(self, kind: Any, hints: Mapping[str, Any]) -> Iterator[Entry]:
        for name, hint in hints.items():
            required = name in kind.__required_keys__
            while (qualifier := _qualifier(hint)) in _QUALIFIERS:
                required = {"Required": True, "NotRequired": False}.get(qualifier, required)
                (hint,) = get_args(hint)  # noqa: PLW2901 - without its wrapper
            yield Entry(name, name, self.build(hint), required)

    def _dataclass_entries(self, kind: Any, hints: Mapping[str, Any]) -> Iterator[Entry]:
        for each in kind.__dataclass_fields__.values():
            hint: Any = hints.get(each.name, each.type)
            if hint is ClassVar or get_origin(hint) is ClassVar:
                continue
            if isinstance(hint, dataclasses.InitVar):
                hint = cast("Any", hint).type
                self.native = False
            if not each.init:
                self.native = False
                continue
            missing = each.default is dataclasses.MISSING
            required = missing and each.default_factory is dataclasses.MISSING
            shown = {} if missing else shown_default(each.default)
            yield Entry(each.name, each.name, self.build(hint), required, shown)

    def _named_tuple_entries(self, kind: Any, hints: Mapping[str, Any]) -> Iterator[Entry]:
        for name in kind._fields:
            shown = shown_default(kind._field_defaults[name]) if name in kind._field_defaults else {}
            yield Entry(name, name, self.build(hints.get(name, Any)), name not in kind._field_defaults, shown)

    def _attrs_entries(self, kind: Any, hints: Mapping[str, Any]) -> Iterator[Entry]:
        self.native = False
        for each in kind.__attrs_attrs__:
            if each.init:
                required = type(each.default).__name__ == "_Nothing"
                yield Entry(each.alias, each.name, self.build(hints.get(each.name, Any)), required)

    # --- annotations that say more --------------------------------------------------------------

    def _annotated(self, hint: Any) -> Form:
        base: Any = hint.__origin__
        constraints: list[tuple[str, Any]] = []
        notes: dict[str, Any] = {}
        others: list[Any] = []
        for meta in hint.__metadata__:
            known = read_metadata(meta)
            if known is None:
                others.append(meta)
            else:
                constraints += known[0].items()
                notes = {**known[1], **notes}
                own = isinstance(meta, msgspec.Meta)
                self.owns = self.owns or own
                self.native = self.native and (own or not known[0])
        self.native = self.native and len(dict(constraints)) == len(constraints)  # msgspec keeps one of each name
        inner = self._with_others(base, others) if others else self.build(base)
        return Checked(inner, constraints, notes) if constraints or notes else inner

    def _with_others(self, base: Any, others: list[Any]) -> Form:
        """Return the form of a base with metadata that only pydantic knows."""
        inside = Builder()
        try:
            inner = inside.build(base)
        except UnreadableError:
            inner = None
        if inner is None or not inside.owns:
            return self._pydantic(annotate(base, others))
        self.native, self.owns = False, True
        from suture.tools._pydantic_forms import PydanticCheck, PydanticForm  # noqa: PLC0415 - it imports pydantic

        others = [each for each in others if getattr(each, "discriminator", None) is None]  # a union finds it out
        return PydanticCheck(inner, PydanticForm(annotate(Any, others))) if others else inner

    def _pydantic(self, hint: Any) -> Form:
        """Return the form that pydantic makes, if it is installed."""
        self.native = False
        try:
            from suture.tools._pydantic_forms import PydanticForm  # noqa: PLC0415 - it imports pydantic
        except ImportError:
            raise UnreadableError(hint) from None
        return PydanticForm(hint)


def _is_typed_dict(kind: Any) -> bool:
    return hasattr(kind, "__required_keys__") and issubclass(kind, dict)  # that of typing_extensions is another one


def _is_model(kind: Any) -> bool:
    marks = ("__pydantic_core_schema__", "__get_pydantic_core_schema__", "__pydantic_validator__")
    return any(hasattr(kind, mark) for mark in marks)


# --- the annotations of classes -----------------------------------------------------------------


def _class_hints(hint: Any, kind: Any) -> dict[str, Any]:
    """Return the annotations of the fields of a class, with the arguments of generic classes filled in."""
    arguments = _type_arguments(hint, kind)
    if _is_typed_dict(kind):
        flat = {name: each for by_name in arguments.values() for name, each in by_name.items()}
        hints = get_type_hints(kind, include_extras=True)
        return {name: _substitute(each, flat) for name, each in hints.items()}
    hints: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        names = inspect.get_annotations(base)
        below = get_type_hints(base, include_extras=True) if names else {}
        hints.update({name: _substitute(below[name], arguments.get(base, {})) for name in names if name in below})
    return hints


def _type_arguments(hint: Any, kind: Any) -> dict[Any, dict[Any, Any]]:
    """Return what stands for the type variables of a class and of its generic bases."""
    own = dict(zip(getattr(kind, "__parameters__", ()), get_args(hint), strict=False))
    found = {kind: own}
    for base in getattr(kind, "__orig_bases__", ()):
        origin: Any = get_origin(base)
        if isinstance(origin, type) and origin.__module__ != "typing":
            found.update(_type_arguments(_substitute(base, own), origin))
    return found


def _substitute(hint: Any, arguments: Mapping[Any, Any]) -> Any:
    if isinstance(hint, TypeVar):
        return arguments.get(hint, hint)
    parameters = getattr(hint, "__parameters__", ()) if get_origin(hint) else ()
    return hint[tuple(arguments.get(each, each) for each in parameters)] if parameters and arguments else hint


def _qualifier(hint: Any) -> str:
    return str(get_origin(hint)).rpartition(".")[2]


def shown_default(default: Any) -> dict[str, Any]:
    """Return the entry of a schema for a default, if JSON can carry it."""
    try:
        plain = msgspec.to_builtins(default, str_keys=True, enc_hook=_plain_default)
        check_plain(plain)
    except Exception:  # noqa: BLE001 - a default is a user's own object, and may stand for one that is not there yet
        return {}
    return {"default": plain}


def _plain_default(default: Any) -> Any:
    """Return the JSON form of a path or of a pydantic model."""
    dump: Callable[..., Any] | None = getattr(default, "model_dump", None)
    return dump(mode="json") if dump else cast("str", os.fspath(default))


def _json(value: Any, hint: Any) -> Any:
    """Return what JSON has for a member of an enum or a `Literal`."""
    value = value.value if isinstance(value, enum.Enum) else value
    try:
        return msgspec.json.decode(msgspec.json.encode(value))
    except (TypeError, ValueError) as error:
        raise UnreadableError(hint, f"there is no JSON for {value!r}") from error
