"""What the run passes in: the model neither sees it nor fills it in."""

import asyncio
import json
from types import MethodType
from typing import Any, Optional

import pytest

from suture.errors import ConfigError, NotInRunError
from suture.messages import ToolArgument, ToolContext
from suture.tools import RunContext, ToolArgumentsError, as_tools, tool
from tests.tools.running import Context, run


class Database:
    def __init__(self, name: str = "main") -> None:
        self.name = name


CONTEXT = Context(Database())


@tool
def search(query: str, context: ToolContext, ctx: RunContext[Database], limit: int = 3) -> str:
    return f"{query} {context.name} {context.call_id} {ctx.deps.name} {limit}"


def test_hidden_parameters_are_not_in_the_schema():
    assert search.info.parameters is not None
    assert list(search.info.parameters["properties"]) == ["query", "limit"]
    assert search.info.parameters["required"] == ["query"]


def test_hidden_parameters_are_filled_in_by_the_run():
    assert run(search, '{"query": "a"}', context=CONTEXT) == "a search call_1 main 3"


@pytest.mark.parametrize("name", ["context", "ctx"])
def test_the_model_cannot_fill_in_what_is_hidden(name):
    problem = search.validate(json.dumps({"query": "a", name: {"name": "search", "call_id": "x"}}))
    assert problem == f"arguments.{name}: unknown; known: query, limit"


def with_hint(hint: Any) -> Any:
    def take(thing) -> bool:
        return thing is CONTEXT

    take.__annotations__["thing"] = hint
    return tool(take)


@pytest.mark.parametrize(
    "hint",
    [
        RunContext,
        RunContext[Any],
        RunContext["Library"],  # pyright: ignore[reportUndefinedVariable]
        RunContext[Database] | None,
        Optional[RunContext],  # noqa: UP045
        "RunContext",
        "RunContext[Database]",
        "RunContext[Library]",
        "RunContext[Library] | None",
        "'RunContext[Library]'",
        "tools.RunContext[Library]",
        "elsewhere.RunContext",
    ],
    ids=repr,
)
def test_the_context_is_known_however_it_is_written_also_if_its_type_cannot_be_imported(hint):
    made = with_hint(hint)
    assert made.info.parameters is None
    assert run(made, context=CONTEXT) == "true"


def test_another_class_of_a_similar_name_is_not_the_context():
    with pytest.raises(ConfigError, match="parameter 'thing': the annotation 'RunContextual' cannot"):
        with_hint("RunContextual")


@pytest.mark.parametrize(
    ("hint", "says"),
    [(RunContext[Database], "a RunContext as 'thing'"), (ToolContext, "a ToolContext as 'thing'")],
    ids=repr,
)
def test_outside_of_a_run_a_context_that_is_missing_is_told_with_how_to_pass_it(hint, says):
    with pytest.raises(NotInRunError, match=rf"tool 'take' needs {says}; an agent's run passes it in.* context="):
        run(with_hint(hint))


def test_wrong_arguments_are_told_before_a_missing_context():
    with pytest.raises(ToolArgumentsError, match=r"arguments\.query: missing"):
        run(search, "{}")


def test_outside_of_a_run_a_hidden_parameter_has_its_default_or_is_none_if_it_may_be():
    fallback = Context(Database("fallback"))

    @tool
    def look(one: RunContext[Database] | None, other: ToolContext | None, ctx: RunContext[Database] = fallback) -> str:
        return f"{one is None} {other is None} {ctx.deps.name}"

    assert look.info.parameters is None
    assert run(look) == "True True fallback"
    assert run(look, context=CONTEXT) == "False False main"


def test_hidden_parameters_may_stand_anywhere():
    def odd(context: ToolContext, a: int, ctx: RunContext[Database], /, b: int, *, other: RunContext) -> list[Any]:
        return [context.call_id, a, ctx.deps.name, b, other is ctx]

    assert json.loads(run(tool(odd), '{"a": 1, "b": 2}', context=CONTEXT)) == ["call_1", 1, "main", 2, True]


def test_a_function_that_reads_the_arguments_itself_has_hidden_parameters_too():
    def echo(argument: ToolArgument, context: ToolContext) -> str:
        return argument.text + context.call_id

    assert run(tool(echo), "?", context=CONTEXT) == "?call_1"


def test_options_reach_only_a_function_that_takes_any_and_the_context_is_no_option():
    def closed(a: int) -> int:
        return a

    def open_(a: int, **options: Any) -> dict[str, Any]:
        return {"a": a, **options}

    options = {"trace": "t", "a": 9}
    assert run(tool(closed), '{"a": 1}', context=CONTEXT, **options) == "1"
    assert json.loads(run(tool(open_), '{"a": 1}', context=CONTEXT, **options)) == {"a": 1, "trace": "t"}
    assert tool(open_).validate('{"a": 1, "b": 2}') == "arguments.b: unknown; known: a"


def test_hidden_parameters_are_the_callers_when_a_tool_is_called_in_python():
    mine = Context(Database("mine"))
    assert search("a", ToolContext("search", "call_1"), mine, limit=1) == "a search call_1 mine 1"


def test_every_call_gets_its_own():
    @tool
    async def whose(context: ToolContext) -> str:
        await asyncio.sleep(0)
        return context.call_id

    async def both() -> list[str]:
        return await asyncio.gather(*(whose.endpoint("{}", context=Context(call_id=name)) for name in "ab"))

    assert asyncio.run(both()) == ["a", "b"]


# --- methods ------------------------------------------------------------------------------------


class Shelf:
    def __init__(self, books: int) -> None:
        self.books = books

    @tool
    def count(self, plus: int, ctx: RunContext[Database] | None = None) -> str:
        """Count the books."""
        return f"{self.books + plus} in {ctx.deps.name if ctx else 'nothing'}"

    @tool(name="titles")
    async def list_titles(self, of: str = "all"):
        for number in range(self.books):
            yield f"{number} {of}"


def test_a_decorated_method_is_a_tool_of_each_object():
    one, other = Shelf(1), Shelf(2)
    assert one.count.info.parameters is not None
    assert list(one.count.info.parameters["properties"]) == ["plus"]
    assert (one.count(2), other.count(plus=2)) == ("3 in nothing", "4 in nothing")
    assert run(other.count, '{"plus": 5}', context=CONTEXT) == "7 in main"
    assert run(Shelf(2).list_titles) == ["0 all", "1 all"]
    assert (Shelf.count.name, one.list_titles.name) == ("count", "titles")


def test_a_decorated_method_of_a_class_is_a_tool_of_each_class():
    class Desk:
        @classmethod
        @tool
        def name(cls, plus: str) -> str:
            return cls.__name__ + plus

    class Chair(Desk): ...

    (made,) = as_tools([Chair.name])
    (bound,) = as_tools([MethodType(Desk.__dict__["name"].__func__, Desk)])  # as Python 3.13 has it
    assert [list((each.info.parameters or {})["properties"]) for each in (made, bound)] == [["plus"], ["plus"]]
    assert [run(each, '{"plus": "!"}') for each in (made, bound)] == ["Chair!", "Desk!"]


def test_a_method_that_has_no_object_yet_is_no_tool_for_an_agent():
    with pytest.raises(ConfigError, match=r"tool 'count' is a method; take an object's: Shelf\(...\)"):
        as_tools([Shelf.count])


def test_a_tool_that_is_no_method_stays_itself_as_an_attribute():
    class Desk:
        look = search

    assert Desk().look is search
