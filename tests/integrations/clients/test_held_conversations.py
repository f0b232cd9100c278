"""Where the service keeps what came before, a result may belong to a call that is not in the list."""

import asyncio
import inspect
import json
from collections.abc import Callable
from typing import Any

import anthropic
import pytest

from tests.histories import flat, write
from tests.integrations.clients.sending import FIELDS, plain_client, send, talk, wrap
from tests.models.loopback import Loopback, json_answer
from tests.models.providers import call_reply, streamed, text_reply, whole

pytestmark = pytest.mark.usefixtures("surroundings")
RESULT, MORE = ("result", "held", "tides", "06:12"), ("user", "Go on.")
CALL = ("turn", [("a", "tides", "{}")])


def sent(wire: str, call: Callable[[Any, Any], Any], *histories: Any, asynchronous: bool = False) -> list[Any]:
    """Send histories, one after the other, with one wrapped client; return what the server got."""

    async def use(server: Loopback) -> None:
        async with plain_client(wire, server.url, asynchronous=asynchronous) as client:
            wrapped = wrap(client)
            for history in histories:
                await send(wrapped, call, history)

    return [asked.payload for asked in talk(wire, use)]


CONTINUING: dict[str, Callable[[Any, Any], Any]] = {
    "previous_response_id": lambda c, i: c.responses.create(model="m", input=i, previous_response_id="resp_1"),
    "conversation": lambda c, i: c.responses.create(model="m", input=i, conversation="conv_1"),
    "a conversation's object": lambda c, i: c.responses.create(model="m", input=i, conversation={"id": "conv_1"}),
    "extra_body": lambda c, i: c.responses.create(model="m", input=i, extra_body={"conversation": "conv_1"}),
    "counting": lambda c, i: c.responses.input_tokens.count(model="m", input=i, previous_response_id="resp_1"),
}


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("call", CONTINUING.values(), ids=CONTINUING)
def test_an_output_whose_call_the_service_keeps_is_no_orphan(call: Callable[[Any, Any], Any], asynchronous: bool):
    items = write("openai-responses", [RESULT, MORE])
    (payload,) = sent("openai-responses", call, items, asynchronous=asynchronous)
    assert payload["input"] == items


def test_chat_completions_know_no_conversation():
    history = write("openai-chat", [RESULT, MORE])
    extra = {"conversation": "conv_1"}
    (payload,) = sent(
        "openai-chat", lambda c, m: c.chat.completions.create(model="m", messages=m, extra_body=extra), history
    )
    assert [atom[0] for atom in flat(payload["messages"])] == ["text", "text"]


def test_without_a_conversation_it_is_one():
    items = write("openai-responses", [RESULT, MORE])
    (payload,) = sent("openai-responses", lambda c, i: c.responses.create(model="m", input=i), items)
    assert [atom[0] for atom in flat(payload["input"])] == ["text", "text"]


@pytest.mark.parametrize("call", CONTINUING.values(), ids=CONTINUING)
def test_what_is_new_in_a_conversation_is_mended(call: Callable[[Any, Any], Any]):
    items = write("openai-responses", [RESULT, CALL, MORE])
    longer = write("openai-responses", [RESULT, CALL, MORE, ("turn", [("b", "tides", "{}")]), MORE])
    first, second = sent("openai-responses", call, items, longer)
    assert first["input"][:2] == items[:2]
    assert [atom[:2] for atom in flat(first["input"])] == [
        ("result", "held"),
        ("call", "a"),
        ("result", "a"),
        ("text", "user"),
    ]
    assert second["input"][: len(first["input"])] == first["input"]
    assert [atom[:2] for atom in flat(second["input"])[4:]] == [("call", "b"), ("result", "b"), ("text", "user")]


