"""The model input filter beside other filters, in the steps of a run, and with settings of all kinds."""

import pickle
from typing import Any

import pytest
from agents import Agent, HandoffInputData, Usage, UserError, function_tool, handoff
from agents.run import CallModelData, ModelInputData

from suture.errors import ConfigError
from suture.integrations.openai_agents import PatchToolCalls
from suture.repair import Cause
from tests.guests.openai_agents.running import run, scripted, sent
from tests.guests.openai_agents.scripted import ScriptedModel, assistant_message, function_call
from tests.guests.openai_agents.written import asks, gives, renamed, says, shape, thinks, unknown, user

DANGLING: list[Any] = [user("ask"), asks("a"), user("next")]
MENDED = ["ask", "a?", unknown("a"), "next"]


def filtered(patch: PatchToolCalls, items: list[Any]) -> ModelInputData:
    """Return what the filter makes of items, outside of a run."""
    model_data = ModelInputData(input=items, instructions="Be brief.")
    made = patch(CallModelData(model_data=model_data, agent=Agent(name="assistant"), context=None))
    assert isinstance(made, ModelInputData)
    return made


def after_each(model_filter: Any, *, given: Any = DANGLING) -> list[str]:
    """Return what a model is sent of `given`."""
    model = scripted()
    run(Agent(name="assistant", model=model), given, model_filter=model_filter)
    return shape(sent(model))


@function_tool
def search() -> str:
    """Search."""
    return "found"


# --- beside other filters -----------------------------------------------------------------------


def drop_results(data: CallModelData[Any]) -> ModelInputData:
    """Leave out what tools returned, as a filter that saves tokens may do."""
    kept = [item for item in data.model_data.input if item.get("type") != "function_call_output"]
    return ModelInputData(input=kept, instructions=data.model_data.instructions)


def test_another_filter_goes_first_and_what_it_breaks_is_mended():
    whole = [user("ask"), asks("a"), gives("a"), user("next")]
    assert after_each(drop_results, given=whole) == ["ask", "a?", "next"]
    assert after_each(PatchToolCalls(after=drop_results), given=whole) == MENDED


def test_another_filter_may_be_async():
    async def shout(data: CallModelData[Any]) -> ModelInputData:
        items: list[Any] = [*data.model_data.input, user("Quick!")]
        return ModelInputData(input=items, instructions=None)

    assert after_each(PatchToolCalls(after=shout)) == [*MENDED, "Quick!"]


def test_filters_can_stand_around_each_other():
    inner = PatchToolCalls(generator=lambda name, _: f"{name} was skipped")
    assert after_each(PatchToolCalls(after=inner)) == ["ask", "a?", "a=search was skipped", "next"]


def test_a_filter_can_be_pickled_as_settings_of_a_run_are_for_other_processes():
    patch = pickle.loads(pickle.dumps(PatchToolCalls(after=drop_results, cause="interrupted")))
    assert "was canceled" in after_each(patch)[2]


def test_the_sdk_is_left_to_say_that_another_filter_returns_nonsense():
    with pytest.raises(UserError, match="must return a ModelInputData instance"):
        after_each(PatchToolCalls(after=lambda _: None))  # pyright: ignore[reportArgumentType]


# --- what is left alone -------------------------------------------------------------------------


def test_what_needs_no_change_comes_back_as_the_same_object():
    items: list[Any] = [user("ask"), asks("a"), gives("a"), says("ok")]
    model_data = ModelInputData(input=items, instructions=None)
    data = CallModelData(model_data=model_data, agent=Agent(name="assistant"), context=None)
    assert PatchToolCalls()(data) is model_data
    assert model_data.input is items


def test_items_that_stay_are_the_same_objects_and_nothing_given_is_changed():
    items = list(DANGLING)
    made = filtered(PatchToolCalls(), items)
    assert [made.input[0], made.input[1], made.input[3]] == DANGLING
    assert all(left is right for left, right in zip([*made.input[:2], made.input[3]], DANGLING, strict=True))
    assert items == DANGLING
    assert made.instructions == "Be brief."


def test_what_cannot_be_read_is_left_for_the_provider_to_say():
    items: list[Any] = [{"neither": "role nor type"}, *DANGLING]
    assert filtered(PatchToolCalls(), items).input is items


def test_reasoning_stays_with_what_it_produced():
    items = [user("ask"), thinks("rs_1"), asks("a"), user("stop"), thinks("rs_2"), asks("b"), says("ok"), gives("b")]
    made = shape(filtered(PatchToolCalls(), items).input)
    assert made == ["ask", "reasoning", "a?", unknown("a"), "stop", "reasoning", "b?", "ok", "b=42"]


