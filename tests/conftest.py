"""What all tests share: sweeps say at the end of the run how much they covered; one PostgreSQL server serves all."""

import gc
import importlib.util
import os
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings

from tests.lacking import leave_out

# Nothing here judges the clock: a machine may be slow, or busy. `make soak` asks for many more examples.
settings.register_profile(
    "suture",
    max_examples=int(os.environ.get("SUTURE_EXAMPLES", "25")),
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("suture")

COVERED = "covered"
END = "-----END CERTIFICATE-----"


def pytest_configure() -> None:
    """Let clients load one certificate instead of all: no test speaks TLS, and loading them takes 25 ms a client."""
    if certifi := importlib.util.find_spec("certifi"):
        bundle = Path(str(certifi.origin)).with_name("cacert.pem").read_text(encoding="utf-8")
        first = Path(tempfile.gettempdir(), "suture-tests-certificate.pem")
        draft = first.with_suffix(f".{os.getpid()}")
        draft.write_text(bundle[: bundle.index(END) + len(END)] + "\n", encoding="utf-8")
        draft.replace(first)
        os.environ["SSL_CERT_FILE"] = str(first)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        leave_out(item)


def pytest_collection_finish() -> None:
    """Let the garbage collector leave alone what lives to the end: with all tests in memory a collection takes long."""
    gc.collect()
    gc.freeze()


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
