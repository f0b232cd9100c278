"""From the text of the arguments to a call: what the model wrote, and what the run passes in."""

from collections.abc import Callable
from functools import partial
from typing import Any

from suture.messages import ToolContext
from suture.tools._endpoint import Bind, Call
from suture.tools._errors import ToolDependencyError
from suture.tools._signature import NOTHING, Hidden, Signature

_RESERVED = ("context", "dependencies")


def binder(
    function: Callable[..., Any], signature: Signature, read: Callable[[str], dict[str, Any]], tool: str
) -> Bind:
    """Make what binds arguments and options to a function.

    >>> from suture.tools._binding import binder
    >>> from suture.tools._signature import read_signature
    >>> bind = binder(pow, read_signature(pow, "pow"), lambda text: {"base": 2, "exp": 5, "mod": None}, "pow")
    >>> bind("", {})()
    32
    """
    hidden = signature.hidden
    positional = signature.positional
    takes_options = signature.takes_options

    def bind(text: str, options: dict[str, Any]) -> Call:
        named = read(text)
        for each in hidden:
            named[each.name] = _fill(each, options, tool)
        if takes_options:
            # What the model wrote goes first: an option of the same name is for somebody else.
            named = {**{name: each for name, each in options.items() if name not in _RESERVED}, **named}
        if positional:
            return partial(function, *[named.pop(name) for name in positional], **named)
        return partial(function, **named)

    return bind


def _fill(hidden: Hidden, options: dict[str, Any], tool: str) -> Any:
    if hidden.kinds == (ToolContext,):
        context = options.get("context")
        if context is not None:
            return context
    for dependency in options.get("dependencies", ()):
        if isinstance(dependency, hidden.kinds):
            return dependency
    if hidden.default is not NOTHING:
        return hidden.default
    wanted = " or ".join(kind.__name__ for kind in hidden.kinds)
    if hidden.kinds == (ToolContext,):
        raise ToolDependencyError(f"tool {tool!r} needs its context; pass context=ToolContext(...) to the endpoint")
    raise ToolDependencyError(f"tool {tool!r} needs a {wanted} as {hidden.name!r}; pass one with run(..., deps=[...])")
