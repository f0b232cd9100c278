"""The objects that the `google-genai` package returns, beside dicts, broken and whole, and sent again."""

import base64
from collections.abc import Iterator
from typing import Any

import google.genai as genai  # noqa: PLR0402 - stubs of another package hide it from `from google import`
import pytest
from google.genai import types

import suture
from tests.shapes.loopback import Provider, gemini_answer, provider
from tests.shapes.texts import placeholder

GO = types.Content(role="user", parts=[types.Part(text="go")])
STOP = {"role": "user", "parts": [{"text": "stop"}]}
SIGNATURE = base64.b64encode(b"signed").decode()


def call(name: str = "search", **more: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, "args": {"q": "x"}, **more}}


def answer(name: str = "search", output: str = "1", **more: Any) -> types.Content:
    response = types.FunctionResponse(name=name, response={"output": output}, **more)
    return types.Content(role="user", parts=[types.Part(function_response=response)])


class Talk:
    def __init__(self, client: genai.Client, far: Provider) -> None:
        self.client, self.far = client, far

    def ask(self, contents: Any, *parts: Any) -> types.Content:
        self.far.answers.append(gemini_answer(*(parts or ({"text": "ok"},))))
        reply = self.client.models.generate_content(model="m", contents=contents)
        content = (reply.candidates or [])[0].content
        assert content is not None
        return content

    def arrived(self, contents: Any) -> list[Any]:
        self.ask(contents)
        return self.far.bodies[-1]["contents"]


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch) -> Iterator[Talk]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    for name in ("GOOGLE_API_KEY", "GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"):
        monkeypatch.delenv(name, raising=False)
    with provider() as far:
        client = genai.Client(api_key="none", http_options=types.HttpOptions(base_url=far.url))
        try:
            yield Talk(client, far)
        finally:
            client.close()


def test_a_whole_history_of_dicts_and_contents_comes_back_as_the_same_list_and_is_sent(talk: Talk):
    asked = talk.ask([GO], {"text": "I will look."}, call("search"), call("fetch"))
    both = types.Content(role="user", parts=[*(answer("search").parts or []), *(answer("fetch").parts or [])])
    contents: list[Any] = [GO, asked, both, talk.ask([GO]), STOP]
    fixed = suture.repair(contents)
    assert fixed.messages is contents
    assert fixed.report.wire == "gemini"
    arrived = talk.arrived(fixed.messages)
    assert [content["role"] for content in arrived] == ["user", "model", "user", "model", "user"]
    assert arrived[1]["parts"] == [{"text": "I will look."}, call("search"), call("fetch")]


def test_an_interrupted_call_without_an_id_is_answered_and_accepted(talk: Talk):
    """And a signature stays in its part."""
    asked = talk.ask([GO], {**call("search"), "thoughtSignature": SIGNATURE}, call("fetch"))
    fixed = suture.repair([GO, asked, answer("fetch", "2"), STOP])
    assert fixed.messages[0] is GO
    assert fixed.messages[1] is asked
    arrived = talk.arrived(fixed.messages)
    assert arrived[1]["parts"][0]["thoughtSignature"] == SIGNATURE
    first, second, words = arrived[2]["parts"]
    assert first["functionResponse"]["name"] == "search"
    assert first["functionResponse"]["response"] == {"error": placeholder("interrupted", "")}
    assert second["functionResponse"]["response"] == {"output": "2"}
    assert words == {"text": "stop"}
    assert suture.check(fixed.messages).acceptable
    assert suture.repair(fixed.messages).messages is fixed.messages


def test_a_call_with_an_id_is_answered_under_it(talk: Talk):
    asked = talk.ask([GO], call("search", id="x"))
    fixed = suture.repair([GO, asked])
    arrived = talk.arrived(fixed.messages)
    response = arrived[2]["parts"][0]["functionResponse"]
    assert (response["id"], response["name"]) == ("x", "search")
    assert response["response"] == {"error": placeholder("unknown", "x")}


def test_answers_in_separate_contents_are_merged_and_the_objects_are_not_changed(talk: Talk):
    asked = talk.ask([GO], call("search", id="x"), call("fetch", id="y"))
    late, first = answer("search", "1", id="x"), answer("fetch", "2", id="y")
    before = late.model_dump(), first.model_dump()
    fixed = suture.repair([GO, asked, first, STOP, late, talk.ask([GO])])
    assert (late.model_dump(), first.model_dump()) == before
    arrived = talk.arrived(fixed.messages)
    assert [content["role"] for content in arrived] == ["user", "model", "user", "model"]
    assert [part["functionResponse"]["id"] for part in arrived[2]["parts"][:2]] == ["x", "y"]
    assert arrived[2]["parts"][2:] == [{"text": "stop"}]


def test_a_name_that_an_object_lacks_is_filled_in_a_copy(talk: Talk):
    asked = talk.ask([GO], call("search", id="x"))
    nameless = types.Content(
        role="user", parts=[types.Part(function_response=types.FunctionResponse(id="x", response={"output": "1"}))]
    )
    before = nameless.model_dump()
    fixed = suture.repair([GO, asked, nameless])
    assert nameless.model_dump() == before
    arrived = talk.arrived(fixed.messages)
    assert arrived[2]["parts"][0]["functionResponse"]["name"] == "search"


def test_a_history_that_starts_with_the_models_object_is_given_a_user_turn(talk: Talk):
    asked = talk.ask([GO], call("search"))
    fixed = suture.repair([asked, answer("search")])
    assert fixed.messages[1] is asked
    arrived = talk.arrived(fixed.messages)
    assert [content["role"] for content in arrived] == ["user", "model", "user"]


def test_an_orphan_object_is_kept_as_text(talk: Talk):
    fixed = suture.repair([GO, talk.ask([GO]), answer("search", "precious"), talk.ask([GO])])
    arrived = talk.arrived(fixed.messages)
    assert "functionResponse" not in str(arrived)
    assert "precious" in arrived[2]["parts"][0]["text"]
