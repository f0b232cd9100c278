"""The rest of a request to Gemini: what the system says, tools, and settings."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from suture.codecs._contents import merge_options
from suture.codecs._kept import keep, put_back, report_extra
from suture.codecs._values import CODECS, Losses, Lost
from suture.errors import ConfigError, InputError
from suture.messages import AgenticMessage, ToolInfo, UserInputText
from suture.providers.gemini.fields import GEMINI, camel, objects, own_fields
from suture.providers.gemini.read import Calls, read_content

__all__ = ["read_options", "read_system", "read_tools", "write_options", "write_tools"]

_CONFIG = {
    "max_tokens": "maxOutputTokens",
    "temperature": "temperature",
    "top_p": "topP",
    "top_k": "topK",
    "seed": "seed",
    "stop": "stopSequences",
}
_CHOICES = {"auto": "AUTO", "none": "NONE", "required": "ANY"}
_JSON = "application/json"
_TOOL = "tool"
"""What is kept of a tool that Gemini runs itself stands under this name."""
_SCHEMA = "parametersJsonSchema"


def read_system(said: Any) -> tuple[str, list[AgenticMessage]]:
    """Return what the system says: one plain text, or a message where there is more to it.

    >>> read_system({"parts": [{"text": "Be brief."}]})
    ('Be brief.', [])
    """
    if said is None:
        return "", []
    if isinstance(said, str):
        said = {"parts": [{"text": said}]}
    if not isinstance(said, Mapping):
        raise InputError(f"expected an object, found {type(said).__name__}", path="systemInstruction")
    content = camel(cast("Mapping[str, Any]", said))
    parts = content.pop("parts", None)
    try:
        blocks = read_content({"parts": parts}, "system", Calls()).content_blocks
    except InputError as error:
        raise InputError(error.reason, path=f"systemInstruction.{error.path}") from None
    if not content and len(blocks) == 1 and isinstance(blocks[0], UserInputText) and not blocks[0].extra:
        return blocks[0].text, []
    return "", [AgenticMessage("system", blocks, extra=keep(GEMINI, content, ()))]


def read_tools(given: Any) -> list[ToolInfo]:
    """Return the tools of a request: the functions it declares, and those that Gemini runs itself.

    >>> read_tools([{"functionDeclarations": [{"name": "tides"}]}, {"googleSearch": {}}])[1].name
    'googleSearch'
    """
    tools: list[ToolInfo] = []
    for place, tool in enumerate(objects(given, "tools")):
        for field, value in camel(tool).items():
            if field == "functionDeclarations":
                declared = objects(value, f"tools[{place}].{field}")
                tools += [_read_tool(camel(declaration)) for declaration in declared]
            else:
                tools.append(ToolInfo(field, extra={GEMINI: {_TOOL: {field: value}}}))
    return tools


def _read_tool(declaration: Mapping[str, Any]) -> ToolInfo:
    """Return a function as declared; a schema under its older name is marked, to be written there again."""
    schema = _SCHEMA if declaration.get(_SCHEMA) is not None else "parameters"
    extra = keep(GEMINI, declaration, ("name", "description", schema))
    parameters = declaration.get(schema)
    if parameters is not None and schema != _SCHEMA:
        extra = {GEMINI: {**extra.get(GEMINI, {}), _SCHEMA: None}}
    return ToolInfo(declaration.get("name") or "", declaration.get("description") or "", parameters, extra)


def write_tools(tools: Iterable[ToolInfo], losses: Losses) -> list[dict[str, Any]]:
    """Return `tools` as a request has them: all functions in one list, where the first of them stands.

    >>> write_tools([ToolInfo("tides", "Look up the tide.")], Losses())
    [{'functionDeclarations': [{'name': 'tides', 'description': 'Look up the tide.'}]}]
    """
    made: list[dict[str, Any]] = []
    declared: list[dict[str, Any]] = []
    for place, tool in enumerate(tools):
        path = f"tools[{place}]"
        run = own_fields(tool.extra).get(_TOOL)
        if isinstance(run, Mapping):
            made.append(dict(cast("Mapping[str, Any]", run)))
            continue
        if _is_foreign(tool):
            losses.add(Lost.TOOL, f"{tool.name}, a tool that another provider runs", path)
            continue
        if not declared:
            made.append({"functionDeclarations": declared})
        declared.append(_write_tool(tool, losses, path))
    return made


def _is_foreign(tool: ToolInfo) -> bool:
    """Tell whether a tool is one that another provider runs: only that one has something to say about it."""
    bare = tool.parameters is None and not tool.description
    return bare and GEMINI not in tool.extra and any(name in CODECS for name in tool.extra)


def _write_tool(tool: ToolInfo, losses: Losses, path: str) -> dict[str, Any]:
    older = _SCHEMA in own_fields(tool.extra)
    made: dict[str, Any] = {"name": tool.name}
    if tool.description:
        made["description"] = tool.description
    if tool.parameters is not None:
        made["parameters" if older else _SCHEMA] = dict(tool.parameters)
    for name, value in tool.extra.items():
        if name in CODECS and name != GEMINI and isinstance(value, Mapping):
            said = [field for field, held in cast("Mapping[str, Any]", value).items() if held is not None]
            for field in said:
                losses.add(Lost.TOOL, f"{name} {field} of {tool.name}", path)
        elif name != GEMINI or not isinstance(value, Mapping):
            report_extra(name, value, losses, path)
    return put_back(GEMINI, made, {GEMINI: own_fields(tool.extra)}, losses, path)


def write_options(payload: dict[str, Any], options: Mapping[str, Any], losses: Losses) -> None:
    """Put the options of a request into `payload`, under Gemini's own names.

    >>> payload = {}
    >>> write_options(payload, {"max_tokens": 80, "tool_choice": "required"}, Losses())
    >>> payload["generationConfig"], payload["toolConfig"]
    ({'maxOutputTokens': 80}, {'functionCallingConfig': {'mode': 'ANY'}})
    """
    given = {name: value for name, value in options.items() if value is not None}
    config = {own: given.pop(name) for name, own in _CONFIG.items() if name in given}
    if isinstance(config.get("stopSequences"), str):
        config["stopSequences"] = [config["stopSequences"]]
    if "output_schema" in given:
        config |= {"responseMimeType": _JSON, "responseJsonSchema": given.pop("output_schema")}
    if config:
        payload["generationConfig"] = config
    if "tool_choice" in given:
        payload["toolConfig"] = {"functionCallingConfig": _write_choice(given.pop("tool_choice"))}
    merge_options(payload, given, losses, ("parallel_tool_calls",))


def _write_choice(choice: Any) -> dict[str, Any]:
    if isinstance(choice, Mapping):
        return dict(cast("Mapping[str, Any]", choice))
    if not isinstance(choice, str):
        raise ConfigError(f"tool_choice is a text or a functionCallingConfig, not {type(choice).__name__}")
    if choice in _CHOICES:
        return {"mode": _CHOICES[choice]}
    return {"mode": "ANY", "allowedFunctionNames": [choice]}


def read_options(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a request under the names that all providers share; the rest as it is.

    >>> read_options({"generationConfig": {"maxOutputTokens": 80, "responseModalities": ["TEXT"]}})
    {'max_tokens': 80, 'generationConfig': {'responseModalities': ['TEXT']}}
    """
    options: dict[str, Any] = {}
    rest = dict(payload)
    given = rest.pop("generationConfig", None)
    if isinstance(given, Mapping):
        config = camel(cast("Mapping[str, Any]", given))
        options |= {name: config.pop(own) for name, own in _CONFIG.items() if config.get(own) is not None}
        if config.get("responseMimeType") == _JSON and config.get("responseJsonSchema") is not None:
            options["output_schema"] = config.pop("responseJsonSchema")
            del config["responseMimeType"]
        given = config if config or not options else None
    if given is not None:
        options["generationConfig"] = given
    return {**options, **_read_choice(rest)}


def _read_choice(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` with the choice among the tools under the name that all providers share."""
    given = payload.get("toolConfig")
    if not isinstance(given, Mapping):
        return payload
    config = camel(cast("Mapping[str, Any]", given))
    choice = _choice(config.get("functionCallingConfig"))
    if choice is None:
        return payload
    del config["functionCallingConfig"]
    others = {name: value for name, value in payload.items() if name != "toolConfig"}
    return {"tool_choice": choice, **others, **({"toolConfig": config} if config else {})}


def _choice(given: Any) -> str | None:
    """Return the choice that a function calling config says; `None` where it says more than one name can."""
    if not isinstance(given, Mapping):
        return None
    config = camel(cast("Mapping[str, Any]", given))
    mode, names = config.pop("mode", None), config.pop("allowedFunctionNames", None)
    if config:
        return None
    if not names:
        return next((name for name, own in _CHOICES.items() if own == mode), None)
    alone: Any = (
        cast("Sequence[Any]", names)[0] if isinstance(names, list) and len(cast("list[Any]", names)) == 1 else None
    )
    return alone if mode == "ANY" and isinstance(alone, str) and alone not in _CHOICES else None
