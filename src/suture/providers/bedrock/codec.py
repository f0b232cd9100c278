"""Translates messages and requests of Amazon Bedrock's Converse into native values, and back.

Each of its blocks is an object with one key, which is its type.
"""

import re
from binascii import a2b_base64, b2a_base64
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, NoReturn

import msgspec

from suture import messages as native
from suture.codecs import contents
from suture.codecs.codec import Encoded, Request, located
from suture.codecs.losses import Losses, Lost
from suture.codecs.requests import SCHEMA, Body, RequestForm
from suture.errors import InputError
from suture.providers.bedrock.stream import SERVER_CALL, WIRE, BedrockReader, has_only, read_meta, read_refusal
from suture.wires.fields import argument_json, expect, is_list, is_map, list_of, listed, map_of, parse_json, text_of
from suture.wires.parts import data_of

_OFFICE = "application/vnd.openxmlformats-officedocument"
_TYPES: Mapping[str, Mapping[str, str]] = {
    "image": {form: f"image/{form}" for form in ("png", "jpeg", "gif", "webp")},
    "video": {
        **{form: f"video/{form}" for form in ("mp4", "webm", "mpeg")},
        "mov": "video/quicktime",
        "mkv": "video/x-matroska",
        "flv": "video/x-flv",
        "wmv": "video/x-ms-wmv",
        "three_gp": "video/3gpp",
    },
    "audio": {
        **{form: f"audio/{form}" for form in ("opus", "wav", "aac", "flac", "mp4", "ogg", "pcm", "webm")},
        "mp3": "audio/mpeg",
        "mka": "audio/x-matroska",
        "m4a": "audio/x-m4a",
    },
    "document": {
        "pdf": "application/pdf",
        "csv": "text/csv",
        "doc": "application/msword",
        "docx": f"{_OFFICE}.wordprocessingml.document",
        "xls": "application/vnd.ms-excel",
        "xlsx": f"{_OFFICE}.spreadsheetml.sheet",
        "html": "text/html",
        "txt": "text/plain",
        "md": "text/markdown",
    },
}
"""The MIME type for each format, by kind of media."""
_FORMATS = {kind: {mime: form for form, mime in table.items()} for kind, table in _TYPES.items()}
_ALIASES = {
    "image/jpg": "image/jpeg",
    "audio/mp3": "audio/mpeg",
    "audio/x-wav": "audio/wav",
    "audio/wave": "audio/wav",
    "audio/m4a": "audio/x-m4a",
    "text/x-markdown": "text/markdown",
}
_NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9_\-()\[\]]+")
_LONGEST_NAME = 200


# Reading


