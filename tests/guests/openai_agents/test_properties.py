"""What holds for every history, on its way through the SDK to a model of either kind."""

import asyncio
import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from agents import Agent
from agents.models.chatcmpl_converter import Converter
from agents.run import CallModelData, ModelInputData
from hypothesis import given
from hypothesis import strategies as st

from suture.integrations.openai_agents import PatchedSession, PatchToolCalls
from tests.guests.openai_agents.running import Shelf, arun, scripted, sent
from tests.guests.openai_agents.written import Item, asks, gives, says, thinks, user
from tests.shapes.validators import chat, responses

ids = st.sampled_from(["a", "b", "c", "", "fn.read:0", "x" * 70])
names = st.sampled_from(["f", "g"])
arguments = st.sampled_from(["{}", '{"q": 1}', '{"q": ', ""])
calls = st.builds(lambda call_id, name, text: {**asks(call_id, name), "arguments": text}, ids, names, arguments)
single = st.one_of(
    st.sampled_from([[user("hello")], [user("so?"), says("well")], [{"role": "developer", "content": "Speak."}]]),
    st.lists(calls, min_size=1, max_size=3),
    st.lists(calls, min_size=1, max_size=3),
    st.builds(lambda call_id, text: [gives(call_id, text)], ids, st.sampled_from(["real", "other", ""])),
    st.builds(lambda call_id, text: [gives(call_id, text)], ids, st.sampled_from(["real", "other", ""])),
    st.builds(lambda call: [thinks("rs"), call], calls),
)


def numbered(pieces: Sequence[Sequence[Item]]) -> list[Item]:
    """Return the items of a history; each real result and each thought is one of a kind."""
    items = [item for piece in pieces for item in piece]
    made: list[Item] = []
    for place, item in enumerate(items):
        if item.get("output") == "real":
            made.append({**item, "output": f"real-{place}-"})
        elif item.get("type") == "reasoning":
            made.append({**item, "id": f"rs_{place}"})
        else:
            made.append(item)
    return made


histories = st.lists(single, max_size=9).map(numbered)


def complaints(items: list[Any]) -> list[str]:
    """Return what a provider of either kind would say."""
    items = [{**item, "arguments": item["arguments"] or "{}"} if "arguments" in item else item for item in items]
    messages: list[Any] = list(Converter.items_to_messages(items))
    return responses(items) + chat(messages)


def mended(items: list[Any], patch: PatchToolCalls | None = None, model: Any = None) -> list[Any]:
    model_data = ModelInputData(input=items, instructions=None)
    data = CallModelData(model_data=model_data, agent=Agent(name="assistant", model=model), context=None)
    made = (patch or PatchToolCalls(stateful=False))(data)
    assert isinstance(made, ModelInputData)
    return list(made.input)


async def told(given_input: Any, **choices: Any) -> list[Item]:
    model = scripted()
    await arun(Agent(name="assistant", model=model), given_input, **choices)
    return sent(model)


def pairs_of_reasoning(items: Sequence[Item]) -> list[tuple[str, str]]:
    """Return each thought and what comes behind it: by name and arguments, for ids may change."""
    return [
        (one["id"], f"{other.get('name')} {other.get('type')}")
        for one, other in pairwise(items)
        if one.get("type") == "reasoning"
    ]


@given(histories)
def test_what_the_filter_gives_is_accepted_by_both_kinds_of_models(history: list[Item]):
    before = copy.deepcopy(history)
    made = mended(history)
    assert complaints(made) == []
    assert history == before


@given(histories)
def test_a_second_time_the_filter_has_nothing_to_do(history: list[Item]):
    made = mended(history)
    assert mended(made) == made


@given(histories)
def test_no_call_is_lost_and_real_results_stay_as_results_or_text(history: list[Item]):
    made = mended(history)
    asked = [item["name"] for item in history if item.get("type") == "function_call"]
    assert [item["name"] for item in made if item.get("type") == "function_call"] == asked
    real = [item["output"] for item in history if str(item.get("output", "")).startswith("real-")]
    lost = [text for text in real if text not in str(made)]
    competing = [item["call_id"] for item in history if item.get("output") in lost]
    assert all(sum(item.get("call_id") == each for item in history if "output" in item) > 1 for each in competing)


@given(histories)
def test_reasoning_keeps_what_follows_it(history: list[Item]):
    assert pairs_of_reasoning(mended(history)) == pairs_of_reasoning(history)


@given(histories, histories)
def test_a_conversation_that_grows_is_mended_as_if_it_were_new(history: list[Item], more: list[Item]):
    patch = PatchToolCalls(stateful=False)
    mended(copy.deepcopy(history), patch)
    assert mended([*copy.deepcopy(history), *more], patch) == mended([*history, *more])


@given(histories)
def test_all_that_a_patched_session_gives_reaches_the_model(history: list[Item]):
    async def main() -> None:
        shelf = Shelf(history)
        session = PatchedSession(shelf)
        read = list(await session.get_items())
        items = await told("next", session=session)
        assert items == [*read, {"role": "user", "content": "next"}]
        assert complaints(items) == []
        assert shelf.items[: len(history)] == history

    asyncio.run(main())


@given(histories)
def test_all_that_the_filter_gives_reaches_the_model(history: list[Item]):
    patch = PatchToolCalls(stateful=False)
    given_input = [*history, user("next")]
    assert asyncio.run(told(given_input, model_filter=patch)) == mended(given_input)
