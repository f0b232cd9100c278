"""The middleware in real agents: what the model receives, and what the thread keeps."""

import asyncio
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain.agents import create_agent
from langchain.agents.middleware import (
    AgentMiddleware,
    HumanInTheLoopMiddleware,
    ModelFallbackMiddleware,
    SummarizationMiddleware,
    hook_config,
)
from langchain.chat_models import base as chat_models
from langchain.chat_models import init_chat_model
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command

import suture
from suture.integrations.langchain import PatchToolCallsMiddleware
from suture.repair import Cause
from suture.wires import MARK
from tests.guests.langchain.recording import RecordingModel, asks, call

BUILDERS: dict[str, Callable[..., Any]] = {"create_agent": create_agent, "create_deep_agent": create_deep_agent}
CONFIG: Any = {"configurable": {"thread_id": "1"}}
each_builder = pytest.mark.parametrize("builder", BUILDERS)


@tool
def pay() -> str:
    """Pay."""
    return "paid"


def built(
    builder: str = "create_agent", replies: Sequence[Any] = (), middleware: Sequence[Any] | None = None, **more: Any
) -> tuple[Any, RecordingModel]:
    """Return an agent with the tool `pay`, and its model."""
    model = more.pop("model", None) or RecordingModel(replies=list(replies))
    stack = [PatchToolCallsMiddleware()] if middleware is None else list(middleware)
    more.setdefault("checkpointer", InMemorySaver())
    return BUILDERS[builder](model=model, tools=[pay], middleware=stack, **more), model


def ask(agent: Any, *messages: Any, manner: str = "invoke", config: Any = CONFIG) -> None:
    """Give the agent these messages, in one of the manners of running it."""
    given = {"messages": list(messages)}
    if manner == "invoke":
        agent.invoke(given, config)
    elif manner == "stream":
        for _ in agent.stream(given, config, stream_mode="updates"):
            pass
    elif manner == "ainvoke":
        asyncio.run(agent.ainvoke(given, config))
    else:
        asyncio.run(_drain(agent.astream(given, config, stream_mode="values")))


async def _drain(stream: Any) -> None:
    async for _ in stream:
        pass


def received(model: RecordingModel) -> list[BaseMessage]:
    """Return what the model was sent last, without the system message."""
    return [message for message in model.sent[-1] if not isinstance(message, SystemMessage)]


def kept(agent: Any, config: Any = CONFIG) -> list[BaseMessage]:
    return agent.get_state(config).values["messages"]


def told(messages: Sequence[BaseMessage]) -> list[str]:
    """Return what messages say, in short: calls as their ids, placeholders as "-"."""
    short: list[str] = []
    for message in messages:
        if isinstance(message, AIMessage) and message.tool_calls:
            short.append("+".join(str(each["id"]) for each in message.tool_calls))
        else:
            short.append("-" if MARK in message.response_metadata else message.text)
    return short


def is_acceptable(messages: Sequence[BaseMessage], profile: str = "anthropic") -> bool:
    return suture.check(messages, wire="langchain", profile=profile).acceptable


@pytest.mark.parametrize("manner", ["invoke", "stream", "ainvoke", "astream"])
@each_builder
def test_a_call_that_was_interrupted_is_answered_for_good(builder: str, manner: str):
    agent, model = built(builder)
    ask(agent, HumanMessage("hi"), asks("a"), HumanMessage("go"), manner=manner)
    assert told(received(model)) == ["hi", "a", "-", "go"]
    assert told(kept(agent)) == ["hi", "a", "-", "go", "done"]
    ids = [message.id for message in kept(agent)]
    ask(agent, HumanMessage("more"), manner=manner)
    assert [message.id for message in kept(agent)][: len(ids)] == ids
    assert told(received(model)) == ["hi", "a", "-", "go", "done", "more"]


@each_builder
def test_a_thread_that_was_broken_before_is_healed(builder: str, tmp_path: Any):
    with SqliteSaver.from_conn_string(str(tmp_path / "threads.db")) as saver:
        plain, _ = built("create_agent", middleware=(), checkpointer=saver)
        ask(plain, HumanMessage("hi"))
        broken = [asks(call("a"), call("b")), HumanMessage("go"), ToolMessage("late", tool_call_id="b")]
        plain.update_state(CONFIG, {"messages": [*broken, ToolMessage("lone", tool_call_id="x")]}, as_node="model")
        agent, model = built(builder, checkpointer=saver)
        ask(agent, HumanMessage("on"))
        assert told(received(model))[:5] == ["hi", "done", "a+b", "-", "late"]
        assert is_acceptable(received(model))
        assert is_acceptable(kept(agent), "pairing")


