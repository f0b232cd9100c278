"""A strict provider on this machine: OpenAI's Chat Completions and Responses, and Anthropic's Messages.

It refuses with a 400 what those refuse, by their published rules and by nothing of ours, and else says its script. Of
Responses it keeps the conversation, and waits for the outputs of its calls. Nothing of a framework is imported here.
"""

import json
import re
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, cast

Reply = str | list[tuple[str, str, dict[str, Any]]]
"""What the model says: a text, or calls (id, name, arguments)."""


class StrictProvider(ThreadingHTTPServer):
    """Says its `replies` one after the other, then "Done."; `bodies` is what it accepted, `refused` why it did not."""

    daemon_threads = True

    def __init__(self, replies: Sequence[Reply]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.replies = list(replies)
        self.bodies: list[dict[str, Any]] = []
        self.refused: list[str] = []
        self.open_calls: dict[str, list[str]] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        """Return status and body of a reply."""
        api = next(name for name in ("chat/completions", "responses", "messages") if path.endswith(name))
        faults = {"chat/completions": _chat, "responses": self._responses, "messages": _messages}[api](body)
        if faults:
            self.refused += faults
            return 400, {"type": "error", "error": {"type": "invalid_request_error", "message": "; ".join(faults)}}
        self.bodies.append(body)
        reply: Reply = self.replies.pop(0) if self.replies else "Done."
        made = _WRITERS[api](reply, len(self.bodies))
        if api == "responses":
            self.open_calls[made["id"]] = [] if isinstance(reply, str) else [call[0] for call in reply]
        return 200, made

    def _responses(self, body: dict[str, Any]) -> list[str]:
        items = body["input"] if isinstance(body["input"], list) else []
        waiting = self.open_calls.get(body.get("previous_response_id") or "", [])
        calls = [{"type": "function_call", "call_id": each, "name": "kept", "arguments": "{}"} for each in waiting]
        faults = responses_faults([*calls, *items])
        return faults + [
            f"form: arguments are no text: {item.get('arguments')!r}"
            for item in items
            if item.get("type") == "function_call" and not isinstance(item.get("arguments"), str)
        ]


def _chat(body: dict[str, Any]) -> list[str]:
    return openai_chat_faults(body["messages"])


def _messages(body: dict[str, Any]) -> list[str]:
    faults = anthropic_faults(body["messages"])
    return [fault for fault in faults if "first message" not in fault]  # since 2024 it takes an assistant's first


def _write_chat(reply: Reply, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": reply if isinstance(reply, str) else None}
    if not isinstance(reply, str):
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": name, "arguments": json.dumps(arguments)}}
            for call_id, name, arguments in reply
        ]
    choice = {"index": 0, "message": message, "finish_reason": "stop" if isinstance(reply, str) else "tool_calls"}
    usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
    named = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": 1, "model": "gpt-strict"}
    return {**named, "choices": [choice], "usage": usage}


def _write_response(reply: Reply, number: int) -> dict[str, Any]:
    if isinstance(reply, str):
        content = [{"type": "output_text", "text": reply, "annotations": []}]
        output: list[Any] = [
            {"type": "message", "id": f"msg_{number}", "status": "completed", "role": "assistant", "content": content}
        ]
    else:
        output = [
            {
                "type": "function_call",
                "id": f"fc_{number}_{place}",
                "call_id": call_id,
                "name": name,
                "arguments": json.dumps(arguments),
                "status": "completed",
            }
            for place, (call_id, name, arguments) in enumerate(reply)
        ]
    named = {
        "id": f"resp_{number}",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": "gpt-strict",
    }
    usage = {
        "input_tokens": 1,
        "output_tokens": 1,
        "total_tokens": 2,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }
    return {**named, "output": output, "usage": usage, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def _write_message(reply: Reply, number: int) -> dict[str, Any]:
    content: list[Any] = [{"type": "text", "text": reply}] if isinstance(reply, str) else []
    if not isinstance(reply, str):
        content = [{"type": "tool_use", "id": i, "name": name, "input": arguments} for i, name, arguments in reply]
    reason = "end_turn" if isinstance(reply, str) else "tool_use"
    named = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "claude-strict"}
    usage = {"input_tokens": 1, "output_tokens": 1}
    return {**named, "content": content, "stop_reason": reason, "stop_sequence": None, "usage": usage}


_WRITERS = {"chat/completions": _write_chat, "responses": _write_response, "messages": _write_message}


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        status, made = cast("StrictProvider", self.server).answer(self.path.partition("?")[0], body)
        answer = json.dumps(made).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that the server has for it
        pass


@contextmanager
def strict_provider(*replies: Reply) -> Iterator[StrictProvider]:
    with StrictProvider(replies) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.shutdown()
            thread.join()


# What they refuse: each judge returns what is wrong, one line each, that begins with its kind


def unequal(wanted: Mapping[Any, int], given: Mapping[Any, int]) -> list[str]:
    faults = [f"pairing: call {each!r} has no result behind it" for each in wanted if wanted[each] > given.get(each, 0)]
    for each, number in given.items():
        if each not in wanted:
            faults.append(f"pairing: result {each!r} belongs to no call of its turn")
        elif number > wanted[each]:
            faults.append(f"pairing: call {each!r} has {number} results")
    return faults


def repeated(seen: Mapping[Any, int]) -> list[str]:
    return [f"ids: {number} calls have the id {each!r}" for each, number in seen.items() if each and number > 1]


def openai_chat_faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the `messages` of a Chat Completions request."""
    faults: list[str] = []
    wanted, given = Counter[Any](), Counter[Any]()
    for message in messages:
        if message["role"] == "tool":
            given[message.get("tool_call_id")] += 1
            continue
        faults += unequal(wanted, given)
        wanted, given = Counter(), Counter()
        if message["role"] == "assistant" and "tool_calls" in message:
            faults += _chat_call_faults(message["tool_calls"])
            wanted = Counter(call.get("id") for call in message["tool_calls"])
        elif message.get("content") in (None, []):
            faults.append(f"form: an empty message of {message['role']}")
    return faults + unequal(wanted, given)


def _chat_call_faults(calls: Sequence[Mapping[str, Any]]) -> list[str]:
    faults = [] if calls else ["form: tool_calls is empty"]
    for call in calls:
        identity, function = call.get("id"), call["function"]
        if not isinstance(identity, str) or not 1 <= len(identity) <= 40:
            faults.append(f"ids: {identity!r} is illegal")
        if not function.get("name"):
            faults.append("form: a call without a name")
        if not _is_object(function.get("arguments")):
            faults.append(f"form: arguments are no JSON object: {function.get('arguments')!r}")
    return faults + repeated(Counter(call.get("id") for call in calls))


def _is_object(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


def anthropic_faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the `messages` of a Messages request; neighbours of one role are one message there."""
    faults: list[str] = []
    seen: Counter[Any] = Counter()
    merged: list[tuple[str, list[Mapping[str, Any]]]] = []
    for message in messages:
        content: Any = message["content"]
        blocks: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else list(content)
        if merged and merged[-1][0] == message["role"]:
            merged[-1][1].extend(blocks)
        else:
            merged.append((message["role"], blocks))
    if merged and merged[0][0] != "user":
        faults.append("form: the first message is not the user's")
    wanted: Counter[Any] = Counter()
    for role, blocks in [*merged, ("end", [])]:
        faults += unequal(wanted, Counter(block["tool_use_id"] for block in _leading(blocks, "tool_result")))
        behind = blocks[len(_leading(blocks, "tool_result")) :]
        faults += [f"pairing: result {b['tool_use_id']!r} not first" for b in behind if b["type"] == "tool_result"]
        uses = [block for block in blocks if block["type"] == "tool_use"]
        if len(_leading(blocks[::-1], "tool_use")) != len(uses):
            faults.append("form: something stands behind a tool_use")
        wanted = Counter(use["id"] for use in uses)
        seen += wanted
        faults += _anthropic_block_faults(role, blocks)
    return faults + repeated(seen)


def _leading(blocks: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    number = next((index for index, block in enumerate(blocks) if block["type"] != kind), len(blocks))
    return list(blocks[:number])


def _anthropic_block_faults(role: str, blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    faults: list[str] = [] if blocks or role == "end" else [f"form: an empty message of {role}"]
    for block in blocks:
        if block["type"] == "tool_use":
            identity = block["id"]
            if not isinstance(identity, str) or not re.fullmatch(r"[a-zA-Z0-9_-]+", identity):
                faults.append(f"ids: {identity!r} is illegal")
            if not block.get("name"):
                faults.append("form: a call without a name")
            if not isinstance(block.get("input"), dict):
                faults.append(f"form: the input is no object: {block.get('input')!r}")
        elif block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
            faults.append("form: an error without content")
        elif block["type"] == "text" and not block["text"]:
            faults.append("form: an empty text")
    return faults


def responses_faults(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the `input` of a Responses request: a call has one output, somewhere behind it."""
    faults: list[str] = []
    opened: Counter[Any] = Counter()
    given: Counter[Any] = Counter()
    for item in items:
        if item.get("type") == "function_call":
            opened[item.get("call_id")] += 1
            if not isinstance(item.get("call_id"), str) or not 1 <= len(item["call_id"]) <= 64:
                faults.append(f"ids: {item.get('call_id')!r} is illegal")
            if not item.get("name"):
                faults.append("form: a call without a name")
        elif item.get("type") == "function_call_output":
            given[item.get("call_id")] += 1
            if given[item.get("call_id")] > opened[item.get("call_id")]:
                faults.append(f"pairing: output {item.get('call_id')!r} follows no call")
    faults += [f"pairing: call {each!r} has no output" for each in opened if opened[each] > given[each]]
    return faults + repeated(opened)
