"""`result.messages` is the caller's own list: whatever he makes of it is what goes in again, and is sent."""

import asyncio
import copy
import json
import pickle
import threading
from collections.abc import AsyncIterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture import ChatModelAgent, Message
from suture.messages import from_json, to_json
from suture.models import AnthropicModel
from suture.stores import MemoryStore
from suture.testing import ScriptedModel

TALK = [Message.user("1"), Message.assistant("2"), Message.user("3"), Message.assistant("4")]
messages = st.sampled_from([Message.user("ask"), Message.assistant("answer"), Message.user("thanks")])
places = st.integers(-6, 6)
slices = st.builds(slice, st.none() | places, st.none() | places)
steps = st.one_of(
    st.tuples(st.just("append"), messages),
    st.tuples(st.sampled_from(["extend", "+=", "+"]), st.lists(messages, max_size=3)),
    st.tuples(st.just("insert"), places, messages),
    st.tuples(st.sampled_from(["pop", "del"]), places),
    st.tuples(st.just("set"), places, messages),
    st.tuples(st.just("set"), slices, st.lists(messages, max_size=3)),
    st.tuples(st.sampled_from(["del", "cut"]), slices),
    st.tuples(st.sampled_from(["reverse", "clear", "sort", "copy", "deepcopy", "pickle", "*"])),
)


def change(own: list[Any], step: tuple[Any, ...]) -> list[Any]:
    """Do what users do with a list; return the list that they have then."""
    match step:
        case "append" | "extend" | "insert" | "pop" as method, *arguments:
            getattr(own, method)(*arguments)
        case "reverse" | "clear" as method, *_:
            getattr(own, method)()
        case "sort", *_:
            own.sort(key=lambda message: message.content)
        case "+=", new:
            own += new
        case "+", new:
            own = own + new
        case "set", place, new:
            own[place] = new
        case "del", place:
            del own[place]
        case "cut", place:
            own = own[place]
        case "copy", *_:
            own = own.copy()
        case "deepcopy", *_:
            own = copy.deepcopy(own)
        case "pickle", *_:
            own = pickle.loads(pickle.dumps(own))
        case _:
            own = [*own]
    return own


