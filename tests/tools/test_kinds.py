"""Which kind of tool a function makes, and how it wants to be run."""

from collections.abc import AsyncIterator, Awaitable, Generator, Iterable, Iterator, Sequence
from functools import partial, wraps
from typing import Annotated, Any

import msgspec
import pytest

from suture.errors import ConfigError
from suture.messages import ImagePart, Part, TextPart, ToolArgument, ToolInfo, ToolResult
from suture.tools import Tool, tool
from tests.tools.running import HELLO, run


def plain() -> str:
    return "hello"


async def awaited() -> str:
    return "hello"


def unannotated():
    return "hello"


def rich() -> ToolResult:
    return HELLO


async def rich_awaited() -> ToolResult:
    return HELLO


def one_part() -> TextPart:
    return TextPart("hello")


def any_part() -> Part:
    return TextPart("hello")


def many_parts() -> list[TextPart | ImagePart]:
    return [TextPart("hello")]


def a_sequence_of_parts() -> Sequence[Part]:
    return (TextPart("hello"),)


def rich_or_text() -> ToolResult | str:
    return "hello"


def rich_or_nothing() -> Annotated["ToolResult | None", "a note"]:
    return HELLO


def plainly_annotated() -> Annotated[str, {"not": "hashable"}]:
    return "hello"


def rich_later() -> Awaitable[ToolResult]:
    return rich_awaited()


def later() -> Awaitable[str]:
    return awaited()


def pieces() -> Iterator[str]:
    yield "hel"
    yield "lo"


def pieces_in_iterable() -> Iterable[str]:
    yield "hel"
    yield "lo"


def unannotated_pieces():
    yield "hel"
    yield "lo"


async def awaited_pieces() -> AsyncIterator[str]:
    yield "hel"
    yield "lo"


async def unannotated_awaited_pieces():
    yield "hel"
    yield "lo"


def hands_out_pieces() -> Iterator[str]:
    return iter(["hel", "lo"])


def hands_out_awaited_pieces() -> AsyncIterator[str]:
    return awaited_pieces()


async def hands_out_pieces_later() -> AsyncIterator[str]:
    return awaited_pieces()


def rich_pieces() -> Generator[ToolResult, None, None]:
    yield HELLO


def part_pieces() -> Iterable[TextPart]:
    yield TextPart("hello")


async def rich_awaited_pieces() -> AsyncIterator[ToolResult]:
    yield HELLO


class Greeter:
    def __call__(self) -> str:
        return "hello"

    async def later(self) -> str:
        return "hello"


class Streamer:
    func = "an attribute of its own, which makes it no partial"

    async def __call__(self) -> AsyncIterator[str]:
        yield "hel"
        yield "lo"


@wraps(awaited)
def wrapper() -> Any:
    return awaited()


TEXT = [plain, plainly_annotated, awaited, unannotated, later, Greeter(), Greeter().later, partial(awaited), wrapper]
TEXT_STREAMS = [
    pieces,
    pieces_in_iterable,
    unannotated_pieces,
    awaited_pieces,
    unannotated_awaited_pieces,
    hands_out_pieces,
    hands_out_awaited_pieces,
    hands_out_pieces_later,
    Streamer(),
    partial(pieces),
]
RICH = [
    rich,
    rich_awaited,
    one_part,
    any_part,
    many_parts,
    a_sequence_of_parts,
    rich_or_text,
    rich_or_nothing,
    rich_later,
]
RICH_STREAMS = [rich_pieces, part_pieces, rich_awaited_pieces]
CASES = [
    *((function, "invokable", "hello") for function in TEXT),
    *((function, "streamable", ["hel", "lo"]) for function in TEXT_STREAMS),
    *((function, "enhanced_invokable", HELLO) for function in RICH),
    *((function, "enhanced_streamable", [HELLO]) for function in RICH_STREAMS),
]


def shown(value: object) -> str | None:
    return getattr(value, "__name__", type(value).__name__) if callable(value) else None


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize(("function", "kind", "given"), CASES, ids=shown)
def test_the_kind_follows_from_the_function_and_what_it_says_it_returns(function, kind, given, thread):
    made = tool(function, thread=thread)
    assert made.kind == kind
    assert run(made) == given


@pytest.mark.parametrize("function", [plain, pieces, rich, hands_out_pieces, Greeter(), partial(plain)], ids=shown)
def test_a_sync_function_is_marked_as_one_that_cannot_be_stopped(function):
    assert tool(function).in_thread
    assert not tool(function, thread=False).in_thread


@pytest.mark.parametrize("function", [awaited, awaited_pieces, Streamer(), Greeter().later], ids=shown)
def test_an_async_function_needs_no_thread(function):
    assert not tool(function).in_thread


