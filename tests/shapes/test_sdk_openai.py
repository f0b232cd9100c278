"""The objects that the `openai` package returns, beside dicts, broken and whole, and sent again through its client."""

from collections.abc import Iterator
from typing import Any

import openai
import pytest
from openai.types.chat import ChatCompletionMessage

import suture
from tests.shapes.loopback import Provider, chat_answer, provider, responses_answer
from tests.shapes.texts import placeholder

GO = {"role": "user", "content": "go"}
STOP = {"role": "user", "content": "stop"}


def call(id_: str, arguments: str = "{}") -> dict[str, Any]:
    return {"id": id_, "type": "function", "function": {"name": "search", "arguments": arguments}}


def tool(id_: str, content: str = "1") -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": id_, "content": content}


class Talk:
    """The real client, and the provider that it talks to."""

    def __init__(self, client: openai.OpenAI, far: Provider) -> None:
        self.client, self.far = client, far

    def chat(self, messages: Any, **reply: Any) -> ChatCompletionMessage:
        self.far.answers.append(chat_answer(**(reply or {"content": "ok"})))
        return self.client.chat.completions.create(model="m", messages=messages).choices[0].message

    def respond(self, items: Any, *output: Any) -> list[Any]:
        self.far.answers.append(responses_answer(*output))
        return self.client.responses.create(model="m", input=items).output

    def arrived(self, messages: Any) -> list[Any]:
        """Send messages and return what the provider saw."""
        self.chat(messages)
        return self.far.bodies[-1]["messages"]

    def arrived_items(self, items: Any) -> list[Any]:
        self.respond(items)
        return self.far.bodies[-1]["input"]


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with provider() as far, openai.OpenAI(base_url=f"{far.url}/v1", api_key="none", max_retries=0) as client:
        yield Talk(client, far)


def essence(message: dict[str, Any]) -> dict[str, Any]:
    """Leave out the fields that say nothing."""
    return {key: value for key, value in message.items() if value is not None and value != []}


def test_a_whole_history_of_dicts_and_objects_comes_back_as_the_same_list_and_is_sent(talk: Talk):
    asked = talk.chat([GO], tool_calls=[call("x"), call("y")])
    messages: list[Any] = [GO, asked, tool("y", "2"), tool("x", "1"), STOP]
    fixed = suture.repair(messages)
    assert fixed.messages is messages
    assert fixed.report.wire == "openai-chat"
    arrived = talk.arrived(fixed.messages)
    assert [message["role"] for message in arrived] == ["user", "assistant", "tool", "tool", "user"]
    assert essence(arrived[1]) == {"role": "assistant", "tool_calls": [call("x"), call("y")]}


def test_an_interrupted_call_of_an_object_is_answered_and_accepted(talk: Talk):
    asked = talk.chat([GO], content="I will look.", tool_calls=[call("x"), call("y")])
    messages: list[Any] = [GO, asked, tool("y", "2"), STOP]
    fixed = suture.repair(messages)
    assert fixed.messages[1] is asked
    assert talk.arrived(fixed.messages)[2:] == [tool("x", placeholder("interrupted", "x")), tool("y", "2"), STOP]
    assert messages == [GO, asked, tool("y", "2"), STOP]
    assert suture.check(fixed.messages).acceptable
    assert suture.repair(fixed.messages).messages is fixed.messages


def test_late_doubled_and_orphan_results_among_objects_find_their_place(talk: Talk):
    first = talk.chat([GO], tool_calls=[call("x")])
    second = talk.chat([GO], tool_calls=[call("z")])
    said = talk.chat([GO], content="hm")
    fixed = suture.repair([GO, first, STOP, said, tool("x"), tool("q", "lost"), second, tool("z", "a"), tool("z", "b")])
    assert fixed.messages[1] is first
    assert fixed.messages[4] is said
    arrived = talk.arrived(fixed.messages)
    assert [message["role"] for message in arrived] == [
        "user",
        "assistant",
        "tool",
        "user",
        "assistant",
        "user",
        "assistant",
        "tool",
    ]
    assert arrived[2] == tool("x")
    assert "lost" in arrived[5]["content"]
    assert arrived[7] == tool("z", "b")


@pytest.mark.parametrize("profile", ["mistral", "openai-chat"])
def test_an_object_whose_call_must_change_is_copied_and_arrives_changed(talk: Talk, profile: str):
    long = "call_" + "9" * 60
    asked = talk.chat([GO], content="hi", tool_calls=[call(long, '{"q": "par')])
    before = asked.model_dump()
    fixed = suture.repair([GO, asked, tool(long)], profile=profile)
    assert asked.model_dump() == before
    assert fixed.messages[0] is GO
    arrived = talk.arrived(fixed.messages)
    new = arrived[2]["tool_call_id"]
    assert len(new) <= 40
    assert essence(arrived[1]) == {"role": "assistant", "content": "hi", "tool_calls": [call(new)]}
    assert suture.repair(fixed.messages, profile=profile).messages is fixed.messages


def test_deepseeks_reasoning_content_is_kept_on_an_object_and_added_where_it_is_missing(talk: Talk):
    """The field is not one that the package knows."""
    thought = talk.chat([GO], reasoning_content="hm", tool_calls=[call("x")])
    silent = talk.chat([GO], tool_calls=[call("y")])
    fixed = suture.repair([GO, thought, tool("x"), silent, tool("y")], profile="deepseek")
    assert fixed.messages[1] is thought
    arrived = talk.arrived(fixed.messages)
    assert arrived[1]["reasoning_content"] == "hm"
    assert arrived[3]["reasoning_content"] == ""
    assert arrived[3]["tool_calls"] == [call("y")]


