"""Valid conversations of any length, the same one in the form of each wire.

A conversation is a row of tasks. A task is a user's text, three to eight tool rounds (one call, in every
fifth round three at once, each with its result; in every third round the model says a word first) and the
model's answer. About one text in twelve is not ASCII. Ids are unique, a result holds its own copy of its
call's id, and no two texts are one object, as in a history that was read from JSON.

Every task has an even number of messages on every wire, so a history of an even length ends with an answer.
"""

import json
from collections.abc import Callable, Iterator
from random import Random
from typing import Any, NamedTuple

from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    ContentBlock,
    FunctionToolCall,
    Message,
    ToolCall,
)

__all__ = [
    "BLOCKS",
    "FOREIGN",
    "NATIVE",
    "WIRES",
    "Call",
    "Round",
    "Task",
    "broken",
    "history",
    "langchain_history",
    "parallel_turn",
    "tasks",
]

_TOOLS = ("read_file", "search", "run_tests", "edit_file", "list_directory")
_WORDS = ("the", "build", "fails", "in", "module", "parser", "because", "a", "token", "was", "lost", "when")
_FOREIGN = ("naïve – voilà", "构建失败", "größer als 3 µs", "✓ done")
_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"


class Call(NamedTuple):
    id: str
    name: str
    query: str
    limit: int
    result: str

    @property
    def arguments(self) -> dict[str, Any]:
        return {"query": self.query, "path": f"src/{self.name}.py", "limit": self.limit}

    @property
    def json(self) -> str:
        return json.dumps(self.arguments)

    @property
    def answered_id(self) -> str:
        """The id once more, as a string of its own."""
        return "".join(list(self.id))


class Round(NamedTuple):
    text: str
    calls: tuple[Call, ...]


class Task(NamedTuple):
    question: str
    rounds: tuple[Round, ...]
    answer: str


def tasks(seed: int = 7, *, foreign: float = 1 / 12) -> Iterator[Task]:
    """Yield tasks without end, the same ones for the same seed; `foreign` is the share of texts that are not ASCII."""
    random = Random(seed)
    texts = [_text(random, 6 + 3 * size, foreign) for size in range(60)]

    def text() -> str:
        return f"{random.choice(texts)} {random.randrange(1_000_000)}"

    while True:
        rounds = [
            Round(
                text() if random.random() < 1 / 3 else "",
                tuple(_call(random, text()) for _ in range(3 if random.random() < 0.2 else 1)),
            )
            for _ in range(random.randint(3, 8))
        ]
        yield Task(text(), tuple(rounds), text())


def _call(random: Random, result: str) -> Call:
    call_id = "call_" + "".join(random.choices(_LETTERS, k=24))
    query = " ".join(random.choices(_WORDS, k=5))
    return Call(call_id, random.choice(_TOOLS), query, random.randrange(500), result)


def history(wire: str, length: int, source: Iterator[Task] | None = None) -> list[Any]:
    """Return a valid history of just `length` messages (an even number) of `wire`."""
    return _compose(WIRES[wire], length, source or tasks())


def langchain_history(length: int) -> list[Any]:
    """Return the conversation of `history("openai-chat", length)` as LangChain's own message objects."""
    from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

    def render(task: Task) -> list[Any]:
        messages: list[Any] = [HumanMessage(task.question)]
        for text, calls in task.rounds:
            made = [{"name": one.name, "args": one.arguments, "id": one.id, "type": "tool_call"} for one in calls]
            messages.append(AIMessage(text, tool_calls=made))
            messages += [ToolMessage(one.result, tool_call_id=one.answered_id, name=one.name) for one in calls]
        return [*messages, AIMessage(task.answer)]

    return _compose(render, length, tasks())


def broken(length: int, source: Iterator[Task] | None = None) -> list[Any]:
    """Return an `openai-chat` history of about `length` messages in which every twentieth result is lost."""
    results = 0
    kept: list[Any] = []
    for message in history("openai-chat", length, source):
        results += message["role"] == "tool"
        if message["role"] != "tool" or results % 20:
            kept.append(message)
    return kept


def parallel_turn(wire: str, calls: int, order: str, *, with_ids: bool) -> list[Any]:
    """Return a question, one turn of so many calls, their results in that order, and an answer."""
    random = Random(calls)
    messages = _parallel(wire, calls, random, with_ids=with_ids)
    orders = {
        "in order": lambda results: results,
        "reversed": lambda results: results[::-1],
        "shuffled": lambda results: random.sample(results, calls),
    }
    _arrange(wire, messages, calls, orders[order])
    return messages


def _parallel(wire: str, count: int, random: Random, *, with_ids: bool = True) -> list[Any]:
    calls = [_call(random, f"result {number}") for number in range(count)]
    if not with_ids:
        calls = [call._replace(id="") for call in calls]
    return WIRES[wire](Task("Go.", (Round("", tuple(calls)),), "Done."))


