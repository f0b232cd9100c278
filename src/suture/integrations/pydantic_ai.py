"""Suture in pydantic-ai: a capability that keeps every history acceptable.

`Agent(model, capabilities=[PatchToolCalls()])` is all. Two things happen then. When a run begins, its message history
is made whole for good: pydantic-ai would throw away a result without a call, and refuse a new prompt behind a call
without a result. And before each request to a model, what is sent is fitted to the one that will serve it; that is not
kept.
"""

from collections.abc import Sequence
from typing import Any, Literal

from pydantic_ai import ModelRequestContext, RunContext, UserPromptNode
from pydantic_ai.capabilities import AbstractCapability, AgentNode, CapabilityOrdering
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, UserPromptPart
from pydantic_ai.models import Model
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.wrapper import WrapperModel

from suture.integrations._following import Following
from suture.integrations._providers import profile_of
from suture.language import resolve_language
from suture.profiles import Profile, get_profile
from suture.repair import Generator, repair

__all__ = ["PatchToolCalls"]

_WIRE = "pydantic-ai"
_PROMPT = ModelRequest([UserPromptPart("")])
"""What stands for the prompt to come, whatever it says: it is why calls before it have no result."""


class PatchToolCalls(AbstractCapability[Any]):
    """Gives every tool call its result, and every result its call, in all that an agent sends to its model.

    Calls that may still be answered are left alone: those of a run without a prompt, and those that deferred results or
    approvals are for. It can also be called with a list of messages, outside of a run or in `ProcessHistory`; then
    calls at the end are answered, too.

    One object serves any number of agents and runs, at once.

    Args:
        generator: `(name, call_id)` or `(name, call_id, cause=…)` to the text of a placeholder; an empty text means the
            built-in one. Its error ends the run.
        orphans: `text` keeps a result without a call as user text; `drop` removes it.
        profile: whose rules hold; if not given, those of the model's provider, and the strictest ones for
            a provider that is not known.
        language: of the texts, `en` or `zh`; the one in force if not given.

    >>> from pydantic_ai import Agent
    >>> from pydantic_ai.messages import ModelResponse, ToolCallPart
    >>> from pydantic_ai.models.test import TestModel
    >>> stopped = [ModelResponse([ToolCallPart("search", {"q": "x"}, "call_1")])]
    >>> agent = Agent(TestModel(), capabilities=[PatchToolCalls()])
    >>> result = agent.run_sync("Never mind.", message_history=stopped)
    >>> result.all_messages()[1].parts[0].content
    'Tool call search with id call_1 was canceled - another message came in before it could be completed.'
    """

    def __init__(
        self,
        *,
        generator: Generator | None = None,
        orphans: Literal["text", "drop"] = "text",
        profile: str | Profile | None = None,
        language: str | None = None,
    ) -> None:
        self.generator, self.profile, self.language = generator, profile, resolve_language(language)
        self.orphans: Literal["text", "drop"] = orphans
        self._pair(())  # refuses what it does not know
        if profile is not None:
            get_profile(profile)
        self._following = Following(_WIRE, orphans=orphans, generator=generator, language=self.language)

    def __call__(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        """Return what a provider accepts in the place of `messages`: the very list, where it accepts that."""
        mended = self._fit(messages, self.profile or profile_of(""))
        return mended if isinstance(mended, list) else list(mended)

    def get_ordering(self) -> CapabilityOrdering:
        """Come last: what another capability or a history processor breaks is mended as well."""
        return CapabilityOrdering(position="innermost")

    async def before_node_run(self, ctx: RunContext[Any], *, node: "AgentNode[Any]") -> "AgentNode[Any]":
        """Make the history that a run begins with whole, before anybody looks at it."""
        if isinstance(node, UserPromptNode) and ctx.messages:
            mended = self._begin(ctx.messages, node)
            if mended is not ctx.messages:
                ctx.messages[:] = mended
        return node

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Fit what is sent to the model that will serve this attempt."""
        del ctx
        messages = request_context.messages
        mended = self._fit(messages, self.profile or _profile_of(request_context.model))
        if mended is not messages:
            request_context.messages = list(mended)
        return request_context

    if not hasattr(AbstractCapability, "prepare_model_request"):
        before_model_request = prepare_model_request  # releases before 2.66 make one attempt, and have one hook

    def _begin(self, messages: list[ModelMessage], node: UserPromptNode[Any, Any]) -> Sequence[ModelMessage]:
        """Return `messages` made whole; calls stay open that this run may go on with."""
        prompt, last = node.user_prompt, messages[-1]
        if node.deferred_tool_results is not None or (_is_response(last) and (prompt is None or _is_suspended(last))):
            turn = max((place for place, message in enumerate(messages) if _is_response(message)), default=0)
            settled = messages[:turn]
            paired = self._pair(settled)
            return messages if paired is settled else [*paired, *messages[turn:]]
        if prompt is None:
            return self._pair(messages)
        interrupted = [*messages, _PROMPT]
        paired = self._pair(interrupted)
        return messages if paired is interrupted else paired[:-1]

    def _pair(self, messages: Sequence[ModelMessage]) -> Sequence[ModelMessage]:
        """Return `messages` with every call answered, for any provider."""
        return repair(
            messages,
            wire=_WIRE,
            profile="pairing",
            orphans=self.orphans,
            generator=self.generator,
            language=self.language,
        ).messages

    def _fit(self, messages: Sequence[ModelMessage], profile: str | Profile) -> Sequence[ModelMessage]:
        """Return what `profile` accepts; a turn that its provider paused goes back as it came."""
        if not messages or not _is_suspended(messages[-1]):
            return self._following.mend(messages, profile)
        before = messages[:-1]
        mended = self._following.mend(before, profile)
        return messages if mended is before else [*mended, messages[-1]]


def _is_response(message: ModelMessage) -> bool:
    return isinstance(message, ModelResponse)


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
