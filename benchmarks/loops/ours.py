"""Suture: `ChatModelAgent` over the package's own `ScriptedModel`.

- `PatchToolCalls` and five middlewares that have a `before_model_rewrite_state`, a `wrap_model` and a
  `wrap_tool_call`: what the peers' have, one hook more, and a repair of the history that the peers lack.
- `noops`: the wrappers hand on what they wrap, a frame each. `reading`: they are generators and see everything
  that passes, as a peer's wrapper sees what it awaits.
- `journal`: each message and each call is written to SQLite, in a file. `events`: someone reads all events.
- An agent is made for each run, before the clock starts, as the model's script is its own. Whatever an agent
  does but once is therefore paid by every run here; the peers pay it once.
"""

import json
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

from _contest import ANSWER, NOOPS, Script, serve

from suture import ChatModelAgent, ChatModelAgentMiddleware, Message, ToolCall, tool
from suture.middleware import PatchToolCalls
from suture.models import ModelWrapper
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel


class _Through(ModelWrapper):
    def stream(self, request: Any) -> Any:
        return self.inner.stream(request)


class _Noop(ChatModelAgentMiddleware):
    def before_model_rewrite_state(self, state: Any, model_context: Any) -> None:
        return None

    async def wrap_model_call(self, request: Any, proceed: Any) -> Any:
        return await proceed(request)

    async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        return await proceed(call)


class _Looking(ModelWrapper):
    async def stream(self, request: Any) -> AsyncIterator[Any]:
        stream: Any = self.inner.stream(request)
        async with aclosing(stream):
            async for item in stream:
                yield item


class _Reading(_Noop):
    def wrap_model(self, model: Any, model_context: Any) -> Any:
        return _Looking(model)

    wrap_model_call: Any = ChatModelAgentMiddleware.wrap_model_call  # the reference's hook reads the stream instead

    async def wrap_tool_call(self, call: Any, proceed: Any) -> Any:
        result = await proceed(call)
        return result if result.text is not None else None


_scripts: list[Script] = []
_runs = count()
_middlewares: dict[str, list[ChatModelAgentMiddleware]] = {
    "bare": [],
    "noops": [PatchToolCalls(), *(_Noop() for _ in range(NOOPS))],
    "reading": [PatchToolCalls(), *(_Reading() for _ in range(NOOPS))],
}


@tool
async def step(n: int) -> str:
    """Make one step."""
    return _scripts[0].run(n)


def _native(n: int) -> Message:
    call = ToolCall(id=f"call_{n}", name="step", arguments=json.dumps({"n": n}))
    return Message(role="assistant", tool_calls=(call,))


def _chat(n: int) -> dict[str, Any]:
    function = {"name": "step", "arguments": json.dumps({"n": n})}
    calls = [{"id": f"call_{n}", "type": "function", "function": function}]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def _replies(wire: str, script: Script) -> list[Any]:
    if wire == "message":
        replies: list[Any] = [_native(n) for n in range(script.steps)]
        replies.append(Message(role="assistant", content=ANSWER))
    else:
        replies = [_chat(n) for n in range(script.steps)]
        replies.append({"role": "assistant", "content": ANSWER})

    def stamped(index: int) -> Callable[[Any], Any]:
        reply = replies[index]

        def function(_: Any) -> Any:
            script.stamp(index)
            return reply

        return function

    # Only the few replies that are stamped are functions of the request.
    marked = {index: stamped(index) for index in script.marks}
    return [marked.get(index, reply) for index, reply in enumerate(replies)]


def _prepare(wire: str, kind: str, script: Script, *, store: SQLiteStore | None = None, events: bool = False) -> Any:
    agent = ChatModelAgent(
        name="bench",
        model=ScriptedModel(_replies(wire, script), wire=wire),
        tools=[step],
        middlewares=_middlewares[kind],
        max_iterations=script.steps + 1,
        checkpoint_store=store,
    )
    checkpoint = f"run-{next(_runs)}" if store is not None else None

    async def run() -> object:
        _scripts[:] = [script]
        if not events:
            return (await agent.run("go", checkpoint_id=checkpoint)).output
        running = agent.stream("go", checkpoint_id=checkpoint)
        async for _ in running:
            pass
        return (await running.result()).output

    return run


def _main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        store = SQLiteStore(str(Path(folder) / "journal.db"))
        variants: dict[str, Any] = {}
        for wire in ("message", "openai-chat"):
            for kind in _middlewares:
                variants[f"{wire}, {kind}"] = partial(_prepare, wire, kind)
            variants[f"{wire}, journal"] = partial(_prepare, wire, "noops", store=store)
            variants[f"{wire}, events"] = partial(_prepare, wire, "noops", events=True)
        serve("ours", version("suture"), variants)


if __name__ == "__main__":
    _main()
