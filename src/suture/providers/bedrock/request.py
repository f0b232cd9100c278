"""The rest of a Converse request: the system's words, the tools, and the options."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from suture.codecs._contents import media_in_words, merge_options
from suture.codecs._kept import put_back
from suture.codecs._values import CODECS, Losses, Lost
from suture.messages import AgenticMessage, ToolInfo, UserInputText
from suture.providers.bedrock.json import WIRE, Where, as_extra, beside, field, is_map, only
from suture.providers.bedrock.media import MEDIA
from suture.providers.bedrock.read import read_blocks
from suture.providers.bedrock.write import Writing, is_blank, write_blocks

__all__ = ["read_options", "read_system", "read_tools", "write_options", "write_system", "write_tools"]

_INFERENCE = {"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP", "stop": "stopSequences"}
_CHOICES: Mapping[str, str] = {"auto": "auto", "required": "any"}
_WITHOUT = ("top_k", "seed")
_CONFIGS = ("toolConfig", "inferenceConfig", "outputConfig")
_ELSEWHERE = ("messages", "system", *_CONFIGS)
_ANSWER = "answer"
_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}
_GONE = "This tool is no longer there; do not call it."
_decode = msgspec.json.Decoder().decode


# The system's words


def write_system(instruction: str, system: Sequence[AgenticMessage], writing: Writing) -> list[dict[str, Any]]:
    """Return the `system` of a request: the instruction, then what the system messages at the beginning say.

    >>> write_system("Be brief.", [], Writing(Losses(), {}))
    [{'text': 'Be brief.'}]
    """
    made: list[dict[str, Any]] = [{"text": instruction}]
    for index, message in enumerate(system):
        writing.losses.index = index
        put_back(WIRE, {}, message.extra, writing.losses)
        blocks = [_worded(block, writing.losses, place) for place, block in enumerate(message.content_blocks)]
        made += write_blocks(blocks, writing)
    writing.losses.index = None
    return [block for block in made if not is_blank(block)]


def _worded(block: Any, losses: Losses, place: int) -> Any:
    """Return what a system message may hold: words in the place of media."""
    if block.__class__ not in MEDIA:
        return block
    losses.add(Lost.MEDIA, f"{MEDIA[block.__class__]} {media_in_words(block)[:80]}", f"content_blocks[{place}]")
    return UserInputText(media_in_words(block))


def read_system(system: Any) -> tuple[str, list[AgenticMessage]]:
    """Return the instruction where `system` is one text, else the message that holds its blocks.

    >>> read_system([{"text": "Be brief."}])
    ('Be brief.', [])
    """
    if system is None:
        return "", []
    where = Where("system", None, "system")
    blocks = read_blocks(where.list(system), where)
    if len(blocks) == 1 and isinstance(blocks[0], UserInputText):
        return blocks[0].text, []
    return "", [AgenticMessage("system", blocks)] if blocks else []


# Tools


def write_tools(tools: Iterable[ToolInfo], called: Iterable[str], losses: Losses) -> list[dict[str, Any]]:
    """Return `tools` as Converse has them.

    Where there are none but the history has calls, Converse still wants to know the tools that were `called`.

    >>> write_tools([ToolInfo("now", "Tell the time.")], [], Losses())[0]["toolSpec"]["name"]
    'now'
    """
    made = [written for tool in tools if (written := _write_tool(tool, losses)) is not None]
    return made or [{"toolSpec": _spec(ToolInfo(name, _GONE))} for name in dict.fromkeys(called)]


def _write_tool(tool: ToolInfo, losses: Losses) -> dict[str, Any] | None:
    kept: Any = tool.extra.get(WIRE)
    bare = tool.parameters is None and not tool.description
    if bare and is_map(kept) and kept and all(is_map(value) for value in kept.values()):
        return dict(kept)
    if bare and kept is None and any(name in CODECS for name in tool.extra):
        losses.add(Lost.TOOL, f"{tool.name}, which another provider runs", "tools")
        return None
    return {"toolSpec": put_back(WIRE, _spec(tool), tool.extra, losses, f"tools.{tool.name}")}


def _spec(tool: ToolInfo) -> dict[str, Any]:
    told = {"description": tool.description} if tool.description.strip() else {}
    schema = _NO_ARGUMENTS if tool.parameters is None else tool.parameters
    return {"name": tool.name, **told, "inputSchema": {"json": dict(schema)}}


def read_tools(config: Mapping[str, Any]) -> tuple[ToolInfo, ...]:
    """Return the tools of a `toolConfig`; one that is no function is kept whole.

    >>> read_tools({"tools": [{"cachePoint": {"type": "default"}}]})[0].extra
    {'bedrock': {'cachePoint': {'type': 'default'}}}
    """
    where = Where("", None, "toolConfig.tools")
    tools = where.list([] if config.get("tools") is None else config["tools"])
    return tuple([_read_tool(where.at(f"[{place}]").map(tool)) for place, tool in enumerate(tools)])


def _read_tool(tool: Mapping[str, Any]) -> ToolInfo:
    spec, schema = tool.get("toolSpec"), field(tool.get("toolSpec"), "inputSchema")
    if only(tool, "toolSpec") and is_map(spec) and only(schema, "json"):
        name, told, parameters = spec.get("name"), spec.get("description", ""), schema.get("json")
        if isinstance(name, str) and isinstance(told, str) and is_map(parameters):
            return ToolInfo(name, told, parameters, as_extra(beside(spec, "name", "description", "inputSchema")))
    [(kind, held), *_] = [*tool.items(), ("tool", None)]
    name = field(held, "name")
    return ToolInfo(name if isinstance(name, str) else kind, extra=as_extra(tool))


# Options


def write_options(payload: dict[str, Any], options: Mapping[str, Any], losses: Losses) -> None:
    """Put `options` into `payload`, under Converse's names; the tools are in it already.

    >>> payload = {}
    >>> write_options(payload, {"max_tokens": 80, "performanceConfig": {"latency": "optimized"}}, Losses())
    >>> payload
    {'inferenceConfig': {'maxTokens': 80}, 'performanceConfig': {'latency': 'optimized'}}
    """
    given = {name: value for name, value in options.items() if value is not None}
    inference = {own: given.pop(name) for name, own in _INFERENCE.items() if name in given}
    if "stopSequences" in inference and isinstance(inference["stopSequences"], str):
        inference["stopSequences"] = [inference["stopSequences"]]
    if inference:
        payload["inferenceConfig"] = inference
    if "tool_choice" in given:
        _write_choice(payload, given.pop("tool_choice"), losses)
    if given.pop("parallel_tool_calls", True) is False:
        losses.add(Lost.OPTION, "parallel_tool_calls")
    schema = given.pop("output_schema", None)
    if schema is not None:
        definition = {"name": _ANSWER, "schema": msgspec.json.encode(schema).decode()}
        payload["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}
    merge_options(payload, given, losses, _WITHOUT)


def _write_choice(payload: dict[str, Any], choice: str, losses: Losses) -> None:
    config = payload.get("toolConfig")
    if config is None:
        if choice not in {"auto", "none"}:
            losses.add(Lost.OPTION, f"tool_choice {choice}, without tools")
    elif choice == "none":
        losses.add(Lost.OPTION, "tool_choice none; leave the tools out instead")
    else:
        own: dict[str, Any] = {_CHOICES[choice]: {}} if choice in _CHOICES else {"tool": {"name": choice}}
        payload["toolConfig"] = {**config, "toolChoice": own}


def read_options(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request under our names, and Converse's own under its.

    >>> read_options({"inferenceConfig": {"maxTokens": 80}, "modelId": "m"})
    {'max_tokens': 80, 'modelId': 'm'}
    """
    options: dict[str, Any] = {}
    rest = {name: Where("", None, name).map(payload[name]) for name in _CONFIGS if name in payload}
    inference = dict(rest.get("inferenceConfig", {}))
    for name, own in _INFERENCE.items():
        if inference.get(own) is not None:
            options[name] = inference.pop(own)
    config = {name: value for name, value in rest.get("toolConfig", {}).items() if name != "tools" or not value}
    choice = _choice(config.get("toolChoice"))
    if choice:
        options["tool_choice"] = choice
        del config["toolChoice"]
    output = dict(rest.get("outputConfig", {}))
    schema = _schema(output.get("textFormat"))
    if schema is not None:
        options["output_schema"] = schema
        del output["textFormat"]
    own = {"inferenceConfig": inference, "toolConfig": config, "outputConfig": output}
    options |= {name: held for name, held in own.items() if held or rest.get(name) == {}}
    return options | {name: value for name, value in payload.items() if name not in _ELSEWHERE}


def _choice(choice: Any) -> str:
    """Return `choice` in our words; the empty one where we have none."""
    if choice == {"auto": {}}:
        return "auto"
    if choice == {"any": {}}:
        return "required"
    tool = field(choice, "tool") if only(choice, "tool") else None
    name = field(tool, "name") if only(tool, "name") else None
    return name if isinstance(name, str) and name not in {"auto", "none", "required"} else ""


def _schema(form: Any) -> Any:
    """Return the schema of the answer; `None` where there is none, or more is said about it."""
    structure = field(form, "structure") if only(form, "type", "structure") else None
    definition = field(structure, "jsonSchema") if only(structure, "jsonSchema") else None
    text = field(definition, "schema") if only(definition, "schema", "name") else None
    if not isinstance(text, str) or field(form, "type") != "json_schema":
        return None
    try:
        schema: Any = _decode(text)
    except (msgspec.DecodeError, RecursionError):
        return None
    return schema if is_map(schema) else None
