"""What `suture chat` is made of: the model and the tools that its options name, and the agent of all of it."""

import os
import sys
from argparse import Namespace
from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

from suture.agent import ChatModelAgent
from suture.cli._chat_bounds import Bounds, clean
from suture.cli._chat_talk import Keeping, Talk
from suture.cli._refusal import Refusal, told
from suture.errors import StreamCutError, SutureError
from suture.kernel import Model, ModelRetryConfig, RetryContext
from suture.middleware import PatchToolCalls, ToolReduction
from suture.stores import LocalBackend, MemoryStore
from suture.tools import Tool, as_tools

__all__ = ["load_model", "load_tools", "make_agent"]

_OWN = ("message", "agentic")
_PASSING = (ConnectionError, TimeoutError, StreamCutError)


def load_model(name: str) -> Model[Any]:
    """Return the model of this name: `PROVIDER:NAME`, or `MODULE:NAME` for one of the user's own.

    >>> load_model("ollama:qwen3").wire
    'message'
    """
    from suture.models import get_model

    if ":" in name:
        _find_modules_here()
    place = f"--model {name}"
    try:
        model: Model[Any] = get_model(name)
        wire = model.wire
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module of the user's may raise anything
        raise Refusal(told(error), place) from None
    if wire not in _OWN:
        raise Refusal(f"speaks {wire}; a chat takes a model that speaks one of {', '.join(_OWN)}", place)
    return model


def load_tools(names: Sequence[str]) -> tuple[Tool[..., Any], ...]:
    """Return the tools of these names, `MODULE:NAME` each: a tool, a function, or a list of them.

    >>> load_tools(["suture.tools:exit_tool"])
    (Tool('exit_tool', kind='invokable'),)
    >>> load_tools(["tides"])
    Traceback (most recent call last):
        ...
    suture.cli._refusal.Refusal: --tools tides: expected MODULE:NAME
    """
    found: list[Any] = []
    for name in names:
        thing = _import(name, f"--tools {name}")
        each: list[Any] = list(cast("Any", thing)) if isinstance(thing, list | tuple) else [thing]
        try:
            found += as_tools(each)
        except Exception as error:  # noqa: BLE001 - what is read of a function is the user's
            raise Refusal(told(error), f"--tools {name}") from None
    try:
        return as_tools(found)
    except SutureError as error:
        raise Refusal(str(error), "--tools") from None


def make_agent(
    asked: Namespace, model: Model[Any], tools: Sequence[Tool[..., Any]], talk: Talk, store: MemoryStore, outputs: str
) -> ChatModelAgent[Any]:
    """Return the agent: it mends its history, keeps it, saves long and old output, and goes on after what may pass."""
    try:
        reduction = ToolReduction(
            LocalBackend(outputs),
            max_tokens_for_clear=asked.max_tokens_for_clear,
            add_reading_tools=bool(tools),  # without any, nothing is saved that could be read
        )
        return ChatModelAgent(
            name="chat",
            instruction=asked.instruction,
            model=model,
            tools=tools,
            middlewares=[Bounds(), PatchToolCalls(), reduction, Keeping(talk)],
            on_max_iterations="answer",
            format_tool_error=lambda error: clean(told(error)),
            model_retry_config=ModelRetryConfig(should_retry=_may_pass),
            checkpoint_store=store,
        )
    except SutureError as error:
        raise Refusal(str(error)) from None


def _may_pass(attempt: RetryContext[Any]) -> bool:
    """Tell whether what a model failed with may be over soon; a model's own errors say so themselves."""
    return bool(getattr(attempt.error, "retryable", isinstance(attempt.error, _PASSING)))


def _import(name: str, place: str) -> Any:
    module, _, path = name.partition(":")
    if not module or not path:
        raise Refusal("expected MODULE:NAME", place)
    _find_modules_here()
    try:
        found: Any = import_module(module)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - a module of the user's may raise anything
        raise Refusal(f"{module} cannot be imported: {told(error)}", place) from None
    for step in path.split("."):
        if not hasattr(found, step):
            where = getattr(sys.modules[module], "__file__", None) or "no file"
            raise Refusal(f"there is no {step} in {module} ({where})", place)
        found = getattr(found, step)
    return found


def _find_modules_here() -> None:
    """Let modules in the current directory be found; those that are installed come first."""
    if not {"", os.getcwd()} & set(sys.path):  # noqa: PTH109 - as `sys.path` has it
        sys.path.append(os.getcwd())  # noqa: PTH109
