"""What the tests of `Compaction` in an agent share."""

from collections.abc import Callable, Sequence
from typing import Any

from suture import Message, ToolCall, tool
from suture.tokens import CharacterCounter

COUNTER = CharacterCounter()


def long_text(label: str) -> str:
    return f"{label} says so. " * 20


@tool
async def look(label: str) -> str:
    """Look something up."""
    return long_text(label)


def asking(count: int, words: int = 2) -> Callable[[Sequence[Message]], Message | str]:
    """Return what looks as many things up, one a turn, however many turns are still in the history."""
    turns = 0

    def reply(messages: Sequence[Message]) -> Message | str:
        nonlocal turns
        last = messages[-1]
        if last.role == "user" and "summar" in last.content[:200].lower() and "conversation" in last.content:
            return "They looked things up."
        seen = [call.arguments for message in messages for call in message.tool_calls]
        number = max([turns, *[int(arguments.split("thing ")[1].split('"')[0]) + 1 for arguments in seen]])
        turns = number + 1
        if number >= count:
            return "done"
        call = ToolCall(f"c{number}", "look", f'{{"label": "thing {number}"}}')
        return Message.assistant(f"step {number} " * words, tool_calls=[call])

    return reply


def size(request: Any) -> int:
    """Return how many tokens a request has, by the plain estimate."""
    tools = sum(len(info.name) + len(info.description) + len(str(info.parameters)) for info in request.tool_infos)
    return sum(map(COUNTER.count, request.messages)) + (tools + len(request.instruction)) // 4
