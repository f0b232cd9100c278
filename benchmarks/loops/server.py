"""Five providers on 127.0.0.1: each answers every request with a stream that asks for one call more, then with a text.

It remembers nothing. How many steps there shall be is in the model's name (`steps-400`), how many were made is how
many results the request holds. So a client that does not send its whole history never comes to an end.
"""

import json
import re
import sys
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from struct import pack
from threading import Thread
from typing import Any
from zlib import crc32

from _contest import ANSWER, call

Event = dict[str, Any]
_USAGE = {"input_tokens": 1, "output_tokens": 1}


class Call:
    """What the model asks for."""

    def __init__(self, number: int) -> None:
        self.id, self.input = call(number)
        self.arguments = json.dumps(self.input)


def _chat(made: Call | None) -> Iterator[Event]:
    chunk = {"id": "chat_1", "object": "chat.completion.chunk", "created": 0, "model": "fake"}
    delta: Event = {"role": "assistant", "content": ANSWER}
    if made:
        function = {"name": "step", "arguments": made.arguments}
        calls = [{"index": 0, "id": made.id, "type": "function", "function": function}]
        delta = {"role": "assistant", "content": None, "tool_calls": calls}
    finish = "tool_calls" if made else "stop"
    yield {**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}
    yield {**chunk, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}
    yield {**chunk, "choices": [], "usage": {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}}


def _responses(made: Call | None) -> Iterator[Event]:
    response = {"id": "resp_1", "object": "response", "created_at": 0, "model": "fake", "status": "in_progress"}
    response |= {"output": [], "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    part = {"type": "output_text", "text": ANSWER, "annotations": []}
    item: Event = {"id": "msg_1", "type": "message", "role": "assistant", "content": [part], "status": "completed"}
    begun: Event = {**item, "content": [], "status": "in_progress"}
    where = {"output_index": 0, "item_id": item["id"]}
    delta: Event = {"type": "response.output_text.delta", "content_index": 0, "delta": ANSWER, "logprobs": [], **where}
    if made:
        item = {"id": f"fc_{made.id}", "type": "function_call", "call_id": made.id, "name": "step"}
        item["status"] = "completed"
        where["item_id"] = item["id"]
        begun, item = {**item, "arguments": "", "status": "in_progress"}, {**item, "arguments": made.arguments}
        delta = {"type": "response.function_call_arguments.delta", "delta": made.arguments, **where}
    usage = {**_USAGE, "total_tokens": 2, "input_tokens_details": {"cached_tokens": 0}}
    usage |= {"output_tokens_details": {"reasoning_tokens": 0}}
    events: list[Event] = [
        {"type": "response.created", "response": response},
        {"type": "response.output_item.added", "output_index": 0, "item": begun},
        delta,
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {
            "type": "response.completed",
            "response": {**response, "status": "completed", "output": [item], "usage": usage},
        },
    ]
    yield from ({**event, "sequence_number": number} for number, event in enumerate(events))


def _messages(made: Call | None) -> Iterator[Event]:
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "fake", "content": [], "usage": _USAGE}
    block: Event = {"type": "text", "text": ""}
    delta: Event = {"type": "text_delta", "text": ANSWER}
    if made:
        block = {"type": "tool_use", "id": made.id, "name": "step", "input": {}}
        delta = {"type": "input_json_delta", "partial_json": made.arguments}
    reason = {"stop_reason": "tool_use" if made else "end_turn", "stop_sequence": None}
    yield {"type": "message_start", "message": {**message, "stop_reason": None, "stop_sequence": None}}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    yield {"type": "message_delta", "delta": reason, "usage": {"output_tokens": 1}}
    yield {"type": "message_stop"}


def _gemini(made: Call | None) -> Iterator[Event]:
    part = {"functionCall": {"id": made.id, "name": "step", "args": made.input}} if made else {"text": ANSWER}
    candidate = {"index": 0, "finishReason": "STOP", "content": {"role": "model", "parts": [part]}}
    usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
    yield {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "fake", "responseId": "r_1"}


def _converse(made: Call | None) -> Iterator[Event]:
    yield {"type": "messageStart", "role": "assistant"}
    if made:
        start = {"toolUse": {"toolUseId": made.id, "name": "step"}}
        yield {"type": "contentBlockStart", "contentBlockIndex": 0, "start": start}
    delta = {"toolUse": {"input": made.arguments}} if made else {"text": ANSWER}
    yield {"type": "contentBlockDelta", "contentBlockIndex": 0, "delta": delta}
    yield {"type": "contentBlockStop", "contentBlockIndex": 0}
    yield {"type": "messageStop", "stopReason": "tool_use" if made else "end_turn"}
    usage = {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2}
    yield {"type": "metadata", "usage": usage, "metrics": {"latencyMs": 1}}


def _lines(event: Event, *, named: bool = False) -> bytes:
    name = f"event: {event['type']}\n" if named else ""
    return f"{name}data: {json.dumps(event)}\n\n".encode()


def _frame(event: Event) -> bytes:
    about = {":message-type": "event", ":event-type": event.pop("type"), ":content-type": "application/json"}
    headers = b"".join(
        pack(">B", len(name)) + name.encode() + pack(">BH", 7, len(value)) + value.encode()
        for name, value in about.items()
    )
    payload = json.dumps(event).encode()
    prelude = pack(">II", 16 + len(headers) + len(payload), len(headers))
    whole = prelude + pack(">I", crc32(prelude)) + headers + payload
    return whole + pack(">I", crc32(whole))


_PROVIDERS: dict[str, tuple[Any, Any, bytes, bytes]] = {
    "chat/completions": (_chat, _lines, b'"tool_call_id"', b"data: [DONE]\n\n"),
    "responses": (_responses, partial(_lines, named=True), b'"function_call_output"', b""),
    "messages": (_messages, partial(_lines, named=True), b'"tool_result"', b""),
    "streamGenerateContent": (_gemini, _lines, b'"functionResponse"', b""),
    "converse-stream": (_converse, _frame, b'"toolResult"', b""),
}
"""By the end of the path: the events, how they are written, what a result is known by, and what ends the stream."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = -1  # head and body leave in one piece
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        path = self.path.partition("?")[0]
        events, write, mark, end = next(value for key, value in _PROVIDERS.items() if path.endswith(key))
        steps = re.search(rb"steps-(\d+)", path.encode() + body)
        number = body.count(mark)
        made = Call(number) if steps is not None and number < int(steps[1]) else None
        answer = b"".join(map(write, events(made))) + end
        self.send_response(200)
        self.send_header(
            "Content-Type", "application/vnd.amazon.eventstream" if write is _frame else "text/event-stream"
        )
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


def _main() -> None:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    print(json.dumps({"version": sys.version}), flush=True)
    for _ in sys.stdin:
        print(json.dumps({"url": f"http://127.0.0.1:{server.server_port}"}), flush=True)


if __name__ == "__main__":
    _main()
