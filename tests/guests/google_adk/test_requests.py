"""What the plugin mends in a request to a model, and what it can be told."""

import asyncio
from typing import Any

import pytest
from google.adk.events import Event
from google.adk.models.llm_request import LlmRequest
from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from suture import Cause, using_language
from suture.integrations.google_adk import PatchToolCallsPlugin
from tests.guests.google_adk.recording import answers, asks, canceled, event, said, sent, told, unknown

ASK, GO = said("Pay Bo.", "user"), said("Go on.", "user")
NOT_USED: Any = None


def mended(contents: list[types.Content], plugin: PatchToolCallsPlugin | None = None, **fields: Any) -> LlmRequest:
    """Return a request with these contents as the plugin leaves it."""
    request = LlmRequest(contents=contents, **fields)
    used = plugin or PatchToolCallsPlugin()
    asyncio.run(used.before_model_callback(callback_context=NOT_USED, llm_request=request))
    return request


def test_contents_that_are_in_order_stay_the_very_same():
    contents = [ASK, asks("a"), answers(a="paid"), said("Done."), GO]
    request = LlmRequest(contents=contents)
    given = request.contents
    asyncio.run(PatchToolCallsPlugin().before_model_callback(callback_context=NOT_USED, llm_request=request))
    assert request.contents is given


def test_what_is_new_in_a_request_is_of_the_sdks_own_type():
    contents = mended([ASK, asks("a"), said("Hm."), GO]).contents
    assert [type(each) for each in contents] == [types.Content] * 5
    assert told(contents[2]) == ("user", [("answer", "pay", "a", unknown("a"))])


def test_a_call_without_an_id_which_adk_leaves_alone_is_answered_for_the_request():
    request = sent([event(ASK), event(asks(None))], [PatchToolCallsPlugin()])
    assert request[1:] == [
        ("model", [("call", "pay", None)]),
        ("user", [("answer", "pay", None, unknown("")), ("text", "Go on.")]),
    ]


def test_each_of_two_calls_with_one_id_has_its_own_answer():
    events = [event(each) for each in (ASK, asks("a"), said("And?", "user"), asks("a"), answers(a="paid"))]
    request = sent(events, [PatchToolCallsPlugin()])
    assert request[1:] == [
        ("model", [("call", "pay", "a")]),
        ("user", [("answer", "pay", "a", canceled("a")), ("text", "And?")]),
        ("model", [("call", "pay", "a")]),
        ("user", [("answer", "pay", "a", {"result": "paid"}), ("text", "Go on.")]),
    ]


def test_two_calls_of_one_turn_with_one_id_do_not_share_an_answer():
    request = sent([event(each) for each in (ASK, asks("a", "a"), answers(a="paid"))], [PatchToolCallsPlugin()])
    assert request[2] == (
        "user",
        [("answer", "pay", "a", {"result": "paid"}), ("answer", "pay", "a", unknown("a")), ("text", "Go on.")],
    )


def test_what_a_plugin_before_it_broke_is_mended():
    class Forgetting(BasePlugin):
        async def before_model_callback(self, *, llm_request: LlmRequest, **_: Any) -> None:
            del llm_request.contents[1]

    events = [event(each) for each in (ASK, asks("a"), answers(a="paid"), said("Done."))]
    kept = sent(events, [Forgetting("forgetting"), PatchToolCallsPlugin()])
    dropped = sent(events, [Forgetting("forgetting"), PatchToolCallsPlugin(orphans="drop")])
    (role, (ask, (kind, text))), *rest = kept
    assert (role, ask, kind) == ("user", ("text", "Pay Bo."), "text")
    assert "paid" in text
    assert dropped == [("user", [ask]), *rest]


def test_contents_that_cannot_be_read_are_left_to_the_provider():
    contents = [said("Be brief.", "system"), asks("a"), GO]
    assert mended(contents).contents == contents


def test_contents_that_go_on_with_what_the_service_keeps_are_left_alone():
    contents = [answers(a="paid")]
    assert mended(contents, previous_interaction_id="before").contents == contents
    assert mended(contents).contents != contents


def test_the_text_can_be_the_users_own():
    def text(name: str, call_id: str) -> str:
        return f"no answer to {name} {call_id}" if call_id == "a" else ""

    events = [event(ASK), event(asks("a", "b")), event(asks("c"), long_running_tool_ids={"c"})]
    request = sent(events, [PatchToolCallsPlugin(generator=text)])
    said_so = [atom[3]["error"] for _, atoms in request for atom in atoms if atom[0] == "answer"]
    assert said_so == [
        "no answer to pay a",
        "Tool call pay with id b has no recorded result - it may or may not have run. Check before running it again.",
        "Tool call pay with id c has no recorded result - it may or may not have run. Check before running it again.",
    ]


def test_the_text_can_depend_on_the_cause():
    def text(name: str, call_id: str, cause: Cause) -> str:
        return f"{name} {call_id}: {cause.value}"

    events = [event(ASK), event(asks("a")), event(asks("b"), long_running_tool_ids={"b"})]
    request = sent(events, [PatchToolCallsPlugin(generator=text)])
    said_so = [atom[3]["error"] for _, atoms in request for atom in atoms if atom[0] == "answer"]
    assert said_so == ["pay a: unknown", "pay b: unknown"]


@pytest.mark.parametrize("ambient", [False, True])
def test_the_text_can_be_in_chinese(ambient: bool):
    with using_language("zh" if ambient else "en"):
        plugin = PatchToolCallsPlugin() if ambient else PatchToolCallsPlugin(language="zh")
    events: list[Event] = [event(ASK), event(asks("a")), event(asks("b"), long_running_tool_ids={"b"})]
    request = sent(events, [plugin])
    said_so = [atom[3]["error"] for _, atoms in request for atom in atoms if atom[0] == "answer"]
    assert [text[:4] for text in said_so] == ["工具调用", "工具调用"]
    [(_, [_, (_, retold)]), *_] = sent([event(ASK), event(answers(z="paid")), event(said("I see."))], [plugin])
    assert "Output of a tool call" not in retold


def test_by_the_structure_alone_neighbours_are_not_merged():
    request = sent([event(ASK), event(asks("a"))], [PatchToolCallsPlugin(profile="pairing")])
    assert [role for role, _ in request] == ["user", "model", "user", "user"]


LONG = "call_" + "x" * 45


@pytest.mark.parametrize(
    ("model", "options", "limit"),
    [
        ("openai/gpt-9", {}, 40),
        ("somebody/else", {}, 40),
        ("mistral/large", {}, 9),
        ("gemini-9", {"profile": "openai-chat"}, 40),
        ("gemini-9", {}, 50),
    ],
)
def test_ids_suit_the_model_that_is_called(model: str, options: Any, limit: int):
    contents = [ASK, asks(LONG), answers(**{LONG: "paid"}), GO]
    request = mended(contents, PatchToolCallsPlugin(**options), model=model)
    ids = [atom[2] for content in request.contents for atom in told(content)[1] if atom[0] != "text"]
    assert ids[0] == ids[1]
    assert len(ids[0]) <= limit
    assert (ids[0] == LONG) is (limit >= len(LONG))
