"""One message of Chat Completions, from and into a native one."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from suture.codecs.codec import Losses, Lost
from suture.codecs.contents import (
    custom_input,
    keep,
    origin_of,
    put_back,
    report_address,
    report_extension,
    report_extra,
    rest_of,
    tag_of,
    unknown,
    unwrap,
    without_kind,
)
from suture.codecs.native import REST
from suture.errors import InputError
from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ToolSearchResult,
    UserInputAudio,
    UserInputBlock,
    UserInputFile,
    UserInputImage,
    UserInputText,
    UserInputVideo,
)
from suture.providers.openai_chat.wire import MEDIA_TYPES, write_media
from suture.wires.fields import argument_json, is_list, is_map, listed, map_of, text_of
from suture.wires.parts import media_in_words, split_data_url
from suture.wires.values import KIND

WIRE = "openai-chat"
LISTED, NAMED = "listed", "named"
"""Marks in what is kept: the content was a list, though one text says the same; a result carried its tool's name."""
THOUGHT, DETAILS = "reasoning_content", "reasoning_details"
THOUGHTS = (THOUGHT, "reasoning")
"""The fields of a text that the model thought, by rank: a server that sends several says the same in each."""
CALL, OLD_CALL = "tool_call", "function_call"
"""What a call of a kind that nobody knows, and one of the older form, are kept under."""
ARGUMENTS = {"function": "arguments", "custom": "input"}
"""Where the arguments of each kind of call stand."""
_INSTEAD = ("refusal", "audio", "images", OLD_CALL)
"""What an assistant message may hold instead of a text."""
_KINDS = {
    "image_url": ("url", "detail"),
    "video_url": ("url",),
    "input_audio": ("data", "format"),
    "file": ("filename", "file_data"),
}
"""The texts in each kind of media, which stand in a field named as its type."""


def restore(made: dict[str, Any], extra: Mapping[str, Any], losses: Losses, path: str = "") -> dict[str, Any]:
    """Return `made` with what was kept for this wire, also inside the objects that it holds."""
    if not extra:
        return made
    kept = map_of(extra, WIRE)
    inner = {
        name: put_back(WIRE, made[name], {WIRE: value}, losses)
        for name, value in kept.items()
        if is_map(value) and is_map(made.get(name))
    }
    return put_back(WIRE, made, {**extra, WIRE: {**kept, **inner}} if inner else extra, losses, path)


def only_texts(parts: Sequence[Any]) -> bool:
    """Tell whether `parts` are texts with nothing attached, so that one text says the same."""
    return all(
        is_map(part) and len(part) == 2 and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in parts
    )


# Parts of a content, read


def _read_content(item: Mapping[str, Any], index: int) -> tuple[UserInputBlock, ...]:
    """Return what a message that is not the model's says."""
    content = item.get("content")
    if content is None or isinstance(content, str):
        return () if content is None else (UserInputText(content),)
    return tuple([_read_part(part) for part in listed(content, index, "content")])


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
        return _read_file(part, texts)
    if names[0] not in texts or (kind == "input_audio" and len(texts) < 2):
        return unknown(WIRE, part)
    extra = _keep_both(part, kind, names)
    if kind == "input_audio":
        form = "mpeg" if texts["format"] == "mp3" else texts["format"]
        return UserInputAudio(base64_data=texts["data"], mime_type=f"audio/{form}", extra=extra)
    made: Any = UserInputImage if kind == "image_url" else UserInputVideo
    return made(**{**texts, **_read_url(texts["url"])}, extra=extra)


def _read_file(part: Mapping[str, Any], texts: Mapping[str, str]) -> UserInputFile:
    data, known = texts.get("file_data", ""), ["filename", "file_data"]
    fields = _read_url(data)
    if "base64_data" not in fields:
        # An address, or an id: what was said is kept, and said again.
        fields["url"] = data if "://" in data else ""
        known.remove("file_data")
    return UserInputFile(name=texts.get("filename", ""), **fields, extra=_keep_both(part, "file", known))


def _read_url(url: str) -> dict[str, Any]:
    """Return the fields of media at `url`: what a data URL holds, where it comes out the same."""
    data = split_data_url(url)
    if data is None or data.url != url:
        return {"url": url}
    return {"url": "", "base64_data": data.base64, "mime_type": data.mime_type}


