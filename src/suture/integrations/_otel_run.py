"""What telemetry keeps of one run: its span, and the model turns and tool calls in it."""

from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from typing import Any

from opentelemetry import context as current

from suture.integrations._otel_content import as_instruction, as_messages, as_result
from suture.integrations._otel_models import (
    model_name,
    provider_name,
    request_attributes,
    response_attributes,
    usage_attributes,
)
from suture.integrations._otel_signals import Operation, Signals, type_name
from suture.kernel import (
    ChatModelAgentContext,
    ChatModelAgentState,
    EnhancedStreamableEndpoint,
    Model,
    ModelRequest,
    ModelWrapper,
    Outcome,
    Scope,
    closing,
)
from suture.messages import Delta, TokenUsage, ToolArgument, ToolContext, ToolResult

__all__ = ["RunRecord", "TracedModel", "traced_call"]

_OTHER = "_OTHER"
"""What the conventions call an error, or a tool, that has no name."""

_CUT = "suture.errors.StreamCutError"


class RunRecord:
    """One run. Its span is the current one from here on, for all that is done in the run."""

    def __init__(self, signals: Signals, scope: Scope, *, captures: bool) -> None:
        self.signals, self.scope, self.captures = signals, scope, captures
        self.error = ""
        """What the last model turn failed with, if it did."""
        named = {"gen_ai.agent.name": scope.spec.name}
        self.shared: dict[str, Any] = {**named, **_given("gen_ai.conversation.id", scope.root.checkpoint_id)}
        about = {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.provider.name": provider_name(scope.spec.model),
            "gen_ai.request.model": model_name(scope.spec.model),
            **self.shared,
        }
        self.operation = Operation(signals, f"invoke_agent {scope.spec.name}", about, duration=signals.agent)
        self.operation.measured = named
        span = self.operation.span
        self.is_on = span.is_recording() or signals.measures()
        if span.get_span_context().is_valid:
            current.attach(self.operation.context)  # never detached: the run has a context of its own

    def begin(self, context: ChatModelAgentContext[Any]) -> None:
        """Note what the run begins with."""
        self.tell(
            self.operation,
            lambda shown: {
                "gen_ai.system_instructions": as_instruction(context.instruction) if context.instruction else "",
                "gen_ai.input.messages": as_messages(self.scope.wire, context.messages, shown),
            },
        )

    def end(self, state: ChatModelAgentState[Any], outcome: Outcome) -> None:
        """End the span of the run, however the run ended."""
        now, before = self.scope.usage, self.scope.usage_before
        used = {name: getattr(now, name) - getattr(before, name) for name in TokenUsage.__struct_fields__}
        if any(used.values()):
            self.operation.note(usage_attributes(TokenUsage(**used)))
        if outcome is Outcome.FINISHED:
            self.tell(
                self.operation, lambda shown: {"gen_ai.output.messages": self.told_reply(state.messages[-1], shown)}
            )
        self.operation.end(outcome.value, (self.error or _OTHER) if outcome is Outcome.FAILED else "")

    def told_reply(self, message: Any, shown: Callable[[Any], Any]) -> str:
        """Return a reply as content, with why it ended; nothing for a message that is none."""
        wire = self.scope.wire
        if not wire.made_by_model(message):
            return ""
        likely = "tool_call" if wire.calls(message) else "stop"
        (finish,) = response_attributes(message).get("gen_ai.response.finish_reasons", (likely,))
        return as_messages(wire, [message], shown, finish)

    def tell(self, operation: Operation, content: Callable[[Callable[[Any], Any]], dict[str, Any]]) -> None:
        """Note content, if it is to be captured: as much as the agent's `redact` lets out. It never harms the run."""
        if self.captures and operation.span.is_recording():
            with suppress(Exception):
                operation.note(content(self.scope.spec.shown))


class TracedModel(ModelWrapper[Any]):
    """A model, each request to which has a span."""

    def __init__(self, inner: Model[Any], run: RunRecord) -> None:
        super().__init__(inner)
        self._run = run

    async def stream(self, request: ModelRequest[Any], /) -> AsyncIterator[Any]:
        """Ask the model inside."""
        chat = _Chat(self._run, self.inner, request)
        try:
            async with closing(chat.operation.during(self.inner.stream(request))) as pieces:
                async for piece in pieces:
                    chat.hear(piece)
                    yield piece
        except BaseException as error:
            chat.fail(error)
            raise
        chat.finish()


