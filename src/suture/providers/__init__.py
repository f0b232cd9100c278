"""One room for each provider: its rules, its wire, its codec and its streams. Each is loaded when it is asked for.

Here stands where the requests of each provider's interface carry a history: the end of the path, the field, its wire.
"""

from typing import Any, NamedTuple

from suture.wires.fields import is_map

__all__ = ["BATCHES", "KEPT", "PLACES", "Place", "continues", "find_place"]


class Place(NamedTuple):
    """Where a request carries a history: the field of the body, and the wire of what stands there.

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
"""The place by the end of a path."""
_METHODS = {
    "generateContent": _CONTENTS,
    "streamGenerateContent": _CONTENTS,
    "countTokens": _CONTENTS,
    "rawPredict": _MESSAGES,
    "streamRawPredict": _MESSAGES,
}
"""The place by what follows a colon: Gemini's own, and Claude at Google's."""
BATCHES = "messages/batches"
"""Where several requests stand in one, each under `params`."""
KEPT: Any = {"type": "item_reference", "id": "what the service keeps"}
"""What stands in a list for that part of a conversation which the service keeps."""


def find_place(path: str) -> Place | None:
    """Return where a request with this path carries a history, if it does.

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
    """Return whether the service keeps what came before this request's list.

    >>> continues({"previous_response_id": "resp_1"}), continues({"messages": []})
    (True, False)
    """
    thread: Any = body.get("thread")
    is_thread = is_map(thread) and thread.get("type") != "create"
    return is_thread or bool(body.get("previous_response_id") or body.get("conversation"))
