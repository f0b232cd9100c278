"""Blocks of Anthropic's Messages API, from and into native blocks."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

import msgspec
from msgspec.structs import replace

from suture.codecs.codec import Losses, Lost
from suture.codecs.contents import (
    arguments_object,
    keep,
    origin_of,
    put_back,
    report_address,
    report_extension,
    report_extra,
    rest_of,
    tag_of,
    unknown,
    unwrap,
)
from suture.errors import InputError
from suture.messages import (
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
from suture.wires.fields import argument_json, listed, map_of, object_of, text_of
from suture.wires.parts import data_of, media_in_words

NAME = "anthropic"
_SERVICE_RESULT = "_tool_result"
_Fields: TypeAlias = Mapping[str, Any]
_Writers: TypeAlias = Mapping[Any, Callable[[Any, Losses, str], dict[str, Any] | None]]


# Fields


# Reading


def read_content(holder: _Fields, field: str = "content", *, by_model: bool = False) -> list[ContentBlock]:
    """Return the blocks in a field, which the model said or was given."""
    content = holder.get(field)
    if content is None or content == "":
        return []
    if isinstance(content, str):
        return [AssistantGenText(content) if by_model else UserInputText(content)]
    blocks: list[ContentBlock] = []
    for place, block in enumerate(listed(content, None, field)):
        try:
            blocks.append(_read_block(block, by_model=by_model))
        except InputError as error:
            raise InputError(error.reason, path=f"{field}[{place}].{error.path}") from None
    return blocks


def _read_block(block: _Fields, *, by_model: bool) -> ContentBlock:
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


def _read_thinking(block: _Fields) -> Reasoning:
    extra = keep(NAME, block, "type", "thinking", "signature")
    if "signature" not in block:
        extra = {NAME: {**map_of(extra, NAME), "signature": None}}
    return Reasoning(text_of(block, "thinking"), text_of(block, "signature"), extension={"wire": NAME}, extra=extra)


def _read_redacted(block: _Fields) -> Reasoning:
    return Reasoning(extension={"wire": NAME, "data": text_of(block, "data")}, extra=keep(NAME, block, "type", "data"))


def _read_result(block: _Fields) -> FunctionToolResult:
    content = cast("Any", tuple(read_content(block)))
    extra = keep(NAME, block, "type", "tool_use_id", "content", "is_error")
    return FunctionToolResult(text_of(block, "tool_use_id"), "", content, bool(block.get("is_error")), extra=extra)


def _read_call(block: _Fields) -> FunctionToolCall:
    extra = keep(NAME, block, "type", "id", "name", "input")
    return FunctionToolCall(
        text_of(block, "id"), text_of(block, "name"), argument_json(block.get("input")), extra=extra
    )


# Of what the provider ran on its side the type is kept, so that it is known whose it was.


def _read_service_call(block: _Fields) -> ServerToolCall:
    call_id, name = text_of(block, "id"), text_of(block, "name")
    extra = keep(NAME, block, "id", "name", "input")
    return ServerToolCall(call_id=call_id, name=name, arguments=block.get("input"), extra=extra)


def _read_service_result(block: _Fields) -> ServerToolResult:
    call_id, name = text_of(block, "tool_use_id"), str(block["type"]).removesuffix(_SERVICE_RESULT)
    extra = keep(NAME, block, "tool_use_id", "content")
    return ServerToolResult(call_id=call_id, name=name, content=block.get("content"), extra=extra)


def _read_mcp_call(block: _Fields) -> MCPToolCall:
    call_id, name = text_of(block, "id"), text_of(block, "name")
    label, arguments = text_of(block, "server_name"), argument_json(block.get("input"))
    extra = keep(NAME, block, "id", "name", "input", "server_name")
    return MCPToolCall(call_id=call_id, name=name, arguments=arguments, server_label=label, extra=extra)


def _read_mcp_result(block: _Fields) -> MCPToolResult:
    """Return what an MCP server's tool gave, as one text; content in several blocks is kept beside it."""
    text = "\n".join([part.text for part in read_content(block) if isinstance(part, UserInputText)])
    known = ("tool_use_id", "is_error", *(["content"] if isinstance(block.get("content"), str) else []))
    absent = {name: None for name in ("content", "is_error") if block.get(name) is None}
    failed = bool(block.get("is_error"))
    return MCPToolResult(
        call_id=text_of(block, "tool_use_id"),
        content="" if failed else text,
        error=MCPToolCallError(message=text) if failed else None,
        extra={NAME: {**rest_of(block, *known), **absent}},
    )


