"""Replies that are asked for whole: because nobody wants the pieces, or because the provider refuses to stream."""

import asyncio
import json
import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from suture import ChatModelAgent
from suture.errors import ModelRequestError
from suture.events import MessageDelta
from suture.models import ModelRequest
from suture.models.http import read_refusal
from suture.models.streaming import ONLY_STREAMS, ONLY_WHOLE
from tests.models.loopback import Answer, Asked, json_answer, loopback
from tests.models.providers import HELLO, WIRES, call_reply, make_model, refusal, streamed, text_reply, whole

pytestmark = pytest.mark.usefixtures("surroundings")
VERIFY = (
    "Your organization must be verified to stream this model. Please go to: "
    "https://platform.openai.com/settings/organization/general and click on Verify Organization. If you just verified, "
    "it can take up to 15 minutes for access to propagate."
)
TEXTS = (
    VERIFY,
    "Unsupported value: 'stream' does not support true with this model. Supported values are: false.",
    "The model is unsupported for streaming.",
    "This model doesn't support tool use in streaming mode.",
    "Cannot use tools with stream",
    "Streaming completion is not support yet, please remove 'stream' key value in the request payload.",
    "Error in `stream`: `stream` is not supported for this model",
    "This model does not support streaming.",
    "Streaming is not yet supported.",
)


ONLY_STREAM_TEXTS = (
    "This model only support stream mode, please enable the stream parameter to access the model. ",
    "parameter.enable_thinking must be set to false for non-streaming calls",
    "enable thinking can not be support when `stream=False`.",
    "Stream must be set to true",
)


def wants_stream(wire: str, asked: Asked) -> bool:
    if wire == "gemini":
        return "streamGenerateContent" in asked.path
    if wire == "bedrock":
        return "converse-stream" in asked.path
    return asked.payload["stream"]


def answers_whole(wire: str, status: int = 400, text: str = VERIFY) -> Any:
    """Return a server that answers every request, but none for a stream."""

    def answer(asked: Asked) -> Answer:
        if wants_stream(wire, asked):
            return refusal(wire, status, text, "unsupported_value")
        return whole(wire, text_reply())

    return answer


async def text_of(model: Any, request: ModelRequest[Any] = HELLO) -> str:
    return [item async for item in model.stream(request)][-1].content


@pytest.mark.parametrize("wire", WIRES)
def test_a_run_without_streaming_asks_for_the_whole_reply(wire: str):
    async def run() -> tuple[list[bool], list[Any]]:
        async with loopback([whole(wire, text_reply())]) as server:
            agent = ChatModelAgent(model=make_model(wire, server.url))
            result = await agent.run("hi", streaming=False)
            async with agent.stream("hi", streaming=False) as running:
                deltas = [event async for event in running if isinstance(event, MessageDelta)]
            assert running.final_result is not None
            assert result.output == running.final_result.output == "The sea is calm."
            return [wants_stream(wire, asked) for asked in server.requests], deltas

    assert asyncio.run(run()) == ([False, False], [])


@pytest.mark.parametrize("wire", WIRES)
def test_a_run_asks_for_a_stream_by_default(wire: str):
    async def run() -> list[bool]:
        async with loopback([streamed(wire, text_reply())]) as server:
            assert (await ChatModelAgent(model=make_model(wire, server.url)).run("hi")).output == "The sea is calm."
            return [wants_stream(wire, asked) for asked in server.requests]

    assert asyncio.run(run()) == [True]


@pytest.mark.parametrize("wire", WIRES)
def test_an_agent_inside_is_asked_as_the_one_around_it(wire: str):
    async def run() -> list[bool]:
        turns = [call_reply(("call_1", "inner", '{"request": "hi"}')), text_reply("inside"), text_reply()]
        async with loopback([whole(wire, turn) for turn in turns]) as server:
            model = make_model(wire, server.url)
            inner = ChatModelAgent(name="inner", description="Helps.", model=model).as_tool()
            await ChatModelAgent(model=model, tools=[inner]).run("hi", streaming=False)
            return [wants_stream(wire, asked) for asked in server.requests]

    assert asyncio.run(run()) == [False, False, False]


@pytest.mark.parametrize("wire", WIRES)
def test_the_option_stream_is_that_of_one_request(wire: str):
    async def run() -> list[bool]:
        async with loopback([whole(wire, text_reply()), streamed(wire, text_reply())]) as server:
            model = make_model(wire, server.url)
            await text_of(model, ModelRequest("", HELLO.messages, options={"stream": False}))
            await text_of(model)
            return [wants_stream(wire, asked) for asked in server.requests]

    assert asyncio.run(run()) == [False, True]


def test_what_belongs_to_a_stream_is_not_sent_without_one():
    async def run() -> Any:
        async with loopback([whole("openai-chat", text_reply())]) as server:
            options = {"stream_options": {"include_usage": True}}
            await text_of(make_model("openai-chat", server.url, streaming=False, options=options))
            return server.requests[0].payload

    assert "stream_options" not in asyncio.run(run())


@pytest.mark.parametrize("wire", WIRES)
def test_a_provider_that_refuses_to_stream_is_asked_again_without_and_it_is_logged_once(
    wire: str, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.INFO, "suture")

    async def run() -> list[bool]:
        async with loopback(answers_whole(wire)) as server:
            agent = ChatModelAgent(model=make_model(wire, server.url))
            assert (await agent.run("hi")).output == "The sea is calm."
            assert (await agent.run("hi")).output == "The sea is calm."
            return [wants_stream(wire, asked) for asked in server.requests]

    assert asyncio.run(run()) == [True, False, False]
    [record] = [record for record in caplog.records if record.name == "suture"]
    assert "must be verified to stream this model" in record.getMessage()
    assert "asked for whole replies instead" in record.getMessage()


