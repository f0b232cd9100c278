"""The commands `suture view`, `worker`, `recover`, `proxy` and `run`."""

import asyncio
import atexit
import logging
import os
import signal
import sys
from argparse import Namespace
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from suture._text import visible
from suture.cli.files import open_source
from suture.cli.output import Outputs, keep_apart
from suture.cli.refusals import Refusal, complain, refusing, show
from suture.profiles import get_profile
from suture.stores import SQLiteStore, StoreError

if TYPE_CHECKING:
    from suture.agent import ChatModelAgent
    from suture.proxy import Proxy, Route

_SQLITE = b"SQLite format 3\0"


def view(asked: Namespace) -> int:
    """Write a page of a history, or of the runs in a store, to a file, or serve it on this machine until Ctrl-C."""
    from suture.viewer import serve, serve_store, show_history, show_run, write_page

    def read() -> list[Any]:
        shown: list[Any] = []
        if is_store:
            with SQLiteStore(asked.file) as store, asyncio.Runner() as runner:
                shown += [runner.run(show_run(store, name)) for name in runner.run(store.runs())]
        else:
            with open_source(asked.file, asked) as source:
                for conversation in source:
                    messages, wire = conversation.sendable().take(asked.wire)
                    name = conversation._replace(file=asked.file).name
                    shown.append(show_history(messages, name=name, wire=wire, profile=asked.profile))
                source.tell_bad()
        if not shown:
            raise Refusal(f"there is no {'run in this store' if is_store else 'conversation in it'}", asked.file)
        return shown

    def open_store() -> SQLiteStore:
        if not Path(asked.file).exists():  # opening it would create a new one
            raise StoreError(f"{asked.file} is gone")
        return SQLiteStore(asked.file)

    keep_apart("page", None if asked.output == "-" else asked.output, None, asked.file)
    is_store = False
    with refusing(asked.file, verb="read"):
        if asked.file != "-" and Path(asked.file).is_file():  # a pipe can be read only once
            with Path(asked.file).open("rb") as file:
                is_store = file.read(len(_SQLITE)) == _SQLITE
        page = "" if is_store and asked.output is None else write_page(read())
    if asked.output is not None:
        with Outputs() as outputs:
            outputs.open(asked.output).write(page.encode())
            outputs.publish()
        return 0
    with refusing(asked.file, verb="served"):
        server = serve_store(open_store, port=asked.port) if is_store else serve(lambda: page, port=asked.port)
    with server, suppress(KeyboardInterrupt, SystemExit):  # Ctrl-C or SIGTERM
        show(sys.stdout, f"http://127.0.0.1:{server.server_port}/ shows {asked.file}; Ctrl-C ends it\n")
        server.serve_forever()
    return 0


# --- agents ---------------------------------------------------------------------------------------


def work(asked: Namespace) -> int:
    """Run a worker until Ctrl-C or SIGTERM; it finishes the steps it has begun and takes no more."""
    from suture.integrations.temporal import Client, make_worker

    statuses: list[int] = []
    atexit.register(_leave, statuses)  # registered first, so it runs after what the agent's module registers
    (agent,), deps = _import_agents(asked, asked.agent)

    async def serve() -> None:
        try:
            client = await Client.connect(asked.address, namespace=asked.namespace)
        except RuntimeError as error:
            raise Refusal(f"there is no Temporal server: {error}", f"--address {asked.address}") from None
        worker = make_worker(agent, client, task_queue=asked.task_queue, deps=deps)
        loop, stopping = asyncio.get_running_loop(), list[asyncio.Task[None]]()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, lambda: stopping.append(loop.create_task(worker.shutdown())))
        show(sys.stdout, f"working for {asked.agent} on task queue {worker.task_queue}\n")
        await worker.run()

    asyncio.run(serve())
    statuses.append(0)
    return 0


def _leave(statuses: Sequence[int]) -> None:
    """End the process before the interpreter shuts down.

    A thread of Temporal's that has just woken the event loop may still be inside Python, and would abort the shutdown.
    """
    if statuses:
        logging.shutdown()
        sys.stdout.flush()
        os._exit(statuses[0])


