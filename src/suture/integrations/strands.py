"""A plugin for Strands agents: models are never sent a broken history.

Needs `pip install 'strands-agents>=1.62'`.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Unpack, cast

from strands import Agent, Plugin
from strands.hooks import AgentInitializedEvent
from strands.middleware import InvokeModelContext, InvokeModelStage, MiddlewareNext, TypedEvent
from strands.session.repository_session_manager import RepositorySessionManager
from strands.types.content import Message

from suture.integrations.guest import GuestOptions, Options, repair_history, repair_request
from suture.profiles import Profile, get_profile, profile_for, profile_of

__all__ = ["PatchToolCalls"]

_WIRE = "bedrock"
_INTERRUPTED = "Tool was interrupted."
"""What Strands itself puts in the place of a missing result: a real one wins over it."""


class PatchToolCalls(Plugin):
    """Repairs what a model is sent, for that request alone: the messages of the agent stay as they are.

    Put it last, so that it sees what other plugins made of the messages.

    Strands mends a session of single messages (a file, S3) itself when it loads one, and throws away results that it
    does not find where it looks for them. So such a session is read again then, and what is in it is put in order.

    Args:
        reload: whether a session is read again when Strands has loaded it.
        options: those of every guest, see `suture.integrations.guest.Options`. The messages are in Bedrock's form for
            every model, and Strands makes of that what other providers take, but for the ids: these are made to suit
            the model that is called. Of a `profile` that is not Bedrock's the ids are taken.

    >>> from strands import Agent
    >>> from strands.models import BedrockModel
    >>> agent = Agent(model=BedrockModel(region_name="eu-west-1"), plugins=[PatchToolCalls()])
    """

    def __init__(self, *, reload: bool = True, **options: Unpack[Options]) -> None:
        super().__init__()
        self._reloads = reload
        self._options = GuestOptions.of(__name__, **options).treating(lambda text: text == _INTERRUPTED)

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
            context = self._repaired(context)
        async with aclosing(next_fn(context)) as events:
            async for event in events:
                yield event

    def _repaired(self, context: InvokeModelContext) -> InvokeModelContext:
        profile = self._profile(" ".join([kind.__name__ for kind in type(context.model).__mro__]))
        repaired = repair_request(context.messages, _WIRE, self._options, profile=profile)
        return context if repaired is context.messages else context.replace(messages=cast("list[Message]", repaired))

    def _profile(self, model: str) -> Profile:
        return profile_for(_WIRE, get_profile(_WIRE), self._options.profile or profile_of(model))

    def _load(self, event: AgentInitializedEvent) -> None:
        """Put in order what is stored, where that is not what Strands has loaded."""
        agent = event.agent
        stored = _stored(agent)
        if stored is None or stored == agent.messages:
            return
        repaired = repair_history(stored, _WIRE, self._options, profile="pairing", tail="keep")
        if repaired is not None:
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
