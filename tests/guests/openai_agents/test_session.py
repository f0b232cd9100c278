"""A patched session: it is read in good order, stores what it is given, and is in all else the session under it."""

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from agents import (
    Agent,
    OpenAIConversationsSession,
    OpenAIResponsesCompactionSession,
    RunContextWrapper,
    Session,
    SessionSettings,
    SQLiteSession,
)
from agents.memory import is_openai_responses_compaction_aware_session
from openai import AsyncOpenAI

from suture.errors import ConfigError
from suture.integrations.openai_agents import PatchedSession, PatchToolCalls
from suture.repair import Cause
from tests.guests.openai_agents.running import Shelf, in_memory, run, scripted, sent, stored
from tests.guests.openai_agents.written import Item, asks, gives, says, shape, thinks, unknown, user

DANGLING = [user("ask"), asks("a"), user("stop"), says("ok")]


def read(session: Session, limit: int | None = None) -> list[str]:
    return shape(asyncio.run(session.get_items(limit)))


def told(session: Session, **choices: Any) -> list[Item]:
    """Return what a model is sent of the session and "next"."""
    model = scripted()
    run(Agent(name="assistant", model=model), "next", session=session, **choices)
    return sent(model)


# --- it is a session ----------------------------------------------------------------------------


def test_it_keeps_to_the_protocol():
    session = PatchedSession(in_memory())
    assert isinstance(session, Session)
    assert session.session_id == "conversation"


def test_all_but_reading_goes_to_the_session_it_stands_for():
    shelf = Shelf(DANGLING)
    session = PatchedSession(shelf)
    asyncio.run(session.add_items([gives("a")]))
    assert shelf.items == [*DANGLING, gives("a")]
    assert asyncio.run(session.pop_item()) == gives("a")
    asyncio.run(session.clear_session())
    assert shelf.items == []
    session.session_id, session.session_settings = "other", SessionSettings(limit=3)
    assert (shelf.session_id, shelf.session_settings) == ("other", SessionSettings(limit=3))


def test_what_else_a_session_has_is_there():
    session = PatchedSession(Shelf(DANGLING))
    assert session.items == DANGLING
    with pytest.raises(AttributeError, match="pages"):
        session.pages  # noqa: B018
    assert repr(PatchedSession(SQLiteSession("x"))).startswith("PatchedSession(<agents")


def test_a_session_may_be_one_that_does_not_wait():
    """The SDK takes such sessions, too."""

    class Quick(Shelf):
        def get_items(self, limit: int | None = None) -> Any:
            return self.items if limit is None else self.items[-limit:]

        def add_items(self, items: list[Any]) -> Any:
            self.items.extend(items)

    quick = Quick(DANGLING)
    assert shape(told(PatchedSession(quick))) == ["ask", "a?", unknown("a"), "stop", "ok", "next"]
    assert shape(quick.items)[-2:] == ["next", "done"]


def test_the_context_of_a_run_is_passed_on_to_a_session_that_asks_for_it():
    class Nosy(Shelf):
        wrappers: list[Any]

        async def get_items(self, limit: int | None = None, *, wrapper: Any = None) -> list[Any]:
            self.wrappers = [wrapper]
            return await super().get_items(limit)

        async def add_items(self, items: list[Any], *, wrapper: Any = None) -> None:
            self.wrappers.append(wrapper)
            await super().add_items(items)

        async def pop_item(self, *, wrapper: Any = None) -> Any:
            self.wrappers.append(wrapper)
            return await super().pop_item()

        async def clear_session(self, *, wrapper: Any = None) -> None:
            self.wrappers.append(wrapper)
            await super().clear_session()

    nosy = Nosy(DANGLING)
    told(PatchedSession(nosy))
    assert {type(wrapper) for wrapper in nosy.wrappers} == {RunContextWrapper}


def test_it_offers_compaction_where_the_session_does():
    plain = PatchedSession(Shelf())
    assert not is_openai_responses_compaction_aware_session(plain)
    client = AsyncOpenAI(api_key="none")
    compacting = PatchedSession(OpenAIResponsesCompactionSession("conversation", in_memory(DANGLING), client=client))
    assert is_openai_responses_compaction_aware_session(compacting)
    assert shape(told(compacting)) == ["ask", "a?", unknown("a"), "stop", "ok", "next"]
    asyncio.run(client.close())


def test_it_reads_what_an_encrypted_session_keeps():
    pytest.importorskip("cryptography")
    from agents.extensions.memory import EncryptedSession

    store = SQLiteSession("conversation")
    session = PatchedSession(EncryptedSession("conversation", store, "a key that nobody guesses, and nobody can"))
    asyncio.run(session.add_items(DANGLING))
    assert "function_call" not in str(stored(store))
    assert shape(told(session)) == ["ask", "a?", unknown("a"), "stop", "ok", "next"]


