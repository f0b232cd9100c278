"""OpenAI's Chat Completions, which many servers offer: `tool_calls` in assistant messages, a tool message per result.

The older form (`function_call`, role `function`) is read, and answered in the same form: it has no ids, and one call
per message.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct

from suture import messages as native
from suture.errors import InputError
from suture.wires import values
from suture.wires.fields import (
    NO_OBJECT,
    argument_text,
    check_value,
    decode_object,
    get,
    given,
    inner,
    is_blank,
    is_list,
    is_map,
    json_text,
    listed,
    map_of,
    put,
    says_nothing,
    text_of,
    typed,
    without,
    word,
)
from suture.wires.parts import (
    MEDIA,
    Form,
    Telling,
    data_of,
    file_name,
    in_words,
    part_list,
    plain,
    text_block,
    typed_text,
)
from suture.wires.wire import SAID, THOUGHT, ChatWire, ItemWire, gather

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_OLD, _CUSTOM = "function", "custom"
"""The kind of a call in the older form, and the kind of a custom tool's call."""
_INPUT_ROLES = frozenset(("user", "system", "developer"))
_THOUGHTS = ("reasoning_content", "reasoning", "reasoning_details")
_OWN_FIELDS = ("tool_calls", "tool_call_id", "function_call", "refusal", "audio")
_KINDS = {
    "text": values.TEXT,
    "refusal": values.TEXT,
    "image_url": values.MEDIA,
    "input_audio": values.MEDIA,
    "video_url": values.MEDIA,
    "file": values.MEDIA,
}
_OWN_PARTS = frozenset(_KINDS)
_MEDIA_TYPES = {"image": "image_url", "video": "video_url", "audio": "input_audio", "file": "file"}
"""The type of part for each kind of native media; the part has a field of the same name."""
_MIME_TYPES = {"image_url": "image/png", "video_url": "video/mp4", "input_audio": "audio/wav"}
_AUDIO_FORMATS = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav", "vnd.wave": "wav"}
_NEIGHBOUR_PROBLEMS = frozenset(("tool-then-user", "model-first", "late-system", "result-name"))
"""Problems between messages that a glance does not look for."""
_OLD_CALL = frozenset(("function_call",))
_THOUGHT_FIELDS = frozenset(("reasoning_content", "reasoning_details"))
"""The fields for thoughts that other servers add to a message, and some refuse."""


def write_media(media: Any) -> dict[str, Any] | None:
    """Return native media as a part; `None` if Chat Completions cannot hold them, or if it is no media.

    >>> from suture.messages import AudioPart, ImagePart
    >>> write_media(ImagePart(base64_data="iVBO"))
    {'type': 'image_url', 'image_url': {'url': 'data:image/png;base64,iVBO'}}
    >>> write_media(AudioPart(url="https://example.com/a.ogg")) is None
    True
    """
    kind = _MEDIA_TYPES.get(MEDIA.get(media.__class__, ""), "")
    data = data_of(media, _MIME_TYPES.get(kind, "application/octet-stream")) if kind else None
    fields: dict[str, Any] | None = None
    if kind == "input_audio" and data:
        form = data.mime_type.partition("/")[2].partition(";")[0]
        fields = {"data": data.base64, "format": _AUDIO_FORMATS.get(form, form)}
    elif kind == "file":
        kept = map_of(map_of(media.extra, OpenAIChatWire.name), kind)
        if data or "file_id" in kept or "file_data" in kept:
            fields = given(filename=media.name or None)
            fields |= {"filename": file_name(media), "file_data": data.url} if data else {}
    elif kind in {"image_url", "video_url"}:
        url = data.url if data and media.base64_data else media.url
        fields = given(url=url, detail=getattr(media, "detail", "") or None) if url else None
    return None if fields is None else {"type": kind, kind: fields}


def detail_text(detail: Any) -> str:
    """Return the readable text of a detail of a thought; an encrypted one has none."""
    text = get(detail, "text") or get(detail, "summary")
    return text if isinstance(text, str) else ""


