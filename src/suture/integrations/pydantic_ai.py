"""Suture in pydantic-ai: a capability that keeps every history acceptable, and one that keeps it below a limit.

`Agent(model, capabilities=[PatchToolCalls()])` is all. Then two things happen. When a run begins, its message history
is repaired permanently: pydantic-ai would drop a result without a call, and refuse a new prompt after a call without a
result. And before each request to a model, the messages are fitted to the model that will serve it; that is not kept.
"""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from typing import Any, Unpack, cast

from suture._aio import settle
from suture._extras import check_extra
from suture.integrations.compaction import GuestRequest
from suture.integrations.guest import GuestOptions, Options, repair_request
from suture.integrations.objects import ObjectWire, with_fields
from suture.messages import ToolInfo
from suture.middleware import Compaction as _Compaction
from suture.models.windows import context_window
from suture.profiles import Profile, get_profile, profile_of
from suture.wires import MARK, Call, Form, Piece, Result, ResultEdit, View
from suture.wires.fields import given, is_map, json_text, text_of
from suture.wires.parts import Telling
from suture.wires.values import CALL, MEDIA, OTHER, RESULT, TEXT, THINKING

try:
    from pydantic_ai import ModelRequestContext, RunContext, UserPromptNode, exceptions
    from pydantic_ai import messages as parts
    from pydantic_ai.capabilities import AbstractCapability, AgentNode, CapabilityOrdering
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart, UserPromptPart
    from pydantic_ai.models import Model
    from pydantic_ai.models.fallback import FallbackModel
    from pydantic_ai.models.wrapper import WrapperModel
finally:  # an old release may lack some of these: its version says more than the ImportError
    check_extra("pydantic-ai", "pydantic_ai")

__all__ = ["Compaction", "PatchToolCalls"]

_Refusal: Any = getattr(exceptions, "ModelContextWindowExceededError", ())
_Retry: Any = getattr(exceptions, "RetryModelRequest", None)
"""Releases before 2.66 have neither: there a refusal ends the run."""
_FAILURES = ("failed", "retried")
"""The outcomes of results that reach the model as errors; older releases do not name them."""


class PatchToolCalls(AbstractCapability[Any]):
    """Gives every tool call its result, and every result its call, in everything that an agent sends to its model.

    Calls that may still be answered are left alone: those of a run without a prompt, and those for which deferred
    results or approvals are given. It can also be called with a list of messages, outside a run or in `ProcessHistory`;
    then calls at the end are answered, too.

    One object serves any number of agents and runs at once.

    Args:
        options: the options of every guest, see `suture.integrations.guest.Options`. By default the profile is that of
            the model's provider, or the strictest one if the provider is not known.

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
        """Return messages that a provider accepts: the same list, if it accepts `messages` as they are."""
        repaired = self._fit(messages, self._options.profile or profile_of(""))
        return repaired if isinstance(repaired, list) else list(repaired)

    def get_ordering(self) -> CapabilityOrdering:
        """Come last, so that damage by other capabilities or history processors is repaired as well."""
        return CapabilityOrdering(position="innermost")

    async def before_node_run(self, ctx: RunContext[Any], *, node: "AgentNode[Any]") -> "AgentNode[Any]":
        """Repair the history that a run begins with, before anything else reads it."""
        if isinstance(node, UserPromptNode) and ctx.messages:
            repaired = self._repair_at_start(ctx.messages, node)
            if repaired is not ctx.messages:
                ctx.messages[:] = repaired
        return node

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Fit the messages to the model that will serve this attempt."""
        del ctx
        messages = request_context.messages
        repaired = self._fit(messages, self._options.profile or _profile_of(request_context.model))
        if repaired is not messages:
            request_context.messages = list(repaired)
        return request_context

    if not hasattr(AbstractCapability, "prepare_model_request"):
        before_model_request = prepare_model_request  # releases before 2.66 make one attempt, and have one hook

    def _repair_at_start(self, messages: list[ModelMessage], node: UserPromptNode[Any, Any]) -> Sequence[ModelMessage]:
        """Return repaired `messages`; calls that this run may continue stay open."""
        last, end = messages[-1], len(messages)
        waits = isinstance(last, ModelResponse) and (node.user_prompt is None or _is_suspended(last))
        if node.deferred_tool_results is not None or waits:
            end = max([at for at, message in enumerate(messages) if isinstance(message, ModelResponse)], default=0)
        return self._repair(messages, end, "pairing")

    def _fit(self, messages: Sequence[ModelMessage], profile: Profile) -> Sequence[ModelMessage]:
        """Return messages that `profile` accepts; a turn that its provider paused goes back unchanged."""
        paused = bool(messages) and _is_suspended(messages[-1])
        return self._repair(messages, len(messages) - paused, profile)

    def _repair(self, messages: Sequence[ModelMessage], end: int, profile: str | Profile) -> Sequence[ModelMessage]:
        before = messages[:end]
        repaired = repair_request(before, WIRE, self._options, profile=profile)
        return messages if repaired is before else [*repaired, *messages[end:]]


