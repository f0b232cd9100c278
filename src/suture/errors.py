"""Every exception that Suture raises, as one tree.

::

    SutureError
    ├── InputError            the input cannot be read (says which message, and where in it)
    │   ├── UnknownWireError    no known message shape fits
    │   ├── AmbiguousWireError  several fit, and they would give different results
    │   └── SchemaVersionError  written by a version this one cannot read
    ├── ConfigError           an argument of the call is wrong
    ├── NotInRunError         a function that belongs into a run was called outside of one
    ├── HistoryError          the history cannot be made acceptable; carries what is left
    ├── ResumeError           a checkpoint cannot be resumed like this; says what it waits for
    ├── OffloadError          tool output could not be saved; says which call's
    └── RunError              a run could not go on
        ├── MaxIterationsExceeded  it took all the model turns it may take
        ├── BudgetExceeded         it used up its tokens, its cost or its tool calls
        ├── RetryExhausted         every attempt at a model turn failed; the last exception is the cause
        ├── StreamCutError         a model's stream ended before its message was whole
        ├── RunBusyError           somebody else runs it, and is alive
        ├── ComponentCancelledError  a model's or a hook's own work was cancelled, and nobody cancelled the run
        ├── OutputError            the final answer is not of the type that was asked for
        ├── ContextOverflowError   what must be sent is longer than may be; says which one thing is too large
        └── ModelError             a provider refused or failed; says whether to try again can help
            ├── ModelRequestError    it refuses this request
            │   └── ContextLengthError  because it is too long
            ├── ModelAuthError       it refuses the key, or what the key may do
            ├── RateLimitError       too many requests, or too many tokens, for now
            ├── ModelReplyError      the model's reply is of no use: a call in it is malformed, or did not come
            ├── ModelServerError     it failed, or is overloaded
            └── ModelConnectionError it was not reached, or it went silent
                └── ModelTimeoutError  for longer than may be

The type of an error says first what is at fault: the data (`InputError`), the caller (`ConfigError`) or neither
(`HistoryError`, `RunError`). An error that ends a run carries the result so far in `result`. This file imports
nothing else of Suture.
"""

import re
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

__all__ = [
    "AmbiguousWireError",
    "BudgetExceeded",
    "ComponentCancelledError",
    "ConfigError",
    "ContextLengthError",
    "ContextOverflowError",
    "HistoryError",
    "InputError",
    "MaxIterationsExceeded",
    "ModelAuthError",
    "ModelConnectionError",
    "ModelError",
    "ModelReplyError",
    "ModelRequestError",
    "ModelServerError",
    "ModelTimeoutError",
    "NotInRunError",
    "OffloadError",
    "OutputError",
    "RateLimitError",
    "ResumeError",
    "RetryExhausted",
    "RunBusyError",
    "RunError",
    "SchemaVersionError",
    "StreamCutError",
    "SutureError",
    "UnknownWireError",
]


