"""Calls as Chat Completions writes them: read, looked over, and changed."""

from collections.abc import Iterator, Sequence
from typing import Any

from suture.wires._fields import argument_text, get, given, inner, put, text_of, word
from suture.wires._values import Call, CallEdit

__all__ = ["CUSTOM", "OLD", "are_answered", "plain_calls", "read_call", "write_call", "write_function"]

OLD, CUSTOM = "function", "custom"
"""The kinds of a call of the older form, and of a custom tool."""


def are_answered(calls: list[Any], rest: Iterator[Any]) -> bool:
    """Tell whether the next messages of `rest` are the results of `calls`, one by one."""
    for call in calls:
        answer: Any = next(rest, None)
        if call.__class__ is not dict or answer.__class__ is not dict or answer.get("role") != "tool":
            return False
        key = call.get("id")
        if answer.get("tool_call_id") != key or key.__class__ is not str or not key:
            return False
    return True


def read_call(call: Any, index: int | None, path: str) -> Call:
    """Return one call of `tool_calls`."""
    call_id = text_of(call, "id", index, path)
    if word(call, "type") == CUSTOM:
        custom = inner(call, "custom", index, path)
        return Call(call_id, text_of(custom, "name", index, path), get(custom, "input"), CUSTOM)
    function = inner(call, "function", index, path)
    return Call(call_id, text_of(function, "name", index, path), argument_text(function, index, path))


def plain_calls(made: Sequence[Any]) -> tuple[Call, ...] | None:
    """Return the calls `made`, `None` where one is anything but plain and needs a second look."""
    calls: list[Call] = []
    for call in made:
        if call.__class__ is not dict or call.get("type") != "function":
            return None
        function = call.get("function")
        if function.__class__ is not dict:
            return None
        call_id, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
        if not call_id.__class__ is name.__class__ is arguments.__class__ is str:
            return None
        if not (call_id.isascii() and name.isascii() and arguments.isascii()):
            return None
        calls.append(Call(call_id, name, arguments))
    return tuple(calls)


def write_call(call: Any, edit: CallEdit) -> Any:
    """Return a call of `tool_calls` with `edit` done to it."""
    field = CUSTOM if word(call, "type") == CUSTOM else "function"
    inner = get(call, field)
    changed = write_function({} if inner is None else inner, edit)
    call = put(call, **{field: changed}) if changed is not inner else call
    return call if edit.id is None else put(call, id=edit.id)


def write_function(function: Any, edit: CallEdit) -> Any:
    """Return what a call calls, or a call of the older form, with `edit` done to it."""
    fields = given(name=edit.name, arguments=edit.arguments)
    return put(function, **fields) if fields else function
