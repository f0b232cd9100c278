"""What `Compaction` costs a turn that needs none: `cd benchmarks; python -m reduction._compaction`."""

import statistics
import time

from suture import Compaction, Message
from suture.kernel import ChatModelAgentState, ModelContext
from suture.messages import History, TokenUsage, ToolInfo

_GOAL = 0.05
"""Milliseconds, however long the history is."""


def measure(length: int, turns: int = 300) -> float:
    """Return the median milliseconds of the check before a turn that two messages came before."""
    compaction = Compaction(10**9)
    tools = tuple(ToolInfo(f"tool_{number}", "does something " * 8) for number in range(10))
    usage = TokenUsage(prompt_tokens=100, completion_tokens=10)
    context = ModelContext(wire="message", instruction="Be brief. " * 50, last_usage=usage)
    history: History[Message] = History([Message.user("go"), *[Message.assistant("word " * 40) for _ in range(length)]])
    compaction.before_model_rewrite_state(ChatModelAgentState(messages=history, tool_infos=tools), context)
    times: list[float] = []
    for _ in range(turns):
        history = history.extend([Message.assistant("word " * 40), Message.user("more " * 40)])
        state: ChatModelAgentState[Message] = ChatModelAgentState(messages=history, tool_infos=tools)
        start = time.perf_counter()
        compaction.before_model_rewrite_state(state, context)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1_000


if __name__ == "__main__":
    for messages in (10, 100, 1_000, 10_000):
        took = measure(messages)
        print(f"{messages:>6} messages: {took:.4f} ms{'' if took <= _GOAL else ', over the goal'}")
