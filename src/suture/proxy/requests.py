"""A request: where it goes, the rules that apply there, and its body with the history repaired.

Pure functions: bytes and rules in, bytes and reports out. Only messages that are repaired or shortened change; every
other value in a body keeps its bytes.
"""

import json
import zlib
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from operator import is_, is_not
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from suture.errors import ConfigError, ContextOverflowError
from suture.language import resolve_language
from suture.profiles import Profile, default_profile, profile_for, profile_of
from suture.providers import BATCHES, KEPT, Place, continues
from suture.reduction import compact, plan
from suture.repair import Cause, Report, placeholder_text, repair
from suture.wires import get_wire, sendable
from suture.wires.fields import is_list, is_map

_read_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_read_pieces = msgspec.json.Decoder(list[msgspec.Raw]).decode
_read = msgspec.json.Decoder().decode
_write = msgspec.json.Encoder().encode
_CHARACTERS = 4
"""How many bytes beside the history count as one token."""
_CONTEXT = ("model", "thread", "previous_response_id", "conversation")
"""The fields beside the history that say what it continues."""


class Unreadable(Exception):
    """The body holds no history that can be read."""


class Reduction(NamedTuple):
    """How much may be sent; without limits nothing is shortened. It never adds a tool to the request."""

    clear: int | None = None
    """Above so many tokens, old tool results are cleared."""
    compact: int | None = None
    """No request has more tokens than this."""

    def apply(self, messages: Sequence[Any], wire: str, beside: int, language: str | None) -> Sequence[Any]:
        """Return the messages, shortened if they and the tokens `beside` them are too many; else the same object.

        What is taken out is not saved, since the proxy has no tool that could read it.
        """
        shared: dict[str, Any] = {"wire": wire, "offload": False, "language": language}
        if self.clear is not None:
            limit = max(0, self.clear - beside)
            messages = plan(messages, skip_truncation=True, max_tokens_for_clear=limit, **shared).messages
        if self.compact is not None:
            messages = compact(messages, max_tokens=max(0, self.compact - beside), **shared).messages
        return messages


class Rules(NamedTuple):
    """The rules for the model that a request names."""

    profile: Profile
    reduction: Reduction = Reduction()
    without_thinking: bool = False
    """Whether all thinking is removed, because its signatures were refused."""
    open_calls: tuple[str, ...] = ()
    """Calls that the service keeps and wants results for."""
    language: str | None = None
    """The language of the texts that are added."""


class Reading(NamedTuple):
    """The result of examining a body."""

    model: str
    reports: tuple[Report, ...] = ()
    body: bytes | None = None
    """The body to send instead; `None` if the original may be sent."""
    reduced: bool = False
    overflows: bool = False
    """Whether it could not be made short enough."""

    @property
    def repaired(self) -> int:
        """How many findings were repaired in the body to send."""
        return sum(finding.mended for each in self.reports for finding in each.findings) if self.body else 0


Choose = Callable[[str], Rules]
"""Returns the rules for the name of a model."""


def look_at(data: bytes, path: str, place: Place, choose: Choose, limit: int = 1 << 26) -> Reading:
    """Examine a body, which may be gzip, and return what to send instead; raise `Unreadable` if it holds no history.

    >>> from suture.profiles import default_profile
    >>> body = b'{"n": 1.50, "messages": [{"role": "tool", "tool_call_id": "a", "content": "42"}, {"role":"user" }]}'
    >>> rules = Rules(default_profile("openai-chat"))
    >>> made = look_at(body, "chat/completions", Place("messages", "openai-chat"), lambda model: rules)
    >>> made.body[:28], [finding.problem for finding in made.reports[0].findings]
    (b'{"n":1.50,"messages":[{"role', ['orphan', 'no-content'])
    """
    zipped = data[:2] == b"\x1f\x8b"
    text = _unzip(data, limit) if zipped else data
    fields = _split(text)
    named = fields.get("model")
    # Gemini names the model in the path.
    model = _value(named) if named is not None else path.rstrip("/").rpartition("/")[2].rpartition(":")[0]
    model = model if isinstance(model, str) else ""
    looker = _Looker(place, choose)
    body = looker.batch(fields) if path.rstrip("/").endswith(BATCHES) else looker.one(fields, model)
    made = None if body is None else _encode(body)
    if made is not None and zipped:
        packer = zlib.compressobj(wbits=31)
        made = packer.compress(made) + packer.flush()
    return Reading(model, tuple(looker.reports), made, looker.reduced, looker.overflows)


