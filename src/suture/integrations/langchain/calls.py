"""The calls of an `AIMessage`, wherever they stand: one call may be written in up to five places.

LangChain's own list (`tool_calls`), its list of those whose arguments could not be read (`invalid_tool_calls`), the
blocks of the content, the provider's raw form (`additional_kwargs`), and the pieces of a stream (`tool_call_chunks`).
Adapters differ in which of these they send, so a change is made in all of them.

LangChain keeps the blocks of each provider as they came, beside its own form of them. So one call may be a `tool_use`,
a `tool_call` or a `function_call`. What a provider runs itself is no call of ours.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from langchain_core.messages import AIMessage

from suture.messages import FilePart, ImagePart, Part
from suture.wires import Call, CallEdit, Form, RawPart, argument_json, text_block, typed_text
from suture.wires.fields import get, given, is_list, is_map, is_object_text, put, sound_arguments, word
from suture.wires.parts import MEDIA_PARTS
from suture.wires.values import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING

CUSTOM, COMPUTER = "custom", "computer"
"""The kinds of a call of a custom tool, whose output has a form of its own, and of one that wants a screenshot."""


class CallBlock(NamedTuple):
    """Where a call block has its id and its arguments, and what kind of call it is."""

    id: str
    arguments: str
    kind: str = ""
    as_text: bool = False


CALL_BLOCKS = {
    "tool_use": CallBlock("id", "input"),
    "tool_call": CallBlock("id", "args"),
    "tool_call_chunk": CallBlock("id", "args"),
    "invalid_tool_call": CallBlock("id", "args"),
    "function_call": CallBlock("call_id", "arguments", as_text=True),
    "custom_tool_call": CallBlock("call_id", "input", CUSTOM),
    "computer_call": CallBlock("call_id", "action", COMPUTER),
}
_UNSETTLED = frozenset(("tool_call_chunk", "invalid_tool_call"))
_THOUGHTS = frozenset(("thinking", "redacted_thinking", "reasoning", "reasoning_content"))
_SEALS = ("signature", "thought_signature", "encrypted_content")
_KINDS = {
    "tool_result": RESULT,
    "text": TEXT,
    "input_text": TEXT,
    "output_text": TEXT,
    "refusal": TEXT,
    "image": MEDIA,
    "image_url": MEDIA,
    "input_image": MEDIA,
    "audio": MEDIA,
    "input_audio": MEDIA,
    "video": MEDIA,
    "file": MEDIA,
    "input_file": MEDIA,
    "document": MEDIA,
    "media": MEDIA,
    **dict.fromkeys(_THOUGHTS, THINKING),
    **dict.fromkeys(CALL_BLOCKS, CALL),
}


def kind_of(block: Any) -> str:
    """Return what a block is: call, result, text, thinking, media or other.

    >>> kind_of("hi"), kind_of({"type": "tool_use"}), kind_of({"type": "server_tool_use"})
    ('text', 'call', 'other')
    """
    return TEXT if isinstance(block, str) else _KINDS.get(word(block, "type") or "", OTHER)


def is_signed(block: Any) -> bool:
    """Tell whether a block is signed or encrypted by the provider.

    >>> is_signed({"type": "thinking", "thinking": "hm", "signature": "s"}), is_signed({"type": "text", "text": "hi"})
    (True, False)
    """
    if not is_map(block):
        return False
    inside: Any = (block, block.get("extras"), block.get("reasoning_content"))
    return block.get("type") == "redacted_thinking" or any(
        is_map(holder) and any(holder.get(seal) for seal in _SEALS) for holder in inside
    )


def decoded(arguments: Any) -> Any:
    """Return arguments as the object that they are the text of; all else as it is.

    >>> decoded('{"q": 1}'), decoded('{"q": ')
    ({'q': 1}, '{"q": ')
    """
    if isinstance(arguments, str) and is_object_text(arguments):
        return sound_arguments(arguments, as_text=False)
    return arguments


def block_call(block: Mapping[str, Any], form: CallBlock) -> tuple[Any, Any, Any]:
    """Return id, name and arguments of a call block.

    >>> block = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    >>> block_call(block, CALL_BLOCKS["function_call"])
    ('a', 'f', {})
    """
    arguments = block.get(form.arguments)
    if form.kind == COMPUTER:
        return block.get(form.id), "computer", arguments
    if form.kind == CUSTOM:
        return block.get(form.id), block.get("name"), {"__arg1": arguments}
    if not arguments and "partial_json" in block:
        arguments = block["partial_json"]
    return block.get(form.id), block.get("name"), decoded(arguments)


def write_block(block: Mapping[str, Any], call_id: str | None, name: str | None, arguments: Any) -> dict[str, Any]:
    """Return a call block with another id, name or arguments; `None` leaves each as it is.

    >>> write_block({"type": "invalid_tool_call", "id": "a", "name": "f", "args": "{", "error": "cut"}, "b", None, {})
    {'type': 'tool_call', 'id': 'b', 'name': 'f', 'args': {}}
    """
    kind = block["type"]
    form, made = CALL_BLOCKS[kind], dict(block)
    if call_id is not None:
        made[form.id] = call_id
    if name is not None and form.kind != COMPUTER:
        made["name"] = name
    if arguments is None or form.kind:
        return made
    made[form.arguments] = argument_json(arguments) if form.as_text else arguments
    made.pop("partial_json", None)
    if kind in _UNSETTLED:
        made["type"] = "tool_call"
        made.pop("error", None)
    return made


def _find_text(block: Any) -> str | None:
    """Return the text that a block of a result says."""
    if isinstance(block, str):
        return block
    if word(block, "type") == "custom_tool_call_output":
        output = get(block, "output")
        return output if isinstance(output, str) else None
    return _typed(block)


def _media(part: Part) -> dict[str, Any] | None:
    """Return a native medium as a block of LangChain's own form."""
    if not isinstance(part, MEDIA_PARTS) or isinstance(part, RawPart):
        return None
    kind = cast("str", type(part).__struct_config__.tag)
    where = {"url": part.url} if part.url else {"base64": part.base64_data}
    typed = {"mime_type": part.mime_type} if part.mime_type else {}
    named = {"extras": {"filename": part.name}} if isinstance(part, FilePart) and part.name else {}
    seen = {"extras": {"detail": part.detail}} if isinstance(part, ImagePart) and part.detail else {}
    return {"type": kind, **where, **typed, **named, **seen}