class _Reader(contents.ContentReader):
    wire = WIRE
    _service_ids: Sequence[Any] = ()
    """The ids of calls that have their result in the same message, because the service ran them."""

    def read_content(self, holder: Mapping[str, Any], field: str = "content") -> list[Any]:
        blocks = listed(holder.get(field) or [], None, field)
        results = [map_of(block, "toolResult") for block in blocks] if self.by_model else []
        self._service_ids = [result.get("toolUseId") for result in results if result.get("type") is not None]
        return contents.read_each(blocks, self.read, field)

    def read(self, block: Mapping[str, Any]) -> Any:
        if "type" in block:
            raise InputError("a block with a type belongs to another wire", path="type")
        if len(block) == 1:
            [(kind, held)] = block.items()
            if kind == "text" and held is not None:
                return self.text(text_of(block, kind))
            if kind in self.readers and held is not None:
                held = held if kind == "json" else expect(held, Mapping, "an object", kind)
                with located(kind):
                    made = self.readers[kind](self, kind, held)
                if made is not None:
                    return made
        return self.unknown(block)

    def _read_call(self, _: str, use: Mapping[str, Any]) -> native.FunctionToolCall | native.ServerToolCall:
        call_id, name = text_of(use, "toolUseId"), text_of(use, "name")
        rest = contents.rest_of(use, "toolUseId", "name", "input")
        if use.get("type") == SERVER_CALL or call_id in self._service_ids:
            own = {WIRE: {"type": None, **rest}}
            return native.ServerToolCall(call_id=call_id, name=name, arguments=use.get("input"), extra=own)
        return native.FunctionToolCall(call_id, name, argument_json(use.get("input")), extra=self.keep(rest))

    def _read_result(self, _: str, result: Mapping[str, Any]) -> native.FunctionToolResult | native.ServerToolResult:
        call_id, content = text_of(result, "toolUseId"), list_of(result, "content")
        if call_id in self._service_ids and result.get("type") is not None:
            extra = self.keep(result, "toolUseId", "content")
            return native.ServerToolResult(call_id=call_id, content=content, extra=extra)
        is_error = result.get("status") == "error"
        extra = self.keep(result, "toolUseId", "content", "status" if is_error else "")
        return native.FunctionToolResult(call_id, "", _ResultReader().read_content(result), is_error, extra=extra)

    def _read_reasoning(self, _: str, reasoning: Mapping[str, Any]) -> native.Reasoning | None:
        redacted, said = reasoning.get("redactedContent"), reasoning.get("reasoningText")
        if has_only(reasoning, "redactedContent") and isinstance(redacted, str):
            return native.Reasoning(signature=redacted, extension={"wire": WIRE, "redacted": True})
        if not has_only(reasoning, "reasoningText") or not is_map(said):
            return None
        with located("reasoningText"):
            text, signature = text_of(said, "text"), text_of(said, "signature")
        extra = self.keep(said, "text", "signature" if signature else "")
        return native.Reasoning(text, signature, extension={"wire": WIRE}, extra=extra)

    def _read_citations(self, _: str, cited: Mapping[str, Any]) -> native.AssistantGenText | None:
        """Return a text with its citations; `None` if there is no text, or if there are other fields."""
        citations, content = cited.get("citations"), cited.get("content")
        if not self.by_model or not has_only(cited, "citations", "content"):
            return None
        if not is_list(citations) or not is_list(content):
            return None
        pieces: list[Any] = [piece.get("text") if has_only(piece, "text") else None for piece in content]
        if not all(isinstance(piece, str) for piece in pieces) or not "".join(pieces).strip():
            return None
        return native.AssistantGenText("".join(pieces), extension={"wire": WIRE, "citations": citations})

    def _read_media(self, kind: str, held: Mapping[str, Any]) -> Any:
        """Return the block for media; `None` if a block cannot hold them."""
        source, form = _read_source(held.get("source")), held.get("format")
        if source is None or not isinstance(held.get("format", ""), str):
            return None
        fields, rest = source
        if form is not None:
            fields["mime_type"] = _TYPES[kind].get(form) or f"{'application' if kind == 'document' else kind}/{form}"
        if form is None or form not in _TYPES[kind]:
            rest["format"] = form
        if kind == "document":
            kind, fields["name"] = "file", text_of(held, "name")
        rest |= contents.rest_of(held, "format", "source", "name")
        table = contents.MODEL_MEDIA if self.by_model else contents.USER_MEDIA
        return table.get(kind, native.UserInputFile)(**fields, extra={WIRE: rest} if rest else {})

    readers: ClassVar[Mapping[str, Callable[..., Any]]] = {
        "toolUse": _read_call,
        "toolResult": _read_result,
        "reasoningContent": _read_reasoning,
        "citationsContent": _read_citations,
        **dict.fromkeys(_TYPES, _read_media),
    }


class _ResultReader(_Reader):
    """Reads the content of a result."""

    def _read_json(self, _: str, value: Any) -> native.UserInputText:
        """Return JSON in a result as a text that is marked to become JSON again."""
        return native.UserInputText(msgspec.json.encode(value).decode(), extra={WIRE: {"json": True}})

    readers: ClassVar = {"json": _read_json, **{kind: _Reader.readers[kind] for kind in ("image", "video", "document")}}


def _read_source(source: Any) -> tuple[dict[str, Any], dict[str, Any]] | None:
    """Return the attributes of a block for `source`, and the fields to keep beside them."""
    if not is_map(source) or len(source) != 1:
        return None
    [(form, held)] = source.items()
    if form == "bytes" and isinstance(held, str) and held:
        return {"base64_data": held}, {}
    if form == "text" and isinstance(held, str) and held:
        data = b2a_base64(held.encode(), newline=False).decode()
        return {"base64_data": data, "mime_type": "text/plain"}, {"source": "text"}
    if form == "s3Location" and has_only(held, "uri", "bucketOwner"):
        uri = held.get("uri")
        if isinstance(uri, str) and uri.startswith("s3://"):
            return {"url": uri}, contents.rest_of(held, "uri")
    return None


# Writing


