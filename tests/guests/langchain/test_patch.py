"""What the middleware makes of a state, called as LangChain's graphs call it."""

import asyncio
import copy
from typing import Any

import pytest
from deepagents.middleware.patch_tool_calls import PatchToolCallsMiddleware as Theirs
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain.chat_models import init_chat_model
from langchain_anthropic import ChatAnthropic
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, HumanMessage, RemoveMessage, SystemMessage, ToolMessage
from langchain_core.runnables import RunnableLambda
from langchain_google_genai import ChatGoogleGenerativeAI
from langchain_openai import ChatOpenAI
from langgraph.graph.message import REMOVE_ALL_MESSAGES, add_messages
from pydantic import SecretStr

from suture import set_language
from suture.errors import ConfigError
from suture.integrations.langchain import PatchToolCallsMiddleware
from suture.integrations.langchain.patch import is_known_placeholder, model_profile
from suture.profiles import profile_of
from suture.repair import Cause, placeholder_text
from tests.guests.langchain.recording import asks, call

CANCELLED = "Tool call pay with id a was cancelled - another message came in before it could be completed."
MALFORMED = "Tool call pay with id b could not be executed - arguments were malformed or truncated."
UNKNOWN = "Tool call pay with id a has no recorded result - it may or may not have run. Check before running it again."
BROKEN = [HumanMessage("hi", id="1"), asks(call("a")).model_copy(update={"id": "2"}), HumanMessage("go", id="3")]
KEY = SecretStr("none")


def cut(call_id: str | None, name: str | None = "pay") -> dict[str, Any]:
    return {"id": call_id, "name": name, "args": '{"q": ', "error": None, "type": "invalid_tool_call"}


def patched(messages: list[Any], **settings: Any) -> list[Any]:
    """Return the messages that the update makes of these."""
    update = PatchToolCallsMiddleware(**settings).before_agent({"messages": messages}, None)
    return add_messages(messages, update["messages"]) if update else messages  # pyright: ignore[reportReturnType]


def placeholders(messages: list[Any]) -> list[Any]:
    return [message.content for message in messages if isinstance(message, ToolMessage)]


def test_the_update_replaces_all_messages_as_that_of_deepagents_does():
    ours: Any = PatchToolCallsMiddleware(text="neutral").before_agent({"messages": BROKEN}, None)
    theirs: Any = Theirs().before_agent({"messages": BROKEN}, None)  # pyright: ignore[reportArgumentType]
    assert ours.keys() == theirs.keys()
    assert isinstance(ours["messages"][0], RemoveMessage)
    assert ours["messages"][0].id == REMOVE_ALL_MESSAGES
    for one, other in zip(ours["messages"], theirs["messages"], strict=True):
        assert one.model_dump(exclude={"response_metadata"}) == other.model_dump(exclude={"response_metadata"})
    assert ours["messages"][1] is BROKEN[0]


def test_where_nothing_is_wrong_nothing_is_updated():
    whole = [SystemMessage("s"), *BROKEN[:2], ToolMessage("42", tool_call_id="a"), HumanMessage("go")]
    for messages in ([], BROKEN[:1], whole):
        middleware = PatchToolCallsMiddleware()
        assert middleware.before_agent({"messages": messages}, None) is None
        assert asyncio.run(middleware.abefore_agent({"messages": messages}, None)) is None


def test_the_asynchronous_hooks_give_the_same():
    middleware = PatchToolCallsMiddleware()
    state = {"messages": BROKEN}
    assert asyncio.run(middleware.abefore_agent(state, None)) == middleware.before_agent(state, None)


def test_by_default_the_texts_are_the_references_and_langchains_own():
    messages = [*BROKEN[:2], HumanMessage("go"), AIMessage("", invalid_tool_calls=[cut("b")])]
    assert placeholders(patched(messages)) == [CANCELLED, MALFORMED]


def test_the_neutral_texts_are_those_of_deepagents():
    messages = [*BROKEN, AIMessage("", invalid_tool_calls=[cut("b", None)])]
    theirs: Any = Theirs().before_agent({"messages": messages}, None)  # pyright: ignore[reportArgumentType]
    ours = patched(messages, text="neutral")
    assert placeholders(ours) == placeholders(theirs["messages"])
    assert [message.name for message in ours if isinstance(message, ToolMessage)] == ["pay", "unknown"]


def test_the_texts_by_cause_tell_what_is_known():
    messages = [*BROKEN, AIMessage("", invalid_tool_calls=[cut("b")]), HumanMessage("and"), asks(call("c"))]
    causes = [(Cause.INTERRUPTED, "a"), (Cause.MALFORMED, "b"), (Cause.UNKNOWN, "c")]
    english = [placeholder_text(cause, "pay", call_id, "en") for cause, call_id in causes]
    chinese = [placeholder_text(cause, "pay", call_id, "zh") for cause, call_id in causes]
    assert placeholders(patched(messages, text="cause")) == english
    assert placeholders(patched(messages, text="cause", language="zh")) == chinese
    assert placeholders(patched(messages, language="zh")) == chinese
    set_language("zh")
    try:
        assert placeholders(patched(messages, text="cause")) == chinese
    finally:
        set_language("en")


