"""An agent as a text: what is called around a model turn and a tool call, and the tools that the model sees."""

from collections.abc import Sequence
from typing import Any

from suture.kernel.state import Spec


def describe(spec: Spec, middlewares: Sequence[Any]) -> str:
    """Return what wraps a model turn and a tool call, outermost first, and the tools that the model sees."""
    stack, own = spec.stack, type(spec.model).__name__
    policies = [word for word, on in (("failover", spec.failover), ("retry", spec.retry)) if on is not None]
    turn = [
        *(f"{hook.name}.{hook.method}" for hook in stack.before_model),
        *policies,
        *([] if stack.sends_model_events else ["event sender"]),
        *(f"{hook.name}.{hook.method}" for hook in stack.around_model),
        "fit",
        "callbacks",
        own,
        *(f"{hook.name}.{hook.method}" for hook in stack.after_model),
    ]
    hooks = {(hook.at, hook.owner, hook.method): hook for ring in stack.around_tools.values() for hook in ring}
    # Wrappers from `ToolsConfig` and older middlewares come first, then all others in list order.
    outside = ("tool_call_middlewares", "AgentMiddleware")
    around = sorted(
        hooks.values(),
        key=lambda hook: (not hook.owner.startswith(outside), hook.at, hook.method != "wrap_tool_call"),
    )
    rings = [f"{hook.name}.{hook.method}" for hook in around]
    sends = [] if stack.sends_tool_events else ["event sender"]
    names = [tool.name for tool in spec.tools]
    for item in middlewares:
        added: Any = getattr(item, "added_tools", None)
        names += [tool.name for tool in added(names)] if added is not None else ()
    profile = getattr(spec.model.profile, "name", spec.model.profile)
    return (
        f"{spec.name}: {own} (wire {spec.wire.name}, profile {profile})\n"
        f"  model turn: {' > '.join(turn)}\n"
        f"  tool call:  {' > '.join([*sends, *rings, 'callbacks', 'tool'])}\n"
        f"  tools:      {', '.join(names) or 'none'}"
    )
