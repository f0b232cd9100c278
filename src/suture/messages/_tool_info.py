"""`ToolInfo`: what a model is told about a tool. Apart from `_tools.py` because parts and blocks hold it."""

from collections.abc import Mapping
from typing import Any

from suture.messages._frozen import EMPTY
from suture.messages._value import Value

__all__ = ["ToolInfo"]


class ToolInfo(Value):
    """A tool as the model sees it.

    `parameters` is the JSON Schema of its arguments, `None` for a tool that takes none.

    >>> from suture.messages import ToolInfo
    >>> ToolInfo("search", "Search the docs.", {"type": "object", "properties": {"query": {}}}).name
    'search'
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] | None = None
    extra: Mapping[str, Any] = EMPTY
