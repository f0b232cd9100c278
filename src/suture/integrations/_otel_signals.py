"""Spans and metrics by the GenAI conventions of OpenTelemetry. Imported only by those who have its API."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from time import perf_counter, time_ns
from typing import Any, TypeVar

from opentelemetry import context, metrics, trace
from opentelemetry.metrics import Histogram, MeterProvider
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, TracerProvider

from suture.kernel import InterruptSignal, closing

__all__ = ["Operation", "Signals", "type_name"]

T = TypeVar("T")
_END: Any = object()
_SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
_LONG_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 102.4, 204.8, 409.6)
_TOKENS = tuple(4**power for power in range(14))


class Signals:
    """A tracer and the instruments, of the providers that were given or those that hold for the program."""

    def __init__(self, tracer_provider: TracerProvider | None, meter_provider: MeterProvider | None) -> None:
        self._tracer_provider, self._meter_provider = tracer_provider, meter_provider
        self.tracer = trace.get_tracer("suture", tracer_provider=tracer_provider)
        meter = metrics.get_meter("suture", meter_provider=meter_provider)

        def made(name: str, unit: str, description: str, bounds: tuple[float, ...]) -> Histogram:
            return meter.create_histogram(name, unit, description, explicit_bucket_boundaries_advisory=bounds)

        self.tokens = made("gen_ai.client.token.usage", "{token}", "Number of input and output tokens used.", _TOKENS)
        self.chat = made("gen_ai.client.operation.duration", "s", "GenAI operation duration.", _SECONDS)
        self.agent = made("gen_ai.invoke_agent.duration", "s", "Duration of one invocation of an agent.", _LONG_SECONDS)
        self.tool = made("gen_ai.execute_tool.duration", "s", "Duration of one execution of a tool.", _SECONDS)

    def is_idle(self) -> bool:
        """Tell whether nobody takes anything: the providers of the API itself do nothing, or stand for none."""
        return _is_idle(self._tracer_provider or trace.get_tracer_provider()) and not self.measures()

    def measures(self) -> bool:
        """Tell whether somebody takes measurements."""
        return not _is_idle(self._meter_provider or metrics.get_meter_provider())


def _is_idle(provider: object) -> bool:
    return type(provider).__module__.startswith(("opentelemetry.trace", "opentelemetry.metrics"))


class Operation:
    """Something that goes on: its span and its clock, and what is said of it in the end."""

    def __init__(
        self,
        signals: Signals,
        name: str,
        attributes: Mapping[str, Any],
        *,
        duration: Histogram,
        is_remote: bool = False,
    ) -> None:
        kind = SpanKind.CLIENT if is_remote else SpanKind.INTERNAL
        self._start = time_ns()
        self.span: Span = signals.tracer.start_span(name, kind=kind, attributes=attributes, start_time=self._start)
        self.context = trace.set_span_in_context(self.span)
        self.measured: dict[str, Any] = {}
        """What the measurements of this operation are told apart by."""
        self._duration, self._began = duration, perf_counter()

    def elapsed(self) -> float:
        """Return how many seconds it has been going on."""
        return perf_counter() - self._began

    def note(self, attributes: Mapping[str, Any]) -> None:
        """Note something on the span; what is `None` or empty is left out."""
        known = {name: value for name, value in attributes.items() if value is not None and value not in ("", ())}
        self.span.set_attributes(known)

    def end(self, outcome: str, error_type: str = "", said: str = "") -> None:
        """End the span with how it came out, and measure how long it took."""
        if outcome != "finished":
            self.span.set_attribute("suture.outcome", outcome)
        if error_type:
            self.measured["error.type"] = error_type
            self.span.set_attribute("error.type", error_type)
            self.span.set_status(Status(StatusCode.ERROR, said or None))
        elapsed = self.elapsed()
        self.span.end(self._start + round(elapsed * 1e9))  # the span and the measurement say the same
        self._duration.record(elapsed, self.measured, context=self.context)

    def fail(self, error: BaseException, *, says_why: bool) -> None:
        """End the span by an exception; an interrupt or a cancellation is no error."""
        if isinstance(error, InterruptSignal):
            self.end("interrupted")
        elif isinstance(error, Exception):
            self.end("failed", type_name(error), str(error) if says_why else "")
        else:
            self.end("cancelled")

    async def during(self, stream: AsyncIterator[T]) -> AsyncGenerator[T, None]:
        """Yield what a stream gives. While it works, and only then, the span is the current one."""
        async with closing(stream) as items:
            while True:
                token = context.attach(self.context)
                try:
                    item = await anext(items, _END)
                finally:
                    context.detach(token)
                if item is _END:
                    return
                yield item


def type_name(error: BaseException) -> str:
    """Return what an exception is called, with its module unless that is Python's own."""
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
