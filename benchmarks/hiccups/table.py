"""Print what becomes of a run whose provider has a hiccup, as Markdown: Suture, two SDKs and two frameworks.

python benchmarks/hiccups/table.py --peers PYTHON        # the interpreter that has the others
python benchmarks/hiccups/table.py --only ours
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from importlib.util import find_spec
from itertools import count
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from _server import KINDS, STREAMED, Provider

_HERE = Path(__file__).parent
WIRES = ("openai-chat", "openai-responses", "anthropic", "gemini", "bedrock")
CONTESTANTS: dict[str, tuple[str, Sequence[str]]] = {
    "ours": ("Suture", WIRES),
    "ours_failover": ("Suture, a failover", WIRES),
    "ours_temporal": ("Suture on Temporal", WIRES),
    "peer_sdks": ("the SDK alone", ("openai-chat", "anthropic")),
    "peer_langchain": ("LangChain", ("openai-chat", "anthropic")),
    "peer_pydantic_ai": ("pydantic-ai", WIRES),
}
"""Who takes part: what it is called, and the providers that it is tried with."""


class Outcome(NamedTuple):
    """What became of one case."""

    wire: str
    kind: str
    turn: int
    streamed: bool
    good: bool
    ran: int
    """How often the tool ran."""
    requests: int
    """How many more than without a hiccup."""
    seconds: float
    said: str


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--peers", default=sys.executable, metavar="PYTHON", help="the interpreter that has the others")
    parser.add_argument("--only", nargs="+", choices=CONTESTANTS, default=list(CONTESTANTS))
    parser.add_argument("--verbose", action="store_true", help="also say what each lost run said, on standard error")
    given = parser.parse_args(arguments)
    provider, number = Provider(), count()
    found: dict[str, list[Outcome]] = {}
    for name in given.only:
        if name == "ours_temporal" and find_spec("temporalio") is None:
            continue
        python = given.peers if name.startswith("peer_") else sys.executable
        cases = list(_cases(name, provider, number))
        found[name] = list(_play(python, name, cases, provider))
        for each in found[name]:
            if given.verbose and not each.good:
                print(name, *each, file=sys.stderr)
    for line in _table(found):
        print(line)
    return 0


def _cases(name: str, provider: Provider, number: Iterable[int]) -> Iterator[dict[str, Any]]:
    numbers = iter(number)
    fails_over = name == "ours_failover"
    for wire in CONTESTANTS[name][1]:
        for kind in KINDS:
            for turn in (1, 2):
                for streamed in (True, False):
                    if kind in STREAMED and not streamed:
                        continue
                    case = f"c{next(numbers)}"
                    times = 99 if fails_over else 1
                    model = f"hiccup_{kind}_{turn}_{times}_{case}"
                    other = {"other": f"hiccup_{kind}_9_9_{case}"} if fails_over else {}
                    about = {"wire": wire, "kind": kind, "turn": turn, "streamed": streamed, "url": provider.url}
                    yield {"id": case, "model": model, **about, **other}


def _play(python: str, name: str, cases: Sequence[dict[str, Any]], provider: Provider) -> Iterator[Outcome]:
    program = {"ours_failover": "ours"}.get(name, name)
    run = subprocess.run(
        [python, str(_HERE / f"{program}.py")],
        input=json.dumps(cases) + "\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        check=False,
        env=dict(os.environ),
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("{")]  # a server may have written, too
    told = {end["id"]: end for end in map(json.loads, lines)}
    for case in cases:
        end = told.get(case["id"], {"answer": "nothing came", "ran": 0, "seconds": 0.0})
        good = end["answer"] == "done" and end["ran"] == 1
        more = provider.requests[case["id"]] - 2
        where = (case["wire"], case["kind"], case["turn"], case["streamed"])
        yield Outcome(*where, good, end["ran"], more, end["seconds"], end["answer"])


_ROWS: tuple[tuple[str, Callable[[Outcome], bool]], ...] = (
    *((kind, lambda each, kind=kind: each.kind == kind) for kind in KINDS),
    ("in the first turn", lambda each: each.turn == 1),
    ("in the turn behind the tool", lambda each: each.turn == 2),
    ("streamed", lambda each: each.streamed),
    ("not streamed", lambda each: not each.streamed),
    *((wire, lambda each, wire=wire: each.wire == wire) for wire in WIRES),
    ("all", lambda _: True),
)
"""What is counted together."""


def _table(found: dict[str, list[Outcome]]) -> Iterator[str]:
    yield f"| | {' | '.join(CONTESTANTS[name][0] for name in found)} |"
    yield "|---" * (len(found) + 1) + "|"
    for what, counts in _ROWS:
        yield f"| {what} | {' | '.join(_cell(list(filter(counts, outcomes))) for outcomes in found.values())} |"
    most = [str(max(each.ran for each in outcomes)) for outcomes in found.values()]
    yield f"| most runs of the tool | {' | '.join(most)} |"


def _cell(outcomes: Sequence[Outcome]) -> str:
    """Return how many runs ended well, how many requests more that took, and the seconds."""
    if not outcomes:
        return "–"
    good = [each for each in outcomes if each.good]
    ended = f"{len(good)} of {len(outcomes)}"
    if not good:
        return f"**{ended}**"
    more = sorted({each.requests for each in good})
    requests = f"+{more[0]}" if len(more) == 1 else f"+{more[0]} to +{more[-1]}"
    seconds = median(each.seconds for each in good)
    return f"{ended if len(good) == len(outcomes) else f'**{ended}**'}, {requests}, {seconds:.1f} s"


if __name__ == "__main__":
    sys.exit(main())
