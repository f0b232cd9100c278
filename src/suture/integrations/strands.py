"""A plugin for Strands agents: models never get a broken history.

Needs the extra `strands`.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from operator import is_
from typing import Any, Unpack
from weakref import WeakKeyDictionary

from suture._extras import check_extra
from suture.integrations.guest import GuestOptions, Options, repair_history, repair_request
from suture.profiles import get_profile, profile_for, profile_of
from suture.wires.fields import get, is_list

try:
    from strands import Agent, Plugin
    from strands.hooks import AfterToolCallEvent, AgentInitializedEvent, HookOrder, MessageAddedEvent
    from strands.middleware import InvokeModelContext, InvokeModelStage, MiddlewareNext, TypedEvent
    from strands.session.repository_session_manager import RepositorySessionManager
    from strands.types.content import Message
    from strands.types.tools import ToolResult
finally:  # an old release may lack some of these: its version says more than the ImportError
    check_extra("strands", "strands")

__all__ = ["PatchToolCalls"]

_WIRE = "bedrock"
_INTERRUPTED = "Tool was interrupted."
"""The text that Strands itself puts in the place of a missing result, whether the tool had ended or not."""


class PatchToolCalls(Plugin):
    """Repairs the messages of each request; those of the agent do not change.

    Put it last, so that it sees what other plugins made of the messages.

    Strands stores the results of parallel calls only when all have come. If a run broke off before, this plugin puts
    the results that had come into their places when the next run begins. For the other calls the model reads that they
    may have run.

    When Strands loads a session of single messages (a file, S3), it repairs that itself, and drops results that are not
    where it looks for them. So this plugin reads such a session again and repairs it.

    Args:
        reload: whether a session is read again after Strands has loaded it.
        options: the options of every guest, see `suture.integrations.guest.Options`. The messages are in Bedrock's form
            for every model, and Strands converts them for other providers, except for the ids: these are made to suit
            the model that is called. If `profile` is not Bedrock's, only its form of ids is used.

    >>> from strands import Agent
    >>> from strands.models import BedrockModel
    >>> agent = Agent(model=BedrockModel(region_name="eu-west-1"), plugins=[PatchToolCalls()])
    """

    def __init__(self, *, reload: bool = True, **options: Unpack[Options]) -> None:
        super().__init__()
        self._reloads = reload
        self._options = GuestOptions.of(__name__, **options).treating(lambda text: text == _INTERRUPTED)
        self._ended: WeakKeyDictionary[Any, dict[str, ToolResult]] = WeakKeyDictionary()
        """By agent: the results of tools that have ended, until they are among the messages."""

    @property
    def name(self) -> str:
        """The name by which an agent knows the plugin.

        >>> PatchToolCalls().name
        'suture:patch-tool-calls'
        """
        return "suture:patch-tool-calls"

    def init_agent(self, agent: Agent) -> None:
        """Wrap the requests of `agent` to its model, and add the hooks."""
        agent.add_middleware(InvokeModelStage, self._request)
        agent.add_hook(self._note, AfterToolCallEvent, order=HookOrder.SDK_LAST)  # after other hooks have changed it
        agent.add_hook(self._restore, MessageAddedEvent, order=HookOrder.SDK_FIRST)  # before a session stores it
        if self._reloads:
            agent.add_hook(self._load, AgentInitializedEvent)

    async def _request(
        self, context: InvokeModelContext, next_fn: MiddlewareNext[InvokeModelContext, TypedEvent]
    ) -> AsyncGenerator[TypedEvent, None]:
        """Make the request with repaired messages, unless the service keeps the conversation."""
        self._ended.pop(context.agent, None)  # they are among the messages by now, or their calls are gone
        if not context.model.stateful:
            model = " ".join([kind.__name__ for kind in type(context.model).__mro__])
            profile = profile_for(_WIRE, get_profile(_WIRE), self._options.profile or profile_of(model))
            repaired: Any = repair_request(_without_fillers(context.messages), _WIRE, self._options, profile=profile)
            context = context if repaired is context.messages else context.replace(messages=repaired)
        async with aclosing(next_fn(context)) as events:
            async for event in events:
                yield event

    def _note(self, event: AfterToolCallEvent) -> None:
        """Remember a tool's result, or forget it if the tool is called again, since that may end differently."""
        ended, call_id = self._ended.setdefault(event.agent, {}), event.tool_use["toolUseId"]
        if event.retry:
            ended.pop(call_id, None)
        else:
            ended[call_id] = event.result

    def _restore(self, event: MessageAddedEvent) -> None:
        """Replace Strands' fillers for interrupted calls by the results that tools returned."""
        ended, content = self._ended.get(event.agent, {}), event.message["content"]
        for place, block in enumerate(content):
            if "toolResult" in block:
                result = ended.pop(block["toolResult"]["toolUseId"], None)
                if result is not None and _is_filler(block):
                    content[place] = {"toolResult": result}

    def _load(self, event: AgentInitializedEvent) -> None:
        """Repair the stored messages, if they differ from what Strands has loaded."""
        agent = event.agent
        stored = _stored(agent)
        if stored is None or stored == agent.messages:
            return
        repaired = repair_history(stored, _WIRE, self._options, profile="pairing", tail="keep")
        if repaired is not None:
            agent.messages = list(repaired.messages)


def _stored(agent: Agent) -> list[Message] | None:
    """Return the stored messages of the session that `agent` was loaded from."""
    sessions = getattr(agent, "_session_manager", None)
    if not isinstance(sessions, RepositorySessionManager) or agent.model.stateful:
        return None
    manager = agent.conversation_manager
    summary = manager.restore_from_session(manager.get_state()) or []
    stored = sessions.session_repository.list_messages(
        sessions.session_id, agent.agent_id, offset=manager.removed_message_count
    )
    return [*summary, *(each.to_message() for each in stored)]


def _is_filler(block: Any) -> bool:
    """Return whether a block is Strands' filler for a missing result."""
    return get(get(block, "toolResult"), "content") == [{"text": _INTERRUPTED}]


def _without_fillers(messages: list[Message]) -> list[Message]:
    """Return `messages` without Strands' fillers; the same list if there are none."""
    left: list[Message] = []
    for message in messages:
        blocks: Any = get(message, "content")
        kept = [block for block in blocks if not _is_filler(block)] if is_list(blocks) else blocks
        if not is_list(blocks) or len(kept) == len(blocks):
            left.append(message)
        elif kept:
            left.append({**message, "content": kept})
    return messages if len(left) == len(messages) and all(map(is_, left, messages)) else left
