"""A long run stays linear: a turn looks only at what is new."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from typing import Any

import pytest

from suture import ChatModelAgent, tool
from suture.middleware import PatchToolCalls
from suture.testing import ScriptedModel
from suture.wires import get_chat_wire
from tests.agent.patching.wiring import history, on_each_wire, one, sent
from tests.models.providers import WIRES as PROVIDERS
from tests.models.providers import make_model
from tests.shapes.notation import call, turn, user

MIDDLEWARES: dict[str, list[Any]] = {
    "fit alone": [],
    "persisted": [PatchToolCalls()],
    "not persisted": [PatchToolCalls(persist=False)],
}
each_way = pytest.mark.parametrize("way", MIDDLEWARES)
WHOLE = (user("What time is it?"),)
BROKEN = (user("hi"), turn(call("lost", "tides")), user("What time is it?"))


@tool
async def clock() -> str:
    """Tell the time."""
    return "12:00"


def replies(wire: str, turns: int) -> list[Any]:
    return [*(one(wire, turn(call(f"t{number}", "clock", {}))) for number in range(turns)), "ok"]


def looked_at(monkeypatch: pytest.MonkeyPatch, wire: str, way: str, start: Sequence[Any], turns: int) -> int:
    """Return how many messages the wire was made to look at in a run of so many turns."""
    kind = type(get_chat_wire(wire))
    glance, view, total = kind.glance, kind.view, [0]

    def glancing(self: Any, messages: Any, start: int, demands: Any) -> int:
        reached = glance(self, messages, start, demands)
        total[0] += reached - start + 1  # the one that ended the glance was looked at, too
        return reached

    def viewing(self: Any, message: Any, index: int | None = None) -> Any:
        total[0] += 1
        return view(self, message, index)

    with monkeypatch.context() as patched:
        patched.setattr(kind, "glance", glancing)
        patched.setattr(kind, "view", viewing)
        model = ScriptedModel(replies(wire, turns), wire)
        agent = ChatModelAgent(model=model, tools=[clock], middlewares=MIDDLEWARES[way], max_iterations=turns + 1)
        agent.run_sync(history(wire, *start))
        assert len(sent(model)) >= 2 * turns
    return total[0]


@pytest.mark.parametrize("start", [WHOLE, BROKEN], ids=["whole", "broken"])
@each_way
@on_each_wire
def test_a_run_looks_at_each_message_a_few_times_however_long_it_is(
    monkeypatch: pytest.MonkeyPatch, wire: str, way: str, start: Sequence[Any]
):
    for turns in (25, 100):
        messages = 2 * turns + len(start)
        assert messages - 1 <= looked_at(monkeypatch, wire, way, start, turns) <= 8 * messages


class Seen:
    """A message as an SDK's object, that counts how often it is looked at."""

    def __init__(self, looks: Counter[str], label: str, **fields: Any) -> None:
        vars(self).update(fields, _looks=looks, _label=label)

    def __getattribute__(self, name: str) -> Any:
        fields = object.__getattribute__(self, "__dict__")
        if name in {"role", "content", "tool_calls", "tool_call_id"}:
            fields["_looks"][fields["_label"]] += 1
        return object.__getattribute__(self, name)


CALL = {"id": "a", "type": "function", "function": {"name": "tides", "arguments": "{}"}}


def looks_at_the_first_messages(way: str, turns: int, *, broken: bool) -> Counter[str]:
    looks: Counter[str] = Counter()
    given: list[Any] = [
        Seen(looks, "ask", role="user", content="hi"),
        Seen(looks, "call", role="assistant", content=None, tool_calls=[CALL]),
        Seen(looks, "result", role="tool", tool_call_id="a", content="06:12"),
        {"role": "user", "content": "What time is it?"},
    ]
    if broken:
        given.insert(3, {"role": "assistant", "content": None, "tool_calls": [{**CALL, "id": "b"}]})
    model = ScriptedModel(replies("openai-chat", turns), "openai-chat")
    agent = ChatModelAgent(model=model, tools=[clock], middlewares=MIDDLEWARES[way], max_iterations=turns + 1)
    agent.run_sync(given)
    assert len(model.requests) == turns + 1
    return looks


@pytest.mark.parametrize("broken", [False, True], ids=["whole", "broken"])
@each_way
def test_the_first_messages_are_not_looked_at_again_in_later_turns(way: str, broken: bool):
    short, long = (looks_at_the_first_messages(way, turns, broken=broken) for turns in (3, 30))
    assert set(short) == {"ask", "call", "result"}
    assert short == long


class Encodes(ScriptedModel[Any]):
    """Says what it was told to, and makes of each request the body that a provider's model would send."""

    def __init__(self, replies: list[Any], wire: str, provider: Any) -> None:
        super().__init__(replies, wire)
        self.provider = provider

    async def stream(self, request: Any, /) -> AsyncIterator[Any]:
        assert self.provider.body(request).messages
        async for item in super().stream(request):
            yield item


@pytest.mark.parametrize("start", [WHOLE, BROKEN], ids=["whole", "broken"])
@each_way
@pytest.mark.parametrize("wire", ["message", "agentic"])
@pytest.mark.parametrize("provider", PROVIDERS)
def test_a_providers_model_encodes_each_message_once_in_a_run(
    monkeypatch: pytest.MonkeyPatch, provider: str, wire: str, way: str, start: Sequence[Any]
):
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    of_provider, written = make_model(provider, "http://127.0.0.1:9", wire=wire), [0]
    codec = type(of_provider.codec)
    write_message = codec.write_message

    def counted(self: Any, message: Any, losses: Any) -> Any:
        written[0] += 1
        return write_message(self, message, losses)

    monkeypatch.setattr(codec, "write_message", counted)
    model = Encodes(replies(wire, 25), wire, of_provider)
    agent = ChatModelAgent(model=model, tools=[clock], middlewares=MIDDLEWARES[way], max_iterations=26)
    agent.run_sync(history(wire, *start))
    assert written[0] == len(sent(model)) >= 50 + len(start)


@each_way
def test_a_generator_in_a_long_run_costs_one_question(way: str):
    asked: list[str] = []

    def generator(_: str, call_id: str) -> str:
        asked.append(call_id)
        return "lost"

    patches = [PatchToolCalls(generator, persist=each.persist) for each in MIDDLEWARES[way]]
    agent = ChatModelAgent(
        model=ScriptedModel(replies("message", 40)), tools=[clock], middlewares=patches, max_iterations=41
    )
    agent.run_sync(history("message", *BROKEN))
    assert asked == ["lost"] * len(patches)
