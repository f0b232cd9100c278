"""What a request to Anthropic's Messages API says beside its messages: tools and settings, both ways."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from suture.codecs._contents import merge_options
from suture.codecs._kept import put_back
from suture.codecs._values import CODECS, Losses, Lost
from suture.errors import ConfigError, InputError
from suture.messages import ToolInfo
from suture.providers.anthropic.fields import WIRE, kept_beside, map_in, own_fields, text_in

__all__ = ["read_options", "read_tool", "write_options", "write_tools"]

MAX_TOKENS = 8192
"""How long a reply may be where nobody says it; the API demands a number."""

_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_OURS = {theirs: ours for ours, theirs in _CHOICES.items()}
_MAPPED = ("stop", "tool_choice", "parallel_tool_calls", "output_schema")
_FORMAT = "json_schema"


def write_tools(tools: Sequence[ToolInfo], losses: Losses) -> list[dict[str, Any]]:
    """Return `tools` as the API takes them; those that another provider runs are reported.

    >>> write_tools([ToolInfo("tides", "Look up the tide.")], Losses())[0]["input_schema"]
    {'type': 'object', 'properties': {}}
    """
    return [made for made in [_write_tool(tool, losses) for tool in tools] if made is not None]


def _write_tool(tool: ToolInfo, losses: Losses) -> dict[str, Any] | None:
    own = own_fields(tool.extra)
    if own.get("type", "custom") != "custom":
        return dict(own)
    foreign = [(name, value) for name, value in tool.extra.items() if name != WIRE]
    if not tool.description and tool.parameters is None and not own and any(name in CODECS for name, _ in foreign):
        losses.add(Lost.TOOL, f"{tool.name}, a tool that another provider runs")
        return None
    unread = [(WIRE, tool.extra[WIRE])] if not own and WIRE in tool.extra else []
    for name, value in [*foreign, *unread]:
        fields = cast("Mapping[str, Any]", value) if name in CODECS and isinstance(value, Mapping) else {"extra": value}
        for field in [field for field, held in fields.items() if held is not None]:
            losses.add(Lost.TOOL, f"{name} {field} of {tool.name}")
    made: dict[str, Any] = {"name": tool.name}
    if tool.description:
        made["description"] = tool.description
    made["input_schema"] = _schema(tool.parameters)
    return put_back(WIRE, made, {WIRE: own}, losses)


def _schema(parameters: Mapping[str, Any] | None) -> dict[str, Any]:
    if parameters is None:
        return {"type": "object", "properties": {}}
    return dict(parameters) if "type" in parameters else {"type": "object", **parameters}


def read_tool(tool: Mapping[str, Any]) -> ToolInfo:
    """Return one of a request's tools; one of the API's own kinds is kept whole.

    >>> read_tool({"type": "web_search_20260318", "name": "web_search"}).extra["anthropic"]["type"]
    'web_search_20260318'
    """
    schema = tool.get("input_schema")
    kind = text_in(tool, "type")
    if kind in {"", "custom"} and isinstance(schema, dict):
        extra = kept_beside(tool, ("name", "description", "input_schema"))
        parameters = cast("Mapping[str, Any]", schema)
        return ToolInfo(text_in(tool, "name"), text_in(tool, "description"), parameters, extra=extra)
    if kind in {"", "custom"}:
        raise InputError("expected a tool with an input_schema, or with a type", path="tools")
    name = text_in(tool, "name") or text_in(tool, "mcp_server_name") or kind
    return ToolInfo(name, extra={WIRE: dict(tool)})


def write_options(payload: dict[str, Any], options: Mapping[str, Any], losses: Losses) -> None:
    """Put `options` into the body of a request, under the API's names.

    >>> payload = {}
    >>> write_options(payload, {"stop": ["END"], "tool_choice": "required"}, Losses())
    >>> payload
    {'max_tokens': 8192, 'stop_sequences': ['END'], 'tool_choice': {'type': 'any'}}
    """
    payload["max_tokens"] = MAX_TOKENS
    stop, schema = options.get("stop"), options.get("output_schema")
    if stop is not None:
        payload["stop_sequences"] = _stops(stop)
    choice = _choice(options.get("tool_choice"), options.get("parallel_tool_calls"), tools="tools" in payload)
    if choice is not None:
        payload["tool_choice"] = choice
    if schema is not None:
        payload["output_config"] = {"format": {"type": _FORMAT, "schema": schema}}
    plain = {name: value for name, value in options.items() if name not in _MAPPED and value is not None}
    merge_options(payload, plain, losses, without=("seed",))


def _stops(stop: Any) -> list[Any]:
    if isinstance(stop, str):
        return [stop]
    if not isinstance(stop, list | tuple):
        raise ConfigError(f"stop is a text or a list of texts, not {type(stop).__name__}")
    return list(cast("Sequence[Any]", stop))


def _choice(chosen: Any, parallel: Any, *, tools: bool) -> dict[str, Any] | None:
    """Return which tool the model is to call, and whether several; the API takes it only beside tools."""
    if isinstance(chosen, Mapping):
        made = dict(cast("Mapping[str, Any]", chosen))
    elif isinstance(chosen, str):
        made = {"type": _CHOICES[chosen]} if chosen in _CHOICES else {"type": "tool", "name": chosen}
    elif chosen is not None:
        raise ConfigError(f"tool_choice is a text or {WIRE}'s own object, not {type(chosen).__name__}")
    elif parallel is False and tools:
        made = {"type": "auto"}
    else:
        return None
    if parallel is None or made.get("type") == "none":
        return made
    return {**made, "disable_parallel_tool_use": not parallel}


def read_options(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings in the body of a request, under the names that all providers share.

    >>> read_options({"max_tokens": 80, "tool_choice": {"type": "tool", "name": "tides"}})
    {'max_tokens': 80, 'tool_choice': 'tides'}
    """
    options: dict[str, Any] = {}
    for name, value in [(name, value) for name, value in payload.items() if value is not None]:
        if name == "stop_sequences":
            options["stop"] = value
        elif name == "tool_choice":
            options |= _read_choice(map_in(payload, name))
        elif name == "output_config":
            options |= _read_output(map_in(payload, name))
        else:
            options[name] = value
    return options


def _read_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return a choice of tools in our words; as it is, where those cannot say it."""
    kind, serial = choice.get("type"), choice.get("disable_parallel_tool_use")
    rest = {name: value for name, value in choice.items() if name not in {"type", "disable_parallel_tool_use"}}
    name = rest.pop("name", None) if kind == "tool" else _OURS.get(str(kind))
    if rest or not isinstance(name, str) or not isinstance(serial, bool | None):
        return {"tool_choice": dict(choice)}
    if kind == "tool" and name in _CHOICES:  # a tool that is called as one of our words
        return {"tool_choice": dict(choice)}
    return {"tool_choice": name} if serial is None else {"tool_choice": name, "parallel_tool_calls": not serial}


def _read_output(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the answer, and what else is said about it."""
    held = output.get("format")
    form = cast("Mapping[str, Any]", held) if isinstance(held, Mapping) else dict[str, Any]()
    if set(form) != {"type", "schema"} or form["type"] != _FORMAT:
        return {"output_config": dict(output)}
    rest = {name: value for name, value in output.items() if name != "format"}
    return {"output_schema": form["schema"], **({"output_config": rest} if rest else {})}
