"""Streams of Chat Completions: chunks folded into the body of a plain response, and such a body cut into chunks."""

from collections.abc import Iterator, Mapping
from typing import Any

from suture.errors import StreamCutError
from suture.messages import AgenticMessage, Delta
from suture.providers.openai_chat.calls import SAID, Calls
from suture.providers.openai_chat.errors import raise_error
from suture.providers.openai_chat.parts import is_map
from suture.providers.openai_chat.pieces import Content, Details, Sound, absorb, list_in, map_in, text_in
from suture.providers.openai_chat.reading import DETAILS, OLD_CALL, THOUGHTS, detail_text
from suture.providers.openai_chat.reply import read_reply, read_usage

__all__ = ["ChatReader", "cut"]

_CHUNK, _BODY = "chat.completion.chunk", "chat.completion"
_OF_CHUNK = ("object", "choices", "usage", "obfuscation", "error")
_OF_CHOICE = ("index", "delta", "finish_reason", "logprobs", "error")
_OF_DELTA = ("role", "content", "refusal", "tool_calls", "audio", DETAILS, OLD_CALL, *THOUGHTS)
_PIECE = 32
"""How many characters of a text are cut into one chunk."""


class ChatReader:
    """Folds chunks into the body of a plain response. Nothing is joined before the end.

    >>> reader = ChatReader()
    >>> reader.feed({"choices": [{"index": 0, "delta": {"content": "hi"}, "finish_reason": "stop"}]})
    [Delta(text='hi')]
    >>> reader.finish().content_blocks
    (AssistantGenText(text='hi'),)
    """

    def __init__(self) -> None:
        self._head: dict[str, Any] = {}
        self._choice: dict[str, Any] = {}
        self._message: dict[str, Any] = {}
        self._texts: dict[str, list[str]] = {}
        self._older: dict[str, list[str]] = {}
        self._logprobs: dict[str, list[Any]] = {}
        self._content, self._calls, self._details, self._sound = Content(), Calls(), Details(), Sound()
        self._usage: Any = None
        self._reason = ""
        self._thinks_in = ""

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Return what `event` adds; raise `ModelError` where it reports one, or makes no sense."""
        raise_error(event)
        absorb(self._head, event, _OF_CHUNK)
        deltas: list[Delta] = []
        for place, found in enumerate(list_in(event.get("choices"), "choices")):
            choice = map_in(found, "a choice")
            index = choice.get("index")
            if index == 0 or (index is None and place == 0):
                deltas += self._take(choice)
        usage = event.get("usage")
        if usage is not None:
            deltas.append(Delta(usage=read_usage(usage)))
            self._usage = usage
        return deltas

    def finish(self) -> AgenticMessage:
        """Return the whole message; raise `StreamCutError` where no chunk said why the reply ended."""
        if not self._reason:
            raise StreamCutError("openai-chat: the stream ended before the reply did; ask again")
        choice = {**self._choice, "index": 0, "message": self._whole(), "finish_reason": self._reason}
        if self._logprobs:
            choice["logprobs"] = self._logprobs
        return read_reply({**self._head, "object": _BODY, "choices": [choice], "usage": self._usage})

    def _take(self, choice: Mapping[str, Any]) -> list[Delta]:
        raise_error(choice)
        absorb(self._choice, choice, _OF_CHOICE)
        self._reason = text_in(choice.get("finish_reason"), "finish_reason") or self._reason
        for name, tokens in map_in(choice.get("logprobs"), "logprobs").items():
            if tokens is not None:
                self._logprobs.setdefault(name, []).extend(list_in(tokens, "logprobs"))
        delta = map_in(choice.get("delta"), "delta")
        absorb(self._message, delta, _OF_DELTA, grow=True)
        self._sound.take(map_in(delta.get("audio"), "audio"))
        for name, piece in map_in(delta.get(OLD_CALL), OLD_CALL).items():
            self._older.setdefault(name, []).append(text_in(piece, OLD_CALL))
        deltas = [*self._think(delta), *self._content.take(delta.get("content"))]
        refusal = self._text(delta, "refusal")
        if refusal:
            deltas.append(Delta(refusal))
        return [*deltas, *self._calls.take(list_in(delta.get("tool_calls"), "tool_calls"))]

    def _text(self, delta: Mapping[str, Any], name: str) -> str:
        text = text_in(delta.get(name), name)
        if text:
            self._texts.setdefault(name, []).append(text)
        return text

    def _think(self, delta: Mapping[str, Any]) -> list[Delta]:
        """Take what was thought; of several fields that say it, the first to come is shown."""
        said = {name: self._text(delta, name) for name in THOUGHTS}
        details = [map_in(detail, DETAILS) for detail in list_in(delta.get(DETAILS), DETAILS)]
        if details:
            self._details.take(details)
            said[DETAILS] = "".join([detail_text(detail) for detail in details])
        self._thinks_in = self._thinks_in or next((name for name, text in said.items() if text), "")
        shown = said.get(self._thinks_in, "")
        return [Delta(reasoning=shown)] if shown else []

    def _whole(self) -> dict[str, Any]:
        """Return the message that the pieces make."""
        message: dict[str, Any] = {**self._message, "role": "assistant", "content": self._content.whole()}
        message |= {name: "".join(pieces) for name, pieces in self._texts.items()}
        older = {name: "".join(pieces) for name, pieces in self._older.items()}
        found = (
            (DETAILS, self._details.whole()),
            ("audio", self._sound.whole()),
            (OLD_CALL, older),
            ("tool_calls", self._calls.whole()),
        )
        return message | {name: value for name, value in found if value}


# Writing


def cut(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the chunks of a stream that says what `body`, a plain response, says."""
    head = {name: value for name, value in body.items() if name not in {"choices", "usage"}} | {"object": _CHUNK}
    (choice,) = body["choices"]
    events = [
        {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
        for delta in _deltas(choice["message"])
    ]
    rest = {name: value for name, value in choice.items() if name != "message"}
    events.append({**head, "choices": [{**rest, "delta": {}}]})
    if "usage" in body:
        events.append({**head, "choices": [], "usage": body["usage"]})
    return events


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield what each chunk adds: thought, text, what comes whole, calls."""
    yield {"role": "assistant"}
    for name in (*THOUGHTS, "content", "refusal"):
        value = message.get(name)
        if isinstance(value, str):
            yield from ({name: piece} for piece in _cut(value))
        elif value is not None:
            yield {name: value}
    for name, value in message.items():
        if name not in {"role", "content", "refusal", "tool_calls", *THOUGHTS}:
            yield {name: value}
    for index, call in enumerate(message.get("tool_calls", ())):
        yield from ({"tool_calls": [piece]} for piece in _cut_call(index, call))


def _cut_call(index: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = str(call.get("type"))
    said, held = SAID.get(kind), call.get(kind)
    if said is None or not is_map(held):
        yield {"index": index, **call}
        return
    yield {**call, "index": index, kind: {**held, said: ""}}
    for piece in _cut(held[said]):
        yield {"index": index, kind: {said: piece}}


def _cut(text: str) -> Iterator[str]:
    return (text[start : start + _PIECE] for start in range(0, len(text), _PIECE))