def _keep_both(part: Mapping[str, Any], name: str, known: Collection[str]) -> dict[str, Any]:
    """Return the `extra` of a part: what neither it nor the object in its field `name` has a place for."""
    inner = rest_of(map_of(part, name), *known)
    kept = {**rest_of(part, "type", name), **({name: inner} if inner else {})}
    return {WIRE: kept} if kept else {}


# Messages, read


def read_message(item: Any, index: int) -> AgenticMessage:
    """Return what `item`, a plain dict, says; raise `InputError` where it is no message."""
    role = item.get("role") if is_map(item) else None
    reader = _READERS.get(role) if isinstance(role, str) else None
    if reader is None:
        found = f"the role {role!r}" if is_map(item) else type(item).__name__
        raise InputError(f"expected a message of {', '.join(_READERS)}; found {found}", index=index, path="role")
    return reader(item, index)


def _read_said(item: Mapping[str, Any], index: int) -> AgenticMessage:
    """Return a message of the user's or the system's."""
    role = "user" if item["role"] == "user" else "system"
    known = ("content",) if item["role"] == "developer" else ("role", "content")
    return AgenticMessage(role, _read_content(item, index), extra=_keep_rest(item, known))


def read_reply(item: Mapping[str, Any], index: int) -> AgenticMessage:
    """Return a message of the model's: thought, text, sound, images, calls, in this order."""
    known = ["role", "content", "tool_calls"]
    thought = _read_thought(item, known)
    content, refusal = item.get("content"), item.get("refusal")
    if content is None or isinstance(content, str):
        said: list[ContentBlock] = [AssistantGenText(content)] if content else []
    else:
        said = [_read_reply_part(part) for part in listed(content, index, "content")]
    if isinstance(refusal, str) and refusal:
        said.append(AssistantGenText(refusal, extension={"refusal": True}))
        known.append("refusal")
    audio, found = item.get("audio"), item.get("tool_calls")
    if is_map(audio) and isinstance(audio.get("data", ""), str):
        said.append(AssistantGenAudio(base64_data=audio.get("data", ""), extra=keep(WIRE, audio, "data")))
        known.append("audio")
    images = _read_images(item, known)
    calls = [] if found is None else [_read_call(call) for call in listed(found, index, "tool_calls")]
    if is_map(item.get(OLD_CALL)):
        calls.append(unknown(WIRE, {OLD_CALL: item[OLD_CALL]}))
        known.append(OLD_CALL)
    return AgenticMessage("assistant", (*thought, *said, *images, *calls), extra=_keep_rest(item, known))


def _read_result(item: Mapping[str, Any], index: int) -> AgenticMessage:
    """Return the result that a tool message is."""
    call_id, name = text_of(item, "tool_call_id", index), text_of(item, "name", index)
    extra = _keep_rest(item, ("role", "content", "tool_call_id", "name"), *[NAMED] * bool(name))
    return AgenticMessage("user", (FunctionToolResult(call_id, name, _read_content(item, index), extra=extra),))


def _read_old_result(item: Mapping[str, Any], _: int) -> AgenticMessage:
    return AgenticMessage("user", (unknown(WIRE, item),))


_READERS: Mapping[str, Callable[[Mapping[str, Any], int], AgenticMessage]] = {
    "system": _read_said,
    "developer": _read_said,
    "user": _read_said,
    "assistant": read_reply,
    "tool": _read_result,
    "function": _read_old_result,
}


def _keep_rest(item: Mapping[str, Any], known: Collection[str], *marks: str) -> dict[str, Any]:
    """Return the `extra` of what `item` says beside `known`, marked if its content is a list and need not be one."""
    rest, content = {**rest_of(item, *known), **dict.fromkeys(marks)}, item.get("content")
    if is_list(content) and only_texts(content):
        rest[LISTED] = None
    return {WIRE: rest} if rest else {}


def _read_thought(item: Mapping[str, Any], known: list[str]) -> list[ContentBlock]:
    found = item.get(DETAILS)
    details = list(found) if is_list(found) and all(map(is_map, found)) else []
    field = next((name for name in THOUGHTS if isinstance(item.get(name), str) and item[name]), "")
    if not field and not details:
        return []
    extension: dict[str, Any] = {"wire": WIRE}
    if field != THOUGHT:
        extension["field"] = field or DETAILS
    if details:
        extension["details"] = details
        known.append(DETAILS)
    known.append(field)
    text = item[field] if field else "".join(map(detail_text, details))
    signature = next((sign for detail in details if isinstance(sign := detail.get("signature"), str) and sign), "")
    return [Reasoning(text, signature, extension=extension)]


