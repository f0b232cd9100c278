"""Objects that bring their own endpoints, many tools at once, and the tool that ends a run."""

from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from suture.errors import ConfigError
from suture.messages import TextPart, ToolArgument, ToolInfo, ToolResult
from suture.tools import Tool, as_tools, exit_tool, tool
from tests.tools.running import Context, run

INFO = ToolInfo("echo", "Say it again.", {"type": "object"})
CONTEXT = Context()


class Described:
    info = INFO


class Invoke(Described):
    def invoke(self, arguments: str) -> str:
        return arguments


class AsyncInvoke(Described):
    async def invoke(self, arguments: str) -> str:
        return arguments


class Stream(Described):
    def stream(self, arguments: str) -> Iterator[str]:
        yield from arguments


class AsyncStream(Described):
    async def stream(self, arguments: str) -> AsyncIterator[str]:
        for letter in arguments:
            yield letter


class LaterStream(Described):
    async def stream(self, arguments: str) -> AsyncIterator[str]:
        return AsyncStream().stream(arguments)


class EnhancedInvoke(Described):
    def enhanced_invoke(self, argument: ToolArgument) -> ToolResult:
        return ToolResult((TextPart(argument.text),))


class EnhancedStream(Described):
    async def enhanced_stream(self, argument: ToolArgument) -> AsyncIterator[ToolResult]:
        yield ToolResult((TextPart(argument.text),))


WHOLE = ToolResult((TextPart("{}"),))


@pytest.mark.parametrize("thread", [True, False])
@pytest.mark.parametrize(
    ("kind_of_object", "kind", "given"),
    [
        (Invoke, "invokable", "{}"),
        (AsyncInvoke, "invokable", "{}"),
        (Stream, "streamable", ["{", "}"]),
        (AsyncStream, "streamable", ["{", "}"]),
        (LaterStream, "streamable", ["{", "}"]),
        (EnhancedInvoke, "enhanced_invokable", WHOLE),
        (EnhancedStream, "enhanced_streamable", [WHOLE]),
    ],
)
def test_an_object_with_info_and_an_endpoint_is_a_tool(kind_of_object, kind, given, thread):
    made = tool(kind_of_object(), thread=thread)
    assert (made.info, made.kind) == (INFO, kind)
    assert made.in_thread == (thread and kind_of_object in (Invoke, Stream, EnhancedInvoke))
    assert run(made) == given


@pytest.mark.parametrize(
    ("bases", "kind"),
    [
        ((Invoke, Stream), "streamable"),
        ((Invoke, EnhancedInvoke), "enhanced_invokable"),
        ((Stream, EnhancedInvoke), "enhanced_invokable"),
        ((Invoke, Stream, EnhancedInvoke, EnhancedStream), "enhanced_streamable"),
    ],
)
def test_of_several_endpoints_the_richest_is_taken(bases, kind):
    assert tool(type("Several", bases, {})()).kind == kind


def test_the_arguments_are_the_objects_own_business():
    made = tool(Invoke())
    assert made.validate("not even JSON") == ""
    assert run(made, "not even JSON") == "not even JSON"


def test_an_object_can_say_itself_what_is_wrong_with_arguments():
    class Careful(Invoke):
        def validate(self, arguments: str) -> str:
            return "" if arguments == "{}" else "no"

    made = tool(Careful())
    assert (made.validate("{}"), made.validate("[]")) == ("", "no")


def test_options_reach_only_a_method_that_takes_any():
    class Open(Described):
        def invoke(self, arguments: str, **options: Any) -> str:
            return f"{options['context'].call_id} {options['trace']}"

    options: dict[str, Any] = {"context": CONTEXT, "trace": "t"}
    assert run(tool(Open()), **options) == "call_1 t"
    assert run(tool(Invoke()), **options) == "{}"