def test_a_thread_that_goes_on_is_left_as_it_is():
    history = write("anthropic", [RESULT, CALL, MORE])
    on = {"type": "continue", "previous_message_id": "msg_1"}

    def call(thread: Any) -> Callable[[Any, Any], Any]:
        return lambda c, m: c.beta.messages.create(model="m", max_tokens=9, messages=m, thread=thread)

    def call_with_extra(client: Any, messages: Any) -> Any:
        return client.messages.create(model="m", max_tokens=9, messages=messages, extra_body={"thread": on})

    (going_on,) = sent("anthropic", call(on), history)
    (extra,) = sent("anthropic", call_with_extra, history)
    (extra,) = sent(
        "anthropic",
        lambda c, m: c.messages.create(model="m", max_tokens=9, messages=m, extra_body={"thread": on}),
        history,
    )
    assert extra["messages"] == history
    (new,) = sent("anthropic", call({"type": "create"}), history)
    assert going_on["messages"] == extra["messages"] == history
    assert [atom[0] for atom in flat(new["messages"])] == ["text", "call", "result", "text"]


def test_a_tool_runner_runs_to_its_end():
    """It keeps its conversation in a thread: what it sends after the first request is only what is new."""

    @anthropic.beta_tool
    def tides(port: str) -> str:
        """Look up the high tide.

        Args:
            port: where
        """
        return f"06:12 in {port}"

    def run(client: Any, messages: Any) -> Any:
        runner = client.beta.messages.tool_runner(model="m", max_tokens=9, messages=messages, tools=[tides])
        return runner.until_done()

    replies: list[Any] = []

    async def use(server: Loopback) -> None:
        async with plain_client("anthropic", server.url) as client:
            replies.append(await send(wrap(client), run, write("anthropic", [("user", "Hi."), CALL, MORE])))

    called = json.loads(whole("anthropic", call_reply(("call_1", "tides", '{"port": "Dover"}'))).pieces[0])
    said = json.loads(whole("anthropic", text_reply()).pieces[0])
    answers = [json_answer({**called, "id": "msg_1"}), json_answer({**said, "id": "msg_2"})]
    first, second = [asked.payload for asked in talk("anthropic", use, answers)]
    assert [atom[0] for atom in flat(first["messages"])] == ["text", "call", "result", "text"]
    results = [block for block in second["messages"][-1]["content"] if block["type"] == "tool_result"]
    assert [block["tool_use_id"] for block in results] == ["call_1"]
    assert replies[0].content[0].text == "The sea is calm."


@pytest.mark.parametrize("beta", [False, True])
@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_each_request_of_a_batch_is_mended(beta: bool, asynchronous: bool):
    broken = write("anthropic", [("user", "Hi."), CALL, MORE])
    fine = write("anthropic", [("user", "Hi.")])

    def call(client: Any, histories: Any) -> Any:
        messages = client.beta.messages if beta else client.messages
        params = [{"model": "m", "max_tokens": 9, "messages": each} for each in histories]
        return messages.batches.create(
            requests=[{"custom_id": f"request-{place}", "params": each} for place, each in enumerate(params)]
        )

    (payload,) = sent("anthropic", call, [fine, broken], asynchronous=asynchronous)
    assert [request["custom_id"] for request in payload["requests"]] == ["request-0", "request-1"]
    first, second = [request["params"] for request in payload["requests"]]
    assert first == {"model": "m", "max_tokens": 9, "messages": fine}
    assert [atom[0] for atom in flat(second["messages"])] == ["text", "call", "result", "text"]
    assert FIELDS["anthropic"] in second


FIRST: dict[str, Callable[[Any], Any]] = {
    "create": lambda c: c.responses.create(model="m", input="tide?"),
    "create stream": lambda c: c.responses.create(model="m", input="tide?", stream=True),
    "stream": lambda c: c.responses.stream(model="m", input="tide?"),
    "parse": lambda c: c.responses.parse(model="m", input="tide?"),
    "raw": lambda c: c.responses.with_raw_response.create(model="m", input="tide?"),
}


async def take(given: Any) -> None:
    """Take all that a request gives, as a program would."""

    def take_now(given: Any) -> None:
        if hasattr(given, "__enter__"):
            with given as opened:
                list(opened)
        elif hasattr(given, "parse"):
            given.parse()

    given = await given if inspect.isawaitable(given) else given
    if hasattr(given, "__aenter__"):
        async with given as opened:
            _ = [event async for event in opened]
    else:
        await asyncio.to_thread(take_now, given)


