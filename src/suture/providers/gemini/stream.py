"""Streams of Gemini: events folded into the body of a plain response, and such a body cut up.

Every event has the shape of a whole response and holds what is new. Text goes on from one event to the next; within
one event parts stay apart, and so does one with a signature, which must go back on its own part.
"""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from suture.codecs._contents import arguments_text
from suture.errors import InputError, StreamCutError
from suture.messages import AgenticMessage, Delta
from suture.providers.gemini.fields import camel, object_in, objects
from suture.providers.gemini.partial import PartialCall
from suture.providers.gemini.read import mint
from suture.providers.gemini.reply import candidate_of, check_error, nonsense, read_reply, read_usage
from suture.wires import plain

__all__ = ["GeminiReader", "cut"]

_LOGPROBS = "logprobsResult"
_NAMES = ("responseId", "modelVersion")


class _Text:
    """A text that is still being said."""

    __slots__ = ("pieces", "thought")

    def __init__(self, text: str, *, thought: bool) -> None:
        self.pieces, self.thought = [text], thought

    def whole(self) -> dict[str, Any]:
        """Return it as a part."""
        return {"text": "".join(self.pieces), **({"thought": True} if self.thought else {})}


class _Part:
    """A part that came in one piece."""

    __slots__ = ("part",)

    def __init__(self, part: Mapping[str, Any]) -> None:
        self.part = part

    def whole(self) -> Mapping[str, Any]:
        """Return it."""
        return self.part


class GeminiReader:
    """Reads one streamed reply.

    >>> reader = GeminiReader()
    >>> reader.feed({"candidates": [{"content": {"parts": [{"text": "At "}]}}]})
    [Delta(text='At ')]
    >>> reader.feed({"candidates": [{"content": {"parts": [{"text": "06:12."}]}, "finishReason": "STOP"}]})
    [Delta(text='06:12.')]
    >>> reader.finish().content_blocks
    (AssistantGenText(text='At 06:12.'),)
    """

    def __init__(self) -> None:
        self._body: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._content: dict[str, Any] = {}
        self._parts: list[_Text | _Part | PartialCall] = []
        self._calls = 0
        self._open: PartialCall | None = None
        self._logprobs: dict[str, list[Any]] = {}
        self._usage: dict[str, Any] = {}

    def feed(self, event: Mapping[str, Any]) -> list[Delta]:
        """Return what `event` adds; raise the error that it reports."""
        try:
            body = camel(object_in({"event": plain(event)}, "event"))
            check_error(body)
            first = {name: self._body[name] for name in _NAMES if self._body.get(name)}
            self._body |= {**_without(body, "candidates", "usageMetadata"), **first}
            return [*self._take(candidate_of(body)), *self._count(body)]
        except InputError as error:
            raise nonsense(str(error)) from None

    def finish(self) -> AgenticMessage:
        """Return the whole message; raise `StreamCutError` where its end was not said."""
        if not self._candidate.get("finishReason"):
            raise StreamCutError("gemini: the stream ended before the reply did; ask again")
        candidate = {**self._candidate, **({_LOGPROBS: self._logprobs} if self._logprobs else {})}
        if self._content or self._parts:
            candidate["content"] = {**self._content, "parts": [part.whole() for part in self._parts]}
        usage = {"usageMetadata": self._usage} if self._usage else {}
        return read_reply({**self._body, "candidates": [candidate], **usage})

    def _take(self, candidate: Mapping[str, Any] | None) -> list[Delta]:
        """Take what an event says of the candidate: what it adds to it, and what holds for all of it."""
        if candidate is None:
            return []
        content = camel(object_in(candidate, "content"))
        for name, tokens in camel(object_in(candidate, _LOGPROBS)).items():
            if isinstance(tokens, list):
                self._logprobs.setdefault(name, []).extend(cast("list[Any]", tokens))
        self._candidate |= _without(candidate, "content", _LOGPROBS)
        self._content |= _without(content, "parts")
        deltas: list[Delta] = []
        for place, part in enumerate(objects(content.get("parts"), "content.parts")):
            deltas += self._add(camel(part), first=place == 0)
        return deltas

    def _add(self, part: Mapping[str, Any], *, first: bool) -> list[Delta]:
        if part.get("functionCall") is not None:
            return self._call(part, camel(object_in(part, "functionCall")))
        text, last = part.get("text"), self._parts[-1] if self._parts else None
        if text is None:
            self._parts.append(_Part(part))
            return []
        if not isinstance(text, str):
            raise InputError(f"expected a string, found {type(text).__name__}", path="content.parts.text")
        if _without(part, "text", "thought"):
            self._parts.append(_Part(part))
        elif first and isinstance(last, _Text) and last.thought is bool(part.get("thought")):
            last.pieces.append(text)
        else:
            self._parts.append(_Text(text, thought=bool(part.get("thought"))))
        if not text:
            return []
        return [Delta(reasoning=text) if part.get("thought") else Delta(text)]

    def _call(self, part: Mapping[str, Any], call: Mapping[str, Any]) -> list[Delta]:
        """Take a call, or a piece of one whose arguments are streamed; it is shown once it is whole."""
        if self._open is not None:
            if call.get("name"):
                raise InputError("a call before the end of another", path="content.parts.functionCall")
            self._open.add(call)
        elif call.get("willContinue") or call.get("partialArgs"):
            self._open = PartialCall(part, call)
            self._parts.append(self._open)
        elif call:
            self._parts.append(_Part(part))
            return [self._called(call)]
        if self._open is None or not self._open.ended:
            return []
        whole, self._open = self._open.whole(), None
        return [self._called(whole["functionCall"])]

    def _called(self, call: Mapping[str, Any]) -> Delta:
        place, self._calls = self._calls, self._calls + 1
        stem = self._body.get("responseId") or ""
        return Delta(
            call_index=place,
            call_id=call.get("id") or mint(stem, place, call),
            name=call.get("name") or "",
            arguments=arguments_text(call.get("args")),
        )

    def _count(self, body: Mapping[str, Any]) -> list[Delta]:
        """Take the counts of tokens: each one stands for the whole reply so far."""
        if body.get("usageMetadata") is None:
            return []
        self._usage |= _without(camel(object_in(body, "usageMetadata")))
        return [Delta(usage=read_usage(self._usage))]