class _Looker:
    """Examines the requests in one body; a batch has many."""

    def __init__(self, place: Place, choose: Choose) -> None:
        self.place, self.choose = place, choose
        self.reports: list[Report] = []
        self.reduced = self.overflows = False

    def one(self, fields: dict[str, Any], model: str) -> dict[str, Any] | None:
        """Return the fields of a request with its history repaired; `None` if nothing changes."""
        field, wire = self.place
        raw, rules = fields.get(field), self.choose(model)
        given: Any = _value(raw)
        kept, answers = list[Any](), list[Any]()
        if continues({name: _value(fields[name]) for name in _CONTEXT if name in fields}):
            if wire != "openai-responses":
                return None
            kept, answers = [KEPT], _outputs(rules.open_calls, rules.language)
        if answers and (given is None or isinstance(given, str)):
            given = [{"role": "user", "content": given}] if given else []
            raw = None
        if not is_list(given) or not (given or answers):
            return None
        beside = sum(_length(value) for name, value in fields.items() if name != field) // _CHARACTERS
        repaired = self._repair([*kept, *answers, *given] if kept else given, rules, beside)
        sent = [message for message in repaired if message is not KEPT]
        if len(sent) == len(given) and all(map(is_, sent, given)):
            return None
        pieces = _read_pieces(raw) if isinstance(raw, msgspec.Raw) else given
        stood = {id(message): piece for message, piece in zip(given, pieces, strict=True)}
        return {**fields, field: [stood.get(id(each), each) for each in sent]}

    def _repair(self, messages: Sequence[Any], rules: Rules, beside: int) -> Sequence[Any]:
        wire = self.place.wire
        if rules.without_thinking:
            thoughtless = map(get_wire(wire).without_thinking, messages)
            messages = [message for message in thoughtless if message is not None]
        run = partial(repair, wire=wire, profile=rules.profile, cause=Cause.UNKNOWN, language=rules.language)
        repaired = run(messages)
        if not repaired.report.acceptable:
            self.reports.append(repaired.report)
        messages = repaired.messages if repaired.changed else messages
        try:
            shorter = rules.reduction.apply(messages, wire, beside, rules.language)
        except ContextOverflowError:
            self.overflows = True
            return messages
        if shorter is messages:
            return messages
        self.reduced = True
        return run(shorter).messages  # a summary may follow another user message, and thinking is gone

    def batch(self, fields: dict[str, Any]) -> dict[str, Any] | None:
        """Return the fields of a batch with the histories of its requests repaired; `None` if nothing changes."""
        given = _items(fields.get("requests"))
        made: list[Any] = []
        for request in given:
            split = _fields(request)
            params = _fields(split.get("params"))
            model = _value(params.get("model"))
            changed = self.one(params, model if isinstance(model, str) else "") if params else None
            made.append(request if changed is None else {**split, "params": changed})
        return {**fields, "requests": made} if any(map(is_not, made, given)) else None


def _items(value: Any) -> Sequence[Any]:
    """Return the items of a list, still encoded if the list is; none if it is not a list."""
    if isinstance(value, msgspec.Raw):
        return _read_pieces(value) if bytes(memoryview(value)[:1]) == b"[" else ()
    return value if is_list(value) else ()


def _fields(value: Any) -> dict[str, Any]:
    """Return the fields of an object, still encoded if the object is; none if it is not an object."""
    if isinstance(value, msgspec.Raw):
        return _read_fields(value) if bytes(memoryview(value)[:1]) == b"{" else {}
    return dict(value) if is_map(value) else {}


def _length(value: Any) -> int:
    return len(memoryview(value)) if isinstance(value, msgspec.Raw) else len(_encode(value))


def _outputs(calls: Sequence[str], language: str | None) -> list[Any]:
    """Return placeholders for calls that the service keeps."""
    resolved = resolve_language(language)
    return [
        {"type": "function_call_output", "call_id": call, "output": placeholder_text(Cause.UNKNOWN, "", call, resolved)}
        for call in calls
    ]