def gone_on(first: Callable[[Any], Any], second: dict[str, Any], *, asynchronous: bool, conversation: str = "") -> Any:
    """Make a request that is answered with two calls, and another one that goes on with it; return its payload."""
    reply = call_reply(("call_1", "pay", '{"eur": 5}'), ("call_2", "pay", '{"eur": 7}'))

    def answer(asked: Any) -> Any:
        stream = bool(asked.payload.get("stream"))
        whole_reply = json.loads(whole("openai-responses", reply).pieces[0])
        if conversation:
            return json_answer({**whole_reply, "conversation": {"id": conversation}})
        return streamed("openai-responses", reply) if stream else json_answer(whole_reply)

    async def use(server: Loopback) -> None:
        async with plain_client("openai-responses", server.url, asynchronous=asynchronous) as client:
            wrapped = wrap(client)
            await take(await asyncio.to_thread(first, wrapped) if not asynchronous else first(wrapped))
            again = wrapped.with_options(max_retries=0)
            await send(again, lambda c, _: c.responses.create(model="m", **second), None)

    return talk("openai-responses", use, answer)[-1].payload


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("first", FIRST.values(), ids=FIRST)
def test_calls_that_the_service_keeps_are_answered(first: Callable[[Any], Any], asynchronous: bool):
    known = json.loads(whole("openai-responses", call_reply(("call_1", "pay", "{}"))).pieces[0])["id"]
    payload = gone_on(first, {"previous_response_id": known, "input": "Never mind."}, asynchronous=asynchronous)
    outputs = [(item["type"], item["call_id"]) for item in payload["input"][:2]]
    assert outputs == [("function_call_output", "call_1"), ("function_call_output", "call_2")]
    assert "may or may not have run" in payload["input"][0]["output"]
    assert payload["input"][2:] == [{"role": "user", "content": "Never mind."}]


def test_a_call_that_the_request_answers_itself_is_left_to_it():
    known = json.loads(whole("openai-responses", call_reply(("call_1", "pay", "{}"))).pieces[0])["id"]
    paid = {"type": "function_call_output", "call_id": "call_2", "output": "paid"}
    payload = gone_on(FIRST["create"], {"previous_response_id": known, "input": [paid]}, asynchronous=False)
    assert [item["call_id"] for item in payload["input"]] == ["call_1", "call_2"]
    assert payload["input"][1] == paid


@pytest.mark.parametrize("given", ["conv_1", {"id": "conv_1"}], ids=["id", "object"])
def test_calls_in_a_conversation_that_the_service_keeps_are_answered(given: Any):
    payload = gone_on(
        lambda c: c.responses.create(model="m", input="tide?", conversation="conv_1"),
        {"conversation": given, "input": "Never mind."},
        asynchronous=False,
        conversation="conv_1",
    )
    assert [item.get("call_id") for item in payload["input"]] == ["call_1", "call_2", None]


def test_a_response_that_nobody_saw_is_gone_on_with_as_it_was_asked():
    payload = gone_on(FIRST["create"], {"previous_response_id": "resp_x", "input": "Go on."}, asynchronous=False)
    assert payload["input"] == "Go on."


def test_an_output_whose_call_was_answered_in_its_absence_is_told_as_text():
    """The user talked of something else while an approval was pending; then it was given, and the tool ran."""
    said = json.loads(whole("openai-responses", text_reply()).pieces[0])
    called = json.loads(whole("openai-responses", call_reply(("call_1", "pay", "{}"))).pieces[0])
    paid = {"type": "function_call_output", "call_id": "call_1", "output": "paid"}

    async def use(server: Loopback) -> None:
        async with plain_client("openai-responses", server.url) as client:
            wrapped = wrap(client)
            await send(wrapped, lambda c, i: c.responses.create(model="m", input=i), "Pay.")
            for known, items in (("resp_1", "And the tide?"), ("resp_2", [paid])):
                await send(
                    wrapped,
                    lambda c, i, known=known: c.responses.create(model="m", input=i, previous_response_id=known),
                    items,
                )

    answers = [json_answer({**reply, "id": f"resp_{n}"}) for n, reply in ((1, called), (2, said), (3, said))]
    _, talk_on, approved = [asked.payload["input"] for asked in talk("openai-responses", use, answers)]
    assert [item.get("call_id") for item in talk_on] == ["call_1", None]
    assert [atom[0] for atom in flat(approved)] == ["text"]
    assert "paid" in str(approved)
