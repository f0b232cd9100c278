"""A client of the `openai` package whose requests never carry a broken history."""

from typing import Any

from suture.integrations._clients import Body, ClientT, Generator, Histories, History, Orphans, wrap_client
from suture.profiles import Profile

__all__ = ["wrap"]

_CHAT = History("messages", "openai-chat")
_RESPONSES = History("input", "openai-responses")
_PLACES = {
    "chat/completions": _CHAT,
    "responses": _RESPONSES,
    "responses/compact": _RESPONSES,
    "responses/input_tokens": _RESPONSES,
}
_CONTINUES = ("previous_response_id", "conversation")
_HELD: Any = {"type": "item_reference", "id": "what the service keeps"}


def wrap(
    client: ClientT,
    *,
    profile: str | Profile | None = None,
    orphans: Orphans = "text",
    generator: Generator | None = None,
    language: str | None = None,
) -> ClientT:
    """Return a client like `client`, of the same class, that sends acceptable histories.

    `messages` of Chat Completions and `input` of Responses are repaired on their way out, where they need it; nothing
    else of a request is touched. The given client stays as it is, and both use the same connections.

    Args:
        client: an `OpenAI`, an `AsyncOpenAI`, or one of their kind, such as `AzureOpenAI`.
        profile: whose rules hold, where `base_url` leads to another server: `"mistral"`, say. OpenAI's by default.
        orphans: what becomes of a result whose call is nowhere: kept as user text (`"text"`), or removed (`"drop"`).
        generator: the text that stands for a missing result, of `(name, call_id)` or `(name, call_id, cause=…)`.
        language: of the texts, `"en"` or `"zh"`.

    >>> from openai import OpenAI
    >>> client = wrap(OpenAI(api_key="none"))
    >>> type(client) is OpenAI
    True
    """
    histories = Histories(
        (_CHAT.wire, _RESPONSES.wire), profile=profile, orphans=orphans, generator=generator, language=language
    )

    def rewrite(path: str, body: Body, added: Body) -> Body:
        place = _PLACES.get(path)
        if place is None:
            return body
        continues = place is _RESPONSES and any(body.get(key) or added.get(key) for key in _CONTINUES)
        return histories.mend(body, place, held=_HELD if continues else None)

    return wrap_client(client, "openai", rewrite)
