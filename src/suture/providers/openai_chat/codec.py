"""OpenAI's Chat Completions: messages and requests, from and into native values."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from msgspec.structs import replace

from suture import messages as native
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
from suture.codecs.replies import make_meta, read_logprobs
from suture.codecs.requests import SCHEMA, RequestForm
from suture.errors import InputError, ModelServerError
from suture.providers.openai_chat import stream
from suture.providers.openai_chat.wire import detail_text, write_media
from suture.wires.fields import argument_json, is_list, is_map, list_of, map_of, text_of
from suture.wires.values import KIND

WIRE = stream.WIRE
_REASONS = {"eos": "stop", "eos_token": "stop", "stop_sequence": "stop", "model_length": "length"}
"""What servers say in other words than most."""
_LISTED, _NAMED = "listed", "named"
"""Marks in what is kept: the content was a list, though one text says the same; a result carried its tool's name."""
_SENT_BACK = ("extra_content", _LISTED)
"""What a later request must say of a reply; other fields that only replies have would be refused there."""
_EMPTY = tuple((name, "") for name in (*stream.THOUGHTS, "refusal"))
"""What says nothing: some servers send it with every reply."""
_CALL = "tool_call"
"""What a call of a kind that nobody knows is kept under."""
_INSTEAD = ("refusal", "audio", "images", stream.OLD_CALL)
"""What an assistant message may hold instead of a text."""
_KINDS = {
    "image_url": ("url", "detail"),
    "video_url": ("url",),
    "input_audio": ("data", "format"),
    "file": ("filename", "file_data"),
}
"""The texts in each kind of media, which stand in a field named as its type."""


# Replies, read


def _read_reply(item: Mapping[str, Any]) -> native.AgenticMessage:
    """Return a message of the model's: thought, text, sound, images, calls, in this order."""
    known = ["role", "content", "tool_calls"]
    thought = _read_thought(item, known)
    content, refusal = item.get("content"), item.get("refusal")
    if isinstance(content, str):
        said: list[native.ContentBlock] = [native.AssistantGenText(content)] if content else []
    else:
        said = [*map(_read_reply_part, list_of(item, "content"))]
    if isinstance(refusal, str) and refusal:
        said.append(native.AssistantGenText(refusal, extension={"refusal": True}))
        known.append("refusal")
    audio = item.get("audio")
    if is_map(audio) and isinstance(audio.get("data", ""), str):
        said.append(native.AssistantGenAudio(base64_data=audio.get("data", ""), extra=keep(WIRE, audio, "data")))
        known.append("audio")
    images = _read_images(item, known)
    calls = [*map(_read_call, list_of(item, "tool_calls"))]
    if is_map(item.get(stream.OLD_CALL)):
        calls.append(unknown(WIRE, {stream.OLD_CALL: item[stream.OLD_CALL]}))
        known.append(stream.OLD_CALL)
    return native.AgenticMessage("assistant", (*thought, *said, *images, *calls), extra=_keep_rest(item, known))


def _read_thought(item: Mapping[str, Any], known: list[str]) -> list[native.ContentBlock]:
    found = item.get(stream.DETAILS)
    details = list(found) if is_list(found) and all(map(is_map, found)) else []
    field = next((name for name in stream.THOUGHTS if isinstance(item.get(name), str) and item[name]), "")
    if not field and not details:
        return []
    extension: dict[str, Any] = {"wire": WIRE}
    if field != stream.THOUGHT:
        extension["field"] = field or stream.DETAILS
    if details:
        extension["details"] = details
        known.append(stream.DETAILS)
    known.append(field)
    text = item[field] if field else "".join(map(detail_text, details))
    signature = next((sign for detail in details if isinstance(sign := detail.get("signature"), str) and sign), "")
    return [native.Reasoning(text, signature, extension=extension)]


