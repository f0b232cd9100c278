"""The codec of OpenAI's Chat Completions: messages and requests, both ways."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from suture.codecs.codec import CODECS, Codec, Losses, Lost, Request, StreamReader
from suture.codecs.contents import CallFinder, merge_options, rest_of
from suture.errors import InputError
from suture.messages import AgenticMessage, FunctionToolCall, FunctionToolResult, ToolInfo
from suture.providers.openai_chat.message import WIRE, read_message, write_message
from suture.providers.openai_chat.stream import ChatReader, read_body
from suture.wires.fields import is_list, is_map, map_of
from suture.wires.values import KIND

_FUNCTION, _TOOL = "function", "tool"
_CHOICES = frozenset(("auto", "none", "required"))
_FORMAT, _SCHEMA, _NAME = "response_format", "json_schema", "answer"


class OpenAIChatCodec(Codec):
    """Messages and requests of Chat Completions both ways, its replies and streams read.

    What is read and written again is the same, but for this. A field that is null is left out, as is an empty list of
    calls or of tools, the index of a call, and an empty thought in a reply. A content that is null is an empty text; an
    empty one beside calls is null. A refusal that is the only one stands in its field, not among the parts. Arguments
    that are an object are written as text. A sound of the model's is sent back by its id. One text to stop at is
    written as a list. Of several choices in a reply, only the first is read.

    Of a message that was not read here, texts that are all it says are written as one, since many servers take
    nothing else; and results are messages of their own, where they stand.

    >>> from suture.codecs import get_codec
    >>> codec = get_codec("openai-chat")
    >>> codec.encode_messages([AgenticMessage.tool_result("call_1", "add", "42")]).payload
    [{'role': 'tool', 'tool_call_id': 'call_1', 'content': '42'}]
    >>> codec.decode_messages([{"role": "user", "content": "hi"}])[0].content_blocks
    (UserInputText(text='hi'),)
    """

    name = WIRE

    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return what `message` is here: each result in it a message, and what is said before, between and behind."""
        return write_message(message, losses, self.field)

    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what `items`, plain dicts, say; the result of a custom call is marked as one."""
        kinds = CallFinder()
        return [_mark_results(read_message(item, index), kinds) for index, item in enumerate(items)]

    def write_head(self, instruction: str) -> list[dict[str, Any]]:
        """Return the instruction as the first system message."""
        return [{"role": "system", "content": instruction}] if instruction else []

    def write_settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        """Return the tools and the options, under the names that they have here."""
        tools = [
            made for place, tool in enumerate(request.tools) for made in _write_tool(tool, losses, f"tools[{place}]")
        ]
        body: dict[str, Any] = {"tools": tools} if tools else {}
        options = dict(request.options)
        choice = options.get("tool_choice")
        if isinstance(choice, str) and choice not in _CHOICES:
            options["tool_choice"] = {"type": _FUNCTION, _FUNCTION: {"name": choice}}
        schema = options.pop("output_schema", None)
        if schema is not None:
            said = map_of(options, _FORMAT)
            asked = {"name": _NAME, "schema": schema, **map_of(said, _SCHEMA)}
            options[_FORMAT] = {"type": _SCHEMA, **said, _SCHEMA: asked}
        merge_options(body, options, losses)
        return body

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        """Return what the body of a request says; a system message stays one."""
        messages = self.decode_messages(payload.get("messages", ()))
        tools = payload.get("tools")
        if tools is not None and not is_list(tools):
            raise InputError(f"expected a list of tools, found {type(tools).__name__}", path="tools")
        read = tuple([_read_tool(tool, f"tools[{place}]") for place, tool in enumerate(tools or ())])
        options = _read_options({name: payload[name] for name in payload if name not in {"messages", "tools"}})
        return Request(messages, "", read, options)

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        """Return what the body of a response says; of several choices, the first."""
        return read_body(payload)

    def reader(self) -> StreamReader:
        return ChatReader()


def _mark_results(message: AgenticMessage, kinds: CallFinder) -> AgenticMessage:
    """Return `message` with its results marked with the kind of their call, and note the calls in it."""
    kinds.enter(message.role)
    blocks = list(message.content_blocks)
    for place, block in enumerate(blocks):
        if isinstance(block, FunctionToolCall):
            kinds.note(block.call_id, block.extra.get(KIND, ""))
        elif isinstance(block, FunctionToolResult) and (kind := kinds.find(block.call_id)):
            blocks[place] = replace(block, extra={**block.extra, KIND: kind})
            message = replace(message, content_blocks=tuple(blocks))
    return message


def _write_tool(tool: ToolInfo, losses: Losses, path: str) -> list[dict[str, Any]]:
    """Return `tool` as the payload lists it; nothing, and reported, where another provider runs it."""
    kept = map_of(tool.extra, WIRE)
    foreign = [name for name in tool.extra if name != WIRE]
    if kept.get("type", _FUNCTION) != _FUNCTION:
        return [dict(kept)]
    if not kept and tool.parameters is None and not tool.description and any(name in CODECS for name in foreign):
        losses.add(Lost.TOOL, f"{tool.name}, a tool that {foreign[0]} runs", path)
        return []
    for name in [*foreign, *([] if is_map(tool.extra.get(WIRE, kept)) else [WIRE])]:
        losses.add(Lost.TOOL, f"extra {name!r} of {tool.name}", path)
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = {"type": "object", "properties": {}} if tool.parameters is None else dict(tool.parameters)
    function |= {name: value for name, value in kept.items() if name != _TOOL}
    return [{"type": _FUNCTION, _FUNCTION: rest_of(function), **map_of(kept, _TOOL)}]


def _read_tool(tool: Any, path: str) -> ToolInfo:
    if is_map(tool) and tool.get("type", _FUNCTION) != _FUNCTION:
        held = map_of(tool, str(tool["type"])) or tool
        name, description = held.get("name") or tool["type"], held.get("description") or ""
        return ToolInfo(str(name), str(description), extra={WIRE: dict(tool)})
    function = map_of(tool, _FUNCTION)
    if not isinstance(function.get("name"), str):
        raise InputError("expected a tool with a function that has a name", path=path)
    kept = rest_of(function, "name", "description", "parameters")
    beside = rest_of(tool, "type", _FUNCTION)
    if beside:
        kept[_TOOL] = beside
    parameters = function.get("parameters")
    if not is_map(parameters):
        parameters = kept["parameters"] = None
    extra = {WIRE: kept} if kept else {}
    return ToolInfo(function["name"], function.get("description") or "", parameters, extra=extra)


def _read_options(options: dict[str, Any]) -> dict[str, Any]:
    """Return the settings of a payload under the names that they have everywhere."""
    if isinstance(options.get("stop"), str):
        options["stop"] = [options["stop"]]
    choice = map_of(options, "tool_choice")
    function = map_of(choice, _FUNCTION)
    if set(choice) == {"type", _FUNCTION} and set(function) == {"name"}:
        name = function["name"]
        if isinstance(name, str) and name not in _CHOICES:
            options["tool_choice"] = name
    form = map_of(options, _FORMAT)
    asked = map_of(form, _SCHEMA)
    if form.get("type") == _SCHEMA and is_map(asked.get("schema")):
        options["output_schema"] = asked["schema"]
        told = {name: value for name, value in asked.items() if name != "schema" and (name, value) != ("name", _NAME)}
        rest = {**rest_of(form, "type", _SCHEMA), **({_SCHEMA: told} if told else {})}
        options.pop(_FORMAT)
        options |= {_FORMAT: rest} if rest else {}
    return options