_typed = typed_text("text", "input_text", "output_text")
FORM = Form(_find_text, text_block("text"), _media)
"""How the content of a tool message is written."""


# Finding them

OLD = "function"
"""The kind of a call of OpenAI's older form, which has no id."""

_CALLS, _INVALID, _CONTENT, _CHUNKS = "tool_calls", "invalid_tool_calls", "content", "tool_call_chunks"
_IDS = {kind: form.id if not form.kind else "" for kind, form in CALL_BLOCKS.items()}
"""Where a block has its id; those of special kinds nowhere, so that they are looked at twice."""
_RAW, _OUTPUTS, _FUNCTION = "raw", "outputs", "function"


class Found(NamedTuple):
    """A call, and the places where it stands: (list, index)."""

    call: Call
    sites: list[tuple[str, int]]


class _Search:
    """The calls of one message while they are gathered; the same call in another list is not another call."""

    def __init__(self) -> None:
        self.found: list[Found] = []

    def add(self, field: str, entries: Iterator[tuple[int, Call]], *, new: bool = True) -> None:
        """Add the calls of one list: the first of an id there is the first of that id so far, and so on."""
        known: dict[Any, list[Found]] = {}
        for one in self.found:
            known.setdefault(one.call.id or ("", one.call.name), []).append(one)
        for index, call in entries:
            same = known.get(call.id or ("", call.name), [])
            if field == _INVALID:  # nobody wrote it twice: it is another call, unless all but the arguments is the same
                same = [one for one in same if call.id and call.name in {"", one.call.name}]
            if same:
                one = same.pop(0)
                one.sites.append((field, index))
                if call.kind and not one.call.kind:
                    self.found[self.found.index(one)] = Found(one.call._replace(kind=call.kind), one.sites)
            elif new:
                self.found.append(Found(call, [(field, index)]))


