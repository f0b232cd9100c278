"""Anthropic's Messages API: blocks, messages and requests, from and into native values."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, ClassVar, cast

import msgspec
from msgspec.structs import replace

from suture.codecs.codec import Codec, Losses, Lost, Request, report_meta
from suture.codecs.contents import (
    Writer,
    arguments_object,
    drop_blank,
    keep,
    lose,
    merge_options,
    origin_of,
    put_back,
    read_each,
    read_system,
    report_address,
    report_detail,
    report_extension,
    report_extras,
    rest_of,
    take_options,
    tell_in_words,
    unknown,
    unwrap,
    write_each,
    write_tools,
)
from suture.errors import ConfigError, InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    AssistantGenVideo,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    MCPListToolsResult,
    MCPToolCall,
    MCPToolCallError,
    MCPToolResult,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    ToolInfo,
    ToolSearchResult,
    UserInputAudio,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.providers.anthropic.stream import NAME, AnthropicReader, read_error, read_meta
from suture.wires import check_list
from suture.wires.fields import argument_json, expect, list_of, listed, map_of, object_of, text_of
from suture.wires.parts import data_of

_SERVICE_RESULT = "_tool_result"

_ROLES = ("user", "assistant", "system")
_NOT_OPTIONS = ("messages", "system", "tools")
_MAX_TOKENS = 8192
"""How long a reply may be where nobody says it; the API demands a number."""
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_SHARED_CHOICES = {theirs: ours for ours, theirs in _CHOICES.items()}
_RENAMED = ("tool_choice", "parallel_tool_calls", "output_schema")
_SCHEMA = "json_schema"


# Blocks read


def _read_content(holder: Mapping[str, Any], field: str = "content", *, by_model: bool = False) -> list[ContentBlock]:
    """Return the blocks in a field, which the model said or was given."""
    content = holder.get(field)
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [AssistantGenText(content) if by_model else UserInputText(content)]
    return read_each(listed(content, None, field), partial(_read_block, by_model=by_model), field)


def _read_block(block: Mapping[str, Any], *, by_model: bool) -> ContentBlock:
    kind = text_of(block, "type")
    if not kind:
        raise InputError("expected a type, found nothing", path="type")
    if kind == "text":
        text, extra = (
            text_of(block, "text"),
            keep(NAME, block, "type", "text", "parsed_output"),
        )  # the last is the SDK's
        return AssistantGenText(text, extra=extra) if by_model else UserInputText(text, extra=extra)
    reader = _READERS.get(kind, _read_service_result if kind.endswith(_SERVICE_RESULT) else None)
    return unknown(NAME, block) if reader is None else reader(block)


def _read_thinking(block: Mapping[str, Any]) -> Reasoning:
    extra = keep(NAME, block, "type", "thinking", "signature")
    if "signature" not in block:
        extra = {NAME: {**map_of(extra, NAME), "signature": None}}
    return Reasoning(text_of(block, "thinking"), text_of(block, "signature"), extension={"wire": NAME}, extra=extra)


def _read_redacted(block: Mapping[str, Any]) -> Reasoning:
    return Reasoning(extension={"wire": NAME, "data": text_of(block, "data")}, extra=keep(NAME, block, "type", "data"))


def _read_result(block: Mapping[str, Any]) -> FunctionToolResult:
    content = cast("Any", tuple(_read_content(block)))
    extra = keep(NAME, block, "type", "tool_use_id", "content", "is_error")
    return FunctionToolResult(text_of(block, "tool_use_id"), "", content, bool(block.get("is_error")), extra=extra)


def _read_call(block: Mapping[str, Any]) -> FunctionToolCall:
    extra = keep(NAME, block, "type", "id", "name", "input")
    return FunctionToolCall(
        text_of(block, "id"), text_of(block, "name"), argument_json(block.get("input")), extra=extra
    )


# Of what the provider ran on its side the type is kept, so that it is known whose it was.


def _read_service_call(block: Mapping[str, Any]) -> ServerToolCall:
    call_id, name = text_of(block, "id"), text_of(block, "name")
    extra = keep(NAME, block, "id", "name", "input")
    return ServerToolCall(call_id=call_id, name=name, arguments=block.get("input"), extra=extra)


def _read_service_result(block: Mapping[str, Any]) -> ServerToolResult:
    call_id, name = text_of(block, "tool_use_id"), str(block["type"]).removesuffix(_SERVICE_RESULT)
    extra = keep(NAME, block, "tool_use_id", "content")
    return ServerToolResult(call_id=call_id, name=name, content=block.get("content"), extra=extra)


def _read_mcp_call(block: Mapping[str, Any]) -> MCPToolCall:
    call_id, name = text_of(block, "id"), text_of(block, "name")
    label, arguments = text_of(block, "server_name"), argument_json(block.get("input"))
    extra = keep(NAME, block, "id", "name", "input", "server_name")
    return MCPToolCall(call_id=call_id, name=name, arguments=arguments, server_label=label, extra=extra)


def _read_mcp_result(block: Mapping[str, Any]) -> MCPToolResult:
    """Return what an MCP server's tool gave, as one text; content in several blocks is kept beside it."""
    text = "\n".join([part.text for part in _read_content(block) if isinstance(part, UserInputText)])
    known = ("tool_use_id", "is_error", *(["content"] if isinstance(block.get("content"), str) else []))
    absent = {name: None for name in ("content", "is_error") if block.get(name) is None}
    failed = bool(block.get("is_error"))
    return MCPToolResult(
        call_id=text_of(block, "tool_use_id"),
        content="" if failed else text,
        error=MCPToolCallError(message=text) if failed else None,
        extra={NAME: {**rest_of(block, *known), **absent}},
    )