def _read_reply_part(part: Mapping[str, Any]) -> native.ContentBlock:
    kind, said = part.get("type"), part.get(str(part.get("type")))
    if kind == "thinking" and is_list(said) and stream.only_texts(said):
        text = "".join([piece["text"] for piece in said])
        return native.Reasoning(text, extension={"wire": WIRE, "field": kind}, extra=keep(WIRE, part, "type", kind))
    if kind not in ("text", "refusal") or not isinstance(said, str):
        return unknown(WIRE, part)
    extension = {"refusal": True} if kind == "refusal" else {}
    return native.AssistantGenText(said, extension=extension, extra=keep(WIRE, part, "type", kind))


def _read_images(item: Mapping[str, Any], known: list[str]) -> list[native.ContentBlock]:
    """Return the images that a server sends beside the text, each marked as having come so."""
    images = item.get("images")
    if not is_list(images) or not images:
        return []
    read: list[native.ContentBlock] = []
    for image in images:
        held = map_of(image, "image_url")
        if len(held) != 1 or not isinstance(held.get("url"), str):
            return []
        extra = {"index": None, **rest_of(image, "type", "image_url")}
        read.append(native.AssistantGenImage(**read_url(held["url"]), extra={WIRE: extra}))
    known.append("images")
    return read


def _read_call(call: Mapping[str, Any]) -> native.ContentBlock:
    kind: Any = call.get("type", "function")
    held = call.get(kind) if kind in tuple(stream.ARGUMENTS) else None
    call_id, name = call.get("id") or "", (held.get("name") or "") if is_map(held) else None
    if not is_map(held) or not isinstance(call_id, str) or not isinstance(name, str):
        return unknown(WIRE, {_CALL: dict(call)})
    inner = rest_of(held, "name", stream.ARGUMENTS[kind])
    kept = {**rest_of(call, "id", "type", "index", kind), **({kind: inner} if inner else {})}
    extra = {**({WIRE: kept} if kept else {}), **({KIND: kind} if kind == "custom" else {})}
    absent = "" if kind == "custom" else None
    return native.FunctionToolCall(call_id, name, argument_json(held.get(stream.ARGUMENTS[kind], absent)), extra=extra)


def _keep_rest(item: Mapping[str, Any], known: Collection[str], *marks: str) -> dict[str, Any]:
    """Return the `extra` of what `item` says beside `known`, marked if its content is a list and need not be one."""
    rest, content = {**rest_of(item, *known), **dict.fromkeys(marks)}, item.get("content")
    if is_list(content) and stream.only_texts(content):
        rest[_LISTED] = None
    return {WIRE: rest} if rest else {}


def read_body(body: Mapping[str, Any]) -> native.AgenticMessage:
    """Return what the body of a response says; of several choices, the first. Raise the error that it reports."""
    stream.raise_error(body)
    choice = next(iter(list_of(body, "choices")), dict[str, Any]())
    if not (message := map_of(choice, "message")):
        raise InputError("a reply without a message")
    stream.raise_error(choice)
    read = _read_reply(message)
    rest = map_of(read.extra, WIRE)
    sent = {name: value for name, value in rest.items() if name in _SENT_BACK}
    beside = {name: value for name, value in rest.items() if name not in sent and (name, value) not in _EMPTY}
    blocks, notes = read.content_blocks, beside.get("annotations")
    texts = [block for block in blocks if isinstance(block, native.AssistantGenText) and not block.extension]
    if len(texts) == 1 and is_list(notes) and notes:  # those of the one text stand on it
        text = replace(texts[0], extension={"annotations": list(beside.pop("annotations"))})
        blocks = tuple([text if block is texts[0] else block for block in blocks])
    meta = _read_meta(body, choice, beside)
    return native.AgenticMessage("assistant", blocks, response_meta=meta, extra={WIRE: sent} if sent else {})


def _read_meta(body: Mapping[str, Any], choice: Mapping[str, Any], message: Mapping[str, Any]) -> native.ResponseMeta:
    word = text_of(choice, "finish_reason")
    if word == "error":
        raise ModelServerError("the model broke off with an error", provider=WIRE)
    likely = map_of(choice, "logprobs")  # those of a refusal have no place
    logprobs = read_logprobs(likely["content"]) if rest_of(likely).keys() == {"content"} else None
    known = ("index", "message", "finish_reason", *(("logprobs",) if logprobs is not None else ()))
    # One server tells what a reply cost in a field of its own.
    usage = map_of(body, "x_groq").get("usage") if body.get("usage") is None else body["usage"]
    facts = {**rest_of(body, "object", "choices"), "choice": rest_of(choice, *known), "message": dict(message)}
    return make_meta(facts, word, _REASONS, None if usage is None else stream.read_usage(usage), logprobs)


