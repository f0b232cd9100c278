"""Translates blocks, messages and requests of Anthropic's Messages API into native values, and back."""

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from suture import messages as native
from suture.codecs import contents
from suture.codecs.codec import Request
from suture.codecs.losses import Losses
from suture.codecs.requests import SCHEMA, Body, RequestForm
from suture.errors import InputError
from suture.providers.anthropic.stream import NAME, AnthropicReader, raise_error, read_meta
from suture.wires.fields import argument_json, is_list, is_map, map_of, object_of, text_of
from suture.wires.parts import data_of

_MAX_TOKENS = 8192
"""The default for `max_tokens`, which the API demands."""
_SERVICE_RESULT, _SERIAL = "_tool_result", "disable_parallel_tool_use"
_PDF, _TEXT = "application/pdf", "text/plain"
_IMAGES = frozenset(("image/jpeg", "image/png", "image/gif", "image/webp"))
"""The types of images that the API takes."""


# Reading blocks

# The type of what the provider ran itself, MCP servers included, is kept, so that it goes back to no other provider.
_CALL = contents.Shape(NAME, native.FunctionToolCall, call_id="id", name="name")
_SERVICE: Mapping[Any, contents.Shape] = {
    native.ServerToolCall: contents.Shape(NAME, native.ServerToolCall, call_id="id", name="name", arguments="input"),
    native.ServerToolResult: contents.Shape(NAME, native.ServerToolResult, call_id="tool_use_id", content="content"),
}


class _Reader(contents.ContentReader):
    wire = NAME

    def read_content(self, holder: Mapping[str, Any], field: str = "content") -> list[Any]:
        return [] if holder.get(field) == "" else super().read_content(holder, field)

    def read(self, block: Mapping[str, Any]) -> native.ContentBlock:
        kind = text_of(block, "type")
        if not kind:
            raise InputError("expected a type, found nothing", path="type")
        if kind == "text":  # the SDK adds the parsed output
            return self.text(text_of(block, "text"), extra=self.keep(block, "type", "text", "parsed_output"))
        if kind == "tool_use":
            return _CALL.read(block, "type", "input", arguments=argument_json(block.get("input")))
        if kind in {"server_tool_use", "mcp_tool_use"}:
            return _SERVICE[native.ServerToolCall].read(block)
        if kind.endswith(_SERVICE_RESULT) and kind != "tool_result":
            return _SERVICE[native.ServerToolResult].read(block, name=kind.removesuffix(_SERVICE_RESULT))
        return self.readers[kind](self, block) if kind in self.readers else self.unknown(block)

    def _read_thinking(self, block: Mapping[str, Any]) -> native.Reasoning:
        if block["type"] == "redacted_thinking":
            extension = {"wire": NAME, "data": text_of(block, "data")}
            return native.Reasoning(extension=extension, extra=self.keep(block, "type", "data"))
        text, signature = text_of(block, "thinking"), text_of(block, "signature")
        absent = () if "signature" in block else ("signature",)
        extra = self.keep(block, "type", "thinking", "signature", absent=absent)
        return native.Reasoning(text, signature, extension={"wire": NAME}, extra=extra)

    def _read_result(self, block: Mapping[str, Any]) -> native.FunctionToolResult:
        content, failed = _Reader().read_content(block), bool(block.get("is_error"))
        extra = self.keep(block, "type", "tool_use_id", "content", "is_error")
        return native.FunctionToolResult(text_of(block, "tool_use_id"), "", tuple(content), failed, extra=extra)

    def _read_media(self, block: Mapping[str, Any]) -> native.UserInputImage | native.UserInputFile:
        """Read an `image` or `document` block; its source is kept as it is if it would be written differently."""
        source, kind = object_of(block, "source"), block["type"]
        fields = _read_source(source)
        if kind == "image":
            media, known = native.UserInputImage(**fields), ["type"]
        else:
            fields |= {"mime_type": _PDF} if fields.get("url") else {}
            media, known = native.UserInputFile(**fields, name=text_of(block, "title")), ["type", "title"]
        if _media_fields(media) == {"type": kind, "source": source}:
            known.append("source")
        return replace(media, extra=self.keep(block, *known))

    readers: ClassVar = {
        **dict.fromkeys(("thinking", "redacted_thinking"), _read_thinking),
        **dict.fromkeys(("image", "document"), _read_media),
        "tool_result": _read_result,
    }


