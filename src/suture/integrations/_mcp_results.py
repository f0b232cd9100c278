"""What a tool of an MCP server gave, as a `ToolResult`. Imported only by those who have the SDK."""

import json
from collections.abc import Sequence
from typing import Any, cast

from mcp.types import (
    AudioContent,
    CallToolResult,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)

from suture.messages import AudioPart, FilePart, ImagePart, Part, TextPart, ToolResult, VideoPart

__all__ = ["as_tool_result"]

_SILENT = "The tool failed and did not say why."
_MEDIA = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}


def as_tool_result(given: CallToolResult) -> ToolResult:
    """Return a server's result in Suture's own form, with nothing left out.

    Structured content is told as JSON, unless a text says the same: servers repeat it for those who read texts only.

    >>> from mcp.types import CallToolResult, TextContent
    >>> from suture.integrations._mcp_results import as_tool_result
    >>> as_tool_result(CallToolResult(content=[TextContent(text="no such page")], is_error=True))
    ToolResult(parts=(TextPart(text='no such page'),), is_error=True)
    >>> as_tool_result(CallToolResult(content=[], structured_content={"pages": 3})).parts
    (TextPart(text='{"pages": 3}'),)
    """
    parts = [_part(block) for block in given.content]
    # What is no number in JSON, as NaN, is told by its name.
    structured: Any = json.loads(json.dumps(given.structured_content), parse_constant=str)
    texts = [block.text for block in given.content if isinstance(block, TextContent)]
    if structured is not None and not _is_said(structured, texts):
        parts.append(TextPart(json.dumps(structured, ensure_ascii=False)))
    if given.is_error and not parts:
        parts.append(TextPart(_SILENT))
    return ToolResult(parts, is_error=given.is_error)


def _part(block: ContentBlock) -> Part:
    match block:
        case TextContent():
            return TextPart(block.text)
        case ImageContent():
            return ImagePart(base64_data=block.data, mime_type=block.mime_type)
        case AudioContent():
            return AudioPart(base64_data=block.data, mime_type=block.mime_type)
        case ResourceLink():
            return TextPart(_link(block))
        case EmbeddedResource():
            return _resource(block)


def _resource(block: EmbeddedResource) -> Part:
    """Return an embedded resource as what its type says it is."""
    found = block.resource
    uri = str(found.uri)
    if isinstance(found, TextResourceContents):
        return TextPart(f"Resource {uri}:\n{found.text}")
    mime = found.mime_type or "application/octet-stream"
    media = _MEDIA.get(mime.partition("/")[0])
    if media is not None:
        return media(base64_data=found.blob, mime_type=mime, extra={"uri": uri})
    return FilePart(base64_data=found.blob, mime_type=mime, name=uri.rpartition("/")[2] or uri, extra={"uri": uri})


def _link(block: ResourceLink) -> str:
    """Return where a resource is, in words: other tools of the server may be able to read it."""
    kind = f" ({block.mime_type})" if block.mime_type else ""
    described = f"\n{block.description}" if block.description else ""
    return f"Resource {block.title or block.name}{kind}: {block.uri}{described}"


def _is_said(structured: Any, texts: Sequence[str]) -> bool:
    """Tell whether the texts hold all of the structured content: as JSON, or what it wraps as it is, or in a row."""
    wanted = [structured]
    if isinstance(structured, dict) and list(cast("dict[str, Any]", structured)) == ["result"]:
        wanted.append(structured["result"])
    values = [_value(text) for text in texts]
    return bool(texts) and any(given in (*texts, *values, values, list(texts)) for given in wanted)


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text
