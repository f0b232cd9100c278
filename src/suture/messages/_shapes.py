"""The shapes that parts and content blocks share.

A `Message` holds parts, an `AgenticMessage` holds blocks; both are tagged unions whose members mostly look
alike. Each look is written here once. `_parts.py` and `_blocks.py` give it a tag, and add what is theirs::

    Streamed                 index, extra          every piece, and a ToolCall
    └── Piece                                      tagged by "type"
        ├── Text             text                  TextPart       UserInputText, AssistantGenText
        ├── Thought          text, signature       ReasoningPart  Reasoning
        └── Media            url, base64_data, mime_type
            │                                      AudioPart      UserInputAudio, AssistantGenAudio
            │                                      VideoPart      UserInputVideo, AssistantGenVideo
            │                                                     AssistantGenImage
            ├── Image        detail                ImagePart      UserInputImage
            └── File         name                  FilePart       UserInputFile
"""

from collections.abc import Mapping
from typing import Any

from suture.messages._frozen import EMPTY
from suture.messages._value import Value

__all__ = ["File", "Image", "Media", "Piece", "Streamed", "Text", "Thought"]


class Streamed(Value, kw_only=True):
    """Something a model may send piecemeal: `index` is its place in the reply, `extra` anyone's own data."""

    index: int | None = None
    extra: Mapping[str, Any] = EMPTY


class Piece(Streamed, tag_field="type"):
    """A part or a block."""


class Text(Piece):
    """A text."""

    text: str = ""


class Thought(Piece):
    """What a model thought: the text, or a summary of it, and the provider's signature to vouch for it."""

    text: str = ""
    signature: str = ""


class Media(Piece, kw_only=True):
    """An image, a sound, a film or a file: a `url` or `base64_data`, and its `mime_type`."""

    url: str = ""
    base64_data: str = ""
    mime_type: str = ""


class Image(Media, kw_only=True):
    """An image a model is to look at; `detail` says how closely (`high`, `low`, `auto`)."""

    detail: str = ""


class File(Media, kw_only=True):
    """A file, with its `name`."""

    name: str = ""