class OpenAIChatWire(ItemWire, ChatWire):
    """Messages as Chat Completions takes and returns them.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").view({"role": "tool", "tool_call_id": "a", "content": "42"}).results
    (Result(id='a', name='', content='42', kind='', marked=False, failed=False, extra={}),)
    """

    name = "openai-chat"
    text_arguments = True
    glances_at_rules = True
    has_fields = True
    alternates = False
    kinds = _KINDS
    form = Form(typed_text("text"), text_block("text"), write_media)

    arranges = frozenset(("split-turn", "media-in-result", "missing-field", "missing-result-name"))

    def glance(self, messages: Sequence[Any], start: int, demands: values.Demands) -> int:  # noqa: C901, PLR0912 - the hot loop
        if demands.problems & _NEIGHBOUR_PROBLEMS:
            return start
        place, rest = start, values.iterate(messages, start, demands.stop)
        input_roles, odd_fields = _demanded_of_messages(demands)
        names, limit, match_id, field = demands.names, demands.limit, demands.match_id, demands.field
        try:
            for message in rest:
                if message.__class__ is not dict:
                    break
                role, content, calls = message["role"], message.get("content"), None
                if content is not None and (
                    content.__class__ is not str or not (content.isascii() or content.encode("utf-16"))
                ):
                    break
                if role == "assistant":
                    calls = message.get("tool_calls")
                    if not odd_fields.isdisjoint(message) or (field and not values.is_plain_text(message.get(field))):
                        break
                elif role not in input_roles:
                    break
                if calls is None:
                    if not content:
                        break
                    place += 1
                    continue
                if calls.__class__ is not list or not calls:
                    break
                for call in calls:
                    answer = next(rest)
                    key, function, text = call["id"], call["function"], answer["content"]
                    name, arguments = function["name"], function["arguments"]
                    if answer["tool_call_id"] != key or answer["role"] != "tool" or call["type"] != "function":
                        return place
                    if key.__class__ is not str or not key or len(key) > limit or not match_id(key):
                        return place
                    if text.__class__ is not str or not (text.isascii() or text.encode("utf-16")):
                        return place
                    if not answer.__class__ is call.__class__ is function.__class__ is dict:
                        return place
                    if arguments.__class__ is not str or (name not in names and not demands.learns(name)):
                        return place
                    decode_object(arguments)
                if (len(calls) > 1 or demands.used is not None) and not _are_new(calls, demands):
                    break
                place += 1 + len(calls)
        except (KeyError, StopIteration, *NO_OBJECT):  # a field is not as expected: that needs a second look
            pass
        return place

    def call_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        made = values.iterate(messages, start, stop)
        return [call["id"] for message in made if "tool_calls" in message for call in message["tool_calls"] or ()]

    def claims(self, message: Any) -> bool | None:
        """Return whether `message` is one of Chat Completions; `None` if nothing in it tells."""
        role = word(message, "role")
        if role not in _ROLES or word(message, "type") is not None:
            return False
        if role in {"tool", "function"} or any(get(message, field) is not None for field in _OWN_FIELDS):
            return True
        if is_map(message) and "parts" in message:
            return False
        content = get(message, "content")
        if content is None:
            return role == "assistant" or None
        thinks = get(message, "reasoning_content") is not None  # no other wire has this field
        if isinstance(content, str):
            return True if thinks or not is_map(message) else None
        kinds = {word(part, "type") for part in content} if is_list(content) else {None}
        if not kinds <= _OWN_PARTS:
            return False
        return True if thinks or kinds - {"text"} else None

    def view(self, message: Any, index: int | None = None) -> values.View:
        if index is None and message.__class__ is dict and message.get("role") == "tool":  # most often it is this
            call_id, name, content = message.get("tool_call_id"), message.get("name", ""), message.get("content")
            if call_id.__class__ is name.__class__ is content.__class__ is str:
                return values.View("tool", (), (values.Result(call_id, name, content),))
        role = word(message, "role")
        if isinstance(message, Struct):
            raise self.fault(index, "", "a native message is among messages of another type")
        if role not in _ROLES:
            raise self.fault(index, "role", f"unknown role {role!r}; expected one of {', '.join(_ROLES)}")
        content = get(message, "content")
        if isinstance(content, str):
            if index is not None and not content.isascii():
                check_value(content, index, "content")
        elif content is not None:
            parts = typed(content, index, "content", foreign=("tool_use", "tool_result"))
            if index is not None:
                check_value(parts, index, "content")
        if role == "tool":
            call_id = text_of(message, "tool_call_id", index)
            return values.View("tool", (), (values.Result(call_id, text_of(message, "name", index), content),))
        if role == "function":
            return values.View("tool", (), (values.Result("", text_of(message, "name", index), content, _OLD),))
        if role != "assistant":
            return values.View(_ROLES[role])
        calls = self._calls(message, index)
        speaks = calls or any(get(message, field) is not None for field in ("refusal", "audio", "reasoning_details"))
        return values.View(
            role, calls, empty=not speaks and says_nothing(content), blank=not speaks and is_blank(content)
        )

    def arguments_ok(self, call: values.Call) -> bool:
        """Return whether the arguments are the text of an object; a custom tool takes any text."""
        return call.kind == _CUSTOM or super().arguments_ok(call)

    def family(self, thing: values.Call | values.Result) -> str:
        """Return whether a call or result is of the older form."""
        return _OLD if thing.kind == _OLD else ""

    def has_id(self, call: values.Call) -> bool:
        return call.kind != _OLD

    def tell(self, message: Any, telling: Telling) -> None:
        role = _ROLES[word(message, "role") or ""]
        if role == "assistant":
            details = get(message, "reasoning_details")
            texts = [detail_text(detail) for detail in details] if is_list(details) else []
            thought = get(message, "reasoning_content") or get(message, "reasoning")
            telling.say(thought or "\n".join(filter(None, texts)))
        if role != "tool":
            self.tell_content(get(message, "content"), telling)
        if role == "assistant":
            telling.say(get(message, "refusal"))
            sound = get(message, "audio")
            if sound is not None:
                telling.media += 1
                telling.say(get(sound, "transcript"))

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, values.View], Any]]:
        return {
            "developer-role": _as_system,
            "no-content": _with_content,
            "empty-calls": _without_empty_calls,
            "custom-call": _without_custom_calls,
            "thought-field": _without_thought_fields,
        }

    def edit(self, message: Any, calls: Mapping[int, values.CallEdit], results: Mapping[int, values.ResultEdit]) -> Any:
        made = get(message, "tool_calls") or ()
        if calls and made:
            changed = [_write_call(call, calls.get(position, values.CallEdit())) for position, call in enumerate(made)]
            message = put(message, tool_calls=changed)
        if len(made) in calls:  # the call of the older form comes last
            function = _write_function(get(message, "function_call"), calls[len(made)])
            message = put(message, function_call=function)
        if results:
            edit = results[0]
            own_id = None if word(message, "role") == "function" else edit.id
            content = self.content_after(edit, get(message, "content"))
            message = put(message, **given(tool_call_id=own_id, name=edit.name, content=content))
        return message

    def placeholder(self, piece: values.Piece) -> Any:
        call = piece.call or values.Call("", "")
        if call.kind == _OLD:
            return {"role": "function", "name": call.name, "content": piece.text}
        return {"role": "tool", "tool_call_id": call.id, "content": piece.text}

    def without_thinking(self, message: Any) -> Any | None:
        if word(message, "role") != "assistant" or not any(get(message, field) is not None for field in _THOUGHTS):
            return message
        for field in _THOUGHTS:
            message = without(message, field) if get(message, field) is not None else message
        return None if self.view(message).empty else message

    def with_text(self, message: Any, text: str) -> Any:
        content = get(message, "content")
        media = [part for part in content if self.kind(part) != values.TEXT] if is_list(content) else []
        return put(message, content=[{"type": "text", "text": text}, *media] if media else text)

    def as_role(self, message: Any, role: str) -> Any:
        return put(message, role=role)

    def show_media(self, media: Sequence[tuple[str, Sequence[Any]]]) -> Any:
        parts = [part for text, shown in media for part in ({"type": "text", "text": text}, *shown)]
        return {"role": "user", "content": parts}

    def fill(self, message: Any, field: str) -> Any:
        return message if get(message, field) is not None else put(message, **{field: ""})

    # What an agent needs

    def user(self, content: str | Sequence[Any]) -> dict[str, Any]:
        """Return a user message with a text or with parts: native ones, or dicts, which stay as they are."""
        return {"role": "user", "content": content if isinstance(content, str) else _write_content(content)}

    def result(self, call: values.Call, result: native.ToolResult) -> dict[str, Any]:
        """Return the tool message that answers `call`; there is no field to say that it failed."""
        parts, media = result.parts, [write_media(part) for part in result.parts]
        content: Any = "\n".join([in_words(part) for part in parts])
        if any(media):
            texts = [{"type": "text", "text": in_words(part)} for part in parts]
            content = [form or text for form, text in zip(media, texts, strict=True)]
        if call.kind == _OLD:
            return {"role": "function", "name": call.name, "content": content}
        return {"role": "tool", "tool_call_id": call.id, "content": content}

    def join(self, deltas: Sequence[native.Delta]) -> dict[str, Any] | None:
        """Return the assistant message that these pieces make; there is no field for its usage."""
        reply = gather(deltas)
        if not reply.runs:
            return None
        message: dict[str, Any] = {"role": "assistant", "content": reply.words(SAID) or None}
        calls = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
            for call in reply.calls()
        ]
        thought = reply.words(THOUGHT)
        return message | given(reasoning_content=thought or None, tool_calls=calls or None)

    def deltas(self, message: Any) -> list[native.Delta]:
        view = self.view(message)
        self.wants_assistant(view.role)
        thought, text = text_of(message, "reasoning_content"), self.text(message)
        pieces = [native.Delta(reasoning=thought)] if thought else []
        pieces += [native.Delta(text)] if text else []
        for place, call in enumerate(view.calls):
            arguments = call.arguments if isinstance(call.arguments, str) else json_text(call.arguments or {})
            pieces.append(native.Delta(call_index=place, call_id=call.id, name=call.name, arguments=arguments))
        return pieces

    def early_end(self, message: Any) -> tuple[str, str]:
        return ("refusal", "refusal") if get(message, "refusal") else ("", "")

    def made_by_model(self, message: Any, index: int | None = None) -> bool:
        del index
        return (message.get("role") if message.__class__ is dict else get(message, "role")) == "assistant"

    def text(self, message: Any) -> str:
        """Return the text of `message`; without any, its refusal and the transcript of its audio."""
        content = get(message, "content")
        if isinstance(content, str):
            return content
        parts = content if is_list(content) else ()
        texts = [get(part, "text") or get(part, "refusal") for part in parts]
        said = [text for text in texts if isinstance(text, str)]
        others = (get(message, "refusal"), get(get(message, "audio"), "transcript"))
        glue = "" if get(message, "role") == "assistant" else "\n"
        return glue.join(said or [text for text in others if isinstance(text, str)])

    def usage(self, message: Any) -> native.TokenUsage | None:
        """Return `None`: the usage of a reply is beside the message here, not in it."""
        return None

    def dump(self, message: Any) -> Any:
        """Return `message` as plain dicts and lists; one that is plain already comes back as it is."""
        if isinstance(message, Struct):
            raise self.fault(None, "", "a native message is among messages of another type")
        return plain(message)

    def load(self, value: Any) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise self.fault(None, "", f"expected a message, found {type(value).__name__}")
        return value  # pyright: ignore[reportUnknownVariableType]

    def calls(self, message: Any) -> tuple[values.Call, ...]:
        made: Any = message.get("tool_calls") if message.__class__ is dict else None
        if made.__class__ is list and message.get("role") == "assistant" and message.get("function_call") is None:
            calls = [_plain_call(call) for call in made]  # most often they are all of the usual form
            if None not in calls:
                return tuple(calls)  # pyright: ignore[reportReturnType]
        return self._calls(message, None) if get(message, "role") == "assistant" else ()

    def _calls(self, message: Any, index: int | None) -> tuple[values.Call, ...]:
        """Return the calls of `message`; a call in the older form comes last."""
        made = get(message, "tool_calls")
        if made is not None:
            listed(made, index, "tool_calls")
        calls = [_read_call(call, index, f"tool_calls[{at}]") for at, call in enumerate(made or ())]
        old = inner(message, "function_call", index)
        if old is not None:
            name = text_of(old, "name", index, "function_call")
            calls.append(values.Call("", name, argument_text(old, index, "function_call"), _OLD))
        return tuple(calls)