# Parts of a content, read


def _read_content(item: Mapping[str, Any]) -> list[native.UserInputBlock]:
    content = item.get("content")
    return [native.UserInputText(content)] if isinstance(content, str) else [*map(_read_part, list_of(item, "content"))]


def _read_part(part: Mapping[str, Any]) -> native.UserInputBlock:
    kind = str(part.get("type"))
    held = part.get(kind)
    if kind == "text" and isinstance(held, str):
        return native.UserInputText(held, extra=keep(WIRE, part, "type", "text"))
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
        return native.UserInputFile(name=texts.get("filename", ""), **fields, extra=_keep_both(part, kind, known))
    if names[0] not in texts or (kind == "input_audio" and len(texts) < 2):
        return unknown(WIRE, part)
    extra = _keep_both(part, kind, names)
    if kind == "input_audio":
        form = "mpeg" if texts["format"] == "mp3" else texts["format"]
        return native.UserInputAudio(base64_data=texts["data"], mime_type=f"audio/{form}", extra=extra)
    made = USER_MEDIA[kind.removesuffix("_url")]
    return made(**{**texts, "url": "", **read_url(texts["url"])}, extra=extra)


def _keep_both(part: Mapping[str, Any], name: str, known: Collection[str]) -> dict[str, Any]:
    """Return the `extra` of a part: what neither it nor the object in its field `name` has a place for."""
    inner = rest_of(map_of(part, name), *known)
    kept = {**rest_of(part, "type", name), **({name: inner} if inner else {})}
    return {WIRE: kept} if kept else {}


# Messages, read


def _read_said(item: Mapping[str, Any]) -> native.AgenticMessage:
    role = "user" if item["role"] == "user" else "system"
    known = ("content",) if item["role"] == "developer" else ("role", "content")
    return native.AgenticMessage(role, _read_content(item), extra=_keep_rest(item, known))


def _read_result(item: Mapping[str, Any]) -> native.AgenticMessage:
    call_id, name = text_of(item, "tool_call_id"), text_of(item, "name")
    extra = _keep_rest(item, ("role", "content", "tool_call_id", "name"), *[_NAMED] * bool(name))
    return native.AgenticMessage("user", (native.FunctionToolResult(call_id, name, _read_content(item), extra=extra),))


_READERS: Mapping[Any, Callable[[Mapping[str, Any]], native.AgenticMessage]] = {
    "system": _read_said,
    "developer": _read_said,
    "user": _read_said,
    "assistant": _read_reply,
    "tool": _read_result,
    "function": lambda item: native.AgenticMessage("user", (unknown(WIRE, item),)),
}


# Messages, written

_Placed = Iterable[tuple[str, Any]]
"""Blocks of a message, each with the path to it."""


def _is_result(block: Any) -> bool:
    """Tell whether `block` is a message of its own here: a result, or one of the older form."""
    if isinstance(block, native.Opaque):
        return block.type == f"{WIRE}.block" and map_of(block.data, "value").get("role") == "function"
    return isinstance(block, native.FunctionToolResult | native.ToolSearchResult)