def test_text_between_calls_of_a_turn_stays_behind_the_reasoning_that_comes_first():
    """Moved before the calls, it would part the reasoning from the call that it produced."""
    items = [user("ask"), thinks("rs_1"), asks("a"), says("and"), asks("b"), gives("a"), gives("b")]
    assert filtered(PatchToolCalls(), items).input is items


def test_a_result_that_waits_elsewhere_is_found_while_others_are_late():
    items = [user("ask"), asks("a"), asks("b"), gives("b"), user("stop"), says("ok"), gives("a")]
    assert shape(filtered(PatchToolCalls(), items).input) == ["ask", "a?", "b?", "a=42", "b=42", "stop", "ok"]


def test_items_of_the_services_own_tools_are_no_calls():
    search_call = {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"type": "search"}}
    items: list[Any] = [user("ask"), thinks("rs_1"), search_call, says("ok"), user("next")]
    assert filtered(PatchToolCalls(), items).input is items


# --- in a run -----------------------------------------------------------------------------------


def test_ids_that_begin_anew_with_each_run_lose_no_call():
    """As servers do that count the calls of one conversation; the SDK alone keeps one of them."""
    given = [user("ask"), asks("a"), gives("a", "1"), says("ok"), user("ask"), asks("a"), gives("a", "2"), says("so")]
    assert after_each(None, given=given) == ["ask", "a?", "ok", "ask", "a=2", "so"]
    model = scripted()
    run(Agent(name="assistant", model=model), given, model_filter=PatchToolCalls())
    made = shape(sent(model), renamed(sent(model)))
    assert made == ["ask", "a?", "a=1", "ok", "ask", "new?", "new=2", "so"]


@pytest.mark.parametrize("model_filter", [None, PatchToolCalls()], ids=["without", "with"])
def test_within_one_run_the_sdk_does_not_run_a_call_again_whose_id_it_has_seen(model_filter: Any):
    ran: list[str] = []

    @function_tool
    def count(word: str) -> str:
        """Count."""
        ran.append(word)
        return word

    model = scripted(*([function_call("count", {"word": word}, call_id="call_0")] for word in ("one", "one", "one")))
    run(Agent(name="assistant", model=model, tools=[count]), "ask", model_filter=model_filter)
    assert ran == ["one"]


def test_what_a_handoff_filter_leaves_is_mended_for_the_next_agent():
    def without_calls(data: HandoffInputData) -> HandoffInputData:
        kept = [item for item in data.pre_handoff_items if item.type != "tool_call_item"]
        return data.clone(pre_handoff_items=tuple(kept))

    def handed_over(model_filter: Any) -> list[str]:
        second = scripted()
        clerk = Agent(name="clerk", model=second)
        first = ScriptedModel(
            [
                [function_call("search", {}, call_id="a")],
                [function_call("transfer_to_clerk", {}, call_id="h")],
            ]
        )
        desk = Agent(name="desk", model=first, tools=[search], handoffs=[handoff(clerk, input_filter=without_calls)])
        run(desk, "ask", model_filter=model_filter)
        return shape(sent(second))

    assert handed_over(None)[:2] == ["ask", "a=found"]
    assert handed_over(PatchToolCalls())[:2] == ["ask", "(retold)"]


def test_one_filter_serves_many_conversations():
    patch = PatchToolCalls()
    for number in range(40):
        items = [user(f"ask {number % 20}"), asks("a"), user("next")]
        assert shape(filtered(patch, items).input) == [f"ask {number % 20}", *MENDED[1:]]


# --- settings -----------------------------------------------------------------------------------


def test_a_generator_writes_the_text_of_a_placeholder_and_may_ask_why():
    causes: list[Cause] = []

    def text(name: str, call_id: str, *, cause: Cause) -> str:
        causes.append(cause)
        return f"{name} {call_id}: gone"

    assert shape(filtered(PatchToolCalls(generator=text), DANGLING).input)[2] == "a=search a: gone"
    assert causes == [Cause.UNKNOWN]


def test_orphans_can_be_dropped():
    items = [user("ask"), gives("ghost"), says("ok")]
    assert shape(filtered(PatchToolCalls(orphans="drop"), items).input) == ["ask", "ok"]


def test_a_text_of_the_callers_own_counts_as_a_placeholder():
    items = [user("ask"), asks("a"), gives("a", "(pending)"), user("so?"), gives("a")]
    patch = PatchToolCalls(is_placeholder=lambda text: text == "(pending)")
    assert shape(filtered(patch, items).input) == ["ask", "a?", "a=42", "so?"]


def test_texts_can_be_chinese():
    assert "没有记录到结果" in shape(filtered(PatchToolCalls(language="zh"), DANGLING).input)[2]


