"""OpenAI's Chat Completions, which many servers speak: `tool_calls` in assistant messages, one tool message a result.

The older form (`function_call`, role `function`) is read and answered in its own form: it has no ids and
one call a message.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from suture.language import Language
from suture.messages import Delta, TokenUsage, ToolResult
from suture.providers.openai_chat.call_objects import (
    CUSTOM,
    OLD,
    are_answered,
    plain_calls,
    read_call,
    write_call,
    write_function,
)
from suture.wires._chat import SAID, THOUGHT, ChatWire, gather
from suture.wires._contents import Form, text_block, typed_text
from suture.wires._fields import (
    argument_text,
    check_value,
    get,
    given,
    inner,
    is_list,
    is_map,
    listed,
    put,
    text_of,
    typed,
    without,
    word,
)
from suture.wires._item_wire import ItemWire
from suture.wires._kinds import MEDIA, OTHER, TEXT
from suture.wires._mark import media_note
from suture.wires._parts import chat_content, chat_media, chat_result, plain
from suture.wires._text import json_text, says_nothing
from suture.wires._wire import GLANCE, Call, CallEdit, Piece, Result, ResultEdit, View
from suture.wires._words import Telling

__all__ = ["WIRE", "OpenAIChatWire"]

_ROLES = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
_QUIET = frozenset(("user", "system", "developer"))
_OWN_FIELDS = ("tool_calls", "tool_call_id", "function_call", "refusal", "audio")
_KINDS = {
    "text": TEXT,
    "refusal": TEXT,
    "image_url": MEDIA,
    "input_audio": MEDIA,
    "video_url": MEDIA,
    "file": MEDIA,
}
_OWN_PARTS = frozenset(_KINDS)


class OpenAIChatWire(ItemWire, ChatWire):
    """Messages as Chat Completions takes and returns them.

    >>> from suture.wires import get_wire
    >>> get_wire("openai-chat").view({"role": "tool", "tool_call_id": "a", "content": "42"}).results
    (Result(id='a', name='', content='42', kind='', marked=False, failed=False, extra={}),)
    """

    name = "openai-chat"
    text_arguments = True
    form = Form(typed_text("text"), text_block("text"), chat_media)

    def skip(self, messages: Sequence[Any], start: int) -> int:
        """Return how far, from `start` on, everything is in order at a glance."""
        place = start
        rest = iter(messages[start : start + GLANCE])
        for message in rest:
            if message.__class__ is not dict:
                break
            role = message.get("role")
            if role == "assistant":
                calls = message.get("tool_calls")
                if calls is None:
                    if "function_call" in message:
                        break
                elif calls.__class__ is list and calls and are_answered(calls, rest):
                    place += len(calls)
                else:
                    break
            elif role.__class__ is not str or role not in _QUIET:
                break
            place += 1
        return place

    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is Chat's: certainly where it has a field of its own."""
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
        if isinstance(content, str):
            return None if is_map(message) else True
        kinds = {word(part, "type") for part in content} if is_list(content) else {None}
        if not kinds <= _OWN_PARTS:
            return False
        return True if kinds - {"text"} else None

    def view(self, message: Any, index: int | None = None) -> View:
        """Return what the engines need to know of `message`."""
        plain = _plain_view(message) if message.__class__ is dict else None
        if plain is not None:
            return plain
        role = word(message, "role")
        if isinstance(message, Struct):
            raise self.fault(index, "", "a native message stands among messages of another type")
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
            return View(
                "tool",
                (),
                (Result(text_of(message, "tool_call_id", index), text_of(message, "name", index), content),),
            )
        if role == "function":
            return View("tool", (), (Result("", text_of(message, "name", index), content, OLD),))
        if role != "assistant":
            return View(_ROLES[role])
        calls = self._calls(message, index)
        return View(role, calls, empty=not calls and says_nothing(content) and not _speaks(message))

    def arguments_ok(self, call: Call) -> bool:
        """Tell whether the arguments are the text of an object; a custom tool takes any text."""
        return call.kind == CUSTOM or super().arguments_ok(call)

    def answers(self, result: Result, call: Call) -> bool:
        """Tell whether both are of the older form, or neither is."""
        return (result.kind == OLD) == (call.kind == OLD)

    def has_id(self, call: Call) -> bool:
        """Tell whether the call carries an id: the older form has none."""
        return call.kind != OLD

    def result_text(self, result: Result) -> tuple[str, bool]:
        """Return the text of a result, and whether that is all of it."""
        content = result.content
        if content is None or isinstance(content, str):
            return content or "", True
        texts = [text_of(part, "text") for part in content if word(part, "type") == "text"]
        return "\n".join(texts), len(texts) == len(content)

    def tell(self, message: Any, telling: Telling) -> None:
        """Tell what `message` says beside its calls, and beside the result that it may be."""
        role = _ROLES[word(message, "role") or ""]
        if role == "assistant":
            thought = get(message, "reasoning_content") or get(message, "reasoning")
            telling.say(thought or _detailed_thought(message))
        if role != "tool":
            self.tell_content(get(message, "content"), telling)
        if role == "assistant":
            telling.say(get(message, "refusal"))
            sound = get(message, "audio")
            if sound is not None:
                telling.media += 1
                telling.say(get(sound, "transcript"))

    def kind(self, block: Any) -> str:
        """Return what a part is: text, media or other."""
        return _KINDS.get(word(block, "type") or "", OTHER)

    def block_words(self, block: Any) -> Any:
        """Return the words of a text or of a refusal."""
        return get(block, "refusal" if word(block, "type") == "refusal" else "text")

    def lacks_content(self, result: Result) -> bool:
        """Tell whether a result has no content at all; an empty text is one."""
        return result.content is None

    def edit(self, message: Any, calls: Mapping[int, CallEdit], results: Mapping[int, ResultEdit]) -> Any:
        """Return `message` with these calls and results changed."""
        if calls:
            made = get(message, "tool_calls") or ()
            changed = [write_call(call, calls.get(position, CallEdit())) for position, call in enumerate(made)]
            message = put(message, tool_calls=changed) if made else message
        if len(get(message, "tool_calls") or ()) in calls:
            edit = calls[len(get(message, "tool_calls") or ())]
            message = put(message, function_call=write_function(get(message, "function_call"), edit))
        if results:
            edit = results[0]
            own_id = None if word(message, "role") == "function" else edit.id
            content = self.content_after(edit, get(message, "content"))
            message = put(message, **given(tool_call_id=own_id, name=edit.name, content=content))
        return message

    def placeholder(self, piece: Piece) -> Any:
        """Return a new result for the call of `piece`, saying its text."""
        call = piece.call or Call("", "")
        if call.kind == OLD:
            return {"role": "function", "name": call.name, "content": piece.text}
        return {"role": "tool", "tool_call_id": call.id, "content": piece.text}

    def speak(self, role: str, text: str) -> Any:
        """Return a new message that says `text`."""
        return {"role": role, "content": text}

    def lift_media(self, message: Any, language: Language) -> tuple[Any, Sequence[Any]]:
        """Return a tool message with its media replaced by a note, and those media."""
        content = get(message, "content")
        if not is_list(content):
            return message, ()
        media = [part for part in content if word(part, "type") not in {"text", "refusal"}]
        if not media:
            return message, ()
        kept = [part for part in content if word(part, "type") in {"text", "refusal"}]
        note = {"type": "text", "text": media_note(len(media), language)}
        return put(message, content=[*kept, note]), media

    def show_media(self, media: Sequence[Any]) -> Any:
        """Return a user message that shows `media`."""
        return {"role": "user", "content": list(media)}

    def fill(self, message: Any, field: str) -> Any:
        """Return `message` with the text `field` present."""
        return message if get(message, field) is not None else put(message, **{field: ""})

    def tidy(self, message: Any) -> Any:
        """Return `message` without an empty list of calls."""
        empty = is_map(message) and "tool_calls" in message and message["tool_calls"] == []
        return without(message, "tool_calls") if empty else message

    # What an agent needs

    def user(self, content: str | Sequence[Any]) -> dict[str, Any]:
        """Return a user message of a text, or of parts: native ones, or dicts, which stay as they are."""
        return {"role": "user", "content": content if isinstance(content, str) else chat_content(content)}

    def result(self, call: Call, result: ToolResult) -> dict[str, Any]:
        """Return the tool message that answers `call`; that it failed has no field here."""
        content = chat_result(result.parts)
        if call.kind == OLD:
            return {"role": "function", "name": call.name, "content": content}
        return {"role": "tool", "tool_call_id": call.id, "content": content}

    def join(self, deltas: Sequence[Delta]) -> dict[str, Any] | None:
        """Return the assistant message that these pieces make; what it cost has no field here."""
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

    def deltas(self, message: Any) -> list[Delta]:
        """Return the pieces of an assistant message."""
        view = self.view(message)
        self.wants_assistant(view.role)
        thought, text = text_of(message, "reasoning_content"), self.text(message)
        pieces = [Delta(reasoning=thought)] if thought else []
        pieces += [Delta(text)] if text else []
        for place, call in enumerate(view.calls):
            arguments = call.arguments if isinstance(call.arguments, str) else json_text(call.arguments or {})
            pieces.append(Delta(call_index=place, call_id=call.id, name=call.name, arguments=arguments))
        return pieces

    def is_reply(self, message: Any) -> bool:
        """Tell whether `message` is one that a model gave."""
        return word(message, "role") == "assistant"

    def text(self, message: Any) -> str:
        """Return what `message` says as text, a refusal and the words of a sound included."""
        content = get(message, "content")
        if isinstance(content, str):
            return content
        parts = content if is_list(content) else ()
        texts = [get(part, "text") or get(part, "refusal") for part in parts]
        said = [text for text in texts if isinstance(text, str)]
        others = (get(message, "refusal"), get(get(message, "audio"), "transcript"))
        return "\n".join(said or [text for text in others if isinstance(text, str)])

    def usage(self, message: Any) -> TokenUsage | None:
        """Return nothing: what a reply cost stands beside the message here, not in it."""
        return None

    def dump(self, message: Any) -> Any:
        """Return `message` as plain dicts and lists: a dict that is one already as it is."""
        if isinstance(message, Struct):
            raise self.fault(None, "", "a native message stands among messages of another type")
        return plain(message)

    def load(self, value: Any) -> dict[str, Any]:
        """Return the message that `dump` made `value` of."""
        if not isinstance(value, dict):
            raise self.fault(None, "", f"expected a message, found {type(value).__name__}")
        return value  # pyright: ignore[reportUnknownVariableType]

    def calls(self, message: Any) -> tuple[Call, ...]:
        """Return the calls of `message`."""
        if message.__class__ is not dict or message.get("role") != "assistant":
            return self.view(message).calls
        made = message.get("tool_calls")
        if message.get("function_call") is None and (made is None or made.__class__ is list):
            calls = plain_calls(made or ())
            if calls is not None:
                return calls
        return self._calls(message, None)

    def _calls(self, message: Any, index: int | None) -> tuple[Call, ...]:
        """Return the calls of `message`; one in the older form comes last."""
        made = get(message, "tool_calls")
        if made is not None:
            listed(made, index, "tool_calls")
        calls = [read_call(call, index, f"tool_calls[{at}]") for at, call in enumerate(made or ())]
        old = inner(message, "function_call", index)
        if old is not None:
            name = text_of(old, "name", index, "function_call")
            calls.append(Call("", name, argument_text(old, index, "function_call"), OLD))
        return tuple(calls)


