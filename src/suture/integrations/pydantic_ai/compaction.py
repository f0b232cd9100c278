"""`Compaction` for pydantic-ai: a capability that keeps what is sent below a limit, whatever the history holds."""

from collections.abc import Awaitable, Callable
from typing import Any

from pydantic_ai import ModelRequestContext, RunContext, exceptions
from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.direct import model_request
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model

from suture._aio import settle
from suture.integrations.compaction import GuestRequest
from suture.messages import ToolInfo
from suture.middleware import Compaction as _Compaction
from suture.models.windows import context_window

__all__ = ["Compaction"]

_Refusal: Any = getattr(exceptions, "ModelContextWindowExceededError", ())
_Retry: Any = getattr(exceptions, "RetryModelRequest", None)
"""Releases before 2.66 have neither: there a refusal ends the run."""


class Compaction(AbstractCapability[Any]):
    """Keeps what an agent sends below a limit: a ladder, left as soon as there is room.

    Old tool results are cleared, old thinking is dropped, the oldest rounds are summarised, or told in a digest where
    no model can, and the largest blocks are cut. The run goes on with what is left, and `all_messages` gives it back.
    A model that says "too long" is asked once more, with less.

    Args:
        max_tokens: how many tokens a request may have; 80 % of what the model takes if not given and that is known.
        target_tokens: how many it should have after a compaction; 60 % of the limit.
        summarizer: a model or its name, or a function of the prompt, plain or async; the agent's own model if none.
        backend: where what leaves the history is saved: anything with `write(path, content)`, which a tool of the
            agent's own called `read_file_tool_name` reads. Without one all that the user said stays.
        settings: further ones of `suture.Compaction`, such as `keep_recent_rounds`.

    >>> from pydantic_ai import Agent
    >>> from pydantic_ai.models.test import TestModel
    >>> agent = Agent(TestModel(custom_output_text="ok"), capabilities=[Compaction(100_000)])
    >>> agent.run_sync("hi").output
    'ok'
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        target_tokens: int | None = None,
        summarizer: Model | str | Callable[[str], str | Awaitable[str]] | None = None,
        **settings: Any,
    ) -> None:
        self._compaction, self._summarizer = _Compaction(max_tokens, target_tokens, **settings), summarizer
        self._values: dict[str, dict[str, Any]] = {}
        """By the model: its last summaries, and the limit that its provider named."""

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send a history that is not too long, and go on with it."""
        if getattr(request_context, "attempt", 1) > 1 and len(ctx.messages) < len(request_context.messages):
            request_context.messages = list(ctx.messages)  # what was refused was made shorter
        asked = self._ask(ctx, request_context)
        made = await asked.shorten() if asked.is_long() else None
        if made is not None:
            _keep(ctx, request_context, made)
        return request_context

    if not hasattr(AbstractCapability, "prepare_model_request"):
        before_model_request = prepare_model_request  # releases before 2.66 make one attempt, and have one hook

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Make a history shorter that a provider refused as too long, and have it sent once more."""
        if _Retry is None or not isinstance(error, _Refusal) or getattr(request_context, "attempt", 2) > 1:
            raise error
        _keep(ctx, request_context, await self._ask(ctx, request_context).shorten_refused(error))
        raise _Retry

    def _ask(self, ctx: RunContext[Any], request: ModelRequestContext) -> GuestRequest:
        """Return a request with all that its compaction depends on."""
        told, model = request.model_request_parameters, request.model
        parts = getattr(told, "instruction_parts", None) or ()
        tools = [*told.function_tools, *told.output_tools]
        return GuestRequest(
            self._compaction,
            "pydantic-ai",
            request.messages,
            system="\n".join(str(part.content) for part in parts),
            tool_infos=[ToolInfo(tool.name, tool.description or "", tool.parameters_json_schema) for tool in tools],
            values=self._values.setdefault(model.model_name, {}),
            window=context_window(model.model_name),
            summarize=lambda prompt: self._summarize(model, prompt),
            backend=self._compaction.backend,
            root=self._compaction.root_dir or f"/{ctx.conversation_id or ctx.run_id}",
        )

    async def _summarize(self, model: Model, prompt: str) -> str:
        chosen: Any = model if self._summarizer is None else self._summarizer
        if callable(chosen):
            return str(await settle(chosen(prompt)))
        reply = await model_request(chosen, [ModelRequest.user_text_prompt(prompt)])
        if reply.tool_calls:
            raise RuntimeError("it called a tool")
        return reply.text or ""


def _keep(ctx: RunContext[Any], request: ModelRequestContext, made: list[ModelMessage]) -> None:
    """Send these messages, and go on with them unless the run holds other ones than the request."""
    before = request.messages
    if len(before) == len(ctx.messages) and all(one is other for one, other in zip(before, ctx.messages, strict=True)):
        ctx.messages[:] = made
    request.messages = made
