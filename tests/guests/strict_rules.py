"""What the providers refuse, by their published rules and in their own words. Nothing of ours is asked.

Each judge returns what is wrong with a history, one line each, that begins with its kind: "pairing" (a call without its
one result where it must be, a result without its call), "ids" (empty, repeated or illegal ones) or "form" (the rest).
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple


class Words(NamedTuple):
    """How a provider says that calls and results do not match; `{}` is the id."""

    missing: str = "call {!r} has no result behind it"
    stray: str = "result {!r} belongs to no call of its turn"
    double: str = "call {!r} has several results"


_PLAIN = Words()


def unequal(wanted: Mapping[Any, int], given: Mapping[Any, int], words: Words = _PLAIN) -> list[str]:
    faults = [words.missing.format(each) for each in wanted if wanted[each] > given.get(each, 0)]
    for each, number in given.items():
        if each not in wanted:
            faults.append(words.stray.format(each))
        elif number > wanted[each]:
            faults.append(words.double.format(each))
    return [f"pairing: {fault}" for fault in faults]


def repeated(seen: Mapping[Any, int], words: str = "several calls have the id {!r}") -> list[str]:
    return [f"ids: {words.format(each)}" for each, number in seen.items() if each and number > 1]


_CHAT = Words(
    "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "
    "The following tool_call_ids did not have response messages: {}",
    "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'. ({})",
    "Invalid parameter: 'tool_call_id' of '{}' was answered before.",
)


def openai_chat_faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the `messages` of a Chat Completions request."""
    faults: list[str] = []
    wanted, given = Counter[Any](), Counter[Any]()
    for message in messages:
        if message["role"] == "tool":
            given[message.get("tool_call_id")] += 1
            continue
        faults += unequal(wanted, given, _CHAT)
        wanted, given = Counter(), Counter()
        if message["role"] == "assistant" and "tool_calls" in message:
            faults += _chat_call_faults(message["tool_calls"])
            wanted = Counter(call.get("id") for call in message["tool_calls"])
        elif message.get("content") in (None, []):
            faults.append(f"form: Invalid value for 'content' of {message['role']}: expected a string, got null.")
    return faults + unequal(wanted, given, _CHAT)


def _chat_call_faults(calls: Sequence[Mapping[str, Any]]) -> list[str]:
    faults = [] if calls else ["form: Invalid 'tool_calls': empty array. Expected an array with minimum length 1."]
    for call in calls:
        function = call["function"]
        faults += _length_faults("messages.tool_calls.id", call.get("id"), 40)
        if not function.get("name"):
            faults.append("form: Invalid 'function.name': empty string. Expected a string with minimum length 1.")
        if not _is_object(function.get("arguments")):
            faults.append(f"form: arguments must be a valid JSON object string: {function.get('arguments')!r}")
    return faults + repeated(Counter(call.get("id") for call in calls), "Duplicate tool call id {}")


def _length_faults(place: str, identity: Any, limit: int) -> list[str]:
    if isinstance(identity, str) and 1 <= len(identity) <= limit:
        return []
    size = len(identity) if isinstance(identity, str) else None
    kind = "too long. Expected a string with maximum" if size else "empty. Expected a string with"
    return [f"ids: Invalid '{place}': string {kind} length {limit}, but got a string with length {size} instead."]


def _is_object(text: Any) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (TypeError, ValueError):
        return False


_ANTHROPIC = Words(
    "`tool_use` ids were found without `tool_result` blocks immediately after: {}. "
    "Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
    "unexpected `tool_use_id` found in `tool_result` blocks: {}. "
    "Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
    "each tool_use must have a single result. Found multiple `tool_result` blocks with id: {}",
)


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
    wanted: Counter[Any] = Counter()
    for role, blocks in [*merged, ("end", [])]:
        given = Counter(block["tool_use_id"] for block in _leading(blocks, "tool_result"))
        faults += unequal(wanted, given, _ANTHROPIC)
        behind = blocks[len(_leading(blocks, "tool_result")) :]
        faults += [
            f"pairing: {_ANTHROPIC.stray.format(b['tool_use_id'])}" for b in behind if b["type"] == "tool_result"
        ]
        uses = [block for block in blocks if block["type"] == "tool_use"]
        if len(_leading(blocks[::-1], "tool_use")) != len(uses):
            faults.append(f"form: {_ANTHROPIC.missing.format(uses[0]['id'])}")
        wanted = Counter(use["id"] for use in uses)
        seen += wanted
        faults += _anthropic_block_faults(role, blocks)
    return faults + repeated(seen, "`tool_use` ids must be unique: {}")


def _leading(blocks: Sequence[Mapping[str, Any]], kind: str) -> list[Mapping[str, Any]]:
    number = next((index for index, block in enumerate(blocks) if block["type"] != kind), len(blocks))
    return list(blocks[:number])


