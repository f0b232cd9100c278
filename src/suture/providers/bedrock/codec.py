"""Messages and requests of Amazon Bedrock's Converse from and into native ones."""

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

import msgspec

from suture.codecs.codec import CODECS, Codec, Losses, Lost, Request
from suture.codecs.contents import CallFinder, as_json, keep, merge_options, put_back, rest_of
from suture.errors import InputError
from suture.messages import AgenticMessage, FunctionToolCall, ToolInfo, UserInputText
from suture.providers.bedrock.blocks import (
    MEDIA,
    WIRE,
    Place,
    has_only,
    read_blocks,
    write_block,
    write_blocks,
    write_words,
)
from suture.providers.bedrock.stream import BedrockReader, read_reply
from suture.wires import check_list
from suture.wires.fields import expect, get, is_map, listed, parse_json, word

_ROLES = ("user", "assistant", "system")
_INFERENCE = {"max_tokens": "maxTokens", "temperature": "temperature", "top_p": "topP", "stop": "stopSequences"}
_CHOICES: Mapping[str, str] = {"auto": "auto", "required": "any"}
_UNSUPPORTED = ("top_k", "seed")
_CONFIGS = ("toolConfig", "inferenceConfig", "outputConfig")
_ANSWER = "answer"
_NO_ARGUMENTS: Mapping[str, Any] = {"type": "object", "properties": {}}
_REMOVED = "This tool is no longer there; do not call it."


