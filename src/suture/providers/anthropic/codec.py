"""Anthropic's Messages API: messages and requests, from and into native values."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, cast

from msgspec.structs import replace

from suture.codecs.codec import CODECS, Codec, Losses, Lost, Request, StreamReader
from suture.codecs.contents import CallFinder, keep, merge_options, put_back, report_extra
from suture.errors import ConfigError, InputError
from suture.messages import AgenticMessage, FunctionToolCall, FunctionToolResult, ToolInfo
from suture.providers.anthropic.blocks import NAME, read_content, write_content, write_system
from suture.providers.anthropic.stream import AnthropicReader, read_body, read_reply
from suture.wires import check_list, plain
from suture.wires.fields import listed, map_of, object_of, text_of

_ROLES = ("user", "assistant", "system")
_NOT_OPTIONS = ("messages", "system", "tools")
_MAX_TOKENS = 8192
"""How long a reply may be where nobody says it; the API demands a number."""
_CHOICES = {"auto": "auto", "none": "none", "required": "any"}
_SHARED_CHOICES = {theirs: ours for ours, theirs in _CHOICES.items()}
_RENAMED = ("stop", "tool_choice", "parallel_tool_calls", "output_schema")
_SCHEMA = "json_schema"


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

    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return `message` as the API's: none if it says nothing. A system message is the user's, unless read here."""
        if self.is_outside(message):
            losses.add(Lost.SYSTEM, "that this message is the system's; it is told as the user's")
            blocks = _write_outside(message, losses)
            return [{"role": "user", "content": blocks}] if blocks else []
        _report_meta(message, losses)
        blocks = (write_system if message.role == "system" else write_content)(message.content_blocks, losses)
        written = put_back(NAME, {"role": message.role, "content": blocks}, message.extra, losses, "extra")
        return [written] if blocks or "content" not in written else []

    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what the API's messages say; a result is given the name of its call."""
        names = CallFinder()
        messages: list[AgenticMessage] = []
        for index, item in enumerate(items):
            try:
                message = _read_message(item)
            except InputError as error:
                raise InputError(error.reason, index=index, path=error.path) from None
            messages.append(_name_results(message, names))
        return messages

    def is_outside(self, message: AgenticMessage) -> bool:
        """Tell whether `message` is the system's and was not read from among the API's messages."""
        return message.role == "system" and "system" not in map_of(message.extra, NAME)

    def write_settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        system = [{"type": "text", "text": request.instruction}] if request.instruction.strip() else []
        for losses.index, message in enumerate(request.messages[: self.leading_system(request.messages)]):
            system += _write_outside(message, losses)
        losses.index = None
        tools = [written for tool in request.tools if (written := _write_tool(tool, losses)) is not None]
        fields = {"system": system, "tools": tools}
        body = {name: value for name, value in fields.items() if value}
        return {**body, **_write_options(request.options, losses, has_tools=bool(tools))}

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        body: Mapping[str, Any] = plain(payload)
        check_list(body.get("messages"))
        messages = self.read_messages(body["messages"])
        instruction, system = _read_system(body)
        tools = [] if body.get("tools") is None else [_read_tool(tool) for tool in listed(body["tools"], None, "tools")]
        return Request([*system, *messages], instruction, tuple(tools), _read_options(body))

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        return read_reply(payload)

    def reader(self) -> StreamReader:
        return AnthropicReader()


# Messages


def _read_message(item: Any) -> AgenticMessage:
    """Return one message; a whole response in the place of a message is read as the reply that it is."""
    if not isinstance(item, dict):
        raise InputError(f"expected a message, found {type(item).__name__}")
    item = cast("dict[str, Any]", item)
    role = item.get("role")
    if role not in _ROLES:
        raise InputError(f"unknown role {role!r}; expected user, assistant or system", path="role")
    if "stop_reason" in item:
        return read_body(item)
    extra = keep(NAME, item, "role", "content")
    if role == "system":
        absent = {"content": None} if item.get("content") is None else {}
        extra = {NAME: {**map_of(extra, NAME), **absent, "system": None}}
    return AgenticMessage(role, tuple(read_content(item, by_model=role == "assistant")), extra=extra)


def _name_results(message: AgenticMessage, names: CallFinder) -> AgenticMessage:
    """Return `message` with its results named as their calls, and note the calls in it."""
    names.enter(message.role)
    blocks = list(message.content_blocks)
    for place, block in enumerate(blocks):
        if isinstance(block, FunctionToolCall):
            names.note(block.call_id, block.name)
        elif isinstance(block, FunctionToolResult):
            blocks[place] = replace(block, name=names.find(block.call_id) or "")
    return replace(message, content_blocks=tuple(blocks))


def _read_system(body: Mapping[str, Any]) -> tuple[str, list[AgenticMessage]]:
    """Return the system's text; as a message, where it is more than one plain text."""
    blocks = read_content(body, "system")
    first: Any = blocks[0] if blocks else None
    if len(blocks) == 1 and getattr(first, "text", "") and not first.extra:
        return first.text, []
    return "", [AgenticMessage("system", tuple(blocks))] if blocks else []


def _write_outside(message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
    """Return the blocks of a system message; report what else it carries."""
    _report_meta(message, losses)
    for name, value in message.extra.items():
        report_extra(name, value, losses, "extra")
    return write_system(message.content_blocks, losses)


def _report_meta(message: AgenticMessage, losses: Losses) -> None:
    if message.response_meta is not None:
        losses.add(Lost.META, "why the reply ended and what it cost", "response_meta")


# Tools


def _write_tool(tool: ToolInfo, losses: Losses) -> dict[str, Any] | None:
    """Return `tool` as the API takes it; one that another provider runs is reported."""
    own = map_of(tool.extra, NAME)
    if own.get("type", "custom") != "custom":
        return dict(own)
    foreign = {name: value for name, value in tool.extra.items() if name != NAME or not own}
    is_bare = not tool.description and tool.parameters is None and not own
    if is_bare and any(name in CODECS and name != NAME for name in foreign):
        losses.add(Lost.TOOL, f"{tool.name}, a tool that another provider runs")
        return None
    for name, value in foreign.items():
        fields = cast("Mapping[str, Any]", value) if name in CODECS and isinstance(value, Mapping) else {"extra": value}
        for field in [field for field, content in fields.items() if content is not None]:
            losses.add(Lost.TOOL, f"{name} {field} of {tool.name}")
    schema: Mapping[str, Any] = {"properties": {}} if tool.parameters is None else tool.parameters
    written = {"name": tool.name, "description": tool.description, "input_schema": {"type": "object", **schema}}
    if not tool.description:
        del written["description"]
    return put_back(NAME, written, {NAME: own}, losses)


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
    """Return `options` under the API's names."""
    body: dict[str, Any] = {"max_tokens": _MAX_TOKENS}
    stop, schema = options.get("stop"), options.get("output_schema")
    if stop is not None:
        if not isinstance(stop, str | list | tuple):
            raise ConfigError(f"stop is a text or a list of texts, not {type(stop).__name__}")
        body["stop_sequences"] = [stop] if isinstance(stop, str) else list(cast("Sequence[Any]", stop))
    choice = _write_choice(options.get("tool_choice"), options.get("parallel_tool_calls"), has_tools=has_tools)
    if choice is not None:
        body["tool_choice"] = choice
    if schema is not None:
        body["output_config"] = {"format": {"type": _SCHEMA, "schema": schema}}
    others = {name: value for name, value in options.items() if name not in _RENAMED and value is not None}
    merge_options(body, others, losses, without=("seed",))
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
    """Return the settings in the body of a request, under the names that all providers share."""
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
