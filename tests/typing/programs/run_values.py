"""Values that belong to a run or to a session, and types of your own in them."""

import asyncio
from collections import Counter
from dataclasses import dataclass
from typing import Any, assert_type
from uuid import UUID, uuid4

from suture import (
    ChatModelAgent,
    ChatModelAgentMiddleware,
    ChatModelAgentState,
    Message,
    ModelContext,
    NotInRunError,
    RunContext,
    ToolCall,
    current_run,
    delete_run_local_value,
    get_run_local_value,
    register_type,
    set_run_local_value,
    tool,
)
from suture.testing import ScriptedModel


@dataclass
class Visit:
    page: str
    count: int


class Place:
    def __init__(self, name: str) -> None:
        self.name = name


register_type("example.Visit", Visit)
register_type("example.UUID", UUID, encode=str, decode=UUID)
register_type("example.Place", Place, encode=lambda place: place.name, decode=Place)


@dataclass
class Host:
    greeting: str


@dataclass
class Cache:
    pages: dict[str, str]


def new_cache() -> Cache:
    return Cache({})


@tool
async def visit(page: str, ctx: RunContext[Host]) -> str:
    """Visit a page."""
    value, found = get_run_local_value("visit")
    assert_type(found, bool)
    before: Visit = value if found else Visit(page, 0)
    set_run_local_value("visit", Visit(page, before.count + 1))
    ctx.session["last"] = uuid4()
    cache: Cache = ctx.cache.setdefault(Cache, new_cache())
    cache.pages[page] = ctx.deps.greeting
    return f"{before.count + 1} visits"


class Counting(ChatModelAgentMiddleware[Any]):
    def before_model_rewrite_state(self, state: ChatModelAgentState[Any], model_context: ModelContext) -> None:
        run = current_run()
        assert_type(run, RunContext[Any])
        assert_type(run.run_id, str)
        assert_type(run.turn, int)
        counts: Counter[str] = run.cache.setdefault("counts", Counter[str]())
        counts[model_context.wire] += 1
        if "user" in run.session:
            run.values["user"] = run.session["user"]
        delete_run_local_value("missing")


async def main() -> None:
    calls = [Message.assistant(tool_calls=[ToolCall(f"{n}", "visit", '{"page": "home"}')]) for n in range(2)]
    agent = ChatModelAgent(
        name="visitor", model=ScriptedModel([*calls, "done"]), tools=[visit], middlewares=[Counting()]
    )
    result = await agent.run("visit", session={"user": "ada"}, deps=Host("text"))
    assert result.messages[-2].content == "2 visits"
    assert isinstance(result.session["last"], UUID)
    try:
        set_run_local_value("visit", 1)
    except NotInRunError as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main())
