"""OpenAI's Responses API: a flat list of items."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from msgspec.structs import replace

from suture import messages as native
from suture.codecs import contents
from suture.codecs.codec import Codec, Encoded, Request, report_meta
from suture.codecs.losses import Losses, Lost
from suture.codecs.requests import SCHEMA, RequestForm
from suture.providers.openai_responses import items as table
from suture.providers.openai_responses.stream import ResponsesReader
from suture.providers.openai_responses.wire import CallType
from suture.wires.fields import given, is_map, map_of, parse_json, text_of
from suture.wires.parts import Data, data_of, file_name
from suture.wires.values import ASIDE, KIND

_NO_CITATION: dict[str, Any] = {"annotations": []}


class _RequestForm(RequestForm):
    wire = table.WIRE
    paths: ClassVar = {"max_tokens": "max_output_tokens"}
    without = ("top_k", "presence_penalty", "frequency_penalty", "seed", "stop")
    answer: ClassVar = {"text": {"format": {"type": "json_schema", "name": "answer", "schema": SCHEMA}}}
    head: ClassVar = {"type": "function"}

    def write_name(self, name: str, tools: Sequence[native.ToolInfo]) -> dict[str, Any]:
        """Return the choice of one tool: by its name or, if the service runs it, by its type."""
        kind = next((table.own_type(tool.extra) for tool in tools if tool.name == name), "") or "function"
        return {"type": kind, "name": name} if kind in {"function", "custom"} else {"type": kind}

    def write_function(self, tool: native.ToolInfo, own: Mapping[str, Any]) -> dict[str, Any]:
        """Return a function that says whether its schema is strict."""
        return super().write_function(tool, {"strict": False, **own})

    def read_function(
        self, function: Mapping[str, Any], marks: Mapping[str, Any] = native.FrozenMap()
    ) -> native.ToolInfo:
        strict = function.get("strict")
        marks = {"strict": None} if strict is None else {}
        return super().read_function(contents.rest_of(function, "" if strict else "strict"), marks)


class OpenAIResponsesCodec(Codec):
    """Items of Responses: consecutive items of the model are one message, every other item is a separate message.

    A call of a custom tool, the local shell or the patch tool is a `FunctionToolCall`, too. It is written back in its
    original form, and so is its result. What the service's own tools did goes back only to the service.

    Reading and writing again changes only this:

    - A single text without other fields is written as a string, in a message for the model and in an output. A message
      of the model has a type, and a list as its content.
    - A field that is null is left out. So are empty fields of items that the service ran, and fields that the SDK adds
      for its user. A missing id becomes an empty one.
    - A reference has a type. A text in a message with an id has a list of citations, even if it is empty, and
      likelihoods only if they were asked for.
    - Reasoning has a summary, even if it is empty, and no status.
    - An assistant message without content is left out. A file by value gets a name if it has none.
    - An item that was made after reasoning loses its id if that reasoning is no longer in its message.
    - A function says whether its schema is strict, and always has a schema; `input` is a list.

    >>> from suture.messages import AgenticMessage
    >>> codec = OpenAIResponsesCodec()
    >>> codec.encode_messages([AgenticMessage.tool_result("call_1", "add", "42")]).payload
    [{'type': 'function_call_output', 'call_id': 'call_1', 'output': '42'}]
    """

    name: ClassVar[str] = table.WIRE
    messages_field: ClassVar[str] = "input"
    folder = ResponsesReader
    request_form = _RequestForm()
    system_field = "instructions"

    def write_message(self, message: native.AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the items that `message` becomes."""
        report_meta(message, losses)
        return _Writer(message, losses, stored=self.store).write()

    def read_messages(self, items: Sequence[Any]) -> list[native.AgenticMessage]:
        return self.link(table.read_items(items))

    def learn(self, result: native.FunctionToolResult, call: native.FunctionToolCall) -> native.FunctionToolResult:
        return replace(result, name=call.name or result.name)

    def encode_request(self, request: Request) -> Encoded:
        """Return the body of a request; if `store` is off, without the ids that the service would have to know."""
        if self.store and request.options.get("store") is False:
            return OpenAIResponsesCodec(store=False).encode_request(request)
        return super().encode_request(request)

    def write_system(self, request: Request, losses: Losses) -> str:
        return request.instruction

    def read_request(self, body: Mapping[str, Any]) -> Request:
        content = body.get("input", ())
        text = {"input": [{"role": "user", "content": content}]} if isinstance(content, str) else {"input": content}
        return super().read_request({**body, **text})

    def read_system(self, body: Mapping[str, Any]) -> tuple[str, list[native.AgenticMessage]]:
        return text_of(body, "instructions"), []

    def read_reply(self, body: Mapping[str, Any]) -> native.AgenticMessage:
        return table.read_reply(body)


