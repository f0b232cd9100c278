"""The process that holds a local model: a program of its own, which `_local_engine.py` starts and talks to.

Why not a thread: loading a model keeps Python's lock to its end, so that no event loop would turn meanwhile; the
engine writes to standard error as it likes; and a fault of it ends its process, which must not be the user's.

One JSON object a line comes in: `{"id", "payload", "fallback"}` asks, `{"cancel"}` calls off what was asked under an
id. Requests are served one after another. For each, `{"id", "text"}` goes out as it is made and `{"id", "end",
"usage"}` or `{"id", "error"}` at last. Before all, `{"loaded"}` goes out, or `{"fatal"}` for a model that cannot be
loaded. When nothing can come in any more, because the program that asks has ended in whichever way, so does this one.
"""

import json
import os
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from queue import SimpleQueue
from secrets import token_hex
from threading import Thread
from typing import Any

__all__ = ["Desk", "serve"]

_REFUSED = "invalid_request_error"
_STEP = 64
"""How many tokens of a prompt are read between two looks at what was called off."""


class Desk:
    """What was asked and is not served yet, and what was called off.

    >>> desk = Desk()
    >>> desk.take({"id": 1, "payload": {}})
    >>> desk.take({"cancel": 1})
    >>> desk.next()["id"], desk.is_off(1)
    (1, True)
    """

    def __init__(self) -> None:
        self._asked: SimpleQueue[Mapping[str, Any]] = SimpleQueue()
        self._off: set[int] = set()
        self._served = 0

    def take(self, line: Mapping[str, Any]) -> None:
        """Take what came in; ids only grow, so calling off what was served means nothing."""
        number = line.get("cancel")
        if number is None:
            self._asked.put(line)
        elif number > self._served:
            self._off.add(number)

    def next(self) -> Mapping[str, Any]:
        """Wait for the next request."""
        return self._asked.get()

    def is_off(self, number: int) -> bool:
        """Tell whether a request was called off."""
        return number in self._off

    def done(self, number: int) -> None:
        """Forget a request."""
        self._served = number
        self._off.discard(number)


def serve(ask: Callable[..., object], request: Mapping[str, Any], desk: Desk, tell: Callable[..., None]) -> None:
    """Serve one request; a constraint that the engine refuses is replaced by the request's `fallback`.

    `ask(payload, callback)` is the engine: a callback that returns `True` stops it.

    >>> desk, told = Desk(), []
    >>> def echo(payload, callback):
    ...     callback({"choices": [{"delta": {"content": payload["say"]}, "finish_reason": "stop"}]})
    >>> serve(echo, {"id": 1, "payload": {"say": "hi"}}, desk, lambda **event: told.append(event))
    >>> told
    [{'id': 1, 'text': 'hi'}, {'id': 1, 'end': 'stop', 'usage': {}}]
    """
    number, payload = request["id"], request["payload"]
    ending = _answer(ask, number, payload, desk, tell)
    fallback = request.get("fallback")
    if fallback is not None and ending.get("error", {}).get("type") == _REFUSED:
        ending = _answer(ask, number, {**payload, "response_format": fallback}, desk, tell)
    desk.done(number)
    tell(id=number, **ending)


def _answer(
    ask: Callable[..., object], number: int, payload: Mapping[str, Any], desk: Desk, tell: Callable[..., None]
) -> dict[str, Any]:
    """Tell the text as it is made; return how it ended."""
    ending: dict[str, Any] = {"end": "", "usage": {}}

    def take(chunk: Mapping[str, Any]) -> bool:
        if desk.is_off(number):
            return True
        if "error" in chunk:
            ending["error"] = chunk["error"]
        ending["usage"] = chunk.get("usage") or ending["usage"]
        for choice in chunk.get("choices", ()):
            ending["end"] = choice.get("finish_reason") or ending["end"]
            text = choice["delta"].get("content")
            if text:
                tell(id=number, text=text)
        return False

    try:
        if not desk.is_off(number):
            ask(payload, take)
    except (ValueError, RuntimeError) as error:
        ending["error"] = {"message": str(error), "type": _REFUSED}
    return ending


def _load(path: str, threads: int, context_size: int) -> Any:
    engine = import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path = path
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_ctx, params.n_batch, params.n_ubatch = context_size, _STEP, _STEP
    params.n_parallel, params.cache_ram_mib = 1, 0
    params.use_jinja, params.warmup, params.fit_params, params.verbosity = True, False, False, -1
    # It opens a port on the loopback in any case. Nobody knows the key, so nobody is served there.
    params.ui, params.endpoint_slots, params.api_keys = False, False, [token_hex(32)]
    return engine.Server(params)


def _work(settings: Mapping[str, Any], desk: Desk, tell: Callable[..., None]) -> None:
    try:
        try:
            server = _load(**settings)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is told
            tell(fatal=f"{type(error).__name__}: {error}")
            return
        tell(loaded=True)
        while True:
            serve(server.handle_chat_completions, desk.next(), desk, tell)
    finally:
        os._exit(1)


def _main() -> None:
    out = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the engine prints is not for the one who asks

    def tell(**event: Any) -> None:
        out.write(json.dumps(event).encode() + b"\n")
        out.flush()

    desk = Desk()
    Thread(target=_work, args=(json.loads(sys.argv[1]), desk, tell), daemon=True).start()
    for line in sys.stdin.buffer:
        desk.take(json.loads(line))
    os._exit(0)


if __name__ == "__main__":
    _main()
