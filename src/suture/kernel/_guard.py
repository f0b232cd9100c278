"""What stands directly around a tool: approval, callbacks, retries, timeout. Written once, for tools that stream.

A tool that does not stream is one that streams a single piece.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any

from suture.kernel._awaiting import closing
from suture.kernel._interrupt import Approval, ask
from suture.kernel._policies import Callbacks, Component
from suture.kernel._results import join_results, text_result
from suture.kernel._scope import Frame
from suture.kernel._telling import tell
from suture.messages import ToolArgument, ToolContext
from suture.repair import Cause, placeholder_text
from suture.tools import Tool, ToolArgumentsError

__all__ = ["STREAMING", "Rejected", "guard", "needs_no_guard"]

STREAMING = frozenset(("streamable", "enhanced_streamable"))
_END = object()


class Rejected(Exception):
    """The call was not approved; its text tells the model."""


def guard(tool: Tool[..., Any], context: ToolContext, frame: Frame) -> Callable[..., Any]:
    """Return the tool's own endpoint with all that stands directly around it."""
    scope = frame.scope
    callbacks = scope.spec.callbacks
    told = callbacks if callbacks is not None and "tool" in callbacks.kinds else None
    endpoint = partial(tool.endpoint, context=context, dependencies=scope.dependencies)
    if told is None and needs_no_guard(tool):
        return endpoint
    guarded = _Guard(tool, endpoint, frame, told)
    return guarded.stream if tool.kind in STREAMING else guarded.single


def needs_no_guard(tool: Tool[..., Any]) -> bool:
    """Tell whether a tool is simply run: nothing is asked, timed or tried again."""
    return not tool.requires_approval and tool.timeout is None and not tool.retry


class _Guard:
    """One call of one tool."""

    def __init__(
        self, tool: Tool[..., Any], endpoint: Callable[..., Any], frame: Frame, told: Callbacks | None
    ) -> None:
        self.tool, self.endpoint, self.frame, self.told = tool, endpoint, frame, told
        self.about = Component(kind="tool", name=tool.name, call_id=frame.call_id)
        self._may_still_run = False
        """Whether an attempt was given up that nothing could stop: another one would run beside it."""

    async def single(self, argument: Any, /, **options: Any) -> Any:
        """Run a tool that does not stream."""
        value: Any = None
        async with closing(self.stream(argument, **options)) as stream:
            async for piece in stream:
                value = piece
        return value

    async def stream(self, argument: Any, /, **options: Any) -> AsyncIterator[Any]:
        """Run the tool: asked for first, told of, bounded in time, tried again while nothing has come of it."""
        tool, told = self.tool, self.told
        given = ToolArgument(argument) if isinstance(argument, str) else argument
        if tool.requires_approval:
            self._approve(given.text)
        if told is not None:
            await tell(told, "on_start", self.about, given)
        pieces: list[Any] = []
        attempt = 0
        while True:
            try:
                async with closing(self._in_time(argument, options)) as stream:
                    async for piece in stream:
                        pieces.append(text_result(piece) if isinstance(piece, str) else piece)
                        yield piece
                break
            except Exception as error:
                attempt += 1
                self.frame.scope.check_stop()
                hopeless = pieces or self._may_still_run or isinstance(error, ToolArgumentsError)
                if attempt <= tool.retry and not hopeless:
                    continue
                if told is not None:
                    await tell(told, "on_error", self.about, error)
                raise
        if told is not None:
            await tell(told, "on_end", self.about, join_results(pieces))

    async def _in_time(self, argument: Any, options: dict[str, Any]) -> AsyncIterator[Any]:
        """Yield what the tool gives until its time is up."""
        tool = self.tool
        work = self.endpoint(argument, **options)
        async with closing(work if tool.kind in STREAMING else _once(work)) as stream:
            deadline = None if tool.timeout is None else asyncio.get_running_loop().time() + tool.timeout
            while True:
                clock = asyncio.timeout_at(deadline)
                try:
                    async with clock:
                        piece = await anext(stream, _END)
                except TimeoutError:
                    if not clock.expired():
                        raise
                    self._may_still_run = tool.in_thread
                    rest = "; it may still be running" if tool.in_thread else ""
                    raise TimeoutError(f"{tool.name} did not finish within {tool.timeout} s{rest}") from None
                if piece is _END:
                    return
                yield piece

    def _approve(self, arguments: str) -> None:
        """Ask whether the call may run, with arguments that are known to be sound."""
        tool, frame = self.tool, self.frame
        wrong = tool.validate(arguments)
        if wrong:
            raise ToolArgumentsError(wrong)
        asked = {"tool": tool.name, "call_id": frame.call_id, "arguments": arguments}
        approval = Approval.of(ask(frame, "approval", asked, None, "approval"))
        if approval is None or not approval.approved:
            reason = f"\nReason: {approval.reason}" if approval is not None and approval.reason else ""
            text = placeholder_text(Cause.REJECTED, tool.name, frame.call_id, frame.scope.language)
            raise Rejected(text + reason)


async def _once(work: Awaitable[Any]) -> AsyncIterator[Any]:
    yield await work
