"""How long a model waits: for a connection, through a silence, for a whole reply.

A silence is measured where the bytes are, so a sign of life such as a comment in the stream ends it. The SDKs' HTTP
clients measure it; where they cannot, it is measured between events.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from math import inf
from time import monotonic
from typing import Any, NamedTuple

from suture.errors import ConfigError, ModelTimeoutError
from suture.kernel import closing

CONNECT = 5.0
"""How many seconds a connection may take by default, as in the SDKs."""
SILENCE = 600.0
"""How many seconds a silence may last by default, as in the SDKs."""
_NO_CONNECTION = frozenset(("ConnectTimeout", "ConnectTimeoutError", "ConnectionTimeoutError"))
_NO_BYTES = frozenset(("ReadTimeout", "ReadTimeoutError", "WriteTimeout", "PoolTimeout", "APITimeoutError"))
_MEANINGS = {
    "connect_timeout": ("there was no connection", "how long connecting may take"),
    "timeout": ("nothing came", "how long a silence may last"),
    "total_timeout": ("the reply was not whole", "how long a whole reply may take"),
}
"""What each setting limits: what has not happened when it runs out, and what it says."""


class Limits(NamedTuple):
    """The seconds that a request waits; `None` is no end.

    >>> Limits().silence
    600.0
    """

    connect: float | None = CONNECT
    silence: float | None = SILENCE
    total: float | None = None

    def with_silence(self, seconds: float | None) -> "Limits":
        """Return the limits of a request with a silence of its own.

        >>> Limits().with_silence(2)
        Limits(connect=2, silence=2, total=None)
        """
        check_seconds("timeout", seconds)
        within = [each for each in (self.connect, seconds) if each is not None]
        return self._replace(silence=seconds, connect=min(within, default=None))


def check_seconds(name: str, seconds: Any) -> None:
    """Raise `ConfigError` if a setting is no number of seconds."""
    if seconds is not None and not (type(seconds) in {int, float} and 0 < seconds < inf):
        raise ConfigError(f"{name} counts seconds, more than 0, or is None for no end; got {seconds!r}")


def read_limits(settings: Mapping[str, Any]) -> Limits:
    """Return the limits that a model's settings set; a connection takes no longer than a silence, unless it says so.

    >>> read_limits({"timeout": 2}), read_limits({"timeout": 2, "connect_timeout": 30, "total_timeout": 60})
    (Limits(connect=2, silence=2, total=None), Limits(connect=30, silence=2, total=60))
    """
    for name in _MEANINGS:
        check_seconds(name, settings.get(name))
    limits = Limits(total=settings.get("total_timeout")).with_silence(settings.get("timeout", SILENCE))
    return limits._replace(connect=settings["connect_timeout"]) if "connect_timeout" in settings else limits


def find_timeout(error: BaseException | None) -> str:
    """Return the setting whose limit an SDK's exception says was passed; empty if it says something else.

    >>> find_timeout(TimeoutError()), find_timeout(ValueError())
    ('timeout', '')
    """
    found = ""
    while error is not None:
        names = {kind.__name__ for kind in type(error).__mro__}
        if names & _NO_CONNECTION:
            return "connect_timeout"
        if names & _NO_BYTES or isinstance(error, TimeoutError):
            found = "timeout"
        error = error.__cause__
    return found


def innermost(error: BaseException) -> BaseException:
    """Return the exception at the beginning of the chain that an SDK made of it."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def ran_out(name: str, seconds: float | None, provider: str, words: str = "") -> ModelTimeoutError:
    """Return the error for a limit that was passed; `words` are those of the SDK.

    >>> print(ran_out("timeout", 600.0, "anthropic"))
    anthropic: nothing came for 600 seconds; timeout= says how long a silence may last
    """
    what, meaning = _MEANINGS[name]
    link = "for" if name == "timeout" else "after"
    time = "in time" if seconds is None else f"{link} {seconds:g} seconds"
    more = f" ({words})" if words else ""
    return ModelTimeoutError(f"{what} {time}{more}; {name}= says {meaning}", provider=provider)


async def limit_time(
    stream: AsyncGenerator[Any], silence: float | None, total: float | None, provider: str
) -> AsyncGenerator[Any]:
    """Yield the items of `stream`; raise if one takes longer than `silence`, or waiting for all longer than `total`."""
    left = total
    async with closing(stream) as items:
        while True:
            is_last = left is not None and (silence is None or left <= silence)
            began = monotonic()
            scope = asyncio.timeout(left if is_last else silence)
            try:
                async with scope:
                    item = await anext(items)
            except StopAsyncIteration:
                return
            except TimeoutError:
                if not scope.expired():
                    raise  # not from this timeout
                name, seconds = ("total_timeout", total) if is_last else ("timeout", silence)
                raise ran_out(name, seconds, provider) from None
            if left is not None:
                left = max(0.0, left - (monotonic() - began))
            yield item
