"""Translates messages and requests of OpenAI's Chat Completions into native values, and back."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any, ClassVar

from msgspec.structs import replace

from suture import messages as native
from suture.codecs import contents
from suture.codecs.codec import Codec, report_meta
from suture.codecs.losses import Losses, Lost
from suture.codecs.native import REST
from suture.codecs.replies import make_meta, read_logprobs
from suture.codecs.requests import SCHEMA, RequestForm
from suture.errors import InputError, ModelReplyError, ModelServerError
from suture.providers.openai_chat import stream
from suture.providers.openai_chat.calls import joined_choice, separate_calls
from suture.providers.openai_chat.wire import detail_text, write_media
from suture.wires.fields import argument_json, is_list, is_map, list_of, map_of, text_of
from suture.wires.values import KIND

WIRE = stream.WIRE
_REASONS = {"eos": "stop", "eos_token": "stop", "stop_sequence": "stop", "model_length": "length"}
"""Finish reasons for which some servers have their own words."""
_WITH_CALLS = {**_REASONS, **dict.fromkeys(("stop", "eos", "eos_token", ""), "tool_calls")}
"""The same for a reply with calls, which some servers end like any other, or without a word."""
_FAILED = ("error", "insufficient_system_resource", "network_error")
"""Finish reasons of a reply that the server could not finish: any, DeepSeek's, and z.ai's, also behind OpenRouter."""
_SLIP = re.compile("malformed_function_call|unexpected_tool_call", re.IGNORECASE)
"""What Gemini's compatible endpoint says of a call that it could not read."""
_LISTED, _NAMED = "listed", "named"
"""Marks in `extra`: the content was a list though one text says the same; a result carried its tool's name."""
_RETURN_FIELDS = ("extra_content", _LISTED)
"""Fields of a reply that go back with the next request; a server would refuse its other fields there."""
_EMPTY = tuple((name, "") for name in (*stream.THOUGHTS, "refusal"))
"""Empty fields that some servers send with every reply."""
_THOUGHT_PART = "thinking"
"""The type of a part that holds a thought; a server with such parts takes no thought in a field (crush#1590)."""
_CALL = "tool_call"
"""The key under which a call of an unknown kind is kept."""
_TRANSCRIPT = "transcript"
"""The mark of a text that is what the audio of its reply says."""
_TEXT_SUBSTITUTES = ("refusal", "audio", "images", stream.OLD_CALL)
"""Fields that an assistant message may have instead of a text."""
_KINDS = {
    "image_url": ("url", "detail"),
    "video_url": ("url",),
    "input_audio": ("data", "format"),
    "file": ("filename", "file_data"),
}
"""The text fields of each type of media part; they are in an object named like the type."""


# Messages, read


