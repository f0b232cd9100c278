"""What a signal does to a chat: it stops the turn that goes on, and never the program in the middle of one."""

import os
import signal
import sys
from asyncio import AbstractEventLoop
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from threading import current_thread, get_ident, main_thread
from types import FrameType
from typing import Any, Self

__all__ = ["Signals"]

_SIGNALS = tuple(getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name))
_TAKEN, _A_MOMENT = 128, 0.05


class Signals:
    """What SIGINT, SIGTERM and SIGHUP do: as long as there is a taker it is told; else somebody sits at the prompt.

    Python notices a signal that comes just before the main thread begins to wait for a key only with that key. So the
    event loop, which is told of each, sends it once more if nothing came of it for a moment.

    >>> import asyncio
    >>> loop = asyncio.new_event_loop()
    >>> with Signals(lambda: None, loop) as signals, signals.sent_to(print):
    ...     signal.raise_signal(signal.SIGINT)
    2
    >>> loop.close()
    """

    def __init__(self, at_prompt: Callable[[], None], loop: AbstractEventLoop) -> None:
        self._at_prompt, self._loop = at_prompt, loop
        self._taker: Callable[[int], None] | None = None
        self._before: dict[int, Any] = {}
        self._told = self._tells = -1
        """A pipe of what came, as the system writes it, and of what was taken, in the order of time."""
        self._left: set[int] = set()
        self._waits = get_ident()

    def __enter__(self) -> Self:
        if current_thread() is not main_thread():
            return self  # nobody else may take signals
        self._told, self._tells = os.pipe()
        os.set_blocking(self._told, False)
        os.set_blocking(self._tells, False)
        for number in _SIGNALS:
            if signal.getsignal(number) is not signal.SIG_IGN:
                self._before[number] = signal.signal(number, self._arrive)
        self._told_before = signal.set_wakeup_fd(self._tells, warn_on_full_buffer=False)
        self._loop.call_soon_threadsafe(self._loop.add_reader, self._told, self._look)
        return self

    def __exit__(self, *_: object) -> None:
        if self._told < 0:
            return
        for number, before in self._before.items():
            signal.signal(number, before)
        os.close(signal.set_wakeup_fd(self._told_before))
        self._loop.call_soon_threadsafe(self._forget)

    @contextmanager
    def sent_to(self, taker: Callable[[int], None]) -> Generator[None]:
        """Let nothing be interrupted inside the block; `taker` is called with the number of the signal."""
        self._taker = taker
        try:
            yield
        finally:
            self._taker = None

    def _arrive(self, number: int, _: FrameType | None) -> None:
        with suppress(BlockingIOError):
            os.write(self._tells, bytes([number | _TAKEN]))
        if self._taker is not None:
            self._taker(number)
        elif number == signal.SIGINT:
            self._at_prompt()
        else:
            sys.exit(128 + number)

    def _look(self) -> None:
        """Note what came and was not taken, and look again in a moment."""
        for code in os.read(self._told, 4096):
            if code & _TAKEN:
                self._left.discard(code - _TAKEN)
            elif code in self._before:
                self._left.add(code)
        if self._left:
            self._loop.call_later(_A_MOMENT, self._send_again)

    def _send_again(self) -> None:
        for number in self._left:
            signal.pthread_kill(self._waits, number)

    def _forget(self) -> None:
        self._left.clear()
        self._loop.remove_reader(self._told)
        os.close(self._told)