def test_deep_agents_take_it_in_the_place_of_their_own():
    agent, _ = built("create_deep_agent")
    nodes = [node for node in agent.nodes if "PatchToolCalls" in node]
    assert nodes == ["PatchToolCallsMiddleware.before_agent"]
    agent, model = built("create_deep_agent", middleware=[PatchToolCallsMiddleware(text="cause")])
    ask(agent, asks("a"), HumanMessage("go"))
    assert received(model)[1].response_metadata[MARK] == Cause.INTERRUPTED
    assert "was canceled" in received(model)[1].text


class JumpBack(AgentMiddleware):
    """Sends the first reply with calls back to the model, its calls unanswered."""

    jumped = False

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        if self.jumped or not state["messages"][-1].tool_calls:
            return None
        self.jumped = True
        return {"jump_to": "model"}


@each_builder
def test_a_call_left_open_within_the_run_is_answered_for_the_model(builder: str):
    agent, model = built(builder, [asks("a")], [PatchToolCallsMiddleware(), JumpBack()])
    ask(agent, HumanMessage("hi"))
    assert told(received(model)) == ["hi", "a", "-"]


class Trim(AgentMiddleware):
    """Sends only the last messages, as users write it."""

    def __init__(self, count: int, manner: str = "override") -> None:
        super().__init__()
        self.count, self.manner = count, manner

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        if self.manner == "in place":
            del request.messages[: -self.count]
            return handler(request)
        return handler(request.override(messages=request.messages[-self.count :]))

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        return await handler(request.override(messages=request.messages[-self.count :]))


@pytest.mark.parametrize("manner", ["invoke", "ainvoke"])
@pytest.mark.parametrize("place", ["before", "after"])
@each_builder
def test_what_another_middleware_trims_is_mended_wherever_it_stands(builder: str, place: str, manner: str):
    ours = PatchToolCallsMiddleware()
    stack = [Trim(3), ours] if place == "before" else [ours, Trim(3)]
    agent, model = built(builder, [asks(call("a"), call("b"))], stack)
    ask(agent, HumanMessage("hi"), manner=manner)
    sent = received(model)
    assert is_acceptable(sent)
    assert told(sent)[0] == "a+b"
    agent, model = built(
        builder, [asks(call("a"), call("b"))], [Trim(2), ours] if place == "before" else [ours, Trim(2)]
    )
    ask(agent, HumanMessage("hi"), manner=manner)
    assert is_acceptable(received(model))
    assert [type(message) for message in received(model)] == [HumanMessage, HumanMessage]
    assert all("paid" in message.text for message in received(model))


def test_what_another_middleware_cuts_out_of_the_list_itself_is_mended():
    agent, model = built("create_agent", [asks("a")], [PatchToolCallsMiddleware(), Trim(1, "in place")])
    ask(agent, HumanMessage("hi"))
    assert is_acceptable(received(model))
    assert "paid" in received(model)[0].text


class Raw(AgentMiddleware):
    """Sends the last message, and others in the forms that only LangChain reads."""

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        one, two = ("user", "one"), {"role": "user", "content": "two"}
        return handler(request.override(messages=[one, *request.messages[-1:], two]))


def test_messages_in_langchains_other_forms_are_mended_as_well():
    agent, model = built("create_agent", [asks("a")], [PatchToolCallsMiddleware(), Raw()])
    ask(agent, HumanMessage("hi"))
    assert [type(message) for message in received(model)] == [HumanMessage] * 3
    assert "paid" in received(model)[1].text


class ChatMistralAI(RecordingModel):
    """A model whose provider has rules of its own."""


def test_a_model_that_takes_over_is_sent_what_its_own_provider_accepts():
    def fail(_: Any) -> Any:
        raise ConnectionError

    other = ChatMistralAI()
    agent, _ = built("create_agent", [fail], [PatchToolCallsMiddleware(), ModelFallbackMiddleware(other)])
    ask(agent, HumanMessage("hi"), asks("call_1"), ToolMessage("paid", tool_call_id="call_1"), HumanMessage("go"))
    assert is_acceptable(other.sent[-1], "mistral")
    assert not is_acceptable(kept(agent), "mistral")


