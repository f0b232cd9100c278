"""OpenAI's Responses: a flat list of items. Each type of call pairs with its own type of output.

An output may be anywhere after its call (`set_like`). Items of the tools that the service runs are not read as calls.
An output that names a tool but no call is an event from outside, not an orphan.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import Struct

from suture.errors import InputError
from suture.messages import Part
from suture.wires import fields, values
from suture.wires.parts import Form, Telling, text_block, typed_text
from suture.wires.wire import ItemWire


class CallType(NamedTuple):
    """One type of call and its output, and the fields that hold the id, the name, the arguments and the payload."""

    kind: str
    call: str
    output: str
    call_id: str = "call_id"
    output_id: str = "call_id"
    name: str = ""
    arguments: str = ""
    payload: str = "output"
    prefix: str = ""
    """The prefix of the item id of such a call."""


CALL_TYPES = (
    CallType("", "function_call", "function_call_output", name="name", arguments="arguments", prefix="fc"),
    CallType("custom", "custom_tool_call", "custom_tool_call_output", name="name", prefix="ctc"),
    CallType("local_shell", "local_shell_call", "local_shell_call_output", output_id="id"),
    CallType("shell", "shell_call", "shell_call_output"),
    CallType("apply_patch", "apply_patch_call", "apply_patch_call_output"),
    CallType("computer", "computer_call", "computer_call_output"),
    CallType("tool_search", "tool_search_call", "tool_search_output", payload="tools"),
    CallType(
        "mcp_approval",
        "mcp_approval_request",
        "mcp_approval_response",
        call_id="id",
        output_id="approval_request_id",
        name="name",
        payload="approve",
    ),
)
_CALLS = {pair.call: pair for pair in CALL_TYPES}
_OUTPUTS = {pair.output: pair for pair in CALL_TYPES}
_KINDS = {pair.kind: pair for pair in CALL_TYPES}
ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
FROM_OUTSIDE = frozenset(("item_reference", "additional_tools", "compaction_trigger"))
_KINDS_OF_PARTS = {
    "input_text": values.TEXT,
    "output_text": values.TEXT,
    "refusal": values.TEXT,
    "input_image": values.MEDIA,
    "input_file": values.MEDIA,
    "input_audio": values.MEDIA,
}
_OWN_PARTS = frozenset(_KINDS_OF_PARTS)
_ALL_KINDS_OF_PARTS = _KINDS_OF_PARTS | {
    "text": values.TEXT,
    "summary_text": values.TEXT,
    "reasoning_text": values.TEXT,
    "computer_screenshot": values.MEDIA,
}
_PREFIXES = {**{pair.call: pair.prefix for pair in CALL_TYPES if pair.prefix}, "reasoning": "rs", "message": "msg"}
"""The prefix of the item ids that the service makes, for each type of item."""
_match_item_id = re.compile("[a-zA-Z0-9_-]{1,64}").fullmatch
_OWN_ITEMS = frozenset((*_CALLS, *_OUTPUTS, *FROM_OUTSIDE, "reasoning"))
_NO_ITEM = "<no item>"
_TEXT_OUTPUTS = frozenset(("local_shell", "apply_patch"))


class _Approval(NamedTuple):
    """A user's answer to a request for approval, and the reason for it."""

    approve: bool
    reason: str

    def in_words(self) -> str:
        answer = "approved" if self.approve else "rejected"
        return f"{answer}: {self.reason}" if self.reason else answer


def _is_message(item: dict[str, Any], items: dict[str, None], wanted: bool) -> bool:  # noqa: FBT001 - it is hot
    """Return whether `item` is a plain message and, if `wanted`, one that the reasoning before it can have produced."""
    role, content = item["role"], item["content"]
    if content.__class__ is not str:
        if not _are_texts(content):
            return False
    elif not (content.isascii() or content.encode("utf-16")):
        return False
    if not content or role not in ROLES:
        return False
    if not wanted and "id" not in item:
        return True
    return role == "assistant" and bool(item.get("id") or not wanted) and _is_new(item, "msg", items)


def _is_reasoning(item: dict[str, Any], items: dict[str, None]) -> bool:
    """Return whether a reasoning item can be sent."""
    try:
        fields.check_value(item, 0, "")
    except InputError:
        return False
    return _is_new(item, "rs", items)


def _is_new(item: dict[str, Any], prefix: str, items: dict[str, None]) -> bool:
    """Return whether an item has no id, or a new one that the service can have given it; record it in `items`."""
    item_id = item.get("id")
    if item_id is None:
        return True
    if item_id.__class__ is not str or item_id in items or not (item_id.startswith(prefix) and _match_item_id(item_id)):
        return False
    items[item_id] = None
    return True


