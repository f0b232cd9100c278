"""Translates parts, contents and requests of Gemini's generateContent into native values, and back.

Each part is one block, and has one main field, such as `functionCall`. Other fields of the part are kept flat in
`extra`, and other fields inside the main one under its name.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_not, itemgetter
from typing import Any, ClassVar

from msgspec.structs import replace

from suture import messages as native
from suture.codecs import contents
from suture.codecs.codec import Request
from suture.codecs.losses import Losses, Lost
from suture.codecs.requests import SCHEMA, RequestForm
from suture.errors import InputError
from suture.providers.gemini import stream
from suture.wires.fields import (
    argument_json,
    expect,
    inner,
    is_list,
    is_map,
    list_of,
    map_of,
    object_of,
    parse_json,
    text_of,
)
from suture.wires.parts import data_of

_CODE = "code_execution"
"""The name of the tool behind `executableCode`, as Gemini calls it."""
_MIME_TYPES = {
    "image": "image/png",
    "audio": "audio/wav",
    "video": "video/mp4",
    "file": "application/octet-stream",
}
"""The default MIME type for each kind of media."""
_SERVER: Mapping[str, tuple[Any, str, str]] = {
    "executableCode": (native.ServerToolCall, "arguments", ""),
    "codeExecutionResult": (native.ServerToolResult, "content", ""),
    "toolCall": (native.ServerToolCall, "arguments", "args"),
    "toolResponse": (native.ServerToolResult, "content", "response"),
}
"""For parts of tools that Gemini runs: the block, its attribute, and the field for that (empty: all fields)."""
_EMPTY_BLOCKS = (
    native.AssistantGenText(""),
    native.Reasoning("", extension={"wire": stream.GEMINI}),
    native.Opaque({"type": f"{stream.GEMINI}.block", "value": {}}),
)
"""Blocks that say nothing. The last is what the SDK makes of an unknown part; the API would refuse it."""
_TOOL = "tool"
"""The name under which a tool that Gemini runs itself is kept."""
_NAMED_SCHEMAS = ("properties", "$defs", "definitions", "patternProperties", "dependentSchemas")
"""The keywords that hold schemas by a name, which is no keyword."""
_VALUES = ("default", "const", "enum", "examples", "example")
"""The keywords that hold values, in which nothing is a schema."""
_FUNCTIONS, _SCHEMA, _OLDER_SCHEMA = "functionDeclarations", "parametersJsonSchema", "parameters"


# Ids for calls without one


def _identify(messages: Iterable[native.AgenticMessage], stem: str | None = None) -> list[native.AgenticMessage]:
    """Return `messages` with an id on every call; each response without one gets the id of the call that it answers.

    A response without an id answers the first waiting call with its name. Only calls of the latest turn wait. A turn
    may be several neighbouring contents of the model, because the SDK records a streamed turn like that.
    """
    found, waiting = list(messages), list[tuple[str, str, bool]]()
    taken = {getattr(block, "call_id", "") for message in found for block in message.content_blocks}
    begins, last = False, ""
    for index, message in enumerate(found):
        blocks: list[Any] = list(message.content_blocks)
        count = 0
        begins, last = message.role == "assistant" and (begins or last != "assistant"), message.role
        for place, block in enumerate(blocks):
            if isinstance(block, native.FunctionToolCall):
                waiting, begins = [] if begins else waiting, False
                call_id = block.call_id or stream.mint(str(index) if stem is None else stem, count, block)
                while not block.call_id and call_id in taken:
                    call_id += "_"
                waiting.append((call_id, block.name, bool(block.call_id)))
                blocks[place] = block if block.call_id else replace(block, call_id=call_id)
                count += 1
            elif isinstance(block, native.FunctionToolResult):
                place_of, said = (0, block.call_id) if block.call_id else (1, block.name)
                fits = [call for call in waiting if call[place_of] == said]
                if fits:
                    answered = min(fits, key=itemgetter(2))  # first a call that had no id
                    waiting.remove(answered)
                    blocks[place] = block if block.call_id else replace(block, call_id=answered[0])
        if any(map(is_not, blocks, message.content_blocks)):
            found[index] = replace(message, content_blocks=tuple(blocks))
    return found


# Reading contents


class _Reader(contents.ContentReader):
    wire = stream.GEMINI

    def read_content(self, holder: Mapping[str, Any], field: str = "parts") -> list[Any]:
        return contents.read_each(list_of(holder, field), self.read, field)

    def read(self, block: Mapping[str, Any]) -> native.ContentBlock:
        """Return the block for a part; an unknown part is kept whole."""
        for name, read in self.readers.items():
            if name in block:
                return read(self, block, name, inner(block, name, None))
        if block.get("thought"):
            text, signature = block.get("text", ""), block.get("thoughtSignature") or ""
            extra = self.keep(block, "thought", "thoughtSignature", "text", absent=() if "text" in block else ("text",))
            return native.Reasoning(text, signature, extension={"wire": self.wire}, extra=extra)
        return self.text(block["text"], extra=self.keep(block, "text")) if "text" in block else self.unknown(block)

    def _keep(self, part: Any, name: str, *known: str, absent: Iterable[str] = (), **marks: Any) -> dict[str, Any]:
        """Return the `extra` for a part: its other fields, those inside `name` that are not `known`, and `marks`."""
        inside = {field: value for field, value in part[name].items() if field not in known} | dict.fromkeys(absent)
        rest = {**contents.rest_of(part, name), **({name: inside} if inside else {}), **marks}
        return {self.wire: rest} if rest else {}

    def _read_media(self, part: Any, name: str, thing: Mapping[str, Any]) -> native.ContentBlock:
        """Return media as the block for their MIME type; a part without data or without such a block is kept whole."""
        source, field = ("data", "base64_data") if name == "inlineData" else ("fileUri", "url")
        mime_type, held = thing.get("mimeType") or "", thing.get(source)
        kind = mime_type.partition("/")[0] if isinstance(mime_type, str) else ""
        media = contents.MODEL_MEDIA.get(kind) if self.by_model else contents.USER_MEDIA.get(kind, native.UserInputFile)
        if source == "data" and isinstance(held, str):
            held = held.translate(stream.STANDARD)  # the SDK has URL-safe base64
        if not held or media is None:
            return self.unknown({**part, name: {**thing, **({source: held} if held else {})}})
        is_bare = not mime_type and source == "data"
        extra = self._keep(part, name, source, "mimeType", absent=["mimeType"] if is_bare else ())
        return media(mime_type=mime_type, extra=extra, **{field: held})

    def _read_call(self, part: Any, name: str, call: Mapping[str, Any]) -> native.ContentBlock:
        extra = self._keep(part, name, "id", "name", "args", absent=[] if "args" in call else ["args"])
        call_id, tool = call.get("id") or "", call.get("name") or ""
        return native.FunctionToolCall(call_id, tool, argument_json(call.get("args")), extra=extra)

    def _read_result(self, part: Any, name: str, result: Mapping[str, Any]) -> native.ContentBlock:
        text, form = _read_response(result.get("response"))
        content: list[Any] = [
            _Reader().read(each) if {"inlineData", "fileData"} & each.keys() else self.unknown(each)
            for each in list_of(result, "parts", path=name)
        ]
        content[:0] = [] if text is None else [native.UserInputText(text)]
        absent = [] if "response" in result else ["response"]
        extra = self._keep(part, name, "id", "name", "response", "parts", absent=absent, **form)
        call_id, tool, failed = result.get("id") or "", result.get("name") or "", _is_failure(result.get("response"))
        return native.FunctionToolResult(call_id, tool, content, failed, extra=extra)

    def _read_server(self, part: Any, name: str, thing: Mapping[str, Any]) -> native.ContentBlock:
        """Return the block for what Gemini ran itself; the part's name is kept, so that only Gemini gets it back."""
        kind, field, holder = _SERVER[name]
        said = {key: value for key, value in thing.items() if key != "id"}
        tool, held, beside = _CODE, said, dict[str, Any]()
        if holder:
            tool, held, beside = said.pop("toolType", None) or "", said.pop(holder, None), said
        extra = self._keep(part, name, *thing, **{name: beside})
        return kind(thing.get("id") or "", tool, extra=extra, **{field: held})

    readers: ClassVar[Mapping[str, Callable[..., native.ContentBlock]]] = {
        "functionCall": _read_call,
        "functionResponse": _read_result,
        **dict.fromkeys(_SERVER, _read_server),
        **dict.fromkeys(("inlineData", "fileData"), _read_media),
    }


