"""Spans and metrics of runs, by the GenAI conventions of OpenTelemetry.

Needs the extra `otel`, which is OpenTelemetry's API. The program sets up where the records go, with OpenTelemetry's SDK
or another.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from time import perf_counter, time_ns
from typing import Any, NamedTuple, Self, TypeVar, cast

from msgspec.structs import asdict, replace

from suture import kernel
from suture._aio import LOG
from suture._extras import check_extra
from suture.kernel import Outcome, current_run
from suture.messages import Delta, ResponseMeta, TokenUsage, ToolResult
from suture.wires import ChatWire, get_chat_wire

try:
    from opentelemetry import context as otel_context
    from opentelemetry import metrics, trace
    from opentelemetry.trace import SpanKind, Status, StatusCode
finally:  # an old release may lack some of these: its version says more than the ImportError
    check_extra("otel", "opentelemetry")

__all__ = ["Telemetry"]

_OTHER = "_OTHER"
"""The conventions' name for an error or a tool without a name."""
_CONVERSATION = otel_context.create_key("suture.conversation")
_Show = Callable[[Any], Any]
"""The agent's `redact`: returns the part of a value that may be shown."""
T = TypeVar("T")


class Telemetry(kernel.ChatModelAgentMiddleware[Any]):
    """A middleware that records each run, each request to a model and each tool call as a span, and measures them.

    Put it first, so that the work of the other middlewares is inside its spans. If the program has not set up
    OpenTelemetry, it does nothing.

    Args:
        tracer_provider: makes the spans; by default the program's own.
        meter_provider: takes the measurements; by default the program's own.
        capture_content: whether messages, arguments, results and the texts of errors are recorded, too, after the
            agent's `redact`.

    >>> from suture import ChatModelAgent
    >>> from suture.testing import ScriptedModel
    >>> agent = ChatModelAgent(name="greeter", model=ScriptedModel(["hello"]), middlewares=[Telemetry()])
    >>> agent.run_sync("hi").output
    'hello'
    """

    def __init__(
        self,
        *,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
        capture_content: bool = False,
    ) -> None:
        self._tracer_provider, self._meter_provider = tracer_provider, meter_provider
        self._captures = capture_content
        self._tracer = trace.get_tracer("suture", tracer_provider=tracer_provider)
        meter = metrics.get_meter("suture", meter_provider=meter_provider)
        self._histograms = {
            kind: meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=bounds)
            for kind, (name, unit, description, bounds) in _HISTOGRAMS.items()
        }

    def before_agent(self, context: kernel.ChatModelAgentContext[Any]) -> None:
        """Begin the span of the run, and make it the current one for everything in the run."""
        run, measures = current_run(), not _is_idle(self._meter_provider or metrics.get_meter_provider())
        if not measures and _is_idle(self._tracer_provider or trace.get_tracer_provider()):
            return
        own = run.conversation_id if run.conversation_id != run.run_id else ""
        conversation = str(otel_context.get_value(_CONVERSATION) or own)  # the outer run's, if there is one
        agent = {"gen_ai.agent.name": run.agent}
        shared = {**agent, "gen_ai.conversation.id": conversation}
        operation = self._begin("invoke_agent", run.agent, {**_model_attributes(run.model), **shared}, agent)
        if operation.span.get_span_context().is_valid:  # attached in a context that ends with the run
            otel_context.attach(otel_context.set_value(_CONVERSATION, conversation, operation.context))
        if operation.span.is_recording() or measures:
            tools = {tool.name: tool.info.description for tool in context.tools}
            run.cache[self] = _Record(operation, shared, run.usage, tools)
            operation.note_input(context.instruction, context.messages)

    async def wrap_model_call(self, request: kernel.ModelRequest[Any], proceed: kernel.AskModel) -> Any:
        """Record a request to the model as a span."""
        run, message = current_run(), None
        record: _Record | None = run.cache.get(self)
        if record is None:
            return await proceed(request)
        record.tools.update({info.name: info.description for info in request.tool_infos})
        asked = _model_attributes(run.model)
        about = {**asked, **record.shared, **_request_attributes(request.options)}
        measured = {"gen_ai.operation.name": "chat", **asked}
        operation = self._begin("chat", asked["gen_ai.request.model"], about, measured)
        operation.note_input(request.instruction, request.messages)
        sink = _Listener(request.sink, operation)
        try:
            with operation:
                try:
                    message = await proceed(replace(request, sink=sink))
                finally:
                    self._note_reply(operation, message, sink)
        finally:
            record.run.error = operation.error  # in case it ends the run
        return message

    async def wrap_tool_call(self, call: kernel.ToolCallRequest, proceed: kernel.CallTool) -> ToolResult:
        """Record a tool call as a span."""
        record: _Record | None = current_run().cache.get(self)
        if record is None:
            return await proceed(call)
        named = {"gen_ai.tool.name": call.name, "gen_ai.tool.type": "function"}
        about = {"gen_ai.tool.call.id": call.call_id, "gen_ai.tool.description": record.tools.get(call.name)}
        series = call.name if call.name in record.tools else _OTHER  # invented names share one series
        measured = {**named, "gen_ai.tool.name": series, "gen_ai.agent.name": record.shared["gen_ai.agent.name"]}
        with self._begin("execute_tool", call.name, {**named, **about, **record.shared}, measured) as operation:
            operation.note_content(lambda shown: {"gen_ai.tool.call.arguments": shown(call.arguments)})
            result = await proceed(call)
            operation.note_content(lambda shown: {"gen_ai.tool.call.result": shown(result).text})
            operation.error = "tool_error" if result.is_error else ""
        return result

    def after_agent(self, state: kernel.ChatModelAgentState[Any], outcome: Outcome) -> None:
        """End the span of the run, however the run ended."""
        run = current_run()
        record: _Record | None = run.cache.get(self)
        if record is None:
            return
        operation, before = record.run, asdict(record.usage_before)
        used = {name: count - before[name] for name, count in asdict(run.usage).items()}
        if any(used.values()):
            operation.note(_usage_attributes(TokenUsage(**used)))
        if outcome is Outcome.FINISHED:
            operation.note_output(state.messages[-1])
        operation.error = (operation.error or _OTHER) if outcome is Outcome.FAILED else ""
        operation.end(outcome.value)

    def _begin(self, kind: str, name: str, about: Mapping[str, Any], measured: dict[str, Any]) -> "_Operation":
        """Begin an operation of this kind; `measured` are the attributes of its measurements."""
        start = time_ns()
        span = self._tracer.start_span(
            f"{kind} {name}",
            kind=SpanKind.CLIENT if kind == "chat" else SpanKind.INTERNAL,
            attributes={"gen_ai.operation.name": kind, **_known(about)},
            start_time=start,
        )
        return _Operation(span, start, self._histograms[kind], measured, captures=self._captures)

    def _note_reply(self, operation: "_Operation", message: Any, sink: "_Listener") -> None:
        """Record a reply's attributes, its usage, and its content."""
        about = _response_attributes(message)
        operation.note({**about, "gen_ai.response.time_to_first_chunk": sink.first})
        if "gen_ai.response.model" in about:
            operation.measured["gen_ai.response.model"] = about["gen_ai.response.model"]
        usage = (get_chat_wire(current_run().wire).usage(message) if message is not None else None) or sink.usage
        if usage is not None:
            operation.note(_usage_attributes(usage))
            for kind, count in (("input", usage.prompt_tokens), ("output", usage.completion_tokens)):
                attributes = {**operation.measured, "gen_ai.token.type": kind}
                self._histograms["tokens"].record(count, attributes, context=operation.context)
        if message is not None:
            operation.note_output(message)