def _forget(turn: Sequence[Any], used: dict[str, None], items: dict[str, None]) -> None:
    """Remove what was recorded last: the ids of the items in a turn that needs a second look."""
    for item in turn:
        if item.get("type") == "function_call":
            used.popitem()
        if item.get("id") is not None:
            items.popitem()


def _are_texts(content: Any) -> bool:
    """Return whether `content` is a list of plain texts, of a model or a user."""
    return content.__class__ is list and all(
        part.__class__ is dict
        and part.get("type") in {"input_text", "output_text"}
        and bool(part.get("text"))
        and values.is_plain_text(part["text"])
        and part.keys() <= {"type", "text", "annotations", "logprobs"}
        and not part.get("annotations")
        and not part.get("logprobs")
        for part in content
    )


class OpenAIResponsesWire(ItemWire):
    """Items as Responses takes and returns them.

    >>> from suture.wires import get_wire
    >>> item = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    >>> get_wire("openai-responses").view(item).calls
    (Call(id='a', name='f', arguments='{}', kind='', alias=''),)
    """

    name = "openai-responses"
    text_arguments = True
    glances_at_rules = True
    overlooks = frozenset(("tool-then-user", "model-first"))
    has_fields = True
    set_like = True
    kinds = _ALL_KINDS_OF_PARTS
    form = Form(typed_text("input_text", "output_text", "text"), text_block("input_text"))

    named_results = False
    arranges = frozenset(("repeated-item", "lone-reasoning", "text-between-calls"))

    def glance(self, messages: Sequence[Any], start: int, demands: values.Demands) -> int:  # noqa: C901, PLR0912, PLR0915 - the hot loop
        place, closed, thought, answered, decode_object = start, start, False, False, fields.decode_object
        waiting: dict[str, None] = {}
        used: dict[str, None] = {} if demands.used is None else demands.used
        items, names, limit, match_id = demands.items, demands.names, demands.limit, demands.match_id
        try:
            for item in values.iterate(messages, start, demands.stop):
                kind = item.get("type") if item.__class__ is dict else _NO_ITEM
                if kind == "function_call":
                    call_id, name, arguments = item["call_id"], item["name"], item["arguments"]
                    if answered or call_id in used or not call_id or len(call_id) > limit or not match_id(call_id):
                        break
                    is_text = call_id.__class__ is arguments.__class__ is str
                    if not is_text or (name not in names and not demands.learns(name)):
                        break
                    decode_object(arguments)
                    if "id" in item and not _is_new(item, "fc", items):
                        break
                    waiting[call_id] = used[call_id] = None
                    place, thought = place + 1, False
                    continue
                if kind == "function_call_output":
                    text = item["output"]
                    if text.__class__ is not str or not (text.isascii() or text.encode("utf-16")) or "id" in item:
                        break
                    del waiting[item["call_id"]]
                    place += 1
                    answered = demands.adjacent
                    if not waiting:
                        closed, answered = place, False
                    continue
                if waiting:
                    break
                if kind is None or kind == "message":
                    text = item["content"]
                    plain = text.__class__ is str and text and text.isascii() and not thought and "id" not in item
                    if not (plain and item["role"] in ROLES) and not _is_message(item, items, thought):
                        break
                    thought = False
                elif kind == "reasoning" and _is_reasoning(item, items):
                    thought = True
                else:
                    break
                place += 1
                if not thought:
                    closed = place
        except (KeyError, *fields.NO_OBJECT):  # a field is not as expected: that needs a second look
            pass
        _forget(messages[closed:place], used, items)
        return closed

    def call_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        items = values.iterate(messages, start, stop)
        return [item["call_id"] for item in items if item.get("type") == "function_call"]

    def item_ids(self, messages: Sequence[Any], start: int, stop: int) -> list[values.Key]:
        return [item["id"] for item in values.iterate(messages, start, stop) if item.get("id")]

    def refers(self, message: Any) -> bool:
        return fields.word(message, "type") == "item_reference"

    def family(self, thing: values.Call | values.Result) -> str:
        """Return the kind of call: each has its own type of output."""
        return thing.kind

    @cached_property
    def mends(self) -> Mapping[str, Callable[[Any, values.View], Any]]:
        return {"illegal-item-id": self._with_own_item_id}

    def _with_own_item_id(self, item: Any, view: values.View) -> Any:
        """Return an item without an id that the service refuses; `None` for reasoning that is known only by that id."""
        kind = fields.word(item, "type") or "message"
        prefix = _PREFIXES.get(kind, "")
        if not fields.has(item, "id") or fields.get(item, "id") is None or not prefix:
            return item
        if kind == "message" and fields.word(item, "role") != "assistant":
            return item
        item_id = fields.text_of(item, "id")
        if item_id.startswith(prefix) and _match_item_id(item_id):
            return item
        return None if view.signed and not fields.get(item, "encrypted_content") else self.without_item_id(item)

    def claims(self, message: Any) -> bool | None:
        """Return whether `message` is an item of Responses; `None` if nothing in it tells."""
        kind = fields.word(message, "type")
        if isinstance(kind, str) and kind != "message":
            if kind in _OWN_ITEMS or kind.endswith("_call"):
                return True
            return None if fields.word(message, "id") else False  # the service's items all have ids; logs seldom do
        if fields.word(message, "role") not in ROLES or any(
            fields.get(message, field) is not None for field in ("tool_calls", "tool_call_id", "function_call", "parts")
        ):
            return False
        content = fields.get(message, "content")
        if isinstance(content, str):
            return True if kind == "message" else None
        kinds = {fields.word(part, "type") for part in content} if fields.is_list(content) else {None}
        if not kinds:
            return None
        return kinds <= _OWN_PARTS

    def view(self, message: Any, index: int | None = None) -> values.View:
        kind = fields.text_of(message, "type", index) or None
        if index is not None:
            fields.text_of(message, "id", index)
        if kind in _CALLS:
            return self._view_call(message, _CALLS[kind], index)
        if kind in _OUTPUTS:
            return self._view_output(message, _OUTPUTS[kind], index)
        if kind == "reasoning":
            return values.View("assistant", signed=True)
        if kind in FROM_OUTSIDE:
            return values.View("system")
        if isinstance(kind, str) and kind != "message":
            return values.View("assistant")
        role = fields.word(message, "role")
        if isinstance(message, Struct):
            raise self.fault(index, "", "a native message is among items of another type")
        if role is None or role not in ROLES:
            raise self.fault(index, "role", f"unknown role {role!r} in an item of type {kind!r}")
        content = fields.get(message, "content")
        if not isinstance(content, str):
            fields.typed(content, index, "content", foreign=("tool_use", "tool_result"))
        if index is not None:
            fields.check_value(content, index, "content")
        if role != "assistant":
            return values.View(ROLES[role])
        return values.View(role, empty=fields.says_nothing(content), blank=fields.is_blank(content))

    def _view_call(self, item: Any, pair: CallType, index: int | None) -> values.View:
        call_id = fields.text_of(item, pair.call_id, index)
        if pair.kind == "tool_search" and not call_id:
            return values.View("assistant")  # the service ran the search itself
        name = fields.text_of(item, pair.name, index) if pair.name else pair.kind
        arguments = fields.argument_text(item, index) if pair.arguments else None
        alias = fields.text_of(item, "id", index) if pair.call_id != "id" else ""
        return values.View("assistant", (values.Call(call_id, name, arguments, pair.kind, alias),))

    def _view_output(self, item: Any, pair: CallType, index: int | None) -> values.View:
        call_id = fields.text_of(item, pair.output_id, index)
        if not call_id and pair.kind in {"", "tool_search"} and (pair.kind or fields.get(item, "name")):
            return values.View("assistant" if pair.kind else "user")  # of the service itself, or an event from outside
        content = fields.get(item, pair.payload)
        if pair.kind == "mcp_approval":
            content = _Approval(bool(content), fields.text_of(item, "reason", index))
        elif index is not None:
            fields.check_value(content, index, pair.payload)
        return values.View("tool", (), (values.Result(call_id, "", content, pair.kind),))

    def key(self, thing: values.Call | values.Result) -> values.Key:
        """Return the id, with the kind of call unless it is a function."""
        return (thing.kind, thing.id) if thing.kind else super().key(thing)

    def arguments_ok(self, call: values.Call) -> bool:
        """Return whether the arguments are the text of an object; this is demanded only of function calls."""
        return bool(call.kind) or super().arguments_ok(call)

    def can_answer(self, call: values.Call) -> bool:
        return call.kind not in {"computer", "tool_search"}

    def result_text(self, result: values.Result) -> tuple[str, bool]:
        content = result.content
        if isinstance(content, _Approval):
            return content.in_words(), True
        if content is None or isinstance(content, str):
            return content or "", True
        if fields.is_list(content) and all(fields.get(part, "text") is not None for part in content):
            return "\n".join(fields.text_of(part, "text") for part in content), True
        return fields.json_text(content), False

    def result_parts(self, result: values.Result) -> tuple[Part, ...] | None:
        """Return an output as parts: any of a function or custom tool, a text of the local shell or the patch tool."""
        text = result.content is None or isinstance(result.content, str)
        takes = result.kind in {"", "custom"} or (result.kind in _TEXT_OUTPUTS and text)
        return super().result_parts(result) if takes else None

    def tell(self, message: Any, telling: Telling) -> None:
        kind = fields.word(message, "type")
        if not kind or kind == "message":
            self.tell_content(fields.get(message, "content"), telling)
        elif kind == "reasoning":
            self.tell_content(fields.get(message, "summary"), telling)
            self.tell_content(fields.get(message, "content"), telling)
        elif kind == "custom_tool_call":
            telling.say(fields.get(message, "input"))
        elif kind != "function_call" and not (kind in _OUTPUTS and self.view(message).results):
            telling.show(message)

    def tell_content(self, content: Any, telling: Telling) -> None:
        """Tell a text, a list of parts, or a user's answer."""
        super().tell_content(content.in_words() if isinstance(content, _Approval) else content, telling)

    def edit(self, message: Any, calls: Mapping[int, values.CallEdit], results: Mapping[int, values.ResultEdit]) -> Any:
        kind = fields.text_of(message, "type")
        pair = _CALLS.get(kind) or _OUTPUTS[kind]
        new: dict[str, Any] = {}
        for edit in calls.values():
            new = {pair.call_id: edit.id, pair.name: edit.name, pair.arguments: edit.arguments}
        for change in results.values():
            content = change.text
            if change.parts is not None:
                (result,) = self._view_output(message, pair, None).results
                whole = self.result_parts(result) is None
                content = None if whole else self.content_after(change, result.content)
            new = {pair.output_id: change.id, pair.payload: content}
        return fields.put(message, **{name: value for name, value in new.items() if name and value is not None})

    def placeholder(self, piece: values.Piece) -> Any:
        call = piece.call or values.Call("", "")
        pair = _KINDS[call.kind]
        item: dict[str, Any] = {"type": pair.output, pair.output_id: call.id}
        if pair.kind == "mcp_approval":
            return {**item, "approve": False, "reason": piece.text}
        if pair.kind == "apply_patch":
            return {**item, "status": "failed", "output": piece.text}
        if pair.kind == "shell":
            outcome = {"type": "exit", "exit_code": 1}
            return {**item, "output": [{"stdout": "", "stderr": piece.text, "outcome": outcome}]}
        return {**item, "output": piece.text}

    def item_id(self, message: Any) -> str:
        """Return the id that the service gave the item; none for a reference, which repeats one on purpose."""
        kind = fields.word(message, "type")
        own = kind not in FROM_OUTSIDE and kind not in {"local_shell_call_output", "mcp_approval_request"}
        return fields.text_of(message, "id") if own else ""

    def without_item_id(self, message: Any) -> Any:
        return fields.without(message, "id")

    def without_thinking(self, message: Any) -> Any | None:
        """Return `None` for reasoning, and an item that may come from it without its id."""
        kind = fields.word(message, "type") or "message"
        if kind == "reasoning":
            return None
        return self.without_item_id(message) if kind in _PREFIXES and self.item_id(message) else message

    def with_text(self, message: Any, text: str) -> Any:
        """Return a message with `text` and its old media as its content; any other item as it is."""
        if (fields.word(message, "type") or "message") != "message":
            return message
        content = fields.get(message, "content")
        media = [part for part in content if self.kind(part) != values.TEXT] if fields.is_list(content) else []
        kind = "output_text" if fields.word(message, "role") == "assistant" else "input_text"
        return fields.put(message, content=[{"type": kind, "text": text}, *media] if media else text)

    def compacted_by(self, message: Any) -> str:
        """Return the wire's name if the item is a compaction of the service, else an empty text."""
        return self.name if fields.word(message, "type") in {"compaction", "compaction_summary"} else ""

    def wants_follower(self, message: Any) -> bool:
        """Return whether the item is reasoning that the service knows by its id."""
        return fields.word(message, "type") == "reasoning" and bool(fields.get(message, "id"))

    def can_follow(self, message: Any) -> bool:
        """Return whether reasoning can have produced this: an item of the model; a message only if it kept its id."""
        if fields.word(message, "type") in {None, "message"}:
            return fields.word(message, "role") == "assistant" and bool(fields.get(message, "id"))
        return self.made_by_model(message)


WIRE = OpenAIResponsesWire()