def find_calls(message: AIMessage) -> list[Found]:
    """Return the calls of `message`, each once.

    >>> block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    >>> message = AIMessage([block], tool_calls=[{"id": "a", "name": "f", "args": {}}])
    >>> [found.sites for found in find_calls(message)]
    [[('tool_calls', 0), ('content', 0)]]
    """
    search = _Search()
    search.add(_CALLS, listed_calls(message.tool_calls))
    search.add(_INVALID, _decoded(message.invalid_tool_calls))
    if is_list(message.content):
        search.add(_CONTENT, _in_content(message.content))
    extra = message.additional_kwargs
    if extra:
        own = not message.tool_calls and not message.invalid_tool_calls
        search.add(_RAW, _raw(extra.get("tool_calls")), new=own)
        search.add(_OUTPUTS, _screens(extra.get("tool_outputs")))
        old = extra.get("function_call")
        if is_map(old) and not search.found:
            call = Call("", _text(old.get("name")), decoded(old.get("arguments")), OLD)
            search.found.append(Found(call, [(_FUNCTION, 0)]))
    search.add(_CHUNKS, listed_calls(getattr(message, _CHUNKS, None)), new=False)
    return search.found


def is_plain(message: AIMessage) -> bool:
    """Tell whether all calls of `message` are in `tool_calls`, at a glance; what else is there needs a closer look."""
    fields = message.__dict__  # read at once: this is the hot path
    calls, content = fields["tool_calls"], fields["content"]
    if content.__class__ is not str and content and not _match_in_order(content, calls):
        return False
    if fields["invalid_tool_calls"]:
        return False
    extra = fields["additional_kwargs"]
    if not extra:
        return True
    return "tool_outputs" not in extra and bool(calls or ("tool_calls" not in extra and "function_call" not in extra))


def _match_in_order(content: Any, calls: Sequence[Any]) -> bool:
    """Tell whether the call blocks of `content` are those of `calls`, one by one, as far as there are any."""
    number = 0
    for block in content:
        if block.__class__ is dict:
            place = _IDS.get(block.get("type"))
            if place is not None:
                if not place or number == len(calls) or block.get(place) != calls[number].get("id"):
                    return False
                number += 1
    return True


def _text(value: Any) -> str:
    return value if isinstance(value, str) else "" if value is None else str(value)


def listed_calls(entries: Any) -> Iterator[tuple[int, Call]]:
    """Return the calls of one of LangChain's own lists, each with its index.

    >>> list(listed_calls([{"id": None, "name": "f", "args": {}}]))
    [(0, Call(id='', name='f', arguments={}, kind='', alias=''))]
    """
    for index, entry in enumerate(entries or ()):
        yield index, Call(_text(get(entry, "id")), _text(get(entry, "name")), get(entry, "args"))


def _decoded(entries: Any) -> Iterator[tuple[int, Call]]:
    for index, call in listed_calls(entries):
        yield index, call._replace(arguments=decoded(call.arguments))


def _in_content(content: Sequence[Any]) -> Iterator[tuple[int, Call]]:
    for index, block in enumerate(content):
        form = CALL_BLOCKS.get(word(block, "type") or "") if is_map(block) else None
        if form is not None:
            call_id, name, arguments = block_call(block, form)
            yield index, Call(_text(call_id), _text(name), arguments, form.kind)


def _raw(entries: Any) -> Iterator[tuple[int, Call]]:
    """Return the calls as Chat Completions writes them."""
    for index, entry in enumerate(entries if is_list(entries) else ()):
        function = get(entry, "function")
        if is_map(function):
            arguments = decoded(function.get("arguments"))
            yield index, Call(_text(get(entry, "id")), _text(function.get("name")), arguments)


def _screens(entries: Any) -> Iterator[tuple[int, Call]]:
    """Return the calls among what the provider did itself: those that want a screenshot."""
    for index, entry in enumerate(entries if is_list(entries) else ()):
        if word(entry, "type") == "computer_call":
            yield index, Call(_text(get(entry, "call_id")), "computer", get(entry, "action"), COMPUTER)


# Changing them


def write_calls(message: AIMessage, edits: Mapping[int, CallEdit]) -> AIMessage:
    """Return `message` with the calls at these positions changed, wherever they stand.

    >>> message = AIMessage("", invalid_tool_calls=[{"id": "a", "name": "f", "args": "{", "error": None}])
    >>> write_calls(message, {0: CallEdit(arguments={})}).tool_calls
    [{'name': 'f', 'args': {}, 'id': 'a', 'type': 'tool_call'}]
    """
    found = find_calls(message)
    lists = _lists(message)
    for position, edit in edits.items():
        for field, index in found[position].sites:
            lists[field][index] = _written(field, lists[field][index], edit)
    touched = {field for position in edits for field, _ in found[position].sites}
    updates: dict[str, Any] = {field: lists[field] for field in touched if field not in {_RAW, _OUTPUTS, _FUNCTION}}
    extra = dict(message.additional_kwargs)
    if _RAW in touched:
        extra["tool_calls"] = lists[_RAW]
    if _OUTPUTS in touched:
        extra["tool_outputs"] = lists[_OUTPUTS]
    if _FUNCTION in touched:
        extra["function_call"] = lists[_FUNCTION][0]
    extra = _with_renamed_keys(extra, found, edits)
    if extra != message.additional_kwargs:
        updates["additional_kwargs"] = extra
    changed = message.model_copy(update=updates)
    return gathered(changed) if any(edit.arguments is not None for edit in edits.values()) else changed


