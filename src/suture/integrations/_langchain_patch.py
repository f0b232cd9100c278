"""`PatchToolCallsMiddleware` for LangChain's agents, and for deepagents in the place of the class of that name.

Repaired for good before the agent runs, and once more for each model call, at the last moment: what other middlewares
break on the way is mended, too.
"""

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import Any, Literal

from langchain.agents import middleware as _middleware
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage

from suture.errors import ConfigError, InputError
from suture.integrations._following import Following
from suture.integrations._langchain_messages import as_message
from suture.integrations._langchain_models import ModelProfiles
from suture.integrations._langchain_recovery import Lookup
from suture.integrations._langchain_requests import guard
from suture.integrations._langchain_texts import UNKNOWN, Text, is_known_placeholder, make_generator
from suture.integrations._langchain_threads import ThreadRepair
from suture.integrations._langchain_wire import WIRE
from suture.language import resolve_language
from suture.profiles import Profile, get_profile
from suture.repair import Generator, PairOptions

__all__ = ["PatchToolCallsMiddleware"]

_TEXTS = ("cancelled", "neutral", "cause")
_ORPHANS = ("text", "drop")


def _trace_policy() -> Any:
    """Return a policy that leaves the messages out of traces, as deepagents has it; older releases have none."""
    policy, omit = getattr(_middleware, "TracePolicy", None), getattr(_middleware, "omit_payload", None)
    return policy(process_inputs=omit) if policy is not None and omit is not None else None


class PatchToolCallsMiddleware(AgentMiddleware[Any, Any, Any]):
    """Makes every history whole before a model sees it: placeholders, moves, duplicates, orphans, ids.

    Before the agent runs, the thread is repaired for good; results that tools gave before a run broke off, which
    LangGraph had thrown away, are put back. Before each model call what is sent is repaired for that model's
    provider; any place in the stack is right.

    In `create_deep_agent(middleware=[PatchToolCallsMiddleware()])` it takes the place of deepagents' own.

    Args:
        text: of placeholders. `cancelled` is one text for every cause, `neutral` names no cause (deepagents' newest),
            `cause` tells what is known.
        generator: `(name, call_id)` or `(name, call_id, cause=…)` to the text of a placeholder; an empty one means
            `text`. Its error ends the run, and nothing has changed then.
        orphans: `text` keeps a result without a call as user text; `drop` removes it.
        profile: whose rules hold; those of the model's provider if not given.
        is_placeholder: tells from a result's text whether it only stands for a real one.
        language: of Suture's own texts, `en` or `zh`; the one in force if not given.
        answer_at_end: Whether calls that a run leaves open at its end, by a jump to it, are answered; `False` leaves
            them to the caller.

    >>> PatchToolCallsMiddleware(text="cause").name
    'PatchToolCallsMiddleware'
    """

    trace_policy = _trace_policy()

    def __init__(
        self,
        *,
        text: Text = "cancelled",
        generator: Generator | None = None,
        orphans: Literal["text", "drop"] = "text",
        profile: str | Profile | None = None,
        is_placeholder: Callable[[str], bool] | None = None,
        language: str | None = None,
        answer_at_end: bool = True,
    ) -> None:
        super().__init__()
        self.answer_at_end = answer_at_end
        _check(text, generator, orphans, is_placeholder)
        if profile is not None:
            get_profile(profile)  # refuses what it does not know
        self.profile = profile
        self._is_placeholder = is_placeholder
        spoken, say = resolve_language(language), make_generator(text, generator)
        self._following = Following(
            WIRE.name, orphans=orphans, generator=say, is_placeholder=self.is_synthetic, language=spoken
        )
        options = PairOptions(orphans=orphans, language=spoken, is_placeholder=self.is_synthetic)
        self._threads = ThreadRepair(options, say=say, unnamed=UNKNOWN)
        self._profiles = ModelProfiles()
        self._kinds: dict[type, type] = {}

    def is_synthetic(self, text: str) -> bool:
        """Tell whether a result's text only stands for a real one."""
        return is_known_placeholder(text) or (self._is_placeholder is not None and self._is_placeholder(text))

    # For good

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Repair the thread, where it has to be."""
        del runtime
        steps = self._threads.patch(state)
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(_get(wanted))
        except StopIteration as done:
            return done.value

    async def abefore_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Repair the thread, where it has to be."""
        del runtime
        steps = self._threads.patch(state)
        try:
            wanted = next(steps)
            while True:
                wanted = steps.send(await _aget(wanted))
        except StopIteration as done:
            return done.value

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Answer calls that the run leaves open at its end, if that is wanted."""
        del runtime
        return self._threads.close(state) if self.answer_at_end else None

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Answer calls that the run leaves open at its end, if that is wanted."""
        del runtime
        return self._threads.close(state) if self.answer_at_end else None

    # For one model call

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Let the model see only what its provider accepts."""
        return handler(guard(request, self._kinds, self._mend))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Awaitable[Any]]) -> Any:
        """Let the model see only what its provider accepts."""
        return await handler(guard(request, self._kinds, self._mend))

    def _mend(self, messages: Any, model: Any, system: Any) -> Any:
        """Return what `model` may be sent in the place of `messages`; the system message stands before them."""
        profile = self.profile or self._profiles.of(model)
        try:
            if system is None or not isinstance(messages[0], AIMessage):
                return self._following.mend(messages, profile)
            whole = [system, *messages]
            mended = self._following.mend(whole, profile)
            return messages if mended is whole else mended[1:]
        except InputError:
            return self._mend_converted(messages, profile)

    def _mend_converted(self, messages: Any, profile: str | Profile) -> Any:
        """Return the same for messages in forms that only LangChain reads; what it cannot read it will refuse."""
        try:
            return self._following.mend([as_message(message) for message in messages], profile)
        except InputError:
            return messages


def _get(wanted: Lookup) -> Any:
    """Return a checkpoint; nothing where that fails: what is not found is told as missing."""
    checkpointer, config = wanted
    try:
        return checkpointer.get_tuple(config)
    except Exception:  # noqa: BLE001 - a checkpointer of any make must not end the run
        return None


async def _aget(wanted: Lookup) -> Any:
    """Return a checkpoint; nothing where that fails: what is not found is told as missing."""
    checkpointer, config = wanted
    try:
        return await checkpointer.aget_tuple(config)
    except Exception:  # noqa: BLE001 - a checkpointer of any make must not end the run
        return None


def _check(text: str, generator: Any, orphans: str, is_placeholder: Any) -> None:
    """Raise `ConfigError` where a setting is not one that there is."""
    for name, value, known in (("text", text, _TEXTS), ("orphans", orphans, _ORPHANS)):
        if value not in known:
            raise ConfigError(f"unknown {name} {value!r}; known: {', '.join(known)}")
    for name, function in (("generator", generator), ("is_placeholder", is_placeholder)):
        if function is not None and not callable(function):
            raise ConfigError(f"{name} must be a function, found {type(function).__name__}")
        if iscoroutinefunction(function):
            raise ConfigError(f"{name} must be a plain function: LangChain's hooks also run without an event loop")
