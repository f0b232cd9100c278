"""`CompactionMiddleware`: contexts that never overflow, in LangChain's agents and in deepagents.

The steps are those of `suture.Compaction`; this module connects them to LangChain's hooks and to an agent's state.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from itertools import pairwise
from typing import Any

from langchain.agents.middleware.types import AgentMiddleware, ModelRequest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage

from suture._aio import settle
from suture._loops import run_blocking
from suture.integrations.compaction import GuestRequest
from suture.integrations.langchain.reduction import ToolReductionMiddleware, messages_of, replacements, with_update
from suture.middleware import Compaction
from suture.models.windows import context_window
from suture.wires.fields import get

__all__ = ["CompactionMiddleware"]

_CONFIG: Any = {"metadata": {"lc_source": "summarization"}}
"""LangChain's mark for a summariser's tokens, which keeps them out of the agent's stream."""


class CompactionMiddleware(AgentMiddleware[Any, Any, Any]):
    """Keeps requests below a limit, in `create_agent` and in `create_deep_agent`, whatever the history holds.

    It stops as soon as there is room: old tool results are cleared, old thinking is dropped, the oldest rounds are
    summarised (or listed in a digest if no model can do that), and the largest blocks are cut. The shorter history goes
    into the agent's state. If the model refuses a request as too long, it is asked once more with a shorter one.

    Args:
        max_tokens: how many tokens a request may have; by default 80 % of the model's window, if that is known.
        target_tokens: how many it should have after a compaction; by default 60 % of the limit.
        summarizer: a chat model, or a function of the prompt, plain or async; by default the agent's own model.
        backend: where removed content is saved, as in `ToolReductionMiddleware`; the model gets tools that read it.
            Without a backend everything that the user said stays.
        name: its name; "SummarizationMiddleware" replaces deepagents' own.
        settings: other settings of `suture.Compaction`, such as `keep_recent_rounds`.

    >>> CompactionMiddleware(100_000).name
    'CompactionMiddleware'
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        target_tokens: int | None = None,
        summarizer: BaseChatModel | Callable[[str], str | Awaitable[str]] | None = None,
        *,
        backend: Any = None,
        name: str = "CompactionMiddleware",
        **settings: Any,
    ) -> None:
        super().__init__()
        self._compaction = Compaction(max_tokens, target_tokens, **settings)
        self._summarizer, self._name = summarizer, name
        reader, root = self._compaction.read_file_tool_name, self._compaction.root_dir
        self._files: Any = ToolReductionMiddleware(
            backend, skip_truncation=True, skip_clear=True, root_dir=root, read_file_tool_name=reader
        )
        self._values: dict[str, dict[str, Any]] = {}
        """By model: its last summaries, and the limit that its provider named."""

    @property
    def name(self) -> str:
        """The name of the middleware."""
        return self._name

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let the reading tools read what this conversation has saved."""
        return self._files.wrap_tool_call(request, handler)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Let the reading tools read what this conversation has saved."""
        return await self._files.awrap_tool_call(request, handler)

    def wrap_model_call(self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Any]) -> Any:
        """Send a history that is not too long."""

        def send(request: ModelRequest[Any]) -> Any:
            asked = self._ask(request, waits=False)
            made = run_blocking(asked.shorten()) if asked.is_long() else None
            try:
                return _with_state_update(request, made, handler(_with_messages(request, made)))
            except ContextOverflowError as refusal:
                made = run_blocking(asked.shorten_refused(refusal))
            return _with_state_update(request, made, handler(_with_messages(request, made)))

        return self._files.wrap_model_call(request, send)

    async def awrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], Awaitable[Any]]
    ) -> Any:
        """Send a history that is not too long."""

        async def send(request: ModelRequest[Any]) -> Any:
            asked = self._ask(request, waits=True)
            made = await asked.shorten() if asked.is_long() else None
            try:
                return _with_state_update(request, made, await handler(_with_messages(request, made)))
            except ContextOverflowError as refusal:
                made = await asked.shorten_refused(refusal)
            return _with_state_update(request, made, await handler(_with_messages(request, made)))

        return await self._files.awrap_model_call(request, send)

    def _ask(self, request: ModelRequest[Any], *, waits: bool) -> GuestRequest:
        """Return a request with everything that its compaction needs."""
        model, system = request.model, request.system_message
        book = self._files._open(request, request.messages, waits=waits)  # noqa: SLF001 - its other half
        name = str(getattr(model, "model_name", "") or getattr(model, "model", ""))
        window: Any = get(getattr(model, "profile", None), "max_input_tokens")
        return GuestRequest(
            self._compaction,
            "langchain",
            request.messages,
            system="" if system is None else str(system.text),
            tool_infos=book.tally(None).infos_of(request.tools),
            values=self._values.setdefault(name, {}),
            window=window if isinstance(window, int) and window else context_window(name),
            summarize=self._summarize_with(model, waits=waits),
            backend=book.backend_of(""),
            root=book.root,
        )

    def _summarize_with(self, model: BaseChatModel, *, waits: bool) -> Callable[[str], Awaitable[str]]:
        """Return a function that asks the summariser."""
        chosen: Any = model if self._summarizer is None else self._summarizer

        async def summarize(prompt: str) -> str:
            if not isinstance(chosen, BaseChatModel):
                return await settle(chosen(prompt))
            asked: Any = [HumanMessage(prompt)]
            work = chosen.ainvoke(asked, _CONFIG) if waits else asyncio.to_thread(chosen.invoke, asked, _CONFIG)
            reply: Any = await work
            if reply.tool_calls:
                raise RuntimeError("it called a tool")
            return str(reply.text)

        return summarize


def _with_messages(request: ModelRequest[Any], made: Sequence[Any] | None) -> ModelRequest[Any]:
    return request if made is None else request.override(messages=list(made))


def _with_state_update(request: ModelRequest[Any], made: Sequence[Any] | None, response: Any) -> Any:
    """Return the model's response with the update of the state, if the state holds the request's messages."""
    before, state = request.messages, messages_of(request.state)
    is_same = len(before) == len(state) and all(one is other for one, other in zip(before, state, strict=True))
    if made is None or len(made) > len(before) or not is_same or not all(message.id for message in before):
        return response
    return with_update(response, _replace(before, made))


def _replace(before: Sequence[BaseMessage], after: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return the update that turns a state with `before` into one with `after`, which must not be longer.

    In a state, a new message can only take the place of one that is removed. So a message that stays keeps its place,
    unless more new ones have to go between it and the next than there are places.

    >>> old = [HumanMessage("a", id="1"), HumanMessage("b", id="2"), HumanMessage("c", id="3")]
    >>> [(message.type, message.id) for message in _replace(old, [old[0], HumanMessage("so far"), old[2]])]
    [('human', '2')]
    """
    at = {id(message): place for place, message in enumerate(after)}
    stays = [(-1, -1)]
    for old, message in enumerate(before):
        new, (last_old, last_new) = at.get(id(message)), stays[-1]
        if new is not None and new - last_new <= old - last_old and len(after) - new <= len(before) - old:
            stays.append((old, new))
    update: list[BaseMessage] = []
    for (old, new), (next_old, next_new) in pairwise([*stays, (len(before), len(after))]):
        update += replacements(before[old + 1 : next_old], after[new + 1 : next_new])
    return update