def _read_mcp_tools(block: _Fields) -> MCPListToolsResult:
    """Return the tools that an MCP server has; their list is kept, since it must go back as it came."""
    tools = [
        ToolInfo(text_of(tool, "name"), text_of(tool, "description"), object_of(tool, "input_schema"))
        for tool in listed(block.get("tools"), None, "tools")
    ]
    label = text_of(block, "mcp_server_name")
    return MCPListToolsResult(server_label=label, tools=tools, extra=keep(NAME, block, "mcp_server_name"))


def _read_media(block: _Fields) -> UserInputImage | UserInputFile:
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


def _read_source(source: _Fields) -> dict[str, Any]:
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
    texts = [cast("_Fields", block).get("text") for block in blocks if isinstance(block, Mapping)]
    said = [text for text in texts if isinstance(text, str)]
    return "\n".join(said) if said and len(said) == len(blocks) else None


_READERS: Mapping[str, Callable[[_Fields], ContentBlock]] = {
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


# Writing


def write_content(blocks: Sequence[Any], losses: Losses, path: str = "content_blocks") -> list[dict[str, Any]]:
    """Return `blocks` as the API takes them, in their order; what it has no form for is reported."""
    return _write_blocks(blocks, _WRITERS, losses, path)


def write_system(blocks: Sequence[Any], losses: Losses) -> list[dict[str, Any]]:
    """Return the blocks of a system message, which are texts that say something; media are told in words."""
    written = _write_blocks(blocks, _SYSTEM_WRITERS, losses, "content_blocks")
    return [block for block in written if block.get("type") != "text" or str(block.get("text")).strip()]


def _write_blocks(blocks: Sequence[Any], writers: _Writers, losses: Losses, path: str) -> list[dict[str, Any]]:
    written = [writers.get(type(block), _lose)(block, losses, f"{path}[{place}]") for place, block in enumerate(blocks)]
    return [block for block in written if block is not None]


def _lose(block: Any, losses: Losses, path: str) -> None:
    losses.add(Lost.BLOCK, f"a block of type {tag_of(block)}", path)


def _write_text(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    for name in getattr(block, "extension", ()):
        losses.add(Lost.FIELD, f"{name} of a text", path)
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
    content: Any = write_content(block.content, losses, f"{path}.content")
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
        return _lose(block, losses, path)
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
    """Return a text that tells where media are, or what; they are reported."""
    words = media_in_words(block)
    losses.add(Lost.MEDIA, f"{tag_of(block)} {words[:80]}", path)
    for name, value in block.extra.items():
        report_extra(name, value, losses, path)
    return {"type": "text", "text": words}


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


def _report_details(block: Any, fields: _Fields, losses: Losses, path: str) -> None:
    """Report what is said about media beside what they are, where the form that is written has no field for it."""
    report_address(block, losses, path)
    if getattr(block, "detail", ""):
        losses.add(Lost.DETAIL, f"image detail {block.detail}", path)
    if fields["type"] == "image" and getattr(block, "name", ""):
        losses.add(Lost.DETAIL, f"file name {block.name[:80]}", path)
    implied = {"url": _PDF if fields["type"] == "document" else "", "text": _TEXT}.get(fields["source"].get("type", ""))
    if implied is not None and block.mime_type not in {"", implied}:
        losses.add(Lost.DETAIL, f"type {block.mime_type[:80]}", path)


_MEDIA = (UserInputAudio, UserInputVideo, AssistantGenImage, AssistantGenAudio, AssistantGenVideo)
_SYSTEM_WRITERS: _Writers = {
    **dict.fromkeys((UserInputText, AssistantGenText), _write_text),
    **dict.fromkeys((UserInputImage, UserInputFile, *_MEDIA), _write_in_words),
    Opaque: partial(unwrap, NAME),
}
_WRITERS: _Writers = {
    **_SYSTEM_WRITERS,
    **dict.fromkeys((UserInputImage, UserInputFile), _write_media),
    **dict.fromkeys((ServerToolCall, ServerToolResult, MCPToolCall, MCPToolResult, MCPListToolsResult), _write_service),
    Reasoning: _write_reasoning,
    FunctionToolCall: _write_call,
    FunctionToolResult: _write_result,
    ToolSearchResult: _write_search_result,
}
