"""Tools of one line each, and a turn that calls tools."""

import suture
from suture import Message, ToolCall, tool


@tool
async def ask() -> str:
    """Ask."""
    return str(await suture.interrupt("?"))


@tool
async def work() -> str:
    """Work."""
    return "worked"


def calls(*wanted: tuple[str, str, str]) -> Message:
    return Message.assistant("", [ToolCall(*call) for call in wanted])


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool(requires_approval=True)
async def pay() -> str:
    """Pay."""
    return "paid"
