"""What a server of Chat Completions says: bodies of responses, such bodies cut into chunks, and what a reader makes."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from suture.codecs import get_codec
from suture.messages import AgenticMessage, Delta, ResponseMeta
from tests.codecs.openai_chat.samples import CALL, MADE, made

CODEC = get_codec("openai-chat")
END = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
NOTE = {"type": "url_citation", "url_citation": {"url": "https://example.com", "start_index": 0, "end_index": 2}}
TOKEN = {
    "token": "At",
    "logprob": -0.5,
    "bytes": [65, 116],
    "top_logprobs": [{"token": "At", "logprob": -0.5, "bytes": None}],
}
COUNTS = {"prompt_tokens": 90, "completion_tokens": 7, "total_tokens": 97}


def body(message: Any, choice: Any = None, **fields: Any) -> dict[str, Any]:
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1778031211,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop", **(choice or {})}],
        **fields,
    }


BODIES: dict[str, dict[str, Any]] = {
    "fields of one server": body(
        made("At 06:12."),
        {"native_finish_reason": "end_turn", "seed": 7},
        service_tier="default",
        provider="Azure",
        usage={**COUNTS, "cost": 0.5, "prompt_tokens_details": {"cached_tokens": 80, "audio_tokens": 0}},
    ),
    "what it cost": body(made("At 06:12."), usage=COUNTS),
    "likely tokens": body(made("At"), {"logprobs": {"content": [TOKEN]}}),
    "likely tokens of a refusal": body(made(refusal="No."), {"logprobs": {"content": [], "refusal": [TOKEN]}}),
    "a citation": body(made("At 06:12.", annotations=[NOTE])),
    "no citation": body(made("At 06:12.", annotations=[])),
    "a citation of nothing": body(made(tool_calls=[CALL], annotations=[NOTE])),
    "a sound": body(made(audio={"id": "audio_1", "data": "AAAA", "expires_at": 7, "transcript": "Six."})),
    "another word for the end": body(made("At 06:12."), {"finish_reason": "eos"}),
    "a word that nobody knows": body(made("At 06:12."), {"finish_reason": "some_reason"}),
    **{name: body(item) for name, (item, _) in MADE.items() if name not in {"a sound", "an empty thought"}},
}


def write_reply(message: AgenticMessage) -> dict[str, Any]:
    """Return the body of a response that says `message`."""
    items = get_codec("openai-chat", field="reasoning_content").encode_messages([message]).payload
    said = next((item for item in items if item["role"] == "assistant"), made(""))
    meta = message.response_meta or ResponseMeta()
    fields: dict[str, Any] = {"id": "", "model": ""}
    if meta.usage is not None:
        fields["usage"] = {name: getattr(meta.usage, name) for name in COUNTS}
        fields["usage"]["prompt_tokens_details"] = {"cached_tokens": meta.usage.cached_tokens}
    return body(said, {"finish_reason": meta.finish_reason or "stop"}, **fields)


def write_stream(whole: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the chunks of a stream that says what `whole`, the body of a response, says."""
    head = {name: value for name, value in whole.items() if name not in {"choices", "usage"}}
    head["object"] = "chat.completion.chunk"
    (choice,) = whole["choices"]
    rest = {name: value for name, value in choice.items() if name != "message"}
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in _deltas(choice["message"])]
    events = [{**head, "choices": [one]} for one in [*choices, {**rest, "delta": {}}]]
    return [*events, {**head, "choices": [], "usage": whole["usage"]}] if "usage" in whole else events


def frame(event: Mapping[str, Any]) -> bytes:
    """Return one event as the bytes of a stream."""
    return f"data: {json.dumps(event)}\n\n".encode()


def _deltas(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for name, value in message.items():
        if name == "tool_calls":
            yield from ({name: [piece]} for index, call in enumerate(value) for piece in _pieces(index, call))
        elif isinstance(value, str) and name != "role":
            yield from ({name: value[start : start + 32]} for start in range(0, len(value), 32))
        elif value is not None:
            yield {name: value}


def _pieces(index: int, call: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    kind = call["type"]
    said = {"function": "arguments", "custom": "input"}.get(kind)
    if said is None:
        yield {"index": index, **call}
        return
    yield {**call, "index": index, kind: {**call[kind], said: ""}}
    text = call[kind][said]
    yield from ({"index": index, kind: {said: text[start : start + 32]}} for start in range(0, len(text), 32))


def chunk(**delta: Any) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def piece(arguments: Any = "", name: Any = None, **marks: Any) -> dict[str, Any]:
    function = {"arguments": arguments} if name is None else {"name": name, "arguments": arguments}
    return {"type": "function", "function": function, **marks}


def read(*events: dict[str, Any]) -> tuple[AgenticMessage, list[Delta]]:
    reader = CODEC.reader()
    deltas = [delta for event in (*events, END) for delta in reader.feed(event)]
    return reader.finish(), deltas
