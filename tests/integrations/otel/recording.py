"""What the tests of this folder share: the real SDK, kept in memory, and an agent that is recorded by it."""

from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from suture import Message, ToolCall
from suture.integrations.otel import Telemetry


class Recorder:
    """Spans and measurements, and the middleware that they come from."""

    def __init__(self, *, capture_content: bool = False) -> None:
        self._exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self._exporter))
        self._reader = InMemoryMetricReader()
        self.meters = MeterProvider(metric_readers=[self._reader])
        self.telemetry = Telemetry(
            tracer_provider=self.provider, meter_provider=self.meters, capture_content=capture_content
        )
        self.tracer = self.provider.get_tracer("the program's own")

    @property
    def spans(self) -> Sequence[ReadableSpan]:
        """The spans that have ended, in that order."""
        return self._exporter.get_finished_spans()

    def names(self) -> list[str]:
        return [span.name for span in self.spans]

    def one(self, name: str) -> ReadableSpan:
        (found,) = [span for span in self.spans if span.name == name]
        return found

    def attributes(self, name: str) -> dict[str, Any]:
        return said(self.one(name))

    def requests(self) -> list[dict[str, Any]]:
        """Return what each request to the scripted model says of itself."""
        return [said(span) for span in self.spans if span.name == "chat ScriptedModel"]

    def tree(self) -> dict[str, list[str]]:
        """Return the names of the spans below each span, in the order in which they began."""
        names = {span.context.span_id: span.name for span in self.spans if span.context is not None}
        found: dict[str, list[str]] = {}
        for span in sorted(self.spans, key=lambda span: span.start_time or 0):
            parent = names[span.parent.span_id] if span.parent is not None else ""
            found.setdefault(parent, []).append(span.name)
        return found

    def points(self, metric: str) -> list[HistogramDataPoint]:
        data = self._reader.get_metrics_data()
        assert data is not None
        found = [
            each
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for each in scope.metrics
            if each.name == metric
        ]
        return [point for each in found for point in each.data.data_points if isinstance(point, HistogramDataPoint)]

    def measured(self, metric: str) -> list[tuple[Mapping[str, Any], int]]:
        """Return what the measurements of a metric are told apart by, and how many there are of each."""
        return [(dict(point.attributes or {}), point.count) for point in self.points(metric)]


def said(span: ReadableSpan) -> dict[str, Any]:
    """Return the attributes of a span."""
    return dict(span.attributes or {})


def current_name() -> str:
    """Return the name of the span that is the current one."""
    return getattr(trace.get_current_span(), "name", "")


def calls(*made: tuple[str, str]) -> Message:
    """Return a turn with these calls (a tool and its arguments), whose ids are c0, c1, …"""
    return Message.assistant(tool_calls=[ToolCall(f"c{number}", *call) for number, call in enumerate(made)])