class Switch(AgentMiddleware):
    """Puts another model into the request itself, as older middlewares do."""

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def wrap_model_call(self, request: Any, handler: Any) -> Any:
        assert request.messages
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            request.model = self.model
        return handler(request)


def test_so_is_one_that_is_put_into_the_request_itself():
    other = ChatMistralAI()
    agent, _ = built("create_agent", middleware=[PatchToolCallsMiddleware(), Switch(other)])
    ask(agent, HumanMessage("hi"), asks("call_1"), ToolMessage("paid", tool_call_id="call_1"), HumanMessage("go"))
    assert is_acceptable(other.sent[-1], "mistral")


class ChatOpenAI(RecordingModel):
    """A model whose provider takes nearly any id."""


def test_a_model_that_is_chosen_for_each_run_is_sent_what_its_provider_accepts(monkeypatch: pytest.MonkeyPatch):
    models = {"gpt": ChatOpenAI(), "mistral": ChatMistralAI()}
    monkeypatch.setattr(chat_models, "_init_chat_model_helper", lambda model, **_: models[model])
    chosen: Any = init_chat_model("gpt", configurable_fields=("model",))
    agent = create_agent(chosen, [], middleware=[PatchToolCallsMiddleware()])
    given: Any = [HumanMessage("hi"), asks("call_1"), ToolMessage("paid", tool_call_id="call_1"), HumanMessage("go")]
    for name in ("gpt", "mistral", "gpt"):
        agent.invoke({"messages": given}, {"configurable": {"model": name}})
        assert (told(received(models[name]))[1] == "call_1") is (name == "gpt")
    assert is_acceptable(models["mistral"].sent[-1], "mistral")


def test_an_id_is_short_enough_for_a_provider_that_nobody_knows():
    agent, model = built("create_agent")
    ask(agent, HumanMessage("hi"), asks("a" * 41), HumanMessage("go"), asks("b" * 40), HumanMessage("on"))
    assert [len(short) for short in told(received(model))[1::3]] == [30, 40]
    assert is_acceptable(received(model), "openai-chat")


def test_a_profile_of_ones_own_choice_counts():
    agent, model = built("create_agent", middleware=[PatchToolCallsMiddleware(profile="mistral")])
    ask(agent, HumanMessage("hi"), asks("call_1"), HumanMessage("go"))
    assert is_acceptable(received(model), "mistral")


def test_with_a_system_message_before_it_a_turn_may_come_first():
    stack = [PatchToolCallsMiddleware(profile="mistral")]
    agent, model = built("create_agent", middleware=stack, system_prompt="Be brief.")
    ask(agent, AIMessage("Hello."), HumanMessage("hi"))
    assert told(model.sent[-1]) == ["Be brief.", "Hello.", "hi"]


@each_builder
def test_a_late_result_is_moved_and_a_placeholder_gives_way_to_it(builder: str):
    agent, model = built(builder)
    ask(agent, HumanMessage("hi"), asks("a"), HumanMessage("go"), ToolMessage("paid", tool_call_id="a"))
    assert told(received(model)) == ["hi", "a", "paid", "go"]
    agent, model = built(builder)
    ask(agent, HumanMessage("hi"), asks("a"), HumanMessage("go"))
    ask(agent, ToolMessage("paid", tool_call_id="a"), HumanMessage("on"))
    assert told(received(model)) == ["hi", "a", "paid", "go", "done", "on"]
    assert told(kept(agent)) == ["hi", "a", "paid", "go", "done", "on", "done"]


@pytest.mark.parametrize("manner", ["invoke", "ainvoke"])
def test_the_place_of_a_summary_moves_with_the_messages(manner: str):
    agent, model = built("create_deep_agent")
    ask(agent, HumanMessage("hi"))
    messages = [HumanMessage("one"), asks("a"), HumanMessage("two"), asks("b"), ToolMessage("paid", tool_call_id="b")]
    event = {"cutoff_index": 5, "summary_message": HumanMessage("so far"), "file_path": None}
    agent.update_state(CONFIG, {"messages": messages, "_summarization_event": event}, as_node="model")
    ask(agent, HumanMessage("on"), manner=manner)
    assert told(received(model)) == ["so far", "b", "paid", "on"]


def test_a_result_that_a_summary_cut_off_its_call_is_told_as_text():
    stack = [SummarizationMiddleware(RecordingModel(), trigger=("messages", 5), keep=("messages", 2))]
    agent, model = built("create_agent", middleware=[*stack, PatchToolCallsMiddleware()])
    ask(agent, HumanMessage("hi"), asks("a"), HumanMessage("go"))
    ask(agent, ToolMessage("paid", tool_call_id="a"), HumanMessage("on"))
    assert is_acceptable(received(model))


