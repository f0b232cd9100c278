"""OpenAI's Chat Completions: messages and requests, from and into native values."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from msgspec.structs import replace

from suture.codecs.codec import Codec, Losses, Lost, report_meta
from suture.codecs.contents import (
    MEDIA,
    USER_MEDIA,
    BlockWriter,
    custom_input,
    keep,
    origin_of,
    read_url,
    rest_of,
    unknown,
    without_kind,
)
from suture.codecs.native import REST
from suture.codecs.requests import SCHEMA, RequestForm
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ToolInfo,
    ToolSearchResult,
    UserInputAudio,
    UserInputBlock,
    UserInputFile,
    UserInputText,
)
from suture.providers.openai_chat.stream import (
    ARGUMENTS,
    CALL,
    DETAILS,
    LISTED,
    NAMED,
    OLD_CALL,
    THOUGHT,
    WIRE,
    ChatReader,
    keep_rest,
    only_texts,
    read_body,
    read_message,
)
from suture.providers.openai_chat.wire import write_media
from suture.wires.fields import is_map, list_of, map_of, text_of
from suture.wires.values import KIND

_INSTEAD = ("refusal", "audio", "images", OLD_CALL)
"""What an assistant message may hold instead of a text."""
_KINDS = {
    "image_url": ("url", "detail"),
    "video_url": ("url",),
    "input_audio": ("data", "format"),
    "file": ("filename", "file_data"),
}
"""The texts in each kind of media, which stand in a field named as its type."""


# Parts of a content, read


def _read_content(item: Mapping[str, Any]) -> list[UserInputBlock]:
    content = item.get("content")
    return [UserInputText(content)] if isinstance(content, str) else [*map(_read_part, list_of(item, "content"))]


def _read_part(part: Mapping[str, Any]) -> UserInputBlock:
    kind = str(part.get("type"))
    held = part.get(kind)
    if kind == "text" and isinstance(held, str):
        return UserInputText(held, extra=keep(WIRE, part, "type", "text"))
    names = _KINDS.get(kind, ())
    if not names or not is_map(held) or not all(isinstance(held.get(name, ""), str) for name in names):
        return unknown(WIRE, part)
    texts = {name: held[name] for name in names if name in held}
    if kind == "file":
        data, known = texts.get("file_data", ""), ["filename", "file_data"]
        fields = read_url(data)
        if "base64_data" not in fields:  # an address, or an id: what was said is kept, and said again
            fields["url"] = data if "://" in data else ""
            known.remove("file_data")
        return UserInputFile(name=texts.get("filename", ""), **fields, extra=_keep_both(part, kind, known))
    if names[0] not in texts or (kind == "input_audio" and len(texts) < 2):
        return unknown(WIRE, part)
    extra = _keep_both(part, kind, names)
    if kind == "input_audio":
        form = "mpeg" if texts["format"] == "mp3" else texts["format"]
        return UserInputAudio(base64_data=texts["data"], mime_type=f"audio/{form}", extra=extra)
    made = USER_MEDIA[kind.removesuffix("_url")]
    return made(**{**texts, "url": "", **read_url(texts["url"])}, extra=extra)


def _keep_both(part: Mapping[str, Any], name: str, known: Collection[str]) -> dict[str, Any]:
    """Return the `extra` of a part: what neither it nor the object in its field `name` has a place for."""
    inner = rest_of(map_of(part, name), *known)
    kept = {**rest_of(part, "type", name), **({name: inner} if inner else {})}
    return {WIRE: kept} if kept else {}


# Messages, read


def _read_said(item: Mapping[str, Any]) -> AgenticMessage:
    role = "user" if item["role"] == "user" else "system"
    known = ("content",) if item["role"] == "developer" else ("role", "content")
    return AgenticMessage(role, _read_content(item), extra=keep_rest(item, known))


def _read_result(item: Mapping[str, Any]) -> AgenticMessage:
    call_id, name = text_of(item, "tool_call_id"), text_of(item, "name")
    extra = keep_rest(item, ("role", "content", "tool_call_id", "name"), *[NAMED] * bool(name))
    return AgenticMessage("user", (FunctionToolResult(call_id, name, _read_content(item), extra=extra),))


_READERS: Mapping[Any, Callable[[Mapping[str, Any]], AgenticMessage]] = {
    "system": _read_said,
    "developer": _read_said,
    "user": _read_said,
    "assistant": read_message,
    "tool": _read_result,
    "function": lambda item: AgenticMessage("user", (unknown(WIRE, item),)),
}


# Messages, written

_Placed = Iterable[tuple[str, Any]]
"""Blocks of a message, each with the path to it."""


def _is_result(block: Any) -> bool:
    """Tell whether `block` is a message of its own here: a result, or one of the older form."""
    if isinstance(block, Opaque):
        return block.type == f"{WIRE}.block" and map_of(block.data, "value").get("role") == "function"
    return isinstance(block, FunctionToolResult | ToolSearchResult)


class _Writer(BlockWriter):
    """Writes what the user, the system and the tools say."""

    wire = WIRE

    def write_result(self, block: Any) -> dict[str, Any]:
        if isinstance(block, Opaque):
            return dict(block.data["value"])
        kept, block = map_of(block.extra, WIRE), self.tell_found_tools(block)
        if block.is_error:
            self.lose(Lost.ERROR, f"the error flag of {block.call_id or 'a result'}")
        content = _join_parts(self.write_each(block.content, "content"), as_list=LISTED in kept)
        made: dict[str, Any] = {"role": "tool", "tool_call_id": block.call_id, "content": content}
        if NAMED in kept:
            made["name"] = block.name
        return self.put_back(made, without_kind(block.extra, "custom"))

    def write_said(self, role: str, blocks: _Placed, *, as_list: bool) -> dict[str, Any]:
        """Return what the user or the system says in `blocks`; the system's is text."""
        parts: list[dict[str, Any] | None] = []
        for self.path, block in blocks:
            if isinstance(block, Reasoning):
                self.lose(Lost.REASONING, "a thought that is not the model's")
            elif role == "system" and type(block) in MEDIA:
                parts.append(self.write_words(block))
            else:
                parts.append(self.write_part(block))
        return {"role": role, "content": _join_parts([part for part in parts if part is not None], as_list=as_list)}

    def write_part(self, block: Any) -> dict[str, Any] | None:
        """Return a block of a user message as a part; `None`, and reported, where there is nothing that says it."""
        if isinstance(block, Opaque):
            kept = self.unwrap(block)
            if kept is None or kept.keys() not in ({CALL}, {OLD_CALL}):
                return kept
            return self.lose(Lost.BLOCK, "a call that is not the model's")
        if isinstance(block, UserInputText | AssistantGenText):
            self.report_extension(block)
            return self.put_back({"type": "text", "text": block.text}, block.extra)
        return self.write_media(block) or self.write_words(block)

    def write_media(self, block: Any) -> dict[str, Any] | None:
        """Return media as a part; `None` where the format cannot hold them."""
        made = write_media(block)
        if made is None:
            return None
        is_elsewhere = not block.base64_data and block.url and not block.url.startswith("data:")
        self.report_media(block, "detail", "name", "" if is_elsewhere else "mime_type")
        return self.put_back(made, block.extra)

    def write_words(self, block: Any) -> dict[str, Any] | None:
        """Return words in place of media that cannot stand here, and report it; nothing of any other block."""
        return {"type": "text", "text": self.tell_media(block)} if type(block) in MEDIA else self.lose_block(block)

    writers: ClassVar = dict.fromkeys((UserInputText, Opaque, *MEDIA), write_part)


