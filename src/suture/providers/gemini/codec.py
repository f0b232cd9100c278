"""Google's Gemini, generateContent: requests, replies and streams from and into native values."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from suture.codecs.codec import CODECS, Codec, Losses, Lost, Request, StreamReader
from suture.codecs.contents import as_json, keep, merge_options, put_back, report_extra
from suture.errors import ConfigError, InputError
from suture.messages import AgenticMessage, ToolInfo, UserInputText
from suture.providers.gemini.contents import (
    GEMINI,
    Calls,
    camel,
    read_content,
    read_contents,
    write_content,
    write_system,
)
from suture.providers.gemini.stream import GeminiReader, read_reply
from suture.wires import check_list, plain
from suture.wires.fields import is_map, list_of, map_of

_OUTSIDE = ("contents", "systemInstruction", "tools")
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


class GeminiCodec(Codec):
    """Contents as the Gemini API and Vertex AI take and give them.

    What is read and written again is the same, but for this:

    - Names of fields are written in camel case; bytes and the SDK's base64 become plain base64. An optional field that
      is null or empty is left out. A content without a role is the user's, as are those of `function` and `tool`.
    - The texts of a response become one, and stand before its media. A result without content says an empty text.
    - A call without an id gets one, `call_<place>_<number>`, and a response without an id that of the call it answers.
    - All functions that a request declares stand in one list, and its other tools each in one of their own.
    - In a reply, a text without words is left out.

    >>> codec = GeminiCodec()
    >>> codec.decode_messages([{"role": "model", "parts": [{"text": "At 06:12."}]}])
    [AgenticMessage(role='assistant', content_blocks=(AssistantGenText(text='At 06:12.'),))]
    """

    name: ClassVar[str] = GEMINI
    messages_field: ClassVar[str] = "contents"

    def is_outside(self, message: AgenticMessage) -> bool:
        return message.role == "system"

    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the content that says `message`; none where nothing of it can be said."""
        return write_content(message, losses)

    def write_settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        leading = request.messages[: self.leading_system(request.messages)]
        said = write_system(request.instruction, leading, losses)
        tools = _write_tools(request.tools, losses)
        payload: dict[str, Any] = {"systemInstruction": said} if said is not None else {}
        payload |= {"tools": tools} if tools else {}
        _write_options(payload, request.options, losses)
        return payload

    def decode_messages(self, items: Sequence[Any]) -> list[AgenticMessage]:
        """Return the messages that contents (dicts, with bytes or base64, or the SDK's objects) say."""
        check_list(items)
        return super().decode_messages([as_json(item) for item in items])

    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what contents say; calls without an id, and their responses, are given one."""
        return read_contents(items)

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        body = camel(plain(as_json(payload)))
        check_list(body.get("contents"))
        messages = self.read_messages(body["contents"])
        instruction, system = _read_system(body.get("systemInstruction"))
        options = _read_options({name: value for name, value in body.items() if name not in _OUTSIDE})
        return Request([*system, *messages], instruction, tuple(_read_tools(body)), options)

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        """Return what the body of a response says; of several candidates, the first."""
        return read_reply(payload)

    def reader(self) -> StreamReader:
        return GeminiReader()


# What the system says


def _read_system(said: Any) -> tuple[str, list[AgenticMessage]]:
    """Return what the system says: one plain text, or a message where there is more to it."""
    if said is None:
        return "", []
    if isinstance(said, str):
        return said, []
    if not is_map(said):
        raise InputError(f"expected an object, found {type(said).__name__}", path="systemInstruction")
    content = camel(said)
    parts = content.pop("parts", None)
    try:
        blocks = read_content({"parts": parts}, "system", Calls()).content_blocks
    except InputError as error:
        raise InputError(error.reason, path=f"systemInstruction.{error.path}") from None
    if not content and len(blocks) == 1 and isinstance(blocks[0], UserInputText) and not blocks[0].extra:
        return blocks[0].text, []
    return "", [AgenticMessage("system", blocks, extra=keep(GEMINI, content))]


# Tools


def _read_tools(body: Mapping[str, Any]) -> list[ToolInfo]:
    """Return the tools of a request: the functions it declares, and those that Gemini runs itself."""
    tools: list[ToolInfo] = []
    for place, tool in enumerate(list_of(body, "tools")):
        for field, value in camel(tool).items():
            if field == "functionDeclarations":
                declared = list_of({field: value}, field, path=f"tools[{place}]")
                tools += [_read_tool(camel(declaration)) for declaration in declared]
            else:
                tools.append(ToolInfo(field, extra={GEMINI: {_TOOL: {field: value}}}))
    return tools


def _read_tool(declaration: Mapping[str, Any]) -> ToolInfo:
    """Return a function as declared; a schema under its older name is marked, to be written there again."""
    schema = _SCHEMA if _SCHEMA in declaration else "parameters"
    extra = keep(GEMINI, declaration, "name", "description", schema)
    if "parameters" in declaration and schema != _SCHEMA:
        extra = {GEMINI: {**map_of(extra, GEMINI), _SCHEMA: None}}
    return ToolInfo(declaration.get("name", ""), declaration.get("description", ""), declaration.get(schema), extra)


def _write_tools(tools: Iterable[ToolInfo], losses: Losses) -> list[dict[str, Any]]:
    """Return `tools` as a request has them: all functions in one list, where the first of them stands."""
    made: list[dict[str, Any]] = []
    declared: list[dict[str, Any]] = []
    for place, tool in enumerate(tools):
        path = f"tools[{place}]"
        run = map_of(tool.extra, GEMINI).get(_TOOL)
        if is_map(run):
            made.append(dict(run))
        elif _is_foreign(tool):
            losses.add(Lost.TOOL, f"{tool.name}, a tool that another provider runs", path)
        else:
            if not declared:
                made.append({"functionDeclarations": declared})
            declared.append(_write_tool(tool, losses, path))
    return made


def _is_foreign(tool: ToolInfo) -> bool:
    """Return whether another provider runs a tool: only that one has something to say about it."""
    bare = tool.parameters is None and not tool.description
    return bare and GEMINI not in tool.extra and any(name in CODECS for name in tool.extra)


def _write_tool(tool: ToolInfo, losses: Losses, path: str) -> dict[str, Any]:
    own = map_of(tool.extra, GEMINI)
    made: dict[str, Any] = {"name": tool.name}
    if tool.description:
        made["description"] = tool.description
    if tool.parameters is not None:
        made["parameters" if _SCHEMA in own else _SCHEMA] = dict(tool.parameters)
    for name, value in tool.extra.items():
        if not is_map(value) or name not in CODECS:
            report_extra(name, value, losses, path)
        elif name != GEMINI:
            for field, held in value.items():
                if held is not None:
                    losses.add(Lost.TOOL, f"{name} {field} of {tool.name}", path)
    return put_back(GEMINI, made, {GEMINI: own}, losses, path)


# Options


def _write_options(payload: dict[str, Any], options: Mapping[str, Any], losses: Losses) -> None:
    """Put the options of a request into `payload`, under Gemini's own names."""
    rest = {name: value for name, value in options.items() if value is not None}
    config = {own: rest.pop(name) for name, own in _CONFIG.items() if name in rest}
    if isinstance(config.get("stopSequences"), str):
        config["stopSequences"] = [config["stopSequences"]]
    if "output_schema" in rest:
        config |= {"responseMimeType": _JSON, "responseJsonSchema": rest.pop("output_schema")}
    if config:
        payload["generationConfig"] = config
    if "tool_choice" in rest:
        payload["toolConfig"] = {"functionCallingConfig": _write_choice(rest.pop("tool_choice"))}
    merge_options(payload, rest, losses, ("parallel_tool_calls",))


