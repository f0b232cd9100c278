"""The tools and the settings of a request in Chat Completions."""

from collections.abc import Mapping, Sequence
from typing import Any

from suture.codecs._contents import merge_options
from suture.codecs._values import CODECS, Losses, Lost
from suture.errors import InputError
from suture.messages import ToolInfo
from suture.providers.openai_chat.parts import WIRE, inside, is_list, is_map, others, own

__all__ = ["read_options", "read_tools", "write_options", "write_tools"]

_FUNCTION, _TOOL = "function", "tool"
_CHOICES = frozenset(("auto", "none", "required"))
_FORMAT, _SCHEMA, _NAME = "response_format", "json_schema", "answer"


# Tools


def write_tools(tools: Sequence[ToolInfo], losses: Losses) -> list[dict[str, Any]]:
    """Return the tools as the payload lists them."""
    made: list[dict[str, Any]] = []
    losses.index = None
    for place, tool in enumerate(tools):
        made += _write_tool(tool, losses, f"tools[{place}]")
    return made


def _write_tool(tool: ToolInfo, losses: Losses, path: str) -> list[dict[str, Any]]:
    kept = own(tool.extra)
    foreign = [name for name in tool.extra if name != WIRE]
    if kept.get("type", _FUNCTION) != _FUNCTION:
        return [dict(kept)]
    if not kept and tool.parameters is None and not tool.description and any(name in CODECS for name in foreign):
        losses.add(Lost.TOOL, f"{tool.name}, a tool that {foreign[0]} runs", path)
        return []
    for name in [*foreign, *([WIRE] if not is_map(tool.extra.get(WIRE, kept)) else [])]:
        losses.add(Lost.TOOL, f"extra {name!r} of {tool.name}", path)
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = {"type": "object", "properties": {}} if tool.parameters is None else dict(tool.parameters)
    function |= {name: value for name, value in kept.items() if name != _TOOL}
    made = {"type": _FUNCTION, _FUNCTION: {name: value for name, value in function.items() if value is not None}}
    return [{**made, **inside(kept, _TOOL)}]


def read_tools(tools: Any) -> tuple[ToolInfo, ...]:
    """Return the tools that a payload lists."""
    if tools is None:
        return ()
    if not is_list(tools):
        raise InputError(f"expected a list of tools, found {type(tools).__name__}", path="tools")
    return tuple([_read_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools)])


def _read_tool(tool: Any, path: str) -> ToolInfo:
    function = tool.get(_FUNCTION) if is_map(tool) else None
    if is_map(tool) and (tool.get("type", _FUNCTION) != _FUNCTION):
        inner = tool.get(str(tool.get("type")))
        held = inner if is_map(inner) else tool
        name, description = held.get("name") or tool.get("type"), held.get("description") or ""
        return ToolInfo(str(name), str(description), extra={WIRE: dict(tool)})
    if not is_map(tool) or not is_map(function) or not isinstance(function.get("name"), str):
        raise InputError("expected a tool with a function that has a name", path=path)
    kept = others(function, ("name", "description", "parameters"))
    beside = others(tool, ("type", _FUNCTION))
    if beside:
        kept[_TOOL] = beside
    parameters = function.get("parameters")
    if not is_map(parameters):
        kept["parameters"] = None
    return ToolInfo(
        function["name"],
        function.get("description") or "",
        parameters if is_map(parameters) else None,
        extra={WIRE: kept} if kept else {},
    )


# Settings


def write_options(payload: dict[str, Any], options: Mapping[str, Any], losses: Losses) -> None:
    """Put the settings into `payload`, under the names that they have here."""
    rest = dict(options)
    choice = rest.get("tool_choice")
    if isinstance(choice, str) and choice not in _CHOICES:
        rest["tool_choice"] = {"type": _FUNCTION, _FUNCTION: {"name": choice}}
    schema = rest.pop("output_schema", None)
    if schema is not None:
        rest[_FORMAT] = _write_format(schema, rest.get(_FORMAT))
    merge_options(payload, rest, losses)


def _write_format(schema: Any, given: Any) -> dict[str, Any]:
    """Return the format that asks for `schema`, with what the caller says beside it."""
    said: Mapping[str, Any] = given if is_map(given) else {}
    asked = {"name": _NAME, "schema": schema, **inside(said, _SCHEMA)}
    return {"type": _SCHEMA, **said, _SCHEMA: asked}


def read_options(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a payload under the names that they have everywhere."""
    options = dict(payload)
    stop = options.get("stop")
    if isinstance(stop, str):
        options["stop"] = [stop]
    chosen = _named_function(options.get("tool_choice"))
    if chosen is not None:
        options["tool_choice"] = chosen
    form = options.get(_FORMAT)
    asked = form.get(_SCHEMA) if is_map(form) and form.get("type") == _SCHEMA else None
    if is_map(form) and is_map(asked) and is_map(asked.get("schema")):
        options["output_schema"] = asked["schema"]
        told = {name: value for name, value in asked.items() if name != "schema" and (name, value) != ("name", _NAME)}
        rest = {**others(form, ("type", _SCHEMA)), **({_SCHEMA: told} if told else {})}
        options.pop(_FORMAT)
        options |= {_FORMAT: rest} if rest else {}
    return options


def _named_function(choice: Any) -> str | None:
    """Return the name of the one function that must be called; `None` of any other choice."""
    if not is_map(choice) or set(choice) != {"type", _FUNCTION} or set(inside(choice, _FUNCTION)) != {"name"}:
        return None
    name = choice[_FUNCTION]["name"]
    return name if isinstance(name, str) and name not in _CHOICES else None
