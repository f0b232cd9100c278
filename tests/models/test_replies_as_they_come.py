"""Replies as servers really send them: how they end, how their calls come, and slips of the model's."""

import asyncio
import json
from typing import Any, NamedTuple

import pytest

from suture import ChatModelAgent, tool
from suture.errors import ModelReplyError, ModelRequestError, ModelServerError, StreamCutError
from tests.models.loopback import Answer, Asked, json_answer, loopback
from tests.models.providers import make_model

pytestmark = pytest.mark.usefixtures("surroundings")
CHAT = "openai-chat"
CALLED: list[Any] = []


@tool
def weather(city: str = "nowhere") -> str:
    """Tell the weather."""
    CALLED.append(city)
    return f"sunny in {city}"


@pytest.fixture(autouse=True)
def nothing_called() -> None:
    CALLED.clear()


def events(*bodies: Any, done: bool = True) -> Answer:
    lines = [body if isinstance(body, bytes) else b"data: " + json.dumps(body).encode() + b"\n\n" for body in bodies]
    return Answer([*lines, b"data: [DONE]\n\n"] if done else lines)


def chunk(reason: Any = None, **delta: Any) -> dict[str, Any]:
    return {"id": "c", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}]}


def piece(index: int | None = 0, call_id: Any = None, name: Any = None, arguments: Any = None) -> dict[str, Any]:
    said: dict[str, Any] = {"function": {"name": name, "arguments": arguments}}
    said |= {} if index is None else {"index": index}
    return said if call_id is None else {**said, "id": call_id, "type": "function"}


def calls(*pieces: dict[str, Any], reason: Any = None) -> dict[str, Any]:
    return chunk(reason, tool_calls=list(pieces))


def completion(reason: Any = "stop", **message: Any) -> Answer:
    said = {"role": "assistant", "content": None, **message}
    return json_answer({"choices": [{"index": 0, "message": said, "finish_reason": reason}]})


FINISHED = events(chunk("stop", content="Done."))


class Ran(NamedTuple):
    """What a run gave, and the requests that it sent."""

    output: str
    messages: Any
    requests: list[Asked]


def run(wire: str, *answers: Answer, **settings: Any) -> Ran:
    async def main() -> Ran:
        async with loopback(answers) as server:
            agent = ChatModelAgent(
                model=make_model(wire, server.url, **settings), tools=[weather], model_retry_config=None
            )
            result = await agent.run("hi")
            return Ran(result.output, result.messages, server.requests)

    return asyncio.run(main())


# The end of a reply


@pytest.mark.parametrize("reason", [None, ""])
def test_the_mark_of_the_end_ends_a_text_without_a_reason(reason: Any):
    assert run(CHAT, events(chunk(reason, content="It is "), chunk(reason, content="4."))).output == "It is 4."


def test_the_mark_of_the_end_ends_a_call_without_a_reason():
    run(CHAT, events(calls(piece(0, "a", "weather", '{"city": "Rome"}'))), FINISHED)
    assert CALLED == ["Rome"]


@pytest.mark.parametrize("reply", [[chunk(content="It is ")], [chunk()], []])
def test_a_stream_with_neither_a_reason_nor_the_mark_is_cut(reply: list[Any]):
    with pytest.raises(StreamCutError) as caught:
        run(CHAT, events(*reply, done=False))
    assert caught.value.retryable


def test_the_mark_alone_is_no_reply():
    with pytest.raises(StreamCutError):
        run(CHAT, events(chunk(role="assistant", content="")))


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_a_last_event_without_its_blank_line_is_read(end: bytes):
    last = b"data: " + json.dumps(chunk("stop", content="4.")).encode() + end
    assert run(CHAT, events(chunk(content="It is "), last, done=False)).output == "It is 4."


def test_half_of_a_last_event_is_no_event():
    last = b"data: " + json.dumps(chunk("stop", content="4.")).encode()[:-3]
    with pytest.raises(StreamCutError):
        run(CHAT, events(chunk(content="It is "), last, done=False))


def test_a_whole_reply_without_a_reason_is_read():
    assert run(CHAT, completion(None, content="It is 4."), streaming=False).output == "It is 4."


# Calls


