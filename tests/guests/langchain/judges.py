"""Judges what a model is sent, by the published rules of the providers and by nothing of ours.

Each judge returns what is wrong, one line each; nothing when all is well. A line begins with its kind: "pairing" (a
call without its one result right behind it, a result without its call), "ids" (empty, repeated or illegal ids) or
"form" (what else the provider refuses in calls and results).
"""

import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

BLOCKS = {"tool_use": "id", "tool_call": "id", "function_call": "call_id", "invalid_tool_call": "id"}
"""Content blocks that are calls, and where their ids are."""

STRICT_ID = re.compile(r"[A-Za-z0-9_-]{1,40}")
"""What OpenAI (at most 40 characters) and Anthropic (these characters) both take."""


def kinds(faults: Iterable[str]) -> set[str]:
    return {fault.partition(":")[0] for fault in faults}


def calls_of(message: BaseMessage) -> list[tuple[Any, str]]:
    """Return (id, name) of each call of a message; a content block that repeats one of its `tool_calls` is that one."""
    if not isinstance(message, AIMessage):
        return []
    calls = [(call["id"], call["name"] or "") for call in [*message.tool_calls, *message.invalid_tool_calls]]
    known = {each for each, _ in calls}
    blocks: list[Any] = message.content if isinstance(message.content, list) else []
    for block in blocks:
        if isinstance(block, dict) and block.get("type") in BLOCKS:
            identity = block.get(BLOCKS[block["type"]])
            if identity not in known:
                calls.append((identity, block.get("name") or ""))
    return calls


def groups(messages: Sequence[BaseMessage]) -> tuple[list[tuple[BaseMessage, list[ToolMessage]]], list[ToolMessage]]:
    """Return each turn with calls and the results right behind it, and the results that stand behind no such turn."""
    held: list[tuple[BaseMessage, list[ToolMessage]]] = []
    stray: list[ToolMessage] = []
    open_group: list[ToolMessage] | None = None
    for message in messages:
        if isinstance(message, ToolMessage):
            (stray if open_group is None else open_group).append(message)
            continue
        open_group = None
        if calls_of(message):
            open_group = []
            held.append((message, open_group))
    return held, stray


def joined(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the messages with the calls of neighbours as one turn, which is what they are until they are sent."""
    made: list[BaseMessage] = []
    for message in messages:
        calls = calls_of(message)
        before = calls_of(made[-1]) if made and calls else []
        if before:
            both = [{"id": identity, "name": name, "args": {}} for identity, name in [*before, *calls]]
            made[-1] = AIMessage("", tool_calls=both)
        else:
            made.append(message)
    return made


def message_faults(messages: Sequence[BaseMessage], *, strict_ids: bool = False) -> list[str]:
    """Return what OpenAI chat or Anthropic would refuse in these messages."""
    faults: list[str] = []
    seen: Counter[Any] = Counter()
    held, stray = groups(messages)
    faults += [f"pairing: result {message.tool_call_id!r} follows no call" for message in stray]
    for message, results in held:
        wanted = Counter(identity for identity, _ in calls_of(message))
        given = Counter(result.tool_call_id for result in results)
        seen += wanted
        faults += _unequal(wanted, given)
        for identity in wanted:
            if not identity:
                faults.append(f"ids: a call has the id {identity!r}")
            elif strict_ids and not STRICT_ID.fullmatch(identity):
                faults.append(f"ids: {identity!r} is illegal")
    return [*faults, *_repeated(seen)]


def _unequal(wanted: Mapping[Any, int], given: Mapping[Any, int]) -> list[str]:
    faults = [f"pairing: call {each!r} has no result behind it" for each in wanted if wanted[each] > given.get(each, 0)]
    for each, number in given.items():
        if each not in wanted:
            faults.append(f"pairing: result {each!r} belongs to no call of its turn")
        elif number > wanted[each]:
            faults.append(f"pairing: call {each!r} has {number} results")
    return faults


def _repeated(seen: Mapping[Any, int]) -> list[str]:
    return [f"ids: {number} calls have the id {each!r}" for each, number in seen.items() if each and number > 1]


def openai_chat_faults(messages: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return what is wrong with the `messages` of a Chat Completions request."""
    faults: list[str] = []
    wanted, given = Counter[Any](), Counter[Any]()
    for message in messages:
        if message["role"] == "tool":
            given[message.get("tool_call_id")] += 1
            continue
        faults += _unequal(wanted, given)
        wanted, given = Counter(), Counter()
        if message["role"] == "assistant" and "tool_calls" in message:
            faults += _chat_call_faults(message["tool_calls"])
            wanted = Counter(call.get("id") for call in message["tool_calls"])
        elif message.get("content") in (None, []):
            faults.append(f"form: an empty message of {message['role']}")
    return faults + _unequal(wanted, given)


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
    repeated = Counter(call.get("id") for call in calls)
    return faults + _repeated(repeated)


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
        faults += _unequal(wanted, Counter(block["tool_use_id"] for block in _leading(blocks, "tool_result")))
        behind = blocks[len(_leading(blocks, "tool_result")) :]
        faults += [f"pairing: result {b['tool_use_id']!r} not first" for b in behind if b["type"] == "tool_result"]
        uses = [block for block in blocks if block["type"] == "tool_use"]
        if len(_leading(blocks[::-1], "tool_use")) != len(uses):
            faults.append("form: something stands behind a tool_use")
        wanted = Counter(use["id"] for use in uses)
        seen += wanted
        faults += _anthropic_block_faults(role, blocks)
    return faults + _repeated(seen)


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
    return faults + _repeated(opened)
