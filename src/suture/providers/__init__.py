"""One package for each provider, loaded on first use: its rules, its wire, its codec and its streams.

This module knows where a request to each provider carries its history: the end of the path, the field and the wire.
"""

from typing import Any, NamedTuple

from suture.wires.fields import is_map

__all__ = ["BATCHES", "KEPT", "PLACES", "Place", "continues", "find_place"]


class Place(NamedTuple):
    """Where a request carries a history: the field of its body, and the wire of the messages in it.

    >>> Place("input", "openai-responses").field
    'input'
    """

    field: str
    wire: str


_CHAT = Place("messages", "openai-chat")
_RESPONSES = Place("input", "openai-responses")
_MESSAGES = Place("messages", "anthropic")
_CONTENTS = Place("contents", "gemini")

PLACES = {
    "chat/completions": _CHAT,
    "responses": _RESPONSES,
    "responses/compact": _RESPONSES,
    "responses/input_tokens": _RESPONSES,
    "messages": _MESSAGES,
    "messages/count_tokens": _MESSAGES,
    "messages/batches": _MESSAGES,
}
"""The place for each end of a path."""
_METHODS = {
    "generateContent": _CONTENTS,
    "streamGenerateContent": _CONTENTS,
    "countTokens": _CONTENTS,
    "rawPredict": _MESSAGES,
    "streamRawPredict": _MESSAGES,
}
"""The place for each method after the colon of a path: Gemini's own methods, and those of Claude on Vertex AI."""
BATCHES = "messages/batches"
"""The path of requests that hold several others, each under `params`."""
KEPT: Any = {"type": "item_reference", "id": "what the service keeps"}
"""A list item that stands for the part of a conversation that the service keeps."""


def find_place(path: str) -> Place | None:
    """Return where a request with this path carries its history; `None` if it carries none.

    >>> find_place("/v1/chat/completions").wire, find_place("/v1beta/models/gemini-3:streamGenerateContent").wire
    ('openai-chat', 'gemini')
    >>> find_place("/v1/models") is None
    True
    """
    path = path.rstrip("/")
    last = path.rpartition("/")[2]
    if ":" in last:
        return _METHODS.get(last.rpartition(":")[2])
    return PLACES.get(last) or PLACES.get("/".join(path.rsplit("/", 2)[-2:]))


def continues(body: Any) -> bool:
    """Return whether the service keeps messages that come before the list in this request.

    >>> continues({"previous_response_id": "resp_1"}), continues({"messages": []})
    (True, False)
    """
    thread: Any = body.get("thread")
    is_thread = is_map(thread) and thread.get("type") != "create"
    return is_thread or bool(body.get("previous_response_id") or body.get("conversation"))
