"""What the plugin mends in a request to a model, and what it can be told."""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
from pydantic import BaseModel
from strands import Agent, Plugin, tool
from strands.middleware import InvokeModelContext, InvokeModelStage

from suture import Cause, using_language
from suture.integrations.strands import PatchToolCalls
from tests.guests.strands.recording import (
    AnyRecorder,
    OpenAIRecorder,
    Recorder,
    canceled,
    interrupted,
    plain,
    result,
    said,
    teller,
    use,
    user,
)

ASK, CALL, AND, SEEN, GO = user("Pay Bo."), said(use("a")), user("And?"), said("I see."), user("Go on.")
DANGLING = [ASK, CALL, AND, SEEN]
MENDED = [ASK, CALL, user(canceled("a"), "And?"), SEEN, GO]


@tool
def pay(to: str) -> str:
    """Pay somebody."""
    return f"paid {to}"


class Before(Plugin):
    """Changes what is sent, before or behind others."""

    def __init__(self, change: Callable[..., Any], place: Any = InvokeModelStage.Input) -> None:
        super().__init__()
        self._change, self._place = change, place

    @property
    def name(self) -> str:
        return f"before-{id(self)}"

    def init_agent(self, agent: Agent) -> None:
        agent.add_middleware(self._place, self._change)


def test_the_messages_of_the_agent_stay_as_they_are():
    model = Recorder()
    agent = teller(model, PatchToolCalls(), messages=DANGLING)
    agent("Go on.")
    assert model.requests == [MENDED]
    assert plain(agent.messages) == [*DANGLING, GO, said("Done.")]


def test_messages_that_are_in_order_stay_the_very_same():
    seen: list[Any] = []

    def outside(context: InvokeModelContext) -> InvokeModelContext:
        seen.append(context)
        return context

    async def inside(context: InvokeModelContext, next_fn: Any) -> Any:
        seen.append(context)
        async for event in next_fn(context):
            yield event

    given = [ASK, CALL, user(result("a", "paid")), SEEN]
    plugins = (Before(outside), PatchToolCalls(), Before(inside, InvokeModelStage))
    teller(Recorder(), *plugins, messages=given)("Go on.")
    assert seen[0] is seen[1]


def test_a_run_of_many_steps_changes_nothing_that_is_in_order():
    replies = (said(use("a")), said("On it.", use("b"), use("c")), "Done.", said(use("d")))
    requests: list[Any] = []
    for plugins in ((), (PatchToolCalls(),)):
        model = Recorder(*deepcopy(replies))
        agent = teller(model, *plugins, tools=[pay])
        agent("Pay Bo.")
        agent("Once more.")
        requests.append(model.requests)
    assert requests[0] == requests[1]
    assert len(requests[0]) == 5


def test_a_broken_history_stays_mended_through_the_steps_of_a_run():
    model = Recorder(said(use("b")), "Done.")
    teller(model, PatchToolCalls(), messages=DANGLING, tools=[pay])("Go on.")
    assert model.requests[1] == [*MENDED, said(use("b")), user(result("b", "paid Bo"))]


def test_a_stream_sends_the_same():
    async def main():
        model = Recorder()
        agent = teller(model, PatchToolCalls(), messages=DANGLING)
        said_so = [event["data"] async for event in agent.stream_async("Go on.") if "data" in event]
        return model.requests, said_so

    assert asyncio.run(main()) == ([MENDED], ["Done."])


def test_structured_output_sends_the_same():
    class Receipt(BaseModel):
        """A receipt."""

        to: str

    model = Recorder(said(use("r", "Receipt")))
    agent = teller(model, PatchToolCalls(), messages=DANGLING)
    answer = agent("Go on.", structured_output_model=Receipt)
    assert answer.structured_output == Receipt(to="Bo")
    assert model.requests == [MENDED]


def test_what_another_plugin_breaks_is_mended_wherever_it_stands():
    def forget(context: InvokeModelContext) -> InvokeModelContext:
        return context.replace(messages=[context.messages[0], *context.messages[2:]])

    given = [ASK, CALL, user(result("a", "paid")), SEEN]
    for plugins in ((Before(forget), PatchToolCalls()), (PatchToolCalls(), Before(forget))):
        model = Recorder()
        teller(model, *plugins, messages=given)("Go on.")
        [[first, *rest]] = model.requests
        assert first["content"][0] == {"text": "Pay Bo."}
        assert "paid" in first["content"][1]["text"]
        assert rest == [SEEN, GO]


def test_a_result_without_a_call_can_be_dropped():
    model = Recorder()
    teller(model, PatchToolCalls(orphans="drop"), messages=[ASK, user(result("a", "paid")), SEEN])("Go on.")
    assert model.requests == [[ASK, SEEN, GO]]


def test_a_real_result_wins_over_what_strands_put_in_its_place():
    model = Recorder()
    given = [ASK, CALL, user(result("a", "paid")), user(interrupted("a")), AND, SEEN]
    teller(model, PatchToolCalls(), messages=given)("Go on.")
    assert model.requests == [[ASK, CALL, user(result("a", "paid"), "And?"), SEEN, GO]]