def _read_mcp_tools(block: Mapping[str, Any]) -> MCPListToolsResult:
    """Return the tools that an MCP server has; their list is kept, since it must go back as it came."""
    tools = [
        ToolInfo(text_of(tool, "name"), text_of(tool, "description"), object_of(tool, "input_schema"))
        for tool in listed(block.get("tools"), None, "tools")
    ]
    label = text_of(block, "mcp_server_name")
    return MCPListToolsResult(server_label=label, tools=tools, extra=keep(NAME, block, "mcp_server_name"))


def _read_media(block: Mapping[str, Any]) -> UserInputImage | UserInputFile:
    """Return an `image` or `document` block; a source that would be written otherwise is kept as it is."""
    source, kind = object_of(block, "source"), block["type"]
    fields = _read_source(source)
    if kind == "image":
        media, known = UserInputImage(**fields), ["type"]
    else:
        fields |= {"mime_type": _PDF} if fields.get("url") else {}
        media, known = UserInputFile(**fields, name=text_of(block, "title")), ["type", "title"]
    if _media_fields(media) == {"type": kind, "source": source}:
        known.append("source")
    return replace(media, extra=keep(NAME, block, *known))


def _read_source(source: Mapping[str, Any]) -> dict[str, Any]:
    kind, text = source.get("type"), None
    if kind == "base64":
        return {"base64_data": text_of(source, "data"), "mime_type": text_of(source, "media_type")}
    if kind == "url":
        return {"url": text_of(source, "url")}
    if kind == "text":
        text = text_of(source, "data")
    elif kind == "content":
        text = _document_text(source.get("content"))
    return {} if text is None else {"base64_data": b64encode(text.encode()).decode(), "mime_type": _TEXT}


def _document_text(content: Any) -> str | None:
    """Return what a document of blocks says, if it is text alone."""
    if isinstance(content, str):
        return content
    blocks = cast("list[Any]", content) if isinstance(content, list) else []
    texts = [cast("Mapping[str, Any]", block).get("text") for block in blocks if isinstance(block, Mapping)]
    said = [text for text in texts if isinstance(text, str)]
    return "\n".join(said) if said and len(said) == len(blocks) else None


