"""What the guests' tests share: a strict provider, and event loops that a framework leaves behind are closed."""

import asyncio
from collections.abc import Iterator
from threading import current_thread, main_thread

import pytest

from tests.guests.strict_provider import StrictServer, strict_server


def pytest_configure(config: pytest.Config) -> None:
    """Do not blame a test for the sockets that a framework leaves open where a stream is left in the middle."""
    config.addinivalue_line("filterwarnings", "ignore::pytest.PytestUnraisableExceptionWarning")


class Keeping(asyncio.DefaultEventLoopPolicy):
    """Remembers the main thread's loops: some `run_sync` leave theirs to the garbage collector, which complains."""

    def __init__(self) -> None:
        super().__init__()
        self.loops: list[asyncio.AbstractEventLoop] = []

    def new_event_loop(self) -> asyncio.AbstractEventLoop:
        loop = super().new_event_loop()
        if current_thread() is main_thread():
            self.loops.append(loop)
        return loop


@pytest.fixture(scope="session")
def policy() -> Iterator[Keeping]:
    before = asyncio.get_event_loop_policy()
    keeping = Keeping()
    asyncio.set_event_loop_policy(keeping)
    yield keeping
    asyncio.set_event_loop_policy(before)


@pytest.fixture(autouse=True)
def _left_loops(policy: Keeping) -> Iterator[None]:
    yield
    left = [loop for loop in policy.loops if not loop.is_closed() and not loop.is_running()]
    policy.loops.clear()
    for loop in left:
        loop.close()
    if left:
        asyncio.set_event_loop(None)


@pytest.fixture(scope="session")
def strict() -> Iterator[StrictServer]:
    with strict_server() as server:
        yield server
