"""A refusal teaches a rule: the request is repaired by it and sent once more, and the rule is remembered."""

import gzip
import json
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from suture import check
from suture.profiles import default_profile
from suture.providers import Place
from suture.proxy import Lessons, Proxy, Reduction, Route
from suture.proxy.requests import Rules, look_at
from tests.proxy.serving import Reply, Request, proxy, upstream
from tests.proxy.test_traffic import PATHS, send

CALL = {"id": "call_abcdefghijklmnop", "type": "function", "function": {"name": "f", "arguments": "{}"}}
CHAT: list[Any] = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "", "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": CALL["id"], "content": "42"},
    {"role": "user", "content": "on"},
]
THINKS = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": "yes", "reasoning_content": "hm"},
    CHAT[3],
]
THOUGHT = {"type": "thinking", "thinking": "hm", "signature": "another's"}
CLAUDE = [
    {"role": "user", "content": "go"},
    {"role": "assistant", "content": [THOUGHT, {"type": "text", "text": "yes"}]},
    {"role": "user", "content": "on"},
]


def ids(body: Any) -> list[str]:
    return [call["id"] for message in body["messages"] for call in message.get("tool_calls", ())]


def roles(body: Any) -> list[str]:
    return [message["role"] for message in body["messages"]]


HIDDEN: dict[str, tuple[str, list[Any], Callable[[Any], bool], str]] = {
    "id-nine": (
        "openai-chat",
        CHAT,
        lambda body: all(len(each) == 9 and each.isalnum() for each in ids(body)),
        "Tool call id was call_x but must be a-z, A-Z, 0-9, with a length of 9.",
    ),
    "id-length": (
        "openai-chat",
        CHAT,
        lambda body: all(len(each) <= 12 for each in ids(body)),
        "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 12.",
    ),
    "tool-then-user": (
        "openai-chat",
        CHAT,
        lambda body: ("tool", "user") not in zip(roles(body), roles(body)[1:], strict=False),
        "Unexpected role 'user' after role 'tool'",
    ),
    "reasoning-field": (
        "openai-chat",
        CHAT,
        lambda body: all("reasoning_content" in message for message in body["messages"] if "tool_calls" in message),
        "thinking is enabled but reasoning_content is missing in assistant tool call message at index 1",
    ),
    "thoughts": (
        "openai-chat",
        THINKS,
        lambda body: "reasoning_content" not in json.dumps(body),
        "messages.1.assistant.reasoning_content: property 'messages.1.assistant.reasoning_content' is unsupported",
    ),
    "signature": (
        "anthropic",
        CLAUDE,
        lambda body: "another's" not in json.dumps(body),
        "messages.1.content.0: Invalid `signature` in `thinking` block",
    ),
}


@pytest.mark.parametrize("lesson", HIDDEN)
def test_what_is_refused_is_repaired_by_the_stricter_rule_and_sent_again(lesson: str, tmp_path: Path):
    wire, history, accepts, reason = HIDDEN[lesson]
    refusal = json.dumps({"error": {"message": reason}}).encode()
    file = tmp_path / "learned.json"

    def script(request: Request) -> Reply:
        taken = accepts(json.loads(request.body))
        return Reply([b"fine"]) if taken else Reply([refusal], status=b"400 Bad Request")

    body = json.dumps({"model": "odd", "messages": history}).encode()
    lasting = lesson not in ("signature", "thoughts")
    with upstream(script) as provider:
        for expected in (2, 1 if lasting else 2):  # another process, which reads what the first one learned
            provider.requests.clear()
            with proxy(Proxy([Route(upstream=provider.url)], lessons=Lessons(str(file)))) as url:
                reply, said = send(url, PATHS[wire], body)
            assert (reply.status, said, len(provider.requests)) == (200, b"fine", expected)
    assert file.exists() == lasting
    if lasting:
        [known] = json.loads(file.read_text())
        assert known["model"] == "odd"
        assert any(rule["id"].startswith("learned.") for rule in known["profile"]["rules"]) or known["profile"]["ids"]


def test_a_lesson_that_cannot_be_kept_still_helps(tmp_path: Path):
    _, history, accepts, reason = HIDDEN["id-nine"]

    def script(request: Request) -> Reply:
        taken = accepts(json.loads(request.body))
        return Reply([b"fine"]) if taken else Reply([reason.encode()], status=b"400 Bad Request")

    body = json.dumps({"model": "odd", "messages": history}).encode()
    with upstream(script) as provider:
        app = Proxy([Route(upstream=provider.url)], lessons=Lessons(str(tmp_path / "nowhere" / "l.json")))
        with proxy(app) as url:
            assert [send(url, PATHS["openai-chat"], body)[1] for _ in range(2)] == [b"fine", b"fine"]
    assert len(provider.requests) == 3


def test_a_request_that_is_too_long_is_shortened_to_what_the_provider_says(tmp_path: Path):
    sizes = {"user": 3, "assistant": 300}
    long = [{"role": role, "content": f"{n} " * sizes[role]} for n in range(30) for role in sizes]
    body = json.dumps({"model": "small", "messages": [*long, {"role": "user", "content": "so?"}]}).encode()

    def script(request: Request) -> Reply:
        tokens = len(request.body) // 3
        if tokens <= 5000:
            return Reply([b"fine"])
        said = f"This model's maximum context length is 5000 tokens. But your messages resulted in {tokens} tokens."
        return Reply([json.dumps({"error": {"message": said}}).encode()], status=b"400 Bad Request")

    with upstream(script) as provider:
        with proxy(Proxy([Route(upstream=provider.url)], lessons=Lessons(str(tmp_path / "l.json")))) as url:
            first, _ = send(url, PATHS["openai-chat"], body)
            second, _ = send(url, PATHS["openai-chat"], body)
    assert (first.status, second.status, len(provider.requests)) == (200, 200, 3)


