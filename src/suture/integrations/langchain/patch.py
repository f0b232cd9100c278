"""`PatchToolCallsMiddleware` for LangChain's agents, and for deepagents in the place of the class of that name.

Repaired for good before the agent runs, and once more for each model call, at the last moment: what other middlewares
break on the way is repaired, too.
"""

import re
import sys
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import fields
from datetime import UTC, datetime
from typing import Any, Literal, NamedTuple, Unpack

from langchain.agents import middleware as _middleware
from langchain.agents.middleware import AgentMiddleware, ModelRequest
from langchain_core.messages import AIMessage
from msgspec.structs import replace

from suture.errors import ConfigError
from suture.integrations.guest import GuestOptions, Options, repair_request
from suture.integrations.langchain.thread import ThreadRepair
from suture.integrations.langchain.wire import WIRE
from suture.profiles import Profile, get_profile, profile_of
from suture.reduction.plan import complete
from suture.repair import Cause, label

__all__ = ["PatchToolCallsMiddleware"]

Text = Literal["cancelled", "neutral", "cause"]
"""Which texts: the reference's for a call that a message interrupted, one that names no cause, or Suture's own."""

_CANCELLED = "Tool call {name} with id {id} was cancelled - another message came in before it could be completed."
_NEUTRAL = (
    "Tool call {name} with id {id} did not complete - no result was recorded. "
    "It may have been cancelled or interrupted."
)
_MALFORMED = "Tool call {name} with id {id} could not be executed - arguments were malformed or truncated."
_TEXTS: dict[str, dict[Cause, str]] = {
    "cancelled": {Cause.INTERRUPTED: _CANCELLED, Cause.MALFORMED: _MALFORMED},
    "neutral": {**dict.fromkeys(Cause, _NEUTRAL), Cause.MALFORMED: _MALFORMED},
    "cause": {},
}
_BEGINNING, _BETWEEN = "Tool call ", " with id "
_ENDS = tuple(
    text.partition("{id}")[2].replace("cancelled", spelling)
    for text in (_CANCELLED, _NEUTRAL, _MALFORMED)
    for spelling in ("cancelled", "canceled")
)
_LONGEST = 600
"""How many characters a placeholder has at most: names and ids are short."""


def is_known_placeholder(text: str) -> bool:
    """Tell whether `text` is one of LangChain's or deepagents' own, old or new, which say that a call has no result.

    >>> is_known_placeholder("Tool call f with id a did not complete - no result was recorded. "
    ...     "It may have been cancelled or interrupted.")
    True
    >>> is_known_placeholder("42")
    False
    """
    if len(text) > _LONGEST or not text.startswith(_BEGINNING):
        return False
    end = next((end for end in _ENDS if text.endswith(end)), "")
    return bool(end) and _BETWEEN in text[len(_BEGINNING) : -len(end)]


def _with_text(options: GuestOptions, text: Text) -> GuestOptions:
    """Return options whose placeholders say what the caller's generator does; where that says nothing, `text`."""
    ask, fixed = options.choices.generator, _TEXTS[text]

    def say(name: str, call_id: str, cause: Cause, place: tuple[int, int]) -> str:
        said = "" if ask is None else ask(name, call_id, cause, place)
        shown = {"{name}": label(name or "unknown"), "{id}": label(call_id)}
        return said or re.sub(r"\{name\}|\{id\}", lambda found: shown[found[0]], fixed.get(cause, ""))

    return replace(options, choices=replace(options.choices, generator=say))


def _trace_policy() -> Any:
    """Return a policy that leaves the messages out of traces, as deepagents has it; older releases have none."""
    policy, omit = getattr(_middleware, "TracePolicy", None), getattr(_middleware, "omit_payload", None)
    return policy(process_inputs=omit) if policy is not None and omit is not None else None


def _trace(name: str, attributes: Mapping[str, Any]) -> None:
    """Add an event to the run of LangSmith at hand, if the program uses that."""
    helpers: Any = sys.modules.get("langsmith.run_helpers")
    run = helpers.get_current_run_tree() if helpers is not None else None
    if run is not None:
        run.add_event({"name": name, "time": datetime.now(UTC).isoformat(), "kwargs": dict(attributes)})


class PatchToolCallsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Makes every history whole before a model sees it: placeholders, moves, duplicates, orphans, ids.

    Before the agent runs, the thread is repaired for good; results that tools gave before a run broke off, which
    LangGraph had thrown away, are put back. Before each model call what is sent is repaired for that model's
    provider; any place in the stack is right. Calls that a run leaves open at its end are answered when the next
    begins: the last message of a run stays what it is.

    In `create_deep_agent(middleware=[PatchToolCallsMiddleware()])` it takes the place of deepagents' own.

    Args:
        text: of placeholders. `cancelled` is the reference's text where a human message follows, and the checkpointer
            does not show that the tool failed or never ended; `neutral` names no cause (deepagents' newest); `cause`
            has Suture's own texts.
        options: those of every guest, see `suture.integrations.guest.Options`. The error of a `generator` ends the run,
            and nothing has changed then.

    >>> PatchToolCallsMiddleware(text="cause").name
    'PatchToolCallsMiddleware'
    """

    trace_policy = _trace_policy()

    def __init__(self, *, text: Text = "cancelled", **options: Unpack[Options]) -> None:
        super().__init__()
        if text not in _TEXTS:
            raise ConfigError(f"unknown text {text!r}; known: {', '.join(_TEXTS)}")
        checked = GuestOptions.of(__name__, infers_cause=True, **options).treating(is_known_placeholder)
        self._options = replace(_with_text(checked, text), trace=_trace)
        self._thread = ThreadRepair(self._options)
        self._profiles = ModelProfiles()
        self._kinds: dict[type, type] = {}

    # For good

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Repair the thread, where it has to be."""
        del runtime
        return complete(self._thread.patch(state, waits=False))

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Repair the thread, where it has to be."""
        del runtime
        return await self._thread.patch(state, waits=True)

    # For one model call

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let the model see only what its provider accepts."""
        return handler(_guard(request, self._kinds, self._repaired))

    def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Let the model see only what its provider accepts.

        It gives what is to be awaited: around a coroutine function LangChain hops to other threads, for its traces.
        """
        return handler(_guard(request, self._kinds, self._repaired))

    def _repaired(self, messages: Any, model: Any, system: Any) -> Any:
        """Return what `model` may be sent in the place of `messages`; the system message stands before them."""
        profile = self._options.profile or self._profiles.of(model)
        kept = () if system is None or not isinstance(messages[0], AIMessage) else (system,)
        return repair_request(messages, WIRE, self._options, profile=profile, kept=kept)


# Requests whose messages are acceptable whenever they are read, whatever the middlewares further in do to them.
# A middleware that changes a request makes another one of its class. So a request of this class stays one until the
# model is called, and what a middleware trims, adds or edits on the way is repaired before anyone sees it.

Repair = Callable[[Any, Any, Any], Any]
"""Messages, model and system message to what that model may be sent."""

_SEEN = "_suture_seen"


class _Seen(NamedTuple):
    """Messages as they were when they were last found acceptable, and for whom."""

    messages: Any
    length: int
    last: Any
    model: Any

    def is_all(self, messages: Any, model: Any) -> bool:
        """Tell, at a glance, whether nothing has happened to them since."""
        same = messages is self.messages and model is self.model and len(messages) == self.length
        return same and messages[-1] is self.last


def _guard(request: ModelRequest[Any], kinds: dict[type, type], repair: Repair) -> Any:
    """Return a request like `request` whose messages are repaired whenever they are read; `kinds` keeps its class."""
    kind = type(request)
    if kind not in kinds:
        kinds[kind] = _guarded(kind, repair)
    return kinds[kind](**{field.name: getattr(request, field.name) for field in fields(request) if field.init})


def _guarded(kind: Any, repair: Repair) -> type:
    """Return a class of requests like `kind`, with messages that are repaired when they are read."""

    def read(request: Any) -> Any:
        own: dict[str, Any] = request.__dict__
        messages, model = own["messages"], own.get("model")
        seen: _Seen | None = own.get(_SEEN)
        if not messages or (seen is not None and seen.is_all(messages, model)):
            return messages
        own["messages"] = repaired = repair(messages, model, own.get("system_message"))
        own[_SEEN] = _Seen(repaired, len(repaired), repaired[-1] if repaired else None, model)
        return repaired

    def write(request: Any, messages: Any) -> None:
        request.__dict__["messages"] = messages

    named = {"__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), {"messages": property(read, write), **named})


# Whose rules hold

_OF_CONFIGURABLE = {"_default_config", "_queued_declarative_operations"}
"""What a model has that is chosen anew for each run."""


class ModelProfiles:
    """Tells the profile of a model, and remembers the last one.

    >>> class ChatMistralAI:
    ...     pass
    >>> ModelProfiles().of(ChatMistralAI()).name
    'mistral'
    """

    def __init__(self) -> None:
        self._known: tuple[Any, Profile] = None, profile_of("")

    def of(self, model: Any) -> Profile:
        """Return the profile for `model`; for one that is chosen for each run, that of the run at hand."""
        known, profile = self._known
        if known is model:
            return profile
        if getattr(model, "__dict__", {}).keys() >= _OF_CONFIGURABLE:
            return _profile(_ask(model, "_model") or model)
        self._known = model, _profile(model)
        return self._known[1]


def _profile(model: Any) -> Profile:
    """Return the profile by what the model says of its provider, else by the name of its class."""
    provider = _ask(model, "_get_ls_params")
    named: Any = provider.get("ls_provider") if isinstance(provider, dict) else None  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
    # A server that speaks OpenAI's language goes by its own rules.
    server = _read(model, "openai_api_base") or ""
    profile = profile_of(f"{server} {named or type(model).__name__}")
    if profile.name == "openai-chat" and _ask(model, "_use_responses_api", {}) is True:
        return get_profile("openai-responses")
    return profile


def _ask(model: Any, method: str, *arguments: Any) -> Any:
    """Return what a method of the model says; nothing where it has none, or that fails."""
    ask = _read(model, method)
    try:
        return None if ask is None else ask(*arguments)
    except Exception:  # noqa: BLE001 - a guess that fails is no reason to end a run
        return None


def _read(model: Any, name: str) -> Any:
    """Return an attribute of the model; nothing where it has none, or reading it fails."""
    try:
        return getattr(model, name, None)
    except Exception:  # noqa: BLE001 - one that is chosen for each run may fail to make the model that it would ask
        return None
