"""Spans and metrics of runs, by the GenAI conventions of OpenTelemetry.

Needs `pip install 'suture[otel]'`, which is OpenTelemetry's API. Who takes what is recorded, and where it goes, is for
the program to set up, with OpenTelemetry's SDK or another.
"""

from typing import TYPE_CHECKING, Any

from suture.errors import ConfigError
from suture.kernel import (
    ChatModelAgentContext,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    EnhancedStreamableEndpoint,
    Model,
    ModelContext,
    Outcome,
    current_frame,
    run_scratch,
)
from suture.messages import ToolContext

if TYPE_CHECKING:
    from opentelemetry.metrics import MeterProvider
    from opentelemetry.trace import TracerProvider

    from suture.integrations._otel_run import RunRecord

__all__ = ["Telemetry"]


class Telemetry(ChatModelAgentMiddleware[Any]):
    """A middleware that records each run, each request to a model and each tool call as a span, and measures them.

    Put it first, so that what the other middlewares do is inside its spans. Where nothing is set up to take what is
    recorded, it stands aside.

    Args:
        tracer_provider: who makes the spans; the program's own if not given.
        meter_provider: who takes the measurements; the program's own if not given.
        capture_content: whether messages, arguments, results and the texts of errors are recorded, too, as much of
            them as the agent's `redact` lets out.

    >>> from suture import ChatModelAgent
    >>> from suture.testing import ScriptedModel
    >>> agent = ChatModelAgent(name="greeter", model=ScriptedModel(["hello"]), middlewares=[Telemetry()])
    >>> agent.run_sync("hi").output
    'hello'
    """

    def __init__(
        self,
        *,
        tracer_provider: "TracerProvider | None" = None,
        meter_provider: "MeterProvider | None" = None,
        capture_content: bool = False,
    ) -> None:
        try:
            # The extra is paid for by those who use it.
            from suture.integrations import _otel_run, _otel_signals  # noqa: PLC0415
        except ImportError as error:
            missing = (
                "Telemetry needs the package opentelemetry-api, which is not installed: pip install 'suture[otel]'"
            )
            raise ConfigError(missing) from error
        self._traces = _otel_run
        self._signals = _otel_signals.Signals(tracer_provider, meter_provider)
        self._captures = capture_content
        self._run = self._record
        """Makes what belongs to a run; always the same object, since that is what `run_scratch` goes by."""

    def _record(self) -> "RunRecord | None":
        if self._signals.is_idle():
            return None
        return self._traces.RunRecord(self._signals, current_frame().scope, captures=self._captures)

    def before_agent(self, context: ChatModelAgentContext[Any], /) -> None:
        """Begin the span of the run."""
        run = run_scratch(self._run)
        if run is not None:
            run.begin(context)

    def wrap_model(self, model: Model[Any], model_context: ModelContext, /) -> Model[Any]:
        """Put a span around a request to the model."""
        run = run_scratch(self._run)
        return model if run is None or not run.is_on else self._traces.TracedModel(model, run)

    def wrap_tool_call(
        self, endpoint: EnhancedStreamableEndpoint, context: ToolContext, /
    ) -> EnhancedStreamableEndpoint:
        """Put a span around a tool call."""
        run = run_scratch(self._run)
        return endpoint if run is None or not run.is_on else self._traces.traced_call(run, endpoint, context)

    def after_agent(self, state: ChatModelAgentState[Any], outcome: Outcome, /) -> None:
        """End the span of the run."""
        run = run_scratch(self._run)
        if run is not None:
            run.end(state, outcome)
