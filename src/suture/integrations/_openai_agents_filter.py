"""`PatchToolCalls`: a model input filter of the OpenAI Agents SDK."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from inspect import isawaitable
from typing import Any

from agents.run import CallModelData, CallModelInputFilter, ModelInputData

from suture.errors import ConfigError
from suture.integrations._openai_agents_items import Generator, Items, Orphans
from suture.profiles import Profile

__all__ = ["PatchToolCalls"]


class PatchToolCalls:
    """A `call_model_input_filter`: whatever a run would send, each of its tool calls has its result.

    It looks at all that is sent, with every step, and stores nothing: the run's items and its session stay as they are.
    A step that only adds costs a look at what is new.

    Args:
        after: another filter, which goes first; what it leaves is mended.
        profile: whose rules hold, if only one server's need to. Not given, the items suit Responses and Chat
            Completions alike.
        stateful: whether the service keeps the conversation (`previous_response_id`, `conversation_id`). Then results
            may answer calls that are not sent again, and stay as they are. Not given, it is taken to do so where
            nothing that is sent was made by a model.
        orphans: `text` keeps a result without a call as user text; `drop` removes it.
        generator: `(name, call_id)` or `(name, call_id, cause=…)` to the text that stands for a missing result; an
            empty text means the built-in one. It may be asked for the same call again.
        is_placeholder: tells from a result's text whether it only stands for a real one.
        language: of the texts, `en` or `zh`; the one in force if not given.

    >>> from agents import RunConfig
    >>> config = RunConfig(call_model_input_filter=PatchToolCalls())
    """

    def __init__(
        self,
        *,
        after: CallModelInputFilter | None = None,
        profile: str | Profile | None = None,
        stateful: bool | None = None,
        orphans: Orphans = "text",
        generator: Generator | None = None,
        is_placeholder: Callable[[str], bool] | None = None,
        language: str | None = None,
    ) -> None:
        if after is not None and not callable(after):
            raise ConfigError(f"after must be a model input filter, found {type(after).__name__}")
        self._after, self._stateful = after, stateful
        self._items = Items(
            profile=profile, orphans=orphans, generator=generator, is_placeholder=is_placeholder, language=language
        )

    def __call__(self, data: CallModelData[Any]) -> ModelInputData | Awaitable[ModelInputData]:
        """Return what to send in the place of `data.model_data`; the very same where that is acceptable."""
        return self._mend(data.model_data) if self._after is None else self._mend_after(self._after, data)

    async def _mend_after(self, after: CallModelInputFilter, data: CallModelData[Any]) -> ModelInputData:
        left = after(data)
        return self._mend(await left if isawaitable(left) else left)

    def _mend(self, sent: ModelInputData) -> ModelInputData:
        if not isinstance(sent, ModelInputData) or not isinstance(sent.input, list):  # pyright: ignore[reportUnnecessaryIsInstance] - of another filter
            return sent  # the SDK says what is wrong with it
        mended = self._items.mend(sent.input, held=self._stateful)
        return sent if mended is sent.input else replace(sent, input=mended)
