"""The calls of an `AIMessage`, wherever they stand: one call may be written in several places.

LangChain's own list (`tool_calls`), its list of those whose arguments could not be read (`invalid_tool_calls`), the
blocks of the content, and the provider's raw form (`additional_kwargs`). Adapters differ in which of these they send.
So a message that changes gets all its calls into LangChain's own lists, and its blocks say the same.

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

CUSTOM, COMPUTER, OLD = "custom", "computer", "function"
"""Kinds of calls: of a custom tool, whose output has a form of its own; one that wants a screenshot; and OpenAI's older
form, which has no id."""


class _Form(NamedTuple):
    """Where a call block has its id and its arguments, and what kind of call it is."""

    id: str
    arguments: str
    kind: str = ""
    as_text: bool = False


_FORMS = {
    "tool_use": _Form("id", "input"),
    "tool_call": _Form("id", "args"),
    "tool_call_chunk": _Form("id", "args"),
    "invalid_tool_call": _Form("id", "args"),
    "function_call": _Form("call_id", "arguments", as_text=True),
    "custom_tool_call": _Form("call_id", "input", CUSTOM),
    "computer_call": _Form("call_id", "action", COMPUTER),
}
_IDS = {kind: form.id if not form.kind else "" for kind, form in _FORMS.items()}
"""Where a block has its id; those of special kinds nowhere, so that they are looked at twice."""
_SEALS = ("signature", "thought_signature", "encrypted_content")
_KINDS = {
    "tool_result": RESULT,
    **dict.fromkeys(_FORMS, CALL),
    **dict.fromkeys(("text", "input_text", "output_text", "refusal"), TEXT),
    **dict.fromkeys(("thinking", "redacted_thinking", "reasoning", "reasoning_content"), THINKING),
    **dict.fromkeys(("image", "image_url", "input_image", "audio", "input_audio", "video"), MEDIA),
    **dict.fromkeys(("file", "input_file", "document", "media"), MEDIA),
}


def kind_of(block: Any) -> str:
    """Return what a block is: call, result, text, thinking, media or other.

    >>> kind_of("hi"), kind_of({"type": "tool_use"}), kind_of({"type": "server_tool_use"})
    ('text', 'call', 'other')
    """
    return TEXT if isinstance(block, str) else _KINDS.get(word(block, "type") or "", OTHER)


def is_signed(block: Any) -> bool:
    """Tell whether a block is signed or encrypted by the provider."""
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


# How the content of a tool message is written

_typed = typed_text("text", "input_text", "output_text")


def _find_text(block: Any) -> str | None:
    if isinstance(block, str):
        return block
    if word(block, "type") == "custom_tool_call_output":
        return word(block, "output")
    return _typed(block)


def _media(part: Part) -> dict[str, Any] | None:
    """Return a native medium as a block of LangChain's own form."""
    if not isinstance(part, MEDIA_PARTS) or isinstance(part, RawPart):
        return None
    extras = {
        **({"filename": part.name} if isinstance(part, FilePart) and part.name else {}),
        **({"detail": part.detail} if isinstance(part, ImagePart) and part.detail else {}),
    }
    told = {"mime_type": part.mime_type, "extras": extras}
    where = {"url": part.url} if part.url else {"base64": part.base64_data}
    kind = cast("str", type(part).__struct_config__.tag)
    return {"type": kind, **where, **{name: value for name, value in told.items() if value}}


FORM = Form(_find_text, text_block("text"), _media)


# Finding calls

_CALLS, _INVALID, _CONTENT, _RAW, _OUTPUTS = "tool_calls", "invalid_tool_calls", "content", "raw", "tool_outputs"


class Found(NamedTuple):
    """A call, and the places where it stands: the index in each list."""

    call: Call
    sites: dict[str, int]


