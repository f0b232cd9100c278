"""A client of the `anthropic` package whose requests never carry a broken history."""

from typing import Unpack

from suture.integrations.clients import ClientT, wrap_client
from suture.integrations.guest import GuestOptions, Options

__all__ = ["wrap"]


def wrap(client: ClientT, **options: Unpack[Options]) -> ClientT:
    """Return a client like `client`, of the same class, that sends acceptable histories.

    `messages` are repaired on their way out if they need it, even those of a batch and those that are only counted;
    nothing else in a request changes. The given client does not change, and both use the same connections.

    Args:
        client: an `Anthropic`, an `AsyncAnthropic`, or the client of a platform, such as `AnthropicBedrock`.
        options: the options of every guest, see `suture.integrations.guest.Options`.

    >>> from anthropic import Anthropic
    >>> client = wrap(Anthropic(api_key="none"))
    >>> type(client) is Anthropic
    True
    """
    return wrap_client(client, "anthropic", ("anthropic",), GuestOptions.of(__name__, **options))