def test_objects_inside_dicts_are_read_too(talk: Talk):
    asked = talk.chat([GO], tool_calls=[call("x"), call("y")])
    mixed = {"role": "assistant", "content": None, "tool_calls": [(asked.tool_calls or [])[0], call("y")]}
    fixed = suture.repair([GO, mixed, tool("y", "2"), STOP])
    assert fixed.messages[1] is mixed
    arrived = talk.arrived(fixed.messages)
    assert arrived[1]["tool_calls"] == [call("x"), call("y")]
    assert arrived[2:] == [tool("x", placeholder("interrupted", "x")), tool("y", "2"), STOP]


def test_the_older_function_call_of_an_object_is_answered_in_the_older_form(talk: Talk):
    asked = talk.chat([GO], function_call={"name": "search", "arguments": "{}"})
    whole: list[Any] = [GO, asked, {"role": "function", "name": "search", "content": "1"}]
    assert suture.repair(whole).messages is whole
    fixed = suture.repair([GO, asked, STOP])
    assert fixed.messages[1] is asked
    arrived = talk.arrived(fixed.messages)
    assert arrived[1]["function_call"] == {"name": "search", "arguments": "{}"}
    assert (arrived[2]["role"], arrived[2]["name"]) == ("function", "search")
    assert "was canceled" in arrived[2]["content"]
    assert arrived[3] == STOP


def test_a_custom_call_of_an_object_is_answered(talk: Talk):
    custom = {"id": "x", "type": "custom", "custom": {"name": "shell", "input": "ls"}}
    asked = talk.chat([GO], tool_calls=[custom])
    fixed = suture.repair([GO, asked, STOP])
    arrived = talk.arrived(fixed.messages)
    assert arrived[1]["tool_calls"] == [custom]
    assert arrived[2] == tool("x", placeholder("interrupted", "x", "shell"))


# --- Responses --------------------------------------------------------------------------------

THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"}
CALL = {
    "type": "function_call",
    "id": "fc_1",
    "call_id": "c1",
    "name": "search",
    "arguments": "{}",
    "status": "completed",
}
SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [{"type": "output_text", "text": "hi", "annotations": []}],
}
CUSTOM = {"type": "custom_tool_call", "id": "ctc_1", "call_id": "c2", "name": "shell", "input": "ls"}
SEARCH = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search", "query": "x"}}


def output(id_: str = "c1", content: str = "1") -> dict[str, Any]:
    return {"type": "function_call_output", "call_id": id_, "output": content}


def test_a_whole_list_of_output_items_comes_back_as_the_same_list_and_is_sent(talk: Talk):
    made = talk.respond("go", THOUGHT, SEARCH, CALL, SAID)
    items = [GO, *made, output(), STOP]
    fixed = suture.repair(items)
    assert fixed.messages is items
    assert fixed.report.wire == "openai-responses"
    arrived = talk.arrived_items(fixed.messages)
    assert [item.get("type") for item in arrived] == [
        None,
        "reasoning",
        "web_search_call",
        "function_call",
        "message",
        "function_call_output",
        None,
    ]
    assert arrived[1]["encrypted_content"] == "AAAA"


def test_calls_of_output_items_are_answered_in_their_own_types_and_accepted(talk: Talk):
    thought, asked, custom = talk.respond("go", THOUGHT, CALL, CUSTOM)
    fixed = suture.repair([GO, thought, asked, custom, STOP])
    assert all(one is other for one, other in zip(fixed.messages[1:4], (thought, asked, custom), strict=True))
    arrived = talk.arrived_items(fixed.messages)
    assert arrived[4:] == [
        output("c1", placeholder("interrupted", "c1")),
        {"type": "custom_tool_call_output", "call_id": "c2", "output": placeholder("interrupted", "c2", "shell")},
        STOP,
    ]


def test_an_output_item_that_must_change_is_copied_and_arrives_changed(talk: Talk):
    (first,) = talk.respond("go", CALL)
    (second,) = talk.respond("go", {**CALL, "id": "fc_2", "arguments": '{"q": "par'})
    before = second.model_dump()
    fixed = suture.repair([GO, first, output(), STOP, second, output("c1", "2")])
    assert fixed.messages[1] is first
    assert second.model_dump() == before
    arrived = talk.arrived_items(fixed.messages)
    assert arrived[1]["call_id"] == "c1"
    assert arrived[4]["call_id"] not in {"c1", ""}
    assert arrived[4]["arguments"] == "{}"
    assert arrived[4]["id"] == "fc_2"
    assert arrived[5] == output(arrived[4]["call_id"], "2")


def test_an_item_that_stands_twice_loses_its_item_id_and_is_accepted(talk: Talk):
    (said,) = talk.respond("go", SAID)
    fixed = suture.repair([GO, said, STOP, said])
    assert fixed.messages[1] is said
    arrived = talk.arrived_items(fixed.messages)
    assert arrived[1]["id"] == "msg_1"
    assert not arrived[3].get("id")
    assert suture.check(fixed.messages).acceptable
