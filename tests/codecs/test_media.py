"""Media that the program gives without their type."""

import pytest

from suture.codecs import convert
from suture.messages import ImagePart, Message

DATA = {"image/png": "iVBORw0KGgo=", "image/jpeg": "/9j/4AAQSkZJRg==", "image/gif": "R0lGODlhAQABAAAAACw="}


@pytest.mark.parametrize("kind", DATA)
@pytest.mark.parametrize("wire", ["openai-chat", "openai-responses", "anthropic", "gemini", "bedrock"])
def test_an_image_without_a_type_has_that_of_its_first_bytes(wire: str, kind: str):
    data = DATA[kind]
    given = Message.user([ImagePart(base64_data=data)])
    typed = Message.user([ImagePart(base64_data=data, mime_type=kind)])
    told = convert([given], "message", wire)
    assert told == convert([typed], "message", wire)
    assert data in str(told.messages)
    assert not told.losses
