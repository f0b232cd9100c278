"""Histories that trip repairers, in real agents: what the model receives, and what a provider would be sent."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, NamedTuple, cast

import deepagents.middleware.patch_tool_calls as theirs
import pytest
from langchain.agents.middleware import AgentMiddleware
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import (
    AnyMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)
from langgraph.checkpoint.memory import InMemorySaver

from suture.integrations.langchain import PatchToolCallsMiddleware
from tests.guests.langchain.broken_histories import HISTORIES, Broken, human
from tests.guests.langchain.judges import calls_of, groups, joined, kinds, message_faults
from tests.guests.langchain.recording import RecordingModel, asks
from tests.guests.langchain.talks import BUILDERS, each_builder_and_manner
from tests.guests.scenarios.with_langchain import model
from tests.guests.strict_provider import Script, StrictServer

THREADS = count()

each_history = pytest.mark.parametrize("history", HISTORIES, ids=lambda each: f"{each.id} {each.what}")
each_builder = pytest.mark.parametrize(
    "builder", ["create_agent", pytest.param("create_deep_agent", marks=pytest.mark.soak)]
)


class Met(NamedTuple):
    """A history that was met: the thread's config, and what the model received."""

    config: Any
    received: list[BaseMessage]


@dataclass(frozen=True, repr=False)
class Room:
    """An agent that all histories share, each in a thread of its own."""

    agent: Any
    model: Any
    met: dict[tuple[str, str], "Met"] = field(default_factory=dict)

    def ask(self, config: Any, messages: Sequence[Any], manner: str = "sync") -> Any:
        """Give the agent these messages."""
        if manner == "async":
            return asyncio.run(self.agent.ainvoke({"messages": list(messages)}, config))
        return self.agent.invoke({"messages": list(messages)}, config)

    def once(self, history: Broken, manner: str = "sync") -> Met:
        """Meet a history, once for all tests that look at what came of it."""
        key = history.id, manner
        if key not in self.met:
            config = self.meet(history, manner)
            self.met[key] = Met(config, self.model.sent[-1])
        return self.met[key]

    def meet(self, history: Broken, manner: str = "sync") -> Any:
        """Bring the agent to the history in the way that it would be met; returns the config of the thread."""
        config = {"configurable": {"thread_id": f"{history.id}-{next(THREADS)}"}}
        messages = [each.model_copy(deep=True) if isinstance(each, BaseMessage) else each for each in history.messages]
        if history.met == "tail":
            self.ask(config, messages, manner)
            return config
        if history.met == "state":
            self.ask(config, [HumanMessage("Hello.")], manner)
            self.agent.update_state(config, {"messages": messages}, as_node="model")
            messages = []
        self.ask(config, [*messages, HumanMessage("And now?")], manner)
        return config


def _room(builder: str, model: BaseChatModel, middleware: Any) -> Room:
    agent = BUILDERS[builder](model=model, tools=[], middleware=[middleware], checkpointer=InMemorySaver())
    return Room(agent, model)


@pytest.fixture(scope="module")
def ours() -> dict[str, Room]:
    return {name: _room(name, RecordingModel(), PatchToolCallsMiddleware()) for name in BUILDERS}


@pytest.fixture(scope="module")
def original() -> dict[str, Room]:
    return {name: _room(name, RecordingModel(), theirs.PatchToolCallsMiddleware()) for name in BUILDERS}


@pytest.fixture(scope="module")
def provider(strict: StrictServer) -> Script:
    return strict.script()


@pytest.fixture(scope="module")
def on_the_wire(provider: Script) -> dict[tuple[str, str], Room]:
    """Return agents whose models are the real ones, and talk to the strict provider."""
    apis = {"chat", "responses", "messages", "gemini"}
    models = {api: model(api, provider.url) for api in apis}
    return {(each, api): _room(each, models[api], PatchToolCallsMiddleware()) for each in BUILDERS for api in apis}