# Messages


class _Writer(contents.BlockWriter):
    """Writes one message as items. Parts are collected until a block comes that is an item itself."""

    wire = table.WIRE

    def __init__(self, message: native.AgenticMessage, losses: Losses, *, stored: bool) -> None:
        super().__init__(losses)
        self._message, self._stored = message, stored
        self._by_model = message.role == "assistant"
        self._items: list[dict[str, Any]] = []
        self._thoughts: set[Any] = set()
        self._next_head = self.put_back({"role": message.role}, message.extra, "extra") | _head(message.extra)
        """The fields of the next message item, without its content."""
        self._head: Mapping[str, Any] | None = None
        """The fields of the message item that is being collected, if there is one."""
        self._parts: list[dict[str, Any]] = []

    def write(self) -> list[dict[str, Any]]:
        """Return the items that the message becomes."""
        if not self._message.content_blocks and not self._by_model:
            self._head = self._next_head
        for place, block in enumerate(self._message.content_blocks):
            self.path = f"content_blocks[{place}]"
            kind = type(block)
            is_item = kind in self.writers or kind in {native.MCPToolResult, native.ToolSearchResult}
            if isinstance(block, native.Opaque):
                is_item = table.PART not in map_of(block.extra, table.WIRE)
            elif isinstance(block, native.AssistantGenImage):
                is_item = bool(table.own_type(block.extra))
            if is_item:
                self._flush()
                self._add_item(block)
            else:
                self._add_part(block)
        self._flush()
        return self._items

    def put_back(self, made: dict[str, Any], extra: Mapping[str, Any], inside: str = "") -> dict[str, Any]:
        """Return `made` with what was kept of its block in `extra`, without our marks."""
        own = extra.get(table.WIRE)
        if is_map(own):
            extra = {
                **extra,
                table.WIRE: {name: own[name] for name in own if name not in {table.ITEM, table.NEEDS, table.PART}},
            }
        return super().put_back(made, extra, inside)

    def _add_item(self, block: Any) -> None:
        """Add the item that a block becomes; the output of a service's tool may belong in the item before."""
        before = self._items[-1] if self._items else {}
        given, _ = table.TOOL_OUTPUTS.get(before.get("type", ""), (None, ()))
        if given is not None and isinstance(block, given.block) and block.call_id == before.get("id"):
            self._items[-1] = self.put_back({**before, **given.write(block)}, block.extra)
            return
        told = self.tell_found_tools(block)
        write = self.writers.get(type(told))
        item = None if write is None else write(self, told)
        if item is None:
            if not isinstance(block, native.Reasoning | native.Opaque):
                self.lose_block(block)
            return
        kind, item_id = item.get("type"), item.get("id")
        if kind == "reasoning":
            self._thoughts.add(item_id)
        if item_id is not None and self._is_unknown(map_of(block.extra, table.WIRE), kind):
            del item["id"]
            if kind in table.KNOWN_BY_ID:
                self.lose(Lost.BLOCK, f"{kind} {item_id}")
                return
            if kind == "reasoning" and not item.get("encrypted_content") and not item.get("content"):
                self.lose(Lost.REASONING, f"thought {item_id}")
                return
        self._items.append(item)

    def _is_unknown(self, fields: Mapping[str, Any], kind: Any) -> bool:
        """Return whether an item must go without its id: nothing is stored, or the reasoning before it is gone."""
        if not self._stored:
            return kind in table.WITHOUT_ID
        return bool(fields.get(table.NEEDS)) and fields[table.NEEDS] not in self._thoughts

    def _add_part(self, block: Any) -> None:
        """Add a part to the message that is being collected, or begin another."""
        part = self._write_part(block, by_model=self._by_model)
        if part is None:
            return
        begins = self._by_model and table.ITEM in map_of(block.extra, table.WIRE)
        if begins:
            self._flush()
        if self._head is None:
            role = {"role": self._message.role}
            self._head, self._next_head = (role | _head(block.extra) if begins else self._next_head), role
        self._parts.append(part)

    def _flush(self) -> None:
        """Add the collected message to the items; its content is a string if that says the same."""
        if self._head is None:
            return
        head, parts = self._head, self._parts
        self._head, self._parts = None, []
        if "id" in head:
            parts = [_NO_CITATION | part if part.get("type") == "output_text" else part for part in parts]
        left_out = (
            {table.NEEDS, "id", "status"} if "id" in head and self._is_unknown(head, "message") else {table.NEEDS}
        )
        item = {name: value for name, value in head.items() if name not in left_out}
        item["content"] = parts if self._by_model or "id" in head else _text_or_parts(parts)
        if self._by_model:
            item["type"] = "message"
        self._items.append(item)

    # Parts

    def _write_part(self, block: Any, *, by_model: bool = False) -> dict[str, Any] | None:
        """Return `block` as a part of a message by or for the model; `None` if it has no form."""
        if isinstance(block, native.Opaque):
            return self.unwrap(block)
        if isinstance(block, native.UserInputText | native.AssistantGenText):
            self.report_extension(block, "refusal", ASIDE)
            refuses = by_model and getattr(block, "extension", {}).get("refusal") is True
            kind, field = ("refusal", "refusal") if refuses else (table.text_type(by_model=by_model), "text")
            return self.put_back({"type": kind, field: block.text}, block.extra)
        part = None if by_model else _write_media(block)
        if part is None:
            return {"type": table.text_type(by_model=by_model), "text": self.tell_media(block)}
        is_typed = block.base64_data or isinstance(block, native.UserInputAudio)
        self.report_media(block, "detail", "name" if "filename" in part else "", "mime_type" if is_typed else "")
        return self.put_back(part, block.extra)

    def _write_words(self, block: Any) -> dict[str, Any] | None:
        """Return a block as a part of an output that holds only text; media are described in words."""
        part = self._write_part(block, by_model=True)
        return part if part is None or "text" in part else self.lose(Lost.BLOCK, f"a part of type {part.get('type')}")

    _part_writers: ClassVar = dict.fromkeys(
        (native.UserInputText, native.AssistantGenText, native.Opaque, *contents.MEDIA), _write_part
    )
    _word_writers: ClassVar = dict.fromkeys(_part_writers, _write_words)

    # Calls and their outputs

    def _write_call(self, block: native.FunctionToolCall) -> dict[str, Any]:
        pair, text = _pair_of(block), contents.custom_input(block)
        item: dict[str, Any] = {"type": pair.call, "call_id": block.call_id}
        if pair.name:
            item["name"] = block.name
        if text is None:
            text = block.arguments if pair is table.FUNCTION else self.read_arguments(block.arguments, "arguments")
        item[table.INPUTS[pair.kind]] = text
        return self.put_back(item, contents.without_kind(block.extra, pair.kind))

    def _write_result(self, block: native.FunctionToolResult) -> dict[str, Any]:
        """Return the item of a result; its type depends on the kind of its call."""
        pair = _pair_of(block)
        item: dict[str, Any] = {"type": pair.output, pair.output_id: block.call_id}
        only_text = pair.kind not in {"", "custom"}
        parts = self.write_each(block.content, "content", self._word_writers if only_text else self._part_writers)
        text = "\n".join([str(part["text"]) for part in parts]) if only_text else ""
        if pair.kind == "apply_patch":
            item |= {"status": "failed" if block.is_error else "completed"}
            item |= {"output": text} if text or block.content else {}
        elif pair.kind == "shell":
            stdout, stderr = ("", text) if block.is_error else (text, "")
            outcome = {"type": "exit", "exit_code": int(block.is_error)}
            output = parse_json(text)  # perhaps the list that it was read from
            made = [{"stdout": stdout, "stderr": stderr, "outcome": outcome}]
            item["output"] = output if isinstance(output, list) else made
        else:
            item["output"] = text if only_text else _text_or_parts(parts) or ""
            if block.is_error:
                self.lose(Lost.ERROR, f"the error flag of {block.call_id or block.name}")
        return self.put_back(item, contents.without_kind(block.extra, pair.kind))

    # Reasoning, and what the service ran

    def _write_reasoning(self, block: native.Reasoning) -> dict[str, Any] | None:
        """Return reasoning of this service as it came, without its status, which only replies have."""
        if not self.is_own_thought(block, *block.extension):
            return None
        summary = [{"type": "summary_text", "text": block.text}] if block.text else []
        fields = {name: value for name, value in block.extension.items() if name not in {"wire", "status"}}
        item = {"type": "reasoning", "summary": summary, **fields}
        return self.put_back(item | given(encrypted_content=block.signature or None), block.extra)

    def _write_service(self, block: Any) -> dict[str, Any] | None:
        kind = table.own_type(block.extra) or table.APPROVALS.get(type(block), "")
        shape = table.SERVICE_ITEMS.get(kind)
        if shape is None or not isinstance(block, shape.block):
            return None
        return self.put_back({"type": kind, **shape.write(block)}, block.extra)

    def _write_image(self, block: native.AssistantGenImage) -> dict[str, Any]:
        data = data_of(block)
        return self.put_back({"type": "image_generation_call", "result": data.base64 if data else None}, block.extra)

    writers: ClassVar = {
        native.Opaque: contents.BlockWriter.unwrap,
        native.Reasoning: _write_reasoning,
        native.FunctionToolCall: _write_call,
        native.FunctionToolResult: _write_result,
        native.AssistantGenImage: _write_image,
        **dict.fromkeys([shape.block for shape in table.SERVICE_ITEMS.values()], _write_service),
    }


