"""Whatever any model is sent passes `check`: the very bytes, where the SDK takes a ready body."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import suture
from suture.codecs import from_agentic
from suture.kernel import ModelRequest
from suture.messages import (
    AgenticMessage,
    AssistantGenText,
    FunctionToolCall,
    FunctionToolResult,
    History,
    Reasoning,
    UserInputImage,
    UserInputText,
)
from tests.models.providers import make_model

WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
PROFILES = [(wire, wire) for wire in WIRES] + [
    ("openai-chat", "mistral"),
    ("openai-chat", "deepseek"),
    ("openai-chat", "kimi"),
    ("openai-chat", "minimax"),
    ("anthropic", "minimax"),
]

texts = st.sampled_from(["hi", "", " ", "\n\n", "größer ✓", "cut \ud83d"])
ids = st.sampled_from(["a", "b", "call_1|fc_9", "", "toolu_!", "x" * 70])
names = st.sampled_from(["search", "fetch", ""])
thoughts = st.builds(
    lambda text, signature, origin: Reasoning(text, signature, extension={"wire": origin} if origin else {}),
    st.sampled_from(["hm", ""]),
    st.sampled_from(["", "c2ln"]),
    st.sampled_from(["", *WIRES]),
)
calls = st.builds(FunctionToolCall, ids, names, st.sampled_from(["{}", '{"q": 1}', "", '{"q": ', "[1]"]))
images = st.just(UserInputImage(base64_data="iVBORw0KGgo=", mime_type="image/png"))
outputs = st.lists(st.one_of(st.builds(UserInputText, texts), images), max_size=2).map(tuple)
results = st.builds(FunctionToolResult, ids, names, outputs, st.booleans())
said = st.lists(st.one_of(st.builds(AssistantGenText, texts), thoughts, calls, calls), max_size=4).map(tuple)
asked = st.lists(st.one_of(st.builds(UserInputText, texts), images, results, results), max_size=3).map(tuple)
messages = st.one_of(
    st.builds(lambda blocks: AgenticMessage("assistant", blocks), said),
    st.builds(lambda blocks: AgenticMessage("user", blocks), asked),
    st.builds(lambda text: AgenticMessage("system", (UserInputText(text),)), texts),
)
histories = st.lists(messages, min_size=1, max_size=7)
question = AgenticMessage.user("Go on.")


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")


@pytest.mark.parametrize("native", ["agentic", "message"])
@pytest.mark.parametrize(("wire", "profile"), PROFILES)
@given(first=histories, second=histories)
def test_whatever_a_model_is_sent_passes_check(
    wire: str, profile: str, native: str, first: list[AgenticMessage], second: list[AgenticMessage]
):
    model = make_model(wire, "http://127.0.0.1:9", profile=profile, wire=native)
    history: History[Any] = History()
    for step in ([*first, question], [*second, question]):
        history = history.continue_with(
            step if native == "agentic" else [one for each in step for one in from_agentic(each)]
        )
        try:
            body = model.body(ModelRequest("Answer briefly \ud83d.", history))
        except suture.HistoryError:  # what no operation mends is said before anything is sent
            return
        sent = json.loads(body.content)[body.field] if isinstance(body.forms[0], bytes) else body.messages
        report = suture.check(sent, wire=wire, profile=profile)
        assert report.acceptable, (report, sent)


@pytest.mark.parametrize("native", ["agentic", "message"])
@pytest.mark.parametrize("wire", WIRES)
def test_a_call_whose_arguments_were_cut_is_answered_as_malformed(wire: str, native: str):
    """Most providers take arguments as an object: in the payload nothing is left of what was cut."""
    model = make_model(wire, "http://127.0.0.1:9", wire=native)
    calls = [FunctionToolCall("a", "search", '{"q": 1}'), FunctionToolCall("b", "fetch", '{"url": "htt')]
    steps = [question, AgenticMessage.assistant([AssistantGenText("Hm."), *calls]), question]
    history: History[Any] = History()
    sent = ""
    for step in steps:
        history = history.continue_with([step] if native == "agentic" else from_agentic(step))
        sent = json.dumps(model.body(ModelRequest("", history)).messages)
    assert "Tool call fetch with id b was not run - its arguments were malformed or cut off." in sent
    assert "Tool call search with id a was canceled - another message came in" in sent
