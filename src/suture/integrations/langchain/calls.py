"""The calls of a LangChain message, wherever they stand: in its own lists, in its content, and in the raw form."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from langchain_core.messages import AIMessage, AIMessageChunk

from suture import wires
from suture.wires import Call, CallEdit, fields
from suture.wires.fields import get, given, is_list, is_map, put

CALLS, INVALID, CONTENT, OUTPUTS, RAW = "tool_calls", "invalid_tool_calls", "content", "tool_outputs", "raw"
"""The lists that a call may be in."""
OLD_CALL = "function_call"
CUSTOM, COMPUTER, OLD = "custom", "computer", "function"
"""Kinds of calls: of a custom tool, whose output has its own form; one that wants a screenshot; and OpenAI's older
form, which has no id."""


class Block(NamedTuple):
    """The fields of a call block with its id and its arguments, and the kind of the call."""

    id: str
    arguments: str
    kind: str = ""
    as_text: bool = False


BLOCKS = {
    "tool_use": Block("id", "input"),
    **dict.fromkeys(("tool_call", "tool_call_chunk", "invalid_tool_call"), Block("id", "args")),
    "function_call": Block("call_id", "arguments", as_text=True),
    "custom_tool_call": Block("call_id", "input", CUSTOM),
    "computer_call": Block("call_id", "action", COMPUTER),
}
IDS = {kind: block.id if not block.kind else "" for kind, block in BLOCKS.items()}
"""The field with the id of a block; empty for special kinds, which need a closer look."""


class Found(NamedTuple):
    """A call and its index in each list that it is in."""

    call: Call
    sites: dict[str, int]


def find_calls(message: AIMessage) -> list[Found]:
    """Return the calls of `message`, each once: the nth call with an id in one list is the nth with it in the others.

    >>> block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    >>> message = AIMessage([block], tool_calls=[{"id": "a", "name": "f", "args": {}}])
    >>> [found.sites for found in find_calls(message)]
    [{'tool_calls': 0, 'content': 0}]
    """
    found: list[Found] = []
    known: dict[Any, list[int]] = {}
    seen: Counter[Any] = Counter()
    for field, index, call in _entries(message):
        key = call.id or ("", call.name)
        same, number = known.setdefault(key, []), seen[field, key]
        seen[field, key] += 1
        place = same[number] if number < len(same) else None
        if field == INVALID:  # this list repeats no call: it is another call, unless only the arguments differ
            twins = (place for place in same if call.id and call.name in {"", found[place].call.name})
            place = next((place for place in twins if INVALID not in found[place].sites), None)
        if place is not None:
            found[place].sites[field] = index
            if call.kind:
                found[place] = found[place]._replace(call=found[place].call._replace(kind=call.kind))
        elif field != RAW or not (message.tool_calls or message.invalid_tool_calls):
            same.append(len(found))
            found.append(
                Found(call if field == CALLS else call._replace(arguments=_decode(call.arguments)), {field: index})
            )
    old = message.additional_kwargs.get(OLD_CALL)
    if is_map(old) and not found:
        found.append(Found(Call("", text_or_empty(old.get("name")), _decode(old.get("arguments")), OLD), {}))
    return found


def _entries(message: AIMessage) -> Iterator[tuple[str, int, Call]]:
    """Yield the calls of `message`, list by list, each with its index."""
    extra = message.additional_kwargs
    for field in (CALLS, INVALID):
        for index, entry in enumerate(getattr(message, field) or ()):
            yield field, index, read_entry(entry)
    for field, blocks in ((CONTENT, message.content), (OUTPUTS, extra.get(OUTPUTS))):
        for index, block in enumerate(blocks if is_list(blocks) else ()):
            call = _read_block(block) if is_map(block) and block.get("type") in BLOCKS else None
            if call is not None and (field == CONTENT or call.kind == COMPUTER):
                yield field, index, call
    raw = extra.get(CALLS)
    for index, entry in enumerate(raw if is_list(raw) else ()):
        if is_map(get(entry, "function")):
            yield RAW, index, read_entry(entry)


def read_entry(entry: Any) -> Call:
    """Return a call from LangChain's own lists, or in the form of Chat Completions."""
    raw = get(entry, "function")
    arguments = get(entry, "args") if raw is None else get(raw, "arguments")
    return Call(text_or_empty(get(entry, "id")), text_or_empty(get(raw or entry, "name")), arguments)


def _read_block(block: Mapping[str, Any]) -> Call:
    place = BLOCKS[block["type"]]
    name, arguments = block.get("name"), block.get(place.arguments)
    if place.kind == COMPUTER:
        name = COMPUTER
    elif place.kind == CUSTOM:
        arguments = {"__arg1": arguments}
    else:
        arguments = arguments or block.get("partial_json", arguments)
    return Call(text_or_empty(block.get(place.id)), text_or_empty(name), arguments, place.kind)


def text_or_empty(value: Any) -> str:
    """Return a text as it is, nothing as an empty one, and any other value written out."""
    return value if isinstance(value, str) else "" if value is None else str(value)