class _Writer(BlockWriter):
    """Writes what the user, the system and the tools say."""

    wire = WIRE

    def write_result(self, block: Any) -> dict[str, Any]:
        if isinstance(block, native.Opaque):
            return dict(block.data["value"])
        kept, block = map_of(block.extra, WIRE), self.tell_found_tools(block)
        if block.is_error:
            self.lose(Lost.ERROR, f"the error flag of {block.call_id or 'a result'}")
        content = _join_parts(self.write_each(block.content, "content"), as_list=_LISTED in kept)
        made: dict[str, Any] = {"role": "tool", "tool_call_id": block.call_id, "content": content}
        if _NAMED in kept:
            made["name"] = block.name
        return self.put_back(made, without_kind(block.extra, "custom"))

    def write_said(self, role: str, blocks: _Placed, *, as_list: bool) -> dict[str, Any]:
        """Return what the user or the system says in `blocks`; the system's is text."""
        parts: list[dict[str, Any] | None] = []
        for self.path, block in blocks:
            if isinstance(block, native.Reasoning):
                self.lose(Lost.REASONING, "a thought that is not the model's")
            elif role == "system" and type(block) in MEDIA:
                parts.append(self.write_words(block))
            else:
                parts.append(self.write_part(block))
        return {"role": role, "content": _join_parts([part for part in parts if part is not None], as_list=as_list)}

    def write_part(self, block: Any) -> dict[str, Any] | None:
        """Return a block of a user message as a part; `None`, and reported, where there is nothing that says it."""
        if isinstance(block, native.Opaque):
            kept = self.unwrap(block)
            if kept is None or kept.keys() not in ({_CALL}, {stream.OLD_CALL}):
                return kept
            return self.lose(Lost.BLOCK, "a call that is not the model's")
        if isinstance(block, native.UserInputText | native.AssistantGenText):
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

    writers: ClassVar = dict.fromkeys((native.UserInputText, native.Opaque, *MEDIA), write_part)


def _join_parts(parts: list[dict[str, Any]], *, as_list: bool) -> str | list[dict[str, Any]]:
    """Return the content that `parts` make: one text, if they are texts and need not be a list."""
    return parts if as_list or not stream.only_texts(parts) else "\n".join([part["text"] for part in parts])


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
                goes_on = isinstance(block, native.AssistantGenText) and isinstance(last, native.AssistantGenText)
                self.parts.append(("" if goes_on else "\n", part))
            last = block
        refusals = [pair for pair in self.parts if pair[1].get("type") == "refusal"]
        if len(refusals) == 1 and len(refusals[0][1]) == 2 and isinstance(refusals[0][1].get("refusal"), str):
            self.parts.remove(refusals[0])
            self.fields["refusal"] = refusals[0][1]["refusal"]
        content: Any = [part for _, part in self.parts]
        if not as_list and stream.only_texts(content):
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

    def _write_thought(self, block: native.Reasoning) -> dict[str, Any] | None:
        """Write a thought where it came from; a server that demands one is told any."""
        extension: Mapping[str, Any] = {}
        if origin_of(block) == WIRE:
            extension = block.extension
            self.report_extension(block, "field", "details")
        elif not (self.field and block.text):
            return self.lose(Lost.REASONING, "a thought that was not made here")
        name, details = self.field or extension.get("field", stream.THOUGHT), extension.get("details", ())
        if name == "thinking":
            return self.put_back({"type": name, name: [{"type": "text", "text": block.text}]}, block.extra)
        self.report_extras(block.extra)
        if details and not self.field:
            self.fields[stream.DETAILS] = [*self.fields.get(stream.DETAILS, ()), *details]
        elif details or block.signature:
            self.lose(Lost.FIELD, "the signature of a thought")
        if name != stream.DETAILS and block.text:
            self.thoughts.setdefault(name, []).append(block.text)
        return None

    def _write_sound(self, block: native.AssistantGenAudio) -> dict[str, Any] | None:
        """Write a sound by its id; what it says, where it has none."""
        kept = map_of(block.extra, WIRE)
        if "id" in kept and "audio" not in self.fields:
            self.fields["audio"] = {"id": kept["id"]}
            return None
        told = {**block.extra, WIRE: {**kept, "transcript": None}} if kept else block.extra
        words = self.tell_media(replace(block, extra=told))
        return {"type": "text", "text": kept.get("transcript") or words}

    def _write_image(self, block: native.AssistantGenImage) -> dict[str, Any] | None:
        """Write an image beside the text if it came so; another's is told in words."""
        made = self.write_media(block) if WIRE in block.extra else None
        if made is None:
            return self.write_words(block)
        self.fields["images"] = [*self.fields.get("images", ()), made]
        return None

    def _write_call(self, block: native.FunctionToolCall) -> None:
        """Write a call, of a function or of a custom tool."""
        given = custom_input(block)
        kind = "function" if given is None else "custom"
        held = {"name": block.name, stream.ARGUMENTS[kind]: block.arguments if given is None else given}
        made, extra = {"id": block.call_id, "type": kind, kind: held}, block.extra
        if given is not None:  # what says that it is of a custom tool has been used
            theirs = map_of(extra, "openai-responses")
            extra = {**without_kind(extra, kind), **({"openai-responses": {**theirs, "type": None}} if theirs else {})}
        self.calls.append(self.put_back(made, extra))

    def _write_unknown(self, block: native.Opaque) -> dict[str, Any] | None:
        """Write what was kept whole, where it stood: among the calls, beside them, or among the parts."""
        kept = self.unwrap(block)
        if kept is None or kept.keys() not in ({_CALL}, {stream.OLD_CALL}):
            return kept
        self.calls += [kept[_CALL]] if _CALL in kept else []
        self.fields |= kept if stream.OLD_CALL in kept else {}
        return None

    writers: ClassVar = {
        **dict.fromkeys((native.UserInputText, native.AssistantGenText), _write_text),
        native.Reasoning: _write_thought,
        native.AssistantGenAudio: _write_sound,
        native.AssistantGenImage: _write_image,
        native.FunctionToolCall: _write_call,
        native.Opaque: _write_unknown,
    }


