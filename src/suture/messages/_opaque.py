"""`Opaque`: a part or block of a type that this version does not know."""

from collections.abc import Mapping
from typing import Any, cast

from suture.errors import InputError
from suture.messages._frozen import EMPTY
from suture.messages._value import Value

__all__ = ["OPAQUE", "Opaque"]

OPAQUE = "suture.opaque"
"""The reserved tag of `Opaque`. It never leaves the codec, which writes the data in its place."""


class Opaque(Value, tag_field="type", tag=OPAQUE):
    """A part or block of a type this version does not know, kept whole and written back as it was.

    `data` is the whole JSON object, and its `type` is what this version does not know.

    >>> from suture.messages import Opaque, from_json, to_json
    >>> stored = b'[{"kind":"agentic","role":"user","content_blocks":[{"type":"hologram","beam":7}]}]'
    >>> from_json(stored)[0].content_blocks
    (Opaque(data={'type': 'hologram', 'beam': 7}),)
    >>> stored[1:-1] in to_json(from_json(stored))
    True
    """

    data: Mapping[str, Any]

    def __post_init__(self) -> None:
        super().__post_init__()
        kind = self.data.get("type")
        if not isinstance(kind, str) or kind == OPAQUE:
            raise InputError("Opaque takes an object with a type of its own here", path="data")

    @property
    def type(self) -> str:
        """The type that this version does not know."""
        return self.data["type"]

    @property
    def index(self) -> int | None:
        """Its place in a streamed reply, where the data says so."""
        index = self.data.get("index")
        return index if type(index) is int else None

    @property
    def extra(self) -> Mapping[str, Any]:
        """The `extra` in the data, empty where there is none."""
        extra = self.data.get("extra")
        return cast("Mapping[str, Any]", extra) if isinstance(extra, Mapping) else EMPTY