def _join_parts(parts: list[dict[str, Any]], *, as_list: bool) -> str | list[dict[str, Any]]:
    """Return the content that `parts` make: one text, if they are texts and need not be a list."""
    return parts if as_list or not only_texts(parts) else "\n".join([part["text"] for part in parts])


class _Reply(_Writer):
    """An assistant message while it is written, block by block."""

    def __init__(self, losses: Losses, field: str) -> None:
        super().__init__(losses)
        self.field = field
        self.parts: list[tuple[str, dict[str, Any]]] = []
        """The parts of the content, each with what stands before it should all be one text."""
        self.thoughts: dict[str, list[str]] = {}
        self.fields: dict[str, Any] = {}
        self.calls: list[Any] = []

    def write(self, blocks: _Placed, *, as_list: bool) -> dict[str, Any]:
        """Return the message that `blocks` make; a text right behind another goes on with it."""
        last: Any = None
        for self.path, block in blocks:
            part = self.writers.get(type(block), _Writer.write_words)(self, block)
            if part is not None:
                goes_on = isinstance(block, AssistantGenText) and isinstance(last, AssistantGenText)
                self.parts.append(("" if goes_on else "\n", part))
            last = block
        refusals = [pair for pair in self.parts if pair[1].get("type") == "refusal"]
        if len(refusals) == 1 and len(refusals[0][1]) == 2 and isinstance(refusals[0][1].get("refusal"), str):
            self.parts.remove(refusals[0])
            self.fields["refusal"] = refusals[0][1]["refusal"]
        content: Any = [part for _, part in self.parts]
        if not as_list and only_texts(content):
            content = "".join([(glue if place else "") + part["text"] for place, (glue, part) in enumerate(self.parts)])
            if not content and (self.calls or any(name in self.fields for name in _INSTEAD)):
                content = None
        made: dict[str, Any] = {"role": "assistant", "content": content}
        made |= {name: "\n".join(texts) for name, texts in self.thoughts.items()}
        made |= self.fields
        return {**made, "tool_calls": self.calls} if self.calls else made

    def _write_text(self, block: Any) -> dict[str, Any]:
        self.report_extension(block, "refusal")
        kind = "refusal" if getattr(block, "extension", {}).get("refusal") else "text"
        return self.put_back({"type": kind, kind: block.text}, block.extra)

    def _write_thought(self, block: Reasoning) -> dict[str, Any] | None:
        """Write a thought where it came from; a server that demands one is told any."""
        extension: Mapping[str, Any] = {}
        if origin_of(block) == WIRE:
            extension = block.extension
            self.report_extension(block, "field", "details")
        elif not (self.field and block.text):
            return self.lose(Lost.REASONING, "a thought that was not made here")
        name, details = self.field or extension.get("field", THOUGHT), extension.get("details", ())
        if name == "thinking":
            return self.put_back({"type": name, name: [{"type": "text", "text": block.text}]}, block.extra)
        self.report_extras(block.extra)
        if details and not self.field:
            self.fields[DETAILS] = [*self.fields.get(DETAILS, ()), *details]
        elif details or block.signature:
            self.lose(Lost.FIELD, "the signature of a thought")
        if name != DETAILS and block.text:
            self.thoughts.setdefault(name, []).append(block.text)
        return None

    def _write_sound(self, block: AssistantGenAudio) -> dict[str, Any] | None:
        """Write a sound by its id; what it says, where it has none."""
        kept = map_of(block.extra, WIRE)
        if "id" in kept and "audio" not in self.fields:
            self.fields["audio"] = {"id": kept["id"]}
            return None
        told = {**block.extra, WIRE: {**kept, "transcript": None}} if kept else block.extra
        words = self.tell_media(replace(block, extra=told))
        return {"type": "text", "text": kept.get("transcript") or words}

    def _write_image(self, block: AssistantGenImage) -> dict[str, Any] | None:
        """Write an image beside the text if it came so; another's is told in words."""
        made = self.write_media(block) if WIRE in block.extra else None
        if made is None:
            return self.write_words(block)
        self.fields["images"] = [*self.fields.get("images", ()), made]
        return None

    def _write_call(self, block: FunctionToolCall) -> None:
        """Write a call, of a function or of a custom tool."""
        given = custom_input(block)
        kind = "function" if given is None else "custom"
        held = {"name": block.name, ARGUMENTS[kind]: block.arguments if given is None else given}
        made, extra = {"id": block.call_id, "type": kind, kind: held}, block.extra
        if given is not None:  # what says that it is of a custom tool has been used
            theirs = map_of(extra, "openai-responses")
            extra = {**without_kind(extra, kind), **({"openai-responses": {**theirs, "type": None}} if theirs else {})}
        self.calls.append(self.put_back(made, extra))

    def _write_unknown(self, block: Opaque) -> dict[str, Any] | None:
        """Write what was kept whole, where it stood: among the calls, beside them, or among the parts."""
        kept = self.unwrap(block)
        if kept is None or kept.keys() not in ({CALL}, {OLD_CALL}):
            return kept
        self.calls += [kept[CALL]] if CALL in kept else []
        self.fields |= kept if OLD_CALL in kept else {}
        return None

    writers: ClassVar = {
        **dict.fromkeys((UserInputText, AssistantGenText), _write_text),
        Reasoning: _write_thought,
        AssistantGenAudio: _write_sound,
        AssistantGenImage: _write_image,
        FunctionToolCall: _write_call,
        Opaque: _write_unknown,
    }


