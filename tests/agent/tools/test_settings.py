"""What is wrong with an agent is said when it is made, and names the setting."""

import asyncio
import dataclasses
import re
from typing import Any

import pytest

import suture
from suture import (
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ConfigError,
    InputError,
    Message,
    ModelRetryConfig,
)
from suture.stores import MemoryStore
from suture.testing import ScriptedModel


def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize(
    "wrong",
    [
        {"tools": look},
        {"tools": None},
        {"tools": "look"},
        {"middlewares": None},
        {"middlewares": ChatModelAgentMiddleware[Any]()},
        {"middlewares": [ChatModelAgentMiddleware]},
        {"max_iterations": "5"},
        {"max_iterations": 0},
        {"max_iterations": True},
        {"failover": [ScriptedModel([])]},
        {"model_retry_config": 3},
        {"budget": 100},
        {"callbacks": print},
        {"checkpoint_store": "runs.db"},
        {"input_builder": "x"},
        {"redact": "x"},
        {"format_tool_error": "x"},
        {"return_directly": "look"},
        {"on_max_iterations": "stop"},
        {"tool_errors": "ignore"},
        {"language": "xx"},
        {"instruction": ["Be brief."]},
        {"description": 5},
        {"output_key": 5},
        {"name": ""},
        {"name": "a/b"},
        {"name": "a#2"},
        {"model": ScriptedModel},
        {"model": object()},
        {"output_type": re.Match},
        {"output_type": []},
    ],
    ids=lambda wrong: f"{next(iter(wrong))}={type(next(iter(wrong.values()))).__name__}",
)
def test_a_wrong_setting_is_refused_when_the_agent_is_made(wrong: dict[str, Any]):
    (setting,) = wrong
    with pytest.raises(ConfigError) as refused:
        ChatModelAgent(**{"model": ScriptedModel([]), **wrong})
    assert setting in str(refused.value) or "name" in wrong or setting in {"model", "language", "middlewares"}


@pytest.mark.parametrize("wrong", [{"backoff": 0.5}, {"should_retry": True}, {"max_retries": -1}, {"max_retries": 1.5}])
def test_a_wrong_retry_is_refused_when_it_is_made(wrong: dict[str, Any]):
    with pytest.raises(ConfigError):
        ModelRetryConfig(**wrong)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("before_model", "before_model_rewrite_state"),
        ("after_model", "after_model_rewrite_state"),
        ("after_agents", "after_agent"),
        ("wrap_tool_calls", "wrap_tool_call"),
    ],
)
def test_a_misspelt_hook_is_refused(name: str, meant: str):
    own = type("Own", (ChatModelAgentMiddleware,), {name: lambda *_: None})
    with pytest.raises(ConfigError, match=f"Own.{name} is no hook and is never called; is it {meant}?"):
        ChatModelAgent(model=ScriptedModel([]), middlewares=[own()])


@pytest.mark.parametrize("name", ["wrap_text", "before_save", "after_load", "before_all", "wrap_line", "on_tool_call"])
def test_a_helper_method_may_have_any_name(name: str):
    own = type("Own", (ChatModelAgentMiddleware,), {name: lambda *_: None})
    assert ChatModelAgent(model=ScriptedModel(["hi"]), middlewares=[own()]).run_sync("go").output == "hi"


@pytest.mark.parametrize("wrong", [{"options": "x"}, {"tool_options": [1]}, {"session": "x"}])
def test_a_wrong_choice_of_a_run_is_refused_at_once(wrong: dict[str, Any]):
    with pytest.raises(ConfigError):
        ChatModelAgent(model=ScriptedModel([])).stream("go", **wrong)


@pytest.mark.parametrize(
    ("value", "field"),
    [
        (ChatModelAgent(model=ScriptedModel([])), "instruction"),
        (suture.ChatModelAgentContext(), "instruction"),
        (suture.ModelContext(), "tools"),
        (suture.ChatModelAgentState(), "messages"),
    ],
)
@pytest.mark.parametrize("replace", [suture.replace, dataclasses.replace])
def test_a_frozen_value_is_changed_by_either_replace(value: Any, field: str, replace: Any):
    new = [] if field == "messages" else () if field == "tools" else "Be brief."
    changed = replace(value, **{field: new})
    assert type(changed) is type(value)
    assert changed is not value
    assert getattr(changed, field) == new


def test_answers_are_given_by_interrupt():
    agent = ChatModelAgent(model=ScriptedModel([]), checkpoint_store=MemoryStore())
    with pytest.raises(ConfigError, match=r"\{id: data\}"):
        agent.stream(resume="c", answers=True)  # pyright: ignore[reportArgumentType]


def test_a_model_that_returns_instead_of_yielding_is_named():
    class Returns:
        wire, profile = "message", "pairing"

        async def stream(self, request: Any) -> Message:
            del request
            return Message.assistant("hello")

    agent: Any = ChatModelAgent(model=Returns())  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigError, match=r"stream.*must be an async generator: yield the message"):
        agent.run_sync("go")


def test_a_model_replying_with_something_else_is_told_what_a_reply_is():
    agent = ChatModelAgent(model=ScriptedModel([Message.user("no")]))
    with pytest.raises(InputError, match="assistant message of the message wire"):
        asyncio.run(_awaited(agent))


async def _awaited(agent: Any) -> Any:
    return await agent.run("go")
