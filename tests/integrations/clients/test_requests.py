"""A wrapped client changes the history of a request and nothing else, and leaves what it does not understand."""

import asyncio
from typing import Any

import anthropic
import openai
import pytest
from openai._models import FinalRequestOptions

from tests.histories import flat, write
from tests.integrations.clients.sending import (
    CREATE,
    FIELDS,
    METHODS,
    WIRES,
    Method,
    answered,
    plain_client,
    send,
    talk,
    wrap,
)
from tests.models.loopback import Answer, Asked, Loopback, json_answer
from tests.models.providers import call_reply, error_body, refusal, text_reply, whole

pytestmark = pytest.mark.usefixtures("surroundings")
BROKEN = [("user", "When is high tide?"), ("turn", [("a", "tides", "{}")]), ("user", "Stop.")]
WHOLE = [*BROKEN[:2], ("result", "a", "tides", "06:12"), ("user", "Go on.")]
PATHS = {"openai-chat": "/chat/completions", "openai-responses": "responses", "anthropic": "/v1/messages"}
UNKNOWN = (
    "Tool call tides with id {id} has no recorded result - it may or may not have run. Check before running it again."
)
RESPONSE: Any = object
"""What `post` is told to return; any type does."""


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.wire} {method.name}")
def test_all_else_of_a_request_is_byte_for_byte_what_the_plain_client_sends(method: Method, asynchronous: bool):
    async def use(server: Loopback) -> None:
        async with plain_client(method.wire, server.url, asynchronous=asynchronous) as client:
            await send(wrap(client), method.call, write(method.wire, BROKEN))
            mended = server.requests[0].payload[FIELDS[method.wire]]
            await send(client, method.call, mended)
            assert mended != write(method.wire, BROKEN)

    ours, plain = talk(method.wire, use)
    assert ours == plain


@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.wire} {method.name}")
def test_a_whole_history_goes_out_and_a_reply_comes_back_as_without_us(method: Method):
    replies: list[Any] = []

    async def use(server: Loopback) -> None:
        async with plain_client(method.wire, server.url) as client:
            replies.extend(
                [await send(each, method.call, write(method.wire, WHOLE)) for each in (wrap(client), client)]
            )

    ours, plain = talk(method.wire, use)
    assert ours == plain
    assert [str(type(reply)) for reply in replies] == [str(type(replies[1]))] * 2
    if not method.name.startswith("raw"):
        assert replies[0] == replies[1]


class Recording:
    """What a client of the user's own adds: it sees the options of each request, and sends nothing."""

    seen: list[Any]

    def request(self, cast_to: Any, options: Any, *rest: Any, **named: Any) -> Any:
        self.seen.append(options)


class RecordingOpenAI(Recording, openai.OpenAI):
    """Sees what OpenAI would be sent."""


class RecordingAnthropic(Recording, anthropic.Anthropic):
    """Sees what Anthropic would be sent."""


def passed_on(body: Any, path: str = "/chat/completions", kind: Any = RecordingOpenAI) -> tuple[Any, Any]:
    """Return the options of a request to a wrapped client, and those that the client below it was given."""
    with kind(api_key="none") as client:
        wrapped = wrap(client)
        wrapped.seen = []
        options = FinalRequestOptions.construct(method="post", url=path, json_data=body)
        wrapped.request(RESPONSE, options)
    return options, wrapped.seen[0]


@pytest.mark.parametrize("listed", [list, tuple])
def test_the_options_of_a_request_that_needs_nothing_are_the_very_same_object(listed: Any):
    given, seen = passed_on({"messages": listed(write("openai-chat", WHOLE))})
    assert seen is given


def test_the_options_of_a_batch_that_needs_nothing_are_the_very_same_object():
    fine = {"custom_id": "a", "params": {"messages": write("anthropic", WHOLE)}}
    given, seen = passed_on({"requests": [fine, fine]}, "/v1/messages/batches", RecordingAnthropic)
    assert seen is given
    given, seen = passed_on({"requests": "nonsense"}, "/v1/messages/batches", RecordingAnthropic)
    assert seen is given
    given, seen = passed_on({"requests": ["nonsense", {"params": 7}]}, "/v1/messages/batches", RecordingAnthropic)
    assert seen is given