class _Reader(contents.ContentReader):
    wire = WIRE

    def read(self, block: Mapping[str, Any]) -> Any:
        kind = str(block.get("type"))
        said = block.get(kind)
        if kind == "text" and isinstance(said, str):
            return self.text(said, extra=self.keep(block, "type", kind))
        if not self.by_model:
            return self._read_media(block, kind, said)
        if kind == "refusal" and isinstance(said, str):
            return native.AssistantGenText(said, extension={kind: True}, extra=self.keep(block, "type", kind))
        if kind != "thinking" or not is_list(said) or not stream.only_texts(said):
            return self.unknown(block)
        text, extension = "".join([piece["text"] for piece in said]), {"wire": WIRE, "field": kind}
        return native.Reasoning(text, extension=extension, extra=self.keep(block, "type", kind))

    def _read_media(self, part: Mapping[str, Any], kind: str, held: Any) -> Any:
        names = _KINDS.get(kind, ())
        if not names or not is_map(held) or not all(isinstance(held.get(name, ""), str) for name in names):
            return self.unknown(part)
        texts = {name: held[name] for name in names if name in held}
        if kind == "file":
            data, known = texts.get("file_data", ""), ["filename", "file_data"]
            fields = contents.read_url(data)
            if "base64_data" not in fields:  # a URL or an id: `file_data` itself is kept and written back
                fields["url"] = data if "://" in data else ""
                known.remove("file_data")
            extra = self._keep_both(part, kind, "type", inner=known)
            return native.UserInputFile(name=texts.get("filename", ""), **fields, extra=extra)
        if names[0] not in texts or (kind == "input_audio" and len(texts) < 2):
            return self.unknown(part)
        extra = self._keep_both(part, kind, "type", inner=names)
        if kind == "input_audio":
            form = "mpeg" if texts["format"] == "mp3" else texts["format"]
            return native.UserInputAudio(base64_data=texts["data"], mime_type=f"audio/{form}", extra=extra)
        made = contents.USER_MEDIA[kind.removesuffix("_url")]
        return made(**{**texts, "url": "", **contents.read_url(texts["url"])}, extra=extra)

    def _keep_both(self, thing: Mapping[str, Any], name: str, *known: str, inner: Collection[str]) -> dict[str, Any]:
        """Return the `extra` for `thing`: its fields but `known`, and those of its object `name` but `inner`."""
        inside = contents.rest_of(map_of(thing, name), *inner)
        return self.keep({**contents.rest_of(thing, name, *known), **({name: inside} if inside else {})})

    def keep_rest(self, item: Mapping[str, Any], known: Collection[str], *marks: str) -> dict[str, Any]:
        """Return the `extra` for `item`: all but its `known` fields, and a mark if its content need not be a list."""
        content = item.get("content")
        listed = [_LISTED] if is_list(content) and stream.only_texts(content) else []
        return self.keep(item, *known, absent=[*marks, *listed])

    def read_reply(self, item: Mapping[str, Any]) -> native.AgenticMessage:
        """Return an assistant message: its thought, text, audio, images and calls, in this order."""
        known = ["role", "content", "tool_calls"]
        blocks = self._read_thought(item, known)
        blocks += self.read_content(item) if item.get("content") != "" else []
        refusal, audio, old = item.get("refusal"), item.get("audio"), item.get(stream.OLD_CALL)
        if isinstance(refusal, str) and refusal:
            blocks.append(native.AssistantGenText(refusal, extension={"refusal": True}))
            known.append("refusal")
        if is_map(audio) and isinstance(audio.get("data", ""), str):
            blocks.append(native.AssistantGenAudio(base64_data=audio.get("data", ""), extra=self.keep(audio, "data")))
            known.append("audio")
        blocks += self._read_images(item, known)
        blocks += map(self._read_call, list_of(item, "tool_calls"))
        if is_map(old):
            blocks.append(self.unknown({stream.OLD_CALL: old}))
            known.append(stream.OLD_CALL)
        return native.AgenticMessage("assistant", blocks, extra=self.keep_rest(item, known))

    def _read_thought(self, item: Mapping[str, Any], known: list[str]) -> list[native.ContentBlock]:
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

    def _read_images(self, item: Mapping[str, Any], known: list[str]) -> list[native.ContentBlock]:
        """Return the images that a server sends beside the text, each with an `extra` that says so."""
        images = item.get("images")
        images = images if is_list(images) else ()
        held = [map_of(image, "image_url") for image in images]
        if not images or not all(len(image) == 1 and isinstance(image.get("url"), str) for image in held):
            return []
        known.append("images")
        extras = [{WIRE: {"index": None, **contents.rest_of(image, "type", "image_url")}} for image in images]
        found = [contents.read_url(where["url"]) for where in held]
        return [native.AssistantGenImage(**fields, extra=extra) for fields, extra in zip(found, extras, strict=True)]

    def _read_call(self, call: Mapping[str, Any]) -> native.ContentBlock:
        kind: Any = call.get("type", "function")
        held = call.get(kind) if kind in tuple(stream.ARGUMENTS) else None
        call_id, name = call.get("id") or "", (held.get("name") or "") if is_map(held) else None
        if not is_map(held) or not isinstance(call_id, str) or not isinstance(name, str):
            return self.unknown({_CALL: dict(call)})
        field, is_custom = stream.ARGUMENTS[kind], kind == "custom"
        extra = self._keep_both(call, kind, "id", "type", "index", inner=("name", field))
        extra |= {KIND: kind} if is_custom else {}
        arguments = argument_json(held.get(field, "" if is_custom else None))
        return native.FunctionToolCall(call_id, name, arguments, extra=extra)

    def read_input(self, item: Mapping[str, Any]) -> native.AgenticMessage:
        role = "user" if item["role"] == "user" else "system"
        known = ("content",) if item["role"] == "developer" else ("role", "content")
        return native.AgenticMessage(role, self.read_content(item), extra=self.keep_rest(item, known))

    def read_result(self, item: Mapping[str, Any]) -> native.AgenticMessage:
        call_id, name = text_of(item, "tool_call_id"), text_of(item, "name")
        extra = self.keep_rest(item, ("role", "content", "tool_call_id", "name"), *[_NAMED] * bool(name))
        result = native.FunctionToolResult(call_id, name, self.read_content(item), extra=extra)
        return native.AgenticMessage("user", (result,))

    def read_old_result(self, item: Mapping[str, Any]) -> native.AgenticMessage:
        return native.AgenticMessage("user", (self.unknown(item),))


