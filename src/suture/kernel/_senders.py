"""Who tells of models and tools: the senders stand outermost, or where a middleware list puts them."""

from collections.abc import AsyncIterator, Callable
from typing import Any

from suture.events import MessageDelta, MessageFinished, ToolDelta, ToolFinished, ToolStarted
from suture.kernel._awaiting import closing
from suture.kernel._contexts import ModelContext
from suture.kernel._endpoints import join_results
from suture.kernel._middleware import ChatModelAgentMiddleware, EnhancedStreamableEndpoint
from suture.kernel._model import Model, ModelRequest, ModelWrapper
from suture.kernel._scope import Frame, Scope, current_frame
from suture.messages import Delta, TextPart, ToolArgument, ToolContext, ToolResult

__all__ = ["EventSenderModelWrapper", "EventSenderToolWrapper", "ModelSender", "ToolSender"]


def _as_it_is(value: Any) -> Any:
    return value


class ModelSender(ModelWrapper[Any]):
    """Sends what a model streams, and waits while the reader is behind."""

    def __init__(self, inner: Model[Any], scope: Scope) -> None:
        super().__init__(inner)
        self.scope = scope

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        """Pass the stream on, telling of each piece and of the whole."""
        scope, emitter = self.scope, self.scope.emitter
        turn, message_id = scope.turn + 1, request.message_id
        usage = None
        redact = scope.spec.redact or _as_it_is
        async with closing(self.inner.stream(request)) as stream:
            async for item in stream:
                if emitter is not None and isinstance(item, Delta):
                    usage = item.usage or usage
                    if scope.streaming:
                        emitter.send(MessageDelta, turn=turn, message_id=message_id, delta=redact(item))
                        if emitter.is_behind:
                            await emitter.buffer.wait_for_room()
                elif emitter is not None:
                    shown = redact(item)
                    emitter.send(
                        MessageFinished,
                        turn=turn,
                        message_id=message_id,
                        message=shown,
                        text=scope.wire.text(shown),
                        usage=scope.wire.usage(item) or usage,
                    )
                yield item


class ToolSender:
    """Sends the events of one tool call."""

    __slots__ = ("argument", "frame", "place", "redact", "scope")

    def __init__(self, scope: Scope, frame: Frame, argument: str) -> None:
        self.scope, self.frame, self.argument = scope, frame, argument
        self.redact: Callable[[Any], Any] = scope.spec.redact or _as_it_is
        self.place: dict[str, Any] = {
            "turn": frame.turn,
            "index": frame.spot,
            "call_id": frame.call_id,
            "name": frame.tool,
        }

    def started(self) -> None:
        """Tell that the call begins."""
        if self.scope.emitter is not None:
            self.scope.emitter.send(ToolStarted, arguments=self.redact(self.argument), **self.place)

    def piece(self, result: ToolResult) -> None:
        """Tell of a piece of a streamed result."""
        if self.scope.emitter is not None:
            self.scope.emitter.send(ToolDelta, result=self.redact(result), **self.place)

    def finished(self, result: ToolResult, *, directly: bool) -> None:
        """Tell of the whole result."""
        if self.scope.emitter is not None:
            result = self.redact(result)
            text = "\n".join([part.text for part in result.parts if isinstance(part, TextPart)])
            self.scope.emitter.send(
                ToolFinished,
                result=result,
                text=text,
                message_id=f"{self.scope.address}/{self.frame.place}",
                return_directly=directly,
                **self.place,
            )


class EventSenderModelWrapper(ChatModelAgentMiddleware[Any]):
    """Put it into the list of middlewares to send model events from there instead of from outermost.

    >>> EventSenderModelWrapper().sends_model_events
    True
    """

    sends_model_events = True

    def wrap_model(self, model: Model[Any], model_context: ModelContext, /) -> Model[Any]:
        """Send what comes out of the model at this place."""
        del model_context
        return ModelSender(model, current_frame().scope)


class EventSenderToolWrapper(ChatModelAgentMiddleware[Any]):
    """Put it into the list of middlewares to send tool events from there instead of from outermost.

    >>> EventSenderToolWrapper().sends_tool_events
    True
    """

    sends_tool_events = True

    def wrap_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext, /
    ) -> EnhancedStreamableEndpoint:
        """Send what goes in and comes out at this place."""
        del context
        frame = current_frame()

        async def call(argument: ToolArgument, /, **options: Any) -> AsyncIterator[ToolResult]:
            sender = ToolSender(frame.scope, frame, argument.text)
            sender.started()
            pieces: list[ToolResult] = []
            async with closing(endpoint(argument, **options)) as stream:
                async for piece in stream:
                    pieces.append(piece)
                    yield piece
            sender.finished(join_results(pieces), directly=False)

        return call
