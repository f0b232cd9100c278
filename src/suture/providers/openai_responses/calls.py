"""Calls that the program answers, and their outputs: functions, custom tools, the shell, patches.

Each type of call has its own type of output. All of them are a `FunctionToolCall` and its result here, so that an
agent can answer them by name; arguments that are no JSON text in the API are one here.
"""

from collections.abc import Mapping
from typing import Any, NamedTuple, cast

import msgspec

from suture.codecs._contents import Called, arguments_object, arguments_text, custom_input
from suture.codecs._kept import KIND
from suture.codecs._values import Losses, Lost
from suture.messages import FunctionToolCall, FunctionToolResult, ToolSearchResult, UserInputText
from suture.providers.openai_responses.fields import NEEDS, beside, own_type, returned, text_in
from suture.providers.openai_responses.parts import read_parts, told, write_output

__all__ = [
    "CALLS",
    "OUTPUTS",
    "Kind",
    "input_arguments",
    "kind_of",
    "read_call",
    "read_result",
    "write_call",
    "write_result",
]

_decode = msgspec.json.Decoder().decode
_FAILED, _DONE = "failed", "completed"


class Kind(NamedTuple):
    """One type of call: its output, the name of the tool if it has only one, and where its arguments are.

    >>> CALLS["shell_call"].output
    'shell_call_output'
    """

    call: str
    output: str
    arguments: str
    name: str = ""
    output_id: str = "call_id"


_FUNCTION = Kind("function_call", "function_call_output", "arguments")
_CUSTOM = Kind("custom_tool_call", "custom_tool_call_output", "input")
_LOCAL_SHELL = Kind("local_shell_call", "local_shell_call_output", "action", "local_shell", "id")
_SHELL = Kind("shell_call", "shell_call_output", "action", "shell")
_PATCH = Kind("apply_patch_call", "apply_patch_call_output", "operation", "apply_patch")
_KINDS = (_FUNCTION, _CUSTOM, _LOCAL_SHELL, _SHELL, _PATCH)
CALLS = {kind.call: kind for kind in _KINDS}
OUTPUTS = {kind.output: kind for kind in _KINDS}


def kind_of(block: FunctionToolCall) -> Kind:
    """Return which type of call `block` is: a function's, unless it was read as another.

    >>> kind_of(FunctionToolCall("a", "f")).call
    'function_call'
    """
    return _CUSTOM if custom_input(block) is not None else CALLS.get(own_type(block.extra), _FUNCTION)


def input_arguments(text: str) -> str:
    """Return the input of a custom tool, any text, as arguments.

    >>> input_arguments("SELECT 1")
    '{"input":"SELECT 1"}'
    """
    return msgspec.json.encode({"input": text}).decode()


def read_call(item: Mapping[str, Any], kind: Kind, needs: str = "") -> FunctionToolCall:
    """Return the call that `item` is; `needs` is the reasoning that it was made after.

    >>> read_call({"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}, CALLS["function_call"])
    FunctionToolCall(call_id='a', name='f', arguments='{}')
    """
    given = item.get(kind.arguments)
    arguments = input_arguments(text_in(item, "input")) if kind is _CUSTOM else arguments_text(given)
    known = ("call_id", "name", kind.arguments, *(("type",) if kind is _FUNCTION else ()))
    extra = beside(item, known, **{NEEDS: needs})
    return FunctionToolCall(text_in(item, "call_id"), text_in(item, "name") or kind.name, arguments, extra=extra)


def write_call(block: FunctionToolCall, losses: Losses, path: str) -> dict[str, Any]:
    """Return the item of a call, of the type that it was read as.

    >>> write_call(FunctionToolCall("a", "f", "{}"), Losses(), "")
    {'type': 'function_call', 'call_id': 'a', 'name': 'f', 'arguments': '{}'}
    """
    kind = kind_of(block)
    item: dict[str, Any] = {"type": kind.call, "call_id": block.call_id}
    if not kind.name:
        item["name"] = block.name
    if kind is _FUNCTION:
        item["arguments"] = block.arguments
    elif kind is _CUSTOM:
        item["input"] = custom_input(block)
    else:
        item[kind.arguments] = arguments_object(block.arguments, losses, f"{path}.arguments")
    extra = {name: value for name, value in block.extra.items() if name != KIND} if kind is _CUSTOM else block.extra
    return returned(item, extra, losses, path)


def read_result(item: Mapping[str, Any], kind: Kind, names: Called[str]) -> FunctionToolResult:
    """Return the result that `item` is; `names` are those of the calls before it.

    >>> names = Called[str]()
    >>> names.note("a", "add")
    >>> read_result({"call_id": "a", "output": "42"}, OUTPUTS["function_call_output"], names).name
    'add'
    """
    call_id = text_in(item, kind.output_id)
    known = [kind.output_id, "output", *(("type",) if kind is _FUNCTION else ())]
    given = item.get("output")
    if kind is _SHELL and given is not None:
        content: list[Any] = [UserInputText(msgspec.json.encode(given).decode())]
    else:
        content = read_parts(item, "output")
    failed = kind is _PATCH and item.get("status") == _FAILED
    if kind is _PATCH:
        known.append("status")
    name = names.answered(call_id) or text_in(item, "name") or kind.name
    return FunctionToolResult(call_id, name, tuple(content), failed, extra=beside(item, known))


def write_result(
    block: FunctionToolResult | ToolSearchResult, kind: Kind | None, losses: Losses, path: str
) -> dict[str, Any]:
    """Return the item of a result; `kind` is that of the call it answers, `None` where there is none.

    >>> write_result(FunctionToolResult("a", "f", [UserInputText("42")]), None, Losses(), "")
    {'type': 'function_call_output', 'call_id': 'a', 'output': '42'}
    """
    kind = kind or OUTPUTS.get(own_type(block.extra), _FUNCTION)
    item: dict[str, Any] = {"type": kind.output, kind.output_id: block.call_id}
    if isinstance(block, ToolSearchResult):
        losses.add(Lost.BLOCK, "the form of tools that were found; they are told as text", path)
        found = msgspec.json.encode(msgspec.to_builtins(block.tools)).decode()
        block = FunctionToolResult(block.call_id, block.name, (UserInputText(found),), extra=block.extra)
    if kind is _PATCH:
        item |= {"status": _FAILED if block.is_error else _DONE}
        text = told(block.content, losses, f"{path}.content")
        item |= {"output": text} if text or block.content else {}
    elif kind is _SHELL:
        item["output"] = _shell_output(block, losses, f"{path}.content")
    else:
        write = told if kind is _LOCAL_SHELL else write_output
        item["output"] = write(block.content, losses, f"{path}.content")
        if block.is_error:
            losses.add(Lost.ERROR, f"the error flag of {block.call_id or block.name}", path)
    made = returned(item, block.extra, losses, path)
    return {**made, "type": kind.output}


def _shell_output(block: FunctionToolResult, losses: Losses, path: str) -> list[Any]:
    """Return what a shell gave: the list that the text is, or one that holds the text."""
    text = told(block.content, losses, path)
    try:
        held: Any = _decode(text)
        if isinstance(held, list):
            return cast("list[Any]", held)
    except (msgspec.DecodeError, RecursionError):
        pass
    outcome = {"type": "exit", "exit_code": int(block.is_error)}
    stdout, stderr = ("", text) if block.is_error else (text, "")
    return [{"stdout": stdout, "stderr": stderr, "outcome": outcome}]
