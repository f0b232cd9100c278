"""Requests whose messages are acceptable whenever they are read, whatever the middlewares further in do to them.

A middleware that changes a request makes another one of its class. So a request of this class stays one until the
model is called, and what a middleware trims, adds or edits on the way is mended before anyone sees it.
"""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import fields
from typing import Any, NamedTuple

from langchain.agents.middleware import ModelRequest

__all__ = ["guard"]

Mend = Callable[[Any, Any, Any], Any]
"""Messages, model and system message to what that model may be sent."""

_SEEN, _PLAIN = "_suture_seen", "_suture_plain"


class _Seen(NamedTuple):
    """Messages as they were when they were last found acceptable, and for whom."""

    messages: Any
    length: int
    last: Any
    model: Any

    def is_all(self, messages: Any, model: Any) -> bool:
        """Tell, at a glance, whether nothing has happened to them since."""
        return (
            messages is self.messages
            and model is self.model
            and len(messages) == self.length
            and messages[-1] is self.last
        )


def guard(request: ModelRequest[Any], kinds: dict[type, type], mend: Mend) -> Any:
    """Return a request like `request` whose messages are mended whenever they are read.

    `kinds` remembers the class of such requests for each class of requests.
    """
    kind = type(request)
    if kind not in kinds:
        kinds[kind] = _guarded(kind, mend)
    return kinds[kind](**{field.name: getattr(request, field.name) for field in fields(request) if field.init})


def _guarded(kind: Any, mend: Mend) -> type:
    """Return a class of requests like `kind`, with messages that are mended when they are read.

    A copy is one of them, too. What is pickled is an ordinary request, with messages that are mended.
    """

    def read(request: Any) -> Any:
        own: dict[str, Any] = request.__dict__
        messages, model = own["messages"], own.get("model")
        seen: _Seen | None = own.get(_SEEN)
        if not messages or (seen is not None and seen.is_all(messages, model)):
            return messages
        own["messages"] = mended = mend(messages, model, own.get("system_message"))
        own[_SEEN] = _Seen(mended, len(mended), mended[-1] if mended else None, model)
        return mended

    def write(request: Any, messages: Any) -> None:
        request.__dict__["messages"] = messages

    def reduce(request: Any) -> Any:
        messages = read(request)
        own = {name: value for name, value in request.__dict__.items() if name != _SEEN}
        return _like, (plain, {**own, "messages": messages})

    plain = getattr(kind, _PLAIN, kind)
    made: dict[str, Any] = {
        "messages": property(read, write),
        "__reduce__": reduce,
        "__copy__": _copied,
        "__deepcopy__": _deeply_copied,
        _PLAIN: plain,
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
    }
    return type(kind.__name__, (kind,), made)


def _copied(request: Any) -> Any:
    return _like(type(request), request.__dict__)


def _deeply_copied(request: Any, memo: Any) -> Any:
    return _like(type(request), deepcopy(request.__dict__, memo))


def _like(kind: Any, own: dict[str, Any]) -> Any:
    """Return a request of the class `kind` with these attributes."""
    made = object.__new__(kind)
    made.__dict__.update(own)
    return made
