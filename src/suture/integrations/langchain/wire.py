"""LangChain's messages: calls in `AIMessage`, one `ToolMessage` a result.

Dicts and pairs that LangChain takes for messages are read, too; one that must change becomes a message object. What
Suture attaches to a message stands in its `response_metadata`, which no adapter sends.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
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
    decoded,
    find_calls,
    gather_calls,
    is_plain,
    is_signed,
    kind_of,
    plain_calls,
    write_calls,
)
from suture.wires import MARK, Call, CallEdit, ItemWire, Piece, Result, ResultEdit, View
from suture.wires.fields import get, given, is_blank, is_list, is_map, put, says_nothing, word
from suture.wires.parts import Telling
from suture.wires.values import CALL, RESULT, Demands, is_plain_object, is_plain_text, iterate

_SPOKEN = ("reasoning_content", "reasoning", "reasoning_details", "refusal", "audio", "tool_outputs", "function_call")
_CUSTOM_OUTPUT = "custom_tool_call_output"
_NOBODY = frozenset(("", "system"))
"""Who has spoken last where nobody has so far."""
_SEALED = ("__gemini_function_call_thought_signatures__",)


_ROLES = {
    "system": "system",
    "developer": "system",
    "assistant": "assistant",
    "ai": "assistant",
    "model": "assistant",
}
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
    try:
        if is_map(message) and is_list(message.get("tool_calls")):
            return _with_calls(message)
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


def _with_calls(message: Mapping[str, Any]) -> BaseMessage:
    """Return a dict with calls as a message; calls whose arguments are no object are kept as invalid ones."""
    calls: list[dict[str, Any]] = []
    invalid: list[dict[str, Any]] = []
    for entry in message["tool_calls"]:
        function = get(entry, "function")
        holder = entry if function is None else function
        arguments = decoded(get(holder, "args" if function is None else "arguments"))
        call_id, name = get(entry, "id"), get(holder, "name")
        if is_map(arguments):
            calls.append({"name": name or "", "args": dict(arguments), "id": call_id, "type": "tool_call"})
        else:
            text = arguments if isinstance(arguments, str) else None
            invalid.append({"name": name, "args": text, "id": call_id, "error": None, "type": "invalid_tool_call"})
    rest = {"content": "", **{name: value for name, value in message.items() if name != "tool_calls"}}
    made = as_message(rest)
    more = made.invalid_tool_calls if isinstance(made, AIMessage) else []
    return made.model_copy(update={"tool_calls": calls, "invalid_tool_calls": [*more, *invalid]})


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

    def glance(self, messages: Sequence[Any], start: int, demands: Demands) -> int:
        place, last, problems = start, demands.last, demands.problems
        begins, bridged = "model-first" not in problems, "tool-then-user" in problems
        rest = iterate(messages, start, demands.stop)
        for message in rest:
            kind = message.__class__
            if kind is AIMessage or kind is AIMessageChunk:
                fields = message.__dict__  # read at once: this is the hot path
                calls, content = fields["tool_calls"], fields["content"]
                if last == "assistant" or not (calls or content) or not (last not in _NOBODY or begins):
                    break
                if content.__class__ is not str or fields["additional_kwargs"] or fields["invalid_tool_calls"]:
                    if not is_plain(message) or not _is_sendable(content):
                        break
                elif not (content.isascii() or is_plain_text(content)):
                    break
                if calls and not _are_answered(calls, rest, demands):
                    break
                place += len(calls)
                last = "results" if calls else "assistant"
            elif kind is HumanMessage or (kind is SystemMessage and last in _NOBODY):
                content = message.content
                if not content or not _is_sendable(content) or (last == "results" and bridged):
                    break
                if content.__class__ is not str and _result_blocks(message):
                    break
                last = "user" if kind is HumanMessage else "system"
            else:
                break
            place += 1
        return place

    def claims(self, message: Any) -> bool | None:
        """Say whether `message` is one: certainly where it is LangChain's object, possibly where it is a dict."""
        return True if isinstance(message, BaseMessage) else None if is_map(message) else False

    def view(self, message: Any, index: int | None = None) -> View:
        message = as_message(message, index)
        if isinstance(message, AIMessage):
            return _view_reply(message)
        if isinstance(message, ToolMessage | FunctionMessage):
            call_id, status, kind = getattr(message, "tool_call_id", ""), getattr(message, "status", ""), ""
            if isinstance(message, FunctionMessage):
                kind = OLD
            name, extra = message.name or "", message.response_metadata
            result = Result(call_id or "", name, message.content, kind, MARK in extra, status == "error", extra)
            return View("tool", (), (result,))
        role = role_of(message)
        blocks = _result_blocks(message)
        if not blocks or role != "user":
            return View(role)
        results = [
            Result(
                get(block, "tool_use_id") or "", "", get(block, "content"), RESULT, failed=bool(get(block, "is_error"))
            )
            for block in blocks
        ]
        return View(role, (), tuple(results), loose=len(message.content) > len(blocks))

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
        beside = {CALL, RESULT} if isinstance(message, AIMessage) else {RESULT}
        self.tell_content(
            [block for block in content if kind_of(block) not in beside] if is_list(content) else content, telling
        )

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
        if not isinstance(message, ToolMessage | FunctionMessage):

            def write(block: Any, place: int) -> Any:
                edit = results.get(place, ResultEdit())
                content = self.content_after(edit, get(block, "content"))
                return put(block, **given(tool_use_id=edit.id, content=content)) if place in results else block

            return _with_blocks(message, write)
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
        for number, piece in enumerate(pieces):
            message = piece.message
            if message is None:
                made.append(self.placeholder(piece))
                continue
            blocks = _result_blocks(as_message(message))
            start = number - piece.position
            run = pieces[max(start, 0) : start + len(blocks)]
            ours = [each.message is message and each.position == place for place, each in enumerate(run)]
            if not blocks:
                made.append(message)
            elif len(run) < len(blocks) or not all(ours) or self.view(message).loose:
                block = blocks[piece.position]
                content, status = get(block, "content"), "error" if get(block, "is_error") else "success"
                call_id = get(block, "tool_use_id") or ""
                made.append(ToolMessage("" if content is None else content, tool_call_id=call_id, status=status))
            elif piece.position == 0:  # the message holds just these results, and nothing else
                made.append(message)
        return made

    def rest(self, message: Any, texts: Mapping[int, str]) -> Any | None:
        made = as_message(message)
        if isinstance(made, ToolMessage | FunctionMessage):
            return self.speak("user", texts[0]) if 0 in texts else None

        def retell(_: Any, place: int) -> Any:
            return FORM.make(texts[place]) if place in texts else None

        kept = _with_blocks(made, retell)
        return kept if kept.content else None

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


