"""The process that holds a local model: llama.cpp's own HTTP server on the loopback, until standard input ends.

It has a process of its own because loading a model holds Python's lock, and because a fault of the engine must not end
the user's program. Settings come in as a line of JSON; where it listens, or why it does not, goes out as another.
"""

import json
import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

_STEP = 64
"""How many tokens of a prompt are read between two looks at what was cancelled."""


def _load(path: str, threads: int, context_size: int, key: str, template: str) -> Any:
    engine = import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path = path
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_ctx, params.n_batch, params.n_ubatch = context_size, _STEP, _STEP
    params.n_parallel, params.cache_ram_mib = 1, 0
    params.use_jinja, params.warmup, params.fit_params, params.verbosity = True, False, False, -1
    params.ui, params.endpoint_slots = False, False
    if template:
        params.chat_template = Path(template).read_text(encoding="utf-8")
    return engine.Server(params)


def _main() -> None:
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what the engine prints is not for the one who reads the address
    try:
        server = _load(**json.loads(sys.stdin.readline()))
        answer = {"address": server.listening_address}
    except Exception as error:  # noqa: BLE001 - whatever it is, the user is told
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), file=out, flush=True)
    if "address" in answer:
        sys.stdin.read()  # ends with the program that asks, in whichever way that ends
    os._exit(0)


if __name__ == "__main__":
    _main()
