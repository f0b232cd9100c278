"""Recorded agent runs, sent once more under different ways to keep the context short, and what each way costs.

**What is replayed.** Runs of mini-swe-agent (`_corpus.py`; never part of the project). Request number k of a run is all
that stood before the k-th reply, after whatever a policy has done to it so far. The replies and the tools' output are
those that were recorded, whatever a policy took away: nothing is read again.

**Who.** `_policies.py`: nothing at all; the reference's rules and LangChain's, modelled; and ours, which is no model
but `suture.reduction.plan`, its ledger carried from step to step. `_summaries.py`: `suture.reduction.compact`, and
LangChain's and deepagents' own classes. All thresholds are scaled to one limit.

**What is counted.** `_meter.py`: each request, message by message, with one counter for all (characters / 4), against
the requests before it: what a prompt cache would have read, and what it would have had to write.

    python -m benchmarks.replay          # print the tables
    python -m benchmarks.replay --write  # and put them, and the picture, into docs/

Imports here are relative: `benchmarks/run.py` knows this package as `replay`, the tests as `benchmarks.replay`.
"""

from ._corpus import Recording, corpus_file, read_corpus
from ._meter import Bill, Breakpoints, replay
from ._outcome import LIMITS, Outcome, replay_all
from ._page import PAGE, PICTURE, filled
from ._picture import draw
from ._policies import POLICIES, LangChain, Policy
from ._scale import Scale
from ._summaries import COMPACTION, REST, peers
from ._tables import caches_table, costs_table, rivals_table

__all__ = [
    "COMPACTION",
    "LIMITS",
    "PAGE",
    "PICTURE",
    "POLICIES",
    "REST",
    "Bill",
    "Breakpoints",
    "LangChain",
    "Outcome",
    "Policy",
    "Recording",
    "Scale",
    "caches_table",
    "corpus_file",
    "costs_table",
    "draw",
    "filled",
    "peers",
    "read_corpus",
    "replay",
    "replay_all",
    "rivals_table",
]
