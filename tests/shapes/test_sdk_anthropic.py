"""The objects that the `anthropic` package returns, beside dicts, broken and whole, and sent again."""

from collections.abc import Iterator
from typing import Any

import anthropic
import pytest

import suture
from tests.shapes.loopback import Provider, anthropic_answer, provider
from tests.shapes.texts import placeholder

GO = {"role": "user", "content": "go"}
STOP = {"role": "user", "content": "stop"}
THINKING = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
SERVER = {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "x"}}
SERVED = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def use(id_: str, name: str = "search") -> dict[str, Any]:
    return {"type": "tool_use", "id": id_, "name": name, "input": {"q": "x"}}


def res(id_: str, content: str = "1", **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id_, "content": content, **more}


class Talk:
    def __init__(self, client: anthropic.Anthropic, far: Provider) -> None:
        self.client, self.far = client, far

    def ask(self, messages: Any, *content: Any) -> anthropic.types.Message:
        self.far.answers.append(anthropic_answer(*(content or (text("ok"),))))
        return self.client.messages.create(model="m", max_tokens=9, messages=messages)

    def arrived(self, messages: Any) -> list[Any]:
        self.ask(messages)
        return self.far.bodies[-1]["messages"]


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    with provider() as far, anthropic.Anthropic(base_url=far.url, api_key="none", max_retries=0) as client:
        yield Talk(client, far)


def turn(reply: anthropic.types.Message) -> dict[str, Any]:
    """What real programs append."""
    return {"role": "assistant", "content": reply.content}


def essence(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Leave out the fields that say nothing."""
    return [{key: value for key, value in block.items() if value is not None} for block in blocks]


def test_a_whole_history_of_dicts_and_blocks_comes_back_as_the_same_list_and_is_sent(talk: Talk):
    asked = turn(talk.ask([GO], THINKING, text("I will look."), use("toolu_1"), use("toolu_2")))
    messages: list[Any] = [GO, asked, {"role": "user", "content": [res("toolu_2", "2"), res("toolu_1")]}]
    fixed = suture.repair(messages)
    assert fixed.messages is messages
    assert fixed.report.wire == "anthropic"
    arrived = talk.arrived(fixed.messages)
    assert essence(arrived[1]["content"]) == [THINKING, text("I will look."), use("toolu_1"), use("toolu_2")]


def test_an_interrupted_call_of_blocks_is_answered_and_accepted(talk: Talk):
    """And the signed turn is the same object."""
    asked = turn(talk.ask([GO], THINKING, use("toolu_1"), use("toolu_2")))
    messages: list[Any] = [GO, asked, {"role": "user", "content": [res("toolu_1")]}, STOP]
    fixed = suture.repair(messages)
    assert fixed.messages[1] is asked
    arrived = talk.arrived(fixed.messages)
    assert arrived[2]["content"] == [
        res("toolu_1"),
        res("toolu_2", placeholder("interrupted", "toolu_2"), is_error=True),
    ]
    assert arrived[3] == STOP
    assert suture.check(fixed.messages).acceptable
    assert suture.repair(fixed.messages).messages is fixed.messages


def test_blocks_that_must_change_their_order_or_id_are_copied_and_arrive_changed(talk: Talk):
    asked = turn(talk.ask([GO], use("a"), text("late words"), use("a", "fetch")))
    before = [block.model_dump() for block in asked["content"]]
    fixed = suture.repair([GO, asked, {"role": "user", "content": [res("a", "1"), res("a", "2")]}])
    assert [block.model_dump() for block in asked["content"]] == before
    arrived = talk.arrived(fixed.messages)
    words, first, second = essence(arrived[1]["content"])
    assert words == text("late words")
    assert first == use("a")
    assert second == use(second["id"], "fetch")
    assert second["id"] != "a"
    assert [block["tool_use_id"] for block in arrived[2]["content"]] == ["a", second["id"]]


def test_server_side_blocks_are_left_alone(talk: Talk):
    asked = turn(talk.ask([GO], SERVER, SERVED, text("found"), use("toolu_1")))
    fixed = suture.repair([GO, asked, STOP])
    assert fixed.messages[1] is asked
    arrived = talk.arrived(fixed.messages)
    assert [block["type"] for block in arrived[1]["content"]] == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
        "tool_use",
    ]
    assert [block["tool_use_id"] for block in arrived[2]["content"]] == ["toolu_1"]


def test_a_whole_reply_may_stand_in_the_list_itself(talk: Talk):
    reply = talk.ask([GO], text("hi"), use("toolu_1"))
    whole: list[Any] = [GO, reply, {"role": "user", "content": [res("toolu_1")]}]
    assert suture.repair(whole).messages is whole
    broken: list[Any] = [GO, reply, STOP]
    fixed = suture.repair(broken)
    assert fixed.messages[1] is reply
    assert fixed.messages[2]["content"][0]["tool_use_id"] == "toolu_1"


def test_late_and_orphan_results_find_their_place(talk: Talk):
    asked = turn(talk.ask([GO], use("toolu_1")))
    said = turn(talk.ask([GO], text("hm")))
    fixed = suture.repair(
        [GO, asked, STOP, said, {"role": "user", "content": [text("by the way"), res("toolu_1"), res("q", "lost")]}]
    )
    assert fixed.messages[1] is asked
    assert fixed.messages[4] is said
    arrived = talk.arrived(fixed.messages)
    assert arrived[2]["content"] == [res("toolu_1")]
    rest = str(arrived[5:])
    assert "by the way" in rest
    assert "lost" in rest