def _read_response(response: Any) -> tuple[str | None, dict[str, Any]]:
    """Return the text of a response, and a mark of its form unless it is a text under `output` or `error`.

    The mark `{"output": None}` means an object that became JSON text; `{"output": "result"}`, a text under that name.
    """
    if response is None:
        return None, {}
    if not is_map(response):
        raise InputError(f"expected an object, found {type(response).__name__}", path="functionResponse.response")
    if not response:
        return None, {"output": None}
    [(name, value), *more] = response.items()
    if more or not isinstance(value, str):
        return argument_json(response), {"output": None}
    return value, {} if name in {"output", "error"} else {"output": name}


def _is_failure(response: Any) -> bool:
    """Return whether a response reports an error; `"error": null` is none."""
    return is_map(response) and "output" not in response and response.get("error") not in (None, False)


# Writing contents


def _identity(block: Any) -> dict[str, Any]:
    """Return the id and the name of a call or a result, if it has them."""
    return {name: value for name, value in (("id", block.call_id), ("name", block.name)) if value}


def _write_response(text: str, form: Any, *, is_error: bool) -> dict[str, Any]:
    """Return a response with `text`, in the form in which it was read if that still fits."""
    said: Any = {form: text} if form is not None else parse_json(text or "{}")  # it may have been shortened
    if said.__class__ is not dict or (is_error and not _is_failure(said)):
        return {"error" if is_error else "output": text}
    return said