def detail_text(detail: Mapping[str, Any]) -> str:
    """Return what one of the details of a thought says in words; what is encrypted says nothing."""
    text = detail.get("text") or detail.get("summary")
    return text if isinstance(text, str) else ""


def _read_reply_part(part: Mapping[str, Any]) -> ContentBlock:
    kind, said = part.get("type"), part.get(str(part.get("type")))
    if kind == "thinking" and is_list(said) and only_texts(said):
        text = "".join([piece["text"] for piece in said])
        return Reasoning(text, extension={"wire": WIRE, "field": kind}, extra=keep(WIRE, part, "type", kind))
    if kind not in ("text", "refusal") or not isinstance(said, str):
        return unknown(WIRE, part)
    extension = {"refusal": True} if kind == "refusal" else {}
    return AssistantGenText(said, extension=extension, extra=keep(WIRE, part, "type", kind))


def _read_images(item: Mapping[str, Any], known: list[str]) -> list[ContentBlock]:
    """Return the images that a server sends beside the text, each marked as having come so."""
    images = item.get("images")
    if not is_list(images) or not images:
        return []
    read: list[ContentBlock] = []
    for image in images:
        held = map_of(image, "image_url")
        if len(held) != 1 or not isinstance(held.get("url"), str):
            return []
        extra = {"index": None, **rest_of(image, "type", "image_url")}
        read.append(AssistantGenImage(**_read_url(held["url"]), extra={WIRE: extra}))
    known.append("images")
    return read


def _read_call(call: Mapping[str, Any]) -> ContentBlock:
    kind: Any = call.get("type", "function")
    held = call.get(kind) if kind in tuple(ARGUMENTS) else None
    call_id, name = call.get("id") or "", (held.get("name") or "") if is_map(held) else None
    if not is_map(held) or not isinstance(call_id, str) or not isinstance(name, str):
        return unknown(WIRE, {CALL: dict(call)})
    inner = rest_of(held, "name", ARGUMENTS[kind])
    kept = {**rest_of(call, "id", "type", "index", kind), **({kind: inner} if inner else {})}
    extra = {**({WIRE: kept} if kept else {}), **({KIND: kind} if kind == "custom" else {})}
    absent = "" if kind == "custom" else None
    return FunctionToolCall(call_id, name, argument_json(held.get(ARGUMENTS[kind], absent)), extra=extra)


# Parts of a content, written


