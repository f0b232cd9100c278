"""Suture in pydantic-ai: a capability that keeps every history acceptable.

`Agent(model, capabilities=[PatchToolCalls()])` is all. Two things happen then. When a run begins, its message history
is made whole for good: pydantic-ai would throw away a result without a call, and refuse a new prompt behind a call
without a result. And before each request to a model, what is sent is fitted to the one that will serve it; that is not
kept.
"""

from collections.abc import Sequence
from typing import Any, Unpack

from pydantic_ai import ModelRequestContext, RunContext, UserPromptNode
from pydantic_ai.capabilities import AbstractCapability, AgentNode, CapabilityOrdering
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

from suture.integrations.guest import GuestOptions, Options, repair_request
from suture.integrations.pydantic_ai.compaction import Compaction
from suture.integrations.pydantic_ai.wire import WIRE
from suture.profiles import Profile, get_profile, profile_of

__all__ = ["Compaction", "PatchToolCalls"]


class PatchToolCalls(AbstractCapability[Any]):
    """Gives every tool call its result, and every result its call, in all that an agent sends to its model.

    Calls that may still be answered are left alone: those of a run without a prompt, and those that deferred results or
    approvals are for. It can also be called with a list of messages, outside of a run or in `ProcessHistory`; then
    calls at the end are answered, too.

    One object serves any number of agents and runs, at once.

    Args:
        options: those of every guest, see `suture.integrations.guest.Options`. Without a `profile` the rules are those
            of the model's provider, and the strictest ones for a provider that is not known.

    >>> from pydantic_ai import Agent
    >>> from pydantic_ai.messages import ModelResponse, ToolCallPart
    >>> from pydantic_ai.models.test import TestModel
    >>> stopped = [ModelResponse([ToolCallPart("search", {"q": "x"}, "call_1")])]
    >>> agent = Agent(TestModel(), capabilities=[PatchToolCalls()])
    >>> result = agent.run_sync("Never mind.", message_history=stopped)
    >>> result.all_messages()[1].parts[0].content[:55]
    'Tool call search with id call_1 has no recorded result '
    """

    def __init__(self, **options: Unpack[Options]) -> None:
        self._options = GuestOptions.of(__name__, **options)

    def __call__(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Return what a provider accepts in the place of `messages`: the very list, where it accepts that."""
        repaired = self._fit(messages, self._options.profile or profile_of(""))
        return repaired if isinstance(repaired, list) else list(repaired)

    def get_ordering(self) -> CapabilityOrdering:
        """Come last: what another capability or a history processor breaks is mended as well."""
        return CapabilityOrdering(position="innermost")

    async def before_node_run(self, ctx: RunContext[Any], *, node: "AgentNode[Any]") -> "AgentNode[Any]":
        """Make the history that a run begins with whole, before anybody looks at it."""
        if isinstance(node, UserPromptNode) and ctx.messages:
            repaired = self._begin(ctx.messages, node)
            if repaired is not ctx.messages:
                ctx.messages[:] = repaired
        return node

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Fit what is sent to the model that will serve this attempt."""
        del ctx
        messages = request_context.messages
        repaired = self._fit(messages, self._options.profile or _profile_of(request_context.model))
        if repaired is not messages:
            request_context.messages = list(repaired)
        return request_context

    if not hasattr(AbstractCapability, "prepare_model_request"):
        before_model_request = prepare_model_request  # releases before 2.66 make one attempt, and have one hook

    def _begin(self, messages: list[ModelMessage], node: UserPromptNode[Any, Any]) -> Sequence[ModelMessage]:
        """Return `messages` made whole; calls stay open that this run may go on with."""
        last, open_end = messages[-1], len(messages)
        waits = isinstance(last, ModelResponse) and (node.user_prompt is None or _is_suspended(last))
        if node.deferred_tool_results is not None or waits:
            places = [place for place, message in enumerate(messages) if isinstance(message, ModelResponse)]
            open_end = max(places, default=0)
        settled = messages[:open_end]
        paired = repair_request(settled, WIRE, self._options, profile="pairing")
        return messages if paired is settled else [*paired, *messages[open_end:]]

    def _fit(self, messages: Sequence[ModelMessage], profile: Profile) -> Sequence[ModelMessage]:
        """Return what `profile` accepts; a turn that its provider paused goes back as it came."""
        if not messages or not _is_suspended(messages[-1]):
            return repair_request(messages, WIRE, self._options, profile=profile)
        before = messages[:-1]
        repaired = repair_request(before, WIRE, self._options, profile=profile)
        return messages if repaired is before else [*repaired, messages[-1]]


def _is_suspended(message: ModelMessage) -> bool:
    return isinstance(message, ModelResponse) and message.state == "suspended"


def _profile_of(model: Model) -> Profile:
    """Return the profile of the provider that will answer; where several may, the one that all of them have."""
    if isinstance(model, FallbackModel):
        profiles = {_profile_of(each) for each in model.models}
        return profiles.pop() if len(profiles) == 1 else profile_of("")
    if isinstance(model, WrapperModel):
        return _profile_of(model.wrapped)
    profile = profile_of(model.system)
    speaks_in_items = any("Responses" in kind.__name__ for kind in type(model).__mro__)
    return get_profile("openai-responses") if profile.name == "openai-chat" and speaks_in_items else profile
