"""Reads streams of Gemini, and the metadata and errors of its replies.

Each event of a stream has the shape of a whole response, and holds what is new. A text may continue in the next event,
but parts within one event stay separate. So does a part with a signature, which must go back with that part.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, zip_longest
from typing import Any
from zlib import crc32

from msgspec.structs import replace

from suture.codecs.contents import rest_of
from suture.codecs.refusals import read_failure
from suture.codecs.replies import DONE, StreamReader, make_meta, read_usage
from suture.errors import InputError, ModelReplyError, ModelRequestError
from suture.messages import Delta, FunctionToolCall, LogProb, ResponseMeta, TopLogProb
from suture.wires import plain
from suture.wires.fields import argument_json, expect, is_list, is_map, list_of, listed, object_of, text_of

GEMINI = "gemini"
_FILTERED = (
    *("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"),
    *("IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION"),
)
_REASONS = {"STOP": "stop", "MAX_TOKENS": "length", **dict.fromkeys(_FILTERED, "content_filter")}
_SLIPS = ("MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL", "TOO_MANY_TOOL_CALLS", "MALFORMED_RESPONSE")
"""Reasons of a reply that another attempt may better: python-genai#1836, pydantic-ai#3095, hermes-agent#83886."""
_REFUSALS = ("MISSING_THOUGHT_SIGNATURE",)
"""Reasons that lie in the request."""
_BAD_KEY = "API_KEY_INVALID"
STANDARD = str.maketrans("-_", "+/")
_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d+)\]|\[['"]([^'"]*)['"]\]""")
"""A step of the path of an argument."""
_VALUES = ("stringValue", "numberValue", "boolValue")
_NAMES = ("responseId", "modelVersion")
_LOGPROBS = "logprobsResult"
_COUNTS = {
    "prompt_tokens": "promptTokenCount toolUsePromptTokenCount",
    "completion_tokens": "candidatesTokenCount thoughtsTokenCount",
    "total_tokens": "totalTokenCount",
    "cached_tokens": "cachedContentTokenCount",
    "reasoning_tokens": "thoughtsTokenCount",
}
"""The fields of the token usage; Gemini counts thoughts and the output of its tools apart from the rest."""
_OPEN = frozenset(
    (
        *("args", "response", "partMetadata", "labels", "parameters", "parametersJsonSchema"),
        *("responseJsonSchema", "responseSchema"),
    )
)
"""Fields that hold JSON of users or models, whose names are not the API's."""


# Fields


def normalise(value: Any) -> Any:
    """Return `value` with the API's names of fields, and without fields that are null.

    The SDK has names in snake case and URL-safe base64. What users and models wrote, such as arguments and schemas,
    stays as it is.
    """
    if is_map(value):
        named = {_camel(name): held for name, held in value.items() if held is not None}
        made = {name: held if name in _OPEN else normalise(held) for name, held in named.items()}
        if isinstance(made.get("thoughtSignature"), str):
            made["thoughtSignature"] = made["thoughtSignature"].translate(STANDARD)
        return made
    return [normalise(held) for held in value] if is_list(value) else value


def _camel(name: str) -> str:
    if "_" not in name:
        return name
    first, *rest = name.split("_")
    return first + "".join([word.capitalize() for word in rest]) if first and all(rest) else name


def mint(stem: str, place: int, call: FunctionToolCall | Delta) -> str:
    """Return an id for the call at `place` among the calls of a reply or of a message in a history."""
    return f"call_{stem or format(crc32(f'{call.name}{call.arguments}'.encode()), '08x')}_{place}"


# Metadata of a reply