def _decode(arguments: Any) -> Any:
    """Return arguments decoded, if they are the text of an object; anything else unchanged."""
    is_text = isinstance(arguments, str) and fields.is_object_text(arguments)
    return fields.sound_arguments(arguments, as_text=False) if is_text else arguments


def is_plain(message: AIMessage) -> bool:
    """Return whether a glance shows that all calls of `message` are in `tool_calls`."""
    own = message.__dict__  # read at once: this is the hot path
    calls, content, extra = own[CALLS], own[CONTENT], own["additional_kwargs"]
    if own[INVALID] or (content.__class__ is not str and content and not _match_in_order(content, calls)):
        return False
    return not extra or (OUTPUTS not in extra and bool(calls or (CALLS not in extra and OLD_CALL not in extra)))


def _match_in_order(content: Any, calls: Sequence[Any]) -> bool:
    """Return whether the call blocks of `content`, if any, are those of `calls` in the same order."""
    number = 0
    for block in content:
        if block.__class__ is dict:
            place = IDS.get(block.get("type"))
            if place is not None:
                if not place or number == len(calls) or block.get(place) != calls[number].get("id"):
                    return False
                number += 1
    return True


def write_calls(message: AIMessage, edits: Mapping[int, CallEdit]) -> AIMessage:
    """Return `message` with the calls at these positions changed, and all of its calls in LangChain's own lists.

    >>> message = AIMessage("", invalid_tool_calls=[{"id": "a", "name": "f", "args": "{", "error": None}])
    >>> write_calls(message, {0: CallEdit(arguments={})}).tool_calls
    [{'name': 'f', 'args': {}, 'id': 'a', 'type': 'tool_call'}]
    """
    found, extra = find_calls(message), dict(message.additional_kwargs)
    valid: list[Any] = [*message.tool_calls]
    invalid: list[Any] = []
    blocks: dict[str, list[Any]] = {OUTPUTS: list(extra.get(OUTPUTS) or ())}
    blocks[CONTENT] = list(message.content) if is_list(message.content) else []
    for position, (call, sites) in enumerate(found):
        edit = edits.get(position, CallEdit())
        changes = given(id=edit.id, name=edit.name, args=edit.arguments)
        for field in blocks.keys() & sites:
            blocks[field][sites[field]] = _write_block(blocks[field][sites[field]], edit)
        if call.kind == OLD:
            text = None if edit.arguments is None else wires.argument_json(edit.arguments)
            extra[OLD_CALL] = put(extra[OLD_CALL], **given(name=edit.name, arguments=text))
        elif CALLS in sites:
            valid[sites[CALLS]] = put(valid[sites[CALLS]], **changes)
        elif call.kind != COMPUTER:
            made = {"name": call.name, "args": call.arguments, "id": call.id or None, **changes}
            if is_map(made["args"]):
                valid.append({**made, "type": "tool_call"})
            else:
                known: Any = message.invalid_tool_calls[sites[INVALID]] if INVALID in sites else {"error": None}
                invalid.append({**known, **made, "type": "invalid_tool_call"})
    if blocks[OUTPUTS]:
        extra[OUTPUTS] = blocks[OUTPUTS]
    extra.pop(CALLS, None)
    changed = {CALLS: valid, INVALID: invalid, "additional_kwargs": _with_new_ids(extra, found, edits)}
    if blocks[CONTENT]:
        changed[CONTENT] = blocks[CONTENT]
    if isinstance(message, AIMessageChunk):
        chunk: dict[str, Any] = {"index": None, "type": "tool_call_chunk"}
        changed["tool_call_chunks"] = [{**call, "args": wires.argument_json(call["args"]), **chunk} for call in valid]
    return message.model_copy(update=changed)


def _write_block(block: Mapping[str, Any], edit: CallEdit) -> dict[str, Any]:
    """Return a call block with another id, name or arguments."""
    place, made = BLOCKS[block["type"]], dict(block)
    made.update(given(**{place.id: edit.id, "name": edit.name if place.kind != COMPUTER else None}))
    if edit.arguments is not None and not place.kind:
        made[place.arguments] = wires.argument_json(edit.arguments) if place.as_text else edit.arguments
        made.pop("partial_json", None)
        if block["type"] in {"tool_call_chunk", "invalid_tool_call"}:
            made["type"] = "tool_call"
            made.pop("error", None)
    return made


def _with_new_ids(extra: dict[str, Any], found: Sequence[Found], edits: Mapping[int, CallEdit]) -> dict[str, Any]:
    """Return `additional_kwargs` with new ids as the keys of values kept by id, such as signatures."""
    renamed = {found[place].call.id: edit.id for place, edit in edits.items() if edit.id and found[place].call.id}
    kept = {one.call.id for place, one in enumerate(found) if place not in edits or not edits[place].id}
    for name, value in extra.items():
        if is_map(value) and not renamed.keys().isdisjoint(value) and name != OLD_CALL:
            held = {key: item for key, item in value.items() if key in kept or key not in renamed}
            extra[name] = held | {new: value[old] for old, new in renamed.items() if old in value}
    return extra