def test_the_options_of_a_request_that_is_mended_are_not_written_into():
    broken = write("openai-chat", BROKEN)
    given, seen = passed_on({"messages": broken})
    assert given.json_data["messages"] is broken
    assert broken == write("openai-chat", BROKEN)
    assert len(seen.json_data["messages"]) == len(broken) + 1


def test_what_holds_itself_is_left_to_the_client():
    endless: list[Any] = []
    endless.append(endless)
    given, seen = passed_on({"messages": [{"role": "user", "content": endless}]})
    assert seen is given


@pytest.mark.parametrize("wire", WIRES)
def test_what_a_program_writes_into_its_messages_is_seen(wire: str):
    """A message that was sent before may be another one now."""
    history = write(wire, BROKEN)

    async def use(server: Loopback) -> None:
        async with plain_client(wire, server.url, asynchronous=True) as client:
            wrapped = wrap(client)
            await wrapped.post(PATHS[wire], body={"model": "m", FIELDS[wire]: history}, cast_to=RESPONSE)
            history[1] |= write(wire, [("turn", [("b", "gates", "{}")])])[0]
            history[2].clear()
            history[2] |= write(wire, [("result", "b", "gates", "shut")])[0]
            await wrapped.post(PATHS[wire], body={"model": "m", FIELDS[wire]: history}, cast_to=RESPONSE)

    first, second = talk(wire, use)
    assert [atom[0] for atom in flat(first.payload[FIELDS[wire]])] == ["text", "call", "result", "text"]
    assert second.payload[FIELDS[wire]] == history


def test_what_is_no_history_is_left_as_it_is():
    def answer(asked: Asked) -> Answer:
        del asked
        return json_answer({})

    body = {"messages": write("openai-chat", BROKEN), "input": write("openai-responses", BROKEN)}

    async def use(server: Loopback) -> None:
        async with plain_client("openai-chat", server.url, asynchronous=True) as client:
            wrapped = wrap(client)
            for path in ("/embeddings", "/chat/completions/x", "/threads", "/responses/x/cancel"):
                await wrapped.post(path, body=body, cast_to=RESPONSE)
            await wrapped.patch("/chat/completions", body=body, cast_to=RESPONSE)
            await wrapped.post("/responses", body={"input": "When is high tide?"}, cast_to=RESPONSE)
            await wrapped.post("/responses", cast_to=RESPONSE)

    sent = talk("openai-chat", use, answer)
    assert [asked.payload for asked in sent[:5]] == [body] * 5
    assert sent[5].payload == {"input": "When is high tide?"}
    assert sent[6].body == b""


NONSENSE: dict[str, Any] = {
    "an unknown role": [{"role": "alien", "content": "hi"}],
    "no role": [{"content": "hi"}],
    "a number for a content": [{"role": "user", "content": 7}],
    "no list": {"role": "user", "content": "hi"},
    "texts": ["hi"],
    "nothing": None,
    "an empty list": [],
    "a call without a shape": [{"role": "assistant", "tool_calls": ["tides"], "content": [7]}],
}


@pytest.mark.parametrize("messages", NONSENSE.values(), ids=NONSENSE)
@pytest.mark.parametrize("wire", WIRES)
def test_what_cannot_be_read_is_sent_as_it_is(wire: str, messages: Any):
    body = {"model": "m", FIELDS[wire]: messages}

    async def use(server: Loopback) -> None:
        async with plain_client(wire, server.url, asynchronous=True) as client:
            await wrap(client).post(PATHS[wire], body=body, cast_to=RESPONSE)

    (asked,) = talk(wire, use)
    assert asked.payload == body