class Encoding(AnthropicModel):
    """A model that encodes its requests, and answers without sending them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__("claude", api_key="key", base_url="http://127.0.0.1:9", **settings)
        self.bodies: list[Any] = []

    async def stream(self, request: Any, /) -> AsyncIterator[Any]:
        self.bodies.append([message["content"][0]["text"] for message in self.body(request).messages])
        yield Message.assistant(f"answer {len(self.bodies)}")


@given(st.lists(st.lists(steps, max_size=6), min_size=1, max_size=3), st.booleans())
def test_whatever_is_done_to_the_list_goes_in_again_and_is_sent(rounds: list[list[Any]], as_history: bool):
    model = Encoding()
    agent = ChatModelAgent(model=model, repair=False)
    own: Any = agent.run_sync("go", history=TALK).messages
    for plan in rounds:
        for step in plan:
            expected = list(own)
            try:
                expected = change(expected, step)
            except IndexError:
                with pytest.raises(IndexError):
                    change(own, step)
            else:
                own = change(own, step)
            assert (own, isinstance(own, list)) == (expected, True)
        asked = Message.user("and?")
        model.bodies.clear()
        result = agent.run_sync("and?", history=own) if as_history else agent.run_sync([*own, asked])
        assert result.messages == [*own, asked, Message.assistant("answer 1")]
        # Anthropic joins neighbours of one role; what is sent is what a new model would send.
        fresh = Encoding()
        ChatModelAgent(model=fresh, repair=False).run_sync([*own, asked])
        assert model.bodies == fresh.bodies
        own = result.messages


def test_a_message_that_is_appended_is_sent():
    model = ScriptedModel(["Hello Ann.", "Ann."])
    agent = ChatModelAgent(model=model)
    own = agent.run_sync("My name is Ann.").messages
    own.append(Message.user("What is my name?"))
    agent.run_sync(own)
    assert model.requests[1].messages == own


def test_going_on_encodes_each_message_once(monkeypatch: pytest.MonkeyPatch):
    model = Encoding()
    written: list[Any] = []
    write = model.codec.write_message
    monkeypatch.setattr(
        model.codec, "write_message", lambda message, losses: written.append(message) or write(message, losses)
    )
    agent = ChatModelAgent(model=model)
    own = agent.run_sync("go", history=TALK * 25).messages
    assert len(written) == 101
    for turn in range(20):
        if turn % 2:
            own.append(Message.user("and?"))
            own = agent.run_sync(own).messages
        else:
            own = agent.run_sync("and?", history=own).messages
    assert len(written) == 101 + 40


def test_one_list_goes_on_in_many_threads_at_once_and_none_gets_the_words_of_another():
    class Echo(Encoding):
        async def stream(self, request: Any, /) -> AsyncIterator[Any]:
            yield Message.assistant(self.body(request).messages[-1]["content"][0]["text"])

    agent = ChatModelAgent(model=Echo())
    own = agent.run_sync("go", history=TALK).messages
    results: dict[int, list[Any]] = {}

    def go_on(number: int) -> None:
        results[number] = asyncio.run(agent.run(str(number), history=own)).messages

    threads = [threading.Thread(target=go_on, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {n: [*own, Message.user(str(n)), Message.assistant(str(n))] for n in range(8)}


def test_two_agents_go_on_from_one_list_without_each_other():
    model = Encoding()
    agent = ChatModelAgent(model=model)
    own = agent.run_sync("go").messages
    agent.run_sync("left", history=own)
    agent.run_sync("right", history=own)
    assert model.bodies == [["go"], ["go", "answer 1", "left"], ["go", "answer 1", "right"]]


def test_the_list_is_the_users_and_the_result_of_a_stored_run_too():
    async def scene() -> None:
        store = MemoryStore()
        agent = ChatModelAgent(model=ScriptedModel(["one", "two"]), checkpoint_store=store)
        first = await agent.run("hi", checkpoint_id="job")
        first.messages.clear()
        stored = await agent.session("job").result()
        stored.messages.append(Message.user("mine alone"))
        again = await agent.run("and?", checkpoint_id="job")
        assert [message.content for message in again.messages] == ["hi", "one", "and?", "two"]

    asyncio.run(scene())


def test_what_users_do_with_lists_works():
    own = ChatModelAgent(model=ScriptedModel(["hello"])).run_sync("hi").messages
    assert isinstance(own, list)
    assert own == [Message.user("hi"), Message.assistant("hello")]
    assert repr(own) == repr([Message.user("hi"), Message.assistant("hello")])
    assert from_json(to_json(own)) == own
    assert [type(each) for each in (copy.copy(own), copy.deepcopy(own), pickle.loads(pickle.dumps(own)))] == [list] * 3
    assert suture.repair(own).messages is own


# --- dicts that change in place -------------------------------------------------------------------


def test_a_dict_that_changes_in_place_counts():
    model = ScriptedModel(["one", "two"], "openai-chat")
    agent = ChatModelAgent(model=model)
    own = agent.run_sync("hi").messages
    own[0]["content"] = "hello"
    agent.run_sync("and?", history=own)
    assert [message["content"] for message in model.requests[1].messages] == ["hello", "one", "and?"]


def test_a_call_that_is_put_into_a_dict_afterwards_is_answered():
    model = ScriptedModel(["one", "two"], "openai-chat")
    agent = ChatModelAgent(model=model)
    own = agent.run_sync("hi").messages
    own[1]["tool_calls"] = [{"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}]
    agent.run_sync("and?", history=own)
    assert [message["role"] for message in model.requests[1].messages] == ["user", "assistant", "tool", "user"]


def test_a_dict_that_changes_in_place_does_not_change_what_is_stored():
    async def scene() -> Any:
        model = ScriptedModel(["one", "two"], "openai-chat")
        agent = ChatModelAgent(model=model, checkpoint_store=MemoryStore())
        first = await agent.session("user").run("hi")
        first.messages[0]["content"] = "changed"
        await agent.session("user").run("and?")
        return model.requests[1].messages

    assert [message["content"] for message in asyncio.run(scene())] == ["hi", "one", "and?"]


def test_a_dict_of_an_interrupted_run_that_changes_in_place_is_repaired_when_it_is_resumed():
    @suture.tool
    async def ask() -> str:
        """Ask."""
        return await suture.interrupt("Sure?")

    call = {"id": "b", "type": "function", "function": {"name": "ask", "arguments": "{}"}}
    old = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    model = ScriptedModel([{"role": "assistant", "content": None, "tool_calls": [call]}, "done"], "openai-chat")
    agent = ChatModelAgent(model=model, tools=[ask])
    earlier = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "one"}]
    waiting = agent.run_sync("ask me", history=earlier)
    earlier[1]["tool_calls"] = [old]  # pyright: ignore[reportArgumentType]
    done = asyncio.run(agent.resume(waiting, "yes"))
    assert suture.check(done.messages).acceptable
    said = json.loads(json.dumps(list(model.requests[1].messages)))
    assert suture.check(said).acceptable
    assert [message["role"] for message in said] == ["user", "assistant", "tool", "user", "assistant", "tool"]