_READERS: Mapping[str, Callable[[Mapping[str, Any]], ContentBlock]] = {
    "thinking": _read_thinking,
    "redacted_thinking": _read_redacted,
    "image": _read_media,
    "document": _read_media,
    "tool_use": _read_call,
    "tool_result": _read_result,
    "server_tool_use": _read_service_call,
    "mcp_tool_use": _read_mcp_call,
    "mcp_tool_result": _read_mcp_result,
    "mcp_tool_listing": _read_mcp_tools,
}


# Blocks written


def _write_system(message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
    """Return the blocks of a system message, which are texts that say something; media are told in words."""
    return drop_blank(write_each(message.content_blocks, _SYSTEM_WRITERS, losses))


def _write_text(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    report_extension(block, (), losses, path)
    return put_back(NAME, {"type": "text", "text": block.text}, block.extra, losses, path)


def _write_reasoning(block: Reasoning, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return thought as it came; `None` where it came from elsewhere."""
    if origin_of(block) != NAME:
        losses.add(Lost.REASONING, f"thought {block.text[:40]!r}", path)
        return None
    report_extension(block, ("data",), losses, path)
    fields: dict[str, Any] = {"type": "thinking", "thinking": block.text, "signature": block.signature}
    if "data" in block.extension:
        fields = {"type": "redacted_thinking", "data": block.extension["data"]}
    return put_back(NAME, fields, block.extra, losses, path)


def _write_call(block: FunctionToolCall | ServerToolCall | MCPToolCall, losses: Losses, path: str) -> dict[str, Any]:
    arguments = block.arguments
    if isinstance(arguments, str):
        arguments = arguments_object(arguments, losses, f"{path}.arguments")
    fields = {"type": "tool_use", "id": block.call_id, "name": block.name, "input": arguments}
    if isinstance(block, MCPToolCall):
        fields["server_name"] = block.server_label
    return put_back(NAME, fields, block.extra, losses, path)


def _write_result(block: FunctionToolResult, losses: Losses, path: str) -> dict[str, Any]:
    content: Any = write_each(block.content, _WRITERS, losses, f"{path}.content")
    if len(content) == 1 and content[0].get("type") == "text" and content[0].keys() == {"type", "text"}:
        content = content[0]["text"]
    fields: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.call_id}
    fields |= ({"content": content} if content else {}) | ({"is_error": True} if block.is_error else {})
    return put_back(NAME, fields, block.extra, losses, path)


def _write_search_result(block: ToolSearchResult, losses: Losses, path: str) -> dict[str, Any]:
    """Return the tools that a search found, as text: a reference is good only for tools that the request declares."""
    losses.add(Lost.BLOCK, "the form of tools that were found; they are told as text", path)
    text = msgspec.json.encode(msgspec.to_builtins(block.tools)).decode()
    fields = {"type": "tool_result", "tool_use_id": block.call_id, "content": text}
    return put_back(NAME, fields, block.extra, losses, path)


def _write_service(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return what the provider ran on its side; that goes back to it alone."""
    if "type" not in map_of(block.extra, NAME):
        return lose(block, losses, path)
    if isinstance(block, ServerToolCall | MCPToolCall):
        return _write_call(block, losses, path)
    fields: dict[str, Any] = {"mcp_server_name": block.server_label} if isinstance(block, MCPListToolsResult) else {}
    if isinstance(block, ServerToolResult | MCPToolResult):
        fields = {"tool_use_id": block.call_id, "content": block.content}
    if isinstance(block, MCPToolResult):
        fields |= {"content": block.error.message} if block.error else {}
        fields["is_error"] = block.error is not None
    return put_back(NAME, fields, block.extra, losses, path)


# Images and documents: the bytes, the text, the address or the file's id

_PDF = "application/pdf"
_TEXT = "text/plain"
_IMAGES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
_BEGINNINGS = {"/9j/": "image/jpeg", "iVBOR": "image/png", "R0lGOD": "image/gif", "UklGR": "image/webp", "JVBERi": _PDF}
"""How the base64 of each type begins."""


def _write_media(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    """Return the block for an image or a file; a text that tells of it where the API takes no such thing."""
    fields = _media_fields(block)
    if "source" in map_of(block.extra, NAME):
        fields = {"type": "image" if type(block) is UserInputImage else "document", "source": dict[str, Any]()}
    if fields is None:
        return _write_in_words(block, losses, path)
    _report_details(block, fields, losses, path)
    if fields["type"] == "document" and (name := getattr(block, "name", "")):
        fields["title"] = name
    return put_back(NAME, fields, block.extra, losses, path)


def _write_in_words(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    return {"type": "text", "text": tell_in_words(block, losses, path)}


def _media_fields(block: Any) -> dict[str, Any] | None:
    """Return the type and source of the block for media; `None` where the API takes no such thing."""
    data = data_of(block, "")
    if data is None:
        if not block.url.startswith(("https://", "http://")):
            return None
        is_image = isinstance(block, UserInputImage) or block.mime_type in _IMAGES
        if not is_image and block.mime_type not in {"", _PDF}:
            return None
        return {"type": "image" if is_image else "document", "source": {"type": "url", "url": block.url}}
    kind = data.mime_type.partition(";")[0]
    if not kind:
        kind = next((kind for start, kind in _BEGINNINGS.items() if data.base64.startswith(start)), "")
    kind = "image/jpeg" if kind == "image/jpg" else kind
    if kind in _IMAGES or kind == _PDF:
        source = {"type": "base64", "media_type": kind, "data": data.base64}
        return {"type": "document" if kind == _PDF else "image", "source": source}
    if not kind.startswith("text/"):
        return None
    try:
        text = b64decode(data.base64, validate=True).decode()
    except ValueError:
        return None
    return {"type": "document", "source": {"type": "text", "media_type": _TEXT, "data": text}}


def _report_details(block: Any, fields: Mapping[str, Any], losses: Losses, path: str) -> None:
    """Report what is said about media beside what they are, where the form that is written has no field for it."""
    report_address(block, losses, path)
    report_detail(block, losses, path)
    if fields["type"] == "image" and getattr(block, "name", ""):
        losses.add(Lost.DETAIL, f"file name {block.name[:80]}", path)
    implied = {"url": _PDF if fields["type"] == "document" else "", "text": _TEXT}.get(fields["source"].get("type", ""))
    if implied is not None and block.mime_type not in {"", implied}:
        losses.add(Lost.DETAIL, f"type {block.mime_type[:80]}", path)


_MEDIA = (UserInputAudio, UserInputVideo, AssistantGenImage, AssistantGenAudio, AssistantGenVideo)
_SYSTEM_WRITERS: Mapping[Any, Writer] = {
    **dict.fromkeys((UserInputText, AssistantGenText), _write_text),
    **dict.fromkeys((UserInputImage, UserInputFile, *_MEDIA), _write_in_words),
    Opaque: partial(unwrap, NAME),
}
_WRITERS: Mapping[Any, Writer] = {
    **_SYSTEM_WRITERS,
    **dict.fromkeys((UserInputImage, UserInputFile), _write_media),
    **dict.fromkeys((ServerToolCall, ServerToolResult, MCPToolCall, MCPToolResult, MCPListToolsResult), _write_service),
    Reasoning: _write_reasoning,
    FunctionToolCall: _write_call,
    FunctionToolResult: _write_result,
    ToolSearchResult: _write_search_result,
}


# Messages and requests


class AnthropicCodec(Codec):
    """Messages as Anthropic's API takes and gives them.

    What is read and written again is the same, but for this:

    - Content that is a string becomes one text block. A tool's result that is one plain text becomes a string.
    - A message without blocks is left out, and blank text of the system's.
    - A field that is null, an `is_error` that is false, an empty list of tools and an empty `system` are left out.
    - A request without `max_tokens` asks for 8192.

    >>> codec = AnthropicCodec()
    >>> codec.decode_messages([{"role": "user", "content": "hi"}])
    [AgenticMessage(role='user', content_blocks=(UserInputText(text='hi'),))]
    >>> codec.encode_request(Request([AgenticMessage.user("hi")], "Be brief.")).payload["system"]
    [{'type': 'text', 'text': 'Be brief.'}]
    """

    name: ClassVar[str] = NAME
    folder = AnthropicReader

    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return `message` as the API's: none if it says nothing. A system message is the user's, unless read here."""
        report_meta(message, losses)
        if self.is_outside(message):
            losses.add(Lost.SYSTEM, "that this message is the system's; it is told as the user's")
            report_extras(message.extra, losses, "extra")
            blocks = _write_system(message, losses)
            return [{"role": "user", "content": blocks}] if blocks else []
        is_system = message.role == "system"
        blocks = _write_system(message, losses) if is_system else write_each(message.content_blocks, _WRITERS, losses)
        written = put_back(NAME, {"role": message.role, "content": blocks}, message.extra, losses, "extra")
        return [written] if blocks or "content" not in written else []

    def read_message(self, item: Any) -> AgenticMessage:
        """Return one message; a whole response in the place of a message is read as the reply that it is."""
        role = expect(item, dict, "a message", "").get("role")
        if role not in _ROLES:
            raise InputError(f"unknown role {role!r}; expected user, assistant or system", path="role")
        if "stop_reason" in item:
            return self.read_reply(item)
        extra = keep(NAME, item, "role", "content")
        if role == "system":
            absent = {"content": None} if item.get("content") is None else {}
            extra = {NAME: {**map_of(extra, NAME), **absent, "system": None}}
        return AgenticMessage(role, _read_content(item, by_model=role == "assistant"), extra=extra)

    def is_outside(self, message: AgenticMessage) -> bool:
        """Tell whether `message` is the system's and was not read from among the API's messages."""
        return message.role == "system" and "system" not in map_of(message.extra, NAME)

    def write_settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        system = [{"type": "text", "text": request.instruction}] if request.instruction.strip() else []
        for message in self.write_outside(request, losses):
            report_extras(message.extra, losses, "extra")
            system += _write_system(message, losses)
        tools = write_tools(request.tools, NAME, losses, _write_tool)
        fields = {"system": system, "tools": tools}
        body = {name: value for name, value in fields.items() if value}
        return {**body, **_write_options(request.options, losses, has_tools=bool(tools))}

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        body: Mapping[str, Any] = self.plain(payload)
        check_list(body.get("messages"))
        messages = self.read_messages(body["messages"])
        instruction, system = read_system(_read_content(body, "system"))
        tools = [_read_tool(tool) for tool in list_of(body, "tools")]
        return Request([*system, *messages], instruction, tuple(tools), _read_options(body))

    def read_reply(self, body: Mapping[str, Any]) -> AgenticMessage:
        if body.get("type") == "error":
            raise read_error(body)
        if body.get("content") is None:
            raise InputError("expected a list, found nothing", path="content")
        return AgenticMessage("assistant", _read_content(body, by_model=True), response_meta=read_meta(body))


# Tools


def _write_tool(tool: ToolInfo) -> dict[str, Any]:
    own = map_of(tool.extra, NAME)
    if own.get("type", "custom") != "custom":
        return dict(own)
    schema: Mapping[str, Any] = {"properties": {}} if tool.parameters is None else tool.parameters
    description = {"description": tool.description} if tool.description else {}
    written = {"name": tool.name, **description, "input_schema": {"type": "object", **schema}}
    return put_back(NAME, written, {NAME: own}, Losses())


def _read_tool(tool: Mapping[str, Any]) -> ToolInfo:
    """Return one of a request's tools; one of the API's own kinds is kept whole."""
    schema, kind = tool.get("input_schema"), text_of(tool, "type")
    if kind not in {"", "custom"}:
        name = text_of(tool, "name") or text_of(tool, "mcp_server_name") or kind
        return ToolInfo(name, extra={NAME: dict(tool)})
    if not isinstance(schema, dict):
        raise InputError("expected a tool with an input_schema, or with a type", path="tools")
    extra = keep(NAME, tool, "name", "description", "input_schema")
    return ToolInfo(text_of(tool, "name"), text_of(tool, "description"), cast("dict[str, Any]", schema), extra=extra)


# Options


def _write_options(options: Mapping[str, Any], losses: Losses, *, has_tools: bool) -> dict[str, Any]:
    left, schema = rest_of(options), options.get("output_schema")
    body: dict[str, Any] = {"max_tokens": _MAX_TOKENS, **take_options(left, {"stop": "stop_sequences"})}
    choice = _write_choice(options.get("tool_choice"), options.get("parallel_tool_calls"), has_tools=has_tools)
    if choice is not None:
        body["tool_choice"] = choice
    if schema is not None:
        body["output_config"] = {"format": {"type": _SCHEMA, "schema": schema}}
    merge_options(body, rest_of(left, *_RENAMED), losses, without=("seed",))
    return body


def _write_choice(choice: Any, parallel: Any, *, has_tools: bool) -> dict[str, Any] | None:
    """Return which tool the model is to call, and whether several; the API takes it only beside tools."""
    if isinstance(choice, Mapping):
        written = dict(cast("Mapping[str, Any]", choice))
    elif isinstance(choice, str):
        written = {"type": _CHOICES[choice]} if choice in _CHOICES else {"type": "tool", "name": choice}
    elif choice is not None:
        raise ConfigError(f"tool_choice is a text or {NAME}'s own object, not {type(choice).__name__}")
    elif parallel is False and has_tools:
        written = {"type": "auto"}
    else:
        return None
    if parallel is None or written.get("type") == "none":
        return written
    return {**written, "disable_parallel_tool_use": not parallel}


def _read_options(body: Mapping[str, Any]) -> dict[str, Any]:
    options = {name: value for name, value in body.items() if value is not None and name not in _NOT_OPTIONS}
    if "stop_sequences" in options:
        options["stop"] = options.pop("stop_sequences")
    if "tool_choice" in options:
        options |= _read_choice(object_of(options, "tool_choice"))
    if "output_config" in options:
        output = object_of(options, "output_config")
        del options["output_config"]
        options |= _read_output(output)
    return options


def _read_choice(choice: Mapping[str, Any]) -> dict[str, Any]:
    """Return a choice of tools in the shared words; as it is, where those cannot say it."""
    kind, serial = choice.get("type"), choice.get("disable_parallel_tool_use")
    rest = {name: value for name, value in choice.items() if name not in {"type", "disable_parallel_tool_use"}}
    name = rest.pop("name", None) if kind == "tool" else _SHARED_CHOICES.get(str(kind))
    if rest or not isinstance(name, str) or not isinstance(serial, bool | None):
        return {"tool_choice": dict(choice)}
    if kind == "tool" and name in _CHOICES:  # a tool that is called as one of the shared words
        return {"tool_choice": dict(choice)}
    return {"tool_choice": name} if serial is None else {"tool_choice": name, "parallel_tool_calls": not serial}


def _read_output(output: Mapping[str, Any]) -> dict[str, Any]:
    """Return the schema of the answer, and what else is said about it."""
    form = cast("Any", output.get("format"))
    if not isinstance(form, dict) or form.keys() != {"type", "schema"} or form["type"] != _SCHEMA:
        return {"output_config": dict(output)}
    rest = {name: value for name, value in output.items() if name != "format"}
    return {"output_schema": form["schema"], **({"output_config": rest} if rest else {})}
