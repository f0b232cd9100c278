"""A client of the `anthropic` package whose requests never carry a broken history."""

from operator import is_
from typing import Any, Unpack

from suture.integrations.clients import Body, ClientT, Histories, Rewrite, wrap_client
from suture.integrations.guest import GuestOptions, Options
from suture.providers import BATCHES, PLACES, continues
from suture.wires.fields import get, is_map

__all__ = ["wrap"]

_ROOT = "v1/"
_MESSAGES = PLACES["messages"]


def wrap(client: ClientT, **options: Unpack[Options]) -> ClientT:
    """Return a client like `client`, of the same class, that sends acceptable histories.

    `messages` are repaired on their way out, where they need it, also those of a batch and those that are only counted;
    nothing else of a request is touched. The given client stays as it is, and both use the same connections.

    Args:
        client: an `Anthropic`, an `AsyncAnthropic`, or the client of a platform, such as `AnthropicBedrock`.
        options: those of every guest, see `suture.integrations.guest.Options`.

    >>> from anthropic import Anthropic
    >>> client = wrap(Anthropic(api_key="none"))
    >>> type(client) is Anthropic
    True
    """
    histories = Histories(GuestOptions.of(__name__, **options), "anthropic")

    def rewrite(path: str, body: Body, added: Body) -> Body:
        place = path.removeprefix(_ROOT)
        if place == BATCHES:
            return _each(body, rewrite)
        if PLACES.get(place) is not _MESSAGES or continues({**body, **added}):
            return body
        return histories.repair(body, _MESSAGES)

    return wrap_client(client, "anthropic>=0.125", rewrite)


def _each(body: Body, rewrite: Rewrite) -> Body:
    """Return the body of a batch with each of its requests rewritten; the very same where all of them stay."""
    asked: Any = body.get("requests")
    if asked.__class__ is not list:
        return body
    requests = [_one(request, rewrite) for request in asked]
    return body if all(map(is_, requests, asked)) else {**body, "requests": requests}


def _one(request: Any, rewrite: Rewrite) -> Any:
    params: Any = get(request, "params")
    if not is_map(params):
        return request
    rewritten = rewrite("v1/messages", params, {})
    return request if rewritten is params else {**request, "params": rewritten}
