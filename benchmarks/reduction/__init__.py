"""Items 10 to 12: what `ToolReduction` saves, what it costs where there is nothing to do, and how fast it truncates.

**What it saves** (`_costs.py`). Recorded runs are sent once more, see `benchmarks/replay`. Without those recordings the
item says so. LangChain's edit is modelled there; here the model is compared with the class itself, on every request.

**The check** (`_check.py`). An agent goes on with a history of so many messages, and each step adds a call and its
result; there are never too many tokens. What is timed is the hook of `ToolReduction`, and of `Compaction`, before each
model turn, inside the run. LangChain's `ContextEditingMiddleware` does the same in a process of its own: its
`wrap_model_call`, with a handler that returns at once, on as many messages of the same conversation. Both count as
they do by default.

**Truncating** (`_output.py`). A tool gives so many megabytes, in pieces or whole, and its output goes through the
wrapper of `ToolReduction` into a `LocalBackend`. The yardstick writes the same bytes to a file in the same directory,
and does nothing else. Wall time, since threads take part.
"""

from _measure import Section, Settings

from reduction._check import measure_check
from reduction._costs import measure_costs
from reduction._output import measure_output

__all__ = ["measure_reduction"]


def measure_reduction(settings: Settings) -> list[Section]:
    """Measure all three."""
    return [measure_costs(settings), measure_check(settings), measure_output(settings)]
