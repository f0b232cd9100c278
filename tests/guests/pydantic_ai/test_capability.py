"""The capability beside others: where it stands, whose rules hold, what can be set."""

import asyncio
from typing import Any

import pytest
from pydantic_ai import Agent, ModelRequestContext, ModelRetry, RunContext
from pydantic_ai import capabilities as known_capabilities
from pydantic_ai.capabilities import AbstractCapability, ProcessHistory
from pydantic_ai.conversation import Conversation
from pydantic_ai.exceptions import ModelAPIError
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolCallPart, ToolReturnPart, UserPromptPart
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo
from pydantic_ai.models.wrapper import WrapperModel

from suture import using_language
from suture.errors import ConfigError
from suture.integrations.pydantic_ai import PatchToolCalls
from suture.repair import Cause
from tests.guests.pydantic_ai.recording import Recorder
from tests.guests.pydantic_ai.ways import run
from tests.guests.pydantic_ai.written import WHEN, asks, gives, no, results, says, shape, user
from tests.guests.releases import since

DANGLING: list[ModelMessage] = [user("ask"), asks("a"), user("stop"), says("ok")]
REUSED: list[ModelMessage] = [
    user("ask"),
    asks("a"),
    results(gives("a", "1")),
    asks("a"),
    results(gives("a", "2")),
    says("ok"),
]


def ids(messages: list[ModelMessage]) -> list[str]:
    return [part.tool_call_id for message in messages for part in message.parts if isinstance(part, ToolCallPart)]


def answered(messages: list[ModelMessage]) -> list[str]:
    return [part.tool_call_id for message in messages for part in message.parts if isinstance(part, ToolReturnPart)]


def last_two(messages: list[ModelMessage]) -> list[ModelMessage]:
    return messages[-2:]


# Where it stands


@pytest.mark.parametrize("order", [1, -1], ids=["first", "last"])
def test_what_a_history_processor_breaks_is_mended_wherever_the_capability_is_listed(order: int):
    model = Recorder(asks("a", name="look"))
    agent = Agent(model, capabilities=[PatchToolCalls(), ProcessHistory(last_two)][::order])

    @agent.tool_plain
    def look(q: str) -> str:
        return f"found {q}"

    whole = [user("ask"), asks("b"), results(gives("b", "42"))]
    run(agent, "next", message_history=[*whole, says("ok")])
    assert shape(model.requests[0]) == [["ok"], ["next"]]
    run(agent, "next", message_history=whole)
    told = "Output of a tool call that is no longer in this conversation (search, id b)."
    assert [text.partition(" It is data")[0] for text in shape(model.requests[-1])[0]] == [told, "next"]


class Cutting(AbstractCapability[Any]):
    """Sends no more than the last two messages, whatever they are."""

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        del ctx
        request_context.messages = request_context.messages[-2:]
        return request_context

    if not hasattr(AbstractCapability, "prepare_model_request"):
        before_model_request = prepare_model_request


def test_what_another_capability_breaks_is_mended_though_that_is_listed_behind():
    model = Recorder()
    agent = Agent(model, capabilities=[PatchToolCalls(), Cutting()])
    run(agent, "next", message_history=[user("ask"), asks("b"), results(gives("b", "42"))])
    ((retold, prompt),) = shape(model.sent)
    assert retold.startswith("Output of a tool call that is no longer in this conversation (search, id b).")
    assert prompt == "next"


def test_it_can_stand_in_process_history():
    model = Recorder()
    run(Agent(model, capabilities=[ProcessHistory(PatchToolCalls(generator=no))]), "next", message_history=REUSED)
    assert ids(model.sent) == answered(model.sent)
    assert len(set(ids(model.sent))) == 2


def test_it_can_be_called_with_a_history():
    mended = PatchToolCalls(generator=no)([user("ask"), asks("a")])
    assert shape(mended) == [["ask"], ["a?"], ["a=no search (interrupted)"]]


def test_a_history_in_order_comes_back_as_the_same_list():
    patch = PatchToolCalls()
    history = [user("ask"), asks("a"), results(gives("a", "42")), says("ok")]
    assert patch(history) is history


@since("pydantic-ai-slim", "2.59", "results that say that a call is to be tried again")
def test_what_a_run_adds_is_sent_as_it_is():
    """A tool that asks for another try answers its call; nothing is put in its place."""
    model = Recorder(asks("a", name="look"), asks("b", name="look"))
    agent = Agent(model, capabilities=[PatchToolCalls()])
    tries: list[str] = []

    @agent.tool_plain
    def look(q: str) -> str:
        tries.append(q)
        if len(tries) == 1:
            raise ModelRetry("once more")
        return f"found {q}"

    run(agent, "ask")
    assert shape(model.requests[-1]) == [["ask"], ["a?"], ["a=once more (retried)"], ["b?"], ["b=found x"]]