def _anthropic_block_faults(role: str, blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    faults: list[str] = [] if blocks or role == "end" else [f"form: {role} messages must have non-empty content"]
    for block in blocks:
        if block["type"] == "tool_use":
            identity = block["id"]
            if not isinstance(identity, str) or not re.fullmatch(r"[a-zA-Z0-9_-]+", identity):
                faults.append(f"ids: tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$': {identity!r}")
            if not block.get("name"):
                faults.append("form: tool_use.name: String should have at least 1 character")
            if not isinstance(block.get("input"), dict):
                faults.append(f"form: tool_use.input: Input should be a valid dictionary: {block.get('input')!r}")
        elif block["type"] == "tool_result" and block.get("is_error") and not block.get("content"):
            faults.append("form: tool_result: content cannot be empty if `is_error` is true")
        elif block["type"] == "text" and not block["text"]:
            faults.append("form: text content blocks must be non-empty")
    return faults


def responses_faults(items: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the `input` of a Responses request: a call has one output of its kind behind it."""
    faults: list[str] = []
    opened: Counter[Any] = Counter()
    given: Counter[Any] = Counter()
    for place, item in enumerate(items):
        kind, identity = item.get("type") or "", item.get("call_id")
        key = kind.partition("_")[0], identity
        if kind in {"function_call", "shell_call"}:
            opened[key] += 1
            faults += _length_faults(f"input[{place}].call_id", identity, 64)
        if kind == "function_call":
            if not item.get("name"):
                faults.append(f"form: Invalid 'input[{place}].name': empty string.")
            if not isinstance(item.get("arguments"), str):
                faults.append(f"form: Invalid type for 'input[{place}].arguments': expected a string, got an object.")
        elif kind in {"function_call_output", "shell_call_output"}:
            given[key] += 1
            if given[key] > opened[key]:
                faults.append(f"pairing: No tool call found for {key[0]} call output with call_id {identity}.")
    faults += [
        f"pairing: No tool output found for {kind} call {identity}."
        for kind, identity in opened
        if opened[kind, identity] > given[kind, identity]
    ]
    return faults + repeated(Counter(identity for _, identity in opened.elements()), "Duplicate call for call_id {}")


_PARITY = (
    "Please ensure that the number of function response parts is equal to the number of function call parts of the "
    "function call turn."
)


def gemini_faults(contents: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the `contents` of a request to Gemini, which tells results apart by name and order."""
    faults = [] if contents else ["form: GenerateContentRequest.contents: contents is not specified"]
    before: Mapping[str, Any] | None = None
    for content in [*contents, None]:
        called = [part["functionCall"]["name"] for part in _parts(before) if "functionCall" in part]
        given = [part["functionResponse"]["name"] for part in _parts(content) if "functionResponse" in part]
        if called and not given:
            faults.append(f"pairing: {_PARITY}")
        elif given and not called:
            faults.append(
                "pairing: Please ensure that function response turn comes immediately after a function call turn."
            )
        elif given != called:
            faults.append(f"pairing: {_PARITY}")
        calls = any("functionCall" in part for part in _parts(content))
        if calls and (before is None or before.get("role") == "model"):
            faults.append(
                "form: Please ensure that function call turn comes immediately after a user turn or after a function "
                "response turn."
            )
        if content is not None and (not _parts(content) or any(part in ({}, {"text": ""}) for part in _parts(content))):
            faults.append("form: Unable to submit request because it must have a text parameter.")
        before = content
    if contents and contents[-1].get("role") == "model":
        faults.append("form: Please ensure that single turn requests end with a user role.")
    return faults


def _parts(content: Mapping[str, Any] | None) -> Sequence[Mapping[str, Any]]:
    return (content or {}).get("parts") or ()


_BEDROCK = Words(
    "Expected toolResult blocks at messages.content for the following Ids: {}",
    "The number of toolResult blocks at messages.content exceeds the number of toolUse blocks of previous turn. ({})",
    "The toolResult blocks at messages.content contain duplicate Ids: {}",
)


def bedrock_faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the `messages` of a Converse request."""
    faults: list[str] = []
    seen: Counter[Any] = Counter()
    wanted: Counter[Any] = Counter()
    previous = "assistant"
    for message in [*messages, {"role": "end", "content": []}]:
        role, blocks = message["role"], message["content"]
        results = [block["toolResult"] for block in blocks if "toolResult" in block]
        given = Counter(result["toolUseId"] for result in results)
        faults += unequal(wanted, given, _BEDROCK)
        if role == previous:
            faults.append(
                f"form: A conversation must alternate between user and assistant roles. Make sure the conversation "
                f"alternates between user and assistant roles and try again. ({role})"
            )
        if any("toolResult" in block for block in blocks[len(results) :]):
            faults.append("pairing: Did not find the `tool_result` block(s) at the beginning of this message.")
        wanted = Counter(block["toolUse"]["toolUseId"] for block in blocks if "toolUse" in block)
        seen += wanted
        faults += _bedrock_block_faults(blocks)
        if not blocks and role != "end":
            faults.append(f"form: The content field in the Message object of {role} is empty.")
        previous = role
    return faults + repeated(seen, "`tool_use` ids must be unique: {}")


def _bedrock_block_faults(blocks: Sequence[Mapping[str, Any]]) -> list[str]:
    faults: list[str] = []
    for block in blocks:
        match block:
            case {"toolUse": use} if not re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", use["toolUseId"]):
                faults.append(
                    f"ids: Value '{use['toolUseId']}' at 'toolUseId' failed to satisfy constraint: Member must satisfy "
                    "regular expression pattern: [a-zA-Z0-9_-]+"
                )
            case {"toolResult": {"status": "error", "content": []}}:
                faults.append("form: The content field at toolResult cannot be empty when status value is error.")
            case {"text": text} if not text.strip():
                faults.append("form: The text field in the ContentBlock object is blank.")
            case _:
                pass
    return faults


JUDGES: dict[str, tuple[str, Callable[[Sequence[Mapping[str, Any]]], list[str]]]] = {
    "chat": ("messages", openai_chat_faults),
    "responses": ("input", responses_faults),
    "messages": ("messages", anthropic_faults),
    "gemini": ("contents", gemini_faults),
    "bedrock": ("messages", bedrock_faults),
}
"""Where a request has its history, and who judges it."""
