"""A client of the `openai` package whose requests never carry a broken history."""

from typing import Unpack

from suture.integrations.clients import ClientT, wrap_client
from suture.integrations.guest import GuestOptions, Options

__all__ = ["wrap"]


def wrap(client: ClientT, **options: Unpack[Options]) -> ClientT:
    """Return a client like `client`, of the same class, that sends acceptable histories.

    `messages` of Chat Completions and `input` of Responses are repaired on their way out, where they need it; nothing
    else of a request is touched. Calls that the service keeps (`previous_response_id`, `conversation`), and that a
    request leaves open, are answered, if their response went through this client or a copy of it. The given client
    stays as it is, and both use the same connections.

    Args:
        client: an `OpenAI`, an `AsyncOpenAI`, or one of their kind, such as `AzureOpenAI`.
        options: those of every guest, see `suture.integrations.guest.Options`. `profile` names whose rules hold where
            `base_url` leads to another server: `"mistral"`, say.

    >>> from openai import OpenAI
    >>> client = wrap(OpenAI(api_key="none"))
    >>> type(client) is OpenAI
    True
    """
    wires = ("openai-chat", "openai-responses")
    return wrap_client(client, "openai>=2.54", wires, GuestOptions.of(__name__, **options))
