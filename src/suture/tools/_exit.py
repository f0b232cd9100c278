"""A tool with which a model ends the run."""

from typing import Annotated

from msgspec import Meta

from suture.tools._function import tool
from suture.tools._tool import Tool


def exit_tool(name: str = "exit") -> Tool[[str], str]:
    """Make a tool that ends the run with the final result that the model passes to it.

    >>> from suture.tools import exit_tool
    >>> done = exit_tool()
    >>> done.name, done.return_directly, list(done.info.parameters["properties"])
    ('exit', True, ['final_result'])
    >>> done("42")
    '42'
    """

    def finish(
        final_result: Annotated[str, Meta(description="The final result, complete: nothing follows it.")],
    ) -> str:
        return final_result

    return tool(
        finish,
        name=name,
        description="End the work and return the final result.",
        idempotent=True,
        return_directly=True,
        thread=False,
    )
