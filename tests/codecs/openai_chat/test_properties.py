"""What holds for every message, every stream and every history."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.codecs import decode, get_codec
from suture.errors import SutureError
from suture.messages import (
    AgenticMessage,
    AssistantGenAudio,
    AssistantGenImage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    Opaque,
    Reasoning,
    ResponseMeta,
    ServerToolCall,
    TokenUsage,
    UserInputFile,
    UserInputImage,
    UserInputText,
)
from suture.profiles import PROFILES, get_profile
from tests.codecs.openai_chat.samples import MADE, MESSAGES, SEALED, SIGNED, own, thought
from tests.codecs.openai_chat.server import CODEC, write_reply, write_stream
from tests.histories import Step, write

words = st.text(max_size=70)
some = st.text(min_size=1, max_size=70)
ids = st.sampled_from(["a", "b", ""])

# Messages as they are read here: written and read again, they are the same.
calls = st.one_of(
    st.builds(FunctionToolCall, ids, words, words, extra=st.sampled_from([{}, own(x=1)])),
    st.builds(FunctionToolCall, st.just("c"), words, words, extra=st.just({"suture.kind": "custom"})),
)
thoughts = st.one_of(
    st.builds(thought, some),
    st.builds(lambda text: thought(text, field="reasoning"), some),
    st.builds(lambda text: thought(text, "c2ln", field="reasoning", details=[SIGNED, SEALED]), some),
    st.just(thought("Hm.", field="reasoning_details", details=[{**SEALED, "summary": "Hm."}])),
)
turns = st.builds(
    lambda *blocks: AgenticMessage("assistant", tuple(block for group in blocks for block in group)),
    st.lists(thoughts, max_size=1),
    st.lists(st.builds(AssistantGenText, some), max_size=1),
    st.lists(st.builds(AssistantGenText, some, extension=st.just({"refusal": True})), max_size=1),
    st.lists(calls, max_size=3),
)
media = st.sampled_from(
    [
        UserInputImage(base64_data="AAAA", mime_type="image/jpeg", detail="high"),
        UserInputImage(url="https://example.com/a"),
        UserInputFile(base64_data="AAAA", mime_type="application/pdf", name="a.pdf"),
    ]
)
questions = st.builds(
    lambda role, text, held: AgenticMessage(role, (UserInputText(text), *(held if role == "user" else ()))),
    st.sampled_from(["user", "system"]),
    words,
    st.lists(media, max_size=2),
)
results = st.builds(lambda call_id, text: AgenticMessage.tool_result(call_id, "", text), ids, words)
known = st.sampled_from([message for name, (_, message) in MESSAGES.items() if "custom tool" not in name])


@given(messages=st.lists(st.one_of(turns, questions, results, known), max_size=6))
def test_what_is_written_is_read_as_it_was(messages: list[AgenticMessage]):
    payload, losses = CODEC.encode_messages(messages)
    assert losses == ()
    assert CODEC.decode_messages(payload) == messages


# Any blocks at all
blocks = st.one_of(
    calls,
    thoughts,
    media,
    st.builds(Reasoning, words, words, extension=st.sampled_from([{}, {"wire": "gemini"}])),
    st.builds(AssistantGenText, words, extension=st.sampled_from([{}, {"refusal": True}, {"annotations": [1]}])),
    st.builds(AssistantGenText, words, extra=st.just(own(mark=1))),
    st.sampled_from([block for _, message in MADE.values() for block in message.content_blocks]),
    st.sampled_from(
        [
            AssistantGenImage(url="https://example.com/a"),
            AssistantGenAudio(base64_data="AAAA"),
            ServerToolCall(call_id="s", name="web"),
            Opaque({"type": "hologram"}),
            FunctionToolResult("a", "f", [UserInputText("6.")]),
        ]
    ),
)
metas = st.one_of(
    st.none(),
    st.builds(
        ResponseMeta,
        finish_reason=st.sampled_from(["stop", "length", "", "other"]),
        usage=st.one_of(st.none(), st.builds(TokenUsage, prompt_tokens=st.integers(0, 9), total_tokens=st.just(9))),
        extension=st.sampled_from([{}, {"id": "i", "model": "m"}, own(choice={"seed": 1}, tier=["a"])]),
    ),
)
replies = st.builds(
    lambda held, meta, extra: AgenticMessage("assistant", tuple(held), response_meta=meta, extra=extra),
    st.lists(blocks, max_size=6),
    metas,
    st.sampled_from([{}, own(listed=None), own(name="ann"), {"mine": 1}]),
)


@given(message=replies)
def test_a_stream_says_what_the_plain_response_says(message: AgenticMessage):
    body = write_reply(message)
    reader = CODEC.reader()
    for event in write_stream(body):
        reader.feed(event)
    assert reader.finish() == CODEC.decode_reply(body)


# Anything at all, as an event
NAMES = [
    *("id", "model", "choices", "usage", "error", "object", "index", "delta", "finish_reason", "logprobs"),
    *("content", "refusal", "tool_calls", "function", "custom", "name", "arguments", "input", "type", "text"),
    *("thinking", "audio", "data", "transcript", "reasoning", "reasoning_content", "reasoning_details"),
    *("function_call", "images", "image_url", "url", "annotations", "prompt_tokens", "completion_tokens"),
    *("total_tokens", "message", "code", "prompt_tokens_details", "cached_tokens", "signature", "x_groq"),
]
VALUES = [None, True, 0, 1, -1, 0.5, "", "a", "text", "thinking", "function", "custom", "refusal", "stop", "error"]
anything: st.SearchStrategy[Any] = st.recursive(
    st.sampled_from(VALUES),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from(NAMES), anything, max_size=4)
pieces = st.fixed_dictionaries(
    {},
    optional={
        "index": st.sampled_from([0, 1, None]),
        "id": ids,
        "type": st.sampled_from(["function", "custom", "beam"]),
        "function": objects,
        "custom": objects,
    },
)
deltas = st.fixed_dictionaries(
    {}, optional={"tool_calls": st.lists(pieces, max_size=2), "content": anything, "reasoning_details": anything}
)
choices = st.fixed_dictionaries(
    {"delta": deltas | objects}, optional={"finish_reason": st.sampled_from(["stop", None]), "logprobs": anything}
)
chunks = st.fixed_dictionaries({"choices": st.lists(choices, max_size=2)}, optional={"usage": objects})


@given(events=st.lists(objects | chunks, max_size=6))
def test_whatever_a_server_sends_ends_in_a_message_or_in_an_error_of_its_own(events: list[dict[str, Any]]):
    reader = CODEC.reader()
    for event in events:
        try:
            reader.feed(event)
        except SutureError:
            continue
    try:
        message = reader.finish()
    except SutureError:
        return
    CODEC.encode_messages([message])


@given(body=objects, choice=objects, message=objects)
def test_whatever_a_server_answers_is_a_message_or_an_error_of_its_own(body: Any, choice: Any, message: Any):
    try:
        CODEC.decode_reply({**body, "choices": [{**choice, "message": message}]})
    except SutureError:
        return


@given(
    items=st.lists(
        st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant", "tool"])}).flatmap(
            lambda head: objects.map(lambda rest: {**rest, **head})
        ),
        max_size=3,
    )
)
def test_whatever_a_history_holds_comes_back_or_is_refused(items: list[dict[str, Any]]):
    try:
        messages = CODEC.decode_messages(items)
    except SutureError:
        return
    once = CODEC.encode_messages(messages).payload
    assert CODEC.encode_messages(CODEC.decode_messages(once)).payload == once


# Histories, encoded and then repaired
tools = st.tuples(st.sampled_from(["a", "b", "", "fn.read:0", "x" * 70]), st.sampled_from(["f", ""]), words)
steps = st.one_of(
    st.tuples(st.just("user"), st.sampled_from(["hello", "again"])),
    st.tuples(st.just("system"), st.just("be brief")),
    st.tuples(st.just("say"), st.sampled_from(["well", ""])),
    st.tuples(st.just("think"), st.just("so")),
    st.tuples(st.just("turn"), st.lists(tools, min_size=1, max_size=3)),
    st.tuples(st.just("turn"), st.lists(tools, min_size=1, max_size=3)),
    tools.map(lambda tool: ("result", *tool)),
    tools.map(lambda tool: ("result", *tool)),
    st.tuples(st.just("mixed"), st.lists(tools, min_size=1, max_size=2), st.just("and")),
)
OURS = [name for name in PROFILES if get_profile(name).speaks_of("openai-chat") and name != "pairing"]


def check_repaired(messages: list[AgenticMessage], profile: str) -> None:
    payload = get_codec("openai-chat", field=get_profile(profile).field).encode_messages(messages).payload
    fixed = suture.repair(payload, wire="openai-chat", profile=profile)
    report = suture.check(fixed.messages, wire="openai-chat", profile=profile)
    assert {finding.problem for finding in report.findings} <= {finding.problem for finding in fixed.unresolved}


@pytest.mark.parametrize("wire", ["agentic", "message"])
@pytest.mark.parametrize("profile", OURS)
@given(history=st.lists(steps, max_size=8))
def test_whatever_is_written_is_acceptable_once_it_is_repaired(wire: str, profile: str, history: list[Step]):
    check_repaired(decode(write(wire, history), wire), profile)


seen = st.builds(lambda held: FunctionToolResult("a", "f", held), st.lists(media, max_size=2))
anyone = st.builds(
    lambda role, held: AgenticMessage(role, tuple(held)),
    st.sampled_from(["user", "system"]),
    st.lists(st.one_of(blocks, seen, st.builds(UserInputText, words)), max_size=5),
)


@pytest.mark.parametrize("profile", OURS)
@given(messages=st.lists(st.one_of(replies, anyone), max_size=5))
def test_any_blocks_that_are_written_are_acceptable_once_they_are_repaired(
    profile: str, messages: list[AgenticMessage]
):
    check_repaired(messages, profile)