@pytest.mark.parametrize("ours", [False, True])
def test_it_wins_over_what_the_program_put_in_its_place_if_that_is_known(ours: bool):
    """Of two real results the last wins."""
    model = Recorder()
    given = [ASK, CALL, user(result("a", "paid")), user(result("a", "(lost)")), SEEN]
    plugin = PatchToolCalls(is_placeholder=lambda text: text == "(lost)") if ours else PatchToolCalls()
    teller(model, plugin, messages=given)("Go on.")
    assert model.requests == [[ASK, CALL, user(result("a", "paid" if ours else "(lost)")), SEEN, GO]]


def test_ids_that_bedrock_refuses_are_changed_on_both_sides():
    model = Recorder()
    teller(model, PatchToolCalls(), messages=[ASK, said(use("pay:0")), user(result("pay:0", "paid")), SEEN])("Go on.")
    [[_, turn, answer, *_]] = model.requests
    changed = turn["content"][0]["toolUse"]["toolUseId"]
    assert changed.startswith("tooluse_")
    assert answer == user(result(changed, "paid"))


def test_by_the_structure_alone_neighbours_are_not_merged():
    model = Recorder()
    teller(model, PatchToolCalls(profile="pairing"), messages=DANGLING)("Go on.")
    assert model.requests == [[ASK, CALL, user(canceled("a")), AND, SEEN, GO]]


def test_messages_that_cannot_be_read_are_left_to_the_provider():
    model = Recorder()
    odd = {"role": "system", "content": [{"text": "Be brief."}]}
    teller(model, PatchToolCalls(), messages=[odd, *DANGLING])("Go on.")
    assert model.requests == [[odd, *DANGLING, GO]]


def test_messages_that_go_on_with_what_the_service_keeps_are_left_alone():
    requests: list[Any] = []
    for stateful in (True, False):
        model = Recorder(stateful=stateful)
        given: Any = [user(result("a", "paid"))]
        teller(model, PatchToolCalls())(given)
        requests += model.requests
    assert requests[0] == [user(result("a", "paid"))]
    assert "toolResult" not in requests[1][0]["content"][0]


def test_one_plugin_serves_several_agents():
    plugin = PatchToolCalls()
    for words in ("Go on.", "Stop."):
        model = Recorder()
        teller(model, plugin, messages=DANGLING)(words)
        assert model.requests == [[*MENDED[:-1], user(words)]]


def told(plugin: PatchToolCalls) -> list[str]:
    """Return what stands in the place of the results of two calls, one of them with arguments that were cut off."""
    model = Recorder()
    cut = {"toolUse": {"toolUseId": "b", "name": "pay", "input": '{"to": '}}
    teller(model, plugin, messages=[ASK, said(use("a"), cut), AND, SEEN])("Go on.")
    results = [block["toolResult"] for block in model.requests[0][2]["content"] if "toolResult" in block]
    return [each["content"][0]["text"] for each in results]


def test_the_text_can_be_the_users_own():
    def text(name: str, call_id: str) -> str:
        return f"no answer to {name} {call_id}"

    assert told(PatchToolCalls(generator=text)) == ["no answer to pay a", "no answer to pay b"]


def test_the_text_can_depend_on_the_cause():
    def text(name: str, call_id: str, cause: Cause) -> str:
        return f"{name} {call_id}: {cause.value}"

    assert told(PatchToolCalls(generator=text)) == ["pay a: unknown", "pay b: malformed"]
    assert told(PatchToolCalls(generator=text, cause="interrupted")) == ["pay a: interrupted", "pay b: malformed"]


@pytest.mark.parametrize("ambient", [False, True])
def test_the_text_can_be_in_chinese(ambient: bool):
    with using_language("zh" if ambient else "en"):
        plugin = PatchToolCalls() if ambient else PatchToolCalls(language="zh")
    assert [text[:4] for text in told(plugin)] == ["工具调用", "工具调用"]


LONG = "call_" + "x" * 45
LONG_TALK = [ASK, said(use(LONG)), user(result(LONG, "paid")), SEEN]


@pytest.mark.parametrize(
    ("kind", "options", "limit"),
    [
        (OpenAIRecorder, {}, 40),
        (AnyRecorder, {}, 40),
        (Recorder, {"profile": "openai-chat"}, 40),
        (Recorder, {"profile": "mistral"}, 9),
        (Recorder, {}, 64),
    ],
    ids=["OpenAI", "unknown", "as OpenAI", "as Mistral", "Bedrock"],
)
def test_ids_suit_the_model_that_is_called(kind: type[AnyRecorder], options: Any, limit: int):
    model = kind()
    teller(model, PatchToolCalls(**options), messages=LONG_TALK)("Go on.")
    [[_, turn, answer, *_]] = model.requests
    sent = turn["content"][0]["toolUse"]["toolUseId"]
    assert len(sent) <= limit
    assert answer == user(result(sent, "paid"))
    assert (sent == LONG) is (limit >= len(LONG))
