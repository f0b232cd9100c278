"""LangChain's messages: calls in `AIMessage`, one `ToolMessage` a result.

Dicts and pairs that LangChain accepts as messages are read, too; one that must change becomes a message object. What
Suture attaches to a message is in its `response_metadata`, which no adapter sends.

One call may be in several places: LangChain's own list (`tool_calls`), its list of calls whose arguments could not be
read (`invalid_tool_calls`), the blocks of the content, and the provider's raw form (`additional_kwargs`). Adapters
differ in which of these they send. So a message that changes gets all its calls in LangChain's own lists, and its
blocks say the same. LangChain keeps the blocks of each provider as they came, beside its own form of them: one call may
be a `tool_use`, a `tool_call` or a `function_call`. A call that the provider runs itself does not count as a call.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import groupby
from typing import Any, cast

from langchain_core import messages as lc
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from suture import wires
from suture.errors import InputError
from suture.integrations.langchain.calls import (
    BLOCKS,
    CALLS,
    COMPUTER,
    CONTENT,
    CUSTOM,
    INVALID,
    OLD,
    find_calls,
    is_plain,
    read_entry,
    text_or_empty,
    write_calls,
)
from suture.messages import FilePart, ImagePart, Part
from suture.wires import MARK, Call, CallEdit, ItemWire, Piece, Result, ResultEdit, View, fields, values
from suture.wires.fields import get, given, is_list, is_map, put, without, word
from suture.wires.parts import MEDIA_PARTS, Telling
from suture.wires.values import CALL, RESULT, TEXT, is_plain_object, is_plain_text

_SPOKEN = ("reasoning_content", "reasoning", "reasoning_details", "refusal", "audio", "tool_outputs", "function_call")
_GEMINI_SIGNATURES = "__gemini_function_call_thought_signatures__"
_SEALS = ("signature", "thought_signature", "encrypted_content")
_CUSTOM_OUTPUT = "custom_tool_call_output"
_SENT = ("content", "tool_calls", "invalid_tool_calls", "additional_kwargs")
_NOBODY = frozenset(("", "system"))
"""The last speaker, if nobody has spoken so far."""
_ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "ai": "assistant", "model": "assistant"}


_KINDS = {
    "tool_result": RESULT,
    **dict.fromkeys(BLOCKS, CALL),
    **dict.fromkeys(("text", "input_text", "output_text", "refusal"), TEXT),
    **dict.fromkeys(("thinking", "redacted_thinking", "reasoning", "reasoning_content"), values.THINKING),
    **dict.fromkeys(("image", "image_url", "input_image", "audio", "input_audio", "video"), values.MEDIA),
    **dict.fromkeys(("file", "input_file", "document", "media"), values.MEDIA),
}
_typed = wires.typed_text("text", "input_text", "output_text")


def _find_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    return word(block, "output") if word(block, "type") == _CUSTOM_OUTPUT else _typed(block)


def _media(part: Part) -> dict[str, Any] | None:
    """Return a native medium as a block of LangChain's own form."""
    if not isinstance(part, MEDIA_PARTS) or isinstance(part, wires.RawPart):
        return None
    name = part.name if isinstance(part, FilePart) else ""
    detail = part.detail if isinstance(part, ImagePart) else ""
    extras = given(filename=name or None, detail=detail or None)
    where = {"url": part.url} if part.url else {"base64": part.base64_data}
    kind = cast("str", type(part).__struct_config__.tag)
    return {"type": kind, **where, **given(mime_type=part.mime_type or None, extras=extras or None)}


def as_message(message: Any, index: int | None = None) -> BaseMessage:
    """Return `message` as LangChain's object, itself if it is one; raise `InputError` if it cannot be read.

    >>> as_message({"role": "user", "content": "hi"}).type, as_message(("ai", "hi")).type
    ('human', 'ai')
    """
    if isinstance(message, BaseMessage):
        if isinstance(message, lc.RemoveMessage):
            raise InputError(
                "a RemoveMessage is an instruction to the state, not a message; apply it first, with add_messages",
                index=index,
            )
        return message
    if not isinstance(message, str | tuple | list | dict):
        raise InputError(f"expected a LangChain message, found {type(message).__name__}", index=index)
    calls: Any = message.get(CALLS) if is_map(message) else None
    if is_list(calls):
        made = as_message(without(message, CALLS), index)
        # LangChain refuses calls whose arguments were cut off, but does not check invalid calls.
        invalid = [
            {"name": call.name, "args": call.arguments, "id": call.id, "error": None} for call in map(read_entry, calls)
        ]
        return write_calls(put(made, invalid_tool_calls=invalid), {}) if isinstance(made, AIMessage) else made
    try:
        made = lc.convert_to_messages([cast("Any", {"content": "", **message} if is_map(message) else message)])[0]
    except (ValueError, TypeError, NotImplementedError, KeyError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"LangChain does not take this for a message: {reason}", index=index) from None
    return as_message(made, index)


