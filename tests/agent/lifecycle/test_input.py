"""What a run takes: a text, parts, pairs, and messages of any wire; and what it refuses before anything happens."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from anthropic.types import Message as AnthropicMessage
from google.genai import types as gemini
from openai.types.chat import ChatCompletionMessage
from openai.types.responses import ResponseFunctionToolCall

import suture
from suture import AmbiguousWireError, ChatModelAgent, InputError, Message, ResumeError, RunResult, ToolCall, tool
from suture.events import HistoryRewritten
from suture.kernel.input import NOTHING
from suture.messages import AgenticMessage, ImagePart, TextPart, UserInputImage, UserInputText
from suture.models import AnthropicModel
from suture.stores import MemoryStore
from suture.testing import ScriptedModel

ASKED = Message.user("When is high tide?")
CALLED = Message.assistant(tool_calls=[ToolCall("call_1", "tides", '{"port":"Dover"}')])
ANSWERED = Message.tool("06:12", "call_1")
IMAGE = ImagePart(base64_data="aGk=", mime_type="image/png")
CHAT_CALL = {"id": "call_1", "type": "function", "function": {"name": "tides", "arguments": '{"port":"Dover"}'}}


def sent(given: Any = NOTHING, *, wire: str = "message", **options: Any) -> list[Any]:
    """Return the messages that the model gets."""
    model = ScriptedModel(["done"], wire)
    ChatModelAgent(model=model).run_sync(given, **options)
    return list(model.requests[0].messages)


def bare(messages: list[Any]) -> list[Any]:
    """Return messages without what their wires keep beside, and without names of results, which Chat does not say."""
    return [suture.replace(message, extra={}, response_meta=None, tool_name="") for message in messages]


HISTORIES: dict[str, Callable[[], list[Any]]] = {
    "chat dicts": lambda: [
        {"role": "user", "content": "When is high tide?"},
        {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]},
        {"role": "tool", "tool_call_id": "call_1", "content": "06:12"},
    ],
    "chat dicts and objects": lambda: [
        {"role": "user", "content": "When is high tide?"},
        ChatCompletionMessage.model_validate({"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}),
        {"role": "tool", "tool_call_id": "call_1", "content": "06:12"},
    ],
    "responses": lambda: [
        {"role": "user", "content": "When is high tide?"},
        ResponseFunctionToolCall(type="function_call", call_id="call_1", name="tides", arguments='{"port":"Dover"}'),
        {"type": "function_call_output", "call_id": "call_1", "output": "06:12"},
    ],
    "anthropic": lambda: [
        {"role": "user", "content": "When is high tide?"},
        AnthropicMessage.model_validate(
            {
                "id": "msg_1",
                "type": "message",
                "role": "assistant",
                "model": "claude",
                "content": [{"type": "tool_use", "id": "call_1", "name": "tides", "input": {"port": "Dover"}}],
                "stop_reason": "tool_use",
                "stop_sequence": None,
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
        ),
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "call_1", "content": "06:12"}]},
    ],
    "gemini": lambda: [
        gemini.Content(role="user", parts=[gemini.Part(text="When is high tide?")]),
        gemini.Content(
            role="model",
            parts=[gemini.Part(function_call=gemini.FunctionCall(id="call_1", name="tides", args={"port": "Dover"}))],
        ),
        gemini.Content(
            role="user",
            parts=[
                gemini.Part(
                    function_response=gemini.FunctionResponse(id="call_1", name="tides", response={"output": "06:12"})
                )
            ],
        ),
    ],
    "bedrock": lambda: [
        {"role": "user", "content": [{"text": "When is high tide?"}]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "call_1", "name": "tides", "input": {"port": "Dover"}}}],
        },
        {
            "role": "user",
            "content": [{"toolResult": {"toolUseId": "call_1", "content": [{"text": "06:12"}], "status": "success"}}],
        },
    ],
    "message": lambda: [ASKED, CALLED, ANSWERED],
    "agentic": lambda: suture.codecs.decode([ASKED, CALLED, ANSWERED], "message"),
}


@pytest.mark.parametrize("form", HISTORIES)
@pytest.mark.parametrize("way", ["input", "history", "history and input"])
def test_messages_of_any_wire_are_what_goes_in(form: str, way: str):
    history = HISTORIES[form]()
    if way == "input":
        assert bare(sent(history)) == [ASKED, CALLED, ANSWERED]
    elif way == "history":
        assert bare(sent(history=history)) == [ASKED, CALLED, ANSWERED]
    else:
        assert bare(sent("And now?", history=history)) == [ASKED, CALLED, ANSWERED, Message.user("And now?")]


@pytest.mark.parametrize("form", HISTORIES)
@pytest.mark.parametrize("wire", ["agentic", "openai-chat"])
def test_an_agent_of_any_wire_takes_them(form: str, wire: str):
    said = sent(HISTORIES[form](), wire=wire)
    assert suture.check(said, wire=wire, profile="pairing").acceptable
    assert bare(suture.codecs.convert(said, wire, "message").messages) == [ASKED, CALLED, ANSWERED]


def test_an_agent_of_chat_messages_keeps_those_that_are_its_own_and_converts_the_others():
    own = {"role": "user", "content": "hi"}
    said = sent([own, Message.assistant("hello"), AgenticMessage.user("well")], wire="openai-chat")
    assert said == [own, {"role": "assistant", "content": "hello"}, {"role": "user", "content": "well"}]
    assert said[0] is own


def test_what_the_model_answered_and_a_dict_behind_it_go_in_together():
    agent = ChatModelAgent(model=(model := ScriptedModel(["hello", "well"])))
    first = agent.run_sync("hi")
    agent.run_sync([*first.messages, {"role": "user", "content": "how are you?"}])
    assert bare(list(model.requests[1].messages)) == [
        Message.user("hi"),
        Message.assistant("hello"),
        Message.user("how are you?"),
    ]


@pytest.mark.parametrize(
    ("given", "roles"),
    [
        ([("user", "hi")], ["user"]),
        (("user", "hi"), ["user"]),
        (
            [("system", "Be brief."), ("human", "hi"), ("ai", "hello"), ["user", "well"]],
            ["system", "user", "assistant", "user"],
        ),
        (
            [("developer", "Be brief."), ("USER", "hi"), ("assistant", "hello"), ("user", "x")],
            ["system", "user", "assistant", "user"],
        ),
        ([("user", ["look", IMAGE])], ["user"]),
    ],
)
def test_pairs_say_who_speaks_and_what(given: Any, roles: list[str]):
    assert [message.role for message in sent(given)] == roles


def test_pairs_may_stand_beside_anything_else():
    said = sent([("system", "Be brief."), ASKED, {"role": "assistant", "content": "06:12"}, ("user", "Sure?")])
    assert bare(said) == [Message.system("Be brief."), ASKED, Message.assistant("06:12"), Message.user("Sure?")]


def test_texts_and_parts_are_one_message():
    assert sent(["what is this?", IMAGE]) == [Message.user([TextPart("what is this?"), IMAGE])]
    assert sent(["what", "is this?"]) == [Message.user([TextPart("what"), TextPart("is this?")])]
    assert sent(IMAGE) == [Message.user([IMAGE])]
    block = UserInputImage(base64_data="aGk=", mime_type="image/png")
    assert sent(["see", block]) == [Message.user([TextPart("see"), IMAGE])]
    assert sent(["see", IMAGE], wire="agentic") == [AgenticMessage("user", (UserInputText("see"), block))]


PART_FORMS = [
    [{"type": "text", "text": "see"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}}],
    [{"type": "input_text", "text": "see"}, {"type": "input_image", "image_url": "data:image/png;base64,aGk="}],
    [
        {"type": "text", "text": "see"},
        {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}},
    ],
]


@pytest.mark.parametrize("parts", PART_FORMS)
def test_parts_of_a_provider_are_read_too(parts: list[Any]):
    for given in (parts, [("user", parts)], [{"role": "user", "content": parts}]):
        (message,) = sent(given)
        read = [suture.replace(part, extra={}) for part in message.user_input_multi_content]
        assert (message.content, read) in [("", [TextPart("see"), IMAGE]), ("see", [IMAGE])]


def test_a_single_message_needs_no_list():
    assert sent({"role": "user", "content": "hi"}) == [Message.user("hi")]
    assert sent(Message.user("hi")) == [Message.user("hi")]
    assert bare(sent(gemini.Content(role="user", parts=[gemini.Part(text="hi")]))) == [Message.user("hi")]


def test_a_result_goes_on_as_history_or_as_input():
    agent = ChatModelAgent(model=(model := ScriptedModel(["hello", "well", "more"])))
    first = agent.run_sync("hi")
    second = agent.run_sync("and?", history=first)
    agent.run_sync(second)
    hi, hello = Message.user("hi"), Message.assistant("hello")
    assert model.requests[1].messages == [hi, hello, Message.user("and?")]
    assert model.requests[2].messages == [hi, hello, Message.user("and?"), Message.assistant("well")]


def test_a_history_goes_on_without_an_input():
    assert sent(history=[ASKED]) == [ASKED]


def test_every_door_takes_what_run_takes():
    given = [{"role": "user", "content": "hi"}]

    async def talk() -> list[Any]:
        store = MemoryStore()
        agent = ChatModelAgent(model=(model := ScriptedModel(["done"] * 9)), checkpoint_store=store)
        await agent.run(given)
        await agent.stream(given).result()
        await agent.advance("job", given)
        await agent.advance("other", history=given)
        await agent.session("user").run(given)
        async with agent.session("user-2").stream(given) as run:
            await run.result()
        return [list(request.messages) for request in model.requests]

    assert asyncio.run(talk()) == [[Message.user("hi")]] * 6


def test_hooks_and_builders_may_give_messages_of_any_wire():
    class Before(suture.ChatModelAgentMiddleware[Any]):
        def before_agent(self, context: Any) -> Any:
            return suture.replace(context, messages=[("system", "Be brief."), *context.messages])

    model = ScriptedModel(["done"])
    agent = ChatModelAgent(
        model=model,
        middlewares=[Before()],
        input_builder=lambda _, messages: [*messages, {"role": "user", "content": "now"}],
    )
    agent.run_sync("hi")
    assert bare(list(model.requests[0].messages)) == [
        Message.system("Be brief."),
        Message.user("hi"),
        Message.user("now"),
    ]


# --- what is lost ---------------------------------------------------------------------------------


def events_of(agent: ChatModelAgent[Any, Any], given: Any, **options: Any) -> list[HistoryRewritten]:
    async def listen() -> list[HistoryRewritten]:
        async with agent.stream(given, **options) as run:
            return [event async for event in run if isinstance(event, HistoryRewritten)]

    return asyncio.run(listen())


def test_what_the_conversion_loses_is_an_event_that_names_it_and_its_message():
    thought = {"type": "thinking", "thinking": "Look it up.", "signature": "c2lnbmVk"}
    history = [
        ("user", "hi"),
        {"role": "assistant", "content": [thought, {"type": "text", "text": "hello"}]},
    ]
    agent = ChatModelAgent(model=ScriptedModel(["done"], "openai-chat"))
    (event,) = events_of(agent, [{"role": "user", "content": "and?"}], history=history)
    assert (event.by, event.turn, event.before, event.after) == ("convert", 0, 3, 3)
    assert event.report is not None
    assert [(loss["name"], loss["index"]) for loss in event.report["losses"]] == [("reasoning", 1)]
    assert json.loads(json.dumps(event.report)) == event.report


@pytest.mark.parametrize("form", HISTORIES)
def test_nothing_is_told_where_nothing_is_lost(form: str):
    assert events_of(ChatModelAgent(model=ScriptedModel(["done"])), HISTORIES[form]()) == []


def test_a_signed_thought_stays_in_the_history_for_its_provider():
    thought = {"type": "thinking", "thinking": "Look it up.", "signature": "c2lnbmVk"}
    history = [
        {"role": "user", "content": "hi"},
        {"role": "assistant", "content": [thought, {"type": "text", "text": "hello"}]},
        {"role": "user", "content": "and?"},
    ]
    model = AnthropicModel("claude", api_key="k", base_url="http://127.0.0.1:9")
    body = model.body(suture.ModelRequest("", sent(history)))
    assert body.messages[1]["content"][0] == thought


# --- several wires fit ----------------------------------------------------------------------------


def test_plain_text_that_several_wires_fit_is_taken_for_chat():
    given = [("user", "hi"), {"role": "assistant", "content": [{"type": "text", "text": "hello"}]}, ("user", "well")]
    first, second, third = sent(given)
    assert [bare([first]), bare([second]), bare([third])] == [
        [Message.user("hi")],
        [Message.assistant("hello")],
        [Message.user("well")],
    ]


def test_where_several_wires_would_read_something_else_they_are_named():
    advice = r"openai-chat, anthropic.*convert them: suture\.codecs\.convert\(messages, 'openai-chat', 'message'\)"
    with pytest.raises(AmbiguousWireError, match=advice):
        sent([{"role": "assistant", "content": [{"type": "text"}]}, ("user", "hi")])


def test_a_thought_in_chats_own_field_tells_that_the_messages_are_chats():
    given = [("user", "hi"), {"role": "assistant", "content": "hello", "reasoning_content": "Hm."}, ("user", "well")]
    assert sent(given)[1] == Message("assistant", "hello", reasoning_content="Hm.")


# --- what is refused ------------------------------------------------------------------------------


def test_a_keyword_that_a_run_does_not_have_says_where_the_models_options_go():
    wrong: Any = {"temperature": 0}
    with pytest.raises(TypeError, match=r"'temperature'; a run takes .*history.* options=\{'temperature': …\}"):
        sent("hi", **wrong)


def test_a_result_in_the_form_of_another_wire_is_refused_and_never_lost():
    result = {"type": "tool_result", "tool_use_id": "call_1", "content": "06:12"}
    chat = [{"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}, {"role": "user", "content": [result]}]
    says = r"message 2, content\[0\]: a part of type 'tool_result' belongs to another wire"
    with pytest.raises(InputError, match=says):
        sent([("user", "When is high tide?"), *chat])
    assert bare(sent([ASKED, CALLED, chat[1]])) == [ASKED, CALLED, ANSWERED]


EMPTY: list[Any] = [
    "",
    "  \n",
    [],
    (),
    [""],
    ["", " "],
    [TextPart("")],
    [{"type": "text", "text": " "}],
    Message.user(""),
    [Message.user("  ")],
    AgenticMessage("user"),
    {"role": "user", "content": ""},
    {"role": "user", "content": []},
    ("user", " "),
    [ASKED, Message.assistant("06:12"), Message.user("")],
]


@pytest.mark.parametrize("history", [None, [ASKED, Message.assistant("06:12")]])
@pytest.mark.parametrize("given", EMPTY, ids=repr)
@pytest.mark.parametrize("wire", ["message", "agentic", "openai-chat"])
def test_without_words_and_parts_nothing_is_sent_and_nothing_stored(given: Any, history: Any, wire: str):
    store, model = MemoryStore(), ScriptedModel(["done"], wire)
    agent = ChatModelAgent(model=model, checkpoint_store=store)
    options = {} if history is None else {"history": history}
    with pytest.raises(InputError, match="say something, or leave the input out and give what is to go on: history="):
        agent.run_sync(given, checkpoint_id="job", **options)
    with pytest.raises(InputError, match="there are no words and no parts to answer"):
        asyncio.run(agent.session("job").run(given, **options))
    assert (model.requests, asyncio.run(store.runs())) == ([], [])


def test_a_history_that_ends_with_a_blank_message_of_the_user_does_not_go_on():
    with pytest.raises(InputError, match="no words and no parts"):
        sent(history=[ASKED, Message.user(" ")])
    with pytest.raises(InputError, match="no words and no parts"):
        sent()
    with pytest.raises(InputError, match="no words and no parts"):
        sent(history=[])


REFUSED: list[tuple[Any, str]] = [
    (None, "message 0: expected a message, found null; a run takes a text, content parts, messages"),
    (7, "message 0: expected a message, found int; a run takes"),
    (b"hi", "message 0: expected a message, found bytes; a run takes"),
    ([ASKED, 7], "message 1: expected a message, found int; a run takes"),
    ([ASKED, None], "message 1: expected a message, found null; a run takes"),
    ([ASKED, "hi"], "message 1: found a text among messages; say who speaks"),
    ([ASKED, TextPart("hi")], "message 1: found a part among messages; say who speaks"),
    ([ASKED, ("usr", "hi")], "message 1: this is no pair (role, text) with a role out of user, human"),
    ([ASKED, ("user", "a", "b")], "message 1: this is no pair"),
    ([ASKED, {"role": "usr", "content": "hi"}], "message 1: unknown role 'usr'"),
    ([ASKED, {"content": "hi"}], "message 1"),
    ([ASKED, ("user", 7)], "message 1"),
    ([ASKED, object()], "message 1"),
    ([{"role": "user", "content": "hi"}, ASKED, {"role": "user", "content": 7}], "message 2"),
    ([{"type": "hologram", "beam": 7}], "no wire has parts of the types hologram together"),
    (
        {"messages": [{"role": "user", "content": "hi"}]},
        "this is the body of a request; pass the list it holds as 'messages'",
    ),
    ({"contents": []}, "pass the list it holds as 'contents'"),
    (range(3), "message 0: expected a message, found int"),
]


@pytest.mark.parametrize(("given", "words"), REFUSED, ids=[repr(given)[:40] for given, _ in REFUSED])
def test_anything_else_is_refused_with_its_place_and_what_would_do(given: Any, words: str):
    store, model = MemoryStore(), ScriptedModel(["done"])
    agent = ChatModelAgent(model=model, checkpoint_store=store)
    with pytest.raises(InputError) as caught:
        agent.run_sync(given, checkpoint_id="job")
    assert words in str(caught.value)
    if words.startswith("message"):
        assert caught.value.index == int(words[8])
    assert (model.requests, asyncio.run(store.runs())) == ([], [])


def test_an_input_is_counted_behind_the_history():
    with pytest.raises(InputError, match="message 2: expected a message, found int"):
        sent([ASKED, 7], history=[ASKED])


def test_a_text_is_no_history():
    with pytest.raises(InputError, match="history= takes a list of messages, not a text"):
        sent("hi", history="before")


# --- a stored conversation ------------------------------------------------------------------------


def test_a_stored_conversation_goes_on_without_an_input_once_its_run_has_ended():
    @tool
    async def ask() -> str:
        """Ask."""
        return await suture.interrupt("Sure?")

    async def scene() -> None:
        store = MemoryStore()
        model = ScriptedModel(["one", "two", Message.assistant(tool_calls=[ToolCall("c", "ask", "{}")]), "three"])
        agent = ChatModelAgent(model=model, tools=[ask], checkpoint_store=store)
        await agent.run("hi", checkpoint_id="job")
        again: RunResult[Any] = await agent.run(checkpoint_id="job")
        assert [message.content for message in again.messages] == ["hi", "one", "two"]
        await agent.run("ask", checkpoint_id="job")
        before = await store.load("job")
        with pytest.raises(
            ResumeError, match=r"the run of 'job' has not ended; agent\.resume\('job'\) goes on with it"
        ):
            await agent.run(checkpoint_id="job")
        with pytest.raises(
            InputError, match="there is no conversation 'new' in this store to go on with; give an input"
        ):
            await agent.run(checkpoint_id="new")
        assert (await store.load("job"), await store.runs()) == (before, ["job"])

    asyncio.run(scene())


@pytest.mark.parametrize("request_text", ["", "  "])
def test_an_agent_that_is_a_tool_is_not_asked_nothing(request_text: str):
    inner = ScriptedModel(["never"])
    writer = ChatModelAgent(name="writer", description="Writes.", model=inner).as_tool()
    call = ToolCall("c", "writer", json.dumps({"request": request_text}))
    result = ChatModelAgent(
        model=ScriptedModel([Message.assistant(tool_calls=[call]), "done"]), tools=[writer]
    ).run_sync("go")
    assert "arguments.request: expected a text that says what to do" in result.messages[2].content
    assert inner.requests == []
