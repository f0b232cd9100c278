"""What the replay counts, on runs that can be counted by hand."""

from xml.etree import ElementTree as ET

import pytest

from benchmarks.replay import (
    LIMITS,
    PAGE,
    PICTURE,
    POLICIES,
    REST,
    Bill,
    Breakpoints,
    Policy,
    Recording,
    Scale,
    caches_table,
    corpus_file,
    costs_table,
    draw,
    filled,
    read_corpus,
    replay,
    replay_all,
    rivals_table,
)
from benchmarks.replay._meter import Sent
from suture.tokens import CharacterCounter
from tests.benchmarks.runs import Chat, run_of
from tests.docs.pages import table


class Fickle(Policy):
    """Replaces the first result from the third request on."""

    def request(self) -> list[Chat]:
        sent = list(self.history)
        if len(sent) > 5:
            sent[3] = {**sent[3], "content": "gone"}
        return sent


def weights(run: Recording) -> list[int]:
    return [CharacterCounter().count(message) for message in run.messages]


def test_an_unchanged_history_is_read_up_to_what_is_new():
    run = run_of("x" * 400, "y" * 800)
    one, two, three = (sum(weights(run)[:count]) for count in (2, 4, 6))
    bill = replay([run], POLICIES["no reduction"], 10_000, Scale())
    assert (bill.requests, bill.sent, bill.read) == (3, one + two + three, one + two)
    assert (bill.rewritten, bill.new, bill.breaks) == (0, three, 0)
    assert bill.cost == pytest.approx(0.1 * (one + two) + 1.25 * three)
    assert bill.fresh_cost == one + two + three
    assert bill.hits == pytest.approx((one + two) / (one + two + three))
    assert bill.mean_hits == pytest.approx((0 + one / two + two / three) / 3)
    assert bill.by_run == {"by-hand": pytest.approx(bill.cost)}


def test_what_stands_behind_a_change_is_written_again():
    run = run_of("x" * 400, "y" * 800, "z" * 40)
    weight = weights(run)
    gone = CharacterCounter().count({**run.messages[3], "content": "gone"})
    bill = replay([run], Fickle, 10_000, Scale())
    requests = [sum(weight[:2]), sum(weight[:4]), sum(weight[:6]) - weight[3] + gone]
    requests.append(requests[-1] + sum(weight[6:8]))
    assert bill.sent == sum(requests)
    assert bill.read == requests[0] + sum(weight[:3]) + requests[2]  # the third is as the second up to the result
    assert bill.rewritten == gone
    assert bill.breaks == 1


def sends(*requests: list[Chat]) -> list[Sent]:
    scale, sent = Scale(), [Sent()]
    for request in requests:
        sent.append(sent[-1].next(request, scale))
    return sent[1:]


def test_with_breakpoints_only_where_a_request_ended_can_be_read():
    messages = list(run_of("x" * 400, "y" * 400, "z" * 400).messages)
    changed = [*messages[:5], {**messages[5], "content": "gone"}, *messages[6:]]
    first, second, third, fourth = sends(messages[:4], messages[:6], changed[:8], [*changed, messages[0]])
    cache = Breakpoints()
    assert cache.read(first) == 0
    assert cache.read(second) == first.tokens[3]
    assert third.same == 5  # any prefix would read five messages
    assert cache.read(third) == third.tokens[3]
    assert cache.read(fourth) == third.tokens[7]


def test_if_no_request_ended_there_only_the_first_messages_are_read():
    messages = list(run_of("x" * 400, "y" * 400).messages)
    changed = [*messages[:3], {**messages[3], "content": "gone"}, *messages[4:6]]
    first, second = sends(messages[:4], changed)
    cache = Breakpoints()
    cache.read(first)
    assert second.same == 3
    assert cache.read(second) == second.tokens[1]