ROME, OSLO = '{"city":"Rome"}', '{"city":"Oslo"}'
STREAMED: dict[str, tuple[list[Any], list[str]]] = {
    "two at one index with empty ids": (
        [calls(piece(0, "", "weather", ROME)), calls(piece(0, "", "weather", OSLO))],
        ["Rome", "Oslo"],
    ),
    "two in one chunk at one index": (
        [calls(piece(0, "", "weather", ROME), piece(0, "", "weather", OSLO))],
        ["Rome", "Oslo"],
    ),
    "two in one text": ([calls(piece(0, "a", "weather", ROME + OSLO))], ["Rome", "Oslo"]),
    "three in pieces": (
        [
            calls(piece(0, "a", "weather", ROME[:5])),
            calls(piece(0, None, None, ROME[5:] + OSLO[:4])),
            calls(piece(0, None, None, OSLO[4:] + '\n{"city":"}{"}')),
        ],
        ["Rome", "Oslo", "}{"],
    ),
    "an empty object first": (
        [calls(piece(0, "a", "weather", "{}")), calls(piece(0, None, None, ROME))],
        ["Rome"],
    ),
    "an empty object twice": ([calls(piece(0, "a", "weather", "{}{}"))], ["nowhere"]),
    "an object first": ([calls(piece(0, "a", "weather", {})), calls(piece(0, None, None, ROME))], ["Rome"]),
    "the whole again": ([calls(piece(0, "a", "weather", ROME)), calls(piece(0, None, None, ROME))], ["Rome"]),
    "a name in pieces": (
        [
            calls(piece(0, "a", "wea", "")),
            calls(piece(0, None, "ther", "")),
            calls(piece(0, None, None, ROME)),
        ],
        ["Rome"],
    ),
    "a name in pieces, the id in each": (
        [calls(piece(0, "a", "wea", "")), calls(piece(0, "a", "ther", "")), calls(piece(0, "a", None, ROME))],
        ["Rome"],
    ),
    "a name in each piece": (
        [calls(piece(0, "a", "weather", ROME[:5])), calls(piece(0, "a", "weather", ROME[5:]))],
        ["Rome"],
    ),
    "a name in each piece, without ids": (
        [calls(piece(0, None, "weather", ROME[:5])), calls(piece(0, None, "weather", ROME[5:]))],
        ["Rome"],
    ),
    "null": ([calls(piece(0, "a", "weather", "null"))], ["nowhere"]),
    "nothing": ([calls(piece(0, "a", "weather", None))], ["nowhere"]),
    "a number as id": (
        [calls(piece(0, 7, "weather", ROME)), calls(piece(1, 8, "weather", OSLO))],
        ["Rome", "Oslo"],
    ),
    "the same at another index": (
        [calls(piece(0, "a", "weather", ROME)), calls(piece(1, "a", "weather", ROME))],
        ["Rome"],
    ),
    "side by side": (
        [
            calls(piece(None, "a", "weather", ""), piece(None, "b", "weather", "")),
            calls(piece(None, None, None, ROME[:5]), piece(None, None, None, OSLO[:5])),
            calls(piece(None, None, None, ROME[5:]), piece(None, None, None, OSLO[5:])),
        ],
        ["Rome", "Oslo"],
    ),
    "no id": ([calls(piece(0, None, "weather", ROME))], ["Rome"]),
    "an object": ([calls(piece(0, "a", "weather", {"city": "Rome"}))], ["Rome"]),
}


@pytest.mark.parametrize("name", STREAMED)
def test_calls_are_read_however_they_are_streamed(name: str):
    pieces, cities = STREAMED[name]
    result = run(CHAT, events(*pieces, chunk("tool_calls")), FINISHED)
    sent = [item for item in result.requests[-1].payload["messages"] if item["role"] == "tool"]
    assert sorted(CALLED) == sorted(cities)
    results = [message for message in result.messages if message.role == "tool"]
    assert [message.content for message in results] == [f"sunny in {city}" for city in cities]
    assert [item["content"] for item in sent] == [f"sunny in {city}" for city in cities]
    assert len({item["tool_call_id"] for item in sent}) == len(cities)


WHOLE: dict[str, tuple[list[Any], list[str]]] = {
    "two in one text": ([piece(None, "a", "weather", ROME + OSLO)], ["Rome", "Oslo"]),
    "an empty object first": ([piece(None, "a", "weather", "{}" + ROME)], ["Rome"]),
    "null": ([piece(None, "a", "weather", "null")], ["nowhere"]),
    "a number as id": ([piece(None, 0, "weather", ROME), piece(None, 1, "weather", OSLO)], ["Rome", "Oslo"]),
    "no id": ([piece(None, None, "weather", ROME)], ["Rome"]),
}


@pytest.mark.parametrize("name", WHOLE)
def test_calls_are_read_in_whole_replies_too(name: str):
    asked, cities = WHOLE[name]
    done = completion(content="Done.")
    run(CHAT, completion("tool_calls", tool_calls=asked), done, streaming=False)
    assert sorted(CALLED) == sorted(cities)


def test_a_call_in_a_choice_of_its_own_is_read_with_the_text():
    text = {"message": {"role": "assistant", "content": "I look."}, "finish_reason": "tool_calls"}
    asked = {"role": "assistant", "tool_calls": [piece(None, "a", "weather", ROME)]}
    answer = json_answer({"choices": [text, {"message": asked, "finish_reason": "tool_calls"}]})
    result = run(CHAT, answer, completion(content="Done."), streaming=False)
    assert CALLED == ["Rome"]
    assert result.messages[1].content == "I look."


