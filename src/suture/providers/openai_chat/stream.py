"""Folds streams of Chat Completions into the body of a plain response, and holds what both share."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from msgspec.structs import replace

from suture.codecs import replies
from suture.codecs.contents import rest_of
from suture.codecs.refusals import read_failure
from suture.errors import InputError
from suture.messages import Delta, TokenUsage
from suture.providers.openai_chat.calls import id_of
from suture.providers.openai_chat.wire import detail_text
from suture.wires.fields import argument_json, expect, is_list, is_map, list_of, object_of, parse_json, text_of

WIRE = "openai-chat"
THOUGHT, DETAILS = "reasoning_content", "reasoning_details"
THOUGHTS = (THOUGHT, "reasoning")
"""The fields for a thought's text, best first: a server that sends several says the same in each."""
OLD_CALL = "function_call"
"""The field of a call of the older form, and the key under which it is kept."""
ARGUMENTS = {"function": "arguments", "custom": "input"}
"""The field of the arguments in each kind of call."""
_COUNTS = {
    "prompt_tokens": "prompt_tokens",
    "completion_tokens": "completion_tokens",
    "total_tokens": "total_tokens",
    "cached_tokens": "prompt_tokens_details.cached_tokens|prompt_cache_hit_tokens|cached_tokens",
    "cache_write_tokens": "prompt_tokens_details.cache_write_tokens",
    "reasoning_tokens": "completion_tokens_details.reasoning_tokens",
}
_CHUNK_FIELDS = ("object", "choices", "usage", "obfuscation", "error")
_CHOICE_FIELDS = ("index", "delta", "finish_reason", "logprobs", "error")
_DELTA_FIELDS = ("role", "content", "tool_calls", "audio", DETAILS, OLD_CALL)


def raise_error(body: Mapping[str, Any]) -> None:
    """Raise the error that a reply, an event or a choice reports, if it reports one."""
    found = body.get("error") or (body if body.get("object") == "error" else None)
    if found:
        raise read_failure(WIRE, found)


def only_texts(parts: Sequence[Any]) -> bool:
    """Return whether `parts` are texts with nothing attached, so that one text says the same."""
    return all(
        is_map(part) and len(part) == 2 and part.get("type") == "text" and isinstance(part.get("text"), str)
        for part in parts
    )


def read_usage(usage: Any) -> TokenUsage:
    """Return the token usage of a reply; some servers count thinking only in the total."""
    read = replies.read_usage(usage, _COUNTS)
    completion = max(read.completion_tokens, read.total_tokens - read.prompt_tokens)
    return replace(read, completion_tokens=completion, total_tokens=read.prompt_tokens + completion)


# Streams


