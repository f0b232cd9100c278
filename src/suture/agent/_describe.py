"""An agent's stack as text."""

from suture.kernel import Spec

__all__ = ["describe"]


def describe(spec: Spec) -> str:
    """Return what surrounds a model turn and a tool call, outermost first."""
    stack = spec.stack
    own = type(spec.model).__name__
    sends = ([] if stack.sends_model_events else ["event sender"], [] if stack.sends_tool_events else ["event sender"])
    policies = [word for word, on in (("failover", spec.failover), ("retry", spec.retry)) if on is not None]
    turn = [
        *(f"{hook.name}.{hook.method}" for hook in stack.before_model),
        *policies,
        *sends[0],
        *(f"{hook.name}.{hook.method}" for hook in stack.wrap_model),
        "fit",
        "callbacks",
        own,
        *(f"{hook.name}.{hook.method}" for hook in stack.after_model),
    ]
    kinds = {f"{frame.rpartition('.')[0]} (by kind)" for layers in stack.around_kinds.values() for frame, _ in layers}
    around = [frame.rpartition(".")[0] for frame, _ in stack.around_calls]
    call = [*sends[1], *around, *sorted(kinds), "callbacks", "tool"]
    return (
        f"{spec.name}: {own} (wire {spec.wire.name}, profile {spec.model.profile})\n"
        f"  model turn: {' > '.join(turn)}\n"
        f"  tool call:  {' > '.join(call)}\n"
        f"  tools:      {', '.join(tool.name for tool in spec.tools) or 'none'}"
    )
