"""Items of Responses from and into blocks, and what the model made in a row into one message.

Each type of call has its own type of output. Those that the program answers are a `FunctionToolCall` and its result
here, so that an agent can answer them by name; arguments that are no JSON text in the API are one here. What the
service did itself, its thought, its tools, images and MCP servers, goes back to it and to nobody else.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import msgspec

from suture.codecs.codec import CallFinder, Losses, Lost, located
from suture.codecs.contents import arguments_object, custom_input, lose, origin_of, unknown, unwrap, without_kind
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AgenticRole,
    AssistantGenImage,
    FunctionToolCall,
    FunctionToolResult,
    MCPListToolsResult,
    MCPToolApprovalRequest,
    MCPToolApprovalResponse,
    MCPToolCall,
    MCPToolCallError,
    MCPToolResult,
    Opaque,
    Reasoning,
    ServerToolCall,
    ServerToolResult,
    ToolInfo,
    ToolSearchResult,
    UserInputText,
)
from suture.providers.openai_responses.parts import (
    ITEM,
    NEEDS,
    PART,
    WIRE,
    extra_of,
    mark,
    own_type,
    read_parts,
    restore,
    write_output,
    write_text,
)
from suture.providers.openai_responses.wire import CALL_TYPES, FROM_OUTSIDE, ROLES, CallType
from suture.wires.fields import argument_json, expect, inner, list_of, map_of, parse_json, text_of
from suture.wires.parts import data_of
from suture.wires.values import KIND

_INPUTS = {"": "arguments", "custom": "input", "local_shell": "action", "shell": "action", "apply_patch": "operation"}
"""Where a call that is a function's natively has what the tool is called with, by the kind of call."""
_SERVICE_INPUTS = {"computer": "action", "tool_search": "arguments"}
"""The same, of calls that are the service's own natively."""
CALLS = {pair.call: pair for pair in CALL_TYPES if pair.kind in _INPUTS}
_RESULTS = {pair.output: pair for pair in CALLS.values()}
_KINDS = {pair.kind: pair for pair in CALLS.values()}
_OUTPUTS = frozenset(pair.output for pair in CALL_TYPES)
_FUNCTION, _CUSTOM = CALLS["function_call"], CALLS["custom_tool_call"]


class _Service(NamedTuple):
    """A tool of the service: the type of its run, its name, the fields of what it was given and of what it gave."""

    call: str
    name: str
    arguments: str
    content: str = ""
    output: str = ""
    """The type of the item that says what it gave, if that is not its run's."""

    @property
    def call_id(self) -> str:
        return "call_id" if self.output else "id"


_SERVICES = (
    _Service("web_search_call", "web_search", "action"),
    _Service("file_search_call", "file_search", "queries", "results"),
    _Service("code_interpreter_call", "code_interpreter", "code", "outputs"),
    _Service("program", "program", "code", "result", "program_output"),
    *(
        _Service(pair.call, pair.kind, _SERVICE_INPUTS[pair.kind], pair.payload, pair.output)
        for pair in CALL_TYPES
        if pair.kind in _SERVICE_INPUTS
    ),
)
_RUNS = {service.call: service for service in _SERVICES}
_RUN_OUTPUTS = {service.output: service for service in _SERVICES if service.output}
_NO_SERVICE = _Service("", "", "arguments")
KNOWN_BY_ID = frozenset(
    (*(call for call in _RUNS if not _RUNS[call].output), "image_generation_call", "mcp_call", "mcp_list_tools")
)
"""The items that are nothing without their id."""
WITHOUT_ID = frozenset(("message", "reasoning", "function_call", "custom_tool_call", "shell_call", "apply_patch_call"))
"""The items that the service takes without an id."""


# Messages


