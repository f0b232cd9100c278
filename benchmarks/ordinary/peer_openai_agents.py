"""The OpenAI Agents SDK: `Agent` and `Runner`, over Chat Completions."""

import asyncio
import json
import os
from collections.abc import Callable, Sequence
from copy import deepcopy
from inspect import signature
from typing import Any

os.environ["OPENAI_AGENTS_DISABLE_TRACING"] = "1"

import openai
from agents import (
    Agent,
    ModelSettings,
    OpenAIChatCompletionsModel,
    RunConfig,
    RunHooks,
    Runner,
    SQLiteSession,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
)

PACKAGE, TITLE = "openai-agents", "OpenAI Agents SDK"


def _model(name: str = "gpt-4o", **client: Any) -> OpenAIChatCompletionsModel:
    return OpenAIChatCompletionsModel(name, openai.AsyncOpenAI(**client))


def _agent(**settings: Any) -> Agent[Any]:
    return Agent(name="agent", **{"model": _model(), **settings})


def _ask(agent: Agent[Any], given: Any = "go") -> Any:
    return Runner.run_sync(agent, given).final_output


def ask(text: str, model: str = "gpt-4o") -> str:
    return _ask(_agent(model=_model(model)), text)


def append(first: str, second: str) -> str:
    agent = _agent()
    messages = Runner.run_sync(agent, first).to_input_list()
    messages.append({"role": "user", "content": second})
    return _ask(agent, messages)


def join(first: str, second: str) -> str:
    agent = _agent()
    messages = Runner.run_sync(agent, first).to_input_list()
    return _ask(agent, [*messages, {"role": "user", "content": second}])


go_on = join


def given(messages: Any) -> str:
    return _ask(_agent(), messages)


def given_before(history: Any, text: str) -> str:
    return _ask(_agent(), [*history, {"role": "user", "content": text}])


def picture(text: str, png: str) -> str:
    parts = [
        {"type": "input_text", "text": text},
        {"type": "input_image", "image_url": f"data:image/png;base64,{png}", "detail": "auto"},
    ]
    return _ask(_agent(), [{"role": "user", "content": parts}])


def use(function: Callable[..., Any]) -> str:
    return _ask(_agent(tools=[function_tool(function)]))


def draw(act: Callable[[], None], png: str, *, words: str = "") -> str:
    image = ToolOutputImage(image_url=f"data:image/png;base64,{png}")

    def draw():  # noqa: ANN202
        """Draw it."""
        act()
        return [ToolOutputText(text=words), image] if words else image

    return _ask(_agent(tools=[function_tool(draw)]))


def structured(wanted: Any) -> Any:
    return _ask(_agent(output_type=wanted))


structured_as_text = structured


def own_client(times: int, *, loops: bool = False) -> list[str]:
    agent = _agent()
    if loops:
        return [asyncio.run(Runner.run(agent, "go")).final_output for _ in range(times)]
    return [_ask(agent) for _ in range(times)]


def sync_client() -> str:
    client: Any = openai.OpenAI()
    return _ask(_agent(model=OpenAIChatCompletionsModel("gpt-4o", client)))


def runs(times: int) -> list[str]:
    agent = _agent()
    return [_ask(agent) for _ in range(times)]


def inside_loop() -> str:
    async def cell() -> str:
        return _ask(_agent())

    return asyncio.run(cell())


def session(path: str, texts: Sequence[str]) -> str:
    agent = _agent()
    stored = SQLiteSession("ann", path)
    return [Runner.run_sync(agent, text, session=stored).final_output for text in texts][-1]


def approve(function: Callable[..., Any]) -> str:
    agent = _agent(tools=[function_tool(needs_approval=True)(function)])
    result = Runner.run_sync(agent, "go")
    state = result.to_state()
    for waiting in result.interruptions:
        state.approve(waiting)
    return _ask(agent, state)


def stream(timeout: float) -> str:
    async def follow() -> str:
        run = Runner.run_streamed(_agent(model=_model(timeout=timeout)), "go")
        async for _ in run.stream_events():
            pass
        return run.final_output

    return asyncio.run(follow())


def extras(headers: dict[str, str], body: dict[str, Any]) -> str:
    return _ask(_agent(model_settings=ModelSettings(extra_headers=headers, extra_body=body)))


def headers(headers: dict[str, str]) -> str:
    return _ask(_agent(model=_model(default_headers=headers)))


def timeout_of_a_run(seconds: float) -> str:
    return _ask(_agent(model_settings=ModelSettings(extra_args={"timeout": seconds})))


def limited(model: str, max_tokens: int, temperature: float) -> str:
    settings = ModelSettings(max_tokens=max_tokens, temperature=temperature)
    return _ask(_agent(model=_model(model), model_settings=settings))


def address(url: str) -> str:
    return _ask(_agent(model=_model(base_url=url)))


def key(key: str) -> str:
    return _ask(_agent(model=_model(api_key=key)))


def store_at(path: str) -> str:
    return session(path, ["go"])


def agent_in_a_tool() -> int:
    inner = _agent()

    async def act() -> str:
        """Ask the other one."""
        return (await Runner.run(inner, "help")).final_output

    result = Runner.run_sync(_agent(tools=[function_tool(act)]), "go")
    return result.context_wrapper.usage.total_tokens


def hook() -> list[str]:
    parameters = list(signature(RunHooks.on_tool_start).parameters.values())[1:]
    return [parameter.kind.name for parameter in parameters]


def instructions(function: Callable[..., str]) -> str:
    return _ask(_agent(instructions=lambda _context, _agent: function()))


def another_model(name: str) -> str:
    return Runner.run_sync(_agent(), "go", run_config=RunConfig(model=_model(name))).final_output


def saved(first: str, second: str) -> str:
    agent = _agent()
    stored = json.dumps(Runner.run_sync(agent, first).to_input_list())
    return _ask(agent, [*json.loads(stored), {"role": "user", "content": second}])


def whole() -> str:
    return ask("go")


def copied(first: str, second: str) -> str:
    agent = _agent()
    messages = deepcopy(Runner.run_sync(agent, first).to_input_list())
    return _ask(agent, [*messages, {"role": "user", "content": second}])


def trimmed(first: str, second: str) -> str:
    agent = _agent()
    messages = Runner.run_sync(agent, first).to_input_list()[-1:]
    return _ask(agent, [*messages, {"role": "user", "content": second}])


def key_of_a_function(key: Callable[[], Any]) -> str:
    return _ask(_agent(model=_model(api_key=key)))