def find_calls(message: AIMessage) -> list[Found]:
    """Return the calls of `message`, each once.

    >>> block = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    >>> message = AIMessage([block], tool_calls=[{"id": "a", "name": "f", "args": {}}])
    >>> [found.sites for found in find_calls(message)]
    [{'tool_calls': 0, 'content': 0}]
    """
    found = [Found(call, {_CALLS: index}) for index, call in _listed(message.tool_calls)]
    _add(found, _INVALID, _listed(message.invalid_tool_calls))
    if is_list(message.content):
        _add(found, _CONTENT, _in_content(message.content))
    extra = message.additional_kwargs
    if extra:
        own = not message.tool_calls and not message.invalid_tool_calls
        _add(found, _RAW, _in_raw(extra.get(_CALLS)), new=own)
        outputs = extra.get(_OUTPUTS)
        screens = _in_content(outputs) if is_list(outputs) else ()
        _add(found, _OUTPUTS, [each for each in screens if each[1].kind == COMPUTER])
        old = extra.get("function_call")
        if is_map(old) and not found:
            found.append(Found(Call("", _text(old.get("name")), decoded(old.get("arguments")), OLD), {}))
    return found


def _add(found: list[Found], field: str, entries: Any, *, new: bool = True) -> None:
    """Add the calls of one list: the first of an id there is the first of that id so far, and so on."""
    known: dict[Any, list[int]] = {}
    for place, one in enumerate(found):
        known.setdefault(one.call.id or ("", one.call.name), []).append(place)
    for index, call in entries:
        same = known.get(call.id or ("", call.name), [])
        if field == _INVALID:  # nobody wrote it twice: it is another call, unless all but the arguments is the same
            same = [place for place in same if call.id and call.name in {"", found[place].call.name}]
        if same:
            place = same.pop(0)
            found[place].sites[field] = index
            if call.kind:
                found[place] = Found(found[place].call._replace(kind=call.kind), found[place].sites)
        elif new:
            found.append(Found(call._replace(arguments=decoded(call.arguments)), {field: index}))


def plain_calls(message: AIMessage) -> tuple[Call, ...]:
    """Return the calls of a message that is plain."""
    return tuple([call for _, call in _listed(message.tool_calls)])


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
    return _OUTPUTS not in extra and bool(calls or (_CALLS not in extra and "function_call" not in extra))


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


def _listed(entries: Any) -> Iterator[tuple[int, Call]]:
    """Return the calls of one of LangChain's own lists, each with its index."""
    for index, entry in enumerate(entries or ()):
        yield index, Call(_text(get(entry, "id")), _text(get(entry, "name")), get(entry, "args"))


def _in_raw(entries: Any) -> Iterator[tuple[int, Call]]:
    """Return the calls as Chat Completions writes them."""
    for index, entry in enumerate(entries if is_list(entries) else ()):
        function = get(entry, "function")
        if is_map(function):
            yield index, Call(_text(get(entry, "id")), _text(function.get("name")), function.get("arguments"))


def _in_content(blocks: Sequence[Any]) -> Iterator[tuple[int, Call]]:
    for index, block in enumerate(blocks):
        form = _FORMS.get(word(block, "type") or "") if is_map(block) else None
        if form is not None:
            name, arguments = block.get("name"), block.get(form.arguments)
            if form.kind == COMPUTER:
                name = COMPUTER
            elif form.kind == CUSTOM:
                arguments = {"__arg1": arguments}
            else:
                arguments = arguments or block.get("partial_json", arguments)
            yield index, Call(_text(block.get(form.id)), _text(name), arguments, form.kind)


# Changing them


def gather_calls(message: AIMessage) -> AIMessage:
    """Return `message` with each sound call in `tool_calls`, where all adapters look; itself if they are there.

    >>> message = AIMessage([{"type": "tool_use", "id": "a", "name": "f", "input": {"q": 1}}])
    >>> gather_calls(message).tool_calls
    [{'name': 'f', 'args': {'q': 1}, 'id': 'a', 'type': 'tool_call'}]
    """
    for call, sites in find_calls(message):
        if is_map(call.arguments) and call.kind in {"", CUSTOM} and (_CALLS not in sites or _INVALID in sites):
            return write_calls(message, {})
    return message


