"""What a tool gave, when it comes: text that is too long is saved, and a notice goes on in its place."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from langchain_core.messages import AIMessage, ToolMessage

from suture.errors import OffloadError
from suture.integrations._langchain_backends import BackendOf
from suture.integrations._langchain_reduction_book import Conversation
from suture.integrations._langchain_reduction_state import result_messages, with_messages
from suture.integrations._langchain_wire import WIRE
from suture.messages import ToolArgument, ToolContext, ToolResult
from suture.middleware.reducing import Notebook, Truncating
from suture.reduction import SAVED, Settings, mark_saved, text_length
from suture.wires import Call, ResultEdit, argument_json

__all__ = ["Results"]

_UNSAVED = "_reduction_mw_unsaved"
"""The key in `response_metadata` of a result whose handler wants it saved, which has not worked so far."""


class Results:
    """Truncates the results of tool calls."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._asks = any(config.trunc_handler is not None for config in settings.tool_config.values())

    def is_due(self, given: Any, call: Mapping[str, Any]) -> bool:
        """Tell at a glance whether anything is to be done to what a call gave; a tool's own handler is always asked."""
        messages = [given] if isinstance(given, ToolMessage) else result_messages(given)
        return any(self._is_due(message, call) for message in messages)

    def _is_due(self, message: ToolMessage, call: Mapping[str, Any]) -> bool:
        if SAVED in message.response_metadata:
            return True
        settings, name = self._settings, _name_of(message, call)
        if not settings.truncates(name):
            return False
        return settings.config_of(name).trunc_handler is not None or _length(message) > settings.max_length_for_trunc

    async def shortened(self, given: Any, call: Mapping[str, Any], book: Conversation, backend_of: BackendOf) -> Any:
        """Return what a call gave with all that is too long in it replaced; what cannot be saved stays whole."""
        made: dict[int, ToolMessage] = {}
        for message in result_messages(given):
            if self._is_due(message, call):
                made[id(message)], _ = await self._shorten(_unmarked(message), call, book, backend_of)
        return with_messages(given, made)

    def are_unsaved(self, messages: Sequence[Any]) -> bool:
        """Tell whether results of the last turn are yet to be saved, as their handlers want."""
        return self._asks and any(_UNSAVED in message.response_metadata for message in _last_results(messages))

    async def saved(self, messages: Sequence[Any], book: Conversation, backend_of: BackendOf) -> list[Any]:
        """Return `messages` with those results saved that their handlers want saved; raise what keeps that from it."""
        turn = next((each for each in reversed(messages) if isinstance(each, AIMessage)), None)
        calls = {call.id: call for call in WIRE.view(turn).calls} if turn is not None else {}
        made: dict[int, ToolMessage] = {}
        for message in _last_results(messages):
            if _UNSAVED in message.response_metadata:
                found = calls.get(message.tool_call_id, Call(message.tool_call_id, message.name or ""))
                call = {"id": found.id, "name": found.name, "args": found.arguments}
                made[id(message)], failure = await self._shorten(_unmarked(message), call, book, backend_of)
                if failure is not None:
                    raise failure
        return [made.get(id(message), message) for message in messages]

    async def _shorten(
        self, message: ToolMessage, call: Mapping[str, Any], book: Conversation, backend_of: BackendOf
    ) -> tuple[ToolMessage, OffloadError | None]:
        """Return what takes the place of a message, and what kept it from being saved."""
        name = _name_of(message, call)
        parts = WIRE.result_parts(WIRE.view(message).results[0])
        if parts is None or not self._settings.truncates(name):
            return message, None
        failures: list[OffloadError] = []

        def fail(_: Notebook, error: OffloadError) -> None:
            failures.append(error)

        mine = message.tool_call_id == call["id"]
        argument = ToolArgument(argument_json(call.get("args") or {}) if mine else "{}")
        result = ToolResult(tuple(parts), is_error=message.status == "error")
        truncating = Truncating(self._settings, book, backend_of, fail)
        book.noted = None
        shorter = await truncating.whole(ToolContext(name, message.tool_call_id), argument, result)
        if shorter is not None:
            extra = mark_saved(book.noted) if book.noted is not None else {}
            return cast("ToolMessage", WIRE.edit(message, {}, {0: ResultEdit(parts=shorter.parts, extra=extra)})), None
        failure = failures[0] if failures else None
        if failure is not None and self._settings.config_of(name).trunc_handler is not None:
            message = cast("ToolMessage", WIRE.with_extra(message, {_UNSAVED: True}))
        return message, failure


def _name_of(message: ToolMessage, call: Mapping[str, Any]) -> str:
    """Return which tool a message is of: of the call at hand, unless it answers another."""
    return str(call["name"]) if message.tool_call_id == call["id"] else message.name or ""


def _length(message: ToolMessage) -> int:
    content: Any = message.content
    return (
        len(content)
        if isinstance(content, str)
        else text_length(WIRE.result_parts(WIRE.view(message).results[0]) or ())
    )


def _unmarked(message: ToolMessage) -> ToolMessage:
    """Return a message without marks that are not a tool's to give."""
    marks: dict[str, Any] = message.response_metadata
    if SAVED not in marks and _UNSAVED not in marks:
        return message
    kept = {key: value for key, value in marks.items() if key not in {SAVED, _UNSAVED}}
    return message.model_copy(update={"response_metadata": kept})


def _last_results(messages: Sequence[Any]) -> list[ToolMessage]:
    """Return the results behind the last turn."""
    found: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage):
            found.append(message)
    return found[::-1]
