"""Fields of a provider's objects, read with an error that says which one is wrong."""

from collections.abc import Mapping
from typing import Any

from suture.errors import InputError

__all__ = ["checked", "count_in", "tag_of", "text_in"]


def text_in(holder: Mapping[str, Any], name: str) -> str:
    """Return the text in the field `name`, the empty string where it is absent or null.

    >>> text_in({"id": None}, "id")
    ''
    """
    value = holder.get(name)
    return "" if value is None else checked(value, str, "a string", name)


def count_in(holder: Mapping[str, Any], name: str) -> int:
    """Return the number in the field `name`, zero where it is absent or null.

    >>> count_in({"input_tokens": 3}, "input_tokens")
    3
    """
    value = holder.get(name)
    if value is None:
        return 0
    if value.__class__ is not int:
        raise InputError(f"expected a whole number, found {type(value).__name__}", path=name)
    return value


def checked(value: Any, kind: Any, wanted: str, path: str) -> Any:
    """Return `value`, which must be of `kind`.

    >>> checked([], dict, "an object", "item")
    Traceback (most recent call last):
        ...
    suture.errors.InputError: item: expected an object, found list
    """
    if isinstance(value, kind):
        return value
    found = "nothing" if value is None else type(value).__name__
    raise InputError(f"expected {wanted}, found {found}", path=path)


def tag_of(block: Any) -> str:
    """Return what a native block is called where it is stored.

    >>> from suture.messages import UserInputText
    >>> tag_of(UserInputText("hi"))
    'user_input_text'
    """
    return str(block.__struct_config__.tag)
