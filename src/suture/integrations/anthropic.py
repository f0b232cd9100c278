"""Wrapper for clients of the `anthropic` package that repairs the histories in their requests."""

from typing import Unpack

from suture.integrations.clients import ClientT, wrap_client
from suture.integrations.guest import GuestOptions, Options

__all__ = ["wrap"]


def wrap(client: ClientT, **options: Unpack[Options]) -> ClientT:
    """Return a client like `client`, of the same class, that sends acceptable histories.

    `messages` are repaired before they are sent, if needed, also in batches and in requests that only count tokens;
    nothing else in a request changes. The client that is passed in does not change, and both use the same connections.

    Args:
        client: an `Anthropic`, an `AsyncAnthropic`, or the client of a platform, such as `AnthropicBedrock`.
        options: those of every guest, see `suture.integrations.guest.Options`.

    >>> from anthropic import Anthropic
    >>> client = wrap(Anthropic(api_key="none"))
    >>> type(client) is Anthropic
    True
    """
    return wrap_client(client, "anthropic>=0.125", ("anthropic",), GuestOptions.of(__name__, **options))
