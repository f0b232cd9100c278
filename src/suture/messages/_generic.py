"""`M`, the type of a message wherever any will do; left out it is `Any`, so `RunResult` alone is a type, too.

`NativeM` is the type of a message of Suture's own; left out it is `Message`.
"""

from typing import TYPE_CHECKING, Any

__all__ = ["M", "NativeM"]

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # checkers bring it along; a default is plain Python from 3.13 on

    from suture.messages._messages import Message

    M = TypeVar("M", default=Any)
    NativeM = TypeVar("NativeM", default=Message)
else:
    from typing import TypeVar

    M = TypeVar("M")
    NativeM = TypeVar("NativeM")