def gathered(message: AIMessage) -> AIMessage:
    """Return `message` with each sound call in `tool_calls`, where all adapters look; itself if they are there.

    >>> message = AIMessage([{"type": "tool_use", "id": "a", "name": "f", "input": {"q": 1}}])
    >>> gathered(message).tool_calls
    [{'name': 'f', 'args': {'q': 1}, 'id': 'a', 'type': 'tool_call'}]
    """
    missing: list[Call] = []
    unpieced: list[Call] = []
    valid: set[int] = set()
    for call, sites in find_calls(message):
        if not is_map(call.arguments) or call.kind not in {"", CUSTOM}:
            continue
        fields = {field for field, _ in sites}
        valid.update(index for field, index in sites if field == _INVALID)
        if _CALLS not in fields:
            missing.append(call)
            unpieced += [call] if _CHUNKS not in fields else []
    if not missing and not valid:
        return message
    made = [{"name": call.name, "args": call.arguments, "id": call.id or None, "type": "tool_call"} for call in missing]
    updates: dict[str, Any] = {_CALLS: [*message.tool_calls, *made]}
    if valid:
        updates[_INVALID] = [one for index, one in enumerate(message.invalid_tool_calls) if index not in valid]
    if getattr(message, _CHUNKS, None) and unpieced:
        updates[_CHUNKS] = [*getattr(message, _CHUNKS), *map(_chunk, unpieced)]
    return message.model_copy(update=updates)


def _chunk(call: Call) -> dict[str, Any]:
    arguments = argument_json(call.arguments)
    return {"name": call.name, "args": arguments, "id": call.id or None, "index": None, "type": "tool_call_chunk"}


def _lists(message: AIMessage) -> dict[str, list[Any]]:
    """Return copies of the lists in which a call may stand."""
    extra = message.additional_kwargs
    content: Any = message.content
    lists: dict[str, Any] = {
        _CALLS: message.tool_calls,
        _INVALID: message.invalid_tool_calls,
        _CONTENT: content if is_list(content) else (),
        _CHUNKS: getattr(message, _CHUNKS, None),
        _RAW: extra.get("tool_calls"),
        _OUTPUTS: extra.get("tool_outputs"),
        _FUNCTION: [extra.get("function_call")],
    }
    return {field: list(entries or ()) for field, entries in lists.items()}


def _written(field: str, entry: Any, edit: CallEdit) -> Any:
    """Return one entry of a list of calls with `edit` done to it."""
    arguments = edit.arguments
    if field in {_CONTENT, _OUTPUTS}:
        return write_block(entry, edit.id, edit.name, arguments)
    if field == _CALLS:
        return put(entry, **given(id=edit.id, name=edit.name, args=arguments))
    text = None if arguments is None else argument_json(arguments)
    if field in {_INVALID, _CHUNKS}:
        return put(entry, **given(id=edit.id, name=edit.name, args=text))
    if field == _FUNCTION:
        return put(entry, **given(name=edit.name, arguments=text))
    function = put(entry["function"], **given(name=edit.name, arguments=text))
    return put(entry, **given(id=edit.id, function=function))


def _with_renamed_keys(extra: dict[str, Any], found: Sequence[Found], edits: Mapping[int, CallEdit]) -> dict[str, Any]:
    """Return what is kept beside a message with the ids changed by which it keeps things, such as signatures."""
    renamed = {found[place].call.id: edit.id for place, edit in edits.items() if edit.id and found[place].call.id}
    kept = {one.call.id for place, one in enumerate(found) if place not in edits or not edits[place].id}
    for name, value in extra.items():
        if is_map(value) and not renamed.keys().isdisjoint(value) and name != "function_call":
            held = {key: item for key, item in value.items() if key in kept or key not in renamed}
            extra[name] = held | {new: value[old] for old, new in renamed.items() if old in value}
    return extra