def _are_new(calls: list[Any], demands: values.Demands) -> bool:
    """Return whether all ids are different, and unused so far where that matters; if so, record them."""
    ids = {call["id"]: None for call in calls}
    if len(ids) < len(calls) or (demands.used and not demands.used.keys().isdisjoint(ids)):
        return False
    demands.use(ids)
    return True


def _plain_call(call: Any) -> values.Call | None:
    """Return an entry of `tool_calls` in its usual form as a call; `None` for any other."""
    function: Any = call.get("function") if call.__class__ is dict else None
    if function.__class__ is dict and call.get("type") == "function":
        call_id, name, arguments = call.get("id"), function.get("name"), function.get("arguments")
        if call_id.__class__ is name.__class__ is arguments.__class__ is str:
            return values.Call(call_id, name, arguments)
    return None


def _read_call(call: Any, index: int | None, path: str) -> values.Call:
    """Return an entry of `tool_calls` as a call."""
    made = _plain_call(call) if index is None else None
    if made is not None:
        return made
    call_id = text_of(call, "id", index, path)
    if word(call, "type") == _CUSTOM:
        custom = inner(call, "custom", index, path)
        return values.Call(call_id, text_of(custom, "name", index, path), get(custom, "input"), _CUSTOM)
    function = inner(call, "function", index, path)
    return values.Call(call_id, text_of(function, "name", index, path), argument_text(function, index, path))