def test_a_session_that_the_sdk_knows_by_its_class_is_refused():
    with pytest.raises(ConfigError, match="give it to the run as it is, and PatchToolCalls"):
        PatchedSession(OpenAIConversationsSession(conversation_id="conv_1", openai_client=AsyncOpenAI(api_key="none")))


def test_what_is_no_session_is_refused():
    with pytest.raises(ConfigError, match="expected a session, found str, which has no get_items"):
        PatchedSession("conversation")  # pyright: ignore[reportArgumentType]


# --- reading ------------------------------------------------------------------------------------


def test_a_history_in_good_order_is_the_very_list_of_the_session():
    shelf = Shelf([user("ask"), asks("a"), gives("a"), says("ok")])
    assert asyncio.run(PatchedSession(shelf).get_items()) is shelf.items


def test_what_cannot_be_read_is_given_as_it_is():
    shelf = Shelf([{"neither": "role nor type"}, asks("a")])
    assert asyncio.run(PatchedSession(shelf).get_items()) is shelf.items


def test_a_result_without_a_call_is_no_reason_to_think_that_a_service_has_the_call():
    """What a session keeps is sent as a whole."""
    assert read(PatchedSession(Shelf([gives("ghost"), user("ask")]))) == ["(retold)", "ask"]


def test_a_real_result_takes_the_place_of_a_placeholder_when_it_comes():
    shelf = Shelf(DANGLING)
    session = PatchedSession(shelf)
    assert read(session) == ["ask", "a?", unknown("a"), "stop", "ok"]
    shelf.items.append(gives("a"))
    assert read(session) == ["ask", "a?", "a=42", "stop", "ok"]


def test_reasoning_stays_with_the_call_that_it_produced():
    history = [user("ask"), thinks("rs_1"), asks("a")]
    assert shape(told(Shelf(history))) == ["ask", "next"]
    assert shape(told(PatchedSession(Shelf(history)))) == ["ask", "reasoning", "a?", unknown("a"), "next"]


def test_a_generator_is_told_that_a_message_came_in():
    causes: list[Cause] = []

    def text(name: str, call_id: str, *, cause: Cause) -> str:
        causes.append(cause)
        return "" if call_id == "b" else f"{name} was skipped"

    session = PatchedSession(Shelf([user("ask"), asks("a"), asks("b")]), generator=text)
    assert read(session) == ["ask", "a?", "b?", "a=search was skipped", unknown("b")]
    assert set(causes) == {Cause.UNKNOWN}
    plain = PatchedSession(Shelf([asks("a")]), generator=lambda name, call_id: f"{name} {call_id}")
    assert read(plain) == ["a?", "a=search a"]


def test_a_generator_that_gives_no_text_is_told_so():
    session = PatchedSession(Shelf([asks("a")]), generator=lambda *_: None)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="generator returned NoneType; it must return text"):
        read(session)


def test_it_takes_the_settings_of_the_filter():
    history = [gives("ghost"), asks("a"), user("stop")]
    assert read(PatchedSession(Shelf(history), orphans="drop")) == [START, "a?", unknown("a"), "stop"]
    assert "没有记录到结果" in read(PatchedSession(Shelf(history), language="zh"))[2]
    waits = [asks("a"), gives("a", "(pending)"), user("so?"), gives("a")]
    session = PatchedSession(Shelf(waits), is_placeholder=lambda text: text == "(pending)")
    assert read(session) == ["a?", "a=42", "so?"]


def test_a_setting_that_cannot_be_meant_is_refused_when_the_session_is_made():
    with pytest.raises(ConfigError, match="unknown orphans 'keep'"):
        PatchedSession(Shelf(), orphans="keep")  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match="generator must be a function, found str"):
        PatchedSession(Shelf(), generator="text")  # pyright: ignore[reportArgumentType]


def test_a_callback_that_puts_history_and_input_together_is_given_good_order():
    seen: list[list[str]] = []

    def together(history: list[Any], new: list[Any]) -> list[Any]:
        seen.append(shape(history))
        return [*history[1:], *new]

    shelf = Shelf(DANGLING)
    items = told(PatchedSession(shelf), config={"session_input_callback": together})
    assert seen == [["ask", "a?", unknown("a"), "stop", "ok"]]
    assert shape(items) == ["a?", unknown("a"), "stop", "ok", "next"]
    assert shelf.items[:4] == DANGLING
    assert shape(shelf.items[4:]) == ["next", "done"]


# --- only the end of it -------------------------------------------------------------------------

