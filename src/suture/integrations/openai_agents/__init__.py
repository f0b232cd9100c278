"""Suture inside the OpenAI Agents SDK (package `agents`): runs and sessions whose histories never break.

`PatchToolCalls` is a model input filter: `RunConfig(call_model_input_filter=PatchToolCalls())`. `PatchedSession` stands
around a session: `PatchedSession(SQLiteSession("…"))`. Each does its work alone; together they leave nothing out.
"""

from collections.abc import Awaitable
from dataclasses import replace
from inspect import isawaitable
from typing import Any, Unpack

from agents.run import CallModelData, CallModelInputFilter, ModelInputData

from suture.errors import ConfigError
from suture.integrations.guest import Options
from suture.integrations.openai_agents.items import Items
from suture.integrations.openai_agents.session import PatchedSession

__all__ = ["PatchToolCalls", "PatchedSession"]


class PatchToolCalls:
    """A `call_model_input_filter`: whatever a run would send, each of its tool calls has its result.

    It looks at all that is sent, with every step, and stores nothing: the run's items and its session stay as they are.

    Args:
        after: another filter, which goes first; what it leaves is repaired.
        stateful: whether the service keeps the conversation (`previous_response_id`, `conversation_id`). Then results
            may answer calls that are not sent again, and stay as they are. Not given, it is taken to do so where
            nothing that is sent was made by a model.
        options: those of every guest, see `suture.integrations.guest.Options`. Without a `profile` the items suit
            Responses and Chat Completions alike, and ids nearly every provider.

    >>> from agents import RunConfig
    >>> config = RunConfig(call_model_input_filter=PatchToolCalls())
    """

    def __init__(
        self, *, after: CallModelInputFilter | None = None, stateful: bool | None = None, **options: Unpack[Options]
    ) -> None:
        if after is not None and not callable(after):
            raise ConfigError(f"after must be a model input filter, found {type(after).__name__}")
        self._after, self._stateful = after, stateful
        self._items = Items(__name__, **options)

    def __call__(self, data: CallModelData[Any]) -> ModelInputData | Awaitable[ModelInputData]:
        """Return what to send in the place of `data.model_data`; the very same where that is acceptable."""
        if self._after is not None:
            return self._repaired_after(self._after, data)
        return self._repaired(data.model_data, data)

    async def _repaired_after(self, after: CallModelInputFilter, data: CallModelData[Any]) -> ModelInputData:
        left = after(data)
        return self._repaired(await left if isawaitable(left) else left, data)

    def _repaired(self, sent: ModelInputData, data: CallModelData[Any]) -> ModelInputData:
        if not isinstance(sent, ModelInputData) or not isinstance(sent.input, list):  # pyright: ignore[reportUnnecessaryIsInstance] - of another filter
            return sent  # the SDK says what is wrong with it
        repaired = self._items.repair(sent.input, kept=self._stateful, chat=_speaks_chat(data.agent.model))
        return sent if repaired is sent.input else replace(sent, input=repaired)


def _speaks_chat(model: Any) -> bool:
    """Tell whether a model is known to speak Chat Completions, as far as its name or its class says so."""
    name = model if isinstance(model, str) else " ".join([kind.__name__ for kind in type(model).__mro__])
    return any(part in name.lower() for part in ("chatcompletions", "litellm", "any-llm", "anyllm"))
