"""The policies of the replay do what the programs do that they stand for."""

import pytest

from benchmarks.replay import POLICIES, REST, LangChain, Scale, _policies, corpus_file, read_corpus
from benchmarks.replay._policies import NoReduction, Ours, Reference
from suture.reduction.texts import persisted_text
from tests.benchmarks.runs import agent_requests, requests_of, run_of, texts_of

LONG, SHORT = "x" * 1_200, "ok"


@pytest.fixture
def _untruncated(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small limits, and yet room for long results."""
    monkeypatch.setattr(_policies, "scaled", lambda number, _: number)


def persisted(root: str, number: int) -> str:
    return persisted_text(f"{root}/clear/call_{number}", "read_file", "en")


def test_no_reduction_sends_everything():
    run = run_of(LONG, SHORT, LONG)
    sent = requests_of(NoReduction(run, 10, Scale()), run)
    assert [len(request) for request in sent] == [2, 4, 6, 8]
    assert sent[-1] == list(run.messages[:-1])


@pytest.mark.usefixtures("_untruncated")
def test_the_reference_replaces_all_old_results_also_short_ones_and_keeps_that():
    run = run_of(LONG, SHORT, LONG, LONG, SHORT)
    sent = requests_of(Reference(run, 800, Scale()), run)
    assert texts_of(sent[3]) == [LONG, SHORT, LONG]
    assert texts_of(sent[4]) == [persisted("/tmp", 0), persisted("/tmp", 1), persisted("/tmp", 2), LONG]
    assert texts_of(sent[5]) == [persisted("/tmp", 0), persisted("/tmp", 1), persisted("/tmp", 2), LONG, SHORT]


@pytest.mark.usefixtures("_untruncated")
def test_the_reference_clears_at_just_the_limit_and_langchain_and_ours_do_not():
    run = run_of(LONG, LONG, LONG, LONG)
    scale = Scale()
    whole = scale.total(run.messages[:-1])
    sent = {kind: requests_of(kind(run, whole, scale), run)[-1] for kind in (Reference, LangChain, Ours)}
    assert [text == LONG for text in texts_of(sent[Reference])] == [False, False, False, True]
    assert texts_of(sent[LangChain]) == texts_of(sent[Ours]) == [LONG] * 4
    assert [text == LONG for text in texts_of(requests_of(Ours(run, whole - 1, scale), run)[-1])] == [
        *[False] * 3,
        True,
    ]
    assert texts_of(requests_of(LangChain(run, whole - 1, scale), run)[-1]) == ["[cleared]", LONG, LONG, LONG]


def test_the_reference_and_ours_truncate_alike_but_for_the_path():
    run = run_of("a" * 400 + "b" * 400)
    limit = 1_600  # 50,000 characters at 160,000 tokens are 500 here
    theirs, ours = Reference(run, limit, Scale()), Ours(run, limit, Scale())
    cut = [texts_of(requests_of(policy, run)[-1])[0] for policy in (theirs, ours)]
    assert cut[0] == (
        "<persisted-output>\nOutput too large (800). Full output saved to: /tmp/trunc/call_0\n"
        f"Preview (first 250):\n{'a' * 250}\n\nPreview (last 250):\n{'b' * 250}\n\nUse read_file to view\n"
        "</persisted-output>"
    )
    assert cut[1] == cut[0].replace("/tmp/", f"{ours.settings.root_dir}/")


@pytest.mark.usefixtures("_untruncated")
def test_langchain_keeps_three_results_and_forgets_what_it_did():
    run = run_of(LONG, SHORT, LONG, LONG, SHORT)
    policy = LangChain(run, 800, Scale())
    sent = requests_of(policy, run)
    assert texts_of(sent[4]) == ["[cleared]", SHORT, LONG, LONG]
    assert texts_of(sent[5]) == ["[cleared]", "[cleared]", LONG, LONG, SHORT]
    assert policy.history == list(run.messages)


@pytest.mark.usefixtures("_untruncated")
def test_ours_leaves_short_results_alone():
    run = run_of(LONG, SHORT, LONG, LONG)
    policy = Ours(run, 800, Scale())
    root = policy.settings.root_dir or ""
    assert len(root) == len("/0123456789abcdef")
    assert texts_of(requests_of(policy, run)[-1]) == [persisted(root, 0), SHORT, persisted(root, 2), LONG]


@pytest.mark.usefixtures("_untruncated")
@pytest.mark.parametrize(("name", "cleared"), [("ours", [0, 0, 1, 2]), ("ours, frees >= 0.4 L", [0, 0, 0, 2])])
def test_with_a_gate_nothing_is_cleared_until_it_pays(name: str, cleared: list[int]):
    """The first result alone would free 130 tokens, and 0.4 of 500 are 200."""
    run = run_of("m" * 600, "h" * 1_600, "m" * 600)
    sent = requests_of({**POLICIES, **REST}[name](run, 500, Scale()), run)
    assert [sum("saved to" in text for text in texts_of(request)) for request in sent] == cleared


@pytest.mark.parametrize("name", ["ours", "ours, frees >= 0.4 L"])
@pytest.mark.parametrize("lengths", [(1_200,) * 12, (40, 2_000, 700, 30, 5_000) * 6, (90, 110, 130, 150) * 10])
def test_planning_from_what_is_settled_comes_to_the_same_as_planning_everything(name: str, lengths: tuple[int, ...]):
    run = run_of(*["y" * length for length in lengths])
    make = {**POLICIES, **REST}[name]
    quick, whole = make(run, 2_000, Scale()), make(run, 2_000, Scale())
    assert isinstance(whole, Ours)
    whole.incremental = False
    assert requests_of(quick, run) == requests_of(whole, run)


@pytest.mark.parametrize("name", ["ours", "ours, frees >= 0.4 L"])
def test_an_agent_with_tool_reduction_sends_what_the_replay_says(name: str):
    run = run_of(*["line\n" * count for count in (4, 300, 90, 2, 2_000, 70, 400, 1, 60, 800) * 4])
    policy = {**POLICIES, **REST}[name](run, 2_000, Scale())
    assert isinstance(policy, Ours)
    sent = requests_of(policy, run)
    assert any("Tool result saved to" in text for text in texts_of(sent[-1]))
    assert any("Output too large" in text for request in sent for text in texts_of(request))
    assert agent_requests(run, policy.settings, 2_000) == sent


def test_a_result_that_a_notice_would_make_longer_is_left_alone_by_the_replay_and_by_agents():
    run = run_of("x" * 640, "y" * 3_000)
    policy = Ours(run, 2_000, Scale())
    assert policy.settings.max_length_for_trunc == 625
    sent = requests_of(policy, run)
    assert [text[:1] for text in texts_of(sent[-1])] == ["x", "<"]
    assert agent_requests(run, policy.settings, 2_000) == sent


@pytest.mark.parametrize("limit", [8_000, 32_000])
def test_agents_send_what_the_replay_says_in_recorded_runs(limit: int):
    file = corpus_file()
    if file is None:
        pytest.skip("these recordings are not on this machine")
    runs = [run for run in read_corpus(file, 8) if sum(message["role"] == "user" for message in run.messages) == 1]
    assert len(runs) > 4
    for run in runs:
        policy = Ours(run, limit, Scale())
        pairs = zip(agent_requests(run, policy.settings, limit), requests_of(policy, run), strict=True)
        # Only places: no text of a recording is to stand in a report.
        assert [place for place, (one, other) in enumerate(pairs) if one != other] == [], run.id
