"""Answers of a type, over HTTP: how each provider is asked, and replies that ended before there was an answer."""

import asyncio
import json
from typing import Annotated, Any, Literal, TypedDict

import pydantic
import pytest

from suture import ChatModelAgent, OutputError
from suture.codecs.requests import make_strict
from suture.messages import AgenticMessage, AssistantGenText
from tests.models.loopback import loopback
from tests.models.providers import WIRES, make_model, reply, streamed, text_reply, whole

pytestmark = pytest.mark.usefixtures("surroundings")


class Item(pydantic.BaseModel):
    name: str
    price: Annotated[float, pydantic.Field(gt=0)] = 1.5
    note: str | None = None


class Other(pydantic.BaseModel):
    depth: int


class Loose(TypedDict, total=False):
    depth: int


PATHS = {
    "openai-chat": "response_format.json_schema",
    "openai-responses": "text.format",
    "anthropic": "output_config.format",
    "gemini": "generationConfig",
}
FIELDS = {"gemini": "responseJsonSchema"}


def at(body: Any, path: str) -> Any:
    for name in path.split("."):
        body = body.get(name) or {}
    return body


async def ask(wire: str, said: AgenticMessage, output_type: Any, *, streaming: bool = True) -> tuple[Any, Any]:
    """Return the output, and what the provider was sent of its form."""
    answers = [streamed(wire, said) if streaming else whole(wire, said)] * 3
    async with loopback(answers) as server:
        agent: Any = ChatModelAgent(model=make_model(wire, server.url), output_type=output_type)
        run = agent.stream("hi", streaming=streaming)
        try:
            output = (await run.result()).output
        finally:
            assert len(server.requests) == 1
        body = json.loads(server.requests[0].body)
    if wire == "bedrock":
        text = at(body, "outputConfig.textFormat.structure.jsonSchema.schema")
        return output, {"schema": json.loads(text) if text else None}
    form = at(body, PATHS[wire])
    return output, {"schema": form.get(FIELDS.get(wire, "schema")), "strict": form.get("strict")}


ITEMS = '{"answer": [{"name": "rope", "price": 2, "note": null}]}'


@pytest.mark.parametrize("wire", WIRES)
def test_a_list_is_asked_for_inside_of_an_object(wire: str):
    output, form = asyncio.run(ask(wire, text_reply(ITEMS), list[Item]))
    assert output == [Item(name="rope", price=2)]
    assert (form["schema"]["type"], list(form["schema"]["properties"])) == ("object", ["answer"])
    assert form["schema"]["additionalProperties"] is False
    assert form.get("strict") is (True if wire.startswith("openai") else None)


STRICT: list[tuple[Any, Any]] = [
    (
        Item,
        {
            "type": "object",
            "title": "Item",
            "properties": {
                "name": {"type": "string"},
                "price": {"type": "number"},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}]},
            },
            "required": ["name", "price", "note"],
            "additionalProperties": False,
        },
    ),
    (
        Literal["yes", 1],
        {
            "type": "object",
            "properties": {"answer": {"enum": ["yes", 1], "type": ["string", "integer"]}},
            "required": ["answer"],
            "additionalProperties": False,
        },
    ),
    (dict[str, int], None),
    (Loose, None),
    (tuple[int, str], None),
    (Any, None),
]


@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize(("output_type", "schema"), STRICT)
def test_a_schema_is_strict_where_nothing_is_lost(wire: str, output_type: Any, schema: Any):
    said = {Item: '{"name": "a"}', Literal["yes", 1]: '"yes"', tuple[int, str]: '[1, "a"]'}.get(output_type, '{"a": 1}')
    _, form = asyncio.run(ask(wire, text_reply(said), output_type))
    assert form["strict"] is (None if schema is None else True)
    if schema is not None:
        assert form["schema"] == schema
        assert list(form["schema"]["properties"]) == list(schema["properties"])


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {"a": {"type": "string"}}},
        {"type": "object", "properties": {"a": {"allOf": [{"type": "string"}]}}, "required": ["a"]},
        {"type": "object", "properties": {f"f{n}": {"type": "string"} for n in range(5001)}},
        {"type": "object", "properties": {"a": {"enum": [str(n) for n in range(1001)]}}, "required": ["a"]},
        {"anyOf": [{"type": "string"}]},
        {"type": "array", "items": {"type": "string"}},
    ],
)
def test_a_schema_that_strict_mode_refuses_is_not_strict(schema: dict[str, Any]):
    if len(schema.get("properties", {})) > 1:
        schema["required"] = list(schema["properties"])
    assert make_strict(schema) is None


def test_a_strict_reference_stands_alone_and_may_lead_back():
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/Node", "description": "?", "default": None}}}
    strict = make_strict({**node, "$defs": {"Node": {**node, "title": "Node"}}})
    assert strict is not None
    assert strict["properties"] == strict["$defs"]["Node"]["properties"] == {"next": {"$ref": "#/$defs/Node"}}
    assert strict["required"] == strict["$defs"]["Node"]["required"] == ["next"]


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("finish", "said"),
    [("length", "cut off before the answer was whole"), ("content_filter", "refused to answer|content filter")],
)
def test_a_reply_that_ended_early_is_told_with_the_providers_word(wire: str, finish: str, said: str, streaming: bool):
    words = {
        "length": {"anthropic": "max_tokens", "gemini": "MAX_TOKENS", "bedrock": "max_tokens"},
        "content_filter": {"anthropic": "refusal", "gemini": "SAFETY", "bedrock": "content_filtered"},
    }[finish]
    if wire == "openai-responses" and finish == "length":
        words = {wire: "max_output_tokens"}
    cut = reply(AssistantGenText('{"name": "ro'), finish=finish)
    with pytest.raises(OutputError, match=rf"({said}).*the provider's word: {words.get(wire, finish)}\)"):
        asyncio.run(ask(wire, cut, Item, streaming=streaming))


@pytest.mark.parametrize("streaming", [True, False])
@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("output_type", [Item, Item | str])
def test_a_refusal_is_told_in_its_words(wire: str, streaming: bool, output_type: Any):
    refused = reply(AssistantGenText("I cannot help with that.", extension={"refusal": True}))
    with pytest.raises(OutputError, match=r"refused to answer.*It said: 'I cannot help with that.'"):
        asyncio.run(ask(wire, refused, output_type, streaming=streaming))
