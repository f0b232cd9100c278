"""Wrong ways to make tools, and to call them."""

from suture import RunContext, Tool, ToolContext, ToolResult, exit_tool, tool
from suture.messages import TextPart


@tool
def double(number: int) -> int:
    return 2 * number


@tool
async def search(query: str, limit: int = 5) -> list[str]:
    return [query] * limit


@tool(timeout=10)
async def count(key: str, ctx: RunContext[dict[str, int]]) -> int:
    ctx.deps.rows  # wrong: the dependencies are a dict  # noqa: B018
    text: str = ctx.deps[key]  # wrong: a number is no text
    return len(text)


class Fleet:
    @tool
    def size(self, port: str) -> int:
        return len(port)


async def called() -> None:
    double("4")  # wrong: a text is no number
    double()  # wrong: the number is missing
    double(number=4, twice=True)  # wrong: no such parameter
    text: str = double(4)  # wrong: a number is no text
    found: list[int] = await search("a")  # wrong: texts are no numbers
    search("a").upper()  # wrong: it was not awaited
    await count("a")  # wrong: called in Python, it is given its context by hand
    Fleet().size(3)  # wrong: a number is no port
    Fleet().size()  # wrong: the port is missing
    print(text, found, exit_tool()(7))  # wrong: the final result is a text


@tool(nane="look")  # wrong: it is called name
def look() -> str:
    return ""


@tool(kind="stream")  # wrong: no such kind
def stream() -> str:
    return ""


@tool(timeout="10")  # wrong: a text is no number of seconds
def slow() -> str:
    return ""


@tool(schema=["path"])  # wrong: a list is no schema
def delete(path: str) -> str:
    return path


tool(42)  # wrong: a number is no function
double.name = "triple"  # wrong: a tool does not change
double.description  # wrong: it is in info  # noqa: B018
ToolContext("search")  # wrong: no call id
ToolResult(7)  # wrong: a number is no part
ToolResult([TextPart("done")], failed=True)  # wrong: it is called is_error
kept: Tool[[str], str] = double  # wrong: it takes a number
