"""The parts of a multimodal `Message` or `ToolResult`. Their shapes are in `_shapes.py`."""

from collections.abc import Sequence
from typing import TypeAlias

from suture.messages._frozen import EMPTY
from suture.messages._opaque import Opaque
from suture.messages._shapes import File, Image, Media, Piece, Text, Thought
from suture.messages._tool_info import ToolInfo

__all__ = [
    "AudioPart",
    "FilePart",
    "ImagePart",
    "Part",
    "ReasoningPart",
    "TextPart",
    "ToolSearchPart",
    "VideoPart",
]


class TextPart(Text, tag="text"):
    """A piece of text.

    >>> from suture.messages import TextPart
    >>> TextPart("What is in this picture?")
    TextPart(text='What is in this picture?')
    """

    def __post_init__(self) -> None:
        if type(self.text) is not str or self.index is not None or self.extra is not EMPTY:
            super().__post_init__()


class ImagePart(Image, tag="image"):
    """An image, by `url` or as `base64_data` with its `mime_type`.

    >>> from suture.messages import ImagePart
    >>> ImagePart(url="https://example.com/cat.png", detail="high").detail
    'high'
    """


class AudioPart(Media, tag="audio"):
    """A sound."""


class VideoPart(Media, tag="video"):
    """A film."""


class FilePart(File, tag="file"):
    """A file, with its `name`."""


class ReasoningPart(Thought, tag="reasoning"):
    """What the model thought before it answered; send it back with its `signature` untouched."""


class ToolSearchPart(Piece, tag="tool_search_result"):
    """The tools that a tool search found."""

    tools: Sequence[ToolInfo] = ()


Part: TypeAlias = TextPart | ImagePart | AudioPart | VideoPart | FilePart | ReasoningPart | ToolSearchPart | Opaque
"""One part of a multimodal message."""
