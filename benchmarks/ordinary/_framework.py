"""Run every case with one framework, each in a process of its own, and print how it went as JSON lines.

python benchmarks/ordinary/_framework.py MODULE
"""

import io
import json
import logging
import os
import select
import signal
import sys
import tempfile
import time
import traceback
import warnings
from importlib import import_module
from inspect import signature
from types import ModuleType
from typing import Any

from _case import RAN, Case, Facts
from _chapters import CHAPTERS
from _server import Provider, unreachable

WORKS, REFUSED, FAILS, ABSENT = "works", "refused", "fails", "–"
_SETTINGS = {"OPENAI_API_KEY": "sk-key-of-the-environment", "ANTHROPIC_API_KEY": "sk-ant-of-the-environment"}


def main(name: str, only: str = "") -> int:
    warnings.simplefilter("ignore")
    framework = import_module(name)
    for title, cases in CHAPTERS:
        for case in cases:
            if only in f"{title}: {case.what}":
                found = _in_a_child(framework, case) if _has(framework, case) else (ABSENT, "")
                print(json.dumps([title, case.what, *found]), flush=True)
    return 0


def _has(framework: ModuleType, case: Case) -> bool:
    program = getattr(framework, case.program, None)
    return program is not None and set(case.given) <= set(signature(program).parameters)


def _in_a_child(framework: ModuleType, case: Case) -> tuple[str, str]:
    """Run a case where it can leave nothing behind, and be ended."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.setpgid(0, 0)
        os.close(reading)
        try:
            found = _run(framework, case)
        except BaseException:  # noqa: BLE001
            found = (FAILS, "the case itself: " + traceback.format_exc()[-300:])
        os.write(writing, json.dumps(found).encode())
        os._exit(0)
    os.close(writing)
    ready, _, _ = select.select([reading], [], [], case.limit)
    data = os.read(reading, 65536) if ready else b""
    os.close(reading)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    if not data:
        return (FAILS, f"still waiting after {case.limit:.0f} s")
    return tuple(json.loads(data))


def _run(framework: ModuleType, case: Case) -> tuple[str, str]:
    provider = Provider(case.answer)
    log = io.StringIO()
    logging.basicConfig(stream=log, level=logging.WARNING, force=True)
    sys.stdout = sys.stderr = io.StringIO()
    for variable in list(os.environ):
        if variable.startswith(("OPENAI_", "ANTHROPIC_")) and "TRACING" not in variable:
            del os.environ[variable]
    os.environ.update(_SETTINGS, OPENAI_BASE_URL=f"{provider.url}/v1", ANTHROPIC_BASE_URL=provider.url)
    facts = Facts()
    with tempfile.TemporaryDirectory() as folder:
        given, sockets = _given(case, provider, folder)
        start = time.monotonic()
        try:
            facts.value = getattr(framework, case.program)(**given)
        except BaseException as error:  # noqa: BLE001
            facts.error = error
        facts.seconds = time.monotonic() - start
        del sockets
    facts.requests, facts.connections = list(provider.requests), provider.connections
    facts.ran, facts.logged = list(RAN), log.getvalue()
    return _judged(case, facts)


def _given(case: Case, provider: Provider, folder: str) -> tuple[dict[str, Any], list[Any]]:
    """Return the arguments, with the addresses and folders of this run in them, and what must stay open meanwhile."""
    sockets: list[Any] = []
    places = {"{folder}": folder, "{url}": provider.url}
    if "{unreachable}" in str(case.given):
        places["{unreachable}"], sockets = unreachable()
    given = dict(case.given)
    for name, value in given.items():
        for word, place in places.items():
            if isinstance(value, str):
                value = given[name] = value.replace(word, place)  # noqa: PLW2901
    return given, sockets


def _judged(case: Case, facts: Facts) -> tuple[str, str]:
    try:
        wrong = case.judge(facts)
    except Exception:  # noqa: BLE001
        wrong = "nothing was sent" if facts.error is None else "stopped"
    if not wrong:
        return (WORKS, "")
    if wrong.startswith(REFUSED):
        return (REFUSED, wrong.removeprefix(f"{REFUSED}: "))
    if facts.error is None:
        return (FAILS, wrong)
    name = type(facts.error).__name__
    if facts.refused(case.before):
        return (REFUSED, name)
    said = wrong if not wrong.startswith(("gave None", "stopped", "the tool never ran")) else ""
    return (FAILS, f"{name}, {said}" if said else name)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
