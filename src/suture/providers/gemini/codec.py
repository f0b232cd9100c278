"""Google's Gemini, generateContent: messages and requests from and into native values."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from suture.codecs.codec import Codec, Losses, Lost, Request, located, report_meta
from suture.codecs.contents import (
    keep,
    merge_options,
    put_back,
    read_system,
    rest_of,
    take_options,
    write_each,
    write_tools,
)
from suture.errors import ConfigError, InputError
from suture.messages import AgenticMessage, AssistantGenText, ContentBlock, Reasoning, ToolInfo
from suture.providers.gemini.contents import SYSTEM_WRITERS, WRITERS, Calls, ids_in, read_content, says_something
from suture.providers.gemini.stream import GEMINI, GeminiReader, camel, check_error, first_candidate, read_meta
from suture.wires import check_list
from suture.wires.fields import expect, is_map, list_of, map_of, object_of, text_of

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
_FUNCTIONS = "functionDeclarations"


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
    folder = GeminiReader
    has_bytes = True

    def is_outside(self, message: AgenticMessage) -> bool:
        return message.role == "system"

    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the content that says `message`; none where nothing of it can be said."""
        report_meta(message, losses)
        if message.role == "system":
            losses.add(Lost.SYSTEM, "that the system says this")
        parts = write_each(message.content_blocks, WRITERS, losses)
        if len(parts) < len(message.content_blocks) and not any(map(says_something, parts)):
            return []
        made = {"role": "model" if message.role == "assistant" else "user", "parts": parts}
        return [put_back(GEMINI, made, message.extra, losses)]

    def write_settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        said: dict[str, Any] = {"parts": [{"text": request.instruction}] if request.instruction else []}
        for message in self.write_outside(request, losses):
            said["parts"] += write_each(message.content_blocks, SYSTEM_WRITERS, losses)
            said = put_back(GEMINI, said, message.extra, losses)
        tools = _group_tools(write_tools(request.tools, GEMINI, losses, _write_tool))
        payload: dict[str, Any] = {"systemInstruction": said} if said["parts"] else {}
        payload |= {"tools": tools} if tools else {}
        _write_options(payload, request.options, losses)
        return payload

    def read_messages(self, items: Sequence[Any]) -> list[AgenticMessage]:
        """Return what contents say; calls without an id, and their responses, are given one."""
        calls = Calls(frozenset(ids_in(items)))
        messages: list[AgenticMessage] = []
        for index, item in enumerate(items):
            with located(index=index):
                messages.append(read_content(item, str(index), calls))
        return messages

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        body = camel(self.plain(payload))
        check_list(body.get("contents"))
        messages = self.read_messages(body["contents"])
        instruction, system = _read_system(body.get("systemInstruction"))
        options = _read_options({name: value for name, value in body.items() if name not in _OUTSIDE})
        return Request([*system, *messages], instruction, tuple(_read_tools(body)), options)

    def read_reply(self, body: Mapping[str, Any]) -> AgenticMessage:
        """Return what the body of a response says; of several candidates, the first."""
        body = camel(expect(body, Mapping, "an object", "reply"))
        check_error(body)
        candidate = first_candidate(body)
        content = {**object_of(candidate or {}, "content", optional=True), "role": "model"}
        message = read_content(content, text_of(body, "responseId"), Calls())
        blocks = [block for block in message.content_blocks if not _says_nothing(block)]
        meta = read_meta(body, candidate or {}, blocks)
        if not candidate:
            raise InputError("it holds no candidate")
        return AgenticMessage("assistant", blocks, response_meta=meta, extra=message.extra)


def _says_nothing(block: ContentBlock) -> bool:
    """Return whether a block is a text without words or signature: a stream may end in one."""
    if isinstance(block, Reasoning):
        return not block.text and not block.signature and not block.extra
    return isinstance(block, AssistantGenText) and not block.text and not block.extra


# What the system says


def _read_system(said: Any) -> tuple[str, list[AgenticMessage]]:
    """Return what the system says: one plain text, or a message where there is more to it."""
    if said is None:
        return "", []
    if isinstance(said, str):
        return said, []
    content = camel(expect(said, Mapping, "an object", "systemInstruction"))
    parts = content.pop("parts", None)
    with located("systemInstruction"):
        blocks = read_content({"parts": parts}, "system", Calls()).content_blocks
    return read_system(blocks, keep(GEMINI, content))


# Tools


def _read_tools(body: Mapping[str, Any]) -> list[ToolInfo]:
    """Return the tools of a request: the functions it declares, and those that Gemini runs itself."""
    tools: list[ToolInfo] = []
    for place, tool in enumerate(list_of(body, "tools")):
        for field, value in camel(tool).items():
            if field == _FUNCTIONS:
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


def _write_tool(tool: ToolInfo) -> dict[str, Any]:
    own = map_of(tool.extra, GEMINI)
    if is_map(own.get(_TOOL)):
        return dict(own[_TOOL])
    made: dict[str, Any] = {"name": tool.name}
    if tool.description:
        made["description"] = tool.description
    if tool.parameters is not None:
        made["parameters" if _SCHEMA in own else _SCHEMA] = dict(tool.parameters)
    return {_FUNCTIONS: [put_back(GEMINI, made, {GEMINI: own}, Losses())]}


def _group_tools(tools: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return `tools` with all functions in one list, where the first of them stands."""
    made: list[dict[str, Any]] = []
    declared: list[Any] = []
    for tool in tools:
        if _FUNCTIONS not in tool:
            made.append(tool)
            continue
        if not declared:
            made.append({_FUNCTIONS: declared})
        declared += tool[_FUNCTIONS]
    return made


# Options


def _write_options(payload: dict[str, Any], options: Mapping[str, Any], losses: Losses) -> None:
    rest = rest_of(options)
    config = take_options(rest, _CONFIG)
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