@pytest.mark.parametrize("wire", WIRES)
def test_what_is_given_as_extra_body_wins_as_before(wire: str):
    given = {FIELDS[wire]: write(wire, BROKEN)}

    async def use(server: Loopback) -> None:
        async with plain_client(wire, server.url) as client:

            def call(client: Any, messages: Any) -> Any:
                return CREATE[wire].call(client.with_options(), messages)

            def extra(client: Any, messages: Any) -> Any:
                del messages
                if wire == "anthropic":
                    return client.messages.create(model="m", max_tokens=9, messages=[], extra_body=given)
                if wire == "openai-chat":
                    return client.chat.completions.create(model="m", messages=[], extra_body=given)
                return client.responses.create(model="m", extra_body=given)

            await send(wrap(client), extra, None)
            await send(client, call, write(wire, BROKEN))

    ours, plain = talk(wire, use)
    assert ours.payload == plain.payload


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_refusal_is_the_same_error(wire: str, asynchronous: bool):
    errors: list[Any] = []

    async def use(server: Loopback) -> None:
        async with plain_client(wire, server.url, asynchronous=asynchronous) as client:
            for each in (wrap(client), client):
                with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as raised:
                    await send(each, CREATE[wire].call, write(wire, BROKEN))
                errors.append(raised.value)

    talk(wire, use, [refusal(wire, 400)])
    assert errors[0].status_code == 400
    assert errors[0].body == errors[1].body
    assert str(errors[0]) == str(errors[1])
    assert type(errors[0]) is type(errors[1])
    assert error_body(wire, "No.")["error"]["message"] in str(errors[0])


@pytest.mark.parametrize("wire", WIRES)
def test_a_retry_sends_the_same_body_again(wire: str):
    replies: list[Any] = []

    async def use(server: Loopback) -> None:
        async with plain_client(wire, server.url, asynchronous=True) as client:
            replies.append(await send(wrap(client), CREATE[wire].call, write(wire, BROKEN)))

    again = refusal(wire, 503, retry_after_ms="1")
    asked = talk(wire, use, [again, again, whole(wire, text_reply())])
    assert len(asked) == 3
    assert len({each.body for each in asked}) == 1
    assert len(flat(asked[0].payload[FIELDS[wire]])) == 4
    assert [each.headers["x-stainless-retry-count"] for each in asked] == ["0", "1", "2"]
    assert len(replies) == 1


@pytest.mark.parametrize("wire", WIRES)
def test_the_sdks_own_objects_are_answered(wire: str):
    """Real programs append what came back to what they send next."""
    ask = write(wire, [("user", "When is high tide?")])
    more = write(wire, [("user", "Stop.")])

    def turn(reply: Any) -> list[Any]:
        if wire == "openai-chat":
            return [reply.choices[0].message]
        return reply.output if wire == "openai-responses" else [{"role": "assistant", "content": reply.content}]

    async def use(server: Loopback) -> None:
        async with plain_client(wire, server.url) as client:
            wrapped = wrap(client)
            reply = await send(wrapped, CREATE[wire].call, ask)
            history = [*ask, *turn(reply), *more]
            await send(wrapped, CREATE[wire].call, history if wire == "openai-responses" else iter(history))

    called = whole(wire, call_reply(("call_1", "tides", '{"port": "Dover"}')))
    _, second = talk(wire, use, [called, whole(wire, text_reply())])
    assert flat(second.payload[FIELDS[wire]]) == [
        ("text", "user", "When is high tide?"),
        ("call", "call_1", "tides"),
        ("result", "call_1", UNKNOWN.format(id="call_1")),
        ("text", "user", "Stop."),
    ]


@pytest.mark.parametrize("asynchronous", [False, True], ids=["sync", "async"])
def test_many_requests_at_once_each_carry_their_own_history(asynchronous: bool):
    def ask(number: int) -> list[Any]:
        return write(
            "anthropic",
            [("user", f"number {number}"), ("turn", [(f"call_{number}", "tides", "{}")]), ("user", "Stop.")],
        )

    async def use(server: Loopback) -> None:
        async with plain_client("anthropic", server.url, asynchronous=asynchronous) as client:
            wrapped = wrap(client)
            await asyncio.gather(
                *[send(wrapped, CREATE["anthropic"].call, ask(number)) for number in range(24)],
            )

    asked = talk("anthropic", use, answered("anthropic"))
    sent = sorted(flat(each.payload["messages"])[:3] for each in asked)
    wanted = sorted(
        [
            ("text", "user", f"number {number}"),
            ("call", f"call_{number}", "tides"),
            ("result", f"call_{number}", UNKNOWN.format(id=f"call_{number}")),
        ]
        for number in range(24)
    )
    assert sent == wanted