class _Operation:
    """An operation with its span and its clock. As a context manager it makes the span current, and ends it."""

    def __init__(
        self, span: trace.Span, start: int, duration: metrics.Histogram, measured: dict[str, Any], *, captures: bool
    ) -> None:
        self.span, self.measured, self.error = span, measured, ""
        self.context = trace.set_span_in_context(span)
        self._start, self._duration, self._captures, self._began = start, duration, captures, perf_counter()

    def __enter__(self) -> Self:
        self._token = otel_context.attach(self.context)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, *_: object) -> None:
        otel_context.detach(self._token)
        if kind is None:
            self.end("failed" if self.error else "finished")
        elif isinstance(error, Exception):
            module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
            self.error = f"{module}{kind.__qualname__}"
            self.end("failed", self._show(lambda shown: str(shown(str(error))), ""))
        else:  # an interrupt or a cancellation is no error
            self.end("interrupted" if isinstance(error, kernel.InterruptSignal) else "cancelled")

    def elapsed(self) -> float:
        """Return how many seconds have passed since it began."""
        return perf_counter() - self._began

    def end(self, outcome: str, description: str = "") -> None:
        """End the span with its outcome, and record the duration."""
        if outcome != "finished":
            self.span.set_attribute("suture.outcome", outcome)
        if self.error:
            self.measured["error.type"] = self.error
            self.span.set_attribute("error.type", self.error)
            self.span.set_status(Status(StatusCode.ERROR, description or None))
        elapsed = self.elapsed()
        self.span.end(self._start + round(elapsed * 1e9))  # span and measurement must agree
        self._duration.record(elapsed, self.measured, context=self.context)

    def note(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes of the span, without those that are `None` or empty."""
        self.span.set_attributes(_known(attributes))

    def note_content(self, describe: Callable[[_Show], dict[str, Any]]) -> None:
        """Set attributes with content, if content is captured."""
        self.note(self._show(describe, {}))

    def note_input(self, instruction: str, messages: Sequence[Any]) -> None:
        """Record the instruction and the messages for a model, if content is captured."""

        def describe(shown: _Show) -> dict[str, Any]:
            parts = [{"type": "text", "content": shown(instruction)}] if instruction else []
            return {
                "gen_ai.system_instructions": json.dumps(parts, ensure_ascii=False) if parts else "",
                "gen_ai.input.messages": _as_messages(messages, shown),
            }

        self.note_content(describe)

    def note_output(self, message: Any) -> None:
        """Record a message of the model, if content is captured."""
        wire = get_chat_wire(current_run().wire)
        if wire.made_by_model(message):
            likely = "tool_call" if wire.calls(message) else "stop"
            (finish,) = _response_attributes(message).get("gen_ai.response.finish_reasons", (likely,))
            self.note_content(lambda shown: {"gen_ai.output.messages": _as_messages([message], shown, finish)})

    def _show(self, describe: Callable[[_Show], T], otherwise: T) -> T:
        """Return content after the agent's `redact`, if content is captured; an error never harms the run."""
        if self._captures and self.span.is_recording():
            try:
                return describe(current_run().redact)
            except Exception:  # noqa: BLE001 - content is optional
                LOG.warning("the content of a span could not be recorded", exc_info=True)
        return otherwise


class _Record(NamedTuple):
    """The record of one run; the error of its operation is that of the last request to the model."""

    run: _Operation
    shared: dict[str, str]
    usage_before: TokenUsage
    tools: dict[str, str]
    """The description of each tool."""


class _Listener:
    """A sink that records the time of the first piece of a reply, and the usage that the pieces report."""

    def __init__(self, outer: Any, operation: _Operation) -> None:
        self._outer, self._operation = outer, operation
        self.first: float | None = None
        self.usage: TokenUsage | None = None
        self.open, self.close = outer.open, outer.close

    async def write(self, delta: Delta, /) -> None:
        if self.first is None:
            self.first = self._operation.elapsed()
        self.usage = delta.usage or self.usage
        await self._outer.write(delta)


def _is_idle(provider: object) -> bool:
    """Return whether a provider records nothing: those of the API itself are empty, or stand in for a missing one."""
    return type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


# --- attributes of the conventions ----------------------------------------------------------------

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_LONG_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6)
_TOKENS = tuple(4**power for power in range(14))
_HISTOGRAMS = {
    "tokens": ("gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", _TOKENS),
    "chat": ("gen_ai.client.operation.duration", "s", "GenAI operation duration.", _SECONDS),
    "invoke_agent": ("gen_ai.invoke_agent.duration", "s", "Duration of one invocation of an agent.", _LONG_SECONDS),
    "execute_tool": ("gen_ai.execute_tool.duration", "s", "Duration of one execution of a tool.", _SECONDS),
}
_PROVIDERS = {
    "anthropic": "anthropic",
    "bedrock": "aws.bedrock",
    "deepseek": "deepseek",
    "gemini": "gcp.gemini",
    "kimi": "moonshot_ai",
    "minimax": "minimax",
    "mistral": "mistral_ai",
    "openai-chat": "openai",
    "openai-responses": "openai",
}
"""The conventions' names for the providers, by profile."""
_OPTIONS = ("frequency_penalty", "max_tokens", "presence_penalty", "seed", "temperature", "top_k", "top_p")


