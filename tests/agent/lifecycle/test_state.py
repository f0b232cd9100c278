"""What lasts and what does not: hooks that return a state change the run, wrappers change one call."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from pathlib import Path
from typing import Any, cast

import pytest

from suture import (
    AgenticMessage,
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    History,
    InputError,
    Message,
    ModelContext,
    ModelFailoverConfig,
    ModelRequest,
    ModelRetryConfig,
    ModelWrapper,
    ToolInfo,
    current_run,
    interrupt,
    replace,
    tool,
)
from suture.events import HistoryRewritten
from suture.stores import MemoryStore, SQLiteStore
from suture.testing import ScriptedModel
from tests.agent.lifecycle.recording import Awaited, Plain, collect
from tests.agent.lifecycle.speech import MESSAGE, WIRES, Speech, wire_name

every_wire = pytest.mark.parametrize("speech", WIRES, ids=wire_name)
HOOKS = ("before_model_rewrite_state", "after_model_rewrite_state")


@tool
async def look() -> str:
    """Look."""
    return "seen"


@tool
async def listen() -> str:
    """Listen."""
    return "heard"


def hook(name: str, change: Any) -> ChatModelAgentMiddleware[Any]:
    """Return a middleware with one hook on the state."""

    def call(_self: Any, *given: Any) -> Any:
        return change(*given)

    return type("Hook", (ChatModelAgentMiddleware,), {name: call})()


def two_turns(speech: Speech, *middlewares: Any, **choices: Any) -> tuple[list[Any], Any, ScriptedModel]:
    model = ScriptedModel([speech.calls(("c1", "look", "{}")), "done"], speech.wire)
    agent = ChatModelAgent(model=model, tools=[look, listen], middlewares=middlewares, **choices)
    return *asyncio.run(collect(agent.stream("go"))), model


def whole(speech: Speech) -> list[Any]:
    return [
        speech.user("go"),
        speech.calls(("c1", "look", "{}")),
        speech.result("c1", "look", "seen"),
        speech.says("done"),
    ]


@every_wire
@pytest.mark.parametrize("kind", [Plain, Awaited])
def test_hooks_that_return_nothing_change_nothing(kind: type[Plain], speech: Speech):
    events, result, model = two_turns(speech, kind("A"), kind("B"))
    assert result.messages == whole(speech)
    assert [request.messages for request in model.requests] == [whole(speech)[:1], whole(speech)[:3]]
    assert [[info.name for info in request.tool_infos] for request in model.requests] == [["look", "listen"]] * 2
    assert not [event for event in events if isinstance(event, HistoryRewritten)]


@every_wire
@pytest.mark.parametrize("name", HOOKS)
def test_a_hook_that_returns_its_state_unchanged_changes_nothing(name: str, speech: Speech):
    events, result, _ = two_turns(speech, hook(name, lambda state, _: state))
    assert result.messages == whole(speech)
    assert not [event for event in events if isinstance(event, HistoryRewritten)]


@every_wire
def test_a_change_before_the_model_lasts_into_the_next_turn_and_the_result(speech: Speech):
    note = speech.user("be quick")

    def once(state: ChatModelAgentState[Any], model_context: ModelContext) -> Any:
        return replace(state, messages=[*state.messages, note]) if model_context.turn == 1 else None

    _, result, model = two_turns(speech, hook("before_model_rewrite_state", once))
    user, call, seen, done = whole(speech)
    assert [request.messages for request in model.requests] == [[user, note], [user, note, call, seen]]
    assert result.messages == [user, note, call, seen, done]


@every_wire
def test_a_change_after_the_model_lasts_into_the_next_turn_and_the_result(speech: Speech):
    def other_call(state: ChatModelAgentState[Any], model_context: ModelContext) -> Any:
        changed = speech.calls(("c1", "listen", "{}"))
        return replace(state, messages=[*state.messages[:-1], changed]) if model_context.turn == 1 else None

    _, result, model = two_turns(speech, hook("after_model_rewrite_state", other_call))
    begun = [speech.user("go"), speech.calls(("c1", "listen", "{}")), speech.result("c1", "listen", "heard")]
    assert model.requests[1].messages == begun
    assert result.messages == [*begun, speech.says("done")]


class Whispering(ModelWrapper[Any]):
    """A model that is told more, and other tools, than the history says."""

    extra: Any

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        request = replace(request, messages=[*request.messages, self.extra], tool_infos=(), instruction="whispered")
        async with aclosing(cast("Any", self.inner).stream(request)) as pieces:
            async for piece in pieces:
                yield piece


@every_wire
def test_what_wrap_model_changes_is_sent_but_neither_kept_nor_seen_by_hooks(speech: Speech):
    states: list[ChatModelAgentState[Any]] = []

    class Wrapping(ChatModelAgentMiddleware[Any]):
        def wrap_model(self, model: Any, model_context: Any) -> Any:
            wrapper = Whispering(model)
            wrapper.extra = speech.user(f"whisper {model_context.turn}")
            return wrapper

        def after_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            states.append(state)

    _, result, model = two_turns(speech, Wrapping())
    expected = whole(speech)
    assert [request.messages[-1] for request in model.requests] == [speech.user("whisper 1"), speech.user("whisper 2")]
    assert [request.tool_infos for request in model.requests] == [(), ()]
    assert [list(state.messages) for state in states] == [expected[:2], expected]
    assert [[info.name for info in state.tool_infos] for state in states] == [["look", "listen"]] * 2
    assert result.messages == expected


@every_wire
@pytest.mark.parametrize("name", HOOKS)
def test_a_rewrite_is_told_by_an_event_with_its_author_its_lengths_and_its_report(name: str, speech: Speech):
    class Summarising(ChatModelAgentMiddleware[Any]):
        pass

    def shorten(_self: Any, state: ChatModelAgentState[Any], model_context: ModelContext) -> Any:
        if model_context.turn != 2:
            return None
        return replace(state, messages=[speech.user("in short"), *state.messages[3:]], report={"removed": 3})

    setattr(Summarising, name, shorten)
    events, result, model = two_turns(speech, Summarising())
    before = name.startswith("before")
    (told,) = [event for event in events if isinstance(event, HistoryRewritten)]
    assert (told.turn, told.by, told.report) == (2, "Summarising", {"removed": 3})
    assert (told.before, told.after) == ((3, 1) if before else (4, 2))
    assert result.messages == [speech.user("in short"), speech.says("done")]
    assert model.requests[1].messages == ([speech.user("in short")] if before else whole(speech)[:3])


def test_the_history_is_an_immutable_view_and_a_hook_may_return_any_sequence():
    kinds: list[type] = []

    def tuples(state: ChatModelAgentState[Any], _: ModelContext) -> Any:
        kinds.append(type(state.messages))
        return replace(state, messages=tuple(state.messages))

    def iterators_made_lists(state: ChatModelAgentState[Any], _: ModelContext) -> Any:
        kinds.append(type(state.messages))
        return replace(state, messages=list(state.messages))

    _, result, _ = two_turns(MESSAGE, *(hook(HOOKS[0], change) for change in (tuples, iterators_made_lists)))
    assert set(kinds) == {History}
    assert result.messages == whole(MESSAGE)


def test_a_hook_cannot_change_the_state_in_place():
    def write(state: Any, _: ModelContext) -> Any:
        with pytest.raises(AttributeError):
            state.messages = []
        with pytest.raises(TypeError):
            state.messages[0] = MESSAGE.user("changed")
        with pytest.raises(AttributeError, match=r"return replace\(state, messages=\[\*state.messages, message\]\)"):
            state.messages.append(MESSAGE.user("added"))

    _, result, _ = two_turns(MESSAGE, hook(HOOKS[0], write))
    assert result.messages == whole(MESSAGE)


@every_wire
def test_tool_infos_that_a_hook_changes_last_and_may_become_none_at_all(speech: Speech):
    def only_one(state: ChatModelAgentState[Any], model_context: ModelContext) -> Any:
        return replace(state, tool_infos=state.tool_infos[:1] if model_context.turn == 1 else ())

    def later(state: ChatModelAgentState[Any], _model_context: ModelContext) -> Any:
        given.append([info.name for info in state.tool_infos])

    given: list[list[str]] = []
    _, _, model = two_turns(speech, hook(HOOKS[0], only_one), hook(HOOKS[0], later))
    assert [[info.name for info in request.tool_infos] for request in model.requests] == [["look"], []]
    assert given == [["look"], []]


def test_deferred_tool_infos_reach_the_model_and_last():
    deferred = ToolInfo("rarely", "Seldom needed.")

    def defer(state: ChatModelAgentState[Any], model_context: ModelContext) -> Any:
        return replace(state, deferred_tool_infos=(deferred,)) if model_context.turn == 1 else None

    _, _, model = two_turns(MESSAGE, hook(HOOKS[0], defer))
    assert [request.deferred_tool_infos for request in model.requests] == [(deferred,), (deferred,)]


def test_a_state_that_only_says_its_messages_keeps_the_tools():
    def only_messages(state: ChatModelAgentState[Any], _: ModelContext) -> Any:
        return replace(state, messages=[*state.messages])

    _, _, model = two_turns(MESSAGE, hook(HOOKS[0], only_messages))
    assert [len(request.tool_infos) for request in model.requests] == [2, 2]


@every_wire
def test_the_model_context_says_what_surrounds_the_turn(speech: Speech):
    retry = ModelRetryConfig(max_retries=1)
    failover = ModelFailoverConfig(models=[ScriptedModel(["never"], speech.wire)])
    seen: list[tuple[Any, ...]] = []

    class Looking(ChatModelAgentMiddleware[Any]):
        def note(self, where: str, context: ModelContext) -> None:
            names = [info.name for info in context.tools]
            seen.append((where, context.turn, context.wire, names, context.model_retry_config, context.failover))

        def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            self.note("before", model_context)

        def wrap_model(self, model: Any, model_context: Any) -> Any:
            self.note("wrap", model_context)
            return model

        def after_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            self.note("after", model_context)

    two_turns(speech, Looking(), model_retry_config=retry, failover=failover)
    assert seen == [
        (where, turn, speech.wire, ["look", "listen"], retry, failover)
        for turn in (1, 2)
        for where in ("before", "wrap", "after")
    ]


@pytest.mark.parametrize("last", [True, False], ids=["the last turn", "any turn"])
def test_wrappers_of_the_model_are_told_the_tools_that_are_sent(last: bool):
    seen: list[list[str]] = []

    class Looking(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            return replace(state, tool_infos=state.tool_infos[:1])

        def wrap_model(self, model: Any, model_context: Any) -> Any:
            seen.append([info.name for info in model_context.tools])
            return model

    limits = {"max_iterations": 1, "on_max_iterations": "answer"} if last else {}
    _, _, model = two_turns(MESSAGE, Looking(), **limits)
    sent = [[info.name for info in request.tool_infos] for request in model.requests]
    assert seen == sent == [["look"], [] if last else ["look"]]


@pytest.mark.parametrize("where", ["another process", "the same process", "memory"])
def test_a_value_is_stored_as_it_is_when_it_is_set(tmp_path: Path, where: str):
    @tool
    async def ask() -> str:
        """Change a value in place, then ask."""
        return str(await interrupt("may I?"))

    seen: list[Any] = []

    class Counting(ChatModelAgentMiddleware[Any]):
        def before_model_rewrite_state(self, state: Any, model_context: Any) -> Any:
            values = current_run().values
            seen.append(list(values.setdefault("log", [])))
            values["log"].append("changed in place")
            if model_context.turn == 2:
                values["log"] = [*values["log"], "set again"]

    model = ScriptedModel([MESSAGE.calls(("c1", "ask", "{}")), MESSAGE.calls(("c2", "ask", "{}")), "done"])

    known = SQLiteStore(tmp_path / "runs.db")

    def agent() -> ChatModelAgent[Any]:
        store = (
            SQLiteStore(tmp_path / "runs.db") if where == "another process" else known
        )  # nothing is remembered of it
        kept = None if where == "memory" else store
        return ChatModelAgent(model=model, tools=[ask], middlewares=[Counting()], checkpoint_store=kept)

    async def main() -> None:
        paused = await agent().run("go", checkpoint_id=None if where == "memory" else "one")
        paused = await agent().resume(paused, "yes")
        await agent().resume(paused, "yes")

    asyncio.run(main())
    assert seen == [[], [], ["changed in place", "set again"]]


def test_an_empty_history_after_a_turn_is_an_error():
    with pytest.raises(Exception, match="message") as raised:
        two_turns(MESSAGE, hook(HOOKS[1], lambda state, _: replace(state, messages=[])))
    assert not isinstance(raised.value, IndexError | TimeoutError)


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("before_agent", [3]),
        ("before_agent", [Message.user("go"), None]),
        ("before_model_rewrite_state", [{"role": "user", "content": "go"}]),
        ("after_model_rewrite_state", []),
        ("after_model_rewrite_state", [None, Message.assistant("done")]),
        ("after_model_rewrite_state", [Message.user("go"), AgenticMessage.assistant("done")]),
        ("after_model_rewrite_state", History[Any]([3])),
    ],
)
def test_a_hook_that_leaves_no_messages_of_the_wire_fails_and_changes_nothing(name: str, left: Any):
    async def main() -> tuple[list[Any], list[Any]]:
        store = MemoryStore()
        wrong = hook(name, lambda state, _context=None: replace(state, messages=left))
        model = ScriptedModel(["done", "done"])
        with pytest.raises(InputError) as caught:
            await ChatModelAgent(model=model, middlewares=[wrong], checkpoint_store=store).run("go", checkpoint_id="c")
        resumed = await ChatModelAgent(model=model, checkpoint_store=store).resume("c")
        return list(caught.value.result.messages), list(resumed.messages)

    failed, resumed = asyncio.run(main())
    asked, answered = Message.user("go"), Message.assistant("done")
    assert failed == ([asked, answered] if name.startswith("after") else [asked])
    assert resumed == [asked, answered]


def test_a_hook_that_adds_what_is_no_message_fails_and_the_history_before_it_stays():
    wrong = hook("after_model_rewrite_state", lambda state, _: replace(state, messages=[*state.messages, 3]))
    with pytest.raises(InputError, match="message 2: expected a Message, found int") as caught:
        ChatModelAgent(model=ScriptedModel(["done"]), middlewares=[wrong]).run_sync("go")
    assert caught.value.result.messages == [Message.user("go"), Message.assistant("done")]
