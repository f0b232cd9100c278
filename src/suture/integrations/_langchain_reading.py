"""The tools that read what was saved, as LangChain's tools."""

from collections.abc import Callable
from typing import Any, NamedTuple, NoReturn

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from suture.agent import run_to_end
from suture.errors import NotInRunError
from suture.integrations._langchain_backends import BackendOf
from suture.integrations._langchain_reduction_book import Conversation
from suture.messages import TextPart, ToolArgument, ToolResult
from suture.middleware.reducing import reading_tools
from suture.tools import Tool, ToolArgumentsError
from suture.wires import argument_json

__all__ = ["Opened", "Reader"]


class Opened(NamedTuple):
    """A conversation whose saved output can be read, and where it is."""

    book: Conversation
    backend_of: BackendOf


class Reader:
    """Makes the tools that read what a conversation has saved, no more of it at once than `limit` characters.

    >>> [tool.name for tool in Reader("read_file", 20_000).tools]
    ['read_file', 'ls', 'grep']
    """

    def __init__(self, read_name: str, limit: int) -> None:
        self._read_name, self._limit = read_name, limit
        self._infos = {tool.name: tool.info for tool in self._tools_of(_nowhere)}
        self.names = frozenset(self._infos)
        """What the tools are called."""
        self.tools = [self.bound(name, lambda _: _nowhere()) for name in self._infos]
        """What the model is told: these belong to no conversation."""

    def bound(self, name: str, opening: Callable[[bool], Opened]) -> BaseTool:
        """Return a tool that reads from the conversation which `opening` gives; that is told whether it may wait."""
        info = self._infos[name]
        schema = dict[str, Any](info.parameters or {})

        async def read(arguments: dict[str, Any], opened: Opened) -> str:
            tool = next(tool for tool in self._tools_of(lambda: opened) if tool.name == name)
            known = {key: value for key, value in arguments.items() if key in schema["properties"]}
            try:
                return _text(await tool.endpoint(ToolArgument(argument_json(known))))
            except ToolArgumentsError as error:
                raise ToolException(str(error)) from error

        def plain(**arguments: Any) -> str:
            return run_to_end(lambda: read(arguments, opening(False)))  # noqa: FBT003 - said above

        async def waiting(**arguments: Any) -> str:
            return await read(arguments, opening(True))  # noqa: FBT003 - said above

        return StructuredTool(
            name=name,
            description=info.description,
            args_schema=schema,
            func=plain,
            coroutine=waiting,
            handle_tool_error=True,
        )

    def _tools_of(self, opened: Callable[[], Opened]) -> tuple[Tool[..., Any], ...]:
        return reading_tools(
            lambda: opened().book, lambda name: opened().backend_of(name), self._read_name, self._limit
        )


def _nowhere() -> NoReturn:
    raise NotInRunError("this tool reads what an agent's conversation has saved; it works inside an agent alone")


def _text(result: ToolResult) -> str:
    """Return what a tool says; raise it where it says what is wrong."""
    text = "".join([part.text for part in result.parts if isinstance(part, TextPart)])
    if result.is_error:
        raise ToolException(text)
    return text
