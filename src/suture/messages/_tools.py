"""What goes into a tool, and what comes out of it."""

from collections.abc import Mapping, Sequence
from typing import Any

from suture.messages._frozen import EMPTY
from suture.messages._parts import Part
from suture.messages._value import Value

__all__ = ["ToolArgument", "ToolContext", "ToolResult"]


class ToolArgument(Value):
    """The arguments of a call as the model wrote them: JSON text, not parsed, perhaps not even valid.

    >>> from suture.messages import ToolArgument
    >>> ToolArgument('{"query": "pairing"}').text
    '{"query": "pairing"}'
    """

    text: str

    def __post_init__(self) -> None:
        if type(self.text) is not str:
            super().__post_init__()


class ToolContext(Value):
    """Which call a tool is running for: the tool's name and the call's id.

    >>> from suture.messages import ToolContext
    >>> ToolContext("search", "call_1").call_id
    'call_1'
    """

    name: str
    call_id: str

    def __post_init__(self) -> None:
        if type(self.name) is not str or type(self.call_id) is not str:
            super().__post_init__()


class ToolResult(Value):
    """What a tool gave: parts in order, whether it failed, whether it ends the run.

    >>> from suture.messages import TextPart, ToolResult
    >>> ToolResult([TextPart("no such page")], is_error=True)
    ToolResult(parts=(TextPart(text='no such page'),), is_error=True)
    """

    parts: Sequence[Part] = ()
    is_error: bool = False
    return_directly: bool = False
    extra: Mapping[str, Any] = EMPTY
