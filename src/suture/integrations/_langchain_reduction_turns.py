"""The history before a model call: is there too much of it, and what is sent and kept in its place."""

import logging
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, cast

from langchain.agents.middleware.types import ExtendedModelResponse, ModelRequest, ModelResponse
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.types import Command

from suture.errors import OffloadError
from suture.integrations._langchain_backends import BackendOf
from suture.integrations._langchain_reduction_book import Conversation, Conversations
from suture.integrations._langchain_reduction_results import Results
from suture.integrations._langchain_reduction_state import messages_of, state_update
from suture.integrations._langchain_wire import WIRE
from suture.kernel import settled
from suture.messages import History, TokenUsage, ToolInfo
from suture.middleware.reducing import Question, Reduced, judge, reduce_history
from suture.reduction import Settings
from suture.tokens import UsageCounter

__all__ = ["Case", "Ready", "Turns"]

_LOG = logging.getLogger("suture.integrations.langchain")
_TOOLS = 256
"""How many tools are kept in mind."""


class Case(NamedTuple):
    """A request whose history is to be reduced."""

    request: ModelRequest[Any]
    book: Conversation
    question: Question


class Ready(NamedTuple):
    """A request that can be sent, and what is to change in the state once it was."""

    request: ModelRequest[Any]
    update: list[BaseMessage]

    def answered(self, response: Any) -> Any:
        """Return what the model gave, together with what is to change in the state."""
        if not self.update:
            return response
        whole: Any = ModelResponse(result=[response]) if isinstance(response, AIMessage) else response
        return ExtendedModelResponse(model_response=whole, command=Command(update={"messages": self.update}))


class Turns:
    """Reduces the histories of one middleware."""

    def __init__(self, settings: Settings, results: Results, on_backend_error: Literal["raise", "continue"]) -> None:
        self._settings, self._results, self._on_backend_error = settings, results, on_backend_error
        self.conversations = Conversations(settings)
        """The conversations that this middleware is in."""
        self._infos: dict[int, tuple[Any, Any]] = {}

    def look(self, request: ModelRequest[Any]) -> Case | None:
        """Look at what is new in a request; return it only if there is too much of its history."""
        settings = self._settings
        if not request.messages or not (settings.truncates_any or settings.clears_any):
            return None
        book = self.conversations.take(request.messages, messages_of(request.state))
        question = self._question(request, book)
        if question.clears or question.shorten is not None or self._results.are_unsaved(request.messages):
            return Case(request, book, question)
        self.conversations.put_back(book)
        return None

    def _question(self, request: ModelRequest[Any], book: Conversation) -> Question:
        settings, history = self._settings, book.history
        infos = self._infos_of(request.tools) if settings.clears_any else []
        usage = _last_usage(history) if isinstance(settings.token_counter, UsageCounter) else None
        return judge(Question(WIRE, history, infos), settings, book, usage)

    async def reduce(self, case: Case, backend_of: BackendOf) -> Ready:
        """Reduce a history, and save what that takes out of it. Nothing has changed if saving fails."""
        request, book, question = case
        unsaved = self._results.are_unsaved(request.messages)
        try:
            if unsaved:
                book.history = History(await self._results.saved(request.messages, book, backend_of))
                question = self._question(request, book)
            reduced = await reduce_history(question, self._settings, book, backend_of)
        except OffloadError as error:
            if self._on_backend_error == "raise":
                raise
            _LOG.warning("%s; the history stays as it is", error)
            return Ready(request, [])
        if reduced is not None:
            book.history = reduced.history
            for save in reduced.plan.saves:
                book.note_written(save.path)
        self.conversations.put_back(book)
        if reduced is None and not unsaved:
            return Ready(request, [])
        messages = book.history[:]
        update = state_update(request.messages, messages, messages_of(request.state))
        await self._after(request, messages, reduced)
        return Ready(request.override(messages=messages), update)

    async def _after(self, request: ModelRequest[Any], messages: Sequence[Any], reduced: Reduced | None) -> None:
        tell = self._settings.clear_post_process
        if tell is not None and reduced is not None and reduced.cleared:
            await settled(tell({**request.state, "messages": list(messages)}))

    def _infos_of(self, tools: Sequence[Any]) -> list[Any]:
        """Return what a model is told of each tool; of one that was met before the very same object."""
        return [self._info_of(tool) for tool in tools]

    def _info_of(self, tool: Any) -> Any:
        known = self._infos.get(id(tool))
        if known is not None:
            return known[1]
        if len(self._infos) >= _TOOLS:
            self._infos.clear()
        info = _read_info(tool)
        self._infos[id(tool)] = tool, info
        return info


def _read_info(tool: Any) -> Any:
    if isinstance(tool, dict):
        return cast("Any", tool)
    try:
        told = convert_to_openai_tool(tool)["function"]
    except Exception:  # noqa: BLE001 - a tool that cannot be described counts by its name
        return ToolInfo(str(getattr(tool, "name", "")), str(getattr(tool, "description", "")))
    return ToolInfo(told["name"], told.get("description", ""), told.get("parameters", {}))


def _last_usage(messages: Sequence[Any]) -> TokenUsage | None:
    """Return what the provider reported with its last reply."""
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            usage = message.usage_metadata
            if usage is None:
                return None
            return TokenUsage(prompt_tokens=usage["input_tokens"], completion_tokens=usage["output_tokens"])
    return None