def test_the_kind_that_is_asked_for_is_taken():
    def search() -> Any:
        return HELLO

    assert run(tool(search, kind="enhanced_invokable")) == HELLO
    assert run(tool(search, kind="enhanced_streamable")) == [HELLO]
    assert run(tool(plain, kind="streamable")) == ["hello"]
    assert run(tool(plain, kind="enhanced_invokable")) == HELLO


@pytest.mark.parametrize("kind", ["invokable", "enhanced_invokable"])
@pytest.mark.parametrize("function", [pieces, awaited_pieces])
def test_a_generator_cannot_be_a_tool_that_answers_at_once(function, kind):
    with pytest.raises(ConfigError, match="its kind is streamable or enhanced_streamable"):
        tool(function, kind=kind)


def test_an_unknown_kind_is_refused():
    with pytest.raises(ConfigError, match="no tool is 'invocable'; kinds: invokable, streamable,"):
        tool(plain, kind="invocable")  # pyright: ignore[reportArgumentType, reportCallIssue]


def test_a_function_can_read_the_arguments_itself():
    def echo(argument: ToolArgument) -> str:
        return argument.text

    made = tool(echo)
    assert made.info == ToolInfo("echo")
    assert run(made, "not even JSON") == "not even JSON"
    assert made.validate("not even JSON") == ""
    assert run(tool(echo, kind="enhanced_invokable"), "[") == ToolResult((TextPart("["),))


def test_a_function_that_reads_the_arguments_itself_takes_no_others():
    def echo(argument: ToolArgument, more: int) -> str:
        return argument.text * more

    with pytest.raises(ConfigError, match="reads all arguments from it itself"):
        tool(echo)


# --- the value itself ---------------------------------------------------------------------------


def test_a_decorated_function_is_still_called_as_before():
    @tool
    def add(a: int, b: int = 1) -> int:
        return a + b

    @tool(name="later")
    async def add_later(a: int) -> int:
        return a

    assert add(1) == 2
    assert add(1, b=3) == 4
    with pytest.raises(StopIteration, match="7"):
        add_later(7).send(None)


def test_a_tool_cannot_be_changed_and_a_changed_one_is_another():
    made = tool(plain)
    with pytest.raises(AttributeError):
        made.timeout = 3.0  # pyright: ignore[reportAttributeAccessIssue]
    changed = msgspec.structs.replace(made, timeout=3.0, requires_approval=True)
    assert (made.timeout, made.requires_approval) == (None, False)
    assert (changed.timeout, changed.requires_approval, changed.name) == (3.0, True, "plain")
    assert len({made, changed, made}) == 2


def test_how_a_tool_wants_to_be_run_is_on_it():
    choices: dict[str, Any] = {
        "requires_approval": True,
        "timeout": 2.5,
        "retry": 3,
        "idempotent": True,
        "return_directly": True,
    }
    made = tool(plain, **choices)
    assert {name: getattr(made, name) for name in choices} == choices
    unasked = tool(plain)
    assert [getattr(unasked, name) for name in choices] == [False, None, 0, False, False]


@pytest.mark.parametrize(
    ("choice", "says"),
    [
        ({"timeout": 0}, "timeout must be a number of seconds above 0"),
        ({"timeout": -1.0}, "timeout must be"),
        ({"timeout": "3"}, "timeout must be"),
        ({"timeout": True}, "timeout must be"),
        ({"timeout": float("nan")}, "timeout must be"),
        ({"retry": -1}, "retry counts extra attempts"),
        ({"retry": 1.5}, "retry counts extra attempts"),
        ({"retry": True}, "retry counts extra attempts"),
    ],
)
def test_a_choice_that_makes_no_sense_is_refused(choice, says):
    with pytest.raises(ConfigError, match=says):
        tool(plain, **choice)


def test_a_choice_that_there_is_none_of_is_refused():
    with pytest.raises(TypeError, match="unexpected keyword argument 'tiemout'"):
        tool(plain, tiemout=3)  # pyright: ignore[reportCallIssue]


@pytest.mark.parametrize("given", [3, b"search", plain.__class__, None.__class__, {}])
def test_what_cannot_be_called_makes_no_tool(given):
    with pytest.raises(ConfigError, match="a tool is made from a function"):
        tool(given)


def test_a_tool_is_not_made_from_a_tool():
    with pytest.raises(ConfigError, match="'plain' is a tool already"):
        tool(tool(plain))


def test_a_tool_without_a_function_cannot_be_called_in_python():
    made: Tool[..., Any] = Tool(ToolInfo("bare"), "invokable", awaited)
    with pytest.raises(TypeError, match="run its endpoint"):
        made()
    assert made.validate("anything") == ""
    assert repr(made) == "Tool('bare', kind='invokable')"