def test_one_more_breakpoint_before_the_last_round_is_found_again():
    messages = list(run_of("x" * 400, "y" * 400, "z" * 400).messages)
    gone = {**messages[5], "content": "gone"}
    first, second = sends(messages[:6], [*messages[:5], gone, *messages[6:8]])
    plain, more = Breakpoints(), Breakpoints(more=True)
    assert [cache.read(first) for cache in (plain, more)] == [0, 0]
    assert plain.read(second) == second.tokens[1]
    assert more.read(second) == second.tokens[3]


def test_a_breakpoint_more_than_20_blocks_back_is_not_found():
    talk: list[Chat] = [{"role": "user", "content": f"line {count}"} for count in range(40)]
    for behind, found in ((19, True), (20, False)):
        first, second = sends(talk[:10], talk[: 10 + behind])
        cache = Breakpoints()
        cache.read(first)
        assert cache.read(second) == (second.tokens[9] if found else second.tokens[1])


def test_a_request_over_the_limit_counts_as_avoidable_only_if_clearing_would_have_helped():
    run = run_of("x" * 2_000, "y" * 2_000, "z" * 2_000)
    small = replay([run], POLICIES["no reduction"], 100, Scale())
    assert (small.over, small.avoidable) == (3, 1)  # truncated and cleared, two rounds are still too much
    middle = replay([run], POLICIES["no reduction"], 1_100, Scale())
    assert (middle.over, middle.avoidable) == (1, 1)
    assert replay([run], POLICIES["ours"], 1_100, Scale()).over == 0


def test_the_tables_and_the_picture_hold_every_policy_at_every_limit():
    outcome = replay_all([run_of(*["x" * 9_000, "ok"] * 20)])
    assert len(costs_table(outcome).rows) == len(caches_table(outcome).rows) == len(LIMITS) * len({**POLICIES, **REST})
    assert [row[1] for row in rivals_table(outcome).rows] == ["no reduction", "reference", "LangChain"] * len(LIMITS)
    picture = ET.fromstring(draw(outcome))
    words = [text.text for text in picture.iter("{http://www.w3.org/2000/svg}text")]
    for name in (*POLICIES, *REST):
        assert words.count(name) == len(LIMITS)
    for row in costs_table(outcome).rows:
        assert row[2] in words


def test_a_table_is_the_same_on_a_page_and_in_a_terminal():
    outcome = replay_all([run_of("x" * 9_000, "y" * 9_000)])
    made = costs_table(outcome)
    marked = "\n".join(f"<!-- table: {name} -->\n<!-- end -->" for name in ("costs", "caches", "rivals"))
    page = filled(marked, outcome)
    assert filled(page, outcome) == page
    for row, line in zip(made.rows, [line for line in made.lines()[1:] if line], strict=True):
        assert line.split() == " ".join(row).split()
        assert f"| {' | '.join(row)} |" in page


def test_the_goal_holds_in_the_committed_table():
    """Wherever the recordings are not at hand, at least what is claimed stands on the page."""
    costs = {(row[0], row[1]): float(row[2].rstrip("k").replace(",", "")) for row in table(PAGE, "limit")[:15]}
    for limit in ("8k", "16k", "32k"):
        assert costs[limit, "ours"] == min(costs[limit, name] for name in POLICIES)


@pytest.mark.soak
def test_the_page_and_the_picture_are_what_the_recordings_come_to():
    file = corpus_file()
    if file is None:
        pytest.skip("these recordings are not on this machine")
    outcome = replay_all(read_corpus(file))
    stale = "stale: .venv/bin/python -m benchmarks.replay --write"
    assert PAGE.read_text(encoding="utf-8") == filled(PAGE.read_text(encoding="utf-8"), outcome), stale
    assert PICTURE.read_text(encoding="utf-8") == draw(outcome), stale
    for limit in LIMITS:
        best = min(outcome.bills[name, limit].cost for name in POLICIES)
        assert isinstance(outcome.bills["ours", limit], Bill)
        assert outcome.bills["ours", limit].cost == best