def _write_call(call: Any, edit: values.CallEdit) -> Any:
    """Return an entry of `tool_calls` with `edit` applied."""
    field = _CUSTOM if word(call, "type") == _CUSTOM else "function"
    inner = get(call, field)
    changed = _write_function({} if inner is None else inner, edit)
    call = put(call, **{field: changed}) if changed is not inner else call
    return call if edit.id is None else put(call, id=edit.id)


def _write_function(function: Any, edit: values.CallEdit) -> Any:
    """Return the `function` of a call, or a call of the older form, with `edit` applied."""
    fields = given(name=edit.name, arguments=edit.arguments)
    return put(function, **fields) if fields else function


def _write_content(content: Any) -> list[Any]:
    """Return native parts as Chat Completions has them; dicts stay as they are."""
    made: list[Any] = []
    for place, part in enumerate(part_list(content)):
        form = part if is_map(part) else dict(part.data) if isinstance(part, native.Opaque) else write_media(part)
        if isinstance(part, native.TextPart | native.ReasoningPart | native.ToolSearchPart):
            form = {"type": "text", "text": in_words(part)}
        if form is None:
            lacking = " without base64_data" if part.__class__ in MEDIA else ""
            raise InputError(f"{type(part).__name__}{lacking} has no form on openai-chat", path=f"content[{place}]")
        made.append(form)
    return made