class _Writer(contents.BlockWriter):
    wire = stream.GEMINI

    def say(self, text: str) -> dict[str, Any]:
        return {"text": text}

    def _report_text(self, block: native.UserInputText) -> None:
        """Report what is lost of a text, which is written into the response itself."""
        self.write_text(block)

    def _write_thought(self, block: native.Reasoning) -> dict[str, Any] | None:
        if not self.is_own_thought(block):
            return None
        made: dict[str, Any] = {"text": block.text, "thought": True}
        if block.signature:
            made["thoughtSignature"] = block.signature
        return self.put_back(made, block.extra)

    def _write_media(self, block: Any) -> dict[str, Any]:
        self.report_media(block, "mime_type")
        kind = contents.MEDIA[type(block)]
        data = data_of(block, _MIME_TYPES[kind])
        if data is not None:
            return self.put_back({"inlineData": {"mimeType": data.mime_type, "data": data.base64}}, block.extra)
        if not block.url:
            return self.say(self.tell_media(block))
        where = {"mimeType": block.mime_type} if block.mime_type else {}
        if not where and kind != "file":
            self.lose(Lost.DETAIL, f"that {block.url[:80]} is {kind}; give its mime_type")
        return self.put_back({"fileData": {**where, "fileUri": block.url}}, block.extra)

    def _write_call(self, block: native.FunctionToolCall) -> dict[str, Any]:
        arguments = self.read_arguments(block.arguments, "arguments")
        part = self.put_back({"functionCall": {**_identity(block), "args": arguments}}, block.extra)
        if arguments:  # perhaps it was read without any, and then `put_back` removes them
            part["functionCall"]["args"] = arguments
        return part

    def _write_result(self, block: native.FunctionToolResult) -> dict[str, Any]:
        texts = [held.text for held in block.content if isinstance(held, native.UserInputText)]
        beside = self.write_each(block.content, "content", self._result_writers)
        own: Mapping[str, Any] = map_of(block.extra, self.wire) if block.extra else {}
        response = _write_response("\n".join(texts), own.get("output", "output"), is_error=block.is_error)
        made = {**_identity(block), "response": response, **({"parts": beside} if beside else {})}
        if not block.extra:
            return {"functionResponse": made}
        kept = {name: value for name, value in own.items() if name != "output"}  # the mark for the form of the response
        part = self.put_back({"functionResponse": made}, {**block.extra, self.wire: kept} if own else block.extra)
        if texts:
            part["functionResponse"]["response"] = response
        return part

    def _write_server(self, block: native.ServerToolCall | native.ServerToolResult) -> dict[str, Any] | None:
        """Return the part for what Gemini ran itself; what other services ran has no form here."""
        own = map_of(block.extra, self.wire)
        part = next((part for part, (kind, _, _) in _SERVER.items() if part in own and type(block) is kind), "")
        if not part:
            return self.lose_block(block)
        _, field, name = _SERVER[part]
        held = getattr(block, field)
        thing: Any = {"toolType": block.name or None, name: held} if name else held
        if not is_map(thing):
            return self.lose_block(block)
        present = {key: value for key, value in {"id": block.call_id or None, **thing}.items() if value is not None}
        return self.put_back({part: present}, block.extra)

    writers: ClassVar = {
        **contents.BlockWriter.system_writers,
        **dict.fromkeys(contents.MEDIA, _write_media),
        **dict.fromkeys((native.ServerToolCall, native.ServerToolResult), _write_server),
        native.Reasoning: _write_thought,
        native.FunctionToolCall: _write_call,
        native.FunctionToolResult: _write_result,
    }
    _result_writers: ClassVar = {**writers, native.UserInputText: _report_text}