def recover_runs(asked: Namespace) -> int:
    """Resume every run of these agents whose process is gone, and print its outcome."""
    from suture.kernel import Outcome
    from suture.sessions import recover

    agents, deps = _import_agents(asked, *asked.agents)
    for agent in agents:
        if agent.checkpoint_store is None:
            raise Refusal(f"agent {agent.name!r} has no checkpoint_store", "recover")
    stores = {id(agent.checkpoint_store): agent.checkpoint_store for agent in agents}

    async def resume() -> int:
        failed = 0
        for store in stores.values():
            crew = [agent for agent in agents if agent.checkpoint_store is store]
            for result in await recover(crew, store, deps=deps):
                show(sys.stdout, visible(f"{result.checkpoint_id}: {result.outcome.value}") + "\n")
                failed += result.outcome is Outcome.FAILED
        return 1 if failed else 0

    return asyncio.run(resume())


def _import_agents(asked: Namespace, *names: str) -> "tuple[list[ChatModelAgent[Any, Any]], Any]":
    """Return the agents of these names, and the object for `--deps`."""
    from suture.agent import ChatModelAgent
    from suture.cli.talk import import_named

    agents: list[Any] = [import_named(name, asked.command) for name in names]
    for name, agent in zip(names, agents, strict=True):
        if not isinstance(agent, ChatModelAgent):
            raise Refusal(f"{name} is not an agent but a {type(agent).__name__}", asked.command)
    return agents, import_named(asked.deps, "--deps") if asked.deps else None


# --- the proxy ------------------------------------------------------------------------------------


def run_proxy(asked: Namespace) -> int:
    """Serve until Ctrl-C or SIGTERM."""
    proxy = _load_proxy()
    app = _make_proxy(proxy, asked, [] if asked.upstream else proxy.DEFAULT_ROUTES)

    def announce(address: str) -> None:
        for route in app.routes:
            complain(f"{address}{route.prefix} -> {route.upstream}")

    proxy.serve(app, asked.host, asked.port, ready=announce)
    return 0


def run_command(asked: Namespace) -> int:
    """Run a command behind a proxy of its own, and return its exit status."""
    proxy = _load_proxy()
    command: Sequence[str] = asked.arguments[1:] if asked.arguments[:1] == ["--"] else asked.arguments
    if not command:
        raise Refusal("there is no command to run; as in: suture run -- python agent.py")
    return proxy.run_command(_make_proxy(proxy, asked, proxy.routes_from(os.environ)), command, os.environ)


def _load_proxy() -> Any:
    from suture import proxy

    logging.basicConfig(level=logging.WARNING, format="suture: %(message)s")
    return proxy


def _make_proxy(proxy: Any, asked: Namespace, known: "Sequence[Route]") -> "Proxy":
    """Return a proxy with the known routes and those of the options; an option without a path is for all routes."""

    def split(text: str) -> tuple[str, str]:
        path, sign, value = text.partition("=")  # [PATH=]VALUE
        return (path.rstrip("/"), value) if sign and path.startswith("/") else ("", text)

    routes: dict[str, Route] = {route.prefix: route for route in known}
    routes |= {prefix: proxy.Route(prefix=prefix, upstream=url) for prefix, url in map(split, asked.upstream)}
    for option in ("profile", "clear", "compact"):
        for prefix, value in map(split, getattr(asked, option)):
            if prefix and prefix not in routes:
                raise Refusal(f"nothing goes to {prefix}; give its --upstream", f"--{option}")
            for name, route in routes.items():
                if prefix in ("", name):
                    routes[name] = _set_rule(route, option, value)
    records, lessons = proxy.Records(asked.report), None if asked.learn is None else proxy.Lessons(asked.learn)
    timing = proxy.Timing(idle=asked.timeout, max_body=asked.max_bytes)
    shared = {"records": records, "lessons": lessons, "timing": timing, "language": asked.language}
    return proxy.Proxy(list(routes.values()), **shared)


def _set_rule(route: "Route", option: str, value: str) -> "Route":
    if option == "profile":
        return replace(route, profile=get_profile(value))
    if not value.isdecimal() or not int(value):
        raise Refusal(f"expected a number of tokens, found {value!r}", f"--{option}")
    return replace(route, reduction=route.reduction._replace(**{option: int(value)}))
