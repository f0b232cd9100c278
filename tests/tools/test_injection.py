"""What the run passes in: the model neither sees it nor fills it in."""

import asyncio
import json
from abc import ABC
from typing import Any, Protocol, TypeVar, runtime_checkable

import pytest

from suture.errors import ConfigError, SutureError
from suture.messages import ToolArgument, ToolContext
from suture.tools import Injected, ToolDependencyError, tool
from tests.tools.running import run

CONTEXT = ToolContext("search", "call_1")


class Database:
    def __init__(self, name: str = "main") -> None:
        self.name = name


class Replica(Database):
    pass


class Clock(ABC):  # noqa: B024
    pass


@Clock.register
class Watch:
    name = "watch"


@runtime_checkable
class Named(Protocol):
    name: str


class Unchecked(Protocol):
    name: str


@tool
def search(query: str, context: ToolContext, database: Injected[Database], limit: int = 3) -> str:
    return f"{query} {context.call_id} {database.name} {limit}"


def test_hidden_parameters_are_not_in_the_schema():
    assert search.info.parameters is not None
    assert list(search.info.parameters["properties"]) == ["query", "limit"]
    assert search.info.parameters["required"] == ["query"]


def test_hidden_parameters_are_filled_in_by_the_run():
    given = run(search, '{"query": "a"}', context=CONTEXT, dependencies=(3, Database("main")))
    assert given == "a call_1 main 3"


@pytest.mark.parametrize("name", ["context", "database"])
def test_the_model_cannot_fill_in_what_is_hidden(name):
    problem = search.validate(json.dumps({"query": "a", name: {"name": "search", "call_id": "x"}}))
    assert problem == f"arguments.{name}: unknown; known: query, limit"


def test_the_first_dependency_of_the_type_is_taken():
    given = run(search, '{"query": "a"}', context=CONTEXT, dependencies=(Watch(), Replica("replica"), Database()))
    assert given == "a call_1 replica 3"


def test_a_dependency_that_is_missing_is_named_with_how_to_pass_it():
    with pytest.raises(ToolDependencyError) as caught:
        run(search, '{"query": "a"}', context=CONTEXT, dependencies=(Watch(),))
    assert str(caught.value) == "tool 'search' needs a Database as 'database'; pass one with run(..., deps=[...])"
    assert isinstance(caught.value, SutureError)


def test_wrong_arguments_are_told_before_a_missing_dependency():
    from suture.tools import ToolArgumentsError

    with pytest.raises(ToolArgumentsError, match=r"arguments\.query: missing"):
        run(search, "{}")


def test_a_context_that_is_missing_is_told():
    with pytest.raises(ToolDependencyError, match="tool 'search' needs its context"):
        run(search, '{"query": "a"}', dependencies=(Database(),))


def test_with_a_default_a_dependency_may_be_missing():
    fallback = Database("fallback")

    @tool
    def search(database: Injected[Database] = fallback, context: ToolContext | None = None) -> str:
        return f"{database.name} {context}"

    assert search.info.parameters is None
    assert run(search) == "fallback None"
    assert run(search, dependencies=(Database("given"),)) == "given None"


def test_what_may_be_nothing_is_nothing_if_it_is_missing():
    @tool
    def search(
        database: Injected[Database | None], replica: Injected[Replica] | None, context: ToolContext | None
    ) -> list[bool]:
        return [database is None, replica is None, context is None]

    assert search.info.parameters is None
    assert run(search) == "[true,true,true]"
    assert run(search, context=CONTEXT, dependencies=(None, Database())) == "[false,true,false]"
    assert run(search, context=CONTEXT, dependencies=(Replica(),)) == "[false,false,false]"


def given_for(hint: Any, *dependencies: object) -> Any:
    def take(thing) -> str:
        return thing if isinstance(thing, str) else thing.name

    take.__annotations__["thing"] = hint
    return run(tool(take), dependencies=dependencies)


@pytest.mark.parametrize(
    ("hint", "found"),
    [
        (Injected[Clock], "watch"),
        (Injected[Named], "main"),
        (Injected[Replica | Watch], "watch"),
        (Injected["Database"], "main"),
        (Injected[str], "text"),
        (Injected[object], "text"),
    ],
    ids=repr,
)
def test_a_dependency_is_found_by_any_type_that_isinstance_knows(hint, found):
    assert given_for(hint, "text", Database(), Watch()) == found


def test_a_dependency_of_a_generic_type_is_found_by_its_class():
    def first(names: Injected[list[str]]) -> str:
        return names[0]

    assert run(tool(first), dependencies=({"a": 1}, ["b"])) == "b"


@pytest.mark.parametrize("hint", [Injected[Unchecked], Injected[Any], Injected[TypeVar("T")]], ids=repr)
def test_a_type_that_no_dependency_can_be_told_by_is_refused(hint):
    with pytest.raises(ConfigError, match="tool 'take', parameter 'thing': no dependency can be found"):
        given_for(hint)


def test_hidden_parameters_may_stand_anywhere():
    def odd(
        context: ToolContext, a: int, database: Injected[Database], /, b: int, *, clock: Injected[Clock]
    ) -> list[Any]:
        return [context.call_id, a, database.name, b, type(clock).__name__]

    given = run(tool(odd), '{"a": 1, "b": 2}', context=CONTEXT, dependencies=(Watch(), Database()))
    assert json.loads(given) == ["call_1", 1, "main", 2, "Watch"]


def test_a_function_that_reads_the_arguments_itself_has_hidden_parameters_too():
    def echo(argument: ToolArgument, context: ToolContext) -> str:
        return argument.text + context.call_id

    assert run(tool(echo), "?", context=CONTEXT) == "?call_1"


def test_options_reach_only_a_function_that_takes_any():
    def closed(a: int) -> int:
        return a

    def open_(a: int, **options: Any) -> dict[str, Any]:
        return {"a": a, **options}

    options = {"trace": "t", "a": 9}
    reserved: dict[str, Any] = {"context": CONTEXT, "dependencies": (3,)}
    assert run(tool(closed), '{"a": 1}', **options, **reserved) == "1"
    assert json.loads(run(tool(open_), '{"a": 1}', **options, **reserved)) == {"a": 1, "trace": "t"}
    assert tool(open_).validate('{"a": 1, "b": 2}') == "arguments.b: unknown; known: a"


def test_hidden_parameters_are_the_callers_when_a_tool_is_called_in_python():
    assert search("a", CONTEXT, Database("mine"), limit=1) == "a call_1 mine 1"


def test_every_run_gets_its_own():
    @tool
    async def whose(context: ToolContext) -> str:
        await asyncio.sleep(0)
        return context.call_id

    async def both() -> list[str]:
        calls = (whose.endpoint("{}", context=ToolContext("whose", name)) for name in "ab")
        return await asyncio.gather(*calls)

    assert asyncio.run(both()) == ["a", "b"]