class BedrockCodec(Codec):
    """Converse, in the form that JSON has: bytes are base64 text. What boto3 has, bytes, is read as well.

    What is read and written again is the same, but for this:

    - A field that is null is left out, and a message without blocks.
    - A call's `input` is an object: empty where it was missing, or anything else.
    - A document's name has the characters that Converse allows.
    - The texts of `citationsContent` are one text.
    - Blank text in `system` is left out.
    - An output schema is called `answer`, and its text has no blanks.
    - Where a request has no tools but calls of some, `toolConfig` names those: Converse demands it.
    - `ResponseMetadata`, which boto3 adds to a response, is no part of it; its `RequestId` is the reply's id.

    >>> from suture.messages import AgenticMessage
    >>> BedrockCodec().encode_messages([AgenticMessage.user("hi")]).payload
    [{'role': 'user', 'content': [{'text': 'hi'}]}]
    """

    name = WIRE

    def decode_messages(self, items: Sequence[Any]) -> list[AgenticMessage]:
        """Return the messages that `items` say; bytes in them are read as their base64."""
        check_list(items)
        return super().decode_messages(as_json(list(items)))

    def read_messages(self, items: Sequence[Mapping[str, Any]]) -> list[AgenticMessage]:
        """Return what `items` say; a result has the name of its call."""
        names = CallFinder()
        return [_read_message(item, index, names) for index, item in enumerate(items)]

    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return `message` as Converse's; none where nothing of it is left."""
        if message.response_meta is not None:
            losses.add(Lost.META, "why the reply ended and what it cost")
        if self.is_outside(message):
            text = " ".join([getattr(block, "text", "") for block in message.content_blocks])
            losses.add(Lost.SYSTEM, f"that this is the system's: {text[:40]!r}")
        role = "assistant" if message.role == "assistant" else "user"
        content = write_blocks(message.content_blocks, losses)
        written = put_back(WIRE, {"role": role, "content": content}, message.extra, losses)
        return [written] if content else []

    def is_outside(self, message: AgenticMessage) -> bool:
        """Tell whether `message` is the system's and was not read from the middle, where some models take it."""
        return message.role == "system" and get(message.extra.get(WIRE), "role") != "system"

    def write_settings(self, request: Request, losses: Losses) -> dict[str, Any]:
        settings: dict[str, Any] = {}
        leading = request.messages[: self.leading_system(request.messages)]
        system = _write_system(request.instruction, leading, losses)
        if system:
            settings["system"] = system
        tools = [written for tool in request.tools if (written := _write_tool(tool, losses)) is not None]
        if tools:
            settings["toolConfig"] = {"tools": tools}
        _write_options(settings, request.options, losses)
        return settings

    def write_request(self, request: Request, losses: Losses) -> dict[str, Any]:
        return self.name_called_tools(super().write_request(request, losses))

    def name_called_tools(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a body without tools with those that its messages call: Converse wants them named."""
        if "toolConfig" in body:
            return body
        blocks = [block for message in body["messages"] for block in message["content"]]
        names = dict.fromkeys(block["toolUse"]["name"] for block in blocks if "toolUse" in block)
        tools = [{"toolSpec": _spec_of(ToolInfo(name, _REMOVED))} for name in names if name]
        return {**body, "toolConfig": {"tools": tools}} if tools else body

    def decode_request(self, payload: Mapping[str, Any]) -> Request:
        body: dict[str, Any] = as_json(dict(payload))
        instruction, system = _read_system(body.get("system"))
        messages = self.read_messages(expect(body.get("messages", []), list, "a list", "messages"))
        configs = {name: expect(body[name], dict, "an object", name) for name in _CONFIGS if name in body}
        options = _read_options(configs) | {
            name: value for name, value in body.items() if name not in ("messages", "system", *_CONFIGS)
        }
        return Request([*system, *messages], instruction, _read_tools(configs.get("toolConfig", {})), options)

    def decode_reply(self, payload: Mapping[str, Any]) -> AgenticMessage:
        return read_reply(payload)

    def reader(self) -> BedrockReader:
        return BedrockReader()

    def framing(self) -> NoReturn:
        """Refuse: boto3 takes the bytes of a stream apart itself, and hands out the events that a reader takes."""
        raise NotImplementedError("boto3 takes Bedrock's event streams apart itself; feed its events to reader()")


# Messages


def _read_message(item: Any, index: int, names: CallFinder) -> AgenticMessage:
    """Return the message that `item` says; `names` are those of the calls so far, and get those of this one."""
    if not is_map(item):
        raise InputError(f"expected an object, found {type(item).__name__}", index=index)
    role: Any = word(item, "role")
    if role not in _ROLES:
        raise InputError(f"unknown role {role!r}; expected user or assistant", index=index, path="role")
    names.enter(role)
    blocks = read_blocks(item.get("content"), Place(role, index, names=names))
    for block in blocks:
        if isinstance(block, FunctionToolCall):
            names.note(block.call_id, block.name)
    rest = rest_of(item, "content") if role == "system" else rest_of(item, "role", "content")
    return AgenticMessage(role, blocks, extra=keep(WIRE, rest))


# The system's words


def _write_system(instruction: str, system: Sequence[AgenticMessage], losses: Losses) -> list[dict[str, Any]]:
    """Return the instruction, then what the system messages at the beginning say: media in words, nothing blank."""
    made: list[dict[str, Any] | None] = [{"text": instruction}]
    for losses.index, message in enumerate(system):
        put_back(WIRE, {}, message.extra, losses)
        for place, block in enumerate(message.content_blocks):
            write = write_words if block.__class__ in MEDIA else write_block
            made.append(write(block, losses, f"content_blocks[{place}]"))
    losses.index = None
    return [block for block in made if block is not None and not _is_blank(block.get("text"))]


def _is_blank(text: Any) -> bool:
    return isinstance(text, str) and not text.strip()


def _read_system(system: Any) -> tuple[str, list[AgenticMessage]]:
    """Return the instruction where `system` is one text, else the message that holds its blocks."""
    blocks = () if system is None else read_blocks(system, Place("system", path="system"))
    if len(blocks) == 1 and isinstance(blocks[0], UserInputText):
        return blocks[0].text, []
    return "", [AgenticMessage("system", blocks)] if blocks else []


# Tools


def _write_tool(tool: ToolInfo, losses: Losses) -> dict[str, Any] | None:
    kept: Any = tool.extra.get(WIRE)
    bare = tool.parameters is None and not tool.description
    if bare and is_map(kept) and kept and all(is_map(value) for value in kept.values()):
        return dict(kept)
    if bare and kept is None and any(name in CODECS for name in tool.extra):
        losses.add(Lost.TOOL, f"{tool.name}, which another provider runs", "tools")
        return None
    return {"toolSpec": put_back(WIRE, _spec_of(tool), tool.extra, losses, f"tools.{tool.name}")}


def _spec_of(tool: ToolInfo) -> dict[str, Any]:
    description = {"description": tool.description} if tool.description.strip() else {}
    schema = _NO_ARGUMENTS if tool.parameters is None else tool.parameters
    return {"name": tool.name, **description, "inputSchema": {"json": dict(schema)}}


def _read_tools(config: Mapping[str, Any]) -> tuple[ToolInfo, ...]:
    """Return the tools of a `toolConfig`; one that is no function is kept whole."""
    tools: Any = [] if config.get("tools") is None else config["tools"]
    return tuple([_read_tool(tool) for tool in listed(tools, None, "toolConfig.tools")])


def _read_tool(tool: Mapping[str, Any]) -> ToolInfo:
    spec, schema = tool.get("toolSpec"), get(tool.get("toolSpec"), "inputSchema")
    if has_only(tool, "toolSpec") and is_map(spec) and has_only(schema, "json"):
        name, description, parameters = spec.get("name"), spec.get("description", ""), schema.get("json")
        if isinstance(name, str) and isinstance(description, str) and is_map(parameters):
            extra = keep(WIRE, spec, "name", "description", "inputSchema")
            return ToolInfo(name, description, parameters, extra)
    [(kind, held), *_] = [*tool.items(), ("tool", None)]
    name = get(held, "name")
    return ToolInfo(name if isinstance(name, str) else kind, extra=keep(WIRE, tool))


# Options


def _write_options(payload: dict[str, Any], options: Mapping[str, Any], losses: Losses) -> None:
    """Put `options` into `payload`, under Converse's names; the tools are in it already."""
    left = {name: value for name, value in options.items() if value is not None}
    inference = {own: left.pop(name) for name, own in _INFERENCE.items() if name in left}
    if isinstance(inference.get("stopSequences"), str):
        inference["stopSequences"] = [inference["stopSequences"]]
    if inference:
        payload["inferenceConfig"] = inference
    if "tool_choice" in left:
        _write_choice(payload, left.pop("tool_choice"), losses)
    if left.pop("parallel_tool_calls", True) is False:
        losses.add(Lost.OPTION, "parallel_tool_calls")
    schema = left.pop("output_schema", None)
    if schema is not None:
        definition = {"name": _ANSWER, "schema": msgspec.json.encode(schema).decode()}
        payload["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": definition}}}
    merge_options(payload, left, losses, _UNSUPPORTED)


