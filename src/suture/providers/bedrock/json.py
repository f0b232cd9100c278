"""The objects in Converse's payloads, and where in one something stands that makes no sense."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple, TypeGuard, cast

from suture.codecs._contents import Called
from suture.errors import InputError

__all__ = ["WIRE", "Where", "as_extra", "beside", "field", "is_map", "only"]

WIRE = "bedrock"


class Where(NamedTuple):
    """Where a block stands: whose message it is in, its way in it, and what is known of the calls so far.

    >>> str(Where("user", 2).at("[0].text").fault("expected a string"))
    'message 2, content[0].text: expected a string'
    """

    role: str
    message: int | None = None
    path: str = "content"
    names: Called[str] | None = None
    """The names of the calls before it."""
    ran: Collection[str] = ()
    """The ids of the calls in this message that the service itself has answered."""

    def at(self, step: str) -> "Where":
        """Return a place further in."""
        return self._replace(path=self.path + step)

    def fault(self, reason: str) -> InputError:
        """Return the error that says so, here."""
        return InputError(reason, index=self.message, path=self.path)

    def text(self, holder: Mapping[str, Any], name: str) -> str:
        """Return a field that is text; the empty one where it is absent."""
        value = holder.get(name)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.at(f".{name}").fault(f"expected a string, found {type(value).__name__}")
        return value

    def map(self, value: Any) -> Mapping[str, Any]:
        """Return what must be an object."""
        if not is_map(value):
            raise self.fault(f"expected an object, found {_name(value)}")
        return value

    def list(self, value: Any) -> Sequence[Any]:
        """Return what must be a list."""
        if not isinstance(value, list | tuple):
            raise self.fault(f"expected a list, found {_name(value)}")
        return cast("Sequence[Any]", value)


def is_map(value: Any) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether `value` is an object.

    >>> is_map({}), is_map([])
    (True, False)
    """
    return isinstance(value, Mapping)


def field(value: Any, name: str) -> Any:
    """Return a field of an object; `None` of what is no object.

    >>> field({"name": "f"}, "name"), field([], "name")
    ('f', None)
    """
    return value.get(name) if is_map(value) else None


def only(value: Any, *names: str) -> TypeGuard[Mapping[str, Any]]:
    """Tell whether `value` is an object that has no fields but `names`.

    >>> only({"uri": "s3://b/k"}, "uri", "bucketOwner"), only({"kms": 1}, "uri")
    (True, False)
    """
    return is_map(value) and value.keys() <= set(names)


def beside(holder: Mapping[str, Any], *known: str) -> dict[str, Any]:
    """Return the fields that are not `known`; one that is null says nothing.

    >>> beside({"name": "f", "strict": True, "hint": None}, "name")
    {'strict': True}
    """
    return {name: value for name, value in holder.items() if name not in known and value is not None}


def as_extra(kept: Mapping[str, Any]) -> dict[str, Any]:
    """Return the `extra` of a block that keeps these fields.

    >>> as_extra({"strict": True}), as_extra({})
    ({'bedrock': {'strict': True}}, {})
    """
    return {WIRE: kept} if kept else {}


def _name(value: Any) -> str:
    return "null" if value is None else type(value).__name__
