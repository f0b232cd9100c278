"""Items of Responses into messages: what the model made in a row is one message, everything else one each."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from suture.codecs._contents import Called
from suture.codecs._kept import unknown
from suture.errors import InputError
from suture.messages import AgenticMessage, AgenticRole, Opaque
from suture.providers.openai_responses.calls import CALLS, OUTPUTS, read_call, read_result
from suture.providers.openai_responses.fields import (
    ITEM,
    NEEDS,
    WIRE,
    beside,
    list_in,
    map_of,
    number_of,
    own_fields,
    text_in,
)
from suture.providers.openai_responses.mcp import read_approval, read_approval_request, read_mcp_call, read_mcp_tools
from suture.providers.openai_responses.parts import read_parts
from suture.providers.openai_responses.services import (
    SERVICE_OUTPUTS,
    SERVICES,
    read_image,
    read_reasoning,
    read_service,
    read_service_output,
)

__all__ = ["read_items", "read_output"]

_ROLES: Mapping[Any, AgenticRole] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
}
_REFERENCE = "item_reference"
_FROM_OUTSIDE = frozenset((_REFERENCE, "additional_tools", "compaction_trigger"))


def read_items(items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
    """Return the messages that `items` say.

    >>> [message.role for message in read_items([{"role": "user", "content": "hi"}])]
    ['user']
    """
    messages: list[AgenticMessage] = []
    names = Called[str]()
    run: _Run | None = None
    for index, given in enumerate(items):
        try:
            item = map_of(given, "")
            text_in(item, "id")
            role = _role(item)
            names.enter(role)
            if role != "assistant":
                messages += [] if run is None else [run.message()]
                run = None
                messages.append(_message(item, role, names))
                continue
            run = run or _Run(names)
            run.add(item)
        except InputError as error:
            raise InputError(error.reason, index=index, path=error.path) from None
    return messages if run is None else [*messages, run.message()]


def read_output(items: Sequence[Mapping[str, Any]]) -> AgenticMessage:
    """Return the message that the output of a response says.

    >>> read_output([{"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}]).content_blocks
    (FunctionToolCall(call_id='a', name='f', arguments='{}'),)
    """
    run = _Run(Called(), reply=True)
    for place, item in enumerate(items):
        try:
            text_in(map_of(item, ""), "id")
            run.add(_without_number(item, place))
        except InputError as error:
            raise InputError(error.reason, path=f"output[{place}].{error.path}".rstrip(".")) from None
    return run.message()


class _Run:
    """Items that the model made, one after another."""

    def __init__(self, names: Called[str], *, reply: bool = False) -> None:
        self._blocks: list[Any] = []
        self._reply = reply
        self._names = names
        self._needs = ""
        self._head: Mapping[str, Any] | None = None
        self._after_text = False

    def message(self) -> AgenticMessage:
        return AgenticMessage("assistant", tuple(self._blocks), extra={WIRE: {ITEM: self._head}} if self._head else {})

    def add(self, item: Mapping[str, Any]) -> None:
        kind = _kind(item)
        if kind == "message":
            self._say(item)
            return
        self._after_text = False
        if kind == "reasoning":
            self._needs = text_in(item, "id")
        self._blocks += _read(item, kind, self._needs, self._names)

    def _say(self, item: Mapping[str, Any]) -> None:
        """Add the parts of a message, and keep what it has beside them."""
        made = _role(item) == "assistant"
        is_output = self._reply or bool(item.get("id"))
        parts = read_parts(_without_empty(item) if is_output else item, made=made)
        known = ("type", "content", *(("role",) if made else ()))
        head = dict(own_fields(beside(item, known, **{NEEDS: self._needs})))
        if not parts:
            return
        if self._head is None:
            self._head = head
        elif head or self._after_text:
            parts[0] = _marked(parts[0], head)
        self._after_text = True
        self._blocks += parts


def _without_number(item: Mapping[str, Any], place: int) -> Mapping[str, Any]:
    """Return an item of a reply without the id, and the status, that it was given for want of one."""
    if not item.get("id") or item.get("id") != number_of(item, place):
        return item
    names = ("id", "status") if _kind(item) == "message" else ("id",)
    return {name: value for name, value in item.items() if name not in names}


def _without_empty(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message whose texts do not say that they have no annotations, and no likelihoods."""
    if isinstance(item.get("content"), str):
        return item
    parts = [
        {name: value for name, value in part.items() if value or name not in {"annotations", "logprobs"}}
        for part in list_in(item, "content")
    ]
    return {**item, "content": parts}


def _marked(block: Any, head: Mapping[str, Any]) -> Any:
    """Return the first block of a message with what the message has beside its content."""
    extra = {**block.extra, WIRE: {**own_fields(block.extra), ITEM: head}}
    if isinstance(block, Opaque):
        return Opaque({**block.data, "extra": extra})
    return replace(block, extra=extra)


def _message(item: Mapping[str, Any], role: AgenticRole, names: Called[str]) -> AgenticMessage:
    kind = _kind(item)
    if kind != "message":
        return AgenticMessage(role, tuple(_read(item, kind, "", names)))
    known = ("content", *(("role",) if item.get("role") == role else ()))
    return AgenticMessage(role, tuple(read_parts(item)), extra=beside(item, known))


def _kind(item: Mapping[str, Any]) -> str:
    """Return the type of an item; one without is a message, or, if it has nothing but an id, a reference."""
    kind = item.get("type")
    if kind is None:
        return _REFERENCE if "role" not in item and "id" in item else "message"
    if not isinstance(kind, str):
        raise InputError(f"expected a string, found {type(kind).__name__}", path="type")
    return kind


def _role(item: Mapping[str, Any]) -> AgenticRole:
    """Return who made an item."""
    kind = _kind(item)
    if kind == "message":
        role = item.get("role")
        if not isinstance(role, str) or role not in _ROLES:
            raise InputError(f"an item has a type or a role, one of {', '.join(_ROLES)}; found {role!r}", path="role")
        return _ROLES[role]
    if kind in _FROM_OUTSIDE:
        return "system"
    by_program = kind in OUTPUTS or kind in {"computer_call_output", "mcp_approval_response"}
    return "user" if by_program or (kind == "tool_search_output" and item.get("call_id")) else "assistant"


def _read(item: Mapping[str, Any], kind: str, needs: str, names: Called[str]) -> list[Any]:
    """Return the blocks of an item that is no message."""
    if kind in CALLS:
        call = read_call(item, CALLS[kind], needs)
        names.note(call.call_id, call.name)
        return [call]
    if kind in OUTPUTS:
        is_event = kind == "function_call_output" and not item.get("call_id") and bool(item.get("name"))
        return [unknown(WIRE, item) if is_event else read_result(item, OUTPUTS[kind], names)]
    if kind in SERVICES:
        return read_service(item, needs)
    if kind in SERVICE_OUTPUTS:
        return [read_service_output(item)]
    if kind in _MADE:
        return _MADE[kind](item, needs)
    reader = _READERS.get(kind)
    return [unknown(WIRE, {**item, "type": kind}) if reader is None else reader(item)]


_MADE: Mapping[str, Callable[[Mapping[str, Any], str], list[Any]]] = {
    "mcp_call": read_mcp_call,
    "mcp_list_tools": lambda item, needs: [read_mcp_tools(item, needs)],
    "image_generation_call": lambda item, needs: [read_image(item, needs)],
}
_READERS: Mapping[str, Callable[[Mapping[str, Any]], Any]] = {
    "reasoning": read_reasoning,
    "mcp_approval_request": read_approval_request,
    "mcp_approval_response": read_approval,
}