class ChatReader(replies.StreamReader):
    """Folds chunks into the body of a plain response. Nothing is joined before the end.

    >>> from suture.codecs import get_codec
    >>> reader = get_codec("openai-chat").reader()
    >>> reader.feed({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]})
    [Delta(text='hi')]
    >>> reader.finish().content_blocks
    (AssistantGenText(text='hi'),)
    """

    def __init__(self, codec: Any) -> None:
        super().__init__(codec)
        self._head, self._choice = _Pieces(_CHUNK_FIELDS), _Pieces(_CHOICE_FIELDS)
        self._message = _Pieces(_DELTA_FIELDS, (*THOUGHTS, "refusal"))
        self._audio, self._old_call = _Pieces((), ("data", "transcript")), _Pieces((), ("name", "arguments"))
        self._logprobs: dict[str, list[Any]] = {}
        self._content, self._calls, self._details = _Content(), _Calls(), _Details()
        self._usage: Any = None
        self._reason = ""
        self._thought_field = ""
        self._is_done = self._has_first = False
        """Whether the mark of the end has come, and a choice with the number 0; some servers begin with another."""

    def fold(self) -> Mapping[str, Any] | None:
        """Return the body that the chunks make; `None` if none said why it ended and no mark said that it did."""
        message: dict[str, Any] = {**self._message.join(), "role": "assistant", "content": self._content.join()}
        audio = {name: value for name, value in self._audio.join().items() if value != ""}
        sound = self._audio.texts.get("data", [])
        if any(piece.endswith("=") for piece in sound[:-1]):  # some servers encode each piece separately
            with suppress(InputError):
                audio["data"] = replies.join_base64(sound)
        found = {
            DETAILS: [detail.join() for detail in self._details.all],
            "audio": audio,
            OLD_CALL: self._old_call.join(),
            "tool_calls": [call.join() for call in self._calls.all],
        }
        message |= {name: value for name, value in found.items() if value}
        if not self._reason and not (self._is_done and any(message[name] for name in message if name != "role")):
            return None
        choice = {**self._choice.join(), "index": 0, "message": message, "finish_reason": self._reason}
        if self._logprobs:
            choice["logprobs"] = self._logprobs
        return {**self._head.join(), "object": "chat.completion", "choices": [choice], "usage": self._usage}

    def add(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        if event is replies.DONE:
            self._is_done = True
            return
        raise_error(event)
        self._head.add(event)
        for place, choice in enumerate(list_of(event, "choices")):
            index = choice.get("index")
            if index == 0 or (place == 0 and (index is None or not self._has_first)):
                self._has_first = self._has_first or index == 0
                yield from self._add_choice(choice)
        usage = event.get("usage")
        if usage is not None:
            yield Delta(usage=read_usage(usage))
            self._usage = usage

    def _add_choice(self, choice: Mapping[str, Any]) -> list[Delta]:
        raise_error(choice)
        self._choice.add(choice)
        self._reason = text_of(choice, "finish_reason") or self._reason
        logprobs = object_of(choice, "logprobs", optional=True)
        for name in rest_of(logprobs):
            self._logprobs.setdefault(name, []).extend(list_of(logprobs, name))
        delta = object_of(choice, "delta", optional=True)
        self._message.add(delta, grow=True)
        sound = object_of(delta, "audio", optional=True)
        self._audio.add(sound)
        self._old_call.add(object_of(delta, OLD_CALL, optional=True))
        details = list_of(delta, DETAILS)
        self._details.add(details)
        said = {name: text_of(delta, name) for name in THOUGHTS}
        said[DETAILS] = "".join(map(detail_text, details))
        # If several fields hold the thought, only the first to arrive is shown.
        self._thought_field = self._thought_field or next((name for name, text in said.items() if text), "")
        shown, refusal = said.get(self._thought_field, ""), text_of(delta, "refusal")
        deltas = [Delta(reasoning=shown)] if shown else []
        deltas += self._content.add(delta)
        deltas += [Delta(refusal)] if refusal else []
        if sound and (said := text_of(sound, "transcript")):
            deltas.append(Delta(said))
        return [*deltas, *self._calls.add(list_of(delta, "tool_calls"))]


class _Pieces:
    """An object that comes in pieces: `growing` texts are joined, objects merged; of other values the last is kept.

    Fields in `known` are skipped, because other code reads them.
    """

    chunk = 0
    """The number of the chunk that it began in, where that matters."""

    def __init__(self, known: Collection[str] = (), growing: Collection[str] = ()) -> None:
        self.texts: dict[str, list[str]] = {}
        self.fields: dict[str, Any] = {}
        self._known, self._growing = known, growing

    def add(self, new: Mapping[str, Any], *, grow: bool = False) -> None:
        """Add the next piece; `grow` extends lists instead of replacing them, and a null never replaces a value."""
        for name, value in new.items():
            if name in self._known:
                continue
            if value is None:
                self.fields.setdefault(name)
                continue
            before: Any = self.fields.get(name)
            if name in self._growing:
                self.texts.setdefault(name, []).append(text_of(new, name))
            elif grow and before.__class__ is list and is_list(value):
                before.extend(value)
            elif before.__class__ is dict and is_map(value):
                before.update(value)
            else:
                self.fields[name] = list(value) if is_list(value) else dict(value) if is_map(value) else value

    def join(self) -> dict[str, Any]:
        return self.fields | {name: "".join(texts) for name, texts in self.texts.items()}


class _Details:
    """The details of a thought, signed or encrypted; the server refuses one that comes back incomplete."""

    def __init__(self) -> None:
        self.all: list[_Pieces] = []
        self._by_place: dict[tuple[str, str], _Pieces] = {}
        self._chunk = 0

    def add(self, details: Sequence[Mapping[str, Any]]) -> None:
        """Add the details of one chunk; each continues one of an earlier chunk, or is new."""
        self._chunk += 1
        for detail in details:
            place = repr(detail.get("type")), repr(detail.get("index"))
            held = self._by_place.get(place)
            if held is None or not self._goes_on(held, detail):
                held = self._by_place[place] = _Pieces(growing=("text", "summary", "data"))
                held.chunk = self._chunk
                self.all.append(held)
            held.add(detail)

    def _goes_on(self, held: _Pieces, detail: Mapping[str, Any]) -> bool:
        """Return whether `detail`, of the same type and index, may be a piece of `held`."""
        if detail.get("index") is None and (held is not self.all[-1] or held.fields.get("signature")):
            return False  # without an index it can only continue the last detail, and a signature ends that
        mine, other = held.fields.get("id"), detail.get("id")
        return held.chunk < self._chunk and (mine == other or mine is None or other is None)


class _Content:
    """The content: a text in pieces or, from some servers, parts in pieces."""

    def __init__(self) -> None:
        self._parts: list[tuple[dict[str, Any], list[str]]] = []
        self._listed = False

    def add(self, delta: Mapping[str, Any]) -> list[Delta]:
        """Return what a chunk's content adds; its first part may continue the last part so far."""
        if is_list(delta.get("content")):
            self._listed = True
            parts: Sequence[Mapping[str, Any]] = list_of(delta, "content")
        else:
            text = text_of(delta, "content")
            parts = [{"type": "text", "text": text}] if text else []
        return [found for place, part in enumerate(parts) for found in self._add(part, goes_on=place == 0)]

    def _add(self, part: Mapping[str, Any], *, goes_on: bool) -> list[Delta]:
        text = _text_in(part)
        last, pieces = self._parts[-1] if self._parts else ({}, [])
        if text is None or not goes_on or not pieces or last.get("type") != part["type"]:
            last, pieces = dict(part), list[str]()
            self._parts.append((last, pieces))
        if text is not None:
            pieces.append(text)
        return [Delta(reasoning=text) if last["type"] == "thinking" else Delta(text)] if text else []

    def join(self) -> Any:
        parts: list[dict[str, Any]] = []
        for part, pieces in self._parts:
            kind, text = str(part.get("type")), "".join(pieces)
            said: Any = [{"type": "text", "text": text}] if kind == "thinking" else text
            parts.append({**part, kind: said} if pieces else part)
        if self._listed:
            return parts
        return parts[0]["text"] if parts else None


def _text_in(part: Mapping[str, Any]) -> str | None:
    """Return the text of a text, refusal or thinking part; `None` for any other part, which comes whole."""
    kind = part.get("type")
    if kind in ("text", "refusal") and isinstance(part.get(kind), str):
        return part[kind]
    pieces = part.get("thinking") if kind == "thinking" else None
    if is_list(pieces) and only_texts(pieces):
        return "".join([piece["text"] for piece in pieces])
    return None


class _Call:
    """A call that is being streamed."""

    def __init__(self, place: int) -> None:
        self.place, self.id, self.name, self.kind = place, "", "", ""
        self.shown = False
        """Whether a delta with its id was returned."""
        self.named = 0
        """The number of the chunk that brought its name."""
        self.arguments: list[str] = []
        self.rest, self.inner = _Pieces(("index", "id", "type", *ARGUMENTS)), _Pieces(("name", *ARGUMENTS.values()))

    def is_other(self, name: str, call_id: str, arguments: str) -> bool:
        """Return whether a piece with a name belongs to another call.

        A name may come in pieces, before the arguments, of a call that has an id. One that is repeated is that of
        another call if the arguments so far are whole and others begin (hermes-agent#62940).
        """
        if not name or not self.name:
            return False
        said = "".join(self.arguments)
        if name != self.name:
            return bool(said) or not self.id or call_id not in ("", self.id)
        if call_id or self.id or not arguments.lstrip().startswith("{") or not said.rstrip().endswith("}"):
            return False
        return bool(parse_json(said))  # an empty object may only be how the arguments begin

    def join(self) -> dict[str, Any]:
        kind = self.kind or "function"
        made: dict[str, Any] = {"id": self.id, "type": kind, **self.rest.join()}
        if kind in ARGUMENTS:
            made[kind] = {"name": self.name, ARGUMENTS[kind]: "".join(self.arguments), **self.inner.join()}
        return made


def _is_bare(piece: Mapping[str, Any]) -> bool:
    """Return whether nothing in a piece says which call it belongs to."""
    held = piece.get("function")
    return all(piece.get(name) is None for name in ("index", "id")) and is_map(held) and not held.get("name")


class _Calls:
    """Finds out which call each piece belongs to.

    Most servers send an index. Some leave it out, or the id; some repeat the id in each piece, or send a new one; some
    send the index of the call before, or the same id for two calls. A piece with neither continues the last call, and
    a call that has a name is never given another.
    """

    def __init__(self) -> None:
        self.all: list[_Call] = []
        self._by_index: dict[int, _Call] = {}
        self._by_id: dict[str, _Call] = {}
        self._last: _Call | None = None
        self._chunk = 0

    def add(self, pieces: Sequence[Mapping[str, Any]]) -> list[Delta]:
        """Return the deltas that the pieces in one chunk add."""
        self._chunk += 1
        deltas: list[Delta] = []
        for place, piece in enumerate(pieces):
            if len(pieces) > 1 and _is_bare(piece) and len(self.all) >= len(pieces):  # pieces of calls side by side
                self._last = self.all[place - len(pieces)]
            deltas += self._add(piece)
        return deltas

    def _add(self, piece: Mapping[str, Any]) -> list[Delta]:
        kind, call_id = text_of(piece, "type"), id_of(piece)
        field = "custom" if kind == "custom" or "custom" in piece else "function"
        held = object_of(piece, field, optional=True)
        name, said = text_of(held, "name"), held.get(ARGUMENTS[field])
        arguments = argument_json(said) if is_map(said) else text_of(held, ARGUMENTS[field])
        index = None if piece.get("index") is None else expect(piece["index"], int, "a whole number", "index")
        bare = piece.get("id") is None and held.get("name") is None
        call = self._last = self._find(index, call_id, name, arguments, bare=bare)
        call.kind = call.kind or kind or ("custom" if field == "custom" else "")
        call.arguments.append(arguments)
        call.rest.add(piece)
        call.inner.add(held)
        new_name = name if name != call.name else ""
        call.id, call.name = call.id or call_id, call.name + new_name
        if new_name:
            call.named = self._chunk
        if call.id:
            self._by_id[call.id] = call
        new_id = "" if call.shown else call.id
        if not (new_name or arguments or (new_id and held)):
            return []
        call.shown = call.shown or bool(new_id)
        return [Delta(call_index=call.place, call_id=new_id, name=new_name, arguments=arguments)]

    def _find(self, index: int | None, call_id: str, name: str, arguments: str, *, bare: bool) -> _Call:
        """Return the call that a piece with these marks belongs to, perhaps a new one."""
        if index is None:
            known, last = self._by_id.get(call_id), self._last
            if known is None:
                known = None if last is None or (call_id and last.id) or (name and last.name) else last
            elif (name and known.named == self._chunk) or known.is_other(name, call_id, arguments):
                known = None
        elif bare and index not in self._by_index:
            known = self._last  # some servers begin a call under the index of another, then continue under its own
        else:
            known = self._by_index.get(index)
            if known is not None and (
                (name and call_id and known.id not in ("", call_id)) or known.is_other(name, call_id, arguments)
            ):
                known = None
        if known is None:
            if index is None and not call_id and not name:
                raise InputError("a piece of a call that was never begun", path="tool_calls")
            known = _Call(len(self.all))
            self.all.append(known)
        if index is not None:
            self._by_index[index] = known
        return known
