"""Reads items of Responses, and the parts of their messages and outputs, as blocks.

Each type of call has its own type of output. Calls that the program answers become a `FunctionToolCall`, so that an
agent can answer them by name; arguments that the API does not send as JSON text become JSON text. What the service
made itself (reasoning, images, the work of its tools and MCP servers) goes back only to the service.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, cast

from msgspec.structs import replace

from suture import messages as native
from suture.codecs import contents, replies
from suture.codecs.codec import located
from suture.codecs.refusals import read_failure
from suture.errors import InputError, ModelError, ModelRequestError, ModelServerError
from suture.providers.openai_responses.wire import CALL_TYPES, FROM_OUTSIDE, ROLES
from suture.wires.fields import argument_json, expect, inner, is_map, json_text, list_of, map_of, object_of, text_of
from suture.wires.values import ASIDE, ITEM, KIND

WIRE = "openai-responses"

_FINAL = "final_answer"
"""The phase of a message that is the answer; what stands beside it is commentary (openai-python#3859)."""
NEEDS = "reasoning"
"""The mark for the id of the reasoning after which the model made a block."""
PART = "part"
"""The mark of an unknown block that is part of a message, not an item."""
INPUTS = {"": "arguments", "custom": "input", "local_shell": "action", "shell": "action", "apply_patch": "operation"}
"""The field of the arguments, for each kind of call that becomes a `FunctionToolCall`."""
CALLS = {pair.call: pair for pair in CALL_TYPES if pair.kind in INPUTS}
_RESULTS = {pair.output: pair for pair in CALLS.values()}
KINDS = {pair.kind: pair for pair in CALLS.values()}
_OUTPUTS = frozenset(pair.output for pair in CALL_TYPES)
FUNCTION, _CUSTOM = CALLS["function_call"], CALLS["custom_tool_call"]


def _call_shape(arguments: str = "", call_id: str = "id") -> contents.Shape:
    return contents.Shape(
        WIRE, native.ServerToolCall, call_id=call_id, **({"arguments": arguments} if arguments else {})
    )


def _result_shape(content: str, call_id: str = "call_id") -> contents.Shape:
    return contents.Shape(WIRE, native.ServerToolResult, call_id=call_id, content=content)


_MCP_CALL = {"name": "name", "arguments": "arguments", "server_label": "server_label"}
_APPROVAL_ID = "approval_request_id"
SERVICE_ITEMS: Mapping[str, contents.Shape] = {
    "web_search_call": _call_shape("action"),
    "file_search_call": _call_shape("queries"),
    "code_interpreter_call": _call_shape("code"),
    "image_generation_call": _call_shape(),
    "program": _call_shape("code", "call_id"),
    "program_output": _result_shape("result"),
    "computer_call": _call_shape("action", "call_id"),
    "computer_call_output": _result_shape("output"),
    "tool_search_call": _call_shape("arguments", "call_id"),
    "tool_search_output": _result_shape("tools"),
    "mcp_call": contents.Shape(WIRE, native.MCPToolCall, call_id="id", **_MCP_CALL, approval_request_id=_APPROVAL_ID),
    "mcp_list_tools": contents.Shape(WIRE, native.MCPListToolsResult, server_label="server_label", error="error"),
    "mcp_approval_request": contents.Shape(WIRE, native.MCPToolApprovalRequest, id="id", **_MCP_CALL),
    "mcp_approval_response": contents.Shape(
        WIRE, native.MCPToolApprovalResponse, approval_request_id=_APPROVAL_ID, approve="approve", reason="reason"
    ),
}
"""The block for each type of item that the service ran, and for approvals."""
TOOL_OUTPUTS: Mapping[str, tuple[contents.Shape, tuple[str, ...]]] = {
    "file_search_call": (_result_shape("results", "id"), ("results",)),
    "code_interpreter_call": (_result_shape("outputs", "id"), ("outputs",)),
    "mcp_call": (
        contents.Shape(
            WIRE, native.MCPToolResult, call_id="id", name="name", content="output", server_label="server_label"
        ),
        ("output", "error"),
    ),
}
"""For items that also hold the output of a tool: the block for that output, and the fields that hold it."""
APPROVALS: Mapping[Any, str] = {
    native.MCPToolApprovalRequest: "mcp_approval_request",
    native.MCPToolApprovalResponse: "mcp_approval_response",
}
"""The types of items that a program may make itself."""
KNOWN_BY_ID = frozenset(
    (
        *("web_search_call", "file_search_call", "code_interpreter_call"),
        *("image_generation_call", "mcp_call", "mcp_list_tools"),
    )
)
"""The types of items that mean nothing without their id."""
WITHOUT_ID = frozenset(("message", "reasoning", "function_call", "custom_tool_call", "shell_call", "apply_patch_call"))
"""The types of items that the service accepts without an id."""
_PRODUCTS = (
    native.FunctionToolCall,
    native.ServerToolCall,
    native.MCPToolCall,
    native.MCPListToolsResult,
    native.AssistantGenImage,
)
"""The blocks that the service refuses without the reasoning before them."""


_READ_OR_REPEATED = frozenset(
    (
        *("object", "output", "status", "error", "incomplete_details", "usage", "access_programs", "background"),
        *("frequency_penalty", "image", "instructions", "max_output_tokens", "max_tool_calls", "metadata"),
        *("parallel_tool_calls", "presence_penalty", "previous_response_id", "prompt", "prompt_cache_key"),
        *("prompt_cache_options", "prompt_cache_retention", "reasoning", "safety_identifier", "store", "temperature"),
        *("text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation", "user"),
    )
)
"""The fields of a response that are read, or that only repeat its request."""
_COUNTS = {
    "prompt_tokens": "input_tokens",
    "completion_tokens": "output_tokens",
    "total_tokens": "total_tokens",
    "cached_tokens": "input_tokens_details.cached_tokens",
    "cache_write_tokens": "input_tokens_details.cache_write_tokens",
    "reasoning_tokens": "output_tokens_details.reasoning_tokens",
}
_REFUSALS = ("invalid_", "image_", "unsupported_", "empty_image", "failed_to_download_image")


# Fields of items


def own_type(extra: Mapping[str, Any]) -> str:
    """Return the type of item, part or tool that an `extra` keeps; the empty string if it keeps none."""
    kind = map_of(extra, WIRE).get("type")
    return kind if isinstance(kind, str) else ""


def text_type(*, by_model: bool) -> str:
    """Return the type of a text by or for the model."""
    return "output_text" if by_model else "input_text"


def arguments_of(item: Mapping[str, Any], kind: str) -> str:
    """Return the arguments of a call as JSON text; the input of a custom tool is put in an object."""
    field = INPUTS[CALLS[kind].kind]
    return argument_json({field: text_of(item, field)} if kind == _CUSTOM.call else item.get(field))


def name_of(item: Mapping[str, Any], kind: str) -> str:
    """Return the name of the tool in a call, or the name that its type implies."""
    return text_of(item, "name") or ("" if CALLS[kind].name else CALLS[kind].kind)


def _kind_of(item: Any) -> str:
    """Return the type of an item; one without a type is a reference if it has an id and no role, else a message."""
    text_of(expect(item, dict, "an object", ""), "id")
    kind = item.get("type")
    if kind is None:
        return "item_reference" if "role" not in item and "id" in item else "message"
    return expect(kind, str, "a string", "type")


def _role_of(item: Mapping[str, Any]) -> native.AgenticRole:
    """Return the role of the message that an item is, or belongs to."""
    kind = _kind_of(item)
    if kind == "message":
        role = item.get("role")
        if not isinstance(role, str) or role not in ROLES:
            raise InputError(f"an item has a type or a role, one of {', '.join(ROLES)}; found {role!r}", path="role")
        return cast("native.AgenticRole", ROLES[role])
    if kind in FROM_OUTSIDE:
        return "system"
    by_service = kind == "tool_search_output" and not item.get("call_id")
    return "user" if kind in _OUTPUTS and not by_service else "assistant"


def _mark(block: Any, **marks: Any) -> Any:
    """Return `block` with our `marks` in its `extra`."""
    extra = {**block.extra, WIRE: {**map_of(block.extra, WIRE), **marks}}
    is_whole = isinstance(block, native.Opaque)
    return native.Opaque({**block.data, "extra": extra}) if is_whole else replace(block, extra=extra)


# Items and parts, read


class _Reader(contents.ContentReader):
    wire = WIRE

    def keep(self, holder: Mapping[str, Any], *known: str, absent: Iterable[str] = ()) -> dict[str, Any]:
        # The SDK adds these fields for its user; the API does not take them back.
        return super().keep(holder, *known, "parsed", "parsed_arguments", absent=absent)

    def read(self, block: Mapping[str, Any]) -> Any:
        """Return the block for a part."""
        kind = block.get("type")
        if not isinstance(kind, str):
            raise InputError("expected a type", path="type")
        if kind in {"input_text", "output_text", "text"}:
            own = "type" if kind == text_type(by_model=self.by_model) else ""
            return self.text(text_of(block, "text"), extra=self.keep(block, own, "text"))
        if self.by_model:
            if kind == "refusal":
                extra = self.keep(block, "type", kind)
                return native.AssistantGenText(text_of(block, kind), extension={kind: True}, extra=extra)
        elif kind == "input_image":
            extra, where = self.keep(block, "type", "image_url", "detail"), text_of(block, "image_url")
            return native.UserInputImage(**contents.read_url(where), detail=text_of(block, "detail"), extra=extra)
        elif kind == "input_file":
            data, name = text_of(block, "file_data"), text_of(block, "filename")
            media: dict[str, Any] = contents.read_url(data) if data.startswith("data:") else {"base64_data": data}
            media = media if data else {"url": text_of(block, "file_url")}
            extra = self.keep(block, "type", "filename", "file_data", "" if data else "file_url")
            return native.UserInputFile(**media, name=name, extra=extra)
        elif kind == "input_audio" and set(audio := object_of(block, kind)) == {"data", "format"}:
            data, mime_type = text_of(audio, "data"), f"audio/{text_of(audio, 'format')}"
            return native.UserInputAudio(base64_data=data, mime_type=mime_type, extra=self.keep(block, kind))
        return _mark(self.unknown(block), **{PART: True})

    def read_item(self, item: Mapping[str, Any], kind: str) -> list[Any]:
        """Return the blocks for an item."""
        if kind in CALLS:
            return [self._read_call(item, kind)]
        is_event = kind == FUNCTION.output and not item.get("call_id") and bool(item.get("name"))
        if kind in _RESULTS and not is_event:
            return [self._read_result(item, kind)]
        reader = self.readers.get(kind)
        return [self.unknown({**item, "type": kind})] if reader is None else reader(self, item)

    def _read_call(self, item: Mapping[str, Any], kind: str) -> native.FunctionToolCall:
        pair, name, arguments = CALLS[kind], name_of(item, kind), arguments_of(item, kind)
        own = "" if pair is _CUSTOM else "type"  # kept for a custom call: its arguments are its input in an object
        extra = self.keep(item, "call_id", "name", INPUTS[pair.kind], own) | ({KIND: pair.kind} if pair.kind else {})
        return native.FunctionToolCall(text_of(item, "call_id"), name, arguments, extra=extra)

    def _read_result(self, item: Mapping[str, Any], kind: str) -> native.FunctionToolResult:
        pair = _RESULTS[kind]
        call_id, output = text_of(item, pair.output_id), item.get("output")
        is_list = pair.kind == "shell" and output is not None
        content = [native.UserInputText(json_text(output))] if is_list else _Reader().read_content(item, "output")
        own = "status" if pair.kind == "apply_patch" else ""
        failed = bool(own) and item.get(own) == "failed"
        extra = self.keep(item, "type", pair.output_id, "output", own) | ({KIND: pair.kind} if pair.kind else {})
        return native.FunctionToolResult(call_id, name_of(item, pair.call), tuple(content), failed, extra=extra)

    def _read_reasoning(self, item: Mapping[str, Any]) -> list[Any]:
        """Return the block for reasoning; its `extension` keeps what is needed to send it again."""
        summary, content = list_of(item, "summary"), list_of(item, "content")
        texts = [text_of(part, "text") for part in (*summary, *content)]
        is_one_text = not content and summary in ([], [{"type": "summary_text", "text": texts[0]}] if texts else [])
        rest = contents.rest_of(item, "type", "encrypted_content", "summary" if is_one_text else "")
        signature, extension = text_of(item, "encrypted_content"), {"wire": WIRE, **rest}
        return [native.Reasoning("\n\n".join(texts), signature, extension=extension)]

    def _read_service(self, item: Mapping[str, Any]) -> list[Any]:
        """Return the block for an item, and a second one for its output if it has one."""
        kind = item["type"]
        result, fields = TOOL_OUTPUTS.get(kind, (SERVICE_ITEMS[kind], ()))
        more: dict[str, Any] = {}
        if kind == "mcp_list_tools":  # the list is also kept as it came
            more["tools"] = [
                native.ToolInfo(text_of(tool, "name"), text_of(tool, "description"), inner(tool, "input_schema", None))
                for tool in list_of(item, "tools")
            ]
        elif not kind.startswith("mcp_"):
            more["name"] = kind.removesuffix("_output").removesuffix("_call")
        made = [SERVICE_ITEMS[kind].read(item, *fields, "type" if kind in APPROVALS.values() else "", **more)]
        if any(item.get(field) is not None for field in fields):
            failed = kind == "mcp_call" and item.get("error") is not None
            more |= {"error": _read_mcp_error(item["error"])} if failed else {}
            held = {field: item.get(field) for field in (*fields, "id", "name", "server_label")}
            made.append(result.read(held, "name", **more))
        return made

    def _read_image(self, item: Mapping[str, Any]) -> list[Any]:
        """Return the image that the model made; if there is none yet, the call of the image tool."""
        result = text_of(item, "result")
        if not result:
            return self._read_service(item)
        kind = f"image/{text_of(item, 'output_format') or 'png'}"
        return [native.AssistantGenImage(base64_data=result, mime_type=kind, extra=self.keep(item, "result"))]

    readers: ClassVar = {
        **dict.fromkeys(SERVICE_ITEMS, _read_service),
        "reasoning": _read_reasoning,
        "image_generation_call": _read_image,
    }


def _read_mcp_error(error: Any) -> native.MCPToolCallError:
    """Return why an MCP server failed; the error is also kept as it came."""
    said: Mapping[str, Any] = error if is_map(error) else {"message": error}
    code, message = said.get("code"), said.get("message")
    told = message if isinstance(message, str) else json_text(said.get("content", message))
    return native.MCPToolCallError(code=code if type(code) is int else None, message=told)


class _MessageBuilder(_Reader):
    """Collects consecutive items of the model in one message."""

    def __init__(self, *, is_reply: bool = False) -> None:
        super().__init__(by_model=True)
        self._blocks: list[Any] = []
        self._is_reply = is_reply
        self._needs = ""
        self._head: Mapping[str, Any] | None = None
        self._after_text = False
        self._phases: list[Any] = []
        """The phase of the message that each block is part of; `None` for a block that is no part of one."""

    def message(self) -> native.AgenticMessage:
        """Return the message; if it has a final answer, its other texts were said beside that."""
        extra = {WIRE: {ITEM: self._head}} if self._head else {}
        blocks = self._blocks
        if _FINAL in self._phases:
            blocks = [
                replace(block, extension={**block.extension, ASIDE: True})
                if phase != _FINAL and isinstance(block, native.AssistantGenText)
                else block
                for block, phase in zip(blocks, self._phases, strict=True)
            ]
        return native.AgenticMessage("assistant", tuple(blocks), extra=extra)

    def add(self, item: Mapping[str, Any]) -> None:
        kind = _kind_of(item)
        if kind == "message":
            self._add_message(item)
            return
        self._after_text = False
        if kind == "reasoning":
            self._needs = text_of(item, "id")
        blocks = self.read_item(item, kind)
        if self._needs and isinstance(blocks[0], _PRODUCTS):
            blocks[0] = _mark(blocks[0], **{NEEDS: self._needs})
        self._blocks += blocks
        self._phases += [None] * len(blocks)

    def _add_message(self, item: Mapping[str, Any]) -> None:
        """Add the parts of a message, and keep its other fields."""
        by_model = _role_of(item) == "assistant"
        if (self._is_reply or item.get("id")) and not isinstance(item.get("content"), str):
            # Annotations and likelihoods need not be kept if they are empty.
            parts = [
                {name: value for name, value in part.items() if value or name not in {"annotations", "logprobs"}}
                for part in list_of(item, "content")
            ]
            item = {**item, "content": parts}
        parts = _Reader(by_model=by_model).read_content(item)
        if not parts:
            return
        head = dict(map_of(self.keep(item, "type", "content", "role" if by_model else ""), WIRE))
        if self._needs:
            head[NEEDS] = self._needs
        if self._head is None:
            self._head = head
        elif head or self._after_text:
            parts[0] = _mark(parts[0], **{ITEM: head})
        self._after_text = True
        self._blocks += parts
        self._phases += [item.get("phase")] * len(parts)


def read_items(items: Sequence[Mapping[str, Any]]) -> list[native.AgenticMessage]:
    """Return `items` as messages: one for consecutive items of the model, one for every other item."""
    messages: list[native.AgenticMessage] = []
    reader, builder = _Reader(), None
    for index, item in enumerate(items):
        with located(index=index):
            role = _role_of(item)
            if role == "assistant":
                builder = builder or _MessageBuilder()
                builder.add(item)
                continue
            messages += [] if builder is None else [builder.message()]
            builder, kind = None, _kind_of(item)
            if kind != "message":
                messages.append(native.AgenticMessage(role, tuple(reader.read_item(item, kind))))
                continue
            extra = reader.keep(item, "content", "role" if item.get("role") == role else "")
            messages.append(native.AgenticMessage(role, tuple(reader.read_content(item)), extra=extra))
    return messages if builder is None else [*messages, builder.message()]


# Responses


def read_error(said: Mapping[str, Any]) -> ModelError:
    """Return the error that a response or an event of a stream reports."""
    refuses = any(str(said.get(name)).startswith(_REFUSALS) for name in ("code", "type"))
    return read_failure(WIRE, said, default=ModelRequestError if refuses else ModelServerError)


def read_reply(body: Mapping[str, Any]) -> native.AgenticMessage:
    """Return the message in the body of a response; raise the error that it reports."""
    error = body.get("error")
    if is_map(error):
        raise read_error(error)
    status = text_of(body, "status") or "completed"
    if status not in {"completed", "incomplete"}:
        raise ModelServerError(f"the response is {status[:40]}, with no reply in it", provider=WIRE)
    if not isinstance(body.get("output"), list):
        raise InputError("a response without output")
    builder = _MessageBuilder(is_reply=True)
    for place, item in enumerate(list_of(body, "output")):
        with located(f"output[{place}]"):
            builder.add(item)
    message = builder.message()
    return replace(message, response_meta=_meta(body, status, message.content_blocks))


def read_usage(body: Mapping[str, Any]) -> native.TokenUsage | None:
    """Return the token usage of a response; `None` if it reports none."""
    return None if body.get("usage") is None else replies.read_usage(body["usage"], _COUNTS)


def _meta(body: Mapping[str, Any], status: str, blocks: Sequence[Any]) -> native.ResponseMeta:
    reason = "tool_calls" if any(isinstance(block, native.FunctionToolCall) for block in blocks) else "stop"
    if status == "incomplete":
        reason = text_of(object_of(body, "incomplete_details", optional=True), "reason") or status
    facts = {name: value for name, value in body.items() if name not in _READ_OR_REPEATED}
    texts = [block for block in blocks if isinstance(block, native.AssistantGenText)]
    likely = [token for block in texts for token in list_of(map_of(block.extra, WIRE), "logprobs")]
    logprobs = replies.read_logprobs(likely) if likely else None
    return replies.make_meta(facts, reason, {"max_output_tokens": "length"}, read_usage(body), logprobs)
