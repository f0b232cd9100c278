"""Histories, and models that keep what they are sent."""

from collections.abc import AsyncGenerator, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

from strands import Agent, Plugin
from strands.models import Model
from strands.session import FileSessionManager
from strands.types.content import Message
from strands.types.session import SessionAgent, SessionMessage
from strands.types.streaming import StreamEvent

History = Sequence[dict[str, Any]]


class AnyRecorder(Model):
    """A model that gives its replies one after the other, and keeps the messages that it is sent."""

    def __init__(self, *replies: Any, stateful: bool = False) -> None:
        self._replies = [reply if isinstance(reply, dict) else said(reply) for reply in replies]
        self._stateful = stateful
        self.requests: list[list[dict[str, Any]]] = []

    @property
    def stateful(self) -> bool:
        return self._stateful

    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> dict[str, Any]:
        return {}

    async def structured_output(
        self, output_model: Any, prompt: Any, system_prompt: Any = None, **kwargs: Any
    ) -> AsyncGenerator[dict[str, Any], None]:
        raise NotImplementedError
        yield {}

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncGenerator[StreamEvent, None]:
        self.requests.append([{"role": each["role"], "content": deepcopy(each["content"])} for each in messages])
        reply = self._replies.pop(0) if self._replies else said("Done.")
        yield {"messageStart": {"role": "assistant"}}
        for block in reply["content"]:
            use = block.get("toolUse")
            if use:
                yield {
                    "contentBlockStart": {"start": {"toolUse": {"name": use["name"], "toolUseId": use["toolUseId"]}}}
                }
                yield {"contentBlockDelta": {"delta": {"toolUse": {"input": '{"to": "Bo"}'}}}}
            else:
                yield {"contentBlockStart": {"start": {}}}
                yield {"contentBlockDelta": {"delta": {"text": block["text"]}}}
            yield {"contentBlockStop": {}}
        yield {
            "messageStop": {"stopReason": "tool_use" if any("toolUse" in b for b in reply["content"]) else "end_turn"}
        }


class Recorder(AnyRecorder):
    """One of Bedrock's."""


Recorder.__name__ = "BedrockRecorder"


class OpenAIRecorder(AnyRecorder):
    """One of OpenAI's."""


def text(words: str) -> dict[str, Any]:
    return {"text": words}


def use(call_id: str, name: str = "pay") -> dict[str, Any]:
    return {"toolUse": {"toolUseId": call_id, "name": name, "input": {"to": "Bo"}}}


def result(call_id: str, words: str, status: str = "success") -> dict[str, Any]:
    return {"toolResult": {"toolUseId": call_id, "status": status, "content": [text(words)]}}


def user(*content: Any) -> dict[str, Any]:
    return {"role": "user", "content": [text(each) if isinstance(each, str) else each for each in content]}


def said(*content: Any) -> dict[str, Any]:
    return {"role": "assistant", "content": [text(each) if isinstance(each, str) else each for each in content]}


def canceled(call_id: str, name: str = "pay") -> dict[str, Any]:
    words = (
        f"Tool call {name} with id {call_id} has no recorded result - it may or may not have run. "
        "Check before running it again."
    )
    return result(call_id, words, "error")


def unknown(call_id: str, name: str = "pay") -> dict[str, Any]:
    words = f"Tool call {name} with id {call_id} has no recorded result - it may or may not have run."
    return result(call_id, f"{words} Check before running it again.", "error")


def interrupted(call_id: str) -> dict[str, Any]:
    """Return what Strands itself puts in the place of a result."""
    return {"toolResult": {"toolUseId": call_id, "status": "error", "content": [text("Tool was interrupted.")]}}


def teller(model: Model, *plugins: Plugin, messages: History = (), **settings: Any) -> Agent:
    given: Any = deepcopy(list(messages))
    return Agent(model=model, messages=given, plugins=list(plugins), callback_handler=None, **settings)


def store(
    folder: Path, messages: History, manager: str = "SlidingWindowConversationManager", removed: int = 0, **state: Any
) -> None:
    """Make a session with these messages, as an agent would have left it."""
    sessions = FileSessionManager("talk", storage_dir=str(folder))
    kept_by_manager = {"__name__": manager, "removed_message_count": removed, **state}
    agent = SessionAgent(agent_id="default", state={}, conversation_manager_state=kept_by_manager)
    sessions.create_agent("talk", agent)
    for index, message in enumerate(messages):
        kept = cast("Message", deepcopy(message))
        sessions.create_message("talk", "default", SessionMessage.from_message(kept, index))


def load(folder: Path) -> FileSessionManager:
    return FileSessionManager("talk", storage_dir=str(folder))


def plain(messages: Any) -> list[dict[str, Any]]:
    """Return messages without what Strands notes about them."""
    return [{"role": each["role"], "content": each["content"]} for each in messages]