def test_a_call_that_the_service_keeps_and_waits_for_is_answered():
    def script(request: Request) -> Reply:
        outputs = [item.get("call_id") for item in json.loads(request.body)["input"] if isinstance(item, dict)]
        if "call_9" in outputs:
            return Reply([b"fine"])
        said = b'{"error": {"message": "No tool output found for function call call_9."}}'
        return Reply([said], status=b"400 Bad Request")

    body = json.dumps({"model": "m", "previous_response_id": "resp_1", "input": "go on"}).encode()
    with upstream(script) as provider, proxy(Proxy([Route(upstream=provider.url)], lessons=Lessons())) as url:
        assert send(url, PATHS["openai-responses"], body)[1] == b"fine"
    assert json.loads(provider.requests[1].body)["input"][-1] == {"role": "user", "content": "go on"}


@pytest.mark.parametrize("said", [b'{"error": {"message": "no such model"}}', b"", b"x" * 400_000])
def test_a_refusal_that_teaches_nothing_is_passed_back_as_it_is(said: bytes):
    with upstream(Reply([said], status=b"400 Bad Request")) as provider:
        with proxy(Proxy([Route(upstream=provider.url)], lessons=Lessons())) as url:
            reply, body = send(url, PATHS["openai-chat"], json.dumps({"model": "m", "messages": CHAT}).encode())
    assert (reply.status, body, len(provider.requests)) == (400, said, 1)


@pytest.mark.parametrize(("coding", "pack"), [(b"gzip", gzip.compress), (b"deflate", zlib.compress)])
def test_a_compressed_refusal_teaches_too(coding: bytes, pack: Callable[[bytes], bytes]):
    wire, messages, accepts, said = HIDDEN["id-length"]
    refusal = pack(json.dumps({"error": {"message": said}}).encode())

    def answer(request: Request) -> Reply:
        if accepts(json.loads(request.body)):
            return Reply()
        return Reply([refusal], status=b"400 Bad Request", headers=[(b"content-encoding", coding)])

    with upstream(answer) as provider, proxy(Proxy([Route(upstream=provider.url)], lessons=Lessons())) as url:
        reply, _ = send(url, PATHS[wire], json.dumps({"model": "m", "messages": messages}).encode())
    assert (reply.status, len(provider.requests)) == (200, 2)


def test_what_was_repaired_before_the_refusal_is_counted_too():
    wire, messages, accepts, said = HIDDEN["id-length"]
    refusal = Reply([json.dumps({"error": {"message": said}}).encode()], status=b"400 Bad Request")

    def answer(request: Request) -> Reply:
        return Reply() if accepts(json.loads(request.body)) else refusal

    body = json.dumps({"model": "m", "messages": [each for each in messages if each["role"] != "tool"]}).encode()
    with upstream(answer) as provider, proxy(Proxy([Route(upstream=provider.url)], lessons=Lessons())) as url:
        learned, known = (send(url, PATHS[wire], body)[0].headers["x-suture-repaired"] for _ in range(2))
    assert (learned, known, len(provider.requests)) == ("2", "2", 3)


def test_a_refusal_after_the_second_try_is_the_first_one():
    answers = iter([b'{"message": "must be a-z, A-Z, 0-9, with a length of 9"}', b"other"])
    with upstream(lambda _: Reply([next(answers)], status=b"400 Bad Request")) as provider:
        with proxy(Proxy([Route(upstream=provider.url)], lessons=Lessons())) as url:
            _, body = send(url, PATHS["openai-chat"], json.dumps({"model": "m", "messages": CHAT}).encode())
    assert (b"length of 9" in body, len(provider.requests)) == (True, 2)


def test_what_is_known_already_teaches_nothing():
    rules = Rules(default_profile("anthropic"))
    said = b"messages.1.content.1.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'"
    assert Lessons().read(said, rules, "anthropic", 400) is None


@pytest.mark.parametrize(("reduction", "expected"), [(Reduction(clear=500), 2), (Reduction(compact=1500), 1)])
def test_a_route_may_shorten_what_it_sends(reduction: Reduction, expected: int):
    rounds: list[Any] = []
    for number in range(3):
        call = {**CALL, "id": f"call_{number}"}
        rounds += [{"role": "assistant", "content": "", "tool_calls": [call]}]
        rounds += [{"role": "tool", "tool_call_id": call["id"], "content": "word " * 600}]
    body = {"model": "m", "tools": [], "messages": [CHAT[0], *rounds]}
    with upstream() as provider, proxy(Proxy([Route(upstream=provider.url, reduction=reduction)])) as url:
        send(url, PATHS["openai-chat"], json.dumps(body).encode())
    sent = json.loads(provider.requests[0].body)
    assert sent["tools"] == []
    assert len(provider.requests[0].body) < 8000
    whole = [message for message in sent["messages"] if message["content"] == "word " * 600]
    assert len(whole) <= expected


def test_what_was_compacted_is_still_acceptable():
    words = [("user", "go on"), ("model", "word " * 300)] * 6
    contents = [{"role": role, "parts": [{"text": text}]} for role, text in [*words, ("user", "on")]]
    rules = Rules(default_profile("gemini"), Reduction(compact=1500))
    body = json.dumps({"contents": contents}).encode()
    made = look_at(body, PATHS["gemini"], Place("contents", "gemini"), lambda _: rules)
    assert made.reduced
    assert check(json.loads(made.body or b"")["contents"], wire="gemini").acceptable