def test_a_late_result_moves_whatever_the_profile():
    items = [user("ask"), asks("a"), user("stop"), gives("a"), says("ok")]
    for profile in (None, "openai-responses", "deepseek", "pairing"):
        assert shape(filtered(PatchToolCalls(profile=profile), items).input) == ["ask", "a?", "a=42", "stop", "ok"]


def test_item_ids_are_the_sdks_unless_the_profile_of_responses_is_asked_for():
    """It gives all items of a Chat Completions model one id, and has to find it there."""
    items = [user("ask"), says("ok"), user("again"), says("ok")]
    assert filtered(PatchToolCalls(), items).input is items
    made: list[Any] = list(filtered(PatchToolCalls(profile="openai-responses"), items).input)
    assert [item.get("id") for item in made] == [None, "msg_ok", None, None]


@pytest.mark.parametrize(("profile", "limit"), [(None, 40), ("openai-chat", 40), ("mistral", 9), ("anthropic", 64)])
def test_ids_suit_the_model_that_stands_behind(profile: str | None, limit: int):
    long = "call_" + "x" * 45
    made: list[Any] = list(
        filtered(PatchToolCalls(profile=profile), [user("ask"), asks(long), gives(long), user("next")]).input
    )
    assert made[1]["call_id"] == made[2]["call_id"]
    assert len(made[1]["call_id"]) <= limit


def test_with_a_strict_profile_the_calls_of_a_turn_stand_together_and_ids_still_differ():
    items = [user("ask"), asks("a"), says("and"), asks("b"), gives("a"), gives("b"), asks("a"), user("next")]
    made: list[Any] = list(filtered(PatchToolCalls(profile="deepseek"), items).input)
    assert shape(made)[:6] == ["ask", "and", "a?", "b?", "a=42", "b=42"]
    ids = [item["call_id"] for item in made if item.get("type") == "function_call"]
    assert len(set(ids)) == len(ids) == 3


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"profile": "nobody"}, "unknown profile 'nobody'"),
        ({"orphans": "keep"}, "unknown orphans 'keep'; known: text, drop"),
        ({"generator": "text"}, "generator must be a function, found str"),
        ({"is_placeholder": 1}, "is_placeholder must be a function, found int"),
        ({"after": "filter"}, "after must be a model input filter, found str"),
        ({"language": "fr"}, "language"),
    ],
)
def test_a_setting_that_cannot_be_meant_is_refused_when_the_filter_is_made(settings: Any, message: str):
    with pytest.raises(ConfigError, match=message):
        PatchToolCalls(**settings)


# --- a conversation that the service keeps ------------------------------------------------------


@pytest.mark.parametrize(
    "kept", [{"previous_response_id": "resp_0"}, {"auto_previous_response_id": True}, {"conversation_id": "conv_1"}]
)
@pytest.mark.parametrize("way", ["run", "run_streamed"])
def test_results_reach_a_service_that_holds_their_calls(kept: dict[str, Any], way: str):
    model = scripted([function_call("search", {}, call_id="a"), function_call("search", {}, call_id="b")])
    agent = Agent(name="assistant", model=model, tools=[search])
    run(agent, "ask", way, model_filter=PatchToolCalls(), **kept)
    assert shape(sent(model)) == ["a=found", "b=found"]


def test_a_result_for_what_the_service_holds_can_be_given_by_hand():
    model = scripted()
    given = [gives("a"), user("next")]
    run(Agent(name="assistant", model=model), given, model_filter=PatchToolCalls(), previous_response_id="resp_0")
    assert shape(sent(model)) == ["a=42", "next"]


def test_told_that_the_service_holds_calls_the_filter_leaves_results_alone_among_all_else():
    items = [says("An example."), gives("a"), asks("b"), user("next")]
    assert shape(filtered(PatchToolCalls(), items).input)[1] == "(retold)"
    made = shape(filtered(PatchToolCalls(stateful=True), items).input)
    assert made == ["An example.", "a=42", "b?", unknown("b"), "next"]


def test_told_that_it_does_not_the_filter_retells_every_result_without_a_call():
    items = [gives("a"), user("next")]
    assert filtered(PatchToolCalls(), items).input is items
    assert shape(filtered(PatchToolCalls(stateful=False), items).input) == ["(retold)", "next"]


def test_a_result_behind_a_reference_to_what_the_service_keeps_stays():
    items: list[Any] = [says("ok"), {"type": "item_reference", "id": "fc_1"}, gives("a"), user("next")]
    assert filtered(PatchToolCalls(), items).input is items


def test_usage_is_counted_as_ever():
    model = ScriptedModel([[assistant_message("done")]], usage=Usage(requests=1, total_tokens=7))
    result = run(Agent(name="assistant", model=model), DANGLING, model_filter=PatchToolCalls())
    assert result.context_wrapper.usage.total_tokens == 7