def role_of(message: BaseMessage) -> str:
    """Return the role of a message: system, user, assistant or tool.

    >>> role_of(lc.ChatMessage(role="model", content="hi")), role_of(SystemMessage("hi"))
    ('assistant', 'system')
    """
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, ToolMessage | lc.FunctionMessage):
        return "tool"
    if isinstance(message, SystemMessage):
        return "system"
    return _ROLES.get(message.role, "user") if isinstance(message, lc.ChatMessage) else "user"


def kind_of(block: Any) -> str:
    """Return the kind of a block: call, result, text, thinking, media or other.

    >>> kind_of("hi"), kind_of({"type": "tool_use"}), kind_of({"type": "server_tool_use"})
    ('text', 'call', 'other')
    """
    return TEXT if isinstance(block, str) else _KINDS.get(word(block, "type") or "", values.OTHER)


def _is_signed(block: Any) -> bool:
    """Return whether a block is signed or encrypted by the provider."""
    if not is_map(block):
        return False
    inside: Any = (block, block.get("extras"), block.get("reasoning_content"))
    return block.get("type") == "redacted_thinking" or any(
        is_map(holder) and any(holder.get(seal) for seal in _SEALS) for holder in inside
    )


class LangChainWire(ItemWire):
    """Histories of LangChain's message objects.

    >>> WIRE.view(ToolMessage("42", tool_call_id="a")).results[0].id
    'a'
    """

    name = "langchain"
    marks = True
    glances_at_rules = True
    form = wires.Form(_find_text, wires.text_block("text"), _media)
    arranges = frozenset(("split-turn", "media-in-result"))

    def glance(self, messages: Sequence[Any], start: int, demands: values.Demands) -> int:  # noqa: C901, PLR0912, PLR0915 - the hot loop
        problems, names, used, last = demands.problems, demands.names, demands.used, demands.last
        named, begins, bridged = "result-name" in problems, "model-first" not in problems, "tool-then-user" in problems
        longest = demands.limit if demands.identifiers else -1
        place, missing, calls = start, 0, cast("Sequence[Any]", ())
        for message in values.iterate(messages, start, demands.stop):
            kind = type(message)  # pyright: ignore[reportUnknownVariableType] - quicker than its `__class__`
            if missing:
                if kind is not ToolMessage:
                    break
                own, call = message.__dict__, calls[-missing]
                call_id, name, content = call["id"], call["name"], own["content"]
                if own["tool_call_id"] != call_id or content.__class__ is not str:
                    break
                usual = name in names and len(call_id) <= longest and call_id.isidentifier() and call_id.isascii()
                if not (usual and (used is None or call_id not in used)) and not demands.accepts(call_id, name):
                    break
                if not (content.isascii() or is_plain_text(content)) or not (content or own["status"] != "error"):
                    break
                if (named and own["name"] != name) or not is_plain_object(call["args"]):
                    break
                if used is not None:
                    used[call_id] = None
                missing -= 1
            elif kind is AIMessage or kind is AIMessageChunk:
                own = message.__dict__
                calls, content = own["tool_calls"], own["content"]
                if last == "assistant" or not (calls or content) or not (begins or last not in _NOBODY):
                    break
                if content.__class__ is not str or own["additional_kwargs"] or own["invalid_tool_calls"]:
                    if not is_plain(message) or not _is_sendable(content):
                        break
                elif not (content.isascii() or is_plain_text(content)):
                    break
                if len(calls) > 1 and len({call["id"] for call in calls}) < len(calls):
                    break
                missing, last = len(calls), "results" if calls else "assistant"
            elif kind is HumanMessage or (kind is SystemMessage and last in _NOBODY):
                content = message.content
                if not content or not _is_sendable(content) or (bridged and last == "results"):
                    break
                last = "user" if kind is HumanMessage else "system"
            else:
                break
            place += 1
        answered = calls[:-missing] if missing else ()  # the turn is not complete, so these do not count
        if used is not None:
            for call in answered:
                del used[call["id"]]
        return place - len(answered) - (missing > 0)

    def claims(self, message: Any) -> bool | None:
        """Return `True` for LangChain's objects, `None` (perhaps) for dicts, and `False` for anything else."""
        return True if isinstance(message, BaseMessage) else None if is_map(message) else False

    def view(self, message: Any, index: int | None = None) -> View:
        message = as_message(message, index)
        if index is not None and not _is_plainly_sendable(message.__dict__):
            with suppress(RecursionError):  # a value that contains itself stays
                if self.sendable(message) is not message:
                    raise wires.SurrogateError("a text holds half of a surrogate pair", index=index)
        if isinstance(message, AIMessage):
            return _view_reply(message)
        if isinstance(message, ToolMessage | lc.FunctionMessage):
            call_id, status = getattr(message, "tool_call_id", ""), getattr(message, "status", "")
            kind = OLD if isinstance(message, lc.FunctionMessage) else ""
            name, extra = message.name or "", message.response_metadata
            result = Result(call_id or "", name, message.content, kind, MARK in extra, status == "error", extra)
            return View("tool", (), (result,))
        blocks: list[Any] = [message.content[place] for place in _result_places(message)]
        found = [[get(block, key) for key in ("tool_use_id", "name", "content", "is_error")] for block in blocks]
        results = [
            Result(text_or_empty(key), text_or_empty(name), said, failed=bool(failed))
            for key, name, said, failed in found
        ]
        return View(role_of(message), (), tuple(results), loose=bool(blocks) and len(message.content) > len(blocks))

    def sendable(self, message: Any) -> Any:
        made = as_message(message)
        sent = {name: made.__dict__[name] for name in _SENT if made.__dict__.get(name)}
        return message if (new := wires.sendable(sent)) is sent else made.model_copy(update=new)

    def can_answer(self, call: Call) -> bool:
        """Return whether a placeholder can be made: a screenshot cannot be."""
        return call.kind != COMPUTER

    def sound_arguments(self, call: Call) -> Any:
        """Return the arguments of `call` as an object, which is empty if they are none."""
        return dict(call.arguments) if is_map(call.arguments) else super().sound_arguments(call)

    def family(self, thing: Call | Result) -> str:
        return OLD if thing.kind == OLD else ""

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, View], Any]]:
        return {"empty-calls": lambda message, _: _gather_calls(message)}

    def has_id(self, call: Call) -> bool:
        """Return whether the call has an id; the older form has none."""
        return call.kind != OLD

    def content_after(self, edit: ResultEdit, content: Any) -> Any:
        """Return the content of a result after `edit`; that of a custom tool keeps its form."""
        made = super().content_after(edit, content)
        if made is None or not is_list(content) or word(content[0] if content else None, "type") != _CUSTOM_OUTPUT:
            return made
        return [put(content[0], output=self.result_text(Result("", "", made))[0])]

    def tell(self, message: Any, telling: Telling) -> None:
        message = as_message(message)
        if isinstance(message, ToolMessage | lc.FunctionMessage):
            return
        if isinstance(message, AIMessage):
            thought = message.additional_kwargs.get("reasoning_content")
            telling.say(thought if isinstance(thought, str) else None)
        content: Any = message.content
        rest = [block for block in content if kind_of(block) not in {CALL, RESULT}] if is_list(content) else content
        self.tell_content(rest, telling)

    def contents(self, message: Any) -> Sequence[Any]:
        """Return the blocks of `message` as LangChain has them for all providers; those of a result are in its view."""
        message = as_message(message)
        if isinstance(message, ToolMessage | lc.FunctionMessage):
            return ()
        blocks: Sequence[Any] = message.content_blocks
        return [block["value"] if block["type"] == "non_standard" else block for block in blocks]

    def kind(self, block: Any) -> str:
        return kind_of(block)

    def block_words(self, block: Any) -> Any:
        if isinstance(block, str):
            return block
        kind = word(block, "type")
        if kind == "reasoning":
            parts = get(block, "summary")
            texts = [get(part, "text") for part in parts] if is_list(parts) else []
            return get(block, "reasoning") or "\n".join([text for text in texts if isinstance(text, str)])
        if kind == "reasoning_content":
            return get(get(block, "reasoning_content"), "text")
        return get(block, kind if kind in {"thinking", "refusal"} else "text")

    def edit(self, message: Any, calls: Mapping[int, CallEdit], results: Mapping[int, ResultEdit]) -> Any:
        message = as_message(message)
        if calls:
            message = write_calls(cast("AIMessage", message), calls)
        if not results:
            return message
        places = _result_places(message)
        if places:
            blocks: list[Any] = list(message.content)
            for position, edit in results.items():
                block = blocks[places[position]]
                content = self.content_after(edit, get(block, "content"))
                blocks[places[position]] = put(block, **given(tool_use_id=edit.id, name=edit.name, content=content))
            return put(message, content=blocks)
        edit = results[0]
        content: Any = self.content_after(edit, message.content)
        changes = given(name=edit.name, content=content)
        if isinstance(message, ToolMessage) and edit.id is not None:
            changes["tool_call_id"], held = edit.id, message.content if content is None else content
            if is_list(held):  # blocks in it may have the id as well
                held = [put(block, tool_use_id=edit.id) if kind_of(block) == RESULT else block for block in held]
            changes["content"] = held
        return self.with_extra(message.model_copy(update=changes), edit.extra or {})

    def placeholder(self, piece: Piece) -> Any:
        call = piece.call or Call("", "")
        extra = {MARK: piece.cause}
        if call.kind == OLD:
            return lc.FunctionMessage(content=piece.text, name=call.name, response_metadata=extra)
        content: Any = [{"type": _CUSTOM_OUTPUT, "output": piece.text}] if call.kind == CUSTOM else piece.text
        return ToolMessage(content, name=call.name, tool_call_id=call.id, status="error", response_metadata=extra)

    def carry(self, pieces: Sequence[Piece]) -> list[Any]:
        """Return the messages of these results; a result in a block among others gets its own message."""
        made: list[Any] = []
        for _, group in groupby(pieces, key=lambda piece: id(piece.message)):
            run = list(group)
            view = View("tool") if run[0].message is None else self.view(run[0].message)
            if view.role == "tool":
                made += super().carry(run)
            elif not view.loose and [piece.position for piece in run] == list(range(len(view.results))):
                made.append(run[0].message)
            else:
                for result in [view.results[piece.position] for piece in run]:
                    status = "error" if result.failed else "success"
                    made.append(ToolMessage(result.content or "", tool_call_id=result.id, status=status))
        return made

    def rest(self, message: Any, texts: Mapping[int, str]) -> Any | None:
        made = as_message(message)
        places = _result_places(made)
        if not places:
            return super().rest(message, texts)
        kept: dict[int, Any] = {place: block for place, block in enumerate(made.content) if place not in places}
        kept |= {places[position]: self.form.make(text) for position, text in texts.items()}
        return put(made, content=[kept[place] for place in sorted(kept)]) if kept else None

    def speak(self, role: str, text: str) -> Any:
        return AIMessage(text) if role == "assistant" else HumanMessage(text)

    def extra_of(self, message: Any) -> Mapping[str, Any]:
        return as_message(message).response_metadata

    def with_extra(self, message: Any, extra: Mapping[str, Any]) -> Any:
        if not extra:
            return message
        made = as_message(message)
        return made.model_copy(update={"response_metadata": {**made.response_metadata, **extra}})

    def show_media(self, media: Sequence[tuple[str, Sequence[Any]]]) -> Any:
        blocks: list[Any] = [block for text, shown in media for block in (self.form.make(text), *shown)]
        return HumanMessage(blocks)


