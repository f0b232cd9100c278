"""What a strict provider says to agent-framework's own OpenAI client, which keeps conversations at the service."""

import asyncio
from typing import Any

import pytest
from agent_framework import Content, Message

from suture.integrations.agent_framework import wrap
from suture.repair import Report
from tests.guests.releases import since
from tests.guests.strict_provider import strict_provider

OpenAIChatClient = pytest.importorskip("agent_framework_openai").OpenAIChatClient
PAY: Any = [("call_1", "pay", {"eur": 5})]


def client(url: str, *, wrapped: bool, heard: list[Report] | None = None) -> Any:
    made = OpenAIChatClient(model="gpt", api_key="none", base_url=f"{url}/v1")
    return wrap(made, on_repair=(heard if heard is not None else []).append) if wrapped else made


async def to_the_end(made: Any, play: Any) -> None:
    try:
        await play(made)
    finally:
        await made.client.close()


async def plain_calls(made: Any) -> None:
    """Requests without an agent: what the service keeps is named by the program."""
    first = await made.get_response([Message("user", ["Pay."])])
    await made.get_response([Message("user", ["And?"])], options={"conversation_id": first.conversation_id})


def test_an_open_call_at_the_service_is_refused_without_suture_and_answered_with_it():
    with strict_provider(PAY) as server, pytest.raises(Exception, match="call_1"):
        asyncio.run(to_the_end(client(server.url, wrapped=False), plain_calls))
    heard: list[Report] = []
    with strict_provider(PAY) as server:
        asyncio.run(to_the_end(client(server.url, wrapped=True, heard=heard), plain_calls))
        assert server.refused == []
        assert "may or may not have run" in str(server.bodies[-1]["input"])
    assert [finding.problem for report in heard for finding in report.findings] == ["dangling"]


@since("agent-framework-core", "1.23", "the call of a shell in what is sent again")
@pytest.mark.parametrize("kept", [True, False], ids=["by the service", "by the program"])
def test_the_call_of_a_shell_of_the_programs_is_answered_as_that_of_a_shell(kept: bool):
    shell = OpenAIChatClient.get_shell_tool(func=lambda command: command)
    asked: Any = {"tools": [shell], "store": kept, "tool_choice": "auto"}

    async def play(made: Any) -> None:
        ask = made._inner_get_response  # the loop that would run the shell is left out
        first = await ask(messages=[Message("user", ["List."])], options=asked, stream=False)
        before = [] if kept else [Message("user", ["List."]), *first.messages]
        on = {"conversation_id": first.conversation_id} if kept else {}
        await made.get_response([*before, Message("user", ["And?"])], options={**asked, **on})

    with strict_provider([("call_1", "shell", {"commands": ["ls"]})]) as server:
        asyncio.run(to_the_end(client(server.url, wrapped=True), play))
        assert server.refused == []
        assert "may or may not have run" in str(server.bodies[-1]["input"])


def test_a_result_that_comes_after_its_call_was_answered_is_told_as_text():
    async def play(made: Any) -> None:
        first = await made.get_response([Message("user", ["Pay."])])
        on = await made.get_response([Message("user", ["Tide?"])], options={"conversation_id": first.conversation_id})
        late = Message("tool", [Content.from_function_result("call_1", result="paid 5")])
        await made.get_response([late], options={"conversation_id": on.conversation_id})

    with strict_provider(PAY) as server:
        asyncio.run(to_the_end(client(server.url, wrapped=True), play))
        assert server.refused == []
        assert "paid 5" in str(server.bodies[-1]["input"])


@pytest.mark.parametrize("wrapped", [False, True])
def test_arguments_as_a_dict_reach_responses_as_text(wrapped: bool):
    call = Content.from_function_call("call_1", "tides", arguments={"port": "Dover"})
    history = [
        Message("user", ["Tide?"]),
        Message("assistant", [call]),
        Message("tool", [Content.from_function_result("call_1", result="06:12")]),
        Message("user", ["Thanks."]),
    ]

    async def play(made: Any) -> None:
        await made.get_response(history)

    with strict_provider() as server:
        if wrapped:
            asyncio.run(to_the_end(client(server.url, wrapped=True), play))
            assert [i["arguments"] for i in server.bodies[0]["input"] if "arguments" in i] == ['{"port":"Dover"}']
        else:
            with pytest.raises(Exception, match="expected a string"):
                asyncio.run(to_the_end(client(server.url, wrapped=False), play))


@pytest.mark.parametrize("left", [False, True], ids=["read to its end", "left"])
def test_only_after_a_stream_that_was_left_is_something_said_again(left: bool):
    """Of one that was read to its end nobody need ask for the whole response."""

    async def play(made: Any) -> None:
        said: Any = []
        async for update in made.get_response([Message("user", ["Pay."])], stream=True):
            said.append(update.conversation_id)
            if left:
                break
        await made.get_response([Message("user", ["And?"])], options={"conversation_id": said[0]})

    with strict_provider("Paid.") as server:
        asyncio.run(to_the_end(client(server.url, wrapped=True), play))
        last = server.bodies[-1]
        assert ("Pay." in str(last["input"]), "previous_response_id" in last) == (left, not left)
        assert server.refused == []