def _write_choice(payload: dict[str, Any], choice: str, losses: Losses) -> None:
    config = payload.get("toolConfig")
    if config is None:
        if choice not in {"auto", "none"}:
            losses.add(Lost.OPTION, f"tool_choice {choice}, without tools")
    elif choice == "none":
        losses.add(Lost.OPTION, "tool_choice none; leave the tools out instead")
    else:
        own: dict[str, Any] = {_CHOICES[choice]: {}} if choice in _CHOICES else {"tool": {"name": choice}}
        payload["toolConfig"] = {**config, "toolChoice": own}


def _read_options(configs: Mapping[str, dict[str, Any]]) -> dict[str, Any]:
    """Return what `configs` say under our names, and what we have no name for under Converse's."""
    options: dict[str, Any] = {}
    rest = {name: dict(config) for name, config in configs.items()}
    inference, tools, output = (rest.get(name, {}) for name in ("inferenceConfig", "toolConfig", "outputConfig"))
    for name, own in _INFERENCE.items():
        if inference.get(own) is not None:
            options[name] = inference.pop(own)
    if tools.get("tools"):
        del tools["tools"]
    choice = _read_choice(tools.get("toolChoice"))
    if choice:
        options["tool_choice"] = choice
        del tools["toolChoice"]
    schema = _read_schema(output.get("textFormat"))
    if schema is not None:
        options["output_schema"] = schema
        del output["textFormat"]
    return options | {name: config for name, config in rest.items() if config or not configs[name]}


def _read_choice(choice: Any) -> str:
    """Return `choice` in our words; the empty one where we have none."""
    for ours, own in _CHOICES.items():
        if choice == {own: {}}:
            return ours
    tool = choice.get("tool") if has_only(choice, "tool") else None
    name = tool.get("name") if has_only(tool, "name") else None
    return name if isinstance(name, str) and name not in {"auto", "none", "required"} else ""


def _read_schema(form: Any) -> Any:
    """Return the schema of the answer; `None` where there is none, or more is said about it."""
    structure = form.get("structure") if has_only(form, "type", "structure") else None
    definition = structure.get("jsonSchema") if has_only(structure, "jsonSchema") else None
    text = definition.get("schema") if has_only(definition, "schema", "name") else None
    if not isinstance(text, str) or form.get("type") != "json_schema":
        return None
    schema = parse_json(text)
    return schema if is_map(schema) else None
