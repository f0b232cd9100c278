"""A list of middlewares, compiled once per agent: for each hook, those that override it."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

from suture.errors import ConfigError
from suture.kernel._middleware import AgentMiddleware, ChatModelAgentMiddleware
from suture.kernel._policies import ToolCallMiddleware
from suture.tools import Tool, as_tools

__all__ = ["Hook", "Layer", "Stack", "compile_stack", "without_context"]


class Hook(NamedTuple):
    """One hook of one middleware: the frame it runs in, the middleware's name, the function."""

    frame: str
    name: str
    call: Callable[..., Any]
    at: int
    """Its middleware's place in the list."""
    method: str


Layer: TypeAlias = tuple[str, Callable[..., Any]]
"""A wrapper and the frame it runs in."""

_SPECIFIC = {
    "invokable": "wrap_invokable_tool_call",
    "streamable": "wrap_streamable_tool_call",
    "enhanced_invokable": "wrap_enhanced_invokable_tool_call",
    "enhanced_streamable": "wrap_enhanced_streamable_tool_call",
}


class Stack(NamedTuple):
    """The hooks of an agent, each list in the order in which the middlewares were given."""

    before_agent: tuple[Hook, ...]
    before_model: tuple[Hook, ...]
    """The older form's first, then `before_model_rewrite_state`."""
    after_model: tuple[Hook, ...]
    """`after_model_rewrite_state`, then the older form's."""
    wrap_model: tuple[Hook, ...]
    around_calls: tuple[Layer, ...]
    """Around every tool call, outermost first."""
    around_kinds: dict[str, tuple[Layer, ...]]
    """Around calls of tools of one kind, outermost first."""
    after_agent: tuple[Hook, ...]
    instructions: tuple[str, ...]
    tools: tuple[Tool[..., Any], ...]
    sends_model_events: bool
    sends_tool_events: bool
    names: tuple[str, ...]


def compile_stack(middlewares: Sequence[Any], tool_call_middlewares: Sequence[ToolCallMiddleware] = ()) -> Stack:
    """Return the hooks of `middlewares` in the order in which they run."""
    older = [(at, item) for at, item in enumerate(middlewares) if isinstance(item, AgentMiddleware)]
    newer: list[tuple[int, Any]] = [
        (at, item) for at, item in enumerate(middlewares) if isinstance(item, ChatModelAgentMiddleware)
    ]
    for at, item in enumerate(middlewares):
        if not isinstance(item, AgentMiddleware | ChatModelAgentMiddleware):
            hint = "; pass an instance, not the class" if isinstance(item, type) else ""
            raise ConfigError(f"middlewares[{at}] is {item!r}, not a ChatModelAgentMiddleware{hint}")
    for _, item in newer:
        _check_hooks(item)
    given: list[Layer] = [(f"tool_call_middlewares.{at}", call) for at, call in enumerate(tool_call_middlewares)]
    legacy: list[Layer] = [
        (f"AgentMiddleware.{at}", item.wrap_tool_call) for at, item in older if item.wrap_tool_call is not None
    ]
    ring: list[Layer] = [(hook.frame, hook.call) for hook in _overriding(newer, "wrap_tool_call")]
    return Stack(
        before_agent=_overriding(newer, "before_agent"),
        before_model=(*_older(older, "before_chat_model"), *_overriding(newer, "before_model_rewrite_state")),
        after_model=(*_overriding(newer, "after_model_rewrite_state"), *_older(older, "after_chat_model")),
        wrap_model=_overriding(newer, "wrap_model"),
        around_calls=(*given, *legacy, *ring),
        around_kinds={
            kind: tuple((hook.frame, hook.call) for hook in _overriding(newer, method))
            for kind, method in _SPECIFIC.items()
        },
        after_agent=_overriding(newer, "after_agent"),
        instructions=tuple(item.additional_instruction for _, item in older if item.additional_instruction),
        tools=as_tools([tool for _, item in older for tool in item.additional_tools]),
        sends_model_events=any(getattr(item, "sends_model_events", False) for _, item in newer),
        sends_tool_events=any(getattr(item, "sends_tool_events", False) for _, item in newer),
        names=tuple(type(item).__name__ for item in middlewares),
    )


def _check_hooks(item: object) -> None:
    """Refuse a method that looks like a hook and is none: it would never be called."""
    kind = type(item)
    known = [name for name in vars(ChatModelAgentMiddleware) if name.startswith(("before_", "after_", "wrap_"))]
    for name in dir(kind):
        if name.startswith(("before_", "after_", "wrap_")) and name not in known:
            from difflib import get_close_matches  # noqa: PLC0415 - only a wrong name pays for it

            near = get_close_matches(name, known, n=1, cutoff=0.6)
            if near:
                raise ConfigError(f"{kind.__name__}.{name} is no hook and would never be called; is it {near[0]}?")


def _overriding(middlewares: Sequence[tuple[int, Any]], method: str) -> tuple[Hook, ...]:
    default = getattr(ChatModelAgentMiddleware, method)
    return tuple(
        Hook(f"{type(item).__name__}.{at}", type(item).__name__, getattr(item, method), at, method)
        for at, item in middlewares
        if getattr(getattr(item, method), "__func__", None) is not default
    )


def _older(middlewares: Sequence[tuple[int, AgentMiddleware]], field: str) -> tuple[Hook, ...]:
    hooks: list[Hook] = []
    for at, item in middlewares:
        function = getattr(item, field)
        if function is not None:
            hooks.append(Hook(f"AgentMiddleware.{at}", "AgentMiddleware", without_context(function), at, field))
    return tuple(hooks)


def without_context(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """Return a hook of the state alone as one that is also given a context."""
    return lambda state, _: function(state)
