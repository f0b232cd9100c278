"""An agent's settings for retries, failover, budgets, tools, callbacks and structured answers."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from numbers import Number
from typing import Any, Generic, TypeAlias

import msgspec

from suture._aio import LOG, settle
from suture._text import plural
from suture.errors import ConfigError
from suture.kernel.requests import Model
from suture.messages import FrozenMap, M, TokenUsage
from suture.tools import AnyTool, RunContext


def _check_functions(settings: object, *names: str) -> None:
    for name in names:
        given = getattr(settings, name)
        if given is not None and not callable(given):
            raise ConfigError(f"{type(settings).__name__}.{name} must be a function, found {type(given).__name__}")


def _check_count(settings: object, *names: str) -> None:
    for name in names:
        given = getattr(settings, name)
        if given is not None and (type(given) is not int or given < 0):
            raise ConfigError(f"{type(settings).__name__}.{name} must be an integer, 0 or more, found {given!r}")


class RetryContext(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """One attempt at a model turn, for `should_retry` to judge: its output, its error, or both if a stream was cut.

    >>> RetryContext(attempt=1, messages=[], error=TimeoutError()).output is None
    True
    """

    attempt: int
    """Counted from 1."""
    messages: Sequence[M]
    options: Mapping[str, Any] = FrozenMap()
    output: M | None = None
    error: Exception | None = None


class RetryDecision(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """What to do after an attempt.

    >>> RetryDecision(retry=True, reject_reason="empty answer").reject_reason
    'empty answer'
    """

    retry: bool = False
    rewrite_error: Exception | None = None
    """Without `retry`: end the run with this error, whatever the outcome of the attempt."""
    modified_input_messages: Sequence[M] | None = None
    """What to send from now on in this turn."""
    persist_modified_input_messages: bool = False
    """Whether the changed messages also become the history."""
    additional_options: Mapping[str, Any] = FrozenMap()
    """Model options for the rest of this turn."""
    backoff: float | None = None
    """Seconds to wait; the configured backoff if not given."""
    reject_reason: Any = None


ShouldRetry: TypeAlias = Callable[
    [RetryContext[Any]], "RetryDecision[Any] | bool | Awaitable[RetryDecision[Any] | bool | None] | None"
]


class ModelRetryConfig(msgspec.Struct, frozen=True, kw_only=True):
    """How often a model turn is tried again, and after how long.

    `should_retry` judges errors and successful outputs; without it every error is tried again. `backoff` returns
    the seconds to wait after attempt n: by default 0.1 s, doubled each time, plus up to half of that at random, and
    10 s from the eighth on. If an error has `retry_after`, the wait is at least that long.

    >>> ModelRetryConfig(max_retries=2).max_retries
    2
    """

    max_retries: int = 3
    should_retry: ShouldRetry | None = None
    backoff: Callable[[int], float] | None = None

    def __post_init__(self) -> None:
        if type(self.max_retries) is not int or self.max_retries < 0:
            raise ConfigError(f"max_retries counts extra attempts, 0 or more; got {self.max_retries!r}")
        _check_functions(self, "should_retry", "backoff")


class FailoverContext(msgspec.Struct, Generic[M], frozen=True, kw_only=True):
    """A model turn that failed, for a failover to judge.

    >>> FailoverContext(attempt=1, messages=[], error=TimeoutError()).attempt
    1
    """

    attempt: int
    """The number of the failover model to be tried next, from 1."""
    messages: Sequence[M]
    output: M | None = None
    error: Exception
    """The error of the model; after retries, that of the last attempt."""


class ModelFailoverConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Other models, tried in order when one fails. One that works is kept for the rest of the run.

    All share the agent's wire. `should_failover` says whether another model may help with an error.
    `get_failover_model` chooses instead of the list (a model, or a model and the messages for it); `None` gives up.

    >>> from suture.testing import ScriptedModel
    >>> len(ModelFailoverConfig(models=[ScriptedModel(["hello"])]).models)
    1
    """

    models: Sequence[Model[Any]] = ()
    should_failover: Callable[[FailoverContext[Any]], bool | Awaitable[bool]] | None = None
    get_failover_model: Callable[[FailoverContext[Any]], Any] | None = None
    max_retries: int | None = None
    """How many other models are tried in one turn; by default all of `models`."""

    def __post_init__(self) -> None:
        _check_functions(self, "should_failover", "get_failover_model")
        models: Any = self.models
        if isinstance(models, str) or not isinstance(models, Sequence):
            raise ConfigError(f"models takes a list; put a single one into a list. Got {type(models).__name__}")
        _check_count(self, "max_retries")
        if not self.models and self.get_failover_model is None:
            raise ConfigError("a failover needs models, or get_failover_model to choose one")
        if self.max_retries is None and not self.models:
            raise ConfigError("a failover with get_failover_model alone needs max_retries")


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """Limits of a run: tokens, cost, tool calls.

    Tokens and cost are checked before each model turn. A tool call beyond the budget is not run; the model is told
    so, and the run ends.

    >>> Budget(total_tokens=100_000, tool_calls=50).cost is None
    True
    """

    total_tokens: int | None = None
    tool_calls: int | None = None
    cost: float | None = None
    cost_of: Callable[[TokenUsage], float] | None = None
    """What the usage so far costs, in the unit of `cost`."""

    def __post_init__(self) -> None:
        _check_functions(self, "cost_of")
        _check_count(self, "total_tokens", "tool_calls")
        cost: object = self.cost
        if self.cost is not None and not (isinstance(cost, Number) and self.cost >= 0):
            raise ConfigError(f"Budget.cost must be a number, 0 or more, found {cost!r}")
        if self.cost is not None and self.cost_of is None:
            raise ConfigError("a budget with a cost needs cost_of, a function from usage to cost")

    def exceeded(self, usage: TokenUsage, tool_calls: int) -> str:
        """Return what is used up, given the number of `tool_calls` asked for; an empty text if the run may go on.

        >>> Budget(tool_calls=2).exceeded(TokenUsage(), 3)
        'the budget of 2 tool calls is used up'
        """
        if self.total_tokens is not None and usage.total_tokens >= self.total_tokens:
            return f"the budget of {self.total_tokens} tokens is used up"
        if self.tool_calls is not None and tool_calls > self.tool_calls:
            return f"the budget of {plural(self.tool_calls, 'tool call')} is used up"
        if self.cost is not None and self.cost_of is not None and self.cost_of(usage) >= self.cost:
            return f"the budget of {self.cost} for cost is used up"
        return ""


