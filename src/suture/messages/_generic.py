"""`M`, the type of a message wherever any will do; left out it is `Any`, so `RunResult` alone is a type, too."""

from typing import TYPE_CHECKING, Any

__all__ = ["M"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # checkers bring it along; a default is plain Python from 3.13 on

    M = TypeVar("M", default=Any)
else:
    from typing import TypeVar

    M = TypeVar("M")