class _RequestForm(RequestForm):
    wire = WIRE
    paths: ClassVar = {"stop": "stop"}
    answer: ClassVar = {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}}
    function = "function"
    head: ClassVar = {"type": "function"}

    def write_name(self, name: str, tools: Sequence[ToolInfo]) -> dict[str, Any]:
        return {"type": "function", "function": {"name": name}}


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
    folder = ChatReader
    request_form = _RequestForm()

    def write_message(self, message: AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return what `message` is here: each result in it a message, and what is said before, between and behind."""
        made: list[dict[str, Any]] = []
        said: int | None = None
        writer, as_list = _Writer(losses), LISTED in map_of(message.extra, WIRE)
        placed = [(f"content_blocks[{place}]", block) for place, block in enumerate(message.content_blocks)]
        for are_results, blocks in groupby(placed, lambda pair: _is_result(pair[1])) if placed else [(False, ())]:
            if are_results:
                for writer.path, block in blocks:
                    made.append(writer.write_result(block))
                continue
            if message.role == "assistant":
                item = _Reply(losses, self.field).write(blocks, as_list=as_list)
                if placed and not item["content"] and len(item) == 2:
                    continue  # all that it said was lost
            else:
                item = writer.write_said(message.role, blocks, as_list=as_list)
            said = len(made) if said is None else said
            made.append(item)
        report_meta(message, losses)
        writer.path, extra, native = "", message.extra, map_of(message.extra, REST)
        if said is None:
            writer.report_extras(extra, "extra")
            return made
        if set(native) == {"name"} and isinstance(native["name"], str):  # the name of who speaks
            made[said] |= native
            extra = {name: value for name, value in extra.items() if name != REST}
        made[said] = writer.put_back(made[said], extra)
        return made

    def read_message(self, item: Any) -> AgenticMessage:
        role = item.get("role") if is_map(item) else None
        reader = _READERS.get(role) if isinstance(role, str) else None
        if reader is None:
            found = f"the role {role!r}" if is_map(item) else type(item).__name__
            raise InputError(f"expected a message of {', '.join(_READERS)}; found {found}", path="role")
        return reader(item)

    def learn(self, result: FunctionToolResult, call: FunctionToolCall) -> FunctionToolResult:
        """Return a result, that of a custom call marked as one."""
        kind = call.extra.get(KIND)
        return replace(result, extra={**result.extra, KIND: kind}) if kind else result

    def write_head(self, instruction: str) -> list[dict[str, Any]]:
        """Return the instruction as the first system message."""
        return [{"role": "system", "content": instruction}] if instruction else []

    def read_reply(self, body: Mapping[str, Any]) -> AgenticMessage:
        return read_body(body)
