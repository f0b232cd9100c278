"""`examples/human_approval.py`: the run is started in one process and answered in another."""

import stat
from pathlib import Path

import pytest

from tests.examples.program import run_example

WAITS = 'waits for: pay {"number": 7, "euros": 120}'


@pytest.fixture
def store(tmp_path: Path) -> str:
    return str(tmp_path / "approvals.db")


def start(store: str) -> list[str]:
    return run_example("human_approval.py", "--store", store, "start").splitlines()


def test_the_run_stops_before_the_tool_that_needs_a_yes(store: str):
    assert start(store)[:2] == ["  [find_invoice 7 runs]", WAITS]
    assert stat.S_IMODE(Path(store).stat().st_mode) == 0o600


def test_a_yes_from_another_process_runs_that_tool_and_no_other_again(store: str):
    start(store)
    said = run_example("human_approval.py", "--store", store, "answer", "yes").splitlines()
    assert said == ["  [pay 7 runs]", "finished: Invoice 7 is paid."]


def test_a_no_is_told_to_the_model_with_its_reason(store: str):
    start(store)
    said = run_example("human_approval.py", "--store", store, "answer", "no", "--reason", "not before Friday")
    assert said.splitlines() == [
        "finished: It did not work. Tool call pay with id call_2 was not run - it was rejected.",
        "Reason: not before Friday",
    ]


def test_without_an_argument_the_answer_is_asked_for_until_there_is_one(store: str):
    start(store)
    said = run_example("human_approval.py", "--store", store, "answer", typed="perhaps\nYES\n")
    assert said.count('pay {"number": 7, "euros": 120}: yes or no? ') == 2
    assert said.endswith("  [pay 7 runs]\nfinished: Invoice 7 is paid.\n")


def test_a_run_that_nobody_answered_waits_on(store: str):
    start(store)
    assert run_example("human_approval.py", "--store", store, "answer", status=1).endswith("No answer. It waits on.\n")
    assert "Invoice 7 is paid" in run_example("human_approval.py", "--store", store, "answer", "yes")


def test_a_finished_run_cannot_be_answered_again(store: str):
    start(store)
    run_example("human_approval.py", "--store", store, "answer", "yes")
    said = run_example("human_approval.py", "--store", store, "answer", "yes", status=1)
    assert said.startswith("checkpoint 'invoice-7' has finished")
    assert "pay" not in said


def test_starting_again_begins_anew(store: str):
    start(store)
    assert start(store)[:2] == ["  [find_invoice 7 runs]", WAITS]