def read_items(items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
    """Return the messages that `items` say: what the model made in a row is one, everything else one each."""
    messages: list[AgenticMessage] = []
    names = CallFinder()
    run: _Run | None = None
    for index, item in enumerate(items):
        with located(index=index):
            _check(item)
            role = _role(item)
            names.enter(role)
            if role == "assistant":
                run = run or _Run(names)
                run.add(item)
                continue
            messages += [] if run is None else [run.message()]
            run = None
            messages.append(_message(item, role, names))
    return messages if run is None else [*messages, run.message()]


def read_output(items: Sequence[Mapping[str, Any]]) -> AgenticMessage:
    """Return the message that the output of a response says."""
    run = _Run(CallFinder(), is_reply=True)
    for place, item in enumerate(items):
        with located(f"output[{place}]"):
            _check(item)
            run.add(item)
    return run.message()


class _Run:
    """Items that the model made, one after another."""

    def __init__(self, names: CallFinder, *, is_reply: bool = False) -> None:
        self._blocks: list[Any] = []
        self._is_reply = is_reply
        self._names = names
        self._needs = ""
        self._head: Mapping[str, Any] | None = None
        self._after_text = False

    def message(self) -> AgenticMessage:
        return AgenticMessage("assistant", tuple(self._blocks), extra={WIRE: {ITEM: self._head}} if self._head else {})

    def add(self, item: Mapping[str, Any]) -> None:
        kind = _kind(item)
        if kind == "message":
            self._say(item)
            return
        self._after_text = False
        if kind == "reasoning":
            self._needs = text_of(item, "id")
        blocks = _read(item, kind, self._names)
        if self._needs and isinstance(blocks[0], _PRODUCTS):
            blocks[0] = mark(blocks[0], **{NEEDS: self._needs})
        self._blocks += blocks

    def _say(self, item: Mapping[str, Any]) -> None:
        """Add the parts of a message, and keep what it has beside them."""
        by_model = _role(item) == "assistant"
        parts = read_parts(_without_empty(item) if self._is_reply or item.get("id") else item, by_model=by_model)
        if not parts:
            return
        head = dict(map_of(extra_of(item, ("type", "content", *(("role",) if by_model else ()))), WIRE))
        if self._needs:
            head[NEEDS] = self._needs
        if self._head is None:
            self._head = head
        elif head or self._after_text:
            parts[0] = mark(parts[0], **{ITEM: head})
        self._after_text = True
        self._blocks += parts


def _check(item: Any) -> None:
    text_of(expect(item, dict, "an object", ""), "id")


def _without_empty(item: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a message whose texts do not say that they have no annotations, and no likelihoods."""
    if isinstance(item.get("content"), str):
        return item
    parts = [
        {name: value for name, value in part.items() if value or name not in {"annotations", "logprobs"}}
        for part in list_of(item, "content")
    ]
    return {**item, "content": parts}


def _message(item: Mapping[str, Any], role: AgenticRole, names: CallFinder) -> AgenticMessage:
    kind = _kind(item)
    if kind != "message":
        return AgenticMessage(role, tuple(_read(item, kind, names)))
    known = ("content", *(("role",) if item.get("role") == role else ()))
    return AgenticMessage(role, tuple(read_parts(item)), extra=extra_of(item, known))


def _kind(item: Mapping[str, Any]) -> str:
    """Return the type of an item; one without is a message, or, if it has nothing but an id, a reference."""
    kind = item.get("type")
    if kind is None:
        return "item_reference" if "role" not in item and "id" in item else "message"
    return expect(kind, str, "a string", "type")


def _role(item: Mapping[str, Any]) -> AgenticRole:
    kind = _kind(item)
    if kind == "message":
        role = item.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise InputError(f"an item has a type or a role, one of {', '.join(ROLES)}; found {role!r}", path="role")
        return cast("AgenticRole", ROLES[role])
    if kind in FROM_OUTSIDE:
        return "system"
    by_service = kind == "tool_search_output" and not item.get("call_id")
    return "user" if kind in _OUTPUTS and not by_service else "assistant"


def _read(item: Mapping[str, Any], kind: str, names: CallFinder) -> list[Any]:
    if kind in CALLS:
        call = _read_call(item, kind)
        names.note(call)
        return [call]
    if kind in _RESULTS:
        is_event = kind == _FUNCTION.output and not item.get("call_id") and bool(item.get("name"))
        return [unknown(WIRE, item) if is_event else _read_result(item, kind, names)]
    reader = _READERS.get(kind)
    return [unknown(WIRE, {**item, "type": kind})] if reader is None else reader(item)


def is_item(block: Any) -> bool:
    """Tell whether `block` is an item of its own, rather than part of a message."""
    if isinstance(block, Opaque):
        return PART not in map_of(block.extra, WIRE)
    if isinstance(block, AssistantGenImage):
        return bool(own_type(block.extra))
    return type(block) in _WRITERS or isinstance(block, MCPToolResult)


def write_item(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return the item that `block` is; `None`, and a loss, where only another provider can read it."""
    if isinstance(block, Opaque):
        return unwrap(WIRE, block, losses, path)
    writer = _WRITERS.get(type(block))
    item = None if writer is None else writer(block, losses, path)
    if item is None and isinstance(block, Reasoning):
        losses.add(Lost.REASONING, f"thought {block.text[:40]!r}", path)
    elif item is None:
        lose(block, losses, path)
    return item


# Calls that the program answers, and their outputs


def arguments_of(item: Mapping[str, Any], kind: str) -> str:
    """Return what the tool of a call is called with, as JSON text; a custom tool's input may be any text."""
    field = _INPUTS[CALLS[kind].kind]
    return argument_json({field: text_of(item, field)} if kind == _CUSTOM.call else item.get(field))


def name_of(item: Mapping[str, Any], kind: str) -> str:
    """Return the name of the tool that a call names, or that its type has."""
    return text_of(item, "name") or ("" if CALLS[kind].name else CALLS[kind].kind)


def _read_call(item: Mapping[str, Any], kind: str) -> FunctionToolCall:
    pair = CALLS[kind]
    own = "" if pair is _CUSTOM else "type"  # of a custom call kept: its arguments are its input in an object
    extra = extra_of(item, ("call_id", "name", _INPUTS[pair.kind], own)) | _kind_mark(pair)
    return FunctionToolCall(text_of(item, "call_id"), name_of(item, kind), arguments_of(item, kind), extra=extra)


def _kind_mark(pair: CallType) -> dict[str, Any]:
    """Return the mark in `extra` of a call that is no function's, and of its result."""
    return {KIND: pair.kind} if pair.kind else {}


def _pair_of(block: Any) -> CallType:
    """Return the type of call that `block` is, or answers, by its mark."""
    return _KINDS.get(str(block.extra.get(KIND, "")), _FUNCTION)


def _write_call(block: FunctionToolCall, losses: Losses, path: str) -> dict[str, Any]:
    pair, text = _pair_of(block), custom_input(block)
    item: dict[str, Any] = {"type": pair.call, "call_id": block.call_id}
    if pair.name:
        item["name"] = block.name
    if text is None:
        text = block.arguments if pair is _FUNCTION else arguments_object(block.arguments, losses, f"{path}.arguments")
    item[_INPUTS[pair.kind]] = text
    return restore(item, without_kind(block.extra, pair.kind), losses, path)


def _read_result(item: Mapping[str, Any], kind: str, names: CallFinder) -> FunctionToolResult:
    pair = _RESULTS[kind]
    call_id, output = text_of(item, pair.output_id), item.get("output")
    if pair.kind == "shell" and output is not None:
        content: list[Any] = [UserInputText(msgspec.json.encode(output).decode())]
    else:
        content = read_parts(item, "output")
    own = "status" if pair.kind == "apply_patch" else ""
    failed = bool(own) and item.get(own) == "failed"
    call = names.find(call_id)
    name = (call.name if call else "") or name_of(item, pair.call)
    extra = extra_of(item, ("type", pair.output_id, "output", own)) | _kind_mark(pair)
    return FunctionToolResult(call_id, name, tuple(content), failed, extra=extra)


def _write_result(block: FunctionToolResult, losses: Losses, path: str) -> dict[str, Any]:
    """Return the item of a result, of the type that belongs to the kind of its call."""
    pair = _pair_of(block)
    item: dict[str, Any] = {"type": pair.output, pair.output_id: block.call_id}
    where = f"{path}.content"
    if pair.kind == "apply_patch":
        text = write_text(block.content, losses, where)
        item |= {"status": "failed" if block.is_error else "completed"}
        item |= {"output": text} if text or block.content else {}
    elif pair.kind == "shell":
        item["output"] = _shell_output(block, losses, where)
    else:
        write = write_text if pair.kind == "local_shell" else write_output
        item["output"] = write(block.content, losses, where)
        if block.is_error:
            losses.add(Lost.ERROR, f"the error flag of {block.call_id or block.name}", path)
    return restore(item, without_kind(block.extra, pair.kind), losses, path)


def _write_found_tools(block: ToolSearchResult, losses: Losses, path: str) -> dict[str, Any]:
    losses.add(Lost.BLOCK, "the form of tools that were found; they are told as text", path)
    found = UserInputText(msgspec.json.encode(msgspec.to_builtins(block.tools)).decode())
    return _write_result(FunctionToolResult(block.call_id, block.name, (found,), extra=block.extra), losses, path)


def _shell_output(block: FunctionToolResult, losses: Losses, path: str) -> list[Any]:
    """Return what a shell gave: the list that the text is, or one that holds the text."""
    text = write_text(block.content, losses, path)
    output = parse_json(text)
    if isinstance(output, list):
        return cast("list[Any]", output)
    outcome = {"type": "exit", "exit_code": int(block.is_error)}
    stdout, stderr = ("", text) if block.is_error else (text, "")
    return [{"stdout": stdout, "stderr": stderr, "outcome": outcome}]


# What the service did: reasoning, tools, images


def _read_reasoning(item: Mapping[str, Any]) -> list[Any]:
    """Return what the model thought: the summary, what it was made of, and all that is needed to send it again."""
    summary, content = list_of(item, "summary"), list_of(item, "content")
    texts = [text_of(part, "text") for part in (*summary, *content)]
    is_one_text = not content and summary in ([], [{"type": "summary_text", "text": texts[0]}] if texts else [])
    known = {"type", "encrypted_content", *(("summary",) if is_one_text else ())}
    rest = {name: value for name, value in item.items() if name not in known and value is not None}
    return [Reasoning("\n\n".join(texts), text_of(item, "encrypted_content"), extension={"wire": WIRE, **rest})]


def _write_reasoning(block: Reasoning, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return reasoning that came from here as it came, without the status, which is for replies alone."""
    if origin_of(block) != WIRE:
        return None
    summary = [{"type": "summary_text", "text": block.text}] if block.text else []
    fields = {name: value for name, value in block.extension.items() if name not in {"wire", "status"}}
    item = {"type": "reasoning", "summary": summary, **fields}
    if block.signature:
        item["encrypted_content"] = block.signature
    return restore(item, block.extra, losses, path)


def _read_run(item: Mapping[str, Any]) -> list[Any]:
    """Return a tool's run as a call, and its result where the item holds one."""
    service = _RUNS[item["type"]]
    call_id, arguments = text_of(item, service.call_id), item.get(service.arguments)
    content = None if service.output else item.get(service.content)
    extra = extra_of(item, (service.call_id, service.arguments, "" if service.output else service.content))
    call = ServerToolCall(call_id=call_id, name=service.name, arguments=arguments, extra=extra)
    return [call] if content is None else [call, ServerToolResult(call_id=call_id, name=service.name, content=content)]


def _write_run(block: ServerToolCall, losses: Losses, path: str) -> dict[str, Any] | None:
    kind = own_type(block.extra)
    service = _RUNS.get(kind, _NO_SERVICE)
    item: dict[str, Any] = {"type": kind}
    if block.call_id:
        item[service.call_id] = block.call_id
    if block.arguments is not None:
        item[service.arguments] = block.arguments
    return restore(item, block.extra, losses, path) if kind else None


def _read_run_output(item: Mapping[str, Any]) -> list[Any]:
    service = _RUN_OUTPUTS[item["type"]]
    call_id, content = text_of(item, "call_id"), item.get(service.content)
    extra = extra_of(item, ("call_id", service.content))
    return [ServerToolResult(call_id=call_id, name=service.name, content=content, extra=extra)]


def _write_run_output(block: ServerToolResult, losses: Losses, path: str) -> dict[str, Any] | None:
    service = _RUN_OUTPUTS.get(own_type(block.extra))
    if service is None:
        return None
    item = {"type": service.output, service.content: block.content}
    return restore({**item, "call_id": block.call_id} if block.call_id else item, block.extra, losses, path)


def put_result(item: dict[str, Any], block: ServerToolResult | MCPToolResult) -> bool:
    """Put what a tool gave into the item of its run; tell whether it has a place there."""
    output: dict[str, Any] = {}
    service = _RUNS.get(item.get("type", ""), _NO_SERVICE)
    if isinstance(block, MCPToolResult):
        output = _mcp_output(block) if item.get("type") == "mcp_call" else {}
    elif service.content and not service.output:
        output = {service.content: block.content}
    fits = bool(output) and item.get("id") == block.call_id
    item |= output if fits else {}
    return fits


def _read_image(item: Mapping[str, Any]) -> list[Any]:
    """Return the image that the model made; where there is none (yet), the run of the tool."""
    result = text_of(item, "result")
    if not result:
        extra = extra_of(item, ("id", "result"))
        return [ServerToolCall(call_id=text_of(item, "id"), name="image_generation", extra=extra)]
    kind = f"image/{text_of(item, 'output_format') or 'png'}"
    return [AssistantGenImage(base64_data=result, mime_type=kind, extra=extra_of(item, ("result",)))]


def _write_image(block: AssistantGenImage, losses: Losses, path: str) -> dict[str, Any]:
    data = data_of(block)
    item = {"type": "image_generation_call", "result": data.base64 if data else None}
    return restore(item, block.extra, losses, path)


# MCP servers that the service talks to


def _read_mcp_call(item: Mapping[str, Any]) -> list[Any]:
    """Return a call of an MCP server's tool, and what it gave where it gave something."""
    names: dict[str, Any] = {name: text_of(item, name) for name in ("name", "server_label")}
    names["call_id"] = text_of(item, "id")
    known = ("id", "name", "server_label", "arguments", "approval_request_id", "output", "error")
    asked = text_of(item, "approval_request_id")
    arguments, extra = argument_json(item.get("arguments")), extra_of(item, known)
    call = MCPToolCall(**names, arguments=arguments, approval_request_id=asked, extra=extra)
    content, error = text_of(item, "output"), item.get("error")
    if error is not None:
        return [call, MCPToolResult(**names, content=content, error=_mcp_error(error), extra={WIRE: {"error": error}})]
    return [call] if item.get("output") is None else [call, MCPToolResult(**names, content=content)]


def _mcp_error(error: Any) -> MCPToolCallError:
    fields = cast("dict[str, Any]", error) if isinstance(error, dict) else {"message": error}
    code, message = fields.get("code"), fields.get("message")
    said = message if isinstance(message, str) else msgspec.json.encode(fields.get("content", message)).decode()
    return MCPToolCallError(code=code if type(code) is int else None, message=said)


def _write_mcp_call(block: MCPToolCall, losses: Losses, path: str) -> dict[str, Any] | None:
    item = {"type": "mcp_call", "id": block.call_id, "name": block.name, "arguments": block.arguments}
    item["server_label"] = block.server_label
    if block.approval_request_id:
        item["approval_request_id"] = block.approval_request_id
    return restore(item, block.extra, losses, path) if own_type(block.extra) else None


def _mcp_output(block: MCPToolResult) -> dict[str, Any]:
    if block.error is None:
        return {"output": block.content}
    told = {"type": "mcp_protocol_error", "code": block.error.code or 0, "message": block.error.message}
    error = {"error": map_of(block.extra, WIRE).get("error", told)}
    return {"output": block.content, **error} if block.content else error


def _read_mcp_tools(item: Mapping[str, Any]) -> list[Any]:
    tools = [
        ToolInfo(
            text_of(tool, "name"),
            text_of(tool, "description"),
            inner(tool, "input_schema", None),
            extra=extra_of(tool, ("name", "description", "input_schema")),
        )
        for tool in list_of(item, "tools")
    ]
    extra = extra_of(item, ("server_label", "tools", "error"))
    label, error = text_of(item, "server_label"), text_of(item, "error")
    return [MCPListToolsResult(server_label=label, tools=tuple(tools), error=error, extra=extra)]


def _write_mcp_tools(block: MCPListToolsResult, losses: Losses, path: str) -> dict[str, Any] | None:
    if not own_type(block.extra):
        return None
    tools: list[dict[str, Any]] = []
    for place, tool in enumerate(block.tools):
        said: dict[str, Any] = {"name": tool.name, "input_schema": dict(tool.parameters or {})}
        if tool.description:
            said["description"] = tool.description
        tools.append(restore(said, tool.extra, losses, f"{path}.tools[{place}]"))
    item: dict[str, Any] = {"type": "mcp_list_tools", "server_label": block.server_label, "tools": tools}
    return restore({**item, "error": block.error} if block.error else item, block.extra, losses, path)


_FLAT: Mapping[str, tuple[Any, Sequence[str]]] = {
    "mcp_approval_request": (MCPToolApprovalRequest, ("id", "name", "arguments", "server_label")),
    "mcp_approval_response": (MCPToolApprovalResponse, ("approval_request_id", "approve", "reason")),
}
"""The items whose fields are called as those of their block."""


def _read_flat(item: Mapping[str, Any]) -> list[Any]:
    kind, names = _FLAT[item["type"]]
    fields = {name: item[name] for name in names if item.get(name) is not None}
    fields |= {"arguments": argument_json(item.get("arguments"))} if "arguments" in names else {}
    return [kind(**fields, extra=extra_of(item, ("type", *names)))]


def _write_flat(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    tag, names = next((tag, names) for tag, (kind, names) in _FLAT.items() if type(block) is kind)
    fields = {name: getattr(block, name) for name in names if name != "reason" or block.reason}
    return restore({"type": tag, **fields}, block.extra, losses, path)


_PRODUCTS = (FunctionToolCall, ServerToolCall, MCPToolCall, MCPListToolsResult, AssistantGenImage)
"""What the service refuses without the reasoning that it was made after."""
_READERS: Mapping[str, Callable[[Mapping[str, Any]], list[Any]]] = {
    "reasoning": _read_reasoning,
    "image_generation_call": _read_image,
    "mcp_call": _read_mcp_call,
    "mcp_list_tools": _read_mcp_tools,
    **dict.fromkeys(_FLAT, _read_flat),
    **dict.fromkeys(_RUNS, _read_run),
    **dict.fromkeys(_RUN_OUTPUTS, _read_run_output),
}
_WRITERS: Mapping[Any, Callable[[Any, Losses, str], dict[str, Any] | None]] = {
    Reasoning: _write_reasoning,
    FunctionToolCall: _write_call,
    FunctionToolResult: _write_result,
    ToolSearchResult: _write_found_tools,
    AssistantGenImage: _write_image,
    ServerToolCall: _write_run,
    ServerToolResult: _write_run_output,
    MCPToolCall: _write_mcp_call,
    MCPListToolsResult: _write_mcp_tools,
    **{kind: _write_flat for kind, _ in _FLAT.values()},
}
