"""Arguments of a call: whether they are an object, and what becomes of those that are not."""

from collections.abc import Mapping
from typing import Any

import msgspec

from suture.wires._text import json_words

__all__ = ["argument_json", "is_object_text", "sound_arguments"]


def argument_json(arguments: Any) -> str:
    """Return the arguments of a call as JSON text: text as it is, complete or not; absent ones are an empty object.

    >>> argument_json({"q": 1}), argument_json('{"q": '), argument_json(None)
    ('{"q":1}', '{"q": ', '{}')
    """
    if isinstance(arguments, str):
        return arguments
    return "{}" if arguments is None else json_words(arguments)


class _Object(msgspec.Struct):
    """An empty struct: decoding into it validates a JSON object and builds nothing."""


_object_decoder = msgspec.json.Decoder(_Object)


def is_object_text(text: str) -> bool:
    """Tell whether `text` is a JSON object, without building it.

    >>> is_object_text('{"a": [1, 2]}'), is_object_text('{"a": [1, '), is_object_text("[]")
    (True, False, False)
    """
    try:
        _object_decoder.decode(text)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        # A lone surrogate is no ground to throw a call's arguments away: ask the lenient reader.
        return "\\u" in text and _is_object_leniently(text)
    return True


def _is_object_leniently(text: str) -> bool:
    import json  # noqa: PLC0415 - only for text that the strict reader refused

    def refuse(constant: str) -> object:
        raise ValueError(constant)

    try:
        return isinstance(json.loads(text, parse_constant=refuse), dict)
    except (ValueError, RecursionError):
        return False


def sound_arguments(arguments: Any, *, as_text: bool) -> Any:
    """Return `arguments` as an object, or as the text of one; what is none becomes an empty one.

    >>> sound_arguments({"q": 1}, as_text=True), sound_arguments('{"q": 1}', as_text=False)
    ('{"q":1}', {'q': 1})
    >>> sound_arguments('{"q": ', as_text=True)
    '{}'
    """
    if as_text:
        whole = isinstance(arguments, Mapping)
        return msgspec.json.encode(dict(arguments), enc_hook=repr).decode() if whole else "{}"  # pyright: ignore[reportUnknownArgumentType]
    if not isinstance(arguments, str) or not is_object_text(arguments):
        return {}
    try:
        return msgspec.json.decode(arguments)
    except msgspec.MsgspecError:  # a lone surrogate or a number out of range: nothing that could be sent
        return {}
