"""`suture.Compaction` for guests: one request at a time, with the framework's own model and files."""

from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

from suture._aio import settle
from suture.errors import ContextLengthError, read_length
from suture.kernel import ChatModelAgentState, ModelContext
from suture.messages import History, ToolInfo
from suture.middleware import Compaction


class GuestRequest:
    """One request of a guest's agent, which is kept below a limit.

    Args:
        compaction: the settings; its summariser, backend and root are replaced by those of the request.
        values: what is remembered between requests: the last summaries, and the limit that a provider named.
        window: how many tokens the model takes, if that is known.
        summarize: asks the model of the request, or another.

    >>> asked = [{"role": "user", "content": "Hello?"}]
    >>> GuestRequest(Compaction(100), "openai-chat", asked).is_long()
    False
    """

    def __init__(  # noqa: PLR0913 - all that a request is made of
        self,
        compaction: Compaction,
        wire: str,
        messages: Sequence[Any],
        *,
        system: str = "",
        tool_infos: Sequence[ToolInfo] = (),
        values: MutableMapping[str, Any] | None = None,
        window: int | None = None,
        summarize: Callable[[str], Awaitable[str]] | None = None,
        backend: Any = None,
        root: str | None = None,
    ) -> None:
        self._compaction = replace(compaction, summarizer=summarize, backend=backend, root_dir=root)
        self._compaction.outside.values = {} if values is None else values
        self._compaction.outside.model = SimpleNamespace(context_window=window)
        self._context = ModelContext(wire=wire, instruction=system)
        self._state: ChatModelAgentState[Any] = ChatModelAgentState(
            messages=History(messages), tool_infos=tuple(tool_infos)
        )
        self._work: Any = None

    def is_long(self) -> bool:
        """Return whether the request is over the limit."""
        self._work = self._compaction.before_model_rewrite_state(self._state, self._context)
        return self._work is not None

    async def shorten(self) -> list[Any] | None:
        """Return shorter messages for a request that is over the limit; `None` if nothing changes."""
        return self._take(await settle(self._work))

    async def shorten_refused(self, refusal: Exception) -> list[Any]:
        """Return shorter messages for a request that was refused as too long; raise the refusal if there are none."""
        length = read_length(str(refusal))
        if length is not None and length.is_by_reply:
            raise refusal
        error = ContextLengthError(str(refusal))
        made = self._take(await self._compaction.shorten(self._state, self._context, error))
        if made is None:
            raise refusal
        return made

    def _take(self, made: ChatModelAgentState[Any] | None) -> list[Any] | None:
        if made is None:
            return None
        self._state = made
        return list(made.messages)