class _RequestForm(RequestForm):
    wire = WIRE
    paths: ClassVar = {"stop": "stop"}
    answer: ClassVar = {"response_format": {"type": "json_schema", "json_schema": {"name": "answer", "schema": SCHEMA}}}
    function = "function"
    head: ClassVar = {"type": "function"}

    def write_name(self, name: str, tools: Sequence[native.ToolInfo]) -> dict[str, Any]:
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
    >>> from suture.messages import AgenticMessage
    >>> codec = get_codec("openai-chat")
    >>> codec.encode_messages([AgenticMessage.tool_result("call_1", "add", "42")]).payload
    [{'role': 'tool', 'tool_call_id': 'call_1', 'content': '42'}]
    >>> codec.decode_messages([{"role": "user", "content": "hi"}])[0].content_blocks
    (UserInputText(text='hi'),)
    """

    name = WIRE
    folder = stream.ChatReader
    request_form = _RequestForm()

    def write_message(self, message: native.AgenticMessage, losses: Losses) -> list[dict[str, Any]]:
        """Return what `message` is here: each result in it a message, and what is said before, between and behind."""
        made: list[dict[str, Any]] = []
        said: int | None = None
        writer, as_list = _Writer(losses), _LISTED in map_of(message.extra, WIRE)
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
        writer.path, extra, kept = "", message.extra, map_of(message.extra, REST)
        if said is None:
            writer.report_extras(extra, "extra")
            return made
        if set(kept) == {"name"} and isinstance(kept["name"], str):  # the name of who speaks
            made[said] |= kept
            extra = {name: value for name, value in extra.items() if name != REST}
        made[said] = writer.put_back(made[said], extra)
        return made

    def read_message(self, item: Any) -> native.AgenticMessage:
        role = item.get("role") if is_map(item) else None
        reader = _READERS.get(role) if isinstance(role, str) else None
        if reader is None:
            found = f"the role {role!r}" if is_map(item) else type(item).__name__
            raise InputError(f"expected a message of {', '.join(_READERS)}; found {found}", path="role")
        return reader(item)

    def learn(self, result: native.FunctionToolResult, call: native.FunctionToolCall) -> native.FunctionToolResult:
        """Return a result, that of a custom call marked as one."""
        kind = call.extra.get(KIND)
        return replace(result, extra={**result.extra, KIND: kind}) if kind else result

    def write_head(self, instruction: str) -> list[dict[str, Any]]:
        """Return the instruction as the first system message."""
        return [{"role": "system", "content": instruction}] if instruction else []

    def read_reply(self, body: Mapping[str, Any]) -> native.AgenticMessage:
        return read_body(body)
