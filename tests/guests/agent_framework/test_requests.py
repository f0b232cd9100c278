"""Every request of an agent is mended at the last moment, whatever stands before; and nothing of it is kept."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatContext,
    ChatMiddleware,
    Content,
    InMemoryHistoryProvider,
    Message,
    tool,
)
from agent_framework.exceptions import ChatClientException

from suture.integrations.agent_framework import wrap
from tests.guests.agent_framework.talking import FakeClient, call, flat, result, run, tides, write
from tests.guests.releases import since

BROKEN = [("user", "When?"), ("turn", [("a", "tides", "{}")]), ("user", "Stop.")]
UNKNOWN = (
    "Tool call tides with id a has no recorded result - it may or may not have run. Check before running it again."
)
UNKNOWN = (
    "Tool call tides with id a has no recorded result - it may or may not have run. Check before running it again."
)
MENDED = [
    ("text", "user", "When?"),
    ("call", "a", "tides"),
    ("result", "a", UNKNOWN),
    ("text", "user", "Stop."),
]
streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


# In the tool loop


@streamed_or_not
def test_every_request_of_a_tool_loop_is_whole(stream: bool):
    client = FakeClient([call("c1")], [call("c2"), call("c3", arguments='{"port": "Hull"}')], "At six.")
    agent = Agent(client=wrap(client), tools=[tides])
    response = asyncio.run(run(agent, write(BROKEN), stream=stream))
    first = [("call", "c1", "tides"), ("result", "c1", "06:12 in Dover")]
    second = [
        ("call", "c2", "tides"),
        ("call", "c3", "tides"),
        ("result", "c2", "06:12 in Dover"),
        ("result", "c3", "06:12 in Hull"),
    ]
    assert [flat(sent) for sent in client.sent] == [MENDED, [*MENDED, *first], [*MENDED, *first, *second]]
    assert response.text == "At six."
    assert flat(response.messages) == [*first, *second, ("text", "assistant", "At six.")]


class Forgetful(ChatMiddleware):
    """Sends all but the first message that holds a result."""

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        results = [message for message in context.messages if message.role == "tool"]
        context.messages = [message for message in context.messages if message not in results[:1]]
        await call_next()


@streamed_or_not
@pytest.mark.parametrize("place", ["agent", "client", "run"])
def test_what_a_middleware_breaks_is_mended(place: str, stream: bool):
    client = FakeClient([call("a")], "Well.", middleware=[Forgetful()] if place == "client" else None)
    agent = Agent(client=wrap(client), tools=[tides], middleware=[Forgetful()] if place == "agent" else None)
    named = {"middleware": [Forgetful()]} if place == "run" else {}
    asyncio.run(run(agent, "When?", stream=stream, **named))
    assert flat(client.sent[1]) == [("text", "user", "When?"), ("call", "a", "tides"), ("result", "a", UNKNOWN)]


async def _without_the_first(messages: list[Message]) -> bool:
    """Compact a list in a manner that nobody should: by a message, not by a group."""
    del messages[0]
    return True


@streamed_or_not
@pytest.mark.parametrize("place", ["agent", "client", "run"])
def test_what_compaction_breaks_is_mended(place: str, stream: bool):
    settings: Any = {"compaction_strategy": _without_the_first}
    client = FakeClient(**settings if place == "client" else {})
    agent = Agent(client=wrap(client), **settings if place == "agent" else {})
    history = write([("turn", [("a", "tides", "{}")]), ("result", "a", "tides", "06:12"), ("user", "Go on.")])
    asyncio.run(run(agent, history, stream=stream, **settings if place == "run" else {}))
    assert [atom[0] for atom in flat(client.sent[0])] == ["text", "text"]
    assert "06:12" in client.sent[0][0].text


# Where history is loaded and kept for each request


def per_request(client: FakeClient) -> tuple[Agent[Any], InMemoryHistoryProvider]:
    """Return an agent that loads its history before each request and keeps it after each."""
    provider = InMemoryHistoryProvider()
    agent = Agent(
        client=client,
        tools=[tides],
        context_providers=[provider],
        require_per_service_call_history_persistence=True,
    )
    return agent, provider


async def seeded(provider: InMemoryHistoryProvider, history: Sequence[Message]) -> tuple[AgentSession, dict[str, Any]]:
    session = AgentSession()
    state = session.state.setdefault(provider.source_id, {})
    await provider.save_messages(session.session_id, list(history), state=state)
    return session, state


@streamed_or_not
def test_a_history_that_is_loaded_for_each_request_is_mended_and_kept_as_it_was(stream: bool):
    client = FakeClient([call("c1")], "At six.")
    agent, provider = per_request(wrap(client))

    async def main() -> list[Message]:
        session, state = await seeded(provider, write(BROKEN))
        await run(agent, "Go on.", stream=stream, session=session)
        return await provider.get_messages(session.session_id, state=state)

    kept = asyncio.run(main())
    turn = [("text", "user", "Go on."), ("call", "c1", "tides"), ("result", "c1", "06:12 in Dover")]
    assert [flat(sent) for sent in client.sent] == [[*MENDED, turn[0]], [*MENDED, *turn]]
    assert flat(kept) == [*flat(write(BROKEN)), *turn, ("text", "assistant", "At six.")]


def test_a_result_that_is_given_for_a_stored_call_answers_it():
    client = FakeClient()
    agent, provider = per_request(wrap(client))

    async def main() -> None:
        session, _ = await seeded(provider, write(BROKEN[:2]))
        await run(agent, [Message("tool", [result("a")])], session=session)

    asyncio.run(main())
    assert flat(client.sent[0]) == [*MENDED[:2], ("result", "a", "06:12")]


# Where the service keeps the conversation


@streamed_or_not
def test_results_of_calls_that_the_service_keeps_stay_results(stream: bool):
    client = FakeClient([call("c1"), call("c2")], "At six.", conversation_id="conv_1")
    agent = Agent(client=wrap(client), tools=[tides])
    asyncio.run(run(agent, "When?", stream=stream))
    assert flat(client.sent[1]) == [("result", "c1", "06:12 in Dover"), ("result", "c2", "06:12 in Dover")]
    assert client.asked[1]["conversation_id"] == "conv_1"


@pytest.mark.parametrize(
    "options",
    [
        {"conversation_id": "conv_1"},
        {"conversation": "conv_1"},
        {"conversation": {"id": "conv_1"}},
        {"previous_response_id": "conv_1"},
    ],
    ids=str,
)
def test_what_is_new_in_a_kept_conversation_is_mended(options: Any):
    client = FakeClient()
    history = [Message("tool", [result("held")]), *write(BROKEN)]
    asyncio.run(run(Agent(client=wrap(client)), history, options=options))
    assert flat(client.sent[0]) == [("result", "held", "06:12"), *MENDED]
    assert [message.role for message in client.sent[0]] == ["tool", "user", "assistant", "tool", "user"]


def test_no_id_that_the_service_knows_is_changed():
    client = FakeClient()
    history = [Message("assistant", [call("fn.read:0")]), Message("user", ["Stop."])]
    asyncio.run(run(Agent(client=wrap(client)), history, options={"conversation_id": "conv_1"}))
    assert [atom[:2] for atom in flat(client.sent[0])[:2]] == [("call", "fn.read:0"), ("result", "fn.read:0")]


def test_a_session_of_the_service_is_known():
    client = FakeClient()
    session = AgentSession(service_session_id="conv_1")
    asyncio.run(run(Agent(client=wrap(client)), [Message("tool", [result("held")])], session=session))
    assert flat(client.sent[0]) == [("result", "held", "06:12")]


def test_without_one_such_a_result_is_an_orphan():
    client = FakeClient()
    asyncio.run(run(Agent(client=wrap(client)), [Message("tool", [result("held")])]))
    assert [(message.role, atom[0]) for message, atom in zip(client.sent[0], flat(client.sent[0]), strict=True)] == [
        ("user", "text")
    ]


# Approvals


@tool(approval_mode="always_require")
def open_gate(number: int = 1) -> str:
    """Open a lock gate."""
    return f"gate {number} is open"


def approving(client: FakeClient, *, approved: bool) -> tuple[list[Any], list[Any]]:
    """Ask for an approval, talk of something else, then decide; return what was sent, and what came of it."""
    agent = Agent(client=client, tools=[open_gate])
    said: list[Any] = []

    async def main() -> None:
        session = AgentSession()
        asked = await agent.run("Open it.", session=session)
        (request,) = asked.user_input_requests
        said.append(await agent.run("And the weather?", session=session))
        decision = request.to_function_approval_response(approved)
        said.append(await agent.run(Message("user", [decision]), session=session))

    asyncio.run(main())
    return [flat(sent) for sent in client.sent], [flat(response.messages) for response in said]


@since("agent-framework-core", "1.13", "a request without the calls that wait for approval")
@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_stays_pending_until_it_is_decided(approved: bool):
    """Its result comes late, behind what was said meanwhile: the framework sends it there."""

    def client() -> FakeClient:
        return FakeClient([call("a", "open_gate")], "Rain.", "Very well.")

    mended, said = approving(wrap(client()), approved=approved)
    sent, said_without = approving(client(), approved=approved)
    assert said == said_without
    assert mended[:2] == sent[:2]
    ask, opened = ("text", "user", "Open it."), ("call", "a", "open_gate")
    outcome = ("result", "a", "gate 1 is open" if approved else "Error: Tool call invocation was rejected by user.")
    meanwhile = [("text", "user", "And the weather?"), ("text", "assistant", "Rain.")]
    assert sent[2] == [ask, opened, *meanwhile, outcome]
    assert mended[2] == [ask, opened, outcome, *meanwhile]


# The client


class Bare(BaseChatClient[Any]):
    """A client without layers: it is sent what it is given."""

    def __init__(self) -> None:
        super().__init__()
        self.sent: list[Any] = []

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        del stream, options, kwargs
        self.sent.append(messages)

        async def refuse() -> Any:
            raise ChatClientException("No.")

        return refuse()


def bare_sent(messages: Any) -> Any:
    client = Bare()

    async def main() -> None:
        with pytest.raises(ChatClientException, match=r"No\."):
            await wrap(client).get_response(messages)

    asyncio.run(main())
    return client.sent[0]


def test_a_list_that_needs_nothing_is_the_very_same_object():
    fine = write([*BROKEN[:2], ("result", "a", "tides", "06:12"), ("user", "Go on.")])
    assert bare_sent(fine) is fine
    broken = write(BROKEN)
    sent = bare_sent(broken)
    assert flat(sent) == MENDED
    assert [sent[0], sent[1], sent[3]] == broken


def test_what_cannot_be_read_is_sent_as_it_is():
    strange: Any = [*write(BROKEN), {"role": "user", "content": "hi"}]
    assert bare_sent(strange) is strange


def test_the_given_client_stays_as_it_is():
    client = FakeClient()
    before = dict(vars(client))
    wrapped = wrap(client)
    assert dict(vars(client)) == before
    assert type(wrapped) is FakeClient
    assert wrapped is not client
    assert wrapped.to_dict() == client.to_dict()
    asyncio.run(run(Agent(client=client), write(BROKEN)))
    assert flat(client.sent[0]) == flat(write(BROKEN))


def test_a_client_makes_agents_of_its_own():
    client = FakeClient()
    asyncio.run(run(wrap(client).as_agent(), write(BROKEN)))
    assert flat(client.sent[0]) == MENDED


def test_many_runs_at_once_each_send_their_own_history():
    client = FakeClient()
    agent = Agent(client=wrap(client))

    async def main() -> None:
        histories = [
            [Message("user", [f"{number}"]), Message("assistant", [call(f"call_{number}")]), Message("user", ["Stop."])]
            for number in range(24)
        ]
        await asyncio.gather(*[run(agent, history) for history in histories])

    asyncio.run(main())
    ids = sorted(tuple(atom[1] for atom in flat(sent)[1:3]) for sent in client.sent)
    assert ids == sorted((f"call_{number}", f"call_{number}") for number in range(24))


def test_a_mended_message_keeps_what_else_it_holds():
    client = FakeClient()
    turn = Message(
        "assistant",
        [call("fn.read:0", additional_properties={"theirs": 1}, raw_representation="raw"), Content.from_text("So.")],
        author_name="Ada",
        message_id="m1",
        additional_properties={"mine": 2},
    )
    answer = Message("tool", [result("fn.read:0", exception="late")], message_id="m2")
    asyncio.run(run(Agent(client=wrap(client)), [turn, answer, Message("user", ["Go on."])]))
    sent_turn, sent_answer, _ = client.sent[0]
    (new_id,) = {content.call_id for content in (*sent_turn.contents, *sent_answer.contents) if content.call_id}
    assert new_id.startswith("toolu_")
    assert (sent_turn.author_name, sent_turn.message_id, sent_turn.additional_properties["mine"]) == ("Ada", "m1", 2)
    moved = next(content for content in sent_turn.contents if content.type == "function_call")
    assert (moved.additional_properties, moved.raw_representation) == ({"theirs": 1}, "raw")
    assert (sent_answer.message_id, sent_answer.contents[0].exception) == ("m2", "late")
    assert turn.contents[0].call_id == answer.contents[0].call_id == "fn.read:0"
