"""Whatever a server sends, only Suture's own errors come out."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from suture.codecs import get_codec
from suture.errors import SutureError
from suture.messages import Delta
from tests.codecs.anthropic.samples import GIVEN, MADE

CODEC = get_codec("anthropic")
BEGUN = [
    {"type": "message_start", "message": {"content": []}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
]
EVENTS = ["message_start", "content_block_start", "content_block_delta", "content_block_stop", "message_delta", "error"]
DELTAS = ["text_delta", "thinking_delta", "signature_delta", "input_json_delta", "citations_delta", "compaction_delta"]
FIELDS = sorted({name for block, _ in [*GIVEN.values(), *MADE.values()] for name in block if name != "type"})
KINDS = sorted({block["type"] for block, _ in [*GIVEN.values(), *MADE.values()]})
SAID = ["text", "thinking", "signature", "partial_json", "citation", "content"]
COUNTS = ["input_tokens", "output_tokens", "output_tokens_details"]

leaves = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4)
values = st.recursive(
    leaves,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=2),
    max_leaves=4,
)


def objects(kinds: list[str], fields: list[str]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects of these types, mostly, with some of these fields, of any value."""
    typed = st.builds(lambda kind: {"type": kind}, st.sampled_from(kinds) | values)
    return st.builds(lambda one, rest: {**rest, **one}, typed, st.dictionaries(st.sampled_from(fields), values))


blocks = objects(KINDS, FIELDS)
holders = {
    "index": st.integers(0, 1) | values,
    "message": st.dictionaries(st.sampled_from(["content", "usage", "id"]), st.just([]) | values) | values,
    "content_block": blocks | values,
    "delta": objects(DELTAS, SAID) | st.dictionaries(st.just("stop_reason"), st.text(max_size=2) | values),
    "usage": st.dictionaries(st.sampled_from(COUNTS), st.integers() | values) | values,
    "error": values,
}
events = st.builds(
    lambda kind, held: {**held, **kind},
    st.builds(lambda kind: {"type": kind}, st.sampled_from(EVENTS) | values),
    st.fixed_dictionaries({}, optional=holders),
)


@given(sent=st.lists(events, max_size=8), begun=st.booleans())
@settings(deadline=None)
def test_events_of_any_kind_raise_nothing_else(sent: list[dict[str, Any]], begun: bool):
    reader = CODEC.reader()
    for event in [*(BEGUN if begun else []), *sent]:
        try:
            assert all(isinstance(delta, Delta) for delta in reader.feed(event))
        except SutureError:
            continue
    reader_ends(reader)


def reader_ends(reader: Any) -> None:
    """See that what is read to the end can be sent back."""
    try:
        message = reader.finish()
    except SutureError:
        return
    assert all(item["role"] == "assistant" for item in CODEC.encode_messages([message]).payload)


@given(content=st.lists(blocks | values, max_size=3) | values, usage=holders["usage"])
@settings(deadline=None)
def test_a_body_of_any_kind_raises_nothing_else(content: Any, usage: Any):
    try:
        message = CODEC.decode_reply({"content": content, "usage": usage})
    except SutureError:
        return
    assert CODEC.encode_messages([message]).payload is not None


@given(sent=st.lists(objects(["user", "assistant", "system"], ["content", *FIELDS]), max_size=3))
@settings(deadline=None)
def test_messages_of_any_kind_raise_nothing_else(sent: list[dict[str, Any]]):
    items = [{"role": item["type"], "content": [item], **item} for item in sent]
    try:
        messages = CODEC.decode_messages(items)
    except SutureError:
        return
    assert len(messages) == len(items)


bodies = st.fixed_dictionaries(
    {},
    optional={
        "messages": values,
        "system": values,
        "tools": st.lists(objects(["custom", "bash_20250124"], ["name", "input_schema", "description"]) | values),
        "tool_choice": objects(["auto", "tool", "none"], ["name", "disable_parallel_tool_use"]) | values,
        "output_config": st.dictionaries(st.just("format"), objects(["json_schema"], ["schema"]) | values) | values,
    },
)


@given(body=bodies)
@settings(deadline=None)
def test_a_request_of_any_kind_raises_nothing_else(body: dict[str, Any]):
    try:
        request = CODEC.decode_request({"messages": [], **body})
    except SutureError:
        return
    assert CODEC.encode_request(request).payload["max_tokens"] == 8192
