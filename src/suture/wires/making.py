"""What a wire is made with, for the wires that live outside this room: reading, copying and telling users' objects."""

from suture.wires._arguments import is_object_text, sound_arguments
from suture.wires._contents import apart
from suture.wires._fields import get, given, is_list, is_map, put, text_of, word
from suture.wires._kinds import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING
from suture.wires._mark import media_note
from suture.wires._parts import MEDIA as MEDIA_PARTS
from suture.wires._text import json_text, says_nothing
from suture.wires._values import GLANCE, NO_EXTRA, key_of
from suture.wires._words import Telling

__all__ = [
    "CALL",
    "GLANCE",
    "MEDIA",
    "MEDIA_PARTS",
    "NO_EXTRA",
    "OTHER",
    "RESULT",
    "TEXT",
    "THINKING",
    "Telling",
    "apart",
    "get",
    "given",
    "is_list",
    "is_map",
    "is_object_text",
    "json_text",
    "key_of",
    "media_note",
    "put",
    "says_nothing",
    "sound_arguments",
    "text_of",
    "word",
]