_ROLES: Mapping[Any, Callable[[_Reader, Mapping[str, Any]], native.AgenticMessage]] = {
    **dict.fromkeys(("system", "developer", "user"), _Reader.read_input),
    "assistant": _Reader.read_reply,
    "tool": _Reader.read_result,
    "function": _Reader.read_old_result,
}


def _read_meta(
    body: Mapping[str, Any], choice: Mapping[str, Any], message: Mapping[str, Any], *, calls: bool
) -> native.ResponseMeta:
    word = text_of(choice, "finish_reason")
    failure = next((said for said in (word, choice.get("native_finish_reason")) if said in _FAILED), "")
    if failure:
        raise ModelServerError(f"the model broke off with an error ({failure})", provider=WIRE)
    if _SLIP.search(word) is not None:
        raise ModelReplyError(f"the model's reply is of no use: {word}", provider=WIRE, code=word)
    likely = map_of(choice, "logprobs")  # a `ResponseMeta` has no place for those of a refusal
    logprobs = read_logprobs(likely["content"]) if contents.rest_of(likely).keys() == {"content"} else None
    known = ("index", "message", "finish_reason", *(("logprobs",) if logprobs is not None else ()))
    # Groq reports the token usage of a reply in its own field, Moonshot in the choice.
    places = (body, map_of(body, "x_groq"), choice)
    usage = next((place["usage"] for place in places if place.get("usage") is not None), None)
    facts = {
        **contents.rest_of(body, "object", "choices"),
        "choice": contents.rest_of(choice, *known),
        "message": dict(message),
    }
    counted = None if usage is None else stream.read_usage(usage)
    return make_meta(facts, word, _WITH_CALLS if calls else _REASONS, counted, logprobs)


# Messages, written

_PathedBlocks = Iterable[tuple[str, Any]]
"""Blocks of a message, each with its path."""


def _is_result(block: Any) -> bool:
    """Return whether `block` becomes a separate message: a result, perhaps one of the older form."""
    if isinstance(block, native.Opaque):
        return block.type == f"{WIRE}.block" and map_of(block.data, "value").get("role") == "function"
    return isinstance(block, native.FunctionToolResult | native.ToolSearchResult)