@pytest.mark.parametrize("reason", ["stop", "", None])
def test_a_reply_with_a_call_has_the_reason_of_calls(reason: Any):
    result = run(CHAT, events(calls(piece(0, "a", "weather", ROME)), chunk(reason)), FINISHED)
    assert result.messages[1].response_meta.finish_reason == "tool_calls"


# Choices


def test_a_choice_whose_number_counts_its_tokens_is_one_choice():
    pieces = [{"choices": [{"index": place, "delta": {"content": text}}]} for place, text in enumerate("abc", 1)]
    assert run(CHAT, events(*pieces, chunk("stop"))).output == "abc"


def test_of_several_choices_the_first_is_read():
    pieces = [{"choices": [{"index": place, "delta": {"content": text}}]} for place, text in enumerate("abc")]
    assert run(CHAT, events(*pieces, chunk("stop"))).output == "a"


def test_usage_may_stand_in_the_choice():
    cost = {"prompt_tokens": 19, "completion_tokens": 13, "total_tokens": 32}
    last = chunk("stop", content="Hi.")
    last["choices"][0]["usage"] = cost
    result = run(CHAT, events(last))
    assert result.messages[-1].response_meta.usage.prompt_tokens == 19


def test_a_network_error_told_as_a_reason_is_an_error():
    last = chunk("stop", content="")
    last["choices"][0]["native_finish_reason"] = "network_error"
    with pytest.raises(ModelServerError, match="network_error"):
        run(CHAT, events(last))


# Slips of the model's


def gemini(reason: str, *parts: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"candidates": [{"content": {"role": "model", "parts": list(parts)}, "finishReason": reason, **more}]}


GROQ = {
    "error": {
        "message": "Failed to call a function. Please adjust your prompt.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": "<function=weather>{}</function>",
        "status_code": 400,
    }
}
SLIPS: dict[str, tuple[str, Answer, str]] = {
    "Gemini, a call that is malformed": (
        "gemini",
        events(gemini("MALFORMED_FUNCTION_CALL"), done=False),
        "MALFORMED_FUNCTION_CALL",
    ),
    "Gemini, behind a text": (
        "gemini",
        events(gemini("MALFORMED_FUNCTION_CALL", {"text": "I look that up."}), done=False),
        "MALFORMED_FUNCTION_CALL",
    ),
    "Gemini, a call of no tool": ("gemini", events(gemini("UNEXPECTED_TOOL_CALL"), done=False), "UNEXPECTED_TOOL_CALL"),
    "Gemini, too many calls": ("gemini", events(gemini("TOO_MANY_TOOL_CALLS"), done=False), "TOO_MANY_TOOL_CALLS"),
    "Gemini, a malformed reply": ("gemini", events(gemini("MALFORMED_RESPONSE"), done=False), "MALFORMED_RESPONSE"),
    "Gemini through Chat": (
        CHAT,
        events(chunk("function_call_filter: MALFORMED_FUNCTION_CALL", content="")),
        "MALFORMED_FUNCTION_CALL",
    ),
    "Groq, refused": (CHAT, json_answer(GROQ, 400), "Failed to call a function.*<function=weather>"),
    "Groq, in a stream": (
        CHAT,
        events(chunk(content=""), b"event: error\ndata: " + json.dumps(GROQ).encode() + b"\n\n"),
        "Failed to call a function.*<function=weather>",
    ),
    "calls that are announced and do not come": (CHAT, events(chunk("tool_calls", content="")), "no call"),
}


@pytest.mark.parametrize("name", SLIPS)
def test_a_slip_of_the_models_is_an_error_that_may_pass(name: str):
    wire, answer, words = SLIPS[name]
    with pytest.raises(ModelReplyError, match=words) as caught:
        run(wire, answer)
    assert caught.value.retryable
    assert not isinstance(caught.value, ModelRequestError)


def test_a_slip_is_asked_again():
    async def main() -> Any:
        answers = [SLIPS["calls that are announced and do not come"][1], FINISHED]
        async with loopback(answers) as server:
            return await ChatModelAgent(model=make_model(CHAT, server.url)).run("hi")

    assert asyncio.run(main()).output == "Done."


def test_a_history_that_lacks_a_signature_is_refused_and_not_sent_again():
    with pytest.raises(ModelRequestError, match="MISSING_THOUGHT_SIGNATURE") as caught:
        run("gemini", events(gemini("MISSING_THOUGHT_SIGNATURE"), done=False))
    assert not caught.value.retryable


def test_a_text_with_the_reason_of_a_call_is_a_text():
    assert run(CHAT, events(chunk(content="Hi."), chunk("tool_calls"))).output == "Hi."