def _pairs(messages: Sequence[BaseMessage]) -> list[tuple[str, ToolMessage]]:
    """Return the name of each call and its result, in the order of the calls."""
    pairs: list[tuple[str, ToolMessage]] = []
    for turn, results in groups(messages)[0]:
        by_id = {message.tool_call_id: message for message in results}
        pairs += [(name, by_id[identity]) for identity, name in calls_of(turn)]
    return pairs


def _is_default_text(text: Any, ids: Sequence[Any], name: str) -> bool:
    """Tell whether this is the placeholder of a call: it names the call's own id, or the one that the model sees."""
    ends = (
        " was cancelled - another message came in before it could be completed.",
        " could not be executed - arguments were malformed or truncated.",
        " has no recorded result - it may or may not have run. Check before running it again.",
    )
    if all(ids) and name:
        return text in {f"Tool call {name} with id {each}{end}" for each in ids for end in ends}
    return text.startswith(f"Tool call {name}") and text.endswith(ends)


@each_builder_and_manner
@each_history
def test_the_model_receives_a_history_that_every_provider_accepts(
    ours: dict[str, Room], history: Broken, builder: str, manner: str
):
    faults = message_faults(ours[builder].once(history, manner).received, strict_ids=True)
    assert faults == []


@each_builder
@each_history
def test_each_real_result_stands_with_its_own_call_and_all_else_is_a_placeholder(
    ours: dict[str, Room], history: Broken, builder: str
):
    received = ours[builder].once(history).received
    asked = [pair for message in convert_to_messages(history.messages) for pair in calls_of(message)]
    pairs = _pairs(received)
    assert len(pairs) == len(asked) == len(history.answers)
    for (identity, name), (_, answer), expected in zip(asked, pairs, history.answers, strict=True):
        if expected is not None:
            assert answer.content == expected
        else:
            assert _is_default_text(answer.content, [identity, answer.tool_call_id], name), answer.content
            assert answer.status == "error"


@each_builder
@each_history
def test_no_real_result_is_lost(ours: dict[str, Room], history: Broken, builder: str):
    received = ours[builder].once(history).received
    told = "\n".join(message.text for message in received if isinstance(message, HumanMessage))
    results: list[str] = [message.text for message in received if isinstance(message, ToolMessage)]
    for text in history.texts:
        assert told.count(text) == 1
        assert not any(text in each for each in results)
    for text in filter(None, history.answers):
        assert results.count(text) == 1
        assert text not in told
    for text in history.superseded:
        assert not any(text in each for each in results)


@each_builder
@each_history
def test_the_pairing_is_mended_for_good_in_the_thread(ours: dict[str, Room], history: Broken, builder: str):
    room = ours[builder]
    config, _ = room.once(history)
    kept = cast("list[AnyMessage]", room.agent.get_state(config).values["messages"])
    assert "pairing" not in kinds(message_faults(joined(kept)))
    assert kept[-1].text == "done"
    humans = [each.text for each in convert_to_messages(history.messages) if isinstance(each, HumanMessage)]
    found = [each.text for each in kept if isinstance(each, HumanMessage)]
    assert [text for text in found if text in humans] == humans


@each_builder
@each_history
def test_the_next_request_begins_with_the_one_before(ours: dict[str, Room], history: Broken, builder: str):
    room = ours[builder]
    config, before = room.once(history, "async")
    room.ask(config, [HumanMessage("Anything else?")])
    after = room.model.sent[-1][: len(before)]
    assert _seen(after) == _seen(before)


def _seen(messages: Sequence[BaseMessage]) -> list[Any]:
    """Return what a provider would see of messages."""
    return [(each.type, each.content, calls_of(each), getattr(each, "tool_call_id", None)) for each in messages]


def test_a_valid_history_is_not_written_again(ours: dict[str, Room]):
    for history in HISTORIES[:5]:
        room = ours["create_agent"]
        config, _ = room.once(history)
        saved = [each for each in room.agent.get_state_history(config) if each.values.get("messages")]
        ids = [each.id for each in saved[0].values["messages"]]
        for earlier in saved:
            known = [each.id for each in earlier.values["messages"]]
            assert ids[: len(known)] == known


