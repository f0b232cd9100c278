"""`Reader`: what turns the text of a model's arguments into values, and the schema that asks for them."""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from suture.messages import ToolArgument
from suture.tools._errors import ToolArgumentsError

_LONGEST = 300


class Reader(NamedTuple):
    """A schema (none for a tool without arguments), and what reads arguments into values by name.

    `read` raises `ToolArgumentsError`; `problem` says the same as text, and nothing if all is well.
    """

    parameters: Mapping[str, Any] | None
    read: Callable[[str], dict[str, Any]]

    def problem(self, arguments: str) -> str:
        """Say what is wrong with these arguments, or nothing."""
        try:
            self.read(arguments)
        except ToolArgumentsError as error:
            return error.reason
        return ""


def raw_reader(parameter: str, checked: Reader | None) -> Reader:
    """Make a reader that hands the text over as it is, once the one it stands for finds no fault with it.

    >>> from suture.tools._reader import raw_reader
    >>> raw_reader("argument", None).read("not even JSON")
    {'argument': ToolArgument(text='not even JSON')}
    """

    def read(text: str) -> dict[str, Any]:
        if checked:
            checked.read(text)
        return {parameter: ToolArgument(text)}

    return Reader(checked.parameters if checked else None, read)


def clip(text: str) -> str:
    """Shorten what goes back to the model.

    >>> from suture.tools._reader import clip
    >>> len(clip("x" * 1000))
    300
    """
    return text if len(text) <= _LONGEST else text[: _LONGEST - 1] + "…"
