"""Item 10: what recorded runs cost under each policy."""

from collections.abc import Sequence

from _measure import Row, Section, Settings, say
from _program import Failed, Program
from replay import (
    COMPACTION,
    LIMITS,
    POLICIES,
    LangChain,
    Outcome,
    Recording,
    Scale,
    caches_table,
    corpus_file,
    costs_table,
    peers,
    read_corpus,
    replay_all,
    rivals_table,
)

from reduction._langchain import langchain

__all__ = ["measure_costs"]

_OURS = "ours"
_HEAD = "10. What recorded runs cost"
_NOTES = (
    "cost: 0.1 for a token that is in the prompt cache, 1.25 for one that goes into it; `no cache`: 1 for each.",
    "hits: the share that is an unchanged prefix of the request before; `mean`: of the requests' own shares.",
    "over: requests over the limit; `avoidable`: that clearing all old results would have brought under it.",
    "breakpoints: the cache is hit only where an earlier request ended; `one more`: also before its last round.",
)


def measure_costs(settings: Settings) -> Section:
    """Replay the recorded runs, where they are at hand."""
    file = corpus_file()
    if file is None:
        row = Row(what="the recorded runs are not on this machine")
        return Section(_HEAD, [row], ("SUTURE_CORPUS says where they are. docs/reduction-measured.md has figures.",))
    recordings = read_corpus(file, settings.replayed)
    say(f"replay: {len(recordings)} runs")
    with peers() as others:
        outcome = replay_all(recordings, others)
    rows = [_row(outcome, limit, other) for limit in LIMITS for other in POLICIES if other != _OURS]
    rows += [row for limit in LIMITS for row in _compaction(outcome, limit)]
    rows.append(_compare(recordings))
    tables: list[str] = []
    for table in (costs_table(outcome), caches_table(outcome), rivals_table(outcome)):
        tables += ["", *table.lines()]
    title = f"{_HEAD}, ours over each other policy ({outcome.runs} runs, {outcome.requests:,} requests)"
    return Section(title, rows, (*_NOTES, *tables))


def _row(outcome: Outcome, limit: int, other: str) -> Row:
    ratio = outcome.bills[_OURS, limit].cost / outcome.bills[other, limit].cost
    return Row(
        what=f"limit of {limit:,} tokens ({ratio - 1:+.1%})", against=other, ratio=ratio, goal="< 1", met=ratio < 1
    )


def _compaction(outcome: Outcome, limit: int) -> list[Row]:
    """Return whether compaction keeps to the limit, and what it costs over the best of those that only clear."""
    mine = outcome.bills[COMPACTION, limit]
    ratio = mine.cost / min(outcome.bills[name, limit].cost for name in POLICIES)
    over = Row(what=f"compaction, requests over {limit:,} tokens", ratio=mine.over, goal="= 0", met=mine.over == 0)
    what = f"compaction, limit of {limit:,} tokens ({ratio - 1:+.1%})"
    return [over, Row(what=what, against="the cheapest of them", ratio=ratio, goal="<= 1", met=ratio <= 1)]


def _compare(recordings: Sequence[Recording]) -> Row:
    """Compare the model of LangChain's edit with the class itself, on every request."""
    with langchain() as peer:
        if isinstance(peer, str):
            return Row(what=f"model of LangChain: {peer}")
        try:
            same, requests = _agreement(recordings, peer)
        except Failed as failure:
            return Row(what=str(failure))
    return Row(
        what=f"requests that langchain {peer.version} edits alike",
        messages=requests,
        against="its model",
        ratio=same / requests,
        goal="= 1",
        met=same == requests,
    )


def _agreement(recordings: Sequence[Recording], peer: Program) -> tuple[int, int]:
    """Return for how many requests the class clears just what its model does, and of how many."""
    scale = Scale()
    same = requests = 0
    for place, recording in enumerate(recordings, 1):
        say(f"replay: LangChain's own class, run {place} of {len(recordings)}")
        tokens = [scale.of(message) for message in recording.messages]
        told = peer.ask(do="choose", messages=recording.messages, tokens=tokens, limits=LIMITS)["chosen"]
        for limit, theirs in zip(LIMITS, told, strict=True):
            model = LangChain(recording, limit, scale)
            mine: list[list[int]] = []
            for message in recording.messages:
                if message["role"] == "assistant":
                    mine.append(model.chosen())
                model.add(message)
            same += sum(one == other for one, other in zip(mine, theirs, strict=True))
            requests += len(mine)
    return same, requests
