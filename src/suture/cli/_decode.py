"""JSON from bytes, exactly, and a true sentence where it is none.

The strict decoder is fast and keeps every number, but it says of a lone surrogate that the input was cut
off, and of NaN that a character is wrong. So whatever it refuses is looked at once more, with the standard
library's lenient decoder: to say what is wrong and where, or to read a lone surrogate as one.
"""

import json
import math
from typing import Any, cast

import msgspec

from suture.cli._refusal import CutOff, Refusal
from suture.errors import InputError
from suture.messages import check_plain
from suture.wires import sendable

__all__ = ["HOLDERS", "decode", "held_in"]

HOLDERS = ("messages", "input", "contents")
_LONGEST_INTEGER = 4300
_decode = msgspec.json.Decoder().decode


def decode(data: bytes | bytearray, line: int) -> Any:
    """Return the JSON value that `data`, which begins in `line`, is.

    Raises `Refusal` with line and column where it is no JSON, `CutOff` where it only ends too early, and
    `InputError` with the message and the place in it where it is JSON that no program could take.

    >>> decode(b'{"n": 123456789012345678901234567890}', 1)
    {'n': 123456789012345678901234567890}
    """
    try:
        return _decode(data)
    except RecursionError:
        raise Refusal("nested too deeply", f"line {line}") from None
    except (msgspec.MsgspecError, UnicodeError, ValueError):
        return _decode_leniently(data, line)


def held_in(value: Any) -> str:
    """Return the field under which an object holds a list of messages, or nothing.

    No message of any wire has a list there, so such an object is a conversation.

    >>> held_in({"model": "x", "input": []}), held_in({"role": "user"})
    ('input', '')
    """
    if not isinstance(value, dict):
        return ""
    holder = cast("dict[str, Any]", value)
    return next((key for key in HOLDERS if isinstance(holder.get(key), list)), "")


def _decode_leniently(data: bytes | bytearray, line: int) -> Any:
    """Return the value of `data` if only lone surrogates are wrong with it; raise what else is wrong."""
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        reason = f"byte 0x{data[error.start]:02x} is not UTF-8"
        below = data.count(b"\n", 0, error.start)
        column = error.start - data.rfind(b"\n", 0, error.start)
        raise Refusal(reason, f"line {line + below}", f"byte {column}") from None
    try:
        value = json.loads(text, parse_int=_integer, parse_constant=lambda _: math.nan)
    except json.JSONDecodeError as error:
        raise _syntax(error, text, line) from None
    except RecursionError:
        raise Refusal("nested too deeply", f"line {line}") from None
    _find_fault(value)
    return json.loads(text)


def _syntax(error: json.JSONDecodeError, text: str, line: int) -> Refusal:
    told = error.msg.removesuffix(" at").removesuffix(" starting")
    whole = text.rstrip()
    if error.pos >= len(whole) or told == "Unterminated string":
        places = (f"line {line + whole.count(chr(10))}", f"column {len(whole) - whole.rfind(chr(10))}")
        return CutOff("the JSON ends before it is complete", *places)
    places = (f"line {line + error.lineno - 1}", f"column {error.colno}")
    return Refusal(f"not JSON: {told[0].lower()}{told[1:]}", *places)


def _find_fault(value: Any) -> None:
    """Raise `InputError` where `value` holds what the lenient decoder let pass."""
    key = held_in(value)
    messages: Any = value[key] if key else value
    try:
        if isinstance(messages, list):
            for index, message in enumerate(cast("list[Any]", messages)):
                check_plain(sendable(message), index=index)
        check_plain(sendable(value))
    except InputError as error:
        raise InputError(_told(error.reason), index=error.index, path=error.path) from None


def _told(reason: str) -> str:
    if reason.startswith("nan "):
        return "NaN and Infinity are not JSON"
    return "a number out of range" if reason.startswith(("inf ", "-inf ")) else reason


def _integer(text: str) -> float:
    """Only the faults are looked for: a number that is fine can be any number."""
    return math.inf if len(text.lstrip("-")) > _LONGEST_INTEGER else 0
