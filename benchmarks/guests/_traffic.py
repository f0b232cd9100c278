"""What goes through a proxy: the histories as each provider's own SDK sends them, and replies, whole and streamed."""

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from _apis import Api, Chat, Gemini, Messages, Responses
from _cases import CASES, PROMPT, Case
from _judge import PROVIDERS, RIGHT, judge

__all__ = ["APIS", "CASES", "RIGHT", "Interface", "find_interface", "judged", "write_history"]

SAYS = "It is sunny."


class Interface(NamedTuple):
    """One provider's interface: what its requests end in, whose rules hold, and how it is asked."""

    api: Api
    provider: str
    path: str
    """What stands in the path of a request."""
    base: str = ""
    """What follows the address of the server in that of the interface."""

    def reply(self, *, stream: bool) -> tuple[bytes, bytes]:
        """Return the type and the body of a reply."""
        if not stream:
            return b"application/json", json.dumps(self.api.reply(SAYS)).encode()
        return b"text/event-stream", b"".join(_STREAMS[self.path](self.api.reply(SAYS)))

    def ask(self, url: str, history: list[Any], *, stream: bool) -> str:
        """Ask with the provider's Python SDK; return what it says."""
        with self.api.make(base_url=url + self.base) as client:
            return "".join(_ASK[self.path](client, history)) if stream else self.api.ask(client, history).text


def _event(name: str, data: Any) -> bytes:
    head = f"event: {name}\n" if name else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def _stream_chat(reply: Any) -> Iterator[bytes]:
    told = {**reply, "object": "chat.completion.chunk"}
    for piece in (SAYS[:5], SAYS[5:]):
        yield _event("", {**told, "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}}]})
    yield _event("", {**told, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]})
    yield b"data: [DONE]\n\n"


def _stream_responses(reply: Any) -> Iterator[bytes]:
    place = {"item_id": "msg_1", "output_index": 0, "content_index": 0}
    created = {**reply, "status": "in_progress", "output": []}
    yield _event("response.created", {"type": "response.created", "sequence_number": 0, "response": created})
    delta = {"type": "response.output_text.delta", **place, "delta": SAYS, "logprobs": [], "sequence_number": 1}
    yield _event("response.output_text.delta", delta)
    yield _event("response.completed", {"type": "response.completed", "sequence_number": 2, "response": reply})


def _stream_messages(reply: Any) -> Iterator[bytes]:
    started = {**reply, "content": [], "stop_reason": None}
    yield _event("message_start", {"type": "message_start", "message": started})
    block = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}}
    yield _event("content_block_start", block)
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SAYS}}
    yield _event("content_block_delta", delta)
    yield _event("content_block_stop", {"type": "content_block_stop", "index": 0})
    ended = {"stop_reason": "end_turn", "stop_sequence": None}
    yield _event("message_delta", {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 3}})
    yield _event("message_stop", {"type": "message_stop"})


def _stream_contents(reply: Any) -> Iterator[bytes]:
    yield _event("", reply)


def _ask_chat(client: Any, history: list[Any]) -> Iterator[str]:
    for chunk in client.chat.completions.create(model="fake", messages=history, stream=True):
        yield chunk.choices[0].delta.content or ""


def _ask_responses(client: Any, history: list[Any]) -> Iterator[str]:
    for event in client.responses.create(model="fake", input=history, stream=True):
        if event.type == "response.output_text.delta":
            yield event.delta


def _ask_messages(client: Any, history: list[Any]) -> Iterator[str]:
    with client.messages.stream(model="fake-claude", max_tokens=100, messages=history) as stream:
        yield from stream.text_stream


def _ask_contents(client: Any, history: list[Any]) -> Iterator[str]:
    for chunk in client.models.generate_content_stream(model="fake-gemini", contents=history):
        yield chunk.text or ""


APIS = {
    "chat": Interface(Chat(), "OpenAI, Chat Completions", "/chat/completions", "/v1"),
    "responses": Interface(Responses(), "OpenAI, Responses", "/responses", "/v1"),
    "messages": Interface(Messages(), "Anthropic", "/messages"),
    "contents": Interface(Gemini(), "Gemini", "enerateContent"),
}
_PATHS = [each.path for each in APIS.values()]
_STREAMS = dict(zip(_PATHS, (_stream_chat, _stream_responses, _stream_messages, _stream_contents), strict=True))
_ASK = dict(zip(_PATHS, (_ask_chat, _ask_responses, _ask_messages, _ask_contents), strict=True))


def find_interface(path: str) -> Interface:
    """Return the interface that a request is for."""
    return next(each for each in APIS.values() if each.path in path)


def write_history(interface: Interface, case: Case) -> list[Any]:
    """Return a history as the interface has it, with the next prompt at its end."""
    return interface.api.write([*case.steps, ("user", PROMPT)])


def judged(interface: Interface, case: Case, body: Any) -> str:
    """Return what becomes of a request."""
    return judge(interface.api.read(body), case, PROVIDERS[interface.provider])
