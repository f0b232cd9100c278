"""A client of the `openai` package whose requests never carry a broken history."""

from typing import Unpack

from suture.integrations.clients import ClientT, wrap_client
from suture.integrations.guest import GuestOptions, Options

__all__ = ["wrap"]


def wrap(client: ClientT, **options: Unpack[Options]) -> ClientT:
    """Return a client like `client`, of the same class, that sends acceptable histories.

    `messages` of Chat Completions and `input` of Responses are repaired on their way out if they need it; nothing else
    in a request changes. Calls that the service keeps (`previous_response_id`, `conversation`), and that a request
    leaves open, are answered if their response went through this client or a copy of it. The given client does not
    change, and both use the same connections.

    Args:
        client: an `OpenAI`, an `AsyncOpenAI`, or one of their kind, such as `AzureOpenAI`.
        options: the options of every guest, see `suture.integrations.guest.Options`. Set `profile`, to `"mistral"` say,
            if `base_url` leads to another server.

    >>> from openai import OpenAI
    >>> client = wrap(OpenAI(api_key="none"))
    >>> type(client) is OpenAI
    True
    """
    wires = ("openai-chat", "openai-responses")
    return wrap_client(client, "openai", wires, GuestOptions.of(__name__, **options))