# Requests


def _has_references(schema: Any) -> bool:
    """Return whether there may be references in a schema; most have none, and are written with each request."""
    return is_map(schema) and ("$defs" in schema or "definitions" in schema)


def bare_references(schema: Any, *kept: str) -> Any:
    """Return a schema with nothing beside a `$ref` but the keywords `kept` and those that begin with `$`.

    400: "If a schema node has $ref set, then only description and default can be set alongside it" (opencode#12295,
    gcli2api#374); in the schema of an answer not even these, as the documentation of `responseJsonSchema` says.

    >>> bare_references({"properties": {"city": {"$ref": "#/$defs/City", "default": None, "title": "City"}}})
    {'properties': {'city': {'$ref': '#/$defs/City'}}}
    """
    if is_list(schema):
        return [bare_references(each, *kept) for each in schema]
    if not is_map(schema):
        return schema
    is_reference = isinstance(schema.get("$ref"), str)
    made: dict[str, Any] = {}
    for name, value in schema.items():
        if is_reference and not name.startswith("$") and name not in kept:
            continue
        if name in _NAMED_SCHEMAS and is_map(value):
            made[name] = {key: bare_references(each, *kept) for key, each in value.items()}
        else:
            made[name] = value if name in _VALUES else bare_references(value, *kept)
    return made


class _RequestForm(RequestForm):
    wire = stream.GEMINI
    paths: ClassVar = {
        "max_tokens": "generationConfig.maxOutputTokens",
        "temperature": "generationConfig.temperature",
        "top_p": "generationConfig.topP",
        "top_k": "generationConfig.topK",
        "presence_penalty": "generationConfig.presencePenalty",
        "frequency_penalty": "generationConfig.frequencyPenalty",
        "seed": "generationConfig.seed",
        "stop": "generationConfig.stopSequences",
    }
    without = ("parallel_tool_calls",)
    choice = "toolConfig.functionCallingConfig"
    choices: ClassVar = {"auto": {"mode": "AUTO"}, "none": {"mode": "NONE"}, "required": {"mode": "ANY"}}
    answer: ClassVar = {"generationConfig": {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA}}
    parameters = _SCHEMA
    no_arguments = None

    def write_name(self, name: str, tools: Sequence[native.ToolInfo]) -> dict[str, Any]:
        return {"mode": "ANY", "allowedFunctionNames": [name]}

    def is_function(self, tool: Mapping[str, Any]) -> bool:
        return not is_map(tool.get(_TOOL))

    def write_schema(self, schema: Any) -> Any:
        return bare_references(schema) if _has_references(schema) else schema

    def write_tools(self, tools: Sequence[native.ToolInfo], losses: Losses) -> list[dict[str, Any]]:
        """Return `tools` with all functions in one list, at the place of the first function."""
        made: list[dict[str, Any]] = []
        functions: list[dict[str, Any]] = []
        for tool in super().write_tools(tools, losses):
            if _TOOL in tool:
                made.append(tool[_TOOL])
                continue
            made += [] if functions else [{_FUNCTIONS: functions}]
            functions.append(tool)
        return made

    def read_tools(self, tools: Sequence[Mapping[str, Any]]) -> list[native.ToolInfo]:
        """Return the functions that a request declares, and the tools that Gemini runs itself."""
        read: list[native.ToolInfo] = []
        for place, tool in enumerate(tools):
            for field, value in tool.items():
                if field == _FUNCTIONS:
                    read += map(self.read_function, list_of(tool, field, path=f"tools[{place}]"))
                else:
                    read.append(native.ToolInfo(field, extra={stream.GEMINI: {_TOOL: {field: value}}}))
        return read

    # A schema under its older name is marked, so that it is written under that name again.

    def write_function(self, tool: native.ToolInfo, own: Mapping[str, Any]) -> dict[str, Any]:
        made = super().write_function(tool, {name: value for name, value in own.items() if name != _SCHEMA})
        if _SCHEMA in own and _SCHEMA in made:
            made[_OLDER_SCHEMA] = made.pop(_SCHEMA)
        elif _has_references(made.get(_SCHEMA)):
            made[_SCHEMA] = bare_references(made[_SCHEMA], "description", "default")
        return made

    def read_function(
        self, function: Mapping[str, Any], marks: Mapping[str, Any] = native.FrozenMap()
    ) -> native.ToolInfo:
        if _SCHEMA in function or _OLDER_SCHEMA not in function:
            return super().read_function(function, marks)
        newer = {**contents.rest_of(function, _OLDER_SCHEMA), _SCHEMA: function[_OLDER_SCHEMA]}
        return super().read_function(newer, {_SCHEMA: None})


