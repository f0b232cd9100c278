"""A plugin for Strands agents: models are never sent a broken history.

Needs `pip install 'suture[strands]'`.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from typing import Any, Literal, cast

from strands import Agent, Plugin
from strands.hooks import AgentInitializedEvent
from strands.middleware import InvokeModelContext, InvokeModelStage, MiddlewareNext, TypedEvent
from strands.session.repository_session_manager import RepositorySessionManager
from strands.types.content import Message

from suture.errors import ConfigError, InputError
from suture.integrations._following import Following
from suture.profiles import PROFILES, Profile, get_profile
from suture.repair import Generator, repair

__all__ = ["PatchToolCalls"]

_WIRE = "bedrock"
_INTERRUPTED = "Tool was interrupted."
"""What Strands itself puts in the place of a missing result: a real one wins over it."""


class PatchToolCalls(Plugin):
    """Mends what a model is sent, for that request alone: the messages of the agent stay as they are.

    Put it last, so that it sees what other plugins made of the messages.

    Strands mends a session of single messages (a file, S3) itself when it loads one, and throws away results that it
    does not find where it looks for them. So such a session is read again then, and what is in it is put in order.

    Args:
        profile: whose rules the messages are mended by. They are in Bedrock's form for every model, and Strands makes
            of that what other providers take.
        orphans: what becomes of a result whose call is nowhere: kept as user text (`"text"`), or removed (`"drop"`).
        generator: the text that stands for a missing result, of `(name, call_id)` or `(name, call_id, cause=…)`.
        is_placeholder: whether the text of a result stands for a missing one; those of Strands and of Suture do.
        language: of the texts, `"en"` or `"zh"`.
        reload: whether a session is read again when Strands has loaded it.

    >>> from strands import Agent
    >>> from strands.models import BedrockModel
    >>> agent = Agent(model=BedrockModel(region_name="eu-west-1"), plugins=[PatchToolCalls()])
    """

    def __init__(
        self,
        *,
        profile: str | Profile = "bedrock",
        orphans: Literal["text", "drop"] = "text",
        generator: Generator | None = None,
        is_placeholder: Callable[[str], bool] | None = None,
        language: str | None = None,
        reload: bool = True,
    ) -> None:
        super().__init__()
        if not get_profile(profile).speaks_of(_WIRE):
            fit = [each for each in PROFILES if get_profile(each).speaks_of(_WIRE)]
            raise ConfigError(
                f"the profile {get_profile(profile).name!r} says nothing of Bedrock's form; these do: {', '.join(fit)}"
            )
        self._profile = profile
        self._reloads = reload

        def stands_for_none(text: str) -> bool:
            return text == _INTERRUPTED or (is_placeholder is not None and is_placeholder(text))

        self._choices: dict[str, Any] = {
            "orphans": orphans,
            "generator": generator,
            "is_placeholder": stands_for_none,
            "language": language,
        }
        self._following = Following(_WIRE, **self._choices)

    @property
    def name(self) -> str:
        """The name by which an agent knows the plugin.

        >>> PatchToolCalls().name
        'suture:patch-tool-calls'
        """
        return "suture:patch-tool-calls"

    def init_agent(self, agent: Agent) -> None:
        """Take a place around the requests of `agent` to its model."""
        agent.add_middleware(InvokeModelStage, self._request)
        if self._reloads:
            agent.add_hook(self._load, AgentInitializedEvent)

    async def _request(
        self, context: InvokeModelContext, next_fn: MiddlewareNext[InvokeModelContext, TypedEvent]
    ) -> AsyncGenerator[TypedEvent, None]:
        """Make the request with messages that are in order, unless they only go on with what the service keeps."""
        if not context.model.stateful:
            context = self._mended(context)
        async with aclosing(next_fn(context)) as events:
            async for event in events:
                yield event

    def _mended(self, context: InvokeModelContext) -> InvokeModelContext:
        try:
            mended = self._following.mend(context.messages, self._profile)
        except InputError:
            return context  # the provider says what is wrong with it
        return context if mended is context.messages else context.replace(messages=cast("list[Message]", mended))

    def _load(self, event: AgentInitializedEvent) -> None:
        """Put in order what is stored, where that is not what Strands has loaded."""
        agent = event.agent
        stored = _stored(agent)
        if stored is None or stored == agent.messages:
            return
        try:
            repaired = repair(stored, wire=_WIRE, profile="pairing", tail="keep", **self._choices)
        except InputError:
            return
        agent.messages = list(repaired.messages)


def _stored(agent: Agent) -> list[Message] | None:
    """Return the messages of the session that `agent` was loaded from, as they are stored."""
    sessions = getattr(agent, "_session_manager", None)
    if not isinstance(sessions, RepositorySessionManager) or agent.model.stateful:
        return None
    manager = agent.conversation_manager
    summary = manager.restore_from_session(manager.get_state()) or []
    stored = sessions.session_repository.list_messages(
        sessions.session_id, agent.agent_id, offset=manager.removed_message_count
    )
    return [*summary, *(each.to_message() for each in stored)]