START = "(start of the conversation)"
"""What is said where the user's side spoke first and that is gone."""
ROUNDS = [user("1"), asks("a"), gives("a"), says("2"), asks("b"), asks("c"), gives("b"), gives("c"), says("3")]


def is_paired(items: Sequence[Item]) -> bool:
    calls = [item["call_id"] for item in items if item.get("type") == "function_call"]
    results = [item["call_id"] for item in items if item.get("type") == "function_call_output"]
    return sorted(calls) == sorted(results)


@pytest.mark.parametrize("limit", range(1, 12))
@pytest.mark.parametrize("history", [ROUNDS, DANGLING, [*ROUNDS, asks("d")], [asks("a"), asks("b"), gives("a")]])
def test_a_limit_that_cuts_a_pair_apart_leaves_no_half_of_it(history: list[Item], limit: int):
    session = PatchedSession(in_memory(history))
    items: list[Any] = asyncio.run(session.get_items(limit))
    assert is_paired(items)
    assert len(items) <= limit


def test_a_result_whose_call_is_cut_off_is_told_as_text():
    assert read(PatchedSession(Shelf(ROUNDS)), 7) == ["(retold)", "2", "b?", "c?", "b=42", "c=42", "3"]
    assert read(PatchedSession(Shelf(ROUNDS), orphans="drop"), 7) == [START, "2", "b?", "c?", "b=42", "c=42", "3"]


def test_a_limit_of_nothing_gives_nothing():
    assert read(PatchedSession(in_memory(ROUNDS)), 0) == []


@pytest.mark.parametrize("whose", ["the run's", "the session's"])
def test_a_limit_that_is_set_holds_and_a_call_at_the_end_is_answered(whose: str):
    settings = SessionSettings(limit=3)
    session = PatchedSession(in_memory([*DANGLING, asks("b")]))
    config: dict[str, Any] = {}
    if whose == "the run's":
        config["session_settings"] = settings
    else:
        session.session_settings = settings
    assert shape(told(session, config=config)) == ["ok", "b?", unknown("b"), "next"]


# --- all kinds of calls -------------------------------------------------------------------------

ACTION = {"type": "exec", "command": ["ls"], "env": {}}
KINDS: dict[str, Item] = {
    "custom_tool_call": {"name": "grammar", "input": "x", "call_id": "a"},
    "local_shell_call": {"id": "lsh_1", "action": ACTION, "status": "completed", "call_id": "a"},
    "shell_call": {"action": {"commands": ["ls"]}, "call_id": "a"},
    "apply_patch_call": {"operation": {"type": "delete_file", "path": "x"}, "status": "completed", "call_id": "a"},
    "mcp_approval_request": {"id": "mcpr_1", "name": "f", "server_label": "s", "arguments": "{}"},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_call_of_any_kind_is_answered_and_the_sdk_lets_it_pass(kind: str):
    history = [user("ask"), {"type": kind, **KINDS[kind]}, user("stop"), says("ok")]
    output = "mcp_approval_response" if kind == "mcp_approval_request" else f"{kind}_output"
    expected = ["ask", kind, output, "stop", "ok", "next"]
    assert shape(told(PatchedSession(Shelf(history)))) == expected
    assert shape(told(PatchedSession(Shelf(history)), model_filter=PatchToolCalls())) == expected


def test_results_of_the_local_shell_find_their_calls_by_the_name_that_the_sdk_has_for_them():
    def shell(call_id: str) -> Item:
        return {"type": "local_shell_call", "call_id": call_id, "id": f"lsh_{call_id}", "action": ACTION}

    def output(call_id: str) -> Item:
        return {"type": "local_shell_call_output", "call_id": call_id, "output": f"of {call_id}"}

    whole = [user("ask"), shell("a"), shell("b"), output("b"), output("a")]
    shelf = Shelf(whole)
    assert asyncio.run(PatchedSession(shelf).get_items()) is shelf.items
    late = [user("ask"), shell("a"), user("stop"), shell("b"), output("b"), output("a")]
    items: list[Any] = asyncio.run(PatchedSession(Shelf(late)).get_items())
    assert [(item.get("call_id"), item.get("output")) for item in items] == [
        (None, None),
        ("a", None),
        ("a", "of a"),
        (None, None),
        ("b", None),
        ("b", "of b"),
    ]


def test_a_call_for_which_no_result_can_be_made_up_is_left_to_the_sdk():
    screen = {"type": "computer_call", "id": "cu_1", "call_id": "a", "action": {"type": "screenshot"}}
    history = [user("ask"), screen, user("stop"), says("ok")]
    assert read(PatchedSession(Shelf(history))) == ["ask", "computer_call", "stop", "ok"]
    assert shape(told(PatchedSession(Shelf(history)))) == ["ask", "stop", "ok", "next"]