class _Writer(contents.BlockWriter):
    """Writes the messages of the user, the system and the tools."""

    wire = WIRE

    def say(self, text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

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
        return self.put_back(made, contents.without_kind(block.extra, "custom"))

    def write_input(self, role: str, blocks: _PathedBlocks, *, as_list: bool) -> dict[str, Any]:
        """Return the message of the user or the system that `blocks` make; the system's holds only texts."""
        parts: list[dict[str, Any] | None] = []
        for self.path, block in blocks:
            if isinstance(block, native.Reasoning):
                self.lose(Lost.REASONING, "a thought that is not the model's")
            elif role == "system" and type(block) in contents.MEDIA:
                parts.append(self.write_words(block))
            else:
                parts.append(self.write_part(block))
        return {"role": role, "content": _join_parts([part for part in parts if part is not None], as_list=as_list)}

    def write_part(self, block: Any) -> dict[str, Any] | None:
        """Return a block of a user message as a part; report it and return `None` if there is no form for it."""
        if isinstance(block, native.Opaque):
            kept = self.unwrap(block)
            if kept is None or kept.keys() not in ({_CALL}, {stream.OLD_CALL}):
                return kept
            return self.lose(Lost.BLOCK, "a call that is not the model's")
        if isinstance(block, native.UserInputText | native.AssistantGenText):
            return self.write_text(block)
        return self.write_media(block) or self.write_words(block)

    def write_media(self, block: Any) -> dict[str, Any] | None:
        """Return media as a part; `None` if the format cannot hold them."""
        made = write_media(block)
        if made is None:
            return None
        is_elsewhere = not block.base64_data and block.url and not block.url.startswith("data:")
        self.report_media(block, "detail", "name", "" if is_elsewhere else "mime_type")
        return self.put_back(made, block.extra)

    def write_words(self, block: Any) -> dict[str, Any] | None:
        """Report a block that has no form here; return a text in place of media, `None` for any other block."""
        return self.say(self.tell_media(block)) if type(block) in contents.MEDIA else self.lose_block(block)

    writers: ClassVar = dict.fromkeys((native.UserInputText, native.Opaque, *contents.MEDIA), write_part)


def _join_parts(parts: list[dict[str, Any]], *, as_list: bool) -> str | list[dict[str, Any]]:
    """Return the content that `parts` make: one text if all are plain texts and no list is asked for."""
    return parts if as_list or not stream.only_texts(parts) else "\n".join([part["text"] for part in parts])


class _Reply(_Writer):
    """Writes one assistant message, block by block."""

    def __init__(self, losses: Losses, field: str, without: Collection[str] = ()) -> None:
        super().__init__(losses)
        self.field, self.without = field, without
        self.parts: list[tuple[str, dict[str, Any]]] = []
        """The parts of the content, each with the separator before it if all are joined into one text."""
        self.thoughts: dict[str, list[str]] = {}
        self.fields: dict[str, Any] = {}
        self.calls: list[Any] = []

    def write(self, blocks: _PathedBlocks, *, as_list: bool) -> dict[str, Any]:
        """Return the message that `blocks` make; a text behind another continues it."""
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
            if not content and (self.calls or any(name in self.fields for name in _TEXT_SUBSTITUTES)):
                content = None
        made: dict[str, Any] = {"role": "assistant", "content": content}
        made |= {name: "\n".join(texts) for name, texts in self.thoughts.items()}
        made |= self.fields
        return {**made, "tool_calls": self.calls} if self.calls else made

    def _write_text(self, block: Any) -> dict[str, Any] | None:
        if _TRANSCRIPT in getattr(block, "extension", ()):
            return None  # its audio says it
        self.report_extension(block, "refusal")
        kind = "refusal" if getattr(block, "extension", {}).get("refusal") else "text"
        return self.put_back({"type": kind, kind: block.text}, block.extra)

    def _write_thought(self, block: native.Reasoning) -> dict[str, Any] | None:
        """Write a thought that came from this format, or any thought if the server demands one in a field."""
        extension: Mapping[str, Any] = {}
        if contents.origin_of(block) == WIRE:
            extension = block.extension
            self.report_extension(block, "field", "details")
        is_other = self.field == _THOUGHT_PART and extension.get("field") != _THOUGHT_PART
        if is_other or not (extension or (self.field and block.text)):
            return self.lose(Lost.REASONING, "a thought that was not made here")
        name, details = self.field or extension.get("field", stream.THOUGHT), extension.get("details", ())
        if name == _THOUGHT_PART:
            return self.put_back({"type": name, name: [{"type": "text", "text": block.text}]}, block.extra)
        self.report_extras(block.extra)
        sends_text = name != stream.DETAILS and name not in self.without and block.text
        sends_details = details and not self.field and stream.DETAILS not in self.without
        if not sends_text and not sends_details and (name in self.without or details):
            return self.lose(Lost.REASONING, "a thought in a field that the server refuses")
        if sends_details:
            self.fields[stream.DETAILS] = [*self.fields.get(stream.DETAILS, ()), *details]
        elif details or block.signature:
            self.lose(Lost.FIELD, "the signature of a thought")
        if sends_text:
            self.thoughts.setdefault(name, []).append(block.text)
        return None

    def _write_audio(self, block: native.AssistantGenAudio) -> dict[str, Any] | None:
        """Write audio as its id; without one, as its transcript."""
        kept = map_of(block.extra, WIRE)
        if "id" in kept and "audio" not in self.fields:
            self.fields["audio"] = {"id": kept["id"]}
            return None
        told = {**block.extra, WIRE: {**kept, "transcript": None}} if kept else block.extra
        words = self.tell_media(replace(block, extra=told))
        return {"type": "text", "text": kept.get("transcript") or words}

    def _write_image(self, block: native.AssistantGenImage) -> dict[str, Any] | None:
        """Write an image beside the text if it came like that; any other is described in words."""
        made = self.write_media(block) if WIRE in block.extra else None
        if made is None:
            return self.write_words(block)
        self.fields["images"] = [*self.fields.get("images", ()), made]
        return None

    def _write_call(self, block: native.FunctionToolCall) -> None:
        """Write a call, of a function or of a custom tool."""
        given = contents.custom_input(block)
        kind = "function" if given is None else "custom"
        held = {"name": block.name, stream.ARGUMENTS[kind]: block.arguments if given is None else given}
        made, extra = {"id": block.call_id, "type": kind, kind: held}, block.extra
        if given is not None:  # the marks of a custom tool have been used
            theirs = map_of(extra, "openai-responses")
            extra = {
                **contents.without_kind(extra, kind),
                **({"openai-responses": {**theirs, "type": None}} if theirs else {}),
            }
        self.calls.append(self.put_back(made, extra))

    def _write_unknown(self, block: native.Opaque) -> dict[str, Any] | None:
        """Write a block that was kept whole back to where it was: among the calls, in its field, or among the parts."""
        kept = self.unwrap(block)
        if kept is None or kept.keys() not in ({_CALL}, {stream.OLD_CALL}):
            return kept
        self.calls += [kept[_CALL]] if _CALL in kept else []
        self.fields |= kept if stream.OLD_CALL in kept else {}
        return None

    writers: ClassVar = {
        **dict.fromkeys((native.UserInputText, native.AssistantGenText), _write_text),
        native.Reasoning: _write_thought,
        native.AssistantGenAudio: _write_audio,
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
    """Translates messages and requests of Chat Completions both ways, and reads its replies and streams.

    Reading and writing again changes only this. A field that is null is left out, as is an empty list of calls or of
    tools, the index of a call, and an empty thought in a reply. Content that is null becomes an empty text; empty
    content beside calls becomes null. A single refusal is written in its field, not among the parts. Arguments that
    are an object are written as text. The model's audio is sent back as its id. A single stop text is written as a
    list. A file by value gets a name if it has none. If a reply has several choices, only the first is read.

    If a message was not read by this codec and holds only texts, they are written as one text, because many servers
    take nothing else. Each result becomes a separate message, at its place.

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
        """Return the messages that `message` becomes: one for each result, one for each stretch of other blocks."""
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
                item = _Reply(losses, self.field, self.without).write(blocks, as_list=as_list)
                if placed and not item["content"] and len(item) == 2:
                    continue  # all of its content was lost
            else:
                item = writer.write_input(message.role, blocks, as_list=as_list)
            said = len(made) if said is None else said
            made.append(item)
        report_meta(message, losses)
        writer.path, extra, kept = "", message.extra, map_of(message.extra, REST)
        if said is None:
            writer.report_extras(extra, "extra")
            return made
        if set(kept) == {"name"} and isinstance(kept["name"], str):  # the name of the speaker
            made[said] |= kept
            extra = {name: value for name, value in extra.items() if name != REST}
        made[said] = writer.put_back(made[said], extra)
        return made

    def read_message(self, item: Any) -> native.AgenticMessage:
        role = item.get("role") if is_map(item) else None
        reader = _ROLES.get(role) if isinstance(role, str) else None
        if reader is None:
            found = f"the role {role!r}" if is_map(item) else type(item).__name__
            raise InputError(f"expected a message of {', '.join(_ROLES)}; found {found}", path="role")
        return reader(_Reader(by_model=role == "assistant"), item)

    def learn(self, result: native.FunctionToolResult, call: native.FunctionToolCall) -> native.FunctionToolResult:
        """Return the result, marked if its call is one of a custom tool."""
        kind = call.extra.get(KIND)
        return replace(result, extra={**result.extra, KIND: kind}) if kind else result

    def write_head(self, instruction: str) -> list[dict[str, Any]]:
        """Return the instruction as the first system message."""
        return [{"role": "system", "content": instruction}] if instruction else []

    def read_reply(self, body: Mapping[str, Any]) -> native.AgenticMessage:
        stream.raise_error(body)
        choice = joined_choice(list_of(body, "choices"))
        if not (message := map_of(choice, "message")):
            raise InputError("a reply without a message")
        stream.raise_error(choice)
        read = _Reader(by_model=True).read_reply(separate_calls(message))
        rest, blocks = map_of(read.extra, WIRE), read.content_blocks
        sound = next((block for block in blocks if isinstance(block, native.AssistantGenAudio)), None)
        if sound is not None and (said := text_of(map_of(sound.extra, WIRE), "transcript")):
            blocks = [*blocks, native.AssistantGenText(said, extension={_TRANSCRIPT: True})]
        sent = {name: value for name, value in rest.items() if name in _RETURN_FIELDS}
        beside = {name: value for name, value in rest.items() if name not in sent and (name, value) not in _EMPTY}
        notes = beside.get("annotations")
        texts = [block for block in blocks if isinstance(block, native.AssistantGenText) and not block.extension]
        if len(texts) == 1 and is_list(notes) and notes:  # the annotations belong to this one text
            text = replace(texts[0], extension={"annotations": list(beside.pop("annotations"))})
            blocks = [text if block is texts[0] else block for block in blocks]
        calls = any(isinstance(block, native.FunctionToolCall) for block in blocks)
        meta = _read_meta(body, choice, beside, calls=calls)
        return native.AgenticMessage("assistant", blocks, response_meta=meta, extra={WIRE: sent} if sent else {})