ON_THE_WIRE = [
    ("create_agent", "chat"),
    ("create_agent", "responses"),
    ("create_agent", "messages"),
    ("create_agent", "gemini"),
    pytest.param("create_deep_agent", "chat", marks=pytest.mark.soak),
    pytest.param("create_deep_agent", "messages", marks=pytest.mark.soak),
]


@pytest.mark.parametrize(("builder", "api"), ON_THE_WIRE)
@each_history
def test_the_provider_accepts_what_it_is_sent(
    on_the_wire: dict[tuple[str, str], Room], provider: Script, history: Broken, builder: str, api: str
):
    if api == "messages" and any(isinstance(each, SystemMessage) for each in history.messages):
        pytest.skip("langchain-anthropic refuses a system message in the middle, whatever stands around it")
    on_the_wire[builder, api].meet(history)
    sent = json.dumps(provider.bodies[-1])
    for text in [*filter(None, history.answers), *history.texts]:
        assert text in sent


class AnotherModel(AgentMiddleware[Any, Any, Any]):
    """Asks another model than the agent's."""

    def __init__(self, model: BaseChatModel) -> None:
        super().__init__()
        self.model = model

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        return handler(request.override(model=self.model))


@pytest.mark.parametrize("place", ["first", "last"])
@pytest.mark.parametrize(("builder", "api"), ON_THE_WIRE)
def test_ids_are_legal_for_the_model_that_another_middleware_chose(
    on_the_wire: dict[tuple[str, str], Room], builder: str, api: str, place: str
):
    patch, other = PatchToolCallsMiddleware(), AnotherModel(on_the_wire[builder, api].model)
    middleware = [patch, other] if place == "first" else [other, patch]
    agent = BUILDERS[builder](model=RecordingModel(), tools=[], middleware=middleware)
    agent.invoke({"messages": [human(), asks("i" * 80), human(), asks("a.b|c"), human(), asks("a.b|c"), human()]})


def test_a_profile_that_was_named_has_what_langchains_own_model_demands(provider: Script, on_the_wire: Any):
    model = on_the_wire["create_agent", "gemini"].model
    agent = BUILDERS["create_agent"](model=model, tools=[], middleware=[PatchToolCallsMiddleware(profile="gemini")])
    twice = [human(), asks("a"), ToolMessage("one", tool_call_id="a"), asks("a"), ToolMessage("two", tool_call_id="a")]
    agent.invoke({"messages": [*twice, human()]})
    sent = json.dumps(provider.bodies[-1])
    assert "one" in sent
    assert "two" in sent


NEUTRAL = " - no result was recorded. It may have been cancelled or interrupted."


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, "Tool call pay with id {} was cancelled - another message came in before it could be completed."),
        ({"generator": "{} gave nothing".format}, "pay gave nothing"),
        ({"text": "neutral"}, f"Tool call pay with id {{}} did not complete{NEUTRAL}"),
    ],
)
def test_a_placeholder_keeps_its_words_when_the_id_of_its_call_must_change(options: dict[str, Any], expected: str):
    room = _room("create_agent", RecordingModel(), PatchToolCallsMiddleware(**options))
    room.ask({"configurable": {"thread_id": "words"}}, [human(), asks("a"), human(), asks("a"), human()])
    first, second = [each for each in room.model.sent[-1] if isinstance(each, ToolMessage)]
    assert second.tool_call_id != "a"
    assert first.content == expected.format("a")
    assert second.content in {expected.format("a"), expected.format(second.tool_call_id)}


@pytest.mark.soak
@each_builder
@each_history
def test_what_deepagents_own_middleware_leaves_is_what_the_table_says(
    original: dict[str, Room], history: Broken, builder: str
):
    left = kinds(message_faults(original[builder].once(history).received))
    assert left == history.left
    if history.table == "invalid":
        assert left
    elif history.table != "variant":
        assert "pairing" not in left
