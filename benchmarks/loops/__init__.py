"""Items 7 to 9, 17 and 18: what a step of an agent costs, in our agent, in others and in a loop written by hand.

**What is measured.** A step is one model turn that asks for one call, and the tool's run. The model is fake:
in process, without network or waiting, its replies are prepared before the clock starts. The tool is an async
function that returns a short text. Around each model call and each tool call stand five middlewares that pass
everything through, in the form that costs the framework least. Telemetry is off. What is fair to whom is said
at the top of each contestant's file.

**How.** Each contestant is a process of its own, in an environment of its own (`.venv-bench-…`, made by
`make bench` with the newest release); `ours.py` and `hand_written.py` run in that of the benchmark. All of
them live as long as the measurement does, and one at a time is asked for one run, in turn (A B C, B C A, …).
The first run of each is thrown away, and so is a short one before each timing. What counts is the CPU time of
the whole process, threads included, from the call of the agent to its answer, over the number of steps. Runs
shorter than 20 ms are repeated within a sample, which is then their mean. The fake model notes the time at four
of its calls: that gives the cost of the first 20 steps and of the last 20. A run that did not make all its
steps is an error.

**Through an SDK** (items 17 and 18, `_models.py`) the model is real up to its socket: `server.py`, a process of its
own, answers as each provider does. There the tool notes the time, and the first request is not counted.

A peer that is not installed, or fails, is named in the table and left out.
"""

from loops._compare import measure_agents
from loops._models import measure_models

__all__ = ["measure_agents", "measure_models"]