def _write_part(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return a block of a user message as a part; `None`, and reported, where there is nothing that says it."""
    if isinstance(block, Opaque):
        kept = unwrap(WIRE, block, losses, path)
        if kept is None or kept.keys() not in ({CALL}, {OLD_CALL}):
            return kept
        losses.add(Lost.BLOCK, "a call that is not the model's", path)
        return None
    if isinstance(block, UserInputText | AssistantGenText):
        if isinstance(block, AssistantGenText):
            report_extension(block, (), losses, path)
        return restore({"type": "text", "text": block.text}, block.extra, losses, path)
    return _write_media(block, losses, path) or _write_words(block, losses, path)


def _write_media(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return media as a part; `None` where the format cannot hold them."""
    made = write_media(block)
    if made is None:
        return None
    report_address(block, losses, path)
    if not block.base64_data and block.url and block.mime_type and not block.url.startswith("data:"):
        losses.add(Lost.DETAIL, f"type {block.mime_type}", path)
    return restore(made, block.extra, losses, path)


def _write_words(block: Any, losses: Losses, path: str) -> dict[str, Any] | None:
    """Return words in place of media that cannot stand here, and report it; nothing of any other block."""
    if type(block) not in MEDIA_TYPES:
        losses.add(Lost.BLOCK, f"a block of type {tag_of(block)}", path)
        return None
    losses.add(Lost.MEDIA, media_in_words(block), path)
    for name, value in block.extra.items():
        report_extra(name, value, losses, path)
    return {"type": "text", "text": media_in_words(block)}


# Messages, written

_Placed = Iterable[tuple[str, Any]]
"""Blocks of a message, each with the path to it."""


def write_message(message: AgenticMessage, losses: Losses, field: str) -> list[dict[str, Any]]:
    """Return what `message` is here: each result in it a message, and what is said before, between and behind."""
    made: list[dict[str, Any]] = []
    said: int | None = None
    placed = [(f"content_blocks[{place}]", block) for place, block in enumerate(message.content_blocks)]
    for are_results, blocks in groupby(placed, lambda pair: _is_result(pair[1])) if placed else [(False, ())]:
        if are_results:
            made += [_write_result(block, losses, path) for path, block in blocks]
            continue
        as_list = LISTED in map_of(message.extra, WIRE)
        if message.role == "assistant":
            item = _Reply(losses, field).write(blocks, as_list=as_list)
            if placed and not item["content"] and len(item) == 2:
                continue  # all that it said was lost
        else:
            item = _write_said(message.role, blocks, losses, as_list=as_list)
        said = len(made) if said is None else said
        made.append(item)
    if message.response_meta is not None:
        losses.add(Lost.META, "why the reply ended and what it cost")
    extra, native = message.extra, map_of(message.extra, REST)
    if said is None:
        for name, value in extra.items():
            report_extra(name, value, losses, "extra")
        return made
    if set(native) == {"name"} and isinstance(native["name"], str):  # the name of who speaks
        made[said] |= native
        extra = {name: value for name, value in extra.items() if name != REST}
    made[said] = restore(made[said], extra, losses)
    return made


def _is_result(block: Any) -> bool:
    """Tell whether `block` is a message of its own here: a result, or one of the older form."""
    if isinstance(block, Opaque):
        return block.type == f"{WIRE}.block" and map_of(block.data, "value").get("role") == "function"
    return isinstance(block, FunctionToolResult | ToolSearchResult)


def _write_result(block: Any, losses: Losses, path: str) -> dict[str, Any]:
    """Return the message that a result is."""
    if isinstance(block, Opaque):
        return dict(block.data["value"])
    kept = map_of(block.extra, WIRE)
    if isinstance(block, ToolSearchResult):
        losses.add(Lost.BLOCK, "that a result names tools; it is told as text", path)
        content: Any = msgspec.json.encode(block.tools).decode()
    else:
        if block.is_error:
            losses.add(Lost.ERROR, f"the error flag of {block.call_id or 'a result'}", path)
        parts = [_write_part(held, losses, f"{path}.content[{place}]") for place, held in enumerate(block.content)]
        content = _join_parts(parts, as_list=LISTED in kept)
    made: dict[str, Any] = {"role": "tool", "tool_call_id": block.call_id, "content": content}
    if NAMED in kept:
        made["name"] = block.name
    return restore(made, without_kind(block.extra, "custom"), losses, path)


def _write_said(role: str, blocks: _Placed, losses: Losses, *, as_list: bool) -> dict[str, Any]:
    """Return what the user or the system says in `blocks`; the system's is text."""
    parts: list[dict[str, Any] | None] = []
    for path, block in blocks:
        if isinstance(block, Reasoning):
            losses.add(Lost.REASONING, "a thought that is not the model's", path)
        elif role == "system" and type(block) in MEDIA_TYPES:
            parts.append(_write_words(block, losses, path))
        else:
            parts.append(_write_part(block, losses, path))
    return {"role": role, "content": _join_parts(parts, as_list=as_list)}


def _join_parts(parts: Sequence[dict[str, Any] | None], *, as_list: bool) -> str | list[dict[str, Any]]:
    """Return the content that `parts` make: one text, if they are texts and need not be a list."""
    made = [part for part in parts if part is not None]
    return made if as_list or not only_texts(made) else "\n".join([part["text"] for part in made])


class _Reply:
    """An assistant message while it is written, block by block."""

    def __init__(self, losses: Losses, field: str) -> None:
        self.losses, self.field = losses, field
        self.parts: list[tuple[str, dict[str, Any]]] = []
        """The parts of the content, each with what stands before it should all be one text."""
        self.thoughts: dict[str, list[str]] = {}
        self.fields: dict[str, Any] = {}
        self.calls: list[Any] = []

    def write(self, blocks: _Placed, *, as_list: bool) -> dict[str, Any]:
        """Return the message that `blocks` make; a text right behind another goes on with it."""
        last: Any = None
        for path, block in blocks:
            writer = _WRITERS.get(type(block))
            part = writer(self, block, path) if writer else _write_words(block, self.losses, path)
            if part is not None:
                goes_on = isinstance(block, AssistantGenText) and isinstance(last, AssistantGenText)
                self.parts.append(("" if goes_on else "\n", part))
            last = block
        return self._finish(as_list=as_list)

    def _finish(self, *, as_list: bool) -> dict[str, Any]:
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

    def text(self, block: Any, path: str) -> dict[str, Any]:
        kind = "text"
        if isinstance(block, AssistantGenText):
            report_extension(block, ("refusal",), self.losses, path)
            kind = "refusal" if block.extension.get("refusal") else "text"
        return restore({"type": kind, kind: block.text}, block.extra, self.losses, path)

    def thought(self, block: Reasoning, path: str) -> dict[str, Any] | None:
        """Write a thought where it came from; a server that demands one is told any."""
        mine = origin_of(block) == WIRE
        if not mine and not (self.field and block.text):
            self.losses.add(Lost.REASONING, "a thought that was not made here", path)
            return None
        extension: Mapping[str, Any] = block.extension if mine else {}
        if mine:
            report_extension(block, ("field", "details"), self.losses, path)
        name, details = self.field or extension.get("field", THOUGHT), extension.get("details", ())
        if name == "thinking":
            part = {"type": name, name: [{"type": "text", "text": block.text}]}
            return restore(part, block.extra, self.losses, path)
        for other, value in block.extra.items():
            report_extra(other, value, self.losses, path)
        if details and not self.field:
            self.fields[DETAILS] = [*self.fields.get(DETAILS, ()), *details]
        elif details or block.signature:
            self.losses.add(Lost.FIELD, "the signature of a thought", path)
        if name != DETAILS and block.text:
            self.thoughts.setdefault(name, []).append(block.text)
        return None

    def sound(self, block: AssistantGenAudio, path: str) -> dict[str, Any] | None:
        """Write a sound by its id; what it says, where it has none."""
        kept = map_of(block.extra, WIRE)
        if "id" in kept and "audio" not in self.fields:
            self.fields["audio"] = {"id": kept["id"]}
            return None
        words = media_in_words(block)
        self.losses.add(Lost.MEDIA, words, path)
        for name, value in block.extra.items():
            report_extra(name, {**kept, "transcript": None} if name == WIRE and kept else value, self.losses, path)
        return {"type": "text", "text": kept.get("transcript") or words}

    def image(self, block: AssistantGenImage, path: str) -> dict[str, Any] | None:
        """Write an image beside the text if it came so; another's is told in words."""
        made = _write_media(block, self.losses, path) if WIRE in block.extra else None
        if made is None:
            return _write_words(block, self.losses, path)
        self.fields["images"] = [*self.fields.get("images", ()), made]
        return None

    def call(self, block: FunctionToolCall, path: str) -> None:
        """Write a call, of a function or of a custom tool."""
        given = custom_input(block)
        kind = "function" if given is None else "custom"
        held = {"name": block.name, ARGUMENTS[kind]: block.arguments if given is None else given}
        made, extra = {"id": block.call_id, "type": kind, kind: held}, block.extra
        if given is not None:  # what says that it is of a custom tool has been used
            theirs = map_of(extra, "openai-responses")
            extra = {**without_kind(extra, kind), **({"openai-responses": {**theirs, "type": None}} if theirs else {})}
        self.calls.append(restore(made, extra, self.losses, path))

    def unknown(self, block: Opaque, path: str) -> dict[str, Any] | None:
        """Write what was kept whole, where it stood: among the calls, beside them, or among the parts."""
        kept = unwrap(WIRE, block, self.losses, path)
        if kept is None or kept.keys() not in ({CALL}, {OLD_CALL}):
            return kept
        self.calls += [kept[CALL]] if CALL in kept else []
        self.fields |= kept if OLD_CALL in kept else {}
        return None


_WRITERS: Mapping[Any, Callable[[_Reply, Any, str], dict[str, Any] | None]] = {
    AssistantGenText: _Reply.text,
    UserInputText: _Reply.text,
    Reasoning: _Reply.thought,
    AssistantGenAudio: _Reply.sound,
    AssistantGenImage: _Reply.image,
    FunctionToolCall: _Reply.call,
    Opaque: _Reply.unknown,
}