class SutureError(Exception):
    """The root of all of Suture's own exceptions."""

    result: Any = None
    """The result of the run that this error ended: a `RunResult`."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _make_again, (type(self), self.args, self.__dict__)


def _make_again(kind: type[SutureError], args: tuple[Any, ...], facts: dict[str, Any]) -> SutureError:
    """Restore a pickled error, whatever arguments its class takes."""
    error = kind.__new__(kind, *args)
    error.args = args
    error.__dict__.update(facts)
    return error


class InputError(SutureError, ValueError):
    """A message, or the list itself, does not have the form of its wire.

    `index` is the position of the offending message (`None` for the list as a whole), `path` the
    place inside it. Nothing has been changed when this is raised.

    >>> str(InputError("expected a string", index=3, path="content"))
    'message 3, content: expected a string'
    """

    def __init__(self, reason: str, *, index: int | None = None, path: str = "") -> None:
        self.reason = reason
        self.index = index
        self.path = path
        place = ", ".join(part for part in ("" if index is None else f"message {index}", path) if part)
        super().__init__(f"{place}: {reason}" if place else reason)


class UnknownWireError(InputError):
    """No wire recognises these messages; pass `wire=` to say which one it is.

    >>> raise UnknownWireError("no wire knows the role 'x'", index=0)
    Traceback (most recent call last):
        ...
    suture.errors.UnknownWireError: message 0: no wire knows the role 'x'
    """


class AmbiguousWireError(InputError):
    """Several wires fit and would give different results; `candidates` names them.

    >>> AmbiguousWireError(("anthropic", "openai-chat")).candidates
    ('anthropic', 'openai-chat')
    """

    def __init__(self, candidates: tuple[str, ...], advice: str = "say which with wire=") -> None:
        self.candidates = candidates
        names = ", ".join(candidates)
        super().__init__(f"these messages could be any of {names}, and the results would differ; {advice}")


class SchemaVersionError(InputError):
    """Stored messages carry a schema version that this release cannot read."""


class ConfigError(SutureError, ValueError):
    """An argument of the call is wrong: an unknown name, or two arguments that exclude each other.

    >>> raise ConfigError("unknown profile 'opnai'; known: anthropic, openai-chat")
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: unknown profile 'opnai'; known: anthropic, openai-chat
    """


class HistoryError(SutureError):
    """No operation can make the history acceptable; `unresolved` holds the findings that remain.

    >>> HistoryError("1 finding is left", unresolved=("…",)).unresolved
    ('…',)
    """

    def __init__(self, reason: str, *, unresolved: tuple[Any, ...] = ()) -> None:
        self.unresolved = unresolved
        super().__init__(reason)


class NotInRunError(SutureError, RuntimeError):
    """A function that only works inside a run (in a hook, a wrapper or a tool) was called outside of one."""


class OffloadError(SutureError):
    """Tool output could not be saved; the history has not changed. `calls` are their (name, id).

    >>> str(OffloadError([("read_log", "call_1")], "the disk is full"))
    'the output of read_log (call_1) was not saved: the disk is full'
    """

    def __init__(self, calls: Sequence[tuple[str, str]], reason: str) -> None:
        self.calls, self.reason = tuple(calls), reason
        named = ", ".join(f"{name[:64]} ({call_id[:64]})" for name, call_id in self.calls)
        super().__init__(f"the output of {named} was not saved: {reason}")

    def joined(self, other: "OffloadError") -> "OffloadError":
        """Return one error for the calls of both; it names the first cause.

        >>> OffloadError([("a", "1")], "full").joined(OffloadError([("b", "2")], "full")).calls
        (('a', '1'), ('b', '2'))
        """
        made = OffloadError([*self.calls, *other.calls], self.reason)
        made.__cause__ = self.__cause__
        return made


class ResumeError(SutureError, ValueError):
    """A checkpoint cannot be resumed like this: it is unknown, has ended, or waits for something else."""


class RunError(SutureError):
    """A run could not go on. `attempts` counts how often the model was asked."""

    attempts: int = 1

    def __str__(self) -> str:
        said = super().__str__()
        return f"{said}; {self.attempts} attempts failed" if self.attempts > 1 else said


class MaxIterationsExceeded(RunError):
    """A run took as many model turns as it may take, and the last one still asked for tools."""


class BudgetExceeded(RunError):
    """A run used up its tokens, its cost or its tool calls."""


class RetryExhausted(RunError):
    """Every attempt at a model turn failed or was rejected; the last exception is the cause.

    >>> RetryExhausted("3 attempts failed", attempts=3).attempts
    3
    """

    def __init__(self, reason: str, *, attempts: int = 0, reject_reason: object = None) -> None:
        self.attempts = attempts
        self.reject_reason = reject_reason
        super().__init__(reason)

    __str__ = Exception.__str__  # the reason counts the attempts


class StreamCutError(RunError):
    """A model's stream ended before its message was complete; the part that came stays in the history.

    >>> StreamCutError("the connection broke").retryable
    True
    """

    retryable = True


class RunBusyError(RunError):
    """Another process, which is alive, is running this run.

    >>> RunBusyError("job-7", "host:12", 30.0).run
    'job-7'
    """

    def __init__(self, run: str, holder: str, seconds: float) -> None:
        self.run, self.holder, self.seconds = run, holder, seconds
        super().__init__(
            f"run {run!r} is being run by {holder or 'another process'}; wait for it, or for its lease to run out "
            f"({seconds:g} s after it dies)"
        )


class ComponentCancelledError(RunError):
    """A model, a hook or a function of the settings cancelled its own work, though nobody cancelled the run.

    >>> ComponentCancelledError("a shared request was given up").retryable
    True
    """

    retryable = True


class OutputError(RunError):
    """The final answer is not of the type that was asked for."""


class ContextOverflowError(RunError):
    """The part of the request that cannot be left out is over the limit. `what` is the largest piece of it.

    It is `"instruction"`, `"tool descriptions"`, or `"message"`; for a message, `index` is its place in the history.
    `refusal` is what the provider said, if it was the one to find the request too long.

    >>> str(ContextOverflowError("message", 9_000, 8_000, index=3))
    'message 3 takes up 9000 tokens and cannot be cut; the limit for all that is sent is 8000'
    """

    retryable = False

    def __init__(self, what: str, tokens: int, limit: int, *, index: int | None = None, refusal: str = "") -> None:
        self.what, self.tokens, self.limit, self.index, self.refusal = what, tokens, limit, index, refusal
        named = what if index is None else f"{what} {index}"
        verb = "take" if what.endswith("s") else "takes"
        told = f"; the provider said: {refusal}" if refusal else ""
        super().__init__(
            f"{named} {verb} up {tokens} tokens and cannot be cut; the limit for all that is sent is {limit}{told}"
        )


class ModelError(RunError):
    """A provider refused or failed.

    `status` is that of the HTTP response, `request_id` is what the provider's support asks for, `retryable` says
    whether the same request may succeed later, and `retry_after` how many seconds to wait before that.

    >>> error = ModelError("the model is overloaded", status=529, request_id="req_1", provider="anthropic")
    >>> str(error)
    'anthropic: the model is overloaded (status 529, request req_1)'
    >>> error.retryable
    False
    """

    retryable = False

    def __init__(
        self,
        reason: str,
        *,
        provider: str = "",
        status: int | None = None,
        code: str = "",
        request_id: str = "",
        retryable: bool | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.reason, self.provider, self.status = reason, provider, status
        self.code, self.request_id, self.retry_after = code, request_id, retry_after
        if retryable is not None:
            self.retryable = retryable
        facts = (
            "" if status is None else f"status {status}",
            f"request {request_id}" if request_id else "",
        )
        told = ", ".join(fact for fact in facts if fact)
        whole = f"{reason} ({told})" if told else reason
        super().__init__(f"{provider}: {whole}" if provider else whole)


class ModelRequestError(ModelError):
    """The provider refuses this request, and would refuse it again.

    >>> ModelRequestError("no such model", status=404).retryable
    False
    """


class ContextLengthError(ModelRequestError):
    """The request is longer than the model's context; `Compaction` keeps requests short enough.

    `limit` is how many tokens of input the provider takes, `tokens` how many the request had, both as it says.

    >>> error = ContextLengthError("exceed context limit: 199759 + 8192 > 200000, decrease input length")
    >>> error.limit, error.tokens
    (191808, 199759)
    """

    def __init__(self, reason: str, **facts: Any) -> None:
        super().__init__(reason, **facts)
        length = read_length(reason)
        self.limit: int | None = None if length is None else length.input_limit
        self.tokens: int | None = None if length is None else length.tokens


class Length(NamedTuple):
    """The tokens that a refusal names: the limit for all, those of the input, and those reserved for the reply.

    >>> Length(200_000, 199_759, 8192).input_limit
    191808
    """

    limit: int
    tokens: int | None = None
    reply: int | None = None

    @property
    def input_limit(self) -> int:
        """How many tokens of input there may be; the limit for all, if the reply's own are more than that."""
        rest = self.limit - (self.reply or 0)
        return rest if rest > 0 else self.limit

    @property
    def is_by_reply(self) -> bool:
        """Whether it is the reply that takes the room: less than a tenth is left, and no shorter input would help.

        >>> Length(200_000, 12, 300_000).is_by_reply, Length(65_536, 57_879, 8192).is_by_reply
        (True, False)
        """
        return self.reply is not None and (self.limit - self.reply) * 10 < self.limit