def _split(text: bytes) -> dict[str, Any]:
    """Return the fields of a JSON object, still encoded; decoded if it has a lone surrogate, which msgspec refuses."""
    try:
        return _read_fields(text)
    except (msgspec.MsgspecError, UnicodeError):
        pass
    try:
        value: Any = json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise Unreadable("no JSON") from error
    if not is_map(value):
        raise Unreadable("no object")
    return dict(value)


def _value(raw: Any) -> Any:
    try:
        return _read(raw) if isinstance(raw, msgspec.Raw) else raw
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise Unreadable("no JSON") from error


def _encode(body: Any) -> bytes:
    try:
        return _write(body)
    except UnicodeEncodeError:  # a lone surrogate beside the history
        return _write(sendable(body))


def _refuse(constant: str) -> None:
    raise ValueError(constant)


def _unzip(data: bytes, limit: int) -> bytes:
    """Return the content of gzip data that has a single member."""
    reader = zlib.decompressobj(wbits=31)
    try:
        text = reader.decompress(data, limit)
    except zlib.error as error:
        raise Unreadable("no gzip") from error
    if not reader.eof or reader.unused_data:
        raise Unreadable("too long, or cut")
    return text


# --- where it goes ----------------------------------------------------------------------------------


class Route(Struct, frozen=True, kw_only=True):
    """Sends the requests whose path begins with `prefix`, which is removed, to an upstream.

    >>> route = Route(prefix="/openai", upstream="https://api.openai.com/v1")
    >>> route.target("/openai/chat/completions"), route.target("/openai/v1/models")
    ('https://api.openai.com/v1/chat/completions', 'https://api.openai.com/v1/models')
    """

    upstream: str
    prefix: str = ""
    profile: Profile | None = None
    """Whose rules apply; by default those of the upstream and the model."""
    reduction: Reduction = Reduction()

    def __post_init__(self) -> None:
        """Refuse an upstream that is not a plain URL, and a prefix that is not a path."""
        parts = urlsplit(self.upstream)
        if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
            raise ConfigError(
                "an upstream is an address such as https://api.openai.com, which begins with http:// or https:// "
                "and has no query"
            )
        if parts.username or parts.password:
            raise ConfigError("an upstream's address must not hold a password; clients send their keys in headers")
        if self.prefix and (not self.prefix.startswith("/") or self.prefix.endswith("/")):
            raise ConfigError(
                f"a path begins with a slash and does not end in one, such as /openai; found {self.prefix!r}"
            )

    @property
    def host(self) -> str:
        """The host of the upstream, with the port if one is given."""
        return urlsplit(self.upstream).netloc

    def takes(self, path: str) -> bool:
        """Return whether a request with this path goes here."""
        return path.startswith(self.prefix) and path[len(self.prefix) : len(self.prefix) + 1] in ("", "/", "?")

    def target(self, path: str) -> str:
        """Return the URL for a request with this path. A part that upstream and path share (`/v1`) appears once."""
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
"""The providers themselves, each under its name."""


def find_route(routes: Sequence[Route], path: str) -> Route | None:
    """Return the route for a path: the one with the longest matching prefix.

    >>> find_route(DEFAULT_ROUTES, "/anthropic/v1/messages").host
    'api.anthropic.com'
    """
    return max((route for route in routes if route.takes(path)), key=lambda route: len(route.prefix), default=None)


_GENERIC = frozenset(("strictest", "openai-chat"))
"""The profiles of servers that nobody knows, and of those that forward to any model, such as OpenRouter."""


@lru_cache(maxsize=1024)
def rules_of(host: str, model: str, wire: str) -> Profile:
    """Return the profile for a model at an upstream.

    A provider's own address decides. Elsewhere the model's name says what its ids must be, and nothing else, because
    the server adapts the rest to its model.

    >>> rules_of("api.mistral.ai", "mistral-large", "openai-chat").name
    'mistral'
    >>> rules_of("openrouter.ai", "anthropic/claude-4", "openai-chat").name
    'openai-chat, ids of anthropic'
    >>> rules_of("127.0.0.1:8000", "my-model", "openai-chat").name
    'openai-chat'
    """
    base = default_profile(wire)
    server, asked = profile_of(host), profile_of(model)
    if server.name not in _GENERIC:
        return server if server.speaks_of(wire) else profile_for(wire, base, server)
    if asked.name in {base.name, *_GENERIC} or asked.ids is None:
        return base
    return profile_for(wire, base, replace(asked, wires=()))  # without wires only its ids count
