"""What all tests share: sweeps say at the end of the run how much they covered; one PostgreSQL server serves all."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

# Nothing here judges the clock: a machine may be slow, or busy.
settings.register_profile("suture", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("suture")

COVERED = "covered"


@pytest.fixture
def covered(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Return a function that notes what a sweep covered, to be printed at the end of the run."""
    return lambda text: record_property(COVERED, text)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Any]:
    """Return a real PostgreSQL server; a test takes a schema of its own, and may kill it if it starts it again."""
    from tests.stores.servers import postgres_server

    with postgres_server() as server:
        yield server


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what the sweeps covered, also when they ran in other processes."""
    reports = terminalreporter.getreports("passed")
    lines = [text for report in reports for name, text in report.user_properties if name == COVERED]
    if lines:
        terminalreporter.section("covered")
        for line in lines:
            terminalreporter.write_line(str(line))