def _are_answered(calls: Sequence[Any], rest: Iterator[Any], demands: Demands) -> bool:
    """Tell whether the next messages of `rest` are the results of just these calls, and all of them acceptable."""
    used = demands.used
    for call in calls:
        answer: Any = next(rest, None)
        if answer.__class__ is not ToolMessage:
            return False
        fields, name, arguments = answer.__dict__, call["name"], call["args"]
        call_id, content = fields["tool_call_id"], fields["content"]
        if call_id != call["id"] or content.__class__ is not str or not (content or fields["status"] != "error"):
            return False
        # The usual id, name and arguments are judged here, without a call; the others by those who know more.
        known = name in demands.names and demands.identifiers and call_id.isidentifier() and call_id.isascii()
        usual = known and len(call_id) <= demands.limit and (used is None or call_id not in used)
        if not usual and not demands.accepts(call_id, name):
            return False
        for key in arguments:
            value = arguments[key]
            if value.__class__ is not str or not value.isascii() or not key.isascii():
                if not is_plain_object(arguments):
                    return False
                break
        named = fields["name"] == name or "result-name" not in demands.problems
        if not named or not (content.isascii() or is_plain_text(content)):
            return False
    if len(calls) > 1 and len({call["id"] for call in calls}) < len(calls):
        return False
    if used is not None:
        for call in calls:
            used[call["id"]] = None
    return True


def _is_sendable(content: Any) -> bool:
    """Tell whether all texts in a content can be written as UTF-8."""
    if content.__class__ is str:
        return content.isascii() or is_plain_text(content)
    return all(is_plain_text(block) or is_plain_object(block) for block in content)


def _view_reply(message: AIMessage) -> View:
    content: Any = message.content
    extra = message.additional_kwargs
    calls = plain_calls(message) if is_plain(message) else tuple([found.call for found in find_calls(message)])
    signed = content.__class__ is not str and any(map(is_signed, content))
    if extra:
        signed = signed or any(extra.get(name) for name in _SEALED) or is_signed(extra.get("reasoning"))
    if calls or any(extra.get(name) for name in _SPOKEN):
        return View("assistant", calls, signed=signed)
    return View("assistant", signed=signed, empty=says_nothing(content), blank=is_blank(content))


def _result_blocks(message: BaseMessage) -> list[Any]:
    """Return the results that stand as blocks in a user's message, as Anthropic has them."""
    content: Any = message.content
    if content.__class__ is str or isinstance(message, ToolMessage):
        return []
    return [block for block in content if block.__class__ is dict and block.get("type") == "tool_result"]


def _with_blocks(message: BaseMessage, change: Callable[[Any, int], Any]) -> BaseMessage:
    """Return `message` with each result block replaced by `change(block, place)`, `None` removing it."""
    blocks: list[Any] = []
    place = 0
    for block in cast("list[Any]", message.content):
        if kind_of(block) == RESULT:
            block = change(block, place)  # noqa: PLW2901
            place += 1
        if block is not None:
            blocks.append(block)
    return message.model_copy(update={"content": blocks})