def test_a_generator_wins_and_is_asked_once_for_each_call():
    asked: list[Any] = []

    def say(name: str, call_id: str, *, cause: Cause) -> str:
        asked.append((name, call_id, cause))
        return "" if call_id == "b" else f"no {name}"

    messages = [AIMessage("", tool_calls=[call("a"), call("b")], id="1"), HumanMessage("go")]
    assert placeholders(patched(messages, generator=say)) == ["no pay", CANCELLED.replace("id a", "id b")]
    assert asked == [("pay", "a", Cause.INTERRUPTED), ("pay", "b", Cause.INTERRUPTED)]
    assert placeholders(patched(BROKEN, generator=lambda name, call_id: f"{name}/{call_id}")) == ["pay/a"]


def test_a_generator_that_gives_no_text_or_fails_ends_the_run():
    with pytest.raises(ConfigError, match="generator returned int"):
        patched(BROKEN, generator=lambda _, __: 42)

    def fail(name: str, call_id: str) -> str:
        raise LookupError(name, call_id)

    with pytest.raises(LookupError):
        patched(BROKEN, generator=fail)


@pytest.mark.parametrize(
    "settings",
    [
        {"text": "other"},
        {"orphans": "keep"},
        {"profile": "other"},
        {"generator": "text"},
        {"is_placeholder": 1},
        {"language": "de"},
    ],
)
def test_a_setting_that_does_not_exist_is_refused(settings: Any):
    with pytest.raises(ConfigError):
        PatchToolCallsMiddleware(**settings)


def test_an_asynchronous_generator_is_refused():
    async def say(name: str, call_id: str) -> str:
        return name + call_id

    with pytest.raises(ConfigError, match="plain function"):
        PatchToolCallsMiddleware(generator=say)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize(
    "text",
    [
        CANCELLED,
        CANCELLED.replace("cancelled", "canceled"),
        "Tool call unknown with id a was cancelled - another message came in before it could be completed.",
        "Tool call pay with id a did not complete - no result was recorded. It may have been cancelled or interrupted.",
        "Tool call pay with id a could not be executed - arguments were malformed or truncated.",
        *[placeholder_text(cause, "pay", "a", language) for cause in Cause for language in ("en", "zh")],
        "skipped",
    ],
)
def test_a_real_result_takes_the_place_of_any_text_that_stood_for_it(text: str):
    stood, real = ToolMessage(text, tool_call_id="a", status="error"), ToolMessage("42", tool_call_id="a")
    for first, second in ((stood, real), (real, stood)):
        messages = [BROKEN[0], BROKEN[1], first, HumanMessage("go"), second]
        made = patched(messages, is_placeholder=lambda words: words == "skipped")
        assert [message.text for message in made] == ["hi", "", "42", "go"]


@pytest.mark.parametrize(
    "text",
    [
        "Tool call pay" + CANCELLED.removeprefix("Tool call pay with id a"),
        "Tool call " + CANCELLED.partition(" with id a")[2],
        CANCELLED + " Really.",
        "So: " + CANCELLED,
        "Tool call pay with id a",
        CANCELLED.replace("pay", "pay" * 300),
    ],
)
def test_a_text_that_only_resembles_a_placeholder_is_a_result(text: str):
    assert not is_known_placeholder(text)


def test_a_long_result_is_known_for_one_at_a_glance():
    class Counted(str):
        __slots__ = ()

        def startswith(self, *args: Any) -> bool:
            raise AssertionError(args)

    assert not is_known_placeholder(Counted("Tool call " + " with id " * 4000))


@pytest.mark.parametrize("settings", [{}, {"text": "neutral"}, {"text": "cause"}, {"generator": lambda name, _: name}])
def test_a_real_result_takes_the_place_of_a_placeholder_that_was_made_before(settings: Any):
    hi, turn, stood, go = patched(BROKEN, **settings)
    real = ToolMessage("42", tool_call_id="a")
    for messages in ([hi, turn, stood, go, real], [hi, turn, real, go, stood]):
        assert [message.text for message in patched(messages, **settings)] == ["hi", "", "42", "go"]


def test_orphans_are_kept_as_text_or_dropped():
    messages = [HumanMessage("hi"), ToolMessage("42", tool_call_id="x")]
    assert "42" in patched(messages)[1].text
    assert isinstance(patched(messages)[1], HumanMessage)
    assert len(patched(messages, orphans="drop")) == 1


def test_dicts_and_pairs_are_taken_as_they_come():
    raw = {"role": "assistant", "content": "", "tool_calls": [{"id": "a", "name": "pay", "args": {}}]}
    messages: list[Any] = [("user", "hi"), raw, {"role": "user", "content": "go"}]
    update: Any = PatchToolCallsMiddleware().before_agent({"messages": messages}, None)
    assert update["messages"][2] is raw
    made: Any = add_messages(messages, update["messages"])
    assert [message.type for message in made] == ["human", "ai", "tool", "human"]