def test_how_an_object_is_run_can_be_chosen():
    made = tool(Invoke(), name="again", description="", requires_approval=True, timeout=1, retry=2)
    assert (made.info.name, made.info.description, made.info.parameters) == ("again", "", {"type": "object"})
    assert (made.requires_approval, made.timeout, made.retry) == (True, 1, 2)


@pytest.mark.parametrize("choice", [{"kind": "streamable"}, {"schema": {}}, {"strict": True}])
def test_what_an_object_says_itself_is_not_chosen(choice):
    with pytest.raises(ConfigError, match="tool 'echo' is an object: its methods tell its kind"):
        tool(Invoke(), **choice)


def test_a_tool_from_an_object_is_called_in_python_as_its_method():
    assert tool(Invoke())("hey") == "hey"


@pytest.mark.parametrize("given", [Described(), object(), 3])
def test_an_object_that_lacks_info_or_endpoint_is_refused(given):
    with pytest.raises(ConfigError, match="a tool is made from a function, or from an object with info"):
        tool(given)


def test_a_method_may_return_a_result_without_being_enhanced():
    class Plain(Described):
        def invoke(self, arguments: str) -> ToolResult:
            return WHOLE

    assert run(tool(Plain())) == WHOLE


# --- many tools ---------------------------------------------------------------------------------


def search(query: str) -> str:
    return query


class Called:
    def __call__(self) -> str:
        return ""


def test_tools_come_from_all_that_makes_a_tool():
    ready = tool(search)
    made = as_tools(iter([ready, Invoke(), lambda_named("look"), Called()]))
    assert [each.name for each in made] == ["search", "echo", "look", "Called"]
    assert made[0] is ready
    assert as_tools([]) == ()


def lambda_named(name: str) -> Any:
    made = lambda: ""  # noqa: E731
    made.__name__ = name
    return made


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ConfigError) as caught:
        as_tools([tool(search), Invoke(), lambda_named("search")])
    assert str(caught.value) == (
        "items 0 and 2 are both called 'search' (search, lambda_named.<locals>.<lambda>); "
        "rename one: tool(..., name=...)"
    )


@pytest.mark.parametrize("name", ["", "look up", "a.b", "x" * 65])
def test_a_tool_with_a_name_that_a_provider_would_refuse_is_refused(name):
    bare: Tool[..., Any] = Tool(ToolInfo(name), "invokable", search)
    with pytest.raises(ConfigError, match="a tool cannot be called"):
        as_tools([bare])
    with pytest.raises(ConfigError, match="a tool cannot be called"):
        as_tools([type("Odd", (Invoke,), {"info": ToolInfo(name)})()])


@pytest.mark.parametrize(
    ("item", "says"),
    [
        (3, "item 1 is a int, not a tool"),
        ({"name": "search"}, "item 1 is a dict, not a tool"),
        (Invoke, "item 1 is the class Invoke, not a tool"),
        (Described(), "item 1 is a Described, not a tool"),
    ],
)
def test_what_is_no_tool_is_refused_with_its_place(item, says):
    with pytest.raises(ConfigError, match=says):
        as_tools([search, item])


@pytest.mark.parametrize("items", ["search", search, tool(search), None])
def test_what_is_no_list_of_tools_is_refused(items):
    with pytest.raises(ConfigError, match="expected a list of tools"):
        as_tools(items)


# --- the tool that ends a run -------------------------------------------------------------------


def test_the_exit_tool_returns_the_final_result_and_ends_the_run():
    made = exit_tool()
    assert made.info.parameters is not None
    assert (made.name, made.kind, made.return_directly, made.in_thread) == ("exit", "invokable", True, False)
    assert made.info.parameters["required"] == ["final_result"]
    assert made.info.parameters["properties"]["final_result"]["type"] == "string"
    assert run(made, '{"final_result": "42"}') == "42"
    assert made.validate("{}") == "arguments.final_result: missing"


def test_the_exit_tool_can_have_another_name():
    assert exit_tool("done").name == "done"
    with pytest.raises(ConfigError, match="a tool cannot be called 'all done'"):
        exit_tool("all done")