def test_a_run_of_instructions_alone_is_sent_as_it_is():
    model = Recorder()
    run(Agent(model, instructions="Say hello.", capabilities=[PatchToolCalls()]), None)
    (request,) = model.sent
    assert isinstance(request, ModelRequest)
    assert (request.parts, request.instructions) == ([], "Say hello.")


def test_instructions_stay_with_the_request_that_has_them():
    model = Recorder()
    run(Agent(model, instructions="Be brief.", capabilities=[PatchToolCalls()]), "next", message_history=[*REUSED])
    request = model.sent[-1]
    assert isinstance(request, ModelRequest)
    assert request.instructions == "Be brief."


def test_a_conversation_is_mended_like_a_message_history():
    model = Recorder()
    agent = Agent(model, capabilities=[PatchToolCalls(generator=no)])
    result = run(agent, "next", conversation=Conversation(messages=DANGLING))
    mended = [["ask"], ["a?"], ["a=no search (interrupted)", "stop"], ["ok"], ["next"]]
    assert shape(model.sent) == mended
    assert shape(result.conversation.messages) == [*mended, ["done"]]


def test_a_store_gets_what_a_run_added_and_no_placeholders():
    stores: Any = pytest.importorskip("pydantic_ai.conversation_store")

    async def talk() -> list[list[str]]:
        store, stored = stores.InMemoryConversationStore(), Conversation(messages=[user("ask"), asks("a")])
        await store.save(stored)
        for prompt in ("next", "last"):
            await store.save(await agent.run(prompt, conversation=await store.load(stored.conversation_id)))
        return shape((await store.load(stored.conversation_id)).messages)

    model = Recorder()
    agent = Agent(model, capabilities=[PatchToolCalls(generator=no)])
    assert asyncio.run(talk()) == [["ask"], ["a?"], ["next"], ["done"], ["last"], ["done"]]
    assert shape(model.requests[-1]) == [["ask"], ["a?"], ["a=no search (interrupted)", "next"], ["done"], ["last"]]


def test_an_agent_may_run_inside_another_with_the_same_capability():
    patch = PatchToolCalls(generator=no)
    inner_model, outer_model = Recorder(), Recorder(asks("a", name="delegate"))
    inner = Agent(inner_model, capabilities=[patch])
    outer = Agent(outer_model, capabilities=[patch])

    @outer.tool_plain
    async def delegate(q: str) -> str:
        result = await inner.run(q, message_history=DANGLING)
        return result.output

    run(outer, "next", message_history=DANGLING)
    begun = [["ask"], ["a?"], ["a=no search (interrupted)", "stop"], ["ok"]]
    assert shape(inner_model.sent) == [*begun, ["x"]]
    new = ids(outer_model.requests[-1])[-1]
    assert shape(outer_model.requests[-1], {new: "new"}) == [*begun, ["next"], ["new?"], ["new=done"]]


def test_runs_at_once_do_not_disturb_each_other():
    model = Recorder()
    agent = Agent(model, capabilities=[PatchToolCalls(generator=no)])

    async def main() -> None:
        await asyncio.gather(*(agent.run(f"next {each}", message_history=DANGLING) for each in range(20)))

    asyncio.run(main())
    begun = [["ask"], ["a?"], ["a=no search (interrupted)", "stop"], ["ok"]]
    assert sorted(map(shape, model.requests)) == sorted([*begun, [f"next {each}"]] for each in range(20))


# Whose rules hold


def test_ids_of_the_kept_history_stay_though_those_sent_are_unique():
    model = Recorder()
    result = run(Agent(model, capabilities=[PatchToolCalls()]), "next", message_history=REUSED)
    assert ids(model.sent) == answered(model.sent)
    assert len(set(ids(model.sent))) == 2
    assert ids(result.all_messages()) == answered(result.all_messages()) == ["a", "a"]


class OpenAIResponsesModel(Recorder):
    """A model whose class is called like pydantic-ai's."""


MODELS: dict[str, tuple[Any, Any, list[str] | int]] = {
    "anthropic": (Recorder(system="anthropic"), None, 2),
    "unknown": (Recorder(), None, 2),
    "openai": (Recorder(system="openai"), None, ["a", "a"]),
    "openai responses": (OpenAIResponsesModel(system="openai"), None, 2),
    "google": (Recorder(system="google"), None, ["a", "a"]),
    "wrapped": (WrapperModel(Recorder(system="openai")), None, ["a", "a"]),
    "openai responses, wrapped": (WrapperModel(OpenAIResponsesModel(system="openai")), None, 2),
    "fallback to another": (FallbackModel(Recorder(system="openai"), Recorder(system="google")), None, 2),
    "fallback to the same": (FallbackModel(Recorder(system="openai"), Recorder(system="azure")), None, ["a", "a"]),
    "as said": (Recorder(system="anthropic"), "openai-chat", ["a", "a"]),
}


