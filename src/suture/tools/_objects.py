"""Tools from objects that bring their own description and endpoints."""

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec.structs import replace

from suture.errors import ConfigError
from suture.messages import ToolArgument, ToolInfo
from suture.tools._endpoint import Bind, Call, endpoint_of
from suture.tools._kinds import way_of
from suture.tools._tool import Kind, Tool, check_name

_METHODS: dict[str, Kind] = {  # the first one that an object has is taken
    "enhanced_stream": "enhanced_streamable",
    "enhanced_invoke": "enhanced_invokable",
    "stream": "streamable",
    "invoke": "invokable",
}


def is_tool_object(given: object) -> bool:
    """Tell whether this is an object with `info` and one of the four methods.

    >>> from suture.tools._objects import is_tool_object
    >>> is_tool_object(print)
    False
    """
    return isinstance(getattr(given, "info", None), ToolInfo) and _method(given) is not None


def _method(given: object) -> str | None:
    return next((name for name in _METHODS if callable(getattr(given, name, None))), None)


def as_tool_value(given: object, *, thread: bool = True) -> Tool[..., Any]:
    """Make a tool from an object with `info` and one or more of four methods, sync or async.

    The methods are `invoke(arguments)`, `stream(arguments)`, `enhanced_invoke(argument)` and
    `enhanced_stream(argument)`. If there are several, enhanced goes before plain and streaming before not. A
    method gets the arguments unread and checks them itself; with a method `validate(arguments)`, which returns
    what is wrong or nothing, they are checked before an approval is asked for. A method that takes `**options`
    gets all options, `context` and `dependencies` among them.

    >>> import asyncio
    >>> from suture.messages import ToolInfo
    >>> from suture.tools._objects import as_tool_value
    >>> class Echo:
    ...     info = ToolInfo("echo", "Say it again.")
    ...     def invoke(self, arguments):
    ...         return arguments
    >>> asyncio.run(as_tool_value(Echo()).endpoint("{}"))
    '{}'
    """
    name = _method(given)
    info: Any = getattr(given, "info", None)
    if name is None or not isinstance(info, ToolInfo):
        raise ConfigError(
            f"{type(given).__name__} is no tool; it needs info, a ToolInfo, and a method: {', '.join(_METHODS)}"
        )
    check_name(info.name)
    method: Callable[..., Any] = getattr(given, name)
    kind = _METHODS[name]
    threaded = thread and way_of(method) in ("blocking", "stream")
    endpoint = endpoint_of(kind, _bind(method, kind), threaded=threaded, tool=info.name)
    made: Tool[..., Any] = Tool(info, kind, endpoint, in_thread=threaded, function=method)
    validate = getattr(given, "validate", None)
    return replace(made, validate=validate) if callable(validate) else made


def _bind(method: Callable[..., Any], kind: Kind) -> Bind:
    parameters = inspect.signature(method).parameters.values()
    takes_options = any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters)
    enhanced = kind.startswith("enhanced")

    def bind(text: str, options: dict[str, Any]) -> Call:
        given = ToolArgument(text) if enhanced else text
        return partial(method, given, **options) if takes_options else partial(method, given)

    return bind