def first_candidate(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the first candidate in a body or an event; `None` if it has only others, or none."""
    return next((candidate for candidate in list_of(body, "candidates") if not candidate.get("index")), None)


def read_meta(body: Mapping[str, Any], candidate: Mapping[str, Any], blocks: Sequence[Any]) -> ResponseMeta:
    """Return why a reply ended, its token usage, its log probabilities, and the other fields of its body."""
    word = text_of(candidate, "finishReason")
    if word in _SLIPS or word in _REFUSALS:
        told = ": ".join([text for text in (word, text_of(candidate, "finishMessage")) if text])
        kind = ModelReplyError if word in _SLIPS else ModelRequestError
        raise kind(f"the model's reply is of no use: {told}", provider=GEMINI, code=word)
    calls = any(isinstance(block, FunctionToolCall) for block in blocks)
    reasons = {**_REASONS, "STOP": "tool_calls"} if calls else _REASONS
    facts = {
        **rest_of(body, "candidates", *_NAMES),
        **rest_of(candidate, "content", "finishReason"),
        "id": body.get("responseId"),
        "model": body.get("modelVersion"),
    }
    usage = body.get("usageMetadata")
    counted = None if usage is None else read_usage(usage, _COUNTS)
    return make_meta(facts, word, reasons, counted, _read_logprobs(candidate))


def _read_logprobs(candidate: Mapping[str, Any]) -> tuple[LogProb, ...] | None:
    if _LOGPROBS not in candidate:
        return None
    result = object_of(candidate, _LOGPROBS, optional=True)
    tops = [top.get("candidates") for top in list_of(result, "topCandidates", path=_LOGPROBS)]
    chosen, *others = [
        [(token.get("token", ""), token.get("logProbability", 0.0)) for token in listed(tokens or (), None, _LOGPROBS)]
        for tokens in (result.get("chosenCandidates"), *tops)
    ]
    likely = zip_longest(chosen, others[: len(chosen)], fillvalue=())
    return tuple([LogProb(*token, top_logprobs=tuple([TopLogProb(*other) for other in top])) for token, top in likely])


# Errors


def check_error(body: Mapping[str, Any]) -> None:
    """Raise the error that a body or an event of a stream reports, if it reports one."""
    if "error" in body:
        error = object_of(body, "error", optional=True)
        kind, wait = read_details(error)
        raise read_failure(GEMINI, error, kind=kind, retry_after=wait)
    feedback = object_of(body, "promptFeedback", optional=True)
    blocked = text_of(feedback, "blockReason")
    if blocked:
        told = ": ".join([text for text in (blocked, text_of(feedback, "blockReasonMessage")) if text])
        raise ModelRequestError(f"it blocks the prompt: {told}", provider=GEMINI, code=blocked)


def read_details(error: Mapping[str, Any]) -> tuple[str, float | None]:
    """Return the code of an error about the API key, else an empty text; and the seconds that an error asks to wait."""
    details = list_of(error, "details", path="error")
    waits = [wait for detail in details if (wait := _wait(detail)) is not None]
    return _BAD_KEY if _BAD_KEY in [detail.get("reason") for detail in details] else "", waits[0] if waits else None


def _wait(detail: Mapping[str, Any]) -> float | None:
    """Return the seconds to wait that a detail of an error asks for, such as `34.5s`; `None` if it asks for none."""
    said = detail.get("retryDelay")
    number = said.removesuffix("s") if isinstance(said, str) else ""
    return float(number) if number.replace(".", "", 1).isdecimal() and number.isascii() else None


# Streams


class GeminiReader(StreamReader):
    """Reads one streamed reply.

    >>> from suture.codecs import get_codec
    >>> reader = get_codec("gemini").reader()
    >>> reader.feed({"candidates": [{"content": {"parts": [{"text": "At "}]}}]})
    [Delta(text='At ')]
    >>> reader.feed({"candidates": [{"content": {"parts": [{"text": "06:12."}]}, "finishReason": "STOP"}]})
    [Delta(text='06:12.')]
    >>> reader.finish().content_blocks
    (AssistantGenText(text='At 06:12.'),)
    """

    def __init__(self, codec: Any) -> None:
        super().__init__(codec)
        self._body: dict[str, Any] = {}
        self._candidate: dict[str, Any] = {}
        self._content: dict[str, Any] = {}
        self._parts: list[Mapping[str, Any] | list[str]] = []
        """The parts so far; a text or thought that may continue is a list of its kind and its pieces."""
        self._pieces: list[str] = []
        self._calls = 0
        self._logprobs: dict[str, list[Any]] = {}
        self._usage: dict[str, Any] = {}
        self._is_done = False
        self._open: dict[str, Any] | None = None
        """The call whose arguments come in pieces."""

    def add(self, event: Mapping[str, Any]) -> Iterator[Delta]:
        if event is DONE:
            self._is_done = True
            return
        body = normalise(expect(plain(event), Mapping, "an object", "event"))
        check_error(body)
        first = {name: self._body[name] for name in _NAMES if self._body.get(name)}
        self._body |= {**rest_of(body, "candidates", "usageMetadata"), **first}
        candidate = first_candidate(body)
        if candidate is not None:
            yield from self._take(candidate)
        if "usageMetadata" in body:  # each count is for the whole reply so far
            self._usage |= object_of(body, "usageMetadata")
            yield Delta(usage=read_usage(self._usage, _COUNTS))

    def fold(self) -> Mapping[str, Any] | None:
        if not self._candidate.get("finishReason") and not (self._is_done and self._parts):
            return None
        self._end_call()
        candidate = {**self._candidate, **({_LOGPROBS: self._logprobs} if self._logprobs else {})}
        parts = [_join(*part) if isinstance(part, list) else part for part in self._parts]
        if self._content or parts:
            candidate["content"] = {**self._content, "parts": parts}
        usage = {"usageMetadata": self._usage} if self._usage else {}
        return {**self._body, "candidates": [candidate], **usage}

    def _take(self, candidate: Mapping[str, Any]) -> Iterator[Delta]:
        """Take the first candidate of an event: its new parts, and the fields for the whole reply."""
        content = object_of(candidate, "content", optional=True)
        for name, tokens in object_of(candidate, _LOGPROBS, optional=True).items():
            if is_list(tokens):
                self._logprobs.setdefault(name, []).extend(tokens)
        self._candidate |= rest_of(candidate, "content", _LOGPROBS)
        self._content |= rest_of(content, "parts")
        for place, part in enumerate(list_of(content, "parts", path="content")):
            if "functionCall" in part:
                yield from self._add_call(part)
            elif "text" in part:
                yield from self._add_text(part, first=place == 0)
            else:
                self._parts.append(part)

    def _add_text(self, part: Mapping[str, Any], *, first: bool) -> list[Delta]:
        text, thought = part["text"], bool(part.get("thought"))
        if not isinstance(text, str):
            raise InputError(f"expected a string, found {type(text).__name__}", path="content.parts.text")
        key = "thought" if thought else "text"
        if rest_of(part, "text", "thought"):
            self._parts.append(part)
        elif first and self._pieces and self._pieces[0] == key and self._parts[-1] is self._pieces:
            self._pieces.append(text)
        else:
            self._pieces = [key, text]
            self._parts.append(self._pieces)
        if not text:
            return []
        return [Delta(reasoning=text) if thought else Delta(text)]

    def _add_call(self, part: Mapping[str, Any]) -> list[Delta]:
        call = object_of(part, "functionCall")
        if call.get("name") or self._open is None:
            ended = self._end_call()
            if not (call.get("willContinue") or call.get("partialArgs")):
                return [*ended, *self._show_call(part)] if call else ended
            if not call.get("name"):
                raise InputError("a piece of a call that was never begun", path="functionCall")
            self._open = {**part, "functionCall": {"args": {}, **rest_of(call, "partialArgs", "willContinue")}}
        else:
            ended = []
        for piece in list_of(call, "partialArgs"):
            put_argument(self._open["functionCall"]["args"], piece)
        return ended if call.get("willContinue") else [*ended, *self._end_call()]

    def _end_call(self) -> list[Delta]:
        """End the call whose arguments come in pieces, if there is one."""
        part, self._open = self._open, None
        return [] if part is None else self._show_call(part)

    def _show_call(self, part: Mapping[str, Any]) -> list[Delta]:
        """Take a call that is whole."""
        call = part["functionCall"]
        self._parts.append(part)
        place, self._calls = self._calls, self._calls + 1
        said = Delta(call_index=place, name=call.get("name") or "", arguments=argument_json(call.get("args")))
        return [replace(said, call_id=call.get("id") or mint(self._body.get("responseId") or "", place, said))]


def put_argument(arguments: dict[str, Any], piece: Mapping[str, Any]) -> None:
    """Put a piece of the arguments of a call at its path; a text there goes on.

    >>> made = {"a": [{"b": "New "}]}
    >>> put_argument(made, {"jsonPath": "$.a[0].b", "stringValue": "York"})
    >>> put_argument(made, {"jsonPath": "$.a[1]", "numberValue": 2.0})
    >>> made
    {'a': [{'b': 'New York'}, 2]}
    """
    steps = _STEP.findall(text_of(piece, "jsonPath"))
    path: list[Any] = [int(place) if place else name or key for name, place, key in steps]
    [value] = [piece[name] for name in _VALUES if name in piece] or [None]
    value = int(value) if isinstance(value, float) and value.is_integer() else value
    holder: Any = arguments
    for here, step in pairwise(path):
        holder = _hold(holder, here, [] if isinstance(step, int) else {})
    last = path[-1] if path else 0
    before = _hold(holder, last, None)
    holder[last] = before + value if isinstance(before, str) and isinstance(value, str) else value


def _hold(holder: Any, step: Any, empty: Any) -> Any:
    """Return what stands at a step of a path, `empty` if nothing does yet."""
    is_place = isinstance(step, int)
    if holder.__class__ is not (list if is_place else dict) or (is_place and step > len(holder)):
        raise InputError("a piece of arguments that fits nowhere", path="functionCall.partialArgs")
    if not is_place:
        holder.setdefault(step, empty)
    elif step == len(holder):
        holder.append(empty)
    return holder[step]


def _join(key: str, *pieces: str) -> dict[str, Any]:
    return {"text": "".join(pieces), **({"thought": True} if key == "thought" else {})}
