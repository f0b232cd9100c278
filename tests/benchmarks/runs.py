"""Recorded runs made by hand, and what an agent with `ToolReduction` sends in such a run."""

from typing import Any

from benchmarks.replay import Policy, Recording
from suture import ChatModelAgent, ChatModelAgentMiddleware, tool
from suture.middleware import ToolReduction
from suture.reduction import Settings
from suture.stores import MemoryBackend
from suture.testing import ScriptedModel
from suture.tokens import CharacterCounter, Tally

Chat = dict[str, Any]


def call(number: int) -> Chat:
    function = {"name": "bash", "arguments": f'{{"command": "step {number}"}}'}
    return {
        "role": "assistant",
        "content": f"Step {number}.",
        "tool_calls": [{"id": f"call_{number}", "type": "function", "function": function}],
    }


def result(number: int, text: str) -> Chat:
    return {"role": "tool", "tool_call_id": f"call_{number}", "content": text}


def run_of(*outputs: str) -> Recording:
    """Return a run with a call for each output, and an answer in the end."""
    messages: list[Chat] = [{"role": "system", "content": "You work."}, {"role": "user", "content": "Do it."}]
    for number, text in enumerate(outputs):
        messages += [call(number), result(number, text)]
    return Recording("by-hand", (*messages, {"role": "assistant", "content": "Done."}))


def requests_of(policy: Policy, recording: Recording) -> list[list[Chat]]:
    """Return what a policy sends before each reply."""
    sent: list[list[Chat]] = []
    for message in recording.messages:
        if message["role"] == "assistant":
            sent.append(list(policy.request()))
        policy.add(message)
    return sent


def texts_of(request: list[Chat]) -> list[str]:
    """Return the results of a request."""
    return [message["content"] for message in request if message["role"] == "tool"]


def agent_requests(recording: Recording, settings: Settings, limit: int) -> list[list[Chat]]:
    """Return what an agent sends before each reply, with tools that give what was recorded."""
    replies = [message for message in recording.messages if message["role"] == "assistant"]
    beginning = list(recording.messages[: recording.messages.index(replies[0])])
    outputs = {m["tool_call_id"]: m["content"] for m in recording.messages if m["role"] == "tool"}

    class Recorded(ChatModelAgentMiddleware[Any]):
        def wrap_invokable_tool_call(self, endpoint: Any, context: Any) -> Any:
            async def give(_: str, /, **__: Any) -> str:
                return outputs.get(context.call_id, "")

            return give

    @tool
    async def bash(command: str) -> str:
        """Run a command."""
        return command

    model = ScriptedModel([*replies, "done"], wire="openai-chat")
    reduction = ToolReduction(
        MemoryBackend(),
        root_dir=settings.root_dir,
        max_length_for_trunc=settings.max_length_for_trunc,
        max_length_per_turn=settings.max_length_per_turn,
        clear_at_least_tokens=settings.clear_at_least_tokens,
        # The agent counts its tool as well, the replay does not.
        max_tokens_for_clear=limit + Tally("openai-chat", CharacterCounter()).total([], [bash.info]),
        add_reading_tools=False,
    )
    agent: Any = ChatModelAgent(
        name="worker",
        model=model,
        tools=[bash],
        middlewares=[reduction, Recorded()],
        max_iterations=len(replies) + 1,
    )
    agent.run_sync(beginning)
    return [list(request.messages) for request in model.requests[: len(replies)]]