def _known(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in attributes.items() if value is not None and value not in ("", ())}


def _model_attributes(model: Any) -> dict[str, str]:
    """Return the model's own name and provider, or else the name of its class and the provider of its profile."""
    profile = getattr(model.profile, "name", model.profile)
    while isinstance(model, kernel.ModelWrapper):
        model = cast("kernel.ModelWrapper[Any]", model).inner
    said: list[Any] = [getattr(model, field, "") for field in ("provider", "model", "name")]
    provider, *names = [text if isinstance(text, str) else "" for text in said]
    return {
        "gen_ai.provider.name": provider or _PROVIDERS.get(profile, "suture"),
        "gen_ai.request.model": next(filter(None, names), type(model).__name__),
    }


def _request_attributes(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of a request for which the conventions have names."""
    chosen = {f"gen_ai.request.{name}": options.get(name) for name in _OPTIONS}
    numbers = {name: value for name, value in chosen.items() if type(value) in {int, float}}
    return {**numbers, "gen_ai.output.type": "json" if "output_schema" in options else ""}


def _response_attributes(message: Any) -> dict[str, Any]:
    """Return the id of a reply, the model that gave it, and why it ended."""
    meta = getattr(message, "response_meta", None)
    if not isinstance(meta, ResponseMeta):
        return {}
    said = {f"gen_ai.response.{key}": meta.extension.get(key) for key in ("id", "model")}
    finish = (meta.finish_reason,) if meta.finish_reason else ()
    texts = {name: text for name, text in said.items() if isinstance(text, str)}
    return _known({**texts, "gen_ai.response.finish_reasons": finish})


def _usage_attributes(usage: TokenUsage) -> dict[str, Any]:
    """Return the attributes of token usage."""
    return {
        "gen_ai.usage.input_tokens": usage.prompt_tokens,
        "gen_ai.usage.output_tokens": usage.completion_tokens,
        "gen_ai.usage.cache_read.input_tokens": usage.cached_tokens or None,
        "gen_ai.usage.cache_creation.input_tokens": usage.cache_write_tokens or None,
        "gen_ai.usage.reasoning.output_tokens": usage.reasoning_tokens or None,
    }


# --- content ---------------------------------------------------------------------------------------


def _as_messages(messages: Sequence[Any], shown: _Show, finish: str = "") -> str:
    """Return messages of the run in the form of the conventions, without images and other media.

    `shown` returns the part of a message that may be shown, and `finish` is the reason why the last one ended.
    """
    wire = get_chat_wire(current_run().wire)
    made = [each for message in messages for each in _describe(wire, shown(message))]
    if finish and made:
        made[-1]["finish_reason"] = finish
    return json.dumps(made, ensure_ascii=False)


def _describe(wire: ChatWire, message: Any) -> list[dict[str, Any]]:
    """Return a message in the form of the conventions; results and text become two, since their roles differ."""
    view = wire.view(message)
    if view.role == "assistant":
        deltas = [each for each in wire.deltas(message) if each.text or each.reasoning or each.call_index is not None]
        return [{"role": "assistant", "parts": [_piece(delta) for delta in deltas]}]
    if not view.results:
        return [{"role": view.role, "parts": [{"type": "text", "content": wire.text(message)}]}]
    found = [(result.id, wire.result_text(result)[0]) for result in view.results]
    parts = [{"type": "tool_call_response", "id": call, "result": text} for call, text in found]
    rest = wire.rest(message, {})
    beside = _describe(wire, rest) if rest is not None and wire.text(rest) else []
    return [{"role": "tool", "parts": parts}, *beside]


def _piece(delta: Delta) -> dict[str, Any]:
    if delta.call_index is not None:
        arguments: Any = delta.arguments
        with suppress(ValueError, RecursionError):
            arguments = json.loads(delta.arguments)
        return {"type": "tool_call", "id": delta.call_id, "name": delta.name, "arguments": arguments}
    if delta.reasoning:
        return {"type": "reasoning", "content": delta.reasoning}
    return {"type": "text", "content": delta.text}
