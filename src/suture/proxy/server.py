"""Serves the proxy until it is stopped, or for one command."""

import asyncio
import gc
import os
import signal
import socket
import sys
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import uvicorn
from msgspec.structs import replace

from suture.errors import ConfigError
from suture.proxy.app import Proxy
from suture.proxy.requests import DEFAULT_ROUTES, Route

VARIABLES = {
    "OPENAI_BASE_URL": "/openai",
    "OPENAI_API_BASE": "/openai",
    "ANTHROPIC_BASE_URL": "/anthropic",
    "ANTHROPIC_API_BASE": "/anthropic",
    "GOOGLE_GEMINI_BASE_URL": "/gemini",
    "GEMINI_API_BASE": "/gemini",
}
"""The variables from which SDKs, gateways and coding agents read a base URL, and the route for each."""
_SIGNALS = ("SIGTERM", "SIGHUP", "SIGUSR1", "SIGUSR2")
_LOCAL = "127.0.0.1,localhost"
_GRACE = 5


class _Server(uvicorn.Server):
    """A server that calls `ready` when it listens, and does not handle signals."""

    def __init__(self, app: Proxy, ready: Callable[[], object]) -> None:
        config = uvicorn.Config(
            app,
            http="httptools",
            ws="none",
            lifespan="on",
            log_config=None,
            log_level="critical",
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=False,
            timeout_keep_alive=75,
            timeout_graceful_shutdown=_GRACE,
            backlog=2048,
        )
        super().__init__(config)
        self._ready = ready

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start, and call `ready`."""
        await super().startup(sockets)
        self._ready()

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave signals alone."""
        yield

    def stop(self) -> None:
        """End when the open requests are answered; a second call ends it at once."""
        self.force_exit = self.should_exit
        self.should_exit = True


def bind(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to an address.

    >>> with bind("127.0.0.1", 0) as found:
    ...     found.getsockname()[0]
    '127.0.0.1'
    """
    try:
        family, kind, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with ExitStack() as stack:
            found = stack.enter_context(socket.socket(family, kind))
            found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            found.bind(address)
            stack.pop_all()
    except OSError as error:
        raise ConfigError(f"cannot listen on {host}, port {port}: {error.strerror or error}") from None
    return found


def serve(app: Proxy, host: str = "127.0.0.1", port: int = 8787, *, ready: Callable[[str], object] = print) -> None:
    """Serve the proxy until Ctrl-C or SIGTERM; call `ready` with its address when it can be reached."""
    found = bind(host, port)
    server = _Server(app, lambda: ready(address_of(found)))

    async def run() -> None:
        with suppress(NotImplementedError):  # Windows: Ctrl-C ends it there
            for number in (signal.SIGINT, signal.SIGTERM):
                asyncio.get_running_loop().add_signal_handler(number, server.stop)
        await server.serve(sockets=[found])

    _run(run())


def address_of(found: socket.socket) -> str:
    """Return the URL of a socket."""
    host, port, *_ = found.getsockname()
    return f"http://[{host}]:{port}" if found.family == socket.AF_INET6 else f"http://{host}:{port}"


def routes_from(environment: Mapping[str, str]) -> list[Route]:
    """Return the routes for a command: to the URLs that its variables name, otherwise to the providers.

    >>> routes_from({"OPENAI_BASE_URL": "https://openrouter.ai/api/v1"})[0].host
    'openrouter.ai'
    """
    routes: list[Route] = []
    for route in DEFAULT_ROUTES:
        names = [name for name, prefix in VARIABLES.items() if prefix == route.prefix and environment.get(name)]
        try:
            routes.append(replace(route, upstream=environment[names[0]]) if names else route)
        except ConfigError as error:
            raise ConfigError(f"{names[0]}: {error}") from None
    return routes


def environment_for(environment: Mapping[str, str], address: str) -> dict[str, str]:
    """Return the environment that makes a command send its requests to the proxy at `address`.

    >>> environment_for({}, "http://127.0.0.1:8787")["ANTHROPIC_BASE_URL"]
    'http://127.0.0.1:8787/anthropic'
    """
    ours = {name: f"{address}{prefix}" for name, prefix in VARIABLES.items()}
    for name in ("NO_PROXY", "no_proxy"):
        ours[name] = f"{environment[name]},{_LOCAL}" if environment.get(name) else _LOCAL
    return {**environment, **ours}


def run_command(app: Proxy, command: Sequence[str], environment: Mapping[str, str]) -> int:
    """Run a command whose requests go through the proxy; return its exit status, 128 + N after signal N."""
    return _run(_run_beside(app, command, environment))


async def _run_beside(app: Proxy, command: Sequence[str], environment: Mapping[str, str]) -> int:
    found = bind("127.0.0.1", 0)
    ready = asyncio.Event()
    server = _Server(app, ready.set)
    serving = asyncio.ensure_future(server.serve(sockets=[found]))
    waiting = asyncio.ensure_future(ready.wait())
    try:
        await asyncio.wait({serving, waiting}, return_when=asyncio.FIRST_COMPLETED)
        try:
            child = await asyncio.create_subprocess_exec(*command, env=environment_for(environment, address_of(found)))
        except OSError as error:
            raise ConfigError(f"{command[0]} cannot be run: {error.strerror or error}") from None
        with suppress(NotImplementedError):
            _pass_signals(child)
        status = await child.wait()
    finally:
        waiting.cancel()
        server.stop()
        await serving
    return 128 - status if status < 0 else status


def _pass_signals(child: asyncio.subprocess.Process) -> None:
    """Pass our signals on to the command. A terminal's Ctrl-C reaches it without us."""
    loop = asyncio.get_running_loop()

    def forward(number: int) -> None:
        with suppress(ProcessLookupError):
            child.send_signal(number)

    for name in _SIGNALS:
        if hasattr(signal, name):
            loop.add_signal_handler(getattr(signal, name), forward, getattr(signal, name))
    loop.add_signal_handler(signal.SIGINT, (lambda: None) if _has_terminal() else lambda: forward(signal.SIGINT))


def _has_terminal() -> bool:
    """Return whether the terminal sends its signals to our process group, and so to the command as well."""
    with suppress(OSError, ValueError, AttributeError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


def _run(work: Any) -> Any:
    gc.freeze()  # modules stay loaded anyway; the many objects of a request must not make the collector scan them again
    try:
        import uvloop  # noqa: PLC0415 - not available on every system
    except ImportError:
        return asyncio.run(work)
    return uvloop.run(work)
