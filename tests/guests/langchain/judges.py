"""Judges what a model is sent, by the published rules of the providers and by nothing of ours.

Each judge returns what is wrong, one line each; nothing when all is well. A line begins with its kind: "pairing" (a
call without its one result right behind it, a result without its call), "ids" (empty, repeated or illegal ids) or
"form" (what else the provider refuses in calls and results).
"""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage

from tests.guests.strict_rules import repeated, unequal

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
        faults += unequal(wanted, given)
        for identity in wanted:
            if not identity:
                faults.append(f"ids: a call has the id {identity!r}")
            elif strict_ids and not STRICT_ID.fullmatch(identity):
                faults.append(f"ids: {identity!r} is illegal")
    return [*faults, *repeated(seen)]