def _write_choice(choice: Any) -> dict[str, Any]:
    if is_map(choice):
        return dict(choice)
    if not isinstance(choice, str):
        raise ConfigError(f"tool_choice is a text or a functionCallingConfig, not {type(choice).__name__}")
    if choice in _CHOICES:
        return {"mode": _CHOICES[choice]}
    return {"mode": "ANY", "allowedFunctionNames": [choice]}


def _read_options(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a request under the names that all providers share; the rest as it is."""
    options: dict[str, Any] = {}
    rest = dict(payload)
    settings = rest.pop("generationConfig", None)
    if is_map(settings):
        config = camel(settings)
        options |= {name: config.pop(own) for name, own in _CONFIG.items() if own in config}
        if config.get("responseMimeType") == _JSON and "responseJsonSchema" in config:
            options["output_schema"] = config.pop("responseJsonSchema")
            del config["responseMimeType"]
        settings = config if config or not options else None
    if settings is not None:
        options["generationConfig"] = settings
    return {**options, **_read_tool_config(rest)}


def _read_tool_config(payload: dict[str, Any]) -> dict[str, Any]:
    """Return `payload` with the choice among the tools under the name that all providers share."""
    held = payload.get("toolConfig")
    config = camel(held) if is_map(held) else {}
    choice = _read_choice(config.pop("functionCallingConfig", None))
    if choice is None:
        return payload
    others = {name: value for name, value in payload.items() if name != "toolConfig"}
    return {"tool_choice": choice, **others, **({"toolConfig": config} if config else {})}


def _read_choice(held: Any) -> str | None:
    """Return the choice that a function calling config says; `None` where it says more than one name can."""
    match camel(held) if is_map(held) else {}:
        case {"mode": "ANY", "allowedFunctionNames": [str(name)], **rest} if not rest and name not in _CHOICES:
            return name
        case {"mode": mode, **rest} if not rest.get("allowedFunctionNames") and rest.keys() <= {"allowedFunctionNames"}:
            return next((name for name, own in _CHOICES.items() if own == mode), None)
        case _:
            return None
