"""A tool that keeps the argument it was given, and the types of such arguments."""

import dataclasses
import enum
from typing import Any

import msgspec

from suture.tools import Tool, ToolArgumentsError, tool
from tests.tools.running import run


class Color(enum.Enum):
    RED = "red"
    GREEN = "green"


@dataclasses.dataclass
class Range:
    first: int
    last: int = 9


class Point(msgspec.Struct, frozen=True):
    x: float
    y: float = 0.0


class Node(msgspec.Struct):
    value: int
    below: "list[Node]" = []


def reading(hint: Any, *default: Any, strict: bool = False) -> Tool[..., Any]:
    """Return a tool with one parameter of this type, which keeps what its function was called with."""

    def take(value):
        SEEN.append(value)

    take.__annotations__["value"] = hint
    take.__defaults__ = default or None
    return tool(take, thread=False, strict=strict)


SEEN: list[Any] = []


def taken(made: Tool[..., Any], arguments: str) -> list[Any]:
    """Return what the function was called with, in a list; an empty one if it was not called."""
    SEEN.clear()
    try:
        run(made, arguments)
    except ToolArgumentsError:
        assert SEEN == []
    return list(SEEN)


@tool(thread=False)
def search(query: str, limit: int = 3, *, exact: bool = False) -> list[Any]:
    """Search."""
    return [query, limit, exact]
