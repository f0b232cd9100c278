"""Results of MCP servers as results of tools."""

import json
from base64 import b64decode
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from mcp import types

from suture.messages import AudioPart, FilePart, ImagePart, Part, TextPart, ToolResult, VideoPart

_MEDIA = {"image": ImagePart, "audio": AudioPart, "video": VideoPart}


def as_tool_result(given: types.CallToolResult) -> ToolResult:
    """Return a server's result in Suture's own form, with nothing left out.

    Structured content becomes JSON text, unless a text says the same: servers repeat it for text-only clients.

    >>> from mcp.types import CallToolResult
    >>> failed = {"content": [{"type": "text", "text": "no such page"}], "isError": True}
    >>> as_tool_result(CallToolResult.model_validate(failed))
    ToolResult(parts=(TextPart(text='no such page'),), is_error=True)
    >>> as_tool_result(CallToolResult.model_validate({"content": [], "structuredContent": {"pages": 3}})).parts
    (TextPart(text='{"pages": 3}'),)
    """
    said = given.model_dump(by_alias=True)
    parts = [_part(block) for block in said["content"]]
    # NaN and Infinity, which JSON does not have, become their names.
    structured: Any = json.loads(json.dumps(said["structuredContent"]), parse_constant=str)
    texts: list[str] = [block["text"] for block in said["content"] if block["type"] == "text"]
    if structured is not None and not _repeats(structured, texts):
        parts.append(TextPart(json.dumps(structured, ensure_ascii=False)))
    if said["isError"] and not parts:
        parts.append(TextPart("The tool failed and did not say why."))
    return ToolResult(parts, is_error=said["isError"])


def _part(block: dict[str, Any]) -> Part:
    match block["type"]:
        case "text":
            return TextPart(block["text"])
        case "image" | "audio":
            return _medium(block["data"], block["mimeType"])
        case "resource_link":  # other tools of the server may be able to read it
            kind = f" ({block['mimeType']})" if block["mimeType"] else ""
            described = f"\n{block['description']}" if block["description"] else ""
            return TextPart(f"Resource {block['title'] or block['name']}{kind}: {block['uri']}{described}")
        case _:
            found, uri = block["resource"], str(block["resource"]["uri"])
            if "text" in found:
                return TextPart(f"Resource {uri}:\n{found['text']}")
            return _medium(found["blob"], found["mimeType"] or "application/octet-stream", uri)


def _medium(data: str, mime: str, uri: str = "") -> Part:
    """Return an image, audio, video or file part; data that every provider would refuse is described in a text."""
    plain = "".join(data.split())
    about: dict[str, Any] = {"base64_data": plain, "mime_type": mime, "extra": {"uri": uri} if uri else {}}
    media = _MEDIA.get(mime.partition("/")[0]) or partial(FilePart, name=uri.rpartition("/")[2] or uri)
    with suppress(ValueError):
        if b64decode(plain, validate=True):
            return media(**about)
    return TextPart(f"The server sent {uri or 'a medium'} ({mime}), and its data is empty or no base64.")


def _repeats(structured: dict[str, Any], texts: Sequence[str]) -> bool:
    """Return whether the texts repeat the structured content, or the value that it wraps, as JSON or item by item."""
    wanted = [structured, *(structured.values() if structured.keys() == {"result"} else ())]
    values = [_value(text) for text in texts]
    return bool(texts) and any(given in (*texts, *values, values, list(texts)) for given in wanted)


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=str)
    except (ValueError, RecursionError):
        return text
