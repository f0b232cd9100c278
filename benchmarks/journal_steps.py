"""Run agents with a journal and without one, each run in a file of its own: `python journal_steps.py DIRECTORY`.

A variant is `kind|journal`. It runs in `.venv-guests`, which has all three frameworks.
"""

import json
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from functools import partial
from importlib.metadata import version
from itertools import count
from pathlib import Path
from typing import Any

os.environ["LANGSMITH_TRACING"] = os.environ["LANGSMITH_TRACING_V2"] = "false"

from agents import Agent, Model, ModelResponse, RunConfig, Runner, SQLiteSession, Usage, function_tool
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool as langchain_tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from loops._contest import ANSWER, Script, serve
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

from suture import ChatModelAgent, Message, ToolCall, tool
from suture.stores import SQLiteStore
from suture.testing import ScriptedModel

Run = Callable[[], Awaitable[object]]
_files = count()


def _prepare_ours(path: Path | None, script: Script) -> Run:
    calls = [Message.assistant(tool_calls=[ToolCall(f"c{n}", "weather", f'{{"n": {n}}}')]) for n in range(script.steps)]
    script.replies = [*calls, Message.assistant(ANSWER)]

    @tool
    async def weather(n: int) -> str:
        """Say how the weather is."""
        return script.run(n)

    async def run() -> object:
        store = None if path is None else SQLiteStore(path)
        model = ScriptedModel(lambda _: script.reply())
        agent = ChatModelAgent(model=model, tools=[weather], max_iterations=script.steps + 1, checkpoint_store=store)
        result = await agent.run("go", checkpoint_id=None if store is None else "run")
        if store is not None:
            store.close()
        return result.output

    return run


class _OpenAIModel(Model):
    def __init__(self, script: Script) -> None:
        self.script = script

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        return ModelResponse(output=[self.script.reply()], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> Any:
        raise NotImplementedError


def _prepare_openai(path: Path | None, script: Script) -> Run:
    def call(n: int) -> ResponseFunctionToolCall:
        arguments = json.dumps({"n": n})
        return ResponseFunctionToolCall(call_id=f"c{n}", name="weather", arguments=arguments, type="function_call")

    said = ResponseOutputText(text=ANSWER, type="output_text", annotations=[], logprobs=[])
    last = ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[said])
    script.replies = [*map(call, range(script.steps)), last]

    @function_tool
    async def weather(n: int) -> str:
        """Say how the weather is."""
        return script.run(n)

    async def run() -> object:
        session = None if path is None else SQLiteSession("run", path)
        agent = Agent("fake", model=_OpenAIModel(script), tools=[weather])
        config = RunConfig(tracing_disabled=True)
        result = await Runner.run(agent, "go", session=session, max_turns=script.steps + 1, run_config=config)
        if session is not None:
            session.close()
        return result.final_output

    return run


class _LangChainModel(BaseChatModel):
    script: Any = None

    @property
    def _llm_type(self) -> str:
        return "fake"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    def _generate(self, *args: Any, **kwargs: Any) -> ChatResult:
        raise NotImplementedError

    async def _agenerate(self, *args: Any, **kwargs: Any) -> ChatResult:
        return ChatResult(generations=[ChatGeneration(message=self.script.reply())])


def _prepare_langgraph(path: Path | None, script: Script) -> Run:
    calls = [
        AIMessage("", tool_calls=[{"id": f"c{n}", "name": "weather", "args": {"n": n}}]) for n in range(script.steps)
    ]
    script.replies = [*calls, AIMessage(ANSWER)]

    @langchain_tool
    async def weather(n: int) -> str:
        """Say how the weather is."""
        return script.run(n)

    async def run() -> object:
        config: Any = {"recursion_limit": 1_000_000, "configurable": {"thread_id": "run"}}
        async with AsyncExitStack() as stack:
            saver = await stack.enter_async_context(AsyncSqliteSaver.from_conn_string(str(path))) if path else None
            agent: Any = create_agent(_LangChainModel(script=script), [weather], checkpointer=saver)
            result = await agent.ainvoke({"messages": [("user", "go")]}, config)
        return result["messages"][-1].content

    return run


_KINDS = {"ours": _prepare_ours, "openai-agents": _prepare_openai, "langgraph": _prepare_langgraph}


def _prepare(kind: str, directory: Path | None, script: Script) -> Run:
    return _KINDS[kind](None if directory is None else directory / f"{kind}-{next(_files)}.db", script)


def _main(directory: str) -> None:
    logging.disable()
    releases = ("openai-agents", "langgraph", "langgraph-checkpoint-sqlite")
    variants: dict[str, Any] = {}
    for kind in _KINDS:
        variants[f"{kind}|with"] = partial(_prepare, kind, Path(directory))
        variants[f"{kind}|without"] = partial(_prepare, kind, None)
    serve("journals", ", ".join(f"{name} {version(name)}" for name in releases), variants)


if __name__ == "__main__":
    _main(sys.argv[1])