def _arrange(wire: str, messages: list[Any], count: int, arrange: Callable[[list[Any]], list[Any]]) -> None:
    """Arrange the results of the one turn in `messages`: they are messages before the last, or the blocks of one."""
    if blocks := BLOCKS.get(wire):
        messages[-2][blocks] = arrange(messages[-2][blocks])
    else:
        messages[-1 - count : -1] = arrange(messages[-1 - count : -1])


def _compose(render: Callable[[Task], list[Any]], length: int, source: Iterator[Task]) -> list[Any]:
    messages: list[Any] = []
    for task in source:
        more = render(task)
        if len(messages) + len(more) > length:
            break
        messages += more
    while len(messages) < length:
        messages += render(Task("Go on.", (), "Done."))
    return messages


def _text(random: Random, words: int, foreign: float) -> str:
    text = " ".join(random.choices(_WORDS, k=words))
    return f"{text} {random.choice(_FOREIGN)}" if random.random() < foreign else text


def _message(task: Task) -> list[Any]:
    messages = [Message.user(task.question)]
    for text, calls in task.rounds:
        messages.append(Message.assistant(text, [ToolCall(call.id, call.name, call.json) for call in calls]))
        messages += [Message.tool(call.result, call.answered_id, call.name) for call in calls]
    return [*messages, Message.assistant(task.answer)]


def _agentic(task: Task) -> list[Any]:
    messages = [AgenticMessage.user(task.question)]
    for text, calls in task.rounds:
        blocks: list[ContentBlock] = [AssistantGenText(text)] if text else []
        blocks += [FunctionToolCall(call.id, call.name, call.json) for call in calls]
        messages.append(AgenticMessage.assistant(blocks))
        messages += [AgenticMessage.tool_result(call.answered_id, call.name, call.result) for call in calls]
    return [*messages, AgenticMessage.assistant(task.answer)]


def _openai_chat(task: Task) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": task.question}]
    for text, calls in task.rounds:
        made = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.json}}
            for call in calls
        ]
        messages.append({"role": "assistant", "content": text or None, "tool_calls": made})
        messages += [{"role": "tool", "tool_call_id": call.answered_id, "content": call.result} for call in calls]
    return [*messages, {"role": "assistant", "content": task.answer}]


def _openai_responses(task: Task) -> list[Any]:
    items: list[Any] = [{"role": "user", "content": task.question}]
    for _, calls in task.rounds:  # a word first would be an item more, and the number odd
        items += [
            {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.json} for call in calls
        ]
        items += [
            {"type": "function_call_output", "call_id": call.answered_id, "output": call.result} for call in calls
        ]
    return [*items, {"role": "assistant", "content": task.answer}]


def _anthropic(task: Task) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": task.question}]
    for text, calls in task.rounds:
        blocks: list[Any] = [{"type": "text", "text": text}] if text else []
        blocks += [{"type": "tool_use", "id": call.id, "name": call.name, "input": call.arguments} for call in calls]
        messages.append({"role": "assistant", "content": blocks})
        results = [{"type": "tool_result", "tool_use_id": call.answered_id, "content": call.result} for call in calls]
        messages.append({"role": "user", "content": results})
    return [*messages, {"role": "assistant", "content": task.answer}]


def _gemini(task: Task) -> list[Any]:
    contents: list[Any] = [{"role": "user", "parts": [{"text": task.question}]}]
    for text, calls in task.rounds:
        parts: list[Any] = [{"text": text}] if text else []
        # Where there is no id, Gemini's own histories have no such key.
        parts += [
            {"functionCall": {**({"id": call.id} if call.id else {}), "name": call.name, "args": call.arguments}}
            for call in calls
        ]
        contents.append({"role": "model", "parts": parts})
        answers = [
            {**({"id": call.answered_id} if call.id else {}), "name": call.name, "response": {"result": call.result}}
            for call in calls
        ]
        contents.append({"role": "user", "parts": [{"functionResponse": answer} for answer in answers]})
    return [*contents, {"role": "model", "parts": [{"text": task.answer}]}]


def _bedrock(task: Task) -> list[Any]:
    messages: list[Any] = [{"role": "user", "content": [{"text": task.question}]}]
    for text, calls in task.rounds:
        blocks: list[Any] = [{"text": text}] if text else []
        blocks += [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.arguments}} for call in calls]
        messages.append({"role": "assistant", "content": blocks})
        results = [
            {"toolResult": {"toolUseId": call.answered_id, "content": [{"text": call.result}]}} for call in calls
        ]
        messages.append({"role": "user", "content": results})
    return [*messages, {"role": "assistant", "content": [{"text": task.answer}]}]


WIRES: dict[str, Callable[[Task], list[Any]]] = {
    "message": _message,
    "agentic": _agentic,
    "openai-chat": _openai_chat,
    "openai-responses": _openai_responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
NATIVE = ("message", "agentic")
FOREIGN = tuple(wire for wire in WIRES if wire not in NATIVE)
BLOCKS = {"anthropic": "content", "gemini": "parts", "bedrock": "content"}
"""Where the results stand that are blocks of one message."""