class _Chat:
    """One request to a model, and what is heard of the reply."""

    def __init__(self, run: RunRecord, model: Model[Any], request: ModelRequest[Any]) -> None:
        self.run = run
        run.error = ""
        name, provider = model_name(model), provider_name(model)
        about = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": name,
            **run.shared,
            **request_attributes(request.options),
        }
        self.operation = Operation(run.signals, f"chat {name}", about, duration=run.signals.chat, is_remote=True)
        self.operation.measured = {key: about[key] for key in list(about)[:3]}
        self._first: float | None = None
        self._usage: TokenUsage | None = None
        self._message: Any = None
        wire = run.scope.wire
        run.tell(
            self.operation,
            lambda shown: {
                "gen_ai.system_instructions": as_instruction(request.instruction) if request.instruction else "",
                "gen_ai.input.messages": as_messages(wire, request.messages, shown),
            },
        )

    def hear(self, piece: Any) -> None:
        """Hear a piece of the reply."""
        if isinstance(piece, Delta):
            self._usage = piece.usage or self._usage
            if self._first is None:
                self._first = self.operation.elapsed()
        else:
            self._message = piece

    def finish(self) -> None:
        """End with what was heard."""
        self._note()
        if self._message is None:
            self.run.error = _CUT
        self.operation.end("finished" if self._message is not None else "failed", self.run.error)

    def fail(self, error: BaseException) -> None:
        """End with an exception, and what was heard before it."""
        self._note()
        if isinstance(error, Exception):
            self.run.error = type_name(error)
        self.operation.fail(error, says_why=self.run.captures)

    def _note(self) -> None:
        operation, run, wire = self.operation, self.run, self.run.scope.wire
        said = response_attributes(self._message)
        operation.note({**said, "gen_ai.response.time_to_first_chunk": self._first})
        if "gen_ai.response.model" in said:
            operation.measured["gen_ai.response.model"] = said["gen_ai.response.model"]
        usage = (wire.usage(self._message) if self._message is not None else None) or self._usage
        if usage is not None:
            operation.note(usage_attributes(usage))
            for kind, count in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
                told = {**operation.measured, "gen_ai.token.type": kind}
                run.signals.tokens.record(count, told, context=operation.context)
        if self._message is not None:
            run.tell(operation, lambda shown: {"gen_ai.output.messages": run.told_reply(self._message, shown)})


def traced_call(
    run: RunRecord, endpoint: EnhancedStreamableEndpoint, context: ToolContext
) -> EnhancedStreamableEndpoint:
    """Return an endpoint, the call of which has a span."""
    tool = run.scope.tools.get(context.name)
    known = {"gen_ai.tool.name": context.name, "gen_ai.tool.type": "function"}
    about = {
        "gen_ai.operation.name": "execute_tool",
        **known,
        "gen_ai.tool.call.id": context.call_id,
        **_given("gen_ai.tool.description", tool.info.description if tool is not None else ""),
        **run.shared,
    }

    async def call(argument: ToolArgument, /, **options: Any) -> AsyncIterator[ToolResult]:
        operation = Operation(run.signals, f"execute_tool {context.name}", about, duration=run.signals.tool)
        # A name that the model made up would be a series of its own.
        measured = known if tool is not None else {**known, "gen_ai.tool.name": _OTHER}
        operation.measured = {**measured, "gen_ai.agent.name": run.scope.spec.name}
        run.tell(operation, lambda shown: {"gen_ai.tool.call.arguments": shown(argument.text)})
        pieces: list[ToolResult] = []
        try:
            async with closing(operation.during(endpoint(argument, **options))) as results:
                async for piece in results:
                    pieces.append(piece)
                    yield piece
        except BaseException as error:
            operation.fail(error, says_why=run.captures)
            raise
        run.tell(operation, lambda shown: {"gen_ai.tool.call.result": as_result([shown(piece) for piece in pieces])})
        has_failed = any(piece.is_error for piece in pieces)
        operation.end("failed" if has_failed else "finished", "tool_error" if has_failed else "")

    return call


def _given(name: str, value: str | None) -> dict[str, str]:
    return {name: value} if value else {}
