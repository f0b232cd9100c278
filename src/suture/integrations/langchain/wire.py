"""LangChain's messages: calls in `AIMessage`, one `ToolMessage` a result.

Dicts and pairs that LangChain takes for messages are read, too; one that must change becomes a message object. What
Suture attaches to a message stands in its `response_metadata`, which no adapter sends.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from itertools import groupby
from typing import Any, cast

from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    FunctionMessage,
    HumanMessage,
    RemoveMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from suture.errors import InputError
from suture.integrations.langchain.calls import (
    COMPUTER,
    CUSTOM,
    FORM,
    OLD,
    find_calls,
    gather_calls,
    is_plain,
    is_signed,
    kind_of,
    plain_calls,
    write_calls,
)
from suture.wires import MARK, Call, CallEdit, ItemWire, Piece, Result, ResultEdit, View
from suture.wires.fields import get, given, is_blank, is_list, is_map, put, says_nothing, without, word
from suture.wires.parts import Telling
from suture.wires.values import CALL, RESULT, Demands, is_plain_object, is_plain_text, iterate

_SPOKEN = ("reasoning_content", "reasoning", "reasoning_details", "refusal", "audio", "tool_outputs", "function_call")
_SEALED = "__gemini_function_call_thought_signatures__"
_CUSTOM_OUTPUT = "custom_tool_call_output"
_NOBODY = frozenset(("", "system"))
"""Who has spoken last where nobody has so far."""
_ROLES = {"system": "system", "developer": "system", "assistant": "assistant", "ai": "assistant", "model": "assistant"}
_LIKE: Any = (str, tuple, list, dict)


def as_message(message: Any, index: int | None = None) -> BaseMessage:
    """Return `message` as LangChain's object, itself if it is one; raise `InputError` where it cannot be read.

    >>> as_message({"role": "user", "content": "hi"}).type, as_message(("ai", "hi")).type
    ('human', 'ai')
    """
    if isinstance(message, BaseMessage):
        if isinstance(message, RemoveMessage):
            raise InputError(
                "a RemoveMessage is an instruction to the state, not a message; apply it first, with add_messages",
                index=index,
            )
        return message
    if not isinstance(message, _LIKE):
        raise InputError(f"expected a LangChain message, found {type(message).__name__}", index=index)
    if is_map(message) and is_list(message.get("tool_calls")):
        return _with_calls(message, index)
    try:
        made = convert_to_messages([cast("Any", {"content": "", **message} if is_map(message) else message)])[0]
    except (ValueError, TypeError, NotImplementedError, KeyError, AttributeError) as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"LangChain does not take this for a message: {reason}", index=index) from None
    return as_message(made, index)


def role_of(message: BaseMessage) -> str:
    """Return whose a message is: system, user, assistant or tool.

    >>> role_of(ChatMessage(role="model", content="hi")), role_of(SystemMessage("hi"))
    ('assistant', 'system')
    """
    if isinstance(message, AIMessage):
        return "assistant"
    if isinstance(message, ToolMessage | FunctionMessage):
        return "tool"
    if isinstance(message, SystemMessage):
        return "system"
    return _ROLES.get(message.role, "user") if isinstance(message, ChatMessage) else "user"


def _with_calls(message: Mapping[str, Any], index: int | None) -> BaseMessage:
    """Return a dict with calls as a message, whatever their arguments; LangChain refuses those that were cut off."""
    made = as_message(without(message, "tool_calls"), index)
    calls: list[Any] = []
    for entry in message["tool_calls"]:
        raw = get(entry, "function")
        known = get(entry, "args") if raw is None else get(raw, "arguments")
        calls.append({"name": get(raw or entry, "name"), "args": known, "id": get(entry, "id"), "error": None})
    # As invalid ones they are not looked at; those that are sound are put with the others when they are written.
    return write_calls(put(made, invalid_tool_calls=calls), {}) if isinstance(made, AIMessage) else made


class LangChainWire(ItemWire):
    """Histories of LangChain's message objects.

    >>> WIRE.view(ToolMessage("42", tool_call_id="a")).results[0].id
    'a'
    """

    name = "langchain"
    marks = True
    glances_at_rules = True
    form = FORM
    arranges = frozenset(("split-turn", "media-in-result"))

    def glance(self, messages: Sequence[Any], start: int, demands: Demands) -> int:  # noqa: C901, PLR0912, PLR0915 - the hot loop
        problems, names, used, last = demands.problems, demands.names, demands.used, demands.last
        named, begins, bridged = "result-name" in problems, "model-first" not in problems, "tool-then-user" in problems
        longest = demands.limit if demands.identifiers else -1
        place, missing, calls = start, 0, cast("Sequence[Any]", ())
        for message in iterate(messages, start, demands.stop):
            kind = message.__class__
            if missing:
                if kind is not ToolMessage:
                    break
                fields, call = message.__dict__, calls[-missing]
                call_id, name, content = call["id"], call["name"], fields["content"]
                if fields["tool_call_id"] != call_id or content.__class__ is not str:
                    break
                usual = name in names and len(call_id) <= longest and call_id.isidentifier() and call_id.isascii()
                if not (usual and (used is None or call_id not in used)) and not demands.accepts(call_id, name):
                    break
                if not (content.isascii() or is_plain_text(content)) or not (content or fields["status"] != "error"):
                    break
                if (named and fields["name"] != name) or not is_plain_object(call["args"]):
                    break
                if used is not None:
                    used[call_id] = None
                missing -= 1
            elif kind is AIMessage or kind is AIMessageChunk:
                fields = message.__dict__
                calls, content = fields["tool_calls"], fields["content"]
                if last == "assistant" or not (calls or content) or not (begins or last not in _NOBODY):
                    break
                if content.__class__ is not str or fields["additional_kwargs"] or fields["invalid_tool_calls"]:
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
        answered = calls[:-missing] if missing else ()  # of a turn that is not whole, so these do not count
        if used is not None:
            for call in answered:
                del used[call["id"]]
        return place - len(answered) - (missing > 0)

    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is one: certainly where it is LangChain's object, possibly where it is a dict."""
        return True if isinstance(message, BaseMessage) else None if is_map(message) else False

    def view(self, message: Any, index: int | None = None) -> View:
        message = as_message(message, index)
        if isinstance(message, AIMessage):
            return _view_reply(message)
        if isinstance(message, ToolMessage | FunctionMessage):
            call_id, status = getattr(message, "tool_call_id", ""), getattr(message, "status", "")
            kind = OLD if isinstance(message, FunctionMessage) else ""
            name, extra = message.name or "", message.response_metadata
            result = Result(call_id or "", name, message.content, kind, MARK in extra, status == "error", extra)
            return View("tool", (), (result,))
        blocks: list[Any] = [message.content[place] for place in _result_places(message)]
        results = [
            Result(get(block, "tool_use_id") or "", "", get(block, "content"), failed=bool(get(block, "is_error")))
            for block in blocks
        ]
        return View(role_of(message), (), tuple(results), loose=bool(blocks) and len(message.content) > len(blocks))

    def can_answer(self, call: Call) -> bool:
        """Tell whether a placeholder can be made: a screenshot cannot be."""
        return call.kind != COMPUTER

    def sound_arguments(self, call: Call) -> Any:
        """Return arguments that are an object: the call's own if they are one, else an empty one."""
        return dict(call.arguments) if is_map(call.arguments) else super().sound_arguments(call)

    def family(self, thing: Call | Result) -> str:
        return OLD if thing.kind == OLD else ""

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, View], Any]]:
        return {"empty-calls": lambda message, _: self.tidy(message)}

    def has_id(self, call: Call) -> bool:
        """Tell whether the call carries an id: the older form has none."""
        return call.kind != OLD

    def content_after(self, edit: ResultEdit, content: Any) -> Any:
        """Return what `edit` makes of the content of a result; that of a custom tool keeps its form."""
        made = super().content_after(edit, content)
        if made is None or not is_list(content) or word(content[0] if content else None, "type") != _CUSTOM_OUTPUT:
            return made
        return [put(content[0], output=self.result_text(Result("", "", made))[0])]

    def tell(self, message: Any, telling: Telling) -> None:
        message = as_message(message)
        if isinstance(message, ToolMessage | FunctionMessage):
            return
        if isinstance(message, AIMessage):
            thought = message.additional_kwargs.get("reasoning_content")
            telling.say(thought if isinstance(thought, str) else None)
        content: Any = message.content
        rest = [block for block in content if kind_of(block) not in {CALL, RESULT}] if is_list(content) else content
        self.tell_content(rest, telling)

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
                blocks[places[position]] = put(block, **given(tool_use_id=edit.id, content=content))
            return put(message, content=blocks)
        edit = results[0]
        content: Any = self.content_after(edit, message.content)
        fields = given(name=edit.name, content=content)
        if isinstance(message, ToolMessage) and edit.id is not None:
            fields["tool_call_id"], held = edit.id, message.content if content is None else content
            if is_list(held):  # blocks in it may tell the id as well
                held = [put(block, tool_use_id=edit.id) if kind_of(block) == RESULT else block for block in held]
            fields["content"] = held
        return self.with_extra(message.model_copy(update=fields), edit.extra or {})

    def placeholder(self, piece: Piece) -> Any:
        call = piece.call or Call("", "")
        extra = {MARK: piece.cause}
        if call.kind == OLD:
            return FunctionMessage(content=piece.text, name=call.name, response_metadata=extra)
        content: Any = [{"type": _CUSTOM_OUTPUT, "output": piece.text}] if call.kind == CUSTOM else piece.text
        return ToolMessage(content, name=call.name, tool_call_id=call.id, status="error", response_metadata=extra)

    def carry(self, pieces: Sequence[Piece]) -> list[Any]:
        """Return the messages of these results; one that stands as a block among others gets a message of its own."""
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
        kept |= {places[position]: FORM.make(text) for position, text in texts.items()}
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
        blocks: list[Any] = [block for text, shown in media for block in (FORM.make(text), *shown)]
        return HumanMessage(blocks)

    def tidy(self, message: Any) -> Any:
        """Return `message` with its calls where all adapters look for them, not in an empty list."""
        made = as_message(message)
        if not isinstance(made, AIMessage) or is_plain(made):
            return message
        better = gather_calls(made)
        return message if better is made else better


WIRE = LangChainWire()
"""The one instance."""


def _result_places(message: BaseMessage) -> list[int]:
    """Return where results stand among the blocks of what a user says, as Anthropic has them."""
    if message.content.__class__ is str or role_of(message) != "user":
        return []
    return [place for place, block in enumerate(message.content) if kind_of(block) == RESULT]


def _is_sendable(content: Any) -> bool:
    """Tell whether all texts in a content can be written as UTF-8, and no result is among its blocks."""
    if content.__class__ is str:
        return content.isascii() or is_plain_text(content)
    return all(is_plain_text(each) or (is_plain_object(each) and each.get("type") != "tool_result") for each in content)


def _view_reply(message: AIMessage) -> View:
    content: Any = message.content
    extra = message.additional_kwargs
    calls = plain_calls(message) if is_plain(message) else tuple([found.call for found in find_calls(message)])
    signed = content.__class__ is not str and any(map(is_signed, content))
    if extra:
        signed = signed or bool(extra.get(_SEALED)) or is_signed(extra.get("reasoning"))
    if calls or any(extra.get(name) for name in _SPOKEN):
        return View("assistant", calls, signed=signed)
    return View("assistant", signed=signed, empty=says_nothing(content), blank=is_blank(content))
