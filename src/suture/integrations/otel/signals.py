"""Spans and metrics by the GenAI conventions of OpenTelemetry. Imported only by those who have its API."""

from collections.abc import Mapping
from time import perf_counter, time_ns
from typing import Any, Self

from opentelemetry import context, metrics, trace
from opentelemetry.metrics import Histogram, MeterProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from suture.kernel import InterruptSignal

_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_LONG_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6)
_TOKENS = tuple(4**power for power in range(14))
_CONVERSATION = context.create_key("suture.conversation")


class Signals:
    """A tracer and the instruments, of the providers that were given or those that hold for the program."""

    def __init__(self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> None:
        self._tracer_provider, self._meter_provider = tracer_provider, meter_provider
        self._tracer = trace.get_tracer("suture", tracer_provider=tracer_provider)
        meter = metrics.get_meter("suture", meter_provider=meter_provider)

        def make(name: str, unit: str, description: str, bounds: tuple[float, ...]) -> Histogram:
            return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=bounds)

        self.tokens = make("gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", _TOKENS)
        self._durations = {
            "chat": make("gen_ai.client.operation.duration", "s", "GenAI operation duration.", _SECONDS),
            "invoke_agent": make(
                "gen_ai.invoke_agent.duration", "s", "Duration of one invocation of an agent.", _LONG_SECONDS
            ),
            "execute_tool": make("gen_ai.execute_tool.duration", "s", "Duration of one execution of a tool.", _SECONDS),
        }

    def is_idle(self) -> bool:
        """Tell whether nobody takes anything: the providers of the API itself do nothing, or stand for none."""
        return _is_idle(self._tracer_provider or trace.get_tracer_provider()) and not self.measures()

    def measures(self) -> bool:
        """Tell whether somebody takes measurements."""
        return not _is_idle(self._meter_provider or metrics.get_meter_provider())

    def begin(self, kind: str, name: str, about: Mapping[str, Any], measured: Mapping[str, Any]) -> "Operation":
        """Begin an operation of this kind; `measured` is what its measurements are told apart by."""
        start = time_ns()
        span = self._tracer.start_span(
            f"{kind} {name}",
            kind=SpanKind.CLIENT if kind == "chat" else SpanKind.INTERNAL,
            attributes={"gen_ai.operation.name": kind, **about},
            start_time=start,
        )
        return Operation(span, start, self._durations[kind], dict(measured))


def _is_idle(provider: object) -> bool:
    return type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


class Operation:
    """Something that goes on: its span and its clock, and what is said of it in the end. In its block it is current."""

    def __init__(self, span: Span, start: int, duration: Histogram, measured: dict[str, Any]) -> None:
        self.span, self.measured = span, measured
        self.context = trace.set_span_in_context(span)
        self._start, self._duration, self._began = start, duration, perf_counter()

    def __enter__(self) -> Self:
        self._token = context.attach(self.context)
        return self

    def __exit__(self, *_: object) -> None:
        context.detach(self._token)

    def stay_current(self, conversation: str) -> None:
        """Be the current one from here on, in a context that ends by itself; what is inside is of `conversation`."""
        if self.span.get_span_context().is_valid:
            context.attach(context.set_value(_CONVERSATION, conversation, self.context))

    def elapsed(self) -> float:
        """Return how many seconds it has been going on."""
        return perf_counter() - self._began

    def note(self, attributes: Mapping[str, Any]) -> None:
        """Note something on the span; what is `None` or empty is left out."""
        known = {name: value for name, value in attributes.items() if value is not None and value not in ("", ())}
        self.span.set_attributes(known)

    def end(self, outcome: str, error_type: str = "", description: str = "") -> None:
        """End the span with how it came out, and measure how long it took."""
        if outcome != "finished":
            self.span.set_attribute("suture.outcome", outcome)
        if error_type:
            self.measured["error.type"] = error_type
            self.span.set_attribute("error.type", error_type)
            self.span.set_status(Status(StatusCode.ERROR, description or None))
        elapsed = self.elapsed()
        self.span.end(self._start + round(elapsed * 1e9))  # the span and the measurement say the same
        self._duration.record(elapsed, self.measured, context=self.context)

    def fail(self, error: BaseException, description: str) -> None:
        """End the span by an exception; an interrupt or a cancellation is no error."""
        if isinstance(error, InterruptSignal):
            self.end("interrupted")
        elif isinstance(error, Exception):
            self.end("failed", type_name(error), description)
        else:
            self.end("cancelled")


def current_conversation() -> str:
    """Return the conversation that the run around this one belongs to, if there is one."""
    return str(context.get_value(_CONVERSATION) or "")


def type_name(error: BaseException) -> str:
    """Return what an exception is called, with its module unless that is Python's own."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
