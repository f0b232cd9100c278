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
    ToolCall,
    delete_run_local_value,
    get_run_local_value,
    get_session_value,
    register_type,
    run_scratch,
    set_run_local_value,
    set_session_value,
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
class Cache:
    pages: dict[str, str]


def new_cache() -> Cache:
    return Cache({})


@tool
async def visit(page: str) -> str:
    """Visit a page."""
    value, found = get_run_local_value("visit")
    assert_type(found, bool)
    before: Visit = value if found else Visit(page, 0)
    set_run_local_value("visit", Visit(page, before.count + 1))
    set_session_value("last", uuid4())
    cache = run_scratch(new_cache)
    assert_type(cache, Cache)
    cache.pages[page] = "text"
    return f"{before.count + 1} visits"


class Counting(ChatModelAgentMiddleware[Any]):
    def before_model_rewrite_state(self, state: ChatModelAgentState[Any], model_context: ModelContext) -> None:
        counts = run_scratch(Counter[str])
        assert_type(counts, Counter[str])
        counts["turns"] += 1
        names = run_scratch(list[str])
        assert_type(names, list[str])
        names.append(model_context.wire)
        user, found = get_session_value("user")
        if found:
            set_run_local_value("user", user)
        delete_run_local_value("missing")


async def main() -> None:
    calls = [Message.assistant(tool_calls=[ToolCall(f"{n}", "visit", '{"page": "home"}')]) for n in range(2)]
    agent = ChatModelAgent(
        name="visitor", model=ScriptedModel([*calls, "done"]), tools=[visit], middlewares=[Counting()]
    )
    result = await agent.run("visit", session={"user": "ada"})
    assert result.messages[-2].content == "2 visits"
    assert isinstance(result.session["last"], UUID)
    try:
        set_run_local_value("visit", 1)
    except NotInRunError as error:
        print(error)


if __name__ == "__main__":
    asyncio.run(main())