def _head(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a message of the model, without its content, which an `extra` keeps."""
    fields = map_of(extra, table.WIRE).get(table.ITEM)
    return dict(fields) if is_map(fields) else {}


def _text_or_parts(parts: list[dict[str, Any]]) -> str | list[dict[str, Any]]:
    """Return parts as a string if they are one text and nothing else."""
    texts = ("input_text", "output_text")
    is_text = len(parts) == 1 and parts[0].keys() == {"type", "text"} and parts[0]["type"] in texts
    return parts[0]["text"] if is_text else parts


def _write_media(block: Any) -> dict[str, Any] | None:
    """Return media as a part; `None` if there is no form for them. Only audio that was read here has one."""
    has_id = "file_id" in map_of(block.extra, table.WIRE)
    if isinstance(block, native.UserInputImage | native.AssistantGenImage):
        data = data_of(block, "image/png") if block.base64_data else None
        url = data.url if data else block.url
        part = {"type": "input_image", **given(image_url=url or None, detail=getattr(block, "detail", "") or None)}
        return part if url or has_id else None
    if isinstance(block, native.UserInputFile):
        if block.base64_data or block.url.startswith("data:"):
            by_value = Data(block.mime_type, block.base64_data).url if block.mime_type else block.base64_data
            data = by_value if block.base64_data else block.url
            return {"type": "input_file", "file_data": data, "filename": file_name(block)}
        # The API refuses a file name beside a URL.
        return {"type": "input_file", **given(file_url=block.url or None)} if block.url or has_id else None
    data = data_of(block)
    if data is None or table.own_type(block.extra) != "input_audio":
        return None
    return {"type": "input_audio", "input_audio": {"data": data.base64, "format": data.mime_type.partition("/")[2]}}


def _pair_of(block: Any) -> CallType:
    """Return the type of the call that `block` is or answers, according to its mark."""
    return table.KINDS.get(str(block.extra.get(KIND, "")), table.FUNCTION)