class JumpToEnd(AgentMiddleware):
    """Ends the run where there are calls."""

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        return {"jump_to": "end"}


@pytest.mark.parametrize("manner", ["invoke", "ainvoke"])
@each_builder
def test_calls_that_a_run_leaves_open_at_its_end_are_answered_when_the_next_begins(builder: str, manner: str):
    agent, model = built(builder, [asks(call("a"), call("b"))], [PatchToolCallsMiddleware(), JumpToEnd()])
    ask(agent, HumanMessage("hi"), manner=manner)
    assert told(kept(agent)) == ["hi", "a+b"]
    ask(agent, HumanMessage("go"), manner=manner)
    assert told(received(model)) == ["hi", "a+b", "-", "-", "go"]
    assert is_acceptable(kept(agent))


@pytest.mark.parametrize("manner", ["invoke", "ainvoke"])
@each_builder
def test_till_then_the_caller_may_answer_them(builder: str, manner: str):
    stack = [PatchToolCallsMiddleware(), JumpToEnd()]
    agent, model = built(builder, [asks(call("a"), call("b"))], stack)
    ask(agent, HumanMessage("hi"), manner=manner)
    assert told(kept(agent)) == ["hi", "a+b"]
    ask(agent, ToolMessage("mine", tool_call_id="b"), manner=manner)
    assert told(received(model)) == ["hi", "a+b", "-", "mine"]


@each_builder
def test_calls_that_wait_for_approval_are_left_alone_and_run_when_they_have_it(builder: str):
    gate = HumanInTheLoopMiddleware(interrupt_on={"pay": True})
    agent, model = built(builder, [asks("a")], [PatchToolCallsMiddleware(), gate])
    ask(agent, HumanMessage("hi"))
    assert told(kept(agent)) == ["hi", "a"]
    agent.invoke(Command(resume={"decisions": [{"type": "approve"}]}), CONFIG)
    assert told(received(model)) == ["hi", "a", "paid"]
    agent, model = built(builder, [asks("a")], [PatchToolCallsMiddleware(), gate])
    ask(agent, HumanMessage("hi"))
    ask(agent, HumanMessage("never mind"))
    assert told(received(model)) == ["hi", "a", "-", "never mind"]


def test_a_run_that_goes_on_after_a_stop_is_not_disturbed():
    agent, model = built("create_agent", [asks("a")], interrupt_before=["tools"])
    ask(agent, HumanMessage("hi"))
    assert told(kept(agent)) == ["hi", "a"]
    agent.invoke(None, CONFIG)
    assert told(received(model)) == ["hi", "a", "paid"]


def test_many_threads_share_one_middleware():
    agent, _ = built("create_agent")

    async def converse(number: int) -> list[str]:
        config: Any = {"configurable": {"thread_id": str(number)}}
        for text in ("one", "two", "three"):
            given = [asks(f"{number}-{text}"), HumanMessage(text)]
            await agent.ainvoke({"messages": given}, config)
        return told(kept(agent, config))

    async def everyone() -> list[list[str]]:
        return await asyncio.gather(*map(converse, range(5)))

    for number, said in enumerate(asyncio.run(everyone())):
        turns = [(f"{number}-{text}", "-", text, "done") for text in ("one", "two", "three")]
        assert said == [word for turn in turns for word in turn]


@pytest.mark.parametrize("manner", ["invoke", "ainvoke"])
@each_builder
def test_the_last_message_of_a_run_is_the_models_whatever_calls_it_could_not_make(builder: str, manner: str):
    cut_off = [{"name": "pay", "args": '{"amount": ', "id": "a", "error": "cut", "type": "invalid_tool_call"}]
    answers = [AIMessage("High tide is 06:12.", invalid_tool_calls=cut_off), AIMessage("At noon.")]
    agent, model = built(builder, answers, [PatchToolCallsMiddleware()])
    ask(agent, HumanMessage("tide?"), manner=manner)
    assert kept(agent)[-1].text == "High tide is 06:12."
    ask(agent, HumanMessage("low tide?"), manner=manner)
    assert is_acceptable(received(model))
    [placeholder] = [message for message in kept(agent) if isinstance(message, ToolMessage)]
    assert "arguments were malformed or truncated" in placeholder.text