class ToolsConfig(msgspec.Struct, frozen=True, kw_only=True):
    """Tools together with how they are called; pass it as `tools=`.

    >>> ToolsConfig(sequential=True).tool_call_middlewares
    ()
    """

    tools: Sequence[AnyTool] = ()
    tool_call_middlewares: Sequence[Callable[[Any, Any], Any]] = ()
    """`async (call, proceed) -> result` around every call, outside all hooks; the first is outermost."""
    return_directly: Sequence[str] | AbstractSet[str] = ()
    sequential: bool = False


class Component(msgspec.Struct, frozen=True, kw_only=True):
    """The component that a callback is about: an agent, a model or a tool, and its name.

    >>> Component(kind="tool", name="search").kind
    'tool'
    """

    kind: str
    name: str
    call_id: str = ""


class Callbacks(msgspec.Struct, frozen=True, kw_only=True):
    """Functions that are called when a component starts, ends or fails: `(component, value)`, sync or async.

    One that fails is logged and changes no outcome.

    The value is a `ModelRequest` and then the reply, a `ToolArgument` and then the `ToolResult`, or the messages of
    an agent before and after; on failure it is the exception. Callbacks are innermost, so they see what really goes
    in and comes out. `kinds` says which components they are for.

    >>> Callbacks(on_end=print).on_start is None
    True
    """

    on_start: Callable[[Component, Any], Any] | None = None
    on_end: Callable[[Component, Any], Any] | None = None
    on_error: Callable[[Component, Exception], Any] | None = None
    kinds: AbstractSet[str] = frozenset(("agent", "model", "tool"))

    def __post_init__(self) -> None:
        _check_functions(self, "on_start", "on_end", "on_error")


async def notify(callbacks: Sequence[Callbacks], moment: str, about: Component, value: Any) -> None:
    """Call the callbacks for one moment of a component; a callback that fails is logged and changes nothing."""
    for each in callbacks:
        function = getattr(each, moment)
        if function is not None and about.kind in each.kinds:
            try:
                await settle(function(about, value))
            except (Exception, asyncio.CancelledError) as error:
                task = asyncio.current_task()
                if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                    raise
                LOG.exception("the callback %s failed for %s %s", moment, about.kind, about.name)


# --- the instruction ------------------------------------------------------------------------------

Instruction: TypeAlias = "str | Callable[[RunContext[Any]], Awaitable[str]]"
"""The instruction of an agent, or what makes it when a run begins."""


def make_instruction(own: str | Callable[..., str | Awaitable[str]], added: Sequence[str]) -> Instruction:
    """Return an agent's instruction with what is added to it; if it is a function, one that makes the whole."""
    if not callable(own):
        return _join_instruction(own, added)
    takes_context = _takes_context(own)

    async def make(context: RunContext[Any]) -> str:
        text: Any = await settle(own(context) if takes_context else own())
        if not isinstance(text, str):
            raise ConfigError(f"the function given as instruction returns a text, not {type(text).__name__}")
        return _join_instruction(text, added)

    return make


def _takes_context(function: Callable[..., Any]) -> bool:
    """Return whether an instruction's function takes the run's context; raise `ConfigError` if it needs more."""
    from inspect import signature  # noqa: PLC0415 - only who has a function pays for it

    try:
        whole = signature(function)
        with suppress(TypeError):
            whole.bind(None)
            return True
        whole.bind()
    except (TypeError, ValueError) as error:
        raise ConfigError(f"the function given as instruction takes the RunContext or nothing ({error})") from error
    return False


def _join_instruction(own: str, added: Sequence[str]) -> str:
    return "\n\n".join(part for part in (own, *added) if part)
