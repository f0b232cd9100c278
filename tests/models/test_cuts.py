"""Streams that break, at every place, over HTTP: what was said is kept, and the conversation goes on."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, tool
from suture.errors import ModelError, StreamCutError
from suture.messages import AgenticMessage, AssistantGenText, FunctionToolCall, FunctionToolResult, Message, Reasoning
from suture.models import ModelRequest
from tests.codecs.recordings import recordings
from tests.models.loopback import Answer, Asked, Loopback, loopback
from tests.models.providers import (
    WIRES,
    call_reply,
    frames,
    history_in,
    make_model,
    stream_headers,
    streamed,
    text_reply,
)

pytestmark = pytest.mark.usefixtures("surroundings")
CALLS = (("call_1", "tides", '{"port": "Dover"}'), ("call_2", "tides", '{"port": "Hull"}'))
FOLDERS = {
    "openai-chat": "openai-chat",
    "openai-compatible-chat": "openai-chat",
    "openai-responses": "openai-responses",
    "anthropic-messages": "anthropic",
    "gemini": "gemini",
    "bedrock-converse": "bedrock",
}


@tool
def tides(port: str) -> str:
    """Look up high tide."""
    return f"06:12 in {port}"


def whole_reply() -> AgenticMessage:
    return call_reply(*CALLS, text="I look that up.", thought="Two ports.", signature="c2lnbmVk")


class Said:
    """What a message says, native in either way."""

    def __init__(self, messages: Sequence[Any]) -> None:
        self.text = self.thought = ""
        self.calls: list[tuple[str, str, str]] = []
        self.answered: list[str] = []
        for message in messages:
            if isinstance(message, Message):
                self._take_message(message)
            else:
                self._take_blocks(message)

    def _take_message(self, message: Message) -> None:
        if message.role == "assistant":
            self.text += message.content
            self.thought += message.reasoning_content
            self.calls += [(call.id, call.name, call.arguments) for call in message.tool_calls]
        elif message.role == "tool":
            self.answered.append(message.tool_call_id)

    def _take_blocks(self, message: AgenticMessage) -> None:
        for block in message.content_blocks:
            if isinstance(block, AssistantGenText):
                self.text += block.text
            elif isinstance(block, Reasoning):
                self.thought += block.text
            elif isinstance(block, FunctionToolCall):
                self.calls.append((block.call_id, block.name, block.arguments))
            elif isinstance(block, FunctionToolResult):
                self.answered.append(block.call_id)


def is_true(said: Said, all_of_it: Said) -> None:
    """Check that what is kept was said, in order, and that every call has its answer."""
    assert all_of_it.text.startswith(said.text)
    assert all_of_it.thought.startswith(said.thought)
    assert len(said.calls) <= len(all_of_it.calls)
    for (_, name, arguments), (_, whole_name, whole_arguments) in zip(said.calls, all_of_it.calls, strict=False):
        assert name == whole_name
        assert arguments in {"", "{}"} or whole_arguments.replace(" ", "").startswith(arguments.replace(" ", ""))
    assert sorted(said.answered) == sorted(call[0] for call in said.calls)


class Conversation:
    """An agent, and a server that breaks off its first reply and answers the next one."""

    agent: Any
    server: Loopback

    def __init__(self, wire: str, native: str) -> None:
        self.wire, self.native = wire, native
        self.user: Any = Message.user if native == "message" else AgenticMessage.user
        self.next = Answer()

    def connect(self, server: Loopback) -> None:
        self.server = server
        self.agent = ChatModelAgent(
            model=make_model(self.wire, server.url, wire=self.native), tools=[tides], model_retry_config=None
        )

    def answer(self, _asked: Asked) -> Answer:
        said, self.next = self.next, streamed(self.wire, text_reply())
        return said

    async def breaks(self, pieces: Sequence[bytes], then: str, all_of_it: Said) -> bool:
        """Break off behind `pieces`, check what is kept and go on; tell whether the reply counted as whole."""
        self.next = Answer([b"".join(pieces)], headers=stream_headers(self.wire), then=then)
        was_whole = False
        try:
            result = await self.agent.run([self.user("High tide?")])
            was_whole = True
        except (StreamCutError, ModelError) as error:
            assert error.retryable  # noqa: PT017 - the error differs from place to place
            result = error.result
            is_true(Said(result.messages), all_of_it)
        if was_whole:
            said = Said(result.messages[:2])
            assert (said.text, said.thought, len(said.calls)) == (
                all_of_it.text,
                all_of_it.thought,
                len(all_of_it.calls),
            )
        after = await self.agent.run([*result.messages, self.user("Go on.")])
        assert after.output == "The sea is calm."
        sent = history_in(self.wire, self.server.requests[-1].payload)
        assert suture.check(sent, profile=self.wire).acceptable
        return was_whole


async def break_everywhere(wire: str, native: str, body: Sequence[bytes]) -> int:
    """Break a stream off behind each of its pieces, in both ways; return how often that was behind its end."""
    talk = Conversation(wire, native)
    async with loopback(talk.answer) as server:
        talk.connect(server)
        talk.next = Answer([b"".join(body)], headers=stream_headers(wire))
        first = [item async for item in talk.agent.model.stream(ModelRequest("", [talk.user("High tide?")]))]
        all_of_it = Said(first[-1:])
        counts = [
            await talk.breaks(body[:place], then, all_of_it) for place in range(len(body)) for then in ("cut", "end")
        ]
    return sum(counts)


NATIVE = [pytest.param(wire, native, id=f"{wire}-{native}") for wire in WIRES for native in ("message", "agentic")]


@pytest.mark.parametrize(("wire", "native"), NATIVE)
def test_a_stream_may_break_behind_any_event(wire: str, native: str):
    events = frames(wire, whole_reply())
    counted = asyncio.run(break_everywhere(wire, native, events))
    assert counted <= 2  # behind the end of the reply, only its cost may still come
    assert len(events) > 2


@pytest.mark.soak
@pytest.mark.parametrize("wire", WIRES)
def test_a_stream_may_break_behind_any_byte(wire: str, covered: Callable[[str], None]):
    body = b"".join(frames(wire, whole_reply()))
    asyncio.run(break_everywhere(wire, "message", [bytes([byte]) for byte in body]))
    covered(f"{wire}: a stream of {len(body)} bytes, broken behind each of them in two ways")


def recorded() -> list[Any]:
    return [
        pytest.param(wire, exchange, id=f"{folder}/{name}-{number}")
        for folder, wire in FOLDERS.items()
        for name, found in recordings(folder)
        for number, exchange in enumerate(found)
        if exchange.status == 200
    ]


@pytest.mark.soak
@pytest.mark.parametrize(("wire", "exchange"), recorded())
def test_a_recorded_stream_may_break_behind_any_event(wire: str, exchange: Any):
    asyncio.run(break_everywhere(wire, "message", events_of(wire, exchange.body)))


def events_of(wire: str, body: bytes) -> list[bytes]:
    if wire == "bedrock":
        pieces: list[bytes] = []
        while body:
            length = int.from_bytes(body[:4], "big")
            pieces.append(body[:length])
            body = body[length:]
        return pieces
    return [piece + b"\n\n" for piece in body.replace(b"\r\n", b"\n").split(b"\n\n") if piece]
