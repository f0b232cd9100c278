"""What all tests share: sweeps say at the end of the run how much they covered."""

import os
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, settings

# Nothing here judges the clock: a machine may be slow, or busy. `make soak` asks for many more examples.
EXAMPLES = int(os.environ.get("SUTURE_EXAMPLES", "30"))
settings.register_profile("suture", deadline=None, max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suture")

COVERED = "covered"


@pytest.fixture
def covered(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Return a function that notes what a sweep covered, to be printed at the end of the run."""
    return lambda text: record_property(COVERED, text)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the sweeps covered, also when they ran in other processes."""
    reports = terminalreporter.getreports("passed")
    lines = [text for report in reports for name, text in report.user_properties if name == COVERED]
    if lines:
        terminalreporter.section("covered")
        for line in lines:
            terminalreporter.write_line(str(line))