QWEN = "parameter.enable_thinking must be set to false for non-streaming calls"


@pytest.mark.parametrize("wire", WIRES)
def test_a_provider_that_only_streams_is_asked_again_for_a_stream(wire: str, caplog: pytest.LogCaptureFixture):
    def answer(asked: Asked) -> Answer:
        return streamed(wire, text_reply()) if wants_stream(wire, asked) else refusal(wire, 400, QWEN)

    async def run() -> list[bool]:
        async with loopback(answer) as server:
            agent = ChatModelAgent(model=make_model(wire, server.url))
            for _ in range(2):
                async with agent.stream("hi", streaming=False) as running:
                    deltas = [event async for event in running if isinstance(event, MessageDelta)]
                assert running.final_result is not None
                assert (running.final_result.output, deltas) == ("The sea is calm.", [])
            return [wants_stream(wire, asked) for asked in server.requests]

    assert asyncio.run(run()) == [False, True, True]
    [record] = [record for record in caplog.records if record.name == "suture"]
    assert "asked for streams instead" in record.getMessage()


def test_a_refusal_that_a_router_passes_on_is_understood():
    raw = {"error": {"message": VERIFY, "type": "invalid_request_error", "param": "stream"}}
    routed: dict[str, Any] = {
        "error": {"message": "Provider returned error", "code": 400, "metadata": {"raw": json.dumps(raw)}}
    }

    def answer(asked: Asked) -> Answer:
        is_stream = wants_stream("openai-chat", asked)
        return json_answer(routed, 400) if is_stream else whole("openai-chat", text_reply())

    async def run() -> str:
        async with loopback(answer) as server:
            return await text_of(make_model("openai-chat", server.url))

    assert asyncio.run(run()) == "The sea is calm."
    assert read_refusal(routed)[0] == f"Provider returned error: {VERIFY}"
    routed["error"]["metadata"] = {"raw": "<html>"}
    assert read_refusal(routed)[0] == "Provider returned error: <html>"


def test_a_provider_that_refuses_both_is_asked_twice():
    def answer(asked: Asked) -> Answer:
        return refusal("openai-chat", 400, VERIFY if wants_stream("openai-chat", asked) else QWEN)

    async def run() -> int:
        async with loopback(answer) as server:
            with pytest.raises(ModelRequestError, match="non-streaming"):
                await text_of(make_model("openai-chat", server.url))
            return len(server.requests)

    assert asyncio.run(run()) == 2


@pytest.mark.parametrize("text", TEXTS)
def test_every_known_wording_is_understood(text: str):
    async def run() -> list[bool]:
        async with loopback(answers_whole("openai-chat", 500 if "Cannot" in text else 400, text)) as server:
            await text_of(make_model("openai-chat", server.url))
            return [wants_stream("openai-chat", asked) for asked in server.requests]

    assert asyncio.run(run()) == [True, False]


@pytest.mark.parametrize("text", ONLY_STREAM_TEXTS)
def test_every_known_wording_of_a_server_that_only_streams_is_understood(text: str):
    def answer(asked: Asked) -> Answer:
        is_stream = wants_stream("openai-chat", asked)
        return streamed("openai-chat", text_reply()) if is_stream else refusal("openai-chat", 400, text)

    async def run() -> str:
        async with loopback(answer) as server:
            return await text_of(make_model("openai-chat", server.url, streaming=False))

    assert asyncio.run(run()) == "The sea is calm."


def test_the_wordings_are_those_that_are_tested():
    for table, texts in ((ONLY_WHOLE, TEXTS), (ONLY_STREAMS, ONLY_STREAM_TEXTS)):
        for words, source in table:
            assert any(words in text.lower() for text in texts)
            assert "#" in source


@pytest.mark.parametrize("wire", WIRES)
def test_another_refusal_and_one_without_a_stream_are_not_asked_again(wire: str):
    async def attempts(text: str, **settings: Any) -> int:
        async with loopback([refusal(wire, 400, text)]) as server:
            with pytest.raises(ModelRequestError):
                await text_of(make_model(wire, server.url, **settings))
            return len(server.requests)

    assert asyncio.run(attempts("The parameter 'stream_options' is unknown.")) == 1
    assert asyncio.run(attempts(VERIFY, streaming=False)) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_the_refusal_without_a_stream_is_the_one_that_is_raised(wire: str):
    async def run() -> ModelRequestError:
        async with loopback([refusal(wire, 400, VERIFY), refusal(wire, 400, "no such model")]) as server:
            with pytest.raises(ModelRequestError) as caught:
                await text_of(make_model(wire, server.url))
            assert len(server.requests) == 2
            return caught.value

    error = asyncio.run(run())
    assert "no such model" in str(error)
    assert error.__cause__ is None
    assert error.__context__ is None


def test_a_refusal_is_remembered_in_every_thread(caplog: pytest.LogCaptureFixture):
    async def run() -> list[bool]:
        async with loopback(answers_whole("openai-chat")) as server:
            model = make_model("openai-chat", server.url)

            def ask(_: int) -> str:
                return asyncio.run(text_of(model))

            with ThreadPoolExecutor(8) as pool:
                loop = asyncio.get_running_loop()
                said = await asyncio.gather(*[loop.run_in_executor(pool, ask, number) for number in range(8)])
                assert set(said) == {"The sea is calm."}
                server.requests.clear()
                await loop.run_in_executor(pool, ask, 9)
            return [wants_stream("openai-chat", asked) for asked in server.requests]

    assert asyncio.run(run()) == [False]
    assert len([record for record in caplog.records if record.name == "suture"]) == 1