def _is_suspended(message: ModelMessage) -> bool:
    return isinstance(message, ModelResponse) and message.state == "suspended"


def _profile_of(model: Model) -> Profile:
    """Return the profile of the provider that will answer; if several may, their common one, or the strictest."""
    if isinstance(model, FallbackModel):
        profiles = {_profile_of(each) for each in model.models}
        return profiles.pop() if len(profiles) == 1 else profile_of("")
    if isinstance(model, WrapperModel):
        return _profile_of(model.wrapped)
    profile = profile_of(model.system)
    speaks_in_items = any("Responses" in kind.__name__ for kind in type(model).__mro__)
    return get_profile("openai-responses") if profile.name == "openai-chat" and speaks_in_items else profile


class Compaction(AbstractCapability[Any]):
    """Keeps an agent's requests below a limit, in steps, and stops as soon as there is room.

    Old tool results are cleared, old thinking is dropped, the oldest rounds are summarised (or listed in a digest if no
    model can do that), and the largest blocks are cut. The run continues with the shorter history, which `all_messages`
    returns. If the model refuses a request as too long, it is asked once more with a shorter one.

    Args:
        max_tokens: how many tokens a request may have; by default 80 % of the model's window, if that is known.
        target_tokens: how many it should have after a compaction; by default 60 % of the limit.
        summarizer: a model or its name, or a function of the prompt, plain or async; by default the agent's own model.
        backend: where removed content is saved: anything with `write(path, content)`, which the agent's own tool named
            `read_file_tool_name` reads. Without a backend everything that the user said stays.
        settings: other settings of `suture.Compaction`, such as `keep_recent_rounds`.

    >>> from pydantic_ai import Agent
    >>> from pydantic_ai.models.test import TestModel
    >>> agent = Agent(TestModel(custom_output_text="ok"), capabilities=[Compaction(100_000)])
    >>> agent.run_sync("hi").output
    'ok'
    """

    def __init__(
        self,
        max_tokens: int | None = None,
        target_tokens: int | None = None,
        summarizer: Model | str | Callable[[str], str | Awaitable[str]] | None = None,
        **settings: Any,
    ) -> None:
        self._compaction, self._summarizer = _Compaction(max_tokens, target_tokens, **settings), summarizer
        self._values: dict[str, dict[str, Any]] = {}
        """By model: its last summaries, and the limit that its provider named."""

    async def prepare_model_request(
        self, ctx: RunContext[Any], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Send a history that is not too long, and continue the run with it."""
        if getattr(request_context, "attempt", 1) > 1 and len(ctx.messages) < len(request_context.messages):
            request_context.messages = list(ctx.messages)  # the refused history was shortened
        asked = self._ask(ctx, request_context)
        made = await asked.shorten() if asked.is_long() else None
        if made is not None:
            _keep(ctx, request_context, made)
        return request_context

    if not hasattr(AbstractCapability, "prepare_model_request"):
        before_model_request = prepare_model_request  # releases before 2.66 make one attempt, and have one hook

    async def on_model_request_error(
        self, ctx: RunContext[Any], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Shorten a history that a provider refused as too long, and have it sent again."""
        if _Retry is None or not isinstance(error, _Refusal) or getattr(request_context, "attempt", 2) > 1:
            raise error
        _keep(ctx, request_context, await self._ask(ctx, request_context).shorten_refused(error))
        raise _Retry

    def _ask(self, ctx: RunContext[Any], request: ModelRequestContext) -> GuestRequest:
        """Return a request with everything that its compaction needs."""
        parameters, model = request.model_request_parameters, request.model
        instructions = getattr(parameters, "instruction_parts", None) or ()
        tools = [*parameters.function_tools, *parameters.output_tools]
        return GuestRequest(
            self._compaction,
            "pydantic-ai",
            request.messages,
            system="\n".join(str(part.content) for part in instructions),
            tool_infos=[ToolInfo(tool.name, tool.description or "", tool.parameters_json_schema) for tool in tools],
            values=self._values.setdefault(model.model_name, {}),
            window=context_window(model.model_name),
            summarize=lambda prompt: self._summarize(model, prompt),
            backend=self._compaction.backend,
            root=self._compaction.root_dir or f"/{ctx.conversation_id or ctx.run_id}",
        )

    async def _summarize(self, model: Model, prompt: str) -> str:
        chosen: Any = model if self._summarizer is None else self._summarizer
        if callable(chosen):
            return str(await settle(chosen(prompt)))
        reply = await model_request(chosen, [ModelRequest.user_text_prompt(prompt)])
        if reply.tool_calls:
            raise RuntimeError("it called a tool")
        return reply.text or ""


def _keep(ctx: RunContext[Any], request: ModelRequestContext, made: list[ModelMessage]) -> None:
    """Send these messages, and continue the run with them if it holds the same messages as the request."""
    before = request.messages
    if len(before) == len(ctx.messages) and all(one is other for one, other in zip(before, ctx.messages, strict=True)):
        ctx.messages[:] = made
    request.messages = made


# --- its messages --------------------------------------------------------------------------------

_NO_TIME = datetime.fromtimestamp(0, UTC)
"""The time of added messages; the clock would give a different history each time."""
_TEXTS = dict.fromkeys(("user-prompt", "text", "retry-feedback"), TEXT)
_RESULTS = dict.fromkeys(("tool-return", "retry-prompt"), RESULT)
_KINDS = {"tool-call": CALL, "thinking": THINKING, "file": MEDIA, **_RESULTS, **_TEXTS}
_SILENT = ("instruction-baseline", "model-settings-delta", "capability-load-delta", "cache-point")
"""Parts that no model gets."""


class _OwnCall(Call):
    """A call with the time at which it was made, and the kind of its tool."""

    made: datetime
    tool_kind: Any


def _text(item: Any) -> str | None:
    """Return the text of an item of a content, `None` if it is not a text."""
    return item.content if isinstance(item, parts.TextContent) else item if isinstance(item, str) else None


class PydanticAIWire(ObjectWire):
    """Histories of `ModelRequest` and `ModelResponse`: results are in the next request, beside prompts.

    >>> from pydantic_ai.messages import ModelResponse, ToolCallPart
    >>> WIRE.view(ModelResponse([ToolCallPart("search", {"q": "x"}, "call_1")])).calls
    (_OwnCall(id='call_1', name='search', arguments={'q': 'x'}, kind='', alias=''),)
    """

    name = "pydantic-ai"
    form = Form(_text, cast("Any", str))
    arranges = frozenset(("trailing-text", "split-turn"))
    types = (ModelRequest, ModelResponse)
    field, kind_field, kinds, system = "parts", "part_kind", _KINDS, "system-prompt"
    speaker, model, user, tools = "kind", "response", "request", "request"
    text_field, id_field, name_field, arguments_field = "content", "tool_call_id", "tool_name", "args"
    status_field, success, extra_field = "outcome", "success", "metadata"
    sent = ("parts", "args", "content")
    takes_none = True

    def role(self, message: Any, index: int | None) -> str:
        """Return the role of `message`: a request is the system's if it holds only system prompts."""
        role = super().role(message, index)
        held = {getattr(part, "part_kind", "") for part in self.blocks(message, index)} if role == "user" else ()
        return "system" if held == {"system-prompt"} else role

    def view(self, message: Any, index: int | None = None) -> View:
        """Return the view of `message`; a request is never empty, because instructions go with it."""
        view = super().view(message, index)
        for call in view.calls:
            cast("_OwnCall", call).made = message.timestamp
        return view if view.role == "assistant" else view._replace(empty=False)

    def contents(self, message: Any) -> Sequence[Any]:
        """Return the parts of `message`, with the items of a prompt that has several."""
        found: list[Any] = []
        for part in self.blocks(message):
            if isinstance(part, UserPromptPart) and not isinstance(part.content, str):
                texts = [(item, _text(item)) for item in part.content]
                found += [item if text is None else UserPromptPart(text) for item, text in texts]
            else:
                found.append(part.content if isinstance(part, parts.FilePart) else part)
        return found

    def kind(self, block: Any) -> str:
        """Return the kind of `block`; a retry prompt without a tool is text, and a prompt with media is media."""
        kind = super().kind(block)
        if kind == RESULT and block.tool_name is None and block.part_kind == "retry-prompt":
            return TEXT
        if kind == TEXT and isinstance(block, UserPromptPart) and not isinstance(block.content, str):
            return TEXT if all(_text(item) is not None for item in block.content) else MEDIA
        return kind

    def block_words(self, block: Any) -> Any:
        if isinstance(block, UserPromptPart) and not isinstance(block.content, str):
            return "\n".join([text for item in block.content if (text := _text(item)) is not None])
        retry = getattr(block, "model_response", None)
        return block.content if retry is None else retry()

    def is_signed(self, block: Any) -> bool:
        if getattr(block, "signature", None):
            return True
        details = getattr(block, "provider_details", None)
        return is_map(details) and any(seal in name for name in details for seal in ("signature", "encrypted"))

    def read_call(self, block: Any, index: int | None = None) -> Call:
        call = _OwnCall(*super().read_call(block, index))
        call.tool_kind = block.tool_kind
        return call

    def read_result(self, block: Any, index: int | None = None) -> Result:
        """Return the result in a part: a tool's return, or what was wrong with a call."""
        extra = self.extra_of(block)
        synthetic = MARK in extra or parts.SYNTHESIZED_TOOL_RETURN_METADATA_KEY in extra
        failed = getattr(block, "outcome", "retried") in _FAILURES
        call_id, name = text_of(block, "tool_call_id", index), text_of(block, "tool_name", index)
        return Result(call_id, name, block.content, "", synthetic, failed, extra)

    def result_text(self, result: Result) -> tuple[str, bool]:
        if isinstance(result.content, str):
            return result.content, True
        part = ToolReturnPart(result.name, result.content, result.id, timestamp=_NO_TIME)
        try:
            return part.model_response_str(), not part.files
        except ValueError:  # pydantic cannot write it: a cycle, say, or an object of the program
            return json_text(result.content), False

    def write_result(self, block: Any, edit: ResultEdit) -> Any:
        content = self.content_after(edit, block.content)
        made = with_fields(block, **given(tool_call_id=edit.id, tool_name=edit.name, content=content))
        return self.with_extra(made, edit.extra)

    def make_result(self, piece: Piece) -> Any:
        call = piece.call or Call("", "")
        return ToolReturnPart(
            call.name,
            piece.text,
            call.id,
            tool_kind=getattr(call, "tool_kind", None),
            metadata={parts.SYNTHESIZED_TOOL_RETURN_METADATA_KEY: True, MARK: piece.cause},
            timestamp=getattr(call, "made", _NO_TIME),
            outcome="denied" if piece.cause == "rejected" else "interrupted",
        )

    def make_text(self, role: str, text: str) -> Any:
        return parts.TextPart(text) if role == "assistant" else UserPromptPart(text, timestamp=_NO_TIME)

    def make_message(self, role: str, blocks: Sequence[Any]) -> Any:
        return ModelResponse(list(blocks), timestamp=_NO_TIME) if role == "assistant" else ModelRequest(list(blocks))

    def tell_block(self, block: Any, telling: Telling) -> None:
        """Tell a part, or an item of a content, as a model reads it, without what no model gets."""
        content, name = getattr(block, "content", block), getattr(block, "tool_name", None)
        if isinstance(block, parts.BaseToolCallPart):
            telling.say(name)
            telling.write(block.args)
        elif isinstance(block, UserPromptPart | parts.BaseToolReturnPart):
            telling.say(name)
            self.tell_content(content, telling)
        elif self.kind(block) != OTHER:
            super().tell_block(block, telling)
        elif isinstance(content, str):
            telling.say(content)
        elif getattr(block, "media_type", None) is not None:
            telling.media += 1
        elif block is not None and getattr(block, "part_kind", getattr(block, "kind", "")) not in _SILENT:
            telling.show(block)


WIRE = PydanticAIWire()
"""The wire of pydantic-ai's messages."""