def _read_source(source: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of media for a source; a document that consists of texts becomes one text file."""
    kind = source.get("type")
    if kind == "base64":
        return {"base64_data": text_of(source, "data"), "mime_type": text_of(source, "media_type")}
    if kind == "url":
        return {"url": text_of(source, "url")}
    said: Any = text_of(source, "data") if kind == "text" else source.get("content") if kind == "content" else None
    if is_list(said):
        texts: list[Any] = [block.get("text") if is_map(block) else None for block in said]
        said = "\n".join(texts) if texts and all(isinstance(text, str) for text in texts) else None
    if not isinstance(said, str):
        return {}
    return {"base64_data": b64encode(said.encode()).decode(), "mime_type": _TEXT}


# Writing blocks


class _Writer(contents.BlockWriter):
    wire = NAME

    def say(self, text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

    def _write_reasoning(self, block: native.Reasoning) -> dict[str, Any] | None:
        if not self.is_own_thought(block, "data"):
            return None
        fields: dict[str, Any] = {"type": "thinking", "thinking": block.text, "signature": block.signature}
        if "data" in block.extension:
            fields = {"type": "redacted_thinking", "data": block.extension["data"]}
        return self.put_back(fields, block.extra)

    def _write_call(self, block: native.FunctionToolCall) -> dict[str, Any]:
        arguments = self.read_arguments(block.arguments, "arguments")
        fields = {"type": "tool_use", "id": block.call_id, "name": block.name, "input": arguments}
        return self.put_back(fields, block.extra)

    def _write_result(self, block: native.FunctionToolResult) -> dict[str, Any]:
        content: Any = self.write_each(block.content, "content")
        if len(content) == 1 and content[0].get("type") == "text" and content[0].keys() == {"type", "text"}:
            content = content[0]["text"]
        fields: dict[str, Any] = {"type": "tool_result", "tool_use_id": block.call_id}
        fields |= ({"content": content} if content else {}) | ({"is_error": True} if block.is_error else {})
        return self.put_back(fields, block.extra)

    def _write_service(self, block: Any) -> dict[str, Any] | None:
        """Return the block for what the provider ran itself; it goes back only to this provider."""
        if "type" not in map_of(block.extra, NAME):
            return self.lose_block(block)
        return self.put_back(_SERVICE[type(block)].write(block), block.extra)

    def _write_media(self, block: Any) -> dict[str, Any]:
        """Return the block for an image or a file; a text that describes it if the API does not take it."""
        fields: Any = _media_fields(block)
        if "source" in map_of(block.extra, NAME):
            fields = {"type": "image" if type(block) is native.UserInputImage else "document", "source": {}}
        if fields is None:
            return self.say(self.tell_media(block))
        name, is_image = getattr(block, "name", ""), fields["type"] == "image"
        implied = {"url": "" if is_image else _PDF, "text": _TEXT}.get(fields["source"].get("type", ""))
        is_typed = implied is None or block.mime_type == implied
        self.report_media(block, "" if is_image else "name", "mime_type" if is_typed else "")
        fields |= {"title": name} if name and not is_image else {}
        return self.put_back(fields, block.extra)

    writers: ClassVar = {
        **contents.BlockWriter.system_writers,
        **dict.fromkeys((native.UserInputImage, native.UserInputFile), _write_media),
        **dict.fromkeys(_SERVICE, _write_service),
        native.Reasoning: _write_reasoning,
        native.FunctionToolCall: _write_call,
        native.FunctionToolResult: _write_result,
    }


def _media_fields(block: Any) -> dict[str, Any] | None:
    """Return the type and source of the block for media; `None` if the API does not take them."""
    data = data_of(block, "")
    if data is None:
        is_image = isinstance(block, native.UserInputImage) or block.mime_type in _IMAGES
        if not block.url.startswith(("https://", "http://")) or (not is_image and block.mime_type not in {"", _PDF}):
            return None
        return {"type": "image" if is_image else "document", "source": {"type": "url", "url": block.url}}
    kind = data.mime_type.partition(";")[0]
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


# Requests


class _RequestForm(RequestForm):
    wire = NAME
    paths: ClassVar = {"stop": "stop_sequences"}
    without = ("presence_penalty", "frequency_penalty", "seed")
    choices: ClassVar = {"auto": {"type": "auto"}, "none": {"type": "none"}, "required": {"type": "any"}}
    answer: ClassVar = {"output_config": {"format": {"type": "json_schema", "schema": SCHEMA}}}
    kind = "custom"
    parameters = "input_schema"

    def write(self, request: Request, losses: Losses, body: dict[str, Any]) -> dict[str, Any]:
        return super().write(request, losses, {**body, "max_tokens": _MAX_TOKENS})

    def write_function(self, tool: native.ToolInfo, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return a function whose schema has the type that the API demands, `object`."""
        schema = tool.parameters
        schema = None if schema is None else {"type": "object", **schema}
        return super().write_function(replace(tool, parameters=schema), own)

    def write_name(self, name: str, tools: Sequence[native.ToolInfo]) -> dict[str, Any]:
        return {"type": "tool", "name": name}

    def put_choice(self, body: Body, options: Body, tools: Sequence[native.ToolInfo], losses: Losses) -> None:
        """Put the choice of a tool into `body`, with the flag that allows several calls in a reply."""
        parallel = options.pop("parallel_tool_calls", None)
        if parallel is False and self.tools in body:
            options.setdefault(self.choice, "auto")  # the API takes the flag only with a choice
        super().put_choice(body, options, tools, losses)
        if parallel is not None and body.get(self.choice, {"type": "none"}).get("type") != "none":
            body[self.choice][_SERIAL] = not parallel

    def take_choice(self, options: dict[str, Any], tools: Sequence[native.ToolInfo]) -> None:
        own = map_of(options, self.choice)
        serial = own.get(_SERIAL)
        if isinstance(serial, bool):
            options[self.choice] = contents.rest_of(own, _SERIAL)
        super().take_choice(options, tools)
        if isinstance(serial, bool):
            said = isinstance(options[self.choice], str)
            options |= {"parallel_tool_calls": not serial} if said else {self.choice: own}


# Messages


class AnthropicCodec(contents.BlockCodec):
    """Translates messages of Anthropic's API both ways.

    Reading and writing again changes only this:

    - Content that is a string becomes one text block. A tool result that is one plain text becomes a string.
    - A message without blocks is left out, and so is blank text of the system.
    - A field that is null, an `is_error` that is false, an empty list of tools and an empty `system` are left out.
    - A request without `max_tokens` asks for 8192.

    >>> from suture.messages import AgenticMessage
    >>> codec = AnthropicCodec()
    >>> codec.decode_messages([{"role": "user", "content": "hi"}])
    [AgenticMessage(role='user', content_blocks=(UserInputText(text='hi'),))]
    >>> codec.encode_request(Request([AgenticMessage.user("hi")], "Be brief.")).payload["system"]
    [{'type': 'text', 'text': 'Be brief.'}]
    """

    name: ClassVar[str] = NAME
    folder = AnthropicReader
    content_reader = _Reader
    writer = _Writer
    request_form = _RequestForm()
    system_field = "system"

    def read_message(self, item: Any) -> native.AgenticMessage:
        """Return one message; a whole response in place of a message is read as a reply."""
        return self.read_reply(item) if is_map(item) and "stop_reason" in item else super().read_message(item)

    def read_reply(self, body: Mapping[str, Any]) -> native.AgenticMessage:
        raise_error(body)
        if body.get("content") is None:
            raise InputError("expected a list, found nothing", path="content")
        blocks = _Reader(by_model=True).read_content(body)
        return native.AgenticMessage("assistant", blocks, response_meta=read_meta(body))