def cut(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a stream that gives the response `body`.

    >>> [event["candidates"][0] for event in cut({"candidates": [{"content": {"parts": []}, "finishReason": "STOP"}]})]
    [{'content': {'parts': []}, 'finishReason': 'STOP'}]
    """
    [candidate] = body["candidates"]
    named = {name: body[name] for name in _NAMES if name in body}
    content = object_in(candidate, "content")
    runs = _runs(objects(content.get("parts"), "parts"))
    events = [{"candidates": [{"content": {**content, "parts": parts}}], **named} for parts in runs[:-1]]
    last = {**candidate, "content": {**content, "parts": runs[-1]}} if runs else candidate
    return [*events, {**body, "candidates": [last]}]


def _runs(parts: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """Return the parts as events hold them: a text in two pieces, and behind it the texts that would run into it."""
    runs: list[list[Mapping[str, Any]]] = []
    for place, part in enumerate(parts):
        if place and _flows(parts[place - 1]) and _flows(part) and _kind(parts[place - 1]) == _kind(part):
            runs[-1].append(part)
        elif _flows(part) and len(part["text"]) > 1:
            half = len(part["text"]) // 2
            runs.append([{**part, "text": part["text"][:half]}])
            runs.append([{**part, "text": part["text"][half:]}])
        else:
            runs.append([part])
    return runs


def _flows(part: Mapping[str, Any]) -> bool:
    return isinstance(part.get("text"), str) and not _without(part, "text", "thought")


def _kind(part: Mapping[str, Any]) -> bool:
    return bool(part.get("thought"))


def _without(fields: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """Return the fields that hold something, but for those called `names`."""
    return {name: value for name, value in fields.items() if value is not None and name not in names}