def recorder_of(model: Any) -> Recorder:
    if isinstance(model, FallbackModel):
        return recorder_of(model.models[0])
    return recorder_of(model.wrapped) if isinstance(model, WrapperModel) else model


@pytest.mark.parametrize(("model", "profile", "expected"), MODELS.values(), ids=MODELS)
def test_the_rules_are_those_of_the_models_provider(model: Any, profile: str | None, expected: list[str] | int):
    run(Agent(model, capabilities=[PatchToolCalls(profile=profile)]), "next", message_history=REUSED)
    sent = recorder_of(model).requests[-1]
    assert ids(sent) == answered(sent)
    assert (len(set(ids(sent))) if isinstance(expected, int) else ids(sent)) == expected


class Failing(Recorder):
    """A model that is down."""

    def __init__(self, system: str) -> None:
        super().__init__(system=system)
        self.function = self._fail

    def _fail(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self._answer(messages, info)
        raise ModelAPIError("down", "the provider is down")


@pytest.mark.skipif(not hasattr(known_capabilities, "ModelFallback"), reason="there is one attempt before 2.66")
def test_each_attempt_is_fitted_to_the_model_that_serves_it():
    first, second = Failing(system="mistral"), Recorder(system="openai")
    capabilities = [PatchToolCalls(), known_capabilities.ModelFallback(second)]
    run(Agent(first, capabilities=capabilities), "next", message_history=REUSED)
    assert ids(first.sent) == answered(first.sent)
    assert [len(each) for each in ids(first.sent)] == [9, 9]
    assert ids(second.sent) == answered(second.sent) == ["a", "a"]


def test_a_call_and_its_result_without_an_id_get_the_same_one():
    model = Recorder()
    history = [user("ask"), asks("", ""), results(gives("", "1"), gives("", "2")), says("ok")]
    run(Agent(model, capabilities=[PatchToolCalls()]), "next", message_history=history)
    first, second = ids(model.sent)
    names = {first: "first", second: "second"}
    assert shape(model.sent, names)[1:3] == [["first?", "second?"], ["first=1", "second=2"]]


# What can be set


def test_a_generator_is_told_the_cause_and_asked_once():
    asked: list[tuple[str, str, Cause]] = []

    def generator(name: str, call_id: str, *, cause: Cause) -> str:
        asked.append((name, call_id, cause))
        return f"{name} did not run"

    model = Recorder(asks("b", name="look"))
    agent = Agent(model, capabilities=[PatchToolCalls(generator=generator)])

    @agent.tool_plain
    def look(q: str) -> str:
        return f"found {q}"

    first = run(agent, "next", message_history=[user("ask"), asks("a")])
    run(agent, "more", message_history=first.all_messages())
    assert asked == [("search", "a", Cause.UNKNOWN)]
    assert all(shape(sent)[2][0] == "a=search did not run (interrupted)" for sent in model.requests)


def test_the_error_of_a_generator_ends_the_run_before_anything_is_sent():
    def generator(name: str, call_id: str) -> str:
        raise LookupError(f"{name} {call_id}")

    model = Recorder()
    with pytest.raises(LookupError, match="search a"):
        run(Agent(model, capabilities=[PatchToolCalls(generator=generator)]), "next", message_history=DANGLING)
    assert model.requests == []


def test_orphans_are_dropped_where_that_is_asked_for():
    model = Recorder()
    history = [user("ask"), says("ok"), results(gives("ghost", "42"), UserPromptPart("so", timestamp=WHEN)), says("ok")]
    run(Agent(model, capabilities=[PatchToolCalls(orphans="drop")]), "next", message_history=history)
    assert shape(model.sent) == [["ask"], ["ok"], ["so"], ["ok"], ["next"]]


def test_the_language_is_the_one_in_force_when_the_capability_is_made():
    with using_language("zh"):
        patch = PatchToolCalls()
    for each in (patch, PatchToolCalls(language="zh")):
        model = Recorder()
        run(Agent(model, capabilities=[each]), "next", message_history=DANGLING)
        assert shape(model.sent)[2][0].startswith("a=工具调用 search")


MISTAKES: dict[str, dict[str, Any]] = {
    "unknown profile 'x'": {"profile": "x"},
    "unknown orphans 'x'": {"orphans": "x"},
    "unknown language 'x'": {"language": "x"},
    "generator must be a function, found str": {"generator": "x"},
}


@pytest.mark.parametrize(("told", "settings"), MISTAKES.items(), ids=[*MISTAKES])
def test_a_setting_that_is_not_known_is_refused_at_once(told: str, settings: dict[str, Any]):
    with pytest.raises(ConfigError, match=told):
        PatchToolCalls(**settings)