class _Writer(contents.BlockWriter):
    wire = WIRE

    def say(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def write_text(self, block: native.UserInputText | native.AssistantGenText) -> dict[str, Any]:
        self.put_back({}, block.extra)
        extension: Mapping[str, Any] = getattr(block, "extension", {})
        citations = extension.get("citations") if extension and contents.origin_of(block) == WIRE else None
        if citations is not None:
            return {"citationsContent": {"content": [{"text": block.text}], "citations": citations}}
        self.report_extension(block)
        return {"text": block.text}

    def _write_reasoning(self, block: native.Reasoning) -> dict[str, Any] | None:
        if not self.is_own_thought(block, "redacted"):
            return None
        if block.extension.get("redacted"):
            self.report_extras(block.extra)
            return {"reasoningContent": {"redactedContent": block.signature}}
        said = {"text": block.text, **({"signature": block.signature} if block.signature else {})}
        return {"reasoningContent": {"reasoningText": self.put_back(said, block.extra)}}

    def _write_call(self, block: native.FunctionToolCall) -> dict[str, Any]:
        arguments = self.read_arguments(block.arguments)
        use = {"toolUseId": block.call_id, "name": block.name, "input": arguments}
        return {"toolUse": self.put_back(use, block.extra)}

    def _write_result(self, block: native.FunctionToolResult) -> dict[str, Any]:
        content = self.write_each(block.content, "content", self._result_writers)
        result = self.put_back({"toolUseId": block.call_id, "content": content}, block.extra)
        return {"toolResult": {**result, "status": "error"} if block.is_error else result}

    def _write_result_text(self, block: native.UserInputText) -> dict[str, Any]:
        """Return a text of a result, as JSON if it was read from JSON."""
        is_json = block.extra == {WIRE: {"json": True}}
        value = parse_json(block.text) if is_json else None  # it may have been cut since it was read
        return self.write_text(block) if value is None else {"json": value}

    def _write_server(self, block: Any) -> dict[str, Any] | None:
        """Return the block for what the service ran itself; it goes back only to the service."""
        if WIRE not in block.extra:
            return self.lose_block(block)
        kind, fields = "toolResult", {"toolUseId": block.call_id}
        if isinstance(block, native.ServerToolCall):
            kind, fields = "toolUse", fields | {"name": block.name, "input": block.arguments}
        else:
            fields["content"] = block.content
        return {kind: self.put_back(fields, block.extra)}

    def _write_media(self, block: Any) -> dict[str, Any]:
        kind, kept = contents.MEDIA[block.__class__].replace("file", "document"), map_of(block.extra, WIRE)
        in_s3 = not block.base64_data and block.url.startswith("s3://")
        data = None if in_s3 else data_of(block, "")
        form = kept.get("format")
        if "format" not in kept and (data or in_s3):
            form = self._format_of(kind, data.mime_type if data else block.mime_type)
        if (data is None and not in_s3) or (form is None and "format" not in kept):
            return self.say(self.tell_media(block))
        self.report_media(block, "name", "mime_type")
        named = {"name": self._document_name(block.name)} if kind == "document" else {}
        made = self.put_back({"format": form, **named}, block.extra)
        owner = {"bucketOwner": made.pop("bucketOwner")} if "bucketOwner" in made else {}
        if data is None:
            source: Any = {"s3Location": {"uri": block.url, **owner}}
        else:
            source = {"bytes": data.base64}
            with suppress(ValueError):
                source = {"text": a2b_base64(data.base64).decode()} if kept.get("source") == "text" else source
        return {kind: {**made, "source": source}}

    def _format_of(self, kind: str, mime: str) -> str | None:
        """Return the format for a MIME type; an unknown type of text document becomes plain text."""
        mime = mime.partition(";")[0].strip().lower()
        mime = _ALIASES.get(mime, mime)
        is_text = mime.startswith("text/") or mime.partition("/")[2] in {"json", "xml", "yaml"}
        if mime in _FORMATS[kind] or kind != "document" or not is_text:
            return _FORMATS[kind].get(mime)
        self.lose(Lost.DETAIL, f"that a file is {mime}")
        return "txt"

    def _document_name(self, name: str) -> str:
        stem, _, ending = name.rpartition(".")
        made = stem if stem and len(ending) <= 4 else name
        made = _NOT_IN_NAMES.sub(" ", made).strip()[:_LONGEST_NAME].strip() or "document"
        if name and made != name:
            self.lose(Lost.DETAIL, f"file name {name[:80]!r}")
        return made

    writers: ClassVar = {
        **dict.fromkeys((native.UserInputText, native.AssistantGenText), write_text),
        **dict.fromkeys((native.ServerToolCall, native.ServerToolResult), _write_server),
        **dict.fromkeys(contents.MEDIA, _write_media),
        native.Reasoning: _write_reasoning,
        native.FunctionToolCall: _write_call,
        native.FunctionToolResult: _write_result,
        native.Opaque: contents.BlockWriter.unwrap,
    }
    system_writers: ClassVar = {**writers, **dict.fromkeys(contents.MEDIA, contents.BlockWriter.write_words)}
    _result_writers: ClassVar = {
        **writers,
        **dict.fromkeys((native.UserInputAudio, native.AssistantGenAudio), contents.BlockWriter.write_words),
        native.UserInputText: _write_result_text,
    }


# Requests


class _RequestForm(RequestForm):
    wire = WIRE
    paths: ClassVar = {
        "max_tokens": "inferenceConfig.maxTokens",
        "temperature": "inferenceConfig.temperature",
        "top_p": "inferenceConfig.topP",
        "stop": "inferenceConfig.stopSequences",
    }
    without = ("top_k", "presence_penalty", "frequency_penalty", "seed")
    tools = "toolConfig.tools"
    choice = "toolConfig.toolChoice"
    choices: ClassVar = {"auto": {"auto": {}}, "required": {"any": {}}, "none": {"none": {}}}
    answer: ClassVar = {
        "outputConfig": {
            "textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"name": "answer", "schema": SCHEMA}}}
        }
    }
    function = "toolSpec"
    parameters = "inputSchema.json"

    def write_schema(self, schema: Any) -> str:
        return msgspec.json.encode(schema).decode()

    def read_schema(self, said: Any) -> Any:
        return parse_json(said) if isinstance(said, str) else None

    def is_function(self, tool: Mapping[str, Any]) -> bool:
        """Return whether a tool is a function; any other kind is one object, under its own name."""
        return not tool or self.function in tool or not all(map(is_map, tool.values()))

    def write_name(self, name: str, tools: Sequence[native.ToolInfo]) -> dict[str, Any]:
        return {"tool": {"name": name}}

    def put_choice(self, body: Body, options: Body, tools: Sequence[native.ToolInfo], losses: Losses) -> None:
        """Put the choice of a tool into `body`; report one that Converse has no form for."""
        choice, has_tools = options.get("tool_choice"), "toolConfig" in body
        if choice == "none" and has_tools:
            losses.add(Lost.OPTION, "tool_choice none; leave the tools out instead")
        elif choice not in (None, "auto", "none") and not has_tools:
            losses.add(Lost.OPTION, f"tool_choice {choice}, without tools")
        if choice == "none" or not has_tools:
            options.pop("tool_choice", None)
        super().put_choice(body, options, tools, losses)
        if options.pop("parallel_tool_calls", True) is False:
            losses.add(Lost.OPTION, "parallel_tool_calls")


# Messages


class BedrockCodec(contents.BlockCodec):
    """Translates messages of Converse as JSON, in which bytes are base64 text; the `bytes` of boto3 are read as well.

    Reading and writing again changes only this:

    - A field that is null is left out, and so is a message without blocks.
    - A call's `input` becomes an empty object if it was missing, or was not an object.
    - A document's name loses the characters that Converse does not allow.
    - The texts of `citationsContent` become one text.
    - Blank text in `system` is left out.
    - An output schema is called `answer`, and its JSON text has no spaces.
    - If a request has calls but no tools, `toolConfig` gets the names of the called tools, because Converse demands it.
    - `ResponseMetadata`, which boto3 adds to a response, is dropped; its `RequestId` becomes the reply's id.

    >>> from suture.messages import AgenticMessage
    >>> BedrockCodec().encode_messages([AgenticMessage.user("hi")]).payload
    [{'role': 'user', 'content': [{'text': 'hi'}]}]
    """

    name = WIRE
    folder = BedrockReader
    content_reader = _Reader
    writer = _Writer
    request_form = _RequestForm()
    system_field = "system"
    has_bytes = True

    def encode_request(self, request: Request) -> Encoded:
        payload, losses = super().encode_request(request)
        return Encoded(self.name_called_tools(payload), losses)

    def name_called_tools(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return `body`; if it has no tools, with the names of those that its messages call, which Converse demands."""
        if "toolConfig" in body:
            return body
        blocks = [block for message in body["messages"] for block in message["content"]]
        tools = self.request_form.name_tools([block["toolUse"]["name"] for block in blocks if "toolUse" in block])
        return {**body, "toolConfig": {"tools": tools}} if tools else body

    def read_reply(self, body: Mapping[str, Any]) -> native.AgenticMessage:
        if "output" not in body:
            raise read_refusal(body)
        message = expect(map_of(body, "output").get("message"), dict, "an object", "output.message")
        listed(message.get("content"), None, "output.message.content")
        with located("output.message"):
            blocks = _Reader(by_model=True).read_content(message)
        extra = contents.keep(WIRE, message, "role", "content")
        return native.AgenticMessage("assistant", blocks, response_meta=read_meta(body), extra=extra)

    def framing(self) -> NoReturn:
        """Raise, because boto3 splits the bytes of a stream itself and returns the events that a reader takes."""
        raise NotImplementedError("boto3 takes Bedrock's event streams apart itself; feed its events to reader()")
