"""Clients of the official SDKs whose requests carry acceptable histories.

Every method of such a client, plain or streaming, raw or parsed, stable or beta, ends in one public method, `request`.
A copy of the client gets a `request` of its own, which looks at the body and passes all else on. What it gives back, a
response or an awaitable, is passed on as well: sync and async clients are the same here.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from functools import partial
from typing import Any, Literal, NamedTuple, Protocol, TypeVar, cast

from suture.errors import ConfigError, InputError
from suture.integrations._following import Following
from suture.profiles import PROFILES, Profile, default_profile, get_profile
from suture.repair import Generator
from suture.wires.fields import is_list, is_map

__all__ = ["Body", "ClientT", "Generator", "Histories", "History", "Orphans", "Rewrite", "wrap_client"]

Body = Mapping[str, Any]
Orphans = Literal["text", "drop"]
Rewrite = Callable[[str, Body, Body], Body]
"""Given a path without slashes at its ends, a body, and what the SDK will merge into that body: the body to send."""


class Client(Protocol):
    """What a client of an SDK can do, whatever class it is of."""

    def copy(self) -> Any:
        """Return another client with the same settings and connections."""
        ...

    def with_options(self) -> Any:
        """Return another client, as `copy` does."""
        ...


ClientT = TypeVar("ClientT", bound=Client)


class History(NamedTuple):
    """Where a request carries a history: the field of the body, and the wire of what stands there.

    >>> History("input", "openai-responses").field
    'input'
    """

    field: str
    wire: str


class Histories:
    """Mends the histories in the bodies of requests. What has another shape, or cannot be read, is left as it is.

    >>> histories = Histories(["openai-chat"])
    >>> body = {"model": "m", "messages": [{"role": "tool", "tool_call_id": "a", "content": "42"}]}
    >>> histories.mend(body, History("messages", "openai-chat"))["messages"][0]["role"]
    'user'
    """

    def __init__(
        self,
        wires: Sequence[str],
        *,
        profile: str | Profile | None = None,
        orphans: Orphans = "text",
        generator: Generator | None = None,
        language: str | None = None,
    ) -> None:
        self._profiles = _profiles(wires, profile)
        self._followings = {
            wire: Following(wire, orphans=orphans, generator=generator, language=language) for wire in wires
        }

    def mend(self, body: Body, history: History, *, held: Any = None) -> Body:
        """Return `body` with an acceptable history; the very same if it has one.

        `held` stands for what the service keeps of the conversation, as a message that is not sent.
        """
        given: Any = body.get(history.field)
        messages = _kept(given)
        if not is_list(messages):
            return body
        try:
            known = [*([] if held is None else [held]), *_copied(messages)]
            mended = self._followings[history.wire].mend(known, self._profiles[history.wire])
        except (InputError, RecursionError):
            mended = known = messages  # the provider says what is wrong with it
        if mended is not known:
            messages = [message for message in mended if message is not held]
        return body if messages is given else {**body, history.field: messages}


def _kept(given: Any) -> Any:
    """Return `given` as something that can be read more than once."""
    return list(cast("Iterator[Any]", given)) if isinstance(given, Iterator) else given


def _copied(value: Any) -> Any:
    """Return `value` in dicts and lists of its own: the user may write into theirs when we still have them in mind."""
    if value.__class__ is dict:
        return {name: each if each.__class__ is str else _copied(each) for name, each in value.items()}
    if is_list(value):
        return [_copied(each) for each in value]
    return value


def _profiles(wires: Sequence[str], profile: str | Profile | None) -> dict[str, str | Profile]:
    """Return the profile of each wire: `profile` where it has something to say of it, else its own provider's."""
    own: dict[str, str | Profile] = {wire: default_profile(wire).name for wire in wires}
    if profile is None:
        return own
    spoken = [wire for wire in wires if get_profile(profile).speaks_of(wire)]
    if not spoken:
        fit = [name for name in PROFILES if any(map(get_profile(name).speaks_of, wires))]
        said = f"the profile {get_profile(profile).name!r} says nothing of what this client sends"
        raise ConfigError(f"{said}; these do: {', '.join(fit)}")
    return own | dict.fromkeys(spoken, profile)


def wrap_client(client: ClientT, package: str, rewrite: Rewrite) -> ClientT:
    """Return a copy of `client`, of the SDK `package`, whose POST requests have the body that `rewrite` returns."""
    kind = cast("type", client.__class__)
    known = package in {base.__module__.partition(".")[0] for base in kind.__mro__}
    if not known or not all(hasattr(kind, name) for name in ("request", "copy", "with_options")):
        raise ConfigError(f"expected a client of the package {package}, found {kind.__name__}; pass the client itself")
    return _dress(client.copy(), rewrite)


def _dress(client: Any, rewrite: Rewrite) -> Any:
    """Give `client`, which is nobody else's, a `request` that rewrites, and let its copies have one as well."""
    kind = client.__class__

    def request(cast_to: Any, options: Any, *rest: Any, **named: Any) -> Any:
        return kind.request(client, cast_to, _rewritten(options, rewrite), *rest, **named)

    def copied(how: Callable[..., Any], *rest: Any, **named: Any) -> Any:
        return _dress(how(client, *rest, **named), rewrite)

    client.request = request
    client.copy, client.with_options = partial(copied, kind.copy), partial(copied, kind.with_options)
    return client


def _rewritten(options: Any, rewrite: Rewrite) -> Any:
    """Return the options of a request with its body rewritten; the very same where it stays."""
    body, added = options.json_data, options.extra_json
    if options.method.lower() != "post" or not is_map(body):
        return options
    path = options.url.partition("?")[0].strip("/")
    rewritten = rewrite(path, body, added if is_map(added) else {})
    if rewritten is body:
        return options
    changed = copy(options)
    changed.json_data = rewritten
    return changed
