"""Tools and options of a request to Responses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from suture.codecs._contents import merge_options
from suture.codecs._values import CODECS, Losses, Lost
from suture.errors import InputError
from suture.messages import ToolInfo
from suture.providers.openai_responses.fields import (
    WIRE,
    beside,
    list_in,
    map_of,
    own_fields,
    own_type,
    returned,
    text_in,
)

__all__ = ["read_options", "read_tools", "write_options", "write_tools"]

_NAMES = {"max_tokens": "max_output_tokens"}
_CHOICES = ("auto", "none", "required")
_WITHOUT = ("top_k", "seed", "stop")
_FORMAT = {"type": "json_schema", "name": "answer"}


def write_tools(tools: Iterable[ToolInfo], losses: Losses) -> list[dict[str, Any]]:
    """Return the tools of a request; one of another provider's own is reported.

    >>> write_tools([ToolInfo("now", "Tell the time.")], Losses())[0]["parameters"]
    {'type': 'object', 'properties': {}}
    """
    written: list[dict[str, Any]] = []
    for place, tool in enumerate(tools):
        path = f"tools[{place}]"
        is_bare = not tool.description and tool.parameters is None and WIRE not in tool.extra
        if own_type(tool.extra):
            written.append(dict(own_fields(tool.extra)))
        elif is_bare and any(name in CODECS for name in tool.extra):
            losses.add(Lost.TOOL, f"{tool.name}, a tool that another provider runs", path)
        else:
            written.append(_write_function(tool, losses, path))
    return written


def read_tools(payload: Mapping[str, Any]) -> list[ToolInfo]:
    """Return the tools in the body of a request: functions as such, others kept whole.

    >>> read_tools({"tools": [{"type": "web_search"}]})[0].name
    'web_search'
    """
    return [_read_tool(tool) for tool in list_in(payload, "tools")]


def write_options(
    payload: dict[str, Any], options: Mapping[str, Any], tools: Sequence[ToolInfo], losses: Losses
) -> None:
    """Put the options of a request into `payload`, under the names that they have here.

    >>> payload = {}
    >>> write_options(payload, {"max_tokens": 80, "tool_choice": "search", "store": False}, (), Losses())
    >>> payload
    {'max_output_tokens': 80, 'tool_choice': {'type': 'function', 'name': 'search'}, 'store': False}
    """
    rest: dict[str, Any] = {}
    for name, value in options.items():
        if name == "output_schema" and value is not None:
            payload["text"] = {"format": {**_FORMAT, "schema": value}}
        elif name == "tool_choice" and isinstance(value, str):
            payload[name] = value if value in _CHOICES else _choice(value, tools)
        elif name in _NAMES:
            payload[_NAMES[name]] = value
        elif name != "output_schema":
            rest[name] = value
    text: Any = rest.get("text")
    if "text" in payload and isinstance(text, Mapping) and "format" in text:
        form = {**payload["text"]["format"], **cast("Mapping[str, Any]", text["format"])}
        rest["text"] = {**cast("Mapping[str, Any]", text), "format": form}
    merge_options(payload, rest, losses, _WITHOUT)


def read_options(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in the body of a request, under the names that all providers share.

    >>> read_options({"max_output_tokens": 80, "tool_choice": {"type": "function", "name": "search"}, "store": False})
    {'max_tokens': 80, 'tool_choice': 'search', 'store': False}
    """
    own = {held: name for name, held in _NAMES.items()}
    options: dict[str, Any] = {}
    for name, value in payload.items():
        if name in {"input", "instructions", "tools"}:
            continue
        if name == "tool_choice" and isinstance(value, Mapping):
            choice = cast("Mapping[str, Any]", value)
            named = set(choice) == {"type", "name"} and choice["type"] == "function"
            options[name] = choice["name"] if named else value
        elif name == "text" and isinstance(value, Mapping):
            options |= _read_text(cast("Mapping[str, Any]", value))
        else:
            options[name if value is None else own.get(name, name)] = value
    return options


def _write_function(tool: ToolInfo, losses: Losses, path: str) -> dict[str, Any]:
    for name, value in tool.extra.items():
        if name != WIRE or not isinstance(value, Mapping):
            losses.add(Lost.TOOL, f"extra {name!r} of {tool.name}", path)
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    said: dict[str, Any] = {"type": "function", "name": tool.name, "strict": False}
    said["parameters"] = parameters if tool.parameters is None else dict(tool.parameters)
    if tool.description:
        said["description"] = tool.description
    return returned(said, {WIRE: own_fields(tool.extra)}, losses, path)


def _read_tool(tool: Mapping[str, Any]) -> ToolInfo:
    kind = text_in(tool, "type")
    if not kind:
        raise InputError("a tool has a type", path="tools")
    if kind != "function":
        name = text_in(tool, "name") if isinstance(tool.get("name"), str) else ""
        return ToolInfo(name or kind, extra={WIRE: dict(tool)})
    known = ["type", "name", "parameters"]
    known += ["description"] if tool.get("description") else []
    known += ["strict"] if tool.get("strict") is False else []
    extra = beside(tool, known)
    if tool.get("strict") is None:
        extra = {WIRE: {**own_fields(extra), "strict": None}}
    parameters = tool.get("parameters")
    return ToolInfo(
        text_in(tool, "name"),
        text_in(tool, "description"),
        None if parameters is None else map_of(parameters, "parameters"),
        extra=extra,
    )


def _choice(name: str, tools: Iterable[ToolInfo]) -> dict[str, Any]:
    """Return the form in which one tool is demanded: by its name, or, of the service's own, by its type."""
    kind = next((own_type(tool.extra) for tool in tools if tool.name == name), "") or "function"
    return {"type": kind, "name": name} if kind in {"function", "custom"} else {"type": kind}


def _read_text(text: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options in `text`: the schema of the answer, and what beside it differs from what is written."""
    form: Any = text.get("format")
    if not isinstance(form, Mapping):
        return {"text": dict(text)}
    held = cast("Mapping[str, Any]", form)
    if held.get("type") != "json_schema" or not isinstance(held.get("schema"), Mapping):
        return {"text": dict(text)}
    rest = {name: value for name, value in held.items() if name != "schema" and _FORMAT.get(name) != value}
    around = {name: value for name, value in text.items() if name != "format"}
    left = {**around, "format": rest} if rest else around
    return {"output_schema": held["schema"], **({"text": left} if left else {})}