def read_length(text: str) -> Length | None:
    """Return the tokens that a refusal names; `None` if it names no limit.

    >>> read_length("prompt is too long: 210,000 tokens > 200,000 maximum")
    Length(limit=200000, tokens=210000, reply=None)
    """
    for pattern in _compile():
        found = pattern.search(text)
        if found is not None:
            return Length(**{name: int(number.replace(",", "")) for name, number in found.groupdict().items()})
    return None


@cache
def _compile() -> list[re.Pattern[str]]:
    """Return the patterns, which only who reads an error pays for."""
    named = [re.sub(r"\{(\w+)\}", r"(?P<\1>\\d[\\d,]{0,15})", pattern) for pattern in _LENGTHS]
    return [re.compile(pattern, re.IGNORECASE | re.DOTALL) for pattern in named]


_LENGTHS = (
    # Anthropic, if B tokens are reserved for the reply: continuedev/continue#6080, docker/docker-agent#569.
    r"exceed context limit: {tokens} \+ {reply} > {limit}",
    # Anthropic, if the input alone is too long: earendil-works/pi, overflow.ts.
    r"prompt is too long: {tokens} tokens > {limit}",
    # Fireworks.
    r"prompt is too long: {tokens}, model maximum context length: {limit}",
    # vLLM, of the reply alone: Step-Audio-R1#3, biomni.
    r"too large: {reply}\.?\s.{0,40}context length is {limit} tokens and your request has {tokens} input",
    # vLLM, if it did not count the input: zerostack#22.
    r"context length is {limit} tokens.{0,60} {reply} output tokens and your prompt contains \d+ characters",
    # Newer vLLM: AIDotNet/OpenCowork#82, vllm#42474.
    r"context length is {limit} tokens.{0,60} {reply} output tokens.{0,60} {tokens} input tokens",
    # SGLang, and Cloudflare: models.dev#4422.
    r"context length of {limit} tokens.{0,100}?: {tokens} tokens from the input.{0,40} {reply} tokens for the comp",
    # DeepSeek, OpenRouter, older vLLM and OpenAI: evalstate/fast-agent#621, run-llama/llama_index#948, ogx#4534.
    r"context length is {limit} tokens.{0,100}?\({tokens} (?:in|of) .{0,60} {reply} (?:in|for) +(?:the|your) +[co]",
    # OpenRouter, if nothing is reserved for the reply: refly#1177.
    r"context length is {limit} tokens.{0,60} \({tokens} of text input\)",
    # OpenAI: crewAIInc/crewAI-examples#121; newer: litellm#18927.
    r"exceed the configured limit of {limit} tokens.{0,60}resulted in {tokens} tokens",
    r"exceed the configured limit of {limit} tokens",
    r"context length is {limit} tokens.{0,100}resulted in {tokens} tokens",
    r"context length is {limit} tokens",
    # TGI, Hugging Face, Together: huggingface_hub#2763, UI-TARS-desktop#626.
    r"must be <= {limit}\. given: {tokens} .?inputs.? tokens and {reply}",
    r"inputs.? tokens \+ .?max_new_tokens.? must be <= {limit}",
    r"must have less than {limit} tokens\. given: {tokens}",
    # Together; SGLang; others that are compatible: earendil-works/pi, overflow.ts.
    r"\({tokens} tokens\) is longer than the model's context length \({limit} tokens\)",
    r"input length \(?{tokens}\)? exceeds (?:the )?(?:model's )?maximum .{0,30}length(?: of)? \(?{limit}",
    r"context length of {limit} tokens",
    # vLLM's engine.
    r"\(length {tokens}\) is longer than the maximum model length of {limit}",
    r"prompt \({tokens} tokens\) is too long and exceeds limit of {limit}",  # vllm#10440
    # Gemini: google-gemini/gemini-cli#12098; without the first number: arkavo-edge#371.
    r"input token count \({tokens}\) exceeds the maximum number of tokens allowed \({limit}\)",
    r"exceeds the maximum number of tokens allowed \({limit}\)",
    # Kimi: MoonshotAI/kimi-cli#2011; and its older models: MoonshotAI/MoonshotAI-Cookbook#18.
    r"exceeded model token limit: {limit} \(requested: {tokens}\)",
    r"max length exceeded, max length: ?{limit}",
    # xAI, GitHub Copilot and Mistral: earendil-works/pi, overflow.ts.
    r"maximum prompt length is {limit} but the request contains {tokens} tokens",
    r"prompt token count of {tokens} exceeds the limit of {limit}",
    r"contains {tokens} tokens.{0,80}too large for model with {limit} maximum context length",
    # The server of llama.cpp: llama.cpp#19774.
    r"request \({tokens} tokens\) exceeds the available context size \({limit} tokens\)",
    r"exceeds the available context size \({limit} tokens\)",
    # LM Studio: opencode#11141, lmstudio-bug-tracker#546; llama-cpp-python: doc-comments-ai#54.
    r"n_keep \({tokens}\) >= n_ctx \({limit}\)",
    r"keep the first {tokens} tokens.{0,100}context length of only {limit} tokens",
    r"requested tokens \({tokens}\) exceed context window of {limit}",
    # Model Studio: qwen-code#98.
    r"range of input length should be \[\d+, ?{limit}\]",
    # Z.ai: foreveryh/claude-code-switch#12.
    r"request {tokens} input tokens exceeds the model's maximum context length {limit}",
    # OpenRouter, for what the credits allow: continuedev/continue#10962.
    r"prompt tokens limit exceeded: {tokens} > {limit}",
    # Groq and OpenAI, for the tokens of one minute: cline/cline#4971, Aider-AI/aider#1880.
    r"too large for .{0,200}limit:? {limit},(?: used:? \d+,)? requested:? {tokens}",
    # GitHub Models: eslint/tsc-meetings#593, cline/cline#995.
    r"body too large for .{0,80}max size: {limit} tokens",
    # SambaNova: cline/cline#294.
    r"prompt is {tokens} tokens long.{0,200}maximum supported sequence length is just {limit}",
    # SiliconFlow: leookun/cursor-byok#129.
    r"input tokens \({tokens}\) has exceeded max_prompt_tokens \({limit}\)",
    # Cerebras: cline/cline#5140.
    r"reduce the length.{0,60}current length is {tokens} while limit is {limit}",
)
"""How providers word the limit in their refusals, each with where it was seen."""


class ModelAuthError(ModelError):
    """The provider refuses the key, or the key may not do this.

    >>> ModelAuthError("no key", status=401).retryable
    False
    """


class RateLimitError(ModelError):
    """Too many requests or tokens for now; `retry_after` says how long to wait, if the provider does.

    >>> RateLimitError("slow down", status=429, retry_after=2.0).retry_after
    2.0
    """

    retryable = True


class ModelReplyError(ModelError):
    """The model made a slip: a call that its provider could not read, or one that it announced and did not make.

    The reason has the provider's words and, where it tells them, the model's. To ask again often helps.

    >>> ModelReplyError("Failed to call a function", code="tool_use_failed").retryable
    True
    """

    retryable = True


class ModelServerError(ModelError):
    """The provider failed, or is overloaded.

    >>> ModelServerError("overloaded", status=529).retryable
    True
    """

    retryable = True


class ModelConnectionError(ModelError):
    """The provider was not reached, or the connection broke.

    >>> ModelConnectionError("no route to host").retryable
    True
    """

    retryable = True


class ModelTimeoutError(ModelConnectionError):
    """The provider did not answer, or did not finish, in time."""