def _plain_view(message: dict[str, Any]) -> View | None:
    """Return the view of a message in the most ordinary form; `None` where it needs a closer look."""
    role, content = message.get("role"), message.get("content")
    if role.__class__ is not str or not (content is None or (content.__class__ is str and content.isascii())):
        return None
    if role == "tool":
        answers: Any = message.get("tool_call_id")
        if answers.__class__ is not str or not answers.isascii() or message.get("name") is not None:
            return None
        return View("tool", (), (Result(answers, "", content),))
    if role == "assistant":
        made = message.get("tool_calls")
        if message.get("function_call") is not None or not (made is None or made.__class__ is list):
            return None
        calls = plain_calls(made or ())
        if calls is None:
            return None
        return View("assistant", calls, (), False, not calls and not content and not _speaks(message))  # noqa: FBT003 - signed: never
    return View(_ROLES[role]) if role in _QUIET else None


def _speaks(message: Any) -> bool:
    """Tell whether an assistant message without calls and text says something in another way."""
    return any(
        get(message, field) is not None for field in ("refusal", "audio", "reasoning_content", "reasoning_details")
    )


def _detailed_thought(message: Any) -> Any:
    """Return what the model thought where only the details say so; what is encrypted says nothing."""
    details = get(message, "reasoning_details")
    texts = [get(detail, "text") or get(detail, "summary") for detail in details] if is_list(details) else []
    return "\n".join([text for text in texts if isinstance(text, str)])


WIRE = OpenAIChatWire()