WIRE = LangChainWire()
"""The one instance."""


def _result_places(message: BaseMessage) -> list[int]:
    """Return the places of results among the blocks of a user message, as in Anthropic's form."""
    if message.content.__class__ is str or role_of(message) != "user":
        return []
    return [place for place, block in enumerate(message.content) if kind_of(block) == RESULT]


def _is_sendable(content: Any) -> bool:
    """Return whether all texts in a content can be written as UTF-8, and no result is among its blocks."""
    if content.__class__ is str:
        return content.isascii() or is_plain_text(content)
    return all(is_plain_text(each) or (is_plain_object(each) and each.get("type") != "tool_result") for each in content)


def _is_plainly_sendable(own: Mapping[str, Any]) -> bool:
    if own["additional_kwargs"] or own.get(INVALID) or not _is_sendable(own[CONTENT]):
        return False
    return all(map(is_plain_object, own.get(CALLS, ())))


def _view_reply(message: AIMessage) -> View:
    content: Any = message.content
    extra = message.additional_kwargs
    calls = map(read_entry, message.tool_calls) if is_plain(message) else [call for call, _ in find_calls(message)]
    signed = content.__class__ is not str and any(map(_is_signed, content))
    if extra:
        signed = signed or bool(extra.get(_GEMINI_SIGNATURES)) or _is_signed(extra.get("reasoning"))
    view = View("assistant", tuple(calls), signed=signed)
    if view.calls or any(extra.get(name) for name in _SPOKEN):
        return view
    return view._replace(empty=fields.says_nothing(content), blank=fields.is_blank(content))


def _gather_calls(message: Any) -> Any:
    """Return `message` with each sound call in `tool_calls`, where all adapters look; itself if nothing is missing."""
    made = as_message(message)
    if isinstance(made, AIMessage) and not is_plain(made):
        for call, sites in find_calls(made):
            if is_map(call.arguments) and call.kind in {"", CUSTOM} and (CALLS not in sites or INVALID in sites):
                return write_calls(made, {})
    return message
