"""What the service itself did: what it thought, the tools that it ran, the images that it made."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from suture.codecs._contents import data_of
from suture.codecs._values import Losses
from suture.messages import AssistantGenImage, Reasoning, ServerToolCall, ServerToolResult
from suture.providers.openai_responses.fields import NEEDS, WIRE, beside, list_in, own_type, returned, text_in

__all__ = [
    "SERVICES",
    "SERVICE_OUTPUTS",
    "is_own",
    "read_image",
    "read_reasoning",
    "read_service",
    "read_service_output",
    "write_image",
    "write_reasoning",
    "write_service",
    "write_service_output",
    "write_service_result",
]


class _Service(NamedTuple):
    """A tool of the service: its name, the fields that hold its id, what it was given, and what it gave."""

    name: str
    arguments: str
    content: str = ""
    call_id: str = "id"


SERVICES: Mapping[str, _Service] = {
    "web_search_call": _Service("web_search", "action"),
    "file_search_call": _Service("file_search", "queries", "results"),
    "code_interpreter_call": _Service("code_interpreter", "code", "outputs"),
    "computer_call": _Service("computer", "action", call_id="call_id"),
    "tool_search_call": _Service("tool_search", "arguments", call_id="call_id"),
    "program": _Service("program", "code", call_id="call_id"),
}
SERVICE_OUTPUTS: Mapping[str, _Service] = {
    "computer_call_output": _Service("computer", "", "output", "call_id"),
    "tool_search_output": _Service("tool_search", "", "tools", "call_id"),
    "program_output": _Service("program", "", "result", "call_id"),
}


def is_own(block: Any) -> bool:
    """Tell whether a block was read from this service: no other one's work can be sent to it.

    >>> is_own(ServerToolCall(call_id="srvtoolu_1", name="web_search"))
    False
    """
    return bool(own_type(block.extra))


# Reasoning


def read_reasoning(item: Mapping[str, Any]) -> Reasoning:
    """Return what the model thought: the summary, what it was made of, and all that is needed to send it again.

    >>> read_reasoning({"type": "reasoning", "summary": [], "encrypted_content": "gAAA"}).signature
    'gAAA'
    """
    summary, content = list_in(item, "summary"), list_in(item, "content")
    texts = [text_in(part, "text") for part in (*summary, *content)]
    is_one_text = not content and summary in ([], [{"type": "summary_text", "text": texts[0]}] if texts else [])
    known = {"type", "encrypted_content", *(("summary",) if is_one_text else ())}
    rest = {name: value for name, value in item.items() if name not in known and value is not None}
    return Reasoning("\n\n".join(texts), text_in(item, "encrypted_content"), extension={"wire": WIRE, **rest})


def write_reasoning(block: Reasoning, losses: Losses, path: str) -> dict[str, Any]:
    """Return the reasoning that came from here as it came.

    >>> write_reasoning(Reasoning("hm", extension={"wire": "openai-responses", "id": "rs_1"}), Losses(), "")
    {'type': 'reasoning', 'summary': [{'type': 'summary_text', 'text': 'hm'}], 'id': 'rs_1'}
    """
    kept = {name: value for name, value in block.extension.items() if name != "wire"}
    summary = [{"type": "summary_text", "text": block.text}] if block.text else []
    item = {"type": "reasoning", "summary": summary, **kept}
    if block.signature:
        item["encrypted_content"] = block.signature
    return returned(item, block.extra, losses, path)


# Tools of the service


def read_service(item: Mapping[str, Any], needs: str = "") -> list[Any]:
    """Return a tool's run as a call, and its result where the item holds one.

    >>> read_service({"type": "web_search_call", "id": "ws_1", "action": {"type": "search"}})[0].name
    'web_search'
    """
    service = SERVICES[item["type"]]
    call_id = text_in(item, service.call_id)
    known = (service.call_id, service.arguments, service.content)
    extra = beside(item, known, **{NEEDS: needs})
    call = ServerToolCall(call_id=call_id, name=service.name, arguments=item.get(service.arguments), extra=extra)
    content = item.get(service.content)
    if content is None:
        return [call]
    return [call, ServerToolResult(call_id=call_id, name=service.name, content=content)]


def write_service(block: ServerToolCall, losses: Losses, path: str) -> dict[str, Any]:
    """Return the item of a tool's run, without its result.

    >>> write_service(read_service({"type": "web_search_call", "id": "ws_1"})[0], Losses(), "")
    {'type': 'web_search_call', 'id': 'ws_1'}
    """
    kind = own_type(block.extra)
    service = SERVICES.get(kind) or _Service("", "arguments")
    item: dict[str, Any] = {"type": kind}
    if block.call_id:
        item[service.call_id] = block.call_id
    if block.arguments is not None:
        item[service.arguments] = block.arguments
    return returned(item, block.extra, losses, path)


def write_service_result(item: dict[str, Any], block: ServerToolResult) -> bool:
    """Put a result into the item of its call; tell whether it has a place there.

    >>> item = {"type": "file_search_call", "id": "fs_1"}
    >>> write_service_result(item, ServerToolResult(call_id="fs_1", content=[])), item["results"]
    (True, [])
    """
    service = SERVICES.get(item.get("type", ""))
    if service is None or not service.content or item.get(service.call_id) != block.call_id:
        return False
    item[service.content] = block.content
    return True


def read_service_output(item: Mapping[str, Any]) -> ServerToolResult:
    """Return what a tool gave, in an item of its own.

    >>> read_service_output({"type": "computer_call_output", "call_id": "a", "output": {}}).name
    'computer'
    """
    service = SERVICE_OUTPUTS[item["type"]]
    extra = beside(item, ("call_id", service.content))
    content = item.get(service.content)
    return ServerToolResult(call_id=text_in(item, "call_id"), name=service.name, content=content, extra=extra)


def write_service_output(block: ServerToolResult, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return the item of a result that had one of its own; `None` where it had none.

    >>> write_service_output(ServerToolResult(call_id="a"), Losses(), "") is None
    True
    """
    kind = own_type(block.extra)
    service = SERVICE_OUTPUTS.get(kind)
    if service is None:
        return None
    item: dict[str, Any] = {"type": kind, service.content: block.content}
    if block.call_id:
        item["call_id"] = block.call_id
    return returned(item, block.extra, losses, path)


# Images


def read_image(item: Mapping[str, Any], needs: str = "") -> Any:
    """Return the image that the model made; where there is none (yet), the run of the tool.

    >>> read_image({"type": "image_generation_call", "id": "ig_1", "result": "iVBO"}).mime_type
    'image/png'
    """
    result = text_in(item, "result")
    if not result:
        extra = beside(item, ("id", "result"), **{NEEDS: needs})
        return ServerToolCall(call_id=text_in(item, "id"), name="image_generation", extra=extra)
    form = text_in(item, "output_format") or "png"
    extra = beside(item, ("result",), **{NEEDS: needs})
    return AssistantGenImage(base64_data=result, mime_type=f"image/{form}", extra=extra)


def write_image(block: AssistantGenImage, losses: Losses, path: str) -> dict[str, Any]:
    """Return the item of an image that was made here.

    >>> write_image(read_image({"type": "image_generation_call", "result": "iVBO"}), Losses(), "")["result"]
    'iVBO'
    """
    data = data_of(block)
    return returned(
        {"type": "image_generation_call", "result": data.base64 if data else None}, block.extra, losses, path
    )
