"""Items 13 and 14: what Suture adds to a step of the frameworks that it is a guest in. And a table for the docs.

**What is measured** (`_cost.py`). As for agents (see `benchmarks/loops`), a step is one model turn that asks for one
call, and the tool's run; the model is fake. Each framework has a process of its own, in `.venv-guests`, with all its
kinds of agent: as it is, and with our adapter. They take turns, and each run has an agent and an adapter that are new,
so that what an adapter must look at is looked at within the run.

**On a long history** LangChain's agent goes on with a history that was loaded from elsewhere. Nothing is wrong with it,
and there is nothing to reduce. The first step of a run looks at all of it, here and there.

**The table** (`table.py`) shows what a model receives when a broken history goes through each of them. Its page,
`docs/guests/seven-histories.md`, is printed by `.venv-guests/bin/python benchmarks/guests/table.py`. The histories are
in `_cases.py`, and what is made of an answer in `_judge.py`. A `guest_….py` puts a history through one framework.
"""

from guests._cost import measure_guests

__all__ = ["measure_guests"]
