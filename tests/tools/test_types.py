"""What a type checker knows about tools. At run time these assertions say nothing; `make lint` checks them."""

from collections.abc import Coroutine
from typing import Any, assert_type

import pytest

from suture.messages import ToolContext
from suture.tools import Injected, Tool, as_tools, exit_tool, tool


class Database:
    def find(self, query: str) -> list[str]:
        return [query]


@tool
def search(query: str, limit: int = 3) -> list[str]:
    return [query] * limit


@tool(timeout=3)
async def fetch(url: str, database: Injected[Database], context: ToolContext) -> str:
    assert_type(database, Database)
    return url + database.find(context.name)[0]


class Index:
    def __call__(self, query: str) -> int:
        return len(query)


def test_a_tool_is_called_with_the_types_of_its_function():
    assert_type(search("a"), list[str])
    assert_type(search("a", limit=1), list[str])
    assert_type(tool(Index(), retry=1)("abc"), int)
    assert_type(exit_tool()("done"), str)
    assert_type(as_tools([search]), tuple[Tool[..., Any], ...])
    assert search("a", limit=2) == ["a", "a"]


def test_an_injected_parameter_is_of_its_own_type():
    running: Coroutine[Any, Any, str] = fetch("a", Database(), ToolContext("b", "call_1"))
    with pytest.raises(StopIteration, match="ab"):
        running.send(None)


def test_wrong_arguments_are_seen_by_a_type_checker():
    with pytest.raises(TypeError):
        search("a", limit="b")  # pyright: ignore[reportArgumentType]
    with pytest.raises(TypeError):
        search("a", size=3)  # pyright: ignore[reportCallIssue]
