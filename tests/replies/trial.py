"""A row's bytes, read by an agent with our model and the provider's own SDK, over real HTTP."""

import json
from typing import Any

from suture import ChatModelAgent, errors
from suture.events import MessageDelta, MessageFinished
from suture.messages import ResponseMeta, TokenUsage, ToolInfo
from tests.models.providers import make_model
from tests.replies.row import Reading, Row, Usage, as_call

_KINDS: tuple[tuple[type[Exception], tuple[str, ...]], ...] = (
    (errors.ContextLengthError, ("context_length",)),
    (errors.ContextOverflowError, ("context_length",)),
    (errors.RateLimitError, ("rate_limit", "overloaded")),
    (errors.ModelAuthError, ("auth",)),
    (errors.ModelRequestError, ("request", "content_filter")),
    (errors.ModelServerError, ("server", "overloaded")),
    (errors.StreamCutError, ("cut",)),
    (getattr(errors, "ModelReplyError", errors.ModelError), ("slip",)),
)
"""What an error may mean, by its class; the first that fits counts."""


class _Tool:
    """A tool that notes what it was called with."""

    def __init__(self, name: str, ran: list[tuple[str, Any]]) -> None:
        self.info = ToolInfo(name, "Do it.", {"type": "object", "properties": {}, "additionalProperties": True})
        self.ran = ran

    async def invoke(self, arguments: str, **_: Any) -> str:
        self.ran.append((self.info.name, json.loads(arguments or "{}")))
        return "well done"


async def read(row: Row, url: str, *, streaming: bool) -> Reading:
    """Ask the row's server at `url` once with an agent, and return what it got."""
    ran: list[tuple[str, Any]] = []
    model = make_model(row.wire, url, streaming=streaming)
    agent = ChatModelAgent(model=model, tools=[_Tool(name, ran) for name in row.tools], model_retry_config=None)
    finished: list[MessageFinished] = []
    text = ""
    try:
        async with agent.stream("hi") as run:
            async for event in run:
                if isinstance(event, MessageFinished):
                    finished.append(event)
                elif isinstance(event, MessageDelta) and not finished:
                    text += event.delta.text
            result = await run.result()
            text = finished[0].text if len(finished) > 1 else result.output
    except errors.SutureError as error:
        if not finished:
            kinds = next((kinds for kind, kinds in _KINDS if isinstance(error, kind)), (type(error).__name__,))
            return Reading(text, ran=ran, error=str(error), kinds=kinds, retryable=getattr(error, "retryable", None))
        text = finished[0].text  # the reply was read; what it refers to may be missing in a conversation of one turn
    first = finished[0].message
    meta = first.response_meta
    usage = (meta and meta.usage) or TokenUsage()
    return Reading(
        text,
        [as_call(call.name, call.arguments, call.id) for call in first.tool_calls],
        ran,
        _reason(meta),
        Usage(usage.prompt_tokens, usage.completion_tokens, usage.cached_tokens, usage.reasoning_tokens),
    )


def _reason(meta: ResponseMeta | None) -> str:
    """Return why a reply ended; a refusal is a kind of filter, which the provider's own word tells."""
    if meta is None:
        return ""
    own = meta.extension.get("finish_reason")
    return "refusal" if own == "refusal" else meta.finish_reason
