"""Who tells of models and tools: the senders stand outermost, or where a middleware list puts them."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any

from suture.events import Event, MessageDelta, MessageFinished, ToolDelta, ToolFinished, ToolStarted
from suture.kernel._awaiting import close, closing
from suture.kernel._contexts import ModelContext
from suture.kernel._guard import STREAMING
from suture.kernel._middleware import ChatModelAgentMiddleware, EnhancedStreamableEndpoint
from suture.kernel._model import Model, ModelRequest, ModelWrapper
from suture.kernel._results import ends_run, join_results
from suture.kernel._scope import Frame, Scope, current_frame
from suture.messages import Delta, TextPart, TokenUsage, ToolArgument, ToolContext, ToolResult

__all__ = ["EventSenderModelWrapper", "EventSenderToolWrapper", "ModelSender", "ToolSender"]


class ModelSender(ModelWrapper[Any]):
    """Sends what a model streams, and waits while the reader is behind."""

    def __init__(self, inner: Model[Any], scope: Scope) -> None:
        super().__init__(inner)
        self.scope = scope

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        """Pass the stream on, telling of each piece and of the whole: the last message that comes."""
        wire = self.scope.wire
        whole, usage = None, None
        stream = self.inner.stream(request)
        try:
            async for item in stream:
                if isinstance(item, Delta):
                    usage = item.usage or usage
                    await self._tell_piece(request, item)
                    yield item
                    continue
                if whole is not None:
                    for piece in wire.deltas(whole):
                        await self._tell_piece(request, piece)
                    yield whole
                whole = item
        except BaseException as error:
            await close(stream)
            if whole is not None and isinstance(error, Exception):
                for piece in wire.deltas(whole):
                    await self._tell_piece(request, piece)
                yield whole
            raise
        if whole is not None:
            self._tell_whole(request, whole, usage)
            yield whole

    async def _tell_piece(self, request: ModelRequest[Any], piece: Delta) -> None:
        scope, emitter = self.scope, self.scope.emitter
        if emitter is not None and scope.streaming:
            shown = scope.spec.shown(piece)
            emitter.send(MessageDelta, turn=scope.turn + 1, message_id=request.message_id, delta=shown)
            if emitter.is_behind:
                await emitter.buffer.wait_for_room()

    def _tell_whole(self, request: ModelRequest[Any], whole: Any, usage: TokenUsage | None) -> None:
        scope = self.scope
        shown = scope.spec.shown(whole)
        if scope.emitter is not None:
            scope.emitter.send(
                MessageFinished,
                turn=scope.turn + 1,
                message_id=request.message_id,
                message=shown,
                text=scope.wire.text(shown),
                usage=scope.wire.usage(whole) or usage,
            )


class ToolSender:
    """Sends the events of one tool call, from wherever it stands. The end is told by the call itself."""

    __slots__ = ("_place", "_shown", "_streams", "argument", "frame", "has_started", "shown")

    def __init__(self, scope: Scope, frame: Frame, argument: str) -> None:
        self.frame, self.argument = frame, argument
        self.has_started = False
        self.shown: ToolResult | None = None
        """The result as it was where the sender stands; the call's own if not given."""
        self._shown = scope.spec.shown
        tool = scope.tools.get(frame.tool)
        self._streams = scope.streaming and tool is not None and tool.kind in STREAMING
        self._place: dict[str, Any] = {
            "turn": frame.turn,
            "index": frame.spot,
            "call_id": frame.call_id,
            "name": frame.tool,
        }

    def _send(self, kind: type[Event], **fields: Any) -> None:
        emitter = self.frame.scope.emitter
        if emitter is not None:
            emitter.send(kind, **self._place, **fields)

    def started(self) -> None:
        """Tell that the call begins."""
        self.has_started = True
        self._send(ToolStarted, arguments=self._shown(self.argument))

    def piece(self, result: ToolResult) -> None:
        """Tell of a piece of a streamed result."""
        if self._streams:
            self._send(ToolDelta, result=self._shown(result))

    def finished(self, result: ToolResult, *, directly: bool) -> None:
        """Tell of the whole result: once, and only if the beginning was told."""
        if self.has_started:
            self.has_started = False
            result = self._shown(self.shown or result)
            text = "\n".join([part.text for part in result.parts if isinstance(part, TextPart)])
            message_id = f"{self.frame.scope.address}/{self.frame.place}"
            self._send(ToolFinished, result=result, text=text, message_id=message_id, return_directly=directly)


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
        sender: ToolSender | None = current_frame().sender
        return endpoint if sender is None else partial(_told_here, sender, endpoint)


async def _told_here(
    sender: ToolSender, endpoint: EnhancedStreamableEndpoint, argument: ToolArgument, /, **options: Any
) -> AsyncIterator[ToolResult]:
    sender.argument = argument.text
    sender.started()
    pieces: list[ToolResult] = []
    async with closing(endpoint(argument, **options)) as stream:
        async for piece in stream:
            pieces.append(piece)
            sender.piece(piece)
            yield piece
    sender.shown = join_results(pieces)
    if not ends_run(sender.frame.scope, sender.frame.tool, sender.shown):
        sender.finished(sender.shown, directly=False)
