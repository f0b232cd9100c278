"""`examples/long_log.py`: a log of 50 MB, read through a context of 8,000 tokens."""

import re

import pytest

from tests.examples.program import run_example

FAILURES = (12_345, 98_765, 200_001, 333_333, 471_100, 555_555, 640_404, 712_345, 790_000)
"""The lines with a failed payment; the lock is told of two lines above."""


@pytest.fixture(scope="module")
def shown() -> str:
    return run_example("long_log.py")


def test_the_log_is_far_larger_than_the_context(shown: str):
    assert shown.splitlines()[0] == "the log has 50 MB, the context 8,000 tokens"


def test_no_request_is_larger_than_the_context(shown: str):
    found = re.search(r"^(\d+) requests, the largest of ([\d,]+) tokens; (\d+) files kept$", shown, re.MULTILINE)
    assert found
    requests, largest, kept = (int(number.replace(",", "")) for number in found.groups())
    assert requests == len(FAILURES) + 3
    assert 1_000 < largest < 8_000
    assert kept > 1


def test_old_results_are_cleared_each_time_there_are_too_many_tokens(shown: str):
    cleared = re.findall(r"^  (\d+) old results left out: ([\d,]+) -> ([\d,]+) tokens to send$", shown, re.MULTILINE)
    assert len(cleared) >= 2
    for results, before, after in cleared:
        assert int(results) > 1
        assert int(before.replace(",", "")) > 6_000 > 2 * int(after.replace(",", ""))


def test_the_log_is_kept_as_it_was(shown: str):
    assert shown.splitlines()[-1] == "the log is kept as it was: yes"


def test_the_answer_is_right(shown: str):
    jobs = ", ".join(sorted({f"nightly-{(line - 2) % 7}" for line in FAILURES}))
    assert jobs == "nightly-0, nightly-2, nightly-5, nightly-6"
    assert f"nightly-6. 9 payments failed, each behind a lock held by one of: {jobs}.\n" in shown
    assert f"model: Failures in lines {', '.join(f'{line:07d}' for line in FAILURES)}.\n" in shown
