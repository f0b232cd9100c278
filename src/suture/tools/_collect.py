"""Several tools at once, each from whatever makes a tool."""

from collections.abc import Iterable
from typing import Any, cast

from suture.errors import ConfigError
from suture.tools._function import tool
from suture.tools._objects import is_tool_object
from suture.tools._tool import Tool, ToolObject, check_name


def as_tools(items: Iterable[object]) -> tuple[Tool[..., Any], ...]:
    """Turn tools, functions and objects with `info` and endpoints into tools; refuse two of one name.

    >>> from suture.tools import as_tools, exit_tool
    >>> def search(query: str) -> str: ...
    >>> as_tools([search, exit_tool()])
    (Tool('search', kind='invokable'), Tool('exit', kind='invokable'))
    >>> as_tools([search, search])
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: items 0 and 1 are both called 'search' (search, search); rename one: tool(..., name=...)
    """
    if isinstance(items, str | bytes) or not isinstance(items, Iterable):  # pyright: ignore[reportUnnecessaryIsInstance] - the caller's code
        raise ConfigError(f"expected a list of tools, got {type(items).__name__}")
    made = tuple(_one(item, place) for place, item in enumerate(items))
    seen: dict[str, int] = {}
    for place, each in enumerate(made):
        first = seen.setdefault(each.name, place)
        if first != place:
            raise ConfigError(
                f"items {first} and {place} are both called {each.name!r} ({_origin(made[first])}, {_origin(each)}); "
                "rename one: tool(..., name=...)"
            )
    return made


def _one(item: object, place: int) -> Tool[..., Any]:
    if isinstance(item, Tool):
        known = cast("Tool[..., Any]", item)
        check_name(known.name)
        return known
    if isinstance(item, type) or not (callable(item) or is_tool_object(item)):
        shown = f"the class {item.__name__}" if isinstance(item, type) else f"a {type(item).__name__}"
        raise ConfigError(
            f"item {place} is {shown}, not a tool; expected a Tool, a function, or an object with info and an endpoint"
            + ("; pass its as_tool()" if hasattr(item, "as_tool") else "")
        )
    return tool(cast("ToolObject", item))


def _origin(made: Tool[..., Any]) -> str:
    function: Any = made.function
    return getattr(function, "__qualname__", None) or repr(made)