def write_calls(message: AIMessage, edits: Mapping[int, CallEdit]) -> AIMessage:
    """Return `message` with the calls at these positions changed, and all of its calls in LangChain's own lists.

    >>> message = AIMessage("", invalid_tool_calls=[{"id": "a", "name": "f", "args": "{", "error": None}])
    >>> write_calls(message, {0: CallEdit(arguments={})}).tool_calls
    [{'name': 'f', 'args': {}, 'id': 'a', 'type': 'tool_call'}]
    """
    found, extra = find_calls(message), dict(message.additional_kwargs)
    valid: list[Any] = [*message.tool_calls]
    invalid: list[Any] = []
    blocks: dict[str, list[Any]] = {_OUTPUTS: list(extra.get(_OUTPUTS) or ())}
    blocks[_CONTENT] = list(message.content) if is_list(message.content) else []
    for position, (call, sites) in enumerate(found):
        edit = edits.get(position, CallEdit())
        fields = given(id=edit.id, name=edit.name, args=edit.arguments)
        for field in blocks.keys() & sites:
            blocks[field][sites[field]] = _write_block(blocks[field][sites[field]], edit)
        if call.kind == OLD:
            told = None if edit.arguments is None else argument_json(edit.arguments)
            extra["function_call"] = put(extra["function_call"], **given(name=edit.name, arguments=told))
        elif _CALLS in sites:
            valid[sites[_CALLS]] = put(valid[sites[_CALLS]], **fields)
        elif call.kind != COMPUTER:
            made = {"name": call.name, "args": call.arguments, "id": call.id or None, **fields}
            if is_map(made["args"]):
                valid.append({**made, "type": "tool_call"})
            else:
                known: Any = message.invalid_tool_calls[sites[_INVALID]] if _INVALID in sites else {"error": None}
                invalid.append({**known, **made, "type": "invalid_tool_call"})
    if blocks[_OUTPUTS]:
        extra[_OUTPUTS] = blocks[_OUTPUTS]
    extra.pop(_CALLS, None)
    changed = {_CALLS: valid, _INVALID: invalid, "additional_kwargs": _with_new_ids(extra, found, edits)}
    if blocks[_CONTENT]:
        changed[_CONTENT] = blocks[_CONTENT]
    if hasattr(message, "tool_call_chunks"):
        chunk: dict[str, Any] = {"index": None, "type": "tool_call_chunk"}
        changed["tool_call_chunks"] = [{**call, "args": argument_json(call["args"]), **chunk} for call in valid]
    return message.model_copy(update=changed)


def _write_block(block: Mapping[str, Any], edit: CallEdit) -> dict[str, Any]:
    """Return a call block with another id, name or arguments."""
    form, made = _FORMS[block["type"]], dict(block)
    made.update(given(**{form.id: edit.id, "name": edit.name if form.kind != COMPUTER else None}))
    if edit.arguments is not None and not form.kind:
        made[form.arguments] = argument_json(edit.arguments) if form.as_text else edit.arguments
        made.pop("partial_json", None)
        if block["type"] in {"tool_call_chunk", "invalid_tool_call"}:
            made["type"] = "tool_call"
            made.pop("error", None)
    return made


def _with_new_ids(extra: dict[str, Any], found: Sequence[Found], edits: Mapping[int, CallEdit]) -> dict[str, Any]:
    """Return what is kept beside a message with the ids changed by which it keeps things, such as signatures."""
    renamed = {found[place].call.id: edit.id for place, edit in edits.items() if edit.id and found[place].call.id}
    kept = {one.call.id for place, one in enumerate(found) if place not in edits or not edits[place].id}
    for name, value in extra.items():
        if is_map(value) and not renamed.keys().isdisjoint(value) and name != "function_call":
            held = {key: item for key, item in value.items() if key in kept or key not in renamed}
            extra[name] = held | {new: value[old] for old, new in renamed.items() if old in value}
    return extra
