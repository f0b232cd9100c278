"""Annotations that are text, as `from __future__ import annotations` makes them all."""

from __future__ import annotations

import dataclasses
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Annotated, Any

import msgspec
import pytest

from suture.errors import ConfigError
from suture.messages import ToolContext, ToolResult
from suture.tools import RunContext, tool
from tests.tools.running import Context, run

if TYPE_CHECKING:
    from fractions import Fraction


@dataclasses.dataclass
class Range:
    first: int


def properties(made: Any) -> dict[str, Any]:
    return made.info.parameters["properties"]


def test_names_of_the_module_are_found():
    @tool
    def search(range: Range, context: ToolContext, limit: Annotated[int, msgspec.Meta(ge=1)] = 3) -> ToolResult:  # noqa: A002
        return ToolResult(extra={"given": [range, context, limit]})

    assert search.kind == "enhanced_invokable"
    assert properties(search)["limit"] == {"type": "integer", "minimum": 1, "default": 3}
    assert list(properties(search)) == ["range", "limit"]


def test_names_of_the_function_around_are_found():
    @dataclasses.dataclass
    class Local:
        x: int

    @tool
    def search(local: Local, ctx: RunContext[Local]) -> int:
        return local.x + ctx.deps.x

    assert properties(search)["local"]["required"] == ["x"]
    assert run(search, '{"local": {"x": 1}}', context=Context(Local(2))) == "3"


def test_a_local_name_goes_before_one_of_the_module():
    @dataclasses.dataclass
    class Range:
        other: int

    @tool
    def search(range: Range) -> int:  # noqa: A002
        return vars(range)["other"]

    assert run(search, '{"range": {"other": 1}}') == "1"


def test_names_are_found_two_functions_up():
    class Local(msgspec.Struct):
        x: int

    def inner() -> Any:
        @tool
        def search(local: Local) -> int:
            return local.x

        return search

    assert run(inner(), '{"local": {"x": 1}}') == "1"


def test_names_that_a_function_uses_are_found_when_the_one_around_it_is_gone():
    def outer() -> Any:
        class Local(msgspec.Struct):
            x: int

        def search(local: Local) -> int:
            return Local(local.x + 1).x

        return search

    assert run(tool(outer()), '{"local": {"x": 1}}') == "2"


def test_a_function_that_uses_its_own_name_can_be_decorated():
    @tool(thread=False)
    def factorial(n: int) -> int:
        return n * factorial(n - 1) if n else 1

    assert run(factorial, '{"n": 4}') == "24"


def test_names_of_the_class_around_are_found():
    class Shelf:
        class Book(msgspec.Struct):
            title: str

        @staticmethod
        def read(book: Book) -> str:
            return book.title

        tool = tool(read)

    assert run(Shelf.tool, '{"book": {"title": "a"}}') == "a"


def test_text_within_text_is_resolved():
    @tool
    def search(ranges: list["Range"]) -> int:  # noqa: UP037
        return ranges[0].first

    assert run(search, '{"ranges": [{"first": 1}]}') == "1"


def test_a_stream_of_results_is_told_by_text():
    async def stream() -> AsyncIterator[ToolResult]:
        yield ToolResult()

    assert tool(stream).kind == "enhanced_streamable"


def test_a_name_that_cannot_be_found_is_refused_with_the_parameter():
    def search(query: str, part: Fraction) -> str:
        return f"{query}{part}"

    with pytest.raises(
        ConfigError, match=r"tool 'search', parameter 'part': the annotation 'Fraction' cannot be resolved"
    ):
        tool(search)


def test_what_a_function_returns_must_be_resolved_unless_its_kind_is_given():
    def search(query: str) -> Fraction:
        raise NotImplementedError(query)

    with pytest.raises(
        ConfigError, match="tool 'search', what it returns: the annotation 'Fraction' cannot be resolved"
    ):
        tool(search)
    assert tool(search, kind="invokable").kind == "invokable"


def test_with_a_schema_only_what_is_hidden_must_be_resolved():
    def search(query: Fraction, context: ToolContext) -> str:
        return f"{query}{context.name}"

    made = tool(search, schema={"type": "object", "properties": {"query": {}}})
    assert run(made, '{"query": 1}', context=Context()) == "1search"
