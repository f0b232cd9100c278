"""A client of the `anthropic` package whose requests never carry a broken history."""

from operator import is_
from typing import Any, Unpack, cast

from suture.integrations.clients import Body, ClientT, Histories, wrap_client
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
        place, batch = path.removeprefix(_ROOT), body.get("requests")
        if place == BATCHES and batch.__class__ is list:
            requests = [rewrite_one(request) for request in cast("list[Any]", batch)]
            return body if all(map(is_, requests, cast("list[Any]", batch))) else {**body, "requests": requests}
        if PLACES.get(place) is not _MESSAGES or continues({**body, **added}):
            return body
        return histories.repair(body, _MESSAGES)

    def rewrite_one(request: Any) -> Any:
        params: Any = get(request, "params")
        rewritten = rewrite("messages", params, {}) if is_map(params) else params
        return request if rewritten is params else {**request, "params": rewritten}

    return wrap_client(client, "anthropic>=0.125", rewrite)