# Messages


class GeminiCodec(contents.BlockCodec):
    """Translates contents of the Gemini API and Vertex AI both ways.

    Reading and writing again changes only this:

    - Names of fields are written in camel case; bytes and the SDK's base64 become plain base64. An optional field that
      is null or empty is left out. A content without a role becomes the user's, as do those of `function` and `tool`;
      one without parts is left out.
    - The texts of a response become one text before its media. A result without content becomes an empty text.
    - A call without an id gets one, `call_<place>_<number>`; a response without one gets the id of the call it answers.
    - The functions that a request declares are written in one list, and each of its other tools in a separate one.
    - An empty text in a reply is left out, and so is a blank one in the system instruction, which loses its role.

    >>> codec = GeminiCodec()
    >>> codec.decode_messages([{"role": "model", "parts": [{"text": "At 06:12."}]}])
    [AgenticMessage(role='assistant', content_blocks=(AssistantGenText(text='At 06:12.'),))]
    """

    name: ClassVar[str] = stream.GEMINI
    messages_field: ClassVar[str] = "contents"
    field_of_blocks = "parts"
    roles: ClassVar = {**dict.fromkeys(("user", "function", "tool", None), "user"), "model": "assistant"}
    model_role = "model"
    folder = stream.GeminiReader
    content_reader = _Reader
    writer = _Writer
    request_form = _RequestForm()
    system_field = "systemInstruction"
    has_bytes = True

    def write_system(self, request: Request, losses: Losses) -> dict[str, Any] | None:
        parts = super().write_system(request, losses)
        return {"parts": parts} if parts else None

    def link(self, messages: Iterable[native.AgenticMessage]) -> list[native.AgenticMessage]:
        """Return `messages` with ids on the calls and responses that have none."""
        return _identify(messages)

    def read_message(self, item: Any) -> native.AgenticMessage:
        return super().read_message(stream.normalise(item))

    def read_request(self, body: Mapping[str, Any]) -> Request:
        listed = {"contents": body["contents"]} if "contents" in body else {}
        return super().read_request({**stream.normalise(contents.rest_of(body, "contents")), **listed})

    def read_system(self, body: Mapping[str, Any]) -> tuple[str, list[native.AgenticMessage]]:
        said = body.get("systemInstruction")
        if said is None or isinstance(said, str):
            return said or "", []
        parts = expect(said, Mapping, "an object", self.system_field).get("parts")
        return super().read_system({self.system_field: parts})

    def read_reply(self, body: Mapping[str, Any]) -> native.AgenticMessage:
        """Return the message in the body of a response; only the first of several candidates is read."""
        body = stream.normalise(expect(body, Mapping, "an object", "reply"))
        stream.check_error(body)
        candidate = stream.first_candidate(body)
        content = {**object_of(candidate or {}, "content", optional=True), "role": "model"}
        [message] = _identify([self.read_message(content)], text_of(body, "responseId"))
        # A stream may end with a text that is empty and has no signature.
        blocks = [block for block in message.content_blocks if block not in _EMPTY_BLOCKS]
        meta = stream.read_meta(body, candidate or {}, blocks)
        if not candidate:
            raise InputError("it holds no candidate")
        return native.AgenticMessage("assistant", blocks, response_meta=meta, extra=message.extra)
