"""OpenAI's Responses API: a flat list of items."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from suture.codecs.codec import Codec, Losses, Lost, Request, report_meta
from suture.codecs.contents import CHOICES, keep, merge_options, read_choice, take_out, write_tools
from suture.errors import InputError
from suture.messages import AgenticMessage, MCPToolResult, ServerToolResult, ToolInfo
from suture.providers.openai_responses.items import (
    ITEM,
    KNOWN_BY_ID,
    NEEDS,
    WIRE,
    WITHOUT_ID,
    is_item,
    own_type,
    plain_text,
    put_result,
    restore,
    write_item,
    write_part,
)
from suture.providers.openai_responses.stream import ResponsesReader, read_items, read_reply
from suture.wires.fields import inner, is_map, list_of, map_of, text_of

_WITHOUT = ("top_k", "seed", "stop")
_FORMAT = {"type": "json_schema", "name": "answer"}
_NO_CITATION: dict[str, Any] = {"annotations": []}


class OpenAIResponsesCodec(Codec):
    """Items of Responses: what the model made in a row is one message, every other item a message of its own.

    A call of a custom tool, of the local shell or of the patch tool is a `FunctionToolCall`, too; it goes back as
    what it was, and so does its result. What the service's own tools did goes back to it, and to nobody else.

    What is read and written again differs in this alone:

    - A text without fields of its own is written as a string, in a message for the model and in an output. A message
      of the model's says its type, and has a list.
    - A field that is null is left out, and so is what the SDK adds for its user. An id that is absent is empty.
    - A reference says its type. A text of a message with an id says what it cites, if nothing, and how likely it was
      if that was asked for.
    - Reasoning has a summary, if an empty one, and no status.
    - An assistant message without content is left out.
    - What was made after reasoning that is no longer in its message goes without its id.
    - A function says whether its schema is strict, and has one; `input` is a list.

    >>> codec = OpenAIResponsesCodec()
    >>> codec.encode_messages([AgenticMessage.tool_result("call_1", "add", "42")]).payload
    [{'type': 'function_call_output', 'call_id': 'call_1', 'output': '42'}]
    """

    name: ClassVar[str] = WIRE
    messages_field: ClassVar[str] = "input"
    folder = ResponsesReader

    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return the items that `message` is."""
        report_meta(message, losses)
        return _Writer(message, losses, stored=self.store).write()

    def read_messages(self, items: Sequence[Any]) -> list[AgenticMessage]:
        return read_items(items)

    def write_request(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the body of a request; with `store` off, it has no ids that the service would have to know."""
        if self.store and request.options.get("store") is False:
            return OpenAIResponsesCodec(store=False).write_request(request, losses)
        return super().write_request(request, losses)

    def write_settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        tools = write_tools(request.tools, WIRE, losses, _write_tool)
        body: dict[str, Any] = {"instructions": request.instruction} if request.instruction else {}
        body |= {"tools": tools} if tools else {}
        rest = dict(request.options)
        if "max_tokens" in rest:
            body["max_output_tokens"] = rest.pop("max_tokens")
        if isinstance(rest.get("tool_choice"), str):
            body["tool_choice"] = _write_choice(rest.pop("tool_choice"), request.tools)
        schema = rest.pop("output_schema", None)
        if schema is not None:
            text = map_of(rest, "text")
            rest["text"] = {**text, "format": {**_FORMAT, "schema": schema, **map_of(text, "format")}}
        merge_options(body, rest, losses, _WITHOUT)
        return body

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        body = self.plain(dict(payload))
        content = body.pop("input", None)
        items = (
            [{"role": "user", "content": content}] if isinstance(content, str) else list_of({"input": content}, "input")
        )
        tools = [_read_tool(tool) for tool in list_of(body, "tools")]
        instruction = text_of(body, "instructions")
        options = {name: value for name, value in body.items() if name not in {"instructions", "tools"}}
        return Request(read_items(items), instruction, tools, _read_options(options))

    def read_reply(self, body: Mapping[str, Any]) -> AgenticMessage:
        return read_reply(body)


# Messages


class _Writer:
    """Writes one message as items, one after another. Parts are collected until something else comes."""

    def __init__(self, message: AgenticMessage, losses: Losses, *, stored: bool) -> None:
        self._message, self._losses, self._stored = message, losses, stored
        self._by_model = message.role == "assistant"
        self._items: list[dict[str, Any]] = []
        self._thoughts: set[Any] = set()
        self._next_head = restore({"role": message.role}, message.extra, losses, "extra") | _head(message.extra)
        """What the next message item has beside its content."""
        self._head: Mapping[str, Any] | None = None
        """That of the message item that is being collected, where there is one."""
        self._parts: list[dict[str, Any]] = []

    def write(self) -> list[dict[str, Any]]:
        if not self._message.content_blocks and not self._by_model:
            self._head = self._next_head
        for place, block in enumerate(self._message.content_blocks):
            path = f"content_blocks[{place}]"
            if is_item(block):
                self._flush()
                self._add(block, path)
            else:
                self._say(block, path)
        self._flush()
        return self._items

    def _add(self, block: Any, path: str) -> None:
        """Put down what is an item of its own; what a tool of the service gave may belong into the item before."""
        is_result = isinstance(block, ServerToolResult | MCPToolResult)
        if is_result and self._items and put_result(self._items[-1], block):
            restore({}, block.extra, self._losses, path)
            return
        item = write_item(block, self._losses, path)
        if item is None:
            return
        kind, item_id = item.get("type"), item.get("id")
        if kind == "reasoning":
            self._thoughts.add(item_id)
        if item_id is not None and self._is_unknown(map_of(block.extra, WIRE), kind):
            if kind in KNOWN_BY_ID:
                self._losses.add(Lost.BLOCK, f"{kind} {item_id}", path)
                return
            del item["id"]
            if kind == "reasoning" and not item.get("encrypted_content") and not item.get("content"):
                self._losses.add(Lost.REASONING, f"thought {item_id}", path)
                return
        self._items.append(item)

    def _is_unknown(self, fields: Mapping[str, Any], kind: Any) -> bool:
        """Tell whether an item must go without its id: nothing is stored, or the reasoning before it is gone."""
        if not self._stored:
            return kind in WITHOUT_ID
        return bool(fields.get(NEEDS)) and fields[NEEDS] not in self._thoughts

    def _say(self, block: Any, path: str) -> None:
        """Add a part to the message at hand, or begin another."""
        part = write_part(block, self._losses, path, by_model=self._by_model)
        if part is None:
            return
        begins = self._by_model and ITEM in map_of(block.extra, WIRE)
        if begins:
            self._flush()
        if self._head is None:
            role = {"role": self._message.role}
            self._head, self._next_head = (role | _head(block.extra) if begins else self._next_head), role
        self._parts.append(part)

    def _flush(self) -> None:
        """Put down the message at hand: its content as a string if that says the same."""
        if self._head is None:
            return
        head, parts = self._head, self._parts
        self._head, self._parts = None, []
        if "id" in head:
            parts = [_NO_CITATION | part if part.get("type") == "output_text" else part for part in parts]
        left_out = {NEEDS, "id", "status"} if "id" in head and self._is_unknown(head, "message") else {NEEDS}
        item = {name: value for name, value in head.items() if name not in left_out}
        item["content"] = parts if self._by_model or "id" in head else plain_text(parts)
        if self._by_model:
            item["type"] = "message"
        self._items.append(item)


def _head(extra: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a message of the model's has beside its content, as an `extra` keeps it."""
    fields = map_of(extra, WIRE).get(ITEM)
    return dict(fields) if is_map(fields) else {}


# Tools and options


def _write_tool(tool: ToolInfo) -> dict[str, Any]:
    own = map_of(tool.extra, WIRE)
    if own_type(tool.extra):
        return dict(own)
    parameters: dict[str, Any] = {"type": "object", "properties": {}}
    function: dict[str, Any] = {"type": "function", "name": tool.name, "strict": False}
    function["parameters"] = parameters if tool.parameters is None else dict(tool.parameters)
    if tool.description:
        function["description"] = tool.description
    return restore(function, {WIRE: own}, Losses(), "")


def _read_tool(tool: Mapping[str, Any]) -> ToolInfo:
    """Return a tool in the body of a request: a function as such, another kept whole."""
    kind = text_of(tool, "type")
    if not kind:
        raise InputError("a tool has a type", path="tools")
    if kind != "function":
        name = tool.get("name")
        return ToolInfo(name if isinstance(name, str) and name else kind, extra={WIRE: dict(tool)})
    name, description = text_of(tool, "name"), text_of(tool, "description")
    strict = tool.get("strict")
    known = ("type", "name", "parameters", "description" if description else "", "strict" if strict is False else "")
    extra = keep(WIRE, tool, *known, absent=["strict"] if strict is None else ())
    return ToolInfo(name, description, inner(tool, "parameters", None), extra=extra)


def _write_choice(name: str, tools: Sequence[ToolInfo] = ()) -> str | dict[str, Any]:
    """Return a word as it is; one tool is demanded by its name, or, of the service's own, by its type."""
    if name in CHOICES:
        return name
    kind = next((own_type(tool.extra) for tool in tools if tool.name == name), "") or "function"
    return {"type": kind, "name": name} if kind in {"function", "custom"} else {"type": kind}


def _read_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return what else a request says, under the shared names as far as those can say it."""
    if options.get("max_output_tokens") is not None:
        options["max_tokens"] = options.pop("max_output_tokens")
    choice = options.get("tool_choice")
    if is_map(choice):
        options["tool_choice"] = read_choice(choice, choice.get("name"), _write_choice) or choice
    form = map_of(map_of(options, "text"), "format")
    if form.get("type") == "json_schema" and is_map(form.get("schema")):
        options["output_schema"] = take_out(options, "text", "format")["schema"]
        rest = {name: value for name, value in form.items() if name != "schema" and _FORMAT.get(name) != value}
        options |= {"text": {**map_of(options, "text"), "format": rest}} if rest else {}
    return options