def test_what_cannot_be_read_is_left_to_the_framework():
    messages = [HumanMessage("hi"), RemoveMessage(id="1")]
    assert PatchToolCallsMiddleware().before_agent({"messages": messages}, None) is None


def test_a_call_without_an_id_is_given_one_for_good():
    made = patched([AIMessage("", tool_calls=[call(None)], id="1"), HumanMessage("go", id="2")])
    given = made[0].tool_calls[0]["id"]
    assert given
    assert made[1].tool_call_id == given
    assert f"with id {given} was cancelled" in made[1].content


def test_what_the_state_says_of_a_summary_moves_along():
    messages = [*BROKEN, AIMessage("ok"), HumanMessage("more"), AIMessage("done")]
    event = {"cutoff_index": 3, "created_at_index": 5, "summary_message": HumanMessage("…"), "file_path": None}
    for middleware in (PatchToolCallsMiddleware(),):
        update: Any = middleware.before_agent({"messages": messages, "_summarization_event": event}, None)
        assert update["_summarization_event"] == {**event, "cutoff_index": 4, "created_at_index": 6}
        late = {**event, "cutoff_index": 1, "created_at_index": 6}
        update = middleware.before_agent({"messages": messages, "_summarization_event": late}, None)
        assert update["_summarization_event"] == {**late, "created_at_index": 7}
        assert update["messages"][1 + 1] is BROKEN[1]
        for other in (None, {"cutoff_index": "3"}, {"cutoff_index": 1}):
            update = middleware.before_agent({"messages": messages, "_summarization_event": other}, None)
            assert "_summarization_event" not in update


def test_a_result_that_moves_back_over_the_cut_is_on_its_side():
    messages = [BROKEN[0], BROKEN[1], HumanMessage("go"), ToolMessage("42", tool_call_id="a"), HumanMessage("on")]
    event = {"cutoff_index": 3, "summary_message": HumanMessage("…"), "file_path": None}
    update: Any = PatchToolCallsMiddleware().before_agent({"messages": messages, "_summarization_event": event}, None)
    cutoff = update["_summarization_event"]["cutoff_index"]
    assert [message.text for message in update["messages"][1:][cutoff:]] == ["on"]


def test_it_goes_by_the_name_of_deepagents_class_and_keeps_messages_out_of_traces():
    assert PatchToolCallsMiddleware().name == Theirs().name
    assert PatchToolCallsMiddleware.trace_policy == Theirs.trace_policy
    hooks = {name for name in dir(AgentMiddleware) if name.startswith(("before_", "after_", "wrap_"))}
    own = {name for name in hooks if name in vars(PatchToolCallsMiddleware)}
    assert own == {"before_agent", "wrap_model_call"}


def test_the_profile_is_that_of_the_provider():
    claude = ChatAnthropic(model_name="claude", api_key=KEY, timeout=None, stop=None)
    models = {
        "openai-chat": ChatOpenAI(model="gpt", api_key=KEY, use_responses_api=False),
        "openai-responses": ChatOpenAI(model="gpt", api_key=KEY, use_responses_api=True),
        "deepseek": ChatOpenAI(model="v3", api_key=KEY, base_url="https://api.deepseek.com/v1"),
        "gemini": ChatGoogleGenerativeAI(model="gemini-2.5-flash", google_api_key=KEY),
    }
    assert [model_profile(model).name for model in models.values()] == list(models)
    assert model_profile(claude).name == "anthropic"
    assert model_profile(FakeListChatModel(responses=[])) == model_profile(object()) == profile_of("somebody else's")


def test_the_profile_of_a_model_that_is_chosen_for_each_run_is_that_of_the_run_at_hand():
    chosen = init_chat_model(temperature=0, configurable_fields=("model", "model_provider"), api_key="none")
    free = init_chat_model(configurable_fields="any")

    def of_run(config: Any, model: Any) -> str:
        return RunnableLambda(lambda _: model_profile(model).name).invoke(None, config)

    default = init_chat_model("openai:gpt", api_key="none", configurable_fields="any")
    for model in (chosen, chosen.bind_tools([]), default, free):
        for provider, profile in (("openai", "openai-chat"), ("anthropic", "anthropic"), ("openai", "openai-chat")):
            settings = {"model": "one", "model_provider": provider, "api_key": "none"}
            assert of_run({"configurable": settings}, model) == profile
    for model in (chosen, free):
        assert model_profile(model) == profile_of("somebody else's")


def guarded(messages: list[Any]) -> Any:
    """Return a request as those further in get it."""
    held: list[Any] = []
    request: Any = ModelRequest(model=FakeListChatModel(responses=["ok"]), messages=messages, tools=[{"name": "pay"}])
    PatchToolCallsMiddleware().wrap_model_call(request, held.append)
    return held[0]


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy])
def test_the_messages_of_a_copied_request_are_whole_too(copied: Any):
    request = guarded(BROKEN)
    for each in (copied(request), copied(copied(request))):
        assert [message.text for message in each.messages] == ["hi", "", CANCELLED, "go"]
        cut_down = each.override(messages=each.messages[:2])
        assert [message.text for message in cut_down.messages] == ["hi", "", UNKNOWN]
