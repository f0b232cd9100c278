"""Where requests go, and which rules hold there."""

from collections.abc import Sequence
from functools import lru_cache
from urllib.parse import urlsplit

from msgspec import Struct
from msgspec.structs import replace

from suture.errors import ConfigError
from suture.profiles import Profile, default_profile, profile_for, profile_of
from suture.proxy.requests import Reduction

__all__ = ["DEFAULT_ROUTES", "Route", "find_route", "rules_of"]


class Route(Struct, frozen=True, kw_only=True):
    """Sends the requests whose path begins with `prefix`, which is taken off, to an upstream.

    >>> route = Route(prefix="/openai", upstream="https://api.openai.com/v1")
    >>> route.target("/openai/chat/completions"), route.target("/openai/v1/models")
    ('https://api.openai.com/v1/chat/completions', 'https://api.openai.com/v1/models')
    """

    upstream: str
    prefix: str = ""
    profile: Profile | None = None
    """Whose rules hold; those of the upstream and the model, if not given."""
    reduction: Reduction = Reduction()

    def __post_init__(self) -> None:
        """Refuse what is no address."""
        parts = urlsplit(self.upstream)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ConfigError("an upstream is an address as https://api.openai.com, without a query")
        if parts.username or parts.password:
            raise ConfigError("an upstream's address must not hold a password; clients send their keys in headers")
        if self.prefix and (not self.prefix.startswith("/") or self.prefix.endswith("/")):
            raise ConfigError(f"a path begins with a slash and does not end in one, as /openai; found {self.prefix!r}")

    @property
    def host(self) -> str:
        """The name of the upstream's machine, with the port where one is given."""
        return urlsplit(self.upstream).netloc

    def takes(self, path: str) -> bool:
        """Tell whether a request with this path goes here."""
        return path.startswith(self.prefix) and path[len(self.prefix) : len(self.prefix) + 1] in ("", "/", "?")

    def target(self, path: str) -> str:
        """Return where a request with this path goes. What address and path have in common (`/v1`) is there once."""
        rest = path[len(self.prefix) :]
        parts = urlsplit(self.upstream)
        steps = parts.path.rstrip("/").split("/")[1:]
        for count in range(len(steps), 0, -1):
            common = "/" + "/".join(steps[-count:])
            if rest == common or rest.startswith(f"{common}/"):
                steps = steps[:-count]
                break
        return f"{parts.scheme}://{parts.netloc}{''.join(f'/{step}' for step in steps)}{rest}"


DEFAULT_ROUTES = (
    Route(prefix="/openai", upstream="https://api.openai.com/v1"),
    Route(prefix="/anthropic", upstream="https://api.anthropic.com"),
    Route(prefix="/gemini", upstream="https://generativelanguage.googleapis.com"),
)
"""The providers themselves, each below its name."""


def find_route(routes: Sequence[Route], path: str) -> Route | None:
    """Return the route that a path takes: the one with the longest prefix.

    >>> find_route(DEFAULT_ROUTES, "/anthropic/v1/messages").host
    'api.anthropic.com'
    """
    return max((route for route in routes if route.takes(path)), key=lambda route: len(route.prefix), default=None)


_SAYS_NOTHING = frozenset(("strictest", "openai-chat"))
"""What is known of a server that nobody knows, and of one that may pass on to any model, as OpenRouter does."""


@lru_cache(maxsize=1024)
def rules_of(host: str, model: str, wire: str) -> Profile:
    """Return whose rules hold at an upstream for a model.

    A provider's own address decides. Elsewhere the model's name says what its ids must be, and nothing else: the
    server that is asked makes the rest what its model takes.

    >>> rules_of("api.mistral.ai", "mistral-large", "openai-chat").name
    'mistral'
    >>> rules_of("openrouter.ai", "anthropic/claude-4", "openai-chat").name
    'openai-chat, ids of anthropic'
    >>> rules_of("127.0.0.1:8000", "my-model", "openai-chat").name
    'openai-chat'
    """
    base = default_profile(wire)
    server, asked = profile_of(host), profile_of(model)
    if server.name not in _SAYS_NOTHING:
        return server if server.speaks_of(wire) else profile_for(wire, base, server)
    if asked.name in {base.name, *_SAYS_NOTHING} or asked.ids is None:
        return base
    return profile_for(wire, base, replace(asked, wires=()))  # so only the ids are taken