def _as_system(message: Any, view: values.View) -> Any:
    """Return a developer message as a system message."""
    return put(message, role="system") if view.role == "system" and word(message, "role") == "developer" else message


def _with_content(message: Any, view: values.View) -> Any:
    """Give a message without content an empty text. One with calls may have no content, but not an empty list."""
    content, by_model = get(message, "content"), view.role == "assistant"
    missing = not by_model if content is None else is_list(content) and not content and not (by_model and view.empty)
    return put(message, content="") if missing else message


def _demanded_of_messages(demands: values.Demands) -> tuple[frozenset[str], frozenset[str]]:
    """Return the roles that an input may have, and the fields of a reply that need a second look."""
    problems = demands.problems
    roles = _INPUT_ROLES - {"developer"} if "developer-role" in problems else _INPUT_ROLES
    return roles, _OLD_CALL | _THOUGHT_FIELDS if "thought-field" in problems else _OLD_CALL


def _without_empty_calls(message: Any, view: values.View) -> Any:
    """Return `message` without its list of calls if that is empty."""
    calls = get(message, "tool_calls") if view.role == "assistant" else None
    return without(message, "tool_calls") if is_list(calls) and not calls else message


def _without_thought_fields(message: Any, view: values.View) -> Any:
    """Return `message` without the fields that hold its thoughts."""
    if view.role == "assistant":
        for name in sorted(_THOUGHT_FIELDS):
            message = message if get(message, name) is None else without(message, name)
    return message


def _without_custom_calls(message: Any, view: values.View) -> Any:
    """Return `None` for a message that calls a custom tool: such a call cannot be put in another form."""
    return None if any(call.kind == _CUSTOM for call in view.calls) else message


WIRE = OpenAIChatWire()
