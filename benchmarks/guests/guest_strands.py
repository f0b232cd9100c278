"""strands' `Agent`, over a model of our own: a history as `messages=`, and a session restored from files."""

import json
from collections.abc import AsyncIterable, Iterator, Sequence
from functools import partial
from tempfile import TemporaryDirectory
from typing import Any

from _cases import PROMPT, TOOL, Step, turns
from _guest import ANSWER, WITH, Guest, Run, Script
from _judge import Atom, Message
from strands import Agent, tool
from strands.agent import NullConversationManager
from strands.models import Model
from strands.session import FileSessionManager
from strands.types.session import SessionMessage

from suture.integrations.strands import PatchToolCalls

Event = dict[str, Any]


class _Model(Model):
    script: Script
    sent: Any

    def update_config(self, **model_config: Any) -> None: ...

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError

    async def stream(self, messages: Any, *args: Any, **kwargs: Any) -> AsyncIterable[Any]:
        self.sent = messages
        for event in self.script.reply():
            yield event


_model = _Model()


@tool
async def weather(city: str) -> str:
    """Say how the weather is."""
    return _model.script.run(city)


def _write(steps: Sequence[Step]) -> list[Any]:
    return [
        {"role": role, "content": [block for step in said for block in _blocks(step)]} for role, said in turns(steps)
    ]


def _blocks(step: Step) -> list[dict[str, Any]]:
    match step:
        case ("user" | "say", text):
            return [{"text": text}]
        case ("result", name, text):
            return [{"toolResult": {"toolUseId": name, "status": "success", "content": [{"text": text}]}}]
        case (_, *calls):
            uses = [{"toolUseId": name, "name": TOOL, "input": {"city": city}} for name, city in calls]
            return [{"toolUse": use} for use in uses]
    raise AssertionError(step)


def _read(message: dict[str, Any]) -> Message:
    return message["role"], [*_atoms(message)]


def _atoms(message: dict[str, Any]) -> Iterator[Atom]:
    for block in message["content"]:
        match block:
            case {"toolUse": use}:
                yield "call", use["toolUseId"], use["name"]
            case {"toolResult": result}:
                yield "result", result["toolUseId"], "".join(part["text"] for part in result["content"])
            case {"text": text}:
                yield "text", text


def _reply(start: dict[str, Any], delta: dict[str, Any], reason: str) -> list[Event]:
    return [
        {"messageStart": {"role": "assistant"}},
        {"contentBlockStart": {"start": start}},
        {"contentBlockDelta": {"delta": delta}},
        {"contentBlockStop": {}},
        {"messageStop": {"stopReason": reason}},
    ]


def _received() -> list[Message]:
    return [_read(message) for message in _model.sent]


def _quiet() -> dict[str, Any]:
    """Return what keeps an agent from printing, and from cutting its history to 40 messages."""
    return {"callback_handler": None, "conversation_manager": NullConversationManager()}


def _begin(kind: str, script: Script, steps: Sequence[Step], **given: Any) -> Run:
    def call(n: int) -> list[Event]:
        start = {"toolUse": {"toolUseId": f"new_{n}", "name": TOOL}}
        return _reply(start, {"toolUse": {"input": json.dumps({"city": f"city {n}"})}}, "tool_use")

    script.replies = [*map(call, range(script.steps)), _reply({}, {"text": ANSWER}, "end_turn")]
    given = given or {"messages": _write(steps)}
    plugins: list[Any] = [PatchToolCalls()] if kind == WITH else []
    agent = Agent(_model, tools=[weather], plugins=plugins, **_quiet(), **given)

    async def run() -> str:
        _model.script = script
        return str(await agent.invoke_async(PROMPT)).strip()

    return run


def _begin_restored(kind: str, script: Script, steps: Sequence[Step]) -> Run:
    async def run() -> str:
        with TemporaryDirectory() as directory:
            keeper = FileSessionManager("conversation", storage_dir=directory)
            Agent(_model, agent_id="fake", session_manager=keeper, **_quiet())
            for place, message in enumerate(_write(steps)):
                keeper.create_message("conversation", "fake", SessionMessage.from_message(message, place))
            restored = FileSessionManager("conversation", storage_dir=directory)
            return await _begin(kind, script, steps, agent_id="fake", session_manager=restored)()

    return run


_guest = partial(Guest, package="strands-agents", provider="Bedrock", received=_received)
GUESTS = (
    _guest(title="strands `Agent(messages=…)`", begin=_begin),
    _guest(title="strands, session from files", begin=_begin_restored),
)
MEASURED = (_guest(title="strands", begin=_begin),)
